/* What the benchmarks share: rows of the table that scand-bench prints, medians, a clock. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_ROWS_MAX 64

/* One measurement. Ratios are to a copy of the same bytes, or to what `against` says, measured in the same run. */
struct bench_row {
    char name[64];
    char against[64];    /* what the ratio is to; "" for a row that others are measured against */
    double milliseconds; /* median */
    double ratio;        /* of speeds; 0 where there is none */
    double target;       /* of the ratio, or of the milliseconds when there is no ratio; 0: none */
};

struct bench_table {
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t count;
};

/* Appends a row. */
void bench_add(struct bench_table *table, const char *name, const char *against, double milliseconds, double ratio,
               double target);
double bench_median(double *values, size_t count); /* sorts them */
double bench_now_ms(void);

/* Each measures and appends; 0, or nonzero after a line on stderr. */
int bench_cpu(struct bench_table *table);
int bench_kernels(struct bench_table *table);                       /* CUDA, on the device */
int bench_variants(struct bench_table *table);                      /* CUDA: the tutorials' variants */
int bench_reduce(struct bench_table *table);                        /* CUDA: their reductions */
int bench_banks(void);                                              /* CUDA; prints a table of its own */
int bench_duplex(struct bench_table *table, double *gb_per_second); /* CUDA, host to device and back at once */
int bench_service(struct bench_table *table, const char *scand, const char *self, double duplex_gb_per_second);
/* The fresh process of bench_service: prints the milliseconds from start_ms to its first result, less filling the data.
 */
int bench_fresh_client(const char *socket, double start_ms);

#endif

/* Functions that all benchmarks use: rows of the table that scand-bench prints, medians, a clock. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/server.h"

#define BENCH_ROWS_MAX    1024
#define BENCH_DEVICES_MAX 8

enum bench_sameness { BENCH_NOT_COMPARED, BENCH_SAME, BENCH_DIFFERENT };

/*
 * One measurement, in the one shape that all benchmarks have. What stays zero is not known or does not apply, and is
 * printed as nothing. Shares are of the speed of `against`, measured in the same run.
 */
struct bench_row {
    char name[40];
    char shape[40];      /* rows x samples, and anything unusual about them */
    char accumulator[8]; /* the accumulator of sums */
    char kernel[32];     /* for the default path: the kernel that it chose (kernels/cuda/select/select.h) */
    char against[56];    /* row that the share is of; "" for a row that others are measured against */
    double milliseconds; /* median */
    double share;
    double target;            /* target of the share, or of the milliseconds without a share */
    uint64_t checked;         /* outputs compared with exact sums (exact.h) */
    uint64_t rounded;         /* compared outputs that are correctly rounded */
    double worst_ulps;        /* their largest error in units of the last place */
    enum bench_sameness same; /* two runs gave the same bits */
};

struct bench_table {
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t count;
};

/* Appends a row. */
void bench_add(struct bench_table *table, const struct bench_row *row);

void bench_print_text(const struct bench_table *table, FILE *to);
void bench_print_json(const struct bench_table *table, FILE *to);
void bench_print_csv(const struct bench_table *table, FILE *to);

double bench_median(double *values, size_t count); /* sorts them */
double bench_now_ms(void);

/* Each measures and appends; 0, or nonzero after a line on stderr. */
int bench_cpu(struct bench_table *table);
int bench_shapes(struct bench_table *table);         /* a part of bench_cpu; it prints the error */
int bench_kernels(struct bench_table *table);        /* CUDA: all of the kernels' figures */
int bench_paths(struct bench_table *table);          /* CUDA: the kernels that were chosen among */
int bench_variants(struct bench_table *table);       /* CUDA: the tutorials' variants, long rows too */
int bench_reduce(struct bench_table *table);         /* CUDA: their reductions */
int bench_row_reductions(struct bench_table *table); /* CUDA: those of bench_kernels */
int bench_banks(void);                               /* CUDA; prints a table of its own */
/* Measures, on CUDA, host memory to devices and back at once, a part for each of the first `devices`. */
int bench_duplex(struct bench_table *table, int devices, double *gb_per_second);
int bench_device_count(void); /* CUDA; at most BENCH_DEVICES_MAX */
/* Runs all benchmarks of the service, or one part (bench_service.c). Returns exit code 64 for an unknown part. */
int bench_service(struct bench_table *table, const char *part, const char *scand, const char *self,
                  double duplex_gb_per_second);

/* A daemon, whose parts of bench_service follow. */
struct service {
    struct server server;
    const char *scand;           /* the daemon's program */
    const char *self;            /* path of this program, to be started again */
    double duplex_gb_per_second; /* 0: there is no GPU */
};

static inline bool service_has_gpu(const struct service *service)
{
    return service->duplex_gb_per_second > 0;
}

int bench_main_job(struct bench_table *table, const struct service *service);
/* The main job by a daemon, warm; it prints the error. */
int bench_time_main_job(const char *socket, double *median_ms);
/* The processor beside the device. */
int bench_helped(struct bench_table *table, const struct service *service);
/* Measures, on CUDA, the main job without a daemon; bench_main_job measures it, too. */
int bench_ring(struct bench_table *table, const struct service *service);
int bench_fresh(struct bench_table *table, const struct service *service);
/* Measures, on CUDA, the main job on memory of this process, beside pinning that memory. */
int bench_memfd(struct bench_table *table, const struct service *service);
/* Measures, on CUDA, the same by another daemon, which may not pin the memory. */
int bench_staged(struct bench_table *table, const struct service *service);
/* Measures, on CUDA, jobs on device memory of this process, beside their kernels. */
int bench_imported(struct bench_table *table, const struct service *service);
int bench_small(struct bench_table *table, const struct service *service); /* jobs of one row of 1,000 samples */
int bench_beside(struct bench_table *table, const struct service *service);
int bench_shares(struct bench_table *table, const struct service *service);
int bench_idle(struct bench_table *table, const struct service *service);
/* Launches, on CUDA, the kernel of a small job, on mapped memory, and waits for it, again and again. */
int bench_mapped_kernel(double *median_ms);
/* Measures, on CUDA, the main job on one GPU, on two, on four and so on, and on all, against what the GPUs copy
 * together. */
int bench_devices(struct bench_table *table, const char *scand);
/* Tests whether a daemon grows or wakes for nothing; prints a table of its own, and takes the command line's other
 * words. */
int bench_endurance(const char *scand, int argc, char **argv);
/* Measures how soon a daemon is back; prints and takes words likewise. */
int bench_restart(const char *scand, int argc, char **argv);
/* Measures what one user's attacks do to another user; prints and takes words likewise. */
int bench_hostile(const char *scand, int argc, char **argv);

#endif

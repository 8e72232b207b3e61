/*
 * scand-bench [kernels|cpu|service|variants|reduce|banks]... [--json]: measures and prints one table. Ratios are of
 * speeds, to what was measured in the same run. Without words: kernels, cpu and service, as far as this machine can run
 * them.
 */
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

void bench_add(struct bench_table *table, const char *name, const char *against, double milliseconds, double ratio,
               double target)
{
    if (table->count == BENCH_ROWS_MAX)
        abort();
    struct bench_row *row = &table->rows[table->count++];
    *row = (struct bench_row){.milliseconds = milliseconds, .ratio = ratio, .target = target};
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->against, sizeof row->against, "%s", against);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_text(const struct bench_table *table)
{
    printf("%-50s %10s  %6s  %6s  %s\n", "what", "ms", "ratio", "target", "against");
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_row *row = &table->rows[i];
        printf("%-50s %10.3f  ", row->name, row->milliseconds);
        if (row->ratio > 0)
            printf("%6.3f  ", row->ratio);
        else
            printf("%6s  ", "");
        if (row->target > 0)
            printf("%6.2f  ", row->target);
        else
            printf("%6s  ", "");
        printf("%s\n", row->against);
    }
}

/* Names are our own: nothing in them needs escaping. */
static void print_json(const struct bench_table *table)
{
    printf("[\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_row *row = &table->rows[i];
        printf("  {\"name\": \"%s\", \"ms\": %.4f, \"ratio\": %.4f, \"target\": %.2f, \"against\": \"%s\"}%s\n",
               row->name, row->milliseconds, row->ratio, row->target, row->against, i + 1 < table->count ? "," : "");
    }
    printf("]\n");
}

/* The daemon of this build: ../../daemon/scand from here. */
static bool find_paths(char self[PATH_MAX], char scand[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (n < 0)
        return false;
    self[n] = '\0';
    char folder[PATH_MAX];
    strcpy(folder, self);
    return snprintf(scand, PATH_MAX, "%s/../../daemon/scand", dirname(folder)) < PATH_MAX;
}

static int measure(const char *word, struct bench_table *table, double *duplex)
{
    char self[PATH_MAX], scand[PATH_MAX];
    bool all = strcmp(word, "all") == 0, known = all;
    int r = 0;
#ifdef SCAND_HAVE_CUDA
    if (all || strcmp(word, "kernels") == 0) {
        known = true;
        r |= bench_kernels(table);
    }
    if (strcmp(word, "variants") == 0) {
        known = true;
        r |= bench_variants(table);
    }
    if (strcmp(word, "reduce") == 0) {
        known = true;
        r |= bench_reduce(table);
    }
    if (strcmp(word, "banks") == 0) {
        known = true;
        r |= bench_banks();
    }
#endif
    if (all || strcmp(word, "cpu") == 0) {
        known = true;
        r |= bench_cpu(table);
    }
    if (all || strcmp(word, "service") == 0) {
        known = true;
#ifdef SCAND_HAVE_CUDA
        r |= bench_duplex(table, duplex);
#endif
        r |= find_paths(self, scand) ? bench_service(table, scand, self, *duplex) : 1;
    }
    if (!known) {
        fprintf(stderr,
                "scand-bench: no benchmark \"%s\"; there are: cpu, service, and in a build with CUDA kernels, "
                "variants, reduce, banks\n",
                word);
        return 64;
    }
    return r;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"json", no_argument, NULL, 'j'}, {"fresh-client", no_argument, NULL, 'f'}, {0}};
    struct bench_table table = {0};
    double duplex = 0;
    bool json = false;
    int option, r = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'f' && argc - optind == 2)
            return bench_fresh_client(argv[optind], atof(argv[optind + 1]));
        if (option != 'j')
            return 64;
        json = true;
    }
    if (optind == argc)
        r = measure("all", &table, &duplex);
    for (int i = optind; i < argc && !r; i++)
        r = measure(argv[i], &table, &duplex);
    if (json || table.count > 0)
        (json ? print_json : print_text)(&table);
    return r;
}

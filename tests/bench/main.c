/*
 * scand-bench [kernels|paths|cpu|steps|service|devices|variants|reduce|banks]... [--json[=FILE]|--csv[=FILE]]: measures
 * and prints one table: as text, in the form asked for, or, when that goes to a file, in both. Shares are of speeds
 * that were measured in the same run. Without words: kernels, cpu and service, as far as this build can run them.
 * service:PART is one part of service, say service:idle.
 * scand-bench endurance [OPTION]...: see bench_endurance.c.
 * scand-bench restart [OPTION]...: see bench_restart.c.
 * scand-bench hostile [OPTION]... [ATTACK]...: see hostile/bench_hostile.c.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "protocol/own_descriptors.h"
#include "tests/bench/bench.h"
#include "tests/bench/programs.h"
#include "tests/bench/step_cases.h"

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

struct run {
    struct bench_table table;
    double duplex_gb_per_second;
};

static int measure_service_part(struct run *run, const char *part)
{
    char self[PATH_MAX], scand[PATH_MAX];
    int r = 0;
#ifdef SCAND_HAVE_CUDA
    r = bench_duplex(&run->table, 1, &run->duplex_gb_per_second);
#endif
    if (!r && !find_paths(self, scand))
        r = 1;
    return r ? r : bench_service(&run->table, part, scand, self, run->duplex_gb_per_second);
}

static int measure_service(struct run *run)
{
    return measure_service_part(run, NULL);
}

static int measure_endurance(int argc, char **argv)
{
    char self[PATH_MAX], scand[PATH_MAX];
    return find_paths(self, scand) ? bench_endurance(scand, argc, argv) : 1;
}

static int measure_restart(int argc, char **argv)
{
    char self[PATH_MAX], scand[PATH_MAX];
    return find_paths(self, scand) ? bench_restart(scand, argc, argv) : 1;
}

static int measure_hostile(int argc, char **argv)
{
    char self[PATH_MAX], scand[PATH_MAX];
    return find_paths(self, scand) ? bench_hostile(scand, argc, argv) : 1;
}

/* Words that come first, and take the rest of the command line. */
static const struct program {
    const char *word;
    int (*main)(int argc, char **argv);
} programs[] = {
    {"endurance", measure_endurance}, {"hostile", measure_hostile}, {"restart", measure_restart},
    {"--fresh-client", fresh_client}, {"--fresh-jobs", fresh_jobs}, {"--load", load_clients},
#ifdef SCAND_HAVE_CUDA
    {"--fresh-own", fresh_own},
#endif
};

static int measure_cpu(struct run *run)
{
    return bench_cpu(&run->table);
}

/* Measures steps on a GPU or, without one, on one thread of the processor. */
static int measure_steps(struct run *run)
{
    step_benches_complain();
#ifdef SCAND_HAVE_CUDA
    if (bench_device_count() > 0)
        return bench_steps_cuda(&run->table);
#endif
    return bench_steps_cpu(&run->table);
}

#ifdef SCAND_HAVE_CUDA
static int measure_kernels(struct run *run)
{
    return bench_kernels(&run->table);
}

static int measure_paths(struct run *run)
{
    return bench_paths(&run->table);
}

static int measure_variants(struct run *run)
{
    return bench_variants(&run->table);
}

static int measure_reduce(struct run *run)
{
    return bench_reduce(&run->table);
}

static int measure_devices(struct run *run)
{
    char self[PATH_MAX], scand[PATH_MAX];
    return find_paths(self, scand) ? bench_devices(&run->table, scand) : 1;
}

static int measure_banks(struct run *run)
{
    (void)run;
    return bench_banks();
}
#endif

static const struct benchmark {
    const char *word;
    bool usual; /* run when no word is given */
    int (*measure)(struct run *run);
} benchmarks[] = {
#ifdef SCAND_HAVE_CUDA
    {"kernels", true, measure_kernels}, {"paths", false, measure_paths}, {"variants", false, measure_variants},
    {"reduce", false, measure_reduce},  {"banks", false, measure_banks}, {"devices", false, measure_devices},
#endif
    {"steps", false, measure_steps},    {"cpu", true, measure_cpu},      {"service", true, measure_service},
};
#define BENCHMARK_COUNT (sizeof(benchmarks) / sizeof(benchmarks[0]))

static int measure_usual(struct run *run)
{
    int r = 0;
    for (size_t i = 0; i < BENCHMARK_COUNT && !r; i++)
        if (benchmarks[i].usual)
            r = benchmarks[i].measure(run);
    return r;
}

static int measure(const char *word, struct run *run)
{
    const size_t service_length = strlen("service:");
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        if (strcmp(word, benchmarks[i].word) == 0)
            return benchmarks[i].measure(run);
    if (strncmp(word, "service:", service_length) == 0)
        return measure_service_part(run, word + service_length);
    fprintf(stderr, "scand-bench: no benchmark \"%s\"; there are in this build:", word);
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        fprintf(stderr, " %s", benchmarks[i].word);
    fprintf(stderr, "\n");
    return 64;
}

/* The table to stdout, or to a file beside the text on stdout. */
static int print(const struct bench_table *table, void (*form)(const struct bench_table *table, FILE *to),
                 const char *path)
{
    FILE *file = path ? fopen(path, "w") : stdout;
    if (!file) {
        fprintf(stderr, "scand-bench: %s: %s\n", path, strerror(errno));
        return 73;
    }
    if (path || form != bench_print_text)
        form(table, file);
    if ((path || form == bench_print_text) && table->count > 0)
        bench_print_text(table, stdout);
    if (!path || fclose(file) == 0)
        return 0;
    fprintf(stderr, "scand-bench: %s: %s\n", path, strerror(errno));
    return 73;
}

static int help(void)
{
    printf(
        "usage: scand-bench [BENCHMARK]... [--json[=FILE]|--csv[=FILE]]\n"
        "       scand-bench endurance [OPTION]...            does a daemon grow, or wake for nothing\n"
        "       scand-bench restart [OPTION]...              how soon a daemon is back whose worker is killed\n"
        "       scand-bench hostile [OPTION]... [ATTACK]...  what one user's attacks do to others; --list names them\n"
        "\nBenchmarks of this build, * those that run without words:");
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        printf(" %s%s", benchmarks[i].word, benchmarks[i].usual ? "*" : "");
    printf("\nservice:PART is one part of service. Options of endurance, restart and hostile: "
           "bench_endurance.c, bench_restart.c, hostile/bench_hostile.c.\n");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"json", optional_argument, NULL, 'j'},
                                          {"csv", optional_argument, NULL, 'c'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    static struct run run;
    void (*form)(const struct bench_table *table, FILE *to) = bench_print_text;
    const char *path = NULL;
    int option, r = 0;
    if (own_descriptors_occupy())
        return EX_OSERR;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (argc > 1 && strcmp(argv[1], programs[i].word) == 0)
            return programs[i].main(argc - 1, argv + 1);
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option != 'j' && option != 'c')
            return option == 'h' ? help() : 64;
        form = option == 'j' ? bench_print_json : bench_print_csv;
        path = optarg;
    }
    if (optind == argc)
        r = measure_usual(&run);
    for (int i = optind; i < argc && !r; i++)
        r = measure(argv[i], &run);
    int printed = r == 64 ? 0 : print(&run.table, form, path);
    return r ? r : printed;
}

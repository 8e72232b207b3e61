/* The table of measurements: as text for people, as JSON and CSV for programs. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/bench/bench.h"

static const char *const sameness_words[] = {"", "same", "differ"};

void bench_add(struct bench_table *table, const struct bench_row *row)
{
    assert(table->count < BENCH_ROWS_MAX);
    /* Texts have no commas and quotes, so that nothing needs escaping. */
    assert(!strpbrk(row->name, ",\"") && !strpbrk(row->shape, ",\"") && !strpbrk(row->against, ",\""));
    table->rows[table->count++] = *row;
}

static double rounded_share(const struct bench_row *row)
{
    return (double)row->rounded / (double)row->checked;
}

/* A number, or nothing in its place. */
static void print_cell(FILE *to, const char *format, int width, bool known, double value)
{
    char text[32] = "";
    if (known)
        snprintf(text, sizeof text, format, value);
    fprintf(to, "  %*s", width, text);
}

void bench_print_text(const struct bench_table *table, FILE *to)
{
    fprintf(to, "%-34s %-32s %-5s %9s  %6s  %6s  %9s  %8s  %6s  %-27s  %s\n", "what", "rows x samples", "sums", "ms",
            "share", "target", "worst ulp", "rounded", "again", "kernel", "share of");
    for (const struct bench_row *row = table->rows; row < table->rows + table->count; row++) {
        fprintf(to, "%-34s %-32s %-5s %9.3f", row->name, row->shape, row->accumulator, row->milliseconds);
        print_cell(to, "%.3f", 6, row->share > 0, row->share);
        print_cell(to, "%.2f", 6, row->target > 0, row->target);
        print_cell(to, "%.3g", 9, row->checked > 0, row->worst_ulps);
        print_cell(to, "%.6f", 8, row->checked > 0, rounded_share(row));
        fprintf(to, "  %6s  %-27s  %s\n", sameness_words[row->same], row->kernel, row->against);
    }
}

void bench_print_json(const struct bench_table *table, FILE *to)
{
    fprintf(to, "[\n");
    for (const struct bench_row *row = table->rows; row < table->rows + table->count; row++) {
        fprintf(to, "  {\"name\": \"%s\", \"shape\": \"%s\", \"accumulator\": \"%s\", \"ms\": %.4f", row->name,
                row->shape, row->accumulator, row->milliseconds);
        if (row->share > 0)
            fprintf(to, ", \"share\": %.4f", row->share);
        if (row->target > 0)
            fprintf(to, ", \"target\": %.2f", row->target);
        if (row->checked > 0)
            fprintf(to, ", \"rounded\": %.8f, \"checked\": %llu", rounded_share(row), (unsigned long long)row->checked);
        if (row->checked > 0 && isfinite(row->worst_ulps))
            fprintf(to, ", \"worst_ulps\": %.4g", row->worst_ulps);
        if (row->same != BENCH_NOT_COMPARED)
            fprintf(to, ", \"repeatable\": %s", row->same == BENCH_SAME ? "true" : "false");
        if (row->kernel[0])
            fprintf(to, ", \"kernel\": \"%s\"", row->kernel);
        fprintf(to, ", \"against\": \"%s\"}%s\n", row->against, row + 1 < table->rows + table->count ? "," : "");
    }
    fprintf(to, "]\n");
}

static void print_field(FILE *to, const char *format, bool known, double value)
{
    fputc(',', to);
    if (known)
        fprintf(to, format, value);
}

void bench_print_csv(const struct bench_table *table, FILE *to)
{
    fprintf(to, "name,shape,accumulator,against,ms,share,target,worst_ulps,rounded,checked,repeatable,kernel\n");
    for (const struct bench_row *row = table->rows; row < table->rows + table->count; row++) {
        fprintf(to, "%s,%s,%s,%s,%.4f", row->name, row->shape, row->accumulator, row->against, row->milliseconds);
        print_field(to, "%.4f", row->share > 0, row->share);
        print_field(to, "%.2f", row->target > 0, row->target);
        print_field(to, "%.4g", row->checked > 0, row->worst_ulps);
        print_field(to, "%.8f", row->checked > 0, rounded_share(row));
        print_field(to, "%.0f", row->checked > 0, (double)row->checked);
        fprintf(to, ",%s,%s\n",
                row->same == BENCH_NOT_COMPARED ? ""
                : row->same == BENCH_SAME       ? "yes"
                                                : "no",
                row->kernel);
    }
}

/*
 * The definition of what a scan returns: order 1 (order.h) and the rounding rules, written to be read. Every other
 * implementation returns these bits.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "kernels/scan.h"
#include "kernels/tree.h"

/* One pass over a row. */
struct pass {
    struct arithmetic arithmetic;
    bool backward;
    bool exclusive;
    bool wide;               /* the samples are f64 values that a first pass left */
    enum scand_dtype result; /* what values are rounded to */
    double *row;             /* samples, which the values replace */
    uint64_t length;
};

static uint64_t leaf_length(const struct pass *pass, uint64_t leaf)
{
    uint64_t rest = pass->length - leaf * ORDER_LEAF;
    return rest < ORDER_LEAF ? rest : ORDER_LEAF;
}

/* The j-th sample of a leaf in the order of the pass. */
static double *leaf_at(const struct pass *pass, uint64_t leaf, uint64_t j)
{
    return &pass->row[leaf * ORDER_LEAF + (pass->backward ? leaf_length(pass, leaf) - 1 - j : j)];
}

/* The j-th sample of a leaf as a sum. */
static union sum leaf_sample(const struct pass *pass, uint64_t leaf, uint64_t j)
{
    return sum_first(pass->arithmetic, *leaf_at(pass, leaf, j), pass->wide);
}

static union sum leaf_total(const struct pass *pass, uint64_t leaf)
{
    union sum sum = leaf_sample(pass, leaf, 0);
    for (uint64_t j = 1; j < leaf_length(pass, leaf); j++)
        sum = sum_add_sample(pass->arithmetic, sum, leaf_sample(pass, leaf, j), pass->wide);
    return sum;
}

/* Replaces the samples of a leaf by their values. Nothing precedes the first leaf: its carry is NULL, no identity. */
static void leaf_values(const struct pass *pass, uint64_t leaf, const union sum *carry)
{
    union sum sum = carry ? *carry : leaf_sample(pass, leaf, 0);
    double before = carry ? sum_round(pass->arithmetic, sum, pass->result) : operator_identity(pass->arithmetic.op);
    for (uint64_t j = 0; j < leaf_length(pass, leaf); j++) {
        if (carry || j > 0)
            sum = sum_add_sample(pass->arithmetic, sum, leaf_sample(pass, leaf, j), pass->wide);
        double value = sum_round(pass->arithmetic, sum, pass->result);
        *leaf_at(pass, leaf, j) = pass->exclusive ? before : value;
        before = value;
    }
}

static void pass_run(const struct pass *pass, union sum *leaves)
{
    uint64_t leaf_count = (pass->length + ORDER_LEAF - 1) / ORDER_LEAF;
    for (uint64_t leaf = 0; leaf < leaf_count; leaf++)
        leaves[leaf] = leaf_total(pass, leaf);
    tree_carries(pass->arithmetic, pass->backward, leaves, leaf_count, leaves + leaf_count);
    uint64_t first = pass->backward ? leaf_count - 1 : 0;
    for (uint64_t leaf = 0; leaf < leaf_count; leaf++)
        leaf_values(pass, leaf, leaf == first ? NULL : &leaves[leaf]);
}

static void row_run(const struct scan_rule *rule, double *row, uint64_t length, union sum *leaves)
{
    for (uint32_t i = 0; i < rule->pass_count; i++) {
        bool last = i + 1 == rule->pass_count;
        struct pass pass = {
            .arithmetic = arithmetic_of(rule),
            .backward = rule->passes[i] == SCAND_PASS_BACKWARD,
            .exclusive = rule->kind == SCAND_KIND_EXCLUSIVE,
            .wide = i > 0 && rule->intermediate == SCAND_DTYPE_F64,
            .result = last ? rule->output : rule->intermediate,
            .row = row,
            .length = length,
        };
        pass_run(&pass, leaves);
    }
}

static void row_read(const struct scan_rows *rows, uint64_t index, double *row)
{
    const char *input = (const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, index);
    for (uint64_t i = 0; i < rows->length; i++) {
        float sample;
        memcpy(&sample, input + (int64_t)i * rows->input_stride, sizeof(sample));
        row[i] = sample;
    }
}

/* Every NaN is written as one quiet NaN, because hardware differs in which one it makes. */
static void value_write(char *output, double value, enum scand_dtype type)
{
    uint32_t nan_f32 = UINT32_C(0x7fc00000);
    uint64_t nan_f64 = UINT64_C(0x7ff8000000000000);
    float narrow = (float)value;
    if (type == SCAND_DTYPE_F32)
        memcpy(output, isnan(value) ? (const void *)&nan_f32 : &narrow, sizeof(narrow));
    else
        memcpy(output, isnan(value) ? (const void *)&nan_f64 : &value, sizeof(value));
}

static void row_write(const struct scan_rows *rows, uint64_t index, const double *row)
{
    char *output = (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, index);
    for (uint64_t i = 0; i < rows->length; i++)
        value_write(output + (int64_t)i * rows->output_stride, row[i], rows->rule.output);
}

int scan_reference(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    if (rows->length == 0 || count == 0)
        return 0;
    uint64_t leaf_count = (rows->length + ORDER_LEAF - 1) / ORDER_LEAF;
    double *row = malloc(rows->length * sizeof(*row));
    union sum *leaves = malloc((leaf_count + tree_workspace(leaf_count)) * sizeof(*leaves));
    int error = row && leaves ? 0 : -ENOMEM;
    for (uint64_t r = first; r < first + count && !error; r++) {
        row_read(rows, r, row);
        row_run(&rows->rule, row, rows->length, leaves);
        row_write(rows, r, row);
    }
    free(row);
    free(leaves);
    return error;
}

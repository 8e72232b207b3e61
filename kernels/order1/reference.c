/*
 * The definition of what a scan and a reduction return: order 1 (order.h) and the rounding rules, written to be read.
 * Every other implementation returns these bits.
 */
#include <errno.h>
#include <stdlib.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/order.h"
#include "kernels/order1/reduce.h"
#include "kernels/order1/tree.h"
#include "kernels/scan.h"

/* One pass over a row. */
struct pass {
    struct arithmetic arithmetic;
    bool backward;
    enum scand_kind kind;
    bool wide, wide_values; /* samples and values are f64, not f32 */
    union sample identity;
    union sample *row;           /* samples, which the values replace */
    const union number *factors; /* their coefficients; affine only */
    uint64_t length;
};

static uint64_t leaf_length(const struct pass *pass, uint64_t leaf)
{
    uint64_t rest = pass->length - leaf * ORDER_LEAF;
    return rest < ORDER_LEAF ? rest : ORDER_LEAF;
}

/* Returns the place in the row of a leaf's j-th sample, in the order of the pass. */
static uint64_t leaf_at(const struct pass *pass, uint64_t leaf, uint64_t j)
{
    return leaf * ORDER_LEAF + (pass->backward ? leaf_length(pass, leaf) - 1 - j : j);
}

/* True when only half of sample i counts in every sum. */
static bool is_halved(const struct pass *pass, uint64_t i)
{
    return pass->kind == SCAND_KIND_TRAPEZOID && i == (pass->backward ? pass->length - 1 : 0);
}

/* Returns the j-th sample of a leaf as a sum. */
static union sum leaf_sample(const struct pass *pass, uint64_t leaf, uint64_t j)
{
    uint64_t i = leaf_at(pass, leaf, j);
    union sum sum = sum_first(pass->arithmetic, pass->row[i], pass->wide);
    if (is_halved(pass, i))
        sum = sum_half(pass->arithmetic, sum);
    if (pass->factors)
        sum.map.factor = pass->factors[i];
    return sum;
}

static union sum leaf_total(const struct pass *pass, uint64_t leaf)
{
    union sum sum = leaf_sample(pass, leaf, 0);
    for (uint64_t j = 1; j < leaf_length(pass, leaf); j++)
        sum = sum_add_sample(pass->arithmetic, sum, leaf_sample(pass, leaf, j), pass->wide);
    return sum;
}

/* Replaces the samples of a leaf by their values. Nothing precedes the first leaf: its carry is NULL, not an identity.
 */
static void leaf_values(const struct pass *pass, uint64_t leaf, const union sum *carry)
{
    union sum sum = carry ? *carry : leaf_sample(pass, leaf, 0);
    union sample before = carry ? sum_value(pass->arithmetic, sum, pass->wide_values) : pass->identity;
    const bool half = pass->kind == SCAND_KIND_HALF || pass->kind == SCAND_KIND_TRAPEZOID;
    for (uint64_t j = 0; j < leaf_length(pass, leaf); j++) {
        const uint64_t i = leaf_at(pass, leaf, j);
        union sum sample = leaf_sample(pass, leaf, j), result;
        if (carry || j > 0)
            sum = sum_add_sample(pass->arithmetic, sum, sample, pass->wide);
        result = half ? sum_less_half(pass->arithmetic, sum, sample, pass->wide) : sum;
        union sample value = sum_value(pass->arithmetic, result, pass->wide_values);
        pass->row[i] = pass->kind == SCAND_KIND_EXCLUSIVE ? before : is_halved(pass, i) ? pass->identity : value;
        before = value;
    }
}

/* Returns the number of leaves. */
static uint64_t pass_totals(const struct pass *pass, union sum *leaves)
{
    uint64_t leaf_count = (pass->length + ORDER_LEAF - 1) / ORDER_LEAF;
    for (uint64_t leaf = 0; leaf < leaf_count; leaf++)
        leaves[leaf] = leaf_total(pass, leaf);
    return leaf_count;
}

static void pass_run(const struct pass *pass, union sum *leaves)
{
    uint64_t leaf_count = pass_totals(pass, leaves);
    tree_carries(pass->arithmetic, pass->backward, leaves, leaf_count, leaves + leaf_count);
    uint64_t first = pass->backward ? leaf_count - 1 : 0;
    for (uint64_t leaf = 0; leaf < leaf_count; leaf++)
        leaf_values(pass, leaf, leaf == first ? NULL : &leaves[leaf]);
}

static void row_demean(const struct scan_rule *rule, union sample *row, uint64_t length, union sum *leaves)
{
    bool wide = codec_class(rule->input) == SCAND_CLASS_F64;
    struct pass pass = {.arithmetic = arithmetic_of_mean, .wide = wide, .row = row, .length = length};
    uint64_t leaf_count = pass_totals(&pass, leaves);
    double mean = tree_total(pass.arithmetic, leaves, leaf_count).f64 / (double)length;
    for (uint64_t i = 0; i < length; i++)
        row[i].real = wide ? row[i].real - mean : (double)(float)(row[i].real - mean);
}

static void row_run(const struct scan_rule *rule, union sample *row, const union number *factors, uint64_t length,
                    union sum *leaves)
{
    bool wide = codec_class(rule->input) == SCAND_CLASS_F64;
    for (uint32_t i = 0; i < rule->pass_count; i++) {
        bool last = i + 1 == rule->pass_count;
        struct pass pass = {
            .arithmetic = arithmetic_of(rule),
            .backward = rule->passes[i] == SCAND_PASS_BACKWARD,
            .kind = rule->kind,
            .wide = wide,
            .wide_values = codec_class(last ? rule->output : rule->intermediate) == SCAND_CLASS_F64,
            .identity = operator_identity(rule),
            .row = row,
            .factors = factors,
            .length = length,
        };
        pass_run(&pass, leaves);
        wide = pass.wide_values;
    }
}

/* Adds the squares of a leaf's samples, each multiplied by `factor` before. */
static double leaf_squares(const struct pass *pass, uint64_t leaf, double factor)
{
    double sum = 0;
    for (uint64_t j = 0; j < leaf_length(pass, leaf); j++) {
        double sample = pass->row[leaf_at(pass, leaf, j)].real * factor;
        sum += sample * sample;
    }
    return sum;
}

/* Returns the number of leaves. */
static uint64_t pass_squares(const struct pass *pass, union sum *leaves)
{
    uint64_t leaf_count = (pass->length + ORDER_LEAF - 1) / ORDER_LEAF;
    for (uint64_t leaf = 0; leaf < leaf_count; leaf++) {
        int range = squares_range(leaf_squares(pass, leaf, 1.0));
        leaves[leaf].squares = (struct squares){leaf_squares(pass, leaf, squares_factor(range)), range};
    }
    return leaf_count;
}

/* Returns the total of a row, from which its reduction is made. */
static union sum row_total(const struct scan_rule *rule, union sample *row, uint64_t length, union sum *leaves)
{
    struct pass pass = {
        .arithmetic = arithmetic_of(rule),
        .wide = codec_class(rule->input) == SCAND_CLASS_F64,
        .row = row,
        .length = length,
    };
    uint64_t leaf_count = reduce_squares(rule->reduction) ? pass_squares(&pass, leaves) : pass_totals(&pass, leaves);
    return tree_total(pass.arithmetic, leaves, leaf_count);
}

static union sample sample_read(enum scand_dtype dtype, const char *from)
{
    union sample sample;
    if (codec_is_integer(dtype))
        sample.whole = codec_decode_integer(dtype, from);
    else if (codec_class(dtype) == SCAND_CLASS_F64)
        sample.real = codec_decode_f64(dtype, from);
    else
        sample.real = (double)codec_decode_f32(dtype, from);
    return sample;
}

static void row_read(const struct scan_rows *rows, uint64_t index, union sample *row)
{
    const char *input = (const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, index);
    for (uint64_t i = 0; i < rows->length; i++, input += rows->input_stride)
        row[i] = sample_read(rows->rule.input, input);
}

/* Fills in the coefficients of a row's samples, in the accumulator. */
static void row_factors(const struct scan_rows *rows, uint64_t index, union number *factors)
{
    enum scand_accumulator accumulator = arithmetic_of(&rows->rule).accumulator;
    enum scand_dtype dtype = rows->rule.coefficients;
    bool wide = codec_class(dtype) == SCAND_CLASS_F64;
    int64_t offset = scan_row_offset(rows, rows->coefficient_outer_strides, index);
    for (uint64_t i = 0; i < rows->length; i++, offset += rows->coefficient_stride)
        factors[i] = rows->coefficients
                         ? number_of(accumulator, sample_read(dtype, (const char *)rows->coefficients + offset), wide)
                         : coefficient_number(&rows->rule, accumulator);
}

static void row_write(const struct scan_rows *rows, uint64_t index, const union sample *row)
{
    char *output = (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, index);
    enum scand_dtype dtype = rows->rule.output;
    for (uint64_t i = 0; i < rows->length; i++, output += rows->output_stride) {
        if (codec_is_integer(dtype))
            codec_encode_integer(dtype, row[i].whole, output);
        else if (codec_class(dtype) == SCAND_CLASS_F64)
            codec_encode_f64(dtype, row[i].real, output);
        else
            codec_encode_f32(dtype, (float)row[i].real, output);
    }
}

static int ragged_reference(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    int error = 0;
    for (uint64_t r = first; r < first + count && !error; r++) {
        struct scan_rows row = scan_rows_joined(rows, r, 1);
        error = scan_reference(&row, 0, 1);
    }
    return error;
}

/* Stores the results of rows without samples, which only reductions have. */
static int empty_reference(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    for (uint64_t r = first; r < first + count && rows->rule.operation == SCAND_OPERATION_REDUCE; r++)
        reduce_store(rows, r, NULL);
    return 0;
}

static void row_compute(const struct scan_rows *rows, uint64_t index, union sample *row, union number *factors,
                        union sum *leaves)
{
    row_read(rows, index, row);
    if (rows->rule.operation == SCAND_OPERATION_REDUCE) {
        union sum total = row_total(&rows->rule, row, rows->length, leaves);
        reduce_store(rows, index, &total);
        return;
    }
    if (factors)
        row_factors(rows, index, factors);
    if (rows->rule.demean)
        row_demean(&rows->rule, row, rows->length, leaves);
    row_run(&rows->rule, row, factors, rows->length, leaves);
    row_write(rows, index, row);
}

int scan_reference(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    if (rows->offsets)
        return ragged_reference(rows, first, count);
    if (rows->length == 0 || count == 0)
        return empty_reference(rows, first, count);
    bool affine = rows->rule.op == SCAND_OPERATOR_AFFINE;
    uint64_t leaf_count = (rows->length + ORDER_LEAF - 1) / ORDER_LEAF;
    union sample *row = malloc(rows->length * sizeof(*row));
    union number *factors = affine ? malloc(rows->length * sizeof(*factors)) : NULL;
    union sum *leaves = malloc((leaf_count + tree_workspace(leaf_count)) * sizeof(*leaves));
    int error = row && leaves && (factors || !affine) ? 0 : -ENOMEM;
    for (uint64_t r = first; r < first + count && !error; r++)
        row_compute(rows, r, row, factors, leaves);
    free(row);
    free(factors);
    free(leaves);
    return error;
}

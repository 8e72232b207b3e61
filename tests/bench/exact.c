#include "tests/bench/exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/codec.h"

#define UNIT_BITS     62                  /* a whole number is one of 2^-62 */
#define PIECE_SAMPLES (UINT64_C(1) << 20) /* of a row at a time */
#define LONG_STEP     17                  /* of rows longer than that every 17th output is compared */

__extension__ typedef __int128 whole;
__extension__ typedef unsigned __int128 magnitude;

/* 2^k of normal f64 numbers. */
static double power_of_two(int k)
{
    return codec_f64_of_bits((uint64_t)(k + 1023) << 52);
}

/* The exponent that frexp would give, by its bits; of 0 that of a unit. */
static int exponent_of(double x)
{
    return x == 0 ? 1 - UNIT_BITS : (int)(codec_bits_f64(x) >> 52 & 0x7ff) - 1022;
}

/* False for what is no whole number of units, or above 1. */
static bool whole_of_sample(double x, whole *out)
{
    bool inside = fabs(x) <= 1;
    int64_t units = inside ? (int64_t)(x * power_of_two(UNIT_BITS)) : 0;
    *out = units;
    return inside && (double)units == x * power_of_two(UNIT_BITS);
}

/* The same for any size that there is room for. */
static bool whole_of(double x, whole *out)
{
    uint64_t bits = codec_bits_f64(x), fraction = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int shift = exponent_of(x) - 53 + UNIT_BITS;
    *out = 0;
    if (x == 0)
        return true;
    if (shift > 126 - 53 || shift < -52 || (shift < 0 && fraction & ((UINT64_C(1) << -shift) - 1)))
        return false;
    whole value = shift < 0 ? (whole)(fraction >> -shift) : (whole)fraction << shift;
    *out = x < 0 ? -value : value;
    return true;
}

/* Its 63 leading bits, the last of them set if any that follow are, and the power of two that they are to be multiplied
 * with: rounded to fewer than 62 bits they give what all bits would give. */
static int64_t leading_bits(whole value, int *power)
{
    magnitude m = value < 0 ? -(magnitude)value : (magnitude)value;
    uint64_t high = (uint64_t)(m >> 63);
    int drop = high ? 64 - __builtin_clzll(high) : 0;
    bool rest = (m & (((magnitude)1 << drop) - 1)) != 0;
    int64_t bits = (int64_t)((uint64_t)(m >> drop) | rest);
    *power = drop - UNIT_BITS;
    return value < 0 ? -bits : bits;
}

/* Sums are at least a unit or 0: no denormals. */
static double rounded_to(enum scand_dtype dtype, whole value)
{
    int power;
    int64_t bits = leading_bits(value, &power);
    if (codec_class(dtype) == SCAND_CLASS_F64)
        return (double)bits * power_of_two(power);
    double sum = (double)(float)bits * power_of_two(power);
    unsigned char encoded[sizeof(float)];
    if (dtype == SCAND_DTYPE_F32)
        return sum;
    codec_encode_f32(dtype, (float)sum, encoded);
    return (double)codec_decode_f32(dtype, encoded);
}

/* The power of two that is the unit in the last place of an output about as large. */
static int last_place(enum scand_dtype dtype, double x)
{
    int exponent = exponent_of(x);
    switch (dtype) {
    case SCAND_DTYPE_F64:
        return exponent - 53;
    case SCAND_DTYPE_F16:
        return exponent - 11 > -24 ? exponent - 11 : -24;
    case SCAND_DTYPE_BF16:
        return exponent - 8;
    case SCAND_DTYPE_IBM32: /* its exponent is one of 16 */
        return (exponent + 4 * UNIT_BITS + 3) / 4 * 4 - 4 * UNIT_BITS - 24;
    default:
        return exponent - 24;
    }
}

static void output_compare(enum scand_dtype dtype, whole exact, double got, struct exact_result *result)
{
    double expected = rounded_to(dtype, exact), error_ulps = INFINITY;
    whole value;
    int power;
    result->checked++;
    result->rounded += got == expected;
    if (got == expected && isinf(got))
        return;
    if (whole_of(got, &value)) {
        int64_t error = leading_bits(value - exact, &power);
        error_ulps = fabs((double)error) * power_of_two(power - last_place(dtype, expected));
    }
    if (!(error_ulps <= result->worst_ulps))
        result->worst_ulps = error_ulps;
}

/* One row, in pieces of which the last may be shorter. */
struct row {
    const struct scan_rule *rule;
    uint64_t number, length, pieces;
    struct exact_source *input, *output;
    whole *carries; /* into the pieces in the first pass */
};

struct piece {
    uint64_t first, count;
};

static struct piece piece_at(const struct row *row, uint64_t index)
{
    struct piece piece = {index * PIECE_SAMPLES, PIECE_SAMPLES};
    if (piece.count > row->length - piece.first)
        piece.count = row->length - piece.first;
    return piece;
}

/* The index of what comes i-th of n in the order of a pass. */
static uint64_t in_order(enum scand_pass pass, uint64_t i, uint64_t n)
{
    return pass == SCAND_PASS_BACKWARD ? n - 1 - i : i;
}

static const double *piece_read(const struct row *row, struct exact_source *source, struct piece piece)
{
    return source->read(source, row->number, piece.first, piece.count);
}

/* Sums of one pass, one by one. Returns false for a sample that is not a whole number. */
static bool piece_sum(const double *samples, uint64_t count, enum scand_pass pass, whole sum, whole *sums)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = in_order(pass, i, count);
        whole sample;
        if (!whole_of_sample(samples[at], &sample))
            return false;
        sums[at] = sum += sample;
    }
    return true;
}

/* The sums of the first pass before each piece. */
static int row_carries(const struct row *row, whole *sums)
{
    enum scand_pass pass = row->rule->passes[0];
    whole carry = 0;
    for (uint64_t i = 0; i < row->pieces; i++) {
        uint64_t index = in_order(pass, i, row->pieces);
        struct piece piece = piece_at(row, index);
        const double *samples = piece_read(row, row->input, piece);
        row->carries[index] = carry;
        if (!samples)
            return -EIO;
        if (!piece_sum(samples, piece.count, pass, carry, sums))
            return -EDOM;
        carry = sums[in_order(pass, piece.count - 1, piece.count)];
    }
    return 0;
}

/* The second pass over what the first leaves, in place. */
static whole piece_second(const struct scan_rule *rule, uint64_t count, whole carry, whole *sums)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = in_order(rule->passes[1], i, count);
        whole between;
        whole_of(rounded_to(rule->intermediate, sums[at]), &between);
        sums[at] = carry += between;
    }
    return carry;
}

static int row_compare(const struct row *row, whole *sums, struct exact_result *result)
{
    const struct scan_rule *rule = row->rule;
    bool twice = rule->pass_count > 1;
    whole carry = 0;
    for (uint64_t i = 0; i < row->pieces; i++) {
        uint64_t index = in_order(rule->passes[rule->pass_count - 1], i, row->pieces);
        struct piece piece = piece_at(row, index);
        const double *samples = piece_read(row, row->input, piece), *outputs = piece_read(row, row->output, piece);
        if (!samples || !outputs)
            return -EIO;
        if (!piece_sum(samples, piece.count, rule->passes[0], twice ? row->carries[index] : carry, sums))
            return -EDOM;
        carry = twice ? piece_second(rule, piece.count, carry, sums)
                      : sums[in_order(rule->passes[0], piece.count - 1, piece.count)];
        for (uint64_t j = 0; j<piece.count; j += row->pieces> 1 ? LONG_STEP : 1)
            output_compare(rule->output, sums[j], outputs[j], result);
    }
    return 0;
}

int exact_compare(const struct scan_rule *rule, uint64_t row_count, uint64_t length, struct exact_source *input,
                  struct exact_source *output, struct exact_result *result)
{
    uint64_t pieces = (length + PIECE_SAMPLES - 1) / PIECE_SAMPLES;
    uint64_t room = length < PIECE_SAMPLES ? length : PIECE_SAMPLES;
    whole *sums = malloc((room + pieces) * sizeof(*sums));
    int error = sums || length == 0 ? 0 : -ENOMEM;
    for (uint64_t r = 0; r < row_count && !error; r++) {
        struct row row = {rule, r, length, pieces, input, output, sums + room};
        if (rule->pass_count > 1)
            error = row_carries(&row, sums);
        if (!error)
            error = row_compare(&row, sums, result);
    }
    free(sums);
    return error;
}

int exact_compare_totals(uint64_t row_count, uint64_t length, struct exact_source *input, struct exact_source *output,
                         struct exact_result *result)
{
    for (uint64_t r = 0; r < row_count; r++) {
        const double *total = output->read(output, r, 0, 1);
        whole sum = 0, sample;
        if (!total)
            return -EIO;
        for (uint64_t first = 0; first < length; first += PIECE_SAMPLES) {
            uint64_t count = length - first < PIECE_SAMPLES ? length - first : PIECE_SAMPLES;
            const double *samples = input->read(input, r, first, count);
            for (uint64_t i = 0; samples && i < count; i++, sum += sample)
                if (!whole_of_sample(samples[i], &sample))
                    return -EDOM;
            if (!samples)
                return -EIO;
        }
        output_compare(SCAND_DTYPE_F64, sum, *total, result);
    }
    return 0;
}

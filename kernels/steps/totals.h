/*
 * Totals of rows in order 1 (order.h), forward and in f64, of whatever an operation makes of their samples.
 */
#ifndef KERNELS_STEPS_TOTALS_H
#define KERNELS_STEPS_TOTALS_H

#include <string.h>

#include "kernels/order1/order.h"
#include "kernels/steps/step.h"

/* The least group of order 1 that holds a row, in samples: a tile or more. */
CODEC_INLINE uint64_t totals_group(uint64_t length)
{
    uint64_t size = ORDER_TILE;
    while (size < length)
        size *= ORDER_FAN;
    return size;
}

#ifndef __cplusplus

/*
 * The definition.
 */

typedef double totals_term(const void *row, uint64_t i);

/* The total of terms first <= i < first + count, a group of order 1 that has `size` terms if it is full: of a leaf the
 * sum, of others the last prefix of their members. There is at least one term. */
static inline double totals_define(totals_term *term, const void *row, uint64_t first, uint64_t count, uint64_t size)
{
    double members[ORDER_FAN];
    uint64_t n = 0;
    if (size == ORDER_LEAF) {
        double sum = term(row, first);
        for (uint64_t i = 1; i < count; i++)
            sum = sum + term(row, first + i);
        return sum;
    }
    for (const uint64_t part = size / ORDER_FAN; n * part < count; n++)
        members[n] =
            totals_define(term, row, first + n * part, count - n * part < part ? count - n * part : part, part);
    for (uint64_t distance = 1; distance < n; distance *= 2)
        for (uint64_t j = n - 1; j >= distance; j--)
            members[j] = members[j - distance] + members[j];
    return members[n - 1];
}

/*
 * Sums of several leaves at once, for processors: their additions do not wait for each other.
 */

#define TOTALS_LEAVES 8

/* Terms first <= i < first + count of a row, of one tile. */
typedef void totals_load(const void *row, uint64_t first, uint64_t count, double terms[ORDER_TILE]);

/* The last prefix of a group of the Kogge-Stone network: neighbours are joined in pairs from the last one on, and these
 * again, until one is left. Of an odd number the first is left alone. */
static inline double totals_join(double *members, uint64_t count)
{
    for (; count > 1; count = (count + 1) / 2)
        for (uint64_t i = 0, odd = count % 2; i < count / 2; i++)
            members[odd + i] = members[odd + 2 * i] + members[odd + 2 * i + 1];
    return members[0];
}

static inline double totals_tile(const double terms[ORDER_TILE], uint64_t count)
{
    double leaves[ORDER_FAN];
    uint64_t leaf = 0;
    for (; (leaf + TOTALS_LEAVES) * ORDER_LEAF <= count; leaf += TOTALS_LEAVES) {
        double sums[TOTALS_LEAVES];
        for (int k = 0; k < TOTALS_LEAVES; k++)
            sums[k] = terms[(leaf + k) * ORDER_LEAF];
        for (int j = 1; j < ORDER_LEAF; j++)
            for (int k = 0; k < TOTALS_LEAVES; k++)
                sums[k] = sums[k] + terms[(leaf + k) * ORDER_LEAF + j];
        memcpy(leaves + leaf, sums, sizeof sums);
    }
    for (; leaf * ORDER_LEAF < count; leaf++) {
        double sum = terms[leaf * ORDER_LEAF];
        for (uint64_t i = leaf * ORDER_LEAF + 1; i < count && i < (leaf + 1) * ORDER_LEAF; i++)
            sum = sum + terms[i];
        leaves[leaf] = sum;
    }
    return totals_join(leaves, leaf);
}

/* The total of a tile or a larger group, as totals_define defines it. */
static inline double totals_row(totals_load *load, const void *row, uint64_t first, uint64_t count, uint64_t size)
{
    double members[ORDER_FAN];
    uint64_t n = 0;
    if (size == ORDER_TILE) {
        _Alignas(64) double terms[ORDER_TILE];
        load(row, first, count, terms);
        return totals_tile(terms, count);
    }
    for (const uint64_t part = size / ORDER_FAN; n * part < count; n++)
        members[n] = totals_row(load, row, first + n * part, count - n * part < part ? count - n * part : part, part);
    return totals_join(members, n);
}

#endif

#endif

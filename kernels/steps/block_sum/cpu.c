#include "block_sum.h"

step_run STEP_CPU(block_sum);

/* Blocks whose sums grow side by side: additions of one block wait for each other, those of several do not. */
#define SIDE_BY_SIDE 16

/* Samples that lie one after the other, of one dtype, which is a constant where these are inlined, as `factor` may be.
 */

static inline __attribute__((always_inline)) void sums_of(enum scand_dtype dtype, const char *from, uint64_t factor,
                                                          double sums[SIDE_BY_SIDE])
{
    const uint64_t size = codec_bytes(dtype);
    for (uint64_t j = 0; j < SIDE_BY_SIDE; j++)
        sums[j] = step_get_f64(dtype, from + j * factor * size);
    for (uint64_t k = 1; k < factor; k++)
        for (uint64_t j = 0; j < SIDE_BY_SIDE; j++)
            sums[j] += step_get_f64(dtype, from + (j * factor + k) * size);
}

/* Returns how many blocks it has taken. */
static inline __attribute__((always_inline)) uint64_t blocks_of(enum scand_dtype dtype, const char *from,
                                                                uint64_t factor, char *to,
                                                                const struct step_operand *output, uint64_t count)
{
    uint64_t j = 0;
    for (; j + SIDE_BY_SIDE <= count; j += SIDE_BY_SIDE) {
        double sums[SIDE_BY_SIDE];
        sums_of(dtype, from + j * factor * codec_bytes(dtype), factor, sums);
        for (uint64_t k = 0; k < SIDE_BY_SIDE; k++)
            if (output->dtype == dtype)
                step_put_f64(dtype, sums[k], to + (int64_t)(j + k) * output->stride);
            else
                step_put_f64(output->dtype, sums[k], to + (int64_t)(j + k) * output->stride);
    }
    return j;
}

static uint64_t blocks(enum scand_dtype dtype, const char *from, uint64_t factor, char *to,
                       const struct step_operand *output, uint64_t count)
{
    if (dtype == SCAND_DTYPE_F32 && factor == 2)
        return blocks_of(SCAND_DTYPE_F32, from, 2, to, output, count);
    if (dtype == SCAND_DTYPE_F32 && factor == 4)
        return blocks_of(SCAND_DTYPE_F32, from, 4, to, output, count);
    if (dtype == SCAND_DTYPE_F32)
        return blocks_of(SCAND_DTYPE_F32, from, factor, to, output, count);
    if (dtype == SCAND_DTYPE_F64)
        return blocks_of(SCAND_DTYPE_F64, from, factor, to, output, count);
    return 0;
}

void STEP_CPU(block_sum)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const uint64_t factor = ((const struct block_sum *)params)->factor;
    const struct step_operand *input = &rows->input, *output = &rows->output;
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        const char *from = step_row(rows, input, row);
        char *to = step_row(rows, output, row);
        uint64_t j = tile->begin;
        if (input->stride == (int64_t)codec_bytes(input->dtype) && j < end)
            j += blocks(input->dtype, from + (int64_t)(j * factor) * input->stride, factor,
                        to + (int64_t)j * output->stride, output, end - j);
        for (; j < end; j++)
            block_sum_element(rows, params, from, to, j);
    }
}

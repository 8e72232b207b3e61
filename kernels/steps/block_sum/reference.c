#include "block_sum.h"

static void block_sum_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                                void *scratch)
{
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const char *from = step_row(rows, &rows->input, row);
        char *to = step_row(rows, &rows->output, row);
        for (uint64_t j = tile->begin; j < step_end(rows, tile, row); j++)
            block_sum_element(rows, params, from, to, j);
    }
}

/* Some 16,384 samples of the input, and at least one block. */
static struct step_tiling block_sum_tiling(const struct step_rows *rows, const void *params)
{
    const struct block_sum *block_sum = params;
    const uint64_t samples = UINT64_C(1) << 14;
    return tiling_along(rows, block_sum->factor < samples ? samples / block_sum->factor : 1);
}

STEP_DECLARE(block_sum);
const struct step_kernel block_sum_kernel = {.name = "block_sum",
                                             .in_place = false,
                                             .tiling = block_sum_tiling,
                                             .least_elements = 1024,
                                             .reference = block_sum_reference,
                                             .cpu = STEP_BUILDS(block_sum)};

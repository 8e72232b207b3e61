#include "upsample.h"

static void upsample_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                               void *scratch)
{
    const struct upsample *upsample = params;
    const struct step_operand *input = &rows->input, *output = &rows->output;
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const char *from = step_row(rows, input, row);
        char *to = step_row(rows, output, row);
        for (uint64_t i = tile->begin; i < step_end(rows, tile, row); i++)
            step_copy(input->dtype, from + (int64_t)(i / upsample->factor) * input->stride, output->dtype,
                      to + (int64_t)i * output->stride);
    }
}

static struct step_tiling upsample_tiling(const struct step_rows *rows, const void *params)
{
    (void)params;
    return tiling_along(rows, UINT64_C(1) << 14);
}

STEP_DECLARE(upsample);
const struct step_kernel upsample_kernel = {.name = "upsample",
                                            .in_place = false,
                                            .tiling = upsample_tiling,
                                            .least_elements = 2048,
                                            .reference = upsample_reference,
                                            .cpu = STEP_BUILDS(upsample)};

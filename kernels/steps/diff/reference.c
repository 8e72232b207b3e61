#include "diff.h"

static void diff_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                           void *scratch)
{
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const struct diff_line line = diff_line_of(rows, row);
        for (uint64_t i = tile->begin; i < step_end(rows, tile, row); i++)
            diff_element(params, &line, i);
    }
}

STEP_DECLARE(diff);
/* Not in place: a tile reads samples of the tile before it. */
const struct step_kernel diff_kernel = {.name = "diff",
                                        .in_place = false,
                                        .tiling = elements_tiling,
                                        .least_elements = 2048,
                                        .reference = diff_reference,
                                        .cpu = STEP_BUILDS(diff)};

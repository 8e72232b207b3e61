#include "map.h"

static void map_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const struct map_line line = map_line_of(rows, row);
        for (uint64_t i = tile->begin; i < step_end(rows, tile, row); i++)
            map_element(params, &line, i);
    }
}

STEP_DECLARE(map);
const struct step_kernel map_kernel = {.name = "map",
                                       .in_place = true,
                                       .tiling = elements_tiling,
                                       .least_elements = 2048,
                                       .reference = map_reference,
                                       .cpu = STEP_BUILDS(map)};

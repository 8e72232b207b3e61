#include "tests/kernels/offsets.h"

#include <math.h>

#include "tests/check.h"
#include "tests/kernels/case.h"

static uint64_t ragged_length(enum ragged_kind kind, uint64_t *random)
{
    static const uint64_t borders[] = {0, 16, 32, 512, 1024, 4096, 8192, 16384};
    uint64_t dice = random_next(random);
    double uniform = (double)(dice >> 11) * 0x1p-53;
    switch (kind) {
    case RAGGED_PARETO:
        return (uint64_t)(33 / cbrt((1 - uniform) * (1 - uniform)));
    case RAGGED_TINY:
        return dice % 21;
    case RAGGED_BORDERS:
        return borders[dice % COUNT(borders)] + (dice % COUNT(borders) ? dice / 8 % 5 - 2 : 0);
    case RAGGED_MIXED:
        return dice % 16 ? dice / 16 % (dice / 64 % 2 ? 1200 : 60) : 16000 + dice / 16 % 50000;
    case RAGGED_LEVELS:
        return dice % 40 ? dice / 40 % 600 : 32 * 16384 - 2 + dice / 40 % 5;
    default:
        return 0;
    }
}

uint64_t ragged_offsets(enum ragged_kind kind, uint64_t *random, uint64_t offsets[RAGGED_ROWS_MAX + 1])
{
    static const uint64_t each[] = {300, 0, 77, 30, 1700, 511, 40000, 3000, 600, 7001, 15, 16384, 20000};
    uint64_t rows = kind == RAGGED_ONE                             ? 1
                    : kind == RAGGED_EACH                          ? COUNT(each)
                    : kind == RAGGED_PARETO || kind == RAGGED_TINY ? RAGGED_ROWS_MAX
                                                                   : 70;
    offsets[0] = random_next(random) % 7;
    for (uint64_t r = 0; r < rows; r++)
        offsets[r + 1] = offsets[r] + (kind == RAGGED_ONE    ? 33 * 16384 + 77
                                       : kind == RAGGED_EACH ? each[r]
                                                             : ragged_length(kind, random));
    return rows;
}

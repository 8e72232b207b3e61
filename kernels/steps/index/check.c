#include "index.h"

/* The first element that is out of range, or the length. The dtype is a constant where this is inlined. */
CODEC_INLINE uint64_t first_fault(enum scand_dtype dtype, const char *row, const struct step_operand *index,
                                  struct index_range range)
{
    uint64_t i = 0;
    while (i < index->length && index_has(range, codec_decode_integer(dtype, row + (int64_t)i * index->stride)))
        i++;
    return i;
}

struct index_fault index_check(const struct step_rows *rows, uint64_t first, uint64_t count, struct index_range range)
{
    const struct step_operand *index = &rows->input;
    for (uint64_t row = first; row < first + count; row++) {
        const char *at = step_row(rows, index, row);
        const uint64_t i = index->dtype == SCAND_DTYPE_I32 ? first_fault(SCAND_DTYPE_I32, at, index, range)
                                                           : first_fault(index->dtype, at, index, range);
        if (i < index->length)
            return (struct index_fault){true, row, i,
                                        (int64_t)codec_decode_integer(index->dtype, at + (int64_t)i * index->stride)};
    }
    return (struct index_fault){.found = false};
}

#include "upsample.h"

step_run STEP_CPU(upsample);

/* An element is converted once and copied; `size` is a constant where this is inlined. */
static inline void copies(const char *word, char *to, int64_t stride, uint64_t count, size_t size)
{
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + (int64_t)i * stride, word, size);
}

static void copies_of(const char *word, char *to, const struct step_operand *output, uint64_t count)
{
    const uint32_t size = codec_bytes(output->dtype);
    if (size == 4)
        copies(word, to, output->stride, count, 4);
    else if (size == 8)
        copies(word, to, output->stride, count, 8);
    else
        copies(word, to, output->stride, count, 2);
}

void STEP_CPU(upsample)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct upsample *upsample = params;
    const struct step_operand *input = &rows->input, *output = &rows->output;
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        const char *from = step_row(rows, input, row);
        char *to = step_row(rows, output, row), word[8];
        for (uint64_t i = tile->begin, next; i < end; i = next) {
            const uint64_t j = i / upsample->factor;
            next = (j + 1) * upsample->factor < end ? (j + 1) * upsample->factor : end;
            step_copy(input->dtype, from + (int64_t)j * input->stride, output->dtype, word);
            copies_of(word, to + (int64_t)i * output->stride, output, next - i);
        }
    }
}

#include "kernels/steps/lines.h"
#include "upsample.h"

step_run STEP_CPU(upsample);

#define VECTOR_BYTES 32

/* A thread's elements, as they are computed with, and as the output has them. Not on the stack: compilers that check
 * copies to arrays whose size they know would check each element. */
struct group {
    union {
        float f32[LINE_GROUP];
        double f64[LINE_GROUP];
        uint64_t integers[LINE_GROUP];
    } values;
    char words[LINE_GROUP * sizeof(double)];
};
_Static_assert(sizeof(struct group) <= STEP_SCRATCH_BYTES, "it fits into a tile's memory");

/* Converts at most LINE_GROUP elements, one after another. */
static void convert(const struct step_operand *input, const char *from, uint64_t count, enum scand_dtype dtype,
                    struct group *group)
{
    const uint32_t size = codec_bytes(dtype);
    if (codec_is_integer(input->dtype)) {
        line_load_integers(input->dtype, from, input->stride, count, group->values.integers);
        line_store_integers(dtype, group->values.integers, count, group->words, size);
    } else if (codec_class(input->dtype) == SCAND_CLASS_F64) {
        const double *x = line_see_f64(input->dtype, from, input->stride, count, group->values.f64);
        line_store_f64(dtype, x, count, group->words, size);
    } else {
        const float *x = line_see_f32(input->dtype, from, input->stride, count, group->values.f32);
        line_store_f32(dtype, x, count, group->words, size);
    }
}

/* Each of `count` words `times` times. */
static inline void repeat(const char *restrict words, uint64_t count, uint64_t times, size_t size, char *restrict to,
                          int64_t stride)
{
    for (uint64_t j = 0; j < count; j++)
        for (uint64_t k = 0; k < times; k++)
            memcpy(to + (int64_t)(j * times + k) * stride, words + j * size, size);
}

/* Repeats words of one type. Words that lie close together are stored as a vector each, whose end the next word's
 * vectors overwrite. */
#define REPEAT_WORDS(NAME, WORD)                                                                                    \
    static void NAME(const char *restrict words, uint64_t count, uint64_t times, char *restrict to, int64_t stride) \
    {                                                                                                               \
        typedef WORD vector __attribute__((vector_size(VECTOR_BYTES)));                                             \
        const uint64_t bytes = times * sizeof(WORD), beyond = VECTOR_BYTES / bytes + 1;                             \
        const uint64_t whole = stride == (int64_t)sizeof(WORD) && count > beyond ? count - beyond : 0;              \
        for (uint64_t j = 0; j < whole; j++) {                                                                      \
            WORD word;                                                                                              \
            memcpy(&word, words + j * sizeof word, sizeof word);                                                    \
            const vector copies = word - (vector){0};                                                               \
            for (uint64_t k = 0; k < bytes; k += sizeof copies)                                                     \
                memcpy(to + j * bytes + k, &copies, sizeof copies);                                                 \
        }                                                                                                           \
        repeat(words + whole * sizeof(WORD), count - whole, times, sizeof(WORD), to + whole * bytes, stride);       \
    }
REPEAT_WORDS(repeat_8, uint8_t)
REPEAT_WORDS(repeat_16, uint16_t)
REPEAT_WORDS(repeat_32, uint32_t)
REPEAT_WORDS(repeat_64, uint64_t)

static void write_words(const char *words, uint64_t count, uint64_t times, const struct step_operand *output, char *to)
{
    const uint32_t size = codec_bytes(output->dtype);
    (size == 1   ? repeat_8
     : size == 2 ? repeat_16
     : size == 4 ? repeat_32
                 : repeat_64)(words, count, times, to, output->stride);
}

/* Elements first <= j < last, each `times` times. */
static void copies(const struct step_rows *rows, const char *from, uint64_t first, uint64_t last, uint64_t times,
                   struct group *group, char *to)
{
    for (uint64_t j = first, next; j < last; j = next) {
        next = last - j < LINE_GROUP ? last : j + LINE_GROUP;
        convert(&rows->input, from + (int64_t)j * rows->input.stride, next - j, rows->output.dtype, group);
        write_words(group->words, next - j, times, &rows->output,
                    to + (int64_t)((j - first) * times) * rows->output.stride);
    }
}

/* Outputs begin <= i < end of a row: of the first and the last element maybe not all. */
static void row_copies(const struct step_rows *rows, uint64_t factor, const char *from, uint64_t begin, uint64_t end,
                       struct group *group, char *to)
{
    const int64_t stride = rows->output.stride;
    for (uint64_t i = begin, next; i < end; i = next) {
        const uint64_t j = i / factor, last = end / factor;
        if (i % factor == 0 && last > j) {
            next = last * factor;
            copies(rows, from, j, last, factor, group, to + (int64_t)i * stride);
        } else {
            next = (j + 1) * factor < end ? (j + 1) * factor : end;
            copies(rows, from, j, j + 1, next - i, group, to + (int64_t)i * stride);
        }
    }
}

void STEP_CPU(upsample)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct upsample *upsample = params;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++)
        row_copies(rows, upsample->factor, step_row(rows, &rows->input, row), tile->begin, step_end(rows, tile, row),
                   scratch, step_row(rows, &rows->output, row));
}

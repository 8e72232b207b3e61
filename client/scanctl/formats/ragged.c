#include "client/scanctl/formats/ragged.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/input.h"

static bool is_integer(enum scand_dtype dtype)
{
    return scand_dtype_class(dtype) == SCAND_CLASS_SIGNED || scand_dtype_class(dtype) == SCAND_CLASS_UNSIGNED;
}

static int header_read(struct array *counts, struct input *input, struct error *error)
{
    struct array_hints hints = {.format = FORMAT_RAW, .dtype = SCAND_DTYPE_I64, .native = true};
    if (format_of_extension(input->name) == FORMAT_NPY)
        hints.format = FORMAT_NPY;
    if (hints.format == FORMAT_RAW && input->sized && input->size_bytes >= sizeof(int64_t)) {
        hints.rank = 1;
        hints.shape[0] = input->size_bytes / sizeof(int64_t);
    }
    int result = array_read_header(counts, input, &hints, error);
    if (result)
        return result;
    if (counts->rank != 1 || !is_integer(counts->dtype) || counts->shape[0] == 0)
        return fail(error, EX_DATAERR,
                    "%s: has rank %" PRIu32 ", dtype %s and %" PRIu64
                    " elements; offsets are one or more i32, i64, u32 or u64 in one dimension",
                    input->name, counts->rank, scand_word(SCAND_LIST_DTYPE, counts->dtype), array_sample_count(counts));
    return 0;
}

/* The i-th of the numbers in `from`; a negative one becomes more than any array has samples. */
static uint64_t number_at(enum scand_dtype dtype, const unsigned char *from, uint64_t i)
{
    int32_t signed_half;
    uint32_t half;
    uint64_t whole;
    if (scand_dtype_bytes(dtype) == sizeof(whole)) {
        memcpy(&whole, from + i * sizeof(whole), sizeof(whole));
        return whole;
    }
    memcpy(&half, from + i * sizeof(half), sizeof(half));
    memcpy(&signed_half, &half, sizeof(half));
    return dtype == SCAND_DTYPE_I32 ? (uint64_t)(int64_t)signed_half : half;
}

static int offsets_check(struct ragged *ragged, const char *name, uint64_t samples, struct error *error)
{
    const uint64_t *offsets = ragged->offsets;
    if (offsets[0] != 0 || offsets[ragged->rows] != samples)
        return fail(error, EX_DATAERR,
                    "%s: begins with %" PRId64 " and ends with %" PRId64 "; it must begin with 0 and end with %" PRIu64
                    ", the samples of the input",
                    name, (int64_t)offsets[0], (int64_t)offsets[ragged->rows], samples);
    for (uint64_t row = 0; row < ragged->rows; row++) {
        if (offsets[row + 1] < offsets[row] || offsets[row + 1] > samples)
            return fail(error, EX_DATAERR,
                        "%s: offset %" PRIu64 " (from 0) is %" PRId64 "; it must be from %" PRIu64
                        ", the one before it, to %" PRIu64 ", the samples of the input",
                        name, row + 1, (int64_t)offsets[row + 1], offsets[row], samples);
        if (offsets[row + 1] - offsets[row] > ragged->longest)
            ragged->longest = offsets[row + 1] - offsets[row];
    }
    return 0;
}

/* Numbers of 4 bytes are read into the upper half of the array, and widened from there. */
static int offsets_read(struct ragged *ragged, const struct array *counts, struct input *input, struct error *error)
{
    uint64_t bytes = scand_dtype_bytes(counts->dtype), count = counts->shape[0];
    unsigned char *from = (unsigned char *)ragged->offsets + count * (sizeof(uint64_t) - bytes);
    int result = input_read(input, from, count * bytes, "offsets", error);
    if (result)
        return result;
    array_swap(counts, from, count * bytes, counts->dtype);
    for (uint64_t i = 0; i < count; i++)
        ragged->offsets[i] = number_at(counts->dtype, from, i);
    return 0;
}

int ragged_read(struct ragged *ragged, const char *path, const struct array *array, struct error *error)
{
    struct input input;
    struct array counts = {.rank = 0};
    if (array->rank != 1)
        return fail(error, EX_USAGE,
                    "--offsets is for an input of one dimension, and this has %" PRIu32
                    "; give --shape, or join its axes",
                    array->rank);
    int result = input_open(&input, path, error);
    if (result)
        return result;
    result = header_read(&counts, &input, error);
    if (!result) {
        *ragged = (struct ragged){.offsets = malloc(counts.shape[0] * sizeof(uint64_t)), .rows = counts.shape[0] - 1};
        if (!ragged->offsets)
            result = fail(error, EX_TEMPFAIL, "%s: out of memory for %" PRIu64 " offsets", path, counts.shape[0]);
    }
    if (!result)
        result = offsets_read(ragged, &counts, &input, error);
    if (!result)
        result = offsets_check(ragged, path, array->shape[0], error);
    array_free(&counts);
    input_close(&input);
    return result;
}

void ragged_free(struct ragged *ragged)
{
    free(ragged->offsets);
    *ragged = (struct ragged){.offsets = NULL};
}

uint64_t ragged_pick(const struct ragged *ragged, uint64_t row, uint64_t samples)
{
    const uint64_t *offsets = ragged->offsets + row;
    uint64_t left = ragged->rows - row, count = 1;
    while (count < left && count < SCAND_RAGGED_ROWS_MAX && offsets[count + 1] - offsets[0] <= samples)
        count++;
    return count;
}

uint64_t ragged_pick_max(const struct ragged *ragged)
{
    return ragged->rows < SCAND_RAGGED_ROWS_MAX ? ragged->rows : SCAND_RAGGED_ROWS_MAX;
}

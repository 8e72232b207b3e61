/*
 * Steps in tiles: how operations that are neither scans nor reductions are computed.
 *
 * A tile is a part of the output that is computed from the input and further operands alone, whatever becomes of other
 * tiles. So threads, launches, chunks and time slices may cut the work between any two tiles, and a kernel is a
 * function of one tile. What an operation's results are must not depend on its tiles: the same bits come from every
 * implementation, tiling and chunk.
 *
 * Every operation has a folder here: NAME.h with its parameters and its formula, reference.c, which is the definition
 * in plain C, cpu.c, which is compiled once for each instruction set, and cuda.cu.
 */
#ifndef KERNELS_STEPS_STEP_H
#define KERNELS_STEPS_STEP_H

#include "kernels/cpu/sets.h"
#include "kernels/order1/dtypes.h"
#include "kernels/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every kernel: X(name). Its rows are step_kernels[] and, for CUDA, step_launches[]. */
#define STEP_KERNELS(X) \
    X(upsample)         \
    X(block_sum)        \
    X(convolve)         \
    X(diff)             \
    X(dot)              \
    X(dot_parts)        \
    X(dot_join)         \
    X(demean)           \
    X(map)              \
    X(triangle)         \
    X(stack)            \
    X(pick)

#define STEP_FURTHER_MAX 4 /* operands beside input and output */
/* Scratch memory that a tile may use on a processor: of any contents, aligned to 64 bytes. */
#define STEP_SCRATCH_BYTES (UINT32_C(1) << 18)

/* An operand's rows. Each row has `length` elements of its own, or all rows have the same ones (outer_strides of 0).
 * on_line: with ragged rows, row r is the elements offsets[r] <= i < offsets[r + 1] of one line instead. */
struct step_operand {
    char *origin; /* element 0 of row 0; NULL: there is no such operand */
    uint64_t length;
    int64_t stride; /* bytes from element to element, of any sign and alignment */
    int64_t outer_strides[SCAN_OUTER_MAX];
    enum scand_dtype dtype;
    bool on_line;
};

/*
 * Rows as struct scan_rows has them: row r, 0 <= r < row_count, has the coordinates of r unravelled over outer_shape,
 * last axis fastest. Ragged rows have offsets, and their input and output lie on a line; outer_rank is then 1 at most,
 * for operands that have an element for each row. The output does not overlap the other operands, but may be the input
 * where a kernel may work in place, or one of those that it may write onto.
 */
struct step_rows {
    uint64_t row_count;
    const uint64_t *offsets;        /* row_count + 1 of ragged rows, else NULL */
    const uint64_t *device_offsets; /* offsets where the device can reach them */
    uint32_t outer_rank;
    uint64_t outer_shape[SCAN_OUTER_MAX];
    struct step_operand input, output;
    struct step_operand further[STEP_FURTHER_MAX]; /* in the order of the operation's list */
    void *workspace; /* of a launch: memory of step_workspace_bytes, aligned to 16 bytes, of which nothing is kept */
};

/* Rows first_row <= r < first_row + row_count, of each the output's elements begin <= i < end. */
struct step_tile {
    uint64_t first_row, row_count, begin, end;
};

/* The size of tiles. Tiles of ragged rows are whole rows. */
struct step_tiling {
    uint64_t rows, elements;
};

/* Tiles of about so many elements of the output, along rows. */
static inline struct step_tiling tiling_along(const struct step_rows *rows, uint64_t elements)
{
    const uint64_t length = rows->output.length;
    return (struct step_tiling){.rows = length > 0 && length < elements ? elements / length : 1, .elements = elements};
}

/* The tiles of rows first <= r < first + count. */
struct step_tiles {
    uint64_t first, count, length;
    struct step_tiling tiling;
    uint64_t per_row;    /* tiles along a row */
    uint64_t tile_count; /* 0: there is nothing to compute */
};

typedef void step_run(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch);

/*
 * Long rows of a kernel that makes a number of each: by two kernels, so that threads share a row and may leave it off.
 * One makes a number of 8 bytes of each part of a row, in memory between the two, and the other makes the row's result
 * of them.
 */
struct step_parts {
    const struct step_kernel *each, *joined;
    uint64_t samples; /* samples of a part */
    bool (*divides)(const struct step_rows *rows);
};

struct step_kernel {
    const char *name;
    bool in_place; /* the output may be the input */
    /* The output may be one of these further operands, a bit for each, which are read: the elements of a row that a
     * tile writes, no other tile reads. */
    uint32_t onto;
    /* A tile should take some 10 to 500 us on one thread. */
    struct step_tiling (*tiling)(const struct step_rows *rows, const void *params);
    /* Elements that are still worth a thread block, where a GPU would have few tiles. 0: tiles stay as they are. */
    uint64_t least_elements;
    /* Returns the bound below which the values of a further operand must lie, an index: from index_from on. A job
     * checks them before it writes anything, and tiles leave out others all the same. 0, as where this function is
     * NULL: values may be anything. */
    uint64_t (*index_below)(const void *params, uint32_t further);
    uint64_t index_from;
    /* Bytes of device memory that launches of so many rows need for themselves, one launch after the other. NULL: none.
     */
    uint64_t (*workspace_bytes)(const struct step_rows *rows, const void *params, uint64_t count);
    const struct step_parts *parts; /* NULL: rows are not divided */
    step_run *reference;            /* reference of any tile; its scratch is not used */
    step_run *cpu[CPU_SET_COUNT];   /* the builds of cpu.c */
};
extern const struct step_kernel *const step_kernels[];

#define X(NAME) STEP_##NAME,
enum step_kernel_id { STEP_KERNELS(X) STEP_KERNEL_COUNT };
#undef X

struct step_tiles step_tiles_of(const struct step_kernel *kernel, const struct step_rows *rows, const void *params,
                                uint64_t first, uint64_t count);

/* Halves tiles until there are at least so many, as far as the kernel allows. */
struct step_tiles step_tiles_halved(const struct step_kernel *kernel, struct step_tiles tiles, uint64_t least);

uint64_t step_workspace_bytes(const struct step_kernel *kernel, const struct step_rows *rows, const void *params,
                              uint64_t count);

/* The parts of rows that a kernel divides; NULL: it does not. */
const struct step_parts *step_parts_of(const struct step_kernel *kernel, const struct step_rows *rows);
/* Bytes between the two kernels for so many rows. */
uint64_t step_parts_bytes(const struct step_parts *parts, const struct step_rows *rows, uint64_t count);
/* Rows as each of the two takes them, `memory` being that of rows from the first on. */
struct step_rows step_each_rows(const struct step_parts *parts, const struct step_rows *rows, uint64_t first,
                                void *memory);
struct step_rows step_joined_rows(const struct step_parts *parts, const struct step_rows *rows, uint64_t first,
                                  void *memory);

/*
 * Runs steps in turns, by the threads of a pool, as cpu_task_run of scan.h does. step_task_create copies *rows and the
 * parameters (what they point to must stay) and returns NULL without memory. step_task_run goes on until all is done,
 * which 0 says, or `over` is true: then it returns 1. Each turn gets on, however soon it is over.
 */
struct step_task;
struct step_task *step_task_create(struct cpu_pool *pool, const struct step_kernel *kernel,
                                   const struct step_rows *rows, const void *params, size_t params_bytes,
                                   uint64_t first, uint64_t count);
int step_task_run(struct step_task *task, cpu_over *over, void *context);
void step_task_destroy(struct step_task *task);

/*
 * Queues tiles begin <= t < end on a stream of the current CUDA device. Addresses are those that the device reaches.
 * Returns a cudaError_t.
 */
typedef int step_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                        uint64_t begin, uint64_t end, void *stream);
extern step_launch *const step_launches[];

/*
 * Returns a tile by its number; for kernels, in C and CUDA.
 */

CODEC_INLINE struct step_tile step_tile_at(const struct step_tiles *tiles, uint64_t number)
{
    const uint64_t group = number / tiles->per_row, part = number - group * tiles->per_row;
    struct step_tile tile;
    tile.first_row = tiles->first + group * tiles->tiling.rows;
    const uint64_t left = tiles->first + tiles->count - tile.first_row;
    tile.row_count = left < tiles->tiling.rows ? left : tiles->tiling.rows;
    tile.begin = part * tiles->tiling.elements;
    const uint64_t rest = tiles->length - tile.begin;
    tile.end = tile.begin + (rest < tiles->tiling.elements ? rest : tiles->tiling.elements);
    return tile;
}

/* The offsets of ragged rows that this code can reach. */
CODEC_INLINE const uint64_t *step_offsets(const struct step_rows *rows)
{
#ifdef __CUDA_ARCH__
    return rows->device_offsets;
#else
    return rows->offsets;
#endif
}

/* Element 0 of a row. Unrolled, the loop would be half of many a kernel. */
CODEC_INLINE char *step_row(const struct step_rows *rows, const struct step_operand *operand, uint64_t row)
{
    char *at = operand->origin;
    if (operand->on_line)
        return at + (int64_t)step_offsets(rows)[row] * operand->stride;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (uint32_t k = rows->outer_rank; k-- > 1;) {
        const uint64_t next = row / rows->outer_shape[k];
        at += (int64_t)(row - next * rows->outer_shape[k]) * operand->outer_strides[k];
        row = next;
    }
    return rows->outer_rank > 0 ? at + (int64_t)row * operand->outer_strides[0] : at;
}

/* Elements of a row. */
CODEC_INLINE uint64_t step_length(const struct step_rows *rows, const struct step_operand *operand, uint64_t row)
{
    const uint64_t *offsets = step_offsets(rows);
    return operand->on_line ? offsets[row + 1] - offsets[row] : operand->length;
}

/* Samples of a row; of ragged rows on average. For the host. */
static inline uint64_t step_row_samples(const struct step_rows *rows)
{
    if (!rows->offsets || rows->row_count == 0)
        return rows->input.length;
    return (rows->offsets[rows->row_count] - rows->offsets[0]) / rows->row_count;
}

/* The end of a tile in a row: that of the row, where a ragged one is shorter. */
CODEC_INLINE uint64_t step_end(const struct step_rows *rows, const struct step_tile *tile, uint64_t row)
{
    const uint64_t length = step_length(rows, &rows->output, row);
    return tile->end < length ? tile->end : length;
}

/*
 * Elements in memory, decoded and encoded. On a GPU words that are aligned travel at once: the compiler, which knows
 * nothing of their addresses, would take byte after byte.
 */

#ifndef __CUDA_ARCH__
#define step_decode_f32     codec_decode_f32
#define step_decode_f64     codec_decode_f64
#define step_decode_integer codec_decode_integer
#define step_encode_f32     codec_encode_f32
#define step_encode_f64     codec_encode_f64
#define step_encode_integer codec_encode_integer
#else

CODEC_INLINE uint64_t step_get_word(enum scand_dtype dtype, const char *at)
{
    const uint32_t bytes = codec_bytes(dtype);
    uint64_t word = 0;
    if (((uintptr_t)at & (bytes - 1)) != 0)
        for (uint32_t k = 0; k < bytes; k++)
            word |= (uint64_t)(unsigned char)at[k] << 8 * k;
    else if (bytes == 1)
        word = *(const uint8_t *)at;
    else if (bytes == 2)
        word = *(const uint16_t *)at;
    else if (bytes == 4)
        word = *(const uint32_t *)at;
    else
        word = *(const uint64_t *)at;
    return word;
}

CODEC_INLINE void step_put_word(enum scand_dtype dtype, uint64_t word, char *at)
{
    const uint32_t bytes = codec_bytes(dtype);
    if (((uintptr_t)at & (bytes - 1)) != 0)
        for (uint32_t k = 0; k < bytes; k++)
            at[k] = (char)(word >> 8 * k);
    else if (bytes == 1)
        *(uint8_t *)at = (uint8_t)word;
    else if (bytes == 2)
        *(uint16_t *)at = (uint16_t)word;
    else if (bytes == 4)
        *(uint32_t *)at = (uint32_t)word;
    else
        *(uint64_t *)at = word;
}

#define STEP_CODER(CLASS, TYPE)                                                         \
    CODEC_INLINE TYPE step_decode_##CLASS(enum scand_dtype dtype, const char *at)       \
    {                                                                                   \
        const uint64_t word = step_get_word(dtype, at);                                 \
        return codec_decode_##CLASS(dtype, &word);                                      \
    }                                                                                   \
    CODEC_INLINE void step_encode_##CLASS(enum scand_dtype dtype, TYPE value, char *at) \
    {                                                                                   \
        uint64_t word = 0;                                                              \
        codec_encode_##CLASS(dtype, value, &word);                                      \
        step_put_word(dtype, word, at);                                                 \
    }
STEP_CODER(f32, float)
STEP_CODER(f64, double)
STEP_CODER(integer, uint64_t)
#undef STEP_CODER
#endif

/* Says to the compiler that an element lies at a multiple of its size, if that is `known`. */
CODEC_INLINE const char *step_aligned(bool known, enum scand_dtype dtype, const char *at)
{
#ifdef __CUDA_ARCH__
    if (known)
        __builtin_assume(((uintptr_t)at & (codec_bytes(dtype) - 1)) == 0);
#else
    (void)known, (void)dtype;
#endif
    return at;
}

/* Elements of floats, whatever their dtype: as f64 and as f32. An f64 becomes an f32 by rounding. */
CODEC_INLINE double step_get_f64(enum scand_dtype dtype, const char *at)
{
    return codec_class(dtype) == SCAND_CLASS_F64 ? step_decode_f64(dtype, at) : (double)step_decode_f32(dtype, at);
}

CODEC_INLINE float step_get_f32(enum scand_dtype dtype, const char *at)
{
    return codec_class(dtype) == SCAND_CLASS_F64 ? (float)step_decode_f64(dtype, at) : step_decode_f32(dtype, at);
}

/* A value that was computed in f64, rounded once; one that was computed in f32. */
CODEC_INLINE void step_put_f64(enum scand_dtype dtype, double value, char *at)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        step_encode_f64(dtype, value, at);
    else
        step_encode_f32(dtype, (float)value, at);
}

CODEC_INLINE void step_put_f32(enum scand_dtype dtype, float value, char *at)
{
    if (codec_class(dtype) == SCAND_CLASS_F64)
        step_encode_f64(dtype, value, at);
    else
        step_encode_f32(dtype, value, at);
}

/* An element as it is, of whatever class: integers keep their low bits, floats are rounded where they must be. */
CODEC_INLINE void step_copy(enum scand_dtype from, const char *at, enum scand_dtype to, char *out)
{
    if (codec_is_integer(from))
        step_encode_integer(to, step_decode_integer(from, at), out);
    else if (codec_class(from) == SCAND_CLASS_F64)
        step_put_f64(to, step_decode_f64(from, at), out);
    else
        step_put_f32(to, step_decode_f32(from, at), out);
}

/* The name of a function of cpu.c: upsample_cpu_avx2, ... */
#define STEP_PASTE_BUILD(NAME, BUILD) NAME##_cpu_##BUILD
#define STEP_PASTE(NAME, BUILD)       STEP_PASTE_BUILD(NAME, BUILD)
#define STEP_CPU(NAME)                STEP_PASTE(NAME, STEP_BUILD)

/* Declares the builds of a kernel's cpu.c, and lists them, for its row. */
#define STEP_DECLARE_BUILD(SET, NAME) extern step_run NAME##_##SET;
#define STEP_LIST_BUILD(SET, NAME)    NAME##_##SET,
#define STEP_DECLARE(NAME)                   \
    CPU_SETS(STEP_DECLARE_BUILD, NAME##_cpu) \
    extern const struct step_kernel NAME##_kernel
#define STEP_BUILDS(NAME)                     \
    {                                         \
        CPU_SETS(STEP_LIST_BUILD, NAME##_cpu) \
    }

#ifdef __cplusplus
}
#endif

#endif

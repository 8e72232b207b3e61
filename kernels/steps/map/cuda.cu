#include "kernels/steps/elements.cuh"
#include "kernels/steps/packs.cuh"
#include "map.h"

#define THREADS       256
#define PACKS_AT_ONCE 2 /* packs of each operand that a thread has on their way */

/* An element by that of b, or by the constant. */
template <enum map_op OP, enum scand_dtype DTYPE, class Number>
static __device__ __forceinline__ Number map_one(const struct map &map, Number x, Number b, bool by_b)
{
    if constexpr (DTYPE == SCAND_DTYPE_F64)
        return map_f64(OP, x, by_b ? b : map.by, map.high);
    else
        return map_f32(OP, x, by_b ? b : (float)map.by, (float)map.high);
}

/* Packs p, p + THREADS, ... of a row: all are read before the first one is written, which may be where x is. */
template <enum map_op OP, enum scand_dtype DTYPE>
static __device__ __forceinline__ void map_some(const struct map &map, const pack<DTYPE> *x, const pack<DTYPE> *b,
                                                bool by_b, pack<DTYPE> *y, uint32_t p, uint32_t packs)
{
    pack<DTYPE> xs[PACKS_AT_ONCE], bs[PACKS_AT_ONCE];
#pragma unroll
    for (unsigned n = 0; n < PACKS_AT_ONCE; n++)
        if (p + n * THREADS < packs) {
            xs[n] = x[p + n * THREADS];
            if (by_b)
                bs[n] = b[p + n * THREADS];
        }
#pragma unroll
    for (unsigned n = 0; n < PACKS_AT_ONCE; n++)
        if (p + n * THREADS < packs) {
            pack<DTYPE> ys;
#pragma unroll
            for (unsigned k = 0; k < pack<DTYPE>::count; k++)
                ys.put(k, map_one<OP, DTYPE>(map, xs[n].get(k), bs[n].get(k), by_b));
            y[p + n * THREADS] = ys;
        }
}

template <enum map_op OP, enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS, 4)
    map_packs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
              const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    typedef pack<DTYPE> pack;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand *other = &rows.further[MAP_OTHER];
    const uint32_t count = (uint32_t)(tile.end - tile.begin), packs = count / pack::count;
    const struct map fixed = {OP, map.by, map.high};
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        struct map_line line = map_line_of(&rows, row);
        const char *x = line.x + tile.begin * pack::size, *b = other->origin ? line.b + tile.begin * pack::size : x;
        char *y = line.y + tile.begin * pack::size;
        line.from = line.other = line.to = DTYPE;
        line.aligned = true;
        line.x_stride = line.b_stride = line.y_stride = pack::size;
#pragma unroll 1
        for (uint32_t p = threadIdx.x; p < packs; p += PACKS_AT_ONCE * THREADS)
            map_some<OP, DTYPE>(map, (const pack *)x, (const pack *)b, other->origin, (pack *)y, p, packs);
#pragma unroll 1
        for (uint32_t i = packs * pack::count + threadIdx.x; i < count; i += THREADS)
            map_element(&fixed, &line, tile.begin + i);
    }
}

static bool is_packed(const struct step_rows *rows, const struct step_operand *operand)
{
    return step_is_dense(rows, operand, rows->input.dtype, PACK_BYTES);
}

/* True when rows can be read and written in packs. */
static bool takes_packs(const struct step_rows *rows, const struct step_tiles *tiles)
{
    return pack_has_dtype(rows->input.dtype) && !rows->offsets && !elements_cross_rows(rows) &&
           rows->output.length >= THREADS && tiles->tiling.elements % PACK_BYTES == 0 &&
           is_packed(rows, &rows->input) && is_packed(rows, &rows->output) &&
           (!rows->further[MAP_OTHER].origin || is_packed(rows, &rows->further[MAP_OTHER]));
}

/*
 * Launches: a kernel for each op and dtype of packs, and one for all else.
 */

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

template <enum scand_dtype From, enum scand_dtype To>
static __global__ void __launch_bounds__(THREADS)
    map_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
              const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    elements_each(
        rows, step_block_tile(tiles, begin),
        [&](uint64_t row) {
            struct map_line line = map_line_of(&rows, row);
            if (From != ANY) {
                line.from = line.other = From;
                line.to = To;
                line.aligned = true;
            }
            return line;
        },
        [&](const struct map_line &line, uint64_t i) { map_element(&map, &line, i); });
}

/* The dtypes of x and b, and of y, that have a kernel of their own, where all elements are aligned. */
#define MAP_DTYPES(X) \
    X(F32, F32)       \
    X(F64, F64)       \
    X(I32, I32)       \
    X(F16, F32)       \
    X(F32, F16)       \
    X(F32, F64)       \
    X(F64, F32)       \
    X(F32, I32)       \
    X(I32, F32)       \
    X(IBM32, F32)     \
    X(F32, IBM32)

typedef void map_kernel_function(struct step_rows rows, struct map map, struct step_tiles tiles, uint64_t begin);

template <enum scand_dtype DTYPE> static map_kernel_function *packs_of(enum map_op op)
{
#define X(OP, WORD) map_packs<MAP_##OP, DTYPE>,
    static map_kernel_function *const kernels[] = {MAP_OPS(X)};
#undef X
    return kernels[op];
}

static map_kernel_function *tiles_of(const struct step_rows *rows)
{
    const struct step_operand *other = &rows->further[MAP_OTHER];
    const bool aligned = step_is_aligned(rows, &rows->input) && step_is_aligned(rows, &rows->output) &&
                         (!other->origin || step_is_aligned(rows, other));
    if (aligned && (!other->origin || other->dtype == rows->input.dtype)) {
#define X(FROM, TO)                                                                        \
    if (rows->input.dtype == SCAND_DTYPE_##FROM && rows->output.dtype == SCAND_DTYPE_##TO) \
        return map_tiles<SCAND_DTYPE_##FROM, SCAND_DTYPE_##TO>;
        MAP_DTYPES(X)
#undef X
    }
    return map_tiles<ANY, ANY>;
}

static map_kernel_function *choose_kernel(const struct step_rows *rows, enum map_op op, const struct step_tiles *tiles)
{
    if (!takes_packs(rows, tiles))
        return tiles_of(rows);
    switch ((int)rows->input.dtype) {
    case SCAND_DTYPE_F64:
        return packs_of<SCAND_DTYPE_F64>(op);
    case SCAND_DTYPE_F16:
        return packs_of<SCAND_DTYPE_F16>(op);
    case SCAND_DTYPE_BF16:
        return packs_of<SCAND_DTYPE_BF16>(op);
    default:
        return packs_of<SCAND_DTYPE_F32>(op);
    }
}

extern "C" int map_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    const struct map map = *(const struct map *)params;
    map_kernel_function *const kernel = choose_kernel(rows, map.op, tiles);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, map, *tiles, first);
    });
}

#include "kernels/steps/elements.cuh"
#include "map.h"

#define THREADS 256

/*
 * Packs of 16 bytes, where all operands are of one dtype and each row begins at a multiple of 16 in each of them.
 */

struct alignas(16) pack {
    unsigned char bytes[16];
};

/* An element of floats of one dtype. */
template <enum map_op OP, enum scand_dtype DTYPE>
static __device__ __forceinline__ void map_one(const struct map &map, const void *x, const void *b, void *y)
{
    const struct map fixed = {OP, map.by, map.high};
    const struct map_place at = {(const char *)x, (const char *)b, (char *)y, DTYPE, DTYPE, DTYPE};
    if (DTYPE == SCAND_DTYPE_F64)
        map_element_f64(&fixed, &at);
    else
        map_element_f32(&fixed, &at);
}

template <enum map_op OP, enum scand_dtype DTYPE>
static __device__ __forceinline__ struct pack map_pack(const struct map &map, const struct pack &x,
                                                       const struct pack *beside)
{
    constexpr unsigned SIZE = DTYPE == SCAND_DTYPE_F64 ? 8 : DTYPE == SCAND_DTYPE_F32 ? 4 : 2;
    struct pack y, b = x;
    if (beside)
        b = *beside;
#pragma unroll
    for (unsigned k = 0; k < sizeof(struct pack); k += SIZE)
        map_one<OP, DTYPE>(map, x.bytes + k, beside ? b.bytes + k : NULL, y.bytes + k);
    return y;
}

template <enum map_op OP, enum scand_dtype DTYPE>
static __global__ void map_packs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                                 const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand *other = &rows.further[MAP_OTHER];
    const uint64_t size = codec_bytes(DTYPE), bytes = (tile.end - tile.begin) * size,
                   packs = bytes / sizeof(struct pack);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const char *x = step_row(&rows, &rows.input, row) + tile.begin * size;
        const char *b = other->origin ? step_row(&rows, other, row) + tile.begin * size : NULL;
        char *y = step_row(&rows, &rows.output, row) + tile.begin * size;
#pragma unroll 4
        for (uint64_t p = threadIdx.x; p < packs; p += THREADS)
            ((struct pack *)y)[p] =
                map_pack<OP, DTYPE>(map, ((const struct pack *)x)[p], b ? (const struct pack *)b + p : NULL);
        for (uint64_t at = packs * sizeof(struct pack) + threadIdx.x * size; at < bytes; at += THREADS * size)
            map_one<OP, DTYPE>(map, x + at, b ? b + at : NULL, y + at);
    }
}

/* Whether rows can be read and written in packs. */
static bool is_packed(const struct step_rows *rows, const struct step_operand *operand)
{
    const enum scand_dtype dtype = rows->input.dtype;
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return operand->dtype == dtype && operand->stride == (int64_t)codec_bytes(dtype) &&
           misaligned % sizeof(struct pack) == 0;
}

static bool takes_packs(const struct step_rows *rows, const struct step_tiles *tiles)
{
    const enum scand_dtype dtype = rows->input.dtype;
    const bool has_packs =
        dtype == SCAND_DTYPE_F32 || dtype == SCAND_DTYPE_F64 || dtype == SCAND_DTYPE_F16 || dtype == SCAND_DTYPE_BF16;
    return has_packs && !rows->offsets && !elements_cross_rows(rows) && rows->output.length >= THREADS &&
           tiles->tiling.elements % sizeof(struct pack) == 0 && is_packed(rows, &rows->input) &&
           is_packed(rows, &rows->output) &&
           (!rows->further[MAP_OTHER].origin || is_packed(rows, &rows->further[MAP_OTHER]));
}

/*
 * Launches: a kernel for each op and dtype of packs, and one for all else.
 */

static __global__ void map_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct map map,
                                 const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    elements_each(rows, step_block_tile(tiles, begin),
                  [&](uint64_t row, uint64_t i) { map_element(&rows, &map, row, i); });
}

typedef void map_kernel_function(struct step_rows rows, struct map map, struct step_tiles tiles, uint64_t begin);

template <enum scand_dtype DTYPE> static map_kernel_function *packs_of(enum map_op op)
{
#define X(OP, WORD) map_packs<MAP_##OP, DTYPE>,
    static map_kernel_function *const kernels[] = {MAP_OPS(X)};
#undef X
    return kernels[op];
}

static map_kernel_function *choose_kernel(const struct step_rows *rows, enum map_op op, const struct step_tiles *tiles)
{
    if (!takes_packs(rows, tiles))
        return map_tiles;
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

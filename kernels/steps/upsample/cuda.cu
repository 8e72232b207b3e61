#include "kernels/steps/packs.cuh"
#include "upsample.h"

#define THREADS    256
#define FACTOR_MAX (UINT32_C(1) << 31) /* so that a tile's outputs can be counted in 32 bits */

/*
 * Floats of one dtype, one after another: a thread writes packs of 16 bytes. What it reads, its neighbours read too, so
 * that memory is read once.
 */

#define PACKS_AT_ONCE 4 /* packs whose samples a thread has on their way */

/* The bits of an element. */
template <enum scand_dtype DTYPE>
using element = std::conditional_t<pack<DTYPE>::size == 8, uint64_t,
                                   std::conditional_t<pack<DTYPE>::size == 4, uint32_t, uint16_t>>;

/* The sources of a pack whose first output is the i-th made from the samples from `from` on. */
template <enum scand_dtype DTYPE> struct sources {
    element<DTYPE> bits[pack<DTYPE>::count];

    __device__ __forceinline__ void read(const char *from, uint32_t factor, uint32_t i)
    {
        uint32_t source = i / factor, rest = i - source * factor;
#pragma unroll
        for (unsigned k = 0; k < pack<DTYPE>::count; k++) {
            bits[k] = ((const element<DTYPE> *)from)[source];
            if (++rest == factor) {
                rest = 0;
                source++;
            }
        }
    }
    __device__ __forceinline__ pack<DTYPE> coded() const
    {
        pack<DTYPE> made;
#pragma unroll
        for (unsigned k = 0; k < pack<DTYPE>::count; k++)
            if constexpr (DTYPE == SCAND_DTYPE_F64)
                made.put(k, codec_decode_f64(DTYPE, &bits[k]));
            else
                made.put(k, codec_decode_f32(DTYPE, &bits[k]));
        return made;
    }
};

template <enum scand_dtype DTYPE>
static __device__ __forceinline__ void upsample_some(const char *from, uint32_t factor, uint32_t begin, char *to,
                                                     uint32_t p, uint32_t packs)
{
    sources<DTYPE> some[PACKS_AT_ONCE];
#pragma unroll
    for (unsigned n = 0; n < PACKS_AT_ONCE; n++)
        if (p + n * THREADS < packs)
            some[n].read(from, factor, begin + (p + n * THREADS) * pack<DTYPE>::count);
#pragma unroll
    for (unsigned n = 0; n < PACKS_AT_ONCE; n++)
        if (p + n * THREADS < packs)
            ((pack<DTYPE> *)to)[p + n * THREADS] = some[n].coded();
}

/* Factor: that of the step, or 0 for any. */
template <enum scand_dtype DTYPE, uint32_t Factor>
static __global__ void __launch_bounds__(THREADS, 4)
    upsample_packs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct upsample upsample,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    typedef struct pack<DTYPE> pack;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const uint32_t factor = Factor > 0 ? Factor : (uint32_t)upsample.factor, count = (uint32_t)(tile.end - tile.begin);
    const uint32_t packs = count / pack::count;
    const uint64_t source = tile.begin / factor;
    const uint32_t first = (uint32_t)(tile.begin - source * factor);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const char *from = step_row(&rows, &rows.input, row) + source * pack::size;
        char *to = step_row(&rows, &rows.output, row) + tile.begin * pack::size;
#pragma unroll 1
        for (uint32_t p = threadIdx.x; p < packs; p += PACKS_AT_ONCE * THREADS)
            upsample_some<DTYPE>(from, factor, first, to, p, packs);
#pragma unroll 1
        for (uint32_t i = packs * pack::count + threadIdx.x; i < count; i += THREADS)
            step_copy(DTYPE, from + (first + i) / factor * pack::size, DTYPE, to + i * pack::size);
    }
}

/* Anything else. */
static __global__ void upsample_tiles(const __grid_constant__ struct step_rows rows,
                                      const __grid_constant__ struct upsample upsample,
                                      const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        const char *from = step_row(&rows, &rows.input, row);
        char *to = step_row(&rows, &rows.output, row);
        for (uint64_t i = tile.begin + threadIdx.x; i < end; i += THREADS)
            step_copy(rows.input.dtype, from + (int64_t)(i / upsample.factor) * rows.input.stride, rows.output.dtype,
                      to + (int64_t)i * rows.output.stride);
    }
}

typedef void upsample_kernel_function(struct step_rows rows, struct upsample upsample, struct step_tiles tiles,
                                      uint64_t begin);

static upsample_kernel_function *choose_kernel(const struct step_rows *rows, uint64_t factor)
{
    const enum scand_dtype dtype = rows->input.dtype;
    if (rows->offsets || factor > FACTOR_MAX || rows->output.length < THREADS ||
        !step_is_dense(rows, &rows->input, dtype, codec_bytes(dtype)) ||
        !step_is_dense(rows, &rows->output, dtype, PACK_BYTES))
        return upsample_tiles;
    switch ((int)dtype) {
    case SCAND_DTYPE_F32:
        return factor == 2 ? upsample_packs<SCAND_DTYPE_F32, 2> : upsample_packs<SCAND_DTYPE_F32, 0>;
    case SCAND_DTYPE_F64:
        return factor == 2 ? upsample_packs<SCAND_DTYPE_F64, 2> : upsample_packs<SCAND_DTYPE_F64, 0>;
    case SCAND_DTYPE_F16:
        return upsample_packs<SCAND_DTYPE_F16, 0>;
    case SCAND_DTYPE_BF16:
        return upsample_packs<SCAND_DTYPE_BF16, 0>;
    default:
        return upsample_tiles;
    }
}

extern "C" int upsample_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct upsample upsample = *(const struct upsample *)params;
    upsample_kernel_function *const kernel = choose_kernel(rows, upsample.factor);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, upsample, *tiles, first);
    });
}

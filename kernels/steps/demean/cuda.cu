/*
 * A warp for each row, or a thread block where there are few: the row is read for its mean, and again to take that off.
 */
#include "demean.h"
#include "kernels/steps/totals.cuh"

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

/* A row, and where its results go. */
template <enum scand_dtype Dtype> struct samples {
    const struct step_operand *input, *output;
    const char *x;
    char *y;
    struct words {
        struct tile_packs<Dtype> x;
    };
    __device__ __forceinline__ void fetch(uint64_t first, unsigned count, words *words, unsigned lane) const
    {
        words->x.fetch(x, first, count, lane);
    }
    __device__ __forceinline__ void stage(const words *words, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        typedef tile_packs<Dtype> packs;
#pragma unroll
        for (unsigned p = 0; p < packs::count; p++)
#pragma unroll
            for (unsigned k = 0; k < packs::each; k++)
                if (packs::has(p, lane, count))
                    stage[packs::place(p, k, lane)] = words->x.term(p, k);
        if (lane < count % packs::each) {
            const unsigned i = count - count % packs::each + lane;
            stage[totals_place(i)] =
                step_get_f64(Dtype, step_aligned(true, Dtype, x + (first + i) * pack<Dtype>::size));
        }
    }
    /* Subtracts the mean, by `threads` threads. */
    __device__ __forceinline__ void subtract(double mean, uint64_t length, unsigned thread, unsigned threads) const
    {
        typedef pack<Dtype> pack;
        const uint64_t whole = length / pack::count;
#pragma unroll 4
        for (uint64_t p = thread; p < whole; p += threads) {
            const pack from = ((const pack *)x)[p];
            pack made;
#pragma unroll
            for (unsigned k = 0; k < pack::count; k++)
                made.put(k, (typename pack::number)demean_sample(Dtype, (double)from.get(k), mean));
            ((pack *)y)[p] = made;
        }
        for (uint64_t i = whole * pack::count + thread; i < length; i += threads)
            step_put_f64(Dtype,
                         demean_sample(Dtype, step_get_f64(Dtype, step_aligned(true, Dtype, x + i * pack::size)), mean),
                         (char *)step_aligned(true, Dtype, y + i * pack::size));
    }
};

template <> struct samples<ANY> {
    const struct step_operand *input, *output;
    const char *x;
    char *y;
    typedef struct no_words words;
    __device__ __forceinline__ double at(uint64_t i) const
    {
        return step_get_f64(input->dtype, x + (int64_t)i * input->stride);
    }
    __device__ __forceinline__ void fetch(uint64_t, unsigned, words *, unsigned) const
    {
    }
    __device__ __forceinline__ void stage(const words *, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        for (unsigned i = lane; i < count; i += WARP)
            stage[totals_place(i)] = at(first + i);
    }
    __device__ __forceinline__ void subtract(double mean, uint64_t length, unsigned thread, unsigned threads) const
    {
        for (uint64_t i = thread; i < length; i += threads)
            step_put_f64(output->dtype, demean_sample(input->dtype, at(i), mean), y + (int64_t)i * output->stride);
    }
};

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    demean_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                uint64_t begin)
{
    __shared__ double stages[WARPS][STAGE], members[WARPS][LEVELS][ORDER_FAN], tile_totals[2][ORDER_FAN], shared_mean;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool by_warp = tile.row_count >= WARPS;
    for (uint64_t i = by_warp ? warp : 0; i < tile.row_count; i += by_warp ? WARPS : 1) {
        const uint64_t row = tile.first_row + i, length = step_length(&rows, &rows.input, row);
        const struct samples<Dtype> samples = {
            &rows.input, &rows.output, step_row(&rows, &rows.input, row), step_row(&rows, &rows.output, row)
        };
        if (length == 0)
            continue;
        const double total = by_warp ? warp_total(samples, length, stages[warp], members[warp], lane)
                                     : block_total(samples, length, stages[warp], members[0], tile_totals, warp, lane);
        double mean = total / (double)length;
        if (!by_warp) { /* the total is the first warp's */
            if (threadIdx.x == 0)
                shared_mean = mean;
            __syncthreads();
            mean = shared_mean;
        }
        samples.subtract(mean, length, by_warp ? lane : threadIdx.x, by_warp ? WARP : THREADS);
    }
}

static bool are_dense(const struct step_rows *rows, enum scand_dtype dtype)
{
    return !rows->offsets && step_is_dense(rows, &rows->input, dtype, PACK_BYTES) &&
           step_is_dense(rows, &rows->output, dtype, PACK_BYTES);
}

extern "C" int demean_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                             uint64_t begin, uint64_t end, void *stream)
{
    auto *const kernel = are_dense(rows, SCAND_DTYPE_F32)   ? demean_rows<SCAND_DTYPE_F32>
                         : are_dense(rows, SCAND_DTYPE_F64) ? demean_rows<SCAND_DTYPE_F64>
                                                            : demean_rows<ANY>;
    (void)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

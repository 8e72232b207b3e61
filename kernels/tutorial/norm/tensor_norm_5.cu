/*
 * tensor-norm-5: a library's warp reduction, and a tree by hand across warps.
 *
 * The change from tensor-norm-4: what BlockReduce does, taken apart. CUB's WarpReduce adds the 32 sums of a warp; the
 * eight warps leave theirs in shared memory, where they are added as a tree of three levels. It is no faster: on an
 * H200 both take 0.19 ms for 100 million samples. It shows what the library spares.
 *
 * Association: threads as in tensor-norm-3; a warp's sums as CUB does; of the eight i and i + 4, then i and i + 2, then
 * both; the blocks' as they arrive.
 */
#include <cub/warp/warp_reduce.cuh>

#include "kernels/tutorial/norm/tensor.cuh"

#define WARPS (THREADS / WARP)

struct by_hand {
    static __device__ double sum(double squares)
    {
        typedef cub::WarpReduce<double> reduce;
        __shared__ typename reduce::TempStorage storage[WARPS];
        __shared__ double results[WARPS];
        const int warp = threadIdx.x / WARP;
        const double sum = reduce(storage[warp]).Sum(squares);
        if (threadIdx.x % WARP == 0)
            results[warp] = sum;
        for (int half = WARPS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                results[threadIdx.x] += results[threadIdx.x + half];
        }
        return results[0];
    }
};

extern "C" int tensor_norm_5(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    return norms_run<by_hand>(rows, stream);
}

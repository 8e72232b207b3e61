/*
 * reduce-v7: shuffles.
 *
 * The change from reduce-v6: lanes hand their values to each other directly. Five steps leave one value per warp, those
 * of the eight warps meet in shared memory, and one warp finishes: one barrier instead of three, and eight values
 * stored instead of 256. This rung is none of Harris's, whose GPUs had no shuffles. It spares nothing any more: with 64
 * samples for each thread the tree is little of the work, and on an H200 sums of 10,000 x 10,000 samples take 0.110 ms,
 * and 0.107 by reduce-v6.
 *
 * Association: thread t combines t, t + 256, t + 512, ... one by one; of a warp's 32 lanes i and i + 16, then i and i +
 * 8, and so on; the warps' results likewise.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

#define WARPS (THREADS / WARP)

/* Combines the values of LANES lanes to one, in lane 0. */
template <class Op, int LANES> GPU_INLINE double lanes_combine(double value)
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = Op::combine(value, __shfl_down_sync(ALL, value, distance));
    return value;
}

struct v7 {
    static const int span = SPAN_reduce_v7;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        double value = Op::identity();
        for (int i = t; i < part.count; i += THREADS)
            value = Op::combine(value, Op::of(part.x[i]));
        value = lanes_combine<Op, WARP>(value);
        if (t % WARP == 0)
            results[t / WARP] = value;
        __syncthreads();
        return t < WARP ? lanes_combine<Op, WARPS>(results[t % WARPS]) : 0;
    }
};

extern "C" int reduce_v7(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v7>(rows, workspace, stream);
}

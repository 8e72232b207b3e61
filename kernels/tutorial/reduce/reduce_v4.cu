/*
 * reduce-v4: the last warp unrolled.
 *
 * The change from reduce-v3: when 64 results are left, one warp combines them, in steps without a barrier for the
 * thread block and without a loop (reduce_tree.cuh). The other seven warps are done instead of waiting five times.
 *
 * Association: as reduce-v3.
 */
#include "kernels/tutorial/reduce/reduce_tree.cuh"

struct v4 {
    static const int span = SPAN_reduce_v4;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = Op::combine(load<Op>(part, t), load<Op>(part, t + THREADS));
#pragma unroll 1
        for (int stride = THREADS / 2; stride > WARP; stride /= 2) {
            __syncthreads();
            if (t < stride)
                results[t] = Op::combine(results[t], results[t + stride]);
        }
        __syncthreads();
        return t < WARP ? warp_tree<Op>(results) : 0;
    }
};

extern "C" int reduce_v4(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v4>(rows, workspace, stream);
}

/*
 * reduce-v1: no divergence.
 *
 * The change from reduce-v0: the values combined in a step are the same, but thread t combines the t-th pair, so the
 * busy threads are the first ones. Whole warps fall idle together and cost nothing, and no remainder is computed. But
 * neighbours now read 2, 4, 8, ... doubles apart, which meet in the same banks: on an H200 that costs more than the
 * divergence did.
 *
 * Association: as reduce-v0.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

struct v1 {
    static const int span = SPAN_reduce_v1;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = load<Op>(part, t);
        for (int stride = 1; stride < THREADS; stride *= 2) {
            __syncthreads();
            int i = 2 * stride * t;
            if (i < THREADS)
                results[i] = Op::combine(results[i], results[i + stride]);
        }
        return results[0];
    }
};

extern "C" int reduce_v1(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v1>(rows, workspace, stream);
}

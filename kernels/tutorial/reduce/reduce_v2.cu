/*
 * reduce-v2: no bank conflicts.
 *
 * The change from reduce-v1: distances run from large to small, so thread t combines value t with the one half a tree
 * away and neighbours read what lies side by side.
 *
 * Association: of 256 samples, i and i + 128, of the 128 results i and i + 64, and so on; the results of a row's parts
 * again so, until one is left.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

struct v2 {
    static const int span = SPAN_reduce_v2;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = load<Op>(part, t);
        for (int stride = THREADS / 2; stride > 0; stride /= 2) {
            __syncthreads();
            if (t < stride)
                results[t] = Op::combine(results[t], results[t + stride]);
        }
        return results[t];
    }
};

extern "C" int reduce_v2(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v2>(rows, workspace, stream);
}

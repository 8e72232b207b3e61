/*
 * reduce-v0: a tree in shared memory, in the first way that comes to mind.
 *
 * A thread block takes 256 samples, one per thread. In step s = 1, 2, 4, ... every thread whose number is a multiple of
 * 2 s combines its value with the one s further on. Half of the threads are idle in the first step, three quarters in
 * the next, and they lie between the busy ones: every warp runs every step for the few of its lanes that have something
 * to do, and the remainder of a division decides who. The rungs that follow climb down from that, one change each; up
 * to reduce-v6 they are the seven of M. Harris, "Optimizing parallel reduction in CUDA", 2007.
 *
 * Association: neighbours in pairs, fours, eights, ... of 256 samples, left operand first; the results of a row's parts
 * again so, until one is left.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

struct v0 {
    static const int span = SPAN_reduce_v0;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = load<Op>(part, t);
        for (int stride = 1; stride < THREADS; stride *= 2) {
            __syncthreads();
            if (t % (2 * stride) == 0)
                results[t] = Op::combine(results[t], results[t + stride]);
        }
        return results[t];
    }
};

extern "C" int reduce_v0(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v0>(rows, workspace, stream);
}

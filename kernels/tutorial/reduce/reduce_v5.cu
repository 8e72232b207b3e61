/*
 * reduce-v5: fully unrolled.
 *
 * The change from reduce-v4: the size of the thread block is known to the compiler, so the two steps before the last
 * warp are unrolled too and no loop is left (reduce_tree.cuh). A thread still does little more than load two samples.
 *
 * Association: as reduce-v3.
 */
#include "kernels/tutorial/reduce/reduce_tree.cuh"

struct v5 {
    static const int span = SPAN_reduce_v5;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = Op::combine(load<Op>(part, t), load<Op>(part, t + THREADS));
        return block_tree<Op>(results);
    }
};

extern "C" int reduce_v5(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v5>(rows, workspace, stream);
}

/*
 * reduce-v6: many samples per thread.
 *
 * The change from reduce-v5: a thread combines up to 64 samples, 256 apart so that loads are coalesced, before the tree
 * begins. The tree, with its barriers and idle threads, is paid once for 16,384 samples instead of 32 times, and rows
 * of up to that length need one launch.
 *
 * Association: thread t combines t, t + 256, t + 512, ... one by one; then as reduce-v2.
 */
#include "kernels/tutorial/reduce/reduce_tree.cuh"

struct v6 {
    static const int span = SPAN_reduce_v6;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        double value = Op::identity();
        for (int i = threadIdx.x; i < part.count; i += THREADS)
            value = Op::combine(value, Op::of(part.x[i]));
        results[threadIdx.x] = value;
        return block_tree<Op>(results);
    }
};

extern "C" int reduce_v6(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v6>(rows, workspace, stream);
}

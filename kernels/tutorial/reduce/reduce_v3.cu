/*
 * reduce-v3: no idle threads at the start.
 *
 * The change from reduce-v2: half of its threads did nothing but load a sample. Here every thread loads two and
 * combines them on the way, so a thread block of the same size takes twice as many samples and half as many blocks pay
 * for a tree.
 *
 * Association: of 512 samples, i and i + 256; then as reduce-v2.
 */
#include "kernels/tutorial/reduce/reduce.cuh"

struct v3 {
    static const int span = SPAN_reduce_v3;

    template <class Op, class In> static __device__ double block(struct part<In> part, double *results)
    {
        int t = threadIdx.x;
        results[t] = Op::combine(load<Op>(part, t), load<Op>(part, t + THREADS));
        for (int stride = THREADS / 2; stride > 0; stride /= 2) {
            __syncthreads();
            if (t < stride)
                results[t] = Op::combine(results[t], results[t + stride]);
        }
        return results[t];
    }
};

extern "C" int reduce_v3(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_run<v3>(rows, workspace, stream);
}

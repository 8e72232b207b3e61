/*
 * tensor-norm-3: many thread blocks; the first thread of each adds what the others found.
 *
 * The change from tensor-norm-2: thread blocks share a tensor, so that the whole GPU reads. Each thread leaves its sum
 * in shared memory; the first one adds all 256 and then adds that to the result, atomically, because other blocks do so
 * too. The other 255 wait for it. The root is taken by a kernel of its own, since nobody knows which block is last.
 * On an H200 100 tensors of a million samples take 0.21 ms instead of 1.53; for 10,000 of 10,000, which have a thread
 * block each in any case, it is slower, 0.22 instead of 0.18.
 *
 * Association: thread t of all T adds the squares of t, t + T, ... one by one; a block's sums one by one; the blocks'
 * as they arrive.
 */
#include "kernels/tutorial/norm/tensor.cuh"

struct first_thread {
    static __device__ double sum(double squares)
    {
        __shared__ double results[THREADS];
        results[threadIdx.x] = squares;
        __syncthreads();
        double sum = 0;
        for (int t = 0; threadIdx.x == 0 && t < THREADS; t++)
            sum += results[t];
        return sum;
    }
};

extern "C" int tensor_norm_3(const struct reduce_rows *rows, void *, cudaStream_t stream)
{
    return norms_run<first_thread>(rows, stream);
}

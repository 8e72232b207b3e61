/*
 * norm-5: several thread blocks per row.
 *
 * The change from norm-4: a row is cut into parts of 16,384 samples, each summed by a thread block of its own, and a
 * second launch adds the parts. With one thread block per row, 100 rows of a million samples leave most of the GPU idle
 * however fast a block is. Rows of one part are summed as in norm-4, and need no second launch.
 * On an H200 those 100 rows take 0.10 ms instead of 0.36, and 10,000 rows of 10,000 samples, which gain nothing, 0.102
 * instead of 0.097.
 *
 * Association: each part as norm-4 does a row, without the root; thread t adds parts t, t + 256, ... one by one, and
 * the 256 sums as in norm-3. The results of more than 16,384 parts again so.
 */
#include "kernels/tutorial/norm/norm.cuh"

struct parts {
    static const int span = SPAN_norm_5;

    /* Squares of samples. */
    template <class Op> static __device__ double block(struct part<float> part, double *results)
    {
        bool aligned = is_aligned(part.x);
        double sum = 0;
        for (int group = threadIdx.x; group < part.count / 4; group += THREADS)
            sum += squares_4(load_4(part.x + 4 * group, aligned));
        results[threadIdx.x] = sum + squares_rest(part.x, part.count);
        return block_tree<op_sum>(results);
    }

    /* Sums of parts. */
    template <class Op> static __device__ double block(struct part<double> part, double *results)
    {
        double sum = 0;
        for (int i = threadIdx.x; i < part.count; i += THREADS)
            sum += part.x[i];
        results[threadIdx.x] = sum;
        return block_tree<op_sum>(results);
    }
};

extern "C" int norm_5(const struct reduce_rows *rows, void *workspace, cudaStream_t stream)
{
    return levels_launch<parts, op_squares, op_sum>(rows, workspace, stream);
}

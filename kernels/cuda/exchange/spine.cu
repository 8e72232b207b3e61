#include "kernels/cuda/exchange/spine.h"

#include "kernels/cuda/exchange/spine.cuh"

#define SPINE_THREADS 256

cudaError_t scan_spine_load(const struct scan_spine *spine)
{
    cudaError_t error = cudaSuccess;
    for (const void *const *kernels : {spine->ups, spine->downs})
        for (int backward = 0; backward < 2 && !error; backward++)
            error = scan_kernel_load(kernels[backward]);
    return error;
}

/* Launches a kernel for so many threads of all rows, or for as many as are worth while. */
static cudaError_t level_launch(const void *kernel, void *level, struct scan_spine_rows rows, uint64_t threads,
                                cudaStream_t stream)
{
    void *arguments[] = {&level, &rows};
    return scan_kernel_launch(kernel, scan_least(scan_parts(threads, SPINE_THREADS), SCAN_GRID_MAX), SPINE_THREADS,
                              arguments, 0, stream);
}

cudaError_t scan_spine_up(const void *kernel, void *level, struct scan_spine_rows rows, cudaStream_t stream)
{
    return level_launch(kernel, level, rows, rows.rows * scan_groups(rows.members) * WARP, stream);
}

cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, struct scan_spine_rows rows,
                              cudaStream_t stream)
{
    cudaError_t error = scan_spine_up(spine->ups[backward], sums, rows, stream);
    if (error || rows.members <= ORDER_FAN)
        return error;
    struct scan_spine_rows above = rows;
    above.members = scan_groups(rows.members);
    error = scan_spine_launch(spine, backward, (char *)sums + rows.members * spine->sum_bytes, above, stream);
    return error ? error : level_launch(spine->downs[backward], sums, rows, rows.rows * rows.members, stream);
}

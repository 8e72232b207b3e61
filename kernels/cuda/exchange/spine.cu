#include "kernels/cuda/exchange/spine.h"

#include "kernels/cuda/exchange/spine.cuh"

cudaError_t scan_spine_load(const struct scan_spine *spine)
{
    cudaError_t error = cudaSuccess;
    for (const void *const *kernels : {spine->kernels, spine->ups, spine->downs})
        for (int backward = 0; backward < 2 && !error; backward++)
            error = scan_kernel_load(kernels[backward]);
    return error;
}

cudaError_t scan_level_launch(const void *kernel, void *level, uint64_t sums_per_row, uint64_t rows, uint64_t members,
                              cudaStream_t stream)
{
    void *arguments[] = {&level, &sums_per_row, &members};
    const uint64_t blocks = scan_parts(members, SPINE_LEVEL_THREADS);
    return scan_launched(cudaLaunchKernel(kernel, dim3((unsigned)scan_least(blocks, SCAN_GRID_MAX), (unsigned)rows),
                                          dim3(SPINE_LEVEL_THREADS), arguments, 0, stream));
}

cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, struct scan_spine_rows rows,
                              cudaStream_t stream)
{
    if (scan_level_is_alone(rows.blocks, rows.rows)) {
        void *arguments[] = {&sums, &rows};
        return scan_kernel_launch(spine->kernels[backward], scan_least(rows.rows, SCAN_GRID_MAX), SPINE_THREADS,
                                  arguments, 0, stream);
    }
    void *const groups = (char *)sums + rows.blocks * spine->sum_bytes;
    struct scan_spine_rows above = rows;
    above.blocks = scan_groups(rows.blocks);
    cudaError_t error =
        scan_level_launch(spine->ups[backward], sums, rows.sums_per_row, rows.rows, rows.blocks, stream);
    if (!error)
        error = scan_spine_launch(spine, backward, groups, above, stream);
    return error ? error
                 : scan_level_launch(spine->downs[backward], sums, rows.sums_per_row, rows.rows, rows.blocks, stream);
}

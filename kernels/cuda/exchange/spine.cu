#include "kernels/cuda/exchange/spine.h"

#include "kernels/cuda/exchange/spine.cuh"

#define SUMS 3

template <class Sum> static constexpr struct scan_carries carries_by()
{
    return {{(const void *)carries_kernel<Sum, false>, (const void *)carries_kernel<Sum, true>},
            sizeof(typename Sum::sum)};
}

static const struct scan_carries carries_of_sums[SUMS] = {carries_by<sum_f32>(), carries_by<sum_f64>(),
                                                          carries_by<sum_f2>()};

const struct scan_carries *scan_carries_of(enum scand_accumulator accumulator)
{
    return &carries_of_sums[accumulator == SCAND_ACCUMULATOR_F32 ? 0 : accumulator == SCAND_ACCUMULATOR_F64 ? 1 : 2];
}

cudaError_t scan_carries_load(const struct scan_carries *carries)
{
    cudaError_t error = scan_kernel_load(carries->kernels[0]);
    return error ? error : scan_kernel_load(carries->kernels[1]);
}

cudaError_t scan_carries_load_sums(void)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < SUMS && !error; i++)
        error = scan_carries_load(&carries_of_sums[i]);
    return error;
}

cudaError_t scan_carries_launch(const struct scan_carries *carries, bool backward, void *sums, uint64_t sums_per_row,
                                uint64_t rows, uint64_t blocks, cudaStream_t stream)
{
    void *arguments[] = {&sums, &sums_per_row, &rows, &blocks};
    return scan_kernel_launch(carries->kernels[backward], scan_least(rows, SCAN_GRID_MAX), CARRIES_THREADS, arguments,
                              0, stream);
}

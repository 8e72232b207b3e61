#include "index.h"
#include "kernels/steps/step.cuh"

#define THREADS   256
#define GRID_MAX  1024
#define NOT_FOUND UINT64_MAX

/* Element `number`, counted through the rows. */
static __device__ __forceinline__ uint64_t value_at(const struct step_rows &rows, uint64_t first, uint64_t number)
{
    const struct step_operand &index = rows.input;
    const char *row = step_row(&rows, &index, first + number / index.length);
    return step_decode_integer(index.dtype, row + (int64_t)(number % index.length) * index.stride);
}

static __global__ void index_begin(uint64_t *verdict)
{
    verdict[0] = NOT_FOUND;
}

static __global__ void __launch_bounds__(THREADS)
    index_look(const __grid_constant__ struct step_rows rows, uint64_t first, uint64_t elements,
               const struct index_range range, uint64_t *verdict)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += step)
        if (!index_has(range, value_at(rows, first, i)))
            atomicMin((unsigned long long *)verdict, (unsigned long long)i);
}

static __global__ void index_end(const __grid_constant__ struct step_rows rows, uint64_t first, uint64_t *verdict)
{
    if (verdict[0] != NOT_FOUND)
        verdict[1] = value_at(rows, first, verdict[0]);
}

extern "C" int index_launch(const struct step_rows *rows, uint64_t first, uint64_t count, struct index_range range,
                            uint64_t verdict[2], void *stream)
{
    const uint64_t elements = count * rows->input.length, blocks = (elements + THREADS - 1) / THREADS;
    cudaStream_t on = (cudaStream_t)stream;
    index_begin<<<1, 1, 0, on>>>(verdict);
    if (blocks > 0)
        index_look<<<(unsigned)(blocks < GRID_MAX ? blocks : GRID_MAX), THREADS, 0, on>>>(*rows, first, elements, range,
                                                                                          verdict);
    index_end<<<1, 1, 0, on>>>(*rows, first, verdict);
    return cudaGetLastError();
}

#include "tests/kernels/step_cuda.h"

#include <cuda_runtime.h>

#define ALIGNMENT 16 /* alignment of addresses, kept in the copy: it decides how samples are moved */

bool step_cuda_is_available(void)
{
    static int usable = -1;
    int count = 0;
    if (usable < 0)
        usable = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
    return usable;
}

static cudaError_t copy_in(struct step_cuda_memory *memory, bool mapped, char **base)
{
    const size_t bytes = memory->bytes + ALIGNMENT;
    cudaError_t e =
        mapped ? cudaHostAlloc((void **)base, bytes, cudaHostAllocMapped) : cudaMalloc((void **)base, bytes);
    if (e != cudaSuccess)
        return e;
    char *there = *base + (uintptr_t)memory->region % ALIGNMENT;
    if (memory->operand)
        memory->operand->origin = there + (memory->operand->origin - (char *)memory->region);
    return cudaMemcpy(there, memory->region, memory->bytes, cudaMemcpyDefault);
}

static cudaError_t copy_out(const struct step_cuda_memory *memory, const char *base)
{
    return cudaMemcpy(memory->region, base + (uintptr_t)memory->region % ALIGNMENT, memory->bytes, cudaMemcpyDefault);
}

static enum step_kernel_id id_of(const struct step_kernel *kernel)
{
    unsigned id = 0;
    while (step_kernels[id] != kernel)
        id++;
    return (enum step_kernel_id)id;
}

static cudaError_t run_halves(const struct step_kernel *kernel, step_launch *launch, const void *params,
                              const struct step_rows *rows)
{
    const uint64_t least = rows->row_count % 2 > 0 ? 1024 : 0;
    const struct step_tiles tiles =
        step_tiles_halved(kernel, step_tiles_of(kernel, rows, params, 0, rows->row_count), least);
    step_launch *start = launch ? launch : step_launches[id_of(kernel)];
    const uint64_t half = tiles.tile_count / 2;
    cudaError_t e = (cudaError_t)start(rows, params, &tiles, half, tiles.tile_count, NULL);
    if (e == cudaSuccess)
        e = (cudaError_t)start(rows, params, &tiles, 0, half, NULL);
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

/* Runs rows with a workspace that is no larger than it must be. */
static cudaError_t run_whole(const struct step_kernel *kernel, step_launch *launch, const void *params,
                             struct step_rows *rows)
{
    const uint64_t bytes = step_workspace_bytes(kernel, rows, params, rows->row_count);
    cudaError_t e = bytes > 0 ? cudaMalloc(&rows->workspace, bytes) : cudaSuccess;
    if (e == cudaSuccess)
        e = run_halves(kernel, launch, params, rows);
    cudaFree(rows->workspace);
    rows->workspace = NULL;
    return e;
}

/* Runs rows as devices do: long rows by parts, where a kernel divides them. */
static cudaError_t run_rows(const struct step_kernel *kernel, step_launch *launch, const void *params,
                            struct step_rows *rows)
{
    const struct step_parts *parts = launch ? NULL : step_parts_of(kernel, rows);
    void *numbers;
    if (!parts)
        return run_whole(kernel, launch, params, rows);
    cudaError_t e = cudaMalloc(&numbers, step_parts_bytes(parts, rows, rows->row_count) + 1);
    if (e != cudaSuccess)
        return e;
    const struct step_rows each = step_each_rows(parts, rows, 0, numbers);
    const struct step_rows joined = step_joined_rows(parts, rows, 0, numbers);
    e = run_halves(parts->each, NULL, params, &each);
    e = e == cudaSuccess ? run_halves(parts->joined, NULL, params, &joined) : e;
    cudaFree(numbers);
    return e;
}

static cudaError_t offsets_in(struct step_rows *rows, void **memory)
{
    const size_t bytes = (rows->row_count + 1) * sizeof *rows->offsets;
    if (!rows->offsets)
        return cudaSuccess;
    cudaError_t e = cudaMalloc(memory, bytes);
    rows->device_offsets = *memory;
    return e == cudaSuccess ? cudaMemcpy(*memory, rows->offsets, bytes, cudaMemcpyHostToDevice) : e;
}

const char *step_cuda_run(const struct step_kernel *kernel, step_launch *launch, const void *params,
                          struct step_rows *rows, const struct step_operand *shared, struct step_cuda_memory *memory,
                          unsigned count, bool mapped)
{
    char *bases[2 + STEP_FURTHER_MAX] = {NULL};
    void *offsets = NULL;
    cudaError_t e = offsets_in(rows, &offsets);
    for (unsigned i = 0; i < count && e == cudaSuccess; i++)
        if (memory[i].region)
            e = copy_in(&memory[i], mapped, &bases[i]);
    if (shared)
        rows->output = *shared;
    if (e == cudaSuccess)
        e = run_rows(kernel, launch, params, rows);
    for (unsigned i = 0; i < count && e == cudaSuccess; i++)
        if (memory[i].region)
            e = copy_out(&memory[i], bases[i]);
    for (unsigned i = 0; i < count; i++)
        mapped ? cudaFreeHost(bases[i]) : cudaFree(bases[i]);
    cudaFree(offsets);
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

const char *step_cuda_check(struct step_rows *rows, struct step_cuda_memory *memory, uint64_t first, uint64_t count,
                            struct index_range range, uint64_t verdict[2])
{
    const size_t bytes = 2 * sizeof *verdict;
    char *base = NULL;
    uint64_t *there = NULL;
    cudaError_t e = copy_in(memory, false, &base);
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&there, bytes);
    if (e == cudaSuccess)
        e = (cudaError_t)index_launch(rows, first, count, range, there, NULL);
    if (e == cudaSuccess)
        e = cudaMemcpy(verdict, there, bytes, cudaMemcpyDeviceToHost);
    cudaFree(base);
    cudaFree(there);
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

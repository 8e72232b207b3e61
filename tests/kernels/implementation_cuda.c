/* The CUDA kernels, on copies of the memory: in device memory and in mapped pinned host memory. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include "kernels/scan_cuda.h"
#include "tests/kernels/implementation.h"

#define ALIGNMENT 16 /* of addresses, kept in the copy: it decides how samples travel */

/* A region copied to where the device can reach it. */
struct copy {
    char *base; /* as the device sees it; NULL: none */
    void *memory;
    bool mapped;
};

static bool available(void)
{
    static int usable = -1;
    int count = 0;
    if (usable < 0)
        usable = cudaGetDeviceCount(&count) == cudaSuccess && count > 0 && scan_cuda_init() == cudaSuccess;
    return usable;
}

static cudaError_t copy_create(struct copy *copy, bool mapped, const void *region, size_t bytes)
{
    void *device;
    size_t misalignment = (uintptr_t)region % ALIGNMENT;
    copy->mapped = mapped;
    cudaError_t e = mapped ? cudaHostAlloc(&copy->memory, bytes + ALIGNMENT, cudaHostAllocMapped)
                           : cudaMalloc(&copy->memory, bytes + ALIGNMENT);
    if (e == cudaSuccess && mapped)
        e = cudaHostGetDevicePointer(&device, copy->memory, 0);
    /* Whole slots of 16 bytes are read, and the first and the last may lie partly outside the region. */
    if (e == cudaSuccess && !mapped)
        e = cudaMemset(copy->memory, 0xff, bytes + ALIGNMENT);
    if (e != cudaSuccess)
        return e;
    copy->base = (char *)(mapped ? device : copy->memory) + misalignment;
    return cudaMemcpy(copy->base, region, bytes, cudaMemcpyDefault);
}

static void copy_destroy(struct copy *copy)
{
    if (copy->mapped)
        cudaFreeHost(copy->memory);
    else
        cudaFree(copy->memory);
}

/* Ragged rows' offsets. */
static cudaError_t offsets_copy(struct scan_rows *rows, void **memory)
{
    size_t bytes = (rows->row_count + 1) * sizeof(*rows->offsets);
    if (!rows->offsets)
        return cudaSuccess;
    cudaError_t e = cudaMalloc(memory, bytes);
    rows->device_offsets = *memory;
    return e == cudaSuccess ? cudaMemcpy(*memory, rows->offsets, bytes, cudaMemcpyHostToDevice) : e;
}

static cudaError_t scan_copies(struct scan_rows rows, uint64_t first, uint64_t count, const struct scan_memory *memory,
                               char *input, char *output, const char *coefficients)
{
    void *workspace = NULL, *offsets = NULL;
    size_t workspace_bytes = scan_cuda_workspace_bytes(&rows, count);
    cudaError_t e = workspace_bytes ? cudaMalloc(&workspace, workspace_bytes) : cudaSuccess;
    if (e == cudaSuccess && workspace)
        e = cudaMemset(workspace, 0xff, workspace_bytes);
    if (e == cudaSuccess)
        e = offsets_copy(&rows, &offsets);
    rows.input = input + ((const char *)rows.input - (const char *)memory->input);
    rows.output = output + ((const char *)rows.output - (const char *)memory->output);
    if (rows.coefficients)
        rows.coefficients = coefficients + ((const char *)rows.coefficients - (const char *)memory->coefficients);
    if (e == cudaSuccess)
        e = (cudaError_t)scan_cuda(&rows, first, count, workspace, NULL);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    cudaFree(workspace);
    cudaFree(offsets);
    return e;
}

static int run(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory,
               bool mapped)
{
    struct copy input = {0}, output = {0}, coefficients = {0};
    bool in_place = memory->input == memory->output;
    cudaError_t e = copy_create(&input, mapped, memory->input, memory->input_bytes);
    if (e == cudaSuccess && !in_place)
        e = copy_create(&output, mapped, memory->output, memory->output_bytes);
    if (e == cudaSuccess && memory->coefficients)
        e = copy_create(&coefficients, mapped, memory->coefficients, memory->coefficient_bytes);
    char *result = in_place ? input.base : output.base;
    if (e == cudaSuccess)
        e = scan_copies(*rows, first, count, memory, input.base, result, coefficients.base);
    if (e == cudaSuccess)
        e = cudaMemcpy(memory->output, result, memory->output_bytes, cudaMemcpyDefault);
    copy_destroy(&input);
    copy_destroy(&output);
    copy_destroy(&coefficients);
    if (e != cudaSuccess)
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(e));
    return e;
}

static int run_device(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    return run(rows, first, count, memory, false);
}

static int run_mapped(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    return run(rows, first, count, memory, true);
}

const struct implementation cuda_implementations[] = {
    {"cuda", available, run_device},
    {"cuda-mapped", available, run_mapped},
};
const size_t cuda_implementation_count = sizeof(cuda_implementations) / sizeof(cuda_implementations[0]);

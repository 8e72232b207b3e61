/* The CUDA kernels, on copies of the memory: in device memory, in mapped pinned host memory, in small parts that share
 * launches, by ranges, and on two streams; by every path that can take the rows; by those that other devices choose. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/scan_cuda_by.h"
#include "kernels/order1/order.h"
#include "tests/kernels/implementation.h"

#define ALIGNMENT 16 /* alignment of addresses, kept in the copy: it decides how samples are moved */

/* A region copied to where the device can reach it. */
struct copy {
    char *base; /* the copy as the device sees it; NULL: none */
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
    /* Kernels read whole slots of 16 bytes, and the first and the last slot may lie partly outside the region. */
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

/* Copies ragged rows' offsets. */
static cudaError_t offsets_copy(struct scan_rows *rows, void **memory)
{
    size_t bytes = (rows->row_count + 1) * sizeof(*rows->offsets);
    if (!rows->offsets)
        return cudaSuccess;
    cudaError_t e = cudaMalloc(memory, bytes);
    rows->device_offsets = *memory;
    return e == cudaSuccess ? cudaMemcpy(*memory, rows->offsets, bytes, cudaMemcpyHostToDevice) : e;
}

/* Returns the workspace's size as a daemon has it that has scanned other rows before: not 0, even where none is needed.
 */
static size_t workspace_bytes_of(const struct scan_rows *rows, uint64_t count)
{
    size_t bytes = scan_cuda_workspace_bytes(rows, count);
    return bytes ? bytes : 16;
}

/* The ways to scan rows that the device can reach. */
typedef cudaError_t scan_way(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace);

static cudaError_t scan_at_once(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace)
{
    return (cudaError_t)scan_cuda(rows, first, count, workspace, NULL);
}

/* A few rows at a time, several such parts in a launch, where they may. */
static cudaError_t scan_in_parts(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace)
{
    const uint64_t most = 5, end = first + count;
    struct scan_part parts[SCAN_TOGETHER];
    unsigned part_count = 0;
    cudaError_t e = cudaSuccess;
    if (!scan_cuda_group(rows, most))
        return scan_at_once(rows, first, count, workspace);
    for (uint64_t row = first; row < end && e == cudaSuccess;) {
        uint64_t wanted = 1 + row % most, taken = wanted < end - row ? wanted : end - row;
        parts[part_count++] = (struct scan_part){rows, row, taken};
        row += taken;
        if (part_count < SCAN_TOGETHER && row < end)
            continue;
        e = (cudaError_t)scan_cuda_together(parts, part_count, NULL);
        part_count = 0;
    }
    return e;
}

/* Rows of several order blocks a few of them at a time, row after row. */
static cudaError_t scan_by_ranges(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace)
{
    cudaError_t e = cudaSuccess;
    for (uint64_t row = first; row < first + count && e == cudaSuccess; row++) {
        const uint64_t length = rows->offsets ? rows->offsets[row + 1] - rows->offsets[row] : rows->length;
        const uint64_t blocks = 1 + length % 5;
        if (length <= ORDER_BLOCK) {
            e = (cudaError_t)scan_cuda(rows, row, 1, workspace, NULL);
            continue;
        }
        for (uint64_t n = 0; n < scan_cuda_range_count(rows, row, blocks) && e == cudaSuccess; n++)
            e = (cudaError_t)scan_cuda_range(rows, row, blocks, n, workspace, NULL);
    }
    return e;
}

static cudaError_t scan_copies(struct scan_rows rows, uint64_t first, uint64_t count, const struct scan_memory *memory,
                               char *input, char *output, const char *coefficients, scan_way *scan)
{
    void *workspace = NULL, *offsets = NULL;
    size_t workspace_bytes = workspace_bytes_of(&rows, count);
    cudaError_t e = cudaMalloc(&workspace, workspace_bytes);
    if (e == cudaSuccess)
        e = cudaMemset(workspace, 0xff, workspace_bytes);
    if (e == cudaSuccess)
        e = offsets_copy(&rows, &offsets);
    rows.input = input + ((const char *)rows.input - (const char *)memory->input);
    rows.output = output + ((const char *)rows.output - (const char *)memory->output);
    if (rows.coefficients)
        rows.coefficients = coefficients + ((const char *)rows.coefficients - (const char *)memory->coefficients);
    if (e == cudaSuccess)
        e = scan(&rows, first, count, workspace);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    cudaFree(workspace);
    cudaFree(offsets);
    return e;
}

static int run(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory,
               bool mapped, scan_way *scan)
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
        e = scan_copies(*rows, first, count, memory, input.base, result, coefficients.base, scan);
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
    return run(rows, first, count, memory, false, scan_at_once);
}

static int run_mapped(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    return run(rows, first, count, memory, true, scan_at_once);
}

static int run_together(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    return run(rows, first, count, memory, false, scan_in_parts);
}

static int run_ranges(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    return run(rows, first, count, memory, false, scan_by_ranges);
}

/* One of several scans of the same rows that are on their way at once. */
struct lane {
    struct copy input, output;
    void *workspace;
    cudaStream_t stream;
};

static cudaError_t lane_create(struct lane *lane, const struct scan_rows *rows, uint64_t count,
                               const struct scan_memory *memory)
{
    cudaError_t e = copy_create(&lane->input, false, memory->input, memory->input_bytes);
    if (e == cudaSuccess && memory->input != memory->output)
        e = copy_create(&lane->output, false, memory->output, memory->output_bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&lane->workspace, workspace_bytes_of(rows, count));
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

static void lane_destroy(struct lane *lane)
{
    copy_destroy(&lane->input);
    copy_destroy(&lane->output);
    cudaFree(lane->workspace);
    if (lane->stream)
        cudaStreamDestroy(lane->stream);
}

static char *lane_result(const struct lane *lane)
{
    return lane->output.base ? lane->output.base : lane->input.base;
}

static cudaError_t lane_scan(const struct lane *lane, struct scan_rows rows, uint64_t first, uint64_t count,
                             const struct scan_memory *memory)
{
    rows.input = lane->input.base + ((const char *)rows.input - (const char *)memory->input);
    rows.output = lane_result(lane) + ((const char *)rows.output - (const char *)memory->output);
    return (cudaError_t)scan_cuda(&rows, first, count, lane->workspace, lane->stream);
}

/* Scans on two streams at once, several times where possible: the scans compete for the device. */
static int run_streams(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    struct lane lanes[2] = {0};
    struct scan_rows there = *rows;
    void *offsets = NULL;
    const int scans = memory->input == memory->output ? 1 : 4;
    void *second = malloc(memory->output_bytes);
    cudaError_t e = second ? offsets_copy(&there, &offsets) : cudaErrorMemoryAllocation;
    for (int i = 0; i < 2 && e == cudaSuccess; i++)
        e = lane_create(&lanes[i], rows, count, memory);
    for (int i = 0; i < 2 * scans && e == cudaSuccess; i++)
        e = lane_scan(&lanes[i % 2], there, first, count, memory);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e == cudaSuccess)
        e = cudaMemcpy(memory->output, lane_result(&lanes[0]), memory->output_bytes, cudaMemcpyDefault);
    if (e == cudaSuccess)
        e = cudaMemcpy(second, lane_result(&lanes[1]), memory->output_bytes, cudaMemcpyDefault);
    bool same = e == cudaSuccess && memcmp(second, memory->output, memory->output_bytes) == 0;
    for (int i = 0; i < 2; i++)
        lane_destroy(&lanes[i]);
    cudaFree(offsets);
    free(second);
    if (!same)
        fprintf(stderr, "CUDA: %s\n", e != cudaSuccess ? cudaGetErrorString(e) : "two streams came to different bits");
    return same ? 0 : -1;
}

/* The path or compute capability by which scan_chosen scans. */
static struct scan_choice choice;

static cudaError_t scan_chosen(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace)
{
    return (cudaError_t)scan_cuda_by(&choice, rows, first, count, workspace, NULL);
}

/* The output after all paths so far, and as it was before. */
struct outputs {
    void *before, *first;
    unsigned paths;
};

/* A path's output, which is to be that of the paths before. One that the device has no room for leaves it alone. */
static cudaError_t path_check(enum select_path path, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              const struct scan_memory *memory, struct outputs *outputs)
{
    memcpy(memory->output, outputs->before, memory->output_bytes);
    choice = (struct scan_choice){.path = path};
    const cudaError_t e = (cudaError_t)run(rows, first, count, memory, false, scan_chosen);
    if (e == SELECT_NO_ROOM)
        return cudaSuccess;
    if (e == cudaSuccess && outputs->paths++ == 0)
        memcpy(outputs->first, memory->output, memory->output_bytes);
    if (e == cudaSuccess && memcmp(outputs->first, memory->output, memory->output_bytes) == 0)
        return e;
    fprintf(stderr, "the path %s failed, or came to other bits than the first one\n", select_word(path));
    return e == cudaSuccess ? cudaErrorUnknown : e;
}

/* Scans by one path after the other; the reference is compared with the first. */
static int run_paths(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *memory)
{
    struct outputs outputs = {malloc(memory->output_bytes), malloc(memory->output_bytes), 0};
    const bool nothing = count == 0 || (rows->length == 0 && rows->rule.operation == SCAND_OPERATION_SCAN);
    cudaError_t e = outputs.before && outputs.first ? cudaSuccess : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        memcpy(outputs.before, memory->output, memory->output_bytes);
    for (int path = 0; path < SELECT_PATH_COUNT && e == cudaSuccess; path++)
        if (scan_cuda_can((enum select_path)path, rows, first, count))
            e = path_check((enum select_path)path, rows, first, count, memory, &outputs);
    if (e == cudaSuccess && outputs.paths > 0)
        memcpy(memory->output, outputs.first, memory->output_bytes);
    free(outputs.before);
    free(outputs.first);
    return e == cudaSuccess && outputs.paths == 0 && !nothing ? -1 : (int)e;
}

static int run_as(int capability, const struct scan_rows *rows, uint64_t first, uint64_t count,
                  const struct scan_memory *memory)
{
    choice = (struct scan_choice){.path = SCAN_BY_TABLE, .capability = capability};
    return run(rows, first, count, memory, false, scan_chosen);
}

#define CAPABILITIES(X) X(75) X(80) X(86) X(120)
#define X(NUMBER)                                                                            \
    static int run_as_##NUMBER(const struct scan_rows *rows, uint64_t first, uint64_t count, \
                               const struct scan_memory *memory)                             \
    {                                                                                        \
        return run_as(NUMBER, rows, first, count, memory);                                   \
    }
CAPABILITIES(X)
#undef X

#define X(NUMBER) {"capability_" #NUMBER, available, run_as_##NUMBER},
const struct implementation cuda_choices[] = {{"paths", available, run_paths}, CAPABILITIES(X)};
#undef X
const size_t cuda_choice_count = sizeof(cuda_choices) / sizeof(cuda_choices[0]);

const struct implementation cuda_implementations[] = {
    {"cuda", available, run_device},   {"cuda-mapped", available, run_mapped}, {"together", available, run_together},
    {"ranges", available, run_ranges}, {"streams", available, run_streams},
};
const size_t cuda_implementation_count = sizeof(cuda_implementations) / sizeof(cuda_implementations[0]);

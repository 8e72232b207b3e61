/*
 * The kernels in device memory, against a copy of the same bytes: one read and one write of every sample are the least
 * that a scan can do.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/codec.h"
#include "kernels/scan_cuda.h"
#include "tests/bench/bench.h"

#define RUNS     31
#define WARM_UPS 3

/* Rows that are scanned forward, then backward. */
static const struct shape {
    uint64_t rows, length;
    double targets[3]; /* of the speed of a copy: f32, f64, f2 */
} shapes[] = {
    {10000, 10000, {0.93, 0.85, 0.65}},
    {10000, 10007, {0}},
    {50000, 2000, {0}},
    {100000, 1000, {0}},
    {200000, 500, {0}},
    {781250, 128, {0}},
    {3125000, 32, {0}},
    {9090909, 11, {0}},
    {100, 1000000, {0}},
};
#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

struct device {
    float *input, *output;
    void *workspace;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

static size_t bytes_of(const struct shape *shape)
{
    return shape->rows * shape->length * sizeof(float);
}

static struct scan_rows rows_of(const struct device *device, const struct shape *shape,
                                enum scand_accumulator accumulator)
{
    int64_t stride = (int64_t)(shape->length * sizeof(float));
    return (struct scan_rows){
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2, .accumulator = accumulator},
        .length = shape->length,
        .row_count = shape->rows,
        .outer_rank = 1,
        .outer_shape = {shape->rows},
        .input_outer_strides = {stride},
        .output_outer_strides = {stride},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = device->input,
        .output = device->output,
    };
}

/* Zeros would be faster to move than data. */
static cudaError_t fill(float *samples, size_t bytes)
{
    float *host = malloc(bytes);
    if (!host)
        return cudaErrorMemoryAllocation;
    uint32_t random = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        random = random * 1664525u + 1013904223u;
        host[i] = (float)(random >> 8) / 8388608.0f - 1.0f;
    }
    cudaError_t e = cudaMemcpy(samples, host, bytes, cudaMemcpyHostToDevice);
    free(host);
    return e;
}

static cudaError_t device_init(struct device *device)
{
    size_t bytes = 0, workspace_bytes = 0;
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        struct scan_rows rows = rows_of(device, &shapes[i], SCAND_ACCUMULATOR_F64);
        size_t needed = scan_cuda_workspace_bytes(&rows, rows.row_count);
        bytes = bytes_of(&shapes[i]) > bytes ? bytes_of(&shapes[i]) : bytes;
        workspace_bytes = needed > workspace_bytes ? needed : workspace_bytes;
    }
    cudaError_t e = (cudaError_t)scan_cuda_init();
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&device->input, bytes);
    if (e == cudaSuccess)
        e = cudaMalloc((void **)&device->output, bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&device->workspace, workspace_bytes);
    if (e == cudaSuccess)
        e = cudaStreamCreate(&device->stream);
    if (e == cudaSuccess)
        e = cudaEventCreate(&device->begin);
    if (e == cudaSuccess)
        e = cudaEventCreate(&device->end);
    return e == cudaSuccess ? fill(device->input, bytes) : e;
}

static void device_finish(struct device *device)
{
    cudaFree(device->input);
    cudaFree(device->output);
    cudaFree(device->workspace);
    if (device->begin)
        cudaEventDestroy(device->begin);
    if (device->end)
        cudaEventDestroy(device->end);
    if (device->stream)
        cudaStreamDestroy(device->stream);
}

/* The median of RUNS scans, or of copies of as many bytes when `rows` is NULL. */
static cudaError_t measure(const struct device *device, const struct scan_rows *rows, size_t bytes,
                           double *milliseconds)
{
    double times_ms[RUNS];
    cudaError_t e = cudaSuccess;
    for (int i = -WARM_UPS; i < RUNS && e == cudaSuccess; i++) {
        float ms = 0;
        cudaEventRecord(device->begin, device->stream);
        e = rows ? (cudaError_t)scan_cuda(rows, 0, rows->row_count, device->workspace, device->stream)
                 : cudaMemcpyAsync(device->output, device->input, bytes, cudaMemcpyDeviceToDevice, device->stream);
        cudaEventRecord(device->end, device->stream);
        if (e == cudaSuccess)
            e = cudaEventSynchronize(device->end);
        if (e == cudaSuccess)
            e = cudaEventElapsedTime(&ms, device->begin, device->end);
        if (i >= 0)
            times_ms[i] = ms;
    }
    *milliseconds = e == cudaSuccess ? bench_median(times_ms, RUNS) : 0;
    return e;
}

static cudaError_t measure_shape(const struct device *device, const struct shape *shape, struct bench_table *table)
{
    static const char *const words[] = {
#define X(NAME, WORD) WORD,
        SCAND_ACCUMULATORS(X)
#undef X
    };
    char copy[64], name[64];
    double copy_ms, scan_ms;
    snprintf(copy, sizeof copy, "device copy, %llu x %llu", (unsigned long long)shape->rows,
             (unsigned long long)shape->length);
    cudaError_t e = measure(device, NULL, bytes_of(shape), &copy_ms);
    if (e == cudaSuccess)
        bench_add(table, copy, "", copy_ms, 0, 0);
    for (int i = SCAND_ACCUMULATOR_F32; i <= SCAND_ACCUMULATOR_F2 && e == cudaSuccess; i++) {
        struct scan_rows rows = rows_of(device, shape, (enum scand_accumulator)i);
        e = measure(device, &rows, 0, &scan_ms);
        snprintf(name, sizeof name, "scan fb %s, %llu x %llu", words[i], (unsigned long long)shape->rows,
                 (unsigned long long)shape->length);
        if (e == cudaSuccess)
            bench_add(table, name, copy, scan_ms, copy_ms / scan_ms, shape->targets[i - SCAND_ACCUMULATOR_F32]);
    }
    return e;
}

/* What the general kernel does, forward and backward over one shape; input and output have one dtype. */
static const struct form {
    const char *name;
    enum scand_operator op;
    enum scand_dtype dtype;
    enum scand_accumulator accumulator;
} forms[] = {
    {"max f32", SCAND_OPERATOR_MAX, SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F32},
    {"prod f32", SCAND_OPERATOR_PROD, SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F32},
    {"sum f64", SCAND_OPERATOR_SUM, SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F64},
    {"sum i32", SCAND_OPERATOR_SUM, SCAND_DTYPE_I32, SCAND_ACCUMULATOR_EXACT},
    {"sum i64", SCAND_OPERATOR_SUM, SCAND_DTYPE_I64, SCAND_ACCUMULATOR_EXACT},
    {"sum f16 by f32", SCAND_OPERATOR_SUM, SCAND_DTYPE_F16, SCAND_ACCUMULATOR_F32},
    {"sum f32be by f64", SCAND_OPERATOR_SUM, SCAND_DTYPE_F32BE, SCAND_ACCUMULATOR_F64},
    {"sum ibm32 by f64", SCAND_OPERATOR_SUM, SCAND_DTYPE_IBM32, SCAND_ACCUMULATOR_F64},
};
#define FORM_COUNT   (sizeof(forms) / sizeof(forms[0]))
#define FORM_ROWS    5000
#define FORM_SAMPLES 10000

static cudaError_t measure_form(const struct device *device, const struct form *form, struct bench_table *table)
{
    const struct shape shape = {.rows = FORM_ROWS, .length = FORM_SAMPLES};
    struct scan_rows rows = rows_of(device, &shape, form->accumulator);
    uint32_t size = codec_bytes(form->dtype);
    size_t bytes = (size_t)FORM_ROWS * FORM_SAMPLES * size;
    double copy_ms, scan_ms;
    char name[64];
    rows.rule.op = form->op;
    rows.rule.input = rows.rule.output = form->dtype;
    rows.input_stride = rows.output_stride = size;
    rows.input_outer_strides[0] = rows.output_outer_strides[0] = (int64_t)FORM_SAMPLES * size;
    cudaError_t e = measure(device, NULL, bytes, &copy_ms);
    if (e == cudaSuccess)
        e = measure(device, &rows, 0, &scan_ms);
    snprintf(name, sizeof name, "scan fb %s, %d x %d", form->name, FORM_ROWS, FORM_SAMPLES);
    if (e == cudaSuccess)
        bench_add(table, name, "device copy of as much", scan_ms, copy_ms / scan_ms, 0);
    return e;
}

int bench_kernels(struct bench_table *table)
{
    struct device device = {0};
    cudaError_t e = device_init(&device);
    for (size_t i = 0; i < SHAPE_COUNT && e == cudaSuccess; i++)
        e = measure_shape(&device, &shapes[i], table);
    for (size_t i = 0; i < FORM_COUNT && e == cudaSuccess; i++)
        e = measure_form(&device, &forms[i], table);
    device_finish(&device);
    if (e != cudaSuccess)
        fprintf(stderr, "bench_kernels: %s\n", cudaGetErrorString(e));
    return e != cudaSuccess;
}

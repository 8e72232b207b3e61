/* The least time of a small job: its kernel, on host memory as it is, and waiting for the kernel. */
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/cuda/scan_cuda.h"
#include "tests/bench/bench.h"
#include "tests/bench/job.h"

#define RUNS    2001
#define SAMPLES 1000

static struct scan_rows one_row(float *memory)
{
    return (struct scan_rows){.rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                       .pass_count = 2,
                                       .accumulator = SCAND_ACCUMULATOR_F64},
                              .length = SAMPLES,
                              .row_count = 1,
                              .outer_rank = 1,
                              .outer_shape = {1},
                              .input_outer_strides = {SAMPLES * sizeof(float)},
                              .output_outer_strides = {SAMPLES * sizeof(float)},
                              .input_stride = sizeof(float),
                              .output_stride = sizeof(float),
                              .input = memory,
                              .output = memory};
}

int bench_mapped_kernel(double *median_ms)
{
    double times_ms[RUNS];
    float *memory = NULL;
    cudaStream_t stream;
    int error = scan_cuda_init();
    if (!error)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error)
        return job_fail("a stream", error);
    error = cudaHostAlloc((void **)&memory, SAMPLES * sizeof *memory, cudaHostAllocMapped);
    if (!error)
        memset(memory, 0, SAMPLES * sizeof *memory);
    const struct scan_rows rows = one_row(memory);
    for (int i = 0; i < RUNS && !error; i++) {
        double begin_ms = bench_now_ms();
        error = scan_cuda(&rows, 0, 1, NULL, stream);
        if (!error)
            error = cudaStreamSynchronize(stream);
        times_ms[i] = bench_now_ms() - begin_ms;
    }
    cudaFreeHost(memory);
    cudaStreamDestroy(stream);
    *median_ms = error ? 0 : bench_median(times_ms, RUNS);
    return job_fail("kernel on mapped memory", error);
}

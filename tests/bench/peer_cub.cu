/*
 * peer_cub ROWS LENGTH RUNS: CUB's time for sums of rows of f32, forward and then backward, as peers.py wants it: a
 * name, milliseconds and the error, parted by tabs. By segments, where this CUB scans them (from 3.3 on); else by key,
 * as the variant cub-by-key.
 */
#if __has_include(<cub/device/device_segmented_scan.cuh>)
#include <cub/device/device_segmented_scan.cuh>
#define WAY "DeviceSegmentedScan"
#else
#include <cub/device/device_scan.cuh>
#define WAY "DeviceScan, by key"
#endif
#include <cub/version.cuh>
#include <cuda/std/functional>
#include <cuda/std/iterator>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define WARM_RUNS    3
#define CHECKED_ROWS 4

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "peer_cub: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

struct times_length {
    int64_t length;

    __host__ __device__ int64_t operator()(int64_t row) const { return row * length; }
};

struct row_of {
    uint32_t length;

    __host__ __device__ uint32_t operator()(uint32_t index) const { return index / length; }
};

/* All rows, from wherever the iterators begin. */
template <class In, class Out>
static cudaError_t rows_scan(void *workspace, size_t *bytes, In from, Out to, int64_t rows, int64_t length)
{
#if __has_include(<cub/device/device_segmented_scan.cuh>)
    auto offsets = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), times_length{length});
    return cub::DeviceSegmentedScan::InclusiveSegmentedSum(workspace, *bytes, from, to, offsets, offsets + 1, rows);
#else
    auto keys = thrust::make_transform_iterator(thrust::counting_iterator<uint32_t>(0), row_of{(uint32_t)length});
    return cub::DeviceScan::InclusiveSumByKey(workspace, *bytes, keys, from, to, (uint32_t)(rows * length),
                                              ::cuda::std::equal_to<>());
#endif
}

/* Scans forward, then backward from the end of the array, where the last row is the first. */
static void both(void *workspace, size_t bytes, const float *x, float *y, int64_t rows, int64_t length)
{
    ::cuda::std::reverse_iterator<float *> end(y + rows * length);
    check(rows_scan(workspace, &bytes, x, y, rows, length), "forward");
    check(rows_scan(workspace, &bytes, end, end, rows, length), "backward");
}

static size_t workspace_bytes(const float *x, float *y, int64_t rows, int64_t length)
{
    ::cuda::std::reverse_iterator<float *> end(y + rows * length);
    size_t forward = 0, backward = 0;
    check(rows_scan(NULL, &forward, x, y, rows, length), "workspace");
    check(rows_scan(NULL, &backward, end, end, rows, length), "workspace");
    return std::max(forward, backward);
}

template <class Run> static float median_ms(int runs, Run run)
{
    std::vector<float> times;
    cudaEvent_t start, end;
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&end), "event");
    for (int i = -WARM_RUNS; i < runs; i++) {
        float ms;
        cudaEventRecord(start);
        run();
        cudaEventRecord(end);
        check(cudaEventSynchronize(end), "run");
        check(cudaEventElapsedTime(&ms, start, end), "time");
        if (i >= 0)
            times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/* Returns the error of the first rows, as a share of their largest value. */
static double error_of(const std::vector<float> &x, const float *device_y, int64_t length)
{
    std::vector<float> y(CHECKED_ROWS * length);
    std::vector<double> exact(length);
    double worst = 0, largest = 0;
    check(cudaMemcpy(y.data(), device_y, y.size() * sizeof(float), cudaMemcpyDeviceToHost), "result");
    for (int64_t row = 0; row < CHECKED_ROWS; row++) {
        double sum = 0;
        for (int64_t i = 0; i < length; i++)
            exact[i] = sum += x[row * length + i];
        sum = 0;
        for (int64_t i = length; i-- > 0;) {
            sum += exact[i];
            worst = std::max(worst, std::fabs(sum - y[row * length + i]));
            largest = std::max(largest, std::fabs(sum));
        }
    }
    return worst / largest;
}

int main(int argc, char **argv)
{
    const int64_t rows = argc == 4 ? atoll(argv[1]) : 0, length = argc == 4 ? atoll(argv[2]) : 0;
    const int runs = argc == 4 ? atoi(argv[3]) : 0;
    if (rows < CHECKED_ROWS || length < 1 || runs < 1 || rows * length > INT32_MAX) {
        fprintf(stderr, "usage: peer_cub ROWS LENGTH RUNS; %d rows or more, of at most 2^31 - 1 samples in all\n",
                CHECKED_ROWS);
        return 64;
    }
    std::vector<float> samples(rows * length);
    uint32_t random = 1;
    for (float &sample : samples) {
        random = random * 1664525u + 1013904223u;
        sample = (float)(int32_t)random * 0x1p-31f;
    }
    const size_t bytes = samples.size() * sizeof(float);
    float *x, *y;
    void *workspace;
    check(cudaMalloc(&x, bytes), "memory");
    check(cudaMalloc(&y, bytes), "memory");
    check(cudaMemcpy(x, samples.data(), bytes, cudaMemcpyHostToDevice), "samples");
    const size_t needed = workspace_bytes(x, y, rows, length);
    check(cudaMalloc(&workspace, needed), "workspace");
    printf("device copy\t%.4f\t\n",
           median_ms(runs, [&] { check(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice), "copy"); }));
    const float ms = median_ms(runs, [&] { both(workspace, needed, x, y, rows, length); });
    printf("CUB %d.%d.%d " WAY "\t%.4f\t%.1e\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, ms,
           error_of(samples, y, length));
    return 0;
}

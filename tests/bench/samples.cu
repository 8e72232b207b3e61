#include "tests/bench/samples.h"

#include "kernels/order1/dtypes.h"

#define THREADS 256
#define GRID    4096

/* Returns splitmix64 of an index. */
static __device__ uint64_t random_at(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static __global__ void noise_kernel(char *region, enum scand_dtype dtype, uint32_t bytes, uint64_t count)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * THREADS) {
        int64_t random = (int64_t)random_at(i);
        double real = (double)(random >> 11) * 0x1p-52;
        if (codec_is_integer(dtype))
            codec_encode_integer(dtype, (uint64_t)(random >> 32), region + i * bytes);
        else if (codec_class(dtype) == SCAND_CLASS_F64)
            codec_encode_f64(dtype, real, region + i * bytes);
        else
            codec_encode_f32(dtype, (float)(dtype == SCAND_DTYPE_F16 ? real / 64 : real), region + i * bytes);
    }
}

extern "C" int samples_noise(void *region, enum scand_dtype dtype, uint64_t count)
{
    noise_kernel<<<GRID, THREADS>>>((char *)region, dtype, codec_bytes(dtype), count);
    return cudaGetLastError();
}

static __device__ unsigned differing;

static __global__ void compare_kernel(const uint32_t *a, const uint32_t *b, uint64_t count)
{
    bool differs = false;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * THREADS)
        differs |= a[i] != b[i];
    if (differs)
        differing = 1;
}

extern "C" int samples_compare(const void *a, const void *b, uint64_t bytes, bool *same)
{
    unsigned found = 0;
    cudaError_t error = cudaMemcpyToSymbol(differing, &found, sizeof(found));
    if (!error) {
        compare_kernel<<<GRID, THREADS>>>((const uint32_t *)a, (const uint32_t *)b, bytes / sizeof(uint32_t));
        error = cudaGetLastError();
    }
    if (!error)
        error = cudaMemcpyFromSymbol(&found, differing, sizeof(found));
    *same = found == 0;
    return error;
}

/* Samples first <= i < first + count of every row_step-th row, decoded, row after row. */
static __global__ void fetch_kernel(struct samples_side side, uint64_t row, uint64_t row_step, uint64_t rows,
                                    uint64_t first, uint64_t count, double *out)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < rows * count;
         i += (uint64_t)gridDim.x * THREADS) {
        const char *at = (const char *)side.base + (int64_t)((row + i / count) * row_step) * side.row_stride +
                         (int64_t)(first + i % count) * side.stride;
        out[i] = codec_class(side.dtype) == SCAND_CLASS_F64 ? codec_decode_f64(side.dtype, at)
                                                            : (double)codec_decode_f32(side.dtype, at);
    }
}

static cudaError_t reader_fetch(struct samples_reader *reader)
{
    uint64_t samples = reader->fetched_rows * reader->fetched;
    fetch_kernel<<<GRID, THREADS>>>(reader->side, reader->row, reader->row_step, reader->fetched_rows, reader->first,
                                    reader->fetched, reader->device);
    cudaError_t error = cudaGetLastError();
    return error ? error : cudaMemcpy(reader->host, reader->device, samples * sizeof(double), cudaMemcpyDeviceToHost);
}

/* A whole row comes with the rows that follow it, as far as there is room. */
static const double *reader_read(struct exact_source *source, uint64_t row, uint64_t first, uint64_t count)
{
    struct samples_reader *reader = (struct samples_reader *)source;
    bool there = row - reader->row < reader->fetched_rows && first == reader->first && count == reader->fetched;
    if (!there) {
        uint64_t room = SAMPLES_AT_ONCE / count, left = reader->rows - row;
        reader->row = row;
        reader->first = first;
        reader->fetched = count;
        reader->fetched_rows = count < reader->length ? 1 : room < left ? room : left;
        if (count > SAMPLES_AT_ONCE || reader_fetch(reader))
            return NULL;
    }
    return reader->host + (row - reader->row) * count;
}

extern "C" int samples_reader_init(struct samples_reader *reader, const struct samples_side *side, uint64_t rows,
                                   uint64_t length, uint64_t row_step)
{
    *reader = {{reader_read}, *side, rows, length, row_step};
    uint64_t room = rows * length < SAMPLES_AT_ONCE ? rows * length : SAMPLES_AT_ONCE;
    cudaError_t error = cudaMalloc((void **)&reader->device, room * sizeof(double));
    if (!error)
        error = cudaMallocHost((void **)&reader->host, room * sizeof(double));
    if (error)
        cudaFree(reader->device);
    return error;
}

extern "C" void samples_reader_finish(struct samples_reader *reader)
{
    cudaFree(reader->device);
    cudaFreeHost(reader->host);
}

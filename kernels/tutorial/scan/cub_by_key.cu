/*
 * cub-by-key: the library's way.
 *
 * CUB scans one array, and by key: sums begin anew where the key changes. With the number of the row as the key,
 * computed from the index instead of stored, all rows are one such scan; with iterators that run backwards the same
 * call makes the backward pass. It knows nothing of rows, so it cannot use that a sum never crosses from one to the
 * next.
 *
 * Association: CUB's, which depends on the library's version and GPU; and its look-back adds what it finds when it
 * looks, so two runs need not give the same bits.
 */
#include <cub/device/device_scan.cuh>
#include <cuda/std/iterator>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "kernels/tutorial/scan/common.cuh"

#define SAMPLES_MAX UINT32_C(0x80000000) /* samples of a call, since indices are 32-bit; more take several calls */

/* Maps an index to the number of its row. */
struct row_number {
    uint32_t length;

    __host__ __device__ uint32_t operator()(uint32_t index) const { return index / length; }
};

/* Maps an index to its sample, in the order of a pass, for rows with gaps between them. */
struct sample_offset {
    uint32_t length;
    int64_t pitch, step; /* in samples */

    __host__ __device__ int64_t operator()(uint32_t index) const
    {
        return (int64_t)(index / length) * pitch + (int64_t)(index % length) * step;
    }
};

template <class In, class Out>
static cudaError_t scan_by_key(void *workspace, size_t *bytes, In x, Out y, uint64_t rows, uint64_t length,
                               cudaStream_t stream)
{
    auto keys = thrust::make_transform_iterator(thrust::counting_iterator<uint32_t>(0), row_number{(uint32_t)length});
    return cub::DeviceScan::InclusiveSumByKey(workspace, *bytes, keys, x, y, (uint32_t)(rows * length),
                                              ::cuda::std::equal_to<>(), stream);
}

static auto samples_of(struct side side, uint64_t length)
{
    struct sample_offset offset = {(uint32_t)length, side.pitch / (int64_t)sizeof(float), side.step};
    auto offsets = thrust::make_transform_iterator(thrust::counting_iterator<uint32_t>(0), offset);
    return thrust::make_permutation_iterator((float *)side.first, offsets);
}

static bool is_packed(struct side side, uint64_t length)
{
    return side.pitch == (int64_t)(length * sizeof(float));
}

/* Scans all rows. Packed rows are one array: forward from its beginning, and backward from its end, where the last row
 * comes first. */
static cudaError_t rows_scan(void *workspace, size_t *bytes, const struct pass &pass, cudaStream_t stream)
{
    uint64_t rows = pass.rows, length = pass.length;
    if (!is_packed(pass.x, length) || !is_packed(pass.y, length))
        return scan_by_key(workspace, bytes, samples_of(pass.x, length), samples_of(pass.y, length), rows, length,
                           stream);
    float *x = (float *)pass.x.first, *y = (float *)pass.y.first;
    if (pass.x.step > 0)
        return scan_by_key(workspace, bytes, x, y, rows, length, stream);
    uint64_t end = (rows - 1) * length + 1;
    return scan_by_key(workspace, bytes, ::cuda::std::reverse_iterator<float *>(x + end),
                       ::cuda::std::reverse_iterator<float *>(y + end), rows, length, stream);
}

static uint64_t rows_max(const struct pass &pass)
{
    return SAMPLES_MAX / pass.length;
}

static cudaError_t pass_launch(struct pass pass, void *workspace, size_t bytes, cudaStream_t stream)
{
    const uint64_t rows = pass.rows;
    cudaError_t error = cudaSuccess;
    for (uint64_t row = 0; row < rows && !error; row += pass.rows) {
        pass.rows = rows - row < rows_max(pass) ? rows - row : rows_max(pass);
        error = rows_scan(workspace, &bytes, pass, stream);
        pass.x.first += (int64_t)pass.rows * pass.x.pitch;
        pass.y.first += (int64_t)pass.rows * pass.y.pitch;
    }
    return error;
}

/* The largest that any of the passes asks for, in the largest call. */
extern "C" uint64_t cub_by_key_workspace(const struct variant_scan *scan)
{
    size_t bytes = 0;
    for (uint32_t number = 0; number < scan->pass_count; number++) {
        struct pass pass = pass_of(scan, number);
        size_t needed = 0;
        pass.rows = pass.rows < rows_max(pass) ? pass.rows : rows_max(pass);
        rows_scan(NULL, &needed, pass, 0);
        bytes = needed > bytes ? needed : bytes;
    }
    return bytes;
}

extern "C" int cub_by_key(const struct variant_scan *scan, void *workspace, cudaStream_t stream)
{
    size_t bytes = cub_by_key_workspace(scan);
    cudaError_t error = cudaSuccess;
    for (uint32_t number = 0; number < scan->pass_count && !error; number++)
        error = pass_launch(pass_of(scan, number), workspace, bytes, stream);
    return error;
}

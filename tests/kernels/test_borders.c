/*
 * Sizes around 2^31 and 2^32: numbers of rows and samples, and distances in bytes. On the CPU by strides through memory
 * of which only a few pages exist; on the GPU with memory for all of it, and samples whose sums are known: rows of a
 * one and zeros, which forward are all ones, and then backward n - i, in f64 exact before it is rounded.
 */
#include <sys/mman.h>

#include "kernels/cuda/scan_cuda.h"
#include "kernels/order1/dtypes.h"
#include "tests/kernels/every.h"

#ifdef SCAND_HAVE_CUDA
#include <cuda_runtime.h>
#endif

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))
#define GIB          (UINT64_C(1) << 30)

static const struct scan_rule both = {
    .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2, .accumulator = SCAND_ACCUMULATOR_F64};

/* Rows far apart in memory, of samples far apart. */
struct sparse {
    const char *name;
    uint64_t row_count, first, count, length; /* rows `first` and on are scanned */
    int64_t row_stride, stride;
};

static const struct sparse sparse_list[] = {
    {"rows 2^32 bytes apart", 5, 0, 5, 33, (int64_t)1 << 32, 4},
    {"rows more than 2^31 bytes apart, backwards", 5, 0, 5, 600, -((int64_t)1 << 31) - 12, 4},
    {"samples 2^31 bytes apart", 2, 0, 2, 20, 4, (int64_t)1 << 31},
    {"samples more than 2^32 bytes apart, backwards", 1, 0, 1, 17, 4, -((int64_t)1 << 32) - 8},
    {"row 2^31 and those around it", UINT64_C(1) << 32, (UINT64_C(1) << 31) - 3, 6, 3, 12, 4},
    {"row 2^32 and those around it", (UINT64_C(1) << 32) + 9, (UINT64_C(1) << 32) - 3, 9, 2, 8, 4},
};

static uint64_t distance(uint64_t count, int64_t stride)
{
    return (count - 1) * (uint64_t)(stride < 0 ? -stride : stride);
}

static float *sparse_at(const struct sparse *c, char *base, uint64_t row, uint64_t i)
{
    return (float *)(base + (int64_t)row * c->row_stride + (int64_t)i * c->stride);
}

static void sparse_check(const struct implementation *implementation, const struct sparse *c)
{
    size_t bytes = distance(c->row_count, c->row_stride) + distance(c->length, c->stride) + sizeof(float);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        SKIP("no address space for it");
    char *base = memory;
    base += c->row_stride < 0 ? distance(c->row_count, c->row_stride) : 0;
    base += c->stride < 0 ? distance(c->length, c->stride) : 0;
    const struct scan_rows rows = {.rule = both,
                                   .length = c->length,
                                   .row_count = c->row_count,
                                   .outer_rank = 1,
                                   .outer_shape = {c->row_count},
                                   .input_outer_strides = {c->row_stride},
                                   .output_outer_strides = {c->row_stride},
                                   .input_stride = c->stride,
                                   .output_stride = c->stride,
                                   .input = base,
                                   .output = base};
    const struct scan_memory whole = {.input = memory, .output = memory, .input_bytes = bytes, .output_bytes = bytes};
    for (uint64_t row = c->first; row < c->first + c->count; row++)
        *sparse_at(c, base, row, 0) = (float)(row - c->first + 1);
    CHECK_EQ(implementation->run(&rows, c->first, c->count, &whole), 0);
    for (uint64_t row = c->first; row < c->first + c->count; row++)
        for (uint64_t i = 0; i < c->length; i++)
            if (*sparse_at(c, base, row, i) != (float)((row - c->first + 1) * (c->length - i))) {
                fprintf(stderr, "%s, %s: sample %llu of row %llu is wrong\n", implementation->name, c->name,
                        (unsigned long long)i, (unsigned long long)row);
                check_failures++;
                i = c->length - 1;
            }
    munmap(memory, bytes);
}

static void far_apart(const struct implementation *implementation)
{
    for (size_t i = 0; i < COUNT(sparse_list); i++)
        sparse_check(implementation, &sparse_list[i]);
}

EVERY_CPU(far_apart)

#ifdef SCAND_HAVE_CUDA
/* An array of rows x length, or of length x rows that is scanned along its first axis, packed and in place. */
struct large {
    enum scand_dtype dtype; /* f32, or i32 for the general kernel */
    uint64_t rows, length;
    bool columns;
};

static const struct large large_list[] = {
    {SCAND_DTYPE_F32, UINT64_C(1) << 27, 33, false},       /* each row for a part of a warp */
    {SCAND_DTYPE_F32, 430001, 10007, false},               /* each row for a thread block */
    {SCAND_DTYPE_F32, 43001, 100003, false},               /* each row for a cluster */
    {SCAND_DTYPE_F32, 5000, 900000, false},                /* each row for several clusters */
    {SCAND_DTYPE_F32, 1, (UINT64_C(1) << 31) + 77, false}, /* the row for the whole GPU */
    {SCAND_DTYPE_F32, 1, (UINT64_C(1) << 32) + 77, false},
    {SCAND_DTYPE_F32, 430001, 10007, true},
    {SCAND_DTYPE_I32, 430001, 10007, false},
    {SCAND_DTYPE_I32, 1, (UINT64_C(1) << 32) + 77, false},
};

static uint64_t large_bytes(const struct large *c)
{
    return c->rows * c->length * sizeof(float);
}

static struct scan_rows large_rows(const struct large *c, void *samples)
{
    const int64_t size = sizeof(float), line = (int64_t)(c->length * sizeof(float));
    const int64_t outer = c->columns ? size : line, inner = c->columns ? (int64_t)c->rows * size : size;
    struct scan_rows rows = {.rule = both,
                             .length = c->length,
                             .row_count = c->rows,
                             .outer_rank = 1,
                             .outer_shape = {c->rows},
                             .input_outer_strides = {outer},
                             .output_outer_strides = {outer},
                             .input_stride = inner,
                             .output_stride = inner,
                             .input = samples,
                             .output = samples};
    rows.rule.input = rows.rule.output = c->dtype;
    if (c->dtype == SCAND_DTYPE_I32)
        rows.rule.accumulator = SCAND_ACCUMULATOR_EXACT;
    return rows;
}

/* A one at the beginning of every row, written byte by byte. */
static cudaError_t large_fill(const struct large *c, const struct scan_rows *rows, char *samples)
{
    const float one = 1;
    const uint32_t whole_one = 1;
    const size_t pitch = (size_t)rows->input_outer_strides[0];
    unsigned char bytes[sizeof(one)];
    memcpy(bytes, c->dtype == SCAND_DTYPE_F32 ? (const void *)&one : (const void *)&whole_one, sizeof(bytes));
    cudaError_t e = cudaMemset(samples, 0, large_bytes(c));
    for (size_t i = 0; i < sizeof(bytes) && e == cudaSuccess; i++)
        e = c->rows > 1 ? cudaMemset2D(samples + i, pitch, bytes[i], 1, c->rows) : cudaMemset(samples + i, bytes[i], 1);
    return e;
}

static uint32_t large_expected(const struct large *c, uint64_t element)
{
    uint64_t i = c->columns ? element / c->rows : element % c->length;
    return c->dtype == SCAND_DTYPE_F32 ? codec_bits((float)(c->length - i)) : (uint32_t)(c->length - i);
}

/* Windows from all over the memory, its ends and 2^32 bytes and elements among them. */
static bool large_compare(const struct large *c, const char *samples)
{
    enum { WINDOW = 16384, WINDOWS = 100 };
    static uint32_t window[WINDOW];
    const uint64_t last = c->rows * c->length - WINDOW;
    const uint64_t borders[] = {(UINT64_C(1) << 30) - WINDOW / 2, (UINT64_C(1) << 31) - WINDOW / 2,
                                (UINT64_C(1) << 32) - WINDOW / 2};
    for (uint64_t w = 0; w < WINDOWS + COUNT(borders); w++) {
        uint64_t first = w < WINDOWS ? last / (WINDOWS - 1) * w : borders[w - WINDOWS];
        first = first < last && w != WINDOWS - 1 ? first : last;
        if (cudaMemcpy(window, samples + first * sizeof(float), sizeof(window), cudaMemcpyDeviceToHost) != cudaSuccess)
            return false;
        for (uint64_t i = 0; i < WINDOW; i++)
            if (window[i] != large_expected(c, first + i)) {
                fprintf(stderr, "%llu x %llu%s: element %llu is %08x, not %08x\n", (unsigned long long)c->rows,
                        (unsigned long long)c->length, c->columns ? ", columns" : "", (unsigned long long)(first + i),
                        window[i], large_expected(c, first + i));
                return false;
            }
    }
    return true;
}

static void large_check(const struct large *c, char *samples)
{
    const struct scan_rows rows = large_rows(c, samples);
    void *workspace = NULL;
    REQUIRE(cudaMalloc(&workspace, scan_cuda_workspace_bytes(&rows, rows.row_count) + 16) == cudaSuccess);
    CHECK_EQ(large_fill(c, &rows, samples), 0);
    CHECK_EQ(scan_cuda(&rows, 0, rows.row_count, workspace, NULL), 0);
    CHECK_EQ(cudaDeviceSynchronize(), 0);
    CHECK(large_compare(c, samples));
    cudaFree(workspace);
}

static void cuda_large(void)
{
    size_t free_bytes, total;
    uint64_t bytes = 0;
    char *samples;
    for (size_t i = 0; i < COUNT(large_list); i++)
        bytes = large_bytes(&large_list[i]) > bytes ? large_bytes(&large_list[i]) : bytes;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || free_bytes < bytes + 4 * GIB)
        SKIP("needs a GPU with 23 GB of free memory");
    REQUIRE(scan_cuda_init() == 0 && cudaMalloc((void **)&samples, bytes) == cudaSuccess);
    for (size_t i = 0; i < COUNT(large_list); i++)
        large_check(&large_list[i], samples);
    cudaFree(samples);
}

/* Ragged rows so short that a warp scans two at a time, on both sides of a row whose length exceeds 32 bits. */
#define FAR ((UINT64_C(1) << 32) + 77)
static const uint64_t far_offsets[] = {0, 300, 300 + FAR, 700 + FAR, 1200 + FAR, 1500 + FAR};
#define FAR_ROWS (COUNT(far_offsets) - 1)

/* Fills row r with r + 1, followed by zeros. */
static cudaError_t far_fill(float *samples)
{
    cudaError_t e = cudaMemset(samples, 0, far_offsets[FAR_ROWS] * sizeof(float));
    for (size_t r = 0; r < FAR_ROWS && e == cudaSuccess; r++) {
        const float value = (float)(r + 1);
        e = cudaMemcpy(samples + far_offsets[r], &value, sizeof(value), cudaMemcpyHostToDevice);
    }
    return e;
}

/* Returns how many of up to 4,096 samples at an end of a row differ from a forward sum. */
static unsigned far_wrong(const float *samples, size_t row, bool end)
{
    static float window[4096];
    const uint64_t length = far_offsets[row + 1] - far_offsets[row], count = length < 4096 ? length : 4096;
    const uint64_t first = end ? far_offsets[row + 1] - count : far_offsets[row];
    unsigned wrong = 0;
    if (cudaMemcpy(window, samples + first, count * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess)
        return 4096;
    for (uint64_t i = 0; i < count; i++)
        wrong += window[i] != (float)(row + 1);
    return wrong;
}

static void far_check(enum scand_accumulator accumulator, float *samples, const uint64_t *device_offsets)
{
    const struct scan_rows rows = {
        .rule = {.passes = {SCAND_PASS_FORWARD}, .pass_count = 1, .accumulator = accumulator},
        .length = FAR,
        .row_count = FAR_ROWS,
        .offsets = far_offsets,
        .device_offsets = device_offsets,
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = samples,
        .output = samples};
    void *workspace = NULL;
    REQUIRE(cudaMalloc(&workspace, scan_cuda_workspace_bytes(&rows, FAR_ROWS)) == cudaSuccess);
    CHECK_EQ(far_fill(samples), 0);
    CHECK_EQ(scan_cuda(&rows, 0, FAR_ROWS, workspace, NULL), 0);
    CHECK_EQ(cudaDeviceSynchronize(), 0);
    for (size_t row = 0; row < FAR_ROWS; row++) {
        CHECK_EQ(far_wrong(samples, row, false), 0);
        CHECK_EQ(far_wrong(samples, row, true), 0);
    }
    cudaFree(workspace);
}

static void cuda_ragged_rows_far_apart(void)
{
    const uint64_t bytes = far_offsets[FAR_ROWS] * sizeof(float);
    size_t free_bytes, total;
    float *samples = NULL;
    uint64_t *device_offsets = NULL;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || free_bytes < bytes + 4 * GIB)
        SKIP("needs a GPU with 22 GB of free memory");
    REQUIRE(scan_cuda_init() == 0 && cudaMalloc((void **)&samples, bytes) == cudaSuccess);
    REQUIRE(cudaMalloc((void **)&device_offsets, sizeof(far_offsets)) == cudaSuccess);
    CHECK_EQ(cudaMemcpy(device_offsets, far_offsets, sizeof(far_offsets), cudaMemcpyHostToDevice), 0);
    for (enum scand_accumulator a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2; a++)
        far_check(a, samples, device_offsets);
    cudaFree(device_offsets);
    cudaFree(samples);
}
#endif

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(cpu_far_apart),
#ifdef SCAND_HAVE_CUDA
                                        TEST(cuda_large), TEST(cuda_ragged_rows_far_apart),
#endif
                                        TEST_END};
    return test_main(argc, argv, tests);
}

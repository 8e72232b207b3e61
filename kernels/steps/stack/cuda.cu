/*
 * A tile is cut into thread blocks once more, along the second dimension of the grid: many rows are added by a thread
 * for each row, which has the sums of some bins in shared memory, and few rows by a thread for each bin. Either way a
 * sum is one thread's, which meets samples in ascending order.
 */
#include <type_traits>

#include "kernels/steps/step.cuh"
#include "stack.h"

#define WARP    32
#define ALL     0xffffffffu
#define THREADS 128 /* at most, of rows; always, of bins */
#define BINS    16  /* bins of a thread block of rows: cells of 12 bytes for each row and bin */
#define LOOKS   4   /* samples that a thread looks up the bins of at a time */
#define BATCH   (LOOKS * THREADS)
#define AT_ONCE 8 /* samples of a row that are on their way */
#define NO_BIN  UINT32_MAX

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

/* A sample as sums have it: T is double or, of integers, uint64_t. */
template <class T> static __device__ __forceinline__ T get_sample(enum scand_dtype dtype, const char *at);
template <> __device__ __forceinline__ double get_sample(enum scand_dtype dtype, const char *at)
{
    return step_get_f64(dtype, at);
}
template <> __device__ __forceinline__ uint64_t get_sample(enum scand_dtype dtype, const char *at)
{
    return step_decode_integer(dtype, at);
}

static __device__ __forceinline__ void put_sum(const struct stack &stack, enum scand_dtype dtype, double sum,
                                               uint32_t fold, char *at)
{
    step_put_f64(dtype, stack_value(&stack, sum, fold), at);
}

static __device__ __forceinline__ void put_sum(const struct stack &stack, enum scand_dtype dtype, uint64_t sum,
                                               uint32_t fold, char *at)
{
    (void)stack, (void)fold;
    step_encode_integer(dtype, sum, at);
}

/* The factor of samples, which is mostly 1. */
template <class T> struct factor {
    T alpha;
    bool scales;

    static __device__ __forceinline__ struct factor of(const struct stack &stack)
    {
        if constexpr (std::is_same_v<T, double>)
            return {stack.alpha, stack.alpha != 1};
        else
            return {(T)(int64_t)stack.alpha, stack.alpha != 1};
    }
    __device__ __forceinline__ T times(T x) const
    {
        return scales ? alpha * x : x;
    }
};

/* Returns what a bin of a row has before the rows are added. */
template <class T>
static __device__ __forceinline__ T get_cell(const struct step_rows &rows, uint64_t row, uint64_t bin)
{
    const struct step_operand &onto = rows.further[STACK_ONTO];
    if (!onto.origin)
        return 0;
    return get_sample<T>(onto.dtype, step_row(&rows, &onto, row) + (int64_t)bin * onto.stride);
}

/* A bin of a row is done. */
template <class T>
static __device__ __forceinline__ void put_cell(const struct step_rows &rows, const struct stack &stack, uint64_t row,
                                                uint64_t bin, T sum, uint32_t fold)
{
    const struct step_operand &output = rows.output, &folds = rows.further[STACK_FOLD];
    put_sum(stack, output.dtype, sum, fold, step_row(&rows, &output, row) + (int64_t)bin * output.stride);
    if (folds.origin)
        step_encode_integer(folds.dtype, fold, step_row(&rows, &folds, row) + (int64_t)bin * folds.stride);
}

/* The bin of sample i of a row of the index, from `begin`, if it is among so many. */
static __device__ __forceinline__ uint32_t bin_of(const struct step_operand &index, const char *row, uint64_t i,
                                                  uint64_t begin, uint64_t bins)
{
    const uint64_t bin = step_decode_integer(index.dtype, row + (int64_t)i * index.stride) - begin;
    return bin < bins ? (uint32_t)bin : NO_BIN;
}

/*
 * A thread for each row.
 */

/* Rows and bins of a thread block. Its threads have a row each, those from row_count on none. */
struct part {
    uint64_t first_row, row_count, begin, bins;
};

static __device__ __forceinline__ struct part part_of(const struct step_tile &tile, unsigned number)
{
    const uint64_t row_parts = (tile.row_count + blockDim.x - 1) / blockDim.x;
    const uint64_t row = number % row_parts * blockDim.x, bin = number / row_parts * BINS;
    struct part part = {tile.first_row + row, tile.row_count - row, tile.begin + bin, 0};
    if (tile.begin + bin < tile.end)
        part.bins = tile.end - part.begin < BINS ? tile.end - part.begin : BINS;
    return part;
}

/* Samples that fall into the bins of a thread block, in ascending order. */
struct hits {
    uint16_t sample[BATCH], bin[BATCH]; /* from the first sample that was looked up, and from the first bin */
    unsigned counts[THREADS / WARP];    /* counts of each warp */
};

/* Looks up samples from `first` on, LOOKS for each thread. Returns how many are hits. */
static __device__ unsigned find_hits(const struct step_rows &rows, const struct part &part, uint64_t first,
                                     struct hits *hits)
{
    const struct step_operand &index = rows.further[STACK_INDEX];
    const char *bins_row = step_row(&rows, &index, part.first_row);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    uint32_t bins[LOOKS];
    unsigned found[LOOKS], before = 0, total = 0;
#pragma unroll
    for (unsigned k = 0; k < LOOKS; k++) {
        const uint64_t i = first + (warp * LOOKS + k) * WARP + lane;
        bins[k] = i < rows.input.length ? bin_of(index, bins_row, i, part.begin, part.bins) : NO_BIN;
        found[k] = __ballot_sync(ALL, bins[k] != NO_BIN);
        total += __popc(found[k]);
    }
    if (lane == 0)
        hits->counts[warp] = total;
    __syncthreads();
    total = 0;
    for (unsigned w = 0; w < warps; w++) {
        before += w < warp ? hits->counts[w] : 0;
        total += hits->counts[w];
    }
#pragma unroll
    for (unsigned k = 0; k < LOOKS; k++) {
        const unsigned at = before + __popc(found[k] & ((1u << lane) - 1));
        if (bins[k] != NO_BIN) {
            hits->sample[at] = (uint16_t)((warp * LOOKS + k) * WARP + lane);
            hits->bin[at] = (uint16_t)bins[k];
        }
        before += __popc(found[k]);
    }
    __syncthreads();
    return total;
}

/* Sums and folds of a thread, each BINS of them, blockDim.x apart. */
template <class T> struct cells {
    T *sums;
    uint32_t *folds;
    struct factor<T> factor;
};

template <class T> static __device__ __forceinline__ void add_to_cell(const struct cells<T> &cells, unsigned bin, T x)
{
    cells.sums[bin * blockDim.x] = cells.sums[bin * blockDim.x] + cells.factor.times(x);
    cells.folds[bin * blockDim.x] += x != 0;
}

/* Adds the hits, of which several are on their way at a time. */
template <class T, enum scand_dtype Dtype>
static __device__ void add_hits(const struct step_operand &input, const char *first, const struct hits *hits,
                                unsigned count, const struct cells<T> &cells)
{
    for (unsigned h = 0; h < count; h += AT_ONCE) {
        T x[AT_ONCE];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++)
            if (h + k < count)
                x[k] = get_sample<T>(
                    Dtype == ANY ? input.dtype : Dtype,
                    step_aligned(Dtype != ANY, Dtype, first + (int64_t)hits->sample[h + k] * input.stride));
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++)
            if (h + k < count)
                add_to_cell(cells, hits->bin[h + k], x[k]);
    }
}

/* All rows have one index, of which a thread block makes a list of hits. */
template <class T, enum scand_dtype Dtype>
static __device__ void stack_shared(const struct step_rows &rows, const struct part &part, const char *x,
                                    const struct cells<T> &cells, bool active)
{
    __shared__ struct hits hits;
    const uint64_t batch = (uint64_t)LOOKS * blockDim.x;
    for (uint64_t first = 0; first < rows.input.length; first += batch) {
        const unsigned count = find_hits(rows, part, first, &hits);
        if (active)
            add_hits<T, Dtype>(rows.input, x + (int64_t)first * rows.input.stride, &hits, count, cells);
        __syncthreads();
    }
}

/* Each row has an index of its own. */
template <class T>
static __device__ void stack_own(const struct step_rows &rows, const struct part &part, uint64_t row, const char *x,
                                 const struct cells<T> &cells)
{
    const struct step_operand &index = rows.further[STACK_INDEX];
    const char *bins_row = step_row(&rows, &index, row);
    for (uint64_t i = 0; i < rows.input.length; i++) {
        const uint32_t bin = bin_of(index, bins_row, i, part.begin, part.bins);
        if (bin != NO_BIN)
            add_to_cell(cells, bin, get_sample<T>(rows.input.dtype, x + (int64_t)i * rows.input.stride));
    }
}

template <class T, enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    stack_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
               const __grid_constant__ struct step_tiles tiles, uint64_t begin, bool shared)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct part part = part_of(tile, blockIdx.y);
    const struct cells<T> cells = {
        (T *)step_shared + threadIdx.x,
            (uint32_t *)(step_shared + BINS * blockDim.x * sizeof(T)) + threadIdx.x, factor<T>::of(stack)
    };
    const bool active = threadIdx.x < part.row_count;
    const uint64_t row = part.first_row + (active ? threadIdx.x : 0);
    const char *x = step_row(&rows, &rows.input, row);
    if (part.bins == 0)
        return;
    for (unsigned bin = 0; bin < BINS; bin++) {
        cells.sums[bin * blockDim.x] = active && bin < part.bins ? get_cell<T>(rows, row, part.begin + bin) : 0;
        cells.folds[bin * blockDim.x] = 0;
    }
    if (shared)
        stack_shared<T, Dtype>(rows, part, x, cells, active);
    else if (active)
        stack_own<T>(rows, part, row, x, cells);
    for (unsigned bin = 0; bin < part.bins && active; bin++)
        put_cell<T>(rows, stack, row, part.begin + bin, cells.sums[bin * blockDim.x], cells.folds[bin * blockDim.x]);
}

/*
 * A thread for each bin.
 */

template <class T>
static __global__ void __launch_bounds__(THREADS)
    stack_bins(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
               const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    __shared__ T samples[BATCH];
    __shared__ uint32_t bins[BATCH];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    const uint64_t row = tile.first_row + blockIdx.y % tile.row_count;
    const uint64_t first_bin = tile.begin + blockIdx.y / tile.row_count * THREADS;
    const char *x = step_row(&rows, &input, row), *bins_row = step_row(&rows, &index, row);
    const struct factor<T> factor = ::factor<T>::of(stack);
    T sum = 0;
    uint32_t fold = 0;
    if (first_bin >= tile.end)
        return;
    if (first_bin + threadIdx.x < tile.end)
        sum = get_cell<T>(rows, row, first_bin + threadIdx.x);
    for (uint64_t first = 0; first < input.length; first += BATCH) {
        const unsigned count = input.length - first < BATCH ? (unsigned)(input.length - first) : BATCH;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += THREADS) {
            samples[i] = get_sample<T>(input.dtype, x + (int64_t)(first + i) * input.stride);
            bins[i] = bin_of(index, bins_row, first + i, first_bin, THREADS);
        }
        __syncthreads();
        for (unsigned i = 0; i < count; i++)
            if (bins[i] == threadIdx.x) {
                sum = sum + factor.times(samples[i]);
                fold += samples[i] != 0;
            }
    }
    if (first_bin + threadIdx.x < tile.end)
        put_cell<T>(rows, stack, row, first_bin + threadIdx.x, sum, fold);
}

/*
 * Launches.
 */

static uint64_t parts(uint64_t count, uint64_t each)
{
    return (count + each - 1) / each;
}

/* The last tiles of a row may have less of both: thread blocks that are left over end at once. */
template <class T, enum scand_dtype Dtype>
static void launch(const struct step_rows *rows, const struct stack *stack, const struct step_tiles *tiles,
                   uint64_t first, unsigned grid, cudaStream_t stream)
{
    const uint64_t row_count = tiles->count < tiles->tiling.rows ? tiles->count : tiles->tiling.rows;
    const uint64_t bins = stack->bins < tiles->tiling.elements ? stack->bins : tiles->tiling.elements;
    if (row_count < STACK_ROWS_LEAST) {
        const dim3 blocks(grid, (unsigned)(row_count * parts(bins, THREADS)));
        stack_bins<T><<<blocks, THREADS, 0, stream>>>(*rows, *stack, *tiles, first);
        return;
    }
    const unsigned threads = row_count < THREADS ? (unsigned)parts(row_count, WARP) * WARP : THREADS;
    const dim3 blocks(grid, (unsigned)(parts(row_count, threads) * parts(bins, BINS)));
    const unsigned shared_bytes = BINS * threads * (unsigned)(sizeof(T) + sizeof(uint32_t));
    stack_rows<T, Dtype>
        <<<blocks, threads, shared_bytes, stream>>>(*rows, *stack, *tiles, first, stack_is_shared(rows));
}

extern "C" int stack_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                            uint64_t begin, uint64_t end, void *stream)
{
    const struct stack stack = *(const struct stack *)params;
    cudaStream_t on = (cudaStream_t)stream;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        if (codec_is_integer(rows->input.dtype))
            launch<uint64_t, ANY>(rows, &stack, tiles, first, grid, on);
        else if (rows->input.dtype == SCAND_DTYPE_F32 && step_is_aligned(rows, &rows->input))
            launch<double, SCAND_DTYPE_F32>(rows, &stack, tiles, first, grid, on);
        else
            launch<double, ANY>(rows, &stack, tiles, first, grid, on);
    });
}

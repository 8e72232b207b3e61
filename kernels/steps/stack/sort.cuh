/*
 * Lists of the samples of each bin: the index sorted by a counting sort, in ascending order within a bin. They lie in
 * the workspace, since all warps that have rows of the index add from them. A thread block makes those of BINS bins,
 * and each of its warps looks up a stretch of the index, twice: to count, and to put samples into their places.
 *
 * An index may be changed meanwhile, by a client whose memory it is. Sums may then be any, but lists have no place that
 * is not a sample's: a warp writes those that it has counted, all of them and no others.
 */
#ifndef KERNELS_STEPS_STACK_SORT_CUH
#define KERNELS_STEPS_STACK_SORT_CUH

#include "kernels/cuda/ptx.cuh"
#include "samples.cuh"

#define SORT_WARPS   32
#define SORT_THREADS (SORT_WARPS * WARP)

/* Lines of rows that have the same index each: lines of `along` rows, from row `base` on, of which those from `first`
 * on are looked at. */
struct lines {
    uint64_t base, along, first;
};

static __host__ __device__ __forceinline__ uint64_t line_row(const struct lines &lines, uint64_t line)
{
    return lines.base + (lines.first + line) * lines.along;
}

/* Where a list lies among the places of its index. */
struct bounds {
    uint32_t begin, end;
};

/* The lists of an index, bin after bin: the numbers of samples. */
struct lists {
    struct bounds *bounds;
    uint32_t *places;
    uint64_t bins, length; /* of each index */
    bool is_shared;        /* lines have one index */
};

struct list {
    const uint32_t *places;
    unsigned count;
};

static __device__ __forceinline__ struct list list_of(const struct lists &lists, uint64_t line, uint64_t bin)
{
    const uint64_t number = lists.is_shared ? 0 : line;
    const struct bounds bounds = lists.bounds[number * lists.bins + bin];
    return {lists.places + number * lists.length + bounds.begin, bounds.end - bounds.begin};
}

/* What a warp looks up. */
struct stretch {
    const char *index; /* its first sample */
    int64_t stride;
    unsigned first, count;
};

static __device__ __forceinline__ struct stretch stretch_of(const struct step_operand &index, const char *origin,
                                                            unsigned length)
{
    const unsigned each = (length + SORT_THREADS - 1) / SORT_THREADS * WARP, begin = threadIdx.x / WARP * each;
    const unsigned first = begin < length ? begin : length;
    return {origin + (int64_t)first * index.stride, index.stride, first, length - first < each ? length - first : each};
}

/* Calls each(sample, bin) for all samples of a stretch in ascending order, and for some beyond, which are in no bin.
 * Lanes have neighbours, and call together. */
template <unsigned Looks, class Word, class Get, class Each>
static __device__ __forceinline__ void look_up(const struct stretch &stretch, Get get, Each each)
{
    const unsigned lane = threadIdx.x % WARP;
    const char *at = stretch.index + (int64_t)lane * stretch.stride;
    for (unsigned i = 0; i < stretch.count; i += Looks * WARP) {
        Word bins[Looks];
#pragma unroll
        for (unsigned k = 0; k < Looks; k++, at += WARP * stretch.stride)
            bins[k] = i + k * WARP + lane < stretch.count ? get(at) : ~(Word)0;
#pragma unroll
        for (unsigned k = 0; k < Looks; k++)
            if (i + k * WARP < stretch.count)
                each(stretch.first + i + k * WARP + lane, bins[k]);
    }
}

/* Numbers of 4 bytes are compared as such where bins are below 2^31, so that no negative number is a bin. */
template <class Each>
static __device__ __forceinline__ void look_up_any(const struct step_operand &index, const struct stretch &stretch,
                                                   uint64_t end, Each each)
{
    const uint64_t address = (uint64_t)(uintptr_t)stretch.index | (uint64_t)index.stride;
    const bool aligned = (address & (codec_bytes(index.dtype) - 1)) == 0;
    if (aligned && end <= UINT64_C(1) << 31 && (index.dtype == SCAND_DTYPE_I32 || index.dtype == SCAND_DTYPE_U32))
        look_up<LOOKS, uint32_t>(
            stretch, [](const char *at) { return *(const uint32_t *)at; }, each);
    else if (aligned && (index.dtype == SCAND_DTYPE_I64 || index.dtype == SCAND_DTYPE_U64))
        look_up<LOOKS, uint64_t>(
            stretch, [](const char *at) { return *(const uint64_t *)at; }, each);
    else
        look_up<1, uint64_t>(
            stretch, [&](const char *at) { return step_decode_integer(index.dtype, at); }, each);
}

/* What the warps of a thread block know of each other. Cells of a warp lie in different banks, and those of a bin. */
struct sorting {
    uint32_t cursors[SORT_WARPS * (BINS + 1)]; /* of each warp and bin: counts, then the next place */
    uint32_t ends[SORT_WARPS * (BINS + 1)];    /* of each warp and bin: where its places end */
    uint32_t before[SORT_WARPS];               /* samples of bins before those of the thread block */
    uint32_t totals[BINS];
};

static __device__ __forceinline__ unsigned cell_of(unsigned warp, unsigned bin)
{
    return warp * (BINS + 1) + bin;
}

static __device__ __forceinline__ uint32_t sum_of_lanes(uint32_t x)
{
#pragma unroll
    for (unsigned k = WARP / 2; k > 0; k /= 2)
        x += __shfl_xor_sync(ALL, x, k);
    return x;
}

/* Turns counts into places, bin after bin, and within one warp after warp. A thread does so for one of each, which it
 * returns the places of. */
static __device__ __forceinline__ struct bounds place_lists(struct sorting *sorting)
{
    static_assert(BINS == WARP && SORT_WARPS == WARP, "each warp has a bin, and each lane a warp of it");
    const unsigned bin = threadIdx.x / WARP, warp = threadIdx.x % WARP, cell = cell_of(warp, bin);
    const uint32_t count = sorting->cursors[cell];
    uint32_t sum = count;
#pragma unroll
    for (unsigned k = 1; k < WARP; k *= 2) {
        const uint32_t before = __shfl_up_sync(ALL, sum, k);
        sum += warp >= k ? before : 0;
    }
    if (warp == WARP - 1)
        sorting->totals[bin] = sum;
    __syncthreads();
    const unsigned lane = warp;
    sum += sum_of_lanes(sorting->before[lane] + (lane < bin ? sorting->totals[lane] : 0));
    sorting->cursors[cell] = sum - count;
    sorting->ends[cell] = sum;
    return {sum - count, sum};
}

/* Puts samples of a warp, which ascend, into the lists of their bins. Those of no bin have BINS. */
static __device__ __forceinline__ void put_samples(struct sorting *sorting, unsigned bin, uint32_t sample,
                                                   uint32_t *places)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, cell = cell_of(warp, bin);
    if (!__any_sync(ALL, bin < BINS))
        return;
    const unsigned same = __match_any_sync(ALL, bin), before = __popc(same & ((1u << lane) - 1));
    const uint32_t at = sorting->cursors[cell] + before;
    __syncwarp();
    if (bin < BINS && at < sorting->ends[cell])
        places[at] = sample;
    if (bin < BINS && before == 0)
        sorting->cursors[cell] = at + __popc(same);
    __syncwarp();
}

/* Sorts the index of each line, for bins begin <= b < end. A thread block has some of the bins of one. */
static __global__ void __launch_bounds__(SORT_THREADS)
    stack_sort(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct lines lines,
               const __grid_constant__ struct lists lists, uint64_t begin, uint64_t block)
{
    __shared__ struct sorting sorting;
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t number = block + blockIdx.x, groups = parts(lists.bins, BINS);
    const uint64_t line = lists.is_shared ? 0 : number / groups; /* divisions take a while */
    const uint64_t first = (number - line * groups) * BINS, rest = lists.bins - first;
    const unsigned bins = rest < BINS ? (unsigned)rest : BINS;
    const struct step_operand &index = rows.further[STACK_INDEX];
    const char *origin = lists.is_shared ? index.origin : step_row(&rows, &index, line_row(lines, line));
    const struct stretch stretch = stretch_of(index, origin, (unsigned)lists.length);
    uint32_t *places = lists.places + line * lists.length;
    unsigned before = 0;
    grid_let_next_begin();
    sorting.cursors[cell_of(warp, lane)] = 0;
    __syncwarp();
    look_up_any(index, stretch, begin + lists.bins, [&](unsigned, auto word) {
        const auto bin = word - (decltype(word))begin, here = bin - (decltype(word))first;
        before += bin < first;
        if (here < bins)
            atomicAdd(&sorting.cursors[cell_of(warp, (unsigned)here)], 1u);
    });
    before = sum_of_lanes(before);
    if (lane == 0)
        sorting.before[warp] = before;
    __syncthreads();
    const struct bounds mine = place_lists(&sorting);
    if (lane == 0 && warp < bins)
        lists.bounds[line * lists.bins + first + warp].begin = mine.begin;
    if (lane == WARP - 1 && warp < bins)
        lists.bounds[line * lists.bins + first + warp].end = mine.end;
    __syncthreads();
    look_up_any(index, stretch, begin + lists.bins, [&](unsigned sample, auto word) {
        const auto here = word - (decltype(word))begin - (decltype(word))first;
        put_samples(&sorting, here < bins ? (unsigned)here : BINS, sample, places);
    });
    __syncthreads();
    for (uint32_t at = sorting.cursors[cell_of(lane, warp)]; at < mine.end; at++)
        places[at] = 0; /* counted, but not met again */
}

#endif

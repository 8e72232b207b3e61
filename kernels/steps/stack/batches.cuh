/*
 * Rows that share an index, of very few bins: so few warps add that they wait for samples whatever they do, and would
 * wait for a launch that sorts the index besides. A thread block has some of the rows and BINS bins. Of a batch of the
 * index it makes lists of the samples of each bin, by a counting sort, and each of its warps takes one bin after the
 * other: it adds up the samples of the list, in ascending order, while those that follow are on their way. A lane has a
 * row, or several.
 */
#ifndef KERNELS_STEPS_STACK_BATCHES_CUH
#define KERNELS_STEPS_STACK_BATCHES_CUH

#include "samples.cuh"

#define STRETCH UINT64_C(2048)  /* samples that a warp looks up at most, before what it found is added */
#define BATCH   UINT64_C(11264) /* samples that a thread block looks up at most, as shared memory has room for */
#define BATCHES UINT64_C(7168)  /* samples if these are not all, so that sums need room, too */
#define BLOCKS  UINT64_C(512)   /* thread blocks that occupy a GPU */

namespace batches
{

/* How rows of this kind are added: a lane has so many rows, WARP apart, and asks for so many samples of each at a time,
 * while it adds as many others. Multiprocessors have at least so many thread blocks. */
template <unsigned Rows, unsigned Warps, unsigned Samples, unsigned Blocks> struct form {
    static constexpr unsigned rows = Rows, warps = Warps, samples = Samples, blocks = Blocks;
    static constexpr unsigned block_rows = Rows * WARP, threads = Warps * WARP;
    static constexpr uint64_t batch = Warps * STRETCH < BATCH ? Warps * STRETCH : BATCH;
    static constexpr unsigned chunk = Samples < 16 ? Samples : 16; /* samples that are asked for together */
};

using wide = form<4, 8, 4, 3>;  /* rows that are neighbours in memory */
using deep = form<1, 4, 48, 3>; /* others, as there are fewer thread blocks that could ask for samples */
using plain = form<1, 4, 4, 4>; /* samples that take many instructions each */

/* Areas are cut into parts of rows, and these into parts of bins. No part crosses a multiple of `along` rows, counted
 * from `base`: within it, rows have the same index and, where lanes may have several rows, are equally far
 * apart. */
struct cut {
    struct step_tile area;
    uint64_t base, along;
    uint64_t line_parts, row_parts; /* parts of `along` rows; of all */
    bool onto_is_plain;             /* elements of what is added to are floats, aligned */
};

/* Rows and bins of a thread block. */
struct block_part {
    uint64_t row, begin;
    unsigned row_count, bins; /* row_count: 0 where the area has none of these rows */
};

template <class Form> static __device__ struct block_part part_of(const struct cut &cut, uint64_t number)
{
    const uint64_t part = number % cut.row_parts, begin = cut.area.begin + number / cut.row_parts * BINS;
    const uint64_t line = (cut.area.first_row - cut.base) / cut.along + part / cut.line_parts;
    const uint64_t from = part % cut.line_parts * Form::block_rows;
    const uint64_t until = from + Form::block_rows < cut.along ? from + Form::block_rows : cut.along;
    uint64_t row = cut.base + line * cut.along + from, row_end = cut.base + line * cut.along + until;
    row = row > cut.area.first_row ? row : cut.area.first_row;
    row_end = row_end < cut.area.first_row + cut.area.row_count ? row_end : cut.area.first_row + cut.area.row_count;
    return {row, begin, row < row_end ? (unsigned)(row_end - row) : 0,
            cut.area.end - begin < BINS ? (unsigned)(cut.area.end - begin) : BINS};
}

/* Where the lists of a batch lie, in which samples are by their bins, in ascending order in each. */
template <class Form> struct lists {
    uint32_t cursors[BINS * Form::warps]; /* of each bin and warp, which looks up a stretch of the samples */
    uint32_t totals[Form::warps];
};

template <class Form> static __device__ __forceinline__ unsigned list_end(const struct lists<Form> &lists, unsigned bin)
{
    return lists.cursors[bin * Form::warps + Form::warps - 1];
}

/* A batch of an index. */
struct batch {
    const char *index; /* its first sample */
    unsigned count;
    uint64_t begin; /* first bin */
    unsigned bins;
    uint16_t *samples; /* samples of the lists, from the first of the batch */
    uint16_t *hits;    /* samples that are in a bin, as warps find them, each in its stretch */
};

/* A stretch has at most STRETCH samples, so that a hit is its sample, from the first of the stretch, and its bin. */
static_assert(STRETCH * BINS == UINT64_C(1) << 16, "a hit is a number of 16 bits");

/* The stretch of a warp. */
template <class Form> static __device__ __forceinline__ unsigned stretch_of(const struct batch &batch)
{
    return (unsigned)parts(batch.count, Form::threads) * WARP;
}

/* Finds the hits of a warp's stretch in ascending order, by get(address). Returns how many there are. */
template <class Form, unsigned Looks, class Word, class Get>
static __device__ __forceinline__ unsigned find_hits(const struct batch &batch, int64_t stride, Get get)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, lower = (1u << lane) - 1;
    const unsigned stretch = stretch_of<Form>(batch), first = warp * stretch;
    const unsigned rest = first < batch.count ? batch.count - first : 0, count = rest < stretch ? rest : stretch;
    const char *at = batch.index + (int64_t)(first + lane) * stride;
    unsigned found = 0;
    for (unsigned i = 0; i < count; i += Looks * WARP) {
        Word bins[Looks];
#pragma unroll
        for (unsigned k = 0; k < Looks; k++, at += WARP * stride)
            bins[k] = get(i + k * WARP + lane < count ? at : batch.index);
#pragma unroll
        for (unsigned k = 0; k < Looks; k++) {
            const unsigned sample = i + k * WARP + lane;
            const Word bin = bins[k] - (Word)batch.begin;
            const bool is_in = sample < count && bin < batch.bins;
            const unsigned all = __ballot_sync(ALL, is_in);
            if (is_in)
                batch.hits[first + found + __popc(all & lower)] = (uint16_t)(sample * BINS + (unsigned)bin);
            found += __popc(all);
        }
    }
    return found;
}

/* Numbers of 4 bytes are compared as such where bins are below 2^31, so that no negative number is a bin. */
template <class Form>
static __device__ unsigned find_hits_any(const struct step_operand &index, const struct batch &batch)
{
    const uint64_t address = (uint64_t)(uintptr_t)batch.index | (uint64_t)index.stride;
    const bool aligned = (address & (codec_bytes(index.dtype) - 1)) == 0;
    const bool narrow = batch.begin + BINS <= UINT64_C(1) << 31;
    if (aligned && narrow && (index.dtype == SCAND_DTYPE_I32 || index.dtype == SCAND_DTYPE_U32))
        return find_hits<Form, LOOKS, uint32_t>(batch, index.stride,
                                                [](const char *at) { return *(const uint32_t *)at; });
    if (aligned && (index.dtype == SCAND_DTYPE_I64 || index.dtype == SCAND_DTYPE_U64))
        return find_hits<Form, LOOKS, uint64_t>(batch, index.stride,
                                                [](const char *at) { return *(const uint64_t *)at; });
    return find_hits<Form, 1, uint64_t>(batch, index.stride,
                                        [&](const char *at) { return step_decode_integer(index.dtype, at); });
}

/* Counts a warp's hits of each bin. */
template <class Form>
static __device__ __forceinline__ void count_hits(const struct batch &batch, unsigned found, struct lists<Form> *lists)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint16_t *hits = batch.hits + warp * stretch_of<Form>(batch);
    for (unsigned h = lane; h < found; h += WARP)
        atomicAdd(&lists->cursors[hits[h] % BINS * Form::warps + warp], 1u);
}

/* Turns counts into the places of the first sample of each bin and warp, bin after bin. */
template <class Form> static __device__ void place_lists(struct lists<Form> *lists)
{
    static_assert(BINS * Form::warps == Form::threads, "each thread has a count");
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, count = lists->cursors[threadIdx.x];
    unsigned sum = count;
#pragma unroll
    for (unsigned k = 1; k < WARP; k *= 2) {
        const unsigned before = __shfl_up_sync(ALL, sum, k);
        sum += lane >= k ? before : 0;
    }
    if (lane == WARP - 1)
        lists->totals[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++)
        sum += lists->totals[w];
    lists->cursors[threadIdx.x] = sum - count;
}

/* Puts a warp's hits into the lists. Cursors end where the next one began. */
template <class Form>
static __device__ void fill_lists(const struct batch &batch, unsigned found, struct lists<Form> *lists)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, lower = (1u << lane) - 1;
    const unsigned first = warp * stretch_of<Form>(batch);
    for (unsigned h = 0; h < found; h += WARP) {
        const bool is_hit = h + lane < found;
        const unsigned hit = is_hit ? batch.hits[first + h + lane] : 0, bin = hit % BINS;
        const unsigned same = __match_any_sync(ALL, is_hit ? bin : BINS), before = __popc(same & lower);
        uint32_t *cursor = &lists->cursors[bin * Form::warps + warp];
        const unsigned at = *cursor + before;
        __syncwarp();
        if (is_hit)
            batch.samples[at] = (uint16_t)(first + hit / BINS);
        if (is_hit && before == 0)
            *cursor = at + __popc(same);
        __syncwarp();
    }
}

template <class Form>
static __device__ void make_lists(const struct step_operand &index, const struct batch &batch,
                                  struct lists<Form> *lists)
{
    lists->cursors[threadIdx.x] = 0;
    __syncthreads();
    const unsigned found = find_hits_any<Form>(index, batch);
    __syncwarp();
    count_hits<Form>(batch, found, lists);
    __syncthreads();
    place_lists<Form>(lists);
    __syncthreads();
    fill_lists<Form>(batch, found, lists);
    __syncthreads();
}

/* The first row of each lane, which all warps have alike. */
struct places {
    const char *x[WARP];
    struct cells cells[WARP];
};

static __device__ __forceinline__ void find_places(const struct step_rows &rows, const struct block_part &part,
                                                   struct places *places)
{
    const unsigned lane = threadIdx.x;
    if (lane >= WARP)
        return;
    const uint64_t row = part.row + (lane < part.row_count ? lane : 0);
    places->x[lane] = step_row(&rows, &rows.input, row);
    places->cells[lane] = cells_of(rows, row);
}

template <class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void ask_for(enum scand_dtype dtype, const struct lane_rows<Form> &rows,
                                               const uint16_t *list, unsigned count,
                                               struct flight<T, Dtype, Form> *flight)
{
#pragma unroll
    for (unsigned first = 0; first < Form::samples; first += Form::chunk) {
        const char *at[Form::chunk];
        if (first >= count)
            return;
#pragma unroll
        for (unsigned k = 0; k < Form::chunk; k++)
            at[k] = rows.x + (int64_t)list[first + k] * rows.stride;
#pragma unroll
        for (unsigned k = 0; k < Form::chunk; k++)
#pragma unroll
            for (unsigned r = 0; r < Form::rows; r++)
                if (first + k < count && (Form::rows == 1 || rows.present[r]))
                    flight->x[first + k][r] = get_raw<T, Dtype>(dtype, at[k] + r * WARP * sizeof(raw<T, Dtype>));
    }
}

/* Adds samples begin <= h < end of the lists. */
template <bool Scales, bool Counts, class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void add_list(enum scand_dtype dtype, const struct lane_rows<Form> &rows,
                                                const uint16_t *list, unsigned begin, unsigned end, T alpha,
                                                struct sums<T, Form> *sums)
{
    struct flight<T, Dtype, Form> first = {}, second = {
    };
    ask_for<T, Dtype, Form>(dtype, rows, list + begin, end - begin, &first);
    for (unsigned h = begin; h < end; h += 2 * Form::samples) {
        const unsigned next = h + Form::samples, after = next + Form::samples;
        ask_for<T, Dtype, Form>(dtype, rows, list + next, next < end ? end - next : 0, &second);
        add<Scales, Counts>(first, end - h, alpha, sums);
        ask_for<T, Dtype, Form>(dtype, rows, list + after, after < end ? end - after : 0, &first);
        add<Scales, Counts>(second, next < end ? end - next : 0, alpha, sums);
    }
}

/* Sums between two batches, in shared memory. */
template <class T, class Form, bool Counts> struct carried {
    T sum[BINS * Form::block_rows];
    uint32_t fold[Counts ? BINS * Form::block_rows : 1];
};

template <class T, class Form, bool Counts>
static __device__ __forceinline__ void resume(const struct carried<T, Form, Counts> &carried, unsigned cell,
                                              struct sums<T, Form> *sums)
{
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        sums->sum[r] = carried.sum[cell + r * WARP];
        sums->fold[r] = Counts ? carried.fold[cell + r * WARP] : 0;
    }
}

template <class T, class Form, bool Counts>
static __device__ __forceinline__ void suspend(const struct sums<T, Form> &sums, unsigned cell,
                                               struct carried<T, Form, Counts> *carried)
{
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        carried->sum[cell + r * WARP] = sums.sum[r];
        if (Counts)
            carried->fold[cell + r * WARP] = sums.fold[r];
    }
}

/* What bins have before the rows are added. */
template <class T, class Form>
static __device__ __forceinline__ void start(const struct step_rows &rows, const struct cells &cells,
                                             const struct lane_rows<Form> &lane, uint64_t bin, bool plain,
                                             struct sums<T, Form> *sums)
{
    float onto[Form::rows] = {};
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        sums->sum[r] = 0;
        sums->fold[r] = 0;
    }
    if (!cells.onto)
        return;
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        const struct cells at = cells_at(rows, cells, r * WARP, bin);
        if (plain && lane.present[r])
            onto[r] = *(const float *)at.onto;
        else if (lane.present[r])
            sums->sum[r] = first_sum<T>(rows, at);
    }
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++)
        if (plain)
            sums->sum[r] = (T)onto[r];
}

/* Bins of a lane's rows are done. */
template <class T, class Form>
static __device__ __forceinline__ void finish(const struct step_rows &rows, const struct stack &stack,
                                              const struct cells &cells, const struct lane_rows<Form> &lane,
                                              uint64_t bin, const struct sums<T, Form> &sums)
{
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++)
        if (lane.present[r])
            put_cell<T>(rows, stack, cells_at(rows, cells, r * WARP, bin), sums.sum[r], sums.fold[r]);
}

/* Bytes of the lists of a batch, and of hits. What is loaded beyond the last list is not used. */
template <class Form> static unsigned list_bytes(uint64_t samples)
{
    return (unsigned)((2 * samples + Form::samples) * sizeof(uint16_t));
}

template <class T, enum scand_dtype Dtype, class Form, bool Counts>
static __global__ void __launch_bounds__(Form::threads, Form::blocks)
    stack_batches(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
                  const __grid_constant__ struct cut cut, unsigned samples, uint64_t begin)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    __shared__ struct lists<Form> lists;
    __shared__ struct places places;
    const struct block_part part = part_of<Form>(cut, begin + blockIdx.x);
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    auto *between = (struct carried<T, Form, Counts> *)step_shared;
    uint16_t *list = (uint16_t *)(step_shared + (input.length > samples ? sizeof *between : 0));
    if (part.row_count == 0)
        return;
    find_places(rows, part, &places);
    const T alpha = factor_of<T>(stack);
    struct lane_rows<Form> mine = {
        .stride = input.stride
    };
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++)
        mine.present[r] = lane + r * WARP < part.row_count;
    const char *bins_row = step_row(&rows, &index, part.row);
    for (uint64_t first = 0; first == 0 || first < input.length; first += samples) {
        const uint64_t left = input.length - first;
        const struct batch batch = {bins_row + (int64_t)first * index.stride,
                                    left < samples ? (unsigned)left : samples,
                                    part.begin,
                                    part.bins,
                                    list,
                                    list + samples + Form::samples};
        make_lists<Form>(index, batch, &lists);
        mine.x = places.x[lane] + (int64_t)first * input.stride;
        __builtin_assume(__isGlobal(mine.x));
        for (unsigned bin = warp; bin < part.bins; bin += Form::warps) {
            struct sums<T, Form> sums;
            const unsigned from = bin > 0 ? list_end(lists, bin - 1) : 0, until = list_end(lists, bin);
            const unsigned cell = bin * Form::block_rows + lane;
            if (first == 0)
                start(rows, places.cells[lane], mine, part.begin + bin, cut.onto_is_plain, &sums);
            else
                resume(*between, cell, &sums);
            if (stack.alpha != 1)
                add_list<true, Counts, T, Dtype>(input.dtype, mine, list, from, until, alpha, &sums);
            else
                add_list<false, Counts, T, Dtype>(input.dtype, mine, list, from, until, alpha, &sums);
            if (left <= samples)
                finish(rows, stack, places.cells[lane], mine, part.begin + bin, sums);
            else
                suspend(sums, cell, between);
        }
        __syncthreads();
    }
}

} // namespace batches

#endif

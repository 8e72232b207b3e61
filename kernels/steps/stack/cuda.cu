/*
 * Tiles that are launched together are areas of rows and bins, which are cut into thread blocks anew. Rows that share
 * an index: a thread block has some rows and bins, sorts the samples of these bins, and each of its warps adds up those
 * of one bin after the other. Rows with an index each: a thread for each row, which has the sums of some bins in shared
 * memory. Few rows: a thread for each bin. Either way a sum is one thread's, which meets samples in ascending order.
 */
#include <type_traits>

#include "kernels/steps/step.cuh"
#include "stack.h"

#define WARP 32
#define ALL  0xffffffffu
#define ANY  SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

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

/* The factor of samples, which is mostly 1. */
template <class T> static __device__ __forceinline__ T factor_of(const struct stack &stack)
{
    if constexpr (std::is_same_v<T, double>)
        return stack.alpha;
    else
        return (T)(int64_t)stack.alpha;
}

/* Element 0 of a row of each operand that has an element for each bin, or one of its bins. */
struct cells {
    char *output, *fold;
    const char *onto;
};

static __device__ __forceinline__ struct cells cells_of(const struct step_rows &rows, uint64_t row)
{
    const struct step_operand &fold = rows.further[STACK_FOLD], &onto = rows.further[STACK_ONTO];
    return {step_row(&rows, &rows.output, row), fold.origin ? step_row(&rows, &fold, row) : NULL,
            onto.origin ? step_row(&rows, &onto, row) : NULL};
}

/* A bin of the row that lies so many rows further along the last dimension. */
static __device__ __forceinline__ struct cells cells_at(const struct step_rows &rows, const struct cells &cells,
                                                        unsigned further, uint64_t bin)
{
    const struct step_operand &fold = rows.further[STACK_FOLD], &onto = rows.further[STACK_ONTO];
    const uint32_t last = further > 0 ? rows.outer_rank - 1 : 0;
    const int64_t i = (int64_t)bin, k = further;
    return {cells.output + i * rows.output.stride + k * rows.output.outer_strides[last],
            cells.fold ? cells.fold + i * fold.stride + k * fold.outer_strides[last] : NULL,
            cells.onto ? cells.onto + i * onto.stride + k * onto.outer_strides[last] : NULL};
}

/* Returns what a bin of a row has before the rows are added. */
template <class T> static __device__ __noinline__ T get_cell(enum scand_dtype dtype, const char *onto)
{
    return get_sample<T>(dtype, onto);
}

template <class T>
static __device__ __forceinline__ T first_sum(const struct step_rows &rows, const struct cells &cells)
{
    return cells.onto ? get_cell<T>(rows.further[STACK_ONTO].dtype, cells.onto) : 0;
}

static __device__ __noinline__ void put_sum(const struct stack &stack, enum scand_dtype dtype, double sum,
                                            uint32_t fold, char *at)
{
    step_put_f64(dtype, stack_value(&stack, sum, fold), at);
}

static __device__ __noinline__ void put_integer(enum scand_dtype dtype, uint64_t value, char *at)
{
    step_encode_integer(dtype, value, at);
}

/* A bin of a row is done. */
template <class T>
static __device__ __forceinline__ void put_cell(const struct step_rows &rows, const struct stack &stack,
                                                const struct cells &cells, T sum, uint32_t fold)
{
    if constexpr (!std::is_same_v<T, double>)
        put_integer(rows.output.dtype, sum, cells.output);
    else if (rows.output.dtype == SCAND_DTYPE_F32 && stack.norm == STACK_NORM_NONE)
        step_put_f64(SCAND_DTYPE_F32, sum, cells.output);
    else
        put_sum(stack, rows.output.dtype, sum, fold, cells.output);
    if (cells.fold)
        put_integer(rows.further[STACK_FOLD].dtype, fold, cells.fold);
}

static __host__ __device__ __forceinline__ uint64_t parts(uint64_t count, uint64_t each)
{
    return (count + each - 1) / each;
}

/*
 * An index for many rows.
 */

#define BINS    WARP /* bins of a thread block */
#define NO_BIN  0xffu
#define LOOKS   8               /* samples that a thread looks up the bins of at a time */
#define BATCH   UINT64_C(15360) /* samples of which there are lists at a time, if these are all */
#define BATCHES UINT64_C(8192)  /* and if not: sums need memory then */
#define ENOUGH  UINT64_C(512)   /* thread blocks that occupy a GPU */

/* How rows of this kind are added: a lane has so many rows, WARP apart, and asks for so many samples of each at a time,
 * while it adds as many others. Multiprocessors have at least so many thread blocks. */
template <unsigned Rows, unsigned Warps, unsigned Samples, unsigned Blocks> struct form {
    static constexpr unsigned rows = Rows, warps = Warps, samples = Samples, blocks = Blocks;
    static constexpr unsigned block_rows = Rows * WARP, threads = Warps * WARP;
    static constexpr unsigned chunk = Samples < 16 ? Samples : 16; /* samples that are asked for together */
};

#ifndef STACK_WIDE
#define STACK_WIDE 4, 8, 4, 3
#endif
#ifndef STACK_DEEP
#define STACK_DEEP 1, 4, 48, 3
#endif
using wide = form<STACK_WIDE>;  /* rows that are neighbours in memory, of many bins */
using deep = form<STACK_DEEP>;  /* others, as there are fewer thread blocks that could ask for samples */
using plain = form<1, 4, 4, 4>; /* samples that take many instructions each */

/* Areas are cut into parts of rows, and these into parts of bins. No part crosses a multiple of `along` rows, counted
 * from `base`: within it, rows are equally far apart and have the same index. */
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

/* Samples of a batch by their bins, in ascending order in each bin. */
template <class Form> struct lists {
    uint32_t cursors[BINS * Form::warps]; /* of each bin and warp, which look up a stretch of samples each */
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
    uint8_t *found;    /* bin of each sample, from the first bin, or NO_BIN */
};

/* The stretch of a warp. */
template <class Form> static __device__ __forceinline__ unsigned stretch_of(const struct batch &batch)
{
    return (unsigned)parts(batch.count, Form::threads) * WARP;
}

/* Looks up the bins of a warp's stretch by get(address), and counts them. */
template <class Form, unsigned Looks, class Get>
static __device__ __forceinline__ void look_up(const struct batch &batch, int64_t stride, struct lists<Form> *lists,
                                               Get get)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const unsigned first = warp * stretch_of<Form>(batch), rest = first < batch.count ? batch.count - first : 0;
    const unsigned end = first + (rest < stretch_of<Form>(batch) ? rest : stretch_of<Form>(batch));
    for (unsigned i = first + lane; i < end; i += Looks * WARP) {
        uint64_t bins[Looks];
#pragma unroll
        for (unsigned k = 0; k < Looks; k++)
            bins[k] = i + k * WARP < end ? get(batch.index + (int64_t)(i + k * WARP) * stride) - batch.begin : NO_BIN;
#pragma unroll
        for (unsigned k = 0; k < Looks; k++) {
            const bool is_in = bins[k] < batch.bins;
            if (i + k * WARP < end)
                batch.found[i + k * WARP] = is_in ? (uint8_t)bins[k] : NO_BIN;
            if (is_in)
                atomicAdd(&lists->cursors[(unsigned)bins[k] * Form::warps + warp], 1u);
        }
    }
}

template <class Form>
static __device__ void look_up_any(const struct step_operand &index, const struct batch &batch,
                                   struct lists<Form> *lists)
{
    const uint64_t address = (uint64_t)(uintptr_t)batch.index | (uint64_t)index.stride;
    const bool aligned = (address & (codec_bytes(index.dtype) - 1)) == 0;
    if (aligned && index.dtype == SCAND_DTYPE_I32)
        look_up<Form, LOOKS>(batch, index.stride, lists,
                             [](const char *at) { return (uint64_t)(int64_t) * (const int32_t *)at; });
    else if (aligned && index.dtype == SCAND_DTYPE_U32)
        look_up<Form, LOOKS>(batch, index.stride, lists,
                             [](const char *at) { return (uint64_t) * (const uint32_t *)at; });
    else if (aligned && (index.dtype == SCAND_DTYPE_I64 || index.dtype == SCAND_DTYPE_U64))
        look_up<Form, LOOKS>(batch, index.stride, lists, [](const char *at) { return *(const uint64_t *)at; });
    else
        look_up<Form, 1>(batch, index.stride, lists,
                         [&](const char *at) { return step_decode_integer(index.dtype, at); });
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

/* Puts a warp's stretch into the lists. Cursors end where the next one began. */
template <class Form> static __device__ void fill_lists(const struct batch &batch, struct lists<Form> *lists)
{
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, lower = (1u << lane) - 1;
    const unsigned first = warp * stretch_of<Form>(batch), end = first + stretch_of<Form>(batch);
    for (unsigned i = first; i < end && i < batch.count; i += WARP) {
        const unsigned bin = i + lane < batch.count ? batch.found[i + lane] : NO_BIN;
        if (!__any_sync(ALL, bin != NO_BIN))
            continue;
        const unsigned same = __match_any_sync(ALL, bin), before = __popc(same & lower);
        uint32_t *cursor = &lists->cursors[(bin % BINS) * Form::warps + warp];
        const unsigned at = *cursor + before;
        __syncwarp();
        if (bin != NO_BIN)
            batch.samples[at] = (uint16_t)(i + lane);
        if (bin != NO_BIN && before == 0)
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
    look_up_any<Form>(index, batch, lists);
    __syncthreads();
    place_lists<Form>(lists);
    __syncthreads();
    fill_lists<Form>(batch, lists);
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

/* The rows of a lane, and sample 0 of the batch in its first one. */
template <class Form> struct lane_rows {
    const char *x;
    int64_t stride;
    bool present[Form::rows];
};

/* A sample as it is on its way: floats wait for their conversion until they are here. */
template <class T, enum scand_dtype Dtype> using raw = std::conditional_t<Dtype == SCAND_DTYPE_F32, float, T>;

template <class T, enum scand_dtype Dtype>
static __device__ __forceinline__ raw<T, Dtype> get_raw(enum scand_dtype dtype, const char *at)
{
    if constexpr (Dtype == ANY)
        return get_sample<T>(dtype, at);
    else
        return *(const raw<T, Dtype> *)at;
}

/* Samples of a list on their way, of each row. */
template <class T, enum scand_dtype Dtype, class Form> struct flight { raw<T, Dtype> x[Form::samples][Form::rows]; };

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

/* Sums and folds of a lane. */
template <class T, class Form> struct sums {
    T sum[Form::rows];
    uint32_t fold[Form::rows];
};

template <bool Scales, bool Counts, class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void add(const struct flight<T, Dtype, Form> &flight, unsigned count, T alpha,
                                           struct sums<T, Form> *sums)
{
#pragma unroll
    for (unsigned k = 0; k < Form::samples; k++) {
        if (k % Form::chunk == 0 && k >= count)
            return;
#pragma unroll
        for (unsigned r = 0; r < Form::rows; r++)
            if (k < count) {
                const T x = (T)flight.x[k][r];
                sums->sum[r] = sums->sum[r] + (Scales ? alpha * x : x);
                if (Counts)
                    sums->fold[r] += x != 0;
            }
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

/* Bytes of the lists of a batch. */
template <class Form> static __host__ __device__ __forceinline__ unsigned list_bytes(uint64_t samples)
{
    return (unsigned)((samples + Form::samples) * sizeof(uint16_t) + samples * sizeof(uint8_t));
}

template <class T, enum scand_dtype Dtype, class Form, bool Counts>
static __global__ void __launch_bounds__(Form::threads, Form::blocks)
    stack_lists(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
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
                                    (uint8_t *)(list + samples + Form::samples)};
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

/*
 * An index for each row.
 */

#define OWN_THREADS 128 /* at most */
#define OWN_BINS    16  /* bins of a thread block: cells of 12 bytes for each row and bin */

/* A thread has a row, or none, and sums and folds of OWN_BINS bins, blockDim.x apart. */
template <class T>
static __global__ void __launch_bounds__(OWN_THREADS)
    stack_own(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
              const __grid_constant__ struct step_tile area, uint64_t begin)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    T *sums = (T *)step_shared + threadIdx.x;
    uint32_t *folds = (uint32_t *)(step_shared + OWN_BINS * blockDim.x * sizeof(T)) + threadIdx.x;
    const uint64_t row_parts = parts(area.row_count, blockDim.x), number = begin + blockIdx.x;
    const uint64_t place = number % row_parts * blockDim.x + threadIdx.x, row = area.first_row + place;
    const uint64_t first_bin = area.begin + number / row_parts * OWN_BINS, left = area.end - first_bin;
    const uint64_t bins = left < OWN_BINS ? left : OWN_BINS;
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    if (place >= area.row_count)
        return;
    const T alpha = factor_of<T>(stack);
    const struct cells cells = cells_of(rows, row);
    const char *x = step_row(&rows, &input, row), *bins_row = step_row(&rows, &index, row);
    for (unsigned bin = 0; bin < bins; bin++) {
        sums[bin * blockDim.x] = first_sum<T>(rows, cells_at(rows, cells, 0, first_bin + bin));
        folds[bin * blockDim.x] = 0;
    }
    for (uint64_t i = 0; i < input.length; i++) {
        const uint64_t bin = step_decode_integer(index.dtype, bins_row + (int64_t)i * index.stride) - first_bin;
        if (bin >= bins)
            continue;
        const T sample = get_sample<T>(input.dtype, x + (int64_t)i * input.stride);
        sums[bin * blockDim.x] = sums[bin * blockDim.x] + alpha * sample;
        folds[bin * blockDim.x] += sample != 0;
    }
    for (unsigned bin = 0; bin < bins; bin++)
        put_cell<T>(rows, stack, cells_at(rows, cells, 0, first_bin + bin), sums[bin * blockDim.x],
                    folds[bin * blockDim.x]);
}

/*
 * Few rows.
 */

#define FEW_THREADS 128 /* a bin each */
#define FEW_SAMPLES 512 /* samples that are looked up at a time */

template <class T>
static __global__ void __launch_bounds__(FEW_THREADS)
    stack_bins(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
               const __grid_constant__ struct step_tile area, uint64_t begin)
{
    __shared__ T samples[FEW_SAMPLES];
    __shared__ uint32_t bins[FEW_SAMPLES];
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    const uint64_t number = begin + blockIdx.x, row = area.first_row + number % area.row_count;
    const uint64_t first_bin = area.begin + number / area.row_count * FEW_THREADS, bin = first_bin + threadIdx.x;
    const char *x = step_row(&rows, &input, row), *bins_row = step_row(&rows, &index, row);
    const struct cells cells = cells_of(rows, row);
    const T alpha = factor_of<T>(stack);
    T sum = bin < area.end ? first_sum<T>(rows, cells_at(rows, cells, 0, bin)) : 0;
    uint32_t fold = 0;
    for (uint64_t first = 0; first < input.length; first += FEW_SAMPLES) {
        const unsigned count = input.length - first < FEW_SAMPLES ? (unsigned)(input.length - first) : FEW_SAMPLES;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += FEW_THREADS) {
            const char *at = bins_row + (int64_t)(first + i) * index.stride;
            const uint64_t found = step_decode_integer(index.dtype, at) - first_bin;
            samples[i] = get_sample<T>(input.dtype, x + (int64_t)(first + i) * input.stride);
            bins[i] = found < FEW_THREADS ? (uint32_t)found : UINT32_MAX;
        }
        __syncthreads();
        for (unsigned i = 0; i < count; i++)
            if (bins[i] == threadIdx.x) {
                sum = sum + alpha * samples[i];
                fold += samples[i] != 0;
            }
    }
    if (bin < area.end)
        put_cell<T>(rows, stack, cells_at(rows, cells, 0, bin), sum, fold);
}

/*
 * Launches.
 */

/* True when rows along the last dimension have one index, whatever others have. */
static bool lines_share(const struct step_rows *rows)
{
    const uint32_t last = rows->outer_rank - 1;
    return rows->outer_rank > 1 && rows->further[STACK_INDEX].outer_strides[last] == 0 &&
           rows->outer_shape[last] >= STACK_ROWS_LEAST;
}

template <class Form> static struct cut cut_of(const struct step_rows *rows, const struct step_tile *area)
{
    const struct step_operand *onto = &rows->further[STACK_ONTO];
    struct cut cut = {.area = *area, .base = area->first_row, .along = area->row_count};
    cut.onto_is_plain = onto->origin && onto->dtype == SCAND_DTYPE_F32 && step_is_aligned(rows, onto);
    if (lines_share(rows)) {
        cut.base = 0;
        cut.along = rows->outer_shape[rows->outer_rank - 1];
    }
    const uint64_t first = area->first_row - cut.base;
    cut.line_parts = parts(cut.along, Form::block_rows);
    cut.row_parts = ((first + area->row_count - 1) / cut.along - first / cut.along + 1) * cut.line_parts;
    return cut;
}

/* A launch on a stream, of an area. */
struct job {
    const struct step_rows *rows;
    const struct stack *stack;
    struct step_tile area;
    uint64_t enough; /* thread blocks from which on lanes may have several rows */
    cudaStream_t stream;
};

static uint64_t bins_of(const struct job *job)
{
    return job->area.end - job->area.begin;
}

template <class T, enum scand_dtype Dtype, class Form, bool Counts>
static cudaError_t launch_lists(const struct job *job)
{
    const uint64_t length = job->rows->input.length;
    const unsigned samples = (unsigned)(length > BATCH ? BATCHES : length > 0 ? length : 1);
    const unsigned bytes =
        list_bytes<Form>(samples) + (length > samples ? (unsigned)sizeof(struct carried<T, Form, Counts>) : 0);
    const struct cut cut = cut_of<Form>(job->rows, &job->area);
    const cudaError_t error = cudaFuncSetAttribute(stack_lists<T, Dtype, Form, Counts>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    return step_launch_each(0, cut.row_parts * parts(bins_of(job), BINS), [&](uint64_t first, unsigned grid) {
        stack_lists<T, Dtype, Form, Counts>
            <<<grid, Form::threads, bytes, job->stream>>>(*job->rows, *job->stack, cut, samples, first);
    });
}

/* True when lanes may have several rows each: neighbours in memory, and so many that thread blocks suffice. */
static bool is_wide(const struct job *job)
{
    const struct step_rows *rows = job->rows;
    const int64_t item = codec_bytes(rows->input.dtype);
    const uint64_t blocks = parts(job->area.row_count, wide::block_rows) * parts(bins_of(job), BINS);
    const bool even = rows->outer_rank == 1 || lines_share(rows);
    return even && rows->input.outer_strides[rows->outer_rank - 1] == item && blocks >= job->enough;
}

static cudaError_t launch_f32(const struct job *job)
{
    const bool counts = stack_counts(job->rows, job->stack), is_long = job->rows->input.length > BATCH;
    if (is_wide(job) && !counts)
        return launch_lists<double, SCAND_DTYPE_F32, wide, false>(job);
    if (is_wide(job) && !is_long)
        return launch_lists<double, SCAND_DTYPE_F32, wide, true>(job);
    return counts ? launch_lists<double, SCAND_DTYPE_F32, deep, true>(job)
                  : launch_lists<double, SCAND_DTYPE_F32, deep, false>(job);
}

static cudaError_t launch_shared(const struct job *job)
{
    if (codec_is_integer(job->rows->input.dtype))
        return launch_lists<uint64_t, ANY, plain, true>(job);
    if (job->rows->input.dtype == SCAND_DTYPE_F32 && step_is_aligned(job->rows, &job->rows->input))
        return launch_f32(job);
    return launch_lists<double, ANY, plain, true>(job);
}

template <class T> static cudaError_t launch_own(const struct job *job)
{
    const uint64_t count = job->area.row_count;
    const unsigned threads = count < OWN_THREADS ? (unsigned)parts(count, WARP) * WARP : OWN_THREADS;
    const unsigned bytes = OWN_BINS * threads * (unsigned)(sizeof(T) + sizeof(uint32_t));
    return step_launch_each(
        0, parts(count, threads) * parts(bins_of(job), OWN_BINS), [&](uint64_t first, unsigned grid) {
            stack_own<T><<<grid, threads, bytes, job->stream>>>(*job->rows, *job->stack, job->area, first);
        });
}

template <class T> static cudaError_t launch_few(const struct job *job)
{
    return step_launch_each(
        0, job->area.row_count * parts(bins_of(job), FEW_THREADS), [&](uint64_t first, unsigned grid) {
            stack_bins<T><<<grid, FEW_THREADS, 0, job->stream>>>(*job->rows, *job->stack, job->area, first);
        });
}

static cudaError_t launch_area(const struct job *job, bool few)
{
    const bool integers = codec_is_integer(job->rows->input.dtype);
    if (few)
        return integers ? launch_few<uint64_t>(job) : launch_few<double>(job);
    if (stack_is_shared(job->rows) || lines_share(job->rows))
        return launch_shared(job);
    return integers ? launch_own<uint64_t>(job) : launch_own<double>(job);
}

/* The area of tiles from `begin` on, *count of them: whole rows, or some bins of the rows of a tile. */
static struct step_tile area_of(const struct step_tiles *tiles, uint64_t begin, uint64_t end, uint64_t *count)
{
    const uint64_t left = end - begin, rest = tiles->per_row - begin % tiles->per_row;
    if (rest == tiles->per_row && left >= rest)
        *count = left - left % tiles->per_row;
    else
        *count = left < rest ? left : rest;
    struct step_tile area = step_tile_at(tiles, begin);
    const struct step_tile last = step_tile_at(tiles, begin + *count - 1);
    area.row_count = last.first_row + last.row_count - area.first_row;
    area.end = last.end;
    return area;
}

static cudaError_t launch_tiles(const struct step_rows *rows, const struct stack *stack, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, uint64_t enough, cudaStream_t stream)
{
    const uint64_t tile_rows = tiles->count < tiles->tiling.rows ? tiles->count : tiles->tiling.rows;
    cudaError_t error = cudaSuccess;
    for (uint64_t count; begin < end && !error; begin += count) {
        const struct step_tile area = area_of(tiles, begin, end, &count);
        const struct job job = {rows, stack, area, enough, stream};
        error = launch_area(&job, tile_rows < STACK_ROWS_LEAST);
    }
    return error;
}

extern "C" int stack_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                            uint64_t begin, uint64_t end, void *stream)
{
    return launch_tiles(rows, (const struct stack *)params, tiles, begin, end, ENOUGH, (cudaStream_t)stream);
}

extern "C" int stack_launch_wide(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                 uint64_t begin, uint64_t end, void *stream)
{
    return launch_tiles(rows, (const struct stack *)params, tiles, begin, end, 0, (cudaStream_t)stream);
}

/*
 * Rows that share an index, from its lists. A warp has some of the rows and a bin, or a few, of which it adds up the
 * samples in ascending order. A lane has a row, or several. Lists are those of a launch before (sort.cuh), or of a
 * short index each warp makes its own. Warps wait for nobody: those of bins with few samples make room for others, and
 * while one waits for samples others add theirs.
 */
#ifndef KERNELS_STEPS_STACK_LISTS_CUH
#define KERNELS_STEPS_STACK_LISTS_CUH

#include "sort.cuh"

#define ENOUGH     UINT64_C(2048)      /* warps that occupy a GPU */
#define PLENTY     UINT64_C(65536)     /* warps beyond which each has several bins */
#define SHORT      UINT64_C(1024)      /* samples at most of an index that warps look up for themselves, */
#define LOOKS_MOST (UINT64_C(1) << 22) /* and looks of all warps, which take no longer than a launch that sorts */

/* How rows of this kind are added: a lane has so many rows, WARP apart, and asks for so many samples of each at a time,
 * which it then adds while other warps ask or, if doubled, while as many others are on their way. Multiprocessors have
 * at least so many thread blocks. */
template <unsigned Rows, unsigned Warps, unsigned Samples, unsigned Blocks, bool Doubled> struct form {
    static constexpr unsigned rows = Rows, warps = Warps, samples = Samples, blocks = Blocks;
    static constexpr unsigned warp_rows = Rows * WARP, threads = Warps * WARP;
    static constexpr unsigned chunk = Samples < 16 ? Samples : 16; /* samples that are asked for together */
    static constexpr bool doubled = Doubled;
    static_assert(Samples % chunk == 0 && WARP % chunk == 0, "no chunk needs numbers of two loads");
};

using wide = form<4, 8, 4, 4, false>;  /* rows that are neighbours in memory, of many bins */
using deep = form<1, 4, 32, 2, true>;  /* others, as there are fewer warps that could ask for samples */
using plain = form<1, 4, 2, 8, false>; /* samples that take many instructions each, */
using whole = form<1, 4, 4, 4, false>; /* and integers */

/* Areas are cut into parts of rows, and these into parts of bins, which warps have. No part crosses the end of a line,
 * so that its rows have the same index and, where lanes may have several rows, are equally far apart. */
struct cut {
    struct step_tile area;
    struct lines lines;
    uint64_t line_parts, row_parts; /* parts of a line; of all */
    unsigned bins;                  /* of a warp */
    uint64_t groups;                /* parts of bins */
    bool bins_first;                /* neighbours among warps have the same rows, or else the same bins */
    bool onto_is_plain;             /* elements of what is added to are floats, aligned */
};

/* Rows and bins of a warp. */
struct part {
    uint64_t line, row, begin;
    unsigned bins, row_count; /* row_count: 0 where the area has none of these rows */
};

template <class Form> static __device__ __forceinline__ struct part part_of(const struct cut &cut, uint64_t number)
{
    const struct step_tile &area = cut.area;
    const uint64_t divisor = cut.bins_first ? cut.groups : cut.row_parts, quotient = number / divisor;
    const uint64_t group = cut.bins_first ? number - quotient * divisor : quotient;
    const uint64_t row_part = cut.bins_first ? quotient : number - quotient * divisor;
    const uint64_t begin = area.begin + group * cut.bins;
    const uint64_t line = row_part / cut.line_parts, first = line_row(cut.lines, line);
    const uint64_t from = (row_part - line * cut.line_parts) * Form::warp_rows;
    const uint64_t until = from + Form::warp_rows < cut.lines.along ? from + Form::warp_rows : cut.lines.along;
    const uint64_t row = first + from > area.first_row ? first + from : area.first_row;
    const uint64_t area_end = area.first_row + area.row_count;
    const uint64_t end = first + until < area_end ? first + until : area_end;
    if (begin >= area.end || row >= end || row_part >= cut.row_parts)
        return {};
    return {line, row, begin, area.end - begin < cut.bins ? (unsigned)(area.end - begin) : cut.bins,
            (unsigned)(end - row)};
}

/* Makes the list of a bin from a short index, of which a warp looks at all. */
static __device__ __forceinline__ struct list find_list(const struct step_rows &rows, uint64_t row, uint64_t bin,
                                                        uint32_t *places)
{
    const struct step_operand &index = rows.further[STACK_INDEX];
    const unsigned lane = threadIdx.x % WARP;
    const struct stretch all = {step_row(&rows, &index, row), index.stride, 0, (unsigned)rows.input.length};
    unsigned count = 0;
    __syncwarp();
    look_up_any(index, all, bin + 1, [&](unsigned sample, auto word) {
        const bool is_in = word == (decltype(word))bin;
        const unsigned hits = __ballot_sync(ALL, is_in);
        if (is_in)
            places[count + __popc(hits & ((1u << lane) - 1))] = sample;
        count += __popc(hits);
    });
    __syncwarp();
    return {places, count};
}

/* A place in a list: the numbers of WARP samples, of which each lane has one, and those that follow. */
struct cursor {
    struct list list;
    unsigned taken; /* samples that were asked for */
    uint32_t number, next;
};

static __device__ __forceinline__ uint32_t number_at(const struct list &list, unsigned at)
{
    return list.places[at < list.count ? at : list.count - 1];
}

static __device__ __forceinline__ struct cursor cursor_of(const struct list &list)
{
    return {list, 0, 0, list.count > 0 ? number_at(list, threadIdx.x % WARP) : 0};
}

/* Asks for the next samples of a list. Returns how many there are. */
template <class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ unsigned ask_for(enum scand_dtype dtype, const struct lane_rows<Form> &rows,
                                                   struct cursor *cursor, struct flight<T, Dtype, Form> *flight)
{
    const unsigned lane = threadIdx.x % WARP, left = cursor->list.count - cursor->taken;
    const unsigned count = left < Form::samples ? left : Form::samples;
#pragma unroll
    for (unsigned first = 0; first < Form::samples; first += Form::chunk) {
        const unsigned from = cursor->taken + first;
        const char *at[Form::chunk];
        if (first >= count)
            break;
        if (from % WARP == 0) {
            cursor->number = cursor->next;
            if (from + WARP < cursor->list.count)
                cursor->next = number_at(cursor->list, from + WARP + lane);
        }
#pragma unroll
        for (unsigned k = 0; k < Form::chunk; k++)
            at[k] = rows.x + __shfl_sync(ALL, cursor->number, from + k) * rows.stride;
#pragma unroll
        for (unsigned k = 0; k < Form::chunk; k++)
#pragma unroll
            for (unsigned r = 0; r < Form::rows; r++)
                if (first + k < count && (Form::rows == 1 || rows.present[r]))
                    flight->x[first + k][r] = get_raw<T, Dtype>(dtype, at[k] + r * WARP * sizeof(raw<T, Dtype>));
    }
    cursor->taken += count;
    return count;
}

/* Adds the samples of a list. */
template <bool Counts, class T, enum scand_dtype Dtype, class Form>
static __device__ __forceinline__ void add_list(enum scand_dtype dtype, const struct lane_rows<Form> &rows,
                                                const struct list &list, T alpha, struct sums<T, Form> *sums)
{
    struct cursor cursor = cursor_of(list);
    if constexpr (Form::doubled) {
        struct flight<T, Dtype, Form> first = {}, second = {
        };
        unsigned here = ask_for<T, Dtype, Form>(dtype, rows, &cursor, &first);
#pragma unroll 1
        while (here > 0) {
            const unsigned next = ask_for<T, Dtype, Form>(dtype, rows, &cursor, &second);
            add<Counts>(first, here, alpha, sums);
            here = ask_for<T, Dtype, Form>(dtype, rows, &cursor, &first);
            add<Counts>(second, next, alpha, sums);
        }
    } else {
#pragma unroll 1
        while (cursor.taken < list.count) {
            struct flight<T, Dtype, Form> flight = {
            };
            const unsigned count = ask_for<T, Dtype, Form>(dtype, rows, &cursor, &flight);
            add<Counts>(flight, count, alpha, sums);
        }
    }
}

/* What bins have before the rows are added. */
template <class T, class Form>
static __device__ __forceinline__ void start(const struct step_rows &rows, uint64_t row,
                                             const struct lane_rows<Form> &lane, uint64_t bin, bool plain,
                                             struct sums<T, Form> *sums)
{
    float onto[Form::rows] = {};
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++) {
        sums->sum[r] = 0;
        sums->fold[r] = 0;
    }
    if (!rows.further[STACK_ONTO].origin)
        return;
    const struct cells cells = cells_of(rows, row);
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
static __device__ __forceinline__ void finish(const struct step_rows &rows, const struct stack &stack, uint64_t row,
                                              const struct lane_rows<Form> &lane, uint64_t bin,
                                              const struct sums<T, Form> &sums)
{
    const struct cells cells = cells_of(rows, row);
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++)
        if (lane.present[r])
            put_cell<T>(rows, stack, cells_at(rows, cells, r * WARP, bin), sums.sum[r], sums.fold[r]);
}

/* The warps of an area, Form::warps in a thread block. */
template <class T, enum scand_dtype Dtype, class Form, bool Counts>
static __global__ void __launch_bounds__(Form::threads, Form::blocks)
    stack_lists(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
                const __grid_constant__ struct cut cut, const __grid_constant__ struct lists lists, uint64_t begin)
{
    extern __shared__ uint32_t stack_shared[];
    const unsigned lane = threadIdx.x % WARP;
    const struct part part = part_of<Form>(cut, (begin + blockIdx.x) * Form::warps + threadIdx.x / WARP);
    if (part.row_count == 0)
        return;
    const uint64_t row = part.row + (lane < part.row_count ? lane : 0);
    const T alpha = factor_of<T>(stack);
    struct lane_rows<Form> mine = {
        .x = step_row(&rows, &rows.input, row), .stride = rows.input.stride
    };
    __builtin_assume(__isGlobal(mine.x));
#pragma unroll
    for (unsigned r = 0; r < Form::rows; r++)
        mine.present[r] = lane + r * WARP < part.row_count;
    grid_wait_for_last();
    for (unsigned k = 0; k < part.bins; k++) {
        const uint64_t bin = part.begin + k;
        const struct list list = lists.places
                                     ? list_of(lists, part.line, bin - cut.area.begin)
                                     : find_list(rows, part.row, bin, stack_shared + threadIdx.x / WARP * lists.length);
        struct sums<T, Form> sums;
        start(rows, row, mine, bin, cut.onto_is_plain, &sums);
        add_list<Counts, T, Dtype>(rows.input.dtype, mine, list, alpha, &sums);
        finish(rows, stack, row, mine, bin, sums);
    }
}

#endif

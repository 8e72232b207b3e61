/*
 * Strips of dense rows of a known dtype. Samples of the next segment are on their way while one is summed. Segments
 * come in pairs, so that sums that a thread keeps change places without being moved.
 */
#ifndef KERNELS_STEPS_TRIANGLE_DENSE_ROWS_CUH
#define KERNELS_STEPS_TRIANGLE_DENSE_ROWS_CUH

#include "strips.cuh"

#define SEGMENTS_AHEAD 2 /* behind the one that is loaded, which the L2 cache is asked for */

/* How samples and outputs travel: a leaf in words and outputs through shared memory in words, where rows and segments
 * are such; or both one by one through shared memory. */
enum reach { WORDS, SINGLE };

/* Samples that travel at once. */
template <enum scand_dtype Dtype> struct alignas(Dtype == SCAND_DTYPE_F16 ? 8 : 16) word {
    using bits = std::conditional_t<Dtype == SCAND_DTYPE_F64, uint64_t,
                                    std::conditional_t<Dtype == SCAND_DTYPE_F32, uint32_t, uint16_t>>;
    static constexpr int SAMPLES = Dtype == SCAND_DTYPE_F64 ? 2 : 4;
    static constexpr int OF_LEAF = TRIANGLE_LEAF / SAMPLES;
    static constexpr int OF_BANKS = 128 / (SAMPLES * (int)sizeof(bits)); /* that all banks of shared memory hold */

    using vector = std::conditional_t<Dtype == SCAND_DTYPE_F16, uint2, uint4>;

    bits samples[SAMPLES];

    static __device__ __forceinline__ word load(const bits *from)
    {
        word word;
        __builtin_assume(__isGlobal(from));
        const vector whole = *(const vector *)from;
        memcpy(&word, &whole, sizeof word);
        return word;
    }
    __device__ __forceinline__ void store(bits *to) const
    {
        vector whole;
        memcpy(&whole, samples, sizeof whole);
        __builtin_assume(__isGlobal(to));
        *(vector *)to = whole;
    }
};

/* The leaves of a segment that a warp has, in shared memory: samples, and in their place outputs. Words change places
 * so that lanes with a leaf each use all banks, as lanes with words side by side do. Samples that travel one by one do
 * not: their places would take more instructions than they save. */
template <class Word, reach Reach> struct leaves {
    Word words[WARP * Word::OF_LEAF];

    static __device__ __forceinline__ int place(int number)
    {
        const int turn = number / Word::OF_BANKS % Word::OF_LEAF;
        return Reach == WORDS ? number ^ turn : number;
    }
    __device__ __forceinline__ Word &of_leaf(int lane, int w) { return words[place(lane * Word::OF_LEAF + w)]; }
    __device__ __forceinline__ typename Word::bits *samples() { return words[0].samples; }
};

/* What a thread does along its strips. */
template <enum scand_dtype Dtype, enum triangle_shape Shape, enum reach Reach> struct dense_rows {
    using sample = typename line<Dtype>::sample;
    using word = struct word<Dtype>;
    using bits = typename word::bits;
    using leaves_of_warp = struct leaves<word, Reach>;
    static constexpr bool narrow = line<Dtype>::narrow;
    static constexpr int AT_ONCE = Reach == WORDS ? word::SAMPLES : 1;
    static constexpr int TIMES = TRIANGLE_LEAF / AT_ONCE;
    static constexpr int NOWHERE = INT32_MAX / 2;
    static_assert(Reach == WORDS || sizeof(bits) == sizeof(sample), "samples that are put one by one are as they lie");

    const struct triangle &triangle;
    const struct layout &layout;
    const struct place &place;
    const struct strip<Dtype> &strip;
    struct exchange &exchange;
    leaves_of_warp &leaves;
    int warp, lane;

    int own_segments, segments;  /* of the strip; of the longest one of the warp */
    struct range inside, whole;  /* as a strip has, for all those of the warp; there are such segments */
    int r_in, r_out;             /* the first places in a segment that the thread reads and writes; NOWHERE if none */
    const bits *from;            /* the one in the segment to load next */
    bits *to;                    /* the one in the segment whose outputs are next */
    sample x[TRIANGLE_LEAF];     /* samples of the next segment, on their way */
    struct triangle_sums before; /* totals of the segment two before that one */

    __device__ __forceinline__ int size() const { return (int)triangle.half_width; }
    /* From one place that the thread reads, or writes, to the next one. */
    __device__ __forceinline__ int apart_in() const { return Reach == WORDS ? AT_ONCE : layout.lanes; }
    __device__ __forceinline__ int apart_out() const { return layout.lanes * AT_ONCE; }
    /* What there is of the places that it writes, and of those that it reads if these are side by side, in shared
     * memory. */
    __device__ __forceinline__ bits *at(int k) const
    {
        const int number = place.strip * layout.lanes * TIMES + place.lane + k * layout.lanes;
        return leaves.samples() + leaves_of_warp::place(number) * AT_ONCE;
    }

    /* Before the first strip: lanes that never have one will read zeros. */
    __device__ __forceinline__ void clear()
    {
        if constexpr (Reach == SINGLE)
            for (int w = 0; w < word::OF_LEAF; w++)
                leaves.of_leaf(lane, w) = {};
    }

    /* Begins a strip, if there is one. */
    __device__ __forceinline__ void begin()
    {
        const int side = warp * TRIANGLE_GROUP + place.lane * AT_ONCE;
        const int first = Reach == WORDS ? place.leaf * TRIANGLE_LEAF : side;
        own_segments = place.has_strip ? strip.segments : 0;
        segments = most_of_warp(own_segments);
        inside = own_segments > 0 ? strip.inside.both(range::of(0, own_segments)) : range::all();
        whole = own_segments > 0 ? strip.whole.both(range::of(2, own_segments)) : range::all();
        inside = range::of(most_of_warp(inside.from), -most_of_warp(-inside.end()));
        whole = range::of(most_of_warp(whole.from), -most_of_warp(-whole.end()));
        r_in = own_segments > 0 ? first : NOWHERE;
        r_out = own_segments > 0 ? side : NOWHERE;
        from = (const bits *)strip.line.from + strip.first + first;
        to = (bits *)strip.line.to + strip.first - size() + side;
        before = {0, 0};
        load(0);
    }

    /* Has the samples of a segment on their way. */
    __device__ __forceinline__ void load(int number)
    {
        if (inside.has(number)) {
            load_inside();
        } else if (number < own_segments) {
            load_beyond(strip.at(number, triangle));
        }
        from += size();
        if (inside.has(number + SEGMENTS_AHEAD) && r_in < size())
            prefetch(from + (SEGMENTS_AHEAD - 1) * size());
    }
    __device__ __forceinline__ void load_inside()
    {
        const bits *source = from;
        __builtin_assume(__isGlobal(source));
#pragma unroll
        for (int k = 0; k < TIMES; k++, source += apart_in())
            if (r_in + k * apart_in() < size()) {
                if constexpr (Reach == WORDS) {
                    const word got = word::load(source);
                    take_word(k, got);
                } else {
                    x[k] = line<Dtype>::decode(*source);
                }
            }
    }
    __device__ __forceinline__ void take_word(int k, const word &got)
    {
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++)
            x[k * AT_ONCE + q] = line<Dtype>::decode(got.samples[q]);
    }
    /* Of a segment from sample `first` on, of which some are not the row's. */
    __device__ __forceinline__ void load_beyond(int64_t first)
    {
#pragma unroll
        for (int k = 0; k < TIMES; k++) {
            const int r = r_in + k * apart_in();
            if (r < size()) {
                if constexpr (Reach == WORDS) {
                    const word got = word_beyond(first + r);
                    take_word(k, got);
                } else {
                    x[k] = line<Dtype>::decode(beyond(first + r));
                }
            }
        }
    }
    __device__ __forceinline__ bits beyond(int64_t i) const
    {
        const int64_t length = strip.line.length;
        if (triangle.boundary != BOUNDARY_REFLECT && (i < 0 || i >= length))
            return 0;
        return ((const bits *)strip.line.from)[turned(i, length)];
    }
    /* A word of the extended row, which is read as one if the row has it, or a mirror of it. */
    __device__ __forceinline__ word word_beyond(int64_t i) const
    {
        const int64_t length = strip.line.length;
        const bool is_inside = i >= 0 && i + AT_ONCE <= length;
        const int64_t mirror = (i < 0 ? 0 : 2 * length) - AT_ONCE - i;
        const bool has_mirror =
            triangle.boundary == BOUNDARY_REFLECT && mirror >= 0 && mirror + AT_ONCE <= length && mirror % AT_ONCE == 0;
        word got = {};
        if (is_inside || has_mirror) {
            const word there = word::load((const bits *)strip.line.from + (is_inside ? i : mirror));
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++)
                got.samples[q] = there.samples[AT_ONCE - 1 - q];
            return is_inside ? there : got;
        }
#pragma unroll 1
        for (int q = 0; q < AT_ONCE; q++) {
            const bits sample = beyond(i + q);
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) /* with constants, so that they stay in registers */
                got.samples[n] = n == q ? sample : got.samples[n];
        }
        return got;
    }

    /* The leaf of the segment that was loaded. */
    __device__ __forceinline__ void take(double leaf[TRIANGLE_LEAF])
    {
        if constexpr (Reach == SINGLE) {
            if (place.has_strip)
#pragma unroll
                for (int k = 0; k < TIMES; k++)
                    memcpy(at(k), &x[k], sizeof(bits));
            __syncwarp();
#pragma unroll
            for (int w = 0; w < word::OF_LEAF; w++) {
                const word got = leaves.of_leaf(lane, w);
#pragma unroll
                for (int q = 0; q < word::SAMPLES; q++)
                    leaf[w * word::SAMPLES + q] = (double)line<Dtype>::decode(got.samples[q]);
            }
        } else {
#pragma unroll
            for (int q = 0; q < TRIANGLE_LEAF; q++)
                leaf[q] = (double)x[q];
        }
    }

    /* Puts outputs into shared memory, where nobody but this lane has read its leaf. */
    __device__ __forceinline__ void put(sample y[TRIANGLE_LEAF])
    {
        bool has_nan = false;
#pragma unroll
        for (int q = 0; q < TRIANGLE_LEAF; q += 2)
            has_nan |= (y[q] != y[q]) | (y[q + 1] != y[q + 1]);
        if (has_nan) /* which are few: a look at all of them takes less than at each */
#pragma unroll
            for (int q = 0; q < TRIANGLE_LEAF; q++)
                y[q] = line<Dtype>::one_nan(y[q]);
#pragma unroll
        for (int w = 0; w < word::OF_LEAF; w++) {
            word out;
#pragma unroll
            for (int q = 0; q < word::SAMPLES; q++)
                out.samples[q] = line<Dtype>::encode_number(y[w * word::SAMPLES + q]);
            if (Reach == WORDS || place.has_strip)
                leaves.of_leaf(lane, w) = out;
        }
        __syncwarp();
    }
    /* Writes outputs, of the segment before number `segment`. */
    __device__ __forceinline__ void store(int segment)
    {
        if (whole.has(segment)) {
            if (r_out < size())
                store_whole();
        } else if (segment >= 2 && segment < own_segments) {
#pragma unroll 1
            for (int k = 0; k < TIMES; k++)
                if (r_out + k * apart_out() < size())
                    store_some(strip.at(segment - 1, triangle) + r_out + k * apart_out(), at(k));
        }
        to += size();
        __syncwarp();
    }
    __device__ __forceinline__ void store_whole()
    {
        using unit = std::conditional_t<Reach == WORDS, word, bits>;
        unit y[TIMES];
        bits *target = to;
#pragma unroll
        for (int k = 0; k < TIMES; k++)
            y[k] = *(const unit *)at(k);
        __builtin_assume(__isGlobal(target));
#pragma unroll
        for (int k = 0; k < TIMES; k++, target += apart_out())
            if (r_out + k * apart_out() < size()) {
                if constexpr (Reach == WORDS)
                    y[k].store(target);
                else
                    *target = y[k];
            }
    }
    /* From output i on, some that may not be the strip's, or not kept. */
    __device__ __forceinline__ void store_some(int64_t i, const bits *y) const
    {
#pragma unroll 1
        for (const bits *end = y + AT_ONCE; y < end; y++, i++)
            if (i >= strip.begin && i < strip.end)
                ((bits *)strip.line.to)[i] = i >= strip.kept_from && i < strip.kept_to ? *y : (bits)0;
    }

    /* Sums a segment, and makes the outputs of the one before. Turn: number % 2. */
    __device__ __forceinline__ void pass(int number, int turn, double (&behind)[TRIANGLE_LEAF],
                                         double (&here)[TRIANGLE_LEAF])
    {
        const bool is_last = place.leaf == layout.leaves - 1;
        double leaf[TRIANGLE_LEAF];
        sample y[TRIANGLE_LEAF];
        take(leaf);
        load(number + 1);
        const struct carry carry = carry_of<narrow, Shape>(leaf, layout, place, warp, exchange.groups[turn]);
        const struct triangle_sums last = exchange.totals[1 - turn][place.has_strip ? place.strip : 0];
        const struct triangle_sums total =
            outputs_of_leaf<narrow, Shape>(triangle, leaf, carry, place.leaf, is_last, last, before, behind, here, y);
        if (is_last)
            exchange.totals[turn][place.strip] = total;
        put(y);
        store(number);
        before = last;
    }
};

template <enum scand_dtype Dtype, enum triangle_shape Shape, enum reach Reach>
static __global__ void __launch_bounds__(THREADS_MAX, STEP_BLOCKS(THREADS_MAX, BLOCKS))
    triangle_dense(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct triangle any,
                   const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    __shared__ struct exchange exchange;
    __shared__ struct strip<Dtype> strips[WARP];
    struct triangle triangle = any;
    triangle.shape = Shape; /* which the compiler knows then */
    const struct layout layout = layout::of(triangle);
    const struct place place = place::of(layout);
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned side_by_side = gridDim.y * (unsigned)layout.strips;
    const uint64_t count = strips_of(rows, tile, triangle, side_by_side);
    const int warp = warp_number(), lane = (int)threadIdx.x % WARP;
    const struct strip<Dtype> &strip = strips[place.has_strip ? place.strip : 0];
    auto *const all_leaves = (struct leaves<word<Dtype>, Reach> *)step_shared;
    struct dense_rows<Dtype, Shape, Reach> thread = {
        triangle, layout, place, strip, exchange, all_leaves[warp], warp, lane
    };
    thread.clear();
    for (uint64_t turn = blockIdx.y * (unsigned)layout.strips; turn < count; turn += side_by_side) {
        begin_strips(rows, triangle, tile, place, turn, count, strips);
        thread.begin();
        double kept[2][TRIANGLE_LEAF] = {}; /* of each strip, so that nothing is moved where one ends */
        for (int number = 0; number < thread.segments; number += 2) {
            thread.pass(number, 0, kept[0], kept[1]);
            if (number + 1 >= thread.segments)
                break;
            thread.pass(number + 1, 1, kept[1], kept[0]);
        }
    }
}

#endif

/*
 * Reads and writes of a lane's leaf by the any_layout kernel: words of 2, 4 or 8 bytes travel (tile_words.cuh), and
 * become samples in registers. The form of the samples is looked up once for a leaf, by all lanes alike.
 *
 * `Ahead`: both sides are contiguous and the item's words were fetched while the one before was computed. Else they are
 * fetched when they are needed, at any stride and alignment.
 */
#ifndef KERNELS_CUDA_WARP_ANY_LEAF_CUH
#define KERNELS_CUDA_WARP_ANY_LEAF_CUH

#include "kernels/cuda/lane/convert.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_words.cuh"

/* Leaves of a tile that pass through shared memory at a time, at least, where nothing is fetched ahead: any GPU has
 * that much memory. The vectors that a warp needs for so many, by the bytes of the widest word. */
#define ANY_LEAVES               8
#define ANY_SMEM(LEAVES, WIDEST) ((LEAVES) * (WIDEST) + 8)

/* The time at which words are fetched: as they are needed; or before, and the next item's when they have been read; or
 * before, by the kernel. */
enum any_fetching { FETCH_NOW, FETCH_AHEAD, FETCH_APART };

struct any_plan {
    struct scan_plan scan; /* plan whose tile is the whole room where nothing is fetched ahead */
    enum scand_dtype input, output;
    int input_bytes, output_bytes; /* bytes of the words that samples travel as */
    int leaves;                    /* that are read at a time, where nothing is fetched ahead */
    enum scand_kind kind;
    bool wide[SCAND_PASSES_MAX];          /* true for passes whose samples are f64 */
    uint64_t flip;                        /* instance_flip */
    uint64_t zero;                        /* value of no samples, of integers */
    const uint64_t *offsets;              /* offsets of ragged rows; or NULL */
    const struct scan_ragged_item *items; /* as in scan_ragged_rows */
    bool demean;
    const double *totals; /* totals of the rows that have several blocks, last of sums_per_row each, to demean them */
};

static inline int any_widest(const struct any_plan &plan)
{
    return plan.input_bytes > plan.output_bytes ? plan.input_bytes : plan.output_bytes;
}

/* Starts the copy of a warp's tile of an item that comes later. */
template <int Bytes> DEVICE void any_fetch(const struct scan_item *item, int warp, uint4 *tile)
{
    int count = tile_samples(item->length, warp);
    if (count > 0)
        words_fetch_vectors<Bytes>(tile, item->input + warp * ORDER_TILE * Bytes, count);
    __pipeline_commit();
}

DEVICE void any_fetch_first(const struct any_plan &plan, const struct scan_item *item, int warp, uint4 *tile)
{
    if (plan.input_bytes == 2)
        any_fetch<2>(item, warp, tile);
    else if (plan.input_bytes == 4)
        any_fetch<4>(item, warp, tile);
    else
        any_fetch<8>(item, warp, tile);
}

/* The words of this lane's leaf, of a tile that was fetched. */
template <int Bytes, enum any_fetching Fetching>
DEVICE void any_words_fetched(const struct scan_item *item, const struct scan_item *next, int warp, uint4 *tile,
                              uint32_t words[4 * Bytes])
{
    __pipeline_wait_prior(0);
    __syncwarp();
    leaf_get<Bytes>(tile, lane_index(), shift_of<char>(item->input), words);
    __syncwarp();
    if (Fetching == FETCH_AHEAD)
        any_fetch<Bytes>(next, warp, tile);
}

/* The words of a leaf of an item that was not fetched ahead: plan.leaves at a time. */
template <int Bytes>
DEVICE void any_words_now(const struct any_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                          uint32_t words[4 * Bytes])
{
    const int leaves = plan.leaves;
    const int shift = plan.scan.input.access == ACCESS_VEC16 ? shift_of<char>(item->input) : 0;
#pragma unroll 1
    for (int first = 0; first < WARP; first += leaves) {
        int lane = lane_index(), begin = warp * ORDER_TILE + first * ORDER_LEAF;
        int count = min(item->length - begin, leaves * ORDER_LEAF);
        if (count > 0)
            words_fetch<Bytes>(stage, item->input, plan.scan.input, begin, count);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
        if (lane >= first && lane < first + leaves)
            leaf_get<Bytes>(stage, lane - first, shift, words);
        __syncwarp();
    }
}

/* Sources of the words of a lane's leaf: words<Bytes>(words) has them. This one: a warp's tile of an item. */
template <enum any_fetching Fetching> struct any_tile_source {
    const struct any_plan &plan;
    const struct scan_item *item, *next;
    int warp;
    uint4 *tile;

    template <int Bytes> __device__ __forceinline__ void words(uint32_t words[4 * Bytes]) const
    {
        if constexpr (Fetching != FETCH_NOW)
            any_words_fetched<Bytes, Fetching>(item, next, warp, tile, words);
        else
            any_words_now<Bytes>(plan, item, warp, tile, words);
    }
};

/* The samples of this lane's leaf from words of so many bytes. */
template <int Bytes, class Source, class T>
DEVICE void any_samples_of(enum scand_dtype form, const Source &source, T x[ORDER_LEAF])
{
    uint32_t words[4 * Bytes];
    source.template words<Bytes>(words);
    leaf_of_words<Bytes>(form, words, x);
}

/* Samples of i32be and i32le, which few have, from the words of this lane's leaf, and a value of f64 as one. Functions
 * of their own: inlined, they make kernels that hold all they can spill more, for everybody. */
template <class Source>
static __device__ __noinline__ held_leaf<double> any_i32_apart(enum scand_dtype form, const Source source)
{
    struct held_leaf<double> leaf;
    any_samples_of<4>(form, source, leaf.x);
    return leaf;
}

static __device__ __noinline__ uint32_t i32_apart(enum scand_dtype form, double value)
{
    return codec_ordered32(form, (uint32_t)codec_encode_i32(value));
}

/* Samples of class f32 and f64 from the words of this lane's leaf. `Apart`: i32be and i32le by calls; inlined, they
 * have the others spill, but for any_layout_prefetch_kernel, where a call does: f64 of 10,000 would reach 0.80 and not
 * 0.84 of a copy. `packed`: samples of 2 bytes stay two to a word, in the first half of x. */
template <bool Apart, class Source>
DEVICE void any_samples(const struct any_plan &plan, const Source &source, float x[ORDER_LEAF], bool packed = false)
{
    if (plan.input_bytes == 4) {
        any_samples_of<4>(plan.input, source, x);
        return;
    }
    uint32_t words[WORDS16];
    source.template words<2>(words);
    if (packed)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = __uint_as_float(i < WORDS16 ? words[i] : 0);
    else
        leaf_of_words<2>(plan.input, words, x);
}

template <bool Apart, class Source>
DEVICE void any_samples(const struct any_plan &plan, const Source &source, double x[ORDER_LEAF])
{
    if (plan.input_bytes == 8) {
        any_samples_of<8>(plan.input, source, x);
    } else if constexpr (Apart) {
        const struct held_leaf<double> leaf = any_i32_apart(plan.input, source);
        memcpy(x, leaf.x, sizeof(leaf.x));
    } else {
        any_samples_of<4>(plan.input, source, x);
    }
}

/* As leaf_of_words, which takes what flips them as a number: by it kernels that prefetch spill, and rows of 10,000 i64
 * reach 0.79 of a copy instead of 0.86. */
template <bool Apart, class Source>
DEVICE void any_samples(const struct any_plan &plan, const Source &source, uint64_t x[ORDER_LEAF])
{
    if (plan.input_bytes == 8) {
        uint32_t words[2 * ORDER_LEAF];
        source.template words<8>(words);
        words64_order(plan.input, words);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = ((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) ^ plan.flip;
    } else {
        uint32_t words[ORDER_LEAF];
        source.template words<4>(words);
        words32_order(plan.input, words);
        const uint32_t sign = codec_class(plan.input) == SCAND_CLASS_SIGNED ? ~0u : 0;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = ((uint64_t)((uint32_t)((int32_t)words[i] >> 31) & sign) << 32 | words[i]) ^ plan.flip;
    }
}

/* The upper half of plan.flip, for samples of 4 bytes. */
DEVICE uint32_t any_flip32(const struct any_plan &plan)
{
    return (uint32_t)(plan.flip >> 32);
}

template <bool Apart, class Source>
DEVICE void any_samples(const struct any_plan &plan, const Source &source, uint32_t x[ORDER_LEAF])
{
    source.template words<4>(x);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] ^= any_flip32(plan);
}

/* Puts words to any address, some leaves at a time. */
template <int Bytes, class Word>
DEVICE void any_put_now(const struct scan_side &side, const struct scan_item *item, int warp, uint4 *stage, Word word)
{
#pragma unroll 1
    for (int first = 0; first < WARP; first += ANY_LEAVES) {
        int lane = lane_index(), begin = warp * ORDER_TILE + first * ORDER_LEAF;
        int count = min(item->length - begin, ANY_LEAVES * ORDER_LEAF);
        if (lane >= first && lane < first + ANY_LEAVES)
            leaf_put<Bytes>(stage, lane - first, word);
        __syncwarp();
        if (count > 0 && side.access == ACCESS_VEC16)
            words_drain_vectors<Bytes, ANY_LEAVES * Bytes>(stage, item->output + begin * Bytes, count);
        else if (count > 0)
            words_drain_strided<Bytes>(stage, item->output + begin * side.stride, side.stride, count, side.access);
        __syncwarp();
    }
}

/* Writes a tile, of which `word` makes the words of this lane's leaf. `Sectors`: for kernels that have registers to put
 * 8-byte words leaf by leaf where leaves do not begin with WORDS_SECTOR bytes. A quarter of a leaf is parts of two of
 * these then, which memory takes longer to write. */
template <int Bytes, bool Sectors, class Word>
DEVICE void any_put_ahead(const struct scan_side &side, const struct scan_item *item, int warp, uint4 *stage, Word word)
{
    char *target = item->output + warp * ORDER_TILE * Bytes;
    int count = tile_samples(item->length, warp);
    if constexpr (Bytes == 8) {
        if (Sectors && (uintptr_t)target % WORDS_SECTOR != 0)
            any_put_now<Bytes>(side, item, warp, stage, word);
        else if (!Sectors && shift_of<char>(target) != 0)
            words_write_quarters<false, true>(stage, target, count, word);
        else if (count < ORDER_TILE)
            words_write_quarters<false, false>(stage, target, count, word);
        else
            words_write_quarters<true, false>(stage, target, count, word);
    } else {
        leaf_put<Bytes>(stage, lane_index(), word);
        __syncwarp();
        if (count > 0)
            words_drain_vectors<Bytes, WARP * Bytes>(stage, target, count);
        __syncwarp();
    }
}

/* Targets for the words of a lane's leaf: put<Bytes>(word) takes them. This one: a warp's tile of an item. */
template <bool Ahead, bool Sectors = false> struct any_tile_target {
    const struct any_plan &plan;
    const struct scan_item *item;
    int warp;
    uint4 *stage;

    template <int Bytes, class Word> __device__ __forceinline__ void put(Word word) const
    {
        if constexpr (Ahead)
            any_put_ahead<Bytes, Sectors>(plan.scan.output, item, warp, stage, word);
        else
            any_put_now<Bytes>(plan.scan.output, item, warp, stage, word);
    }
};

/* True when values are less half of their samples. */
DEVICE bool kind_is_half(int kind)
{
    return kind == SCAND_KIND_HALF || kind == SCAND_KIND_TRAPEZOID;
}

/* The results of values. A NaN makes all that follows it in a leaf NaN, but for kinds that are half, where it may be of
 * that value alone. Returns true when there are any NaN, which are quiet ones then. */
template <class Sum, class Out>
DEVICE bool any_results(const typename Sum::sample x[ORDER_LEAF], bool half, Out results[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        result_of<Sum>(x[i], &results[i]);
    bool nan = results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1];
    if (half)
#pragma unroll
        for (int i = 1; i < ORDER_LEAF - 1; i++)
            nan = nan || results[i] != results[i];
    if (nan)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&results[i]);
    return nan;
}

/* Results of class f32. */
template <class Target>
DEVICE void any_write_f32(const struct any_plan &plan, const Target &target, float results[ORDER_LEAF], bool nan)
{
    if (plan.output_bytes == 2) {
        uint32_t words[WORDS16];
        convert16_encode(plan.output, results, nan, words);
        target.template put<2>([&](int i) { return words[i]; });
    } else {
        leaf_encode(plan.output, results);
        target.template put<4>([&](int i) { return __float_as_uint(results[i]); });
    }
}

template <class Sum, bool Apart, class Target>
DEVICE void any_write(const struct any_plan &plan, const Target &target, const typename Sum::sample x[ORDER_LEAF])
{
    const bool half = Sum::has_half && kind_is_half(plan.kind);
    if constexpr (!Sum::is_real && sizeof(typename Sum::sample) == 4) {
        target.template put<4>([&](int i) { return x[i] ^ any_flip32(plan); });
    } else if constexpr (!Sum::is_real) {
        const uint32_t flip = any_flip32(plan), low = Sum::compares ? (uint32_t)plan.flip : 0;
        const struct word_order order = word_order_of(plan.output);
        if (plan.output_bytes == 8)
            target.template put<8>([&](int i) {
                return word64_ordered(order, i, (uint32_t)x[i / 2] ^ low, (uint32_t)(x[i / 2] >> 32) ^ flip);
            });
        else
            target.template put<4>([&](int i) { return word32_ordered(order, (uint32_t)x[i] ^ low); });
    } else if (plan.output_bytes == 8) {
        double results[ORDER_LEAF];
        any_results<Sum>(x, half, results);
        const struct word_order order = word_order_of(plan.output);
        target.template put<8>([&](int i) {
            return word64_ordered(order, i, (uint32_t)__double2loint(results[i / 2]),
                                  (uint32_t)__double2hiint(results[i / 2]));
        });
    } else if (plan.output == SCAND_DTYPE_I32LE || (Apart && plan.output == SCAND_DTYPE_I32BE)) {
        /* One after the other: there are no registers for f64 beside the sums. A NaN is a 0 here. */
        target.template put<4>([&](int i) {
            double result;
            result_of<Sum>(x[i], &result);
            return i32_apart(plan.output, result);
        });
    } else if (!Apart && plan.output == SCAND_DTYPE_I32BE) {
        target.template put<4>([&](int i) {
            double result;
            result_of<Sum>(x[i], &result);
            return (uint32_t)codec_encoded_f64(SCAND_DTYPE_I32BE, result);
        });
    } else {
        float results[ORDER_LEAF];
        bool nan = any_results<Sum>(x, half, results);
        any_write_f32(plan, target, results, nan);
    }
}

#endif

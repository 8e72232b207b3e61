/*
 * The addresses of samples, and a warp's moves of its tile between device memory and its lanes' registers.
 *
 * Neighbouring lanes should touch neighbouring addresses, 16 aligned bytes at a time, but a lane holds 16 consecutive
 * samples, which may begin anywhere. So a tile passes through shared memory in vectors of 16 bytes, those that it lies
 * in in device memory, its first sample `shift` samples from the start of the first one. Lanes shift samples to and
 * from each other's vectors: alignment decides how samples travel, never which lane holds them. Vectors are permuted so
 * that both ways of going through them, lane after lane and leaf after leaf, meet every bank equally often.
 */
#ifndef KERNELS_CUDA_WARP_TILE_IO_CUH
#define KERNELS_CUDA_WARP_TILE_IO_CUH

#include <cuda_pipeline_primitives.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/select/plan.h"

/*
 * A tile in shared memory: vectors of f32 samples, as many more as it takes where they do not begin with a line of
 * device memory, hence again multiples of 128 bytes: tiles that begin elsewhere take 10 % longer.
 */
#define TILE_VECTORS (ORDER_TILE * 4 / VEC16_BYTES)
#define TILE_SMEM    (TILE_VECTORS + LINE_VECTORS)
#define LINE_VECTORS 8 /* vectors of a line of device memory, 128 bytes */

/* The place in a tile of a vector of samples or results. The four vectors of a leaf change places with each other,
 * differently in neighbouring leaves. The pattern repeats after SWIZZLE_PERIOD vectors. */
#define SWIZZLE_PERIOD 32

DEVICE int swizzle(int vec16)
{
    return vec16 ^ ((vec16 >> 3) & (sizeof(float) - 1));
}

/* Sample `index` of a tile in shared memory. */
DEVICE float *staged_sample(const uint4 *tile, unsigned index)
{
    const unsigned offset = index * sizeof(float);
    return (float *)((char *)tile + (offset ^ (offset >> 3 & (sizeof(float) - 1) * VEC16_BYTES)));
}

/*
 * The place in a tile of a leaf's first vector, in bytes. The vectors after it lie at this offset with the bits of
 * their distance flipped. The compiler must not know how the offset is made, or it would add the tile's address to each
 * of them. Unless `Settled` it may know, as registers are scarce in ragged rows, and some of their loops' would be
 * spilled.
 */
template <bool Settled> DEVICE unsigned leaf_swizzle(int leaf)
{
    unsigned offset = swizzle(ORDER_LEAF / 4 * leaf) * VEC16_BYTES;
    if (Settled)
        pin(offset);
    return offset;
}

/* Samples from the start of a vector to `address`. */
template <class T> DEVICE int shift_of(const char *address)
{
    return (int)((uintptr_t)address % VEC16_BYTES / sizeof(T));
}

/* Starts the copy of the first `size` bytes of a vector; the others become zeros. */
DEVICE void vec16_fetch(uint4 *vec16, const char *source, int size)
{
#if __CUDA_ARCH__ >= 800
    cp_async_16_zfill(smem_address(vec16), source, size);
#else
    __pipeline_memcpy_async(vec16, source, VEC16_BYTES, VEC16_BYTES - size);
#endif
}

/*
 * Starts copies of the vectors that `count` samples lie in. Those of the first vector that come before are read as
 * well, those of the last that come after are not.
 */
DEVICE void fetch_vectors(uint4 *tile, const char *source, int shift, int count)
{
    int lane = lane_index(), end = shift + count;
    source = settled(source - shift * 4 + lane * VEC16_BYTES);
    uint4 *vec16 = tile + swizzle(lane);
    if (count == ORDER_TILE) {
#pragma unroll
        for (int k = 0; k < TILE_VECTORS; k += SWIZZLE_PERIOD)
            __pipeline_memcpy_async(vec16 + k, source + k * VEC16_BYTES, VEC16_BYTES);
    } else {
#pragma unroll
        for (int k = 0; k < TILE_VECTORS; k += SWIZZLE_PERIOD)
            if (k + lane < end / 4)
                __pipeline_memcpy_async(vec16 + k, source + k * VEC16_BYTES, VEC16_BYTES);
    }
    if (end % 4 != 0 && lane == end / 4 % WARP) {
        int last = end / 4;
        vec16_fetch(tile + swizzle(last), source + (last - lane) * VEC16_BYTES, end % 4 * 4);
    }
}

/* Fetches the vectors of a whole tile that begins within a vector, where the vector in which it ends is full as well.
 */
DEVICE void fetch_vectors_inside(uint4 *tile, const char *source, int shift)
{
    const int lane = lane_index();
    source = settled(source - shift * 4 + lane * VEC16_BYTES);
    uint4 *vec16 = tile + swizzle(lane);
#pragma unroll
    for (int k = 0; k <= TILE_VECTORS; k += SWIZZLE_PERIOD)
        if (k < TILE_VECTORS || lane == 0)
            __pipeline_memcpy_async(vec16 + k, source + k * VEC16_BYTES, VEC16_BYTES);
}

/* Vectors from the start of a line to the one that `address` lies in. */
DEVICE int vectors_in_line(const char *address)
{
    return (int)((uintptr_t)address / VEC16_BYTES % LINE_VECTORS);
}

/* Samples from the start of a line to `address`. */
DEVICE int word_in_line(const char *address)
{
    return (int)((uintptr_t)address / sizeof(float) % (LINE_VECTORS * VEC16_BYTES / sizeof(float)));
}

/* The vectors, of a stretch that begins with a line, in which some samples lie. */
struct line_vectors {
    int first;
    int end;  /* after those that are full to their last sample */
    int rest; /* samples in that one */
};

DEVICE struct line_vectors line_vectors_of(const char *samples, int count)
{
    const int first = vectors_in_line(samples), end = 4 * first + shift_of<float>(samples) + count;
    return {first, end / 4, end % 4};
}

/*
 * Starts copies of the vectors that `count` samples lie in, at least Full tiles and at most Tiles, from the start of a
 * line on: requests that meet lines in the middle take one line more each.
 */
template <int Tiles, int Full = Tiles - 1> DEVICE void fetch_lines(uint4 *tile, const char *source, int count)
{
    const struct line_vectors at = line_vectors_of(source, count);
    const int lane = lane_index();
    source = settled(source - shift_of<float>(source) * 4 + (lane - at.first) * VEC16_BYTES);
    uint4 *vec16 = tile + swizzle(lane);
#pragma unroll
    for (int k = 0; k <= Tiles * TILE_VECTORS; k += WARP)
        if ((k > 0 || lane >= at.first) && (k + WARP <= Full * TILE_VECTORS || k + lane < at.end))
            __pipeline_memcpy_async(vec16 + k, source + k * VEC16_BYTES, VEC16_BYTES);
    if (at.rest > 0 && lane == at.end % WARP)
        vec16_fetch(tile + swizzle(at.end), source + (at.end - lane) * VEC16_BYTES, at.rest * 4);
}

DEVICE void vec16_get(const uint4 *vec16, float x[4])
{
    uint4 words = *vec16;
    x[0] = __uint_as_float(words.x);
    x[1] = __uint_as_float(words.y);
    x[2] = __uint_as_float(words.z);
    x[3] = __uint_as_float(words.w);
}

DEVICE void vec16_put(uint4 *vec16, const float x[4])
{
    uint4 words;
    memcpy(&words, x, sizeof(words));
    *vec16 = words;
}

/* The samples of this lane's leaf, where rows begin with a vector. */
template <bool Settled = true> DEVICE void leaf_read(const uint4 *tile, float x[ORDER_LEAF])
{
    const unsigned offset = leaf_swizzle<Settled>(lane_index());
#pragma unroll
    for (int j = 0; j < 4; j++)
        vec16_get((const uint4 *)((const char *)tile + (offset ^ j * VEC16_BYTES)), &x[4 * j]);
}

/* Moves samples `By` places down; those beyond the leaf follow. `Apart`: on a way of its own, where the compiler would
 * make one of several that chooses each sample. */
template <int By, bool Apart = false> DEVICE void leaf_shift_down(const float from[ORDER_LEAF + 4], float x[ORDER_LEAF])
{
    if (Apart)
        keep_apart<By>();
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = from[i + By];
}

template <bool Apart = false>
DEVICE void leaf_shift_down(const float from[ORDER_LEAF + 4], int shift, float x[ORDER_LEAF])
{
    if (shift == 0)
        leaf_shift_down<0, Apart>(from, x);
    else if (shift == 1)
        leaf_shift_down<1, Apart>(from, x);
    else if (shift == 2)
        leaf_shift_down<2, Apart>(from, x);
    else
        leaf_shift_down<3, Apart>(from, x);
}

/* Reads a leaf whose samples begin `shift` samples later. */
template <bool Settled = true, bool Apart = false>
DEVICE void leaf_read(const uint4 *tile, int shift, float x[ORDER_LEAF])
{
    float from[ORDER_LEAF + 4];
    leaf_read<Settled>(tile, from);
    vec16_get(&tile[swizzle(4 * lane_index() + 4)], &from[ORDER_LEAF]);
    leaf_shift_down<Apart>(from, shift, x);
}

/* A leaf that begins `shift` samples after the start of vector `first`. */
DEVICE void leaf_read_at(const uint4 *vectors, int first, int shift, float x[ORDER_LEAF])
{
    float from[ORDER_LEAF + 4];
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
        vec16_get(&vectors[swizzle(first + j)], &from[4 * j]);
    if (shift != 0)
        vec16_get(&vectors[swizzle(first + ORDER_LEAF / 4)], &from[ORDER_LEAF]);
    leaf_shift_down(from, shift, x);
}

template <bool Settled = true> DEVICE void leaf_write(uint4 *tile, int leaf, const float x[ORDER_LEAF])
{
    const unsigned offset = leaf_swizzle<Settled>(leaf);
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
        vec16_put((uint4 *)((char *)tile + (offset ^ j * VEC16_BYTES)), &x[4 * j]);
}

/* The place of word `index` of a stage, in bytes, `lines` before word index + 32 lines: see swizzle. */
DEVICE int stage_word(int index, int lines)
{
    int offset = (4 * index) ^ (((index >> 1) + 16 * lines) & 0x30);
    pin(offset); /* as in leaf_swizzle */
    return offset;
}

/*
 * Writes `count` results, or as many as a stage holds, to where they begin anywhere: a word per lane, a line of device
 * memory at a time, of which the first and the last one make one together. Results need not move between lanes for
 * that, which f2 has no instructions to spare for.
 */
template <int Slots> DEVICE void drain_words(const uint4 *stage, char *target, int count)
{
    const int lines = Slots / LINE_VECTORS, line = LINE_VECTORS * VEC16_BYTES, period = SWIZZLE_PERIOD / LINE_VECTORS;
    const int first = lane_index() - (int)((uintptr_t)target % line / 4);
    const char *from = (const char *)stage;
    __builtin_assume(__isGlobal(target));
    if (count >= lines * line / 4) {
        const int outer = stage_word(first, 0);
        char *to = settled(target + first * 4);
        __builtin_assume(__isGlobal(to));
        *(float *)(target + ((first * 4) & (lines * line - 1))) = *(const float *)(from + (outer & (lines * line - 1)));
#pragma unroll
        for (int j = 0; j < period; j++) {
            const char *source = from + (j == 0 ? outer : stage_word(first, j));
#pragma unroll
            for (int k = j == 0 ? period : j; k < lines; k += period)
                *(float *)(to + k * line) = *(const float *)(source + k * line);
        }
    } else {
#pragma unroll 1
        for (int index = first; index < count; index += line / 4)
            if (index >= 0)
                *(float *)(target + index * 4) = *(const float *)(from + stage_word(index, 0));
    }
}

/*
 * Writes f32 results that begin with a vector, as tile_write does: the engine copies them, from a stage that has them
 * in order and is not to be touched before bulk_wait_read.
 */
DEVICE void tile_write_bulk(uint4 *stage, char *target, int length, int warp, const float x[ORDER_LEAF])
{
    const int count = tile_samples(length, warp), vectors = count / 4, lane = lane_index();
    target += warp * ORDER_TILE * (int)sizeof(float);
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
        vec16_put(&stage[ORDER_LEAF / 4 * lane + j], &x[4 * j]);
#if HAS_BULK
    fence_proxy_async_shared();
    __syncwarp();
    if (lane == 0 && vectors > 0) {
        bulk_store(target, smem_address(stage), vectors * VEC16_BYTES);
        bulk_commit();
    }
#endif
    if (lane < count % 4)
        ((float *)target)[4 * vectors + lane] = ((const float *)stage)[4 * vectors + lane];
}

/* Writes the results of a stretch in vectors that it begins or ends in the middle of, which are those of others too. */
DEVICE void packed_drain_edges(float *vectors, int shift, int count, const float *first, const float *last)
{
    const int lane = lane_index(), begin = shift > 0, end = (unsigned)(shift + count) / 4;
    const bool head = begin > 0 && lane < 4, tail = lane >= 4 && lane < 8 && end >= begin;
    const int k = head ? lane : end * 4 + lane - 4;
    if ((head || tail) && k >= shift && k < shift + count)
        vectors[k] = head ? first[lane] : last[lane - 4];
}

/* Writes vectors `begin`, 0 or 1, to `end` of a stage of `Slots` vectors to device memory, where vector 0 has its place
 * at `target`; `Whole`: to the last one. */
template <int Slots, bool Whole = false> DEVICE void drain_vectors(const uint4 *stage, char *target, int begin, int end)
{
    const int lane = lane_index();
    const uint4 *source = stage + swizzle(lane);
    char *vec16 = settled(target + lane * VEC16_BYTES);
    __builtin_assume(__isGlobal(vec16));
#pragma unroll
    for (int k = 0; k < Slots; k += WARP)
        if ((Whole || k + lane < end) && (k > 0 || lane >= begin))
            *(uint4 *)(vec16 + k * VEC16_BYTES) = source[k];
}

/* Writes a stretch of `count` results, the first of them `shift` results from the start of the tile. */
DEVICE void packed_drain(const uint4 *tile, char *target, int shift, int count)
{
    const int end = (unsigned)(shift + count) / 4;
    target -= shift * 4;
    drain_vectors<TILE_VECTORS>(tile, target, shift > 0, end);
    if (shift > 0 || (shift + count) % 4 > 0)
        packed_drain_edges((float *)target, shift, count, (const float *)tile, (const float *)(tile + swizzle(end)));
}

/* Writes the vectors of at least Full tiles and at most Tiles that lie where `at` says; those that are shared with
 * others sample by sample. */
template <int Tiles, int Full>
DEVICE void drain_lines_at(const uint4 *vectors, char *target, struct line_vectors at, int count)
{
    const int lane = lane_index(), shift = shift_of<float>(target), begin = at.first + (shift > 0);
    char *line = target - shift * 4 - at.first * VEC16_BYTES;
    char *vec16 = settled(line + lane * VEC16_BYTES);
    const uint4 *source = vectors + swizzle(lane);
    __builtin_assume(__isGlobal(vec16));
#pragma unroll
    for (int k = 0; k <= Tiles * TILE_VECTORS; k += WARP)
        if ((k > 0 || lane >= begin) && (k + WARP <= Full * TILE_VECTORS || k + lane < at.end))
            *(uint4 *)(vec16 + k * VEC16_BYTES) = source[k];
    if (shift > 0 || at.rest > 0)
        packed_drain_edges((float *)(line + at.first * VEC16_BYTES), shift, count,
                           (const float *)(vectors + swizzle(at.first)), (const float *)(vectors + swizzle(at.end)));
}

/* The same from the start of a line on. */
template <int Tiles, int Full> DEVICE void drain_lines(const uint4 *vectors, char *target, int count)
{
    drain_lines_at<Tiles, Full>(vectors, target, line_vectors_of(target, count), count);
}

/* Vectors for Tiles tiles from the start of the line that they begin in, and for as many again. */
#define LINES_SMEM(TILES) ((TILES)*TILE_VECTORS + 2 * LINE_VECTORS)

/* A leaf that begins with sample `first` of a tile. */
DEVICE void packed_read(uint4 *tile, int first, float x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = *staged_sample(tile, first + i);
}

/* Writes the `samples` first results of a leaf to there. */
DEVICE void packed_write(uint4 *tile, int first, int samples, const float x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i < samples)
            *staged_sample(tile, first + i) = x[i];
}

/* Moves results one place up, as often as it takes for vectors to hold what they hold in device memory. Those that
 * leave the last leaf go to `beyond`, if it is not NULL. */
template <int Tiles> DEVICE void tiles_shift_up(struct held_leaf<float> leaves[Tiles], int shift, float *beyond)
{
    const int lane = lane_index();
#pragma unroll 1
    for (int left = shift - 1; left >= 0; left--) {
        if (beyond && lane == WARP - 1)
            beyond[left] = leaves[Tiles - 1].x[ORDER_LEAF - 1];
#pragma unroll
        for (int t = Tiles - 1; t >= 0; t--) {
            float *x = leaves[t].x, before = __shfl_up_sync(~0u, x[ORDER_LEAF - 1], 1);
            if (t > 0) {
                float tile_before = lane_value(leaves[t - 1].x[ORDER_LEAF - 1], WARP - 1);
                before = lane == 0 ? tile_before : before;
            }
#pragma unroll
            for (int i = ORDER_LEAF - 1; i > 0; i--)
                x[i] = x[i - 1];
            x[0] = before;
        }
    }
}

/* Writes those of a tile's `count` results that lie in vectors of others too where rows do not begin with a vector: the
 * first of lane 0 and the last of lane 31. */
DEVICE void tile_write_ends(float *target, int shift, int count, const float x[ORDER_LEAF])
{
    const int lane = lane_index();
    __builtin_assume(__isGlobal(target));
#pragma unroll
    for (int i = 0; i < VEC16_BYTES / 4 - 1; i++) {
        if (lane == 0 && i < VEC16_BYTES / 4 - shift && i < count)
            target[i] = x[i];
        if (lane == WARP - 1 && i < shift && ORDER_TILE - 1 - i < count)
            target[ORDER_TILE - 1 - i] = x[ORDER_LEAF - 1 - i];
    }
}

/* Writes the vectors of a whole tile, as tile_write does, from vector `begin` on. */
template <int Slots> DEVICE void tile_write_whole(uint4 *stage, char *target, int begin, const float x[ORDER_LEAF])
{
    const int leaves = Slots / 4;
    const unsigned lane = lane_index();
#pragma unroll
    for (int round = 0; round < WARP / leaves; round++) {
        if (lane / leaves == round)
            leaf_write(stage, lane % leaves, x);
        __syncwarp();
        drain_vectors<Slots, true>(stage, target + round * Slots * VEC16_BYTES, round == 0 ? begin : 0, Slots);
        __syncwarp();
    }
}

/* Writes a warp's tile of an order block of `length` f32 results by way of `Slots` vectors, as many leaves at a time as
 * fit. `Single`: in words where they do not begin with a vector, as f2 has no instructions to spare; else results move
 * between lanes. `Apart`: whole tiles have a code of their own, which asks nothing for each vector. */
template <int Slots, bool Single = false, bool Apart = false>
DEVICE void tile_write(uint4 *stage, char *target, int length, int warp, struct held_leaf<float> *results)
{
    const int leaves = Slots / 4, count = tile_samples(length, warp);
    const unsigned lane = lane_index();
    const int shift = Single ? 0 : shift_of<float>(target), end = count > 0 ? shift + count : 0;
    target += warp * ORDER_TILE * 4;
    if (shift > 0) {
        tile_write_ends((float *)target, shift, count, results->x);
        tiles_shift_up<1>(results, shift, NULL);
    }
    target -= shift * 4;
    if (Apart && !Single && count == ORDER_TILE) {
        tile_write_whole<Slots>(stage, target, shift > 0, results->x);
        return;
    }
#pragma unroll
    for (int round = 0; round < WARP / leaves; round++) {
        char *to = target + round * Slots * VEC16_BYTES;
        if (lane / leaves == round)
            leaf_write(stage, lane % leaves, results->x);
        __syncwarp();
        if (Single) {
            drain_words<Slots>(stage, to, count - round * leaves * ORDER_LEAF);
        } else {
            const int last = (unsigned)end / 4 - round * Slots;
            drain_vectors<Slots>(stage, to, round == 0 && shift > 0, last);
            float *rest = (float *)(to + last * VEC16_BYTES);
            __builtin_assume(__isGlobal(rest));
            if (last >= (round == 0 && shift > 0) && last < Slots && lane < end % 4)
                rest[lane] = ((const float *)(stage + swizzle(last)))[lane];
        }
        __syncwarp();
    }
}

/* Moves the results. */
template <int Tiles>
DEVICE void tiles_write(uint4 *vectors, char *target, int length, struct held_leaf<float> leaves[Tiles])
{
    const int shift = shift_of<float>(target), first = vectors_in_line(target) + ORDER_LEAF / 4 * lane_index();
    tiles_shift_up<Tiles>(leaves, shift, (float *)(vectors + swizzle(vectors_in_line(target) + Tiles * TILE_VECTORS)));
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++)
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            vec16_put(&vectors[swizzle(first + j) + t * TILE_VECTORS], &leaves[t].x[4 * j]);
    __syncwarp();
    drain_lines<Tiles, Tiles - 1>(vectors, target, length);
    __syncwarp();
}

#endif

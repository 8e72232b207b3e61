/*
 * Samples on their way between device memory and the lanes that hold a leaf each, as raw words of 2, 4
 * or 8 bytes: what they mean is no matter here. A sample of one byte is the lower one of a word of two. As in
 * tile_io.cuh a tile passes through shared memory in the vectors that it lies in, and alignment decides how samples
 * travel, not which lane holds them. A leaf of words of so many bytes fills as many vectors.
 */
#ifndef KERNELS_CUDA_WARP_TILE_WORDS_CUH
#define KERNELS_CUDA_WARP_TILE_WORDS_CUH

#include "kernels/cuda/warp/tile_io.cuh"

/* Vectors of a tile of words: room for one more, where they do not begin with a vector, and to the next 128 bytes. */
#define WORDS_VECTORS(BYTES) (WARP * (BYTES) + 8)

/* The stage that results pass through: all of a tile, or a quarter of one of 8-byte words, where with more of it only
 * one thread block would fit an SM. */
#define WORDS_STAGE(BYTES) ((BYTES) == 8 ? 64 : WARP * (BYTES))

#define WORDS_SECTOR 32 /* bytes that memory is written in */

/* The place of a vector: the vectors of a leaf change places, so that lanes meet all banks leaf after leaf, too
 * (swizzle). */
DEVICE int swizzle_words(int vec16, int bytes)
{
    return vec16 ^ ((vec16 >> 3) & (bytes - 1));
}

DEVICE char *staged_word(uint4 *tile, int index, int bytes)
{
    int offset = index * bytes;
    return (char *)(tile + swizzle_words(offset / VEC16_BYTES, bytes)) + offset % VEC16_BYTES;
}

/*
 * One lane's vectors of those that a warp goes through lane after lane: every 32nd from `lane` on, at constant
 * distances from each other, but that those of 8-byte words change places by twos. `lane` may be -1, for what lies
 * before vector 0.
 */
template <int Bytes> struct lane_vectors {
    uint4 *even, *odd;

    __device__ __forceinline__ lane_vectors(uint4 *tile, int lane)
    {
        int offset = swizzle_words(lane & (WARP - 1), Bytes), flip = Bytes == 8 ? 4 : 0;
        even = lane >= 0 ? tile + offset : tile - WARP + (offset ^ flip);
        odd = lane >= 0 ? tile + (offset ^ flip) : tile - WARP + offset;
    }
    __device__ __forceinline__ uint4 *at(int k) const { return (k / WARP % 2 ? odd : even) + k; }
};

DEVICE void word_copy(char *target, const char *source, int bytes, enum scan_access access)
{
    if (access == ACCESS_BYTES)
        for (int i = 0; i < bytes; i++)
            target[i] = source[i];
    else if (bytes == 2)
        *(uint16_t *)target = *(const uint16_t *)source;
    else if (bytes == 4)
        *(uint32_t *)target = *(const uint32_t *)source;
    else
        *(uint64_t *)target = *(const uint64_t *)source;
}

/* Starts copies of the vectors that `count` words of a tile lie in, as fetch_vectors does. */
template <int Bytes> DEVICE void words_fetch_vectors(uint4 *tile, const char *source, int count)
{
    int lane = lane_index(), shift = shift_of<char>(source), end = shift + count * Bytes, last = end / VEC16_BYTES;
    const lane_vectors<Bytes> vectors(tile, lane);
    source = settled(source - shift + lane * VEC16_BYTES);
#pragma unroll
    for (int k = 0; k < WARP * Bytes; k += WARP)
        if (k + lane < last)
            __pipeline_memcpy_async(vectors.at(k), source + k * VEC16_BYTES, VEC16_BYTES);
    if (end % VEC16_BYTES != 0 && lane == last % WARP)
        vec16_fetch(tile + swizzle_words(last, Bytes), source + (last - lane) * VEC16_BYTES, end % VEC16_BYTES);
}

template <int Bytes>
DEVICE void words_fetch_strided(uint4 *tile, const char *source, int64_t stride, int count, enum scan_access access)
{
    int lane = lane_index();
    source += lane * stride;
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, source += WARP * stride) {
        char *word = staged_word(tile, k, Bytes);
        if (access == ACCESS_STRIDED && Bytes > 2)
            __pipeline_memcpy_async(word, source, Bytes > 2 ? Bytes : 4);
        else if (Bytes == 2 && access == ACCESS_SINGLE)
            *(uint16_t *)word = *(const uint8_t *)source;
        else
            word_copy(word, source, Bytes, access);
    }
}

/* Starts the copy of samples first <= i < first + count of an order block. */
template <int Bytes>
DEVICE void words_fetch(uint4 *tile, const char *source, const struct scan_side &side, int first, int count)
{
    if (side.access == ACCESS_VEC16)
        words_fetch_vectors<Bytes>(tile, source + first * Bytes, count);
    else
        words_fetch_strided<Bytes>(tile, source + first * side.stride, side.stride, count, side.access);
}

/* Moves everything down by an even number of bytes below 16: what lies in the 4 words beyond comes after. */
template <int Count> DEVICE void words_shift_down(uint32_t words[Count + 4], int bytes)
{
    if (bytes & 8)
#pragma unroll
        for (int i = 0; i < Count + 2; i++)
            words[i] = words[i + 2];
    if (bytes & 4)
#pragma unroll
        for (int i = 0; i < Count + 1; i++)
            words[i] = words[i + 1];
    if (bytes & 2)
#pragma unroll
        for (int i = 0; i < Count; i++)
            words[i] = __funnelshift_r(words[i], words[i + 1], 16);
}

/* The words of 32 bits that make up leaf `leaf` of a tile, which begins `shift` bytes from the start of a vector. Tiles
 * begin with 128 bytes, so that the address in shared memory of a leaf's vector j is that of its vector 0 with some
 * bits flipped: a single operation. */
template <int Bytes> DEVICE void leaf_get(uint4 *tile, int leaf, int shift, uint32_t words[4 * Bytes])
{
    const int count = 4 * Bytes;
    if (Bytes == 8 && shift != 0) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++) {
            uint2 pair = *(const uint2 *)staged_word(tile, leaf * ORDER_LEAF + i + 1, Bytes);
            words[2 * i] = pair.x;
            words[2 * i + 1] = pair.y;
        }
        return;
    }
    const uint32_t first = smem_address(tile + swizzle_words(Bytes * leaf, Bytes));
    uint32_t all[count + 4];
#pragma unroll
    for (int j = 0; j < Bytes; j++)
        load_shared_v4(first ^ j * VEC16_BYTES, &all[4 * j]);
    if (Bytes < 8 && shift != 0) {
        load_shared_v4(smem_address(tile + swizzle_words(Bytes * leaf + Bytes, Bytes)), &all[count]);
        words_shift_down<count>(all, Bytes == 4 ? shift & 12 : shift);
    }
#pragma unroll
    for (int i = 0; i < count; i++)
        words[i] = all[i];
}

/* The other way; `word` makes them. */
template <int Bytes, class Word> DEVICE void leaf_put(uint4 *stage, int leaf, Word word)
{
    const uint32_t first = smem_address(stage + swizzle_words(Bytes * leaf, Bytes));
#pragma unroll
    for (int j = 0; j < Bytes; j++)
        store_shared_v4(first ^ j * VEC16_BYTES, word(4 * j), word(4 * j + 1), word(4 * j + 2), word(4 * j + 3));
}

/* The 16 bytes that end `shift` bytes into a vector; `before` is the one before it. */
DEVICE uint4 vec16_ending(uint4 before, uint4 vec16, int shift)
{
    uint32_t words[8] = {before.x, before.y, before.z, before.w, vec16.x, vec16.y, vec16.z, vec16.w};
    words_shift_down<4>(words, VEC16_BYTES - shift);
    return {words[0], words[1], words[2], words[3]};
}

/*
 * Writes `count` words that are staged in `Slots` vectors to device memory. Those in vectors of others too, the first
 * and the last perhaps, go one by one.
 */
template <int Bytes, int Slots> DEVICE void words_drain_vectors(uint4 *stage, char *target, int count)
{
    const int per_vector = VEC16_BYTES / Bytes;
    int lane = lane_index(), shift = shift_of<char>(target), end = shift + count * Bytes, last = end / VEC16_BYTES;
    char *to = settled(target - shift + lane * VEC16_BYTES);
    __builtin_assume(__isGlobal(to));
    const lane_vectors<Bytes> vectors(stage, lane), before(stage, lane - 1);
    if (shift == 0) {
#pragma unroll
        for (int k = 0; k < Slots; k += WARP)
            if (k + lane < last)
                *(uint4 *)(to + k * VEC16_BYTES) = *vectors.at(k);
    } else {
#pragma unroll
        for (int k = 0; k < Slots; k += WARP)
            if (k + lane > 0 && k + lane < last)
                *(uint4 *)(to + k * VEC16_BYTES) = vec16_ending(*before.at(k), *vectors.at(k), shift);
    }
    if (end % VEC16_BYTES == 0 && shift == 0)
        return;
    int head = shift ? per_vector - shift / Bytes : 0, tail = max(last * per_vector - shift / Bytes, head);
    int k = lane < per_vector ? lane : tail + lane - per_vector;
    if (k < (lane < per_vector ? min(head, count) : count))
        word_copy(target + k * Bytes, staged_word(stage, k, Bytes), Bytes, ACCESS_STRIDED);
}

template <int Bytes>
DEVICE void words_drain_strided(uint4 *stage, char *target, int64_t stride, int count, enum scan_access access)
{
    int lane = lane_index();
    target += lane * stride;
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, target += WARP * stride)
        if (Bytes == 2 && access == ACCESS_SINGLE)
            *target = *staged_word(stage, k, Bytes);
        else
            word_copy(target, staged_word(stage, k, Bytes), Bytes, access);
}

/*
 * Writes `count` words of 8 bytes, whose halves `word` makes, by way of a quarter of the room that they take. Every
 * lane stages a quarter of its leaf at a time, 32 bytes, which is what memory is written in. `Whole`: they are a whole
 * tile. `Shifted`: they begin in the middle of a vector; then a lane takes over the last word of the lane before, and
 * leaves its own last one to the next.
 */
template <bool Whole, bool Shifted, class Word>
DEVICE void words_write_quarters(uint4 *stage, char *target, int count, Word word)
{
    const int lane = lane_index(), first = lane / 2 * ORDER_LEAF + lane % 2 * 2, rest = count + Shifted - first;
    const uint32_t vec16 = smem_address(stage + swizzle_words(2 * lane, 2));
    const lane_vectors<2> vectors(stage, lane);
    const uint32_t low = Shifted ? __shfl_up_sync(~0u, word(2 * ORDER_LEAF - 2), 1) : 0;
    const uint32_t high = Shifted ? __shfl_up_sync(~0u, word(2 * ORDER_LEAF - 1), 1) : 0;
    char *to = settled(target + (first - Shifted) * 8);
    __builtin_assume(__isGlobal(to));
    auto shifted = [&](int i) { return !Shifted ? word(i) : i >= 2 ? word(i - 2) : i ? high : low; };
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i += 4) {
        store_shared_v4(vec16, shifted(2 * i), shifted(2 * i + 1), shifted(2 * i + 2), shifted(2 * i + 3));
        store_shared_v4(vec16 ^ VEC16_BYTES, shifted(2 * i + 4), shifted(2 * i + 5), shifted(2 * i + 6),
                        shifted(2 * i + 7));
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = i + half * ORDER_TILE / 2;
            uint4 pair = *vectors.at(half * WARP);
            bool is_first = Shifted && first + k == 0;
            if (Whole || (rest > k + 1 && !is_first))
                *(uint4 *)(to + k * 8) = pair;
            else if (rest > k && !is_first)
                *(uint2 *)(to + k * 8) = {pair.x, pair.y};
            else if (is_first && rest > 1)
                *(uint2 *)(to + 8) = {pair.z, pair.w};
        }
        __syncwarp();
    }
    if (Shifted && count == ORDER_TILE && lane == WARP - 1)
        *(uint2 *)(target + (ORDER_TILE - 1) * 8) = {word(2 * ORDER_LEAF - 2), word(2 * ORDER_LEAF - 1)};
}

#endif

/*
 * Where samples lie, and how a warp moves its tile between device memory and its lanes' registers.
 *
 * Neighbouring lanes should touch neighbouring addresses, 16 aligned bytes at a time, but a lane holds 16 consecutive
 * samples, which may begin anywhere. So a tile passes through shared memory in slots of 16 bytes, those that it lies in
 * in device memory, its first sample `shift` samples from the start of the first one. Lanes shift samples to and from
 * each other's slots: alignment decides how samples travel, never which lane holds them. Slots are permuted so that
 * both ways of going through them, lane after lane and leaf after leaf, meet every bank equally often.
 */
#ifndef KERNELS_CUDA_SAMPLES_CUH
#define KERNELS_CUDA_SAMPLES_CUH

#include <cuda_pipeline_primitives.h>
#include <stdint.h>

#include "kernels/cuda/block.cuh"
#include "kernels/scan.h"

/*
 * A tile in shared memory: slots of f32 samples, one more where they do not begin with a slot, and room to the next
 * multiple of 128 bytes, because tiles that begin elsewhere take 10 % longer.
 */
#define SLOT_BYTES 16
#define TILE_SLOTS (ORDER_TILE * 4 / SLOT_BYTES)
#define TILE_ROOM  (TILE_SLOTS + 8)

enum scan_access {
    ACCESS_SLOTS,   /* contiguous and aligned to the type: a slot at a time */
    ACCESS_STRIDED, /* aligned to the type, at any stride */
    ACCESS_BYTES,   /* anything else */
};

/* The input or output of all rows. */
struct scan_side {
    char *base;
    int64_t outer_strides[SCAN_OUTER_MAX];
    int64_t stride;
    enum scan_access access;
};

/*
 * Where a slot of results of type T, or of f32 samples, lies in a tile. The slots of a leaf, 4 of f32 or 8 of f64,
 * change places with each other, differently in neighbouring leaves. The pattern repeats after PERIOD slots.
 */
#define PERIOD(T) (8 * (int)sizeof(T))

template <class T> DEVICE int slot_place(int slot)
{
    return slot ^ ((slot >> 3) & (sizeof(T) - 1));
}

/* Sample `index` of a tile in shared memory. */
template <class T> DEVICE T *staged_sample(uint4 *tile, int index)
{
    const int per_slot = SLOT_BYTES / sizeof(T);
    return (T *)(tile + slot_place<T>(index / per_slot)) + index % per_slot;
}

/* Ends what the compiler knows of an address, so that it adds constant distances in the instruction. */
template <class T> DEVICE T *settled(T *address)
{
    asm volatile("" : "+l"(address));
    return address;
}

template <class T> DEVICE void sample_copy_bytes(char *target, const char *source)
{
    for (int i = 0; i < (int)sizeof(T); i++)
        target[i] = source[i];
}

/* Samples from the start of a slot to `address`. */
template <class T> DEVICE int shift_of(const char *address)
{
    return (int)((uintptr_t)address % SLOT_BYTES / sizeof(T));
}

/* Starts the copy of the first `size` bytes of a slot; the others become zeros. */
DEVICE void slot_fetch(uint4 *slot, const char *source, int size)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(slot)), "l"(source), "r"(size)
                 : "memory");
#else
    __pipeline_memcpy_async(slot, source, SLOT_BYTES, SLOT_BYTES - size);
#endif
}

/*
 * Starts copies of the slots that `count` samples lie in. Those of the first slot that come before are read as well,
 * those of the last that come after are not.
 */
DEVICE void fetch_slots(uint4 *tile, const char *source, int shift, int count)
{
    int lane = lane_index(), end = shift + count;
    source = settled(source - shift * 4 + lane * SLOT_BYTES);
    uint4 *slot = tile + slot_place<float>(lane);
    if (count == ORDER_TILE) {
#pragma unroll
        for (int k = 0; k < TILE_SLOTS; k += PERIOD(float))
            __pipeline_memcpy_async(slot + k, source + k * SLOT_BYTES, SLOT_BYTES);
    } else {
#pragma unroll
        for (int k = 0; k < TILE_SLOTS; k += PERIOD(float))
            if (k + lane < end / 4)
                __pipeline_memcpy_async(slot + k, source + k * SLOT_BYTES, SLOT_BYTES);
    }
    if (end % 4 != 0 && lane == end / 4 % WARP) {
        int last = end / 4;
        slot_fetch(tile + slot_place<float>(last), source + (last - lane) * SLOT_BYTES, end % 4 * 4);
    }
}

DEVICE void fetch_strided(uint4 *tile, const char *source, int64_t stride, int count, bool aligned)
{
    int lane = lane_index();
    source += lane * stride;
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, source += WARP * stride)
        if (aligned)
            __pipeline_memcpy_async(staged_sample<float>(tile, k), source, 4);
        else
            sample_copy_bytes<float>((char *)staged_sample<float>(tile, k), source);
}

/* Starts the copy of this warp's tile of an order block of `length` samples. `Aligned`: all rows begin with a slot. */
template <bool Aligned>
DEVICE void tile_fetch(uint4 *tile, const char *source, const struct scan_side &side, int length, int warp)
{
    int first = warp * ORDER_TILE, count = tile_samples(length, warp);
    if (count == 0)
        return;
    if (Aligned)
        fetch_slots(tile, source + first * 4, 0, count);
    else if (side.access == ACCESS_SLOTS)
        fetch_slots(tile, source + first * 4, shift_of<float>(source), count);
    else
        fetch_strided(tile, source + first * side.stride, side.stride, count, side.access == ACCESS_STRIDED);
}

DEVICE void slot_get(const uint4 *slot, float x[4])
{
    uint4 words = *slot;
    x[0] = __uint_as_float(words.x);
    x[1] = __uint_as_float(words.y);
    x[2] = __uint_as_float(words.z);
    x[3] = __uint_as_float(words.w);
}

template <class T> DEVICE void slot_put(uint4 *slot, const T x[])
{
    uint4 words;
    memcpy(&words, x, sizeof(words));
    *slot = words;
}

/* Moves samples `By` places down; those beyond the leaf follow. */
template <int By> DEVICE void leaf_shift_down(float x[ORDER_LEAF], float beyond[3])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = i + By < ORDER_LEAF ? x[i + By] : beyond[i + By - ORDER_LEAF];
    if (By == 1) {
        beyond[0] = beyond[1];
        beyond[1] = beyond[2];
    }
}

/* The samples of this lane's leaf. */
DEVICE void leaf_read(const uint4 *tile, int shift, float x[ORDER_LEAF])
{
    int lane = lane_index(), first = slot_place<float>(4 * lane);
#pragma unroll
    for (int j = 0; j < 4; j++)
        slot_get(&tile[first ^ j], &x[4 * j]);
    if (shift == 0)
        return;
    float beyond[4];
    slot_get(&tile[slot_place<float>(4 * lane + 4)], beyond);
    if (shift & 1)
        leaf_shift_down<1>(x, beyond);
    if (shift & 2)
        leaf_shift_down<2>(x, beyond);
}

template <class T> DEVICE void leaf_write(uint4 *tile, int leaf, const T x[ORDER_LEAF])
{
    const int per_slot = SLOT_BYTES / sizeof(T), slots = ORDER_LEAF / per_slot;
    int first = slot_place<T>(slots * leaf);
#pragma unroll
    for (int j = 0; j < slots; j++)
        slot_put(&tile[first ^ j], &x[per_slot * j]);
}

/* The last `words` words of one slot and the first of the next. */
template <int words> DEVICE uint4 slot_join(uint4 slot, uint4 next)
{
    if (words == 1)
        return {slot.w, next.x, next.y, next.z};
    if (words == 2)
        return {slot.z, slot.w, next.x, next.y};
    return {slot.y, slot.z, slot.w, next.x};
}

/*
 * Writes `count` results to device memory, where the first lies `words` words from the start of a slot. Those in slots
 * of others too, the first and the last perhaps, go one by one.
 */
template <class T, int Slots, int words> DEVICE void drain_slots(uint4 *stage, char *target, int count)
{
    const int per_slot = SLOT_BYTES / sizeof(T), shift = words * 4 / sizeof(T);
    int lane = lane_index(), end = (unsigned)(count + shift) / per_slot;
    bool whole = words == 0 && end == Slots;
    char *slot = settled(target - words * 4 + lane * SLOT_BYTES);
    __builtin_assume(__isGlobal(slot));
#pragma unroll
    for (int j = 0; j < PERIOD(T); j += WARP) {
        const uint4 *source = stage + slot_place<T>(j + lane);
        const uint4 *before =
            stage + (j + lane > 0 ? slot_place<T>(j + lane - 1) : slot_place<T>(PERIOD(T) - 1) - PERIOD(T));
#pragma unroll
        for (int k = 0; k < Slots; k += PERIOD(T)) {
            if (words == 0 && (whole || j + k + lane < end))
                *(uint4 *)(slot + (j + k) * SLOT_BYTES) = source[k];
            if (words > 0 && j + k + lane < end && j + k + lane > 0) {
                *(uint4 *)(slot + (j + k) * SLOT_BYTES) = slot_join<words>(before[k], source[k]);
                asm volatile("" : : : "memory"); /* all at once would take 32 registers */
            }
        }
    }
    if ((count + shift) % per_slot != 0 || words > 0) {
        int k = lane < per_slot ? lane : end * per_slot - shift + lane - per_slot;
        bool first = words > 0 && lane < per_slot - shift, last = lane >= per_slot && (words == 0 || end > 0);
        if ((first || last) && k < count)
            ((T *)target)[k] = *staged_sample<T>(stage, k);
    }
}

template <class T, int Slots, bool Aligned> DEVICE void drain_contiguous(uint4 *stage, char *target, int count)
{
    int words = Aligned ? 0 : (int)((uintptr_t)target % SLOT_BYTES / 4);
    if (words == 0)
        drain_slots<T, Slots, 0>(stage, target, count);
    else if (words == 2)
        drain_slots<T, Slots, 2>(stage, target, count);
    else if (sizeof(T) == 4 && words == 1)
        drain_slots<T, Slots, sizeof(T) == 4 ? 1 : 0>(stage, target, count);
    else if (sizeof(T) == 4)
        drain_slots<T, Slots, sizeof(T) == 4 ? 3 : 0>(stage, target, count);
}

template <class T> DEVICE void drain_strided(uint4 *stage, char *target, int64_t stride, int count, bool aligned)
{
    int lane = lane_index();
    target += lane * stride;
    __builtin_assume(__isGlobal(target));
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, target += WARP * stride)
        if (aligned)
            *(T *)target = *staged_sample<T>(stage, k);
        else
            sample_copy_bytes<T>(target, (const char *)staged_sample<T>(stage, k));
}

/* Writes a warp's tile of an order block of `length` samples by way of `Slots` slots, as many leaves at a time as fit.
 */
template <class T, int Slots, bool Aligned>
DEVICE void tile_write(uint4 *stage, char *target, const struct scan_side &side, int length, int warp,
                       const T x[ORDER_LEAF])
{
    const int results = Slots * SLOT_BYTES / sizeof(T), leaves = results / ORDER_LEAF, rounds = WARP / leaves;
    int first = warp * ORDER_TILE;
#pragma unroll
    for (int round = 0; round < rounds; round++, first += results) {
        int lane = lane_index(), count = min(length - first, results);
        if (lane / leaves == round)
            leaf_write(stage, lane % leaves, x);
        __syncwarp();
        if (count > 0 && (Aligned || side.access == ACCESS_SLOTS))
            drain_contiguous<T, Slots, Aligned>(stage, target + first * (int)sizeof(T), count);
        else if (count > 0)
            drain_strided<T>(stage, target + first * side.stride, side.stride, count, side.access == ACCESS_STRIDED);
        __syncwarp();
    }
}

#endif

/*
 * Where samples lie, and how a warp moves its tile between device memory and its lanes' registers.
 *
 * Neighbouring lanes should touch neighbouring addresses, but a lane holds 16 consecutive samples. So a tile passes
 * through shared memory, as slots of 16 bytes, permuted so that both ways of going through them, lane after lane and
 * leaf after leaf, meet every bank equally often. Indexes are those of the row, not of the address: alignment decides
 * how samples travel, never which lane holds them.
 */
#ifndef KERNELS_CUDA_SAMPLES_CUH
#define KERNELS_CUDA_SAMPLES_CUH

#include <cuda_pipeline_primitives.h>
#include <stdint.h>

#include "kernels/cuda/block.cuh"
#include "kernels/scan.h"

enum scan_access {
    ACCESS_SLOTS,   /* contiguous and 16-byte aligned: a slot at a time */
    ACCESS_WORDS,   /* contiguous and aligned to the type: a sample at a time */
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

/* lane_index, from another register: the assembler would keep one value for both, from the passes on. */
DEVICE int lane_number()
{
    unsigned number;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(number));
    return (int)number;
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

/*
 * Copies to shared memory. Whole tiles, nearly all there are, have loops of their own: without conditions and with
 * constant distances they take a third of the instructions.
 */
DEVICE void fetch_slots(uint4 *tile, const char *source, int slots)
{
    int lane = lane_number();
    source = settled(source + lane * SLOT_BYTES);
    if (slots == TILE_SLOTS) {
        tile += slot_place<float>(lane);
#pragma unroll
        for (int k = 0; k < TILE_SLOTS; k += PERIOD(float))
            __pipeline_memcpy_async(tile + k, source + k * SLOT_BYTES, SLOT_BYTES);
        return;
    }
#pragma unroll 1
    for (int k = lane; k < slots; k += WARP, source += WARP * SLOT_BYTES)
        __pipeline_memcpy_async(tile + slot_place<float>(k), source, SLOT_BYTES);
}

DEVICE void fetch_words(uint4 *tile, const char *source, int first, int count)
{
    int lane = lane_number();
    source = settled(source + (first + lane) * 4);
    if (first == 0 && count == ORDER_TILE) {
        const int period = PERIOD(float) * SLOT_BYTES / 4;
#pragma unroll
        for (int j = 0; j < period; j += WARP) {
            float *target = staged_sample<float>(tile, j + lane);
#pragma unroll
            for (int k = 0; k < ORDER_TILE; k += period)
                __pipeline_memcpy_async(target + k, source + (j + k) * 4, 4);
        }
        return;
    }
#pragma unroll 1
    for (int k = first + lane; k < count; k += WARP, source += WARP * 4)
        __pipeline_memcpy_async(staged_sample<float>(tile, k), source, 4);
}

DEVICE void fetch_strided(uint4 *tile, const char *source, int64_t stride, int count, bool aligned)
{
    int lane = lane_number();
    source += lane * stride;
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, source += WARP * stride)
        if (aligned)
            __pipeline_memcpy_async(staged_sample<float>(tile, k), source, 4);
        else
            sample_copy_bytes<float>((char *)staged_sample<float>(tile, k), source);
}

/* Starts the copy of this warp's tile of an order block of `length` samples. */
DEVICE void tile_fetch(uint4 *tile, const char *source, const struct scan_side &side, int length)
{
    int first = warp_index() * ORDER_TILE, count = min(length - first, ORDER_TILE);
    if (count <= 0)
        return;
    if (side.access == ACCESS_SLOTS) {
        fetch_slots(tile, source + first * 4, count / 4u);
        if (count % 4 != 0)
            fetch_words(tile, source + first * 4, count / 4u * 4, count);
    } else if (side.access == ACCESS_WORDS) {
        fetch_words(tile, source + first * 4, 0, count);
    } else {
        fetch_strided(tile, source + first * side.stride, side.stride, count, side.access == ACCESS_STRIDED);
    }
}

/* The samples of this lane's leaf. */
DEVICE void leaf_read(const uint4 *tile, float x[ORDER_LEAF])
{
    int first = slot_place<float>(4 * lane_index());
#pragma unroll
    for (int j = 0; j < 4; j++) {
        uint4 slot = tile[first ^ j];
        x[4 * j] = __uint_as_float(slot.x);
        x[4 * j + 1] = __uint_as_float(slot.y);
        x[4 * j + 2] = __uint_as_float(slot.z);
        x[4 * j + 3] = __uint_as_float(slot.w);
    }
}

DEVICE void leaf_write(uint4 *tile, int leaf, const float x[ORDER_LEAF])
{
    int first = slot_place<float>(4 * leaf);
#pragma unroll
    for (int j = 0; j < 4; j++)
        *(float4 *)(tile + (first ^ j)) = make_float4(x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]);
}

DEVICE void leaf_write(uint4 *tile, int leaf, const double x[ORDER_LEAF])
{
    int first = slot_place<double>(8 * leaf);
#pragma unroll
    for (int j = 0; j < 8; j++)
        *(double2 *)(tile + (first ^ j)) = make_double2(x[2 * j], x[2 * j + 1]);
}

/* Copies of results from shared memory, where TILE_SLOTS slots are. */
template <class Out> DEVICE void drain_slots(uint4 *tile, char *target, int slots)
{
    int lane = lane_number();
    target = settled(target + lane * SLOT_BYTES);
    __builtin_assume(__isGlobal(target));
    if (slots == TILE_SLOTS) {
#pragma unroll
        for (int j = 0; j < PERIOD(Out); j += WARP) {
            const uint4 *source = tile + slot_place<Out>(j + lane);
#pragma unroll
            for (int k = 0; k < TILE_SLOTS; k += PERIOD(Out))
                *(uint4 *)(target + (j + k) * SLOT_BYTES) = source[k];
        }
        return;
    }
#pragma unroll 1
    for (int k = lane; k < slots; k += WARP, target += WARP * SLOT_BYTES)
        *(uint4 *)target = tile[slot_place<Out>(k)];
}

template <class Out> DEVICE void drain_words(uint4 *tile, char *target, int first, int count)
{
    const int per_slot = SLOT_BYTES / sizeof(Out), capacity = TILE_SLOTS * per_slot, period = PERIOD(Out) * per_slot;
    int lane = lane_number();
    target = settled(target + (first + lane) * sizeof(Out));
    __builtin_assume(__isGlobal(target));
    if (first == 0 && count == capacity) {
#pragma unroll
        for (int j = 0; j < period; j += WARP) {
            const Out *source = staged_sample<Out>(tile, j + lane);
#pragma unroll
            for (int k = 0; k < capacity; k += period)
                *(Out *)(target + (j + k) * sizeof(Out)) = source[k];
        }
        return;
    }
#pragma unroll 1
    for (int k = first + lane; k < count; k += WARP, target += WARP * sizeof(Out))
        *(Out *)target = *staged_sample<Out>(tile, k);
}

template <class Out> DEVICE void drain_strided(uint4 *tile, char *target, int64_t stride, int count, bool aligned)
{
    int lane = lane_number();
    target += lane * stride;
    __builtin_assume(__isGlobal(target));
#pragma unroll 1
    for (int k = lane; k < count; k += WARP, target += WARP * stride)
        if (aligned)
            *(Out *)target = *staged_sample<Out>(tile, k);
        else
            sample_copy_bytes<Out>(target, (const char *)staged_sample<Out>(tile, k));
}

/* Writes the results that lie in shared memory, from sample `first` of an order block of `length` samples. */
template <class Out>
DEVICE void tile_drain(uint4 *tile, char *target, const struct scan_side &side, int first, int length)
{
    const int per_slot = SLOT_BYTES / sizeof(Out), size = sizeof(Out);
    int count = min(length - first, TILE_SLOTS * per_slot);
    if (count <= 0)
        return;
    if (side.access == ACCESS_SLOTS) {
        drain_slots<Out>(tile, target + first * size, (unsigned)count / per_slot);
        if (count % per_slot != 0)
            drain_words<Out>(tile, target + first * size, (unsigned)count / per_slot * per_slot, count);
    } else if (side.access == ACCESS_WORDS) {
        drain_words<Out>(tile, target + first * size, 0, count);
    } else {
        drain_strided<Out>(tile, target + first * side.stride, side.stride, count, side.access == ACCESS_STRIDED);
    }
}

#endif

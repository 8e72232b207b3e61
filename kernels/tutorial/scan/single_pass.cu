/*
 * single-pass: one kernel, in which a tile looks back at its predecessors.
 *
 * The change from hierarchical: a tile is read once and written once. Its thread block publishes the tile's total as
 * soon as it has it, then looks back for the sum of everything before: the nearest predecessor that has published its
 * prefix, and the totals of the tiles between, which may not have prefixes yet. D. Merrill and M. Garland, "Single-pass
 * parallel prefix scan with decoupled look-back", 2016. Tiles are handed out in order by a counter, so a tile waits
 * only for tiles that have begun, and none of them waits for it.
 *
 * The order of additions must not depend on who was first: what is found is added from the left, prefix + total + total
 * + ..., which is how the prefixes themselves were made. So the bits are those of one serial sum over the tiles'
 * totals, wherever a look back happened to end. It goes 32 tiles at a time, one per lane, as far as 256 tiles back, and
 * waits for a prefix there.
 *
 * On an H200 100 rows of a million samples, forward and backward, take 0.92 ms, and 1.02 by hierarchical; rows of a few
 * tiles are faster by coarsened, where no thread block waits for another.
 *
 * Association: that of tile.cuh for each 2,304 samples; totals of tiles one by one; then sum of the tiles before +
 * prefix.
 */
#include "kernels/tutorial/scan/tile.cuh"

#define LOOK 256 /* tiles that a tile looks back at most */

/* The published state of a tile in one word, so that it is seen whole: the kind above, the sum's bits below. */
enum kind : uint32_t { NOTHING, TOTAL, PREFIX };

struct progress {
    unsigned long long taken; /* tiles handed out */
    unsigned long long unused;
    unsigned long long published[]; /* per tile */
};

/* Words are complete by themselves and order nothing else, so relaxed accesses do, which all of the GPU sees. */
GPU_INLINE void publish(unsigned long long *word, enum kind kind, float sum)
{
    unsigned long long bits = (unsigned long long)kind << 32 | __float_as_uint(sum);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
}

GPU_INLINE unsigned long long published(const unsigned long long *word)
{
    unsigned long long bits;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(bits) : "l"(word) : "memory");
    return bits;
}

/* Waits until the window of 32 predecessors that ends at `distance` + 1 before tile `number` has all totals up to its
 * nearest prefix. The sum of this lane's; *nearest: the lane of the prefix, or -1. */
GPU_INLINE float window_wait(const unsigned long long *words, uint64_t number, uint32_t distance, bool is_last,
                             int *nearest)
{
    const uint64_t back = distance + threadIdx.x + 1;
    for (;;) {
        unsigned long long word = back <= number ? published(&words[number - back]) : 0;
        unsigned prefixes = __ballot_sync(ALL, word >> 32 == PREFIX);
        unsigned missing = __ballot_sync(ALL, word >> 32 == NOTHING);
        *nearest = __ffs((int)prefixes) - 1;
        unsigned wanted = *nearest < 0 ? ALL : (1u << *nearest) - 1;
        if ((missing & wanted) == 0 && !(is_last && *nearest < 0))
            return __uint_as_float((uint32_t)word);
    }
}

/* The sum of all before tile `number` of a row, whose words are given. One warp; a lane looks at a predecessor of each
 * window. */
GPU_INLINE float look_back(const unsigned long long *words, uint64_t number, float *sums)
{
    int nearest = -1, distance = 0;
    while (nearest < 0) {
        sums[distance + threadIdx.x] = window_wait(words, number, distance, distance == LOOK - WARP, &nearest);
        distance += nearest < 0 ? WARP : nearest;
    }
    __syncwarp();
    float sum = sums[distance];
    while (distance-- > 0)
        sum = sum + sums[distance];
    __syncwarp();
    return sum;
}

/* Returns the sum of all tiles before this one. The first warp calls it, and its first lane publishes. */
GPU_INLINE float tile_carry(unsigned long long *words, uint64_t number, float total, float *sums)
{
    if (number == 0) {
        if (threadIdx.x == 0)
            publish(&words[0], PREFIX, total);
        return 0;
    }
    if (threadIdx.x == 0)
        publish(&words[number], TOTAL, total);
    float carry = look_back(words, number, sums);
    if (threadIdx.x == 0)
        publish(&words[number], PREFIX, carry + total);
    return carry;
}

static __global__ void __launch_bounds__(THREADS)
    single_pass_kernel(struct pass pass, uint64_t tiles, struct progress *progress)
{
    __shared__ struct tile tile;
    __shared__ unsigned long long taken;
    __shared__ float carry, sums[LOOK];
    for (;;) {
        if (threadIdx.x == 0)
            taken = atomicAdd(&progress->taken, 1);
        __syncthreads();
        if (taken >= pass.rows * tiles)
            return;
        uint64_t row = taken / tiles, number = taken % tiles, first = number * TILE;
        int count = tile_count(first, pass.length);
        tile_load(&tile, pass.x[row], first, count);
        float total = tile_scan(&tile);
        if (threadIdx.x < WARP) {
            float sum = tile_carry(progress->published + row * tiles, number, total, sums);
            if (threadIdx.x == 0)
                carry = sum;
        }
        __syncthreads();
        tile_store(&tile, pass.y[row], first, count, carry);
    }
}

extern "C" uint64_t single_pass_workspace(const struct variant_scan *scan)
{
    uint64_t words = scan->rows * parts_of(scan->length, TILE);
    return sizeof(struct progress) + words * sizeof(unsigned long long);
}

extern "C" int single_pass(const struct variant_scan *scan, void *workspace, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        uint64_t tiles = parts_of(pass.length, TILE);
        cudaMemsetAsync(workspace, 0, single_pass_workspace(scan), stream);
        single_pass_kernel<<<grid_of(pass.rows * tiles), THREADS, 0, stream>>>(pass, tiles,
                                                                               (struct progress *)workspace);
    });
}

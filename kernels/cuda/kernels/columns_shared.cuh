/*
 * Scans along an axis that is not the innermost one: sums of f32 samples, and 4-byte forms, of columns that lie side by
 * side in memory.
 *
 * A strip is 32 columns, a lane each, so that a warp moves 128 bytes that lie together and no sample changes lanes. An
 * item is a tile of a strip, 512 samples of 32 columns, and stays in the shared memory of one thread block from its
 * only read to its only write: in place between passes, because a leaf of a column belongs to one lane all the time.
 * (A column of 10,000 samples has 20 tiles. Strips as narrow as one SM could hold, 5 columns, would use half of
 * every sector. A cluster of thread blocks that held a strip was no faster but for two passes by f32: its thread blocks
 * wait for each other as well.) Short columns share an item, as many strips of them as there is room for leaves.
 *
 * Lanes change places only for the network: a warp takes some columns and turns the totals of their leaves, one per
 * lane, into carries. It publishes the tile's totals for the other thread blocks of the strip in device memory, and has
 * theirs from there (tile states, tile_state.cuh). There leaves and tiles are counted in the order in which the pass
 * meets them: a backward pass is then the same as a forward one, what is missing is at the end, and nobody listens to
 * that.
 *
 * Thread block b takes the items b, b + grid, b + 2 grid, ..., and has the next one on its way to shared memory, leaf
 * by leaf, as soon as the results of the present one are in registers. All thread blocks are resident (a cooperative
 * launch). In one pass first come the first tiles of all strips, then the second ones: memory is met row by row, totals
 * have been published long before they are wanted, and nobody waits for a tile that comes later. In two passes, strips
 * that take turns have no more tiles than there are thread blocks. So nobody waits for ever, either: the tiles of the
 * first unfinished strips are in different thread blocks, which reach them without waiting for later ones.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_SHARED_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_SHARED_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define COLUMNS_WARPS      8
#define COLUMNS_PER_WARP   (ORDER_FAN / COLUMNS_WARPS) /* leaves, and columns, of a warp */
#define COLUMNS_THREADS    (COLUMNS_WARPS * WARP)
#define COLUMNS_LINE       (WARP + 1)                     /* sums: no bank conflicts along columns nor along leaves */
#define COLUMNS_LEAF       (ORDER_LEAF * WARP)            /* samples of all columns */
#define COLUMNS_TILE       (ORDER_FAN * COLUMNS_LEAF * 4) /* bytes */
#define COLUMNS_SHARED     (COLUMNS_TILE + ORDER_FAN * COLUMNS_LINE * 8)
#define COLUMNS_ITEMS      3 /* items that are known at once: one that some warps still write, the next two */
#define COLUMNS_SHARED_ALL (COLUMNS_SHARED + COLUMNS_ITEMS * (int)sizeof(struct columns_item))
#define COLUMNS_RESIDENT   3 /* thread blocks of an SM, where its shared memory suffices */

/* One launch. */
struct columns_plan {
    struct scan_plan scan; /* sides, axes, length, passes and forms of the scan */
    uint64_t columns;      /* columns of the innermost outer axis */
    uint64_t first, end;   /* rows */
    uint64_t first_strip;  /* strips are counted from that of row 0 */
    unsigned strips, items;
    unsigned strips_per_axis;             /* along the innermost outer axis */
    unsigned tiles;                       /* tiles of a column */
    unsigned strips_at_once;              /* in an item; 1 where columns have several tiles */
    unsigned together;                    /* strips whose tiles take turns */
    bool exclusive, vectors;              /* vectors: all strips begin with a vector */
    tile_state *states[SCAND_PASSES_MAX]; /* per pass a tree of tile states for each column, all zero before */
    uint64_t states_per_column;
};

struct columns_strip {
    char *input, *output; /* the first sample of the tile in the first column */
    int begin, end;       /* columns that are to be scanned */
};

/* An item as all threads know it. */
struct columns_item {
    struct columns_strip strips[ORDER_FAN];
    unsigned strip, tile;
    int samples; /* samples of a column in this tile; 0: there is no more work */
};

DEVICE struct columns_strip columns_strip_at(const struct columns_plan &plan, unsigned strip, unsigned tile)
{
    struct columns_strip result = {};
    uint64_t number = plan.first_strip + strip, axis = 0;
    if (plan.scan.outer_rank > 1) {
        axis = number / plan.strips_per_axis;
        number %= plan.strips_per_axis;
    }
    const uint64_t column = number * WARP, row = axis * plan.columns + column;
    const int64_t sample = (int64_t)tile * ORDER_TILE;
    result.input = side_at(plan.scan, plan.scan.input, row, 0) + sample * plan.scan.input.stride;
    result.output = side_at(plan.scan, plan.scan.output, row, 0) + sample * plan.scan.output.stride;
    result.begin = row < plan.first ? (int)min(plan.first - row, (uint64_t)WARP) : 0;
    result.end = (int)min(min(plan.columns - column, (uint64_t)WARP), plan.end > row ? plan.end - row : 0);
    return result;
}

/* Finds an item, by the first warp. */
DEVICE void columns_find(const struct columns_plan &plan, unsigned number, struct columns_item *item)
{
    const int lane = lane_index();
    if (number >= plan.items) {
        if (lane == 0)
            item->samples = 0;
        return;
    }
    unsigned strip = number * plan.strips_at_once + lane, tile = 0;
    if (plan.tiles > 1) {
        const unsigned group = number / (plan.tiles * plan.together), rest = number % (plan.tiles * plan.together);
        const unsigned width = min(plan.together, plan.strips - group * plan.together);
        strip = group * plan.together + rest % width;
        tile = rest / width;
        if (plan.scan.backward[0])
            tile = plan.tiles - 1 - tile;
    }
    if (lane == 0) {
        item->strip = strip;
        item->tile = tile;
        item->samples = (int)min(plan.scan.length - (uint64_t)tile * ORDER_TILE, (uint64_t)ORDER_TILE);
    }
    if (lane < plan.strips_at_once) {
        struct columns_strip found = {};
        if (strip < plan.strips)
            found = columns_strip_at(plan, strip, tile);
        item->strips[lane] = found;
    }
}

/* A leaf of all columns of a strip: the same for all lanes. */
struct columns_leaf {
    const struct columns_strip *strip;
    int position; /* among those of the column in this tile */
    int samples;  /* at most 0 where there is none */
};

/* Returns the leaf of vector `vec16` of an item. */
DEVICE struct columns_leaf columns_leaf_at(const struct columns_plan &plan, const struct columns_item *item, int vec16)
{
    struct columns_leaf leaf = {item->strips, vec16, 0};
    if (plan.strips_at_once > 1) {
        const int leaves = (unsigned)(plan.scan.length + ORDER_LEAF - 1) / ORDER_LEAF, strip = vec16 / leaves;
        if (strip >= (int)plan.strips_at_once)
            return leaf;
        leaf.strip += strip;
        leaf.position -= strip * leaves;
    }
    leaf.samples = min(item->samples - leaf.position * ORDER_LEAF, ORDER_LEAF);
    return leaf;
}

DEVICE bool columns_there(const struct columns_strip *strip)
{
    return lane_index() >= strip->begin && lane_index() < strip->end;
}

/* Starts the copy of a leaf. */
DEVICE void columns_fetch(const struct columns_plan &plan, const struct columns_item *item, int vec16, float *target)
{
    const struct columns_leaf leaf = columns_leaf_at(plan, item, vec16);
    const int lane = lane_index();
    const int64_t stride = plan.scan.input.stride;
    const char *source = leaf.strip->input + leaf.position * ORDER_LEAF * stride;
    if (plan.vectors && leaf.strip->begin == 0 && leaf.strip->end == WARP) {
        source = settled(source + lane / 8 * stride + lane % 8 * VEC16_BYTES);
        target += lane * 4;
#pragma unroll
        for (int j = 0; j < ORDER_LEAF; j += 4, source += 4 * stride)
            if (j + lane / 8 < leaf.samples)
                __pipeline_memcpy_async(target + j * WARP, source, VEC16_BYTES);
    } else if (columns_there(leaf.strip)) {
        source = settled(source + lane * 4);
#pragma unroll 4
        for (int j = 0; j < leaf.samples; j++, source += stride)
            __pipeline_memcpy_async(target + j * WARP + lane, source, 4);
    }
}

/* A lane's samples of a leaf, as they are in memory. */
DEVICE void columns_read(const float *leaf, float x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = leaf[i * WARP + lane_index()];
}

/* Decodes samples to those that the pass takes. */
template <class Sum>
DEVICE void columns_decode(float raw[ORDER_LEAF], int samples, enum scand_dtype form,
                           typename Sum::sample x[ORDER_LEAF])
{
    leaf_decode(form, raw);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(raw[i]);
    if (Sum::has_identity && samples < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = i < samples ? x[i] : Sum::absent();
}

/* True when a pass meets missing samples of a leaf first, and must be told. */
template <class Sum, bool Backward> DEVICE bool columns_partial(int samples)
{
    return !Sum::has_identity && Backward && samples < ORDER_LEAF;
}

template <class Sum, bool Backward>
DEVICE typename Sum::sum columns_total(const typename Sum::sample x[ORDER_LEAF], int samples)
{
    return columns_partial<Sum, Backward>(samples) ? leaf_total<Sum, Backward, Backward>(x, samples - 1)
                                                   : leaf_total<Sum, Backward, false>(x, ORDER_LEAF - 1);
}

template <class Sum, bool Backward, int Kind>
DEVICE void columns_values(typename Sum::sample x[ORDER_LEAF], int samples, carry<Sum> carry)
{
    if (columns_partial<Sum, Backward>(samples))
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, samples - 1);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1);
}

/* Both functions above for either direction and kind. `first`: the pass begins with this leaf. */
template <class Sum>
DEVICE typename Sum::sum columns_total_of(const struct columns_plan &plan, int pass,
                                          const typename Sum::sample x[ORDER_LEAF], int samples)
{
    return plan.scan.backward[pass] ? columns_total<Sum, true>(x, samples) : columns_total<Sum, false>(x, samples);
}

template <class Sum>
DEVICE void columns_values_of(const struct columns_plan &plan, int pass, typename Sum::sample x[ORDER_LEAF],
                              int samples, bool first, typename Sum::sum sum)
{
    const carry<Sum> carry = {sum, Sum::has_identity || !first};
    const bool backward = plan.scan.backward[pass];
    if (!plan.exclusive) {
        if (backward)
            columns_values<Sum, true, SCAND_KIND_INCLUSIVE>(x, samples, carry);
        else
            columns_values<Sum, false, SCAND_KIND_INCLUSIVE>(x, samples, carry);
        return;
    }
    if (backward)
        columns_values<Sum, true, SCAND_KIND_EXCLUSIVE>(x, samples, carry);
    else
        columns_values<Sum, false, SCAND_KIND_EXCLUSIVE>(x, samples, carry);
    if (Sum::has_identity && first)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = i == (backward ? samples - 1 : 0) ? Sum::value(Sum::zero()) : x[i];
}

/* Waits for the tile states of a warp's columns, all of them at once. */
template <class Sum>
DEVICE void tile_states_await(tile_state *const states[COLUMNS_PER_WARP], unsigned member,
                              typename Sum::sum sums[COLUMNS_PER_WARP])
{
    const int words = tile_state_words<Sum>();
    unsigned long long found[COLUMNS_PER_WARP][words], marks;
    do {
        marks = TILE_STATE_PUBLISHED;
#pragma unroll
        for (int k = 0; k < COLUMNS_PER_WARP; k++)
#pragma unroll
            for (int i = 0; i < words; i++)
                found[k][i] = load_relaxed(states[k] + member * words + i);
#pragma unroll
        for (int k = 0; k < COLUMNS_PER_WARP; k++)
#pragma unroll
            for (int i = 0; i < words; i++)
                marks &= found[k][i];
    } while (!marks);
#pragma unroll
    for (int k = 0; k < COLUMNS_PER_WARP; k++) {
        unsigned bits[words];
#pragma unroll
        for (int i = 0; i < words; i++)
            bits[i] = (unsigned)found[k][i];
        memcpy(&sums[k], bits, sizeof(sums[k]));
    }
}

/*
 * Puts the tile's totals in a warp's columns, and makes the carries into the tile: what lookback_carry does for one
 * row. At each level a lane stands for a member of the group. Prefixes are found innermost first and added outermost
 * first. Only one warp asks again and again for the other tiles' totals, those of one column, until all are there: were
 * it all warps, for all columns, they would keep what they wait for from coming.
 */
template <class Sum>
DEVICE void columns_lookback(const struct columns_plan &plan, const struct columns_item *item, int pass, int warp,
                             typename Sum::sum totals[COLUMNS_PER_WARP], carry<Sum> outside[COLUMNS_PER_WARP])
{
    const int lane = lane_index(), words = tile_state_words<Sum>();
    const bool backward = plan.scan.backward[pass];
    typename Sum::sum prefixes[COLUMNS_PER_WARP]; /* lane l: that of level l */
    tile_state *states[COLUMNS_PER_WARP];
    unsigned members = plan.tiles, index = item->tile, present = 0;
    bool known = true;
    int level = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS_PER_WARP; k++) {
        const uint64_t column = (uint64_t)item->strip * WARP + warp + k * COLUMNS_WARPS;
        states[k] = plan.states[pass] + column * plan.states_per_column * words;
        prefixes[k] = totals[k];
    }
    for (;; level++) {
        const unsigned first = index / ORDER_FAN * ORDER_FAN;
        const int count = (int)min(members - first, (unsigned)ORDER_FAN);
        const int position = backward ? count - 1 - (int)(index - first) : (int)(index - first);
        const unsigned member = first + (backward ? count - 1 - lane : lane);
        typename Sum::sum sums[COLUMNS_PER_WARP];
#pragma unroll
        for (int k = 0; k < COLUMNS_PER_WARP; k++) {
            sums[k] = totals[k];
            if (known && lane == position)
                tile_state_publish<Sum>(states[k] + member * words, totals[k]);
        }
        if (level == 0) {
            if (warp == 0 && lane < position)
                tile_state_await<Sum>(states[0] + member * words);
            __syncthreads();
        }
        if (lane < position)
            tile_states_await<Sum>(states, member, sums);
        __syncwarp();
        present |= (unsigned)(position > 0) << level;
        known = known && position == count - 1;
#pragma unroll
        for (int k = 0; k < COLUMNS_PER_WARP; k++) {
            sums[k] = group_scan<Sum, false>(sums[k], ORDER_FAN - 1);
            typename Sum::sum before = lane_get(sums[k], max(position - 1, 0));
            if (lane == level)
                prefixes[k] = before;
            totals[k] = lane_get(sums[k], position);
            states[k] += (uint64_t)members * words;
        }
        if (members <= ORDER_FAN)
            break;
        members = (members + ORDER_FAN - 1) / ORDER_FAN;
        index /= ORDER_FAN;
    }
#pragma unroll
    for (int k = 0; k < COLUMNS_PER_WARP; k++) {
        outside[k] = carry_of<Sum>(totals[k], false);
        for (int l = level; l >= 0; l--)
            outside[k] = carry_join<Sum>(outside[k], carry_of<Sum>(lane_get(prefixes[k], l), present >> l & 1));
    }
}

/* The carries into all leaves of a warp's columns, from their totals. */
template <class Sum>
DEVICE void columns_carries(const struct columns_plan &plan, const struct columns_item *item, int pass, int warp,
                            typename Sum::sum *sums)
{
    const int leaves = (item->samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int lane = lane_index(), strip = lane / leaves, position = lane - strip * leaves;
    const int vec16 = strip * leaves + (plan.scan.backward[pass] ? leaves - 1 - position : position);
    typename Sum::sum *const stored = sums + min(vec16, ORDER_FAN - 1) * COLUMNS_LINE + warp;
    typename Sum::sum prefixes[COLUMNS_PER_WARP];
    carry<Sum> outside[COLUMNS_PER_WARP];
#pragma unroll
    for (int k = 0; k < COLUMNS_PER_WARP; k++) {
        prefixes[k] = segmented_scan<Sum, false>(stored[k * COLUMNS_WARPS], position, leaves);
        outside[k] = carry_of<Sum>(prefixes[k], false);
    }
    if (plan.tiles > 1) {
        typename Sum::sum totals[COLUMNS_PER_WARP];
#pragma unroll
        for (int k = 0; k < COLUMNS_PER_WARP; k++)
            totals[k] = lane_get(prefixes[k], leaves - 1);
        columns_lookback<Sum>(plan, item, pass, warp, totals, outside);
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < COLUMNS_PER_WARP; k++) {
        typename Sum::sum before;
        lane_before<false>(prefixes[k], &before, 1, WARP - 1);
        typename Sum::sum carry = carry_join<Sum>(outside[k], carry_of<Sum>(before, position > 0)).sum;
        if (vec16 < ORDER_FAN)
            stored[k * COLUMNS_WARPS] = carry;
    }
}

/* Writes a lane's results of a leaf. */
template <class Out>
DEVICE void columns_write(const struct columns_plan &plan, struct columns_leaf leaf, const Out results[ORDER_LEAF])
{
    const int64_t stride = plan.scan.output.stride;
    char *target = leaf.strip->output + leaf.position * ORDER_LEAF * stride + lane_index() * (int)sizeof(Out);
    target = settled(target);
    __builtin_assume(__isGlobal(target));
    if (!columns_there(leaf.strip))
        return;
    if (leaf.samples == ORDER_LEAF) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++, target += stride)
            *(Out *)target = results[i];
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++, target += stride)
            if (i < leaf.samples)
                *(Out *)target = results[i];
    }
}

/* Iterates over a warp's leaves: every COLUMNS_WARPS-th. */
#define COLUMNS_EACH(SLOT, WARP_INDEX) \
    _Pragma("unroll 1") for (int SLOT = WARP_INDEX; SLOT < ORDER_FAN; SLOT += COLUMNS_WARPS)

/* The totals of the first pass. */
template <class Sum>
DEVICE void columns_totals(const struct columns_plan &plan, const struct columns_item *item, int warp,
                           const float *tile, typename Sum::sum *sums)
{
    COLUMNS_EACH(vec16, warp)
    {
        const struct columns_leaf leaf = columns_leaf_at(plan, item, vec16);
        typename Sum::sample x[ORDER_LEAF];
        if (leaf.samples <= 0)
            return;
        float raw[ORDER_LEAF];
        columns_read(tile + vec16 * COLUMNS_LEAF, raw);
        columns_decode<Sum>(raw, leaf.samples, plan.scan.input_form, x);
        sums[vec16 * COLUMNS_LINE + lane_index()] = columns_total_of<Sum>(plan, 0, x, leaf.samples);
    }
}

/* True when a leaf is the first that a pass over its column meets. */
DEVICE bool columns_first(const struct columns_plan &plan, const struct columns_item *item, int pass,
                          struct columns_leaf leaf)
{
    const int last = (item->samples - 1) / ORDER_LEAF;
    return plan.scan.backward[pass] ? item->tile == plan.tiles - 1 && leaf.position == last
                                    : item->tile == 0 && leaf.position == 0;
}

/* The values of the first of two passes, in place of the samples, and the totals of the second one. */
template <class Sum>
DEVICE void columns_between(const struct columns_plan &plan, const struct columns_item *item, int warp, float *tile,
                            typename Sum::sum *sums)
{
    COLUMNS_EACH(vec16, warp)
    {
        const struct columns_leaf leaf = columns_leaf_at(plan, item, vec16);
        float *const stored = tile + vec16 * COLUMNS_LEAF;
        typename Sum::sum *const sum = &sums[vec16 * COLUMNS_LINE + lane_index()];
        typename Sum::sample x[ORDER_LEAF];
        if (leaf.samples <= 0)
            return;
        float raw[ORDER_LEAF];
        columns_read(stored, raw);
        columns_decode<Sum>(raw, leaf.samples, plan.scan.input_form, x);
        columns_values_of<Sum>(plan, 0, x, leaf.samples, columns_first(plan, item, 0, leaf), *sum);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            stored[i * WARP + lane_index()] = raw[i] = Sum::as_f32(x[i]);
        columns_decode<Sum>(raw, leaf.samples, SCAND_DTYPE_F32, x);
        *sum = columns_total_of<Sum>(plan, 1, x, leaf.samples);
    }
}

/* The results, from the last pass; and the next item's samples are on their way to where the present one's were. */
template <class Sum, class Out>
DEVICE void columns_finish(const struct columns_plan &plan, const struct columns_item *item,
                           const struct columns_item *next, int warp, float *tile, const typename Sum::sum *sums)
{
    const int pass = plan.scan.pass_count - 1;
    COLUMNS_EACH(vec16, warp)
    {
        const struct columns_leaf leaf = columns_leaf_at(plan, item, vec16);
        float *const stored = tile + vec16 * COLUMNS_LEAF;
        float raw[ORDER_LEAF];
        columns_read(stored, raw);
        leaf_pin(raw);
        __syncwarp();
        columns_fetch(plan, next, vec16, stored);
        if (leaf.samples > 0) {
            typename Sum::sample x[ORDER_LEAF];
            columns_decode<Sum>(raw, leaf.samples, pass == 0 ? plan.scan.input_form : SCAND_DTYPE_F32, x);
            Out results[ORDER_LEAF];
            columns_values_of<Sum>(plan, pass, x, leaf.samples, columns_first(plan, item, pass, leaf),
                                   sums[vec16 * COLUMNS_LINE + lane_index()]);
            leaf_results<Sum, Out>(x, results);
            leaf_encode(plan.scan.output_form, results);
            columns_write<Out>(plan, leaf, results);
        }
    }
    __pipeline_commit();
}

/* Sum is that of all passes, Last the same, or one of the same size, for results. */
template <class Sum, class Last, class Out>
__global__ void __launch_bounds__(COLUMNS_THREADS, COLUMNS_RESIDENT)
    columns_kernel(const __grid_constant__ struct columns_plan plan)
{
    extern __shared__ uint4 columns_room[];
    __shared__ struct columns_item items[COLUMNS_ITEMS];
    float *const tile = (float *)columns_room;
    typename Sum::sum *const sums = (typename Sum::sum *)((char *)columns_room + COLUMNS_TILE);
    const int warp = warp_index();
    unsigned number = blockIdx.x;
    if (warp == 0)
        columns_find(plan, number, &items[0]);
    __syncthreads();
    COLUMNS_EACH(vec16, warp)
    columns_fetch(plan, &items[0], vec16, tile + vec16 * COLUMNS_LEAF);
    __pipeline_commit();
    for (int at = 0; items[at].samples > 0;) {
        const struct columns_item *item = &items[at];
        at = at == COLUMNS_ITEMS - 1 ? 0 : at + 1;
        number += gridDim.x;
        if (warp == 0)
            columns_find(plan, number, &items[at]);
        __pipeline_wait_prior(0);
        __syncwarp();
        columns_totals<Sum>(plan, item, warp, tile, sums);
        __syncthreads();
        columns_carries<Sum>(plan, item, 0, warp, sums);
        __syncthreads();
        if (plan.scan.pass_count > 1) {
            columns_between<Sum>(plan, item, warp, tile, sums);
            __syncthreads();
            columns_carries<Sum>(plan, item, 1, warp, sums);
            __syncthreads();
        }
        columns_finish<Last, Out>(plan, item, &items[at], warp, tile, (const typename Last::sum *)sums);
    }
}

#endif

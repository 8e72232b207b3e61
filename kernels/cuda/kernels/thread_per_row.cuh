/*
 * Rows of at most four leaves, sums of f32 samples, one row right after the other in memory. A lane takes a row, a warp
 * 32 of them: no lane meets another, and all have the same to do whatever the length, where lanes that took a leaf
 * each would often have a short one. A row stays in shared memory and passes through registers leaf by leaf; one that
 * is a leaf stays in registers.
 */
#ifndef KERNELS_CUDA_KERNELS_THREAD_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_THREAD_PER_ROW_CUH

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define THREAD_PER_ROW_WARPS 8 /* warps of a thread block */

/* Rows of a warp's iteration: 2 of the shortest for a lane, so that there is as much to do as there is to be found out.
 */
#define THREAD_PER_ROW_ROWS(LENGTH) ((LENGTH) <= ORDER_LEAF ? 2 * WARP : WARP)

/* Vectors of shared memory for them, which begin within a vector. */
#define THREAD_PER_ROW_SMEM(LENGTH) (((THREAD_PER_ROW_ROWS(LENGTH) * (LENGTH) + 3 + 3) / 4 + 7) / 8 * 8)

/* The position of an iteration's rows. */
struct thread_per_row_span {
    char *vectors; /* in device memory, from the one on that they begin in */
    int shift;     /* samples before the first */
    int count;     /* samples */
};

DEVICE struct thread_per_row_span thread_per_row_span_of(const struct packed_rows &plan, const char *base,
                                                         uint64_t iteration)
{
    const char *first = base + packed_offset(plan, iteration);
    const int shift = shift_of<float>(first);
    return {(char *)first - shift * 4, shift, packed_count(plan, iteration) * plan.length};
}

DEVICE void thread_per_row_fetch(const struct packed_rows &plan, uint64_t iteration, uint4 *tile)
{
    const struct thread_per_row_span span = thread_per_row_span_of(plan, plan.input, iteration);
    const int end = span.shift + span.count, lane = lane_index();
#pragma unroll 4
    for (int k = lane; k < end / 4; k += WARP)
        __pipeline_memcpy_async(tile + k, span.vectors + k * VEC16_BYTES, VEC16_BYTES);
    if (end % 4 > 0 && lane == 0)
        vec16_fetch(tile + end / 4, span.vectors + end / 4 * VEC16_BYTES, end % 4 * 4);
    __pipeline_commit();
}

DEVICE void thread_per_row_drain(const uint4 *tile, struct thread_per_row_span span)
{
    const int end = (unsigned)(span.shift + span.count) / 4, begin = span.shift > 0;
    __builtin_assume(__isGlobal(span.vectors));
#pragma unroll 4
    for (int k = begin + lane_index(); k < end; k += WARP)
        *(uint4 *)(span.vectors + k * VEC16_BYTES) = tile[k];
    if (span.shift > 0 || (span.shift + span.count) % 4 > 0)
        packed_drain_edges((float *)span.vectors, span.shift, span.count, (const float *)tile,
                           (const float *)(tile + end));
}

/* A leaf of `samples` samples. What x has beyond them is not said. */
DEVICE void lane_read(const float *leaf, int samples, bool whole_vectors, float x[ORDER_LEAF])
{
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j += 4) {
        if (j >= samples)
            break;
        if (whole_vectors)
            vec16_get((const uint4 *)(leaf + j), &x[j]);
        else
#pragma unroll
            for (int i = j; i < j + 4; i++)
                x[i] = i < samples ? leaf[i] : 0.0f;
    }
}

DEVICE void lane_write(float *leaf, int samples, bool whole_vectors, const float x[ORDER_LEAF])
{
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j += 4) {
        if (j >= samples)
            break;
        if (whole_vectors) {
            vec16_put((uint4 *)(leaf + j), &x[j]);
        } else {
#pragma unroll
            for (int i = j; i < j + 4; i++)
                if (i < samples)
                    leaf[i] = x[i];
        }
    }
}

/*
 * Replaces the samples of a leaf by their values, by adding them to `sum`, and finds the leaf's total. First: of the
 * leaves of its row it is met first, and has perhaps not all samples; then there is nothing to add to. Others that lack
 * samples are met last, and what is made of those does not matter.
 */
template <class Sum, bool Backward, int Kind, bool First, bool Total>
DEVICE void lane_leaf(float x[ORDER_LEAF], int samples, typename Sum::sum &sum, typename Sum::sum &total)
{
    if (First && Sum::has_identity)
        sum = Sum::identity();
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j++) {
        const int k = Backward ? ORDER_LEAF - 1 - j : j;
        if (k / 4 * 4 >= samples)
            continue;
        const bool start = First && k == (Backward ? samples - 1 : 0);
        typename Sum::sample sample = Sum::from_f32(x[k]);
        if (First && Backward && Sum::has_identity && k >= samples)
            sample = Sum::absent();
        typename Sum::sum before = sum;
        if (Sum::has_identity || !start)
            sum = Sum::add_sample(sum, sample);
        else
            sum = Sum::first(sample);
        if (Total)
            total = j == 0 ? Sum::first(sample) : Sum::add_sample(total, sample);
        if (Kind == SCAND_KIND_EXCLUSIVE)
            sample = start ? Sum::value(Sum::zero()) : Sum::value(before);
        else
            sample = Sum::value(sum);
        x[k] = Sum::as_f32(sample);
    }
}

/* NaN in a leaf are also in the sum after it. */
template <class Sum> DEVICE void lane_quiet_nan(float x[ORDER_LEAF], typename Sum::sum sum)
{
    float last = Sum::as_f32(Sum::value(sum));
    if (last != last) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&x[i]);
    }
}

/* One pass over a row. */
template <class Sum, bool Backward, int Kind>
DEVICE void lane_pass(const struct packed_rows &plan, float *row, bool whole_vectors)
{
    typename Sum::sum sum = {}, totals[2] = {}, total = {};
#pragma unroll 1
    for (int met = 0; met < plan.leaves; met++) {
        const int leaf = Backward ? plan.leaves - 1 - met : met;
        const int samples = min(plan.length - leaf * ORDER_LEAF, ORDER_LEAF);
        float *begin = row + leaf * ORDER_LEAF;
        float x[ORDER_LEAF];
        lane_read(begin, samples, whole_vectors, x);
        if (met == 0)
            lane_leaf<Sum, Backward, Kind, true, false>(x, samples, sum, total);
        else if (met + 1 < plan.leaves)
            lane_leaf<Sum, Backward, Kind, false, true>(x, samples, sum, total);
        else
            lane_leaf<Sum, Backward, Kind, false, false>(x, samples, sum, total);
        lane_quiet_nan<Sum>(x, sum);
        lane_write(begin, samples, whole_vectors, x);
        /* The carry into the next leaf, from the Kogge-Stone network over up to three totals. */
        if (met == 0) {
            totals[0] = sum;
        } else if (met == 1) {
            totals[1] = total;
            sum = Sum::add(totals[0], total);
        } else {
            sum = Sum::add(totals[0], Sum::add(totals[1], total));
        }
    }
}

/* All passes over a row that is a leaf of so many vectors. */
template <class Sum, int Kind, int Slots>
DEVICE void lane_row(const struct packed_rows &plan, float *row, bool whole_vectors)
{
    const int samples = plan.length;
    float x[ORDER_LEAF];
    typename Sum::sum sum = {}, total = {};
    __builtin_assume(samples > 4 * (Slots - 1) && samples <= 4 * Slots);
    lane_read(row, samples, whole_vectors, x);
#pragma unroll 1
    for (int pass = 0; pass < plan.pass_count; pass++)
        if (plan.backward[pass])
            lane_leaf<Sum, true, Kind, true, false>(x, samples, sum, total);
        else
            lane_leaf<Sum, false, Kind, true, false>(x, samples, sum, total);
    lane_quiet_nan<Sum>(x, sum);
    lane_write(row, samples, whole_vectors, x);
}

/* All passes over a row. `Leaf`: it is one, and stays in registers. */
template <class Sum, int Kind, bool Leaf>
DEVICE void lane_passes(const struct packed_rows &plan, float *row, bool whole_vectors)
{
    if constexpr (Leaf) {
        if (plan.length <= 4)
            lane_row<Sum, Kind, 1>(plan, row, whole_vectors);
        else if (plan.length <= 8)
            lane_row<Sum, Kind, 2>(plan, row, whole_vectors);
        else if (plan.length <= 12)
            lane_row<Sum, Kind, 3>(plan, row, whole_vectors);
        else
            lane_row<Sum, Kind, 4>(plan, row, whole_vectors);
    } else {
#pragma unroll 1
        for (int pass = 0; pass < plan.pass_count; pass++)
            if (plan.backward[pass])
                lane_pass<Sum, true, Kind>(plan, row, whole_vectors);
            else
                lane_pass<Sum, false, Kind>(plan, row, whole_vectors);
    }
}

/* Registers: as many as suffice without spilling any. */
template <bool Leaf> constexpr int thread_per_row_registers = Leaf ? 56 : 48;

template <class Sum, int Kind, bool Leaf>
__global__ void REGISTERS(thread_per_row_registers<Leaf>)
    thread_per_row_kernel(const __grid_constant__ struct packed_rows plan)
{
    extern __shared__ uint4 thread_per_row_tiles[];
    const int warp = warp_index(), smem = THREAD_PER_ROW_SMEM(plan.length);
    const uint64_t stride = (uint64_t)gridDim.x * THREAD_PER_ROW_WARPS;
    uint4 *tile = thread_per_row_tiles + warp * smem;
    for (uint64_t iteration = (uint64_t)blockIdx.x * THREAD_PER_ROW_WARPS + warp; packed_count(plan, iteration) > 0;
         iteration += stride) {
        thread_per_row_fetch(plan, iteration, tile);
        __pipeline_wait_prior(0);
        __syncwarp();
        const struct thread_per_row_span span = thread_per_row_span_of(plan, plan.output, iteration);
        const bool whole_vectors = (span.shift | plan.length) % 4 == 0;
#pragma unroll 1
        for (int row = lane_index(); row < plan.rows_at_once; row += WARP)
            lane_passes<Sum, Kind, Leaf>(plan, (float *)tile + span.shift + row * plan.length, whole_vectors);
        __syncwarp();
        thread_per_row_drain(tile, span);
        __syncwarp();
    }
}

#endif

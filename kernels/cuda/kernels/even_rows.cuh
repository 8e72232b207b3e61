/*
 * Inclusive sums along rows of up to an order block that lie at equal distances, each by a thread block as in
 * block_per_row.cuh. What a row needs to be found is its number, and nothing comes from other blocks of it, so that a
 * tile takes some fifty instructions less. f2 has fewer still: TMA brings all of a row and stores half tiles of
 * results, as tiles of a tensor of lines of a leaf. It has their vectors change places as swizzle says, and leaves out
 * what lies beyond the end of a row.
 */
#ifndef KERNELS_CUDA_KERNELS_EVEN_ROWS_CUH
#define KERNELS_CUDA_KERNELS_EVEN_ROWS_CUH

#include <cuda.h>

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/exchange/mbarrier.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/warp/item_io.cuh"
#include "kernels/cuda/warp/short_io.cuh"

#define EVEN_KERNELS   (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
#define EVEN_LINE      (ORDER_LEAF * 4)   /* bytes of f32 samples */
#define EVEN_ALIGNMENT (8 * EVEN_LINE)    /* bytes after which vectors change places in the same way */
#define EVEN_STAGE     (TILE_VECTORS / 2) /* vectors */

/* Rows in f2, of which TMA brings `boxes` boxes of `lines` leaves each. */
struct even_plan {
    CUtensorMap input, output; /* by {samples of a leaf, leaves, rows} */
    struct scan_plan scan;
    int boxes, lines;
};

/* The numbers of the next rows; beyond the last row there is no more work. */
struct even_queue {
    unsigned rows[ITEMS];
};

/* A pass over a row that has no other blocks. */
template <class Sum> struct even_outside {
    __device__ __forceinline__ bool total_wanted() const { return false; }
    __device__ __forceinline__ bool present() const { return false; }
    __device__ __forceinline__ int kind() const { return KIND_ANY; }
    __device__ __forceinline__ typename Sum::sum *sum() const { return NULL; }
    __device__ __forceinline__ typename Sum::sample zero() const { return Sum::value(Sum::zero()); }
};

DEVICE void even_begin(struct even_queue *queue)
{
    if (threadIdx.x < ITEMS_AHEAD)
        queue->rows[threadIdx.x] = blockIdx.x + threadIdx.x * gridDim.x;
}

/* True for a row that there is. */
DEVICE bool even_there(const struct scan_plan &plan, unsigned row)
{
    return row < (unsigned)plan.items;
}

/* The later row that thread blocks take in an iteration, of which `number` is the outcome of the queue. */
DEVICE void even_later(const struct scan_plan &plan, struct even_queue *queue, unsigned iteration, unsigned number)
{
    const uint64_t row = scan_taken(plan, number, iteration);
    queue->rows[(iteration + ITEMS_AHEAD) % ITEMS] = (unsigned)min(row, (uint64_t)~0u);
}

DEVICE void even_finish(const struct scan_plan &plan)
{
    if (plan.progress && threadIdx.x == 0)
        scan_finish(plan.progress);
}

/* Where row 0 is the first one, at distances that 32 bits hold: one multiplication. */
DEVICE char *even_row_at(const struct scan_side &side, unsigned row)
{
    return (char *)__builtin_assume_aligned(side.base + (uint64_t)row * (unsigned)side.outer_strides[0], VEC16_BYTES);
}

template <class Sum, class Outside>
DEVICE void even_pass(const struct scan_plan &plan, int pass, int warp, tile_sums<Sum> *sums,
                      typename Sum::sample x[ORDER_LEAF], Outside outside)
{
    if (plan.backward[pass])
        block_pass<Sum, true, SCAND_KIND_INCLUSIVE>(x, (int)plan.length, warp, sums, outside);
    else
        block_pass<Sum, false, SCAND_KIND_INCLUSIVE>(x, (int)plan.length, warp, sums, outside);
}

/* How samples of 4 bytes and of 2 pass between memory and registers, of a tile of `count` ones. */
template <class Sum, int Bytes> struct even_io : item_io<Sum, true> {
    /* Of whole tiles nothing is asked. */
    DEVICE void start(uint4 *tile, const char *source, int count)
    {
        if (count == ORDER_TILE)
            fetch_vectors(tile, source, 0, ORDER_TILE);
        else
            fetch_vectors(tile, source, 0, count);
    }
    DEVICE void take(const uint4 *tile, struct held_leaf<float> *words) { leaf_read(tile, words->x); }
    DEVICE void give(enum scand_dtype form, uint4 *stage, char *row, int length, int warp,
                     const typename Sum::sample x[ORDER_LEAF])
    {
        struct held_leaf<float> results;
        scan_results<Sum, true>(form, x, results.x);
        tile_write<Sum::stage_vectors, false, true>(stage, row, length, warp, &results);
    }
};

template <class Sum> struct even_io<Sum, 2> : short_io<Sum> {
    DEVICE void start(uint4 *tile, const char *source, int count)
    {
        if (count == ORDER_TILE)
            short_fetch_whole(tile, source);
        else
            words_fetch_vectors<2>(tile, source, count);
    }
    DEVICE void take(uint4 *tile, typename short_io<Sum>::words *words)
    {
        leaf_get<2>(tile, lane_index(), 0, words->word);
    }
    DEVICE void give(enum scand_dtype form, uint4 *stage, char *row, int length, int warp,
                     const typename Sum::sample x[ORDER_LEAF])
    {
        short_io<Sum>::put(form, stage, row + warp * ORDER_TILE * 2, tile_samples(length, warp), x);
    }
};

template <class Sum, int Bytes>
DEVICE void even_fetch(const struct scan_plan &plan, unsigned row, int warp, uint4 *tile)
{
    if (even_there(plan, row))
        even_io<Sum, Bytes>::start(tile, even_row_at(plan.input, row) + warp * ORDER_TILE * Bytes,
                                   tile_samples((int)plan.length, warp));
    __pipeline_commit();
}

template <class Sum, int Bytes>
__global__ void REGISTERS((even_io<Sum, Bytes>::registers))
    even_rows_kernel(const __grid_constant__ struct scan_plan plan)
{
#if EVEN_KERNELS
    using Io = even_io<Sum, Bytes>;
    extern __shared__ __align__(EVEN_ALIGNMENT) uint4 even_tiles[];
    __shared__ struct even_queue queue;
    __shared__ tile_sums<Sum> sums;
    const int warp = warp_index();
    uint4 *tile = even_tiles + warp * (WARP * Bytes + Io::stage_vectors), *stage = tile + WARP * Bytes;
    even_begin(&queue);
    __syncthreads();
    unsigned row = queue.rows[0];
    even_fetch<Sum, Bytes>(plan, row, warp, tile);

    for (unsigned iteration = 0; even_there(plan, row); iteration++) {
        typename Io::words words;
        typename Sum::sample x[ORDER_LEAF];
        __pipeline_wait_prior(0);
        __syncwarp();
        Io::take(tile, &words);
        __syncwarp();
        const unsigned next = queue.rows[(iteration + 1) % ITEMS];
        even_fetch<Sum, Bytes>(plan, next, warp, tile);
        Io::decode(plan.input_form, &words, x);
#pragma unroll 1
        for (int pass = 0;; pass++) {
            even_pass<Sum>(plan, pass, warp, &sums, x, even_outside<Sum>());
            if (pass + 1 == plan.pass_count)
                break;
            leaf_between_passes<Sum>(x, plan.intermediate_f32, plan.input_form == SCAND_DTYPE_F16);
        }
        unsigned taken = 0; /* in a register, until it is known */
        if (warp == 0 && lane_index() == 0)
            taken = scan_take_number(plan);
        Io::give(plan.output_form, stage, even_row_at(plan.output, row), (int)plan.length, warp, x);
        if (warp == 0 && lane_index() == 0)
            even_later(plan, &queue, iteration, taken);
        row = next;
    }
    even_finish(plan);
#endif
}

/* What waits while the first warp makes carries: in the first pass, when all have read their tiles, one thread starts
 * the copy of the next row, and finds out about a later one. */
struct even_f2_outside : even_outside<sum_f2> {
    const struct even_plan &plan;
    int pass;
    unsigned iteration;
    struct even_queue *queue;
    uint4 *tiles;
    mbarrier *arrived;

    __device__ __forceinline__ void fetch(unsigned row) const
    {
        if (!even_there(plan.scan, row))
            return;
        mbarrier_expect(arrived, plan.boxes * plan.lines * EVEN_LINE);
#pragma unroll 1
        for (int i = 0; i < plan.boxes; i++)
            tma_load_3d(smem_address(tiles + i * plan.lines * (EVEN_LINE / VEC16_BYTES)), &plan.input, 0,
                        i * plan.lines, (int)row, smem_address(arrived));
    }
    __device__ __forceinline__ void meanwhile(int warp) const
    {
        if (pass == 0 && warp + 1 == (int)blockDim.x / WARP && lane_index() == 0) {
            fetch(queue->rows[(iteration + 1) % ITEMS]);
            even_later(plan.scan, queue, iteration, scan_take_number(plan.scan));
        }
    }
};
template <> constexpr bool whole_leaves<even_f2_outside> = true;

/* Stores a tile's results, half of them at a time. */
DEVICE void even_store(const struct even_plan &plan, unsigned row, int warp, uint4 *stage, const float x[ORDER_LEAF])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        bulk_wait_read();
        __syncwarp();
        if (lane_index() / (WARP / 2) == half)
            leaf_write(stage, lane_index() % (WARP / 2), x);
        fence_proxy_async_shared();
        __syncwarp();
        if (lane_index() == 0) {
            tma_store_3d(&plan.output, 0, warp * WARP + half * (WARP / 2), (int)row, smem_address(stage));
            bulk_commit();
        }
    }
}

static __global__ void REGISTERS(sum_f2::registers) even_f2_kernel(const __grid_constant__ struct even_plan plan)
{
#if EVEN_KERNELS
    extern __shared__ __align__(EVEN_ALIGNMENT) uint4 even_tiles[];
    __shared__ struct even_queue queue;
    __shared__ tile_sums<sum_f2> sums;
    __shared__ mbarrier arrived;
    const int warp = warp_index();
    const uint4 *tile = even_tiles + warp * TILE_VECTORS;
    uint4 *stage = even_tiles + plan.boxes * plan.lines * (EVEN_LINE / VEC16_BYTES) + warp * EVEN_STAGE;
    even_begin(&queue);
    if (threadIdx.x == 0)
        mbarrier_init_tx(&arrived);
    __syncthreads();
    if (threadIdx.x == 0)
        even_f2_outside{{}, plan, 0, 0, &queue, even_tiles, &arrived}.fetch(queue.rows[0]);

    for (unsigned iteration = 0; even_there(plan.scan, queue.rows[iteration % ITEMS]); iteration++) {
        float x[ORDER_LEAF];
        mbarrier_wait(&arrived, iteration % 2);
        leaf_read(tile, x);
#pragma unroll 1
        for (int pass = 0; pass < plan.scan.pass_count; pass++)
            even_pass<sum_f2>(plan.scan, pass, warp, &sums, x,
                              even_f2_outside{{}, plan, pass, iteration, &queue, even_tiles, &arrived});
        leaf_results<sum_f2>(x, x);
        even_store(plan, queue.rows[iteration % ITEMS], warp, stage, x);
    }
    bulk_wait_written();
    even_finish(plan.scan);
#endif
}

#endif

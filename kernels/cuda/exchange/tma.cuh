/*
 * How boxes of columns come to shared memory, and results go: by the copy engine, which a tensor map tells where
 * columns lie (columns_tma.cuh).
 */
#ifndef KERNELS_CUDA_EXCHANGE_TMA_CUH
#define KERNELS_CUDA_EXCHANGE_TMA_CUH

#include <cuda.h>

#include "kernels/cuda/exchange/tile_state.cuh"

#define BOXES_LANE    2                   /* columns of a lane */
#define BOXES_COLUMNS (BOXES_LANE * WARP) /* of a strip */

/* A leaf of all columns of a strip: what a box holds. */
typedef float boxes_leaf[ORDER_LEAF][BOXES_COLUMNS];

/* A tile of a strip. */
struct boxes_item {
    unsigned strip, tile;
    int column, plane, outer; /* where the strip begins in the tensor */
    int samples, leaves;      /* of a column in this tile */
};

/* A gate that opens when the copy engine has brought what one thread announces. By one lane. */
DEVICE void boxes_gate_init(gate *gate)
{
    mbarrier_init(smem_address(gate), 1);
    fence_mbarrier_init();
    fence_proxy_async();
}

DEVICE void boxes_announce(gate *gate, int bytes)
{
    mbarrier_arrive_expect(smem_address(gate), bytes);
}

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. `Once`: the L2 cache need not
 * keep it. */
template <bool Once>
DEVICE void boxes_load(const CUtensorMap &map, const struct boxes_item &item, int leaf, boxes_leaf *box, gate *gate)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_load_4d(smem_address(box), &map, item.column, sample, item.plane, item.outer, smem_address(gate),
                    policy_evict_first());
    else
        tma_load_4d(smem_address(box), &map, item.column, sample, item.plane, item.outer, smem_address(gate));
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
template <bool Once>
DEVICE void boxes_store(const CUtensorMap &map, const struct boxes_item &item, int leaf, const boxes_leaf *stage)
{
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage), policy_evict_first());
    else
        tma_store_4d(&map, item.column, sample, item.plane, item.outer, smem_address(stage));
    bulk_commit();
}

#endif

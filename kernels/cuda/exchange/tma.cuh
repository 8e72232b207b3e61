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
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(gate_address(gate)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    asm volatile("fence.proxy.async;" : : : "memory");
#endif
}

DEVICE void boxes_announce(gate *gate, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :
                 : "r"(gate_address(gate)), "r"(bytes)
                 : "memory");
#endif
}

/* Has the L2 cache give up first what it holds of samples and results, which are met but once. */
DEVICE uint64_t boxes_policy()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 900
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

/* Starts the copy of a leaf of an item; zeros stand for what is not there. By one lane. `Once`: the L2 cache need not
 * keep it. */
template <bool Once>
DEVICE void boxes_load(const CUtensorMap &map, const struct boxes_item &item, int leaf, boxes_leaf *box, gate *gate)
{
#if __CUDA_ARCH__ >= 900
    const unsigned target = (unsigned)__cvta_generic_to_shared(box);
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                     "[%1, {%2, %3, %4, %5}], [%6], %7;"
                     :
                     : "r"(target), "l"(&map), "r"(item.column), "r"(sample), "r"(item.plane), "r"(item.outer),
                       "r"(gate_address(gate)), "l"(boxes_policy())
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                     "%4, %5}], [%6];"
                     :
                     : "r"(target), "l"(&map), "r"(item.column), "r"(sample), "r"(item.plane), "r"(item.outer),
                       "r"(gate_address(gate))
                     : "memory");
#endif
}

/* Starts the copy of the results of a leaf, without what is not there. By one lane, once all lanes have written. */
template <bool Once>
DEVICE void boxes_store(const CUtensorMap &map, const struct boxes_item &item, int leaf, const boxes_leaf *stage)
{
#if __CUDA_ARCH__ >= 900
    const unsigned source = (unsigned)__cvta_generic_to_shared(stage);
    const int sample = (int)item.tile * ORDER_TILE + leaf * ORDER_LEAF;
    if (Once)
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2, %3, %4}], "
                     "[%5], %6;"
                     :
                     : "l"(&map), "r"(item.column), "r"(sample), "r"(item.plane), "r"(item.outer), "r"(source),
                       "l"(boxes_policy())
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                     :
                     : "l"(&map), "r"(item.column), "r"(sample), "r"(item.plane), "r"(item.outer), "r"(source)
                     : "memory");
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
#endif
}

/* Until the copy engine has read what this lane gave it to store. */
DEVICE void boxes_await_store()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
#endif
}

/* Lets the copy engine see what this thread has written to shared memory. */
DEVICE void boxes_written()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

#endif

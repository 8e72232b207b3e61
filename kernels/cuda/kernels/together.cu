#include "kernels/cuda/kernels/together.h"

#include "kernels/cuda/kernels/together.cuh"
#include "kernels/cuda/select/plan.h"

static_assert(TILE_ROOM * SLOT_BYTES == SELECT_TOGETHER_BYTES, "what select_together_of counts with");

cudaError_t scan_together_load(const struct scan_device *device)
{
    size_t shared_most;
    return scan_kernel_load_most((const void *)together_kernel, device->shared_max, &shared_most);
}

cudaError_t scan_together(const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    struct together_plan plan;
    uint32_t rows = 0;
    int warps = 1;
    for (unsigned i = 0; i < count; i++) {
        const struct scan_rows *scan = parts[i].rows;
        struct together_part *part = &plan.parts[i];
        part->plan = scan_plan_of(scan, parts[i].first, parts[i].count);
        part->accumulator = scan->rule.accumulator;
        part->kind = scan->rule.kind;
        plan.ends[i] = rows += (uint32_t)parts[i].count;
        if (scan_warps(scan->length) > warps)
            warps = scan_warps(scan->length);
    }
    void *arguments[] = {&plan};
    return scan_kernel_launch((const void *)together_kernel, rows, warps * WARP, arguments,
                              (size_t)warps * SELECT_TOGETHER_BYTES, stream);
}

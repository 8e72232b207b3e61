/* How chunks are launched: in order 1, or by what "algorithm" names. */
#include "cuda_device.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "range.h"

static cudaError_t run_order1(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              cudaStream_t stream)
{
    cudaError_t e = cuda_grow_workspace(self, scan_cuda_workspace_bytes(rows, count));
    return e == cudaSuccess ? (cudaError_t)scan_cuda(rows, first, count, self->workspace, stream) : e;
}

static cudaError_t run_variant(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum variant_id id = (enum variant_id)(rows->rule.algorithm - 1);
    struct variant_scan scan = variant_scan_from(rows, first, count);
    if (variant_list[id].on_cpu)
        return cudaErrorNotSupported;
    cudaError_t e = cuda_grow_workspace(self, variant_workspace_bytes(id, &scan));
    return e == cudaSuccess ? (cudaError_t)variant_run(id, &scan, self->workspace, self->streams[STAGE_KERNEL]) : e;
}

static cudaError_t run_reduction(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum reduction_id id = (enum reduction_id)(rows->rule.algorithm - 1);
    struct reduce_rows reduce = reduce_rows_from(rows, first, count);
    cudaError_t e = cuda_grow_workspace(self, reduction_workspace_bytes(id, &reduce));
    return e == cudaSuccess ? (cudaError_t)reduction_run(id, &reduce, self->workspace, self->streams[STAGE_KERNEL]) : e;
}

static cudaError_t run_rows(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count,
                            cudaStream_t stream)
{
    if (!rows->rule.algorithm)
        return run_order1(self, rows, first, count, stream);
    return (is_reduction(rows) ? run_reduction : run_variant)(self, rows, first, count);
}

cudaError_t cuda_run_steps(struct cuda_device *self, const struct chunk *chunk, const struct scan_rows *rows,
                           const struct scan_rows *between, cudaStream_t stream)
{
    uint64_t first = rows->offsets ? 0 : chunk->first;
    cudaError_t e = cudaSuccess;
    for (uint32_t i = 0; i < chunk->step_count && e == cudaSuccess; i++) {
        struct scan_rows step = chain_step(chunk, rows, between, i);
        e = run_rows(self, &step, first, chunk->count, stream);
    }
    return e;
}

/* Where a small chunk's values are between its steps. Kernels of a stream follow each other, so it has one place. */
static const struct scan_rows *small_between(struct cuda_device *self, const struct chunk *chunk, cudaStream_t stream,
                                             struct scan_rows *out)
{
    int i = 0;
    if (chunk->step_count == 1)
        return chunk->rows;
    struct side output = side_output(chunk);
    output.transport = TRANSPORT_NONE;
    struct side between = side_between(chunk, &output);
    if (between.transport == TRANSPORT_NONE)
        return chunk->rows;
    while (i < SMALL_BATCHES && self->small.batches[i].stream != stream)
        i++;
    *out = chain_between(chunk->rows, &between, self->between + i * SMALL_BYTES);
    return out;
}

static bool needs_workspace(const struct chunk *chunk, const struct scan_rows *between)
{
    bool needs = false;
    for (uint32_t i = 0; i < chunk->step_count && !needs; i++) {
        struct scan_rows step = chain_step(chunk, chunk->rows, between, i);
        needs = scan_cuda_workspace_bytes(&step, chunk->count) > 0;
    }
    return needs;
}

/* On mapped memory. A chunk whose kernels need the workspace goes where the others do that use it. */
static int run_small(void *context, const struct chunk *chunk, cudaStream_t *stream)
{
    struct cuda_device *self = context;
    struct scan_rows room;
    const struct scan_rows *between = small_between(self, chunk, *stream, &room);
    if (needs_workspace(chunk, between)) {
        *stream = self->streams[STAGE_KERNEL];
        between = small_between(self, chunk, *stream, &room);
    }
    cuda_range_begin(chunk);
    cudaError_t e = cuda_run_steps(self, chunk, chunk->rows, between, *stream);
    cuda_range_end();
    return cuda_errno(self, e);
}

static int run_small_together(void *context, const struct scan_part *parts, unsigned count, cudaStream_t stream)
{
    return cuda_errno(context, (cudaError_t)scan_cuda_together(parts, count, stream));
}

const struct small_ops cuda_small_ops = {run_small, run_small_together};

/* Launches of chunks: in order 1, or by the variant that "algorithm" names. */
#include "cuda_device.h"
#include "daemon/device/between.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "kernels/tutorial/steps/steps.h"
#include "range.h"

static cudaError_t run_order1(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count,
                              cudaStream_t stream)
{
    cudaError_t e = cuda_grow(self, &self->workspace, scan_cuda_workspace_bytes(rows, count));
    return e == cudaSuccess ? (cudaError_t)scan_cuda(rows, first, count, self->workspace.memory, stream) : e;
}

static cudaError_t run_variant(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum variant_id id = (enum variant_id)(rows->rule.algorithm - 1);
    struct variant_scan scan = variant_scan_from(rows, first, count);
    if (variant_list[id].on_cpu)
        return cudaErrorNotSupported;
    cudaError_t e = cuda_grow(self, &self->workspace, variant_workspace_bytes(id, &scan));
    return e == cudaSuccess ? (cudaError_t)variant_run(id, &scan, self->workspace.memory, self->streams[STAGE_KERNEL])
                            : e;
}

static cudaError_t run_reduction(struct cuda_device *self, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    enum reduction_id id = (enum reduction_id)(rows->rule.algorithm - 1);
    struct reduce_rows reduce = reduce_rows_from(rows, first, count);
    cudaError_t e = cuda_grow(self, &self->workspace, reduction_workspace_bytes(id, &reduce));
    return e == cudaSuccess
               ? (cudaError_t)reduction_run(id, &reduce, self->workspace.memory, self->streams[STAGE_KERNEL])
               : e;
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

/*
 * Chunks that are not plain.
 */

#define MEMORY_ALIGNMENT 256
/* The work of one launch, in elements times the passes over each: LIMIT_LAUNCH_MS at 10^10 elements a second, which any
 * GPU does. */
#define LAUNCH_WORK (LIMIT_LAUNCH_MS * UINT64_C(10000000))

#define TILES_LEAST 1024 /* some for each multiprocessor of the largest GPUs, which few rows have not */

static step_launch *launch_of(const struct step_kernel *kernel)
{
    int i = 0;
    while (step_kernels[i] != kernel)
        i++;
    return step_launches[i];
}

static cudaError_t launch_tiles(const struct step *step, const struct step_kernel *kernel, const struct step_rows *rows,
                                const struct step_tiles *tiles, uint64_t begin, uint64_t end, cudaStream_t stream)
{
    const int e = step->algorithm ? step_variant_launch((enum step_variant_id)(step->algorithm - 1), rows,
                                                        step->parameters, tiles, begin, end, stream)
                                  : launch_of(kernel)(rows, step->parameters, tiles, begin, end, stream);
    return (cudaError_t)e;
}

/* Returns the tile behind the last one of a launch that begins with tile `begin`. Dense rows are shared out evenly. */
static uint64_t end_of_launch(const struct step *step, const struct step_rows *rows, const struct step_tiles *tiles,
                              uint64_t begin)
{
    const uint64_t longer = rows->input.length > rows->output.length ? rows->input.length : rows->output.length;
    const double work = (double)tiles->count * (double)longer * (double)step->work;
    const uint64_t launches = 1 + (uint64_t)(work / LAUNCH_WORK);
    const uint64_t at_once = (tiles->tile_count + launches - 1) / launches;
    return tiles->tile_count - begin < at_once ? tiles->tile_count : begin + at_once;
}

/* Ragged rows are counted by their offsets, since the lengths of their operands are those of the line on which all of
 * them lie, and since long rows may lie side by side. Each launch has a tile at least, however long. */
static uint64_t end_of_ragged_launch(const struct step *step, const struct step_rows *rows,
                                     const struct step_tiles *tiles, uint64_t begin)
{
    uint64_t end = begin + 1, beyond = tiles->tile_count + 1; /* of tiles that fit, of those that do not */
    const uint64_t from = rows->offsets[step_tile_at(tiles, begin).first_row];
    while (beyond - end > 1) {
        const uint64_t middle = end + (beyond - end) / 2;
        const struct step_tile last = step_tile_at(tiles, middle - 1);
        const uint64_t samples = rows->offsets[last.first_row + last.row_count] - from;
        if ((double)samples * (double)step->work <= LAUNCH_WORK)
            end = middle;
        else
            beyond = middle;
    }
    return end;
}

static cudaError_t run_tiles(const struct step *step, const struct step_kernel *kernel, const struct step_rows *rows,
                             uint64_t first, uint64_t count, cudaStream_t stream)
{
    const struct step_tiles tiles =
        step_tiles_halved(kernel, step_tiles_of(kernel, rows, step->parameters, first, count), TILES_LEAST);
    cudaError_t e = cudaSuccess;
    for (uint64_t begin = 0, end; begin < tiles.tile_count && e == cudaSuccess; begin = end) {
        end = (rows->offsets ? end_of_ragged_launch : end_of_launch)(step, rows, &tiles, begin);
        e = launch_tiles(step, kernel, rows, &tiles, begin, end, stream);
    }
    return e;
}

/* Long rows by parts, whose numbers lie in the workspace. */
static cudaError_t run_parts(struct cuda_device *self, const struct step *step, const struct step_parts *parts,
                             const struct step_rows *rows, uint64_t first, uint64_t count, cudaStream_t stream)
{
    cudaError_t e = cuda_grow(self, &self->workspace, step_parts_bytes(parts, rows, count));
    if (e != cudaSuccess)
        return e;
    const struct step_rows each = step_each_rows(parts, rows, first, self->workspace.memory);
    const struct step_rows joined = step_joined_rows(parts, rows, first, self->workspace.memory);
    e = run_tiles(step, parts->each, &each, first, count, stream);
    return e == cudaSuccess ? run_tiles(step, parts->joined, &joined, first, count, stream) : e;
}

/* Rows as they are, by launches that have the workspace. */
static cudaError_t run_whole(struct cuda_device *self, const struct step *step, struct step_rows *rows, uint64_t first,
                             uint64_t count, cudaStream_t stream)
{
    const uint64_t bytes = step->algorithm ? 0 : step_workspace_bytes(step->kernel, rows, step->parameters, count);
    const cudaError_t e = cuda_grow(self, &self->workspace, bytes);
    if (e != cudaSuccess)
        return e;
    rows->workspace = self->workspace.memory;
    return run_tiles(step, step->kernel, rows, first, count, stream);
}

static cudaError_t run_step(struct cuda_device *self, const struct chunk_rows *steps, uint32_t i)
{
    const struct step *step = &steps->chunk->steps[i];
    const uint64_t first = steps->first, count = steps->chunk->count;
    cudaStream_t stream = self->streams[STAGE_KERNEL];
    if (step->kernel) {
        struct step_rows rows = chunk_step_rows(steps, i);
        const struct step_parts *parts = step->algorithm ? NULL : step_parts_of(step->kernel, &rows);
        return parts ? run_parts(self, step, parts, &rows, first, count, stream)
                     : run_whole(self, step, &rows, first, count, stream);
    }
    const struct scan_rows rows = chunk_scan_rows(steps, i);
    return run_order1(self, &rows, first, count, stream);
}

cudaError_t cuda_run_operands(struct cuda_device *self, const struct slot *slot)
{
    const struct chunk *chunk = slot->chunk;
    const uint64_t memory_bytes = (chunk->between_bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
    cudaError_t e = cuda_grow(self, &self->memories, between_memories(chunk) * memory_bytes);
    unsigned char *memory = self->memories.memory;
    const struct chunk_rows steps = {.chunk = chunk,
                                     .rows = &slot->rows,
                                     .operands = slot->operands,
                                     .first = slot->rows.offsets ? 0 : chunk->first,
                                     .memories = {memory, memory + memory_bytes}};
    for (uint32_t i = 0; i < chunk->step_count && e == cudaSuccess; i++)
        e = run_step(self, &steps, i);
    return e;
}

/* A word of the device's and one from which the host reads it lie behind the offsets of the slot. */
cudaError_t cuda_run_check(struct cuda_device *self, const struct slot *slot)
{
    const struct chunk_rows rows = {.chunk = slot->chunk, .rows = &slot->rows, .operands = slot->operands};
    const struct step_rows index = chunk_index_rows(&rows);
    uint64_t *verdict = slot->device_offsets + OFFSETS_MOST;
    cudaStream_t stream = self->streams[STAGE_KERNEL];
    const struct index_range range = {slot->chunk->from, slot->chunk->below};
    cudaError_t e = (cudaError_t)index_launch(&index, slot->rows.offsets ? 0 : slot->chunk->first, slot->chunk->count,
                                              range, verdict, stream);
    return e == cudaSuccess
               ? cudaMemcpyAsync(slot->offsets + OFFSETS_MOST, verdict, VERDICT_BYTES, cudaMemcpyDeviceToHost, stream)
               : e;
}

/*
 * Small chunks.
 */

/* Places a small chunk's values between steps. One place serves all small chunks, since kernels of a stream follow each
 * other. */
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

/* Queues a small chunk on mapped memory. A chunk whose kernels need the workspace goes to the stream of the others that
 * use it. */
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

/* A long row that is computed by ranges, between which it can be left off: what it keeps meanwhile, and its next range.
 * */
#include <errno.h>
#include <stdlib.h>

#include "cuda_device.h"
#include "kernels/cuda/scan_cuda.h"
#include "range.h"

#define LAUNCH_US (LIMIT_LAUNCH_MS * UINT64_C(1000))

static bool is_host(const struct span *span)
{
    return span->place == SCAND_PLACE_HOST;
}

/* True when a step's samples cross PCIe; values between steps do not, where they have device memory of their own. */
static bool step_is_mapped(const struct slot *slot, uint32_t step)
{
    const struct chunk *chunk = slot->chunk;
    const bool apart = slot->sides.between.transport != TRANSPORT_NONE, last = step + 1 == chunk->step_count;
    const bool reads = step == 0 ? is_host(&chunk->spans[OPERAND_INPUT]) ||
                                       (chunk->rows->coefficients && is_host(&chunk->spans[OPERAND_FURTHER]))
                                 : !apart && is_host(&chunk->spans[OPERAND_OUTPUT]);
    return reads || (is_host(&chunk->spans[OPERAND_OUTPUT]) && !is_reduction(chunk->rows) && (last || !apart));
}

static struct scan_rows row_step(const struct slot *slot, const struct scan_rows *rows, uint32_t step)
{
    return chain_step(slot->chunk, rows, &slot->between, step);
}

/* Returns the number of the long row in the slot's rows: ragged ones begin with the chunk's first row. */
static uint64_t row_of(const struct slot *slot)
{
    return slot->rows.offsets ? 0 : slot->chunk->first;
}

/* A row of which samples are copied is short. */
static bool is_copied(const struct slot *slot)
{
    const struct sides *sides = &slot->sides;
    return sides->side[OPERAND_INPUT].transport != TRANSPORT_NONE ||
           sides->side[OPERAND_FURTHER].transport != TRANSPORT_NONE ||
           (sides->side[OPERAND_OUTPUT].transport != TRANSPORT_NONE && !is_reduction(slot->chunk->rows));
}

static bool is_long(const struct slot *slot)
{
    const struct chunk *chunk = slot->chunk;
    uint64_t us = 0;
    if (chunk->operands || chunk->count > 1 || chunk->rows->rule.algorithm || is_copied(slot))
        return false;
    for (uint32_t i = 0; i < chunk->step_count; i++) {
        const struct scan_rows step = row_step(slot, &slot->rows, i);
        us += scan_cuda_row_us(&step, row_of(slot), step_is_mapped(slot, i));
    }
    return us > LAUNCH_US;
}

static uint64_t workspace_bytes(const struct slot *slot)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < slot->chunk->step_count; i++) {
        const struct scan_rows step = row_step(slot, &slot->rows, i);
        const uint64_t bytes = scan_cuda_workspace_bytes(&step, 1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Places the values between steps outside the slot, which other chunks use while the row is left off. The row frees
 * them. */
static int row_place_between(struct cuda_device *self, struct slot *slot)
{
    struct sides *sides = &slot->sides;
    struct long_row *row = slot->row;
    if (sides->between.transport == TRANSPORT_NONE)
        return 0;
    const uint64_t bytes = side_room_bytes(&sides->between);
    int r = slot->beyond ? 0 : cuda_errno(self, cuda_acquire(self, bytes, &slot->beyond));
    if (r)
        return r;
    row->between = sides->between_at = slot->beyond;
    row->between_bytes = bytes;
    slot->beyond = NULL;
    slot->between = chain_between(&slot->rows, &sides->between, sides->between_at);
    return 0;
}

/* The device keeps the largest memory that is given back, since freeing waits for all that runs. */

static cudaError_t workspace_acquire(struct cuda_device *self, struct long_row *row, uint64_t size_bytes)
{
    if (self->spare_bytes < size_bytes) {
        row->workspace_bytes = size_bytes;
        return cuda_acquire(self, size_bytes, &row->workspace);
    }
    row->workspace = self->spare;
    row->workspace_bytes = self->spare_bytes;
    self->spare = NULL;
    self->spare_bytes = 0;
    return cudaSuccess;
}

static void workspace_give_back(struct cuda_device *self, struct long_row *row)
{
    void *const spare = self->spare;
    const uint64_t spare_bytes = self->spare_bytes;
    if (spare_bytes >= row->workspace_bytes) {
        cuda_release(self, row->workspace, row->workspace_bytes);
        return;
    }
    self->spare = row->workspace;
    self->spare_bytes = row->workspace_bytes;
    cuda_release(self, spare, spare_bytes);
}

int long_row_create(struct cuda_device *self, struct slot *slot)
{
    if (!is_long(slot))
        return 0;
    struct long_row *row = calloc(1, sizeof *row);
    if (!row)
        return -ENOMEM;
    int r = cuda_errno(self, workspace_acquire(self, row, workspace_bytes(slot)));
    if (r) {
        free(row);
        return r;
    }
    slot->row = row;
    return row_place_between(self, slot);
}

/* A range of a step, or all of one that takes no longer than a launch may. Never by launches whose thread blocks wait
 * for one another: with others like that, of a stream that goes before this one, none might ever be all there. */
static cudaError_t step_queue(struct cuda_device *self, struct slot *slot, const struct scan_rows *step)
{
    struct long_row *row = slot->row;
    const bool mapped = step_is_mapped(slot, row->step);
    const uint64_t number = row_of(slot), blocks = scan_cuda_range_blocks(step, number, mapped),
                   count = scan_cuda_range_count(step, number, blocks);
    const bool at_once = scan_cuda_row_us(step, number, mapped) <= LAUNCH_US;
    cudaError_t e;
    do
        e = (cudaError_t)scan_cuda_range(step, number, blocks, row->range++, row->workspace, self->long_stream);
    while (at_once && row->range < count && e == cudaSuccess);
    if (row->range == count) {
        row->range = 0;
        row->step++;
    }
    return e;
}

cudaError_t long_row_queue(struct cuda_device *self, struct slot *slot)
{
    const struct scan_rows step = row_step(slot, &slot->rows, slot->row->step);
    cudaError_t e = step_queue(self, slot, &step);
    return e == cudaSuccess ? cudaEventRecord(slot->passed[STAGE_KERNEL], self->long_stream) : e;
}

bool long_row_is_queued(const struct slot *slot)
{
    return slot->row->step >= slot->chunk->step_count;
}

void long_row_destroy(struct cuda_device *self, struct long_row *row)
{
    if (!row)
        return;
    workspace_give_back(self, row);
    cuda_release(self, row->between, row->between_bytes);
    free(row);
}

void long_row_discard(struct cuda_device *self, struct long_row *row)
{
    cuda_unreserve(self, row->workspace_bytes + row->between_bytes);
    row->next = atomic_load(&self->unwanted);
    while (!atomic_compare_exchange_weak(&self->unwanted, &row->next, row))
        ;
}

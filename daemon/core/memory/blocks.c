#include "blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/core/loop.h"
#include "page_budget.h"
#include "protocol/memory.h"

#define ROUND_BYTES KIB(64) /* sizes are multiples of it, so that most blocks fit the next job as well */
#define HUGE_BYTES  MIB(2)

/* True when a kept block suffices, and no more than half of it would be left over. */
static bool fits(const struct block *block, uint64_t size_bytes)
{
    return block->size_bytes >= size_bytes && block->size_bytes / 2 <= size_bytes;
}

struct block *blocks_pop(struct blocks *blocks, uint64_t size_bytes)
{
    size_bytes = (size_bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
    struct block **at = &blocks->kept;
    while (*at && !fits(*at, size_bytes))
        at = &(*at)->next;
    struct block *block = *at;
    if (block) {
        *at = block->next;
        blocks->kept_bytes -= block->size_bytes;
        return block;
    }
    block = calloc(1, sizeof *block);
    if (block)
        block->size_bytes = size_bytes;
    return block;
}

static int block_map(struct block *block, struct page_budget *budget, struct error *error)
{
    int r = page_budget_promise(budget, block->size_bytes, "files", error);
    if (r)
        return r;
    page_budget_settle(budget, block->size_bytes); /* pages follow at once */
    void *base = mmap(NULL, block->size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return error_set(error, -ENOMEM, "no memory to read a file into; try again later");
    if (block->size_bytes >= HUGE_BYTES)
        madvise(base, block->size_bytes, MADV_HUGEPAGE);
    block->base = base;
    return 0;
}

static uint64_t pin_unit_bytes(const struct block *block)
{
    const uint64_t left = block->size_bytes - block->pinned_bytes;
    return left < PIN_UNIT_BYTES ? left : PIN_UNIT_BYTES;
}

int block_make(struct block *block, const struct device_set *devices, struct page_budget *budget, struct error *error)
{
    int r = block->base ? 0 : block_map(block, budget, error);
    if (r)
        return r;
    if (block->staged || block->pinned_bytes == block->size_bytes)
        return 0;
    const uint64_t bytes = pin_unit_bytes(block);
    if (device_set_pin(devices, block->base + block->pinned_bytes, bytes))
        block->staged = true;
    else
        block->pinned_bytes += bytes;
    return !block->staged && block->pinned_bytes < block->size_bytes;
}

/* Frees a unit of it; true while more is left. */
static bool block_unmake(struct block *block)
{
    if (block->pinned_bytes > 0) {
        const uint64_t first = (block->pinned_bytes - 1) / PIN_UNIT_BYTES * PIN_UNIT_BYTES;
        device_set_unpin(block->service->devices, block->base + first, block->pinned_bytes - first);
        block->pinned_bytes = first;
    }
    if (block->pinned_bytes > 0)
        return true;
    memory_unmap(block->base, block->size_bytes);
    block->base = NULL;
    return false;
}

static bool end_run(struct work *work)
{
    return block_unmake((struct block *)work);
}

static void end_done(struct work *work)
{
    struct block *block = (struct block *)work;
    user_unhold(block->user);
    free(block);
}

void blocks_push(struct service *service, struct user *user, struct block *block)
{
    struct blocks *blocks = &service->blocks;
    const bool whole = block->base && (block->staged || block->pinned_bytes == block->size_bytes);
    if (!block->base) {
        free(block);
    } else if (whole && blocks->kept_bytes + block->size_bytes <= LIMIT_KEPT_LOAD_BYTES) {
        block->next = blocks->kept;
        blocks->kept = block;
        blocks->kept_bytes += block->size_bytes;
    } else {
        block->work = (struct work){.run = end_run, .done = end_done};
        block->service = service;
        block->user = user;
        user_hold(user);
        service_defer(service, user, &block->work);
    }
}

void service_trim(struct service *service)
{
    struct blocks *blocks = &service->blocks;
    for (struct block *block = blocks->kept, *next; block; block = next) {
        next = block->next;
        block->service = service;
        while (block_unmake(block))
            ;
        free(block);
    }
    *blocks = (struct blocks){0};
}

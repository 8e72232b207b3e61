#include "tests/unit/device_manual.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "manual device: %s\n", what);
        abort();
    }
}

static struct manual *manual_of(struct device *device)
{
    return (struct manual *)device;
}

void manual_fail(struct manual *manual, enum manual_call call, unsigned n, int code)
{
    manual->fail_in[call] = n;
    manual->fail_code[call] = code;
}

/* Returns the planned result of the call that is being made, before the call does anything. */
static int planned(struct manual *manual, enum manual_call call)
{
    if (manual->fail_in[call] == 0 || --manual->fail_in[call] > 0)
        return 0;
    return manual->fail_code[call];
}

static int manual_start(struct device *device, struct chunk *chunk)
{
    struct manual *self = manual_of(device);
    int r = planned(self, MANUAL_START);
    if (r)
        return r;
    must(self->out_count < device->info.slots + device->info.small_slots, "more chunks than slots");
    must(chunk->count > 0 && chunk->first + chunk->count <= chunk->rows->row_count, "a chunk outside its job");
    must(!chunk->rest || (chunk->rest == self && self->rests > 0), "what was left off is another device's, or gone");
    self->rests -= chunk->rest != NULL;
    chunk->rest = NULL;
    self->out[self->out_count++] = chunk;
    self->started++;
    return 0;
}

static struct chunk *manual_finish(struct device *device, int timeout_ms)
{
    struct manual *self = manual_of(device);
    struct chunk *chunk = self->completed;
    (void)timeout_ms;
    if (chunk)
        self->completed = chunk->next;
    return chunk;
}

/* Crashes on memory that is no longer there. */
static void span_touch(const struct span *span)
{
    const volatile unsigned char *bytes = span->base;
    (void)bytes[0];
    (void)bytes[span->size_bytes - 1];
}

void manual_complete(struct manual *manual, size_t index, int status)
{
    must(index < manual->out_count, "no such chunk is out");
    struct chunk *chunk = manual->out[index], **end = &manual->completed;
    manual->out_count--;
    for (size_t i = index; i < manual->out_count; i++)
        manual->out[i] = manual->out[i + 1];
    for (int i = 0; i < LIMIT_JOB_OPERANDS; i++)
        if (chunk->spans[i].base)
            span_touch(&chunk->spans[i]);
    chunk->status = status;
    chunk->upload_us = 1;
    chunk->kernel_us = manual->kernel_us;
    chunk->download_us = 100;
    chunk->next = NULL;
    while (*end)
        end = &(*end)->next;
    *end = chunk;
}

void manual_leave_off(struct manual *manual, size_t index)
{
    struct chunk *chunk = manual->out[index];
    must(chunk->slice_us > 0, "a chunk without slices is left off");
    manual->rests++;
    manual_complete(manual, index, 0);
    chunk->rest = manual;
}

static void manual_discard(struct device *device, void *rest)
{
    struct manual *self = manual_of(device);
    must(rest == self && self->rests > 0, "discarded what was not left off");
    self->rests--;
}

static int manual_attach(struct device *device, void *base, uint64_t size_bytes)
{
    struct manual *self = manual_of(device);
    int r = planned(self, MANUAL_ATTACH);
    if (r)
        return r;
    must(size_bytes > 0 && size_bytes % 4096 == 0 && (uintptr_t)base % 4096 == 0, "attached memory is not whole pages");
    must(self->attached_count < MANUAL_RANGES, "too many ranges attached");
    self->pinned[self->attached_count++] = (struct manual_range){base, size_bytes};
    self->attached_bytes += size_bytes;
    return 0;
}

static int manual_detach(struct device *device, void *base, uint64_t size_bytes)
{
    struct manual *self = manual_of(device);
    size_t i = 0;
    while (i < self->attached_count && self->pinned[i].base != base)
        i++;
    must(i < self->attached_count && self->pinned[i].size_bytes == size_bytes, "detached what was not attached");
    self->pinned[i] = self->pinned[--self->attached_count];
    self->attached_bytes -= size_bytes;
    return 0;
}

static int manual_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct manual *self = manual_of(device);
    int r = planned(self, MANUAL_ALLOCATE);
    if (!r && size_bytes > device->info.memory_limit_bytes - self->allocated_bytes)
        r = -EDQUOT;
    void *memory = r ? NULL : calloc(1, size_bytes);
    if (!memory)
        return r ? r : -ENOMEM;
    self->allocated_bytes += size_bytes;
    *out = memory;
    return 0;
}

static void manual_free(struct device *device, void *memory, uint64_t size_bytes)
{
    must(memory && size_bytes <= manual_of(device)->allocated_bytes, "freed what was not allocated");
    manual_of(device)->allocated_bytes -= size_bytes;
    free(memory);
}

/* Memory that is shared; opened memory is memory of its own, for want of another process. */
struct manual_share {
    struct exported_memory memory; /* first */
    uint64_t own_bytes;            /* 0: opened */
    enum scand_sharing sharing;
};

static struct manual_share *share_make(uint64_t size_bytes)
{
    struct manual_share *share = calloc(1, sizeof *share);
    must(share, "no memory");
    share->memory.base = calloc(1, size_bytes);
    must(share->memory.base, "no memory");
    return share;
}

static int manual_export_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                                struct exported_memory **out)
{
    struct manual *self = manual_of(device);
    int r = planned(self, MANUAL_SHARE);
    if (!r && size_bytes > device->info.memory_limit_bytes - self->allocated_bytes)
        r = -EDQUOT;
    if (r)
        return r;
    must(size_bytes % LIMIT_SHARED_UNIT_BYTES == 0, "shared memory is not whole units");
    struct manual_share *share = share_make(size_bytes);
    share->own_bytes = size_bytes;
    share->sharing = sharing;
    self->allocated_bytes += size_bytes;
    *out = &share->memory;
    return 0;
}

static int manual_export_open(struct device *device, const struct export_ticket *ticket, uint64_t offset,
                              uint64_t size_bytes, struct exported_memory **out, struct error *error)
{
    struct manual *self = manual_of(device);
    int r = planned(self, MANUAL_SHARE);
    if (r)
        return error_set(error, r, "planned failure");
    self->last_ticket = *ticket;
    self->last_offset = offset;
    self->opened_count++;
    *out = &share_make(size_bytes)->memory;
    return 0;
}

static int manual_export_ticket(struct device *device, const struct exported_memory *memory, struct export_ticket *out)
{
    const struct manual_share *share = (const struct manual_share *)memory;
    int r = planned(manual_of(device), MANUAL_SHARE);
    if (r)
        return r;
    *out = (struct export_ticket){.fd = -1, .allocation_bytes = share->own_bytes};
    memset(out->handle, 'h', sizeof out->handle);
    if (share->sharing == SCAND_SHARING_DESCRIPTOR)
        out->fd = memfd_create("manual", MFD_CLOEXEC);
    return 0;
}

static void manual_export_close(struct device *device, struct exported_memory *memory)
{
    struct manual_share *share = (struct manual_share *)memory;
    struct manual *self = manual_of(device);
    must(share->own_bytes || self->opened_count > 0, "closed what was not opened");
    self->opened_count -= share->own_bytes == 0;
    self->allocated_bytes -= share->own_bytes;
    free(share->memory.base);
    free(share);
}

static uint64_t manual_used_bytes(struct device *device)
{
    return manual_of(device)->allocated_bytes;
}

static void manual_close(struct device *device)
{
    (void)device;
}

static const struct device_ops manual_ops = {
    .start = manual_start,
    .finish = manual_finish,
    .discard = manual_discard,
    .memory_pin = manual_attach,
    .memory_unpin = manual_detach,
    .allocate = manual_allocate,
    .free = manual_free,
    .export_create = manual_export_create,
    .export_open = manual_export_open,
    .export_ticket = manual_export_ticket,
    .export_close = manual_export_close,
    .memory_used_bytes = manual_used_bytes,
    .close = manual_close,
};

void manual_init(struct manual *manual, unsigned slots, uint64_t chunk_bytes)
{
    *manual = (struct manual){.device = {.ops = &manual_ops}, .kernel_us = 10};
    manual->device.info = (struct device_info){.name = "manual device",
                                               .backend = "manual",
                                               .memory_bytes = MIB(64),
                                               .memory_limit_bytes = MIB(1),
                                               .chunk_bytes = chunk_bytes,
                                               .resident_chunk_bytes = chunk_bytes,
                                               .slots = slots};
}

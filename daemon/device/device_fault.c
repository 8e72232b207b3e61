/* A device around another one, of which a call fails or never ends: --fail-chunk, --hang-chunk and --fail-memory. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "devices.h"

struct fault_device {
    struct device device; /* must be the first member */
    struct device *inner;
    struct device_faults left; /* calls up to and including the one that fails; 0: no call does */
    struct chunk *failed;
    bool hangs;
};

static struct fault_device *fault_of(struct device *device)
{
    return (struct fault_device *)device;
}

/* Counts a call, of any thread; true for the call that is to fail. */
static bool is_the_one(uint64_t *left)
{
    return __atomic_load_n(left, __ATOMIC_RELAXED) > 0 && __atomic_sub_fetch(left, 1, __ATOMIC_RELAXED) == 0;
}

/* Loses the wrapping device when the inner device is lost, since nobody else looks at the inner one. */
static int noted(struct device *device, int r)
{
    if (r == -EOWNERDEAD)
        device_lose(device);
    return r;
}

static int fault_start(struct device *device, struct chunk *chunk)
{
    struct fault_device *self = fault_of(device);
    if (is_the_one(&self->left.hang_chunk)) {
        self->hangs = true;
        return 0;
    }
    if (is_the_one(&self->left.fail_chunk)) {
        self->failed = chunk;
        return 0;
    }
    return self->inner->ops->start(self->inner, chunk);
}

static struct chunk *fault_finish(struct device *device, int timeout_ms)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct fault_device *self = fault_of(device);
    struct chunk *chunk = self->failed;
    if (!chunk) {
        chunk = self->inner->ops->finish(self->inner, timeout_ms);
        if (!chunk && timeout_ms > 0 && self->hangs) /* a hanging chunk: waits without using a processor */
            nanosleep(&pause, NULL);
        return chunk;
    }
    self->failed = NULL;
    chunk->status = -EOWNERDEAD;
    return chunk;
}

/* True when this call for memory is to fail without reaching the device. */
static bool memory_fails(struct device *device)
{
    return is_the_one(&fault_of(device)->left.fail_memory);
}

static void fault_discard(struct device *device, void *rest)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->discard(inner, rest);
}

static int fault_memory_pin(struct device *device, void *base, uint64_t size_bytes)
{
    struct device *inner = fault_of(device)->inner;
    return noted(device, inner->ops->memory_pin(inner, base, size_bytes));
}

static int fault_memory_unpin(struct device *device, void *base, uint64_t size_bytes)
{
    struct device *inner = fault_of(device)->inner;
    return noted(device, inner->ops->memory_unpin(inner, base, size_bytes));
}

static int fault_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct device *inner = fault_of(device)->inner;
    return noted(device, memory_fails(device) ? -EOWNERDEAD : inner->ops->allocate(inner, size_bytes, out));
}

static void fault_free(struct device *device, void *memory, uint64_t size_bytes)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->free(inner, memory, size_bytes);
}

static int fault_export_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                               struct exported_memory **out)
{
    struct device *inner = fault_of(device)->inner;
    return noted(device,
                 memory_fails(device) ? -EOWNERDEAD : inner->ops->export_create(inner, size_bytes, sharing, out));
}

static int fault_export_open(struct device *device, const struct export_ticket *ticket, uint64_t offset,
                             uint64_t size_bytes, struct exported_memory **out, struct error *error)
{
    struct device *inner = fault_of(device)->inner;
    return noted(device, inner->ops->export_open(inner, ticket, offset, size_bytes, out, error));
}

static int fault_export_ticket(struct device *device, const struct exported_memory *memory, struct export_ticket *out)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->export_ticket(inner, memory, out);
}

static void fault_export_close(struct device *device, struct exported_memory *memory)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->export_close(inner, memory);
}

static uint64_t fault_memory_used_bytes(struct device *device)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->memory_used_bytes(inner);
}

static void fault_close(struct device *device)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->close(inner);
    free(device);
}

static const struct device_ops fault_ops = {
    .start = fault_start,
    .finish = fault_finish,
    .discard = fault_discard,
    .memory_pin = fault_memory_pin,
    .memory_unpin = fault_memory_unpin,
    .allocate = fault_allocate,
    .free = fault_free,
    .export_create = fault_export_create,
    .export_open = fault_export_open,
    .export_ticket = fault_export_ticket,
    .export_close = fault_export_close,
    .memory_used_bytes = fault_memory_used_bytes,
    .close = fault_close,
};

int device_fault_open(struct device *inner, const struct device_faults *faults, struct device **out,
                      struct error *error)
{
    struct fault_device *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "out of memory for the fault device");
    *self = (struct fault_device){.device = {&fault_ops, inner->info}, .inner = inner, .left = *faults};
    self->device.info.now_bytes = 0; /* so that all chunks go through fault_start, which counts them */
    *out = &self->device;
    return 0;
}

/* The table of functions of a CUDA device: how it is opened, chunks are started and looked at, and it is closed. */
#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_device.h"
#include "daemon/device/devices.h"
#include "export.h"
#include "identity.h"
#include "kernels/cuda/scan_cuda.h"
#include "range.h"

/*
 * Uploads, kernels and downloads of chunks have a stream each, so that those of consecutive chunks overlap. Kernels
 * follow each other on one stream, so they share one workspace. Small chunks' streams go before that one, and long
 * rows' last: a device that is busy with those starts thread blocks of others as soon as some of its own have ended.
 *
 * Events neither take the time nor wake a thread: either keeps the copy engines waiting between chunks (8.7 ms instead
 * of 8.2 for 400 MB each way on an H200). The device's thread looks at them, and at the clock when one has passed.
 * Chunks of 8 MiB: there 16 took 1 % longer, 4 as well. Of device memory alone larger ones: 512 MiB take as long as two
 * chunks that are copied.
 */
#define CHUNK_BYTES          MIB(8)
#define RESIDENT_CHUNK_BYTES MIB(512)
#define CHUNK_ROW_WORK       (UINT64_C(1) << 25) /* 2,675 short rows of the widest triangle, each 30 ns on an H200 */
#define SPIN_CHECKS          4                   /* of the events before looking for new chunks: some 10 us */
#define SPIN_US              2000 /* without a chunk that finishes, before pausing after each such look */
#define PAUSE_NS             50000
#define NEXT_US              100 /* after a small job, for which its client's next one is awaited without blocking */
#define LEAST_BYTES          (SLOTS * (SLOT_BYTES + OFFSETS_BYTES) + BETWEEN_BYTES)

static bool is_idle(const struct cuda_device *self)
{
    return self->out_count == 0 && self->small.out == 0;
}

static struct slot *slot_free(struct cuda_device *self)
{
    struct slot *slot = self->slots;
    while (slot->chunk)
        slot++;
    return slot;
}

static int cuda_start(struct device *device, struct chunk *chunk)
{
    struct cuda_device *self = cuda_of(device);
    if (device_is_lost(&self->device))
        return -EOWNERDEAD;
    cudaError_t e = cudaSetDevice(self->index); /* of this thread: small chunks are launched when it looks for others */
    if (e != cudaSuccess)
        return cuda_errno(self, e);
    if (is_idle(self))
        self->waited_us = clock_us();
    if (chunk->small) {
        cuda_small_add(&self->small, chunk);
        return 0;
    }
    struct slot *slot = slot_free(self);
    int r = slot_start(self, slot, chunk);
    if (!r)
        self->out[self->out_count++] = slot;
    return r;
}

/* 0 when a chunk is done, -EAGAIN when none is, or why nothing works any more. */
static int slots_look(struct cuda_device *self)
{
    int r = -EAGAIN;
    for (unsigned i = 0; i < self->out_count; i++) {
        cudaError_t e = slot_look(self, self->out[i]);
        if (e == cudaSuccess)
            r = 0;
        else if (e != cudaErrorNotReady) {
            cuda_errno(self, e);
            device_lose(&self->device); /* what a stream reports later is beyond one chunk */
            return -EOWNERDEAD;
        }
    }
    return r;
}

/* The oldest chunk that is done, or, where the device is lost, just the oldest; NULL: there is none. */
static struct chunk *slots_pop(struct cuda_device *self, int status)
{
    unsigned i = 0;
    while (i < self->out_count && !status && self->out[i]->stage < STAGES)
        i++;
    if (i == self->out_count)
        return NULL;
    struct slot *slot = self->out[i];
    self->out_count--;
    memmove(&self->out[i], &self->out[i + 1], (self->out_count - i) * sizeof *self->out);
    return slot_finish(self, slot, status);
}

static int small_look(struct cuda_device *self)
{
    cudaError_t e = self->small.out > 0 ? cuda_small_look(&self->small, clock_us()) : cudaErrorNotReady;
    if (e == cudaSuccess)
        return 0;
    if (e == cudaErrorNotReady)
        return -EAGAIN;
    cuda_errno(self, e);
    device_lose(&self->device);
    return -EOWNERDEAD;
}

/* Looks for a moment only, so that a new chunk is started while others run: the copy engines must not run dry. */
static int cuda_await(struct cuda_device *self, int timeout_ms)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int r = -EAGAIN;
    for (int i = 0; i < (timeout_ms ? SPIN_CHECKS : 1) && r == -EAGAIN; i++) {
        int small = small_look(self);
        r = slots_look(self);
        if (r == -EAGAIN || small == -EOWNERDEAD)
            r = small;
    }
    if (r == -EAGAIN && timeout_ms && clock_us() - self->waited_us >= SPIN_US)
        nanosleep(&pause, NULL);
    return r;
}

/* Waits for a moment only, whatever it may: chunks are short, and the driver ends kernels that hang. */
static struct chunk *cuda_finish(struct device *device, int timeout_ms)
{
    struct cuda_device *self = cuda_of(device);
    if (is_idle(self))
        return NULL;
    if (!device_is_lost(&self->device))
        cuda_small_launch(&self->small, &cuda_small_ops, self, clock_us());
    int r = device_is_lost(&self->device) ? -EOWNERDEAD : cuda_await(self, timeout_ms);
    if (r == -EAGAIN)
        return NULL;
    if (r)
        cuda_small_fail(&self->small, r);
    self->waited_us = clock_us();
    struct chunk *chunk = cuda_small_pop(&self->small);
    return chunk ? chunk : slots_pop(self, r);
}

static void cuda_discard(struct device *device, void *rest)
{
    long_row_discard(cuda_of(device), rest);
}

static void cuda_close(struct device *device)
{
    /* The context goes with the process; tearing it down piece by piece only takes time. */
    cuda_stage_destroy(cuda_of(device)->stage);
    free(device);
}

static const struct device_ops cuda_ops = {
    .start = cuda_start,
    .finish = cuda_finish,
    .discard = cuda_discard,
    .memory_pin = cuda_memory_pin,
    .memory_unpin = cuda_memory_unpin,
    .allocate = cuda_allocate,
    .free = cuda_free,
    .export_create = cuda_device_export_create,
    .export_open = cuda_device_export_open,
    .export_ticket = cuda_device_export_ticket,
    .export_close = cuda_device_export_close,
    .memory_used_bytes = cuda_memory_used_bytes,
    .close = cuda_close,
};

static cudaError_t cuda_init(struct cuda_device *self)
{
    int last = 0, first = 0; /* priorities, of which lower numbers go first */
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = cudaDeviceGetStreamPriorityRange(&last, &first);
    for (int i = STAGE_UPLOAD; i <= STAGE_DOWNLOAD && e == cudaSuccess; i++)
        e = cudaStreamCreateWithPriority(&self->streams[i], cudaStreamNonBlocking, (first + last) / 2);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithPriority(&self->long_stream, cudaStreamNonBlocking, last);
    for (int i = 0; i < SLOTS && e == cudaSuccess; i++)
        e = slot_init(self, &self->slots[i]);
    if (e == cudaSuccess)
        e = cuda_small_init(&self->small, first);
    if (e == cudaSuccess)
        e = cuda_reserve(self, BETWEEN_BYTES) ? cudaMalloc((void **)&self->between, BETWEEN_BYTES)
                                              : cudaErrorMemoryAllocation;
    return e == cudaSuccess ? (cudaError_t)scan_cuda_init() : e;
}

static cudaError_t cuda_describe(struct cuda_device *self, uint64_t memory_limit_bytes)
{
    struct device_info *info = &self->device.info;
    *info = (struct device_info){.backend = "cuda",
                                 .memory_limit_bytes = memory_limit_bytes,
                                 .chunk_bytes = CHUNK_BYTES,
                                 .resident_chunk_bytes = RESIDENT_CHUNK_BYTES,
                                 .chunk_row_work = CHUNK_ROW_WORK,
                                 .slice_us = LIMIT_SLICE_MS * 1000,
                                 .slots = SLOTS,
                                 .small_slots = LIMIT_SMALL_CHUNKS,
                                 .small_bytes = SMALL_BYTES,
                                 .spin_us = NEXT_US};
    return cuda_identify(self->index, info);
}

int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    if (index >= device_cuda_count())
        return cuda_refuse_index(index, error);
    if (memory_limit_bytes < LEAST_BYTES)
        return error_set(error, -EINVAL,
                         "--device-memory is %llu MiB; a CUDA device needs %llu, and more for device buffers",
                         (unsigned long long)(memory_limit_bytes >> 20), (unsigned long long)(LEAST_BYTES >> 20) + 1);
    struct cuda_device *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "out of memory for CUDA device %d", index);
    self->device.ops = &cuda_ops;
    self->index = index;
    cuda_export_init();
    cuda_range_init();
    cudaError_t e = cuda_describe(self, memory_limit_bytes);
    if (e == cudaSuccess)
        e = cuda_init(self);
    if (e != cudaSuccess) {
        free(self);
        return cuda_refuse_start(index, e, error);
    }
    *out = &self->device;
    return 0;
}

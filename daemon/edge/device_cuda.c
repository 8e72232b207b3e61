#include <cuda_runtime.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_copy.h"
#include "devices.h"
#include "kernels/scan_cuda.h"
#include "log.h"

/*
 * Slots form a ring; uploads, kernels and downloads have a stream each, so that those of consecutive chunks overlap.
 * Kernels follow each other on one stream, so they share one workspace.
 */
#define SLOTS       LIMIT_CHUNKS_IN_FLIGHT
#define SLOT_BYTES  MIB(16)
#define SPIN_CHECKS 100 /* of an event before looking for new chunks: some 50 us */
#define SPIN_TURNS  40  /* such looks in a row, some 2 ms, before blocking on the event */

struct slot {
    unsigned char *memory;
    cudaEvent_t begun, uploaded, started, computed, downloading, done;
    struct chunk *chunk;
};

struct cuda_device {
    struct device device; /* first */
    int index;
    cudaStream_t upload, compute, download;
    struct slot slots[SLOTS];
    unsigned oldest, out; /* the ring: slots in use, in the order started */
    unsigned turns;       /* looks at the oldest chunk that found it still running */
    void *workspace;
    uint64_t workspace_bytes;
    uint64_t taken_bytes; /* of device memory; helpers allocate too */
    bool lost;            /* a sticky error: nothing works in this process any more */
};

static struct cuda_device *cuda_of(struct device *device)
{
    return (struct cuda_device *)device;
}

/* Errors after which only a new process helps. */
static bool is_sticky(cudaError_t e)
{
    switch ((int)e) {
    case 214: /* ECC uncorrectable */
    case 220: /* NVLink uncorrectable */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 710: /* assert */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case 719: /* launch failure */
        return true;
    default:
        return false;
    }
}

/* The one translation of CUDA errors, which also clears the latched one. */
static int cuda_errno(struct cuda_device *self, cudaError_t e)
{
    if (e == cudaSuccess)
        return 0;
    cudaGetLastError();
    log_error("CUDA device %d: %s (%d)", self->index, cudaGetErrorString(e), (int)e);
    if (is_sticky(e)) {
        self->lost = true;
        return -EOWNERDEAD;
    }
    return e == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

static bool reserve(struct cuda_device *self, uint64_t size_bytes)
{
    uint64_t taken = __atomic_add_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    if (taken <= self->device.info.memory_limit_bytes)
        return true;
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    return false;
}

static void unreserve(struct cuda_device *self, uint64_t size_bytes)
{
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
}

static int cuda_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct cuda_device *self = cuda_of(device);
    void *memory = NULL;
    if (!reserve(self, size_bytes))
        return -EDQUOT;
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = cudaMalloc(&memory, size_bytes);
    if (e == cudaSuccess)
        e = cudaMemset(memory, 0, size_bytes);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        cudaFree(memory);
        unreserve(self, size_bytes);
        return cuda_errno(self, e);
    }
    *out = memory;
    return 0;
}

static void cuda_free(struct device *device, void *memory, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    if (cuda_errno(self, cudaFree(memory)) == 0)
        unreserve(self, size_bytes);
}

static uint64_t cuda_memory_used_bytes(struct device *device)
{
    return __atomic_load_n(&cuda_of(device)->taken_bytes, __ATOMIC_RELAXED);
}

static int cuda_memory_attach(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    return cuda_errno(self, cudaHostRegister(base, size_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
}

static int cuda_memory_detach(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    (void)size_bytes;
    cudaSetDevice(self->index);
    return cuda_errno(self, cudaHostUnregister(base));
}

static cudaError_t grow_workspace(struct cuda_device *self, uint64_t size_bytes)
{
    void *memory;
    if (size_bytes <= self->workspace_bytes)
        return cudaSuccess;
    if (!reserve(self, size_bytes))
        return cudaErrorMemoryAllocation;
    cudaError_t e = cudaMalloc(&memory, size_bytes);
    if (e != cudaSuccess) {
        unreserve(self, size_bytes);
        return e;
    }
    cudaFree(self->workspace); /* waits for the kernels that use it */
    unreserve(self, self->workspace_bytes);
    self->workspace = memory;
    self->workspace_bytes = size_bytes;
    return cudaSuccess;
}

/* Where the two sides lie in the slot: in the same place when they have the same form, else one after the other. What
 * is too large for a slot stays where it is: the kernel works on mapped host memory. */
static void place_sides(struct side *input, struct side *output, unsigned char *memory, unsigned char *at[2])
{
    uint64_t input_bytes = (side_bytes(input) + 255) / 256 * 256, output_bytes = side_bytes(output);
    bool together = input->transport == output->transport && input->item_bytes == output->item_bytes;
    at[0] = memory;
    at[1] = together ? memory : memory + input_bytes;
    if ((together ? output_bytes : input_bytes + output_bytes) > SLOT_BYTES)
        input->transport = output->transport = TRANSPORT_NONE;
}

/* Waits in `stream` for `event`, and marks the moment after it. */
static cudaError_t follow(cudaStream_t stream, cudaEvent_t event, cudaEvent_t mark)
{
    cudaError_t e = cudaStreamWaitEvent(stream, event, 0);
    return e == cudaSuccess ? cudaEventRecord(mark, stream) : e;
}

static cudaError_t slot_upload(struct cuda_device *self, struct slot *slot, const struct side *input, unsigned char *at)
{
    cudaError_t e = cudaEventRecord(slot->begun, self->upload);
    if (e == cudaSuccess && input->transport != TRANSPORT_NONE)
        e = side_copy(input, at, cudaMemcpyHostToDevice, self->upload);
    return e == cudaSuccess ? cudaEventRecord(slot->uploaded, self->upload) : e;
}

static cudaError_t slot_compute(struct cuda_device *self, struct slot *slot, const struct side *input,
                                const struct side *output, unsigned char *const at[2])
{
    struct scan_rows rows = *slot->chunk->rows;
    unsigned char *address;
    if (input->transport != TRANSPORT_NONE) {
        side_place(input, at[0], rows.input_outer_strides, &rows.input_stride, &address);
        rows.input = address;
    }
    if (output->transport != TRANSPORT_NONE) {
        side_place(output, at[1], rows.output_outer_strides, &rows.output_stride, &address);
        rows.output = address;
    }
    cudaError_t e = grow_workspace(self, scan_cuda_workspace_bytes(&rows, slot->chunk->count));
    if (e == cudaSuccess)
        e = follow(self->compute, slot->uploaded, slot->started);
    if (e == cudaSuccess)
        e = (cudaError_t)scan_cuda(&rows, slot->chunk->first, slot->chunk->count, self->workspace, self->compute);
    return e == cudaSuccess ? cudaEventRecord(slot->computed, self->compute) : e;
}

static cudaError_t slot_download(struct cuda_device *self, struct slot *slot, const struct side *output,
                                 unsigned char *at)
{
    cudaError_t e = follow(self->download, slot->computed, slot->downloading);
    if (e == cudaSuccess && output->transport != TRANSPORT_NONE)
        e = side_copy(output, at, cudaMemcpyDeviceToHost, self->download);
    return e == cudaSuccess ? cudaEventRecord(slot->done, self->download) : e;
}

static int cuda_start(struct device *device, struct chunk *chunk)
{
    struct cuda_device *self = cuda_of(device);
    if (self->lost)
        return -EOWNERDEAD;
    struct slot *slot = &self->slots[(self->oldest + self->out) % SLOTS];
    struct side input = side_input(chunk), output = side_output(chunk);
    unsigned char *at[2];
    place_sides(&input, &output, slot->memory, at);
    slot->chunk = chunk;
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = slot_upload(self, slot, &input, at[0]);
    if (e == cudaSuccess)
        e = slot_compute(self, slot, &input, &output, at);
    if (e == cudaSuccess)
        e = slot_download(self, slot, &output, at[1]);
    if (e != cudaSuccess) {
        cudaDeviceSynchronize(); /* what was queued of it must be over before its memory is used again */
        return cuda_errno(self, e);
    }
    self->out++;
    return 0;
}

/* Spins for a moment and then says cudaErrorNotReady, so that a new chunk is started while others run: the copy engines
 * must not run dry. Blocks when the event is long in coming. */
static cudaError_t event_wait(struct cuda_device *self, cudaEvent_t event)
{
    cudaError_t e = cudaErrorNotReady;
    for (int i = 0; i < SPIN_CHECKS && e == cudaErrorNotReady; i++)
        e = cudaEventQuery(event);
    if (e != cudaErrorNotReady || ++self->turns < SPIN_TURNS)
        return e;
    return cudaEventSynchronize(event);
}

static uint64_t between_us(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    return cudaEventElapsedTime(&ms, from, to) == cudaSuccess && ms > 0 ? (uint64_t)(ms * 1000) : 0;
}

static struct chunk *cuda_finish(struct device *device, int timeout_ms)
{
    struct cuda_device *self = cuda_of(device);
    struct slot *slot = &self->slots[self->oldest];
    (void)timeout_ms; /* chunks are small, and the driver ends kernels that hang */
    if (self->out == 0)
        return NULL;
    cudaError_t e = self->lost ? cudaSuccess : event_wait(self, slot->done);
    if (e == cudaErrorNotReady)
        return NULL;
    self->turns = 0;
    struct chunk *chunk = slot->chunk;
    chunk->status = self->lost ? -EOWNERDEAD : cuda_errno(self, e);
    if (chunk->status == 0) {
        chunk->upload_us = between_us(slot->begun, slot->uploaded);
        chunk->kernel_us = between_us(slot->started, slot->computed);
        chunk->download_us = between_us(slot->downloading, slot->done);
    }
    self->oldest = (self->oldest + 1) % SLOTS;
    self->out--;
    return chunk;
}

static void cuda_close(struct device *device)
{
    /* The context goes with the process; tearing it down piece by piece only takes time. */
    free(device);
}

static const struct device_ops cuda_ops = {
    .start = cuda_start,
    .finish = cuda_finish,
    .memory_attach = cuda_memory_attach,
    .memory_detach = cuda_memory_detach,
    .allocate = cuda_allocate,
    .free = cuda_free,
    .memory_used_bytes = cuda_memory_used_bytes,
    .close = cuda_close,
};

static cudaError_t slot_init(struct cuda_device *self, struct slot *slot)
{
    cudaEvent_t *events[] = {&slot->begun,    &slot->uploaded,    &slot->started,
                             &slot->computed, &slot->downloading, &slot->done};
    cudaError_t e =
        reserve(self, SLOT_BYTES) ? cudaMalloc((void **)&slot->memory, SLOT_BYTES) : cudaErrorMemoryAllocation;
    for (size_t i = 0; i < sizeof events / sizeof events[0] && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(events[i], cudaEventBlockingSync);
    return e;
}

static cudaError_t cuda_init(struct cuda_device *self)
{
    cudaStream_t *streams[] = {&self->upload, &self->compute, &self->download};
    cudaError_t e = cudaSetDevice(self->index);
    for (size_t i = 0; i < 3 && e == cudaSuccess; i++)
        e = cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking);
    for (size_t i = 0; i < SLOTS && e == cudaSuccess; i++)
        e = slot_init(self, &self->slots[i]);
    return e == cudaSuccess ? (cudaError_t)scan_cuda_init() : e;
}

static cudaError_t cuda_describe(struct cuda_device *self, uint64_t memory_limit_bytes)
{
    struct cudaDeviceProp properties;
    cudaError_t e = cudaGetDeviceProperties(&properties, self->index);
    if (e != cudaSuccess)
        return e;
    struct device_info *info = &self->device.info;
    *info = (struct device_info){.backend = "cuda",
                                 .memory_bytes = properties.totalGlobalMem,
                                 .memory_limit_bytes = memory_limit_bytes,
                                 .chunk_bytes = SLOT_BYTES - 256,
                                 .slots = SLOTS};
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    return properties.canUseHostPointerForRegisteredMem ? cudaSuccess : cudaErrorNotSupported;
}

int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || index >= count) {
        cudaGetLastError();
        return error_set(error, -ENODEV, "no CUDA device %d: %s; %d there", index,
                         e == cudaSuccess ? "no such number" : cudaGetErrorString(e), count);
    }
    if (memory_limit_bytes < SLOTS * SLOT_BYTES)
        return error_set(error, -EINVAL, "--device-memory is %llu MiB; the CUDA device needs at least %llu",
                         (unsigned long long)(memory_limit_bytes >> 20),
                         (unsigned long long)(SLOTS * SLOT_BYTES >> 20));
    struct cuda_device *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "out of memory for CUDA device %d", index);
    self->device.ops = &cuda_ops;
    self->index = index;
    e = cuda_describe(self, memory_limit_bytes);
    if (e == cudaSuccess)
        e = cuda_init(self);
    if (e != cudaSuccess) {
        free(self);
        return error_set(error, -EIO, "CUDA device %d does not start: %s", index, cudaGetErrorString(e));
    }
    *out = &self->device;
    return 0;
}

/* The CUDA device's memory, and host memory that it knows. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cuda_device.h"
#include "daemon/process/log.h"
#include "export.h"

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

int cuda_errno(struct cuda_device *self, cudaError_t e)
{
    if (e == cudaSuccess)
        return 0;
    cudaGetLastError();
    if (e == cudaErrorNotSupported)
        return -EOPNOTSUPP;
    log_error("CUDA device %d: %s (%d)", self->index, cudaGetErrorString(e), (int)e);
    if (is_sticky(e)) {
        device_lose(&self->device);
        return -EOWNERDEAD;
    }
    return e == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

/* Frees discarded memory, so that it is there before more is taken. */
static void free_unwanted(struct cuda_device *self)
{
    struct long_row *row = atomic_exchange(&self->unwanted, NULL), *next;
    if (row)
        cudaSetDevice(self->index);
    for (; row; row = next) {
        next = row->next;
        cuda_errno(self, cudaFree(row->workspace));
        cuda_errno(self, cudaFree(row->between));
        free(row);
    }
}

bool cuda_reserve(struct cuda_device *self, uint64_t size_bytes)
{
    free_unwanted(self);
    uint64_t taken = __atomic_add_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    if (taken <= self->device.info.memory_limit_bytes)
        return true;
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    return false;
}

void cuda_unreserve(struct cuda_device *self, uint64_t size_bytes)
{
    __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
}

cudaError_t cuda_acquire(struct cuda_device *self, uint64_t size_bytes, void **out)
{
    if (!cuda_reserve(self, size_bytes))
        return cudaErrorMemoryAllocation;
    cudaError_t e = cudaMalloc(out, size_bytes);
    if (e != cudaSuccess)
        cuda_unreserve(self, size_bytes);
    return e;
}

void cuda_release(struct cuda_device *self, void *memory, uint64_t size_bytes)
{
    if (memory && cuda_errno(self, cudaFree(memory)) == 0)
        cuda_unreserve(self, size_bytes);
}

int cuda_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct cuda_device *self = cuda_of(device);
    void *memory = NULL;
    if (!cuda_reserve(self, size_bytes))
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
        cuda_unreserve(self, size_bytes);
        return cuda_errno(self, e);
    }
    *out = memory;
    return 0;
}

void cuda_free(struct device *device, void *memory, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    if (cuda_errno(self, cudaFree(memory)) == 0)
        cuda_unreserve(self, size_bytes);
}

int cuda_device_export_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                              struct exported_memory **out)
{
    struct cuda_device *self = cuda_of(device);
    if (!cuda_reserve(self, size_bytes))
        return -EDQUOT;
    cudaError_t e = cudaSetDevice(self->index);
    if (e == cudaSuccess)
        e = cuda_export_create(self->index, size_bytes, sharing, out);
    if (e != cudaSuccess)
        cuda_unreserve(self, size_bytes);
    return cuda_errno(self, e);
}

/* Errors in a client's ticket are reported to the client alone, and not logged. */
int cuda_device_export_open(struct device *device, const struct export_ticket *ticket, uint64_t offset,
                            uint64_t size_bytes, struct exported_memory **out, struct error *error)
{
    struct cuda_device *self = cuda_of(device);
    cudaError_t set = cudaSetDevice(self->index);
    cudaError_t e = set == cudaSuccess ? cuda_export_open(self->index, ticket, offset, size_bytes, out, error) : set;
    if (e == cudaSuccess)
        return 0;
    if (set != cudaSuccess || is_sticky(e))
        return error_set(error, cuda_errno(self, e),
                         "buffer.import_device: the device failed; the daemon's log says why");
    cudaGetLastError();
    return e == cudaErrorInvalidDevice ? -ENODEV : error->code;
}

int cuda_device_export_ticket(struct device *device, const struct exported_memory *memory, struct export_ticket *out)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    return cuda_errno(self, cuda_export_ticket(memory, out));
}

void cuda_device_export_close(struct device *device, struct exported_memory *memory)
{
    struct cuda_device *self = cuda_of(device);
    uint64_t own_bytes = cuda_export_own_bytes(memory);
    cudaSetDevice(self->index);
    if (cuda_errno(self, cuda_export_close(memory)) == 0)
        cuda_unreserve(self, own_bytes);
}

uint64_t cuda_memory_used_bytes(struct device *device)
{
    return __atomic_load_n(&cuda_of(device)->taken_bytes, __ATOMIC_RELAXED);
}

/* The driver pins for one thread at a time, whatever the device. Whoever asks waits here for it, so that a device's
 * thread, which has to start a chunk, finds at most one other in the driver's queue. */
static pthread_mutex_t pinning = PTHREAD_MUTEX_INITIALIZER;

int cuda_memory_pin(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    cudaSetDevice(self->index);
    madvise(base, size_bytes, MADV_POPULATE_WRITE); /* faster than one fault after the other; it may fail */
    pthread_mutex_lock(&pinning);
    cudaError_t e = cudaHostRegister(base, size_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    pthread_mutex_unlock(&pinning);
    return cuda_errno(self, e);
}

int cuda_memory_unpin(struct device *device, void *base, uint64_t size_bytes)
{
    struct cuda_device *self = cuda_of(device);
    (void)size_bytes;
    cudaSetDevice(self->index);
    pthread_mutex_lock(&pinning);
    cudaError_t e = cudaHostUnregister(base);
    pthread_mutex_unlock(&pinning);
    return cuda_errno(self, e);
}

cudaError_t cuda_grow(struct cuda_device *self, struct grown *grown, uint64_t size_bytes)
{
    void *memory;
    if (size_bytes <= grown->size_bytes)
        return cudaSuccess;
    cudaError_t e = cuda_acquire(self, size_bytes, &memory);
    if (e != cudaSuccess)
        return e;
    cuda_release(self, grown->memory, grown->size_bytes); /* waits for the kernels that use it */
    *grown = (struct grown){memory, size_bytes};
    return cudaSuccess;
}

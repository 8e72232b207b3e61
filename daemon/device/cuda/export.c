#include "export.h"

#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

// clang-format off
#define DRIVER_FUNCTIONS(X)                     \
    X(MemCreate)                                \
    X(MemRelease)                               \
    X(MemAddressReserve)                        \
    X(MemAddressFree)                           \
    X(MemMap)                                   \
    X(MemUnmap)                                 \
    X(MemSetAccess)                             \
    X(MemExportToShareableHandle)               \
    X(MemImportFromShareableHandle)             \
    X(MemGetAllocationPropertiesFromHandle)     \
    X(MemGetAddressRange)
// clang-format on

static struct {
#define X(NAME) __typeof__(cu##NAME) *NAME;
    DRIVER_FUNCTIONS(X)
#undef X
    bool complete;
} driver;

enum means { MEANS_MALLOC, MEANS_CREATE, MEANS_OPEN_HANDLE, MEANS_MAP_DESCRIPTOR };

struct cuda_export {
    struct exported_memory memory; /* first */
    enum means means;
    uint64_t allocation_bytes;           /* bytes of memory of ours, and of a mapping */
    void *begin;                         /* beginning of the allocation */
    CUmemGenericAllocationHandle handle; /* handle of MEANS_CREATE */
};

static void *driver_find(const char *name)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &function, 11000, cudaEnableDefault, &found);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
    if (e != cudaSuccess)
        cudaGetLastError();
    return e == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : NULL;
}

void cuda_export_init(void)
{
    driver.complete = true;
#define X(NAME)                                                    \
    driver.NAME = (__typeof__(cu##NAME) *)driver_find("cu" #NAME); \
    driver.complete = driver.complete && driver.NAME;
    DRIVER_FUNCTIONS(X)
#undef X
}

/* The two interfaces number their errors alike. */
static cudaError_t error_of(CUresult result)
{
    return (cudaError_t)result;
}

static CUmemAllocationProp properties_of(int index)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = index}};
}

static void export_unmap(struct cuda_export *self)
{
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)self->begin;
    driver.MemUnmap(address, self->allocation_bytes);
    driver.MemAddressFree(address, self->allocation_bytes);
}

/* Gives an allocation of allocation_bytes an address. */
static cudaError_t export_map(struct cuda_export *self, int index, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {properties_of(index).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;
    CUresult r = driver.MemAddressReserve(&address, self->allocation_bytes, 0, 0, 0);
    if (r != CUDA_SUCCESS)
        return error_of(r);
    r = driver.MemMap(address, self->allocation_bytes, 0, handle, 0);
    if (r != CUDA_SUCCESS) {
        driver.MemAddressFree(address, self->allocation_bytes);
        return error_of(r);
    }
    self->begin = (void *)(uintptr_t)address;
    r = driver.MemSetAccess(address, self->allocation_bytes, &access, 1);
    if (r != CUDA_SUCCESS)
        export_unmap(self);
    return error_of(r);
}

/* Memory of cuMemCreate, of which descriptors can be made. */
static cudaError_t export_make(struct cuda_export *self, int index)
{
    CUmemAllocationProp properties = properties_of(index);
    if (!driver.complete)
        return cudaErrorNotSupported;
    cudaError_t e = error_of(driver.MemCreate(&self->handle, self->allocation_bytes, &properties, 0));
    if (e != cudaSuccess)
        return e;
    e = export_map(self, index, self->handle);
    if (e != cudaSuccess)
        driver.MemRelease(self->handle);
    return e;
}

cudaError_t cuda_export_create(int index, uint64_t size_bytes, enum scand_sharing sharing, struct exported_memory **out)
{
    struct cuda_export *self = calloc(1, sizeof *self);
    if (!self)
        return cudaErrorMemoryAllocation;
    self->allocation_bytes = size_bytes;
    self->means = sharing == SCAND_SHARING_HANDLE ? MEANS_MALLOC : MEANS_CREATE;
    cudaError_t e = self->means == MEANS_MALLOC ? cudaMalloc(&self->begin, size_bytes) : export_make(self, index);
    if (e != cudaSuccess) {
        free(self);
        return e;
    }
    self->memory.base = self->begin;
    e = cudaMemset(self->begin, 0, size_bytes);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        cuda_export_close(&self->memory);
        return e;
    }
    *out = &self->memory;
    return cudaSuccess;
}

/*
 * Opening. What a ticket says is a client's word.
 */

static cudaError_t open_handle(struct cuda_export *self, const struct export_ticket *ticket, int index,
                               struct error *error)
{
    struct cudaPointerAttributes attributes;
    cudaIpcMemHandle_t handle;
    _Static_assert(sizeof handle == sizeof ticket->handle, "a handle has one size");
    __builtin_memcpy(&handle, ticket->handle, sizeof handle);
    self->means = MEANS_OPEN_HANDLE;
    cudaError_t e = cudaIpcOpenMemHandle(&self->begin, handle, cudaIpcMemLazyEnablePeerAccess);
    if (e != cudaSuccess) {
        error_set(error, -EINVAL,
                  "buffer.import_device: CUDA does not open the handle: %s (%d); allowed: one of memory that "
                  "cudaMalloc gave to another process of this machine and user, which still has it",
                  cudaGetErrorString(e), (int)e);
        return e;
    }
    if (cudaPointerGetAttributes(&attributes, self->begin) == cudaSuccess && attributes.device == index)
        return cudaSuccess;
    cudaIpcCloseMemHandle(self->begin);
    return cudaErrorInvalidDevice;
}

static cudaError_t import_descriptor(int fd, CUmemGenericAllocationHandle *out, struct error *error)
{
    cudaError_t e = driver.complete ? error_of(driver.MemImportFromShareableHandle(
                                          out, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
                                    : cudaErrorNotSupported;
    if (e == cudaErrorNotSupported)
        error_set(error, -EOPNOTSUPP,
                  "buffer.import_device: this daemon's CUDA driver cannot map descriptors; import by \"handle\"");
    else if (e != cudaSuccess)
        error_set(error, -EBADF,
                  "buffer.import_device: CUDA does not import the descriptor: %s (%d); allowed: one that "
                  "cuMemExportToShareableHandle has made",
                  cudaGetErrorString(e), (int)e);
    return e;
}

static bool is_of_device(CUmemGenericAllocationHandle handle, int index)
{
    CUmemAllocationProp properties;
    return driver.MemGetAllocationPropertiesFromHandle(&properties, handle) == CUDA_SUCCESS &&
           properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && properties.location.id == index;
}

/* CUDA maps whole allocations only. Where nothing says how large it is, it ends where the wanted part does. */
static cudaError_t open_descriptor(struct cuda_export *self, const struct export_ticket *ticket, uint64_t end,
                                   int index, struct error *error)
{
    CUmemGenericAllocationHandle handle;
    uint64_t all_bytes = ticket->allocation_bytes ? ticket->allocation_bytes : end;
    cudaError_t e = import_descriptor(ticket->fd, &handle, error);
    if (e != cudaSuccess)
        return e;
    self->means = MEANS_MAP_DESCRIPTOR;
    self->allocation_bytes =
        (all_bytes + LIMIT_SHARED_UNIT_BYTES - 1) / LIMIT_SHARED_UNIT_BYTES * LIMIT_SHARED_UNIT_BYTES;
    e = is_of_device(handle, index) ? export_map(self, index, handle) : cudaErrorInvalidDevice;
    driver.MemRelease(handle); /* a mapping keeps the memory */
    if (e != cudaSuccess && e != cudaErrorInvalidDevice)
        error_set(error, -EINVAL,
                  "buffer.import_device: CUDA does not map %" PRIu64 " bytes of the descriptor's memory: %s (%d); give "
                  "the size of all of it as \"allocation\"",
                  self->allocation_bytes, cudaGetErrorString(e), (int)e);
    return e;
}

/* Finds how far the memory reaches from its beginning. */
static cudaError_t bytes_there(const struct cuda_export *self, uint64_t *out)
{
    CUdeviceptr begin = (CUdeviceptr)(uintptr_t)self->begin, base;
    size_t size_bytes;
    if (!driver.complete)
        return cudaErrorNotSupported;
    CUresult r = driver.MemGetAddressRange(&base, &size_bytes, begin);
    if (r == CUDA_SUCCESS)
        *out = base + size_bytes - begin;
    return error_of(r);
}

cudaError_t cuda_export_open(int index, const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes,
                             struct exported_memory **out, struct error *error)
{
    struct cuda_export *self = calloc(1, sizeof *self);
    uint64_t there_bytes = 0;
    if (!self) {
        error_set(error, -ENOMEM, "buffer.import_device: out of memory; try again later");
        return cudaErrorMemoryAllocation;
    }
    cudaError_t e = ticket->fd < 0 ? open_handle(self, ticket, index, error)
                                   : open_descriptor(self, ticket, offset + size_bytes, index, error);
    if (e != cudaSuccess) {
        free(self);
        return e;
    }
    e = bytes_there(self, &there_bytes);
    if (e == cudaSuccess && offset + size_bytes > there_bytes)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess) {
        error_set(error, -EINVAL,
                  "buffer.import_device: \"size\" (%" PRIu64 ") bytes from \"offset\" (%" PRIu64
                  ") on end behind the memory, which has %" PRIu64 " bytes",
                  size_bytes, offset, there_bytes);
        cuda_export_close(&self->memory);
        return e;
    }
    self->memory.base = (unsigned char *)self->begin + offset;
    *out = &self->memory;
    return cudaSuccess;
}

cudaError_t cuda_export_ticket(const struct exported_memory *memory, struct export_ticket *out)
{
    const struct cuda_export *self = (const struct cuda_export *)memory;
    *out = (struct export_ticket){.fd = -1, .allocation_bytes = self->allocation_bytes};
    if (self->means == MEANS_MALLOC) {
        cudaIpcMemHandle_t handle;
        cudaError_t e = cudaIpcGetMemHandle(&handle, self->begin);
        __builtin_memcpy(out->handle, &handle, sizeof out->handle);
        return e;
    }
    CUresult r = driver.MemExportToShareableHandle(&out->fd, self->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r == CUDA_SUCCESS)
        fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    return error_of(r);
}

cudaError_t cuda_export_close(struct exported_memory *memory)
{
    struct cuda_export *self = (struct cuda_export *)memory;
    cudaError_t e = cudaSuccess;
    switch (self->means) {
    case MEANS_MALLOC:
        e = cudaFree(self->begin);
        break;
    case MEANS_OPEN_HANDLE:
        e = cudaIpcCloseMemHandle(self->begin); /* CUDA counts how often it was opened */
        break;
    case MEANS_CREATE:
        export_unmap(self);
        e = error_of(driver.MemRelease(self->handle));
        break;
    case MEANS_MAP_DESCRIPTOR:
        export_unmap(self);
        break;
    }
    free(self);
    return e;
}

uint64_t cuda_export_own_bytes(const struct exported_memory *memory)
{
    const struct cuda_export *self = (const struct cuda_export *)memory;
    return self->means == MEANS_MALLOC || self->means == MEANS_CREATE ? self->allocation_bytes : 0;
}

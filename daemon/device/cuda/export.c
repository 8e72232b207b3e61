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

struct cuda_share {
    struct shared_memory memory; /* first */
    enum means means;
    uint64_t allocation_bytes;           /* of memory of ours, and of a mapping */
    void *begin;                         /* of the allocation */
    CUmemGenericAllocationHandle handle; /* of MEANS_CREATE */
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

void cuda_share_init(void)
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

static void share_unmap(struct cuda_share *share)
{
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)share->begin;
    driver.MemUnmap(address, share->allocation_bytes);
    driver.MemAddressFree(address, share->allocation_bytes);
}

/* Gives an allocation of allocation_bytes an address. */
static cudaError_t share_map(struct cuda_share *share, int index, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {properties_of(index).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;
    CUresult r = driver.MemAddressReserve(&address, share->allocation_bytes, 0, 0, 0);
    if (r != CUDA_SUCCESS)
        return error_of(r);
    r = driver.MemMap(address, share->allocation_bytes, 0, handle, 0);
    if (r != CUDA_SUCCESS) {
        driver.MemAddressFree(address, share->allocation_bytes);
        return error_of(r);
    }
    share->begin = (void *)(uintptr_t)address;
    r = driver.MemSetAccess(address, share->allocation_bytes, &access, 1);
    if (r != CUDA_SUCCESS)
        share_unmap(share);
    return error_of(r);
}

/* Memory of cuMemCreate, of which descriptors can be made. */
static cudaError_t share_make(struct cuda_share *share, int index)
{
    CUmemAllocationProp properties = properties_of(index);
    if (!driver.complete)
        return cudaErrorNotSupported;
    cudaError_t e = error_of(driver.MemCreate(&share->handle, share->allocation_bytes, &properties, 0));
    if (e != cudaSuccess)
        return e;
    e = share_map(share, index, share->handle);
    if (e != cudaSuccess)
        driver.MemRelease(share->handle);
    return e;
}

cudaError_t cuda_share_create(int index, uint64_t size_bytes, enum scand_sharing sharing, struct shared_memory **out)
{
    struct cuda_share *share = calloc(1, sizeof *share);
    if (!share)
        return cudaErrorMemoryAllocation;
    share->allocation_bytes = size_bytes;
    share->means = sharing == SCAND_SHARING_HANDLE ? MEANS_MALLOC : MEANS_CREATE;
    cudaError_t e = share->means == MEANS_MALLOC ? cudaMalloc(&share->begin, size_bytes) : share_make(share, index);
    if (e != cudaSuccess) {
        free(share);
        return e;
    }
    share->memory.base = share->begin;
    e = cudaMemset(share->begin, 0, size_bytes);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e != cudaSuccess) {
        cuda_share_close(&share->memory);
        return e;
    }
    *out = &share->memory;
    return cudaSuccess;
}

/*
 * Opening. What a ticket says is a client's word.
 */

static cudaError_t open_handle(struct cuda_share *share, const struct shared_ticket *ticket, int index,
                               struct error *error)
{
    struct cudaPointerAttributes attributes;
    cudaIpcMemHandle_t handle;
    _Static_assert(sizeof handle == sizeof ticket->handle, "a handle has one size");
    __builtin_memcpy(&handle, ticket->handle, sizeof handle);
    share->means = MEANS_OPEN_HANDLE;
    cudaError_t e = cudaIpcOpenMemHandle(&share->begin, handle, cudaIpcMemLazyEnablePeerAccess);
    if (e != cudaSuccess) {
        error_set(error, -EINVAL,
                  "buffer.import_device: CUDA does not open the handle: %s (%d); allowed: one of memory that "
                  "cudaMalloc gave to another process of this machine and user, which still has it",
                  cudaGetErrorString(e), (int)e);
        return e;
    }
    if (cudaPointerGetAttributes(&attributes, share->begin) == cudaSuccess && attributes.device == index)
        return cudaSuccess;
    cudaIpcCloseMemHandle(share->begin);
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
static cudaError_t open_descriptor(struct cuda_share *share, const struct shared_ticket *ticket, uint64_t end,
                                   int index, struct error *error)
{
    CUmemGenericAllocationHandle handle;
    uint64_t all_bytes = ticket->allocation_bytes ? ticket->allocation_bytes : end;
    cudaError_t e = import_descriptor(ticket->fd, &handle, error);
    if (e != cudaSuccess)
        return e;
    share->means = MEANS_MAP_DESCRIPTOR;
    share->allocation_bytes =
        (all_bytes + LIMIT_SHARED_UNIT_BYTES - 1) / LIMIT_SHARED_UNIT_BYTES * LIMIT_SHARED_UNIT_BYTES;
    e = is_of_device(handle, index) ? share_map(share, index, handle) : cudaErrorInvalidDevice;
    driver.MemRelease(handle); /* a mapping keeps the memory */
    if (e != cudaSuccess && e != cudaErrorInvalidDevice)
        error_set(error, -EINVAL,
                  "buffer.import_device: CUDA does not map %" PRIu64 " bytes of the descriptor's memory: %s (%d); give "
                  "the size of all of it as \"allocation\"",
                  share->allocation_bytes, cudaGetErrorString(e), (int)e);
    return e;
}

/* How far the memory reaches from its beginning. */
static cudaError_t reach(const struct cuda_share *share, uint64_t *out)
{
    CUdeviceptr begin = (CUdeviceptr)(uintptr_t)share->begin, base;
    size_t size_bytes;
    if (!driver.complete)
        return cudaErrorNotSupported;
    CUresult r = driver.MemGetAddressRange(&base, &size_bytes, begin);
    if (r == CUDA_SUCCESS)
        *out = base + size_bytes - begin;
    return error_of(r);
}

cudaError_t cuda_share_open(int index, const struct shared_ticket *ticket, uint64_t offset, uint64_t size_bytes,
                            struct shared_memory **out, struct error *error)
{
    struct cuda_share *share = calloc(1, sizeof *share);
    uint64_t there_bytes = 0;
    if (!share) {
        error_set(error, -ENOMEM, "buffer.import_device: out of memory; try again later");
        return cudaErrorMemoryAllocation;
    }
    cudaError_t e = ticket->fd < 0 ? open_handle(share, ticket, index, error)
                                   : open_descriptor(share, ticket, offset + size_bytes, index, error);
    if (e != cudaSuccess) {
        free(share);
        return e;
    }
    e = reach(share, &there_bytes);
    if (e == cudaSuccess && offset + size_bytes > there_bytes)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess) {
        error_set(error, -EINVAL,
                  "buffer.import_device: \"size\" (%" PRIu64 ") bytes from \"offset\" (%" PRIu64
                  ") on end behind the memory, which has %" PRIu64 " bytes",
                  size_bytes, offset, there_bytes);
        cuda_share_close(&share->memory);
        return e;
    }
    share->memory.base = (unsigned char *)share->begin + offset;
    *out = &share->memory;
    return cudaSuccess;
}

cudaError_t cuda_share_export(const struct shared_memory *memory, struct shared_ticket *out)
{
    const struct cuda_share *share = (const struct cuda_share *)memory;
    *out = (struct shared_ticket){.fd = -1, .allocation_bytes = share->allocation_bytes};
    if (share->means == MEANS_MALLOC) {
        cudaIpcMemHandle_t handle;
        cudaError_t e = cudaIpcGetMemHandle(&handle, share->begin);
        __builtin_memcpy(out->handle, &handle, sizeof out->handle);
        return e;
    }
    CUresult r =
        driver.MemExportToShareableHandle(&out->fd, share->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r == CUDA_SUCCESS)
        fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    return error_of(r);
}

cudaError_t cuda_share_close(struct shared_memory *memory)
{
    struct cuda_share *share = (struct cuda_share *)memory;
    cudaError_t e = cudaSuccess;
    switch (share->means) {
    case MEANS_MALLOC:
        e = cudaFree(share->begin);
        break;
    case MEANS_OPEN_HANDLE:
        e = cudaIpcCloseMemHandle(share->begin); /* CUDA counts how often it was opened */
        break;
    case MEANS_CREATE:
        share_unmap(share);
        e = error_of(driver.MemRelease(share->handle));
        break;
    case MEANS_MAP_DESCRIPTOR:
        share_unmap(share);
        break;
    }
    free(share);
    return e;
}

uint64_t cuda_share_own_bytes(const struct shared_memory *memory)
{
    const struct cuda_share *share = (const struct cuda_share *)memory;
    return share->means == MEANS_MALLOC || share->means == MEANS_CREATE ? share->allocation_bytes : 0;
}

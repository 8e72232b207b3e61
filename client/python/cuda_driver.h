#ifndef SCAND_PYTHON_CUDA_DRIVER_H
#define SCAND_PYTHON_CUDA_DRIVER_H

/*
 * The functions of NVIDIA's driver, libcuda.so.1, that the Python package calls where a program has loaded it:
 * declarations in plain C, as cuda.h has them, so that neither building nor installing the package takes CUDA. All
 * functions return a CUresult, which is 0 when nothing is wrong.
 */
#include <stddef.h>
#include <stdint.h>

struct cuda_location {
    int type; /* CU_MEM_LOCATION_TYPE_DEVICE is 1 */
    int id;
};

/* CUmemAccessDesc */
struct cuda_access {
    struct cuda_location location;
    int flags; /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE is 3 */
};

/* CUmemAllocationProp */
struct cuda_allocation {
    int type, handle_types;
    struct cuda_location location;
    void *windows;
    uint8_t flags[8];
};

/* cudaIpcMemHandle_t, which is passed by pointer here, and CUDA's own pointers to what is opaque */
struct cuda_ipc_handle {
    uint8_t bytes[64];
};

int cuInit(unsigned flags);
int cuGetErrorString(int result, const char **text);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuPointerGetAttribute(void *data, int attribute, uint64_t pointer);
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t pointer);
int cuIpcGetMemHandle(struct cuda_ipc_handle *handle, uint64_t pointer);
int cuMemRetainAllocationHandle(uint64_t *handle, void *pointer);
int cuMemExportToShareableHandle(void *shareable, uint64_t handle, int type, uint64_t flags);
int cuMemImportFromShareableHandle(uint64_t *handle, void *shareable, int type);
int cuMemGetAllocationPropertiesFromHandle(struct cuda_allocation *allocation, uint64_t handle);
int cuMemAddressReserve(uint64_t *pointer, size_t size, size_t alignment, uint64_t address, uint64_t flags);
int cuMemAddressFree(uint64_t pointer, size_t size);
int cuMemMap(uint64_t pointer, size_t size, size_t offset, uint64_t handle, uint64_t flags);
int cuMemUnmap(uint64_t pointer, size_t size);
int cuMemSetAccess(uint64_t pointer, size_t size, const struct cuda_access *access, size_t count);
int cuMemRelease(uint64_t handle);

#endif

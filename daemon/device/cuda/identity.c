#include "identity.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/device/devices.h"

/* The place in the machine counts, too. */
static void write_identity(struct device_info *info, const struct cudaDeviceProp *properties)
{
    char *out = info->identity;
    int driver = 0, length = snprintf(out, DEVICE_IDENTITY_BYTES, "%.64s ", info->name);
    cudaDriverGetVersion(&driver);
    for (size_t i = 0; i < sizeof properties->uuid.bytes; i++)
        length += snprintf(out + length, 3, "%02x", (unsigned char)properties->uuid.bytes[i]);
    snprintf(out + length, DEVICE_IDENTITY_BYTES - (size_t)length, " pci %04x:%02x driver %d",
             (unsigned)properties->pciDomainID, (unsigned)properties->pciBusID, driver);
}

cudaError_t cuda_identify(int index, struct device_info *info)
{
    struct cudaDeviceProp properties;
    cudaError_t e = cudaGetDeviceProperties(&properties, index);
    if (e != cudaSuccess)
        return e;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    info->memory_bytes = properties.totalGlobalMem;
    write_identity(info, &properties);
    return properties.canUseHostPointerForRegisteredMem ? cudaSuccess : cudaErrorNotSupported;
}

int device_cuda_count(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : (cudaGetLastError(), 0);
}

/* "0 (NVIDIA H200), 1 (NVIDIA H200)", cut to size. */
static const char *list_names(int count, char *out, size_t size)
{
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < count && length < size; i++) {
        struct cudaDeviceProp properties;
        bool known = cudaGetDeviceProperties(&properties, i) == cudaSuccess;
        length += (size_t)snprintf(out + length, size - length, "%s%d (%s)", i ? ", " : "", i,
                                   known ? properties.name : "unknown");
    }
    return out;
}

int cuda_refuse_start(int index, cudaError_t e, struct error *error)
{
    int major = 0, minor = 0;
    if (e != cudaErrorNoKernelImageForDevice)
        return error_set(error, -EIO, "CUDA device %d does not start: %s", index, cudaGetErrorString(e));
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    return error_set(
        error, -EIO,
        "this scand has no kernels for CUDA device %d, which is of compute capability %d.%d (scand --version "
        "names those that it has); build it with SCAND_CUDA_ARCHITECTURES=%d%d or =all",
        index, major, minor, major, minor);
}

int cuda_refuse_index(int index, struct error *error)
{
    char names[LIMIT_ERROR_BYTES / 2];
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (e != cudaSuccess || count == 0)
        return error_set(error, -ENODEV, "there is no GPU: %s", cudaGetErrorString(e));
    return error_set(error, -ENODEV, "there is no GPU %d; there are %s; choose from those, or use cpu", index,
                     list_names(count, names, sizeof names));
}

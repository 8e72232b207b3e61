/* The stand-in for device_cuda.c in a build without CUDA. */
#include <errno.h>

#include "daemon/device/devices.h"

int device_cuda_count(void)
{
    return 0;
}

int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    (void)index, (void)memory_limit_bytes, (void)out;
    return error_set(error, -ENODEV, "there is no GPU: scand was built without CUDA");
}

/* The implementations of device/device.h. Each open returns 0 and *out, or -errno and *error. */
#ifndef DAEMON_DEVICES_H
#define DAEMON_DEVICES_H

#include "device.h"
#include "protocol/status.h"

/* Opens the processor in place of a GPU: its "device memory" is memory of the daemon. threads: 0 for one per core. */
int device_cpu_open(unsigned threads, uint64_t memory_limit_bytes, struct device **out, struct error *error);
/* Opens the processor as a helper beside GPUs (info.helps), in time that no other program wants. */
int device_cpu_open_helper(unsigned threads, struct device **out, struct error *error);

/* Returns the number of CUDA devices; 0 without a driver or in a build without CUDA. */
int device_cuda_count(void);
/* Opens CUDA device `index`, taking at most memory_limit_bytes of its memory. -ENODEV: no such device, no driver, or a
 * build without CUDA. */
int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error);

/* Faults for tests: the number of the call that fails, of each kind of call, from 1 on; 0: none. */
struct device_faults {
    uint64_t fail_chunk;  /* number of the chunk that is not computed: the device is lost */
    uint64_t hang_chunk;  /* number of the chunk that never comes back */
    uint64_t fail_memory; /* number of the call for device memory that fails, by any thread: the device is lost, too */
};

/* Wraps a device, and takes it over. */
int device_fault_open(struct device *inner, const struct device_faults *faults, struct device **out,
                      struct error *error);

#endif

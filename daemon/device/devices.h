/* The devices there are: see device/device.h for what one does. Each open returns 0 and *out, or -errno and *error. */
#ifndef DAEMON_DEVICES_H
#define DAEMON_DEVICES_H

#include "device.h"
#include "protocol/status.h"

/* Scans on the processor, in place of a GPU: "device memory" is memory of the daemon. threads: 0 for one per core. */
int device_cpu_open(unsigned threads, uint64_t memory_limit_bytes, struct device **out, struct error *error);
/* The same beside GPUs (info.helps), in time that no other program wants. */
int device_cpu_open_helper(unsigned threads, struct device **out, struct error *error);

/* CUDA devices there are; 0 without a driver or in a build without CUDA. */
int device_cuda_count(void);
/* Scans on CUDA device `index`, taking at most memory_limit_bytes of its memory. -ENODEV: no such device, no driver, or
 * a build without CUDA. */
int device_cuda_open(int index, uint64_t memory_limit_bytes, struct device **out, struct error *error);

/* What goes wrong, for tests: which one of a kind of calls, from 1 on; 0: none. */
struct device_faults {
    uint64_t fail_chunk;  /* is not computed: the device is lost */
    uint64_t hang_chunk;  /* never comes back */
    uint64_t fail_memory; /* a call for device memory, which helpers make: the device is lost as well */
};

/* Wraps a device, which it owns. */
int device_fault_open(struct device *inner, const struct device_faults *faults, struct device **out,
                      struct error *error);

#endif

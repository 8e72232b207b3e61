/* Chooses how many chunks of which size a device works on at a time: as the settings say, as remembered, or as
 * measured. */
#ifndef DAEMON_CALIBRATE_H
#define DAEMON_CALIBRATE_H

#include "device.h"

/* Sets chunk_bytes, slots and bytes_per_s of the device's info, before anything runs on the device. An argument that is
 * not 0 is used as it is. With both 0, a device that has an identity is measured, for some 150 ms at most, unless the
 * daemon's cache remembers it. When measuring fails, the device keeps its own values, and the log says so. */
void calibrate_device(struct device *device, uint64_t chunk_bytes, uint32_t chunks);

#endif

/* Opens the devices that the settings ask for. */
#ifndef DAEMON_DEVICE_SET_H
#define DAEMON_DEVICE_SET_H

#include "daemon/device/device.h"
#include "options.h"

/* Fills *set: 0, or -errno and *error; what is open by then stays so, for a process that ends. */
int device_set_open(const struct options *options, struct device_set *set, struct error *error);
void device_set_close(struct device_set *set);

#endif

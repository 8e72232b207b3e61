/* Opens the devices that the settings ask for. */
#ifndef DAEMON_DEVICE_SET_H
#define DAEMON_DEVICE_SET_H

#include "daemon/device/device.h"
#include "options.h"

/* Fills *set. Returns 0, or -errno and *error; devices that are open by then stay open, since the process ends. */
int device_set_open(const struct options *options, struct device_set *set, struct error *error);
void device_set_close(struct device_set *set);

#endif

#include "far.h"

#include "daemon/device/devices.h"

void far_init(struct far *far, void (*wake)(void *context), void *context)
{
    *far = (struct far){.wake = wake, .context = context};
}

static int far_begin(struct far *far)
{
    struct device *device;
    struct error error;
    int r = device_cpu_open(0, 0, &device, &error);
    if (r)
        return r;
    r = device_thread_start(&far->thread, device, far->wake, far->context);
    if (r)
        device->ops->close(device);
    else
        far->device = device;
    return r;
}

int far_submit(struct far *far, struct chunk *chunk)
{
    int r = far->device ? 0 : far_begin(far);
    if (!r)
        device_thread_submit(&far->thread, chunk);
    return r;
}

bool far_is_ready(const struct far *far)
{
    return far->device && atomic_load(&far->thread.returned);
}

struct chunk *far_collect(struct far *far)
{
    return far->device ? device_thread_collect(&far->thread) : NULL;
}

void far_stop(struct far *far)
{
    if (far->device)
        device_thread_stop(&far->thread);
}

void far_finish(struct far *far)
{
    if (!far->device)
        return;
    device_thread_finish(&far->thread);
    far->device->ops->close(far->device);
}

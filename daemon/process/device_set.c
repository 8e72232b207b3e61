#include "device_set.h"

#include <errno.h>
#include <string.h>

#include "daemon/device/calibrate.h"
#include "daemon/device/devices.h"
#include "log.h"

static void set_add(struct device_set *set, struct device *device)
{
    device->number = set->count;
    set->devices[set->count++] = device;
}

static int open_processors(const struct options *options, uint32_t count, struct device_set *set, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct device *device;
        int r = device_cpu_open(options->threads, options->device_memory_bytes, &device, error);
        if (r)
            return r;
        set_add(set, device);
    }
    return 0;
}

static int open_gpu(const struct options *options, int index, struct device_set *set, struct error *error)
{
    struct device *device;
    const int r = device_cuda_open(index, options->device_memory_bytes, &device, error);
    if (r)
        return r;
    set_add(set, device);
    return 0;
}

/* Opens each GPU whose number is a bit of `which`. */
static int open_gpus(const struct options *options, uint32_t which, struct device_set *set, struct error *error)
{
    for (int index = 0; index < LIMIT_DEVICES; index++) {
        const int r = which >> index & 1 ? open_gpu(options, index, set, error) : 0;
        if (r)
            return r;
    }
    return 0;
}

/* Opens GPU 0 first whatever the count: without any GPU this fails and says why. */
static int open_all_gpus(const struct options *options, struct device_set *set, struct error *error)
{
    int count = device_cuda_count(), r = open_gpu(options, 0, set, error);
    for (int index = 1; index < count && index < LIMIT_DEVICES && !r; index++)
        r = open_gpu(options, index, set, error);
    return r;
}

static int open_any(const struct options *options, struct device_set *set, struct error *error)
{
    if (open_gpu(options, 0, set, error) == 0)
        return 0;
    log_info("using the processor: %s", error->message);
    return open_processors(options, 1, set, error);
}

/* Says what to do where GPUs were chosen and there are none. Returns r. */
static int advise(int r, struct error *error)
{
    const struct error why = *error;
    return r == -ENODEV && device_cuda_count() == 0 ? error_set(error, r, "%s; use cpu", why.message) : r;
}

static int open_chosen(const struct options *options, struct device_set *set, struct error *error)
{
    uint64_t choice = options->devices;
    switch (device_choice_kind(choice)) {
    case DEVICE_AUTO:
        return open_any(options, set, error);
    case DEVICE_ALL:
        return advise(open_all_gpus(options, set, error), error);
    case DEVICE_CPU:
        return open_processors(options, device_choice_which(choice), set, error);
    case DEVICE_CUDA:
        return advise(open_gpus(options, device_choice_which(choice), set, error), error);
    }
    return -ENOTRECOVERABLE;
}

/* Opens the processor as a helper, unless it is the only device because there is no GPU. */
static int open_helper(const struct options *options, struct device_set *set, struct error *error)
{
    const uint64_t choice = options->devices;
    struct device *device;
    if (!device_choice_is_helped(choice) ||
        (device_choice_kind(choice) == DEVICE_AUTO && strcmp(set->devices[0]->info.backend, "cpu") == 0))
        return 0;
    if (set->count == LIMIT_DEVICES)
        return error_set(error, -E2BIG, "there are %u devices, and the processor would be one more; allowed: %d",
                         set->count, LIMIT_DEVICES);
    const int r = device_cpu_open_helper(options->threads, &device, error);
    if (r)
        return r;
    set_add(set, device);
    return 0;
}

/* Makes the first device fail as --fail-chunk, --hang-chunk or --fail-memory ask for, in tests. */
static int set_faults(struct device_set *set, const struct device_faults *faults, struct error *error)
{
    if (faults->fail_chunk + faults->hang_chunk + faults->fail_memory == 0)
        return 0;
    return device_fault_open(set->devices[0], faults, &set->devices[0], error);
}

int device_set_open(const struct options *options, struct device_set *set, struct error *error)
{
    struct error reason;
    char choice[SETTING_TEXT_BYTES];
    *set = (struct device_set){.count = 0};
    int r = open_chosen(options, set, &reason);
    r = r ? r : open_helper(options, set, &reason);
    if (r)
        return error_set(error, r, "--device is \"%s\": %s",
                         setting_format(&options->settings, SETTING_DEVICE, choice, sizeof choice), reason.message);
    for (unsigned i = 0; i < set->count; i++)
        calibrate_device(set->devices[i], options->chunk_bytes, options->chunks);
    return set_faults(set, &options->faults, error);
}

void device_set_close(struct device_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        set->devices[i]->ops->close(set->devices[i]);
}

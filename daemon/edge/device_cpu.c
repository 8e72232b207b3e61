#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "devices.h"
#include "kernels/variants/variants.h"

/* Two slots: the next chunk is there when one is done. */
#define SLOTS 2
/* Those of several jobs are handed over at once: each time takes longer than scanning so little. */
#define SMALL_BYTES KIB(64)

struct cpu_device {
    struct device device; /* first */
    struct cpu_pool *pool;
    struct chunk *first, *last; /* taken and not scanned */
    struct chunk *done;         /* small ones that were, by next */
    uint64_t taken_bytes;       /* of "device memory"; helpers allocate too */
};

static struct cpu_device *cpu_of(struct device *device)
{
    return (struct cpu_device *)device;
}

static int cpu_start(struct device *device, struct chunk *chunk)
{
    struct cpu_device *self = cpu_of(device);
    chunk->next = NULL;
    if (self->first)
        self->last->next = chunk;
    else
        self->first = chunk;
    self->last = chunk;
    return 0;
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int cpu_run_first(struct cpu_device *self, const struct chunk *chunk)
{
    uint32_t algorithm = chunk->rows->rule.algorithm;
    if (!algorithm)
        return scan_cpu(self->pool, chunk->rows, chunk->first, chunk->count);
    if (chunk->rows->rule.operation == SCAND_OPERATION_REDUCE || !variant_list[algorithm - 1].on_cpu)
        return -EOPNOTSUPP;
    struct variant_scan scan = variant_scan_from(chunk->rows, chunk->first, chunk->count);
    variant_run_cpu((enum variant_id)(algorithm - 1), &scan);
    return 0;
}

static int cpu_run(struct cpu_device *self, const struct chunk *chunk)
{
    int r = cpu_run_first(self, chunk);
    for (uint32_t i = 0; i < chunk->then_count && !r; i++) {
        struct scan_rows rows = rows_then(chunk->rows, &chunk->then[i]);
        r = scan_cpu(self->pool, &rows, chunk->first, chunk->count);
    }
    return r;
}

/* Scans the oldest chunk, and small ones right behind a small one with it. */
static void cpu_run_next(struct cpu_device *self)
{
    struct chunk **end = &self->done, *chunk = self->first;
    uint64_t begin_us = now_us(), end_us;
    for (bool more = chunk; more; chunk = self->first, begin_us = end_us) {
        self->first = chunk->next;
        chunk->status = cpu_run(self, chunk);
        end_us = now_us();
        chunk->kernel_us = end_us - begin_us;
        chunk->next = NULL;
        *end = chunk;
        end = &chunk->next;
        more = chunk->small && self->first && self->first->small;
    }
}

static struct chunk *cpu_finish(struct device *device, int timeout_ms)
{
    struct cpu_device *self = cpu_of(device);
    /* Nothing runs but in here. */
    if (!self->done && timeout_ms > 0)
        cpu_run_next(self);
    struct chunk *chunk = self->done;
    if (chunk)
        self->done = chunk->next;
    return chunk;
}

/* The processor reaches all memory as it is. */
static int cpu_memory_attach(struct device *device, void *base, uint64_t size_bytes)
{
    (void)device, (void)base, (void)size_bytes;
    return 0;
}

static int cpu_allocate(struct device *device, uint64_t size_bytes, void **out)
{
    struct cpu_device *self = cpu_of(device);
    uint64_t taken = __atomic_add_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
    int r = 0;
    if (taken > device->info.memory_limit_bytes)
        r = -EDQUOT;
    void *memory = r ? MAP_FAILED : mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!r && memory == MAP_FAILED)
        r = -ENOMEM;
    if (r) {
        __atomic_sub_fetch(&self->taken_bytes, size_bytes, __ATOMIC_RELAXED);
        return r;
    }
    *out = memory;
    return 0;
}

static void cpu_free(struct device *device, void *memory, uint64_t size_bytes)
{
    munmap(memory, size_bytes);
    __atomic_sub_fetch(&cpu_of(device)->taken_bytes, size_bytes, __ATOMIC_RELAXED);
}

/* Nobody but this process has its "device memory". */
static int cpu_share_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                            struct shared_memory **out)
{
    (void)device, (void)size_bytes, (void)sharing, (void)out;
    return -EOPNOTSUPP;
}

static int cpu_share_open(struct device *device, const struct shared_ticket *ticket, uint64_t offset,
                          uint64_t size_bytes, struct shared_memory **out, struct error *error)
{
    (void)device, (void)ticket, (void)offset, (void)size_bytes, (void)out;
    return error_set(error, -EOPNOTSUPP,
                     "buffer.import_device: this daemon works on the processor and opens no GPU memory; import host "
                     "memory, or use a daemon started with --device cuda");
}

static uint64_t cpu_memory_used_bytes(struct device *device)
{
    return __atomic_load_n(&cpu_of(device)->taken_bytes, __ATOMIC_RELAXED);
}

static void cpu_close(struct device *device)
{
    cpu_pool_destroy(cpu_of(device)->pool);
    free(device);
}

static const struct device_ops cpu_ops = {
    .start = cpu_start,
    .finish = cpu_finish,
    .memory_attach = cpu_memory_attach,
    .memory_detach = cpu_memory_attach,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .share_create = cpu_share_create,
    .share_open = cpu_share_open,
    .memory_used_bytes = cpu_memory_used_bytes,
    .close = cpu_close,
};

/* The processor's name as Linux knows it. */
static void cpu_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(name, size, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[1 + strcspn(colon + 1, "\n")] = '\0';
        snprintf(name, size, "%.*s", (int)size - 1, colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
}

int device_cpu_open(unsigned threads, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    struct sysinfo memory;
    struct cpu_device *self = calloc(1, sizeof *self);
    if (self)
        self->pool = cpu_pool_create(threads);
    if (!self || !self->pool) {
        free(self);
        return error_set(error, -ENOMEM, "could not start the threads of the CPU device: %s", strerror(errno));
    }
    self->device.ops = &cpu_ops;
    struct device_info *info = &self->device.info;
    *info = (struct device_info){.backend = "cpu",
                                 .memory_limit_bytes = memory_limit_bytes,
                                 .chunk_bytes = MIB(16),
                                 .resident_chunk_bytes = MIB(16),
                                 .slots = SLOTS,
                                 .small_slots = LIMIT_SMALL_CHUNKS,
                                 .small_bytes = SMALL_BYTES};
    cpu_name(info->name, sizeof info->name);
    if (sysinfo(&memory) == 0)
        info->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    *out = &self->device;
    return 0;
}

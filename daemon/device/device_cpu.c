/* The processor as a device, in place of a GPU or beside one: chunks are computed by the pool of the CPU path, one at a
 * time; small ones at once, by whoever calls run_now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "between.h"
#include "devices.h"
#include "kernels/tutorial/scan/variants.h"
#include "protocol/slept.h"

/* The device has two slots, so that the next chunk is there when one is done. */
#define SLOTS 2
/* The limit of small chunks. Small chunks of several jobs are handed over together: handing over takes longer than
 * scanning so little. */
#define SMALL_BYTES KIB(64)
/* The limit of chunks that run at once in the loop's thread: some 2,000 samples, which take 2 us. */
#define NOW_BYTES KIB(16)
/* The time for which a helper's thread awaits the next small job without blocking, as GPUs' threads do. */
#define NEXT_US 100
/* The work that takes as long as moving a byte: sums in two passes, in f2 too, take no longer than their bytes; chunks
 * of other work are smaller. */
#define WORK_PER_BYTE 2

/* Memory for values between steps. */
struct room {
    void *memory;
    uint64_t size_bytes;
};

/* A chunk that is computed in turns: its step and how far the step has got. */
struct cpu_run {
    uint32_t step;           /* index of the chunk's step */
    struct cpu_task *task;   /* the step's task, if it is a scan or a reduction; */
    struct step_task *tiles; /* task of the step otherwise. Both NULL: the step has not begun */
    uint64_t had_us;         /* time used of this slice */
    struct room between;
};

struct cpu_device {
    struct device device; /* must be the first member */
    struct cpu_pool *pool;
    struct cpu_pool *now;             /* has one thread: the caller of run_now */
    struct chunk_queue chunks, small; /* accepted and not computed */
    struct cpu_run *run;              /* the run of the first of `chunks`, once it has had a turn */
    bool passed;                      /* small chunks have passed that first chunk since its last turn */
    struct chunk_queue done;
    struct room spare;    /* a room that no chunk has, whose pages are there */
    uint64_t taken_bytes; /* "device memory" that is allocated, by any thread */
};

static struct cpu_device *cpu_of(struct device *device)
{
    return (struct cpu_device *)device;
}

static int cpu_start(struct device *device, struct chunk *chunk)
{
    struct cpu_device *self = cpu_of(device);
    chunk_queue_push(chunk->small ? &self->small : &self->chunks, chunk);
    return 0;
}

static int cpu_run_variant(const struct chunk *chunk, const struct step *step, const struct scan_rows *rows)
{
    const uint32_t number = step->rule.algorithm - 1;
    if (step->operation != OPERATION_scan || !variant_list[number].on_cpu)
        return -EOPNOTSUPP;
    struct variant_scan scan = variant_scan_from(rows, chunk->first, chunk->count);
    variant_run_cpu((enum variant_id)number, &scan);
    return 0;
}

/* A turn of a chunk's steps, and the time of its end. */
struct turn {
    const struct cpu_device *device;
    const struct chunk *chunk;
    uint64_t end_us;
};

static bool turn_is_over(void *context)
{
    const struct turn *turn = context;
    return chunk_is_dropped(turn->chunk) || turn->device->small.first || device_is_hurried(&turn->device->device) ||
           clock_us() >= turn->end_us;
}

/* Returns the chunk with its memories. */
static struct chunk_rows rows_of(const struct cpu_run *run, const struct chunk *chunk)
{
    unsigned char *memory = run->between.memory;
    return (struct chunk_rows){.chunk = chunk,
                               .rows = chunk->rows,
                               .operands = chunk->operands,
                               .first = chunk->first,
                               .memories = {memory, memory ? memory + chunk->between_bytes : NULL}};
}

static void task_begin(struct cpu_device *self, struct cpu_run *run, const struct chunk *chunk)
{
    const struct step *step = &chunk->steps[run->step];
    const struct chunk_rows steps = rows_of(run, chunk);
    if (step->kernel) {
        const struct step_rows rows = chunk_step_rows(&steps, run->step);
        run->tiles = step_task_create(self->pool, step->kernel, &rows, step->parameters, sizeof step->parameters,
                                      chunk->first, chunk->count);
    } else {
        const struct scan_rows rows =
            chunk->operands ? chunk_scan_rows(&steps, run->step) : chunk_plain_rows(chunk, run->step);
        run->task = cpu_task_create(self->pool, &rows, chunk->first, chunk->count);
    }
}

static void task_end(struct cpu_run *run)
{
    cpu_task_destroy(run->task);
    step_task_destroy(run->tiles);
    run->task = NULL;
    run->tiles = NULL;
}

/* Runs a step for a turn. Returns 0 when the step is done, 1 when some of it is left, or -errno. */
static int step_run_turn(struct cpu_device *self, struct cpu_run *run, const struct chunk *chunk, struct turn *turn)
{
    const struct step *step = &chunk->steps[run->step];
    if (step->kernel && step->algorithm)
        return -EOPNOTSUPP;
    if (!step->kernel && step->rule.algorithm) {
        const struct scan_rows rows = chunk_plain_rows(chunk, run->step);
        return cpu_run_variant(chunk, step, &rows);
    }
    if (!run->task && !run->tiles)
        task_begin(self, run, chunk);
    if (run->tiles)
        return step_task_run(run->tiles, turn_is_over, turn);
    return run->task ? cpu_task_run(run->task, turn_is_over, turn) : -ENOMEM;
}

/* Runs a chunk's steps for a turn. Returns 0 when all are done, 1 when some are left, or -errno. */
static int cpu_run_turn(struct cpu_device *self, struct cpu_run *run, const struct chunk *chunk, struct turn *turn)
{
    int r = 0;
    while (run->step < chunk->step_count && !r && !(r = step_run_turn(self, run, chunk, turn))) {
        task_end(run);
        run->step++;
        if (run->step < chunk->step_count && turn_is_over(turn))
            r = 1;
    }
    return r == 1 && chunk_is_dropped(chunk) ? -ECANCELED : r;
}

static void run_destroy(struct cpu_run *run)
{
    task_end(run);
    free(run->between.memory);
    free(run);
}

/* Begins a chunk. Returns NULL without memory. */
static struct cpu_run *run_create(struct cpu_device *self, const struct chunk *chunk)
{
    struct cpu_run *run = calloc(1, sizeof *run);
    const uint64_t size_bytes = chunk->between_bytes * between_memories(chunk);
    if (!run || size_bytes == 0)
        return run;
    if (self->spare.size_bytes < size_bytes) {
        free(self->spare.memory);
        self->spare = (struct room){malloc(size_bytes), size_bytes};
    }
    run->between = self->spare;
    self->spare = (struct room){NULL, 0};
    if (run->between.memory)
        return run;
    free(run);
    return NULL;
}

/* Ends a chunk's run, and keeps its memory for the next. */
static void run_end(struct cpu_device *self, struct cpu_run *run)
{
    if (run->between.memory && !self->spare.memory) {
        self->spare = run->between;
        run->between.memory = NULL;
    }
    run_destroy(run);
}

static void cpu_discard(struct device *device, void *rest)
{
    (void)device;
    run_destroy(rest);
}

/* Completes the first chunk, which is done or at the end of its slice. */
static void cpu_complete(struct cpu_device *self, int status)
{
    struct chunk *chunk = chunk_queue_pop(&self->chunks);
    chunk->status = status;
    chunk_queue_push(&self->done, chunk);
    self->run = NULL;
}

/* Runs the first chunk, which checks an index. */
static void cpu_check_first(struct cpu_device *self)
{
    struct chunk *chunk = self->chunks.first;
    const uint64_t begin_us = clock_us();
    struct slept slept;
    slept_begin(&slept);
    const struct chunk_rows rows = {.chunk = chunk, .rows = chunk->rows, .operands = chunk->operands};
    const struct step_rows index = chunk_index_rows(&rows);
    chunk->fault = index_check(&index, chunk->first, chunk->count, (struct index_range){chunk->from, chunk->below});
    chunk->kernel_us = clock_us() - begin_us;
    chunk->slept_us = slept_us(&slept);
    cpu_complete(self, 0);
}

/* Runs the first chunk's steps for a turn, and notes for how long its memory had a thread sleep. Where the pool has
 * more than one thread, this one also waits for the others. */
static int cpu_run_watched(struct cpu_device *self, struct chunk *chunk, struct turn *turn)
{
    struct slept slept;
    slept_begin(&slept);
    cpu_pool_watch(self->pool);
    const int r = cpu_run_turn(self, self->run, chunk, turn);
    const uint64_t pool_us = cpu_pool_end_watch(self->pool);
    chunk->slept_us += cpu_pool_threads(self->pool) > 1 ? pool_us : slept_us(&slept);
    return r;
}

/* Goes on with the oldest chunk until it is done, its slice is over, or a small chunk is there. */
static void cpu_run_first(struct cpu_device *self)
{
    struct chunk *chunk = self->chunks.first;
    const uint64_t begin_us = clock_us();
    if (!self->run) {
        self->run = chunk->rest ? chunk->rest : run_create(self, chunk);
        chunk->rest = NULL;
        chunk->kernel_us = chunk->slept_us = 0;
    }
    struct cpu_run *run = self->run;
    if (!run) {
        cpu_complete(self, -ENOMEM);
        return;
    }
    struct turn turn = {self, chunk, chunk->slice_us ? begin_us + chunk->slice_us - run->had_us : UINT64_MAX};
    int r = cpu_run_watched(self, chunk, &turn);
    const uint64_t end_us = clock_us();
    chunk->kernel_us += end_us - begin_us;
    run->had_us += end_us - begin_us;
    if (r == 1 && chunk->slice_us && run->had_us >= chunk->slice_us) {
        run->had_us = 0;
        chunk->rest = run;
        cpu_complete(self, 0);
    } else if (r != 1) {
        run_end(self, run);
        cpu_complete(self, r);
    }
}

static int cpu_run_small(struct cpu_pool *pool, const struct chunk *chunk)
{
    int r = 0;
    for (uint32_t i = 0; i < chunk->step_count && !r; i++) {
        const struct scan_rows rows = chunk_plain_rows(chunk, i);
        r = scan_cpu(pool, &rows, chunk->first, chunk->count);
    }
    return r;
}

static void cpu_run_now(struct device *device, struct chunk *chunk)
{
    const uint64_t begin_us = clock_us();
    chunk->status = cpu_run_small(cpu_of(device)->now, chunk);
    chunk->kernel_us = clock_us() - begin_us;
}

static void cpu_run_all_small(struct cpu_device *self)
{
    uint64_t begin_us = clock_us(), end_us;
    for (struct chunk *chunk; (chunk = chunk_queue_pop(&self->small)); begin_us = end_us) {
        chunk->status = cpu_run_small(self->pool, chunk);
        end_us = clock_us();
        chunk->kernel_us = end_us - begin_us;
        chunk_queue_push(&self->done, chunk);
    }
}

/* Runs small chunks first, but not twice in a row while others wait: between them the oldest other chunk gets a turn.
 */
static void cpu_run_next(struct cpu_device *self)
{
    bool small = self->small.first && !(self->passed && self->chunks.first);
    self->passed = small;
    if (small)
        cpu_run_all_small(self);
    else if (self->chunks.first && self->chunks.first->below)
        cpu_check_first(self);
    else if (self->chunks.first)
        cpu_run_first(self);
}

static struct chunk *cpu_finish(struct device *device, int timeout_ms)
{
    struct cpu_device *self = cpu_of(device);
    /* The device computes nothing outside this function. */
    if (!self->done.first && timeout_ms > 0)
        cpu_run_next(self);
    return chunk_queue_pop(&self->done);
}

/* Does nothing: the processor reaches all memory as it is. */
static int cpu_memory_pin(struct device *device, void *base, uint64_t size_bytes)
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

/* Refuses to export: only this process has its "device memory". */
static int cpu_export_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                             struct exported_memory **out)
{
    (void)device, (void)size_bytes, (void)sharing, (void)out;
    return -EOPNOTSUPP;
}

static int cpu_export_open(struct device *device, const struct export_ticket *ticket, uint64_t offset,
                           uint64_t size_bytes, struct exported_memory **out, struct error *error)
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
    cpu_pool_destroy(cpu_of(device)->now);
    free(cpu_of(device)->spare.memory);
    free(device);
}

static const struct device_ops cpu_ops = {
    .start = cpu_start,
    .run_now = cpu_run_now,
    .finish = cpu_finish,
    .discard = cpu_discard,
    .memory_pin = cpu_memory_pin,
    .memory_unpin = cpu_memory_pin,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .export_create = cpu_export_create,
    .export_open = cpu_export_open,
    .memory_used_bytes = cpu_memory_used_bytes,
    .close = cpu_close,
};

/* Reads the processor's name as Linux knows it. */
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

static void describe(struct device_info *info, uint64_t memory_limit_bytes)
{
    struct sysinfo memory;
    *info = (struct device_info){.backend = "cpu",
                                 .memory_limit_bytes = memory_limit_bytes,
                                 .chunk_bytes = MIB(16),
                                 .resident_chunk_bytes = MIB(16),
                                 .work_per_byte = WORK_PER_BYTE,
                                 .slice_us = LIMIT_SLICE_MS * 1000,
                                 .slots = SLOTS,
                                 .small_slots = LIMIT_SMALL_CHUNKS,
                                 .small_bytes = SMALL_BYTES,
                                 .small_ragged = true,
                                 .now_bytes = NOW_BYTES,
                                 .on_processor = true};
    cpu_name(info->name, sizeof info->name);
    if (sysinfo(&memory) == 0)
        info->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
}

/* Opens a device that takes over the pool; a pool that is NULL has failed with errno. */
static int open_with(struct cpu_pool *pool, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    struct cpu_device *self = pool ? calloc(1, sizeof *self) : NULL;
    struct cpu_pool *now = self ? cpu_pool_create(1) : NULL;
    if (!now) {
        const int cause = errno;
        free(self);
        cpu_pool_destroy(pool);
        return error_set(error, -ENOMEM, "could not start the threads of the CPU device: %s", strerror(cause));
    }
    self->pool = pool;
    self->now = now;
    self->device.ops = &cpu_ops;
    describe(&self->device.info, memory_limit_bytes);
    *out = &self->device;
    return 0;
}

int device_cpu_open(unsigned threads, uint64_t memory_limit_bytes, struct device **out, struct error *error)
{
    return open_with(cpu_pool_create(threads), memory_limit_bytes, out, error);
}

int device_cpu_open_helper(unsigned threads, struct device **out, struct error *error)
{
    int r = open_with(cpu_pool_create_idle(threads), 0, out, error);
    if (r)
        return r;
    struct device_info *info = &(*out)->info;
    info->helps = true;
    info->spin_us = NEXT_US;
    return 0;
}

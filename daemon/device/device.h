/*
 * The interface between the daemon and whatever computes: a small table of functions. Implementations: cuda, cpu,
 * manual (a test decides when and in which order chunks complete) and fault (wraps another device and fails the n-th
 * call).
 *
 * Threads: start, finish and close are called by one thread at a time, which is the device's own in the daemon. The
 * other functions may be called by any thread meanwhile, run_now by one at a time. Functions return 0 or -errno.
 */
#ifndef DAEMON_DEVICE_H
#define DAEMON_DEVICE_H

#include <stdbool.h>
#include <string.h>

#include "kernels/steps/index/index.h"
#include "kernels/steps/step.h"
#include "protocol/limits.h"
#include "protocol/operations.h"
#include "protocol/status.h"

/* Memory that a device works on. Host memory is pinned in units of pin_unit_bytes, counted from base; a copy must not
 * cross from one unit into the next. Device memory is one unit. */
struct span {
    enum scand_place place;
    void *base;
    uint64_t size_bytes;
    uint64_t pin_unit_bytes;
    bool staged; /* host memory that is not pinned: it travels through pinned memory of the device */
    bool large;  /* host memory whose client may free so much of it at once that whoever touches it waits for long */
};

/* The numbers of a job's operands: the job's own, and then those of its steps. */
enum { OPERAND_INPUT, OPERAND_OUTPUT, OPERAND_OFFSETS, OPERAND_FURTHER };

#define STEP_PARAMETER_BYTES 128

/* A step: an operation with its parameters, by which a device computes it. */
struct step {
    enum operation_id operation;
    const struct step_kernel *kernel; /* NULL: a scan or a reduction */
    union {
        struct scan_rule rule; /* for scan and reduce */
        /* The struct of the operation's kernel, for other operations. */
        _Alignas(8) unsigned char parameters[STEP_PARAMETER_BYTES];
    };
    uint32_t algorithm; /* 0: the kernel's own; else 1 + index in step_variant_list; for scans, the rule's */
    uint64_t length;    /* elements of a row of the step's result; for ragged rows, of the line */
    uint64_t work;      /* the cost of an element, in passes of sums of f32 or f64 */
    uint8_t further[LIMIT_OPERANDS]; /* operand numbers, in the order of the operation's list; 0: absent */
};

/* True when `algorithm` names how the step is done; a step without a name runs on any device. */
static inline bool step_is_named(const struct step *step)
{
    return (step->kernel ? step->algorithm : step->rule.algorithm) != 0;
}

/*
 * Rows first <= r < first + count of a job, which a device computes at a time. The first step reads the input, each
 * other step reads the result of the step before, in the output's dtype, and the last step writes the output.
 *
 * A plain chunk is one reduction, or scans of which only the first may have a further operand: values between them are
 * in the output, where they work in place (rows_then). between.h says where steps of other chunks read and write.
 */
struct chunk {
    /* The number of rows, and, for a plain chunk, their layout and the rule of the first step. Addresses are in the
     * spans. */
    const struct scan_rows *rows;
    /* Operands by number, operand_count of them; an operand without an origin is absent. NULL: the chunk is plain. */
    const struct step_operand *operands;
    uint32_t operand_count, written; /* written: bit i: operand i is written */
    uint64_t first, count;
    const struct step *steps;
    uint32_t step_count;
    /* Not 0: the chunk computes nothing. It has no steps and one operand, an index, whose rows are searched for values
     * that are not in [from, below). */
    uint64_t below, from;
    struct index_fault fault;              /* filled by the device: the first such value */
    uint64_t between_bytes;                /* bytes of a memory for values between steps; 0: none */
    struct span spans[LIMIT_JOB_OPERANDS]; /* the buffers that operands lie in, by number */
    void *owner;                           /* the job, for whoever gets the chunk back */
    struct load *load;                     /* the job's: what was read from files for it */
    uint64_t handed_us;                    /* the service's: when the device got it */
    uint64_t job;                          /* the service's: the number of the job */
    uint32_t user;                         /* the service's: whose job it is */
    struct device *device;                 /* the scheduler's: the device that has it */
    bool small;                            /* the scheduler's: takes one of the device's small slots */
    uint64_t bytes;                        /* the scheduler's: the size by which its time is estimated */
    uint64_t charge_ns;                    /* the scheduler's: the estimate on its user's accounts */
    uint64_t away_us;                      /* the service's: for how long the device had it */
    bool dropped;                          /* set by chunk_drop: nobody wants its results */
    /* The time after which the device interrupts a long row, if it has slices; else 0. A chunk that comes back with
     * `rest` is not finished: start it again with this `rest`, or give it up with `discard`. */
    uint64_t slice_us;
    void *rest; /* the device's */
    /* The device fills in the status, 0 or -errno, and the microseconds. */
    int status;
    uint64_t upload_us, kernel_us, download_us;
    uint64_t slept_us;  /* of kernel_us, the time that a thread slept at the client's memory, if the device knows */
    struct chunk *next; /* links chunks for whoever holds them */
};

/* Chunks that are linked by next, in the order in which they came; all zeros is none. */
struct chunk_queue {
    struct chunk *first, *last;
};

static inline void chunk_queue_push(struct chunk_queue *queue, struct chunk *chunk)
{
    chunk->next = NULL;
    *(queue->first ? &queue->last->next : &queue->first) = chunk;
    queue->last = chunk;
}

/* Returns the first chunk, or NULL. */
static inline struct chunk *chunk_queue_pop(struct chunk_queue *queue)
{
    struct chunk *chunk = queue->first;
    if (chunk)
        queue->first = chunk->next;
    return chunk;
}

/* Returns all of them, linked by next. */
static inline struct chunk *chunk_queue_pop_all(struct chunk_queue *queue)
{
    struct chunk *all = queue->first;
    queue->first = NULL;
    return all;
}

/* Returns a chunk's rows as a further scan takes them, wherever a device has them: results, scanned in place. */
static inline struct scan_rows rows_then(const struct scan_rows *rows, const struct scan_rule *rule)
{
    struct scan_rows then = *rows;
    then.rule = *rule;
    then.input = rows->output;
    then.input_stride = rows->output_stride;
    memcpy(then.input_outer_strides, rows->output_outer_strides, sizeof then.input_outer_strides);
    then.coefficients = NULL;
    return then;
}

/* Drops a chunk that a device has: it may come back sooner, with -ECANCELED. Any thread may call this. */
static inline void chunk_drop(struct chunk *chunk)
{
    __atomic_store_n(&chunk->dropped, true, __ATOMIC_RELAXED);
}

static inline bool chunk_is_dropped(const struct chunk *chunk)
{
    return __atomic_load_n(&chunk->dropped, __ATOMIC_RELAXED);
}

#define DEVICE_IDENTITY_BYTES 192 /* without tabs and line ends */

struct device_info {
    char name[LIMIT_NAME_BYTES];
    char backend[16];
    char identity[DEVICE_IDENTITY_BYTES]; /* all that the device's speed depends on; "": it is not measured */
    uint64_t memory_bytes;                /* memory of the device */
    uint64_t memory_limit_bytes;          /* memory that the daemon may take in all */
    /* A chunk's input, output and coefficients together should stay below this; with samples of one size, the input
     * and the coefficients. */
    uint64_t chunk_bytes;
    uint64_t resident_chunk_bytes; /* size of chunks on device memory alone, which are cut only for fairness */
    /* The number of passes of sums over a sample that take about as long as moving a byte: rows that take longer to
     * compute than to move count as so many bytes more. 0: no rows do. */
    uint32_t work_per_byte;
    /* Where work_per_byte is 0: the work of rows in tiles besides that of their samples (row_work of an operation) that
     * takes about as long as moving a chunk. 0: rows take none. */
    uint64_t chunk_row_work;
    uint64_t slice_us;    /* the time after which the device interrupts long rows; 0: it cannot */
    uint32_t slots;       /* chunks that it can hold at a time */
    uint64_t bytes_per_s; /* each way, measured with chunk_bytes and slots; 0: not measured */
    /* The number and size of small jobs' chunks (job_is_small) that the device holds besides. Both are 0 where nothing
     * is gained by telling small chunks apart. */
    uint32_t small_slots;
    uint64_t small_bytes;
    bool small_ragged;  /* small chunks may have ragged rows, LIMIT_SMALL_RAGGED_ROWS at most */
    uint64_t now_bytes; /* small chunks up to this are computed sooner than a thread wakes (run_now); 0: none */
    uint32_t spin_us;   /* time for which threads poll for more work for the device before they block */
    /* The device helps devices of another kind: it has no memory for buffers, and leaves to them the variants of
     * tutorials and, where they leave off no rows, all long rows. */
    bool helps;
    bool on_processor; /* the device computes by threads, which may have to wait for processors */
};

/* Device memory that is exported to other processes, or memory of another process that is opened here. Only the address
 * is for others than the device. */
struct exported_memory {
    void *base;
};

/* A ticket by which a process hands over an allocation of device memory. */
struct export_ticket {
    uint8_t handle[SCAND_IPC_BYTES]; /* a cudaIpcMemHandle_t, where fd is -1 */
    int fd;                          /* made by cuMemExportToShareableHandle */
    uint64_t allocation_bytes;       /* the size of the whole allocation; unknown for another process's handle */
};

struct device;

struct device_ops {
    /* Accepts a chunk and does not wait for it. At most info.slots chunks, and info.small_slots small ones, are out at
     * a time. `finish` may be the first to run small chunks, several together. After an error the chunk stays the
     * caller's. */
    int (*start)(struct device *device, struct chunk *chunk);
    /* Computes a small chunk of at most info.now_bytes on the calling thread, whatever the device is doing, and fills
     * its status; one chunk at a time. NULL on devices whose now_bytes is 0. */
    void (*run_now)(struct device *device, struct chunk *chunk);
    /* Returns a chunk that has completed, in any order, its status filled. Waits for at most timeout_ms, with 0 not at
     * all, and returns NULL when no chunk completed by then. After an error that ends the device, every chunk that is
     * out completes with -EOWNERDEAD. */
    struct chunk *(*finish)(struct device *device, int timeout_ms);
    /* Frees the `rest` of an interrupted chunk. May be NULL if info.slice_us is 0. */
    void (*discard)(struct device *device, void *rest);
    /* Pins host memory for the device and all others of its kind: one unit, page-aligned. */
    int (*memory_pin)(struct device *device, void *base, uint64_t size_bytes);
    int (*memory_unpin)(struct device *device, void *base, uint64_t size_bytes);
    /* Allocates device memory within memory_limit_bytes, zeroed; -EDQUOT beyond that limit. */
    int (*allocate)(struct device *device, uint64_t size_bytes, void **out);
    void (*free)(struct device *device, void *memory, uint64_t size_bytes);
    /* Allocates zeroed device memory for other processes: a multiple of LIMIT_SHARED_UNIT_BYTES, within
     * memory_limit_bytes. -EDQUOT beyond that limit; -EOPNOTSUPP, from export_open too: the device has no such memory.
     */
    int (*export_create)(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                         struct exported_memory **out);
    /* Opens bytes `offset` to offset + size_bytes of another process's allocation. The ticket's descriptor stays the
     * caller's. -ENODEV: the memory is another device's; other failures come with *error. */
    int (*export_open)(struct device *device, const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes,
                       struct exported_memory **out, struct error *error);
    /* Makes a ticket for memory of export_create; its descriptor is the caller's. This function and export_close are
     * never called where nothing can be created or opened. */
    int (*export_ticket)(struct device *device, const struct exported_memory *memory, struct export_ticket *out);
    /* Frees memory of export_create; closes memory of export_open. */
    void (*export_close)(struct device *device, struct exported_memory *memory);
    /* Returns the bytes of device memory taken now, slots included. */
    uint64_t (*memory_used_bytes)(struct device *device);
    void (*close)(struct device *device);
};

struct device {
    const struct device_ops *ops;
    struct device_info info;
    unsigned number; /* among the daemon's devices, from 0 */
    bool hurried;    /* set by the thread that starts chunks: small chunks wait, so `finish` must return soon */
    bool lost;       /* set by any thread: the device does nothing in this process any more */
};

static inline void device_hurry(struct device *device, bool hurried)
{
    __atomic_store_n(&device->hurried, hurried, __ATOMIC_RELAXED);
}

static inline bool device_is_hurried(const struct device *device)
{
    return __atomic_load_n(&device->hurried, __ATOMIC_RELAXED);
}

static inline void device_lose(struct device *device)
{
    __atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
}

/* True when the device is lost, also where no chunk tells: whoever allocated or pinned memory may meet the error first.
 */
static inline bool device_is_lost(const struct device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_RELAXED);
}

/* The daemon's devices, by number; at least one. They are of one kind, so that host memory pinned for the first is
 * pinned for all, except devices that help: these come last and need no pinned memory. */
struct device_set {
    struct device *devices[LIMIT_DEVICES];
    unsigned count;
};

static inline int device_set_pin(const struct device_set *set, void *base, uint64_t size_bytes)
{
    return set->devices[0]->ops->memory_pin(set->devices[0], base, size_bytes);
}

static inline int device_set_unpin(const struct device_set *set, void *base, uint64_t size_bytes)
{
    return set->devices[0]->ops->memory_unpin(set->devices[0], base, size_bytes);
}

static inline bool device_set_is_lost(const struct device_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (device_is_lost(set->devices[i]))
            return true;
    return false;
}

static inline uint64_t device_free_bytes(struct device *device)
{
    uint64_t used = device->ops->memory_used_bytes(device), limit = device->info.memory_limit_bytes;
    return used < limit ? limit - used : 0;
}

#endif

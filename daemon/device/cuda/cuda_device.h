/*
 * The CUDA device's inside, shared by the files that are it, each of which needs those before: memory.c, run.c,
 * long_row.c, slot.c, device_cuda.c. All is the device thread's, but for what says otherwise.
 */
#ifndef DAEMON_CUDA_DEVICE_H
#define DAEMON_CUDA_DEVICE_H

#include <cuda_runtime.h>
#include <stdatomic.h>

#include "chain.h"
#include "daemon/device/device.h"
#include "protocol/clock.h"
#include "small.h"
#include "stage.h"

#define SLOTS         LIMIT_CHUNKS_IN_FLIGHT
#define SLOT_BYTES    MIB(16)
#define OFFSETS_MOST  (LIMIT_CHUNK_ROWS + 1)
#define VERDICT_BYTES (2 * sizeof(uint64_t))
#define OFFSETS_BYTES (OFFSETS_MOST * sizeof(uint64_t) + VERDICT_BYTES)
#define BETWEEN_BYTES ((SMALL_BATCHES + 1) * SMALL_BYTES)

/* The stages of a chunk. The processor copies rows in memory that is not pinned in the first and the last one, in which
 * other rows have nothing to do; the other stages have a stream each. */
enum stage { STAGE_GATHER, STAGE_UPLOAD, STAGE_KERNEL, STAGE_DOWNLOAD, STAGE_SCATTER, STAGES };

/*
 * A row that would take longer than launches may: its steps are scanned by ranges (scan_cuda_range), one launch after
 * the other on a stream that all others go before. Between two of them it ends if nobody wants it any more, or leaves
 * the device to others. It has memory of its own, as the device's is theirs then.
 */
struct long_row {
    uint32_t step;  /* step of its chunk, and */
    uint64_t range; /* range of that step that is queued next */
    void *workspace, *between;
    uint64_t workspace_bytes, between_bytes;
    struct long_row *next; /* links rows that are to be freed */
};

/* An operand that all rows share, in a slot since an earlier chunk of the job. */
struct kept {
    const unsigned char *from;
    unsigned char *at; /* NULL: there is none */
    uint64_t bytes;
};

struct slot {
    unsigned char *memory;
    unsigned char *pinned; /* pinned memory where rows are staged, each where it lies in `memory`; NULL until one is */
    cudaEvent_t passed[STAGES];
    enum stage stage; /* stage that its chunk is in; STAGES: it is done */
    uint64_t started_us;
    uint64_t entered_us; /* the stage, or what was queued last of a long row */
    uint64_t took_us[STAGES];
    struct chunk *chunk, copied;                      /* NULL: it is free. copied: as its samples travel */
    struct scan_rows joined;                          /* rows of `copied`, of ragged rows as one */
    struct sides sides;                               /* sides of `copied` */
    uint64_t kept_job;                                /* job of whose operands it keeps some, or 0 */
    struct kept kept[LIMIT_JOB_OPERANDS];             /* by number */
    struct scan_rows rows, between;                   /* rows as kernels take them */
    struct step_operand operands[LIMIT_JOB_OPERANDS]; /* operands as kernels take them, of a chunk that is not plain */
    struct long_row *row;                             /* NULL: the chunk is none */
    bool gathers, scatters;
    struct stage_task task;
    int status; /* not 0: nothing more is queued for it */
    /* Offsets of a chunk of ragged rows: pinned, to be uploaded from; on the device. Behind them lies the verdict of a
     * chunk that checks values (kernels/steps/index). */
    uint64_t *offsets, *device_offsets;
    void *beyond; /* for what is between steps and too large for `memory`, or NULL */
};

/* Device memory for the kernels of one stream, as much as most so far. */
struct grown {
    void *memory;
    uint64_t size_bytes;
};

struct cuda_device {
    struct device device; /* first */
    int index;
    cudaStream_t streams[STAGES], long_stream;
    struct slot slots[SLOTS];
    struct slot *out[SLOTS]; /* slots that have a chunk, oldest first */
    unsigned out_count;
    uint64_t passed_us[STAGES]; /* time at which the last chunk passed each stage */
    struct cuda_small small;
    struct cuda_stage *stage;         /* NULL until something is staged */
    uint64_t waited_us;               /* since when nothing has finished, while chunks are out */
    unsigned char *between;           /* SMALL_BYTES for each batch of small ones, and for STAGE_KERNEL's stream */
    struct grown workspace, memories; /* memories: for values between steps of chunks that are not plain */
    void *spare;                      /* a long row's workspace that none has, or NULL */
    uint64_t spare_bytes;
    uint64_t taken_bytes;                /* device memory in use; any thread's */
    _Atomic(struct long_row *) unwanted; /* to be freed before more is taken; any thread's */
};

static inline struct cuda_device *cuda_of(struct device *device)
{
    return (struct cuda_device *)device;
}

/* memory.c. */

/* The one translation of CUDA errors, which also clears the latched one. */
int cuda_errno(struct cuda_device *self, cudaError_t e);
/* Counts device memory that is to be taken; false: it would be more than the limit. From any thread, as are those of
 * device_ops. */
bool cuda_reserve(struct cuda_device *self, uint64_t size_bytes);
void cuda_unreserve(struct cuda_device *self, uint64_t size_bytes);
/* Device memory for kernels, of any contents. */
cudaError_t cuda_acquire(struct cuda_device *self, uint64_t size_bytes, void **out);
void cuda_release(struct cuda_device *self, void *memory, uint64_t size_bytes);
cudaError_t cuda_grow(struct cuda_device *self, struct grown *grown, uint64_t size_bytes);
int cuda_allocate(struct device *device, uint64_t size_bytes, void **out);
void cuda_free(struct device *device, void *memory, uint64_t size_bytes);
int cuda_device_export_create(struct device *device, uint64_t size_bytes, enum scand_sharing sharing,
                              struct exported_memory **out);
int cuda_device_export_open(struct device *device, const struct export_ticket *ticket, uint64_t offset,
                            uint64_t size_bytes, struct exported_memory **out, struct error *error);
int cuda_device_export_ticket(struct device *device, const struct exported_memory *memory, struct export_ticket *out);
void cuda_device_export_close(struct device *device, struct exported_memory *memory);
uint64_t cuda_memory_used_bytes(struct device *device);
int cuda_memory_pin(struct device *device, void *base, uint64_t size_bytes);
int cuda_memory_unpin(struct device *device, void *base, uint64_t size_bytes);

/* run.c. */

/* Queues all steps of a plain chunk, whose values are between them in `between`. */
cudaError_t cuda_run_steps(struct cuda_device *self, const struct chunk *chunk, const struct scan_rows *rows,
                           const struct scan_rows *between, cudaStream_t stream);
/* Queues all steps of a chunk in a slot that is not plain, on STAGE_KERNEL's stream. */
cudaError_t cuda_run_operands(struct cuda_device *self, const struct slot *slot);
/* Queues the check of a chunk that checks values; the verdict is then behind the slot's offsets. */
cudaError_t cuda_run_check(struct cuda_device *self, const struct slot *slot);
extern const struct small_ops cuda_small_ops;

/* long_row.c. */

/* Makes a long row of the slot's chunk, if that is long enough and none of its samples are copied. 0, also where no
 * long row is made, or -errno. */
int long_row_create(struct cuda_device *self, struct slot *slot);
/* Queues the row's next range. */
cudaError_t long_row_queue(struct cuda_device *self, struct slot *slot);
bool long_row_is_queued(const struct slot *slot); /* to the end */
void long_row_destroy(struct cuda_device *self, struct long_row *row);
/* Gives up a long row, from any thread: it is freed later. */
void long_row_discard(struct cuda_device *self, struct long_row *row);

/* slot.c. */

cudaError_t slot_init(struct cuda_device *self, struct slot *slot);
/* Begins a chunk in a free slot. 0 or -errno: it was not begun. */
int slot_start(struct cuda_device *self, struct slot *slot, struct chunk *chunk);
/* Goes on with its chunk as far as that is possible now. cudaSuccess when it is done, cudaErrorNotReady when not. */
cudaError_t slot_look(struct cuda_device *self, struct slot *slot);
/* Gives a chunk back that is done; with `status`, as the device is lost. */
struct chunk *slot_finish(struct cuda_device *self, struct slot *slot, int status);

#endif

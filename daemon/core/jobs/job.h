/*
 * A job: operands and steps, from its request to its last chunk. Its life is a table of states whose moves are checked.
 * No clock: times come in as microseconds of a clock of the caller's choice.
 */
#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

#include "daemon/core/schedule/deadlines.h"
#include "offsets.h"
#include "operand.h"
#include "request.h"
#include "values.h"

/*  state     meaning */
#define JOB_STATES(X)                                                             \
    X(QUEUED)  /* nothing handed out yet; its offsets may have yet to be read */  \
    X(RUNNING) /* rows are being handed out */                                    \
    X(ENDING)  /* nothing more is handed out; chunks are still with the device */ \
    X(ENDED)   /* nothing is with the device; the outcome is known */

enum job_state {
#define X(NAME) JOB_##NAME,
    JOB_STATES(X)
#undef X
};

struct client;
struct group;
struct lane;
struct loads;

/* The range of all bytes that a job reads, or writes: most pairs of jobs are seen to be apart by it. */
struct reach {
    const struct buffer *buffer; /* NULL: there are none */
    struct extent extent;
};

/* The earlier jobs of its lane that a job is known to be apart from. Earlier jobs only become fewer, and what they
 * touch does not grow, so two jobs are compared until they are found apart, and no more. */
struct apart {
    uint64_t order[SCAND_PRIORITY_COUNT]; /* of each class: jobs up to this one that are queued are apart from it */
    uint64_t waits_for;                   /* the order of a job without rows to hand out that it waits for; 0: none */
    bool of_queued, of_all;               /* all jobs that are queued are, or all there are */
};

struct job {
    struct client *client; /* held; who gets the reply, if still there */
    uint32_t msgid;        /* the job's id among its client's */
    uint32_t index;        /* the job's place in a batch, from 1 on; 0: it came alone */
    struct batch *batch;   /* the batch that gets the outcome; NULL: the job came alone */
    uint64_t number;       /* the job's id among all jobs of the daemon */
    struct group *group;   /* the client's group that people see in place of the job; NULL: none */
    bool submitted;        /* the job came by job.submit or job.batch: its errors say so */
    bool wants_progress, wants_ending;
    bool after_failure; /* runs although its input is stale */
    enum job_state state;
    struct scan_rows rows;     /* the rows of its operands, as devices take them */
    uint64_t *offsets;         /* offsets of ragged rows, owned, once they are read; else NULL */
    struct reading *reading;   /* the copying of offsets; NULL: none. Until its end the rows are one, of all samples */
    struct job *next, *before; /* in a list of its lane, which is looked through for what its operands conflict with */
    uint64_t order;            /* a number among the jobs of its lane */
    struct reach reads, writes;
    struct reach touches;    /* all that it reads or writes; buffer NULL: in several buffers, or nothing */
    bool spread;             /* some of what it reads, or writes, lies in several buffers */
    struct apart apart;      /* the scheduler's */
    struct lane *lane;       /* the lane in which it is queued, or NULL */
    bool queued;             /* the scheduler's: in its lane's queue, else among its active jobs */
    uint64_t chunk_rows;     /* rows per chunk */
    uint64_t chunk_bytes;    /* bytes per chunk of ragged rows, as samples and rows count, but at least a row */
    bool plain;              /* scans one after another, or one reduction: a chunk's operands are its rows' */
    uint64_t between_bytes;  /* bytes of an element between steps, in memory of the device's; 0: there are none */
    uint64_t between_length; /* elements between steps that a row has at most, for rows of one length */
    uint64_t result_bytes;   /* bytes moved for each row besides */
    uint64_t row_bytes; /* bytes moved for each row, however short it is, or bytes that take as long to move as it takes
                           to compute */
    uint64_t sample_bytes; /* bytes moved for each sample, or bytes that take as long to move as the sample takes to
                              compute */
    uint64_t long_bytes;   /* bytes beyond which a row is a long one; 0: no row is */
    struct loads *loads;   /* owned; what it reads of files (loads.h); NULL: nothing */
    struct values values;  /* values to be checked before the first row is handed out */
    uint64_t next_row;     /* the first row not handed out, or, if it is a long one, not done */
    uint64_t rows_done;
    unsigned in_flight;         /* chunks with the device */
    bool small;                 /* the scheduler's: may take a small slot */
    bool long_out;              /* a long row is with a device */
    void *rest;                 /* the state of a long row between two times with a device, */
    struct device *rest_device; /* the device of that state, */
    uint64_t long_us;           /* and the time that the row has taken so far */
    uint64_t arrived_us, started_us;
    struct deadline deadline; /* the time by which it must have started, if there is one */
    struct msg_job_submit_result times;
    enum scand_priority priority;
    int rank;                       /* the rank of its class; 0 is the most urgent */
    struct job *peer, *peer_before; /* in the list of its client's jobs */
    uint32_t operand_count, step_count;
    /* From here on, members that a job does not have are not even set to zero: most jobs have few of them. */
    struct error outcome;                        /* code 0: nothing has gone wrong */
    struct operand operands[LIMIT_JOB_OPERANDS]; /* by number; their buffers are held */
    struct step steps[LIMIT_STEPS];
    /* The operands as devices take them, for a job that is not plain; bit i of `written`: operand i is written. */
    struct step_operand layouts[LIMIT_JOB_OPERANDS];
    uint32_t written;
};

/* The sizes by which rows are cut into chunks: about so many bytes, as samples and rows count (work_per_byte and
 * chunk_row_work of device_info). Rows of more than long_bytes can be left off; 0: none can. */
struct job_chunks {
    uint64_t bytes, long_bytes;
    uint32_t work_per_byte;
    uint64_t row_work;
};

/* Memory of jobs that have ended, for the next ones. The heap would return so much to the system when many have ended,
 * and get it back page by page. */
struct spare_jobs {
    struct job *first; /* by `next` */
    unsigned count;
};

/* A job of nothing yet, with room for as many operands; NULL without memory. */
struct job *job_create(struct spare_jobs *spare, uint32_t operand_count);
/* Checks a request against its buffers, of which operands[] has all that there are, and plans the job's chunks.
 * Returns 0, or -EINVAL and *error; takes no holds. */
int job_plan(struct job *job, struct request *request, const struct job_chunks *chunks, struct error *error);

/* Makes a planned job's rows those that a complete copy of its offsets says, which it has no need of any more. Takes
 * over the values. */
void job_make_ragged(struct job *job, struct offsets_copy *copy);
/* Checks that rows of at most so many elements have room between the job's steps: 0, or -EINVAL and *error. */
int job_check_between(const struct job *job, uint64_t length, struct error *error);
/* Checks the room between steps for ragged rows, once it is known how long they are, and whether all steps take them.
 */
int job_check_ragged(const struct job *job, uint64_t longest, struct error *error);
/* The offsets of a job that has ended, from now on the caller's; NULL: it has none. */
uint64_t *job_disown_offsets(struct job *job);
/* Destroys a job; its memory is kept in `spare` for another job, or freed where that is NULL. */
void job_destroy(struct spare_jobs *spare, struct job *job);
void spare_jobs_free(struct spare_jobs *spare);

/* Finds the reach of a job's operands for job_conflicts; needed whenever they have changed, as scheduler_add does. */
void job_find_reach(struct job *job);
bool job_operands_conflict(const struct job *later, const struct job *earlier);

static inline bool reaches_meet(const struct reach *a, const struct reach *b)
{
    return a->buffer && b->buffer && buffers_may_meet(a->buffer, &a->extent, b->buffer, &b->extent);
}

/* True when two jobs touch one buffer, and no bytes of it in common: the most common case, seen at one glance. */
static inline bool jobs_are_apart(const struct job *a, const struct job *b)
{
    return a->touches.buffer && a->touches.buffer == b->touches.buffer &&
           (a->touches.extent.end <= b->touches.extent.begin || b->touches.extent.end <= a->touches.extent.begin);
}

/* True when `later` must wait for `earlier`: one writes what the other reads or writes, or may. Inline, since for each
 * job that is to start those before it are looked through. */
static inline bool job_conflicts(const struct job *later, const struct job *earlier)
{
    if (jobs_are_apart(later, earlier))
        return false;
    const bool near = later->spread || earlier->spread || reaches_meet(&later->writes, &earlier->writes) ||
                      reaches_meet(&later->writes, &earlier->reads) || reaches_meet(&later->reads, &earlier->writes);
    return near && job_operands_conflict(later, earlier);
}

/* True when it reads some of these bytes, also as offsets that it has yet to read. */
bool job_reads(const struct job *job, const struct buffer *buffer, const struct extent *extent);
bool job_writes(const struct job *job, const struct buffer *buffer, const struct extent *extent);
/* Returns what is left of an extent once the job has written: less at either end, or all where the output leaves gaps.
 */
struct extent job_leaves(const struct job *job, const struct buffer *buffer, struct extent extent);

/* True when the device reaches all of the job's buffers and, if it is there to help others, takes such jobs. */
bool job_fits_device(const struct job *job, const struct device *device);
/* True when it is one chunk of at most this size whose rows need not wait for each other: short ones, in order 1.
 * Ragged ones only where `ragged` says so, and few. */
bool job_is_small(const struct job *job, uint64_t small_bytes, bool ragged);
bool job_is_empty(const struct job *job); /* true when the job has nothing to compute */
bool job_has_rows(const struct job *job); /* not yet handed out, or, of a long one, not done */
/* True when the next row of a job that has some is a long one: a device has it for a while, leaves it off, and goes on
 * with it when it is handed out again. Such rows are with a device one at a time. */
bool job_next_is_long(const struct job *job);
/* True when the memory of its next rows is ready, of a job that has some. What is missing is pinned before the rest. */
bool job_is_ready(const struct job *job);
/* Rows of the chunk that begins with this one. */
uint64_t job_chunk_count(const struct job *job, uint64_t first);
/* Fills *chunk with the next rows, or what is left of a long one. The job must have some, and no long one out. */
void job_next_chunk(struct job *job, struct chunk *chunk, uint64_t now_us);
/* Takes in a chunk that came back; a first error is the job's outcome. A row that was left off goes on later, or, where
 * the job has been stopped, is discarded. True when the job has ended with it. */
bool job_return(struct job *job, const struct chunk *chunk);
/* Samples of a chunk of the job. */
uint64_t job_chunk_samples(const struct job *job, const struct chunk *chunk);
/* Bytes of host memory that are read, or written, for a chunk of the job: its input and its output. */
uint64_t job_upload_bytes(const struct job *job, const struct chunk *chunk);
uint64_t job_download_bytes(const struct job *job, const struct chunk *chunk);
/* Bytes to be moved for rows first <= r < first + count: what costs are estimated by. */
uint64_t job_bytes(const struct job *job, uint64_t first, uint64_t count);
/* Return the bytes of what the next chunk would have, of a job that has rows, and of all that is not handed out. */
uint64_t job_next_bytes(const struct job *job);
uint64_t job_left_bytes(const struct job *job);
/* Stops handing out rows, with this outcome. True when the job has ended with it. */
bool job_stop(struct job *job, int code, const char *message);

#endif

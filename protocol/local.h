/*
 * The seam between libscand and libscand-local, the service inside a program: a table of functions, which both are
 * built with and of which libscand knows nothing else. Functions for one struct are called by one thread at a time.
 */
#ifndef PROTOCOL_LOCAL_H
#define PROTOCOL_LOCAL_H

#include "connection.h"
#include "messages.h"

/* A service with one client, which is this program. */
struct local;

/* What computes small jobs of a program that has a daemon. */
struct near;

/* A small job: `submit` or `run`, the other one being NULL. The buffers of its tensors are indices of memories, no two
 * of which share a byte. */
struct local_job {
    const struct msg_job_submit_params *submit;
    const struct msg_job_run_params *run;
    struct {
        void *base; /* NULL: there are no more memories */
        uint64_t size_bytes;
    } memories[LIMIT_JOB_OPERANDS];
};

struct local_library {
    const char *release; /* release of both sides: tables of other releases may be others */
    /* A service. `wake` is called from any thread when there may be something to be read, or to be done. Returns 0, or
     * -errno and *error. */
    int (*open)(void (*wake)(void *context), void *wake_context, struct local **out, struct error *error);
    /* The functions that carry bytes to the service and back; their context is the service, which ends with the
     * connection. Work that can be done at once is done while bytes are written or read. */
    struct carrier carrier;
    /* Takes a job as if its job.submit had been written, and returns true; false: it has to be written. Nothing may
     * wait to be written, and the params are such as a message could bring. */
    bool (*submit)(struct local *local, uint32_t msgid, const struct msg_job_submit_params *params);
    /* Gives the result of a job that has ended, which comes before what is read next, or was in the latest call.
     * Returns false if there is none. */
    bool (*result)(struct local *local, uint32_t *msgid, struct msg_job_submit_result *result);
    /* True when there is a result, something can be read, or is to be done by reading. */
    bool (*is_ready)(const struct local *local);
    /* The time of clock_us at which something is to be done by reading; UINT64_MAX: none. */
    uint64_t (*due_us)(const struct local *local);
    int (*near_open)(struct near **out, struct error *error);
    /* Computes a small job at once, one without a group or offsets. Returns true; or false where it is too large, or
     * anything is wrong: nothing has been done, and the daemon is to be asked. */
    bool (*near_compute)(struct near *near, const struct local_job *job, struct msg_job_submit_result *result);
    void (*near_close)(struct near *near);
};

/* The table that libscand-local exports; in a program that is linked with neither its shared nor its static library,
 * NULL. */
extern const struct local_library scand_local_library;

#endif

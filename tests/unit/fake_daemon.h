/*
 * A daemon for tests of the client: a thread that answers as a daemon does, or as the test has planned: late, never,
 * with failures or garbage, or by ending as a worker does. Its scan adds 1 to every sample.
 */
#ifndef TESTS_FAKE_DAEMON_H
#define TESTS_FAKE_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>

#include "protocol/connection.h"
#include "protocol/encoding.h"
#include "protocol/socket.h"

#define FAKE_CLIENTS 4
#define FAKE_BUFFERS 16
#define FAKE_JOBS    32
#define FAKE_NONE    (-1)
#define FAKE_LISTED  40 /* jobs that server.jobs tells of, and kernels of server.kernels */

/* Clears the screen, begins lines, is no UTF-8, and as UTF-8 a control character again; and how it may be shown. */
#define RUDE       "\x1b[2J\r\n\t\x7f\x9b\xc2\x9b\xff"
#define RUDE_SHOWN "?[2J????????"

enum fake_garbage {
    FAKE_GARBAGE_BYTES,    /* no MessagePack */
    FAKE_GARBAGE_ENVELOPE, /* no message */
    FAKE_GARBAGE_REQUEST,  /* a request, which only clients send */
    FAKE_GARBAGE_RESULT,   /* an answer without its fields */
    FAKE_GARBAGE_PROGRESS, /* progress without its fields */
    FAKE_GARBAGE_FILES,    /* an answer without fields, as that to a ping, with descriptors that it does not announce */
    FAKE_GARBAGE_RANDOM,   /* anything */
    FAKE_GARBAGE_MESSAGES, /* valid ones that nobody asked for, then the answer */
    FAKE_GARBAGE_BEHIND,   /* the answer, and with it what is no MessagePack */
    FAKE_GARBAGE_COUNT
};

struct fake_buffer {
    uint64_t id, size_bytes;
    uint8_t *base; /* NULL: device memory */
    enum scand_sharing sharing;
};

struct fake_client {
    struct connection *connection; /* NULL: free */
    uint8_t *ring_memory;          /* its rings', where the daemon scribbles */
    struct fake_buffer buffers[FAKE_BUFFERS];
    struct {
        uint32_t msgid;
        struct msg_job_submit_params params;
    } jobs[FAKE_JOBS]; /* held */
    size_t job_count;
};

struct fake {
    char folder[32], path[64];
    bool running;
    pthread_t thread;
    int listener, wake;
    struct socket_file file;
    /* The plan. Of a method, or FAKE_NONE. */
    atomic_int die_on, die_count; /* ends here instead of answering, so many times; spoils a job's output then */
    atomic_int away_ms;           /* time for which the daemon then cannot be reached */
    atomic_int silent_on;         /* never answers */
    atomic_int late_on, late_ms;
    atomic_int fail_on, fail_code;  /* -errno */
    atomic_int garbage_on, garbage; /* enum fake_garbage */
    atomic_int lie;         /* in answers to buffer.create: 1 too few descriptors, 2 too small, 3 unsealed, 4 too small
                               segments, 5 one of 64 GiB without memory, 6 a descriptor too many; to
                               buffer.export: 1 too few descriptors, 2 too small, 3 nothing at all; to rings.open: 1 too
                               few descriptors, 2 too small, 3 unsealed */
    atomic_int deaf;        /* the daemon answers nothing */
    atomic_int rings;       /* true: it offers rings; 2: and writes anything to what it sends by them */
    atomic_int hold;        /* jobs run until hold is 0 and a ping comes, or they are cancelled */
    atomic_int progress;    /* notifications before a job's answer, or when it is held */
    atomic_int version;     /* the version that hello chooses */
    atomic_int batch_jobs;  /* jobs of a batch that hello tells of, */
    atomic_int batch_steps; /* and whether they may have steps */
    atomic_int refuse;      /* the job at this place of a batch, counted from 1; 0: none */
    atomic_int forget;      /* jobs that are missing at the end of the answer to a batch */
    atomic_int client_jobs; /* client_jobs of its hello */
    atomic_int job_steps;   /* job_steps of its hello */
    atomic_int older;       /* the daemon is from before tasks */
    atomic_int rude;        /* true: its texts end in RUDE */
    atomic_int loop; /* true: its pages lead back; 2: those of users are empty, and go on for ever; 3: those of jobs
                        begin anew */
    /* Counts and arguments of what has happened. */
    atomic_int seen[METHOD_COUNT];
    atomic_int batched_runs;  /* jobs with steps that came in batches */
    atomic_int group;         /* group of the last job */
    atomic_int numbered;      /* groups that were begun; their numbers are from 100 on */
    _Atomic uint64_t wait_ms; /* wait of the last buffer.create */
    atomic_int accepted;
    atomic_int priority, deadline_ms, ending; /* fields of the last job */
    atomic_int then_count, then_op;           /* further steps, and the operator of the last one; -1: none */
    struct msg_job_run_params run;            /* the last job.run, for the test once that has been answered */
    /* The last device memory imported: the handle's first byte, or -1. */
    atomic_int imported_handle;
    atomic_uint imported_device; /* the device where it is said to be */
    atomic_ullong imported_offset, imported_allocation;
    atomic_ullong random;
    /* The thread's own. */
    uint64_t next_buffer;
    struct fake_client clients[FAKE_CLIENTS];
};

/* Initializes a daemon at a new path with an empty plan; fake_start starts it again at the same path. */
void fake_init(struct fake *fake);
void fake_start(struct fake *fake);
/* Ends the daemon like a stopped one: connections and socket are gone. */
void fake_stop(struct fake *fake);
/* Stops the fake daemon if it runs, and removes its folder. */
void fake_finish(struct fake *fake);

#endif

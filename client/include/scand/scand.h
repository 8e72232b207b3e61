/*
 * libscand: scans and reductions on the machine's GPU, or without one, through the scand daemon.
 *
 *     struct scand *daemon;
 *     struct scand_buffer *buffer;
 *     struct scand_job *job;
 *
 *     scand_connect(NULL, NULL, &daemon);
 *     scand_buffer_create(daemon, SCAND_PLACE_HOST, rows * samples * sizeof(float), &buffer);
 *     float *x = scand_buffer_data(buffer);
 *     ... fill x ...
 *
 *     struct scand_tensor t = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {rows, samples}};
 *     scand_tensor_pack(&t);
 *     struct scand_scan scan = {.input = t, .output = t, .axis = 1};
 *     scan.passes[scan.pass_count++] = SCAND_PASS_FORWARD;
 *     scan.passes[scan.pass_count++] = SCAND_PASS_BACKWARD;
 *     scan.accumulator = SCAND_ACCUMULATOR_F64;
 *     scand_submit(daemon, &scan, &job);
 *     scand_wait(job, -1, NULL);
 *     ... x holds the result ...
 *
 *     scand_disconnect(daemon);
 *
 * Every function that can fail returns an enum scand_status, SCAND_OK being 0, and leaves its outputs untouched on
 * failure; scand_message() then says what was wrong, with which value, what is allowed and what to do next. What the
 * daemon has written into a message or a name comes as UTF-8 without control characters.
 *
 * Functions that free something, and scand_disconnect, do nothing with NULL. Other pointers may be NULL only where it
 * is said: the library does not look whether they are.
 *
 * A connection, with its buffers and jobs, may be used by several threads at once: one of the waiting threads
 * reads for all. Another thread may cancel or release the job that a thread waits for. scand_disconnect makes the calls
 * of other threads return SCAND_DISCONNECTED, and waits until they have; no call may begin after it, and handles of
 * jobs are invalid. The library starts no threads and installs no signal handlers. A call takes at most 128 KiB of its
 * thread's stack, and 384 KiB where the program computes in its own process (below).
 *
 * A signal's handler that runs while a call waits ends the wait with SCAND_INTERRUPTED, if the program has a handler
 * without SA_RESTART: nothing is lost, and the call can be made again. Ending a connection or a job, releasing a buffer
 * and scand_drain are not interrupted.
 *
 * A child made by fork() makes connections of its own. Its parent's sockets are closed in it, and whatever it calls
 * with its parent's connections, buffers and jobs touches nothing of the parent's: it fails with SCAND_FORKED. What it
 * can still do is read and write the memory of host buffers, and free its copies: of handles as always, of a connection
 * with scand_disconnect, of all with scand_forget. A connection that another thread was in a call with, while this one
 * forked, must be left as it is.
 *
 * When the daemon's worker is restarted, the library connects again by itself, for which any call waits up to 10
 * seconds, or as long as the option reconnect_ms says (scand_dispatch never waits). Host buffers keep their handles and
 * content, and so does device memory of the program's own. Jobs that had no answer are repeated where that cannot
 * change their result; others, above all jobs in place, end in SCAND_LOST, and the daemon's device buffers are lost.
 *
 * A daemon that is to stop, as at an upgrade, finishes the jobs that it has and refuses others. The library keeps
 * those, which have not been begun, jobs in place, too, and submits them to the next daemon at the same socket: they
 * have not ended until then. They end in SCAND_DRAINING, with memory as it was, where the daemon needs longer to stop
 * than the option drain_ms says, a minute, or none is there within give_up_ms after that; where their memory ends with
 * the daemon, as that of its device buffers does; and in a service of the program's own.
 */
#ifndef SCAND_SCAND_H
#define SCAND_SCAND_H

#include <scand/report.h>
#include <scand/types.h>
#include <scand/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct scand;         /* a connection to the daemon */
struct scand_options; /* options of a connection */
struct scand_buffer;  /* memory that both sides see */
struct scand_job;     /* a submitted scan, reduction or task */
struct scand_task;    /* a job that is being described, step by step */

/* A scan, a reduction or another operation of the tutorials, to be named by `algorithm`. */
struct scand_kernel {
    char name[64];                  /* "kogge-stone" */
    char line[256];                 /* the variant in one line */
    char backend[16];               /* the devices that run it: "cuda" or "cpu" */
    uint32_t accumulators;          /* accumulators that it offers: bit 1 << enum scand_accumulator */
    uint32_t repeatable;            /* 1: two runs give the same bits; 0: they need not */
    enum scand_operation operation; /* SCAND_OPERATION_COUNT: neither a scan nor a reduction */
    uint32_t reductions;            /* reductions that it offers, if it is one: bit 1 << enum scand_reduction */
    char step[64];                  /* the operation as scand_operations has it: "scan", "reduce", "map" */
    char dtype[16];                 /* dtype of the samples that it reads: "f32" */
};

/* An operation that a step of a task may be. */
struct scand_operation_info {
    char name[64];  /* "scan" */
    char line[512]; /* the operation in one line */
};

/* A parameter of an operation, or an operand that it has beside what the step before has left. */
struct scand_parameter_info {
    char name[64];     /* "accumulator" */
    char kind[64];     /* "word", "words", "flag", "integer", "number", or, of an operand, "tensor" */
    uint32_t required; /* 1: it cannot be left out */
    uint64_t most;     /* an integer's largest value; of words, how many there may be */
    char words[1024];  /* "auto,f32,f64", the words that it may be; "" where it is no word */
    char line[512];    /* the parameter's purpose, in one line */
    /* Words of an operand, as in PROTOCOL.md; "" for a parameter. */
    char access[64];  /* "read" or "write" */
    char follows[64]; /* "samples", "rows", "vectors" or "job": what it has elements for */
    char dtypes[64];  /* "input": of the class of the step's input; "float": any float; "index": i32, i64 */
};

/* A job of any program that is queued or running. */
struct scand_job_info {
    uint64_t job;    /* number of the job in the daemon */
    uint64_t client; /* the number of its connection */
    uint32_t user;   /* user of that client */
    enum scand_job_state state;
    char name[64];      /* name of the program, as it says; empty where this user may not see it, as below */
    char operation[64]; /* "scan sum forward,backward f32" */
    uint64_t rows, rows_done;
    uint64_t bytes;      /* bytes that input and output span together */
    uint64_t age_us;     /* since its arrival */
    uint64_t running_us; /* since its start; 0 before */
    enum scand_priority priority;
};

/* A connection of any program. */
struct scand_client_info {
    uint64_t client;
    uint32_t user;
    uint32_t pid; /* id of the process that connected; 0 where this user may not see it */
    char name[64];
    uint64_t age_us;
    uint64_t buffers, host_bytes, device_bytes;
    uint64_t jobs_queued, jobs_running, jobs_done;
    uint64_t rows_scanned, samples_scanned;
    uint64_t device_busy_us; /* part of the time for which the device had work that counts for this client */
    /* Memory that its user has on all connections, and may have; zeros where a daemon does not say. Host memory counts
     * in whole segments of the daemon's pool. */
    uint64_t user_host_bytes, quota_host_bytes;
    uint64_t user_device_bytes, quota_device_bytes;
    uint64_t user_jobs, quota_jobs;
    uint64_t user_connections, quota_connections;
};

/* A job of any program, or a chunk of one, that has ended. Times are microseconds of the daemon's monotonic clock. */
struct scand_event {
    uint64_t event; /* number of the event */
    enum scand_event_kind kind;
    uint32_t user;
    uint64_t job, client;
    uint64_t begin_us, end_us; /* a job: its arrival and reply; a chunk: while the device had it */
    uint64_t started_us;       /* a job: its first chunk's beginning; 0 when it never began */
    uint64_t rows;
    uint64_t slot;                              /* a chunk: its place among the chunks that its device can have */
    uint64_t device;                            /* a chunk: the number of its device */
    uint64_t upload_us, kernel_us, download_us; /* a chunk: its steps */
    uint32_t status;                            /* enum scand_status */
    uint64_t group;                             /* the number of the group that the job belongs to; 0: none */
};

/*
 * An array in a buffer: NumPy's terms. Element (i, j, ...) lies at offset + i x strides[0] + j x strides[1] + ...
 * bytes. Strides may be negative or unaligned. No two elements of an output may overlap.
 */
struct scand_tensor {
    struct scand_buffer *buffer;
    uint64_t offset; /* bytes, of element (0, 0, ...) */
    enum scand_dtype dtype;
    uint32_t rank; /* 1 to SCAND_RANK_MAX */
    uint64_t shape[SCAND_RANK_MAX];
    int64_t strides[SCAND_RANK_MAX]; /* bytes */
};

/*
 * A further scan of a job: of what the one before it has written, in place in the output. Zero-initialised members are
 * the defaults, as in a scan; samples are of the output's dtype. SCAND_OPERATOR_AFFINE needs the coefficient.
 */
struct scand_step {
    uint32_t pass_count; /* 1 or 2 */
    enum scand_pass passes[SCAND_PASSES_MAX];
    enum scand_kind kind;
    enum scand_operator op;
    enum scand_accumulator accumulator;
    enum scand_intermediate intermediate;
    uint32_t demean;
    double coefficient;
};

/*
 * A scan along one axis of `input` into `output`, a tensor of the same shape, which is the same elements (in place, of
 * dtypes of one size) or does not overlap it. Integers become integers at least as wide, floats floats.
 * Zero-initialised members are the defaults: inclusive, sum, accumulation of floats in f64, between the passes the
 * class of the samples (f64 samples: f64; other floats: f32). See scand/types.h.
 */
struct scand_scan {
    struct scand_tensor input;
    struct scand_tensor output;
    uint32_t axis;
    uint32_t pass_count; /* 1 or 2 */
    enum scand_pass passes[SCAND_PASSES_MAX];
    enum scand_kind kind;
    enum scand_operator op; /* SCAND_OPERATOR_SUM, _PROD, _MAX, _MIN or _AFFINE */
    enum scand_accumulator accumulator;
    enum scand_intermediate intermediate; /* type to which values are rounded between two passes */
    uint32_t demean;                      /* not 0: each row's mean is taken from its samples first; floats only */
    const char *algorithm;                /* NULL: the daemon's own; else a name of scand_kernels: see there */
    struct scand_tensor offsets;          /* offsets of ragged rows; rank 0: none. See below */
    /* SCAND_OPERATOR_AFFINE takes one of these two, others neither: a coefficient for all samples, which is not 0 and
     * with integers a whole number of at most 2^53; or one for each, of a dtype of the input's class and the input's
     * shape. Strides of 0 repeat one along a dimension. They do not overlap the output. */
    double coefficient;
    struct scand_tensor coefficients; /* rank 0: none */
    enum scand_priority priority;     /* among this user's jobs */
    uint32_t deadline_ms; /* time to start in, at most SCAND_DEADLINE_MS_MAX; then SCAND_DEADLINE. 0: any time */
    /* Further scans, run in order; at most SCAND_STEPS_MAX. The results are the same as of separate jobs, but on a GPU
     * values between two steps do not cross PCIe, unless a row has more than some 16 MiB. SCAND_UNSUPPORTED: the daemon
     * is older than they are. */
    uint32_t then_count;
    const struct scand_step *then; /* copied; NULL: none */
    uint32_t after_failure;        /* not 0: runs although a job that was to write its input has failed; see below */
    uint32_t group;                /* group of scand_group_begin; 0: none */
};

/*
 * Ragged rows, of differing lengths, lie along an input of rank 1, at any stride: row r is its samples
 * offsets[r] <= i < offsets[r + 1]. So `offsets` has one element more than there are rows: rank 1, of dtype i32, i64,
 * u32 or u64, in a host buffer. They do not decrease; rows may be empty; samples before the first offset, and from the
 * last one on, are not touched. Up to SCAND_RAGGED_ROWS_MAX rows per job. Leave the offsets alone until the job has
 * ended: they are read when jobs before it that write to them have ended, and again when it is repeated.
 */

/*
 * A reduction along one axis of `input`, one result for each row, into `output`: a tensor of the same shape but for the
 * axis, where it has one element, which does not overlap the input. Sums of floats are kept in f64 and do not depend on
 * the machine; the output is of any dtype of floats, f64 to keep all digits. Integers, at least as wide in the output,
 * have SCAND_REDUCTION_SUM, _MIN and _MAX. A row without samples has a result, too: see scand/types.h. Of ragged rows
 * the output is one dimension of as many results.
 */
struct scand_reduce {
    struct scand_tensor input;
    struct scand_tensor output;
    uint32_t axis;
    enum scand_reduction reduction; /* not SCAND_REDUCTION_NONE */
    const char *algorithm;          /* NULL: the daemon's own; else a name of scand_kernels: see there */
    enum scand_priority priority;   /* among this user's jobs */
    uint32_t deadline_ms;        /* time to start in, at most SCAND_DEADLINE_MS_MAX; then SCAND_DEADLINE. 0: any time */
    struct scand_tensor offsets; /* offsets of ragged rows, as a scan has them; rank 0: none */
    uint32_t after_failure;      /* not 0: runs although a job that was to write its input has failed; see below */
    uint32_t group;              /* group of scand_group_begin; 0: none */
};

/*
 * The device is shared out among users, by time. Jobs of higher priority go before the user's others, on all of its
 * connections, and take nothing from other users. A job that could not start within deadline_ms of its submission ends
 * in SCAND_DEADLINE, and its output is as it was; one that has started goes on. A job that is repeated has what is left
 * of its time.
 *
 * When a job fails or is cancelled, later jobs of the same connection that were submitted before its answer came, and
 * that read what it was to write, end in SCAND_STALE; so do jobs that read what a stale one was to write. What their
 * outputs hold is undefined. Submit them all again. `after_failure` exempts a job, which then runs on
 * whatever is there.
 */

/* The times of a job, in microseconds. Upload, kernel and download overlap, so they may add up to more than total. */
struct scand_times {
    uint64_t queued_us;   /* from its arrival to its first chunk's start */
    uint64_t upload_us;   /* chunks' uploads, added up */
    uint64_t kernel_us;   /* chunks' kernels, added up */
    uint64_t download_us; /* chunks' downloads, added up */
    uint64_t total_us;    /* from its arrival to its reply */
};

/*
 * Connects to the daemon at socket_path, or for NULL at $SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock where that is
 * there, else /run/scand/scand.sock, the daemon of all users. `name` says who connects, for people who look at the
 * daemon; NULL is the program's name. On failure *out stays untouched and scand_connect_message() explains. Free with
 * scand_disconnect.
 */
int scand_connect(const char *socket_path, const char *name, struct scand **out);
/* The message of the last scand_connect, scand_connect_with, scand_options_create or scand_options_set that failed in
 * the calling thread. */
const char *scand_connect_message(void);

/*
 * Without a daemon, programs may compute in their own process, on the processor, with the same functions and the same
 * bits. The library for that, libscand-local, is opened when it is needed. Threads for large jobs are started with the
 * first large job; small jobs are done when scand_submit returns. The program's next calls compute a part of a job of
 * more than 512 MiB. Calls that make no sense without a daemon get the errors of a daemon that works on the processor.
 */
enum scand_local {
    SCAND_LOCAL_DEFAULT,  /* as the environment says: SCAND_FALLBACK=cpu is SCAND_LOCAL_FALLBACK; else, or unset, NEVER
                           */
    SCAND_LOCAL_NEVER,    /* SCAND_UNAVAILABLE where no daemon answers */
    SCAND_LOCAL_FALLBACK, /* in this process where no daemon answers */
    SCAND_LOCAL_ALWAYS,   /* no daemon is looked for */
};

/*
 * With a daemon, too, a program may have its small jobs computed in its own process, on its own processor, in less time
 * than it takes to ask the daemon: scans in one or two passes and reductions, also as tasks, of up to some 2,000
 * samples, of rows of one length in host memory. They are in no group, report no progress and name no algorithm. They
 * have ended when they are submitted. A job that shares memory with an earlier one which has not ended goes to the
 * daemon behind it, if one of both writes there; so does a job that is refused. Results, order and errors are the
 * daemon's, which does not see these jobs: its lists, counters and quotas are without them. libscand-local is opened
 * while connecting.
 */
enum scand_small_jobs {
    SCAND_SMALL_JOBS_DEFAULT, /* as the environment says: SCAND_SMALL_JOBS=here is HERE; else, or unset, DAEMON */
    SCAND_SMALL_JOBS_DAEMON,  /* by the daemon, as all others */
    SCAND_SMALL_JOBS_HERE,    /* in this process */
};

/* 1 where a connection is to this process itself, 0 where it is to a daemon. */
int scand_is_local(const struct scand *daemon);

/*
 * Connections with options: options are set by name before connecting, and may be destroyed right after.
 *
 * - reconnect_ms: how long a call waits for a daemon that is away; 0 to 86,400,000 (a day), 10,000 by default. With 0
 *   such a call returns SCAND_UNAVAILABLE at once, and scand_dispatch or the next call connects again. scand_wait
 *   always waits for as long as its caller says.
 *   Connecting waits as long where it has found a daemon that ended before it answered, but not where none is there.
 * - give_up_ms: how long a daemon may be away before all jobs without an answer end in SCAND_UNAVAILABLE; the same
 *   range and default.
 * - drain_ms: how long a daemon that is to stop may take until jobs that it has refused end in SCAND_DRAINING; 0 to
 *   86,400,000, 60,000 by default. With 0 they do at once, and it is the program that submits them again.
 * - spin_us: for how long scand_wait looks for the answer to a small job without blocking, where the one before came
 *   that soon and the process may use at least four processors; 0 (never) to 10,000, 50 by default.
 * - rings: 1, the default: a program that sends many small jobs shares memory with the daemon for its messages, where
 *   the daemon has some for it; 0: all messages go through the socket.
 * - local: where to compute without a daemon: an enum scand_local, SCAND_LOCAL_DEFAULT by default.
 * - small_jobs: where to compute small jobs: an enum scand_small_jobs, SCAND_SMALL_JOBS_DEFAULT by default.
 *
 * Other values and names get SCAND_INVALID. NULL stands for the defaults.
 */
int scand_options_create(struct scand_options **out);
int scand_options_set(struct scand_options *options, const char *name, int64_t value);
void scand_options_destroy(struct scand_options *options);
int scand_connect_with(const struct scand_options *options, const char *socket_path, const char *name,
                       struct scand **out);

/* Ends the connection, and with it its buffers, their mappings and its jobs; what runs finishes into nothing. Handles
 * of jobs are gone. Handles of buffers may still be given to scand_buffer_release, as long as not more than 4,096 other
 * buffers have ended so since. */
void scand_disconnect(struct scand *daemon);
/* Disconnects a child made by fork() from all that its parent was connected to, which leaves the parent's connections
 * as they are. Elsewhere it does nothing. */
void scand_forget(void);

/* The message of the last call that failed on this connection in the calling thread. Lives until the thread's next
 * call. Of more than eight connections, a thread keeps the messages of the eight that failed last; others have
 * "". NULL, where connecting has failed: what scand_connect_message says. */
const char *scand_message(const struct scand *daemon);
/* Milliseconds after which a call that was SCAND_BUSY or SCAND_QUOTA makes sense again. 0 where that is unknown, and
 * where it makes no sense: it asks for more than the user may ever have, or this connection has what it may have. Of
 * the call that scand_message is about; NULL: that scand_connect_message is about. */
uint32_t scand_retry_ms(const struct scand *daemon);

const char *scand_version(void); /* version of this library: "0.1.0" */

const char *scand_status_word(int status); /* word of a status: "busy" */
const char *scand_status_text(int status); /* one line on what it means */
int scand_status_exit_code(int status);    /* for programs: see sysexits.h */

const char *scand_server_name(const struct scand *daemon); /* name of the daemon as it says: "scand 0.1.0" */

/* Round trip to the daemon, in microseconds. */
int scand_ping(struct scand *daemon, uint64_t *round_trip_us);
/*
 * Lists. The caller's array has `capacity` elements of row_bytes, which is sizeof of one; *count is set to how many
 * were filled. Members that the library does not have are zero.
 */

/* Fills in devices in the order of their numbers from 0. */
int scand_devices(struct scand *daemon, struct scand_device *devices, size_t row_bytes, size_t capacity, size_t *count);
/* Fills in the tutorials' scans, reductions and other operations. Scans do inclusive sums of f32 into f32, of rows that
 * lie one stride apart with their samples side by side, all at multiples of 4 bytes, and add in an order of their own,
 * so that bits differ from the daemon's. Reductions take such rows, too, and write f64 side by side. The others are
 * for tasks of one step: "algorithm" of scand_task_option. */
int scand_kernels(struct scand *daemon, struct scand_kernel *kernels, size_t row_bytes, size_t capacity, size_t *count);
/* Fill in the operations that the daemon has, and what one of them takes: parameters, then operands. Without a daemon
 * (NULL) it is what this library can name in a task, and no message is left. SCAND_NOT_FOUND: there is no such
 * operation. */
int scand_operations(struct scand *daemon, struct scand_operation_info *operations, size_t row_bytes, size_t capacity,
                     size_t *count);
int scand_parameters(struct scand *daemon, const char *operation, struct scand_parameter_info *parameters,
                     size_t row_bytes, size_t capacity, size_t *count);
/* Fills in the daemon's counters. */
int scand_stats(struct scand *daemon, struct scand_counter *counters, size_t row_bytes, size_t capacity, size_t *count);
/* Fills in the histograms of its times. */
int scand_histograms(struct scand *daemon, struct scand_histogram *histograms, size_t row_bytes, size_t capacity,
                     size_t *count);
/* Fills in users who have connections, work or memory, or had some before. SCAND_UNKNOWN_METHOD: the daemon
 * is older than this. */
int scand_users(struct scand *daemon, struct scand_user_info *users, size_t row_bytes, size_t capacity, size_t *count);
/* Counters, histograms, devices and users in Prometheus' text format, version 0.0.4: *text is a string for free(). */
int scand_metrics(struct scand *daemon, char **text);
/* Fill in jobs, or connections, of all users in the order of their numbers, the first being `from` or later, and set
 * *next to the `from` of what follows, 0 at the end. The list may change between two calls. On failure the array may
 * have been written to. */
int scand_jobs(struct scand *daemon, uint64_t from, struct scand_job_info *jobs, size_t row_bytes, size_t capacity,
               size_t *count, uint64_t *next);
int scand_clients(struct scand *daemon, uint64_t from, struct scand_client_info *clients, size_t row_bytes,
                  size_t capacity, size_t *count, uint64_t *next);
/* Fills in the latest few thousand jobs and chunks that ended, in the order in which they did, as scand_jobs fills in
 * jobs. */
int scand_trace(struct scand *daemon, uint64_t from, struct scand_event *events, size_t row_bytes, size_t capacity,
                size_t *count, uint64_t *next);
/* Cancels a job of any program, by the number that scand_jobs gives. Only its own user, root and the daemon's own user
 * may, others get SCAND_PERMISSION; SCAND_NOT_FOUND when it is neither queued nor running. */
int scand_cancel_job(struct scand *daemon, uint64_t job);
/* Asks the daemon to refuse new jobs, finish the jobs it has and stop. Only root and the daemon's own user may. */
int scand_drain(struct scand *daemon);

/* Memory from the daemon: host memory, pinned and mapped into this program, or device memory, which this program cannot
 * touch but jobs can. New memory holds zeros or what this user's earlier buffers held, never another user's data.
 * size_bytes: 1 to the daemon's limit. */
int scand_buffer_create(struct scand *daemon, enum scand_place place, uint64_t size_bytes, struct scand_buffer **out);
/* Host memory, for which the daemon waits where none is free. It does so for at most wait_ms, up to SCAND_WAIT_MS_MAX,
 * and only then the call is SCAND_BUSY. Ask for several arrays as one buffer: programs that each hold some of what they
 * need and wait for the rest wait for each other. A daemon that is older than this does not wait. */
int scand_buffer_create_wait(struct scand *daemon, uint64_t size_bytes, uint32_t wait_ms, struct scand_buffer **out);
/* Device memory of the device with this number. Where none is named it is that of the latest device buffer,
 * or the one with most memory free: all device buffers of a job must be on one device, and the job runs there.
 * SCAND_NOT_FOUND: no such device. */
int scand_buffer_create_on(struct scand *daemon, uint32_t device, uint64_t size_bytes, struct scand_buffer **out);
/* Memory of this program: a memfd (MFD_ALLOW_SEALING) of at least size_bytes, which is sealed against shrinking and
 * growing. The descriptor stays the caller's, who may close it. */
int scand_buffer_import(struct scand *daemon, int memfd, uint64_t size_bytes, struct scand_buffer **out);
/*
 * A file as input of jobs: on disk, in /dev/shm, a memfd that is sealed against writing, or any other that the
 * descriptor is open to read. It is not mapped: scand_buffer_data is NULL. Jobs read it chunk by chunk, as it is at
 * that time, so it may be larger than memory, and may change; a job that finds it shorter than size_bytes, or cannot
 * read it, fails with SCAND_DESCRIPTOR. size_bytes: from the file's beginning, 0 for all that it has now. Tensors of
 * the buffer are inputs and operands that are read; as an output, or as offsets, they are SCAND_INVALID, and so are
 * rows of more than 256 MiB. The descriptor stays the caller's, who may close it. SCAND_UNKNOWN_METHOD: the
 * daemon is older than this.
 */
int scand_buffer_import_file(struct scand *daemon, int fd, uint64_t size_bytes, struct scand_buffer **out);

/*
 * Host memory of this program's own, for arrays that several connections or processes use: a memfd, made and imported
 * in one call, which lives on without the daemon for as long as anybody has it. Its pages are this program's to touch
 * first, which takes longer than with memory of the daemon.
 */
int scand_buffer_create_own(struct scand *daemon, uint64_t size_bytes, struct scand_buffer **out);
/*
 * The descriptor of such memory, or of what was imported: a new one, the caller's to close. Another connection, or a
 * process that was given it (by fork, or over a Unix socket), imports it with scand_buffer_import. Whoever has it can
 * read and write all of the memory; nobody can make that shorter or longer any more (F_SEAL_SHRINK, F_SEAL_GROW), so
 * what is mapped stays. Jobs of different connections on the same memory run in no particular order: wait for one
 * before submitting the next. SCAND_UNSUPPORTED: memory of the daemon's pool, which others have after this buffer, and
 * device memory (scand_buffer_export).
 */
int scand_buffer_fd(const struct scand_buffer *buffer, int *fd);

/*
 * Device memory of this program, a tensor of PyTorch's, CuPy's or JAX's for one, that jobs then work on in place: bytes
 * `offset` to offset + size_bytes of an allocation. The library does not use CUDA itself.
 *
 * By a handle: ipc_handle is the SCAND_IPC_BYTES of a cudaIpcMemHandle_t, of memory of cudaMalloc. cudaIpcGetMemHandle
 * takes any address in the allocation; `offset` is the distance of the data from the address that cuMemGetAddressRange
 * gives as its beginning. The handle is one that anybody could guess, so only the daemon's own user and root may use
 * this; others get SCAND_PERMISSION.
 *
 * By a descriptor: fd is one that cuMemExportToShareableHandle has made of memory of cuMemCreate; allocation_bytes is
 * the size of all of it. The descriptor stays the caller's, who may close it.
 *
 * Both: the memory must be this daemon's device's. Work of this program on it must have ended before a job that uses it
 * is submitted (cudaStreamSynchronize); a job's result is there when the job has ended. Memory that is freed while the
 * buffer is there stays the device's until the buffer is released. It is not counted as the daemon's or its user's.
 */
int scand_buffer_import_cuda(struct scand *daemon, const void *ipc_handle, uint64_t offset, uint64_t size_bytes,
                             struct scand_buffer **out);
int scand_buffer_import_cuda_fd(struct scand *daemon, int fd, uint64_t allocation_bytes, uint64_t offset,
                                uint64_t size_bytes, struct scand_buffer **out);

/* Device memory from the daemon that other programs can use with CUDA, by what scand_buffer_export makes for them. The
 * memory takes a multiple of 2 MiB. `sharing`: by descriptor, or by handle. SCAND_UNSUPPORTED without a
 * GPU. */
int scand_buffer_create_shared(struct scand *daemon, enum scand_sharing sharing, uint64_t size_bytes,
                               struct scand_buffer **out);
/* The access to a buffer's memory, which is the first size_bytes of the allocation: with SCAND_SHARING_DESCRIPTOR a
 * descriptor for cuMemImportFromShareableHandle, which is the caller's; with _HANDLE a handle for cudaIpcOpenMemHandle
 * in another process. The memory is there until the buffer is released, or the daemon's worker ends; what a descriptor
 * was made of, until that is closed and unmapped, too. */
struct scand_export {
    uint64_t size_bytes, allocation_bytes;
    uint8_t ipc_handle[SCAND_IPC_BYTES]; /* zeros where there is a descriptor */
    int fd;                              /* -1 where there is a handle */
};
int scand_buffer_export(struct scand_buffer *buffer, struct scand_export *out);

void *scand_buffer_data(const struct scand_buffer *buffer);    /* address of the memory; NULL for device memory */
uint64_t scand_buffer_size(const struct scand_buffer *buffer); /* bytes of the buffer, as asked for */
/* The number of the device whose memory it is; -1 for host memory, and where a daemon does not say. */
int scand_buffer_device(const struct scand_buffer *buffer);
/* Unmaps and gives back. Jobs that use it go on; the daemon keeps it for as long as they run. The handle is gone,
 * whatever is returned. After scand_disconnect it only frees the handle. */
int scand_buffer_release(struct scand_buffer *buffer);

/* The lists of scand/types.h. */
enum scand_list {
    SCAND_LIST_OPERATION,
    SCAND_LIST_REDUCTION,
    SCAND_LIST_DTYPE,
    SCAND_LIST_ACCUMULATOR,
    SCAND_LIST_INTERMEDIATE,
    SCAND_LIST_KIND,
    SCAND_LIST_OPERATOR,
    SCAND_LIST_PASS,
    SCAND_LIST_PLACE,
    SCAND_LIST_SHARING,
    SCAND_LIST_JOB_STATE,
    SCAND_LIST_EVENT,
    SCAND_LIST_PRIORITY
};

/* The word of an enumerator, "f32" of SCAND_DTYPE_F32; NULL where the list has none of that number, as at its end.
 * Lives as long as the program. */
const char *scand_word(enum scand_list list, int value);
/* The enumerator of a word; -1 where the list does not have it. */
int scand_word_find(enum scand_list list, const char *word);
uint64_t scand_dtype_bytes(enum scand_dtype dtype); /* bytes of one element; 0 for what is no dtype */
/* The type of such samples while they are scanned; SCAND_CLASS_F32 of what is no dtype. */
enum scand_class scand_dtype_class(enum scand_dtype dtype);
/* The accumulator of a scan of such samples: `accumulator` itself, unless that is SCAND_ACCUMULATOR_AUTO and the
 * samples have a dtype. `algorithm`: as in the scan, NULL for the daemon's own. */
enum scand_accumulator scand_accumulator_of(enum scand_accumulator accumulator, enum scand_dtype samples,
                                            const char *algorithm);

/* Sets the strides of a tensor that is a C-ordered, dense array of its shape and dtype. */
void scand_tensor_pack(struct scand_tensor *tensor);

/* Called while a job runs, from scand_wait, scand_dispatch or another call that waits for the daemon, in the thread
 * that reads then: it may be another than the one that waits for the job. One is called at a time on a connection; what
 * would have been told meanwhile is left out. It may call the library, except scand_disconnect. Neither scand_wait nor
 * scand_job_release of the job return in another thread before it has returned. */
typedef void scand_progress(void *context, uint64_t rows_done, uint64_t rows);

/* Submits a scan. `progress` may be NULL. Free the job with scand_job_release, at any time after. */
int scand_submit(struct scand *daemon, const struct scand_scan *scan, struct scand_job **out);
int scand_submit_progress(struct scand *daemon, const struct scand_scan *scan, scand_progress *progress, void *context,
                          struct scand_job **out);
/* Submits `count` scans, in their order and with fewer messages, which saves most of the cost of small jobs. Fills
 * out[0] to out[count - 1] with jobs as scand_submit makes them, to be waited for, cancelled and released each on its
 * own; but they have their results, and end, some 32 together, when the slowest of these is done. What the daemon
 * refuses, scand_wait tells for each job; the others run. On failure none was submitted; the message names the scan
 * that is wrong, if one is. */
int scand_submit_many(struct scand *daemon, const struct scand_scan *scans, size_t count, struct scand_job **out);
/* Submits a reduction, the same way as a scan. */
int scand_submit_reduce(struct scand *daemon, const struct scand_reduce *reduce, scand_progress *progress,
                        void *context, struct scand_job **out);

/*
 * Tasks: jobs of one or several steps, described by name, so that a program can use operations that came after it was
 * written. Each step takes what the one before it has left, which stays on the device; scand_operations tells what
 * there is.
 *
 *     struct scand_task *task;
 *     scand_task_create(&task);
 *     scand_task_input(task, &t);
 *     scand_task_output(task, &t);
 *     scand_task_axis(task, 1);
 *     scand_task_step(task, "scan");
 *     scand_task_set(task, "passes", "forward,backward");
 *     scand_task_set_number(task, "demean", 1);
 *     scand_task_step(task, "scan");
 *     scand_task_set(task, "passes", "forward");
 *     scand_task_set(task, "op", "max");
 *     if (scand_task_submit(daemon, task, NULL, NULL, &job))
 *         ... scand_message(daemon) ...
 *     scand_task_destroy(task);
 *
 * A task belongs to no connection, and is used by one thread at a time. Its functions need no daemon: a name or a value
 * that the library does not know is SCAND_INVALID at once, and scand_task_message() says what there is. After a failure
 * nothing more is done to the task, and all of its functions and scand_task_submit return that failure: it is enough to
 * look at the last one, and no task runs without something that it was told.
 */

/* An empty task, or SCAND_NO_MEMORY. Free with scand_task_destroy, at any time: jobs need it no more. */
int scand_task_create(struct scand_task **out);
void scand_task_destroy(struct scand_task *task);
/* The message of the first call that failed on the task; "" while none has. Lives as long as the task. */
const char *scand_task_message(const struct scand_task *task);

/* The tensor that the first step reads, the one that the last step writes, and the axis of the rows of all steps. A
 * task needs all three. A later call replaces what an earlier one has said; so a task can be submitted for one part of
 * an array after the other. The tensor is copied; its buffer may be NULL until the task is submitted. */
int scand_task_input(struct scand_task *task, const struct scand_tensor *tensor);
int scand_task_output(struct scand_task *task, const struct scand_tensor *tensor);
int scand_task_axis(struct scand_task *task, uint32_t axis);
/* Rows along several dimensions, of a task whose last step leaves a number of each row: samples are taken in C order,
 * and the output has 1 along all of them. Tensors lie so that these dimensions could be one: numpy.reshape would not
 * copy. */
int scand_task_axes(struct scand_task *task, const uint32_t *axes, uint32_t count);
/* Rows of differing lengths, as a scan has them. */
int scand_task_offsets(struct scand_task *task, const struct scand_tensor *tensor);
/* Sets an option of the whole job: "algorithm", "priority" ("normal", "low", "high"), "deadline_ms" and "after_failure"
 * ("0" or "1"), as a scan has them. */
int scand_task_option(struct scand_task *task, const char *name, const char *value);

/* Adds a step. There may be 1 + SCAND_STEPS_MAX. */
int scand_task_step(struct scand_task *task, const char *operation);
/* Sets a parameter of the latest step, by its name, in which '-' and '_' are alike: words as "f64", several as
 * "forward,backward", numbers in decimal, flags as "0" or "1". */
int scand_task_set(struct scand_task *task, const char *name, const char *value);
int scand_task_set_number(struct scand_task *task, const char *name, double value);
/* Gives the latest step an operand of its own, "coefficients" of a scan for one. */
int scand_task_operand(struct scand_task *task, const char *name, const struct scand_tensor *tensor);

/* Sets the rank and the shape of *out to what the first `steps` steps leave: the output after all of them, the input
 * after none. The input, the axis and operands of those steps must have been given, of which only shapes are looked
 * at. Where a row becomes one element the axis has 1, or, with offsets, as many as there are rows. */
int scand_task_shape(struct scand_task *task, uint32_t steps, struct scand_tensor *out);
/* 1 where the last step leaves one element for each row, as "reduce" does; else 0. */
int scand_task_leaves_rows(const struct scand_task *task);

/* Submits what the task describes now, as often as wanted; the task is only looked at. `progress` may be NULL.
 * SCAND_UNSUPPORTED: the daemon is older than tasks are. Shapes and dtypes, which have no names, the daemon
 * checks. */
int scand_task_submit(struct scand *daemon, const struct scand_task *task, scand_progress *progress, void *context,
                      struct scand_job **out);
/* Submits `count` tasks, in their order and with fewer messages, as scand_submit_many does with scans. The same task
 * may be among them several times; it does the same each time. To a daemon that is older than that they go one by one.
 */
int scand_task_submit_many(struct scand *daemon, const struct scand_task *const *tasks, size_t count,
                           struct scand_job **out);

/*
 * Groups of jobs that people see as one: a file that is worked on in parts, say. `group` of a scan or a reduction, and
 * the option "group" of a task, name the group that a job belongs to. scand_jobs, `scanctl jobs` and `top` list the
 * group in place of its jobs, also while it has none, with the rows of jobs that have succeeded; scand_cancel_job
 * cancels the jobs that it has, and all that are submitted later. Otherwise they are jobs like any.
 */
/* Begins a group: sets *group, which is never 0. `name` says what it is for, for people who look at the daemon; NULL is
 * the name of the connection. `rows` is how many it will have in all, 0 where nobody knows. At most
 * SCAND_GROUPS_MAX are open at a time. SCAND_UNKNOWN_METHOD: the daemon is older than groups are. */
int scand_group_begin(struct scand *daemon, const char *name, uint64_t rows, uint32_t *group);
/* Sets *job to the number that scand_jobs lists the group by; 0 while no daemon has the group, as where the daemon is
 * to stop. After a restart of the daemon's worker the number is another one. */
int scand_group_number(struct scand *daemon, uint32_t group, uint64_t *job);
/* Ends a group; SCAND_INVALID while some of its jobs have not ended. The end of the connection ends all groups. */
int scand_group_end(struct scand *daemon, uint32_t group);

/* Waits for at most timeout_ms (negative: without end) and returns the job's status; SCAND_TIMED_OUT while it still
 * runs. *times (unless NULL) is filled when it has succeeded. */
int scand_wait(struct scand_job *job, int timeout_ms, struct scand_times *times);
/* 1 when scand_wait returns at once, since the job has ended; 0 before. Reads nothing from the socket. */
int scand_job_done(const struct scand_job *job);
/* Waits for at most timeout_ms (negative: without end) until the daemon is likely to take another job: when the
 * connection has fewer jobs than it takes at a time, and after SCAND_BUSY one of them has ended, or the time of
 * scand_retry_ms has passed. Others may be faster. */
int scand_wait_room(struct scand *daemon, int timeout_ms);
/* Asks the daemon to stop the job; scand_wait then returns SCAND_CANCELLED, or what the job has ended in already:
 * SCAND_OK, or SCAND_STALE behind a job that was cancelled before. What its output holds is undefined. */
int scand_cancel(struct scand_job *job);
/* Frees the handle; a job that still runs goes on and its result is dropped. */
void scand_job_release(struct scand_job *job);

/* A descriptor for programs with a loop of their own, to be polled for reading, the same for as long as the connection
 * lives; and the call to make when it is readable. scand_dispatch takes in what has arrived, and never waits: while
 * jobs have no answer it also connects again in steps, for each of which the descriptor is readable. SCAND_UNAVAILABLE:
 * no daemon came back, and all jobs have ended. Other calls and threads take in what has arrived, too: the descriptor
 * is readable when a job has ended there, until scand_dispatch is called. */
int scand_fd(const struct scand *daemon);
int scand_dispatch(struct scand *daemon);

#ifdef __cplusplus
}
#endif

#endif

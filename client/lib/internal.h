/*
 * Functions and structs that the library's files share, floor by floor: a file calls what is declared before its own
 * functions, never what comes after them.
 *
 * A session (struct scand) outlives the connection that it has at the moment: when that breaks, a later step connects
 * anew, imports the host buffers again and submits again what is safe to repeat (reconnect.c). Functions return 0 or
 * -errno; functions that take the session leave the explanation in its `error`. -EPIPE means that the connection broke;
 * no status has it.
 */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include <scand/scand.h>

#include "protocol/clock.h"
#include "protocol/connection.h"
#include "protocol/encoding.h"
#include "protocol/local.h"
#include "protocol/socket.h"

/* Longest waits. Tests are built with shorter ones. */
#ifndef CALL_MS
#define CALL_MS 30000 /* waits for an answer; CUDA may take its time to start */
#endif
#ifndef RECONNECT_MS
#define RECONNECT_MS 10000 /* waits for a daemon to come back */
#endif
#ifndef DRAIN_MS
#define DRAIN_MS 60000 /* a job that a stopping daemon has refused waits for its end */
#endif
#ifndef QUIET_MS
#define QUIET_MS 10000 /* silence of a daemon that has jobs before it is asked whether it is there */
#endif
#define ANSWER_US 500 /* time without blocking for an answer that job.ending announced */
#ifndef LONG_BYTES
#define LONG_BYTES MIB(32) /* inputs from here on: the job takes a millisecond, and processors fall asleep */
#endif
#define SHORT_BYTES KIB(256) /* inputs up to here: the job may be back before this thread has fallen asleep */
#define SPIN_US     50       /* default time without blocking for such a job's answer */
#define SPIN_US_MAX 10000
#ifndef SPIN_PROCESSORS
#define SPIN_PROCESSORS 4 /* with fewer processors the daemon may need the one that would spin */
#endif
#define RECONNECT_PAUSE_MS 50
#define RESEND_MS          20 /* pause before another try to send what no socket tells of */
#ifndef RINGS_AFTER_JOBS
#define RINGS_AFTER_JOBS 64 /* small jobs on a connection until it asks for rings, which take memory */
#endif
/* Samples that this process scans in about the time that it takes to ask the daemon. libscand-local refuses jobs that
 * take longer for another reason. */
#define NEAR_SAMPLES    2048
#define JOBS_LOOKED_MAX 64 /* listed jobs that are looked at before a job is computed in this process */
#define ERROR_SESSIONS  8  /* sessions whose last error a thread keeps */
#ifndef BUFFERS_ENDED_MAX
#define BUFFERS_ENDED_MAX 4096 /* buffers of ended sessions, kept for scand_buffer_release */
#endif
/* Pause before a job that met many ends of workers is sent again: so long that the next end is no failure, after which
 * all would wait for a worker. */
#ifndef SUSPECT_MS
#define SUSPECT_MS (LIMIT_QUICK_MS + 500)
#endif
#define ATTEMPTS_AT_ONCE 3 /* times that a request or job is sent without a pause, */
#define ATTEMPTS_MAX     5 /* and in all: what ends so many workers will end another */

/* Marks in the msgid say what a late answer, which nobody waits for any more, brings and must be given back. */
#define MSGID_CREATE UINT32_C(0x80000000)
#define MSGID_IMPORT UINT32_C(0x40000000)
#define MSGID_EXPORT UINT32_C(0x20000000)
#define MSGID_MARKS  (MSGID_CREATE | MSGID_IMPORT | MSGID_EXPORT)

/* Why a job is not repeated. */
#define DEVICE_MEMORY_ENDS \
    "device memory ends with the daemon's worker: release the buffer, create one, and fill it again"
#define NOT_TAKEN "the daemon stopped without taking the job"

/* An answer that somebody waits for. A call begins with one, and so does a job; for a batch, the first job's counts. */
struct pending {
    struct pending *next;
    uint32_t msgid; /* 0: not sent on this connection */
    /* Handles the answer, after which nobody waits for it. Returns 0, or -EBADMSG and *error. */
    int (*done)(struct scand *daemon, struct pending *pending, const struct message *message, struct error *error);
};

/* A request, and what its answer brings. */
struct call {
    struct pending pending;
    enum method method;
    bool is_interruptible; /* a signal's handler may end the wait: an answer that comes later does no harm */
    const void *params;
    const int *fds; /* descriptors that go with the request */
    size_t fd_count;
    int64_t timeout_ms; /* 0: CALL_MS */
    void *result;
    int *received; /* room for the descriptors that come with the answer, LIMIT_MESSAGE_FDS for buffer.create */
    size_t received_count;
    bool answered;
    uint64_t generation; /* generation of the connection that it was sent on */
    struct error error;
};

/* An import, ready to be called, and what comes of it. */
struct import {
    struct call call;
    union {
        struct msg_buffer_import_params host;
        struct msg_buffer_import_file_params file;
        struct msg_buffer_import_device_params device;
    } params;
    union {
        struct msg_buffer_id host;
        struct msg_buffer_import_device_result device;
    } result;
};

struct greeting {
    struct call call;
    struct msg_hello_params params;
    struct msg_hello_result result;
};

/* Jobs that people see as one. */
struct group {
    bool is_taken, is_open; /* taken: the label is in use; open: group.begin has succeeded */
    uint64_t generation;    /* generation of the connection whose daemon knows the group */
    uint64_t number;        /* the group's number as a job, in that daemon */
    struct msg_group_begin_params params;
};

/* The way to the next connection, step by step. */
struct mending {
    struct call *call; /* the call that is waited for; NULL: none, or no connection */
    int64_t call_end_ms;
    int64_t next_try_ms;
    int64_t give_up_at_ms;
    struct scand_buffer *buffer; /* the buffer that is imported; NULL: released meanwhile, or greeting */
    struct greeting greeting;
    struct import import;
    struct group *group; /* the group that is begun again */
    struct call group_call;
    struct msg_job_number group_number;
    struct error error; /* why the session was given up */
};

/* Options that programs can set before they connect: the name, the largest value, the default. A spin_us of 0: none. */
#define OPTION_MS_MAX 86400000 /* a day */
#define OPTIONS(X)                                    \
    X(reconnect_ms, OPTION_MS_MAX, RECONNECT_MS)      \
    X(give_up_ms, OPTION_MS_MAX, RECONNECT_MS)        \
    X(drain_ms, OPTION_MS_MAX, DRAIN_MS)              \
    X(spin_us, SPIN_US_MAX, SPIN_US)                  \
    X(local, SCAND_LOCAL_ALWAYS, SCAND_LOCAL_DEFAULT) \
    X(rings, 1, 1)                                    \
    X(small_jobs, SCAND_SMALL_JOBS_HERE, SCAND_SMALL_JOBS_DEFAULT)

#define X(NAME, MOST, DEFAULT) uint32_t NAME;
struct scand_options {
    OPTIONS(X)
};
#undef X

struct waiter;

/* A session. The lock guards all of it except what never changes. */
struct scand {
    pthread_mutex_t lock;
    struct waiter *waiters;           /* threads that sleep */
    unsigned inside;                  /* threads in a call */
    bool is_empty;                    /* no thread is in a call */
    bool is_reading;                  /* a thread waits for input */
    bool is_ending;                   /* scand_disconnect waits for the threads to leave */
    bool has_changed;                 /* something that a waiter may wait for has changed */
    bool has_news;                    /* jobs have ended that the program's loop has not been told of */
    bool is_watched;                  /* the program has a loop */
    bool is_quiet;                    /* no progress function runs */
    const struct scand_job *reported; /* the job whose progress function runs, in the thread `reporter` */
    pthread_t reporter;
    int wake;         /* an eventfd that ends the reader's wait */
    int alarm;        /* a timerfd among what scand_fd shows, */
    int64_t alarm_ms; /* the time that the alarm is set to; INT64_MAX: not set */

    uint64_t number;                   /* the session's number, never used twice */
    const struct local_library *local; /* NULL: there is a daemon */
    struct local *service;             /* without a daemon, the connection's service, which the connection owns */
    const struct local_library *near_library; /* has `near`; NULL: it is not used */
    struct near *near;             /* beside a daemon, computes small jobs in this process; NULL: none does */
    struct connection *connection; /* NULL: broken and not yet replaced */
    bool is_up;                    /* the daemon knows this session's buffers and jobs */
    int socket;                    /* the connection's, also before there is one; -1: none */
    pid_t owner;                   /* the process that connected; 0 in a child */
    struct scand *next;            /* links the process's sessions */
    bool gone;                     /* no daemon came back; all jobs have ended */
    bool watches_output;
    int64_t resend_ms;   /* time at which output is tried again that no socket tells of; INT64_MAX: there is none */
    int epoll;           /* descriptor that scand_fd shows; the sockets of all connections come and go in it */
    uint64_t generation; /* counts broken connections */
    struct scand_options options;
    struct mending mending;
    int64_t heard_ms;     /* time at which something last came from the daemon */
    int64_t held_end_ms;  /* refused jobs are kept until then, where the daemon drains; 0: it is not known to */
    int64_t held_due_ms;  /* time at which one of them is to end; INT64_MAX: none */
    struct call probe;    /* asks whether the daemon is there, */
    int64_t probe_end_ms; /* and is waited for until this time; 0: nothing is asked */
    uint64_t spin_end_us; /* until then answers, announced or expected soon, are awaited without blocking */
    bool answers_soon;    /* the last small job that was waited for came back within options.spin_us */
    uint32_t last_msgid;
    char path[SOCKET_PATH_BYTES];
    char name[LIMIT_NAME_BYTES];
    char server[LIMIT_NAME_BYTES];
    uint8_t *hello; /* the daemon's answer to hello, of hello_size bytes */
    size_t hello_size;
    bool runs_tasks;         /* the daemon has job.run, */
    bool batches_tasks;      /* and takes several such jobs in one message */
    uint64_t job_steps;      /* steps that the daemon takes in a job */
    uint64_t batch_jobs;     /* jobs that the daemon takes in one message */
    bool offers_rings;       /* the daemon may be asked for rings on this connection */
    unsigned small_jobs;     /* small jobs sent on it until then */
    struct pending rings;    /* the answer */
    struct pending *pending; /* the latest first: a progress callback may call while another call waits */
    struct scand_buffer *buffers;
    struct group groups[LIMIT_CLIENT_GROUPS]; /* indexed by label */
    struct scand_job *jobs, **jobs_end;       /* in the order of submission */
    struct scand_job *first_open;             /* no earlier job is without an end */
    size_t jobs_open;                         /* jobs without an end */
    uint64_t client_jobs;                     /* jobs that the daemon takes at a time */
    int64_t busy_until_ms; /* end of the time that the daemon is busy; 0: it is not, or a job has ended since */
    bool has_room;         /* there is room for another job, as far as is known */
    struct arena *arena;   /* messages are read in it */
    uint8_t outgoing[LIMIT_MESSAGE_BYTES];
};

struct scand_buffer {
    struct scand *daemon; /* NULL: its session has ended */
    struct scand_buffer *next;
    uint64_t id;         /* the daemon's number of the buffer, */
    uint64_t generation; /* on the connection of this generation */
    uint64_t size_bytes;
    uint64_t segment_bytes; /* size of each descriptor's memory; 0: an imported memfd */
    enum scand_place place;
    const char *lost; /* why the daemon no longer has the buffer; NULL while it has */
    void *data;
    uint64_t device_index; /* number of its device + 1, as on the wire; 0: host memory, or not told */
    dev_t device;          /* with inode: identifies the memory, also when it was imported twice */
    ino_t inode;
    bool is_file; /* a file that jobs read and that is not mapped */
    bool foreign; /* device memory of this program, known by its handle or descriptor */
    uint8_t handle[SCAND_IPC_BYTES];
    uint64_t allocation_bytes, offset; /* size of the foreign allocation, and the buffer's place in it */
    size_t fd_count;
    int fds[]; /* kept to import the memory into the next worker */
};

/* The bytes that a tensor spans in some memory. */
struct extent {
    dev_t device;
    ino_t inode;
    uint64_t begin, end;
};

/* A tensor of a job. */
struct operand {
    const char *name;            /* "input" */
    struct scand_buffer *buffer; /* NULL once released */
    struct extent extent;
    bool is_written;
    struct msg_tensor *params; /* in the job's params */
};

struct scand_job {
    struct pending pending; /* pending answer; its msgid is 0 while the job is not submitted on this connection */
    struct scand *daemon;
    struct scand_job *next;
    uint32_t index;     /* place in the batch of the msgid, from 1 on; 0: submitted alone */
    uint64_t group;     /* label of its group + 1, also while the daemon does not know that; 0: none */
    enum method method; /* job.submit, or job.run */
    scand_progress *progress;
    void *context;
    int64_t start_by_ms; /* latest start by clock_ms, where params have a deadline */
    unsigned attempts;
    bool sent;          /* true when a daemon may have begun it: */
    uint64_t sent_with; /* it has all of the job's message once so many bytes of the connection were sent */
    bool refused;       /* by a daemon that drains: it is kept for the next one */
    bool cancelled;     /* on request */
    bool released;      /* freed when it ends and no call has it */
    unsigned calls;     /* calls that use the job, during which other threads may release it */
    bool done;
    bool stale;     /* a job that was to write what this one reads has failed meanwhile */
    bool overtaken; /* a later job that shares memory has ended: so has this one, by no answer */
    struct scand_times times;
    uint32_t operand_count;
    /* From here on, members that a job does not have are not even set to zero: the error's text, the other params. */
    struct error error; /* the error with which it ended; while reconnecting, why it cannot be repeated */
    union {
        struct msg_job_submit_params submit;
        struct msg_job_run_params run;
    } params;
    struct operand operands[];
};

/* process.c */
/* Lists a session. Returns -ENOMEM when forks would not be seen. */
int process_add(struct scand *daemon);
void process_remove(struct scand *daemon);
/* True in a child of the process that connected. */
bool process_is_child(const struct scand *daemon);
/* True in a child that fork made, without a call of the system: inside a call this suffices, since other children were
 * found before it began. */
bool process_has_forked(const struct scand *daemon);
/* A session of the process that this one is a child of, or NULL. */
struct scand *process_inherited(void);
/* Makes the session's socket, which a fork closes in the child from then on. Returns it, or -errno. */
int process_open(struct scand *daemon, bool blocks);
/* Makes the connection of the socket, and closes that on failure. */
bool process_connect(struct scand *daemon);
/* Makes the connection of a carrier, which is closed on failure. */
bool process_carry(struct scand *daemon, const struct carrier *carrier, void *context);
/* Ends connection and socket, where there are any. */
void process_close(struct scand *daemon);
/* Keeps an ended buffer's handle until it is released, or so many others have ended. */
void process_bury(struct scand_buffer *buffer);
void process_unbury(struct scand_buffer *buffer);

/* error.c */
/* Explains to scand_connect_message and scand_retry_ms why there is no connection, or no options. Returns the status.
 */
int connect_failed(int code, const struct error *error);
/* The last error of this thread in this session; the caller's until the thread's next call. */
struct error *session_error(const struct scand *daemon);
int session_fail(struct scand *daemon, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sets the error of a job that reads what a failed job was to write; `outcome` says what else became of it. */
void error_set_stale(struct error *error, const char *outcome);

/* options.c */
extern const struct scand_options options_default;

/* monitor.c */
/* Makes the lock and the descriptors. After a failure monitor_finish ends what was made. */
int monitor_init(struct scand *daemon);
void monitor_finish(struct scand *daemon);
/* Guards a session: every function of scand.h that looks at what changes in a session begins with this, and is then
 * alone in it, except while it waits or calls the program. For NULL, no session, it does nothing. */
#define SESSION_GUARD(DAEMON) \
    struct scand *guarded __attribute__((cleanup(session_leave), unused)) = session_enter(DAEMON)
struct scand *session_enter(struct scand *daemon);
void session_leave(struct scand **entered);
/* Enclose what takes time or calls the program. */
void session_unlock(struct scand *daemon);
void session_lock(struct scand *daemon);
/* Makes every call return, and waits until all have. */
void session_end(struct scand *daemon);
/* Notes when something came from the daemon; the service in this process is never silent. */
void session_hears(struct scand *daemon);
/* Returns when a daemon that says nothing is to be asked whether it is there, or taken for gone; INT64_MAX: never. */
int64_t session_probe_ms(const struct scand *daemon);
/* Returns when something is to be done while the daemon says nothing: that, or ending a job that is kept for the next
 * daemon. */
int64_t session_due_ms(const struct scand *daemon);
/* Sleeps until *done, or a change; with `reads`, also until this thread may have to read. Returns 0, -ETIMEDOUT or
 * -EINTR. */
int session_sleep(struct scand *daemon, const bool *done, bool reads, int64_t deadline_ms);
/* Makes a thread that waits for input check again what it waits for. */
void session_wake_reader(struct scand *daemon);
/* Handles EINTR: returns -EINTR when that is to end a wait, else 0. */
int session_interrupted(struct scand *daemon);

/* extents.c */
/* Returns the extent of a tensor. Numbers that overflow are for the daemon to refuse; until then they count as all of
 * the memory. */
struct extent extent_of(const struct scand_tensor *tensor);
bool extents_overlap(const struct extent *a, const struct extent *b);
/* True when no byte of the extent lies between elements. */
bool operand_is_dense(const struct operand *operand);
/* True when both are the same elements of the same memory. */
bool operands_coincide(const struct operand *a, const struct operand *b);

/* answers.c */
void pending_add(struct scand *daemon, struct pending *pending);
/* Removes a pending answer, if it is listed. */
void pending_remove(struct scand *daemon, const struct pending *pending);
/* Returns what waits for this answer, or NULL. */
struct pending *pending_find(const struct scand *daemon, uint32_t msgid);
/* Reads what an answer brings. Returns 0, or -EBADMSG and *error. Every text of the daemon comes through here. */
int answer_read(const struct message *message, const struct map_type *type, void *out, struct error *error);
/* Reads an answer's failure into *out. Returns 0, or -EBADMSG and *error. */
int answer_read_failure(const struct message *message, struct error *out, struct error *error);
/* Sets the error that the daemon explains, with a message in any case. */
void error_from_failure(const struct msg_failure *failure, struct error *out);
/* Moves the descriptors that an answer announces to fds. Returns 0, or -EBADMSG and *error where fewer came. */
int answer_pop_descriptors(struct scand *daemon, uint64_t count, int *fds, struct error *error);

/* hello.c */
/* Keeps the answer to hello, which is the message at hand. Returns 0, -ENOMEM, or -EBADMSG and *error. */
int hello_keep(struct scand *daemon, const struct message *message, struct error *error);
/* Reads one of the daemon's operations, counted from 0. Returns 1; 0 behind the last one; or -errno. */
int hello_operation(struct scand *daemon, uint32_t index, struct msg_operation *out);

/* job_list.c */
/* The params that job.submit and job.run share. */
struct common_params {
    const struct msg_tensor *input;
    uint64_t *progress, *ending, *deadline_ms, *after_failure, *group;
};
struct common_params job_common(struct scand_job *job);
bool job_reads(const struct scand_job *job, const struct extent *extent);
bool job_writes(const struct scand_job *job, const struct extent *extent);
/* Lists a job, which may be done already. */
void job_list(struct scand_job *job);
/* True when the daemon would run the job, which is not listed yet, behind one that has not ended; or when so many jobs
 * are listed that finding out would take long. */
bool job_may_have_to_wait(const struct scand_job *job);
/* Returns the job that has not ended at a place of a batch, or NULL. */
struct scand_job *job_find(const struct scand *daemon, uint32_t msgid, uint32_t index);
/* Calls a job's progress function, unless one of the session's is running: what that one does could otherwise go on
 * forever. `job` may be NULL. */
void job_report(struct scand_job *job, const struct msg_job_progress *progress);
/* Waits while another thread runs the job's progress function. */
void job_wait_reported(const struct scand_job *job);
bool job_is_ragged(const struct scand_job *job);
/* Ends a job, which may free it. */
void job_end(struct scand_job *job, const struct error *error);
/* Ends a job by an answer that is no refusal for the next daemon's sake (held.c). */
void job_answered(struct scand_job *job, const struct error *error);
/* Frees a job that is released and has ended, unless a call has it. */
void job_free_unneeded(struct scand_job *job);
void jobs_free(struct scand *daemon);

/* held.c */
/* Takes in the daemon's answer to a job, which ends it, or keeps it for the next daemon. */
void job_take_answer(struct scand_job *job, const struct error *error);
/* Ends the kept jobs whose time is over. */
void held_check(struct scand *daemon);
/* Ends a kept job, which no daemon has begun. */
void held_end(struct scand_job *job, const char *why);
/* Forgets that the daemon drains, with its connection. The jobs that are kept are the next one's. */
void held_reset(struct scand *daemon);
/* Returns why the next daemon will not have the memory of the job's operands; NULL: it will. */
const char *job_missing_memory(const struct scand_job *job);

/* local.c */
/* Chooses as the option says, or else the environment. */
int local_choose(struct scand *daemon, enum scand_local *out);
/* Finds libscand-local. Returns NULL with the session's error. */
const struct local_library *local_find(struct scand *daemon);
/* Directs the session's connections to the service in this process from now on. */
int local_prepare(struct scand *daemon);
/* Makes the connection; what it has on failure, session_drop ends. */
int local_connect(struct scand *daemon);
/* True when a message would bring the params as they are, with nothing for its reader to refuse: the library has
 * checked the rest. A coefficient of -0 would be left out. */
bool local_is_as_read(const struct msg_job_submit_params *params);
/* Hands over a job without a message. Returns false where one has to be sent. */
bool local_submit(const struct scand_job *job);
/* Gives the result of a job that has ended, for which there is no message. Returns false if there is none. */
bool local_result(const struct scand *daemon, uint32_t *msgid, struct msg_job_submit_result *result);
/* True when the service has something to be read, or is to be called by reading. */
bool local_is_ready(const struct scand *daemon);
/* Returns when the service is to be called, by clock_ms; INT64_MAX: it need not be, or there is a daemon. */
int64_t local_due_ms(const struct scand *daemon);

/* near.c */
/* Chooses as the option says, or else the environment, whether small jobs are computed in this process. */
int near_choose(struct scand *daemon, bool *here);
/* Opens what computes them. */
int near_prepare(struct scand *daemon);
void near_finish(struct scand *daemon);
/* Computes a job that is not listed yet, so that it is done. Returns false where it is for the daemon. */
bool near_compute(struct scand_job *job);

/* transport.c */
/* Returns -ECHILD in a child of the process that connected, -ENOTCONN once scand_disconnect was called, else 0. */
int session_check(struct scand *daemon);
/* Makes the connection; what it has on failure, session_drop ends. `blocks`: waits where others wait for the daemon. */
int session_connect(struct scand *daemon, bool blocks);
/* Drops the connection; jobs wait for reconnect. */
void session_drop(struct scand *daemon);
/* Pauses before the next try of what was sent so often without an answer, so that workers get to the requests of others
 * even if this one ends workers. */
void session_pause(struct scand *daemon, unsigned attempts);
/* Drops the connection for good: every job ends with the session's error. Returns the error's code. */
int session_give_up(struct scand *daemon);
uint32_t session_next_msgid(struct scand *daemon, uint32_t mark);
/* Writes what the socket takes. With output left, scand_fd's descriptor is readable when the socket is writable. */
int session_flush(struct scand *daemon);
/* Queues a request and writes what the socket takes. A broken connection shows when reading: answers may wait. */
int session_send(struct scand *daemon, uint32_t msgid, const struct call *call);

/* receive.c */
/* Handles all messages that have arrived. Returns 0; -EPIPE: the connection is gone, or another one by now; or an error
 * of the daemon, for which the session was given up. */
int session_receive(struct scand *daemon);

/* wait.c */
/* Waits for input until the deadline and handles it, or sleeps while another thread does, until *done. Returns 0, which
 * says nothing; -ETIMEDOUT; -EINTR; -EPIPE: there is no connection, or another one by now; or what session_check
 * returns. Another code: the session was given up, and all its jobs have ended. */
int session_step(struct scand *daemon, const bool *done, int64_t deadline_ms);
/* Steps until *done. */
int session_run(struct scand *daemon, const bool *done, int64_t deadline_ms);
/* Waits until the deadline while there is no connection, or until something has changed. */
int session_rest(struct scand *daemon, const bool *done, int64_t deadline_ms);

/* call.c */
int64_t call_time_ms(const struct call *call); /* for the answer */
/* Sends a call; the answer sets call->answered, and what comes with it. The call must live until then, or be removed.
 */
int call_begin(struct scand *daemon, struct call *call);
/* Sends a call and waits for its answer, on this connection. */
int call_try(struct scand *daemon, struct call *call);

/* buffer_list.c */
/* Creates a buffer and takes over the descriptors, also on failure. Returns NULL with the session's error set. */
struct scand_buffer *buffer_new(struct scand *daemon, uint64_t size_bytes, const int *fds, size_t fd_count);
void buffer_free(struct scand_buffer *buffer);
/* Closes the descriptors of memory that no other worker will be given. */
void buffer_close_descriptors(struct scand_buffer *buffer);
/* Lists a buffer, which is usable from now on. */
int buffer_add(struct scand_buffer *buffer, struct scand_buffer **out);
/* Prepare an import of memory that this program has, and read its answer. */
void import_prepare(struct import *import, const struct scand_buffer *buffer);
uint64_t import_id(const struct import *import);
void import_apply(const struct import *import, struct scand_buffer *buffer);
/* Makes the daemon forget a buffer of this connection; after a broken connection it has forgotten already. */
int buffer_forget(struct scand *daemon, uint64_t id, uint64_t generation);
/* Ends all buffers of a session; their handles may still be released. */
void buffers_end(struct scand *daemon);

/* rings.c */
/* Counts small jobs that were sent, and asks for rings where they are many. Nobody waits for the answer. */
void rings_consider(struct scand *daemon, unsigned jobs);

/* submit.c */
/* True for a job that may be back within microseconds. */
bool job_is_small(struct scand_job *job);
uint64_t job_input_bytes(struct scand_job *job);
/* Makes a job's params ready to be sent, or sent again. */
int job_make_ready(struct scand_job *job);
/* Notes a try of sending a job, and whether it was sent. */
void job_set_sent(struct scand_job *job, bool sent);
int job_submit(struct scand_job *job);
/* Receives results of jobs from the service in this process; they come before what its connection has received. Returns
 * whether there were some. */
bool job_results_receive(struct scand *daemon);
void job_set_times(struct scand_job *job, const struct msg_job_submit_result *result);

/* repeat.c */
/* Ends, on a new connection, the jobs that must not be repeated. */
void jobs_end_unrepeatable(struct scand *daemon);
/* Submits the other jobs again. */
void jobs_submit_again(struct scand *daemon);

/* reconnect.c */
/* Connects and says hello; after a failure the connection is NULL. */
int session_open(struct scand *daemon);
/* Begins a new connection, where there is none. Returns 0, also when another try follows, or -errno with all jobs
 * ended. */
int session_try(struct scand *daemon);
/* True when no daemon came back, and nobody has tried since. */
bool session_is_given_up(const struct scand *daemon);
/* Makes a step of reading, or towards a new connection, which other calls see, too. Returns what session_step does, but
 * never -EPIPE. */
int session_advance(struct scand *daemon, const bool *done, int64_t deadline_ms);
/* Returns 0 with a connection. -errno: there is none yet, or the session was given up and its jobs have ended. */
int session_ready(struct scand *daemon);

/* retry.c */
/* Runs a call: reconnects before or after it, and repeats it where that is harmless; else returns -EOWNERDEAD. */
int call_run(struct scand *daemon, struct call *call);
int import_run(struct scand_buffer *buffer);

/* group.c */
/* Checks that a job may name this group; 0 is none. */
int group_check(struct scand *daemon, uint64_t group);

/* tensor.c */
/* Check an enumerator, and a tensor without a look at its buffer. `name` is what messages call it. */
int word_check(const char *name, unsigned value, const struct words *words, struct error *error);
int tensor_check(const char *name, const struct scand_tensor *tensor, struct error *error);
/* Checks a tensor's numbers, but not its buffer. */
int tensor_check_form(const char *name, const struct scand_tensor *tensor, struct error *error);
/* Checks that a tensor's buffer can be used with this session. */
int tensor_check_buffer(struct scand *daemon, const char *name, const struct scand_tensor *tensor);
/* Adds a tensor to a job's operands, of which there is room for one more, and fills it in. */
void operand_add(struct scand_job *job, const char *name, const struct scand_tensor *tensor, bool is_written,
                 struct msg_tensor *params);

/* task.c */
uint32_t task_operand_count(const struct scand_task *task);
/* Prepares a task's job, as scan_prepare does. */
int task_prepare(struct scand *daemon, const struct scand_task *task, struct scand_job *job);

/* scan.c */
#define SCAN_OPERANDS 4 /* operands of a scan or a reduction, at most */
/* Check what the daemon need not be asked for, and fill params and operands of the job. */
int scan_prepare(struct scand *daemon, const struct scand_scan *scan, struct scand_job *job);
int reduce_prepare(struct scand *daemon, const struct scand_reduce *reduce, struct scand_job *job);

/* buffer.c */
/* Refuses a size of 0. Returns the status. */
int buffer_without_bytes(struct scand *daemon);
int buffer_create(struct scand *daemon, const struct msg_buffer_create_params *params, struct scand_buffer **out);

/* job.c */
/* Checks that a job can be submitted now. */
int submission_check(struct scand *daemon);
/* Make a job that is checked and prepared, but not yet submitted nor listed; the caller frees it. Return NULL with the
 * session's error. */
struct scand_job *job_new(struct scand *daemon, const struct scand_scan *scan);
struct scand_job *job_new_of_task(struct scand *daemon, const struct scand_task *task);

/* rows.c */
/* The caller's array of rows. Programs built with another version have rows of another size: the part that both know is
 * copied. */
struct rows {
    void *array;
    size_t row_bytes, capacity, count;
};
/* Returns -EINVAL for rows of size 0, else 0. */
int rows_check(struct scand *daemon, const struct rows *rows);
bool rows_are_full(const struct rows *rows);
void rows_add(struct rows *rows, const void *row, size_t known_bytes);

#endif

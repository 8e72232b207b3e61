/*
 * What the library's files share, floor by floor: a file calls what is declared before its own functions, never what
 * comes after them.
 *
 * A session (struct scand) outlives the connection that it has at the moment: when that breaks, a later step connects
 * anew, imports the host buffers again and submits again what is safe to repeat (reconnect.c). Functions return 0 or
 * -errno; those that take the session leave the explanation in its `error`. -EPIPE means that the connection broke; no
 * status has it.
 */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include <scand/scand.h>

#include "protocol/codec.h"
#include "protocol/connection.h"
#include "protocol/socket.h"

/* Longest waits. Tests are built with shorter ones. */
#ifndef CALL_MS
#define CALL_MS 30000 /* for an answer; CUDA may take its time to start */
#endif
#ifndef RECONNECT_MS
#define RECONNECT_MS 10000 /* for a daemon to come back */
#endif
#define ANSWER_US 500 /* for the answer that job.ending announced, without blocking */
#ifndef LONG_BYTES
#define LONG_BYTES MIB(32) /* of an input: the job takes a millisecond, and processors fall asleep */
#endif
#define RECONNECT_PAUSE_MS 50
#ifndef BUFFERS_ENDED_MAX
#define BUFFERS_ENDED_MAX 4096 /* of ended sessions, kept for scand_buffer_release */
#endif
#define ATTEMPTS_MAX 3 /* sendings of one request or job: what ends three workers will end a fourth */

/* Marks in the msgid say what a late answer, which nobody waits for any more, brings and must be given back. */
#define MSGID_CREATE UINT32_C(0x80000000)
#define MSGID_IMPORT UINT32_C(0x40000000)
#define MSGID_EXPORT UINT32_C(0x20000000)
#define MSGID_MARKS  (MSGID_CREATE | MSGID_IMPORT | MSGID_EXPORT)

/* An answer that somebody waits for. A call begins with one, and so does a job; of a batch, the first job's counts. */
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
    const void *params;
    const int *fds; /* that go with it */
    size_t fd_count;
    int64_t timeout_ms; /* 0: CALL_MS */
    void *result;
    int *received; /* room for the descriptors that come with the answer, of buffer.create LIMIT_MESSAGE_FDS */
    size_t received_count;
    bool answered;
    struct error error;
};

struct scand {
    struct connection *connection; /* NULL: broken, and not yet made anew */
    int socket;                    /* the connection's, also before there is one; -1: none */
    pid_t owner;                   /* the process that connected; 0 in a child */
    struct scand *next;            /* of the process */
    bool gone;                     /* no daemon came back; all jobs have ended */
    bool watches_output;
    bool in_callback;
    int epoll;            /* what scand_fd shows; the sockets of all connections come and go in it */
    uint64_t generation;  /* counts broken connections */
    uint64_t spin_end_us; /* until then answers are waited for without blocking: one was announced */
    uint32_t last_msgid;
    char path[SOCKET_PATH_BYTES];
    char name[LIMIT_NAME_BYTES];
    char server[LIMIT_NAME_BYTES];
    uint64_t job_steps;      /* that the daemon takes */
    uint64_t batch_jobs;     /* in one message, likewise */
    struct pending *pending; /* the latest first: a progress callback may call while another call waits */
    struct scand_buffer *buffers;
    struct scand_job *jobs, **jobs_end; /* in the order of submission */
    struct error error;                 /* of the last call that failed */
    uint8_t outgoing[LIMIT_MESSAGE_BYTES];
};

struct scand_buffer {
    struct scand *daemon; /* NULL: its session has ended */
    struct scand_buffer *next;
    uint64_t id;
    uint64_t size_bytes;
    uint64_t segment_bytes; /* of each descriptor; 0: an imported memfd */
    enum scand_place place;
    const char *lost; /* why the daemon has it no more; NULL while it has */
    void *data;
    uint64_t device_index; /* as on the wire: the number of its device + 1; 0: host memory, or not told */
    dev_t device;          /* with inode: which memory it is, also when that was imported twice */
    ino_t inode;
    bool foreign; /* device memory of this program's, by its handle or its descriptor */
    uint8_t handle[SCAND_IPC_BYTES];
    uint64_t allocation_bytes, offset; /* of that memory */
    size_t fd_count;
    int fds[]; /* kept, to import them into the next worker */
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
    uint64_t *id; /* the buffer's in the daemon, among the job's params */
};

struct scand_job {
    struct pending pending; /* its msgid is 0 while the job is not submitted on this connection */
    struct scand *daemon;
    struct scand_job *next;
    uint32_t index; /* in the batch of that msgid, from 1 on; 0: submitted alone */
    struct msg_job_submit_params params;
    scand_progress *progress;
    void *context;
    int64_t start_by_ms; /* by clock_ms, where params have a deadline */
    unsigned attempts;
    bool sent;      /* it may have reached the daemon */
    bool cancelled; /* on request */
    bool released;  /* freed when it ends and nobody waits for it */
    bool awaited;   /* a callback may release the job that scand_wait waits for */
    bool done;
    bool stale;         /* one that was to write what it reads has failed meanwhile */
    struct error error; /* with which it ended; while reconnecting, why it cannot be repeated */
    struct scand_times times;
    uint32_t operand_count;
    struct operand operands[];
};

/* clock.c */
int64_t clock_ms(void);
uint64_t clock_us(void);

/* process.c */
/* Lists a session. -ENOMEM: forks would not be seen. */
int process_add(struct scand *daemon);
void process_remove(struct scand *daemon);
/* True in a child of the process that connected. */
bool process_is_child(const struct scand *daemon);
/* A session of the process that this one is a child of, or NULL. */
struct scand *process_inherited(void);
/* Makes the session's socket, which a fork closes in the child from then on. Returns it, or -errno. */
int process_open(struct scand *daemon);
/* Makes the connection of the socket, and closes that on failure. */
bool process_connect(struct scand *daemon);
/* Ends connection and socket, where there are any. */
void process_close(struct scand *daemon);
/* Keeps an ended buffer's handle until it is released, or so many others have ended. */
void process_bury(struct scand_buffer *buffer);
void process_unbury(struct scand_buffer *buffer);

/* error.c */
int session_fail(struct scand *daemon, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* For a job that reads what a failed one was to write; `outcome`: what else became of it. */
void error_set_stale(struct error *error, const char *outcome);

/* extents.c */
/* Numbers that overflow are for the daemon to refuse; until then they count as all of the memory. */
struct extent extent_of(const struct scand_tensor *tensor);
bool extents_overlap(const struct extent *a, const struct extent *b);

/* answers.c */
void pending_add(struct scand *daemon, struct pending *pending);
/* Removes it, where it is listed. */
void pending_remove(struct scand *daemon, const struct pending *pending);
/* The one that waits for this answer, or NULL. */
struct pending *pending_find(const struct scand *daemon, uint32_t msgid);
/* Reads what an answer brings: 0, or -EBADMSG and *error. Every text of the daemon comes through here. */
int answer_read(const struct message *message, const struct map_type *type, void *out, struct error *error);
/* An answer's failure into *out. Returns 0, or -EBADMSG and *error. */
int answer_read_failure(const struct message *message, struct error *out, struct error *error);
/* What the daemon explains, with a message in any case. */
void error_from_failure(const struct msg_failure *failure, struct error *out);
/* Moves the descriptors that an answer announces to fds. Returns 0, or -EBADMSG and *error where fewer came. */
int answer_pop_descriptors(struct scand *daemon, uint64_t count, int *fds, struct error *error);

/* job_list.c */
bool job_reads(const struct scand_job *job, const struct extent *extent);
bool job_writes(const struct scand_job *job, const struct extent *extent);
void job_list(struct scand_job *job);
/* The one that has not ended at a place of a batch, or NULL. */
struct scand_job *job_find(const struct scand *daemon, uint32_t msgid, uint32_t index);
bool jobs_wait(const struct scand *daemon);
/* Calls its progress function, unless that runs: what it does could go on forever otherwise. `job` may be NULL. */
void job_report(struct scand_job *job, const struct msg_job_progress *progress);
/* Ends a job, which may free it. */
void job_end(struct scand_job *job, const struct error *error);
/* Frees a job that is released and has ended, unless scand_wait is about to look at it. */
void job_free_unneeded(struct scand_job *job);
void jobs_free(struct scand *daemon);

/* transport.c */
/* -ECHILD in a child of the process that connected, else 0. */
int session_check_owner(struct scand *daemon);
/* Makes the connection; what it has on failure, session_drop ends. */
int session_connect(struct scand *daemon);
/* Drops the connection; jobs wait for reconnect. */
void session_drop(struct scand *daemon);
/* Drops the connection for good: every job ends with session's error. Returns its code. */
int session_give_up(struct scand *daemon);
uint32_t session_next_msgid(struct scand *daemon, uint32_t mark);
/* Writes what the socket takes. With output left, scand_fd's descriptor is readable when the socket is writable. */
int session_flush(struct scand *daemon);
/* Queues a request and writes what the socket takes. A broken connection shows when reading: answers may wait. */
int session_send(struct scand *daemon, uint32_t msgid, const struct call *call);

/* receive.c */
/* Handles all messages that have arrived. -EPIPE: the connection is gone, or another one now; what else it may return
 * is an error of the daemon, for which the session was given up. */
int session_receive(struct scand *daemon);

/* wait.c */
/* Waits for input until the deadline and handles it. -ECHILD: this is a child of the session's process.
 * Another code than these, 0, -ETIMEDOUT or -EPIPE: the session was given up, and all its jobs have ended. */
int session_step(struct scand *daemon, int64_t deadline_ms);
/* Steps until *done. -EPIPE also when the connection was replaced meanwhile, by a call from a callback. */
int session_run(struct scand *daemon, const bool *done, int64_t deadline_ms);

/* call.c */
/* Sends and waits, on this connection. */
int call_try(struct scand *daemon, struct call *call);

/* buffer_list.c */
/* Takes over the descriptors, also on failure. Returns NULL with the session's error set. */
struct scand_buffer *buffer_new(struct scand *daemon, uint64_t size_bytes, const int *fds, size_t fd_count);
void buffer_free(struct scand_buffer *buffer);
/* Lists what is usable from now on. */
int buffer_add(struct scand_buffer *buffer, struct scand_buffer **out);
/* Imports memory that this program has, by call_try or call_run. */
typedef int call_runner(struct scand *daemon, struct call *call);
int buffer_import(struct scand_buffer *buffer, call_runner *run);
/* Lets the daemon forget a buffer. A broken connection has done that already. */
int buffer_forget(struct scand *daemon, uint64_t id);
/* Ends all that a session has; their handles may still be released. */
void buffers_end(struct scand *daemon);

/* submit.c */
/* Makes its params ready to be sent, or sent again. */
int job_make_ready(struct scand_job *job);
int job_submit(struct scand_job *job);
void job_set_times(struct scand_job *job, const struct msg_job_submit_result *result);

/* reconnect.c */
/* Connects and says hello; the connection is NULL afterwards if that failed. */
int session_open(struct scand *daemon);
/* Returns 0 with a connection, or -errno with all jobs ended. */
int session_ready(struct scand *daemon);

/* retry.c */
/* call_try, reconnecting before or after, and repeated where that is harmless; else -EOWNERDEAD. */
int call_run(struct scand *daemon, struct call *call);

/* scan.c */
#define SCAN_OPERANDS 4 /* at most, of a scan or a reduction */
/* Checks what the daemon need not be asked for, and fills params and operands of the job. */
int scan_prepare(struct scand *daemon, const struct scand_scan *scan, struct scand_job *job);
int reduce_prepare(struct scand *daemon, const struct scand_reduce *reduce, struct scand_job *job);

/* buffer.c */
int buffer_create(struct scand *daemon, const struct msg_buffer_create_params *params, struct scand_buffer **out);

/* job.c */
/* A job that is checked and prepared, but not yet submitted nor listed; its caller's to free. NULL and the session's
 * error. */
struct scand_job *job_new(struct scand *daemon, const struct scand_scan *scan);

#endif

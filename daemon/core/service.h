/*
 * The service: clients, their buffers and jobs, and what each message does. Everything between a connection's bytes and
 * a device's chunks, without a loop, a clock or a thread: the process around it brings connections, times, completed
 * chunks and finished work, and does what struct service_ops asks. One thread at a time.
 */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <assert.h>

#include "protocol/connection.h"
#include "protocol/messages.h"

#include "daemon/core/jobs/group.h"
#include "daemon/core/memory/stock.h"
#include "daemon/core/schedule/helpers.h"
#include "daemon/core/schedule/scheduler.h"
#include "daemon/core/stats/device_time.h"
#include "daemon/core/stats/event_log.h"
#include "user.h"

#define SERVICE_NAME "scand " SCAND_RELEASE /* as hello and metrics tell it; the build gives the release */

struct service_ops {
    /* Hands chunks, linked by next, to their devices; they come back through service_collect. */
    void (*start)(void *context, struct chunk *chunks);
    /* Has a helper thread do a unit of the work (work_run), which comes back through service_work_done. At most
     * LIMIT_HELPERS are out at a time. */
    void (*defer)(void *context, struct work *work);
    /* Has a reader thread do a unit of the work, which files of clients may hold up for any length of time; at most
     * LIMIT_READERS are out. */
    void (*read)(void *context, struct work *work);
    /* The client's connection has output to flush. */
    void (*output)(void *context, struct client *client);
    /* Tells that new jobs are refused from now on. May be called more than once. */
    void (*draining)(void *context);
    /* Tells that draining has ended: no job is left. May be called more than once. */
    void (*drained)(void *context);
    /* Returns microseconds of a monotonic clock. */
    uint64_t (*now_us)(void *context);
    /* Calls service_tick at this time of that clock, or a little later, instead of when it was to be called before.
     * UINT64_MAX: not at all. */
    void (*wake)(void *context, uint64_t at_us);
    /* True when the loop's thread has slept at memory since the last call (trust.h). */
    bool (*slept)(void *context);
};

/* Remainders of msgids that are counted: nearly always one look tells that no job has a request's msgid. */
#define CLIENT_MSGIDS 256
static_assert(LIMIT_CLIENT_JOBS <= UINT16_MAX, "a count of a client's jobs");

/* Counters of a client. */
struct client_counters {
    uint64_t jobs_done, rows_scanned, samples_scanned, device_busy_ns;
};

/* Counters of a device. */
struct device_counters {
    struct device_time device_time;
    uint64_t upload_bytes, download_bytes;
};

struct client {
    struct service *service;
    uint64_t number; /* a number of its own among all connections of the daemon */
    pid_t pid;       /* the process that connected; 0: unknown */
    uint64_t opened_us;
    struct client_counters counters;
    struct connection *connection; /* NULL once the client is gone */
    void *peer;                    /* end of the connection at the loop (net/peer.h) */
    /* Takes the result of a job for the client, which has no message then; it returns false where one is to be sent.
     * NULL: all results are sent. */
    bool (*take_result)(void *peer, uint32_t msgid, const struct msg_job_submit_result *result);
    struct user *user;           /* held */
    char name[LIMIT_NAME_BYTES]; /* the name that the client gives itself */
    bool admitted;               /* the connection is within its user's quota, and there was a free one */
    bool greeted;                /* hello was accepted */
    bool strict;                 /* hello asked for errors about unknown fields */
    uint64_t waiting_fds;        /* descriptors that have come and were not taken */
    uint64_t unread_bytes;       /* bytes of answers that have not been sent, */
    uint64_t unread_fds;         /* and descriptors that go with them */
    bool failed;                 /* the client broke the protocol: nothing more is read from it */
    bool paused;                 /* the client does not read its answers: its requests wait until it does */
    unsigned holds;              /* references of the connection, jobs and work */
    struct buffer *buffers;
    struct device *home; /* device of the latest device buffer; NULL: there is none */
    size_t buffer_count; /* buffers, also being made or waited for */
    unsigned waits;      /* buffers that are waited for */
    uint64_t last_buffer_id;
    struct job *jobs; /* all jobs that have not ended, by member peer */
    size_t job_count;
    uint16_t jobs_by_msgid[CLIENT_MSGIDS];   /* jobs whose msgid has this remainder */
    uint64_t offsets_bytes;                  /* memory of its jobs' offsets */
    struct reading *readings, *last_reading; /* copies of offsets under way, in the order of submission */
    struct turn_client turn;
    bool stale, stale_unsent; /* some buffers are stale (stale.h), and the client may have yet to be told why */
    unsigned failing_batches; /* batches with failures, of which the client is told at their end */
    struct group groups[LIMIT_CLIENT_GROUPS]; /* by their labels */
    bool knows_drain;                         /* a job of it was refused because the daemon drains */
    struct lane lane;
    struct client *next;
};

/* Memory for bytes that are read from files (memory/blocks.h): blocks that nobody uses now. */
struct blocks {
    struct block *kept;
    uint64_t kept_bytes;
};

/* A unit of work that has ended. A user has two queues of work, so one of three is another user's, or the pool's. */
#define ENDED_UNITS 3

struct ended_unit {
    const struct work_queue *queue;
    uint64_t ended_us;
};

struct service {
    const struct service_ops *ops;
    void *context;
    const struct device_set *devices;
    struct pool *pool;
    uid_t owner; /* the user who may drain the daemon, besides root */
    bool draining;
    uint64_t drain_end_us; /* time of ops->now_us until which groups hold up a drain */
    struct scheduler scheduler;
    struct chunk_queue chosen; /* chunks that are about to be handed to devices */
    struct helpers helpers, readers;
    struct round_robin *waiting; /* users with requests that wait for memory: whose turn it is */
    bool serving_waiting;
    struct stock maps;              /* memory maps of the process, for imports */
    struct stock files;             /* open files of clients */
    struct stock lent_fds;          /* descriptors of clients that threads have (memory/client_descriptors.h) */
    struct stock rings;             /* connections with rings */
    struct stock loads, load_bytes; /* chunks that are read of files, and the memory for them */
    struct blocks blocks;
    struct spare_jobs spare_jobs;
    struct arena *arena;         /* messages are read in it */
    struct round_robin *feeding; /* users with jobs that read files: whose turn it is */
    struct deadlines deadlines;  /* of jobs, and of requests that wait for memory */
    uint64_t load_due_us;        /* the time before which no file has to have been read */
    uint64_t wake_us;            /* the time before which none of these is */
    uint64_t offsets_bytes;      /* memory of all jobs' offsets */
    struct user_table users;
    unsigned clients_most;                /* connections that may be open */
    struct stock waiting_fds, unread_fds; /* descriptors of all clients, in messages that wait and in unsent answers */
    uint64_t unread_bytes;                /* unsent bytes of all clients */
    struct turns turns;
    bool touches;                         /* the loop may be touching memory of a user's (trust.h), */
    uid_t touching;                       /* of this one; no pointer, as the supervisor reads it and trusts no worker */
    struct ended_unit units[ENDED_UNITS]; /* the latest of helpers and readers, by queues (trust.h) */
    struct client *clients;
    uint64_t began_us;
    uint64_t now_us;               /* time at which the loop's present work began */
    struct msg_stats_result stats; /* but for what server.stats adds */
    struct msg_histograms_result histograms;
    struct device_counters device_counters[LIMIT_DEVICES]; /* by the device's number */
    struct event_log event_log;
    struct msg_operation operations[OPERATION_COUNT]; /* operations as hello describes them */
};

/* Counters that outlive a worker: sums since the daemon began. */
struct service_totals {
    struct msg_stats_result stats; /* 0 for counters of what there is now */
    struct msg_histograms_result histograms;
    struct {
        uint64_t busy_us, upload_bytes, download_bytes;
    } devices[LIMIT_DEVICES]; /* by the device's number */
    struct distrusted distrusted;
};

void service_init(struct service *service, const struct service_ops *ops, void *context,
                  const struct device_set *devices, struct pool *pool, uid_t owner);
/* The totals of a service, also of one whose process has ended at any moment: jobs that it still had have failed. */
void service_totals(const struct service *service, struct service_totals *totals);
/* Goes on counting, after service_init, where another service ended, `restarts` services after the first. */
void service_resume(struct service *service, const struct service_totals *totals, uint64_t restarts);
/* Frees what is left. Every connection must be closed, and no chunk or work be out. */
void service_finish(struct service *service);
/* Frees, after service_finish, memory that is kept for what comes next. Slow where much is pinned. */
void service_trim(struct service *service);

/* Says how many memory maps the process may have (vm.max_map_count), which is LIMIT_MAPS_STANDARD before. */
void service_limit_maps(struct service *service, uint64_t most);
/* Says how many descriptors there are for connections, and how many for what else clients make the process open: a
 * quarter each for files in buffers, for what comes with messages, for what threads have, and for what goes with
 * answers. */
void service_limit_files(struct service *service, uint64_t connections, uint64_t others);

/* Changes what is granted to users, at once. */
void service_configure(struct service *service, const struct grants *grants);

/* True when a connection of that user would be turned away: what service_open finds, for the price of a look. */
bool service_is_full(struct service *service, uid_t uid);
/* A new client on a connection that it owns from now on; NULL, with the connection left alone, when there is no room or
 * no memory. A user may have as many connections as are still free, so that there is room for whoever has none yet, and
 * the last LIMIT_CLIENTS_KEPT are for users who manage. A client beyond its user's quota or share is not admitted:
 * unless there is room when its first message comes, that is answered with the error, and the connection ends. */
struct client *service_open(struct service *service, struct connection *connection, uid_t uid);
/* Closes a client that is gone: drops its queue, and frees its connection, and its buffers when the last running chunk
 * lets go. */
void service_close(struct client *client);
/* Gives the memory of the client's rings back to the system, so that nothing stays where the client keeps it: answers
 * that it has not read are gone. For a connection that is about to be closed. */
void service_wipe_rings(struct client *client);
/* Start and end a client's part in turns: it has something to be handled, or to be read, until service_rest. */
void service_ready(struct client *client);
void service_rest(struct client *client);
/* Returns the client whose turn it is; NULL: nobody is ready. */
struct client *service_next(struct service *service);
/* Charges the user for the loop's work since that time of ops->now_us. Returns the time now. */
uint64_t service_charge(struct service *service, struct user *user, uint64_t since_us);
/* Handles the complete messages that have arrived, one at least, until that time of ops->now_us, or LIMIT_TURN_MESSAGES
 * of them. 1: some are left for another turn; 0: none are, or the client is paused: they wait until output has been
 * sent; -errno: read no more, flush the output, then close. */
int service_input(struct client *client, uint64_t end_us);
/* Takes a job of a client that is in this process, which brings no message, and answers it as if one had come. Returns
 * false, with nothing done, where it has to come as a message. */
bool service_submit(struct client *client, uint32_t msgid, const struct msg_job_submit_params *params);
/* Notes that output of the client is about to be sent: its later requests may be sent with knowledge of that output. */
void service_sends(struct client *client);
/* Notes that output has been sent. */
void service_sent(struct client *client);
/* True when no more is to be asked for: so much output is unsent, of the client or, where it has some, of its user, or
 * threads have so many of its user's descriptors. */
bool service_is_clogged(const struct client *client);
/* True when threads have so many of a user's descriptors that nothing more is to be read of its connections. */
static inline bool service_lends_many(const struct service *service, const struct user *user)
{
    return user->lent_fds > stock_allowed_half(&service->lent_fds, user->lent_fds);
}
/* Handles a turn of chunks that have come back, linked by next: takes one at least off the list, until that time of
 * ops->now_us, or LIMIT_TURN_CHUNKS of them; the user of each is charged. Then hands devices what they can take
 * instead. */
void service_collect(struct service *service, struct chunk **returned, uint64_t end_us);
/* Goes on after a helper has done a unit of the work. */
void service_work_done(struct service *service, struct work *work);
/* Does what is due at a time that ops->wake was told. */
void service_tick(struct service *service);
/* Fill in what server.stats and server.devices answer; the latter returns how many devices there are. */
void service_describe_stats(struct service *service, struct msg_stats_result *out);
uint32_t service_describe_devices(struct service *service, struct msg_device out[LIMIT_MAPS]);
/* Fills in a page of what server.users answers, from place *from of the table on, which becomes that of the next page,
 * or 0 after the last. Returns how many users are on it. */
uint32_t service_describe_users(struct service *service, uint64_t *from, struct msg_user_row out[LIMIT_MAPS]);
/* Refuses new jobs from now on; ops->drained follows when the last has ended. Where a group is open, its client is to
 * know why there is no next job, so it follows when that was refused, or some time has passed. */
void service_drain(struct service *service);

#endif

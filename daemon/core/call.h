/*
 * What the handlers of messages share. A handler gets a call and its decoded params. It returns 0 when it has answered
 * or will answer later, or -errno with call->error set, which becomes the answer.
 */
#ifndef DAEMON_CALL_H
#define DAEMON_CALL_H

#include "service.h"

struct call {
    struct service *service;
    struct client *client;
    uint32_t msgid;
    uint64_t position; /* of its message, in bytes that the client has sent */
    struct error error;
    /* The descriptors that came with it. A handler that takes them sets fd_count to 0; the others are closed. */
    int fds[LIMIT_MESSAGE_FDS];
    size_t fd_count;
};

#define X(HANDLER, METHOD, PARAMS, RESULT) int handle_##HANDLER(struct call *call, const struct msg_##PARAMS *params);
METHODS(X)
#undef X

/* For want of a measure of how long the pool stays full: when a client that is told so should try again. */
#define RETRY_MS 20

/* Answers a request of a client; into nothing when it is gone. */
void reply_result(struct client *client, uint32_t msgid, const struct map_type *type, const void *result);
/* The same with descriptors, of which the caller keeps its own. 0, or -errno and nothing sent: they cannot be now. */
int reply_descriptors(struct client *client, uint32_t msgid, const struct map_type *type, const void *result,
                      const int *fds, size_t fd_count);
void reply_nothing(struct client *client, uint32_t msgid);
void reply_failure(struct client *client, uint32_t msgid, const struct error *error);
void notify(struct client *client, enum method method, const struct map_type *type, const void *params);

/* Has helpers do slow work, in turns between users; this one is held until it is done. */
void service_defer(struct service *service, struct user *user, struct work *work);

/* Closes descriptors that a user sent: those of large memory, whose pages may all go with them, on a helper thread. */
void descriptors_drop(struct service *service, struct user *user, const int *fds, size_t count);

/* Charges device time up to now. */
void service_read_meters(struct service *service);

/* True for root and the daemon's own user. */
bool client_may_manage(const struct client *client);

void client_hold(struct client *client);
void client_unhold(struct client *client); /* frees it after the last */

void buffer_hold(struct buffer *buffer);
void buffer_unhold(struct service *service, struct buffer *buffer); /* dismantles and frees it after the last */
/* Prepares a new buffer, at once where that is quick, and answers: 0, or -errno and call->error. */
int buffer_begin(struct call *call, struct buffer *buffer);

/* Lets a request for memory of the pool wait. 0: it is answered later. -EAGAIN: no more may wait. */
int buffer_wait(struct call *call, uint64_t size_bytes, uint64_t wait_ms);
/* Memory of the pool is free again: whoever waits gets it, in turns. */
void waiting_pump(struct service *service);
/* Ends what has waited for long enough. The earliest end of the others. */
uint64_t waiting_expire(struct service *service, uint64_t now_us);
/* The client is gone. */
void waiting_drop(struct client *client);
/* Has service_tick called at this time, or before. */
void service_wake_by(struct service *service, uint64_t at_us);

/* Has helpers pin what is not pinned yet. Jobs may come meanwhile. */
void buffer_pin_rest(struct service *service, struct buffer *buffer);
struct buffer *client_find_buffer(const struct client *client, uint64_t id);

/* Whether jobs are taken at all, and no others have this msgid: 0, or -errno and call->error. */
int check_submission(struct call *call);
/* Takes a job, at this place of a batch, or alone: NULL and 0. It will be answered when it ends. 0, or -errno and
 * call->error. */
int job_admit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch, uint32_t index);
/* The offsets of a job that is queued have been copied. It can run now, or has nothing to do and ends. */
void job_go_on(struct service *service, struct job *job, struct offsets_copy *copy);
/* A job of a batch has ended: the last one answers for all. */
void batch_note(const struct job *job);
/* Stops a job for good, now or when its last chunk comes back. */
void job_abandon(struct service *service, struct job *job, int code, const char *message);
/* Ends the jobs whose time to start has passed, and hands the device what it can take. */
void service_pump(struct service *service);

#endif

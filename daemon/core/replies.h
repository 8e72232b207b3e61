/* Answers and notifications to clients, and how much of them is unread. */
#ifndef DAEMON_REPLIES_H
#define DAEMON_REPLIES_H

#include "protocol/encoding.h"
#include "service.h"

/* Answers a request of a client; into nothing when it is gone. */
void reply_result(struct client *client, uint32_t msgid, const struct map_type *type, const void *result);
/* Replies with duplicates of descriptors, which stay the caller's. Returns 0, or -errno with nothing sent. */
int reply_descriptors(struct client *client, uint32_t msgid, const struct map_type *type, const void *result,
                      const int *fds, size_t fd_count);
void reply_nothing(struct client *client, uint32_t msgid);
void reply_failure(struct client *client, uint32_t msgid, const struct error *error);
void notify(struct client *client, enum method method, const struct map_type *type, const void *params);

/* Counts the cause of a refusal: of a message, or of a job in a batch. */
void count_refusal(struct msg_stats_result *stats, int code);

/* Sets how many bytes of answers to the client are not sent yet, with how many descriptors. */
void client_count_unread(struct client *client, uint64_t bytes, uint64_t fds);

#endif

/*
 * The messages of a worker to its supervisor, each with one descriptor at most, over a pair of sockets that each worker
 * has anew. A message arrives whole, in the order of sending, and also after the worker has ended.
 */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include <stddef.h>

enum channel_word {
    CHANNEL_READY,    /* the worker takes jobs */
    CHANNEL_DRAINING, /* the worker takes no more jobs */
    CHANNEL_SEGMENT,  /* a segment of the pool has other memory: that of the descriptor */
};

struct channel_message {
    enum channel_word word;
    size_t index; /* the segment's, for CHANNEL_SEGMENT */
    int fd;       /* -1: no descriptor; one from channel_receive belongs to the receiver */
};

struct channel {
    int supervisor_fd, worker_fd; /* -1: closed */
};

/* Makes the pair of sockets. Returns 0 or -errno. */
int channel_open(struct channel *channel);
/* Closes the ends that are still open. */
void channel_close(struct channel *channel);
/* Sends a message at the worker's end, from any thread. Returns 0 or -errno. */
int channel_send(int fd, const struct channel_message *message);
/* Closes an end that is still open. */
void channel_end_close(int *fd);
/* Receives a message at the supervisor's end without waiting. Returns 1 with a message, 0 when none is there, or -EPIPE
 * when none will come. */
int channel_receive(int fd, struct channel_message *message);

#endif

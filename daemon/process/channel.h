/*
 * What a worker tells its supervisor: messages with one descriptor at most, over a pair of sockets that each worker has
 * anew. What a worker has sent arrives whole, in its order, and also after the worker has ended.
 */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include <stddef.h>

enum channel_word {
    CHANNEL_READY,    /* the worker takes jobs */
    CHANNEL_DRAINING, /* it takes no more */
    CHANNEL_SEGMENT,  /* a segment of the pool has other memory: that of the descriptor */
};

struct channel_message {
    enum channel_word word;
    size_t index; /* of CHANNEL_SEGMENT: which */
    int fd;       /* -1: the message comes without; from channel_receive it is the receiver's */
};

struct channel {
    int supervisor_fd, worker_fd; /* -1: closed */
};

/* 0 or -errno. */
int channel_open(struct channel *channel);
/* Closes what is open of it. */
void channel_close(struct channel *channel);
/* The worker's end; any thread. 0 or -errno. */
int channel_send(int fd, const struct channel_message *message);
/* The supervisor's end: 1 with a message; 0: none is there now, or will be. */
int channel_receive(int fd, struct channel_message *message);

#endif

/* A connection of an attacker: requests in the protocol's own terms, whose answers are counted. */
#ifndef TESTS_BENCH_HOSTILE_LINE_H
#define TESTS_BENCH_HOSTILE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/connection.h"
#include "protocol/encoding.h"

struct attacker;
struct line;

/* A function that is called with each answer, also with a failure. */
typedef void line_answered(struct attacker *self, struct line *line, const struct message *message);

struct line {
    struct connection *connection; /* NULL: there is none */
    uint32_t msgid;                /* msgid of the latest request */
    unsigned waiting;              /* requests without an answer */
    line_answered *answered;       /* may be NULL */
    uint64_t buffers[2];           /* for the attack: ids of what it has imported */
    const void *memory;            /* for the attack */
    /* The answer that is waited for. */
    uint32_t called;
    const struct map_type *result_type;
    void *result;
    bool has_result;
};

/* Connects and says hello, without waiting for the answer. False: there is no connection. */
bool line_open(struct attacker *self, struct line *line);
void line_close(struct line *line);
/* Queues a request; false where it does not fit. */
bool line_ask(struct line *line, enum method method, const struct map_type *type, const void *params, const int *fds,
              size_t fd_count);
/* Sends what the socket takes and counts the answers that have come. False: the connection has ended. */
bool line_turn(struct attacker *self, struct line *line);
/* Waits for the answer to the latest request and reads it. False: it was an error, or none has come. */
bool line_answer(struct attacker *self, struct line *line, const struct map_type *type, void *result);
/* Waits until the answer to this request has come, or the attacker's time is over. */
bool line_await(struct attacker *self, struct line *line, uint32_t msgid);

#endif

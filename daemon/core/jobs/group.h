/*
 * Jobs that people see as one: a file that goes through the daemon in parts, say. A group has a number among those of
 * jobs, for as long as its connection keeps it open, also at moments when none of its jobs is there. Each of its jobs
 * is otherwise a job like any.
 */
#ifndef DAEMON_GROUP_H
#define DAEMON_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/messages.h"

struct client;
struct job;

/* A client's place for a group; it has LIMIT_CLIENT_GROUPS of them. */
struct group {
    uint64_t number;                  /* 0: the place is free */
    uint64_t rows;                    /* rows that the group has in all, as its client says; 0: it does not know */
    uint64_t rows_done;               /* rows of its jobs that have succeeded */
    uint64_t bytes;                   /* bytes of all its jobs so far */
    unsigned jobs;                    /* jobs that have not ended */
    uint64_t begun_us;                /* time at which it was begun, */
    uint64_t started_us;              /* and when the first of its jobs that have ended was started; 0: none was */
    bool cancelled;                   /* true when further jobs of it are refused */
    uint32_t priority;                /* priority of the latest job */
    char name[LIMIT_NAME_BYTES];      /* "" where it has none of its own */
    char operation[LIMIT_NAME_BYTES]; /* operation of the latest job, in words */
};

/* Opens a group in a free place. 0, or -errno and *error. */
int group_begin(struct client *client, const struct msg_group_begin_params *params, struct error *error);
/* Closes a group without jobs. 0, or -errno and *error. */
int group_end(struct client *client, uint64_t label, struct error *error);

/* The group that a job's field names: sets *out, to NULL where that is 0. -EINVAL where there is none, -ECANCELED where
 * it was cancelled. */
int group_of_field(struct client *client, uint64_t field, struct group **out, struct error *error);
/* A job of the group was accepted, or has ended. */
void group_add(struct group *group, const struct job *job);
void group_remove(struct group *group, const struct job *job);

/* Returns the bytes that the job's input and output span. */
uint64_t job_extent_bytes(const struct job *job);
/* Writes a description of the job for people. `out` has `size` bytes. */
void job_describe(const struct job *job, char *out, size_t size);

#endif

/*
 * A file or a pipe that is read from its beginning to its end; a file's parts again, where that is asked for.
 */
#ifndef SCANCTL_INPUT_H
#define SCANCTL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/scanctl/ui/error.h"

/* The size of pipes on either side, where the system allows it: fewer turns between the programs. */
#define PIPE_BYTES (1 << 20)

struct input {
    int fd;
    const char *name;    /* for messages; the caller's */
    bool sized;          /* a regular file: its size is known, and input_peek and input_seek work */
    uint64_t size_bytes; /* size of a sized input */
    uint64_t position;   /* position of the next byte to be read */
    char *own_name;      /* owned copy of `name`, where input_replace made one */
    /* The bytes that input_look has read, and input_read has not yet passed on. */
    unsigned char *ahead;
    uint64_t ahead_at, ahead_bytes;
};

/* Opens a file, or standard input for "-". Close with input_close. */
int input_open(struct input *input, const char *path, struct error *error);
void input_close(struct input *input);

/* Opens another file in place of the one that is open, which stays open where that fails. */
int input_replace(struct input *input, const char *path, struct error *error);

/* Reads exactly size_bytes; EX_DATAERR where the input ends before. `what` says what the bytes are. */
int input_read(struct input *input, void *data, uint64_t size_bytes, const char *what, struct error *error);
/* Reads size_bytes, or fewer where the input ends before; *size_bytes is then how many. */
int input_read_most(struct input *input, void *data, uint64_t *size_bytes, struct error *error);
/* The next size_bytes, or as many as there are, which the next input_read returns again. They are there until then. */
int input_look(struct input *input, uint64_t size_bytes, const unsigned char **bytes, uint64_t *available,
               struct error *error);
/* Reads size_bytes at an offset of a sized input and leaves the position alone. */
int input_peek(const struct input *input, void *data, size_t size_bytes, uint64_t offset, struct error *error);
/* Goes to an offset of a sized input, to read from there. */
int input_seek(struct input *input, uint64_t offset, struct error *error);
/* Goes past the next size_bytes; EX_DATAERR where the input ends before. */
int input_skip(struct input *input, uint64_t size_bytes, struct error *error);
/* Checks that everything has been read; else EX_DATAERR. */
int input_expect_end(struct input *input, struct error *error);

#endif

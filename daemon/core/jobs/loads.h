/*
 * Loads, by which jobs read files: for each of a job's next chunks, a block of memory into which readers put the bytes
 * that the chunk's rows span in the files. The device then gets the chunk with its operands in the block, and knows
 * nothing of files. So a read that fails or lasts ends or delays its own job alone, and devices wait for no disk.
 *
 * A load belongs to its job (struct loads), then to the chunk that has it, and ends when that is done. Bytes are read
 * for each chunk anew, since a file may have become another.
 *
 * load_run is a reader's; everything else is for the loop's thread.
 */
#ifndef DAEMON_LOADS_H
#define DAEMON_LOADS_H

#include "daemon/core/memory/blocks.h"
#include "job.h"

/* The ways to read an operand's bytes: all between the first and the last; or, where most of these are gaps, its rows;
 * or each sample of all its rows, which the block then has one behind the other. */
enum gather { GATHER_ALL, GATHER_ROWS, GATHER_COLUMNS };

/* Bytes of a file, in lines, and where these lie in the block. */
struct load_part {
    struct buffer *buffer; /* held while it is read; NULL: the operand is in no file, or has no bytes */
    struct extent extent;  /* bytes of the buffer, from the first to the last */
    enum gather gather;
    uint64_t lines, width_bytes, pitch_bytes;
    uint64_t at, packed_bytes; /* the first line, and from one to the next */
};

struct load {
    struct work work;    /* first */
    struct loads *loads; /* the job's; NULL: it has ended meanwhile */
    struct load *next;
    struct service *service;
    struct user *user; /* held */
    bool done;         /* the readers are done with it */
    uint64_t until_us; /* time by which it has to be read */
    bool of_values;    /* for a check of values: what comes next of them */
    uint64_t first, count;
    struct block *block;
    uint64_t size_bytes;
    struct load_part parts[LIMIT_JOB_OPERANDS]; /* by operand */
    uint32_t part;                              /* part that is read now, */
    uint64_t part_bytes;                        /* and how many of its bytes have been read */
    uint64_t read_bytes;
    struct error error; /* code 0: all has been read */
    /* The chunk's layout, once it is with a device. */
    struct scan_rows rows;
    struct step_operand layouts[LIMIT_JOB_OPERANDS];
};

struct loads {
    struct job *job;
    struct loads *next, *before; /* in the queue of its user */
    struct load *first;          /* in the order of rows */
    unsigned count;
    uint64_t next_row; /* the first without a load */
    bool clear;        /* no earlier job is to write what it reads */
    uint64_t seen;     /* state of its lane when that was last looked at, + 1; 0: it was not */
};

/* True when some operand is in a file. */
bool job_reads_files(const struct job *job);
/* True when everything that the next chunk needs has been read. */
bool loads_are_ready(const struct job *job);
/* Gives the job's first load to the chunk, which has just been made of the job's next rows or values. */
void loads_bind(struct job *job, struct chunk *chunk);
/* Takes a load back, of a row that goes on. */
void loads_return(struct loads *loads, struct load *load);
/* Fills in which bytes a load for rows first <= r < first + count, or for the next values, has to read: 0; or -EINVAL
 * and *error where there are too many. */
int load_lay_out(struct load *load, const struct job *job, struct error *error);
/* Reads a unit; of struct work. */
bool load_run(struct work *work);

#endif

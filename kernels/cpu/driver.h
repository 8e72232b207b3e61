/*
 * Declarations for the files of the CPU path's driver: a scan, and the row groups that it is cut into. driver.c divides
 * row groups among threads, staging.c moves and scans them block by block, interleaved.c side by side.
 */
#ifndef KERNELS_CPU_DRIVER_H
#define KERNELS_CPU_DRIVER_H

#include <limits.h>
#include <stdatomic.h>

#include "kernels/cpu/cpu.h"
#include "kernels/order1/dtypes.h"

#define CPU_ITEM_SAMPLES 65536 /* samples of short rows that a thread gets at once */

/* A group of rows, the carries into their blocks, [pass][row][block], and how far a group that all threads scan has
 * got. */
struct row_group {
    uint64_t first, count;
    double means[CPU_GROUP_ROWS]; /* for demean */
    union sum *carries[SCAND_PASSES_MAX];
    union sum *workspace;
    uint32_t phase;           /* visits that are over */
    uint64_t streamed_blocks; /* blocks that are done, of all passes */
};

/*
 * A scan, and how far it has got. A turn of it (scan_run) works off parts - items of short rows, or blocks of one row
 * group that all threads scan - until none is left, or `over` says so; each thread works off one part at least.
 */
struct scan {
    const struct scan_rows *rows;
    const struct cpu_build *build;
    struct cpu_pool *pool;       /* NULL: the calling thread alone, with */
    struct cpu_scratch *scratch; /* scratch memory of the visit */
    uint64_t first, count;
    uint64_t block_count; /* blocks of a row */
    uint64_t group_rows, group_count;
    bool interleaved; /* row groups are sets of interleaved rows */
    bool paired;      /* the samples of every two rows take turns in memory */
    bool by_blocks;   /* all threads scan one row group after another */
    bool streamed;    /* one thread scans a row's blocks in order, pass after pass */
    union sum *sums;  /* worker_sums for each worker; NULL for rows of one block that keep their mean */
    uint64_t worker_sums;
    atomic_uint_least64_t next; /* the next item to work off */
    uint64_t item_samples, item_groups;
    uint64_t thread_samples; /* for ragged rows: longer ones are scanned by all threads */
    uint64_t longer;         /* the first longer row that may not have been scanned yet */
    struct scan_rows single; /* the row, if there is one ragged row alone */
    cpu_over *over;          /* NULL: the only turn */
    void *context;
    atomic_bool left_off; /* `over` has ended this turn */
    bool begun;
    uint64_t at_group; /* by_blocks: the row group that is being scanned */
    struct row_group row_group;
    union sum running[CPU_GROUP_ROWS]; /* by_blocks and streamed: the carry into each row's next block */
    char *lanes;                       /* by_blocks and streamed: the scratch memory's lanes, between turns */
};

/* True when a row's samples lie side by side. */
static inline bool input_contiguous(const struct scan_rows *rows)
{
    return rows->input_stride == codec_bytes(rows->rule.input) || rows->length == 1;
}

static inline bool output_contiguous(const struct scan_rows *rows)
{
    return rows->output_stride == codec_bytes(rows->rule.output) || rows->length == 1;
}

static inline const char *input_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, row) +
           (int64_t)sample * rows->input_stride;
}

static inline char *output_at(const struct scan_rows *rows, uint64_t row, uint64_t sample)
{
    return (char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, row) +
           (int64_t)sample * rows->output_stride;
}

static inline struct cpu_scratch *scratch_of(const struct scan *scan, unsigned worker)
{
    return scan->pool ? cpu_pool_scratch(scan->pool, worker) : scan->scratch;
}

static inline bool is_reduction(const struct scan *scan)
{
    return scan->rows->rule.operation == SCAND_OPERATION_REDUCE;
}

static inline unsigned worker_count(const struct scan *scan)
{
    return scan->pool ? cpu_pool_threads(scan->pool) : 1;
}

/* staging.c */

/* A visit's passes over blocks, from `first` to before `end`, as in cpu_block. */
struct passes {
    uint32_t first, known, end;
    union sum *running; /* streamed: the carry into each row's next block; else NULL */
};

#define FOR_TOTAL UINT32_MAX

/* Visits block b of the row group's rows: for its total in pass `known`, or, with all known before `end`, for the
 * values; or, where `known` is FOR_TOTAL, for the row's total. Where rows are streamed, one visit does both for its
 * pass. */
void row_group_visit(const struct scan *scan, struct cpu_scratch *scratch, const struct row_group *row_group,
                     uint64_t b, struct passes passes);
/* Turn the totals that a visit leaves into: carries into the blocks in that pass; results; means. */
void row_group_carries(const struct scan *scan, const struct row_group *row_group, uint32_t pass);
void row_group_reduce(const struct scan *scan, const struct row_group *row_group);
void row_group_means(const struct scan *scan, struct row_group *row_group);
/* True when coefficients must pass through a staging line. */
bool coefficients_gathered(const struct scan_rows *rows);

/* interleaved.c */

/* True when there are enough rows to be scanned side by side, and they are short, or columns. */
bool is_interleaved(const struct scan *scan);
/* True when every two rows from the first on are two columns on both sides, of the same words. */
bool is_paired(const struct scan *scan);
/* Returns how many rows go into a set of interleaved rows at most: as many as a thread gets at once; of columns about
 * as many as give each thread some of them, and whole vectors. */
uint64_t interleaved_rows_max(const struct scan *scan);
void row_group_interleaved(const struct scan *scan, const struct row_group *row_group, unsigned worker);

#endif

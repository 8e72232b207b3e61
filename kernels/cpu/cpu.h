/*
 * The CPU path's internals: the driver (driver.c) cuts rows into blocks of order 1 and hands them, one at a time, to a
 * build of block.inc for one instruction set. A pool (pool.c) runs the driver on several threads.
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "kernels/cpu/sets.h"
#include "kernels/order1/accumulator.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"

#define CPU_CACHE_LINE 64

/* Rows gathered together, so that neighbours in memory share the cache lines that are read. */
#define CPU_GROUP_ROWS 16
/* Not a power of two: sets of the cache. */
#define CPU_STAGING_BYTES             (ORDER_BLOCK * sizeof(double) + 3 * CPU_CACHE_LINE)
#define CPU_INTERLEAVED_STAGING_BYTES (ORDER_TILE * sizeof(double) + 3 * CPU_CACHE_LINE)

/* One sum of floats for each member of a group. */
struct sums {
    _Alignas(CPU_CACHE_LINE) union {
        float f32[ORDER_FAN];
        double f64[ORDER_FAN];
        struct {
            float high[ORDER_FAN], low[ORDER_FAN];
        } f2;
    };
};

/* The samples of a tile, leaf beside leaf: [sample in leaf][leaf]. Wide: f64, for f2 pairs of floats, or integers. */
struct narrow_tile {
    _Alignas(CPU_CACHE_LINE) float f32[ORDER_LEAF][ORDER_FAN];
};

struct wide_tile {
    _Alignas(CPU_CACHE_LINE) union {
        double f64[ORDER_LEAF][ORDER_FAN];
        uint64_t exact[ORDER_LEAF][ORDER_FAN];
        struct {
            float high[ORDER_LEAF][ORDER_FAN], low[ORDER_LEAF][ORDER_FAN];
        } f2;
    };
};

/* Types for affine: the samples of a tile with their coefficients, leaf beside leaf, and the maps of the members of a
 * group. */
struct affine_tile {
    _Alignas(CPU_CACHE_LINE) union {
        float f32[ORDER_LEAF][ORDER_FAN];
        double f64[ORDER_LEAF][ORDER_FAN];
        uint64_t exact[ORDER_LEAF][ORDER_FAN];
        struct f2 f2[ORDER_LEAF][ORDER_FAN];
    } x, factor;
};

struct maps {
    _Alignas(CPU_CACHE_LINE) union {
        float f32[ORDER_FAN];
        double f64[ORDER_FAN];
        uint64_t exact[ORDER_FAN];
        struct f2 f2[ORDER_FAN];
    } term, factor;
};

#define CPU_LEAVES       (ORDER_BLOCK / ORDER_LEAF) /* leaves of a block */
#define CPU_LANES_MAX    256                        /* vectors of rows side by side */
#define CPU_LANES_LEVELS 5                          /* levels above samples, for up to CPU_LANES_LENGTH */
#define CPU_LANES_LENGTH ((uint64_t)ORDER_BLOCK * ORDER_FAN * ORDER_FAN * ORDER_FAN)

/* The size of what is kept of GROUPS vectors of rows: slots (pass_steps.inc), a vector further apart than needed, since
 * stores at a multiple of 4 KiB from a load hold that load up. */
#define CPU_LANES_SLOTS         (3 + CPU_LANES_LEVELS * ORDER_FAN)
#define CPU_LANES_PITCH(GROUPS) ((GROUPS) + 1)
#define CPU_LANES_BYTES(GROUPS) (CPU_LANES_SLOTS * CPU_LANES_PITCH(GROUPS) * 2 * CPU_CACHE_LINE)

/* Columns that do not fill a vector: a leaf of them on its way, and what is kept. */
struct cpu_edge {
    _Alignas(CPU_CACHE_LINE) char from[ORDER_LEAF][2 * CPU_CACHE_LINE];
    char to[ORDER_LEAF][2 * CPU_CACHE_LINE], lanes[CPU_LANES_BYTES(1)];
};

/* The memory of the next rows that is prefetched next. */
struct cpu_ahead {
    const char *input;
    char *output;
    int64_t at, part; /* bytes from the rows' begin; bytes at a time */
    bool near;        /* prefetch into the nearest cache */
};

/* A thread's scratch memory for scans. A tile here is a tile of order 1 for a single row, and a leaf of each row for a
 * set of interleaved rows. */
struct cpu_scratch {
    struct narrow_tile narrow[CPU_LEAVES];
    struct wide_tile wide[CPU_LEAVES];
    struct sums leaves[CPU_LEAVES]; /* the leaves of each tile */
    struct cpu_ahead ahead;
    struct sums tiles;
    _Alignas(CPU_CACHE_LINE) char lanes[CPU_LANES_BYTES(CPU_LANES_MAX)]; /* memory for sums of rows side by side */
    struct cpu_edge columns;
    struct affine_tile affine[ORDER_FAN];
    struct maps maps[ORDER_FAN], tile_maps; /* maps of the leaves of each tile, and of the tiles */
    /* A tile in the row's order: one that is not full, or one of 8-byte samples that are being moved. */
    _Alignas(CPU_CACHE_LINE) union {
        float f32[ORDER_TILE];
        double f64[ORDER_TILE];
    } edge;
    /* Rows whose samples are not contiguous. */
    _Alignas(CPU_CACHE_LINE) char staging[CPU_GROUP_ROWS][CPU_STAGING_BYTES];
    /* Values of streamed rows, where they are wider or narrower than samples, some of which are yet to be read. */
    _Alignas(CPU_CACHE_LINE) char results[CPU_GROUP_ROWS][CPU_STAGING_BYTES];
    /* Staging lines of coefficients that are not contiguous or are to be decoded. */
    _Alignas(CPU_CACHE_LINE) char factor_staging[CPU_GROUP_ROWS][CPU_STAGING_BYTES];
    /* Staging lines of a set of interleaved rows. Results have lines of their own, as they need not be as wide as
     * samples, of which some are yet to be read. */
    _Alignas(CPU_CACHE_LINE) char interleaved_staging[ORDER_FAN][CPU_INTERLEAVED_STAGING_BYTES];
    _Alignas(CPU_CACHE_LINE) char interleaved_results[ORDER_FAN][CPU_INTERLEAVED_STAGING_BYTES];
};

/*
 * A block of a row, and passes over it, from `first` to before `end`; the input of `first` is what the passes before
 * have left. The carries into the block are known for the passes before `known`, which are run; of pass `known` only
 * the total is computed. When all carries are known, the values are written instead.
 */
struct cpu_block {
    const struct scan_rule *rule;
    uint32_t first, known, end;
    const union sum *carries[SCAND_PASSES_MAX]; /* NULL where the block is the first of the pass */
    uint64_t length;                            /* 1 to ORDER_BLOCK */
    const void *input;                          /* contiguous, of any alignment: f32, or 8 bytes for other classes */
    void *output;                               /* address of the output likewise; may be the input */
    const void *coefficients;                   /* address of coefficients likewise; NULL: those of the rule */
    const double *mean;                         /* to be subtracted from the samples, or NULL */
    bool narrow;                                /* samples and values are integers of 4 bytes: cpu_is_narrow */
    const void *next;                           /* `length` samples that will be wanted soon, or NULL */
    uint64_t begin, row_length;                 /* beginning of the block in the row, and the row's length */
    /* A streamed row, with `first` as the only pass: the row's place in its group. The carry into the block is never
     * NULL, and `total` is the carry into the next block. */
    bool streamed;
    uint64_t row;
    union sum total; /* result: the total in the last pass of which it is computed */
};

/* True when only 32 bits of integers need be computed: sums and products wrap. */
static inline bool cpu_is_narrow(const struct scan_rule *rule)
{
    return rule->operation != SCAND_OPERATION_REDUCE &&
           (rule->op == SCAND_OPERATOR_SUM || rule->op == SCAND_OPERATOR_PROD) && codec_is_integer(rule->input) &&
           codec_is_plain(rule->input) && codec_is_plain(rule->output) &&
           codec_bytes(rule->input) == sizeof(uint32_t) && codec_bytes(rule->output) == sizeof(uint32_t);
}

/* True for words that need no decoding. */
static inline bool cpu_is_word(const struct scan_rule *rule, enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32 || (codec_is_plain(dtype) && codec_bytes(dtype) == sizeof(uint64_t)) ||
           cpu_is_narrow(rule);
}

/* True when builds can read samples and write values as they are, and the output can hold what one pass leaves for the
 * next. */
static inline bool cpu_is_direct(const struct scan_rule *rule)
{
    uint32_t input_bytes = codec_bytes(rule->input), output_bytes = codec_bytes(rule->output);
    if (!cpu_is_word(rule, rule->input) || !cpu_is_word(rule, rule->output) ||
        codec_is_integer(rule->input) != codec_is_integer(rule->output))
        return false;
    if (codec_is_integer(rule->input))
        return input_bytes == output_bytes;
    if (arithmetic_of(rule).accumulator == SCAND_ACCUMULATOR_F32)
        return input_bytes == sizeof(float) && output_bytes == sizeof(float);
    return rule->pass_count == 1 || codec_class(rule->intermediate) == codec_class(rule->output);
}

/* Rows that are scanned side by side. A side, input or output, is `across` where sample i of a row lies right after
 * sample i of the row before. Rows have up to ORDER_TILE samples or, if both sides are across, ORDER_BLOCK, or
 * CPU_LANES_LENGTH if the rule is direct, too. The first ORDER_FAN rows are given, or the first one where both sides
 * are across; the next ORDER_FAN rows lie a step further, and so on. */
struct cpu_interleaved {
    const struct scan_rule *rule; /* neither a reduction, affine nor trapezoid, and without demean */
    uint64_t length, count;
    bool input_across, output_across;
    const char *input[ORDER_FAN]; /* sample 0 of each row */
    char *output[ORDER_FAN];
    int64_t input_stride, output_stride; /* from sample to sample */
    int64_t input_step, output_step;
};

/* A build for an instruction set. */
struct cpu_build {
    void (*block_run)(struct cpu_scratch *scratch, struct cpu_block *block);
    /* Computes only the total of a block, forward: as the rule's reduction needs it or, for a scan, for the mean. */
    void (*block_total)(struct cpu_scratch *scratch, struct cpu_block *block);
    void (*interleaved_run)(struct cpu_scratch *scratch, const struct cpu_interleaved *interleaved);
    /* Decode samples of any dtype, `stride` bytes apart, into a staging line: f32, or 8 bytes for other classes; and
     * encode such a line. */
    void (*staging_decode)(enum scand_dtype dtype, void *staged, const char *from, int64_t stride, uint64_t count);
    void (*staging_encode)(enum scand_dtype dtype, const void *staged, char *to, int64_t stride, uint64_t count);
    /* Move CPU_GROUP_ROWS rows of f32 that lie side by side, `stride` bytes from sample to sample, to or from the
     * staging lines. Return how many samples of each row were moved; fewer than a vector may be left. */
    uint64_t (*staging_gather)(struct cpu_scratch *scratch, const char *from, int64_t stride, uint64_t length);
    uint64_t (*staging_scatter)(char (*staging)[CPU_STAGING_BYTES], char *to, int64_t stride, uint64_t length);
    /* Move two rows whose words of 4 or 8 bytes take turns in memory. */
    void (*pair_gather)(char *const staging[2], const char *from, uint64_t length, uint32_t word);
    void (*pair_scatter)(char *to, char *const staging[2], uint64_t length, uint32_t word);
};
#define X(SET, OF) extern const struct cpu_build OF##_##SET;
CPU_SETS(X, cpu_build)
#undef X

struct cpu_scratch *cpu_scratch_create(void);
void cpu_scratch_destroy(struct cpu_scratch *scratch);

/* Calls work(context, worker) once on each thread of the pool, the caller being worker 0; returns when all have
 * returned. */
typedef void cpu_work(void *context, unsigned worker);
void cpu_pool_run(struct cpu_pool *pool, cpu_work *work, void *context);
struct cpu_scratch *cpu_pool_scratch(const struct cpu_pool *pool, unsigned worker);

#endif

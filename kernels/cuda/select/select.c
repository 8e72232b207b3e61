#include "kernels/cuda/select/select.h"

#include "kernels/order1/dtypes.h"
#include "kernels/order1/order.h"

#define X(NAME, WORD) WORD,
static const char *const words[SELECT_PATH_COUNT] = {SELECT_PATHS(X)};
#undef X

/* What may hold of rows and a device. */
enum fact {
    REDUCED = 1 << 0,         /* a reduction */
    SAMPLES = 1 << 1,         /* of one sample or more */
    RAGGED_ROWS = 1 << 2,     /* which need not be equally long; */
    FEW_ROWS = 1 << 3,        /* those, as many as 32 bits can number */
    AFFINE_MAPS = 1 << 4,     /* the operator affine */
    SUMS = 1 << 5,            /* select_is_sum */
    F32 = 1 << 6,             /* from f32 to f32: nothing to decode or encode */
    SLOTS = 1 << 7,           /* contiguous and aligned to the type, on both sides */
    PACKED_IN = 1 << 8,       /* the same, row right after row, of the input; */
    PACKED = 1 << 9,          /* on both sides */
    IN_STEP = 1 << 11,        /* the first sample and the first result are equally far into a slot */
    PART_LEAF = 1 << 12,      /* the last leaf of a row is not full */
    FLOAT_BETWEEN = 1 << 13,  /* what a pass leaves for another one, if any, is an f32 or a sum of f32 */
    DOUBLE_BETWEEN = 1 << 14, /* at most an f64: all but an f64 that goes into sums of f2 */
    TWO_PASSES = 1 << 15,     /* and not one */
    TOGETHER = 1 << 16,       /* the device can launch thread blocks that are all resident at once; */
    FITS = 1 << 17,           /* one on each processor, and a row has no more order blocks */
    COLUMNS = 1 << 18,        /* rows are columns side by side, on both sides; */
    STRIPS = 1 << 19,         /* of no more tiles than thread blocks of columns are resident; */
    AHEAD = 1 << 20,          /* select_general_is_ahead */
    NARROW = 1 << 21,         /* results of 4 bytes, where they are sums */
    ONE_AXIS = 1 << 22,       /* rows are all equally far from the next one */
    ONE_PASS = 1 << 23,       /* and not two */
    WIDE = 1 << 24,           /* as many strips of columns, or more, as thread blocks that walk are resident */
    MAPS = 1 << 25,           /* boxes_fit */
    F32_SUMS = 1 << 26,       /* the accumulator f32 */
    THREE_TILES = 1 << 27,    /* sums that short rows' kernel has registers for: in f32, or inclusive in f64 */
    CLUSTERS = 1 << 28,       /* device, rule and input are what clusters need */
};

/* Compute capabilities with limits of their own; others have those of the next lower one. */
enum { ARCHITECTURES = 7 };
static const int capabilities[ARCHITECTURES] = {75, 80, 86, 89, 90, 100, 120};

#define BLOCKS \
    (UINT32_C(1) << 31) /* one more fact, which an enumerator has no bit for: a row has several order blocks */

#define STRIPS_MAX (UINT64_C(1) << 26) /* whose numbers are 32 bits */
#define LINES_MAX  (UINT64_C(1) << 30) /* likewise, of leaves that the input lies in */
#define BOXES_MIN  1                   /* tiles of boxes for each processor; */
#define BOXES_WIDE 4                   /* of sums of 8 bytes; */
#define BOXES_MANY 8                   /* in two passes, which read twice */
#define WIDE_MIN   1024                /* columns side by side: strips that lie in two planes are slower */

#define NONE 0
#define ANY  UINT64_MAX

/*
 * The table: the first row of which all facts hold, and whose limit the rows' length does not exceed, has the path.
 *
 * Figures are shares of the speed of a device copy of the same bytes (of reductions: of a read), forward and backward,
 * by f32 / f64 / f2, on an H200 (9.0): tests/bench/results/h200-kernels.txt, or the commit that brought the path, which
 * also has "as ...": what another path reached in its place. Other architectures are not measured: their limits are
 * those of the H200, or from shared memory, of which a thread block may have 64 KiB on 7.5, 163 on 8.0, 99 on 8.6, 8.9
 * and 12.0, 227 on 9.0 and 10.0.
 */
// clang-format off
#define PATH(NAME, FACTS, ...) {SELECT_##NAME, FACTS, {__VA_ARGS__}}
static const struct row {
    enum select_path path;
    uint32_t facts;
    uint64_t longest[ARCHITECTURES]; /* samples of a row */
} table[] = {
    /*   path                        facts; the longest row on                                                   7.5     8.0     8.6     8.9     9.0    10.0    12.0 */

    /* Those longer than an order block one by one. */
    PATH(REDUCE_RAGGED,                REDUCED | RAGGED_ROWS,                                                        ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    /* Lanes hold leaves of several rows: of 64 samples 0.89. From half a tile on a warp holds one row either way. */
    PATH(REDUCE_WARP_PER_ROWS,         REDUCED | SAMPLES | PACKED_IN,                                                256,    256,    256,    256,    256,    256,    256),
    /* Of 1,000 samples 0.88, of 10,000 0.945. */
    PATH(REDUCE,                       REDUCED | SAMPLES,                                                          16384,  16384,  16384,  16384,  16384,  16384,  16384),
    /* Of 1,000,000 samples 0.97. */
    PATH(REDUCE_TOTALS,                REDUCED | SAMPLES,                                                            ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    PATH(REDUCE_EMPTY,                 REDUCED,                                                                      ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Of 1,000 samples by Pareto's law 0.77 / 0.63 / 0.40. A thread block needs 71 KiB of shared memory. */
    PATH(RAGGED,                       FEW_ROWS | SUMS | F32 | SLOTS | FLOAT_BETWEEN | TOGETHER,                    NONE,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    PATH(RAGGED_AFFINE,                RAGGED_ROWS | AFFINE_MAPS,                                                    ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    PATH(RAGGED_ANY_LAYOUT,            RAGGED_ROWS,                                                                  ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Of 10,000 samples 0.90 / 0.65 / 0.28 with one coefficient and contiguous, where it fetches ahead; with one for each sample 1.00 / 0.80
     * / 0.38 of the three transfers that these take at least, as for any layout 0.15 / 0.12 / 0.11; along axis 0 0.07.
     * Of 57,001 samples with one coefficient 0.40 / 0.28 / 0.11, with one for each sample 0.52 / 0.34 / 0.13. */
    PATH(AFFINE,                       AFFINE_MAPS,                                                                  ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Of 3 samples 0.53 / 0.48 / 0.49, as WARP_PER_ROWS 0.36 / 0.26 / 0.14; of 5 0.76 / 0.62 / 0.60, as WARP_PER_ROWS 0.59 / 0.43 / 0.23. */
    PATH(THREAD_PER_ROW_PREFETCH,      SUMS | F32 | PACKED | PART_LEAF | IN_STEP | FLOAT_BETWEEN,                      6,      6,      6,      6,      6,      6,      6),
    /* Of 8 samples 0.96 / 0.83, as THREAD_PER_ROW_PREFETCH 0.90 / 0.80; of 24 0.97 / 0.97, as THREAD_PER_ROW_PREFETCH 0.91 / 0.89; of 50 0.97 / 0.91, as THREAD_PER_ROW
     * 0.88 / 0.86; of 128 0.98 / 0.97; of 300 0.97 / 0.96, as WARP_PER_ROW 0.90 / 0.72; of 500 0.97 / 0.96, as WARP_PER_ROW 0.96 / 0.90. */
    PATH(WARP_PER_ROWS,                SUMS | F32 | PACKED | THREE_TILES,                                            512,    512,    512,    512,    512,    512,    512),
    /* The others are sums in f2 and exclusive ones in f64. In f2, of 8 samples 0.86, as WARP_PER_ROWS 0.42; of 24 0.87, as WARP_PER_ROWS 0.60. Of whole
     * leaves WARP_PER_ROWS is ahead: of 32 0.88. Beyond 32, what is fetched ahead takes the shared memory of warps that would compute. */
    PATH(THREAD_PER_ROW_PREFETCH,      SUMS | F32 | PACKED | PART_LEAF | IN_STEP | FLOAT_BETWEEN,                     32,     32,     32,     32,     32,     32,     32),
    /* Of 33 samples 0.67, as WARP_PER_ROWS 0.39; of 50 0.66, as WARP_PER_ROWS 0.52. */
    PATH(THREAD_PER_ROW,               SUMS | F32 | PACKED | PART_LEAF | IN_STEP | FLOAT_BETWEEN,                     64,     64,     64,     64,     64,     64,     64),
    /* In f2 and, exclusive, in f64: of 128 samples 0.87 / 0.88; of 256 0.86 / 0.88, as WARP_PER_ROW 0.42 / 0.55; of 300 0.39 / 0.61, as WARP_PER_ROW
     * 0.45 / 0.62. */
    PATH(WARP_PER_ROWS,                SUMS | F32 | PACKED | DOUBLE_BETWEEN,                                         256,    256,    256,    256,    256,    256,    256),
    /* Of 500 samples after headers 0.90 / 0.86 / 0.70, as BLOCK_PER_ROW 0.72 / 0.78 / 0.42; of 1,000 0.93 / 0.92 / 0.71, as BLOCK_PER_ROW 0.82 / 0.77 / 0.56.
     * A lane's registers hold its leaves of no more than three tiles. */
    PATH(WARP_PER_ROW,                 SUMS | NARROW | SLOTS | ONE_AXIS | DOUBLE_BETWEEN,                           1536,   1536,   1536,   1536,   1536,   1536,   1536),

    /* 10,000 x 10,000 along axis 0: one pass 0.87 / 0.79 / 0.78, as COLUMNS_STREAMING 0.80 / 0.69 / 0.67; both 0.59 / 0.44 / 0.40, as COLUMNS_SHARED
     * 0.48 / 0.38 / 0.31. */
    PATH(COLUMNS_TMA,                  SUMS | COLUMNS | NARROW | FLOAT_BETWEEN | MAPS,                              NONE,   NONE,   NONE,   NONE,  16384,  16384,   NONE),
    /* One pass over 10,000 x 10,000 along axis 0 0.80 / 0.69 / 0.67, as COLUMNS_SHARED 0.65 / 0.60 / 0.55. A column has 32 order blocks. */
    PATH(COLUMNS_STREAMING,            SUMS | COLUMNS | ONE_PASS | TOGETHER | WIDE,                                 NONE, 524288, 524288, 524288, 524288, 524288, 524288),
    /* 10,000 x 10,000 along axis 0 0.48 / 0.38 / 0.31, as BLOCK_PER_ROW 0.07 / 0.07 / 0.04. How long they may be goes by processors. */
    PATH(COLUMNS_SHARED,               SUMS | COLUMNS | FLOAT_BETWEEN | TOGETHER | STRIPS,                          NONE,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Of 10,000 samples 0.97 / 0.96 / 0.82, of 10,007 after headers 0.94 / 0.91 / 0.76. On 7.5 there is shared memory for 29 warps, which
     * need 2,176 bytes each. */
    PATH(BLOCK_PER_ROW,                SUMS,                                                                       14848,  16384,  16384,  16384,  16384,  16384,  16384),

    /* Of 57,001 samples 0.88, of 100,000 0.91, of 150,001 0.85, of 250,000 0.88; as GRID_PER_ROW_ONE_LAUNCH 0.76, 0.81, 0.78 of 300,000. A
     * thread block needs 215 KiB of shared memory. */
    PATH(CLUSTER_PER_ROW,              SUMS | NARROW | SLOTS | F32_SUMS | CLUSTERS,                                 NONE,   NONE,   NONE,   NONE, 262144,   NONE,   NONE),
    /* Of 33,333 samples in f64 and f2 0.69 / 0.48, of 57,001 0.71 / 0.58, of 60,000 0.78 / 0.59; as GRID_PER_ROW_ONE_LAUNCH 0.48 / 0.33 of
     * 33,333 and 0.62 / 0.44 of 57,001. Of 65,536 it is 0.70 / 0.60 and 0.80 / 0.59, of 100,000 0.66 / 0.50 and 0.73 / 0.54. */
    PATH(CLUSTER_PER_ROW,              SUMS | NARROW | SLOTS | DOUBLE_BETWEEN | CLUSTERS,                           NONE,   NONE,   NONE,   NONE,  61440,   NONE,   NONE),
    /* Of 100,000 samples 0.83 / 0.73 / 0.49, of 900,000 0.78 / 0.72 / 0.53, as BLOCK_PER_ROW_SPINE 0.41 / 0.32 / 0.30. A thread block needs
     * 225 KiB of shared memory. */
    PATH(GRID_PER_ROW_ONE_LAUNCH,      SUMS | FLOAT_BETWEEN | TOGETHER | FITS | BLOCKS,                             NONE,   NONE,   NONE,   NONE,    ANY,    ANY,   NONE),
    /* A row of 10^9 0.90 / 0.79 / 0.54 of the three transfers that it takes at least. */
    PATH(GRID_PER_ROW_THREE_LAUNCHES,  SUMS | FLOAT_BETWEEN | TOGETHER | TWO_PASSES | BLOCKS,                       NONE,   NONE,   NONE,   NONE,    ANY,    ANY,   NONE),
    /* One pass over a row of 10^9 0.93 / 0.90 / 0.91, as BLOCK_PER_ROW_SPINE 0.66 / 0.62 in f32 and f64. */
    PATH(GRID_PER_ROW_ONE_LAUNCH,      SUMS | FLOAT_BETWEEN | TOGETHER | BLOCKS,                                    NONE,   NONE,   NONE,   NONE,    ANY,    ANY,   NONE),
    PATH(BLOCK_PER_ROW_SPINE,          SUMS | BLOCKS,                                                               NONE,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* f16 of 10,000 samples 0.80 / 0.53, f64 0.86; as ANY_LAYOUT 0.08 and 0.27. What it needs of shared memory goes by dtypes. */
    PATH(ANY_LAYOUT_PREFETCH,          AHEAD,                                                                        ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    /* Any layout of any dtype, in 36 KiB of shared memory at most, which every device has. */
    PATH(ANY_LAYOUT,                   0,                                                                            ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
};
// clang-format on

static bool is_form(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_F32 && codec_bytes(dtype) == sizeof(float);
}

bool select_is_sum(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_SUM && rule->kind != SCAND_KIND_HALF && !rule->demean && is_form(rule->input) &&
           (is_form(rule->output) || rule->output == SCAND_DTYPE_F64);
}

/* More rows are worth a launch of a kernel of their own, which is faster. */
enum select_together select_together_of(const struct scan_rows *rows, uint64_t count)
{
    const struct scan_rule *rule = &rows->rule;
    const bool small =
        !rows->offsets && rows->length > 0 && rows->length <= ORDER_BLOCK && count <= SELECT_TOGETHER_ROWS;
    if (!small || rule->algorithm != 0)
        return SELECT_ALONE;
    if (rule->op == SCAND_OPERATOR_AFFINE)
        return SELECT_AFFINES;
    if (rule->operation == SCAND_OPERATION_REDUCE)
        return SELECT_REDUCTIONS;
    return SELECT_SCANS;
}

bool select_general_is_ahead(const struct scan_rule *rule, const struct scan_plan *plan, int shared_max)
{
    const int slots = SELECT_AHEAD_SLOTS((int)codec_bytes(rule->input), (int)codec_bytes(rule->output));
    return plan->input.access == ACCESS_SLOTS && plan->output.access == ACCESS_SLOTS &&
           scan_warps(plan->length) * slots * SLOT_BYTES + SELECT_DECLARED_BYTES <= shared_max;
}

static bool short_has_three_tiles(const struct scan_rule *rule)
{
    return rule->accumulator == SCAND_ACCUMULATOR_F32 ||
           (rule->accumulator == SCAND_ACCUMULATOR_F64 && rule->kind != SCAND_KIND_EXCLUSIVE);
}

static uint32_t facts_of_rule(const struct scan_rule *rule)
{
    const bool wide = rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64;
    uint32_t facts = rule->operation == SCAND_OPERATION_REDUCE ? REDUCED : 0;
    facts |= rule->op == SCAND_OPERATOR_AFFINE ? AFFINE_MAPS : 0;
    facts |= select_is_sum(rule) ? SUMS : 0;
    facts |= rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32 ? F32 : 0;
    facts |= !wide || rule->accumulator == SCAND_ACCUMULATOR_F32 ? FLOAT_BETWEEN : 0;
    facts |= !wide || rule->accumulator != SCAND_ACCUMULATOR_F2 ? DOUBLE_BETWEEN : 0;
    facts |= rule->output != SCAND_DTYPE_F64 ? NARROW : 0;
    facts |= rule->accumulator == SCAND_ACCUMULATOR_F32 ? F32_SUMS : 0;
    facts |= short_has_three_tiles(rule) ? THREE_TILES : 0;
    return facts | (rule->pass_count > 1 ? TWO_PASSES : ONE_PASS);
}

static uint32_t facts_of_layout(const struct scan_plan *plan)
{
    const bool packed_in = scan_side_is_packed(plan, &plan->input, codec_bytes(plan->input_form));
    const bool packed_out = scan_side_is_packed(plan, &plan->output, codec_bytes(plan->output_form));
    uint32_t facts = plan->length > 0 ? SAMPLES : 0;
    facts |= plan->blocks > 1 ? BLOCKS : 0;
    facts |= plan->input.access == ACCESS_SLOTS && plan->output.access == ACCESS_SLOTS ? SLOTS : 0;
    facts |= plan->outer_rank == 1 ? ONE_AXIS : 0;
    facts |= packed_in ? PACKED_IN : 0;
    facts |= packed_in && packed_out ? PACKED : 0;
    facts |= scan_plan_is_columns(plan) ? COLUMNS : 0;
    facts |= ((uintptr_t)plan->input.base ^ (uintptr_t)plan->output.base) % SLOT_BYTES == 0 ? IN_STEP : 0;
    return facts | (plan->length % ORDER_LEAF != 0 ? PART_LEAF : 0);
}

static bool strips_fit(const struct scan_plan *plan, const struct select_device *device)
{
    const int room = device->shared_max / SELECT_COLUMNS_SHARED_BYTES;
    const int resident = room < SELECT_COLUMNS_SHARED_RESIDENT ? room : SELECT_COLUMNS_SHARED_RESIDENT;
    const uint64_t tiles = scan_tiles(plan->length);
    return tiles <= (uint64_t)(device->processors * resident) && scan_plan_strips(plan) * tiles < STRIPS_MAX;
}

/* In one pass by f32 columns may be as they like. Else tiles are to be full, but for a quarter, and two passes are
 * slower than COLUMNS_SHARED where a column is one tile. */
static bool boxes_fit(const struct scan_rule *rule, const struct scan_plan *plan, const struct select_device *device)
{
    const bool two = plan->pass_count > 1, wide = rule->accumulator != SCAND_ACCUMULATOR_F32;
    const uint64_t tiles = scan_tiles(plan->length), items = scan_plan_boxes(plan) * tiles;
    const uint64_t least = (two ? BOXES_MANY : wide ? BOXES_WIDE : BOXES_MIN) * (uint64_t)device->processors;
    const bool full = plan->length >= tiles * ORDER_TILE / 4 * 3;
    return device->shared_max >= SELECT_COLUMNS_TMA_BYTES && scan_plan_has_maps(plan) && items >= least &&
           items < STRIPS_MAX && plan->length >= ORDER_TILE && (full || !(two || wide)) && (tiles > 1 || !two);
}

/* Each strip is to be met by whole tiles and lines, and steps from row to row are 32 bits there. */
static bool is_wide(const struct scan_plan *plan, const struct select_device *device)
{
    const uint64_t strips = plan->items / plan->blocks / SCAN_STRIP;
    const int64_t in = plan->input.stride, out = plan->output.stride;
    return device->shared_max >= SELECT_COLUMNS_STREAMING_BYTES &&
           strips >= SELECT_COLUMNS_STREAMING_RESIDENT * (uint64_t)device->processors && plan->length >= ORDER_TILE &&
           plan->outer_shape[plan->outer_rank - 1] >= WIDE_MIN &&
           (strips + 1) * scan_tiles(plan->length) < STRIPS_MAX && in == (int32_t)in && out == (int32_t)out &&
           in > INT32_MIN && out > INT32_MIN;
}

/* Exclusive passes in f64 spill so many registers that they take twice as long. Lines of a leaf that the input lies in
 * have numbers of 31 bits. */
static bool cluster_fits(const struct scan_rule *rule, const struct scan_plan *plan)
{
    const bool spills = rule->accumulator == SCAND_ACCUMULATOR_F64 && rule->kind == SCAND_KIND_EXCLUSIVE;
    const uint64_t most = LINES_MAX * ORDER_LEAF * sizeof(float);
    const int64_t stride = plan->input.outer_strides[0];
    const uint64_t apart = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
    return !spills && plan->outer_rank == 1 && plan->blocks > 1 && apart < most / (plan->items / plan->blocks + 1);
}

static uint32_t facts_of(const struct scan_rows *rows, const struct scan_plan *plan, const struct select_device *device)
{
    uint32_t facts = facts_of_rule(&rows->rule) | facts_of_layout(plan);
    facts |= rows->offsets ? RAGGED_ROWS : 0;
    facts |= rows->offsets && rows->row_count <= UINT32_MAX ? FEW_ROWS : 0;
    facts |= device->cooperative ? TOGETHER : 0;
    facts |= plan->blocks <= (uint64_t)device->processors ? FITS : 0;
    facts |= device->clusters && cluster_fits(&rows->rule, plan) ? CLUSTERS : 0;
    facts |= scan_plan_is_columns(plan) && boxes_fit(&rows->rule, plan, device) ? MAPS : 0;
    facts |= scan_plan_is_columns(plan) && is_wide(plan, device) ? WIDE : 0;
    facts |= scan_plan_is_columns(plan) && strips_fit(plan, device) ? STRIPS : 0;
    return facts | (select_general_is_ahead(&rows->rule, plan, device->shared_max) ? AHEAD : 0);
}

static int architecture_of(int capability)
{
    int architecture = 0;
    while (architecture + 1 < ARCHITECTURES && capability >= capabilities[architecture + 1])
        architecture++;
    return architecture;
}

/* Paths below which the table has none for the same rows: what stands there computes something else. */
static bool is_last(enum select_path path)
{
    switch (path) {
    case SELECT_REDUCE_WARP_PER_ROWS:
    case SELECT_REDUCE:
    case SELECT_REDUCE_TOTALS:
    case SELECT_REDUCE_EMPTY:
    case SELECT_REDUCE_RAGGED:
    case SELECT_RAGGED_AFFINE:
    case SELECT_RAGGED_ANY_LAYOUT:
    case SELECT_AFFINE:
    case SELECT_ANY_LAYOUT_PREFETCH: /* which goes on without fetching ahead by itself */
    case SELECT_ANY_LAYOUT:
        return true;
    default:
        return false;
    }
}

/* What a device can run is bounded by what it is, and by what its kernels were compiled for. */
static uint64_t longest_of(const struct row *row, const struct select_device *device)
{
    const uint64_t own = row->longest[architecture_of(device->capability)],
                   code = row->longest[architecture_of(device->code)];
    return own < code ? own : code;
}

static bool row_fits(const struct row *row, uint32_t facts, const struct scan_plan *plan,
                     const struct select_device *device)
{
    return (row->facts & ~facts) == 0 && plan->length <= longest_of(row, device);
}

int select_run(const struct scan_rows *rows, const struct scan_plan *plan, const struct select_device *device,
               int (*run)(enum select_path path, void *context), void *context)
{
    const uint32_t facts = facts_of(rows, plan, device);
    uint32_t refused = 0; /* a bit for each path */
    int result = SELECT_NO_ROOM;
    _Static_assert(SELECT_PATH_COUNT <= 32, "a bit for each path");
    for (const struct row *row = table; result == SELECT_NO_ROOM; row++) {
        if (!row_fits(row, facts, plan, device) || refused >> row->path & 1)
            continue;
        refused |= UINT32_C(1) << row->path;
        result = run(row->path, context);
        if (is_last(row->path))
            break;
    }
    return result;
}

static int path_take(enum select_path path, void *taken)
{
    *(enum select_path *)taken = path;
    return 0;
}

enum select_path select_path_of(const struct scan_rows *rows, const struct scan_plan *plan,
                                const struct select_device *device)
{
    enum select_path path = SELECT_ANY_LAYOUT;
    select_run(rows, plan, device, path_take, &path);
    return path;
}

/* Paths whose launches are of totals, carries and values, each by itself. */
static bool takes_ranges(enum select_path path)
{
    return path == SELECT_REDUCE_TOTALS || path == SELECT_AFFINE || path == SELECT_BLOCK_PER_ROW_SPINE ||
           path == SELECT_ANY_LAYOUT_PREFETCH || path == SELECT_ANY_LAYOUT;
}

enum select_path select_path_of_ranges(const struct scan_rows *rows, const struct scan_plan *plan,
                                       const struct select_device *device)
{
    const uint32_t facts = facts_of(rows, plan, device);
    const struct row *row = table;
    while (!takes_ranges(row->path) || !row_fits(row, facts, plan, device))
        row++;
    return row->path;
}

const char *select_word(enum select_path path)
{
    return words[path];
}

#include "kernels/cuda/select/select.h"

#include "kernels/cuda/select/instance.h"
#include "kernels/order1/dtypes.h"
#include "kernels/order1/operators.h"
#include "kernels/order1/order.h"

#define X(NAME, WORD, LAUNCHER) WORD,
static const char *const words[SELECT_PATH_COUNT] = {SELECT_PATHS(X)};
#undef X

#define FACT(NUMBER) (UINT64_C(1) << (NUMBER))

/* Facts that may hold of rows and a device: a bit for each. */
#define SCANS         FACT(0) /* no reduction; a reduction is REDUCED */
#define REDUCED       FACT(1)
#define SAMPLES       FACT(2) /* rows of one sample or more */
#define EVEN          FACT(3) /* all rows are equally long, and not ragged */
#define FEW_ROWS      FACT(4) /* ragged rows, as many as 32 bits can number */
#define AFFINE_MAPS   FACT(5) /* the operator affine; others are JOINED */
#define JOINED        FACT(6)
#define FACTORS       FACT(7)  /* coefficients of affine are as contiguous as samples, or one serves a row, or all */
#define SUMS          FACT(8)  /* select_is_sum */
#define F32           FACT(9)  /* from f32 to f32: nothing to decode or encode */
#define FLOAT_BETWEEN FACT(10) /* what a pass leaves for another one, if any, is an f32 or a sum of f32 */
#define TWO_PASSES    FACT(11) /* and not one */
#define THREE_TILES   FACT(12) /* sums that packed rows have registers for: in f32, or inclusive in f64 */
#define F32_SUMS      FACT(13) /* the accumulator f32 */
#define SLOTS         FACT(14) /* contiguous and aligned to the type, on both sides */
#define ONE_AXIS      FACT(15) /* rows are all equally far from the next one */
#define PACKED_IN     FACT(16) /* row lies right after row in the input */
#define PACKED        FACT(17) /* on both sides */
#define IN_STEP       FACT(18) /* the first sample and the first result are equally far into 16 bytes */
#define PART_LEAF     FACT(19) /* the last leaf of a row is not full */
#define BLOCKS        FACT(20) /* a row has several order blocks */
#define PREFETCH      FACT(21) /* can_prefetch */
#define COOPERATIVE   FACT(22) /* the device can launch thread blocks that are all resident at once */
#define ONE_READ      FACT(23) /* one pass, or a thread block on each SM for each order block of a row */
#define CLUSTERS      FACT(24) /* device, rule and input are what clusters need */
#define COLUMNS       FACT(25) /* rows are columns side by side, on both sides */
#define MAPS          FACT(26) /* columns that tensor maps can describe */
#define BOXES         FACT(27) /* tiles of such columns are many and full enough for all SMs */
#define TILES_COUNTED FACT(28) /* columns whose tiles columns_direct can number, of affine with one coefficient */
#define ANY_CLUSTERS  FACT(29) /* device, rule and length are what clusters of any_cluster need */
#define ONE_TILE      FACT(30) /* sums that are not THREE_TILES: in f2, or exclusive in f64 */
#define F2_SUMS       FACT(31) /* the accumulator f2 */
#define ANY_GRIDS     FACT(32) /* device and rule are what clusters for order blocks of longer rows need */
#define EXCLUSIVES    FACT(33)
#define BOX_RULE      FACT(34) /* select_is_box_rule */
#define SHORT_SUMS    FACT(35) /* is_short_sum */
#define PACKED_RULE   FACT(36) /* select_is_packed_rule */
#define SPARSE_F64    FACT(37) /* sums in f64 of rows whose leaves are at most two thirds full */

/* Compute capabilities with limits of their own; others have those of the next lower one. The shared memory that a
 * thread block may have, in KiB. */
enum { ARCHITECTURES = 7 };
static const struct {
    int capability, shared_kib;
} architectures[ARCHITECTURES] = {{75, 64}, {80, 163}, {86, 99}, {89, 99}, {90, 227}, {100, 227}, {120, 99}};

#define BOX_TILES_MAX (UINT64_C(1) << 26) /* tiles of boxes at most, whose numbers are 32 bits */
#define LINES_MAX     (UINT64_C(1) << 30) /* lines at most, likewise, of leaves that the input lies in */
#define WIDE_SUMS_MAX 81920               /* samples of a row that a cluster holds with sums of 8 bytes */
#define MAP_BLOCK_MIN 7680                /* samples up to which affine in f64 is faster by a thread block */
#define BOXES_MIN     1                   /* tiles of boxes for each SM; */
#define BOXES_WIDE    4                   /* boxes of sums of 8 bytes; */
#define BOXES_MANY    8                   /* in two passes, which read twice */

#define NONE 0
#define ANY  UINT64_MAX

#define EVEN_SUMS (SCANS | EVEN | SUMS)
#define SUM_ROWS  (EVEN_SUMS | SLOTS)

/*
 * The needs of each path, be it fast or slow then: facts, and how long its rows may be. A path that is missing here is
 * never taken. RANGES: its launches are of totals, carries and values, each by itself, so that they can be of one range
 * of a row; else they are of WHOLE rows.
 */
// clang-format off
#define RANGES true
#define WHOLE  false
static const struct need {
    uint64_t facts, longest;
    bool ranges;
} needs[SELECT_PATH_COUNT] = {
    [SELECT_REDUCE_WARP_PER_ROWS]        = {REDUCED | EVEN | SAMPLES | PACKED_IN,                                ORDER_TILE,                                        WHOLE},
    [SELECT_REDUCE]                      = {REDUCED,                                                             ANY,                                               RANGES},
    [SELECT_RAGGED]                      = {SCANS | FEW_ROWS | SUMS | F32 | SLOTS | FLOAT_BETWEEN | COOPERATIVE, ANY,                                               WHOLE},
    [SELECT_AFFINE_PREFETCH]             = {SCANS | AFFINE_MAPS | FACTORS | PREFETCH,                            ANY,                                               RANGES},
    [SELECT_AFFINE]                      = {SCANS | AFFINE_MAPS,                                                 ANY,                                               RANGES},
    [SELECT_THREAD_PER_ROW]              = {EVEN_SUMS | F32 | PACKED | IN_STEP | FLOAT_BETWEEN,                  4 * ORDER_LEAF,                                    WHOLE},
    [SELECT_WARP_PER_ROWS]               = {EVEN_SUMS | F32 | PACKED,                                            ORDER_TILE,                                        WHOLE},
    [SELECT_WARP_PER_ROWS_SERIAL]        = {EVEN_SUMS | F32 | PACKED | IN_STEP | FLOAT_BETWEEN | ONE_TILE,       3 * ORDER_TILE,                                    WHOLE},
    [SELECT_WARP_PER_ROW]                = {SUM_ROWS | ONE_AXIS,                                                 3 * ORDER_TILE,                                    WHOLE},
    [SELECT_BLOCK_PER_ROW]               = {SUM_ROWS,                                                            ORDER_BLOCK,                                       WHOLE},
    [SELECT_BLOCK_PER_ROW_SHORT]         = {SCANS | EVEN | SHORT_SUMS | SLOTS,                                   ORDER_BLOCK,                                       WHOLE},
    [SELECT_ANY_PACKED]                  = {SCANS | EVEN | SAMPLES | PACKED | PACKED_RULE,                       ORDER_TILE,                                        WHOLE},
    [SELECT_COLUMNS_TMA]                 = {SCANS | EVEN | BOX_RULE | COLUMNS | FLOAT_BETWEEN | MAPS,            ORDER_BLOCK,                                       WHOLE},
    [SELECT_COLUMNS_DIRECT]              = {SCANS | EVEN | COLUMNS | TILES_COUNTED,                              ORDER_FAN * ORDER_FAN * ORDER_BLOCK,               WHOLE},
    [SELECT_CLUSTER_PER_ROW]             = {SCANS | EVEN | SLOTS | CLUSTERS,                                     16 * ORDER_BLOCK,                                  WHOLE},
    [SELECT_GRID_PER_ROW_ONE_LAUNCH]     = {SUM_ROWS | FLOAT_BETWEEN | COOPERATIVE | BLOCKS | ONE_READ,          ANY,                                               WHOLE},
    [SELECT_GRID_PER_ROW_THREE_LAUNCHES] = {SUM_ROWS | FLOAT_BETWEEN | COOPERATIVE | BLOCKS | TWO_PASSES,        ANY,                                               WHOLE},
    [SELECT_BLOCK_PER_ROW_SPINE]         = {SUM_ROWS | BLOCKS,                                                   ANY,                                               RANGES},
    [SELECT_ANY_CLUSTER]                 = {SCANS | EVEN | SLOTS | BLOCKS | ANY_CLUSTERS,                        16 * ORDER_BLOCK,                                  WHOLE},
    [SELECT_ANY_GRID]                    = {SCANS | EVEN | JOINED | SLOTS | BLOCKS | ANY_GRIDS | COOPERATIVE,    ANY,                                               WHOLE},
    [SELECT_ANY_LAYOUT_PREFETCH]         = {SCANS | JOINED | PREFETCH,                                           ANY,                                               RANGES},
    [SELECT_ANY_LAYOUT]                  = {SCANS | JOINED,                                                      ANY,                                               RANGES},
};
// clang-format on

/*
 * The table: rows take the path of the first row of the table of which all facts hold beside the needs of its path, and
 * whose limit their length does not exceed.
 *
 * Figures are shares of the speed of a device copy of the same bytes (of reductions: of a read), forward and backward,
 * by f32 / f64 / f2, on an H200 (9.0): tests/bench/results/h200-kernels.txt, or the commit that brought the path. "As
 * ..." is what another path reached in its place: `scand-bench paths` measures that. Other architectures are not
 * measured: their limits are those of the H200, or from shared memory.
 */
// clang-format off
#define PATH(NAME, FACTS, ...) {SELECT_##NAME, FACTS, {__VA_ARGS__}}
static const struct row {
    enum select_path path;
    uint64_t facts;
    uint64_t longest[ARCHITECTURES]; /* samples of a row */
} table[] = {
    /*   path                          facts          the longest row on 7.5     8.0     8.6     8.9     9.0    10.0    12.0 */

    /* Lanes hold leaves of several rows: of 64 samples 0.89. From half a tile on a warp holds one row either way. */
    PATH(REDUCE_WARP_PER_ROWS,         0,               256,    256,    256,    256,    256,    256,    256),
    /* Rows of 1,000 samples 0.88, of 10,000 0.945, of 1,000,000 0.97. Of ragged rows those that are longer than an order block go one
     * by one. */
    PATH(REDUCE,                       0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Rows of 1,000 samples by Pareto's law 0.74 / 0.64 / 0.49. A thread block needs 71 KiB of shared memory. */
    PATH(RAGGED,                       0,              NONE,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Rows of 3 samples 0.53 / 0.48 / 0.49, as WARP_PER_ROWS 0.36 / 0.26 / 0.14; of 5 0.76 / 0.62 / 0.60, as WARP_PER_ROWS 0.59 / 0.43 / 0.23. */
    PATH(THREAD_PER_ROW,               PART_LEAF,         6,      6,      6,      6,      6,      6,      6),
    /* In f64, of 7 samples 0.84, of 8 0.90, of 10 0.91, of 17 0.72, of 21 0.81; as WARP_PER_ROWS 0.58, 0.79, 0.84, 0.65, 0.78. But of 11 0.87 and
     * 0.90, of 23 0.86 and 0.87, of 24 0.86 and 0.97. In one pass of 8 0.89 and 0.95, of 21 0.82 and 0.95. */
    PATH(THREAD_PER_ROW,               SPARSE_F64 | TWO_PASSES, 21, 21,  21,     21,     21,     21,     21),
    /* Rows of 8 samples in f32 0.96, as THREAD_PER_ROW 0.90; of 24 0.97 / 0.97; of 50 0.97 / 0.91; of 128 0.98 / 0.97; of 300
     * 0.97 / 0.96, as WARP_PER_ROW 0.90 / 0.72; of 500 0.97 / 0.96, as WARP_PER_ROW 0.96 / 0.90. */
    PATH(WARP_PER_ROWS,                THREE_TILES,     512,    512,    512,    512,    512,    512,    512),
    /* The others are sums in f2 and exclusive ones in f64. In f2 on an H100, of 8 samples 0.88, of 17 0.87, of 24 0.85, of 33 0.87, of 50 0.87; as
     * WARP_PER_ROWS 0.59, 0.49, 0.84, 0.55, 0.73. Of whole leaves WARP_PER_ROWS is ahead: of 32 0.98. */
    PATH(THREAD_PER_ROW,               PART_LEAF,        64,     64,     64,     64,     64,     64,     64),
    /* In f2, where f64 is fast: of 32 samples 0.935, of 100 0.75, of 200 0.82, of 256 0.935, of 300 0.92, as WARP_PER_ROWS 0.87, 0.58, 0.57, 0.87, 0.43;
     * of 500 0.90, of 600 0.78, of 700 0.88, of 768 0.91, as WARP_PER_ROW 0.73, 0.65, 0.74, 0.79. Of rows that begin within 16 bytes, 129 0.62 and 0.40,
     * 255 0.74 and 0.66; 511 0.755 and 0.64, 701 0.68 and 0.64. Of 800 0.79 and 0.82, of 1,000 0.89 and 0.895, of 1,024 0.92 and 0.94. */
    PATH(WARP_PER_ROWS_SERIAL,         F2_SUMS,        NONE,    768,   NONE,   NONE,    768,    768,   NONE),
    /* In f2 and, exclusive, in f64: of 128 samples 0.87 / 0.88; of 256 0.86 / 0.88, as WARP_PER_ROW 0.42 / 0.55; of 300 0.39 / 0.61, as WARP_PER_ROW
     * 0.45 / 0.62. */
    PATH(WARP_PER_ROWS,                0,               256,    256,    256,    256,    256,    256,    256),
    /* Other rules and forms: of 8 samples maxima 0.66, f64 0.75, f16 0.43 / 0.30, affine 0.54 / 0.35, as ANY_LAYOUT_PREFETCH,
     * BLOCK_PER_ROW_SHORT and AFFINE_PREFETCH 0.01 to 0.02; of 100 0.775, 0.86, 0.39 / 0.30, 0.74 / 0.47, as these 0.18, 0.27, 0.12 / 0.10,
     * 0.19 / 0.13. IBM floats of 32 samples 0.87 / 0.73, of 100 0.52 / 0.39, as WARP_PER_ROW 0.05 / 0.04 and 0.16 / 0.13.
     * In f2, of 8 samples affine 0.23, of 17 0.21, of 100 0.32, of 200 0.31, as AFFINE_PREFETCH 0.005, 0.01, 0.064, 0.126; of 100 f16 0.195,
     * f64 0.44, products 0.56, as ANY_LAYOUT_PREFETCH 0.035, 0.09, 0.11; IBM floats 0.37, as WARP_PER_ROW 0.094. */
    PATH(ANY_PACKED,                   0,               256,    256,    256,    256,    256,    256,    256),
    /* Likewise, on an H100: of 257 samples 0.58 / 0.78, as WARP_PER_ROW 0.44 / 0.66; of 300 0.90 / 0.96, as WARP_PER_ROW 0.63 / 0.86; of 336 0.91 / 0.97,
     * as WARP_PER_ROW 0.77 / 0.96. */
    PATH(WARP_PER_ROWS_SERIAL,         0,               336,    336,    336,    336,    336,    336,    336),
    /* In f2, of 384 samples 0.92, as WARP_PER_ROW 0.87; of 400 0.76 and 0.89. */
    PATH(WARP_PER_ROWS_SERIAL,         F2_SUMS,         384,    384,    384,    384,    384,    384,    384),
    PATH(WARP_PER_ROW,                 0,               512,    512,    512,    512,    512,    512,    512),
    /* In f2 on an H100, of 544 samples 0.66, as WARP_PER_ROW in f2 alone 0.63; of 700 0.83 and 0.73; of 768 0.91 and 0.85; of 800 0.73 and 0.87. */
    PATH(WARP_PER_ROWS_SERIAL,         F2_SUMS,         768,    768,    768,    768,    768,    768,    768),
    /* Exclusive sums, for which that takes no f64: of 800 samples 0.78, of 1,000 0.89, of 1,024 0.92, as WARP_PER_ROW 0.69, 0.77, 0.86; but of 1,001 0.69 and
     * 0.70. */
    PATH(WARP_PER_ROWS_SERIAL,         F2_SUMS | EXCLUSIVES, NONE, 1536, NONE, NONE,    1536,   1536,   NONE),
    PATH(WARP_PER_ROW,                 0,              1024,   1024,   1024,   1024,   1024,   1024,   1024),
    /* Of 1,025 samples 0.485, of 1,200 0.78, of 1,201 0.56, of 1,500 0.90, of 1,501 0.71, of 1,536 0.91, as WARP_PER_ROW 0.44, 0.605, 0.51, 0.69, 0.65, 0.74. */
    PATH(WARP_PER_ROWS_SERIAL,         F2_SUMS,        NONE,   1536,   NONE,   NONE,   1536,   1536,   NONE),
    /* Rows of 500 samples after headers 0.90 / 0.86 / 0.70, as BLOCK_PER_ROW 0.72 / 0.78 / 0.42; of 1,000 0.93 / 0.92 / 0.71, as BLOCK_PER_ROW 0.82 / 0.77 / 0.56.
     * A lane's registers hold its leaves of no more than three tiles. */
    PATH(WARP_PER_ROW,                 0,              1536,   1536,   1536,   1536,   1536,   1536,   1536),

    /* 10,000 x 10,000 along axis 0: one pass 0.86 / 0.81 / 0.80, as COLUMNS_DIRECT 0.84 / 0.75 / 0.63; both 0.59 / 0.49 / 0.41, as
     * COLUMNS_DIRECT 0.56 / 0.39 / 0.32. f16 0.83 / 0.64 and 0.52 / 0.31, as COLUMNS_DIRECT 0.69 / 0.41 and 0.36 / 0.21. */
    PATH(COLUMNS_TMA,                  BOXES,          NONE,   NONE,   NONE,   NONE,  16384,  16384,   NONE),
    /* 10,000 x 10,000 along axis 0, one pass and both: maxima 0.86, 0.51, f64 0.88, 0.60, i32 0.86, 0.57; as ANY_LAYOUT 0.07.
     * Sums of f32 that the row above leaves: 10,007 columns that lie at odd places 0.46 / 0.43 / 0.41, 0.35 / 0.31 / 0.26; 1,000 of 100,000
     * samples 0.73 / 0.56 / 0.47, 0.44 / 0.31 / 0.23; 100 of 1,000,000 0.26 / 0.22 / 0.14 in both, as GRID_PER_ROW_ONE_LAUNCH 0.02.
     * Affine with one coefficient, both passes 0.46 / 0.32 / 0.18, as AFFINE 0.07. */
    PATH(COLUMNS_DIRECT,               0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Rows of 10,000 samples 0.97 / 0.96 / 0.90, of 10,007 after headers 0.94 / 0.91 / 0.76. On 7.5 there is shared memory for 29 warps, which
     * need 2,176 bytes each. */
    PATH(BLOCK_PER_ROW,                0,             14848,  16384,  16384,  16384,  16384,  16384,  16384),

    /* f16 of 10,000 samples 0.98 / 0.765, bf16 0.96 / 0.71 (even_rows); as ANY_LAYOUT_PREFETCH 0.74 / 0.54, 0.73 / 0.51. */
    PATH(BLOCK_PER_ROW_SHORT,          0,             16384,  16384,  16384,  16384,  16384,  16384,  16384),

    /* Rows of 300 samples: maxima 0.665, i32 0.64, f64 0.78; as ANY_LAYOUT_PREFETCH 0.51, 0.46, 0.72. But f16 0.26 / 0.21 and, as BLOCK_PER_ROW_SHORT,
     * 0.35 / 0.28. In f2 f16 0.128, f64 0.33, products 0.41, as ANY_LAYOUT_PREFETCH 0.106, 0.265, 0.31. */
    PATH(ANY_PACKED,                   JOINED,          512,    512,    512,    512,    512,    512,    512),
    /* Affine in f32 and f2, of 300 samples 0.60 / 0.23, of 400 0.77 / 0.33; as AFFINE_PREFETCH 0.525 / 0.185, 0.75 / 0.26. But in f64 of 300 0.39 either
     * way, of 400 0.61 and 0.625. */
    PATH(ANY_PACKED,                   F32_SUMS,        512,    512,    512,    512,    512,    512,    512),
    PATH(ANY_PACKED,                   F2_SUMS,         512,    512,    512,    512,    512,    512,    512),

    /* Rows of 57,001 samples 0.88, of 100,000 0.91, of 150,001 0.85, of 250,000 0.88; as GRID_PER_ROW_ONE_LAUNCH 0.76, 0.81, 0.78 of 300,000. A
     * thread block needs 215 KiB of shared memory. */
    PATH(CLUSTER_PER_ROW,              F32_SUMS,       NONE,   NONE,   NONE,   NONE, 262144,   NONE,   NONE),
    /* Rows in f2 of 63,000 samples 0.64, of 65,536 0.66, of 69,632 0.54, of 77,824 0.54; as GRID_PER_ROW_ONE_LAUNCH 0.55, 0.59, 0.48, 0.53; but of
     * 81,920 0.55 and 0.56. */
    PATH(CLUSTER_PER_ROW,              F2_SUMS,        NONE,   NONE,   NONE,   NONE,  77824,   NONE,   NONE),
    /* Rows of 33,333 samples in f64 and f2 0.78 / 0.53, of 57,001 0.757 / 0.64, of 60,000 0.81 / 0.63, of 65,536 0.84 / 0.66; as GRID_PER_ROW_ONE_LAUNCH
     * 0.48 / 0.33 of 33,333, 0.62 / 0.44 of 57,001, 0.80 / 0.59 of 65,536.
     * Affine with one coefficient: of 20,001 samples 0.84 / 0.74 / 0.34, as ANY_CLUSTER in maps 0.79 / 0.57 / 0.28; of 57,001 0.87 / 0.60 / 0.40, in
     * terms 0.76 / 0.53 / 0.26; of 250,000 0.87 in f32. In f64, of 8,192 0.84, of 10,000 0.85, of 12,000 0.78, of 16,384 0.75; as AFFINE_PREFETCH
     * 0.76, 0.82, 0.63, 0.71; but of 7,000 0.71 and 0.73, of 5,000 0.62 and 0.87. */
    PATH(CLUSTER_PER_ROW,              0,              NONE,   NONE,   NONE,   NONE,  65536,   NONE,   NONE),
    /* Rows of 100,000 samples 0.83 / 0.73 / 0.49, of 900,000 0.78 / 0.72 / 0.53, as BLOCK_PER_ROW_SPINE 0.41 / 0.32 / 0.30.
     * Of one pass over a row of 10^9 0.93 / 0.93 / 0.91. A thread block needs 225 KiB of shared memory. */
    PATH(GRID_PER_ROW_ONE_LAUNCH,      0,              NONE,   NONE,   NONE,   NONE,    ANY,    ANY,   NONE),
    /* A row of 10^9 0.90 / 0.79 / 0.54 of the three transfers that it takes at least. */
    PATH(GRID_PER_ROW_THREE_LAUNCHES,  0,              NONE,   NONE,   NONE,   NONE,    ANY,    ANY,   NONE),
    PATH(BLOCK_PER_ROW_SPINE,          0,              NONE,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),

    /* Of other rules, rows of 57,001 samples: f64 0.69, f16 0.52 / 0.36, i32 0.80, maxima 0.69; as ANY_LAYOUT_PREFETCH 0.32, 0.20 / 0.15,
     * 0.29, 0.31. Affine with one coefficient, on an H100: 0.86 / 0.65 / 0.33, of 100,000 0.89 / 0.59 / 0.31; as AFFINE_PREFETCH
     * 0.38 / 0.30 / 0.19 and 0.41 / 0.33 / 0.21. */
    PATH(ANY_CLUSTER,                  0,              NONE,   NONE,   NONE,   NONE, 262144,   NONE,   NONE),
    /* Rows of 900,000 samples on an H100: f64 0.57, f16 0.45 / 0.27, i32 0.71, maxima 0.58, as ANY_LAYOUT_PREFETCH 0.49, 0.31 / 0.25, 0.42, 0.42; one pass
     * over 10^8 samples in f64 0.83, i32 0.82, as ANY_LAYOUT_PREFETCH 0.62, 0.65. */
    PATH(ANY_GRID,                     0,              NONE,   NONE,   NONE,   NONE,    ANY,   NONE,   NONE),
    /* f16 of 10,000 samples 0.74 / 0.54, f64 0.86; as ANY_LAYOUT 0.08 and 0.27. What it needs of shared memory goes by dtypes. */
    PATH(ANY_LAYOUT_PREFETCH,          0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    /* Any layout of any dtype, in 36 KiB of shared memory at most, which every device has. */
    PATH(ANY_LAYOUT,                   0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    /* Rows of 10,000 samples with one coefficient, on an H100, 0.97 / 0.95 / 0.59, with one for each sample 1.00 / 0.80 / 0.38; as AFFINE
     * 0.15 / 0.12 / 0.11. */
    PATH(AFFINE_PREFETCH,              0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
    PATH(AFFINE,                       0,               ANY,    ANY,    ANY,    ANY,    ANY,    ANY,    ANY),
};
// clang-format on

static bool is_form(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_F32 && codec_bytes(dtype) == sizeof(float);
}

static bool is_short_form(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F16 || dtype == SCAND_DTYPE_BF16;
}

/* True when a pass leaves f64 for another one. */
static bool is_wide(const struct scan_rule *rule)
{
    return rule->pass_count > 1 && rule->intermediate == SCAND_DTYPE_F64;
}

static bool is_whole(const struct scan_rule *rule)
{
    return (rule->kind == SCAND_KIND_INCLUSIVE || rule->kind == SCAND_KIND_EXCLUSIVE) && !rule->demean;
}

/* True for sums of whole samples, with no f64 between passes in f2. */
static bool is_plain_sum(const struct scan_rule *rule)
{
    return rule->op == SCAND_OPERATOR_SUM && is_whole(rule) &&
           (rule->accumulator != SCAND_ACCUMULATOR_F2 || !is_wide(rule));
}

bool select_is_sum(const struct scan_rule *rule)
{
    return is_plain_sum(rule) && is_form(rule->input) && is_form(rule->output);
}

bool select_is_box_rule(const struct scan_rule *rule)
{
    const bool in_f32 =
        OPERATOR_COMPARES(rule->op) || (rule->op == SCAND_OPERATOR_PROD && rule->accumulator == SCAND_ACCUMULATOR_F32);
    return select_is_sum(rule) || (is_plain_sum(rule) && is_short_form(rule->input) && is_short_form(rule->output)) ||
           (in_f32 && is_whole(rule) && is_form(rule->input) && is_form(rule->output));
}

/* True for sums of samples of 2 bytes that become f32, to such results. */
static bool is_short_sum(const struct scan_rule *rule)
{
    const bool shorts = codec_bytes(rule->input) == 2 && codec_bytes(rule->output) == 2 &&
                        codec_class(rule->input) == SCAND_CLASS_F32 && codec_class(rule->output) == SCAND_CLASS_F32;
    return shorts && is_plain_sum(rule) && rule->kind == SCAND_KIND_INCLUSIVE &&
           rule->accumulator != SCAND_ACCUMULATOR_F2;
}

bool select_is_packed_rule(const struct scan_rows *rows)
{
    return !rows->coefficients && !rows->rule.demean;
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

/* True when kernels can prefetch: samples are contiguous and a thread block has room for them. */
static bool can_prefetch(const struct scan_rule *rule, const struct scan_plan *plan, int shared_max)
{
    const int slots = SELECT_PREFETCH_VECTORS((int)codec_bytes(rule->input), (int)codec_bytes(rule->output));
    return plan->input.access == ACCESS_VEC16 && plan->output.access == ACCESS_VEC16 &&
           scan_warps(plan->length) * slots * VEC16_BYTES + SELECT_DECLARED_BYTES <= shared_max;
}

static bool short_has_three_tiles(const struct scan_rule *rule)
{
    return rule->accumulator == SCAND_ACCUMULATOR_F32 ||
           (rule->accumulator == SCAND_ACCUMULATOR_F64 && rule->kind != SCAND_KIND_EXCLUSIVE);
}

static uint64_t facts_of_rule(const struct scan_rule *rule)
{
    uint64_t facts = rule->operation == SCAND_OPERATION_REDUCE ? REDUCED : SCANS;
    facts |= rule->op == SCAND_OPERATOR_AFFINE ? AFFINE_MAPS : JOINED;
    facts |= select_is_sum(rule) ? SUMS : 0;
    facts |= select_is_box_rule(rule) ? BOX_RULE : 0;
    facts |= is_short_sum(rule) ? SHORT_SUMS : 0;
    facts |= rule->input == SCAND_DTYPE_F32 && rule->output == SCAND_DTYPE_F32 ? F32 : 0;
    facts |= !is_wide(rule) || rule->accumulator == SCAND_ACCUMULATOR_F32 ? FLOAT_BETWEEN : 0;
    facts |= rule->accumulator == SCAND_ACCUMULATOR_F32 ? F32_SUMS : 0;
    facts |= rule->accumulator == SCAND_ACCUMULATOR_F2 ? F2_SUMS : 0;
    facts |= rule->kind == SCAND_KIND_EXCLUSIVE ? EXCLUSIVES : 0;
    facts |= short_has_three_tiles(rule) ? THREE_TILES : ONE_TILE;
    return facts | (rule->pass_count > 1 ? TWO_PASSES : 0);
}

static bool is_sparse(uint64_t length)
{
    return 3 * length <= 2 * ORDER_LEAF * scan_parts(length, ORDER_LEAF);
}

static uint64_t facts_of_layout(const struct scan_plan *plan)
{
    const bool packed_in = scan_side_is_packed(plan, &plan->input, codec_bytes(plan->input_form));
    const bool packed_out = scan_side_is_packed(plan, &plan->output, codec_bytes(plan->output_form));
    uint64_t facts = plan->length > 0 ? SAMPLES : 0;
    facts |= plan->blocks > 1 ? BLOCKS : 0;
    facts |= plan->input.access == ACCESS_VEC16 && plan->output.access == ACCESS_VEC16 ? SLOTS : 0;
    facts |= plan->outer_rank == 1 ? ONE_AXIS : 0;
    facts |= packed_in ? PACKED_IN : 0;
    facts |= packed_in && packed_out ? PACKED : 0;
    facts |= ((uintptr_t)plan->input.base ^ (uintptr_t)plan->output.base) % VEC16_BYTES == 0 ? IN_STEP : 0;
    return facts | (plan->length % ORDER_LEAF != 0 ? PART_LEAF : 0);
}

/* Tiles of boxes have numbers of 32 bits. */
static bool has_maps(const struct scan_plan *plan, const struct select_device *device)
{
    return device->shared_max >= SELECT_COLUMNS_TMA_BYTES && scan_plan_has_maps(plan) && plan->length >= ORDER_TILE &&
           scan_plan_boxes(plan) * scan_tiles(plan->length) < BOX_TILES_MAX;
}

/* True when columns suit TMA. In one pass by f32 they may be of any length. Else tiles are to be full, but for a
 * quarter, and two passes are slower than COLUMNS_DIRECT where a column is one tile. */
static bool has_boxes(const struct scan_rule *rule, const struct scan_plan *plan, const struct select_device *device)
{
    const bool two = plan->pass_count > 1, wide = rule->accumulator != SCAND_ACCUMULATOR_F32;
    const uint64_t tiles = scan_tiles(plan->length), items = scan_plan_boxes(plan) * tiles;
    const uint64_t least = (two ? BOXES_MANY : wide ? BOXES_WIDE : BOXES_MIN) * (uint64_t)device->processors;
    const bool full = plan->length >= tiles * ORDER_TILE / 4 * 3;
    return items >= least && (full || !(two || wide)) && (tiles > 1 || !two);
}

static uint64_t facts_of_columns(const struct scan_rows *rows, const struct scan_plan *plan,
                                 const struct select_device *device)
{
    const bool one_factor = rows->rule.op != SCAND_OPERATOR_AFFINE || !rows->coefficients;
    uint64_t facts = COLUMNS;
    if (!scan_plan_is_columns(plan))
        return 0;
    const uint64_t strips = scan_parts(plan->items / plan->blocks, SCAN_DIRECT_COLUMNS);
    facts |= one_factor && strips * scan_tiles(plan->length) <= UINT32_MAX / 2 ? TILES_COUNTED : 0;
    if (has_maps(plan, device))
        facts |= MAPS | (has_boxes(&rows->rule, plan, device) ? BOXES : 0);
    return facts;
}

struct scan_rows select_coefficient_rows(const struct scan_rows *rows)
{
    struct scan_rows coefficients = *rows;
    coefficients.rule.input = coefficients.rule.output = rows->rule.coefficients;
    coefficients.rule.demean = false;
    coefficients.input = rows->coefficients;
    coefficients.output = (void *)(uintptr_t)rows->coefficients;
    coefficients.input_stride = coefficients.output_stride = rows->coefficient_stride;
    for (uint32_t axis = 0; axis < rows->outer_rank; axis++) {
        coefficients.input_outer_strides[axis] = rows->coefficient_outer_strides[axis];
        coefficients.output_outer_strides[axis] = rows->coefficient_outer_strides[axis];
    }
    return coefficients;
}

static bool has_factors(const struct scan_rows *rows)
{
    if (!rows->coefficients)
        return true;
    const struct scan_rows coefficients = select_coefficient_rows(rows);
    const struct scan_plan plan = scan_plan_of(&coefficients, 0, 1);
    return plan.input.access == ACCESS_VEC16 || (plan.input.access == ACCESS_STRIDED && plan.input.stride == 0);
}

/* Affine has one coefficient, inclusive passes, and the samples that sums have. */
static bool is_map_of_forms(const struct scan_rows *rows)
{
    const struct scan_rule *rule = &rows->rule;
    return rule->op == SCAND_OPERATOR_AFFINE && !rows->coefficients && !rule->demean &&
           rule->kind == SCAND_KIND_INCLUSIVE && is_form(rule->input) && is_form(rule->output) &&
           (rule->accumulator != SCAND_ACCUMULATOR_F2 || !is_wide(rule));
}

/* Exclusive passes in f64 spill so many registers that they take twice as long. Lines of a leaf that the input lies in
 * have numbers of 31 bits. Rows of one order block are worth a cluster of affine in f64 alone. */
static bool cluster_fits(const struct scan_rows *rows, const struct scan_plan *plan)
{
    const struct scan_rule *rule = &rows->rule;
    const bool map = is_map_of_forms(rows), wide = rule->accumulator == SCAND_ACCUMULATOR_F64;
    const bool several = plan->blocks > 1 || (map && wide && plan->length > MAP_BLOCK_MIN);
    const bool spills = rule->accumulator == SCAND_ACCUMULATOR_F64 && rule->kind == SCAND_KIND_EXCLUSIVE;
    const uint64_t most = LINES_MAX * ORDER_LEAF * sizeof(float);
    const int64_t stride = plan->input.outer_strides[0];
    const uint64_t apart = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
    const bool fits = rule->accumulator == SCAND_ACCUMULATOR_F32 || plan->length <= WIDE_SUMS_MAX;
    return (map || select_is_sum(rule)) && !spills && fits && several && plan->outer_rank == 1 &&
           apart < most / (plan->items / plan->blocks + 1);
}

/* Means are computed before, by any_layout. */
static bool any_cluster_fits(const struct scan_rows *rows, const struct scan_plan *plan)
{
    const struct scan_rule *rule = &rows->rule;
    return !rule->demean && !(rule->op == SCAND_OPERATOR_AFFINE && rows->coefficients) &&
           instance_any_cluster_of(rule, scan_tiles(plan->length)).size > 0;
}

static bool any_grid_fits(const struct scan_rule *rule)
{
    return !rule->demean && instance_any_grid_of(rule).size > 0;
}

static uint64_t facts_of(const struct scan_rows *rows, const struct scan_plan *plan, const struct select_device *device)
{
    uint64_t facts = facts_of_rule(&rows->rule) | facts_of_layout(plan) | facts_of_columns(rows, plan, device);
    facts |= rows->rule.accumulator == SCAND_ACCUMULATOR_F64 && is_sparse(plan->length) ? SPARSE_F64 : 0;
    facts |= rows->offsets ? 0 : EVEN;
    facts |= rows->offsets && rows->row_count <= UINT32_MAX ? FEW_ROWS : 0;
    facts |= rows->rule.op == SCAND_OPERATOR_AFFINE && has_factors(rows) ? FACTORS : 0;
    facts |= select_is_packed_rule(rows) ? PACKED_RULE : 0;
    facts |= device->cooperative ? COOPERATIVE : 0;
    facts |= plan->pass_count == 1 || plan->blocks <= (uint64_t)device->processors ? ONE_READ : 0;
    facts |= device->clusters && cluster_fits(rows, plan) ? CLUSTERS : 0;
    facts |= device->clusters && any_cluster_fits(rows, plan) ? ANY_CLUSTERS : 0;
    facts |= device->clusters && any_grid_fits(&rows->rule) ? ANY_GRIDS : 0;
    return facts | (can_prefetch(&rows->rule, plan, device->shared_max) ? PREFETCH : 0);
}

static int architecture_of(int capability)
{
    int architecture = 0;
    while (architecture + 1 < ARCHITECTURES && capability >= architectures[architecture + 1].capability)
        architecture++;
    return architecture;
}

static bool can_take(enum select_path path, uint64_t facts, uint64_t length)
{
    return (needs[path].facts & ~facts) == 0 && length <= needs[path].longest;
}

/* Returns the longest row of a path on a device: bounded by the device, and by what its kernels were compiled for. */
static uint64_t longest_of(const struct row *row, const struct select_device *device)
{
    const uint64_t own = row->longest[architecture_of(device->capability)],
                   code = row->longest[architecture_of(device->code)];
    return own < code ? own : code;
}

/* A question to the table. */
struct question {
    uint64_t facts, length;
    const struct select_device *device;
    bool ranges;
};

static bool row_fits(const struct row *row, const struct question *question)
{
    return (row->facts & ~question->facts) == 0 && question->length <= longest_of(row, question->device) &&
           can_take(row->path, question->facts, question->length) && (!question->ranges || needs[row->path].ranges);
}

int select_run(const struct scan_rows *rows, const struct scan_plan *plan, const struct select_device *device,
               bool ranges, int (*run)(enum select_path path, void *context), void *context)
{
    const struct question question = {facts_of(rows, plan, device), plan->length, device, ranges};
    uint32_t refused = 0; /* a bit for each path */
    int result = SELECT_NO_ROOM;
    _Static_assert(SELECT_PATH_COUNT <= 32, "a bit for each path");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && result == SELECT_NO_ROOM; i++) {
        if (!row_fits(&table[i], &question) || refused >> table[i].path & 1)
            continue;
        refused |= UINT32_C(1) << table[i].path;
        result = run(table[i].path, context);
    }
    return result;
}

/* True when any device that the kernels were compiled for takes a path. */
static bool is_compiled(enum select_path path, const struct select_device *device)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].path == path && table[i].longest[architecture_of(device->code)] != NONE)
            return true;
    return false;
}

int select_run_path(enum select_path path, const struct scan_rows *rows, const struct scan_plan *plan,
                    const struct select_device *device, int (*run)(enum select_path path, void *context), void *context)
{
    const bool fit = is_compiled(path, device) && can_take(path, facts_of(rows, plan, device), plan->length);
    return fit ? run(path, context) : SELECT_UNFIT;
}

struct select_device select_device_as(const struct select_device *device, int capability)
{
    struct select_device as = *device;
    const int shared_max = architectures[architecture_of(capability)].shared_kib << 10;
    as.capability = capability;
    as.shared_max = device->shared_max < shared_max ? device->shared_max : shared_max;
    as.clusters = device->clusters && capability >= 90;
    return as;
}

static int path_remember(enum select_path path, void *taken)
{
    *(enum select_path *)taken = path;
    return 0;
}

enum select_path select_path_of(const struct scan_rows *rows, const struct scan_plan *plan,
                                const struct select_device *device)
{
    enum select_path path = SELECT_ANY_LAYOUT;
    select_run(rows, plan, device, false, path_remember, &path);
    return path;
}

const char *select_word(enum select_path path)
{
    return words[path];
}

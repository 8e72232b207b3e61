/*
 * Plans: rows as the CUDA kernels see them. Plain C, so that what is chosen by them can be tested without a GPU.
 */
#ifndef KERNELS_CUDA_SELECT_PLAN_H
#define KERNELS_CUDA_SELECT_PLAN_H

#include "kernels/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WARP        32 /* lanes, of a leaf each: ORDER_FAN */
#define VEC16_BYTES 16 /* bytes that lanes move at once */

enum scan_access {
    ACCESS_VEC16,   /* contiguous and aligned to the type: a vector at a time */
    ACCESS_STRIDED, /* aligned to the type, at any stride */
    ACCESS_BYTES,   /* anything else */
    ACCESS_SINGLE,  /* samples of one byte, at any stride, which travel as words of two */
};

/* The input or output of all rows. */
struct scan_side {
    char *base;
    int64_t outer_strides[SCAN_OUTER_MAX];
    int64_t stride;
    enum scan_access access;
};

struct work_queue_counter;

/* One launch. */
struct scan_plan {
    struct scan_side input, output;
    uint64_t outer_shape[SCAN_OUTER_MAX];
    int outer_rank; /* at least 1 */
    uint64_t length, first_row;
    uint64_t blocks; /* order blocks per row */
    uint64_t items;  /* rows x blocks; of a range of a row (ranges.h) its blocks, from this one on */
    uint64_t first_item;
    struct work_queue_counter *progress;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    bool ranged; /* a range: thread blocks take a few items each and leave */
    enum scand_dtype input_form, output_form;
    bool bulk;  /* true: results are copied in bulk, where the kernel can; needs ahead */
    bool ahead; /* fetch the next item while one is computed; results have other shared memory then */
    int smem;   /* vectors of shared memory that each warp has: a tile and then, to fetch ahead, the stage of results */

    /* Sums of rows with several blocks: per pass an array of sums for every row, of its blocks' totals until they
     * become carries. With totals_pass >= 0 this launch stores the totals of that pass and writes no results. */
    void *sums[SCAND_PASSES_MAX];
    uint64_t sums_per_row;
    int totals_pass;
};

/* One coefficient of affine: itself; what a full leaf multiplies by; then what 2, 4, ... leaves do, tiles and order
 * blocks among them. As numbers of the accumulator, one after the other. */
#define AFFINE_STEPS  5 /* of a network: ORDER_FAN is a power of 2 */
#define AFFINE_POWERS (2 + 3 * AFFINE_STEPS)
struct affine_powers {
    uint64_t words[AFFINE_POWERS];
};

/* The bytes of the words that samples travel as. */
int scan_word_bytes(enum scand_dtype dtype);

/* An order block of a ragged row. */
struct scan_ragged_item {
    uint32_t row;
    uint32_t sum; /* the index of its sum where its row has several: of each such row there are SCAN_RAGGED_SUMS */
};

/* Ragged rows in device memory, as so many items at most: after the last one come some of row SCAN_RAGGED_END. Without
 * `items` each row is one. */
struct scan_ragged_rows {
    const uint64_t *offsets;
    uint64_t item_count;
    const struct scan_ragged_item *items;
    uint64_t row_count;           /* where rows have 2 to ORDER_FAN order blocks: so many rows, */
    const uint32_t *block_counts; /* and the order blocks of each */
};
#define SCAN_RAGGED_END  UINT32_MAX
#define SCAN_RAGGED_SUMS (ORDER_FAN + 1)

/* Rows first <= r < first + count. */
struct scan_plan scan_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count);

/* True when all rows begin with a vector, on both sides. */
bool scan_plan_is_aligned(const struct scan_plan *plan);

/* True when rows of samples of `size` bytes lie one right after the other. */
bool scan_side_is_packed(const struct scan_plan *plan, const struct scan_side *side, int64_t size);

/* True when rows of the innermost outer axis are columns side by side, on both sides. */
bool scan_plan_is_columns(const struct scan_plan *plan);

/* True when the rows are columns of whole planes that tensor maps can describe on both sides. Then: the columns of a
 * plane; boxes that lie side by side in all planes. */
#define SCAN_BOX 64 /* columns */
bool scan_plan_has_maps(const struct scan_plan *plan);
uint64_t scan_plan_columns(const struct scan_plan *plan);
uint64_t scan_plan_boxes(const struct scan_plan *plan);

/* The strips of columns_direct, of which each is of as many rows in a row, and the levels of a column that it has. */
#define SCAN_DIRECT_COLUMNS 16
#define SCAN_DIRECT_LEVELS  3

/* Parts of so many, of which the last one may be smaller. */
static inline uint64_t scan_parts(uint64_t whole, uint64_t part)
{
    return (whole + part - 1) / part;
}

/* Tiles of a row; its order blocks; warps of a thread block that works on one, a tile each. */
uint64_t scan_tiles(uint64_t length);
uint64_t scan_blocks(uint64_t length);
int scan_warps(uint64_t length);

/* Groups of so many members of a level of the tree of order 1. */
uint64_t scan_groups(uint64_t members);

/* So many packed rows of so many leaves, at most ORDER_FAN * SCAN_SERIAL_TILES, that of the lanes of the tiles that
 * they fill the fewest have no leaf. */
#define SCAN_SERIAL_TILES 3 /* the most tiles */
int scan_serial_rows(int leaves);

/* The sums that `count` rows have above their samples, all levels of a row's one after the other. */
uint64_t scan_sums(uint64_t length, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif

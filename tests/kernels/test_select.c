/*
 * The choice of kernels: on either side of every limit, for every condition of the table; and that each path can be
 * reached.
 */
#include "kernels/cuda/select/instance.h"
#include "kernels/cuda/select/select.h"
#include "tests/check.h"
#include "tests/kernels/select_rows.h"

#define COUNT(LIST) (sizeof(LIST) / sizeof((LIST)[0]))

static const struct select_device t4 = {75, 75, 40, 64 << 10, true, false},
                                  a100 = {80, 80, 108, 163 << 10, true, false},
                                  orin = {87, 87, 16, 163 << 10, true, false},
                                  rtx3090 = {86, 86, 82, 99 << 10, true, false},
                                  rtx4090 = {89, 89, 128, 99 << 10, true, false},
                                  h200 = {90, 90, 132, 227 << 10, true, true},
                                  b200 = {100, 100, 148, 227 << 10, true, true},
                                  rtx5090 = {120, 120, 170, 99 << 10, true, true},
                                  no_cooperation = {90, 90, 132, 227 << 10, false, true},
                                  no_clusters = {90, 90, 132, 227 << 10, true, false},
                                  old_code = {120, 75, 170, 99 << 10, true, false};

/* The path of rows first <= r < first + 100, or of as many columns as many are. */
static enum select_path path_from(struct rows r, const struct select_device *device, uint64_t first)
{
    const struct scan_rows rows = rows_of(r);
    const struct scan_plan plan = scan_plan_of(&rows, first, r.many ? 2 * 132 * 32 : 100);
    return select_path_of(&rows, &plan, device);
}

static bool reached[SELECT_PATH_COUNT];

static void check_path(int line, struct rows r, const struct select_device *device, enum select_path expected)
{
    const enum select_path path = path_from(r, device, 0);
    reached[path] = true;
    if (path != expected) {
        fprintf(stderr, "%s:%d: %s, not %s\n", __FILE__, line, select_word(path), select_word(expected));
        check_failures++;
    }
}

#define ON(DEVICE, PATH, ...) check_path(__LINE__, (struct rows){__VA_ARGS__}, &(DEVICE), SELECT_##PATH)
#define PATH(NAME, ...)       ON(h200, NAME, __VA_ARGS__)

static void reductions(void)
{
    PATH(REDUCE, .what = REDUCE, .length = 0);
    PATH(REDUCE, .what = REDUCE, .length = 0, .accumulator = IN_F2);
    PATH(REDUCE_WARP_PER_ROWS, .what = REDUCE, .length = 1);
    PATH(REDUCE_WARP_PER_ROWS, .what = REDUCE, .length = 256);
    PATH(REDUCE, .what = REDUCE, .length = 256, .gap = 4);
    PATH(REDUCE, .what = REDUCE, .length = 256, .columns = true);
    PATH(REDUCE, .what = REDUCE, .length = 257);
    PATH(REDUCE, .what = REDUCE, .length = 16384);
    PATH(REDUCE, .what = REDUCE, .length = 16385);
    PATH(REDUCE_WARP_PER_ROWS, .what = REDUCE, .length = 100, .input = IBM, .output = F64);
    PATH(REDUCE_WARP_PER_ROWS, .what = REDUCE, .length = 100, .input = F16, .output = F64);
    PATH(REDUCE, .what = REDUCE, .length = 100, .input = F16, .input_at = 1);
    PATH(REDUCE, .what = REDUCE, .length = 1000000, .ragged = true);
}

static void ragged_rows(void)
{
    PATH(RAGGED, .ragged = true, .length = 1000000);
    PATH(RAGGED, .ragged = true, .length = 10, .wide = true);
    PATH(ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10, .accumulator = IN_F64, .wide = true);
    PATH(ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10, .accumulator = IN_F2, .wide = true);
    PATH(ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10, .op = MAX);
    PATH(ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10, .output = F64);
    PATH(ANY_LAYOUT, .ragged = true, .length = 10, .input_at = 2);
    PATH(AFFINE_PREFETCH, .ragged = true, .length = 10, .what = SCAN_AFFINE);
    PATH(AFFINE, .ragged = true, .length = 10, .what = SCAN_AFFINE, .input_at = 1);
    ON(t4, ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10);
    ON(no_cooperation, ANY_LAYOUT_PREFETCH, .ragged = true, .length = 10);
    ON(rtx4090, RAGGED, .ragged = true, .length = 10);
    ON(rtx5090, RAGGED, .ragged = true, .length = 10);
    ON(a100, RAGGED, .ragged = true, .length = 10);
}

static void short_rows(void)
{
    PATH(THREAD_PER_ROW, .length = 1);
    PATH(THREAD_PER_ROW, .length = 6);
    PATH(WARP_PER_ROWS, .length = 7);
    PATH(WARP_PER_ROWS, .length = 17);
    PATH(THREAD_PER_ROW, .length = 10, .accumulator = IN_F64);
    PATH(WARP_PER_ROWS, .length = 10, .accumulator = IN_F64, .one_pass = true);
    PATH(WARP_PER_ROWS, .length = 11, .accumulator = IN_F64);
    PATH(THREAD_PER_ROW, .length = 17, .accumulator = IN_F64);
    PATH(THREAD_PER_ROW, .length = 21, .accumulator = IN_F64);
    PATH(WARP_PER_ROWS, .length = 22, .accumulator = IN_F64);
    PATH(WARP_PER_ROWS, .length = 33, .accumulator = IN_F64);
    PATH(WARP_PER_ROWS, .length = 35, .accumulator = IN_F64);
    PATH(WARP_PER_ROWS, .length = 65, .accumulator = IN_F64);
    PATH(THREAD_PER_ROW, .length = 63, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROWS, .length = 512);
    PATH(WARP_PER_ROWS, .length = 511, .accumulator = IN_F64, .wide = true);
    PATH(WARP_PER_ROW, .length = 513);
    PATH(WARP_PER_ROWS, .length = 100, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROWS_SERIAL, .length = 336, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROW, .length = 337, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROW, .length = 513, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROW, .length = 300, .accumulator = IN_F64, .wide = true, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROW, .length = 1536);
    PATH(BLOCK_PER_ROW, .length = 1537);
    PATH(WARP_PER_ROWS, .length = 5, .input_at = 4);
    PATH(THREAD_PER_ROW, .length = 5, .input_at = 4, .output_at = 4);
    PATH(WARP_PER_ROWS, .length = 17, .accumulator = IN_F64, .wide = true);
    PATH(WARP_PER_ROWS, .length = 17, .accumulator = IN_F64, .wide = true, .one_pass = true);
    PATH(THREAD_PER_ROW, .length = 5, .wide = true);
    PATH(WARP_PER_ROW, .length = 31, .gap = 4);
    PATH(WARP_PER_ROW, .length = 31, .gap = 8, .accumulator = IN_F64, .wide = true);
    PATH(ANY_PACKED, .length = 256, .input = IBM);
    PATH(WARP_PER_ROW, .length = 257, .input = IBM);
    PATH(ANY_PACKED, .length = 31, .input = IBM, .accumulator = IN_F2);
    PATH(ANY_LAYOUT, .length = 1000, .input_at = 1);
    PATH(ANY_PACKED, .length = 31, .output = F64);
    ON(t4, WARP_PER_ROW, .length = 1536);
}

static void short_rows_in_f2(void)
{
    PATH(THREAD_PER_ROW, .length = 31, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 32, .accumulator = IN_F2);
    PATH(THREAD_PER_ROW, .length = 33, .accumulator = IN_F2);
    PATH(THREAD_PER_ROW, .length = 63, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 65, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 96, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 112, .accumulator = IN_F2, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROWS, .length = 100, .accumulator = IN_F2, .input_at = 4);
    PATH(WARP_PER_ROWS_SERIAL, .length = 256, .accumulator = IN_F2, .input_at = 4, .output_at = 4);
    PATH(WARP_PER_ROWS_SERIAL, .length = 257, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 513, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 768, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 768, .accumulator = IN_F2, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROW, .length = 1024, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 1024, .accumulator = IN_F2, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(WARP_PER_ROWS_SERIAL, .length = 1025, .accumulator = IN_F2);
    PATH(WARP_PER_ROWS_SERIAL, .length = 1536, .accumulator = IN_F2);
    PATH(BLOCK_PER_ROW, .length = 1537, .accumulator = IN_F2);
    PATH(WARP_PER_ROW, .length = 1200, .accumulator = IN_F2, .gap = 4);
    ON(rtx4090, WARP_PER_ROW, .length = 1025, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROWS, .length = 256, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROWS_SERIAL, .length = 257, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROWS_SERIAL, .length = 384, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROW, .length = 385, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROWS_SERIAL, .length = 513, .accumulator = IN_F2);
    ON(rtx4090, WARP_PER_ROWS_SERIAL, .length = 768, .accumulator = IN_F2, .kind = SCAND_KIND_EXCLUSIVE);
    ON(rtx4090, WARP_PER_ROW, .length = 769, .accumulator = IN_F2);
    ON(a100, WARP_PER_ROWS_SERIAL, .length = 513, .accumulator = IN_F2);
    PATH(WARP_PER_ROW, .length = 769, .accumulator = IN_F2);
    PATH(WARP_PER_ROW, .length = 300, .accumulator = IN_F2, .gap = 4);
    PATH(WARP_PER_ROW, .length = 300, .accumulator = IN_F2, .input_at = 4);
    PATH(WARP_PER_ROWS_SERIAL, .length = 300, .accumulator = IN_F2, .input_at = 4, .output_at = 20);
    PATH(ANY_PACKED, .length = 31, .accumulator = IN_F2, .wide = true);
    PATH(WARP_PER_ROW, .length = 1000, .gap = 240, .input = IBM, .output = IBM, .accumulator = IN_F2);
    PATH(ANY_LAYOUT_PREFETCH, .length = 1000, .accumulator = IN_F2, .wide = true, .input_at = 4);
}

static void short_rows_of_any_rule(void)
{
    PATH(ANY_PACKED, .length = 512, .op = MAX);
    PATH(ANY_PACKED, .length = 1, .op = MAX, .output = F64, .input_at = 4, .output_at = 8);
    PATH(ANY_PACKED, .length = 100, .input = I64, .output = I64);
    PATH(ANY_PACKED, .length = 100, .input = F16, .output = F16, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(ANY_PACKED, .length = 100, .kind = SCAND_KIND_TRAPEZOID);
    PATH(ANY_PACKED, .length = 256, .what = SCAN_AFFINE);
    PATH(ANY_PACKED, .length = 256, .input = F16, .output = F16);
    PATH(ANY_PACKED, .length = 100, .op = MAX, .accumulator = IN_F2);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .op = MAX);
    PATH(ANY_LAYOUT_PREFETCH, .length = 100, .op = MAX, .gap = 4);
    PATH(ANY_LAYOUT_PREFETCH, .length = 100, .op = MAX, .demean = true);
    PATH(ANY_PACKED, .length = 512, .op = SCAND_OPERATOR_PROD, .accumulator = IN_F2);
    PATH(ANY_PACKED, .length = 512, .kind = SCAND_KIND_HALF, .accumulator = IN_F2);
    PATH(ANY_LAYOUT, .length = 100, .op = MAX, .input_at = 2);
    PATH(ANY_PACKED, .length = 512, .what = SCAN_AFFINE);
    PATH(ANY_PACKED, .length = 512, .what = SCAN_AFFINE, .accumulator = IN_F2);
    PATH(ANY_PACKED, .length = 256, .what = SCAN_AFFINE, .accumulator = IN_F64);
    PATH(AFFINE_PREFETCH, .length = 257, .what = SCAN_AFFINE, .accumulator = IN_F64);
    ON(t4, ANY_PACKED, .length = 512, .op = MAX);
}

static void rows_of_a_block(void)
{
    PATH(BLOCK_PER_ROW, .length = 10000);
    PATH(BLOCK_PER_ROW, .length = 10000, .input = IBM, .accumulator = IN_F2, .gap = 240);
    PATH(ANY_LAYOUT_PREFETCH, .length = 10000, .input = IBM, .output = F64, .accumulator = IN_F2, .gap = 240);
    PATH(BLOCK_PER_ROW, .length = 10000, .output_at = 4);
    PATH(BLOCK_PER_ROW, .length = 10007);
    PATH(ANY_LAYOUT, .length = 10000, .input_at = 1);
    PATH(BLOCK_PER_ROW, .length = 16384);
    ON(t4, BLOCK_PER_ROW, .length = 14848);
    ON(t4, ANY_LAYOUT, .length = 14849);
    ON(t4, ANY_LAYOUT, .length = 16384);
    ON(rtx3090, BLOCK_PER_ROW, .length = 16384);
}

static void rows_of_blocks(void)
{
    const uint64_t most = 132 * 16384;
    PATH(CLUSTER_PER_ROW, .length = 16385);
    PATH(CLUSTER_PER_ROW, .length = 262144, .wide = true);
    PATH(CLUSTER_PER_ROW, .length = 100001, .gap = 240, .input = IBM, .input_at = 4, .one_pass = true);
    PATH(CLUSTER_PER_ROW, .length = 65536, .accumulator = IN_F64, .wide = true);
    PATH(CLUSTER_PER_ROW, .length = 77824, .accumulator = IN_F2);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = 77825, .accumulator = IN_F2);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = 262145);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = 65537, .accumulator = IN_F64);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = 16385, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(ANY_LAYOUT_PREFETCH, .length = 61440, .accumulator = IN_F2, .wide = true);
    PATH(ANY_CLUSTER, .length = 16385, .output = F64);
    PATH(ANY_LAYOUT, .length = 16385, .input_at = 1);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = 16385, .gap = UINT64_C(1) << 30);
    ON(no_clusters, GRID_PER_ROW_ONE_LAUNCH, .length = 16385);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = most, .one_pass = true);
    PATH(GRID_PER_ROW_THREE_LAUNCHES, .length = most + 1);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = most + 1, .one_pass = true);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = most, .wide = true);
    PATH(BLOCK_PER_ROW_SPINE, .length = most, .wide = true, .accumulator = IN_F64);
    PATH(ANY_LAYOUT_PREFETCH, .length = most, .wide = true, .accumulator = IN_F2);
    PATH(GRID_PER_ROW_ONE_LAUNCH, .length = most, .wide = true, .accumulator = IN_F2, .one_pass = true);
    ON(b200, GRID_PER_ROW_ONE_LAUNCH, .length = 148 * 16384);
    ON(b200, GRID_PER_ROW_THREE_LAUNCHES, .length = 148 * 16384 + 1);
    ON(no_cooperation, CLUSTER_PER_ROW, .length = 16385);
    ON(no_cooperation, BLOCK_PER_ROW_SPINE, .length = 262145);
    ON(a100, BLOCK_PER_ROW_SPINE, .length = 16385);
    ON(rtx5090, BLOCK_PER_ROW_SPINE, .length = 16385);
    ON(t4, ANY_LAYOUT, .length = 16385);
}

static void columns(void)
{
    PATH(COLUMNS_DIRECT, .length = 2, .columns = true);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .input = IBM, .output = F64, .accumulator = IN_F2);
    PATH(ANY_LAYOUT, .length = 10000, .columns = true, .input_at = 1);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .accumulator = IN_F64, .wide = true);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .op = MAX);
    PATH(COLUMNS_DIRECT, .length = 32 * 32 * 16384, .columns = true, .demean = true);
    PATH(ANY_LAYOUT, .length = 32 * 32 * 16384 + 1, .columns = true, .demean = true);
    PATH(ANY_LAYOUT, .length = 10000, .columns = true, .op = MAX, .input_at = 1);
    ON(t4, COLUMNS_DIRECT, .length = 2, .columns = true);
    ON(no_cooperation, COLUMNS_DIRECT, .length = 2, .columns = true);
}

static void many_columns(void)
{
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .one_pass = true);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .one_pass = true);
    PATH(COLUMNS_TMA, .length = 512, .columns = true, .many = true, .one_pass = true, .input = IBM, .output_at = 16);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .input = F16, .output = F16);
    PATH(COLUMNS_TMA, .length = 512, .columns = true, .many = true, .one_pass = true, .input = F16, .output = F16);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .input = F16, .output = F16, .input_at = 8);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .input = F16);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .input = I16, .output = I16);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .op = MAX);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .op = SCAND_OPERATOR_MIN,
         .kind = SCAND_KIND_EXCLUSIVE);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .op = SCAND_OPERATOR_PROD);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .op = SCAND_OPERATOR_PROD,
         .accumulator = IN_F64);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .op = MAX, .input = F16, .output = F16);
    PATH(COLUMNS_DIRECT, .length = 3584, .columns = true, .many = true);
    PATH(COLUMNS_TMA, .length = 3585, .columns = true, .many = true);
    PATH(COLUMNS_DIRECT, .length = 511, .columns = true, .many = true, .one_pass = true);
    PATH(COLUMNS_TMA, .length = 16384, .columns = true, .many = true);
    PATH(COLUMNS_DIRECT, .length = 16385, .columns = true, .many = true);
    PATH(COLUMNS_DIRECT, .length = 16385, .columns = true, .many = true, .accumulator = IN_F64);
    PATH(COLUMNS_DIRECT, .length = 16385, .columns = true, .many = true, .input = IBM);
    PATH(COLUMNS_DIRECT, .length = 16385, .columns = true, .many = true, .output_at = 4);
    PATH(COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .accumulator = IN_F64);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .accumulator = IN_F64, .wide = true);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .output = F64);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .output_at = 4);
    PATH(COLUMNS_TMA, .length = 1537, .columns = true, .many = true, .one_pass = true, .accumulator = IN_F64);
    PATH(COLUMNS_DIRECT, .length = 1536, .columns = true, .many = true, .one_pass = true, .accumulator = IN_F64);
    PATH(COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true, .input_at = 4);
    PATH(COLUMNS_DIRECT, .length = 512, .columns = true, .many = true, .one_pass = true, .input = IBM, .output = F64);
    PATH(COLUMNS_DIRECT, .length = 524288, .columns = true, .many = true, .one_pass = true);
    PATH(COLUMNS_DIRECT, .length = 524288, .columns = true, .many = true, .one_pass = true, .input_at = 4);
    PATH(COLUMNS_DIRECT, .length = 524289, .columns = true, .many = true, .one_pass = true);
    ON(a100, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true);
    ON(b200, COLUMNS_TMA, .length = 10000, .columns = true, .many = true);
    ON(b200, COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .one_pass = true, .accumulator = IN_F2);
    ON(b200, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true, .output_at = 4);
    ON(rtx4090, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true);
    ON(t4, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true);
    ON(no_cooperation, COLUMNS_TMA, .length = 10000, .columns = true, .many = true, .one_pass = true);
    ON(no_cooperation, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true, .one_pass = true,
       .output_at = 4);
}

static void all_else(void)
{
    PATH(AFFINE_PREFETCH, .length = 10, .what = SCAN_AFFINE, .input = F64, .output = F64, .demean = true);
    PATH(AFFINE_PREFETCH, .length = 513, .what = SCAN_AFFINE);
    PATH(CLUSTER_PER_ROW, .length = 262144, .what = SCAN_AFFINE);
    PATH(CLUSTER_PER_ROW, .length = 77824, .what = SCAN_AFFINE, .accumulator = IN_F2);
    PATH(CLUSTER_PER_ROW, .length = 65536, .what = SCAN_AFFINE, .input = IBM, .accumulator = IN_F64, .wide = true);
    PATH(CLUSTER_PER_ROW, .length = 7681, .what = SCAN_AFFINE, .accumulator = IN_F64);
    PATH(AFFINE_PREFETCH, .length = 7680, .what = SCAN_AFFINE, .accumulator = IN_F64);
    PATH(AFFINE_PREFETCH, .length = 16384, .what = SCAN_AFFINE);
    PATH(AFFINE_PREFETCH, .length = 16384, .what = SCAN_AFFINE, .accumulator = IN_F2);
    PATH(ANY_CLUSTER, .length = 16385, .what = SCAN_AFFINE, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(ANY_CLUSTER, .length = 262144, .what = SCAN_AFFINE, .accumulator = IN_F2);
    PATH(ANY_CLUSTER, .length = 163840, .what = SCAN_AFFINE, .input = F64, .output = F64, .accumulator = IN_F64);
    PATH(AFFINE_PREFETCH, .length = 262145, .what = SCAN_AFFINE);
    PATH(AFFINE_PREFETCH, .length = 163841, .what = SCAN_AFFINE, .accumulator = IN_F64);
    PATH(AFFINE_PREFETCH, .length = 16385, .what = SCAN_AFFINE, .output = F64, .accumulator = IN_F2);
    PATH(AFFINE_PREFETCH, .length = 16385, .what = SCAN_AFFINE, .input = I64, .output = I64);
    PATH(COLUMNS_DIRECT, .length = 10, .what = SCAN_AFFINE, .columns = true);
    PATH(AFFINE, .length = 10, .what = SCAN_AFFINE, .columns = true, .input_at = 1);
    ON(no_clusters, AFFINE_PREFETCH, .length = 16385, .what = SCAN_AFFINE);
    PATH(BLOCK_PER_ROW_SHORT, .length = 257, .input = F16, .output = F16);
    PATH(BLOCK_PER_ROW_SHORT, .length = 16384, .input = I16, .output = F16, .accumulator = IN_F64);
    PATH(ANY_PACKED, .length = 10, .input = F16, .output = F16, .accumulator = IN_F2);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .input = F16, .output = F16, .kind = SCAND_KIND_EXCLUSIVE);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .op = MAX);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .kind = HALF);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .kind = SCAND_KIND_TRAPEZOID);
    PATH(ANY_LAYOUT_PREFETCH, .length = 10, .demean = true);
    PATH(ANY_LAYOUT_PREFETCH, .length = 513, .output = F16);
    PATH(ANY_GRID, .length = 1000000, .input = I32, .output = I32);
    PATH(ANY_CLUSTER, .length = 262144, .op = MAX);
    PATH(ANY_GRID, .length = 262145, .op = MAX);
    PATH(ANY_GRID, .length = 262145, .kind = SCAND_KIND_TRAPEZOID);
    PATH(ANY_LAYOUT_PREFETCH, .length = 16384, .op = MAX);
    PATH(ANY_CLUSTER, .length = 16385, .kind = SCAND_KIND_TRAPEZOID);
    PATH(ANY_CLUSTER, .length = 262144, .input = I32, .output = I32);
    PATH(ANY_CLUSTER, .length = 131072, .input = I64, .output = I64);
    PATH(ANY_LAYOUT_PREFETCH, .length = 131073, .input = I64, .output = I64);
    PATH(ANY_CLUSTER, .length = 163840, .input = F64, .output = F64, .accumulator = IN_F64);
    PATH(ANY_GRID, .length = 163841, .input = F64, .output = F64, .accumulator = IN_F64);
    PATH(ANY_CLUSTER, .length = 163840, .input = F16, .output = F16, .accumulator = IN_F64);
    PATH(ANY_GRID, .length = 163841, .input = F16, .output = F16, .accumulator = IN_F64);
    PATH(ANY_LAYOUT_PREFETCH, .length = 16385, .input = F16, .output = F16, .accumulator = IN_F2);
    PATH(ANY_LAYOUT_PREFETCH, .length = 16385, .op = MAX, .demean = true);
    PATH(ANY_LAYOUT_PREFETCH, .length = 262145, .input = F16, .output = F16, .accumulator = IN_F2);
    PATH(ANY_LAYOUT_PREFETCH, .length = 262145, .op = MAX, .demean = true);
    ON(no_cooperation, ANY_LAYOUT_PREFETCH, .length = 262145, .op = MAX);
    ON(no_clusters, ANY_LAYOUT_PREFETCH, .length = 262145, .op = MAX);
    ON(b200, ANY_LAYOUT_PREFETCH, .length = 262145, .op = MAX);
    ON(no_clusters, ANY_LAYOUT_PREFETCH, .length = 16385, .op = MAX);
    ON(a100, ANY_LAYOUT_PREFETCH, .length = 16385, .op = MAX);
    ON(b200, ANY_LAYOUT_PREFETCH, .length = 16385, .op = MAX);
    PATH(COLUMNS_DIRECT, .length = 10, .op = MAX, .columns = true);
    PATH(ANY_LAYOUT, .length = 10, .input = F16, .input_at = 1);
    PATH(ANY_LAYOUT, .length = 10, .input = F16, .output_at = 2);
    /* A thread block takes 1,024 bytes and 5,248 for each warp, which limits the tiles. */
    PATH(ANY_LAYOUT_PREFETCH, .length = 16384, .input = F64, .output = F64);
    ON(a100, ANY_LAYOUT_PREFETCH, .length = 31 * 512, .input = F64, .output = F64);
    ON(a100, ANY_LAYOUT, .length = 31 * 512 + 1, .input = F64, .output = F64);
    ON(rtx4090, ANY_LAYOUT_PREFETCH, .length = 19 * 512, .input = F64, .output = F64);
    ON(rtx4090, ANY_LAYOUT, .length = 19 * 512 + 1, .input = F64, .output = F64);
    ON(t4, ANY_LAYOUT_PREFETCH, .length = 12 * 512, .input = F64, .output = F64);
    ON(t4, ANY_LAYOUT, .length = 12 * 512 + 1, .input = F64, .output = F64);
}

static int take_path(enum select_path path, void *context)
{
    *(enum select_path *)context = path;
    return 42;
}

static void check_ranges(int line, struct rows r, const struct select_device *device, enum select_path expected)
{
    const struct scan_rows rows = rows_of(r);
    const struct scan_plan plan = scan_plan_of(&rows, 0, 1);
    enum select_path path = SELECT_PATH_COUNT;
    select_run(&rows, &plan, device, true, take_path, &path);
    if (path != expected) {
        fprintf(stderr, "%s:%d: %s, not %s\n", __FILE__, line, select_word(path), select_word(expected));
        check_failures++;
    }
}

#define RANGES(DEVICE, PATH, ...) check_ranges(__LINE__, (struct rows){__VA_ARGS__}, &(DEVICE), SELECT_##PATH)

/* Rows by ranges are never scanned by a launch in which thread blocks wait for one another. */
static void rows_by_ranges(void)
{
    const uint64_t length = UINT64_C(1) << 33;
    RANGES(h200, BLOCK_PER_ROW_SPINE, .length = length);
    RANGES(h200, ANY_LAYOUT_PREFETCH, .length = 16385, .one_pass = true, .accumulator = IN_F2, .output = F64);
    RANGES(h200, ANY_LAYOUT, .length = 16385, .columns = true);
    RANGES(a100, BLOCK_PER_ROW_SPINE, .length = length);
    RANGES(t4, ANY_LAYOUT, .length = length);
    RANGES(h200, AFFINE_PREFETCH, .length = length, .what = SCAN_AFFINE);
    RANGES(h200, REDUCE, .length = length, .what = REDUCE);
    RANGES(t4, REDUCE, .length = 16385, .what = REDUCE, .input = F16);
    RANGES(h200, ANY_LAYOUT_PREFETCH, .length = length, .op = MAX);
    RANGES(h200, ANY_LAYOUT, .length = length, .op = MAX, .columns = true);
}

/* Kernels that do not fit the shared memory of a thread block, or that need another architecture, are not chosen. */
static void shared_memory(void)
{
    static const struct select_device *const all[] = {&t4, &a100, &orin, &rtx3090, &rtx4090, &h200, &b200, &rtx5090};
    for (size_t i = 0; i < COUNT(all); i++)
        for (uint64_t tiles = 1; tiles <= 200; tiles++) {
            const struct rows even = {.length = tiles * 512}, ragged = {.length = tiles * 512, .ragged = true};
            const enum select_path path = path_from(even, all[i], 0);
            const int left = all[i]->shared_max - (path == SELECT_GRID_PER_ROW_ONE_LAUNCH ? 230400
                                                   : path == SELECT_CLUSTER_PER_ROW       ? SELECT_CLUSTER_BYTES
                                                   : path == SELECT_BLOCK_PER_ROW_SPINE   ? 32 * 2176 + 640
                                                   : path == SELECT_BLOCK_PER_ROW         ? (int)tiles * 2176 + 640
                                                                                          : 0);
            CHECK(left >= 0);
            CHECK(path_from(ragged, all[i], 0) != SELECT_RAGGED || all[i]->shared_max >= SELECT_RAGGED_BYTES);
        }
}

/* A device that runs code which was compiled for an older one, from PTX, has the paths of both, whatever it could do
 * itself. */
static void code_of_older_devices(void)
{
    for (uint64_t length = 1; length <= 1 << 20; length += length / 64 + 1) {
        const struct rows rows = {.length = length}, ragged = {.length = length, .ragged = true};
        CHECK_EQ(path_from(rows, &old_code, 0), path_from(rows, &t4, 0));
        CHECK(path_from(ragged, &old_code, 0) != SELECT_RAGGED);
    }
}

static enum select_together together_of(struct rows r, uint64_t count)
{
    const struct scan_rows rows = rows_of(r);
    return select_together_of(&rows, count);
}

#define TOGETHER(WITH, ...) CHECK_EQ(together_of((struct rows){__VA_ARGS__}, 64), SELECT_##WITH)

static void small_jobs(void)
{
    TOGETHER(SCANS, .length = 1);
    TOGETHER(SCANS, .length = 16384, .accumulator = IN_F2, .wide = true, .output = F64);
    TOGETHER(SCANS, .length = 1000, .input = IBM, .input_at = 1, .columns = true, .kind = SCAND_KIND_EXCLUSIVE);
    TOGETHER(SCANS, .length = 1000, .kind = HALF);
    TOGETHER(SCANS, .length = 1000, .op = MAX);
    TOGETHER(SCANS, .length = 1000, .input = F16);
    TOGETHER(SCANS, .length = 1000, .demean = true);
    TOGETHER(SCANS, .length = 16384, .input = I32, .columns = true);
    TOGETHER(AFFINES, .length = 1000, .what = SCAN_AFFINE);
    TOGETHER(AFFINES, .length = 1000, .what = SCAN_AFFINE, .demean = true);
    TOGETHER(REDUCTIONS, .length = 1000, .what = REDUCE);
    TOGETHER(ALONE, .length = 0);
    TOGETHER(ALONE, .length = 0, .what = REDUCE);
    TOGETHER(ALONE, .length = 16385);
    TOGETHER(ALONE, .length = 16385, .what = REDUCE);
    TOGETHER(ALONE, .length = 1000, .ragged = true);
    CHECK_EQ(together_of((struct rows){.length = 1000}, 65), SELECT_ALONE);
}

/* Paths as they are tried on a device that has no room for the first `full`. */
struct tries {
    enum select_path paths[SELECT_PATH_COUNT];
    int count, full;
};

static int try_path(enum select_path path, void *context)
{
    struct tries *tries = context;
    if (tries->count < SELECT_PATH_COUNT)
        tries->paths[tries->count] = path;
    return ++tries->count <= tries->full ? SELECT_NO_ROOM : 42;
}

static struct tries tries_of(struct rows r, int full, int *result)
{
    const struct scan_rows rows = rows_of(r);
    const struct scan_plan plan = scan_plan_of(&rows, 0, r.many ? 2 * 132 * 32 : 100);
    struct tries tries = {.full = full};
    *result = select_run(&rows, &plan, &h200, false, try_path, &tries);
    return tries;
}

#define TRIES(ROWS, ...) check_tries(__LINE__, ROWS, (const enum select_path[]){__VA_ARGS__, SELECT_PATH_COUNT})

/* Each of the paths is tried once, best first; where one has room, none after it. */
static void check_tries(int line, struct rows r, const enum select_path *expected)
{
    int count = 0, result;
    while (expected[count] != SELECT_PATH_COUNT)
        count++;
    for (int full = 0; full <= count; full++) {
        const struct tries tries = tries_of(r, full, &result);
        bool same = tries.count == (full < count ? full + 1 : count);
        for (int i = 0; i < tries.count && same; i++)
            same = tries.paths[i] == expected[i];
        if (!same || result != (full < count ? 42 : SELECT_NO_ROOM)) {
            fprintf(stderr, "%s:%d: not the paths expected with %d full\n", __FILE__, line, full);
            check_failures++;
        }
    }
}

/* The next row of the table counts where the device has no room for what the table says, but never the row of another
 * computation. */
static void no_room(void)
{
    TRIES(((struct rows){.length = 5}), SELECT_THREAD_PER_ROW, SELECT_WARP_PER_ROWS, SELECT_ANY_PACKED,
          SELECT_WARP_PER_ROW, SELECT_BLOCK_PER_ROW, SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 200, .accumulator = IN_F2}), SELECT_WARP_PER_ROWS_SERIAL, SELECT_WARP_PER_ROWS,
          SELECT_ANY_PACKED, SELECT_WARP_PER_ROW, SELECT_BLOCK_PER_ROW, SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 300, .accumulator = IN_F2}), SELECT_WARP_PER_ROWS_SERIAL, SELECT_WARP_PER_ROW,
          SELECT_BLOCK_PER_ROW, SELECT_ANY_PACKED, SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 1024}), SELECT_WARP_PER_ROW, SELECT_BLOCK_PER_ROW, SELECT_ANY_LAYOUT_PREFETCH,
          SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 20000}), SELECT_CLUSTER_PER_ROW, SELECT_GRID_PER_ROW_ONE_LAUNCH,
          SELECT_GRID_PER_ROW_THREE_LAUNCHES, SELECT_BLOCK_PER_ROW_SPINE, SELECT_ANY_CLUSTER, SELECT_ANY_GRID,
          SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 10000, .columns = true, .many = true, .one_pass = true}), SELECT_COLUMNS_TMA,
          SELECT_COLUMNS_DIRECT, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 10, .ragged = true}), SELECT_RAGGED, SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
    TRIES(((struct rows){.length = 10, .ragged = true, .what = SCAN_AFFINE}), SELECT_AFFINE_PREFETCH, SELECT_AFFINE);
    TRIES(((struct rows){.length = 16385, .what = SCAN_AFFINE}), SELECT_CLUSTER_PER_ROW, SELECT_ANY_CLUSTER,
          SELECT_AFFINE_PREFETCH, SELECT_AFFINE);
    TRIES(((struct rows){.length = 10, .what = REDUCE}), SELECT_REDUCE_WARP_PER_ROWS, SELECT_REDUCE);
    TRIES(((struct rows){.length = 20000, .what = REDUCE}), SELECT_REDUCE);
    TRIES(((struct rows){.length = 1000, .input = F64, .output = F64}), SELECT_ANY_LAYOUT_PREFETCH, SELECT_ANY_LAYOUT);
}

/* The answer to rows that are forced to take a path; what runs then is that path alone. */
static int forced(enum select_path path, struct rows r, const struct select_device *device)
{
    const struct scan_rows rows = rows_of(r);
    const struct scan_plan plan = scan_plan_of(&rows, 0, r.many ? 2 * 132 * 32 : 100);
    enum select_path taken = SELECT_PATH_COUNT;
    const int result = select_run_path(path, &rows, &plan, device, take_path, &taken);
    CHECK(taken == (result == 42 ? path : SELECT_PATH_COUNT));
    return result;
}

#define FORCED(PATH, ...) CHECK_EQ(forced(SELECT_##PATH, (struct rows){__VA_ARGS__}, &h200), 42)
#define UNFIT(PATH, ...)  CHECK_EQ(forced(SELECT_##PATH, (struct rows){__VA_ARGS__}, &h200), SELECT_UNFIT)

/* A path that is slow for rows can be forced; one whose kernel cannot scan them is refused. */
static void forced_paths(void)
{
    FORCED(THREAD_PER_ROW, .length = 16);
    FORCED(THREAD_PER_ROW, .length = 64);
    UNFIT(THREAD_PER_ROW, .length = 65);
    UNFIT(THREAD_PER_ROW, .length = 16, .input_at = 4);
    FORCED(WARP_PER_ROWS, .length = 512, .accumulator = IN_F2);
    UNFIT(WARP_PER_ROWS, .length = 513);
    UNFIT(WARP_PER_ROWS, .length = 16, .gap = 4);
    FORCED(WARP_PER_ROWS_SERIAL, .length = 1, .accumulator = IN_F2);
    FORCED(WARP_PER_ROWS_SERIAL, .length = 1024, .accumulator = IN_F64, .kind = SCAND_KIND_EXCLUSIVE);
    UNFIT(WARP_PER_ROWS_SERIAL, .length = 1537, .accumulator = IN_F2);
    UNFIT(WARP_PER_ROWS_SERIAL, .length = 300);
    UNFIT(WARP_PER_ROWS_SERIAL, .length = 300, .accumulator = IN_F64);
    UNFIT(WARP_PER_ROWS_SERIAL, .length = 300, .accumulator = IN_F2, .wide = true);
    UNFIT(WARP_PER_ROWS_SERIAL, .length = 300, .accumulator = IN_F2, .input = IBM);
    FORCED(WARP_PER_ROW, .length = 1);
    UNFIT(WARP_PER_ROW, .length = 1537);
    FORCED(BLOCK_PER_ROW, .length = 1);
    UNFIT(BLOCK_PER_ROW, .length = 16385);
    UNFIT(BLOCK_PER_ROW, .length = 1, .op = MAX);
    UNFIT(BLOCK_PER_ROW, .length = 2, .columns = true);
    UNFIT(BLOCK_PER_ROW, .length = 1, .what = REDUCE);
    UNFIT(BLOCK_PER_ROW, .length = 1, .ragged = true);
    FORCED(BLOCK_PER_ROW_SPINE, .length = 16385);
    UNFIT(BLOCK_PER_ROW_SPINE, .length = 16384);
    FORCED(CLUSTER_PER_ROW, .length = 81920, .accumulator = IN_F64);
    UNFIT(CLUSTER_PER_ROW, .length = 81921, .accumulator = IN_F64);
    UNFIT(CLUSTER_PER_ROW, .length = 262145);
    FORCED(GRID_PER_ROW_THREE_LAUNCHES, .length = 16385);
    UNFIT(GRID_PER_ROW_THREE_LAUNCHES, .length = 16385, .one_pass = true);
    FORCED(GRID_PER_ROW_ONE_LAUNCH, .length = 132 * 16384);
    UNFIT(GRID_PER_ROW_ONE_LAUNCH, .length = 132 * 16384 + 1);
    FORCED(COLUMNS_TMA, .length = 512, .columns = true);
    UNFIT(COLUMNS_TMA, .length = 512, .columns = true, .output_at = 4);
    FORCED(COLUMNS_DIRECT, .length = 512, .columns = true);
    UNFIT(COLUMNS_DIRECT, .length = 512);
    FORCED(COLUMNS_DIRECT, .length = 512, .columns = true, .what = SCAN_AFFINE);
    FORCED(ANY_GRID, .length = 16385, .op = MAX);
    UNFIT(ANY_GRID, .length = 16384, .op = MAX);
    UNFIT(ANY_GRID, .length = 16385, .what = SCAN_AFFINE);
    UNFIT(ANY_GRID, .length = 16385, .op = MAX, .columns = true);
    UNFIT(ANY_GRID, .length = 16385, .op = MAX, .demean = true);
    UNFIT(ANY_GRID, .length = 16385, .input = I32, .output = I64);
    FORCED(ANY_LAYOUT, .length = 100000, .columns = true);
    UNFIT(ANY_LAYOUT_PREFETCH, .length = 100, .columns = true);
    UNFIT(ANY_LAYOUT, .length = 100, .what = SCAN_AFFINE);
    FORCED(ANY_LAYOUT, .length = 100, .ragged = true);
    UNFIT(RAGGED, .length = 100);
    UNFIT(AFFINE, .length = 100);
    FORCED(REDUCE_WARP_PER_ROWS, .length = 512, .what = REDUCE);
    UNFIT(REDUCE_WARP_PER_ROWS, .length = 513, .what = REDUCE);
    UNFIT(REDUCE_WARP_PER_ROWS, .length = 0, .what = REDUCE);
    UNFIT(REDUCE, .length = 100);
}

/* Every path that the table chooses can also be forced, by whatever device. */
static void choices_can_be_forced(void)
{
    static const struct select_device *const all[] = {&t4, &a100, &orin, &rtx3090, &rtx4090, &h200, &b200, &rtx5090};
    for (size_t i = 0; i < COUNT(all); i++)
        for (uint64_t length = 1; length < 600000; length += length / 7 + 1)
            for (unsigned bits = 0; bits < 64; bits++) {
                const struct rows r = {.length = length,
                                       .accumulator = (enum accumulator)(bits % 3),
                                       .columns = bits & 4,
                                       .many = bits & 8,
                                       .one_pass = bits & 16,
                                       .input_at = bits & 32 ? 4 : 0};
                CHECK_EQ(forced(path_from(r, all[i], 0), r, all[i]), 42);
            }
}

#define AS(CAPABILITY, PATH, ...)                                             \
    do {                                                                      \
        const struct select_device as = select_device_as(&h200, CAPABILITY);  \
        check_path(__LINE__, (struct rows){__VA_ARGS__}, &as, SELECT_##PATH); \
    } while (0)

/* A device chooses as one of another capability would, as far as it has what that takes. */
static void other_capabilities(void)
{
    AS(80, BLOCK_PER_ROW_SPINE, .length = 100000);
    AS(86, BLOCK_PER_ROW_SPINE, .length = 100000);
    AS(120, BLOCK_PER_ROW_SPINE, .length = 100000);
    AS(100, GRID_PER_ROW_ONE_LAUNCH, .length = 100000);
    AS(90, CLUSTER_PER_ROW, .length = 100000);
    AS(75, ANY_LAYOUT, .length = 100000);
    AS(80, COLUMNS_DIRECT, .length = 10000, .columns = true, .many = true);
    AS(86, ANY_LAYOUT, .length = 16384, .input = F64, .output = F64);
    const struct select_device as = select_device_as(&rtx4090, 90);
    CHECK_EQ(as.shared_max, rtx4090.shared_max);
    CHECK(!as.clusters);
}

static void check_cluster(int tiles, int warps_max, int size, int warps)
{
    const struct instance_cluster cluster = instance_cluster_of(tiles, 2, warps_max, 8);
    CHECK_EQ(cluster.size, size);
    CHECK_EQ(cluster.warps, warps);
    CHECK(cluster.size * cluster.warps * 2 >= tiles);
}

/* Clusters of two thread blocks until a row is too long for them; of five or more that have an SM each, eight. */
static void clusters(void)
{
    check_cluster(33, 32, 2, 9);
    check_cluster(128, 32, 2, 32);
    check_cluster(129, 32, 3, 22);
    check_cluster(320, 32, 5, 32);
    check_cluster(321, 32, 8, 21);
    check_cluster(512, 32, 8, 32);
    check_cluster(120, 10, 6, 10);
    check_cluster(160, 10, 8, 10);
}

static struct scan_plan plan_by(struct rows r)
{
    const struct scan_rows rows = rows_of(r);
    return scan_plan_of(&rows, 0, 100);
}

static void bulk_copies(void)
{
    struct scan_plan long_enough = plan_by((struct rows){.length = 16 * 512 + 1});
    struct scan_plan too_short = plan_by((struct rows){.length = 16 * 512});
    struct scan_plan ibm = plan_by((struct rows){.length = 16 * 512 + 1, .input = IBM, .output = IBM});
    CHECK(!instance_copies_in_bulk(&long_enough));
    long_enough.ahead = too_short.ahead = ibm.ahead = true;
    CHECK(instance_copies_in_bulk(&long_enough));
    CHECK(!instance_copies_in_bulk(&too_short));
    CHECK(!instance_copies_in_bulk(&ibm));
}

static bool has_aligned_instance(struct rows r)
{
    const struct scan_plan plan = plan_by(r);
    const struct scan_rule rule = rule_of(&r);
    return instance_is_aligned(&rule, &plan);
}

static void aligned_instances(void)
{
    CHECK(has_aligned_instance((struct rows){.length = 100000}));
    CHECK(!has_aligned_instance((struct rows){.length = 100001}));
    CHECK(!has_aligned_instance((struct rows){.length = 100000, .gap = 4}));
    CHECK(!has_aligned_instance((struct rows){.length = 100000, .output = F64}));
    CHECK(!has_aligned_instance((struct rows){.length = 100000, .input = IBM}));
    CHECK(!has_aligned_instance((struct rows){.length = 100000, .kind = SCAND_KIND_EXCLUSIVE}));
}

/* The choice depends neither on which rows a call scans, nor on where slots begin in memory. */
static void the_same_for_all_rows(void)
{
    for (uint64_t length = 1; length < 40000; length += length / 20 + 1) {
        const struct rows here = {.length = length}, there = {.length = length, .input_at = 64, .output_at = 96};
        CHECK_EQ(path_from(here, &h200, 900), path_from(here, &h200, 0));
        CHECK_EQ(path_from(there, &h200, 0), path_from(here, &h200, 0));
    }
}

static void every_path(void)
{
    for (int path = 0; path < SELECT_PATH_COUNT; path++)
        if (!reached[path]) {
            fprintf(stderr, "no test takes the path %s\n", select_word((enum select_path)path));
            check_failures++;
        }
}

/* Runs all cases first, so that it can also be run alone. */
static void every_path_is_reached(void)
{
    reductions();
    ragged_rows();
    short_rows();
    short_rows_in_f2();
    short_rows_of_any_rule();
    rows_of_a_block();
    rows_of_blocks();
    columns();
    many_columns();
    all_else();
    every_path();
}

static const struct test tests[] = {TEST(reductions),
                                    TEST(ragged_rows),
                                    TEST(short_rows),
                                    TEST(short_rows_in_f2),
                                    TEST(short_rows_of_any_rule),
                                    TEST(rows_of_a_block),
                                    TEST(rows_of_blocks),
                                    TEST(columns),
                                    TEST(all_else),
                                    TEST(small_jobs),
                                    TEST(rows_by_ranges),
                                    TEST(shared_memory),
                                    TEST(code_of_older_devices),
                                    TEST(no_room),
                                    TEST(clusters),
                                    TEST(bulk_copies),
                                    TEST(aligned_instances),
                                    TEST(forced_paths),
                                    TEST(choices_can_be_forced),
                                    TEST(other_capabilities),
                                    TEST(the_same_for_all_rows),
                                    TEST(every_path_is_reached),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The bytes that runs of rows touch, against an enumeration of their samples. */
#include "daemon/core/jobs/footprint.h"

#include "tests/check.h"

#define TRIALS 20000
#define BASE   ((const void *)0x1000)
#define ORIGIN 100000 /* of every array in its buffer: negative strides do not lead out of it */

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    return random_next(&state) % limit;
}

/* Of an array whose elements lie at these offsets from its origin. */
static void widen(struct extent *extent, int64_t offset, uint64_t item_bytes)
{
    uint64_t at = (uint64_t)(ORIGIN + offset);
    bool none = extent->end == 0;
    if (none || at < extent->begin)
        extent->begin = at;
    if (none || at + item_bytes > extent->end)
        extent->end = at + item_bytes;
}

/* What samples of rows first <= r < first + count touch in all, of ragged rows those from offset to offset. */
static struct extent enumerate(const struct scan_rows *rows, const int64_t *outer_strides, int64_t stride,
                               uint64_t item_bytes, bool results, uint64_t first, uint64_t count)
{
    struct extent extent = {0, 0};
    for (uint64_t r = first; r < first + count; r++) {
        uint64_t begin = rows->offsets && !results ? rows->offsets[r] : 0;
        uint64_t end = results ? 1 : rows->offsets ? rows->offsets[r + 1] : rows->length;
        for (uint64_t i = begin; i < end; i++)
            widen(&extent, scan_row_offset(rows, outer_strides, r) + stride * (int64_t)i, item_bytes);
    }
    return extent;
}

static int64_t random_stride(void)
{
    return (int64_t)below(200) - 100;
}

static void make_rows(struct scan_rows *rows, bool reduces)
{
    void *origin = (char *)BASE + ORIGIN;
    *rows = (struct scan_rows){.length = below(6),
                               .row_count = 1,
                               .outer_rank = (uint32_t)below(SCAN_OUTER_MAX + 1),
                               .input_stride = random_stride(),
                               .output_stride = random_stride(),
                               .coefficient_stride = random_stride(),
                               .input = origin,
                               .output = origin,
                               .coefficients = origin};
    rows->rule = (struct scan_rule){.operation = reduces ? SCAND_OPERATION_REDUCE : SCAND_OPERATION_SCAN,
                                    .input = SCAND_DTYPE_F32,
                                    .output = SCAND_DTYPE_F64,
                                    .coefficients = SCAND_DTYPE_F16};
    for (uint32_t k = 0; k < rows->outer_rank; k++) {
        rows->outer_shape[k] = 1 + below(4);
        rows->row_count *= rows->outer_shape[k];
        rows->input_outer_strides[k] = random_stride();
        rows->output_outer_strides[k] = random_stride();
        rows->coefficient_outer_strides[k] = random_stride();
    }
}

/* As job_make_ragged does: of a reduction the outer dimension is that of the results. */
static void make_ragged(struct scan_rows *rows, uint64_t *offsets)
{
    const bool reduces = rows->rule.operation == SCAND_OPERATION_REDUCE;
    const uint64_t count = 1 + below(8);
    offsets[0] = below(5);
    for (uint64_t r = 0; r < count; r++)
        offsets[r + 1] = offsets[r] + below(4);
    rows->offsets = offsets;
    rows->row_count = count;
    rows->outer_rank = reduces;
    rows->outer_shape[0] = count;
    rows->output_outer_strides[0] = random_stride();
    rows->input_outer_strides[0] = rows->coefficient_outer_strides[0] = 0;
}

/* Exact where all rows are meant, or at most one dimension changes; else no less. */
static void check(struct extent reach, struct extent true_reach, bool exact)
{
    if (true_reach.end == 0) {
        CHECK_EQ(reach.end, 0);
        return;
    }
    CHECK(reach.begin <= true_reach.begin && reach.end >= true_reach.end);
    if (exact)
        CHECK(reach.begin == true_reach.begin && reach.end == true_reach.end);
}

static void against_an_enumeration(void)
{
    uint64_t offsets[9];
    for (int trial = 0; trial < TRIALS; trial++) {
        struct scan_rows rows;
        const bool reduces = below(2), ragged = below(3) == 0;
        make_rows(&rows, reduces);
        if (ragged)
            make_ragged(&rows, offsets);
        uint64_t first = below(rows.row_count), count = 1 + below(rows.row_count - first);
        const bool exact = rows.outer_rank <= 1 || count == rows.row_count || count == 1;
        check(rows_footprint(&rows, ARRAY_INPUT, BASE, first, count),
              enumerate(&rows, rows.input_outer_strides, rows.input_stride, 4, false, first, count), exact);
        check(rows_footprint(&rows, ARRAY_OUTPUT, BASE, first, count),
              enumerate(&rows, rows.output_outer_strides, rows.output_stride, 8, reduces, first, count), exact);
        check(rows_footprint(&rows, ARRAY_COEFFICIENTS, BASE, first, count),
              enumerate(&rows, rows.coefficient_outer_strides, rows.coefficient_stride, 2, false, first, count), exact);
    }
}

/* Chunks of whole planes reach no further than those. */
static void planes_are_apart(void)
{
    struct scan_rows rows = {.length = 10,
                             .row_count = 24,
                             .outer_rank = 2,
                             .outer_shape = {4, 6},
                             .input_outer_strides = {1000, 40},
                             .input_stride = 4,
                             .input = BASE};
    struct extent reach = rows_footprint(&rows, ARRAY_INPUT, BASE, 6, 12);
    CHECK_EQ(reach.begin, 1000);
    CHECK_EQ(reach.end, 2240);
    reach = rows_footprint(&rows, ARRAY_INPUT, BASE, 8, 3);
    CHECK_EQ(reach.begin, 1080);
    CHECK_EQ(reach.end, 1200);
}

static const struct test tests[] = {
    TEST(against_an_enumeration),
    TEST(planes_are_apart),
    TEST_END,
};

int main(int argc, char **argv)
{
    state = random_seed();
    return test_main(argc, argv, tests);
}

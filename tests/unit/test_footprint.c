/* The bytes that runs of rows touch, against an enumeration of their samples. */
#include "daemon/core/jobs/footprint.h"

#include "tests/check.h"

#define TRIALS 20000
#define BASE   ((void *)0x1000)
#define ORIGIN 100000 /* of every array in its buffer: negative strides do not lead out of it */

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    return random_next(&state) % limit;
}

/* Widens the extent of an array by an element at this offset from its origin. */
static void widen(struct extent *extent, int64_t offset, uint64_t item_bytes)
{
    uint64_t at = (uint64_t)(ORIGIN + offset);
    bool none = extent->end == 0;
    if (none || at < extent->begin)
        extent->begin = at;
    if (none || at + item_bytes > extent->end)
        extent->end = at + item_bytes;
}

/* Finds the bytes that samples of rows first <= r < first + count touch in all; of ragged rows, those from offset to
 * offset. */
static struct extent enumerate(const struct scan_rows *rows, const struct operand *operand, uint64_t first,
                               uint64_t count)
{
    struct extent extent = {0, 0};
    const bool on_line = rows->offsets && operand->follows == FOLLOWS_SAMPLES;
    for (uint64_t r = first; r < first + count; r++) {
        uint64_t begin = on_line ? rows->offsets[r] : 0, end = on_line ? rows->offsets[r + 1] : operand->length;
        for (uint64_t i = begin; i < end; i++)
            widen(&extent, scan_row_offset(rows, operand->outer_strides, r) + operand->stride * (int64_t)i,
                  operand->item_bytes);
    }
    return extent;
}

static int64_t random_stride(void)
{
    return (int64_t)below(200) - 100;
}

static void make_rows(struct scan_rows *rows)
{
    *rows = (struct scan_rows){.length = below(6), .row_count = 1, .outer_rank = (uint32_t)below(SCAN_OUTER_MAX + 1)};
    for (uint32_t k = 0; k < rows->outer_rank; k++) {
        rows->outer_shape[k] = 1 + below(4);
        rows->row_count *= rows->outer_shape[k];
    }
}

/* Makes ragged rows as job_make_ragged does: where something follows rows, the outer dimension is that of their
 * elements. */
static void make_ragged(struct scan_rows *rows, uint64_t *offsets, bool by_rows)
{
    const uint64_t count = 1 + below(8);
    offsets[0] = below(5);
    for (uint64_t r = 0; r < count; r++)
        offsets[r + 1] = offsets[r] + below(4);
    rows->offsets = offsets;
    rows->row_count = count;
    rows->outer_rank = by_rows;
    rows->outer_shape[0] = count;
}

static struct operand make_operand(const struct scan_rows *rows, enum follows follows)
{
    static struct buffer buffer = {.span = {.base = BASE}};
    struct operand operand = {.buffer = &buffer,
                              .follows = follows,
                              .item_bytes = UINT64_C(1) << below(4),
                              .length = follows == FOLLOWS_ROWS      ? 1
                                        : follows == FOLLOWS_SAMPLES ? rows->length
                                                                     : below(4),
                              .origin = (unsigned char *)BASE + ORIGIN,
                              .stride = random_stride()};
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        operand.outer_strides[k] = rows->offsets && follows == FOLLOWS_SAMPLES ? 0 : random_stride();
    return operand;
}

/* Checks that a footprint is exact where all rows are meant, or at most one dimension changes; otherwise, that it is no
 * smaller. */
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
        const bool by_rows = below(2), ragged = below(3) == 0;
        make_rows(&rows);
        if (ragged)
            make_ragged(&rows, offsets, by_rows);
        const enum follows others = ragged || below(2) ? FOLLOWS_SAMPLES : FOLLOWS_VECTORS;
        const struct operand operand = make_operand(&rows, by_rows ? FOLLOWS_ROWS : others);
        uint64_t first = below(rows.row_count), count = 1 + below(rows.row_count - first);
        const bool exact = rows.outer_rank <= 1 || count == rows.row_count || count == 1;
        check(operand_footprint(&operand, &rows, first, count), enumerate(&rows, &operand, first, count), exact);
    }
}

/* Operands that belong to the whole job are needed in full by any rows. */
static void some_follow_the_job(void)
{
    const struct scan_rows rows = {.length = 3, .row_count = 5};
    const struct operand operand = {.follows = FOLLOWS_JOB, .extent = {40, 60}};
    struct extent reach = operand_footprint(&operand, &rows, 2, 1);
    CHECK(reach.begin == 40 && reach.end == 60);
}

/* Chunks of whole planes reach no further than those. */
static void planes_are_apart(void)
{
    const struct scan_rows rows = {.length = 10, .row_count = 24, .outer_rank = 2, .outer_shape = {4, 6}};
    struct buffer buffer = {.span = {.base = BASE}};
    const struct operand operand = {
        .buffer = &buffer, .item_bytes = 4, .length = 10, .origin = BASE, .stride = 4, .outer_strides = {1000, 40}};
    struct extent reach = operand_footprint(&operand, &rows, 6, 12);
    CHECK_EQ(reach.begin, 1000);
    CHECK_EQ(reach.end, 2240);
    reach = operand_footprint(&operand, &rows, 8, 3);
    CHECK_EQ(reach.begin, 1080);
    CHECK_EQ(reach.end, 1200);
}

static const struct test tests[] = {
    TEST(against_an_enumeration),
    TEST(some_follow_the_job),
    TEST(planes_are_apart),
    TEST_END,
};

int main(int argc, char **argv)
{
    state = random_seed();
    return test_main(argc, argv, tests);
}

/*
 * The ranges that very long rows are cut into: every block once in each of its passes, nothing used before it is made,
 * and no range longer than it may be.
 */
#include "kernels/cuda/select/ranges.h"
#include "kernels/order1/order.h"
#include "protocol/limits.h"
#include "tests/check.h"

#define PROCESSORS 132

static struct scan_rule rule_of(uint32_t passes, bool demean)
{
    return (struct scan_rule){
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = passes, .demean = demean};
}

static const struct scan_rule reduction = {
    .operation = SCAND_OPERATION_REDUCE, .reduction = SCAND_REDUCTION_SUM, .pass_count = 1};

/* Ranges of one kind from number *n on make up the row, in order. */
static void check_blocks(const struct scan_rule *rule, uint64_t length, uint64_t blocks, uint64_t *n,
                         enum range_work work, int pass)
{
    const uint64_t all = scan_blocks(length);
    for (uint64_t next = 0; next < all; (*n)++) {
        const struct scan_range range = ranges_at(rule, length, blocks, *n);
        CHECK_EQ(range.work, work);
        CHECK_EQ(range.pass, pass);
        CHECK_EQ(range.first, next);
        CHECK(range.count > 0 && range.count <= blocks);
        if (range.count == 0)
            return;
        next += range.count;
        CHECK(next <= all);
    }
}

static void check_all(const struct scan_rule *rule, uint64_t length, uint64_t blocks, uint64_t *n, enum range_work work,
                      int pass)
{
    const struct scan_range range = ranges_at(rule, length, blocks, (*n)++);
    CHECK_EQ(range.work, work);
    CHECK_EQ(range.pass, pass);
    CHECK_EQ(range.first, 0);
    CHECK_EQ(range.count, scan_blocks(length));
}

static void check_ranges(struct scan_rule rule, uint64_t length, uint64_t blocks)
{
    uint64_t n = 0;
    if (rule.operation == SCAND_OPERATION_REDUCE) {
        check_blocks(&rule, length, blocks, &n, RANGE_TOTALS, 0);
        check_all(&rule, length, blocks, &n, RANGE_RESULT, 0);
        CHECK_EQ(ranges_count(&rule, length, blocks), n);
        return;
    }
    if (rule.demean) {
        check_blocks(&rule, length, blocks, &n, RANGE_MEAN_TOTALS, 0);
        check_all(&rule, length, blocks, &n, RANGE_MEAN, 0);
    }
    for (int pass = 0; pass < (int)rule.pass_count; pass++) {
        check_blocks(&rule, length, blocks, &n, RANGE_TOTALS, pass);
        check_all(&rule, length, blocks, &n, RANGE_CARRIES, pass);
    }
    check_blocks(&rule, length, blocks, &n, RANGE_VALUES, 0);
    CHECK_EQ(ranges_count(&rule, length, blocks), n);
}

static void ranges_make_up_a_row(void)
{
    uint64_t state = 11;
    check_ranges(rule_of(1, false), ORDER_BLOCK + 1, 1);
    check_ranges(rule_of(2, true), ORDER_BLOCK + 1, 2);
    check_ranges(rule_of(2, false), LIMIT_ROW_SAMPLES, 3000);
    for (int i = 0; i < 3000; i++) {
        const uint64_t length = ORDER_BLOCK + 1 + random_next(&state) % (200 * ORDER_BLOCK),
                       blocks = 1 + random_next(&state) % (i % 2 ? 20 : 300);
        const uint32_t kind = random_next(&state) % 5;
        check_ranges(kind == 4 ? reduction : rule_of(1 + kind % 2, kind / 2), length, blocks);
    }
}

/* A plan for a range has its blocks as items. */
static void plans_of_ranges(void)
{
    const struct scan_rows rows = {.rule = rule_of(2, false),
                                   .length = 10 * ORDER_BLOCK + 5,
                                   .row_count = 1,
                                   .input_stride = 4,
                                   .output_stride = 4};
    const struct scan_range range = ranges_at(&rows.rule, rows.length, 4, 2);
    struct scan_plan plan = scan_plan_of(&rows, 0, 1);
    CHECK(!plan.ranged);
    CHECK_EQ(plan.first_item, 0);
    scan_plan_narrow(&plan, &range);
    CHECK(plan.ranged);
    CHECK_EQ(plan.first_item, 8);
    CHECK_EQ(plan.items, 3);
    CHECK_EQ(plan.blocks, 11);
}

static struct scan_rows row_of(struct scan_rule rule, uint64_t length, int64_t stride)
{
    return (struct scan_rows){
        .rule = rule, .length = length, .row_count = 1, .input_stride = stride, .output_stride = stride};
}

/* Returns the time of one launch of a row that is one range. */
static uint64_t range_us(struct scan_rows rows, bool mapped, int processors)
{
    rows.length = ranges_blocks(&rows, mapped, processors) * ORDER_BLOCK;
    const uint64_t launches = (ranges_count(&rows.rule, rows.length, UINT64_MAX / 2) + 1) / 2;
    return ranges_row_us(&rows, mapped, processors) / launches;
}

static void ranges_are_short(void)
{
    static const enum scand_dtype dtypes[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_F16};
    static const int64_t strides[] = {0, 2, 4, 8, 3, 64, 4096, -4, INT64_C(1) << 40};
    uint64_t state = 5;
    for (int i = 0; i < 2000; i++) {
        struct scan_rows rows =
            row_of(random_next(&state) % 4 ? rule_of(1 + i % 2, i / 2 % 2) : reduction, LIMIT_ROW_SAMPLES,
                   strides[random_next(&state) % (sizeof strides / sizeof strides[0])]);
        rows.rule.input = rows.rule.output = dtypes[random_next(&state) % 4];
        rows.rule.op = (enum scand_operator)(random_next(&state) % 4);
        const int processors = 1 + (int)(random_next(&state) % 200);
        const bool mapped = random_next(&state) % 2;
        CHECK(ranges_blocks(&rows, mapped, processors) > 0);
        CHECK(range_us(rows, mapped, processors) <= LIMIT_LAUNCH_MS * 1000);
        CHECK(ranges_row_us(&rows, mapped, processors) > LIMIT_LAUNCH_MS * 1000);
    }
}

/* Rows that a single launch is fast for have one. */
static void rows_that_need_no_ranges(void)
{
    const struct scan_rows billion = row_of(rule_of(2, false), 1000000000, 4),
                           million = row_of(rule_of(2, false), 1000000, 4);
    CHECK(ranges_row_us(&billion, false, PROCESSORS) <= LIMIT_LAUNCH_MS * 1000);
    CHECK(ranges_row_us(&million, true, PROCESSORS) <= LIMIT_LAUNCH_MS * 1000);
    CHECK(ranges_row_us(&billion, true, PROCESSORS) > LIMIT_LAUNCH_MS * 1000);
    CHECK(ranges_row_us(&billion, false, 40) > LIMIT_LAUNCH_MS * 1000);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(ranges_make_up_a_row), TEST(plans_of_ranges), TEST(ranges_are_short),
                                        TEST(rows_that_need_no_ranges), TEST_END};
    return test_main(argc, argv, tests);
}

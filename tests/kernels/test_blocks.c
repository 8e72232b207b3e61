/*
 * Rows of several order blocks under rules of all sorts, against the reference, bit by bit: as any others, and by
 * ranges of a few blocks.
 */
#include "tests/kernels/rules.h"
#include "tests/kernels/suite.h"

/* The i-th case of such rows: some are not contiguous, some in place. */
static struct scan_case blocks_case(unsigned i, uint64_t rows, uint64_t length, enum scand_dtype input,
                                    enum scand_dtype output)
{
    struct scan_case c =
        i % 4 == 3 ? affine_case(i, rows, length, input, output) : case_of(rows, length, typed_rule(i, input, output));
    const struct layout apart = {.name = "apart",
                                 .offset = i / 2 % 3,
                                 .element_gap = i % 6 == 5 ? 3 : 0,
                                 .axis_gap = 12,
                                 .negative = i % 9 == 8};
    c.fill = (enum fill)(i % FILL_COUNT);
    c.in_place = i % 3 == 2 && codec_bytes(input) == codec_bytes(output);
    if (i % 3 == 1)
        c.input = apart;
    if (i % 5 == 1)
        c.output = apart;
    return c;
}

/* Every dtype into every other that it may be written as, by rules of which a processor, which takes long, gets every
 * second one, as the seed says. */
static void blocks(const struct group *group)
{
    const bool is_cpu = strncmp(group->list[0]->name, "cpu", 3) == 0;
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
            for (unsigned i = is_cpu ? seed % 2 : 0; i < 12 && writes(input, output); i += is_cpu ? 2 : 1) {
                const unsigned which = i + 5 * input + output;
                struct scan_case c = blocks_case(which, 2, 16384 * (2 + which % 7) + 77 * i, input, output);
                c.first = i / 2 % 2;
                check_some(group, &c);
            }
}

/* Long ragged rows, next to shorter ones. */
static void ragged(const struct group *group)
{
    static const uint64_t offsets[] = {3, 3, 8, 16384 * 3 + 21, 16384 * 4 + 21, 16384 * 37 + 90, 16384 * 37 + 91};
    static const enum scand_dtype types[] = {D32, D64, SCAND_DTYPE_U32, SCAND_DTYPE_BF16};
    for (unsigned i = 0; i < 24; i++) {
        struct scan_case c = blocks_case(i, 1, 1, types[i / 3 % COUNT(types)], types[i / 3 % COUNT(types)]);
        c.rank = 1;
        c.axis = 0;
        c.offsets = offsets;
        c.row_count = COUNT(offsets) - 1;
        c.shape[0] = offsets[c.row_count] + 9;
        c.first = i % 4;
        check(group, &c);
    }
}

/* Rows of so many blocks that carries take more than one thread block, and sums above them have four levels. */
static void many_blocks(const struct group *group)
{
    static const enum scand_dtype types[] = {SCAND_DTYPE_F16, D64, SCAND_DTYPE_I64, SCAND_DTYPE_IBM32, D32};
    for (unsigned i = 0; i < 10; i++) {
        const enum scand_dtype type = types[i % COUNT(types)];
        struct scan_case c = blocks_case(3 * i + 2, 1, (UINT64_C(1) << 24) * (1 + i % 2) + 531 * i + 1, type, type);
        c.in_place = true;
        check(group, &c);
    }
}

SUITE(cpu_pool_3, blocks)
SUITE(cpu_pool_3, ragged)
SUITE(cuda, blocks)
SUITE(cuda, many_blocks)

static void cuda_blocks_by_ranges(void)
{
    suite_run("ranges", blocks);
}

static void cuda_ragged_by_ranges(void)
{
    suite_run("ranges", ragged);
}

static void cuda_many_blocks_by_ranges(void)
{
    suite_run("ranges", many_blocks);
}

static const struct test tests[] = {TEST(cpu_pool_3_blocks),
                                    TEST(cpu_pool_3_ragged),
                                    TEST(cuda_blocks),
                                    TEST(cuda_many_blocks),
                                    TEST(cuda_blocks_by_ranges),
                                    TEST(cuda_ragged_by_ranges),
                                    TEST(cuda_many_blocks_by_ranges),
                                    TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}

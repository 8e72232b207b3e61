/*
 * Scans by every implementation against the reference, bit by bit.
 */
#include "kernels/order1/dtypes.h"
#include "tests/kernels/offsets.h"
#include "tests/kernels/rules.h"
#include "tests/kernels/suite.h"

/* Every length around the sizes of the tree's groups, the short and the long. */
static void lengths(const struct group *group)
{
    static const uint64_t list[] = {0,    1,     2,     15,    16,    17,    31,    32,    33,    48,   255,
                                    256,  257,   496,   511,   512,   513,   528,   1023,  1024,  1025, 2000,
                                    9999, 10000, 10007, 16383, 16384, 16385, 16400, 16897, 32768, 57000};
    const struct scan_rule rules[] = {
        rule_of("fb", INCLUSIVE, F32, D32, D32), rule_of("fb", INCLUSIVE, F64, D32, D32),
        rule_of("fb", INCLUSIVE, F2, D32, D32),  rule_of("bf", EXCLUSIVE, F64, D64, D64),
        rule_of("bf", EXCLUSIVE, F2, D64, D64),
    };
    for (size_t i = 0; i < COUNT(list); i++)
        for (size_t r = 0; r < COUNT(rules); r++) {
            struct scan_case c = case_of(list[i] < 10000 ? 3 : 2, list[i], rules[r]);
            c.in_place = rules[r].output == D32;
            check(group, &c);
        }
}

/* Many short rows, one right after the other, beginning at every word of 16 bytes, the same one or another at the
 * output: several rows share a warp. */
static void short_rows(const struct group *group)
{
    const struct scan_rule rules[] = {
        rule_of("fb", INCLUSIVE, F32, D32, D32), rule_of("bf", EXCLUSIVE, F32, D32, D32),
        rule_of("fb", INCLUSIVE, F64, D32, D32), rule_of("bb", EXCLUSIVE, F64, D64, D32),
        rule_of("bf", INCLUSIVE, F2, D32, D32),  rule_of("fb", EXCLUSIVE, F2, D32, D32),
        rule_of("fb", HALF, F2, D32, D32),       rule_of("bf", TRAPEZOID, F2, D64, D32),
        rule_of("fb", EXCLUSIVE, F2, D64, D32),  rule_of("bf", INCLUSIVE, F2, D32, D64),
        rule_of("fb", EXCLUSIVE, F2, D32, D32),  rule_of("bf", INCLUSIVE, F2, D64, D32),
    };
    for (uint64_t length = 1; length <= 512; length += length < 70 ? 1 : 17)
        for (size_t i = 0; i < 2 * COUNT(rules); i++) {
            size_t r = i / 2;
            struct scan_case c = case_of(1 + 3000 / length, length, rules[r]);
            c.rule.op = r < 8 ? SCAND_OPERATOR_SUM : r < 10 ? SCAND_OPERATOR_PROD : SCAND_OPERATOR_AFFINE;
            c.rule.coefficient = -0.998;
            c.input.offset = (unsigned)(length + r) % 4 * 4;
            c.output.offset = i % 2 ? c.input.offset : (unsigned)(length / 4) % 4 * 4;
            c.in_place = i == 0;
            c.fill = r >= 6 ? (enum fill)((length + i) % FILL_COUNT) : r % 2 ? FILL_ENDS : FILL_ZEROS;
            c.first = length % 3;
            c.count = c.shape[0] - c.first;
            check_some(group, &c);
        }
}

/* Many rows of more than half a tile, likewise, with every number of samples in the last leaf. Of f2 a tile of lanes
 * may need other sums than those before it that have parts of the same rows. */
static void rows_of_tiles(const struct group *group)
{
    static const uint64_t list[] = {256, 257, 273,  288,  300,  303,  305,  320,  337,  352,  353,  384,  385,  401,
                                    449, 481, 500,  512,  513,  527,  528,  544,  561,  600,  641,  673,  700,  705,
                                    768, 769, 1007, 1024, 1025, 1040, 1073, 1200, 1300, 1433, 1500, 1521, 1535, 1536};
    static const enum fill fills[] = {FILL_SPREAD, FILL_SPECIALS, FILL_ENDS, FILL_ZEROS, FILL_STEPS};
    const struct scan_rule rules[] = {
        rule_of("fb", INCLUSIVE, F2, D32, D32),  rule_of("bf", INCLUSIVE, F2, D32, D32),
        rule_of("bf", EXCLUSIVE, F2, D32, D32),  rule_of("f", INCLUSIVE, F2, D32, D32),
        rule_of("bb", EXCLUSIVE, F64, D32, D32), rule_of("fb", EXCLUSIVE, F64, D32, D32),
        rule_of("b", EXCLUSIVE, F64, D32, D32),  rule_of("fb", INCLUSIVE, F64, D32, D32),
    };
    for (size_t i = 0; i < COUNT(list) * COUNT(rules) * COUNT(fills); i++) {
        const uint64_t length = list[i / COUNT(fills) / COUNT(rules)];
        struct scan_case c = case_of(23, length, rules[i / COUNT(fills) % COUNT(rules)]);
        c.fill = fills[i % COUNT(fills)];
        c.input.offset = (unsigned)(length + i) % 8 * 4;
        c.output.offset = (c.input.offset + (unsigned)(i % 3) * 16) % 32;
        c.in_place = i % 7 == 0;
        c.first = length % 3;
        c.count = c.shape[0] - c.first;
        check_some(group, &c);
    }
}

/* Rows of up to four tiles between headers, from every word of 16 bytes on, the same one or another at the output. */
static void rows_between_headers(const struct group *group)
{
    static const uint64_t list[] = {3,   100, 257,  400,  497,  500,  511,  512,  513,  529, 767,
                                    800, 999, 1000, 1023, 1024, 1025, 1037, 1500, 1535, 1536};
    const struct scan_rule rules[] = {
        rule_of("fb", INCLUSIVE, F32, D32, D32), rule_of("bf", EXCLUSIVE, F32, D32, D32),
        rule_of("fb", INCLUSIVE, F64, D32, D32), rule_of("bf", EXCLUSIVE, F64, D64, D32),
        rule_of("bf", INCLUSIVE, F2, D32, D32),  rule_of("fb", EXCLUSIVE, F2, D32, D32),
    };
    for (size_t i = 0; i < COUNT(list); i++)
        for (size_t j = 0; j < 4 * COUNT(rules); j++) {
            struct scan_case c = case_of(9, list[i], rules[j / 4]);
            c.input.axis_gap = 240;
            c.output.axis_gap = j % 3 ? 240 : 4;
            c.input.offset = (unsigned)j % 4 * 4;
            c.output.offset = (unsigned)(i + j) % 4 * 4;
            c.in_place = j % 8 == 5;
            c.fill = i % 3 == 0 ? FILL_ENDS : i % 3 == 1 ? FILL_ZEROS : FILL_NOISE;
            c.first = i % 3;
            c.count = c.shape[0] - c.first;
            check_some(group, &c);
        }
}

/* Rows so many that threads which scan rows side by side get several each. */
static void many_rows(const struct group *group)
{
    static const uint64_t list[] = {7, 50, 100, 300, 600, 1100};
    static const enum scand_accumulator of[] = {F32, F2, F64, F32, F64, F2};
    for (size_t i = 0; i < COUNT(list); i++) {
        struct scan_case c = case_of(list[i] < 64    ? 800000
                                     : list[i] < 256 ? 80000
                                                     : 20000,
                                     list[i], rule_of("fb", INCLUSIVE, of[i], D32, D32));
        check(group, &c);
    }
}

/* Rows of up to an order block that begin with a vector, of whole leaves but for one length; and so many of the
 * shortest that a thread block takes several. */
static void even_rows(const struct group *group)
{
    static const uint64_t list[] = {1552, 2000, 2048, 4096, 7696, 10000, 10004, 16368, 16384};
    static const enum fill fills[] = {FILL_NOISE, FILL_SPREAD, FILL_SPECIALS, FILL_ENDS, FILL_ZEROS, FILL_STEPS};
    static const enum scand_accumulator sums[] = {F2, F2, F64, F64, F64, F64, F32};
    static const enum scand_dtype dtypes[] = {
        D32, D32, SCAND_DTYPE_IBM32, SCAND_DTYPE_F32BE, SCAND_DTYPE_F16, SCAND_DTYPE_BF16, SCAND_DTYPE_F16};
    const unsigned few = COUNT(list) * COUNT(fills) * COUNT(sums);
    for (unsigned i = 0; i < few + COUNT(sums); i++) {
        const unsigned r = i % COUNT(sums);
        const bool many = i >= few;
        struct scan_case c =
            case_of(many ? 9000 : 5, list[i / COUNT(fills) / COUNT(sums) % COUNT(list)],
                    rule_of(many ? "fb" : pass_lists[i % COUNT(pass_lists)], INCLUSIVE, sums[r], D32, dtypes[r]));
        c.rule.input = dtypes[r];
        c.fill = fills[i / COUNT(sums) % COUNT(fills)];
        c.input.axis_gap = i % 3 ? 240 : 0;
        c.output.axis_gap = i % 2 ? 0 : 48;
        c.input.offset = i % 4 * 16;
        c.first = i % 3;
        c.count = c.shape[0] - c.first;
        check_some(group, &c);
    }
}

/* Rows of several levels above a block. */
static void long_rows(const struct group *group)
{
    struct scan_case list[] = {
        case_of(1, 1000000, rule_of("fb", INCLUSIVE, F64, D32, D32)),
        case_of(1, 16384 * 32 + 5, rule_of("fb", INCLUSIVE, F2, D32, D32)),
        case_of(1, 16384 * 33, rule_of("bb", EXCLUSIVE, F32, D32, D64)),
        case_of(1, 16384 * 64 + 1, rule_of("bf", INCLUSIVE, F2, D64, D64)),
        case_of(2, 16384 * 32 + 17, rule_of("b", EXCLUSIVE, F64, D64, D64)),
        case_of(4, 100001, rule_of("fb", INCLUSIVE, F64, D64, D32)),
        case_of(1, 16384 * 33 + 17, rule_of("bf", TRAPEZOID, F64, D32, D32)),
        case_of(2, 16384 * 2 + 1, rule_of("fb", TRAPEZOID, F2, D64, D64)),
        case_of(1, 16384 * 33 + 17, rule_of("fb", HALF, F2, D64, D32)),
    };
    list[COUNT(list) - 1].rule.demean = true;
    for (size_t i = 0; i < COUNT(list); i++)
        check(group, &list[i]);
}

/* The i-th of many rules for sums of f32 and the like, one after the other unlike its neighbours. */
static struct scan_rule long_rule(unsigned i)
{
    struct scan_rule rule =
        rule_of(pass_lists[i % COUNT(pass_lists)], i / 2 % 2 ? EXCLUSIVE : INCLUSIVE,
                accumulators[i % COUNT(accumulators)], i % 7 == 6 ? D64 : D32, i / 3 % 3 == 2 ? D64 : D32);
    if (i % 5 == 4)
        rule.input = SCAND_DTYPE_F32BE;
    if (i % 10 == 9 && rule.output == D32)
        rule.output = SCAND_DTYPE_IBM32;
    return rule;
}

/* Rows whose blocks a device holds at once, and longer ones, up to more than 32 groups of 32 blocks. */
static void longer_rows(const struct group *group)
{
    static const uint64_t list[] = {16385, 32767, 32768, 57001, 524287, 524288, 524289, 900000, 3000001};
    for (size_t l = 0; l < COUNT(list); l++)
        for (unsigned i = 0; i < (list[l] < 60000 ? 36u : 6u); i++) {
            struct scan_case c = case_of(1 + (list[l] < 60000) * (2 + i % 3), list[l], long_rule(i + (unsigned)l));
            c.input.offset = (i + (unsigned)l) % 4 * 4;
            c.output.offset = (i + 1) / 2 % 2 * 8;
            c.in_place = i % 4 == 3 && codec_bytes(c.rule.input) == codec_bytes(c.rule.output);
            c.fill = i % 6 == 5 ? FILL_SPECIALS : FILL_NOISE;
            c.first = i % 2 && c.shape[0] > 1;
            check(group, &c);
        }
    for (unsigned i = 0; i < 6; i++) {
        struct scan_case c = case_of(1, (UINT64_C(1) << 24) + i % 3 - 1, long_rule(2 * i));
        check(group, &c);
    }
}

/* All rules there are for sums of f32 into f32 and f64. */
static void rules(const struct group *group)
{
    static const uint64_t list[] = {1, 17, 530, 2047, 17000};
    enum { KINDS = SCAND_KIND_COUNT, DTYPES = 2, ACCUMULATORS = COUNT(accumulators) };
    for (unsigned i = 0; i < COUNT(pass_lists) * KINDS * DTYPES * DTYPES * ACCUMULATORS; i++) {
        struct scan_rule rule =
            rule_of(pass_lists[i % COUNT(pass_lists)], (enum scand_kind)(i / COUNT(pass_lists) % KINDS),
                    accumulators[i / COUNT(pass_lists) / KINDS % ACCUMULATORS],
                    (enum scand_dtype)(i / COUNT(pass_lists) / KINDS / ACCUMULATORS % DTYPES),
                    (enum scand_dtype)(i / COUNT(pass_lists) / KINDS / ACCUMULATORS / DTYPES));
        for (size_t l = 0; l < COUNT(list); l++) {
            struct scan_case c = case_of(list[l] < 10000 ? 2 : 1, list[l], rule);
            check_some(group, &c);
        }
    }
}

/* Samples of all sorts, under the rules that treat them differently. */
static void fills(const struct group *group)
{
    const struct scan_rule list[] = {
        rule_of("f", INCLUSIVE, F32, D32, D32),  rule_of("fb", INCLUSIVE, F32, D32, D32),
        rule_of("f", INCLUSIVE, F64, D32, D64),  rule_of("fb", EXCLUSIVE, F64, D64, D32),
        rule_of("b", INCLUSIVE, F2, D32, D32),   rule_of("fb", EXCLUSIVE, F2, D64, D64),
        rule_of("bf", INCLUSIVE, F2, D64, D64),  rule_of("bf", EXCLUSIVE, F2, D32, D32),
        rule_of("bb", EXCLUSIVE, F64, D32, D32), rule_of("ff", INCLUSIVE, F2, D32, D64),
    };
    static const uint64_t length_list[] = {1, 5, 33, 1000, 1537, 17000};
    for (enum fill fill = 0; fill < FILL_COUNT; fill++)
        for (size_t r = 0; r < COUNT(list); r++)
            for (size_t l = 0; l < COUNT(length_list); l++) {
                struct scan_case c = case_of(length_list[l] < 10000 ? 6 : 2, length_list[l], list[r]);
                c.fill = fill;
                check_some(group, &c);
            }
}

/* Infinities and NaNs that begin or end a row, a leaf, a tile. */
static void ends(const struct group *group)
{
    for (uint64_t length = 1; length < 50; length++)
        for (size_t p = 0; p < COUNT(pass_lists); p++)
            for (unsigned kind = 0; kind < SCAND_KIND_COUNT; kind++)
                for (unsigned a = 0; a < COUNT(accumulators); a++) {
                    struct scan_case c = case_of(4, length,
                                                 rule_of(pass_lists[p], (enum scand_kind)kind, accumulators[a],
                                                         length % 2 ? D32 : D64, length % 3 ? D32 : D64));
                    c.fill = FILL_ENDS;
                    check_some(group, &c);
                }
}

/* The operators beside sum and affine, on all sorts of samples: equal ones, zeros of both signs and NaNs above all. */
static void operators(const struct group *group)
{
    static const uint64_t length_list[] = {1, 2, 15, 17, 33, 530, 1537, 17000};
    for (enum scand_operator op = SCAND_OPERATOR_PROD; op <= SCAND_OPERATOR_MIN; op++)
        for (enum fill fill = 0; fill < FILL_COUNT; fill++)
            for (unsigned i = 0; i < COUNT(pass_lists) * 2 * COUNT(accumulators); i++) {
                enum scand_kind kind = i / COUNT(pass_lists) % 2 ? INCLUSIVE : EXCLUSIVE;
                enum scand_accumulator accumulator = accumulators[i / COUNT(pass_lists) / 2];
                uint64_t length = length_list[(i + fill) % COUNT(length_list)];
                struct scan_rule rule =
                    rule_of(pass_lists[i % COUNT(pass_lists)], kind, accumulator, i & 1 ? D32 : D64, i & 2 ? D32 : D64);
                struct scan_case c = case_of(length < 10000 ? 5 : 2, length, rule_with_op(rule, op));
                c.fill = fill;
                check_some(group, &c);
            }
}

/* Rows without their mean, of every length that begins or ends the tree's groups, and longer than a block. */
static void means(const struct group *group)
{
    static const uint64_t length_list[] = {1,   2,   15,   16,   17,    31,    33,    511,   512,
                                           513, 528, 1025, 2000, 16383, 16384, 16385, 16400, 100001};
    for (size_t l = 0; l < COUNT(length_list); l++)
        for (unsigned i = 0; i < 24; i++) {
            struct scan_rule rule =
                rule_of(pass_lists[i % COUNT(pass_lists)], (enum scand_kind)(i % SCAND_KIND_COUNT),
                        accumulators[i % COUNT(accumulators)], i & 1 ? D32 : D64, i & 2 ? D32 : D64);
            rule.input = i % 5 == 0 && rule.accumulator != F32 ? D64 : D32;
            rule.demean = true;
            struct scan_case c = case_of(length_list[l] < 10000 ? 3 : 1, length_list[l], rule);
            c.fill = (enum fill)(i / 2 % FILL_COUNT);
            c.in_place = i % 3 == 0 && rule.input == rule.output;
            if (length_list[l] < 20000 || i % 8 == l % 8)
                check_some(group, &c);
        }
}

static const struct layout layout_list[] = {
    {.name = "packed"},
    {.name = "trace headers", .axis_gap = 240},
    {.name = "at an odd address", .offset = 1},
    {.name = "at an odd address, rows of odd bytes", .offset = 3, .axis_gap = 1},
    {.name = "wide elements", .element_gap = 8},
    {.name = "elements of odd bytes", .offset = 2, .element_gap = 3, .axis_gap = 5},
    {.name = "columns first", .columns_first = true},
    {.name = "columns first, odd", .columns_first = true, .offset = 1, .axis_gap = 2},
    {.name = "reversed", .negative = 15},
    {.name = "partly reversed, with gaps", .negative = 5, .axis_gap = 4, .element_gap = 4},
};

/* Every axis of every rank, in all layouts, in place and into another layout. */
static void layouts(const struct group *group)
{
    static const uint64_t shapes[][SCAND_RANK_MAX] = {{1033}, {35, 37}, {5, 34, 18}, {3, 19, 2, 33}};
    for (size_t i = 0; i < COUNT(layout_list); i++)
        for (uint32_t rank = 1; rank <= SCAND_RANK_MAX; rank++)
            for (uint32_t axis = 0; axis < rank; axis++)
                for (unsigned where = 0; where < 3; where++) {
                    struct scan_case c = {
                        .rule = rule_of("fb", INCLUSIVE, where == 2 ? F2 : F64, D32, where == 2 ? D64 : D32),
                        .rank = rank,
                        .axis = axis,
                        .input = layout_list[i],
                        .output = layout_list[(i + rank + axis) % COUNT(layout_list)],
                        .in_place = where == 0};
                    memcpy(c.shape, shapes[rank - 1], sizeof(c.shape));
                    check(group, &c);
                }
}

/* Rows of more than one block in each layout. */
static void long_layouts(const struct group *group)
{
    for (size_t i = 0; i < COUNT(layout_list); i++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            struct scan_case c = {.rule = rule_of("bf", INCLUSIVE, i % 2 ? F2 : F64, D64, i % 3 ? D32 : D64),
                                  .rank = 2,
                                  .axis = axis,
                                  .shape = {3, 3},
                                  .input = layout_list[i],
                                  .output = layout_list[(i + 1) % COUNT(layout_list)],
                                  .in_place = i % 3 && i % 2};
            c.shape[axis] = 16384 + 16 * (i + 1) + i;
            check(group, &c);
        }
}

/* Some rows of a batch: no others are touched, and the other rows of a scan do not matter. */
static void batches(const struct group *group)
{
    static const uint64_t list[][3] = {{7, 2, 3}, {50, 49, 1}, {50, 0, 33}, {300, 17, 280}};
    for (size_t i = 0; i < COUNT(list); i++)
        for (uint32_t axis = 0; axis < 2; axis++)
            for (uint64_t length = 10; length < 1000; length += 300) {
                struct scan_case c = case_of(list[i][0], length, rule_of("fb", INCLUSIVE, F64, D32, D32));
                c.axis = axis;
                c.shape[axis] = length;
                c.shape[1 - axis] = list[i][0];
                c.first = list[i][1];
                c.count = list[i][2];
                c.in_place = i % 2;
                check(group, &c);
            }
}

/* Every dtype into every other that it may be written as, under rules of all sorts. */
static void dtypes(const struct group *group)
{
    static const uint64_t length_list[] = {1, 16, 33, 530, 1537};
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
            for (unsigned i = 0; i < 24 && writes(input, output); i++) {
                uint64_t length = i == (input + output) % 24 ? 16385 : length_list[(i + input) % COUNT(length_list)];
                struct scan_case c = case_of(length < 10000 ? 5 : 2, length, typed_rule(i, input, output));
                c.fill = (enum fill)((i + output) % FILL_COUNT);
                c.in_place = i % 2 && codec_bytes(input) == codec_bytes(output);
                check_some(group, &c);
            }
}

/* Every dtype in each layout, along each axis. */
static void dtype_layouts(const struct group *group)
{
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
            for (unsigned i = 0; i < 2 * COUNT(layout_list) && writes(input, output); i++) {
                struct scan_case c = {.rule = typed_rule(i + input, input, output),
                                      .rank = 2,
                                      .axis = i % 2,
                                      .shape = {35, 37},
                                      .fill = FILL_STEPS,
                                      .input = layout_list[i / 2],
                                      .output = layout_list[(i + output) % COUNT(layout_list)],
                                      .in_place = i % 3 == 0 && codec_bytes(input) == codec_bytes(output)};
                c.rule.op = SCAND_OPERATOR_SUM;
                check_some(group, &c);
            }
}

/* Rows so many that the CPU path scans them side by side, around the width of vectors and of groups of rows, and as
 * long as leaves, tiles and blocks. Every dtype in all layouts; rows of more than a tile are columns. */
static void side_by_side(const struct group *group)
{
    static const uint64_t row_list[] = {7, 8, 9, 15, 31, 32, 33, 47, 63, 65, 97};
    static const uint64_t length_list[] = {1,  2,  7,   8,   9,   11,  15,  16,   17,   24,   31,   32,
                                           33, 47, 100, 257, 511, 512, 513, 1023, 1024, 1025, 1040, 2049};
    for (unsigned i = 0; i < 48 * COUNT(length_list); i++) {
        enum scand_dtype input = i % 2 ? (enum scand_dtype)(i / 2 % SCAND_DTYPE_COUNT) : i % 8 ? D32 : D64;
        enum scand_dtype output = i % 3 && writes(input, D64) ? D64 : input;
        struct scan_case c = case_of(1, 1, typed_rule(i / 2, input, output));
        c.axis = i / 3 % 2;
        c.shape[c.axis] = length_list[i % COUNT(length_list)];
        c.shape[1 - c.axis] = row_list[(i / 7 + i / 48) % COUNT(row_list)];
        c.input = layout_list[i % 5 ? 0 : i / 5 % COUNT(layout_list)];
        c.output = layout_list[i % 7 ? 0 : i / 7 % COUNT(layout_list)];
        c.in_place = i % 3 == 0 && codec_bytes(input) == codec_bytes(output);
        c.fill = (enum fill)(i % FILL_COUNT);
        c.first = i % 4 == 3 ? i / 4 % 5 : 0;
        c.count = c.shape[1 - c.axis] - c.first;
        check_some(group, &c);
    }
}

/* Columns around the length of blocks and of what comes above, and such as do not all lie side by side. */
static void long_columns(const struct group *group)
{
    static const uint64_t length_list[] = {8191, 8193, 16368, 16384, 16385, 40000, 524305};
    for (unsigned i = 0; i < 3 * COUNT(length_list); i++) {
        struct scan_case c = {.rule = typed_rule(i, i % 3 ? D32 : SCAND_DTYPE_I32, i % 3 ? D32 : SCAND_DTYPE_I32),
                              .rank = 3,
                              .axis = 1,
                              .shape = {i % 7 == 6 ? 1 : 3, length_list[i % COUNT(length_list)], 7 + i % 5},
                              .input = packed,
                              .output = packed};
        c.rule.demean = false;
        c.in_place = i % 2;
        c.fill = (enum fill)(i % FILL_COUNT);
        check(group, &c);
    }
}

/* More columns than the CPU path scans together, and some vectors of columns of several leaves, tiles and blocks; sums
 * and products of integers of 32 bits, too. */
static void wide_columns(const struct group *group)
{
    static const enum scand_dtype types[] = {D32, D64, SCAND_DTYPE_I32, D32, SCAND_DTYPE_U32, SCAND_DTYPE_I64};
    static const uint64_t shapes[][2] = {{5, 1100}, {17, 513}, {40, 700}, {530, 300}, {1100, 75}, {17000, 41}};
    for (unsigned i = 0; i < 8 * COUNT(shapes); i++) {
        enum scand_dtype type = types[i % COUNT(types)];
        struct scan_case c = case_of(1, 1, typed_rule(i, type, type));
        c.rule.op = i % 4 == 1 ? SCAND_OPERATOR_PROD : SCAND_OPERATOR_SUM;
        c.rule.demean = false;
        c.axis = 0;
        c.shape[0] = shapes[i / 8][0];
        c.shape[1] = shapes[i / 8][1];
        c.in_place = i % 3 == 0;
        c.fill = (enum fill)(i % FILL_COUNT);
        check(group, &c);
    }
}

/* Columns side by side, as many as strips of 32 have and around that, as long as leaves, tiles and blocks and around
 * those, in one plane or three, at any pitch; some of them, too. */
static struct scan_case columns_case(unsigned i, uint64_t length, uint64_t columns)
{
    struct scan_case c = {.rule = long_rule(i),
                          .rank = 3,
                          .axis = 1,
                          .shape = {length < 10000 && i % 4 == 3 ? 3 : 1, length, columns},
                          .input = {.name = "columns", .axis_gap = i % 3 * 4},
                          .output = {.name = "columns", .axis_gap = i / 2 % 2 * 12}};
    const uint64_t rows = c.shape[0] * columns;
    c.input.offset = i % 5 == 4 ? 4 : i % 7 == 6 ? 1 : 0;
    c.in_place = i % 4 == 1 && codec_bytes(c.rule.input) == codec_bytes(c.rule.output);
    c.fill = i % 6 == 5 ? FILL_SPECIALS : i % 11 == 7 ? FILL_ZEROS : FILL_NOISE;
    c.first = i % 3 == 2 ? rows / 5 : 0;
    c.count = rows - c.first - (i % 7 == 3 ? rows / 4 : 0);
    return c;
}

static void columns(const struct group *group)
{
    static const uint64_t column_list[] = {4, 7, 31, 32, 33, 63, 65, 100, 257};
    static const uint64_t length_list[] = {2, 15, 16, 17, 33, 100, 255, 257, 511, 512, 513, 1023, 1025, 2100};
    static const uint64_t long_list[] = {16383, 16384, 16385, 33000, 210000};
    for (unsigned i = 0; i < 21 * COUNT(length_list); i++) {
        uint64_t wide = i % 16 == 15 ? 1500 : 0;
        struct scan_case c = columns_case(i, length_list[i / 21], wide + column_list[i % COUNT(column_list)]);
        check(group, &c);
    }
    for (unsigned i = 0; i < 12 * COUNT(long_list); i++) {
        uint64_t length = long_list[i / 12];
        struct scan_case c = columns_case(5 * i, length, length > 20000 ? 5 : column_list[i % 5]);
        if (length < 100000 || i % 4 == 0)
            check(group, &c);
    }
}

/* Few columns, for tools that slow a program down a hundredfold. */
static void few_columns(const struct group *group)
{
    static const uint64_t length_list[] = {17, 500, 1300, 16400};
    for (unsigned i = 0; i < 6 * COUNT(length_list); i++) {
        uint64_t length = length_list[i / 6];
        struct scan_case c = columns_case(7 * i, length, length < 2000 ? 70 : 5);
        check(group, &c);
    }
}

/* Ragged rows. */

/* Words of 2, 4 and 8 bytes, in rows that begin anywhere in 16 bytes and end around the borders of 16 bytes, of a tile
 * and of an order block. */
static void slots(const struct group *group)
{
    static const enum scand_dtype pairs[][2] = {
        {SCAND_DTYPE_F16, SCAND_DTYPE_F16},     {SCAND_DTYPE_F16, SCAND_DTYPE_F32}, {SCAND_DTYPE_F32, SCAND_DTYPE_BF16},
        {SCAND_DTYPE_BF16, SCAND_DTYPE_F64},    {SCAND_DTYPE_F64, SCAND_DTYPE_F64}, {SCAND_DTYPE_F64, SCAND_DTYPE_F16},
        {SCAND_DTYPE_I32, SCAND_DTYPE_I32},     {SCAND_DTYPE_U32, SCAND_DTYPE_I64}, {SCAND_DTYPE_I64, SCAND_DTYPE_U64},
        {SCAND_DTYPE_I16BE, SCAND_DTYPE_I16BE},
    };
    static const uint64_t list[] = {1, 2, 5, 7, 8, 9, 16, 505, 511, 512, 513, 517, 1023, 1024, 1025, 16383, 16384};
    for (size_t l = 0; l < COUNT(list); l++)
        for (size_t p = 0; p < COUNT(pairs); p++)
            for (unsigned i = 0; i < 8; i++) {
                struct scan_case c = case_of(3, list[l], typed_rule(i + (unsigned)p, pairs[p][0], pairs[p][1]));
                c.input.offset = i * codec_bytes(pairs[p][0]) % 16;
                c.output.offset = (i + (unsigned)l) * codec_bytes(pairs[p][1]) % 16;
                c.in_place = i % 2 && pairs[p][0] == pairs[p][1];
                if (list[l] < 10000 || i == p % 8)
                    check_some(group, &c);
            }
}

static void ragged_check(const struct group *group, enum ragged_kind kind, struct scan_case c)
{
    static uint64_t offsets[RAGGED_ROWS_MAX + 1];
    uint64_t random = seed + kind + c.input.offset;
    c.row_count = ragged_offsets(kind, &random, offsets);
    c.rank = 1;
    c.axis = 0;
    c.offsets = offsets;
    c.shape[0] = offsets[c.row_count] + 9;
    c.in_place = c.in_place && codec_bytes(c.rule.input) == codec_bytes(c.rule.output);
    check_some(group, &c);
    c.first = c.row_count / 3;
    c.count = c.row_count - c.row_count / 2;
    if (kind == RAGGED_TINY || kind == RAGGED_BORDERS)
        check_some(group, &c);
}

/* Rules that kernels take apart, on rows of each kind, from every word of 16 bytes on. */
static void ragged(const struct group *group)
{
    const struct scan_rule list[] = {
        rule_of("fb", INCLUSIVE, F32, D32, D32), rule_of("bf", EXCLUSIVE, F32, D32, D32),
        rule_of("fb", INCLUSIVE, F64, D32, D32), rule_of("bb", EXCLUSIVE, F64, D64, D32),
        rule_of("bf", INCLUSIVE, F2, D32, D32),  rule_of("fb", EXCLUSIVE, F2, D32, D32),
        rule_of("f", INCLUSIVE, F2, D32, D32),   rule_of("fb", INCLUSIVE, F2, D64, D32),
        rule_of("b", INCLUSIVE, F64, D32, D64),  rule_of("fb", HALF, F64, D32, D32),
        rule_of("fb", TRAPEZOID, F64, D32, D32),
    };
    for (enum ragged_kind kind = 0; kind < RAGGED_KIND_COUNT; kind++)
        for (size_t r = 0; r < COUNT(list); r++) {
            struct scan_case c = {.rule = list[r], .fill = r % 2 ? FILL_ENDS : FILL_NOISE, .in_place = r % 3 == 0};
            c.input.offset = (unsigned)(r + kind) % 4 * 4;
            c.output.offset = (unsigned)(r / 2) % 4 * 4;
            ragged_check(group, kind, c);
            c.rule.demean = true;
            if (r % 4 == 2)
                ragged_check(group, kind, c);
        }
}

/* Every kernel for ragged sums of f32, for tools that slow a program down a hundredfold. */
static void ragged_small(const struct group *group)
{
    for (unsigned i = 0; i < 6; i++) {
        struct scan_case c = {
            .rule = rule_of(i % 2 ? "bf" : "fb", i % 2 ? EXCLUSIVE : INCLUSIVE, accumulators[i / 2], D32, D32)};
        c.input.offset = i % 4 * 4;
        ragged_check(group, RAGGED_EACH, c);
    }
}

/* The other dtypes, operators and layouts. */
static void ragged_dtypes(const struct group *group)
{
    static const enum ragged_kind kinds[] = {RAGGED_PARETO, RAGGED_TINY, RAGGED_BORDERS, RAGGED_MIXED};
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
            for (unsigned i = 0; i < 3 && writes(input, output); i++) {
                struct scan_case c = {.rule = typed_rule(i + 5 * input + output, input, output),
                                      .fill = (enum fill)((i + output) % FILL_COUNT),
                                      .in_place = i == 0,
                                      .input = layout_list[(i + input) % COUNT(layout_list)],
                                      .output = layout_list[(i + output) % COUNT(layout_list)]};
                ragged_check(group, kinds[(i + input) % COUNT(kinds)], c);
            }
}

/* Every length around the sizes of the tree's groups, all passes, accumulators and kinds. */
static void affine_lengths(const struct group *group)
{
    static const uint64_t list[] = {1,   2,   15,   16,   17,    31,    33,    47,    511,
                                    512, 513, 1025, 2000, 16383, 16384, 16385, 16400, 40001};
    static const enum scand_dtype types[] = {D32, D64, SCAND_DTYPE_I32, SCAND_DTYPE_F16, D32};
    for (size_t l = 0; l < COUNT(list); l++)
        for (unsigned i = 0; i < 48; i++) {
            enum scand_dtype input = types[i % COUNT(types)];
            enum scand_dtype output = codec_is_integer(input) ? SCAND_DTYPE_I64 : i % 2 ? D32 : D64;
            struct scan_case c = affine_case(i + (unsigned)l, list[l] < 10000 ? 5 : 1, list[l], input, output);
            c.fill = (enum fill)(i % FILL_COUNT);
            c.in_place = i % 4 == 0 && codec_bytes(input) == codec_bytes(output);
            if (list[l] < 10000 || i % 6 == l % 6)
                check_some(group, &c);
        }
}

/* Rows of several levels above a block; of two cases 200 blocks at once, more than a GPU has processors. */
static void affine_long_rows(const struct group *group)
{
    const unsigned many = 50 / ONE_OF;
    for (unsigned i = 0, rows = many; i < 9; i++, rows = i == 4 ? many : 1 + i % 2) {
        enum scand_dtype input = i % 4 == 3 ? SCAND_DTYPE_U32 : i % 4 == 2 ? D64 : D32;
        enum scand_dtype output = i % 4 == 3 ? SCAND_DTYPE_U64 : i % 2 ? D64 : D32;
        struct scan_case c = affine_case(5 * i + 1, rows, 16384 * (i < 6 ? 3 : 32) + i * 531 + 1, input, output);
        c.rule.passes[1] = i % 2 ? SCAND_PASS_FORWARD : SCAND_PASS_BACKWARD;
        c.rule.pass_count = i % 3 ? 2 : 1;
        check(group, &c);
    }
}

/* Every dtype with coefficients of every other of its class. */
static void affine_dtypes(const struct group *group)
{
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype coefficients = 0; coefficients < SCAND_DTYPE_COUNT; coefficients++)
            for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++)
                for (unsigned i = 0; i < 4; i++) {
                    struct scan_case c = affine_case(4 * output + i, 3, 600, input, output);
                    c.rule.coefficients = coefficients;
                    c.has_coefficients = true;
                    if (writes(input, output) && codec_class(input) == codec_class(coefficients))
                        check_some(group, &c);
                }
}

/* Input, output and coefficients each in a layout of its own, along every axis, with coefficients that are the same all
 * along some axes. */
static void affine_layouts(const struct group *group)
{
    static const uint64_t shapes[][SCAND_RANK_MAX] = {{1033}, {35, 37}, {5, 34, 18}, {3, 19, 2, 33}};
    for (unsigned i = 0; i < COUNT(layout_list); i++)
        for (uint32_t rank = 1; rank <= SCAND_RANK_MAX; rank++)
            for (uint32_t axis = 0; axis < rank; axis++)
                for (unsigned j = 0; j < 6; j++) {
                    struct scan_case c = affine_case(j + 7 * i, 1, 1, j == 5 ? D64 : D32, j % 2 ? D64 : D32);
                    c.has_coefficients = true;
                    c.rank = rank;
                    c.axis = axis;
                    c.input = layout_list[i];
                    c.output = layout_list[(i + rank + axis) % COUNT(layout_list)];
                    c.coefficients = layout_list[(i + j + axis) % COUNT(layout_list)];
                    c.in_place = j == 2;
                    c.broadcast = (i + j) % 16;
                    memcpy(c.shape, shapes[rank - 1], sizeof(c.shape));
                    check_some(group, &c);
                }
}

/* Ragged rows of each kind. */
static void affine_ragged(const struct group *group)
{
    for (unsigned i = 0; i < 4 * RAGGED_KIND_COUNT; i++) {
        struct scan_case c = affine_case(i, 1, 1, i % 5 == 3 ? D64 : D32, i % 5 == 2 ? D64 : D32);
        c.input = layout_list[i % COUNT(layout_list)];
        c.coefficients = layout_list[i / 2 % COUNT(layout_list)];
        c.broadcast = i % 8 == 7;
        c.in_place = i % 2;
        ragged_check(group, (enum ragged_kind)(i % RAGGED_KIND_COUNT), c);
    }
}

/* Some cases for every kernel, for tools that slow a program down a hundredfold. */
static void small(const struct group *group)
{
    static const uint64_t list[] = {7, 100, 300, 513, 1300, 5000, 16401, 57001};
    const unsigned lengths = strcmp(group->list[0]->name, "together") ? COUNT(list) : 4; /* it launches much */
    for (unsigned i = 0; i < 12 * lengths; i++) {
        uint64_t length = list[i / 12], rows = length < 1000 ? 37 : length < 10000 ? 3 : 1;
        enum scand_dtype dtype = (enum scand_dtype)(i % SCAND_DTYPE_COUNT);
        enum scand_accumulator accumulator = accumulators[i / 2 % COUNT(accumulators)];
        struct scan_case sums =
            case_of(rows, length,
                    rule_of(pass_lists[i % COUNT(pass_lists)], i % 4 ? INCLUSIVE : EXCLUSIVE, accumulator, D32, D32));
        struct scan_case others = case_of(rows, length, typed_rule(i, dtype, dtype));
        struct scan_case affine = affine_case(i, rows, length, i % 2 ? D32 : dtype, i % 2 ? D32 : dtype);
        sums.input.offset = sums.output.offset = i % 3 ? 0 : 4;
        sums.input.axis_gap = sums.output.axis_gap = i % 5 ? 0 : 240;
        sums.in_place = i % 2;
        others.axis = i % 2;
        check(group, &sums);
        check(group, &others);
        check(group, &affine);
        if (i < 3 * RAGGED_KIND_COUNT) {
            sums.rule.demean = i % 3 == 2;
            ragged_check(group, (enum ragged_kind)(i % RAGGED_KIND_COUNT), sums);
        }
    }
}

/* Suites on where rows lie and who scans them: X(GROUP, SUITE). */
#define DRIVER_SUITES(X, GROUP)    \
    X(GROUP, lengths)              \
    X(GROUP, short_rows)           \
    X(GROUP, rows_of_tiles)        \
    X(GROUP, rows_between_headers) \
    X(GROUP, long_rows)            \
    X(GROUP, layouts)              \
    X(GROUP, dtype_layouts)        \
    X(GROUP, slots)                \
    X(GROUP, long_layouts)         \
    X(GROUP, batches)              \
    X(GROUP, side_by_side)         \
    X(GROUP, long_columns)         \
    X(GROUP, wide_columns)         \
    X(GROUP, ragged)               \
    X(GROUP, ragged_dtypes)

/* Suites on the arithmetic. */
#define ARITHMETIC_SUITES(X, GROUP) \
    X(GROUP, rules)                 \
    X(GROUP, fills)                 \
    X(GROUP, operators)             \
    X(GROUP, dtypes)                \
    X(GROUP, means)                 \
    X(GROUP, ends)

/* affine, which has an implementation of its own everywhere. */
#define AFFINE_SUITES(X, GROUP) \
    X(GROUP, affine_lengths)    \
    X(GROUP, affine_long_rows)  \
    X(GROUP, affine_dtypes)     \
    X(GROUP, affine_layouts)    \
    X(GROUP, affine_ragged)

/* Suites on the ways in which small scans of a shared launch can differ, besides arithmetic. */
#define TOGETHER_SUITES(X, GROUP)  \
    X(GROUP, lengths)              \
    X(GROUP, rows_between_headers) \
    X(GROUP, layouts)              \
    X(GROUP, dtype_layouts)        \
    X(GROUP, short_rows)           \
    X(GROUP, small)

/* Suites on the properties by which the kernels of a GPU divide their work. */
#define GPU_SUITES(X, GROUP) \
    X(GROUP, small)          \
    X(GROUP, columns)        \
    X(GROUP, few_columns)    \
    X(GROUP, ragged_small)   \
    X(GROUP, many_rows)      \
    X(GROUP, even_rows)      \
    X(GROUP, longer_rows)

/* The ways of choosing a path: the best for the rows; every path that can take them; what other devices choose. */
#define GPUS(SUITES, X) SUITES(X, cuda) SUITES(X, paths) SUITES(X, capability)
// clang-format off
#define GROUPS(X)                                                                                \
    DRIVER_SUITES(X, cpu)           GPUS(DRIVER_SUITES, X)                                       \
    ARITHMETIC_SUITES(X, cpu_build) GPUS(ARITHMETIC_SUITES, X)  ARITHMETIC_SUITES(X, together)   \
    AFFINE_SUITES(X, cpu)           GPUS(AFFINE_SUITES, X)      AFFINE_SUITES(X, together)       \
                                    GPUS(GPU_SUITES, X)         TOGETHER_SUITES(X, together)
// clang-format on
#define LISTED(GROUP, SUITE) TEST(GROUP##_##SUITE),

GROUPS(SUITE)

static void cuda_longer_rows_at_once(void)
{
    suite_run("streams", longer_rows);
}

static void cuda_columns_at_once(void)
{
    suite_run("streams", columns);
}

/* Rows over an order block wait for each other across thread blocks. */
static void cuda_ragged_at_once(void)
{
    suite_run("streams", ragged_small);
}

static const struct test tests[] = {GROUPS(LISTED) TEST(cuda_columns_at_once), TEST(cuda_ragged_at_once),
                                    TEST(cuda_longer_rows_at_once), TEST_END};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}

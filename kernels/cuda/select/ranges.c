#include "kernels/cuda/select/ranges.h"

#include "kernels/cuda/select/select.h"
#include "kernels/order1/dtypes.h"
#include "kernels/order1/order.h"
#include "protocol/limits.h"

/* The time of a launch for a sample. On an H200, with 132 SMs: sums of f32 and reductions of contiguous samples take 1
 * to 4 ps, the general and the affine kernels up to 10, other strides up to 4 times as much. Other devices are taken to
 * be as fast in each SM. */
#define PROCESSORS     132
#define SUM_PS         3
#define GENERAL_PS     10
#define STRIDED_TIMES  4
#define MAPPED_BYTE_PS 25 /* over PCIe, 40 GB/s; */
#define MAPPED_LINE    64 /* bytes that come for a sample by itself */
#define PS_PER_US      UINT64_C(1000000)

/* Returns the number of rounds before the values, or the result: each has launches over all blocks, and one that joins
 * their totals. */
static uint64_t rounds_of(const struct scan_rule *rule)
{
    return rule->operation == SCAND_OPERATION_REDUCE ? 1 : rule->pass_count + rule->demean;
}

uint64_t ranges_count(const struct scan_rule *rule, uint64_t length, uint64_t blocks)
{
    const uint64_t ranges = scan_parts(scan_blocks(length), blocks);
    return rounds_of(rule) * (ranges + 1) + (rule->operation == SCAND_OPERATION_REDUCE ? 0 : ranges);
}

struct scan_range ranges_at(const struct scan_rule *rule, uint64_t length, uint64_t blocks, uint64_t number)
{
    const bool reduces = rule->operation == SCAND_OPERATION_REDUCE;
    const uint64_t all = scan_blocks(length), ranges = scan_parts(all, blocks), round = number / (ranges + 1);
    const bool values = round >= rounds_of(rule), mean = !reduces && rule->demean && round == 0;
    const uint64_t at = values ? number - rounds_of(rule) * (ranges + 1) : number % (ranges + 1);
    struct scan_range range = {.pass = values || mean ? 0 : (int)round - (!reduces && rule->demean)};
    if (at == ranges) {
        range.work = reduces ? RANGE_RESULT : mean ? RANGE_MEAN : RANGE_CARRIES;
        range.count = all;
        return range;
    }
    range.work = values ? RANGE_VALUES : mean ? RANGE_MEAN_TOTALS : RANGE_TOTALS;
    range.first = at * blocks;
    range.count = all - range.first < blocks ? all - range.first : blocks;
    return range;
}

void scan_plan_narrow(struct scan_plan *plan, const struct scan_range *range)
{
    plan->first_item = range->first;
    plan->items = range->count;
    plan->ranged = true;
}

static uint64_t bus_ps(int64_t stride, uint64_t size)
{
    const bool dense = stride == 0 || stride == (int64_t)size || stride == -(int64_t)size;
    return MAPPED_BYTE_PS * (dense ? size : MAPPED_LINE);
}

/* Picoseconds for a sample, of one launch over the row. */
static uint64_t sample_ps(const struct scan_rows *rows, bool mapped, int processors)
{
    const struct scan_rule *rule = &rows->rule;
    const bool reduces = rule->operation == SCAND_OPERATION_REDUCE;
    const struct scan_plan plan = scan_plan_of(rows, 0, 1);
    const bool dense = plan.input.access == ACCESS_VEC16 && (reduces || plan.output.access == ACCESS_VEC16);
    uint64_t ps = (reduces || select_is_sum(rule) ? SUM_PS : GENERAL_PS) * (dense ? 1 : STRIDED_TIMES);
    ps = scan_parts(ps * PROCESSORS, (uint64_t)processors);
    if (mapped)
        ps += bus_ps(rows->input_stride, codec_bytes(rule->input)) +
              (reduces ? 0 : bus_ps(rows->output_stride, codec_bytes(rule->output))) +
              (rows->coefficients ? bus_ps(rows->coefficient_stride, codec_bytes(rule->coefficients)) : 0);
    return ps;
}

uint64_t ranges_row_us(const struct scan_rows *rows, bool mapped, int processors)
{
    const struct scan_rule *rule = &rows->rule;
    const uint64_t launches = rounds_of(rule) + (rule->operation != SCAND_OPERATION_REDUCE);
    return rows->length * sample_ps(rows, mapped, processors) / PS_PER_US * launches;
}

uint64_t ranges_blocks(const struct scan_rows *rows, bool mapped, int processors)
{
    const uint64_t blocks = LIMIT_LAUNCH_MS * 1000 * PS_PER_US / (sample_ps(rows, mapped, processors) * ORDER_BLOCK);
    return blocks > 0 ? blocks : 1;
}

#include "lengths.h"

/*
 * Lengths that several operations share.
 */

static uint64_t length_same(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)step, (void)axis;
    return length;
}

static uint64_t length_one(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)step, (void)axis, (void)length;
    return 1;
}

/*
 * Lengths of one operation each.
 */

static uint64_t length_upsample(const union msg_step *step, uint64_t axis, uint64_t length)
{
    uint64_t result;
    (void)axis;
    return __builtin_mul_overflow(length, step->upsample.factor, &result) || result > INT64_MAX ? UINT64_MAX : result;
}

/* The length of block sums. The daemon refuses rows that are no multiple of the factor, and says why. */
static uint64_t length_block_sum(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)axis;
    return step->block_sum.factor > 0 ? length / step->block_sum.factor : 0;
}

static uint64_t length_stack(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)axis, (void)length;
    return step->stack.bins;
}

static uint64_t length_index_add(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)length;
    return vector_length(&step->index_add.onto, axis);
}

static uint64_t length_pick(const union msg_step *step, uint64_t axis, uint64_t length)
{
    (void)length;
    return vector_length(&step->pick.position, axis);
}

/* A filter without taps is refused, and a row that is too short for all taps is, too. */
static uint64_t length_with_filter(enum convolve_mode mode, const struct msg_tensor *filter, uint64_t axis,
                                   uint64_t length)
{
    const uint64_t taps = vector_length(filter, axis), beyond = taps > 0 ? taps - 1 : 0;
    if (mode == CONVOLVE_SAME)
        return length;
    if (mode == CONVOLVE_VALID)
        return length > beyond ? length - beyond : 0;
    return length > INT64_MAX || beyond > INT64_MAX - length ? UINT64_MAX : length + beyond;
}

static uint64_t length_convolve(const union msg_step *step, uint64_t axis, uint64_t length)
{
    return length_with_filter(step->convolve.mode, &step->convolve.filter, axis, length);
}

static uint64_t length_correlate(const union msg_step *step, uint64_t axis, uint64_t length)
{
    return length_with_filter(step->correlate.mode, &step->correlate.filter, axis, length);
}

uint64_t vector_length(const struct msg_tensor *tensor, uint64_t axis)
{
    if (tensor->shape_count == 1)
        return tensor->shape[0];
    return axis < tensor->shape_count ? tensor->shape[axis] : 0;
}

typedef uint64_t length_function(const union msg_step *step, uint64_t axis, uint64_t length);

static length_function *const lengths[OPERATION_COUNT] = {
#define X(NAME, FIELDS, LENGTH, ...) LENGTH,
    OPERATIONS(X)
#undef X
};

uint64_t length_after(const union msg_step *step, uint64_t axis, uint64_t length)
{
    length_function *const of = lengths[step->operation];
    return length > 0 || of == length_one ? of(step, axis, length) : 0;
}

bool operation_leaves_rows(enum operation_id operation)
{
    return lengths[operation] == length_one;
}

/* True when a step keeps all lengths. Lengths grow at one rate, so it is enough that the ends of their range are kept.
 */
bool step_keeps_length(const union msg_step *step, uint64_t axis)
{
    return length_after(step, axis, 1) == 1 && length_after(step, axis, LIMIT_ROW_SAMPLES) == LIMIT_ROW_SAMPLES &&
           !operation_leaves_rows(step->operation);
}

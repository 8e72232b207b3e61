/* Jobs made of an input's bytes: most have operands and parameters that make sense, few of them by chance together. */
#ifndef TESTS_FUZZ_FUZZ_JOB_H
#define TESTS_FUZZ_FUZZ_JOB_H

#include "protocol/encoding.h"
#include "tests/fuzz/fuzz.h"

#define JOB_BUFFERS 6 /* ids from 1 on */

static inline uint32_t take_dtype(struct supply *supply)
{
    static const uint32_t common[] = {SCAND_DTYPE_F32, SCAND_DTYPE_F64, SCAND_DTYPE_I32, SCAND_DTYPE_I64};
    uint32_t which = take_below(supply, 8);
    return which < 4 ? common[which] : take_below(supply, SCAND_DTYPE_COUNT);
}

/* Mostly as in memory that was allocated at once; else some bytes more or less, or any small number. */
static inline int64_t take_stride(struct supply *supply, int64_t packed)
{
    uint32_t what = take_below(supply, 32);
    return what < 24 ? packed : what < 31 ? packed + what - 27 : (int8_t)take(supply, 1);
}

static inline struct msg_tensor take_tensor_of(struct supply *supply, uint32_t rank, const uint64_t *shape)
{
    struct msg_tensor tensor = {.buffer = 1 + take_below(supply, JOB_BUFFERS), .dtype = take_dtype(supply)};
    int64_t stride = (int64_t)dtype_size_bytes(tensor.dtype);
    tensor.offset = 8 * take_below(supply, 16) + take_below(supply, 16) / 15;
    tensor.shape_count = tensor.strides_count = rank;
    for (uint32_t k = rank; k-- > 0;) {
        tensor.shape[k] = shape[k];
        tensor.strides[k] = take_stride(supply, stride);
        stride = tensor.strides[k] * (int64_t)shape[k];
    }
    return tensor;
}

static inline struct msg_tensor take_tensor(struct supply *supply)
{
    uint64_t shape[SCAND_RANK_MAX];
    uint32_t rank = 1 + take_below(supply, SCAND_RANK_MAX);
    for (uint32_t k = 0; k < rank; k++)
        shape[k] = take_below(supply, k < 2 ? 40 : 4);
    return take_tensor_of(supply, rank, shape);
}

static inline void take_number(struct supply *supply, const struct field *field, char *member)
{
    static const double values[] = {0, 1, -0.5, 2, 1e300, -1e-300};
    uint64_t number = take_below(supply, 16);
    if (field->kind == FIELD_F64)
        *(double *)member = values[number % 6];
    else if (field->kind == FIELD_WORD)
        *(uint32_t *)member = (uint32_t)(number % ((const struct words *)field->of)->count);
    else
        *(uint64_t *)member = number > field->max ? field->max : number;
}

/* A field of a step: every kind that steps have. */
static inline void take_field(struct supply *supply, const struct field *field, char *step,
                              const struct msg_tensor *like)
{
    char *member = step + field->offset;
    if (field->kind == FIELD_MAP) {
        struct msg_tensor operand =
            take_below(supply, 2) ? take_tensor_of(supply, like->shape_count, like->shape) : take_tensor(supply);
        memcpy(member, &operand, sizeof operand);
    } else if (field->kind == FIELD_WORDS) {
        const struct words *words = field->of;
        uint32_t count = 1 + take_below(supply, 2);
        for (uint32_t i = 0; i < count; i++)
            ((uint32_t *)member)[i] = take_below(supply, (uint32_t)words->count);
        *(uint32_t *)(step + field->count_offset) = count;
    } else {
        take_number(supply, field, member);
    }
}

static inline void take_step(struct supply *supply, union msg_step *step, const struct msg_tensor *like)
{
    memset(step, 0, sizeof *step);
    step->operation = take_below(supply, OPERATION_COUNT);
    const struct map_type *type = step_types[step->operation];
    for (size_t i = 1; i < type->field_count; i++)
        if (type->fields[i].required || take_below(supply, 4) == 0)
            take_field(supply, &type->fields[i], (char *)step, like);
}

/* The output's shape, where a step makes rows longer or shorter. */
static inline struct msg_tensor take_output(struct supply *supply, const struct msg_tensor *input, uint32_t axis)
{
    uint64_t shape[SCAND_RANK_MAX];
    memcpy(shape, input->shape, sizeof shape);
    uint32_t change = take_below(supply, 8);
    if (axis < input->shape_count && change > 3)
        shape[axis] = change == 4 ? 1 : take_below(supply, 64);
    struct msg_tensor output = take_tensor_of(supply, input->shape_count, shape);
    return change == 3 ? *input : output;
}

static inline void take_run(struct supply *supply, struct msg_job_run_params *run)
{
    memset(run, 0, sizeof *run);
    run->input = take_tensor(supply);
    run->axis = take_below(supply, run->input.shape_count + take_below(supply, 16) / 15);
    run->output = take_output(supply, &run->input, (uint32_t)run->axis);
    run->steps_count = 1 + take_below(supply, 4);
    for (uint32_t i = 0; i < run->steps_count; i++)
        take_step(supply, &run->steps[i], &run->input);
    run->priority = take_below(supply, SCAND_PRIORITY_COUNT);
    run->progress = take_below(supply, 2);
    run->after_failure = take_below(supply, 2);
}

#endif

#include "rows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tensor_layout.h"

static int check_ranks(const struct request *request, uint32_t operand, struct error *error)
{
    const struct msg_tensor *tensor = request->operands[operand].tensor;
    char name[FIELD_NAME_BYTES];
    if (!tensor || tensor->strides_count == tensor->shape_count)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" has %u dimensions but %u strides; give one stride for each",
                     request_operand_name(request, operand, name), tensor->shape_count, tensor->strides_count);
}

int rows_check_tensors(const struct request *request, struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    int r = 0;
    for (uint32_t i = 0; i < request->operand_count && !r; i++)
        r = i == OPERAND_OFFSETS ? 0 : check_ranks(request, i, error);
    if (r || params->axis < params->input.shape_count)
        return r;
    return error_set(error, -EINVAL, "\"axis\" is %" PRIu64 "; a tensor of %u dimensions has 0 to %u", params->axis,
                     params->input.shape_count, params->input.shape_count - 1);
}

/* Checks an operand's extent along the axis, for operands that follow rows, whose messages have words of their own. */
static int check_axis(const struct request *request, uint32_t operand, struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    const uint64_t extent = request->operands[operand].tensor->shape[params->axis];
    const uint64_t ragged = request_ragged_rows(request);
    char room[FIELD_NAME_BYTES];
    const char *name = request_operand_name(request, operand, room);
    if (request_is_ragged(request) && extent != ragged)
        return error_set(error, -EINVAL,
                         "dimension %" PRIu64 " of \"%s\" is %" PRIu64 "; it must be %" PRIu64
                         ", the rows that \"offsets\" makes",
                         params->axis, name, extent, ragged);
    if (!request_is_ragged(request) && extent != 1)
        return error_set(error, -EINVAL,
                         "dimension %" PRIu64 " of \"%s\", along which rows are reduced, is %" PRIu64 "; it must be 1",
                         params->axis, name, extent);
    return 0;
}

/* Checks the length of an operand that follows samples of which some step before has made more or fewer. */
static int check_length(const struct request *request, uint32_t operand, struct error *error)
{
    const struct msg_job_run_params *params = request->params;
    const uint64_t wanted = request->operands[operand].length, given = params->input.shape[params->axis];
    char name[FIELD_NAME_BYTES];
    if (request->operands[operand].tensor->shape[params->axis] == wanted)
        return 0;
    return error_set(error, -EINVAL,
                     "dimension %" PRIu64 " of \"%s\" is %" PRIu64 "; it must be %" PRIu64
                     ", which the steps before it make of the %" PRIu64 " of \"input\"",
                     params->axis, request_operand_name(request, operand, name),
                     request->operands[operand].tensor->shape[params->axis], wanted, given);
}

/* Checks the length of what is written of rows without samples. */
static int check_empty(const struct request *request, uint32_t operand, struct error *error)
{
    const uint64_t axis = request->params->axis, given = request->operands[operand].tensor->shape[axis];
    char name[FIELD_NAME_BYTES];
    if (given == 0 || request->params->input.shape[axis] > 0)
        return 0;
    return error_set(error, -EINVAL,
                     "dimension %" PRIu64 " of \"%s\" is %" PRIu64
                     "; it must be 0: rows without samples, as \"input\" has, "
                     "have no results but those of reductions",
                     axis, request_operand_name(request, operand, name), given);
}

/* Checks an operand's shape. An operand that follows samples has the input's shape, if no step changes it; otherwise,
 * and if it follows rows, all of that shape but the axis. */
static int check_shape(const struct request *request, uint32_t operand, struct error *error)
{
    const struct msg_tensor *input = &request->params->input, *other = request->operands[operand].tensor;
    const enum follows follows = request->operands[operand].follows;
    const uint64_t axis = request->params->axis;
    char name[FIELD_NAME_BYTES];
    int r = 0;
    if (input->shape_count != other->shape_count)
        return error_set(error, -EINVAL, "\"input\" has %u dimensions and \"%s\" %u; they must be equal",
                         input->shape_count, request_operand_name(request, operand, name), other->shape_count);
    const bool differs = follows != FOLLOWS_SAMPLES || request->operands[operand].length != input->shape[axis];
    if (differs && follows != FOLLOWS_VECTORS)
        r = (follows == FOLLOWS_ROWS ? check_axis : check_length)(request, operand, error);
    else if (request->operands[operand].access == ACCESS_WRITE)
        r = check_empty(request, operand, error);
    for (uint32_t k = 0; k < input->shape_count && !r; k++)
        if (input->shape[k] != other->shape[k] && !(differs && k == axis))
            r = error_set(error, -EINVAL,
                          "dimension %u of \"input\" is %" PRIu64 " and of \"%s\" %" PRIu64 "; they must be equal", k,
                          input->shape[k], request_operand_name(request, operand, name), other->shape[k]);
    return r;
}

/* Checks that an operand of the whole job, other than offsets, is a vector. */
static int check_vector(const struct request *request, uint32_t operand, struct error *error)
{
    const struct msg_tensor *tensor = request->operands[operand].tensor;
    char name[FIELD_NAME_BYTES];
    if (tensor->shape_count == 1)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" has %u dimensions; it must have one, a vector that all rows share",
                     request_operand_name(request, operand, name), tensor->shape_count);
}

static int check_shapes(const struct request *request, struct error *error)
{
    int r = 0;
    for (uint32_t i = OPERAND_OUTPUT; i < request->operand_count && !r; i++)
        if (i != OPERAND_OFFSETS)
            r = (request->operands[i].follows == FOLLOWS_JOB ? check_vector : check_shape)(request, i, error);
    return r;
}

static int check_sizes(const struct msg_job_run_params *params, struct error *error)
{
    uint64_t rows = 1, length = params->input.shape[params->axis];
    if (length > LIMIT_ROW_SAMPLES)
        return error_set(error, -EINVAL, "rows of %" PRIu64 " samples; at most %" PRIu64 " are allowed", length,
                         LIMIT_ROW_SAMPLES);
    if (tensor_is_empty(&params->output))
        return 0;
    for (uint32_t k = 0; k < params->input.shape_count; k++)
        if (k != params->axis && (__builtin_mul_overflow(rows, params->input.shape[k], &rows) || rows > LIMIT_ROWS))
            return error_set(error, -EINVAL, "more than %" PRIu64 " rows; submit them in several jobs", LIMIT_ROWS);
    return 0;
}

/* Along a dimension of one element, or of a tensor without any, no step is taken, and tensor_extent has not looked at
 * the stride: kernels get the one that it would have in C order, since products with the client's may overflow. */
static int64_t stride_of(const struct msg_tensor *tensor, uint64_t k)
{
    return tensor->shape[k] > 1 && !tensor_is_empty(tensor) ? tensor->strides[k]
                                                            : (int64_t)dtype_size_bytes(tensor->dtype);
}

/* Returns the bytes of a full run of a dimension. A product that wraps here is refused by tensor_extent. */
static int64_t run_bytes(uint64_t shape, int64_t stride)
{
    return (int64_t)((uint64_t)stride * shape);
}

/* Rows that are being laid out. */
struct layout {
    const struct request *request;
    struct scan_rows *rows;
    struct operand *operands;
};

static bool has_strides(const struct layout *layout, uint32_t operand)
{
    return layout->request->operands[operand].tensor && layout->operands[operand].follows != FOLLOWS_JOB;
}

/* True when a step of the last dimension equals a full run of the next, in each operand. */
static bool merges(const struct layout *layout, uint64_t shape, const int64_t strides[LIMIT_JOB_OPERANDS])
{
    if (layout->rows->outer_rank == 0)
        return false;
    const uint32_t last = layout->rows->outer_rank - 1;
    for (uint32_t i = 0; i < layout->request->operand_count; i++)
        if (has_strides(layout, i) && layout->operands[i].outer_strides[last] != run_bytes(shape, strides[i]))
            return false;
    return true;
}

/* Adds an outer dimension, or merges it into the last one. */
static void add_outer(const struct layout *layout, uint64_t shape, const int64_t strides[LIMIT_JOB_OPERANDS])
{
    struct scan_rows *rows = layout->rows;
    if (shape == 1)
        return;
    if (merges(layout, shape, strides))
        rows->outer_shape[rows->outer_rank - 1] *= shape;
    else
        rows->outer_shape[rows->outer_rank++] = shape;
    for (uint32_t i = 0; i < layout->request->operand_count; i++)
        if (has_strides(layout, i))
            layout->operands[i].outer_strides[rows->outer_rank - 1] = strides[i];
}

/* Adds the dimension of ragged rows: operands that follow rows have an element for each along the axis; samples lack
 * that dimension. */
static void add_ragged(const struct layout *layout)
{
    const struct request *request = layout->request;
    int64_t strides[LIMIT_JOB_OPERANDS] = {0};
    bool by_rows = false;
    for (uint32_t i = 0; i < request->operand_count; i++)
        if (request->operands[i].tensor && request->operands[i].follows == FOLLOWS_ROWS) {
            strides[i] = stride_of(request->operands[i].tensor, request->params->axis);
            by_rows = true;
        }
    if (by_rows)
        add_outer(layout, request_ragged_rows(request), strides);
}

/* Adds all axes but that of the rows. */
static void add_axes(const struct layout *layout)
{
    const struct request *request = layout->request;
    const struct msg_job_run_params *params = request->params;
    if (tensor_is_empty(&params->output)) {
        layout->rows->row_count = 0;
        return;
    }
    if (request_is_ragged(request))
        add_ragged(layout);
    for (uint32_t k = 0; k < params->input.shape_count; k++) {
        int64_t strides[LIMIT_JOB_OPERANDS];
        if (k == params->axis)
            continue;
        for (uint32_t i = 0; i < request->operand_count; i++)
            strides[i] = has_strides(layout, i) ? stride_of(request->operands[i].tensor, k) : 0;
        layout->rows->row_count *= params->input.shape[k];
        add_outer(layout, params->input.shape[k], strides);
    }
}

static void begin_operand(const struct request *request, uint32_t i, struct operand *operand)
{
    const struct request_operand *asked = &request->operands[i];
    operand->access = asked->access;
    operand->follows = asked->follows;
    operand->dtype = asked->tensor->dtype;
    operand->item_bytes = dtype_size_bytes(asked->tensor->dtype);
    operand->length = asked->length;
    operand->stride = stride_of(asked->tensor, asked->follows == FOLLOWS_JOB ? 0 : request->params->axis);
}

int rows_lay_out(const struct request *request, struct scan_rows *rows, struct operand operands[LIMIT_JOB_OPERANDS],
                 struct error *error)
{
    const struct layout layout = {request, rows, operands};
    int r;
    if ((r = check_shapes(request, error)) || (r = check_sizes(request->params, error)))
        return r;
    for (uint32_t i = 0; i < request->operand_count; i++)
        if (request->operands[i].tensor)
            begin_operand(request, i, &operands[i]);
    rows->length = request->params->input.shape[request->params->axis];
    rows->row_count = 1;
    add_axes(&layout);
    return 0;
}

void rows_bind(const struct operand operands[LIMIT_JOB_OPERANDS], uint32_t count, struct scan_rows *rows)
{
    const struct operand *input = &operands[OPERAND_INPUT], *output = &operands[OPERAND_OUTPUT];
    rows->input = input->origin;
    rows->input_stride = input->stride;
    memcpy(rows->input_outer_strides, input->outer_strides, sizeof rows->input_outer_strides);
    rows->output = output->origin;
    rows->output_stride = output->stride;
    memcpy(rows->output_outer_strides, output->outer_strides, sizeof rows->output_outer_strides);
    if (count == OPERAND_FURTHER)
        return;
    const struct operand *coefficients = &operands[OPERAND_FURTHER];
    rows->coefficients = coefficients->origin;
    rows->coefficient_stride = coefficients->stride;
    memcpy(rows->coefficient_outer_strides, coefficients->outer_strides, sizeof rows->coefficient_outer_strides);
}

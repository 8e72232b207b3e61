/* Tensors to rows: bounds and overflow by hand, and everything small against an enumeration of the elements. */
#include "daemon/core/jobs/tensor_layout.h"

#include <errno.h>

#include "tests/check.h"
#include "tests/unit/submitted.h"

#define TRIALS 20000

static struct error error;

/* A tensor of f32 in C order. */
static struct msg_tensor tensor_of(uint32_t rank, const uint64_t *shape)
{
    struct msg_tensor tensor = {.buffer = 1, .shape_count = rank, .strides_count = rank};
    int64_t stride = 4;
    for (uint32_t k = rank; k-- > 0;) {
        tensor.shape[k] = shape[k];
        tensor.strides[k] = stride;
        stride = (int64_t)((uint64_t)stride * shape[k]); /* wraps in tests of overflow */
    }
    return tensor;
}

#define TENSOR(...) tensor_of(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static struct msg_tensor vector(uint64_t shape, int64_t stride, uint64_t offset)
{
    struct msg_tensor tensor = TENSOR(shape);
    tensor.strides[0] = stride;
    tensor.offset = offset;
    return tensor;
}

static struct msg_job_submit_params scan_of(struct msg_tensor input, struct msg_tensor output, uint64_t axis)
{
    return (struct msg_job_submit_params){.input = input, .output = output, .axis = axis, .passes_count = 1};
}

/*
 * Bounds.
 */

static void extent_is_exact(void)
{
    struct extent extent;
    struct msg_tensor tensor = TENSOR(3, 5);
    CHECK_EQ(tensor_extent(&tensor, "input", 60, &extent, &error), 0);
    CHECK_EQ(extent.begin, 0);
    CHECK_EQ(extent.end, 60);
    tensor.offset = 7;
    CHECK_EQ(tensor_extent(&tensor, "input", 66, &extent, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "\"input\" ends at byte 67, but its buffer has 66");
    CHECK_EQ(tensor_extent(&tensor, "input", 67, &extent, &error), 0);
    CHECK_EQ(extent.begin, 7);
    CHECK_EQ(extent.end, 67);
}

static void extent_of_negative_strides(void)
{
    struct extent extent;
    struct msg_tensor tensor = vector(5, -4, 16);
    CHECK_EQ(tensor_extent(&tensor, "output", 20, &extent, &error), 0);
    CHECK_EQ(extent.begin, 0);
    CHECK_EQ(extent.end, 20);
    tensor.offset = 15;
    CHECK_EQ(tensor_extent(&tensor, "output", 20, &extent, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "\"output\" begins 1 bytes before its buffer; its offset 15 must be at least 16");
}

static void extent_of_nothing(void)
{
    struct extent extent = {1, 2};
    struct msg_tensor tensor = TENSOR(UINT64_MAX, 0, UINT64_MAX);
    tensor.offset = UINT64_MAX;
    CHECK_EQ(tensor_extent(&tensor, "input", 0, &extent, &error), 0);
    CHECK_EQ(extent.begin, extent.end);
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), 0);
}

/* Checks that a tensor beyond its buffer is refused, and that the error says so, however far beyond it reaches. */
static void check_outside(struct msg_tensor tensor, uint64_t buffer_bytes)
{
    struct extent extent = {1, 2};
    error.message[0] = '\0';
    CHECK_EQ(tensor_extent(&tensor, "input", buffer_bytes, &extent, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "\"input\"");
    CHECK(extent.begin == 1 && extent.end == 2);
}

static void extent_survives_overflow(void)
{
    const int64_t strides[] = {INT64_MIN, INT64_MIN + 1, -4, 0, 1, 4, INT64_MAX - 1, INT64_MAX};
    const uint64_t edges[] = {2, 3, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
    const uint64_t offsets[] = {0, 4, (uint64_t)INT64_MAX - 3, (uint64_t)INT64_MAX + 1, UINT64_MAX - 3, UINT64_MAX};
    for (size_t s = 0; s < 8; s++)
        for (size_t n = 0; n < 6; n++)
            for (size_t o = 0; o < 6; o++)
                if (offsets[o] > 4 || (strides[s] != 0 && (n > 1 || llabs(strides[s] / 2) > 2)))
                    check_outside(vector(edges[n], strides[s], offsets[o]), 1000);
    struct msg_tensor tensor = TENSOR(2, 2, 2, 2);
    for (int k = 0; k < 4; k++)
        tensor.strides[k] = INT64_MAX / 2;
    check_outside(tensor, 1000);
    for (int k = 0; k < 4; k++)
        tensor.strides[k] = INT64_MIN / 2;
    tensor.offset = UINT64_MAX;
    check_outside(tensor, 1000);
    check_outside(vector(1, 0, UINT64_MAX), UINT64_MAX);
}

/* An input of 2^62 elements at the same four bytes is inside; as an output they overlap. */
static void broadcast_is_inside(void)
{
    struct extent extent;
    struct msg_tensor tensor = vector(UINT64_C(1) << 62, 0, 4);
    CHECK_EQ(tensor_extent(&tensor, "input", 8, &extent, &error), 0);
    CHECK_EQ(extent.end, 8);
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), -EINVAL);
}

static void disjoint_names_the_stride(void)
{
    struct msg_tensor tensor = TENSOR(4, 8);
    tensor.strides[0] = -31;
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), -EINVAL);
    CHECK_CONTAINS(error.message, "\"output\" overlap: a stride of 31 bytes steps into the 32 bytes");
    tensor.strides[0] = -32;
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), 0);
    tensor.dtype = SCAND_DTYPE_F64;
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), -EINVAL);
}

static void disjoint_ignores_single_elements(void)
{
    struct msg_tensor tensor = TENSOR(1, 8, 1);
    tensor.strides[0] = tensor.strides[2] = 0;
    CHECK_EQ(tensor_disjoint(&tensor, "output", &error), 0);
}

static void same_is_same(void)
{
    struct msg_tensor a = TENSOR(1, 8), b = a;
    b.strides[0] = 99; /* of a dimension with one element */
    CHECK(tensor_same(&a, &b));
    b.strides[1] = 8;
    CHECK(!tensor_same(&a, &b));
    a = b = TENSOR(2, 8);
    b.strides[0] += 4;
    CHECK(!tensor_same(&a, &b));
    b = a, b.offset = 4;
    CHECK(!tensor_same(&a, &b));
    b = a, b.buffer = 2;
    CHECK(!tensor_same(&a, &b));
    b = a, b.dtype = SCAND_DTYPE_F32BE;
    CHECK(tensor_same(&a, &b));
    b = a, b.dtype = SCAND_DTYPE_F64;
    CHECK(!tensor_same(&a, &b));
    b = a, b.shape[1] = 7;
    CHECK(!tensor_same(&a, &b));
    b = a, b.shape_count = 1;
    CHECK(!tensor_same(&a, &b));
}

/*
 * Rows.
 */

static const char *refused(const struct msg_job_submit_params *params)
{
    struct scan_rows rows;
    error.message[0] = '\0';
    CHECK_EQ(submitted_rows(params, &rows, &error), -EINVAL);
    return error.message;
}

static void rows_check_the_params(void)
{
    struct msg_job_submit_params good = scan_of(TENSOR(3, 5), TENSOR(3, 5), 1), bad = good;
    bad.input.strides_count = 1;
    CHECK_CONTAINS(refused(&bad), "\"input\" has 2 dimensions but 1 strides");
    bad = good, bad.output.strides_count = 3;
    CHECK_CONTAINS(refused(&bad), "\"output\" has 2 dimensions but 3 strides");
    bad = good, bad.output = TENSOR(15);
    CHECK_CONTAINS(refused(&bad), "\"input\" has 2 dimensions and \"output\" 1");
    bad = good, bad.output.shape[1] = 4;
    CHECK_CONTAINS(refused(&bad), "dimension 1 of \"input\" is 5 and of \"output\" 4");
    bad = good, bad.axis = 2;
    CHECK_CONTAINS(refused(&bad), "\"axis\" is 2; a tensor of 2 dimensions has 0 to 1");
    bad = good, bad.output.dtype = SCAND_DTYPE_U32;
    CHECK_CONTAINS(refused(&bad), "\"output.dtype\" is \"u32\"; allowed with \"input.dtype\" \"f32\": f32, f64");
}

static void rows_have_coefficients(void)
{
    struct msg_job_submit_params good = scan_of(TENSOR(3, 4, 5), TENSOR(3, 4, 5), 2), bad = good;
    struct scan_rows rows;
    good.op = SCAND_OPERATOR_AFFINE;
    good.coefficients = TENSOR(3, 4, 5);
    bad = good, bad.coefficients = TENSOR(3, 20);
    CHECK_CONTAINS(refused(&bad), "\"input\" has 3 dimensions and \"coefficients\" 2; they must be equal");
    bad = good, bad.coefficients.shape[1] = 1;
    CHECK_CONTAINS(refused(&bad), "dimension 1 of \"input\" is 4 and of \"coefficients\" 1; they must be equal");
    bad = good, bad.coefficients.strides_count = 2;
    CHECK_CONTAINS(refused(&bad), "\"coefficients\" has 3 dimensions but 2 strides");
    CHECK_EQ(submitted_rows(&good, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 1);
    CHECK_EQ(rows.coefficient_stride, 4);
    CHECK_EQ(rows.coefficient_outer_strides[0], 20);
    good.coefficients.strides[1] = good.coefficients.strides[2] = 0; /* then the outer ones cannot be one */
    CHECK_EQ(submitted_rows(&good, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 2);
    CHECK_EQ(rows.coefficient_stride, 0);
    CHECK(rows.coefficient_outer_strides[0] == 80 && rows.coefficient_outer_strides[1] == 0);
    good.coefficients.strides[0] = 0;
    CHECK_EQ(submitted_rows(&good, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 1);
    CHECK_EQ(rows.coefficient_outer_strides[0], 0);
}

static void rows_have_limits(void)
{
    struct msg_job_submit_params params =
        scan_of(TENSOR(2, LIMIT_ROW_SAMPLES + 1), TENSOR(2, LIMIT_ROW_SAMPLES + 1), 1);
    CHECK_CONTAINS(refused(&params), "rows of 8589934593 samples; at most 8589934592");
    params.axis = 0;
    struct scan_rows rows;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, LIMIT_ROW_SAMPLES + 1);
    params = scan_of(TENSOR(1, LIMIT_ROWS + 1), TENSOR(1, LIMIT_ROWS + 1), 0);
    CHECK_CONTAINS(refused(&params), "more than 1099511627776 rows");
    struct msg_tensor huge = TENSOR(2, 2, 2, 2);
    huge.shape[1] = huge.shape[2] = huge.shape[3] = UINT64_C(1) << 63;
    params = scan_of(huge, huge, 0);
    CHECK_CONTAINS(refused(&params), "more than 1099511627776 rows");
}

static void rows_of_nothing(void)
{
    struct scan_rows rows;
    struct msg_job_submit_params params = scan_of(TENSOR(0, 5), TENSOR(0, 5), 1);
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, 0);
    params.axis = 0;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, 0);
    CHECK_EQ(rows.length, 0);
}

#define HUGE (INT64_C(1) << 61)

/* Times 16 they would overflow. */
static void strides_that_no_element_uses_are_replaced(void)
{
    static const int64_t huge[] = {HUGE, -HUGE, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++)
        for (uint64_t single = 0; single < 3; single++)
            for (uint64_t axis = 0; axis < 3; axis++) {
                struct msg_tensor tensor = TENSOR(2, 3, 5);
                struct scan_rows rows;
                tensor.shape[single] = 1;
                tensor.strides[single] = huge[i];
                struct msg_job_submit_params params = scan_of(tensor, tensor, axis);
                params.passes[0] = SCAND_PASS_FORWARD;
                params.op = SCAND_OPERATOR_AFFINE;
                params.coefficients = tensor;
                CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
                CHECK(rows.input_stride <= 60 && rows.input_stride >= 4);
                CHECK_EQ(rows.output_stride, rows.input_stride);
                CHECK_EQ(rows.coefficient_stride, rows.input_stride);
                for (uint32_t k = 0; k < rows.outer_rank; k++)
                    CHECK(rows.input_outer_strides[k] <= 60 && rows.input_outer_strides[k] >= 4);
            }
}

/* Rows of no samples have sums. */
static void strides_of_nothing_are_replaced(void)
{
    struct scan_rows rows;
    struct msg_job_submit_params params = scan_of(TENSOR(1000, 0), TENSOR(1000, 1), 1);
    params.operation = SCAND_OPERATION_REDUCE;
    params.reduction = SCAND_REDUCTION_SUM;
    params.passes_count = 0;
    params.input.strides[0] = params.input.strides[1] = params.output.strides[1] = HUGE;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, 1000);
    CHECK_EQ(rows.input_stride, 4);
    CHECK_EQ(rows.input_outer_strides[0], 4);
    CHECK_EQ(rows.output_outer_strides[0], 4);
}

/* A reduction has one result for each row, for ragged rows, too. */
static void rows_are_reduced(void)
{
    struct scan_rows rows;
    struct msg_job_submit_params params = scan_of(TENSOR(3, 5), TENSOR(3, 1), 1);
    params.operation = SCAND_OPERATION_REDUCE;
    params.reduction = SCAND_REDUCTION_SUM;
    params.passes_count = 0;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, 3);
    CHECK_EQ(rows.output_outer_strides[0], 4);
    params = (struct msg_job_submit_params){.input = TENSOR(50),
                                            .output = vector(3, -24, 48),
                                            .offsets = TENSOR(4),
                                            .operation = SCAND_OPERATION_REDUCE,
                                            .reduction = SCAND_REDUCTION_MAX};
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 1);
    CHECK_EQ(rows.outer_shape[0], 3);
    CHECK_EQ(rows.input_outer_strides[0], 0);
    CHECK_EQ(rows.output_outer_strides[0], -24);
    params.output = TENSOR(1);
    CHECK_EQ(submitted_rows(&params, &rows, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "dimension 0 of \"output\" is 1; it must be 3, the rows that \"offsets\" makes");
    params.output = TENSOR(0);
    params.offsets = TENSOR(1);
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.row_count, 0);
}

static void rows_carry_the_rule(void)
{
    struct scan_rows rows;
    struct msg_job_submit_params params = scan_of(TENSOR(3, 5), TENSOR(3, 5), 1);
    params.passes[0] = SCAND_PASS_BACKWARD, params.passes[1] = SCAND_PASS_FORWARD, params.passes_count = 2;
    params.kind = SCAND_KIND_EXCLUSIVE;
    params.accumulator = SCAND_ACCUMULATOR_F2;
    params.intermediate = SCAND_INTERMEDIATE_F64;
    params.output.dtype = SCAND_DTYPE_F64;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.rule.pass_count, 2);
    CHECK_EQ(rows.rule.passes[0], SCAND_PASS_BACKWARD);
    CHECK_EQ(rows.rule.passes[1], SCAND_PASS_FORWARD);
    CHECK_EQ(rows.rule.kind, SCAND_KIND_EXCLUSIVE);
    CHECK_EQ(rows.rule.accumulator, SCAND_ACCUMULATOR_F2);
    CHECK_EQ(rows.rule.intermediate, SCAND_DTYPE_F64);
    CHECK_EQ(rows.rule.output, SCAND_DTYPE_F64);
}

static void rows_merge(void)
{
    struct scan_rows rows;
    struct msg_job_submit_params params = scan_of(TENSOR(3, 4, 5, 6), TENSOR(3, 4, 5, 6), 3);
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 1);
    CHECK_EQ(rows.outer_shape[0], 60);
    CHECK_EQ(rows.input_outer_strides[0], 24);
    params.output.strides[0] += 4; /* a gap in one of the two keeps both apart */
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.outer_rank, 2);
    CHECK_EQ(rows.outer_shape[0], 3);
    CHECK_EQ(rows.outer_shape[1], 20);
}

/*
 * Small tensors against an enumeration of their elements.
 */

static int64_t random_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(state) % (uint64_t)(high - low + 1));
}

static struct msg_tensor random_tensor(uint64_t *state, int64_t least_shape)
{
    struct msg_tensor tensor = {.offset = (uint64_t)random_between(state, 0, 120)};
    tensor.dtype = (uint32_t)random_between(state, 0, SCAND_DTYPE_COUNT - 1);
    tensor.shape_count = tensor.strides_count = (uint32_t)random_between(state, 1, SCAND_RANK_MAX);
    for (uint32_t k = 0; k < tensor.shape_count; k++) {
        tensor.shape[k] = (uint64_t)random_between(state, least_shape, 4);
        tensor.strides[k] = random_between(state, -14, 14) * random_between(state, 1, 4);
    }
    return tensor;
}

static void tensor_print(const struct msg_tensor *tensor)
{
    fprintf(stderr, "  dtype %u, offset %llu:", tensor->dtype, (unsigned long long)tensor->offset);
    for (uint32_t k = 0; k < tensor->shape_count; k++)
        fprintf(stderr, " %llu by %lld", (unsigned long long)tensor->shape[k], (long long)tensor->strides[k]);
    fprintf(stderr, "\n");
}

static uint64_t element_count(const struct msg_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t k = 0; k < tensor->shape_count; k++)
        count *= tensor->shape[k];
    return count;
}

/* The byte at which the i-th element in C order begins, counted from the buffer's first. */
static int64_t element_address(const struct msg_tensor *tensor, uint64_t i)
{
    int64_t address = (int64_t)tensor->offset;
    for (uint32_t k = tensor->shape_count; k-- > 0;) {
        address += (int64_t)(i % tensor->shape[k]) * tensor->strides[k];
        i /= tensor->shape[k];
    }
    return address;
}

static void elements_reach(const struct msg_tensor *tensor, int64_t *begin, int64_t *end)
{
    int64_t size = (int64_t)dtype_size_bytes(tensor->dtype);
    *begin = INT64_MAX, *end = INT64_MIN;
    for (uint64_t i = 0; i < element_count(tensor); i++) {
        int64_t address = element_address(tensor, i);
        *begin = address < *begin ? address : *begin;
        *end = address + size > *end ? address + size : *end;
    }
}

static void random_extents(void)
{
    uint64_t state = random_seed();
    for (int trial = 0; trial < TRIALS && !check_failures; trial++) {
        struct msg_tensor tensor = random_tensor(&state, 0);
        struct extent extent = {1, 1};
        int64_t begin, end, buffer_bytes = random_between(&state, 0, 400);
        int r = tensor_extent(&tensor, "input", (uint64_t)buffer_bytes, &extent, &error);
        elements_reach(&tensor, &begin, &end);
        if (element_count(&tensor) == 0) {
            CHECK(r == 0 && extent.begin == extent.end);
        } else {
            CHECK_EQ(r == 0, begin >= 0 && end <= buffer_bytes);
            CHECK(r != 0 || (extent.begin == (uint64_t)begin && extent.end == (uint64_t)end));
        }
        if (check_failures)
            tensor_print(&tensor);
    }
}

static bool elements_overlap(const struct msg_tensor *tensor)
{
    int64_t size = (int64_t)dtype_size_bytes(tensor->dtype);
    uint64_t count = element_count(tensor);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < i; j++) {
            int64_t gap = element_address(tensor, i) - element_address(tensor, j);
            if (gap < size && -gap < size)
                return true;
        }
    return false;
}

/* True when some dimension's step does not clear what all the dimensions of smaller or equal steps reach: such a tensor
 * may be refused. */
static bool is_nested(const struct msg_tensor *tensor)
{
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        int64_t step = llabs(tensor->strides[k]), inside = (int64_t)dtype_size_bytes(tensor->dtype);
        for (uint32_t j = 0; j < tensor->shape_count; j++) {
            int64_t other = llabs(tensor->strides[j]);
            if (j != k && (other < step || (other == step && j < k)))
                inside += other * ((int64_t)tensor->shape[j] - 1);
        }
        if (tensor->shape[k] > 1 && step < inside)
            return false;
    }
    return true;
}

static void random_disjoint(void)
{
    uint64_t state = random_seed();
    unsigned accepted = 0, needlessly_refused = 0;
    for (int trial = 0; trial < TRIALS && !check_failures; trial++) {
        struct msg_tensor tensor = random_tensor(&state, 1);
        bool overlap = elements_overlap(&tensor);
        int r = tensor_disjoint(&tensor, "output", &error);
        CHECK(r == 0 || r == -EINVAL);
        CHECK(r != 0 || !overlap);
        CHECK_EQ(r == 0, is_nested(&tensor));
        if (tensor.shape_count == 1)
            CHECK_EQ(r != 0, overlap);
        accepted += r == 0;
        needlessly_refused += r != 0 && !overlap;
        if (check_failures)
            tensor_print(&tensor);
    }
    CHECK(accepted > TRIALS / 50);
    CHECK(needlessly_refused < TRIALS / 8);
}

/* Accepts any array that was allocated, sliced, reversed and transposed, as NumPy does. */
static void random_slices_are_disjoint(void)
{
    uint64_t state = random_seed();
    for (int trial = 0; trial < TRIALS && !check_failures; trial++) {
        struct msg_tensor tensor = random_tensor(&state, 1);
        uint32_t order[SCAND_RANK_MAX] = {0, 1, 2, 3};
        int64_t stride = (int64_t)dtype_size_bytes(tensor.dtype) + random_between(&state, 0, 3);
        for (uint32_t k = 0; k < tensor.shape_count; k++) {
            uint32_t other = k + (uint32_t)random_between(&state, 0, tensor.shape_count - 1 - k), at = order[other];
            order[other] = order[k];
            int64_t step = random_between(&state, 1, 3), sign = random_between(&state, 0, 1) ? 1 : -1;
            tensor.strides[at] = sign * step * stride;
            stride *= step * (int64_t)tensor.shape[at] + random_between(&state, 0, 2);
        }
        CHECK(!elements_overlap(&tensor));
        CHECK_EQ(tensor_disjoint(&tensor, "output", &error), 0);
        if (check_failures)
            tensor_print(&tensor);
    }
}

/* Strides as allocated, so that some dimensions merge, some of them changed. */
static void random_strides(uint64_t *state, struct msg_tensor *tensor)
{
    int64_t stride = (int64_t)dtype_size_bytes(tensor->dtype);
    for (uint32_t k = tensor->shape_count; k-- > 0;) {
        tensor->strides[k] = random_between(state, 0, 4) ? stride : random_between(state, -40, 40);
        stride = tensor->strides[k] * (int64_t)tensor->shape[k];
    }
}

/* The i-th sample in C order of the tensor whose axis was moved to the end: its number in C order of the tensor itself.
 */
static uint64_t sample_number(const struct msg_tensor *tensor, uint64_t axis, uint64_t row, uint64_t sample)
{
    uint64_t number = 0, weight = 1;
    for (uint32_t k = tensor->shape_count; k-- > 0;) {
        uint64_t coordinate = k == axis ? sample : row % tensor->shape[k];
        if (k != axis)
            row /= tensor->shape[k];
        number += coordinate * weight;
        weight *= tensor->shape[k];
    }
    return number;
}

static void check_rows(const struct msg_job_submit_params *params, const struct scan_rows *rows)
{
    const struct msg_tensor *input = &params->input, *output = &params->output;
    CHECK_EQ(rows->row_count * rows->length, element_count(input));
    for (uint64_t row = 0; row < rows->row_count; row++)
        for (uint64_t i = 0; i < rows->length; i++) {
            uint64_t number = sample_number(input, params->axis, row, i);
            int64_t from = scan_row_offset(rows, rows->input_outer_strides, row) + (int64_t)i * rows->input_stride;
            int64_t to = scan_row_offset(rows, rows->output_outer_strides, row) + (int64_t)i * rows->output_stride;
            CHECK_EQ(from, element_address(input, number) - (int64_t)input->offset);
            CHECK_EQ(to, element_address(output, number) - (int64_t)output->offset);
        }
}

static void random_rows(void)
{
    uint64_t state = random_seed();
    unsigned ranks[SCAN_OUTER_MAX + 1] = {0};
    for (int trial = 0; trial < TRIALS && !check_failures; trial++) {
        struct msg_tensor input = random_tensor(&state, trial % 8 ? 1 : 0), output = input;
        if (trial % 2 && dtype_class(output.dtype) <= SCAND_CLASS_F64)
            input.dtype = SCAND_DTYPE_F32;
        random_strides(&state, &input);
        random_strides(&state, &output);
        struct msg_job_submit_params params =
            scan_of(input, output, (uint64_t)random_between(&state, 0, input.shape_count - 1));
        struct scan_rows rows;
        CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
        CHECK(rows.outer_rank <= SCAN_OUTER_MAX);
        check_rows(&params, &rows);
        ranks[rows.outer_rank % (SCAN_OUTER_MAX + 1)]++;
        if (check_failures)
            tensor_print(&input), tensor_print(&output);
    }
    for (int rank = 0; rank <= SCAN_OUTER_MAX; rank++)
        CHECK(check_failures || ranks[rank] > TRIALS / 200);
}

static const struct test tests[] = {
    TEST(extent_is_exact),
    TEST(extent_of_negative_strides),
    TEST(extent_of_nothing),
    TEST(extent_survives_overflow),
    TEST(broadcast_is_inside),
    TEST(disjoint_names_the_stride),
    TEST(disjoint_ignores_single_elements),
    TEST(same_is_same),
    TEST(rows_check_the_params),
    TEST(rows_have_coefficients),
    TEST(rows_have_limits),
    TEST(rows_of_nothing),
    TEST(strides_that_no_element_uses_are_replaced),
    TEST(strides_of_nothing_are_replaced),
    TEST(rows_are_reduced),
    TEST(rows_carry_the_rule),
    TEST(rows_merge),
    TEST(random_extents),
    TEST(random_disjoint),
    TEST(random_slices_are_disjoint),
    TEST(random_rows),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

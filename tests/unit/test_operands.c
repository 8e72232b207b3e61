/* Operands of steps as jobs lay them out: what each follows, how long it is, and what it may not be. The request is
 * made by hand, so that operands of any kind are there, whatever operations have. */
#include <errno.h>
#include <string.h>

#include "daemon/core/jobs/rows.h"
#include "tests/check.h"

static struct error error;
static struct msg_job_run_params params;
static struct msg_tensor tensors[LIMIT_JOB_OPERANDS];
static struct request request;
static struct operand operands[LIMIT_JOB_OPERANDS];
static struct scan_rows rows;

/* A dense tensor of f32. */
static struct msg_tensor dense(uint32_t rank, uint64_t a, uint64_t b, uint64_t c)
{
    struct msg_tensor tensor = {
        .dtype = SCAND_DTYPE_F32, .shape = {a, b, c}, .shape_count = rank, .strides_count = rank};
    int64_t stride = sizeof(float);
    for (uint32_t k = rank; k-- > 0; stride *= (int64_t)tensor.shape[k])
        tensor.strides[k] = stride;
    return tensor;
}

/* A job along `axis` with samples of 4 x 10 x 6 and results of 4 x length x 6. */
static void begin(uint64_t axis, uint64_t length)
{
    params = (struct msg_job_run_params){.input = dense(3, 4, 10, 6), .output = dense(3, 4, 10, 6), .axis = axis};
    params.output.shape[axis] = length;
    params.output = dense(3, params.output.shape[0], params.output.shape[1], params.output.shape[2]);
    request = (struct request){.params = &params, .operand_count = OPERAND_FURTHER};
    request.operands[OPERAND_INPUT] = (struct request_operand){
        .tensor = &params.input, .name = "input", .follows = FOLLOWS_SAMPLES, .length = params.input.shape[axis]};
    request.operands[OPERAND_OUTPUT] = (struct request_operand){.tensor = &params.output,
                                                                .name = "output",
                                                                .access = ACCESS_WRITE,
                                                                .follows = FOLLOWS_SAMPLES,
                                                                .length = length};
}

static void add(const char *name, enum follows follows, uint64_t length, struct msg_tensor tensor)
{
    const uint32_t i = request.operand_count++;
    tensors[i] = tensor;
    request.operands[i] =
        (struct request_operand){.tensor = &tensors[i], .name = name, .step = 1, .follows = follows, .length = length};
}

static int lay_out(void)
{
    memset(operands, 0, sizeof operands);
    rows = (struct scan_rows){.length = 0};
    error.message[0] = '\0';
    int r = rows_check_tensors(&request, &error);
    return r ? r : rows_lay_out(&request, &rows, operands, &error);
}

static void check_refused(const char *message)
{
    CHECK_EQ(lay_out(), -EINVAL);
    CHECK_CONTAINS(error.message, message);
}

static void every_kind(void)
{
    begin(1, 30);
    add("samples", FOLLOWS_SAMPLES, 30, dense(3, 4, 30, 6));
    add("rows", FOLLOWS_ROWS, 1, dense(3, 4, 1, 6));
    add("vectors", FOLLOWS_VECTORS, 7, dense(3, 4, 7, 6));
    add("job", FOLLOWS_JOB, 9, dense(1, 9, 0, 0));
    CHECK_EQ(lay_out(), 0);
    CHECK(rows.row_count == 24 && rows.length == 10);
    CHECK(rows.outer_rank == 2 && rows.outer_shape[0] == 4 && rows.outer_shape[1] == 6);
    const struct operand *further = &operands[OPERAND_FURTHER];
    CHECK(further[0].length == 30 && further[0].stride == 24 && further[0].outer_strides[0] == 720);
    CHECK(further[1].length == 1 && further[1].outer_strides[0] == 24 && further[1].outer_strides[1] == 4);
    CHECK(further[2].length == 7 && further[2].stride == 24 && further[2].outer_strides[0] == 168);
    CHECK(further[3].length == 9 && further[3].stride == 4 && further[3].outer_strides[0] == 0);
}

/* Rows merge where all operands allow it: one of another length along the last axis does, one that all rows share does,
 * one along an axis between them does not. */
static void merging(void)
{
    begin(2, 18);
    add("rows", FOLLOWS_ROWS, 1, dense(3, 4, 10, 1));
    add("vectors", FOLLOWS_VECTORS, 7, dense(3, 4, 10, 7));
    add("job", FOLLOWS_JOB, 9, dense(1, 9, 0, 0));
    CHECK_EQ(lay_out(), 0);
    CHECK(rows.outer_rank == 1 && rows.outer_shape[0] == 40);
    CHECK_EQ(operands[OPERAND_FURTHER + 1].outer_strides[0], 28);
    tensors[OPERAND_FURTHER + 1].strides[0] = 0; /* the same vectors for each plane */
    CHECK_EQ(lay_out(), 0);
    CHECK(rows.outer_rank == 2 && operands[OPERAND_FURTHER + 1].outer_strides[0] == 0);
}

static void wrong_shapes(void)
{
    begin(1, 30);
    add("samples", FOLLOWS_SAMPLES, 10, dense(3, 4, 11, 6));
    check_refused("dimension 1 of \"input\" is 10 and of \"steps[1].samples\" 11; they must be equal");
    begin(1, 30);
    add("samples", FOLLOWS_SAMPLES, 30, dense(3, 4, 10, 6));
    check_refused(
        "dimension 1 of \"steps[1].samples\" is 10; it must be 30, which the steps before it make of the 10 of");
    begin(1, 30);
    add("samples", FOLLOWS_SAMPLES, 30, dense(3, 5, 30, 6));
    check_refused("dimension 0 of \"input\" is 4 and of \"steps[1].samples\" 5");
    begin(1, 30);
    add("rows", FOLLOWS_ROWS, 1, dense(3, 4, 10, 6));
    check_refused("dimension 1 of \"steps[1].rows\", along which rows are reduced, is 10; it must be 1");
    begin(1, 30);
    add("vectors", FOLLOWS_VECTORS, 7, dense(3, 4, 7, 5));
    check_refused("dimension 2 of \"input\" is 6 and of \"steps[1].vectors\" 5");
    begin(1, 30);
    add("vectors", FOLLOWS_VECTORS, 7, dense(2, 7, 6, 0));
    check_refused("\"input\" has 3 dimensions and \"steps[1].vectors\" 2; they must be equal");
    begin(1, 30);
    add("job", FOLLOWS_JOB, 9, dense(2, 9, 2, 0));
    check_refused("\"steps[1].job\" has 2 dimensions; it must have one, a vector that all rows share");
    begin(1, 30);
    params.output.shape[1] = 20;
    check_refused(
        "dimension 1 of \"output\" is 20; it must be 30, which the steps before it make of the 10 of \"input\"");
}

static const struct test tests[] = {TEST(every_kind), TEST(merging), TEST(wrong_shapes), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

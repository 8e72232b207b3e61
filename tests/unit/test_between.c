/* Rows between steps: which of a device's memories has them, and where they lie. */
#include "daemon/device/between.h"
#include "tests/check.h"

static const struct step_kernel apart = {.name = "apart"}, in_place = {.name = "in place", .in_place = true};
static unsigned char first_memory[4096], second_memory[4096];

static struct step scan_of(uint64_t length)
{
    return (struct step){
        .operation = OPERATION_scan, .rule = {.operation = SCAND_OPERATION_SCAN, .pass_count = 1}, .length = length};
}

static struct step step_of(const struct step_kernel *kernel, uint64_t length)
{
    return (struct step){.operation = OPERATION_upsample, .kernel = kernel, .length = length};
}

static void memories(void)
{
    const struct step steps[] = {scan_of(5),          scan_of(5), step_of(&in_place, 5), step_of(&in_place, 10),
                                 step_of(&apart, 10), scan_of(10)};
    static const uint32_t counts[] = {0, 0, 1, 1, 1, 2, 2}; /* memories for the first so many of these steps */
    for (uint32_t count = 1; count <= 6; count++) {
        const struct chunk chunk = {.steps = steps, .step_count = count};
        CHECK_EQ(between_memories(&chunk), counts[count]);
    }
}

/* Three rows of seven samples, of which a chunk has two; the middle one is at the beginning of the memories. */
static void dense_values(void)
{
    const struct step steps[] = {step_of(&apart, 7), step_of(&apart, 14), scan_of(14)};
    float input[3][7], output[3][14], vector[4];
    const struct step_operand operands[] = {
        [OPERAND_INPUT] = {.origin = (char *)input, .length = 7, .stride = 4, .outer_strides = {28}},
        [OPERAND_OUTPUT] = {.origin = (char *)output, .length = 14, .stride = 4, .outer_strides = {56}},
        [OPERAND_FURTHER] = {.origin = (char *)vector, .length = 4, .stride = 4},
    };
    struct step with_operand[3] = {steps[0], steps[1], steps[2]};
    with_operand[1].further[2] = OPERAND_FURTHER;
    const struct scan_rows rows = {.length = 7, .row_count = 3, .outer_rank = 1, .outer_shape = {3}};
    const struct chunk chunk = {.rows = &rows, .first = 1, .count = 2, .steps = with_operand, .step_count = 3};
    const struct chunk_rows whole = {
        .chunk = &chunk, .rows = &rows, .operands = operands, .first = 1, .memories = {first_memory, second_memory}};
    const struct step_rows first = chunk_step_rows(&whole, 0), second = chunk_step_rows(&whole, 1);
    const struct scan_rows last = chunk_scan_rows(&whole, 2);
    CHECK(first.input.origin == (char *)input && step_row(&first, &first.output, 1) == (char *)first_memory);
    CHECK(first.output.length == 7 && step_row(&second, &second.input, 2) == (char *)first_memory + 28);
    CHECK(second.output.length == 14 && step_row(&second, &second.output, 2) == (char *)second_memory + 56);
    CHECK(!second.further[0].origin && !second.further[1].origin && second.further[2].origin == (char *)vector);
    CHECK((const char *)last.input + scan_row_offset(&last, last.input_outer_strides, 1) == (char *)second_memory);
    CHECK(last.length == 14 && last.output == output && last.output_outer_strides[0] == 56);
}

/* Ragged rows have the places of their samples in the line, from the chunk's first one on. */
static void ragged_values(void)
{
    static const uint64_t offsets[] = {3, 5, 9, 20};
    const struct step steps[] = {
        scan_of(30),
        {.operation = OPERATION_reduce, .rule = {.operation = SCAND_OPERATION_REDUCE, .pass_count = 1}, .length = 1}};
    float line[30], results[3];
    const struct step_operand operands[] = {
        [OPERAND_INPUT] = {.origin = (char *)line, .length = 30, .stride = 4, .on_line = true},
        [OPERAND_OUTPUT] = {.origin = (char *)results, .length = 1, .stride = 4, .outer_strides = {4}},
    };
    const struct scan_rows rows = {
        .length = 11, .row_count = 3, .offsets = offsets, .outer_rank = 1, .outer_shape = {3}};
    const struct chunk chunk = {.rows = &rows, .first = 1, .count = 2, .steps = steps, .step_count = 2};
    const struct chunk_rows whole = {
        .chunk = &chunk, .rows = &rows, .operands = operands, .first = 1, .memories = {first_memory, NULL}};
    const struct scan_rows scan = chunk_scan_rows(&whole, 0), reduction = chunk_scan_rows(&whole, 1);
    CHECK(scan.length == 11 && scan.outer_rank == 0 && scan.input == line);
    CHECK((char *)scan.output + 5 * scan.output_stride == (char *)first_memory);
    CHECK(reduction.outer_rank == 1 && reduction.input == scan.output && reduction.output == results);
    CHECK(reduction.output_outer_strides[0] == 4 && reduction.input_outer_strides[0] == 0);
}

static const struct test tests[] = {TEST(memories), TEST(dense_values), TEST(ragged_values), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

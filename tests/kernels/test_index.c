/* Values of indices that are out of range: the first one is found, wherever it is. */
#include "kernels/steps/index/index.h"

#include "tests/check.h"
#include "tests/kernels/step_cuda.h"

#define ROWS   7
#define LENGTH 300
#define FROM   3
#define BELOW  50

static const struct index_range range = {FROM, BELOW};

static uint64_t seed;
static _Alignas(16) char memory[ROWS * LENGTH * 8];

struct layout {
    enum scand_dtype dtype;
    bool columns;
};

static struct step_rows rows_of(struct layout layout)
{
    const int64_t item = codec_bytes(layout.dtype);
    return (struct step_rows){.row_count = ROWS,
                              .outer_rank = 1,
                              .outer_shape = {ROWS},
                              .input = {.origin = memory,
                                        .length = LENGTH,
                                        .stride = layout.columns ? ROWS * item : item,
                                        .outer_strides = {layout.columns ? item : LENGTH * item},
                                        .dtype = layout.dtype}};
}

static void set(const struct step_rows *rows, uint64_t row, uint64_t element, int64_t value)
{
    char *at = step_row(rows, &rows->input, row) + (int64_t)element * rows->input.stride;
    codec_encode_integer(rows->input.dtype, (uint64_t)value, at);
}

static void fill(const struct step_rows *rows)
{
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t i = 0; i < LENGTH; i++)
            set(rows, row, i, (int64_t)(FROM + random_next(&seed) % (BELOW - FROM)));
}

static void check(const struct step_rows *rows, uint64_t first, uint64_t count, const struct index_fault *expected)
{
    struct index_fault faults[2];
    unsigned implementations = 1;
    faults[0] = index_check(rows, first, count, range);
    if (step_cuda_is_available()) {
        struct step_rows there = *rows;
        struct step_cuda_memory all = {memory, sizeof memory, &there.input};
        uint64_t verdict[2];
        const char *error = step_cuda_check(&there, &all, first, count, range, verdict);
        CHECK(!error);
        faults[1] = index_verdict(&there, first, verdict);
        implementations++;
    }
    for (unsigned i = 0; i < implementations; i++) {
        CHECK_EQ(faults[i].found, expected->found);
        if (!expected->found)
            continue;
        CHECK_EQ(faults[i].row, expected->row);
        CHECK_EQ(faults[i].element, expected->element);
        CHECK_EQ(faults[i].value, expected->value);
    }
}

static void the_first_is_found(void)
{
    static const struct layout layouts[] = {
        {SCAND_DTYPE_I32, false}, {SCAND_DTYPE_I32, true}, {SCAND_DTYPE_I64, false}, {SCAND_DTYPE_I64, true}};
    static const int64_t values[] = {BELOW, FROM - 1, 0, -1, INT32_MAX, INT32_MIN};
    for (unsigned i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        for (unsigned k = 0; k < sizeof values / sizeof values[0]; k++) {
            const struct step_rows rows = rows_of(layouts[i]);
            const struct index_fault none = {.found = false};
            const uint64_t row = random_next(&seed) % ROWS, element = random_next(&seed) % LENGTH;
            const struct index_fault first = {true, row, element, values[k]};
            fill(&rows);
            set(&rows, ROWS - 1, LENGTH - 1, BELOW - 1);
            set(&rows, 0, 0, FROM);
            check(&rows, 0, ROWS, &none);
            set(&rows, ROWS - 1, LENGTH - 1, BELOW);
            set(&rows, row, element, values[k]);
            check(&rows, 0, ROWS, &first);
            check(&rows, row, 1, &first);
            check(&rows, 0, row, &none);
        }
}

static void all_64_bits_count(void)
{
    const struct step_rows rows = rows_of((struct layout){SCAND_DTYPE_I64, false});
    const int64_t value = (INT64_C(1) << 32) + 3;
    const struct index_fault expected = {true, 2, 0, value};
    fill(&rows);
    set(&rows, 2, 0, value);
    check(&rows, 0, ROWS, &expected);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(the_first_is_found), TEST(all_64_bits_count), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}

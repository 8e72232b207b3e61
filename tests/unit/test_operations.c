/* The operations as hello describes them, compared with PROTOCOL.md. */
#include "protocol/describe.h"

#include "protocol/codec.h"
#include "tests/check.h"

#define ROW_BYTES 2048

static struct msg_operation described[OPERATION_COUNT];

static void describe(void)
{
    for (uint32_t i = 0; i < OPERATION_COUNT; i++)
        operation_describe(i, &described[i]);
}

/* Every field of a step but the operation's own name is a parameter or an operand. */
static void everything_is_told(void)
{
    describe();
    for (uint32_t i = 0; i < OPERATION_COUNT; i++) {
        const struct msg_operation *operation = &described[i];
        CHECK_EQ(operation->parameters_count + operation->operands_count + 1, step_types[i]->field_count);
        CHECK(strcmp(operation->name, step_words.words[i]) == 0);
        CHECK(operation->line[0] != '\0');
    }
    const struct msg_operation *scan = &described[OPERATION_scan];
    const struct msg_parameter *passes = &scan->parameters[0], *demean = &scan->parameters[5];
    CHECK(strcmp(passes->name, "passes") == 0 && strcmp(passes->kind, "words") == 0);
    CHECK(passes->required == 1 && passes->most == SCAND_PASSES_MAX && passes->words_count == SCAND_PASS_COUNT);
    CHECK(strcmp(passes->words[1], "backward") == 0);
    CHECK(strcmp(demean->name, "demean") == 0 && strcmp(demean->kind, "flag") == 0 && demean->required == 0);
    CHECK(strcmp(scan->operands[0].name, "coefficients") == 0 && strcmp(scan->operands[0].access, "read") == 0);
    CHECK(strcmp(scan->operands[0].follows, "samples") == 0 && strcmp(scan->operands[0].class, "input") == 0);
}

static char *protocol_text(void)
{
    static char text[1 << 18];
    FILE *file = fopen(PROTOCOL_PATH, "re");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    CHECK(size > 0 && size < sizeof text - 1);
    if (file)
        fclose(file);
    text[size] = '\0';
    return text;
}

static void check_row(const char *text, const char *row)
{
    if (!strstr(text, row))
        fprintf(stderr, "PROTOCOL.md lacks the line\n%s\n", row);
    CHECK(strstr(text, row));
}

static void check_parameter(const char *text, const struct msg_parameter *parameter)
{
    char row[ROW_BYTES];
    int n = snprintf(row, sizeof row, "\n| `%s`%s | ", parameter->name, parameter->required ? " *" : "");
    if (strcmp(parameter->kind, "words") == 0)
        n += snprintf(row + n, sizeof row - (size_t)n, "1 to %d ", (int)parameter->most);
    n += snprintf(row + n, sizeof row - (size_t)n, "%s", parameter->kind);
    for (uint32_t i = 0; i < parameter->words_count; i++)
        n += snprintf(row + n, sizeof row - (size_t)n, "%s `%s`", i ? "," : ":", parameter->words[i]);
    snprintf(row + n, sizeof row - (size_t)n, " | %s |\n", parameter->line);
    check_row(text, row);
}

static void check_operand(const char *text, const struct msg_operand *operand)
{
    char row[ROW_BYTES];
    snprintf(row, sizeof row, "\n| `%s`%s | operand: %s, follows %s, dtypes: %s | %s |\n", operand->name,
             operand->required ? " *" : "", operand->access, operand->follows, operand->class, operand->line);
    check_row(text, row);
}

static void the_specification_has_the_list(void)
{
    const char *text = protocol_text();
    describe();
    for (uint32_t i = 0; i < OPERATION_COUNT; i++) {
        const struct msg_operation *operation = &described[i];
        char heading[ROW_BYTES];
        snprintf(heading, sizeof heading, "\n#### %.*s\n\n%c%.*s.", LIMIT_NAME_BYTES, operation->name,
                 operation->line[0] - 'a' + 'A', LIMIT_ERROR_BYTES, operation->line + 1);
        check_row(text, heading);
        for (uint32_t k = 0; k < operation->parameters_count; k++)
            check_parameter(text, &operation->parameters[k]);
        for (uint32_t k = 0; k < operation->operands_count; k++)
            check_operand(text, &operation->operands[k]);
    }
}

static const struct test tests[] = {
    TEST(everything_is_told),
    TEST(the_specification_has_the_list),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

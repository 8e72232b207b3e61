/* The lists from which messages are made, compared with PROTOCOL.md, and operations with README.md, too. */
#include "protocol/describe.h"

#include "protocol/encoding.h"
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

static char *text_of(const char *path)
{
    static char text[1 << 18];
    FILE *file = fopen(path, "re");
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
    const char *text = text_of(PROTOCOL_PATH);
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

/* Checks that a document has the word in backticks, or a section of that name. */
static void check_word(const char *text, const char *word)
{
    char quoted[ROW_BYTES], heading[ROW_BYTES];
    snprintf(quoted, sizeof quoted, "`%s`", word);
    snprintf(heading, sizeof heading, "# %s\n", word);
    const bool is_there = strstr(text, quoted) || strstr(text, heading);
    if (!is_there)
        fprintf(stderr, "the document lacks %s\n", quoted);
    CHECK(is_there);
}

static void the_specification_has_every_word(void)
{
    static const struct words *const lists[] = {
        &operation_words, &reduction_words, &dtype_words,     &accumulator_words, &intermediate_words,
        &kind_words,      &operator_words,  &pass_words,      &place_words,       &sharing_words,
        &event_words,     &priority_words,  &job_state_words,
    };
    const char *text = text_of(PROTOCOL_PATH);
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++)
        for (uint32_t i = 0; i < lists[list]->count; i++)
            check_word(text, lists[list]->words[i]);
}

static void the_specification_has_every_name(void)
{
#define X(NAME, ...) &msg_##NAME##_type,
    static const struct map_type *const types[] = {MAPS_LIST(X)};
#undef X
    const char *text = text_of(PROTOCOL_PATH);
    for (size_t type = 0; type < sizeof types / sizeof types[0]; type++)
        for (size_t i = 0; i < types[type]->field_count; i++)
            check_word(text, types[type]->fields[i].name);
    for (uint32_t method = 0; method < METHOD_COUNT; method++)
        check_word(text, method_name(method));
#define X(NAME, CODE, WORD, ...) check_word(text, WORD);
    SCAND_STATUSES(X)
#undef X
}

static void the_readme_has_every_operation(void)
{
    const char *text = text_of(README_PATH);
    for (uint32_t i = 0; i < OPERATION_COUNT; i++)
        check_word(text, step_words.words[i]);
}

static const struct test tests[] = {
    TEST(everything_is_told),
    TEST(the_specification_has_the_list),
    TEST(the_specification_has_every_word),
    TEST(the_specification_has_every_name),
    TEST(the_readme_has_every_operation),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

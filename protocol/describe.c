#include "describe.h"

#include <assert.h>
#include <string.h>

#include "encoding.h"

/* The fields of a row that the tables of fields lack: the line, and how operands are used. */
struct about {
    const char *line;
    enum access access;
    enum follows follows;
    enum operand_class class;
};

// clang-format off
#define ABOUT(S, NAME, KIND, PRESENCE, DETAIL, ...) {.line = __VA_ARGS__},
#define X(NAME, FIELDS, LENGTH, WORD, LINE) static const struct about NAME##_about[] = {FIELDS(ABOUT, NAME)};
OPERATIONS(X)
#undef X

#define OPERAND_U64(...)
#define OPERAND_F64(...)
#define OPERAND_WORD(...)
#define OPERAND_WORDS(...)
#define OPERAND_MAP(S, NAME, LINE, ACCESS, FOLLOWS, CLASS) {#NAME, offsetof(struct msg_##S, NAME), ACCESS, FOLLOWS, CLASS},
#define OPERAND(S, NAME, KIND, PRESENCE, DETAIL, ...) OPERAND_##KIND(S, NAME, __VA_ARGS__)
#define X(NAME, FIELDS, LENGTH, WORD, LINE) static const struct operand_row NAME##_operands[] = {FIELDS(OPERAND, NAME){.name = NULL}};
OPERATIONS(X)
#undef X

const struct operand_row *const operand_rows[OPERATION_COUNT] = {
#define X(NAME, ...) NAME##_operands,
    OPERATIONS(X)
#undef X
};

static const struct {
    const char *line;
    const struct about *fields;
} about_operations[OPERATION_COUNT] = {
#define X(NAME, FIELDS, LENGTH, WORD, LINE) {LINE, NAME##_about},
    OPERATIONS(X)
#undef X
};
// clang-format on

static void text_put(char *out, size_t size, const char *text)
{
    size_t length = strlen(text);
    assert(length < size);
    memcpy(out, text, length + 1);
}

/* Numbers are told from 0 to `most`, which is 1 of what is only said or not. */
static const char *kind_word(const struct field *field)
{
    switch (field->kind) {
    case FIELD_WORD:
        return "word";
    case FIELD_WORDS:
        return "words";
    case FIELD_F64:
        return "number";
    default:
        assert(field->kind == FIELD_U64);
        return field->max == 1 ? "flag" : "integer";
    }
}

static void describe_parameter(const struct field *field, const struct about *about, struct msg_parameter *out)
{
    text_put(out->name, sizeof out->name, field->name);
    text_put(out->kind, sizeof out->kind, kind_word(field));
    text_put(out->line, sizeof out->line, about->line);
    out->required = field->required;
    out->most = field->max;
    const struct words *words = field->kind == FIELD_WORD || field->kind == FIELD_WORDS ? field->of : NULL;
    for (size_t i = 0; words && i < words->count; i++) {
        assert(out->words_count < LIMIT_PARAMETER_WORDS);
        text_put(out->words[out->words_count++], LIMIT_NAME_BYTES, words->words[i]);
    }
}

static void describe_operand(const struct field *field, const struct about *about, struct msg_operand *out)
{
    text_put(out->name, sizeof out->name, field->name);
    text_put(out->access, sizeof out->access, access_words.words[about->access]);
    text_put(out->follows, sizeof out->follows, follows_words.words[about->follows]);
    text_put(out->class, sizeof out->class, class_words.words[about->class]);
    text_put(out->line, sizeof out->line, about->line);
    out->required = field->required;
}

void operation_describe(enum operation_id operation, struct msg_operation *out)
{
    const struct map_type *type = step_types[operation];
    const struct about *about = about_operations[operation].fields;
    memset(out, 0, sizeof *out);
    text_put(out->name, sizeof out->name, step_words.words[operation]);
    text_put(out->line, sizeof out->line, about_operations[operation].line);
    for (size_t i = 1; i < type->field_count; i++) { /* the first says which operation it is */
        const struct field *field = &type->fields[i];
        assert(out->parameters_count < LIMIT_PARAMETERS && out->operands_count < LIMIT_OPERANDS);
        if (field->kind == FIELD_MAP)
            describe_operand(field, &about[i], &out->operands[out->operands_count++]);
        else
            describe_parameter(field, &about[i], &out->parameters[out->parameters_count++]);
    }
}

#include "status.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

int error_set(struct error *error, int code, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->code = code;
        error->retry_ms = 0;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
        text_clean(error->message); /* it may quote what a client sent */
    }
    return code;
}

void error_prefix(struct error *error, const char *what)
{
    const struct error bare = *error;
    int length = snprintf(error->message, sizeof error->message, "%s: ", what);
    snprintf(error->message + length, sizeof error->message - (size_t)length, "%s", bare.message);
}

static const struct status_row {
    enum scand_status status;
    const char *word;
    int code;
    int exit_code;
    const char *text;
} status_rows[] = {
#define X(NAME, CODE, WORD, ERRNO, EXIT, TEXT) {SCAND_##NAME, WORD, ERRNO, EXIT, TEXT},
    SCAND_STATUSES(X)
#undef X
};

static const size_t status_row_count = sizeof status_rows / sizeof status_rows[0];

static const struct status_row *status_row(uint64_t status)
{
    for (size_t i = 0; i < status_row_count; i++)
        if ((uint64_t)status_rows[i].status == status)
            return &status_rows[i];
    return NULL;
}

enum scand_status status_from_errno(int code)
{
    for (size_t i = 0; i < status_row_count; i++)
        if (status_rows[i].code == -code)
            return status_rows[i].status;
    return SCAND_INTERNAL;
}

int status_to_errno(uint64_t status)
{
    const struct status_row *row = status_row(status);
    return row ? -row->code : -ENOTRECOVERABLE;
}

const char *status_word(enum scand_status status)
{
    const struct status_row *row = status_row(status);
    return row ? row->word : "unknown";
}

const char *status_text(enum scand_status status)
{
    const struct status_row *row = status_row(status);
    return row ? row->text : "a status this library does not know";
}

int status_exit_code(enum scand_status status)
{
    const struct status_row *row = status_row(status);
    return row ? row->exit_code : 70;
}

#define WORD5(NAME, WORD, BYTES, CLASS, ORDER) WORD,
#define WORD3(NAME, WORD, RANK)                WORD,
#define WORD2(NAME, WORD)                      WORD,
#define WORDS(list, WHAT, LIST, EXPAND)                      \
    static const char *const list##_list[] = {LIST(EXPAND)}; \
    const struct words list##_words = {WHAT, list##_list, sizeof list##_list / sizeof list##_list[0]};

WORDS(operation, "operation", SCAND_OPERATIONS, WORD2)
WORDS(reduction, "reduction", SCAND_REDUCTIONS, WORD2)
WORDS(dtype, "dtype", SCAND_DTYPES, WORD5)
WORDS(accumulator, "accumulator", SCAND_ACCUMULATORS, WORD2)
WORDS(intermediate, "intermediate", SCAND_INTERMEDIATES, WORD2)
WORDS(kind, "kind", SCAND_KINDS, WORD2)
WORDS(operator, "operator", SCAND_OPERATORS, WORD2)
WORDS(pass, "pass", SCAND_PASSES, WORD2)
WORDS(place, "place", SCAND_PLACES, WORD2)
WORDS(sharing, "sharing", SCAND_SHARINGS, WORD2)
WORDS(job_state, "job state", SCAND_JOB_STATES, WORD2)
WORDS(event, "event", SCAND_EVENTS, WORD2)
WORDS(priority, "priority word", SCAND_PRIORITIES, WORD3)

#define X(list, WHAT, LIST) WORDS(list, WHAT, LIST, WORD2)
OPERATION_WORDS(X)
#undef X

static const char *const step_list[] = {
#define X(NAME, FIELDS, LENGTH, WORD, LINE) WORD,
    OPERATIONS(X)
#undef X
};
const struct words step_words = {"operation", step_list, OPERATION_COUNT};

static_assert(SCAND_REDUCTION_NONE == 0, "the reductions of steps come behind it");
const struct words row_reduction_words = {"reduction", reduction_list + 1, SCAND_REDUCTION_COUNT - 1};

static_assert(SCAND_ACCUMULATOR_F64 == 2, "auto, f32 and f64 come first");
const struct words float_accumulator_words = {"accumulator", accumulator_list, SCAND_ACCUMULATOR_F64 + 1};

int words_find(const struct words *words, const char *word, size_t length)
{
    for (size_t i = 0; i < words->count; i++)
        if (strlen(words->words[i]) == length && memcmp(words->words[i], word, length) == 0)
            return (int)i;
    return -1;
}

const char *words_join(const struct words *words, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < words->count && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i ? ", " : "", words->words[i]);
        used += (size_t)n;
    }
    return out;
}

uint64_t dtype_size_bytes(enum scand_dtype dtype)
{
#define X(NAME, WORD, BYTES, CLASS, ORDER) BYTES,
    static const uint64_t sizes[] = {SCAND_DTYPES(X)};
#undef X
    return sizes[dtype];
}

enum scand_class dtype_class(enum scand_dtype dtype)
{
#define X(NAME, WORD, BYTES, CLASS, ORDER) SCAND_CLASS_##CLASS,
    static const enum scand_class classes[] = {SCAND_DTYPES(X)};
#undef X
    return classes[dtype];
}

static bool is_float(enum scand_class class)
{
    return class == SCAND_CLASS_F32 || class == SCAND_CLASS_F64;
}

enum scand_accumulator accumulator_of(enum scand_accumulator accumulator, enum scand_dtype samples, bool by_name)
{
    enum scand_class class = dtype_class(samples);
    if (accumulator != SCAND_ACCUMULATOR_AUTO)
        return accumulator;
    if (!is_float(class))
        return SCAND_ACCUMULATOR_EXACT;
    return by_name ? SCAND_ACCUMULATOR_F32 : SCAND_ACCUMULATOR_F64;
}

enum scand_dtype intermediate_of(enum scand_intermediate intermediate, enum scand_dtype samples)
{
    if (intermediate == SCAND_INTERMEDIATE_AUTO)
        return dtype_class(samples) == SCAND_CLASS_F64 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32;
    return intermediate == SCAND_INTERMEDIATE_F64 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32;
}

const char *errno_advice(int code)
{
    return code == EMFILE || code == ENFILE ? "; raise ulimit -n, or close some files" : "";
}

/*
 * The one translation between errno values, which every function here returns negated, and the statuses that users see,
 * and the words of every list in types.h.
 */
#ifndef PROTOCOL_STATUS_H
#define PROTOCOL_STATUS_H

#include <stdbool.h>

#include <scand/types.h>

#include "limits.h"
#include "operations.h"

/* An explanation on its way to the user: what was wrong, the value, what is allowed, what to do next. */
struct error {
    int code;          /* -errno, 0 while nothing is wrong */
    uint32_t retry_ms; /* for busy: when to try again; 0 says nothing */
    char message[LIMIT_ERROR_BYTES];
};

/* Makes it say that nothing is wrong. An initializer would set all of the text to zero. */
static inline void error_clear(struct error *error)
{
    error->code = 0;
    error->retry_ms = 0;
    error->message[0] = '\0';
}
/* Fills *error (unless NULL) and returns code, so that a check reads `return error_set(error, -EINVAL, ...)`. */
int error_set(struct error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "what: " before an error's message, which is cut where it is too long. */
void error_prefix(struct error *error, const char *what);

enum scand_status status_from_errno(int code); /* code: 0 or -errno; anything unlisted is SCAND_INTERNAL */
int status_to_errno(uint64_t status);          /* 0 or -errno; an unknown status is -ENOTRECOVERABLE */
const char *status_word(enum scand_status status);
const char *status_text(enum scand_status status);
int status_exit_code(enum scand_status status);

/* A list of types.h as words, in the order of its enumerators. */
struct words {
    const char *what; /* name of the list, for messages: "dtype" */
    const char *const *words;
    size_t count;
};

extern const struct words operation_words, reduction_words, dtype_words, accumulator_words, intermediate_words,
    kind_words, operator_words, pass_words, place_words, sharing_words, job_state_words, event_words, priority_words;
/* Words of steps: operations, and reductions but none. */
extern const struct words step_words, row_reduction_words;
/* Words of accumulators of steps that add floats: auto, f32 and f64. */
extern const struct words float_accumulator_words;
#define X(NAME, WHAT, LIST) extern const struct words NAME##_words;
OPERATION_WORDS(X)
#undef X

/* The enumerator that a word of `length` bytes stands for, or -1. */
int words_find(const struct words *words, const char *word, size_t length);
/* "a, b, c", for messages; cut to size. Returns out. */
const char *words_join(const struct words *words, char *out, size_t size);

uint64_t dtype_size_bytes(enum scand_dtype dtype);
enum scand_class dtype_class(enum scand_dtype dtype);
/* Returns the accumulator in which a scan of such samples is kept: `accumulator` itself unless it is AUTO. by_name:
 * `algorithm` names the scan, and all that it may name offer f32. */
enum scand_accumulator accumulator_of(enum scand_accumulator accumulator, enum scand_dtype samples, bool by_name);
/* F32 or F64: what its values are rounded to between two passes. Of integers nobody asks; they are F32. */
enum scand_dtype intermediate_of(enum scand_intermediate intermediate, enum scand_dtype samples);

/* What helps where a call of the system fails by this errno, to be added to a message; "" for all but a lack of
 * descriptors. */
const char *errno_advice(int code);

#endif

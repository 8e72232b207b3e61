/*
 * Operations as the daemon knows them: a row each, from whose functions jobs are checked, planned and described. The
 * list is that of protocol/operations.h; an operation without its row is a link error. Pure functions.
 */
#ifndef DAEMON_OPERATION_H
#define DAEMON_OPERATION_H

#include "daemon/core/jobs/operand.h"
#include "daemon/core/jobs/request.h"
#include "daemon/device/device.h"

/* What a step takes, or leaves: elements of a dtype, for each sample or for each row. */
struct value {
    enum scand_dtype dtype;
    enum follows follows;
};

/* A step that is looked at. */
struct asked {
    const struct request *request;
    uint32_t step;
    struct value in;
};

struct operation {
    enum follows leaves; /* an element for each sample, or for each row */
    /* Checks parameters and dtypes and sets *rule, its accumulator never being AUTO, for elements of `output`. Returns
     * 0, or -EINVAL and *error. */
    int (*check)(const struct asked *asked, enum scand_dtype output, struct scan_rule *rule, struct error *error);
    /* Checks what `algorithm` names, of which rows have been made, and sets rule->algorithm. Likewise. */
    int (*check_algorithm)(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                           struct scan_rule *rule, struct error *error);
    /* Puts further operands into rows as kernels take them. */
    void (*bind)(const struct operand *further, uint32_t count, struct scan_rows *rows);
    /* What a sample takes to compute, in passes of sums of f32 or f64. */
    uint64_t (*work)(const struct scan_rule *rule);
    /* What is done, in words. */
    void (*describe)(const struct scan_rule *rule, char *out, size_t size);
    /* An error, with this code, for what a device cannot do. */
    void (*refuse)(const struct scan_rule *rule, int code, struct error *error);
};

#define X(NAME, ...) extern const struct operation operation_##NAME;
OPERATIONS(X)
#undef X

extern const struct operation *const operations[OPERATION_COUNT];

/* Checks all steps, one after the other, and sets `steps`. Notes what the output follows. 0, or -EINVAL and *error. */
int steps_check(struct request *request, struct step steps[LIMIT_STEPS], struct error *error);

/*
 * For operations.
 */

/* Which dtype a step's input is, as messages say: "input.dtype" or, after the first, "output.dtype". */
const char *asked_samples(const struct asked *asked);
const char *dtype_word(uint32_t dtype);
bool dtype_is_integer(uint32_t dtype);
/* Integers stay integers and lose no width; floats stay floats. 0, or -EINVAL and *error. */
int check_output_dtype(enum scand_dtype input, enum scand_dtype output, struct error *error);

/* A list under construction, "a, b"; cut where it is longer than its room. */
struct word_list {
    char text[384];
    size_t length;
};
void word_list_add(struct word_list *list, const char *word);

/* Of `algorithm`: its name is not known; a field has a value that it does not take. Return -EINVAL. */
int refuse_algorithm_name(const char *name, const struct word_list *names, struct error *error);
int refuse_with_algorithm(const char *algorithm, const char *field, const char *value, const char *allowed,
                          struct error *error);
/* What an algorithm needs of how rows lie: 0, or -EINVAL and *error. */
int check_algorithm_rank(const char *algorithm, const struct scan_rows *rows, struct error *error);
int check_algorithm_stride(const char *algorithm, const char *what, const struct scan_rows *rows, int64_t stride,
                           struct error *error);
int check_algorithm_place(const char *algorithm, const char *what, const struct msg_tensor *tensor, int64_t pitch,
                          int64_t bytes, struct error *error);

#endif

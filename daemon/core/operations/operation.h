/*
 * Operations as the daemon knows them: a row each, from whose functions jobs are checked, planned and described. The
 * list is that of protocol/operations.h; an operation without its row is a link error. Pure functions.
 */
#ifndef DAEMON_OPERATION_H
#define DAEMON_OPERATION_H

#include "daemon/core/jobs/operand.h"
#include "daemon/core/jobs/request.h"
#include "daemon/device/device.h"

/* The input of a step, or its result: elements of a dtype, for each sample of rows of this length, or for each row. */
struct value {
    enum scand_dtype dtype;
    enum follows follows;
    uint64_t length; /* for ragged rows, the length of the line */
};

/* A step that is looked at: what it takes, and the dtype that it leaves. */
struct asked {
    const struct request *request;
    uint32_t step;
    struct value in;
    enum scand_dtype output;
};

struct operation {
    const struct step_kernel *kernel; /* NULL: a scan or a reduction */
    uint64_t most_samples;            /* samples of a row that a step takes; 0: as many as rows may have */
    bool divides;                     /* true when rows of one length may be longer, since threads share a row */
    /* Checks parameters and dtypes, and sets step->rule, its accumulator never being AUTO, or step->parameters. Returns
     * 0, or -EINVAL and *error. */
    int (*check)(const struct asked *asked, struct step *step, struct error *error);
    /* Checks what `algorithm` names, of which rows have been made, and sets rule->algorithm. Likewise. NULL: it names
     * nothing of this operation. */
    int (*check_algorithm)(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                           struct scan_rule *rule, struct error *error);
    /* The work for an element of the step's input or of its result, whichever is longer, in passes of sums of f32 or
     * f64. */
    uint64_t (*work)(const struct step *step);
    /* The work for a row however short it is, besides that for its elements. NULL: none to speak of. */
    uint64_t (*row_work)(const struct step *step);
    /* Says in words what is done. */
    void (*describe)(const struct step *step, char *out, size_t size);
    /* An error, with this code, for what a device cannot do. NULL: that the device cannot do the operation. */
    void (*refuse)(const struct step *step, int code, struct error *error);
};

#define X(NAME, ...) extern const struct operation operation_##NAME;
OPERATIONS(X)
#undef X

extern const struct operation *const operations[OPERATION_COUNT];

/* Checks all steps, one after the other, and sets `steps`. Notes what the output follows, and how long it and further
 * operands must be. 0, or -EINVAL and *error. */
int steps_check(struct request *request, struct step steps[LIMIT_STEPS], struct error *error);
/* Checks that a step takes rows of so many samples: 0, or -EINVAL and *error. */
int step_check_row(enum operation_id operation, uint32_t step, uint64_t samples, struct error *error);
/* Checks `algorithm` for an operation in tiles, which is the job's only step, as check_algorithm does; sets
 * step->algorithm. */
int step_check_algorithm(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                         struct step *step, struct error *error);
/* Sets the error of a device that has no such variant. */
void step_refuse_algorithm(const struct step *step, int code, struct error *error);

/*
 * Functions for operations.
 */

/* Sets a step's parameters for its kernel: a copy of the kernel's struct, of size_bytes. */
void step_set_parameters(struct step *step, const void *parameters, size_t size_bytes);
/* Returns the field that has a step's input dtype, for messages: "input.dtype" or, after the first step,
 * "output.dtype". */
const char *asked_samples(const struct asked *asked);
const char *dtype_word(uint32_t dtype);
bool dtype_is_integer(uint32_t dtype);
/* For messages: what makes floats of integers, and the other way round. */
#define STEP_THAT_CASTS "a step before with \"operation\" \"map\", \"op\" \"cast\""
/* Checks that the step's input is of floats. Returns 0, or -EINVAL and *error. */
int check_floats(const struct asked *asked, struct error *error);
/* Checks that integers stay integers and lose no width, and that floats stay floats. 0, or -EINVAL and *error. */
int check_output_dtype(enum scand_dtype input, enum scand_dtype output, struct error *error);

/* A list under construction, "a, b"; cut where it is longer than its room. */
struct word_list {
    char text[384];
    size_t length;
};
void word_list_add(struct word_list *list, const char *word);

/* Errors about `algorithm`: its name is not known; a field has a value that it does not take. Return -EINVAL. */
int refuse_algorithm_name(const char *name, const struct word_list *names, struct error *error);
int refuse_with_algorithm(const char *algorithm, const char *field, const char *value, const char *allowed,
                          struct error *error);
/* Check that rows lie as an algorithm needs it: 0, or -EINVAL and *error. */
int check_algorithm_rank(const char *algorithm, const struct scan_rows *rows, struct error *error);
int check_algorithm_stride(const char *algorithm, const char *what, const struct scan_rows *rows, int64_t stride,
                           struct error *error);
int check_algorithm_place(const char *algorithm, const char *what, const struct msg_tensor *tensor, int64_t pitch,
                          int64_t bytes, struct error *error);

#endif

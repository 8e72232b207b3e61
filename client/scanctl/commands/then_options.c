/*
 * `scanctl scan --then`: a further scan of the result, in the words of the options of the first one.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/scanctl/commands/scan_options.h"

static const struct setting {
    const char *name, *option; /* NAME= in a step; what messages call it */
    enum scand_list list;
    size_t offset; /* offset of the member, an enum */
} settings[] = {
    {"kind=", "then kind", SCAND_LIST_KIND, offsetof(struct scand_step, kind)},
    {"op=", "then op", SCAND_LIST_OPERATOR, offsetof(struct scand_step, op)},
    {"accumulator=", "then accumulator", SCAND_LIST_ACCUMULATOR, offsetof(struct scand_step, accumulator)},
    {"intermediate=", "then intermediate", SCAND_LIST_INTERMEDIATE, offsetof(struct scand_step, intermediate)},
};

/* Returns what follows the prefix, or NULL. */
static const char *value_of(const char *part, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(part, prefix, length) ? NULL : part + length;
}

static int pass_parse(struct scand_step *step, const char *part, struct error *error)
{
    int pass = scand_word_find(SCAND_LIST_PASS, part);
    if (pass < 0)
        return fail(error, EX_USAGE,
                    "--then has \"%s\"; a step is made of forward, backward, demean, kind=, op=, coefficient=, "
                    "accumulator= and intermediate=, as in --then backward,op=max",
                    part);
    if (step->pass_count == SCAND_PASSES_MAX)
        return fail(error, EX_USAGE, "--then has more than %d passes; give another --then for more", SCAND_PASSES_MAX);
    step->passes[step->pass_count++] = (enum scand_pass)pass;
    return 0;
}

static int part_parse(struct scand_step *step, const char *part, struct error *error)
{
    const char *value = value_of(part, "coefficient=");
    if (value)
        return coefficient_parse("then coefficient", &step->coefficient, value, error);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        int word;
        value = value_of(part, settings[i].name);
        if (!value)
            continue;
        int result = word_parse(settings[i].option, settings[i].list, value, strlen(value), &word, error);
        if (!result)
            memcpy((char *)step + settings[i].offset, &word, sizeof(word));
        return result;
    }
    if (strcmp(part, "demean"))
        return pass_parse(step, part, error);
    step->demean = 1;
    return 0;
}

static int step_check(const struct scand_step *step, const char *text, struct error *error)
{
    bool affine = step->op == SCAND_OPERATOR_AFFINE;
    if (affine == (step->coefficient != 0))
        return 0;
    return fail(error, EX_USAGE, "--then is \"%s\"; %s", text,
                affine ? "op=affine needs a coefficient, as in op=affine,coefficient=0.99"
                       : "coefficient= is for op=affine");
}

int then_parse(struct scan_options *options, const char *text, struct error *error)
{
    struct scand_scan *scan = &options->scan;
    struct scand_step step = {0};
    char part[64];
    if (scan->then_count == SCAND_STEPS_MAX)
        return fail(error, EX_USAGE, "--then is there more than %d times; scan the result with another command",
                    SCAND_STEPS_MAX);
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        snprintf(part, sizeof(part), "%.*s", (int)length, at);
        int result = part_parse(&step, part, error);
        if (result)
            return result;
        at += length;
        if (!*at)
            break;
    }
    if (step.pass_count == 0)
        step.pass_count = 1; /* forward, the default of --passes */
    options->then_text[scan->then_count] = text;
    options->then[scan->then_count++] = step;
    scan->then = options->then;
    return step_check(&step, text, error);
}

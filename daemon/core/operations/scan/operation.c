#include <stdio.h>
#include <string.h>

#include "kernels/tutorial/scan/variants.h"
#include "scan.h"

/* Returns the work of a scan, as measured, in powers of two. A variant's work is that of one thread that goes along the
 * row. */
static uint64_t scan_work(const struct step *step)
{
    const struct scan_rule *rule = &step->rule;
    const bool f2 = rule->accumulator == SCAND_ACCUMULATOR_F2, affine = rule->op == SCAND_OPERATOR_AFFINE;
    return rule->pass_count * (f2 ? 4 : 1) * (affine ? 8 : 1) * (rule->algorithm ? 4 : 1) + rule->demean;
}

static void scan_describe(const struct step *step, char *out, size_t size)
{
    const struct scan_rule *rule = &step->rule;
    snprintf(out, size, "%s %s%s%s", operator_words.words[rule->op], pass_words.words[rule->passes[0]],
             rule->pass_count > 1 ? "," : "", rule->pass_count > 1 ? pass_words.words[rule->passes[1]] : "");
}

static void scan_refuse(const struct step *step, int code, struct error *error)
{
    const struct scan_rule *rule = &step->rule;
    const struct variant *variant = rule->algorithm ? &variant_list[rule->algorithm - 1] : NULL;
    if (variant)
        error_set(error, code,
                  "\"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with --device %s "
                  "can%s",
                  variant->name, variant->on_cpu ? "cpu" : "cuda",
                  variant->on_cpu ? "" : ", if built with SCAND_TUTORIAL");
    else
        error_set(error, code,
                  "this daemon's device cannot do this scan (\"op\" is \"%s\", \"kind\" \"%s\", \"input.dtype\" "
                  "\"%s\", \"output.dtype\" \"%s\", \"demean\" %d); a daemon started with --device cpu can",
                  operator_words.words[rule->op], kind_words.words[rule->kind], dtype_word(rule->input),
                  dtype_word(rule->output), rule->demean);
}

const struct operation operation_scan = {
    .check = scan_check,
    .check_algorithm = scan_check_algorithm,
    .work = scan_work,
    .describe = scan_describe,
    .refuse = scan_refuse,
};

#include "client/scanctl/stream/compute.h"

static int scan_submit(const void *context, const struct operands *operands, struct scand *daemon,
                       scand_progress *progress, void *progress_context, struct scand_job **out)
{
    struct scand_scan scan = *(const struct scand_scan *)context;
    scan.input = operands->input;
    scan.output = operands->output;
    if (operands->further_count)
        scan.coefficients = operands->further[0];
    scan.offsets = operands->offsets;
    scan.axis = operands->axis;
    scan.group = operands->group;
    return scand_submit_progress(daemon, &scan, progress, progress_context, out);
}

static int reduce_submit(const void *context, const struct operands *operands, struct scand *daemon,
                         scand_progress *progress, void *progress_context, struct scand_job **out)
{
    struct scand_reduce reduce = *(const struct scand_reduce *)context;
    reduce.input = operands->input;
    reduce.output = operands->output;
    reduce.offsets = operands->offsets;
    reduce.axis = operands->axis;
    reduce.group = operands->group;
    return scand_submit_reduce(daemon, &reduce, progress, progress_context, out);
}

struct compute compute_scan(const struct scand_scan *scan)
{
    return (struct compute){.word = "the scan", .submit = scan_submit, .context = scan};
}

struct compute compute_reduce(const struct scand_reduce *reduce)
{
    return (struct compute){.word = "the reduction", .reduces = true, .submit = reduce_submit, .context = reduce};
}

#include "offsets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "kernels/codec.h"
#include "layout.h"

static int check_tensor(const struct msg_tensor *tensor, struct error *error)
{
    enum scand_class class = dtype_class(tensor->dtype);
    if (class != SCAND_CLASS_SIGNED && class != SCAND_CLASS_UNSIGNED)
        return error_set(error, -EINVAL, "job.submit: \"offsets.dtype\" is \"%s\"; allowed: i32, i64, u32, u64",
                         dtype_words.words[tensor->dtype]);
    if (tensor->shape_count != 1 || tensor->strides_count != 1)
        return error_set(error, -EINVAL,
                         "job.submit: \"offsets\" has %u dimensions and %u strides; it must have one of each",
                         tensor->shape_count, tensor->strides_count);
    if (tensor->shape[0] == 0 || tensor->shape[0] > LIMIT_RAGGED_ROWS + 1)
        return error_set(error, -EINVAL,
                         "job.submit: \"offsets\" has %" PRIu64 " elements; allowed: 1 to %" PRIu64
                         ", one more than rows; submit more rows in several jobs",
                         tensor->shape[0], LIMIT_RAGGED_ROWS + 1);
    return 0;
}

int offsets_check(const struct msg_job_submit_params *params, const struct span *span, struct error *error)
{
    struct extent extent;
    int r = check_tensor(&params->offsets, error);
    if (r)
        return r;
    if (params->input.shape_count != 1)
        return error_set(
            error, -EINVAL,
            "job.submit: \"input\" has %u dimensions; allowed with \"offsets\": 1, along which all rows lie",
            params->input.shape_count);
    if (params->algorithm[0] != '\0')
        return error_set(error, -EINVAL,
                         "job.submit: \"offsets\" and \"algorithm\" exclude each other; leave \"algorithm\" out for "
                         "rows of differing lengths");
    if (span->place == SCAND_PLACE_DEVICE)
        return error_set(error, -EINVAL,
                         "job.submit: \"offsets.buffer\" is device memory; give a host buffer, the daemon reads it "
                         "itself");
    return layout_extent(&params->offsets, "offsets", span->size_bytes, &extent, error);
}

static int refuse_value(const struct msg_job_submit_params *params, uint64_t index, uint64_t value, uint64_t before,
                        struct error *error)
{
    bool negative = dtype_class(params->offsets.dtype) == SCAND_CLASS_SIGNED && value > INT64_MAX;
    return error_set(error, -EINVAL,
                     "job.submit: \"offsets\"[%" PRIu64 "] is %s%" PRIu64 "; allowed: %" PRIu64 "%s to %" PRIu64
                     ", the samples of \"input\"",
                     index, negative ? "-" : "", negative ? 0 - value : value, before,
                     index > 0 ? ", the one before it," : "", params->input.shape[0]);
}

int offsets_take(const struct msg_job_submit_params *params, const struct span *span, uint64_t **offsets,
                 uint64_t *longest, struct error *error)
{
    const struct msg_tensor *tensor = &params->offsets;
    const unsigned char *from = (const unsigned char *)span->base + tensor->offset;
    uint64_t *values = malloc(tensor->shape[0] * sizeof *values), before = 0, most = 0;
    if (!values)
        return error_set(error, -ENOMEM, "job.submit: out of memory for another job's offsets; try again later");
    for (uint64_t i = 0; i < tensor->shape[0]; i++) {
        values[i] = codec_decode_integer(tensor->dtype, from + (int64_t)i * tensor->strides[0]);
        if (values[i] < before || values[i] > params->input.shape[0]) {
            int r = refuse_value(params, i, values[i], before, error);
            free(values);
            return r;
        }
        if (i > 0 && values[i] - before > most)
            most = values[i] - before;
        before = values[i];
    }
    *offsets = values;
    *longest = most;
    return 0;
}

#include "offsets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "kernels/order1/dtypes.h"
#include "tensor_layout.h"

static int check_tensor(const struct msg_tensor *tensor, struct error *error)
{
    const enum scand_dtype dtype = (enum scand_dtype)tensor->dtype;
    if (!codec_is_integer(dtype) || !codec_is_plain(dtype))
        return error_set(error, -EINVAL, "\"offsets.dtype\" is \"%s\"; allowed: i32, i64, u32, u64",
                         dtype_words.words[tensor->dtype]);
    if (tensor->shape_count != 1 || tensor->strides_count != 1)
        return error_set(error, -EINVAL, "\"offsets\" has %u dimensions and %u strides; it must have one of each",
                         tensor->shape_count, tensor->strides_count);
    if (tensor->shape[0] == 0 || tensor->shape[0] > LIMIT_RAGGED_ROWS + 1)
        return error_set(error, -EINVAL,
                         "\"offsets\" has %" PRIu64 " elements; allowed: 1 to %" PRIu64
                         ", one more than rows; submit more rows in several jobs",
                         tensor->shape[0], LIMIT_RAGGED_ROWS + 1);
    return 0;
}

int offsets_check(const struct msg_job_run_params *params, const struct span *span, struct extent *extent,
                  struct error *error)
{
    int r = check_tensor(&params->offsets, error);
    if (r)
        return r;
    if (params->input.shape_count != 1)
        return error_set(error, -EINVAL,
                         "\"input\" has %u dimensions; allowed with \"offsets\": 1, along which all rows lie",
                         params->input.shape_count);
    if (params->algorithm[0] != '\0')
        return error_set(error, -EINVAL,
                         "\"offsets\" and \"algorithm\" exclude each other; leave \"algorithm\" out for "
                         "rows of differing lengths");
    if (span->place == SCAND_PLACE_DEVICE)
        return error_set(error, -EINVAL,
                         "\"offsets.buffer\" is device memory; give a host buffer, the daemon reads it "
                         "itself");
    return tensor_extent(&params->offsets, "offsets", span->size_bytes, extent, error);
}

static int refuse_value(const struct offsets_copy *copy, uint64_t value, uint64_t before, struct error *error)
{
    bool negative = dtype_class(copy->dtype) == SCAND_CLASS_SIGNED && value > INT64_MAX;
    return error_set(error, -EINVAL,
                     "\"offsets\"[%" PRIu64 "] is %s%" PRIu64 "; allowed: %" PRIu64 "%s to %" PRIu64
                     ", the samples of \"input\"",
                     copy->done, negative ? "-" : "", negative ? 0 - value : value, before,
                     copy->done > 0 ? ", the one before it," : "", copy->most);
}

int offsets_begin(const struct msg_job_run_params *params, const struct span *span, struct offsets_copy *copy,
                  struct error *error)
{
    const struct msg_tensor *tensor = &params->offsets;
    uint64_t *values = malloc(tensor->shape[0] * sizeof *values);
    if (!values)
        return error_set(error, -ENOMEM, "out of memory for another job's offsets; try again later");
    *copy = (struct offsets_copy){.values = values,
                                  .count = tensor->shape[0],
                                  .most = params->input.shape[0],
                                  .from = (const unsigned char *)span->base + tensor->offset,
                                  .stride = tensor->strides[0],
                                  .dtype = tensor->dtype};
    return 0;
}

int offsets_continue(struct offsets_copy *copy, uint64_t count, struct error *error)
{
    uint64_t before = copy->done > 0 ? copy->values[copy->done - 1] : 0;
    for (; count > 0 && copy->done < copy->count; count--) {
        uint64_t value = codec_decode_integer(copy->dtype, copy->from + (int64_t)copy->done * copy->stride);
        if (value < before || value > copy->most)
            return refuse_value(copy, value, before, error);
        if (copy->done > 0 && value - before > copy->longest)
            copy->longest = value - before;
        copy->values[copy->done++] = before = value;
    }
    return 0;
}

uint64_t offsets_unit(const struct offsets_copy *copy)
{
    uint64_t step = copy->stride < 0 ? -(uint64_t)copy->stride : (uint64_t)copy->stride;
    uint64_t near = step > 0 ? LIMIT_UNIT_OFFSETS_BYTES / step : UINT64_MAX;
    if (near > LIMIT_UNIT_OFFSETS)
        return LIMIT_UNIT_OFFSETS;
    return near > 0 ? near : 1;
}

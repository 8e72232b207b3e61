/* Tensors as the program describes them: checked as far as that goes without a daemon, and made operands of a job. */
#include <errno.h>
#include <stdio.h>

#include "client/lib/internal.h"

void scand_tensor_pack(struct scand_tensor *tensor)
{
    if ((unsigned)tensor->dtype >= SCAND_DTYPE_COUNT || tensor->rank > SCAND_RANK_MAX)
        return; /* submitting the job will say so */
    uint64_t stride = dtype_size_bytes(tensor->dtype);
    for (uint32_t i = tensor->rank; i-- > 0;) {
        tensor->strides[i] = (int64_t)stride;
        stride *= tensor->shape[i];
    }
}

int word_check(const char *name, unsigned value, const struct words *words, struct error *error)
{
    char list[LIMIT_WORDS_BYTES];
    if (value < words->count)
        return 0;
    return error_set(error, -EINVAL, "%s is %u, which is no %s: there are %s (0 to %zu)", name, value, words->what,
                     words_join(words, list, sizeof list), words->count - 1);
}

int tensor_check(const char *name, const struct scand_tensor *tensor, struct error *error)
{
    if (!tensor->buffer)
        return error_set(error, -EINVAL, "%s.buffer is NULL: give one of scand_buffer_create or scand_buffer_import",
                         name);
    return tensor_check_form(name, tensor, error);
}

int tensor_check_form(const char *name, const struct scand_tensor *tensor, struct error *error)
{
    char member[LIMIT_NAME_BYTES];
    if (tensor->rank == 0 || tensor->rank > SCAND_RANK_MAX)
        return error_set(error, -EINVAL, "%s.rank is %u: 1 to %d dimensions are allowed", name, (unsigned)tensor->rank,
                         SCAND_RANK_MAX);
    if (tensor->dtype < dtype_words.count)
        return 0;
    snprintf(member, sizeof member, "%s.dtype", name);
    return word_check(member, tensor->dtype, &dtype_words, error);
}

int tensor_check_buffer(struct scand *daemon, const char *name, const struct scand_tensor *tensor)
{
    const struct scand_buffer *buffer = tensor->buffer;
    if (buffer->daemon != daemon)
        return session_fail(daemon, -EINVAL, "%s.buffer belongs to another connection: import its memory into this one",
                            name);
    if (buffer->lost)
        return session_fail(daemon, -EOWNERDEAD, "%s.buffer is lost: %s", name, buffer->lost);
    return 0;
}

void operand_add(struct scand_job *job, const char *name, const struct scand_tensor *tensor, bool is_written,
                 struct msg_tensor *params)
{
    params->offset = tensor->offset;
    params->dtype = tensor->dtype;
    params->shape_count = params->strides_count = tensor->rank;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        params->shape[i] = tensor->shape[i];
        params->strides[i] = tensor->strides[i];
    }
    job->operands[job->operand_count++] = (struct operand){.name = name,
                                                           .buffer = tensor->buffer,
                                                           .extent = extent_of(tensor),
                                                           .is_written = is_written,
                                                           .params = params};
}

#include "client/scanctl/stream/direct.h"

#include "client/scanctl/formats/forms.h"

#define LEAST_BYTES (UINT64_C(4) << 20) /* bytes of samples below which reading is faster than asking the daemon */

/* Bytes that need nobody's look: rows that lie side by side, in the byte order of their dtype, without headers that are
 * to be checked or copied. */
static bool is_plain(const struct stream *stream)
{
    const struct array *array = stream->array;
    const struct partition *partition = stream->partition;
    return stream->input->sized && !array->open_ended && !stream->ragged && partition->inner == 1 &&
           !array->trace_header_bytes && !form_of(array->format)->check_traces &&
           !array_is_swapped(array, partition->input.dtype);
}

/* A row beyond a batch's size may be more than the daemon reads at a time. */
void direct_open(struct stream *stream)
{
    const uint64_t record_bytes = stream->partition->input.record_bytes;
    stream->direct = NULL;
    if (!is_plain(stream) || record_bytes > BATCH_BYTES || scand_is_local(stream->daemon) ||
        stream->input->size_bytes - stream->input->position < LEAST_BYTES)
        return;
    if (scand_buffer_import_file(stream->daemon, stream->input->fd, 0, &stream->direct))
        stream->direct = NULL; /* the daemon is older, or does not read this file system */
}

void direct_close(struct stream *stream)
{
    if (stream->direct)
        scand_buffer_release(stream->direct);
    stream->direct = NULL;
}

void direct_place(const struct stream *stream, const struct slot *slot, struct scand_tensor *input)
{
    if (!stream->direct)
        return;
    input->buffer = stream->direct;
    input->offset += slot->position;
}

#include "client/scanctl/stream/slots.h"

#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/ui/text.h"

/* True when a smaller buffer, or the same one later, may be had. */
static int is_shortage(int status)
{
    return status == SCAND_BUSY || status == SCAND_QUOTA || status == SCAND_NO_MEMORY || status == SCAND_INVALID;
}

static int first_buffer_error(const struct stream *stream, int status, struct error *error)
{
    char bytes[GROUPED_BYTES];
    const char *message = scand_message(stream->daemon);
    if (!is_shortage(status))
        return remote_error(stream->daemon, status, "making room for samples", error);
    grouped(partition_buffer_bytes(stream->partition, stream->partition->least), bytes);
    return fail(
        error, remote_exit_code(stream->daemon, status),
        "%s: %s along this axis needs %s bytes of memory at once, which the daemon does not give or take (%s): %s%s",
        stream->input->name, stream->partition->records == 1 ? "the whole array" : "one row", bytes,
        scand_status_word(status), message,
        stream->partition->inner > 1 ? "; scan along the densest axis instead" : "");
}

/* Creates a buffer in memory of this program: slower at first, as the daemon has yet to pin it, but not bounded by the
 * daemon's pool. */
static int own_buffer_create(struct stream *stream, uint64_t bytes, struct scand_buffer **buffer)
{
    int status = SCAND_NO_MEMORY, fd = memfd_create("scanctl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return status;
    if (ftruncate(fd, (off_t)bytes) == 0)
        status = scand_buffer_import(stream->daemon, fd, bytes, buffer);
    close(fd);
    return status;
}

/* Creates the buffers: as large as wanted, or as the daemon can spare now; a second one where there is use for it. What
 * is too large for its pool, and cannot be in batches, is this program's own. */
static int buffers_create(struct stream *stream, struct error *error)
{
    int status;
    stream->records = partition_batch_records(stream->partition);
    for (;;) {
        uint64_t bytes = partition_buffer_bytes(stream->partition, stream->records);
        status = scand_buffer_create(stream->daemon, SCAND_PLACE_HOST, bytes, &stream->slots[0].buffer);
        if (!is_shortage(status))
            break;
        if (stream->records == stream->partition->least)
            break;
        stream->records =
            stream->records / 2 < stream->partition->least ? stream->partition->least : stream->records / 2;
    }
    if (status == SCAND_BUSY)
        status = remote_buffer(stream->daemon, partition_buffer_bytes(stream->partition, stream->records),
                               &stream->slots[0].buffer);
    if (status == SCAND_QUOTA)
        status = own_buffer_create(stream, partition_buffer_bytes(stream->partition, stream->records),
                                   &stream->slots[0].buffer);
    if (status)
        return first_buffer_error(stream, status, error);
    stream->slot_count = 1;
    uint64_t bytes = partition_buffer_bytes(stream->partition, stream->records);
    if ((stream->records < stream->partition->records || stream->partition->results) &&
        !scand_buffer_create(stream->daemon, SCAND_PLACE_HOST, bytes, &stream->slots[1].buffer))
        stream->slot_count = SLOTS;
    return 0;
}

/* Creates the buffers for offsets. Without room beside a second batch, one batch after the other has to do. */
static int offsets_create(struct stream *stream, struct error *error)
{
    uint64_t bytes = (ragged_pick_max(stream->ragged) + 1) * sizeof(uint64_t);
    for (uint32_t i = 0; i < stream->slot_count;) {
        struct scand_buffer **offsets = &stream->slots[i].offsets;
        int status = stream->slot_count > 1 ? scand_buffer_create(stream->daemon, SCAND_PLACE_HOST, bytes, offsets)
                                            : remote_buffer(stream->daemon, bytes, offsets);
        if (!status)
            i++;
        else if (stream->slot_count > 1)
            scand_buffer_release(stream->slots[--stream->slot_count].buffer);
        else
            return remote_error(stream->daemon, status, "making room for offsets", error);
    }
    return 0;
}

int slots_create(struct stream *stream, struct error *error)
{
    int result = buffers_create(stream, error);
    return result || !stream->ragged ? result : offsets_create(stream, error);
}

void slots_release(struct stream *stream)
{
    for (uint32_t i = 0; i < stream->slot_count; i++) {
        scand_buffer_release(stream->slots[i].buffer);
        if (stream->slots[i].offsets)
            scand_buffer_release(stream->slots[i].offsets);
    }
}

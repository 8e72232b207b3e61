/* The list of buffers: what each keeps, so that it can be imported again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/internal.h"
#include "protocol/memory.h"

void buffer_close_descriptors(struct scand_buffer *buffer)
{
    for (size_t i = 0; i < buffer->fd_count; i++)
        close(buffer->fds[i]);
    buffer->fd_count = 0;
}

/* Ends what the buffer has; its handle is left. */
static void buffer_end(struct scand_buffer *buffer)
{
    if (buffer->data)
        memory_unmap(buffer->data, buffer->size_bytes);
    buffer_close_descriptors(buffer);
    buffer->data = NULL;
    buffer->daemon = NULL;
}

void buffer_free(struct scand_buffer *buffer)
{
    buffer_end(buffer);
    free(buffer);
}

void buffers_end(struct scand *daemon)
{
    while (daemon->buffers) {
        struct scand_buffer *buffer = daemon->buffers;
        daemon->buffers = buffer->next;
        buffer_end(buffer);
        process_bury(buffer);
    }
}

struct scand_buffer *buffer_new(struct scand *daemon, uint64_t size_bytes, const int *fds, size_t fd_count)
{
    struct scand_buffer *buffer = calloc(1, sizeof *buffer + fd_count * sizeof *fds);
    if (!buffer) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        session_fail(daemon, -ENOMEM, "out of memory for a buffer");
        return NULL;
    }
    buffer->daemon = daemon;
    buffer->size_bytes = size_bytes;
    buffer->fd_count = fd_count;
    if (fd_count)
        memcpy(buffer->fds, fds, fd_count * sizeof *fds);
    return buffer;
}

int buffer_add(struct scand_buffer *buffer, struct scand_buffer **out)
{
    buffer->generation = buffer->daemon->generation;
    buffer->next = buffer->daemon->buffers;
    buffer->daemon->buffers = buffer;
    *out = buffer;
    return SCAND_OK;
}

int buffer_forget(struct scand *daemon, uint64_t id, uint64_t generation)
{
    if (!daemon->connection || daemon->generation != generation)
        return 0;
    int code = call_try(daemon, &(struct call){.method = METHOD_buffer_release, .params = &(struct msg_buffer_id){id}});
    return code == -EPIPE ? 0 : code;
}

/* Prepares an import of host memory. Pinning takes its time: a second for each 256 MiB is plenty. */
static void host_import_prepare(struct import *import, const struct scand_buffer *buffer)
{
    import->params.host = (struct msg_buffer_import_params){
        .size = buffer->size_bytes, .segment = buffer->segment_bytes, .fds = buffer->fd_count};
    import->call.method = METHOD_buffer_import;
    import->call.timeout_ms = CALL_MS + (int64_t)(buffer->size_bytes >> 28) * 1000;
}

static void file_import_prepare(struct import *import, const struct scand_buffer *buffer)
{
    import->params.file = (struct msg_buffer_import_file_params){.size = buffer->size_bytes, .fds = buffer->fd_count};
    import->call.method = METHOD_buffer_import_file;
}

static void foreign_import_prepare(struct import *import, const struct scand_buffer *buffer)
{
    struct msg_buffer_import_device_params *params = &import->params.device;
    *params = (struct msg_buffer_import_device_params){.size = buffer->size_bytes,
                                                       .offset = buffer->offset,
                                                       .allocation = buffer->allocation_bytes,
                                                       .fds = buffer->fd_count};
    if (buffer->fd_count == 0) {
        params->handle_count = sizeof buffer->handle;
        memcpy(params->handle, buffer->handle, sizeof buffer->handle);
    }
    import->call.method = METHOD_buffer_import_device;
}

void import_prepare(struct import *import, const struct scand_buffer *buffer)
{
    import->call = (struct call){
        .params = &import->params, .result = &import->result, .fds = buffer->fds, .fd_count = buffer->fd_count};
    if (buffer->foreign)
        foreign_import_prepare(import, buffer);
    else if (buffer->is_file)
        file_import_prepare(import, buffer);
    else
        host_import_prepare(import, buffer);
}

uint64_t import_id(const struct import *import)
{
    return import->call.method == METHOD_buffer_import_device ? import->result.device.buffer
                                                              : import->result.host.buffer;
}

void import_apply(const struct import *import, struct scand_buffer *buffer)
{
    buffer->id = import_id(import);
    buffer->generation = import->call.generation;
    if (buffer->foreign)
        buffer->device_index = import->result.device.device;
}

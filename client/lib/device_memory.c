/* Device memory that is shared between this program, the daemon and others. Nothing here uses CUDA. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/internal.h"

/* Tells memory apart that has no inode of its own (FNV-1a). */
static ino_t handle_number(const uint8_t *handle)
{
    uint64_t number = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < SCAND_IPC_BYTES; i++)
        number = (number ^ handle[i]) * UINT64_C(0x100000001b3);
    return (ino_t)number;
}

/* Imports a buffer of the program's memory; `buffer` may be NULL, its error set. */
static int foreign_add(struct scand_buffer *buffer, uint64_t offset, uint64_t allocation_bytes,
                       struct scand_buffer **out)
{
    if (!buffer)
        return SCAND_NO_MEMORY;
    buffer->place = SCAND_PLACE_DEVICE;
    buffer->foreign = true;
    buffer->offset = offset;
    buffer->allocation_bytes = allocation_bytes;
    int code = import_run(buffer);
    if (code == 0)
        return buffer_add(buffer, out);
    buffer_free(buffer);
    return (int)status_from_errno(code);
}

int scand_buffer_import_cuda(struct scand *daemon, const void *ipc_handle, uint64_t offset, uint64_t size_bytes,
                             struct scand_buffer **out)
{
    SESSION_GUARD(daemon);
    if (!ipc_handle)
        return (int)status_from_errno(
            session_fail(daemon, -EINVAL, "ipc_handle is NULL: give the cudaIpcMemHandle_t of cudaIpcGetMemHandle"));
    if (size_bytes == 0)
        return buffer_without_bytes(daemon);
    struct scand_buffer *buffer = buffer_new(daemon, size_bytes, NULL, 0);
    if (buffer) {
        memcpy(buffer->handle, ipc_handle, sizeof buffer->handle);
        buffer->inode = handle_number(buffer->handle);
    }
    return foreign_add(buffer, offset, 0, out);
}

int scand_buffer_import_cuda_fd(struct scand *daemon, int fd, uint64_t allocation_bytes, uint64_t offset,
                                uint64_t size_bytes, struct scand_buffer **out)
{
    SESSION_GUARD(daemon);
    struct stat status;
    if (size_bytes == 0)
        return buffer_without_bytes(daemon);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 || fstat(own, &status)) {
        session_fail(daemon, -EBADF, "fd %d: %s%s", fd, strerror(errno), errno_advice(errno));
        if (own >= 0)
            close(own);
        return SCAND_DESCRIPTOR;
    }
    struct scand_buffer *buffer = buffer_new(daemon, size_bytes, &own, 1);
    if (buffer) {
        buffer->device = status.st_dev;
        buffer->inode = status.st_ino;
    }
    return foreign_add(buffer, offset, allocation_bytes, out);
}

int scand_buffer_create_shared(struct scand *daemon, enum scand_sharing sharing, uint64_t size_bytes,
                               struct scand_buffer **out)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = SCAND_PLACE_DEVICE, .sharing = sharing};
    if (sharing != SCAND_SHARING_DESCRIPTOR && sharing != SCAND_SHARING_HANDLE)
        return (int)status_from_errno(
            session_fail(daemon, -EINVAL, "sharing is %d: 1 (descriptor) or 2 (handle)", (int)sharing));
    return buffer_create(daemon, &params, out);
}

/* Checks what the daemon promises: a descriptor, or a handle, of an allocation that holds the buffer. */
static int export_check(struct scand_buffer *buffer, const struct msg_buffer_export_result *result)
{
    if (result->fds == (result->handle_count == 0) && (result->fds || result->handle_count == SCAND_IPC_BYTES) &&
        result->size == buffer->size_bytes && result->allocation >= result->size)
        return 0;
    return session_fail(buffer->daemon, -EBADMSG,
                        "the daemon's export is none: %llu descriptors, a handle of %u bytes, for %llu of %llu bytes",
                        (unsigned long long)result->fds, (unsigned)result->handle_count,
                        (unsigned long long)result->size, (unsigned long long)result->allocation);
}

int scand_buffer_export(struct scand_buffer *buffer, struct scand_export *out)
{
    struct scand *daemon = buffer->daemon;
    if (!daemon)
        return SCAND_NOT_FOUND;
    SESSION_GUARD(daemon);
    struct msg_buffer_export_result result;
    int fd = -1, code = session_ready(daemon);
    if (code == 0 && buffer->lost)
        code = session_fail(daemon, -EOWNERDEAD, "the buffer is lost: %s", buffer->lost);
    if (code)
        return (int)status_from_errno(code);
    struct msg_buffer_id params = {buffer->id};
    struct call call = {.method = METHOD_buffer_export, .params = &params, .result = &result, .received = &fd};
    code = call_run(daemon, &call);
    if (code == 0)
        code = export_check(buffer, &result);
    if (code) {
        if (fd >= 0)
            close(fd);
        return (int)status_from_errno(code);
    }
    *out = (struct scand_export){.size_bytes = result.size, .allocation_bytes = result.allocation, .fd = fd};
    memcpy(out->ipc_handle, result.handle, sizeof out->ipc_handle);
    return SCAND_OK;
}

/* Buffers: memory that the daemon made or took over, mapped here. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/internal.h"
#include "protocol/memory.h"

/* Maps the descriptors once they are found to be sealed: whoever holds them cannot take the memory away any more. Only
 * what is mapped is filled where it has holes, however large the descriptors' memory is. */
static int buffer_map(struct scand_buffer *buffer)
{
    struct scand *daemon = buffer->daemon;
    uint64_t segment_bytes = buffer->segment_bytes ? buffer->segment_bytes : buffer->size_bytes;
    struct stat status;
    for (size_t i = 0; i < buffer->fd_count; i++) {
        const uint64_t left_bytes = buffer->size_bytes - i * segment_bytes;
        int code = memory_accept(buffer->fds[i], left_bytes < segment_bytes ? left_bytes : segment_bytes,
                                 session_error(daemon));
        if (code)
            return code;
    }
    if (fstat(buffer->fds[0], &status))
        return session_fail(daemon, -EBADF, "cannot look at the buffer's memory: %s", strerror(errno));
    buffer->device = status.st_dev;
    buffer->inode = status.st_ino;
    int code = memory_map(buffer->fds, buffer->fd_count, segment_bytes, buffer->size_bytes, &buffer->data);
    if (code)
        return session_fail(daemon, code == -EINVAL ? code : -ENOMEM, "cannot map %llu bytes: %s",
                            (unsigned long long)buffer->size_bytes, strerror(-code));
    memory_populate(buffer->data, buffer->size_bytes);
    return 0;
}

/* Checks what the daemon promises: for host memory, as many segments as the size takes, of whole pages if they are
 * several. */
static int created_check(struct scand *daemon, enum scand_place place, uint64_t size_bytes,
                         const struct msg_buffer_create_result *result)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), n = result->fds;
    bool fits = place == SCAND_PLACE_HOST ? (n == 1 || result->segment % page_bytes == 0) && result->segment > 0 &&
                                                (size_bytes - 1) / result->segment + 1 == n
                                          : n == 0;
    if (fits)
        return 0;
    return session_fail(daemon, -EBADMSG,
                        "the daemon made a buffer that is none: %llu descriptors of %llu bytes for %llu bytes",
                        (unsigned long long)n, (unsigned long long)result->segment, (unsigned long long)size_bytes);
}

int buffer_without_bytes(struct scand *daemon)
{
    return (int)status_from_errno(session_fail(daemon, -EINVAL, "size_bytes is 0: a buffer has 1 byte at least"));
}

int buffer_create(struct scand *daemon, const struct msg_buffer_create_params *params, struct scand_buffer **out)
{
    SESSION_GUARD(daemon);
    int fds[LIMIT_MESSAGE_FDS];
    enum scand_place place = (enum scand_place)params->place;
    uint64_t size_bytes = params->size;
    struct msg_buffer_create_result result;
    struct call call = {.method = METHOD_buffer_create,
                        .params = params,
                        .result = &result,
                        .received = fds,
                        .timeout_ms = CALL_MS + (int64_t)params->wait_ms};
    if (size_bytes == 0)
        return buffer_without_bytes(daemon);
    int code = call_run(daemon, &call);
    if (code)
        return (int)status_from_errno(code);
    struct scand_buffer *buffer = buffer_new(daemon, size_bytes, fds, call.received_count);
    code = buffer ? created_check(daemon, place, size_bytes, &result) : -ENOMEM;
    if (code == 0) {
        buffer->id = result.buffer;
        buffer->place = place;
        buffer->segment_bytes = result.segment;
        buffer->device_index = result.device;
        code = place == SCAND_PLACE_HOST ? buffer_map(buffer) : 0;
    }
    if (code == 0 && daemon->local)
        buffer_close_descriptors(buffer);
    if (code == 0)
        return buffer_add(buffer, out);
    struct error why = *session_error(daemon);
    (void)buffer_forget(daemon, result.buffer, call.generation);
    *session_error(daemon) = why;
    if (buffer)
        buffer_free(buffer);
    return (int)status_from_errno(code);
}

int scand_buffer_create(struct scand *daemon, enum scand_place place, uint64_t size_bytes, struct scand_buffer **out)
{
    if ((unsigned)place >= SCAND_PLACE_COUNT)
        return (int)status_from_errno(session_fail(daemon, -EINVAL, "place is %d: 0 (host) or 1 (device)", (int)place));
    return buffer_create(daemon, &(struct msg_buffer_create_params){.size = size_bytes, .place = place}, out);
}

int scand_buffer_create_wait(struct scand *daemon, uint64_t size_bytes, uint32_t wait_ms, struct scand_buffer **out)
{
    if (wait_ms > SCAND_WAIT_MS_MAX)
        return (int)status_from_errno(session_fail(daemon, -EINVAL, "wait_ms is %u: at most %d, a minute, is allowed",
                                                   (unsigned)wait_ms, SCAND_WAIT_MS_MAX));
    struct msg_buffer_create_params params = {.size = size_bytes, .place = SCAND_PLACE_HOST, .wait_ms = wait_ms};
    return buffer_create(daemon, &params, out);
}

int scand_buffer_create_on(struct scand *daemon, uint32_t device, uint64_t size_bytes, struct scand_buffer **out)
{
    if (device >= LIMIT_DEVICES)
        return (int)status_from_errno(
            session_fail(daemon, -ENOENT, "device is %u: the daemon has at most %d, counted from 0; see scand_devices",
                         (unsigned)device, LIMIT_DEVICES));
    struct msg_buffer_create_params params = {
        .size = size_bytes, .place = SCAND_PLACE_DEVICE, .device = (uint64_t)device + 1};
    return buffer_create(daemon, &params, out);
}

/* Takes over the descriptor. What is done to the buffer before the daemon knows of it may take its time. */
static int descriptor_import(struct scand *daemon, int fd, uint64_t size_bytes, int (*prepare)(struct scand_buffer *),
                             struct scand_buffer **out)
{
    struct scand_buffer *buffer = buffer_new(daemon, size_bytes, &fd, 1);
    if (!buffer)
        return SCAND_NO_MEMORY;
    session_unlock(daemon);
    int code = prepare(buffer);
    session_lock(daemon);
    if (code == 0)
        code = import_run(buffer);
    if (code == 0)
        return buffer_add(buffer, out);
    buffer_free(buffer);
    return (int)status_from_errno(code);
}

int scand_buffer_import(struct scand *daemon, int memfd, uint64_t size_bytes, struct scand_buffer **out)
{
    SESSION_GUARD(daemon);
    if (size_bytes == 0)
        return buffer_without_bytes(daemon);
    int fd = fcntl(memfd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return (int)status_from_errno(
            session_fail(daemon, -EBADF, "memfd %d: %s%s", memfd, strerror(errno), errno_advice(errno)));
    return descriptor_import(daemon, fd, size_bytes, buffer_map, out);
}

/* Looks which file it is, and how long where that is asked for. */
static int file_identify(struct scand_buffer *buffer)
{
    struct stat status;
    if (fstat(buffer->fds[0], &status))
        return session_fail(buffer->daemon, -EBADF, "cannot look at the file: %s", strerror(errno));
    if (buffer->size_bytes == 0)
        buffer->size_bytes = (uint64_t)status.st_size;
    if (buffer->size_bytes == 0)
        return session_fail(buffer->daemon, -EINVAL, "the file is empty: a buffer has 1 byte at least");
    buffer->device = status.st_dev;
    buffer->inode = status.st_ino;
    buffer->is_file = true;
    return 0;
}

int scand_buffer_import_file(struct scand *daemon, int fd, uint64_t size_bytes, struct scand_buffer **out)
{
    SESSION_GUARD(daemon);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return (int)status_from_errno(
            session_fail(daemon, -EBADF, "fd %d: %s%s", fd, strerror(errno), errno_advice(errno)));
    return descriptor_import(daemon, own, size_bytes, file_identify, out);
}

static int memory_refused(struct scand *daemon, uint64_t size_bytes, int code)
{
    const char *help = code == -ENOMEM  ? "; make less, or free some"
                       : code == -EFBIG ? "; the limit of files' sizes holds for it: raise that (ulimit -f)"
                                        : errno_advice(-code);
    session_fail(daemon, code == -EMFILE || code == -ENFILE ? -EBADF : -ENOMEM,
                 "cannot make %llu bytes of memory: %s%s", (unsigned long long)size_bytes, strerror(-code), help);
    return (int)status_from_errno(session_error(daemon)->code);
}

int scand_buffer_create_own(struct scand *daemon, uint64_t size_bytes, struct scand_buffer **out)
{
    if (size_bytes == 0)
        return buffer_without_bytes(daemon);
    int fd = memory_create(size_bytes); /* slow, and outside the session's lock */
    if (fd < 0)
        return memory_refused(daemon, size_bytes, fd);
    SESSION_GUARD(daemon);
    return descriptor_import(daemon, fd, size_bytes, buffer_map, out);
}

int scand_buffer_fd(const struct scand_buffer *buffer, int *fd)
{
    struct scand *daemon = buffer->daemon;
    if (!daemon)
        return SCAND_NOT_FOUND;
    SESSION_GUARD(daemon);
    int code = session_check(daemon);
    if (code == 0 && buffer->place == SCAND_PLACE_DEVICE)
        code = session_fail(daemon, -EOPNOTSUPP, "the buffer is device memory: share it with scand_buffer_export");
    else if (code == 0 && buffer->segment_bytes)
        code = session_fail(daemon, -EOPNOTSUPP,
                            "the buffer is memory of the daemon's pool, which others have after it: make one to share "
                            "with scand_buffer_create_own");
    if (code)
        return (int)status_from_errno(code);
    int copy = fcntl(buffer->fds[0], F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return (int)status_from_errno(
            session_fail(daemon, -EBADF, "cannot copy a descriptor: %s%s", strerror(errno), errno_advice(errno)));
    *fd = copy;
    return SCAND_OK;
}

void *scand_buffer_data(const struct scand_buffer *buffer)
{
    return buffer->data;
}

uint64_t scand_buffer_size(const struct scand_buffer *buffer)
{
    return buffer->size_bytes;
}

int scand_buffer_device(const struct scand_buffer *buffer)
{
    if (!buffer->daemon)
        return (int)buffer->device_index - 1;
    SESSION_GUARD(buffer->daemon); /* a reconnect may import it on another device */
    return (int)buffer->device_index - 1;
}

int scand_buffer_release(struct scand_buffer *buffer)
{
    if (!buffer)
        return SCAND_OK;
    struct scand *daemon = buffer->daemon;
    if (!daemon) {
        process_unbury(buffer);
        return SCAND_OK;
    }
    SESSION_GUARD(daemon);
    struct scand_buffer **link = &daemon->buffers;
    while (*link != buffer)
        link = &(*link)->next;
    *link = buffer->next;
    if (daemon->mending.buffer == buffer)
        daemon->mending.buffer = NULL;
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        for (uint32_t i = 0; i < job->operand_count; i++)
            if (job->operands[i].buffer == buffer)
                job->operands[i].buffer = NULL;
    int code = session_check(daemon);
    if (code == 0 && !buffer->lost)
        code = buffer_forget(daemon, buffer->id, buffer->generation);
    buffer_free(buffer);
    return (int)status_from_errno(code);
}

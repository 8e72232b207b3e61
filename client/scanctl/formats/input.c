#include "client/scanctl/formats/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read call never moves more than this: the kernel's own bound is a page short of 2 GiB. */
#define READ_MAX_BYTES (UINT64_C(1) << 30)
#define SKIP_BYTES     65536 /* bytes of a pipe that are skipped at a time */

int input_open(struct input *input, const char *path, struct error *error)
{
    bool standard = !strcmp(path, "-");
    if (standard && isatty(STDIN_FILENO))
        return fail(error, EX_USAGE,
                    "standard input is a terminal, and samples are binary; redirect it, or give the name of a file");
    const char *name = standard ? "standard input" : path;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(error, EX_NOINPUT, "%s: cannot be opened: %s; %s", name, strerror(errno),
                    open_advice(errno, "give a file that exists and that you may read"));
    struct stat status = {.st_mode = 0};
    if (!fstat(fd, &status) && S_ISDIR(status.st_mode)) {
        if (!standard)
            close(fd);
        return fail(error, EX_NOINPUT, "%s: is a folder; give a file", name);
    }
    if (S_ISFIFO(status.st_mode))
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    /* Standard input that stands in the middle of its file counts as a pipe. */
    bool sized = S_ISREG(status.st_mode) && (!standard || lseek(fd, 0, SEEK_CUR) == 0);
    *input = (struct input){.fd = fd, .name = name, .sized = sized, .size_bytes = sized ? (uint64_t)status.st_size : 0};
    return 0;
}

void input_close(struct input *input)
{
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    input->fd = -1;
    free(input->ahead);
    free(input->own_name);
    input->ahead = NULL;
    input->own_name = NULL;
}

int input_replace(struct input *input, const char *path, struct error *error)
{
    struct input other;
    int result = input_open(&other, path, error);
    if (result)
        return result;
    other.own_name = strdup(path);
    if (!other.own_name) {
        input_close(&other);
        return fail(error, EX_TEMPFAIL, "%s: out of memory for its name", path);
    }
    other.name = other.own_name;
    input_close(input);
    *input = other;
    return 0;
}

/* One read. Returns the number of bytes, 0 at the end, or -errno. */
static ssize_t input_read_some(const struct input *input, void *data, uint64_t size_bytes)
{
    ssize_t count;
    do
        count = read(input->fd, data, size_bytes < READ_MAX_BYTES ? size_bytes : READ_MAX_BYTES);
    while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

/* Moves what was looked at. Returns how much. */
static uint64_t ahead_pop(struct input *input, void *data, uint64_t size_bytes)
{
    uint64_t left = input->ahead_bytes - input->ahead_at;
    uint64_t count = left < size_bytes ? left : size_bytes;
    if (!count)
        return 0;
    memcpy(data, input->ahead + input->ahead_at, count);
    input->ahead_at += count;
    return count;
}

static int error_reading(const struct input *input, uint64_t position, int code, struct error *error)
{
    return fail(error, EX_IOERR, "%s: reading fails at byte %" PRIu64 ": %s", input->name, position, strerror(code));
}

int input_read_most(struct input *input, void *data, uint64_t *size_bytes, struct error *error)
{
    uint64_t wanted = *size_bytes, done = ahead_pop(input, data, wanted);
    input->position += done;
    while (done < wanted) {
        ssize_t count = input_read_some(input, (char *)data + done, wanted - done);
        if (count < 0)
            return error_reading(input, input->position, (int)-count, error);
        if (!count)
            break;
        done += (uint64_t)count;
        input->position += (uint64_t)count;
    }
    *size_bytes = done;
    return 0;
}

int input_read(struct input *input, void *data, uint64_t size_bytes, const char *what, struct error *error)
{
    uint64_t done = size_bytes;
    int result = input_read_most(input, data, &done, error);
    if (result || done == size_bytes)
        return result;
    return fail(error, EX_DATAERR,
                "%s: ends after %" PRIu64 " bytes, where %" PRIu64 " more bytes of %s are due; the file is cut short",
                input->name, input->position, size_bytes - done, what);
}

/* Makes room for so many bytes to be looked at, the first of them in front. */
static int ahead_reserve(struct input *input, uint64_t size_bytes, struct error *error)
{
    uint64_t left = input->ahead_bytes - input->ahead_at;
    if (left)
        memmove(input->ahead, input->ahead + input->ahead_at, left);
    input->ahead_at = 0;
    input->ahead_bytes = left;
    unsigned char *larger = realloc(input->ahead, size_bytes);
    if (!larger)
        return fail(error, EX_TEMPFAIL, "%s: out of memory for %" PRIu64 " bytes of it", input->name, size_bytes);
    input->ahead = larger;
    return 0;
}

int input_look(struct input *input, uint64_t size_bytes, const unsigned char **bytes, uint64_t *available,
               struct error *error)
{
    int result = 0;
    if (input->ahead_bytes - input->ahead_at < size_bytes)
        result = ahead_reserve(input, size_bytes, error);
    while (!result && input->ahead_bytes - input->ahead_at < size_bytes) {
        ssize_t count = input_read_some(input, input->ahead + input->ahead_bytes, size_bytes - input->ahead_bytes);
        if (count < 0)
            result = error_reading(input, input->position + input->ahead_bytes, (int)-count, error);
        if (count <= 0)
            break;
        input->ahead_bytes += (uint64_t)count;
    }
    *bytes = input->ahead + input->ahead_at;
    *available = input->ahead_bytes - input->ahead_at;
    return result;
}

int input_peek(const struct input *input, void *data, size_t size_bytes, uint64_t offset, struct error *error)
{
    ssize_t count;
    do
        count = pread(input->fd, data, size_bytes, (off_t)offset);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return error_reading(input, offset, errno, error);
    if ((size_t)count < size_bytes)
        return fail(error, EX_DATAERR, "%s: ends before byte %" PRIu64 "; the file is cut short", input->name,
                    offset + size_bytes);
    return 0;
}

int input_seek(struct input *input, uint64_t offset, struct error *error)
{
    if (lseek(input->fd, (off_t)offset, SEEK_SET) < 0)
        return fail(error, EX_IOERR, "%s: going to byte %" PRIu64 " fails: %s", input->name, offset, strerror(errno));
    input->position = offset;
    input->ahead_at = input->ahead_bytes = 0;
    return 0;
}

int input_skip(struct input *input, uint64_t size_bytes, struct error *error)
{
    char bytes[SKIP_BYTES];
    int result = 0;
    if (input->sized && size_bytes <= input->size_bytes - input->position)
        return input_seek(input, input->position + size_bytes, error);
    for (uint64_t left = size_bytes; left && !result;) {
        uint64_t count = left < sizeof(bytes) ? left : sizeof(bytes);
        result = input_read(input, bytes, count, "what is skipped", error);
        left -= count;
    }
    return result;
}

int input_expect_end(struct input *input, struct error *error)
{
    char byte;
    uint64_t count = 1, position = input->position;
    if (input->sized)
        return 0; /* the size was compared before */
    int result = input_read_most(input, &byte, &count, error);
    if (!result && count)
        return fail(error, EX_DATAERR,
                    "%s: goes on after the %" PRIu64 " bytes that its shape needs; give the shape of all of it",
                    input->name, position);
    return result;
}

#include "client/scanctl/formats/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read call never moves more than this: the kernel's own bound is a page short of 2 GiB. */
#define READ_MAX_BYTES (UINT64_C(1) << 30)

int input_open(struct input *input, const char *path, struct error *error)
{
    bool standard = !strcmp(path, "-");
    const char *name = standard ? "standard input" : path;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(error, EX_NOINPUT, "%s: cannot be opened: %s; give a file that exists and that you may read", name,
                    strerror(errno));
    struct stat status = {.st_mode = 0};
    if (!fstat(fd, &status) && S_ISDIR(status.st_mode)) {
        if (!standard)
            close(fd);
        return fail(error, EX_NOINPUT, "%s: is a folder; give a file", name);
    }
    /* Where standard input stands in the middle of its file, it counts as a pipe. */
    bool sized = S_ISREG(status.st_mode) && (!standard || lseek(fd, 0, SEEK_CUR) == 0);
    *input = (struct input){.fd = fd, .name = name, .sized = sized, .size_bytes = sized ? (uint64_t)status.st_size : 0};
    return 0;
}

void input_close(struct input *input)
{
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    input->fd = -1;
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

int input_read(struct input *input, void *data, uint64_t size_bytes, const char *what, struct error *error)
{
    uint64_t done = 0;
    while (done < size_bytes) {
        ssize_t count = input_read_some(input, (char *)data + done, size_bytes - done);
        if (count < 0)
            return fail(error, EX_IOERR, "%s: reading fails at byte %" PRIu64 ": %s", input->name, input->position,
                        strerror((int)-count));
        if (!count)
            return fail(error, EX_DATAERR,
                        "%s: ends after %" PRIu64 " bytes, where %" PRIu64
                        " more bytes of %s are due; the file is cut short",
                        input->name, input->position, size_bytes - done, what);
        done += (uint64_t)count;
        input->position += (uint64_t)count;
    }
    return 0;
}

int input_peek(const struct input *input, void *data, size_t size_bytes, uint64_t offset, struct error *error)
{
    ssize_t count;
    do
        count = pread(input->fd, data, size_bytes, (off_t)offset);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return fail(error, EX_IOERR, "%s: reading fails at byte %" PRIu64 ": %s", input->name, offset, strerror(errno));
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
    return 0;
}

int input_expect_end(struct input *input, struct error *error)
{
    char byte;
    if (input->sized)
        return 0; /* its size was compared before */
    ssize_t count = input_read_some(input, &byte, 1);
    if (count < 0)
        return fail(error, EX_IOERR, "%s: reading fails at byte %" PRIu64 ": %s", input->name, input->position,
                    strerror((int)-count));
    if (count)
        return fail(error, EX_DATAERR,
                    "%s: goes on after the %" PRIu64 " bytes that its shape needs; give the shape of all of it",
                    input->name, input->position);
    return 0;
}

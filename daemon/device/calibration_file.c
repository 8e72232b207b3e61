#include "calibration_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_FOLDER "/var/cache/scand"

static bool find_folder(char path[PATH_MAX])
{
    const char *given = getenv("CACHE_DIRECTORY"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (given && *given)
        length = snprintf(path, PATH_MAX, "%.*s", (int)strcspn(given, ":"), given);
    else if (geteuid() == 0)
        length = snprintf(path, PATH_MAX, SYSTEM_FOLDER);
    else if (caches && *caches)
        length = snprintf(path, PATH_MAX, "%s/scand", caches);
    else if (home && *home)
        length = snprintf(path, PATH_MAX, "%s/.cache/scand", home);
    else
        return false;
    return length < PATH_MAX && path[0] == '/';
}

/* True when nobody but this user can have written the file or folder. */
static bool is_own(int fd, mode_t kind)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens the folder; `make` creates it and its parent if need be, but none above. Returns a descriptor or -errno. */
static int open_folder(bool make)
{
    char path[PATH_MAX];
    if (!find_folder(path))
        return -ENOENT;
    if (make) {
        char *last = strrchr(path, '/');
        *last = '\0';
        if (*path)
            mkdir(path, 0700);
        *last = '/';
        mkdir(path, 0700);
    }
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (is_own(fd, S_IFDIR))
        return fd;
    close(fd);
    return -EPERM;
}

static int read_all(int fd, char *out, size_t size)
{
    size_t got = 0;
    ssize_t n;
    while (got < size && (n = read(fd, out + got, size - got)) != 0) {
        if (n < 0 && errno != EINTR)
            return -errno;
        got += n > 0 ? (size_t)n : 0;
    }
    char more;
    return got == size && read(fd, &more, 1) != 0 ? -EFBIG : (int)got;
}

int calibration_file_read(const char *name, char *out, size_t size)
{
    int folder = open_folder(false);
    if (folder < 0)
        return folder;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int r = fd < 0 ? -errno : is_own(fd, S_IFREG) ? read_all(fd, out, size) : -EPERM;
    if (fd >= 0)
        close(fd);
    close(folder);
    return r;
}

static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int calibration_file_write(const char *name, const char *text, size_t size)
{
    char fresh[NAME_MAX];
    int folder = open_folder(true);
    if (folder < 0)
        return folder;
    snprintf(fresh, sizeof fresh, "%s.%d", name, (int)getpid());
    int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : write_all(fd, text, size);
    if (fd >= 0 && close(fd) && !r)
        r = -errno;
    if (!r && renameat(folder, fresh, folder, name))
        r = -errno;
    if (r && fd >= 0)
        unlinkat(folder, fresh, 0);
    close(folder);
    return r;
}

/*
 * The file's text.
 */

struct line {
    const char *begin;
    size_t size; /* without the line end */
};

/* Gets the line at *at and moves *at behind it. Returns false at the end; an unfinished line counts as the end. */
static bool next_line(const char *text, size_t size, size_t *at, struct line *line)
{
    const char *end = *at < size ? memchr(text + *at, '\n', size - *at) : NULL;
    if (!end)
        return false;
    *line = (struct line){text + *at, (size_t)(end - (text + *at))};
    *at += line->size + 1;
    return true;
}

static bool is_of(const struct line *line, const char *identity)
{
    size_t length = strlen(identity);
    return line->size > length && memcmp(line->begin, identity, length) == 0 && line->begin[length] == '\t';
}

/* Parses the fields behind the identity. */
static bool read_fields(const char *text, size_t size, struct chunk_size *out)
{
    char copy[96];
    int length = -1;
    struct chunk_size chunk_size;
    if (size >= sizeof copy || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (sscanf(copy, "\t%20" SCNu64 "\t%9" SCNu32 "\t%20" SCNu64 "%n", &chunk_size.chunk_bytes, &chunk_size.chunks,
               &chunk_size.bytes_per_s, &length) != 3 ||
        (size_t)length != size || !chunk_size_is_candidate(&chunk_size))
        return false;
    *out = chunk_size;
    return true;
}

bool calibration_find(const char *text, size_t size, const char *identity, struct chunk_size *out)
{
    struct line line;
    size_t length = strlen(identity), at = 0;
    while (next_line(text, size, &at, &line))
        if (is_of(&line, identity))
            return read_fields(line.begin + length, line.size - length, out);
    return false;
}

size_t calibration_record(const char *text, size_t size, const char *identity, const struct chunk_size *chunk_size,
                          char out[CALIBRATION_FILE_BYTES])
{
    struct line line;
    size_t at = 0;
    assert(strlen(identity) < DEVICE_IDENTITY_BYTES);
    size_t length = (size_t)snprintf(out, CALIBRATION_FILE_BYTES, "%s\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n",
                                     identity, chunk_size->chunk_bytes, chunk_size->chunks, chunk_size->bytes_per_s);
    while (next_line(text, size, &at, &line)) {
        if (is_of(&line, identity) || length + line.size + 1 > CALIBRATION_FILE_BYTES)
            continue;
        memcpy(out + length, line.begin, line.size + 1);
        length += line.size + 1;
    }
    return length;
}

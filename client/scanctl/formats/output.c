#include "client/scanctl/formats/output.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/scanctl/formats/input.h"

#define TEMPORARY_PREFIX ".scanctl."
#define NAME_TRIES       100
#define WRITE_MAX_BYTES  (UINT64_C(1) << 30)

/* The files that a signal has to remove. Set and cleared while the signals are blocked. */
static char signal_paths[OUTPUTS_MAX][PATH_MAX];
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static void remove_and_die(int signal_number)
{
    for (size_t i = 0; i < OUTPUTS_MAX; i++)
        if (signal_paths[i][0])
            unlink(signal_paths[i]);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void signals_block(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

/* Leaves ignored signals ignored, as under nohup. */
static void signals_catch(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction old, action = {.sa_handler = remove_and_die};
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

/* Returns the path of the file to replace, or to make: where the name is a link, the file behind the link, which may
 * not be there yet, as on a larger disk. */
static char *target_of(const char *path)
{
    char behind[PATH_MAX], *next = NULL, *resolved = realpath(path, NULL);
    const ssize_t length = !resolved && errno == ENOENT ? readlink(path, behind, sizeof(behind) - 1) : -1;
    if (length <= 0)
        return resolved ? resolved : strdup(path);
    behind[length] = '\0';
    const char *slash = behind[0] == '/' ? NULL : strrchr(path, '/');
    if (asprintf(&next, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, behind) < 0)
        return NULL;
    char *target = target_of(next);
    free(next);
    return target;
}

#define TEMPORARY "%.*s" TEMPORARY_PREFIX "%ld.%u"

/* True when a file's name is one that temporary_create gives, by a process that is not there any more. */
static bool is_left_over(const char *name)
{
    long process;
    unsigned number;
    char end;
    if (strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) ||
        sscanf(name + strlen(TEMPORARY_PREFIX), "%ld.%u%c", &process, &number, &end) != 2)
        return false;
    return process > 0 && kill((pid_t)process, 0) && errno == ESRCH;
}

/* Removes a file that nobody has locked, and that is this user's. On another machine its process may live: the lock
 * says so, where the file system has locks; where it has none, the file stays. */
static void left_over_remove(int folder, const char *name)
{
    struct stat status;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(folder, name, 0);
    close(fd);
}

/* Removes what killed runs have left in the folder that a path begins with. */
static void left_overs_remove(const char *path, int folder_length)
{
    char folder[PATH_MAX];
    if (folder_length >= (int)sizeof(folder))
        return;
    snprintf(folder, sizeof(folder), "%.*s", folder_length ? folder_length : 1, folder_length ? path : ".");
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (is_left_over(entry->d_name))
            left_over_remove(dirfd(listing), entry->d_name);
    if (listing)
        closedir(listing);
}

/* Locks a new file. Returns false where it was taken for a left-over one in the moment before. */
static bool temporary_lock(int fd)
{
    struct stat status;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &status) || status.st_nlink;
}

/* Opens a new file beside output->target, with the permissions that creating it there would give. */
static int temporary_create(struct output *output)
{
    const char *slash = strrchr(output->target, '/');
    int folder_length = slash ? (int)(slash - output->target + 1) : 0;
    left_overs_remove(output->target, folder_length);
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        free(output->temporary);
        if (asprintf(&output->temporary, TEMPORARY, folder_length, output->target, (long)getpid(), i) < 0) {
            output->temporary = NULL;
            return -ENOMEM;
        }
        if (strlen(output->temporary) >= sizeof(signal_paths[0]))
            return -ENAMETOOLONG;
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno != EEXIST)
            return -errno;
        if (output->fd >= 0 && temporary_lock(output->fd))
            return 0;
        if (output->fd >= 0)
            close(output->fd);
        output->fd = -1;
    }
    return -EEXIST;
}

static int signal_place_find(void)
{
    int place = 0;
    while (place < OUTPUTS_MAX && signal_paths[place][0])
        place++;
    assert(place < OUTPUTS_MAX);
    return place;
}

/* A temporary file that signals know of from its first moment. */
static int temporary_open(struct output *output)
{
    sigset_t before;
    signals_block(&before);
    int result = temporary_create(output);
    if (!result) {
        output->signal_place = signal_place_find();
        strcpy(signal_paths[output->signal_place], output->temporary);
        signals_catch();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* The temporary name is not there any more. Called with the signals blocked. */
static void signal_forget(const struct output *output)
{
    if (output->temporary)
        signal_paths[output->signal_place][0] = '\0';
}

static void output_free(struct output *output)
{
    if (output->fd > STDOUT_FILENO)
        close(output->fd);
    free(output->target);
    free(output->temporary);
    *output = (struct output){.fd = -1};
}

static int error_cannot_create(struct output *output, int code, struct error *error)
{
    int exit_code = code == ENOSPC || code == EDQUOT ? EX_IOERR : EX_CANTCREAT;
    fail(error, exit_code, "%s: cannot be created: %s; %s", output->name, strerror(code),
         open_advice(code, "give a name in a folder that exists and that you may write to"));
    output_free(output);
    return exit_code;
}

int output_open(struct output *output, const char *path, struct error *error)
{
    struct stat status;
    if (!strcmp(path, "-") && isatty(STDOUT_FILENO))
        return fail(error, EX_USAGE,
                    "standard output is a terminal, and samples are binary; redirect it, or give -o FILE");
    if (!strcmp(path, "-")) {
        *output = (struct output){.fd = STDOUT_FILENO, .name = "standard output"};
        fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES); /* for pipes; fails harmlessly on other files */
        return 0;
    }
    *output = (struct output){.fd = -1, .name = path};
    bool exists = !stat(path, &status);
    if (exists && !S_ISREG(status.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC); /* a device or a pipe; a folder fails with EISDIR */
        return output->fd < 0 ? error_cannot_create(output, errno, error) : 0;
    }
    if (exists && access(path, W_OK)) /* a file that may not be written is not to be replaced either */
        return error_cannot_create(output, errno, error);
    output->target = target_of(path);
    int result = output->target ? temporary_open(output) : -ENOMEM;
    if (result)
        return error_cannot_create(output, -result, error);
    /* The new file gets the owner and permissions of the file that it replaces, as far as they may be set. */
    if (exists && !fchown(output->fd, status.st_uid, status.st_gid))
        fchmod(output->fd, status.st_mode & 0777);
    return 0;
}

int output_write(struct output *output, const void *data, uint64_t size_bytes, struct error *error)
{
    for (uint64_t done = 0; done < size_bytes;) {
        uint64_t left = size_bytes - done;
        ssize_t count = write(output->fd, (const char *)data + done, left < WRITE_MAX_BYTES ? left : WRITE_MAX_BYTES);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EPIPE)
            return fail(error, EXIT_PIPE, "%s", ""); /* the reader has gone, as may happen to any filter */
        if (count < 0)
            return fail(error, EX_IOERR, "%s: writing fails after %" PRIu64 " bytes: %s%s", output->name,
                        output->written_bytes, strerror(errno), write_advice(errno));
        done += (uint64_t)count;
        output->written_bytes += (uint64_t)count;
    }
    return 0;
}

static int error_at_end(const struct output *output, struct error *error)
{
    return fail(error, EX_IOERR, "%s: writing fails at its end: %s%s", output->name, strerror(errno),
                write_advice(errno));
}

int output_commit(struct output *output, struct error *error)
{
    int result = 0;
    /* Some file systems report a full disk only here. And a name given before the samples are on the disk would, after
     * a loss of power, be the name of an empty file. */
    if (output->target && fsync(output->fd) && errno != EINVAL && errno != ENOTSUP)
        result = error_at_end(output, error);
    if (output->fd > STDOUT_FILENO && close(output->fd) && errno != EINTR && !result)
        result = error_at_end(output, error);
    output->fd = -1;
    sigset_t before;
    signals_block(&before);
    if (!result && output->target && rename(output->temporary, output->target))
        result = fail(error, EX_CANTCREAT, "%s: cannot be given its name: %s", output->name, strerror(errno));
    if (result && output->temporary)
        unlink(output->temporary);
    signal_forget(output);
    sigprocmask(SIG_SETMASK, &before, NULL);
    output_free(output);
    return result;
}

void output_discard(struct output *output)
{
    sigset_t before;
    signals_block(&before);
    if (output->temporary)
        unlink(output->temporary);
    signal_forget(output);
    sigprocmask(SIG_SETMASK, &before, NULL);
    output_free(output);
}

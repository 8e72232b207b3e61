#include "client/scanctl/formats/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_TRIES      100
#define EXIT_PIPE       (128 + SIGPIPE) /* as a shell says of who is ended by the signal */
#define WRITE_MAX_BYTES (UINT64_C(1) << 30)

/* What a signal has to remove. Set and cleared while the signals are blocked. */
static char signal_path[PATH_MAX];
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static void remove_and_die(int signal_number)
{
    if (signal_path[0])
        unlink(signal_path);
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
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction old, action = {.sa_handler = remove_and_die};
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
}

/* Where the name is a link, the file behind it is what gets replaced. */
static char *target_of(const char *path)
{
    char *resolved = realpath(path, NULL);
    return resolved ? resolved : strdup(path);
}

/* Opens a new file beside output->target, with the permissions that creating it there would give. */
static int temporary_create(struct output *output)
{
    const char *slash = strrchr(output->target, '/');
    int folder_length = slash ? (int)(slash - output->target + 1) : 0;
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        free(output->temporary);
        if (asprintf(&output->temporary, "%.*s.scanctl.%ld.%u", folder_length, output->target, (long)getpid(), i) < 0) {
            output->temporary = NULL;
            return -ENOMEM;
        }
        if (strlen(output->temporary) >= sizeof(signal_path))
            return -ENAMETOOLONG;
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd >= 0 || errno != EEXIST)
            return output->fd >= 0 ? 0 : -errno;
    }
    return -EEXIST;
}

/* A temporary file that signals know of from its first moment. */
static int temporary_open(struct output *output)
{
    sigset_t before;
    signals_block(&before);
    int result = temporary_create(output);
    if (!result) {
        strcpy(signal_path, output->temporary);
        signals_catch();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
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
    fail(error, exit_code, "%s: cannot be created: %s; give a name in a folder that exists and that you may write to",
         output->name, strerror(code));
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
    /* Owner and permissions of the file that it replaces, as far as they may be set. */
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
            return fail(error, EXIT_PIPE, "%s", ""); /* nobody reads any more, as with any filter */
        if (count < 0)
            return fail(error, EX_IOERR, "%s: writing fails after %" PRIu64 " bytes: %s%s", output->name,
                        output->written_bytes, strerror(errno),
                        errno == ENOSPC || errno == EDQUOT ? "; free some space or write elsewhere" : "");
        done += (uint64_t)count;
        output->written_bytes += (uint64_t)count;
    }
    return 0;
}

int output_commit(struct output *output, struct error *error)
{
    int result = 0;
    /* Some file systems tell of a full disk only now. */
    if (output->fd > STDOUT_FILENO && close(output->fd) && errno != EINTR)
        result = fail(error, EX_IOERR, "%s: writing fails at its end: %s", output->name, strerror(errno));
    output->fd = -1;
    sigset_t before;
    signals_block(&before);
    if (!result && output->target && rename(output->temporary, output->target))
        result = fail(error, EX_CANTCREAT, "%s: cannot be given its name: %s", output->name, strerror(errno));
    if (result && output->temporary)
        unlink(output->temporary);
    signal_path[0] = '\0';
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
    signal_path[0] = '\0';
    sigprocmask(SIG_SETMASK, &before, NULL);
    output_free(output);
}

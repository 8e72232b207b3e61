/*
 * scanctl: the scand daemon from the command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/scanctl/commands/commands.h"

#define X(NAME, ARGUMENTS, TEXT) {#NAME, "scanctl " #NAME, ARGUMENTS, TEXT, command_##NAME},
static const struct command {
    const char *name, *full_name, *arguments, *text;
    int (*run)(int argc, char **argv, struct common_options *common, struct error *error);
} commands[] = {COMMANDS(X)};
#undef X
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void usage(void)
{
    printf("usage: scanctl [--socket PATH] COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s %-32s %s\n", commands[i].name, commands[i].arguments, commands[i].text);
    printf(
        "\n"
        "  --socket PATH  the daemon's socket; else $SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock where that is\n"
        "                 there, else /run/scand/scand.sock\n"
        "  --version      print the version\n"
        "  --help         print this; after a command's name, that command's help\n\n"
        "Exit codes: 0 success, 64 wrong usage, 65 wrong data, 66 no input, 69 no daemon, 70 a fault of the daemon "
        "or device,\n"
        "73 output cannot be created, 74 reading or writing failed, 75 try again, 77 not permitted, 130 cancelled.\n");
}

static int error_no_command(const char *word, struct error *error)
{
    char names[256] = "";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        strcat(names, i ? ", " : "");
        strcat(names, commands[i].name);
    }
    if (!word)
        return fail(error, EX_USAGE, "no command; give one of %s; see scanctl --help", names);
    return fail(error, EX_USAGE, "unknown command \"%s\"; give one of %s; see scanctl --help", word, names);
}

static int command_run(int argc, char **argv, struct common_options *common, struct error *error)
{
    for (size_t i = 0; argc > 0 && i < COMMAND_COUNT; i++) {
        if (strcmp(argv[0], commands[i].name))
            continue;
        argv[0] = (char *)commands[i].full_name;
        return commands[i].run(argc, argv, common, error);
    }
    return error_no_command(argc > 0 ? argv[0] : NULL, error);
}

static int version_handle(void *context, int option, const char *argument, struct error *error)
{
    (void)option, (void)argument, (void)error;
    *(bool *)context = true;
    return 0;
}

static int scanctl(int argc, char **argv, struct error *error)
{
    static const struct option table[] = {{"version", no_argument, NULL, OPTION_OWN}, COMMON_OPTIONS, {0}};
    struct common_options common = {.socket_path = NULL};
    bool version = false;
    argv[0] = (char *)"scanctl";
    int result = options_parse(argc, argv, "+:", table, version_handle, &version, &common, error);
    if (result)
        return result;
    if (version)
        printf("scanctl %s\n", SCANCTL_VERSION);
    else if (common.help)
        usage();
    else
        return command_run(argc - optind, argv + optind, &common, error);
    return 0;
}

/* Puts something at each standard descriptor that is closed, or a file that is opened later would come to lie there and
 * get what is meant for a terminal. It refuses reads, or writes, as the closed one would. */
static bool occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!occupy_standard_descriptors())
        return EX_OSERR;
    struct error error = {.exit_code = 0};
    int result = argc < 1 ? EX_USAGE : scanctl(argc, argv, &error);
    if (!result && (fflush(stdout) || ferror(stdout)))
        result = fail(&error, EX_IOERR, "standard output: writing fails: %s", strerror(errno));
    if (result)
        fprintf(stderr, "scanctl: %s\n", error.text);
    return result;
}

/*
 * scanctl: the scand daemon from the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/commands/commands.h"
#include "protocol/own_descriptors.h"

/* True when a command that needs words has none: it then says what it does, as programs of Seismic Unix do. */
static bool is_question(int argc, const struct command *command)
{
    return argc == 1 && (command->options == scan_options || command->options == reduce_options);
}

static int words_run(int argc, char **argv, struct common_options *common, struct error *error)
{
#define X(NAME, OPTIONS, ARGUMENTS, TEXT) command_##NAME,
    static int (*const runs[])(int, char **, struct common_options *, struct error *) = {COMMANDS(X)};
#undef X
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++) {
        if (strcmp(argv[0], command->name))
            continue;
        argv[0] = (char *)command->full_name;
        if (common->local && !options_have_local(command->options))
            return fail(error, EX_USAGE,
                        "--local is for commands that compute, operations and kernels; %s asks a daemon", argv[0]);
        int result = is_question(argc, command) ? EX_USAGE : runs[i](argc, argv, common, error);
        if (is_question(argc, command) || (!result && common->help))
            help_print(command, result ? stderr : stdout);
        return result;
    }
    return command_unknown(argv[0], error);
}

static int version_handle(void *context, int option, const char *argument, struct error *error)
{
    (void)option, (void)argument, (void)error;
    *(bool *)context = true;
    return 0;
}

static int scanctl(int argc, char **argv, struct error *error)
{
    static const struct option_row table[] = {
        {"version", OPTION_OWN, 'V', NULL, VALUE_FREE, "print the version"}, LOCAL_OPTION, COMMON_OPTIONS, {0}};
    struct common_options common = {.socket_path = NULL};
    bool version = false;
    argv[0] = (char *)"scanctl";
    const struct option_set set = {.table = table, .handler = version_handle, .context = &version, .stops = true};
    int result = options_parse(argc, argv, &set, &common, error);
    if (result)
        return result;
    if (version)
        printf("scanctl %s\n", SCANCTL_VERSION);
    else if (common.help)
        usage_print(stdout);
    else if (optind >= argc) {
        usage_print(stderr);
        return EX_USAGE;
    } else
        return words_run(argc - optind, argv + optind, &common, error);
    return 0;
}

int main(int argc, char **argv)
{
    if (own_descriptors_occupy())
        return EX_OSERR;
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is a failed write, with a message */
    struct error error = {.exit_code = 0};
    int result = argc < 1 ? EX_USAGE : scanctl(argc, argv, &error);
    if (!result && (fflush(stdout) || ferror(stdout)))
        result = errno == EPIPE ? fail(&error, EXIT_PIPE, "%s", "")
                                : fail(&error, EX_IOERR, "standard output: writing fails: %s%s", strerror(errno),
                                       write_advice(errno));
    if (result && error.text[0])
        fprintf(stderr, "scanctl: %s\n", error.text);
    return result;
}

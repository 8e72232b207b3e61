#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "activation.h"
#include "config.h"
#include "daemon/net/metrics_http.h"
#include "log.h"
#include "protocol/text.h"
#include "version.h"

#define SYSTEM_CONFIG "/etc/scand/scand.conf"

static const char help[] = "Usage: scand [OPTION]...\n"
                           "Runs scan jobs of many programs on GPUs, or without any on the processor.\n"
                           "\n"
                           "  --config PATH         file with settings (default: " SYSTEM_CONFIG " as\n"
                           "                        root, else $XDG_CONFIG_HOME/scand.conf, if it is there)\n"
                           "  --check-config [PATH] only say whether the file is right\n"
                           "  --foreground          stay in the foreground\n"
                           "  --fail-chunk N        for tests: lose the first device at its N-th chunk\n"
                           "  --hang-chunk N        for tests: never give back its N-th chunk\n"
                           "  --fail-memory N       for tests: lose it at the N-th call for its memory\n"
                           "  --help, --version\n";

static const char help_end[] = "\n"
                               "SIZE is a number of bytes, or of K, M, G (powers of 1024). The default socket is\n"
                               "$SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock, else, as root,\n"
                               "/run/scand/scand.sock.\n"
                               "Without --foreground the command returns when the daemon is ready.\n";

/* Prints two lines, option and allowed values, for each setting of a section. */
static void print_settings(enum section section, const char *prefix)
{
    static const char *const words[] = {
        [UNIT_PATH] = "PATH", [UNIT_DEVICE] = "DEVICE",   [UNIT_LISTEN] = "ADDRESS", [UNIT_SIZE] = "SIZE",
        [UNIT_NUMBER] = "N",  [UNIT_SECONDS] = "SECONDS", [UNIT_MODE] = "MODE",      [UNIT_GROUP] = "GROUP"};
    struct settings standard;
    settings_init(&standard);
    for (enum setting i = 0; i < SETTING_COUNT; i++) {
        const struct setting_type *type = &setting_types[i];
        char option[64], allowed[SETTING_TEXT_BYTES], value[SETTING_TEXT_BYTES];
        if (type->section != section)
            continue;
        snprintf(option, sizeof option, "--%s%s %s", prefix, type->word, words[type->unit]);
        printf("  %-28s %s\n", option, type->help);
        if (type->unit != UNIT_PATH)
            printf("  %-28s (%s; default %s)\n", "", setting_allowed(i, allowed, sizeof allowed),
                   setting_format(&standard, i, value, sizeof value));
    }
}

static void print_help(void)
{
    fputs(help, stdout);
    puts("\nSettings, as options or, without the dashes, in the file's section [daemon]:");
    print_settings(SECTION_DAEMON, "");
    puts("\nWhat a user gets at most, as options or, without --quota-, in the file's section\n"
         "[quota], and for one user in [user NAME]. SIGHUP reads these again:");
    print_settings(SECTION_QUOTA, "quota-");
    fputs(help_end, stdout);
}

/*
 * The command line.
 */

/* The values of getopt_long for options that are not settings; a setting's value is OPTION_SETTINGS + its index. */
enum {
    OPTION_CONFIG = 'c',
    OPTION_CHECK = 'k',
    OPTION_FOREGROUND = 'f',
    OPTION_FAIL = 'x',
    OPTION_HANG = 'y',
    OPTION_FAIL_MEMORY = 'z',
    OPTION_HELP = 'h',
    OPTION_VERSION = 'v'
};
#define OPTION_SETTINGS 256

#define OPTION_PREFIX_DAEMON ""
#define OPTION_PREFIX_QUOTA  "quota-"

// clang-format off
static const struct option option_names[] = {
#define X(NAME, SECTION, WORD, UNIT, LOW, HIGH, STANDARD, HELP) \
    {OPTION_PREFIX_##SECTION WORD, required_argument, NULL, OPTION_SETTINGS + SETTING_##NAME},
    SETTINGS(X)
#undef X
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"foreground", no_argument, NULL, OPTION_FOREGROUND},
    {"fail-chunk", required_argument, NULL, OPTION_FAIL},
    {"hang-chunk", required_argument, NULL, OPTION_HANG},
    {"fail-memory", required_argument, NULL, OPTION_FAIL_MEMORY},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};
// clang-format on

static int parse_setting(enum setting setting, const char *value, struct options *options)
{
    char name[64];
    struct error error;
    snprintf(name, sizeof name, "--%s", option_names[setting].name);
    if (setting_parse(&options->command_line, setting, value, name, &error) == 0)
        return -1;
    log_error("%s; see scand --help", error.message);
    return EX_USAGE;
}

/* Parses the number of a call at which a device is to fail, in tests. */
static int parse_call(const char *name, const char *value, uint64_t *out)
{
    if (number_parse(value, 1, UINT64_MAX, out))
        return -1;
    log_error("%s is \"%s\"; allowed: 1 and more; see scand --help", name, value);
    return EX_USAGE;
}

static int parse_option(int option, const char *value, struct options *options)
{
    if (option >= OPTION_SETTINGS)
        return parse_setting((enum setting)(option - OPTION_SETTINGS), value, options);
    switch (option) {
    case OPTION_CONFIG:
        options->config = value;
        return -1;
    case OPTION_CHECK:
        options->check_config = true;
        return -1;
    case OPTION_FOREGROUND:
        options->foreground = true;
        return -1;
    case OPTION_FAIL:
        return parse_call("--fail-chunk", value, &options->faults.fail_chunk);
    case OPTION_HANG:
        return parse_call("--hang-chunk", value, &options->faults.hang_chunk);
    case OPTION_FAIL_MEMORY:
        return parse_call("--fail-memory", value, &options->faults.fail_memory);
    case OPTION_HELP:
        print_help();
        return EX_OK;
    case OPTION_VERSION:
        puts(version_text);
        return EX_OK;
    default:
        fputs("See scand --help.\n", stderr);
        return EX_USAGE;
    }
}

/*
 * The configuration file, and settings from all sources.
 */

/* Finds the configuration file when the command line names none. Returns false when there is none, or its folder is not
 * for this user. */
static bool find_config(char *path, size_t size)
{
    const char *own = getenv("CONFIGURATION_DIRECTORY"); /* set by a service manager */
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (own && *own)
        snprintf(path, size, "%s/scand.conf", own);
    else if (geteuid() == 0)
        snprintf(path, size, SYSTEM_CONFIG);
    else if (folder && *folder)
        snprintf(path, size, "%s/scand.conf", folder);
    else if (home && *home)
        snprintf(path, size, "%s/.config/scand.conf", home);
    else
        return false;
    return access(path, F_OK) == 0;
}

/* Reads the configuration file, if there is one; `path` becomes its path, or "" without one. */
static int read_config(const struct options *options, char *path, size_t size, struct config *config,
                       struct error *error)
{
    *config = (struct config){0};
    if (options->config)
        snprintf(path, size, "%s", options->config);
    else if (!find_config(path, size))
        *path = '\0';
    return *path ? config_read(path, config, error) : 0;
}

static void fill_grant(const struct settings *settings, struct grant *grant)
{
    _Static_assert(SETTING_QUOTA_PINNED_MEMORY - SETTING_QUOTA_HOST_MEMORY == QUOTA_PINNED_MEMORY, "in the same order");
    for (unsigned quota = 0; quota < QUOTA_COUNT; quota++)
        grant->most[quota] = settings->number[SETTING_QUOTA_HOST_MEMORY + quota];
    grant->weight = (unsigned)settings->number[SETTING_WEIGHT];
}

/* Fills the grants of all users. What the file says of one user overrides what the command line says of all. */
static void fill_grants(const struct settings *settings, const struct config *config, struct grants *grants)
{
    fill_grant(settings, &grants->standard);
    grants->own_count = config->user_count;
    for (size_t i = 0; i < config->user_count; i++) {
        struct settings own = *settings;
        settings_overlay(&own, &config->users[i].settings);
        grants->own[i].uid = config->users[i].uid;
        fill_grant(&own, &grants->own[i].grant);
    }
}

/* Gathers settings and grants anew from all sources: defaults, file, command line. */
static int gather(const struct options *options, struct settings *settings, struct grants *grants, struct error *error)
{
    static struct config config;
    char path[4096];
    int r = read_config(options, path, sizeof path, &config, error);
    if (r)
        return r;
    settings_init(settings);
    settings_overlay(settings, &config.settings);
    settings_overlay(settings, &options->command_line);
    fill_grants(settings, &config, grants);
    return metrics_http_check(settings->number[SETTING_METRICS_LISTEN], error);
}

/* Checks the configuration file and reports on it; the daemon does not start. */
static int check_config(const struct options *options)
{
    static struct config config;
    struct error error;
    char path[4096];
    int r = read_config(options, path, sizeof path, &config, &error);
    if (!r)
        r = metrics_http_check(config.settings.number[SETTING_METRICS_LISTEN], &error);
    if (r) {
        log_error("%s", error.message);
        return r == -EACCES || r == -EPERM ? EX_NOPERM : EX_CONFIG;
    }
    if (*path)
        printf("%s: right, with settings of %zu user%s\n", path, config.user_count, config.user_count == 1 ? "" : "s");
    else
        puts("there is no configuration file: all settings are the defaults");
    return EX_OK;
}

static void fill_fields(struct options *options)
{
    const uint64_t *number = options->settings.number;
    options->socket_mode = (unsigned)number[SETTING_SOCKET_MODE];
    options->socket_group = number[SETTING_SOCKET_GROUP];
    options->devices = number[SETTING_DEVICE];
    options->pool_bytes = number[SETTING_POOL];
    options->device_memory_bytes = number[SETTING_DEVICE_MEMORY];
    options->threads = (unsigned)number[SETTING_THREADS];
    options->chunk_bytes = number[SETTING_CHUNK];
    options->chunks = (uint32_t)number[SETTING_CHUNKS];
    options->metrics_listen = number[SETTING_METRICS_LISTEN];
    options->metrics_users = number[SETTING_METRICS_USERS];
    options->watchdog_ms = 1000 * number[SETTING_WATCHDOG];
    options->drain_ms = 1000 * number[SETTING_DRAIN];
}

/* Fills in where clients connect: a service manager's socket, if one was passed, else the path of `socket`. */
static int fill_socket(struct options *options, size_t passed_fds)
{
    struct error error;
    const char *given = options->settings.given[SETTING_SOCKET] ? options->settings.socket : NULL;
    options->listen_fd = -1;
    int r = passed_fds > 0
                ? activation_accept(passed_fds, &options->listen_fd, options->socket, sizeof options->socket, &error)
                : socket_path(given, options->socket, &error);
    if (!r)
        return -1;
    log_error("%s", error.message);
    return EX_USAGE;
}

/* Parses the command line. Returns -1 to go on, or an exit code. */
static int parse_words(int argc, char **argv, struct options *options)
{
    int option, code = -1;
    while (code < 0 && (option = getopt_long(argc, argv, "", option_names, NULL)) != -1)
        code = parse_option(option, optarg, options);
    if (code >= 0)
        return code;
    if (options->check_config && optind + 1 == argc)
        options->config = argv[optind++];
    if (optind < argc) {
        log_error("\"%s\" is no option; scand takes no other arguments; see scand --help", argv[optind]);
        return EX_USAGE;
    }
    return options->check_config ? check_config(options) : -1;
}

int options_parse(int argc, char **argv, size_t passed_fds, struct options *options)
{
    struct error error;
    *options = (struct options){0};
    int code = parse_words(argc, argv, options);
    if (code >= 0)
        return code;
    int r = gather(options, &options->settings, &options->grants, &error);
    if (r) {
        log_error("%s", error.message);
        return r == -EACCES || r == -EPERM ? EX_NOPERM : EX_CONFIG;
    }
    fill_fields(options);
    return fill_socket(options, passed_fds);
}

static void log_unchanged(const struct settings *now, const struct settings *wanted)
{
    for (enum setting i = 0; i < SETTING_COUNT; i++) {
        char old[SOCKET_PATH_BYTES], new[SOCKET_PATH_BYTES];
        if (setting_types[i].section == SECTION_QUOTA ||
            strcmp(setting_format(now, i, old, sizeof old), setting_format(wanted, i, new, sizeof new)) == 0)
            continue;
        log_error("\"%s\" is \"%s\" now, but stays \"%s\" until scand is started again", setting_types[i].word, new,
                  old);
    }
}

int options_reload(struct options *options, struct error *error)
{
    struct settings settings;
    struct grants grants;
    int r = gather(options, &settings, &grants, error);
    if (r)
        return r;
    log_unchanged(&options->settings, &settings);
    options->grants = grants;
    return 0;
}

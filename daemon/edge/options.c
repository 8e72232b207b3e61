#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "log.h"
#include "protocol/status.h"

#define POOL_BYTES_MAX          GIB(256)
#define DEVICE_MEMORY_BYTES_MAX GIB(1024)
#define THREADS_MAX             1024

static const char help[] = "Usage: scand [OPTION]...\n"
                           "Runs scan jobs of many programs on one GPU, or without one on the processor.\n"
                           "\n"
                           "  --socket PATH         where clients connect (default: $SCAND_SOCKET, else\n"
                           "                        $XDG_RUNTIME_DIR/scand.sock, as root /run/scand/scand.sock)\n"
                           "  --device WHICH        auto (a GPU if there is one), cpu, cuda, or cuda:N\n"
                           "  --pool SIZE           host memory kept ready for buffers (default 1G)\n"
                           "  --device-memory SIZE  most that is taken of the GPU's memory (default 512M)\n"
                           "  --threads N           threads of the cpu device (default: one per core)\n"
                           "  --foreground          stay in the foreground\n"
                           "  --fail-chunk N        for tests: lose the device at its N-th chunk\n"
                           "  --help, --version\n"
                           "\n"
                           "SIZE is a number of bytes, or of K, M, G (powers of 1024). Without --foreground\n"
                           "the command returns when the daemon is ready.\n";

/* A decimal number in [low, high] and nothing else. */
static bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno || value < low || value > high)
        return false;
    *out = value;
    return true;
}

static bool parse_size(const char *text, uint64_t max, uint64_t *out)
{
    char digits[32];
    size_t length = strlen(text);
    const char *units = "KMG", *unit = length ? strchr(units, toupper((unsigned char)text[length - 1])) : NULL;
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length + 1);
    unsigned shift = 0;
    if (unit) {
        digits[length - 1] = '\0';
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (!parse_number(digits, 0, max >> shift, out))
        return false;
    *out <<= shift;
    return true;
}

static bool parse_device(const char *text, struct options *options)
{
    uint64_t index = 0;
    if (strcmp(text, "auto") == 0)
        options->device = DEVICE_AUTO;
    else if (strcmp(text, "cpu") == 0)
        options->device = DEVICE_CPU;
    else if (strcmp(text, "cuda") == 0 || (strncmp(text, "cuda:", 5) == 0 && parse_number(text + 5, 0, 1023, &index)))
        options->device = DEVICE_CUDA;
    else
        return false;
    options->cuda_index = (int)index;
    return true;
}

static int usage_error(const char *option, const char *value, const char *allowed)
{
    log_error("%s is \"%s\"; allowed: %s; see scand --help", option, value, allowed);
    return EX_USAGE;
}

static int parse_option(int option, const char *value, struct options *options, const char **socket)
{
    uint64_t number;
    switch (option) {
    case 's':
        *socket = value;
        return -1;
    case 'd':
        return parse_device(value, options) ? -1 : usage_error("--device", value, "auto, cpu, cuda, cuda:N");
    case 'p':
        return parse_size(value, POOL_BYTES_MAX, &options->pool_bytes) ? -1 : usage_error("--pool", value, "0 to 256G");
    case 'm':
        return parse_size(value, DEVICE_MEMORY_BYTES_MAX, &options->device_memory_bytes)
                   ? -1
                   : usage_error("--device-memory", value, "0 to 1024G");
    case 't':
        if (!parse_number(value, 0, THREADS_MAX, &number))
            return usage_error("--threads", value, "0 to 1024");
        options->threads = (unsigned)number;
        return -1;
    case 'f':
        options->foreground = true;
        return -1;
    case 'x':
        return parse_number(value, 1, UINT64_MAX, &options->fail_chunk)
                   ? -1
                   : usage_error("--fail-chunk", value, "1 and more");
    case 'h':
        fputs(help, stdout);
        return EX_OK;
    case 'v':
        puts("scand " SCAND_RELEASE);
        return EX_OK;
    default:
        fputs("See scand --help.\n", stderr);
        return EX_USAGE;
    }
}

int options_parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"socket", required_argument, NULL, 's'},     {"device", required_argument, NULL, 'd'},
        {"pool", required_argument, NULL, 'p'},       {"device-memory", required_argument, NULL, 'm'},
        {"threads", required_argument, NULL, 't'},    {"foreground", no_argument, NULL, 'f'},
        {"fail-chunk", required_argument, NULL, 'x'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},          {0},
    };
    const char *socket = NULL;
    struct error error;
    int option, code = -1;
    *options = (struct options){.pool_bytes = GIB(1), .device_memory_bytes = MIB(512)};
    while (code < 0 && (option = getopt_long(argc, argv, "", names, NULL)) != -1)
        code = parse_option(option, optarg, options, &socket);
    if (code >= 0)
        return code;
    if (optind < argc) {
        log_error("\"%s\" is no option; scand takes no other arguments; see scand --help", argv[optind]);
        return EX_USAGE;
    }
    if (socket_path(socket, options->socket, &error)) {
        if (socket)
            log_error("--socket is \"%s\": %s; see scand --help", socket, error.message);
        else
            log_error("%s", error.message);
        return EX_USAGE;
    }
    return -1;
}

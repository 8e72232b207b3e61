/*
 * ping, devices, kernels, stats: one question to the daemon, one answer.
 */
#include <inttypes.h>
#include <string.h>

#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"

static int run_with(int argc, char **argv, const struct option_row *table, struct common_options *common, query *put,
                    struct error *error)
{
    struct scand *daemon;
    int result = options_parse_all(argc, argv, &(struct option_set){.table = table}, common, error);
    if (result)
        return result;
    if (common->help)
        return 0;
    result = options_have_local(table) ? remote_open_computing(common->socket_path, common->local, &daemon, error)
                                       : remote_open(common->socket_path, &daemon, error);
    if (result)
        return result;
    result = put(daemon, common->json, error);
    scand_disconnect(daemon);
    return result;
}

int query_run(int argc, char **argv, struct common_options *common, query *put, struct error *error)
{
    return run_with(argc, argv, common_options, common, put, error);
}

int query_run_local(int argc, char **argv, struct common_options *common, query *put, struct error *error)
{
    return run_with(argc, argv, local_options, common, put, error);
}

static int query_ping(struct scand *daemon, bool json, struct error *error)
{
    uint64_t round_trip_us;
    int status = scand_ping(daemon, &round_trip_us);
    if (status)
        return remote_error(daemon, status, "ping", error);
    if (json) {
        struct json out = {.file = stdout};
        json_open(&out, NULL, '{');
        json_text(&out, "server", scand_server_name(daemon));
        json_unsigned(&out, "round_trip_us", round_trip_us);
        json_close(&out, '}');
        putchar('\n');
    } else {
        printf("%s: %" PRIu64 " us\n", scand_server_name(daemon), round_trip_us);
    }
    return 0;
}

void device_members(struct json *json, const struct scand_device *device)
{
    json_text(json, "name", device->name);
    json_text(json, "backend", device->backend);
    json_unsigned(json, "memory_bytes", device->memory_bytes);
    json_unsigned(json, "memory_limit_bytes", device->memory_limit_bytes);
    json_unsigned(json, "memory_used_bytes", device->memory_used_bytes);
    json_unsigned(json, "chunk_bytes", device->chunk_bytes);
    json_unsigned(json, "busy_us", device->busy_us);
    json_unsigned(json, "chunks_open", device->chunks_open);
    json_unsigned(json, "upload_bytes", device->upload_bytes);
    json_unsigned(json, "download_bytes", device->download_bytes);
    json_unsigned(json, "chunks", device->chunks);
    json_unsigned(json, "bytes_per_s", device->bytes_per_s);
}

static void devices_json(struct json *json, const struct scand_device *devices, size_t count)
{
    json_open(json, NULL, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        device_members(json, &devices[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Writes a measured rate in GB/s. */
static const char *rate_text(uint64_t bytes_per_s, char out[16])
{
    if (bytes_per_s)
        snprintf(out, 16, "%.1f", (double)bytes_per_s / 1e9);
    else
        snprintf(out, 16, "-");
    return out;
}

static void devices_table(const struct scand_device *devices, size_t count)
{
    char rate[16];
    printf("%6s %-8s %11s %11s %11s %11s %6s %6s  %s\n", "device", "backend", "memory MiB", "limit MiB", "used MiB",
           "chunk KiB", "chunks", "GB/s", "name");
    for (size_t i = 0; i < count; i++)
        printf("%6zu %-8s %11" PRIu64 " %11" PRIu64 " %11" PRIu64 " %11" PRIu64 " %6" PRIu64 " %6s  %s\n", i,
               devices[i].backend, devices[i].memory_bytes >> 20, devices[i].memory_limit_bytes >> 20,
               devices[i].memory_used_bytes >> 20, devices[i].chunk_bytes >> 10, devices[i].chunks,
               rate_text(devices[i].bytes_per_s, rate), devices[i].name);
}

static int query_devices(struct scand *daemon, bool json, struct error *error)
{
    struct scand_device devices[DEVICES_MAX];
    size_t count;
    int status = scand_devices(daemon, devices, sizeof(*devices), DEVICES_MAX, &count);
    if (status)
        return remote_error(daemon, status, "devices", error);
    if (json) {
        struct json out = {.file = stdout};
        devices_json(&out, devices, count);
        putchar('\n');
    } else {
        devices_table(devices, count);
    }
    return 0;
}

static void kernels_json(const struct scand_kernel *kernels, size_t count)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "name", kernels[i].name);
        json_text(&json, "line", kernels[i].line);
        json_text(&json, "operation", kernels[i].step);
        json_text(&json, "backend", kernels[i].backend);
        json_text(&json, "dtype", kernels[i].dtype);
        json_open(&json, "reductions", '[');
        for (int word = 0; scand_word(SCAND_LIST_REDUCTION, word); word++)
            if (kernels[i].reductions >> word & 1)
                json_text(&json, NULL, scand_word(SCAND_LIST_REDUCTION, word));
        json_close(&json, ']');
        json_open(&json, "accumulators", '[');
        for (int word = 0; scand_word(SCAND_LIST_ACCUMULATOR, word); word++)
            if (kernels[i].accumulators >> word & 1)
                json_text(&json, NULL, scand_word(SCAND_LIST_ACCUMULATOR, word));
        json_close(&json, ']');
        json_boolean(&json, "repeatable", kernels[i].repeatable);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    putchar('\n');
}

/* Lists the accumulators of a kernel's sums. */
static const char *accumulators_text(const struct scand_kernel *kernel, char out[32])
{
    *out = '\0';
    for (int word = 0; scand_word(SCAND_LIST_ACCUMULATOR, word); word++)
        if (kernel->accumulators >> word & 1)
            strcat(strcat(out, *out ? "," : ""), scand_word(SCAND_LIST_ACCUMULATOR, word));
    return *out ? out : "-";
}

static void kernels_table(const struct scand_kernel *kernels, size_t count)
{
    char names[32];
    printf("%-27s %-9s %-7s %-5s %-12s %-6s  %s\n", "name", "operation", "backend", "dtype", "accumulators", "bits",
           "what it is");
    for (size_t i = 0; i < count; i++)
        printf("%-27s %-9s %-7s %-5s %-12s %-6s  %s\n", kernels[i].name, kernels[i].step, kernels[i].backend,
               kernels[i].dtype, accumulators_text(&kernels[i], names), kernels[i].repeatable ? "repeat" : "vary",
               kernels[i].line);
}

static int query_kernels(struct scand *daemon, bool json, struct error *error)
{
    struct scand_kernel kernels[KERNELS_MAX];
    size_t count;
    int status = scand_kernels(daemon, kernels, sizeof(*kernels), KERNELS_MAX, &count);
    if (status)
        return remote_error(daemon, status, "kernels", error);
    if (json)
        kernels_json(kernels, count);
    else
        kernels_table(kernels, count);
    return 0;
}

static int query_stats(struct scand *daemon, bool json, struct error *error)
{
    struct scand_counter counters[COUNTERS_MAX];
    struct json out = {.file = stdout};
    size_t count;
    int status = scand_stats(daemon, counters, sizeof(*counters), COUNTERS_MAX, &count);
    if (status)
        return remote_error(daemon, status, "stats", error);
    if (json)
        json_open(&out, NULL, '{');
    for (size_t i = 0; i < count; i++) {
        if (json)
            json_unsigned(&out, counters[i].name, counters[i].value);
        else
            printf("%s %" PRIu64 "\n", counters[i].name, counters[i].value);
    }
    if (json) {
        json_close(&out, '}');
        putchar('\n');
    }
    return 0;
}

int command_ping(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_ping, error);
}

int command_devices(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_devices, error);
}

int command_kernels(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run_local(argc, argv, common, query_kernels, error);
}

int command_stats(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_stats, error);
}

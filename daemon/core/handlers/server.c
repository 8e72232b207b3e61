/* hello and the server's own methods. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/clients.h"
#include "daemon/core/operations/operation.h"
#include "daemon/core/replies.h"
#include "handlers.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "kernels/tutorial/steps/steps.h"

int handle_hello(struct call *call, const struct msg_hello_params *params)
{
    struct client *client = call->client;
    if (params->version_min > PROTOCOL_VERSION || params->version_max < 1 || params->version_min > params->version_max)
        return error_set(&call->error, -EPROTONOSUPPORT,
                         "hello: versions %" PRIu64 " to %" PRIu64 " are offered; this daemon speaks 1 to %d",
                         params->version_min, params->version_max, PROTOCOL_VERSION);
    if (client->greeted)
        return error_set(&call->error, -EINVAL,
                         "hello: this connection has said it already; say it once, as the first request");
    client->greeted = true;
    client->strict = params->strict;
    memcpy(client->name, params->client, sizeof client->name);
    struct msg_hello_result result = {
        .version = params->version_max < PROTOCOL_VERSION ? params->version_max : PROTOCOL_VERSION,
        .server = SERVICE_NAME,
        .limits = {.message_bytes = LIMIT_MESSAGE_BYTES,
                   .message_fds = LIMIT_MESSAGE_FDS,
                   .host_buffer_bytes = pool_largest_bytes(call->service->pool),
                   .client_buffers = LIMIT_CLIENT_BUFFERS,
                   .client_jobs = LIMIT_CLIENT_JOBS,
                   .row_samples = LIMIT_ROW_SAMPLES,
                   .job_steps = SCAND_STEPS_MAX,
                   .batch_jobs = LIMIT_BATCH_JOBS,
                   .batch_steps = 1,
                   .groups = LIMIT_CLIENT_GROUPS,
                   .file_chunk_bytes = LIMIT_LOAD_BYTES,
                   .ring_bytes = connection_fd(client->connection) < 0 ? 0 : LIMIT_RING_BYTES},
        .operations = call->service->operations,
        .operations_count = OPERATION_COUNT,
    };
    result.devices_count = service_describe_devices(call->service, result.devices);
    reply_result(client, call->msgid, &msg_hello_result_type, &result);
    return 0;
}

int handle_server_ping(struct call *call, const struct msg_nothing *params)
{
    (void)params;
    reply_nothing(call->client, call->msgid);
    return 0;
}

int handle_server_stats(struct call *call, const struct msg_nothing *params)
{
    struct msg_stats_result result;
    (void)params;
    service_describe_stats(call->service, &result);
    reply_result(call->client, call->msgid, &msg_stats_result_type, &result);
    return 0;
}

int handle_server_histograms(struct call *call, const struct msg_nothing *params)
{
    (void)params;
    reply_result(call->client, call->msgid, &msg_histograms_result_type, &call->service->histograms);
    return 0;
}

int handle_server_devices(struct call *call, const struct msg_nothing *params)
{
    struct msg_devices_result result = {0};
    (void)params;
    result.devices_count = service_describe_devices(call->service, result.devices);
    reply_result(call->client, call->msgid, &msg_devices_result_type, &result);
    return 0;
}

/*
 * The names that `algorithm` may have: the tutorials' scans, reductions, and variants of other operations, one list
 * after another.
 */

#define KERNELS ((int)VARIANT_COUNT + (int)REDUCTION_COUNT + (int)STEP_VARIANT_COUNT)

static void describe_kernel(const char *name, const char *teaches, bool on_cpu, bool fixed_order,
                            struct msg_kernel *out)
{
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->line, sizeof out->line, "%s", teaches);
    snprintf(out->backend, sizeof out->backend, "%s", on_cpu ? "cpu" : "cuda");
    out->repeatable = fixed_order;
}

static void describe_scan(const struct variant *variant, struct msg_kernel *out)
{
    describe_kernel(variant->name, variant->teaches, variant->on_cpu, variant->fixed_order, out);
    for (uint32_t word = 0; word < SCAND_ACCUMULATOR_COUNT; word++)
        if (variant->accumulators >> word & 1)
            out->accumulators[out->accumulators_count++] = word;
}

static void describe_reduction(const struct reduction *reduction, struct msg_kernel *out)
{
    describe_kernel(reduction->name, reduction->teaches, false, reduction->fixed_order, out);
    snprintf(out->operation, sizeof out->operation, "%s", step_words.words[OPERATION_reduce]);
    out->accumulators[out->accumulators_count++] = SCAND_ACCUMULATOR_F64;
    for (uint32_t word = 0; word < SCAND_REDUCTION_COUNT; word++)
        if (reduction->ops >> word & 1)
            out->reductions[out->reductions_count++] = word;
}

/* Describes a variant of an operation in tiles. */
static void describe_step(const struct step_variant *variant, struct msg_kernel *out)
{
    describe_kernel(variant->name, variant->teaches, false, variant->fixed_order, out);
    snprintf(out->operation, sizeof out->operation, "%s", step_words.words[variant->operation]);
    snprintf(out->dtype, sizeof out->dtype, "%s", dtype_word(variant->dtype));
}

static void describe_number(uint32_t number, struct msg_kernel *out)
{
    const uint32_t reduction = number - VARIANT_COUNT, step = reduction - REDUCTION_COUNT;
    if (number < VARIANT_COUNT)
        describe_scan(&variant_list[number], out);
    else if (reduction < REDUCTION_COUNT)
        describe_reduction(&reduction_list[reduction], out);
    else
        describe_step(&step_variant_list[step], out);
}

int handle_server_kernels(struct call *call, const struct msg_page_params *params)
{
    struct msg_kernels_result result = {.kernels_count = 0};
    uint64_t number = params->from;
    for (; number < KERNELS && result.kernels_count < LIMIT_MAPS; number++)
        describe_number((uint32_t)number, &result.kernels[result.kernels_count++]);
    result.next = number < KERNELS ? number : 0;
    reply_result(call->client, call->msgid, &msg_kernels_result_type, &result);
    return 0;
}

int handle_server_drain(struct call *call, const struct msg_nothing *params)
{
    (void)params;
    if (!client_may_manage(call->client))
        return error_set(&call->error, -EPERM, "server.drain: user %u may not; root and the daemon's own user %u may",
                         (unsigned)call->client->user->uid, (unsigned)call->service->owner);
    reply_nothing(call->client, call->msgid);
    service_drain(call->service);
    return 0;
}

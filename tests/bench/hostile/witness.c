#include "tests/bench/hostile/witness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/hostile/process.h"

#define SAMPLES      1000
#define BUFFER_BYTES 4096
#define PAUSE_US     1000

const char *const act_names[ACT_COUNT] = {
#define X(NAME, MEMBER, ROUNDS) #NAME,
    ACTS(X)
#undef X
};

struct witness {
    const char *socket;
    struct scand *daemon;
    struct scand_buffer *samples, *offsets;
};

static int act_ping(struct witness *self)
{
    uint64_t microseconds;
    return scand_ping(self->daemon, &microseconds);
}

static int wait_for(struct witness *self, const struct scand_scan *scan)
{
    struct scand_job *job;
    int status = scand_submit(self->daemon, scan, &job);
    if (status)
        return status;
    status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status;
}

static int act_job(struct witness *self)
{
    const struct scand_scan scan = client_scan(self->samples, 1, SAMPLES, 0);
    return wait_for(self, &scan);
}

static int create_and_release(struct witness *self, uint64_t size_bytes)
{
    struct scand_buffer *buffer;
    int status = scand_buffer_create(self->daemon, SCAND_PLACE_HOST, size_bytes, &buffer);
    return status ? status : scand_buffer_release(buffer);
}

static int act_buffer(struct witness *self)
{
    return create_and_release(self, BUFFER_BYTES);
}

static int act_mebibyte(struct witness *self)
{
    return create_and_release(self, MIB(1));
}

/* Imports memory of the witness. */
static int act_import(struct witness *self)
{
    struct scand_buffer *buffer;
    int fd = memfd_create("witness", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int status = fd < 0 || ftruncate(fd, BUFFER_BYTES) ? SCAND_NO_MEMORY
                                                       : scand_buffer_import(self->daemon, fd, BUFFER_BYTES, &buffer);
    if (fd >= 0)
        close(fd);
    return status ? status : scand_buffer_release(buffer);
}

/* Submits a ragged job of two rows. */
static int act_ragged(struct witness *self)
{
    struct scand_tensor samples = {.buffer = self->samples, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {SAMPLES}};
    struct scand_tensor offsets = {.buffer = self->offsets, .dtype = SCAND_DTYPE_U32, .rank = 1, .shape = {3}};
    scand_tensor_pack(&samples);
    scand_tensor_pack(&offsets);
    const struct scand_scan scan = {
        .input = samples, .output = samples, .pass_count = 1, .passes = {SCAND_PASS_FORWARD}, .offsets = offsets};
    return wait_for(self, &scan);
}

static int act_connect(struct witness *self)
{
    struct scand *daemon;
    int status = scand_connect(self->socket, "witness", &daemon);
    if (!status)
        scand_disconnect(daemon);
    return status;
}

static int act_arrive(struct witness *self)
{
    return act_connect(self);
}

static const struct act_row {
    int (*run)(struct witness *self);
    enum witness_member member;
    unsigned rounds;
} act_rows[ACT_COUNT] = {
#define X(NAME, MEMBER, ROUNDS) {act_##NAME, MEMBER, ROUNDS},
    ACTS(X)
#undef X
};

static const char *explanation(const struct witness *self, enum act act)
{
    return act == ACT_connect || act == ACT_arrive ? scand_connect_message() : scand_message(self->daemon);
}

static void time_act(struct witness *self, enum act act, struct testimony *testimony)
{
    struct act_times *times = &testimony->acts[act];
    double *since_ms = &testimony->under_way[act_rows[act].member].since_ms;
    testimony->under_way[act_rows[act].member].act = act;
    *since_ms = bench_now_ms();
    int status = act_rows[act].run(self);
    double took_ms = bench_now_ms() - *since_ms;
    *since_ms = 0;
    if (times->count < WITNESS_TIMES_MAX)
        times->times_ms[times->count++] = took_ms;
    if (status && times->failed++ == 0)
        snprintf(times->failure, sizeof times->failure, "%s: %s", scand_status_word(status), explanation(self, act));
}

static int open_witness(struct witness *self)
{
    uint32_t *offsets;
    if (client_open(self->socket, client_bytes(1, SAMPLES), &self->daemon, &self->samples))
        return 1;
    if (scand_buffer_create(self->daemon, SCAND_PLACE_HOST, BUFFER_BYTES, &self->offsets))
        return client_fail("buffer", scand_message(self->daemon));
    offsets = scand_buffer_data(self->offsets);
    memcpy(offsets, (const uint32_t[]){0, SAMPLES / 2, SAMPLES}, 3 * sizeof *offsets);
    return 0;
}

int witness_work(struct team *team, int index, const void *argument)
{
    static const unsigned users[MEMBER_COUNT] = {PROCESS_WITNESS, PROCESS_NEWCOMER};
    const struct witness_order *order = argument;
    struct witness self = {.socket = order->socket};
    if ((geteuid() == 0 && client_become(users[index])) || (index == MEMBER_KNOWN && open_witness(&self)) ||
        team_meet(team))
        return 1;
    double until_ms = bench_now_ms() + order->seconds * 1e3;
    for (unsigned round = 0; bench_now_ms() < until_ms; round++) {
        for (enum act act = 0; act < ACT_COUNT; act++)
            if ((int)act_rows[act].member == index && round % act_rows[act].rounds == 0)
                time_act(&self, act, order->testimony);
        usleep(PAUSE_US);
    }
    scand_disconnect(self.daemon);
    return 0;
}

void testimony_end(struct testimony *testimony)
{
    for (int i = 0; i < MEMBER_COUNT; i++) {
        struct act_times *times = &testimony->acts[testimony->under_way[i].act];
        if (testimony->under_way[i].since_ms == 0)
            continue;
        double took_ms = bench_now_ms() - testimony->under_way[i].since_ms;
        testimony->under_way[i].since_ms = 0;
        if (times->count < WITNESS_TIMES_MAX)
            times->times_ms[times->count++] = took_ms;
        if (times->failed++ == 0)
            snprintf(times->failure, sizeof times->failure, "no answer in %.0f ms", took_ms);
    }
}

double act_quantile(struct act_times *times, double share)
{
    if (times->count == 0)
        return NAN;
    bench_median(times->times_ms, times->count);
    uint64_t place = (uint64_t)ceil(share * (double)times->count);
    return times->times_ms[place > 0 ? place - 1 : 0];
}

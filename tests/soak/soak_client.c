/*
 * A program of the soak test: soak_client SOCKET SEED. Until it gets SIGTERM it submits scans, alone and many at once,
 * some of what others are to leave, cancels some, gives some no time, and compares every bit of each result with the
 * reference. A daemon that goes away and comes back is no reason to end; a wrong bit, or a status that nothing
 * explains, is. Prints what it has done.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <scand/scand.h>

#include "kernels/scan.h"
#include "tests/check.h"

#define SLOTS        4     /* jobs under way at a time */
#define AWAY_TRIES   600   /* to connect, before that is a fault */
#define AWAY_US      50000 /* between two of them */
#define ROUNDS       40    /* rounds of a connection */
#define SAMPLES_MOST 120000

struct slot {
    struct slot *source;                 /* whose output it reads; NULL: its input is its own */
    struct scand_buffer *input, *output; /* the same, in place */
    struct scand_scan scan;
    struct scand_job *job;
    bool cancelled, succeeded, overwritten; /* overwritten: another one works in place on its output */
    float *before, *expected;
    size_t bytes;
};

static volatile sig_atomic_t ending;
static uint64_t state;
static uint64_t done, refused, lost, cancelled, expired, connections; /* jobs, and connections */

static void on_term(int number)
{
    ending = number;
}

static uint64_t below(uint64_t bound)
{
    return random_next(&state) % bound;
}

static void give_up(const char *what, int status, const char *message)
{
    fprintf(stderr, "soak_client: %s: %s: %s\n", what, scand_status_word(status), message);
    exit(1);
}

/* True for an answer that a daemon which is killed, restarted or shared may give at any time. */
static bool is_explained(int status)
{
    return status == SCAND_BUSY || status == SCAND_QUOTA || status == SCAND_DRAINING || status == SCAND_LOST ||
           status == SCAND_UNAVAILABLE || status == SCAND_INTERRUPTED || status == SCAND_NO_MEMORY ||
           status == SCAND_STALE;
}

static bool good(struct scand *daemon, const char *what, int status)
{
    if (status != SCAND_OK && !is_explained(status))
        give_up(what, status, scand_message(daemon));
    return status == SCAND_OK;
}

/* By the definition of a scan, from a copy of what the job is given. */
static void slot_expect(struct slot *slot)
{
    const struct scand_scan *scan = &slot->scan;
    struct scan_rows rows = {
        .rule = {.passes = {scan->passes[0], scan->passes[1]},
                 .pass_count = scan->pass_count,
                 .kind = scan->kind,
                 .op = scan->op,
                 .accumulator = scan->accumulator,
                 .intermediate = SCAND_DTYPE_F32,
                 .input = SCAND_DTYPE_F32,
                 .output = SCAND_DTYPE_F32},
        .length = scan->input.shape[1],
        .row_count = scan->input.shape[0],
        .outer_rank = 1,
        .outer_shape = {scan->input.shape[0]},
        .input_outer_strides = {scan->input.strides[0]},
        .output_outer_strides = {scan->input.strides[0]},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = slot->before,
        .output = slot->expected,
    };
    if (scan_reference(&rows, 0, rows.row_count))
        give_up("the reference", SCAND_NO_MEMORY, "no memory");
}

static void slot_fill(struct slot *slot)
{
    for (size_t i = 0; i < slot->bytes / sizeof(float); i++)
        slot->before[i] = (float)((int64_t)below(1 << 20) - (1 << 19)) / 1024;
    if (slot->source)
        memcpy(slot->before, slot->source->expected, slot->bytes);
    else
        memcpy(scand_buffer_data(slot->input), slot->before, slot->bytes);
    if (slot->output != slot->input)
        memset(scand_buffer_data(slot->output), 0xff, slot->bytes);
    slot_expect(slot);
}

static struct scand_scan some_scan(struct slot *slot, uint64_t rows, uint64_t length)
{
    struct scand_tensor tensor = {.buffer = slot->input, .rank = 2, .shape = {rows, length}};
    scand_tensor_pack(&tensor);
    struct scand_scan scan = {.input = tensor, .output = tensor, .axis = 1, .pass_count = 1 + (uint32_t)below(2)};
    static const enum scand_operator operators[] = {SCAND_OPERATOR_SUM, SCAND_OPERATOR_MAX, SCAND_OPERATOR_MIN};
    scan.output.buffer = slot->output;
    scan.passes[0] = below(SCAND_PASS_COUNT);
    scan.passes[1] = below(SCAND_PASS_COUNT);
    scan.op = operators[below(3)];
    scan.kind = below(4) ? SCAND_KIND_INCLUSIVE : SCAND_KIND_EXCLUSIVE;
    scan.accumulator = below(2) ? SCAND_ACCUMULATOR_F64 : SCAND_ACCUMULATOR_F2;
    scan.priority = below(SCAND_PRIORITY_COUNT);
    scan.deadline_ms = below(8) ? 0 : 1 + (uint32_t)below(5);
    return scan;
}

static bool create(struct scand *daemon, uint64_t bytes, struct scand_buffer **out)
{
    if (below(3))
        return good(daemon, "create", scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, out));
    return good(daemon, "create_own", scand_buffer_create_own(daemon, bytes, out));
}

static void slot_overwrite(struct slot *slot)
{
    for (const struct scand_buffer *output = slot->output; slot && slot->output == output; slot = slot->source)
        slot->overwritten = true;
}

/* Makes a slot's buffers. `before`, unless NULL, is a slot that this one's job may follow. */
static bool slot_open(struct scand *daemon, struct slot *slot, struct slot *before, uint64_t rows, uint64_t length)
{
    *slot = (struct slot){.source = before, .bytes = rows * length * sizeof(float)};
    if (before)
        slot->input = before->output;
    else if (!create(daemon, slot->bytes, &slot->input))
        return false;
    slot->output = slot->input;
    if (below(3))
        return create(daemon, slot->bytes, &slot->output);
    if (before)
        slot_overwrite(before);
    return true;
}

static bool slot_begin(struct scand *daemon, struct slot *slot, struct slot *before)
{
    uint64_t length = 1 + below(below(4) ? 1000 : 40000), most = SAMPLES_MOST / length;
    uint64_t rows = 1 + below(most ? most : 1);
    if (before && below(2))
        before = NULL;
    if (before) {
        rows = before->scan.input.shape[0];
        length = before->scan.input.shape[1];
    }
    if (!slot_open(daemon, slot, before, rows, length))
        return false;
    slot->scan = some_scan(slot, rows, length);
    slot->before = malloc(slot->bytes);
    slot->expected = malloc(slot->bytes);
    if (!slot->before || !slot->expected)
        give_up("a row", SCAND_NO_MEMORY, "no memory");
    slot_fill(slot);
    return true;
}

static void slot_end(struct slot *slot)
{
    scand_job_release(slot->job);
    if (slot->output && slot->output != slot->input)
        scand_buffer_release(slot->output);
    if (slot->input && !slot->source)
        scand_buffer_release(slot->input);
    free(slot->before);
    free(slot->expected);
}

static void count(struct scand *daemon, const struct slot *slot, int status)
{
    if (status == SCAND_OK)
        done++;
    else if (status == SCAND_CANCELLED && slot->cancelled)
        cancelled++;
    else if (status == SCAND_DEADLINE && slot->scan.deadline_ms > 0)
        expired++;
    else if (status == SCAND_LOST || status == SCAND_UNAVAILABLE)
        lost++;
    else if (good(daemon, "wait", status) || true)
        refused++;
}

static void slot_check(struct scand *daemon, struct slot *slot)
{
    int status;
    if (!slot->job)
        return;
    if (below(16) == 0)
        slot->cancelled = good(daemon, "cancel", scand_cancel(slot->job));
    do
        status = scand_wait(slot->job, -1, NULL);
    while (status == SCAND_INTERRUPTED);
    count(daemon, slot, status);
    slot->succeeded = status == SCAND_OK;
    const struct slot *source = slot->source;
    if (!slot->succeeded || slot->overwritten || (source && !source->job)) /* it read what nobody had written */
        return;
    if (source && !source->succeeded)
        give_up("a result", SCAND_INTERNAL, "the job that was to write what it reads has failed");
    if (memcmp(scand_buffer_data(slot->output), slot->expected, slot->bytes))
        give_up("a result", SCAND_INTERNAL, "its bits are not those of the reference");
}

static void submit(struct scand *daemon, struct slot slots[SLOTS], size_t ready)
{
    struct scand_scan scans[SLOTS];
    struct scand_job *jobs[SLOTS] = {NULL};
    for (size_t i = 0; i < ready; i++)
        scans[i] = slots[i].scan;
    if (below(2) && good(daemon, "submit_many", scand_submit_many(daemon, scans, ready, jobs)))
        for (size_t i = 0; i < ready; i++)
            slots[i].job = jobs[i];
    for (size_t i = 0; i < ready; i++)
        if (!slots[i].job)
            refused += !good(daemon, "submit", scand_submit(daemon, &scans[i], &slots[i].job));
}

static void round_run(struct scand *daemon)
{
    struct slot slots[SLOTS] = {{0}};
    size_t count_begun = 0, ready = 0;
    for (bool more = true; more && count_begun < SLOTS; count_begun++)
        ready += more = slot_begin(daemon, &slots[count_begun], count_begun ? &slots[count_begun - 1] : NULL);
    submit(daemon, slots, ready);
    for (size_t i = 0; i < ready; i++)
        slot_check(daemon, &slots[i]);
    for (size_t i = 0; i < count_begun; i++)
        slot_end(&slots[i]);
}

static struct scand *connect_patiently(const char *socket)
{
    struct scand *daemon = NULL;
    int status = SCAND_UNAVAILABLE;
    for (int tries = 0; status && tries < AWAY_TRIES && !ending; tries++) {
        status = scand_connect(socket, "soak", &daemon);
        if (status)
            usleep(AWAY_US);
    }
    if (status && !ending)
        give_up("connect", status, scand_connect_message());
    return daemon;
}

int main(int argc, char **argv)
{
    struct sigaction term = {.sa_handler = on_term};
    if (argc != 3) {
        fprintf(stderr, "soak_client SOCKET SEED\n");
        return 64;
    }
    sigaction(SIGTERM, &term, NULL);
    state = strtoull(argv[2], NULL, 0);
    while (!ending) {
        struct scand *daemon = connect_patiently(argv[1]);
        for (int i = 0; daemon && i < ROUNDS && !ending; i++)
            round_run(daemon);
        scand_disconnect(daemon);
        connections++;
    }
    printf("%llu %llu %llu %llu %llu %llu\n", (unsigned long long)done, (unsigned long long)refused,
           (unsigned long long)lost, (unsigned long long)cancelled, (unsigned long long)expired,
           (unsigned long long)connections);
    return 0;
}

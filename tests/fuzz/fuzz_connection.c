/*
 * A connection with descriptors, to the daemon's logic and its CPU device as programs have them in their own process.
 * An input is a list of what the client does: requests that make sense, some of them with bytes changed, and any other
 * bytes. Each request is answered once, each answer can be read, and no descriptor is left.
 */
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "protocol/local.h"
#include "protocol/walk.h"
#include "tests/fuzz/fuzz_job.h"

#define STEPS_MOST   64        /* steps of an input */
#define HEAVY        (1 << 18) /* samples of a job that takes too long here */
#define IMPORT_BYTES 16384
#define ANSWER_S     20

struct caller {
    struct connection *connection;
    struct local *local;
    struct supply supply;
    uint32_t last_msgid;
    unsigned unanswered; /* requests */
    bool over;           /* the protocol was broken, or nothing that is complete was sent */
};

static sem_t woken;

static const struct map_type *const params_types[] = {
#define X(HANDLER, METHOD, PARAMS, RESULT) &msg_##PARAMS##_type,
    METHODS(X)
#undef X
};
#define REQUEST_COUNT (sizeof params_types / sizeof params_types[0])

/* Room for any of the structs. */
union any {
#define X(NAME, ...) struct msg_##NAME NAME;
    MAPS_LIST(X)
#undef X
};

static void wake(void *context)
{
    (void)context;
    sem_post(&woken);
}

/*
 * Requests.
 */

static bool is_heavy_tensor(const struct msg_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t k = 0; k < tensor->shape_count; k++)
        if (__builtin_mul_overflow(count, tensor->shape[k], &count) || count > HEAVY)
            return true;
    return false;
}

static bool is_heavy_submit(const struct msg_job_submit_params *params)
{
    return is_heavy_tensor(&params->input) || is_heavy_tensor(&params->output);
}

static bool is_heavy_run(const struct msg_job_run_params *params)
{
    bool heavy = is_heavy_tensor(&params->input) || is_heavy_tensor(&params->output);
    for (uint32_t i = 0; i < params->steps_count; i++)
        heavy |= params->steps[i].operation == OPERATION_upsample && params->steps[i].upsample.factor > 64;
    return heavy;
}

/* True when a request would take, or wait for, longer than an input may: large jobs, much memory, requests that wait.
 */
static bool is_heavy(const struct message *message)
{
    static union any params;
    struct error error;
    if (message->kind != MESSAGE_REQUEST || message->method >= REQUEST_COUNT ||
        message_read(message, params_types[message->method], &params, &error))
        return false;
    bool heavy = false;
    switch (message->method) {
    case METHOD_buffer_create:
        return params.buffer_create_params.size > MIB(1) || params.buffer_create_params.wait_ms > 0;
    case METHOD_job_submit:
        return is_heavy_submit(&params.job_submit_params);
    case METHOD_job_run:
        return is_heavy_run(&params.job_run_params);
    case METHOD_job_batch:
        for (uint32_t i = 0; i < params.job_batch_params.jobs_count; i++)
            heavy |= params.job_batch_params.jobs[i].runs ? is_heavy_run(&params.job_batch_params.jobs[i].run)
                                                          : is_heavy_submit(&params.job_batch_params.jobs[i].submit);
        return heavy;
    default:
        return false;
    }
}

/* Sends one complete message, unless it is heavy. Answers are counted while the daemon goes on with what comes. */
static void send_message(struct caller *caller, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    struct message message;
    struct error error;
    size_t length;
    if (walk(bytes, size, &length) || length != size)
        return;
    bool good = message_open(&message, bytes, size, &error) == 0;
    bool heavy = good && is_heavy(&message);
    bool asks = good && message.kind == MESSAGE_REQUEST;
    message_close(&message);
    if (heavy)
        return;
    caller->unanswered += asks;
    caller->over |= !asks;
    if (connection_send(caller->connection, bytes, size, fds, fd_count) || connection_flush(caller->connection) != 0)
        caller->over = true;
}

static void change_bytes(struct supply *supply, uint8_t *bytes, size_t size)
{
    for (uint32_t changes = take_below(supply, 8) == 7 ? take_below(supply, 4) : 0; changes > 0; changes--)
        bytes[take(supply, 2) % size] = (uint8_t)take(supply, 1);
}

static void ask(struct caller *caller, enum method method, const void *params, const int *fds, size_t fd_count)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    if (encode_request(&out, ++caller->last_msgid, method, params_types[method], params))
        return;
    change_bytes(&caller->supply, bytes, out.size);
    send_message(caller, bytes, out.size, fds, fd_count);
}

static void hello(struct caller *caller)
{
    const struct msg_hello_params params = {1, 1 + take_below(&caller->supply, 2), "fuzz", 0};
    ask(caller, METHOD_hello, &params, NULL, 0);
}

static void create_buffer(struct caller *caller)
{
    struct supply *supply = &caller->supply;
    struct msg_buffer_create_params params = {.size = take(supply, 2),
                                              .place = take_below(supply, SCAND_PLACE_COUNT),
                                              .device = take_below(supply, 8) / 7,
                                              .sharing = take_below(supply, 8) < 6 ? 0 : take_below(supply, 3)};
    ask(caller, METHOD_buffer_create, &params, NULL, 0);
}

/* One memory or two, given twice at times, with as many descriptors as are announced, or not. */
static void import_buffer(struct caller *caller)
{
    struct supply *supply = &caller->supply;
    int fds[3], made[2];
    uint32_t count = 1 + take_below(supply, 3);
    for (size_t i = 0; i < 2; i++) {
        made[i] = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert(made[i] >= 0 && ftruncate(made[i], IMPORT_BYTES) == 0);
    }
    for (uint32_t i = 0; i < count; i++)
        fds[i] = made[take_below(supply, 2)];
    struct msg_buffer_import_params params = {.size = IMPORT_BYTES * (uint64_t)count - take_below(supply, 8),
                                              .segment = count > 1 || take_below(supply, 2) ? IMPORT_BYTES : 0,
                                              .fds = take_below(supply, 16) == 15 ? take_below(supply, 8) : count};
    ask(caller, METHOD_buffer_import, &params, fds, count);
    close(made[0]);
    close(made[1]);
}

/* A file, which may be shorter than it is said to be, and may become so. */
static void import_file(struct caller *caller)
{
    struct supply *supply = &caller->supply;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0 && ftruncate(fd, IMPORT_BYTES) == 0);
    struct msg_buffer_import_file_params params = {.size = IMPORT_BYTES + 1 - take_below(supply, 8),
                                                   .fds = take_below(supply, 16) == 15 ? take_below(supply, 4) : 1};
    ask(caller, METHOD_buffer_import_file, &params, &fd, 1);
    if (take_below(supply, 4) == 3 && ftruncate(fd, take(supply, 2) % IMPORT_BYTES))
        abort();
    close(fd);
}

static void run_job(struct caller *caller)
{
    static struct msg_job_run_params params;
    take_run(&caller->supply, &params);
    if (take_below(&caller->supply, 8) == 7) {
        const uint64_t count = take_below(&caller->supply, 8);
        params.offsets = take_tensor_of(&caller->supply, 1, &count);
    }
    ask(caller, METHOD_job_run, &params, NULL, 0);
}

static struct msg_job_submit_params take_submit(struct supply *supply)
{
    struct msg_job_submit_params params = {.input = take_tensor(supply)};
    params.axis = take_below(supply, params.input.shape_count);
    params.output = take_output(supply, &params.input, (uint32_t)params.axis);
    params.passes_count = 1 + take_below(supply, 2);
    params.passes[0] = take_below(supply, SCAND_PASS_COUNT);
    params.op = take_below(supply, SCAND_OPERATOR_COUNT);
    params.kind = take_below(supply, SCAND_KIND_COUNT);
    params.coefficient = take_below(supply, 3);
    params.then_count = take_below(supply, 8) / 6;
    for (uint32_t i = 0; i < params.then_count; i++)
        params.then[i].passes_count = 1;
    params.group = take_below(supply, 8) / 7 * (1 + take_below(supply, LIMIT_CLIENT_GROUPS));
    return params;
}

/* Hands over a job without a message, unless it is heavy or has to be one. */
static void hand_over(struct caller *caller, const struct msg_job_submit_params *params)
{
    if (!is_heavy_submit(params) && !connection_has_output(caller->connection))
        caller->unanswered += scand_local_library.submit(caller->local, ++caller->last_msgid, params);
}

static void submit_job(struct caller *caller)
{
    struct msg_job_submit_params params = take_submit(&caller->supply);
    if (caller->last_msgid % 2)
        hand_over(caller, &params);
    else
        ask(caller, METHOD_job_submit, &params, NULL, 0);
}

static void submit_batch(struct caller *caller)
{
    static struct msg_job_batch_params params;
    memset(&params, 0, sizeof params);
    params.jobs_count = take_below(&caller->supply, 4);
    for (uint32_t i = 0; i < params.jobs_count; i++)
        if ((params.jobs[i].runs = take_below(&caller->supply, 4) == 3))
            take_run(&caller->supply, &params.jobs[i].run);
        else
            params.jobs[i].submit = take_submit(&caller->supply);
    ask(caller, METHOD_job_batch, &params, NULL, 0);
}

/* Sends a request whose parameters are a number alone, or nothing. */
static void ask_other(struct caller *caller)
{
    static const enum method methods[] = {METHOD_buffer_release, METHOD_buffer_release, METHOD_job_cancel,
                                          METHOD_buffer_export,  METHOD_server_cancel,  METHOD_server_jobs,
                                          METHOD_group_begin,    METHOD_group_end};
    static union any params;
    memset(&params, 0, sizeof params);
    uint64_t number = take_below(&caller->supply, 12);
    enum method method =
        take_below(&caller->supply, 2) ? methods[number % 8] : take_below(&caller->supply, (uint32_t)REQUEST_COUNT);
    memcpy(&params, &number, sizeof number);
    ask(caller, method, &params, NULL, 0);
}

static void send_any(struct caller *caller)
{
    size_t size = take(&caller->supply, 1);
    size = size < caller->supply.left ? size : caller->supply.left;
    uint8_t *copy = exact_copy(caller->supply.at, size, false);
    caller->supply.at += size;
    caller->supply.left -= size;
    send_message(caller, copy, size, NULL, 0);
    free(copy);
}

/*
 * Answers.
 */

static void check_answer(struct caller *caller, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct msg_failure failure;
    struct error error;
    int code = message_open(&message, bytes, size, &error);
    assert(code == 0);
    assert(message.kind != MESSAGE_REQUEST);
    if (message.kind == MESSAGE_RESPONSE) {
        assert(caller->over || caller->unanswered > 0);
        caller->unanswered -= caller->unanswered > 0;
    }
    if (message.failed) {
        code = message_read(&message, &msg_failure_type, &failure, &error);
        assert(code == 0);
        check_line(failure.message);
    }
    message_close(&message);
}

static void drop_fds(struct connection *connection)
{
    int fds[LIMIT_MESSAGE_FDS];
    size_t count = connection_fd_count(connection);
    int code = connection_pop_fds(connection, fds, count);
    assert(code == 0);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* Results of jobs come without messages. */
static void take_results(struct caller *caller)
{
    struct msg_job_submit_result result;
    uint32_t msgid;
    while (scand_local_library.result(caller->local, &msgid, &result)) {
        assert(caller->over || caller->unanswered > 0);
        caller->unanswered -= caller->unanswered > 0;
    }
}

static void read_answers(struct caller *caller)
{
    const uint8_t *bytes;
    size_t size;
    int n;
    do {
        n = connection_receive(caller->connection);
        take_results(caller);
        while (connection_peek(caller->connection, &bytes, &size) == 1) {
            check_answer(caller, bytes, size);
            connection_consume(caller->connection);
            drop_fds(caller->connection);
        }
    } while (n > 0);
    caller->over |= n == 0;
}

static void await_answers(struct caller *caller)
{
    read_answers(caller);
    while (caller->unanswered > 0 && !caller->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += ANSWER_S;
        int late = scand_local_library.is_ready(caller->local) ? 0 : sem_timedwait(&woken, &until);
        assert(!late || errno == EINTR);
        read_answers(caller);
    }
}

static void act(struct caller *caller)
{
    static void (*const acts[])(struct caller *) = {create_buffer, import_buffer, import_file,  run_job,
                                                    run_job,       submit_job,    submit_batch, ask_other,
                                                    ask_other,     send_any,      hello};
    uint32_t what = take_below(&caller->supply, 2 + sizeof acts / sizeof acts[0]);
    if (what < sizeof acts / sizeof acts[0])
        acts[what](caller);
    else
        read_answers(caller);
}

static int next_fd(void)
{
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct caller caller = {.supply = {bytes, size}};
    struct error error;
    const int fd = next_fd();
    sem_init(&woken, 0, 0);
    int code = scand_local_library.open(wake, NULL, &caller.local, &error);
    assert(code == 0);
    caller.connection = connection_create_on(&scand_local_library.carrier, caller.local);
    assert(caller.connection);
    if (take_below(&caller.supply, 16) < 15)
        hello(&caller);
    for (int i = 0; i < STEPS_MOST && caller.supply.left > 0 && !caller.over; i++)
        act(&caller);
    if (!caller.over)
        await_answers(&caller);
    connection_destroy(caller.connection);
    assert(next_fd() == fd);
    return 0;
}

/*
 * The service under random use: users who come, ask for anything in any order and go, work and chunks that end in any
 * order, calls of the device that fail. Every request is answered once, nothing leaks, and memory outlives the chunks
 * on it. What users have been told is a model of what they have, which the service's accounts are compared with.
 */
#include "tests/unit/service_rig.h"

#include "protocol/memory.h"

#define RUNS   60
#define STEPS  400
#define MSGIDS 4096
#define DEATHS 40 /* steps of a sequence after each of which somebody dies */

#define UID_FIRST 1000
#define UIDS      3

/* A user's request without an answer so far. */
struct asked {
    bool waiting;
    enum method method;
    uint64_t number; /* bytes of host memory that a buffer would count, or the id of a buffer.release */
};

/* A buffer that a user has been given. */
struct held {
    uint64_t id, host_bytes;
    bool of_pool;
    bool releasing; /* true when its release has been asked for, and may be done */
};

/* The model: what is known of each connection from its answers; and each user's largest quotas so far. */
static struct asked requests[RIG_USERS][MSGIDS];
static unsigned unanswered[RIG_USERS];
static struct held held[RIG_USERS][LIMIT_CLIENT_BUFFERS];
static size_t held_count[RIG_USERS];
static uint64_t most[UIDS][QUOTA_COUNT];

static uint64_t state;

static uint64_t below(uint64_t bound)
{
    return random_next(&state) % bound;
}

/*
 * The model.
 */

/* A segment is a power of two of bytes. */
static uint64_t segment_of(uint64_t size_bytes)
{
    uint64_t segment = LIMIT_SMALLEST_SEGMENT_BYTES;
    while (segment < size_bytes)
        segment *= 2;
    return segment;
}

static bool makes_buffer(enum method method)
{
    return method == METHOD_buffer_create || method == METHOD_buffer_import || method == METHOD_buffer_import_device;
}

static struct held *find_held(size_t who, uint64_t id)
{
    for (size_t i = 0; i < held_count[who]; i++)
        if (held[who][i].id == id)
            return &held[who][i];
    return NULL;
}

static void asked(size_t who, uint32_t msgid, enum method method, uint64_t number)
{
    requests[who][msgid % MSGIDS] = (struct asked){true, method, number};
    unanswered[who]++;
    struct held *buffer = method == METHOD_buffer_release ? find_held(who, number) : NULL;
    if (buffer)
        buffer->releasing = true;
}

/* Users guess ids that they have not been told yet. */
static bool is_release_asked(size_t who, uint64_t id)
{
    for (uint32_t i = 0; i <= rig.users[who].last_msgid && i < MSGIDS; i++) {
        const struct asked *request = &requests[who][i];
        if (request->waiting && request->method == METHOD_buffer_release && request->number == id)
            return true;
    }
    return false;
}

static void model_give(size_t who, struct held buffer)
{
    CHECK(!find_held(who, buffer.id) && held_count[who] < LIMIT_CLIENT_BUFFERS);
    buffer.releasing = is_release_asked(who, buffer.id);
    held[who][held_count[who]++ % LIMIT_CLIENT_BUFFERS] = buffer;
}

static void model_release(size_t who, uint64_t id, bool done)
{
    struct held *buffer = find_held(who, id);
    CHECK_EQ(done, buffer != NULL);
    if (buffer)
        *buffer = held[who][--held_count[who]];
}

/* Takes in an answer; the ids of buffers are first in their results. */
static void model_note(size_t who, const struct asked *request, const struct answer *answer, uint64_t buffer)
{
    if (request->method == METHOD_buffer_release)
        model_release(who, request->number, !answer->failed);
    else if (!answer->failed && makes_buffer(request->method))
        model_give(who, (struct held){buffer, request->number, request->method == METHOD_buffer_create, false});
}

/* Returns the host memory that a user surely has, of the pool alone if asked. */
static uint64_t model_bytes(uid_t uid, bool of_pool)
{
    uint64_t bytes = 0;
    for (size_t who = 0; who < rig.user_count; who++)
        for (size_t i = 0; rig.users[who].client && rig.users[who].client->user->uid == uid && i < held_count[who]; i++)
            if (!held[who][i].releasing && (held[who][i].of_pool || !of_pool))
                bytes += held[who][i].host_bytes;
    return bytes;
}

/* Checks, after any step, that nobody has less than it was told, nor more than was ever granted, and that users add up
 * to the pool. */
static void check_accounts(void)
{
    uint64_t pool_bytes = 0;
    for (uid_t i = 0; i < UIDS; i++) {
        const struct user *user = user_find(&rig.service.users, UID_FIRST + i);
        pool_bytes += user ? user->pool.bytes : 0;
        for (size_t quota = 0; user && quota < QUOTA_COUNT; quota++)
            CHECK(user->used[quota] <= most[i][quota]);
        CHECK((user ? user->used[QUOTA_HOST_MEMORY] : 0) >= model_bytes(UID_FIRST + i, false));
    }
    CHECK(rig.pool.bytes.used == pool_bytes && pool_bytes <= rig.pool.bytes.most);
}

/* Checks, once nothing is under way, that everybody has what it was told, and nothing else. */
static void check_settled(void)
{
    unsigned open[UIDS] = {0}, clients = 0;
    size_t buffers = 0;
    for (size_t who = 0; who < rig.user_count; who++)
        if (rig.users[who].client) {
            open[rig.users[who].client->user->uid - UID_FIRST]++;
            buffers += held_count[who];
            clients++;
        }
    CHECK_EQ(rig.service.stats.buffers_open, buffers);
    CHECK_EQ(rig.service.stats.clients_open, clients);
    for (uid_t i = 0; i < UIDS; i++) {
        const struct user *user = user_find(&rig.service.users, UID_FIRST + i);
        CHECK_EQ(user ? user->used[QUOTA_HOST_MEMORY] : 0, model_bytes(UID_FIRST + i, false));
        CHECK_EQ(user ? user->pool.bytes : 0, model_bytes(UID_FIRST + i, true));
        CHECK_EQ(user ? user->used[QUOTA_JOBS] : 0, 0);
        CHECK_EQ(user ? user->used[QUOTA_CONNECTIONS] : 0, open[i]);
    }
}

/* The id in the answer that is next, where it is one of a request that gets a buffer; else 0. */
static uint64_t next_buffer(size_t who, const uint8_t *bytes, size_t size)
{
    struct message message;
    struct error error;
    struct msg_buffer_id id = {0};
    if (message_open(&message, bytes, size, &error) == 0 && message.kind == MESSAGE_RESPONSE && !message.failed) {
        if (makes_buffer(requests[who][message.msgid % MSGIDS].method))
            CHECK_EQ(message_read(&message, &msg_buffer_id_type, &id, &error),
                     0); /* the other fields are passed over */
    }
    message_close(&message);
    return id.buffer;
}

/* The daemon's answers, as far as they fit, at the user's end. */
static uint64_t peek_buffer(size_t who)
{
    struct caller *user = &rig.users[who];
    const uint8_t *bytes;
    size_t size;
    service_sends(user->client);
    connection_flush(user->client->connection);
    service_sent(user->client);
    int complete;
    while ((complete = connection_peek(user->connection, &bytes, &size)) == 0 &&
           connection_receive(user->connection) > 0)
        continue;
    return complete == 1 ? next_buffer(who, bytes, size) : 0;
}

static void read_answers(size_t who)
{
    struct caller *user = &rig.users[who];
    while (user->client) {
        const uint64_t buffer = peek_buffer(who);
        struct answer answer = next_answer(user, NULL, NULL);
        if (!answer.arrived)
            return;
        for (size_t i = 0; i < answer.fd_count; i++)
            close(answer.fds[i]);
        if (answer.kind == MESSAGE_NOTIFICATION)
            continue;
        struct asked *request = &requests[who][answer.msgid % MSGIDS];
        CHECK(request->waiting);
        request->waiting = false;
        unanswered[who]--;
        model_note(who, request, &answer, buffer);
    }
}

/*
 * Users' actions.
 */

/* Ids that exist, mostly. */
static uint64_t some_buffer(const struct caller *user)
{
    return 1 + below(user->client->last_buffer_id + 1);
}

static struct msg_tensor some_tensor(uint64_t buffer)
{
    static const uint64_t rows[] = {0, 1, 3, 10, 50};
    const uint64_t first = below(5);
    return rig_rows(buffer, first, rows[below(5)]);
}

static struct msg_job_submit_params some_job(const struct caller *user)
{
    struct msg_tensor input = some_tensor(some_buffer(user)), output = input;
    if (below(2))
        output.buffer = some_buffer(user);
    struct msg_job_submit_params params = rig_scan(input, output);
    params.progress = below(2);
    params.priority = (uint32_t)below(SCAND_PRIORITY_COUNT);
    params.deadline_ms = below(4);
    params.group = below(4) ? 0 : 1 + below(LIMIT_CLIENT_GROUPS);
    params.then_count = (uint32_t)below(3);
    for (uint32_t i = 0; i < params.then_count; i++)
        params.then[i].passes_count = 1 + (uint32_t)below(2);
    return params;
}

static uint32_t some_submit(struct caller *user)
{
    struct msg_job_submit_params params = some_job(user);
    return ask(user, METHOD_job_submit, &params);
}

static uint32_t some_batch(struct caller *user)
{
    struct msg_job_batch_params params = {.jobs_count = (uint32_t)below(below(4) ? 4 : LIMIT_BATCH_JOBS + 1)};
    for (uint32_t i = 0; i < params.jobs_count; i++)
        params.jobs[i].submit = some_job(user);
    return ask(user, METHOD_job_batch, &params);
}

static uint32_t some_import(struct caller *user, uint64_t size_bytes)
{
    int fd = memory_create(5 * RIG_ROW_BYTES);
    struct msg_buffer_import_params params = {size_bytes, 0, 1};
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    close(fd);
    return msgid;
}

static struct msg_buffer_create_params some_creation(void)
{
    return (struct msg_buffer_create_params){
        .size = below(60 * RIG_ROW_BYTES), .place = below(2), .device = below(4), .sharing = below(3)};
}

/* Asks for an import of device memory by descriptor; or by handle, which users may not, or both. */
static uint32_t some_device_import(struct caller *user)
{
    struct msg_buffer_import_device_params params = {
        .size = below(60 * RIG_ROW_BYTES), .fds = below(4) > 0, .handle_count = below(8) ? 0 : SCAND_IPC_BYTES};
    int fd = memory_create(RIG_ROW_BYTES);
    uint32_t msgid = ask_with(user, METHOD_buffer_import_device, &params, &fd, params.fds);
    close(fd);
    return msgid;
}

/* Requests of which the model knows nothing but that they are answered. */
static uint32_t some_other(struct caller *user, enum method *method)
{
    static const enum method methods[] = {METHOD_job_cancel,    METHOD_server_stats,  METHOD_server_jobs,
                                          METHOD_server_cancel, METHOD_buffer_export, METHOD_group_begin,
                                          METHOD_group_end};
    const struct msg_page_params number = {below(rig.service.stats.jobs_numbered + 2)};
    switch (*method = methods[below(7)]) {
    case METHOD_job_cancel:
        return ask(user, METHOD_job_cancel, &(struct msg_job_id){below(user->last_msgid + 1), below(6)});
    case METHOD_server_stats:
        return ask(user, METHOD_server_stats, &(struct msg_nothing){});
    case METHOD_server_jobs:
        return ask(user, METHOD_server_jobs, &number);
    case METHOD_group_begin:
        return ask(user, METHOD_group_begin, &(struct msg_group_begin_params){.group = below(LIMIT_CLIENT_GROUPS)});
    case METHOD_group_end:
        return ask(user, METHOD_group_end, &(struct msg_group_label){below(LIMIT_CLIENT_GROUPS)});
    case METHOD_server_cancel:
        return ask(user, METHOD_server_cancel, &(struct msg_job_number){number.from});
    default:
        return ask(user, METHOD_buffer_export, &(struct msg_buffer_id){some_buffer(user)});
    }
}

static void some_request(size_t who)
{
    struct caller *user = &rig.users[who];
    enum method method;
    const uint64_t what = below(14);
    if (what == 0) {
        struct msg_buffer_create_params params = some_creation();
        const uint64_t bytes = params.place == SCAND_PLACE_HOST ? segment_of(params.size) : 0;
        asked(who, ask(user, METHOD_buffer_create, &params), METHOD_buffer_create, bytes);
    } else if (what == 1) {
        const uint64_t bytes = (3 + below(3)) * RIG_ROW_BYTES;
        asked(who, some_import(user, bytes), METHOD_buffer_import, bytes);
    } else if (what == 2) {
        const struct msg_buffer_id id = {some_buffer(user)};
        asked(who, ask(user, METHOD_buffer_release, &id), METHOD_buffer_release, id.buffer);
    } else if (what == 3) {
        asked(who, some_device_import(user), METHOD_buffer_import_device, 0);
    } else if (what < 9) {
        const uint32_t sent = some_other(user, &method);
        asked(who, sent, method, 0);
    } else if (what < 11) {
        asked(who, some_batch(user), METHOD_job_batch, 0);
    } else {
        asked(who, some_submit(user), METHOD_job_submit, 0);
    }
}

static void some_user_asks(void)
{
    size_t who = below(RIG_USERS);
    if (rig.users[who].client)
        some_request(who);
}

static void some_work_ends(void)
{
    if (rig.work_count == 0)
        return;
    rig_help(rig_pop_work(below(rig.work_count)));
}

/* Quotas that are often met, other ones for user 1001, and weights. */
static void some_grants(void)
{
    struct grants grants = {.own_count = 1, .own[0].uid = 1001};
    struct grant *both[] = {&grants.standard, &grants.own[0].grant};
    for (size_t i = 0; i < 2; i++) {
        both[i]->weight = 1 + (unsigned)below(1000);
        both[i]->most[QUOTA_HOST_MEMORY] = below(20) * LIMIT_SMALLEST_SEGMENT_BYTES;
        both[i]->most[QUOTA_DEVICE_MEMORY] = below(2) ? below(200) * RIG_ROW_BYTES : MIB(5);
        both[i]->most[QUOTA_JOBS] = below(20);
        both[i]->most[QUOTA_CONNECTIONS] = RIG_USERS;
        both[i]->most[QUOTA_PINNED_MEMORY] = MIB(1);
    }
    for (uid_t i = 0; i < UIDS; i++)
        for (size_t quota = 0; quota < QUOTA_COUNT; quota++) {
            const uint64_t now = both[i == 1]->most[quota];
            most[i][quota] = now > most[i][quota] ? now : most[i][quota];
        }
    service_configure(&rig.service, &grants);
}

static void some_step(void)
{
    static const int codes[] = {-EIO, -ENOMEM, -EDQUOT};
    uint64_t what = below(100);
    struct manual *manual = below(2) ? &rig.manual : &rig.second; /* which may have nothing to do, ever */
    rig_pass(below(200));
    if (what < 40)
        some_user_asks();
    else if (what < 70 && manual->out_count > 0)
        rig_complete_on(manual, below(manual->out_count), below(10) ? 0 : -EIO);
    else if (what < 90)
        some_work_ends();
    else if (what < 98)
        read_answers(below(rig.user_count));
    else if (what == 98)
        manual_fail(manual, below(MANUAL_CALLS), 1 + (unsigned)below(3), codes[below(3)]);
    else if (below(2))
        some_grants();
    else if (below(2))
        user_close(&rig.users[below(rig.user_count)]);
    rig_collect();
    check_accounts();
}

/* Runs until nothing is under way: then every request of clients who are still there has its answer. */
static void settle(void)
{
    do {
        rig_complete_all();
        rig_collect();
        rig_run_work();
    } while (rig.manual.out_count + rig.second.out_count > 0 || rig.work_count > 0);
    for (size_t who = 0; who < rig.user_count; who++) {
        if (!rig.users[who].client)
            continue;
        read_answers(who);
        CHECK_EQ(unanswered[who], 0);
        CHECK(!rig.users[who].over);
    }
    CHECK_EQ(rig.service.stats.jobs_open, 0);
}

static void run_begin(void)
{
    rig_begin_devices(1 + (unsigned)below(2), 1, 1 + (unsigned)below(LIMIT_CHUNKS_IN_FLIGHT), 1 + below(5));
    rig.manual.device.info.memory_limit_bytes = rig.second.device.info.memory_limit_bytes = MIB(7);
    memset(requests, 0, sizeof requests);
    memset(unanswered, 0, sizeof unanswered);
    memset(held_count, 0, sizeof held_count);
    memset(most, below(2) ? 0xff : 0, sizeof most); /* all that there is, until there are quotas */
    if (most[0][0] == 0)
        some_grants();
    for (int i = 0; i < RIG_USERS; i++)
        user_greet(UID_FIRST + (uid_t)below(UIDS));
}

static void run_end(void)
{
    settle();
    check_settled();
    rig_end();
}

static void random_use(void)
{
    state = random_seed();
    for (int run = 0; run < RUNS && !check_failures; run++) {
        run_begin();
        for (int i = 0; i < STEPS; i++)
            some_step();
        run_end();
    }
}

/* One sequence again and again: each time somebody dies one step later, or everybody does. */
static void deaths_between_any_two_steps(void)
{
    const uint64_t seed = random_seed();
    for (int death = 0; death < 2 * DEATHS && !check_failures; death++) {
        state = seed;
        run_begin();
        for (int i = 0; i < DEATHS; i++) {
            some_step();
            for (size_t who = 0; i == death / 2 && who < rig.user_count; who++)
                if (death % 2 || who == seed % RIG_USERS)
                    user_close(&rig.users[who]);
            check_accounts();
        }
        run_end();
    }
}

static const struct test tests[] = {TEST(random_use), TEST(deaths_between_any_two_steps), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

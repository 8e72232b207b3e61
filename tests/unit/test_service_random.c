/*
 * The service under random use: users who come, ask for anything in any order and go, work and chunks that end in any
 * order, calls of the device that fail. Every request is answered once, nothing leaks, and memory outlives the chunks
 * on it.
 */
#include "tests/unit/service_rig.h"

#include "protocol/memory.h"

#define RUNS   60
#define STEPS  400
#define MSGIDS 4096

/* What a user has asked and not been told yet. */
static bool waiting[RIG_USERS][MSGIDS];
static unsigned unanswered[RIG_USERS];

static uint64_t state;

static uint64_t below(uint64_t bound)
{
    return random_next(&state) % bound;
}

static void asked(size_t who, uint32_t msgid)
{
    waiting[who][msgid % MSGIDS] = true;
    unanswered[who]++;
}

static void read_answers(size_t who)
{
    struct caller *user = &rig.users[who];
    while (user->client) {
        struct answer answer = next_answer(user, NULL, NULL);
        if (!answer.arrived)
            return;
        for (size_t i = 0; i < answer.fd_count; i++)
            close(answer.fds[i]);
        if (answer.kind == MESSAGE_NOTIFICATION)
            continue;
        CHECK(waiting[who][answer.msgid % MSGIDS]);
        waiting[who][answer.msgid % MSGIDS] = false;
        unanswered[who]--;
    }
}

/* Ids that exist, mostly. */
static uint64_t some_buffer(const struct caller *user)
{
    return 1 + below(user->client->last_buffer_id + 1);
}

static struct msg_tensor some_tensor(uint64_t buffer)
{
    static const uint64_t rows[] = {0, 1, 3, 10, 50};
    return (struct msg_tensor){.buffer = buffer,
                               .offset = below(5) * RIG_ROW_BYTES,
                               .shape = {rows[below(5)], 100},
                               .shape_count = 2,
                               .strides = {RIG_ROW_BYTES, 4},
                               .strides_count = 2};
}

static struct msg_job_submit_params some_job(const struct caller *user)
{
    struct msg_tensor input = some_tensor(some_buffer(user)), output = input;
    if (below(2))
        output.buffer = some_buffer(user);
    struct msg_job_submit_params params = {.input = input, .output = output, .axis = 1, .passes_count = 1};
    params.progress = below(2);
    params.priority = (uint32_t)below(SCAND_PRIORITY_COUNT);
    params.deadline_ms = below(4);
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
        params.jobs[i] = some_job(user);
    return ask(user, METHOD_job_batch, &params);
}

static uint32_t some_import(struct caller *user)
{
    int fd = memory_create(5 * RIG_ROW_BYTES);
    struct msg_buffer_import_params params = {(3 + below(3)) * RIG_ROW_BYTES, 0, 1};
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    close(fd);
    return msgid;
}

static uint32_t some_creation(struct caller *user)
{
    struct msg_buffer_create_params params = {
        .size = below(60 * RIG_ROW_BYTES), .place = below(2), .device = below(4), .sharing = below(3)};
    return ask(user, METHOD_buffer_create, &params);
}

/* By descriptor; by handle, which users may not, or both. */
static uint32_t some_device_import(struct caller *user)
{
    struct msg_buffer_import_device_params params = {
        .size = below(60 * RIG_ROW_BYTES), .fds = below(4) > 0, .handle_count = below(8) ? 0 : SCAND_IPC_BYTES};
    int fd = memory_create(RIG_ROW_BYTES);
    uint32_t msgid = ask_with(user, METHOD_buffer_import_device, &params, &fd, params.fds);
    close(fd);
    return msgid;
}

static uint32_t some_request(struct caller *user)
{
    switch (below(14)) {
    case 0:
        return some_creation(user);
    case 1:
        return some_import(user);
    case 2:
        return ask(user, METHOD_buffer_release, &(struct msg_buffer_id){some_buffer(user)});
    case 3:
        return ask(user, METHOD_job_cancel, &(struct msg_job_id){below(user->last_msgid + 1), below(6)});
    case 4:
        return ask(user, METHOD_server_stats, &(struct msg_nothing){});
    case 5:
        return ask(user, METHOD_server_jobs, &(struct msg_page_params){below(rig.service.stats.jobs_submitted + 2)});
    case 6:
        return ask(user, METHOD_server_cancel, &(struct msg_job_number){below(rig.service.stats.jobs_submitted + 2)});
    case 7:
        return some_device_import(user);
    case 8:
        return ask(user, METHOD_buffer_export, &(struct msg_buffer_id){some_buffer(user)});
    case 9:
    case 10:
        return some_batch(user);
    default:
        return some_submit(user);
    }
}

static void some_user_asks(void)
{
    size_t who = below(RIG_USERS);
    struct caller *user = &rig.users[who];
    if (user->client)
        asked(who, some_request(user));
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
}

/* Until nothing is under way: then every request of those who are still there has its answer. */
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

static void run_once(void)
{
    rig_begin_devices(1 + (unsigned)below(2), 1, 1 + (unsigned)below(LIMIT_CHUNKS_IN_FLIGHT), 1 + below(5));
    rig.manual.device.info.memory_limit_bytes = rig.second.device.info.memory_limit_bytes = MIB(7);
    memset(waiting, 0, sizeof waiting);
    memset(unanswered, 0, sizeof unanswered);
    for (int i = 0; i < RIG_USERS; i++)
        user_greet(1000 + (uid_t)below(3));
    for (int i = 0; i < STEPS; i++)
        some_step();
    settle();
    rig_end();
}

static void random_use(void)
{
    state = random_seed();
    for (int i = 0; i < RUNS && !check_failures; i++)
        run_once();
}

static const struct test tests[] = {TEST(random_use), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The loop's sleeps at users' memory: who is suspected, who is not trusted any more, and what that means. */
#include "daemon/core/trust.h"

#include <sys/mman.h>
#include <unistd.h>

#include "service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

#define SLEPT_US    (LIMIT_SLEPT_MS * UINT64_C(1000))
#define ALL_PAID_US (2 * SLEPT_US * LIMIT_SLEPT_PARTS)

static struct user *user_of(uid_t uid)
{
    return user_find(&rig.service.users, uid);
}

/* Something of the user's takes so long, as the loop sleeps so often. Returns whether trust is lost by that. */
static bool take(uid_t uid, uint64_t us, uint64_t sleeps)
{
    struct user *user = user_of(uid);
    trust_begin(&rig.service, user);
    CHECK(rig.service.touches && rig.service.touching == uid);
    rig.now_us += us;
    rig.sleeps += sleeps;
    const bool lost = trust_end(&rig.service, user, us);
    CHECK(!rig.service.touches);
    return lost;
}

static bool may_have_rings(struct caller *user)
{
    struct msg_rings_result result;
    return granted(user, METHOD_rings_open, &(struct msg_nothing){}, &result);
}

static void whoever_lets_the_loop_sleep_is_not_trusted(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    CHECK(!take(ANNA, SLEPT_US + 1, 1)); /* suspected: before, nobody had looked how often it sleeps */
    CHECK(!user_of(ANNA)->distrusted);
    CHECK(take(ANNA, SLEPT_US + 1, 1));
    CHECK(user_of(ANNA)->distrusted && !user_of(BERT)->distrusted);
    CHECK(!take(ANNA, SLEPT_US + 1, 1)); /* which is said once */
    CHECK_CONTAINS(refused(anna, METHOD_rings_open, &(struct msg_nothing){}, SCAND_QUOTA),
                   "rings.open: user 1000 has no rings any more");
    CHECK(may_have_rings(bert));
    rig_end();
}

/* A user may have half of the rings that others leave, and a connection that ends gives back its own. */
static void rings_are_divided(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA), *more = user_greet(ANNA), *bert = user_greet(BERT);
    CHECK(may_have_rings(anna));
    const uint64_t others = LIMIT_RINGS - 4;
    rig.service.rings.used += others; /* of users who are not here */
    CHECK(may_have_rings(bert));
    CHECK_CONTAINS(refused(more, METHOD_rings_open, &(struct msg_nothing){}, SCAND_QUOTA),
                   "user 1000 has rings on 1 connections; allowed: 1");
    CHECK_EQ(rig.service.stats.rings_open, 2);
    user_close(anna);
    CHECK_EQ(rig.service.stats.rings_open, 1);
    CHECK(may_have_rings(more));
    user_close(more);
    user_close(bert);
    CHECK_EQ(rig.service.rings.used, others);
    CHECK_EQ(rig.service.stats.rings_open, 0);
    rig_end();
}

static void whoever_waits_for_a_processor_is_trusted(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA);
    for (int i = 0; i < 100; i++) {
        CHECK(!take(ANNA, SLEPT_US + 1, 0));
        CHECK(!take(ANNA, LIMIT_SLEEP_US - 1, 1));
    }
    CHECK(may_have_rings(anna));
    rig_end();
}

/* While helpers have memory of another user, it may be that at which the loop slept. */
static void whoever_may_have_slept_for_others_is_trusted(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    ask_with(bert, METHOD_buffer_import, &(struct msg_buffer_import_params){.size = 4096, .fds = 1}, &fd, 1);
    CHECK_EQ(rig.work_count, 1);
    take(ANNA, SLEPT_US + 1, 1);
    CHECK(!take(ANNA, SLEPT_US + 1, 1));
    const uint64_t since_us = rig.now_us;
    CHECK(trust_excuses(&rig.service, user_of(ANNA), since_us) &&
          !trust_excuses(&rig.service, user_of(BERT), since_us));
    rig_run_work();
    CHECK(trust_excuses(&rig.service, user_of(ANNA), since_us) &&
          !trust_excuses(&rig.service, user_of(BERT), since_us));
    rig.now_us++;
    CHECK(!trust_excuses(&rig.service, user_of(ANNA), rig.now_us));
    CHECK(take(ANNA, SLEPT_US + 1, 1));
    (void)anna;
    close(fd);
    rig_end();
}

/* The pool's units excuse as well, and a user's own do not make them forgotten. */
static void units_of_the_pool_excuse(void)
{
    static struct work_queue pools;
    rig_begin();
    user_greet(ANNA);
    struct user *anna = user_of(ANNA);
    trust_note_unit(&rig.service, &anna->work, 100);
    CHECK(!trust_excuses(&rig.service, anna, 50));
    trust_note_unit(&rig.service, &pools, 101);
    for (int i = 0; i < 3; i++) {
        trust_note_unit(&rig.service, &anna->work, 102);
        trust_note_unit(&rig.service, &anna->reads, 103);
        CHECK(trust_excuses(&rig.service, anna, 101));
        CHECK(!trust_excuses(&rig.service, anna, 102));
    }
    rig_end();
}

/* A user whose memory had a device sleep rests, and goes on by itself; others take turns meanwhile. */
static void whoever_lets_a_device_sleep_rests(void)
{
    const uint64_t slept_us = 20000;
    rig_begin_with(2, 1, 4);
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    const uint64_t annas = user_create(anna, 12 * RIG_ROW_BYTES, SCAND_PLACE_HOST),
                   berts = user_create(bert, 4 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    const struct msg_job_submit_params long_job = rig_scan_in_place(rig_rows(annas, 0, 12)),
                                       job = rig_scan_in_place(rig_rows(berts, 0, 4));
    ask(anna, METHOD_job_submit, &long_job);
    CHECK_EQ(rig.manual.out_count, 1);
    rig.manual.out[0]->slept_us = LIMIT_SLEEP_US - 1;
    rig_complete(0, 0);
    CHECK(rig_owner(0) == anna->client);
    rig.manual.out[0]->slept_us = slept_us;
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 0);
    const uint64_t rested_us = rig.now_us + slept_us * LIMIT_REST_PARTS;
    CHECK_EQ(rig.wake_us, rested_us);
    ask(bert, METHOD_job_submit, &job);
    CHECK_EQ(rig.manual.out_count, 1);
    CHECK(rig_owner(0) == bert->client);
    rig_complete(0, 0);
    rig_pass(rested_us - 1 - rig.now_us);
    CHECK_EQ(rig.manual.out_count, 0);
    rig_pass(1);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete_all();
    CHECK_EQ(rig.service.stats.jobs_done, 2);
    rig_end();
}

/* Who is alone has nobody wait. */
static void whoever_is_alone_does_not_rest(void)
{
    rig_begin_with(2, 1, 4);
    struct caller *anna = user_greet(ANNA);
    const uint64_t buffer = user_create(anna, 12 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    const struct msg_job_submit_params job = rig_scan_in_place(rig_rows(buffer, 0, 12));
    ask(anna, METHOD_job_submit, &job);
    rig.manual.out[0]->slept_us = LIMIT_SLEEP_US;
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete_all();
    rig_end();
}

/* A job that comes while its user rests is not forgotten, also where the user has gone and come back. */
static void jobs_of_who_rests_wait(void)
{
    rig_begin_with(2, 1, 4);
    user_greet(BERT);
    struct caller *anna = user_greet(ANNA);
    uint64_t buffer = user_create(anna, 4 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    struct msg_job_submit_params job = rig_scan_in_place(rig_rows(buffer, 0, 4));
    ask(anna, METHOD_job_submit, &job);
    rig.manual.out[0]->slept_us = LIMIT_SLEEP_US;
    rig_complete(0, 0);
    const uint64_t rested_us = rig.now_us + LIMIT_SLEEP_US * LIMIT_REST_PARTS;
    user_close(anna);
    rig_pass(1);
    anna = user_greet(ANNA);
    buffer = user_create(anna, 4 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    job = rig_scan_in_place(rig_rows(buffer, 0, 4));
    ask(anna, METHOD_job_submit, &job);
    CHECK_EQ(rig.manual.out_count, 0);
    CHECK(rig.wake_us <= rested_us);
    rig_pass(rested_us - rig.now_us);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete_all();
    rig_end();
}

/* A little is nobody's fault: for long, a hundredth of the time. */
static void a_little_is_forgiven(void)
{
    rig_begin();
    user_greet(ANNA);
    CHECK(!take(ANNA, LIMIT_SLEEP_US, 1));
    for (int i = 0; i < 100; i++) {
        CHECK(!take(ANNA, LIMIT_SLEEP_US, 1));
        rig.now_us += LIMIT_SLEEP_US * LIMIT_SLEPT_PARTS;
    }
    int more = 0;
    while (more < 1000 && !take(ANNA, LIMIT_SLEEP_US, 1))
        more++;
    CHECK(more >= LIMIT_SLEPT_MS * 1000 / LIMIT_SLEEP_US - 1 && more <= LIMIT_SLEPT_MS * 1000 / LIMIT_SLEEP_US + 1);
    rig_end();
}

/* What a user owes it owes when it comes back, too. */
static void leaving_pays_nothing(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA);
    take(ANNA, LIMIT_SLEEP_US, 1);
    CHECK(!take(ANNA, SLEPT_US - 1, 1));
    user_close(anna);
    user_greet(ANNA);
    CHECK(take(ANNA, LIMIT_SLEEP_US, 1));
    rig_end();
}

/* Neither leaving nor the end of a worker settles it. */
static void it_is_remembered(void)
{
    struct service_totals totals;
    rig_begin();
    struct caller *anna = user_greet(ANNA);
    take(ANNA, SLEPT_US + 1, 1);
    user_close(anna);
    rig.now_us += ALL_PAID_US;
    user_greet(ANNA);
    CHECK(take(ANNA, SLEPT_US + 1, 1));
    service_totals(&rig.service, &totals);
    rig_end();
    rig_begin();
    service_resume(&rig.service, &totals, 1);
    user_greet(ANNA);
    user_greet(BERT);
    CHECK(user_of(ANNA)->distrusted && !user_of(BERT)->distrusted);
    rig_end();
}

/* The supervisor ends a worker whose loop sleeps, and says where it slept. */
static void who_ended_a_worker_is_remembered(void)
{
    struct service_totals totals;
    rig_begin();
    user_greet(ANNA);
    user_greet(BERT);
    trust_accuse(&rig.service);
    CHECK_EQ(rig.service.users.distrusted.count, 0);
    trust_begin(&rig.service, user_of(BERT));
    trust_accuse(&rig.service);
    service_totals(&rig.service, &totals);
    CHECK_EQ(totals.distrusted.count, 1);
    CHECK_EQ(totals.distrusted.uids[0], BERT);
    rig_end();
}

/* There is room for so many; the oldest make way. */
static void many_are_remembered(void)
{
    rig_begin();
    for (uid_t uid = 2000; uid < 2000 + 2 * LIMIT_DISTRUSTED; uid++)
        user_distrust(&rig.service.users, uid);
    user_distrust(&rig.service.users, 2000 + 2 * LIMIT_DISTRUSTED - 1); /* once more */
    user_greet(2000);
    user_greet(2000 + LIMIT_DISTRUSTED);
    CHECK(!user_of(2000)->distrusted);
    CHECK(user_of(2000 + LIMIT_DISTRUSTED)->distrusted);
    rig_end();
}

/* Few offsets are copied in the loop, but not those of a user who is not trusted. */
static void threads_read_the_offsets(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA);
    const uint64_t rows = user_create(anna, 4096, SCAND_PLACE_HOST),
                   offsets = user_create(anna, 4096, SCAND_PLACE_HOST);
    struct msg_tensor row = rig_rows(rows, 0, 1);
    row.shape_count = row.strides_count = 1;
    row.shape[0] = 100;
    row.strides[0] = 4;
    struct msg_job_submit_params job = rig_scan_in_place(row);
    job.axis = 0;
    job.offsets = (struct msg_tensor){.buffer = offsets,
                                      .dtype = SCAND_DTYPE_U32,
                                      .shape = {2},
                                      .shape_count = 1,
                                      .strides = {4},
                                      .strides_count = 1};
    ask(anna, METHOD_job_submit, &job);
    CHECK_EQ(rig.work_count, 0);
    user_distrust(&rig.service.users, ANNA);
    ask(anna, METHOD_job_submit, &job);
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    rig_complete_all();
    rig_end();
}

static const struct test tests[] = {
    TEST(whoever_lets_the_loop_sleep_is_not_trusted),
    TEST(rings_are_divided),
    TEST(whoever_waits_for_a_processor_is_trusted),
    TEST(whoever_may_have_slept_for_others_is_trusted),
    TEST(units_of_the_pool_excuse),
    TEST(whoever_lets_a_device_sleep_rests),
    TEST(whoever_is_alone_does_not_rest),
    TEST(jobs_of_who_rests_wait),
    TEST(a_little_is_forgiven),
    TEST(leaving_pays_nothing),
    TEST(it_is_remembered),
    TEST(who_ended_a_worker_is_remembered),
    TEST(many_are_remembered),
    TEST(threads_read_the_offsets),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The loop's sleeps at users' memory: who is suspected, who is not trusted any more, and what that means. */
#include "daemon/core/trust.h"

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
    CHECK(rig.service.touching == user);
    rig.now_us += us;
    rig.sleeps += sleeps;
    const bool lost = trust_end(&rig.service, user, us);
    CHECK(rig.service.touching == NULL);
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
    TEST(whoever_waits_for_a_processor_is_trusted),
    TEST(a_little_is_forgiven),
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

/* Imported memory that is pinned unit by unit while jobs come, run, fail and go. */
#include "tests/unit/service_rig.h"

#include <sys/mman.h>

#include "daemon/core/clients.h"

#define ANNA  ((uid_t)1000)
#define UNITS 6
/* The size that a helper pins at once. The first row lies in the first unit, and each further one in the last unit of
 * such a run. */
#define RUN_BYTES (PIN_UNITS_AT_ONCE * PIN_UNIT_BYTES)

/* Returns rows of 100 samples, each at the beginning of another unit, from one of them on; a row is a chunk. */
static struct msg_tensor rows_of(uint64_t buffer, uint64_t first, uint64_t rows)
{
    return (struct msg_tensor){.buffer = buffer,
                               .offset = first * RUN_BYTES,
                               .shape = {rows, 100},
                               .shape_count = 2,
                               .strides = {RUN_BYTES, 4},
                               .strides_count = 2};
}

static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t first, uint64_t rows)
{
    struct msg_tensor tensor = rows_of(buffer, first, rows);
    return ask(user, METHOD_job_submit,
               &(struct msg_job_submit_params){.input = tensor, .output = tensor, .axis = 1, .passes_count = 1});
}

static bool done(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_job_submit, NULL);
}

/* Helpers pin what they have begun on; what they then begin is left for later. */
static void pin_some(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        REQUIRE(rig.work_count > 0);
        rig_help(rig_pop_work(0));
    }
}

/* Imports a unit, which is pinned, and so many runs less one, the last unit being short. */
static uint64_t import(struct caller *user, uint64_t runs)
{
    struct msg_buffer_import_params params = {(runs - 1) * RUN_BYTES + RIG_ROW_BYTES, 0, 1};
    struct msg_buffer_id id = {0};
    const struct buffer *before = user->client->buffers;
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)params.size) == 0);
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    close(fd);
    while (user->client->buffers == before) /* pages are made, then the first unit is pinned */
        pin_some(1);
    CHECK(answered(user, msgid, METHOD_buffer_import, &id));
    return id.buffer;
}

static struct buffer *buffer_of(struct caller *user, uint64_t id)
{
    return client_find_buffer(user->client, id);
}

static struct caller *begin(uint64_t *buffer)
{
    rig_begin_with(1, 2, 1);
    struct caller *user = user_greet(ANNA);
    *buffer = import(user, UNITS);
    return user;
}

static size_t pinned_count(void)
{
    return (rig.manual.attached_count - RIG_READY + PIN_UNITS_AT_ONCE - 1) / PIN_UNITS_AT_ONCE;
}

static void one_unit_needs_no_other_helper(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t buffer = import(user, 1);
    CHECK_EQ(rig.work_count, 0);
    CHECK_EQ(pinned_count(), 1);
    CHECK_EQ(submit(user, buffer, 0, 1), user->last_msgid);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_end();
}

static void chunks_start_when_their_unit_is_pinned(void)
{
    uint64_t buffer;
    struct caller *user = begin(&buffer);
    uint32_t msgid = submit(user, buffer, 0, 4);
    REQUIRE(rig.manual.out_count == 1); /* the second slot is free */
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 0);
    pin_some(1);
    REQUIRE(rig.manual.out_count == 1);
    CHECK_EQ(rig.manual.out[0]->first, 1);
    CHECK_EQ(rig.manual.out[0]->spans[OPERAND_INPUT].pin_unit_bytes, PIN_UNIT_BYTES);
    pin_some(2);
    CHECK_EQ(rig.manual.out_count, 2);
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_run_work();
    CHECK_EQ(pinned_count(), UNITS);
    CHECK_EQ(rig.service.stats.staged_bytes, 0);
    rig_end();
}

/* Units that a job waits for are pinned right after those on which helpers have begun. */
static void what_a_job_waits_for_is_pinned_first(void)
{
    uint64_t buffer;
    struct caller *user = begin(&buffer);
    const size_t helpers = rig.work_count;
    uint32_t msgid = submit(user, buffer, UNITS - 1, 1);
    CHECK(helpers >= 2 && helpers < UNITS - 1);
    CHECK_EQ(rig.manual.out_count, 0);
    pin_some(helpers + 1);
    CHECK_EQ(rig.manual.out_count, 1);
    CHECK(pinned_count() <= helpers + 2);
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_end();
}

/* Others on the connection pass, but not one that needs what the job writes. */
static void who_passes_a_job_that_waits(void)
{
    uint64_t buffer;
    struct caller *user = begin(&buffer);
    submit(user, buffer, 1, 1);
    submit(user, buffer, 1, 1);
    CHECK_EQ(rig.manual.out_count, 0);
    uint32_t passes = submit(user, buffer, 0, 1);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(done(user, passes));
    pin_some(1);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(done(user, passes - 2));
    CHECK_EQ(rig.manual.out_count, 1);
    rig_end();
}

static void a_deadline_while_memory_is_pinned(void)
{
    uint64_t buffer;
    struct caller *user = begin(&buffer);
    struct msg_tensor tensor = rows_of(buffer, 1, 1);
    uint32_t msgid = ask(user, METHOD_job_submit,
                         &(struct msg_job_submit_params){
                             .input = tensor, .output = tensor, .axis = 1, .passes_count = 1, .deadline_ms = 5});
    rig_pass(6000);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DEADLINE), "could not start by then");
    rig_end();
}

/* The last unit of the n-th run cannot be pinned: chunks out go on, all others are staged, no more units are pinned. */
static void units_that_cannot_be_pinned(void)
{
    for (unsigned n = 1; n < UNITS; n++) {
        uint64_t buffer;
        struct caller *user = begin(&buffer);
        const size_t helpers = rig.work_count;
        manual_fail(&rig.manual, MANUAL_ATTACH, n * PIN_UNITS_AT_ONCE, -ENOMEM);
        uint32_t msgid = submit(user, buffer, 0, UNITS);
        pin_some(n);
        REQUIRE(rig.manual.out_count == 2 && buffer_of(user, buffer)->span.staged);
        CHECK(!rig.manual.out[0]->spans[OPERAND_INPUT].staged);
        CHECK_EQ(rig.manual.out[1]->spans[OPERAND_INPUT].staged, n == 1);
        CHECK_EQ(rig.service.stats.staged_bytes, buffer_of(user, buffer)->span.size_bytes);
        rig_run_work();
        CHECK(pinned_count() < n + helpers);
        rig_complete(0, 0);
        CHECK(rig.manual.out[1]->spans[OPERAND_INPUT].staged && rig.manual.out[1]->spans[OPERAND_OUTPUT].staged);
        rig_complete_all();
        CHECK(done(user, msgid));
        CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL));
        rig_end();
    }
}

/* The chunk that finds the device gone ends the worker. */
static void a_device_that_is_lost_meanwhile(void)
{
    uint64_t buffer;
    struct caller *user = begin(&buffer);
    submit(user, buffer, 1, 1);
    CHECK_EQ(rig.manual.out_count, 0);
    manual_fail(&rig.manual, MANUAL_ATTACH, 1, -EOWNERDEAD);
    pin_some(1);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_end();
}

/* A small job works on memory as it is, unless that turns out not to be pinned. */
static void small_jobs_on_memory_that_is_not_pinned(void)
{
    for (int failing = 0; failing < 2; failing++) {
        uint64_t buffer;
        rig_begin_with(1, 2, 1);
        rig.manual.device.info.small_slots = 1;
        rig.manual.device.info.small_bytes = MIB(1);
        scheduler_init(&rig.service.scheduler, &rig.devices);
        struct caller *user = user_greet(ANNA);
        buffer = import(user, 2);
        uint32_t msgid = submit(user, buffer, 1, 1);
        CHECK_EQ(rig.manual.out_count, 0);
        manual_fail(&rig.manual, MANUAL_ATTACH, (unsigned)failing, -ENOMEM);
        pin_some(1);
        REQUIRE(rig.manual.out_count == 1);
        CHECK_EQ(rig.manual.out[0]->small, !failing);
        CHECK_EQ(rig.manual.out[0]->spans[OPERAND_INPUT].staged, failing);
        rig_complete(0, 0);
        CHECK(done(user, msgid));
        rig_end();
    }
}

/* A unit that nobody waits for is not pinned. */
static void released_while_it_is_pinned(void)
{
    rig_begin_with(1, 2, 1);
    struct caller *user = user_greet(ANNA);
    const uint64_t buffer = import(user, 2 * UNITS); /* more than all helpers have begun on */
    const size_t helpers = rig.work_count;
    uint32_t msgid = submit(user, buffer, 0, 2);
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL));
    pin_some(1); /* the job still needs it */
    CHECK_EQ(rig.work_count, helpers);
    rig_complete_all();
    CHECK(done(user, msgid));
    pin_some(helpers);
    CHECK_EQ(rig.work_count, 1);
    CHECK_EQ(pinned_count(), 2 + helpers);
    rig_run_work(); /* that was to unpin it */
    CHECK_EQ(pinned_count(), 0);
    rig_end();
}

static void gone_while_it_is_pinned(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++)
        for (int failing = 0; failing < 2; failing++) {
            uint64_t buffer;
            struct caller *user = begin(&buffer);
            submit(user, buffer, 0, UNITS);
            manual_fail(&rig.manual, MANUAL_ATTACH, (unsigned)failing, -ENOMEM);
            rig_go_meanwhile(user, moment);
            rig_complete_all();
            rig_run_work();
            CHECK_EQ(pinned_count(), 0);
            rig_end();
        }
}

static const struct test tests[] = {
    TEST(one_unit_needs_no_other_helper),
    TEST(chunks_start_when_their_unit_is_pinned),
    TEST(what_a_job_waits_for_is_pinned_first),
    TEST(who_passes_a_job_that_waits),
    TEST(a_deadline_while_memory_is_pinned),
    TEST(units_that_cannot_be_pinned),
    TEST(a_device_that_is_lost_meanwhile),
    TEST(small_jobs_on_memory_that_is_not_pinned),
    TEST(released_while_it_is_pinned),
    TEST(gone_while_it_is_pinned),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

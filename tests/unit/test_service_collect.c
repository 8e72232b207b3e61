/* Chunks that devices have returned are handled in turns, so that messages have theirs however many chunks there are.
 */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)
#define JOBS 100

/* The client; a chunk of each of its jobs has come back, all at once. */
static struct caller *anna;
static struct chunk *returned;

static void submit(uint64_t buffer, uint64_t row)
{
    const struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, row, 1));
    ask(anna, METHOD_job_submit, &params);
}

/* Completes all chunks that the device has. */
static void complete(void)
{
    while (rig.manual.out_count > 0)
        manual_complete(&rig.manual, 0, 0);
    returned = rig.manual.completed;
    rig.manual.completed = NULL;
}

static void begin_with(unsigned slots)
{
    rig_begin();
    rig.manual.device.info.small_slots = slots;
    rig.manual.device.info.small_bytes = KIB(256);
    scheduler_init(&rig.service.scheduler, &rig.devices);
    anna = user_greet(ANNA);
    const uint64_t buffer = user_create(anna, JOBS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    for (uint64_t row = 0; row < JOBS; row++)
        submit(buffer, row);
    CHECK(rig.manual.out_count >= slots);
    complete();
}

static void begin(void)
{
    begin_with(JOBS);
}

/* Returns how many jobs a turn ends. */
static unsigned turn(uint64_t end_us)
{
    unsigned answers = 0;
    service_collect(&rig.service, &returned, end_us);
    while (!is_silent(anna))
        answers++;
    return answers;
}

static void end(void)
{
    rig.tick_us = 0;
    while (returned)
        CHECK(turn(UINT64_MAX) > 0);
    CHECK_EQ(rig.service.stats.jobs_done, JOBS);
    rig_end();
}

static void a_turn_has_so_many_chunks(void)
{
    begin();
    CHECK_EQ(turn(UINT64_MAX), LIMIT_TURN_CHUNKS);
    CHECK_EQ(turn(UINT64_MAX), JOBS - LIMIT_TURN_CHUNKS);
    CHECK(!returned);
    CHECK_EQ(turn(UINT64_MAX), 0);
    end();
}

static void a_turn_ends_in_time(void)
{
    begin();
    rig.tick_us = LIMIT_TURN_US / 4;
    const unsigned chunks = turn(rig.now_us + LIMIT_TURN_US);
    CHECK(chunks >= 1 && chunks <= 4);
    CHECK_EQ(turn(rig.now_us), 1); /* one at least: the loop goes on */
    end();
}

/* Jobs in the list when a turn begins end before those that join it, and a message is answered in between. */
static void messages_have_turns_in_between(void)
{
    begin();
    struct caller *bert = user_greet(BERT);
    rig.tick_us = LIMIT_TURN_US;
    CHECK_EQ(turn(rig.now_us + LIMIT_TURN_US), 1);
    CHECK(granted(bert, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    CHECK_EQ(turn(rig.now_us + LIMIT_TURN_US), 1);
    end();
}

/* The user of the jobs pays for the loop's time, as for that of its messages. */
static void chunks_are_charged(void)
{
    begin();
    struct caller *bert = user_greet(BERT);
    const uint64_t anna_us = anna->client->user->turn.had_us, bert_us = bert->client->user->turn.had_us;
    CHECK_EQ(turn(UINT64_MAX), LIMIT_TURN_CHUNKS);
    CHECK(anna->client->user->turn.had_us >= anna_us + LIMIT_TURN_CHUNKS);
    CHECK_EQ(bert->client->user->turn.had_us, bert_us);
    end();
}

/* A device's thread is woken once for all that it gets, and not for each chunk that another makes room for. */
static void a_turn_hands_out_once(void)
{
    begin_with(JOBS / 4);
    for (unsigned ended = 0; ended < JOBS;) {
        const unsigned starts = rig.starts, before = ended;
        const uint64_t had_us = anna->client->user->turn.had_us;
        ended += turn(UINT64_MAX);
        CHECK_EQ(rig.starts, starts + (ended < JOBS));
        CHECK_EQ(anna->client->user->turn.had_us, had_us + (ended - before) + (ended < JOBS)); /* pays for that, too */
        complete();
    }
    end();
}

static const struct test tests[] = {
    TEST(a_turn_has_so_many_chunks), TEST(a_turn_ends_in_time),   TEST(messages_have_turns_in_between),
    TEST(chunks_are_charged),        TEST(a_turn_hands_out_once), TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The listener's rounds: waiting, turns, gathered answers, rings, the end. */
#include "tests/unit/listener_rig.h"

/* The thread hears of it by the call that it waits in, and libuv has nothing to do. */
static void a_message_takes_few_calls(void)
{
    begin();
    int fd = client_greet();
    count_calls();
    const struct user *user = rig.service.clients->user;
    client_send(fd, PING, sizeof PING - 1);
    listener_wait(&rig.listener, true);
    listener_serve(&rig.listener);
    const uint64_t had_us = user->turn.had_us;
    listener_wait(&rig.listener, false);
    CHECK(user->turn.had_us > had_us); /* sending is charged, too */
    CHECK_EQ(user->unread_bytes, 0);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    CHECK_EQ(calls.waits, 2);
    CHECK_EQ(calls.reads, 1);
    CHECK_EQ(calls.sends, 1);
    CHECK_EQ(calls.unseen, 0);
    CHECK_EQ(rig.runs, 0);
    close(fd);
    end_counting();
}

/* Several wakes are one event until the thread has seen it, and timers end the wait, too. */
static void waits_end(void)
{
    begin();
    count_calls();
    for (int i = 0; i < 2; i++) {
        listener_wake(&rig.listener);
        listener_wake(&rig.listener);
        listener_wait(&rig.listener, true);
    }
    CHECK_EQ(calls.waits, 2);
    CHECK_EQ(rig.runs, 0);
    uv_timer_start(&rig.hour, hour_ends, 1, 0);
    while (rig.hours == 0)
        listener_wait(&rig.listener, true);
    CHECK_EQ(rig.runs, 1);
    end_counting();
}

/* A client of which more messages wait gets its answers together, but does not wait long for any. */
static void answers_are_gathered(void)
{
    enum { MANY = 8 * LIMIT_GATHER_US };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int fd = client_greet();
    count_calls();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(fd, flood, sizeof flood);
    rounds(2 * MANY / LIMIT_TURN_US);
    CHECK_EQ(client_read(fd), MANY * (sizeof PONG - 1));
    CHECK(calls.sends >= 4 && calls.sends <= MANY / LIMIT_TURN_US / 2);
    close(fd);
    end_counting();
}

/* A client that dies right after its last requests is noticed, and they count, in several turns as well. */
static void the_last_requests_of_a_client(void)
{
    enum { MANY = 4 * LIMIT_TURN_US };
    begin();
    int fd = client_greet();
    uint64_t refused = rig.service.stats.messages_refused;
    for (int i = 0; i < MANY; i++)
        client_send(fd, "\x94\x00\x07\xa1x\x90", 6);
    close(fd);
    rounds(20);
    CHECK_EQ(rig.service.stats.messages_refused, refused + MANY);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    end();
}

/* A client that says that it sends no more has its answers before its connection ends. */
static void the_last_answer_of_a_client(void)
{
    begin();
    int fd = client_greet();
    client_send(fd, PING, sizeof PING - 1);
    CHECK_EQ(shutdown(fd, SHUT_WR), 0);
    rounds(6);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    CHECK_EQ(client_read(fd), 0);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    close(fd);
    end();
}

/* A socket full of requests is handled turn by turn: of the clock's time, and in between all others get theirs. */
static void a_flood_is_cut_into_turns(void)
{
    enum { MANY = 1000 };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int loud = client_greet(), quiet = client_greet();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(loud, flood, sizeof flood);
    rounds(1);
    CHECK(client_read(loud) < (ssize_t)(LIMIT_TURN_US * (sizeof PONG - 1)));
    CHECK(client_pings(quiet));
    ssize_t got = 0, part;
    while ((part = client_read(loud)) > 0)
        got += part;
    CHECK(got < (ssize_t)(6 * LIMIT_TURN_US * (sizeof PONG - 1)));
    rounds(MANY);
    CHECK(client_read(loud) > 0);
    CHECK(client_pings(loud));
    CHECK_EQ(rig.service.turns.users != NULL, 0);
    close(loud);
    close(quiet);
    end();
}

/* Turns have a number of messages, so that they also end when the clock stands still. */
static void turns_have_a_number_of_messages(void)
{
    enum { MANY = 3 * LIMIT_TURN_MESSAGES };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int fd = client_greet();
    rig.step_us = 0;
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(fd, flood, sizeof flood);
    struct client *client = rig.service.clients;
    CHECK(connection_receive(client->connection) > 0);
    CHECK_EQ(service_input(client, UINT64_MAX), 1);
    CHECK_EQ(service_input(client, 0), 1);
    connection_flush(client->connection);
    CHECK_EQ(client_read(fd), (LIMIT_TURN_MESSAGES + 1) * (sizeof PONG - 1));
    close(fd);
    end();
}

/* A client with an answer that was not sent, as the next `times` sends fail. */
static int client_owed(int code, unsigned times)
{
    int fd = client_greet();
    fail_send = code;
    fail_sends = times;
    client_send(fd, PING, sizeof PING - 1);
    listener_wait(&rig.listener, false);
    listener_serve(&rig.listener);
    memset(&calls, 0, sizeof calls);
    return fd;
}

/* Has a timer of a peer end at once. Returns false when it does not run. */
static bool timer_ends(uv_timer_t *timer)
{
    const bool runs = uv_is_active((uv_handle_t *)timer);
    if (runs)
        uv_timer_start(timer, timer->timer_cb, 0, 0);
    listener_wait(&rig.listener, false);
    return runs;
}

/* The rest of a message is not late where it is there before the loop comes to it. */
static void the_rest_of_a_message(void)
{
    begin();
    int fd = client_greet();
    struct peer *peer = rig.service.clients->peer;
    client_send(fd, PING, 4);
    rounds(2);
    client_send(fd, PING + 4, sizeof PING - 5);
    CHECK(timer_ends(&peer->patience));
    rounds(2);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    client_send(fd, PING, 4);
    rounds(2);
    CHECK(timer_ends(&peer->patience));
    CHECK_EQ(client_read(fd), 0);
    close(fd);
    end();
}

#define STATS "\x94\x00\x07\xacserver.stats\x90"

/* Returns a client that is not read from, as it leaves its answers unread; half a message is behind the last one. */
static int client_paused(void)
{
    int fd = client_greet();
    const struct client *client = rig.service.clients;
    client_send(fd, STATS, 4);
    for (int tries = 0; tries < 10000 && !client->paused; tries++) {
        client_send(fd, STATS + 4, sizeof STATS - 5);
        client_send(fd, STATS, 4);
        rounds(2);
    }
    CHECK(client->paused && connection_is_partial(client->connection));
    return fd;
}

/* A client that reads late, with half a message behind those that are answered: the time for its rest does not run
 * while nothing is read, and a client that takes some of its answers has time for the others. */
static void whoever_reads_late_is_waited_for(void)
{
    begin();
    int fd = client_paused();
    const struct client *client = rig.service.clients;
    struct peer *peer = client->peer;
    CHECK(!uv_is_active((uv_handle_t *)&peer->patience));
    peer->taken_ms -= LIMIT_UNREAD_MS;
    CHECK(client_read(fd) > 0);
    rounds(2);
    REQUIRE(rig.service.stats.clients_open == 1);
    while (client_read(fd) > 0)
        rounds(2);
    CHECK(!client->paused && peer->taken_ms == 0);
    client_send(fd, STATS + 4, sizeof STATS - 5);
    rounds(4);
    CHECK(client_read(fd) > 0);
    close(fd);
    end();
}

/* At the end nobody waits for requests of a client that does not read. */
static void whoever_reads_late_is_not_waited_for_at_the_end(void)
{
    begin();
    int fd = client_paused();
    client_send(fd, STATS + 4, sizeof STATS - 5);
    listener_end_input(&rig.listener, 3600000);
    close(fd);
    end();
}

/* Descriptors that wait until others have arrived are tried again soon: no event tells. */
static void descriptors_are_sent_again(void)
{
    begin();
    int fd = client_owed(ETOOMANYREFS, 1);
    struct peer *peer = rig.service.clients->peer;
    rounds(1);
    CHECK(client_read(fd) < 0);
    CHECK(uv_timer_get_due_in(&peer->unread) <= RESEND_MS);
    CHECK(timer_ends(&peer->unread));
    rounds(1);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    close(fd);
    end();
}

/* A client that takes none of its answers for so long is disconnected; having taken them all, it begins anew. */
static void whoever_takes_nothing_is_not_waited_for(void)
{
    begin();
    int fd = client_owed(EAGAIN, 1);
    struct peer *peer = rig.service.clients->peer;
    rounds(1);
    CHECK(peer->taken_ms > 0);
    rounds(2);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    CHECK_EQ(peer->taken_ms, 0);
    fail_sends = 1000;
    client_send(fd, PING, sizeof PING - 1);
    rounds(4);
    peer->taken_ms -= LIMIT_UNREAD_MS;
    CHECK(timer_ends(&peer->unread));
    rounds(1);
    CHECK_EQ(client_read(fd), 0);
    fail_sends = 0;
    close(fd);
    end();
}

/* The last answers are sent as soon as possible: when a socket has room, or after a while where no event tells. */
static void the_last_answers_are_sent(void)
{
    static const int codes[] = {EAGAIN, ETOOMANYREFS};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        begin();
        int fd = client_owed(codes[i], 3);
        listener_flush(&rig.listener, 60000);
        CHECK_EQ(client_read(fd), sizeof PONG - 1);
        CHECK_EQ(calls.sends, 4);
        close(fd);
        end();
    }
}

/* No client is waited for longer than the time allowed, nor by asking all the time. */
static void the_last_answers_are_not_waited_for(void)
{
    begin();
    int fd = client_owed(ETOOMANYREFS, 1000);
    listener_flush(&rig.listener, 3 * RESEND_MS);
    CHECK(calls.sends >= 1 && calls.sends <= 5);
    CHECK(client_read(fd) < 0);
    fail_sends = 0;
    close(fd);
    end();
}

/* At the end whatever has come is answered, and nothing more comes. */
static void the_last_requests_are_answered(void)
{
    enum { MANY = 1000 };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int quiet = client_greet(), loud = client_greet();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(loud, flood, sizeof flood);
    client_send(quiet, PING, sizeof PING - 1);
    listener_end_input(&rig.listener, 60000);
    CHECK_EQ(client_read(loud), MANY * (sizeof PONG - 1));
    CHECK_EQ(client_read(quiet), sizeof PONG - 1);
    CHECK(send(quiet, PING, sizeof PING - 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
    close(loud);
    close(quiet);
    end();
}

/* A client that takes its answers, and writes on as if it had not been told that the reader of its ring sleeps, holds
 * up the end for no longer than that. */
static void whoever_goes_on_is_not_waited_for(void)
{
    static const char frame[] = "\x1c\0\0\0\x94\x00\x07\xabserver.ping\x91\x81\xa9"
                                "aaaaaaaaa\xc0";
    struct rings *rings;
    int fd;
    begin();
    int loud = client_greet();
    struct client *client = rig.service.clients;
    CHECK_EQ(rings_create(&rings, &fd), 0);
    uint8_t *memory = mmap(NULL, 4096 + 2 * LIMIT_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(memory != MAP_FAILED);
    close(fd);
    for (size_t at = 0; at < LIMIT_RING_BYTES; at += sizeof frame - 1)
        memcpy(memory + 4096 + at, frame, sizeof frame - 1);
    connection_use_rings(client->connection, rings);
    rig.rings = memory;
    const uint64_t *read = (const uint64_t *)(memory + 64);
    for (int tries = 0; tries < 500 && *read <= 2 * LIMIT_RING_BYTES; tries++) /* a busy machine reads less in a try */
        listener_end_input(&rig.listener, 20);
    rig.rings = NULL;
    CHECK(*read > 2 * LIMIT_RING_BYTES);
    munmap(memory, 4096 + 2 * LIMIT_RING_BYTES);
    close(loud);
    end();
}

/* Gives a client rings, and returns the program's end of them. */
static struct rings *rings_of(struct client *client)
{
    struct rings *rings, *own;
    int fd;
    CHECK_EQ(rings_create(&rings, &fd), 0);
    client_use_rings(client, rings);
    CHECK_EQ(rings_attach(fd, &own), 0);
    close(fd);
    return own;
}

/* A connection whose ring had the loop sleep ends, and its memory goes back. */
static void rings_at_which_the_loop_sleeps_end(void)
{
    begin();
    int bad = client_greet(), good = client_greet();
    struct client *client = rig.service.clients->next;
    struct rings *own = rings_of(client);
    CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
    client_send(bad, PING, sizeof PING - 1);
    rig.step_us = LIMIT_SLEPT_MS * 1000;
    rounds(4);
    rig.step_us = 1;
    CHECK(user_find(&rig.service.users, getuid())->distrusted);
    rounds(4);
    CHECK(client_read(bad) <= 0);
    CHECK(client_pings(good));
    CHECK_EQ(rig.service.stats.clients_open, 1);
    run_work();
    CHECK_EQ(rig.service.stats.rings_open, 0);
    rings_destroy(own);
    close(bad);
    close(good);
    end();
}

/* A client whose ring is looked at, as it is after a message. */
static struct rings *rings_awake(int fd, struct client *client)
{
    struct rings *own = rings_of(client);
    CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
    client_send(fd, PING, sizeof PING - 1);
    rounds(4);
    CHECK(((const struct peer *)client->peer)->awake);
    return own;
}

/* Rings are looked at together, so where that has lasted all their users are suspected. A ring that has nothing is left
 * to its socket after so many looks. */
static void rings_are_looked_at(void)
{
    begin();
    int bell = client_greet();
    struct client *client = rig.service.clients;
    const struct peer *peer = client->peer;
    struct rings *own = rings_awake(bell, client);
    CHECK(!client->user->suspected);
    is_late = true;
    rounds(1);
    is_late = false;
    CHECK(peer->awake && client->user->suspected);
    rounds(LIMIT_RING_LOOKS);
    CHECK(!peer->awake && rings_reader_sleeps(own));
    rings_destroy(own);
    close(bell);
    end();
}

/* Looks at a suspect's ring are timed one by one. */
static void the_loop_sleeps_as_it_looks_at_a_ring(void)
{
    begin();
    int bell = client_greet();
    struct user *user = rig.service.clients->user;
    struct rings *own = rings_awake(bell, rig.service.clients);
    rig.step_us = 2 * LIMIT_SLEPT_MS * 1000;
    rounds(1);
    CHECK(!user->distrusted);
    user->suspected = true;
    rounds(1);
    CHECK(user->distrusted);
    rig.step_us = 1;
    rings_destroy(own);
    close(bell);
    end();
}

/* Before the loop waits, clients with rings are told to use their sockets. */
static void whoever_has_a_ring_wakes_the_loop(void)
{
    begin();
    int bell = client_greet();
    count_calls();
    struct rings *own = rings_awake(bell, rig.service.clients);
    CHECK(!rings_reader_sleeps(own));
    listener_wake(&rig.listener);
    listener_wait(&rig.listener, true);
    CHECK(calls.timeout_ms != 0);
    CHECK(rings_reader_sleeps(own));
    rings_destroy(own);
    close(bell);
    end_counting();
}

/* A client that sleeps with many jobs under way is woken for several answers at once, and in time. */
static void whoever_sleeps_is_woken_for_several_answers(void)
{
    uint8_t bytes[KIB(1)];
    begin();
    int asleep = client_greet();
    struct client *client = rig.service.clients;
    struct rings *own = rings_of(client);
    for (uint64_t jobs = LIMIT_GATHER_JOBS - 1; jobs <= LIMIT_GATHER_JOBS; jobs++) {
        rig.now_us += LIMIT_GATHER_ASLEEP_US;
        CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
        client_send(asleep, PING, sizeof PING - 1);
        rounds(4);
        CHECK(rings_read(own, bytes, sizeof bytes) > 0);
        CHECK(rings_sleep(own));
        client->job_count += jobs;
        CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
        client_send(asleep, PING, sizeof PING - 1);
        rounds(4);
        CHECK_EQ(client_read(asleep) > 0, jobs < LIMIT_GATHER_JOBS);
        rig.now_us += LIMIT_GATHER_ASLEEP_US;
        rounds(2);
        CHECK_EQ(client_read(asleep) > 0, jobs >= LIMIT_GATHER_JOBS);
        client->job_count -= jobs;
        while (rings_read(own, bytes, sizeof bytes) > 0) /* tells of the socket */
            continue;
        rings_took(own, rings_due_bytes(own));
        rings_rise(own);
    }
    rings_destroy(own);
    close(asleep);
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_rest_of_a_message),
        TEST(whoever_reads_late_is_waited_for),
        TEST(whoever_reads_late_is_not_waited_for_at_the_end),
        TEST(descriptors_are_sent_again),
        TEST(whoever_takes_nothing_is_not_waited_for),
        TEST(the_last_answers_are_sent),
        TEST(the_last_answers_are_not_waited_for),
        TEST(the_last_requests_are_answered),
        TEST(whoever_goes_on_is_not_waited_for),
        TEST(rings_at_which_the_loop_sleeps_end),
        TEST(rings_are_looked_at),
        TEST(the_loop_sleeps_as_it_looks_at_a_ring),
        TEST(whoever_has_a_ring_wakes_the_loop),
        TEST(whoever_sleeps_is_woken_for_several_answers),
        TEST(the_last_requests_of_a_client),
        TEST(the_last_answer_of_a_client),
        TEST(a_flood_is_cut_into_turns),
        TEST(turns_have_a_number_of_messages),
        TEST(a_message_takes_few_calls),
        TEST(waits_end),
        TEST(answers_are_gathered),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

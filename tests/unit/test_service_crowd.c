/* Crowds: connections of many users, or many of few, and descriptors that wait. Whoever comes still finds room. */
#include "tests/unit/service_rig.h"

#include <sys/resource.h>

#include "daemon/core/memory/client_descriptors.h"
#include "daemon/core/replies.h"
#include "protocol/memory.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

/* Connections that nobody speaks on. */
static struct client *crowd[LIMIT_CLIENTS];
static int ends[LIMIT_CLIENTS];
static size_t crowd_count;

/* True when it was opened. */
static bool crowd_open(uid_t uid)
{
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    bool full = service_is_full(&rig.service, uid);
    struct connection *connection = connection_create(pair[0]);
    struct client *client = service_open(&rig.service, connection, uid);
    CHECK(!client || !full);
    if (!client) {
        connection_destroy(connection);
        close(pair[1]);
        return false;
    }
    crowd[crowd_count] = client;
    ends[crowd_count++] = pair[1];
    return true;
}

static void crowd_close(void)
{
    while (crowd_count > 0) {
        service_close(crowd[--crowd_count]);
        close(ends[crowd_count]);
    }
}

static void begin(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    rig_begin();
}

static bool is_admitted(uid_t uid)
{
    return crowd_open(uid) && crowd[crowd_count - 1]->admitted;
}

static void greet_and_ping(uid_t uid)
{
    CHECK(granted(user_greet(uid), METHOD_server_ping, &(struct msg_nothing){}, NULL));
}

/* A user gets no more than others could still have. */
static void one_user(void)
{
    begin();
    while (crowd_open(ANNA))
        continue;
    CHECK_EQ(crowd_count, (LIMIT_CLIENTS - LIMIT_CLIENTS_KEPT - LIMIT_CLIENTS_FIRST) / 2 + LIMIT_UNADMITTED);
    CHECK(service_is_full(&rig.service, ANNA) && !service_is_full(&rig.service, BERT));
    CHECK(is_admitted(BERT));
    crowd_close();
    rig_end();
}

static void few_users_with_many(void)
{
    begin();
    for (size_t i = 0; i < 4 * LIMIT_CLIENTS; i++)
        crowd_open((uid_t)(2000 + i % 4));
    CHECK(crowd_count < LIMIT_CLIENTS - LIMIT_CLIENTS / 8);
    for (int i = 0; i < 16; i++)
        CHECK(is_admitted(ANNA));
    greet_and_ping(BERT);
    greet_and_ping(0);
    crowd_close();
    rig_end();
}

/* The user who runs the daemon finds places even where every place that others may have is taken. */
static void many_users(void)
{
    begin();
    for (uid_t uid = 2000; uid < 2000 + 2 * LIMIT_USERS; uid++)
        for (int i = 0; i < 8; i++)
            crowd_open(uid);
    CHECK(crowd_count <= LIMIT_CLIENTS - LIMIT_CLIENTS_KEPT);
    CHECK(!crowd_open(ANNA));
    greet_and_ping(0);
    greet_and_ping(RIG_OWNER);
    for (int i = 0; i < 8; i++)
        CHECK(is_admitted(i % 2 ? 0 : RIG_OWNER));
    crowd_close();
    rig_end();
}

/* Users who have nothing find room, however many connections 254 users hold. */
static void users_who_have_nothing(void)
{
    begin();
    for (int round = 0; round < 8; round++)
        for (uid_t uid = 2000; uid < 2254; uid++)
            crowd_open(uid);
    const size_t theirs = crowd_count;
    CHECK(theirs > LIMIT_CLIENTS / 2);
    for (uid_t uid = 3000; uid < 3100; uid++)
        CHECK(is_admitted(uid));
    greet_and_ping(ANNA);
    greet_and_ping(RIG_OWNER);
    CHECK_EQ(crowd_count, theirs + 100);
    crowd_close();
    rig_end();
}

/* Opens connections one after the other; each ends at once. How many are admitted before one is not. */
static unsigned connects(uid_t uid, unsigned most)
{
    unsigned count = 0;
    bool admitted = true;
    while (admitted && count < most) {
        admitted = crowd_open(uid) && crowd[crowd_count - 1]->admitted;
        count += admitted;
        crowd_close();
    }
    return count;
}

/* A user who connects on and on has so many connections in a second, although it has none in between, and others have
 * theirs. */
static void connections_on_and_on(void)
{
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "test", 0};
    begin();
    CHECK_EQ(connects(ANNA, 2 * LIMIT_CONNECTS_AT_ONCE), LIMIT_CONNECTS_AT_ONCE - LIMIT_UNADMITTED);
    struct caller *user = user_open(ANNA);
    ask(user, METHOD_hello, &params);
    struct answer answer = next_answer(user, NULL, NULL);
    CHECK(answer.failed && answer.failure.code == SCAND_BUSY && answer.failure.retry_ms == 1000);
    CHECK_CONTAINS(answer.failure.message,
                   "connect: user 1000 opens connections too fast; allowed: 2048 at once, and 1000 a second; keep one");
    CHECK(user->over);
    user_close(user);
    for (int i = 0; i < 64; i++) { /* of those that are told, too */
        crowd_open(ANNA);
        crowd_close();
    }
    CHECK(service_is_full(&rig.service, ANNA));
    CHECK(!crowd_open(ANNA));
    greet_and_ping(BERT);
    rig.now_us += 1000000;
    CHECK_EQ(connects(ANNA, 2 * LIMIT_CONNECTS_AT_ONCE), LIMIT_CONNECTS - LIMIT_UNADMITTED);
    rig_end();
}

static void who_is_beyond_its_share_is_told(void)
{
    struct answer answer;
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "test", 0};
    begin();
    while (is_admitted(ANNA))
        continue;
    struct caller *user = user_open(ANNA);
    ask(user, METHOD_hello, &params);
    answer = next_answer(user, NULL, NULL);
    CHECK(answer.failed && answer.failure.code == SCAND_BUSY && answer.failure.retry_ms == 1000);
    CHECK_CONTAINS(answer.failure.message, " connections and asks for 1 more; ");
    CHECK(user->over);
    user_close(user);
    for (int i = 0; i < 64; i++) {
        service_close(crowd[--crowd_count]);
        close(ends[crowd_count]);
    }
    CHECK(is_admitted(ANNA));
    crowd_close();
    rig_end();
}

/* A message's beginning with as many descriptors as it can have. */
static void send_half(struct caller *user)
{
    int fds[LIMIT_MESSAGE_FDS], fd = memory_create(4096);
    for (size_t i = 0; i < LIMIT_MESSAGE_FDS; i++)
        fds[i] = fd;
    user_send(user, "\x94\x00\x07", 3, fds, LIMIT_MESSAGE_FDS);
    close(fd);
}

static void descriptors_that_wait(void)
{
    begin();
    struct caller *users[5], *other = user_greet(BERT);
    for (int i = 0; i < 5; i++) {
        users[i] = user_greet(ANNA);
        send_half(users[i]);
        CHECK_EQ(users[i]->over, i == 4);
    }
    CHECK_CONTAINS(refusal(users[4], 7, SCAND_QUOTA),
                   "descriptors: user 1000 has 640 of them waiting in messages that are not complete; allowed: 512");
    send_half(other);
    CHECK(!other->over);
    CHECK_EQ(rig.service.waiting_fds.used, 6 * LIMIT_MESSAGE_FDS);
    for (int i = 0; i < 5; i++)
        user_close(users[i]);
    CHECK_EQ(rig.service.waiting_fds.used, LIMIT_MESSAGE_FDS);
    rig_end();
    CHECK_EQ(rig.service.waiting_fds.used, 0);
}

/* Asks twice before it reads, while so much more is unsent to its user and to others. True when the second request
 * waited until the first answer was read. */
static bool is_held_up(struct caller *user, uint64_t own, uint64_t others)
{
    user->client->user->unread_bytes += own;
    rig.service.unread_bytes += own + others;
    uint32_t first = ask(user, METHOD_server_ping, &(struct msg_nothing){}),
             second = ask(user, METHOD_server_ping, &(struct msg_nothing){});
    bool paused = user->client->paused;
    CHECK(user->client->unread_bytes > 0);
    CHECK(answered(user, first, METHOD_server_ping, NULL));
    CHECK_EQ(is_silent(user), paused);
    CHECK_EQ(user->client->unread_bytes, 0);
    if (paused) {
        CHECK_EQ(service_input(user->client, UINT64_MAX), 0);
        CHECK(answered(user, second, METHOD_server_ping, NULL));
    }
    CHECK_EQ(user->client->user->unread_bytes, own);
    CHECK_EQ(rig.service.unread_bytes, own + others);
    user->client->user->unread_bytes = rig.service.unread_bytes = 0;
    return paused;
}

/* The connections of a user beyond its bound, or half of what others leave, go on as their own answers are read. */
static void unread_answers_of_a_user(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *gone = user_greet(ANNA);
    CHECK(!is_held_up(anna, LIMIT_USER_UNREAD_BYTES / 2, 0));
    CHECK(is_held_up(anna, LIMIT_USER_UNREAD_BYTES, 0));
    CHECK(!is_held_up(anna, MIB(1), LIMIT_ALL_UNREAD_BYTES - MIB(3)));
    CHECK(is_held_up(anna, MIB(1), LIMIT_ALL_UNREAD_BYTES - MIB(2)));
    CHECK(!is_held_up(anna, 0, LIMIT_ALL_UNREAD_BYTES - MIB(2)));
    CHECK(!is_held_up(user_greet(BERT), 0, LIMIT_ALL_UNREAD_BYTES - MIB(2)));
    client_count_unread(anna->client, LIMIT_USER_UNREAD_BYTES + 1, 0);
    CHECK(service_is_clogged(anna->client) && !service_is_clogged(gone->client));
    client_count_unread(anna->client, 0, 0);
    ask(gone, METHOD_server_ping, &(struct msg_nothing){});
    CHECK(gone->client->user->unread_bytes > 0);
    user_close(gone);
    CHECK_EQ(anna->client->user->unread_bytes, 0);
    CHECK_EQ(rig.service.unread_bytes, 0);
    rig_end();
}

/* Many users do not take all descriptors either: each may have half of what others leave. */
static void descriptors_of_many_users(void)
{
    begin();
    struct caller *users[4];
    rig.service.waiting_fds.used = LIMIT_WAITING_FDS - 3 * LIMIT_MESSAGE_FDS; /* of users who are not here */
    for (int i = 0; i < 2; i++)
        users[i] = user_greet((uid_t)(3000 + i));
    send_half(users[0]);
    CHECK(!users[0]->over);
    send_half(users[1]);
    CHECK(!users[1]->over);
    users[2] = user_greet(3002);
    send_half(users[2]);
    CHECK(users[2]->over);
    for (int i = 0; i < 3; i++)
        user_close(users[i]);
    CHECK_EQ(rig.service.waiting_fds.used, LIMIT_WAITING_FDS - 3 * LIMIT_MESSAGE_FDS);
    rig_end();
}

/* Few descriptors wait where the process may have few. */
static void descriptors_where_there_are_few(void)
{
    begin();
    service_limit_files(&rig.service, LIMIT_CLIENTS, 8 * LIMIT_MESSAGE_FDS - 8);
    struct caller *anna = user_greet(3000), *same = user_greet(3000), *bert = user_greet(3001);
    send_half(anna); /* one more than half of a quarter */
    CHECK(anna->over);
    CHECK(granted(same, METHOD_server_ping, &(struct msg_nothing){}, NULL)); /* it has brought none of them */
    CHECK(!same->over);
    user_close(anna);
    service_limit_files(&rig.service, LIMIT_CLIENTS, 8 * LIMIT_MESSAGE_FDS);
    send_half(bert);
    CHECK(!bert->over);
    user_close(bert);
    CHECK_EQ(rig.service.files.most, 2 * LIMIT_MESSAGE_FDS);
    rig_end();
}

/* A message whose params say nothing of descriptors, and that has brought more than any may: not one is taken, and the
 * connection ends. */
static void more_descriptors_than_a_message_may_have(void)
{
    static const char message[] = "\x94\x00\x07\xad"
                                  "buffer.import\x91\x80";
    int fds[LIMIT_MESSAGE_FDS];
    begin();
    struct caller *anna = user_greet(3000);
    for (int i = 0; i < LIMIT_MESSAGE_FDS; i++)
        fds[i] = STDERR_FILENO;
    user_send(anna, message, 8, fds, LIMIT_MESSAGE_FDS);
    CHECK(!anna->over);
    user_send(anna, message + 8, sizeof message - 1 - 8, fds, LIMIT_MESSAGE_FDS);
    CHECK(anna->over);
    (void)refusal(anna, 7, SCAND_INVALID);
    rig_end();
}

/* A process that may have many open files has no more than the limits. */
static void descriptors_where_there_are_many(void)
{
    const struct service *service = &rig.service;
    begin();
    service_limit_files(&rig.service, 1 << 20, 1 << 20);
    CHECK_EQ(service->clients_most, LIMIT_CLIENTS);
    CHECK_EQ(service->files.most, LIMIT_FILES);
    CHECK_EQ(service->waiting_fds.most, LIMIT_WAITING_FDS);
    CHECK_EQ(service->lent_fds.most, LIMIT_LENT_FDS);
    CHECK_EQ(service->unread_fds.most, LIMIT_UNREAD_FDS);
    rig_end();
}

/* Of sockets that are turned away with something in them threads take so many of a user, and the loop closes others. */
static void sockets_that_are_turned_away(void)
{
    enum { SOCKETS = 4 };
    int pairs[SOCKETS][2];
    begin();
    rig.service.lent_fds.most = SOCKETS; /* half of it for a user */
    for (int i = 0; i < SOCKETS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
        CHECK_EQ(write(pairs[i][0], "x", 1), 1);
        CHECK_EQ(client_descriptors_turn_away(&rig.service, ANNA, pairs[i][1]), i < SOCKETS / 2);
    }
    CHECK_EQ(rig.service.lent_fds.used, SOCKETS / 2);
    rig_run_work();
    CHECK_EQ(rig.service.lent_fds.used, 0);
    for (int i = 0; i < SOCKETS; i++)
        close(pairs[i][0]);
    for (int i = SOCKETS / 2; i < SOCKETS; i++)
        close(pairs[i][1]);
    rig_end();
}

/* Sends a byte with so many descriptors of one file. */
static void send_many(int socket, int fd, size_t count)
{
    union {
        char bytes[CMSG_SPACE(LOST_FDS * sizeof fd)];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec byte = {"\x94", 1};
    struct msghdr header = {.msg_iov = &byte,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = CMSG_SPACE(count * sizeof fd)};
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof fd);
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(part) + i * sizeof fd, &fd, sizeof fd);
    CHECK_EQ(sendmsg(socket, &header, MSG_NOSIGNAL), 1);
}

/* A connection ends with descriptors that no message has taken: as many as the system lets through at once, which are
 * lost, or those of two messages, which wait. Threads close all of them, and no others. */
static void descriptors_that_are_left(void)
{
    begin();
    for (int waiting = 0; waiting < 2; waiting++) {
        struct caller *anna = user_greet(ANNA);
        const size_t each = waiting ? LIMIT_MESSAGE_FDS : LOST_FDS, sends = waiting ? 2 : 1;
        int pair[2];
        char byte;
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        for (size_t i = 0; i < sends; i++) {
            send_many(connection_fd(anna->connection), pair[1], each);
            CHECK_EQ(connection_receive(anna->client->connection), waiting ? 1 : -EBADF);
        }
        service_close(anna->client);
        anna->client = NULL;
        CHECK_EQ(rig.service.lent_fds.used, sends * each);
        rig_run_work();
        CHECK_EQ(rig.service.lent_fds.used, 0);
        close(pair[1]);
        CHECK_EQ(recv(pair[0], &byte, 1, MSG_DONTWAIT), 0); /* nobody has the other end */
        close(pair[0]);
    }
    rig_end();
}

/* Where there are few connections, they are shared by the same rule. */
static void connections_where_there_are_few(void)
{
    begin();
    for (unsigned most = 8; most <= 64; most *= 2) {
        service_limit_files(&rig.service, most, 100);
        while (crowd_open(ANNA))
            continue;
        CHECK(crowd_count >= most / 4 && crowd_count <= most / 2 + LIMIT_UNADMITTED);
        CHECK(is_admitted(BERT));
        for (uid_t uid = 3000; uid < 3000 + most; uid++)
            while (crowd_open(uid))
                continue;
        CHECK(crowd_count <= most - most / 8);
        CHECK(is_admitted(0) && crowd_count <= most);
        crowd_close();
    }
    rig_end();
}

/* Answers of a user that have many descriptors with them hold up its further requests. */
static void descriptors_that_are_unread(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *same = user_greet(ANNA), *bert = user_greet(BERT);
    const struct msg_buffer_create_params small = {.size = 1, .place = SCAND_PLACE_HOST};
    struct msg_buffer_create_result made;
    service_limit_files(&rig.service, LIMIT_CLIENTS, 4 * 4); /* 2 for a user */
    uint32_t msgids[4];
    for (int i = 0; i < 4; i++)
        msgids[i] = ask(anna, METHOD_buffer_create, &small);
    CHECK(anna->client->paused && rig.service.unread_fds.used == 3);
    CHECK(granted(bert, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    CHECK(granted(same, METHOD_server_ping, &(struct msg_nothing){}, NULL)); /* its own answers are read */
    for (int i = 0; i < 3; i++)
        CHECK(answered(anna, msgids[i], METHOD_buffer_create, &made));
    CHECK(is_silent(anna) && rig.service.unread_fds.used == 0);
    CHECK_EQ(service_input(anna->client, UINT64_MAX), 0);
    CHECK(answered(anna, msgids[3], METHOD_buffer_create, &made));
    ask(anna, METHOD_buffer_create, &small);
    CHECK_EQ(rig.service.unread_fds.used, 1);
    user_close(anna);
    CHECK_EQ(rig.service.unread_fds.used, 0);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(one_user),
        TEST(few_users_with_many),
        TEST(many_users),
        TEST(users_who_have_nothing),
        TEST(connections_on_and_on),
        TEST(who_is_beyond_its_share_is_told),
        TEST(descriptors_that_wait),
        TEST(descriptors_of_many_users),
        TEST(descriptors_where_there_are_few),
        TEST(more_descriptors_than_a_message_may_have),
        TEST(descriptors_where_there_are_many),
        TEST(sockets_that_are_turned_away),
        TEST(descriptors_that_are_left),
        TEST(connections_where_there_are_few),
        TEST(descriptors_that_are_unread),
        TEST(unread_answers_of_a_user),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

/* Attacks by rings: full ones, also of frames of a byte, ones whose answers nobody reads, and ones that are written
 * over. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/rings.h"
#include "tests/bench/bench.h"
#include "tests/bench/hostile/attack.h"

#define FLOODING     4
#define UNREAD       60
#define MEMORY_BYTES (4096 + 2 * LIMIT_RING_BYTES)
#define PINGS        64
#define POLL_MS      5

/* Uses the memory that has come with the answer to the latest request. */
static void rings_arrive(struct attacker *self, struct line *line, const struct message *message)
{
    struct rings *rings;
    int fd;
    (void)self;
    if (message->msgid != line->msgid || connection_pop_fds(line->connection, &fd, 1))
        return;
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    line->memory = memory == MAP_FAILED ? NULL : memory;
    if (connection_may_have_rings(line->connection) && rings_attach(fd, &rings) == 0)
        connection_use_rings(line->connection, rings);
    close(fd);
}

static void rings_close(struct line *line)
{
    if (line->memory)
        munmap((void *)line->memory, MEMORY_BYTES);
    line->memory = NULL;
    if (line->connection)
        line_close(line);
}

/* Makes a connection with rings. Without them it ends again, at the latest with the attacker's time. */
static bool rings_open(struct attacker *self, struct line *line)
{
    rings_close(line);
    if (!line_open(self, line))
        return false;
    line->answered = rings_arrive;
    line_ask(line, METHOD_rings_open, &msg_nothing_type, NULL, NULL, 0);
    while (line->waiting > 0 && bench_now_ms() < self->until_ms && line_turn(self, line))
        poll(&(struct pollfd){connection_fd(line->connection), POLLIN, 0}, 1, POLL_MS);
    return line->waiting == 0 && connection_has_rings(line->connection);
}

static void ask_pings(struct line *line)
{
    for (int i = 0; i < PINGS && !connection_is_clogged(line->connection); i++)
        line_ask(line, METHOD_server_ping, &msg_nothing_type, NULL, NULL, 0);
}

/* Never sleeps, and reads and writes memory alone. */
void attack_rings_flood(struct attacker *self)
{
    static struct line lines[FLOODING];
    while (bench_now_ms() < self->until_ms)
        for (int i = 0; i < FLOODING; i++) {
            if (!lines[i].connection && !rings_open(self, &lines[i]))
                continue;
            if (lines[i].waiting < 1000)
                ask_pings(&lines[i]);
            if (!line_turn(self, &lines[i]))
                rings_close(&lines[i]);
        }
    for (int i = 0; i < FLOODING; i++)
        rings_close(&lines[i]);
}

/* Pings that come by a ring whose memory is punched as often as possible. */
void attack_rings_mapped(struct attacker *self)
{
    struct line line = {0};
    bool punched = false;
    while (bench_now_ms() < self->until_ms) {
        if (!line.connection && !rings_open(self, &line))
            continue;
        if (!punched && line.memory)
            attack_map_and_punch((void *)line.memory, MEMORY_BYTES);
        punched = true;
        if (line.waiting < 1000)
            ask_pings(&line);
        if (line_turn(self, &line))
            continue;
        punched = false;
        rings_close(&line);
    }
    rings_close(&line);
}

void attack_rings_unread(struct attacker *self)
{
    static struct line lines[UNREAD];
    while (bench_now_ms() < self->until_ms) {
        for (int i = 0; i < UNREAD; i++) {
            struct line *line = &lines[i];
            if (!line->connection && !rings_open(self, line))
                continue;
            ask_pings(line);
            const int r = connection_flush(line->connection);
            if (r && r != -EAGAIN && r != -ETOOMANYREFS) {
                self->tally->closed++;
                rings_close(line);
            }
        }
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < UNREAD; i++)
        rings_close(&lines[i]);
}

/* The memory of a ring to the daemon, as PROTOCOL.md tells it. */
struct crumbs {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
};

/* Writes pings for as long as there is room, a byte in each frame; *next: the byte of a ping that comes next. A daemon
 * that sleeps is sent that byte. */
static void put_crumbs(const struct line *line, size_t *next)
{
    static const uint8_t ping[] = "\x94\x00\x01\xabserver.ping\x91\x80";
    struct crumbs *ring = (struct crumbs *)line->memory;
    uint8_t *bytes = (uint8_t *)line->memory + 4096;
    for (uint64_t at = ring->written / 2; at - ring->read + 8 <= LIMIT_RING_BYTES;) {
        const bool sleeps = ring->written & 1;
        const uint32_t word = sleeps ? UINT32_C(0x80000001) : 1;
        memcpy(bytes + at % LIMIT_RING_BYTES, &word, sizeof word);
        bytes[(at + 4) % LIMIT_RING_BYTES] = ping[*next];
        at += sleeps ? 4 : 8;
        ring->written = 2 * at;
        if (sleeps && send(connection_fd(line->connection), &ping[*next], 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
            return;
        *next = (*next + 1) % (sizeof ping - 1);
    }
}

void attack_rings_crumbs(struct attacker *self)
{
    static struct line lines[FLOODING];
    static size_t next[FLOODING];
    while (bench_now_ms() < self->until_ms)
        for (int i = 0; i < FLOODING; i++) {
            if (!lines[i].connection && !rings_open(self, &lines[i]))
                continue;
            if (!lines[i].memory)
                return;
            put_crumbs(&lines[i], &next[i]);
            if (line_turn(self, &lines[i]))
                continue;
            rings_close(&lines[i]);
            next[i] = 0;
        }
    for (int i = 0; i < FLOODING; i++)
        rings_close(&lines[i]);
}

/* Knuth's generator, of which the upper bits are used. */
static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 16 ^ *random << 48;
}

/* Any number at any place, most of them where the positions are. */
static void scribble(const struct line *line, uint64_t *random)
{
    uint8_t *memory = (uint8_t *)line->memory;
    const uint64_t dice = next(random), value = next(random) >> (dice >> 32) % 64;
    const size_t at = dice % 4 ? (dice >> 8) % 4 * 64 : (dice >> 8) % (MEMORY_BYTES / 8) * 8;
    *(volatile uint64_t *)(memory + at) = value;
}

void attack_rings_scribble(struct attacker *self)
{
    struct line line = {0};
    uint64_t random = 1;
    while (bench_now_ms() < self->until_ms) {
        if (!line.connection && !rings_open(self, &line))
            continue;
        ask_pings(&line);
        connection_flush(line.connection);
        if (line.memory)
            scribble(&line, &random);
        if (!line_turn(self, &line))
            rings_close(&line);
    }
    rings_close(&line);
}

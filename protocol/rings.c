#include "rings.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "limits.h"
#include "memory.h"
#include "status.h"

/* A frame begins with a word: how many bytes it has, or the socket brings. The next frame begins at the next word. */
#define WORD       sizeof(uint32_t)
#define BY_SOCKET  UINT32_C(0x80000000)
#define LINE_BYTES 64

/* Room that bytes leave for frames which tell of the socket. */
#define RESERVE_BYTES KIB(4)

/* The least of more bytes for which a frame is made: a reader that makes room byte by byte is not to have the writer
 * follow it. */
#define LEAST_BYTES 256

/* The positions of a ring: bytes since it was made, each in a line of the cache of its own. The writer's is doubled:
 * its lowest bit is set while the reader sleeps, so that either end sees at once what the other has done. */
struct positions {
    _Alignas(LINE_BYTES) _Atomic uint64_t written;
    _Alignas(LINE_BYTES) _Atomic uint64_t read;
};

/* What both ends map. The first end reads ring 0 and writes ring 1. */
struct shared {
    struct positions positions[2];
    _Alignas(4096) uint8_t bytes[2][LIMIT_RING_BYTES];
};
static_assert((LIMIT_RING_BYTES & (LIMIT_RING_BYTES - 1)) == 0 && LIMIT_RING_BYTES >= 4 * RESERVE_BYTES,
              "a power of two");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "no locks: the other process may stop at any time");

struct rings {
    struct shared *shared;
    struct {
        struct positions *positions;
        uint8_t *bytes;
        uint64_t at;      /* position up to which this end has read, */
        uint64_t frame;   /* bytes left of the frame there, */
        bool by_socket;   /* which the socket brings, */
        uint64_t padding; /* and what follows them up to the next word */
    } in;
    struct {
        struct positions *positions;
        uint8_t *bytes;
        uint64_t at; /* position up to which this end has written */
    } out;
};

static uint64_t rounded(uint64_t size)
{
    return (size + WORD - 1) / WORD * WORD;
}

static int rings_map(int fd, int first, struct rings **out)
{
    void *shared;
    struct rings *rings = calloc(1, sizeof *rings);
    if (!rings)
        return -ENOMEM;
    int code = memory_map(&fd, 1, sizeof(struct shared), sizeof(struct shared), &shared);
    if (code) {
        free(rings);
        return code;
    }
    rings->shared = shared;
    rings->in.positions = &rings->shared->positions[!first];
    rings->in.bytes = rings->shared->bytes[!first];
    rings->out.positions = &rings->shared->positions[first];
    rings->out.bytes = rings->shared->bytes[first];
    *out = rings;
    return 0;
}

int rings_create(struct rings **out, int *fd)
{
    int made = memory_create(sizeof(struct shared));
    if (made < 0)
        return made;
    int code = rings_map(made, 1, out);
    if (code)
        close(made);
    else
        *fd = made;
    return code;
}

int rings_attach(int fd, struct rings **out)
{
    struct error error;
    uint64_t missing_bytes;
    int code = memory_check(fd, sizeof(struct shared), &missing_bytes, &error);
    return code ? -EPROTO : rings_map(fd, 0, out);
}

void rings_destroy(struct rings *rings)
{
    if (!rings)
        return;
    memory_unmap(rings->shared, sizeof *rings->shared);
    free(rings);
}

void rings_wipe(struct rings *rings)
{
    madvise(rings->shared, sizeof *rings->shared, MADV_REMOVE);
}

/*
 * Writing.
 */

/* Sets *room to the bytes that are free. */
static int out_room(const struct rings *rings, uint64_t *room)
{
    const uint64_t read = atomic_load_explicit(&rings->out.positions->read, memory_order_acquire);
    const uint64_t used = rings->out.at - read;
    if (used > LIMIT_RING_BYTES)
        return -EPROTO;
    *room = LIMIT_RING_BYTES - used;
    return 0;
}

static void out_put_word(struct rings *rings, uint32_t word)
{
    memcpy(rings->out.bytes + rings->out.at % LIMIT_RING_BYTES, &word, sizeof word);
}

static void out_put_bytes(struct rings *rings, const uint8_t *bytes, size_t size)
{
    const size_t at = (rings->out.at + WORD) % LIMIT_RING_BYTES, end = LIMIT_RING_BYTES - at;
    const size_t first = size < end ? size : end;
    memcpy(rings->out.bytes + at, bytes, first);
    memcpy(rings->out.bytes, bytes + first, size - first);
}

bool rings_reader_sleeps(const struct rings *rings)
{
    return atomic_load_explicit(&rings->out.positions->written, memory_order_relaxed) & 1;
}

int rings_write(struct rings *rings, const uint8_t *bytes, size_t size)
{
    uint64_t room, expected = rings->out.at << 1;
    int code = out_room(rings, &room);
    if (code)
        return code;
    if (room <= RESERVE_BYTES || rings_reader_sleeps(rings))
        return 0;
    const uint64_t most = room - RESERVE_BYTES; /* the reserve has room for the word, too */
    if (most < size && most < LEAST_BYTES)
        return 0;
    const size_t taken = size < most ? size : most;
    out_put_word(rings, (uint32_t)taken);
    out_put_bytes(rings, bytes, taken);
    const uint64_t end = rings->out.at + WORD + rounded(taken);
    /* Nothing is told where the reader has gone to sleep meanwhile: what is written here is written over. */
    if (!atomic_compare_exchange_strong(&rings->out.positions->written, &expected, end << 1))
        return expected == (rings->out.at << 1 | 1) ? 0 : -EPROTO;
    rings->out.at = end;
    return (int)taken;
}

int rings_announce(struct rings *rings, size_t size)
{
    uint64_t room;
    int code = out_room(rings, &room);
    if (code)
        return code;
    if (room < WORD)
        return -EAGAIN;
    out_put_word(rings, BY_SOCKET | (uint32_t)size);
    const uint64_t before = rings->out.at;
    rings->out.at += WORD;
    /* The bytes that follow wake the reader, so it is taken to be awake. */
    const uint64_t found = atomic_exchange(&rings->out.positions->written, rings->out.at << 1);
    return found >> 1 == before ? 0 : -EPROTO;
}

/*
 * Reading.
 */

static uint64_t in_written(const struct rings *rings)
{
    return atomic_load_explicit(&rings->in.positions->written, memory_order_acquire) >> 1;
}

static uint32_t in_get_word(const struct rings *rings, uint64_t at)
{
    return *(volatile uint32_t *)(rings->in.bytes + at % LIMIT_RING_BYTES); /* read once */
}

/* Bytes of a ring's frame with this word, without the word; what the socket brings takes none. */
static uint64_t word_bytes(uint32_t word)
{
    return word & BY_SOCKET ? 0 : word;
}

/* Opens the next frame, of which all has arrived. Returns 1, 0 when there is none, or -EPROTO. */
static int in_open(struct rings *rings)
{
    const uint64_t arrived = in_written(rings) - rings->in.at;
    if (arrived == 0)
        return 0;
    if (arrived > LIMIT_RING_BYTES || arrived % WORD)
        return -EPROTO;
    const uint32_t word = in_get_word(rings, rings->in.at);
    const uint64_t size = word & ~BY_SOCKET;
    if (size == 0 || WORD + rounded(word_bytes(word)) > arrived || size > RINGS_SOCKET_BYTES)
        return -EPROTO;
    rings->in.at += WORD;
    rings->in.frame = size;
    rings->in.by_socket = word & BY_SOCKET;
    rings->in.padding = rounded(word_bytes(word)) - word_bytes(word);
    return 1;
}

static void in_copy(struct rings *rings, uint8_t *bytes, size_t size)
{
    const size_t at = rings->in.at % LIMIT_RING_BYTES, end = LIMIT_RING_BYTES - at;
    const size_t first = size < end ? size : end;
    memcpy(bytes, rings->in.bytes + at, first);
    memcpy(bytes + first, rings->in.bytes, size - first);
    rings->in.at += size;
    rings->in.frame -= size;
    if (rings->in.frame == 0)
        rings->in.at += rings->in.padding;
}

int rings_read(struct rings *rings, uint8_t *bytes, size_t size)
{
    const uint64_t before = rings->in.at;
    size_t taken = 0;
    int code = 1;
    for (int frames = 0; frames < RINGS_FRAMES && taken < size; frames++) {
        if (rings->in.frame == 0)
            code = in_open(rings);
        if (code <= 0 || rings->in.by_socket)
            break;
        const size_t left = size - taken, part = rings->in.frame < left ? rings->in.frame : left;
        in_copy(rings, bytes + taken, part);
        taken += part;
    }
    if (rings->in.at != before)
        atomic_store_explicit(&rings->in.positions->read, rings->in.at, memory_order_release);
    return code < 0 ? code : (int)taken;
}

size_t rings_due_bytes(const struct rings *rings)
{
    return rings->in.by_socket ? rings->in.frame : 0;
}

void rings_took(struct rings *rings, size_t size)
{
    rings->in.frame -= size;
    if (rings->in.frame == 0)
        rings->in.by_socket = false;
}

bool rings_is_ready(const struct rings *rings)
{
    if (rings->in.frame > 0)
        return !rings->in.by_socket;
    return in_written(rings) != rings->in.at;
}

uint64_t rings_unread_bytes(const struct rings *rings)
{
    uint64_t at = rings->in.at, bytes = 0;
    if (rings->in.frame > 0 && !rings->in.by_socket) {
        bytes = rings->in.frame;
        at += rings->in.frame + rings->in.padding;
    }
    const uint64_t end = in_written(rings);
    while (end - at >= WORD && end - at <= LIMIT_RING_BYTES) {
        const uint64_t size = word_bytes(in_get_word(rings, at));
        bytes += size;
        at += WORD + rounded(size);
    }
    return bytes;
}

bool rings_sleep(struct rings *rings)
{
    if (rings->in.frame > 0)
        return rings->in.by_socket;
    uint64_t expected = rings->in.at << 1;
    return atomic_compare_exchange_strong(&rings->in.positions->written, &expected, expected | 1) ||
           expected == (rings->in.at << 1 | 1);
}

void rings_rise(struct rings *rings)
{
    atomic_fetch_and(&rings->in.positions->written, ~UINT64_C(1));
}

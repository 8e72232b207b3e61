#include "import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "protocol/memory.h"

/* Bytes that descriptor i must hold: the last one perhaps less than a segment. */
static uint64_t segment_share(const struct buffer *buffer, size_t i)
{
    uint64_t before = i * buffer->segment_bytes, left = buffer->span.size_bytes - before;
    return left < buffer->segment_bytes ? left : buffer->segment_bytes;
}

/* Whole pages; the last piece may be shorter than the others. */
static uint64_t piece_size_bytes(const struct buffer *buffer, size_t piece)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = (buffer->span.size_bytes + page - 1) / page * page;
    uint64_t left = end - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static void *piece_base(const struct buffer *buffer, size_t piece)
{
    return (unsigned char *)buffer->span.base + piece * PIECE_BYTES;
}

int buffer_pin(const struct buffer *buffer, size_t piece, const struct device_set *devices)
{
    return device_set_attach(devices, piece_base(buffer, piece), piece_size_bytes(buffer, piece));
}

static int pin_first(struct buffer *buffer, const struct device_set *devices)
{
    size_t piece;
    int r = pieces_init(&buffer->pieces, buffer->span.size_bytes);
    if (r || !pieces_begin(&buffer->pieces, &piece))
        return r;
    r = buffer_pin(buffer, piece, devices);
    if (!r)
        pieces_note(&buffer->pieces, piece);
    return r;
}

/* What cannot be pinned is staged, unless nothing works any more. */
static int pin_or_stage(struct buffer *buffer, const struct device_set *devices, struct error *error)
{
    int r = buffer->pinned_bytes ? pin_first(buffer, devices) : -EDQUOT;
    buffer->span.piece_bytes = PIECE_BYTES;
    buffer->span.staged = r != 0;
    if (r != -EOWNERDEAD)
        return 0;
    return error_set(error, r, "buffer.import: could not pin %" PRIu64 " bytes: %s; the daemon's worker starts anew",
                     buffer->span.size_bytes, strerror(-r));
}

/* Checks all descriptors before any page is made, and that there is room for all that are missing. */
static int import_check(struct buffer *buffer, struct room *room, struct error *error)
{
    uint64_t missing_bytes, all_bytes = 0;
    for (size_t i = 0; i < buffer->fd_count; i++) {
        int r = memory_check(buffer->fds[i], segment_share(buffer, i), &missing_bytes, error);
        if (r)
            return r;
        all_bytes += missing_bytes;
    }
    int r = files_init(&buffer->files, buffer->fds, buffer->fd_count, buffer->segment_bytes, error);
    if (!r && all_bytes > 0)
        r = room_promise(room, all_bytes, "buffer.import", error);
    if (r)
        return r;
    buffer->promised_bytes = all_bytes;
    buffer->filled_bytes = all_bytes > 0 ? 0 : buffer->span.size_bytes;
    buffer->checked = true;
    return 0;
}

static void settle(struct buffer *buffer, struct room *room, uint64_t bytes)
{
    if (bytes > buffer->promised_bytes)
        bytes = buffer->promised_bytes;
    buffer->promised_bytes -= bytes;
    room_settle(room, bytes);
}

/* Gives pages to what comes next, up to a unit of one descriptor. What has its pages already is passed over, or looked
 * through at least as fast. */
static int import_fill(struct buffer *buffer, struct room *room, struct error *error)
{
    size_t i = buffer->filled_bytes / buffer->segment_bytes;
    uint64_t offset = buffer->filled_bytes % buffer->segment_bytes, left = segment_share(buffer, i) - offset;
    uint64_t bytes = left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES, missing_bytes;
    int r = offset == 0 ? memory_check(buffer->fds[i], segment_share(buffer, i), &missing_bytes, error) : 0;
    if (!r && offset == 0 && missing_bytes == 0) {
        buffer->filled_bytes += left;
        return 0;
    }
    if (r)
        return r;
    r = memory_fill(buffer->fds[i], offset, bytes);
    if (r)
        return error_set(error, r, "buffer.import: no memory for the %" PRIu64 " bytes of the memfd: %s; import less",
                         segment_share(buffer, i), strerror(-r));
    settle(buffer, room, bytes);
    buffer->filled_bytes += bytes;
    return 0;
}

static void close_fds(struct buffer *buffer)
{
    for (size_t i = 0; i < buffer->fd_count; i++)
        close(buffer->fds[i]);
    buffer->fd_count = 0;
}

static int import_map(struct buffer *buffer, const struct device_set *devices, struct error *error)
{
    int r =
        memory_map(buffer->fds, buffer->fd_count, buffer->segment_bytes, buffer->span.size_bytes, &buffer->span.base);
    close_fds(buffer);
    if (r)
        return error_set(error, r, "buffer.import: could not map the memory: %s", strerror(-r));
    return pin_or_stage(buffer, devices, error);
}

int import_prepare(struct buffer *buffer, struct pool *pool, struct error *error)
{
    uint64_t begun_bytes = buffer->filled_bytes;
    int r = 0;
    if (!buffer->checked) {
        r = import_check(buffer, &pool->room, error);
        begun_bytes = buffer->filled_bytes;
    }
    if (!r && buffer->promised_bytes > 0) {
        uint64_t next_bytes = buffer->promised_bytes < LIMIT_UNIT_BYTES ? buffer->promised_bytes : LIMIT_UNIT_BYTES;
        r = room_check(&pool->room, next_bytes, "buffer.import", error);
    }
    while (!r && buffer->filled_bytes < buffer->span.size_bytes) {
        if (buffer->filled_bytes - begun_bytes >= LIMIT_UNIT_BYTES)
            return 1;
        r = import_fill(buffer, &pool->room, error);
    }
    if (!r && buffer->filled_bytes - begun_bytes >= LIMIT_UNIT_BYTES)
        return 1;
    settle(buffer, &pool->room, buffer->promised_bytes);
    return r ? r : import_map(buffer, pool->devices, error);
}

/* Lets go of the next piece of the mapping. */
static void unmap_piece(struct buffer *buffer, const struct device_set *devices)
{
    size_t piece = buffer->unmapped_bytes / PIECE_BYTES;
    uint64_t size_bytes = piece_size_bytes(buffer, piece);
    if (piece < buffer->pieces.count && pieces_is_pinned(&buffer->pieces, piece))
        device_set_detach(devices, piece_base(buffer, piece), size_bytes);
    memory_unmap(piece_base(buffer, piece), size_bytes);
    buffer->unmapped_bytes += size_bytes;
}

bool import_dismantle(struct buffer *buffer, struct pool *pool)
{
    settle(buffer, &pool->room, buffer->promised_bytes);
    close_fds(buffer);
    if (buffer->span.base && buffer->unmapped_bytes < buffer->span.size_bytes)
        unmap_piece(buffer, pool->devices);
    if (buffer->span.base && buffer->unmapped_bytes < buffer->span.size_bytes)
        return true;
    pieces_finish(&buffer->pieces);
    return false;
}

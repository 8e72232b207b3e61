#include "import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "protocol/memory.h"

/* Returns the bytes that descriptor i must hold: the last one perhaps less than a segment. */
static uint64_t segment_bytes_used(const struct buffer *buffer, size_t i)
{
    uint64_t before = i * buffer->segment_bytes, left = buffer->span.size_bytes - before;
    return left < buffer->segment_bytes ? left : buffer->segment_bytes;
}

/* Returns the size of a unit: whole pages; the last unit may be shorter than the others. */
static uint64_t unit_size_bytes(const struct buffer *buffer, size_t unit)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = (buffer->span.size_bytes + page - 1) / page * page;
    uint64_t left = end - unit * PIN_UNIT_BYTES;
    return left < PIN_UNIT_BYTES ? left : PIN_UNIT_BYTES;
}

static void *unit_base(const struct buffer *buffer, size_t unit)
{
    return (unsigned char *)buffer->span.base + unit * PIN_UNIT_BYTES;
}

int buffer_pin(const struct buffer *buffer, size_t unit, const struct device_set *devices)
{
    return device_set_pin(devices, unit_base(buffer, unit), unit_size_bytes(buffer, unit));
}

static int pin_first(struct buffer *buffer, const struct device_set *devices)
{
    size_t unit;
    int r = pin_units_init(&buffer->pin_units, buffer->span.size_bytes);
    if (r || !pin_units_begin(&buffer->pin_units, 1, &unit))
        return r;
    r = buffer_pin(buffer, unit, devices);
    if (!r)
        pin_units_note(&buffer->pin_units, unit);
    return r;
}

/* Pins memory, or stages what cannot be pinned, unless the device is lost. */
static int pin_or_stage(struct buffer *buffer, const struct device_set *devices, struct error *error)
{
    int r = buffer->pinned_bytes ? pin_first(buffer, devices) : -EDQUOT;
    buffer->span.pin_unit_bytes = PIN_UNIT_BYTES;
    buffer->span.staged = r != 0;
    if (r != -EOWNERDEAD)
        return 0;
    return error_set(error, r, "buffer.import: could not pin %" PRIu64 " bytes: %s; the daemon's worker starts anew",
                     buffer->span.size_bytes, strerror(-r));
}

void import_look(struct buffer *buffer)
{
    buffer->complete = true;
    for (size_t i = 0; i < buffer->fd_count; i++) {
        buffer->file_bytes += memory_file_bytes(buffer->fds[i]);
        buffer->complete = buffer->complete && memory_is_complete(buffer->fds[i], segment_bytes_used(buffer, i));
    }
}

/* Looks at the files once more, which are sealed by now, so they grow no more. Their clients may free all their pages
 * at once, also where little is imported, and whoever touches one meanwhile waits for the end of that. */
static int check_size(struct buffer *buffer, struct error *error)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < buffer->fd_count; i++)
        bytes += memory_file_bytes(buffer->fds[i]);
    buffer->span.large = bytes > LIMIT_TOUCHED_BYTES;
    if (bytes <= buffer->file_bytes)
        return 0;
    return error_set(error, -EBADF,
                     "buffer.import: the memfds have %" PRIu64 " bytes, and had %" PRIu64
                     " when they came; import them when they have their size",
                     bytes, buffer->file_bytes);
}

/* Checks all descriptors before any page is made, and that there is room for all that are missing. */
static int import_check(struct buffer *buffer, struct page_budget *budget, struct error *error)
{
    uint64_t missing_bytes, all_bytes = 0;
    for (size_t i = 0; i < buffer->fd_count; i++) {
        int r = memory_check(buffer->fds[i], segment_bytes_used(buffer, i), &missing_bytes, error);
        if (r)
            return r;
        all_bytes += missing_bytes;
    }
    int r = check_size(buffer, error);
    if (r)
        return r;
    if (buffer->complete) /* if the client has punched holes since, it takes the risk, as it does later */
        all_bytes = 0;
    r = files_init(&buffer->files, buffer->fds, buffer->fd_count, buffer->segment_bytes, error);
    if (!r && all_bytes > 0)
        r = page_budget_promise(budget, all_bytes, "buffer.import", error);
    if (r)
        return r;
    buffer->promised_bytes = all_bytes;
    buffer->filled_bytes = all_bytes > 0 ? 0 : buffer->span.size_bytes;
    buffer->checked = true;
    return 0;
}

static void settle(struct buffer *buffer, struct page_budget *budget, uint64_t bytes)
{
    if (bytes > buffer->promised_bytes)
        bytes = buffer->promised_bytes;
    buffer->promised_bytes -= bytes;
    page_budget_settle(budget, bytes);
}

/* Gives pages to what comes next, up to a unit of one descriptor. What has its pages already is passed over, or looked
 * through at least as fast. */
static int import_fill(struct buffer *buffer, struct page_budget *budget, struct error *error)
{
    size_t i = buffer->filled_bytes / buffer->segment_bytes;
    uint64_t offset = buffer->filled_bytes % buffer->segment_bytes, left = segment_bytes_used(buffer, i) - offset;
    uint64_t bytes = left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES, missing_bytes;
    int r = offset == 0 ? memory_check(buffer->fds[i], segment_bytes_used(buffer, i), &missing_bytes, error) : 0;
    if (!r && offset == 0 && missing_bytes == 0) {
        buffer->filled_bytes += left;
        return 0;
    }
    if (r)
        return r;
    r = memory_fill(buffer->fds[i], offset, bytes);
    if (r)
        return error_set(error, r, "buffer.import: no memory for the %" PRIu64 " bytes of the memfd: %s; import less",
                         segment_bytes_used(buffer, i), strerror(-r));
    settle(buffer, budget, bytes);
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

/* A unit of checking the memory and giving it pages. */
static int import_complete(struct buffer *buffer, struct pool *pool, struct error *error)
{
    uint64_t begun_bytes = buffer->filled_bytes;
    int r = 0;
    if (!buffer->checked) {
        r = import_check(buffer, &pool->page_budget, error);
        begun_bytes = buffer->filled_bytes;
    }
    if (!r && buffer->promised_bytes > 0) {
        uint64_t next_bytes = buffer->promised_bytes < LIMIT_UNIT_BYTES ? buffer->promised_bytes : LIMIT_UNIT_BYTES;
        r = page_budget_check(&pool->page_budget, next_bytes, "buffer.import", error);
    }
    while (!r && buffer->filled_bytes < buffer->span.size_bytes) {
        if (buffer->filled_bytes - begun_bytes >= LIMIT_UNIT_BYTES)
            return PREPARE_MORE;
        r = import_fill(buffer, &pool->page_budget, error);
    }
    if (!r && buffer->filled_bytes - begun_bytes >= LIMIT_UNIT_BYTES)
        return PREPARE_MORE;
    settle(buffer, &pool->page_budget, buffer->promised_bytes);
    return r;
}

int import_prepare(struct buffer *buffer, struct pool *pool, struct error *error)
{
    const bool was_complete = buffer->complete;
    const int r = was_complete && buffer->checked ? 0 : import_complete(buffer, pool, error);
    if (r)
        return r;
    buffer->complete = true;
    return was_complete ? import_map(buffer, pool->devices, error) : PREPARE_BY_HELPER;
}

/* Lets go of the next unit of the mapping. */
static void unmap_unit(struct buffer *buffer, const struct device_set *devices)
{
    size_t unit = buffer->unmapped_bytes / PIN_UNIT_BYTES;
    uint64_t size_bytes = unit_size_bytes(buffer, unit);
    if (unit < buffer->pin_units.count && pin_units_is_pinned(&buffer->pin_units, unit))
        device_set_unpin(devices, unit_base(buffer, unit), size_bytes);
    memory_unmap(unit_base(buffer, unit), size_bytes);
    buffer->unmapped_bytes += size_bytes;
}

bool import_dismantle(struct buffer *buffer, struct pool *pool)
{
    settle(buffer, &pool->page_budget, buffer->promised_bytes);
    if (buffer->span.base && buffer->unmapped_bytes < buffer->span.size_bytes)
        unmap_unit(buffer, pool->devices);
    if (buffer->span.base && buffer->unmapped_bytes < buffer->span.size_bytes)
        return true;
    pin_units_finish(&buffer->pin_units);
    return false;
}

#include "buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_import.h"
#include "import.h"

static int buffer_create(enum buffer_source source, uint64_t size_bytes, struct user *user, struct buffer **out,
                         struct error *error)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return error_set(error, -ENOMEM, "out of memory for another buffer; try again later");
    buffer->source = source;
    user_hold(user);
    buffer->user = user;
    buffer->holds = 1;
    buffer->span.place = source >= BUFFER_DEVICE ? SCAND_PLACE_DEVICE : SCAND_PLACE_HOST;
    buffer->ticket.fd = -1;
    buffer->span.size_bytes = size_bytes;
    buffer->span.pin_unit_bytes = size_bytes;
    *out = buffer;
    return 0;
}

/* Refuses a buffer to a user who has what it may of the pool; memory that the user gives back is there again. */
static int stock_refuses(const struct pool *pool, uint64_t size_bytes, const struct user *user, struct error *error)
{
    const struct pool_account *account = &user->pool;
    const uint64_t allowed = stock_allowed(&pool->bytes, account->bytes), cost = pool_cost_bytes(pool, size_bytes);
    if (account->bytes + cost > allowed)
        return error_set(error, -EAGAIN,
                         "buffer.create: user %u has %" PRIu64 " bytes of the pool and asks for %" PRIu64
                         " more; of %" PRIu64 " it may have %" PRIu64
                         ", seven eighths of what others leave; release buffers, try again, or start scand with a "
                         "larger --pool",
                         (unsigned)user->uid, account->bytes, cost, pool->bytes.most, allowed);
    return error_set(error, -EAGAIN,
                     "buffer.create: user %u has %" PRIu64 " buffers of less than %" PRIu64 " bytes; of %" PRIu64
                     " it may have %" PRIu64
                     ", seven eighths of what others leave; release some, or use fewer, larger ones",
                     (unsigned)user->uid, account->files, LIMIT_LARGE_SEGMENT_BYTES / 2, pool->files.most,
                     stock_allowed(&pool->files, account->files));
}

int buffer_create_host(struct pool *pool, uint64_t size_bytes, struct user *user, struct buffer **out,
                       struct error *error)
{
    struct pool_run run;
    struct buffer *buffer = NULL;
    int r = pool_reserve(pool, size_bytes, user->uid, &user->pool, &run);
    if (r == -EBUSY)
        return stock_refuses(pool, size_bytes, user, error);
    if (r == -EAGAIN)
        return error_set(error, r,
                         "buffer.create: no %" PRIu64 " free bytes side by side in the pool of %" PRIu64
                         "; release buffers, try again, or start scand with a larger --pool",
                         size_bytes, pool_size_bytes(pool));
    if (r)
        return error_set(error, r,
                         "buffer.create: \"size\" is %" PRIu64 " bytes; the pool has %" PRIu64
                         " and a host buffer at most %" PRIu64
                         "; start scand with a larger --pool, or import memory of your own",
                         size_bytes, pool_size_bytes(pool), pool_largest_bytes(pool));
    r = buffer_create(BUFFER_POOL, size_bytes, user, &buffer, error);
    if (r) {
        pool_give_back(pool, &run, &user->pool);
        return r;
    }
    buffer->run = run;
    *out = buffer;
    return 0;
}

int buffer_create_device(struct device *device, uint64_t size_bytes, enum scand_sharing sharing, struct user *user,
                         struct buffer **out, struct error *error)
{
    int r = buffer_create(sharing ? BUFFER_EXPORTABLE : BUFFER_DEVICE, size_bytes, user, out, error);
    if (r)
        return r;
    (*out)->device = device;
    (*out)->sharing = sharing;
    return 0;
}

static void close_fds(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

int buffer_create_import(const int *fds, size_t count, uint64_t segment_bytes, uint64_t size_bytes, struct user *user,
                         struct buffer **out, struct error *error)
{
    struct buffer *buffer = NULL;
    int r = buffer_create(BUFFER_IMPORT, size_bytes, user, &buffer, error);
    if (r) {
        close_fds(fds, count);
        return r;
    }
    for (size_t i = 0; i < count; i++)
        buffer->fds[i] = fds[i];
    buffer->fd_count = count;
    buffer->segment_bytes = segment_bytes;
    *out = buffer;
    return 0;
}

int buffer_create_file(int fd, uint64_t size_bytes, struct user *user, struct buffer **out, struct error *error)
{
    int r = buffer_create(BUFFER_FILE, size_bytes, user, out, error);
    if (r) {
        close(fd);
        return r;
    }
    (*out)->fds[0] = fd;
    (*out)->fd_count = 1;
    return 0;
}

int buffer_create_foreign(const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes, struct user *user,
                          struct buffer **out, struct error *error)
{
    int r = buffer_create(BUFFER_FOREIGN, size_bytes, user, out, error);
    if (r) {
        if (ticket->fd >= 0)
            close(ticket->fd);
        return r;
    }
    (*out)->ticket = *ticket;
    (*out)->offset = offset;
    return 0;
}

uint64_t buffer_cost_bytes(const struct buffer *buffer)
{
    uint64_t size_bytes = buffer->span.size_bytes, unit = LIMIT_SHARED_UNIT_BYTES;
    switch (buffer->source) {
    case BUFFER_POOL:
        return buffer->run.count * buffer->run.class->segment_bytes;
    case BUFFER_EXPORTABLE:
        return (size_bytes + unit - 1) / unit * unit;
    case BUFFER_IMPORT: /* what its client can free at once counts, too, unless it is little */
        return buffer->file_bytes > size_bytes + LIMIT_TOUCHED_BYTES ? buffer->file_bytes : size_bytes;
    case BUFFER_FILE:
    case BUFFER_FOREIGN:
        return 0;
    default:
        return size_bytes;
    }
}

/* Makes the list of the files of memory from the pool; an import has one since it was prepared. */
static int know_files(struct buffer *buffer)
{
    struct error error;
    const struct pool_run *run = &buffer->run;
    if (buffer->source != BUFFER_POOL || buffer->files.files)
        return 0;
    struct file *list = calloc(run->count, sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < run->count; i++) {
        list[i] = run_segment(run, i)->file;
        list[i].index = i;
    }
    return files_own(&buffer->files, list, run->count, run->class->segment_bytes, &error);
}

static bool is_the_daemons(const struct buffer *buffer)
{
    return buffer->source != BUFFER_IMPORT && buffer->source != BUFFER_FILE;
}

int buffer_note_alias(struct buffer *buffer, struct buffer *other)
{
    if ((is_the_daemons(buffer) && is_the_daemons(other)) || (buffer->aliased && other->aliased))
        return 0; /* no memory of the pool is in two buffers */
    if (know_files(buffer) || know_files(other))
        return -ENOMEM;
    if (files_share(&buffer->files, &other->files))
        buffer->aliased = other->aliased = true;
    return 0;
}

bool buffer_prepares_fast(const struct buffer *buffer)
{
    return buffer->source == BUFFER_POOL && !pool_needs_renewal(&buffer->run, buffer->user->uid);
}

bool buffer_lasts(const struct buffer *buffer)
{
    return buffer->span.place == SCAND_PLACE_DEVICE ||
           (buffer->source == BUFFER_IMPORT && buffer->span.size_bytes > LIMIT_LARGE_SEGMENT_BYTES);
}

bool buffer_dismantles_fast(const struct buffer *buffer)
{
    return buffer->source == BUFFER_POOL || buffer->source == BUFFER_FILE || !buffer->span.base;
}

static int prepare_pool(struct buffer *buffer, struct pool *pool, struct error *error)
{
    if (pool_needs_renewal(&buffer->run, buffer->user->uid)) {
        int r = pool_renew(pool, &buffer->run, buffer->user->uid);
        if (r > 0)
            return PREPARE_MORE;
        if (pool->of_program && (r == -EMFILE || r == -ENFILE))
            return error_set(error, -EBADF, "buffer.create: %s%s", strerror(-r), errno_advice(-r));
        if (r == -EMFILE || r == -ENFILE)
            return error_set(
                error, -EAGAIN,
                "buffer.create: the daemon has as many files open as it may: %s; try again later, or raise "
                "its limit (ulimit -n)",
                strerror(-r));
        if (r)
            return error_set(error, r, "buffer.create: could not make new memory: %s; try again later", strerror(-r));
    }
    pool_assign(&buffer->run, buffer->user->uid);
    buffer->span.base = pool_run_base(&buffer->run);
    buffer->span.pin_unit_bytes = buffer->run.class->segment_bytes;
    buffer->span.large = buffer->run.count * buffer->run.class->segment_bytes > LIMIT_TOUCHED_BYTES;
    return 0;
}

bool buffer_is_ready(struct buffer *buffer, struct extent extent)
{
    return !buffer_is_partial(buffer) || pin_units_cover(&buffer->pin_units, extent);
}

/* Sets the error that says why the device did not give `size_bytes`. */
static int device_refuses(int code, uint64_t size_bytes, struct device *device, struct error *error)
{
    if (code == -ENOMEM)
        return error_set(error, code,
                         "buffer.create: no %" PRIu64 " bytes of device memory: the device has no more to give; "
                         "release buffers, or end other programs that use it",
                         size_bytes);
    return error_set(error, code,
                     "buffer.create: no %" PRIu64 " bytes of device memory: %" PRIu64 " of %" PRIu64
                     " that scand may take are taken; %sstart scand with a larger --device-memory",
                     size_bytes, device->ops->memory_used_bytes(device), device->info.memory_limit_bytes,
                     size_bytes > device->info.memory_limit_bytes ? "" : "release buffers, or ");
}

static int prepare_device(struct buffer *buffer, struct error *error)
{
    struct device *device = buffer->device;
    int r = device->ops->allocate(device, buffer->span.size_bytes, &buffer->span.base);
    return r ? device_refuses(r, buffer->span.size_bytes, device, error) : 0;
}

static int prepare_exportable(struct buffer *buffer, struct error *error)
{
    struct device *device = buffer->device;
    uint64_t size_bytes = buffer_cost_bytes(buffer);
    int r = device->ops->export_create(device, size_bytes, buffer->sharing, &buffer->exported);
    if (r == -EOPNOTSUPP)
        return error_set(error, r,
                         "buffer.create: \"sharing\" is \"%s\", but this daemon's device cannot share memory so; leave "
                         "\"sharing\" out, or use a daemon started with --device cuda",
                         sharing_words.words[buffer->sharing]);
    if (r)
        return device_refuses(r, size_bytes, device, error);
    buffer->span.base = buffer->exported->base;
    return 0;
}

/* Adds to an error which of several devices it was that failed. */
static int error_of_device(struct error *error, const struct device *device)
{
    const struct error said = *error;
    return error_set(error, said.code, "%s (device %u, %s)", said.message, device->number, device->info.name);
}

/* The memory says whose it is only when it is opened. */
static int prepare_foreign(struct buffer *buffer, const struct device_set *devices, struct error *error)
{
    int r = -ENODEV;
    for (unsigned i = 0; i < devices->count && r == -ENODEV; i++) {
        struct device *device = devices->devices[i];
        if (device->info.helps)
            continue;
        r = device->ops->export_open(device, &buffer->ticket, buffer->offset, buffer->span.size_bytes,
                                     &buffer->exported, error);
        buffer->device = device;
    }
    if (r == -ENODEV)
        return error_set(error, -EINVAL,
                         "buffer.import_device: the memory is that of another GPU than this daemon's; start scand with "
                         "--device all");
    if (r)
        return devices->count > 1 ? error_of_device(error, buffer->device) : r;
    buffer->span.base = buffer->exported->base;
    return 0;
}

int buffer_prepare(struct buffer *buffer, struct pool *pool, struct error *error)
{
    switch (buffer->source) {
    case BUFFER_POOL:
        return prepare_pool(buffer, pool, error);
    case BUFFER_IMPORT:
        return import_prepare(buffer, pool, error);
    case BUFFER_FILE:
        return file_prepare(buffer, error);
    case BUFFER_DEVICE:
        return prepare_device(buffer, error);
    case BUFFER_EXPORTABLE:
        return prepare_exportable(buffer, error);
    case BUFFER_FOREIGN:
        return prepare_foreign(buffer, pool->devices, error);
    }
    return -ENOTRECOVERABLE;
}

bool buffer_dismantle(struct buffer *buffer, struct pool *pool)
{
    if (buffer->source == BUFFER_IMPORT && import_dismantle(buffer, pool))
        return true;
    if (buffer->source == BUFFER_DEVICE && buffer->span.base)
        buffer->device->ops->free(buffer->device, buffer->span.base, buffer->span.size_bytes);
    else if (buffer->exported)
        buffer->device->ops->export_close(buffer->device, buffer->exported);
    buffer->exported = NULL;
    buffer->span.base = NULL;
    return false;
}

void buffer_destroy(struct buffer *buffer, struct pool *pool)
{
    if (buffer->source == BUFFER_POOL)
        pool_give_back(pool, &buffer->run, &buffer->user->pool);
    files_finish(&buffer->files);
    user_unhold(buffer->user);
    free(buffer);
}

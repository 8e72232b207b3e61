#include "pool_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/available.h"
#include "protocol/memory.h"
#include "protocol/own_descriptors.h"
#include "protocol/status.h"
#include "provision.h"

/* Checks that the system has the memory and descriptors that the pool is to take. */
static int check_means(uint64_t pool_bytes, size_t count, struct error *error)
{
    const char *limit;
    uint64_t available_bytes = memory_available_below("", &limit);
    int r = provision_memory(pool_bytes, available_bytes, limit, error);
    if (r)
        return r;
    return provision_files(descriptors_count(), count, own_descriptors_limit(), error);
}

/* Makes new memory for a segment; should that fail, a worker makes some when it needs the segment. */
static int renew(struct pool_store *store, size_t index)
{
    struct stat status;
    struct pool_record *record = &store->records[index];
    int fd = memory_create_sparse(pool_ready_segment_bytes(store->pool_bytes, index));
    bool known = fd >= 0 && fstat(fd, &status) == 0;
    atomic_store(&record->user, POOL_NOBODY);
    atomic_store(&record->taken, false);
    atomic_store(&record->released, false);
    atomic_store(&record->inode, known ? status.st_ino : 0);
    store->fds[index] = fd;
    return fd < 0 ? fd : 0;
}

static int fill(struct pool_store *store, struct error *error)
{
    int r = 0;
    for (size_t i = 0; i < store->count; i++)
        store->fds[i] = -1;
    for (size_t i = 0; i < store->count && !r; i++)
        r = renew(store, i);
    if (r)
        error_set(error, r, "could not make a pool of %llu MiB: %s; %s", (unsigned long long)(store->pool_bytes >> 20),
                  strerror(-r),
                  r == -EFBIG ? "the limit of files' sizes holds for it: raise that (ulimit -f, LimitFSIZE=)"
                              : "choose a smaller --pool");
    return r;
}

int pool_store_create(struct pool_store *store, uint64_t pool_bytes, struct error *error)
{
    const size_t count = pool_ready_for(pool_bytes);
    int r = check_means(pool_bytes, count, error);
    *store = (struct pool_store){.pool_bytes = pool_bytes};
    if (r || count == 0)
        return r;
    int *fds = calloc(count, sizeof *fds);
    void *records =
        mmap(NULL, count * sizeof *store->records, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!fds || records == MAP_FAILED) {
        free(fds);
        return error_set(error, -ENOMEM, "out of memory for the pool's records; choose a smaller --pool");
    }
    *store = (struct pool_store){pool_bytes, count, fds, records};
    r = fill(store, error);
    if (r)
        pool_store_destroy(store);
    return r;
}

void pool_store_replace(struct pool_store *store, size_t index, int fd)
{
    if (index >= store->count) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (store->fds[index] >= 0)
        close(store->fds[index]);
    store->fds[index] = fd;
}

/* True when the record describes this memory, and no client of the worker that ended can still use it. */
static bool is_free(const struct pool_store *store, size_t index)
{
    struct stat status;
    const struct pool_record *record = &store->records[index];
    if (store->fds[index] < 0 || fstat(store->fds[index], &status) || status.st_ino != atomic_load(&record->inode))
        return false;
    return !atomic_load(&record->taken) || atomic_load(&record->user) == POOL_NOBODY;
}

size_t pool_store_settle(struct pool_store *store)
{
    size_t renewed = 0;
    for (size_t i = 0; i < store->count; i++) {
        if (is_free(store, i)) {
            atomic_store(&store->records[i].taken, false);
            continue;
        }
        pool_store_replace(store, i, -1);
        renew(store, i);
        renewed++;
    }
    return renewed;
}

void pool_store_destroy(struct pool_store *store)
{
    for (size_t i = 0; i < store->count; i++)
        pool_store_replace(store, i, -1);
    free(store->fds);
    if (store->records)
        munmap(store->records, store->count * sizeof *store->records);
    *store = (struct pool_store){0};
}

#include "client/python/allocator.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    PAGE_BYTES = 4096,
    BLOCKS_MOST = 4096, /* and no more than half of the descriptors that a process may have */
};
#define LARGE_BYTES (UINT64_C(1) << 20) /* arrays from here on have a block */
#define SIZE_MOST   (SIZE_MAX / 4)      /* more than there are addresses */
#define KEPT_BYTES  (UINT64_C(1) << 30) /* memory of blocks that no array uses */
/* Up to here all pages are made at once: programs use what they ask for. */
#define POPULATED_BYTES (UINT64_C(256) << 20)

struct block {
    uint64_t serial;
    uint8_t *data;
    uint64_t size_bytes;
    int fd;
    bool used, retired;
};

/* Blocks in the order of their addresses. */
static struct {
    pthread_mutex_t lock;
    struct block blocks[BLOCKS_MOST];
    size_t count;
    uint64_t kept_bytes, serial, drops;
} arrays = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns how many blocks begin at or before this address. */
static size_t count_until(uint64_t address)
{
    size_t first = 0, last = arrays.count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if ((uint64_t)(uintptr_t)arrays.blocks[middle].data <= address)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

/* The block that has this byte, or NULL. */
static struct block *block_at(const void *memory)
{
    uint64_t address = (uint64_t)(uintptr_t)memory;
    size_t until = count_until(address);
    struct block *block = &arrays.blocks[until - (until > 0)];
    return until > 0 && address - (uint64_t)(uintptr_t)block->data < block->size_bytes ? block : NULL;
}

static struct block *block_of(uint64_t serial)
{
    for (size_t i = 0; i < arrays.count; i++)
        if (arrays.blocks[i].serial == serial)
            return &arrays.blocks[i];
    return NULL;
}

/* Takes a block that nobody uses out of the list; its memory is to be unmapped then. */
static struct block block_pop(struct block *block)
{
    struct block popped = *block;
    size_t at = (size_t)(block - arrays.blocks);
    memmove(block, block + 1, (--arrays.count - at) * sizeof *block);
    arrays.drops++;
    return popped;
}

static void block_unmap(const struct block *block)
{
    munmap(block->data, block->size_bytes);
    close(block->fd);
}

/* The kept block that fits best: none of more than twice the size. */
static struct block *kept_for(uint64_t size_bytes)
{
    struct block *best = NULL;
    for (struct block *block = arrays.blocks; block < arrays.blocks + arrays.count; block++)
        if (!block->used && block->size_bytes >= size_bytes && block->size_bytes / 2 <= size_bytes &&
            (!best || block->size_bytes < best->size_bytes))
            best = block;
    return best;
}

/* Rounds up by an eighth at most, so that arrays of nearly one size can have each other's memory. */
static uint64_t rounded(uint64_t size_bytes)
{
    uint64_t unit = PAGE_BYTES;
    while (unit < size_bytes / 16)
        unit *= 2;
    return (size_bytes + unit - 1) / unit * unit;
}

static int block_map(struct block *block, uint64_t size_bytes)
{
    int fd = memfd_create("scand-array", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    void *data = ftruncate(fd, (off_t)size_bytes) == 0
                     ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    if (data == MAP_FAILED) {
        close(fd);
        return -ENOMEM;
    }
    *block = (struct block){.data = data, .size_bytes = size_bytes, .fd = fd, .used = true};
    return 0;
}

static size_t blocks_most(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 2 > BLOCKS_MOST)
        return BLOCKS_MOST;
    return (size_t)(limit.rlim_cur / 2);
}

/* Puts a new block into the list; false where that is full of blocks in use. One that is kept makes room. */
static bool block_add(struct block *block)
{
    struct block gone = {.fd = -1};
    pthread_mutex_lock(&arrays.lock);
    if (arrays.count >= blocks_most())
        for (struct block *kept = arrays.blocks; kept < arrays.blocks + arrays.count && gone.fd < 0; kept++)
            if (!kept->used) {
                arrays.kept_bytes -= kept->size_bytes;
                gone = block_pop(kept);
            }
    bool room = arrays.count < blocks_most();
    if (room) {
        size_t at = count_until((uint64_t)(uintptr_t)block->data);
        memmove(&arrays.blocks[at + 1], &arrays.blocks[at], (arrays.count++ - at) * sizeof *block);
        block->serial = ++arrays.serial;
        arrays.blocks[at] = *block;
    }
    pthread_mutex_unlock(&arrays.lock);
    if (gone.fd >= 0)
        block_unmap(&gone);
    return room;
}

/* Shared memory; NULL where there is none, and malloc's is to be taken. `fresh`: it holds zeros. */
static void *take(uint64_t size_bytes, bool *fresh)
{
    pthread_mutex_lock(&arrays.lock);
    struct block *kept = kept_for(size_bytes);
    void *data = kept ? kept->data : NULL;
    if (kept) {
        kept->used = true;
        arrays.kept_bytes -= kept->size_bytes;
    }
    pthread_mutex_unlock(&arrays.lock);
    *fresh = !data;
    struct block block;
    if (data || block_map(&block, rounded(size_bytes)))
        return data;
    if (block_add(&block))
        return block.data;
    block_unmap(&block);
    return NULL;
}

static void *array_allocate(void *context, size_t size)
{
    (void)context;
    bool fresh;
    if (size > SIZE_MOST)
        return NULL;
    void *data = size < LARGE_BYTES ? NULL : take(size, &fresh);
    if (data && fresh && size <= POPULATED_BYTES)
        madvise(data, size, MADV_POPULATE_WRITE); /* older kernels make pages when they are touched */
    return data ? data : malloc(size ? size : 1);
}

static void *array_allocate_zeros(void *context, size_t count, size_t size)
{
    (void)context;
    size_t bytes;
    bool fresh;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MOST)
        return NULL;
    void *data = bytes < LARGE_BYTES ? NULL : take(bytes, &fresh);
    if (!data)
        return calloc(bytes ? bytes : 1, 1);
    return fresh ? data : memset(data, 0, bytes);
}

/* Gives back memory that is a block's: the block is kept, or unmapped. Returns false for other memory. */
static bool give_back(void *memory)
{
    struct block gone = {.fd = -1};
    if ((uintptr_t)memory % PAGE_BYTES)
        return false;
    pthread_mutex_lock(&arrays.lock);
    struct block *block = block_at(memory);
    bool found = block && block->data == memory;
    if (found) {
        block->used = false;
        if (block->retired || arrays.kept_bytes + block->size_bytes > KEPT_BYTES)
            gone = block_pop(block);
        else
            arrays.kept_bytes += block->size_bytes;
    }
    pthread_mutex_unlock(&arrays.lock);
    if (gone.fd >= 0)
        block_unmap(&gone);
    return found;
}

static void array_release(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    if (!give_back(memory))
        free(memory);
}

static void *array_resize(void *context, void *memory, size_t size)
{
    struct scand_array_block block;
    bool shared = memory && scand_array_find((uint64_t)(uintptr_t)memory, &block);
    if (shared && size <= block.size_bytes && size >= block.size_bytes / 2)
        return memory;
    if (!shared && size < LARGE_BYTES)
        return realloc(memory, size ? size : 1);
    void *moved = array_allocate(context, size);
    if (!moved || !memory)
        return moved;
    uint64_t before = shared ? block.size_bytes : malloc_usable_size(memory);
    memcpy(moved, memory, before < size ? before : size);
    array_release(context, memory, before);
    return moved;
}

static void lock_arrays(void)
{
    pthread_mutex_lock(&arrays.lock);
}

static void unlock_arrays(void)
{
    pthread_mutex_unlock(&arrays.lock);
}

/* The parent goes on using the blocks: the child takes none of them for arrays of its own. */
static void child_arrays(void)
{
    for (size_t i = arrays.count; i-- > 0;) {
        arrays.blocks[i].retired = true;
        if (!arrays.blocks[i].used) {
            struct block gone = block_pop(&arrays.blocks[i]);
            block_unmap(&gone);
        }
    }
    arrays.kept_bytes = 0;
    unlock_arrays();
}

static void watch_forks(void)
{
    pthread_atfork(lock_arrays, unlock_arrays, child_arrays);
}

struct scand_array_handler *scand_array_handler(void)
{
    static struct scand_array_handler handler = {
        "scand", 1, NULL, array_allocate, array_allocate_zeros, array_resize, array_release};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return &handler;
}

const char *scand_array_handler_name(void)
{
    return "mem_handler"; /* NumPy looks for this name */
}

bool scand_array_find(uint64_t address, struct scand_array_block *out)
{
    pthread_mutex_lock(&arrays.lock);
    const struct block *block = block_at((const void *)(uintptr_t)address);
    if (block)
        *out =
            (struct scand_array_block){block->serial, (uint64_t)(uintptr_t)block->data, block->size_bytes, block->fd};
    pthread_mutex_unlock(&arrays.lock);
    return block != NULL;
}

bool scand_array_has(uint64_t serial)
{
    pthread_mutex_lock(&arrays.lock);
    bool has = block_of(serial) != NULL;
    pthread_mutex_unlock(&arrays.lock);
    return has;
}

void scand_array_retire(uint64_t serial)
{
    struct block gone = {.fd = -1};
    pthread_mutex_lock(&arrays.lock);
    struct block *block = block_of(serial);
    if (block)
        block->retired = true;
    if (block && !block->used) {
        arrays.kept_bytes -= block->size_bytes;
        gone = block_pop(block);
    }
    pthread_mutex_unlock(&arrays.lock);
    if (gone.fd >= 0)
        block_unmap(&gone);
}

void scand_array_trim(void)
{
    pthread_mutex_lock(&arrays.lock);
    for (size_t i = arrays.count; i-- > 0;)
        if (!arrays.blocks[i].used) {
            struct block gone = block_pop(&arrays.blocks[i]);
            block_unmap(&gone);
        }
    arrays.kept_bytes = 0;
    pthread_mutex_unlock(&arrays.lock);
}

uint64_t scand_array_drops(void)
{
    pthread_mutex_lock(&arrays.lock);
    uint64_t drops = arrays.drops;
    pthread_mutex_unlock(&arrays.lock);
    return drops;
}

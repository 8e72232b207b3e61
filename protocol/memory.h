/*
 * Shared memory as sealed memfds. Sealing against shrinking is what makes a mapping safe: without it, a peer that
 * truncates the file turns every access into SIGBUS.
 */
#ifndef PROTOCOL_MEMORY_H
#define PROTOCOL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* A new memfd of size_bytes, zero, with memory for every page, sealed against shrinking, growing and further seals.
 * Returns the descriptor or -errno; -ENOMEM: there is not as much memory; -EFBIG: RLIMIT_FSIZE does not allow it. */
int memory_create(uint64_t size_bytes);
/* A memfd like that of memory_create, but without memory: memory_fill is to give it some. */
int memory_create_sparse(uint64_t size_bytes);

/* Checks a descriptor that a peer sent: a memfd of at least size_bytes that is, or can be, sealed; seals it (shrink,
 * grow, and no further seals), and gives its first size_bytes memory where they are sparse. A write seal is refused.
 * Returns 0, or -EBADF, -ENOMEM with *error saying what is wrong. Slow where memory has to be found. */
int memory_accept(int fd, uint64_t size_bytes, struct error *error);

/* Returns the size of a memfd, 0 of anything else. */
uint64_t memory_file_bytes(int fd);
/* True where a descriptor is sealed already, and its file has no holes: then memory_check waits for nobody. Otherwise
 * both halves of memory_accept wait while anybody writes to that file, which the sender of the descriptor may do for
 * ever: write() holds the file until it has the bytes, and these may have to come from a file system of the sender's.
 */
bool memory_is_complete(int fd, uint64_t size_bytes);

/* The two halves of memory_accept: all but the pages, of which at most *missing_bytes have to be made; and pages for
 * some of the bytes, whose lack is -ENOMEM. */
int memory_check(int fd, uint64_t size_bytes, uint64_t *missing_bytes, struct error *error);
int memory_fill(int fd, uint64_t offset, uint64_t size_bytes);

/*
 * Maps `count` descriptors of segment_bytes each (a multiple of the page size, unless count is 1), readable and
 * writable, one after the other at consecutive addresses: the first size_bytes of their concatenation. Returns 0 and
 * sets *base, or -errno. Unmap with memory_unmap and the same size.
 */
int memory_map(const int *fds, size_t count, uint64_t segment_bytes, uint64_t size_bytes, void **base);
void memory_unmap(void *base, uint64_t size_bytes);
/* Puts all pages of a mapping into the page table in one call, where Linux has that (5.14): a quarter of the time that
 * one fault after the other takes. The pages should be there already. */
void memory_populate(void *base, uint64_t size_bytes);

#endif

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "available.h"
#include "limits.h"
#include "status.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14 */
#endif

#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define WRITE_SEALS (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* A lack of memory is an error here and not a SIGBUS later. */
int memory_fill(int fd, uint64_t offset, uint64_t size_bytes)
{
    int r;
    do
        r = fallocate(fd, 0, (off_t)offset, (off_t)size_bytes) ? -errno : 0;
    while (r == -EINTR);
    return r == -ENOSPC ? -ENOMEM : r;
}

/* Beyond what the system has left comes no error but the OOM killer, which ends other programs first: none of them has
 * this memory by itself. Less than the reserve is not worth looking. */
static bool memory_is_left(uint64_t bytes)
{
    return bytes <= LIMIT_MEMORY_RESERVE_BYTES || bytes <= memory_available_bytes();
}

/* A program that makes a larger file gets a signal, which ends it. */
static bool size_is_allowed(uint64_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size_bytes <= limit.rlim_cur;
}

int memory_create_sparse(uint64_t size_bytes)
{
    if (size_bytes > INT64_MAX)
        return -EINVAL;
    if (!size_is_allowed(size_bytes))
        return -EFBIG;
    int fd = memfd_create("scand", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)size_bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    int code = -errno;
    close(fd);
    return code;
}

int memory_create(uint64_t size_bytes)
{
    int fd = memory_create_sparse(size_bytes);
    int code = fd < 0 ? fd : memory_is_left(size_bytes) ? memory_fill(fd, 0, size_bytes) : -ENOMEM;
    if (!code)
        return fd;
    if (fd >= 0)
        close(fd);
    return code;
}

/* Refuses kinds of files, as far as no seal can change a file's kind. */
static int memory_check_kind(int fd, struct error *error)
{
    struct statfs system;
    if (fcntl(fd, F_GET_SEALS) < 0)
        return error_set(error, -EBADF,
                         "the descriptor is no memfd (%s); make one with memfd_create and MFD_ALLOW_SEALING",
                         strerror(errno));
    /* A peer can punch holes into a sealed file. Ordinary pages come back as zeros, huge ones may not come back. */
    if (fstatfs(fd, &system) || (unsigned long)system.f_type == HUGETLBFS_MAGIC)
        return error_set(error, -EBADF, "the memfd has huge pages; allowed: one without MFD_HUGETLB");
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
        return error_set(error, -EBADF, "the memfd is not open for reading and writing");
    return 0;
}

/* Bytes of holes, as the whole file tells it: looking at each page, as fallocate does, takes as long as pinning them.
 */
static uint64_t holes_bytes(const struct stat *status)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = ((uint64_t)status->st_size + page - 1) / page;
    uint64_t filled_bytes = (uint64_t)status->st_blocks * 512;
    return filled_bytes < pages * page ? pages * page - filled_bytes : 0;
}

static bool is_sealed(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS;
}

uint64_t memory_file_bytes(int fd)
{
    struct stat status;
    return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

bool memory_is_complete(int fd, uint64_t size_bytes)
{
    struct stat status;
    return is_sealed(fd) && fstat(fd, &status) == 0 && (uint64_t)status.st_size >= size_bytes &&
           holes_bytes(&status) == 0;
}

int memory_check(int fd, uint64_t size_bytes, uint64_t *missing_bytes, struct error *error)
{
    int code = memory_check_kind(fd, error);
    if (code)
        return code;
    /* Sealed first and looked at afterwards, so that nothing can change in between. It fails on a file that has
     * F_SEAL_SEAL already; which seals it has is then what counts. */
    if (!is_sealed(fd))
        fcntl(fd, F_ADD_SEALS, SEALS);
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS)
        return error_set(error, -EBADF, "the memfd cannot be sealed; make it with memfd_create and MFD_ALLOW_SEALING");
    if (seals & WRITE_SEALS)
        return error_set(error, -EBADF, "the memfd is sealed against writing");
    struct stat status;
    if (fstat(fd, &status))
        return error_set(error, -EBADF, "the memfd's size cannot be told: %s", strerror(errno));
    if ((uint64_t)status.st_size < size_bytes)
        return error_set(error, -EBADF, "the memfd has %" PRIu64 " bytes; needed: %" PRIu64, (uint64_t)status.st_size,
                         size_bytes);
    uint64_t holes = holes_bytes(&status);
    *missing_bytes = holes < size_bytes ? holes : size_bytes;
    return 0;
}

int memory_accept(int fd, uint64_t size_bytes, struct error *error)
{
    uint64_t missing_bytes;
    int code = memory_check(fd, size_bytes, &missing_bytes, error);
    if (code)
        return code;
    if (missing_bytes > 0)
        code = memory_is_left(missing_bytes) ? memory_fill(fd, 0, size_bytes) : -ENOMEM;
    if (code)
        return error_set(error, code, "no memory for the %" PRIu64 " bytes of the memfd: %s; import less", size_bytes,
                         strerror(-code));
    return 0;
}

static int segments_map(uint8_t *base, const int *fds, uint64_t segment_bytes, uint64_t size_bytes)
{
    for (uint64_t at = 0, i = 0; at < size_bytes; at += segment_bytes, i++) {
        uint64_t size = size_bytes - at < segment_bytes ? size_bytes - at : segment_bytes;
        if (mmap(base + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fds[i], 0) == MAP_FAILED)
            return -errno;
    }
    return 0;
}

int memory_map(const int *fds, size_t count, uint64_t segment_bytes, uint64_t size_bytes, void **base)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all_bytes;
    if (size_bytes > INT64_MAX || (count > 1 && segment_bytes % page != 0))
        return -EINVAL;
    if (__builtin_mul_overflow(segment_bytes, (uint64_t)count, &all_bytes) || size_bytes > all_bytes)
        return -EINVAL;
    /* The addresses are reserved as a whole, then covered piece by piece. */
    void *reserved = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return -errno;
    int code = segments_map(reserved, fds, segment_bytes, size_bytes);
    if (code) {
        munmap(reserved, size_bytes);
        return code;
    }
    *base = reserved;
    return 0;
}

void memory_populate(void *base, uint64_t size_bytes)
{
    madvise(base, size_bytes, MADV_POPULATE_READ);
}

void memory_unmap(void *base, uint64_t size_bytes)
{
    if (base)
        munmap(base, size_bytes);
}

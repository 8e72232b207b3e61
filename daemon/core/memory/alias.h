/*
 * Finds the buffers of a connection that are the same memory. A client may import a memfd twice, or one that the pool
 * gave it, and then knows it as two buffers: jobs on them touch the same bytes. A memfd is known by device and inode.
 */
#ifndef DAEMON_ALIAS_H
#define DAEMON_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/core/jobs/tensor_layout.h"

struct error;

/* A file that bytes of a buffer lie in; `index` is its place among the buffer's files. */
struct file {
    dev_t device;
    ino_t inode;
    size_t index;
};

/* The files of a buffer, sorted, file i having bytes i * segment_bytes and on. None: of device memory. */
struct files {
    struct file *files;
    size_t count;
    uint64_t segment_bytes;
};

/* Fills in what is known of a descriptor, which stays the caller's. 0 or -errno. */
int file_identify(struct file *file, int fd, size_t index);

/* Takes over a list from malloc, in any order, on failure too. 0; -EINVAL and *error when two are the same file. */
int files_own(struct files *files, struct file *list, size_t count, uint64_t segment_bytes, struct error *error);
/* Makes the list of files from descriptors, which stay the caller's. Returns -EBADF and -ENOMEM, too. */
int files_init(struct files *files, const int *fds, size_t count, uint64_t segment_bytes, struct error *error);
void files_finish(struct files *files);

/* True when a file is in both. */
bool files_share(const struct files *a, const struct files *b);
/* True when bytes x of the buffer with files a are bytes y of that with files b, in part. */
bool files_meet(const struct files *a, const struct extent *x, const struct files *b, const struct extent *y);

#endif

/*
 * Files as buffers that jobs read (buffer.import_file). Nothing of them is mapped, so nobody who shortens one can hurt
 * the daemon: what a chunk needs is read before a device gets it (jobs/loads.h).
 *
 * Any system call on a client's file may last as long as its file system likes, so all of them are for readers'
 * threads (loop.h).
 */
#ifndef DAEMON_FILE_IMPORT_H
#define DAEMON_FILE_IMPORT_H

#include "buffer.h"

/* Addresses of a file's bytes begin here, where there can be no memory: operands lie in it like in any other buffer,
 * until a chunk gets those of what was read (loads_bind). */
#define FILE_BASE ((void *)(uintptr_t)(UINT64_C(1) << 62))

/* Checks the descriptor and notes which file it is: 0, or -errno and *error. */
int file_prepare(struct buffer *buffer, struct error *error);

#endif

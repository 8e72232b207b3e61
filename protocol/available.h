/*
 * Memory that the system still has for this process: whoever promises memory, or gives a sparse file its pages, looks
 * here first, because beyond it comes no error but the OOM killer.
 */
#ifndef PROTOCOL_AVAILABLE_H
#define PROTOCOL_AVAILABLE_H

#include <stdint.h>

/* Bytes that can be had now, less LIMIT_MEMORY_RESERVE_BYTES: the smallest of what the machine has available and what
 * every control group above this process has left. UINT64_MAX where the system tells nothing. Reads a few files of
 * /proc and /sys/fs/cgroup: some 0.1 ms. Any thread. */
uint64_t memory_available_bytes(void);

/* The available bytes by a folder in place of /, for tests; sets *limit to words for what limits them: "available
 * memory of the machine", say. The words are static. */
uint64_t memory_available_below(const char *root, const char **limit);

#endif

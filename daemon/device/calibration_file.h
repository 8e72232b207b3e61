/*
 * Small files that the daemon may lose at any time: in the first folder of $CACHE_DIRECTORY, which systemd sets, else
 * as root in /var/cache/scand, else in scand of $XDG_CACHE_HOME or ~/.cache.
 */
#ifndef DAEMON_CALIBRATION_FILE_H
#define DAEMON_CALIBRATION_FILE_H

#include <stddef.h>

/* Reads a file of at most `size` bytes: how many there were, or -errno. -EPERM: it, or the folder, could have been
 * written by others; -EFBIG: it is longer. */
int cache_read(const char *name, char *out, size_t size);
/* Replaces a file, at once and as a whole; makes the folder if need be. 0 or -errno. */
int cache_write(const char *name, const char *text, size_t size);

#endif

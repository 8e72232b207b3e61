/*
 * Measurements of devices, remembered from one start to the next in a file that the daemon may lose at any time. It is
 * in the first folder of $CACHE_DIRECTORY, which systemd sets, else as root in /var/cache/scand, else in scand of
 * $XDG_CACHE_HOME or ~/.cache.
 *
 * The file is text: a line for each device, its fields separated by tabs: the device's identity, the bytes of a chunk,
 * the chunks in flight, and the bytes per second that were measured with these. Nothing that the file says is trusted
 * before it is checked.
 */
#ifndef DAEMON_CALIBRATION_FILE_H
#define DAEMON_CALIBRATION_FILE_H

#include <stddef.h>

#include "chunk_size.h"
#include "device.h"

/* Reads a file of at most `size` bytes. Returns how many bytes it has, or -errno. -EPERM: others could have written the
 * file or its folder; -EFBIG: the file is longer. */
int calibration_file_read(const char *name, char *out, size_t size);
/* Replaces a file, at once and as a whole; makes the folder if need be. Returns 0 or -errno. */
int calibration_file_write(const char *name, const char *text, size_t size);

#define CALIBRATION_FILE_BYTES KIB(16) /* the file's size at most */

/* Finds a device's measurement in the file's text. Returns false when there is none, or one that cannot have been
 * measured. */
bool calibration_find(const char *text, size_t size, const char *identity, struct chunk_size *out);
/* Makes a new text with the device's line first, followed by as many of the other devices' lines as there is room for.
 * Returns the new text's size. */
size_t calibration_record(const char *text, size_t size, const char *identity, const struct chunk_size *chunk_size,
                          char out[CALIBRATION_FILE_BYTES]);

#endif

/*
 * The configuration file: lines "NAME = VALUE" in sections [daemon], [quota] and [user NAME], with comments that begin
 * with ; or #. Nothing in it is trusted: it is of bounded size and line length, and what it says is checked.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <sys/types.h>

#include "settings.h"

#define CONFIG_BYTES_MAX KIB(64)

struct config {
    struct settings settings; /* settings of sections [daemon] and [quota] */
    struct {
        uid_t uid;
        struct settings settings;
    } users[LIMIT_OWN_GRANTS];
    size_t user_count;
};

/* Reads the file. Returns 0, -ENOENT when there is no file, or another -errno, with *error that names file, line and
 * key. *config is undefined after a failure. */
int config_read(const char *path, struct config *config, struct error *error);
/* Parses a file's contents, with the same results; `path` is for messages. */
int config_parse(const char *path, const char *text, size_t size, struct config *config, struct error *error);

#endif

/* The text that `scand --version` prints: the release, the commit, and what was built in. */
#ifndef DAEMON_VERSION_H
#define DAEMON_VERSION_H

extern const char version_text[];

#endif

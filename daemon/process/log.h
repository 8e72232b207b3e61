/*
 * The daemon's log: lines on stderr, each beginning with the program and, for errors, the level; where stderr is the
 * journal's, with the priority that it files them by instead (sd-daemon(3)). The core does not log.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdint.h>

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// clang-format off
/* Causes of log lines that clients can bring about as often as they like: X(NAME, priority). */
#define LOG_CAUSES(X)                                                                               \
    X(LATE,         LOG_INFO) /* a message that does not come */                                    \
    X(UNREAD,       LOG_INFO) /* answers that are not taken */                                      \
    X(BROKEN,       LOG_INFO) /* bytes or descriptors that are no message's */                      \
    X(TURNED_AWAY,  LOG_ERR)  /* connections that are more than there may be */                     \
    X(UNWATCHED,    LOG_ERR)  /* connections that the system has no room for */                     \
    X(DESCRIPTORS,  LOG_ERR)  /* the limit of open files */                                         \
    X(ACCEPT,       LOG_ERR)  /* connections that cannot be accepted */                             \
    X(SLEPT,        LOG_ERR)  /* memory at which the loop has slept */
// clang-format on

enum log_cause {
#define X(NAME, PRIORITY) LOG_CAUSE_##NAME,
    LOG_CAUSES(X) LOG_CAUSE_COUNT
#undef X
};

#define LOG_EVERY_MS 10000          /* one line of each cause and user in this time, */
#define LOG_PLACES   64             /* for this many causes and users at a time */
#define LOG_NOBODY   ((uint32_t)-1) /* a user: when nobody knows who brought it about */

/* Logs what a user has brought about. The first line of a cause and user is written at once, the next one at least
 * LOG_EVERY_MS later, with how many were left out between. For the loop's thread only. */
void log_cause(enum log_cause cause, uint32_t uid, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Replaces the clock, for tests; NULL: the system's. Forgets all lines. */
void log_use_clock(int64_t (*now_ms)(void));

#endif

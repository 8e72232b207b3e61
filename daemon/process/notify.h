/*
 * What the service manager is told, by the protocol of sd_notify(3): a datagram of lines NAME=VALUE to the socket that
 * $NOTIFY_SOCKET names. Without one nothing is sent. A manager that does not take it is not waited for.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

/* Sends one line, or several with \n between them. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often the manager wants to hear WATCHDOG=1 of this process, twice as often to be sure; 0: not at all. */
uint64_t notify_period_ms(void);

#endif

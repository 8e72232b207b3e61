/*
 * Messages to the service manager by the protocol of sd_notify(3): a datagram of lines NAME=VALUE to the socket that
 * $NOTIFY_SOCKET names. Without that variable nothing is sent. A manager that does not read its messages is not waited
 * for.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

/* Sends one line, or several with \n between them. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns how often to send WATCHDOG=1: at half the time that the manager allows this process; 0: never. */
uint64_t notify_period_ms(void);

#endif

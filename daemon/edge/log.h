/*
 * The daemon's log: lines on stderr, each beginning with the program and, for errors, the level; where stderr is the
 * journal's, with the priority that it files them by instead (sd-daemon(3)). Only the edges log.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

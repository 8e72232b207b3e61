/* Closing what must not take long, on the thread that calls. */
#ifndef DAEMON_CLOSE_NOW_H
#define DAEMON_CLOSE_NOW_H

/* Prepares close_now for the process. */
void close_now_init(void);
/* Closes a descriptor. Where its last close, or that of what waits in it, would last, as SO_LINGER has it, a signal
 * ends that within a millisecond, and the system goes on by itself. */
void close_now(int fd);

#endif

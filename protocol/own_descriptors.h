/* The descriptors that a program is started with, the standard ones and others, and how many it may have. */
#ifndef PROTOCOL_OWN_DESCRIPTORS_H
#define PROTOCOL_OWN_DESCRIPTORS_H

#include <stdint.h>

/* Opens each of the descriptors 0 to 2 that is closed, so that no file, socket or shared memory that is opened later
 * gets such a number and then what is meant for a terminal. Reads, or writes, of it fail as on a closed descriptor.
 * To be called before anything else is opened. 0 or -errno. */
int own_descriptors_occupy(void);

/* Closes all inherited descriptors from 3 + kept on: while a daemon held one end of a pipe, its readers would wait for
 * the daemon to end. */
void own_descriptors_close_inherited(unsigned kept);

/* Returns how many descriptors the process may have, by its soft limit. */
uint64_t own_descriptors_limit(void);
/* Raises the soft limit to the hard one, where possible. */
void own_descriptors_raise_limit(void);

#endif

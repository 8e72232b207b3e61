/* The standard descriptors, those that a program was started with besides, and how many there may be. */
#ifndef PROTOCOL_DESCRIPTORS_H
#define PROTOCOL_DESCRIPTORS_H

/* Puts something at each of the descriptors 0 to 2 that is closed, so that no file, socket or shared memory that is
 * opened later comes to lie there and gets what is meant for a terminal. It refuses reads, or writes, as the closed one
 * would. To be called first of all. 0 or -errno. */
int descriptors_occupy(void);

/* Closes all from 3 on but for the first `kept` of them. Nobody here knows those: as long as a daemon has them, who
 * waits for the end of a pipe waits for the daemon's. */
void descriptors_close_inherited(unsigned kept);

/* Raises how many the process may have to what is allowed, where it can. */
void descriptors_raise_limit(void);

#endif

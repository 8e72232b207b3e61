/* Processes of attackers, and memory that they share with the benchmark. */
#ifndef TESTS_BENCH_HOSTILE_PROCESS_H
#define TESTS_BENCH_HOSTILE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* The users of processes where this is root: users that hardly any system has, except "nobody". */
#define PROCESS_NEWCOMER 65532
#define PROCESS_WITNESS  65533
#define PROCESS_ATTACKER 65534
#define PROCESS_SELF     0 /* the benchmark's own user */

/* Runs `work` in a new process of that user, which yields the processor to others: what is measured is what
 * the daemon does, not that two programs compute at once. It ends when this one does. -1 and a line on stderr on
 * failure. */
pid_t process_start(void (*work)(const void *argument), const void *argument, unsigned user);

/* Zeros; ends the program where there is no memory. */
void *process_share(size_t size_bytes);
void process_unshare(void *memory, size_t size_bytes);

#endif

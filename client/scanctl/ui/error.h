/*
 * Why a command fails: its exit code (sysexits.h) and a line for the user that names what was wrong, the value, what is
 * allowed and what to do next. Functions of scanctl that can fail return 0, or the exit code after filling *fault.
 */
#ifndef SCANCTL_FAULT_H
#define SCANCTL_FAULT_H

#include <sysexits.h>

#define FAULT_TEXT_BYTES 1024

struct fault {
    int exit_code; /* 0 while nothing is wrong */
    char text[FAULT_TEXT_BYTES];
};

/* Fills *fault and returns exit_code, so that a check reads `return fault_set(fault, EX_DATAERR, ...)`. */
int fault_set(struct fault *fault, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif

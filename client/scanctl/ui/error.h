/*
 * Why a command fails: its exit code (sysexits.h) and a line for the user that names what was wrong, the value, what is
 * allowed and what to do next; the line is empty where there is nothing to say. Functions of scanctl that can fail
 * return 0, or the exit code after filling *error.
 */
#ifndef SCANCTL_ERROR_H
#define SCANCTL_ERROR_H

#include <signal.h>
#include <sysexits.h>

/* The exit code when nobody reads the output any more: the one that a shell gives for this signal. */
#define EXIT_PIPE (128 + SIGPIPE)

#define ERROR_TEXT_BYTES 1024

struct error {
    int exit_code; /* 0 while nothing is wrong */
    char text[ERROR_TEXT_BYTES];
};

/* Fills *error and returns exit_code, so that a check reads `return fail(error, EX_DATAERR, ...)`. */
int fail(struct error *error, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds to the line, behind "; ". */
void fail_more(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns what helps where opening or making a file fails by this errno; `usual`, unless it is for want of
 * descriptors. */
const char *open_advice(int code, const char *usual);
/* The same where writing fails, behind "; "; "" where nothing is known to help. */
const char *write_advice(int code);

#endif

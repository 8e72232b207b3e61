/*
 * The terminal as a screen of its own: what was on it before is back when the program ends, however it does, and while
 * it is stopped. One at a time.
 */
#ifndef SCANCTL_SCREEN_H
#define SCANCTL_SCREEN_H

#include "client/scanctl/ui/error.h"

/* Opens the screen; EX_USAGE where input or output is no terminal. */
int screen_open(struct error *error);
void screen_close(void);
/* Gets the columns and lines, or 80 x 24 where they are not known. */
void screen_size(unsigned *columns, unsigned *lines);
/* Shows the lines of a text, cut to the screen's size, and one more at its bottom. Sequences that set a style take no
 * room; a line ends in none. */
void screen_show(const char *text, const char *last);
/* Waits for a key for at most timeout_ms; 0 when none came, 'q' at the input's end. */
int screen_key(int timeout_ms);

#endif

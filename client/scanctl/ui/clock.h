#ifndef SCANCTL_CLOCK_H
#define SCANCTL_CLOCK_H

#include <stdint.h>

uint64_t clock_now_us(void); /* monotonic */

#endif

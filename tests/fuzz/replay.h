/* Inputs with which fuzz_replay begins, besides the files that are named. */
#ifndef TESTS_FUZZ_REPLAY_H
#define TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "tests/check.h"

struct replay_input {
    uint8_t bytes[8192];
    size_t size;
};

/* The next input, which the caller fills. */
struct replay_input *replay_add(void);

/* Adds inputs that are made rather than kept. Not every target has one. */
__attribute__((weak)) void replay_seed(void);

#endif

/*
 * The manual device: keeps the chunks that it is given until a test says which of them completes, and how. It counts
 * what is attached and allocated, aborts when the two sides of either do not match, and fails a call when told to.
 * Completing a chunk touches the first and last byte of its buffers, so that memory which went too early is noticed.
 */
#ifndef TESTS_UNIT_DEVICE_MANUAL_H
#define TESTS_UNIT_DEVICE_MANUAL_H

#include "daemon/device/device.h"

/* The calls that can be made to fail. */
enum manual_call { MANUAL_START, MANUAL_ATTACH, MANUAL_ALLOCATE, MANUAL_SHARE, MANUAL_CALLS };

#define MANUAL_RANGES 1024

struct manual {
    struct device device;                                           /* first */
    struct chunk *out[LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS]; /* oldest first */
    size_t out_count;
    struct chunk *completed; /* linked by next, in the order completed */
    unsigned started;        /* chunks taken so far */
    unsigned rests;          /* chunks that were left off, and neither started again nor discarded */
    uint64_t kernel_us;      /* time that a chunk takes */

    struct manual_range {
        void *base;
        uint64_t size_bytes;
    } pinned[MANUAL_RANGES];
    size_t attached_count;
    uint64_t attached_bytes, allocated_bytes;

    unsigned opened_count;            /* memory of other processes */
    struct export_ticket last_ticket; /* of what was opened last */
    uint64_t last_offset;

    unsigned fail_in[MANUAL_CALLS]; /* the n-th call from now fails; 0: none */
    int fail_code[MANUAL_CALLS];
};

/* Initializes the device, with nothing to free; chunk_bytes is what a chunk's rows may take. */
void manual_init(struct manual *manual, unsigned slots, uint64_t chunk_bytes);
/* Makes the n-th call from now (1: the next) return code. */
void manual_fail(struct manual *manual, enum manual_call call, unsigned n, int code);
/* Completes the chunk that is `index`-th among those out; the device's finish returns it next, or after others. */
void manual_complete(struct manual *manual, size_t index, int status);
/* Completes a chunk at the end of its slice: it comes back with something to go on with. */
void manual_leave_off(struct manual *manual, size_t index);

#endif

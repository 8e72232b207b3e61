#ifndef SCAND_PYTHON_DLPACK_H
#define SCAND_PYTHON_DLPACK_H

/*
 * Arrays handed to other packages by DLPack. Whoever takes one gives it up in any thread, with or without the
 * interpreter, also after its end: so that is noted here, and the package looks for it when it is called next.
 */
#include <stdint.h>

/* DLManagedTensor of dlpack.h, with DLTensor in it. */
struct scand_dlpack {
    void *data;
    int device_type, device_id;
    int ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
    void *context; /* the next one that was given up; NULL before */
    void (*deleter)(struct scand_dlpack *self);
};

/* The deleter: any thread calls it, once for each array. */
void scand_dlpack_give_up(struct scand_dlpack *self);
/* Returns all arrays that were given up since the last call, linked by `context`; NULL: none. */
struct scand_dlpack *scand_dlpack_given_up(void);

#endif

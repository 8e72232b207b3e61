/*
 * Common parts of the choice of a kernel and of the launchers: a device, and the shared memory that thread blocks take.
 * Plain C.
 */
#ifndef KERNELS_CUDA_SELECT_DEVICE_H
#define KERNELS_CUDA_SELECT_DEVICE_H

#include <stdbool.h>

/* The properties of a device by which kernels are chosen. */
struct select_device {
    int capability; /* compute capability, 90 for 9.0; 75 or more */
    int code;       /* capability of the code that it runs: at most its own, less where PTX is */
    int processors;
    int shared_max;   /* bytes of shared memory that a thread block may have */
    bool cooperative; /* launches of which all thread blocks are resident at once */
    bool clusters;    /* true when clusters can have as many thread blocks as rows may take */
};

/* A launcher's answer where the device has no room for its thread blocks. Nothing of the output is written then. */
#define SELECT_NO_ROOM 720 /* cudaErrorCooperativeLaunchTooLarge */

/* Vectors of shared memory that a warp of the any_layout kernel has where it prefetches, for samples and results of so
 * many bytes; and bytes that a thread block declares besides. */
#define SELECT_PREFETCH_VECTORS(INPUT, OUTPUT) (32 * (INPUT) + 8 + ((OUTPUT) == 8 ? 64 : 32 * (OUTPUT)))
#define SELECT_DECLARED_BYTES                  1024

/* Shared memory of a thread block of other kernels, at most. */
#define SELECT_COLUMNS_TMA_BYTES 231424
#define SELECT_RAGGED_BYTES      73728
#define SELECT_CLUSTER_BYTES     220160

#endif

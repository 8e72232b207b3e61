/*
 * CUDA errors that end a process.
 */
#ifndef DAEMON_ERROR_H
#define DAEMON_ERROR_H

#include <cuda_runtime.h>
#include <stdbool.h>

/* Errors after which only a new process helps. */
bool cuda_is_sticky(cudaError_t e);

#endif

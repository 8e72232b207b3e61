/*
 * Memory of a tutorial's variant on the GPU: full of ones, with a guard after it.
 */
#ifndef TESTS_KERNELS_WORKSPACE_H
#define TESTS_KERNELS_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cuda_runtime.h>

#define WORKSPACE_GUARD_BYTES 256

static char *workspace; /* as large as the largest that was asked for */
static uint64_t workspace_room_bytes;

static inline bool workspace_prepare(uint64_t bytes)
{
    if (workspace_room_bytes < bytes + WORKSPACE_GUARD_BYTES) {
        cudaFree(workspace);
        workspace_room_bytes = bytes + WORKSPACE_GUARD_BYTES;
        if (cudaMalloc((void **)&workspace, workspace_room_bytes) != cudaSuccess)
            return false;
    }
    return cudaMemset(workspace, 0xff, bytes + WORKSPACE_GUARD_BYTES) == cudaSuccess;
}

static inline bool workspace_guarded(uint64_t bytes)
{
    unsigned char guard[WORKSPACE_GUARD_BYTES], whole[WORKSPACE_GUARD_BYTES];
    memset(whole, 0xff, sizeof whole);
    return cudaMemcpy(guard, workspace + bytes, sizeof guard, cudaMemcpyDeviceToHost) == cudaSuccess &&
           memcmp(guard, whole, sizeof guard) == 0;
}

#endif

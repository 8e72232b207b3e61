/*
 * Errors that CUDA does not get over, made on purpose. Linked into a daemon of its own, scand_cuda_faults, with --wrap
 * for the calls below; the real one has none of this. $SCAND_CUDA_FAULTS names a folder. A file in it has the next call
 * launch a kernel that does what the file's name says, and is removed:
 *
 *   chunk-address, chunk-endless    before an event behind a chunk's work is recorded, on the same stream
 *   memory-address                  before device memory is cleared, which a helper does
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Writes where nothing is: error 700, after which nothing works in the process. */
static __global__ void write_nowhere(int *nowhere)
{
    *nowhere = 1;
}

static __global__ void run_for_ever(volatile const int *zero)
{
    while (*zero == 0)
        ;
}

static bool is_asked_for(const char *fault)
{
    char path[256];
    const char *folder = getenv("SCAND_CUDA_FAULTS");
    if (!folder)
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, fault);
    return unlink(path) == 0;
}

static void write_if_asked_for(const char *fault, cudaStream_t stream)
{
    if (is_asked_for(fault))
        write_nowhere<<<1, 1, 0, stream>>>((int *)16);
}

static __device__ int zero;

static void hang_if_asked_for(const char *fault, cudaStream_t stream)
{
    void *address = NULL;
    if (is_asked_for(fault) && cudaGetSymbolAddress(&address, zero) == cudaSuccess)
        run_for_ever<<<1, 1, 0, stream>>>((const int *)address);
}

extern "C" cudaError_t __real_cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    write_if_asked_for("chunk-address", stream);
    hang_if_asked_for("chunk-endless", stream);
    return __real_cudaEventRecord(event, stream);
}

extern "C" cudaError_t __real_cudaMemset(void *memory, int value, size_t size);
extern "C" cudaError_t __wrap_cudaMemset(void *memory, int value, size_t size);
extern "C" cudaError_t __wrap_cudaMemset(void *memory, int value, size_t size)
{
    write_if_asked_for("memory-address", 0);
    return __real_cudaMemset(memory, value, size);
}

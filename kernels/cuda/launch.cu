#include "kernels/cuda/launch.h"

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/exchange/work_queue.h"
#include "kernels/cuda/select/plan.h"

#define SPINE_THREADS    256
#define WARPS_SHARED_OUT 4 /* warps of thread blocks from which on progress is worth an atomic operation */

/* Items that each thread block of a range takes before it leaves: as many, to fetch one while it computes another,
 * where so many rounds of thread blocks remain; else one, as on host memory, where rounds are few and take a third of a
 * millisecond. */
#define RANGED_ITEMS  4
#define RANGED_ROUNDS 8

int scan_sum_number(const struct scan_rule *rule)
{
    return 2 * scan_float_number(rule->accumulator) + (rule->kind == SCAND_KIND_EXCLUSIVE);
}

/* Queues in the memory of each device, one for each of its streams. */
static __device__ struct work_queue stream_queues[STREAMS_MAX];

#ifdef __CUDA_ARCH__
static __device__ const int code_capability = __CUDA_ARCH__ / 10;
#else
static __device__ const int code_capability = 0;
#endif

/* Finds the driver's function that makes tensor maps. */
static cudaError_t encode_find(void **encode)
{
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", encode, 12000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", encode, cudaEnableDefault, &found);
#endif
    if (!error && found != cudaDriverEntryPointSuccess)
        error = cudaErrorNotSupported;
    return error;
}

cudaError_t scan_device_find(struct scan_device *device)
{
    int major = 0, minor = 0, cooperative = 0, clusters = 0;
    const struct {
        int *value;
        enum cudaDeviceAttr attribute;
    } wanted[] = {{&major, cudaDevAttrComputeCapabilityMajor},
                  {&minor, cudaDevAttrComputeCapabilityMinor},
                  {&device->processors, cudaDevAttrMultiProcessorCount},
                  {&device->shared_max, cudaDevAttrMaxSharedMemoryPerBlockOptin},
                  {&cooperative, cudaDevAttrCooperativeLaunch},
                  {&clusters, cudaDevAttrClusterLaunch}};
    cudaError_t error = cudaGetDevice(&device->id);
    if (!error && device->id >= SCAN_DEVICES_MAX)
        error = cudaErrorInvalidDevice;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !error; i++)
        error = cudaDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device->id);
    device->capability = 10 * major + minor;
    device->cooperative = cooperative;
    if (!error)
        error = cudaMemcpyFromSymbol(&device->code, code_capability, sizeof(device->code));
    device->clusters = clusters && device->code >= 90;
    if (!error && device->code >= 90)
        error = encode_find(&device->encode);
    if (!error)
        error = cudaGetSymbolAddress((void **)&device->queues, stream_queues);
    return scan_cleared(error);
}

/* Of more streams than there are numbers the first ones lose theirs, once nothing uses them. */
cudaError_t scan_work_queue_of(struct scan_device *device, cudaStream_t stream, struct work_queue **queue)
{
    int number = streams_number(&device->streams, stream);
    if (number < 0) {
        const cudaError_t error = scan_cleared(cudaDeviceSynchronize());
        if (error)
            return error;
        streams_forget(&device->streams);
        number = streams_number(&device->streams, stream);
    }
    *queue = &device->queues[number];
    return cudaSuccess;
}

cudaError_t scan_progress_of(struct scan_device *device, int warps, cudaStream_t stream,
                             struct work_queue_counter **progress)
{
    struct work_queue *queue = NULL;
    const cudaError_t error = warps < WARPS_SHARED_OUT ? cudaSuccess : scan_work_queue_of(device, stream, &queue);
    *progress = queue ? queue->counters : NULL;
    return error;
}

cudaError_t scan_grid_of(struct scan_device *device, struct scan_plan *plan, uint64_t resident, int warps,
                         cudaStream_t stream, uint64_t *grid)
{
    const uint64_t each = plan->items / resident > RANGED_ITEMS * RANGED_ROUNDS ? RANGED_ITEMS : 1;
    *grid = plan->ranged ? scan_parts(plan->items, each) : scan_least(resident, plan->items);
    plan->progress = NULL;
    return plan->ranged ? cudaSuccess : scan_progress_of(device, warps, stream, &plan->progress);
}

/* Asking for attributes loads a kernel, as setting them does. */
cudaError_t scan_kernel_load(const void *kernel)
{
    struct cudaFuncAttributes attributes;
    return scan_cleared(cudaFuncGetAttributes(&attributes, kernel));
}

cudaError_t scan_kernel_share(const void *kernel, size_t shared_bytes)
{
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    if (!error)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    return scan_cleared(error);
}

cudaError_t scan_kernel_load_resident(const void *kernel, int threads, size_t shared_bytes, int *resident)
{
    cudaError_t error = scan_kernel_share(kernel, shared_bytes);
    return error ? error : scan_kernel_resident(kernel, threads, shared_bytes, resident);
}

cudaError_t scan_kernel_load_most(const struct scan_device *device, const void *kernel)
{
    struct cudaFuncAttributes attributes;
    const cudaError_t error = scan_cleared(cudaFuncGetAttributes(&attributes, kernel));
    return error ? error : scan_kernel_share(kernel, (size_t)device->shared_max - attributes.sharedSizeBytes);
}

cudaError_t scan_kernel_resident(const void *kernel, int threads, size_t shared_bytes, int *resident)
{
    return scan_cleared(cudaOccupancyMaxActiveBlocksPerMultiprocessor(resident, kernel, threads, shared_bytes));
}

cudaError_t scan_kernel_launch(const void *kernel, uint64_t grid, int threads, void **arguments, size_t shared_bytes,
                               cudaStream_t stream)
{
    return scan_launched(
        cudaLaunchKernel(kernel, dim3((unsigned)grid), dim3((unsigned)threads), arguments, shared_bytes, stream));
}

cudaError_t scan_rows_launch(const struct scan_device *device, const void *kernel, void *plan, uint64_t rows, int warps,
                             int at_once, int resident, size_t shared_bytes, cudaStream_t stream)
{
    const uint64_t blocks = scan_parts(rows, (uint64_t)(warps * at_once));
    const uint64_t grid = (uint64_t)device->processors * resident;
    void *arguments[] = {plan};
    if (grid == 0)
        return SCAN_NO_ROOM;
    return scan_kernel_launch(kernel, scan_least(grid, blocks), warps * WARP, arguments, shared_bytes, stream);
}

cudaError_t scan_resident_load(const struct scan_device *device, struct scan_resident_kernel *kernels, int count)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < count && !error; i++)
        if (kernels[i].kernel)
            error = scan_kernel_load_resident(kernels[i].kernel, kernels[i].warps * WARP, kernels[i].shared_bytes,
                                              &kernels[i].resident[device->id]);
    return error;
}

cudaError_t scan_resident_launch(struct scan_device *device, const struct scan_resident_kernel *kernel, void *plan,
                                 struct work_queue **queue, uint64_t rows, int at_once, cudaStream_t stream)
{
    const cudaError_t error = scan_work_queue_of(device, stream, queue);
    return error ? error
                 : scan_rows_launch(device, kernel->kernel, plan, rows, kernel->warps, at_once,
                                    kernel->resident[device->id], kernel->shared_bytes, stream);
}

/* A launch of clusters with its attributes: their size and, where they wait for one another, that all are resident. */
struct cluster_launch {
    cudaLaunchConfig_t config;
    cudaLaunchAttribute attributes[2];

    cluster_launch(struct instance_cluster shape, size_t shared_bytes, uint64_t clusters, bool together,
                   cudaStream_t stream)
        : config(), attributes()
    {
        attributes[0].id = cudaLaunchAttributeClusterDimension;
        attributes[0].val.clusterDim = {(unsigned)shape.size, 1, 1};
        attributes[1].id = cudaLaunchAttributeCooperative;
        attributes[1].val.cooperative = 1;
        config.gridDim = dim3((unsigned)(shape.size * clusters));
        config.blockDim = dim3((unsigned)(shape.warps * WARP));
        config.dynamicSmemBytes = shared_bytes;
        config.stream = stream;
        config.attrs = attributes;
        config.numAttrs = together ? 2 : 1;
    }
};

cudaError_t scan_clusters_resident(const void *kernel, struct instance_cluster shape, size_t shared_bytes,
                                   struct scan_cluster_room *room)
{
    const struct cluster_launch launch(shape, shared_bytes, SCAN_GRID_MAX / shape.size, false, NULL);
    int clusters = 0;
    if (room->shape.size == shape.size && room->shape.warps == shape.warps && room->shared_bytes == shared_bytes)
        return cudaSuccess;
    const cudaError_t error = scan_cleared(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config));
    if (!error)
        *room = {shape, shared_bytes, clusters};
    return error;
}

cudaError_t scan_clusters_launch(const void *kernel, struct instance_cluster shape, size_t shared_bytes,
                                 uint64_t clusters, bool together, void *plan, cudaStream_t stream)
{
    const struct cluster_launch launch(shape, shared_bytes, clusters, together, stream);
    void *arguments[] = {plan};
    return scan_launched(cudaLaunchKernelExC(&launch.config, kernel, arguments));
}

cudaError_t scan_spine_load(const struct scan_spine *spine)
{
    cudaError_t error = cudaSuccess;
    for (const void *const *kernels : {spine->ups, spine->downs})
        for (int backward = 0; backward < 2 && !error; backward++)
            error = scan_kernel_load(kernels[backward]);
    return error;
}

/* Launches a kernel for so many threads of all rows, or for as many as are worth while. */
static cudaError_t level_launch(const void *kernel, void *level, struct scan_spine_rows rows, uint64_t threads,
                                cudaStream_t stream)
{
    void *arguments[] = {&level, &rows};
    return scan_kernel_launch(kernel, scan_least(scan_parts(threads, SPINE_THREADS), SCAN_GRID_MAX), SPINE_THREADS,
                              arguments, 0, stream);
}

cudaError_t scan_spine_up(const void *kernel, void *level, struct scan_spine_rows rows, cudaStream_t stream)
{
    return level_launch(kernel, level, rows, rows.rows * scan_groups(rows.members) * WARP, stream);
}

cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, struct scan_spine_rows rows,
                              cudaStream_t stream)
{
    cudaError_t error = scan_spine_up(spine->ups[backward], sums, rows, stream);
    if (error || rows.members <= ORDER_FAN)
        return error;
    struct scan_spine_rows above = rows;
    above.members = scan_groups(rows.members);
    error = scan_spine_launch(spine, backward, (char *)sums + rows.members * spine->sum_bytes, above, stream);
    return error ? error : level_launch(spine->downs[backward], sums, rows, rows.rows * rows.members, stream);
}

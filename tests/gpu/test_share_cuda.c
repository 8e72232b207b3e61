/*
 * A CUDA program of its own beside a daemon on the GPU: its device memory scanned in place by the daemon, handed over
 * by handle and by descriptor, and the daemon's memory read here, against the reference by memcmp. Then tickets that
 * are wrong, after each of which the daemon still works. $SCAND names the daemon's program. Skipped without a GPU.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <scand/scand.h>

#include "kernels/scan.h"
#include "tests/check.h"
#include "tests/server.h"

#define ROWS    3000
#define SAMPLES 1001
#define COUNT   ((size_t)ROWS * SAMPLES)
#define BYTES   (COUNT * sizeof(float))
#define UNIT    ((size_t)2 << 20)

static struct server server;
static struct scand *session;
static float input[COUNT], expected[COUNT], got[COUNT];

/* The driver's functions for memory of which descriptors can be made. */
// clang-format off
#define DRIVER_FUNCTIONS(X)            \
    X(cuMemCreate)                     \
    X(cuMemRelease)                    \
    X(cuMemAddressReserve)             \
    X(cuMemMap)                        \
    X(cuMemSetAccess)                  \
    X(cuMemExportToShareableHandle)    \
    X(cuMemImportFromShareableHandle)
// clang-format on
static struct {
#define X(NAME) __typeof__(NAME) *NAME;
    DRIVER_FUNCTIONS(X)
#undef X
} driver;

static const CUmemLocation on_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static void compute_expected(void)
{
    uint64_t state = 11;
    struct scan_rows rows = {
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                 .pass_count = 2,
                 .accumulator = SCAND_ACCUMULATOR_F64},
        .length = SAMPLES,
        .row_count = ROWS,
        .outer_rank = 1,
        .outer_shape = {ROWS},
        .input_outer_strides = {SAMPLES * sizeof(float)},
        .output_outer_strides = {SAMPLES * sizeof(float)},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = input,
        .output = expected,
    };
    for (size_t i = 0; i < COUNT; i++)
        input[i] = (float)(int32_t)random_next(&state) * 0x1p-31f;
    scan_reference(&rows, 0, ROWS);
}

static void daemon_start(void)
{
    static const char *const arguments[] = {"--device", "cuda", "--pool", "64M", NULL};
    if (server_start(&server, getenv("SCAND"), arguments) || scand_connect(server.socket, "test", &session)) {
        fprintf(stderr, "%s\n", scand_connect_message());
        abort();
    }
}

static void daemon_stop(void)
{
    scand_disconnect(session);
    server_stop(&server);
}

/* The rig is made once for all tests. */
static const char *set_up(void)
{
    int count = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (session)
        return NULL;
    if (!library || cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return "no CUDA device";
    if (!getenv("SCAND"))
        return "SCAND does not name a daemon";
#define X(NAME) driver.NAME = (__typeof__(NAME) *)dlsym(library, #NAME);
    DRIVER_FUNCTIONS(X)
#undef X
    compute_expected();
    daemon_start();
    atexit(daemon_stop);
    return NULL;
}

#define SET_UP()                    \
    const char *missing = set_up(); \
    if (missing)                    \
    SKIP(missing)

/* The input in device memory, all work on it done. */
static void fill(void *memory)
{
    CHECK_EQ(cudaMemcpy(memory, input, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

static void check_expected(const void *memory)
{
    memset(got, 0, sizeof got);
    CHECK_EQ(cudaMemcpy(got, memory, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK(memcmp(got, expected, BYTES) == 0);
}

static int scan_in_place(struct scand_buffer *buffer)
{
    struct scand_scan scan = {
        .input = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, SAMPLES}},
        .axis = 1,
        .pass_count = 2,
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
        .accumulator = SCAND_ACCUMULATOR_F64,
    };
    struct scand_job *job;
    scand_tensor_pack(&scan.input);
    scan.output = scan.input;
    int status = scand_submit(session, &scan, &job);
    if (status)
        return status;
    status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status;
}

static void *allocate(size_t size_bytes)
{
    void *memory = NULL;
    CHECK_EQ(cudaMalloc(&memory, size_bytes), cudaSuccess);
    return memory;
}

static cudaIpcMemHandle_t handle_of(void *memory)
{
    cudaIpcMemHandle_t handle = {{0}};
    CHECK_EQ(cudaIpcGetMemHandle(&handle, memory), cudaSuccess);
    return handle;
}

static struct scand_buffer *import(const cudaIpcMemHandle_t *handle, uint64_t offset, uint64_t size_bytes)
{
    struct scand_buffer *buffer = NULL;
    int status = scand_buffer_import_cuda(session, handle, offset, size_bytes, &buffer);
    if (status)
        fprintf(stderr, "%s\n", scand_message(session));
    CHECK_EQ(status, SCAND_OK);
    return buffer;
}

/* The daemon is as it was: it scans memory that is all right. */
static void check_daemon_works(void)
{
    void *memory = allocate(BYTES);
    cudaIpcMemHandle_t handle = handle_of(memory);
    fill(memory);
    struct scand_buffer *buffer = import(&handle, 0, BYTES);
    REQUIRE(buffer);
    CHECK_EQ(scan_in_place(buffer), SCAND_OK);
    check_expected(memory);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    cudaFree(memory);
}

static void by_handle(void)
{
    SET_UP();
    check_daemon_works();
}

/* Parts of one allocation, as an allocator gives them out: between other parts, and imported more than once. */
static void parts_of_an_allocation(void)
{
    enum { OFFSET = 512 };
    SET_UP();
    unsigned char *memory = allocate(3 * BYTES), edges[2] = {0xa5, 0xa5};
    cudaIpcMemHandle_t handle = handle_of(memory);
    CHECK_EQ(cudaMemset(memory, 0xa5, 3 * BYTES), cudaSuccess);
    fill(memory + OFFSET);
    struct scand_buffer *part = import(&handle, OFFSET, BYTES), *rest = import(&handle, OFFSET + BYTES, BYTES),
                        *again = import(&handle, OFFSET, BYTES);
    REQUIRE(part && rest && again);
    CHECK_EQ(scand_buffer_release(again), SCAND_OK);
    CHECK_EQ(scan_in_place(part), SCAND_OK);
    check_expected(memory + OFFSET);
    CHECK_EQ(cudaMemcpy(&edges[0], memory + OFFSET - 1, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_EQ(cudaMemcpy(&edges[1], memory + OFFSET + BYTES, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK(edges[0] == 0xa5 && edges[1] == 0xa5);
    CHECK_EQ(scand_buffer_release(part), SCAND_OK);
    fill(memory + OFFSET + BYTES);
    CHECK_EQ(scan_in_place(rest), SCAND_OK);
    check_expected(memory + OFFSET + BYTES);
    CHECK_EQ(scand_buffer_release(rest), SCAND_OK);
    cudaFree(memory);
}

/* Memory that is less than a page of the device's lies beside other memory, which its handle opens, too. */
static void small_allocations(void)
{
    SET_UP();
    float *first = allocate(1000), *second = allocate(4000), zeros[1000] = {0}, sums[1000];
    cudaIpcMemHandle_t handle = handle_of(second);
    struct scand_buffer *buffer = import(&handle, 0, 4000);
    REQUIRE(buffer);
    CHECK_EQ(cudaMemset(first, 0, 1000), cudaSuccess);
    for (size_t i = 0; i < 1000; i++)
        sums[i] = 1;
    CHECK_EQ(cudaMemcpy(second, sums, sizeof sums, cudaMemcpyHostToDevice), cudaSuccess);
    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess); /* a copy of ordinary memory may be on its way when it returns */
    struct scand_scan scan = {.input = {.buffer = buffer, .rank = 1, .shape = {1000}}, .pass_count = 1};
    struct scand_job *job = NULL;
    scand_tensor_pack(&scan.input);
    scan.output = scan.input;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(cudaMemcpy(sums, second, sizeof sums, cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; i < 1000; i++)
        CHECK(sums[i] == (float)(i + 1));
    CHECK_EQ(cudaMemcpy(sums, first, 1000, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK(memcmp(sums, zeros, 1000) == 0);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    cudaFree(first);
    cudaFree(second);
}

/* Memory that this program frees while the daemon has it stays there for the daemon. */
static void freed_while_it_is_imported(void)
{
    SET_UP();
    void *memory = allocate(BYTES);
    cudaIpcMemHandle_t handle = handle_of(memory);
    fill(memory);
    struct scand_buffer *buffer = import(&handle, 0, BYTES);
    REQUIRE(buffer);
    cudaFree(memory);
    CHECK_EQ(scan_in_place(buffer), SCAND_OK);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    check_daemon_works();
}

/* Maps memory of cuMemCreate, or of a descriptor where fd is not negative. */
static void *map_descriptor(int fd, size_t size_bytes, CUmemGenericAllocationHandle *handle)
{
    const CUmemAccessDesc access = {on_device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                            .location = on_device};
    CUdeviceptr address = 0;
    CHECK_EQ(cudaFree(NULL), cudaSuccess);
    if (fd < 0)
        CHECK_EQ(driver.cuMemCreate(handle, size_bytes, &properties, 0), CUDA_SUCCESS);
    else
        CHECK_EQ(driver.cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 CUDA_SUCCESS);
    CHECK_EQ(driver.cuMemAddressReserve(&address, size_bytes, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(driver.cuMemMap(address, size_bytes, 0, *handle, 0), CUDA_SUCCESS);
    CHECK_EQ(driver.cuMemSetAccess(address, size_bytes, &access, 1), CUDA_SUCCESS);
    return (void *)(uintptr_t)address;
}

static void by_descriptor(void)
{
    SET_UP();
    size_t size_bytes = (BYTES + 4096 + UNIT - 1) / UNIT * UNIT;
    struct scand_buffer *buffer = NULL, *other = NULL;
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    unsigned char *memory = map_descriptor(-1, size_bytes, &handle);
    CHECK_EQ(driver.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
             CUDA_SUCCESS);
    fill(memory + 4096);
    CHECK_EQ(scand_buffer_import_cuda_fd(session, fd, size_bytes, 4096, BYTES, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK_EQ(scan_in_place(buffer), SCAND_OK);
    check_expected(memory + 4096);
    CHECK_EQ(scand_buffer_import_cuda_fd(session, fd, 3 * size_bytes, 0, 3 * size_bytes, &other), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "CUDA does not map");
    CHECK_EQ(scand_buffer_import_cuda_fd(session, fd, size_bytes, 4096, size_bytes, &other), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "end behind the \"allocation\"");
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    close(fd);
    driver.cuMemRelease(handle);
    check_daemon_works();
}

static void wrong_descriptors(void)
{
    SET_UP();
    int fds[] = {memfd_create("test", MFD_CLOEXEC), open("/dev/null", O_RDWR | O_CLOEXEC),
                 open("/dev/nvidiactl", O_RDWR | O_CLOEXEC)};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        struct scand_buffer *buffer = NULL;
        CHECK_EQ(scand_buffer_import_cuda_fd(session, fds[i], UNIT, 0, UNIT, &buffer), SCAND_DESCRIPTOR);
        CHECK_CONTAINS(scand_message(session), "CUDA does not import the descriptor");
        close(fds[i]);
    }
    check_daemon_works();
}

static void check_refused(const cudaIpcMemHandle_t *handle, uint64_t offset, uint64_t size_bytes, const char *message)
{
    struct scand_buffer *buffer = NULL;
    CHECK_EQ(scand_buffer_import_cuda(session, handle, offset, size_bytes, &buffer), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), message);
    CHECK(buffer == NULL);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

static void wrong_handles(void)
{
    SET_UP();
    uint64_t seed = random_seed();
    void *memory = allocate(4 * UNIT);
    cudaIpcMemHandle_t real = handle_of(memory), handle = {{0}};
    struct scand_export export;
    struct scand_buffer *buffer = NULL;
    check_refused(&handle, 0, UNIT, "CUDA does not open the handle");
    for (int i = 0; i < 20; i++) {
        for (size_t at = 0; at < sizeof handle; at++)
            ((unsigned char *)&handle)[at] = (unsigned char)random_next(&seed);
        check_refused(&handle, 0, UNIT, "CUDA does not open the handle");
    }
    check_refused(&real, 0, 4 * UNIT + 1, "end behind the memory, which has 8388608 bytes");
    check_refused(&real, 4 * UNIT, 1, "end behind the memory");
    cudaFree(memory);
    check_refused(&real, 0, UNIT, "CUDA does not open the handle");
    /* The daemon's own. */
    CHECK_EQ(scand_buffer_create_shared(session, SCAND_SHARING_HANDLE, UNIT, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK_EQ(scand_buffer_export(buffer, &export), SCAND_OK);
    check_refused((const cudaIpcMemHandle_t *)(const void *)export.ipc_handle, 0, UNIT,
                  "CUDA does not open the handle");
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    check_daemon_works();
}

/* The daemon's memory, filled here, scanned there, read here. */
static void exported(enum scand_sharing sharing)
{
    struct scand_buffer *buffer = NULL;
    struct scand_export export = {.fd = -1};
    CUmemGenericAllocationHandle handle;
    cudaIpcMemHandle_t ipc;
    void *memory = NULL;
    CHECK_EQ(scand_buffer_create_shared(session, sharing, BYTES, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK_EQ(scand_buffer_export(buffer, &export), SCAND_OK);
    CHECK_EQ(export.size_bytes, BYTES);
    memcpy(&ipc, export.ipc_handle, sizeof ipc);
    if (sharing == SCAND_SHARING_HANDLE)
        CHECK_EQ(cudaIpcOpenMemHandle(&memory, ipc, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
    else
        memory = map_descriptor(export.fd, export.allocation_bytes, &handle);
    REQUIRE(memory);
    CHECK_EQ(cudaMemcpy(got, memory, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(got[i] == 0);
    fill(memory);
    CHECK_EQ(scan_in_place(buffer), SCAND_OK);
    check_expected(memory);
    if (sharing == SCAND_SHARING_HANDLE)
        CHECK_EQ(cudaIpcCloseMemHandle(memory), cudaSuccess);
    else
        close(export.fd);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
}

static void exported_by_handle(void)
{
    SET_UP();
    exported(SCAND_SHARING_HANDLE);
}

static void exported_by_descriptor(void)
{
    SET_UP();
    exported(SCAND_SHARING_DESCRIPTOR);
}

/* The memory is this program's: it outlives the daemon's worker, and the library imports it into the next one. */
static void worker_restarts(void)
{
    SET_UP();
    void *memory = allocate(BYTES);
    cudaIpcMemHandle_t handle = handle_of(memory);
    struct scand_buffer *buffer = import(&handle, 0, BYTES);
    REQUIRE(buffer);
    fill(memory);
    pid_t worker = server_worker(&server);
    REQUIRE(worker > 0);
    kill(worker, SIGKILL);
    int status = scan_in_place(buffer);
    if (status == SCAND_LOST) { /* it may have begun to write before the worker was gone */
        fill(memory);
        status = scan_in_place(buffer);
    }
    CHECK_EQ(status, SCAND_OK);
    check_expected(memory);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    cudaFree(memory);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(by_handle),
                                        TEST(parts_of_an_allocation),
                                        TEST(small_allocations),
                                        TEST(freed_while_it_is_imported),
                                        TEST(by_descriptor),
                                        TEST(wrong_descriptors),
                                        TEST(wrong_handles),
                                        TEST(exported_by_handle),
                                        TEST(exported_by_descriptor),
                                        TEST(worker_restarts),
                                        TEST_END};
    return test_main(argc, argv, tests);
}

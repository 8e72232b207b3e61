/* libscand and device memory that processes share: what is sent, what is believed, and a worker that ends. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static const uint8_t handle[SCAND_IPC_BYTES] = {42, 1, 2};

static struct scand_buffer *import(uint64_t offset)
{
    struct scand_buffer *buffer = NULL;
    CHECK_EQ(scand_buffer_import_cuda(session, handle, offset, BYTES, &buffer), SCAND_OK);
    return buffer;
}

static struct scand_buffer *shared(enum scand_sharing sharing)
{
    struct scand_buffer *buffer = NULL;
    CHECK_EQ(scand_buffer_create_shared(session, sharing, 10000, &buffer), SCAND_OK);
    return buffer;
}

static void imports_by_handle(void)
{
    rig_begin();
    fake.imported_device = 3;
    struct scand_buffer *buffer = import(512);
    REQUIRE(buffer);
    CHECK_EQ(scand_buffer_device(buffer), 3);
    CHECK_EQ(fake.imported_handle, 42);
    CHECK_EQ(fake.imported_offset, 512);
    CHECK_EQ(scand_buffer_size(buffer), BYTES);
    CHECK(scand_buffer_data(buffer) == NULL);
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_OK);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 1);
    rig_end();
}

static void imports_by_descriptor(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    int memfd = memfd_of(10000);
    CHECK_EQ(scand_buffer_import_cuda_fd(session, memfd, 20000, 8, 10000, &buffer), SCAND_OK);
    close(memfd); /* it stays the caller's */
    CHECK_EQ(fake.imported_handle, -1);
    CHECK_EQ(fake.imported_offset, 8);
    CHECK_EQ(fake.imported_allocation, 20000);
    rig_end();
}

/* One array, two connections, and none: each mapping shows what the others wrote. */
static void own_memory_is_shared(void)
{
    struct scand *other = NULL;
    struct scand_buffer *own = NULL, *twin = NULL;
    int fd = -1;
    rig_begin();
    CHECK_EQ(scand_connect(fake.path, "another", &other), SCAND_OK);
    CHECK_EQ(scand_buffer_create_own(session, BYTES, &own), SCAND_OK);
    CHECK_EQ(scand_buffer_size(own), BYTES);
    CHECK_EQ(scand_buffer_fd(own, &fd), SCAND_OK);
    CHECK_EQ(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), F_SEAL_SHRINK | F_SEAL_GROW);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(scand_buffer_import(other, fd, BYTES, &twin), SCAND_OK);
    close(fd);
    float *x = scand_buffer_data(own), *y = scand_buffer_data(twin);
    x[7] = 41;
    CHECK_EQ(y[7], 41);
    CHECK_EQ(scand_wait(submit(own, own), -1, NULL), SCAND_OK);
    CHECK_EQ(y[7], 42);
    scand_disconnect(session);
    session = NULL;
    CHECK_EQ(scand_buffer_fd(own, &fd), SCAND_NOT_FOUND);
    CHECK_EQ(y[7], 42);
    CHECK_EQ(scand_buffer_release(own), SCAND_OK);
    CHECK_EQ(scand_buffer_fd(twin, &fd), SCAND_OK);
    CHECK_EQ(pread(fd, &(float){0}, sizeof(float), 0), sizeof(float));
    close(fd);
    scand_disconnect(other);
    rig_end();
}

static void descriptors_that_are_not_given(void)
{
    struct scand_buffer *pool, *device = NULL, *own = NULL;
    int fd = -1;
    rig_begin();
    pool = buffer_of(BYTES);
    CHECK_EQ(scand_buffer_fd(pool, &fd), SCAND_UNSUPPORTED);
    CHECK_CONTAINS(scand_message(session), "scand_buffer_create_own");
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, BYTES, &device), SCAND_OK);
    CHECK_EQ(scand_buffer_fd(device, &fd), SCAND_UNSUPPORTED);
    CHECK_CONTAINS(scand_message(session), "scand_buffer_export");
    CHECK_EQ(scand_buffer_create_own(session, 0, &own), SCAND_INVALID);
    CHECK_EQ(scand_buffer_create_own(session, UINT64_MAX, &own), SCAND_NO_MEMORY);
    CHECK_CONTAINS(scand_message(session), "cannot make 18446744073709551615 bytes of memory");
    CHECK(fd == -1 && own == NULL);
    rig_end();
}

static void own_memory_that_is_too_large(void)
{
    struct scand_buffer *own = NULL;
    struct rlimit limit, small = {.rlim_cur = 1 << 20};
    rig_begin();
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_EQ(scand_buffer_create_own(session, (1 << 20) + 1, &own), SCAND_NO_MEMORY);
    CHECK_CONTAINS(scand_message(session), "cannot make 1048577 bytes of memory: File too large; the limit of files'");
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK(own == NULL);
    rig_end();
}

static void imports_that_fail(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    CHECK_EQ(scand_buffer_import_cuda(session, NULL, 0, 1, &buffer), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "ipc_handle is NULL");
    CHECK_EQ(scand_buffer_import_cuda(session, handle, 0, 0, &buffer), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "size_bytes is 0");
    CHECK_EQ(scand_buffer_import_cuda_fd(session, -1, 1, 0, 1, &buffer), SCAND_DESCRIPTOR);
    CHECK_CONTAINS(scand_message(session), "fd -1");
    CHECK_EQ(scand_buffer_import_cuda_fd(session, 0, 1, 0, 0, &buffer), SCAND_INVALID);
    fake.fail_on = METHOD_buffer_import_device;
    fake.fail_code = -EINVAL;
    CHECK_EQ(scand_buffer_import_cuda(session, handle, 0, 1, &buffer), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    CHECK(buffer == NULL);
    rig_end();
}

/* The memory is the program's: it outlives the worker. */
static void imported_again(void)
{
    rig_begin();
    struct scand_buffer *buffer = import(512), *output = buffer_of(BYTES), *made = shared(SCAND_SHARING_HANDLE);
    struct scand_export export;
    REQUIRE(buffer && output && made);
    fake.imported_offset = 0;
    fake.die_count = 1;
    fake.die_on = METHOD_job_submit;
    CHECK_EQ(scand_wait(submit(buffer, output), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    CHECK_EQ(fake.seen[METHOD_buffer_import_device], 2);
    CHECK_EQ(fake.imported_handle, 42);
    CHECK_EQ(fake.imported_offset, 512);
    CHECK_EQ(scand_buffer_export(made, &export), SCAND_LOST); /* which is not the program's */
    CHECK_CONTAINS(scand_message(session), "device memory ends with the daemon's worker");
    rig_end();
}

/* Parts of one allocation are told apart by where they lie, whatever buffer they are of. */
static void repeated_where_nothing_was_written(void)
{
    rig_begin();
    struct scand_buffer *low = import(0), *high = import(BYTES), *across = import(BYTES / 2);
    REQUIRE(low && high && across);
    fake.die_count = 1;
    fake.die_on = METHOD_job_submit;
    CHECK_EQ(scand_wait(submit(low, high), -1, NULL), SCAND_OK);
    fake.die_count = 1;
    fake.die_on = METHOD_job_submit;
    CHECK_EQ(scand_wait(submit(low, across), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "half overwritten");
    rig_end();
}

static void exports(void)
{
    rig_begin();
    struct scand_buffer *by_handle = shared(SCAND_SHARING_HANDLE), *by_fd = shared(SCAND_SHARING_DESCRIPTOR),
                        *plain = buffer_of(100);
    struct scand_export export = {.fd = -2};
    REQUIRE(by_handle && by_fd && plain);
    CHECK_EQ(scand_buffer_export(plain, &export), SCAND_INVALID);
    CHECK_EQ(export.fd, -2);
    CHECK_EQ(scand_buffer_export(by_handle, &export), SCAND_OK);
    CHECK_EQ(export.fd, -1);
    CHECK_EQ(export.ipc_handle[63], 'h');
    CHECK_EQ(export.size_bytes, 10000);
    CHECK_EQ(export.allocation_bytes, 20000);
    CHECK_EQ(scand_buffer_export(by_fd, &export), SCAND_OK);
    CHECK_EQ(export.ipc_handle[63], 0);
    CHECK(export.fd >= 0);
    close(export.fd);
    CHECK_EQ(scand_buffer_create_shared(session, SCAND_SHARING_NONE, 1, &plain), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "sharing is 0: 1 (descriptor) or 2 (handle)");
    rig_end();
}

/* Wrong claims of a daemon about an export. */
static void lies_about_exports(void)
{
    for (int lie = 1; lie <= 3; lie++) {
        rig_begin();
        struct scand_buffer *buffer = shared(lie == 3 ? SCAND_SHARING_HANDLE : SCAND_SHARING_DESCRIPTOR);
        struct scand_export export = {.fd = -2};
        REQUIRE(buffer);
        fake.lie = lie;
        CHECK_EQ(scand_buffer_export(buffer, &export), SCAND_MALFORMED);
        CHECK_CONTAINS(scand_message(session), lie == 1 ? "1 descriptors announced" : "the daemon's export is none");
        CHECK_EQ(export.fd, -2);
        rig_end();
    }
}

/* A descriptor that comes when nobody waits for it any more is closed. */
static void an_export_that_comes_late(void)
{
    rig_begin();
    struct scand_buffer *buffer = shared(SCAND_SHARING_DESCRIPTOR);
    struct scand_export export;
    REQUIRE(buffer);
    fake.late_ms = CALL_MS * 3 / 2;
    fake.late_on = METHOD_buffer_export;
    CHECK_EQ(scand_buffer_export(buffer, &export), SCAND_TIMED_OUT);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_buffer_export(buffer, &export), SCAND_OK);
    close(export.fd);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(imports_by_handle),
                                        TEST(imports_by_descriptor),
                                        TEST(own_memory_is_shared),
                                        TEST(descriptors_that_are_not_given),
                                        TEST(own_memory_that_is_too_large),
                                        TEST(imports_that_fail),
                                        TEST(imported_again),
                                        TEST(repeated_where_nothing_was_written),
                                        TEST(exports),
                                        TEST(lies_about_exports),
                                        TEST(an_export_that_comes_late),
                                        TEST_END};
    return test_main(argc, argv, tests);
}

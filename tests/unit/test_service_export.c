/* Device memory that processes share, through the service: a client's memory imported, the daemon's created and
 * exported, refusals, and clients that go meanwhile. */
#include "tests/unit/service_rig.h"

#include <fcntl.h>
#include <sys/mman.h>

#define ANNA ((uid_t)1000)

static const struct msg_buffer_import_device_params by_handle = {
    .size = 1000, .offset = 512, .handle = {1, 2, 3}, .handle_count = SCAND_IPC_BYTES};

static void begin(void)
{
    rig_begin();
    rig.manual.device.info.memory_limit_bytes = MIB(64);
}

/* Greets as the user who may use handles. */
static struct caller *owner_greet(void)
{
    return user_greet(RIG_OWNER);
}

static uint64_t create_shared(struct caller *user, uint64_t size_bytes, enum scand_sharing sharing)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = SCAND_PLACE_DEVICE, .sharing = sharing};
    struct msg_buffer_create_result result = {0};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_create, &result));
    CHECK_EQ(result.fds, 0);
    return result.buffer;
}

static const char *create_refused(struct caller *user, enum scand_place place, enum scand_sharing sharing,
                                  enum scand_status status)
{
    uint32_t msgid = ask(user, METHOD_buffer_create,
                         &(struct msg_buffer_create_params){.size = 1000, .place = place, .sharing = sharing});
    rig_run_work();
    return refusal(user, msgid, status);
}

static uint64_t import(struct caller *user, const struct msg_buffer_import_device_params *params, int fd)
{
    struct msg_buffer_import_device_result result = {0};
    uint32_t msgid = ask_with(user, METHOD_buffer_import_device, params, &fd, fd >= 0);
    CHECK_EQ(rig.work_count, 1); /* opening may take its time */
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_import_device, &result));
    CHECK_EQ(result.device, user->client->buffers->device->number + 1); /* on the wire it counts from 0 */
    return result.buffer;
}

static const char *import_refused(struct caller *user, struct msg_buffer_import_device_params params,
                                  enum scand_status status)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    uint32_t msgid = ask_with(user, METHOD_buffer_import_device, &params, &fd, params.fds);
    close(fd);
    rig_run_work();
    return refusal(user, msgid, status);
}

static bool release(struct caller *user, uint64_t buffer)
{
    bool done = granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL);
    rig_run_work();
    return done;
}

static uint64_t device_bytes_used(const struct caller *user)
{
    return user->client->user->used[QUOTA_DEVICE_MEMORY];
}

/*
 * Imports.
 */

static void imports_by_handle(void)
{
    begin();
    struct caller *user = owner_greet();
    uint64_t buffer = import(user, &by_handle, -1);
    CHECK_EQ(rig.manual.opened_count, 1);
    CHECK_EQ(rig.manual.last_ticket.fd, -1);
    CHECK(memcmp(rig.manual.last_ticket.handle, by_handle.handle, SCAND_IPC_BYTES) == 0);
    CHECK_EQ(rig.manual.last_offset, 512);
    CHECK(user->client->buffers->span.place == SCAND_PLACE_DEVICE && user->client->buffers->span.size_bytes == 1000);
    CHECK(release(user, buffer));
    CHECK_EQ(rig.manual.opened_count, 0);
    rig_end();
}

/* The daemon's copy of the descriptor is closed as soon as the memory is mapped. */
static void imports_by_descriptor(void)
{
    begin();
    struct caller *user = user_greet(ANNA);
    int fd = memfd_create("test", MFD_CLOEXEC);
    size_t before = descriptors_open();
    import(user, &(struct msg_buffer_import_device_params){.size = 1000, .offset = 3096, .allocation = 4096, .fds = 1},
           fd);
    CHECK(rig.manual.last_ticket.fd >= 0);
    CHECK_EQ(rig.manual.last_ticket.allocation_bytes, 4096);
    CHECK_EQ(descriptors_open(), before);
    close(fd);
    rig_end();
}

/* Readers close an import's descriptor, which may be of anything, so that closing may last; the descriptor counts until
 * then. */
static void readers_close_descriptors(void)
{
    int ends[2];
    const struct msg_buffer_import_device_params params = {.size = 1000, .fds = 1};
    begin();
    struct caller *user = user_greet(ANNA), *gone = user_greet(ANNA);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    ask_with(user, METHOD_buffer_import_device, &params, ends, 1);
    ask_with(gone, METHOD_buffer_import_device, &params, ends, 1);
    CHECK(rig.service.helpers.out == 2 && rig.service.readers.out == 0 && rig.service.lent_fds.used == 2);
    user_close(gone);
    rig_help(rig_pop_work(0));
    rig_help(rig_pop_work(0));
    CHECK_EQ(rig.service.readers.out, 2);
    CHECK_EQ(rig.service.lent_fds.used, 2);
    rig_run_work();
    CHECK_EQ(rig.service.lent_fds.used, 0);
    close(ends[0]);
    close(ends[1]);
    rig_end();
}

/* Imported memory is the client's own: it counts for neither the client's quota nor the daemon's memory. */
static void imports_are_not_the_daemons_memory(void)
{
    struct msg_stats_result stats;
    struct msg_clients_result clients;
    begin();
    struct caller *user = owner_greet();
    user->client->user->most[QUOTA_DEVICE_MEMORY] = 0;
    uint64_t buffer = import(user, &by_handle, -1);
    CHECK(granted(user, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK_EQ(stats.imported_bytes, 1000);
    CHECK_EQ(stats.device_bytes, 0);
    CHECK_EQ(stats.buffers_open, 1);
    CHECK_EQ(device_bytes_used(user), 0);
    CHECK(granted(user, METHOD_server_clients, &(struct msg_page_params){0}, &clients));
    CHECK_EQ(clients.clients[0].buffers, 1);
    CHECK_EQ(clients.clients[0].device_bytes, 0);
    CHECK(release(user, buffer));
    rig_end();
}

static void imports_that_are_wrong(void)
{
    begin();
    struct caller *user = owner_greet();
    struct msg_buffer_import_device_params params = by_handle;
    params.size = 0;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "buffer.import_device: \"size\" is 0 bytes");
    params = by_handle;
    params.handle_count = 63;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "\"handle\" has 63 bytes; allowed: the 64 of a");
    params.handle_count = 0;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "neither \"handle\" and a descriptor");
    params = by_handle;
    params.fds = 1;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "both \"handle\" and a descriptor");
    params = by_handle;
    params.offset = UINT64_MAX;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "\"offset\" is 18446744073709551615");
    params.offset = LIMIT_IMPORT_BYTES;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "an allocation of at most 549755813888");
    params = (struct msg_buffer_import_device_params){.size = 1000, .offset = 1, .allocation = 1000, .fds = 1};
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "end behind the \"allocation\" of 1000 bytes");
    params.allocation = LIMIT_IMPORT_BYTES + 1;
    CHECK_CONTAINS(import_refused(user, params, SCAND_INVALID), "\"allocation\" 549755813889 bytes");
    CHECK_EQ(user->client->buffer_count, 0);
    CHECK(!user->over);
    rig_end();
}

/* A handle is no proof that its memory is the client's. A descriptor is. */
static void handles_of_other_users(void)
{
    begin();
    struct caller *user = user_greet(ANNA), *root = user_greet(0);
    CHECK_CONTAINS(
        import_refused(user, by_handle, SCAND_PERMISSION),
        "user 1000 may not import by \"handle\", which anybody could guess; root and the daemon's own user 900 "
        "may");
    CHECK_EQ(rig.manual.opened_count, 0);
    CHECK(import(root, &by_handle, -1));
    rig_end();
}

/* The memory is that of the device that opens it. */
static void imports_on_several_devices(void)
{
    rig_begin_devices(2, 1, 2, 4);
    struct caller *user = owner_greet();
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -ENODEV);
    uint64_t buffer = import(user, &by_handle, -1);
    CHECK_EQ(rig.manual.opened_count, 0);
    CHECK_EQ(rig.second.opened_count, 1);
    CHECK(user->client->buffers->device == &rig.second.device);
    user_create(user, 1000, SCAND_PLACE_DEVICE); /* goes beside it */
    CHECK_EQ(rig.second.allocated_bytes, 1000);
    CHECK(release(user, buffer));
    CHECK_EQ(rig.second.opened_count, 0);
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -ENODEV);
    manual_fail(&rig.second, MANUAL_SHARE, 1, -ENODEV);
    CHECK_CONTAINS(import_refused(user, by_handle, SCAND_INVALID), "another GPU than this daemon's");
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -ENODEV);
    manual_fail(&rig.second, MANUAL_SHARE, 1, -EINVAL);
    CHECK_CONTAINS(import_refused(user, by_handle, SCAND_INVALID), "planned failure (device 1, manual device)");
    rig_end();
}

/* An import that the device refuses fails with the device's words. */
static void imports_that_the_device_refuses(void)
{
    begin();
    struct caller *user = owner_greet();
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -EINVAL);
    CHECK_CONTAINS(import_refused(user, by_handle, SCAND_INVALID), "planned failure");
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -EBADF);
    struct msg_buffer_import_device_params params = {.size = 1000, .fds = 1};
    CHECK_CONTAINS(import_refused(user, params, SCAND_DESCRIPTOR), "planned failure");
    CHECK_EQ(user->client->buffer_count, 0);
    CHECK_EQ(rig.service.stats.imported_bytes, 0);
    CHECK(import(user, &by_handle, -1) == 1);
    rig_end();
}

static void descriptors_that_do_not_come(void)
{
    begin();
    struct caller *user = owner_greet();
    struct msg_buffer_import_device_params params = {.size = 1000, .fds = 1};
    uint32_t msgid = ask(user, METHOD_buffer_import_device, &params);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "announces 1 descriptors, but 0 came");
    int fd = memfd_create("test", MFD_CLOEXEC);
    msgid = ask_with(user, METHOD_buffer_import_device, &by_handle, &fd, 1);
    close(fd);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "1 descriptors came with a message that announces 0");
    CHECK(user->over);
    rig_end();
}

/* Rows that never leave the device are not cut into the chunks that copies need. */
static void resident_jobs_take_larger_chunks(void)
{
    begin();
    rig.manual.device.info.resident_chunk_bytes = 100 * RIG_ROW_BYTES;
    struct caller *user = owner_greet();
    struct msg_buffer_import_device_params params = by_handle;
    params.size = 100 * RIG_ROW_BYTES;
    uint64_t device = import(user, &params, -1), host = user_create(user, params.size, SCAND_PLACE_HOST);
    struct msg_job_submit_params job = rig_scan_in_place(rig_rows(device, 0, 100));
    uint32_t msgid = ask(user, METHOD_job_submit, &job);
    REQUIRE(rig.manual.out_count == 1);
    CHECK_EQ(rig.manual.out[0]->count, 100);
    CHECK_EQ(rig.manual.out[0]->spans[OPERAND_INPUT].place, SCAND_PLACE_DEVICE);
    CHECK(release(user, device)); /* the job has it still */
    CHECK_EQ(rig.manual.opened_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, msgid, METHOD_job_submit, NULL));
    rig_run_work();
    CHECK_EQ(rig.manual.opened_count, 0);
    job.input.buffer = job.output.buffer = import(user, &params, -1);
    job.then_count = 3; /* which take their time on the device: four steps, four chunks */
    for (int i = 0; i < 3; i++)
        job.then[i].passes_count = 1;
    ask(user, METHOD_job_submit, &job);
    REQUIRE(rig.manual.out_count == 2);
    CHECK_EQ(rig.manual.out[0]->count, 25);
    for (int i = 0; i < 4; i++)
        rig_complete(0, 0);
    job.then_count = 0;
    job.output.buffer = host;
    ask(user, METHOD_job_submit, &job);
    CHECK_EQ(rig.manual.out_count, 2);
    CHECK_EQ(rig.manual.out[0]->count, 4);
    rig_end();
}

/*
 * Exports.
 */

static void exports_a_handle(void)
{
    struct msg_buffer_export_result result = {0};
    begin();
    struct caller *user = user_greet(ANNA);
    uint64_t buffer = create_shared(user, 1000, SCAND_SHARING_HANDLE);
    CHECK_EQ(rig.manual.allocated_bytes, MIB(2));
    CHECK_EQ(device_bytes_used(user), MIB(2));
    uint32_t msgid = ask(user, METHOD_buffer_export, &(struct msg_buffer_id){buffer});
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_export, &result));
    CHECK_EQ(result.size, 1000);
    CHECK_EQ(result.allocation, MIB(2));
    CHECK_EQ(result.handle_count, SCAND_IPC_BYTES);
    CHECK_EQ(result.handle[63], 'h');
    CHECK_EQ(result.fds, 0);
    CHECK(release(user, buffer));
    CHECK_EQ(rig.manual.allocated_bytes, 0);
    rig_end();
}

/* The daemon keeps no descriptor for it, however often it is asked. */
static void exports_descriptors(void)
{
    struct msg_buffer_export_result result;
    begin();
    struct caller *user = user_greet(ANNA);
    uint64_t buffer = create_shared(user, MIB(2) + 1, SCAND_SHARING_DESCRIPTOR);
    CHECK_EQ(rig.manual.allocated_bytes, MIB(4));
    size_t before = descriptors_open();
    for (int i = 0; i < 3; i++) {
        ask(user, METHOD_buffer_export, &(struct msg_buffer_id){buffer});
        rig_run_work();
        struct answer answer = next_answer(user, &msg_buffer_export_result_type, &result);
        CHECK(answer.arrived && !answer.failed);
        CHECK_EQ(result.fds, 1);
        CHECK_EQ(result.handle_count, 0);
        REQUIRE(answer.fd_count == 1);
        CHECK_EQ(descriptors_open(), before + 1);
        close(answer.fds[0]);
    }
    rig_end();
}

static void exports_that_are_wrong(void)
{
    begin();
    struct caller *user = user_greet(ANNA), *other = user_greet(ANNA);
    uint64_t plain = user_create(user, 1000, SCAND_PLACE_DEVICE);
    struct msg_buffer_id shared = {create_shared(user, 1000, SCAND_SHARING_HANDLE)};
    CHECK_CONTAINS(refused(user, METHOD_buffer_export, &(struct msg_buffer_id){plain}, SCAND_INVALID),
                   "buffer.export: buffer 1 was not made to be shared; create a device buffer with \"sharing\"");
    CHECK_CONTAINS(refused(other, METHOD_buffer_export, &shared, SCAND_NOT_FOUND),
                   "\"buffer\" is 2; this connection has no such buffer");
    uint32_t first = ask(user, METHOD_buffer_export, &shared);
    CHECK_CONTAINS(refused(user, METHOD_buffer_export, &shared, SCAND_BUSY), "buffer 2 is being exported");
    rig_run_work();
    CHECK(answered(user, first, METHOD_buffer_export, NULL));
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -EIO);
    first = ask(user, METHOD_buffer_export, &shared);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, first, SCAND_DEVICE), "the device did not export buffer 2");
    rig_end();
}

static void sharing_that_cannot_be(void)
{
    begin();
    struct caller *user = user_greet(ANNA);
    CHECK_CONTAINS(create_refused(user, SCAND_PLACE_HOST, SCAND_SHARING_DESCRIPTOR, SCAND_INVALID),
                   "\"sharing\" is \"descriptor\", which is for \"place\" \"device\"");
    manual_fail(&rig.manual, MANUAL_SHARE, 1, -EOPNOTSUPP);
    CHECK_CONTAINS(create_refused(user, SCAND_PLACE_DEVICE, SCAND_SHARING_HANDLE, SCAND_UNSUPPORTED),
                   "\"sharing\" is \"handle\", but this daemon's device cannot share memory so; leave \"sharing\" out");
    user->client->user->most[QUOTA_DEVICE_MEMORY] = MIB(2) - 1; /* whole units count */
    CHECK_CONTAINS(create_refused(user, SCAND_PLACE_DEVICE, SCAND_SHARING_HANDLE, SCAND_QUOTA), "device");
    user->client->user->most[QUOTA_DEVICE_MEMORY] = UINT64_MAX;
    rig.manual.device.info.memory_limit_bytes = MIB(1);
    CHECK_CONTAINS(create_refused(user, SCAND_PLACE_DEVICE, SCAND_SHARING_HANDLE, SCAND_QUOTA),
                   "no 2097152 bytes of device memory: 0 of 1048576 that scand may take are taken");
    CHECK_EQ(user->client->buffer_count, 0);
    rig_end();
}

/* Clients that go while work is under way. */

static void go_meanwhile(struct caller *user, enum rig_moment moment)
{
    rig_go_meanwhile(user, moment);
    CHECK(rig.manual.opened_count == 0 && rig.manual.allocated_bytes == 0);
    rig_end();
}

static void gone_while_memory_is_opened(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++)
        for (int failing = 0; failing < 2; failing++) {
            begin();
            struct caller *user = user_greet(ANNA);
            int fd = memfd_create("test", MFD_CLOEXEC);
            struct msg_buffer_import_device_params params = {.size = 1000, .fds = 1};
            manual_fail(&rig.manual, MANUAL_SHARE, (unsigned)failing, -EINVAL);
            ask_with(user, METHOD_buffer_import_device, &params, &fd, 1);
            close(fd);
            go_meanwhile(user, moment);
        }
}

static void gone_while_a_buffer_is_exported(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++)
        for (int released = 0; released < 2; released++) {
            begin();
            struct caller *user = user_greet(ANNA);
            struct msg_buffer_id id = {create_shared(user, 1000, SCAND_SHARING_DESCRIPTOR)};
            ask(user, METHOD_buffer_export, &id);
            if (released)
                ask(user, METHOD_buffer_release, &id);
            go_meanwhile(user, moment);
        }
}

static const struct test tests[] = {
    TEST(imports_by_handle),
    TEST(imports_by_descriptor),
    TEST(readers_close_descriptors),
    TEST(imports_are_not_the_daemons_memory),
    TEST(imports_that_are_wrong),
    TEST(handles_of_other_users),
    TEST(imports_on_several_devices),
    TEST(imports_that_the_device_refuses),
    TEST(descriptors_that_do_not_come),
    TEST(resident_jobs_take_larger_chunks),
    TEST(exports_a_handle),
    TEST(exports_descriptors),
    TEST(exports_that_are_wrong),
    TEST(sharing_that_cannot_be),
    TEST(gone_while_memory_is_opened),
    TEST(gone_while_a_buffer_is_exported),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

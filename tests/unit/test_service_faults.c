/* Calls of a device that fail, one after the other: the n-th of its kind, n = 1, 2, ... until none is left, in what a
 * client does with each kind of buffer and job. Each request has one answer, and nothing is left. */
#include <sys/mman.h>

#include "tests/unit/service_rig.h"

#define ANNA      ((uid_t)1000)
#define ROWS      20 /* rows of a buffer: five chunks */
#define CALLS_MAX 1000

static unsigned refusals; /* refusals of a scenario */

/* Runs work and chunks to their end; the chunk that is completed as the n-th comes back with an error. */
static void finish_all(unsigned *chunks_left)
{
    while (rig.work_count + rig.manual.out_count > 0) {
        rig_run_work();
        if (rig.manual.out_count > 0)
            rig_complete(0, *chunks_left > 0 && --*chunks_left == 0 ? -EIO : 0);
    }
}

/* The one answer to a request: true, and *result, where it is no error. */
static bool outcome(struct caller *user, uint32_t msgid, enum method method, void *result)
{
    struct answer answer = next_answer(user, result_types[method], result);
    CHECK(answer.arrived && answer.kind == MESSAGE_RESPONSE);
    CHECK_EQ(answer.msgid, msgid);
    for (size_t i = 0; i < answer.fd_count; i++)
        close(answer.fds[i]);
    refusals += answer.failed;
    CHECK(!answer.failed || (answer.failure.code != SCAND_INTERNAL && answer.failure.message[0] != '\0'));
    return !answer.failed;
}

static uint64_t create(struct caller *user, struct msg_buffer_create_params params, unsigned *chunks_left)
{
    struct msg_buffer_create_result result = {0};
    const uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    finish_all(chunks_left);
    return outcome(user, msgid, METHOD_buffer_create, &result) ? result.buffer : 0;
}

static uint64_t import(struct caller *user, unsigned *chunks_left)
{
    struct msg_buffer_id result = {0};
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 2 * 4096), 0);
    const uint32_t msgid =
        ask_with(user, METHOD_buffer_import, &(struct msg_buffer_import_params){.size = 2 * 4096, .fds = 1}, &fd, 1);
    close(fd);
    finish_all(chunks_left);
    return outcome(user, msgid, METHOD_buffer_import, &result) ? result.buffer : 0;
}

static uint64_t import_device(struct caller *user, unsigned *chunks_left)
{
    struct msg_buffer_import_device_result result = {0};
    int fd = memfd_create("test", MFD_CLOEXEC);
    const uint32_t msgid =
        ask_with(user, METHOD_buffer_import_device,
                 &(struct msg_buffer_import_device_params){.size = ROWS * RIG_ROW_BYTES, .fds = 1}, &fd, 1);
    close(fd);
    finish_all(chunks_left);
    return outcome(user, msgid, METHOD_buffer_import_device, &result) ? result.buffer : 0;
}

static void scan(struct caller *user, uint64_t buffer, unsigned *chunks_left)
{
    if (buffer == 0)
        return;
    const struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, ROWS));
    const uint32_t msgid = ask(user, METHOD_job_submit, &params);
    finish_all(chunks_left);
    outcome(user, msgid, METHOD_job_submit, &(struct msg_job_submit_result){0});
}

static void export(struct caller *user, uint64_t buffer, unsigned *chunks_left)
{
    if (buffer == 0)
        return;
    const uint32_t msgid = ask(user, METHOD_buffer_export, &(struct msg_buffer_id){buffer});
    finish_all(chunks_left);
    outcome(user, msgid, METHOD_buffer_export, &(struct msg_buffer_export_result){0});
}

/* Each kind of memory, and a job on it; what is not released goes with its client. */
static void scenario(unsigned chunks_left)
{
    const uint64_t bytes = ROWS * RIG_ROW_BYTES;
    struct caller *user = user_greet(ANNA);
    const uint64_t buffers[] = {
        create(user, (struct msg_buffer_create_params){.size = bytes}, &chunks_left),
        create(user, (struct msg_buffer_create_params){.size = bytes, .place = SCAND_PLACE_DEVICE}, &chunks_left),
        create(user,
               (struct msg_buffer_create_params){
                   .size = bytes, .place = SCAND_PLACE_DEVICE, .sharing = SCAND_SHARING_DESCRIPTOR},
               &chunks_left),
        import(user, &chunks_left),
        import_device(user, &chunks_left),
    };
    export(user, buffers[2], &chunks_left);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        scan(user, buffers[i], &chunks_left);
    if (buffers[0])
        CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffers[0]}, NULL));
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    CHECK(is_silent(user));
}

static void begin(void)
{
    rig_begin();
    rig.manual.device.info.memory_limit_bytes = MIB(64);
    refusals = 0;
}

static void check_each(const char *what, enum manual_call call, int code)
{
    unsigned n = 0, told = 0;
    do {
        begin();
        manual_fail(&rig.manual, call, ++n, code);
        scenario(0);
        const bool reached = rig.manual.fail_in[call] == 0;
        told += refusals > 0;
        CHECK(reached || refusals == 0);
        manual_fail(&rig.manual, call, 0, 0);
        rig_end();
        if (!reached)
            break;
    } while (n < CALLS_MAX && !check_failures);
    CHECK(n > 1 && n < CALLS_MAX);
    printf("%s: each of %u calls failed, %u of which the client was told\n", what, n - 1, told);
}

static void chunks_that_are_not_started(void)
{
    check_each("start", MANUAL_START, -EIO);
}

static void memory_that_is_not_pinned(void)
{
    check_each("memory_pin", MANUAL_ATTACH, -ENOMEM);
}

static void memory_that_is_not_allocated(void)
{
    check_each("allocate", MANUAL_ALLOCATE, -ENOMEM);
}

static void memory_that_is_not_shared(void)
{
    check_each("export_create, _open and _ticket", MANUAL_SHARE, -EIO);
}

static void chunks_that_fail(void)
{
    unsigned n = 0;
    do {
        begin();
        scenario(++n);
        rig_end();
    } while (refusals > 0 && n < CALLS_MAX && !check_failures);
    CHECK(n > 20 && n < CALLS_MAX);
    printf("finish: each of %u chunks failed\n", n - 1);
}

static const struct test tests[] = {
    TEST(chunks_that_are_not_started), TEST(memory_that_is_not_pinned), TEST(memory_that_is_not_allocated),
    TEST(memory_that_is_not_shared),   TEST(chunks_that_fail),          TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * The service inside a program when memory, descriptors or threads fail: the n-th call of the system fails, n = 1, 2,
 * ... until none does. Each time every function of libscand succeeds or says why not, and no descriptor is left. Linked
 * with libscand-local's archive.
 */
#include <pthread.h>

#include <scand/scand.h>

#include "protocol/local.h"
#include "tests/check.h"
#include "tests/unit/failing_calls.h"
#include "tests/unit/open_descriptors.h"

#define CALLS_MAX 2000 /* calls of a scenario: more than that never end */
#define SMALL     1000
#define LARGE     200000 /* samples, of which threads take care */

WRAP(void *, malloc, (size_t size), (size), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *old, size_t size), (old, size), ENOMEM, NULL)
WRAP(int, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size), ENOSPC, -1)
WRAP(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument), EAGAIN, EAGAIN)

static struct scand *session;
static int failed; /* calls of libscand */

static bool note(int status, const char *message)
{
    if (status == SCAND_OK)
        return true;
    failed++;
    CHECK(status >= SCAND_INVALID && message[0] != '\0');
    return false;
}

static bool good(int status)
{
    return note(status, scand_message(session));
}

static bool connects(void)
{
    struct scand_options *options = NULL;
    if (!note(scand_options_create(&options), scand_connect_message()))
        return false;
    CHECK_EQ(scand_options_set(options, "local", SCAND_LOCAL_ALWAYS), SCAND_OK);
    const int status = scand_connect_with(options, NULL, "faults", &session);
    scand_options_destroy(options);
    return note(status, scand_connect_message());
}

static void scans(struct scand_buffer *buffer, uint64_t samples)
{
    struct scand_tensor tensor = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {samples}};
    struct scand_job *job = NULL;
    float *x = scand_buffer_data(buffer);
    scand_tensor_pack(&tensor);
    struct scand_scan scan = {.input = tensor, .output = tensor, .pass_count = 1};
    for (uint64_t i = 0; i < samples; i++)
        x[i] = 1;
    if (!good(scand_submit(session, &scan, &job)))
        return;
    if (good(scand_wait(job, -1, NULL)))
        CHECK_EQ(x[samples - 1], (float)samples);
    scand_job_release(job);
}

static void scenario(void)
{
    struct scand_buffer *small = NULL, *large = NULL, *own = NULL;
    if (!connects())
        return;
    if (good(scand_buffer_create(session, SCAND_PLACE_HOST, SMALL * sizeof(float), &small)))
        scans(small, SMALL);
    if (good(scand_buffer_create(session, SCAND_PLACE_HOST, LARGE * sizeof(float), &large)))
        scans(large, LARGE);
    if (good(scand_buffer_create_own(session, SMALL * sizeof(float), &own)))
        scans(own, SMALL);
    if (small)
        good(scand_buffer_release(small));
    good(scand_ping(session, NULL));
    scand_disconnect(session);
    scand_buffer_release(large);
    scand_buffer_release(own);
}

static void each_call_fails_once(void)
{
    scenario(); /* what libc keeps is there then */
    CHECK_EQ(failed, 0);
    const size_t before = descriptors_open();
    int n = 0;
    bool all;
    do {
        failed = 0;
        calls_left = ++n;
        scenario();
        all = calls_left > 0;
        calls_left = 0;
        if (descriptors_open() != before) {
            fprintf(stderr, "when call %d fails: %zu descriptors before, %zu after\n", n, before, descriptors_open());
            check_failures++;
        }
    } while (!all && n < CALLS_MAX && check_failures == 0);
    CHECK(all && failed == 0);
    CHECK(n > 30);
    fprintf(stderr, "%d calls\n", n - 1);
}

/* Computes a small job as beside a daemon, of a row and its mean, for which the kernel allocates. Returns false where
 * the daemon is to be asked: then nothing is written. */
static bool near_sums(struct near *near)
{
    float x[SMALL] = {SMALL}, sums[SMALL] = {0}; /* less its mean: SMALL - 1, -1, -1, ... */
    struct msg_tensor tensor = {.dtype = SCAND_DTYPE_F32, .shape_count = 1, .strides_count = 1};
    struct msg_job_submit_params params = {.passes_count = 1, .demean = 1};
    struct msg_job_submit_result result;
    tensor.shape[0] = SMALL;
    tensor.strides[0] = sizeof x[0];
    params.input = params.output = tensor;
    params.output.buffer = 1;
    const struct local_job asked = {.submit = &params, .memories = {{x, sizeof x}, {sums, sizeof sums}}};
    const bool done = scand_local_library.near_compute(near, &asked, &result);
    CHECK_EQ(sums[1], done ? SMALL - 2 : 0);
    return done;
}

/* Where a call fails for a small job, that one alone is the daemon's. */
static void each_call_fails_once_for_a_small_job(void)
{
    int n = 0;
    bool all, done;
    do {
        struct near *near = NULL;
        struct error error = {.code = 0};
        calls_left = ++n;
        const int code = scand_local_library.near_open(&near, &error);
        CHECK(code == 0 || (code < 0 && error.message[0] != '\0'));
        done = code == 0 && near_sums(near);
        all = calls_left > 0;
        calls_left = 0;
        if (code == 0) {
            CHECK(near_sums(near));
            scand_local_library.near_close(near);
        }
    } while (!all && n < CALLS_MAX && check_failures == 0);
    CHECK(all && done);
    CHECK(n > 4);
    fprintf(stderr, "%d calls\n", n - 1);
}

static const struct test tests[] = {TEST(each_call_fails_once), TEST(each_call_fails_once_for_a_small_job), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * The rig of tests of libscand: a planned daemon, a session with it, and a check that both leave nothing behind.
 */
#ifndef TESTS_CLIENT_RIG_H
#define TESTS_CLIENT_RIG_H

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/check.h"
#include "tests/unit/fake_daemon.h"
#include "tests/unit/mapped_memfds.h"
#include "tests/unit/open_descriptors.h"

#define SAMPLES 5000 /* samples of a tensor; a buffer for it has several segments */
#define BYTES   (SAMPLES * sizeof(float))

static struct fake fake;
static struct scand *session;
static size_t descriptors_before;
static int memfds_before;

/* A daemon with an empty plan. */
static inline void rig_start(void)
{
    descriptors_before = descriptors_open();
    memfds_before = memfds_mapped();
    fake_init(&fake);
    fake_start(&fake);
}

/* Begins the test with a session, too. */
static inline void rig_begin(void)
{
    rig_start();
    session = NULL;
    if (scand_connect(fake.path, "test", &session)) {
        fprintf(stderr, "%s\n", scand_connect_message());
        abort();
    }
}

/* Ends the session and then the daemon, where they are still there. */
static inline void rig_end(void)
{
    scand_disconnect(session);
    session = NULL;
    fake_finish(&fake);
    CHECK_EQ(descriptors_open(), descriptors_before);
    CHECK_EQ(memfds_mapped(), memfds_before);
}

static inline struct scand_buffer *buffer_of(uint64_t size_bytes)
{
    struct scand_buffer *buffer = NULL;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, size_bytes, &buffer), SCAND_OK);
    return buffer;
}

/* A memfd that can be imported; the caller closes it. */
static inline int memfd_of(uint64_t size_bytes)
{
    int memfd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0 || ftruncate(memfd, (off_t)size_bytes)) {
        perror("memfd");
        abort();
    }
    return memfd;
}

/* One pass over one row of SAMPLES. */
static inline struct scand_scan scan_of(struct scand_buffer *from, struct scand_buffer *to)
{
    struct scand_tensor tensor = {.buffer = from, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {SAMPLES}};
    scand_tensor_pack(&tensor);
    struct scand_scan scan = {.input = tensor, .output = tensor, .pass_count = 1};
    scan.output.buffer = to;
    return scan;
}

static inline struct scand_job *submit(struct scand_buffer *from, struct scand_buffer *to)
{
    struct scand_scan scan = scan_of(from, to);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

/* Dispatches as a program's loop does, until the job has ended. Returns the last status of scand_dispatch. */
static inline int loop_until_done(const struct scand_job *job)
{
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    int status = SCAND_OK;
    while (!scand_job_done(job) && poll(&loop, 1, 20000) == 1)
        status = scand_dispatch(session);
    CHECK_EQ(scand_job_done(job), 1);
    return status;
}

#endif

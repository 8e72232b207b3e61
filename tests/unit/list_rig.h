/* The rig of tests of lists of jobs: a user with a buffer of rows, jobs in place on some of them, and the list. */
#ifndef TESTS_LIST_RIG_H
#define TESTS_LIST_RIG_H

#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)
#define ROWS 200

/* Returns a scan of rows of 100 samples, in place, from a first row on. Four rows are a chunk, two chunks are out. */
static inline struct msg_job_submit_params in_place(uint64_t buffer, uint64_t first, uint64_t rows, uint32_t passes)
{
    const struct msg_tensor tensor = {.buffer = buffer,
                                      .offset = first * RIG_ROW_BYTES,
                                      .shape = {rows, 100},
                                      .shape_count = 2,
                                      .strides = {RIG_ROW_BYTES, 4},
                                      .strides_count = 2};
    return (struct msg_job_submit_params){.input = tensor,
                                          .output = tensor,
                                          .axis = 1,
                                          .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                          .passes_count = passes};
}

static inline struct msg_jobs_result jobs_from(struct caller *user, uint64_t from)
{
    struct msg_jobs_result result = {0};
    CHECK(granted(user, METHOD_server_jobs, &(struct msg_page_params){from}, &result));
    return result;
}

/* Begins a service with a user who has a buffer of ROWS rows; their connection's number is 1. */
static inline struct caller *begin_with_buffer(uint64_t *buffer)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    *buffer = user_create(user, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    return user;
}

#endif

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
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, first, rows));
    params.passes[1] = SCAND_PASS_BACKWARD;
    params.passes_count = passes;
    return params;
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

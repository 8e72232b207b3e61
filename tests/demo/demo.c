/*
 * scand-demo: the demonstration, its result compared bit by bit with the reference that defines it. scanctl's own demo
 * cannot do that, since a client does not contain kernels.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "client/scanctl/commands/demo_run.h"
#include "client/scanctl/commands/parallel_rows.h"
#include "kernels/scan.h"
#include "protocol/own_descriptors.h"

struct comparison {
    const struct demo *demo;
    pthread_mutex_t lock; /* lock of the members that follow */
    bool out_of_memory;
    bool different;
    uint64_t trace; /* the first that is */
};

/* The reference's result for some traces. */
static void reference(const struct demo *demo, uint64_t first, uint64_t count, float *out)
{
    int64_t stride = (int64_t)(demo->samples * sizeof(float));
    struct scan_rows rows = {
        .rule =
            {
                .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                .pass_count = 2,
                .accumulator = SCAND_ACCUMULATOR_F64,
                .intermediate = SCAND_DTYPE_F32,
                .output = SCAND_DTYPE_F32,
            },
        .length = demo->samples,
        .row_count = count,
        .outer_rank = 1,
        .outer_shape = {count},
        .input_outer_strides = {stride},
        .output_outer_strides = {stride},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = demo->input + first * demo->samples,
        .output = out,
    };
    scan_reference(&rows, 0, count);
}

static void note_different(struct comparison *comparison, uint64_t trace)
{
    pthread_mutex_lock(&comparison->lock);
    if (!comparison->different || trace < comparison->trace)
        comparison->trace = trace;
    comparison->different = true;
    pthread_mutex_unlock(&comparison->lock);
}

static void compare_rows(void *context, uint64_t first, uint64_t count)
{
    struct comparison *comparison = context;
    const struct demo *demo = comparison->demo;
    float *expected = malloc(demo->samples * sizeof(*expected));
    if (!expected) {
        pthread_mutex_lock(&comparison->lock);
        comparison->out_of_memory = true;
        pthread_mutex_unlock(&comparison->lock);
        return;
    }
    for (uint64_t trace = first; trace < first + count; trace++) {
        reference(demo, trace, 1, expected);
        if (memcmp(expected, demo->output + trace * demo->samples, demo->samples * sizeof(*expected)))
            note_different(comparison, trace);
    }
    free(expected);
}

static int error_different(const struct demo *demo, uint64_t trace, struct error *error)
{
    float *expected = malloc(demo->samples * sizeof(*expected));
    const float *found = demo->output + trace * demo->samples;
    uint64_t i = 0;
    if (!expected)
        return fail(error, 1, "not identical to the reference: trace %" PRIu64 " (from 0)", trace);
    reference(demo, trace, 1, expected);
    while (i + 1 < demo->samples && !memcmp(&found[i], &expected[i], sizeof(*found)))
        i++;
    fail(error, 1, "not identical to the reference: trace %" PRIu64 ", sample %" PRIu64 " (from 0) is %a, not %a",
         trace, i, (double)found[i], (double)expected[i]);
    free(expected);
    return 1;
}

static int reference_check(const struct demo *demo, struct error *error)
{
    struct comparison comparison = {.demo = demo, .lock = PTHREAD_MUTEX_INITIALIZER};
    parallel_rows(demo->traces, compare_rows, &comparison);
    if (comparison.out_of_memory)
        return fail(error, EX_OSERR, "out of memory while comparing; give fewer --samples");
    return comparison.different ? error_different(demo, comparison.trace, error) : 0;
}

int main(int argc, char **argv)
{
    struct common_options common = {.socket_path = NULL};
    struct error error = {.exit_code = 0};
    if (own_descriptors_occupy())
        return EX_OSERR;
    if (argc > 0)
        argv[0] = (char *)"scand-demo";
    int result = demo_command(argc, argv, &common, reference_check, "identical to the reference", &error);
    if (!result && common.help)
        demo_help("scand-demo");
    if (result)
        fprintf(stderr, "scand-demo: %s\n", error.text);
    return result;
}

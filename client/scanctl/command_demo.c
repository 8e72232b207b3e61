/*
 * scanctl demo: the check is a plain loop in double precision. It adds in another order than the daemon, so the results
 * may differ in their last bits: by at most DEMO_TOLERANCE of the trace's largest value.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "commands.h"
#include "demo.h"
#include "share.h"

#define DEMO_TOLERANCE 1e-6
#define DEMO_OUTCOME   "within 1e-6 of a plain loop in double precision"

struct checking {
    const struct demo *demo;
    pthread_mutex_t lock; /* of what follows */
    bool out_of_memory;
    bool wrong;
    uint64_t trace, sample; /* the first wrong one */
    double found, expected;
};

/* Forward, rounded to f32, then backward: what the job was asked for. Returns the largest magnitude. */
static double plain_scan(const float *input, uint64_t samples, double *out)
{
    double sum = 0, largest = 0;
    for (uint64_t i = 0; i < samples; i++) {
        sum += (double)input[i];
        out[i] = (float)sum;
    }
    sum = 0;
    for (uint64_t i = samples; i-- > 0;) {
        sum += out[i];
        out[i] = sum;
        largest = fabs(sum) > largest ? fabs(sum) : largest;
    }
    return largest;
}

static void note_wrong(struct checking *checking, uint64_t trace, uint64_t sample, double found, double expected)
{
    pthread_mutex_lock(&checking->lock);
    if (!checking->wrong || trace < checking->trace) {
        checking->wrong = true;
        checking->trace = trace;
        checking->sample = sample;
        checking->found = found;
        checking->expected = expected;
    }
    pthread_mutex_unlock(&checking->lock);
}

static void check_rows(void *context, uint64_t first, uint64_t count)
{
    struct checking *checking = context;
    uint64_t samples = checking->demo->samples;
    double *expected = malloc(samples * sizeof(*expected));
    if (!expected) {
        pthread_mutex_lock(&checking->lock);
        checking->out_of_memory = true;
        pthread_mutex_unlock(&checking->lock);
        return;
    }
    for (uint64_t trace = first; trace < first + count; trace++) {
        const float *output = checking->demo->output + trace * samples;
        double bound = DEMO_TOLERANCE * plain_scan(checking->demo->input + trace * samples, samples, expected);
        for (uint64_t i = 0; i < samples; i++) {
            if (fabs((double)output[i] - expected[i]) <= bound) /* false for NaN */
                continue;
            note_wrong(checking, trace, i, (double)output[i], expected[i]);
            break;
        }
    }
    free(expected);
}

static int plain_check(const struct demo *demo, struct fault *fault)
{
    struct checking checking = {.demo = demo, .lock = PTHREAD_MUTEX_INITIALIZER};
    share_rows(demo->traces, check_rows, &checking);
    if (checking.out_of_memory)
        return fault_set(fault, EX_OSERR, "out of memory while checking the result; give fewer --samples");
    if (!checking.wrong)
        return 0;
    return fault_set(fault, 1,
                     "the result is wrong: trace %" PRIu64 ", sample %" PRIu64
                     " (from 0) is %.9g, not %.9g within %g of the "
                     "trace's largest value; please report this",
                     checking.trace, checking.sample, checking.found, checking.expected, DEMO_TOLERANCE);
}

int command_demo(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return demo_command(argc, argv, common, plain_check, DEMO_OUTCOME, fault);
}

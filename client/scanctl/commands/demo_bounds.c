#include "client/scanctl/commands/demo_bounds.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "client/scanctl/commands/parallel_rows.h"

struct checking {
    const struct demo *demo;
    pthread_mutex_t lock; /* guards what follows */
    bool out_of_memory;
    bool wrong;
    uint64_t trace, sample; /* the first wrong sample */
    float found, low, high;
};

void bounds_make(const float *trace, uint64_t samples, float *low, float *high)
{
    /* The bound's factor of error: n u for the sums that are checked, n u for the sums here, and as much again for the
     * roundings of the bounds. */
    const double error = 4 * (double)samples * (DBL_EPSILON / 2);
    double sum = 0, sum_low = 0, sum_high = 0, magnitude = 0;
    for (uint64_t i = 0; i < samples; i++) {
        sum += (double)trace[i];
        magnitude += fabs((double)trace[i]);
        low[i] = (float)(sum - error * magnitude);
        high[i] = (float)(sum + error * magnitude);
    }
    magnitude = 0;
    for (uint64_t i = samples; i-- > 0;) {
        sum_low += (double)low[i];
        sum_high += (double)high[i];
        magnitude += fmax(fabs((double)low[i]), fabs((double)high[i]));
        low[i] = (float)(sum_low - error * magnitude);
        high[i] = (float)(sum_high + error * magnitude);
    }
}

static void note_wrong(struct checking *checking, uint64_t trace, uint64_t sample, float low, float high)
{
    pthread_mutex_lock(&checking->lock);
    if (!checking->wrong || trace < checking->trace) {
        checking->wrong = true;
        checking->trace = trace;
        checking->sample = sample;
        checking->found = checking->demo->output[trace * checking->demo->samples + sample];
        checking->low = low;
        checking->high = high;
    }
    pthread_mutex_unlock(&checking->lock);
}

static void note_out_of_memory(struct checking *checking)
{
    pthread_mutex_lock(&checking->lock);
    checking->out_of_memory = true;
    pthread_mutex_unlock(&checking->lock);
}

static void check_rows(void *context, uint64_t first, uint64_t count)
{
    struct checking *checking = context;
    const struct demo *demo = checking->demo;
    float *low = malloc(2 * demo->samples * sizeof(*low)), *high = low + demo->samples;
    if (!low) {
        note_out_of_memory(checking);
        return;
    }
    for (uint64_t trace = first; trace < first + count; trace++) {
        const float *output = demo->output + trace * demo->samples;
        uint64_t i = 0;
        bounds_make(demo->input + trace * demo->samples, demo->samples, low, high);
        while (i < demo->samples && output[i] >= low[i] && output[i] <= high[i]) /* false for NaN */
            i++;
        if (i < demo->samples)
            note_wrong(checking, trace, i, low[i], high[i]);
    }
    free(low);
}

int bounds_check(const struct demo *demo, struct error *error)
{
    struct checking checking = {.demo = demo, .lock = PTHREAD_MUTEX_INITIALIZER};
    parallel_rows(demo->traces, check_rows, &checking);
    if (checking.out_of_memory)
        return fail(error, EX_TEMPFAIL, "out of memory while checking the result; give fewer --samples");
    if (!checking.wrong)
        return 0;
    return fail(error, 1,
                "the result is wrong: trace %" PRIu64 ", sample %" PRIu64
                " (from 0) is %.9g, where sums in any order give %.9g to %.9g; please report this",
                checking.trace, checking.sample, (double)checking.found, (double)checking.low, (double)checking.high);
}

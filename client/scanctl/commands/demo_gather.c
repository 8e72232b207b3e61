#include "client/scanctl/commands/demo_gather.h"

#include <math.h>

#define EVENTS          16
#define WAVELET_SAMPLES 24   /* from the Ricker wavelet's middle to where it has died away */
#define WAVELET_STEPS   16   /* per sample: events arrive between samples */
#define PEAK_FREQUENCY  0.08 /* cycles per sample: 40 Hz at 2 ms */
#define NOISE           0.05f
#define OFFSET          0.02f /* of a trace, at most */

struct event {
    double time;     /* zero-offset arrival, in samples */
    double slowness; /* samples per trace */
    float amplitude;
};

/* splitmix64: any counter gives its own random bits. */
static uint64_t random_bits(uint64_t counter)
{
    uint64_t z = counter * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns a number in [-1, 1). */
static float random_unit(uint32_t bits)
{
    return (float)((int32_t)bits >> 8) * 0x1p-23f;
}

static void wavelet_make(float *wavelet)
{
    for (int i = 0; i <= 2 * WAVELET_SAMPLES * WAVELET_STEPS; i++) {
        double t = (double)i / WAVELET_STEPS - WAVELET_SAMPLES;
        double a = t * t * (PEAK_FREQUENCY * PEAK_FREQUENCY * 9.869604401089358); /* (pi f t)^2 */
        wavelet[i] = (float)((1 - 2 * a) * exp(-a));
    }
}

static void events_make(const struct gather *gather, struct event *events)
{
    for (uint64_t i = 0; i < EVENTS; i++) {
        uint64_t bits = random_bits(gather->seed * EVENTS + i + 1);
        double fraction = ((double)i + 0.5 + 0.4 * random_unit((uint32_t)bits)) / EVENTS;
        events[i].time = fraction * (double)gather->samples;
        events[i].slowness = 2.0 * (double)gather->samples / (double)gather->traces / (1 + 3 * fraction);
        events[i].amplitude = random_unit((uint32_t)(bits >> 32)) / (float)(0.25 + fraction);
    }
}

static void trace_add_event(const struct gather *gather, const struct event *event, const float *wavelet,
                            uint64_t trace, float *out)
{
    double offset = ((double)trace - (double)gather->traces / 2) * event->slowness;
    double arrival = sqrt(event->time * event->time + offset * offset);
    if (arrival >= (double)gather->samples + WAVELET_SAMPLES)
        return;
    int64_t first = (int64_t)ceil(arrival) - WAVELET_SAMPLES;
    int64_t step = (int64_t)(((double)first - arrival + WAVELET_SAMPLES) * WAVELET_STEPS);
    for (int64_t i = first; step <= 2 * WAVELET_SAMPLES * WAVELET_STEPS; i++, step += WAVELET_STEPS)
        if (i >= 0 && i < (int64_t)gather->samples)
            out[i] += event->amplitude * wavelet[step];
}

static void trace_add_noise(const struct gather *gather, uint64_t trace, float *out)
{
    uint64_t counter = (gather->seed + 1) * UINT64_C(0xd1342543de82ef95) + trace * (gather->samples / 2 + 2);
    float offset = OFFSET * random_unit((uint32_t)random_bits(counter++));
    for (uint64_t i = 0; i < gather->samples; i += 2) {
        uint64_t bits = random_bits(counter++);
        out[i] = offset + NOISE * random_unit((uint32_t)bits);
        if (i + 1 < gather->samples)
            out[i + 1] = offset + NOISE * random_unit((uint32_t)(bits >> 32));
    }
}

void gather_fill(const struct gather *gather, uint64_t first, uint64_t count, float *out)
{
    float wavelet[2 * WAVELET_SAMPLES * WAVELET_STEPS + 1];
    struct event events[EVENTS];
    wavelet_make(wavelet);
    events_make(gather, events);
    for (uint64_t i = 0; i < count; i++, out += gather->samples) {
        trace_add_noise(gather, first + i, out);
        for (int event = 0; event < EVENTS; event++)
            trace_add_event(gather, &events[event], wavelet, first + i, out);
    }
}

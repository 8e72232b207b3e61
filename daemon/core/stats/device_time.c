#include "device_time.h"

#include <assert.h>

/* Does not look at the chunks: with many of them out, one comes or goes all the time. */
static void meter_pass(struct meter *meter, uint64_t now_us)
{
    uint64_t passed_us = now_us - meter->read_us;
    meter->read_us = now_us;
    if (meter->count == 0)
        return;
    uint64_t shared = passed_us * 1000 * METER_WEIGHT + meter->rest;
    meter->busy_us += passed_us;
    meter->each_ns += shared / meter->weight;
    meter->rest = shared % meter->weight;
}

static void metered_pay(struct meter *meter, struct metered *chunk)
{
    uint64_t part = (meter->each_ns - chunk->from_ns) * chunk->weight;
    *chunk->account_ns += part / METER_WEIGHT;
    meter->rest += part % METER_WEIGHT;
    chunk->from_ns = meter->each_ns;
}

void meter_read(struct meter *meter, uint64_t now_us)
{
    meter_pass(meter, now_us);
    for (unsigned i = 0; i < meter->count; i++)
        metered_pay(meter, &meter->out[i]);
}

uint64_t meter_weight(uint64_t bytes, uint64_t chunk_bytes)
{
    const uint64_t weight = bytes * METER_WEIGHT / chunk_bytes;
    return weight == 0 ? 1 : weight < METER_WEIGHT ? weight : METER_WEIGHT;
}

void meter_begin(struct meter *meter, uint64_t *account_ns, uint64_t weight, uint64_t now_us)
{
    assert(weight > 0 && meter->count < LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS);
    meter_pass(meter, now_us);
    meter->out[meter->count++] = (struct metered){account_ns, weight, meter->each_ns};
    meter->weight += weight;
}

/* Which of an account's chunks of one weight is left out makes no difference to what it pays for all of them. */
void meter_end(struct meter *meter, uint64_t *account_ns, uint64_t weight, uint64_t now_us)
{
    unsigned i = 0;
    meter_pass(meter, now_us);
    while (i < meter->count && (meter->out[i].account_ns != account_ns || meter->out[i].weight != weight))
        i++;
    assert(i < meter->count);
    metered_pay(meter, &meter->out[i]);
    meter->out[i] = meter->out[--meter->count];
    meter->weight -= weight;
}

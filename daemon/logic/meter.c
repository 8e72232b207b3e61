#include "meter.h"

#include <assert.h>

/* Does not look at the chunks: with many of them out, one comes or goes all the time. */
static void meter_pass(struct meter *meter, uint64_t now_us)
{
    uint64_t passed_us = now_us - meter->read_us;
    meter->read_us = now_us;
    if (meter->count == 0)
        return;
    uint64_t shared_ns = passed_us * 1000 + meter->rest_ns;
    meter->busy_us += passed_us;
    meter->each_ns += shared_ns / meter->count;
    meter->rest_ns = shared_ns % meter->count;
}

static void metered_pay(const struct meter *meter, struct metered *chunk)
{
    *chunk->account_ns += meter->each_ns - chunk->from_ns;
    chunk->from_ns = meter->each_ns;
}

void meter_read(struct meter *meter, uint64_t now_us)
{
    meter_pass(meter, now_us);
    for (unsigned i = 0; i < meter->count; i++)
        metered_pay(meter, &meter->out[i]);
}

void meter_begin(struct meter *meter, uint64_t *account_ns, uint64_t now_us)
{
    assert(meter->count < LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS);
    meter_pass(meter, now_us);
    meter->out[meter->count++] = (struct metered){account_ns, meter->each_ns};
}

/* Which of an account's chunks is left out makes no difference to what it pays for all of them. */
void meter_end(struct meter *meter, uint64_t *account_ns, uint64_t now_us)
{
    unsigned i = 0;
    meter_pass(meter, now_us);
    while (i < meter->count && meter->out[i].account_ns != account_ns)
        i++;
    assert(i < meter->count);
    metered_pay(meter, &meter->out[i]);
    meter->out[i] = meter->out[--meter->count];
}

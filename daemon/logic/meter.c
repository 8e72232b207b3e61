#include "meter.h"

#include <assert.h>

void meter_read(struct meter *meter, uint64_t now_us)
{
    uint64_t passed_us = now_us - meter->read_us;
    meter->read_us = now_us;
    if (meter->count == 0 || passed_us == 0)
        return;
    meter->busy_us += passed_us;
    for (unsigned i = 0; i < meter->count; i++)
        *meter->accounts[i] += passed_us / meter->count + (i < passed_us % meter->count);
}

void meter_begin(struct meter *meter, uint64_t *account_us, uint64_t now_us)
{
    assert(meter->count < LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS);
    meter_read(meter, now_us);
    meter->accounts[meter->count++] = account_us;
}

void meter_end(struct meter *meter, uint64_t *account_us, uint64_t now_us)
{
    unsigned i = 0;
    meter_read(meter, now_us);
    while (i < meter->count && meter->accounts[i] != account_us)
        i++;
    assert(i < meter->count);
    meter->accounts[i] = meter->accounts[--meter->count];
}

#include "device_time.h"

#include <assert.h>

/* Does not look at the chunks: with many of them out, one comes or goes all the time. */
static void device_time_pass(struct device_time *device_time, uint64_t now_us)
{
    uint64_t passed_us = now_us - device_time->read_us;
    device_time->read_us = now_us;
    if (device_time->count == 0)
        return;
    uint64_t shared = passed_us * 1000 * DEVICE_TIME_WEIGHT + device_time->rest;
    device_time->busy_us += passed_us;
    device_time->each_ns += shared / device_time->weight;
    device_time->rest = shared % device_time->weight;
}

static void charged_pay(struct device_time *device_time, struct charged *chunk)
{
    uint64_t part = (device_time->each_ns - chunk->from_ns) * chunk->weight;
    *chunk->account_ns += part / DEVICE_TIME_WEIGHT;
    device_time->rest += part % DEVICE_TIME_WEIGHT;
    chunk->from_ns = device_time->each_ns;
}

void device_time_read(struct device_time *device_time, uint64_t now_us)
{
    device_time_pass(device_time, now_us);
    for (unsigned i = 0; i < device_time->count; i++)
        charged_pay(device_time, &device_time->out[i]);
}

uint64_t device_time_weight(uint64_t bytes, uint64_t chunk_bytes)
{
    const uint64_t weight = bytes * DEVICE_TIME_WEIGHT / chunk_bytes;
    return weight == 0 ? 1 : weight < DEVICE_TIME_WEIGHT ? weight : DEVICE_TIME_WEIGHT;
}

void device_time_begin(struct device_time *device_time, uint64_t *account_ns, uint64_t weight, uint64_t now_us)
{
    assert(weight > 0 && device_time->count < LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS);
    device_time_pass(device_time, now_us);
    device_time->out[device_time->count++] = (struct charged){account_ns, weight, device_time->each_ns};
    device_time->weight += weight;
}

/* Ends a chunk of an account. It makes no difference to what the account pays which of its chunks of one weight ends
 * here. */
void device_time_end(struct device_time *device_time, uint64_t *account_ns, uint64_t weight, uint64_t now_us)
{
    unsigned i = 0;
    device_time_pass(device_time, now_us);
    while (i < device_time->count &&
           (device_time->out[i].account_ns != account_ns || device_time->out[i].weight != weight))
        i++;
    assert(i < device_time->count);
    charged_pay(device_time, &device_time->out[i]);
    device_time->out[i] = device_time->out[--device_time->count];
    device_time->weight -= weight;
}

/* The device's busy time and whom it is charged to, and histograms of times. */
#include "daemon/core/stats/device_time.h"
#include "daemon/core/stats/histogram.h"
#include "tests/check.h"

static void busy_time_is_shared(void)
{
    struct device_time device_time = {0};
    uint64_t anna = 0, bert = 0;
    device_time_begin(&device_time, &anna, DEVICE_TIME_WEIGHT, 1000); /* what was before is nobody's */
    device_time_begin(&device_time, &anna, DEVICE_TIME_WEIGHT, 1100);
    device_time_read(&device_time, 1100);
    CHECK_EQ(anna, 100000);
    device_time_begin(&device_time, &bert, DEVICE_TIME_WEIGHT, 1200);
    device_time_read(&device_time, 1200);
    CHECK_EQ(anna, 200000);
    device_time_end(&device_time, &anna, DEVICE_TIME_WEIGHT, 1301);
    device_time_read(&device_time, 1301);
    CHECK(anna == 200000 + 67333 && bert == 33667); /* the 2 ns that three could not share went to the two left */
    device_time_read(&device_time, 1401);
    CHECK(anna == 267333 + 50000 && bert == 33667 + 50000);
    device_time_end(&device_time, &anna, DEVICE_TIME_WEIGHT, 1401);
    device_time_end(&device_time, &bert, DEVICE_TIME_WEIGHT, 1501);
    CHECK_EQ(device_time.count, 0);
    device_time_read(&device_time, 9999);
    CHECK_EQ(device_time.busy_us, 501);
    CHECK_EQ(anna + bert, 501000);
}

/* Small chunks cost what their bytes would: by time, a small chunk that is always there would have half. */
static void small_chunks_cost_what_their_bytes_would(void)
{
    struct device_time device_time = {0};
    uint64_t large = 0, small = 0, weight = device_time_weight(8000, MIB(8));
    CHECK_EQ(weight, 1);
    CHECK_EQ(device_time_weight(KIB(256), MIB(8)), DEVICE_TIME_WEIGHT / 32);
    CHECK(device_time_weight(1, MIB(8)) == 1 && device_time_weight(MIB(9), MIB(8)) == DEVICE_TIME_WEIGHT);
    device_time_begin(&device_time, &large, DEVICE_TIME_WEIGHT, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        device_time_begin(&device_time, &small, weight, i * 50);
        device_time_end(&device_time, &small, weight, i * 50 + 50);
    }
    CHECK(small > 50000000 / 1100 && small < 50000000 / 1000); /* of 50 ms */
    device_time_end(&device_time, &large, DEVICE_TIME_WEIGHT, 50000);
    CHECK(large + small <= 50000000 && large + small >= 49999999);
    device_time_begin(&device_time, &small, weight, 50000); /* alone, it is what the device works for */
    device_time_end(&device_time, &small, weight, 50050);
    CHECK_EQ(large + small, 50050000);
    CHECK_EQ(device_time.busy_us, 50050);
}

static void busy_time_adds_up(void)
{
    struct device_time device_time = {0};
    uint64_t accounts[3] = {0}, seed = random_seed(), now_us = 0, out[LIMIT_CHUNKS_IN_FLIGHT], out_count = 0;
    const uint64_t weights[3] = {DEVICE_TIME_WEIGHT, 1, 33}; /* weights of each account's chunks */
    for (int i = 0; i < 10000; i++) {
        now_us += random_next(&seed) % 100;
        if (out_count == 0 || (out_count < LIMIT_CHUNKS_IN_FLIGHT && random_next(&seed) % 2)) {
            out[out_count] = random_next(&seed) % 3;
            device_time_begin(&device_time, &accounts[out[out_count]], weights[out[out_count]], now_us);
            out_count++;
        } else {
            uint64_t which = random_next(&seed) % out_count;
            device_time_end(&device_time, &accounts[out[which]], weights[out[which]], now_us);
            out[which] = out[--out_count];
        }
        if (i % 3 == 0)
            device_time_read(&device_time, now_us);
        if (i % 3 == 0 || out_count == 0)
            CHECK_EQ((accounts[0] + accounts[1] + accounts[2]) * DEVICE_TIME_WEIGHT + device_time.rest,
                     device_time.busy_us * 1000 * DEVICE_TIME_WEIGHT);
    }
}

static void times_fall_into_buckets(void)
{
    struct msg_histograms_result all;
    histograms_init(&all);
    CHECK(all.bounds_us_count > 1 && all.job_queued.counts_count == all.bounds_us_count + 1);
    for (uint32_t i = 1; i < all.bounds_us_count; i++)
        CHECK(all.bounds_us[i - 1] < all.bounds_us[i]);
    uint32_t last = all.bounds_us_count;
    histogram_add(&all, &all.job_queued, 0);
    histogram_add(&all, &all.job_queued, all.bounds_us[0]);
    histogram_add(&all, &all.job_queued, all.bounds_us[0] + 1);
    histogram_add(&all, &all.job_queued, all.bounds_us[last - 1]);
    histogram_add(&all, &all.job_queued, all.bounds_us[last - 1] + 1);
    const uint64_t *counts = all.job_queued.counts;
    CHECK(counts[0] == 2 && counts[1] == 1 && counts[last - 1] == 1 && counts[last] == 1);
    CHECK_EQ(all.job_queued.sum_us, 2 * all.bounds_us[0] + 1 + 2 * all.bounds_us[last - 1] + 1);
    CHECK_EQ(all.job_duration.sum_us, 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(busy_time_is_shared),
        TEST(small_chunks_cost_what_their_bytes_would),
        TEST(busy_time_adds_up),
        TEST(times_fall_into_buckets),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

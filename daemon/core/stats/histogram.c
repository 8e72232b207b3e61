#include "histogram.h"

#include <assert.h>
#include <string.h>

static const uint64_t bounds_us[] = {5,       10,      25,      50,       100,      250,      500,      1000,
                                     2500,    5000,    10000,   25000,    50000,    100000,   250000,   500000,
                                     1000000, 2500000, 5000000, 10000000, 25000000, 50000000, 100000000};

#define BOUND_COUNT (sizeof bounds_us / sizeof bounds_us[0])
static_assert(BOUND_COUNT < LIMIT_BUCKETS, "a bucket for each bound, and one for what is longer");

void histograms_init(struct msg_histograms_result *histograms)
{
    *histograms = (struct msg_histograms_result){.bounds_us_count = BOUND_COUNT};
    memcpy(histograms->bounds_us, bounds_us, sizeof bounds_us);
#define EMPTY(X, S, NAME, TEXT) histograms->NAME.counts_count = BOUND_COUNT + 1;
    HISTOGRAMS(EMPTY, , )
#undef EMPTY
}

void histogram_add(const struct msg_histograms_result *all, struct msg_histogram *histogram, uint64_t time_us)
{
    uint32_t bucket = 0;
    while (bucket < all->bounds_us_count && time_us > all->bounds_us[bucket])
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum_us += time_us;
}

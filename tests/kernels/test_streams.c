/* Launches on different streams have places of their own, however many launches and streams there have been. */
#include "kernels/cuda/streams.h"
#include "tests/check.h"

static const char handles[2 * STREAMS_MAX];

static void a_stream_keeps_its_number(void)
{
    struct streams streams = {0};
    CHECK_EQ(streams_number(&streams, &handles[1]), 0);
    CHECK_EQ(streams_number(&streams, NULL), 1); /* the default stream */
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(streams_number(&streams, &handles[1]), 0);
        CHECK_EQ(streams_number(&streams, &handles[2 + i % 5]), 2 + i % 5);
    }
}

static void streams_share_no_number(void)
{
    struct streams streams = {0};
    for (int i = 0; i < STREAMS_MAX; i++)
        CHECK_EQ(streams_number(&streams, &handles[i]), i);
    CHECK_EQ(streams_number(&streams, &handles[STREAMS_MAX]), -1);
    CHECK_EQ(streams_number(&streams, &handles[STREAMS_MAX - 1]), STREAMS_MAX - 1);
    streams_forget(&streams);
    CHECK_EQ(streams_number(&streams, &handles[STREAMS_MAX]), 0);
    CHECK_EQ(streams_number(&streams, &handles[0]), 1);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(a_stream_keeps_its_number), TEST(streams_share_no_number), TEST_END};
    return test_main(argc, argv, tests);
}

/* What counts as a sleep at memory: a sleep and a page that was not there. */
#include "protocol/slept.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

#define PAGES   64
#define NAP_US  20000
#define PAGE_AT 4096

static volatile unsigned char *memory;

/* Meets pages that are not there, or are. */
static void touch(void)
{
    for (size_t i = 0; i < PAGES; i++)
        memory[i * PAGE_AT] = 1;
}

static void begin(struct slept *slept)
{
    void *mapped = mmap(NULL, PAGES * PAGE_AT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    memory = mapped;
    slept_begin(slept);
    usleep(1);
    (void)slept_us(slept); /* the pages of these functions are there from now on */
    slept_begin(slept);
}

static void sleeping_alone_does_not_count(void)
{
    struct slept slept;
    begin(&slept);
    usleep(NAP_US);
    CHECK_EQ(slept_us(&slept), 0);
}

static void pages_alone_do_not_count(void)
{
    struct slept slept;
    struct rusage before, now;
    begin(&slept);
    getrusage(RUSAGE_THREAD, &before);
    touch();
    getrusage(RUSAGE_THREAD, &now);
    CHECK(now.ru_minflt > before.ru_minflt);
    CHECK(!slept_at_memory(&before, &now) || now.ru_nvcsw > before.ru_nvcsw);
}

static void both_count(void)
{
#if SLEPT_IS_KNOWN
    struct slept slept;
    begin(&slept);
    touch();
    usleep(NAP_US);
    CHECK(slept_us(&slept) >= NAP_US / 2);
#else
    SKIP("a sanitizer has pages and sleeps of its own");
#endif
}

static const struct test tests[] = {
    TEST(sleeping_alone_does_not_count),
    TEST(pages_alone_do_not_count),
    TEST(both_count),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

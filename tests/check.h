/*
 * Common parts of the test programs: checks that print where and what, a list of tests, a seeded generator.
 *
 * A test program is a list of functions: int main(int argc, char **argv) { return test_main(argc, argv, tests); } It
 * runs all of them, or those whose names contain an argument, or a part of those, and ends in "N passed, N failed, N
 * skipped".
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(NAME)  \
    {               \
#NAME, NAME \
    }
#define TEST_END   \
    {              \
        NULL, NULL \
    }

static int check_failures; /* failures of the running test */
static const char *check_skipped;

#define CHECK(CONDITION)                                                                            \
    do {                                                                                            \
        if (!(CONDITION)) {                                                                         \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #CONDITION); \
            check_failures++;                                                                       \
        }                                                                                           \
    } while (0)

/* Compares integers and prints both. */
#define CHECK_EQ(A, B)                                                                                               \
    do {                                                                                                             \
        long long check_a = (long long)(A), check_b = (long long)(B);                                                \
        if (check_a != check_b) {                                                                                    \
            fprintf(stderr, "%s:%d: %s: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, __func__, #A, check_a, #B, \
                    check_b);                                                                                        \
            check_failures++;                                                                                        \
        }                                                                                                            \
    } while (0)

/* The text contains the words; prints it otherwise. For error messages. */
#define CHECK_CONTAINS(TEXT, WORDS)                                                                  \
    do {                                                                                             \
        const char *check_text = (TEXT);                                                             \
        if (!check_text || !strstr(check_text, WORDS)) {                                             \
            fprintf(stderr, "%s:%d: %s: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, __func__, WORDS, \
                    check_text ? check_text : "(null)");                                             \
            check_failures++;                                                                        \
        }                                                                                            \
    } while (0)

/* Checks, and leaves the test where going on makes no sense. */
#define REQUIRE(CONDITION)                  \
    do {                                    \
        int check_before = check_failures;  \
        CHECK(CONDITION);                   \
        if (check_failures != check_before) \
            return;                         \
    } while (0)

#define SKIP(WHY)              \
    do {                       \
        check_skipped = (WHY); \
        return;                \
    } while (0)

/* Returns the next random number, by splitmix64. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns $TEST_SEED, or a new seed, and prints it, so that a failure can be repeated. */
static inline uint64_t random_seed(void)
{
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("seed: TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* True when $TEST_PART, say "2/8" of eight parts that together are all tests, has the test; without it all are in. */
static inline bool test_is_in_part(unsigned number)
{
    const char *given = getenv("TEST_PART");
    unsigned part, parts;
    return !given || sscanf(given, "%u/%u", &part, &parts) != 2 || parts == 0 || number % parts == part % parts;
}

static inline bool test_has(const struct test *tests, const char *words)
{
    while (tests->name && !strstr(tests->name, words))
        tests++;
    return tests->name;
}

static inline int test_main(int argc, char **argv, const struct test *tests)
{
    int passed = 0, failed = 0, skipped = 0;
    unsigned number = 0;
    for (int i = 1; i < argc; i++)
        if (!test_has(tests, argv[i])) { /* a name that was changed elsewhere would pass for ever */
            printf("no test's name contains \"%s\"\n", argv[i]);
            return 1;
        }
    for (const struct test *test = tests; test->name; test++) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted = wanted || strstr(test->name, argv[i]);
        if (!wanted || !test_is_in_part(number++))
            continue;
        check_failures = 0;
        check_skipped = NULL;
        test->run();
        if (check_failures)
            failed++;
        else if (check_skipped)
            skipped++;
        else
            passed++;
        if (check_failures || check_skipped)
            printf("%s: %s%s\n", test->name,
                   check_failures ? "FAILED" : "skipped: ", check_failures ? "" : check_skipped);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed || !skipped ? 0 : 77;
}

#endif

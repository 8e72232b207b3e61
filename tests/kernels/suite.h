/*
 * Suites: tests that are run for groups of implementations, namely all whose names begin as the group's does. A test's
 * name begins with the group's, so that, say, "test_kernels cuda" runs those of the GPU. Each case is made once for the
 * group, and scanned once by the reference, which takes longer than the others. $TEST_IMPLEMENTATION is the only one of
 * its group to be run.
 */
#ifndef TESTS_KERNELS_SUITE_H
#define TESTS_KERNELS_SUITE_H

#include <string.h>

#include "kernels/order1/dtypes.h"
#include "tests/check.h"
#include "tests/kernels/case.h"

#define FAILURES_MAX        5 /* failures that one test prints */
#define IMPLEMENTATIONS_MAX 12

/* Sanitizers take ten times as long: of cases that are many and alike, one of so many is checked. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONE_OF 8
#else
#define ONE_OF 1
#endif

static uint64_t seed;
static unsigned cases, cases_left_out; /* cases of the running suite */

struct group {
    const struct implementation *list[IMPLEMENTATIONS_MAX];
    unsigned count;
};

static void group_add(struct group *group, const char *name, const struct implementation *list, size_t count)
{
    const char *only = getenv("TEST_IMPLEMENTATION");
    for (size_t i = 0; i < count && group->count < IMPLEMENTATIONS_MAX; i++)
        if (strncmp(list[i].name, name, strlen(name)) == 0 && (!only || strcmp(list[i].name, only) == 0) &&
            list[i].available())
            group->list[group->count++] = &list[i];
}

static void check(const struct group *group, const struct scan_case *c)
{
    cases++;
    if (check_failures >= FAILURES_MAX)
        return;
    uint64_t random = seed;
    CHECK(case_check(c, group->list, group->count, &random));
}

/* A case of many that are alike. Which of them are checked is the same in each run, and has no period that a suite's
 * loops could have: they are those where multiples of the golden ratio fall. */
static inline void check_some(const struct group *group, const struct scan_case *c)
{
    static uint32_t place;
    place += UINT32_C(0x9e3779b9);
    if (place <= UINT32_MAX / ONE_OF) {
        check(group, c);
        return;
    }
    cases++;
    cases_left_out++;
}

static void suite_run(const char *name, void (*suite)(const struct group *group))
{
    struct group group = {0};
    group_add(&group, name, cpu_implementations, cpu_implementation_count);
#ifdef SCAND_HAVE_CUDA
    group_add(&group, name, cuda_implementations, cuda_implementation_count);
    group_add(&group, name, cuda_choices, cuda_choice_count);
#endif
    if (group.count == 0)
        SKIP("this machine or build cannot run it");
    cases = cases_left_out = 0;
    suite(&group);
    if (cases_left_out > 0)
        printf("%u of %u cases of this suite are left to builds without sanitizers\n", cases_left_out, cases);
}

#define SUITE(NAME, OF)           \
    static void NAME##_##OF(void) \
    {                             \
        suite_run(#NAME, OF);     \
    }

/* True when samples of one dtype may be written as another. */
static inline bool writes(enum scand_dtype input, enum scand_dtype output)
{
    if (codec_is_integer(input))
        return codec_is_integer(output) && codec_bytes(output) >= codec_bytes(input);
    return !codec_is_integer(output);
}

#endif

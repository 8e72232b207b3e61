/*
 * Suites: tests that are run for each implementation. A test's name begins with the implementation's, so that, say,
 * "test_kernels cuda" runs those of the GPU.
 */
#ifndef TESTS_KERNELS_SUITE_H
#define TESTS_KERNELS_SUITE_H

#include <string.h>

#include "kernels/order1/dtypes.h"
#include "tests/check.h"
#include "tests/kernels/case.h"

#define FAILURES_MAX        5 /* printed by one test */
#define IMPLEMENTATIONS_MAX 12

static uint64_t seed;

/* All implementations whose names begin with `name`. */
static unsigned implementations_find(const char *name, const struct implementation *found[IMPLEMENTATIONS_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < cpu_implementation_count; i++)
        if (strncmp(cpu_implementations[i].name, name, strlen(name)) == 0 && cpu_implementations[i].available())
            found[count++] = &cpu_implementations[i];
#ifdef SCAND_HAVE_CUDA
    for (size_t i = 0; i < cuda_implementation_count && count < IMPLEMENTATIONS_MAX; i++)
        if (strncmp(cuda_implementations[i].name, name, strlen(name)) == 0 && cuda_implementations[i].available())
            found[count++] = &cuda_implementations[i];
    for (size_t i = 0; i < cuda_choice_count && count < IMPLEMENTATIONS_MAX; i++)
        if (strncmp(cuda_choices[i].name, name, strlen(name)) == 0 && cuda_choices[i].available())
            found[count++] = &cuda_choices[i];
#endif
    return count;
}

static void check(const struct implementation *implementation, const struct scan_case *c)
{
    if (check_failures >= FAILURES_MAX)
        return;
    uint64_t random = seed;
    CHECK(case_check(c, implementation, &random));
}

static void suite_run(const char *name, void (*suite)(const struct implementation *implementation))
{
    const struct implementation *found[IMPLEMENTATIONS_MAX];
    unsigned count = implementations_find(name, found);
    if (count == 0)
        SKIP("this machine or build cannot run it");
    for (unsigned i = 0; i < count; i++)
        suite(found[i]);
}

#define SUITE(NAME, OF)           \
    static void NAME##_##OF(void) \
    {                             \
        suite_run(#NAME, OF);     \
    }

/* Whether samples of one dtype may be written as another. */
static inline bool writes(enum scand_dtype input, enum scand_dtype output)
{
    if (codec_is_integer(input))
        return codec_is_integer(output) && codec_bytes(output) >= codec_bytes(input);
    return !codec_is_integer(output);
}

#endif

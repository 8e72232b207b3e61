/*
 * The list of variants, for builds with and without CUDA.
 */
#include "kernels/variants/variants.h"

#include <string.h>

enum { CPU = true, CUDA = false };
enum { VARIES = false, FIXED = true };

#define X(SYMBOL, NAME, WHERE, ACCUMULATORS, ORDER, WORKSPACE, TEACHES) {NAME, TEACHES, ACCUMULATORS, WHERE, ORDER},
const struct variant variant_list[VARIANT_COUNT] = {VARIANTS(X)};
#undef X

int variant_find(const char *name)
{
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (strcmp(variant_list[i].name, name) == 0)
            return i;
    return -1;
}

uint64_t variant_no_workspace(const struct variant_scan *scan)
{
    (void)scan;
    return 0;
}

/* The ranges that a profiler sees of chunks; this program is the profiler. Without a profiler, nothing is called. Needs
 * no GPU. */
#define NVTX_NO_IMPL /* of its functions: this is the other side */
#include <nvtx3/nvToolsExt.h>
#include <string.h>

#include "daemon/device/cuda/range.h"
#include "tests/check.h"

static struct {
    char domain[16], text[64];
    int depth, ranges;
} seen;

static nvtxDomainHandle_t domain_create(const char *name)
{
    snprintf(seen.domain, sizeof seen.domain, "%s", name);
    return (nvtxDomainHandle_t)&seen;
}

static int range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    CHECK(domain == (nvtxDomainHandle_t)&seen && attributes->messageType == NVTX_MESSAGE_TYPE_ASCII);
    snprintf(seen.text, sizeof seen.text, "%s", attributes->message.ascii);
    seen.ranges++;
    return seen.depth++;
}

static int range_pop(nvtxDomainHandle_t domain)
{
    CHECK(domain == (nvtxDomainHandle_t)&seen);
    return --seen.depth;
}

static int look(NvtxGetExportTableFunc_t tables)
{
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
    return 1;
}

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = look;

static void chunks_are_ranges(void)
{
    const struct chunk first = {.job = 17, .user = 1000, .first = 0, .count = 209},
                       last = {.job = UINT64_MAX, .user = UINT32_MAX, .first = UINT64_MAX, .count = UINT64_MAX};
    cuda_range_begin(&first); /* before there is a domain */
    cuda_range_end();
    CHECK_EQ(seen.ranges, 0);
    cuda_range_init();
    cuda_range_init(); /* of several devices */
    CHECK_EQ(strcmp(seen.domain, "scand"), 0);
    cuda_range_begin(&first);
    CHECK_EQ(strcmp(seen.text, "job 17 user 1000 rows 0+209"), 0);
    cuda_range_begin(&last);
    CHECK(seen.depth == 2 && seen.ranges == 2);
    CHECK_CONTAINS(seen.text, "job 18446744073709551615 user 4294967295 rows 184467");
    cuda_range_end();
    cuda_range_end();
    CHECK_EQ(seen.depth, 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(chunks_are_ranges), TEST_END};
    return test_main(argc, argv, tests);
}

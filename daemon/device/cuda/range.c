#include "range.h"

#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static nvtxDomainHandle_t domain; /* NULL: nobody looks */

void cuda_range_init(void)
{
    if (!domain)
        domain = nvtxDomainCreateA("scand");
}

void cuda_range_begin(const struct chunk *chunk)
{
    char text[LIMIT_NAME_BYTES];
    if (!domain)
        return;
    snprintf(text, sizeof text, "job %" PRIu64 " user %" PRIu32 " rows %" PRIu64 "+%" PRIu64, chunk->job, chunk->user,
             chunk->first, chunk->count);
    const nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                              .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                              .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                              .message.ascii = text};
    nvtxDomainRangePushEx(domain, &attributes);
}

void cuda_range_end(void)
{
    if (domain)
        nvtxDomainRangePop(domain);
}

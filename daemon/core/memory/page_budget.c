#include "page_budget.h"

#include <errno.h>
#include <inttypes.h>

#include "protocol/available.h"
#include "protocol/status.h"

static uint64_t system_available(const char **limit)
{
    return memory_available_below("", limit);
}

void page_budget_init(struct page_budget *budget)
{
    budget->promised_bytes = 0;
    budget->available = system_available;
}

static int refuse(uint64_t bytes, uint64_t others, uint64_t available, const char *limit, const char *request,
                  struct error *error)
{
    return error_set(error, -ENOMEM,
                     "%s: %" PRIu64 " bytes of the memory have no pages yet, and %" PRIu64
                     " can be made (%s), of which others were promised %" PRIu64
                     "; import less, release buffers, or give the memory its pages before it is imported",
                     request, bytes, available, limit, others);
}

int page_budget_promise(struct page_budget *budget, uint64_t bytes, const char *request, struct error *error)
{
    const char *limit;
    uint64_t others = atomic_fetch_add(&budget->promised_bytes, bytes), available = budget->available(&limit);
    if (others <= available && bytes <= available - others)
        return 0;
    page_budget_settle(budget, bytes);
    return refuse(bytes, others, available, limit, request, error);
}

int page_budget_check(struct page_budget *budget, uint64_t bytes, const char *request, struct error *error)
{
    const char *limit;
    uint64_t available = budget->available(&limit);
    return bytes <= available ? 0 : refuse(bytes, 0, available, limit, request, error);
}

void page_budget_settle(struct page_budget *budget, uint64_t bytes)
{
    atomic_fetch_sub(&budget->promised_bytes, bytes);
}

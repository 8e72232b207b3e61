#include "page_budget.h"

#include <errno.h>
#include <inttypes.h>

#include "protocol/available.h"
#include "protocol/status.h"

static uint64_t system_available(const char **limit)
{
    return memory_available_below("", limit);
}

void room_init(struct room *room)
{
    room->promised_bytes = 0;
    room->available = system_available;
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

int room_promise(struct room *room, uint64_t bytes, const char *request, struct error *error)
{
    const char *limit;
    uint64_t others = atomic_fetch_add(&room->promised_bytes, bytes), available = room->available(&limit);
    if (others <= available && bytes <= available - others)
        return 0;
    room_settle(room, bytes);
    return refuse(bytes, others, available, limit, request, error);
}

int room_check(struct room *room, uint64_t bytes, const char *request, struct error *error)
{
    const char *limit;
    uint64_t available = room->available(&limit);
    return bytes <= available ? 0 : refuse(bytes, 0, available, limit, request, error);
}

void room_settle(struct room *room, uint64_t bytes)
{
    atomic_fetch_sub(&room->promised_bytes, bytes);
}

#include "deadlines.h"

#include <assert.h>
#include <stddef.h>

static void put(struct deadlines *deadlines, uint32_t place, struct deadline *deadline)
{
    deadlines->heap[place] = deadline;
    deadline->place = place;
}

static void rise(struct deadlines *deadlines, uint32_t place, struct deadline *deadline)
{
    for (; place > 1 && deadlines->heap[place / 2]->at_us > deadline->at_us; place /= 2)
        put(deadlines, place, deadlines->heap[place / 2]);
    put(deadlines, place, deadline);
}

/* Returns the place of the earlier one of the two below a place; 0: there is none. */
static uint32_t earlier_below(const struct deadlines *deadlines, uint32_t place)
{
    const uint32_t left = 2 * place, right = left + 1;
    if (left > deadlines->count)
        return 0;
    return right <= deadlines->count && deadlines->heap[right]->at_us < deadlines->heap[left]->at_us ? right : left;
}

static void sink(struct deadlines *deadlines, uint32_t place, struct deadline *deadline)
{
    for (uint32_t below; (below = earlier_below(deadlines, place)) && deadlines->heap[below]->at_us < deadline->at_us;
         place = below)
        put(deadlines, place, deadlines->heap[below]);
    put(deadlines, place, deadline);
}

void deadlines_add(struct deadlines *deadlines, struct deadline *deadline)
{
    assert(deadline->place == 0 && deadlines->count < DEADLINES_MAX);
    rise(deadlines, ++deadlines->count, deadline);
}

void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline)
{
    const uint32_t place = deadline->place;
    if (place == 0)
        return;
    struct deadline *last = deadlines->heap[deadlines->count--];
    deadline->place = 0;
    if (last == deadline)
        return;
    sink(deadlines, place, last);
    rise(deadlines, last->place, last);
}

struct deadline *deadlines_pop(struct deadlines *deadlines, uint64_t now_us)
{
    struct deadline *first = deadlines_first_us(deadlines) <= now_us ? deadlines->heap[1] : NULL;
    if (first)
        deadlines_remove(deadlines, first);
    return first;
}

#include "pin_units.h"

#include <errno.h>
#include <stdlib.h>

enum unit_state { UNIT_WAITS, UNIT_BEGUN, UNIT_PINNED };

int pin_units_init(struct pin_units *pin_units, uint64_t size_bytes)
{
    size_t count = (size_bytes + PIN_UNIT_BYTES - 1) / PIN_UNIT_BYTES;
    unsigned char *states = calloc(count, 1);
    if (!states)
        return -ENOMEM;
    *pin_units = (struct pin_units){.states = states, .count = count, .left = count};
    return 0;
}

void pin_units_finish(struct pin_units *pin_units)
{
    free(pin_units->states);
    *pin_units = (struct pin_units){0};
}

static bool unit_waits(const struct pin_units *pin_units, size_t unit)
{
    return unit < pin_units->count && pin_units->states[unit] == UNIT_WAITS;
}

size_t pin_units_begin(struct pin_units *pin_units, size_t most, size_t *first)
{
    while (pin_units->next < pin_units->count && !unit_waits(pin_units, pin_units->next))
        pin_units->next++;
    if (pin_units->next == pin_units->count)
        return 0;
    size_t begun = 0;
    *first = unit_waits(pin_units, pin_units->wanted) ? pin_units->wanted : pin_units->next;
    while (begun < most && unit_waits(pin_units, *first + begun))
        pin_units->states[*first + begun++] = UNIT_BEGUN;
    return begun;
}

void pin_units_note(struct pin_units *pin_units, size_t unit)
{
    pin_units->states[unit] = UNIT_PINNED;
    pin_units->left--;
    while (pin_units->front < pin_units->count && pin_units_is_pinned(pin_units, pin_units->front))
        pin_units->front++;
}

bool pin_units_is_pinned(const struct pin_units *pin_units, size_t unit)
{
    return pin_units->states[unit] == UNIT_PINNED;
}

bool pin_units_cover(struct pin_units *pin_units, struct extent extent)
{
    size_t first = extent.begin / PIN_UNIT_BYTES;
    for (size_t i = first > pin_units->front ? first : pin_units->front; i * PIN_UNIT_BYTES < extent.end; i++)
        if (!pin_units_is_pinned(pin_units, i)) {
            pin_units->wanted = i;
            return false;
        }
    return true;
}

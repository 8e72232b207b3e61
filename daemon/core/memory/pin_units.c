#include "pin_units.h"

#include <errno.h>
#include <stdlib.h>

enum piece_state { PIECE_WAITS, PIECE_BEGUN, PIECE_PINNED };

int pieces_init(struct pieces *pieces, uint64_t size_bytes)
{
    size_t count = (size_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    unsigned char *states = calloc(count, 1);
    if (!states)
        return -ENOMEM;
    *pieces = (struct pieces){.states = states, .count = count, .left = count};
    return 0;
}

void pieces_finish(struct pieces *pieces)
{
    free(pieces->states);
    *pieces = (struct pieces){0};
}

bool pieces_begin(struct pieces *pieces, size_t *piece)
{
    while (pieces->next < pieces->count && pieces->states[pieces->next] != PIECE_WAITS)
        pieces->next++;
    if (pieces->next == pieces->count)
        return false;
    *piece = pieces->states[pieces->wanted] == PIECE_WAITS ? pieces->wanted : pieces->next;
    pieces->states[*piece] = PIECE_BEGUN;
    return true;
}

void pieces_note(struct pieces *pieces, size_t piece)
{
    pieces->states[piece] = PIECE_PINNED;
    pieces->left--;
}

bool pieces_is_pinned(const struct pieces *pieces, size_t piece)
{
    return pieces->states[piece] == PIECE_PINNED;
}

bool pieces_cover(struct pieces *pieces, struct extent extent)
{
    for (size_t i = extent.begin / PIECE_BYTES; i * PIECE_BYTES < extent.end; i++)
        if (!pieces_is_pinned(pieces, i)) {
            pieces->wanted = i;
            return false;
        }
    return true;
}

/*
 * The tree of order 1 above the leaves, or above any of its levels.
 */
#ifndef KERNELS_ORDER1_TREE_H
#define KERNELS_ORDER1_TREE_H

#include "kernels/order1/accumulator.h"

/* Returns how many sums tree_carries needs as workspace. */
uint64_t tree_workspace(uint64_t count);

/*
 * Turns the totals of `count` consecutive members of one level (leaves, tiles, blocks, ...) into the carries into them:
 * the exclusive prefixes of that level and all levels above, outermost first. The member that the pass meets first has
 * no carry; its entry is left without meaning.
 */
void tree_carries(struct arithmetic arithmetic, bool backward, union sum *totals, uint64_t count, union sum *workspace);

/* Returns the total of `count` members in a forward pass. The contents of `totals` mean nothing afterwards. */
union sum tree_total(struct arithmetic arithmetic, union sum *totals, uint64_t count);

#endif

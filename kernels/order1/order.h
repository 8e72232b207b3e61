/*
 * Order 1: the association of a scan, a function of the row's length, operator and accumulator alone.
 *
 * - Sample i lies in leaf i / ORDER_LEAF. A leaf's total is the serial sum of its samples.
 * - Leaves are grouped ORDER_FAN to a tile, tiles ORDER_FAN to a block, blocks ORDER_FAN to the next level, and so on
 *   until one group holds everything. Inside a group the inclusive prefixes of the members' totals come from the
 *   Kogge-Stone network (distance 1, 2, 4, 8, 16; left operand first), and the group's total is its last inclusive
 * prefix.
 * - The carry into leaf l is ((P_top + ...) + P_tile) + P_leaf: exclusive prefixes, outermost level first, where
 *   levels at which l's group is the first member have none and are left out.
 * - Sample i's value is that carry, then the samples of its leaf added one by one up to and including i (exclusive: up
 *   to but not including i; the identity where nothing is added), rounded to the type it is stored in.
 * - A backward pass is the mirror image on the same partition: suffixes, samples added from the right, and samples
 *   missing from the last leaf are absent, not zero.
 */
#ifndef KERNELS_ORDER1_ORDER_H
#define KERNELS_ORDER1_ORDER_H

#define ORDER_LEAF  16
#define ORDER_FAN   32
#define ORDER_TILE  (ORDER_LEAF * ORDER_FAN) /* 512 samples */
#define ORDER_BLOCK (ORDER_TILE * ORDER_FAN) /* 16,384 samples */

#endif

/*
 * The tree of order 1: groups of ORDER_FAN members, Kogge-Stone prefixes inside a group, and the same again over the
 * totals of the groups. Members are visited in the order of the pass; group_at finds the place of the j-th member
 * visited.
 */
#include "kernels/order1/tree.h"

#include "kernels/order1/order.h"

struct group {
    union sum *members;
    uint64_t count;
    bool backward;
};

static struct group group_of(bool backward, union sum *members, uint64_t count, uint64_t index)
{
    uint64_t rest = count - index * ORDER_FAN;
    struct group group = {members + index * ORDER_FAN, rest < ORDER_FAN ? rest : ORDER_FAN, backward};
    return group;
}

static union sum *group_at(const struct group *group, uint64_t j)
{
    return &group->members[group->backward ? group->count - 1 - j : j];
}

/* Turns totals into inclusive prefixes, by the Kogge-Stone network. */
static void group_scan(struct arithmetic arithmetic, const struct group *group)
{
    for (uint64_t distance = 1; distance < group->count; distance *= 2)
        for (uint64_t j = group->count - 1; j >= distance; j--)
            *group_at(group, j) = sum_add(arithmetic, *group_at(group, j - distance), *group_at(group, j));
}

/* Turns inclusive prefixes into carries; `outer` is the carry into the group, NULL into the very first group. */
static void group_carries(struct arithmetic arithmetic, const struct group *group, const union sum *outer)
{
    for (uint64_t j = group->count - 1; j >= 1; j--) {
        union sum prefix = *group_at(group, j - 1);
        *group_at(group, j) = outer ? sum_add(arithmetic, *outer, prefix) : prefix;
    }
    if (outer)
        *group_at(group, 0) = *outer;
}

static uint64_t group_count(uint64_t count)
{
    return (count + ORDER_FAN - 1) / ORDER_FAN;
}

uint64_t tree_workspace(uint64_t count)
{
    uint64_t sums = 0;
    while (count > ORDER_FAN) {
        count = group_count(count);
        sums += count;
    }
    return sums;
}

void tree_carries(struct arithmetic arithmetic, bool backward, union sum *totals, uint64_t count, union sum *workspace)
{
    uint64_t groups = group_count(count);
    union sum *outer = groups > 1 ? workspace : NULL;
    for (uint64_t g = 0; g < groups; g++) {
        struct group group = group_of(backward, totals, count, g);
        group_scan(arithmetic, &group);
        if (outer)
            outer[g] = *group_at(&group, group.count - 1);
    }
    if (outer)
        tree_carries(arithmetic, backward, outer, groups, workspace + groups);
    for (uint64_t g = 0; g < groups; g++) {
        struct group group = group_of(backward, totals, count, g);
        bool first = g == (backward ? groups - 1 : 0);
        group_carries(arithmetic, &group, first ? NULL : &outer[g]);
    }
}

union sum tree_total(struct arithmetic arithmetic, union sum *totals, uint64_t count)
{
    while (count > 1) {
        for (uint64_t g = 0; g < group_count(count); g++) {
            struct group group = group_of(false, totals, count, g);
            group_scan(arithmetic, &group);
            totals[g] = *group_at(&group, group.count - 1);
        }
        count = group_count(count);
    }
    return totals[0];
}

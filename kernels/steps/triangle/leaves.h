/*
 * The sums of a chunk of leaves, a vector of leaves at a time, for cpu.c: their totals; the carries into them; and from
 * these on the sums along them. A box needs no double sums: nothing of `twice` is there. Narrow samples are f32, the
 * others f64.
 */
#include "kernels/cpu/generic/simd.h"
#include "kernels/steps/triangle/triangle.h"

#define CHUNK         TRIANGLE_LEAVES_MAX
#define LEAVES        (2 * CHUNK + TRIANGLE_FAN) /* with those that fill up a vector or segment; not a power of two */
#define LEVELS        5                          /* of the network */
#define GROUP_VECTORS (TRIANGLE_FAN / F64_LANES)
_Static_assert(1 << LEVELS == TRIANGLE_FAN, "levels join a group");

/* Leaves of a chunk. `leaves` is how many there are, in_segment how many of them a segment has. */
struct leaves {
    _Alignas(64) double single[LEAVES], twice[LEAVES]; /* of each leaf its totals, its carries, what it leaves */
    _Alignas(64) double levels[LEVELS][2][TRIANGLE_FAN + LEAVES]; /* what goes into a level, where others come from */
    _Alignas(64) int64_t have[LEAVES];                            /* samples of a leaf */
    _Alignas(64) int64_t place[LEAVES]; /* of a leaf in its segment, where that is not longer than a group */
    int64_t offset[LEAVES];             /* where a leaf begins, in samples */
    int64_t tail[F64_LANES];            /* offsets of the last vector, whose leaves may be fewer */
    int64_t leaves, in_segment, rest;   /* rest: samples of a segment's last leaf */
};

INLINE f64_vector f64_all(double x)
{
    return x - (f64_vector){0};
}

INLINE i64_vector i64_load(const int64_t *from)
{
    i64_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE void square(f64_vector *rows)
{
    f32_vector words[F64_LANES];
    memcpy(words, rows, sizeof words);
    f64_square(words);
    memcpy(rows, words, sizeof words);
}

/* Sums of leaves side by side. */
struct sums {
    f64_vector single, twice;
};

INLINE struct sums add_sample(struct sums before, f64_vector x)
{
    struct sums sums;
    sums.single = before.single + x;
    sums.twice = before.twice + sums.single;
    return sums;
}

INLINE struct sums load_sums(enum triangle_shape shape, const struct leaves *leaves, int64_t leaf)
{
    const double *twice = shape == TRIANGLE_BOX ? leaves->single : leaves->twice;
    return (struct sums){f64_load(leaves->single + leaf), f64_load(twice + leaf)};
}

INLINE void store_sums(enum triangle_shape shape, struct leaves *leaves, int64_t leaf, struct sums sums)
{
    f64_store(leaves->single + leaf, sums.single);
    if (shape == TRIANGLE_TRIANGLE)
        f64_store(leaves->twice + leaf, sums.twice);
}

/* As triangle_join. Power: the count is a power of two, whose product with sums of f32 is exact. */
INLINE struct sums join_sums(struct sums left, struct sums right, f64_vector count, bool power)
{
    struct sums sums;
    sums.single = left.single + right.single;
    sums.twice = (power && F64_LANES > 2 ? f64_fma(left.single, count, left.twice) : left.twice + left.single * count) +
                 right.twice;
    return sums;
}

/* The sums a of the leaves that are at least so far from the begin of their group, b of the others. */
INLINE struct sums choose(i64_vector place, int least, struct sums a, struct sums b)
{
    return (struct sums){F64_SELECT(place >= least, a.single, b.single), F64_SELECT(place >= least, a.twice, b.twice)};
}

/* What a vector of leaves needs of those before it: what went into levels of the network, the prefixes, and the carry
 * into the group. */
struct carries {
    struct sums levels[LEVELS], prefix, group;
};

/* Sums `distance` leaves before those of a vector, which others are before. */
INLINE struct sums shift(struct sums before, struct sums sums, int distance)
{
    if (distance == F64_LANES)
        return before;
    return (struct sums){f64_shift(before.single, sums.single, distance),
                         f64_shift(before.twice, sums.twice, distance)};
}

/* Prefixes of the leaves' totals in each segment or group, of a vector of leaves. */
INLINE struct sums prefixes(struct carries *before, enum triangle_shape shape, struct leaves *leaves, int64_t leaf,
                            i64_vector place, int64_t in_segment, bool narrow)
{
    struct sums sums = load_sums(shape, leaves, leaf);
#pragma GCC unroll 5
    for (int level = 0; level < LEVELS; level++) {
        const int distance = 1 << level;
        struct sums left;
        if (distance >= in_segment)
            break;
        if (distance <= F64_LANES) {
            left = shift(before->levels[level], sums, distance);
            before->levels[level] = sums;
        } else {
            double *single = leaves->levels[level][0] + TRIANGLE_FAN + leaf;
            double *twice = shape == TRIANGLE_BOX ? single : leaves->levels[level][1] + TRIANGLE_FAN + leaf;
            f64_store(twice, sums.twice);
            f64_store(single, sums.single);
            left = (struct sums){f64_load(single - distance), f64_load(twice - distance)};
        }
        sums = choose(place, distance, join_sums(left, sums, f64_all(TRIANGLE_LEAF * distance), narrow), sums);
    }
    return sums;
}

/* Samples of a chunk, turned, and the totals of its leaves from 0 on. */
INLINE void leaf_totals(struct leaves *leaves, enum triangle_shape shape, const char *samples, bool narrow, double *to)
{
    const f64_vector zero = {0};
    const int64_t rest = leaves->rest, count = leaves->leaves;
    for (int64_t leaf = 0; leaf < count; leaf += F64_LANES, to += F64_LANES * TRIANGLE_LEAF) {
        const int64_t *offset = leaf + F64_LANES <= count ? leaves->offset + leaf : leaves->tail;
        const i64_vector have = i64_load(leaves->have + leaf);
        f64_vector x[TRIANGLE_LEAF];
        struct sums sums;
        for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
            for (int l = 0; l < F64_LANES; l++)
                x[part + l] = narrow ? f64_load_f32(samples + (offset[l] + part) * 4)
                                     : f64_load(samples + (offset[l] + part) * 8);
            square(x + part);
        }
        if (f64_any(have < TRIANGLE_LEAF))
            for (int q = 1; q < TRIANGLE_LEAF; q++)
                if (q >= rest)
                    x[q] = F64_SELECT(have >= TRIANGLE_LEAF, x[q], zero);
        f64_store(to, x[0]);
        sums.single = sums.twice = zero + x[0];
        for (int q = 1; q < TRIANGLE_LEAF; q++) {
            f64_store(to + q * F64_LANES, x[q]);
            sums = add_sample(sums, x[q]);
        }
        store_sums(shape, leaves, leaf, sums);
    }
}

/* Carries into a vector of leaves, in place of their totals. */
INLINE void vector_carries(struct carries *before, enum triangle_shape shape, struct leaves *leaves, int64_t leaf,
                           i64_vector place, int64_t in_segment, bool carried, bool narrow)
{
    const struct sums prefix = prefixes(before, shape, leaves, leaf, place, in_segment, narrow);
    struct sums sums = shift(before->prefix, prefix, 1);
    if (carried)
        sums = join_sums(before->group, sums, __builtin_convertvector(place * TRIANGLE_LEAF, f64_vector), false);
    store_sums(shape, leaves, leaf, choose(place, 1, sums, before->group));
    before->prefix = prefix;
}

INLINE void group_carries(struct carries *before, enum triangle_shape shape, struct leaves *leaves, int64_t leaf,
                          bool carried, bool narrow)
{
    const i64_vector lanes = {F64_LIST(0, 1)};
#pragma GCC unroll 16
    for (int v = 0; v < GROUP_VECTORS; v++)
        vector_carries(before, shape, leaves, leaf + v * F64_LANES, lanes + v * F64_LANES, TRIANGLE_FAN, carried,
                       narrow);
    const struct sums total = {f64_lane(before->prefix.single, 1), f64_lane(before->prefix.twice, 1)};
    before->group = carried ? join_sums(before->group, total, f64_all(TRIANGLE_GROUP), narrow) : total;
}

/* Carries of a segment that is longer than a group, where places are known when this is compiled, or of others. */
INLINE void leaf_carries(struct leaves *leaves, enum triangle_shape shape, bool narrow)
{
    const int64_t count = leaves->leaves, in_segment = leaves->in_segment;
    struct carries before = {0};
    if (in_segment > TRIANGLE_FAN) {
        group_carries(&before, shape, leaves, 0, false, narrow);
        for (int64_t leaf = TRIANGLE_FAN; leaf < count; leaf += TRIANGLE_FAN)
            group_carries(&before, shape, leaves, leaf, true, narrow);
    } else
        for (int64_t leaf = 0; leaf < count; leaf += F64_LANES)
            vector_carries(&before, shape, leaves, leaf, i64_load(leaves->place + leaf), in_segment, false, narrow);
}

/* The sums along leaves from their carries on, in place of their samples. */
INLINE void leaf_sums(struct leaves *leaves, enum triangle_shape shape, double *to)
{
    const int64_t count = leaves->leaves;
    for (int64_t leaf = 0; leaf < count; leaf += F64_LANES, to += F64_LANES * TRIANGLE_LEAF) {
        struct sums sums = load_sums(shape, leaves, leaf);
        f64_vector rows[TRIANGLE_LEAF];
#pragma GCC unroll 8
        for (int q = 0; q < TRIANGLE_LEAF; q++) {
            rows[q] = shape == TRIANGLE_BOX ? sums.single : sums.twice;
            sums = add_sample(sums, f64_load(to + q * F64_LANES));
        }
#pragma GCC unroll 4
        for (int part = 0; part < TRIANGLE_LEAF; part += F64_LANES) {
            square(rows + part);
#pragma GCC unroll 8
            for (int l = 0; l < F64_LANES; l++)
                f64_store(to + l * TRIANGLE_LEAF + part, rows[part + l]);
        }
        store_sums(shape, leaves, leaf, sums);
    }
}

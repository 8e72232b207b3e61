/*
 * The items of columns_direct.cuh: a launch, the tiles of its strips, who takes which one, and what a thread holds.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_ITEM_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_ITEM_CUH

#include "kernels/cuda/exchange/any_arithmetic.cuh"
#include "kernels/cuda/exchange/tile_state.cuh"

#define DIRECT_THREADS  512 /* threads of a thread block, */
#define DIRECT_RESIDENT 2   /* of which an SM has so many */
#define DIRECT_LEVELS   3   /* levels of a column above its leaves: tiles, order blocks, groups of 32 of these */

/* Leaves of a thread, as many as its registers hold, and columns of a strip. */
template <class Sum> constexpr int direct_leaves_of = sizeof(typename Sum::sample) == 4 ? 2 : 1;

__host__ __device__ constexpr int direct_columns(int leaves)
{
    return DIRECT_THREADS / ORDER_FAN * leaves;
}

template <class Sum> constexpr int direct_columns_of = direct_columns(direct_leaves_of<Sum>);

/* The tile states of one pass, by level: those of `columns` neighbours are side by side. */
struct direct_states {
    tile_state *levels[DIRECT_LEVELS];
    uint64_t columns;
};

/* One launch. */
struct direct_plan : any_operator_plan { /* with any.scan.totals_pass >= 0 only the totals of that pass are published */
    uint64_t columns;
    unsigned strips, tiles, items;
    bool pairs;                      /* two leaves of a thread are of two columns */
    bool plain, plain_output;        /* words of 4 bytes are samples, or results, as they are */
    int levels;                      /* levels that a column needs */
    unsigned members[DIRECT_LEVELS]; /* members of a column at each level */
    unsigned *taken;                 /* items, 0 before */
    bool from_end;                   /* in which order */
    int published_pass;              /* pass whose totals are published; -1 for none */
    struct direct_states states[SCAND_PASSES_MAX];
    struct direct_states means; /* forward totals in f64, to demean */
};

/* True where what a warp does for all, or what few columns need, is a function of its own: inlined, it would have all
 * threads spill samples. With one leaf a thread, and with integers, a call takes longer. */
template <class Sum> constexpr bool direct_calls = std::is_same<typename Sum::sample, float>::value;

template <auto Work, class... Arguments>
static __device__ __noinline__ void direct_apart(const struct direct_plan &plan, Arguments... arguments)
{
    Work(plan, arguments...);
}

template <class Sum, auto Work, class... Arguments>
DEVICE void direct_seldom(const struct direct_plan &plan, Arguments... arguments)
{
    if constexpr (direct_calls<Sum>)
        direct_apart<Work>(plan, arguments...);
    else
        Work(plan, arguments...);
}

/* A tile of a strip. */
struct direct_item {
    unsigned strip, tile;
    int samples, leaves; /* samples and leaves of a column in this tile; 0 where there is no more work */
    int columns;         /* columns of the strip */
};

/* The first sample of a column in this tile, on both sides; NULL where there is no such column. */
struct direct_column {
    char *input, *output;
};

/* The shared memory of a thread block. Sums of a leaf are one further apart than they need be: no bank conflicts. */
template <class Sum> struct alignas(VEC16_BYTES) direct_smem {
    typename Sum::sum sums[ORDER_FAN][direct_columns_of<Sum> + 1]; /* totals of leaves, then what is before them */
    typename Sum::sum inner[direct_columns_of<Sum>];               /* sums before the tile in its order block, */
    typename Sum::sum outer[direct_columns_of<Sum>];               /* and before that */
    /* Tile states as they were found: of the tiles before this one, the last one first. */
    alignas(VEC16_BYTES) tile_state_polled<Sum> polled[ORDER_FAN][direct_columns_of<Sum> + 2];
    double means[direct_columns_of<Sum>];
    unsigned taken;              /* the number of the next item */
    struct direct_item items[2]; /* this item and the next one, by turns */
    struct direct_column columns[2][direct_columns_of<Sum>];
};

template <class Sum> DEVICE struct direct_item direct_item_at(const struct direct_plan &plan, unsigned number)
{
    struct direct_item item = {};
    if (number >= plan.items)
        return item;
    const unsigned row = number / plan.strips;
    item.strip = number - row * plan.strips;
    item.tile = plan.from_end ? plan.tiles - 1 - row : row;
    item.samples = (int)min(plan.any.scan.length - (uint64_t)item.tile * ORDER_TILE, (uint64_t)ORDER_TILE);
    item.leaves = (item.samples + ORDER_LEAF - 1) / ORDER_LEAF;
    item.columns =
        (int)min(plan.columns - (uint64_t)item.strip * direct_columns_of<Sum>, (uint64_t)direct_columns_of<Sum>);
    return item;
}

DEVICE struct direct_column direct_column_at(const struct direct_plan &plan, const struct direct_item &item,
                                             uint64_t column)
{
    const struct scan_plan &scan = plan.any.scan;
    const int64_t sample = (int64_t)item.tile * ORDER_TILE;
    if (item.leaves == 0 || column >= plan.columns)
        return {};
    return {side_at(scan, scan.input, scan.first_row + column, 0) + sample * scan.input.stride,
            side_at(scan, scan.output, scan.first_row + column, 0) + sample * scan.output.stride};
}

/* Takes the next item. The thread that does waits for its number as long as for samples. */
struct direct_taking {
    unsigned *counter, *taken;

    __device__ __forceinline__ void take() const
    {
        if (threadIdx.x == 0)
            count_into(counter, taken);
    }
};

/* Tells all threads about the item that was taken. By the first warp. */
template <class Sum> DEVICE void direct_tell(const struct direct_plan &plan, int slot, direct_smem<Sum> *smem)
{
    __syncwarp();
    const struct direct_item item = direct_item_at<Sum>(plan, smem->taken);
    const int lane = lane_index();
    if (lane < direct_columns_of<Sum>)
        smem->columns[slot][lane] = direct_column_at(plan, item, (uint64_t)item.strip * direct_columns_of<Sum> + lane);
    if (lane == 0)
        smem->items[slot] = item;
}

/* The position of a thread's leaf in an item: its column in the strip, and its number in the column. */
struct direct_place {
    int column, leaf;
};

template <class Sum> DEVICE struct direct_place direct_place_of(const struct direct_plan &plan, int l)
{
    const unsigned thread = (unsigned)thread_index(), columns = direct_columns_of<Sum>, leaves = direct_leaves_of<Sum>;
    if (leaves > 1 && plan.pairs)
        return {(int)(thread % (columns / leaves) * leaves + l), (int)(thread / (columns / leaves))};
    return {(int)(thread % columns), (int)(thread / columns * leaves + l)};
}

/* Samples of a leaf. */
DEVICE int direct_samples_of(const struct direct_item *item, const struct direct_place &place)
{
    return place.column < item->columns ? min(max(item->samples - place.leaf * ORDER_LEAF, 0), ORDER_LEAF) : 0;
}

/* True when both leaves of a thread are there, side by side. */
template <class Sum> DEVICE bool direct_has_pair(const struct direct_plan &plan, const struct direct_item *item)
{
    return plan.pairs && direct_place_of<Sum>(plan, 1).column < item->columns;
}

/* The samples that a thread holds of an item. */
template <class Sum> struct direct_held {
    typename Sum::sample x[direct_leaves_of<Sum>][ORDER_LEAF];
};

#endif

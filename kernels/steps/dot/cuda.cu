/*
 * Who computes a row depends on how many there are and how they lie. Of many dense rows a warp takes some, whose
 * samples pass through shared memory as they are. Of others a warp or a thread block takes each, and their products
 * pass through it. Rows that are neighbours in memory have a thread each.
 */
#include "dot.h"
#include "kernels/steps/staged.cuh"

/* Two rows. */
struct pair {
    const struct step_operand *x, *y;
    const char *x0, *y0;
};

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled; elements of all others are aligned */

template <enum scand_dtype Dtype> static __device__ __forceinline__ double product(const struct pair &pair, uint64_t i)
{
    const char *x = step_aligned(Dtype != ANY, Dtype, pair.x0 + (int64_t)i * pair.x->stride);
    const char *y = step_aligned(Dtype != ANY, Dtype, pair.y0 + (int64_t)i * pair.y->stride);
    return step_get_f64(Dtype == ANY ? pair.x->dtype : Dtype, x) *
           step_get_f64(Dtype == ANY ? pair.y->dtype : Dtype, y);
}

/*
 * The terms of a tile, by a warp: products in the order of samples.
 */

template <enum scand_dtype Dtype> struct products {
    struct pair pair;
    struct words {
        struct tile_packs<Dtype> x, y;
    };
    __device__ __forceinline__ void fetch(uint64_t first, unsigned count, words *words, unsigned lane) const
    {
        words->x.fetch(pair.x0, first, count, lane);
        words->y.fetch(pair.y0, first, count, lane);
    }
    __device__ __forceinline__ void stage(const words *words, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        tile_packs<Dtype>::stage(
            count, stage, lane, [&](unsigned p, unsigned k) { return words->x.term(p, k) * words->y.term(p, k); },
            [&](unsigned i) { return product<Dtype>(pair, first + i); });
    }
};

template <> struct products<ANY> {
    struct pair pair;
    typedef struct no_words words;
    __device__ __forceinline__ void fetch(uint64_t, unsigned, words *, unsigned) const {}
    __device__ __forceinline__ void stage(const words *, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        for (unsigned i = lane; i < count; i += WARP)
            stage[totals_place(i)] = product<ANY>(pair, first + i);
    }
};

static __device__ __forceinline__ struct pair pair_of(const struct step_rows &rows, uint64_t row)
{
    return {&rows.input, &rows.further[DOT_OTHER], step_row(&rows, &rows.input, row),
            step_row(&rows, &rows.further[DOT_OTHER], row)};
}

/* A row or, of rows that are divided, a part of one, which is a block of order 1; and where its total goes. */
struct piece {
    struct pair pair;
    uint64_t length;
    char *at;
};

static __device__ __forceinline__ struct piece piece_of(const struct step_rows &rows, const struct step_tile &tile,
                                                        uint64_t number, bool divided)
{
    const uint64_t parts = divided ? tile.end - tile.begin : 1;
    const uint64_t row = tile.first_row + number / parts, part = divided ? tile.begin + number % parts : 0;
    const int64_t first = (int64_t)(part * ORDER_BLOCK);
    struct piece piece = {pair_of(rows, row), step_length(&rows, &rows.input, row) - (uint64_t)first,
                          step_row(&rows, &rows.output, row) + (int64_t)part * rows.output.stride};
    piece.pair.x0 += first * piece.pair.x->stride;
    piece.pair.y0 += first * piece.pair.y->stride;
    if (divided && piece.length > ORDER_BLOCK)
        piece.length = ORDER_BLOCK;
    return piece;
}

static __device__ __forceinline__ uint64_t pieces_of(const struct step_tile &tile, bool divided)
{
    return tile.row_count * (divided ? tile.end - tile.begin : 1);
}

static __device__ __forceinline__ void put_total(const struct step_rows &rows, uint64_t row, double total)
{
    step_put_f64(rows.output.dtype, total, step_row(&rows, &rows.output, row));
}

/* Rows, or parts, which a warp of a later launch joins. */
template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    dot_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
             uint64_t begin, bool divided)
{
    __shared__ double stages[WARPS][STAGE], members[WARPS][LEVELS][ORDER_FAN], tile_totals[2][ORDER_FAN];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool by_warp = !divided && tile.row_count >= WARPS;
    for (uint64_t i = by_warp ? warp : 0; i < pieces_of(tile, divided); i += by_warp ? WARPS : 1) {
        const struct piece piece = piece_of(rows, tile, i, divided);
        const struct products<Dtype> products = {
            piece.pair
        };
        const double total =
            by_warp ? warp_total(products, piece.length, stages[warp], members[warp], lane)
                    : block_total(products, piece.length, stages[warp], members[0], tile_totals, warp, lane);
        if (lane == 0 && (by_warp || warp == 0))
            step_put_f64(rows.output.dtype, total, piece.at);
    }
}

/*
 * Many dense rows: a warp takes some of them, one after the other. While it adds up a tile, the next ones are on their
 * way, those of its next row too.
 */

#define MANY_WARPS   2
#define MANY_STAGES  3    /* tiles in shared memory, of f64 one less: one is added up */
#define MANY_ROWS    512  /* rows from which on the warps of a GPU have enough of them */
#define MANY_SAMPLES 8192 /* of a warp's rows together, where they are short */

template <enum scand_dtype Dtype> struct many_stage {
    pack<Dtype> x[staged_tile<Dtype>::vectors], y[staged_tile<Dtype>::vectors];
};

/* A tile of the warp's rows before `end`. */
template <enum scand_dtype Dtype> struct many_place {
    uint64_t row, end, left; /* left: samples of the row from the tile on */
    const char *x, *y;

    __device__ __forceinline__ void enter(const struct step_rows &rows)
    {
        left = rows.input.length;
        if (row < end) {
            char *at[2];
            step_row_of_each(rows, {&rows.input, &rows.further[DOT_OTHER]}, row, at);
            x = at[0];
            y = at[1];
        }
    }
    __device__ __forceinline__ void advance(const struct step_rows &rows)
    {
        if (left > ORDER_TILE) {
            left -= ORDER_TILE;
            x += ORDER_TILE * pack<Dtype>::size;
            y += ORDER_TILE * pack<Dtype>::size;
        } else if (row < end) {
            row++;
            enter(rows);
        }
    }
    __device__ __forceinline__ void fetch(struct many_stage<Dtype> *stage, unsigned lane) const
    {
        if (row < end) {
            staged_tile<Dtype>::fetch(stage->x, x, staged_count(left), lane);
            staged_tile<Dtype>::fetch(stage->y, y, staged_count(left), lane);
        }
        __pipeline_commit();
    }
};

/* The product of two f32 or f16 is exact in f64, so that adding it in one operation has the bits of two. That of two
 * f64 is rounded before it is added. */
template <enum scand_dtype Dtype> static __device__ __forceinline__ double add_product(double sum, double x, double y)
{
    return Dtype == SCAND_DTYPE_F64 ? sum + x * y : __fma_rn(x, y, sum);
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ double many_total(const struct many_stage<Dtype> *stage, unsigned count,
                                                    unsigned lane)
{
    typedef pack<Dtype> pack;
    pack x[staged_tile<Dtype>::leaf_vectors], y[staged_tile<Dtype>::leaf_vectors];
    staged_tile<Dtype>::leaf(stage->x, lane, x);
    staged_tile<Dtype>::leaf(stage->y, lane, y);
    const double sum = staged_sum(
        staged_rest(count, lane), [&] { return (double)x[0].get(0) * (double)y[0].get(0); },
        [&](double so_far, unsigned j) {
            return add_product<Dtype>(so_far, (double)x[j / pack::count].get(j % pack::count),
                                      (double)y[j / pack::count].get(j % pack::count));
        });
    return staged_total(sum, count, lane);
}

/* each: rows of a warp. */
template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(MANY_WARPS *WARP)
    dot_many_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct staged_rows many,
                  uint64_t each, uint64_t begin)
{
    constexpr unsigned count = Dtype == SCAND_DTYPE_F64 ? MANY_STAGES - 1 : MANY_STAGES;
    __shared__ struct many_stage<Dtype> stages[MANY_WARPS][count];
    __shared__ double members[MANY_WARPS][LEVELS][ORDER_FAN];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t first = ((begin + blockIdx.x) * MANY_WARPS + warp) * each;
    const uint64_t last = first + each < many.count ? first + each : many.count;
    const uint64_t length = rows.input.length, tiles = (length + ORDER_TILE - 1) / ORDER_TILE;
    struct many_place<Dtype> next = {
        many.first + first, many.first + last
    };
    uint64_t row = many.first + first, tile = 0;
    next.enter(rows);
    /* `stage` is filled; the one after it was filled first. */
    for (unsigned stage = 0, ahead = 1; row < next.end; stage = stage + 1 < count ? stage + 1 : 0) {
        next.fetch(&stages[warp][stage], lane);
        next.advance(rows);
        if (ahead < count) {
            ahead++;
            continue;
        }
        __pipeline_wait_prior(count - 1);
        __syncwarp();
        const struct many_stage<Dtype> *first_filled = &stages[warp][stage + 1 < count ? stage + 1 : 0];
        double total = many_total<Dtype>(first_filled, staged_count(length - tile * ORDER_TILE), lane);
        const bool complete = join(members[warp], tile, tiles, &total, lane);
        __syncwarp();
        if (complete && lane == 0)
            put_total(rows, row, total);
        tile = complete ? 0 : tile + 1;
        row += complete;
    }
}

template <enum scand_dtype Dtype>
static cudaError_t launch_many(const struct step_rows *rows, const struct staged_rows *many, void *stream)
{
    const uint64_t length = rows->input.length;
    const uint64_t each = MANY_SAMPLES / length > 0 ? MANY_SAMPLES / length : 1;
    const cudaError_t error = cudaFuncSetAttribute(dot_many_rows<Dtype>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                   cudaSharedmemCarveoutMaxShared);
    if (error)
        return error;
    return step_launch_each(
        0, (many->count + MANY_WARPS * each - 1) / (MANY_WARPS * each), [&](uint64_t first, unsigned grid) {
            dot_many_rows<Dtype><<<grid, MANY_WARPS * WARP, 0, (cudaStream_t)stream>>>(*rows, *many, each, first);
        });
}

/* The totals of 32 blocks at once are those of a group, which join() takes from there. */
static __global__ void __launch_bounds__(WARP)
    dot_join_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                  uint64_t begin)
{
    __shared__ double members[LEVELS][ORDER_FAN];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned lane = threadIdx.x;
    const uint64_t count = rows.input.length, groups = (count + ORDER_FAN - 1) / ORDER_FAN;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const double *numbers = (const double *)step_row(&rows, &rows.input, row);
        double total = 0;
        for (uint64_t group = 0; group < groups; group++) {
            const uint64_t first = group * ORDER_FAN, left = count - first;
            const unsigned n = left < ORDER_FAN ? (unsigned)left : ORDER_FAN;
            total = group_total(lane < n ? numbers[first + lane] : 0.0, lane, n);
            join(members, group, groups, &total, lane);
        }
        if (lane == 0)
            put_total(rows, row, total);
        __syncwarp();
    }
}

/*
 * Neighbouring rows, a lane for each, and as many thread blocks along the second dimension of the grid as a tile has
 * rows for: warps take leaves in turns, and the first one joins those of a tile.
 */

#define COLUMN_LEVELS 3 /* above tiles: 2^24 samples */

/* The last prefix of a lane's column of members. */
static __device__ double column_total(double (*members)[WARP], unsigned count, unsigned lane)
{
    for (; count > 1; count = (count + 1) / 2)
        for (unsigned i = 0, odd = count % 2; i < count / 2; i++)
            members[odd + i][lane] = members[odd + 2 * i][lane] + members[odd + 2 * i + 1][lane];
    return members[0][lane];
}

/* Joins totals as join does, each lane for a row of its own. */
static __device__ double column_join(double (*members)[ORDER_FAN][WARP], uint64_t number, uint64_t count, double total,
                                     unsigned lane)
{
    for (int level = 0; count > 1; level++) {
        members[level][number % ORDER_FAN][lane] = total;
        if (number % ORDER_FAN != ORDER_FAN - 1 && number + 1 != count)
            return total;
        total = column_total(members[level], (unsigned)(number % ORDER_FAN) + 1, lane);
        number /= ORDER_FAN;
        count = (count + ORDER_FAN - 1) / ORDER_FAN;
    }
    return total;
}

/* A leaf's products at once, of a dtype that is not known by calls: sixteen times inlined, they take long to compile.
 */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ double column_product(const struct pair &pair, uint64_t i)
{
    if constexpr (Dtype == ANY)
        return step_call_get_f64(pair.x->dtype, pair.x0 + (int64_t)i * pair.x->stride) *
               step_call_get_f64(pair.y->dtype, pair.y0 + (int64_t)i * pair.y->stride);
    else
        return product<Dtype>(pair, i);
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ double column_leaf(const struct pair &pair, uint64_t first, uint64_t length)
{
    double products[ORDER_LEAF];
#pragma unroll
    for (unsigned j = 0; j < ORDER_LEAF; j++)
        products[j] = first + j < length ? column_product<Dtype>(pair, first + j) : 0.0;
#pragma unroll
    for (unsigned j = 1; j < ORDER_LEAF; j++)
        if (first + j < length)
            products[0] = products[0] + products[j];
    return products[0];
}

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    dot_columns(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                uint64_t begin)
{
    __shared__ double leaves[2][ORDER_FAN][WARP], members[COLUMN_LEVELS][ORDER_FAN][WARP];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t length = rows.input.length, count = (length + ORDER_TILE - 1) / ORDER_TILE;
    const uint64_t first = (uint64_t)blockIdx.y * WARP;
    if (first >= tile.row_count)
        return;
    const uint64_t mine = first + lane < tile.row_count ? first + lane : tile.row_count - 1;
    const struct pair pair = pair_of(rows, tile.first_row + mine);
    double total = 0;
    for (uint64_t t = 0; t < count; t++) {
        double(*staged)[WARP] = leaves[t % 2];
        const unsigned samples = tile_samples(t * ORDER_TILE, length);
        const unsigned leaf_count = (samples + ORDER_LEAF - 1) / ORDER_LEAF;
        for (unsigned leaf = warp; leaf < leaf_count; leaf += WARPS)
            staged[leaf][lane] = column_leaf<Dtype>(pair, t * ORDER_TILE + leaf * ORDER_LEAF, length);
        __syncthreads();
        if (warp == 0)
            total = column_join(members, t, count, column_total(staged, leaf_count, lane), lane);
    }
    if (warp == 0 && first + lane < tile.row_count)
        put_total(rows, tile.first_row + mine, total);
}

/*
 * Integers, as they are rare, by a thread block for each row, or for each part of one.
 */

/* The sum of what the threads of a block have, in the first one. */
static __device__ uint64_t sum_of_threads(uint64_t sum, uint64_t sums[THREADS])
{
    sums[threadIdx.x] = sum;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] = sum += sums[threadIdx.x + half];
    }
    __syncthreads(); /* before the next sums */
    return sum;
}

static __device__ __forceinline__ uint64_t sum_of_products(const struct pair &pair, uint64_t length)
{
    uint64_t sum = 0;
    for (uint64_t i = threadIdx.x; i < length; i += THREADS)
        sum += step_decode_integer(pair.x->dtype, pair.x0 + (int64_t)i * pair.x->stride) *
               step_decode_integer(pair.y->dtype, pair.y0 + (int64_t)i * pair.y->stride);
    return sum;
}

static __global__ void __launch_bounds__(THREADS)
    dot_integers(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                 uint64_t begin, bool divided)
{
    __shared__ uint64_t sums[THREADS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t i = 0; i < pieces_of(tile, divided); i++) {
        const struct piece piece = piece_of(rows, tile, i, divided);
        const uint64_t sum = sum_of_threads(sum_of_products(piece.pair, piece.length), sums);
        if (threadIdx.x == 0)
            step_encode_integer(rows.output.dtype, sum, piece.at);
    }
}

static __global__ void __launch_bounds__(THREADS)
    dot_join_integers(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                      uint64_t begin)
{
    __shared__ uint64_t sums[THREADS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint64_t *numbers = (const uint64_t *)step_row(&rows, &rows.input, row);
        uint64_t sum = 0;
        for (uint64_t i = threadIdx.x; i < rows.input.length; i += THREADS)
            sum += numbers[i];
        sum = sum_of_threads(sum, sums);
        if (threadIdx.x == 0)
            step_encode_integer(rows.output.dtype, sum, step_row(&rows, &rows.output, row));
    }
}

static bool are_dense(const struct step_rows *rows, enum scand_dtype dtype)
{
    return !rows->offsets && step_is_dense(rows, &rows->input, dtype, PACK_BYTES) &&
           step_is_dense(rows, &rows->further[DOT_OTHER], dtype, PACK_BYTES);
}

static int launch_rows(const struct step_rows *rows, const struct step_tiles *tiles, uint64_t begin, uint64_t end,
                       bool divided, void *stream)
{
    auto *const kernel = codec_is_integer(rows->input.dtype) ? dot_integers
                         : are_dense(rows, SCAND_DTYPE_F32)  ? dot_rows<SCAND_DTYPE_F32>
                         : are_dense(rows, SCAND_DTYPE_F64)  ? dot_rows<SCAND_DTYPE_F64>
                         : are_dense(rows, SCAND_DTYPE_F16)  ? dot_rows<SCAND_DTYPE_F16>
                                                             : dot_rows<ANY>;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first, divided);
    });
}

static int launch_columns(const struct step_rows *rows, const struct step_tiles *tiles, uint64_t begin, uint64_t end,
                          void *stream)
{
    const bool is_f32 = rows->input.dtype == SCAND_DTYPE_F32 && rows->further[DOT_OTHER].dtype == SCAND_DTYPE_F32 &&
                        step_is_aligned(rows, &rows->input) && step_is_aligned(rows, &rows->further[DOT_OTHER]);
    auto *const kernel = is_f32 ? dot_columns<SCAND_DTYPE_F32> : dot_columns<ANY>;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<dim3(grid, (unsigned)((tiles->tiling.rows + WARP - 1) / WARP)), THREADS, 0, (cudaStream_t)stream>>>(
            *rows, *tiles, first);
    });
}

extern "C" int dot_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    const struct staged_rows many = staged_rows_of(tiles, begin, end);
    (void)params;
    if (many.count >= MANY_ROWS && rows->input.length > 0) {
        if (are_dense(rows, SCAND_DTYPE_F32))
            return launch_many<SCAND_DTYPE_F32>(rows, &many, stream);
        if (are_dense(rows, SCAND_DTYPE_F64))
            return launch_many<SCAND_DTYPE_F64>(rows, &many, stream);
        if (are_dense(rows, SCAND_DTYPE_F16))
            return launch_many<SCAND_DTYPE_F16>(rows, &many, stream);
    }
    if (dot_is_columns(rows) && !codec_is_integer(rows->input.dtype))
        return launch_columns(rows, tiles, begin, end, stream);
    return launch_rows(rows, tiles, begin, end, false, stream);
}

extern "C" int dot_parts_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, void *stream)
{
    (void)params;
    return launch_rows(rows, tiles, begin, end, true, stream);
}

extern "C" int dot_join_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const bool integers = codec_is_integer(rows->input.dtype);
    (void)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        if (integers)
            dot_join_integers<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        else
            dot_join_rows<<<grid, WARP, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

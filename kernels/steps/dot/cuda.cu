/*
 * Three ways, by how many rows there are and how they lie: a warp for each row, a thread block for each row, or a
 * thread for each of several rows that are neighbours in memory. In each, tiles of order 1 are joined by join(), level
 * by level.
 */
#include "dot.h"
#include "kernels/steps/step.cuh"

#define WARP        32
#define WARPS       4
#define THREADS     (WARPS * WARP)
#define ALL         0xffffffffu
#define LEAF_PITCH  (ORDER_LEAF + 1) /* so that lanes that read a leaf each use different banks */
#define STAGE       (ORDER_FAN * LEAF_PITCH)
#define LEVELS      5 /* above tiles: 2^34 samples */
#define VEC16_BYTES 16

/* Two rows; lane: of its warp. */
struct pair {
    const struct step_operand *x, *y;
    const char *x0, *y0;
};

#define ANY SCAND_DTYPE_COUNT /* what is not known when this is compiled */

template <enum scand_dtype Dtype> static __device__ __forceinline__ double product(const struct pair &pair, uint64_t i)
{
    return step_get_f64(Dtype == ANY ? pair.x->dtype : Dtype, pair.x0 + (int64_t)i * pair.x->stride) *
           step_get_f64(Dtype == ANY ? pair.y->dtype : Dtype, pair.y0 + (int64_t)i * pair.y->stride);
}

/* The last prefix of the members that lanes 0 to count - 1 of a warp have, in all lanes. */
static __device__ __forceinline__ double group_total(double member, unsigned lane, unsigned count)
{
#pragma unroll
    for (unsigned distance = 1; distance < WARP; distance *= 2) {
        const double before = __shfl_up_sync(ALL, member, distance);
        if (lane >= distance)
            member = before + member;
    }
    return __shfl_sync(ALL, member, count - 1);
}

/*
 * Tiles of a row, by a warp: products in the order of samples, side by side, and then a leaf for each lane.
 */

/* Whether vectors of 16 bytes can be read of both rows. */
template <enum scand_dtype Dtype> static __device__ __forceinline__ bool is_vectors(const struct pair &pair)
{
    return pair.x->dtype == Dtype && pair.y->dtype == Dtype && pair.x->stride == codec_bytes(Dtype) &&
           pair.y->stride == codec_bytes(Dtype) && ((uintptr_t)pair.x0 | (uintptr_t)pair.y0) % VEC16_BYTES == 0;
}

/* All products of a full tile. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void stage_vectors(const struct pair &pair, uint64_t first, double *stage,
                                                     unsigned lane)
{
    constexpr unsigned bytes = Dtype == SCAND_DTYPE_F64 ? 8 : Dtype == SCAND_DTYPE_F32 ? 4 : 2;
    constexpr unsigned each = VEC16_BYTES / bytes, vectors = ORDER_TILE / each / WARP;
    const uint4 *x = (const uint4 *)(pair.x0 + first * bytes), *y = (const uint4 *)(pair.y0 + first * bytes);
    uint4 xs[vectors], ys[vectors];
#pragma unroll
    for (unsigned v = 0; v < vectors; v++) {
        xs[v] = x[v * WARP + lane];
        ys[v] = y[v * WARP + lane];
    }
#pragma unroll
    for (unsigned v = 0; v < vectors; v++)
#pragma unroll
        for (unsigned k = 0; k < each; k++) {
            const unsigned i = (v * WARP + lane) * each + k;
            stage[i / ORDER_LEAF * LEAF_PITCH + i % ORDER_LEAF] =
                step_get_f64(Dtype, (const char *)&xs[v] + k * bytes) *
                step_get_f64(Dtype, (const char *)&ys[v] + k * bytes);
        }
}

static __device__ void stage_products(const struct pair &pair, uint64_t first, unsigned count, double *stage,
                                      unsigned lane)
{
    if (count == ORDER_TILE && is_vectors<SCAND_DTYPE_F32>(pair))
        stage_vectors<SCAND_DTYPE_F32>(pair, first, stage, lane);
    else if (count == ORDER_TILE && is_vectors<SCAND_DTYPE_F16>(pair))
        stage_vectors<SCAND_DTYPE_F16>(pair, first, stage, lane);
    else
        for (unsigned i = lane; i < count; i += WARP)
            stage[i / ORDER_LEAF * LEAF_PITCH + i % ORDER_LEAF] = product<ANY>(pair, first + i);
}

static __device__ double tile_total(const struct pair &pair, uint64_t first, unsigned count, double *stage,
                                    unsigned lane)
{
    const unsigned begin = lane * ORDER_LEAF, rest = count > begin ? count - begin : 0;
    stage_products(pair, first, count, stage, lane);
    __syncwarp();
    const double *leaf = stage + lane * LEAF_PITCH;
    double sum = rest > 0 ? leaf[0] : 0.0;
#pragma unroll
    for (unsigned j = 1; j < ORDER_LEAF; j++)
        if (j < rest)
            sum = sum + leaf[j];
    __syncwarp();
    return group_total(sum, lane, (count + ORDER_LEAF - 1) / ORDER_LEAF);
}

/*
 * Levels above tiles, or above blocks. members[level]: of the group of each level that is not complete.
 */

/* Takes the total of member `number` of `count`, in their order; by a whole warp. True with the last one: *total is
 * then that of all. */
static __device__ bool join(double (*members)[ORDER_FAN], uint64_t number, uint64_t count, double *total, unsigned lane)
{
    for (int level = 0; count > 1; level++) {
        if (lane == 0)
            members[level][number % ORDER_FAN] = *total;
        __syncwarp();
        if (number % ORDER_FAN != ORDER_FAN - 1 && number + 1 != count)
            return false;
        const unsigned group = (unsigned)(number % ORDER_FAN) + 1;
        *total = group_total(lane < group ? members[level][lane] : 0.0, lane, group);
        number /= ORDER_FAN;
        count = (count + ORDER_FAN - 1) / ORDER_FAN;
    }
    return true;
}

static __device__ __forceinline__ unsigned tile_samples(uint64_t first, uint64_t length)
{
    return length - first < ORDER_TILE ? (unsigned)(length - first) : ORDER_TILE;
}

/* A row, by a warp. */
static __device__ double warp_total(const struct pair &pair, uint64_t length, double *stage,
                                    double (*members)[ORDER_FAN], unsigned lane)
{
    const uint64_t tiles = (length + ORDER_TILE - 1) / ORDER_TILE;
    double total = 0;
    for (uint64_t tile = 0; tile < tiles; tile++) {
        total = tile_total(pair, tile * ORDER_TILE, tile_samples(tile * ORDER_TILE, length), stage, lane);
        join(members, tile, tiles, &total, lane);
    }
    return total;
}

/* A row, by a thread block: warps take the tiles of a block of order 1 in turns, and the first one joins them while the
 * others are at the next. The total is the first warp's. */
static __device__ double block_total(const struct pair &pair, uint64_t length, double *stage,
                                     double (*members)[ORDER_FAN], double (*tile_totals)[ORDER_FAN], unsigned warp,
                                     unsigned lane)
{
    const uint64_t blocks = (length + ORDER_BLOCK - 1) / ORDER_BLOCK;
    double total = 0;
    for (uint64_t block = 0; block < blocks; block++) {
        const uint64_t begin = block * ORDER_BLOCK;
        const uint64_t left = length - begin < ORDER_BLOCK ? length - begin : ORDER_BLOCK;
        const unsigned tiles = (unsigned)((left + ORDER_TILE - 1) / ORDER_TILE);
        double *totals = tile_totals[block % 2];
        for (unsigned tile = warp; tile < tiles; tile += WARPS) {
            const uint64_t first = begin + tile * ORDER_TILE;
            const double of_tile = tile_total(pair, first, tile_samples(first, length), stage, lane);
            if (lane == 0)
                totals[tile] = of_tile;
        }
        __syncthreads();
        if (warp > 0)
            continue;
        total = group_total(lane < tiles ? totals[lane] : 0.0, lane, tiles);
        join(members, block, blocks, &total, lane);
    }
    __syncthreads(); /* before another row's totals */
    return total;
}

static __device__ __forceinline__ struct pair pair_of(const struct step_rows &rows, uint64_t row)
{
    return {&rows.input, &rows.further[DOT_OTHER], step_row(&rows, &rows.input, row),
            step_row(&rows, &rows.further[DOT_OTHER], row)};
}

static __device__ __forceinline__ void put_total(const struct step_rows &rows, uint64_t row, double total)
{
    step_put_f64(rows.output.dtype, total, step_row(&rows, &rows.output, row));
}

static __global__ void __launch_bounds__(THREADS)
    dot_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
             uint64_t begin)
{
    __shared__ double stages[WARPS][STAGE], members[WARPS][LEVELS][ORDER_FAN], tile_totals[2][ORDER_FAN];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool by_warp = tile.row_count >= WARPS;
    for (uint64_t i = by_warp ? warp : 0; i < tile.row_count; i += by_warp ? WARPS : 1) {
        const uint64_t row = tile.first_row + i, length = step_length(&rows, &rows.input, row);
        const struct pair pair = pair_of(rows, row);
        const double total = by_warp ? warp_total(pair, length, stages[warp], members[warp], lane)
                                     : block_total(pair, length, stages[warp], members[0], tile_totals, warp, lane);
        if (lane == 0 && (by_warp || warp == 0))
            put_total(rows, row, total);
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

/* As join, for each lane. */
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

template <enum scand_dtype Dtype>
static __device__ __forceinline__ double column_leaf(const struct pair &pair, uint64_t first, uint64_t length)
{
    double products[ORDER_LEAF];
#pragma unroll
    for (unsigned j = 0; j < ORDER_LEAF; j++)
        products[j] = first + j < length ? product<Dtype>(pair, first + j) : 0.0;
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
 * Integers: a thread for each row, as they are rare.
 */

static __global__ void __launch_bounds__(THREADS)
    dot_integers(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                 uint64_t begin)
{
    __shared__ uint64_t sums[THREADS];
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const struct pair pair = pair_of(rows, row);
        uint64_t sum = 0;
        for (uint64_t i = threadIdx.x; i < step_length(&rows, pair.x, row); i += THREADS)
            sum += codec_decode_integer(pair.x->dtype, pair.x0 + (int64_t)i * pair.x->stride) *
                   codec_decode_integer(pair.y->dtype, pair.y0 + (int64_t)i * pair.y->stride);
        sums[threadIdx.x] = sum;
        for (unsigned half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        if (threadIdx.x == 0)
            codec_encode_integer(rows.output.dtype, sums[0], step_row(&rows, &rows.output, row));
        __syncthreads();
    }
}

extern "C" int dot_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                          uint64_t begin, uint64_t end, void *stream)
{
    const bool integers = codec_is_integer(rows->input.dtype), columns = dot_is_columns(rows);
    const bool is_f32 = rows->input.dtype == SCAND_DTYPE_F32 && rows->further[DOT_OTHER].dtype == SCAND_DTYPE_F32;
    (void)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        const dim3 columns_grid(grid, (unsigned)((tiles->tiling.rows + WARP - 1) / WARP));
        if (integers)
            dot_integers<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        else if (columns && is_f32)
            dot_columns<SCAND_DTYPE_F32><<<columns_grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        else if (columns)
            dot_columns<ANY><<<columns_grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        else
            dot_rows<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

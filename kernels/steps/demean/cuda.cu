/*
 * Dense rows stay in shared memory while their mean is computed, as far as they fit. Others are read for their mean,
 * and again to take that off: by a warp for each row, or a thread block where there are few.
 */
#include "demean.h"
#include "kernels/steps/staged.cuh"

#define ANY SCAND_DTYPE_COUNT /* dtype that is not known when this is compiled */

/* A row, and where its results go. */
template <enum scand_dtype Dtype> struct samples {
    const struct step_operand *input, *output;
    const char *x;
    char *y;
    struct words {
        struct tile_packs<Dtype> x;
    };
    __device__ __forceinline__ void fetch(uint64_t first, unsigned count, words *words, unsigned lane) const
    {
        words->x.fetch(x, first, count, lane);
    }
    __device__ __forceinline__ void stage(const words *words, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        tile_packs<Dtype>::stage(
            count, stage, lane, [&](unsigned p, unsigned k) { return words->x.term(p, k); },
            [&](unsigned i) {
                return step_get_f64(Dtype, step_aligned(true, Dtype, x + (first + i) * pack<Dtype>::size));
            });
    }
    /* Subtracts the mean, by `threads` threads. */
    __device__ __forceinline__ void subtract(double mean, uint64_t length, unsigned thread, unsigned threads) const
    {
        typedef pack<Dtype> pack;
        const uint64_t whole = length / pack::count;
#pragma unroll 4
        for (uint64_t p = thread; p < whole; p += threads) {
            const pack from = ((const pack *)x)[p];
            pack made;
#pragma unroll
            for (unsigned k = 0; k < pack::count; k++)
                made.put(k, (typename pack::number)demean_sample(Dtype, (double)from.get(k), mean));
            ((pack *)y)[p] = made;
        }
        for (uint64_t i = whole * pack::count + thread; i < length; i += threads)
            step_put_f64(Dtype,
                         demean_sample(Dtype, step_get_f64(Dtype, step_aligned(true, Dtype, x + i * pack::size)), mean),
                         (char *)step_aligned(true, Dtype, y + i * pack::size));
    }
};

template <> struct samples<ANY> {
    const struct step_operand *input, *output;
    const char *x;
    char *y;
    typedef struct no_words words;
    __device__ __forceinline__ double at(uint64_t i) const
    {
        return step_get_f64(input->dtype, x + (int64_t)i * input->stride);
    }
    __device__ __forceinline__ void fetch(uint64_t, unsigned, words *, unsigned) const {}
    __device__ __forceinline__ void stage(const words *, uint64_t first, unsigned count, double *stage,
                                          unsigned lane) const
    {
        for (unsigned i = lane; i < count; i += WARP)
            stage[totals_place(i)] = at(first + i);
    }
    __device__ __forceinline__ void subtract(double mean, uint64_t length, unsigned thread, unsigned threads) const
    {
        for (uint64_t i = thread; i < length; i += threads)
            step_put_f64(output->dtype, demean_sample(input->dtype, at(i), mean), y + (int64_t)i * output->stride);
    }
};

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(THREADS)
    demean_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                uint64_t begin)
{
    __shared__ double stages[WARPS][STAGE], members[WARPS][LEVELS][ORDER_FAN], tile_totals[2][ORDER_FAN], shared_mean;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool by_warp = tile.row_count >= WARPS;
    for (uint64_t i = by_warp ? warp : 0; i < tile.row_count; i += by_warp ? WARPS : 1) {
        const uint64_t row = tile.first_row + i, length = step_length(&rows, &rows.input, row);
        const struct samples<Dtype> samples = {
            &rows.input, &rows.output, step_row(&rows, &rows.input, row), step_row(&rows, &rows.output, row)
        };
        if (length == 0)
            continue;
        const double total = by_warp ? warp_total(samples, length, stages[warp], members[warp], lane)
                                     : block_total(samples, length, stages[warp], members[0], tile_totals, warp, lane);
        double mean = total / (double)length;
        if (!by_warp) { /* the total is the first warp's */
            if (threadIdx.x == 0)
                shared_mean = mean;
            __syncthreads();
            mean = shared_mean;
        }
        samples.subtract(mean, length, by_warp ? lane : threadIdx.x, by_warp ? WARP : THREADS);
    }
}

/*
 * Rows in shared memory: a team of warps for each, a tile for each in turn.
 */

#define TEAM_WARPS   8 /* warps of a thread block */
#define TEAM_TILES   2 /* tiles of a warp that a team is large enough for, up to all warps of the block */
#define STAGED_LEAST (ORDER_TILE / 2) /* shorter rows would leave lanes without samples */
#define STAGED_BYTES (64 << 10)       /* of a row, so that a multiprocessor of 9.0 has memory for three thread blocks */

/* team: warps of a row. tiles: of a row, a block of order 1 at most. */
struct teams {
    struct staged_rows rows;
    unsigned team, tiles;
};

template <enum scand_dtype Dtype>
static __device__ __forceinline__ double staged_tile_total(const pack<Dtype> *stage, unsigned count, unsigned lane)
{
    typedef pack<Dtype> pack;
    pack x[staged_tile<Dtype>::leaf_vectors];
    staged_tile<Dtype>::leaf(stage, lane, x);
    const double sum = staged_sum(
        staged_rest(count, lane), [&] { return (double)x[0].get(0); },
        [&](double so_far, unsigned j) { return so_far + (double)x[j / pack::count].get(j % pack::count); });
    return staged_total(sum, count, lane);
}

template <enum scand_dtype Dtype>
static __device__ __forceinline__ void put_samples(const pack<Dtype> &made, unsigned count, char *y)
{
    for (unsigned k = 0; k < pack<Dtype>::count; k++)
        if (k < count)
            step_put_f64(Dtype, (double)made.get(k), (char *)step_aligned(true, Dtype, y + k * pack<Dtype>::size));
}

/* Writes a tile less the mean. */
template <enum scand_dtype Dtype>
static __device__ __forceinline__ void put_tile(const pack<Dtype> *stage, double mean, char *y, unsigned count,
                                                unsigned lane)
{
    typedef pack<Dtype> pack;
    constexpr unsigned each = staged_tile<Dtype>::vectors / WARP;
    pack made[each];
#pragma unroll
    for (unsigned p = 0; p < each; p++) {
        made[p] = stage[staged_tile<Dtype>::place(p * WARP + lane)];
#pragma unroll
        for (unsigned k = 0; k < pack::count; k++)
            made[p].put(k, (typename pack::number)demean_sample(Dtype, (double)made[p].get(k), mean));
    }
#pragma unroll
    for (unsigned p = 0; p < each; p++) {
        const unsigned first = (p * WARP + lane) * pack::count;
        if (first + pack::count <= count)
            ((pack *)y)[p * WARP + lane] = made[p];
        else if (first < count)
            put_samples<Dtype>(made[p], count - first, y + first * pack::size);
    }
}

template <enum scand_dtype Dtype>
static __global__ void __launch_bounds__(TEAM_WARPS *WARP)
    demean_staged_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct teams teams,
                       uint64_t begin)
{
    typedef staged_tile<Dtype> staged;
    extern __shared__ uint4 staged_rows_memory[];
    __shared__ double tile_totals[TEAM_WARPS][ORDER_FAN];
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, mine = warp / teams.team;
    const unsigned member = warp % teams.team, length = (unsigned)rows.input.length;
    const uint64_t number = (begin + blockIdx.x) * (TEAM_WARPS / teams.team) + mine;
    const bool is_row = number < teams.rows.count;
    const uint64_t row = teams.rows.first + (is_row ? number : 0);
    char *at[2]; /* of input and output */
    step_row_of_each(rows, {&rows.input, &rows.output}, row, at);
    pack<Dtype> *const stages = (pack<Dtype> *)staged_rows_memory + mine * teams.tiles * staged::vectors;
    if (is_row)
        for (unsigned tile = member; tile < teams.tiles; tile += teams.team)
            staged::fetch(stages + tile * staged::vectors, at[0] + tile * ORDER_TILE * pack<Dtype>::size,
                          staged_count(length - tile * ORDER_TILE), lane);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    if (is_row)
        for (unsigned tile = member; tile < teams.tiles; tile += teams.team) {
            const double total = staged_tile_total<Dtype>(stages + tile * staged::vectors,
                                                          staged_count(length - tile * ORDER_TILE), lane);
            if (lane == 0)
                tile_totals[mine][tile] = total;
        }
    __syncthreads();
    if (!is_row)
        return;
    const double total = group_total(lane < teams.tiles ? tile_totals[mine][lane] : 0.0, lane, teams.tiles);
    const double mean = total / (double)length;
    for (unsigned tile = member; tile < teams.tiles; tile += teams.team)
        put_tile<Dtype>(stages + tile * staged::vectors, mean, at[1] + tile * ORDER_TILE * pack<Dtype>::size,
                        staged_count(length - tile * ORDER_TILE), lane);
}

static_assert((TEAM_WARPS & (TEAM_WARPS - 1)) == 0, "teams of a power of two fill a thread block");

/* Returns an error where so much shared memory is not to be had, and has launched nothing then. */
template <enum scand_dtype Dtype>
static cudaError_t launch_staged(const struct step_rows *rows, const struct step_tiles *tiles, uint64_t begin,
                                 uint64_t end, void *stream)
{
    struct teams teams = {staged_rows_of(tiles, begin, end), 1,
                          (unsigned)((rows->input.length + ORDER_TILE - 1) / ORDER_TILE)};
    while (teams.team < TEAM_WARPS && teams.team * TEAM_TILES < teams.tiles)
        teams.team *= 2;
    const unsigned at_once = TEAM_WARPS / teams.team;
    const size_t bytes = (size_t)at_once * teams.tiles * sizeof(pack<Dtype>[staged_tile<Dtype>::vectors]);
    cudaError_t error =
        cudaFuncSetAttribute(demean_staged_rows<Dtype>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (!error)
        error = cudaFuncSetAttribute(demean_staged_rows<Dtype>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    if (error)
        return error;
    return step_launch_each(0, (teams.rows.count + at_once - 1) / at_once, [&](uint64_t first, unsigned grid) {
        demean_staged_rows<Dtype><<<grid, TEAM_WARPS * WARP, bytes, (cudaStream_t)stream>>>(*rows, teams, first);
    });
}

/* True for rows that are not so short, and fit. */
static bool are_staged(const struct step_rows *rows)
{
    const uint64_t length = rows->input.length;
    return length >= STAGED_LEAST && length <= ORDER_BLOCK && length * codec_bytes(rows->input.dtype) <= STAGED_BYTES;
}

static bool are_dense(const struct step_rows *rows, enum scand_dtype dtype)
{
    return !rows->offsets && step_is_dense(rows, &rows->input, dtype, PACK_BYTES) &&
           step_is_dense(rows, &rows->output, dtype, PACK_BYTES);
}

extern "C" int demean_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                             uint64_t begin, uint64_t end, void *stream)
{
    auto *const kernel = are_dense(rows, SCAND_DTYPE_F32)   ? demean_rows<SCAND_DTYPE_F32>
                         : are_dense(rows, SCAND_DTYPE_F64) ? demean_rows<SCAND_DTYPE_F64>
                                                            : demean_rows<ANY>;
    (void)params;
    if (kernel != demean_rows<ANY> && are_staged(rows)) {
        const cudaError_t error = rows->input.dtype == SCAND_DTYPE_F32
                                      ? launch_staged<SCAND_DTYPE_F32>(rows, tiles, begin, end, stream)
                                      : launch_staged<SCAND_DTYPE_F64>(rows, tiles, begin, end, stream);
        if (error != cudaErrorInvalidValue)
            return error;
        cudaGetLastError(); /* a GPU with less shared memory */
    }
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

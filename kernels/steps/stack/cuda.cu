/*
 * Tiles that are launched together are areas of rows and bins, which are cut into thread blocks anew. Rows that share
 * an index are added from lists of its samples (lists.cuh), rows with an index each by a thread for each row, which has
 * the sums of some bins in shared memory, and few rows by a thread for each bin. Either way a sum is one thread's,
 * which meets samples in ascending order.
 */
#include "lists.cuh"

/*
 * An index for each row.
 */

#define OWN_THREADS 128 /* at most */
#define OWN_BINS    16  /* bins of a thread block: cells of 12 bytes for each row and bin */

/* A thread has a row, or none, and sums and folds of OWN_BINS bins, blockDim.x apart. */
template <class T>
static __global__ void __launch_bounds__(OWN_THREADS)
    stack_own(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
              const __grid_constant__ struct step_tile area, uint64_t begin)
{
    extern __shared__ __align__(16) unsigned char step_shared[];
    T *sums = (T *)step_shared + threadIdx.x;
    uint32_t *folds = (uint32_t *)(step_shared + OWN_BINS * blockDim.x * sizeof(T)) + threadIdx.x;
    const uint64_t row_parts = parts(area.row_count, blockDim.x), number = begin + blockIdx.x;
    const uint64_t place = number % row_parts * blockDim.x + threadIdx.x, row = area.first_row + place;
    const uint64_t first_bin = area.begin + number / row_parts * OWN_BINS, left = area.end - first_bin;
    const uint64_t bins = left < OWN_BINS ? left : OWN_BINS;
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    if (place >= area.row_count)
        return;
    const T alpha = factor_of<T>(stack);
    const struct cells cells = cells_of(rows, row);
    const char *x = step_row(&rows, &input, row), *bins_row = step_row(&rows, &index, row);
    for (unsigned bin = 0; bin < bins; bin++) {
        sums[bin * blockDim.x] = first_sum<T>(rows, cells_at(rows, cells, 0, first_bin + bin));
        folds[bin * blockDim.x] = 0;
    }
    for (uint64_t i = 0; i < input.length; i++) {
        const uint64_t bin = step_decode_integer(index.dtype, bins_row + (int64_t)i * index.stride) - first_bin;
        if (bin >= bins)
            continue;
        const T sample = get_sample<T>(input.dtype, x + (int64_t)i * input.stride);
        sums[bin * blockDim.x] = sums[bin * blockDim.x] + alpha * sample;
        folds[bin * blockDim.x] += sample != 0;
    }
    for (unsigned bin = 0; bin < bins; bin++)
        put_cell<T>(rows, stack, cells_at(rows, cells, 0, first_bin + bin), sums[bin * blockDim.x],
                    folds[bin * blockDim.x]);
}

/*
 * Few rows.
 */

#define FEW_THREADS 128 /* a bin each */
#define FEW_SAMPLES 512 /* samples that are looked up at a time */

template <class T>
static __global__ void __launch_bounds__(FEW_THREADS)
    stack_bins(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct stack stack,
               const __grid_constant__ struct step_tile area, uint64_t begin)
{
    __shared__ T samples[FEW_SAMPLES];
    __shared__ uint32_t bins[FEW_SAMPLES];
    const struct step_operand &input = rows.input, &index = rows.further[STACK_INDEX];
    const uint64_t number = begin + blockIdx.x, row = area.first_row + number % area.row_count;
    const uint64_t first_bin = area.begin + number / area.row_count * FEW_THREADS, bin = first_bin + threadIdx.x;
    const char *x = step_row(&rows, &input, row), *bins_row = step_row(&rows, &index, row);
    const struct cells cells = cells_of(rows, row);
    const T alpha = factor_of<T>(stack);
    T sum = bin < area.end ? first_sum<T>(rows, cells_at(rows, cells, 0, bin)) : 0;
    uint32_t fold = 0;
    for (uint64_t first = 0; first < input.length; first += FEW_SAMPLES) {
        const unsigned count = input.length - first < FEW_SAMPLES ? (unsigned)(input.length - first) : FEW_SAMPLES;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += FEW_THREADS) {
            const char *at = bins_row + (int64_t)(first + i) * index.stride;
            const uint64_t found = step_decode_integer(index.dtype, at) - first_bin;
            samples[i] = get_sample<T>(input.dtype, x + (int64_t)(first + i) * input.stride);
            bins[i] = found < FEW_THREADS ? (uint32_t)found : UINT32_MAX;
        }
        __syncthreads();
        for (unsigned i = 0; i < count; i++)
            if (bins[i] == threadIdx.x) {
                sum = sum + alpha * samples[i];
                fold += samples[i] != 0;
            }
    }
    if (bin < area.end)
        put_cell<T>(rows, stack, cells_at(rows, cells, 0, bin), sum, fold);
}

/*
 * Launches.
 */

/* A launch on a stream, of an area. */
struct job {
    const struct step_rows *rows;
    const struct stack *stack;
    struct step_tile area;
    bool wide; /* lanes have several rows wherever they can: for tests */
    cudaStream_t stream;
};

static uint64_t bins_of(const struct job *job)
{
    return job->area.end - job->area.begin;
}

/* True when rows along the last dimension are neighbours in memory. */
static bool are_neighbours(const struct step_rows *rows)
{
    const uint32_t last = rows->outer_rank - 1;
    return rows->outer_rank > 0 && rows->input.outer_strides[last] == (int64_t)codec_bytes(rows->input.dtype);
}

/*
 * A shared index.
 */

/* Lines of an area that have one index each. */
static struct lines lines_of(const struct job *job)
{
    const struct step_tile *area = &job->area;
    if (!stack_lines_share(job->rows))
        return {area->first_row, area->row_count, 0};
    const uint64_t along = job->rows->outer_shape[job->rows->outer_rank - 1];
    return {0, along, area->first_row / along};
}

static uint64_t line_count(const struct job *job, const struct lines &lines)
{
    return (job->area.first_row + job->area.row_count - 1 - lines.base) / lines.along - lines.first + 1;
}

/* The lists of an area lie in the workspace, their bounds first. */
static struct lists lists_of(const struct job *job, uint64_t count)
{
    struct bounds *bounds = (struct bounds *)job->rows->workspace;
    return {bounds, (uint32_t *)(bounds + count * bins_of(job)), bins_of(job), job->rows->input.length,
            stack_is_shared(job->rows)};
}

template <class Form> static struct cut cut_of(const struct job *job, const struct lines &lines)
{
    const struct step_operand *onto = &job->rows->further[STACK_ONTO];
    struct cut cut = {.area = job->area, .lines = lines};
    cut.line_parts = parts(lines.along, Form::warp_rows);
    cut.row_parts = line_count(job, lines) * cut.line_parts;
    const uint64_t bins = 1 + (cut.row_parts * bins_of(job) - 1) / PLENTY;
    cut.bins = bins < BINS ? (unsigned)bins : BINS;
    cut.groups = parts(bins_of(job), cut.bins);
    cut.bins_first = !are_neighbours(job->rows);
    cut.onto_is_plain = onto->origin && onto->dtype == SCAND_DTYPE_F32 && step_is_aligned(job->rows, onto);
    return cut;
}

static cudaError_t launch_sort(const struct job *job, const struct lines &lines, const struct lists &lists,
                               uint64_t count)
{
    return step_launch_each(0, count * parts(bins_of(job), BINS), [&](uint64_t first, unsigned grid) {
        stack_sort<<<grid, SORT_THREADS, 0, job->stream>>>(*job->rows, lines, lists, job->area.begin, first);
    });
}

template <class T, enum scand_dtype Dtype, class Form, bool Counts>
static cudaError_t launch_lists(const struct job *job)
{
    const struct lines lines = lines_of(job);
    const struct cut cut = cut_of<Form>(job, lines);
    const uint64_t count = stack_is_shared(job->rows) ? 1 : line_count(job, lines);
    const uint64_t warps = cut.row_parts * cut.groups, length = job->rows->input.length;
    const bool is_short = length <= SHORT && warps * cut.bins * length <= LOOKS_MOST;
    const uint64_t bytes = is_short ? Form::warps * length * sizeof(uint32_t) : 0;
    struct lists lists = lists_of(job, count);
    const cudaError_t error = is_short ? cudaSuccess : launch_sort(job, lines, lists, count);
    if (error)
        return error;
    if (is_short)
        lists.places = NULL;
    /* The launch that adds may begin while the one before still sorts. */
    cudaLaunchAttribute early = {cudaLaunchAttributeProgrammaticStreamSerialization};
    early.val.programmaticStreamSerializationAllowed = 1;
    const unsigned attributes = !is_short && step_is_of_9((const void *)stack_sort);
    return step_launch_each(0, parts(warps, Form::warps), [&](uint64_t first, unsigned grid) {
        const cudaLaunchConfig_t config = {grid, Form::threads, bytes, job->stream, &early, attributes};
        cudaLaunchKernelEx(&config, stack_lists<T, Dtype, Form, Counts>, *job->rows, *job->stack, cut, lists, first);
    });
}

/* True when lanes may have several rows each: neighbours in memory, and so many that warps suffice. */
static bool is_wide(const struct job *job)
{
    const struct step_rows *rows = job->rows;
    const uint64_t warps = parts(job->area.row_count, wide::warp_rows) * bins_of(job);
    const bool even = rows->outer_rank == 1 || stack_lines_share(rows);
    return even && are_neighbours(rows) && (job->wide || warps >= ENOUGH);
}

static cudaError_t launch_f32(const struct job *job)
{
    const bool counts = stack_counts(job->rows, job->stack);
    if (is_wide(job))
        return counts ? launch_lists<double, SCAND_DTYPE_F32, wide, true>(job)
                      : launch_lists<double, SCAND_DTYPE_F32, wide, false>(job);
    return counts ? launch_lists<double, SCAND_DTYPE_F32, deep, true>(job)
                  : launch_lists<double, SCAND_DTYPE_F32, deep, false>(job);
}

/*
 * All.
 */

static cudaError_t launch_shared(const struct job *job)
{
    if (codec_is_integer(job->rows->input.dtype))
        return launch_lists<uint64_t, ANY, whole, true>(job);
    if (job->rows->input.dtype == SCAND_DTYPE_F32 && step_is_aligned(job->rows, &job->rows->input))
        return launch_f32(job);
    return launch_lists<double, ANY, plain, true>(job);
}

template <class T> static cudaError_t launch_own(const struct job *job)
{
    const uint64_t count = job->area.row_count;
    const unsigned threads = count < OWN_THREADS ? (unsigned)parts(count, WARP) * WARP : OWN_THREADS;
    const unsigned bytes = OWN_BINS * threads * (unsigned)(sizeof(T) + sizeof(uint32_t));
    return step_launch_each(
        0, parts(count, threads) * parts(bins_of(job), OWN_BINS), [&](uint64_t first, unsigned grid) {
            stack_own<T><<<grid, threads, bytes, job->stream>>>(*job->rows, *job->stack, job->area, first);
        });
}

template <class T> static cudaError_t launch_few(const struct job *job)
{
    return step_launch_each(
        0, job->area.row_count * parts(bins_of(job), FEW_THREADS), [&](uint64_t first, unsigned grid) {
            stack_bins<T><<<grid, FEW_THREADS, 0, job->stream>>>(*job->rows, *job->stack, job->area, first);
        });
}

static cudaError_t launch_area(const struct job *job, bool few)
{
    const bool integers = codec_is_integer(job->rows->input.dtype);
    if (few)
        return integers ? launch_few<uint64_t>(job) : launch_few<double>(job);
    if (stack_has_lists(job->rows))
        return launch_shared(job);
    return integers ? launch_own<uint64_t>(job) : launch_own<double>(job);
}

/* The area of tiles from `begin` on, *count of them: whole rows, or some bins of the rows of a tile. */
static struct step_tile area_of(const struct step_tiles *tiles, uint64_t begin, uint64_t end, uint64_t *count)
{
    const uint64_t left = end - begin, rest = tiles->per_row - begin % tiles->per_row;
    if (rest == tiles->per_row && left >= rest)
        *count = left - left % tiles->per_row;
    else
        *count = left < rest ? left : rest;
    struct step_tile area = step_tile_at(tiles, begin);
    const struct step_tile last = step_tile_at(tiles, begin + *count - 1);
    area.row_count = last.first_row + last.row_count - area.first_row;
    area.end = last.end;
    return area;
}

static cudaError_t launch_tiles(const struct step_rows *rows, const struct stack *stack, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, bool wide, cudaStream_t stream)
{
    const uint64_t tile_rows = tiles->count < tiles->tiling.rows ? tiles->count : tiles->tiling.rows;
    cudaError_t error = cudaSuccess;
    for (uint64_t count; begin < end && !error; begin += count) {
        const struct step_tile area = area_of(tiles, begin, end, &count);
        const struct job job = {rows, stack, area, wide, stream};
        error = launch_area(&job, tile_rows < STACK_ROWS_LEAST);
    }
    return error;
}

extern "C" int stack_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                            uint64_t begin, uint64_t end, void *stream)
{
    return launch_tiles(rows, (const struct stack *)params, tiles, begin, end, false, (cudaStream_t)stream);
}

extern "C" int stack_launch_wide(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                 uint64_t begin, uint64_t end, void *stream)
{
    return launch_tiles(rows, (const struct stack *)params, tiles, begin, end, true, (cudaStream_t)stream);
}

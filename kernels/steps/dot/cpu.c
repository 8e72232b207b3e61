/*
 * Rows one after the other: products of a tile of order 1, then their total. Rows that are neighbours in memory go side
 * by side, a row in each lane.
 */
#include "dot.h"

#include "kernels/steps/lines.h"

step_run STEP_CPU(dot), STEP_CPU(dot_parts), STEP_CPU(dot_join);

/* Two rows, or the first two of several that lie side by side. */
struct pair {
    const struct step_operand *x, *y;
    const char *x0, *y0;
};

/* Returns the address of sample i. */
static inline const char *x_at(const struct pair *pair, uint64_t i)
{
    return pair->x0 + (int64_t)i * pair->x->stride;
}

static inline const char *y_at(const struct pair *pair, uint64_t i)
{
    return pair->y0 + (int64_t)i * pair->y->stride;
}

/*
 * A row.
 */

static void products(const void *row, uint64_t first, uint64_t count, double x[ORDER_TILE])
{
    const struct pair *pair = row;
    _Alignas(64) double y[ORDER_TILE];
    line_load_f64(pair->x->dtype, x_at(pair, first), pair->x->stride, count, x);
    line_load_f64(pair->y->dtype, y_at(pair, first), pair->y->stride, count, y);
    for (uint64_t i = 0; i < count; i++)
        x[i] = x[i] * y[i];
}

static uint64_t total_of_integers(const struct pair *pair, uint64_t length)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < length; i++)
        sum +=
            codec_decode_integer(pair->x->dtype, x_at(pair, i)) * codec_decode_integer(pair->y->dtype, y_at(pair, i));
    return sum;
}

static void run_row(const struct step_rows *rows, uint64_t row)
{
    const struct step_operand *output = &rows->output;
    const struct pair pair = {.x = &rows->input,
                              .y = &rows->further[DOT_OTHER],
                              .x0 = step_row(rows, &rows->input, row),
                              .y0 = step_row(rows, &rows->further[DOT_OTHER], row)};
    const uint64_t length = step_length(rows, pair.x, row);
    char *at = step_row(rows, output, row);
    if (codec_is_integer(pair.x->dtype))
        codec_encode_integer(output->dtype, total_of_integers(&pair, length), at);
    else
        step_put_f64(output->dtype, length > 0 ? totals_row(products, &pair, 0, length, totals_group(length)) : 0.0,
                     at);
}

/*
 * Parts of a long row: blocks of order 1, and the levels above them.
 */

static struct pair pair_of(const struct step_rows *rows, uint64_t row, uint64_t first)
{
    struct pair pair = {.x = &rows->input, .y = &rows->further[DOT_OTHER]};
    pair.x0 = step_row(rows, pair.x, row) + (int64_t)first * pair.x->stride;
    pair.y0 = step_row(rows, pair.y, row) + (int64_t)first * pair.y->stride;
    return pair;
}

static void run_part(const struct step_rows *rows, uint64_t row, uint64_t part)
{
    const uint64_t first = part * ORDER_BLOCK, left = rows->input.length - first;
    const uint64_t length = left < ORDER_BLOCK ? left : ORDER_BLOCK;
    const struct pair pair = pair_of(rows, row, first);
    char *at = step_row(rows, &rows->output, row) + (int64_t)part * rows->output.stride;
    if (codec_is_integer(pair.x->dtype))
        codec_encode_integer(rows->output.dtype, total_of_integers(&pair, length), at);
    else
        step_put_f64(rows->output.dtype, totals_row(products, &pair, 0, length, ORDER_BLOCK), at);
}

void STEP_CPU(dot_parts)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++)
        for (uint64_t part = tile->begin; part < step_end(rows, tile, row); part++)
            run_part(rows, row, part);
}

/* The total of members first <= i < first + count, of a group that has `size` of them if it is full. */
static double join(const double *members, uint64_t first, uint64_t count, uint64_t size)
{
    double totals[ORDER_FAN];
    uint64_t n = 0;
    if (size == 1)
        return members[first];
    for (const uint64_t part = size / ORDER_FAN; n * part < count; n++)
        totals[n] = join(members, first + n * part, count - n * part < part ? count - n * part : part, part);
    return totals_join(totals, n);
}

void STEP_CPU(dot_join)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const uint64_t count = rows->input.length;
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const void *numbers = step_row(rows, &rows->input, row);
        char *at = step_row(rows, &rows->output, row);
        if (codec_is_integer(rows->input.dtype))
            codec_encode_integer(rows->output.dtype, dot_sum(numbers, count), at);
        else
            step_put_f64(rows->output.dtype, join(numbers, 0, count, dot_join_group(count)), at);
    }
}

/*
 * Rows side by side.
 */

struct columns {
    struct pair pair;         /* operands of the first row */
    int64_t x_pitch, y_pitch; /* from row to row; y's is 0 where all rows have the same one */
    uint64_t count;           /* number of rows */
};

typedef double lanes[DOT_COLUMNS];

/* Sums of rows side by side: the members of the group of each level that is not complete. */
#define LEVELS 4 /* above leaves: 2^24 samples */
struct columns_scratch {
    lanes members[LEVELS][ORDER_FAN];
};
_Static_assert(sizeof(struct columns_scratch) <= STEP_SCRATCH_BYTES, "members lie in the scratch memory");

/* Asks for what the rows have some samples further on, since processors do not foresee such steps. */
static inline void ask_for(const struct columns *columns, uint64_t i)
{
    const uint64_t bytes = columns->count * codec_bytes(columns->pair.x->dtype);
    for (uint64_t at = 0; at < bytes; at += 64) {
        __builtin_prefetch(x_at(&columns->pair, i) + at);
        if (columns->y_pitch != 0)
            __builtin_prefetch(y_at(&columns->pair, i) + at);
    }
}

static inline void add_f32(const char *x, const char *y, uint64_t count, double *restrict sums)
{
    for (uint64_t k = 0; k < count; k++)
        sums[k] = sums[k] + (double)codec_decode_f32(SCAND_DTYPE_F32, x + k * sizeof(float)) *
                                (double)codec_decode_f32(SCAND_DTYPE_F32, y + k * sizeof(float));
}

static void add_any(const struct columns *columns, uint64_t i, double *restrict sums)
{
    lanes x, y;
    line_load_f64(columns->pair.x->dtype, x_at(&columns->pair, i), columns->x_pitch, columns->count, x);
    line_load_f64(columns->pair.y->dtype, y_at(&columns->pair, i), columns->y_pitch, columns->count, y);
    for (uint64_t k = 0; k < columns->count; k++)
        sums[k] = sums[k] + x[k] * y[k];
}

#define AHEAD 8 /* samples */

static void columns_leaf(const struct columns *columns, uint64_t first, uint64_t count, lanes sums)
{
    const struct pair *pair = &columns->pair;
    const bool f32 = pair->x->dtype == SCAND_DTYPE_F32 && pair->y->dtype == SCAND_DTYPE_F32 &&
                     columns->x_pitch == sizeof(float) && columns->y_pitch == sizeof(float);
    for (uint64_t k = 0; k < columns->count; k++)
        sums[k] = -0.0; /* which changes nothing that is added to it */
    for (uint64_t i = first; i < first + count; i++) {
        if (i + AHEAD < pair->x->length)
            ask_for(columns, i + AHEAD);
        if (f32)
            add_f32(x_at(pair, i), y_at(pair, i), columns->count, sums);
        else
            add_any(columns, i, sums);
    }
}

/* The total of a group, as row_total; `members` are those of its level, after which those of the levels below lie. */
static void columns_total(const struct columns *columns, uint64_t first, uint64_t count, uint64_t size,
                          lanes (*members)[ORDER_FAN], double *out)
{
    uint64_t n = 0;
    if (size == ORDER_LEAF) {
        columns_leaf(columns, first, count, out);
        return;
    }
    for (const uint64_t part = size / ORDER_FAN; n * part < count; n++)
        columns_total(columns, first + n * part, count - n * part < part ? count - n * part : part, part, members + 1,
                      members[0][n]);
    for (; n > 1; n = (n + 1) / 2)
        for (uint64_t i = 0, odd = n % 2; i < n / 2; i++)
            for (uint64_t k = 0; k < columns->count; k++)
                members[0][odd + i][k] = members[0][odd + 2 * i][k] + members[0][odd + 2 * i + 1][k];
    memcpy(out, members[0][0], columns->count * sizeof *out);
}

/* Computes `count` rows, which lie along the last outer dimension. */
static void run_columns(const struct step_rows *rows, uint64_t first, uint64_t count, struct columns_scratch *scratch)
{
    const struct step_operand *x = &rows->input, *y = &rows->further[DOT_OTHER];
    const struct columns columns = {.pair = {x, y, step_row(rows, x, first), step_row(rows, y, first)},
                                    .x_pitch = x->outer_strides[rows->outer_rank - 1],
                                    .y_pitch = y->outer_strides[rows->outer_rank - 1],
                                    .count = count};
    lanes totals = {0};
    if (x->length > 0)
        columns_total(&columns, 0, x->length, totals_group(x->length), scratch->members, totals);
    for (uint64_t k = 0; k < count; k++)
        step_put_f64(rows->output.dtype, totals[k], step_row(rows, &rows->output, first + k));
}

void STEP_CPU(dot)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const bool columns = dot_is_columns(rows) && !codec_is_integer(rows->input.dtype);
    const uint64_t end = tile->first_row + tile->row_count;
    (void)params;
    for (uint64_t row = tile->first_row, next; row < end; row = next) {
        next = row + 1;
        if (!columns) {
            run_row(rows, row);
            continue;
        }
        const uint64_t along = rows->outer_shape[rows->outer_rank - 1], left = along - row % along;
        next = row + (left < DOT_COLUMNS ? left : DOT_COLUMNS);
        next = next < end ? next : end;
        run_columns(rows, row, next - row, scratch);
    }
}

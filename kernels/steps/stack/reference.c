#include "stack.h"

/* A row, its index, and one of its bins. */
struct gather {
    const struct step_operand *input, *index;
    const char *x, *bins;
    const char *onto; /* value that the bin has already, or NULL */
};

static bool is_in(const struct gather *gather, uint64_t i, uint64_t bin)
{
    const char *at = gather->bins + (int64_t)i * gather->index->stride;
    return codec_decode_integer(gather->index->dtype, at) == bin;
}

static void put_float(const struct step_rows *rows, const struct stack *stack, const struct gather *gather,
                      uint64_t bin, char *out, uint64_t *fold)
{
    double sum = gather->onto ? step_get_f64(rows->further[STACK_ONTO].dtype, gather->onto) : 0;
    for (uint64_t i = 0; i < gather->input->length; i++) {
        if (!is_in(gather, i, bin))
            continue;
        const double x = step_get_f64(gather->input->dtype, gather->x + (int64_t)i * gather->input->stride);
        sum = sum + stack->alpha * x;
        *fold += x != 0;
    }
    step_put_f64(rows->output.dtype, stack_value(stack, sum, *fold), out);
}

static void put_integer(const struct step_rows *rows, const struct stack *stack, const struct gather *gather,
                        uint64_t bin, char *out, uint64_t *fold)
{
    const uint64_t alpha = (uint64_t)(int64_t)stack->alpha;
    uint64_t sum = gather->onto ? codec_decode_integer(rows->further[STACK_ONTO].dtype, gather->onto) : 0;
    for (uint64_t i = 0; i < gather->input->length; i++) {
        if (!is_in(gather, i, bin))
            continue;
        const uint64_t x = codec_decode_integer(gather->input->dtype, gather->x + (int64_t)i * gather->input->stride);
        sum = sum + alpha * x;
        *fold += x != 0;
    }
    codec_encode_integer(rows->output.dtype, sum, out);
}

static void stack_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                            void *scratch)
{
    const struct step_operand *output = &rows->output, *folds = &rows->further[STACK_FOLD];
    const struct step_operand *onto = &rows->further[STACK_ONTO];
    struct gather gather = {.input = &rows->input, .index = &rows->further[STACK_INDEX]};
    (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        gather.x = step_row(rows, gather.input, row);
        gather.bins = step_row(rows, gather.index, row);
        for (uint64_t bin = tile->begin; bin < step_end(rows, tile, row); bin++) {
            char *out = step_row(rows, output, row) + (int64_t)bin * output->stride;
            uint64_t fold = 0;
            if (onto->origin)
                gather.onto = step_row(rows, onto, row) + (int64_t)bin * onto->stride;
            if (codec_is_integer(gather.input->dtype))
                put_integer(rows, params, &gather, bin, out, &fold);
            else
                put_float(rows, params, &gather, bin, out, &fold);
            if (folds->origin)
                codec_encode_integer(folds->dtype, fold, step_row(rows, folds, row) + (int64_t)bin * folds->stride);
        }
    }
}

#define COLUMNS_MOST  UINT64_C(1024) /* columns of f32 a page */
#define COLUMNS_LEAST UINT64_C(32)
#define TILE_SAMPLES  (UINT64_C(1) << 22) /* samples of columns; of other rows an eighth, since each takes longer */

static uint64_t bounded(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value < most ? value : most;
}

/* Tiles of columns have as many as lie on a page, and a few bins: each sample belongs to one bin alone, so no other
 * tile reads it. Tiles of other rows have all bins, if possible, as a tile for other bins would read all samples once
 * more. */
static struct step_tiling stack_tiling(const struct step_rows *rows, const void *params)
{
    const struct stack *stack = params;
    const uint64_t length = rows->input.length > 0 ? rows->input.length : 1;
    if (stack_is_columns(rows)) {
        const uint64_t columns = bounded(TILE_SAMPLES / length, COLUMNS_LEAST, COLUMNS_MOST);
        return (struct step_tiling){.rows = columns, .elements = STACK_CELLS / columns};
    }
    const uint64_t bins = bounded(stack->bins, 1, STACK_CELLS);
    return (struct step_tiling){.rows = bounded(TILE_SAMPLES / 8 / length, 1, STACK_CELLS / bins), .elements = bins};
}

/* Launches of rows that share an index have lists of each bin's samples there: the bounds of each, and places. */
static uint64_t stack_workspace_bytes(const struct step_rows *rows, const void *params, uint64_t count)
{
    const struct stack *stack = params;
    const uint64_t most = stack_tiling(rows, params).rows, tile_rows = count < most ? count : most;
    if (tile_rows < STACK_ROWS_LEAST || !stack_has_lists(rows))
        return 0;
    const uint64_t lines = stack_is_shared(rows) ? 1 : count / rows->outer_shape[rows->outer_rank - 1] + 2;
    return lines * (rows->input.length + 2 * stack->bins) * sizeof(uint32_t);
}

static uint64_t stack_index_below(const void *params, uint32_t further)
{
    const struct stack *stack = params;
    return further == STACK_INDEX ? stack->bins : 0;
}

STEP_DECLARE(stack);
const struct step_kernel stack_kernel = {.name = "stack",
                                         .in_place = false,
                                         .onto = UINT32_C(1) << STACK_ONTO,
                                         .tiling = stack_tiling,
                                         .index_below = stack_index_below,
                                         .workspace_bytes = stack_workspace_bytes,
                                         .reference = stack_reference,
                                         .cpu = STEP_BUILDS(stack)};

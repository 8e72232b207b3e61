#include "copy.h"

#include <string.h>

#include "protocol/status.h"

/* Largest pitch that cudaMemcpy2D takes on every device. */
#define PITCH_MAX INT32_MAX
#define PARTS_MAX 8 /* parts of a line, copied at once */

static bool is_rows(const struct side *side)
{
    return side->stride == (int64_t)side->item_bytes || side->length == 1;
}

/* The innermost outer dimension is contiguous, and a sample of the side's rows in it ends before the next sample
 * begins.
 */
static bool is_columns(const struct side *side)
{
    const struct scan_rows *rows = side->rows;
    if (rows->outer_rank == 0)
        return false;
    const uint32_t last = rows->outer_rank - 1;
    const uint64_t all = rows->outer_shape[last], run = side->first % all + side->count <= all ? side->count : all;
    return side->outer_strides[last] == (int64_t)side->item_bytes && side->stride >= (int64_t)(run * side->item_bytes);
}

/* Results in an order in which each would be a copy of its own. */
static bool is_scattered(const struct side *side)
{
    uint32_t rank = side->rows->outer_rank;
    return side->by_rows && rank > 0 && side->outer_strides[rank - 1] < (int64_t)side->item_bytes;
}

static enum transport side_transport(const struct side *side)
{
    if (side->span->place == SCAND_PLACE_DEVICE || side->length == 0 || is_scattered(side))
        return TRANSPORT_NONE;
    return is_rows(side) ? TRANSPORT_ROWS : is_columns(side) ? TRANSPORT_COLUMNS : TRANSPORT_NONE;
}

struct side side_input(const struct chunk *chunk)
{
    struct side side = {
        .rows = chunk->rows,
        .first = chunk->first,
        .count = chunk->count,
        .span = &chunk->spans[OPERAND_INPUT],
        .outer_strides = chunk->rows->input_outer_strides,
        .length = chunk->rows->length,
        .stride = chunk->rows->input_stride,
        .item_bytes = dtype_size_bytes(chunk->rows->rule.input),
        .address = (unsigned char *)chunk->rows->input,
    };
    side.transport = side_transport(&side);
    return side;
}

struct side side_output(const struct chunk *chunk)
{
    struct side side = {
        .rows = chunk->rows,
        .first = chunk->first,
        .count = chunk->count,
        .span = &chunk->spans[OPERAND_OUTPUT],
        .outer_strides = chunk->rows->output_outer_strides,
        .length = is_reduction(chunk->rows) ? 1 : chunk->rows->length,
        .stride = chunk->rows->output_stride,
        .item_bytes = dtype_size_bytes(chunk->rows->rule.output),
        .address = chunk->rows->output,
        .by_rows = is_reduction(chunk->rows),
        .written = true,
    };
    side.transport = side_transport(&side);
    return side;
}

static bool is_shared(const struct side *side)
{
    for (uint32_t k = 0; k < side->rows->outer_rank; k++)
        if (side->outer_strides[k] != 0)
            return false;
    return side->transport == TRANSPORT_ROWS;
}

struct side side_coefficients(const struct chunk *chunk)
{
    struct side side = {
        .rows = chunk->rows,
        .first = chunk->first,
        .count = chunk->count,
        .span = &chunk->spans[OPERAND_FURTHER],
        .outer_strides = chunk->rows->coefficient_outer_strides,
        .length = chunk->rows->length,
        .stride = chunk->rows->coefficient_stride,
        .item_bytes = dtype_size_bytes(chunk->rows->rule.coefficients),
        .address = (unsigned char *)chunk->rows->coefficients,
    };
    side.transport = chunk->rows->coefficients ? side_transport(&side) : TRANSPORT_NONE;
    side.shared = is_shared(&side);
    if (side.shared) {
        side.first = 0;
        side.count = 1;
    }
    return side;
}

struct side side_operand(const struct chunk *chunk, const struct scan_rows *line, uint32_t number)
{
    const struct step_operand *operand = &chunk->operands[number];
    const int64_t begin = operand->on_line ? (int64_t)chunk->rows->offsets[chunk->first] : 0;
    struct side side = {
        .rows = operand->on_line ? line : chunk->rows,
        .first = operand->on_line ? 0 : chunk->first,
        .count = operand->on_line ? 1 : chunk->count,
        .span = &chunk->spans[number],
        .outer_strides = operand->outer_strides,
        .length = operand->on_line ? line->length : operand->length,
        .stride = operand->stride,
        .item_bytes = dtype_size_bytes(operand->dtype),
        .address = (unsigned char *)operand->origin,
        .by_rows = !operand->on_line && operand->length == 1,
        .written = chunk->written >> number & 1,
    };
    if (!operand->origin)
        return side;
    side.address += begin * operand->stride;
    side.transport = side_transport(&side);
    side.shared = !side.written && is_shared(&side);
    if (side.shared) {
        side.first = 0;
        side.count = 1;
    }
    return side;
}

uint64_t side_bytes(const struct side *side)
{
    return side->transport == TRANSPORT_NONE ? 0 : side->count * side->length * side->item_bytes;
}

uint64_t side_room_bytes(const struct side *side)
{
    return (side_bytes(side) + 255) / 256 * 256;
}

void sides_place(struct sides *sides, unsigned char *memory, uint64_t size_bytes)
{
    struct side *input = &sides->side[OPERAND_INPUT], *output = &sides->side[OPERAND_OUTPUT],
                *coefficients = &sides->side[OPERAND_FURTHER];
    uint64_t input_bytes = side_room_bytes(input), output_bytes = side_room_bytes(output);
    bool together = input->rows->rule.operation == SCAND_OPERATION_SCAN && input->transport == output->transport &&
                    input->item_bytes == output->item_bytes;
    uint64_t bytes = together ? output_bytes : input_bytes + output_bytes;
    sides->at[OPERAND_INPUT] = memory;
    sides->at[OPERAND_OUTPUT] = together ? memory : memory + input_bytes;
    sides->at[OPERAND_FURTHER] = memory + bytes;
    if (bytes + side_room_bytes(coefficients) > size_bytes)
        coefficients->transport = TRANSPORT_NONE;
    if (bytes > size_bytes)
        input->transport = output->transport = TRANSPORT_NONE;
}

void sides_place_apart(struct sides *sides, unsigned char *memory, uint64_t size_bytes)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < sides->count; i++) {
        const uint64_t bytes = side_room_bytes(&sides->side[i]);
        if (bytes > size_bytes - used)
            sides->side[i].transport = TRANSPORT_NONE;
        sides->at[i] = memory + used;
        used += side_room_bytes(&sides->side[i]);
    }
}

void side_place(const struct side *side, unsigned char *slot, int64_t outer_strides[SCAN_OUTER_MAX], int64_t *stride,
                unsigned char **address)
{
    const struct scan_rows *rows = side->rows;
    bool columns = side->transport == TRANSPORT_COLUMNS;
    int64_t row_bytes = (int64_t)(columns ? side->item_bytes : side->length * side->item_bytes);
    *stride = (int64_t)(columns ? side->count * side->item_bytes : side->item_bytes);
    *address = (unsigned char *)((uintptr_t)slot - side->first * (uint64_t)row_bytes);
    for (uint32_t k = rows->outer_rank; k-- > 0;) {
        outer_strides[k] = side->shared ? 0 : row_bytes;
        row_bytes *= (int64_t)rows->outer_shape[k];
    }
}

/* `height` lines of `width` bytes, host_pitch apart in host memory and slot_pitch apart in the slot. */
struct rectangle {
    unsigned char *host, *slot;
    uint64_t host_pitch, slot_pitch, width, height;
};

/* Lines that can be copied at once: whole ones before the next unit of pinned memory; 0 when the first one crosses
 * into it. */
static uint64_t lines_at_once(const struct rectangle *r, uint64_t room)
{
    if (r->width > room)
        return 0;
    if (r->height == 1 || r->host_pitch > PITCH_MAX)
        return 1;
    uint64_t lines = 1 + (room - r->width) / r->host_pitch;
    return lines < r->height ? lines : r->height;
}

static cudaError_t copy_lines(const struct rectangle *r, uint64_t lines, enum cudaMemcpyKind direction,
                              cudaStream_t stream)
{
    bool up = direction == cudaMemcpyHostToDevice;
    void *to = up ? r->slot : r->host, *from = up ? r->host : r->slot;
    if (lines == 1)
        return cudaMemcpyAsync(to, from, r->width, direction, stream);
    return cudaMemcpy2DAsync(to, up ? r->slot_pitch : r->host_pitch, from, up ? r->host_pitch : r->slot_pitch, r->width,
                             lines, direction, stream);
}

/* One line that crosses units: its parts at once, since each copy takes an engine 3 us more than its bytes. */
static cudaError_t copy_crossing(const struct span *span, const struct rectangle *r, enum cudaMemcpyKind direction,
                                 cudaStream_t stream)
{
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    const bool up = direction == cudaMemcpyHostToDevice;
    void *to[PARTS_MAX];
    const void *from[PARTS_MAX];
    size_t sizes[PARTS_MAX], count = 0, first = 0;
    cudaError_t e = cudaSuccess;
    for (uint64_t done = 0; done < r->width && e == cudaSuccess; done += sizes[count - 1]) {
        uint64_t at = (uint64_t)(r->host + done - (unsigned char *)span->base);
        uint64_t room = span->pin_unit_bytes - at % span->pin_unit_bytes, left = r->width - done;
        if (count == PARTS_MAX) {
            e = cudaMemcpyBatchAsync(to, from, sizes, count, &attributes, &first, 1, stream);
            count = 0;
        }
        to[count] = up ? r->slot + done : r->host + done;
        from[count] = up ? r->host + done : r->slot + done;
        sizes[count++] = left < room ? left : room;
    }
    return e == cudaSuccess ? cudaMemcpyBatchAsync(to, from, sizes, count, &attributes, &first, 1, stream) : e;
}

static cudaError_t copy_rectangle(const struct span *span, struct rectangle r, enum cudaMemcpyKind direction,
                                  cudaStream_t stream)
{
    while (r.height > 0) {
        uint64_t at = (uint64_t)(r.host - (unsigned char *)span->base);
        uint64_t lines = lines_at_once(&r, span->pin_unit_bytes - at % span->pin_unit_bytes);
        cudaError_t e = lines ? copy_lines(&r, lines, direction, stream) : copy_crossing(span, &r, direction, stream);
        if (e != cudaSuccess)
            return e;
        lines += lines == 0;
        r.host += lines * r.host_pitch;
        r.slot += lines * r.slot_pitch;
        r.height -= lines;
    }
    return cudaSuccess;
}

/* Rows of the side from `row` on that make one rectangle: to the end of the innermost dimension, if their lines do not
 * overlap. */
static uint64_t run_rows(const struct side *side, uint64_t row)
{
    const struct scan_rows *rows = side->rows;
    if (rows->outer_rank == 0)
        return 1;
    uint32_t last = rows->outer_rank - 1;
    uint64_t left = side->first + side->count - row, run = rows->outer_shape[last] - row % rows->outer_shape[last];
    if (side->transport == TRANSPORT_ROWS && side->outer_strides[last] < (int64_t)(side->length * side->item_bytes))
        return 1;
    return run < left ? run : left;
}

/* The rectangle that `run` rows of the side make from `row` on. */
static struct rectangle side_rectangle(const struct side *side, unsigned char *slot, uint64_t row, uint64_t run)
{
    const struct scan_rows *rows = side->rows;
    uint64_t item = side->item_bytes;
    struct rectangle r = {.host = side->address + scan_row_offset(rows, side->outer_strides, row)};
    if (side->transport == TRANSPORT_ROWS) {
        r.width = r.slot_pitch = side->length * item;
        r.host_pitch = run > 1 ? (uint64_t)side->outer_strides[rows->outer_rank - 1] : r.width;
        r.height = run;
        r.slot = slot + (row - side->first) * r.slot_pitch;
    } else {
        r.width = run * item;
        r.host_pitch = (uint64_t)side->stride;
        r.slot_pitch = side->count * item;
        r.height = side->length;
        r.slot = slot + (row - side->first) * item;
    }
    if (r.host_pitch == r.width && r.slot_pitch == r.width) {
        r.width *= r.height;
        r.height = 1;
    }
    return r;
}

cudaError_t side_copy(const struct side *side, unsigned char *slot, enum cudaMemcpyKind direction, cudaStream_t stream)
{
    uint64_t run;
    for (uint64_t row = side->first; row < side->first + side->count; row += run) {
        run = run_rows(side, row);
        cudaError_t e = copy_rectangle(side->span, side_rectangle(side, slot, row, run), direction, stream);
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

/* Returns one of so many parts of a rectangle: some of its lines, or, where it has few, some bytes of each. */
static struct rectangle rectangle_part(struct rectangle r, unsigned part, unsigned parts)
{
    bool across = r.height >= parts;
    uint64_t *extent = across ? &r.height : &r.width, begin = *extent * part / parts;
    *extent = *extent * (part + 1) / parts - begin;
    r.host += begin * (across ? r.host_pitch : 1);
    r.slot += begin * (across ? r.slot_pitch : 1);
    return r;
}

void side_stage(const struct side *side, unsigned char *memory, enum staging staging, unsigned part, unsigned parts)
{
    uint64_t run;
    for (uint64_t row = side->first; row < side->first + side->count; row += run) {
        run = run_rows(side, row);
        struct rectangle r = rectangle_part(side_rectangle(side, memory, row, run), part, parts);
        for (uint64_t i = 0; i < r.height; i++, r.host += r.host_pitch, r.slot += r.slot_pitch)
            memcpy(staging == STAGING_GATHER ? r.slot : r.host, staging == STAGING_GATHER ? r.host : r.slot, r.width);
    }
}

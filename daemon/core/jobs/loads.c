#include "loads.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "footprint.h"

#define ALIGNMENT  64   /* bytes lie in a block as they would in pages, as far as a processor cares */
#define UNIT_LINES 1024 /* calls that a unit makes at most: some milliseconds */

bool job_reads_files(const struct job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (buffer_is_file(job->operands[i].buffer))
            return true;
    return false;
}

bool loads_are_ready(const struct job *job)
{
    const struct load *load = job->loads->first;
    if (!load || !load->done || load->error.code)
        return false;
    return values_are_left(job) ? load->of_values : !load->of_values && load->first == job->next_row;
}

/*
 * Addresses: those of files, which nobody can use, become those in the block.
 */

/* The place of a tensor's first element, and the steps between its rows and samples, from now on. */
struct layout {
    const void **origin;
    int64_t *stride, *outer_strides;
};

static void move(const struct load *load, const struct scan_rows *rows, uint32_t operand, struct layout layout)
{
    const struct load_part *part = &load->parts[operand];
    if (!part->buffer || !*layout.origin)
        return;
    const uintptr_t at = (uintptr_t)load->block->base + part->at;
    if (part->gather == GATHER_COLUMNS)
        *layout.stride = (int64_t)part->packed_bytes;
    if (part->gather == GATHER_ROWS)
        layout.outer_strides[rows->outer_rank - 1] = (int64_t)part->packed_bytes;
    if (part->gather != GATHER_ALL) { /* the block begins with the first row */
        *layout.origin = (void *)(at - (uintptr_t)scan_row_offset(rows, layout.outer_strides, load->first));
        return;
    }
    const uintptr_t begin = (uintptr_t)part->buffer->span.base + part->extent.begin;
    *layout.origin = (void *)(at + ((uintptr_t)*layout.origin - begin));
}

static struct span span_of(const struct block *block)
{
    return (struct span){.place = SCAND_PLACE_HOST,
                         .base = block->base,
                         .size_bytes = block->size_bytes,
                         .pin_unit_bytes = PIN_UNIT_BYTES,
                         .staged = block->staged};
}

static void bind_values(struct job *job, struct load *load, struct chunk *chunk)
{
    struct values *values = &job->values;
    struct step_operand *checked = &values->checked;
    const void *origin = checked->origin;
    if (!load->parts[values->operand].buffer)
        return;
    move(load, &job->rows, values->operand, (struct layout){&origin, &checked->stride, checked->outer_strides});
    checked->origin = (char *)(uintptr_t)origin;
    chunk->spans[0] = span_of(load->block);
}

static void bind_rows(const struct job *job, struct load *load, struct chunk *chunk)
{
    struct scan_rows *rows = &load->rows;
    *rows = job->rows;
    move(load, &job->rows, OPERAND_INPUT,
         (struct layout){&rows->input, &rows->input_stride, rows->input_outer_strides});
    if (job->operand_count > OPERAND_FURTHER)
        move(load, &job->rows, OPERAND_FURTHER,
             (struct layout){&rows->coefficients, &rows->coefficient_stride, rows->coefficient_outer_strides});
    chunk->rows = rows;
}

static void bind_operands(const struct job *job, struct load *load, struct chunk *chunk)
{
    memcpy(load->layouts, job->layouts, job->operand_count * sizeof load->layouts[0]);
    for (uint32_t i = 0; i < job->operand_count; i++) {
        struct step_operand *layout = &load->layouts[i];
        const void *origin = layout->origin;
        move(load, &job->rows, i, (struct layout){&origin, &layout->stride, layout->outer_strides});
        layout->origin = (char *)(uintptr_t)origin;
    }
    chunk->operands = load->layouts;
}

void loads_bind(struct job *job, struct chunk *chunk)
{
    struct load *load = job->loads->first;
    job->loads->first = load->next;
    job->loads->count--;
    chunk->load = load;
    if (load->of_values) {
        bind_values(job, load, chunk);
        return;
    }
    (job->plain ? bind_rows : bind_operands)(job, load, chunk);
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (buffer_is_file(job->operands[i].buffer))
            chunk->spans[i] = span_of(load->block);
}

void loads_return(struct loads *loads, struct load *load)
{
    load->next = loads->first;
    loads->first = load;
    loads->count++;
}

/*
 * The bytes that are to be read.
 */

static struct extent part_extent(const struct load *load, const struct job *job, uint32_t operand)
{
    const struct operand *at = &job->operands[operand];
    if (operand == OPERAND_OFFSETS || !buffer_is_file(at->buffer) || !at->origin)
        return (struct extent){0, 0};
    if (load->of_values)
        return operand == job->values.operand ? values_footprint(job) : (struct extent){0, 0};
    return operand_footprint(at, &job->rows, load->first, load->count);
}

static int refuse(const struct load *load, const struct extent *extent, struct error *error)
{
    return error_set(error, -EINVAL,
                     "rows %" PRIu64 " to %" PRIu64 " of the job, which are computed at a time, span bytes %" PRIu64
                     " to %" PRIu64 " of a file; allowed: %" PRIu64
                     " bytes in all; copy the file, or parts of it, into a buffer of buffer.create",
                     load->first, load->first + load->count - 1, extent->begin, extent->end, LIMIT_LOAD_BYTES);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* True when a load's rows lie along one dimension, at one distance, which becomes *step, upwards as their samples. */
static bool is_run(const struct load *load, const struct job *job, const struct operand *operand, uint64_t *step)
{
    const struct scan_rows *rows = &job->rows;
    const uint32_t rank = rows->outer_rank;
    *step = rank > 0 ? (uint64_t)operand->outer_strides[rank - 1] : 0;
    if (load->of_values || rows->offsets || operand->follows == FOLLOWS_JOB || operand->stride <= 0)
        return false;
    return rank == 0 || (load->first % rows->outer_shape[rank - 1] + load->count <= rows->outer_shape[rank - 1] &&
                         operand->outer_strides[rank - 1] > 0);
}

/* The lines begin `pitch_bytes` apart in the file, and lie side by side in the block. */
static void part_set_lines(struct load_part *part, enum gather gather, uint64_t lines, uint64_t width_bytes,
                           uint64_t pitch_bytes)
{
    part->gather = gather;
    part->lines = lines;
    part->width_bytes = width_bytes;
    part->pitch_bytes = pitch_bytes;
    part->packed_bytes = aligned(width_bytes);
}

/* Lines of rows, or of samples of all rows, where they and what lies between two of them are less than half of all. */
static void part_gather(struct load_part *part, const struct load *load, const struct job *job,
                        const struct operand *operand)
{
    const uint64_t all = part->extent.end - part->extent.begin, item = operand->item_bytes;
    part->gather = GATHER_ALL;
    part->lines = 1;
    part->width_bytes = part->pitch_bytes = part->packed_bytes = all;
    uint64_t step;
    if (!is_run(load, job, operand, &step))
        return;
    const uint64_t stride = (uint64_t)operand->stride;
    const uint64_t row_bytes = (operand->length - 1) * stride + item, run_bytes = (load->count - 1) * step + item;
    if (aligned(row_bytes) < step / 2 && load->count > 1)
        part_set_lines(part, GATHER_ROWS, load->count, row_bytes, step);
    else if (aligned(run_bytes) < stride / 2 && operand->length > 1)
        part_set_lines(part, GATHER_COLUMNS, operand->length, run_bytes, stride);
}

int load_lay_out(struct load *load, const struct job *job, struct error *error)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        struct load_part *part = &load->parts[i];
        const struct extent extent = part_extent(load, job, i);
        if (extent.begin == extent.end)
            continue;
        *part = (struct load_part){.buffer = job->operands[i].buffer, .extent = extent};
        part_gather(part, load, job, &job->operands[i]);
        part->at = at += (extent.begin - at) % ALIGNMENT;
        if (part->lines > LIMIT_LOAD_BYTES / part->packed_bytes ||
            part->lines * part->packed_bytes > LIMIT_LOAD_BYTES - at)
            return refuse(load, &extent, error);
        at += part->lines * part->packed_bytes;
    }
    load->size_bytes = at > 0 ? at : 1;
    return 0;
}

/*
 * Reading.
 */

/* Returns the file's offset of the next byte to be read. */
static uint64_t file_offset(const struct load *load, const struct load_part *part)
{
    const uint64_t line = load->part_bytes / part->width_bytes;
    return part->extent.begin + line * part->pitch_bytes + load->part_bytes % part->width_bytes;
}

/* Other reads may have come further, or less far: what counts is where the file ends now. */
static int refuse_end(struct load *load, const struct load_part *part)
{
    struct stat status;
    const uint64_t at = file_offset(load, part);
    const bool known = fstat(part->buffer->fds[0], &status) == 0 && (uint64_t)status.st_size < at;
    return error_set(&load->error, -EBADF,
                     "the file of buffer %" PRIu64 " ended at byte %" PRIu64 ", and had %" PRIu64
                     " bytes when it was imported; the output is incomplete: import the file again",
                     part->buffer->id, known ? (uint64_t)status.st_size : at, part->buffer->span.size_bytes);
}

static int read_fails(struct load *load, const struct load_part *part, int cause)
{
    return error_set(&load->error, -EBADF,
                     "the file of buffer %" PRIu64 " cannot be read at byte %" PRIu64 ": %s; the output is incomplete",
                     part->buffer->id, file_offset(load, part), strerror(cause));
}

/* Reads what is left of a line, or a unit of it, or less. */
static int read_line(struct load *load, const struct load_part *part)
{
    const uint64_t line = load->part_bytes / part->width_bytes, in_line = load->part_bytes % part->width_bytes;
    const uint64_t left = part->width_bytes - in_line;
    unsigned char *to = load->block->base + part->at + line * part->packed_bytes + in_line;
    const ssize_t n = pread(part->buffer->fds[0], to, left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES,
                            (off_t)file_offset(load, part));
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return n < 0 ? read_fails(load, part, errno) : refuse_end(load, part);
    load->part_bytes += (uint64_t)n;
    load->read_bytes += (uint64_t)n;
    return 0;
}

static bool part_is_read(const struct load *load, const struct load_part *part)
{
    return !part->buffer || load->part_bytes == part->lines * part->width_bytes;
}

/* The part to be read next; NULL: all have been. */
static const struct load_part *next_part(struct load *load)
{
    while (load->part < LIMIT_JOB_OPERANDS && part_is_read(load, &load->parts[load->part])) {
        load->part++;
        load->part_bytes = 0;
    }
    return load->part < LIMIT_JOB_OPERANDS ? &load->parts[load->part] : NULL;
}

bool load_run(struct work *work)
{
    struct load *load = (struct load *)work;
    struct service *service = load->service;
    int r = block_make(load->block, service->devices, &service->pool->page_budget, &load->error);
    if (r)
        return r > 0;
    const uint64_t until = load->read_bytes + LIMIT_UNIT_BYTES;
    const struct load_part *part = next_part(load);
    for (unsigned lines = 0; part && load->read_bytes < until && lines < UNIT_LINES; lines++) {
        if (read_line(load, part))
            return false;
        part = next_part(load);
    }
    return part != NULL;
}

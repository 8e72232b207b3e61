#include "loads.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "footprint.h"

#define ALIGNMENT 64 /* bytes lie in a block as they would in pages, as far as a processor cares */

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

static void *moved(const struct load *load, uint32_t operand, const void *address)
{
    const struct load_part *part = &load->parts[operand];
    if (!part->buffer || !address)
        return (void *)(uintptr_t)address;
    const uintptr_t begin = (uintptr_t)part->buffer->span.base + part->extent.begin;
    return (void *)((uintptr_t)load->block->base + part->at + ((uintptr_t)address - begin));
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
    if (!load->parts[values->operand].buffer)
        return;
    values->checked.origin = moved(load, values->operand, values->checked.origin);
    chunk->spans[0] = span_of(load->block);
}

static void bind_rows(const struct job *job, struct load *load, struct chunk *chunk)
{
    load->rows = job->rows;
    load->rows.input = moved(load, OPERAND_INPUT, job->rows.input);
    if (job->operand_count > OPERAND_FURTHER)
        load->rows.coefficients = moved(load, OPERAND_FURTHER, job->rows.coefficients);
    chunk->rows = &load->rows;
}

static void bind_operands(const struct job *job, struct load *load, struct chunk *chunk)
{
    memcpy(load->layouts, job->layouts, job->operand_count * sizeof load->layouts[0]);
    for (uint32_t i = 0; i < job->operand_count; i++)
        load->layouts[i].origin = moved(load, i, job->layouts[i].origin);
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
 * What is to be read.
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

int load_lay_out(struct load *load, const struct job *job, struct error *error)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct extent extent = part_extent(load, job, i);
        if (extent.begin == extent.end)
            continue;
        at += (extent.begin - at) % ALIGNMENT;
        if (extent.end - extent.begin > LIMIT_LOAD_BYTES || at + (extent.end - extent.begin) > LIMIT_LOAD_BYTES)
            return refuse(load, &extent, error);
        load->parts[i] = (struct load_part){job->operands[i].buffer, extent, at};
        at += extent.end - extent.begin;
    }
    load->size_bytes = at > 0 ? at : 1;
    return 0;
}

/*
 * Reading.
 */

/* Other reads may have come further, or less far: what counts is where the file ends now. */
static int refuse_end(struct load *load, const struct load_part *part)
{
    struct stat status;
    const uint64_t at = part->extent.begin + load->part_bytes;
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
                     part->buffer->id, part->extent.begin + load->part_bytes, strerror(cause));
}

/* A unit of a part, or less. */
static int read_part(struct load *load, const struct load_part *part)
{
    const uint64_t left = part->extent.end - part->extent.begin - load->part_bytes;
    unsigned char *to = load->block->base + part->at + load->part_bytes;
    const ssize_t n = pread(part->buffer->fds[0], to, left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES,
                            (off_t)(part->extent.begin + load->part_bytes));
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
    return !part->buffer || load->part_bytes == part->extent.end - part->extent.begin;
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
    const struct load_part *part = next_part(load);
    return part && read_part(load, part) == 0 && next_part(load);
}

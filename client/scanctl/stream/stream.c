#include "client/scanctl/stream/stream.h"

#include <inttypes.h>
#include <string.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/stream/direct.h"
#include "client/scanctl/stream/slots.h"

/* The size that is read, swapped and written at a time: it stays in the processor's cache. */
#define BLOCK_BYTES (UINT64_C(256) << 10)

/* Returns the bytes of a block: whole units, at least one. */
static uint64_t block_bytes(const struct array *array, uint64_t sample_bytes)
{
    uint64_t unit_bytes = array_unit_bytes(array, sample_bytes);
    uint64_t units = BLOCK_BYTES / unit_bytes;
    return unit_bytes * (units ? units : 1);
}

/* Says where in a row a pipe ends. `bytes` of the record have come. */
static int error_cut(const struct array *array, const struct side *side, const struct input *input, uint64_t record,
                     uint64_t bytes, struct error *error)
{
    if (bytes < array->trace_header_bytes)
        return fail(error, EX_DATAERR,
                    "%s: ends after %" PRIu64 " bytes, in the header of row %" PRIu64 " (counted from 1), %" PRIu64
                    " of its %" PRIu64 " bytes in; it is cut short",
                    input->name, input->position, record + 1, bytes, array->trace_header_bytes);
    return fail(error, EX_DATAERR,
                "%s: ends after %" PRIu64 " bytes, in row %" PRIu64 " (counted from 1), which needs %" PRIu64
                " bytes more of %" PRIu64 "; it is cut short",
                input->name, input->position, record + 1, side->record_bytes - bytes, side->record_bytes);
}

/* Checks and swaps some whole units that have been read; `before` units came before them. */
static int units_accept(const struct array *array, const struct side *side, char *units, uint64_t size_bytes,
                        uint64_t before, const char *name, struct error *error)
{
    const struct form *form = form_of(array->format);
    uint64_t count = size_bytes / array_unit_bytes(array, side->sample_bytes);
    int result = 0;
    if (form->check_traces)
        result = form->check_traces(array, units, count, before, name, error);
    if (!result)
        array_swap(array, units, size_bytes, side->dtype);
    return result;
}

/* Reads records of an array; their samples are then in the byte order of the dtype. Of an open-ended one *count becomes
 * how many there still were. */
static int records_read(const struct array *array, const struct side *side, uint64_t *count, struct input *input,
                        char *data, struct error *error)
{
    uint64_t size_bytes = *count * side->record_bytes, block = block_bytes(array, side->sample_bytes);
    uint64_t unit_bytes = array_unit_bytes(array, side->sample_bytes), done = 0;
    while (done < size_bytes) {
        uint64_t bytes = block < size_bytes - done ? block : size_bytes - done, read = bytes;
        uint64_t units_before = (input->position - array->header_bytes) / unit_bytes;
        int result = array->open_ended ? input_read_most(input, data + done, &read, error)
                                       : input_read(input, data + done, read, "samples", error);
        if (!result)
            result = units_accept(array, side, data + done, read - read % unit_bytes, units_before, input->name, error);
        if (result)
            return result;
        done += read;
        if (read < bytes)
            break;
    }
    *count = done / side->record_bytes;
    if (done % side->record_bytes)
        return error_cut(array, side, input, (input->position - array->header_bytes) / side->record_bytes,
                         done % side->record_bytes, error);
    return 0;
}

/* True when each batch has elements of its own of a further operand's file. */
static bool is_read(const struct stream *stream, uint32_t further)
{
    return !stream->further[further].written && !stream->partition->further[further].shared;
}

/* The input's records of a batch; the daemon's to read, they are passed over. */
static int input_records(struct stream *stream, struct slot *slot, struct error *error)
{
    const struct side *side = &stream->partition->input;
    if (stream->direct)
        return input_seek(stream->input, slot->position + slot->count * side->record_bytes, error);
    return records_read(stream->array, side, &slot->count, stream->input, scand_buffer_data(slot->buffer), error);
}

static int batch_read(struct stream *stream, struct slot *slot, struct error *error)
{
    const struct partition *partition = stream->partition;
    char *data = scand_buffer_data(slot->buffer);
    int result = input_records(stream, slot, error);
    for (uint32_t i = 0; !result && i < partition->further_count; i++) {
        struct operand_file *file = &stream->further[i];
        if (is_read(stream, i))
            result = records_read(&file->array, &partition->further[i].side, &slot->count, &file->input,
                                  data + partition_further_offset(partition, stream->records, i), error);
    }
    return result;
}

/* Reads the operands that all rows share once, into the buffers of all batches. */
static int vectors_read(struct stream *stream, struct error *error)
{
    const struct partition *partition = stream->partition;
    int result = 0;
    for (uint32_t i = 0; !result && i < partition->further_count; i++) {
        const struct side *side = &partition->further[i].side;
        const uint64_t offset = partition_further_offset(partition, stream->records, i);
        char *data = (char *)scand_buffer_data(stream->slots[0].buffer) + offset;
        uint64_t one = 1;
        if (!partition->further[i].shared)
            continue;
        result = records_read(&stream->further[i].array, side, &one, &stream->further[i].input, data, error);
        for (uint32_t k = 1; !result && k < stream->slot_count; k++)
            memcpy((char *)scand_buffer_data(stream->slots[k].buffer) + offset, data, side->record_bytes);
    }
    return result;
}

/* Records of the output: rows that differ in length have one result each. */
static uint64_t batch_results(const struct stream *stream, const struct slot *slot)
{
    return stream->ragged && stream->compute.reduces ? slot->rows : slot->count;
}

/* Gives a result that lies beside its input the headers of its rows. */
static void headers_copy(const struct stream *stream, const struct slot *slot)
{
    const struct partition *partition = stream->partition;
    const struct array *array = stream->array;
    const char *from = scand_buffer_data(slot->buffer);
    char *to = (char *)scand_buffer_data(slot->buffer) + partition_output_offset(partition, stream->records);
    uint64_t from_bytes = array_unit_bytes(array, partition->input.sample_bytes);
    uint64_t to_bytes = array_unit_bytes(array, partition->output.sample_bytes);
    uint64_t traces = slot->count * partition->input.record_bytes / from_bytes;
    for (uint64_t i = 0; i < traces; i++)
        memcpy(to + i * to_bytes, from + i * from_bytes, array->trace_header_bytes);
}

/* Writes what steps have left besides. */
static int further_write(struct stream *stream, const struct slot *slot, struct error *error)
{
    const struct partition *partition = stream->partition;
    const char *data = scand_buffer_data(slot->buffer);
    int result = 0;
    for (uint32_t i = 0; !result && i < partition->further_count; i++)
        if (stream->further[i].written)
            result = output_write(&stream->further[i].output.samples,
                                  data + partition_further_offset(partition, stream->records, i),
                                  slot->count * partition->further[i].side.record_bytes, error);
    return result;
}

/* Writes a batch's result; swaps it in the buffer, which is not needed any more. */
static int batch_write(struct stream *stream, const struct slot *slot, struct error *error)
{
    int result = further_write(stream, slot, error);
    if (result)
        return result;
    const struct side *side = &stream->partition->output;
    const struct array *result_array = stream->result;
    uint64_t size_bytes = batch_results(stream, slot) * side->record_bytes;
    char *data = (char *)scand_buffer_data(slot->buffer) + partition_output_offset(stream->partition, stream->records);
    if (stream->printer) {
        printer_put(stream->printer, side->dtype, data, size_bytes / side->sample_bytes);
        return 0;
    }
    if (result_array->trace_header_bytes && !stream->partition->in_place)
        headers_copy(stream, slot);
    /* Bytes that are not swapped are written in one block. */
    uint64_t block =
        array_is_swapped(result_array, side->dtype) ? block_bytes(result_array, side->sample_bytes) : size_bytes;
    for (uint64_t done = 0; done < size_bytes; done += block) {
        uint64_t bytes = block < size_bytes - done ? block : size_bytes - done;
        array_swap(result_array, data + done, bytes, side->dtype);
        result = output_write(stream->output, data + done, bytes, error);
        if (result)
            return result;
    }
    return 0;
}

static void batch_progress(void *context, uint64_t rows_done, uint64_t rows)
{
    struct stream *stream = context;
    (void)rows;
    progress_update(&stream->progress, stream->rows_done + rows_done);
}

/* Tells a job on ragged rows where they lie. */
static void batch_offsets(const struct stream *stream, const struct slot *slot, struct operands *operands)
{
    uint64_t *offsets = scand_buffer_data(slot->offsets);
    const uint64_t *from = stream->ragged->offsets + slot->first_row;
    for (uint64_t i = 0; i <= slot->rows; i++)
        offsets[i] = from[i] - from[0];
    operands->offsets =
        (struct scand_tensor){.buffer = slot->offsets, .dtype = SCAND_DTYPE_U64, .rank = 1, .shape = {slot->rows + 1}};
    scand_tensor_pack(&operands->offsets);
    operands->output.shape[0] = batch_results(stream, slot);
}

/* Submits what is in the slot's buffer. */
static int batch_submit(struct stream *stream, struct slot *slot, struct error *error)
{
    struct submission *submission = &slot->submission;
    slot->tries++;
    *submission = (struct submission){.daemon = stream->daemon, .compute = stream->compute, .context = stream};
    submission->progress = stream->progress.wanted ? batch_progress : NULL;
    partition_tensors(stream->partition, slot->buffer, stream->records, slot->count, &submission->operands);
    direct_place(stream, slot, &submission->operands.input);
    submission->operands.group = stream->group;
    if (stream->ragged)
        batch_offsets(stream, slot, &submission->operands);
    return submission_start(submission, error);
}

/* The next records, or ragged rows. */
static void batch_pick(struct stream *stream, struct slot *slot, uint64_t first)
{
    const struct ragged *ragged = stream->ragged;
    uint64_t left = stream->partition->records - first;
    slot->first = first;
    slot->first_row = stream->rows_begun;
    slot->count = left < stream->records ? left : stream->records;
    slot->rows = slot->count * stream->partition->inner;
    if (ragged) {
        slot->rows = ragged_pick(ragged, slot->first_row, stream->records);
        slot->count = ragged->offsets[slot->first_row + slot->rows] - ragged->offsets[slot->first_row];
    }
    stream->rows_begun += slot->rows;
}

/* A batch that an open-ended input has not filled is its last. */
static void batch_shrink(struct stream *stream, struct slot *slot, uint64_t wanted)
{
    if (slot->count == wanted)
        return;
    uint64_t rows = slot->count * stream->partition->inner;
    stream->rows_begun -= slot->rows - rows;
    slot->rows = rows;
    stream->ended = true;
}

static int inputs_expect_end(struct stream *stream, struct error *error)
{
    int result = stream->array->trailer_bytes ? 0 : input_expect_end(stream->input, error);
    for (uint32_t i = 0; !result && i < stream->partition->further_count; i++)
        if (is_read(stream, i))
            result = input_expect_end(&stream->further[i].input, error);
    return result;
}

/* Gets the positions in files of further operands. */
static void positions_get(const struct stream *stream, uint64_t positions[OPERANDS_MAX])
{
    for (uint32_t i = 0; i < stream->partition->further_count; i++)
        positions[i] = stream->further[i].input.position;
}

static int batch_start(struct stream *stream, struct slot *slot, uint64_t first, struct error *error)
{
    batch_pick(stream, slot, first);
    if (!slot->count && !stream->compute.reduces) { /* rows without samples, where results have none either */
        stream->rows_done += slot->rows;
        slot->rows = 0;
        return 0;
    }
    slot->position = stream->input->position;
    positions_get(stream, slot->further_positions);
    slot->tries = 0;
    uint64_t wanted = slot->count;
    int result = batch_read(stream, slot, error);
    if (result)
        return result;
    batch_shrink(stream, slot, wanted);
    if (!slot->count && stream->ended)
        return 0;
    if (first + slot->count == stream->partition->records)
        result = inputs_expect_end(stream, error);
    return result ? result : batch_submit(stream, slot, error);
}

static int inputs_seek(struct stream *stream, uint64_t position, const uint64_t *further, struct error *error)
{
    int result = input_seek(stream->input, position, error);
    for (uint32_t i = 0; !result && i < stream->partition->further_count; i++)
        if (is_read(stream, i))
            result = input_seek(&stream->further[i].input, further[i], error);
    return result;
}

/* Reads and submits the batch again; the inputs then stand where they stood. */
static int batch_repeat(struct stream *stream, struct slot *slot, struct error *error)
{
    uint64_t position = stream->input->position, further[OPERANDS_MAX];
    positions_get(stream, further);
    int result = inputs_seek(stream, slot->position, slot->further_positions, error);
    if (result)
        return result;
    result = batch_read(stream, slot, error);
    if (result)
        return result;
    result = inputs_seek(stream, position, further, error);
    return result ? result : batch_submit(stream, slot, error);
}

/* A file that cannot be read a second time; NULL: there is none. */
static const struct input *unrepeatable(const struct stream *stream)
{
    if (!stream->input->sized)
        return stream->input;
    for (uint32_t i = 0; i < stream->partition->further_count; i++)
        if (is_read(stream, i) && !stream->further[i].input.sized)
            return &stream->further[i].input;
    return NULL;
}

static int error_lost(const struct stream *stream, const struct slot *slot, struct error *error)
{
    const struct input *pipe = unrepeatable(stream);
    if (pipe)
        return fail(error, EX_TEMPFAIL,
                    "%s: the daemon was restarted in the middle of a batch of rows, which cannot be read "
                    "again from a pipe; run it again, or give a file",
                    pipe->name);
    return fail(error, EX_TEMPFAIL,
                "%s: the daemon was restarted each of the %" PRIu32
                " times that it scanned the batch from byte %" PRIu64 " on; its log says why; try again later",
                stream->input->name, slot->tries, slot->position);
}

/* Waits for the batch's job. One that is lost in place is repeated here; the library repeats all others. */
static int batch_wait(struct stream *stream, struct slot *slot, struct scand_times *times, struct error *error)
{
    for (;;) {
        bool lost;
        int result = submission_finish(&slot->submission, times, &lost, error);
        if (!lost || !stream->partition->in_place)
            return result;
        if (unrepeatable(stream) || slot->tries >= LOST_TRIES_MAX)
            return error_lost(stream, slot, error);
        result = batch_repeat(stream, slot, error);
        if (result)
            return result;
    }
}

static void times_add(struct scand_times *sum, const struct scand_times *times)
{
    sum->queued_us += times->queued_us;
    sum->upload_us += times->upload_us;
    sum->kernel_us += times->kernel_us;
    sum->download_us += times->download_us;
    sum->total_us += times->total_us;
}

static int batch_finish(struct stream *stream, struct slot *slot, struct error *error)
{
    struct scand_times times = {0};
    if (!slot->rows)
        return 0;
    int result = batch_wait(stream, slot, &times, error);
    if (!result)
        result = batch_write(stream, slot, error);
    if (result)
        return result;
    times_add(&stream->times, &times);
    stream->job_count++;
    stream->rows_done += slot->rows;
    slot->rows = 0;
    progress_update(&stream->progress, stream->rows_done);
    return 0;
}

/* True when there is more to do: ragged rows without samples may come after the last sample. */
static bool is_more(const struct stream *stream, uint64_t first)
{
    if (stream->ragged)
        return stream->rows_begun < stream->ragged->rows;
    return !stream->ended && first < stream->partition->records;
}

/* Returns the number of rows; 0 where nobody knows. */
static uint64_t rows_total(const struct stream *stream)
{
    if (stream->ragged)
        return stream->ragged->rows;
    return stream->array->open_ended ? 0 : stream->partition->records * stream->partition->inner;
}

/* Returns the bytes that are read and written for a row; for ragged rows, the mean. */
static uint64_t row_bytes(const struct stream *stream)
{
    const struct partition *partition = stream->partition;
    uint64_t bytes = partition->input.record_bytes + (stream->printer ? 0 : partition->output.record_bytes);
    if (stream->ragged)
        return stream->ragged->rows ? bytes * partition->records / stream->ragged->rows : 0;
    return bytes / partition->inner;
}

/* All jobs of the stream are one to people. An older daemon lists them one by one, and in this process nobody looks. */
static void group_begin(struct stream *stream)
{
    uint64_t job;
    stream->group = 0;
    if (scand_is_local(stream->daemon) ||
        scand_group_begin(stream->daemon, stream->name, rows_total(stream), &stream->group))
        return;
    if (stream->begun && !scand_group_number(stream->daemon, stream->group, &job) && job > 0)
        stream->begun(stream->context, job);
}

int stream_run(struct stream *stream, struct error *error)
{
    uint64_t first = 0, batch = 0;
    group_begin(stream);
    int result = slots_create(stream, error);
    direct_open(stream);
    if (!result)
        result = vectors_read(stream, error);
    progress_begin(&stream->progress, rows_total(stream), row_bytes(stream));
    while (!result && is_more(stream, first)) {
        struct slot *slot = &stream->slots[batch % stream->slot_count];
        result = batch_finish(stream, slot, error);
        if (!result)
            result = batch_start(stream, slot, first, error);
        first += slot->count;
        batch++;
    }
    for (uint32_t i = 0; !result && i < stream->slot_count; i++)
        result = batch_finish(stream, &stream->slots[(batch + i) % stream->slot_count], error);
    progress_end(&stream->progress);
    direct_close(stream);
    if (!result)
        slots_release(stream);
    if (!result && stream->group)
        scand_group_end(stream->daemon, stream->group);
    return result;
}

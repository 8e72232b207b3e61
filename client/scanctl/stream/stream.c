#include "client/scanctl/stream/stream.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/formats/forms.h"
#include "client/scanctl/ui/text.h"

/* Read, swapped and written at a time: what stays in the processor's cache. */
#define BLOCK_BYTES (UINT64_C(256) << 10)

/* Units per block, at least one. */
static uint64_t block_bytes(const struct array *array, uint64_t sample_bytes)
{
    uint64_t unit_bytes = array_unit_bytes(array, sample_bytes);
    uint64_t units = BLOCK_BYTES / unit_bytes;
    return unit_bytes * (units ? units : 1);
}

/* Reads records of an array; their samples are then in this machine's byte order. */
static int records_read(const struct array *array, const struct side *side, uint64_t count, struct input *input,
                        char *data, struct fault *fault)
{
    uint64_t size_bytes = count * side->record_bytes, block = block_bytes(array, side->sample_bytes);
    uint64_t unit_bytes = array_unit_bytes(array, side->sample_bytes);
    for (uint64_t done = 0; done < size_bytes; done += block) {
        uint64_t bytes = block < size_bytes - done ? block : size_bytes - done;
        uint64_t units_before = (input->position - array->header_bytes) / unit_bytes;
        int result = input_read(input, data + done, bytes, "samples", fault);
        if (!result && array->trace_header_bytes)
            result = su_check_traces(array, data + done, bytes / unit_bytes, units_before, input->name, fault);
        if (result)
            return result;
        array_swap(array, data + done, bytes, side->dtype);
    }
    return 0;
}

static int piece_read(struct pieces *pieces, const struct slot *slot, struct fault *fault)
{
    const struct plan *plan = pieces->plan;
    char *data = scand_buffer_data(slot->buffer);
    int result = records_read(pieces->array, &plan->input, slot->count, pieces->input, data, fault);
    if (result || !plan->has_coefficients)
        return result;
    return records_read(pieces->coefficients, &plan->coefficients, slot->count, pieces->coefficients_input,
                        data + plan_coefficients_offset(plan, pieces->records), fault);
}

/* Records of the output: rows that differ in length have one result each. */
static uint64_t piece_results(const struct pieces *pieces, const struct slot *slot)
{
    return pieces->ragged && pieces->reduce ? slot->rows : slot->count;
}

/* Writes a piece's result; swaps it in the buffer, which is not needed any more. */
static int piece_write(struct pieces *pieces, const struct slot *slot, struct fault *fault)
{
    const struct side *side = &pieces->plan->output;
    const struct array *result_array = pieces->result ? pieces->result : pieces->array;
    uint64_t size_bytes = piece_results(pieces, slot) * side->record_bytes,
             block = block_bytes(result_array, side->sample_bytes);
    char *data = (char *)scand_buffer_data(slot->buffer) + plan_output_offset(pieces->plan, pieces->records);
    if (pieces->printer) {
        printer_put(pieces->printer, side->dtype, data, size_bytes / side->sample_bytes);
        return 0;
    }
    for (uint64_t done = 0; done < size_bytes; done += block) {
        uint64_t bytes = block < size_bytes - done ? block : size_bytes - done;
        array_swap(result_array, data + done, bytes, side->dtype);
        int result = output_write(pieces->output, data + done, bytes, fault);
        if (result)
            return result;
    }
    return 0;
}

static void piece_progress(void *context, uint64_t rows_done, uint64_t rows)
{
    struct pieces *pieces = context;
    (void)rows;
    progress_update(&pieces->progress, pieces->rows_done + rows_done);
}

/* Tells a job on ragged rows where they lie. */
static void piece_offsets(const struct pieces *pieces, const struct slot *slot, struct scand_scan *scan)
{
    uint64_t *offsets = scand_buffer_data(slot->offsets);
    const uint64_t *from = pieces->ragged->offsets + slot->first_row;
    for (uint64_t i = 0; i <= slot->rows; i++)
        offsets[i] = from[i] - from[0];
    scan->offsets =
        (struct scand_tensor){.buffer = slot->offsets, .dtype = SCAND_DTYPE_U64, .rank = 1, .shape = {slot->rows + 1}};
    scand_tensor_pack(&scan->offsets);
    scan->output.shape[0] = piece_results(pieces, slot);
}

/* Submits what is in the slot's buffer. */
static int piece_submit(struct pieces *pieces, struct slot *slot, struct fault *fault)
{
    slot->tries++;
    slot->task = (struct task){.daemon = pieces->daemon, .reduce = pieces->reduce, .context = pieces};
    if (pieces->scan)
        slot->task.scan = *pieces->scan;
    slot->task.progress = pieces->progress.wanted ? piece_progress : NULL;
    plan_tensors(pieces->plan, slot->buffer, pieces->records, slot->count, &slot->task.scan);
    if (pieces->ragged)
        piece_offsets(pieces, slot, &slot->task.scan);
    return task_start(&slot->task, fault);
}

/* The next records, or ragged rows. */
static void piece_take(struct pieces *pieces, struct slot *slot, uint64_t first)
{
    const struct ragged *ragged = pieces->ragged;
    uint64_t left = pieces->plan->records - first;
    slot->first = first;
    slot->first_row = pieces->rows_begun;
    slot->count = left < pieces->records ? left : pieces->records;
    slot->rows = slot->count * pieces->plan->inner;
    if (ragged) {
        slot->rows = ragged_take(ragged, slot->first_row, pieces->records);
        slot->count = ragged->offsets[slot->first_row + slot->rows] - ragged->offsets[slot->first_row];
    }
    pieces->rows_begun += slot->rows;
}

static int piece_start(struct pieces *pieces, struct slot *slot, uint64_t first, struct fault *fault)
{
    bool has_coefficients = pieces->plan->has_coefficients;
    piece_take(pieces, slot, first);
    if (!slot->count && !pieces->reduce) { /* rows without samples, where those are all that comes out */
        pieces->rows_done += slot->rows;
        slot->rows = 0;
        return 0;
    }
    slot->position = pieces->input->position;
    slot->coefficients_position = has_coefficients ? pieces->coefficients_input->position : 0;
    slot->tries = 0;
    int result = piece_read(pieces, slot, fault);
    bool last = first + slot->count == pieces->plan->records;
    if (!result && last)
        result = input_expect_end(pieces->input, fault);
    if (!result && last && has_coefficients)
        result = input_expect_end(pieces->coefficients_input, fault);
    return result ? result : piece_submit(pieces, slot, fault);
}

static int inputs_seek(struct pieces *pieces, uint64_t position, uint64_t coefficients_position, struct fault *fault)
{
    int result = input_seek(pieces->input, position, fault);
    if (!result && pieces->plan->has_coefficients)
        result = input_seek(pieces->coefficients_input, coefficients_position, fault);
    return result;
}

/* Reads and submits the piece again; the inputs then stand where they stood. */
static int piece_repeat(struct pieces *pieces, struct slot *slot, struct fault *fault)
{
    uint64_t position = pieces->input->position;
    uint64_t coefficients_position = pieces->plan->has_coefficients ? pieces->coefficients_input->position : 0;
    int result = inputs_seek(pieces, slot->position, slot->coefficients_position, fault);
    if (!result)
        result = piece_read(pieces, slot, fault);
    if (!result)
        result = inputs_seek(pieces, position, coefficients_position, fault);
    return result ? result : piece_submit(pieces, slot, fault);
}

/* Whether a piece can be read a second time. */
static bool is_repeatable(const struct pieces *pieces)
{
    return pieces->input->sized && (!pieces->plan->has_coefficients || pieces->coefficients_input->sized);
}

static int fault_lost(const struct pieces *pieces, const struct slot *slot, struct fault *fault)
{
    if (!is_repeatable(pieces))
        return fault_set(fault, EX_TEMPFAIL,
                         "%s: the daemon was restarted in the middle of a piece, which cannot be read again from a "
                         "pipe; run it again, or give a file",
                         pieces->input->sized ? pieces->coefficients_input->name : pieces->input->name);
    return fault_set(fault, EX_TEMPFAIL,
                     "%s: the daemon was restarted each of the %" PRIu32
                     " times that it scanned the piece from byte %" PRIu64 " on; its log says why; try again later",
                     pieces->input->name, slot->tries, slot->position);
}

/* Waits for the piece's job. One that is lost in place is repeated here; the library repeats all others. */
static int piece_wait(struct pieces *pieces, struct slot *slot, struct scand_times *times, struct fault *fault)
{
    for (;;) {
        bool lost;
        int result = task_finish(&slot->task, times, &lost, fault);
        if (!lost || !pieces->plan->in_place)
            return result;
        if (!is_repeatable(pieces) || slot->tries >= LOST_TRIES_MAX)
            return fault_lost(pieces, slot, fault);
        result = piece_repeat(pieces, slot, fault);
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

static int piece_finish(struct pieces *pieces, struct slot *slot, struct fault *fault)
{
    struct scand_times times = {0};
    if (!slot->rows)
        return 0;
    int result = piece_wait(pieces, slot, &times, fault);
    if (!result)
        result = piece_write(pieces, slot, fault);
    if (result)
        return result;
    times_add(&pieces->times, &times);
    pieces->job_count++;
    pieces->rows_done += slot->rows;
    slot->rows = 0;
    progress_update(&pieces->progress, pieces->rows_done);
    return 0;
}

/* Whether a smaller buffer, or the same one later, may be had. */
static int is_shortage(int status)
{
    return status == SCAND_BUSY || status == SCAND_QUOTA || status == SCAND_NO_MEMORY || status == SCAND_INVALID;
}

static int first_buffer_fault(const struct pieces *pieces, int status, struct fault *fault)
{
    char bytes[GROUPED_BYTES];
    const char *message = scand_message(pieces->daemon);
    grouped(plan_buffer_bytes(pieces->plan, pieces->plan->least), bytes);
    return fault_set(
        fault, scand_status_exit_code(status),
        "%s: %s along this axis needs %s bytes of memory at once, which the daemon does not give or take (%s): %s%s",
        pieces->input->name, pieces->plan->records == 1 ? "the whole array" : "one row", bytes,
        scand_status_word(status), message, pieces->plan->inner > 1 ? "; scan along the densest axis instead" : "");
}

/* Memory of this program's: slower at first, as the daemon has yet to pin it, but not bounded by the daemon's pool. */
static int own_buffer_create(struct pieces *pieces, uint64_t bytes, struct scand_buffer **buffer)
{
    int status = SCAND_NO_MEMORY, fd = memfd_create("scanctl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return status;
    if (ftruncate(fd, (off_t)bytes) == 0)
        status = scand_buffer_import(pieces->daemon, fd, bytes, buffer);
    close(fd);
    return status;
}

/* Creates the buffers: as large as wanted, or as the daemon can spare now; a second one where there is use for it. What
 * is too large for its pool, and cannot be in pieces, is this program's own. */
static int buffers_create(struct pieces *pieces, struct fault *fault)
{
    int status;
    pieces->records = plan_piece_records(pieces->plan);
    for (;;) {
        uint64_t bytes = plan_buffer_bytes(pieces->plan, pieces->records);
        status = scand_buffer_create(pieces->daemon, SCAND_PLACE_HOST, bytes, &pieces->slots[0].buffer);
        if (!is_shortage(status))
            break;
        if (pieces->records == pieces->plan->least)
            break;
        pieces->records = pieces->records / 2 < pieces->plan->least ? pieces->plan->least : pieces->records / 2;
    }
    if (status == SCAND_BUSY)
        status =
            remote_buffer(pieces->daemon, plan_buffer_bytes(pieces->plan, pieces->records), &pieces->slots[0].buffer);
    if (status == SCAND_QUOTA)
        status = own_buffer_create(pieces, plan_buffer_bytes(pieces->plan, pieces->records), &pieces->slots[0].buffer);
    if (status)
        return first_buffer_fault(pieces, status, fault);
    pieces->slot_count = 1;
    uint64_t bytes = plan_buffer_bytes(pieces->plan, pieces->records);
    if ((pieces->records < pieces->plan->records || pieces->plan->results) &&
        !scand_buffer_create(pieces->daemon, SCAND_PLACE_HOST, bytes, &pieces->slots[1].buffer))
        pieces->slot_count = SLOTS;
    return 0;
}

/* Where there is no room beside a second piece, one after the other has to do. */
static int offsets_create(struct pieces *pieces, struct fault *fault)
{
    uint64_t bytes = (ragged_take_max(pieces->ragged) + 1) * sizeof(uint64_t);
    for (uint32_t i = 0; i < pieces->slot_count;) {
        struct scand_buffer **offsets = &pieces->slots[i].offsets;
        int status = pieces->slot_count > 1 ? scand_buffer_create(pieces->daemon, SCAND_PLACE_HOST, bytes, offsets)
                                            : remote_buffer(pieces->daemon, bytes, offsets);
        if (!status)
            i++;
        else if (pieces->slot_count > 1)
            scand_buffer_release(pieces->slots[--pieces->slot_count].buffer);
        else
            return remote_fault(pieces->daemon, status, "making room for offsets", fault);
    }
    return 0;
}

/* Ragged rows without samples may come after the last sample. */
static bool is_more(const struct pieces *pieces, uint64_t first)
{
    return pieces->ragged ? pieces->rows_begun < pieces->ragged->rows : first < pieces->plan->records;
}

int pieces_run(struct pieces *pieces, struct fault *fault)
{
    uint64_t first = 0, piece = 0;
    int result = buffers_create(pieces, fault);
    if (!result && pieces->ragged)
        result = offsets_create(pieces, fault);
    progress_begin(&pieces->progress,
                   pieces->ragged ? pieces->ragged->rows : pieces->plan->records * pieces->plan->inner);
    while (!result && is_more(pieces, first)) {
        struct slot *slot = &pieces->slots[piece % pieces->slot_count];
        result = piece_finish(pieces, slot, fault);
        if (!result)
            result = piece_start(pieces, slot, first, fault);
        first += slot->count;
        piece++;
    }
    for (uint32_t i = 0; !result && i < pieces->slot_count; i++)
        result = piece_finish(pieces, &pieces->slots[(piece + i) % pieces->slot_count], fault);
    progress_end(&pieces->progress);
    return result;
}

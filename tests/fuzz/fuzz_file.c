/*
 * Files of every form, by name and found from their first bytes, as files and as pipes: each is refused by a line that
 * says why, or what is accepted makes sense. The first eight bytes of an input say how the rest is read.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/stream/partition.h"
#include "tests/fuzz/fuzz.h"

static struct array_hints take_hints(struct supply *supply)
{
    struct array_hints hints = {.format = take_below(supply, FORMAT_COUNT + 1)};
    hints.byte_order = take_below(supply, 3);
    hints.dtype = take_below(supply, SCAND_DTYPE_COUNT);
    uint32_t said = take_below(supply, 256);
    hints.has_dtype = said & 1;
    hints.native = said & 2;
    hints.open_ended = said & 4;
    hints.has_places = said & 8;
    hints.rank = said >> 4 & 3;
    for (uint32_t k = 0; k < hints.rank; k++)
        hints.shape[k] = hints.open_ended && k == 0 ? 0 : 1 + take_below(supply, 4);
    hints.skip_bytes = hints.has_places ? take_below(supply, 8) : 0;
    return hints;
}

static void check_accepted(const struct array *array, size_t size, bool sized)
{
    struct partition partition;
    uint64_t row_bytes = array->trace_header_bytes + array->shape[array->rank - 1] * array_sample_bytes(array);
    assert(array->rank >= 1 && array->rank <= SCAND_RANK_MAX);
    assert(array->passed.size_bytes <= size && array->header_bytes <= size);
    if (sized && array->trace_header_bytes)
        assert(array->header_bytes + array->shape[0] * row_bytes + array->trailer_bytes == size);
    if (array->open_ended ? array->rank == 1 : !array_sample_count(array))
        return; /* nothing to be cut, or a row of which nobody knows the length: commands refuse that */
    partition_make(&partition, array, array->rank - 1, array->dtype);
    uint64_t records = partition_batch_records(&partition);
    assert(records == 1 || partition_buffer_bytes(&partition, records) <= BATCH_BYTES);
}

static int open_bytes(const uint8_t *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct supply supply = {bytes, size < 8 ? size : 8};
    bool sized = take_below(&supply, 2);
    struct array_hints hints = take_hints(&supply);
    struct error error = {.exit_code = 0};
    struct array array = {.rank = 0};
    size -= size < 8 ? size : 8;
    struct input input = {.name = "FILE", .sized = sized, .size_bytes = sized ? size : 0};
    input.fd = open_bytes(bytes + 8, size);
    int result = hints.format == FORMAT_COUNT ? format_find(&input, &hints, &hints.format, &error) : 0;
    if (!result)
        result = array_read_header(&array, &input, &hints, &error);
    assert(result == 0 || result == EX_DATAERR || result == EX_USAGE || result == EX_NOINPUT); /* RSF's in= */
    assert(result == error.exit_code);
    if (result)
        check_line(error.text);
    else if (hints.format != FORMAT_RSF) /* whose samples may be those of another file */
        check_accepted(&array, size, sized);
    array_free(&array);
    input_close(&input);
    return 0;
}

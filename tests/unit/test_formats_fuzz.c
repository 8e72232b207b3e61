/*
 * Files of every form, damaged at random, as files and as pipes: each is read, or refused with a line that says why.
 * TEST_SEED repeats a run; under the address sanitizer nothing outside of what was read is touched.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/stream/partition.h"
#include "tests/check.h"
#include "tests/unit/segy_file.h"

#define FILES      4000 /* of each kind */
#define FILE_BYTES 65536

static unsigned char original[FILE_BYTES], bytes[FILE_BYTES];
static uint64_t state;

static size_t npy_original(void)
{
    static const char header[] =
        "\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 30), }\n";
    memcpy(original, header, sizeof(header) - 1);
    memset(original + sizeof(header) - 1, 0, 240);
    return sizeof(header) - 1 + 240;
}

static size_t su_original(void)
{
    memset(original, 0, 5 * 280);
    for (size_t i = 0; i < 5; i++)
        original[i * 280 + 115] = 10;
    return 5 * (size_t)280;
}

static size_t segy_original(void)
{
    struct segy_file file = {
        .revision = 1 + (unsigned)(random_next(&state) % 2), .code = 1, .ns = 10, .traces = 5, .sample_bytes = 4};
    file.little = random_next(&state) % 2;
    file.extended_written = (unsigned)(random_next(&state) % 3);
    file.extended = file.extended_written && random_next(&state) % 2 ? -1 : (int)file.extended_written;
    if (file.revision == 2)
        file.trailers = (int)(file.trailers_written = (unsigned)(random_next(&state) % 2));
    return segy_make(&file, original);
}

static size_t rsf_original(void)
{
    static const char text[] =
        "sfspike\tx:\tme@host\tdate\n\n\tn1=10 n2=6\n\tn3=1\n\tlabel1=\"Time\" d1=0.004\n\tesize=4\n"
        "\tdata_format=\"native_float\"\n\tin=\"stdin\"\n\014\014\004";
    memcpy(original, text, sizeof(text) - 1);
    memset(original + sizeof(text) - 1, 0, 240);
    return sizeof(text) - 1 + 240;
}

/* Bytes that headers are made of are hit more often than samples. */
static size_t damage(size_t size, const size_t *targets, size_t target_count)
{
    memcpy(bytes, original, size);
    for (uint64_t change = random_next(&state) % 4; change < 4; change++) {
        size_t at = random_next(&state) % 3 ? targets[random_next(&state) % target_count] + random_next(&state) % 4
                                            : random_next(&state) % size;
        static const unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xff};
        bytes[at % size] = random_next(&state) % 2 ? telling[random_next(&state) % sizeof(telling)]
                                                   : (unsigned char)random_next(&state);
    }
    return random_next(&state) % 4 ? size : random_next(&state) % (size + 1);
}

/* What is accepted makes sense: its size is the file's, and a batch of it has bounds. */
static void check_accepted(const struct array *array, size_t size, bool sized)
{
    struct partition partition;
    uint64_t row_bytes = array->trace_header_bytes + array->shape[array->rank - 1] * array_sample_bytes(array);
    CHECK(array->rank >= 1 && array->rank <= SCAND_RANK_MAX);
    CHECK(array->passed.size_bytes <= size && array->header_bytes <= size);
    CHECK(sized || array->trace_header_bytes || !array->open_ended);
    if (sized && array->trace_header_bytes)
        CHECK_EQ(array->header_bytes + array->shape[0] * row_bytes + array->trailer_bytes, size);
    if (!array->open_ended && !array_sample_count(array))
        return;
    partition_make(&partition, array, array->rank - 1, array->dtype);
    uint64_t records = partition_batch_records(&partition);
    CHECK(records == 1 || partition_buffer_bytes(&partition, records) <= BATCH_BYTES);
}

static void read_damaged(size_t size, enum format format, bool sized)
{
    struct error error = {.exit_code = 0};
    struct array array = {.rank = 0};
    struct array_hints hints = {.format = format};
    struct input input = {
        .fd = memfd_create("test", 0), .name = "FILE", .sized = sized, .size_bytes = sized ? size : 0};
    if (input.fd < 0 || write(input.fd, bytes, size) != (ssize_t)size || lseek(input.fd, 0, SEEK_SET))
        abort();
    int result = format_find(&input, &hints, &hints.format, &error);
    if (!result)
        result = array_read_header(&array, &input, &hints, &error);
    CHECK(result == 0 || result == EX_DATAERR || result == EX_USAGE || result == EX_NOINPUT); /* in=, damaged */
    CHECK(result == error.exit_code && !result == !error.text[0]);
    if (!result)
        check_accepted(&array, size, sized);
    array_free(&array);
    input_close(&input);
}

/* By name, and found from the first bytes. */
static void damaged(enum format format, size_t (*make)(void), const size_t *targets, size_t target_count)
{
    state = random_seed();
    for (unsigned i = 0; i < FILES; i++) {
        size_t size = damage(make(), targets, target_count);
        read_damaged(size, format, i % 2);
        read_damaged(size, FORMAT_COUNT, i % 2);
    }
}

static void npy(void)
{
    static const size_t targets[] = {6, 8, 20, 54, 60};
    damaged(FORMAT_NPY, npy_original, targets, sizeof(targets) / sizeof(targets[0]));
}

static void su(void)
{
    static const size_t targets[] = {114, 394, 674};
    damaged(FORMAT_SU, su_original, targets, sizeof(targets) / sizeof(targets[0]));
}

static void segy(void)
{
    static const size_t targets[] = {0, 3220, 3224, 3268, 3296, 3500, 3504, 3506, 3510, 3514, 3518, 3522, 3526, 3714};
    damaged(FORMAT_SEGY, segy_original, targets, sizeof(targets) / sizeof(targets[0]));
}

static void rsf(void)
{
    static const size_t targets[] = {26, 31, 36, 42, 51, 59, 72, 80, 98, 114, 119};
    damaged(FORMAT_RSF, rsf_original, targets, sizeof(targets) / sizeof(targets[0]));
}

static const struct test tests[] = {TEST(npy), TEST(su), TEST(segy), TEST(rsf), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

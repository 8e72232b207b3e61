/*
 * SEG-Y as scanctl reads it: revisions, codes, byte orders, headers of every kind, and every way in which they can lie.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"
#include "tests/check.h"
#include "tests/unit/segy_file.h"

static struct array array;
static struct error error;
static unsigned char bytes[1 << 20];
static const struct array_hints segy_hints = {.format = FORMAT_SEGY};
static const struct segy_file usual = {.revision = 1, .code = 1, .ns = 25, .traces = 4, .sample_bytes = 4};

/* Reads the headers of a file, or of a pipe; the array is then to be freed. */
static int read_bytes(size_t size, bool sized)
{
    int fd = memfd_create("test", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
        abort();
    struct input input = {.fd = fd, .name = "FILE", .sized = sized, .size_bytes = sized ? size : 0};
    error = (struct error){.exit_code = 0};
    int result = array_read_header(&array, &input, &segy_hints, &error);
    input_close(&input);
    return result;
}

static int read_made(const struct segy_file *file)
{
    int result = read_bytes(segy_make(file, bytes), true);
    array_free(&array);
    return result;
}

static void refused(const struct segy_file *file, const char *words)
{
    CHECK_EQ(read_made(file), EX_DATAERR);
    CHECK_CONTAINS(error.text, words);
}

/* Each code in both byte orders, as the dtype that it is scanned as. */
static void codes(void)
{
    static const struct {
        unsigned code, bytes;
        enum scand_dtype big, little;
    } list[] = {
        {1, 4, SCAND_DTYPE_IBM32, SCAND_DTYPE_IBM32LE}, {2, 4, SCAND_DTYPE_I32BE, SCAND_DTYPE_I32LE},
        {3, 2, SCAND_DTYPE_I16BE, SCAND_DTYPE_I16},     {5, 4, SCAND_DTYPE_F32BE, SCAND_DTYPE_F32},
        {6, 8, SCAND_DTYPE_F64BE, SCAND_DTYPE_F64},     {8, 1, SCAND_DTYPE_I8, SCAND_DTYPE_I8},
        {9, 8, SCAND_DTYPE_I64BE, SCAND_DTYPE_I64},     {10, 4, SCAND_DTYPE_U32BE, SCAND_DTYPE_U32},
        {11, 2, SCAND_DTYPE_U16BE, SCAND_DTYPE_U16},    {12, 8, SCAND_DTYPE_U64BE, SCAND_DTYPE_U64},
        {16, 1, SCAND_DTYPE_U8, SCAND_DTYPE_U8},
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        for (int little = 0; little < 2; little++) {
            struct segy_file file = usual;
            file.little = little;
            file.code = list[i].code;
            file.sample_bytes = list[i].bytes;
            CHECK_EQ(read_made(&file), 0);
            CHECK_EQ(array.dtype, little ? list[i].little : list[i].big);
            CHECK(!array_is_swapped(&array, array.dtype));
            CHECK_EQ(array.byte_order, little ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG);
            CHECK(array.shape[0] == 4 && array.shape[1] == 25 && array.rank == 2);
            CHECK(array.header_bytes == 3600 && array.trace_header_bytes == 240 && !array.trailer_bytes);
        }
}

static void codes_refused(void)
{
    static const unsigned list[] = {4, 7, 13, 14, 15};
    struct segy_file file = usual;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        char text[128];
        file.code = list[i];
        snprintf(text, sizeof(text), "format code %u (bytes 3225-3226); it may be 1 (4-byte IBM float), 2 (", list[i]);
        refused(&file, text);
    }
    file.code = 0;
    refused(&file, "is 0 read as big-endian and 0 as little-endian; it may be 1");
    file.code = 17;
    refused(&file, "is 17 read as big-endian and 4352 as little-endian");
    struct array_hints hints = {.format = FORMAT_SEGY, .byte_order = BYTE_ORDER_LITTLE};
    size_t size = segy_make(&usual, bytes);
    struct input input = {.fd = memfd_create("test", 0), .name = "FILE", .sized = true, .size_bytes = size};
    CHECK(write(input.fd, bytes, size) == (ssize_t)size && !lseek(input.fd, 0, SEEK_SET));
    CHECK_EQ(array_read_header(&array, &input, &hints, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "so the file is big-endian; leave out --byte-order");
    input_close(&input);
}

static void revisions(void)
{
    struct segy_file file = usual;
    for (unsigned revision = 0; revision < 3; revision++)
        for (int little = 0; little < 2; little++) {
            file.revision = revision;
            file.little = little;
            CHECK_EQ(read_made(&file), 0);
        }
    file.revision = 3;
    refused(&file, "revision 3 (byte 3501); 0, 1 and 2 can be read");
    file = usual;
    file.revision = 2;
    size_t size = segy_make(&file, bytes);
    bytes[3296] = 4, bytes[3297] = 3, bytes[3298] = 2, bytes[3299] = 1; /* the mark of the other order */
    CHECK_EQ(read_bytes(size, true), EX_DATAERR);
    CHECK_CONTAINS(error.text, "byte-order mark (bytes 3297-3300) is 0x04030201");
    segy_put(bytes + 3296, 0x01020304, 4, false);
    CHECK_EQ(read_bytes(size, true), 0);
    array_free(&array);
    segy_put(bytes + 3268, 26, 4, false); /* the long ns counts: the file does not have it */
    segy_put(bytes + 3220, 0, 2, false);
    CHECK_EQ(read_bytes(size, true), 0); /* the traces' own fits */
    CHECK_EQ(array.shape[1], 25);
    array_free(&array);
}

static void extended_headers(void)
{
    struct segy_file file = usual;
    for (unsigned count = 0; count < 4; count++)
        for (int unknown = 0; unknown < 2; unknown++) {
            if (unknown && !count)
                continue;
            file.extended_written = count;
            file.extended = unknown ? -1 : (int)count;
            size_t size = segy_make(&file, bytes);
            CHECK_EQ(read_bytes(size, true), 0);
            CHECK_EQ(array.header_bytes, 3600 + 3200 * count);
            CHECK_EQ(array.shape[0], 4);
            /* Everything before the traces is passed on. */
            CHECK(array.passed.size_bytes == array.header_bytes &&
                  !memcmp(array.passed.bytes, bytes, array.header_bytes));
            array_free(&array);
        }
    file.extended_written = 1;
    file.extended = -1;
    size_t size = segy_make(&file, bytes);
    memcpy(bytes + 3600, "\x4d\x4d\xe2\xc5\xc7\x7a\x40\xc5\x95\x84\xe3\x85\xa7\xa3\x5d\x5d", 16); /* in EBCDIC */
    CHECK_EQ(read_bytes(size, true), 0);
    array_free(&array);
    bytes[3600] = 'x'; /* nothing says where they end */
    CHECK_EQ(read_bytes(size, true), EX_DATAERR);
    CHECK_CONTAINS(error.text, "cut short");
    file.extended_written = 0;
    file.extended = -2;
    refused(&file, "has -2 further textual headers (bytes 3505-3506); it may be -1 (unknown) to 4096");
    file.extended = 4097;
    refused(&file, "has 4097 further textual headers");
    file.extended = 3;
    refused(&file, "cut short"); /* more than there are */
    file.revision = 0;
    CHECK_EQ(read_made(&file), 0); /* of revision 0 these bytes say nothing */
}

static void revision2_headers(void)
{
    struct segy_file file = usual;
    file.revision = 2;
    file.trace_headers = 2;
    file.trailers = 3;
    file.trailers_written = 3;
    file.said_traces = 4;
    CHECK_EQ(read_made(&file), 0);
    CHECK(array.trace_header_bytes == 720 && array.trailer_bytes == 9600 && array.shape[0] == 4);
    file.first_trace = 3600;
    CHECK_EQ(read_made(&file), 0);
    file.first_trace = 3599;
    refused(&file, "first trace begins at 3599 (bytes 3519-3526); it may be 0 (not said) or 3600");
    file.first_trace = 1ull << 60;
    refused(&file, "first trace begins at 1152921504606846976");
    file.first_trace = 0;
    file.said_traces = 5;
    refused(&file, "says that it has 5 traces (bytes 3511-3518), and its size makes 4");
    file.said_traces = 0;
    file.trailers = -1;
    refused(&file, "says that -1 records follow its traces (bytes 3527-3530); it may be 0 to 65536");
    file.trailers = 65537;
    refused(&file, "says that 65537 records");
    file = usual;
    file.revision = 2;
    size_t size = segy_make(&file, bytes);
    segy_put(bytes + 3506, 65, 2, false);
    CHECK_EQ(read_bytes(size, true), EX_DATAERR);
    CHECK_CONTAINS(error.text, "has 65 further headers (bytes 3507-3508); it may be 0 to 64");
    segy_put(bytes + 3506, 0xffff, 2, false);
    CHECK_EQ(read_bytes(size, true), EX_DATAERR);
    CHECK_CONTAINS(error.text, "has -1 further headers");
}

/* Lengths: of ns in the binary header and in the first trace, the one that fits the file counts. */
static void lengths(void)
{
    struct segy_file file = usual;
    file.trace_ns = 99;
    CHECK_EQ(read_made(&file), 0);
    CHECK(array.shape[1] == 25 && array.told_ns == 99);
    size_t size = segy_make(&usual, bytes);
    static const unsigned lies[] = {0, 24, 65535, 32768};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        segy_put(bytes + 3220, lies[i], 2, false);
        for (int pipe = 0; pipe < 2; pipe++) {
            CHECK_EQ(read_bytes(size, !pipe), 0);
            CHECK_EQ(array.shape[1], 25);
            array_free(&array);
        }
    }
    segy_put(bytes + 3714, 77, 2, false); /* now neither does */
    CHECK_EQ(read_bytes(size, true), EX_DATAERR);
    CHECK_CONTAINS(error.text,
                   "32768 samples in its binary header (bytes 3221-3222), and 77 in its first trace (115-116), and "
                   "neither goes with what follows");
    CHECK_EQ(read_bytes(size, false), EX_DATAERR);
    file = usual;
    file.ns = 0;
    refused(&file,
            "0 samples, in its binary header (bytes 3221-3222) and in its first trace (115-116); it may be 1 to 65535");
}

/* A trace of another length is found when it is read. */
static void traces_that_differ(void)
{
    size_t size = segy_make(&usual, bytes);
    CHECK_EQ(read_bytes(size, true), 0);
    CHECK_EQ(segy_form.check_traces(&array, bytes + 3600, 4, 0, "FILE", &error), 0);
    segy_put(bytes + 3600 + 2 * 340 + 114, 24, 2, false);
    CHECK_EQ(segy_form.check_traces(&array, bytes + 3600, 4, 10, "FILE", &error), EX_DATAERR);
    CHECK_CONTAINS(error.text, "trace 13 (counted from 1) has 24 samples, the first 25");
    segy_put(bytes + 3600 + 2 * 340 + 114, 0, 2, false); /* says nothing */
    CHECK_EQ(segy_form.check_traces(&array, bytes + 3600, 4, 10, "FILE", &error), 0);
    array_free(&array);
}

/* Files are cut at every byte except between two traces. */
static void truncated(void)
{
    size_t size = segy_make(&usual, bytes);
    for (size_t cut = 0; cut < size; cut++) {
        bool whole = cut > 3600 && (cut - 3600) % 340 == 0;
        CHECK_EQ(read_bytes(cut, true), whole ? 0 : EX_DATAERR);
        array_free(&array);
        CHECK(whole || error.text[0]);
    }
}

static void pipes(void)
{
    struct segy_file file = usual;
    CHECK_EQ(read_bytes(segy_make(&file, bytes), false), 0);
    CHECK(array.open_ended && array.shape[1] == 25);
    array_free(&array);
    file.revision = 2;
    file.trailers = file.trailers_written = 1;
    CHECK_EQ(read_bytes(segy_make(&file, bytes), false), EX_USAGE);
    CHECK_CONTAINS(error.text, "but not how many traces it has (bytes 3511-3518); give a file");
    file.said_traces = 4;
    CHECK_EQ(read_bytes(segy_make(&file, bytes), false), 0);
    CHECK(!array.open_ended && array.shape[0] == 4);
    array_free(&array);
    file.said_traces = UINT64_MAX;
    CHECK_EQ(read_bytes(segy_make(&file, bytes), false), EX_DATAERR);
    CHECK_CONTAINS(error.text, "more than this machine can address");
}

/* A written file differs from its input in the format code alone. */
static void written(void)
{
    for (int little = 0; little < 2; little++) {
        struct segy_file file = usual;
        file.little = little;
        CHECK_EQ(read_bytes(segy_make(&file, bytes), true), 0);
        struct array result = array_result(&array, little ? SCAND_DTYPE_F32 : SCAND_DTYPE_F32BE);
        struct output output = {.fd = memfd_create("test", 0), .name = "OUT"};
        static unsigned char found[3600];
        CHECK_EQ(segy_form.write_header(&result, &output, &error), 0);
        CHECK_EQ(pread(output.fd, found, sizeof(found), 0), 3600);
        segy_put(bytes + 3224, 5, 2, little);
        CHECK(!memcmp(found, bytes, sizeof(found)));
        close(output.fd);
        array_free(&array);
    }
    CHECK_EQ(array_check_result(FORMAT_SEGY, SCAND_DTYPE_F16, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "--output-dtype is f16, which SEG-Y files cannot hold; it may be ibm32");
}

static const struct test tests[] = {
    TEST(codes),
    TEST(codes_refused),
    TEST(revisions),
    TEST(extended_headers),
    TEST(revision2_headers),
    TEST(lengths),
    TEST(traces_that_differ),
    TEST(truncated),
    TEST(pipes),
    TEST(written),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

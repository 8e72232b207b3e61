/*
 * The forms of files that scanctl reads and writes, without a daemon: what is accepted, and every way in which a file
 * can be wrong.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/forms.h"
#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"
#include "client/scanctl/stream/partition.h"
#include "tests/check.h"

/* The result of reading the last file. */
static struct array array;
static struct error error;

static const struct array_hints raw_hints = {.format = FORMAT_RAW};
static const struct array_hints npy_hints = {.format = FORMAT_NPY};
static const struct array_hints su_hints = {.format = FORMAT_SU};

/* Reads `bytes` as a file, or as a pipe; returns the exit code. */
static int read_as(const void *bytes, size_t size, const struct array_hints *hints, bool sized)
{
    int fd = memfd_create("test", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
        abort();
    struct input input = {.fd = fd, .name = "FILE", .sized = sized, .size_bytes = sized ? size : 0};
    error = (struct error){.exit_code = 0};
    int result = array_read_header(&array, &input, hints, &error);
    array_free(&array);
    input_close(&input);
    return result;
}

static int read_file(const void *bytes, size_t size, const struct array_hints *hints)
{
    return read_as(bytes, size, hints, true);
}

/* An .npy file of a header text and some zero bytes. Returns its size. */
static size_t npy_make(char *out, unsigned major, const char *text, size_t text_length, size_t data_bytes)
{
    size_t at = 0, length_bytes = major == 1 ? 2 : 4;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)major;
    out[7] = 0;
    at = 8;
    for (size_t i = 0; i < length_bytes; i++)
        out[at++] = (char)(text_length >> (8 * i));
    memcpy(out + at, text, text_length);
    at += text_length;
    memset(out + at, 0, data_bytes);
    return at + data_bytes;
}

/* Writes the header of a result into out; returns its length. */
static size_t write_header(const struct array *given, enum scand_dtype dtype, char *out, size_t size)
{
    struct array result = array_result(given, dtype);
    struct output output = {.fd = memfd_create("test", 0), .name = "OUT"};
    if (output.fd < 0 || form_of(result.format)->write_header(&result, &output, &error))
        abort();
    ssize_t length = pread(output.fd, out, size, 0);
    close(output.fd);
    return (size_t)length;
}

static int read_npy(unsigned major, const char *text, size_t data_bytes)
{
    char file[4096];
    return read_file(file, npy_make(file, major, text, strlen(text), data_bytes), &npy_hints);
}

static void npy_good(void)
{
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }  \n", 60), 0);
    CHECK_EQ(array.rank, 2);
    CHECK_EQ(array.shape[0], 3);
    CHECK_EQ(array.shape[1], 5);
    CHECK(!array.fortran && array.byte_order == BYTE_ORDER_LITTLE);
    CHECK_EQ(array.header_bytes, 10 + 62);
    CHECK_EQ(read_npy(2, "{\"shape\":(2,3,4,1),\"fortran_order\":True,\"descr\":\">f4\"}", 96), 0);
    CHECK(array.fortran && array.byte_order == BYTE_ORDER_BIG && array.rank == 4 && array.shape[3] == 1);
    CHECK_EQ(read_npy(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", 28), 0);
    CHECK_EQ(array.rank, 1);
    CHECK_EQ(read_npy(1, " { 'descr' : '<f4' ,\n'fortran_order':\tFalse, 'shape': ( 7L , ) } ", 28), 0);
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9)}", 0), 0);
    CHECK_EQ(array_sample_count(&array), 0);
}

static void npy_bad_text(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "{}x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", /* a number, not a tuple */
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0x3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", /* past 64 bits */
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} #",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4<f4<f4<f4<f4<f4<f4', 'fortran_order': False, 'shape': (3,)}",
        "{descr: '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'a key that is longer than any': '<f4'}",
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
        "{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_EQ(read_npy(1, texts[i], 12), EX_DATAERR);
        CHECK_CONTAINS(error.text, "makes no sense at its character");
        if (check_failures)
            printf("text: %s\nfault: %s\n", texts[i], error.text);
    }
    CHECK_EQ(read_file("\x93NUMPY\x01\x00\x06\x00{\0\0\0\0}", 16, &npy_hints), EX_DATAERR);
}

static void npy_missing_keys(void)
{
    CHECK_EQ(read_npy(1, "{'fortran_order': False, 'shape': (3,)}", 12), EX_DATAERR);
    CHECK_CONTAINS(error.text, "no 'descr'");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'shape': (3,)}", 12), EX_DATAERR);
    CHECK_CONTAINS(error.text, "no 'fortran_order'");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False}", 12), EX_DATAERR);
    CHECK_CONTAINS(error.text, "no 'shape'");
    CHECK_EQ(read_npy(1, "{}", 12), EX_DATAERR);
}

static void npy_refused(void)
{
    CHECK_EQ(read_npy(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", 24), EX_DATAERR);
    CHECK_CONTAINS(error.text, "dtype '<c8'");
    CHECK_CONTAINS(error.text, "save their .real and .imag");
    CHECK_EQ(read_npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12), EX_DATAERR);
    CHECK_CONTAINS(error.text, "save one of their fields");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4), EX_DATAERR);
    CHECK_CONTAINS(error.text, "rank 0");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1)}", 4), EX_DATAERR);
    CHECK_CONTAINS(error.text, "rank 5");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}", 4), EX_DATAERR);
    CHECK_CONTAINS(error.text, "more than this machine can address");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,18446744073709551615,2)}", 0),
             EX_DATAERR);
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 15), EX_DATAERR);
    CHECK_CONTAINS(error.text, "cut short");
    CHECK_EQ(read_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", 17), EX_DATAERR);
    CHECK_CONTAINS(error.text, "too long");
    struct array_hints hints = {.format = FORMAT_NPY, .rank = 1, .shape = {1}};
    CHECK_EQ(read_file("\x93NUMPY", 6, &hints), EX_USAGE);
    hints = (struct array_hints){.format = FORMAT_NPY, .byte_order = BYTE_ORDER_BIG};
    CHECK_EQ(read_file("\x93NUMPY", 6, &hints), EX_USAGE);
}

static void npy_bad_prefix(void)
{
    char file[512];
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    size_t size = npy_make(file, 1, text, strlen(text), 4);
    file[6] = 4;
    CHECK_EQ(read_file(file, size, &npy_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "version 4.0");
    file[6] = 1;
    file[7] = 1;
    CHECK_EQ(read_file(file, size, &npy_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "version 1.1");
    file[0] = 'x';
    CHECK_EQ(read_file(file, size, &npy_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "no .npy file");
    size = npy_make(file, 2, text, strlen(text), 4);
    memset(file + 8, 0xff, 4);
    CHECK_EQ(read_file(file, size, &npy_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "4294967295 bytes");
    memcpy(file + 8, "\x00\x00\x01\x00", 4); /* the longest that is read, but not there */
    CHECK_EQ(read_file(file, size, &npy_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "cut short");
}

/* Files cut at every byte give an error, and no read past the file's end. */
static void npy_truncated(void)
{
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
    for (unsigned major = 1; major <= 3; major++) {
        char file[512];
        size_t size = npy_make(file, major, text, strlen(text), 16);
        for (size_t cut = 0; cut < size; cut++) {
            CHECK_EQ(read_file(file, cut, &npy_hints), EX_DATAERR);
            CHECK_CONTAINS(error.text, "cut short");
        }
        CHECK_EQ(read_file(file, size, &npy_hints), 0);
        CHECK_EQ(read_as(file, size - 16, &npy_hints, false), 0); /* a pipe's samples come later */
    }
}

static void npy_damaged(void)
{
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
    uint64_t state = random_seed();
    for (unsigned i = 0; i < 20000; i++) {
        char file[512];
        size_t size = npy_make(file, 1 + i % 3, text, strlen(text), 16);
        for (unsigned change = 0; change < 1 + i % 4; change++)
            file[random_next(&state) % size] = (char)random_next(&state);
        if (random_next(&state) % 4 == 0)
            size = random_next(&state) % size;
        int result = read_file(file, size, &npy_hints);
        CHECK(result == 0 || result == EX_DATAERR);
        if (!result)
            CHECK_EQ(array.header_bytes + array_sample_count(&array) * array_sample_bytes(&array), size);
    }
}

/* Types and byte orders, each as the dtype that it is scanned as. */
static void npy_types(void)
{
    static const struct {
        const char *descr;
        enum scand_dtype dtype;
        bool little, refused;
    } list[] = {
        {"<f2", SCAND_DTYPE_F16, true, false},
        {">f2", SCAND_DTYPE_F16, false, false},
        {"<f4", SCAND_DTYPE_F32, true, false},
        {">f4", SCAND_DTYPE_F32BE, false, false},
        {"<f8", SCAND_DTYPE_F64, true, false},
        {">f8", SCAND_DTYPE_F64BE, false, false},
        {"<i4", SCAND_DTYPE_I32, true, false},
        {">i4", SCAND_DTYPE_I32, false, false},
        {"<i8", SCAND_DTYPE_I64, true, false},
        {">i8", SCAND_DTYPE_I64BE, false, false},
        {"<u4", SCAND_DTYPE_U32, true, false},
        {">u4", SCAND_DTYPE_U32BE, false, false},
        {"<u8", SCAND_DTYPE_U64, true, false},
        {">i2", SCAND_DTYPE_I16BE, false, false},
        {"<i2", SCAND_DTYPE_I16, true, false},
        {">u2", SCAND_DTYPE_U16BE, false, false},
        {"<u2", SCAND_DTYPE_U16, true, false},
        {"|i1", SCAND_DTYPE_I8, true, false},
        {"|u1", SCAND_DTYPE_U8, true, false},
        {"<i1", 0, false, true},
        {"|i2", 0, false, true},
        {"|b1", 0, false, true},
        {"<b4", 0, false, true},
        {"", 0, false, true},
        {"f4", 0, false, true},
        {"<f44", 0, false, true},
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        char text[100];
        snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3,)}", list[i].descr);
        if (list[i].refused) {
            CHECK_EQ(read_npy(1, text, 12), EX_DATAERR);
            continue;
        }
        CHECK_EQ(read_npy(1, text, 3 * scand_dtype_bytes(list[i].dtype)), 0);
        CHECK_EQ(array.dtype, list[i].dtype);
        CHECK_EQ(array.byte_order, list[i].little ? BYTE_ORDER_LITTLE : BYTE_ORDER_BIG);
        char file[512];
        write_header(&array, array.dtype, file, sizeof(file));
        CHECK(!memcmp(file + 10, text, strlen("{'descr': '<f4'")));
    }
}

/* A written .npy reads back, has samples from a multiple of 64 on, and equals NumPy's. */
static void npy_written(void)
{
    char file[1024];
    const uint64_t shapes[4] = {3, 5, 1, 2};
    for (unsigned i = 0; i < 16; i++) {
        struct array given = {.format = FORMAT_NPY,
                              .rank = 1 + i % 4,
                              .fortran = i & 4,
                              .byte_order = i & 8 ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE};
        memcpy(given.shape, shapes, sizeof(shapes));
        size_t length = write_header(&given, SCAND_DTYPE_F32, file, sizeof(file));
        CHECK_EQ(length % 64, 0);
        size_t data_bytes = array_sample_count(&given) * 4;
        memset(file + length, 0, data_bytes);
        CHECK_EQ(read_file(file, length + data_bytes, &npy_hints), 0);
        CHECK_EQ(array.rank, given.rank);
        CHECK(!memcmp(array.shape, given.shape, given.rank * sizeof(uint64_t)));
        CHECK(array.fortran == given.fortran && array.byte_order == given.byte_order);
    }
    struct array mobil = {.format = FORMAT_NPY, .rank = 2, .shape = {60, 1000}};
    CHECK_EQ(write_header(&mobil, SCAND_DTYPE_F64, file, sizeof(file)), 128);
    CHECK(
        !memcmp(file, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (60, 1000), } ", 70));
    CHECK_EQ(file[127], '\n');
    struct array large = {.format = FORMAT_NPY, .rank = 4};
    memset(large.shape, 0xff, sizeof(large.shape));
    CHECK(write_header(&large, SCAND_DTYPE_F64, file, sizeof(file)) <= 256);
}

static void raw_shapes(void)
{
    char file[64] = {0};
    struct array_hints hints = {.format = FORMAT_RAW, .rank = 2, .shape = {4, 4}};
    CHECK_EQ(read_file(file, 64, &hints), 0);
    CHECK(array.rank == 2 && !array_is_swapped(&array, SCAND_DTYPE_F32));
    hints.shape[0] = 3;
    CHECK_EQ(read_file(file, 64, &hints), EX_USAGE);
    CHECK_CONTAINS(error.text, "is 64 bytes, 16 samples, not the 3 x 4");
    CHECK_CONTAINS(error.text, "--shape 4,4 or --shape 16");
    hints.shape[1] = 7;
    CHECK_EQ(read_file(file, 64, &hints), EX_USAGE);
    CHECK_CONTAINS(error.text, "--shape 16 for one row");
    CHECK_EQ(read_file(file, 64, &raw_hints), EX_USAGE);
    CHECK_CONTAINS(error.text, "unknown shape");
    CHECK_EQ(read_file(file, 63, &hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "no whole number of f32 samples");
    CHECK_EQ(read_file(file, 0, &hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "is empty");
    CHECK_EQ(read_as(file, 64, &raw_hints, false), EX_USAGE);
    hints = (struct array_hints){.format = FORMAT_RAW, .rank = 3, .shape = {1u << 31, 1u << 31, 4}};
    CHECK_EQ(read_file(file, 64, &hints), EX_DATAERR);
    hints = (struct array_hints){.format = FORMAT_RAW, .rank = 1, .shape = {16}, .byte_order = BYTE_ORDER_BIG};
    CHECK_EQ(read_as(file, 64, &hints, false), 0);
    CHECK_EQ(array_is_swapped(&array, SCAND_DTYPE_F32), __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

/* An SU file of `traces` traces. Returns its size. */
static size_t su_make(unsigned char *out, unsigned traces, unsigned ns, bool big)
{
    size_t trace_bytes = 240 + 4 * (size_t)ns;
    memset(out, 0, traces * trace_bytes);
    for (unsigned i = 0; i < traces; i++) {
        out[i * trace_bytes + 114] = (unsigned char)(big ? ns >> 8 : ns);
        out[i * trace_bytes + 115] = (unsigned char)(big ? ns : ns >> 8);
    }
    return traces * trace_bytes;
}

static void su_good(void)
{
    static unsigned char file[1 << 20];
    for (int big = 0; big < 2; big++) {
        size_t size = su_make(file, 7, 251, big);
        CHECK_EQ(read_file(file, size, &su_hints), 0);
        CHECK_EQ(array.shape[0], 7);
        CHECK_EQ(array.shape[1], 251);
        CHECK_EQ(array.trace_header_bytes, 240);
        CHECK_EQ(array.byte_order, big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE);
        CHECK_EQ(array.dtype, big ? SCAND_DTYPE_F32BE : SCAND_DTYPE_F32);
        CHECK_EQ(su_form.check_traces(&array, file, 7, 0, "FILE", &error), 0);
        size = su_make(file, 3, 65535, big); /* the most that ns can say, the same in both orders */
        CHECK_EQ(read_file(file, size, &su_hints), EX_DATAERR);
        CHECK_CONTAINS(error.text, "--byte-order");
        struct array_hints hints = {.format = FORMAT_SU, .byte_order = big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE};
        CHECK_EQ(read_file(file, size, &hints), 0);
        CHECK_EQ(array.shape[1], 65535);
    }
}

static void su_bad(void)
{
    static unsigned char file[1 << 20];
    size_t size = su_make(file, 5, 100, true);
    CHECK_EQ(read_file(file, size - 1, &su_hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "ns = 100 (traces of 640 bytes) in big-endian and 25600 (102640)");
    CHECK_EQ(read_file(file, size + 1, &su_hints), EX_DATAERR);
    struct array_hints hints = {.format = FORMAT_SU, .byte_order = BYTE_ORDER_LITTLE};
    CHECK_EQ(read_file(file, size, &hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "in big-endian order ns would be 100");
    file[114] = file[115] = 0; /* ns 0 in the first trace */
    CHECK_EQ(read_file(file, size, &su_hints), EX_DATAERR);
    CHECK_EQ(read_file(file, size, &hints), EX_DATAERR);
    CHECK_CONTAINS(error.text, "0 samples");
    CHECK_EQ(read_file(file, 0, &su_hints), EX_DATAERR);
    CHECK_EQ(read_file(file, 243, &su_hints), EX_DATAERR);
    size = su_make(file, 5, 100, true);
    file[2 * 640 + 115] = 99; /* mixed */
    CHECK_EQ(read_file(file, size, &su_hints), EX_DATAERR);
    hints.byte_order = BYTE_ORDER_BIG; /* found later, when the trace is read */
    CHECK_EQ(read_file(file, size, &hints), 0);
    CHECK_EQ(su_form.check_traces(&array, file, 5, 10, "FILE", &error), EX_DATAERR);
    CHECK_CONTAINS(error.text, "trace 13 (counted from 1) has 99 samples, the first 100");
    CHECK_EQ(read_as(file, size, &su_hints, false), 0); /* of a pipe the first two traces count */
    CHECK(array.open_ended);
    hints = (struct array_hints){.format = FORMAT_SU, .rank = 1, .shape = {5}};
    CHECK_EQ(read_file(file, size, &hints), EX_USAGE);
}

/* Both orders fit the size; the other traces tell them apart. ns 5 is 1,280 read the other way round. */
static void su_told_apart_by_traces(void)
{
    static unsigned char file[1 << 17];
    unsigned traces = (240 + 4 * 1280) / 20; /* 260-byte traces that make a whole number of 5,360-byte ones */
    size_t size = su_make(file, traces, 5, true);
    CHECK_EQ(size % (240 + 4 * 1280), 0);
    CHECK_EQ(read_file(file, size, &su_hints), 0);
    CHECK_EQ(array.shape[1], 5);
    CHECK_EQ(array.shape[0], traces);
}

/* The first two traces of a pipe tell the byte order, or a single one that is the whole pipe. */
static void su_pipes(void)
{
    static unsigned char file[1 << 16];
    for (int big = 0; big < 2; big++) {
        size_t size = su_make(file, 3, 25, big);
        CHECK_EQ(read_as(file, size, &su_hints, false), 0);
        CHECK(array.open_ended && array.shape[1] == 25 &&
              array.byte_order == (big ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE));
        CHECK_EQ(read_as(file, 340, &su_hints, false), 0);
        CHECK_EQ(read_as(file, 339, &su_hints, false), EX_DATAERR);
        CHECK_CONTAINS(error.text, "and the second trace agrees with neither");
        file[340 + 114 + big] = 24;
        CHECK_EQ(read_as(file, size, &su_hints, false), EX_DATAERR);
    }
    size_t size = su_make(file, 3, 257, true); /* the same in both orders */
    CHECK_EQ(read_as(file, size, &su_hints, false), EX_DATAERR);
    CHECK_CONTAINS(error.text,
                   "its byte order cannot be told: ns of its first trace is 257 read as big-endian and 257");
    CHECK_CONTAINS(error.text, "give --byte-order big or little");
    struct array_hints hints = {.format = FORMAT_SU, .byte_order = BYTE_ORDER_BIG};
    CHECK_EQ(read_as(file, size, &hints, false), 0);
    memset(file, 0, 1000);
    CHECK_EQ(read_as(file, 1000, &hints, false), EX_DATAERR);
    CHECK_CONTAINS(error.text, "its first trace has 0 samples (ns, bytes 115-116, big-endian)");
    CHECK_EQ(read_as(file, 100, &hints, false), EX_DATAERR);
    CHECK_CONTAINS(error.text, "is 100 bytes, less than an SU trace");
}

/* Bytes that were looked at are read again, whatever the pieces. */
static void looking_ahead(void)
{
    unsigned char data[5000], found[5000];
    const unsigned char *seen;
    uint64_t state = random_seed(), available;
    for (unsigned round = 0; round < 200; round++) {
        int fd = memfd_create("test", 0);
        for (size_t i = 0; i < sizeof(data); i++)
            data[i] = (unsigned char)random_next(&state);
        if (fd < 0 || write(fd, data, sizeof(data)) != sizeof(data) || lseek(fd, 0, SEEK_SET))
            abort();
        struct input input = {.fd = fd, .name = "FILE"};
        for (uint64_t at = 0; at < sizeof(data);) {
            uint64_t wanted = random_next(&state) % 2000, size = random_next(&state) % 1500;
            uint64_t left = sizeof(data) - at;
            CHECK_EQ(input_look(&input, wanted + 1, &seen, &available, &error), 0);
            CHECK(available >= (wanted + 1 < left ? wanted + 1 : left) && available <= left && input.position == at);
            CHECK(!memcmp(seen, data + at, available));
            CHECK_EQ(input_read_most(&input, found, &size, &error), 0);
            CHECK(!memcmp(found, data + at, size));
            at += size;
        }
        CHECK_EQ(input_expect_end(&input, &error), 0);
        input_close(&input);
    }
}

static void su_truncated(void)
{
    static unsigned char file[1 << 12];
    size_t size = su_make(file, 2, 100, false);
    for (size_t cut = 0; cut < size; cut++)
        if (cut != 640)
            CHECK_EQ(read_file(file, cut, &su_hints), EX_DATAERR);
}

#define OTHER_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? BYTE_ORDER_BIG : BYTE_ORDER_LITTLE)

static void swapping(void)
{
    struct array traces = {
        .format = FORMAT_SU, .rank = 2, .shape = {2, 1}, .byte_order = OTHER_ORDER, .trace_header_bytes = 240};
    unsigned char bytes[2 * 244];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    array_swap(&traces, bytes, sizeof(bytes), SCAND_DTYPE_F32);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        size_t in_trace = i % 244, from = in_trace < 240 ? i : i - in_trace + 240 + (243 - in_trace);
        CHECK_EQ(bytes[i], (unsigned char)from);
    }
    struct array dense = {.format = FORMAT_RAW, .rank = 1, .shape = {2}, .byte_order = OTHER_ORDER};
    char text[] = "abcdefghijklmnop";
    array_swap(&dense, text, 16, SCAND_DTYPE_I64);
    CHECK(!strcmp(text, "hgfedcbaponmlkji"));
    array_swap(&dense, text, 4, SCAND_DTYPE_F16);
    CHECK(!strcmp(text, "ghefdcbaponmlkji"));
    dense.byte_order = BYTE_ORDER_BIG;
    array_swap(&dense, text, 16, SCAND_DTYPE_I32BE); /* in files as in the daemon */
    dense.byte_order = BYTE_ORDER_UNKNOWN;
    array_swap(&dense, text, 16, SCAND_DTYPE_F32);
    CHECK(!strcmp(text, "ghefdcbaponmlkji"));
}

static void names(void)
{
    CHECK_EQ(format_of_extension("a.npy"), FORMAT_NPY);
    CHECK_EQ(format_of_extension("a.b/c.SU"), FORMAT_SU);
    CHECK_EQ(format_of_extension("a.raw"), FORMAT_RAW);
    CHECK_EQ(format_of_extension("a.npy/c"), -1);
    CHECK_EQ(format_of_extension("npy"), -1);
    CHECK_EQ(format_of_extension("-"), -1);
    CHECK_EQ(format_of_extension("x.bin"), -1);
    CHECK_EQ(format_of_extension("line.SGY"), FORMAT_SEGY);
    CHECK_EQ(format_of_word("segy"), FORMAT_SEGY);
    CHECK_EQ(format_of_word("seg"), -1);
}

static void partition_of(struct partition *partition, struct array given, uint32_t axis, enum scand_dtype output)
{
    memset(partition, 0xff, sizeof(*partition));
    partition_make(partition, &given, axis, output);
}

static void plans(void)
{
    struct partition partition;
    struct array cube = {.format = FORMAT_NPY, .rank = 3, .shape = {2, 3, 5}};
    partition_of(&partition, cube, 2, SCAND_DTYPE_F32);
    CHECK(partition.records == 6 && partition.length == 5 && partition.inner == 1 && partition.in_place);
    CHECK_EQ(partition.input.record_bytes, 20);
    partition_of(&partition, cube, 1, SCAND_DTYPE_F64);
    CHECK(partition.records == 2 && partition.length == 3 && partition.inner == 5 && !partition.in_place);
    CHECK(partition.input.strides[1] == 20 && partition.output.strides[1] == 40 &&
          partition.output.record_bytes == 120);
    CHECK_EQ(partition_output_offset(&partition, 2), 4096);
    CHECK_EQ(partition_buffer_bytes(&partition, 2), 4096 + 240);
    cube.fortran = true;
    partition_of(&partition, cube, 0, SCAND_DTYPE_F32);
    CHECK(partition.records == 15 && partition.length == 2 && partition.inner == 1);
    partition_of(&partition, cube, 2, SCAND_DTYPE_F32);
    CHECK(partition.records == 1 && partition.length == 5 && partition.inner == 6 && partition.input.strides[1] == 24);
    struct array gather = {.format = FORMAT_SU, .rank = 2, .shape = {7, 10}, .trace_header_bytes = 240};
    partition_of(&partition, gather, 1, SCAND_DTYPE_F32);
    CHECK(partition.records == 7 && partition.length == 10 && partition.inner == 1 && partition.input.offset == 240);
    CHECK(partition.input.strides[0] == 280 && partition.input.strides[1] == 4 && partition.output.record_bytes == 280);
    partition_of(&partition, gather, 0, SCAND_DTYPE_F32);
    CHECK(partition.records == 1 && partition.length == 7 && partition.inner == 10 &&
          partition.input.strides[1] == 280);
    CHECK_EQ(partition.input.record_bytes, 1960);
}

/* Batches stay within their size, but for one record that does not fit it. */
static void batches_bounded(void)
{
    struct partition partition;
    struct array rows = {.format = FORMAT_RAW, .rank = 2, .shape = {UINT64_C(1) << 30, 1000}};
    partition_of(&partition, rows, 1, SCAND_DTYPE_F32);
    CHECK_EQ(partition_batch_records(&partition), BATCH_BYTES / 4000);
    partition_of(&partition, rows, 1, SCAND_DTYPE_F64);
    CHECK_EQ(partition_batch_records(&partition), BATCH_BYTES / 12000);
    rows.shape[0] = 5;
    partition_of(&partition, rows, 1, SCAND_DTYPE_F32);
    CHECK_EQ(partition_batch_records(&partition), 5);
    rows.shape[1] = UINT64_C(1) << 32;
    partition_of(&partition, rows, 1, SCAND_DTYPE_F32);
    CHECK_EQ(partition_batch_records(&partition), 1);
}

static const struct test tests[] = {
    TEST(npy_good),
    TEST(npy_bad_text),
    TEST(npy_missing_keys),
    TEST(npy_refused),
    TEST(npy_bad_prefix),
    TEST(npy_truncated),
    TEST(npy_damaged),
    TEST(npy_types),
    TEST(npy_written),
    TEST(raw_shapes),
    TEST(su_good),
    TEST(su_bad),
    TEST(su_truncated),
    TEST(su_pipes),
    TEST(looking_ahead),
    TEST(su_told_apart_by_traces),
    TEST(swapping),
    TEST(names),
    TEST(plans),
    TEST(batches_bounded),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

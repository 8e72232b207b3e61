/*
 * RSF as scanctl reads and writes it: the text, the place of the samples, and errors in both.
 */
#include <fcntl.h>
#include <unistd.h>

#include "client/scanctl/formats/file.h"
#include "client/scanctl/formats/input.h"
#include "tests/check.h"

static struct array array;
static struct error error;
static char folder[] = "/tmp/test_rsf.XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void file_write(const char *name, const char *text, size_t sample_bytes)
{
    FILE *file = fopen(in_folder(name), "w");
    if (!file || fputs(text, file) < 0)
        abort();
    for (size_t i = 0; i < sample_bytes; i++)
        fputc(0, file);
    fclose(file);
}

static int file_read(const char *name)
{
    struct input input;
    struct array_hints hints = {.format = FORMAT_RSF};
    error = (struct error){.exit_code = 0};
    int result = input_open(&input, in_folder(name), &error);
    if (result)
        return result;
    result = array_read_header(&array, &input, &hints, &error);
    array_free(&array);
    input_close(&input);
    return result;
}

/* A text whose samples follow it. */
static int read_packed(const char *text, size_t sample_bytes)
{
    char whole[4096];
    snprintf(whole, sizeof(whole), "%s in=\"stdin\"\014\014\004", text);
    file_write("packed.rsf", whole, sample_bytes);
    return file_read("packed.rsf");
}

static void texts(void)
{
    CHECK_EQ(read_packed("n1=3 n2=5", 60), 0);
    CHECK(array.rank == 2 && array.shape[0] == 5 && array.shape[1] == 3 && array.dtype == SCAND_DTYPE_F32);
    CHECK_EQ(read_packed("n1=3\nprogram\tx:\ta@b\tThu\n\tn1=4\n", 16), 0); /* the last one counts */
    CHECK_EQ(array.shape[0], 4);
    CHECK_EQ(read_packed("n1=3 label1=\"Two way time\" n2=2 label2='n1=7' n3=1", 24), 0);
    CHECK(array.rank == 3 && !strcmp(array.labels[2], "Two way time") && !strcmp(array.labels[1], "n1=7"));
    CHECK_EQ(read_packed("n1=2 n2=3 n3=4 n4=5 n5=6 n6=7 label4=a label6=b", 2 * 3 * 4 * 5 * 6 * 7 * 4), 0);
    CHECK(array.rank == 4 && array.shape[0] == 5 * 6 * 7 && array.shape[3] == 2 && !strcmp(array.labels[0], "a"));
    CHECK_EQ(read_packed("n1=2 n3=9", 8), 0); /* axes end with the first that is not there */
    CHECK_EQ(array.rank, 1);
}

static void kinds_of_samples(void)
{
    static const struct {
        const char *text;
        enum scand_dtype dtype;
        enum byte_order order;
    } list[] = {
        {"data_format=native_float esize=4", SCAND_DTYPE_F32, BYTE_ORDER_LITTLE},
        {"data_format=\"xdr_float\"", SCAND_DTYPE_F32BE, BYTE_ORDER_BIG},
        {"data_format=\"xdr_int\" esize=4", SCAND_DTYPE_I32, BYTE_ORDER_BIG},
        {"data_format=\"native_double\" esize=8", SCAND_DTYPE_F64, BYTE_ORDER_LITTLE},
        {"data_format=\"native_long\" esize=8", SCAND_DTYPE_I64, BYTE_ORDER_LITTLE},
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "n1=6 %s", list[i].text);
        CHECK_EQ(read_packed(text, 6 * scand_dtype_bytes(list[i].dtype)), 0);
        CHECK_EQ(array.dtype, list[i].dtype);
        if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
            CHECK_EQ(array.byte_order, list[i].order);
    }
}

static void refused(const char *text, size_t sample_bytes, const char *words)
{
    CHECK_EQ(read_packed(text, sample_bytes), EX_DATAERR);
    CHECK_CONTAINS(error.text, words);
}

static void texts_refused(void)
{
    refused("o1=0", 4, "has no n1=; give the file with the text");
    refused("n1=0", 4, "has n1=0; it may be a whole number from 1 on");
    refused("n1=3 n2=-4", 4, "has n2=-4; it may be");
    refused("n1=x", 4, "has n1=x");
    refused("n1=99999999999999999999999", 4, "has n1=99999999999999999999999");
    refused("n1=4294967296 n2=4294967296", 4, "more than this machine can address");
    refused("n1=1 n2=1 n3=1 n4=9999999999 n5=9999999999", 4, "more samples than this machine can address");
    refused("n1=3 data_format=native_complex esize=8", 24,
            "has data_format=\"native_complex\"; it may be native_float");
    refused("n1=3 data_format=ascii_float", 12, "has data_format=\"ascii_float\"; it may be native_float");
    refused("n1=3 data_format=native_", 12, "has data_format=\"native_\"");
    refused("n1=3 esize=8", 12,
            "has esize=8 and data_format=\"native_float\", whose samples have 4 bytes; make them agree");
    refused("n1=3 esize=four", 12, "has esize=four");
    refused("n1=3", 11, "cut short");
    refused("n1=3", 13, "too long");
}

static void samples_apart(void)
{
    file_write("data", "", 12);
    file_write("text.rsf", "n1=3 in=./data\n", 0); /* beside the text */
    CHECK_EQ(file_read("text.rsf"), 0);
    CHECK(array.apart && array.header_bytes == 0);
    char text[512];
    snprintf(text, sizeof(text), "n1=3 in=\"%s\"", in_folder("data"));
    file_write("text.rsf", text, 0);
    CHECK_EQ(file_read("text.rsf"), 0);
    file_write("text.rsf", "n1=3\n", 0);
    CHECK_EQ(file_read("text.rsf"), EX_DATAERR);
    CHECK_CONTAINS(error.text, "text.rsf: has no in=\"FILE\" that names its samples");
    file_write("text.rsf", "n1=3 in=stdin\n", 0);
    CHECK_EQ(file_read("text.rsf"), EX_DATAERR);
    CHECK_CONTAINS(error.text, "says in=\"stdin\", but no samples follow its text");
    file_write("text.rsf", "n1=3 in=none\n", 0);
    CHECK_EQ(file_read("text.rsf"), EX_NOINPUT);
    CHECK_CONTAINS(error.text, "text.rsf: says that its samples are in \"/tmp/test_rsf.");
    CHECK_CONTAINS(error.text, "/none\": No such file or directory; bring that file, or correct in=");
    file_write("text.rsf", "n1=4 in=./data\n", 0);
    CHECK_EQ(file_read("text.rsf"), EX_DATAERR);
    CHECK_CONTAINS(error.text, "/./data: is 12 bytes, but a header of 0 and 4 samples of 4 bytes make 16");
    file_write("text.rsf", "", 2 << 20); /* no text at all */
    CHECK_EQ(file_read("text.rsf"), EX_DATAERR);
    CHECK_CONTAINS(error.text, "its text does not end within 1048576 bytes");
}

/* A written header says where its samples are, in words that are read again. */
static void written(void)
{
    static const struct {
        const char *data_path;
        bool apart;
    } list[] = {{NULL, false}, {NULL, true}, {folder, false}};
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct result_file file;
        struct array result = {
            .format = FORMAT_RSF, .rank = 1, .shape = {3}, .apart = list[i].apart, .dtype = SCAND_DTYPE_F64};
        bool two = list[i].apart || list[i].data_path;
        result.passed.bytes = (unsigned char *)(char[]){"n1=3 o1=7 in=old"};
        result.passed.size_bytes = strlen("n1=3 o1=7 in=old");
        if (list[i].data_path)
            setenv("DATAPATH", list[i].data_path, 1);
        REQUIRE(!result_open(&file, &result, in_folder("out.rsf"), &error));
        CHECK_EQ(output_write(&file.samples, (double[]){1, 2, 3}, 24, &error), 0);
        CHECK(access(in_folder("out.rsf"), F_OK)); /* not before it is whole */
        CHECK_EQ(result_commit(&file, &error), 0);
        unsetenv("DATAPATH");
        CHECK_EQ(access(in_folder("out.rsf@"), F_OK) == 0, two);
        CHECK_EQ(file_read("out.rsf"), 0);
        CHECK(array.dtype == SCAND_DTYPE_F64 && array.shape[0] == 3 && array.apart == two);
        unlink(in_folder("out.rsf"));
        unlink(in_folder("out.rsf@"));
    }
    struct result_file file;
    struct array result = {.format = FORMAT_RSF, .apart = true, .dtype = SCAND_DTYPE_F32};
    CHECK_EQ(result_open(&file, &result, in_folder("none/out.rsf"), &error), EX_CANTCREAT);
    CHECK_CONTAINS(error.text, "has no folder for its samples");
    REQUIRE(!result_open(&file, &result, in_folder("gone.rsf"), &error));
    result_discard(&file);
    CHECK(access(in_folder("gone.rsf"), F_OK) && access(in_folder("gone.rsf@"), F_OK));
    CHECK_EQ(array_check_result(FORMAT_RSF, SCAND_DTYPE_IBM32, &error), EX_USAGE);
}

static const struct test tests[] = {
    TEST(texts), TEST(kinds_of_samples), TEST(texts_refused), TEST(samples_apart), TEST(written), TEST_END,
};

int main(int argc, char **argv)
{
    static const char *const names[] = {"packed.rsf", "text.rsf", "data"};
    if (!mkdtemp(folder))
        return 1;
    int result = test_main(argc, argv, tests);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(names[i]));
    if (rmdir(folder)) /* something was left */
        return 1;
    return result;
}

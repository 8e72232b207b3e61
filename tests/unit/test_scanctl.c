/*
 * The parts of scanctl, but for files' forms (test_formats.c) and the daemon: options, output files, JSON, the
 * synthetic gather and the bounds of its scan.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/scanctl/commands/demo_bounds.h"
#include "client/scanctl/commands/demo_gather.h"
#include "client/scanctl/commands/parallel_rows.h"
#include "client/scanctl/commands/scan_options.h"
#include "client/scanctl/formats/output.h"
#include "client/scanctl/ui/progress.h"
#include "client/scanctl/ui/text.h"
#include "tests/check.h"

static struct error error;
static struct scan_options options;
/* The results of scan_options_types. */
static struct scand_scan typed;
static enum scand_dtype output_dtype;

/* Parses a command line, its words separated by spaces; returns the exit code. */
static int parse(const char *line)
{
    static char text[512];
    static char *words[32]; /* options refer to them */
    int count = 0;
    snprintf(text, sizeof(text), "scan %s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    options = (struct scan_options){.batch = {.inputs = NULL}};
    error = (struct error){.exit_code = 0};
    return scan_options_parse(count, words, &options, &error);
}

static void options_defaults(void)
{
    CHECK_EQ(parse("in.su -o out.su"), 0);
    CHECK_EQ(options.scan.pass_count, 1);
    CHECK_EQ(options.scan.passes[0], SCAND_PASS_FORWARD);
    CHECK_EQ(options.scan.kind, SCAND_KIND_INCLUSIVE);
    CHECK_EQ(options.files.axis, -1);
    CHECK(options.scan.algorithm == NULL);
    CHECK_EQ(options.files.hints.format, FORMAT_COUNT);
    CHECK_EQ(options.files.hints.rank, 0);
}

static void options_of_steps(void)
{
    struct array array = {.format = FORMAT_RAW, .dtype = SCAND_DTYPE_F32};
    CHECK_EQ(parse("in -o out --then backward,forward,demean --then op=affine,coefficient=-0.5,accumulator=f2 "
                   "--then backward,op=max,kind=exclusive,intermediate=f32 --output-dtype f64"),
             0);
    CHECK_EQ(scan_options_types(&options, &array, array.format, &typed, &output_dtype, &error), 0);
    const struct scand_step *then = options.scan.then;
    REQUIRE(options.scan.then_count == 3);
    CHECK(then[0].pass_count == 2 && then[0].passes[0] == SCAND_PASS_BACKWARD && then[0].demean);
    CHECK(then[0].accumulator == SCAND_ACCUMULATOR_AUTO && then[0].intermediate == SCAND_INTERMEDIATE_AUTO);
    CHECK(then[1].pass_count == 1 && then[1].passes[0] == SCAND_PASS_FORWARD && !then[1].demean);
    CHECK(then[1].op == SCAND_OPERATOR_AFFINE && then[1].coefficient == -0.5);
    CHECK_EQ(then[1].accumulator, SCAND_ACCUMULATOR_F2);
    CHECK(then[2].op == SCAND_OPERATOR_MAX && then[2].kind == SCAND_KIND_EXCLUSIVE);
    CHECK_EQ(then[2].intermediate, SCAND_INTERMEDIATE_F32);
    static const char *const wrong[][2] = {
        {"backward,sideways", "--then has \"sideways\"; a step is made of forward, backward, demean, kind="},
        {"forward,", "--then has \"\""},
        {"forward,forward,forward", "--then has more than 2 passes"},
        {"op=plus", "--then op is \"plus\"; it may be sum, prod"},
        {"kind=", "--then kind is \"\""},
        {"op=affine", "op=affine needs a coefficient"},
        {"coefficient=2", "coefficient= is for op=affine"},
        {"op=affine,coefficient=0", "--then coefficient is \"0\""},
        {"intermediate=f16", "--then intermediate is \"f16\"; it may be auto, f64, f32"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "in -o out --then %s", wrong[i][0]);
        CHECK_EQ(parse(line), EX_USAGE);
        CHECK_CONTAINS(error.text, wrong[i][1]);
    }
    CHECK_EQ(parse("in -o out --then op=max --then op=max --then op=max --then op=max --then op=max --then op=max "
                   "--then op=max --then op=max"),
             0);
    CHECK_EQ(options.scan.then_count, 8);
    CHECK_EQ(parse("in -o out --then op=max --then op=max --then op=max --then op=max --then op=max --then op=max "
                   "--then op=max --then op=max --then op=max"),
             EX_USAGE);
    CHECK_CONTAINS(error.text, "--then is there more than 8 times");
}

/* Types that the options leave out depend on the samples. */
static void options_types(void)
{
    static const struct {
        enum scand_dtype samples, output;
        enum scand_accumulator accumulator;
    } list[] = {
        {SCAND_DTYPE_F32, SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F64},
        {SCAND_DTYPE_IBM32, SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F64},
        {SCAND_DTYPE_F64, SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F64},
        {SCAND_DTYPE_U32, SCAND_DTYPE_U32, SCAND_ACCUMULATOR_EXACT},
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct array array = {.format = FORMAT_RAW, .dtype = list[i].samples};
        CHECK_EQ(parse("in -o out"), 0);
        CHECK_EQ(scan_options_types(&options, &array, array.format, &typed, &output_dtype, &error), 0);
        CHECK_EQ(output_dtype, list[i].output);
        CHECK_EQ(typed.intermediate, SCAND_INTERMEDIATE_AUTO);
        CHECK_EQ(typed.accumulator, list[i].accumulator);
        CHECK_EQ(parse("in -o out --accumulator f2 --intermediate f32 --output-dtype bf16"), 0);
        CHECK_EQ(scan_options_types(&options, &array, array.format, &typed, &output_dtype, &error), 0);
        CHECK(output_dtype == SCAND_DTYPE_BF16 && typed.intermediate == SCAND_INTERMEDIATE_F32);
        CHECK_EQ(typed.accumulator, SCAND_ACCUMULATOR_F2);
    }
    struct array floats = {.format = FORMAT_RAW, .dtype = SCAND_DTYPE_F32};
    CHECK_EQ(parse("in -o out --algorithm kogge-stone"), 0);
    CHECK(strcmp(options.scan.algorithm, "kogge-stone") == 0);
    CHECK_EQ(scan_options_types(&options, &floats, floats.format, &typed, &output_dtype, &error), 0);
    CHECK_EQ(typed.accumulator, SCAND_ACCUMULATOR_F32);
    CHECK_EQ(parse("in -o out --algorithm warp-v0 --accumulator f64"), 0);
    CHECK_EQ(scan_options_types(&options, &floats, floats.format, &typed, &output_dtype, &error), 0);
    CHECK_EQ(typed.accumulator, SCAND_ACCUMULATOR_F64);
    CHECK_EQ(parse("in.npy -o out.npy --output-dtype ibm32"), 0);
    CHECK_EQ(
        scan_options_types(&options, &(struct array){.format = FORMAT_NPY}, FORMAT_NPY, &typed, &output_dtype, &error),
        EX_USAGE);
    CHECK_CONTAINS(error.text, "--output-dtype is ibm32, which .npy files cannot hold");
    CHECK_EQ(parse("in -o out --dtype i16be"), 0);
    CHECK_EQ(options.files.hints.dtype, SCAND_DTYPE_I16BE);
}

static void options_given(void)
{
    CHECK_EQ(parse("--passes forward,backward --accumulator f2 --kind=exclusive --op max --demean --intermediate f64 "
                   "--output-dtype f64 "
                   "--axis -2 --shape 3,4,5 --dtype f32 --byte-order big --format raw --json --socket S -o out - "),
             0);
    CHECK(options.scan.pass_count == 2 && options.scan.passes[1] == SCAND_PASS_BACKWARD);
    CHECK(options.scan.accumulator == SCAND_ACCUMULATOR_F2 && options.scan.kind == SCAND_KIND_EXCLUSIVE);
    CHECK_EQ(options.scan.op, SCAND_OPERATOR_MAX);
    CHECK_EQ(options.scan.demean, 1);
    CHECK(options.scan.intermediate == SCAND_INTERMEDIATE_F64 && options.output_dtype == SCAND_DTYPE_F64);
    CHECK(options.files.hints.rank == 3 && options.files.hints.shape[2] == 5 &&
          options.files.hints.byte_order == BYTE_ORDER_BIG);
    CHECK(options.common.json && !strcmp(options.common.socket_path, "S") && !strcmp(options.batch.inputs[0], "-"));
    uint32_t axis;
    CHECK_EQ(axis_resolve(&options.files, "IN", &(struct array){.rank = 3}, &axis, &error), 0);
    CHECK_EQ(axis, 1);
    CHECK_EQ(axis_resolve(&options.files, "IN", &(struct array){.rank = 1}, &axis, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "it may be -1 to 0");
    CHECK_EQ(parse("in -o out --axis offset"), 0);
    struct array cube = {.rank = 3, .labels = {"", "Offset", "Time"}};
    CHECK_EQ(axis_resolve(&options.files, "IN", &cube, &axis, &error), 0);
    CHECK_EQ(axis, 1);
    cube.format = FORMAT_RSF;
    strcpy(cube.labels[1], "CMP");
    CHECK_EQ(axis_resolve(&options.files, "IN", &cube, &axis, &error), EX_USAGE);
    CHECK_CONTAINS(error.text,
                   "--axis is \"offset\", but IN has no axis of that name; it may be gather, CMP, Time, -3 to 2");
    /* Axes without names have some, from the last one on. */
    static const struct {
        const char *words;
        uint32_t axis;
    } named[] = {{"in -o out --axis TIME", 3},  {"in -o out --axis sample", 3}, {"in -o out --axis offset", 2},
                 {"in -o out --axis Trace", 2}, {"in -o out --axis shot", 1},   {"in -o out --axis cmp", 1},
                 {"in -o out --axis line", 0}};
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        CHECK_EQ(parse(named[i].words), 0);
        CHECK_EQ(axis_resolve(&options.files, "IN", &(struct array){.rank = 4}, &axis, &error), 0);
        CHECK_EQ(axis, named[i].axis);
    }
    CHECK_EQ(parse("in -o out --axis shot"), 0);
    CHECK_EQ(axis_resolve(&options.files, "IN", &(struct array){.rank = 2}, &axis, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "it may be trace, sample, -2 to 1");
    static const char *const pairs[] = {
        "a.npy -o b.out",           "a.npy -o b", "a.npy -o -", "a -o b.raw", "a.b -o c.d", "a.npy -o c/b.NPY",
        "a.su --format raw -o b.su"};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        CHECK_EQ(parse(pairs[i]), 0);
    CHECK_EQ(parse("--help"), 0);
    CHECK(options.common.help);
}

static void options_wrong(void)
{
    static const char *const lines[][2] = {
        {"", "no input"},
        {"in", "no output"},
        {"a b -o c", "2 inputs, the first is \"a\", and -o is \"c\"; give a folder that exists, as in -o c/"},
        {"a/x.su b/x.su -o c/", "a/x.su and b/x.su would both be written to c/"},
        {"a - -o c/", "standard input has no name"},
        {"in -o", "-o needs a value"},
        {"in -o out --axis", "--axis needs a value"},
        {"in -o out --frobnicate", "unknown option --frobnicate; see scan --help"},
        {"in -o out --frobnicate=1", "unknown option --frobnicate; see"},
        {"in -o out --json=1", "--json=1 has a value, and --json takes none; see scan --help"},
        {"in -o out --dem=1", "--dem=1 has a value, and --demean takes none"},
        {"in --out out", "--out is short for --output, --output-dtype, --output-format; write out one of them"},
        {"in -o out -y", "unknown option -y"},
        {"in -o out --passes up", "--passes is \"up\"; it may be forward, backward"},
        {"in -o out --passes forward,", "--passes is \"\""},
        {"in -o out --passes forward,forward,forward", "one or 2 passes"},
        {"in -o out --accumulator f16", "--accumulator is \"f16\"; it may be auto, f32, f64, f2, exact"},
        {"in -o out --kind both", "it may be inclusive, exclusive, half"},
        {"in -o out --demean=1", "--demean=1 has a value, and --demean takes none"},
        {"in -o out --algorithm=", "--algorithm is \"\"; see scanctl kernels"},
        {"in -o out --priority urgent", "--priority is \"urgent\"; it may be normal, low, high"},
        {"in -o out --deadline 0", "--deadline is \"0\"; it may be 1 to 86400000 milliseconds"},
        {"in -o out --deadline -5", "--deadline is \"-5\"; it may be"},
        {"in -o out --deadline 86400001", "--deadline is \"86400001\"; it may be"},
        {"in -o out --deadline 1s", "--deadline is \"1s\"; it may be"},
        {"in -o out --op mean", "--op is \"mean\"; it may be sum, prod, max, min"},
        {"in -o out --intermediate f2", "--intermediate is \"f2\"; it may be auto, f64, f32"},
        {"in -o out --intermediate f16", "--intermediate is \"f16\"; it may be auto, f64, f32"},
        {"in -o out --output-dtype f4", "it may be f32, f64"},
        {"in -o out --dtype f8", "--dtype is \"f8\"; it may be f32, f64, f16"},
        {"in -o out --axis +1", "--axis is \"+1\"; it may be 0 to 3, -4 to -1"},
        {"in -o out --axis 5", "--axis is \"5\""},
        {"in -o out --axis --1", "--axis is \"--1\""},
        {"in -o out --shape 3,0", "--shape is \"3,0\""},
        {"in -o out --shape 3,", "--shape is \"3,\""},
        {"in -o out --shape 1,2,3,4,5", "one to 4 whole numbers"},
        {"in -o out --shape 99999999999999999999999999", "--shape is"},
        {"in -o out --shape 3x4", "--shape is"},
        {"in -o out --format sega", "it may be raw, npy, segy, rsf, su"},
        {"in -o out --byte-order middle", "it may be little, big"},
        {"in -o out --shape 3,-1", "--shape is \"3,-1\""},
        {"in -o out --header-bytes 67108865", "--header-bytes is \"67108865\"; it may be 0 to 67108864 bytes"},
        {"in -o out --trace-header-bytes -1", "--trace-header-bytes is \"-1\"; it may be 0 to 65536 bytes"},
        {"in -o out --offset x", "--offset is \"x\"; it may be 0 to"},
        {"in -o out --output-format iee", "--output-format is \"iee\"; it may be same, ieee"},
        {"in -o - --json", "both write to standard output"},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        CHECK_EQ(parse(lines[i][0]), EX_USAGE);
        CHECK_CONTAINS(error.text, lines[i][1]);
    }
}

static char folder[] = "/tmp/test_scanctl.XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* Files in the test's folder, which is emptied. */
static int folder_empty(void)
{
    DIR *listing = opendir(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            count++;
            unlink(in_folder(entry->d_name));
        }
    closedir(listing);
    return count;
}

static bool file_is(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
    fclose(file);
    return !strcmp(found, text);
}

static void output_whole_or_not(void)
{
    struct output output;
    struct stat status;
    mode_t mask = umask(027);
    const char *path = in_folder("out");
    CHECK_EQ(output_open(&output, path, &error), 0);
    CHECK_EQ(output_write(&output, "abc", 3, &error), 0);
    CHECK(access(path, F_OK));
    CHECK_EQ(output_commit(&output, &error), 0);
    CHECK(file_is(path, "abc"));
    CHECK(!stat(path, &status) && (status.st_mode & 0777) == 0640);
    CHECK(!chmod(path, 0604));
    CHECK_EQ(output_open(&output, path, &error), 0); /* replaces it, and keeps its permissions */
    CHECK_EQ(output_write(&output, "defg", 4, &error), 0);
    CHECK(file_is(path, "abc"));
    CHECK_EQ(output_commit(&output, &error), 0);
    CHECK(file_is(path, "defg"));
    CHECK(!stat(path, &status) && (status.st_mode & 0777) == 0604);
    CHECK_EQ(output_open(&output, path, &error), 0);
    CHECK_EQ(output_write(&output, "hij", 3, &error), 0);
    output_discard(&output);
    CHECK(file_is(path, "defg"));
    CHECK_EQ(folder_empty(), 1);
    umask(mask);
}

static void output_through_links(void)
{
    struct output output;
    char target[512];
    strcpy(target, in_folder("target"));
    CHECK(!symlink("target", in_folder("link")));
    fclose(fopen(target, "w"));
    CHECK_EQ(output_open(&output, in_folder("link"), &error), 0);
    CHECK_EQ(output_write(&output, "abc", 3, &error), 0);
    CHECK_EQ(output_commit(&output, &error), 0);
    CHECK(file_is(target, "abc"));
    struct stat status;
    CHECK(!lstat(in_folder("link"), &status) && S_ISLNK(status.st_mode));
    CHECK_EQ(folder_empty(), 2);
}

static void output_refused(void)
{
    struct output output;
    CHECK_EQ(output_open(&output, in_folder("no/out"), &error), EX_CANTCREAT);
    CHECK_CONTAINS(error.text, "No such file or directory");
    CHECK_EQ(output_open(&output, folder, &error), EX_CANTCREAT);
    CHECK_CONTAINS(error.text, "Is a directory");
    CHECK_EQ(output_open(&output, "/dev/full", &error), 0);
    CHECK_EQ(output_write(&output, "abc", 3, &error), EX_IOERR);
    CHECK_CONTAINS(error.text, "No space left on device; free some space");
    output_discard(&output);
    CHECK(!access("/dev/full", F_OK));
}

/* Samples and text of RSF: a signal removes both temporary files. */
static void output_two_at_a_time(void)
{
    struct output first, second;
    CHECK_EQ(output_open(&first, in_folder("first"), &error), 0);
    CHECK_EQ(output_open(&second, in_folder("second"), &error), 0);
    CHECK_EQ(output_write(&second, "b", 1, &error), 0);
    CHECK_EQ(output_commit(&first, &error), 0);
    CHECK_EQ(output_commit(&second, &error), 0);
    CHECK(file_is(in_folder("second"), "b"));
    CHECK_EQ(folder_empty(), 2);
    pid_t child = fork();
    if (!child) {
        signal(SIGTERM, SIG_DFL);
        if (output_open(&first, in_folder("first"), &error) || output_open(&second, in_folder("second"), &error))
            _exit(1);
        raise(SIGTERM);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_EQ(folder_empty(), 0);
}

static void file_make(const char *name)
{
    FILE *file = fopen(in_folder(name), "w");
    if (!file || fclose(file))
        abort();
}

/* Files that a killed process left are removed by the next one; those that a living process writes, or another program
 * made, stay. */
static void output_left_over(void)
{
    struct output output, living;
    pid_t child = fork();
    if (!child) {
        if (output_open(&output, in_folder("out"), &error))
            _exit(1);
        raise(SIGKILL);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    char left[64];
    snprintf(left, sizeof(left), ".scanctl.%ld.0", (long)child);
    CHECK(!access(in_folder(left), F_OK));
    file_make(".scanctl.x.0");
    file_make(".scanctl.1.0.old");
    CHECK_EQ(output_open(&living, in_folder("living"), &error), 0);
    CHECK(access(in_folder(left), F_OK)); /* gone */
    CHECK_EQ(output_open(&output, in_folder("out"), &error), 0);
    CHECK_EQ(output_commit(&living, &error), 0);
    CHECK_EQ(output_commit(&output, &error), 0);
    CHECK_EQ(folder_empty(), 4);
}

/* A signal leaves nothing behind, and still ends the program. */
static void output_signals(void)
{
    static const int kinds[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        pid_t child = fork();
        if (!child) {
            struct output output;
            signal(kinds[i], SIG_DFL);
            if (output_open(&output, in_folder("out"), &error) || output_write(&output, "abc", 3, &error))
                _exit(1);
            raise(kinds[i]);
            _exit(2);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == kinds[i]);
        CHECK_EQ(folder_empty(), 0);
    }
}

static void progress_in_words(void)
{
    char text[PROGRESS_BYTES];
    struct progress progress = {.total = 100000, .row_bytes = 8000};
    CHECK(!strcmp(progress_text(&progress, 25000, 2000000, text), "25,000 of 100,000 rows, 0.10 GB/s, 6 s left"));
    CHECK(!strcmp(progress_text(&progress, 1000, 2000000, text), "1,000 of 100,000 rows, 0.00 GB/s, 3 min 18 s left"));
    CHECK(!strcmp(progress_text(&progress, 10, 2000000, text), "10 of 100,000 rows, 0.00 GB/s, 5 h 33 min left"));
    CHECK(!strcmp(progress_text(&progress, 0, 2000000, text), "0 of 100,000 rows, 0.00 GB/s, some time left"));
    CHECK(!strcmp(progress_text(&progress, 100001, 2000000, text), "100,001 of 100,000 rows, 0.40 GB/s, 0 s left"));
    progress.total = 0;
    CHECK(!strcmp(progress_text(&progress, 25000, 2000000, text), "25,000 rows, 0.10 GB/s"));
}

static void json_values(void)
{
    char *text;
    size_t size;
    struct json json = {.file = open_memstream(&text, &size)};
    json_open(&json, NULL, '{');
    json_text(&json, "a\"b", "\\ \n\x01\x7f \xc3\xa9 \xff \xc0\x80 \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82");
    json_unsigned(&json, "most", UINT64_MAX);
    json_open(&json, "list", '[');
    json_real(&json, NULL, 1.5);
    json_real(&json, NULL, (double)NAN);
    json_boolean(&json, NULL, true);
    json_close(&json, ']');
    json_open(&json, "none", '{');
    json_close(&json, '}');
    json_close(&json, '}');
    fclose(json.file);
    CHECK(!strcmp(text,
                  "{\"a\\\"b\": \"\\\\ \\u000a\\u0001\\u007f \xc3\xa9 \\ufffd \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd "
                  "\xf0\x9f\x98\x80 \\ufffd\\ufffd\", \"most\": 18446744073709551615, "
                  "\"list\": [1.5, null, true], \"none\": {}}"));
    free(text);
}

static void numbers(void)
{
    char text[GROUPED_BYTES];
    CHECK(!strcmp(grouped(0, text), "0"));
    CHECK(!strcmp(grouped(999, text), "999"));
    CHECK(!strcmp(grouped(10000, text), "10,000"));
    CHECK(!strcmp(grouped(UINT64_MAX, text), "18,446,744,073,709,551,615"));
    CHECK(!strcmp(duration(999, text), "999 us"));
    CHECK(!strcmp(duration(12345, text), "12.3 ms"));
    CHECK(!strcmp(duration(2500000, text), "2.50 s"));
}

/* A gather has the same bits whole and in pieces; events, noise and another seed are visible. */
static void gather_reproducible(void)
{
    const struct gather gather = {.traces = 37, .samples = 501, .seed = 5},
                        other = {.traces = 37, .samples = 501, .seed = 6};
    size_t count = gather.traces * gather.samples;
    float *whole = malloc(count * sizeof(float)), *pieces = malloc(count * sizeof(float));
    gather_fill(&gather, 0, 37, whole);
    for (uint64_t i = 0; i < 37; i += 5)
        gather_fill(&gather, i, i + 5 < 37 ? 5 : 37 - i, pieces + i * gather.samples);
    CHECK(!memcmp(whole, pieces, count * sizeof(float)));
    gather_fill(&other, 0, 37, pieces);
    CHECK(memcmp(whole, pieces, count * sizeof(float)));
    float largest = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(isfinite(whole[i]));
        largest = fabsf(whole[i]) > largest ? fabsf(whole[i]) : largest;
    }
    CHECK(largest > 0.2f && largest < 20);
    const struct gather small = {.traces = 1, .samples = 1, .seed = UINT64_MAX};
    gather_fill(&small, 0, 1, pieces);
    CHECK(isfinite(pieces[0]));
    free(whole);
    free(pieces);
}

/* The demonstration's scan, its sums made in pairs of halves: far from the order of a loop. */
static double sum_in_halves(const float *x, uint64_t count)
{
    return count == 1 ? (double)x[0] : sum_in_halves(x, count / 2) + sum_in_halves(x + count / 2, count - count / 2);
}

static void scan_in_halves(const float *in, uint64_t samples, float *between, float *out)
{
    for (uint64_t i = 0; i < samples; i++)
        between[i] = (float)sum_in_halves(in, i + 1);
    for (uint64_t i = 0; i < samples; i++)
        out[i] = (float)sum_in_halves(between + i, samples - i);
}

static void bounds_hold_and_are_tight(void)
{
    enum { TRACES = 5, SAMPLES = 2000 };
    static float in[TRACES * SAMPLES], out[TRACES * SAMPLES], low[SAMPLES], high[SAMPLES];
    const struct gather gather = {.traces = TRACES, .samples = SAMPLES, .seed = 1};
    const struct demo demo = {.traces = TRACES, .samples = SAMPLES, .input = in, .output = out};
    int single = 0;
    gather_fill(&gather, 0, TRACES, in);
    for (int i = 0; i < TRACES; i++) {
        scan_in_halves(in + i * SAMPLES, SAMPLES, low, out + i * SAMPLES);
        bounds_make(in + i * SAMPLES, SAMPLES, low, high);
        for (int j = 0; j < SAMPLES; j++)
            single += low[j] == high[j];
    }
    CHECK(single > TRACES * SAMPLES * 98 / 100);
    CHECK_EQ(bounds_check(&demo, &error), 0);
    /* One unit in the last place of one sample, of which only one value is right. */
    REQUIRE(low[7] == high[7]);
    out[4 * SAMPLES + 7] = nextafterf(low[7], INFINITY);
    CHECK_EQ(bounds_check(&demo, &error), 1);
    CHECK_CONTAINS(error.text, "trace 4, sample 7 ");
    out[3 * SAMPLES + 1999] = NAN;
    CHECK_EQ(bounds_check(&demo, &error), 1);
    CHECK_CONTAINS(error.text, "trace 3, sample 1999 ");
}

static void count_rows(void *context, uint64_t first, uint64_t count)
{
    unsigned char *seen = context;
    for (uint64_t i = first; i < first + count; i++)
        seen[i]++;
}

static void rows_shared_once(void)
{
    unsigned char seen[1001];
    for (uint64_t rows = 0; rows < 1001; rows = rows * 3 + 1) {
        memset(seen, 0, sizeof(seen));
        parallel_rows(rows, count_rows, seen);
        for (uint64_t i = 0; i < 1001; i++)
            CHECK_EQ(seen[i], i < rows);
    }
}

static const struct test tests[] = {
    TEST(options_defaults),     TEST(options_of_steps),
    TEST(options_given),        TEST(options_types),
    TEST(options_wrong),        TEST(output_whole_or_not),
    TEST(output_through_links), TEST(output_refused),
    TEST(output_signals),       TEST(progress_in_words),
    TEST(output_two_at_a_time), TEST(output_left_over),
    TEST(json_values),          TEST(numbers),
    TEST(gather_reproducible),  TEST(bounds_hold_and_are_tight),
    TEST(rows_shared_once),     TEST_END,
};

int main(int argc, char **argv)
{
    if (!mkdtemp(folder))
        return 1;
    int result = test_main(argc, argv, tests);
    folder_empty();
    rmdir(folder);
    return result;
}

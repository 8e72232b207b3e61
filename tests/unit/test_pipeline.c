/* The steps of scanctl run: what their text means, what it may not be, and texts of any kind. */
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/stream/pipeline.h"
#include "tests/check.h"

static void test_accepted(void)
{
    static const struct {
        const char *text, *operand_path;
        enum scand_reduction reduction;
    } cases[] = {
        {"scan forward", NULL, SCAND_REDUCTION_NONE},
        {"scan passes=forward", NULL, SCAND_REDUCTION_NONE},
        {"  scan\tforward,backward\n accumulator=f64 demean |reduce rms  ", NULL, SCAND_REDUCTION_RMS},
        {"scan backward|scan demean passes=forward", NULL, SCAND_REDUCTION_NONE},
        {"reduce reduction=norm", NULL, SCAND_REDUCTION_NORM},
        {"reduce sum | scan forward", NULL, SCAND_REDUCTION_NONE}, /* for the daemon to refuse */
        {"scan forward op=affine coefficients=a=b.npy", "a=b.npy", SCAND_REDUCTION_NONE},
        {"scan forward op=affine coefficients=\"a | b.npy\" demean", "a | b.npy", SCAND_REDUCTION_NONE},
        {"scan forward op=affine \"coefficients=\ta.npy\"|scan \"forward\"", "\ta.npy", SCAND_REDUCTION_NONE},
        {"scan forward op=affine coefficient=-0.5e-1", NULL, SCAND_REDUCTION_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pipeline pipeline;
        struct error error;
        CHECK_EQ(pipeline_check(&pipeline, cases[i].text, &error), 0);
        CHECK_EQ(pipeline.reduction, cases[i].reduction);
        const char *path = cases[i].operand_path;
        CHECK_EQ(pipeline.file_count, path != NULL);
        CHECK(!path || strcmp(pipeline.files[0].path, path) == 0);
        pipeline_free(&pipeline);
    }
}

/* Each message has the step, the word, what is allowed, and where to look. */
static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "step 1: it is empty; give an operation, with | between two; see scanctl operations"},
        {" \t", "step 1: it is empty"},
        {"|", "step 1: it is empty"},
        {"scan forward |", "step 2: it is empty"},
        {"scan forward || reduce sum", "step 2: it is empty"},
        {"scam", "step 1: operation is \"scam\"; there are: scan, reduce"},
        {"scam", "; see scanctl operations"},
        {"scan forward | =", "step 2: operation is \"=\"; there are: scan, reduce"},
        {"scan", "step 1 (scan): passes is missing; give passes=VALUE, of forward,backward"},
        {"scan demean | reduce sum", "step 1 (scan): passes is missing"},
        {"scan forward | reduce", "step 2 (reduce): reduction is missing; give reduction=VALUE, of sum,min,max"},
        {"scan forward backward", "step 1 (scan), \"backward\": it is no flag of this operation; give NAME=VALUE"},
        {"scan demean forward", "step 1 (scan), \"forward\": it is no flag"},
        {"scan sideways", "step 1 (scan), \"sideways\": passes is \"sideways\"; allowed: forward, backward"},
        {"scan forward kind", "step 1 (scan), \"kind\": it is no flag"},
        {"scan forward kind=", "step 1 (scan), \"kind=\": kind is \"\"; allowed: inclusive"},
        {"scan forward kind=both", "\"kind=both\": kind is \"both\"; allowed: inclusive, exclusive, half"},
        {"scan forward kind=half kind=half", "step 1 (scan), \"kind=half\": it is there twice; give it once"},
        {"scan forward passes=forward", "\"passes=forward\": it is there twice"},
        {"scan forward demean demean=1", "\"demean=1\": it is there twice"},
        {"scan forward demean=yes", "\"demean=yes\": demean is \"yes\"; allowed: whole numbers from 0 to 1"},
        {"scan forward coefficient=x", "\"coefficient=x\": coefficient is \"x\"; allowed: a number"},
        {"scan forward =3", "step 1 (scan), \"=3\":  is \"3\", but operation \"scan\" has no such parameter"},
        {"scan forward | reduce redaction=sum",
         "step 2 (reduce), \"redaction=sum\": redaction is \"sum\", but operation \"reduce\" has no such parameter; it "
         "takes: reduction; see scanctl operations"},
        {"scan forward operation=reduce", "has no such parameter"},
        {"scan forward coefficients=", "\"coefficients=\": give a file, as in NAME=FILE.npy"},
        {"scan forward coefficients=-", "\"coefficients=-\": give a file"},
        {"scan forward coefficients=\"\"", "\"coefficients=\": give a file"},
        {"scan forward coefficients=a b.npy",
         "\"b.npy\": it is no flag of this operation; give NAME=VALUE (NAME=\"VALUE\""},
        {"scan forward | map add other=\"a b.npy", "step 2 has a \" without a second one; put one behind the value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pipeline pipeline;
        struct error error = {.text = ""};
        CHECK_EQ(pipeline_check(&pipeline, cases[i].text, &error), EX_USAGE);
        CHECK_CONTAINS(error.text, cases[i].message);
        pipeline_free(&pipeline);
    }
}

/* Each thing that a text can have many of. */
static void test_too_much(void)
{
    enum { SIZE = 200000 };
    char *text = malloc(SIZE);
    struct pipeline pipeline;
    struct error error = {.text = ""};
    strcpy(text, "scan forward");
    for (int i = 0; i < SCAND_STEPS_MAX; i++)
        strcat(text, "|scan forward");
    CHECK_EQ(pipeline_check(&pipeline, text, &error), 0);
    pipeline_free(&pipeline);
    strcat(text, "|scan forward");
    CHECK_EQ(pipeline_check(&pipeline, text, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "step 10: steps has 9 items, and \"scan\" is one more; allowed: 1 to 9");
    pipeline_free(&pipeline);
    memset(text, 'x', SIZE - 1);
    text[SIZE - 1] = '\0';
    CHECK_EQ(pipeline_check(&pipeline, text, &error), EX_USAGE);
    CHECK_CONTAINS(error.text, "step 1 has a word of 199999 bytes; it may have 4095");
    pipeline_free(&pipeline);
    memcpy(text, "scan forward coefficients=", 26);
    text[4096] = '\0'; /* a long word that is allowed */
    CHECK_EQ(pipeline_check(&pipeline, text, &error), 0);
    CHECK_EQ(strlen(pipeline.files[0].path), 4096 - 26);
    pipeline_free(&pipeline);
    free(text);
}

/* Texts of pieces that mean something, and of any bytes: each is refused with a reason, or can be built. */
static void test_random_texts(void)
{
    static const char *const pieces[] = {"scan",
                                         "reduce",
                                         "forward",
                                         "backward",
                                         "passes",
                                         "=",
                                         ",",
                                         "|",
                                         " ",
                                         "sum",
                                         "rms",
                                         "demean",
                                         "op=",
                                         "affine",
                                         "kind=",
                                         "half",
                                         "0",
                                         "1",
                                         "-1e400",
                                         "nan",
                                         "\t",
                                         "passes=",
                                         "scan forward",
                                         "reduce rms",
                                         "\"",
                                         "\xff",
                                         "a.npy",
                                         "coefficients=",
                                         "accumulator=f64",
                                         "| scan backward",
                                         "reduction=max"};
    uint64_t random = random_seed();
    int accepted = 0;
    for (int i = 0; i < 20000; i++) {
        char text[256] = "";
        struct pipeline pipeline;
        struct error error = {.text = ""};
        const unsigned count = (unsigned)(random_next(&random) >> 60);
        for (unsigned k = 0; k < count && strlen(text) < sizeof text - 32; k++)
            strcat(text, pieces[(random_next(&random) >> 33) % (sizeof pieces / sizeof pieces[0])]);
        if (i % 4 == 0)
            for (char *at = text; *at; at++)
                *at = (char)(1 + (random_next(&random) >> 33) % 255);
        const int result = pipeline_check(&pipeline, text, &error);
        CHECK(result == 0 || (result == EX_USAGE && strncmp(error.text, "step ", 5) == 0));
        if (result == 0) {
            struct scand_task *task = pipeline_build(&pipeline, NULL);
            CHECK(task && strcmp(scand_task_message(task), "") == 0);
            scand_task_destroy(task);
            accepted++;
        }
        pipeline_free(&pipeline);
    }
    CHECK(accepted > 0);
}

static const struct test tests[] = {TEST(test_accepted), TEST(test_refused), TEST(test_too_much),
                                    TEST(test_random_texts), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

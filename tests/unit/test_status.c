/* The tables of statuses and words. */
#include "protocol/status.h"

#include <errno.h>

#include "tests/check.h"

static const enum scand_status every[] = {
#define X(NAME, CODE, WORD, ERRNO, EXIT, TEXT) SCAND_##NAME,
    SCAND_STATUSES(X)
#undef X
};
static const size_t every_count = sizeof every / sizeof every[0];

static void statuses_and_errnos_are_one_to_one(void)
{
    for (size_t i = 0; i < every_count; i++) {
        int code = status_to_errno(every[i]);
        CHECK(code < 0 || every[i] == SCAND_OK);
        CHECK_EQ(status_from_errno(code), every[i]);
        for (size_t j = 0; j < i; j++) {
            CHECK(status_to_errno(every[j]) != code);
            CHECK(strcmp(status_word(every[j]), status_word(every[i])) != 0);
        }
        CHECK(strlen(status_word(every[i])) > 0 && strlen(status_word(every[i])) < LIMIT_NAME_BYTES);
        CHECK(strlen(status_text(every[i])) > 0 && strlen(status_text(every[i])) < LIMIT_ERROR_BYTES);
        CHECK(status_exit_code(every[i]) == 0 || status_exit_code(every[i]) >= 64);
    }
    CHECK_EQ(status_exit_code(SCAND_OK), 0);
    CHECK_EQ(status_exit_code(SCAND_UNAVAILABLE), 69);
}

static void what_is_not_listed(void)
{
    CHECK_EQ(status_from_errno(-EXDEV), SCAND_INTERNAL);
    CHECK_EQ(status_to_errno(4711), -ENOTRECOVERABLE);
    CHECK_EQ(status_to_errno(UINT64_C(1) << 32), -ENOTRECOVERABLE); /* and not what its low half would be */
    CHECK_CONTAINS(status_word((enum scand_status)4711), "unknown");
    CHECK(strlen(status_text((enum scand_status)4711)) > 0);
    CHECK_EQ(status_exit_code((enum scand_status)4711), 70);
}

static void errors_are_set_and_cut(void)
{
    struct error error;
    CHECK_EQ(error_set(&error, -EINVAL, "%s is %d", "x", 5), -EINVAL);
    CHECK_EQ(error.code, -EINVAL);
    CHECK_EQ(error.retry_ms, 0);
    CHECK(strcmp(error.message, "x is 5") == 0);
    CHECK_EQ(error_set(NULL, -EIO, "nobody listens"), -EIO);
    char text[2 * LIMIT_ERROR_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error_set(&error, -EINVAL, "%s", text);
    CHECK_EQ(strlen(error.message), LIMIT_ERROR_BYTES - 1);
}

static void words_are_found_whole(void)
{
    CHECK_EQ(words_find(&dtype_words, "f32", 3), SCAND_DTYPE_F32);
    CHECK_EQ(words_find(&dtype_words, "f64", 3), SCAND_DTYPE_F64);
    CHECK_EQ(words_find(&accumulator_words, "f2", 2), SCAND_ACCUMULATOR_F2);
    CHECK_EQ(words_find(&pass_words, "backward", 8), SCAND_PASS_BACKWARD);
    CHECK_EQ(words_find(&place_words, "device", 6), SCAND_PLACE_DEVICE);
    CHECK_EQ(words_find(&kind_words, "exclusive", 9), SCAND_KIND_EXCLUSIVE);
    CHECK_EQ(words_find(&operator_words, "sum", 3), SCAND_OPERATOR_SUM);
    CHECK_EQ(words_find(&dtype_words, "f3", 2), -1);
    CHECK_EQ(words_find(&dtype_words, "f32x", 4), -1);
    CHECK_EQ(words_find(&dtype_words, "f32\0", 4), -1);
    CHECK_EQ(words_find(&dtype_words, "", 0), -1);
    CHECK_EQ(words_find(&dtype_words, "F32", 3), -1);
}

static void words_are_joined_and_cut(void)
{
    char text[64];
    CHECK(strcmp(words_join(&accumulator_words, text, sizeof text), "auto, f32, f64, f2, exact") == 0);
    CHECK(strcmp(words_join(&accumulator_words, text, 7), "auto, ") == 0);
    CHECK(strcmp(words_join(&accumulator_words, text, 1), "") == 0);
}

static void dtypes_have_sizes(void)
{
    CHECK_EQ(dtype_size_bytes(SCAND_DTYPE_F32), 4);
    CHECK_EQ(dtype_size_bytes(SCAND_DTYPE_F64), 8);
    CHECK_EQ(dtype_size_bytes(SCAND_DTYPE_I16BE), 2);
    CHECK_EQ(dtype_class(SCAND_DTYPE_F64), SCAND_CLASS_F64);
    CHECK_EQ(dtype_class(SCAND_DTYPE_I32), SCAND_CLASS_SIGNED);
    CHECK_EQ(dtype_class(SCAND_DTYPE_I16BE), SCAND_CLASS_F32);
    CHECK_EQ(dtype_class(SCAND_DTYPE_I32BE), SCAND_CLASS_F64);
}

static const struct test tests[] = {
    TEST(statuses_and_errnos_are_one_to_one),
    TEST(what_is_not_listed),
    TEST(errors_are_set_and_cut),
    TEST(words_are_found_whole),
    TEST(words_are_joined_and_cut),
    TEST(dtypes_have_sizes),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

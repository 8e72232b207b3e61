/* Text from outside, as it may be shown or read. */
#include "protocol/text.h"

#include "protocol/encoding.h"
#include "tests/check.h"
#include "tests/unit/bytes.h"

static void check_clean(const char *text, const char *expected)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    text_clean(copy);
    if (strcmp(copy, expected) != 0)
        fprintf(stderr, "got \"%s\", expected \"%s\"\n", copy, expected);
    CHECK(strcmp(copy, expected) == 0);
}

static void text_stays(void)
{
    check_clean("", "");
    check_clean("migration 7", "migration 7");
    check_clean("sch\xc3\xb6n \xe2\x82\xac \xf0\x9f\x98\x80", "sch\xc3\xb6n \xe2\x82\xac \xf0\x9f\x98\x80");
    check_clean("\xc2\xa0", "\xc2\xa0"); /* the first behind the controls */
}

static void what_terminals_obey_goes(void)
{
    check_clean("\x1b[31mred\a\n", "?[31mred??");
    check_clean("\x7f\t\r", "???");
    check_clean("\xc2\x9b"
                "31m",
                "??31m"); /* the escape sequence's beginning in one character */
    check_clean("\xc2\x80\xc2\x9f", "????");
}

static void what_turns_text_around_goes(void)
{
    check_clean("a\xe2\x80\xae"
                "b",
                "a???b");
    check_clean("\xe2\x80\xa8\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c",
                "????????????????????");
    /* Those beside them, and letters that are read from the right. */
    check_clean("\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b\xd8\x9d",
                "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\x9b\xd8\x9d");
    check_clean("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d");
}

static void what_is_not_utf8_goes(void)
{
    check_clean("\xff\xfe"
                "ab",
                "??ab");
    check_clean("\x80", "?");
    check_clean("\xc3", "?");           /* cut short */
    check_clean("\xe2\x82", "??");      /* too */
    check_clean("\xc0\xaf", "??");      /* longer than need be */
    check_clean("\xed\xa0\x80", "???"); /* half of a pair */
    check_clean("\xf4\x90\x80\x80", "????");
}

/* Text is cleaned where it enters: names as messages bring them, and errors that quote what was sent. */
static void messages_bring_clean_text(void)
{
    struct bytes bytes = {.size = 0};
    struct message message;
    struct msg_hello_params hello;
    struct error error = {0};
    uint8_t *copy;
    PUT(&bytes, "\x94\x00\x07\xa5hello\x91\x83\xabversion_min\x01\xabversion_max\x01\xa6"
                "client\xa6"
                "a\x1b[1m\xff");
    REQUIRE(open_copy(&message, bytes.bytes, bytes.size, &copy, &error) == 0);
    REQUIRE(message_read(&message, &msg_hello_params_type, &hello, &error) == 0);
    CHECK(strcmp(hello.client, "a?[1m?") == 0);
    message_close(&message);
    free(copy);
    error_set(&error, -1, "no \"%s\"", "x\x1b]0;\a");
    CHECK(strcmp(error.message, "no \"x?]0;?\"") == 0);
}

static bool is_number(const char *text)
{
    uint64_t number = 7;
    const bool is = number_parse(text, 0, UINT64_MAX, &number);
    CHECK(is || number == 7);
    return is;
}

static void numbers_stand_alone(void)
{
    uint64_t number = 7;
    CHECK(number_parse("18446744073709551615", 0, UINT64_MAX, &number) && number == UINT64_MAX);
    CHECK(number_parse("0012", 12, 12, &number) && number == 12);
    CHECK(!number_parse("11", 12, 13, &number) && !number_parse("14", 12, 13, &number) && number == 12);
    CHECK(!is_number("18446744073709551616") && !is_number("") && !is_number(" 1") && !is_number("1 "));
    CHECK(!is_number("+1") && !is_number("-1") && !is_number("0x1") && !is_number("1.0"));
}

static const struct test tests[] = {
    TEST(text_stays),
    TEST(what_terminals_obey_goes),
    TEST(what_turns_text_around_goes),
    TEST(what_is_not_utf8_goes),
    TEST(messages_bring_clean_text),
    TEST(numbers_stand_alone),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

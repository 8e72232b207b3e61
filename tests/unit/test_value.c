/* Objects read one at a time: every form of every kind, and what it takes to get past them. */
#include "protocol/value.h"
#include "tests/check.h"

#define BYTES(LITERAL) (const uint8_t *)(LITERAL), sizeof(LITERAL) - 1

static struct value read_all(const uint8_t *bytes, size_t size)
{
    struct value value;
    uint8_t *copy = malloc(size); /* so that a sanitizer sees a read beyond it */
    memcpy(copy, bytes, size);
    CHECK(value_read(copy, &value) == copy + size);
    CHECK(value_skip(copy) == copy + size);
    free(copy);
    return value;
}

static void check_unsigned(uint64_t number, const uint8_t *bytes, size_t size)
{
    struct value value = read_all(bytes, size);
    CHECK_EQ(value.kind, VALUE_UNSIGNED);
    CHECK(value.u64 == number);
}

static void check_negative(int64_t number, const uint8_t *bytes, size_t size)
{
    struct value value = read_all(bytes, size);
    CHECK_EQ(value.kind, VALUE_NEGATIVE);
    CHECK(value.i64 == number);
}

static void integers(void)
{
    check_unsigned(0, BYTES("\x00"));
    check_unsigned(127, BYTES("\x7f"));
    check_unsigned(255, BYTES("\xcc\xff"));
    check_unsigned(0xfedc, BYTES("\xcd\xfe\xdc"));
    check_unsigned(0xfedcba98, BYTES("\xce\xfe\xdc\xba\x98"));
    check_unsigned(UINT64_MAX, BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));
    check_unsigned(5, BYTES("\xcf\x00\x00\x00\x00\x00\x00\x00\x05"));
    check_negative(-1, BYTES("\xff"));
    check_negative(-32, BYTES("\xe0"));
    check_negative(-128, BYTES("\xd0\x80"));
    check_negative(-2, BYTES("\xd1\xff\xfe"));
    check_negative(INT32_MIN, BYTES("\xd2\x80\x00\x00\x00"));
    check_negative(INT64_MIN, BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"));
    check_unsigned(127, BYTES("\xd0\x7f")); /* signed forms, and not negative */
    check_unsigned(0x7fff, BYTES("\xd1\x7f\xff"));
    check_unsigned(INT64_MAX, BYTES("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"));
}

static void floats_and_words(void)
{
    struct value value = read_all(BYTES("\xca\xbf\x80\x00\x00"));
    CHECK(value.kind == VALUE_FLOAT && value.f64 == -1);
    value = read_all(BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"));
    CHECK(value.kind == VALUE_FLOAT && value.f64 == 1.5);
    CHECK_EQ(read_all(BYTES("\xc0")).kind, VALUE_NIL);
    CHECK_EQ(read_all(BYTES("\xc2")).kind, VALUE_BOOLEAN);
    CHECK_EQ(read_all(BYTES("\xc3")).kind, VALUE_BOOLEAN);
}

static void check_bytes(enum value_kind kind, const uint8_t *bytes, size_t size, size_t head_bytes)
{
    struct value value;
    CHECK(value_read(bytes, &value) == bytes + size);
    CHECK_EQ(value.kind, kind);
    CHECK_EQ(value.count, size - head_bytes);
    CHECK(value.bytes == bytes + head_bytes);
}

static void text_and_binary_data(void)
{
    check_bytes(VALUE_TEXT, BYTES("\xa0"), 1);
    check_bytes(VALUE_TEXT, BYTES("\xa2hi"), 1);
    check_bytes(VALUE_TEXT,
                BYTES("\xbf"
                      "0123456789012345678901234567890"),
                1);
    check_bytes(VALUE_TEXT, BYTES("\xd9\x02hi"), 2);
    check_bytes(VALUE_TEXT, BYTES("\xda\x00\x02hi"), 3);
    check_bytes(VALUE_TEXT, BYTES("\xdb\x00\x00\x00\x02hi"), 5);
    check_bytes(VALUE_BINARY, BYTES("\xc4\x00"), 2);
    check_bytes(VALUE_BINARY, BYTES("\xc5\x00\x02hi"), 3);
    check_bytes(VALUE_BINARY, BYTES("\xc6\x00\x00\x00\x02hi"), 5);
}

static void check_head(enum value_kind kind, uint32_t count, const uint8_t *bytes, size_t size)
{
    struct value value;
    CHECK(value_read(bytes, &value) == bytes + size);
    CHECK_EQ(value.kind, kind);
    CHECK_EQ(value.count, count);
}

static void lists_and_maps(void)
{
    check_head(VALUE_LIST, 0, BYTES("\x90"));
    check_head(VALUE_LIST, 15, BYTES("\x9f"));
    check_head(VALUE_LIST, 300, BYTES("\xdc\x01\x2c"));
    check_head(VALUE_LIST, 65536, BYTES("\xdd\x00\x01\x00\x00"));
    check_head(VALUE_MAP, 3, BYTES("\x83"));
    check_head(VALUE_MAP, 300, BYTES("\xde\x01\x2c"));
    check_head(VALUE_MAP, 65536, BYTES("\xdf\x00\x01\x00\x00"));
}

static void skipping(void)
{
    static const uint8_t nested[] = "\x93\x82\xa1"
                                    "a\x92\x01\xc0\xa1"
                                    "b\x80\xc4\x02xy\x90\x07";
    CHECK(value_skip(nested) == nested + sizeof nested - 2);
    CHECK(value_skip(nested + sizeof nested - 2) == nested + sizeof nested - 1);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(integers),       TEST(floats_and_words), TEST(text_and_binary_data),
                                        TEST(lists_and_maps), TEST(skipping),         TEST_END};
    return test_main(argc, argv, tests);
}

/* The token walk: where an object ends, and what a hostile sender may claim. */
#include "protocol/walk.h"

#include <errno.h>

#include "protocol/limits.h"
#include "tests/check.h"

/* Walks a string literal, its final zero byte left out. */
#define WALK(LITERAL, LENGTH) walk_copy((const uint8_t *)(LITERAL), sizeof(LITERAL) - 1, LENGTH)

/* Walks over a copy in memory of exactly its size, so that a sanitizer sees a read beyond it. */
static int walk_copy(const uint8_t *bytes, size_t size, size_t *length)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    int code = walk(copy, size, length);
    free(copy);
    return code;
}

/* Each object of the specification, complete: 0 and its length, also with something after it; every beginning of it:
 * -EAGAIN and a bound between what is there and what is needed. */
static void check_object(const uint8_t *bytes, size_t size)
{
    size_t length = 0;
    CHECK_EQ(walk_copy(bytes, size, &length), 0);
    CHECK_EQ(length, size);
    uint8_t *longer = malloc(size + 3);
    memcpy(longer, bytes, size);
    memset(longer + size, 0xc1, 3);
    length = 0;
    CHECK_EQ(walk_copy(longer, size + 3, &length), 0);
    CHECK_EQ(length, size);
    free(longer);
    for (size_t cut = 0; cut < size; cut++) {
        length = 0;
        CHECK_EQ(walk_copy(bytes, cut, &length), -EAGAIN);
        CHECK(length > cut && length <= size);
    }
}

#define OBJECT(LITERAL) check_object((const uint8_t *)(LITERAL), sizeof(LITERAL) - 1)

static void every_type_cut_at_every_byte(void)
{
    OBJECT("\x00");
    OBJECT("\x7f");
    OBJECT("\xe0");
    OBJECT("\xff");
    OBJECT("\xc0");
    OBJECT("\xc2");
    OBJECT("\xc3");
    OBJECT("\xc4\x00");
    OBJECT("\xc4\x03"
           "abc");
    OBJECT("\xc5\x00\x02"
           "ab");
    OBJECT("\xc6\x00\x00\x00\x01"
           "a");
    OBJECT("\xca\x00\x00\x00\x00");
    OBJECT("\xcb\x00\x00\x00\x00\x00\x00\x00\x00");
    OBJECT("\xcc\xff");
    OBJECT("\xcd\xff\xff");
    OBJECT("\xce\xff\xff\xff\xff");
    OBJECT("\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
    OBJECT("\xd0\xff");
    OBJECT("\xd1\xff\xff");
    OBJECT("\xd2\xff\xff\xff\xff");
    OBJECT("\xd3\xff\xff\xff\xff\xff\xff\xff\xff");
    OBJECT("\xa0");
    OBJECT("\xa3"
           "abc");
    OBJECT("\xd9\x03"
           "abc");
    OBJECT("\xda\x00\x03"
           "abc");
    OBJECT("\xdb\x00\x00\x00\x03"
           "abc");
    OBJECT("\x80");
    OBJECT("\x90");
    OBJECT("\x82\x01\x02\x03\x04");
    OBJECT("\x93\x01\x02\x03");
    OBJECT("\xdc\x00\x02\x01\x02");
    OBJECT("\xdd\x00\x00\x00\x02\x01\x02");
    OBJECT("\xde\x00\x01\x01\x02");
    OBJECT("\xdf\x00\x00\x00\x01\x01\x02");
    OBJECT("\x94\x00\xce\x00\x00\x00\x07\xa5hello\x91\x81\xa1x\x92\xa1y\xc4\x01z");
}

static void extension_types_are_refused(void)
{
    const uint8_t tags[] = {0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8};
    for (size_t i = 0; i < sizeof tags; i++) {
        uint8_t bytes[32] = {tags[i]};
        size_t length = 77;
        CHECK_EQ(walk_copy(bytes, 1, &length), -EBADMSG);
        CHECK_EQ(walk_copy(bytes, sizeof bytes, &length), -EBADMSG);
        uint8_t inner[32] = {0x92, 0x01, tags[i]};
        CHECK_EQ(walk_copy(inner, sizeof inner, &length), -EBADMSG);
        CHECK_EQ(length, 77);
    }
}

static void claims_beyond_the_message_are_refused_at_their_head(void)
{
    size_t length = 77;
    CHECK_EQ(WALK("\xdd\xff\xff\xff\xff", &length), -EMSGSIZE); /* msgpack-c would ask for 96 GB */
    CHECK_EQ(WALK("\xdf\xff\xff\xff\xff", &length), -EMSGSIZE);
    CHECK_EQ(WALK("\xdf\x80\x00\x00\x00", &length), -EMSGSIZE); /* twice this is 0 in 32 bits */
    CHECK_EQ(WALK("\xdb\xff\xff\xff\xff", &length), -EMSGSIZE);
    CHECK_EQ(WALK("\xc6\xff\xff\xff\xff", &length), -EMSGSIZE);
    CHECK_EQ(WALK("\xdd\x00\x01\x00\x00", &length), -EMSGSIZE); /* 65,536 elements and a head */
    CHECK_EQ(WALK("\xda\xff\xff", &length), -EMSGSIZE);         /* 65,535 bytes and a head */
    CHECK_EQ(WALK("\xde\x80\x00", &length), -EMSGSIZE);
    CHECK_EQ(length, 77);
    CHECK_EQ(WALK("\xda\xff\xfd", &length), -EAGAIN); /* 65,536 bytes in all */
    CHECK_EQ(length, LIMIT_MESSAGE_BYTES);
    CHECK_EQ(WALK("\xdc\xff\xfd", &length), -EAGAIN);
    CHECK_EQ(length, LIMIT_MESSAGE_BYTES);
}

/* Claims that are small one by one and too large together. */
static void claims_add_up(void)
{
    size_t length;
    CHECK_EQ(WALK("\x92\xda\x80\x00", &length), -EAGAIN);
    CHECK_EQ(length, 1 + 3 + 0x8000 + 1);
    uint8_t bytes[8 + 0x8000] = {0x92, 0xda, 0x80, 0x00};
    bytes[4 + 0x8000] = 0xda;
    bytes[5 + 0x8000] = 0x80;
    CHECK_EQ(walk_copy(bytes, 7 + 0x8000, &length), -EMSGSIZE);
    CHECK_EQ(WALK("\xdc\x80\x00\xdc\x80\x00", &length), -EMSGSIZE);
}

static void the_largest_message(void)
{
    uint8_t *bytes = calloc(1, LIMIT_MESSAGE_BYTES + 1);
    bytes[0] = 0xdc; /* 65,533 zeros */
    bytes[1] = 0xff;
    bytes[2] = 0xfd;
    size_t length;
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES - 1, &length), -EAGAIN);
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES, &length), 0);
    CHECK_EQ(length, LIMIT_MESSAGE_BYTES);
    bytes[2] = 0xfe;
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES, &length), -EMSGSIZE);
    /* A head that is cut by the end of the largest message. */
    bytes[2] = 0xfd;
    bytes[LIMIT_MESSAGE_BYTES - 1] = 0xd9; /* whose length would be one byte too many */
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES, &length), -EMSGSIZE);
    free(bytes);
}

static void nesting_ends_at_its_limit(void)
{
    uint8_t bytes[LIMIT_MESSAGE_DEPTH + 2];
    size_t length = 0;
    memset(bytes, 0x91, sizeof bytes);
    bytes[LIMIT_MESSAGE_DEPTH] = 0x01;
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_DEPTH + 1, &length), 0);
    CHECK_EQ(length, LIMIT_MESSAGE_DEPTH + 1);
    bytes[LIMIT_MESSAGE_DEPTH] = 0x90; /* one level more, though empty */
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_DEPTH + 1, &length), -EBADMSG);
    bytes[LIMIT_MESSAGE_DEPTH] = 0x80;
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_DEPTH + 1, &length), -EBADMSG);
    bytes[LIMIT_MESSAGE_DEPTH] = 0x91;
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_DEPTH + 1, &length), -EBADMSG);
    for (size_t i = 0; i < LIMIT_MESSAGE_DEPTH; i++)
        bytes[i] = i % 2 ? 0x91 : 0x81; /* a map as a map's key is MessagePack */
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_DEPTH, &length), -EAGAIN);
}

static void nesting_bombs(void)
{
    uint8_t *bytes = malloc(LIMIT_MESSAGE_BYTES);
    size_t length;
    const uint8_t tags[] = {0x91, 0x9f, 0x81, 0x8f};
    for (size_t i = 0; i < sizeof tags; i++) {
        memset(bytes, tags[i], LIMIT_MESSAGE_BYTES);
        CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES, &length), -EBADMSG);
    }
    for (size_t i = 0; i + 3 <= LIMIT_MESSAGE_BYTES; i += 3)
        memcpy(bytes + i, "\xdc\x2f\xff", 3); /* each level 12,287 wide */
    CHECK_EQ(walk_copy(bytes, LIMIT_MESSAGE_BYTES / 3 * 3, &length), -EMSGSIZE);
    free(bytes);
}

/* Depth counts what is open, not what has been: many lists side by side. */
static void lists_side_by_side(void)
{
    uint8_t bytes[3 + 3 * 1000] = {0xdc, 1000 >> 8, 1000 & 0xff};
    for (size_t i = 0; i < 1000; i++)
        memcpy(bytes + 3 + 3 * i, "\x91\x91\x90", 3);
    check_object(bytes, sizeof bytes);
}

/* A message that trickles in byte by byte is walked a few times, not once a byte. */
static void bounds_keep_trickling_cheap(void)
{
    uint8_t *bytes = calloc(1, LIMIT_MESSAGE_BYTES);
    memcpy(bytes, "\xdc\x75\x30", 3);
    for (size_t i = 0; i < 30000; i++)
        memcpy(bytes + 3 + 2 * i, "\x91\x00", 2);
    size_t required = 1, length, walks = 0;
    for (size_t size = 1; size <= 60003; size++) {
        if (size < required)
            continue;
        walks++;
        int code = walk(bytes, size, &length);
        CHECK_EQ(code, size == 60003 ? 0 : -EAGAIN);
        required = length;
    }
    CHECK_EQ(required, 60003);
    CHECK(walks < 40);
    free(bytes);
}

static void random_bytes_never_read_beyond(void)
{
    uint64_t seed = random_seed();
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[64];
        size_t size = random_next(&seed) % sizeof bytes, length = 0;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)(random_next(&seed) % 3 ? random_next(&seed) : 0x90 + random_next(&seed) % 8);
        int code = walk_copy(bytes, size, &length);
        CHECK(code == 0 || code == -EAGAIN || code == -EBADMSG || code == -EMSGSIZE);
        CHECK(code != 0 || (length > 0 && length <= size));
        CHECK(code != -EAGAIN || length > size);
    }
}

static const struct test tests[] = {
    TEST(every_type_cut_at_every_byte),
    TEST(extension_types_are_refused),
    TEST(claims_beyond_the_message_are_refused_at_their_head),
    TEST(claims_add_up),
    TEST(the_largest_message),
    TEST(nesting_ends_at_its_limit),
    TEST(nesting_bombs),
    TEST(lists_side_by_side),
    TEST(bounds_keep_trickling_cheap),
    TEST(random_bytes_never_read_beyond),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

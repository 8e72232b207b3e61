/*
 * The walk over MessagePack's tokens, beside one that is written as its specification reads: both find the same ends,
 * and of every beginning of an accepted object the walk asks for more, and never for too much.
 */
#include "protocol/encoding.h"
#include "protocol/walk.h"
#include "tests/fuzz/fuzz.h"

/* Returns where the object at bytes[at] ends; -1 when the object is cut off, 0 when it is refused. */
static long object_end(const uint8_t *bytes, size_t size, size_t at, unsigned depth);

static long objects_end(const uint8_t *bytes, size_t size, size_t at, uint64_t count, unsigned depth)
{
    long end = (long)at;
    if (depth > LIMIT_MESSAGE_DEPTH)
        return 0;
    for (uint64_t i = 0; i < count && end > 0; i++)
        end = object_end(bytes, size, (size_t)end, depth);
    return end;
}

static long payload_end(size_t size, size_t at, uint64_t count)
{
    return count <= size - at ? (long)(at + count) : -1;
}

/* A length of `width` bytes at bytes[at]; false where it is cut off. */
static bool length_at(const uint8_t *bytes, size_t size, size_t at, size_t width, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < width && at + i < size; i++)
        *out = *out << 8 | bytes[at + i];
    return at + width <= size;
}

/* Returns where an object ends that states its length: bin, str, array or map. */
static long long_end(const uint8_t *bytes, size_t size, size_t at, unsigned depth)
{
    uint8_t first = bytes[at];
    size_t width =
        first >= 0xdc ? (size_t)(first % 2 ? 4 : 2) : (size_t)1 << (first >= 0xd9 ? first - 0xd9 : first - 0xc4);
    uint64_t length;
    if (!length_at(bytes, size, at + 1, width, &length))
        return -1;
    if (first < 0xdc)
        return payload_end(size, at + 1 + width, length);
    return objects_end(bytes, size, at + 1 + width, first >= 0xde ? 2 * length : length, depth + 1);
}

static long object_end(const uint8_t *bytes, size_t size, size_t at, unsigned depth)
{
    static const uint8_t numbers[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8}; /* bytes of 0xca to 0xd3 */
    if (at >= size)
        return -1;
    uint8_t first = bytes[at++];
    if (first < 0x80 || first >= 0xe0 || first == 0xc0 || first == 0xc2 || first == 0xc3)
        return (long)at;
    if (first < 0xa0)
        return objects_end(bytes, size, at, first < 0x90 ? 2 * (uint64_t)(first & 15) : first & 15, depth + 1);
    if (first < 0xc0)
        return payload_end(size, at, first & 31);
    if (first >= 0xca && first <= 0xd3)
        return payload_end(size, at, numbers[first - 0xca]);
    if ((first >= 0xc4 && first <= 0xc6) || first >= 0xd9)
        return long_end(bytes, size, at - 1, depth);
    return 0;
}

static void check_beginnings(const uint8_t *bytes, size_t length)
{
    for (size_t cut = 0; cut < length; cut += 1 + cut / 16) {
        uint8_t *copy = exact_copy(bytes, cut, false);
        size_t asked = 0;
        int code = walk(copy, cut, &asked);
        assert(code == -EAGAIN && asked > cut && asked <= length);
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > LIMIT_MESSAGE_BYTES + 64)
        return 0;
    uint8_t *copy = exact_copy(bytes, size, false);
    size_t length = 0;
    uint32_t msgid;
    int code = walk(copy, size, &length);
    long end = object_end(copy, size, 0, 0);
    assert(code == 0 || code == -EAGAIN || code == -EMSGSIZE || code == -EBADMSG);
    assert((code == 0) == (end > 0 && end <= (long)LIMIT_MESSAGE_BYTES));
    assert(code != 0 || (long)length == end);
    assert(code != -EBADMSG || end == 0);
    assert(code != -EAGAIN || (length > size && length <= LIMIT_MESSAGE_BYTES));
    message_find_msgid(copy, size, &msgid);
    if (code == 0)
        check_beginnings(copy, length);
    free(copy);
    return 0;
}

/* A peer's bytes decoded, read as every type: whatever was read can be sent, and is then read as the same. */
#include "protocol/encoding.h"
#include "protocol/walk.h"
#include "tests/fuzz/fuzz.h"

static const struct map_type *const types[] = {
#define X(NAME, ...) &msg_##NAME##_type,
    MAPS_LIST(X)
#undef X
};

/* Room for any of the structs. */
union any {
#define X(NAME, ...) struct msg_##NAME NAME;
    MAPS_LIST(X)
#undef X
};

static void check_error(int code, const struct error *error)
{
    if (code == 0)
        return;
    assert(error->code == code);
    assert(error->message[0] != '\0');
    for (const char *at = error->message; *at; at++)
        assert(*at >= ' ' && *at <= '~'); /* it is sent on, as text */
}

static void check_again(const struct map_type *type, const union any *map)
{
    static uint8_t bytes[2 * LIMIT_MESSAGE_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    struct message message;
    struct error error;
    union any again;
    memset(&again, 0, type->size_bytes);
    int code = encode_result(&out, 1, type, map);
    assert(code == 0);
    code = message_open(&message, bytes, out.size, &error);
    assert(code == 0);
    code = message_read(&message, type, &again, &error);
    assert(code == 0);
    assert(memcmp(&again, map, type->size_bytes) == 0);
    message_close(&message);
}

static void check_message(const uint8_t *bytes, size_t size)
{
    struct message message;
    struct error error = {0};
    int code = message_open(&message, bytes, size, &error);
    assert(code == 0 || code == -EBADMSG);
    check_error(code, &error);
    if (code == 0 && message.kind != MESSAGE_NOTIFICATION)
        assert(message.has_msgid);
    for (size_t i = 0; code == 0 && i < sizeof types / sizeof types[0]; i++) {
        union any map;
        memset(&map, 0, types[i]->size_bytes); /* the largest has a hundred times as much as most */
        int read = message_read(&message, types[i], &map, &error);
        assert(read == 0 || read == -EINVAL);
        check_error(read, &error);
        if (read == 0)
            check_again(types[i], &map);
        read = message_read_item(&message, "operations", 0, types[i], &map, &error);
        assert(read == 0 || read == 1 || read == -EINVAL);
        check_error(read < 0 ? read : 0, &error);
    }
    message_close(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t length = 0;
    if (walk(bytes, size, &length))
        return 0;
    uint8_t *copy = exact_copy(bytes, length, false);
    check_message(copy, length);
    free(copy);
    return 0;
}

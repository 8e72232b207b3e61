#include "objects.h"

#include <errno.h>
#include <msgpack.h>
#include <msgpack/unpack_define.h>
#include <stdlib.h>

#define KEPT_OBJECTS 1024 /* more than nearly all messages have */

/* Makes room for another object. Returns 0 or msgpack-c's error. */
static int objects_grow(struct objects *objects)
{
    const uint32_t capacity = objects->capacity ? 2 * objects->capacity : KEPT_OBJECTS;
    struct object *list = realloc(objects->list, capacity * sizeof *list);
    if (!list)
        return MSGPACK_UNPACK_NOMEM_ERROR;
    objects->list = list;
    objects->capacity = capacity;
    return 0;
}

static inline int objects_add(struct objects *objects, struct object object, uint32_t *place)
{
    const int code = objects->count == objects->capacity ? objects_grow(objects) : 0;
    if (code)
        return code;
    *place = objects->count++;
    objects->list[*place] = object;
    return 0;
}

/*
 * msgpack-c's parser, made for this list: it calls a function for each object, inline, and hands on the object's place.
 * The library's own instance makes a tree, whose parts are copied several times.
 */
#define PARSED(NAME, TYPE, OBJECT)                                                       \
    static inline int parsed_##NAME(struct objects **objects, TYPE value, uint32_t *out) \
    {                                                                                    \
        return objects_add(*objects, (struct object)OBJECT, out);                        \
    }
#define UNSIGNED                                  \
    {                                             \
        .type = OBJECT_POSITIVE, .via.u64 = value \
    }
#define SIGNED                                                                  \
    {                                                                           \
        .type = value < 0 ? OBJECT_NEGATIVE : OBJECT_POSITIVE, .via.i64 = value \
    }
#define FLOATING                               \
    {                                          \
        .type = OBJECT_FLOAT, .via.f64 = value \
    }
PARSED(uint8, uint8_t, UNSIGNED)
PARSED(uint16, uint16_t, UNSIGNED)
PARSED(uint32, uint32_t, UNSIGNED)
PARSED(uint64, uint64_t, UNSIGNED)
PARSED(int8, int8_t, SIGNED)
PARSED(int16, int16_t, SIGNED)
PARSED(int32, int32_t, SIGNED)
PARSED(int64, int64_t, SIGNED)
PARSED(float, float, FLOATING)
PARSED(double, double, FLOATING)

static inline uint32_t parsed_root(struct objects **objects)
{
    (void)objects;
    return 0;
}

static inline int parsed_nil(struct objects **objects, uint32_t *out)
{
    return objects_add(*objects, (struct object){.type = OBJECT_NIL}, out);
}

static inline int parsed_false(struct objects **objects, uint32_t *out)
{
    return objects_add(*objects, (struct object){.type = OBJECT_BOOLEAN}, out);
}

static inline int parsed_true(struct objects **objects, uint32_t *out)
{
    return objects_add(*objects, (struct object){.type = OBJECT_BOOLEAN}, out);
}

static inline int parsed_str(struct objects **objects, const char *data, const char *bytes, unsigned size,
                             uint32_t *out)
{
    (void)data;
    return objects_add(*objects, (struct object){OBJECT_TEXT, size, {.bytes = bytes}}, out);
}

static inline int parsed_bin(struct objects **objects, const char *data, const char *bytes, unsigned size,
                             uint32_t *out)
{
    (void)data;
    return objects_add(*objects, (struct object){OBJECT_BINARY, size, {.bytes = bytes}}, out);
}

/* walk() has refused extension types. */
static inline int parsed_ext(struct objects **objects, const char *data, const char *bytes, unsigned size,
                             uint32_t *out)
{
    (void)objects, (void)data, (void)bytes, (void)size, (void)out;
    return MSGPACK_UNPACK_PARSE_ERROR;
}

static inline int parsed_array(struct objects **objects, unsigned items, uint32_t *out)
{
    return objects_add(*objects, (struct object){OBJECT_LIST, items, {.count = 1}}, out);
}

static inline int parsed_map(struct objects **objects, unsigned pairs, uint32_t *out)
{
    return objects_add(*objects, (struct object){OBJECT_MAP, pairs, {.count = 1}}, out);
}

/* The container at that place has another item, which is all that follows. */
static inline int parsed_array_item(struct objects **objects, const uint32_t *container, uint32_t item)
{
    (void)item;
    (*objects)->list[*container].via.count = (*objects)->count - *container;
    return 0;
}

static inline int parsed_map_item(struct objects **objects, const uint32_t *container, uint32_t key, uint32_t value)
{
    (void)key;
    return parsed_array_item(objects, container, value);
}

#define msgpack_unpack_struct(NAME)     struct parser##NAME
#define msgpack_unpack_func(TYPE, NAME) static inline TYPE parser##NAME
#define msgpack_unpack_callback(NAME)   parsed##NAME
#define msgpack_unpack_object           uint32_t
#define msgpack_unpack_user             struct objects *
#include <msgpack/unpack_template.h>

int objects_parse(struct objects *objects, const uint8_t *bytes, size_t size)
{
    struct parser_context parser;
    size_t used = 0;
    objects->count = 0;
    parser.user = objects;
    parser_init(&parser);
    const int code = parser_execute(&parser, (const char *)bytes, size, &used);
    if (code == MSGPACK_UNPACK_NOMEM_ERROR)
        return -ENOMEM;
    return code <= 0 || used != size ? -EBADMSG : 0;
}

void objects_drop(struct objects *objects)
{
    objects->count = 0;
    if (objects->capacity > KEPT_OBJECTS)
        objects_free(objects);
}

void objects_free(struct objects *objects)
{
    free(objects->list);
    *objects = (struct objects){.list = NULL};
}

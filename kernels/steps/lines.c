/*
 * Each dtype has loops over elements that lie one after another, from either end, which compilers make vectors of.
 * Other elements are moved together first, or apart afterwards.
 */
#include "kernels/steps/lines.h"

#include "kernels/cpu/generic/simd.h"

/* Words of one size, from where they lie apart to where they lie together, and back. */
#define GATHER(WORD)                     \
    for (uint64_t i = 0; i < count; i++) \
    memcpy(words + i * sizeof(WORD), from + (int64_t)i * stride, sizeof(WORD))
#define SCATTER(WORD)                    \
    for (uint64_t i = 0; i < count; i++) \
    memcpy(to + (int64_t)i * stride, words + i * sizeof(WORD), sizeof(WORD))
#define MOVE(BYTES, LOOP)                     \
    do {                                      \
        if ((BYTES) == sizeof(uint8_t))       \
            LOOP(uint8_t);                    \
        else if ((BYTES) == sizeof(uint16_t)) \
            LOOP(uint16_t);                   \
        else if ((BYTES) == sizeof(uint32_t)) \
            LOOP(uint32_t);                   \
        else                                  \
            LOOP(uint64_t);                   \
    } while (0)

static void gather(uint32_t bytes, const char *from, int64_t stride, uint64_t count, char *restrict words)
{
    MOVE(bytes, GATHER);
}

static void scatter(uint32_t bytes, const char *restrict words, uint64_t count, char *to, int64_t stride)
{
    MOVE(bytes, SCATTER);
}

static inline bool is_close(uint32_t bytes, int64_t stride)
{
    return stride == (int64_t)bytes || stride == -(int64_t)bytes;
}

/* f32 as f64 and back, which are most lines: compilers make several instructions of a conversion that is one (simd.h).
 */
static void widen(const char *from, uint64_t count, double *restrict to)
{
    uint64_t i = 0;
    for (; i + F64_LANES <= count; i += F64_LANES)
        f64_store(to + i, f64_load_f32(from + i * sizeof(float)));
    for (; i < count; i++)
        to[i] = step_get_f64(SCAND_DTYPE_F32, from + i * sizeof(float));
}

static void narrow(const double *restrict from, uint64_t count, char *to)
{
    uint64_t i = 0;
    for (; i + F64_LANES <= count; i += F64_LANES)
        f64_store_f32(to + i * sizeof(float), f64_one_nan(f64_load(from + i)));
    for (; i < count; i++)
        step_put_f64(SCAND_DTYPE_F32, from[i], to + i * sizeof(float));
}

/* The case of a dtype: element i is `place` bytes further. */
#define CODED_AT(STRIDE, COMPUTE)                                \
    for (uint64_t i = 0; stride == (STRIDE) && i < count; i++) { \
        const int64_t place = (int64_t)i * (STRIDE);             \
        COMPUTE;                                                 \
    }
#define CODED(NAME, BYTES, CLASS, WANTED, COMPUTE) \
    case SCAND_DTYPE_##NAME:                       \
        if (!(WANTED(SCAND_CLASS_##CLASS)))        \
            break;                                 \
        CODED_AT(BYTES, COMPUTE)                   \
        CODED_AT(-BYTES, COMPUTE)                  \
        break;

#define CONVERT_F32(HOW)                                       \
    if (dtype == SCAND_DTYPE_F32 && stride == sizeof(float)) { \
        HOW(from, count, to);                                  \
        return;                                                \
    }

/* INSTEAD is done in place of the loops for what it returns from. */
#define DEFINE_LOAD(NAME, TYPE, CASES, INSTEAD)                                                                        \
    static void decode_##NAME(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count,                \
                              TYPE *restrict to)                                                                       \
    {                                                                                                                  \
        INSTEAD                                                                                                        \
        LINE_SWITCH(dtype, CASES)                                                                                      \
    }                                                                                                                  \
    void line_load_##NAME(enum scand_dtype dtype, const char *from, int64_t stride, uint64_t count, TYPE *restrict to) \
    {                                                                                                                  \
        const uint32_t bytes = codec_bytes(dtype);                                                                     \
        char words[LINE_GROUP * sizeof(uint64_t)];                                                                     \
        if (is_close(bytes, stride)) {                                                                                 \
            decode_##NAME(dtype, from, stride, count, to);                                                             \
            return;                                                                                                    \
        }                                                                                                              \
        for (uint64_t at = 0, n; at < count; at += n) {                                                                \
            n = count - at < LINE_GROUP ? count - at : LINE_GROUP;                                                     \
            gather(bytes, from + (int64_t)at * stride, stride, n, words);                                              \
            decode_##NAME(dtype, words, bytes, n, to + at);                                                            \
        }                                                                                                              \
    }
#define DEFINE_STORE(NAME, TYPE, CASES, INSTEAD)                                                           \
    static void encode_##NAME(enum scand_dtype dtype, const TYPE *restrict from, uint64_t count, char *to, \
                              int64_t stride)                                                              \
    {                                                                                                      \
        INSTEAD                                                                                            \
        LINE_SWITCH(dtype, CASES)                                                                          \
    }                                                                                                      \
    void line_store_##NAME(enum scand_dtype dtype, const TYPE *restrict from, uint64_t count, char *to,    \
                           int64_t stride)                                                                 \
    {                                                                                                      \
        const uint32_t bytes = codec_bytes(dtype);                                                         \
        char words[LINE_GROUP * sizeof(uint64_t)];                                                         \
        if (is_close(bytes, stride)) {                                                                     \
            encode_##NAME(dtype, from, count, to, stride);                                                 \
            return;                                                                                        \
        }                                                                                                  \
        for (uint64_t at = 0, n; at < count; at += n) {                                                    \
            n = count - at < LINE_GROUP ? count - at : LINE_GROUP;                                         \
            encode_##NAME(dtype, from + at, n, words, bytes);                                              \
            scatter(bytes, words, n, to + (int64_t)at * stride, stride);                                   \
        }                                                                                                  \
    }

#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_FLOAT, to[i] = step_get_f32(SCAND_DTYPE_##NAME, from + place))
DEFINE_LOAD(f32, float, X, )
#undef X
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_FLOAT, to[i] = step_get_f64(SCAND_DTYPE_##NAME, from + place))
DEFINE_LOAD(f64, double, X, CONVERT_F32(widen))
#undef X
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_INTEGER, to[i] = codec_decode_integer(SCAND_DTYPE_##NAME, from + place))
DEFINE_LOAD(integers, uint64_t, X, )
#undef X
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_FLOAT, step_put_f32(SCAND_DTYPE_##NAME, from[i], to + place))
DEFINE_STORE(f32, float, X, )
#undef X
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_FLOAT, step_put_f64(SCAND_DTYPE_##NAME, from[i], to + place))
DEFINE_STORE(f64, double, X, CONVERT_F32(narrow))
#undef X
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    CODED(NAME, BYTES, CLASS, LINE_IS_INTEGER, codec_encode_integer(SCAND_DTYPE_##NAME, from[i], to + place))
DEFINE_STORE(integers, uint64_t, X, )
#undef X

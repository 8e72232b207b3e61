/*
 * The codecs against what they are meant to be: values that can be worked out by hand, every 16-bit number, and, for
 * encoding, that no neighbour of the result is nearer.
 */
#include <math.h>

#include "kernels/order1/dtypes.h"
#include "tests/check.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))

static uint64_t seed;

/* Returns any f32 but a NaN, of all exponents. */
static float any_float(uint64_t *random)
{
    float x = codec_f32_of_bits((uint32_t)random_next(random));
    return isnan(x) ? 0.0f : x;
}

static double f16_by_hand(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static void f16_decodes(void)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        double expected = f16_by_hand((uint16_t)bits);
        float found = codec_decode_f16((uint16_t)bits);
        REQUIRE(isnan(expected) ? isnan(found) : (double)found == expected && !signbit(found) == !signbit(expected));
    }
}

/* True when `found` is the nearest to x of the values before and after it, or of two equally near the even one. */
static bool nearest(double x, double found, double before, double after, bool even)
{
    double error = fabs(found - x), other = fmin(fabs(before - x), fabs(after - x));
    return error < other || (error == other && even);
}

static void f16_encodes(void)
{
    uint64_t random = seed;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float x = codec_decode_f16((uint16_t)bits);
        CHECK_EQ(codec_encode_f16(x), isnan(x) ? 0x7e00 : bits);
    }
    for (int i = 0; i < 1000000; i++) {
        float x = fabsf(i % 2 ? any_float(&random) : ldexpf((float)(random_next(&random) >> 40), -(int)(i % 60)));
        uint16_t found = codec_encode_f16(x);
        if (x >= 65520.0f)
            CHECK_EQ(found, 0x7c00);
        else if (found > 0)
            REQUIRE(nearest((double)x, f16_by_hand(found), f16_by_hand(found - 1),
                            found < 0x7bff ? f16_by_hand(found + 1) : 65536.0, found % 2 == 0));
        else
            REQUIRE(x <= 0x1p-25f);
        CHECK_EQ(codec_encode_f16(-x), found | 0x8000);
    }
    CHECK_EQ(codec_encode_f16(-NAN), 0x7e00);
}

static void bf16_both_ways(void)
{
    uint64_t random = seed;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float x = codec_decode_bf16((uint16_t)bits);
        CHECK_EQ(codec_bits(x), bits << 16);
        CHECK_EQ(codec_encode_bf16(x), isnan(x) ? 0x7fc0 : bits);
    }
    for (int i = 0; i < 100000; i++) {
        float x = any_float(&random);
        uint16_t found = codec_encode_bf16(x);
        uint32_t cut = codec_bits(x) & 0xffff, up = cut > 0x8000 || (cut == 0x8000 && (codec_bits(x) >> 16) % 2);
        CHECK_EQ(found, (codec_bits(x) >> 16) + up);
    }
    CHECK_EQ(codec_encode_bf16(3.4028234e38f), 0x7f80);
}

static void integers_of_files(void)
{
    static const struct {
        float x;
        int32_t i16, i32;
    } list[] = {
        {0.5f, 0, 0},
        {1.5f, 2, 2},
        {2.5f, 2, 2},
        {-0.5f, 0, 0},
        {-1.5f, -2, -2},
        {32766.5f, 32766, 32766},
        {32767.5f, 32767, 32768},
        {-32768.5f, -32768, -32768},
        {-40000.0f, -32768, -40000},
        {0x1p31f, 32767, INT32_MAX},
        {2147483520.0f, 32767, 2147483520},
        {-0x1p31f, -32768, INT32_MIN},
        {INFINITY, 32767, INT32_MAX},
        {-INFINITY, -32768, INT32_MIN},
        {NAN, 0, 0},
        {8388607.5f, 32767, 8388608},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        CHECK_EQ((int16_t)codec_encoded_f32(SCAND_DTYPE_I16, list[i].x), list[i].i16);
        CHECK_EQ(codec_encode_i32(list[i].x), list[i].i32);
    }
    const unsigned char bytes[] = {0xff, 0xfe, 0x01, 0x02};
    CHECK(codec_decode_f32(SCAND_DTYPE_I16BE, bytes) == -2.0f);
    CHECK(codec_decode_f32(SCAND_DTYPE_I16BE, bytes + 2) == 258.0f);
    CHECK(codec_decode_f64(SCAND_DTYPE_I32BE, bytes) == -130814.0);
    CHECK(codec_decode_f64(SCAND_DTYPE_I32LE, bytes) == 33685247.0);
}

/* Integers of one and two bytes, signed and not: what is in range stays, halves go to even numbers, the rest saturates.
 */
static void small_integers(void)
{
    static const struct {
        enum scand_dtype dtype;
        float x, written;
    } list[] = {
        {SCAND_DTYPE_I8, -128, -128},       {SCAND_DTYPE_I8, 127, 127},
        {SCAND_DTYPE_I8, -1.5f, -2},        {SCAND_DTYPE_I8, 126.5f, 126},
        {SCAND_DTYPE_I8, 127.5f, 127},      {SCAND_DTYPE_I8, -INFINITY, -128},
        {SCAND_DTYPE_I8, NAN, 0},           {SCAND_DTYPE_U8, -3, 0},
        {SCAND_DTYPE_U8, 254.5f, 254},      {SCAND_DTYPE_U8, 255, 255},
        {SCAND_DTYPE_U8, 1e30f, 255},       {SCAND_DTYPE_U8, -NAN, 0},
        {SCAND_DTYPE_I16, -32768, -32768},  {SCAND_DTYPE_I16, 40000, 32767},
        {SCAND_DTYPE_U16, 65535, 65535},    {SCAND_DTYPE_U16, 32768, 32768},
        {SCAND_DTYPE_U16, 65534.5f, 65534}, {SCAND_DTYPE_U16, INFINITY, 65535},
        {SCAND_DTYPE_U16BE, -0.4f, 0},      {SCAND_DTYPE_U16BE, 258, 258},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        unsigned char bytes[5] = {0xee, 0xee, 0xee, 0xee, 0xee};
        codec_encode_f32(list[i].dtype, list[i].x, bytes);
        CHECK(codec_decode_f32(list[i].dtype, bytes) == list[i].written);
        CHECK_EQ(bytes[codec_bytes(list[i].dtype)], 0xee);
    }
    for (unsigned i = 0; i < 256; i++) {
        const unsigned char byte = (unsigned char)i;
        CHECK(codec_decode_f32(SCAND_DTYPE_I8, &byte) == (float)(int8_t)byte);
        CHECK(codec_decode_f32(SCAND_DTYPE_U8, &byte) == (float)i);
    }
}

/* All of them, which f32 has no digits for. */
static void long_integers_of_files(void)
{
    static const struct {
        double x;
        int32_t written;
    } list[] = {
        {16777217.0, 16777217},     {-2147483647.0, -2147483647}, {2147483646.5, 2147483646},
        {2147483645.5, 2147483646}, {2147483646.6, INT32_MAX},    {0x1p31, INT32_MAX},
        {-0x1p31 - 0.4, INT32_MIN}, {-2147483647.5, INT32_MIN},   {-2147483646.5, -2147483646},
        {1e300, INT32_MAX},         {-1e300, INT32_MIN},          {-NAN, 0},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        unsigned char bytes[5] = {0, 0, 0, 0, 0xee};
        codec_encode_f64(SCAND_DTYPE_I32BE, list[i].x, bytes);
        CHECK_EQ((int32_t)codec_ordered32(SCAND_DTYPE_I32BE, codec_load32(bytes)), list[i].written);
        CHECK(codec_decode_f64(SCAND_DTYPE_I32BE, bytes) == (double)list[i].written);
        CHECK_EQ(bytes[4], 0xee);
    }
}

static double ibm_by_hand(uint32_t bits)
{
    double magnitude = ldexp((double)(bits & 0xffffff), 4 * ((int)(bits >> 24 & 127) - 64) - 24);
    return bits >> 31 ? -magnitude : magnitude;
}

static void ibm_decodes(void)
{
    uint64_t random = seed;
    CHECK(codec_decode_ibm32(0xc276a000) == -118.625f);
    CHECK(codec_decode_ibm32(0x41100000) == 1.0f);
    CHECK(codec_decode_ibm32(0x00000000) == 0.0f);
    CHECK(codec_decode_ibm32(0x7fffffff) == INFINITY && codec_decode_ibm32(0xffffffff) == -INFINITY);
    CHECK(codec_decode_ibm32(0x42000001) == 0x1p-16f); /* a number without the leading digit that it ought to have */
    CHECK_EQ(codec_bits(codec_decode_ibm32(0x2010000d)), 0x00020002); /* a denormal, rounded once */
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)random_next(&random);
        CHECK_EQ(codec_bits(codec_decode_ibm32(bits)), codec_bits((float)ibm_by_hand(bits)));
    }
}

static void ibm_encodes(void)
{
    uint64_t random = seed;
    CHECK_EQ(codec_encode_ibm32(-118.625f), 0xc276a000);
    CHECK_EQ(codec_encode_ibm32(1.0f), 0x41100000);
    CHECK_EQ(codec_encode_ibm32(0.0f), 0);
    CHECK_EQ(codec_encode_ibm32(-0.0f), 0x80000000);
    CHECK_EQ(codec_encode_ibm32(NAN), 0);
    CHECK_EQ(codec_encode_ibm32(INFINITY), 0x7fffffff);
    CHECK_EQ(codec_encode_ibm32(-INFINITY), 0xffffffff);
    CHECK_EQ(codec_encode_ibm32(codec_f32_of_bits(0x3f7fffff)), 0x40ffffff);
    CHECK_EQ(codec_encode_ibm32(codec_f32_of_bits(0x3fffffff)), 0x41200000); /* 2 - 2^-23 has no 24 bits there */
    for (int i = 0; i < 1000000; i++) {
        float x = fabsf(any_float(&random));
        if (isinf(x) || x == 0)
            continue;
        uint32_t found = codec_encode_ibm32(x);
        CHECK((found & 0xffffff) >= 0x100000); /* a leading digit */
        uint32_t before = (found & 0xffffff) == 0x100000 ? found - (1 << 24) + 0xefffff : found - 1;
        uint32_t after = (found & 0xffffff) == 0xffffff ? found + (1 << 24) - 0xefffff : found + 1;
        REQUIRE(nearest((double)x, ibm_by_hand(found), ibm_by_hand(before), ibm_by_hand(after), found % 2 == 0));
        CHECK_EQ(codec_encode_ibm32(-x), found | 0x80000000);
    }
}

/* Encoded samples are in the byte order of their form, and take no more bytes than the form has. */
static void bytes_of_files(void)
{
    static const struct {
        enum scand_dtype dtype;
        unsigned char bytes[5];
    } list[] = {
        {SCAND_DTYPE_F32BE, {0xc0, 0x00, 0x00, 0x00, 0xee}},   {SCAND_DTYPE_I16BE, {0xff, 0xfe, 0xee, 0xee, 0xee}},
        {SCAND_DTYPE_IBM32, {0xc1, 0x20, 0x00, 0x00, 0xee}},   {SCAND_DTYPE_F16, {0x00, 0xc0, 0xee, 0xee, 0xee}},
        {SCAND_DTYPE_BF16, {0x00, 0xc0, 0xee, 0xee, 0xee}},    {SCAND_DTYPE_F32, {0x00, 0x00, 0x00, 0xc0, 0xee}},
        {SCAND_DTYPE_I8, {0xfe, 0xee, 0xee, 0xee, 0xee}},      {SCAND_DTYPE_I16, {0xfe, 0xff, 0xee, 0xee, 0xee}},
        {SCAND_DTYPE_IBM32LE, {0x00, 0x00, 0x20, 0xc1, 0xee}},
    };
    for (size_t i = 0; i < COUNT(list); i++) {
        unsigned char bytes[5] = {0xee, 0xee, 0xee, 0xee, 0xee};
        codec_encode_f32(list[i].dtype, -2.0f, bytes);
        CHECK(memcmp(bytes, list[i].bytes, sizeof(bytes)) == 0);
        CHECK(codec_decode_f32(list[i].dtype, bytes) == -2.0f);
    }
    unsigned char bytes[4];
    codec_encode_f32(SCAND_DTYPE_F32BE, codec_f32_of_bits(0xff812345), bytes);
    CHECK(memcmp(bytes, "\x7f\xc0\x00\x00", 4) == 0);
    unsigned char longer[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0xee};
    codec_encode_f64(SCAND_DTYPE_F64BE, -2.0, longer);
    CHECK(memcmp(longer, "\xc0\x00\x00\x00\x00\x00\x00\x00\xee", 9) == 0);
    CHECK(codec_decode_f64(SCAND_DTYPE_F64BE, longer) == -2.0);
    codec_encode_f64(SCAND_DTYPE_F64BE, -NAN, longer);
    CHECK(memcmp(longer, "\x7f\xf8\x00\x00\x00\x00\x00\x00\xee", 9) == 0);
    codec_encode_f64(SCAND_DTYPE_I32LE, -2.0, bytes);
    CHECK(memcmp(bytes, "\xfe\xff\xff\xff", 4) == 0);
}

static void integers(void)
{
    unsigned char bytes[9] = {0xff, 0xff, 0xff, 0xff, 0xee, 0xee, 0xee, 0xee, 0xee};
    CHECK_EQ(codec_decode_integer(SCAND_DTYPE_I32, bytes), -1);
    CHECK_EQ(codec_decode_integer(SCAND_DTYPE_U32, bytes), 0xffffffff);
    codec_encode_integer(SCAND_DTYPE_U32, UINT64_C(0x123456789abcdef0), bytes);
    CHECK_EQ(codec_decode_integer(SCAND_DTYPE_U32, bytes), 0x9abcdef0);
    CHECK_EQ(bytes[4], 0xee);
    codec_encode_integer(SCAND_DTYPE_I64, UINT64_C(0x923456789abcdef0), bytes);
    CHECK(codec_decode_integer(SCAND_DTYPE_U64, bytes) == UINT64_C(0x923456789abcdef0));
    CHECK_EQ(bytes[8], 0xee);
    codec_encode_integer(SCAND_DTYPE_I64BE, (uint64_t)-2, bytes);
    CHECK(memcmp(bytes, "\xff\xff\xff\xff\xff\xff\xff\xfe\xee", 9) == 0);
    CHECK_EQ((int64_t)codec_decode_integer(SCAND_DTYPE_I64BE, bytes), -2);
    CHECK(codec_decode_integer(SCAND_DTYPE_U64BE, bytes) == UINT64_MAX - 1);
    codec_encode_integer(SCAND_DTYPE_U32BE, UINT64_C(0x1234567ff), bytes);
    CHECK(memcmp(bytes, "\x23\x45\x67\xff\xff", 5) == 0);
    CHECK_EQ(codec_decode_integer(SCAND_DTYPE_U32BE, bytes), 0x234567ff);
}

static const struct test tests[] = {
    TEST(f16_decodes), TEST(f16_encodes),    TEST(bf16_both_ways), TEST(integers_of_files),      TEST(ibm_decodes),
    TEST(ibm_encodes), TEST(bytes_of_files), TEST(integers),       TEST(long_integers_of_files), TEST(small_integers),
    TEST_END,
};

int main(int argc, char **argv)
{
    seed = random_seed();
    return test_main(argc, argv, tests);
}

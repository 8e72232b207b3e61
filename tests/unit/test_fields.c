/* All errors in fields. Each case is a request whose one map is given; reading fails with exactly these words. */
#include <errno.h>

#include "tests/unit/bytes.h"

static void check_field(enum method method, const struct map_type *type, const char *map, size_t size,
                        const char *expected)
{
    struct bytes bytes = {.size = 0};
    struct message message;
    struct error error = {0};
    uint8_t *copy;
    _Alignas(uint64_t) uint8_t out[32768], untouched[sizeof out];
    PUT(&bytes, "\x94\x00\x07");
    put_str(&bytes, method_name(method));
    PUT(&bytes, "\x91");
    put(&bytes, map, size);
    memset(out, 0x5a, sizeof out);
    memcpy(untouched, out, sizeof out);
    REQUIRE(open_copy(&message, bytes.bytes, bytes.size, &copy, &error) == 0);
    int code = message_read(&message, type, out, &error);
    if (!expected) {
        CHECK_EQ(code, 0);
    } else {
        CHECK_EQ(code, -EINVAL);
        CHECK_EQ(error.code, -EINVAL);
        CHECK(memcmp(out, untouched, sizeof out) == 0);
        if (strcmp(error.message, expected) != 0) {
            fprintf(stderr, "got:      %s\nexpected: %s\n", error.message, expected);
            CHECK(!"the message is as expected");
        }
    }
    message_close(&message);
    free(copy);
}

// clang-format off
#define FIELD(METHOD, TYPE, LITERAL, EXPECTED)                                                                         \
    check_field(METHOD_##METHOD, &msg_##TYPE##_type, LITERAL, sizeof(LITERAL) - 1, EXPECTED)

#define ALL_OPERATIONS                                                                                                 \
    "scan, reduce, upsample, block-sum, convolve, correlate, diff, dot, demean, map, triangle, box, stack, index-add, " \
    "pick"

static void numbers(void)
{
    FIELD(job_cancel, job_id, "\x81\xa3job\x05", NULL);
    FIELD(job_cancel, job_id, "\x81\xa3job\xce\xff\xff\xff\xff", NULL);
    FIELD(job_cancel, job_id, "\x81\xa3job\xcf\x00\x00\x00\x01\x00\x00\x00\x00",
          "job.cancel: field \"job\" is 4294967296; allowed: 0 to 4294967295");
    FIELD(job_cancel, job_id, "\x81\xa3job\xff", "job.cancel: field \"job\" is -1; allowed: 0 to 4294967295");
    FIELD(job_cancel, job_id, "\x81\xa3job\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
          "job.cancel: field \"job\" is -9223372036854775808; allowed: 0 to 4294967295");
    FIELD(job_cancel, job_id, "\x81\xa3job\xd2\x00\x00\x00\x05", NULL); /* signed, and not negative */
    FIELD(job_cancel, job_id, "\x81\xa3job\xc0", "job.cancel: field \"job\" is nil; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\xc3", "job.cancel: field \"job\" is a boolean; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\xa1"
                              "5",
          "job.cancel: field \"job\" is text; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\xc4\x01"
                              "5",
          "job.cancel: field \"job\" is binary data; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\xca\x40\xa0\x00\x00",
          "job.cancel: field \"job\" is a floating-point number; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\x91\x05", "job.cancel: field \"job\" is a list; expected: an integer");
    FIELD(job_cancel, job_id, "\x81\xa3job\x81\x05\x05", "job.cancel: field \"job\" is a map; expected: an integer");
    FIELD(buffer_release, buffer_id, "\x81\xa6"
                                     "buffer\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
          NULL);
}

/* A number that can be taken leaves the first field that is missing. */
static void floating_numbers(void)
{
#define COEFFICIENT "\x81\xab" "coefficient"
    static const char missing[] = "job.submit: field \"input\" is missing";
    static const char beyond[] = "job.submit: field \"coefficient\" is an integer beyond 2^53, which a double may not "
                                 "hold; give a floating-point number";
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xcb\x3f\xef\xff\xff\xff\xff\xff\xff", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xca\x7f\x80\x00\x00", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\x02", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xff", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xcf\x00\x20\x00\x00\x00\x00\x00\x00", missing);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xcf\x00\x20\x00\x00\x00\x00\x00\x01", beyond);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xd3\xff\xdf\xff\xff\xff\xff\xff\xff", beyond);
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xc0",
          "job.submit: field \"coefficient\" is nil; expected: a number");
    FIELD(job_submit, job_submit_params, COEFFICIENT "\xa1" "2",
          "job.submit: field \"coefficient\" is text; expected: a number");
    FIELD(job_submit, job_submit_params, "\x81\xac" "coefficients\x80",
          "job.submit: field \"coefficients.buffer\" is missing");
}

static void keys(void)
{
    FIELD(job_cancel, job_id, "\x80", "job.cancel: field \"job\" is missing");
    FIELD(job_cancel, job_id, "\x81\xa3jab\x05", "job.cancel: field \"job\" is missing");
    FIELD(job_cancel, job_id, "\x81\xa4jobs\x05", "job.cancel: field \"job\" is missing");
    FIELD(job_cancel, job_id, "\x82\xa3job\x05\xa3job\x05", "job.cancel: field \"job\" is there twice");
    FIELD(job_cancel, job_id, "\x82\xa3job\x05\x01\x05",
          "job.cancel: the name of a field is an integer; expected: text");
    FIELD(job_cancel, job_id, "\x82\xa3job\x05\x80\x05", "job.cancel: the name of a field is a map; expected: text");
    FIELD(job_cancel, job_id, "\x81\xc4\x03job\x05",
          "job.cancel: the name of a field is binary data; expected: text");
    /* Fields of a later version are ignored, whatever they hold. */
    FIELD(job_cancel, job_id, "\x84\xa3new\x92\xc0\x81\x01\x02\xa3job\x05\xa0\xc0\xa3new\xc0", NULL);
    FIELD(server_ping, nothing, "\x81\xa3new\x05", NULL);
}

static void texts(void)
{
#define VERSIONS "\x83\xabversion_min\x01\xabversion_max\x01\xa6" \
                 "client"
    FIELD(hello, hello_params, VERSIONS "\xa0", NULL);
    FIELD(hello, hello_params, VERSIONS "\xa4\xc3\xa4\xff\xfe", NULL); /* any bytes but zero */
    FIELD(hello, hello_params, VERSIONS "\xa3x\0y", "hello: field \"client\" contains a zero byte");
    FIELD(hello, hello_params, VERSIONS "\x05", "hello: field \"client\" is an integer; expected: text");
    FIELD(hello, hello_params, VERSIONS "\xc4\x01x", "hello: field \"client\" is binary data; expected: text");
    FIELD(hello, hello_params, VERSIONS "\xd9\x3f" "123456789012345678901234567890123456789012345678901234567890123",
          NULL);
    FIELD(hello, hello_params, VERSIONS "\xd9\x40" "1234567890123456789012345678901234567890123456789012345678901234",
          "hello: field \"client\" has 64 bytes; allowed: 0 to 63");
}

static void binary_data(void)
{
#define HANDLE "\x82\xa4size\x05\xa6handle"
    FIELD(buffer_import_device, buffer_import_device_params, HANDLE "\xc4\x01\x00", NULL);
    FIELD(buffer_import_device, buffer_import_device_params,
          HANDLE "\xc5\x00\x40" "1234567890123456789012345678901234567890123456789012345678901234", NULL);
    FIELD(buffer_import_device, buffer_import_device_params, HANDLE "\xc4\x00",
          "buffer.import_device: field \"handle\" has 0 bytes; allowed: 1 to 64");
    FIELD(buffer_import_device, buffer_import_device_params,
          HANDLE "\xc4\x41" "12345678901234567890123456789012345678901234567890123456789012345",
          "buffer.import_device: field \"handle\" has 65 bytes; allowed: 1 to 64");
    FIELD(buffer_import_device, buffer_import_device_params, HANDLE "\xa1x",
          "buffer.import_device: field \"handle\" is text; expected: binary data");
    FIELD(buffer_import_device, buffer_import_device_params, HANDLE "\x91\x01",
          "buffer.import_device: field \"handle\" is a list; expected: binary data");
    FIELD(buffer_import_device, buffer_import_device_params, "\x82\xa4size\x05\xa3" "fds\x02",
          "buffer.import_device: field \"fds\" is 2; allowed: 0 to 1");
}

static void words(void)
{
    FIELD(buffer_create, buffer_create_params, "\x82\xa4size\x05\xa5place\xa6" "device", NULL);
    FIELD(buffer_create, buffer_create_params, "\x82\xa4size\x05\xa5place\xa4hose",
          "buffer.create: field \"place\" is \"hose\"; allowed: host, device");
    FIELD(buffer_create, buffer_create_params, "\x82\xa4size\x05\xa5place\xa0",
          "buffer.create: field \"place\" is \"\"; allowed: host, device");
    FIELD(buffer_create, buffer_create_params, "\x82\xa4size\x05\xa5place\xa5host\0",
          "buffer.create: field \"place\" is \"host?\"; allowed: host, device");
    FIELD(buffer_create, buffer_create_params, "\x82\xa4size\x05\xa5place\x00",
          "buffer.create: field \"place\" is an integer; allowed: host, device");
    FIELD(buffer_create, buffer_create_params,
          "\x82\xa4size\x05\xa5place\xd9\x28" "0123456789012345678901234567890123456789",
          "buffer.create: field \"place\" is \"01234567890123456789012345678901\"; allowed: host, device");
}

#define TENSOR(DTYPE, SHAPE, STRIDES) "\x84\xa6" "buffer\x01\xa5" "dtype" DTYPE "\xa5shape" SHAPE "\xa7strides" STRIDES
#define GOOD   TENSOR("\xa3" "f32", "\x91\x05", "\x91\x04")
#define SUBMIT(INPUT, REST) "\x84\xa5input" INPUT "\xa6output" GOOD "\xa6passes\x91\xa7" "forward" REST

#define MAPS_8              "\x80\x80\x80\x80\x80\x80\x80\x80"
#define MAPS_33             MAPS_8 MAPS_8 MAPS_8 MAPS_8 "\x80"

static void maps_in_maps(void)
{
    FIELD(job_submit, job_submit_params, SUBMIT(GOOD, "\xa4" "axis\x00"), NULL);
    FIELD(job_submit, job_submit_params, SUBMIT(TENSOR("\xa3" "f24", "\x91\x05", "\x91\x04"), "\xa4" "axis\x00"),
          "job.submit: field \"input.dtype\" is \"f24\"; allowed: f32, f64, f16, bf16, i32, i64, u32, u64, f32be, i16be, i32be, ibm32, "
          "i8, u8, i16, u16, u16be, i32le, ibm32le, f64be, i64be, u32be, u64be");
    FIELD(job_submit, job_submit_params, "\x81\xa4then\x99\x80\x80\x80\x80\x80\x80\x80\x80\x80",
          "job.submit: field \"then\" has 9 items; allowed: 0 to 8");
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\x91\x81\xa4" "axis\x04", "job.batch: field \"jobs[0].axis\" is 4; allowed: 0 to 3");
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\xdc\x00\x21" MAPS_33, "job.batch: field \"jobs\" has 33 items; allowed: 1 to 32");
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\x90", NULL);
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\x91\x05", "job.batch: field \"jobs[0]\" is an integer; expected: a map");
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\x91\x81\xa5steps\x91\x80",
          "job.batch: field \"jobs[0].steps[0].operation\" is missing; allowed: " ALL_OPERATIONS);
    FIELD(job_batch, job_batch_params, "\x81\xa4jobs\x91\x82\xa5steps\x91\x81\xa9operation\xa6" "demean\xa4kind\xa4half",
          "job.batch: field \"jobs[0].kind\" is \"half\", but there is no such field; there are: input, output, axis, steps, offsets, "
          "algorithm, priority, deadline_ms, progress, ending, after_failure, group, axes");
    FIELD(job_submit, job_submit_params, SUBMIT("\x05", "\xa4" "axis\x00"),
          "job.submit: field \"input\" is an integer; expected: a map");
    FIELD(job_submit, job_submit_params, SUBMIT("\x80", "\xa4" "axis\x00"),
          "job.submit: field \"input.buffer\" is missing");
    FIELD(job_submit, job_submit_params, SUBMIT("\x82\xa6" "buffer\x01\xa6" "buffer\x01", "\xa4" "axis\x00"),
          "job.submit: field \"input.buffer\" is there twice");
    FIELD(job_submit, job_submit_params, SUBMIT("\x81\xc0\xc0", "\xa4" "axis\x00"),
          "job.submit: the name of a field of input is nil; expected: text");
    FIELD(job_submit, job_submit_params, SUBMIT(GOOD, "\xa4" "axis\x04"),
          "job.submit: field \"axis\" is 4; allowed: 0 to 3");
    FIELD(job_submit, job_submit_params, "\x81\xa5input" GOOD, "job.submit: field \"output\" is missing");
}

#define RUN(STEPS) "\x84\xa5input" GOOD "\xa6output" GOOD "\xa4" "axis\x00\xa5steps" STEPS
#define SCAN       "\x82\xa9operation\xa4scan\xa6passes\x91\xa7" "forward"
#define SUMS       "\xa9operation\xa6reduce\xa9reduction\xa3sum"

/* Returns a text with the words of all operations: "..., scan, reduce". */
static const char *with_operations(const char *before)
{
    static char text[LIMIT_ERROR_BYTES];
    char list[128];
    snprintf(text, sizeof text, "%s%s", before, words_join(&step_words, list, sizeof list));
    return text;
}

/* The fields of a step go by its operation; an unknown field is never ignored. */
static void steps(void)
{
    FIELD(job_run, job_run_params, RUN("\x91" SCAN), NULL);
    FIELD(job_run, job_run_params, RUN("\x92" SCAN "\x82" SUMS), NULL);
    /* In a batch that holds for jobs with steps alone: a field that others do not know is a later version's. */
    FIELD(job_batch, job_batch_params,
          "\x81\xa4jobs\x92" RUN("\x91" SCAN) "\x84\xa5input" GOOD "\xa6output" GOOD "\xa4" "axis\x00\xa3new\xc0", NULL);
    FIELD(job_run, job_run_params, RUN("\x90"), "job.run: field \"steps\" has 0 items; allowed: 1 to 9");
    FIELD(job_run, job_run_params, RUN("\x9a" SCAN SCAN SCAN SCAN SCAN SCAN SCAN SCAN SCAN SCAN),
          "job.run: field \"steps\" has 10 items; allowed: 1 to 9");
    FIELD(job_run, job_run_params, RUN("\x91\x05"), "job.run: field \"steps[0]\" is an integer; expected: a map");
    FIELD(job_run, job_run_params, RUN("\x92" SCAN "\x80"),
          "job.run: field \"steps[1].operation\" is missing; allowed: " ALL_OPERATIONS);
    FIELD(job_run, job_run_params, RUN("\x91\x81\xa9operation\xa4" "fold"),
          with_operations("job.run: field \"steps[0].operation\" is \"fold\"; allowed: "));
    FIELD(job_run, job_run_params, RUN("\x91\x81\xa9operation\xa4scan"),
          "job.run: field \"steps[0].passes\" is missing; allowed: forward, backward");
    FIELD(job_run, job_run_params, RUN("\x91\x83" SUMS "\xa9operation\xa6reduce"),
          "job.run: field \"steps[0].operation\" is there twice");
    FIELD(job_run, job_run_params, RUN("\x92" SCAN "\x83" SUMS "\xa6" "demean\x01"),
          "job.run: field \"steps[1].demean\" is 1, but operation \"reduce\" has no such parameter; it takes: reduction");
    FIELD(job_run, job_run_params, RUN("\x91\x83" SUMS "\xa1x\xa4half"),
          "job.run: field \"steps[0].x\" is \"half\", but operation \"reduce\" has no such parameter; it takes: reduction");
    FIELD(job_run, job_run_params, RUN("\x91\x82\xa9operation\xa6reduce\xa9reduction\xa4none"),
          "job.run: field \"steps[0].reduction\" is \"none\"; allowed: sum, min, max, mean, rms, norm");
    FIELD(job_run, job_run_params, RUN("\x91\x82\xa9operation\xa8triangle\xaahalf_width\xcd\x08\x01"),
          "job.run: field \"steps[0].half_width\" is 2049; allowed: 1 to 2048");
    FIELD(job_run, job_run_params, RUN("\x91\x82\xa9operation\xa8triangle\xa6repeat\xff"),
          "job.run: field \"steps[0].repeat\" is -1; allowed: 1 to 9");
    FIELD(job_run, job_run_params, RUN("\x91\x82\xa9operation\xa4scan\xa6" "demean\x02"),
          "job.run: field \"steps[0].demean\" is 2; allowed: 0 to 1");
    FIELD(job_run, job_run_params, "\x81\xa6passes\x91\xa7" "forward",
          "job.run: field \"passes\" is a list, but there is no such field; there are: input, output, axis, steps, "
          "offsets, algorithm, priority, deadline_ms, progress, ending, after_failure, "
          "group, axes");
    FIELD(job_run, job_run_params, "\x81\xa5input\x81\xa6offzet\xff",
          "job.run: field \"input.offzet\" is -1, but there is no such field; there are: buffer, offset, dtype, shape, strides");
}

static void lists(void)
{
#define WITH(SHAPE, STRIDES) SUBMIT(TENSOR("\xa3" "f32", SHAPE, STRIDES), "\xa4" "axis\x00")
    FIELD(job_submit, job_submit_params, WITH("\x94\x01\x02\x03\x04", "\x94\xff\xfe\xfd\xfc"), NULL);
    FIELD(job_submit, job_submit_params, WITH("\x95\x01\x02\x03\x04\x05", "\x91\x04"),
          "job.submit: field \"input.shape\" has 5 items; allowed: 1 to 4");
    FIELD(job_submit, job_submit_params, WITH("\x90", "\x91\x04"),
          "job.submit: field \"input.shape\" has 0 items; allowed: 1 to 4");
    FIELD(job_submit, job_submit_params, WITH("\x05", "\x91\x04"),
          "job.submit: field \"input.shape\" is an integer; expected: a list");
    FIELD(job_submit, job_submit_params, WITH("\x93\x01\x02\xff", "\x91\x04"),
          "job.submit: field \"input.shape[2]\" is -1; allowed: 0 to 18446744073709551615");
    FIELD(job_submit, job_submit_params, WITH("\x91\x01", "\x92\x04\xa1" "4"),
          "job.submit: field \"input.strides[1]\" is text; expected: an integer");
    FIELD(job_submit, job_submit_params, WITH("\x91\x01", "\x91\xcf\x80\x00\x00\x00\x00\x00\x00\x00"),
          "job.submit: field \"input.strides[0]\" is 9223372036854775808; allowed: -9223372036854775808 to "
          "9223372036854775807");
    FIELD(job_submit, job_submit_params, WITH("\x91\x01", "\x91\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), NULL);
    FIELD(job_submit, job_submit_params, "\x81\xa6passes\x92\xa7" "forward\xa2up",
          "job.submit: field \"passes[1]\" is \"up\"; allowed: forward, backward");
    FIELD(job_submit, job_submit_params, "\x81\xa6passes\x93\xa7" "forward\xa7" "forward\xa7" "forward",
          "job.submit: field \"passes\" has 3 items; allowed: 1 to 2");
    FIELD(job_submit, job_submit_params, "\x81\xa6passes\x90",
          "job.submit: field \"passes\" has 0 items; allowed: 1 to 2");
}

static void lists_of_maps(void)
{
    FIELD(server_devices, devices_result, "\x81\xa7" "devices\x90", NULL);
    FIELD(server_devices, devices_result, "\x81\xa7" "devices\x92\x80\xc0",
          "server.devices: field \"devices[0].name\" is missing");
    FIELD(server_devices, devices_result, "\x81\xa7" "devices\x91\xc0",
          "server.devices: field \"devices[0]\" is nil; expected: a map");
    FIELD(server_devices, devices_result, "\x81\xa7" "devices\xdc\x00\x21" "000000000000000000000000000000000",
          "server.devices: field \"devices\" has 33 items; allowed: 0 to 32");
}

// clang-format on

static const struct test tests[] = {
    TEST(numbers), TEST(floating_numbers), TEST(keys),  TEST(texts), TEST(binary_data),
    TEST(words),   TEST(maps_in_maps),     TEST(steps), TEST(lists), TEST(lists_of_maps),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

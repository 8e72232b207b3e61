/* The choice of the chunk size from measurements, the file that remembers them, and a daemon's use of the file, which
 * anybody may have written. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/device/calibrate.h"
#include "daemon/device/calibration_file.h"
#include "daemon/device/devices.h"
#include "tests/check.h"

static void the_fastest_with_the_least_in_flight(void)
{
    const struct chunk_size measured[] = {{MIB(2), 4, 44000}, {MIB(4), 4, 47000},  {MIB(8), 3, 49200},
                                          {MIB(8), 4, 50400}, {MIB(16), 3, 51400}, {MIB(16), 4, 51400}};
    CHECK_EQ(chunk_size_choose(measured, 6).chunk_bytes, MIB(8));
    CHECK_EQ(chunk_size_choose(measured, 6).chunks, 4); /* 3 are more than a hundredth slower */
    CHECK_EQ(chunk_size_choose(measured, 6).bytes_per_s, 50400);
    CHECK_EQ(chunk_size_choose(measured, 3).chunks, 3);
    CHECK_EQ(chunk_size_choose(measured, 1).chunk_bytes, MIB(2));
    CHECK_EQ(chunk_size_choose(&measured[4], 2).chunks, 3);
    const struct chunk_size still[] = {{MIB(4), 3, 0}, {MIB(2), 3, 0}};
    CHECK_EQ(chunk_size_choose(still, 2).chunk_bytes, MIB(2));
}

static bool finds(const char *text)
{
    struct chunk_size chunk_size = {1, 2, 3};
    bool found = calibration_find(text, strlen(text), "GPU", &chunk_size);
    CHECK(found || (chunk_size.chunk_bytes == 1 && chunk_size.chunks == 2 && chunk_size.bytes_per_s == 3));
    return found;
}

static void what_is_recorded_is_found(void)
{
    static char first[CALIBRATION_FILE_BYTES], second[CALIBRATION_FILE_BYTES], third[CALIBRATION_FILE_BYTES];
    const struct chunk_size one = {MIB(8), 4, 50123456789}, two = {MIB(4), 3, 1}, other = {MIB(16), 4, 7};
    struct chunk_size found;
    size_t size = calibration_record("", 0, "GPU one", &one, first);
    CHECK_EQ(size, strlen("GPU one\t8388608\t4\t50123456789\n"));
    CHECK(memcmp(first, "GPU one\t8388608\t4\t50123456789\n", size) == 0);
    size = calibration_record(first, size, "GPU two", &two, second);
    REQUIRE(calibration_find(second, size, "GPU one", &found));
    CHECK(found.chunk_bytes == MIB(8) && found.chunks == 4 && found.bytes_per_s == 50123456789);
    REQUIRE(calibration_find(second, size, "GPU two", &found));
    CHECK(found.chunk_bytes == MIB(4) && found.chunks == 3 && found.bytes_per_s == 1);
    CHECK(!calibration_find(second, size, "GPU", &found));
    CHECK(!calibration_find(second, size, "GPU two ", &found));
    const size_t again = calibration_record(second, size, "GPU one", &other, third);
    CHECK(again == size - strlen("8388608\t4\t50123456789") + strlen("16777216\t4\t7"));
    REQUIRE(calibration_find(third, again, "GPU one", &found));
    CHECK_EQ(found.chunk_bytes, MIB(16));
}

static void nothing_else_is_believed(void)
{
    static const char *const texts[] = {
        "",
        "GPU",
        "GPU\n",
        "GPU\t\n",
        "GPU\t8388608\t4\n",
        "GPU\t8388608\t4\t5",
        "GPU\t8388608\t4\t5 \n",
        "GPU\t8388608\t4\t5\t6\n",
        "GPU\t8388609\t4\t5\n",
        "GPU\t8388608\t0\t5\n",
        "GPU\t8388608\t1000000000\t5\n",
        "GPU\t-8388608\t4\t5\n",
        "GPU\t99999999999999999999999\t4\t5\n",
        "GPU 8388608\t4\t5\n",
        "\nGPU2\t8388608\t4\t5\n",
        "GPU\tx\nGPU\t8388608\t4\t5\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(!finds(texts[i]));
    CHECK(finds("GPU\t8388608\t4\t5\n"));
    struct chunk_size found;
    CHECK(!calibration_find("GPU\t8388608\t4\t5\0\n", 19, "GPU", &found));
    uint64_t state = random_seed();
    for (int i = 0; i < 100000; i++) {
        char text[] = "GPU\t8388608\t4\t5\nGPU b\t4194304\t3\t77\n";
        for (int k = 0; k < 3; k++)
            text[random_next(&state) % (sizeof text - 1)] = (char)random_next(&state);
        if (calibration_find(text, sizeof text - 1, "GPU", &found))
            CHECK(found.chunk_bytes <= MIB(16) && found.chunks <= LIMIT_CHUNKS_IN_FLIGHT);
    }
}

/* The oldest lines go; none is cut. */
static void the_file_stays_small(void)
{
    static char texts[2][CALIBRATION_FILE_BYTES];
    const struct chunk_size chunk_size = {MIB(8), 4, 50000000000};
    struct chunk_size found;
    size_t size = 0;
    char identity[DEVICE_IDENTITY_BYTES];
    for (int i = 0; i < 1000; i++) {
        snprintf(identity, sizeof identity, "a GPU with quite a long name that is number %d", i);
        size = calibration_record(texts[i % 2], size, identity, &chunk_size, texts[(i + 1) % 2]);
        CHECK(size <= CALIBRATION_FILE_BYTES && texts[(i + 1) % 2][size - 1] == '\n');
    }
    CHECK(size > CALIBRATION_FILE_BYTES - 128);
    CHECK(calibration_find(texts[0], size, identity, &found));
    CHECK(calibration_find(texts[0], size, "a GPU with quite a long name that is number 900", &found));
    CHECK(!calibration_find(texts[0], size, "a GPU with quite a long name that is number 1", &found));
}

/*
 * The cache.
 */

static char folder[64], path[128];

static void make_folder(void)
{
    strcpy(folder, "/tmp/scand-cache-XXXXXX");
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/scand/name", folder);
    char where[128];
    snprintf(where, sizeof where, "%s/scand:/nowhere", folder);
    setenv("CACHE_DIRECTORY", where, 1);
}

static void remove_folder(void)
{
    char own[128];
    unlink(path);
    snprintf(own, sizeof own, "%s/scand/calibration", folder);
    unlink(own);
    snprintf(own, sizeof own, "%s/scand", folder);
    CHECK_EQ(rmdir(own), 0); /* nothing is left beside the file */
    CHECK_EQ(rmdir(folder), 0);
}

static void the_cache_keeps_files(void)
{
    char text[16];
    make_folder();
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -ENOENT);
    CHECK_EQ(calibration_file_write("name", "something", 9), 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), 9);
    CHECK(memcmp(text, "something", 9) == 0);
    CHECK_EQ(calibration_file_read("name", text, 9), 9);
    CHECK_EQ(calibration_file_read("name", text, 8), -EFBIG);
    CHECK_EQ(calibration_file_write("name", "else", 4), 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), 4);
    remove_folder();
}

static void what_others_could_have_written_is_not_read(void)
{
    char text[16], scand[128];
    make_folder();
    snprintf(scand, sizeof scand, "%s/scand", folder);
    CHECK_EQ(calibration_file_write("name", "something", 9), 0);
    CHECK_EQ(chmod(path, 0620), 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -EPERM);
    CHECK_EQ(chmod(path, 0644), 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), 9);
    CHECK_EQ(chmod(scand, 0777), 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -EPERM);
    CHECK_EQ(calibration_file_write("name", "else", 4), -EPERM);
    CHECK_EQ(chmod(scand, 0700), 0);
    CHECK(unlink(path) == 0 && symlink("/etc/passwd", path) == 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -ELOOP);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -EPERM);
    remove_folder();
}

static void without_a_folder(void)
{
    char text[16];
    setenv("CACHE_DIRECTORY", "relative", 1);
    CHECK_EQ(calibration_file_read("name", text, sizeof text), -ENOENT);
    CHECK_EQ(calibration_file_write("name", "", 0), -ENOENT);
    setenv("CACHE_DIRECTORY", "/proc/scand", 1);
    CHECK(calibration_file_write("name", "", 0) < 0);
}

/*
 * Calibration: of the processor, as if it were worth measuring.
 */

static void a_device_is_measured_once(void)
{
    char text[CALIBRATION_FILE_BYTES], planted[CALIBRATION_FILE_BYTES];
    struct device *device;
    struct error error;
    make_folder();
    REQUIRE(device_cpu_open(0, MIB(64), &device, &error) == 0);
    struct device_info *info = &device->info;
    const struct device_info before = *info;
    calibrate_device(device, 0, 0); /* the device has no identity */
    CHECK(info->chunk_bytes == before.chunk_bytes && info->slots == before.slots && info->bytes_per_s == 0);
    CHECK_EQ(calibration_file_read("calibration", text, sizeof text), -ENOENT);

    strcpy(info->identity, "a processor");
    calibrate_device(device, 0, 0);
    CHECK(info->bytes_per_s > 0);
    int size = calibration_file_read("calibration", text, sizeof text);
    struct chunk_size found;
    REQUIRE(size > 0 && calibration_find(text, (size_t)size, "a processor scand " SCAND_RELEASE, &found));
    CHECK(found.chunk_bytes == info->chunk_bytes && found.chunks == info->slots);
    CHECK_EQ(found.bytes_per_s, info->bytes_per_s);

    found = (struct chunk_size){MIB(4), 3, 12345};
    size_t length = calibration_record("", 0, "a processor scand " SCAND_RELEASE, &found, planted);
    CHECK_EQ(calibration_file_write("calibration", planted, length), 0);
    calibrate_device(device, 0, 0);
    CHECK(info->chunk_bytes == MIB(4) && info->slots == 3 && info->bytes_per_s == 12345);

    calibrate_device(device, MIB(1), 0); /* what is said counts more than what is remembered */
    CHECK(info->chunk_bytes == MIB(1) && info->slots == 3 && info->bytes_per_s == 0);
    calibrate_device(device, 0, 2);
    CHECK(info->chunk_bytes == MIB(1) && info->slots == 2);

    static const char absurd[] = "a processor scand " SCAND_RELEASE "\t1\t1\t1\n";
    CHECK_EQ(calibration_file_write("calibration", absurd, sizeof absurd - 1), 0);
    calibrate_device(device, 0, 0);
    CHECK(info->bytes_per_s > 12345);
    device->ops->close(device);
    remove_folder();
}

/* A device that fails keeps its own values. */
static void a_device_that_fails(void)
{
    struct device *inner, *device;
    struct error error;
    make_folder();
    REQUIRE(device_cpu_open(1, MIB(64), &inner, &error) == 0);
    REQUIRE(device_fault_open(inner, &(struct device_faults){.fail_chunk = 3}, &device, &error) == 0);
    strcpy(device->info.identity, "a processor");
    const struct device_info before = device->info;
    calibrate_device(device, 0, 0);
    CHECK(device->info.chunk_bytes == before.chunk_bytes && device->info.slots == before.slots);
    CHECK_EQ(device->info.bytes_per_s, 0);
    device->ops->close(device);
    CHECK_EQ(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_fastest_with_the_least_in_flight),
        TEST(what_is_recorded_is_found),
        TEST(nothing_else_is_believed),
        TEST(the_file_stays_small),
        TEST(the_cache_keeps_files),
        TEST(what_others_could_have_written_is_not_read),
        TEST(without_a_folder),
        TEST(a_device_is_measured_once),
        TEST(a_device_that_fails),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

#include "calibrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "calibration_file.h"
#include "daemon/process/log.h"
#include "protocol/clock.h"

#define CALIBRATION_NAME "calibration"

/* The memory of a run, whose chunks are zeros that stay zeros. */
#define MEMORY_BYTES  MIB(32)
#define ROW_SAMPLES   8192
#define RUN_BYTES     MIB(96) /* bytes that move each way in one run: 2 ms on PCIe 5 */
#define BUDGET_US     120000  /* the time after which no other round of all candidates begins */
#define TURNAROUND_US 150     /* time that a busy daemon may take to hand out a chunk in place of another */
#define LOST_MS       5000

#define ZERO_RULE                                                                                                   \
    {                                                                                                               \
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2, .accumulator = SCAND_ACCUMULATOR_F64, \
    }

static struct scan_rows zero_rows(void *memory)
{
    const int64_t row_bytes = ROW_SAMPLES * sizeof(float);
    return (struct scan_rows){.rule = ZERO_RULE,
                              .length = ROW_SAMPLES,
                              .row_count = MEMORY_BYTES / row_bytes,
                              .outer_rank = 1,
                              .outer_shape = {MEMORY_BYTES / row_bytes},
                              .input_outer_strides = {row_bytes},
                              .output_outer_strides = {row_bytes},
                              .input_stride = sizeof(float),
                              .output_stride = sizeof(float),
                              .input = memory,
                              .output = memory};
}

/* Starts the n-th chunk of a run; the chunks go around in the memory. */
static int start_chunk(struct device *device, const struct scan_rows *rows, const struct chunk_size *chunk_size,
                       uint64_t n, struct chunk *chunk)
{
    const struct span span = {SCAND_PLACE_HOST, (void *)rows->input, MEMORY_BYTES, MEMORY_BYTES, false, false};
    static const struct step step = {.operation = OPERATION_scan, .rule = ZERO_RULE};
    uint64_t count = chunk_size->chunk_bytes / (ROW_SAMPLES * sizeof(float));
    *chunk = (struct chunk){.rows = rows,
                            .first = n * count % rows->row_count,
                            .count = count,
                            .steps = &step,
                            .step_count = 1,
                            .spans = {[OPERAND_INPUT] = span, [OPERAND_OUTPUT] = span},
                            .device = device};
    return device->ops->start(device, chunk);
}

/* A run: the places of its chunks, and which chunks have ended. */
struct calibrate_run {
    struct device *device;
    const struct chunk_size *chunk_size;
    struct chunk chunks[LIMIT_CHUNKS_IN_FLIGHT];
    uint64_t started, ended, total;
    struct {
        struct chunk *chunk;
        uint64_t at_us;
    } last[LIMIT_CHUNKS_IN_FLIGHT]; /* the n-th chunk to end has place n % chunk_size->chunks */
    uint64_t begin_us;              /* time at which the first chunk ended */
};

/* Returns a place for the next chunk, or NULL while that must wait: until a chunk has ended, and then for as long as a
 * busy daemon takes. */
static struct chunk *next_place(struct calibrate_run *run)
{
    uint64_t chunks = run->chunk_size->chunks, before = run->started - chunks;
    if (run->started == run->total)
        return NULL;
    if (run->started < chunks)
        return &run->chunks[run->started];
    bool free = run->ended > before && clock_us() >= run->last[before % chunks].at_us + TURNAROUND_US;
    return free ? run->last[before % chunks].chunk : NULL;
}

/* Waits for a chunk to end, for a millisecond at most. Returns 0, or why the chunk or the device has failed. */
static int await_end(struct calibrate_run *run)
{
    struct chunk *chunk = run->device->ops->finish(run->device, 1);
    uint64_t at_us = clock_us();
    if (!chunk)
        return 0;
    if (run->ended == 0)
        run->begin_us = at_us;
    run->last[run->ended % run->chunk_size->chunks].chunk = chunk;
    run->last[run->ended % run->chunk_size->chunks].at_us = at_us;
    run->ended++;
    return chunk->status;
}

/* Waits until the device has no chunks left, after a failure too. Returns -EOWNERDEAD when it keeps some: the device is
 * lost. */
static int drain(struct calibrate_run *run)
{
    uint64_t end_us = clock_us() + LOST_MS * 1000;
    while (run->ended < run->started && clock_us() < end_us)
        await_end(run);
    return run->ended < run->started ? -EOWNERDEAD : 0;
}

/* Runs chunks of a size, and measures from the end of the first chunk to the end of the last, so that the size of these
 * two does not count. */
static int run(struct device *device, const struct scan_rows *rows, struct chunk_size *chunk_size)
{
    struct calibrate_run run = {
        .device = device, .chunk_size = chunk_size, .total = RUN_BYTES / chunk_size->chunk_bytes};
    uint64_t end_us = clock_us() + LOST_MS * 1000;
    int r = 0;
    while (run.ended < run.total && !r && clock_us() < end_us) {
        struct chunk *place = next_place(&run);
        r = place ? start_chunk(device, rows, chunk_size, run.started, place) : await_end(&run);
        run.started += place && !r;
    }
    uint64_t took_us = clock_us() - run.begin_us;
    int drained = drain(&run);
    if (!r && !drained && run.ended == run.total)
        chunk_size->bytes_per_s = (run.total - 1) * chunk_size->chunk_bytes * 1000000 / (took_us ? took_us : 1);
    return r ? r : drained;
}

/* Measures all candidates in rounds, keeps the best run of each, and chooses among these. */
static int measure(struct device *device, const struct scan_rows *rows, struct chunk_size *out)
{
    struct chunk_size best[CHUNK_SIZE_CANDIDATES_MAX];
    uint64_t end_us = clock_us() + BUDGET_US;
    memcpy(best, chunk_size_candidates, chunk_size_candidate_count * sizeof best[0]);
    int r = run(device, rows, &(struct chunk_size){MEMORY_BYTES / 8, 2, 0}); /* the first run is slow */
    do
        for (size_t i = 0; i < chunk_size_candidate_count && !r; i++) {
            struct chunk_size measured = best[i];
            r = run(device, rows, &measured);
            if (!r && measured.bytes_per_s > best[i].bytes_per_s)
                best[i] = measured;
        }
    while (!r && clock_us() < end_us);
    if (!r)
        *out = chunk_size_choose(best, chunk_size_candidate_count);
    return r;
}

/* Returns 0 or -errno. */
static int calibrate_measure(struct device *device, struct chunk_size *out)
{
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    int r = device->ops->memory_pin(device, memory, MEMORY_BYTES);
    if (!r) {
        const struct scan_rows rows = zero_rows(memory);
        r = measure(device, &rows, out);
        if (r != -EOWNERDEAD)
            device->ops->memory_unpin(device, memory, MEMORY_BYTES);
    }
    munmap(memory, MEMORY_BYTES);
    return r;
}

static void adopt(struct device_info *info, const struct chunk_size *chunk_size)
{
    info->chunk_bytes = chunk_size->chunk_bytes;
    info->slots = chunk_size->chunks;
    info->bytes_per_s = chunk_size->bytes_per_s;
}

/* Makes the key of a device's measurement, which depends on the daemon's release, too. */
static const char *key_of(const struct device_info *info, char out[DEVICE_IDENTITY_BYTES])
{
    snprintf(out, DEVICE_IDENTITY_BYTES, "%.*s scand %.20s", DEVICE_IDENTITY_BYTES - 32, info->identity, SCAND_RELEASE);
    return out;
}

/* Measures a device, adopts the result, and remembers it if possible. */
static void measure_anew(struct device *device, const char *key, const char *text, size_t size)
{
    struct chunk_size chunk_size;
    char record[CALIBRATION_FILE_BYTES];
    uint64_t begin_us = clock_us();
    int r = calibrate_measure(device, &chunk_size);
    if (r) {
        log_error("could not measure %s: %s; its chunks stay %llu KiB", device->info.name, strerror(-r),
                  (unsigned long long)(device->info.chunk_bytes >> 10));
        return;
    }
    adopt(&device->info, &chunk_size);
    log_info("measured %s in %llu ms: %u chunks of %llu KiB at a time, %.1f GB/s each way", device->info.name,
             (unsigned long long)((clock_us() - begin_us) / 1000), (unsigned)chunk_size.chunks,
             (unsigned long long)(chunk_size.chunk_bytes >> 10), (double)chunk_size.bytes_per_s / 1e9);
    r = calibration_file_write(CALIBRATION_NAME, record, calibration_record(text, size, key, &chunk_size, record));
    if (r)
        log_info("could not remember that: %s; the next start measures again", strerror(-r));
}

void calibrate_device(struct device *device, uint64_t chunk_bytes, uint32_t chunks)
{
    struct device_info *info = &device->info;
    struct chunk_size chunk_size = {chunk_bytes ? chunk_bytes : info->chunk_bytes, chunks ? chunks : info->slots, 0};
    char text[CALIBRATION_FILE_BYTES], key[DEVICE_IDENTITY_BYTES];
    if (!chunk_bytes && !chunks && info->identity[0]) {
        int size = calibration_file_read(CALIBRATION_NAME, text, sizeof text);
        if (size < 0)
            size = 0;
        if (!calibration_find(text, (size_t)size, key_of(info, key), &chunk_size)) {
            measure_anew(device, key, text, (size_t)size);
            return;
        }
    }
    adopt(info, &chunk_size);
}

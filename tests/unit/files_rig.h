/* The rig of tests of jobs that read files: a file, a client with memory, and a pread that may fail. */
#ifndef TESTS_FILES_RIG_H
#define TESTS_FILES_RIG_H

#include "tests/unit/service_rig.h"

#include <sys/mman.h>

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

/* Chunks are of 4 rows of 100 samples, and a device holds two of them. */
#define ROWS       100
#define CHUNK_ROWS 4
#define FILE_SIZE  ((uint64_t)ROWS * RIG_ROW_BYTES)

static struct caller *anna;
static int file = -1;
static uint64_t source, there; /* buffers: the file, and memory */

/* The behaviour of pread: it fails so, or reads at most so much. */
static int fail_reads;
static size_t read_most;
ssize_t __real_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t offset);

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (fail_reads) {
        errno = fail_reads;
        fail_reads = fail_reads == EINTR ? 0 : fail_reads;
        return -1;
    }
    return __real_pread(fd, bytes, read_most && size > read_most ? read_most : size, offset);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t offset)
{
    return __wrap_pread(fd, bytes, size, offset);
}

static inline unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 7 + offset / 256);
}

/* A file of so many bytes. */
static inline int make_file(uint64_t size_bytes)
{
    int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    unsigned char *bytes = malloc(size_bytes);
    CHECK(fd >= 0 && bytes);
    for (uint64_t i = 0; bytes && i < size_bytes; i++)
        bytes[i] = byte_at(i);
    CHECK_EQ(pwrite(fd, bytes, size_bytes, 0), size_bytes);
    free(bytes);
    return fd;
}

static inline uint32_t import_request(struct caller *user, int fd, uint64_t size_bytes)
{
    const struct msg_buffer_import_file_params params = {size_bytes, 1};
    return ask_with(user, METHOD_buffer_import_file, &params, &fd, 1);
}

static inline uint64_t import(struct caller *user, int fd, uint64_t size_bytes)
{
    struct msg_buffer_id id = {0};
    uint32_t msgid = import_request(user, fd, size_bytes);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_import_file, &id));
    return id.buffer;
}

static inline const char *import_refused(int fd, uint64_t size_bytes, enum scand_status status)
{
    uint32_t msgid = import_request(anna, fd, size_bytes);
    rig_run_work();
    return refusal(anna, msgid, status);
}

/* Scans rows of the file into memory. */
static inline uint32_t submit(uint64_t first, uint64_t rows)
{
    struct msg_job_submit_params params = rig_scan(rig_rows(source, first, rows), rig_rows(there, 0, rows));
    return ask(anna, METHOD_job_submit, &params);
}

static inline bool done(uint32_t msgid)
{
    return answered(anna, msgid, METHOD_job_submit, NULL);
}

static inline void begin_with(unsigned slots)
{
    rig_begin_with(1, slots, CHUNK_ROWS);
    fail_reads = 0;
    read_most = 0;
    anna = user_greet(ANNA);
    file = make_file(FILE_SIZE);
    source = import(anna, file, FILE_SIZE);
    there = user_create(anna, FILE_SIZE, SCAND_PLACE_HOST);
}

static inline void begin(void)
{
    begin_with(2);
}

static inline void end(void)
{
    close(file);
    rig_end();
}

/* A reader does units of the oldest work until it is done with it. */
static inline void read_one(void)
{
    struct work *work = rig_pop_work(0);
    size_t before = rig.work_count;
    rig_help(work);
    while (rig.work_count > before && rig.work[rig.work_count - 1] == work)
        rig_help(rig_pop_work(rig.work_count - 1));
}

/* True when the chunk's input is what the file has there. */
static inline bool has_rows(const struct chunk *chunk, uint64_t first_of_job)
{
    const struct scan_rows *rows = chunk->rows;
    for (uint64_t row = chunk->first; row < chunk->first + chunk->count; row++) {
        const unsigned char *bytes =
            (const unsigned char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, row);
        for (uint64_t i = 0; i < RIG_ROW_BYTES; i++)
            if (bytes[i] != byte_at((first_of_job + row) * RIG_ROW_BYTES + i))
                return false;
    }
    const unsigned char *base = chunk->spans[OPERAND_INPUT].base;
    return (const unsigned char *)rows->input + chunk->first * RIG_ROW_BYTES >= base;
}

#endif

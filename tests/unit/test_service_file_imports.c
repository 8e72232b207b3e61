/* Files that jobs may read: what is taken, what is refused, and what of it is read. */
#include "tests/unit/files_rig.h"

#include <fcntl.h>

/*
 * Descriptors that are refused.
 */

static void only_files_are_taken(void)
{
    int ends[2];
    begin();
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_CONTAINS(import_refused(ends[0], 100, SCAND_DESCRIPTOR),
                   "the descriptor is that of a pipe; allowed: a regular file, or a memfd");
    close(ends[0]);
    CHECK_CONTAINS(import_refused(ends[1], 100, SCAND_DESCRIPTOR), "is not open for reading");
    close(ends[1]);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_CONTAINS(import_refused(ends[0], 100, SCAND_DESCRIPTOR), "a socket");
    close(ends[0]);
    close(ends[1]);
    static const struct {
        const char *path;
        int flags;
        const char *words;
    } others[] = {{"/", O_RDONLY | O_DIRECTORY, "a directory"},
                  {"/dev/zero", O_RDONLY, "a character device"},
                  {"/proc/self/status", O_RDONLY, "the file has 0 bytes"},
                  {"/proc/self/exe", O_PATH, "is not open for reading"},
                  {"/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY, "of type sysfs"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int fd = open(others[i].path, others[i].flags | O_CLOEXEC);
        if (fd >= 0)
            CHECK_CONTAINS(import_refused(fd, 1, SCAND_DESCRIPTOR), others[i].words);
        if (fd >= 0)
            close(fd);
    }
    end();
}

static void arguments_are_checked(void)
{
    begin();
    struct msg_buffer_import_file_params two = {FILE_SIZE, 2}, none = {FILE_SIZE, 0};
    int fds[2] = {file, file};
    CHECK_CONTAINS(import_refused(file, 0, SCAND_INVALID),
                   "buffer.import_file: \"size\" is 0 bytes; allowed: 1 to 70368744177664");
    CHECK_CONTAINS(import_refused(file, LIMIT_FILE_BYTES + 1, SCAND_INVALID), "allowed: 1 to 70368744177664");
    CHECK_CONTAINS(import_refused(file, FILE_SIZE + 1, SCAND_DESCRIPTOR),
                   "\"size\" is 40001, but the file has 40000 bytes; allowed: at most as many");
    CHECK_CONTAINS(refusal(anna, ask_with(anna, METHOD_buffer_import_file, &two, fds, 2), SCAND_DESCRIPTOR),
                   "buffer.import_file: \"fds\" is 2; allowed: 1");
    CHECK_CONTAINS(refused(anna, METHOD_buffer_import_file, &none, SCAND_DESCRIPTOR), "\"fds\" is 0");
    end();
}

/* Read-only descriptors, and files that are sealed against writing, are accepted: they are what people have. */
static void read_only_memory_is_taken(void)
{
    begin();
    char path[64];
    CHECK_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    source = import(anna, fd, FILE_SIZE);
    close(fd);
    uint32_t msgid = submit(7, 4);
    rig_run_work();
    REQUIRE(rig.manual.out_count == 1 && has_rows(rig.manual.out[0], 7));
    rig_complete(0, 0);
    CHECK(done(msgid));
    end();
}

static void nothing_is_written(void)
{
    begin();
    struct msg_job_submit_params params = rig_scan(rig_rows(there, 0, 4), rig_rows(source, 0, 4));
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &params, SCAND_INVALID),
                   "job.submit: \"output.buffer\" is 1, a file (buffer.import_file), which is only read; give a buffer "
                   "of buffer.create or buffer.import");
    params = rig_scan(rig_rows(source, 50, 4), rig_rows(source, 50, 4));
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &params, SCAND_INVALID), "which is only read");
    end();
}

static void offsets_are_memory(void)
{
    begin();
    struct msg_tensor line = {.buffer = source, .shape = {400}, .shape_count = 1, .strides = {4}, .strides_count = 1};
    struct msg_job_submit_params params = rig_scan(line, line);
    params.output.buffer = there;
    params.axis = 0;
    params.offsets = (struct msg_tensor){
        .buffer = source, .dtype = SCAND_DTYPE_U64, .shape = {3}, .shape_count = 1, .strides = {8}, .strides_count = 1};
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &params, SCAND_INVALID),
                   "\"offsets.buffer\" is 1, a file (buffer.import_file); allowed: memory");
    end();
}

/* A row is computed at a time, and nothing of it may be left out. */
static void chunks_that_span_too_much_are_refused(void)
{
    begin();
    CHECK_EQ(ftruncate(file, (off_t)LIMIT_LOAD_BYTES * 2), 0);
    const struct msg_tensor row = {.buffer = import(anna, file, LIMIT_LOAD_BYTES * 2),
                                   .shape = {1, LIMIT_LOAD_BYTES / 4 + 1},
                                   .shape_count = 2,
                                   .strides = {4, 4},
                                   .strides_count = 2};
    struct msg_tensor output = row;
    output.buffer = there;
    output.shape[1] = 1;
    struct msg_job_submit_params params = {.input = row,
                                           .output = output,
                                           .axis = 1,
                                           .operation = SCAND_OPERATION_REDUCE,
                                           .reduction = SCAND_REDUCTION_NONE + 1 + SCAND_REDUCTION_MAX};
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &params, SCAND_INVALID),
                   "job.submit: rows 0 to 0 of the job, which are computed at a time, span bytes 0 to 268435460 of a "
                   "file; allowed: 268435456 bytes in all; copy the file, or parts of it, into a buffer of "
                   "buffer.create");
    end();
}

/* Only the samples are read of rows or columns with gaps between them; what lies in the gaps does not matter. */
static void gaps_are_left_out(void)
{
    static const struct {
        uint64_t rows, length;
        int64_t step, stride; /* bytes */
    } layouts[] = {{8, 100, 4000, 4}, {100, 10, 4, 4000}, {1, 9, 400, 4000}, {8, 1, 4000, 4}};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        begin();
        struct msg_tensor input = {.buffer = source,
                                   .offset = 8,
                                   .shape = {layouts[i].rows, layouts[i].length},
                                   .shape_count = 2,
                                   .strides = {layouts[i].step, layouts[i].stride},
                                   .strides_count = 2};
        struct msg_tensor output = input;
        output.buffer = there;
        output.strides[0] = (int64_t)layouts[i].length * 4;
        output.strides[1] = 4;
        struct msg_job_submit_params params = rig_scan(input, output);
        uint32_t msgid = ask(anna, METHOD_job_submit, &params);
        rig_run_work();
        while (rig.manual.out_count > 0) {
            const struct chunk *chunk = rig.manual.out[0];
            const struct scan_rows *rows = chunk->rows;
            for (uint64_t row = chunk->first; row < chunk->first + chunk->count; row++)
                for (uint64_t k = 0; k < layouts[i].length; k++) {
                    const unsigned char *at = (const unsigned char *)rows->input +
                                              scan_row_offset(rows, rows->input_outer_strides, row) +
                                              (int64_t)k * rows->input_stride;
                    const uint64_t from = 8 + row * (uint64_t)layouts[i].step + k * (uint64_t)layouts[i].stride;
                    CHECK(at[0] == byte_at(from) && at[3] == byte_at(from + 3));
                }
            rig_complete(0, 0);
            rig_run_work();
        }
        CHECK(done(msgid));
        CHECK_EQ(rig.service.stats.file_read_bytes, layouts[i].rows * layouts[i].length * 4);
        end();
    }
}

static void files_are_counted(void)
{
    begin();
    rig.service.files.most = 4; /* half of them for a user */
    import(anna, file, FILE_SIZE);
    CHECK_CONTAINS(import_refused(file, FILE_SIZE, SCAND_QUOTA),
                   "buffer.import_file: user 1000 has 2 files open in buffers and may have 2 of 4, half of what others "
                   "leave; release a buffer");
    CHECK(granted(anna, METHOD_buffer_release, &(struct msg_buffer_id){source}, NULL));
    rig_run_work();
    source = import(anna, file, FILE_SIZE);
    rig.service.files.most = LIMIT_FILES;
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(only_files_are_taken), TEST(arguments_are_checked), TEST(read_only_memory_is_taken),
        TEST(nothing_is_written),   TEST(offsets_are_memory),    TEST(chunks_that_span_too_much_are_refused),
        TEST(gaps_are_left_out),    TEST(files_are_counted),     TEST_END,
    };
    return test_main(argc, argv, tests);
}

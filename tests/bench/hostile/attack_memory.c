/* Memory: of the pool, and brought along. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "tests/bench/hostile/attack.h"

#define PAGE_FILES 128
#define PAGE_BYTES 4096

#define EMPTIED_BYTES MIB(256)

#define MAPPED_BYTES KIB(64)
#define MAPS         60000 /* of a process, which may have few more */
#define MAPPERS      4

#define PUNCHED_SAMPLES 4096 /* of a row; the loop of a processor's daemon computes a job of one row by itself */
#define PUNCHED_ROWS    4096
#define PUNCHED_BYTES   (PUNCHED_ROWS * PUNCHED_SAMPLES * sizeof(float))

static bool ask_import(struct line *line, uint64_t size_bytes)
{
    const struct msg_buffer_import_params import = {.size = size_bytes, .segment = size_bytes, .fds = 1};
    int fd = attack_memfd(size_bytes);
    bool asked = fd >= 0 && line_ask(line, METHOD_buffer_import, &msg_buffer_import_params_type, &import, &fd, 1);
    if (fd >= 0)
        close(fd);
    return asked;
}

/* Releases each imported buffer at once. The answer to the release holds nothing that has to be read. */
static void answered_import(struct attacker *self, struct line *line, const struct message *message)
{
    struct msg_buffer_id made;
    struct error error;
    (void)self;
    if (!message->failed && message_read(message, &msg_buffer_id_type, &made, &error) == 0)
        line_ask(line, METHOD_buffer_release, &msg_buffer_id_type, &made, NULL, 0);
}

static bool ask_large(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_import(line, MIB(512));
}

void attack_import_large(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 4, .window = 1, .ask = ask_large, .answered = answered_import});
}

static bool ask_sparse(struct attacker *self, struct line *line)
{
    struct sysinfo info;
    (void)self;
    if (sysinfo(&info))
        return false;
    uint64_t memory_bytes = (uint64_t)info.totalram * info.mem_unit;
    return ask_import(line, (memory_bytes + memory_bytes / 4) / MIB(2) * MIB(2));
}

void attack_import_sparse(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 1, .ask = ask_sparse, .answered = answered_import});
}

static bool ask_pages(struct attacker *self, struct line *line)
{
    static int fds[PAGE_FILES];
    const struct msg_buffer_import_params import = {
        .size = PAGE_FILES * PAGE_BYTES, .segment = PAGE_BYTES, .fds = PAGE_FILES};
    (void)self;
    for (int i = 0; i < PAGE_FILES && !fds[i]; i++)
        fds[i] = attack_memfd(PAGE_BYTES);
    return line_ask(line, METHOD_buffer_import, &msg_buffer_import_params_type, &import, fds, PAGE_FILES);
}

void attack_import_pages(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 4, .window = 2, .ask = ask_pages});
}

static int punched = -1; /* memory of an attack's process */

static bool set_up_punched(struct attacker *self, struct line *line)
{
    if (punched < 0)
        punched = attack_memfd(PUNCHED_BYTES);
    line->buffers[0] = punched < 0 ? 0 : attack_import(self, line, &punched, 1, PUNCHED_BYTES);
    return line->buffers[0] > 0;
}

/* Gives back all pages, which jobs that run find as zeros in new ones. One job in eight is large. */
static bool ask_punched(struct attacker *self, struct line *line)
{
    const uint64_t rows = rand() % 8 == 0 ? PUNCHED_ROWS : 1;
    const struct msg_tensor tensor = {.buffer = line->buffers[0],
                                      .shape = {rows, PUNCHED_SAMPLES},
                                      .shape_count = 2,
                                      .strides = {PUNCHED_SAMPLES * sizeof(float), sizeof(float)},
                                      .strides_count = 2};
    const struct msg_job_submit_params job = {
        .input = tensor, .output = tensor, .axis = 1, .passes = {SCAND_PASS_FORWARD}, .passes_count = 1};
    (void)self;
    if (fallocate(punched, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)PUNCHED_BYTES))
        return false;
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

void attack_import_punched(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 4, .window = 8, .set_up = set_up_punched, .ask = ask_punched});
}

/* Gives a file its pages and takes them back, again and again. */
static void empty_for_ever(int fd)
{
    while (fallocate(fd, 0, 0, (off_t)EMPTIED_BYTES) == 0 &&
           fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)EMPTIED_BYTES) == 0)
        ;
}

static bool set_up_emptied(struct attacker *self, struct line *line)
{
    int fd = attack_memfd(EMPTIED_BYTES);
    line->buffers[0] = fd < 0 ? 0 : attack_import(self, line, &fd, 1, MIB(1));
    if (line->buffers[0] > 0 && fork() == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            empty_for_ever(fd);
        _exit(0);
    }
    close(fd);
    return line->buffers[0] > 0;
}

/* Asks for a forward pass over rows, in place. */
static bool ask_scan(struct line *line, struct msg_tensor rows)
{
    const struct msg_job_submit_params job = {
        .input = rows, .output = rows, .axis = 1, .passes = {SCAND_PASS_FORWARD}, .passes_count = 1};
    return line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &job, NULL, 0);
}

/* A row in as many pages as it has samples. */
static bool ask_emptied(struct attacker *self, struct line *line)
{
    const struct msg_tensor tensor = {.buffer = line->buffers[0],
                                      .shape = {1, MIB(1) / PAGE_BYTES},
                                      .shape_count = 2,
                                      .strides = {sizeof(float), PAGE_BYTES},
                                      .strides_count = 2};
    (void)self;
    return ask_scan(line, tensor);
}

void attack_import_emptied(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 2, .window = 8, .set_up = set_up_emptied, .ask = ask_emptied});
}

/* Maps memory as often as a process may, gives all these maps its pages, and takes the pages back, again and again:
 * each map has to be emptied before the pages are free, and whoever touches one waits so long. */
static void punch_mapped(void *memory, uint64_t size_bytes)
{
    char *all = mmap(NULL, MAPS * size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (uint64_t i = 0; all != MAP_FAILED && i < MAPS; i++)
        mremap(memory, 0, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, all + i * size_bytes);
    do
        madvise(all, MAPS * size_bytes, MADV_POPULATE_READ);
    while (madvise(memory, size_bytes, MADV_REMOVE) == 0);
}

void attack_map_and_punch(void *memory, uint64_t size_bytes)
{
    for (int i = 0; i < MAPPERS; i++) {
        if (fork())
            continue;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            punch_mapped(memory, size_bytes);
        _exit(0);
    }
}

static bool set_up_mapped_of(struct attacker *self, struct line *line, uint64_t size_bytes)
{
    void *memory;
    line->buffers[0] = attack_import_new(self, line, size_bytes, &memory);
    if (line->buffers[0] > 0)
        attack_map_and_punch(memory, MAPPED_BYTES);
    return line->buffers[0] > 0;
}

static bool set_up_mapped(struct attacker *self, struct line *line)
{
    return set_up_mapped_of(self, line, MAPPED_BYTES);
}

static bool ask_mapped(struct attacker *self, struct line *line)
{
    const struct msg_tensor row = attack_row(line->buffers[0], 0, MAPPED_BYTES / sizeof(float) / 4, sizeof(float));
    (void)self;
    return ask_scan(line, row);
}

void attack_import_mapped(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 8, .set_up = set_up_mapped, .ask = ask_mapped});
}

static bool set_up_chunks(struct attacker *self, struct line *line)
{
    return set_up_mapped_of(self, line, PUNCHED_BYTES);
}

static bool ask_chunks(struct attacker *self, struct line *line)
{
    struct msg_tensor rows = attack_row(line->buffers[0], 0, PUNCHED_SAMPLES, sizeof(float));
    rows.shape[0] = PUNCHED_ROWS;
    rows.strides[0] = PUNCHED_SAMPLES * sizeof(float);
    (void)self;
    return ask_scan(line, rows);
}

void attack_chunks_mapped(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 4, .set_up = set_up_chunks, .ask = ask_chunks});
}

static bool ask_buffer(struct line *line, uint64_t size_bytes)
{
    const struct msg_buffer_create_params create = {.size = size_bytes, .place = SCAND_PLACE_HOST};
    return line_ask(line, METHOD_buffer_create, &msg_buffer_create_params_type, &create, NULL, 0);
}

static bool ask_300k(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_buffer(line, 300000);
}

void attack_buffers_300k(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 1, .window = 8, .ask = ask_300k});
}

static bool ask_8(struct attacker *self, struct line *line)
{
    (void)self;
    return ask_buffer(line, 8);
}

void attack_buffers_8(struct attacker *self)
{
    flood_run(self, &(struct flood){.lines = 8, .window = 8, .ask = ask_8});
}

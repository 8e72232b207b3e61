/* Buffers through the service: created, imported, released; passing between users; failing; and clients that go
 * meanwhile. */
#include "tests/unit/service_rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "protocol/memory.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

static const char *create_refused(struct caller *user, uint64_t size_bytes, enum scand_place place,
                                  enum scand_status status)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = place};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    rig_run_work();
    return refusal(user, msgid, status);
}

static uint32_t create_asked(struct caller *user, uint64_t size_bytes, enum scand_place place)
{
    return ask(user, METHOD_buffer_create, &(struct msg_buffer_create_params){.size = size_bytes, .place = place});
}

static bool release(struct caller *user, uint64_t buffer)
{
    return granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL);
}

static struct buffer *buffer_of(struct caller *user, uint64_t id)
{
    struct buffer *buffer = user->client->buffers;
    while (buffer && buffer->id != id)
        buffer = buffer->next;
    return buffer;
}

/* A created host buffer as its user maps it. */
struct mapped {
    uint64_t id, size_bytes;
    unsigned char *bytes;
    size_t fd_count;
    ino_t inode; /* inode of the first segment */
};

static struct mapped map_answer(struct caller *user, uint32_t msgid, uint64_t size_bytes)
{
    struct msg_buffer_create_result result = {0};
    struct stat status = {0};
    void *base = NULL;
    struct answer answer = next_answer(user, &msg_buffer_create_result_type, &result);
    CHECK(answer.arrived && !answer.failed && answer.msgid == msgid);
    CHECK_EQ(answer.fd_count, result.fds);
    CHECK_EQ(memory_map(answer.fds, answer.fd_count, result.segment, size_bytes, &base), 0);
    CHECK_EQ(fstat(answer.fds[0], &status), 0);
    for (size_t i = 0; i < answer.fd_count; i++)
        close(answer.fds[i]);
    return (struct mapped){result.buffer, size_bytes, base, answer.fd_count, status.st_ino};
}

static struct mapped create_mapped(struct caller *user, uint64_t size_bytes)
{
    uint32_t msgid = create_asked(user, size_bytes, SCAND_PLACE_HOST);
    rig_run_work();
    return map_answer(user, msgid, size_bytes);
}

static void unmap(struct mapped *mapped)
{
    memory_unmap(mapped->bytes, mapped->size_bytes);
}

/*
 * Host buffers.
 */

static void both_sides_see_the_same_memory(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    struct mapped mapped = create_mapped(user, 1000);
    struct buffer *buffer = buffer_of(user, mapped.id);
    CHECK_EQ(mapped.fd_count, 1);
    CHECK_EQ(buffer->span.size_bytes, 1000);
    CHECK_EQ(buffer->span.pin_unit_bytes, LIMIT_SMALLEST_SEGMENT_BYTES);
    mapped.bytes[999] = 42;
    CHECK_EQ(((unsigned char *)buffer->span.base)[999], 42);
    unmap(&mapped);
    CHECK(release(user, mapped.id));
    CHECK_EQ(rig.service.stats.host_bytes, 0);
    rig_end();
}

static void several_segments_in_order(void)
{
    rig_begin_with(2, 2, 4);
    struct caller *user = user_greet(ANNA);
    struct mapped mapped = create_mapped(user, LIMIT_LARGE_SEGMENT_BYTES + 5000);
    unsigned char *base = buffer_of(user, mapped.id)->span.base;
    CHECK_EQ(mapped.fd_count, 2);
    mapped.bytes[3] = 1;
    mapped.bytes[LIMIT_LARGE_SEGMENT_BYTES + 4999] = 2;
    CHECK_EQ(base[3], 1);
    CHECK_EQ(base[LIMIT_LARGE_SEGMENT_BYTES + 4999], 2);
    unmap(&mapped);
    rig_end();
}

/* Buffers whose memory is ready are answered at once; nothing is deferred. */
static void ready_memory_needs_no_helper(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint32_t msgid = create_asked(user, 1, SCAND_PLACE_HOST);
    CHECK_EQ(rig.work_count, 0);
    CHECK(answered(user, msgid, METHOD_buffer_create, NULL));
    rig_end();
}

static void sizes_are_checked(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    CHECK_CONTAINS(create_refused(user, 0, SCAND_PLACE_HOST, SCAND_INVALID),
                   "buffer.create: \"size\" is 0 bytes; allowed: 1 to 549755813888");
    CHECK_CONTAINS(create_refused(user, UINT64_MAX, SCAND_PLACE_DEVICE, SCAND_INVALID),
                   "\"size\" is 18446744073709551615");
    CHECK_CONTAINS(create_refused(user, LIMIT_LARGE_SEGMENT_BYTES + 1, SCAND_PLACE_HOST, SCAND_QUOTA),
                   "\"size\" is 16777217 bytes; the pool has 33554432");
    CHECK_EQ(rig.service.stats.buffers_open, 0);
    rig_end();
}

static void a_full_pool_is_busy(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t buffer = user_create(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST);
    CHECK_CONTAINS(
        create_refused(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST, SCAND_BUSY),
        "user 1000 has 16777216 bytes of the pool and asks for 16777216 more; of 33554432 it may have 29360128, "
        "seven eighths of what others leave; release buffers");
    CHECK(release(user, buffer));
    CHECK(user_create(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST) > buffer);
    rig_end();
}

/* A user gets its small buffer at once, however much another has; a user who is told "busy" is told until when. */
static void the_pool_is_shared(void)
{
    rig_begin_with(7, 2, 4);
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    struct answer answer = {0};
    unsigned count = 0;
    while (!answer.failed && count++ < LIMIT_CLIENT_BUFFERS) {
        create_asked(anna, 300000, SCAND_PLACE_HOST);
        rig_run_work();
        answer = next_answer(anna, NULL, NULL);
        for (size_t i = 0; i < answer.fd_count; i++)
            close(answer.fds[i]);
    }
    CHECK_EQ(count, 7 * 8 * 2 * 16 / 8 + 1); /* half a MiB each, of seven eighths of 128 MiB */
    CHECK_EQ(answer.failure.code, SCAND_BUSY);
    CHECK(answer.failure.retry_ms > 0);
    CHECK(user_create(bert, 4096, SCAND_PLACE_HOST));
    CHECK(user_create(bert, MIB(8), SCAND_PLACE_HOST));
    rig_end();
}

static void too_many_buffers(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *other = user_greet(ANNA);
    uint64_t last = 0;
    for (int i = 0; i < LIMIT_CLIENT_BUFFERS; i++)
        last = user_create(user, 1, SCAND_PLACE_DEVICE);
    CHECK_CONTAINS(create_refused(user, 1, SCAND_PLACE_DEVICE, SCAND_QUOTA), "this connection has 256 buffers");
    CHECK(user_create(other, 1, SCAND_PLACE_DEVICE));
    CHECK(release(user, last));
    CHECK(user_create(user, 1, SCAND_PLACE_DEVICE));
    rig_end();
}

/* Buffers that are still being made count too. */
static void too_many_buffers_asked_for(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    for (int i = 0; i < LIMIT_CLIENT_BUFFERS; i++)
        create_asked(user, 1, SCAND_PLACE_DEVICE);
    CHECK(is_silent(user));
    CHECK_CONTAINS(create_refused(user, 1, SCAND_PLACE_DEVICE, SCAND_QUOTA), "256 buffers");
    for (int i = 1; i <= LIMIT_CLIENT_BUFFERS; i++)
        CHECK(answered(user, (uint32_t)i + 1, METHOD_buffer_create, NULL));
    rig_end();
}

static void releases(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *other = user_greet(ANNA);
    uint64_t buffer = user_create(user, 1, SCAND_PLACE_HOST);
    struct msg_buffer_id id = {buffer};
    CHECK_CONTAINS(refused(other, METHOD_buffer_release, &id, SCAND_NOT_FOUND),
                   "\"buffer\" is 1; this connection has no such buffer");
    CHECK(release(user, buffer));
    CHECK_CONTAINS(refused(user, METHOD_buffer_release, &id, SCAND_NOT_FOUND), "no such buffer");
    CHECK_CONTAINS(refused(user, METHOD_buffer_release, &(struct msg_buffer_id){0}, SCAND_NOT_FOUND),
                   "\"buffer\" is 0");
    CHECK_EQ(user_create(user, 1, SCAND_PLACE_HOST), buffer + 1); /* ids do not come again */
    rig_end();
}

/*
 * Memory that passes on.
 */

static void the_same_user_gets_it_back(void)
{
    rig_begin();
    struct caller *first = user_greet(ANNA), *second = user_greet(ANNA);
    struct mapped before = create_mapped(first, 1000);
    memset(before.bytes, 0xaa, 1000);
    CHECK(release(first, before.id));
    struct mapped after = create_mapped(second, 1000);
    CHECK(after.inode == before.inode);
    unmap(&before), unmap(&after);
    rig_end();
}

/* All that is ready of a size has been the user's; what it had last. */
static struct mapped last_of_all(struct caller *user)
{
    struct mapped mapped;
    for (int i = 0; i < RIG_READY; i++) {
        if (i > 0)
            unmap(&mapped);
        mapped = create_mapped(user, 1000);
        memset(mapped.bytes, 0xaa, 1000);
    }
    for (uint64_t i = 1; i <= RIG_READY; i++)
        CHECK(release(user, i));
    return mapped;
}

static void another_user_gets_other_memory(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    struct mapped before = last_of_all(anna);
    uint32_t msgid = create_asked(bert, 1000, SCAND_PLACE_HOST);
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    struct mapped after = map_answer(bert, msgid, 1000);
    CHECK(after.inode != before.inode);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(after.bytes[i], 0);
    before.bytes[0] = 0xbb; /* Anna has kept her mapping */
    CHECK_EQ(after.bytes[0], 0);
    CHECK_EQ(*(unsigned char *)buffer_of(bert, after.id)->span.base, 0);
    unmap(&before), unmap(&after);
    CHECK_EQ(rig.manual.attached_bytes, RIG_READY * LIMIT_SMALLEST_SEGMENT_BYTES);
    rig_end();
}

/* Memory that failed to be renewed is nobody's until it has been. */
static void renewal_that_fails(void)
{
    rig_begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    struct mapped before = last_of_all(anna);
    manual_fail(&rig.manual, MANUAL_ATTACH, 1, -ENOMEM);
    CHECK_CONTAINS(create_refused(bert, 1000, SCAND_PLACE_HOST, SCAND_NO_MEMORY),
                   "could not make new memory: Cannot allocate memory; try again later");
    CHECK_EQ(bert->client->buffer_count, 0);
    CHECK_EQ(rig.service.stats.buffers_open, 0);
    struct mapped after = create_mapped(bert, 1000);
    CHECK(after.inode != before.inode);
    CHECK_EQ(after.bytes[0], 0);
    unmap(&before), unmap(&after);
    rig_end();
}

/*
 * Device buffers.
 */

static void device_buffers(void)
{
    struct msg_buffer_create_result result = {0};
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint32_t msgid = create_asked(user, 1000, SCAND_PLACE_DEVICE);
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_create, &result));
    CHECK_EQ(result.fds, 0);
    CHECK_EQ(rig.manual.allocated_bytes, 1000);
    CHECK(release(user, result.buffer));
    CHECK_EQ(rig.manual.allocated_bytes, 1000);
    CHECK_EQ(rig.service.stats.device_bytes, 0);
    rig_run_work();
    CHECK_EQ(rig.manual.allocated_bytes, 0);
    rig_end();
}

static void device_memory_that_is_not_there(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    user_create(user, 1000, SCAND_PLACE_DEVICE);
    CHECK_CONTAINS(create_refused(user, MIB(1), SCAND_PLACE_DEVICE, SCAND_QUOTA),
                   "no 1048576 bytes of device memory: 1000 of 1048576 that scand may take are taken");
    manual_fail(&rig.manual, MANUAL_ALLOCATE, 1, -ENOMEM);
    CHECK_CONTAINS(create_refused(user, 1, SCAND_PLACE_DEVICE, SCAND_NO_MEMORY),
                   "no 1 bytes of device memory: the device has no more to give");
    CHECK_EQ(user->client->buffer_count, 1);
    CHECK(user_create(user, 1, SCAND_PLACE_DEVICE));
    rig_end();
}

/*
 * Imports.
 */

static int sparse_memfd(uint64_t size_bytes)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)size_bytes), 0);
    return fd;
}

static uint32_t import_asked(struct caller *user, uint64_t size_bytes, uint64_t segment, const int *fds, size_t count)
{
    struct msg_buffer_import_params params = {size_bytes, segment, count};
    return ask_with(user, METHOD_buffer_import, &params, fds, count);
}

/* Imports `count` new memfds of fd_bytes each. */
static const char *import_refused(struct caller *user, uint64_t size_bytes, uint64_t segment, uint64_t fd_bytes,
                                  size_t count, enum scand_status status)
{
    int fds[4] = {-1, -1, -1, -1};
    for (size_t i = 0; i < count; i++)
        fds[i] = sparse_memfd(fd_bytes);
    uint32_t msgid = import_asked(user, size_bytes, segment, fds, count);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    rig_run_work();
    return refusal(user, msgid, status);
}

static void imports(void)
{
    struct msg_buffer_id id = {0};
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fd = sparse_memfd(5000);
    uint64_t before = rig.manual.attached_bytes;
    uint32_t msgid = import_asked(user, 4999, 0, &fd, 1);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_import, &id));
    CHECK_EQ(pwrite(fd, "x", 1, 4998), 1);
    CHECK_EQ(((char *)buffer_of(user, id.buffer)->span.base)[4998], 'x');
    CHECK(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
    CHECK(ftruncate(fd, 10) != 0);
    CHECK_EQ(rig.manual.attached_bytes, before + 8192);
    CHECK(release(user, id.buffer));
    rig_run_work();
    CHECK_EQ(rig.manual.attached_bytes, before);
    close(fd);
    rig_end();
}

static void imports_of_several(void)
{
    struct msg_buffer_id id = {0};
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fds[3] = {sparse_memfd(8192), sparse_memfd(8192), sparse_memfd(1)};
    uint32_t msgid = import_asked(user, 16385, 8192, fds, 3);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_import, &id));
    CHECK_EQ(pwrite(fds[1], "b", 1, 0), 1);
    CHECK_EQ(pwrite(fds[2], "c", 1, 0), 1);
    const char *bytes = buffer_of(user, id.buffer)->span.base;
    CHECK_EQ(bytes[8192], 'b');
    CHECK_EQ(bytes[16384], 'c');
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    rig_end();
}

static void imports_of_wrong_sizes(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    CHECK_CONTAINS(import_refused(user, 0, 0, 4096, 1, SCAND_INVALID), "buffer.import: \"size\" is 0 bytes");
    CHECK_CONTAINS(import_refused(user, LIMIT_IMPORT_BYTES + 1, 0, 4096, 1, SCAND_INVALID),
                   "allowed: 1 to 549755813888");
    CHECK_CONTAINS(import_refused(user, 1, 0, 0, 0, SCAND_DESCRIPTOR), "\"fds\" is 0; send at least one memfd");
    CHECK_CONTAINS(import_refused(user, 4096, LIMIT_IMPORT_BYTES + 1, 4096, 1, SCAND_INVALID),
                   "\"segment\" is 549755813889 bytes; allowed: at most");
    CHECK_CONTAINS(import_refused(user, 4096, 0, 4096, 2, SCAND_INVALID),
                   "\"segment\" is 0 bytes; allowed: a multiple of");
    CHECK_CONTAINS(import_refused(user, 4096, 1000, 4096, 2, SCAND_INVALID), "\"segment\" is 1000 bytes");
    CHECK_CONTAINS(import_refused(user, 8193, 4096, 4096, 2, SCAND_INVALID),
                   "2 descriptors of 4096 bytes do not make 8193 bytes");
    CHECK_CONTAINS(import_refused(user, 4096, 4096, 4096, 2, SCAND_INVALID), "every descriptor must be needed");
    CHECK_CONTAINS(import_refused(user, 4097, 4096, 4097, 1, SCAND_INVALID),
                   "1 descriptors of 4096 bytes do not make 4097");
    CHECK_CONTAINS(import_refused(user, 4097, 0, 4096, 1, SCAND_DESCRIPTOR), "has 4096 bytes; needed: 4097");
    CHECK_CONTAINS(import_refused(user, 8192, 4096, 4095, 2, SCAND_DESCRIPTOR), "has 4095 bytes; needed: 4096");
    CHECK_EQ(user->client->buffer_count, 0);
    CHECK(!user->over);
    rig_end();
}

/* Imports the first pages of memfds, and returns whether the loop leaves them alone. */
static bool import_is_large(struct caller *user, uint64_t fd_bytes, size_t count)
{
    int fds[2] = {-1, -1};
    for (size_t i = 0; i < count; i++)
        fds[i] = sparse_memfd(fd_bytes);
    uint32_t msgid = import_asked(user, count * 4096, 4096, fds, count);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_import, NULL));
    return user->client->buffers && user->client->buffers->span.large;
}

/* What counts is how much its client can free at once, however little of it is imported. */
static void large_memory_is_known(void)
{
    rig_begin_with(3, 2, 4);
    struct caller *user = user_greet(ANNA);
    CHECK(!import_is_large(user, LIMIT_TOUCHED_BYTES, 1));
    CHECK(import_is_large(user, LIMIT_TOUCHED_BYTES + 1, 1));
    CHECK(!import_is_large(user, LIMIT_TOUCHED_BYTES / 2, 2));
    CHECK(import_is_large(user, LIMIT_TOUCHED_BYTES / 2 + 1, 2));
    CHECK(!buffer_of(user, user_create(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST))->span.large);
    CHECK(buffer_of(user, user_create(user, LIMIT_LARGE_SEGMENT_BYTES + 1, SCAND_PLACE_HOST))->span.large);
    rig_end();
}

static void imports_of_other_files(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fds[2] = {open("/dev/null", O_RDWR | O_CLOEXEC), sparse_memfd(4096)};
    uint32_t msgid = import_asked(user, 4096, 0, &fds[0], 1);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "no memfd");
    CHECK_EQ(fcntl(fds[1], F_ADD_SEALS, F_SEAL_WRITE), 0);
    msgid = import_asked(user, 4096, 0, &fds[1], 1);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "sealed against writing");
    close(fds[0]);
    close(fds[1]);
    rig_end();
}

/* Imports of several units are of whole pages, and the last unit is the rest. */
static void imports_of_several_units(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t before = rig.manual.attached_bytes, count = rig.manual.attached_count;
    CHECK_CONTAINS(import_refused(user, 2 * PIN_UNIT_BYTES + 1, 0, 2 * PIN_UNIT_BYTES + 1, 1, SCAND_OK), "no failure");
    const struct buffer *buffer = user->client->buffers;
    REQUIRE(buffer);
    CHECK_EQ(buffer->span.pin_unit_bytes, PIN_UNIT_BYTES);
    CHECK_EQ(rig.manual.attached_count, count + 3);
    CHECK_EQ(rig.manual.attached_bytes, before + 2 * PIN_UNIT_BYTES + 4096);
    CHECK(release(user, buffer->id));
    rig_run_work();
    CHECK_EQ(rig.manual.attached_bytes, before);
    rig_end();
}

static void imports_that_cannot_be_pinned(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t before = rig.manual.attached_bytes;
    manual_fail(&rig.manual, MANUAL_ATTACH, 1, -ENOMEM);
    CHECK_CONTAINS(import_refused(user, MIB(64), 0, MIB(64), 1, SCAND_OK), "no failure");
    const struct buffer *buffer = user->client->buffers;
    REQUIRE(buffer);
    CHECK(buffer->span.staged);
    CHECK_EQ(rig.service.stats.staged_bytes, MIB(64));
    CHECK_EQ(rig.manual.attached_bytes, before);
    CHECK(release(user, buffer->id));
    CHECK_EQ(rig.service.stats.staged_bytes, 0);
    rig_end();
}

/* An import on a lost device fails, since staging would be of no use. */
static void import_on_a_lost_device(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    manual_fail(&rig.manual, MANUAL_ATTACH, 1, -EOWNERDEAD);
    CHECK_CONTAINS(import_refused(user, 4096, 0, 4096, 1, SCAND_LOST), "could not pin 4096 bytes");
    rig_end();
}

/* Answers with descriptors that nobody reads: no more are made until they have been taken. */
static void descriptors_that_are_read_late(void)
{
    enum { MANY = LIMIT_OUTBOX_FDS };
    rig_begin();
    struct caller *user = user_greet(ANNA);
    struct msg_buffer_create_params create = {.size = 1, .place = SCAND_PLACE_HOST};
    struct msg_buffer_create_result made;
    uint32_t first = user->last_msgid + 1;
    for (uint64_t i = 1; i <= MANY; i++) {
        ask(user, METHOD_buffer_create, &create);
        ask(user, METHOD_buffer_release, &(struct msg_buffer_id){i});
    }
    CHECK(user->client->paused && !user->over);
    for (uint32_t i = 0; i < MANY; i++) {
        REQUIRE(answered(user, first + 2 * i, METHOD_buffer_create, &made));
        CHECK_EQ(made.buffer, i + 1);
        REQUIRE(answered(user, first + 2 * i + 1, METHOD_buffer_release, NULL));
        CHECK(service_input(user->client, UINT64_MAX) >= 0);
    }
    rig_end();
}

/* A buffer whose descriptors cannot be sent is none: the client may try again. */
static void descriptors_that_cannot_be_sent(void)
{
    struct rlimit files, few;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    rig_begin();
    struct caller *user = user_greet(ANNA);
    few = files;
    few.rlim_cur = 1; /* those that are open stay */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    uint32_t msgid = create_asked(user, 1, SCAND_PLACE_HOST);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_BUSY),
                   "buffer.create: its descriptors cannot be sent now: Too many open files; try again in 20 ms");
    CHECK_EQ(rig.service.stats.buffers_open, 0);
    CHECK_EQ(user_create(user, 1, SCAND_PLACE_HOST), 1);
    CHECK(!user->over);
    rig_end();
}

/* Slow work of one request does not hold up the next. */
static void answers_do_not_wait_for_slow_work(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fd = sparse_memfd(4096);
    uint32_t slow = import_asked(user, 4096, 0, &fd, 1), slower = create_asked(user, 1, SCAND_PLACE_DEVICE);
    close(fd);
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    struct work *work = rig_pop_work(1);
    rig_help(work);
    CHECK(answered(user, slower, METHOD_buffer_create, NULL));
    rig_run_work();
    CHECK(answered(user, slow, METHOD_buffer_import, NULL));
    rig_end();
}

/* Clients that go while work is under way. */

static void gone_while_a_buffer_is_made(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++)
        for (int failing = 0; failing < 2; failing++) {
            rig_begin();
            struct caller *user = user_greet(ANNA);
            manual_fail(&rig.manual, MANUAL_ALLOCATE, (unsigned)failing, -ENOMEM);
            create_asked(user, 1000, SCAND_PLACE_DEVICE);
            rig_go_meanwhile(user, moment);
            CHECK_EQ(rig.manual.allocated_bytes, 0);
            rig_end();
        }
}

static void gone_while_an_import_is_pinned(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++)
        for (int failing = 0; failing < 2; failing++) {
            rig_begin();
            struct caller *user = user_greet(ANNA);
            int fd = sparse_memfd(4096);
            manual_fail(&rig.manual, MANUAL_ATTACH, (unsigned)failing, -ENOMEM);
            import_asked(user, 4096, 0, &fd, 1);
            close(fd);
            rig_go_meanwhile(user, moment);
            CHECK_EQ(rig.manual.attached_count, RIG_READY);
            rig_end();
        }
}

static void gone_while_memory_is_renewed(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++) {
        rig_begin();
        struct caller *user = user_greet(ANNA), *other = user_greet(BERT);
        create_asked(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST);
        uint32_t msgid = create_asked(other, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST);
        CHECK_CONTAINS(refusal(other, msgid, SCAND_BUSY), "user 1001 has 0 bytes of the pool");
        rig_go_meanwhile(user, moment);
        CHECK(user_create(other, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST));
        rig_end();
    }
}

static const struct test tests[] = {
    TEST(both_sides_see_the_same_memory),
    TEST(several_segments_in_order),
    TEST(ready_memory_needs_no_helper),
    TEST(sizes_are_checked),
    TEST(a_full_pool_is_busy),
    TEST(the_pool_is_shared),
    TEST(too_many_buffers),
    TEST(too_many_buffers_asked_for),
    TEST(releases),
    TEST(the_same_user_gets_it_back),
    TEST(another_user_gets_other_memory),
    TEST(renewal_that_fails),
    TEST(device_buffers),
    TEST(device_memory_that_is_not_there),
    TEST(imports),
    TEST(imports_of_several),
    TEST(imports_of_wrong_sizes),
    TEST(large_memory_is_known),
    TEST(imports_of_other_files),
    TEST(imports_of_several_units),
    TEST(imports_that_cannot_be_pinned),
    TEST(import_on_a_lost_device),
    TEST(descriptors_that_are_read_late),
    TEST(descriptors_that_cannot_be_sent),
    TEST(answers_do_not_wait_for_slow_work),
    TEST(gone_while_a_buffer_is_made),
    TEST(gone_while_an_import_is_pinned),
    TEST(gone_while_memory_is_renewed),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

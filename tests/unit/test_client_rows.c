/* libscand's lists for programs that were built with another version of scand.h, whose structs are shorter or longer.
 */
#include <string.h>

#include "tests/unit/client_rig.h"

#define ROWS  3
#define EXTRA 64 /* by which a later version's are longer */

/* The largest of them. */
union row {
    struct scand_histogram histogram;
    struct scand_kernel kernel;
    struct scand_client_info client;
};

static uint8_t array[ROWS * (sizeof(union row) + EXTRA) + EXTRA];

struct page {
    size_t count;
    uint64_t next;
};

static int devices(void *rows, size_t row_bytes, struct page *page)
{
    return scand_devices(session, rows, row_bytes, ROWS, &page->count);
}

static int kernels(void *rows, size_t row_bytes, struct page *page)
{
    return scand_kernels(session, rows, row_bytes, ROWS, &page->count);
}

static int stats(void *rows, size_t row_bytes, struct page *page)
{
    return scand_stats(session, rows, row_bytes, ROWS, &page->count);
}

static int histograms(void *rows, size_t row_bytes, struct page *page)
{
    return scand_histograms(session, rows, row_bytes, ROWS, &page->count);
}

static int jobs(void *rows, size_t row_bytes, struct page *page)
{
    return scand_jobs(session, 0, rows, row_bytes, ROWS, &page->count, &page->next);
}

static int clients(void *rows, size_t row_bytes, struct page *page)
{
    return scand_clients(session, 0, rows, row_bytes, ROWS, &page->count, &page->next);
}

static int trace(void *rows, size_t row_bytes, struct page *page)
{
    return scand_trace(session, 0, rows, row_bytes, ROWS, &page->count, &page->next);
}

static int users(void *rows, size_t row_bytes, struct page *page)
{
    return scand_users(session, rows, row_bytes, ROWS, &page->count);
}

static const struct list {
    int (*ask)(void *rows, size_t row_bytes, struct page *page);
    size_t row_bytes;
} lists[] = {
    {devices, sizeof(struct scand_device)}, {kernels, sizeof(struct scand_kernel)},
    {stats, sizeof(struct scand_counter)},  {histograms, sizeof(struct scand_histogram)},
    {jobs, sizeof(struct scand_job_info)},  {clients, sizeof(struct scand_client_info)},
    {trace, sizeof(struct scand_event)},    {users, sizeof(struct scand_user_info)},
};
#define LISTS (sizeof lists / sizeof lists[0])

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* Rows of this size hold what the library's own begin with, and then zeros; nothing behind them is touched. */
static void check_rows(const struct list *list, size_t row_bytes)
{
    static uint8_t own[sizeof array];
    const size_t known = row_bytes < list->row_bytes ? row_bytes : list->row_bytes;
    struct page page = {0}, own_page = {0};
    REQUIRE(row_bytes <= sizeof(union row) + EXTRA);
    CHECK_EQ(list->ask(own, list->row_bytes, &own_page), SCAND_OK);
    memset(array, 0xa5, sizeof array);
    CHECK_EQ(list->ask(array, row_bytes, &page), SCAND_OK);
    CHECK(page.count == own_page.count && page.count >= 2);
    for (size_t i = 0; i < page.count; i++) {
        const uint8_t *row = array + i * row_bytes;
        CHECK(memcmp(row, own + i * list->row_bytes, known) == 0);
        CHECK(all_are(row + known, row_bytes - known, 0));
    }
    CHECK(all_are(array + page.count * row_bytes, sizeof array - page.count * row_bytes, 0xa5));
}

static void of_another_version(void)
{
    rig_begin();
    for (size_t i = 0; i < LISTS; i++) {
        check_rows(&lists[i], 8);
        check_rows(&lists[i], lists[i].row_bytes - 8);
        check_rows(&lists[i], lists[i].row_bytes + EXTRA);
    }
    rig_end();
}

static void without_a_size(void)
{
    rig_begin();
    for (size_t i = 0; i < LISTS; i++) {
        struct page page = {.count = 99, .next = 99};
        CHECK_EQ(lists[i].ask(array, 0, &page), SCAND_INVALID);
        CHECK_CONTAINS(scand_message(session), "row_bytes is 0: give the size of an element");
        CHECK(page.count == 99 && page.next == 99);
    }
    rig_end();
}

static void words_and_back(void)
{
    CHECK(strcmp(scand_word(SCAND_LIST_DTYPE, SCAND_DTYPE_IBM32), "ibm32") == 0);
    CHECK(strcmp(scand_word(SCAND_LIST_PRIORITY, SCAND_PRIORITY_HIGH), "high") == 0);
    CHECK(!scand_word(SCAND_LIST_DTYPE, SCAND_DTYPE_COUNT) && !scand_word(SCAND_LIST_DTYPE, -1));
    CHECK(!scand_word((enum scand_list)77, 0) && scand_word_find((enum scand_list)77, "f32") == -1);
    CHECK_EQ(scand_word_find(SCAND_LIST_OPERATOR, "affine"), SCAND_OPERATOR_AFFINE);
    CHECK_EQ(scand_word_find(SCAND_LIST_OPERATOR, "affin"), -1);
    for (int list = SCAND_LIST_OPERATION; list <= SCAND_LIST_PRIORITY; list++)
        for (int value = 0; scand_word(list, value); value++)
            CHECK_EQ(scand_word_find(list, scand_word(list, value)), value);
}

static void dtypes(void)
{
    CHECK_EQ(scand_dtype_bytes(SCAND_DTYPE_I16BE), 2);
    CHECK_EQ(scand_dtype_bytes(SCAND_DTYPE_COUNT), 0);
    CHECK_EQ(scand_dtype_class(SCAND_DTYPE_I32BE), SCAND_CLASS_F64);
    CHECK_EQ(scand_accumulator_of(SCAND_ACCUMULATOR_AUTO, SCAND_DTYPE_F16, NULL), SCAND_ACCUMULATOR_F64);
    CHECK_EQ(scand_accumulator_of(SCAND_ACCUMULATOR_AUTO, SCAND_DTYPE_F16, "blelloch"), SCAND_ACCUMULATOR_F32);
    CHECK_EQ(scand_accumulator_of(SCAND_ACCUMULATOR_AUTO, SCAND_DTYPE_U32, NULL), SCAND_ACCUMULATOR_EXACT);
    CHECK_EQ(scand_accumulator_of(SCAND_ACCUMULATOR_F2, SCAND_DTYPE_F64, NULL), SCAND_ACCUMULATOR_F2);
    CHECK_EQ(scand_dtype_class((enum scand_dtype)99999), SCAND_CLASS_F32);
    CHECK_EQ(scand_accumulator_of(SCAND_ACCUMULATOR_AUTO, (enum scand_dtype)99999, NULL), SCAND_ACCUMULATOR_AUTO);
}

static void metrics_as_text(void)
{
    char *text = NULL;
    rig_begin();
    CHECK_EQ(scand_metrics(session, &text), SCAND_OK);
    CHECK(text && strstr(text, "scand_jobs_submitted_total 42\n"));
    free(text);
    text = NULL;
    fake_stop(&fake);
    CHECK_EQ(scand_metrics(session, &text), SCAND_UNAVAILABLE);
    CHECK(!text);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(of_another_version), TEST(without_a_size),
        TEST(words_and_back),     TEST(dtypes),
        TEST(metrics_as_text),    TEST_END,
    };
    return test_main(argc, argv, tests);
}

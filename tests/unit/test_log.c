/* The daemon's log, read by a person or by the journal. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/process/log.h"
#include "tests/check.h"

/* Returns what is logged to a file. $JOURNAL_STREAM is the given text or, where that is NULL, the file's own. */
static const char *logged(const char *stream)
{
    static char text[256];
    char own[64];
    struct stat status;
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO), fd = file ? fileno(file) : -1;
    CHECK(fd >= 0 && saved >= 0 && fstat(fd, &status) == 0);
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    setenv("JOURNAL_STREAM", stream ? stream : own, 1);
    dup2(fd, STDERR_FILENO);
    log_info("%d is told", 1);
    log_error("%s is wrong", "that");
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    fclose(file);
    return text;
}

static void people_read_words(void)
{
    const char *streams[] = {"", "8:1", "journal"};
    for (size_t i = 0; i < 3; i++)
        CHECK(strcmp(logged(streams[i]), "scand: 1 is told\nscand: error: that is wrong\n") == 0);
}

static void the_journal_reads_priorities(void)
{
    CHECK(strcmp(logged(NULL), "<6>1 is told\n<3>that is wrong\n") == 0);
}

/*
 * Lines that clients bring about.
 */

static int64_t now_ms;

static int64_t test_ms(void)
{
    return now_ms;
}

/* Returns what act() logs. */
static const char *logged_by(void (*act)(void))
{
    static char text[16384];
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO), fd = file ? fileno(file) : -1;
    CHECK(fd >= 0 && saved >= 0);
    unsetenv("JOURNAL_STREAM");
    dup2(fd, STDERR_FILENO);
    act();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    fclose(file);
    return text;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count;
}

static void flood(void)
{
    for (int i = 0; i < 1000; i++)
        log_cause(LOG_CAUSE_LATE, 7, "line %d", i);
}

static void one_more(void)
{
    log_cause(LOG_CAUSE_LATE, 7, "again");
}

static void two_others(void)
{
    log_cause(LOG_CAUSE_LATE, 8, "another user");
    log_cause(LOG_CAUSE_UNREAD, 7, "another cause");
}

static void the_first_line_and_a_count(void)
{
    now_ms = 5;
    log_use_clock(test_ms);
    CHECK(strcmp(logged_by(flood), "scand: line 0\n") == 0);
    CHECK(strcmp(logged_by(two_others), "scand: another user\nscand: another cause\n") == 0);
    now_ms += LOG_EVERY_MS - 1;
    CHECK(strcmp(logged_by(one_more), "") == 0);
    now_ms++;
    CHECK(strcmp(logged_by(one_more), "scand: again (1000 more lines like it were left out)\n") == 0);
    now_ms += LOG_EVERY_MS;
    CHECK(strcmp(logged_by(one_more), "scand: again\n") == 0);
    log_use_clock(NULL);
}

static void many_users(void)
{
    for (uint32_t uid = 0; uid < 10000; uid++)
        log_cause(LOG_CAUSE_TURNED_AWAY, uid, "user %u", (unsigned)uid);
}

static void other_users(void)
{
    for (uint32_t uid = 20000; uid < 30000; uid++)
        log_cause(LOG_CAUSE_TURNED_AWAY, uid, "user %u", (unsigned)uid);
}

/* However many users do it, lines are bounded; a place that goes to another user says what it has left out. */
static void lines_of_all_users_are_bounded(void)
{
    now_ms = 5;
    log_use_clock(test_ms);
    CHECK_EQ(count_lines(logged_by(many_users)), LOG_PLACES + 1);
    CHECK_EQ(count_lines(logged_by(many_users)), 0);
    now_ms += LOG_EVERY_MS;
    const char *text = logged_by(other_users);
    CHECK(count_lines(text) <= 2 * LOG_PLACES + 1);
    CHECK_CONTAINS(text, "lines like earlier ones about user 1 were left out");
    CHECK_CONTAINS(text, "more lines like it were left out)");
    log_use_clock(NULL);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(people_read_words),
        TEST(the_journal_reads_priorities),
        TEST(the_first_line_and_a_count),
        TEST(lines_of_all_users_are_bounded),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

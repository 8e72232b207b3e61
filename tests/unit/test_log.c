/* The daemon's log, read by a person or by the journal. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/edge/log.h"
#include "tests/check.h"

/* What is logged to a file, $JOURNAL_STREAM being the given text, or, where it is NULL, that of the file. */
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

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(people_read_words),
        TEST(the_journal_reads_priorities),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

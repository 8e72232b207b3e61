/* libscand where no daemon answers and libscand-local cannot be used: its messages about it. */
#include <dlfcn.h>

#include <scand/scand.h>

#include "protocol/local.h"
#include "tests/unit/client_rig.h"

#define NOWHERE "/nonexistent/scand.sock"

static const struct local_library older = {.release = "0.0.9"};
static bool library_is_there; /* of another version */

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
    static int handle;
    CHECK_CONTAINS(name, "libscand-local.so.0.1");
    CHECK(flags & RTLD_NODELETE);
    return library_is_there ? &handle : NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
    CHECK(handle != NULL);
    CHECK_CONTAINS(name, "scand_local_library");
    return (void *)&older;
}

static void check_refused(int64_t local, const char *why, const char *help)
{
    struct scand_options *options = NULL;
    struct scand *opened = NULL;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "local", local), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, NOWHERE, NULL, &opened), SCAND_UNAVAILABLE);
    CHECK(!opened);
    if (local == SCAND_LOCAL_FALLBACK)
        CHECK_CONTAINS(scand_connect_message(), "no daemon at " NOWHERE);
    CHECK_CONTAINS(scand_connect_message(), why);
    CHECK_CONTAINS(scand_connect_message(), help);
    scand_options_destroy(options);
}

static void test_no_library(void)
{
    library_is_there = false;
    check_refused(SCAND_LOCAL_FALLBACK, "libscand-local.so.0.1", "install the package libscand-local0.1");
    check_refused(SCAND_LOCAL_ALWAYS, "libscand-local.so.0.1", "install the package libscand-local0.1");
}

static void test_another_version(void)
{
    library_is_there = true;
    check_refused(SCAND_LOCAL_FALLBACK, "is of version 0.0.9, and libscand of " SCAND_VERSION_TEXT, "of one version");
}

/* A program that wants small jobs computed here is told at once, although there is a daemon. */
static void test_small_jobs(void)
{
    struct scand_options *options = NULL;
    struct scand *none = NULL;
    rig_begin();
    library_is_there = false;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "small_jobs", SCAND_SMALL_JOBS_HERE), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK(!none);
    CHECK_CONTAINS(scand_connect_message(),
                   "small jobs: cannot compute in this process, for which libscand-local.so.0.1");
    CHECK_CONTAINS(scand_connect_message(), "install the package libscand-local0.1");
    library_is_there = true;
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "is of version 0.0.9");
    scand_options_destroy(options);
    rig_end();
}

static const struct test tests[] = {TEST(test_no_library), TEST(test_another_version), TEST(test_small_jobs), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

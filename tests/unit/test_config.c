/* Settings and the configuration file. */
#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/process/config.h"
#include "tests/check.h"

static struct config config;
static struct error error;

static int parse(const char *text)
{
    error = (struct error){0};
    return config_parse("FILE", text, strlen(text), &config, &error);
}

/* Returns what is wrong with the text; "(nothing)" when it is accepted. */
static const char *wrong(const char *text)
{
    return parse(text) == -EINVAL && error.code == -EINVAL ? error.message : "(nothing)";
}

static void settings_are_read(void)
{
    const uint64_t *number = config.settings.number;
    CHECK_EQ(parse("# A comment, and an empty line.\n\n"
                   "[daemon]\n"
                   "socket = /run/other.sock\r\n"
                   "  device=cuda:3\n"
                   "\tpool = 2G ; as a remark\n"
                   "device-memory : 300M\n"
                   "threads = 0\n"
                   "; another comment\n"
                   "[quota]\n"
                   "device-memory = 1k\n"
                   "jobs = 7\n"
                   "jobs = 8"),
             0);
    CHECK(strcmp(config.settings.socket, "/run/other.sock") == 0);
    CHECK_EQ(number[SETTING_DEVICE], device_choice(DEVICE_CUDA, 1 << 3));
    CHECK_EQ(number[SETTING_POOL], GIB(2));
    CHECK_EQ(number[SETTING_DEVICE_MEMORY], MIB(300));
    CHECK_EQ(number[SETTING_QUOTA_DEVICE_MEMORY], 1024);
    CHECK_EQ(number[SETTING_QUOTA_JOBS], 8); /* the last line counts */
    CHECK(config.settings.given[SETTING_THREADS] && config.settings.given[SETTING_SOCKET]);
    CHECK(!config.settings.given[SETTING_QUOTA_HOST_MEMORY] && !config.settings.given[SETTING_WEIGHT]);
    CHECK_EQ(config.user_count, 0);
}

static void nothing_is_given(void)
{
    static const char *const texts[] = {
        "", "\n", "[daemon]\n", "[quota]", "# only a comment", "\xef\xbb\xbf[daemon]\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_EQ(parse(texts[i]), 0);
        for (enum setting setting = 0; setting < SETTING_COUNT; setting++)
            CHECK(!config.settings.given[setting]);
    }
}

static void users_have_settings(void)
{
    char text[512];
    const struct passwd *root = getpwuid(0);
    if (!root) {
        check_skipped = "this system does not know user 0";
        return;
    }
    snprintf(text, sizeof text, "[user 1000]\nweight = 1000\n[user %s]\njobs = 0\n[user 1000]\nconnections = 5\n",
             root->pw_name);
    CHECK_EQ(parse(text), 0);
    CHECK_EQ(config.user_count, 2);
    CHECK_EQ(config.users[0].uid, 1000);
    CHECK_EQ(config.users[0].settings.number[SETTING_WEIGHT], 1000);
    CHECK_EQ(config.users[0].settings.number[SETTING_QUOTA_CONNECTIONS], 5);
    CHECK(!config.users[0].settings.given[SETTING_QUOTA_JOBS]);
    CHECK_EQ(config.users[1].uid, 0);
    CHECK(config.users[1].settings.given[SETTING_QUOTA_JOBS]);
    CHECK_EQ(config.users[1].settings.number[SETTING_QUOTA_JOBS], 0);
    CHECK(!config.settings.given[SETTING_QUOTA_JOBS]);
}

static void mistakes_are_named(void)
{
    static const struct {
        const char *text, *message;
    } table[] = {
        {"[daemon]\npool = 1T\n", "FILE:2: [daemon] \"pool\" is \"1T\"; allowed: 0 to 256G"},
        {"[daemon]\npool =\n", "FILE:2: [daemon] \"pool\" is \"\"; allowed: 0 to 256G"},
        {"[daemon]\npool = 1GB\n",
         "is \"1GB\"; allowed: 0 to 256G, a whole number of bytes, or of K, M, G, as in 512M"},
        {"[daemon]\ndevice = cpu:99\n", "COUNT from 1 to 32, N from 0 to 31 and each once"},
        {"[daemon]\n\n#\npool = -1\n", "FILE:4: [daemon] \"pool\" is \"-1\""},
        {"[daemon]\npool = 1.5G\n", "\"pool\" is \"1.5G\""},
        {"[daemon]\npool = 1G # no remark\n", "\"pool\" is \"1G # no remark\""},
        {"[daemon]\npool = 18446744073709551616\n", "\"pool\" is \"18446744073709551616\""},
        {"[daemon]\npool = 99999999999999999999G\n", "\"pool\" is \"99999999999999999999G\""},
        {"[daemon]\nthreads = two\n", "\"threads\" is \"two\"; allowed: 0 to 1024"},
        {"[daemon]\nthreads = 0x10\n", "\"threads\" is \"0x10\""},
        {"[daemon]\nthreads = 4K\n", "\"threads\" is \"4K\""},
        {"[daemon]\ndevice = gpu\n", "\"device\" is \"gpu\"; allowed: auto, all, cpu, cpu:COUNT, cuda, cuda:N,N"},
        {"[daemon]\ndevice = cuda:-1\n", "\"device\" is \"cuda:-1\""},
        {"[daemon]\nsocket =\n", "FILE:2: [daemon] \"socket\" is \"\": the socket path is empty"},
        {"[daemon]\nmetrics-listen = 0.0.0.0:9464\n", "FILE:2: [daemon] \"metrics-listen\" is \"0.0.0.0:9464\"; "
                                                      "allowed: off, 127.0.0.1:PORT, localhost:PORT, [::1]"},
        {"[daemon]\nmetrics-listen = 127.0.0.1:0\n", "\"metrics-listen\" is \"127.0.0.1:0\""},
        {"[daemon]\npoool = 1G\n",
         "FILE:2: [daemon] has no \"poool\"; allowed: socket, socket-mode, socket-group, "
         "device, pool, device-memory, threads, chunk, chunks, metrics-listen, metrics-users, watchdog, drain"},
        {"[daemon]\nsocket-mode = 0466\n", "\"socket-mode\" is \"0466\"; allowed: auto, or octal, 0600 to 0777"},
        {"[daemon]\nsocket-mode = 1666\n", "\"socket-mode\" is \"1666\""},
        {"[daemon]\nsocket-mode = 0680\n", "\"socket-mode\" is \"0680\""},
        {"[daemon]\nsocket-mode = -660\n", "\"socket-mode\" is \"-660\""},
        {"[daemon]\nsocket-mode =\n", "\"socket-mode\" is \"\""},
        {"[daemon]\nsocket-group = no such group\n", "\"socket-group\" is \"no such group\"; allowed: own, or a group"},
        {"[daemon]\nsocket-group = 4294967295\n", "\"socket-group\" is \"4294967295\""},
        {"[daemon]\nwatchdog = 3601\n", "\"watchdog\" is \"3601\"; allowed: 0 to 3600 seconds"},
        {"[daemon]\ndrain = 1h\n", "\"drain\" is \"1h\"; allowed: 0 to 86400 seconds"},
        {"[daemon]\njobs = 1\n", "FILE:2: [daemon] has no \"jobs\""},
        {"[daemon]\nPOOL = 1\n", "[daemon] has no \"POOL\""},
        {"[quota]\npool = 1G\n", "FILE:2: [quota] has no \"pool\"; allowed: host-memory, device-memory, jobs, "
                                 "connections, pinned-memory, weight"},
        {"[quota]\njobs = 4097\n", "FILE:2: [quota] \"jobs\" is \"4097\"; allowed: 0 to 4096"},
        {"[quota]\nconnections = 1025\n", "\"connections\" is \"1025\"; allowed: 0 to 1024"},
        {"[quota]\nhost-memory = 1025G\n", "\"host-memory\" is \"1025G\"; allowed: 0 to 1024G"},
        {"[quota]\nweight = 0\n", "\"weight\" is \"0\"; allowed: 1 to 1000"},
        {"[user 7]\nweight = 1001\n", "FILE:2: [user 7] \"weight\" is \"1001\"; allowed: 1 to 1000"},
        {"[user 7]\nweight = much\n", "\"weight\" is \"much\""},
        {"[user 7]\nthreads = 1\n", "FILE:2: [user 7] has no \"threads\"; allowed: host-memory"},
        {"[user no/body]\njobs = 1\n", "FILE:1: [user no/body]: no such user; allowed: a name"},
        {"[user 4294967295]\njobs = 1\n", "or a uid from 0 to 4294967294"},
        {"[user -1]\njobs = 1\n", "[user -1]: no such user"},
        {"[user ]\njobs = 1\n", "FILE:1: [user ]: no such user"},
        {"[Daemon]\npool = 1\n", "FILE:1: no section [Daemon]; allowed: [daemon], [quota], [user NAME], [user UID]"},
        {"[qouta]\n[daemon]\npool = 1G\n", "FILE:1: no section [qouta]"}, /* though it sets nothing */
        {"[daemon]\npool = 1G\n  [users 7]", "FILE:3: no section [users 7]"},
        {"[]\npool = 1\n", "FILE:1: before the first section"},
        {"pool = 1\n", "FILE:1: before the first section there is nothing to set; begin with [daemon]"},
        {"[daemon]\npool 1G\n", "FILE:2: this is neither \"[SECTION]\" nor \"NAME = VALUE\""},
        {"[daemon\npool = 1G\n", "FILE:1: this is neither"},
        {"[daemon]\nrubbish\npool = no\n", "FILE:2: this is neither"}, /* the first mistake */
        {"[daemon]\npool = no\nrubbish\n", "FILE:2: [daemon] \"pool\" is \"no\""},
        {"[daemon]\npool = 1\x1b[2J\n", "FILE:2: a control character in the line"},
        {"[daemon]\npool = 1\r2\n", "FILE:2: a control character"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        CHECK_CONTAINS(wrong(table[i].text), table[i].message);
}

static void a_zero_byte_ends_nothing(void)
{
    static const char text[] = "[quota]\njobs = 1\0\njobs = no\n";
    CHECK_EQ(config_parse("FILE", text, sizeof text - 1, &config, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "FILE:2: a control character");
}

static void lines_are_bounded(void)
{
    char text[1024], line[512];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    snprintf(text, sizeof text, "[daemon]\n%s = 1\n", line);
    CHECK_CONTAINS(wrong(text), "FILE:2: a line of 515 bytes; allowed: up to ");
    snprintf(text, sizeof text, "# %s\n[quota]\njobs = 3\n", line); /* but comments are not */
    CHECK_EQ(parse(text), 0);
    CHECK_EQ(config.settings.number[SETTING_QUOTA_JOBS], 3);
    snprintf(text, sizeof text, "[daemon]\nsocket = /%.106s\n", line);
    CHECK_EQ(parse(text), 0);
    CHECK_EQ(strlen(config.settings.socket), 107);
    snprintf(text, sizeof text, "[daemon]\nsocket = /%.107s\n", line);
    CHECK_CONTAINS(wrong(text), "has 108 bytes; allowed: up to 107");
}

static void users_are_bounded(void)
{
    static char text[64 * (LIMIT_OWN_GRANTS + 1)];
    size_t length = 0;
    for (unsigned uid = 0; uid < LIMIT_OWN_GRANTS; uid++)
        length += (size_t)snprintf(text + length, sizeof text - length, "[user %u]\nweight = 2\n", uid);
    CHECK_EQ(parse(text), 0);
    CHECK_EQ(config.user_count, LIMIT_OWN_GRANTS);
    snprintf(text + length, sizeof text - length, "[user 1000]\nweight = 2\n");
    CHECK_CONTAINS(wrong(text), "[user 1000] is one more than the 64 users");
    snprintf(text + length, sizeof text - length, "[user 3]\nweight = 4\n");
    CHECK_EQ(parse(text), 0);
    CHECK_EQ(config.users[3].settings.number[SETTING_WEIGHT], 4);
}

/* Checks the result of parsing: accepted settings are in their ranges; for refused ones the error says where and why.
 */
static void check_parsed(int code)
{
    if (code) {
        CHECK_EQ(code, -EINVAL);
        CHECK(strncmp(error.message, "FILE:", 5) == 0 && strlen(error.message) > 20);
        return;
    }
    for (enum setting i = 0; i < SETTING_COUNT; i++)
        if (config.settings.given[i] && setting_types[i].unit >= UNIT_SIZE)
            CHECK(config.settings.number[i] >= setting_types[i].low &&
                  config.settings.number[i] <= setting_types[i].high);
    CHECK(config.user_count <= LIMIT_OWN_GRANTS);
}

/* Parses files of any bytes, in memory of exactly their size, so that a sanitizer sees a read beyond it. */
static void any_bytes(void)
{
    static const char valid[] = "# Settings\n[daemon]\nsocket = /a/b\ndevice = cuda:1 ; x\npool = 2G\n  threads=3\n"
                                "[quota]\nhost-memory = 12M\njobs : 7\n[user 1000]\nweight = 12\r\nconnections = 0";
    static const char telling[] = "[]=:;# \t\r\n\0\"KMG0919user";
    uint64_t seed = random_seed();
    unsigned accepted = 0;
    for (int round = 0; round < 20000 && !check_failures; round++) {
        size_t size = random_next(&seed) % 8 ? sizeof valid - 1 : random_next(&seed) % sizeof valid;
        char *text = malloc(size + !size);
        memcpy(text, valid, size);
        for (uint64_t changes = random_next(&seed) % 4; size && changes > 0; changes--)
            text[random_next(&seed) % size] =
                random_next(&seed) % 4 ? telling[random_next(&seed) % sizeof telling] : (char)random_next(&seed);
        int code = config_parse("FILE", text, size, &config, &error);
        check_parsed(code);
        accepted += code == 0;
        free(text);
    }
    CHECK(accepted > 1000);
}

/* A file of `size` bytes, of which the text is the end. */
static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    if (!file)
        return;
    for (size_t i = strlen(text); i < size; i++)
        fputc('\n', file);
    fputs(text, file);
    CHECK_EQ(fclose(file), 0);
}

static void files_are_read(void)
{
    char folder[] = "/tmp/scand-config-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    CHECK_EQ(config_read(path, &config, &error), -ENOENT);
    CHECK_CONTAINS(error.message, "/file: cannot be read: No such file");
    write_file(path, "[quota]\njobs = 9\n", CONFIG_BYTES_MAX);
    CHECK_EQ(config_read(path, &config, &error), 0);
    CHECK_EQ(config.settings.number[SETTING_QUOTA_JOBS], 9);
    write_file(path, "[quota]\njobs = 9\n", CONFIG_BYTES_MAX + 1);
    CHECK_EQ(config_read(path, &config, &error), -EFBIG);
    CHECK_CONTAINS(error.message, "/file: too large for a configuration; allowed: up to 65536 bytes");
    CHECK_EQ(config_read(folder, &config, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "is no regular file");
    unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(config_read(path, &config, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "is no regular file");
    unlink(path);
    rmdir(folder);
}

static void what_is_given_is_laid_over(void)
{
    struct settings below, above = {0};
    settings_init(&below);
    CHECK_EQ(below.number[SETTING_POOL], GIB(1));
    CHECK(!below.given[SETTING_POOL] && !*below.socket);
    CHECK_EQ(setting_parse(&above, SETTING_POOL, "0", "--pool", &error), 0);
    CHECK_EQ(setting_parse(&above, SETTING_SOCKET, "/a", "--socket", &error), 0);
    settings_overlay(&below, &above);
    CHECK_EQ(below.number[SETTING_POOL], 0);
    CHECK_EQ(below.number[SETTING_QUOTA_JOBS], LIMIT_JOBS / 2);
    CHECK(below.given[SETTING_POOL] && strcmp(below.socket, "/a") == 0);
    CHECK_EQ(setting_parse(&above, SETTING_POOL, "x", "--pool", &error), -EINVAL);
    CHECK_CONTAINS(error.message, "--pool is \"x\"; allowed: 0 to 256G");
    CHECK_EQ(above.number[SETTING_POOL], 0); /* untouched */
}

/* A value is written as it can be read, and a default is allowed. */
static void values_are_written(void)
{
    static const struct {
        enum setting setting;
        const char *text, *written;
    } table[] = {
        {SETTING_POOL, "1024M", "1G"},
        {SETTING_POOL, "1025M", "1025M"},
        {SETTING_POOL, "1000", "1000"},
        {SETTING_POOL, "0G", "0"},
        {SETTING_POOL, "256g", "256G"},
        {SETTING_DEVICE, "cuda", "cuda:0"},
        {SETTING_DEVICE, "cuda:7", "cuda:7"},
        {SETTING_DEVICE, "cpu", "cpu"},
        {SETTING_DEVICE, "cuda:1,0,cpu", "cuda:0,1,cpu"},
        {SETTING_DEVICE, "auto,cpu", "auto,cpu"},
        {SETTING_DEVICE, "cpu:2,cpu", "cpu:2,cpu"},
        {SETTING_THREADS, "012", "12"},
        {SETTING_SOCKET, "/a", "/a"},
        {SETTING_METRICS_LISTEN, "localhost:9464", "127.0.0.1:9464"},
        {SETTING_METRICS_LISTEN, "[::1]:65535", "[::1]:65535"},
        {SETTING_SOCKET_MODE, "660", "0660"},
        {SETTING_SOCKET_MODE, "auto", "auto"},
        {SETTING_SOCKET_GROUP, "0", "0"},
        {SETTING_SOCKET_GROUP, "root", "0"},
        {SETTING_SOCKET_GROUP, "4294967294", "4294967294"},
        {SETTING_SOCKET_GROUP, "own", "own"},
    };
    struct settings settings;
    char text[128];
    settings_init(&settings);
    for (enum setting i = 0; i < SETTING_COUNT; i++) {
        struct settings again = settings;
        if (setting_types[i].unit == UNIT_PATH)
            continue;
        CHECK_EQ(setting_parse(&again, i, setting_format(&settings, i, text, sizeof text), "x", &error), 0);
        CHECK_EQ(again.number[i], setting_types[i].standard);
        CHECK_EQ(setting_find(setting_types[i].section, setting_types[i].word), i);
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CHECK_EQ(setting_parse(&settings, table[i].setting, table[i].text, "x", &error), 0);
        CHECK(strcmp(setting_format(&settings, table[i].setting, text, sizeof text), table[i].written) == 0);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(settings_are_read),        TEST(nothing_is_given),
        TEST(users_have_settings),      TEST(mistakes_are_named),
        TEST(a_zero_byte_ends_nothing), TEST(lines_are_bounded),
        TEST(users_are_bounded),        TEST(any_bytes),
        TEST(files_are_read),           TEST(what_is_given_is_laid_over),
        TEST(values_are_written),       TEST_END,
    };
    return test_main(argc, argv, tests);
}

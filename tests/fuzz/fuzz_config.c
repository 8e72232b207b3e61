/* The daemon's configuration file: it is read, or refused by a line that names the file, and reads the same twice. */
#include "daemon/process/config.h"
#include "tests/fuzz/fuzz.h"

static struct config config, again;

static bool is_same(const struct settings *one, const struct settings *two)
{
    return memcmp(one->given, two->given, sizeof one->given) == 0 &&
           memcmp(one->number, two->number, sizeof one->number) == 0 && strcmp(one->socket, two->socket) == 0;
}

static void check_same(void)
{
    assert(config.user_count <= LIMIT_OWN_GRANTS && config.user_count == again.user_count);
    assert(is_same(&config.settings, &again.settings));
    for (size_t i = 0; i < config.user_count; i++)
        assert(config.users[i].uid == again.users[i].uid &&
               is_same(&config.users[i].settings, &again.users[i].settings));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error error = {.code = 0}, second = {.code = 0};
    if (size > CONFIG_BYTES_MAX)
        return 0;
    uint8_t *copy = exact_copy(bytes, size, false);
    int code = config_parse("FILE", (const char *)copy, size, &config, &error);
    assert(code == 0 || code == -EINVAL);
    assert(code == error.code);
    assert(config_parse("FILE", (const char *)copy, size, &again, &second) == code);
    if (code) {
        check_line(error.message);
        assert(strncmp(error.message, "FILE:", 5) == 0 && strcmp(error.message, second.message) == 0);
    } else {
        check_same();
    }
    free(copy);
    return 0;
}

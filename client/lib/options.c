/* Options of a connection, which programs set by name. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

struct option {
    const char *name;
    size_t offset;
    int64_t most;
};

#define X(NAME, MOST, DEFAULT) {#NAME, offsetof(struct scand_options, NAME), MOST},
static const struct option list[] = {OPTIONS(X)};
#undef X

#define X(NAME, MOST, DEFAULT) .NAME = (DEFAULT),
const struct scand_options options_default = {OPTIONS(X)};
#undef X

int scand_options_create(struct scand_options **out)
{
    struct scand_options *options = malloc(sizeof *options);
    struct error error;
    if (!options)
        return connect_failed(error_set(&error, -ENOMEM, "out of memory for options"), &error);
    *options = options_default;
    *out = options;
    return SCAND_OK;
}

void scand_options_destroy(struct scand_options *options)
{
    free(options);
}

static int option_unknown(const char *name)
{
    struct error error;
    char names[LIMIT_ERROR_BYTES] = "";
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", list[i].name);
    int code = error_set(&error, -EINVAL, "there is no option \"%.64s\": there are %s", name, names);
    return connect_failed(code, &error);
}

int scand_options_set(struct scand_options *options, const char *name, int64_t value)
{
    struct error error;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const struct option *option = &list[i];
        if (strcmp(option->name, name) != 0)
            continue;
        if (value < 0 || value > option->most)
            return connect_failed(error_set(&error, -EINVAL, "%s is %" PRId64 ": 0 to %" PRId64 " are allowed", name,
                                            value, option->most),
                                  &error);
        *(uint32_t *)((char *)options + option->offset) = (uint32_t)value;
        return SCAND_OK;
    }
    return option_unknown(name);
}

#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/text.h"

const struct setting_type setting_types[SETTING_COUNT] = {
#define X(NAME, SECTION, WORD, UNIT, LOW, HIGH, STANDARD, HELP) \
    {SECTION_##SECTION, WORD, UNIT_##UNIT, LOW, HIGH, STANDARD, HELP},
    SETTINGS(X)
#undef X
};

void settings_init(struct settings *settings)
{
    *settings = (struct settings){0};
    for (enum setting i = 0; i < SETTING_COUNT; i++)
        settings->number[i] = setting_types[i].standard;
}

void settings_overlay(struct settings *settings, const struct settings *above)
{
    for (enum setting i = 0; i < SETTING_COUNT; i++) {
        if (!above->given[i])
            continue;
        settings->given[i] = true;
        settings->number[i] = above->number[i];
        if (setting_types[i].unit == UNIT_PATH)
            memcpy(settings->socket, above->socket, sizeof settings->socket);
    }
}

enum setting setting_find(enum section section, const char *word)
{
    enum setting i = 0;
    while (i < SETTING_COUNT && (setting_types[i].section != section || strcmp(setting_types[i].word, word) != 0))
        i++;
    return i;
}

uint64_t environment_number(const char *name)
{
    const char *text = getenv(name);
    uint64_t number = 0;
    if (text)
        number_parse(text, 1, UINT64_MAX, &number);
    return number;
}

static const char units[] = "KMG"; /* powers of 1024 */

static bool parse_size(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char digits[32];
    size_t length = strlen(text);
    const char *unit = length ? strchr(units, toupper((unsigned char)text[length - 1])) : NULL;
    uint64_t value;
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length + 1);
    unsigned shift = 0;
    if (unit) {
        digits[length - 1] = '\0';
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (!number_parse(digits, 0, high >> shift, &value) || value << shift < low)
        return false;
    *out = value << shift;
    return true;
}

/* Parses device indexes, "0,1", into a bit for each; an index that comes twice is an error. */
static bool parse_indexes(const char *text, uint32_t *out)
{
    char number[8];
    uint32_t which = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        uint64_t index;
        snprintf(number, sizeof number, "%.*s", (int)length, at);
        if (length >= sizeof number || !number_parse(number, 0, LIMIT_DEVICES - 1, &index) || which >> index & 1)
            return false;
        which |= UINT32_C(1) << index;
        at += length;
        if (*at == '\0')
            break;
    }
    *out = which;
    return true;
}

static bool parse_devices(const char *text, uint64_t *out)
{
    uint64_t count = 1;
    uint32_t which = 1;
    if (strcmp(text, "auto") == 0)
        *out = device_choice(DEVICE_AUTO, 0);
    else if (strcmp(text, "all") == 0)
        *out = device_choice(DEVICE_ALL, 0);
    else if (strcmp(text, "cpu") == 0 ||
             (strncmp(text, "cpu:", 4) == 0 && number_parse(text + 4, 1, LIMIT_DEVICES, &count)))
        *out = device_choice(DEVICE_CPU, (uint32_t)count);
    else if (strcmp(text, "cuda") == 0 || (strncmp(text, "cuda:", 5) == 0 && parse_indexes(text + 5, &which)))
        *out = device_choice(DEVICE_CUDA, which);
    else
        return false;
    return true;
}

/* Parses a choice of devices; ",cpu" behind it adds the processor beside them. */
static bool parse_device(const char *text, uint64_t *out)
{
    char devices[SETTING_TEXT_BYTES];
    const size_t length = strlen(text), before = length < 4 ? 0 : length - 4;
    if (before == 0 || before >= sizeof devices || strcmp(text + before, ",cpu") != 0)
        return parse_devices(text, out);
    snprintf(devices, sizeof devices, "%.*s", (int)before, text);
    if (!parse_devices(devices, out))
        return false;
    *out = device_choice_helped(*out);
    return true;
}

static bool parse_listen(const char *text, uint64_t *out)
{
    static const struct {
        const char *before_port;
        enum loopback loopback;
    } forms[] = {{"127.0.0.1:", LOOPBACK_V4}, {"localhost:", LOOPBACK_V4}, {"[::1]:", LOOPBACK_V6}};
    uint64_t port;
    if (strcmp(text, "off") == 0) {
        *out = listen_choice(LOOPBACK_NONE, 0);
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t length = strlen(forms[i].before_port);
        if (strncmp(text, forms[i].before_port, length) == 0 && number_parse(text + length, 1, UINT16_MAX, &port)) {
            *out = listen_choice(forms[i].loopback, (uint16_t)port);
            return true;
        }
    }
    return false;
}

/* Parses an octal mode, as chmod takes it. A mode without read and write for the socket's own user is refused, since
 * nobody could connect. */
static bool parse_mode(const char *text, uint64_t high, uint64_t *out)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (strcmp(text, "auto") == 0) {
        *out = 0;
        return true;
    }
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || mode > high || (mode & 0600) != 0600)
        return false;
    *out = mode;
    return true;
}

static bool parse_group(const char *text, uint64_t *out)
{
    uint64_t gid = 0;
    const struct group *group = NULL;
    if (strcmp(text, "own") == 0) {
        *out = 0;
        return true;
    }
    if (!number_parse(text, 0, (gid_t)-1 - 1, &gid)) {
        group = getgrnam(text);
        gid = group ? group->gr_gid : 0;
        if (!group)
            return false;
    }
    *out = gid + 1;
    return true;
}

static bool parse_value(const struct setting_type *type, const char *text, uint64_t *out)
{
    switch (type->unit) {
    case UNIT_DEVICE:
        return parse_device(text, out);
    case UNIT_SIZE:
        return parse_size(text, type->low, type->high, out);
    case UNIT_LISTEN:
        return parse_listen(text, out);
    case UNIT_MODE:
        return parse_mode(text, type->high, out);
    case UNIT_GROUP:
        return parse_group(text, out);
    default:
        return number_parse(text, type->low, type->high, out);
    }
}

static int parse_path(const char *text, char path[SOCKET_PATH_BYTES], const char *name, struct error *error)
{
    struct error reason;
    char taken[SOCKET_PATH_BYTES];
    if (socket_path(text, taken, &reason))
        return error_set(error, -EINVAL, "%s is \"%.200s\": %s", name, text, reason.message);
    memcpy(path, taken, sizeof taken);
    return 0;
}

int setting_parse(struct settings *settings, enum setting setting, const char *text, const char *name,
                  struct error *error)
{
    char allowed[SETTING_TEXT_BYTES];
    const struct setting_type *type = &setting_types[setting];
    int r;
    if (type->unit == UNIT_PATH && (r = parse_path(text, settings->socket, name, error)))
        return r;
    if (type->unit != UNIT_PATH && !parse_value(type, text, &settings->number[setting]))
        return error_set(error, -EINVAL, "%s is \"%.200s\"; allowed: %s%s", name, text,
                         setting_allowed(setting, allowed, sizeof allowed),
                         type->unit == UNIT_SIZE ? ", a whole number of bytes, or of K, M, G, as in 512M" : "");
    settings->given[setting] = true;
    return 0;
}

/* Writes a size in the largest unit that needs no fraction. */
static void format_size(uint64_t value, char *out, size_t size)
{
    size_t unit = 0;
    while (value && value % 1024 == 0 && units[unit]) {
        value /= 1024;
        unit++;
    }
    if (unit)
        snprintf(out, size, "%" PRIu64 "%c", value, units[unit - 1]);
    else
        snprintf(out, size, "%" PRIu64, value);
}

static void format_indexes(uint32_t which, char *out, size_t size)
{
    size_t length = 0;
    for (int index = 0; index < LIMIT_DEVICES && length < size; index++)
        if (which >> index & 1)
            length += (size_t)snprintf(out + length, size - length, "%s%d", length ? "," : "", index);
}

static void format_device(uint64_t value, char *out, size_t size)
{
    static const char *const kinds[] = {"auto", "all", "cpu", "cuda"};
    enum device_kind kind = device_choice_kind(value);
    uint32_t which = device_choice_which(value);
    const char *helper = device_choice_is_helped(value) ? ",cpu" : "";
    char rest[SETTING_TEXT_BYTES];
    if (which <= 1 && kind != DEVICE_CUDA) {
        snprintf(out, size, "%s%s", kinds[kind], helper);
        return;
    }
    if (kind == DEVICE_CUDA)
        format_indexes(which, rest, sizeof rest);
    else
        snprintf(rest, sizeof rest, "%" PRIu32, which);
    snprintf(out, size, "%s:%s%s", kinds[kind], rest, helper);
}

const char *listen_choice_format(uint64_t choice, char *out, size_t size)
{
    static const char *const hosts[] = {[LOOPBACK_V4] = "127.0.0.1", [LOOPBACK_V6] = "[::1]"};
    enum loopback loopback = listen_choice_loopback(choice);
    if (loopback == LOOPBACK_NONE)
        snprintf(out, size, "off");
    else
        snprintf(out, size, "%s:%u", hosts[loopback], (unsigned)listen_choice_port(choice));
    return out;
}

static void format_value(enum unit unit, uint64_t value, char *out, size_t size)
{
    if (unit == UNIT_DEVICE)
        format_device(value, out, size);
    else if (unit == UNIT_SIZE)
        format_size(value, out, size);
    else if (unit == UNIT_LISTEN)
        listen_choice_format(value, out, size);
    else if (unit == UNIT_MODE)
        snprintf(out, size, value ? "%04o" : "auto", (unsigned)value);
    else if (unit == UNIT_GROUP && value == 0)
        snprintf(out, size, "own");
    else
        snprintf(out, size, "%" PRIu64, unit == UNIT_GROUP ? value - 1 : value);
}

const char *setting_format(const struct settings *settings, enum setting setting, char *out, size_t size)
{
    if (setting_types[setting].unit == UNIT_PATH)
        snprintf(out, size, "%s", settings->socket);
    else
        format_value(setting_types[setting].unit, settings->number[setting], out, size);
    return out;
}

const char *setting_allowed(enum setting setting, char *out, size_t size)
{
    const struct setting_type *type = &setting_types[setting];
    char low[32], high[32];
    format_value(type->unit, type->low, low, sizeof low);
    format_value(type->unit, type->high, high, sizeof high);
    if (type->unit == UNIT_PATH)
        snprintf(out, size, "a path of up to %d bytes", (int)SOCKET_PATH_BYTES - 1);
    else if (type->unit == UNIT_DEVICE)
        snprintf(out, size,
                 "auto, all, cpu, cpu:COUNT, cuda, cuda:N,N..., COUNT from 1 to %d, N from 0 to %d and each once, "
                 "each also with \",cpu\" behind it",
                 LIMIT_DEVICES, LIMIT_DEVICES - 1);
    else if (type->unit == UNIT_LISTEN)
        snprintf(out, size, "off, 127.0.0.1:PORT, localhost:PORT, [::1]:PORT, PORT from 1 to %d", UINT16_MAX);
    else if (type->unit == UNIT_MODE)
        snprintf(out, size, "auto, or octal, 0600 to 0777 with 0600 in it");
    else if (type->unit == UNIT_GROUP)
        snprintf(out, size, "own, or a group that this system knows, by name or gid");
    else
        snprintf(out, size, "%s to %s%s", low, high, type->unit == UNIT_SECONDS ? " seconds" : "");
    return out;
}

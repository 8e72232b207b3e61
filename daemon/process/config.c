#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/text.h"

/* A file while inih parses it. inih gets its lines from next_line and hands what they say to accept_setting, so that
 * the current line's number is known in both. */
struct parse {
    const char *path;
    const char *at, *end;
    unsigned line;
    unsigned wrong_line; /* 0: nothing is wrong yet */
    struct config *config;
    struct error *error;
};

#define WRONG(PARSE, FORMAT, ...)         \
    ((PARSE)->wrong_line = (PARSE)->line, \
     error_set((PARSE)->error, -EINVAL, "%.200s:%u: " FORMAT, (PARSE)->path, (PARSE)->line, __VA_ARGS__))

/* True when a line holds text only: no control characters, which would get into logs. */
static bool is_text(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)line[i]) && line[i] != '\t')
            return false;
    return true;
}

#define NO_UID        ((uid_t)-1)
#define SECTION_BYTES 100

/* Returns the uid that the name, or number, of a section [user NAME] stands for; NO_UID when no user has that name. */
static uid_t find_uid(struct parse *parse, const char *name)
{
    uint64_t number;
    if (number_parse(name, 0, NO_UID - 1, &number))
        return (uid_t)number;
    const struct passwd *entry = getpwnam(name);
    if (entry)
        return entry->pw_uid;
    WRONG(parse, "[user %s]: no such user; allowed: a name that this system knows, or a uid from 0 to %u", name,
          (unsigned)(NO_UID - 1));
    return NO_UID;
}

/* Returns the settings of the user named, new ones for a user who had none; NULL after an error. */
static struct settings *user_settings(struct parse *parse, const char *name)
{
    struct config *config = parse->config;
    uid_t uid = find_uid(parse, name);
    if (uid == NO_UID)
        return NULL;
    for (size_t i = 0; i < config->user_count; i++)
        if (config->users[i].uid == uid)
            return &config->users[i].settings;
    if (config->user_count == LIMIT_OWN_GRANTS) {
        WRONG(parse, "[user %s] is one more than the %d users that may have settings of their own", name,
              LIMIT_OWN_GRANTS);
        return NULL;
    }
    config->users[config->user_count].uid = uid;
    return &config->users[config->user_count++].settings;
}

/* Returns the settings that a section fills, and the kind of section; NULL when there is no such section. */
static struct settings *section_settings(struct parse *parse, const char *name, enum section *section)
{
    *section = strcmp(name, "daemon") == 0 ? SECTION_DAEMON : SECTION_QUOTA;
    if (strcmp(name, "daemon") == 0 || strcmp(name, "quota") == 0)
        return &parse->config->settings;
    if (strncmp(name, "user ", 5) == 0)
        return user_settings(parse, name + 5 + strspn(name + 5, " "));
    if (*name)
        WRONG(parse, "no section [%s]; allowed: [daemon], [quota], [user NAME], [user UID]", name);
    else
        WRONG(parse, "before the first section there is nothing to set; begin with %s", "[daemon] or [quota]");
    return NULL;
}

/* Checks a section's name at its own line: inih reports a section only with its first key, and a section without keys
 * may be misspelt, too. A line without ] is left for inih to refuse. */
static bool check_section(struct parse *parse, const char *line, size_t length)
{
    char name[SECTION_BYTES];
    enum section section;
    const char *end = memchr(line, ']', length);
    if (!end)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(end - line - 1), line + 1); /* a name cut here is unknown anyway */
    return section_settings(parse, name, &section);
}

/* Gives inih the next line, in place of fgets. Indentation is removed, since inih would take an indented line for the
 * previous value's continuation; comments become empty lines, since they may be longer than inih's buffer. */
static char *next_line(char *out, int size, void *stream)
{
    struct parse *parse = stream;
    if (parse->at == parse->end || parse->wrong_line)
        return NULL;
    const char *line = parse->at, *newline = memchr(line, '\n', (size_t)(parse->end - line));
    size_t length = (size_t)((newline ? newline : parse->end) - line);
    parse->at = newline ? newline + 1 : parse->end;
    parse->line++;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (!is_text(line, length)) {
        WRONG(parse, "a control character in the line; allowed: %s", "text and tabs");
        return NULL;
    }
    while (length > 0 && (*line == ' ' || *line == '\t'))
        line++, length--;
    if (length > 0 && *line == '[' && !check_section(parse, line, length))
        return NULL;
    if (length > 0 && (*line == '#' || *line == ';'))
        length = 0;
    if (length + 2 > (size_t)size) {
        WRONG(parse, "a line of %zu bytes; allowed: up to %d", length, size - 2);
        return NULL;
    }
    memcpy(out, line, length);
    memcpy(out + length, "\n", 2);
    return out;
}

/* Lists the keys of a section: "a, b, c". */
static const char *join_words(enum section section, char *out, size_t size)
{
    size_t length = 0;
    *out = '\0';
    for (enum setting i = 0; i < SETTING_COUNT; i++)
        if (setting_types[i].section == section && length < size)
            length += (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "", setting_types[i].word);
    return out;
}

/* Handles a line "KEY = VALUE" for inih. The returned value means nothing: WRONG notes an error in parse->wrong_line.
 */
static int accept_setting(void *context, const char *section_name, const char *key, const char *value)
{
    struct parse *parse = context;
    enum section section;
    char name[320], words[160];
    struct settings *settings = parse->wrong_line ? NULL : section_settings(parse, section_name, &section);
    if (!settings)
        return 1;
    enum setting setting = setting_find(section, key);
    if (setting == SETTING_COUNT) {
        WRONG(parse, "[%s] has no \"%.100s\"; allowed: %s", section_name, key,
              join_words(section, words, sizeof words));
        return 1;
    }
    snprintf(name, sizeof name, "%.200s:%u: [%s] \"%s\"", parse->path, parse->line, section_name, key);
    if (setting_parse(settings, setting, value, name, parse->error))
        parse->wrong_line = parse->line;
    return 1;
}

int config_parse(const char *path, const char *text, size_t size, struct config *config, struct error *error)
{
    struct parse parse = {.path = path, .at = text, .end = text + size, .config = config, .error = error};
    *config = (struct config){0};
    int syntax_line = ini_parse_stream(next_line, &parse, accept_setting, &parse);
    if (syntax_line > 0 && (!parse.wrong_line || (unsigned)syntax_line < parse.wrong_line)) {
        parse.line = (unsigned)syntax_line;
        return WRONG(&parse, "this is neither %s nor %s", "\"[SECTION]\"", "\"NAME = VALUE\"");
    }
    return parse.wrong_line ? -EINVAL : 0;
}

/* Reads a whole file. Returns its length, or -errno; -EFBIG when the file does not fit into size bytes. */
static ssize_t read_file(int fd, char *out, size_t size)
{
    size_t length = 0;
    ssize_t n;
    while ((n = read(fd, out + length, size - length)) != 0) {
        if (n < 0 && errno != EINTR)
            return -errno;
        length += n > 0 ? (size_t)n : 0;
        if (length == size)
            return -EFBIG;
    }
    return (ssize_t)length;
}

int config_read(const char *path, struct config *config, struct error *error)
{
    static char text[CONFIG_BYTES_MAX + 1];
    struct stat status;
    /* O_NONBLOCK: opening a pipe, which is refused below, must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(error, -errno, "%.200s: cannot be read: %s", path, strerror(errno));
    bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t size = regular ? read_file(fd, text, sizeof text) : -EINVAL;
    close(fd);
    if (size == -EFBIG)
        return error_set(error, -EFBIG, "%.200s: too large for a configuration; allowed: up to %d bytes", path,
                         (int)CONFIG_BYTES_MAX);
    if (size == -EINVAL)
        return error_set(error, -EINVAL, "%.200s: is no regular file", path);
    if (size < 0)
        return error_set(error, (int)size, "%.200s: cannot be read: %s", path, strerror((int)-size));
    return config_parse(path, text, (size_t)size, config, error);
}

#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "protocol/clock.h"

/* True when the journal reads stderr, as $JOURNAL_STREAM says. The file's numbers are compared because programs with
 * another stderr inherit the variable, too. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat status;
    if (!stream || fstat(STDERR_FILENO, &status))
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, own) == 0;
}

/* Writes a line by one call, so that lines of several processes do not mix. */
static void log_line(int priority, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    if (is_journal())
        fprintf(stderr, "<%d>%s\n", priority, text);
    else
        fprintf(stderr, "scand: %s%s\n", priority == LOG_ERR ? "error: " : "", text);
}

static void log_at(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void log_at(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(priority, format, arguments);
    va_end(arguments);
}

void log_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_INFO, format, arguments);
    va_end(arguments);
}

void log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(LOG_ERR, format, arguments);
    va_end(arguments);
}

/*
 * Lines that clients bring about.
 */

/* The latest line of a cause and user; free while `taken` is false. */
static struct place {
    bool taken;
    enum log_cause cause;
    uint32_t uid;
    int64_t written_ms;
    uint64_t left_out;    /* since written_ms */
} places[LOG_PLACES + 1]; /* the last one is for whoever finds no other free */

static int64_t (*clock_now_ms)(void) = clock_ms;

void log_use_clock(int64_t (*now_ms)(void))
{
    clock_now_ms = now_ms ? now_ms : clock_ms;
    memset(places, 0, sizeof places);
}

static bool place_is_old(const struct place *place, int64_t now_ms)
{
    return !place->taken || now_ms - place->written_ms >= LOG_EVERY_MS;
}

/* Returns the place of this cause and user, else one that is free or whose line is old, else the last. */
static struct place *place_find(enum log_cause cause, uint32_t uid, int64_t now_ms)
{
    struct place *old = NULL;
    for (struct place *place = places; place < places + LOG_PLACES; place++) {
        if (place->taken && place->cause == cause && place->uid == uid)
            return place;
        if (place_is_old(place, now_ms) && (!old || (old->left_out > 0 && place->left_out == 0)))
            old = place;
    }
    return old ? old : &places[LOG_PLACES];
}

/* Frees a place for another cause or user, and logs how many lines were left out. */
static void place_clear(struct place *place)
{
    if (place->left_out > 0)
        log_info("%llu lines like earlier ones about user %u were left out", (unsigned long long)place->left_out,
                 (unsigned)place->uid);
    *place = (struct place){0};
}

void log_cause(enum log_cause cause, uint32_t uid, const char *format, ...)
{
    static const int priorities[] = {
#define X(NAME, PRIORITY) PRIORITY,
        LOG_CAUSES(X)
#undef X
    };
    char text[900], more[80] = "";
    int64_t now_ms = clock_now_ms();
    struct place *place = place_find(cause, uid, now_ms);
    if (!place_is_old(place, now_ms)) {
        place->left_out++;
        return;
    }
    if (place != &places[LOG_PLACES] && place->taken && (place->cause != cause || place->uid != uid))
        place_clear(place);
    if (place->left_out > 0)
        snprintf(more, sizeof more, " (%llu more lines like it were left out)", (unsigned long long)place->left_out);
    *place = (struct place){true, cause, uid, now_ms, 0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_at(priorities[cause], "%s%s", text, more);
}

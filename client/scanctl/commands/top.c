/*
 * top: the daemon at work, looked at again and again.
 */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/top_view.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/screen.h"
#include "protocol/clock.h"

#define FIRST_MS     250 /* between the first two snapshots, over which the first screen's rates are measured */
#define EVERY_MS     1000
#define EVERY_MS_MIN 100
#define EVERY_MS_MAX 3600000

enum { OPTION_ONCE = OPTION_OWN, OPTION_INTERVAL, OPTION_SORT };

/* The options of top. */
struct watching {
    bool once;
    unsigned every_ms; /* the time between two snapshots */
    enum top_sort sort;
};

static const char *const sort_words[] = {
#define X(NAME, KEY, WORD) WORD,
    TOP_SORTS(X)
#undef X
};
static const char sort_keys[] = {
#define X(NAME, KEY, WORD) KEY,
    TOP_SORTS(X)
#undef X
};

static int interval_parse(unsigned *every_ms, const char *text, struct error *error)
{
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= EVERY_MS_MIN / 1e3 && seconds <= EVERY_MS_MAX / 1e3))
        return fail(error, EX_USAGE, "--interval is \"%s\"; it may be %g to %d seconds", text, EVERY_MS_MIN / 1e3,
                    EVERY_MS_MAX / 1000);
    *every_ms = (unsigned)(seconds * 1000);
    return 0;
}

static int sort_parse(enum top_sort *sort, const char *word, struct error *error)
{
    for (int i = 0; i < TOP_SORT_COUNT; i++)
        if (!strcmp(word, sort_words[i])) {
            *sort = (enum top_sort)i;
            return 0;
        }
    return fail(error, EX_USAGE, "--sort is \"%s\"; it may be device, memory, rate, client", word);
}

static int option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct watching *watching = context;
    if (option == OPTION_INTERVAL)
        return interval_parse(&watching->every_ms, argument, error);
    if (option == OPTION_SORT)
        return sort_parse(&watching->sort, argument, error);
    watching->once = true;
    return 0;
}

static void pause_ms(int time_ms)
{
    struct timespec pause = {.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* The later of two snapshots takes the place of the earlier one. */
static int snapshots_advance(struct snapshot snapshots[2], struct scand *daemon, struct error *error)
{
    snapshot_free(&snapshots[0]);
    snapshots[0] = snapshots[1];
    snapshots[1] = (struct snapshot){.client_count = 0};
    return snapshot_all(&snapshots[1], daemon, error);
}

/* Frames as text or JSON, one or until nobody reads them. */
static int top_print(struct scand *daemon, bool json, const struct watching *watching, struct snapshot snapshots[2],
                     struct error *error)
{
    const struct top_view view = {.columns = UINT_MAX, .lines = JOBS_MAX + CLIENTS_MAX, .sort = watching->sort};
    int result;
    pause_ms(FIRST_MS);
    while (!(result = snapshots_advance(snapshots, daemon, error))) {
        if (json)
            top_json(stdout, scand_server_name(daemon), &snapshots[0], &snapshots[1]);
        else
            top_text(stdout, scand_server_name(daemon), &snapshots[0], &snapshots[1], &view);
        if (watching->once || fflush(stdout))
            return 0; /* main reports the failed write */
        pause_ms((int)watching->every_ms);
    }
    return result;
}

/* The screen, and what it shows. */
struct screen {
    struct scand *daemon;
    struct snapshot shown[2];
    struct top_view view;
    unsigned every_ms;
    bool stopped;
    uint64_t away_since_us; /* 0: the daemon answers */
    struct error away;      /* why the daemon does not answer */
};

/* Terminals without colours say so, and users who want none. */
static bool wants_colours(void)
{
    const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");
    return terminal && strcmp(terminal, "dumb") && !(none && *none);
}

/* Lines beside those of connections and jobs: headings, blanks, what is left out of each list, the keys. */
static size_t fixed_lines(const struct screen *screen)
{
    return 2 * screen->shown[1].device_count + (screen->away_since_us ? 10 : 9);
}

static void frame_write(FILE *file, struct screen *screen, unsigned lines)
{
    const size_t fixed = fixed_lines(screen);
    screen->view.lines = lines > fixed + 2 ? lines - fixed : 2;
    if (screen->away_since_us)
        top_away(file, &screen->view, clock_us() - screen->away_since_us,
                 screen->away.exit_code == EX_UNAVAILABLE ? "it is looked for" : screen->away.text);
    top_text(file, scand_server_name(screen->daemon), &screen->shown[0], &screen->shown[1], &screen->view);
}

static void top_draw(struct screen *screen)
{
    unsigned lines;
    char *text = NULL, *help = NULL;
    size_t size, help_size;
    screen_size(&screen->view.columns, &lines);
    FILE *file = open_memstream(&text, &size), *keys = open_memstream(&help, &help_size);
    if (file)
        frame_write(file, screen, lines);
    if (keys)
        top_help(keys, &screen->view, screen->stopped ? 0 : screen->every_ms);
    const bool made = file && !fclose(file);
    if (keys && !fclose(keys) && made) /* without memory for a frame, the one before stays */
        screen_show(text, help);
    free(text);
    free(help);
}

/* The rates of a daemon that does not answer are not known: what was shown last stays, below the reason. */
static void top_look(struct screen *screen)
{
    struct snapshot next = {.client_count = 0};
    if (snapshot_all(&next, screen->daemon, &screen->away)) {
        snapshot_free(&next);
        screen->away_since_us = screen->away_since_us ? screen->away_since_us : clock_us();
        return;
    }
    screen->away_since_us = 0;
    snapshot_free(&screen->shown[0]);
    screen->shown[0] = screen->shown[1];
    screen->shown[1] = next;
}

static unsigned every_changed(unsigned every_ms, int key)
{
    const unsigned changed = key == '+' ? every_ms * 2 : every_ms / 2;
    return changed < EVERY_MS_MIN ? EVERY_MS_MIN : changed > EVERY_MS_MAX ? EVERY_MS_MAX : changed;
}

static void key_handle(struct screen *screen, int key)
{
    const char *sort = key ? memchr(sort_keys, key, sizeof sort_keys) : NULL;
    if (sort)
        screen->view.sort = (enum top_sort)(sort - sort_keys);
    else if (key == '+' || key == '-')
        screen->every_ms = every_changed(screen->every_ms, key);
    else if (key == ' ')
        screen->stopped = !screen->stopped;
}

/* Keys take effect at once, and looks come at their time. */
static int top_watch(struct screen *screen, struct error *error)
{
    int key = 0, result = screen_open(error);
    if (result)
        return result;
    for (uint64_t next_us = clock_us() + FIRST_MS * 1000; key != 'q';) {
        const uint64_t now_us = clock_us();
        key = screen_key(now_us < next_us ? (int)((next_us - now_us + 999) / 1000) : 0);
        key_handle(screen, key);
        if (!key) {
            next_us = clock_us() + screen->every_ms * UINT64_C(1000);
            if (!screen->stopped)
                top_look(screen);
        }
        if (key != 'q')
            top_draw(screen);
    }
    screen_close();
    return 0;
}

const struct option_row top_options[] = {
    {"once", OPTION_ONCE, 0, NULL, VALUE_FREE, "print one screen as text"},
    {"interval", OPTION_INTERVAL, 'i', "S", VALUE_FREE, "look so often, in seconds; on a screen + and - change it [1]"},
    {"sort", OPTION_SORT, 0, "BY", VALUE_FREE,
     "of programs: device | memory | rate | client; on a screen the keys d m r c [device]"},
    COMMON_OPTIONS,
    {0},
};

/* Prints, or shows on a screen. */
static int top_run(struct scand *daemon, bool json, const struct watching *watching, struct error *error)
{
    struct screen screen = {
        .daemon = daemon, .every_ms = watching->every_ms, .view = {.colours = wants_colours(), .sort = watching->sort}};
    int result = snapshot_all(&screen.shown[1], daemon, error);
    if (!result && (watching->once || json))
        result = top_print(daemon, json, watching, screen.shown, error);
    else if (!result)
        result = top_watch(&screen, error);
    snapshot_free(&screen.shown[0]);
    snapshot_free(&screen.shown[1]);
    return result;
}

int command_top(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct watching watching = {.every_ms = EVERY_MS};
    struct scand *daemon;
    const struct option_set set = {.table = top_options, .handler = option_handle, .context = &watching};
    int result = options_parse_all(argc, argv, &set, common, error);
    if (result || common->help)
        return result;
    result = watching.once || common->json ? remote_open(common->socket_path, &daemon, error)
                                           : remote_open_watching(common->socket_path, &daemon, error);
    if (result)
        return result;
    result = top_run(daemon, common->json, &watching, error);
    scand_disconnect(daemon);
    return result;
}

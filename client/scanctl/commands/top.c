/*
 * top: the daemon at work, looked at once a second.
 */
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/top_view.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/screen.h"

#define FIRST_MS 250  /* from the first snapshot to the second: what is shown first is measured over it */
#define EVERY_MS 1000 /* between two snapshots */

#define FRAME_LINES 8 /* of a frame beside connections and jobs: headings, and what is left out */

enum { OPTION_ONCE = OPTION_OWN };

static int once_handle(void *context, int option, const char *argument, struct error *error)
{
    (void)option, (void)argument, (void)error;
    *(bool *)context = true;
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
static int top_print(struct scand *daemon, bool json, bool once, struct snapshot snapshots[2], struct error *error)
{
    int result;
    pause_ms(FIRST_MS);
    while (!(result = snapshots_advance(snapshots, daemon, error))) {
        if (json)
            top_json(stdout, scand_server_name(daemon), &snapshots[0], &snapshots[1]);
        else
            top_text(stdout, scand_server_name(daemon), &snapshots[0], &snapshots[1], JOBS_MAX);
        if (once || fflush(stdout))
            return 0; /* main tells of a failed write */
        pause_ms(EVERY_MS);
    }
    return result;
}

static int top_draw(struct scand *daemon, const struct snapshot snapshots[2], struct error *error)
{
    unsigned columns, lines;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return fail(error, EX_OSERR, "out of memory for a frame");
    screen_size(&columns, &lines);
    top_text(file, scand_server_name(daemon), &snapshots[0], &snapshots[1],
             lines > FRAME_LINES + 2 ? (lines - FRAME_LINES) / 2 : 1);
    if (!fclose(file))
        screen_show(text);
    free(text);
    return 0;
}

static int top_watch(struct scand *daemon, struct snapshot snapshots[2], struct error *error)
{
    int key = 0, result = screen_open(error);
    if (result)
        return result;
    for (int wait_ms = FIRST_MS; !result && (key = screen_key(wait_ms)) != 'q'; wait_ms = EVERY_MS) {
        result = snapshots_advance(snapshots, daemon, error);
        if (!result)
            result = top_draw(daemon, snapshots, error);
    }
    screen_close();
    return result;
}

const struct option_row top_options[] = {
    {"once", OPTION_ONCE, 0, NULL, VALUE_FREE, "print one screen as text"}, COMMON_OPTIONS, {0}};

int command_top(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct snapshot snapshots[2] = {0};
    struct scand *daemon;
    bool once = false;
    int result = options_parse(argc, argv, false, top_options, once_handle, &once, common, error);
    if (result || common->help)
        return result;
    if (optind < argc)
        return fail(error, EX_USAGE, "\"%s\" is too much: %s takes options only; see %s --help", argv[optind], argv[0],
                    argv[0]);
    result = remote_open(common->socket_path, &daemon, error);
    if (result)
        return result;
    result = snapshot_all(&snapshots[1], daemon, error);
    if (!result && (once || common->json))
        result = top_print(daemon, common->json, once, snapshots, error);
    else if (!result)
        result = top_watch(daemon, snapshots, error);
    snapshot_free(&snapshots[0]);
    snapshot_free(&snapshots[1]);
    scand_disconnect(daemon);
    return result;
}

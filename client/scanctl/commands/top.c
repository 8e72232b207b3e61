/*
 * top: the daemon at work, looked at once a second.
 */
#include <stdlib.h>
#include <time.h>

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/top_view.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/screen.h"

#define FIRST_MS 250  /* from the first look to the second: what is shown first is measured over it */
#define EVERY_MS 1000 /* between two looks */

#define FRAME_LINES 8 /* of a frame beside connections and jobs: headings, and what is left out */

enum { OPTION_ONCE = OPTION_OWN };

static int once_handle(void *context, int option, const char *argument, struct fault *fault)
{
    (void)option, (void)argument, (void)fault;
    *(bool *)context = true;
    return 0;
}

static void pause_ms(int time_ms)
{
    struct timespec pause = {.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* The later of two looks takes the place of the earlier one. */
static int look_again(struct look looks[2], struct scand *daemon, struct fault *fault)
{
    look_free(&looks[0]);
    looks[0] = looks[1];
    looks[1] = (struct look){.client_count = 0};
    return look_at_all(&looks[1], daemon, fault);
}

/* Frames as text or JSON, one or until nobody reads them. */
static int top_print(struct scand *daemon, bool json, bool once, struct look looks[2], struct fault *fault)
{
    int result;
    pause_ms(FIRST_MS);
    while (!(result = look_again(looks, daemon, fault))) {
        if (json)
            top_json(stdout, scand_server_name(daemon), &looks[0], &looks[1]);
        else
            top_text(stdout, scand_server_name(daemon), &looks[0], &looks[1], JOBS_MAX);
        if (once || fflush(stdout))
            return 0; /* main tells of a failed write */
        pause_ms(EVERY_MS);
    }
    return result;
}

static int top_draw(struct scand *daemon, const struct look looks[2], struct fault *fault)
{
    unsigned columns, lines;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return fault_set(fault, EX_OSERR, "out of memory for a frame");
    screen_size(&columns, &lines);
    top_text(file, scand_server_name(daemon), &looks[0], &looks[1],
             lines > FRAME_LINES + 2 ? (lines - FRAME_LINES) / 2 : 1);
    if (!fclose(file))
        screen_show(text);
    free(text);
    return 0;
}

static int top_watch(struct scand *daemon, struct look looks[2], struct fault *fault)
{
    int key = 0, result = screen_open(fault);
    if (result)
        return result;
    for (int wait_ms = FIRST_MS; !result && (key = screen_key(wait_ms)) != 'q'; wait_ms = EVERY_MS) {
        result = look_again(looks, daemon, fault);
        if (!result)
            result = top_draw(daemon, looks, fault);
    }
    screen_close();
    return result;
}

int command_top(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    static const struct option table[] = {{"once", no_argument, NULL, OPTION_ONCE}, COMMON_OPTIONS, {0}};
    struct look looks[2] = {0};
    struct scand *daemon;
    bool once = false;
    int result = options_parse(argc, argv, ":", table, once_handle, &once, common, fault);
    if (!result && common->help) {
        help_print(argv[0]);
        return 0;
    }
    if (!result && optind < argc)
        result = fault_set(fault, EX_USAGE, "\"%s\" is too much: %s takes options only; see %s --help", argv[optind],
                           argv[0], argv[0]);
    if (!result)
        result = remote_open(common->socket_path, &daemon, fault);
    if (result)
        return result;
    result = look_at_all(&looks[1], daemon, fault);
    if (!result && (once || common->json))
        result = top_print(daemon, common->json, once, looks, fault);
    else if (!result)
        result = top_watch(daemon, looks, fault);
    look_free(&looks[0]);
    look_free(&looks[1]);
    scand_disconnect(daemon);
    return result;
}

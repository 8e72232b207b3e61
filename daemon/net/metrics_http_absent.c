/* Stands in for metrics_http.c in a build without libmicrohttpd. */
#include <errno.h>

#include "daemon/process/settings.h"
#include "metrics_http.h"

int metrics_http_check(uint64_t place, struct error *error)
{
    char text[SETTING_TEXT_BYTES];
    if (listen_choice_loopback(place) == LOOPBACK_NONE)
        return 0;
    return error_set(error, -ENOTSUP,
                     "metrics-listen is \"%s\", but scand was built without libmicrohttpd; set it to off, and use "
                     "scanctl metrics, or build scand where libmicrohttpd-dev is installed",
                     listen_choice_format(place, text, sizeof text));
}

int metrics_http_listen(uint64_t place, struct error *error)
{
    return metrics_http_check(place, error);
}

int metrics_http_start(struct metrics_http *http, uv_loop_t *loop, int listen_fd, http_page *page, void *context)
{
    (void)http, (void)loop, (void)listen_fd, (void)page, (void)context;
    return -ENOTSUP;
}

void metrics_http_stop(struct metrics_http *http)
{
    (void)http; /* never started */
}

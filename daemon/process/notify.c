#include "notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "settings.h"

/* Fills the manager's address from $NOTIFY_SOCKET: a path, or, after an @, an abstract name. Returns its length; 0
 * without a usable one. */
static socklen_t manager_address(struct sockaddr_un *address)
{
    const char *place = getenv("NOTIFY_SOCKET");
    size_t length = place ? strlen(place) : 0;
    if (length < 2 || length >= sizeof address->sun_path || (*place != '/' && *place != '@'))
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, place, length);
    if (*place == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

void notify_send(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    struct sockaddr_un address;
    socklen_t size = manager_address(&address);
    if (size == 0)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    (void)sent; /* a failure is ignored: the log says the same */
    close(fd);
}

uint64_t notify_period_ms(void)
{
    uint64_t pid = environment_number("WATCHDOG_PID"), ms = environment_number("WATCHDOG_USEC") / 1000;
    if (ms == 0 || (pid > 0 && pid != (uint64_t)getpid()))
        return 0;
    return ms > 1 ? ms / 2 : 1;
}

#include "client/scanctl/ui/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "protocol/text.h"

/* The alternate screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t is_open;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static void codes_write(const char *codes, size_t length)
{
    ssize_t written = write(STDOUT_FILENO, codes, length);
    (void)written; /* a terminal that is gone needs nothing */
}

/* Keys come at once and are not shown; those that send signals still do. */
static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    codes_write(ENTER, sizeof ENTER - 1);
}

static void leave(void)
{
    codes_write(LEAVE, sizeof LEAVE - 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Calls only what a signal's handler may. */
static void on_signal(int number)
{
    if (!is_open)
        return;
    leave();
    if (number == SIGTSTP) {
        raise(SIGSTOP);
        enter();
        return;
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void signals_set(void (*handler)(int))
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int screen_open(struct error *error)
{
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
        return fail(error, EX_USAGE, "standard input and output are not a terminal; see scanctl top --once, or --json");
    is_open = true;
    signals_set(on_signal);
    enter();
    return 0;
}

void screen_close(void)
{
    signals_set(SIG_DFL);
    is_open = false;
    leave();
}

void screen_size(unsigned *columns, unsigned *lines)
{
    struct winsize size;
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;
    *columns = known ? size.ws_col : 80;
    *lines = known ? size.ws_row : 24;
}

/* Bytes of a sequence that sets a style, which takes no column; 0 where there is none. */
static size_t style_bytes(const char *text)
{
    if (text[0] != '\033' || text[1] != '[')
        return 0;
    const size_t length = 2 + strspn(text + 2, "0123456789;");
    return text[length] == 'm' ? length + 1 : 0;
}

/* Writes a line up to its end or to the screen's, in its styles. Returns what follows it. */
static const char *line_show(const char *text, unsigned columns)
{
    unsigned column = 0;
    while (*text && *text != '\n') {
        const size_t style = style_bytes(text), character = utf8_length(text);
        const size_t bytes = style ? style : character ? character : 1;
        if (style || column < columns)
            fwrite(text, 1, bytes, stdout);
        column += style == 0;
        text += bytes;
    }
    fputs("\033[0m\033[K", stdout);
    return text + (*text == '\n');
}

void screen_show(const char *text, const char *last)
{
    unsigned columns, lines;
    screen_size(&columns, &lines);
    fputs("\033[H", stdout);
    for (unsigned line = 0; line + 1 < lines && *text; line++) {
        text = line_show(text, columns);
        if (line + 2 < lines)
            fputc('\n', stdout);
    }
    printf("\033[J\033[%u;1H", lines);
    line_show(last, columns);
    fflush(stdout);
}

int screen_key(int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;
    if (poll(&input, 1, timeout_ms) <= 0)
        return 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

/*
 * The settings of the daemon: one table, from which come the command line's options, the configuration file's keys,
 * their checks and `scand --help`. Settings of section [quota] are for every user, and a section [user NAME] of the
 * file has them for one.
 */
#ifndef DAEMON_SETTINGS_H
#define DAEMON_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/socket.h"
#include "protocol/status.h"

// clang-format off
/*  NAME                 section word             unit    lowest highest         default    what it is, for --help */
#define SETTINGS(X)                                                                                                    \
    X(SOCKET,              DAEMON, "socket",        PATH,   0, 0,                0,         "where clients connect")   \
    X(SOCKET_MODE,         DAEMON, "socket-mode",   MODE,   0, 0777,             0,                                    \
      "who may connect, auto: all as root, else the daemon's user")                                                    \
    X(SOCKET_GROUP,        DAEMON, "socket-group",  GROUP,  0, 0,                0,                                    \
      "group of the socket, own: the daemon's")                                                                        \
    X(DEVICE,              DAEMON, "device",        DEVICE, 0, 0,                0,                                    \
      "auto: a GPU if there is one; all: all GPUs; ...,cpu: the processor beside them")                                                                                   \
    X(POOL,                DAEMON, "pool",          SIZE,   0, GIB(256),         GIB(1),                               \
      "host memory kept ready for buffers")                                                                            \
    X(DEVICE_MEMORY,       DAEMON, "device-memory", SIZE,   0, GIB(1024),        MIB(512),                             \
      "most that is taken of a GPU's memory")                                                                        \
    X(THREADS,             DAEMON, "threads",       NUMBER, 0, 1024,             0,                                    \
      "threads of a cpu device, 0: one per core")                                                                    \
    X(CHUNK,               DAEMON, "chunk",         SIZE,   0, MIB(16),          0,                                    \
      "of a job that a device has at a time, 0: measured")                                                             \
    X(CHUNKS,              DAEMON, "chunks",        NUMBER, 0, LIMIT_CHUNKS_IN_FLIGHT, 0,                              \
      "that a device has at a time, 0: measured")                                                                      \
    X(METRICS_LISTEN,      DAEMON, "metrics-listen", LISTEN, 0, 0,               0,                                    \
      "HTTP for a Prometheus server of this machine")                                                                  \
    X(METRICS_USERS,       DAEMON, "metrics-users", NUMBER, 0, 1,                0,                                    \
      "1: that page names each user, too")                                                                             \
    X(WATCHDOG,            DAEMON, "watchdog",      SECONDS, 0, 3600,             5,                                    \
      "seconds after which a worker that hangs is ended, 0: never")                                                    \
    X(DRAIN,               DAEMON, "drain",         SECONDS, 0, 86400,            3600,                                 \
      "seconds after which a drain ends the jobs that are left, 0: never")                                             \
    X(QUOTA_HOST_MEMORY,   QUOTA,  "host-memory",   SIZE,   0, GIB(1024),        GIB(16),   "in host buffers")         \
    X(QUOTA_DEVICE_MEMORY, QUOTA,  "device-memory", SIZE,   0, GIB(1024),        GIB(16),   "in device buffers")       \
    X(QUOTA_JOBS,          QUOTA,  "jobs",          NUMBER, 0, LIMIT_JOBS,       LIMIT_JOBS / 2,                       \
      "jobs that wait or run")                                                                                         \
    X(QUOTA_CONNECTIONS,   QUOTA,  "connections",   NUMBER, 0, LIMIT_CLIENTS,    LIMIT_CLIENTS / 4,                    \
      "connections at a time")                                                                                         \
    X(QUOTA_PINNED_MEMORY, QUOTA,  "pinned-memory", SIZE,   0, GIB(1024),        GIB(16),                              \
      "of imported memory that is pinned")                                                                             \
    X(WEIGHT,              QUOTA,  "weight",        NUMBER, 1, 1000,             1,                                    \
      "share of the device, next to other users'")
// clang-format on

enum setting {
#define X(NAME, SECTION, WORD, UNIT, LOW, HIGH, STANDARD, HELP) SETTING_##NAME,
    SETTINGS(X) SETTING_COUNT
#undef X
};

/* A setting's section of the file. Settings of SECTION_QUOTA are reloaded; all others are fixed at the start. */
enum section { SECTION_DAEMON, SECTION_QUOTA };
enum unit { UNIT_PATH, UNIT_DEVICE, UNIT_LISTEN, UNIT_SIZE, UNIT_NUMBER, UNIT_SECONDS, UNIT_MODE, UNIT_GROUP };

struct setting_type {
    enum section section;
    const char *word;
    enum unit unit;
    uint64_t low, high, standard;
    const char *help;
};

extern const struct setting_type setting_types[SETTING_COUNT];

/* A choice of devices, as a number: the kind, and with DEVICE_CPU how many devices, with DEVICE_CUDA a bit for each GPU
 * chosen. A helped choice has the processor beside them. */
enum device_kind { DEVICE_AUTO, DEVICE_ALL, DEVICE_CPU, DEVICE_CUDA };

static inline uint64_t device_choice(enum device_kind kind, uint32_t which)
{
    return (uint64_t)kind << 32 | which;
}

static inline uint64_t device_choice_helped(uint64_t choice)
{
    return choice | UINT64_C(1) << 63;
}

static inline bool device_choice_is_helped(uint64_t choice)
{
    return choice >> 63;
}

static inline enum device_kind device_choice_kind(uint64_t choice)
{
    return (enum device_kind)(choice >> 32 & INT32_MAX);
}

static inline uint32_t device_choice_which(uint64_t choice)
{
    return (uint32_t)choice;
}

/* A loopback address and port to listen at, as a number; 0 is nowhere. */
enum loopback { LOOPBACK_NONE, LOOPBACK_V4, LOOPBACK_V6 };

static inline uint64_t listen_choice(enum loopback loopback, uint16_t port)
{
    return (uint64_t)loopback << 16 | port;
}

static inline enum loopback listen_choice_loopback(uint64_t choice)
{
    return (enum loopback)(choice >> 16);
}

static inline uint16_t listen_choice_port(uint64_t choice)
{
    return (uint16_t)choice;
}

/* SETTING_SOCKET_MODE is a mode of the socket file; 0: auto. SETTING_SOCKET_GROUP is a gid + 1; 0: the daemon's own
 * group. */

#define SETTING_TEXT_BYTES 160 /* room for a value or an allowed range as text, except paths */

/* Settings that one source gives: the command line, the file, or a section of it. */
struct settings {
    bool given[SETTING_COUNT];
    uint64_t number[SETTING_COUNT]; /* paths are not here */
    char socket[SOCKET_PATH_BYTES];
};

/* Fills all settings with their defaults; the socket stays empty, since its default is searched for. */
void settings_init(struct settings *settings);
/* Takes over the settings that `above` gives. */
void settings_overlay(struct settings *settings, const struct settings *above);
/* Parses a value. Returns 0, or -EINVAL and *error that says, after `name`, what the value is and what is allowed. */
int setting_parse(struct settings *settings, enum setting setting, const char *text, const char *name,
                  struct error *error);
/* Returns the setting of a section that is called `word`, or SETTING_COUNT. */
enum setting setting_find(enum section section, const char *word);
/* Write a setting's value, or its allowed values, as text, cut to size. Return out. */
const char *setting_format(const struct settings *settings, enum setting setting, char *out, size_t size);
const char *setting_allowed(enum setting setting, char *out, size_t size);

/* Writes a place to listen at as text, cut to size. Returns out. */
const char *listen_choice_format(uint64_t choice, char *out, size_t size);

/* Returns the decimal number that a service manager has put into the environment; 0 without one. */
uint64_t environment_number(const char *name);

#endif

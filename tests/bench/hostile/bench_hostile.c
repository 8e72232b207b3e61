/*
 * scand-bench hostile [OPTION]... [ATTACK]...: what one user's attack does to another. Each attack meets a daemon of
 * its own. Two witnesses, other users, do small things alone and then beside the attack; the table has for each of
 * them p50 and p99 of both, in milliseconds, the ratio of the two p99, and how many failed. Below it: what the attacker
 * was answered, with the first message of each kind, and what the daemon's worker holds meanwhile that it did not hold
 * before. Exit code 1 where something of a witness failed or the worker was lost.
 *
 *   --device=NAME        the daemon's: cpu
 *   --seconds=N          for which the witness looks, alone and beside each attack: 4
 *   --patience=SECONDS   after which something is not waited for any more: 30
 *   --memory             also attacks that ask for more memory than there is: a daemon that promises it is killed
 *                        when a quarter is left of what was available at its start
 *   --csv=FILE           the table for programs, too
 *   --list               names the attacks
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/hostile/attack.h"
#include "tests/bench/hostile/daemon.h"
#include "tests/bench/hostile/ending.h"
#include "tests/bench/hostile/process.h"
#include "tests/bench/hostile/starts.h"
#include "tests/bench/hostile/witness.h"
#include "tests/bench/team.h"
#include "tests/bench/vitals.h"

#define HEAD_START_MS 500   /* lead of the attack */
#define START_MS      60000 /* time for a daemon to be ready */
#define LINE_BYTES    400
#define RATIO_MAX     2.0 /* ratio of p99 beside the attack and alone */

static const struct attack {
    const char *name, *what;
    unsigned flags;
    void (*run)(struct attacker *self);
} attacks[] = {
#define X(NAME, FLAGS, WHAT) {#NAME, WHAT, FLAGS, attack_##NAME},
    ATTACKS(X)
#undef X
};
#define ATTACK_COUNT (sizeof(attacks) / sizeof(attacks[0]))

/* Daemons that are started with too little. */
static const struct start {
    const char *name, *what;
    bool memory;
    int (*run)(const char *scand, double patience_ms, bool *bad);
} starts[] = {
#define X(NAME, MEMORY, WHAT) {#NAME, WHAT, MEMORY, start_##NAME},
    STARTS(X)
#undef X
};
#define START_COUNT (sizeof(starts) / sizeof(starts[0]))

/* The jobs of those with ATTACK_LONG_ROWS. */
static const struct {
    void (*run)(struct attacker *self);
    long_rows *rows;
} rows_of_attacks[] = {
    {attack_reduce_long, long_rows_reduce_long},
    {attack_chain_long, long_rows_chain_long},
    {attack_chain_affine, long_rows_chain_affine},
};

struct hostile {
    const char *scand, *device;
    double seconds, patience_ms;
    bool memory;
    uint16_t http_port; /* port of the daemons' pages of metrics */
    FILE *csv;
    bool failed;
    unsigned acts, slower, failing; /* lines of the table that there are, and of those */
};

/* The measurements of one attack. */
struct outcome {
    struct testimony *alone, *beside;
    struct tally *tally;
    struct endings endings;
    double end_ms; /* for an attack without long rows: from SIGTERM to the daemon's exit */
    uint64_t log_lines;
    bool lives, guarded;
    struct vitals before, during; /* vitals of the worker; zeros where they could not be told */
};

/*
 * Measuring.
 */

struct assault {
    const struct attack *attack;
    struct attacker attacker;
    const struct team *team;
};

static void run_attack(const void *argument)
{
    const struct assault *assault = argument;
    struct attacker attacker = assault->attacker;
    close(assault->team->begin[1]); /* the team begins when nobody has it any more */
    assault->attack->run(&attacker);
}

static pid_t start_attack(const struct hostile *self, const struct attack *attack, struct daemon *daemon,
                          struct tally *tally, const struct team *team)
{
    const struct assault assault = {
        attack,
        {daemon->server.socket, bench_now_ms() + HEAD_START_MS + self->seconds * 1e3, tally, self->http_port},
        team};
    pid_t process = process_start(run_attack, &assault, attack->flags & ATTACK_USERS ? PROCESS_SELF : PROCESS_ATTACKER);
    if (process > 0)
        daemon_watch_process(daemon, process, bench_now_ms() + HEAD_START_MS);
    return process;
}

static void end_process(struct daemon *daemon, pid_t process, double until_ms)
{
    if (process > 0 && !daemon_watch_process(daemon, process, until_ms))
        kill(process, SIGKILL);
}

/* The witness, and beside it the attack unless that is NULL; and what the worker holds then. */
static int observe(const struct hostile *self, const struct attack *attack, struct daemon *daemon,
                   struct testimony *testimony, struct tally *tally, struct vitals *vitals)
{
    const struct witness_order order = {daemon->server.socket, self->seconds, testimony};
    struct team team;
    pid_t attacker = 0;
    int r = team_start(&team, MEMBER_COUNT, witness_work, &order);
    if (!r && attack)
        attacker = start_attack(self, attack, daemon, tally, &team);
    double until_ms = bench_now_ms() + self->seconds * 1e3;
    team_begin(&team);
    if (!r)
        daemon_watch_process(daemon, team.members[0], until_ms - self->seconds * 1e3 / 2);
    vitals_read(daemon->worker, vitals);
    for (int i = 0; i < team.count && !r; i++)
        end_process(daemon, team.members[i], until_ms + self->patience_ms);
    end_process(daemon, attacker, until_ms + 100);
    team_end(&team);
    if (attacker > 0)
        waitpid(attacker, NULL, 0);
    testimony_end(testimony);
    return r;
}

static long_rows *rows_of(const struct attack *attack)
{
    for (size_t i = 0; i < sizeof rows_of_attacks / sizeof rows_of_attacks[0]; i++)
        if (rows_of_attacks[i].run == attack->run)
            return rows_of_attacks[i].rows;
    return NULL;
}

static void end_daemon(const struct hostile *self, const struct attack *attack, struct daemon *daemon,
                       struct outcome *out)
{
    out->endings = (struct endings){NAN, NAN, NAN, NAN};
    out->end_ms = NAN;
    if (attack->flags & ATTACK_LONG_ROWS && out->lives)
        endings_measure(daemon, rows_of(attack), self->patience_ms, &out->endings);
    else
        out->end_ms = daemon_end(daemon, self->patience_ms);
}

static int measure(const struct hostile *self, const struct attack *attack, struct outcome *out)
{
    struct daemon daemon;
    char page[32];
    snprintf(page, sizeof page, "127.0.0.1:%u", (unsigned)self->http_port);
    /* Attacks that the quota would refuse never meet the bound of memory, so the quota is raised for them. */
    const char *option = attack->flags & ATTACK_MEMORY ? "--quota-host-memory"
                         : attack->flags & ATTACK_HTTP ? "--metrics-listen"
                                                       : NULL;
    const char *value = attack->flags & ATTACK_MEMORY ? "1024G" : page;
    const char *const arguments[] = {"--device", self->device, option, value, NULL};
    if (daemon_start(&daemon, self->scand, arguments))
        return 1;
    if (daemon_await(&daemon, START_MS)) {
        char line[LINE_BYTES];
        daemon_log_last(&daemon, line, sizeof line);
        daemon_end(&daemon, self->patience_ms);
        return client_fail(daemon.guarded ? "the daemon was killed, memory was about to run out"
                                          : "the daemon does not answer; the last line of its log",
                           line);
    }
    int r = observe(self, NULL, &daemon, out->alone, NULL, &out->before);
    uint64_t lines_before = daemon_log_lines(&daemon);
    if (!r)
        r = observe(self, attack, &daemon, out->beside, out->tally, &out->during);
    out->lives = daemon_lives(&daemon);
    out->guarded = daemon.guarded;
    out->log_lines = daemon_log_lines(&daemon) - lines_before;
    end_daemon(self, attack, &daemon, out);
    return r;
}

/*
 * Printing.
 */

static void print_head(void)
{
    printf("%-18s %-8s %9s %9s %9s %9s %7s %6s %6s\n", "attack", "witness", "alone p50", "p99", "beside", "p99",
           "ratio", "count", "failed");
}

static void print_act(struct hostile *self, const struct attack *attack, enum act act, struct outcome *outcome)
{
    struct act_times *alone = &outcome->alone->acts[act], *beside = &outcome->beside->acts[act];
    double p50[2] = {act_quantile(alone, 0.5), act_quantile(beside, 0.5)};
    double p99[2] = {act_quantile(alone, 0.99), act_quantile(beside, 0.99)};
    double ratio = p99[1] / p99[0];
    printf("%-18s %-8s %9.3f %9.3f %9.3f %9.3f %7.2f %6" PRIu64 " %6" PRIu64 "%s\n", attack->name, act_names[act],
           p50[0], p99[0], p50[1], p99[1], ratio, beside->count, beside->failed, ratio > RATIO_MAX ? "  slower" : "");
    if (self->csv)
        fprintf(self->csv, "%s,\"%s\",%s,%.4f,%.4f,%.4f,%.4f,%.3f,%" PRIu64 ",%" PRIu64 "\n", attack->name,
                attack->what, act_names[act], p50[0], p99[0], p50[1], p99[1], ratio, beside->count, beside->failed);
    self->acts++;
    self->slower += ratio > RATIO_MAX;
    self->failing += beside->failed > 0;
    self->failed |= beside->failed > 0;
}

static void print_failures(const struct testimony *testimony, const char *when)
{
    for (enum act act = 0; act < ACT_COUNT; act++)
        if (testimony->acts[act].failed)
            printf("    witness %s, %s: %" PRIu64 " failed: %s\n", when, act_names[act], testimony->acts[act].failed,
                   testimony->acts[act].failure);
}

/* One wait in a thousand is in no quantile above, and may last for seconds. */
static void print_longest(struct testimony *testimony)
{
    double longest_ms = 0;
    enum act of = ACT_ping;
    for (enum act act = 0; act < ACT_COUNT; act++) {
        const double ms = act_quantile(&testimony->acts[act], 1);
        if (ms > longest_ms) {
            longest_ms = ms;
            of = act;
        }
    }
    printf("    witness beside: the longest took %.0f ms (%s)\n", longest_ms, act_names[of]);
}

static void print_tally(const struct tally *tally)
{
    printf("    attacker: %" PRIu64 " ok", tally->answers[0]);
    if (tally->sent)
        printf("; %" PRIu64 " requests sent", tally->sent);
    if (tally->connected)
        printf("; %" PRIu64 " connections", tally->connected);
    if (tally->refused)
        printf("; %" PRIu64 " connections not made", tally->refused);
    if (tally->closed)
        printf("; %" PRIu64 " connections ended by the daemon", tally->closed);
    printf("\n");
    for (uint64_t status = 1; status < STATUSES_MAX; status++)
        if (tally->answers[status])
            printf("    attacker: %" PRIu64 " %s: %s\n", tally->answers[status], scand_status_word((int)status),
                   tally->messages[status]);
}

static void print_ending(const char *what, double milliseconds)
{
    if (!isnan(milliseconds))
        printf("; %s %.1f ms", what, milliseconds);
}

static void print_outcome(struct hostile *self, const struct attack *attack, struct outcome *outcome)
{
    for (enum act act = 0; act < ACT_COUNT; act++)
        print_act(self, attack, act, outcome);
    print_failures(outcome->alone, "alone");
    print_failures(outcome->beside, "beside");
    print_longest(outcome->beside);
    print_tally(outcome->tally);
    printf("    daemon: %s, %" PRIu64 " log lines",
           outcome->guarded ? "killed, memory was about to run out"
           : outcome->lives ? "the same worker answers"
                            : "its worker is lost or does not answer",
           outcome->log_lines);
    printf("; it grew by %" PRId64 " KiB of heap, %" PRId64 " descriptors, %" PRId64 " mappings",
           (int64_t)(outcome->during.anonymous_kib - outcome->before.anonymous_kib),
           (int64_t)(outcome->during.descriptors - outcome->before.descriptors),
           (int64_t)(outcome->during.mappings - outcome->before.mappings));
    print_ending("cancel", outcome->endings.cancel_ms);
    print_ending("free after a departure", outcome->endings.departed_ms);
    print_ending("drain beside such a row", outcome->endings.drain_ms);
    print_ending("drain after a departure", outcome->endings.left_ms);
    print_ending("end", outcome->end_ms);
    printf("\n");
    fflush(stdout);
    self->failed |= !outcome->lives;
}

/*
 * The command line.
 */

/* Keeps a port for the daemons of this process; they may have it beside a socket that does not listen. */
static uint16_t port_reserve(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof place;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(fd, (const struct sockaddr *)&place, size) || getsockname(fd, (struct sockaddr *)&place, &size)) {
        perror("a port for metrics");
        exit(71);
    }
    return ntohs(place.sin_port);
}

/* Returns why something with these flags cannot run; NULL: it can. */
static const char *obstacle(const struct hostile *self, unsigned flags)
{
    if (flags & ATTACK_USERS && geteuid() != 0)
        return "only root can be other users";
    if (flags & ATTACK_MEMORY && !self->memory)
        return "it may use up the memory of this machine; --memory includes it";
    return NULL;
}

static int run_attack_measured(struct hostile *self, const struct attack *attack)
{
    struct outcome outcome = {.alone = process_share(sizeof *outcome.alone),
                              .beside = process_share(sizeof *outcome.beside),
                              .tally = process_share(sizeof *outcome.tally)};
    int r = measure(self, attack, &outcome);
    if (!r)
        print_outcome(self, attack, &outcome);
    process_unshare(outcome.alone, sizeof *outcome.alone);
    process_unshare(outcome.beside, sizeof *outcome.beside);
    process_unshare(outcome.tally, sizeof *outcome.tally);
    return r;
}

/* One of the two is NULL. */
static int run_one(struct hostile *self, const struct attack *attack, const struct start *start)
{
    const char *why = obstacle(self, attack ? attack->flags : start->memory ? ATTACK_MEMORY : 0);
    printf("# %s: %s\n", attack ? attack->name : start->name, attack ? attack->what : start->what);
    fflush(stdout);
    if (why)
        printf("    left out: %s\n", why);
    if (why)
        return 0;
    return attack ? run_attack_measured(self, attack) : start->run(self->scand, self->patience_ms, &self->failed);
}

/* All, also when one could not be run. */
static int run_all(struct hostile *self)
{
    int r = 0;
    for (size_t i = 0; i < ATTACK_COUNT; i++)
        r |= run_one(self, &attacks[i], NULL);
    for (size_t i = 0; i < START_COUNT; i++)
        r |= run_one(self, NULL, &starts[i]);
    return r;
}

static int run_named(struct hostile *self, const char *name)
{
    for (size_t i = 0; i < ATTACK_COUNT; i++)
        if (strcmp(attacks[i].name, name) == 0)
            return run_one(self, &attacks[i], NULL);
    for (size_t i = 0; i < START_COUNT; i++)
        if (strcmp(starts[i].name, name) == 0)
            return run_one(self, NULL, &starts[i]);
    fprintf(stderr, "scand-bench hostile: no attack \"%s\"; --list names them\n", name);
    return 64;
}

static void list(void)
{
    for (size_t i = 0; i < ATTACK_COUNT; i++)
        printf("%-18s %s\n", attacks[i].name, attacks[i].what);
    for (size_t i = 0; i < START_COUNT; i++)
        printf("%-18s %s\n", starts[i].name, starts[i].what);
}

static int open_csv(struct hostile *self, const char *path)
{
    self->csv = fopen(path, "we");
    if (!self->csv) {
        perror(path);
        return 73;
    }
    fprintf(self->csv, "attack,what,act,alone_p50_ms,alone_p99_ms,beside_p50_ms,beside_p99_ms,ratio,count,failed\n");
    return 0;
}

static double parse_seconds(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    return *end == '\0' && seconds >= 0.5 && seconds <= 600 ? seconds : 0;
}

/* Parses the command line. Returns -1, or an exit status. */
static int parse(struct hostile *self, int argc, char **argv)
{
    static const struct option names[] = {{"device", required_argument, NULL, 'd'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"patience", required_argument, NULL, 'p'},
                                          {"memory", no_argument, NULL, 'm'},
                                          {"csv", required_argument, NULL, 'c'},
                                          {"list", no_argument, NULL, 'l'},
                                          {0}};
    int option, r = -1;
    while (r < 0 && (option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'd')
            self->device = optarg;
        else if (option == 's')
            self->seconds = parse_seconds(optarg);
        else if (option == 'p')
            self->patience_ms = parse_seconds(optarg) * 1e3;
        else if (option == 'm')
            self->memory = true;
        else if (option == 'c')
            r = open_csv(self, optarg) ? 73 : -1;
        else if (option == 'l')
            list();
        if (option == 'l' || option == '?')
            r = option == 'l' ? 0 : 64;
    }
    if (self->seconds > 0 && self->patience_ms > 0)
        return r;
    fprintf(stderr, "scand-bench hostile: --seconds and --patience: allowed are 0.5 to 600\n");
    return 64;
}

int bench_hostile(const char *scand, int argc, char **argv)
{
    struct hostile self = {
        .scand = scand, .device = "cpu", .seconds = 4, .patience_ms = 30000, .http_port = port_reserve()};
    int r = parse(&self, argc, argv);
    if (r >= 0)
        return r;
    if (geteuid() != 0)
        printf("# not root: attacker and witness are the same user\n");
    print_head();
    r = optind == argc ? run_all(&self) : 0;
    for (int i = optind; i < argc && !r; i++)
        r = run_named(&self, argv[i]);
    printf("# of %u lines %u have a p99 beside the attack of more than %g times that alone; something failed in %u\n",
           self.acts, self.slower, RATIO_MAX, self.failing);
    if (self.csv && fclose(self.csv))
        r = 73;
    return r ? r : self.failed;
}

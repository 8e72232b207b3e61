/* The socket's place, stale sockets, addresses in use. */
#include "protocol/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/status.h"
#include "tests/check.h"
#include "tests/unit/open_descriptors.h"

static char folder[64];         /* folder of this run */
static struct socket_file file; /* socket file that was made last */
static const struct socket_access mine = {.mode = 0600, .group = SOCKET_GROUP_OWN};

/* How the socket at a path is when it begins to listen. */
static const char *listening;
static struct stat listened;
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);

int __wrap_listen(int fd, int backlog)
{
    CHECK_EQ(listening ? lstat(listening, &listened) : 0, 0);
    return __real_listen(fd, backlog);
}

static const char *in_folder(const char *name)
{
    static char path[SOCKET_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The lock file beside a socket. */
static const char *beside(const char *path)
{
    static char lock[SOCKET_PATH_BYTES + 8];
    snprintf(lock, sizeof lock, "%s.lock", path);
    return lock;
}

static void forget(const char *path)
{
    unlink(path);
    unlink(beside(path));
}

static int bind_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A socket file at path that nobody listens at. */
static void make_stale(const char *path)
{
    close(bind_at(path));
}

static void the_path_comes_from_the_first_that_is_set(void)
{
    char path[SOCKET_PATH_BYTES];
    struct error error;
    setenv("SCAND_SOCKET", "/a/b", 1);
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    CHECK_EQ(socket_path("given", path, &error), 0);
    CHECK(strcmp(path, "given") == 0);
    CHECK_EQ(socket_path(NULL, path, &error), 0);
    CHECK(strcmp(path, "/a/b") == 0);
    unsetenv("SCAND_SOCKET");
    CHECK_EQ(socket_path(NULL, path, &error), 0);
    CHECK(strcmp(path, "/run/user/7/scand.sock") == 0);
    setenv("SCAND_SOCKET", "", 1); /* set to nothing is not set */
    CHECK_EQ(socket_path(NULL, path, &error), 0);
    CHECK(strcmp(path, "/run/user/7/scand.sock") == 0);
    setenv("XDG_RUNTIME_DIR", "", 1);
    int code = socket_path(NULL, path, &error);
    if (geteuid() == 0) {
        CHECK_EQ(code, 0);
        CHECK(strcmp(path, "/run/scand/scand.sock") == 0);
    } else {
        CHECK_EQ(code, -EINVAL);
        CHECK_CONTAINS(error.message, "SCAND_SOCKET");
    }
    unsetenv("SCAND_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
}

static void found(const char *given, const char *expected, const char *expected_looked)
{
    char path[SOCKET_PATH_BYTES], looked[SOCKET_LOOKED_BYTES];
    CHECK_EQ(socket_find(given, path, looked, NULL), 0);
    CHECK(strcmp(path, expected) == 0);
    if (*expected_looked)
        CHECK_CONTAINS(looked, expected_looked);
    else
        CHECK_EQ(looked[0], '\0');
}

static void a_client_finds_the_first_that_is_there(void)
{
    static const char system[] = "/run/scand/scand.sock";
    char own[SOCKET_PATH_BYTES], none[SOCKET_LOOKED_BYTES];
    snprintf(own, sizeof own, "%s", in_folder("scand.sock"));
    snprintf(none, sizeof none, "SCAND_SOCKET is not set, and there is no socket %s", own);
    unsetenv("SCAND_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
    found(NULL, system, "SCAND_SOCKET and XDG_RUNTIME_DIR are not set");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    found(NULL, system, none);
    int fd = open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    found(NULL, system, none); /* it is no socket */
    CHECK(close(fd) == 0 && unlink(own) == 0);
    make_stale(own);
    found(NULL, own, "SCAND_SOCKET is not set");
    found("given", "given", "");
    setenv("SCAND_SOCKET", "/a/b", 1);
    found(NULL, "/a/b", "");
    unlink(own);
    unsetenv("SCAND_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
}

static void paths_have_a_longest(void)
{
    char path[SOCKET_PATH_BYTES] = "untouched", given[SOCKET_PATH_BYTES + 1];
    struct error error;
    memset(given, 'x', sizeof given);
    given[SOCKET_PATH_BYTES] = '\0';
    CHECK_EQ(socket_path(given, path, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "has 108 bytes; allowed: up to 107");
    CHECK(strcmp(path, "untouched") == 0);
    CHECK_EQ(socket_connect(given, &error), -EINVAL);
    CHECK_EQ(socket_listen(given, &mine, &file, &error), -EINVAL);
    given[SOCKET_PATH_BYTES - 1] = '\0';
    CHECK_EQ(socket_path(given, path, &error), 0);
    CHECK(strcmp(path, given) == 0);
    setenv("XDG_RUNTIME_DIR", given, 1);
    CHECK_EQ(socket_path(NULL, path, &error), -EINVAL);
    unsetenv("XDG_RUNTIME_DIR");
    CHECK_EQ(socket_path("", path, &error), -EINVAL);
    CHECK_EQ(socket_connect("", &error), -EINVAL);
    CHECK_EQ(socket_listen("", &mine, &file, &error), -EINVAL);
}

static void nobody_there_is_connection_refused(void)
{
    struct error error;
    CHECK_EQ(socket_connect(in_folder("none"), &error), -ECONNREFUSED);
    CHECK_EQ(error.code, -ECONNREFUSED);
    CHECK_CONTAINS(error.message, "/none");
    CHECK_EQ(socket_connect("/dev/null/x", &error), -ECONNREFUSED);
    make_stale(in_folder("stale"));
    CHECK_EQ(socket_connect(in_folder("stale"), &error), -ECONNREFUSED);
    CHECK_CONTAINS(error.message, "nobody listens");
    unlink(in_folder("stale"));
    CHECK_EQ(socket_connect("/dev/null", &error), -ECONNREFUSED);
    CHECK_CONTAINS(error.message, "no daemon at /dev/null: that is no socket; set SCAND_SOCKET");
}

static void listening_and_connecting(void)
{
    struct error error;
    const char *path = in_folder("made/scand.sock");
    const struct socket_access shared = {.mode = 0660, .group = SOCKET_GROUP_OWN};
    mode_t mask = umask(077);
    int server = socket_listen(path, &shared, &file, &error);
    umask(mask);
    REQUIRE(server >= 0);
    struct stat status;
    CHECK_EQ(stat(path, &status), 0);
    CHECK_EQ(status.st_mode & 07777, 0660);
    int client = socket_connect(path, &error);
    REQUIRE(client >= 0);
    CHECK_EQ(fcntl(server, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(client, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
    int accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(accepted >= 0);
    CHECK_EQ(write(client, "x", 1), 1);
    char byte = 0;
    CHECK_EQ(read(accepted, &byte, 1), 1);
    close(accepted);
    close(client);
    close(server);
    forget(path);
    rmdir(in_folder("made"));
}

/* Nobody who may connect is turned away because the daemon has not come to saying so. */
static void who_may_connect_is_known_from_the_start(void)
{
    struct error error;
    const bool is_root = geteuid() == 0;
    const struct socket_access group = {.mode = 0666, .group = is_root ? 12 : SOCKET_GROUP_OWN};
    const char *path = listening = in_folder("open");
    int server = socket_listen(path, &group, &file, &error);
    listening = NULL;
    REQUIRE(server >= 0);
    CHECK_EQ(listened.st_mode & 07777, 0666);
    CHECK_EQ(listened.st_ino, file.inode);
    CHECK(!is_root || listened.st_gid == 12);
    close(server);
    forget(path);
}

static void a_group_of_others_is_refused(void)
{
    struct error error;
    const char *path = in_folder("theirs");
    const struct socket_access theirs = {.mode = 0660, .group = 54321};
    if (geteuid() == 0)
        return;
    CHECK_EQ(socket_listen(path, &theirs, &file, &error), -EPERM);
    CHECK_CONTAINS(error.message, "to group 54321: ");
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(access(beside(path), F_OK), -1);
}

static void an_address_in_use_stays(void)
{
    struct error error;
    const char *path = in_folder("used");
    int server = socket_listen(path, &mine, &file, &error);
    REQUIRE(server >= 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    CHECK_CONTAINS(error.message, "a daemon answers");
    int client = socket_connect(path, &error); /* still there */
    CHECK(client >= 0);
    close(client);
    close(server);
    int next = socket_listen(path, &mine, &file, &error); /* stale now, and replaced */
    CHECK(next >= 0);
    client = socket_connect(path, &error);
    CHECK(client >= 0);
    close(client);
    close(next);
    forget(path);
}

/* Checks a socket whose supervisor is killed while its worker takes a moment longer to end. */
static void check_orphan(bool reaped)
{
    struct error error;
    const char *path = in_folder("orphan");
    int told[2], hold[2];
    char byte;
    REQUIRE(pipe(told) == 0 && pipe(hold) == 0);
    pid_t listener = fork();
    if (listener == 0) {
        bool listens = socket_listen(path, &mine, &file, &error) >= 0;
        close(hold[1]);
        if (fork() == 0) /* holds the socket until the test ends */
            _exit(write(told[1], listens ? "y" : "n", 1) == 1 && read(hold[0], &byte, 1) == 0 ? 0 : 1);
        pause();
    }
    CHECK_EQ(read(told[0], &byte, 1), 1);
    CHECK_EQ(byte, 'y');
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    kill(listener, SIGKILL);
    siginfo_t ended;
    CHECK_EQ(waitid(P_PID, (id_t)listener, &ended, WEXITED | (reaped ? 0 : WNOWAIT)), 0);
    int server = socket_listen(path, &mine, &file, &error);
    CHECK(server >= 0);
    close(server);
    if (!reaped)
        waitpid(listener, NULL, 0);
    close(hold[1]);
    close(hold[0]);
    close(told[0]);
    close(told[1]);
    forget(path);
}

static void a_socket_whose_listener_was_killed(void)
{
    check_orphan(false);
    check_orphan(true);
}

/* A daemon that does not come to accepting is one that is there. */
static void a_full_backlog_is_in_use(void)
{
    struct error error;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = in_folder("full");
    memcpy(address.sun_path, path, strlen(path));
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[2];
    CHECK_EQ(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(server, 0), 0);
    for (int i = 0; i < 2; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(clients[i], (struct sockaddr *)&address, sizeof address))
            CHECK_EQ(errno, EAGAIN);
    }
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    for (int i = 0; i < 2; i++)
        close(clients[i]);
    close(server);
    unlink(path);
}

static void other_files_are_not_removed(void)
{
    struct error error;
    const char *path = in_folder("file");
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    CHECK_CONTAINS(error.message, "no socket");
    CHECK_EQ(access(path, F_OK), 0);
    CHECK_EQ(socket_connect(path, &error), -ECONNREFUSED);
    unlink(path);
    CHECK_EQ(symlink("elsewhere", path), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    unlink(path);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    rmdir(path);
}

/* A program that listened, left the socket to a child and ended, as those do that go behind. */
static void a_socket_of_another_program_stays(void)
{
    struct error error;
    const char *path = in_folder("other");
    int hold[2];
    char byte;
    REQUIRE(pipe(hold) == 0);
    pid_t listener = fork();
    if (listener == 0) {
        close(hold[1]);
        bool listens = listen(bind_at(path), 8) == 0;
        if (fork() == 0)
            _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        _exit(listens ? 0 : 1);
    }
    int status;
    CHECK(waitpid(listener, &status, 0) == listener && status == 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    CHECK_CONTAINS(error.message, "another program answers at");
    int client = socket_connect(path, &error);
    CHECK(client >= 0);
    close(client);
    CHECK_EQ(access(beside(path), F_OK), -1); /* nothing is left */
    close(hold[0]);
    close(hold[1]);
    unlink(path);
}

static void anybodys_lock_of_the_folder_is_no_matter(void)
{
    struct error error;
    const char *path = in_folder("locked");
    int locked = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(locked, LOCK_EX | LOCK_NB), 0);
    int server = socket_listen(path, &mine, &file, &error);
    CHECK(server >= 0);
    struct stat status;
    CHECK_EQ(stat(beside(path), &status), 0);
    CHECK_EQ(status.st_mode & 07777, 0600);
    socket_remove(path, &file);
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(access(beside(path), F_OK), -1);
    close(server);
    close(locked);
}

/* One that somebody else could open would let them keep every daemon from starting. */
static void a_lock_that_others_can_take_is_refused(void)
{
    struct error error;
    const char *path = in_folder("shared");
    int lock = open(beside(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_EQ(fchmod(lock, 0644), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    CHECK_CONTAINS(error.message, "shared.lock is no regular file that user");
    CHECK_EQ(fchmod(lock, 0600), 0);
    if (geteuid() == 0) {
        CHECK_EQ(fchown(lock, 65534, 65534), 0);
        CHECK(socket_listen(path, &mine, &file, &error) < 0);
        CHECK_EQ(fchown(lock, 0, 0), 0);
    }
    CHECK_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    CHECK_CONTAINS(error.message, "another daemon that starts or ends");
    close(lock);
    unlink(beside(path));
    CHECK_EQ(symlink("elsewhere", beside(path)), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -ELOOP);
    CHECK_EQ(access(in_folder("elsewhere"), F_OK), -1);
    path = in_folder("shared");
    unlink(beside(path));
    CHECK_EQ(mkfifo(beside(path), 0600), 0);
    CHECK_EQ(socket_listen(path, &mine, &file, &error), -EADDRINUSE);
    unlink(beside(path));
}

static void at_its_end_a_daemon_removes_its_own_socket_alone(void)
{
    struct error error;
    const char *path = in_folder("end");
    int server = socket_listen(path, &mine, &file, &error);
    REQUIRE(server >= 0);
    struct socket_file first = file;
    CHECK_EQ(unlink(path), 0);
    int next = socket_listen(path, &mine, &file, &error);
    REQUIRE(next >= 0);
    socket_remove(path, &first);
    int client = socket_connect(path, &error);
    CHECK(client >= 0);
    close(client);
    close(server);
    CHECK_EQ(access(beside(path), F_OK), 0);
    socket_remove(path, &file);
    close(next);
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(access(beside(path), F_OK), -1);
}

static void a_folder_that_cannot_be_made(void)
{
    struct error error;
    CHECK_EQ(socket_listen(in_folder("a/b/c"), &mine, &file, &error), -ENOENT);
    CHECK_CONTAINS(error.message, "; choose a socket path in a folder that exists");
    CHECK(socket_listen("/dev/null/x", &mine, &file, &error) < 0);
    CHECK_CONTAINS(error.message, "/dev/null");
}

static void a_path_without_a_folder(void)
{
    struct error error;
    char before[4096];
    REQUIRE(getcwd(before, sizeof before) && chdir(folder) == 0);
    int server = socket_listen("here", &mine, &file, &error);
    CHECK(server >= 0);
    close(server);
    forget(in_folder("here"));
    CHECK_EQ(chdir(before), 0);
}

/* Several daemons start at once over a stale socket: one gets it, and keeps it. */
static void one_of_many_wins(void)
{
    enum { MANY = 8 };
    const char *path = in_folder("race");
    make_stale(path);
    int results[2], hold[2];
    REQUIRE(pipe(results) == 0 && pipe(hold) == 0);
    for (int i = 0; i < MANY; i++) {
        pid_t child = fork();
        if (child == 0) {
            close(hold[1]);
            struct error error;
            char won = socket_listen(path, &mine, &file, &error) >= 0;
            char byte;
            if (write(results[1], &won, 1) != 1 || read(hold[0], &byte, 1) != 0)
                _exit(1);
            _exit(0);
        }
    }
    int winners = 0;
    for (int i = 0; i < MANY; i++) {
        char won = 0;
        CHECK_EQ(read(results[0], &won, 1), 1);
        winners += won;
    }
    CHECK_EQ(winners, 1);
    struct error error;
    int client = socket_connect(path, &error);
    CHECK(client >= 0);
    close(client);
    close(hold[1]);
    int status;
    for (int i = 0; i < MANY; i++)
        CHECK(wait(&status) > 0 && status == 0);
    close(hold[0]);
    close(results[0]);
    close(results[1]);
    forget(path);
}

static void no_descriptor_is_left(void)
{
    size_t before = descriptors_open();
    nobody_there_is_connection_refused();
    listening_and_connecting();
    an_address_in_use_stays();
    other_files_are_not_removed();
    a_lock_that_others_can_take_is_refused();
    at_its_end_a_daemon_removes_its_own_socket_alone();
    a_folder_that_cannot_be_made();
    CHECK_EQ(descriptors_open(), before);
}

static const struct test tests[] = {
    TEST(the_path_comes_from_the_first_that_is_set),
    TEST(a_client_finds_the_first_that_is_there),
    TEST(paths_have_a_longest),
    TEST(nobody_there_is_connection_refused),
    TEST(listening_and_connecting),
    TEST(who_may_connect_is_known_from_the_start),
    TEST(a_group_of_others_is_refused),
    TEST(an_address_in_use_stays),
    TEST(a_socket_whose_listener_was_killed),
    TEST(a_full_backlog_is_in_use),
    TEST(other_files_are_not_removed),
    TEST(a_socket_of_another_program_stays),
    TEST(anybodys_lock_of_the_folder_is_no_matter),
    TEST(a_lock_that_others_can_take_is_refused),
    TEST(at_its_end_a_daemon_removes_its_own_socket_alone),
    TEST(a_folder_that_cannot_be_made),
    TEST(a_path_without_a_folder),
    TEST(one_of_many_wins),
    TEST(no_descriptor_is_left),
    TEST_END,
};

int main(int argc, char **argv)
{
    snprintf(folder, sizeof folder, "/tmp/scand-test-socket-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int code = test_main(argc, argv, tests);
    if (rmdir(folder)) {
        fprintf(stderr, "files are left in %s\n", folder);
        return 1;
    }
    return code;
}

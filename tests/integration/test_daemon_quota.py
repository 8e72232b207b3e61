#!/usr/bin/env python3
"""Quotas of users, the configuration file, and reading it again.

test_daemon_quota.py SCAND [unittest's arguments]
"""

import os
import pty
import re
import shutil
import signal
import tempfile
import time
import unittest

import daemons
from daemons import ON_CPU, Daemon, DaemonTest, main, scand
from wire import Client, Failure, eventually, memfd, pack, pack_f32, scan, tensor, unpack_f32

MIB = 1 << 20
NOBODY = 65534
UID = os.getuid()
HERE = os.path.dirname(os.path.abspath(__file__))


def as_nobody(act):
    """Returns what act() returns, a small number, in a process of user nobody."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = act()
        except BaseException as error:  # this process must not go on as a second test
            os.write(2, f"as nobody: {error!r}\n".encode())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Quotas(DaemonTest):
    """Tests of a user whose quotas are small. The neighbour is the same user, with a buffer of a page."""

    options = (
        *ON_CPU,
        *("--quota-host-memory", "17M", "--quota-device-memory", "256M"),
        *("--quota-jobs", "3", "--quota-connections", "4"),
    )

    def test_host_memory(self):
        client, other = self.client(), self.client()
        first = client.create(9 * MIB)  # a segment of twice as much as the next smaller one
        message = f"buffer.create: user {UID} has 16781312 bytes of host buffers and asks for 16777216 more; "
        message += 'its quota "host-memory" is 17825792; release a buffer, or ask whoever runs the daemon'
        self.refused(client, "quota", message, "buffer.create", size=9 * MIB, place="host")
        message = "buffer.import: user .* asks for 1048576 more"
        self.refused(other, "quota", message, "buffer.import", {"size": MIB, "fds": 1}, [memfd(MIB)])
        other.adopt(MIB // 2, MIB // 2)
        client.call("buffer.release", buffer=first.buffer)
        other.create(16 * MIB)

    def test_device_memory(self):
        client = self.client()
        kept = client.call("buffer.create", size=200 * MIB, place="device")["buffer"]
        message = f"buffer.create: user {UID} has {200 * MIB} bytes of device buffers and asks for {57 * MIB} more; "
        message += f'its quota "device-memory" is {256 * MIB}; release a buffer'
        self.refused(client, "quota", message, "buffer.create", size=57 * MIB, place="device")
        client.call("buffer.release", buffer=kept)
        self.assertTrue(client.call("buffer.create", size=57 * MIB, place="device")["buffer"])

    def test_jobs(self):
        client, other = self.client(), self.client()
        far = client.call("buffer.create", size=200 * MIB, place="device")["buffer"]
        rows = tensor(far, [5000, 10240])
        job = scan(rows, accumulator="f2", passes=["forward", "backward"], after_failure=1)
        running = [client.send("job.submit", job) for _ in range(3)]
        mine = other.create(400)
        mine.write(pack_f32([1] * 100))
        small = scan(tensor(mine.buffer, [100]))
        client.call("server.ping")
        message = f'job.submit: user {UID} has 3 jobs that wait or run and asks for 1 more; its quota "jobs" is 3; '
        self.refused(other, "quota", message + "wait until some of them are done", "job.submit", small)
        for job in running[1:]:
            client.call("job.cancel", job=job)
        other.call("job.submit", small)
        self.assertEqual(unpack_f32(mine.read(0, 400)), list(range(1, 101)))
        client.wait(running[0])

    def test_connections(self):
        clients = [self.client() for _ in range(3)]
        with self.assertRaises(Failure) as caught:
            self.client()
        error = caught.exception.error
        message = f'connect: user {UID} has 4 connections and asks for 1 more; its quota "connections" is 4; close one'
        self.assertEqual((error["name"], error["code"]), ("quota", 9))
        self.assertRegex(error["message"], message)
        late = self.client(greet=False)
        clients[0].close()
        eventually(lambda: self.neighbour.call("server.stats")["clients_open"] == 4)
        late.call("hello", version_min=1, version_max=1)  # there is room when it speaks
        late.close()

    def test_connection_that_is_told_ends(self):
        clients = [self.client() for _ in range(3)]
        late = self.client(greet=False)
        late.send_bytes(pack([0, 7, "server.ping", [{}]]) + pack([0, 8, "server.ping", [{}]]))
        self.fails(late, 7, "quota", "connect: ")
        self.assertTrue(late.is_closed())
        for client in clients:
            client.call("server.ping")
            client.close()

    def test_connections_that_say_nothing(self):
        """A few may wait to be told, for a while; they do not fill the daemon."""
        clients = [self.client() for _ in range(3)]
        silent = [self.client(greet=False) for _ in range(20)]
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats")["clients_open"] == 12))
        self.assertTrue(eventually(lambda: "was turned away" in self.daemon.log_text()))
        self.assertEqual(self.daemon.log_text().count("was turned away"), 1)  # a line for all that follow
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats")["clients_open"] == 4))
        for client in silent:
            self.assertTrue(client.is_closed())
        for client in clients:
            client.call("server.ping")
            client.close()
        self.settles()


class Staged(DaemonTest):
    """Tests of a user who may pin nothing: imported memory works like any other, only slower."""

    options = ("--quota-pinned-memory", "0")
    ROWS, SAMPLES = 3000, 1500  # several chunks

    def test_imported_memory(self):
        client, size = self.client(), self.ROWS * self.SAMPLES * 4
        memory, other = client.adopt(size, MIB), client.adopt(2 * size, MIB)
        self.assertEqual(client.call("server.stats")["staged_bytes"], 3 * size)
        row = pack_f32([1, 2, 3] * (self.SAMPLES // 3))
        sums = [6 * (i // 3) + (1, 3, 6)[i % 3] for i in range(self.SAMPLES)]
        memory.write(row * self.ROWS)
        rows, gap = [self.ROWS, self.SAMPLES], self.SAMPLES * 4 + 60
        apart = tensor(other.buffer, rows, strides=[gap, 4])
        client.call("job.submit", scan(tensor(memory.buffer, rows), apart, axis=1))
        client.call("job.submit", scan(tensor(memory.buffer, rows), axis=1))
        self.assertTrue(memory.read() == pack_f32(sums) * self.ROWS)
        self.assertTrue(other.read(0, self.ROWS * gap) == (pack_f32(sums) + bytes(60)) * self.ROWS)
        client.call("buffer.release", buffer=memory.buffer)
        self.assertTrue(eventually(lambda: client.call("server.stats")["staged_bytes"] == 2 * size))

    def test_what_has_to_be_pinned(self):
        client = self.client()
        memory = client.adopt(MIB, MIB)
        every_third = scan(tensor(memory.buffer, [100, 100], strides=[1200, 12]), axis=1)
        if daemons.BACKEND == "cpu":
            client.call("job.submit", every_third)
        else:
            message = "imported memory could not be pinned .* release other imports and import it again"
            self.refused(client, "unsupported", message, "job.submit", every_third)
        client.call("job.submit", scan(tensor(memory.buffer, [10]), axis=0))


class FileTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scand")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "scand.conf")

    def write(self, text):
        with open(self.path, "w") as file:
            file.write(text)
        os.chmod(self.path, 0o644)  # for other users, whatever the umask is

    def reload(self, daemon, message):
        """Sends SIGHUP and waits for a new line that the pattern matches."""
        before = len(daemon.log_text())
        daemon.process.send_signal(signal.SIGHUP)
        found = eventually(lambda: re.search(message, daemon.log_text()[before:]))
        self.assertTrue(found, daemon.log_text())

    def is_granted(self, client, size):
        """Returns whether the client may have so much device memory, which is given back."""
        try:
            buffer = client.call("buffer.create", size=size, place="device")["buffer"]
        except Failure as failure:
            self.assertEqual(failure.name, "quota")
            return False
        client.call("buffer.release", buffer=buffer)
        return True


class Files(FileTest):
    def refused(self, message, *options, **more):
        result = scand("--device", "cpu", "--socket", self.folder + "/socket", *options, **more)
        self.assertEqual((result.returncode, result.stdout), (78, ""), result.stderr)
        self.assertRegex(result.stderr, f"^scand: error: {message}")
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_file_that_is_wrong(self):
        for text, message in (
            ("[daemon]\npool = 1T\n", r':2: \[daemon\] "pool" is "1T"; allowed: 0 to 256G, a whole number of bytes, or of K, M, G, as in 512M\n$'),
            ("[daemon]\nthreads = 1\npol = 1G\n", r':3: \[daemon\] has no "pol"; allowed: socket, socket-mode, socket-group, device, pool'),
            ("[quotas]\njobs = 1\n", r":1: no section \[quotas\]; allowed: \[daemon\], \[quota\], \[user NAME\]"),
            ("[user nobody-like-this]\njobs = 1\n", r":1: \[user nobody-like-this\]: no such user"),
            ("[user 1000]\nweight = 0\n", r':2: \[user 1000\] "weight" is "0"; allowed: 1 to 1000\n$'),
            ("rubbish\n", ':1: this is neither "'),
            ("\n" * 70000, ": too large for a configuration; allowed: up to 65536 bytes"),
        ):
            with self.subTest(text[:40]):
                self.write(text)
                self.refused(re.escape(self.path) + message, "--config", self.path)
                self.refused(re.escape(self.path) + message, "--config", self.path, "--foreground")

    def test_file_that_is_not_there(self):
        self.refused(f"{self.path}: cannot be read: No such file", "--config", self.path)
        self.refused(f"{self.folder}: is no regular file", "--config", self.folder)

    def test_command_line_wins(self):
        self.write(f"[daemon]\nsocket = /nowhere/socket\npool = 1G\ndevice = cuda:9\n[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path, "--quota-device-memory", "2M") as daemon, daemon.client() as client:
            self.assertLess(client.call("server.stats")["pool_bytes"], 128 * MIB)
            self.assertTrue(self.is_granted(client, 2 * MIB))
            self.assertFalse(self.is_granted(client, 2 * MIB + 1))

    def test_file_alone(self):
        self.write(f"[daemon]\nsocket = {self.folder}/other\npool = 16M\ndevice = cpu\nthreads = 1\n")
        daemon = daemons.subprocess.Popen([daemons.SCAND, "--config", self.path, "--foreground"])
        self.addCleanup(daemon.kill)

        def is_there():
            """The socket's file is there a moment before the daemon listens."""
            try:
                Client(self.folder + "/other").close()
            except OSError:
                return False
            return True

        self.assertTrue(eventually(is_there))
        with Client(self.folder + "/other") as client:
            self.assertLess(client.call("server.stats")["pool_bytes"], 64 * MIB)
            client.call("server.drain")
        self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)

    def test_file_of_the_user(self):
        """Root's is that of the system, so this is about somebody else's."""
        other = {} if UID else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.write("[daemon]\npool = no\n")
        environment = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        self.refused(re.escape(self.path) + ":2", env=environment, **other)
        os.mkdir(self.folder + "/.config")
        os.chmod(self.folder + "/.config", 0o755)
        os.rename(self.path, self.folder + "/.config/scand.conf")
        del environment["XDG_CONFIG_HOME"]
        self.refused(f"{self.folder}/.config/scand.conf:2", env={**environment, "HOME": self.folder}, **other)

    def test_user_of_its_own(self):
        self.write(f"[user {UID}]\ndevice-memory = 3M\n[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path, "--quota-device-memory", "2M") as daemon, daemon.client() as client:
            self.assertTrue(self.is_granted(client, 3 * MIB))
            self.assertFalse(self.is_granted(client, 3 * MIB + 1))

    @unittest.skipIf(UID, "only root can be two users")
    def test_two_users(self):
        """One user's use does not count against another; a user may be granted nothing."""
        self.write("[quota]\ndevice-memory = 2M\n[user root]\njobs = 5\n")
        with Daemon("--config", self.path) as daemon, daemon.client() as client:
            client.call("buffer.create", size=2 * MIB, place="device")
            self.assertFalse(self.is_granted(client, 1))

            def act():
                with daemon.client() as other:
                    return 42 if self.is_granted(other, 2 * MIB) and not self.is_granted(other, 2 * MIB + 1) else 2

            self.assertEqual(as_nobody(act), 42)
            self.write(f"[user {NOBODY}]\nconnections = 0\n")
            self.reload(daemon, "settings were read again")

            def refused():
                try:
                    daemon.client()
                except Failure as failure:
                    return 43 if 'its quota "connections" is 0' in failure.error["message"] else 3
                return 4

            self.assertTrue(eventually(lambda: as_nobody(refused) == 43))
            client.call("server.ping")


class Reloads(FileTest):
    def test_quotas_change(self):
        self.write("[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path) as daemon, daemon.client() as client:
            self.assertFalse(self.is_granted(client, 2 * MIB))
            self.write("[quota]\ndevice-memory = 2M\n")
            self.reload(daemon, "^scand: settings were read again")
            self.assertTrue(eventually(lambda: self.is_granted(client, 2 * MIB)))
            kept = client.call("buffer.create", size=2 * MIB, place="device")["buffer"]
            self.write("[quota]\ndevice-memory = 1M\n")
            self.reload(daemon, "^scand: settings were read again")
            self.assertTrue(eventually(lambda: not self.is_granted(client, 1)))
            client.call("job.submit", scan(tensor(kept, [100])))  # it keeps what it has
            client.call("buffer.release", buffer=kept)
            self.assertTrue(self.is_granted(client, MIB))

    def test_file_that_is_wrong(self):
        self.write("[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path) as daemon, daemon.client() as client:
            self.write("[quota]\ndevice-memory = 2M\njobs = many\n")
            message = f'^scand: error: {re.escape(self.path)}:3: \\[quota\\] "jobs" is "many"; allowed: 0 to 4096; '
            self.reload(daemon, message + "the settings stay as they were\n")
            os.unlink(self.path)
            self.reload(daemon, "cannot be read: No such file or directory; the settings stay")
            self.assertFalse(self.is_granted(client, 2 * MIB))
            self.assertTrue(self.is_granted(client, MIB))

    def test_what_needs_a_new_start(self):
        self.write("[daemon]\nthreads = 2\ndevice-memory = 1G\n")
        with Daemon("--config", self.path) as daemon, daemon.client() as client:
            self.write(f"[daemon]\nsocket = /elsewhere\npool = 2G\nthreads = 3\ndevice-memory = 512M\n")
            self.reload(daemon, "settings were read again")
            text = daemon.log_text()
            message = '"device-memory" is "512M" now, but stays "1G" until scand is started again'
            self.assertIn(f"scand: error: {message}\n", text)
            for name in ("threads", "pool", "socket"):  # which the command line gives
                self.assertNotIn(f'"{name}" is', text)
            client.call("server.ping")

    def test_a_later_worker(self):
        """Knows what was read before it started."""
        self.write("[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path, *ON_CPU) as daemon:
            self.write("[quota]\ndevice-memory = 2M\n")
            self.reload(daemon, "settings were read again")
            worker = daemon.worker()
            os.kill(worker, signal.SIGKILL)
            self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") == 2))
            with daemon.client() as client:
                self.assertTrue(self.is_granted(client, 2 * MIB))
                self.assertFalse(self.is_granted(client, 2 * MIB + 1))

    def test_terminal_that_hangs_up(self):
        """A terminal that hangs up is a SIGHUP as well, and ends the daemon as ever."""
        path = self.folder + "/socket"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(daemons.SCAND, [daemons.SCAND, *ON_CPU, "--pool", "16M", "--socket", path, "--foreground"])
        self.assertTrue(eventually(lambda: b"ready at" in os.read(terminal, 1000)))
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertFalse(os.path.exists(path))

    def test_many_at_once(self):
        """Many reloads at once, also while a worker starts, end no worker."""
        self.write("[quota]\ndevice-memory = 1M\n")
        with Daemon("--config", self.path, *ON_CPU) as daemon:
            os.kill(daemon.worker(), signal.SIGKILL)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                daemon.process.send_signal(signal.SIGHUP)
                time.sleep(0.005)
            self.assertTrue(eventually(lambda: "ready at" in daemon.log_text().rpartition("starting another")[2]))
            with daemon.client() as client:
                self.assertFalse(self.is_granted(client, 2 * MIB))
            self.assertEqual(daemon.log_text().count("starting another"), 1)


class Words(FileTest):
    """--help, the manual page and the example file have the same settings."""

    def setUp(self):
        super().setUp()
        self.rows = re.findall(
            r"^  --(\S+) (?:PATH|DEVICE|ADDRESS|SIZE|N) +\S.*\n +\((.+); default (.+)\)$", scand("--help").stdout, re.M
        )
        self.root = os.path.join(HERE, "..", "..")

    def read(self, *path):
        with open(os.path.join(self.root, *path)) as file:
            return file.read()

    def test_manual_page(self):
        page = self.read("daemon", "scand.8")
        self.assertGreater(len(self.rows), 7)
        for name, allowed, standard in self.rows:
            with self.subTest(name):
                item = re.search(rf"^\.It Fl -{name} Ar \S+\n((?:(?!\.It|\.El).*\n)+)", page, re.M)
                self.assertIsNotNone(item)
                if name != "device":
                    self.assertIn(f"{allowed}, default {standard}.", item[1])

    def test_example(self):
        """The example's settings are commented out, and say the defaults."""
        text = self.read("systemd", "scand.conf")
        self.assertEqual(re.findall(r"^[^#\n\[].*", text, re.M), [])
        lines = set(re.findall(r"^#(\S+ = .*)", text, re.M))
        for name, _, standard in self.rows:
            self.assertIn(f"{name.removeprefix('quota-')} = {standard}", lines)
        self.write(re.sub(r"^#(?=\S+ = )", "", text, flags=re.M).replace("[user anna]", f"[user {UID}]"))
        with Daemon("--config", self.path):
            pass


if __name__ == "__main__":
    main()

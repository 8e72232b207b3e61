#!/usr/bin/env python3
"""Clients that die at any moment, come in crowds, or belong to other users: everything of theirs comes back.

test_daemon_clients.py SCAND [unittest's arguments]
"""

import os
import random
import re
import resource
import signal
import time
import unittest

from daemons import ON_CPU, Daemon, DaemonTest, main
from wire import Client, Closed, Failure, Raw, eventually, memfd, pack, scan, tensor

MIB = 1 << 20
NOBODY = 65534


def big(client, size=64 * MIB, **more):
    """Params of a job of many chunks on device memory of its own."""
    buffer = client.call("buffer.create", size=size, place="device")["buffer"]
    return scan(tensor(buffer, [size // 40960, 10240]), accumulator="f2", passes=["forward", "backward"], **more)


def in_child(act):
    """Runs act() in a process of its own. Returns its pid, and a descriptor to which act's `ready()` writes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.close(reader)
        act(lambda: os.write(writer, b"x"))
        os._exit(0)
    except BaseException as error:  # whatever it is, this process must not go on as a second test
        os.write(2, f"in a child: {error!r}\n".encode())
    finally:
        os._exit(1)


def target(link):
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


class Deaths(DaemonTest):
    """Clients that are killed."""

    def setUp(self):
        self.fds = self.open_fds()

    def tearDown(self):
        super().tearDown()
        self.settles()
        self.assertTrue(eventually(lambda: self.open_fds() <= self.fds), (self.fds, self.open_fds()))

    def open_fds(self):
        """Counts the worker's descriptors except the pool's segments, which come and go as they are needed."""
        folder = f"/proc/{self.worker}/fd"
        return sum(1 for fd in os.listdir(folder) if not target(f"{folder}/{fd}").startswith("/memfd:scand"))

    def killed(self, act, delay=0):
        """A client that does this, then hangs, and is killed."""

        def whole(ready):
            act(self.daemon.socket)
            ready()
            signal.pause()

        self.settles()
        pid, reader = in_child(whole)
        self.assertEqual(os.read(reader, 1), b"x")
        os.close(reader)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)

    def test_before_hello(self):
        kept = []
        self.killed(lambda path: kept.append(Client(path, greet=False)))
        self.killed(lambda path: kept.append(Client(path)))

    def test_in_the_middle_of_a_message(self):
        def act(path):
            client = self.kept = Client(path)
            client.send_bytes(
                pack([0, 1, "buffer.import", [{"size": 1, "fds": 2, "x": Raw()}]])[:-1], [memfd(1), memfd(1)]
            )

        self.killed(act)

    def test_with_buffers(self):
        def act(path):
            client = self.kept = Client(path)
            self.memory = [client.create(1), client.create(20 * MIB), client.adopt(16384, 4096)]
            client.call("buffer.create", size=MIB, place="device")

        self.killed(act)

    def test_with_replies_unread(self):
        def act(path):
            client = self.kept = Client(path)
            for _ in range(30):
                client.send("buffer.create", size=1, place="host")
                client.send("buffer.create", size=4096, place="device")
                client.send("buffer.import", {"size": 1, "fds": 1}, [memfd(1)])
                client.send("server.stats")

        for delay in (0, 0.001, 0.02):
            self.killed(act, delay)

    def test_with_jobs_queued_and_running(self):
        def act(path):
            client = self.kept = Client(path)
            job = big(client)
            for _ in range(20):
                client.send("job.submit", job)

        for delay in (0, 0.001, 0.02, 0.1):
            self.killed(act, delay)

    def test_with_a_job_on_host_memory(self):
        """The running chunk still works on memory of a client that is gone."""

        def act(path):
            client = self.kept = Client(path)
            memory = client.create(32 * MIB)
            own = client.adopt(16 * MIB, 4 * MIB)
            for buffer, size in ((memory.buffer, 32 * MIB), (own.buffer, 16 * MIB)):
                client.send("job.submit", scan(tensor(buffer, [size // 4096, 1024]), progress=1))

        for delay in (0, 0.002, 0.01, 0.03):
            self.killed(act, delay)

    def test_at_random_moments(self):
        """Many clients in a row, each doing all there is to do, each killed somewhere in it."""

        def act(path):
            client = Client(path)
            while True:
                memory = client.create(100000)
                own = client.adopt(8192, 4096)
                jobs = [
                    client.send("job.submit", scan(tensor(buffer, [20, 100]))) for buffer in (memory.buffer, own.buffer)
                ]
                client.send("job.cancel", job=jobs[0])
                client.call("buffer.release", buffer=own.buffer)
                client.call("buffer.release", buffer=memory.buffer)

        noise = random.Random(3)
        for _ in range(40):
            pid, reader = in_child(lambda ready: act(self.daemon.socket))
            time.sleep(noise.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)
            os.close(reader)

    def test_the_last_request_counts(self):
        """Requests that a client sent before it closed its socket are done."""
        before = self.neighbour.call("server.stats")["jobs_done"]
        client = self.client()
        memory = client.create(400)
        client.send("job.submit", scan(tensor(memory.buffer, [0])))
        client.send("server.stats")
        client.close()
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats")["jobs_done"] == before + 1))


class Crowds(DaemonTest):
    options = ("--quota-connections", "1024")

    def memory_kib(self):
        with open(f"/proc/{self.worker}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def is_sanitized(self):
        with open(f"/proc/{self.worker}/maps") as file:
            return re.search("libasan|libtsan", file.read())

    def visits(self, count):
        for _ in range(count):
            with self.daemon.client() as client:
                memory = client.create(100000)
                client.call("buffer.create", size=100000, place="device")
                own = client.adopt(8192, 4096)
                for buffer in (memory.buffer, own.buffer):
                    client.call("job.submit", scan(tensor(buffer, [100])))
                client.send_bytes(b"\xc1")

    def test_memory_does_not_grow(self):
        self.visits(50)
        self.settles()
        before = self.memory_kib()
        self.visits(400)
        self.settles()
        if self.is_sanitized():
            self.skipTest("a sanitizer keeps freed memory")
        self.assertLess(self.memory_kib(), before + 1024)

    @unittest.skipIf(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4000, "needs 4,000 open files")
    def test_as_many_clients_as_there_may_be(self):
        """1,024 in all; the next ones are turned away, and when one leaves another may come."""
        clients = [self.client(greet=False) for _ in range(1023)]
        for client in clients:
            client.send("hello", version_min=1, version_max=1)
        for client in clients:
            self.assertEqual(client.wait(1)["version"], 1)
        for _ in range(3):
            with self.assertRaises((Closed, ConnectionError)):
                self.client()
        self.assertTrue(eventually(lambda: f"of user {os.getuid()} was turned away: " in self.daemon.log_text()))
        clients[500].close()

        def is_let_in():
            try:
                self.client()
                return True
            except (Closed, ConnectionError):
                return False

        self.assertTrue(eventually(is_let_in))
        self.doCleanups()
        self.settles()


def as_user(uid, act):
    """Runs act(ready) as that user, in a process of its own: see in_child."""

    def whole(ready):
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        act(ready)

    return in_child(whole)


class FewFiles(unittest.TestCase):
    """A daemon that may open few files."""

    @unittest.skipIf(os.getuid(), "only root can be two users")
    def test_a_user_leaves_room(self):
        """One user has all that it may: connections, files, descriptors in messages that are not complete. Others are served."""

        def take(count, act):
            """Returns whether act() was refused before it was done so often, and why."""
            try:
                for _ in range(count):
                    act()
            except (Closed, Failure) as why:
                return str(why)
            raise AssertionError(f"done {count} times")

        def take_all(ready):
            held, file = [], memfd(1)
            self.assertRegex(
                take(200, lambda: held.append(Client(daemon.socket))), "^$|busy: connect: user 65534 .* as many as are left"
            )
            self.assertRegex(
                take(200, lambda: held[0].call("buffer.import_file", {"size": 1, "fds": 1}, [file])),
                r"quota: buffer.import_file: user 65534 has (\d+) files open in buffers and may have \1 of",
            )
            for client in held[1:]:
                client.send_bytes(b"\x94\x00\x07", [file])  # of a message that does not come to its end
            ready()
            signal.pause()

        def be_served(ready):
            for _ in range(3):
                with Client(daemon.socket) as client:
                    memory = client.create(4000)
                    client.call("job.submit", scan(tensor(memory.buffer, [1000])))
                    client.adopt(4096 * 2, 4096)
                    client.call("buffer.import_file", {"size": 1, "fds": 1}, [memfd(1)])
            ready()

        with Daemon(*ON_CPU, files=200) as daemon:
            attacker, reader = as_user(NOBODY, take_all)
            self.assertEqual(os.read(reader, 1), b"x")
            witness, other = as_user(NOBODY - 1, be_served)
            self.assertEqual(os.read(other, 1), b"x")
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(witness, 0)[1]), 0)
            os.kill(attacker, signal.SIGKILL)
            os.waitpid(attacker, 0)
            os.close(reader)
            os.close(other)

    def test_connections(self):
        """Clients beyond the descriptors that are there at the start are turned away with a line in the log."""
        with Daemon(*ON_CPU) as daemon:
            first = daemon.client()
            resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE, (110, 110))
            clients = []
            with self.assertRaises((Closed, ConnectionError)):
                while len(clients) < 110:
                    clients.append(daemon.client())
            self.assertTrue(eventually(lambda: "turned away: the limit of open files" in daemon.log_text()))
            self.assertEqual(first.call("server.ping"), {})
            time.sleep(0.3)
            self.assertLess(daemon.log_text().count("\n"), 10)
            self.check_memory(daemon, clients)
            for client in clients:
                client.close()
            eventually(lambda: first.call("server.stats")["clients_open"] == 1)
            with daemon.client() as client:
                client.adopt(4096 * 3, 4096)

    @unittest.skipIf(os.getuid(), "only root can start a daemon as another user, and go without limits itself")
    def test_descriptors_on_their_way(self):
        """The kernel bounds how many descriptors of a user are sent and not received. A few more wait; every request has its
        answer in the end."""
        many, made = 60, 0
        try:
            daemon = Daemon(*ON_CPU, files=150, user=NOBODY)
        except PermissionError:
            self.skipTest("nobody else may run the daemon from where it is")
        with daemon, daemon.client() as other:
            clients = [daemon.client() for _ in range(3)]
            for client in clients:
                self.addCleanup(client.close)
                for i in range(1, many):
                    client.send("buffer.create", size=1, place="host")
                    client.send("buffer.release", buffer=i)
                other.call("server.ping")
            for client in clients:
                for i in range(1, many):
                    try:
                        client.wait(2 * i)
                        made += 1
                        os.close(client.fds.pop())
                    except Failure as failure:
                        self.assertEqual(failure.name, "busy")
                self.assertEqual(client.call("server.ping"), {})
        self.assertGreater(made, 150)

    def check_memory(self, daemon, clients):
        """Descriptors do not fit any more: who wants some may try again, who sends some is disconnected, others go on."""
        limits = resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE)
        # Threads close connections that were turned away, and then there would be a descriptor.
        resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE, (3, limits[1]))
        with self.assertRaises(Failure) as caught:
            clients[0].create(1)
        self.assertRegex(str(caught.exception), "busy: .* cannot be sent now: Too many open files")
        fds = [memfd(4096)] * 3
        client = clients.pop()
        msgid = client.send("buffer.import", {"size": 1, "fds": 3}, fds)
        with self.assertRaises(Failure) as caught:
            client.wait(msgid)
        self.assertRegex(str(caught.exception), "descriptor: .* announces 3 descriptors, but 0 came")
        self.assertTrue(client.is_closed())
        resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE, limits)
        clients.append(daemon.client())
        self.assertEqual(clients[-1].call("server.ping"), {})
        self.assertEqual(clients[0].call("server.ping"), {})
        os.close(fds[0])


@unittest.skipIf(os.getuid(), "only root can be two users")
class Users(DaemonTest):
    """Memory that goes from one user to another."""

    def as_nobody(self, act):
        """Returns what act() returns, a number, when user nobody calls it."""

        pid, reader = as_user(NOBODY, lambda ready: os._exit(act()))
        os.close(reader)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_memory_is_zero_for_another_user(self):
        sizes = [1, 64 * MIB - 20 * MIB]
        client = self.client()
        mine = [client.create(size) for size in sizes]
        for memory in mine:
            memory.write(b"mine" * (memory.size // 4) + b"m" * (memory.size % 4))
            client.call("buffer.release", buffer=memory.buffer)

        def act():
            other = Client(self.daemon.socket)
            for size in sizes:
                memory = other.create(size)
                if memory.read() != bytes(size):
                    return 3
                memory.write(b"o" * size)
            return 42

        self.assertEqual(self.as_nobody(act), 42)
        for memory in mine:  # still as it was, or its pages are gone, as it was released
            self.assertLessEqual(set(memory.read()), set(b"mine\0"))
        self.assertTrue(eventually(lambda: client.call("server.stats")["buffers_open"] == 1))
        for size in sizes:
            self.assertLessEqual(set(client.create(size).read()), set(b"mine\0"))  # never what the other wrote

    def test_others_may_not_drain(self):
        def act():
            client = Client(self.daemon.socket)
            self.refused(client, "permission", "server.drain: user 65534 may not", "server.drain")
            return 42

        self.assertEqual(self.as_nobody(act), 42)

    def test_others_are_served(self):
        def act():
            client = Client(self.daemon.socket)
            memory = client.create(4000)
            client.call("job.submit", scan(tensor(memory.buffer, [1000])))
            client.adopt(4096, 4096)
            return 42

        self.assertEqual(self.as_nobody(act), 42)


if __name__ == "__main__":
    main()

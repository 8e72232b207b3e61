#!/usr/bin/env python3
"""The daemon as processes: how it starts, stops, drains, and goes on after its worker or its device is lost.

test_daemon_process.py SCAND [unittest's arguments]
"""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

import daemons
from daemons import ON_CPU, Daemon, children, main, scand
from wire import CODES, Client, Closed, Failure, eventually, memfd, pack, pack_f32, scan, tensor, unpack_f32

MIB = 1 << 20
PTRACE_ATTACH, WALL = 16, 0x40000000
PACKED_DRAIN = pack([0, 5, "server.drain", [{}]])

WRONG_OPTIONS = [
    (["--device", "gpu"], '--device is "gpu"; allowed: auto, all, cpu, cpu:COUNT, cuda, cuda:N,N'),
    (["--device", ""], '--device is ""; allowed: '),
    (["--device", "cuda:"], '--device is "cuda:"'),
    (["--device", "cuda:x"], '--device is "cuda:x"'),
    (["--device", "cuda:32"], '--device is "cuda:32"; allowed: .* N from 0 to 31'),
    (["--device", "cuda:0,"], '--device is "cuda:0,"'),
    (["--device", "cuda:1,1"], '--device is "cuda:1,1"'),
    (["--device", "cpu:0"], '--device is "cpu:0"'),
    (["--device", "cpu:33"], '--device is "cpu:33"'),
    (["--pool", "1T"], '--pool is "1T"; allowed: 0 to 256G'),
    (["--pool", "257G"], '--pool is "257G"'),
    (["--pool", "-1"], '--pool is "-1"'),
    (["--pool", ""], '--pool is ""'),
    (["--pool", "M"], '--pool is "M"'),
    (["--pool", "1MM"], '--pool is "1MM"'),
    (["--pool", "1.5G"], '--pool is "1.5G"'),
    (["--pool", "18446744073709551616"], '--pool is "18446744073709551616"'),
    (["--pool", " 1"], '--pool is " 1"'),
    (["--pool", "9" * 60], '--pool is "999'),
    (["--device-memory", "1025G"], '--device-memory is "1025G"; allowed: 0 to'),
    (["--threads", "1025"], '--threads is "1025"; allowed: 0 to 1024'),
    (["--threads", "two"], '--threads is "two"'),
    (["--fail-chunk", "0"], '--fail-chunk is "0"; allowed: 1 and more'),
    (["--fail-chunk", "x"], '--fail-chunk is "x"'),
    (["--hang-chunk", "0"], '--hang-chunk is "0"; allowed: 1 and more'),
    (["--watchdog", "3601"], '--watchdog is "3601"; allowed: 0 to 3600'),
    (["--socket", ""], '--socket is "": the socket path is empty'),
    (["--socket", "/tmp/" + "x" * 103], '--socket is "/tmp/x+": .* has 108 bytes; allowed: up to 107'),
    (["--socket"], "--socket"),
    (["--bogus"], "--bogus"),
    (["-x"], "x"),
    (["--foreground=1"], "--foreground"),
    (["cpu"], '"cpu" is no option'),
]


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Work:
    """A client with a job that runs for long, and others behind it that can be cancelled."""

    def __init__(self, daemon, behind=20):
        self.client = daemon.client()
        buffer = self.client.call("buffer.create", size=256 * MIB, place="device")["buffer"]
        self.job = scan(tensor(buffer, [6553, 10240]), accumulator="f2", passes=["forward", "backward"], progress=1)
        self.running, *self.behind = (self.client.send("job.submit", self.job) for _ in range(1 + behind))
        while not self.client.notes:
            self.client.notes.append(self.client.receive())

    def cancel_rest(self):
        for msgid in self.behind:
            self.client.send("job.cancel", job=msgid)


class ProcessTest(unittest.TestCase):
    def serves(self, path):
        """A fresh client gets the right result."""
        with Client(path) as client:
            memory = client.create(400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))

    def loses(self, client):
        """The connection ends without another answer."""
        with self.assertRaises(Closed):
            while True:
                client.receive()
        client.close()

    def fails(self, name, client, msgid):
        with self.assertRaises(Failure) as caught:
            client.wait(msgid)
        self.assertEqual((caught.exception.name, caught.exception.error["code"]), (name, CODES[name]))


class Stops(ProcessTest):
    def check_drain(self, ask):
        with Daemon(*ON_CPU) as daemon:
            work, other, idle = Work(daemon), daemon.client(), daemon.client()
            memory = other.create(400)
            worker = daemon.worker()
            ask(daemon)

            def is_draining():
                try:
                    other.call("job.submit", scan(tensor(memory.buffer, [100])))
                except Failure as failure:
                    self.assertEqual((failure.name, failure.error["code"]), ("draining", CODES["draining"]))
                    return True

            self.assertTrue(eventually(is_draining))
            self.assertEqual(other.call("server.ping"), {})
            with daemon.client() as late:
                self.fails("draining", late, late.send("job.submit", scan(tensor(late.create(4).buffer, [1]))))
            work.cancel_rest()
            self.assertIn("total_us", work.client.wait(work.running))
            for client in (work.client, other, idle):
                self.loses(client)
            daemon.wait(0)
            self.assertTrue(is_gone(worker))

    def test_terminate(self):
        self.check_drain(lambda daemon: daemon.process.send_signal(signal.SIGTERM))

    def test_interrupt(self):
        self.check_drain(lambda daemon: daemon.process.send_signal(signal.SIGINT))

    def test_drain(self):
        def ask(daemon):
            with daemon.client() as client:
                self.assertEqual(client.call("server.drain"), {})

        self.check_drain(ask)

    def test_drain_without_jobs(self):
        with Daemon() as daemon:
            client, other = daemon.client(), daemon.client()
            other.create(100000)
            self.assertEqual(client.call("server.drain"), {})
            daemon.wait(0)
            self.loses(client)

    def test_every_reply_comes_before_the_end(self):
        """All results, also of the job that ends the daemon."""
        with Daemon() as daemon:
            client = daemon.client()
            memory = client.create(MIB)
            msgids = [client.send("job.submit", scan(tensor(memory.buffer, [1024, 256]))) for _ in range(100)]
            msgids.append(client.send("server.drain"))
            for msgid in msgids:
                client.wait(msgid)
            daemon.wait(0)

    def test_answers_that_are_read_late(self):
        """Everything that was answered comes, also to a client that begins to read only when the daemon is at its end."""
        with Daemon() as daemon:
            late, other = daemon.client(), daemon.client()
            late.send_bytes(b"".join(pack([0, i, "x", []]) for i in range(15000)))

            def refused():
                return other.call("server.stats")["messages_refused"]

            self.assertTrue(eventually(lambda: 0 < refused() == refused()))
            answered = refused()
            self.assertEqual(other.call("server.drain"), {})
            for msgid in range(answered):
                self.fails("unknown_method", late, msgid)
            self.assertTrue(late.is_closed())
            daemon.wait(0)

    def test_with_buffers_being_made(self):
        """The end comes while helpers are at work."""
        for _ in range(5):
            with Daemon() as daemon:
                client = daemon.client()
                for size in (1, 20 * MIB, 100000):
                    client.send("buffer.create", size=size, place="device")
                    client.send("buffer.import", {"size": 16, "fds": 1}, [memfd(4096)])
                    client.send("buffer.release", buffer=1)
                client.send("server.drain")
                daemon.wait(0)
                client.close()

    def test_twice(self):
        """Who cannot wait asks again."""
        with Daemon(*ON_CPU) as daemon:
            work = Work(daemon, 100)
            daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
            daemon.process.send_signal(signal.SIGTERM)
            self.loses(work.client)
            daemon.wait(0)

    def test_again_and_again(self):
        """The worker, too, up to its last moment."""
        for ask in (signal.SIGTERM, signal.SIGINT):
            with Daemon(*ON_CPU) as daemon:
                worker = daemon.worker()
                self.serves(daemon.socket)
                with contextlib.suppress(ProcessLookupError):
                    while not is_gone(worker):
                        os.kill(worker, ask)
                daemon.process.wait(daemons.TIMEOUT_S)
                self.assertNotIn("the worker ended", daemon.log_text())
                daemon.wait(0)

    def test_while_it_starts(self):
        """It has no jobs then, and says nothing of lost ones."""
        for delay in (0.002, 0.01, 0.03, 0.1):
            folder = tempfile.mkdtemp(prefix="scand")
            process = daemons.subprocess.Popen(
                [daemons.SCAND, "--device", "cpu", "--foreground", "--socket", folder + "/socket"],
                stderr=daemons.subprocess.PIPE,
            )
            time.sleep(delay)
            started = children(process.pid)
            process.send_signal(signal.SIGTERM)
            self.assertIn(process.wait(daemons.TIMEOUT_S), (0, -signal.SIGTERM))
            self.assertNotIn(b"error", process.stderr.read())
            process.stderr.close()
            self.assertTrue(eventually(lambda: all(map(is_gone, started))))
            self.assertFalse(os.path.exists(folder + "/socket"))
            shutil.rmtree(folder)


class Losses(ProcessTest):
    def test_device_is_lost_while_draining(self):
        """Nobody is told to come again: no other worker follows. One write, so that the drain comes before any loss."""
        with Daemon("--fail-chunk", "3") as daemon:
            client = daemon.client()
            job = scan(tensor(client.create(400).buffer, [100]))
            client.send_bytes(b"".join(pack([0, 10 + i, "job.submit", [job]]) for i in range(3)) + PACKED_DRAIN)
            for msgid in (5, 10, 11):
                client.wait(msgid)
            self.loses(client)
            daemon.process.wait(daemons.TIMEOUT_S)
            self.assertIn("the worker ended by exit code 3 before it was drained", daemon.log_text())
            self.assertEqual(daemon.log_text().count("ready at"), 1)
            daemon.wait(0)

    def test_worker_is_killed_while_draining(self):
        with Daemon(*ON_CPU) as daemon:
            work, worker = Work(daemon), daemon.worker()
            with daemon.client() as other:
                self.assertEqual(other.call("server.drain"), {})
            os.kill(worker, signal.SIGKILL)
            self.loses(work.client)
            daemon.wait(0)

    def test_what_was_done_before_the_loss_is_answered(self):
        """Also to a client that reads so late that its socket does not take all of it."""
        with Daemon("--fail-chunk", "200") as daemon:
            for losses in (1, 2, 3):
                client = daemon.client()
                job = scan(tensor(client.create(400).buffer, [100]))
                asked = [pack([0, 1000 + i, "server.stats", [{}]]) for i in range(1200)]
                asked += [pack([0, 10 + i, "job.submit", [job]]) for i in range(200)]
                client.send_bytes(b"".join(asked))
                self.assertTrue(eventually(lambda: daemon.log_text().count("the device is lost") == losses))
                for i in range(199):
                    self.assertIn("total_us", client.wait(10 + i))
                self.loses(client)

    def test_worker_is_killed(self):
        with Daemon() as daemon:
            for restarts in range(1, 4):
                work, idle = Work(daemon, 200), daemon.client()  # a GPU takes 0.3 ms for each
                worker, before = daemon.worker(), idle.call("server.stats")
                os.kill(worker, signal.SIGKILL)
                with daemon.client() as early:  # waits for the next worker
                    after = early.call("server.stats")
                counts = ("restarts", "clients_accepted", "clients_open", "jobs_open", "host_bytes", "device_bytes")
                accepted = before["clients_accepted"] + 1
                self.assertEqual([after[name] for name in counts], [restarts, accepted, 1, 0, 0, 0])
                self.assertGreater(before["jobs_open"], 0)
                self.assertEqual(after["jobs_submitted"], before["jobs_submitted"])
                ended = sum(after[name] for name in ("jobs_done", "jobs_failed", "jobs_cancelled"))
                self.assertEqual(ended, after["jobs_submitted"])
                self.assertGreaterEqual(after["device_busy_us"], before["device_busy_us"])
                self.assertGreater(after["outage_us"], before.get("outage_us", 0))
                self.assertGreater(after["start_us"], 0)
                self.loses(work.client)
                self.loses(idle)
                self.assertNotEqual(daemon.worker(), worker)
                self.serves(daemon.socket)
            self.assertEqual(daemon.log_text().count("the worker ended by signal 9 (Killed); starting another"), 3)

    def test_memory_outlives_the_worker(self):
        """A client keeps what it has mapped, and the next worker takes it as imported memory."""
        with Daemon() as daemon:
            client = daemon.client()
            made = client.call("buffer.create", size=262144, place="host")
            os.kill(daemon.worker(), signal.SIGKILL)
            with daemon.client() as again:
                again.call("buffer.import", {"size": made["segment"], "fds": 1}, client.fds)
            self.loses(client)

    def test_deaths_in_quick_succession(self):
        """Each worker is killed before it serves or just then. However many those are, another follows."""
        with Daemon() as daemon:
            deaths = 8
            for death in range(deaths):
                worker = daemon.worker()
                if death % 2:
                    self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") > death // 2))
                os.kill(worker, signal.SIGKILL)
                self.assertTrue(eventually(lambda: is_gone(worker)))
            self.serves(daemon.socket)
            self.assertEqual(daemon.client().call("server.stats")["restarts"], deaths)
            self.assertIn("ended by signal 9 (Killed); starting another in 0.10 s", daemon.log_text())

    def test_device_is_lost(self):
        with Daemon("--fail-chunk", "3") as daemon:
            for losses in (1, 2):
                worker = daemon.worker()
                client, other = daemon.client(), daemon.client()
                job = scan(tensor(client.create(400).buffer, [100]))
                self.serves(daemon.socket)
                client.call("job.submit", job)
                client.send("job.submit", job)
                self.loses(client)
                self.loses(other)
                stats = daemon.client().call("server.stats")
                counts = ("restarts", "jobs_submitted", "jobs_done", "jobs_failed")
                self.assertEqual([stats[name] for name in counts], [losses, 3 * losses, 2 * losses, losses])
                self.assertNotEqual(daemon.worker(), worker)
                self.assertEqual(daemon.log_text().count("the device is lost"), losses)

    def test_device_that_is_always_lost(self):
        with Daemon("--fail-chunk", "1") as daemon:
            for _ in range(8):
                with daemon.client() as client:
                    client.send("job.submit", scan(tensor(client.create(4).buffer, [1])))
                    self.loses(client)
            self.assertEqual(daemon.client().call("server.ping"), {})

    def test_supervisor_is_killed(self):
        first = Daemon()
        worker = first.worker()
        work = Work(first, 3)
        first.process.kill()
        first.process.wait()
        with Daemon(folder=first.folder) as second:  # at once, though the worker may not have ended yet
            self.serves(second.socket)
            self.loses(work.client)
            self.assertTrue(eventually(lambda: is_gone(worker)))
        first.log.close()


class Hangs(ProcessTest):
    """The supervisor ends a worker that stands still, and says whose job it had."""

    def restarts(self, daemon, worker, message):
        self.assertTrue(eventually(lambda: is_gone(worker)))
        self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") == 2))
        self.assertRegex(daemon.log_text(), f"error: {message}.*: it is ended\\n.*ended by signal 9 .Killed.; starting another")
        self.serves(daemon.socket)

    def test_stopped_worker(self):
        with Daemon(*ON_CPU, "--watchdog", "2") as daemon:
            work, worker = Work(daemon), daemon.worker()
            os.kill(worker, signal.SIGSTOP)
            self.restarts(daemon, worker, rf"the worker does nothing for 2.0 s; device 0 has job \d+ of user {os.getuid()}")
            self.loses(work.client)

    def test_loop_that_stands(self):
        """Its thread alone is stopped, by a debugger that does nothing else."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Daemon(*ON_CPU, "--watchdog", "2") as daemon:
            worker = daemon.worker()
            if libc.ptrace(PTRACE_ATTACH, worker, None, None):
                self.skipTest(f"cannot trace: {os.strerror(ctypes.get_errno())}")
            os.waitpid(worker, WALL)
            self.assertTrue(eventually(lambda: "it is ended" in daemon.log_text()))
            os.waitpid(worker, WALL)  # the tracer hears of its end first
            self.restarts(daemon, worker, "the worker does nothing for 2.0 s; no job is with a device")

    def test_chunk_that_never_comes_back(self):
        with Daemon(*ON_CPU, "--watchdog", "1", "--hang-chunk", "3") as daemon:
            worker, other = daemon.worker(), daemon.client()
            client = daemon.client()
            job = scan(tensor(client.create(400).buffer, [100]))
            for _ in range(2):
                client.call("job.submit", job)
            client.send("job.submit", job)
            self.assertEqual(other.call("server.ping"), {})
            self.restarts(
                daemon, worker, rf"device 0 has had a chunk of job 3 of user {os.getuid()} for \d.\d s, where \d.\d s are allowed"
            )
            self.loses(client)

    def test_while_it_drains(self):
        """Also a worker that was stopped before it heard of it."""
        with Daemon(*ON_CPU, "--watchdog", "1", "--hang-chunk", "1") as daemon:
            client = daemon.client()
            client.send("job.submit", scan(tensor(client.create(400).buffer, [100])))
            self.assertTrue(eventually(lambda: daemon.client().call("server.stats")["chunks_open"] == 1))
            daemon.process.send_signal(signal.SIGTERM)
            daemon.process.wait(daemons.TIMEOUT_S)
            self.assertIn("the worker ended by signal 9 (Killed) before it was drained", daemon.log_text())
            daemon.wait(0)

    def test_long_work_is_no_hang(self):
        """A job that takes several times as long as the loop may stand still, and then one of few, long chunks."""
        with Daemon(*ON_CPU, "--watchdog", "2") as daemon:
            work, worker = Work(daemon, behind=0), daemon.worker()
            begin = time.monotonic()
            jobs = 0
            while time.monotonic() < begin + 8:
                self.assertIn("total_us", work.client.wait(work.client.send("job.submit", work.job)))
                jobs += 1
            row = work.client.call("buffer.create", size=32 * MIB, place="device")["buffer"]
            work.client.call("job.submit", scan(tensor(row, [1, 1 << 23]), algorithm="serial-cpu"))
            self.assertGreater(jobs, 0)
            self.assertEqual(daemon.worker(), worker)
            self.assertNotIn("ended", daemon.log_text())


class Managed(ProcessTest):
    """Under a service manager: its socket, what it is told, what it asks."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "socket")
        self.log = open(self.folder + "/log", "w+")
        self.addCleanup(self.log.close)

    def listen(self, kind=socket.SOCK_STREAM):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        listener.bind(self.path)
        if kind == socket.SOCK_STREAM:
            listener.listen(8)
        return listener

    def start(self, passed, count=1, pid="os.getpid()", **environment):
        """A daemon that gets the socket as its descriptor 3. There is another one, 4, that nobody passes."""
        become = f"""import os, sys
os.dup2({passed.fileno()}, 3)
os.dup2(1, 4)
os.environ |= {{"LISTEN_PID": str({pid}), "LISTEN_FDS": "{count}"}}
os.execv(sys.argv[1], sys.argv[1:])"""
        return daemons.subprocess.Popen(
            [sys.executable, "-c", become, daemons.SCAND, *ON_CPU, "--foreground", "--pool", "16M", "--watchdog", "1"],
            stderr=self.log,
            pass_fds=[passed.fileno()],
            env={**os.environ, "SCAND_SOCKET": self.folder + "/other", **environment},
        )

    def log_text(self):
        with open(self.log.name) as file:
            return file.read()

    def test_passed_socket(self):
        """Clients wait in it while no daemon runs, and it is not the daemon's to remove."""
        listener = self.listen()
        for _ in range(2):
            early = threading.Thread(target=self.serves, args=[self.path])
            early.start()
            daemon = self.start(listener)
            early.join()
            self.serves(self.path)
            self.assertFalse(os.path.exists(self.folder + "/other"))
            daemon.terminate()
            self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)
            self.assertTrue(os.path.exists(self.path))
        self.assertEqual(self.log_text().count(f"ready at {self.path} on"), 2)

    def test_passed_to_another(self):
        daemon = self.start(self.listen(), pid="1")
        self.assertTrue(eventually(lambda: f"ready at {self.folder}/other" in self.log_text()))
        daemon.terminate()
        self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)

    def test_passed_what_is_no_use(self):
        wrong = "error: what the service manager passes is no Unix stream socket that listens at a path; give scand.socket"
        for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            self.assertEqual(self.start(self.listen(kind)).wait(daemons.TIMEOUT_S), 64)
            os.unlink(self.path)
        with open(os.devnull) as file:
            self.assertEqual(self.start(file).wait(daemons.TIMEOUT_S), 64)
        self.assertEqual(self.log_text().count(wrong), 3)
        self.assertEqual(self.start(self.listen(), count=2).wait(daemons.TIMEOUT_S), 64)
        self.assertIn("error: the service manager passes 2 sockets; allowed: one", self.log_text())

    def test_what_the_manager_is_told(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.folder + "/notify")
        manager.settimeout(daemons.TIMEOUT_S)
        told = []

        def hears(*lines):
            while not set(lines) <= set(told):
                told.extend(manager.recv(4096).decode().split("\n"))

        daemon = self.start(self.listen(), NOTIFY_SOCKET=self.folder + "/notify", WATCHDOG_USEC="100000")
        hears("READY=1", f"STATUS=serving at {self.path}", "WATCHDOG=1")
        (worker,) = children(daemon.pid)
        told.clear()
        os.kill(worker, signal.SIGKILL)
        hears("STATUS=the worker ended by signal 9 (Killed); starting another", "READY=1")
        with Client(self.path) as client:
            buffer = client.call("buffer.create", size=256 * MIB, place="device")["buffer"]
            for _ in range(100):
                client.send("job.submit", scan(tensor(buffer, [6553, 10240]), accumulator="f2"))
            client.call("server.ping")
            told.clear()
            daemon.terminate()
            hears("STOPPING=1", "EXTEND_TIMEOUT_USEC=120000000")
        self.assertTrue(any(line.startswith("STATUS=draining: no more jobs are taken, ") for line in told), told)
        self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)
        self.assertRegex(self.log_text(), "draining: no more jobs are taken, [1-9][0-9]* are left\nscand: drained: none is left\n$")

    def check(self, text, code, message):
        with open(self.folder + "/scand.conf", "w") as file:
            file.write(text)
        for words in (["--check-config", file.name], ["--config", file.name, "--check-config"]):
            result = scand(*words)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(message, result.stdout + result.stderr)
        result = scand("--check-config", env={**os.environ, "CONFIGURATION_DIRECTORY": self.folder})
        self.assertEqual(result.returncode, code)
        self.assertEqual(os.listdir(self.folder), ["log", "scand.conf"])

    def test_check_config(self):
        os.chdir("/")
        self.check("[daemon]\npool = 1G\n[user root]\nweight = 2\n", 0, "scand.conf: right, with settings of 1 users\n")
        self.check("[daemon]\npool = much\n", 78, 'scand.conf:2: [daemon] "pool" is "much"; allowed: 0 to 256G')
        self.check("[daemon\n", 78, "scand.conf:1: this is neither")
        self.assertEqual(scand("--check-config", self.folder + "/none").returncode, 78)
        self.assertEqual(scand("--check-config", "a", "b").returncode, 64)
        result = scand("--check-config", env={**os.environ, "CONFIGURATION_DIRECTORY": "/none"})
        self.assertEqual((result.returncode, result.stdout), (0, "there is no configuration file: all settings are the defaults\n"))

    def test_mode_and_group(self):
        group = os.getgroups()[0] if os.getuid() else 12
        for words, mode in ((["--socket-mode", "0660"], 0o660), (["--socket-mode", "600"], 0o600), ([], None)):
            with Daemon("--socket-group", str(group), *words) as daemon:
                status = os.stat(daemon.socket)
                self.assertEqual(status.st_gid, group)
                self.assertEqual(status.st_mode & 0o777, mode or (0o600 if os.getuid() else 0o666))
                self.serves(daemon.socket)


class Starts(ProcessTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "socket")

    def refused(self, code, message, *options):
        result = scand(*options)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, message)

    def test_second_daemon(self):
        with Daemon() as daemon:
            client = daemon.client()
            for options in (["--foreground"], []):
                self.refused(
                    69,
                    f"^scand: error: a daemon answers at {daemon.socket}; stop it or choose another path\n$",
                    "--device",
                    "cpu",
                    "--socket",
                    daemon.socket,
                    "--pool",
                    "16M",
                    *options,
                )
            self.assertEqual(client.call("server.ping"), {})
            self.serves(daemon.socket)

    def test_places_that_are_no_good(self):
        with open(self.path, "w"):
            pass
        self.refused(69, "is there and is no socket", "--device", "cpu", "--socket", self.path)
        self.refused(69, "cannot", "--device", "cpu", "--socket", self.path + "/below")
        self.refused(69, "cannot", "--device", "cpu", "--socket", self.folder + "/no/such/folder")
        self.assertTrue(os.path.exists(self.path))

    @unittest.skipIf(os.getuid(), "needs another user")
    def test_places_of_others(self):
        """Permission refused has an exit code of its own; and who may only read the socket's folder keeps nobody out."""

        def become():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        os.chmod(self.folder, 0o755)
        options = ["--device", "cpu", "--foreground", "--pool", "16M", "--socket", self.path]
        result = scand(*options, preexec_fn=become)
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertRegex(result.stderr, "cannot open .*/socket.lock: Permission denied")
        locking = daemons.subprocess.Popen(
            ["flock", self.folder, "-c", "echo locked; exec sleep 60"],
            preexec_fn=become,
            stdout=daemons.subprocess.PIPE,
        )
        self.addCleanup(locking.stdout.close)
        self.addCleanup(locking.wait)
        self.addCleanup(locking.kill)
        self.assertEqual(locking.stdout.readline(), b"locked\n")
        self.start_behind('"$0" "$@"')
        command = ["flock", "-n", self.path + ".lock", "true"]
        refused = daemons.subprocess.run(command, preexec_fn=become, stderr=daemons.subprocess.PIPE)
        self.assertIn(b"Permission denied", refused.stderr)
        self.end()
        self.assertEqual(os.listdir(self.folder), ["log"])

    def test_own_socket_is_gone(self):
        """What another daemon has put at the path stays there."""
        with Daemon() as daemon:
            os.unlink(daemon.socket)
            with Daemon(folder=daemon.folder) as other:
                daemon.process.send_signal(signal.SIGTERM)
                daemon.process.wait(daemons.TIMEOUT_S)
                self.serves(other.socket)
                other.stop()
            daemon.log.close()

    def test_options(self):
        for words, message in WRONG_OPTIONS:
            with self.subTest(words):
                self.refused(64, message + "(.|\n)*scand --help", *words)

    def test_help_and_version(self):
        self.assertRegex(scand("--help").stdout, "^Usage: scand")
        self.assertRegex(scand("--version").stdout, r"^scand \d+\.\d+\.\d+\n$")
        self.assertEqual(scand("--help", "--bogus").returncode, 0)

    def test_no_such_gpu(self):
        for options in (["--foreground"], []):
            self.refused(69, '--device is "cuda:31": there is no GPU 31.*use cpu', "--device", "cuda:31", "--socket", self.path, *options)
            self.assertFalse(os.path.exists(self.path))

    def test_socket_from_the_environment(self):
        environment = {
            key: value for key, value in os.environ.items() if key not in ("SCAND_SOCKET", "XDG_RUNTIME_DIR")
        }
        with open(self.path, "w"):
            pass
        result = scand(env={**environment, "SCAND_SOCKET": self.path})
        self.assertIn(f"{self.path} is there and is no socket", result.stderr)
        os.mkdir(self.folder + "/run")
        os.rename(self.path, self.folder + "/run/scand.sock")
        result = scand(env={**environment, "XDG_RUNTIME_DIR": self.folder + "/run"})
        self.assertIn("run/scand.sock is there and is no socket", result.stderr)

    def test_permissions(self):
        """As root the daemon serves everyone, else its own user."""
        with Daemon() as daemon:
            self.assertEqual(os.stat(daemon.socket).st_mode & 0o777, 0o600 if os.getuid() else 0o666)

    def test_background(self):
        """The command returns when the daemon is ready, and leaves it behind."""
        with tempfile.TemporaryFile("w+") as log:
            result = daemons.subprocess.run(
                [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"],
                stdout=log,
                stderr=log,
                timeout=daemons.TIMEOUT_S,
            )
            self.assertEqual(result.returncode, 0)
            self.serves(self.path)
            with Client(self.path) as client:
                pid, uid, _ = struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.assertEqual((uid, os.getsid(pid)), (os.getuid(), pid))
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/1"), "/dev/null")
            (worker,) = children(pid)
            os.kill(pid, signal.SIGTERM)
            self.assertTrue(eventually(lambda: is_gone(pid) and is_gone(worker)))
            self.assertFalse(os.path.exists(self.path))
            log.seek(0)
            self.assertRegex(
                log.read(),
                "^scand: ready at [^\n]+\nscand: draining: no more jobs are taken, 0 are left\nscand: drained: none is left\n$",
            )

    def start_behind(self, *shell):
        """By a shell that may change descriptors first. Returns what the shell printed, and leaves the daemon there."""
        command = [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"]
        with open(self.folder + "/log", "w") as log:
            result = daemons.subprocess.run(
                ["sh", "-c", *shell, *command], stdout=daemons.subprocess.PIPE, stderr=log, timeout=daemons.TIMEOUT_S
            )
        self.assertEqual(result.returncode, 0)
        return result.stdout

    def listener(self):
        with Client(self.path) as client:
            return struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def end(self):
        pid = self.listener()
        with Client(self.path) as client:
            client.call("server.drain")
        self.assertTrue(eventually(lambda: is_gone(pid)))

    def test_closed_descriptors(self):
        """What the daemon opens does not come to lie where a program reads, writes or logs: there is nothing."""
        for closed in ("2>&-", "<&- >&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                self.start_behind(f'"$0" "$@" {closed}')
                pid = self.listener()
                (worker,) = children(pid)
                for process in (pid, worker):
                    for fd in range(3):
                        target = os.readlink(f"/proc/{process}/fd/{fd}")
                        self.assertTrue(target in ("/dev/null", self.folder + "/log"), (process, fd, target))
                self.serves(self.path)
                self.end()

    def test_nobody_waits_for_its_descriptors(self):
        """Neither a shell that takes what the command prints, nor who handed down a pipe."""
        read, write = os.pipe()
        os.dup2(write, 9)
        os.close(write)
        os.set_inheritable(9, True)
        command = daemons.subprocess.Popen(
            ["sh", "-c", 'x=$("$@" 2>/dev/null); echo "got <$x>"', "sh"]
            + [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"],
            stdout=daemons.subprocess.PIPE,
            pass_fds=[9],
        )
        os.close(9)
        self.assertEqual(command.communicate(timeout=daemons.TIMEOUT_S)[0], b"got <>\n")
        self.assertEqual(os.read(read, 1), b"")
        os.close(read)
        self.serves(self.path)
        self.end()

    def test_pool_larger_than_memory(self):
        """It is refused with what there is, before the kernel ends processes for it."""
        with open("/proc/meminfo") as file:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in file}
        if kib["MemAvailable"] >= 256 << 20:
            self.skipTest("there is more memory than a pool may have")
        for options in (["--foreground"], []):
            self.refused(
                69,
                r"^scand: error: pool is 262144M, and the (available|memory).* suffices for \d+M; give a smaller --pool, at most",
                "--device", "cpu", "--pool", "256G", "--socket", self.path, *options,
            )  # fmt: skip
            self.assertEqual(os.listdir(self.folder), [])

    def test_pool_larger_than_the_control_group(self):
        """Of the group that the daemon is put into, of whatever version."""
        for base, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            group = f"{base}/scand-test-{os.getpid()}"
            try:
                if not os.path.exists(f"{base}/cgroup.procs"):
                    continue
                os.mkdir(group)
                self.addCleanup(os.rmdir, group)
                with open(f"{group}/{limit}", "w") as file:
                    file.write(str(256 * MIB))
                break
            except OSError:
                continue
        else:
            self.skipTest("control groups of memory cannot be made here")

        def enter():
            with open(f"{group}/cgroup.procs", "w") as file:
                file.write("0")

        command = ["--device", "cpu", "--foreground", "--socket", self.path, "--pool"]
        result = scand(*command, "1G", preexec_fn=enter)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, r"pool is 1024M, and the memory left to this control group .* at most 1\d\dM")

    def test_files_for_the_pool(self):
        """Without any left for clients nobody could be served."""

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))

        result = scand("--device", "cpu", "--socket", self.path, "--pool", "64M", preexec_fn=few)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, "the limit of open files is 80; needed: 1[01][0-9], of these 68 for the pool")
        self.assertEqual(os.listdir(self.folder), [])

    def test_without_a_pool(self):
        with Daemon("--pool", "0") as daemon, daemon.client() as client:
            with self.assertRaises(Failure) as caught:
                client.create(1)
            self.assertEqual(caught.exception.name, "quota")
            memory = client.adopt(400, 400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))


if __name__ == "__main__":
    main()

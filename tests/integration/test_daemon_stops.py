#!/usr/bin/env python3
"""The daemon as processes: how it stops and drains.

test_daemon_stops.py SCAND [unittest's arguments]
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time

import daemons
from daemons import ON_CPU, Daemon, children, main
from processes import MIB, ProcessTest, Work, is_gone
from wire import CODES, Failure, eventually, memfd, pack, scan, tensor


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

    def test_jobs_that_take_too_long(self):
        with Daemon(*ON_CPU, "--drain", "1") as daemon, daemon.client() as client:
            rows = {
                "input": tensor(client.create(4).buffer, [1000, 1 << 33], strides=[0, 0]),
                "output": tensor(client.create(4000).buffer, [1000, 1]),
            }
            client.send("job.submit", {"operation": "reduce", "reduction": "sum", "axis": 1, **rows})
            client.call("server.drain")
            self.loses(client)
            self.assertTrue(eventually(lambda: "before it was drained" in daemon.log_text()))
            self.assertIn("the drain has lasted for 1 s (drain), and 1 jobs are left", daemon.log_text())
            daemon.wait(0)

    def test_asked_twice_at_once(self):
        """As by timeout(1), which asks a program and then its process group: one request, by which no job is lost."""

        def ask(daemon):
            for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                daemon.process.send_signal(number)

        self.check_drain(ask)

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

    def test_what_was_sent_before_the_end_is_refused(self):
        """Also what the daemon had not read when it had nothing left to do: such jobs were not begun, and are another daemon's."""
        with Daemon() as daemon:
            client = daemon.client()
            job = scan(tensor(client.create(4).buffer, [1]))
            jobs = b"".join(pack([0, i, "job.submit", [job]]) for i in range(400))
            client.send_bytes(pack([0, 1000, "server.drain", [{}]]) + jobs)
            self.assertEqual(client.wait(1000), {})
            for i in range(400):
                self.fails("draining", client, i)
            self.assertTrue(client.is_closed())
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
        """A user who cannot wait asks again."""
        with Daemon(*ON_CPU) as daemon:
            work = Work(daemon, 100)
            daemon.process.send_signal(signal.SIGTERM)
            self.assertTrue(eventually(lambda: "draining: no more jobs" in daemon.log_text()))
            time.sleep(0.05)  # longer than two signals are one request
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
        """A daemon that is starting has no jobs, and says nothing of lost ones."""
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


if __name__ == "__main__":
    main()

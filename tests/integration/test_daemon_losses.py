#!/usr/bin/env python3
"""The daemon as processes: how it goes on after its worker or its device is lost, or stands still.

test_daemon_losses.py SCAND [unittest's arguments]
"""

import ctypes
import os
import signal
import time

import daemons
from daemons import ON_CPU, Daemon, main
from processes import MIB, ProcessTest, Work, is_gone
from wire import eventually, pack, scan, tensor

PTRACE_CONT, PTRACE_ATTACH, WALL = 7, 16, 0x40000000
PACKED_DRAIN = pack([0, 5, "server.drain", [{}]])


class Losses(ProcessTest):
    def test_device_is_lost_while_draining(self):
        """No client is told to come again, since no other worker follows. One write, so that the drain comes before any loss."""
        with Daemon("--fail-chunk", "3") as daemon:
            client = daemon.client()
            job = scan(tensor(client.create(4 << 20).buffer, [1024, 1024]), accumulator="f2")  # which takes a while
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
        """The answer also goes to a client that reads so late that its socket does not take all of it."""
        with Daemon("--fail-chunk", "200") as daemon:
            for losses in (1, 2, 3):
                client = daemon.client()
                job = scan(tensor(client.create(400).buffer, [100]))
                asked = [pack([0, 1000 + i, "server.stats", [{}]]) for i in range(1200)]
                asked += [pack([0, 10 + i, "job.submit", [job]]) for i in range(200)]
                client.send_bytes(b"".join(asked))
                self.assertTrue(eventually(lambda: daemon.log_text().count("the device is lost") == losses), daemon.log_text())
                for i in range(199):
                    self.assertIn("total_us", client.wait(10 + i))
                self.loses(client)

    def open_work(self, daemon):
        """Jobs of which some are open when the daemon counts them, and what it counts. A fast device may have done them by then."""
        for _ in range(100):
            work = Work(daemon, 200)
            counts = work.client.call("server.stats")
            if counts["jobs_open"]:
                return work, counts
        self.fail(f"200 jobs were always done at once: {counts}")

    def test_worker_is_killed(self):
        with Daemon() as daemon:
            for restarts in range(1, 4):
                worker, idle = daemon.worker(), daemon.client()
                work, before = self.open_work(daemon)
                os.kill(worker, signal.SIGKILL)
                with daemon.client() as early:  # waits for the next worker
                    after = early.call("server.stats")
                counts = ("restarts", "clients_accepted", "clients_open", "jobs_open", "host_bytes", "device_bytes")
                accepted = before["clients_accepted"] + 1
                self.assertEqual([after[name] for name in counts], [restarts, accepted, 1, 0, 0, 0])
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

    def test_device_is_lost_to_a_helper(self):
        """The device's thread has not seen the error, and no job comes: the worker ends at once, without an answer that is a failure."""
        with Daemon(*ON_CPU, "--fail-memory", "2") as daemon:
            worker, client, other = daemon.worker(), daemon.client(), daemon.client()
            first = client.call("buffer.create", size=4096, place="device")
            client.call("job.submit", scan(tensor(first["buffer"], [1024])))
            client.send("buffer.create", size=4096, place="device")
            self.loses(client)
            self.loses(other)
            self.assertTrue(eventually(lambda: is_gone(worker)))
            self.serves(daemon.socket)
            text = daemon.log_text()
            self.assertEqual((text.count("the device is lost"), text.count("ended by exit code 3")), (1, 1))

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
        """The loop's thread alone is stopped, by a debugger that does nothing else."""
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
                daemon, worker, rf"device 0 has had a chunk of job 3 of user {os.getuid()} for \d+.\d s, where \d+.\d s are allowed"
            )
            self.loses(client)

    def test_threads_that_compute_stand(self):
        """All threads but the loop's are stopped, with a job at the device."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Daemon(*ON_CPU, "--watchdog", "1") as daemon:
            work, worker = Work(daemon), daemon.worker()
            threads = [int(name) for name in os.listdir(f"/proc/{worker}/task") if int(name) != worker]
            for thread in threads:
                if libc.ptrace(PTRACE_ATTACH, thread, None, None):
                    self.skipTest(f"cannot trace: {os.strerror(ctypes.get_errno())}")
            self.assertTrue(eventually(lambda: "it is ended" in daemon.log_text()))
            for thread in threads:
                while not os.WIFSIGNALED(os.waitpid(thread, WALL)[1]):  # the tracer hears of stops and ends first
                    libc.ptrace(PTRACE_CONT, thread, None, None)
            chunk = rf"device 0 has had a chunk of job \d+ of user {os.getuid()} for \d+.\d s, where \d+.\d s are allowed"
            loop = "the worker does nothing for 1.0 s"  # where a thread was stopped that held a lock
            self.restarts(daemon, worker, f"({chunk}|{loop})")
            self.loses(work.client)

    def test_stopped_supervisor(self):
        """The worker of a stopped supervisor goes on, and the supervisor follows when it may."""
        with Daemon(*ON_CPU, "--watchdog", "1") as daemon:
            os.kill(daemon.process.pid, signal.SIGSTOP)
            worker = daemon.worker()
            time.sleep(2.5)
            self.serves(daemon.socket)
            os.kill(daemon.process.pid, signal.SIGCONT)
            self.serves(daemon.socket)
            self.assertEqual(daemon.worker(), worker)
            self.assertNotIn("it is ended", daemon.log_text())

    def test_while_it_drains(self):
        """A worker hangs in a drain, also one that was stopped before it heard of the drain."""
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


if __name__ == "__main__":
    main()

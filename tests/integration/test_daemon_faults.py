#!/usr/bin/env python3
"""The n-th allocation or system call of a worker, or of its supervisor, fails, n = 1, 2, ... until none is left, where of calls from one place
the first few count: in the start of a worker that follows another, and in what clients have a daemon do. Each time the daemon goes on, with
the next worker if not with that one, every answer is right or an error, and nothing is left: no buffer, job, descriptor.

test_daemon_faults.py SCAND FAULTS [unittest's arguments]
"""

import collections
import mmap
import os
import signal
import struct
import sys
import tempfile
import unittest

from daemons import FAULTS as REPORTS
from daemons import Daemon, main
from wire import Closed, Failure, eventually, pack_f32, scan, tensor, unpack_f32

FAULTS = None  # the library to preload
CALLS_MAX = 2000  # of a start, or of a scenario: more are no end
FORKED, LOADED = -1, -2  # processes of a plan: the next that is forked, or started
OPTIONS = ("--device", "cpu", "--pool", "4M")
PLACES = 1 << 16  # of faults.c
NOTHING = {"clients_open": 1, "buffers_open": 0, "jobs_open": 0, "host_bytes": 0, "device_bytes": 0}


class Plan:
    """The call that is to fail; struct plan of faults.c."""

    def __init__(self, path):
        with open(path, "wb+") as file:
            file.truncate(48 + PLACES)
            self.memory = mmap.mmap(file.fileno(), 48 + PLACES)

    def set(self, n, process, until_message=0):
        self.memory[:] = struct.pack("=qii32s", 0, process, until_message, b"") + bytes(PLACES)
        struct.pack_into("=q", self.memory, 0, n)  # last, as it counts from then on

    def end(self):
        """The function that has failed, or None."""
        left, _, _, function = struct.unpack("=qii32s", self.memory[:48])
        self.memory[:8] = bytes(8)
        return function.rstrip(b"\0").decode() if left == 0 and function[0] else None


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scand")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        path = os.path.join(folder.name, "plan")
        self.plan = Plan(path)
        os.environ |= {"LD_PRELOAD": FAULTS, "SCAND_FAULTS": path}
        self.addCleanup(os.environ.pop, "LD_PRELOAD")

    def serves(self, daemon):
        with daemon.client() as client:
            memory = client.create(400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))
            return client.call("server.stats")


class Restarts(Faults):
    def fail_call(self, n):
        """Returns what has failed, and how many starts it took, when the n-th call of a daemon's second worker fails."""
        with Daemon(*OPTIONS) as daemon:
            self.plan.set(n, FORKED, until_message=1)
            os.kill(daemon.worker(), signal.SIGKILL)
            self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") == 2), (n, daemon.log_text()))
            function = self.plan.end()
            restarts = self.serves(daemon)["restarts"]
            text = daemon.log_text()
            self.assertEqual(text.count("; starting another"), restarts, (n, text))
            self.assertIn(restarts, (1, 2), (n, text))
            return function, restarts

    def test_every_call(self):
        failed, ended, n = collections.Counter(), 0, 0
        while n < CALLS_MAX:
            n += 1
            function, restarts = self.fail_call(n)
            if not function:
                break
            failed[function] += 1
            ended += restarts - 1
        self.assertTrue(20 < n < CALLS_MAX, f"{n} calls")
        print(f"start, worker: each of {n - 1} calls failed, {ended} of which ended that worker: {dict(failed)}")


class Starts(Faults):
    def start_once(self, n):
        """A daemon of which the supervisor's n-th call fails ends by itself, and says why, or serves."""
        self.plan.set(n, LOADED)
        try:
            with Daemon(*OPTIONS) as daemon:
                function = self.plan.end()
                self.serves(daemon)
                return function, True
        except AssertionError as error:
            function = self.plan.end()
            message = str(error)
            self.assertTrue(function and "the daemon does not start:\nscand: error: " in message, (n, function, message))
            self.assertFalse(REPORTS.search(message), message)
            return function, False

    def test_first_start(self):
        failed, ended, n = collections.Counter(), 0, 0
        while n < CALLS_MAX:
            n += 1
            function, started = self.start_once(n)
            if not function:
                break
            failed[function] += 1
            ended += not started
        self.assertTrue(3 < n < CALLS_MAX, f"{n} calls")
        print(f"first start, supervisor: each of {n - 1} calls failed, {ended} of which ended it: {dict(failed)}", flush=True)


class Stops(Faults):
    def stop_once(self, n, of_supervisor):
        """Returns what failed in the drain of a daemon with jobs, which are done, or whose answers are missing."""
        with Daemon(*OPTIONS) as daemon, daemon.client() as client:
            memory = client.create(1 << 20)
            jobs = [client.send("job.submit", scan(tensor(memory.buffer, [64, 4096]), accumulator="f2")) for _ in range(3)]
            client.call("server.ping")
            self.plan.set(n, daemon.process.pid if of_supervisor else daemon.worker())
            daemon.process.send_signal(signal.SIGTERM)
            try:
                for job in jobs:
                    self.assertIn("total_us", client.wait(job))
                self.assertTrue(client.is_closed())
            except (Closed, Failure):
                pass
            daemon.wait(0)
            return self.plan.end()

    def test_stop(self):
        for of_supervisor in (False, True):
            failed, n = collections.Counter(), 0
            while n < CALLS_MAX:
                n += 1
                function = self.stop_once(n, of_supervisor)
                if not function:
                    break
                failed[function] += 1
            who = "supervisor" if of_supervisor else "worker"
            print(f"stop, {who}: each of {n - 1} calls failed: {dict(failed)}", flush=True)
            self.assertTrue((of_supervisor or n > 3) and n < CALLS_MAX, f"{n} calls")


# Any of these may end in a Failure or in the connection's end. What they return must be right.


def run_connect(test, daemon):
    with daemon.client() as client:
        client.call("server.ping")
        client.call("server.clients")


def run_buffers(test, daemon):
    with daemon.client() as client:
        made = [client.call("buffer.create", size=size, place=place) for size, place in ((4096, "host"), (1 << 20, "host"), (4096, "device"))]
        for buffer in made:
            client.call("buffer.release", buffer=buffer["buffer"])


def run_import(test, daemon):
    with daemon.client() as client:
        memory = client.adopt(2 << 20, 1 << 20)
        client.call("buffer.release", buffer=memory.buffer)


def run_jobs(test, daemon):
    with daemon.client() as client:
        memory, offsets = client.create(400), client.create(800)
        memory.write(pack_f32([1] * 100))
        offsets.write(struct.pack("=3q", 0, 60, 100))
        client.call("job.submit", scan(tensor(memory.buffer, [100])))
        test.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))
        memory.write(pack_f32([1] * 100))
        client.call("job.submit", scan(tensor(memory.buffer, [100]), offsets=tensor(offsets.buffer, [3], dtype="i64")))
        test.assertEqual(unpack_f32(memory.read()), [*range(1, 61), *range(1, 41)])
        memory.write(pack_f32([2] * 100))
        jobs = [scan(tensor(memory.buffer, [50])), scan(tensor(memory.buffer, [50], offset=200))]
        outcomes = client.call("job.batch", jobs=jobs)["jobs"]
        if all("error" not in outcome for outcome in outcomes):
            test.assertEqual(unpack_f32(memory.read()), [*range(2, 101, 2)] * 2)


def run_cancel(test, daemon):
    with daemon.client() as client:
        buffer = client.call("buffer.create", size=4 << 20, place="device")["buffer"]
        job = client.send("job.submit", scan(tensor(buffer, [256, 4096]), accumulator="f2", passes=["forward", "backward"]))
        client.send("job.cancel", job=job)
        try:
            client.wait(job)
        except Failure as failure:
            test.assertIn(failure.name, ("cancelled", "no_memory", "device", "lost"))


def run_departure(test, daemon):
    """A client leaves with everything under way."""
    with daemon.client() as client:
        memory = client.adopt(4 << 20, 1 << 20)
        for _ in range(3):
            client.send("job.submit", scan(tensor(memory.buffer, [256, 4096]), accumulator="f2"))
        client.call("server.ping")


def run_reload(test, daemon):
    before = daemon.log_text().count("settings were read again") + daemon.log_text().count("settings stay as they were")
    daemon.process.send_signal(signal.SIGHUP)
    said = ("settings were read again", "settings stay as they were")
    test.assertTrue(eventually(lambda: sum(map(daemon.log_text().count, said)) > before), daemon.log_text())
    with daemon.client() as client:
        client.call("server.ping")


class Scenarios(Faults):
    """Scenarios with one daemon for all calls; its worker, or its supervisor, is the process that fails."""

    def descriptors(self, pid):
        """Counts descriptors except those of memory, which are the pool's, of which a user keeps some."""
        count = 0
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                count += not os.readlink(f"/proc/{pid}/fd/{name}").startswith("/memfd:")
            except OSError:  # it was closed meanwhile
                pass
        return count

    def has_left(self, worker, idle):
        """The worker has closed the client's connection and has none of its memory any more: it is not asked, since that would be calls."""
        with open(f"/proc/{worker}/maps") as file:
            return "/memfd:test" not in file.read() and self.descriptors(worker) <= idle

    def run_once(self, scenario, daemon):
        """Runs a scenario once; returns whether it went well."""
        try:
            scenario(self, daemon)
            return True
        except (Failure, Closed, ConnectionError):
            return False

    def check_nothing_left(self, daemon, pids, before):
        with daemon.client() as client:

            def left():
                stats = client.call("server.stats")
                return {name: stats.get(name, 0) for name in NOTHING}

            self.assertTrue(eventually(lambda: left() == NOTHING), left())
            for pid, most in zip(pids, before):
                # a connection that the client has closed may be there for a moment
                self.assertTrue(eventually(lambda: self.descriptors(pid) <= most), (self.descriptors(pid), most))

    def fail_calls(self, scenario, of_supervisor=False):
        name = scenario.__name__.removeprefix("run_")
        failed, told, n = collections.Counter(), 0, 0
        settings = os.path.join(self.folder, "scand.conf")
        with open(settings, "w") as file:
            file.write("[user root]\njobs = 1000\n[user nobody]\njobs = 10\nweight = 2\n")
        os.chmod(settings, 0o644)
        with Daemon(*OPTIONS, "--watchdog", "0", "--config", settings) as daemon:
            for _ in range(3):
                self.assertTrue(self.run_once(scenario, daemon))
            pids = [daemon.process.pid, daemon.worker()]
            with daemon.client():
                before = [self.descriptors(pid) for pid in pids]
            while n < CALLS_MAX:
                n += 1
                self.plan.set(n, pids[0] if of_supervisor else pids[1])
                went_well = self.run_once(scenario, daemon)
                if scenario is run_departure:
                    self.assertTrue(eventually(lambda: self.has_left(pids[1], before[1] - 1)), (name, n))
                function = self.plan.end()
                self.assertTrue(function or went_well, (name, n))
                self.serves(daemon)
                self.assertEqual(daemon.worker(), pids[1], (name, n, function, daemon.log_text()))
                self.check_nothing_left(daemon, pids, before)
                if not function:
                    break
                failed[function] += 1
                told += not went_well
            self.assertFalse(REPORTS.search(daemon.log_text()), daemon.log_text())
        self.assertTrue(2 < n < CALLS_MAX, f"{name}: {n} calls")
        who = "supervisor" if of_supervisor else "worker"
        print(f"{name}, {who}: each of {n - 1} calls failed, {told} of which the client was told: {dict(failed)}", flush=True)

    def test_connect(self):
        self.fail_calls(run_connect)

    def test_buffers(self):
        self.fail_calls(run_buffers)

    def test_import(self):
        self.fail_calls(run_import)

    def test_jobs(self):
        self.fail_calls(run_jobs)

    def test_cancel(self):
        self.fail_calls(run_cancel)

    def test_departure(self):
        self.fail_calls(run_departure)

    def test_reload(self):
        self.fail_calls(run_reload)
        self.fail_calls(run_reload, of_supervisor=True)


if __name__ == "__main__":
    FAULTS = os.path.abspath(sys.argv.pop(2))
    main()

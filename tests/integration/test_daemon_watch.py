#!/usr/bin/env python3
"""The commands of scanctl by which people watch and steer a daemon at work: jobs, clients, top, metrics, cancel, wait,
drain.

    SCANCTL=PATH test_daemon_watch.py SCAND [unittest's arguments]
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import daemons
from daemons import ON_CPU, Daemon
from processes import Work
from wire import TIMEOUT_S, Failure, eventually, pack_f32, scan, tensor

SCANCTL = os.path.abspath(os.environ["SCANCTL"])
NOBODY = 65534

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{NAME}={VALUE})(?:,{NAME}={VALUE})*)\}})? (\S+)')


def read_metrics(text):
    """Prometheus' text format, strictly: {family: (type, {(name, labels): value})}."""
    families, family = {}, None
    assert text.endswith("\n")
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        match = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line)
        if match:
            kind = re.fullmatch(rf"# TYPE {match[1]} (counter|gauge|histogram)", lines.pop(0))
            assert kind and match[1] not in families, line
            family = match[1]
            families[family] = (kind[1], {})
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        expected = rf"{family}(_bucket|_sum|_count)" if families[family][0] == "histogram" else family
        assert re.fullmatch(expected, match[1]), line
        key = (match[1], match[2] or "")
        assert key not in families[family][1], line
        families[family][1][key] = float(match[3])
    return families


def check_names(families):
    """The rules of names: a prefix, base units, counters and nothing else in _total."""
    for name, (kind, samples) in families.items():
        assert name.startswith("scand_") and samples, name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search("_(us|ms|kib|mib|microseconds|milliseconds)(_|$)", name), name
        assert kind != "histogram" or name.endswith("_seconds"), name


def check_histogram(name, samples):
    """Buckets rise, in order, to a count that is the last one's; returns the count."""
    buckets = [(label, value) for (part, label), value in samples.items() if part == name + "_bucket"]
    bounds = [float(re.fullmatch('le="(.*)"', label)[1]) for label, _ in buckets]
    assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), bounds
    counts = [count for _, count in buckets]
    assert counts == sorted(counts) and counts[-1] == samples[name + "_count", ""], counts
    assert samples[name + "_sum", ""] >= 0
    return counts[-1]


class Screen:
    """scanctl top on a terminal of its own."""

    def __init__(self, socket, rows, columns, *words):
        self.bytes, self.status = b"", None
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it, and so would top
            os.environ["TERM"] = "xterm"
            os.environ.pop("NO_COLOR", None)
            subprocess.run(["stty", "rows", str(rows), "cols", str(columns)], check=False)
            os.execv(SCANCTL, [SCANCTL, "--socket", socket, "top", *words])

    def text(self):
        return self.bytes.decode()

    def frames(self):
        """Lines of all screens that were shown whole, without their styles."""
        whole = re.findall(r"\033\[H(.*?)\033\[J\033\[\d+;1H(.*?)\033\[0m\033\[K", self.text(), re.DOTALL)
        plain = [re.sub(r"\033\[[\d;]*[mK]", "", body + "\r\n" + last) for body, last in whole]
        return [[line for line in frame.split("\r\n")] for frame in plain]

    def read(self):
        """False at the end."""
        if select.select([self.terminal], [], [], 0.1)[0]:
            try:
                self.bytes += os.read(self.terminal, 65536)
            except OSError:
                return False
        return True

    def shows(self, pattern):
        """Returns whether a screen that is drawn from now on, or the last one, has the pattern in time."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            if self.frames() and re.search(pattern, "\n".join(self.frames()[-1])):
                return True
            if not self.read():
                return False
        return False

    def ended(self):
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline and self.read():
            continue
        self.status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self.status)

    def close(self):
        os.close(self.terminal)
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*ON_CPU)
        cls.addClassCleanup(cls.daemon.stop)

    def work(self, behind=60):
        """A program at work; nothing is left of earlier tests."""

        def is_idle():
            stats = self.ask("stats")
            return stats["jobs_open"] == stats["buffers_open"] == stats["device_bytes"] == 0

        self.assertTrue(eventually(is_idle), self.ask("stats"))
        work = Work(self.daemon, behind)
        self.addCleanup(work.client.close)
        return work

    def run_words(self, *words, **options):
        command = [SCANCTL, "--socket", self.daemon.socket, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, **options)

    def scanctl(self, *words, **options):
        done = self.run_words(*words, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def ask(self, *words, **options):
        return json.loads(self.scanctl(*words, "--json", **options))

    def fails(self, code, message, *words, **options):
        done = self.run_words(*words, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, message)
        self.assertEqual(done.stdout, "")

    def test_jobs(self):
        work = self.work()
        jobs = self.ask("jobs")
        self.assertGreater(len(jobs), 32)  # more than a page
        numbers = [job["job"] for job in jobs]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(jobs))))
        first = jobs[0]
        self.assertEqual((first["state"], first["operation"]), ("running", "scan sum forward,backward f32"))
        self.assertEqual((first["name"], first["user"], first["rows"]), ("test", os.geteuid(), 6553))
        self.assertEqual(first["bytes"], 2 * 6553 * 10240 * 4)
        self.assertEqual(jobs[-1]["state"], "queued")
        lines = self.scanctl("jobs").splitlines()
        self.assertRegex(lines[0], "^ +job +client +user +state +priority +done +rows +size +age +operation +program$")
        self.assertRegex(lines[-1], r"^ +\d+ +\d+ +\S+ +queued +normal +0 % +6,553 +512\.0 MiB .*scan sum forward,backward f32 +test$")
        client = next(client for client in self.ask("clients") if client["client"] == first["client"])
        self.assertEqual((client["pid"], client["name"], client["buffers"]), (os.getpid(), "test", 1))
        self.assertEqual((client["device_bytes"], client["host_bytes"]), (256 << 20, 0))
        self.assertIn(client["jobs_running"], (1, 2))  # the next one may begin before the last chunk of another ends
        self.assertGreater(client["jobs_queued"], 32)
        self.assertGreater(client["device_busy_us"], 0)
        self.assertEqual((client["user_device_bytes"], client["quota_device_bytes"]), (256 << 20, 16 << 30))
        self.assertEqual((client["user_jobs"], client["quota_jobs"]), (len(jobs), 2048))
        user = next(user for user in self.ask("users") if user["user"] == os.geteuid())
        self.assertEqual((user["device_bytes"], user["device_quota_bytes"], user["jobs_quota"]), (256 << 20, 16 << 30, 2048))
        self.assertGreater(user["jobs"], 32)
        text = self.scanctl("clients")
        self.assertRegex(text, rf"(?m)^ +{client['client']} +\S+ +{os.getpid()} .* test$")
        text = self.scanctl("users")
        self.assertRegex(text, r"(?m)^\S+ +2 of 256 +\d+ of 2,048 +0 B of 16\.0 GiB +256\.0 MiB of 16\.0 GiB +\d+ +0 ")
        work.client.close()
        self.assertTrue(eventually(lambda: not self.ask("jobs")))
        self.assertTrue(eventually(lambda: len(self.ask("clients")) == 1))  # scanctl itself
        self.assertGreater(self.ask("users")[0]["jobs_cancelled"], 32)

    def test_urgency(self):
        """Behind this user's other jobs a late one gives up; before them it need not."""
        work = self.work()
        folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(shutil.rmtree, folder)
        given, result = os.path.join(folder, "in.raw"), os.path.join(folder, "out.raw")
        with open(given, "wb") as file:
            file.write(pack_f32([1] * 100))
        for command in (("scan", given, "-o", result), ("reduce", "--op", "sum", given, "-o", result)):
            words = (*command, "--shape", "100", "--priority")
            self.fails(75, '"deadline_ms" is 1, and the job could not start by then', *words, "low", "--deadline", "1")
            self.assertEqual(os.listdir(folder), ["in.raw"])
            self.fails(64, '--priority is "top"; it may be normal, low, high', *words, "top")
            self.scanctl(*words, "high", "--deadline", "30000")
            self.assertGreater(self.ask("stats")["jobs_open"], 1)  # it has not waited for these
            os.unlink(result)
        work.cancel_rest()

    def test_cancel(self):
        work = self.work()
        jobs = [job["job"] for job in self.ask("jobs")]
        running, queued = jobs[0], jobs[-1]
        self.assertEqual(self.scanctl("cancel", queued), "")
        with self.assertRaises(Failure) as caught:
            work.client.wait(work.behind[-1])
        self.assertEqual(caught.exception.name, "cancelled")
        self.fails(64, f'no job of number {queued} is queued or running: it has ended, or never was; scanctl jobs lists all', "cancel", queued)
        self.scanctl("cancel", jobs[-2])
        self.assertNotIn(jobs[-2], [job["job"] for job in self.ask("jobs")])
        self.assertLessEqual(running, min(job["job"] for job in self.ask("jobs")))
        for word in ("x", "0", "-1", "1.5", "18446744073709551616"):
            self.fails(64, "no job|unknown option", "cancel", word)
        self.fails(64, "takes the number of one job, or --client, or --mine, and got 0 words", "cancel")
        self.fails(64, "got 2 words", "cancel", 1, 2)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_others(self):
        self.work()
        os.chmod(self.daemon.socket, 0o777)
        # Another user need not be able to read where the program lies: it is run from a copy.
        folder = self.daemon.folder
        program = shutil.copy(SCANCTL, folder)
        needed = subprocess.run(["ldd", SCANCTL], capture_output=True, text=True).stdout
        for library in re.findall(r"libscand\S* => (\S+)", needed):
            shutil.copy(library, folder)

        def nobody(*words):
            command = [program, "--socket", self.daemon.socket, *map(str, words)]
            environment = {**os.environ, "LD_LIBRARY_PATH": folder}
            return subprocess.run(command, capture_output=True, text=True, user=NOBODY, group=NOBODY, env=environment, cwd="/")

        jobs = json.loads(nobody("jobs", "--json").stdout)
        self.assertTrue(jobs)
        for job in jobs:
            self.assertEqual((job["name"], job["operation"], job["user"]), ("", "", 0))
        clients = json.loads(nobody("clients", "--json").stdout)
        self.assertEqual([client["pid"] != 0 for client in clients], [client["user"] == NOBODY for client in clients])
        refused = nobody("cancel", jobs[-1]["job"])
        self.assertEqual(refused.returncode, 77)
        self.assertRegex(refused.stderr, f"which is not a job of user {NOBODY}; its own user, root and the daemon's own user 0 may")
        self.assertRegex(nobody("drain").stderr, f"user {NOBODY} may not")
        self.assertEqual(nobody("wait").returncode, 0)  # none of its own

    def test_wait(self):
        with self.daemon.client() as client:
            buffer = client.call("buffer.create", size=40 << 20, place="device")["buffer"]
            job = scan(tensor(buffer, [1024, 10240]), accumulator="f2")
            jobs = [client.send("job.submit", job) for _ in range(3)]
            last = client.call("server.stats")["jobs_numbered"]
            self.scanctl("wait", last - 2)
            self.assertNotIn(last - 2, [job["job"] for job in self.ask("jobs")])
            self.scanctl("wait")
            self.assertEqual(self.ask("jobs"), [])
            self.scanctl("wait", last)
            for msgid in jobs:
                client.wait(msgid)
        self.fails(64, f"no job has the number {last + 1} yet; the last is {last}", "wait", last + 1)
        self.fails(64, '--timeout is "0"', "wait", "--timeout", "0")
        self.fails(64, '"2" is too much', "wait", 1, 2)

    def test_wait_gives_up(self):
        self.work()
        last = self.ask("jobs")[-1]["job"]
        begun = time.monotonic()
        self.fails(75, f"job {last} has not ended within 1 s", "wait", "--timeout", 1, last)
        self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_top(self):
        self.work()
        text = self.scanctl("top", "--once")
        self.assertRegex(text, r"\Ascand \S+  up \d")
        self.assertRegex(text, r"(?m)^cpu  .*  memory 256\.0 MiB of 512\.0 MiB$")
        self.assertRegex(text, r"(?m)^busy +([5-9]\d|100)\.\d %  chunks [12]  upload 0 B/s  download 0 B/s$")
        self.assertRegex(text, r"(?m)^ +\d+ \S+ +running  \[#* *\] +\d+ % .*  scan sum forward,backward f32 +test$")
        self.assertRegex(text, r"(?m)^ +\d+ \S+ +queued   \[ {20}\]   0 % ")
        self.assertNotIn("\033", text)

        def shares(look):
            return [client["device_percent"] for client in look["clients"]]

        def moved():
            """A chunk may take longer than a look. Clients are looked at after the device, later on a busy machine."""
            look = self.ask("top", "--once")
            return look if look["samples_per_s"] > 0 and abs(sum(shares(look)) - look["busy_percent"]) <= 15 else None

        look = eventually(moved)
        self.assertTrue(look)
        self.assertGreater(look["busy_percent"], 50)
        self.assertEqual(shares(look), sorted(shares(look), reverse=True))
        self.assertGreater(len(look["jobs"]), 32)
        self.fails(64, "are not a terminal; see scanctl top --once", "top", stdin=subprocess.DEVNULL)
        self.fails(64, '"x" is too much', "top", "x")

    def test_top_goes_on(self):
        command = [SCANCTL, "--socket", self.daemon.socket, "top", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
            looks = [json.loads(top.stdout.readline()) for _ in range(2)]
            top.stdout.close()
            self.assertNotEqual(top.wait(TIMEOUT_S), 0)  # as any program that nobody reads
        self.assertGreaterEqual(looks[1]["uptime_us"] - looks[0]["uptime_us"], 1000000)

    def check_screen(self, end):
        """Runs top on a small terminal; `end` ends it. Returns its exit code."""
        screen = Screen(self.daemon.socket, 20, 60)
        try:
            self.assertTrue(screen.shows("up "))
            end(screen.pid, screen.terminal)
            status = screen.ended()
        finally:
            screen.close()
        text = screen.text()
        self.assertRegex(text, r"\A\033\[\?1049h\033\[\?25l")
        self.assertEqual(text.count("\033[?1049l"), 1)
        self.assertLess(text.index("\033[H"), text.index("\033[?25h\033[?1049l"))
        lines = screen.frames()[0]
        self.assertRegex(lines[0], r"^scand \S+  up ")
        self.assertLessEqual(max(map(len, lines)), 60)
        self.assertLessEqual(len(lines), 20)
        return status

    def test_screen_and_keys(self):
        """80 x 24: what runs and for whom, and keys."""
        self.work()
        screen = Screen(self.daemon.socket, 24, 80, "--interval", "0.3")
        try:
            self.assertTrue(screen.shows(r"scan sum forward,ba"))
            lines = screen.frames()[-1]
            self.assertTrue(any(re.search(r"^ +\d+ \S+ +running +\d+ % +\S+ \w+ test +scan sum", line) for line in lines), lines)
            self.assertRegex(lines[-1], r"^q quit   sort by: \[device\] memory rate client   \+ - every 0.3 s   space stops$")
            self.assertTrue(max(map(len, lines)) <= 80 and len(lines) <= 24)
            for key, shown in ((b"m", r"device \[memory\]"), (b"c", r"rate \[client\]"), (b"+", "every 0.6 s"), (b"-", "every 0.3 s"), (b" ", "stopped")):
                os.write(screen.terminal, key)
                self.assertTrue(screen.shows(shown), shown)
            self.assertIn("\033[7m", screen.text())
            os.write(screen.terminal, b"q")
            self.assertEqual(screen.ended(), 0)
        finally:
            screen.close()
        self.fails(64, '--interval is "0"; it may be 0.1 to 3600 seconds', "top", "--interval", "0")
        self.fails(64, '--sort is "x"; it may be device, memory, rate, client', "top", "--sort", "x")

    def test_screen(self):
        self.work()
        self.assertEqual(self.check_screen(lambda pid, terminal: os.write(terminal, b"q")), 0)

    def test_screen_and_signals(self):
        self.assertEqual(self.check_screen(lambda pid, terminal: os.write(terminal, b"\x03")), -signal.SIGINT)
        self.assertEqual(self.check_screen(lambda pid, terminal: os.kill(pid, signal.SIGTERM)), -signal.SIGTERM)

    def test_metrics(self):
        work = self.work(behind=1)
        work.client.wait(work.running)
        text = self.scanctl("metrics")
        families = read_metrics(text)
        check_names(families)
        counted = {name: check_histogram(name, samples) for name, (kind, samples) in families.items() if kind == "histogram"}
        self.assertGreaterEqual(counted["scand_job_duration_seconds"], 1)
        self.assertEqual(counted["scand_job_queued_seconds"], counted["scand_job_duration_seconds"])
        self.assertGreater(counted["scand_chunk_kernel_seconds"], counted["scand_job_duration_seconds"])
        value = {name: next(iter(samples.values())) for name, (kind, samples) in families.items() if kind != "histogram"}
        self.assertGreaterEqual(value["scand_jobs_done_total"], 1)
        self.assertGreater(value["scand_device_busy_seconds_total"], 0)
        self.assertGreater(value["scand_uptime_seconds"], value["scand_device_busy_seconds_total"])
        self.assertEqual(value["scand_device_memory_used_bytes"], 256 << 20)
        stats = self.ask("stats")
        self.assertEqual(value["scand_pool_bytes"], stats["pool_bytes"])
        self.fails(64, "has one form, Prometheus' text", "metrics", "--json")

    def test_trace(self):
        work = self.work(behind=1)
        work.client.wait(work.running)
        last = self.ask("stats")["jobs_submitted"]
        trace = json.loads(self.scanctl("trace"))
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        (job,) = [event for event in events if event["name"] == f"job {last - 1}" and event["pid"]]
        chunks = [event for event in events if event["name"] == f"job {last - 1}" and not event["pid"]]
        self.assertEqual((job["args"]["rows"], job["args"]["outcome"]), (6553, "ok"))
        self.assertEqual(sum(chunk["args"]["rows"] for chunk in chunks), 6553)

        def within(inner, outer):
            return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]

        self.assertTrue(all(within(chunk, job) for chunk in chunks))
        for name in ("queued", "running"):
            (part,) = [event for event in events if event["name"] == name and event["tid"] == job["tid"]]
            self.assertTrue(within(part, job), part)
        kernels = [event for event in events if event["name"] == "kernel"]
        self.assertGreaterEqual(len(kernels), len(chunks))
        self.assertGreater(sum(kernel["dur"] for kernel in kernels), 0)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_metrics_by_promtool(self):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=self.scanctl("metrics"), capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Drain(unittest.TestCase):
    def test_drain(self):
        with Daemon(*ON_CPU) as daemon:
            command = [SCANCTL, "--socket", daemon.socket, "drain"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            daemon.wait()

    def test_screen_while_away(self):
        """top says that the daemon is away, and goes on when one is back."""
        with Daemon(*ON_CPU) as daemon:
            screen = Screen(daemon.socket, 24, 80, "-i", "0.2")
            try:
                self.assertTrue(screen.shows("up "))
                daemon.stop()
                self.assertTrue(screen.shows("the daemon is away, for .*: it is looked for"))
                self.assertTrue(screen.shows("scand .*  up "))  # what was shown last
                os.mkdir(daemon.folder)
                with Daemon(*ON_CPU, folder=daemon.folder):
                    self.assertTrue(screen.shows(r"\Ascand .*  up "))
                os.write(screen.terminal, b"q")
                self.assertEqual(screen.ended(), 0)
            finally:
                screen.close()


if __name__ == "__main__":
    daemons.main()

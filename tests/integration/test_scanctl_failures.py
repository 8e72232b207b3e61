#!/usr/bin/env python3
"""scanctl against a real daemon on the CPU: all ways to fail, and work that is lost on the way. scanctl_rig.py says how
to call it.
"""

import contextlib
import functools
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import scanctl_rig
from forms import f32, npy_header, packed, scanned, su_file
from scanctl_rig import Daemon, ScanctlTest, run


class Failures(ScanctlTest):
    def setUp(self):
        super().setUp()
        self.out = self.path("out")
        self.good = self.write("good.raw", packed([1.0] * 100))

    def test_usage(self):
        for words, message in (
            (("frob",), 'unknown command "frob"; give one of scan, reduce, run, operations, ping, devices, kernels, stats, jobs, clients, users, top'),
            (("--frob",), "unknown option --frob;"),
            (("scan", "-d"), "no input"),
            (("scan", self.good), "no output"),
            (("scan", self.good, "-o", ""), 'the output is ""; give a file'),
            (("scan", "", "-o", self.out), 'the input is ""; give a file'),
            (("scan", self.good, "-o", self.out, "--passes", "up"), '"up"; it may be forward, backward'),
            (("scan", self.good, "-o", self.out, "--axis", "1", "--shape", "100"), "it may be -1 to 0"),
            (("ping", "twice"), '"twice" is too much'),
            (("demo", "--traces", "0"), '--traces is "0"'),
            (("demo", "--traces", "1", "--traces", "2"), "--traces is given twice"),
            (("scan", self.good, "-o", self.out, "--passes", "forward", "--passes", "backward"), "--passes is given twice; give it once"),
            (("scan", self.good, "-o", self.out, "-o", self.out), "--output is given twice"),
            (("reduce", "--op", "sum", self.good, "--op", "max"), "--op is given twice"),
            (("demo", "twice"), '"twice" is too much: .* --help'),
        ):
            self.fail_with(64, message, *words)

    def test_coefficients(self):
        given = self.write("in.raw", packed([1.0] * 12))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", "3,4")
        affine = (*words, "--op", "affine")
        self.fail_with(64, "--op affine needs coefficients; give --coefficient NUMBER, or --coefficients FILE", *affine)
        self.fail_with(64, '--coefficient is "0"; it may be any number but 0', *affine, "--coefficient", "0")
        self.fail_with(64, '--coefficient is "2x"', *affine, "--coefficient", "2x")
        self.fail_with(64, "--coefficient is for --op affine, but --op is sum", *words, "--coefficient", "2")
        self.fail_with(64, "--coefficients is for --op affine, but --op is max", *words, "--op", "max", "--coefficients", given)
        self.fail_with(64, "are both there; give one", *affine, "--coefficients", given, "--coefficient", "2")
        self.fail_with(66, "none.npy: cannot be opened", *affine, "--coefficients", self.path("none.npy"))
        short = self.write("short.raw", packed([1.0] * 11))
        self.fail_with(65, "short.raw: is 44 bytes, .*3 x 4 samples of 4 bytes make 48", *affine, "--coefficients", short)
        other = self.write("other.npy", npy_header((4, 3)) + packed([1.0] * 12))
        self.fail_with(65, 'other.npy: holds 4 x 3 numbers for "coefficients", but .*in.raw holds 3 x 4 samples', *affine, "--coefficients", other)
        wide = self.write("wide.npy", npy_header((3, 4), "<f8") + packed([1.0] * 12, "d"))
        self.fail_with(65, "wide.npy: holds coefficients of type f64, but .* type f32; convert", *affine, "--coefficients", wide)
        fortran = self.write("fortran.npy", npy_header((3, 4), fortran=True) + packed([1.0] * 12))
        self.fail_with(65, "fortran.npy: is in Fortran order, but .*in.raw is in C order", *affine, "--coefficients", fortran)
        stdin = ("scan", "-", *affine[2:], "--coefficients", "-")
        self.fail_with(64, "input and --coefficients are both standard input", *stdin, input=b"")

    def test_words_missing(self):
        """scanctl, and commands that read files, say what they do when they get no words."""
        for words, message in (((), "usage: scanctl "), (("scan",), "usage: scanctl scan "), (("reduce",), "usage: scanctl reduce ")):
            result = run(*words)
            self.assertEqual((result.returncode, result.stdout), (64, b""))
            self.assertTrue(result.stderr.decode().startswith(message), result.stderr)

    def test_help_and_version(self):
        self.assertRegex(self.succeed("--version").decode(), r"\Ascanctl \d+\.\d+\.\d+\n\Z")
        for words in (("--help",), ("scan", "--help"), ("ping", "--help"), ("demo", "--help"), ("scan", "-o", "x", "--help")):
            self.assertRegex(self.succeed(*words).decode(), r"\Ausage: scanctl")
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        self.assertEqual(self.succeed("help", "scan"), self.succeed("scan", "--help"))
        self.fail_with(64, 'unknown command "frob"; give one of scan', "help", "frob")
        self.fail_with(64, "takes the name of one command, and got 2 words", "help", "scan", "run")

    def test_raw_shape(self):
        words = ("scan", self.good, "-o", self.out)
        self.fail_with(64, "400 bytes, 100 samples, of unknown shape; give --shape 100", *words)
        self.fail_with(64, "not the 3 x 50 of --shape; what would fit: --shape 2,50", *words, "--shape", "3,50")
        odd = self.write("odd.raw", b"x" * 401)
        self.fail_with(65, "401 bytes, which is no whole number", "scan", odd, "-o", self.out, "--shape", "100")
        self.fail_with(65, "is empty", "scan", self.write("none.raw", b""), "-o", self.out, "--shape", "1")

    def test_input_missing(self):
        self.fail_with(66, "no.raw: cannot be opened: No such file", "scan", self.path("no.raw"), "-o", self.out)
        self.fail_with(66, "is a folder", "scan", self.folder, "-o", self.out)

    def test_few_descriptors(self):
        """Wherever there is none left, the line says what helps."""
        for files in range(4, 30):
            limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files))
            result = run("scan", self.good, "--shape", 100, "-p", "forward", "-o", self.out, preexec_fn=limit)
            if not result.returncode:
                break
            self.assertRegex(result.stderr.decode(), r"\Ascanctl: [^\n]+; raise \"?ulimit -n[^\n]+\n\Z")
            self.assertEqual(self.files(), ["good.raw"])
        self.assertIn(files, range(8, 29))

    def test_npy_cut(self):
        whole = npy_header((10, 10)) + packed([1.0] * 100)
        for length in (0, 5, 9, 60, 128, 300, len(whole) - 1):
            cut = self.write("cut.npy", whole[:length])
            self.fail_with(65, "cut short", "scan", cut, "-o", self.out)
        longer = self.write("long.npy", whole + b"x")
        self.fail_with(65, "is 529 bytes, .* make 528; the file is too long", "scan", longer, "-o", self.out)

    def test_npy_refused(self):
        for header, message in (
            (npy_header((10,), "<c8"), "dtype '<c8'; .* can be scanned: these are complex numbers: save their .real and .imag"),
            (npy_header((10,), "|O"), "dtype '|O'; .* these are no numbers"),
            (npy_header((10,), "|b1"), "dtype '|b1'; .* astype"),
            (npy_header((10,)).replace(b"'<f4'", b"[('x', '<f4'), ('y', '<f4')]"), "has a dtype of several fields; .* a["),
            (npy_header((1, 1, 1, 1, 1)), "rank 5"),
            (npy_header(()), "rank 0"),
        ):
            pattern = re.escape(message).replace(re.escape(".*"), ".*")
            self.fail_with(65, pattern, "scan", self.write("x.npy", header + bytes(80)), "-o", self.out)

    def test_binary_to_a_terminal(self):
        leader, terminal = os.openpty()
        words = ("scan", self.good, "--shape", "100", "-o", "-")
        result = subprocess.run(
            [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, *words], stdout=terminal, stderr=subprocess.PIPE, timeout=60
        )
        os.close(terminal)
        self.assertEqual(result.returncode, 64)
        self.assertRegex(result.stderr.decode(), "standard output is a terminal, and samples are binary; redirect it, or give -o FILE")
        with self.assertRaises(OSError):  # nothing was written, and nobody has it open any more
            os.read(leader, 1)
        os.close(leader)

    def test_binary_from_a_terminal(self):
        leader, terminal = os.openpty()
        text = "standard input is a terminal, and samples are binary; redirect it, or give the name of a file"
        self.fail_with(64, text, "scan", "-", "--shape", "100", "-o", self.out, stdin=terminal)
        os.close(terminal)
        os.close(leader)

    def test_text_of_files_is_clean(self):
        """Text from a file reaches no terminal as it is."""
        odd = self.write("odd.npy", npy_header((10,), "\x1b[2J\x07") + bytes(80))
        self.fail_with(65, re.escape("dtype '?[2J?'"), "scan", odd, "-o", self.out)
        self.fail_with(66, r"a\?\?\?ypn: cannot be opened", "scan", self.path("a\u202eypn"), "-o", self.out)

    def test_su_refused(self):
        rows = [[1.0] * 100] * 5
        cut = self.write("cut.su", su_file(rows, True)[:-1])
        self.fail_with(65, "ns = 100 .*--byte-order", "scan", cut, "-o", self.out)
        mixed = bytearray(su_file(rows, True))
        mixed[3 * 640 + 115] = 99
        path = self.write("mixed.su", mixed)
        self.fail_with(65, "--byte-order", "scan", path, "-o", self.out)
        text = "trace 4 .* has 99 samples, the first 100"
        self.fail_with(65, text, "scan", path, "-o", self.out, "--byte-order", "big")
        self.fail_with(65, "is 0 bytes", "scan", self.write("none.su", b""), "-o", self.out)
        whole = self.write("whole.su", su_file(rows, True))
        self.fail_with(64, "f64, but SU files hold f32", "scan", whole, "-o", self.out, "--output-dtype", "f64")
        self.fail_with(64, "says its own shape and type; leave out --shape, or give --format raw", "scan", whole, "-o", self.out, "--shape", "5")

    def test_no_daemon(self):
        words = ("scan", self.good, "-o", self.out, "--shape", 100)
        for path in (self.path("nowhere"), self.good):
            for command in (words, ("ping",), ("devices",), ("stats",), ("demo",)):
                self.fail_with(69, re.escape(path), *command, socket_path=path)

    def test_another_daemon(self):
        path = self.path("web")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", path, "ping"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with listener.accept()[0] as connection:
                connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                error = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 70, error)
        self.assertRegex(error, re.escape(path) + " .*: make sure that it is scand\n")

    def test_output_refused(self):
        words = ("scan", self.good, "--shape", 100, "-o")
        self.fail_with(73, "No such file or directory", *words, self.path("no/out"))
        self.fail_with(74, "No space left on device; free some space", *words, "/dev/full")

    def test_standard_output_full(self):
        with open("/dev/full", "wb") as full:
            command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "devices"]
            result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 74)

    def test_standard_descriptors_closed(self):
        """No file of the run gets the number of a closed standard descriptor."""
        given = self.write("in.npy", npy_header((3,)) + packed([1.0, 2.0, 3.0]))
        words = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "--shape", "3", "-", "-o", self.out]
        closed = lambda *fds: lambda: [os.close(fd) for fd in fds]
        result = subprocess.run(words, preexec_fn=closed(0), stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 74)
        self.assertRegex(result.stderr.decode(), "standard input: reading fails at byte 0")
        words[4:] = ["--json", given, "-o", self.out]
        result = subprocess.run(words, preexec_fn=closed(0, 1, 2), timeout=60)
        self.assertEqual(result.returncode, 74)
        self.assertEqual(self.read("out"), npy_header((3,)) + packed([1.0, 3.0, 6.0]))

    def test_disk_full(self):
        mounted = self.path("small")
        os.mkdir(mounted)
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted]
        if os.geteuid() or not shutil.which("mount") or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(subprocess.run, ["umount", mounted])
        large = self.write("large.raw", bytes(2 << 20))
        out = os.path.join(mounted, "out")
        self.fail_with(74, "out: writing fails after .* No space left", "scan", large, "--shape", "1,524288", "-o", out)
        self.assertEqual(os.listdir(mounted), [])

    def drained(self, target):
        """Drains a daemon of its own in the middle of a pipe, of which half has come. Returns the daemon, scanctl, and a thread
        that brings the other half and takes standard output."""
        daemon = scanctl_rig.Daemon("--pool", "16M")
        self.addCleanup(daemon.stop)
        words = ["--socket", daemon.socket, "scan", "--shape", "-1,1000", "--format", "raw", "-", "-o", target]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([scanctl_rig.ARGUMENTS.scanctl, *words], **pipes)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        reader = threading.Thread(target=lambda taken: taken.append(process.stdout.read()), args=(written := [],))
        reader.start()
        rows = packed([1.0] * 1000) * 6000
        process.stdin.write(rows)
        process.stdin.flush()
        while not (jobs := json.loads(run("jobs", "--json", socket_path=daemon.socket).stdout)) or jobs[0]["rows_done"] == 0:
            time.sleep(0.01)
        self.assertEqual(run("drain", socket_path=daemon.socket).returncode, 0)

        def bring():
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(rows)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            reader.join(60)

        writer = threading.Thread(target=bring)
        writer.start()
        self.assertEqual(daemon.process.wait(60), 0)
        return daemon, process, writer, written

    def test_drain_in_the_middle(self):
        """No other daemon comes: it is said why, and what there was stays. To standard output goes what was done."""
        paths = {target: target if target == "-" else self.write(target, b"as it was") for target in ("out.raw", "-")}
        runs = [(target, *self.drained(path)) for target, path in paths.items()]
        for target, _, process, writer, written in runs:
            with self.subTest(target):
                text = process.stderr.read().decode()
                writer.join(60)
                self.assertEqual(process.wait(60), 75, text)
                outcome = "rows were done and written" if target == "-" else "rows were done, and .*/out.raw is not written"
                self.assertRegex(text, r"\(draining\): the daemon stopped without taking the job, and no daemon came back at .*; [\d,]+ " + outcome + r"\n\Z")
                done = int(re.search(r"([\d,]+) rows were done", text).group(1).replace(",", ""))
                if target == "-":
                    self.assertEqual(written[0], packed(range(1, 1001)) * done)
                else:
                    self.assertEqual((self.files(), self.read(target)), (["good.raw", target], b"as it was"))

    def test_drain_before_another_daemon(self):
        """As at an upgrade: what the daemon did not take is the next one's."""
        daemon, process, writer, written = self.drained("-")
        command = [scanctl_rig.ARGUMENTS.scand, "--device", "cpu", "--foreground", "--socket", daemon.socket, "--pool", "16M"]
        other = subprocess.Popen(command, stdout=daemon.log, stderr=daemon.log)
        self.addCleanup(other.wait)
        self.addCleanup(other.terminate)
        text = process.stderr.read().decode()
        writer.join(60)
        self.assertEqual((process.wait(60), text), (0, ""))
        self.assertEqual(written[0], packed(range(1, 1001)) * 12000)

    def large(self):
        """Writes 24 rows that cannot be in batches, the first of ones, the others of zeros: more than the pool of 64 MiB."""
        row = packed([1.0]) * (1 << 20)
        with open(self.path("large.raw"), "wb") as file:
            file.write(row)
            file.truncate(24 * len(row))
        return row * 24, ("scan", self.path("large.raw"), "-o", self.out, "--shape", "24,1048576", "--axis", 0)

    def test_larger_than_the_pool(self):
        ones, words = self.large()
        self.succeed(*words)
        self.assertTrue(self.read("out") == ones)

    def test_larger_than_the_quota(self):
        daemon = Daemon("--quota-host-memory", "70M")
        self.addCleanup(daemon.stop)
        text = 'the whole array along this axis needs 100,663,296 bytes of memory .*buffer.import: .*"host-memory" is 73400320; that is never granted'
        self.fail_with(77, text, *self.large()[1], socket_path=daemon.socket)

    def test_quota_of_jobs(self):
        """A file in several batches has two jobs at a time where it may, and else waits for its own."""
        daemon = Daemon("--quota-jobs", "1")
        self.addCleanup(daemon.stop)
        rows = packed([1.0] * 1024) * (48 << 8)
        self.succeed("scan", self.write("in.raw", rows), "-o", self.out, "--shape", "-1,1024", socket_path=daemon.socket)
        self.assertTrue(self.read("out") == packed(range(1, 1025)) * (48 << 8))

    def test_no_jobs_at_all(self):
        daemon = Daemon("--quota-jobs", "0")
        self.addCleanup(daemon.stop)
        path = self.write("in.raw", bytes(400))
        text = 'quota "jobs" is 0; wait until more is allowed, or ask whoever runs the daemon'
        self.fail_with(77, text, "scan", path, "-o", self.out, "--shape", "10,10", socket_path=daemon.socket)

    def test_no_connections_at_all(self):
        """A user who may have none is told so by each command, with the code of what makes no sense to try again."""
        path = self.write("scand.conf", b"[quota]\nconnections = 1\n")
        daemon = Daemon("--config", path)
        self.addCleanup(daemon.stop)
        self.succeed("ping", socket_path=daemon.socket)
        self.write("scand.conf", b"[quota]\nconnections = 0\n")
        daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + scanctl_rig.TIMEOUT_S
        while "settings were read again" not in daemon.log_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.fail_with(77, 'connect: user .* its quota "connections" is 0; .*ask whoever runs the daemon', "ping", socket_path=daemon.socket)


class Losses(ScanctlTest):
    """Each worker loses its device at a certain chunk: batches in place are lost, and are read and submitted again."""

    def daemon(self, *options):
        daemon = Daemon(*options)
        self.addCleanup(daemon.stop)
        return daemon

    def losses(self, daemon):
        return daemon.log_text().count("the device is lost")

    def check_repeated(self, *options):
        """Three batches. Big-endian, so that samples swapped twice are seen; the output takes the input's place."""
        daemon = self.daemon(*options)
        rows, samples = 2400, 16384
        row = [float(j % 7 - 3) for j in range(samples)]
        trace, expected = packed(row, big=True), packed(scanned(row, ("forward",)), big=True)
        self.write("x.raw", trace * rows)
        words = ("--shape", "%d,%d" % (rows, samples), "--byte-order", "big", "-o", self.path("x.raw"), "--json")
        report = json.loads(self.succeed("scan", self.path("x.raw"), *words, socket_path=daemon.socket))
        self.assertEqual(report["jobs"], 3)
        self.assertGreater(self.losses(daemon), 0)
        self.assertTrue(self.read("x.raw") == expected * rows)

    def test_lost_batch_is_repeated(self):
        self.check_repeated("--fail-chunk", "5")

    def test_two_batches_at_once(self):
        self.check_repeated("--fail-chunk", "7", "--pool", "256M")

    def test_coefficients_are_read_again(self):
        daemon = self.daemon("--fail-chunk", "7")
        rows, samples = 1400, 16384
        x, a = [float(j % 7 - 3) for j in range(samples)], [float(j % 3 - 1) for j in range(samples)]
        expected = list(x)
        for j in range(1, samples):
            expected[j] = a[j] * expected[j - 1] + x[j]
        given, factors = self.write("x.raw", packed(x) * rows), self.write("a.raw", packed(a) * rows)
        words = ("scan", given, "--shape", f"{rows},{samples}", "-o", self.path("y.raw"), "--json")
        report = json.loads(self.succeed(*words, "--op", "affine", "--coefficients", factors, socket_path=daemon.socket))
        self.assertGreater(report["jobs"], 1)
        self.assertGreater(self.losses(daemon), 0)
        self.assertTrue(self.read("y.raw") == packed(expected) * rows)

    def test_lost_each_time(self):
        given = self.write("in.raw", packed([1.0] * 100))
        cases = (("f32", 3, "each of the 3 times .* from byte 0 on; .* try again later"), ("f64", 5, "so it did each time"))
        for dtype, losses, text in cases:
            daemon = self.daemon("--fail-chunk", "1")
            words = ("scan", given, "--shape", 100, "-o", self.path("out"), "--output-dtype", dtype)
            self.fail_with(75, text, *words, socket_path=daemon.socket)
            self.assertEqual(self.losses(daemon), losses)

    def test_pipe_cannot_be_repeated(self):
        daemon = self.daemon("--fail-chunk", "1")
        words = ("scan", "-", "--shape", 100, "-o", self.path("out"))
        self.fail_with(75, "from a pipe; run it again", *words, socket_path=daemon.socket, input=packed([1.0] * 100))
        self.assertEqual(self.losses(daemon), 1)


if __name__ == "__main__":
    scanctl_rig.main()

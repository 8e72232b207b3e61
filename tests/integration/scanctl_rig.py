"""The rig of tests of scanctl: a daemon on the CPU, runs of scanctl, and checks of what they print.

    test_scanctl*.py --scand PATH --scanctl PATH [--demo PATH] [--data FOLDER] [--sanitized] [unittest's arguments]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from wire import TIMEOUT_S

ARGUMENTS = None  # the command line
DAEMON = None  # the running Daemon


class Daemon:
    """A daemon on the CPU with a small pool, so that files soon need several batches."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="scanctl")
        self.socket = os.path.join(self.folder, "socket")
        self.log = open(os.path.join(self.folder, "log"), "w+")
        command = [ARGUMENTS.scand, "--device", "cpu", "--foreground", "--socket", self.socket, "--pool", "64M"]
        self.process = subprocess.Popen([*command, *options], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + TIMEOUT_S
        while "ready at" not in self.log_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                sys.exit("the daemon does not start:\n" + self.log_text())
            time.sleep(0.01)

    def log_text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit("the daemon does not stop:\n" + self.log_text())
        self.log.close()
        shutil.rmtree(self.folder)


def run(*words, socket_path=None, **options):
    command = [ARGUMENTS.scanctl, "--socket", socket_path or DAEMON.socket, *map(str, words)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **options)


class ScanctlTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scanctl files ")  # names of users' files have spaces
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def files(self):
        return sorted(os.listdir(self.folder))

    def succeed(self, *words, **options):
        result = run(*words, **options)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return result.stdout

    def fail_with(self, code, message, *words, **options):
        """The exit code, one line that says why, and the output's folder as it was."""
        before = self.files()
        result = run(*words, **options)
        text = result.stderr.decode()
        self.assertEqual(result.returncode, code, text)
        self.assertRegex(text, message)
        self.assertRegex(text, r"\Ascanctl: [^\n]+\n\Z")
        self.assertEqual(self.files(), before)
        return text

    def assert_near(self, found, expected, tolerance=1e-6):
        """Within a share of the largest value."""
        self.assertEqual(len(found), len(expected))
        bound = tolerance * max(map(abs, expected))
        worst = max(abs(a - b) for a, b in zip(found, expected))
        self.assertLessEqual(worst, bound)

    def assert_rounded(self, found, expected):
        """All but about one in a million are correctly rounded: for a few thousand values, all but one."""
        wrong = sum(a != b for a, b in zip(found, expected))
        self.assertLessEqual(wrong, 1 + len(expected) // 100000)


def main():
    global ARGUMENTS, DAEMON
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # a shell's background jobs ignore them, and so would scanctl
    parser = argparse.ArgumentParser()
    parser.add_argument("--scand", required=True)
    parser.add_argument("--scanctl", required=True)
    parser.add_argument("--demo")
    parser.add_argument("--data", default=os.path.join(os.path.dirname(__file__), "../../../shared/data"))
    parser.add_argument("--sanitized", action="store_true")
    ARGUMENTS, rest = parser.parse_known_args()
    DAEMON = Daemon()
    try:
        program = unittest.main(argv=sys.argv[:1] + rest, exit=False, verbosity=1)
    finally:
        DAEMON.stop()
    for test, reason in program.result.skipped:
        print("skipped:", test.id(), reason)
    sys.exit(0 if program.result.wasSuccessful() else 1)

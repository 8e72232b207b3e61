#!/usr/bin/env python3
"""scanctl without a daemon: the same files as with one, and who is told of it. scanctl_rig.py says how to call it."""

import functools
import os
import random
import resource
import subprocess

import scanctl_rig
from forms import f32, npy_header, packed
from scanctl_rig import ScanctlTest

COMMANDS = (
    ("scan", "--passes", "forward,backward", "--demean"),
    ("scan", "--op", "affine", "--coefficient", "0.5", "--accumulator", "f2"),
    ("reduce", "--op", "norm"),
    ("run", "triangle half-width=5 | diff kind=first", "--axis", "0"),
)


class Local(ScanctlTest):
    SHAPE = (600, 700)

    def setUp(self):
        super().setUp()
        generator = random.Random(7)
        values = [f32(generator.random() - 0.25) for _ in range(self.SHAPE[0] * self.SHAPE[1])]
        self.npy = self.write("in.npy", npy_header(self.SHAPE) + packed(values))

    def run_alone(self, *words, fallback=None, **options):
        """Runs scanctl where no daemon is."""
        environment = {name: value for name, value in os.environ.items() if name != "SCAND_FALLBACK"}
        environment["SCAND_SOCKET"] = self.path("no-daemon")
        if fallback is not None:
            environment["SCAND_FALLBACK"] = fallback
        command = [scanctl_rig.ARGUMENTS.scanctl, *words]
        return subprocess.run(command, capture_output=True, timeout=120, env=environment, **options)

    def check_alone(self, stderr, *words, fallback=None):
        result = self.run_alone(*words, fallback=fallback)
        self.assertEqual((result.returncode, result.stderr), (0, stderr))

    def test_same_files(self):
        for number, (command, *words) in enumerate(COMMANDS):
            words += [self.npy, "-o"]
            theirs, option, variable = (self.path(f"{name}{number}.npy") for name in ("theirs", "option", "variable"))
            self.succeed(command, *words, theirs)
            self.check_alone(b"", "--local", command, *words, option)
            self.check_alone(b"", command, "--local", *words, option)
            self.check_alone(b"scanctl: no daemon answers: computing in this process\n", command, *words, variable, fallback="cpu")
            self.assertEqual(self.read(os.path.basename(option)), self.read(os.path.basename(theirs)))
            self.assertEqual(self.read(os.path.basename(variable)), self.read(os.path.basename(theirs)))

    def test_a_daemon_that_answers_computes(self):
        environment = {**os.environ, "SCAND_FALLBACK": "cpu"}
        self.succeed("scan", self.npy, "-o", self.path("out.npy"), env=environment)

    def test_demo(self):
        self.check_alone(b"", "--local", "demo", "--traces", "50", "--samples", "200")

    def test_lists(self):
        """What the commands that compute can do is told without a daemon, too; these are lists of the same release."""
        for command in "operations", "kernels":
            theirs = self.succeed(command, "--json")
            self.assertEqual(self.run_alone("--local", command, "--json").stdout, theirs)
            self.assertEqual(self.run_alone(command, "--json", "--local").stdout, theirs)
            result = self.run_alone(command, "--json", fallback="cpu")
            self.assertEqual((result.stdout, result.stderr), (theirs, b"scanctl: no daemon answers: computing in this process\n"))

    def test_refused(self):
        for code, message, fallback, *words in (
            (64, b"--local is for commands that compute, operations and kernels; scanctl drain asks a daemon", None, "--local", "drain"),
            (64, b"--local needs no daemon, and --socket names one", None, "scan", "--local", "--socket", "x", self.npy, "-o", "-"),
            (64, b'SCAND_FALLBACK is "gpu": allowed is "cpu"', "gpu", "scan", self.npy, "-o", "-"),
            (69, b"no daemon at", None, "scan", self.npy, "-o", "-"),
            (69, b"no daemon at", "", "scan", self.npy, "-o", "-"),
            (69, b"no daemon at", "cpu", "ping"),
            (69, b"no daemon at", "cpu", "drain"),
        ):
            result = self.run_alone(*words, fallback=fallback)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(message, result.stderr)

    def test_too_many_files(self):
        """A limit of open files is named wherever it stops scanctl, and nobody is sent to install a library that is there."""
        words, refused = ("scan", self.npy, "-o", self.path("limited.npy")), 0
        for files in range(4, 20):
            limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files))
            for given, fallback in (("--local", *words), None), (words, "cpu"):
                result = self.run_alone(*given, fallback=fallback, preexec_fn=limit)
                if result.returncode and not result.stderr.startswith(b"/"):  # as of the loader, before scanctl begins
                    refused += 1
                    self.assertRegex(result.stderr, b"scanctl: .*[Tt]oo many open files.*ulimit -n")
                    self.assertNotIn(b"install", result.stderr)
        self.assertGreater(refused, 3)
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    scanctl_rig.main()

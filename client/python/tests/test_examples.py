#!/usr/bin/env python3
"""Examples run as they are, with a daemon whose pool is smaller than their data, and which has two jobs of a user at a
time."""

import glob
import os
import subprocess
import sys

from rig import HERE, PackageTest, main


class Examples(PackageTest):
    options = ("--pool", "1M", "--quota-jobs", "2")

    def run_example(self, name):
        program = os.path.join(HERE, "..", "examples", name)
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
        print(done.stdout, end="")
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_all_are_here(self):
        there = {os.path.basename(path) for path in glob.glob(os.path.join(HERE, "..", "examples", "*.py"))}
        self.assertEqual(there, {"double_integral.py", "event_loop.py", "dask_survey.py"})

    def test_double_integral(self):
        self.run_example("double_integral.py")

    def test_event_loop(self):
        self.run_example("event_loop.py")

    def test_dask_survey(self):
        self.run_example("dask_survey.py")


if __name__ == "__main__":
    main()

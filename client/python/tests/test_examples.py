#!/usr/bin/env python3
"""Examples run as they are, with a daemon whose pool is smaller than their data, and which has two jobs of a user at a
time. Those that need another package are skipped where it is missing."""

import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

from rig import HERE, PackageTest, main

FOLDER = os.path.join(HERE, "..", "examples")
# Threads of a BLAS that wait by looping keep the daemon's from the processor. And Open MPI refuses root, and many ranks.
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Examples(PackageTest):
    options = ("--pool", "1M", "--quota-jobs", "2")

    def run_example(self, name, *arguments, before=()):
        command = [*before, sys.executable, os.path.join(FOLDER, name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=250, env={**os.environ, **ENVIRONMENT})
        print(done.stdout, end="")
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_all_are_here(self):
        there = {os.path.splitext(os.path.basename(path))[0] for path in glob.glob(os.path.join(FOLDER, "*.py"))}
        self.assertEqual(there, {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")} - {"all_are_here"})

    def test_double_integral(self):
        self.run_example("double_integral.py")

    def test_event_loop(self):
        self.run_example("event_loop.py")

    def test_dask_survey(self):
        self.run_example("dask_survey.py")

    def test_dask_processes(self):
        self.run_example("dask_processes.py", "64")

    def test_pylops_inversion(self):
        self.run_example("pylops_inversion.py")

    def test_kirchhoff(self):
        if not importlib.util.find_spec("matplotlib"):
            return self.run_example("kirchhoff.py")
        with tempfile.TemporaryDirectory(prefix="scand") as folder:
            picture = os.path.join(folder, "images.png")
            self.run_example("kirchhoff.py", picture)
            with open(picture, "rb") as file:
                self.assertEqual(file.read(4), b"\x89PNG")

    def test_torch_tensor(self):
        self.run_example("torch_tensor.py")

    def test_mpi_traces(self):
        """The example runs by four ranks, and by itself."""
        self.run_example("mpi_traces.py")
        beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
        mpiexec = beside if os.path.exists(beside) else shutil.which("mpiexec")
        if mpiexec is None:
            self.skipTest("there is no mpiexec here")
        self.run_example("mpi_traces.py", before=(mpiexec, "-n", "4"))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times of the Python package beside NumPy's, and beside those of libscand in C: the double integral of 80 MB, a small
job, the import. The daemon is the one at $SCAND_SOCKET.

    python.py BUILD/tests/bench/small-job

Take a Python with the wheel installed: modules that are compiled each time make importing them slow.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np

import scand

ROWS, LENGTH = 10_000, 2_000  # 80 MB of f32
RUNS = 3
SMALL_RUNS = 1500
IMPORT_RUNS = 7


def numpy_double_integral(x):
    forward = np.cumsum(x, axis=1, dtype=np.float64)
    return np.cumsum(forward[:, ::-1], axis=1)[:, ::-1].astype(np.float32)


def milliseconds(run):
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3


def double_integrals():
    """Best and median of runs in turns, so that all have the same neighbours on the machine."""
    x = np.random.default_rng(1).standard_normal((ROWS, LENGTH)).astype(np.float32)
    shared, out, ordinary_out = scand.asarray(x), scand.empty(x.shape, x.dtype), np.zeros_like(x)
    ways = {
        "NumPy, f64 sums": lambda: numpy_double_integral(x),
        "scand, ordinary array": lambda: scand.scan(x, "forward,backward"),
        "scand, ordinary array and out": lambda: scand.scan(x, "forward,backward", out=ordinary_out),
        "scand, shared array and out": lambda: scand.scan(shared, "forward,backward", out=out),
    }
    times = {name: [] for name in ways}
    for _ in range(RUNS):
        for name, run in ways.items():
            times[name].append(milliseconds(run))
    return times


def small_jobs(program):
    x = np.ones(1000, np.float32)
    shared, out = scand.asarray(x), scand.empty(1000, np.float32)
    ways = {
        "scand.cumsum, shared array and out": lambda: scand.cumsum(shared, out=out),
        "scand.cumsum, ordinary array": lambda: scand.cumsum(x),
    }
    times = {"libscand in C": [float(line) / 1e3 for line in subprocess.check_output([program], text=True).split()]}
    for name, run in ways.items():
        times[name] = [milliseconds(run) for _ in range(SMALL_RUNS)]
    return times


def imports():
    times = {"import numpy": [], "import numpy, scand": []}
    for _ in range(IMPORT_RUNS):
        for line, all_times in times.items():
            all_times.append(milliseconds(lambda line=line: subprocess.run([sys.executable, "-c", line], check=True)))
    return times


def tell(title, times):
    print(f"\n{title:44s} {'best ms':>10s} {'median ms':>10s} {'ratio':>8s}")
    first = None
    for name, values in times.items():
        best = min(values)
        first = first or best
        print(f"{name:44s} {best:10.3f} {statistics.median(values):10.3f} {best / first:8.3f}")


def main():
    server = scand.default_client().server_name()
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {server}")
    tell(f"double integral, {ROWS} x {LENGTH} f32", double_integrals())
    tell("a row of 1,000 samples, until the answer is here", small_jobs(sys.argv[1]))
    tell("a process that only imports", imports())


if __name__ == "__main__":
    main()

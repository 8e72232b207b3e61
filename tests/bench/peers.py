#!/usr/bin/env python3
"""Times of other libraries for the job of scand-bench's first row: 10,000 rows of 10,000 f32, summed forward and then
backward.

peers.py [--cub PROGRAM]... Each library runs in a process of its own; one that is not installed is named, and the others
go on. CUB is what nvcc makes of peer_cub.cu, or each PROGRAM that was made of it elsewhere, with a newer CUB for one.
Medians of 21; what is compiled at run time is compiled before. The share is of a device copy's speed, as in the table of
scand-bench kernels, which has ours; the error is that of some rows, as a share of their largest value.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROWS, LENGTH = 10_000, 10_000
RUNS, WARM_RUNS = 21, 3
CHECKED_ROWS = 4


def error_of(x, y):
    """Returns the error of the first rows, given as NumPy arrays of f32."""
    import numpy

    exact = numpy.cumsum(x.astype(numpy.float64), axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
    return float(numpy.abs(exact - y).max() / numpy.abs(exact).max())


def tell(name, ms, error=""):
    print(name, f"{ms:.4f}", error and f"{error:.1e}", sep="\t", flush=True)


def torch_ms(torch, run):
    times = []
    for i in range(-WARM_RUNS, RUNS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        if i >= 0:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def measure_torch():
    import torch

    if not torch.cuda.is_available():
        raise ImportError("torch finds no GPU")
    x = torch.rand(ROWS, LENGTH, device="cuda") * 2 - 1
    y = torch.empty_like(x)
    tell("device copy", torch_ms(torch, lambda: y.copy_(x)))

    def both(x):
        return x.cumsum(1).flip(1).cumsum(1).flip(1)

    ways = [
        ("eager", both),
        ("compile", torch.compile(both)),
        ("compile, max-autotune", torch.compile(both, mode="max-autotune-no-cudagraphs")),
    ]
    for name, way in ways:
        try:
            result = way(x)
            error = error_of(x[:CHECKED_ROWS].cpu().numpy(), result[:CHECKED_ROWS].cpu().numpy())
            del result
            tell(f"torch {torch.__version__} {name}", torch_ms(torch, lambda: way(x)), error)
        except Exception as problem:  # what a compiler lacks on this machine is no reason to leave the others out
            print(f"peers.py: torch {name}: {str(problem).strip().splitlines()[0]}", file=sys.stderr)


def measure_jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("jax finds no GPU")
    together = 10  # calls between two looks at the clock: starting one is not counted
    both = jax.jit(lambda x: jax.lax.cumsum(jax.lax.cumsum(x, axis=1), axis=1, reverse=True))
    x = jax.random.uniform(jax.random.PRNGKey(1), (ROWS, LENGTH), minval=-1, maxval=1)
    error = error_of(jax.device_get(x[:CHECKED_ROWS]), jax.device_get(both(x)[:CHECKED_ROWS]))
    times = []
    for i in range(-WARM_RUNS, RUNS):
        start = time.perf_counter()
        for _ in range(together):
            y = both(x)
        y.block_until_ready()
        if i >= 0:
            times.append((time.perf_counter() - start) * 1e3 / together)
    tell(f"jax {jax.__version__} jit", statistics.median(times), error)


def measure_cub(program):
    with tempfile.TemporaryDirectory() as folder:
        if not program:
            nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
            if not os.path.exists(nvcc):
                raise ImportError("nvcc is not installed")
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_cub.cu")
            program = os.path.join(folder, "peer_cub")
            subprocess.run([nvcc, "-O3", "-std=c++17", "-arch=native", "-o", program, source], check=True)
        subprocess.run([program, str(ROWS), str(LENGTH), str(RUNS)], check=True)


def rows_of(arguments):
    """Returns what a measurement in a process of its own tells, as lists of words."""
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    return [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]


def measure_one(name, cub):
    try:
        {"torch": measure_torch, "jax": measure_jax, "cub": lambda: measure_cub(cub)}[name]()
    except (ImportError, OSError, subprocess.CalledProcessError) as problem:
        print(f"peers.py: {name} is left out: {problem}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="The sums of scand-bench's first row by other libraries.")
    parser.add_argument("--cub", action="append", metavar="PROGRAM", help="made of peer_cub.cu")
    parser.add_argument("--measure", choices=["torch", "jax", "cub"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure_one(arguments.measure, arguments.cub[0] if arguments.cub else None)
        return
    rows = []
    for program in arguments.cub or [None]:
        rows += rows_of(["--measure", "cub", *(["--cub", program] if program else [])])
    for name in ("torch", "jax"):
        rows += rows_of(["--measure", name])
    copies = [float(row[1]) for row in rows if row[0] == "device copy"]
    peers = [row for row in rows if row[0] != "device copy"]
    if not peers:
        print("peers.py: nothing could be measured here", file=sys.stderr)
        sys.exit(77)
    print(f"{'what':<50}{'ms':>9}{'share':>8}{'error':>10}")
    if copies:
        print(f"{'device copy of 400 MB':<50}{min(copies):>9.3f}")
    for name, ms, error in sorted(peers, key=lambda row: float(row[1])):
        share = f"{min(copies) / float(ms):.3f}" if copies else ""
        print(f"{name:<50}{float(ms):>9.3f}{share:>8}{error:>10}")


main()

#!/usr/bin/env python3
"""Operations in tiles beside what their users take today: Madagascar's triangle in C, SciPy's box, NumPy's convolution and
its addition by an index.

    steps.py BUILD/tests/bench/libstep-peers.so

Both compute the same rows by turns on one thread, so that neighbours on the machine hold up both; the clock is that of
the thread. Ratios are of the best and of the median of each; a share is that of the multiplications and additions that
the core does at most, measured by the same turns.
"""

import ctypes
import os
import statistics
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: it computes on one thread, too

import numpy as np
import scipy
from scipy.ndimage import uniform_filter1d

ROWS, LENGTH = 50, 10_000
BINS = 500
TURNS = 101
FMA_COUNT = 200_000
FMA_VECTORS = 10


def load(path):
    library = ctypes.CDLL(os.path.abspath(path))
    library.step_peers_ours.restype = ctypes.c_bool
    library.step_peers_fma.restype = ctypes.c_bool
    return library


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def ours(library, name, x, further, y):
    words = ctypes.c_char_p(name.encode()), ctypes.c_uint64(x.shape[0]), ctypes.c_uint64(x.shape[1])
    if not library.step_peers_ours(*words, address(x), address(further), address(y)):
        sys.exit(f"steps.py: step_cases.c has no case {name}")


def triangle_peer(library, x, y, width):
    extended = np.empty(x.shape[1] + 2 * width, np.float32)
    sizes = ctypes.c_uint64(x.shape[0]), ctypes.c_uint64(x.shape[1]), ctypes.c_uint64(width)
    return lambda: library.step_peers_triangle(*sizes, address(x), address(extended), address(y))


def box_peer(x, y, width):
    return lambda: uniform_filter1d(x, 2 * width - 1, axis=1, output=y, mode="reflect")


def convolve_peer(x, y, taps):
    def run():
        for row, to in zip(x, y):
            to[:] = np.convolve(row, taps, "same")

    return run


def thread_ms(run):
    begin = time.thread_time()
    run()
    return (time.thread_time() - begin) * 1e3


def turns(*runs):
    times = [[thread_ms(run) for run in runs] for _ in range(TURNS)]
    return [list(column) for column in zip(*times)]


def close(name, y, peer, tolerance):
    error = np.abs(y.astype(np.float64) - peer).max()
    if not error <= tolerance:
        sys.exit(f"steps.py: {name} is {error} from its peer's result, which is more than {tolerance}")


def tell(name, against, times, peer_times, share=""):
    best, median = min(peer_times) / min(times), statistics.median(peer_times) / statistics.median(times)
    print(f"{name:<28}{against:<28}{min(times):>8.3f}{min(peer_times):>9.3f}{best:>7.2f}{median:>8.2f}  {share}", flush=True)


def measure_filter(library, shape, width):
    x = np.random.default_rng(1).standard_normal((ROWS, LENGTH)).astype(np.float32)
    y, peer_y, name = np.empty_like(x), np.empty_like(x), f"{shape} {width}"
    peer = triangle_peer(library, x, peer_y, width) if shape == "triangle" else box_peer(x, peer_y, width)
    times, peer_times = turns(lambda: ours(library, name, x, x, y), peer)
    close(name, y, peer_y, 0.5)  # Madagascar's double sums in f32 have that error
    tell(f"{name}, f32", "Madagascar's in C" if shape == "triangle" else "uniform_filter1d", times, peer_times)


def measure_convolve(library, taps, name, dtype):
    random = np.random.default_rng(1)
    x, filter_ = random.standard_normal((ROWS, LENGTH)).astype(dtype), random.standard_normal(taps).astype(dtype)
    y, peer_y, wide = np.empty_like(x), np.empty_like(x), dtype == np.float64
    fma = lambda: library.step_peers_fma(ctypes.c_bool(wide), ctypes.c_uint64(FMA_COUNT))
    times, peer_times, fma_times = turns(lambda: ours(library, name, x, filter_, y), convolve_peer(x, peer_y, filter_), fma)
    close(name, y, peer_y, 1e-3)
    of_peak = ROWS * LENGTH * taps / (FMA_VECTORS * FMA_COUNT * 32 // x.itemsize) * min(fma_times)
    share = f"of the FMA peak {of_peak / min(times):.2f}, NumPy {of_peak / min(peer_times):.2f}" if fma() else ""
    tell(name, f"numpy.convolve, {np.dtype(dtype).name}", times, peer_times, share)


def measure_stack(library, traces, samples):
    """Traces of some samples, each added to one of the bins. NumPy adds in f32, and is faster than in f64."""
    random = np.random.default_rng(1)
    x, index = random.standard_normal((traces, samples)).astype(np.float32), random.integers(0, BINS, traces, np.uint32)
    y, peer_y = np.empty((BINS, samples), np.float32), np.empty((BINS, samples), np.float32)
    words = ctypes.c_char_p(f"stack {BINS} bins".encode()), ctypes.c_uint64(samples), ctypes.c_uint64(traces)

    def run():
        if not library.step_peers_ours(*words, address(x), address(index), address(y)):
            sys.exit(f"steps.py: step_cases.c has no case stack {BINS} bins")

    def peer():
        peer_y[:] = 0
        np.add.at(peer_y, index, x)

    times, peer_times = turns(run, peer)
    close("stack", y, peer_y, 1e-2)
    tell(f"stack {traces} x {samples}", "numpy.add.at, float32", times, peer_times)


def main():
    library = load(sys.argv[1])
    print(f"{ROWS} x {LENGTH}, best and median of {TURNS} turns; NumPy {np.__version__}, SciPy {scipy.__version__}")
    print(f"\n{'what':<28}{'against':<28}{'ms':>8}{'its ms':>9}{'best':>7}{'median':>8}")
    for width in (2, 100, 1000):
        measure_filter(library, "triangle", width)
    for width in (2, 100, 1000):
        measure_filter(library, "box", width)
    for taps in (31, 255):
        measure_convolve(library, taps, f"convolve {taps}", np.float32)
        measure_convolve(library, taps, f"convolve {taps} of f64", np.float64)
    for traces, samples in ((1000, 500), (500_000, 1)):
        measure_stack(library, traces, samples)


if __name__ == "__main__":
    main()

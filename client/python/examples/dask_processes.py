#!/usr/bin/env python3
"""A survey of 2 GB in Dask, by four processes that share one daemon: each reads chunks, has the daemon make the double
integral of every trace, and keeps the level of each shot. The same by NumPy in the processes, for comparison. A daemon that
has less memory than the survey, or takes few jobs of a user at a time, is waited for. Needs dask. Start a daemon first: scand.

dask_processes.py [MEGABYTES]"""

import sys
import time
from typing import Callable

import numpy as np

try:
    import dask.array
except ImportError:
    print("skipped: there is no dask here")
    sys.exit(77)

import scand
from scand.dask import map_rows

traces, samples, processes = 1000, 2000, 4  # sizes of a shot, which has 8 MB


def read_shots(block_info: dict[None, dict[str, list[tuple[int, int]]]]) -> np.ndarray:
    """A chunk of shots. Each trace is made of small whole numbers, so that its sums are exact in any order."""
    (first, last), _, _ = block_info[None]["array-location"]
    wave = (3 - np.arange(samples) % 7).astype(np.float32)
    return np.arange(first, last, dtype=np.float32)[:, None, None] * np.broadcast_to(wave, (last - first, traces, samples))


def integrate(chunk: np.ndarray, axis: int = -1) -> np.ndarray:
    """The sums of scand.scan(chunk, "forward,backward"), made by NumPy in f64."""
    forward = np.cumsum(chunk, axis, dtype=np.float64).astype(np.float32)
    return np.flip(np.cumsum(np.flip(forward, axis), axis, dtype=np.float64), axis).astype(np.float32)


def levels(survey: dask.array.Array, function: Callable[..., np.ndarray], **options: str) -> tuple[np.ndarray, float]:
    """The largest value of each shot's integrals, and the seconds that it took."""
    integrals = map_rows(function, survey, **options)
    begin = time.perf_counter()
    found = integrals.max(axis=(1, 2)).compute(scheduler="processes", num_workers=processes)
    return found, time.perf_counter() - begin


if __name__ == "__main__":
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    shots = max(processes, megabytes // 8)
    chunks = (2 if shots >= 8 else 1, traces, samples)
    survey = dask.array.map_blocks(
        read_shots, chunks=dask.array.core.normalize_chunks(chunks, (shots, traces, samples)), dtype=np.float32,
        meta=np.zeros((0, 0, 0), np.float32),
    )
    found, seconds = levels(survey, scand.scan, passes="forward,backward")
    expected, numpy_seconds = levels(survey, integrate)
    print(
        f"{survey.nbytes >> 20} MB of samples by {processes} processes: {seconds:.1f} s, by NumPy in them {numpy_seconds:.1f} s "
        f"({numpy_seconds / seconds:.1f} times)"
    )
    assert (found == expected).all() and found[-1] > 0

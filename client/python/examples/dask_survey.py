#!/usr/bin/env python3
"""A survey as a Dask array, larger than what is in memory at a time and than the daemon's pool: chunks are read, integrated
and reduced one after the other, by all threads of this process through one connection. Needs dask. Start a daemon first:
scand."""

import sys

import numpy as np

import scand

try:
    import dask.array
except ImportError:
    print("skipped: there is no dask here")
    sys.exit(77)

from scand.dask import map_rows

shots, traces, samples = 32, 500, 1000


def read_shot(block_id: tuple[int, int, int]) -> np.ndarray:
    """A shot of which each trace is the number of the shot."""
    return np.full((1, traces, samples), block_id[0], np.float32)


chunks = ((1,) * shots, (traces,), (samples,))
survey = dask.array.map_blocks(read_shot, chunks=chunks, dtype=np.float32, meta=np.zeros((0, 0, 0), np.float32))
integrals = map_rows(scand.scan, survey, passes="forward,backward", dtype=np.float64)
energy = map_rows(scand.reduce, integrals, op="max").max(axis=1).compute(scheduler="threads")

expected = np.arange(shots) * samples * (samples + 1) / 2
print(f"{survey.nbytes >> 20} MB of samples, {integrals.nbytes >> 20} MB of integrals; {shots} shots")
assert (energy == expected).all()

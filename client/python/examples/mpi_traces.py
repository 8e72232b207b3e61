#!/usr/bin/env python3
"""An MPI program whose ranks share the machine's daemon: each integrates its part of a survey and the loudest trace of all is
found. Needs mpi4py. Start a daemon first: scand. Then: mpiexec -n 4 python3 mpi_traces.py"""

import sys

import numpy as np

try:
    from mpi4py import MPI
except ImportError:
    print("skipped: there is no mpi4py here, or no MPI")
    sys.exit(77)

import scand

world = MPI.COMM_WORLD
traces, samples = 400, 1500

# The survey is what rank 0 has read. Each rank gets its rows in shared memory, where the daemon works on them.
survey = None
if world.rank == 0:
    survey = np.random.default_rng(1).standard_normal((traces * world.size, samples)).astype(np.float32)
own = scand.empty((traces, samples), np.float32)
world.Scatter(survey, own, root=0)

scand.scan(own, "forward,backward", demean=True, out=own)
loudest = float(scand.reduce(own, "rms").max())
level, rank = world.allreduce((loudest, world.rank), op=MPI.MAXLOC)
world.Gather(own, survey, root=0)

if survey is not None:
    print(f"{world.size} ranks, {survey.shape[0]} traces: the loudest is of rank {rank}, {level:.0f}")
    assert np.isclose(level, np.sqrt((survey.astype(np.float64) ** 2).mean(axis=-1)).max(), rtol=1e-6)
    assert np.isfinite(survey).all()

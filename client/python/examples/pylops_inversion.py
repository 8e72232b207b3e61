#!/usr/bin/env python3
"""Interval velocities from vertical travel times, as an inversion by PyLops with an operator of scand's: times are the causal
integral of slowness over depth, and their differences would multiply the noise. Needs pylops. Start a daemon first: scand."""

import sys
import time

import numpy as np

try:
    import pylops
except ImportError:
    print("skipped: there is no pylops here")
    sys.exit(77)

import scand.pylops

wells, depths, dz = 60, 400, 5.0
noise = np.random.default_rng(1)
depth = dz * np.arange(depths)
velocity = 1500 + 0.8 * depth + 150 * np.sin(depth / 150 + np.linspace(0, 3, wells)[:, None])
travel_time = np.cumsum(dz / velocity, axis=-1) + 2e-4 * noise.standard_normal((wells, depths))  # picked to 0.2 ms


def invert(integral: pylops.LinearOperator) -> np.ndarray:
    """The slowness whose integral is near the times, and which is smooth along depth."""
    roughness = pylops.SecondDerivative((wells, depths), axis=-1)
    background = np.repeat(travel_time[:, -1:] / (dz * depths), depths, axis=-1)
    solution = pylops.optimization.leastsquares.regularized_inversion(
        integral, travel_time.ravel(), [roughness], epsRs=[2e4], x0=background.ravel(), iter_lim=200, show=False
    )[0]
    return solution.reshape(wells, depths)


options = {"dims": (wells, depths), "axis": -1, "sampling": dz, "kind": "full"}
begin = time.perf_counter()
ours = invert(scand.pylops.CausalIntegration(**options))
print(f"200 iterations of {wells} wells of {depths} depths by scand: {time.perf_counter() - begin:.2f} s", end="")
begin = time.perf_counter()
theirs = invert(pylops.CausalIntegration(**options))
print(f", by pylops alone {time.perf_counter() - begin:.2f} s")

inner = slice(20, -20)
error = np.abs(1 / ours - velocity)[:, inner].mean()
naive = np.abs(dz / np.diff(travel_time, axis=-1, prepend=0) - velocity)[:, inner].mean()
print(f"velocities are wrong by {error:.0f} m/s in the mean, those of differences by {naive:.0f} m/s")
assert error < naive / 3
assert np.abs(ours - theirs).max() < 1e-6 * np.abs(theirs).max()

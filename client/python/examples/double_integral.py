#!/usr/bin/env python3
"""The double integral of each trace, as anti-alias filters before Kirchhoff migration need it, and a triangle filter made
of it. Start a daemon first: scand."""

import numpy as np

import scand

traces, samples, half_width = 200, 1500, 12
noise = np.random.default_rng(1)
x = noise.standard_normal((traces, samples)).astype(np.float32)

# y[i] is the sum over j >= i of the sums of x[0] to x[j]. Results in f64 keep the digits that the filter needs.
y = scand.scan(x, "forward,backward", dtype=np.float64)

# Away from the ends, its second difference over the half-width is the trace smoothed by a triangle.
k = half_width
smooth = (2 * y[:, k:-k] - y[:, : -2 * k] - y[:, 2 * k :]) / k**2

weights = 1 - np.abs(np.arange(1 - k, k)) / k
expected = np.array([np.convolve(row, weights / k, mode="valid") for row in x])
difference = np.abs(smooth - expected[:, 1:-1]).max()
print(f"{traces} traces of {samples} samples; largest difference from a direct convolution: {difference:.1e}")
assert difference < 1e-9

# Nothing is copied in shared memory.
shared = scand.asarray(x)
scand.scan(shared, "forward,backward", out=shared)
print(f"in place: {np.abs(shared - y).max() / np.abs(y).max():.1e} of the largest value, the rounding to f32")

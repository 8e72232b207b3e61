#!/usr/bin/env python3
"""Kirchhoff migration of a small 2-D section, with its operators' aliases and without them. Start a daemon first: scand.

A sum along a steep operator takes samples of neighbouring traces that are further apart in time than half a period of the
signal: flat events do not cancel there, and leave noise where nothing reflects. So each sample is smoothed by a triangle that
is as wide as the operator's step from trace to trace (Lumley, Claerbout and Bevc 1994). The filter differs from sample to
sample, and costs three values of the trace's double integral each (Claerbout). One job integrates all traces and picks all
samples, 1.5 million, where the operators meet the traces.

`kirchhoff.py PICTURE.png` also draws both images; that needs matplotlib.
"""

import sys

import numpy as np

import scand

velocity, dx, dt, dz = 2000.0, 25.0, 0.004, 10.0  # m/s, m, s, m
traces, samples, depths = 121, 600, 100
x = dx * np.arange(traces)
z = dz * np.arange(1, depths + 1)
reflectors = (700.0, 850.0)  # flat ones
point = (1500.0, 450.0)  # x and z of a diffractor


def ricker(t: np.ndarray, peak_hz: float = 35.0) -> np.ndarray:
    a = (np.pi * peak_hz * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


def section() -> np.ndarray:
    """Zero-offset traces: two flat reflectors, and a point's hyperbola."""
    t = dt * np.arange(samples)
    data = sum(np.tile(ricker(t - 2 * depth / velocity), (traces, 1)) for depth in reflectors)
    distance = np.hypot(x - point[0], point[1])[:, None]
    return (data + point[1] / distance * ricker(t - 2 * distance / velocity)).astype(np.float32)


def migrate(data: np.ndarray, anti_alias: bool) -> np.ndarray:
    """The image: for each of its points the sum over all traces, at the times of a reflection from there."""
    offset = (x[:, None] - x)[:, :, None]  # offsets of traces from points of the image
    distance = np.hypot(offset, z)
    time = 2 * distance / velocity / dt
    step = 2 * np.abs(offset) / distance / velocity * dx / dt  # operator's steps between traces, in samples
    width = step if anti_alias else np.zeros_like(step)
    chain = [
        ("scan", {"passes": "forward,backward"}),
        ("pick", {"position": time.reshape(traces, -1), "half_width": width.reshape(traces, -1)}),
    ]
    picked = scand.run(data, chain, dtype=np.float64).reshape(distance.shape)
    return np.asarray((z / distance * picked).sum(axis=0))


def energy(image: np.ndarray, first_depth: float, last_depth: float) -> float:
    """The energy of the middle of the image between two depths, away from the point."""
    inside = (z >= first_depth) & (z <= last_depth)
    return float((image[20:50][:, inside] ** 2).mean())


def draw(path: str, images: list[tuple[str, np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for axis, (title, image) in zip(axes, images):
        axis.imshow(image.T, cmap="gray", vmin=-15, vmax=15, aspect="auto", extent=(x[0], x[-1], z[-1], z[0]))
        axis.set(title=title, xlabel="x [m]")
    axes[0].set_ylabel("depth [m]")
    figure.savefig(path, dpi=100)


data = section()
aliased, clean = migrate(data, False), migrate(data, True)
noise = [energy(image, 50, 350) for image in (aliased, clean)]
signal = [energy(image, 680, 720) for image in (aliased, clean)]
peak = np.unravel_index(np.abs(clean[:, : depths // 2]).argmax(), (traces, depths // 2))
print(f"noise where nothing reflects, of the first reflector's energy: {noise[0] / signal[0]:.1e}, with anti-aliasing {noise[1] / signal[1]:.1e}")
print(f"the reflector keeps {signal[1] / signal[0]:.0%} of its energy; the point is imaged at {x[peak[0]]:.0f} m, {z[peak[1]]:.0f} m")
assert noise[1] < noise[0] / 50
assert 0.8 < signal[1] / signal[0] < 1.2
assert abs(x[peak[0]] - point[0]) <= dx and abs(z[peak[1]] - point[1]) <= 2 * dz
if len(sys.argv) > 1:
    draw(sys.argv[1], [("without", aliased), ("with the triangle", clean)])

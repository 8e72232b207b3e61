#!/usr/bin/env python3
"""Random jobs have the same bits wherever they are computed: by the device of the other tests, by the processor, by
both together, and without a daemon. What one of them refuses, all refuse, in the same words.

$TEST_JOBS: how many jobs, 200 unless told otherwise.
"""

import os
import random

import numpy as np

import scand
from rig import SEED, Daemon, PackageTest, layouts, main

DEVICE = os.environ.get("SCAND_TEST_DEVICE", "cpu")
JOBS = int(os.environ.get("TEST_JOBS", 200))
DTYPES = ["f4", "f4", "f4", "f8", "f8", "f2", "i4", "i8", "u4", "i2", "u1"]


def scan(choice, size):
    step = {
        "passes": choice.choice(["forward", "backward", "forward,backward", "backward,forward", "forward,forward"]),
        "kind": choice.choice(["inclusive", "inclusive", "exclusive", "half", "trapezoid"]),
        "op": choice.choice(["sum", "sum", "sum", "prod", "max", "min", "affine"]),
        "accumulator": choice.choice(["auto", "f32", "f64", "f2"]),
    }
    if step["op"] == "affine":
        step["coefficient"] = choice.choice([0.5, -0.9, 1.0])
    if choice.random() < 0.2:
        step["demean"] = True
    if choice.random() < 0.2:
        step["scale"] = 0.004
    return "scan", step


def smoothing(choice, size):
    return choice.choice(["triangle", "box"]), {
        "half_width": choice.randint(1, 40),
        "norm": choice.choice(["area", "height", "none"]),
        "boundary": choice.choice(["reflect", "zero", "skip"]),
        "repeat": choice.randint(1, 2),
    }


def filtering(choice, size):
    taps = np.random.default_rng(choice.getrandbits(32)).standard_normal(choice.choice([1, 3, 31, 60])).astype("f4")
    return choice.choice(["convolve", "correlate"]), {
        "filter": taps,
        "mode": choice.choice(["full", "same", "valid"]),
        "accumulator": choice.choice(["auto", "f32", "f64"]),
    }


def mapping(choice, size):
    op = choice.choice(["add", "sub", "mul", "div", "min", "max", "abs", "neg", "sqrt", "exp", "log", "clip", "cast"])
    if op in ("add", "sub", "mul", "div", "min", "max"):
        return "map", {"op": op, "by": choice.choice([0.5, -3.0, 2.0])}
    return "map", {"op": op, **({"low": -1.0, "high": 2.0} if op == "clip" else {})}


def differences(choice, size):
    kind = choice.choice(["first", "second", "derivative"])
    return "diff", {"kind": kind, **({"dt": 0.004} if kind == "derivative" else {})}


def resampling(choice, size):
    return choice.choice(["upsample", "block-sum"]), {"factor": choice.choice([1, 2, 3, 7])}


def stacking(choice, size):
    bins = choice.choice([1, 5, 300])
    index = np.random.default_rng(choice.getrandbits(32)).integers(0, bins, size).astype("i4")
    return "stack", {"bins": bins, "index": index, "norm": choice.choice(["none", "fold"])}


def reduction(choice, size):
    return "reduce", {"reduction": choice.choice(["sum", "min", "max", "mean", "rms", "norm"])}


STEPS = [scan, scan, scan, smoothing, filtering, mapping, differences, resampling]
FIRST = [*STEPS, stacking]  # its index has as many elements as the rows that are given


def random_job(choice):
    """Samples, steps, and the axis: rows of any length and number, in any layout."""
    length = choice.choice([1, 2, 15, 32, 33, 700, 1000, 3001, 16385, 70000])
    rows = choice.randint(1, max(1, min(300, 300000 // length)))
    shape = choice.choice([(rows, length), (length,), (rows, length), (2, rows // 2 + 1, length)])
    noise = np.random.default_rng(choice.getrandbits(32))
    dtype = np.dtype(choice.choice(DTYPES))
    x = noise.standard_normal(shape) if dtype.kind == "f" else noise.integers(0, 100, shape)
    axis = choice.choice([-1, -1, 0])
    x = dict(layouts(x.astype(dtype)))
    x = x[choice.choice(sorted(x))]
    steps = [choice.choice(FIRST)(choice, x.shape[axis])]
    steps += [choice.choice(STEPS)(choice, 0) for _ in range(choice.choice([0, 0, 1, 2]))]
    if choice.random() < 0.2:
        steps.append(reduction(choice, 0))
    return x, steps, axis


class Places(PackageTest):
    """The daemon of the other tests, and beside it the other places."""

    def setUp(self):
        self.places = {DEVICE: scand.default_client()}
        for devices in {"cpu", "cpu,cpu" if DEVICE == "cpu" else "auto,cpu"} - {DEVICE}:
            daemon = Daemon("--device", devices)
            self.addCleanup(daemon.stop)
            self.places[devices] = scand.Client(daemon.socket)
            self.addCleanup(self.places[devices].close)
        os.environ["SCAND_FALLBACK"] = "cpu"
        self.addCleanup(os.environ.pop, "SCAND_FALLBACK")
        self.places["local"] = scand.Client("/nonexistent/scand.sock")
        self.addCleanup(self.places["local"].close)
        self.assertTrue(self.places["local"].is_local)

    def outcome(self, place, x, steps, axis):
        try:
            got = scand.run(x, steps, axis=axis, client=self.places[place])
        except (ValueError, TypeError) as error:
            return type(error).__name__, str(error)
        return got.dtype.str, got.shape, np.ascontiguousarray(got).tobytes()

    def test_random_jobs(self):
        computed = 0
        for number in range(JOBS):
            x, steps, axis = random_job(random.Random(SEED + number))
            first, *others = self.places
            expected = self.outcome(first, x, steps, axis)
            computed += len(expected) == 3
            for place in others:
                self.assertTrue(
                    self.outcome(place, x, steps, axis) == expected,
                    f"job {number}: {place} is not as {first}: {x.dtype} {x.shape} strides {x.strides} axis {axis} {steps}",
                )
        print(f"{computed} of {JOBS} jobs computed, with the same bits by {', '.join(self.places)}", flush=True)
        self.assertGreater(computed, JOBS // 4)


if __name__ == "__main__":
    main()

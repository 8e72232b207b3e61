"""An example of each operation: what it is done with, and what to see. Names and parameters are those of PROTOCOL.md.

Shell, Python and C are made of a row by examples.py, which runs all three and compares their bits; picture.py draws what
came out. A row that an operation lacks is an error.
"""

import dataclasses
import itertools
import math
import pathlib
import re
import struct

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PROTOCOL = "protocol/PROTOCOL.md"
SECTION = re.compile(r"^#### (?P<name>[a-z-]+)\n(?P<text>.*?)(?=^#{1,4} )", re.DOTALL | re.MULTILINE)


def sections():
    """The sections of PROTOCOL.md on operations. Ends the program where an operation lacks an example, or an example
    its operation."""
    found = {match["name"]: match["text"].strip() for match in SECTION.finditer((TOP / PROTOCOL).read_text())}
    apart = set(found) ^ {example.operation for example in EXAMPLES}
    if apart:
        raise SystemExit(f"client/site/operations.py and {PROTOCOL} differ in {', '.join(sorted(apart))}")
    return found


@dataclasses.dataclass(frozen=True)
class Array:
    """Numbers of a dtype, in C order."""

    dtype: str  # NumPy's: "<f4"
    shape: tuple
    values: tuple

    def to_bytes(self):
        return struct.pack(f"<{len(self.values)}{CODES[self.dtype]}", *self.values)


CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q"}


def floats(values, *shape):
    return Array("<f4", tuple(shape) or (len(values),), tuple(struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values))))


def noise(count, seed=1):
    """Numbers between -1 and 1, the same everywhere."""
    values = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        values.append(seed / 2**30 - 1)
    return values


def ricker(at, width):
    return (1 - 2 * (at / width) ** 2) * math.exp(-((at / width) ** 2))


def trace(count=240, seed=1, offset=0.0):
    """A seismic trace: a few echoes of a wavelet, and noise."""
    echoes = [(30, 0.9), (72, -0.6), (110, 0.75), (121, -0.5), (180, 0.35)]
    hiss = noise(count, seed)
    return [offset + 0.05 * hiss[i] + sum(size * ricker(i - at * count / 240, 5) for at, size in echoes) for i in range(count)]


def spikes(count=240):
    sizes = {30: 1.0, 75: -0.7, 115: 0.9, 125: 0.5, 190: 0.6}
    return [sizes.get(i, 0.0) for i in range(count)]


def steps(count=240):
    return [0.2 if i < 50 else 0.8 if i < 110 else -0.4 if i < 170 else 0.3 for i in range(count)]


def gather(traces=12, count=120):
    """Traces whose strength falls with their number."""
    return [0.9**k * sample for k in range(traces) for sample in trace(count, seed=k + 1)]


def hyperbola(count=240):
    hiss = noise(count, 5)
    return [math.sqrt(0.04 + ((i - 120) / 160) ** 2) + 0.1 * hiss[i] for i in range(count)]


def twice_summed(values):
    """Their double integral, forward and then backward."""
    forward = list(itertools.accumulate(values))
    return list(itertools.accumulate(forward[::-1]))[::-1]


@dataclasses.dataclass(frozen=True)
class Example:
    operation: str
    parameters: dict  # words, numbers, True for a flag
    input: Array
    see: str  # below the picture
    operands: dict = dataclasses.field(default_factory=dict)  # by their names, Arrays
    kind: str = "line"  # how the output is drawn: "line", "bars"
    input_kind: str = "line"


WAVELET = floats([ricker(i - 12, 4) for i in range(25)])
BINS = Array("<i4", (240,), tuple(i // 10 for i in range(240)))

EXAMPLES = [
    Example("scan", {"passes": "forward,backward", "demean": True}, floats(trace()),
            "A trace, and its double integral: summed forward, and the sums summed backward, after its mean was taken off."),
    Example("reduce", {"reduction": "rms"}, floats(gather(), 12, 120),
            "Twelve traces that become weaker, one after the other, and the root mean square of each.", kind="bars"),
    Example("upsample", {"factor": 4}, floats(trace(60)), "Sixty samples, and each of them four times.", input_kind="bars", kind="bars"),
    Example("block-sum", {"factor": 8}, floats(trace()), "The sums of eight samples each.", kind="bars"),
    Example("convolve", {"mode": "same"}, floats(spikes()), "Spikes, and what a Ricker wavelet of 25 taps makes of them.",
            {"filter": WAVELET}),
    Example("correlate", {"mode": "same"}, floats(trace()),
            "A trace, and its correlation with the wavelet: largest where an echo is, with the echo's sign.", {"filter": WAVELET}),
    Example("diff", {"kind": "first"}, floats(steps()), "Steps, and what each sample has more than the one before it."),
    Example("dot", {}, floats(gather(), 12, 120), "Twelve traces, and the product of each with a strong one.",
            {"other": floats(trace(120, seed=1) * 12, 12, 120)}, kind="bars"),
    Example("demean", {}, floats(trace(offset=0.4)), "A trace with an offset, and without it."),
    Example("map", {"op": "clip", "low": -0.3, "high": 0.3}, floats(trace()), "A trace, and what is left of it between two limits."),
    Example("triangle", {"half_width": 12, "boundary": "zero"}, floats(spikes()), "Spikes, and the triangles that they become."),
    Example("box", {"half_width": 12, "boundary": "zero"}, floats(spikes()), "Spikes, and the means over 23 samples."),
    Example("stack", {"bins": 24, "norm": "fold"}, floats(hyperbola()),
            "Samples of which ten at a time belong to a bin, and the mean of each bin.", {"index": BINS}, kind="bars"),
    Example("index-add", {"alpha": 0.1}, floats(hyperbola()),
            "The same samples, a tenth of each added onto what 24 bins have already, which rises from 0 to 1.",
            {"index": BINS, "onto": floats([i / 23 for i in range(24)])}, kind="bars"),
    Example("pick", {}, Array("<f8", (240,), tuple(twice_summed(spikes()))),
            "The double integral of spikes, and triangles around 100 places, the wider the later.",
            {"position": floats([20 + 2 * k for k in range(100)]), "half_width": floats([2 + 0.15 * k for k in range(100)])}),
]

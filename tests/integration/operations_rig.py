"""The rig of tests of operations: steps as messages have them, and chains that are compared with separate jobs."""

import itertools
import math
import random
import re

from daemons import DaemonTest
from forms import pack_dtype
from wire import SIZES, tensor

FORWARD = {"operation": "scan", "passes": ["forward"]}
BOTH = {"operation": "scan", "passes": ["forward", "backward"], "accumulator": "f64"}
SUM = {"operation": "reduce", "reduction": "sum"}
DEMEAN = {"operation": "demean"}


def upsample(factor):
    return {"operation": "upsample", "factor": factor}


def block_sum(factor):
    return {"operation": "block-sum", "factor": factor}


def diff(kind, **parameters):
    return {"operation": "diff", "kind": kind, **parameters}


def triangle(half_width, **parameters):
    return {"operation": "triangle", "half_width": half_width, **parameters}


def box(half_width, **parameters):
    return {"operation": "box", "half_width": half_width, **parameters}


def dot(other):
    return {"operation": "dot", "other": other}


def mapped(op, **parameters):
    return {"operation": "map", "op": op, **parameters}


def stack(bins, index, **parameters):
    return {"operation": "stack", "bins": bins, "index": index, **parameters}


def index_add(index, onto, **parameters):
    return {"operation": "index-add", "index": index, "onto": onto, **parameters}


def pick(position, half_width):
    return {"operation": "pick", "position": position, "half_width": half_width}


def recurrence(coefficients):
    return {"operation": "scan", "passes": ["forward"], "op": "affine", "coefficients": coefficients}


def convolve(taps, mode="full", operation="convolve", **rest):
    return {"operation": operation, "filter": taps, "mode": mode, **rest}


def length_after(step, length):
    if "filter" in step:
        taps = step["filter"]["shape"][-1]
        return {"full": length + taps - 1, "same": length, "valid": length - taps + 1}[step["mode"]]
    if "onto" in step:
        return step["onto"]["shape"][-1] if length else 0
    if "position" in step:
        return step["position"]["shape"][-1] if length else 0
    factor = step.get("factor", 1)
    return {"upsample": length * factor, "block-sum": length // factor, "reduce": 1, "dot": 1, "stack": step.get("bins") if length else 0}.get(step["operation"], length)


def lengths_of(steps, length):
    """Returns the lengths of rows before each step, and behind the last."""
    return list(itertools.accumulate(steps, lambda before, step: length_after(step, before), initial=length))


class OperationsTest(DaemonTest):
    def noise(self, client, dtype, count):
        memory = client.create(max(1, count) * SIZES[dtype])
        memory.write(pack_dtype(dtype, random.Random(count).choices(range(8), k=min(count, 5000)) * (count // 5000 + 1))[: memory.size])
        return memory

    def check(self, client, shape, axis, steps, dtypes=("f32", "f64"), strides=None, offsets=None):
        """Compares the results' bytes, and that nothing but them is written. `steps` may be functions of a shape's tensor maker."""
        given, made = dtypes
        source = self.noise(client, given, math.prod(shape))
        rest, buffers = {"axis": axis}, [source]
        if offsets is not None:
            buffers.append(client.create(8 * len(offsets)))
            buffers[-1].write(pack_dtype("i64", offsets))
            rest["offsets"] = tensor(buffers[-1].buffer, [len(offsets)], dtype="i64")
        lengths = lengths_of(steps, shape[axis])
        shapes = [[length if k == axis else n for k, n in enumerate(shape)] for length in lengths]
        if offsets is not None and steps[-1]["operation"] in ("reduce", "dot"):
            shapes[-1][axis] = len(offsets) - 1
        tensors = [tensor(source.buffer, shape, strides, given)]
        for each in shapes[1:]:
            buffers.append(client.create(max(1, math.prod(each)) * SIZES[made] + 16))
            tensors.append(tensor(buffers[-1].buffer, each, dtype=made, offset=8))
        results, before = buffers[-1], bytes([0xA5]) * buffers[-1].size
        results.write(before)
        for step, taken, left in zip(steps, tensors, tensors[1:]):
            client.call("job.run", input=taken, output=left, steps=[step], **rest)
        expected, untouched = results.read(), source.read()
        results.write(before)
        client.call("job.run", input=tensors[0], output=tensors[-1], steps=steps, **rest)
        self.assertTrue(results.read() == expected)
        self.assertTrue(source.read() == untouched)
        for buffer in buffers:
            client.call("buffer.release", buffer=buffer.buffer)

    def refuse(self, client, message, status="invalid", **params):
        self.refused(client, status, re.escape("job.run: " + message), "job.run", params)

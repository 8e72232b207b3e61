#!/usr/bin/env python3
"""Reductions of rows, compared with plain Python, and those that make no sense.

Samples are chosen so that every total is exact.

    test_daemon_reduce.py SCAND [unittest's arguments]
"""

import itertools
import math
import random
import struct

from daemons import BACKEND, DaemonTest, main
from forms import pack_dtype, unpack_dtype
from wire import SIZES, pack_f32, tensor

REDUCTIONS = {
    "sum": sum,
    "min": lambda row: min(row, default=math.inf),
    "max": lambda row: max(row, default=-math.inf),
    "mean": lambda row: sum(row) / len(row) if row else math.nan,
    "rms": lambda row: math.sqrt(sum(x * x for x in row) / len(row)) if row else math.nan,
    "norm": lambda row: math.sqrt(sum(x * x for x in row)),
}
INTEGERS = ("i32", "i64", "u32", "u64", "i64be", "u32be", "u64be")


def reduce(given, output, axis=None, reduction="sum", **more):
    axis = len(given["shape"]) - 1 if axis is None else axis
    return {"input": given, "output": output, "axis": axis, "operation": "reduce", "reduction": reduction, **more}


def results_of(shape, axis, samples, reduction):
    """Returns the expected results, in C order."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    outer = [range(n) if k != axis else (0,) for k, n in enumerate(shape)]
    for index in itertools.product(*outer):
        first = sum(i * s for i, s in zip(index, strides))
        yield REDUCTIONS[reduction]([samples[first + j * strides[axis]] for j in range(shape[axis])])


class ReduceTest(DaemonTest):
    def same(self, found, expected):
        """Compares as text, since NaN is not equal to itself. Says where the first difference is: unittest would seek all of them for minutes."""
        self.assertEqual(len(found), len(expected))
        for row, values in enumerate(zip(found, expected)):
            if str(values[0]) != str(values[1]):
                self.fail(f"row {row} is {values[0]}; expected: {values[1]}")

    def check(self, client, shape, axis, reduction, dtype="f32", target="f64", **more):
        count = math.prod(shape)
        noise = random.Random(count)
        samples = [noise.randint(0 if dtype[0] == "u" else -9, 9) for _ in range(count)]
        kept = [1 if k == axis else n for k, n in enumerate(shape)]
        memory, results = client.create(max(1, count) * SIZES[dtype]), client.create(math.prod(kept) * SIZES[target] + 8)
        memory.write(pack_dtype(dtype, samples))
        given, output = tensor(memory.buffer, shape, dtype=dtype), tensor(results.buffer, kept, dtype=target)
        with self.subTest(shape=shape, axis=axis, reduction=reduction, dtype=dtype, target=target, **more):
            job = reduce(given, output, axis, reduction, **more)
            client.call("job.submit", job)
            found = unpack_dtype(target, results.read(0, math.prod(kept) * SIZES[target]))
            expected = list(results_of(shape, axis, samples, reduction))
            if target == "f32":
                expected = [struct.unpack("f", struct.pack("f", x))[0] for x in expected]
            self.same(found, [x if target[0] in "iu" else float(x) for x in expected])
        client.call("buffer.release", buffer=memory.buffer)
        client.call("buffer.release", buffer=results.buffer)


class Reductions(ReduceTest):
    def test_every_reduction_along_every_axis(self):
        client = self.client()
        for reduction in REDUCTIONS:
            for shape in ([700], [40, 33], [3, 50, 7], [2, 3, 20, 5]):
                for axis in range(len(shape)):
                    self.check(client, shape, axis, reduction)
            self.check(client, [5, 600], 1, reduction, target="f32")
            self.check(client, [5, 600], 1, reduction, dtype="f64")

    def test_long_rows(self):
        client = self.client()
        self.check(client, [2, 100000], 1, "mean")
        self.check(client, [1, 600000], 1, "sum", dtype="f64")
        self.check(client, [70000], 0, "max", target="f32")

    def test_shorter_rows_after_long_ones(self):
        """The later, shorter rows need no workspace, but find one."""
        client = self.client()
        self.check(client, [1, 40000], 1, "sum")
        self.check(client, [7, 900], 1, "sum")
        self.check(client, [7, 20], 1, "sum")

    def test_many_chunks(self):
        """More than a chunk's rows, and results of more bytes than the samples."""
        client = self.client()
        self.check(client, [300000, 1], 1, "sum")
        self.check(client, [9000, 300], 1, "norm")

    def test_dtypes(self):
        client = self.client()
        for dtype in SIZES:
            target = "f64" if dtype not in INTEGERS else dtype[0] + "64"
            for reduction in ("sum", "min", "max"):
                self.check(client, [4, 90], 1, reduction, dtype=dtype, target=target)
                self.check(client, [3, 700], 1, reduction, dtype=dtype, target=target)
            if dtype not in INTEGERS:
                self.check(client, [4, 90], 1, "rms", dtype=dtype)

    def test_rows_without_samples(self):
        client = self.client()
        for reduction in REDUCTIONS:
            self.check(client, [3, 0], 1, reduction)
        self.check(client, [0, 5], 1, "sum")
        results = client.create(64)
        for dtype, reduction, expected in (("i32", "min", 2**31 - 1), ("u64", "max", 0), ("i64", "sum", 0)):
            given, output = tensor(results.buffer, [0], dtype=dtype), tensor(results.buffer, [1], dtype=dtype)
            client.call("job.submit", reduce(given, output, 0, reduction))
            self.assertEqual(unpack_dtype(dtype, results.read(0, SIZES[dtype])), [expected])

    def test_strides(self):
        """Samples apart, rows backwards, results scattered backwards."""
        client = self.client()
        memory, results = client.create(4096), client.create(4096)
        memory.write(pack_f32(range(240)))
        given = tensor(memory.buffer, [3, 10], [-320, 8], offset=640)
        output = tensor(results.buffer, [3, 1], [-24, 8], dtype="f64", offset=48)
        client.call("job.submit", reduce(given, output))
        found = [struct.unpack("d", results.read(48 - 24 * row, 8))[0] for row in range(3)]
        self.assertEqual(found, [float(sum(range(160 - 80 * row, 180 - 80 * row, 2))) for row in range(3)])

    def test_ragged_rows(self):
        """Empty rows first and last, rows of several order blocks and of several chunks, samples and results apart."""
        client = self.client()
        noise = random.Random(7)
        for dtype, reductions in (("f32", REDUCTIONS), ("f64", ("sum", "max")), ("i32", ("sum", "min"))):
            for lengths in ([0, 3, 700, 0, 17000, 16, 90000, 1, 0], [noise.randint(0, 40) for _ in range(500)], [0, 0]):
                offsets = [5, *itertools.accumulate(lengths, initial=5)][1:]
                samples = [noise.randint(-9, 9) for _ in range(offsets[-1] + 2)]
                rows, step = len(lengths), 2 * SIZES[dtype]
                target = "i64" if dtype == "i32" else "f64"
                memory, results = client.create(len(samples) * step), client.create(max(rows, 1) * 24)
                places = client.create(8 * len(offsets))
                memory.write(pack_dtype(dtype, [x for sample in samples for x in (sample, 1)]))
                places.write(pack_dtype("u64", offsets))
                given = tensor(memory.buffer, [len(samples)], [step], dtype=dtype)
                output = tensor(results.buffer, [rows], [24], dtype=target)
                where = tensor(places.buffer, [rows + 1], dtype="u64")
                for reduction in reductions:
                    with self.subTest(dtype=dtype, rows=rows, reduction=reduction):
                        client.call("job.submit", reduce(given, output, 0, reduction, offsets=where))
                        found = [unpack_dtype(target, results.read(24 * row, 8))[0] for row in range(rows)]
                        expected = [REDUCTIONS[reduction](samples[a:b]) for a, b in itertools.pairwise(offsets)]
                        if target == "i64":
                            expected = [2**31 - 1 if x == math.inf else x for x in expected]
                        self.same(found, [x if target == "i64" else float(x) for x in expected])
                for held in (memory, results, places):
                    client.call("buffer.release", buffer=held.buffer)

    def test_ragged_rows_in_chunks(self):
        client = self.client()
        lengths = [3, 0, 5_000_000, 12, 700_000] + [7] * 1000
        offsets = list(itertools.accumulate(lengths, initial=0))
        memory, results = client.create(4 * offsets[-1]), client.create(8 * len(offsets))
        places = client.create(8 * len(offsets))
        memory.write(pack_f32([1]) * offsets[-1])
        places.write(pack_dtype("i64", offsets))
        given, output = tensor(memory.buffer, [offsets[-1]]), tensor(results.buffer, [len(lengths)], dtype="f64")
        where = tensor(places.buffer, [len(offsets)], dtype="i64")
        client.call("job.submit", reduce(given, output, 0, offsets=where))
        self.same(unpack_dtype("f64", results.read(0, 8 * len(lengths))), [float(length) for length in lengths])

    def test_progress(self):
        client = self.client()
        memory, results = client.create(40 << 20), client.create(1 << 20)
        given, output = tensor(memory.buffer, [1024, 10240]), tensor(results.buffer, [1024, 1], dtype="f64")
        times = client.call("job.submit", reduce(given, output, progress=1))
        self.assertGreater(times["total_us"], 0)


class Axes(ReduceTest):
    """Rows along several dimensions: the samples in C order are a row, whose bits the same samples have along one axis."""

    def flat(self, memory, shape, strides, axes, offset, size):
        """Yields the same samples as rows of their own: of each the numbers of its elements, in C order."""
        kept = [k for k in range(len(shape)) if k not in axes]
        for outer in itertools.product(*(range(shape[k]) for k in kept)):
            at = offset + sum(i * strides[k] for i, k in zip(outer, kept))
            inner = itertools.product(*(range(shape[k]) for k in sorted(axes)))
            yield b"".join(memory[at + sum(i * strides[k] for i, k in zip(index, sorted(axes))) :][:size] for index in inner)

    def check_axes(self, client, shape, axes, steps, strides=None, offset=0):
        """`steps` may be functions of a shape's tensor maker, to which operands are those samples again."""
        noise = random.Random(math.prod(shape))
        strides = strides or [4 * math.prod(shape[k + 1 :]) for k in range(len(shape))]
        memory = client.create(4 * math.prod(shape) + 4096)
        memory.write(pack_f32([noise.uniform(-1, 3) for _ in range(memory.size // 4)]))
        rows = b"".join(self.flat(memory.read(), shape, strides, axes, offset, 4))
        one = [1 if k in axes else n for k, n in enumerate(shape)]
        count, length = math.prod(one), math.prod(shape[k] for k in axes)
        line = client.create(len(rows) + 4096)
        line.write(rows)
        results = client.create(16 * count)
        with self.subTest(shape=shape, axes=axes, strides=strides):
            given, along = tensor(memory.buffer, shape, strides, offset=offset), tensor(line.buffer, [count, length])
            made, expected = tensor(results.buffer, one, dtype="f64"), tensor(results.buffer, [count, 1], dtype="f64", offset=8 * count)
            client.call("job.run", input=given, output=made, axis=axes[0], axes=axes, steps=[step(given) for step in steps])
            client.call("job.run", input=along, output=expected, axis=1, steps=[step(along) for step in steps])
            found = results.read()
            self.assertEqual(found[: 8 * count], found[8 * count : 16 * count])
            self.assertNotEqual(found[: 8 * count], bytes(8 * count))
        for buffer in (memory, line, results):
            client.call("buffer.release", buffer=buffer.buffer)

    def test_results(self):
        client = self.client()
        norm = [lambda given: {"operation": "reduce", "reduction": "norm"}]
        chain = [lambda given: {"operation": "demean"}, lambda given: {"operation": "map", "op": "abs"}, *norm]
        dot = [lambda given: {"operation": "dot", "other": given}]
        for steps in (norm, chain, dot):
            self.check_axes(client, [40, 700], [0, 1], steps)
            self.check_axes(client, [3, 50, 7], [1, 2], steps)
            self.check_axes(client, [3, 50, 7], [1, 0], steps)
            self.check_axes(client, [2, 3, 20, 5], [3, 1, 2], steps)
            self.check_axes(client, [2, 3, 20, 5], [0, 1, 2, 3], steps)
            self.check_axes(client, [30, 1, 20], [0, 2], steps)  # nothing lies between them
            self.check_axes(client, [3, 50, 7], [2], steps)
        self.check_axes(client, [5, 6, 7], [0, 1], norm, strides=[6 * 36, 36, 4])  # rows apart
        self.check_axes(client, [5, 6, 7], [0, 1, 2], norm, strides=[-168, -28, -4], offset=4 * 209)  # backwards

    def test_refusals(self):
        client = self.client()
        memory = client.create(1 << 16)
        steps = [{"operation": "reduce", "reduction": "sum"}]
        job = {"input": tensor(memory.buffer, [4, 5, 6]), "output": tensor(memory.buffer, [1, 5, 1], dtype="f64", offset=8192), "axis": 0, "steps": steps}
        other = {"operation": "dot", "other": tensor(memory.buffer, [4, 5, 7], offset=4096)}
        padded = tensor(memory.buffer, [4, 5, 6], strides=[140, 28, 4])
        for message, change in (
            (r'the stride of "input" along dimension 0 is 120, but along "axes" \(0, 2\) an element in C order is 24 bytes after the 6 before', {"axes": [0, 2]}),
            (r'the stride of "input" along dimension 1 is 28, but along "axes" \(1, 2\) .* 24 bytes', {"axes": [1, 2], "axis": 1, "input": padded, "output": tensor(memory.buffer, [4, 1, 1], dtype="f64", offset=8192)}),
            (r'"axes"\[1\] is 3; a tensor of 3 dimensions has 0 to 2', {"axes": [0, 3]}),
            ('"axes" has 1 twice', {"axes": [0, 1, 1]}),
            ('"axis" is 0; with "axes" it is one of them', {"axes": [1, 2]}),
            ('dimension 0 of "output", along which rows are reduced, is 2; it must be 1', {"axes": [0, 1], "output": tensor(memory.buffer, [2, 1, 6], dtype="f64", offset=8192)}),
            ('dimension 2 of "input" is 6 and of "output" 5', {"axes": [0, 1], "output": tensor(memory.buffer, [1, 1, 5], dtype="f64", offset=8192)}),
            ('"input" has 3 dimensions and "output" 1', {"axes": [0, 1], "output": tensor(memory.buffer, [6], dtype="f64", offset=8192)}),
            (r'dimension 2 of "input" is 6 and of "steps\[0\].other" 7', {"axes": [0, 1], "output": tensor(memory.buffer, [1, 1, 6], dtype="f64", offset=8192), "steps": [other]}),
            (r'"steps\[0\].operation" is "demean", but "axes" has 2 items; allowed then: steps that leave rows as long as they are and, last', {"axes": [0, 1], "steps": [{"operation": "demean"}]}),
            (r'"steps\[0\].operation" is "upsample", but "axes" has 2', {"axes": [0, 1], "steps": [{"operation": "upsample", "factor": 2}, *steps]}),
            ('"axes" has 2 items, but "offsets" makes rows along one', {"axes": [0, 1], "offsets": tensor(memory.buffer, [3], dtype="i64")}),
            ('field "axes"', {"axes": []}),
            ('field "axes"', {"axes": [0, 1, 2, 0, 1]}),
        ):
            with self.subTest(message=message):
                self.refused(client, "invalid", message, "job.run", {**job, **change})
        ring = [1 << 40, 1 << 40, 1 << 40]
        self.refused(client, "invalid", "rows of more than 2.64 samples", "job.run", {**job, "axes": [0, 1, 2], "input": tensor(memory.buffer, ring, strides=[0, 0, 0]), "output": tensor(memory.buffer, [1, 1, 1], dtype="f64", offset=8192)})


class Algorithms(ReduceTest):
    def test_by_name(self):
        client = self.client()
        kernels = client.kernels("reduce")
        self.assertEqual(len(kernels), 18)
        for kernel in kernels:
            by_atomics = kernel["name"] in ("tensor-norm-3", "tensor-norm-4", "tensor-norm-5")
            self.assertEqual((kernel["backend"], kernel["accumulators"], kernel["repeatable"]), ("cuda", ["f64"], int(not by_atomics)))
            for reduction in kernel["reductions"]:
                if BACKEND == "cuda":
                    self.check(client, [5, 700], 1, reduction, algorithm=kernel["name"])
                    self.check(client, [2, 40000], 1, reduction, algorithm=kernel["name"])
        if BACKEND != "cuda":
            memory = client.create(4096)
            job = reduce(tensor(memory.buffer, [9]), tensor(memory.buffer, [1], dtype="f64", offset=64), 0)
            message = '"reduce-v7", which this daemon\'s device cannot run; a daemon started with --device cuda can'
            self.refused(client, "unsupported", message, "job.submit", {**job, "algorithm": "reduce-v7"})

    def test_refusals(self):
        client = self.client()
        memory = client.create(4096)
        given, output = tensor(memory.buffer, [4, 9]), tensor(memory.buffer, [4, 1], dtype="f64", offset=1024)
        job = reduce(given, output)
        for message, change in (
            ('"algorithm" is "kogge-stone"; there are: reduce-v0, .*tensor-norm-5$', {"algorithm": "kogge-stone"}),
            ('"reduction" is "sum"; allowed with "algorithm" "norm-1": norm$', {"algorithm": "norm-1"}),
            ('"output.dtype" is "f32"; allowed .* f64', {"output": {**output, "dtype": "f32"}}),
            ("results lie 16 bytes apart; allowed .* 8", {"output": {**output, "strides": [16, 8]}}),
            ('"output" has the offset 1028 .* multiples of 8', {"output": {**output, "offset": 1028}}),
            ('"input" has the offset 2 .* multiples of 4', {"input": {**given, "offset": 2}}),
            ('the stride of "input" along the axis is 8', {"input": {**given, "strides": [72, 8]}}),
        ):
            self.refused(client, "invalid", message, "job.submit", {**job, "algorithm": "reduce-v7", **change})


class Refusals(ReduceTest):
    def test_fields(self):
        client = self.client()
        memory = client.create(4096)
        given, output = tensor(memory.buffer, [4, 9]), tensor(memory.buffer, [4, 1], dtype="f64", offset=1024)
        job = reduce(given, output)
        for field, value in {
            "passes": ["forward"],
            "kind": "exclusive",
            "op": "max",
            "accumulator": "f64",
            "intermediate": "f64",
            "demean": 1,
            "coefficient": 2.0,
        }.items():
            message = f'"{field}" is for "operation" "scan", but "operation" is "reduce"; leave it out'
            self.refused(client, "invalid", message, "job.submit", {**job, field: value})
        for message, change in (
            ('there is no "reduction"; give one of sum, min, max, mean, rms, norm', {"reduction": "none"}),
            ('"reduction" is "median"; allowed: none, sum, ', {"reduction": "median"}),
            ('"operation" is "map"; allowed: scan, reduce', {"operation": "map"}),
            ('"reduction" is "sum", which is for "operation" "reduce"', {"operation": "scan", "output": given}),
            ('field "passes" is missing', {"operation": "scan", "reduction": "none", "output": given}),
            ('dimension 1 of "output", .*, is 9; it must be 1', {"output": tensor(memory.buffer, [4, 9], offset=1024)}),
            ('dimension 0 of "input" is 4 and of "output" 5', {"output": tensor(memory.buffer, [5, 1], offset=1024)}),
            ("overlap; with .* keep them apart", {"output": {**output, "offset": 8}}),
            ('elements of "output" overlap', {"output": {**output, "strides": [4, 8]}}),
        ):
            self.refused(client, "invalid", message, "job.submit", {**job, **change})
        ragged = {"offsets": tensor(memory.buffer, [4], dtype="i64", offset=2048), "axis": 0, "input": tensor(memory.buffer, [9])}
        message = 'dimension 0 of "output" is 4; it must be 3, the rows that "offsets" makes'
        self.refused(client, "invalid", message, "job.submit", {**job, **ragged, "output": {**output, "shape": [4], "strides": [8]}})
        integers = reduce(tensor(memory.buffer, [9], dtype="i32"), tensor(memory.buffer, [1], dtype="i32", offset=64))
        message = '"reduction" is "mean", but "input.dtype" "i32" is of integers; allowed: sum, min, max'
        self.refused(client, "invalid", message, "job.submit", {**integers, "reduction": "mean"})
        message = '"output.dtype" is "f64"; allowed with "input.dtype" "i32": i32, i64, u32, u64'
        output = tensor(memory.buffer, [1], dtype="f64", offset=64)
        self.refused(client, "invalid", message, "job.submit", {**integers, "output": output})


if __name__ == "__main__":
    main()

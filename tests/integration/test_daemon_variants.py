#!/usr/bin/env python3
"""Operators, types and options of a job beside the plain f32 sum, compared with plain Python.

Samples are chosen so that every result is exact. A device that cannot do a variant yet must say so, and the test of it
counts as skipped.

    test_daemon_variants.py SCAND [unittest's arguments]
"""

import itertools
import math
import operator
import random

from daemons import BACKEND, DaemonTest, main
from forms import pack_dtype, scanned, unpack_dtype
from wire import SIZES, Failure, pack_f32, scan, tensor, unpack_f32

OPERATORS = {
    "sum": (operator.add, 0),
    "prod": (operator.mul, 1),
    "max": (max, -math.inf),
    "min": (min, math.inf),
}
INTEGERS = ("i32", "i64", "u32", "u64", "i64be", "u32be", "u64be")
PASSES = (("forward",), ("backward",), ("forward", "backward"))


class VariantTest(DaemonTest):
    def run_job(self, client, job):
        try:
            return client.call("job.submit", job)
        except Failure as failure:
            if failure.name != "unsupported":
                raise
            self.assertRegex(failure.error["message"], "this daemon's device cannot do this scan .* --device cpu can")
            self.skipTest(failure.error["message"])


class Operators(VariantTest):
    def test_operators(self):
        client = self.client()
        memory = client.create(4096)
        noise = random.Random(1)
        for op, kind, passes in itertools.product(OPERATORS, ("inclusive", "exclusive"), PASSES):
            for accumulator in ("f32", "f64", "f2"):
                rule = {"op": op, "kind": kind, "passes": passes, "accumulator": accumulator}
                row = [float(noise.choice((-1, 1) if op == "prod" else range(-9, 10))) for _ in range(600)]
                if op == "prod" and len(passes) == 1:
                    row[7] = row[590] = 2.0
                memory.write(pack_f32(row))
                with self.subTest(**rule):
                    self.run_job(client, scan(tensor(memory.buffer, [600]), **rule))
                    function, identity = OPERATORS[op]
                    expected = scanned(row, passes, kind == "exclusive", function=function, identity=identity)
                    self.assertEqual([str(v) for v in unpack_f32(memory.read(0, 2400))], [str(float(v)) for v in expected])


def is_integer(dtype):
    return dtype in INTEGERS


class Dtypes(VariantTest):
    def check(self, client, memory, source, target, row, in_place=False, **rule):
        count = len(row)
        memory.write(pack_dtype(source, row))
        given = tensor(memory.buffer, [count], dtype=source)
        output = tensor(memory.buffer, [count], dtype=target, offset=0 if in_place else 4096)
        with self.subTest(source=source, target=target, in_place=in_place, **rule):
            self.run_job(client, scan(given, output, **rule))
            found = memory.read(output["offset"], count * SIZES[target])
            function, identity = OPERATORS[rule.get("op", "sum")]
            expected = scanned(row, rule.get("passes", ["forward"]), rule.get("kind") == "exclusive", function=function)
            self.assertEqual(unpack_dtype(target, found), expected)

    def test_every_dtype_into_every_other(self):
        client = self.client()
        memory = client.create(16384)
        row = [1, 2, 3, 0, 5, 4, 1, 1, 0, 2] * 6  # all sums fit a bf16's 8 bits
        for source, target in itertools.product(SIZES, SIZES):
            if is_integer(source) != is_integer(target) or (is_integer(source) and SIZES[source] > SIZES[target]):
                with self.subTest(source=source, target=target):
                    given = tensor(memory.buffer, [4], dtype=source)
                    output = tensor(memory.buffer, [4], dtype=target, offset=4096)
                    message = f'"output.dtype" is "{target}"; allowed with "input.dtype" "{source}": [if]'
                    self.refused(client, "invalid", message, "job.submit", scan(given, output))
                continue
            self.check(client, memory, source, target, row)
            self.check(client, memory, source, target, row[:20], op="max", passes=["backward"])
            if SIZES[source] == SIZES[target]:
                self.check(client, memory, source, target, row, in_place=True)

    def test_integers_wrap(self):
        client = self.client()
        memory = client.create(16384)
        for dtype in INTEGERS:
            bits = 8 * SIZES[dtype]
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
            row = [high, 1, 5, high, low, 7]
            sums = [(value - low) % (1 << bits) + low for value in scanned(row, ["forward"])]
            memory.write(pack_dtype(dtype, row))
            with self.subTest(dtype=dtype):
                self.run_job(client, scan(tensor(memory.buffer, [6], dtype=dtype), accumulator="exact"))
                self.assertEqual(unpack_dtype(dtype, memory.read(0, 6 * SIZES[dtype])), sums)
            self.check(client, memory, dtype, dtype, row, op="max")
            self.check(client, memory, dtype, dtype, row, op="min")
            for op, identity in (("sum", 0), ("prod", 1), ("max", low), ("min", high)):
                memory.write(pack_dtype(dtype, [3]))
                with self.subTest(dtype=dtype, op=op):
                    self.run_job(client, scan(tensor(memory.buffer, [1], dtype=dtype), op=op, kind="exclusive"))
                    self.assertEqual(unpack_dtype(dtype, memory.read(0, SIZES[dtype])), [identity])

    def test_narrow_integers_in_wide_ones(self):
        client = self.client()
        memory = client.create(16384)
        self.check(client, memory, "i32", "i64", [-(2**31), -5, 2**31 - 1] * 9)
        self.check(client, memory, "u32", "u64", [2**32 - 1] * 30, passes=["forward", "backward"])

    def test_f64_keeps_its_digits(self):
        client = self.client()
        memory = client.create(16384)
        row = [2.0**-30, 1.0, 2.0**-31, 3.0] * 5
        for accumulator in ("auto", "f64", "f2"):
            for passes in PASSES:
                rule = {"accumulator": accumulator, "passes": passes, "intermediate": "f64"}
                self.check(client, memory, "f64", "f64", row, **rule)

    def test_what_is_left_out_keeps_digits(self):
        client = self.client()
        memory = client.create(32768)
        noise = random.Random(3)
        row = [noise.uniform(1, 2) for _ in range(1000)]
        small = {"accumulator": "f32", "intermediate": "f32"}

        def bits(dtype, **rule):
            memory.write(pack_dtype(dtype, row))
            given = tensor(memory.buffer, [len(row)], dtype=dtype)
            output = tensor(memory.buffer, [len(row)], dtype=dtype, offset=16384)
            self.run_job(client, scan(given, output, passes=["forward", "backward"], **rule))
            return memory.read(16384, len(row) * SIZES[dtype])

        for dtype, intermediate, other in [
            ("f64", "f64", {"intermediate": "f32"}),
            ("f32", "f32", small),
            ("i16be", "f32", small),
        ]:
            row = [round(value * 1000) for value in row] if dtype == "i16be" else row
            full = {"accumulator": "f64", "intermediate": intermediate}
            with self.subTest(dtype=dtype):
                self.assertEqual(bits(dtype), bits(dtype, **full))
                named = bits(dtype, then=[full | {"passes": ["forward"]}], **full)
                self.assertEqual(bits(dtype, then=[{"passes": ["forward"]}]), named)
                if dtype != "i16be":  # which saturates
                    self.assertNotEqual(bits(dtype), bits(dtype, **other))

    def test_combinations_that_are_refused(self):
        client = self.client()
        memory = client.create(4096)
        for dtype, more, message in [
            ("i32", {"accumulator": "f32"}, '"accumulator" is "f32"; allowed with "input.dtype" "i32": auto, exact'),
            ("f64", {"accumulator": "f32"}, '"accumulator" is "f32"; .* auto, f64, f2'),
            ("f16", {"accumulator": "exact"}, '"accumulator" is "exact"; .* auto, f32, f64, f2'),
            ("u64", {"intermediate": "f64"}, '"intermediate" is "f64", but "input.dtype" "u64" is of integers'),
            ("u64", {"intermediate": "f32"}, '"intermediate" is "f32", but "input.dtype" "u64" is of integers'),
            ("f32", {"intermediate": "bf16"}, '"intermediate" is "bf16"; allowed: auto, f64, f32'),
        ]:
            with self.subTest(dtype=dtype, **more):
                given = tensor(memory.buffer, [4], dtype=dtype)
                self.refused(client, "invalid", message, "job.submit", scan(given, **more))


class Options(VariantTest):
    def test_half(self):
        client = self.client()
        memory = client.create(16384)
        noise = random.Random(2)
        for dtype, accumulator in itertools.product(("f32", "f64", "bf16"), ("auto", "f64", "f2")):
            row = [noise.randint(-4, 4) * 2 for _ in range(40)]
            for backward in (False, True):
                ordered = row[::-1] if backward else row
                expected = [s - value / 2 for s, value in zip(scanned(ordered, ["forward"]), ordered)]
                expected = expected[::-1] if backward else expected
                memory.write(pack_dtype(dtype, row))
                passes = ["backward" if backward else "forward"]
                with self.subTest(dtype=dtype, accumulator=accumulator, passes=passes):
                    given = tensor(memory.buffer, [40], dtype=dtype)
                    self.run_job(client, scan(given, passes=passes, kind="half", accumulator=accumulator))
                    self.assertEqual(unpack_dtype(dtype, memory.read(0, 40 * SIZES[dtype])), expected)

    def test_demean(self):
        client = self.client()
        memory = client.create(1 << 20)
        noise = random.Random(3)
        for dtype, (rows, length), axis in itertools.product(
            ("f32", "f64", "i32be"), ((8, 64), (2, 32768)), (0, 1)
        ):
            if axis == 0:
                rows, length = length, rows
            columns = []  # along the axis: sums of pairs are 0, so that the mean is what is added
            for _ in range(rows):
                half = [noise.randint(-50, 50) for _ in range(length // 2)]
                columns.append(([v for pair in zip(half, half) for v in (pair[0], -pair[1])], noise.randint(-9, 9)))
            shape = [rows, length] if axis else [length, rows]
            lines = [[value + mean for value in row] for row, mean in columns]
            given = lines if axis else zip(*lines)
            memory.write(pack_dtype(dtype, [value for line in given for value in line]))
            with self.subTest(dtype=dtype, shape=shape, axis=axis):
                target = tensor(memory.buffer, shape, dtype=dtype)
                self.run_job(client, scan(target, axis=axis, demean=1))
                sums = [scanned(row, ["forward"]) for row, _ in columns]
                expected = [value for line in (sums if axis else zip(*sums)) for value in line]
                self.assertEqual(unpack_dtype(dtype, memory.read(0, rows * length * SIZES[dtype])), expected)

    def test_what_does_not_go_together(self):
        client = self.client()
        memory = client.create(4096)
        for dtype, more, message in [
            ("f32", {"kind": "half", "op": "prod"}, '"kind" is "half", which is for "op" "sum"; allowed with "prod"'),
            ("u32", {"kind": "half"}, '"kind" is "half", but "input.dtype" "u32" is of integers'),
            ("i64", {"demean": 1}, '"demean" is 1, but "input.dtype" "i64" is of integers'),
            ("f32", {"demean": 2}, '"demean" is 2; allowed: 0 to 1'),
        ]:
            with self.subTest(dtype=dtype, **more):
                given = tensor(memory.buffer, [4], dtype=dtype)
                self.refused(client, "invalid", message, "job.submit", scan(given, **more))


class Algorithms(DaemonTest):
    """Variants of the tutorials, each on the device that it is for, and refused by the other."""

    def names(self, backend=BACKEND):
        kernels = self.neighbour.kernels("scan")
        names = [kernel["name"] for kernel in kernels if kernel["backend"] == backend]
        self.assertTrue(names)
        return names

    def test_names(self):
        kernels = self.neighbour.kernels("scan")
        for kernel in kernels:
            self.assertEqual(list(kernel), ["name", "line", "backend", "accumulators", "repeatable"])
            self.assertIn(kernel["accumulators"], (["f32"], ["f32", "f64", "f2"]))
        self.assertEqual([kernel["name"] for kernel in kernels if not kernel["repeatable"]], ["cub-by-key"])

    def test_sums(self):
        client = self.client()
        memory = client.create(1 << 20)
        noise = random.Random(4)
        for name, (rows, length, gap), passes in itertools.product(
            self.names(), ((1, 1, 0), (3, 1000, 0), (40, 33, 7), (2, 5000, 1)), PASSES
        ):
            for in_place in (False, True):
                lines = [[noise.randint(-1, 1) for _ in range(length)] for _ in range(rows)]
                memory.write(pack_f32([value for line in lines for value in line + [7] * gap]))
                strides = [(length + gap) * 4, 4]
                given = tensor(memory.buffer, [rows, length], strides)
                output = given if in_place else tensor(memory.buffer, [rows, length], offset=1 << 19)
                with self.subTest(name=name, rows=rows, length=length, passes=passes, in_place=in_place):
                    client.call("job.submit", scan(given, output, passes=passes, algorithm=name))
                    found = unpack_f32(memory.read(output["offset"], rows * output["strides"][0]))
                    step = output["strides"][0] // 4
                    for row, line in enumerate(lines):
                        self.assertEqual(found[row * step : row * step + length], scanned(line, passes))

    def test_chunks_and_rows_that_fit_no_slot(self):
        client = self.client()
        for rows, length in ((2000, 5000), (1, 5 << 20)):
            memory = client.create(rows * length * 4)
            for name in self.names():
                memory.write(pack_f32([1.0]) * (rows * length))
                with self.subTest(name=name, rows=rows, length=length):
                    client.call("job.submit", scan(tensor(memory.buffer, [rows, length]), algorithm=name))
                    row = memory.read((rows - 1) * length * 4, length * 4)
                    self.assertEqual(unpack_f32(row[:40]) + unpack_f32(row[-4:]), [*range(1, 11), length])
            client.call("buffer.release", buffer=memory.buffer)

    def test_device_memory(self):
        """Up into device memory, in place there and into another buffer, and down again: five sums of 30 samples."""
        client = self.client()
        rows, length, gap = 9, 30, 15
        memory = client.create(8192)
        buffers = [memory.buffer] + [client.call("buffer.create", size=8192, place="device")["buffer"] for _ in range(2)]
        host, near, far = (tensor(buffer, [rows, length], [(length + gap) * 4, 4], offset=60) for buffer in buffers)
        noise = random.Random(5)
        for name in self.names():
            lines = [[noise.randint(-1, 1) for _ in range(length)] for _ in range(rows)]
            memory.write(pack_f32([7] * gap + [value for line in lines for value in line + [7] * gap]))
            with self.subTest(name=name):
                for given, output, passes in (
                    (host, near, ["forward"]),
                    (near, near, ["backward"]),
                    (near, far, ["forward", "backward"]),
                    (far, host, ["backward"]),
                ):
                    client.call("job.submit", scan(given, output, passes=passes, algorithm=name))
                    lines = [scanned(line, passes) for line in lines]
                expected = [7] * gap + [value for line in lines for value in line + [7] * gap]
                self.assertEqual(unpack_f32(memory.read(0, 4 * len(expected))), expected)

    def test_on_the_other_device(self):
        client = self.client()
        memory = client.create(4096)
        can = "cpu" if BACKEND == "cuda" else "cuda"
        for name in self.names(can):
            with self.subTest(name=name):
                message = f'"algorithm" is "{name}", which this .* cannot run; a daemon started with --device {can} can'
                given = scan(tensor(memory.buffer, [100]), algorithm=name)
                self.refused(client, "unsupported", message, "job.submit", given)

    def test_refused(self):
        client = self.client()
        memory = client.create(4096)
        given = tensor(memory.buffer, [10, 10])
        for more, message in [
            ({"algorithm": "fastest"}, '"algorithm" is "fastest"; there are: serial-cpu, smem-v0-pad0, .*cub-by-key$'),
            ({"algorithm": "x" * 64}, '"algorithm" has 64 bytes; allowed: 0 to 63'),
            ({"algorithm": 1}, '"algorithm" is an integer; expected: text'),
            ({"algorithm": "warp-v0", "op": "max"}, '"op" is "max"; allowed with "algorithm" "warp-v0": sum'),
            ({"algorithm": "coarsened", "accumulator": "f64"}, '"accumulator" is "f64"; .* "coarsened": auto, f32$'),
            ({"algorithm": "warp-v0", "axis": 0}, 'the stride of "input" along the axis is 40; allowed .*: 4'),
        ]:
            with self.subTest(**more):
                self.refused(client, "invalid", message, "job.submit", scan(given, **more))
        memory.write(pack_f32([1] * 100))
        client.call("job.submit", scan(given, algorithm=""))  # order 1
        self.assertEqual(unpack_f32(memory.read(0, 400)), list(range(1, 11)) * 10)


if __name__ == "__main__":
    main()

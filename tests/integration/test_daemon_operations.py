#!/usr/bin/env python3
"""Chains of operations of which steps change the length of rows, or have operands of their own: every byte is what separate
jobs leave that keep the values between them in a tensor of the output's dtype.

    test_daemon_operations.py SCAND [unittest's arguments]
"""

import itertools
import math
import random
import struct

from daemons import BACKEND, main
from forms import pack_dtype
from operations_rig import BOTH, DEMEAN, FORWARD, SUM, OperationsTest, block_sum, diff, dot, mapped, recurrence, upsample
from wire import SIZES, tensor


class Upsampling(OperationsTest):
    def test_definition(self):
        client = self.client()
        memory = client.create(4096)
        memory.write(struct.pack("<6f", 1, 2, 3, 4, 5, 6))
        given, made = tensor(memory.buffer, [2, 3]), tensor(memory.buffer, [2, 9], dtype="f64", offset=1024)
        client.call("job.run", input=given, output=made, axis=1, steps=[upsample(3)])
        self.assertEqual(struct.unpack("<18d", memory.read()[1024:1168]), tuple(float(i // 3 + 1) for i in range(18)))
        made = tensor(memory.buffer, [4, 3], offset=1024)
        client.call("job.run", input=given, output=made, axis=0, steps=[upsample(2)])
        self.assertEqual(struct.unpack("<12f", memory.read()[1024:1072]), (1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6))


class BlockSums(OperationsTest):
    def test_definition(self):
        client = self.client()
        memory = client.create(4096)
        memory.write(struct.pack("<12f", *range(12)))
        given, made = tensor(memory.buffer, [2, 6]), tensor(memory.buffer, [2, 2], dtype="f64", offset=1024)
        client.call("job.run", input=given, output=made, axis=1, steps=[block_sum(3)])
        self.assertEqual(struct.unpack("<4d", memory.read()[1024:1056]), (3, 12, 21, 30))
        made = tensor(memory.buffer, [1, 6], offset=1024)
        client.call("job.run", input=given, output=made, axis=0, steps=[block_sum(2)])
        self.assertEqual(struct.unpack("<6f", memory.read()[1024:1048]), (6, 8, 10, 12, 14, 16))

    def test_chains(self):
        client = self.client()
        for shape in ([12], [40, 1200], [3, 24, 5], [3, 0], [0, 12]):
            for axis, steps in itertools.product(
                range(len(shape)), ([FORWARD, upsample(3), block_sum(3), BOTH], [upsample(4), block_sum(2), block_sum(2), SUM]),
            ):
                self.check(client, shape, axis, steps)
        self.check(client, [1, 4 << 20], 1, [block_sum(2)], ("f32", "f32"))
        self.check(client, [9, 1100], 1, [block_sum(11), FORWARD], ("i32", "i64"))

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 33], offset=8192)
        self.refuse(
            client, '"steps[1].factor" is 3, but the step takes rows of 100 samples; allowed: a factor of which the length is a multiple',
            input=rows, output=made, axis=1, steps=[FORWARD, block_sum(3)],
        )
        self.refuse(client, '"steps[0].factor" is 0; allowed: 1 to 65536', input=rows, output=made, axis=1, steps=[block_sum(0)])
        message = 'field "steps[0].factor" is 18446744073709551615; allowed: 1 to 65536'
        self.refuse(client, message, input=rows, output=made, axis=1, steps=[block_sum(2**64 - 1)])
        offsets = tensor(memory.buffer, [3], dtype="i64", offset=32768)
        self.refuse(
            client, '"steps[0].operation" is "block-sum", which changes the length of rows, but "offsets" makes rows of lengths of their own',
            input=tensor(memory.buffer, [100]), output=tensor(memory.buffer, [50], offset=8192), axis=0, offsets=offsets, steps=[block_sum(2)],
        )


class Differences(OperationsTest):
    def test_definition(self):
        client = self.client()
        memory = client.create(4096)
        memory.write(struct.pack("<6f", 1, 3, 7, 5, 5, 2))
        given, made = tensor(memory.buffer, [2, 3]), tensor(memory.buffer, [2, 3], dtype="f64", offset=1024)
        for axis, step, expected in (
            (1, diff("first"), (1, 2, 4, 5, 0, -3)),
            (1, diff("second"), (1, 1, 2, 5, -5, -3)),
            (1, diff("derivative", dt=0.5), (3, 5, 10, 15, -5, -9)),
            (0, diff("first"), (1, 3, 7, 4, 2, -5)),
        ):
            client.call("job.run", input=given, output=made, axis=axis, steps=[step])
            self.assertEqual(struct.unpack("<6d", memory.read()[1024:1072]), expected)

    def test_undoes_scans(self):
        """Differences undo scans of whole numbers, whose sums are exact."""
        client = self.client()
        for dtype in "f32", "f64", "i32", "u64":
            memory, made = self.noise(client, dtype, 40 * 300), client.create(40 * 300 * SIZES[dtype])
            shape = {"shape": [40, 300], "dtype": dtype}
            rows, results = tensor(memory.buffer, **shape), tensor(made.buffer, **shape)
            for axis, steps in (1, [FORWARD, diff("first")]), (0, [FORWARD, FORWARD, diff("second")]):
                client.call("job.run", input=rows, output=results, axis=axis, steps=steps)
                self.assertEqual(made.read()[: made.size], memory.read()[: made.size])

    def test_chains(self):
        client = self.client()
        steps = [FORWARD, diff("second"), upsample(2), diff("derivative", dt=0.004), BOTH, SUM]
        for shape in ([12], [40, 1200], [3, 24, 5], [3, 0], [0, 12], [3000, 3]):
            for axis in range(len(shape)):
                self.check(client, shape, axis, steps)
        self.check(client, [1, 4 << 20], 1, [diff("first")], ("f32", "f32"))
        self.check(client, [9, 1100], 1, [diff("first"), FORWARD], ("i32", "i64"))
        self.check(client, [1000], 0, [diff("first"), FORWARD, diff("second")], ("f32", "f32"), offsets=[3, 3, 10, 400, 401, 990])

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 100], offset=8192)
        for dt in 0.0, -1.0, 1e-31, 1e31, math.inf, math.nan:
            message = f'"steps[1].dt" is {dt:g}; allowed with "kind" "derivative": 1e-30 to 1e+30'
            self.refuse(client, message, input=rows, output=made, axis=1, steps=[FORWARD, diff("derivative", dt=dt)])
        message = '"steps[0].dt" is missing; allowed with "kind" "derivative": 1e-30 to 1e+30'
        self.refuse(client, message, input=rows, output=made, axis=1, steps=[diff("derivative")])
        message = '"steps[0].dt" is 0.5, which "kind" "first" has no use for; leave it out'
        self.refuse(client, message, input=rows, output=made, axis=1, steps=[diff("first", dt=0.5)])
        whole = {"input": {**rows, "dtype": "i32"}, "output": {**made, "dtype": "i32"}}
        message = '"steps[0].kind" is "derivative"; allowed with "input.dtype" "i32": first, second'
        self.refuse(client, message, axis=1, steps=[diff("derivative", dt=1.0)], **whole)
        self.refuse(client, 'field "steps[0].kind" is', input=rows, output=made, axis=1, steps=[diff("third")])
        self.refuse(client, 'field "steps[0].kind" is missing', input=rows, output=made, axis=1, steps=[{"operation": "diff"}])
        self.refuse(
            client, '"input" and "output" are the same elements, but "steps[0].operation" is "diff", which does not work in place',
            input=rows, output=rows, axis=1, steps=[diff("first")],
        )


class DotProducts(OperationsTest):
    def test_definition(self):
        client = self.client()
        memory = client.create(4096)
        memory.write(struct.pack("<6f", 1, 2, 3, 4, 5, 6))
        rows, made = tensor(memory.buffer, [2, 3]), tensor(memory.buffer, [2, 1], dtype="f64", offset=1024)
        client.call("job.run", input=rows, output=made, axis=1, steps=[dot(rows)])
        self.assertEqual(struct.unpack("<2d", memory.read()[1024:1040]), (14, 77))
        shared = tensor(memory.buffer, [2, 3], [0, 4])
        client.call("job.run", input=rows, output=made, axis=1, steps=[dot(shared)])
        self.assertEqual(struct.unpack("<2d", memory.read()[1024:1040]), (14, 32))
        made = tensor(memory.buffer, [1, 3], offset=1024)
        client.call("job.run", input=rows, output=made, axis=0, steps=[FORWARD, dot(rows)])
        self.assertEqual(struct.unpack("<3f", memory.read()[1024:1036]), (1 + 5 * 4, 2 * 2 + 7 * 5, 3 * 3 + 9 * 6))

    def test_sums(self):
        """Against sums that are rounded once."""
        client = self.client()
        values = random.Random(8)
        for rows, length in (1, 1), (3, 1000), (2, 70001):
            x, y = ([values.uniform(-1, 1) for _ in range(rows * length)] for _ in range(2))
            memory, results = client.create(16 * rows * length), client.create(8 * rows)
            memory.write(struct.pack(f"<{2 * rows * length}d", *x, *y))
            given = tensor(memory.buffer, [rows, length], dtype="f64")
            other = {**given, "offset": 8 * rows * length}
            client.call("job.run", input=given, output=tensor(results.buffer, [rows, 1], dtype="f64"), axis=1, steps=[dot(other)])
            for r, result in enumerate(struct.unpack(f"<{rows}d", results.read()[: 8 * rows])):
                exact = math.fsum(x[r * length + i] * y[r * length + i] for i in range(length))
                self.assertLess(abs(result - exact), 1e-12 * length**0.5)

    def test_chains(self):
        client = self.client()
        memory = self.noise(client, "f32", 40 * 300)
        for shape, axis in ([40, 100], 1), ([40, 100], 0), ([4, 10, 100], 1), ([4, 0, 10], 1):
            wide = [3 * n if k == axis else n for k, n in enumerate(shape)]
            self.check(client, shape, axis, [dot(tensor(memory.buffer, shape))])
            self.check(client, shape, axis, [BOTH, upsample(3), FORWARD, dot(tensor(memory.buffer, wide))], ("f32", "f32"))
        self.check(client, [1000], 0, [FORWARD, dot(tensor(memory.buffer, [1000]))], ("f32", "f32"), offsets=[3, 3, 10, 400, 401, 990])
        self.check(client, [600, 20000], 1, [dot(tensor(memory.buffer, [600, 20000], [0, 0]))], ("f32", "f32"))
        numbers = self.noise(client, "i64", 600)
        self.check(client, [6, 100], 1, [dot(tensor(numbers.buffer, [6, 100], dtype="i64"))], ("i32", "i64"))

    def test_dot_of_long_rows(self):
        """Divided among threads: what is exact shows that each sample is there once."""
        client = self.client()
        memory = client.create(4 << 20)
        count, half = (1 << 24) + 12345, 1 << 19
        memory.write(struct.pack("<2f", 3, 0.5))
        both = [tensor(memory.buffer, [2, count], [4, 0]), tensor(memory.buffer, [2, count], [0, 0])]
        client.call("job.run", input=both[0], output=tensor(memory.buffer, [2, 1], dtype="f64", offset=64), axis=1, steps=[dot(both[1])])
        self.assertEqual(struct.unpack("<2d", memory.read(64, 16)), (9 * count, 1.5 * count))
        memory.write(struct.pack(f"<{half}i", *range(half)))
        whole = tensor(memory.buffer, [4, half // 4], dtype="i32")
        client.call("job.run", input=whole, output=tensor(memory.buffer, [1, 1], dtype="i64", offset=4 * half), axis=0, axes=[0, 1], steps=[dot(whole)])
        self.assertEqual(struct.unpack("<q", memory.read(4 * half, 8))[0], sum(i * i for i in range(half)))

    def test_refusals(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 1], offset=8192)
        job = {"input": rows, "output": made, "axis": 1}
        self.refuse(client, 'field "steps[0].other" is missing', **job, steps=[{"operation": "dot"}])
        self.refuse(
            client, '"steps[0].other.dtype" is "f64"; allowed with "input.dtype" "f32": f32, f16', **job,
            steps=[dot(tensor(memory.buffer, [4, 100], dtype="f64"))],
        )
        self.refuse(client, 'dimension 1 of "input" is 100 and of "steps[0].other" 99; they must be equal', **job, steps=[dot(tensor(memory.buffer, [4, 99]))])
        self.refuse(client, '"steps[0].other" (bytes 8000 to', **job, steps=[dot({**rows, "offset": 8000})])
        message = '"steps[1].operation" is "scan", which takes rows of samples, but "dot" before it leaves one element for each row; '
        self.refuse(client, message, **job, steps=[dot(rows), FORWARD])
        message = '"steps[0].operation" is "dot", and a row that it takes has 16777217 samples; allowed: up to 16777216; '
        long = tensor(memory.buffer, [1, (1 << 24) + 1], [0, 0])
        results = tensor(memory.buffer, [1, 1], offset=8192)
        self.refuse(client, message, input=long, output=results, axis=1, steps=[dot(long)], algorithm="dot-atomic")
        offsets, count = tensor(memory.buffer, [2], dtype="i64", offset=32768), (1 << 24) + 1
        memory.write(struct.pack("<2q", 0, count), offset=32768)
        line = tensor(memory.buffer, [count], [0])
        self.refuse(client, message, input=line, output=tensor(memory.buffer, [1], offset=8192), axis=0, offsets=offsets, steps=[dot(line)])
        wide = tensor(client.create((1 << 24) + 1).buffer, [1, (1 << 24) + 1], dtype="i8")
        self.refuse(client, message.replace("dot", "demean"), input=long, output=wide, axis=1, steps=[DEMEAN])


class Maps(OperationsTest):
    def values(self, client, given, steps, dtypes=("f32", "f64"), **rest):
        """Returns what becomes of a row."""
        memory = client.create(4096)
        memory.write(pack_dtype(dtypes[0], given))
        row, made = tensor(memory.buffer, [len(given)], dtype=dtypes[0]), tensor(memory.buffer, [len(given)], dtype=dtypes[1], offset=1024)
        client.call("job.run", input=row, output=made, axis=0, steps=steps, **rest)
        read = memory.read()[1024 : 1024 + SIZES[dtypes[1]] * len(given)]
        client.call("buffer.release", buffer=memory.buffer)
        return struct.unpack("<%d%s" % (len(given), {"f32": "f", "f64": "d", "i32": "i", "u32": "I", "i64": "q"}[dtypes[1]]), read)

    def test_definition(self):
        client = self.client()
        given = (4, 9, 0.25, -2)
        for step, expected in (
            (mapped("add", by=1.5), (5.5, 10.5, 1.75, -0.5)),
            (mapped("sub", by=1.5), (2.5, 7.5, -1.25, -3.5)),
            (mapped("mul", by=-2.0), (-8, -18, -0.5, 4)),
            (mapped("div", by=0.5), (8, 18, 0.5, -4)),
            (mapped("min", by=0.0), (0, 0, 0, -2)),
            (mapped("max", by=1), (4, 9, 1, 1)),
            (mapped("abs"), (4, 9, 0.25, 2)),
            (mapped("neg"), (-4, -9, -0.25, 2)),
            (mapped("clip", low=-1.0, high=5.0), (4, 5, 0.25, -1)),
            (mapped("clip", low=0.0, high=math.inf), (4, 9, 0.25, 0)),
            (mapped("cast"), given),
        ):
            with self.subTest(step=step):
                self.assertEqual(self.values(client, given, [step]), expected)
        self.assertEqual(self.values(client, given[:3], [mapped("sqrt")]), (2, 3, 0.5))
        for dtypes, close in (("f64", "f64"), 1e-15), (("f32", "f32"), 1e-7):
            for op, function in ("exp", math.exp), ("log", math.log):
                for value, made in zip(given, self.values(client, given[:3], [mapped(op)], dtypes)):
                    self.assertAlmostEqual(made / function(value), 1, delta=close)

    def test_integers(self):
        client = self.client()
        given = (5, -7, 2**31 - 1, -(2**31))
        self.assertEqual(self.values(client, given, [mapped("add", by=1)], ("i32", "i32")), (6, -6, -(2**31), 1 - 2**31))
        self.assertEqual(self.values(client, given, [mapped("add", by=1)], ("i32", "i64")), (6, -6, 2**31, 1 - 2**31))
        self.assertEqual(self.values(client, given, [mapped("abs")], ("i32", "i32")), (5, 7, 2**31 - 1, -(2**31)))
        self.assertEqual(self.values(client, given, [mapped("clip", low=-9, high=9)], ("i32", "i32")), (5, -7, 9, -9))

    def test_casts(self):
        client = self.client()
        self.assertEqual(self.values(client, (2.9, -2.9, math.nan, 3e9), [mapped("cast")], ("f64", "i32")), (2, -2, 0, 2**31 - 1))
        self.assertEqual(self.values(client, (2.9, -2.9, math.inf, 3e9), [mapped("cast")], ("f64", "u32")), (2, 0, 2**32 - 1, 3 * 10**9))
        steps = [mapped("cast"), mapped("mul", by=0.5), FORWARD]
        self.assertEqual(self.values(client, (1, 2, -7), steps, ("i32", "f32")), (0.5, 1.5, -2))

    def test_other(self):
        """A matrix, a vector for all rows, a number for each, of the first step and of a later one."""
        client = self.client()
        memory = client.create(40 * 300 * 4)
        memory.write(struct.pack("<12000f", *random.Random(5).choices((0.25, 0.5, -0.5), k=12000)))
        for strides in [1200, 4], [0, 4], [1200, 0], [4, 160], [0, 0]:
            other = tensor(memory.buffer, [40, 300], strides)
            for steps in (
                [FORWARD, mapped("mul", other=other)],
                [mapped("add", other=other), upsample(1), mapped("max", other=other), FORWARD, SUM],
                [FORWARD, upsample(2), block_sum(2), mapped("sub", other=other)],
            ):
                for axis in 0, 1:
                    self.check(client, [40, 300], axis, steps, ("f32", "f32"))
        offsets = [3, 3, 10, 400, 401, 990]
        line = tensor(memory.buffer, [1000])
        self.check(client, [1000], 0, [mapped("sub", other=line), FORWARD, mapped("exp"), SUM], ("f32", "f32"), offsets=offsets)

    def test_in_place(self):
        client = self.client()
        memory = self.noise(client, "f32", 9 * 1000)
        before = struct.unpack("<9000f", memory.read()[:36000])
        rows = tensor(memory.buffer, [9, 1000])
        for axis in 0, 1:
            client.call("job.run", input=rows, output=rows, axis=axis, steps=[mapped("mul", by=2.0)])
        self.assertEqual(struct.unpack("<9000f", memory.read()[:36000]), tuple(4 * value for value in before))
        client.call("job.run", input=rows, output={**rows, "dtype": "i32"}, axis=1, steps=[mapped("cast")])
        self.assertEqual(struct.unpack("<9000i", memory.read()[:36000]), tuple(int(4 * value) for value in before))

    def test_several_chunks(self):
        client = self.client()
        both = ("f32", "f32")
        self.check(client, [500, 5000], 1, [mapped("exp"), mapped("log")], both)
        self.check(client, [1, 2 << 20], 1, [mapped("sqrt"), mapped("neg")], both)

    def test_zero_is_a_number(self):
        client = self.client()
        memory = client.create(64)
        row = tensor(memory.buffer, [4])
        for op, expected in ("add", (1, -2, 3, -4)), ("mul", (0, -0.0, 0, -0.0)), ("max", (1, 0, 3, 0)), ("div", (math.inf, -math.inf) * 2):
            memory.write(struct.pack("<4f", 1, -2, 3, -4))
            client.call("job.run", input=row, output=row, axis=0, steps=[mapped(op, by=0.0)])
            self.assertEqual(struct.unpack("<4f", memory.read()[:16]), expected)

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 100], offset=8192)
        other = tensor(memory.buffer, [4, 100], offset=16384)
        missing = '"steps[0].by" is missing, and so is "other"; allowed with "op" "{}": a number, or a tensor as "other"'
        for step, message in (
            (mapped("mul"), missing.format("mul")),
            (mapped("max"), missing.format("max")),
            (mapped("add", by=0.0, other=other), '"steps[0].by" is 0, but "other" is given, too; allowed: one of them'),
            (mapped("abs", by=0.0), '"steps[0].by" is given, which "op" "abs" has no use for; leave it out'),
            (mapped("add", by=1.5, other=other), '"steps[0].by" is 1.5, but "other" is given, too; allowed: one of them'),
            (mapped("add", by=math.nan), '"steps[0].by" is nan; allowed: numbers'),
            (mapped("add", by=1e300), '"steps[0].by" is 1e+300; allowed with "input.dtype" "f32": what f32 holds, up to 3.40282e+38'),
            (mapped("abs", by=1.0), '"steps[0].by" is given, which "op" "abs" has no use for; leave it out'),
            (mapped("abs", other=other), '"steps[0].other" is given, which "op" "abs" has no use for; leave it out'),
            (mapped("add", by=1.0, high=1.0), '"steps[0].high" is given, which "op" "add" has no use for; leave it out'),
            (mapped("clip"), '"steps[0].low" is missing; allowed with "op" "clip": a number, beside "high"; where there is one bound, take "op" "max" or'),
            (mapped("clip", high=1.0), '"steps[0].low" is missing; allowed with "op" "clip": a number, beside "high"'),
            (mapped("clip", low=-1.0), '"steps[0].high" is missing; allowed with "op" "clip": a number, beside "low"'),
            (mapped("clip", low=2.0, high=1.0), '"steps[0].low" is 2, and "high" is 1; allowed with "op" "clip": less than "high"'),
            (mapped("clip", low=math.nan, high=1.0), '"steps[0].low" is nan; allowed: numbers'),
            (mapped("pow"), 'field "steps[0].op" is'),
            ({"operation": "map"}, 'field "steps[0].op" is missing'),
            (mapped("add", other={**other, "dtype": "f64"}), '"steps[0].other.dtype" is "f64"; allowed with "input.dtype" "f32": f32,'),
            (mapped("add", other={**other, "shape": [4, 99]}), 'dimension 1 of "input" is 100 and of "steps[0].other" 99; they must be equal'),
            (mapped("add", other={**other, "offset": 8000}), '"steps[0].other" (bytes 8000 to 9600) and "output" (bytes 8192 to 9792) of buffer'),
        ):
            with self.subTest(message=message):
                self.refuse(client, message, input=rows, output=made, axis=1, steps=[step])
        whole = {"input": {**rows, "dtype": "u32"}, "output": {**made, "dtype": "u32"}}
        message = '"steps[0].op" is "exp"; allowed with "input.dtype" "u32": add, sub, mul, min, max, abs, neg, clip, cast'
        self.refuse(client, message, axis=1, steps=[mapped("exp")], **whole)
        for by in 0.5, -1.0, 1e300:
            message = f'"steps[0].by" is {by:g}; allowed with "input.dtype" "u32": whole numbers from 0 to 2^53'
            self.refuse(client, message, axis=1, steps=[mapped("add", by=by)], **whole)
        message = '"output.dtype" is "i32"; allowed with "input.dtype" "f32": f32, f64, f16, bf16, f32be, i16be, i32be, ibm32, i8, u8, i16, u16, u16be, i32le, ibm32le, f64be; for others take a step before with "operation" "map", "op" "cast"'
        self.refuse(client, message, input=rows, output={**made, "dtype": "i32"}, axis=1, steps=[mapped("abs")])


class Chains(OperationsTest):
    def test_shapes_and_axes(self):
        client = self.client()
        for shape in ([1], [7], [3, 5], [40, 1000], [6, 5, 70], [2, 3, 4, 50], [3, 0], [0, 3], [3000, 3]):
            for axis, steps in itertools.product(range(len(shape)), ([FORWARD, upsample(3)], [upsample(2), BOTH, SUM])):
                with self.subTest(shape=shape, axis=axis, steps=steps):
                    self.check(client, shape, axis, steps)

    def test_memories(self):
        """Values between steps move from one memory to another, or stay where they are."""
        client = self.client()
        for steps in (
            [upsample(2), upsample(3)],
            [upsample(2), upsample(1), upsample(3)],
            [upsample(5), FORWARD, FORWARD, upsample(2), BOTH],
            [FORWARD, upsample(1), FORWARD, upsample(1), upsample(1), SUM],
            [upsample(2)] * 9,
        ):
            with self.subTest(steps=[step["operation"] for step in steps]):
                self.check(client, [13, 21], 1, steps)

    def test_dtypes(self):
        client = self.client()
        for dtypes in ("f32", "f32"), ("f64", "f32"), ("f16", "bf16"), ("i16be", "f64"), ("ibm32", "f32be"), ("i32", "i64"), ("u32", "u32"):
            with self.subTest(dtypes=dtypes):
                self.check(client, [9, 1100], 1, [upsample(2), FORWARD, upsample(2)], dtypes)

    def test_layouts(self):
        """A broadcast row, columns, and rows with gaps."""
        client = self.client()
        for strides, axis, shape in ([0, 4], 1, [40, 100]), ([4, 160], 0, [40, 100]), ([400, 4, 16], 1, [10, 4, 25]):
            self.check(client, shape, axis, [upsample(3), FORWARD], strides=strides)

    def test_several_chunks(self):
        """Chunks of 16 MiB each, in one of which a row is alone, and one of a single step that takes long."""
        client = self.client()
        both = ("f32", "f32")
        self.check(client, [500, 2000], 1, [FORWARD, upsample(5)], both)
        self.check(client, [2, 1 << 18], 1, [upsample(8), BOTH], both)
        self.check(client, [1, 4 << 20], 1, [upsample(2)], both)

    def test_cancelled(self):
        """A job is cancelled whose work takes a processor minutes, beside which another client's small job is done."""
        client, other = self.client(), self.client()
        memory, results, few = client.create(1 << 16), client.create(1 << 22), other.create(1 << 16)
        rows = tensor(memory.buffer, [1 << 20, 2000], [0, 4])
        msgid = client.send(
            "job.run", input=rows, output=tensor(results.buffer, [1 << 20, 1]), axis=1, steps=[upsample(500), FORWARD, SUM],
        )
        row = tensor(few.buffer, [1, 100])
        for step in upsample(1), FORWARD:
            other.call("job.run", input=row, output={**row, "offset": 4096}, axis=1, steps=[step])
        client.call("job.cancel", job=msgid)
        self.fails(client, msgid, "cancelled", "job.run: ")
        self.assertEqual(other.call("server.stats")["jobs_open"], 0)

    def test_in_place(self):
        """Several steps may work in place, whatever each of them could do."""
        client = self.client()
        memory = self.noise(client, "f32", 9 * 1000)
        rows = tensor(memory.buffer, [9, 1000])
        client.call("job.run", input=rows, output=rows, axis=1, steps=[FORWARD])
        client.call("job.run", input=rows, output=rows, axis=1, steps=[BOTH])
        expected = memory.read()
        again = self.noise(client, "f32", 9 * 1000)
        rows = tensor(again.buffer, [9, 1000])
        client.call("job.run", input=rows, output=rows, axis=1, steps=[FORWARD, upsample(1), BOTH])
        self.assertTrue(again.read() == expected)

    def test_ragged_rows(self):
        client = self.client()
        factors = self.noise(client, "f32", 1000)
        steps = [FORWARD, recurrence(tensor(factors.buffer, [1000]))]
        offsets = [3, 3, 10, 400, 401, 990]
        self.check(client, [1000], 0, [*steps, SUM], ("f32", "f32"), offsets=offsets)
        self.check(client, [1000], 0, [FORWARD, upsample(1), block_sum(1), BOTH], offsets=[0, *offsets, 1000])

    def test_operands_of_later_steps(self):
        """Coefficients for each sample, as the step takes them."""
        client = self.client()
        memory = client.create(40 * 300 * 4)
        memory.write(struct.pack("<12000f", *random.Random(5).choices((0.25, 0.5, -0.5), k=12000)))
        wide, shared = tensor(memory.buffer, [40, 300]), tensor(memory.buffer, [40, 300], [0, 4])
        narrow = tensor(memory.buffer, [40, 100], offset=40)
        for steps in (
            [FORWARD, recurrence(narrow)],
            [upsample(3), recurrence(wide)],
            [upsample(3), recurrence(shared), FORWARD, SUM],
            [recurrence(narrow), upsample(3), recurrence(wide), BOTH],
        ):
            self.check(client, [40, 100], 1, steps, ("f32", "f32"))


class Refusals(OperationsTest):
    def test_lengths(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, wide = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 300], offset=8192)
        self.refuse(
            client, 'dimension 1 of "output" is 300; it must be 200, which the steps before it make of the 100 of "input"',
            input=rows, output=wide, axis=1, steps=[FORWARD, upsample(2)],
        )
        self.refuse(
            client, 'dimension 1 of "steps[1].coefficients" is 100; it must be 300, which',
            input=rows, output=wide, axis=1, steps=[upsample(3), recurrence(rows)],
        )
        self.refuse(client, '"steps[1].factor" is 0; allowed: 1 to 65536', input=rows, output=wide, axis=1, steps=[FORWARD, upsample(0)])
        self.refuse(client, 'field "steps[0].factor" is 65537; allowed: 1 to 65536', input=rows, output=wide, axis=1, steps=[upsample(65537)])
        message = '"steps[2].operation" is "upsample", which would leave rows of more than 8589934592 elements each, as it takes rows of 6553600; '
        self.refuse(client, message, input=rows, output=wide, axis=1, steps=[FORWARD, upsample(65536), upsample(65536)])

    def test_between_is_bounded(self):
        """The memory between steps is bounded by the row: a step may make much of a short one."""
        client = self.client()
        memory = client.create(1 << 16)
        rows, results = tensor(memory.buffer, [1, 65]), tensor(memory.buffer, [1, 1], dtype="f32", offset=4096)
        message = '"steps[0]" would leave 4259840 elements of a row, of 4 bytes each, for the step after it; allowed: 16777216 bytes in all'
        self.refuse(client, message, input=rows, output=results, axis=1, steps=[upsample(65536), SUM])
        rows["shape"] = [1, 64]
        client.call("job.run", input=rows, output=results, axis=1, steps=[upsample(65536), SUM])
        self.assertEqual(client.call("server.stats")["jobs_open"], 0)

    def test_what_cannot_be(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, wide = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 200], offset=8192)
        self.refuse(
            client, '"input" and "output" are the same elements, but "steps[0].operation" is "upsample", which does not work in place',
            input=rows, output=rows, axis=1, steps=[upsample(1)],
        )
        self.refuse(client, '"input" (bytes 0 to 1600) and "output" (bytes 8 to', input=rows, output={**wide, "offset": 8}, axis=1, steps=[upsample(2)])
        offsets = tensor(memory.buffer, [3], dtype="i64", offset=32768)
        line, made = tensor(memory.buffer, [100]), tensor(memory.buffer, [200], offset=8192)
        self.refuse(
            client, '"steps[0].operation" is "upsample", which changes the length of rows, but "offsets" makes rows of lengths of their own',
            input=line, output=made, axis=0, offsets=offsets, steps=[upsample(2)],
        )
        self.refuse(
            client, '"algorithm" is given, and the steps are not scans alone, or a single one',
            input=rows, output=wide, axis=1, algorithm="serial-cpu", steps=[FORWARD, upsample(2)],
        )
        overlapping = recurrence(tensor(memory.buffer, [4, 200], offset=8200))
        self.refuse(
            client, '"steps[1].coefficients" (bytes 8200 to 11400) and "output" (bytes 8192 to 11392) of buffer 1 overlap; keep them apart',
            input=rows, output=wide, axis=1, steps=[upsample(2), overlapping],
        )


class StepVariants(OperationsTest):
    """Variants of the tutorials: for GPUs, of one step; sums that may be added in any order are exact in any."""

    STEPS = {  # and how many numbers there are in the output's rows
        "dot": ({"other": [12, 30]}, 1),
        "map": ({"op": "add", "other": [12, 30]}, 30),
        "upsample": ({"factor": 4}, 120),
        "block-sum": ({"factor": 6}, 5),
        "convolve": ({"filter": [7], "mode": "same"}, 30),
        "index-add": ({"index": [30], "onto": [12, 9], "alpha": 2}, 9),
    }
    OPERANDS = ("other", "filter", "onto")

    def job(self, memory, dtype, operation):
        parameters, length = self.STEPS[operation]
        step = {"operation": operation}
        for name, value in parameters.items():
            step[name] = tensor(memory.buffer, value, dtype=dtype, offset=8192) if name in self.OPERANDS else value
        if "index" in step:
            memory.write(struct.pack("<30i", *(i * i % 9 for i in range(30))), 65536)
            step["index"] = tensor(memory.buffer, [30], dtype="i32", offset=65536)
        output = tensor(memory.buffer, [12, length], dtype=dtype, offset=16384 + 16 * SIZES[dtype])
        return {"input": tensor(memory.buffer, [12, 30], dtype=dtype), "output": output, "axis": 1, "steps": [step]}

    def test_results(self):
        client = self.client()
        kernels = [kernel for operation in self.STEPS for kernel in client.kernels(operation)]
        self.assertEqual(len(kernels), 16)
        for kernel in kernels:
            name, dtype, operation = kernel["name"], kernel["dtype"], kernel["operation"]
            memory = self.noise(client, dtype, 70000 // SIZES[dtype])
            job = self.job(memory, dtype, operation)
            before = memory.read()
            client.call("job.run", **job)
            expected = memory.read()
            self.assertNotEqual(before, expected)
            memory.write(before)
            with self.subTest(name=name):
                if BACKEND == "cpu":
                    message = f'"algorithm" is "{name}", which this daemon\'s device cannot run; a daemon started with --device cuda can'
                    self.refuse(client, message, "unsupported", algorithm=name, **job)
                else:
                    client.call("job.run", algorithm=name, **job)
                    self.assertEqual(memory.read(), expected)
            client.call("buffer.release", buffer=memory.buffer)

    def test_refusals(self):
        client = self.client()
        memory = self.noise(client, "f32", 20000)
        job = self.job(memory, "f32", "index-add")
        fold = {**job["steps"][0], "fold": tensor(memory.buffer, [12, 9], dtype="i32", offset=32768)}
        message = '"steps[0].fold" is given; allowed with "algorithm" "index-add-atomic": none; leave one of them out'
        self.refuse(client, message, algorithm="index-add-atomic", **{**job, "steps": [fold]})
        stack = {"operation": "stack", "bins": 9, "index": fold["index"]}
        self.refuse(client, '"algorithm" is given, and "stack" has none; leave it out', algorithm="index-add-atomic", **{**job, "steps": [stack]})
        self.refuse(client, '"algorithm" is "map-naive"; there are: index-add-atomic', algorithm="map-naive", **job)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Jobs of the affine recurrence y[i] = a[i] y[i - 1] + x[i], compared with the same in plain Python.

Samples are small whole numbers and coefficients 1, -1, 0 and now and then 2, with a 0 before the next 2, so that every
value is exact, in whatever order; integers wrap, so their coefficients are any.

    test_daemon_affine.py SCAND [unittest's arguments]
"""

import array
import itertools
import math
import random
import struct

from daemons import DaemonTest, main
from wire import SIZES, scan, tensor

FORMS = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "u32": "I", "u64": "Q"}


def places(it):
    """Bytes from the buffer's beginning to each element, by its index."""
    for index in itertools.product(*map(range, it["shape"])):
        yield index, it["offset"] + sum(i * stride for i, stride in zip(index, it["strides"]))


def values(data, it):
    return {index: struct.unpack_from("=" + FORMS[it["dtype"]], data, at)[0] for index, at in places(it)}


def recurred(row, factors, passes, exclusive):
    for direction in passes:
        order = range(len(row)) if direction == "forward" else reversed(range(len(row)))
        out, before = list(row), None
        for i in order:
            value = row[i] if before is None else factors[i] * before + row[i]
            out[i] = (before or 0) if exclusive else value
            before = value
        row = out
    return row


def lines(shape, axis):
    """The indices of each row's elements."""
    others = itertools.product(*(range(n) for k, n in enumerate(shape) if k != axis))
    return [[other[:axis] + (i,) + other[axis:] for i in range(shape[axis])] for other in others]


def factors_of(count, noise):
    """Coefficients for which every value stays small."""
    twos = 0
    for _ in range(count):
        dice = noise.randrange(40)
        twos += dice == 0
        yield (0 if twos % 2 == 0 else 2) if dice == 0 else noise.choice((1, -1))


class AffineTest(DaemonTest):
    def fill(self, memory, it, numbers):
        data = bytearray(random.Random(1).randbytes(memory.size))
        for (_, at), number in zip(places(it), numbers):
            struct.pack_into("=" + FORMS[it["dtype"]], data, at, number)
        memory.write(data)
        return bytes(data)

    def check(self, client, memory, target, factors, job):
        """`factors`: the memory of the coefficients, filled. Compares every byte of all that there is."""
        source, output = job["input"], job["output"]
        small = range(-9, 10) if source["dtype"][0] in "fi" else range(9)
        data = self.fill(memory, source, random.Random(2).choices(small, k=math.prod(source["shape"])))
        expected = bytearray(data)
        if target is not memory:
            expected = bytearray(random.Random(3).randbytes(target.size))
            target.write(expected)
        x = values(data, source)
        a = values(factors.read(), job["coefficients"]) if "coefficients" in job else dict.fromkeys(x, job.get("coefficient"))
        results = {}
        for line in lines(source["shape"], job["axis"]):
            row = recurred([x[i] for i in line], [a[i] for i in line], job["passes"], job.get("kind") == "exclusive")
            results.update(zip(line, row))
        bits = 8 * SIZES[output["dtype"]]
        for index, at in places(output):
            value = results[index]
            if output["dtype"] in ("f32", "f64"):
                struct.pack_into("=" + FORMS[output["dtype"]], expected, at, value)
            else:
                expected[at : at + bits // 8] = (int(value) % (1 << bits)).to_bytes(bits // 8, "little")
        client.call("job.submit", job)
        self.assertTrue(target.read() == expected)
        if target is not memory:
            self.assertTrue(memory.read() == data)

    def with_factors(self, client, it, size, seed=4):
        memory = client.create(size)
        it["buffer"] = memory.buffer
        self.fill(memory, it, factors_of(10**5, random.Random(seed)))
        return memory


class Recurrences(AffineTest):
    def test_every_rule(self):
        client = self.client()
        memory, target = client.create(5 * 47 * 4), client.create(5 * 47 * 8)
        each = tensor(0, [5, 47])
        factors = self.with_factors(client, each, 5 * 47 * 4)
        rows = tensor(memory.buffer, [5, 47])
        ways = [["forward"], ["backward"], ["forward", "backward"]]
        for way, kind, accumulator, dtype in itertools.product(ways, ("inclusive", "exclusive"), ("f32", "f64", "f2"), ("f32", "f64")):
            rule = {"op": "affine", "passes": way, "kind": kind, "accumulator": accumulator, "intermediate": dtype}
            with self.subTest(**rule):
                out = tensor(target.buffer, [5, 47], dtype=dtype)
                self.check(client, memory, target, factors, scan(rows, out, coefficients=each, **rule))
                self.check(client, memory, memory, factors, scan(rows, coefficients=each, **rule))
                for coefficient in (-1.0, 1, 1.0):
                    self.check(client, memory, target, factors, scan(rows, out, coefficient=coefficient, **rule))

    def test_integers_wrap(self):
        client = self.client()
        memory, target = client.create(3 * 1000 * 4), client.create(3 * 1000 * 8)
        for dtype, wide in (("i32", "i64"), ("u32", "u64")):
            each = tensor(0, [3, 1000], dtype=dtype)
            factors = client.create(3 * 1000 * 4)
            each["buffer"] = factors.buffer
            self.fill(factors, each, random.Random(5).choices(range(0, 1 << 31), k=3000))
            job = scan(tensor(memory.buffer, [3, 1000], dtype=dtype), tensor(target.buffer, [3, 1000], dtype=wide), op="affine")
            self.check(client, memory, target, factors, {**job, "coefficients": each})
            self.check(client, memory, target, factors, {**job, "coefficient": -7, "passes": ["backward"]})

    def test_coefficients_in_any_layout(self):
        """Coefficients for each row, for each position, one in all, reversed, between other bytes, along every axis."""
        client = self.client()
        memory, target = client.create(30000), client.create(30000)
        for strides, offset, axis in [
            ([0, 4], 0, 1),
            ([4, 0], 0, 1),
            ([0, 4], 0, 0),
            ([4, 0], 0, 0),
            ([0, 0], 8, 1),
            ([-240, 4], 5400, 1),
            ([7, 170], 3, 1),
            ([440, 4], 240, 0),
        ]:
            with self.subTest(strides=strides, axis=axis):
                each = tensor(0, [23, 60], strides, offset=offset)
                factors = self.with_factors(client, each, 12000)
                if strides[axis] == 0:  # a row with one coefficient, which must not make values grow
                    self.fill(factors, each, random.Random(5).choices((1, -1), k=23 * 60))
                rows = tensor(memory.buffer, [23, 60])
                job = scan(rows, tensor(target.buffer, [23, 60]), axis, ["forward", "backward"], op="affine")
                self.check(client, memory, target, factors, {**job, "coefficients": each})
                client.call("buffer.release", buffer=factors.buffer)

    def test_many_chunks_and_long_rows(self):
        client = self.client()
        size = 8 * 1000 * 1100
        memory, target, factors = (client.create(size) for _ in range(3))
        for rows, length in ((1000, 1100), (3, 40000)):
            count = rows * length
            x = random.Random(2).choices(range(-9, 10), k=count)
            a = list(factors_of(count, random.Random(6)))
            memory.write(array.array("d", x).tobytes())
            factors.write(array.array("d", a).tobytes())
            for strides in ([8 * length, 8], [0, 8]):
                job = scan(
                    tensor(memory.buffer, [rows, length], dtype="f64"),
                    tensor(target.buffer, [rows, length], dtype="f64"),
                    op="affine",
                    coefficients=tensor(factors.buffer, [rows, length], strides, dtype="f64"),
                )
                client.call("job.submit", job)
                expected = array.array("d")
                for row in range(rows):
                    at = row * length if strides[0] else 0
                    before = 0
                    for value, factor in zip(x[row * length : (row + 1) * length], a[at : at + length]):
                        before = factor * before + value
                        expected.append(before)
                self.assertTrue(target.read(size=8 * count) == expected.tobytes())

    def test_ragged_rows(self):
        """Coefficients lie along the line, as the samples do."""
        client = self.client()
        ends = list(itertools.accumulate([3, 0, 1, 40, 700, 16, 0, 17000, 5]))
        memory, target, offsets = client.create(4 * ends[-1]), client.create(4 * ends[-1]), client.create(8 * len(ends))
        offsets.write(struct.pack(f"={len(ends)}q", *ends))
        each = tensor(0, [ends[-1]])
        factors = self.with_factors(client, each, 4 * ends[-1])
        x = random.Random(7).choices(range(-9, 10), k=ends[-1])
        a = values(factors.read(), each)
        memory.write(struct.pack(f"={len(x)}f", *x))
        target.write(bytes(target.size))
        job = scan(tensor(memory.buffer, [len(x)]), tensor(target.buffer, [len(x)]), op="affine", coefficients=each)
        client.call("job.submit", {**job, "passes": ["backward"], "offsets": tensor(offsets.buffer, [len(ends)], dtype="i64")})
        expected = [0.0] * ends[0]
        for begin, end in zip(ends, ends[1:]):
            expected += recurred(x[begin:end], [a[i,] for i in range(begin, end)], ["backward"], False)
        self.assertEqual(list(struct.unpack(f"={len(x)}f", target.read())), expected)

    def test_device_buffers(self):
        """One job's results on the device are the next one's coefficients."""
        client = self.client()
        memory = client.create(4 * 3 * 100)
        device = client.call("buffer.create", size=4 * 3 * 100, place="device")["buffer"]
        rows, there = tensor(memory.buffer, [3, 100]), tensor(device, [3, 100])
        memory.write(struct.pack("=300f", *([0.0] * 3 + [1.0] * 297)))
        client.call("job.submit", scan(rows, there, op="max"))
        client.call("job.submit", scan(rows, op="affine", coefficients=there))
        row = recurred([1.0] * 100, [1.0] * 100, ["forward"], False)
        first = recurred([0.0] * 3 + [1.0] * 97, [0.0] * 3 + [1.0] * 97, ["forward"], False)
        self.assertEqual(list(struct.unpack("=300f", memory.read())), first + row + row)


class Refused(AffineTest):
    def test_coefficients(self):
        client = self.client()
        memory, factors = client.create(4096), client.create(64)
        before = memory.read()
        each = tensor(factors.buffer, [4])
        whole = tensor(memory.buffer, [4])
        for message, fields in [
            ('"op" is "affine", but there is no "coefficient"', {}),
            ('"op" is "affine", but there is no "coefficient"', {"coefficient": 0.0}),
            ('"coefficient" is 2, and there are "coefficients", too', {"coefficient": 2.0, "coefficients": each}),
            ('"coefficient" is for "op" "affine", but "op" is "sum"', {"coefficient": 2.0, "op": "sum"}),
            ('"coefficients" is for "op" "affine", but "op" is "prod"', {"coefficients": each, "op": "prod"}),
            ('"coefficients.dtype" is "f64"; allowed with "input.dtype" "f32"', {"coefficients": {**each, "dtype": "f64"}}),
            ('"coefficients" ends at byte 68', {"coefficients": {**each, "offset": 52}}),
            ('dimension 0 of "input" is 4 and of "coefficients" 3', {"coefficients": {**each, "shape": [3]}}),
            ('"coefficients" .* and "output" .* overlap', {"coefficients": {**each, "buffer": memory.buffer}}),
            ('"kind" is "half".* allowed with "affine": inclusive, exclusive', {"coefficient": 2.0, "kind": "half"}),
            ('"coefficient" is text; expected: a number', {"coefficient": "2"}),
            ('"coefficient" is an integer beyond', {"coefficient": 2**53 + 1}),
            ('"op" is "affine"; allowed with "algorithm"', {"coefficient": 2.0, "algorithm": "kogge-stone"}),
            (
                '"coefficient" is 0.5, but "input.dtype" "i32" is of integers',
                {"coefficient": 0.5, "input": {**whole, "dtype": "i32"}, "output": {**whole, "dtype": "i32"}},
            ),
        ]:
            with self.subTest(message):
                self.refused(client, "invalid", message, "job.submit", {**scan(whole, op="affine"), **fields})
        gone = scan(whole, op="affine", coefficients={**each, "buffer": 99})
        self.refused(client, "not_found", '"coefficients.buffer" is 99', "job.submit", gone)
        self.assertEqual(memory.read(), before)


if __name__ == "__main__":
    main()

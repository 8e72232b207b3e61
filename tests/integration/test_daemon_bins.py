#!/usr/bin/env python3
"""Samples added into bins by an index, of nothing and onto what they have already: sums, their order, and what is refused before
anything is written.

    test_daemon_bins.py SCAND [unittest's arguments]
"""

import itertools
import math
import random
import struct

from daemons import main
from forms import pack_dtype
from operations_rig import BOTH, FORWARD, SUM, OperationsTest, diff, index_add, stack, upsample
from wire import SIZES, tensor


class Stacks(OperationsTest):
    def index(self, client, values, dtype="i32"):
        memory = client.create(max(1, len(values)) * SIZES[dtype])
        memory.write(pack_dtype(dtype, values))
        return tensor(memory.buffer, [len(values)], dtype=dtype)

    def test_definition(self):
        """Three traces of two samples into four bins, and the second trace alone has zeros."""
        client = self.client()
        memory, folds = client.create(4096), client.create(4096)
        memory.write(struct.pack("<6f", 1, 2, 0, 3, 5, 7))
        given, made = tensor(memory.buffer, [3, 2]), tensor(memory.buffer, [4, 2], dtype="f64", offset=1024)
        index, fold = self.index(client, [3, 0, 3]), tensor(folds.buffer, [4, 2], dtype="i64")
        for parameters, expected in (
            ({}, (0, 3, 0, 0, 0, 0, 6, 9)),
            ({"norm": "fold"}, (0, 3, 0, 0, 0, 0, 3, 4.5)),
            ({"norm": "fold", "power": 0.5}, (0, 3, 0, 0, 0, 0, 6 / math.sqrt(2), 9 / math.sqrt(2))),
            ({"norm": "fold", "power": 2}, (0, 3, 0, 0, 0, 0, 1.5, 2.25)),
        ):
            client.call("job.run", input=given, output=made, axis=0, steps=[stack(4, index, **parameters, fold=fold)])
            self.assertEqual(struct.unpack("<8d", memory.read()[1024:1088]), expected)
            self.assertEqual(struct.unpack("<8q", folds.read()[:64]), (0, 1, 0, 0, 0, 0, 2, 2))
        client.call("job.run", input=given, output=made, axis=0, steps=[stack(4, index)])
        self.assertEqual(struct.unpack("<8d", memory.read()[1024:1088]), (0, 3, 0, 0, 0, 0, 6, 9))

    def test_sums(self):
        """Against sums in the order of the row, which are the same bits."""
        client, values = self.client(), random.Random(11)
        traces, samples, bins = 300, 70, 40
        x = [values.uniform(-1, 1) for _ in range(traces * samples)]
        index = [values.randrange(bins) for _ in range(traces)]
        memory, results = client.create(8 * len(x)), client.create(8 * bins * samples)
        memory.write(struct.pack(f"<{len(x)}d", *x))
        given, made = tensor(memory.buffer, [traces, samples], dtype="f64"), tensor(results.buffer, [bins, samples], dtype="f64")
        client.call("job.run", input=given, output=made, axis=0, steps=[stack(bins, self.index(client, index))])
        sums = [0.0] * (bins * samples)
        for i, b in enumerate(index):
            for t in range(samples):
                sums[b * samples + t] += x[i * samples + t]
        self.assertEqual(struct.unpack(f"<{len(sums)}d", results.read()[: 8 * len(sums)]), tuple(sums))

    def test_chains(self):
        client, values = self.client(), random.Random(5)
        for shape, axis in ([60, 100], 1), ([60, 100], 0), ([4, 30, 50], 1), ([0, 30], 1):
            index = self.index(client, [values.randrange(7) for _ in range(2 * shape[axis])])
            one = {**index, "shape": [shape[axis]]}
            self.check(client, shape, axis, [stack(7, one)])
            self.check(client, shape, axis, [BOTH, upsample(2), stack(7, index, norm="fold"), FORWARD, diff("first")], ("f32", "f32"))
            self.check(client, shape, axis, [FORWARD, stack(7, one), stack(7, {**index, "shape": [7], "strides": [0]}), SUM])
        self.check(client, [30, 0], 1, [stack(7, self.index(client, []))])
        own = self.index(client, [values.randrange(50) for _ in range(60 * 100)])
        own["shape"], own["strides"] = [60, 100], [400, 4]
        self.check(client, [60, 100], 1, [stack(50, own)])
        self.check(client, [60, 100], 0, [stack(50, own)])
        self.check(client, [60, 100], 1, [FORWARD, stack(50, own), FORWARD], ("i32", "i64"))
        many = self.index(client, [values.randrange(500) for _ in range(4000)])
        self.check(client, [4000, 2000], 0, [stack(500, many)], ("f32", "f32"))

    def test_index_of_the_job_before(self):
        """The index is checked once the job before is done."""
        client = self.client()
        memory = client.create(1 << 22)
        made, results = tensor(memory.buffer, [1, 1 << 18], dtype="i32", offset=64), tensor(memory.buffer, [1, 2], offset=1 << 21)
        memory.write(struct.pack("<i", 1))
        ones = tensor(memory.buffer, [1, 1 << 18], [0, 0], dtype="f32", offset=(1 << 21) + 64)
        memory.write(struct.pack("<f", 1), offset=(1 << 21) + 64)
        first = client.send("job.run", input=tensor(memory.buffer, [1, 16], [0, 0], dtype="i32"), output=made, axis=1, steps=[upsample(1 << 14)])
        second = client.send("job.run", input=ones, output=results, axis=1, steps=[stack(2, {**made, "shape": [1 << 18], "strides": [4]})])
        client.wait(first)
        client.wait(second)
        self.assertEqual(struct.unpack("<2f", memory.read()[1 << 21 : (1 << 21) + 8]), (0, 1 << 18))

    def test_index_that_changes(self):
        """A device may keep what all rows share for a job, but not for the next one."""
        client = self.client()
        memory = client.create(4096)
        memory.write(struct.pack("<3f", 1, 2, 4))
        given, made = tensor(memory.buffer, [3]), tensor(memory.buffer, [2], offset=2048)
        index = tensor(memory.buffer, [3], dtype="i32", offset=1024)
        for number in range(40):
            bins, sums = (((0, 0, 1), (3, 4)), ((1, 0, 1), (2, 5)), ((1, 1, 0), (4, 3)))[number % 3]
            memory.write(struct.pack("<3i", *bins), offset=1024)
            client.call("job.run", input=given, output=made, axis=0, steps=[stack(2, index)])
            self.assertEqual(struct.unpack("<2f", memory.read()[2048:2056]), sums, f"job {number}")

    def fails_untouched(self, client, results, message, **params):
        results.write(bytes([0xA5]) * results.size)
        rows = client.call("server.stats")["rows_scanned"]
        self.refuse(client, message, **params)
        self.assertEqual(results.read(), bytes([0xA5]) * results.size)
        stats = client.call("server.stats")
        self.assertEqual((stats["rows_scanned"], stats["jobs_open"]), (rows, 0))

    def test_values_out_of_range(self):
        """Wherever they are, nothing is written."""
        client = self.client()
        x = tensor(client.create(64).buffer, [600, 1000], [0, 0])
        results = client.create(600 * 5 * 4)
        made = tensor(results.buffer, [600, 5])
        for dtype, value in ("i32", 5), ("i32", -1), ("i64", 1 << 32), ("i64", -(1 << 63)):
            values = [i % 5 for i in range(1000)]
            values[777] = value
            message = f'"steps[0].index"[777] is {value}; allowed: 0 to 4; nothing has been written'
            self.fails_untouched(client, results, message, input=x, output=made, axis=1, steps=[stack(5, self.index(client, values, dtype))])
        values = [i % 5 for i in range(600000)]
        values[599 * 1000 + 999] = 99
        own = self.index(client, values)
        own["shape"], own["strides"] = [600, 1000], [4000, 4]
        message = 'element 999 of "steps[1].index" for row 599 is 99; allowed: 0 to 4; nothing has been written'
        self.fails_untouched(client, results, message, input=x, output=made, axis=1, steps=[FORWARD, stack(5, own), FORWARD])
        line, sums = tensor(x["buffer"], [600000], [0]), tensor(results.buffer, [5])
        message = '"steps[0].index"[599999] is 99; allowed: 0 to 4'
        self.fails_untouched(client, results, message, input=line, output=sums, axis=0, steps=[stack(5, self.index(client, values))])

    def test_cancelled(self):
        """A job is cancelled while a thousand million values are checked, beside which another client's small job is done."""
        client, other = self.client(), self.client()
        memory, results, few = client.create(1 << 20), client.create(1 << 20), other.create(1 << 16)
        rows, length = 1 << 16, 1 << 14
        index = tensor(memory.buffer, [rows, length], [8, 0], dtype="i64")
        job = {"input": tensor(memory.buffer, [rows, length], [0, 0]), "output": tensor(results.buffer, [rows, 1]), "axis": 1}
        msgid = client.send("job.run", **job, steps=[stack(1, index)])
        row = tensor(few.buffer, [1, 100])
        other.call("job.run", input=row, output={**row, "offset": 4096}, axis=1, steps=[FORWARD])
        client.call("job.cancel", job=msgid)
        self.fails(client, msgid, "cancelled", "job.run: ")
        self.assertEqual(other.call("server.stats")["jobs_open"], 0)

    def test_refusals(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 8], offset=8192)
        index = tensor(memory.buffer, [100], dtype="i32", offset=16384)
        job = {"input": rows, "output": made, "axis": 1}
        self.refuse(client, '"steps[0].bins" is 0; allowed: 1 to 16777216', **job, steps=[stack(0, index)])
        self.refuse(client, 'field "steps[0].bins" is 16777217; allowed: 1 to 16777216', **job, steps=[stack((1 << 24) + 1, index)])
        self.refuse(client, 'field "steps[0].index" is missing', **job, steps=[{"operation": "stack", "bins": 8}])
        self.refuse(client, '"steps[0].index.dtype" is "u32"; allowed: i32, i64', **job, steps=[stack(8, {**index, "dtype": "u32"})])
        message = '"steps[1].index" has 100 elements along the axis; it must have 200, one for each sample of a row that the step takes'
        self.refuse(client, message, **job, steps=[upsample(2), stack(8, index)])
        self.refuse(client, 'dimension 1 of "output" is 8; it must be 9, which', **job, steps=[stack(9, index)])
        message = '"steps[0].power" is 2, which is for "norm" "fold", but "norm" is "none"; leave it out'
        self.refuse(client, message, **job, steps=[stack(8, index, power=2.0)])
        for power in 8.5, -1.0, 0.0001, 0.0:
            message = f'"steps[0].power" is {power:g}; allowed: 0.0009765625 to 8, or left out for 1'
            self.refuse(client, message, **job, steps=[stack(8, index, norm="fold", power=power)])
        whole = {"input": {**rows, "dtype": "i32"}, "output": {**made, "dtype": "i32"}, "axis": 1}
        message = '"steps[0].norm" is "fold", but "input.dtype" "i32" is of integers; allowed: none; '
        self.refuse(client, message, **whole, steps=[stack(8, index, norm="fold")])
        fold = tensor(memory.buffer, [4, 8], dtype="i32", offset=8200)
        self.refuse(client, '"steps[0].fold" (bytes 8200 to 8328) and "output" (bytes 8192 to 8320)', **job, steps=[stack(8, index, fold=fold)])
        message = 'dimension 1 of "steps[0].fold" is 9; it must be 8, which'
        self.refuse(client, message, **job, steps=[stack(8, index, fold=tensor(memory.buffer, [4, 9], dtype="i32", offset=32768))])
        self.refuse(client, '"steps[0].index" (bytes 8000 to', **job, steps=[stack(8, {**index, "offset": 8000})])
        offsets, line = tensor(memory.buffer, [3], dtype="i64", offset=32768), tensor(memory.buffer, [100])
        message = '"steps[0].operation" is "stack", which changes the length of rows, but "offsets" makes rows'
        self.refuse(client, message, input=line, output=tensor(memory.buffer, [8], offset=8192), axis=0, offsets=offsets, steps=[stack(8, index)])
        long = tensor(memory.buffer, [1, (1 << 24) + 1], [0, 0])
        message = '"steps[0].operation" is "stack", and a row that it takes has 16777217 samples; allowed: up to 16777216; '
        self.refuse(client, message, input=long, output=tensor(memory.buffer, [1, 8], offset=8192), axis=1, steps=[stack(8, {**index, "shape": [(1 << 24) + 1], "strides": [0]})])


class IndexAdds(OperationsTest):
    def numbers(self, client, dtype, values, shape=None):
        memory = client.create(max(1, len(values)) * SIZES[dtype])
        memory.write(pack_dtype(dtype, values))
        return memory, tensor(memory.buffer, shape or [len(values)], dtype=dtype)

    def test_definition(self):
        """Three traces of two samples onto four, in place and apart."""
        client = self.client()
        _, given = self.numbers(client, "f32", (1, 2, 0, 3, 5, 7), [3, 2])
        _, index = self.numbers(client, "i32", (3, 0, 3))
        folds, fold = self.numbers(client, "i64", (0,) * 8, [4, 2])
        memory, onto = self.numbers(client, "f32", (10, 20, 30, 40, 50, 60, 70, 80), [4, 2])
        made, results = self.numbers(client, "f64", (0,) * 8, [4, 2])
        for parameters, expected in (
            ({}, (10, 23, 30, 40, 50, 60, 76, 89)),
            ({"alpha": -2.0}, (10, 14, 30, 40, 50, 60, 58, 62)),
            ({"alpha": 0.0, "fold": fold}, (10, 20, 30, 40, 50, 60, 70, 80)),
        ):
            client.call("job.run", input=given, output=results, axis=0, steps=[index_add(index, onto, **parameters)])
            self.assertEqual(struct.unpack("<8d", made.read()[:64]), expected)
        self.assertEqual(struct.unpack("<8q", folds.read()[:64]), (0, 1, 0, 0, 0, 0, 2, 2))
        for expected in (10, 23, 30, 40, 50, 60, 76, 89), (10, 26, 30, 40, 50, 60, 82, 98):
            client.call("job.run", input=given, output=onto, axis=0, steps=[index_add(index, onto)])
            self.assertEqual(struct.unpack("<8f", memory.read()[:32]), expected)

    def test_formula(self):
        """Results along every axis equal loops in the same order: the same bits, in f64 and rounded once."""
        client, values = self.client(), random.Random(12)
        shape = (7, 90, 11)
        for axis, dtype, alpha in itertools.product(range(3), ("f32", "f64"), (1, -0.3)):
            single = lambda value: struct.unpack("<f", struct.pack("<f", value))[0] if dtype == "f32" else value
            bins = [5 if k == axis else n for k, n in enumerate(shape)]
            x, y = ([single(values.uniform(-1, 1)) for _ in range(math.prod(each))] for each in (shape, bins))
            index = [values.randrange(5) for _ in range(shape[axis])]
            _, given = self.numbers(client, dtype, x, list(shape))
            memory, onto = self.numbers(client, dtype, y, bins)
            _, bin_of = self.numbers(client, "i64", index)
            client.call("job.run", input=given, output=onto, axis=axis, steps=[index_add(bin_of, onto, alpha=alpha)])
            for i, at in enumerate(itertools.product(*map(range, shape))):
                b = tuple(index[n] if k == axis else n for k, n in enumerate(at))
                y[(b[0] * bins[1] + b[1]) * bins[2] + b[2]] += alpha * x[i]
            expected = pack_dtype(dtype, y)
            self.assertTrue(memory.read()[: len(expected)] == expected)

    def test_integers(self):
        client = self.client()
        _, given = self.numbers(client, "i32", (2**31 - 1, 5, -7, 1))
        _, index = self.numbers(client, "i32", (1, 0, 1, 1))
        memory, onto = self.numbers(client, "i64", (2**63 - 1, -4))
        client.call("job.run", input=given, output=onto, axis=0, steps=[index_add(index, onto, alpha=-3)])
        self.assertEqual(struct.unpack("<2q", memory.read()[:16]), (2**63 - 16, -3 * (2**31 - 7) - 5 + 1))
        client.call("job.run", input=given, output=onto, axis=0, steps=[index_add(index, onto, alpha=3)])
        self.assertEqual(struct.unpack("<2q", memory.read()[:16]), (2**63 - 1, -4))

    def test_chains(self):
        """Onto a vector for all rows or one for each, as any step of several."""
        client, values = self.client(), random.Random(6)
        _, index = self.numbers(client, "i32", [values.randrange(7) for _ in range(200)])
        one, two = {**index, "shape": [100]}, index
        memory = self.noise(client, "f32", 40 * 7)
        shared, own = tensor(memory.buffer, [7], offset=64), tensor(memory.buffer, [40, 7])
        for steps in (
            [index_add(one, shared), FORWARD],
            [BOTH, upsample(2), index_add(two, own, alpha=0.5), FORWARD, diff("first")],
            [index_add(one, own), index_add({**one, "shape": [7], "strides": [0]}, shared), SUM],
        ):
            self.check(client, [40, 100], 1, steps, ("f32", "f32"))
        many, whole = self.noise(client, "f32", 500 * 2000), [values.randrange(500) for _ in range(4000)]
        bins = tensor(many.buffer, [500, 2000])
        _, index = self.numbers(client, "i32", whole)
        rows, made = self.noise(client, "f32", 4000 * 2000), [client.create(4 * 500 * 2000) for _ in range(2)]
        given = tensor(rows.buffer, [4000, 2000])
        made[0].write(many.read())
        for memory, onto in zip(made, (tensor(made[0].buffer, [500, 2000]), bins)):
            output = tensor(memory.buffer, [500, 2000])
            client.call("job.run", input=given, output=output, axis=0, steps=[FORWARD, index_add(index, onto)])
        self.assertTrue(made[0].read() == made[1].read())

    def test_in_place_before_the_last_step(self):
        """The output is read by a step, and written by a later one."""
        client, values = self.client(), random.Random(7)
        _, index = self.numbers(client, "i32", [values.randrange(100) for _ in range(100)])
        rows, onto, made = (self.noise(client, "f32", 600 * 100) for _ in range(3))
        given, output = tensor(rows.buffer, [600, 100]), tensor(made.buffer, [600, 100])
        steps = [index_add(index, tensor(onto.buffer, [600, 100])), FORWARD, index_add(index, tensor(onto.buffer, [600, 100]))]
        client.call("job.run", input=given, output=output, axis=1, steps=steps)
        client.call("job.run", input=given, output=tensor(onto.buffer, [600, 100]), axis=1, steps=steps)
        self.assertTrue(made.read() == onto.read())

    def test_order_of_jobs(self):
        """Jobs that add onto one output wait for each other, whoever is first."""
        client = self.client()
        memory, onto = self.numbers(client, "f64", [0.0] * 4000, [2000, 2])
        ones = tensor(self.numbers(client, "f64", [1.0])[0].buffer, [2000, 900], [0, 0], dtype="f64")
        _, index = self.numbers(client, "i32", [i % 2 for i in range(900)])
        jobs = [client.send("job.run", input=ones, output=onto, axis=1, steps=[index_add(index, onto, alpha=2.0**i)]) for i in range(12)]
        for job in jobs:
            client.wait(job)
        self.assertEqual(struct.unpack("<4000d", memory.read()[:32000]), (450.0 * (2**12 - 1),) * 4000)

    def test_refused(self):
        """A refused job writes nothing, and its index is checked first."""
        client = self.client()
        memory = client.create(1 << 16)
        rows, onto = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 8], offset=8192)
        index = tensor(memory.buffer, [100], dtype="i32", offset=16384)
        job = {"input": rows, "output": onto, "axis": 1}
        memory.write(pack_dtype("i32", [7] * 99 + [8]), offset=16384)
        memory.write(bytes([0xA5]) * 128, offset=8192)
        message = '"steps[0].index"[99] is 8; allowed: 0 to 7; nothing has been written'
        self.refuse(client, message, **job, steps=[index_add(index, onto)])
        self.assertEqual(memory.read()[8192:8320], bytes([0xA5]) * 128)
        message = 'dimension 1 of "output" is 8; it must be 0: rows without samples, as "input" has, have no results but those of reductions'
        empty = {**job, "input": {**rows, "shape": [4, 0]}}
        self.refuse(client, message, **empty, steps=[index_add({**index, "shape": [0]}, onto)])
        self.refuse(client, 'field "steps[0].onto" is missing', **job, steps=[{"operation": "index-add", "index": index}])
        self.refuse(client, 'field "steps[0].index" is missing', **job, steps=[{"operation": "index-add", "onto": onto}])
        message = '"steps[0].onto.dtype" is "f64"; allowed with "input.dtype" "f32": f32, f16'
        self.refuse(client, message, **job, steps=[index_add(index, {**onto, "dtype": "f64"})])
        self.refuse(client, '"steps[0].onto" has 0 elements along the axis; allowed: 1 to 16777216', **job, steps=[index_add(index, {**onto, "shape": [4, 0]})])
        message = '"steps[0].onto" has 16777217 elements along the axis; allowed: 1 to 16777216'
        self.refuse(client, message, **job, steps=[index_add(index, {**onto, "shape": [4, (1 << 24) + 1], "strides": [4, 0]})])
        self.refuse(client, 'dimension 1 of "output" is 8; it must be 9, which', **job, steps=[index_add(index, {**onto, "shape": [4, 9]})])
        long = {**rows, "shape": [4, (1 << 24) + 1], "strides": [0, 0]}
        message = '"steps[0].operation" is "index-add", and a row that it takes has 16777217 samples; allowed: up to 16777216; '
        step = index_add({**index, "shape": [(1 << 24) + 1], "strides": [0]}, onto)
        self.refuse(client, message, input=long, output=onto, axis=1, steps=[step])
        message = 'dimension 0 of "input" is 4 and of "steps[0].onto" 3; they must be equal'
        self.refuse(client, message, **job, steps=[index_add(index, {**onto, "shape": [3, 8]})])
        message = '"steps[1].index" has 100 elements along the axis; it must have 200, one for each sample of a row that the step takes'
        self.refuse(client, message, **job, steps=[upsample(2), index_add(index, onto)])
        for alpha in math.inf, -math.inf, math.nan:
            message = f'"steps[0].alpha" is {alpha:g}; allowed with "input.dtype" "f32": finite numbers'
            self.refuse(client, message, **job, steps=[index_add(index, onto, alpha=alpha)])
        whole = {"input": {**rows, "dtype": "i32"}, "output": {**onto, "dtype": "i32"}, "axis": 1}
        for alpha in 0.5, 1e300, -(2.0**53) - 2:
            message = f'"steps[0].alpha" is {alpha:g}; allowed with "input.dtype" "i32": whole numbers from -2^53 to 2^53'
            self.refuse(client, message, **whole, steps=[index_add(index, {**onto, "dtype": "i32"}, alpha=alpha)])
        message = '"steps[0].onto" (bytes 8196 to 8324) and "output" (bytes 8192 to 8320) of buffer'
        self.refuse(client, message, **job, steps=[index_add(index, {**onto, "offset": 8196})])
        message = '"steps[0].onto" (bytes 8192 to 8224) and "output" (bytes 8192 to 8320) of buffer'
        self.refuse(client, message, **job, steps=[index_add(index, {**onto, "shape": [8], "strides": [4]})])
        fold = tensor(memory.buffer, [4, 8], dtype="i32", offset=8192)
        self.refuse(client, '"steps[0].fold" (bytes 8192 to 8320) and "output" (bytes', **job, steps=[index_add(index, onto, fold=fold)])
        message = '"input" and "output" are the same elements, but "steps[0].operation" is "index-add", which does not work in place'
        self.refuse(client, message, input=rows, output=rows, axis=1, steps=[index_add(index, rows)])


if __name__ == "__main__":
    main()

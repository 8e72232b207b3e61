#!/usr/bin/env python3
"""Filters as steps of jobs: convolutions and correlations, triangles and boxes, picks of double sums, means.

    test_daemon_filters.py SCAND [unittest's arguments]
"""

import math
import operator
import random
import re
import struct

from daemons import main
from forms import pack_dtype
from operations_rig import BOTH, DEMEAN, FORWARD, SUM, OperationsTest, box, convolve, length_after, mapped, pick, triangle, upsample
from wire import SIZES, tensor


class Convolving(OperationsTest):
    def call(self, client, step, x, taps):
        """Returns a step's results for rows of f64, along the last axis; `taps` are of one filter, or of one for each row."""
        memory = client.create(1 << 16)
        rows = len(x)
        memory.write(pack_dtype("f64", [value for row in x for value in row]) + pack_dtype("f64", taps))
        shape = [len(taps)] if step.pop("shared", True) else [rows, len(taps) // rows]
        given = tensor(memory.buffer, [rows, len(x[0])], dtype="f64")
        step["filter"] = tensor(memory.buffer, shape, dtype="f64", offset=8 * rows * len(x[0]))
        length = length_after(step, len(x[0]))
        client.call("job.run", input=given, output=tensor(memory.buffer, [rows, length], dtype="f64", offset=1 << 15), axis=1, steps=[step])
        values = struct.unpack(f"<{rows * length}d", memory.read()[1 << 15 : (1 << 15) + 8 * rows * length])
        return [list(values[r * length : (r + 1) * length]) for r in range(rows)]

    def test_definition(self):
        client, x = self.client(), [[1, 2, 4, 8], [0, 1, 0, 0]]
        for operation, mode, expected in (
            ("convolve", "full", [[1, 12, 124, 248, 480, 800], [0, 1, 10, 100, 0, 0]]),
            ("convolve", "same", [[12, 124, 248, 480], [1, 10, 100, 0]]),
            ("convolve", "valid", [[124, 248], [10, 100]]),
            ("correlate", "full", [[100, 210, 421, 842, 84, 8], [0, 100, 10, 1, 0, 0]]),
            ("correlate", "same", [[210, 421, 842, 84], [100, 10, 1, 0]]),
            ("correlate", "valid", [[421, 842], [10, 1]]),
        ):
            with self.subTest(operation=operation, mode=mode):
                self.assertEqual(self.call(client, convolve(None, mode, operation), x, [1, 10, 100]), expected)
        each = self.call(client, {**convolve(None, "same"), "shared": False}, x, [1, 0, 2, 3])
        self.assertEqual(each, [[1, 2, 4, 8], [0, 2, 3, 0]])

    def test_adjoint(self):
        """<C x, y> = <x, C* y>, of whole numbers."""
        client, numbers = self.client(), random.Random(7)
        for mode, other in ("full", "valid"), ("same", "same"), ("valid", "full"):
            for taps in 1, 4, 7:
                x, w = numbers.choices(range(9), k=20), numbers.choices(range(9), k=taps)
                y = numbers.choices(range(9), k=length_after({"filter": {"shape": [taps]}, "mode": mode}, 20))
                (forward,) = self.call(client, convolve(None, mode), [x], w)
                (back,) = self.call(client, convolve(None, other, "correlate"), [y], w)
                self.assertEqual(sum(map(operator.mul, forward, y)), sum(map(operator.mul, x, back)))

    def test_each_job_has_its_filter(self):
        """Jobs of many chunks, queued at once: of filters side by side, and of one that is changed in between."""
        client, rows, length = self.client(), 3000, 500
        samples, taps = client.create(4 * rows * length), client.create(1024)
        outputs = [client.create(4 * rows * length) for _ in range(3)]
        samples.write(struct.pack("<f", 1) * (rows * length))
        for scale in 1, 5:
            taps.write(b"".join(struct.pack("<f", scale * value).ljust(256, b"\0") for value in (1, 2, 3)))
            jobs = [
                client.send(
                    "job.run",
                    input=tensor(samples.buffer, [rows, length]),
                    output=tensor(output.buffer, [rows, length]),
                    axis=1,
                    steps=[convolve(tensor(taps.buffer, [1], offset=256 * i))],
                )
                for i, output in enumerate(outputs)
            ]
            for job in jobs:
                client.wait(job)
            for i, output in enumerate(outputs):
                self.assertEqual(output.read(), struct.pack("<f", scale * (i + 1)) * (rows * length))

    def test_chains(self):
        """Chains have scans before and after; a filter for all rows, or for each; the filter of any dtype."""
        client = self.client()
        memory = self.noise(client, "f32", 40 * 31)
        shared, each = tensor(memory.buffer, [31]), tensor(memory.buffer, [40, 31])
        half = tensor(memory.buffer, [9], [4], dtype="f16")
        for steps in (
            [FORWARD, convolve(shared, "same"), BOTH],
            [convolve(each, "full", accumulator="f32"), upsample(2), convolve(half, "valid", "correlate"), SUM],
            [upsample(2), convolve(shared, "valid"), convolve(each, "full", "correlate"), FORWARD],
        ):
            for dtypes in ("f32", "f32"), ("f16", "bf16"), ("ibm32", "f32be"):
                with self.subTest(dtypes=dtypes):
                    self.check(client, [40, 100], 1, steps, dtypes)
            self.check(client, [40, 1000], 1, steps, strides=[4, 160])
        self.check(client, [3000, 500], 1, [convolve(tensor(memory.buffer, [500]), "full"), convolve(half, "same")], ("f32", "f32"))

    def test_ragged_rows(self):
        client = self.client()
        taps = tensor(self.noise(client, "f32", 31).buffer, [31])
        steps = [FORWARD, convolve(taps, "same"), convolve(taps, "same", "correlate")]
        for last in FORWARD, SUM:
            self.check(client, [3000], 0, [*steps, last], ("f32", "f32"), offsets=[3, 3, 10, 400, 401, 2990])

    def test_wrong_filters(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 20]), tensor(memory.buffer, [4, 20], offset=8192)

        def refuse(message, shape, given=rows, dtype="f32", **rest):
            step = convolve(tensor(memory.buffer, shape, dtype=dtype, offset=32768), "same")
            self.refused(client, "invalid", re.escape("job.run: " + message), "job.run", {"input": given, "output": made, "axis": 1, "steps": [FORWARD, {**step, **rest}]})

        refuse('"steps[1].filter" has 0 taps; allowed: 1 to 4096', [0])
        refuse('"steps[1].filter" has 4097 taps; allowed: 1 to 4096', [4097])
        refuse(f'"steps[1].filter" has {1 << 40} taps; allowed: 1 to 4096', [1 << 40])
        refuse('"steps[1].filter" has 21 taps, and the rows 20 samples; allowed with "mode" "valid": as many', [21], mode="valid")
        refuse('dimension 0 of "input" is 4 and of "steps[1].filter" 3; they must be equal', [3, 5])
        refuse('"input" has 2 dimensions and "steps[1].filter" 3; they must be equal', [1, 4, 5])
        refuse('"steps[1].filter.dtype" is "i32"; allowed: f32, f64, ', [5], dtype="i32")
        refuse('field "steps[1].accumulator" is "f2"; allowed: auto, f32, f64', [5], accumulator="f2")
        endless = tensor(memory.buffer, [4, 1 << 33], [0, 0])
        refuse('"steps[1].operation" is "convolve", which would leave rows of more than 8589934592 elements', [2], given=endless, mode="full")
        whole = {**rows, "dtype": "i32"}
        made["dtype"] = "i32"
        refuse('"output.dtype" is "i32"; allowed with "steps[1].operation" "convolve": f32, f64, ', [5], given=whole)
        wide = tensor(memory.buffer, [4, 20], dtype="f64")
        made["dtype"] = "f64"
        refuse('"steps[1].accumulator" is "f32"; allowed with "output.dtype" "f64": auto, f64', [5], given=wide, accumulator="f32")
        self.assertEqual(client.call("server.stats")["jobs_open"], 0)


def in_a_mirror(row, i):
    while not 0 <= i < len(row):
        i = -1 - i if i < 0 else 2 * len(row) - 1 - i
    return row[i]


class Windows(OperationsTest):
    def filtered(self, client, rows, dtype, step):
        """Returns a step's results for rows of numbers, in f64."""
        length = len(rows[0])
        memory = client.create(len(rows) * length * (SIZES[dtype] + 8))
        values = pack_dtype(dtype, [value for row in rows for value in row])
        memory.write(values)
        given = tensor(memory.buffer, [len(rows), length], dtype=dtype)
        made = tensor(memory.buffer, [len(rows), length], dtype="f64", offset=len(values))
        client.call("job.run", input=given, output=made, axis=1, steps=[step])
        results = struct.unpack(f"<{len(rows) * length}d", memory.read()[len(values) :][: 8 * len(rows) * length])
        client.call("buffer.release", buffer=memory.buffer)
        return [results[r * length : (r + 1) * length] for r in range(len(rows))]

    def test_definition(self):
        client = self.client()
        row = [1, 2, 3, 4, 5, 9]
        for step, expected in (
            (triangle(2), (1.25, 2, 3, 4, 5.75, 8)),
            (triangle(2, norm="height"), (2.5, 4, 6, 8, 11.5, 16)),
            (triangle(2, norm="none", boundary="zero"), (4, 8, 12, 16, 23, 23)),
            (triangle(2, norm="none", boundary="skip"), (0, 0, 12, 16, 0, 0)),
            (triangle(1), tuple(row)),
            (box(2, norm="none"), (4, 6, 9, 12, 18, 23)),
            (box(2, norm="height", boundary="zero"), (3, 6, 9, 12, 18, 14)),
            (box(2, norm="none", boundary="skip"), (0, 6, 9, 12, 18, 0)),
            (box(1), tuple(row)),
        ):
            with self.subTest(step=step):
                self.assertEqual(self.filtered(client, [row], "f32", step), [expected])

    def test_formula(self):
        client = self.client()
        generator = random.Random(11)
        rows = [[generator.uniform(-1, 1) + mean for _ in range(700)] for mean in (0, 1000)]
        for width, norm, boundary in ((5, "area", "reflect"), (300, "height", "zero"), (1000, "area", "reflect"), (64, "none", "zero")):
            scale = {"area": 1 / width**2, "height": 1 / width, "none": 1}[norm]
            results = self.filtered(client, rows, "f64", triangle(width, norm=norm, boundary=boundary))
            for row, result in zip(rows, results):
                for i in range(0, 700, 33):
                    weighted = (
                        (width - abs(m)) * in_a_mirror(row, i + m)
                        for m in range(1 - width, width)
                        if boundary == "reflect" or 0 <= i + m < len(row)
                    )
                    expected = scale * math.fsum(weighted)
                    self.assertAlmostEqual(result[i], expected, delta=1e-12 * width**2 * scale * max(map(abs, row)))

    def test_means(self):
        client = self.client()
        generator = random.Random(12)
        row = [generator.uniform(-1, 1) + 1000 for _ in range(700)]
        for width in 2, 50, 64, 1500:
            (result,) = self.filtered(client, [row], "f64", box(width))
            for i in range(0, 700, 33):
                expected = math.fsum(in_a_mirror(row, i + m) for m in range(1 - width, width)) / (2 * width - 1)
                self.assertAlmostEqual(result[i], expected, delta=1e-9)

    def test_chains(self):
        client = self.client()
        steps = [FORWARD, triangle(3), upsample(2), box(5), triangle(40, boundary="zero"), BOTH, SUM]
        for shape in ([12], [40, 1200], [3, 24, 5], [3, 0], [0, 12], [3000, 3]):
            for axis in range(len(shape)):
                self.check(client, shape, axis, steps)
        self.check(client, [1, 4 << 20], 1, [triangle(1000)], ("f32", "f32"))
        for dtypes in ("f16", "bf16"), ("i16be", "f32"), ("ibm32", "ibm32"), ("i32be", "f64"):
            self.check(client, [9, 1100], 1, [triangle(7), FORWARD, triangle(2048)], dtypes)
        self.check(client, [1000], 0, [triangle(9), FORWARD, box(70)], ("f32", "f32"), offsets=[3, 3, 10, 400, 401, 990])
        self.check(client, [1000], 0, [triangle(9), box(70), SUM], ("f32", "f32"), offsets=[3, 3, 3])

    def test_repeated(self):
        """A step that stands for several, repeated or with a scale, is as many steps, in one job and beside others."""
        client = self.client()
        source = self.noise(client, "f32", 9 * 1100)
        made = [client.create(4 * 9 * 1100) for _ in range(2)]
        for once, again in (
            ([triangle(5, repeat=3)], [triangle(5)] * 3),
            ([FORWARD, box(4, repeat=2), triangle(9, boundary="zero", repeat=4)], [FORWARD] + [box(4)] * 2 + [triangle(9, boundary="zero")] * 4),
            ([box(2, repeat=1)], [box(2)]),
            ([{**FORWARD, "scale": 0.004}], [FORWARD, mapped("mul", by=0.004)]),
            ([{**FORWARD, "scale": 0.5}, box(4, repeat=2), {**FORWARD, "scale": 0}], [FORWARD, mapped("mul", by=0.5), box(4), box(4), FORWARD, mapped("mul", by=0)]),
        ):
            for output, steps in zip(made, (once, again)):
                client.call("job.run", input=tensor(source.buffer, [9, 1100]), output=tensor(output.buffer, [9, 1100]), axis=1, steps=steps)
            self.assertTrue(made[0].read() == made[1].read())

    def widths(self, client, values, shape, dtype="i32"):
        memory = client.create(max(1, len(values)) * SIZES[dtype])
        memory.write(pack_dtype(dtype, values))
        return tensor(memory.buffer, shape, dtype=dtype)

    def test_half_widths(self):
        """Against the formula, of each sample with its own, and with one vector for all rows."""
        client, generator = self.client(), random.Random(13)
        rows = [[generator.uniform(-1, 1) for _ in range(300)] for _ in range(4)]
        own = [generator.randrange(1, 91) for _ in range(4 * 300)]
        cases = [(filter, norm, boundary) for filter in (triangle, box) for norm, boundary in (("area", "reflect"), ("height", "zero"), ("none", "skip"))]
        for filter, norm, boundary in cases:
            for shared in False, True:
                widths = {**self.widths(client, own, [4, 300], "i64" if shared else "i32"), **({"strides": [0, 8]} if shared else {})}
                results = self.filtered(client, rows, "f64", filter(90, norm=norm, boundary=boundary, half_widths=widths))
                for r, i in ((r, i) for r in range(4) for i in range(0, 300, 7)):
                    width, row = own[i if shared else r * 300 + i], rows[r]
                    weight = (lambda m: width - abs(m)) if filter is triangle else (lambda m: 1)
                    sizes = {"area": sum(map(weight, range(1 - width, width))), "height": max(map(weight, range(1 - width, width))), "none": 1}
                    taps = [(weight(m), i + m) for m in range(1 - width, width)]
                    reach = width if filter is triangle else width - 1
                    expected = math.fsum(w * in_a_mirror(row, at) for w, at in taps if boundary == "reflect" or 0 <= at < 300) / sizes[norm]
                    if boundary == "skip" and not (reach <= i < 300 - reach):
                        expected = 0
                    self.assertAlmostEqual(results[r][i], expected, delta=1e-9 * width)

    def test_equal_half_widths(self):
        """Equal half-widths make no difference, in chains and repeated."""
        client = self.client()
        source, made = self.noise(client, "f32", 40 * 1100), [client.create(4 * 40 * 1100) for _ in range(2)]
        for width in 1, 7, 200, 2048:
            widths = {**self.widths(client, [width], [40, 1100]), "strides": [0, 0]}
            each = {"half_widths": widths}
            for alike, own in (
                ([triangle(width)], [triangle(width, **each)]),
                ([FORWARD, box(width, boundary="zero"), BOTH], [FORWARD, box(width, boundary="zero", **each), BOTH]),
                ([triangle(width)] * 3, [triangle(width, repeat=3, **each)]),
            ):
                for output, steps in zip(made, (alike, own)):
                    client.call("job.run", input=tensor(source.buffer, [40, 1100]), output=tensor(output.buffer, [40, 1100]), axis=1, steps=steps)
                self.assertTrue(made[0].read() == made[1].read())

    def test_chains_of_half_widths(self):
        client, generator = self.client(), random.Random(14)
        widths = self.widths(client, [generator.randrange(1, 60) for _ in range(40 * 200)], [40, 200])
        half = {**widths, "shape": [40, 100], "strides": [400, 4]}
        steps = [triangle(59, half_widths=half), upsample(2), box(70, half_widths=widths, boundary="zero"), FORWARD, SUM]
        for dtypes in ("f32", "f32"), ("f16", "bf16"), ("i16be", "f64"):
            self.check(client, [40, 100], 1, steps, dtypes)
        self.check(client, [40, 100], 1, steps, strides=[4, 160])
        across = {**widths, "shape": [100, 40], "strides": [4, 400]}
        self.check(client, [100, 40], 0, [triangle(59, half_widths=across), FORWARD])
        self.check(client, [1, 4 << 20], 1, [triangle(1000, half_widths={**widths, "shape": [1, 4 << 20], "strides": [0, 0]})], ("f32", "f32"))

    def test_half_widths_of_ragged_rows(self):
        """Only the half-widths of rows are checked, whether offsets are read at once, by a helper, or after a job that writes them."""
        client, generator, length = self.client(), random.Random(15), 9000
        values = [generator.randrange(1, 50) for _ in range(length)]
        values[0], values[1], values[-1] = 0, 99, -1  # which belong to no row
        widths = self.widths(client, values, [length])
        few, many = [2, 2, 10, 400, 401, 8990], sorted(generator.randrange(2, length - 1) for _ in range(3000))
        for offsets in few, many, [5] * 4:
            self.check(client, [length], 0, [triangle(49, half_widths=widths), FORWARD, box(60, half_widths=widths)], ("f32", "f32"), offsets=offsets)
        source, made, places = (client.create(8 * length) for _ in range(3))
        line, results = tensor(source.buffer, [length]), tensor(made.buffer, [length])
        made.write(bytes([0xA5]) * made.size)
        for offsets in few, many:
            places.write(pack_dtype("i64", offsets))
            ragged = {"axis": 0, "offsets": tensor(places.buffer, [len(offsets)], dtype="i64")}
            for at in offsets[0], offsets[-1] - 1:
                wrong = self.widths(client, values[:at] + [50] + values[at + 1 :], [length], "i64")
                message = f'"steps[0].half_widths"[{at}] is 50; allowed: 1 to 49; nothing has been written'
                self.refuse(client, message, input=line, output=results, **ragged, steps=[triangle(49, half_widths=wrong)])
        self.assertEqual(made.read(), bytes([0xA5]) * made.size)
        places.write(pack_dtype("i64", [0] * 3000))
        ones = tensor(self.widths(client, [1], [1], "i64")["buffer"], [length // 3], [0], dtype="i64")
        written = {**ragged["offsets"], "shape": [length // 3]}
        first = client.send("job.run", input=ones, output={**written, "shape": [3000]}, axis=0, steps=[FORWARD])
        wrong = self.widths(client, [9] * 2999 + [50] + [9] * (length - 3000), [length])
        second = client.send("job.run", input=line, output=results, axis=0, offsets={**written, "shape": [3000]}, steps=[triangle(49, half_widths=wrong)])
        client.wait(first)
        self.fails(client, second, "invalid", re.escape('job.run: "steps[0].half_widths"[2999] is 50; allowed: 1 to 49; nothing has been written'))

    def test_half_widths_are_looked_at(self):
        """Half-widths are checked before anything is written."""
        client = self.client()
        source, results = client.create(4 * 600 * 1000), client.create(4 * 600 * 1000)
        job = {"input": tensor(source.buffer, [600, 1000]), "output": tensor(results.buffer, [600, 1000]), "axis": 1}
        results.write(bytes([0xA5]) * results.size)
        for value, dtype in (0, "i32"), (9, "i32"), (-1, "i64"), (1 << 40, "i64"):
            for at in 0, 777, 599 * 1000 + 999:
                values = [1 + i % 8 for i in range(600 * 1000)]
                values[at] = value
                widths = self.widths(client, values, [600, 1000], dtype)
                message = f'element {at % 1000} of "steps[0].half_widths" for row {at // 1000} is {value}; allowed: 1 to 8; nothing has been written'
                self.refuse(client, message, **job, steps=[triangle(8, half_widths=widths)])
                client.call("buffer.release", buffer=widths["buffer"])
        self.assertEqual(results.read(), bytes([0xA5]) * results.size)

    def test_refused_half_widths(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 100], offset=8192)
        widths = tensor(memory.buffer, [4, 100], dtype="i32", offset=16384)
        job = {"input": rows, "output": made, "axis": 1}
        self.refuse(client, 'field "steps[0].half_width" is missing', **job, steps=[{"operation": "triangle", "half_widths": widths}])
        self.refuse(client, '"steps[0].half_widths.dtype" is "f32"; allowed: i32, i64', **job, steps=[triangle(8, half_widths={**widths, "dtype": "f32"})])
        message = 'dimension 1 of "input" is 100 and of "steps[0].half_widths" 99; they must be equal'
        self.refuse(client, message, **job, steps=[box(8, half_widths={**widths, "shape": [4, 99]})])
        message = 'dimension 1 of "steps[1].half_widths" is 100; it must be 200, which the steps before it make'
        self.refuse(client, message, input=rows, output=tensor(memory.buffer, [4, 200], offset=32768), axis=1, steps=[upsample(2), triangle(8, half_widths=widths)])
        self.refuse(client, '"steps[0].half_widths" (bytes 8000 to', **job, steps=[triangle(8, half_widths={**widths, "offset": 8000})])
        message = '"steps[0].half_widths" is one operand too many; allowed: 5 tensors of all steps together; submit the other steps as a further job'
        self.refuse(client, message, **job, steps=[triangle(8, half_widths=widths, repeat=6)])

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 100], offset=8192)
        both = {"input": rows, "output": made, "axis": 1}
        self.refuse(client, '"steps[1].half_width" is 0; allowed: 1 to 2048', steps=[FORWARD, triangle(0)], **both)
        self.refuse(client, '"steps[0].half_width" is 0; allowed: 1 to 2048', steps=[box(0)], **both)
        for width in 2049, 1 << 32, (1 << 64) - 1:
            self.refuse(client, f'field "steps[0].half_width" is {width}; allowed: 1 to 2048', steps=[triangle(width)], **both)
        self.refuse(client, 'field "steps[0].half_width" is missing', steps=[{"operation": "triangle"}], **both)
        self.refuse(client, 'field "steps[0].norm" is', steps=[triangle(2, norm="unit")], **both)
        self.refuse(client, 'field "steps[0].repeat" is 10; allowed: 1 to 9', steps=[triangle(2, repeat=10)], **both)
        most = '"steps[{}].repeat" is {}; allowed here: 1 to {}, since a job has at most 9 steps, repeated ones counted; submit others as a further job'
        self.refuse(client, most.format(1, 0, 8), steps=[FORWARD, triangle(2, repeat=0)], **both)
        self.refuse(client, most.format(1, 5, 4), steps=[triangle(2, repeat=5), box(2, repeat=5)], **both)
        self.refuse(client, '"steps[1].scale" is a step too many; allowed: 9 steps', steps=[triangle(2, repeat=8), {**FORWARD, "scale": 2}], **both)
        self.refuse(client, '"steps[1].scale" is 1e+300', steps=[triangle(2), {**FORWARD, "scale": 1e300}], **both)
        self.refuse(client, most.format(0, 9, 8), steps=[triangle(2, repeat=9), FORWARD], **both)
        self.refuse(client, '"steps[1].half_width" is 0; allowed: 1 to 2048', steps=[box(2, repeat=3), triangle(0)], **both)
        self.refuse(client, 'field "steps[0].boundary" is', steps=[triangle(2, boundary="mirror")], **both)
        whole = {"input": {**rows, "dtype": "i32"}, "output": {**made, "dtype": "i32"}, "axis": 1}
        message = '"input.dtype" is "i32"; allowed with "steps[0].operation" "triangle": f32, f64, f16, bf16, f32be, i16be, i32be, ibm32'
        self.refuse(client, message, steps=[triangle(2)], **whole)
        message = '"input" and "output" are the same elements, but "steps[0].operation" is "triangle", which does not work in place'
        self.refuse(client, message, input=rows, output=rows, axis=1, steps=[triangle(2)])


class Picks(OperationsTest):
    def numbers(self, client, values, shape, dtype="f64"):
        memory = client.create(max(1, len(values)) * SIZES[dtype])
        memory.write(pack_dtype(dtype, values))
        return tensor(memory.buffer, shape, dtype=dtype)

    def picked(self, client, given, picks, steps, axis=1):
        """Returns the steps' results for rows, in f64."""
        memory = client.create(8 * given["shape"][1 - axis] * picks)
        shape = [given["shape"][0], picks] if axis == 1 else [picks, given["shape"][1]]
        client.call("job.run", input=given, output=tensor(memory.buffer, shape, dtype="f64"), axis=axis, steps=steps)
        return struct.unpack(f"<{shape[0] * shape[1]}d", memory.read()[: 8 * shape[0] * shape[1]])

    def test_definition(self):
        client = self.client()
        rows = self.numbers(client, (1, 3, 7, 5, 5, 2, 10, 30, 70, 50, 50, 20), [2, 6], "f32")
        places, widths = (1, 2, 2.5, 1.25, 0.5, 4.25), (0, 1, 0.5, 0, 0, 0.5)
        expected = (-2, 8 / 4, 4 / 2.25, 0, 0, 0)
        shared = [self.numbers(client, values, [6]) for values in (places, widths)]
        self.assertEqual(self.picked(client, rows, 6, [pick(*shared)]), (*expected, *(10 * value for value in expected)))
        own = [self.numbers(client, [*values, *reversed(values)], [2, 6], "f32") for values in (places, widths)]
        self.assertEqual(self.picked(client, rows, 6, [pick(*own)]), (*expected, *(10 * value for value in reversed(expected))))
        columns = {**rows, "shape": [6, 2], "strides": [4, 24]}
        across = self.picked(client, columns, 6, [pick(*shared)], axis=0)
        self.assertEqual(across, tuple(scale * value for value in expected for scale in (1, 10)))

    def test_behind_a_double_sum(self):
        """Picks equal sums with weights that are written out: w - |i - t| for the samples within w of t, all else being interpolated."""
        client, values = self.client(), random.Random(21)
        rows, length, picks = 7, 400, 300
        x = [[float(values.randrange(-9, 10)) for _ in range(length)] for _ in range(rows)]
        places = [values.randrange(4 * length) / 4 for _ in range(rows * picks)]
        widths = [values.randrange(-2, 60) / 2 for _ in range(rows * picks)]
        given = self.numbers(client, [value for row in x for value in row], [rows, length], "f32")
        step = pick(self.numbers(client, places, [rows, picks]), self.numbers(client, widths, [rows, picks], "f32"))
        results, kept = self.picked(client, given, picks, [BOTH, step]), 0
        for k, result in enumerate(results):
            t, w, row = places[k], widths[k] + 1, x[k // picks]
            if widths[k] < 0 or t - w < 0 or t + w > length - 1:
                self.assertEqual(result, 0)
                continue
            ramp = lambda i, at: max(0.0, i - at)  # what a double sum from the right has of sample i, at a sample
            bent = lambda i, at: (1 - at % 1) * ramp(i, math.floor(at)) + at % 1 * ramp(i, math.floor(at) + 1)
            exact = sum(value * (bent(i, t - w) - 2 * bent(i, t) + bent(i, t + w)) for i, value in enumerate(row)) / w**2
            self.assertAlmostEqual(result, exact, delta=1e-9)
            kept += 1
        self.assertGreater(kept, rows * picks // 2)

    def test_as_triangles(self):
        """Picks of whole numbers, at samples, equal triangles, as no sum is rounded."""
        client = self.client()
        memory, made = self.noise(client, "f32", 40 * 300), client.create(8 * 40 * 300)
        rows, results = tensor(memory.buffer, [40, 300]), tensor(made.buffer, [40, 300], dtype="f64")
        places = self.numbers(client, [float(i) for i in range(300)], [300])
        for width in 1, 2, 16, 64:
            client.call("job.run", input=rows, output=results, axis=1, steps=[triangle(width, boundary="skip")])
            expected = struct.unpack("<12000d", made.read()[: 8 * 12000])
            widths = {**self.numbers(client, [width - 1.0], [300]), "strides": [0]}
            self.assertEqual(self.picked(client, rows, 300, [BOTH, pick(places, widths)]), expected)

    def test_chains(self):
        client, values = self.client(), random.Random(22)
        many = self.numbers(client, [values.uniform(-9, 310) for _ in range(40 * 100)], [40, 100])
        wide = self.numbers(client, [values.uniform(-0.1, 30) for _ in range(40 * 100)], [40, 100], "f32")
        one, narrow = {**many, "shape": [100], "strides": [8]}, {**wide, "shape": [100], "strides": [4]}
        for steps in (
            [DEMEAN, BOTH, pick(many, wide)],
            [BOTH, pick(one, wide), FORWARD, pick(one, narrow), SUM],
            [upsample(3), pick(many, narrow), triangle(5)],
        ):
            self.check(client, [40, 300], 1, steps)
            self.check(client, [40, 300], 1, steps, ("ibm32", "f32"), strides=[4, 160])
        self.check(client, [40, 0], 1, [FORWARD, pick(one, narrow)])
        self.check(client, [3000, 500], 1, [BOTH, pick(one, narrow)], ("f32", "f32"))
        long = {**one, "shape": [1 << 20], "strides": [0]}
        self.check(client, [2, 300], 1, [pick(long, {**narrow, "shape": [1 << 20], "strides": [0]})], ("f32", "f32"))

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows, made = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 8], offset=8192)
        places, widths = tensor(memory.buffer, [8], offset=16384), tensor(memory.buffer, [8], dtype="f64", offset=20480)
        job = {"input": rows, "output": made, "axis": 1}
        self.refuse(client, 'field "steps[0].position" is missing', **job, steps=[{"operation": "pick", "half_width": widths}])
        self.refuse(client, 'field "steps[1].half_width" is missing', **job, steps=[FORWARD, {"operation": "pick", "position": places}])
        message = '"steps[0].half_width" has 7 elements along the axis; it must have 8, one for each element of "position"'
        self.refuse(client, message, **job, steps=[pick(places, {**widths, "shape": [7]})])
        self.refuse(client, 'dimension 1 of "output" is 8; it must be 9, which', **job, steps=[pick({**places, "shape": [9]}, {**widths, "shape": [9]})])
        message = 'dimension 0 of "input" is 4 and of "steps[0].position" 3; they must be equal'
        self.refuse(client, message, **job, steps=[pick({**places, "shape": [3, 8], "strides": [0, 4]}, widths)])
        self.refuse(client, '"steps[0].position.dtype" is "i32"; allowed: f32, f64, f16', **job, steps=[pick({**places, "dtype": "i32"}, widths)])
        self.refuse(client, '"steps[0].position" (bytes 8190 to', **job, steps=[pick({**places, "offset": 8190}, widths)])
        whole = {"input": {**rows, "dtype": "i32"}, "output": {**made, "dtype": "i32"}, "axis": 1}
        message = '"input.dtype" is "i32"; allowed with "steps[0].operation" "pick": f32, f64, f16'
        self.refuse(client, message, **whole, steps=[pick(places, widths)])
        message = '"input" and "output" are the same elements, but "steps[0].operation" is "pick", which does not work in place'
        every = {"shape": [100], "strides": [0]}
        self.refuse(client, message, input=rows, output=rows, axis=1, steps=[pick({**places, **every}, {**widths, **every})])
        endless = {"shape": [(1 << 33) + 1], "strides": [0]}
        message = '"steps[0].operation" is "pick", which would leave rows of more than 8589934592 elements each'
        self.refuse(client, message, **job, steps=[pick({**places, **endless}, {**widths, **endless})])
        offsets, line = tensor(memory.buffer, [3], dtype="i64", offset=32768), tensor(memory.buffer, [100])
        message = '"steps[0].operation" is "pick", which changes the length of rows, but "offsets" makes rows'
        self.refuse(client, message, input=line, output=tensor(memory.buffer, [8], offset=8192), axis=0, offsets=offsets, steps=[pick(places, widths)])


class Means(OperationsTest):
    def test_as_scans_have_it(self):
        client = self.client()
        once = {**BOTH, "passes": ["backward"]}  # with two, f32 samples are rounded between them
        for scan, *dtypes in (BOTH, "f32", "f32"), (once, "f32", "f64"), (BOTH, "f64", "f64"), (BOTH, "bf16", "f32"), (BOTH, "ibm32", "f32"):
            memory, made = self.noise(client, dtypes[0], 40 * 300), client.create(40 * 300 * 8)
            rows = tensor(memory.buffer, [40, 300], dtype=dtypes[0])
            results = tensor(made.buffer, [40, 300], dtype=dtypes[1])
            for axis in 0, 1:
                left = []
                for steps in [{**scan, "demean": 1}], [DEMEAN, scan]:
                    client.call("job.run", input=rows, output=results, axis=axis, steps=steps)
                    left.append(made.read())
                self.assertTrue(left[0] == left[1])

    def test_chains(self):
        client = self.client()
        taps = self.noise(client, "f32", 5)
        steps = [DEMEAN, convolve(tensor(taps.buffer, [5]), "same"), BOTH, triangle(6)]
        for shape in ([12], [40, 1200], [3, 24, 5], [3, 0], [0, 12], [3000, 3]):
            for axis in range(len(shape)):
                self.check(client, shape, axis, steps if shape[axis] >= 5 else [DEMEAN, BOTH])
        self.check(client, [1, 3 << 20], 1, [DEMEAN], ("f32", "f32"))
        self.check(client, [1000], 0, [DEMEAN, FORWARD, DEMEAN], ("f32", "f32"), offsets=[3, 3, 10, 400, 401, 990])

    def test_in_place(self):
        client = self.client()
        memory = client.create(32)
        memory.write(struct.pack("<4d", 1, 2, 3, 6))
        row = tensor(memory.buffer, [4], dtype="f64")
        client.call("job.run", input=row, output=row, axis=0, steps=[DEMEAN])
        self.assertEqual(struct.unpack("<4d", memory.read()), (-2, -1, 0, 3))

    def test_refused(self):
        client = self.client()
        memory = client.create(1 << 16)
        rows = tensor(memory.buffer, [4, 100], dtype="i32")
        self.refuse(client, '"input.dtype" is "i32"; allowed with "steps[0].operation" "demean": f32', input=rows, output=rows, axis=1, steps=[DEMEAN])
        rows = tensor(memory.buffer, [4, 100])
        message = 'field "steps[0].factor" is 2, but operation "demean" has no such parameter; it takes: none'
        self.refuse(client, message, input=rows, output=rows, axis=1, steps=[{**DEMEAN, "factor": 2}])


if __name__ == "__main__":
    main()

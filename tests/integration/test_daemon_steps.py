#!/usr/bin/env python3
"""Jobs whose last step leaves another shape: what separate jobs leave that keep the values between them in a tensor of the output's dtype.

    test_daemon_steps.py SCAND [unittest's arguments]
"""

import itertools
import math
import random
import re

from daemons import DaemonTest, main
from forms import pack_dtype
from test_daemon_chains import FLOAT_STEPS, INTEGER_STEPS
from wire import SIZES, tensor

SUM = {"operation": "reduce", "reduction": "sum"}


def scans(steps):
    return [{"operation": "scan", **step} for step in steps]


class StepsTest(DaemonTest):
    def check(self, client, shape, axis, steps, reduction="sum", dtypes=("f32", "f64"), strides=None, offsets=None):
        """Compares every byte of the results, and that nothing but them is written."""
        given, made = dtypes
        count = math.prod(shape)
        kept = [1 if k == axis else n for k, n in enumerate(shape)] if offsets is None else [len(offsets) - 1]
        noise = random.Random(count)
        memory, between = client.create(max(1, count) * SIZES[given]), client.create(max(1, count) * SIZES[made])
        results = client.create(max(1, math.prod(kept)) * SIZES[made] + 16)
        memory.write(pack_dtype(given, noise.choices(range(8), k=count)))
        source, values = tensor(memory.buffer, shape, strides, given), tensor(between.buffer, shape, dtype=made)
        output = tensor(results.buffer, kept, dtype=made, offset=8)
        rest = {"axis": axis}
        buffers = [memory, between, results]
        if offsets is not None:
            buffers.append(client.create(8 * len(offsets)))
            buffers[-1].write(pack_dtype("i64", offsets))
            rest["offsets"] = tensor(buffers[-1].buffer, [len(offsets)], dtype="i64")
        last = {"operation": "reduce", "reduction": reduction}
        before = bytes([0xA5]) * results.size
        results.write(before)
        client.call("job.run", input=source, output=values, steps=scans(steps), **rest)
        client.call("job.run", input=values, output=output, steps=[last], **rest)
        expected, untouched = results.read(), memory.read()
        results.write(before)
        client.call("job.run", input=source, output=output, steps=[*scans(steps), last], **rest)
        self.assertTrue(results.read() == expected)
        self.assertTrue(memory.read() == untouched)
        for buffer in buffers:
            client.call("buffer.release", buffer=buffer.buffer)


class LastReductions(StepsTest):
    def test_shapes_and_axes(self):
        client = self.client()
        for shape in ([1], [7], [3, 5], [40, 1000], [6, 5, 700], [2, 3, 4, 50], [1, 20000], [3, 0], [0, 3], [3000, 3]):
            for axis in range(len(shape)):
                with self.subTest(shape=shape, axis=axis):
                    self.check(client, shape, axis, FLOAT_STEPS[:2])

    def test_dtypes_and_steps(self):
        client = self.client()
        pairs = [("f32", "f32"), ("f64", "f32"), ("f16", "bf16"), ("i16be", "f64"), ("ibm32", "f32be"), ("i32", "i64"), ("u32", "u32")]
        for (given, made), reduction in itertools.product(pairs, ("sum", "max")):
            steps = INTEGER_STEPS if given in ("i32", "u32") else FLOAT_STEPS
            steps = [{**step, "accumulator": "auto"} for step in steps]
            for count in (1, 2, len(steps)):
                with self.subTest(given=given, made=made, reduction=reduction, steps=count):
                    self.check(client, [9, 1100], 1, steps[:count], reduction, (given, made))
        for reduction in ("min", "mean", "rms", "norm"):
            self.check(client, [9, 1100], 1, FLOAT_STEPS[:1], reduction)

    def test_layouts(self):
        """Traces with gaps, a broadcast row, columns, and rows backwards."""
        client = self.client()
        self.check(client, [40, 100], 1, FLOAT_STEPS[:2], strides=[0, 4])
        self.check(client, [40, 100], 0, FLOAT_STEPS[:2], strides=[4, 160])
        self.check(client, [10, 4, 25], 1, FLOAT_STEPS[:2], strides=[400, 4, 16])

    def test_several_chunks(self):
        """Chunks of 16 MiB each, in one of which a row is alone, and one whose steps take its device for slices."""
        client = self.client()
        both = ("f32", "f32")
        slow = {"passes": ["forward", "backward"], "op": "affine", "coefficient": 0.5, "accumulator": "f2"}
        self.check(client, [500, 10000], 1, FLOAT_STEPS[:1], dtypes=both)
        self.check(client, [3, 1 << 20], 1, FLOAT_STEPS[:2], dtypes=both)
        self.check(client, [2, 2 << 20], 1, [slow, slow], dtypes=both)

    def test_ragged_rows(self):
        client = self.client()
        self.check(client, [1000], 0, FLOAT_STEPS[:2], offsets=[3, 3, 10, 400, 401, 990])
        many = [min(7 * i, 60000) for i in range(9000)]
        self.check(client, [60000], 0, FLOAT_STEPS[:2], offsets=many)
        self.check(client, [4 << 20], 0, FLOAT_STEPS[:1], dtypes=("f32", "f32"), offsets=[5, 1 << 20, 3 << 20, 3 << 20])

    def test_between_is_bounded(self):
        """The memory between steps is bounded by the row, also for ragged rows, whether they are read here or by a helper."""
        client = self.client()
        memory, results = client.create(1 << 20), client.create(1 << 20)
        length = (16 << 20) // 8 + 1
        row, output = tensor(memory.buffer, [1, length], [0, 0]), tensor(results.buffer, [1, 1], dtype="f64")
        steps = [*scans(FLOAT_STEPS[:1]), SUM]
        message = f'job.run: "steps[0]" would leave {length} elements of a row, of 8 bytes each, for the step after it; allowed: 16777216'
        self.refused(client, "invalid", re.escape(message), "job.run", input=row, output=output, axis=1, steps=steps)
        row["shape"] = [1, length - 1]
        client.call("job.run", input=row, output=output, axis=1, steps=steps)
        for rows in (2, 3000):
            offsets = [0] * rows + [length]
            memory.write(pack_dtype("i64", offsets), 4096)
            line, results_of = tensor(memory.buffer, [length], [0]), tensor(results.buffer, [rows], dtype="f64")
            where = tensor(memory.buffer, [rows + 1], dtype="i64", offset=4096)
            self.refused(client, "invalid", re.escape(message), "job.run", input=line, output=results_of, axis=0, steps=steps, offsets=where)
        self.assertEqual(client.call("server.stats")["jobs_open"], 0)


class Refusals(StepsTest):
    def test_nothing_follows_a_reduction(self):
        client = self.client()
        memory = client.create(4096)
        rows, results = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 1], offset=2048)
        message = 'job.run: "steps[1].operation" is "scan", which takes rows of samples, but "reduce" before it leaves one element for each row'
        self.refused(client, "invalid", re.escape(message), "job.run", input=rows, output=results, axis=1, steps=[SUM, *scans(FLOAT_STEPS[:1])])
        self.refused(client, "invalid", re.escape(message[:30]), "job.run", input=rows, output=results, axis=1, steps=[SUM, SUM])

    def test_not_in_place(self):
        client = self.client()
        memory = client.create(4096)
        rows, results = tensor(memory.buffer, [4, 100]), tensor(memory.buffer, [4, 1], [400, 4])
        message = '"input" (bytes 0 to 1600) and "output" (bytes 0 to 1204) of buffer 1 overlap; with "operation" "reduce" keep them apart'
        self.refused(client, "invalid", re.escape(message), "job.run", input=rows, output=results, axis=1, steps=[*scans(FLOAT_STEPS[:1]), SUM])


if __name__ == "__main__":
    main()

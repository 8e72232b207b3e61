#!/usr/bin/env python3
"""Jobs of several steps: every byte is what separate jobs leave, each scanning in place what the one before has written,
and job.run does the same as job.submit.

    test_daemon_chains.py SCAND [unittest's arguments]
"""

import itertools
import random
import struct

from daemons import DaemonTest, main
from forms import pack_dtype
from wire import SIZES, pack_f32, scan, tensor, unpack_f32

BOTH = ["forward", "backward"]
FLOAT_STEPS = [
    {"passes": ["backward"], "accumulator": "f64"},
    {"passes": BOTH, "accumulator": "f2", "intermediate": "f64"},
    {"passes": ["forward"], "kind": "exclusive", "demean": 1},
    {"passes": ["forward"], "kind": "half", "accumulator": "f64"},
    {"passes": ["backward"], "op": "affine", "coefficient": 0.75, "accumulator": "f64"},
    {"passes": ["forward"], "op": "max"},
]
INTEGER_STEPS = [
    {"passes": BOTH},
    {"passes": ["forward"], "op": "affine", "coefficient": -3},
    {"passes": ["backward"], "op": "min"},
    {"passes": ["forward"], "kind": "exclusive", "op": "max"},
    {"passes": ["backward"], "op": "prod"},
]


PARAMETERS = ("passes", "kind", "op", "accumulator", "intermediate", "demean", "coefficient", "coefficients")


def run_of(job, then):
    """Turns a job.submit into a job.run: the job's own scan is the first step."""
    steps = [{name: job[name] for name in PARAMETERS if name in job}, *then]
    rest = {name: value for name, value in job.items() if name not in PARAMETERS}
    return {**rest, "steps": [{"operation": "scan", **step} for step in steps]}


class ChainsTest(DaemonTest):
    def check(self, client, job, then, *memories):
        """Compares every byte of the buffers, which are filled, after separate jobs and after the chain."""
        before = [memory.read() for memory in memories]
        client.call("job.submit", job)
        rest = {"input": job["output"], "output": job["output"], "axis": job["axis"]}
        rest |= {"offsets": job["offsets"]} if "offsets" in job else {}
        for step in then:
            client.call("job.submit", {**rest, **step})
        expected = [memory.read() for memory in memories]
        for method, params in ("job.submit", {**job, "then": then}), ("job.run", run_of(job, then)):
            for memory, data in zip(memories, before):
                memory.write(data)
            client.call(method, params)
            for memory, data in zip(memories, expected):
                self.assertTrue(memory.read() == data, method)

    def fill(self, memory, dtype="f32"):
        noise = random.Random(memory.size)
        count = memory.size // SIZES[dtype]
        if SIZES[dtype] == 4 and dtype == "f32" and count > 10**5:  # quickly
            memory.write(noise.randbytes(4096).translate(bytes(range(32, 64)) * 8) * (memory.size // 4096))
        else:
            memory.write(pack_dtype(dtype, noise.choices(range(8), k=count)))


class Chains(ChainsTest):
    def test_long_row(self):
        """A row of more than two slots: a GPU gets its steps one at a time, a processor does it in slices."""
        client = self.client()
        memory = client.create(36 << 20)
        self.fill(memory)
        row = scan(tensor(memory.buffer, [1, 9 << 20]), axis=1, passes=BOTH, accumulator="f64")
        self.check(client, row, FLOAT_STEPS[:3], memory)

    def test_every_dtype(self):
        client = self.client()
        pairs = [("f32", "f32"), ("f32", "f64"), ("f64", "f32"), ("f64", "f64"), ("f16", "f16"), ("bf16", "f32")]
        pairs += [("f32be", "f32be"), ("i16be", "f32"), ("ibm32", "ibm32"), ("i32be", "f64"), ("f32", "i16be")]
        pairs += [("i32", "i32"), ("i32", "i64"), ("u32", "u64"), ("u64", "u64")]
        for given, made in pairs:
            steps = INTEGER_STEPS if given in ("i32", "u32", "u64") else FLOAT_STEPS
            if made == "f64":
                steps = [{**step, "accumulator": "f2"} for step in steps]
            shape = [7, 1100]
            memory, target = client.create(7700 * SIZES[given]), client.create(7700 * SIZES[made])
            self.fill(memory, given)
            rows, out = tensor(memory.buffer, shape, dtype=given), tensor(target.buffer, shape, dtype=made)
            for count in (1, 2, len(steps)):
                with self.subTest(given=given, made=made, steps=count):
                    self.check(client, scan(rows, out), steps[:count], memory, target)
                    if SIZES[given] == SIZES[made]:
                        there = {**rows, "dtype": made}
                        self.check(client, scan(rows, there, passes=BOTH), steps[:count], memory)
            for unneeded in (memory, target):
                client.call("buffer.release", buffer=unneeded.buffer)

    def test_every_pair_of_steps(self):
        client = self.client()
        memory, target = client.create(4 * 5 * 700), client.create(4 * 5 * 700)
        self.fill(memory)
        rows, out = tensor(memory.buffer, [5, 700]), tensor(target.buffer, [5, 700])
        for first, second in itertools.permutations(FLOAT_STEPS, 2):
            with self.subTest(first=first, second=second):
                self.check(client, {**scan(rows, out), **first}, [second, first], memory, target)

    def test_layouts(self):
        """Columns, reversed and spaced rows, traces after headers, odd places, a cube along its middle axis."""
        client = self.client()
        memory, target = client.create(1 << 20), client.create(1 << 20)
        self.fill(memory)
        for shape, strides, offset, axis in [
            ([300, 500], [2000, 4], 0, 0),
            ([300, 500], [2240, 4], 240, 1),
            ([300, 500], [-2000, 4], 598000, 1),
            ([300, 500], [2000, -4], 1996, 1),
            ([80, 100], [2400, 12], 4, 1),
            ([80, 100], [411, 4], 3, 1),
            ([20, 30, 40], [4800, 160, 4], 0, 1),
            ([20, 30, 40], [160, 3200, 4], 0, 2),
            ([9], [4], 0, 0),
        ]:
            with self.subTest(shape=shape, strides=strides, axis=axis):
                rows = tensor(memory.buffer, shape, strides, offset=offset)
                steps = FLOAT_STEPS[:3]
                self.check(client, scan(rows, axis=axis), steps, memory, target)
                self.check(client, scan(rows, tensor(target.buffer, shape), axis=axis), steps, memory, target)
                self.check(client, scan(rows, {**rows, "buffer": target.buffer}, axis=axis), steps, memory, target)

    def test_many_chunks_and_rows_longer_than_a_slot(self):
        client = self.client()
        size = 24 << 20
        memory, target = client.create(size), client.create(size)
        self.fill(memory)
        steps = [{"passes": BOTH, "accumulator": "f64"}, {"passes": ["backward"], "demean": 1}]
        for shape, axis in (([600, 10007], 1), ([10007, 600], 0), ([2, 3 << 20], 1), ([1, 6 << 20], 1)):
            with self.subTest(shape=shape, axis=axis):
                rows = tensor(memory.buffer, shape)
                out = {**rows, "buffer": target.buffer}
                self.check(client, scan(rows, out, axis=axis, accumulator="f64"), steps, memory, target)
                self.check(client, scan(rows, axis=axis), steps, memory)
        half = tensor(target.buffer, [1, 3 << 20], dtype="f64")
        self.check(client, scan(tensor(memory.buffer, [1, 3 << 20]), half), [{"passes": BOTH}], memory, target)

    def test_ragged_rows(self):
        client = self.client()
        noise = random.Random(1)
        lengths = [noise.choice([0, 1, 2, 15, 16, 17, 33, 512, 513, 2000, 20000]) for _ in range(200)]
        ends = list(itertools.accumulate(lengths, initial=3))
        memory, target, offsets = client.create(4 * ends[-1]), client.create(8 * ends[-1]), client.create(8 * len(ends))
        offsets.write(struct.pack(f"={len(ends)}q", *ends))
        self.fill(memory)
        line, there = tensor(memory.buffer, [ends[-1]]), tensor(offsets.buffer, [len(ends)], dtype="i64")
        self.check(client, scan(line, offsets=there), FLOAT_STEPS, memory)
        wide = tensor(target.buffer, [ends[-1]], dtype="f64")
        self.check(client, scan(line, wide, offsets=there), [FLOAT_STEPS[1], FLOAT_STEPS[4]], memory, target)
        apart = tensor(target.buffer, [ends[-1]], [8])
        self.check(client, scan(line, apart, offsets=there), FLOAT_STEPS, memory, target)
        self.check(client, scan(apart, offsets=there), FLOAT_STEPS, target)

    def test_coefficients_of_the_first_step(self):
        client = self.client()
        memory, factors = client.create(4 * 5000), client.create(4 * 5000)
        self.fill(memory)
        factors.write(pack_f32([0.5, -0.5, 1.0, 0.25] * 1250))
        rows, each = tensor(memory.buffer, [5, 1000]), tensor(factors.buffer, [5, 1000])
        self.check(client, scan(rows, op="affine", coefficients=each), FLOAT_STEPS, memory)

    def test_device_buffers(self):
        client = self.client()
        memory, target = client.create(4 * 50000), client.create(4 * 50000)
        self.fill(memory)
        device = client.call("buffer.create", size=memory.size, place="device")["buffer"]
        rows, there, out = (tensor(buffer, [50, 1000]) for buffer in (memory.buffer, device, target.buffer))
        expected = scan(rows, out, passes=BOTH)
        client.call("job.submit", {**expected, "then": FLOAT_STEPS})
        before = target.read()
        client.call("job.submit", {**scan(rows, there, passes=BOTH), "then": FLOAT_STEPS[:2]})
        client.call("job.submit", {**scan(there), **FLOAT_STEPS[2], "then": FLOAT_STEPS[3:]})
        client.call("job.submit", scan(there, out, op="max", passes=["forward"]))  # the last step's maxima, copied
        self.assertTrue(target.read() == before)

    def test_an_algorithm_is_that_of_the_first_step(self):
        client = self.client()
        memory = client.create(4 * 3000)
        memory.write(pack_f32([1] * 3000))
        rows = tensor(memory.buffer, [3, 1000])
        kernels = client.kernels("scan")
        name = next(it["name"] for it in kernels if it["backend"] == self.backend() and it["repeatable"])
        self.check(client, scan(rows, algorithm=name, accumulator="f32"), FLOAT_STEPS[:2], memory)

    def backend(self):
        return self.neighbour.greeting["devices"][0]["backend"]

    def test_as_many_steps_as_there_may_be(self):
        client = self.client()
        steps = client.greeting["limits"]["job_steps"]
        memory = client.create(80)
        row = [1.0] + [0.0] * 19  # whose sums of sums are all exact
        memory.write(pack_f32(row))
        client.call("job.submit", {**scan(tensor(memory.buffer, [20])), "then": [{"passes": ["forward"]}] * steps})
        for _ in range(steps + 1):
            row = list(itertools.accumulate(row))
        self.assertEqual(unpack_f32(memory.read()), row)
        client.call("job.submit", {**scan(tensor(memory.buffer, [20])), "then": []})

    def test_in_a_batch(self):
        """Chains among other small jobs, all of which may share a launch."""
        client = self.client()
        memory, target = client.create(4 * 8000), client.create(4 * 8000)
        self.fill(memory)
        jobs = [scan(tensor(memory.buffer, [1000], offset=4000 * i), tensor(target.buffer, [1000], offset=4000 * i)) for i in range(8)]
        thens = [FLOAT_STEPS[i : 2 * i] if i % 3 else [] for i in range(8)]
        for job, then in zip(jobs, thens):
            client.call("job.submit", job)
            for step in then:
                client.call("job.submit", {**job, "input": job["output"], **step})
        expected = target.read()
        target.write(bytes(target.size))
        done = client.call("job.batch", jobs=[{**job, "then": then} for job, then in zip(jobs, thens)])["jobs"]
        self.assertFalse([it for it in done if "error" in it])
        self.assertTrue(target.read() == expected)

    def test_nothing_to_scan(self):
        client = self.client()
        memory = client.create(64)
        client.call("job.submit", {**scan(tensor(memory.buffer, [0, 16])), "then": FLOAT_STEPS})
        client.call("job.submit", {**scan(tensor(memory.buffer, [16, 0])), "then": FLOAT_STEPS})

    def test_seen_in_the_list(self):
        client = self.client()
        memory = client.create(16 << 20)
        rows = tensor(memory.buffer, [64, 65536])
        jobs = [client.send("job.submit", {**scan(rows, passes=BOTH), "then": [{"passes": BOTH}] * 3}) for _ in range(4)]
        listed = self.neighbour.call("server.jobs")["jobs"]
        self.assertTrue(all(it["operation"] == "scan sum forward,backward f32, then 3 more" for it in listed), listed)
        self.assertTrue(listed)
        for job in jobs:
            client.wait(job)


class Refused(ChainsTest):
    def test_steps(self):
        """A wrong step leaves every byte as it was, also those of the steps before it."""
        client = self.client()
        memory = client.create(4096)
        memory.write(bytes(range(256)) * 16)
        whole = tensor(memory.buffer, [8])
        integers = {**whole, "dtype": "i32"}
        good = {"passes": ["forward"]}
        for message, then, fields in [
            ('"then" has 9 items; allowed: 0 to 8', [good] * 9, {}),
            ('"then" is a map; expected: a list', good, {}),
            (r'"then\[0\]" is text; expected: a map', ["forward"], {}),
            (r'"then\[1\].passes" is missing', [good, {}], {}),
            (r'"then\[1\].passes" has 3 items', [good, {"passes": BOTH + BOTH[:1]}], {}),
            (r'"then\[0\].passes\[1\]" is "sideways"; allowed: forward, backward', [{"passes": ["forward", "sideways"]}], {}),
            (r'"then\[0\].op" is "plus"; allowed: sum', [{**good, "op": "plus"}], {}),
            (r'"then\[0\].demean" is 2; allowed: 0 to 1', [{**good, "demean": 2}], {}),
            (r'"then\[1\].accumulator" is "exact"; allowed with "output.dtype" "f32"', [good, {**good, "accumulator": "exact"}], {}),
            (r'"then\[1\].op" is "affine", but there is no "coefficient"', [good, {**good, "op": "affine"}], {}),
            (r'"then\[0\].kind" is "half", but "output.dtype" "i32"', [{**good, "kind": "half"}], {"input": integers, "output": integers}),
            ('"then" is for "operation" "scan"', [good], {"operation": "reduce", "reduction": "sum", "passes": None, "output": tensor(memory.buffer, [1], offset=64)}),
        ]:
            with self.subTest(message):
                job = {**scan(whole), "then": then, **fields}
                self.refused(client, "invalid", message, "job.submit", {key: value for key, value in job.items() if value is not None})
        self.assertEqual(memory.read(), bytes(range(256)) * 16)


if __name__ == "__main__":
    main()

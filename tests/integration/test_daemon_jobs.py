#!/usr/bin/env python3
"""Jobs on every kind of buffer, compared with the same scans in plain Python, and what a job may not ask for.

Samples are small whole numbers, so that every sum is exact and the order of additions does not matter.

    test_daemon_jobs.py SCAND [unittest's arguments]
"""

import itertools
import random
import struct
import unittest

from daemons import BACKEND, Daemon, DaemonTest, main
from forms import scanned
from wire import Failure, pack_f32, scan, tensor, unpack_f32

FORMS = {"f32": "=f", "f64": "=d"}
MIB = 1 << 20


def places(it):
    """Bytes from the buffer's beginning to each element, by its index."""
    for index in itertools.product(*map(range, it["shape"])):
        yield index, it["offset"] + sum(i * stride for i, stride in zip(index, it["strides"]))


def expected(data, job):
    """The output buffer's bytes after a job, from the input's bytes before it; data: bytes by buffer."""
    source, target, axis = job["input"], job["output"], job["axis"]
    out, rows = bytearray(data[target["buffer"]]), {}
    for index, at in places(source):
        value = struct.unpack_from("=f", data[source["buffer"]], at)[0]
        rows.setdefault(index[:axis] + index[axis + 1 :], []).append(int(value))
    rows = {key: scanned(row, job["passes"], job.get("kind") == "exclusive") for key, row in rows.items()}
    for index, at in places(target):
        struct.pack_into(FORMS[target["dtype"]], out, at, rows[index[:axis] + index[axis + 1 :]][index[axis]])
    return bytes(out)


def fill(memory, it, seed=1):
    """Noise in the whole buffer, and whole numbers in a tensor."""
    noise = random.Random(seed)
    data = bytearray(noise.randbytes(memory.size))
    for _, at in places(it):
        struct.pack_into("=f", data, at, noise.randint(-9, 9))
    memory.write(data)
    return bytes(data)


class JobTest(DaemonTest):
    def check(self, client, memory, job, target=None):
        """Runs a job on a buffer, or on two, and compares every byte of both."""
        data = {memory.buffer: fill(memory, job["input"])}
        if target:
            data[target.buffer] = bytes([0xA5]) * target.size
            target.write(data[target.buffer])
        out = expected(data, job)
        times = client.call("job.submit", job)
        self.assertEqual(sorted(times), ["download_us", "kernel_us", "queued_us", "total_us", "upload_us"])
        self.assertGreaterEqual(times["total_us"], times["queued_us"])
        self.assertTrue((target or memory).read() == out)
        if target:
            self.assertTrue(memory.read() == data[memory.buffer])


class Scans(JobTest):
    def test_every_rule(self):
        client = self.client()
        memory, target = client.create(8 * 37 * 4), client.create(8 * 37 * 8 + 8)
        rows = tensor(memory.buffer, [8, 37])
        passes = [["forward"], ["backward"], ["forward", "backward"], ["backward", "forward"]]
        rules = itertools.product(passes, ("inclusive", "exclusive"), ("f32", "f64", "f2"), ("f32", "f64"))
        for way, kind, accumulator, intermediate in rules:
            rule = {"passes": way, "kind": kind, "accumulator": accumulator, "intermediate": intermediate, "op": "sum"}
            with self.subTest(**rule):
                self.check(client, memory, scan(rows, **rule))
                for dtype in FORMS:
                    self.check(
                        client,
                        memory,
                        scan(rows, tensor(target.buffer, [8, 37], dtype=dtype, offset=4), **rule),
                        target,
                    )

    def test_every_axis(self):
        client = self.client()
        memory, target = client.create(3 * 5 * 7 * 2 * 4), client.create(3 * 5 * 7 * 2 * 8)
        for shape in ([210], [1], [30, 7], [3, 5, 14], [3, 5, 7, 2], [1, 210, 1, 1]):
            for axis in range(len(shape)):
                with self.subTest(shape=shape, axis=axis):
                    self.check(client, memory, scan(tensor(memory.buffer, shape), axis=axis))
                    self.check(
                        client,
                        memory,
                        scan(tensor(memory.buffer, shape), tensor(target.buffer, shape, dtype="f64"), axis),
                        target,
                    )

    def test_odd_strides(self):
        """Whatever lies between the elements stays as it was."""
        client = self.client()
        memory, target = client.create(20000), client.create(20000)
        for shape, strides, offset, axis in [
            ([11, 50], [240 + 50 * 4, 4], 240, 1),
            ([11, 50], [50 * 7 + 1, 7], 3, 1),
            ([50, 11], [8, 400], 16, 0),
            ([11, 50], [-440, 4], 4400, 1),
            ([11, 50], [440, -4], 196, 1),
            ([3, 4, 5], [4, 100, -12], 61, 2),
        ]:
            with self.subTest(shape=shape, strides=strides):
                rows = tensor(memory.buffer, shape, strides, offset=offset)
                self.check(client, memory, scan(rows, axis=axis, passes=["forward", "backward"]))
                self.check(
                    client, memory, scan(rows, tensor(target.buffer, shape, dtype="f64", offset=5), axis), target
                )

    def test_strides_that_no_element_uses(self):
        """Along a dimension of one element any stride is allowed, and nothing is computed from it: under the undefined
        behaviour sanitizer the daemon would end."""
        client = self.client()
        memory, target = client.create(8 * 40 * 4), client.create(8 * 40 * 8)
        rule = {"passes": ["forward", "backward"], "op": "sum"}
        for shape in ([8, 40], [40, 8], [5, 8, 8]):
            for single, axis in itertools.product(range(len(shape)), repeat=2):
                for stride in (2**61, -(2**61), 2**63 - 1, -(2**63)):
                    with self.subTest(shape=shape, single=single, axis=axis, stride=stride):
                        sizes = [1 if k == single else size for k, size in enumerate(shape)]
                        rows, results = tensor(memory.buffer, sizes), tensor(target.buffer, sizes, dtype="f64")
                        rows["strides"][single] = results["strides"][single] = stride
                        self.check(client, memory, scan(rows, axis=axis, **rule))
                        self.check(client, memory, scan(rows, results, axis, **rule), target)

    def check_sums_of_nothing(self, client):
        memory = client.create(4096)
        memory.write(b"\xff" * 4096)
        rows = tensor(memory.buffer, [1000, 0], [2**61, 2**61])
        sums = tensor(memory.buffer, [1000, 1], [4, -(2**63)])
        client.call("job.submit", {"operation": "reduce", "reduction": "sum", "input": rows, "output": sums, "axis": 1})
        self.assertEqual(memory.read(), bytes(4000) + b"\xff" * 96)

    def test_sums_of_nothing(self):
        """Rows without samples have results, wherever their samples would lie."""
        self.check_sums_of_nothing(self.client())

    def test_sums_of_nothing_on_a_device_that_starts_every_chunk(self):
        """GPUs start every chunk, and so does the device that loses a chunk, to count them."""
        with Daemon("--fail-chunk", "1000") as daemon, daemon.client() as client:
            self.check_sums_of_nothing(client)

    def test_input_that_repeats(self):
        """An input's elements may overlap: one row scanned into many, one sample into a ramp."""
        client = self.client()
        memory, target = client.create(400), client.create(4000)
        self.check(
            client, memory, scan(tensor(memory.buffer, [10, 100], [0, 4]), tensor(target.buffer, [10, 100])), target
        )
        self.check(client, memory, scan(tensor(memory.buffer, [1000], [0]), tensor(target.buffer, [1000])), target)

    def test_input_and_output_in_one_buffer(self):
        client = self.client()
        memory = client.create(10000)
        self.check(
            client, memory, scan(tensor(memory.buffer, [10, 100]), tensor(memory.buffer, [10, 100], offset=4000))
        )
        self.check(
            client,
            memory,
            scan(tensor(memory.buffer, [10, 100], offset=5000), tensor(memory.buffer, [10, 100], offset=1000)),
        )

    def test_nothing_to_scan(self):
        client = self.client()
        memory = client.create(4096)
        before = fill(memory, tensor(memory.buffer, [1]))
        for shape in ([0], [0, 5], [5, 0], [3, 0, 4, 2], [0, 0, 0, 0]):
            for axis in range(len(shape)):
                with self.subTest(shape=shape, axis=axis):
                    client.call("job.submit", scan(tensor(memory.buffer, shape), axis=axis, progress=1))
                    client.call("job.submit", scan(tensor(memory.buffer, shape, offset=2**64 - 1), axis=axis))
        self.assertEqual((memory.read(), client.notes), (before, []))


class Buffers(JobTest):
    def test_imported(self):
        client = self.client()
        for size, segment in [(40000, 40960), (40000, 40000), (40000, 8192), (40960, 4096)]:
            memory, target = client.adopt(size, segment), client.adopt(
                2 * size, 2 * segment if segment % 4096 == 0 else 2 * size
            )
            rows = tensor(memory.buffer, [9, 1111])
            self.check(client, memory, scan(rows))
            self.check(client, memory, scan(rows, tensor(target.buffer, [9, 1111], dtype="f64")), target)
            self.check(
                client, memory, scan(tensor(memory.buffer, [9, 1110], [1111 * 4, 4], offset=2), passes=["backward"])
            )

    def test_both_kinds_in_one_job(self):
        client = self.client()
        memory, target = client.create(40000), client.adopt(80000, 12288)
        self.check(
            client,
            memory,
            scan(tensor(memory.buffer, [100, 100]), tensor(target.buffer, [100, 100], dtype="f64")),
            target,
        )
        self.check(
            client,
            target,
            scan(tensor(target.buffer, [100, 100], offset=12), tensor(memory.buffer, [100, 100])),
            memory,
        )

    def test_several_segments_of_the_pool(self):
        """Rows that cross from one segment into the next, at every place where a sample may be cut."""
        client = self.client()
        memory = client.create(40 * MIB)
        self.assertEqual((memory.segment, len(memory.maps)), (16 * MIB, 3))
        for edge in (16 * MIB, 32 * MIB):
            for cut in range(-4, 5):
                memory.write(pack_f32(range(100)), edge - 200 + cut)
                client.call("job.submit", scan(tensor(memory.buffer, [100], offset=edge - 200 + cut)))
                out = unpack_f32(memory.read(edge - 200 + cut, 400))
                self.assertEqual(out, list(itertools.accumulate(range(100))))

    def test_device(self):
        """Up, on the device, and down again; an output on the device is the input of the next job."""
        client = self.client()
        memory = client.create(40000)
        made = client.call("buffer.create", size=80000, place="device")
        self.assertEqual((made["segment"], made["fds"], client.fds), (0, 0, []))
        rows, far = tensor(memory.buffer, [100, 100]), tensor(made["buffer"], [100, 100])
        data = {memory.buffer: fill(memory, rows), made["buffer"]: bytes(80000)}
        for job in (scan(rows, far), scan(far, passes=["backward"]), scan(far, rows, 0)):
            data[job["output"]["buffer"]] = expected(data, job)
            client.call("job.submit", job)
        self.assertTrue(memory.read() == data[memory.buffer])
        client.call("buffer.release", buffer=made["buffer"])

    def test_device_memory_is_zero_and_bounded(self):
        client = self.client()
        memory = client.create(4000)
        for _ in range(3):
            buffer = client.call("buffer.create", size=4000, place="device")["buffer"]
            memory.write(b"x" * 4000)
            client.call("job.submit", scan(tensor(buffer, [1000]), tensor(memory.buffer, [1000])))
            self.assertEqual(memory.read(), bytes(4000))
            memory.write(pack_f32([1] * 1000))
            client.call("job.submit", scan(tensor(memory.buffer, [1000]), tensor(buffer, [1000])))
            client.call("buffer.release", buffer=buffer)
        self.refused(
            client, "quota", "no 536870913 bytes of device memory", "buffer.create", size=512 * MIB + 1, place="device"
        )

    def test_release_while_a_job_runs(self):
        client = self.client()
        memory = client.create(16 * MIB)
        memory.write(pack_f32([1, 1]) * (2 * MIB))
        job = client.send("job.submit", scan(tensor(memory.buffer, [2 * MIB, 2])))
        client.call("buffer.release", buffer=memory.buffer)
        self.refused(client, "not_found", "no such buffer", "job.submit", scan(tensor(memory.buffer, [1])))
        client.wait(job)
        self.assertTrue(memory.read() == pack_f32([1, 2]) * (2 * MIB))

    def test_limits(self):
        client = self.client()
        self.refused(client, "invalid", '"size" is 0 bytes; allowed: 1 to', "buffer.create", size=0, place="host")
        self.refused(client, "invalid", '"size" is 18446744073709551615', "buffer.create", size=2**64 - 1, place="host")
        self.refused(client, "quota", "the pool has", "buffer.create", size=64 * MIB + 1, place="host")
        whole = client.create(64 * MIB)
        self.refused(client, "busy", "asks for 16777216 more; of 83886080 it may", "buffer.create", size=16 * MIB, place="host")
        client.call("buffer.release", buffer=whole.buffer)
        client.create(64 * MIB)
        other = self.client()
        for _ in range(256):
            last = other.call("buffer.create", size=1, place="device")["buffer"]
        self.refused(other, "quota", "has 256 buffers", "buffer.create", size=1, place="device")
        other.call("buffer.release", buffer=last)
        self.assertEqual(other.call("buffer.create", size=1, place="device")["buffer"], 257)

    def test_ids_are_never_used_twice(self):
        client = self.client()
        seen = [client.create(1) for _ in range(3)]
        for memory in seen:
            client.call("buffer.release", buffer=memory.buffer)
        self.assertEqual([memory.buffer for memory in seen] + [client.create(1).buffer], [1, 2, 3, 4])


class Refused(JobTest):
    """Jobs that ask for what is not there: `invalid`, and not a byte is touched."""

    def check_refused(self, cases):
        client = self.client()
        memory = client.create(4096)
        before = fill(memory, tensor(memory.buffer, [1]))
        for message, fields in cases:
            with self.subTest(message):
                whole = {**tensor(memory.buffer, [4]), **fields.pop("input", {})}
                other = {**whole, **fields.pop("output", {})}
                job = {**scan(whole, other), **fields}
                self.refused(client, "invalid", message, "job.submit", job)
        self.assertEqual(memory.read(), before)

    def test_outside_the_buffer(self):
        far = 2**63 - 1
        self.check_refused(
            [
                ('"input" ends at byte 4100, but its buffer has 4096', {"input": {"shape": [1025]}}),
                ('"input" ends at byte 4097', {"input": {"shape": [1], "offset": 4093}}),
                ('"output" ends at byte 4097', {"output": {"shape": [4], "offset": 4081}}),
                ('"output" ends at byte 4104', {"output": {"dtype": "f64", "strides": [8], "offset": 4072}}),
                ('"input" begins 12 bytes before', {"input": {"strides": [-4]}}),
                ('"output" begins 1 bytes before', {"output": {"strides": [-4], "offset": 11}}),
                ('"input" ends at byte', {"input": {"offset": 2**63}}),
                ("reaches past 2\\^63", {"input": {"offset": 2**64 - 1}}),
                ('"input" reaches past|ends at', {"input": {"strides": [far]}}),
                ("reaches past|begins", {"input": {"strides": [-far - 1]}}),
                ("rows of 18446744073709551615 samples", {"input": {"shape": [2**64 - 1], "strides": [0]}}),
                ("reaches past|ends at", {"input": {"shape": [2**31, 2**33], "strides": [2**33, 4]}, "axis": 1}),
                ("more than 1099511627776 rows", {"input": {"shape": [2**63, 4, 1], "strides": [2, 0, 0]}, "axis": 2}),
                (
                    "more than 1099511627776 rows",
                    {"input": {"shape": [2**32, 2**32, 1], "strides": [0, 0, 0]}, "axis": 2},
                ),
                ("reaches past|ends at", {"input": {"shape": [2, 2, 2, 1], "strides": [far, far, far, 4]}, "axis": 3}),
                (
                    "reaches past|begins",
                    {"input": {"shape": [2, 2, 2, 1], "strides": [-far, -far, -far, 4]}, "axis": 3},
                ),
            ]
        )

    def test_overlaps(self):
        apart = {"input": {"offset": 2048}}
        self.check_refused(
            [
                ('elements of "output" overlap: a stride of 0', {"output": {"strides": [0], "offset": 2048}}),
                ('elements of "output" overlap: a stride of 3', {"output": {"strides": [3], "offset": 2048}}),
                ('elements of "output" overlap', {"output": {"strides": [-1], "offset": 2048}}),
                (
                    'elements of "output" overlap: a stride of 4 ',
                    {"output": {"dtype": "f64", "strides": [4], "offset": 2048}},
                ),
                (
                    'elements of "output" overlap: a stride of 12',
                    {
                        "input": {"shape": [2, 4], "strides": [16, 4]},
                        "output": {"strides": [12, 4], "offset": 2048},
                        "axis": 1,
                    },
                ),
                ('elements of "output" overlap', {"input": {"shape": [4, 4], "strides": [4, 4]}, "axis": 1}),
                ('"input" .* and "output" .* overlap', {"output": {"offset": 4}}),
                ('"input" .* and "output" .* overlap', {"output": {"dtype": "f64", "strides": [8]}}),
                ('"input" .* and "output" .* overlap', {**apart, "output": {"offset": 2056, "strides": [-4]}}),
            ]
        )

    def test_shapes_and_types(self):
        self.check_refused(
            [
                ('"input" has 1 dimensions but 2 strides', {"input": {"strides": [4, 4]}}),
                ('"output" has 2 dimensions but 1 strides', {"output": {"shape": [2, 2]}}),
                ('"input" has 1 dimensions and "output" 2', {"output": {"shape": [2, 2], "strides": [8, 4]}}),
                ('dimension 0 of "input" is 4 and of "output" 3', {"output": {"shape": [3]}}),
                ('dimension 0 of "input" is 4 and of "output" 0', {"output": {"shape": [0]}}),
                ('"axis" is 1; a tensor of 1 dimensions has 0 to 0', {"axis": 1}),
                ('"axis" is 4; allowed: 0 to 3', {"axis": 4}),
                ('"output.dtype" is "i32"; allowed with "input.dtype" "f32": f32, f64', {"output": {"dtype": "i32"}}),
                ("rows of 8589934593 samples; at most 8589934592", {"input": {"shape": [2**33 + 1], "strides": [0]}}),
            ]
        )


@unittest.skipUnless(BACKEND == "cuda", "needs a GPU, whose memory ends somewhere")
class OutOfDeviceMemory(JobTest):
    """The GPU has less memory than scand may take: the device itself refuses, and goes on."""

    options = ("--device-memory", "1024G", "--quota-device-memory", "1024G")

    def check_device(self, client, memory, far):
        self.check(client, memory, scan(tensor(memory.buffer, [100, 100]), passes=["forward", "backward"]))
        memory.write(pack_f32([1] * 10000))
        client.call("job.submit", scan(tensor(memory.buffer, [100, 100]), tensor(far, [100, 100])))
        client.call("job.submit", scan(tensor(far, [100, 100]), tensor(memory.buffer, [100, 100]), axis=0))
        self.assertEqual(unpack_f32(memory.read(39600, 400)), [100 * i for i in range(1, 101)])

    def test_buffers(self):
        client = self.client()
        memory = client.create(40000)
        far = client.call("buffer.create", size=40000, place="device")["buffer"]
        used = client.call("server.devices")["devices"][0]["memory_used_bytes"]
        message = "no 549755813888 bytes of device memory: the device has no more to give"
        self.refused(client, "no_memory", message, "buffer.create", size=512 << 30, place="device")
        self.assertEqual(client.call("server.devices")["devices"][0]["memory_used_bytes"], used)
        self.check_device(client, memory, far)
        taken = []
        with self.assertRaises(Failure) as caught:
            while True:
                taken.append(client.call("buffer.create", size=16 << 30, place="device")["buffer"])
        self.assertEqual(caught.exception.name, "no_memory")
        self.check_device(client, memory, far)
        for buffer in taken:
            client.call("buffer.release", buffer=buffer)
        again = client.call("buffer.create", size=16 << 30, place="device")["buffer"]
        self.check_device(client, memory, again)


if __name__ == "__main__":
    main()

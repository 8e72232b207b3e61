#!/usr/bin/env python3
"""Jobs on rows of differing lengths, compared with the same scans in plain Python, and offsets that are no rows.

test_daemon_ragged.py SCAND [unittest's arguments]
"""

import random
import struct

from daemons import DaemonTest, main
from forms import scanned
from wire import Failure, pack_f32, scan, tensor, unpack_f32

MIB = 1 << 20
FORMS = {"i32": "i", "i64": "q", "u32": "I", "u64": "Q"}


def offsets_of(lengths, first=0):
    out = [first]
    for length in lengths:
        out.append(out[-1] + length)
    return out


class RaggedTest(DaemonTest):
    def offsets(self, client, values, dtype="i64"):
        """A buffer with offsets, as a tensor."""
        memory = client.create(len(values) * struct.calcsize(FORMS[dtype]))
        memory.write(struct.pack(f"={len(values)}{FORMS[dtype]}", *values))
        return memory, tensor(memory.buffer, [len(values)], dtype=dtype)

    def check(self, lengths, first=0, dtype="i64", passes=("forward", "backward"), stride=4, in_place=True, **more):
        client = self.client()
        values = offsets_of(lengths, first)
        count, noise = values[-1] + 5, random.Random(len(lengths))
        memory, target = client.create(count * stride), client.create(count * 4)
        samples = [noise.randint(-1, 1) for _ in range(count)]
        for i, sample in enumerate(samples) if stride != 4 else ():
            memory.write(pack_f32([sample]), i * stride)
        if stride == 4:
            memory.write(pack_f32(samples))
        target.write(pack_f32(samples))
        line = tensor(memory.buffer, [count], [stride])
        place = line if in_place else tensor(target.buffer, [count])
        job = scan(line, place, passes=list(passes), offsets=self.offsets(client, values, dtype)[1], **more)
        client.call("job.submit", job)
        for begin, end in zip(values, values[1:]):
            samples[begin:end] = scanned(samples[begin:end], passes)
        self.assertTrue(unpack_f32((memory if in_place else target).read()) == samples)
        return client


class Ragged(RaggedTest):
    def test_rows_of_all_lengths(self):
        noise = random.Random(1)
        lengths = [noise.choice([0, 1, 2, 15, 16, 17, 33, 100, 511, 512, 513, 2000]) for _ in range(200)]
        for accumulator in ("f32", "f64", "f2"):
            for in_place in (True, False):
                with self.subTest(accumulator=accumulator, in_place=in_place):
                    self.check(lengths, 3, in_place=in_place, accumulator=accumulator)

    def test_offsets_of_every_dtype(self):
        for dtype in FORMS:
            with self.subTest(dtype=dtype):
                self.check([5, 0, 7, 600], dtype=dtype)

    def test_samples_apart(self):
        self.check([5, 0, 700, 20], stride=12, in_place=False)

    def test_nothing_to_scan(self):
        self.check([0, 0, 0], 2)
        self.check([])

    def test_rows_longer_than_a_chunk_and_many_chunks(self):
        """Counts of what was scanned, and progress in rows."""
        before = self.neighbour.call("server.stats")
        client = self.check([3, 5 * MIB, 100_000, 0, 1 * MIB, 7], passes=("forward",), accumulator="f64", progress=1)
        after = self.neighbour.call("server.stats")
        self.assertEqual(after["rows_scanned"] - before["rows_scanned"], 6)
        self.assertEqual(after["samples_scanned"] - before["samples_scanned"], 6 * MIB + 100_010)
        self.assertTrue(client.notes and all(note["rows"] == 6 for _, note in client.notes))

    def test_demeaned(self):
        client = self.client()
        memory = client.create(400)
        memory.write(pack_f32([5] * 100))
        line, (_, offsets) = tensor(memory.buffer, [100]), self.offsets(client, [0, 10, 10, 100])
        client.call("job.submit", scan(line, offsets=offsets, demean=1))
        self.assertEqual(unpack_f32(memory.read()), [0.0] * 100)

    def test_offsets_rewritten_while_the_job_waits(self):
        """Offsets are copied before they are checked, so a client that rewrites them meanwhile cannot make wrong
        rows."""
        client = self.client()
        count = 32 * MIB // 4
        memory = client.create(4 * count)
        memory.write(pack_f32([1] * 1024) * (count // 1024))
        values = list(range(0, count + 1, 64))
        counts, offsets = self.offsets(client, values)
        first = client.send("job.submit", scan(tensor(memory.buffer, [count // 64, 64]), passes=["forward", "backward"]))
        second = client.send("job.submit", scan(tensor(memory.buffer, [count]), offsets=offsets))
        client.call("server.ping")
        counts.write(random.Random(1).randbytes(counts.size))
        client.wait(first)
        row = scanned([1] * 64, ["forward", "backward"])
        try:
            client.wait(second)
            row = scanned(row, ["forward"])
        except Failure as failure:
            self.assertEqual(failure.name, "invalid")
            self.assertIn('"offsets"[', str(failure))
        self.assertTrue(memory.read() == pack_f32(row) * (count // 64))

    def test_offsets_that_a_job_writes(self):
        """The sums of lengths are offsets: whoever reads them waits for them, however many they are."""
        for rows in (100, 5000):
            client = self.client()
            lengths = [i % 5 for i in range(rows)]
            memory, (counts, offsets) = client.create(4 * sum(lengths)), self.offsets(client, [0] + lengths)
            memory.write(pack_f32([1] * sum(lengths)))
            sums = client.send("job.submit", scan(tensor(counts.buffer, [rows + 1], dtype="i64"), accumulator="exact"))
            ragged = client.send("job.submit", scan(tensor(memory.buffer, [sum(lengths)]), offsets=offsets))
            client.wait(sums)
            client.wait(ragged)
            self.assertEqual(unpack_f32(memory.read()), [float(i + 1) for length in lengths for i in range(length)])


class Flood(RaggedTest):
    """Jobs with as many offsets as a job may have, which cost their client nothing: all are the same offset."""

    def flood(self, client, value, jobs=7):
        memory, (_, offsets) = client.create(400), self.offsets(client, [value])
        offsets.update(shape=[2**20 + 1], strides=[0])
        job = scan(tensor(memory.buffer, [100]), offsets=offsets, after_failure=1)
        return [client.send("job.submit", job) for _ in range(jobs)]

    def test_others_are_not_held_up(self):
        """Answers come in the order in which the loop gets to them: copying is not in its way."""
        client, other = self.client(), self.client()
        memory = other.create(400)
        msgids = self.flood(client, 0)
        ping = client.send("server.ping")
        other.call("server.ping")
        other.call("job.submit", scan(tensor(memory.buffer, [100])))
        client.wait(ping)
        self.assertEqual(client.answers, {})
        for msgid in msgids:
            client.wait(msgid)

    def test_wrong_ones_count(self):
        """Jobs with wrong offsets are jobs like others, in quotas and lists, until a helper has seen that they are wrong."""
        client = self.client()
        before = client.call("server.stats")["jobs_submitted"]
        for msgid in self.flood(client, 101):
            self.fails(client, msgid, "invalid", r'"offsets"\[0\] is 101; allowed: 0 to 100')
        self.assertEqual(client.call("server.stats")["jobs_submitted"], before + 7)
        for msgid in self.flood(client, 0, 8):
            self.ends(client, msgid)

    def ends(self, client, msgid):
        """Done, unless its offsets found no room beside those of the others."""
        try:
            client.wait(msgid)
        except Failure as failure:
            self.assertEqual(failure.name, "busy")

    def test_clients_that_leave(self):
        for _ in range(20):
            client = self.client()
            self.flood(client, 0)
            client.close()
        self.settles()


class Refused(RaggedTest):
    """Offsets that are no rows, and what does not go with them: not a byte is touched."""

    def check_refused(self, message, values=(0, 4), name="invalid", job=None, **fields):
        client = self.client()
        memory = client.create(4096)
        memory.write(bytes(range(256)) * 16)
        offsets = {**self.offsets(client, list(values))[1], **fields}
        self.refused(client, name, message, "job.submit", {**scan(tensor(memory.buffer, [100]), offsets=offsets), **(job or {})})
        self.assertEqual(memory.read(), bytes(range(256)) * 16)

    def test_values(self):
        self.check_refused(r'"offsets"\[2\] is 3; allowed: 4, the one before it, to 100', (0, 4, 3))
        self.check_refused(r'"offsets"\[1\] is 101; allowed: 0, the one before it, to 100', (0, 101))
        self.check_refused(r'"offsets"\[0\] is -1; allowed: 0 to 100', (-1, 50))
        self.check_refused(r'"offsets"\[3\] is 18446744073709551615; allowed', (0, 1, 2, -1), dtype="u64")

    def test_tensors(self):
        self.check_refused('"offsets.dtype" is "f64"; allowed: i32', dtype="f64")
        self.check_refused('"offsets" ends at byte 24, but its buffer has 16', shape=[3])
        self.check_refused('"offsets" has 0 elements', shape=[0])
        self.check_refused('"offsets" has 1048578 elements; allowed: 1 to 1048577', shape=[2**20 + 2], strides=[0])
        self.check_refused('"offsets" has 2 dimensions', shape=[1, 2], strides=[8, 8])
        self.check_refused('"offsets.buffer" is 99', name="not_found", buffer=99)
        self.check_refused('"offsets" has 1 dimensions and 2 strides', strides=[8, 8])

    def test_what_does_not_go_with_them(self):
        self.check_refused('"offsets" and "algorithm" exclude each other', job={"algorithm": "serial-cpu"})
        client = self.client()
        memory, (_, offsets) = client.create(400), self.offsets(client, [0, 10])
        square = tensor(memory.buffer, [10, 10])
        self.refused(client, "invalid", '"input" has 2 dimensions; allowed', "job.submit", scan(square, offsets=offsets))
        far = client.call("buffer.create", size=16, place="device")["buffer"]
        line = tensor(memory.buffer, [100])
        self.refused(client, "invalid", "is device memory", "job.submit", scan(line, offsets={**offsets, "buffer": far}))


if __name__ == "__main__":
    main()

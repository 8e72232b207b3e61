#!/usr/bin/env python3
"""Long rows, and long chains of scans: others' small jobs pass them, and they end soon when nobody wants them.

Nothing is timed: the long jobs take seconds, and what counts is what has ended before them.

    test_daemon_long.py SCAND [unittest's arguments]
"""

from daemons import DaemonTest, main
from wire import pack_f32, scan, tensor, unpack_f32

BOTH = ["forward", "backward"]
SAMPLES = 1 << 22


def reduction(memory):
    """2^33 samples out of four bytes."""
    rows = tensor(memory.buffer, [1, 1 << 33], [0, 0])
    result = tensor(memory.buffer, [1, 1], offset=4)
    return {"input": rows, "output": result, "axis": 1, "operation": "reduce", "reduction": "sum"}


def chain(memory, rows=1, **rule):
    """18 passes over each sample."""
    samples = tensor(memory.buffer, [rows, SAMPLES // rows])
    step = {"passes": BOTH, "accumulator": "f2", **rule}
    return {**scan(samples, axis=1, **step), "then": [step] * 8}


AFFINE = {"op": "affine", "coefficient": 0.5}


class LongTest(DaemonTest):
    def attack(self, name):
        client = self.client()
        memory = client.create(SAMPLES * 4)
        jobs = {
            "a sum of 2^33 samples": reduction(memory),
            "18 passes over a row, affine": chain(memory, **AFFINE),
            "18 passes over some rows, affine": chain(memory, rows=8, **AFFINE),
            "18 passes over short rows, affine": chain(memory, rows=SAMPLES // 1024, **AFFINE),
        }
        return client, memory, client.send("job.submit", jobs[name])


ATTACKS = [
    "a sum of 2^33 samples",
    "18 passes over a row, affine",
    "18 passes over some rows, affine",
    "18 passes over short rows, affine",
]


class Long(LongTest):
    def test_small_jobs_pass(self):
        """A hundred small jobs, one after the other, have ended before it."""
        for name in ATTACKS[:2]:
            with self.subTest(name):
                attacker, _, msgid = self.attack(name)
                witness = self.client()
                memory = witness.create(4000)
                memory.write(pack_f32([1] * 1000))
                for _ in range(100):
                    witness.call("job.submit", scan(tensor(memory.buffer, [1, 1000]), axis=1))
                attacker.call("job.cancel", job=msgid)
                self.fails(attacker, msgid, "cancelled", "cancelled by its client")
                attacker.close()
                witness.close()
        self.settles()

    def test_cancelled(self):
        """A job that would take many seconds ends when it is cancelled, and the next job has the device."""
        for name in ATTACKS:
            with self.subTest(name):
                client, memory, msgid = self.attack(name)
                witness = self.client()
                other = witness.create(4000)  # a small job of the client's own would wait for the last chunks
                witness.call("job.submit", scan(tensor(other.buffer, [1, 1000]), axis=1))
                witness.close()
                client.call("job.cancel", job=msgid)
                self.fails(client, msgid, "cancelled", "cancelled by its client")
                memory.write(pack_f32([1] * 1000))
                client.call("job.submit", scan(tensor(memory.buffer, [1, 1000]), axis=1))
                self.assertEqual(unpack_f32(memory.read(0, 4000))[-1], 1000)
                client.close()
        self.settles()

    def test_client_goes(self):
        """No job of a client that has gone goes on."""
        for name in ATTACKS:
            with self.subTest(name):
                client, _, _ = self.attack(name)
                client.close()
                self.settles()

    def test_bits(self):
        """A long row with others' jobs in between is what it is alone."""
        client, witness = self.client(), self.client()
        small = witness.create(4000)
        memory, apart = client.create(SAMPLES * 4), client.create(SAMPLES * 4)
        memory.write(bytes(range(32, 64)) * (SAMPLES // 8))
        apart.write(memory.read())
        for buffer in (memory, apart):
            samples = tensor(buffer.buffer, [1, SAMPLES])
            job = {**scan(samples, axis=1, passes=BOTH, op="max"), "then": [{"passes": BOTH, "op": "min"}] * 3}
            msgid = client.send("job.submit", job)
            if buffer is memory:
                for _ in range(20):
                    witness.call("job.submit", scan(tensor(small.buffer, [1, 1000]), axis=1))
            client.wait(msgid)
        self.assertTrue(memory.read() == apart.read())


if __name__ == "__main__":
    main()

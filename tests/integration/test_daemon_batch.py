#!/usr/bin/env python3
"""Jobs that come in one message: their bits, what is answered when some are wrong, and messages as large as they may be.

test_daemon_batch.py SCAND [unittest's arguments]
"""

import random

from daemons import ON_CPU, DaemonTest, main
from test_daemon_jobs import MIB, expected, fill
from wire import CODES, pack, scan, tensor

MOST = 32  # jobs in a message
BIG = 64 * MIB


class BatchTest(DaemonTest):
    def batch(self, client, jobs):
        return client.call("job.batch", jobs=jobs)["jobs"]

    def check_outcome(self, outcome, name, message):
        self.assertEqual(set(outcome), {"error"})
        self.assertEqual((outcome["error"]["name"], outcome["error"]["code"]), (name, CODES[name]))
        self.assertRegex(outcome["error"]["message"], message)


class Batch(BatchTest):
    def test_bits_are_those_of_jobs_alone(self):
        """Jobs of rules that a GPU runs in one launch, and of others, so many that it takes several."""
        client = self.client()
        noise = random.Random(5)
        kinds = ("inclusive", "exclusive", "half", "trapezoid")
        for _ in range(6):
            together, alone, memories = [], [], []
            for i in range(MOST):
                rows, samples = noise.choice([(1, 1), (1, 1000), (3, 17), (2, 600), (1, 5000)])
                pair = [client.create(rows * samples * 4) for _ in range(2)]
                data = noise.randbytes(pair[0].size)
                passes = [["forward"], ["backward"], ["forward", "backward"]][i % 3]
                more = {"kind": kinds[i % 7 % 4], "accumulator": ("f32", "f64", "f2")[i % 4 % 3]}
                if i % 5 == 4:
                    more = {"op": "max"}
                for jobs, memory in zip((together, alone), pair):
                    memory.write(data)
                    jobs.append(scan(tensor(memory.buffer, [rows, samples]), axis=1, passes=passes, **more))
                memories.append(pair)
            times = {"queued_us", "upload_us", "kernel_us", "download_us", "total_us"}
            for outcome in self.batch(client, together):
                self.assertEqual(set(outcome["times"]), times)
            for job in alone:
                client.call("job.submit", job)
            for pair in memories:
                self.assertTrue(pair[0].read() == pair[1].read())
                for memory in pair:
                    client.call("buffer.release", buffer=memory.buffer)

    def test_order(self):
        """Jobs of a batch on one buffer run in their order, and after those before the batch."""
        client = self.client()
        memory = client.create(4000)
        rows = tensor(memory.buffer, [10, 100])
        data = fill(memory, rows)
        jobs = [scan(rows), scan(rows, axis=0), scan(rows, passes=["backward"])]
        first = client.send("job.submit", jobs[1])
        self.batch(client, jobs)
        client.wait(first)
        for job in [jobs[1], *jobs]:
            data = expected({memory.buffer: data}, job)
        self.assertTrue(memory.read() == data)

    def test_chains(self):
        """Jobs with steps beside those without have the bits of jobs that come alone."""
        client = self.client()
        noise = random.Random(6)
        together, alone, memories = [], [], []
        for i in range(12):
            rows, samples = noise.choice([(1, 1000), (3, 17), (2, 600)])
            pair = [client.create(rows * samples * 4) for _ in range(2)]
            data = noise.randbytes(pair[0].size)
            steps = [{"operation": "scan", "passes": ["forward", "backward"]}, {"operation": "demean"}]
            steps += [{"operation": "triangle", "half_width": 3}, {"operation": "scan", "passes": ["backward"], "op": "max"}]
            for jobs, memory in zip((together, alone), pair):
                memory.write(data)
                place = tensor(memory.buffer, [rows, samples])
                job = {"input": place, "output": place, "axis": 1, "steps": steps[: 1 + i % 4]}
                jobs.append(job if i % 5 else scan(place, axis=1))
            memories.append(pair)
        for outcome in self.batch(client, together):
            self.assertIn("times", outcome)
        for job in alone:
            client.call("job.run" if "steps" in job else "job.submit", job)
        for pair in memories:
            self.assertTrue(pair[0].read() == pair[1].read())

    def test_wrong_chains(self):
        client = self.client()
        memory, other = client.create(400), client.create(400)
        rows, apart = tensor(memory.buffer, [100]), tensor(other.buffer, [100])
        fill(memory, rows)
        good = {"input": rows, "output": rows, "axis": 0, "steps": [{"operation": "scan", "passes": ["forward"]}]}
        wide = {**good, "output": apart, "steps": [{"operation": "triangle", "half_width": 0}]}
        reads = {**good, "input": apart, "output": tensor(memory.buffer, [100])}
        outcomes = self.batch(client, [good, wide, reads])
        self.assertEqual(list(outcomes[0]), ["times"])
        self.check_outcome(outcomes[1], "invalid", r'^job.run: "steps\[0\].half_width" is 0')
        self.check_outcome(outcomes[2], "stale", "bytes of")
        for jobs, message in (
            ([good, {**good, "demaen": 1}], r'"jobs\[1\].demaen" is 1, but there is no such field'),
            ([{**good, "steps": []}], r'"jobs\[0\].steps" has 0 items; allowed: 1 to 9'),
            ([{**good, "steps": good["steps"] * 10}], r'"jobs\[0\].steps" has 10 items; allowed: 1 to 9'),
        ):
            self.refused(client, "invalid", message, "job.batch", jobs=jobs)

    def test_wrong_ones(self):
        client = self.client()
        memory = client.create(400)
        rows = tensor(memory.buffer, [100])
        fill(memory, rows)
        good, anyway = scan(rows), {**scan(rows), "after_failure": 1}
        wrong = [scan(tensor(99, [4])), {**good, "axis": 1}, {**good, "op": "affine"}]
        outcomes = self.batch(client, [good, *wrong, good, anyway, good])
        results = [list(outcome) == ["times"] for outcome in outcomes]
        self.assertEqual(results, [True, False, False, False, False, True, True])
        self.check_outcome(outcomes[1], "not_found", '"input.buffer" is 99; this connection has no such buffer')
        self.check_outcome(outcomes[2], "invalid", '"axis" is 1')
        self.check_outcome(outcomes[3], "invalid", "coefficient")
        self.check_outcome(outcomes[4], "stale", "bytes of 0 to 400 of buffer")

    def test_wrong_fields(self):
        """No job of a message that cannot be read is accepted."""
        client = self.client()
        memory = client.create(400)
        good = scan(tensor(memory.buffer, [100]))
        before = client.call("server.stats")["jobs_submitted"]
        for jobs, message in [
            ([], '"jobs" is empty; allowed: 1 to 32'),
            ([good] * (MOST + 1), r'field "jobs" has 33 items; allowed: 1 to 32'),
            ([good, {**good, "kind": "both"}], r'field "jobs\[1\].kind" is "both"; allowed: inclusive'),
            ([good, {"axis": 0}], r'field "jobs\[1\].input" is missing'),
            ([good, 5], r'field "jobs\[1\]" is an integer; expected: a map'),
            ({"a": 1}, 'field "jobs" is a map; expected: a list'),
        ]:
            self.refused(client, "invalid", "job.batch: " + message, "job.batch", jobs=jobs)
        self.assertEqual(client.call("server.stats")["jobs_submitted"], before)

    def test_largest(self):
        """The message is as long as it may be: fields that nobody knows fill it up."""
        client = self.client()
        memory = client.create(400)
        jobs = [{**scan(tensor(memory.buffer, [100])), "padding": ""} for _ in range(MOST)]
        spare = 65536 - len(pack([0, 2**31, "job.batch", [{"jobs": jobs}]])) - 3 * MOST
        for job in jobs:
            job["padding"] = "x" * (spare // MOST)
        self.assertEqual(len(self.batch(client, jobs)), MOST)

    def test_client_goes(self):
        """The client goes at any moment of a batch."""
        for i in range(30):
            client = self.client()
            memory = client.create(MIB // 4)  # a small segment: those of all clients may still be in use
            client.send("job.batch", jobs=[scan(tensor(memory.buffer, [64, 1024]), axis=1)] * (i + 1))
            client.close()
        self.settles()

    def test_noise(self):
        """Bytes that a good request turns into when one of them changes: any answer, but no harm."""
        data = pack([0, 5, "job.batch", [{"jobs": [scan(tensor(1, [3, 4])), scan(tensor(1, [2]), progress=1)]}]])
        for at in range(len(data)):
            client = self.client()
            client.create(100)
            client.send_bytes(data[:at] + bytes([data[at] ^ (0x80 if at % 2 else 0x11)]) + data[at + 1 :])
            client.close()
        self.settles()

    def test_many_clients(self):
        clients = [self.client() for _ in range(10)]  # with fewer jobs together than a user may have
        memories = [client.create(4 * 1000 * MOST) for client in clients]
        msgids = []
        for client, memory in zip(clients, memories):
            rows = [tensor(memory.buffer, [1000], offset=4000 * i) for i in range(MOST)]
            msgids.append([client.send("job.batch", jobs=[scan(row) for row in rows]) for _ in range(5)])
        for client, mine in zip(clients, msgids):
            for msgid in mine:
                self.assertFalse(any("error" in outcome for outcome in client.wait(msgid)["jobs"]))


class Waiting(BatchTest):
    """Tests that need jobs which take their time: on the CPU, whatever the device of the other tests is."""

    options = ON_CPU

    def test_cancel(self):
        """One of the waiting jobs is cancelled, then all."""
        client = self.client()
        buffer = client.create(BIG).buffer
        rows = tensor(buffer, [BIG // 40960, 10240])
        jobs = [scan(rows, axis=1, accumulator="f2", after_failure=1) for _ in range(8)]
        msgid = client.send("job.batch", jobs=jobs)
        client.call("job.cancel", job=msgid, index=6)
        self.refused(client, "not_found", "no such job", "job.cancel", job=msgid, index=6)
        self.refused(client, "invalid", 'field "index" is 32; allowed: 0 to 31', "job.cancel", job=msgid, index=32)
        client.call("job.cancel", job=msgid)
        outcomes = client.wait(msgid)["jobs"]
        self.check_outcome(outcomes[6], "cancelled", "cancelled by its client")
        self.check_outcome(outcomes[7], "cancelled", "cancelled by its client")
        self.refused(client, "not_found", "no such job", "job.cancel", job=msgid)

    def test_progress(self):
        client = self.client()
        buffer = client.create(BIG).buffer
        job = scan(tensor(buffer, [BIG // 40960, 10240]), axis=1, accumulator="f2")
        msgid = client.send("job.batch", jobs=[job, {**job, "progress": 1}])
        client.wait(msgid)
        self.assertEqual({(note["job"], note["index"]) for _, note in client.notes}, {(msgid, 1)})


if __name__ == "__main__":
    main()

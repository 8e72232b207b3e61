#!/usr/bin/env python3
"""Jobs that wait for one another, progress, cancelling, full queues, and what the daemon counts.

test_daemon_order.py SCAND [unittest's arguments]
"""

import itertools
import time

from daemons import BACKEND, ON_CPU, DaemonTest, main
from test_daemon_jobs import MIB, expected, fill
from wire import Failure, eventually, pack, pack_f32, scan, tensor, unpack_f32

BIG = 128 * MIB  # twice that is less than the device's memory


class OrderTest(DaemonTest):
    def big(self, client):
        """Params of a job of many chunks; the device's memory is zero, and stays so."""
        buffer = client.call("buffer.create", size=BIG, place="device")["buffer"]
        return scan(tensor(buffer, [BIG // 40960, 10240]), axis=1, accumulator="f2", passes=["forward", "backward"])


class Order(OrderTest):
    """Jobs that wait for one another, and what is told about them."""

    def test_two_jobs_on_one_buffer(self):
        client = self.client()
        memory = client.create(4000)
        rows = tensor(memory.buffer, [10, 100])
        data = fill(memory, rows)
        jobs = [scan(rows), scan(rows, axis=0), scan(rows, passes=["backward"])]
        for msgid in [client.send("job.submit", job) for job in jobs]:
            client.wait(msgid)
        for job in jobs:
            data = expected({memory.buffer: data}, job)
        self.assertTrue(memory.read() == data)

    def test_many_in_flight(self):
        """Binomial coefficients, one diagonal a job."""
        client = self.client()
        memory = client.create(16)
        memory.write(pack_f32([1, 1, 1, 1]))
        msgids = [client.send("job.submit", scan(tensor(memory.buffer, [4]))) for _ in range(200)]
        for msgid in reversed(msgids):
            client.wait(msgid)
        self.assertEqual(unpack_f32(memory.read()), [1, 201, 201 * 202 // 2, 201 * 202 * 203 // 6])

    def test_many_clients(self):
        clients = [self.client() for _ in range(50)]
        memories = [client.create(4000) for client in clients]
        for i, memory in enumerate(memories):
            memory.write(pack_f32([i] * 1000))
        rounds = [
            [
                client.send("job.submit", scan(tensor(memory.buffer, [20, 50])))
                for client, memory in zip(clients, memories)
            ]
            for _ in range(2)
        ]
        for client, *msgids in zip(clients, *rounds):
            for msgid in msgids:
                client.wait(msgid)
        twice = list(itertools.accumulate(range(1, 51)))
        for i, memory in enumerate(memories):
            self.assertEqual(unpack_f32(memory.read()), [i * value for value in twice] * 20)

    def test_progress(self):
        client = self.client()
        rows = 64 * MIB // 40960
        job = scan(tensor(client.create(64 * MIB).buffer, [rows, 10240]), axis=1, accumulator="f2")
        msgid = client.send("job.submit", {**job, "progress": 1})
        client.wait(msgid)
        self.assertEqual(
            {(name, note["job"], note["rows"]) for name, note in client.notes}, {("job.progress", msgid, rows)}
        )
        done = [note["rows_done"] for _, note in client.notes]
        self.assertEqual(done, sorted(set(done)))
        self.assertTrue(0 < done[0] and done[-1] < rows)
        client.notes.clear()
        client.call("job.submit", job)
        self.assertEqual(client.notes, [])

    def test_after_a_failure(self):
        """A job reads the output of a refused one: it is sent together with that one, and once the answer has come."""
        client = self.client()
        source, target = client.create(4000), client.create(4000)
        wrong = scan(tensor(source.buffer, [1000]), tensor(target.buffer, [1000]), axis=2)
        reader = scan(tensor(target.buffer, [500]), tensor(source.buffer, [500]))
        anyway, apart = {**reader, "after_failure": 1}, scan(tensor(source.buffer, [100], offset=3000))
        for i in range(200):
            first = 10 * i + 100000
            jobs = [wrong, reader, apart] if i % 2 else [wrong, anyway, {**reader, "input": reader["output"]}]
            client.send_bytes(b"".join(pack([0, first + k, "job.submit", [job]]) for k, job in enumerate(jobs)))
            self.fails(client, first, "invalid", '"axis" is 2')
            if i % 2:
                message = r"bytes of 0 to 4000 of buffer \d+, which an earlier job of this connection was to write"
                self.fails(client, first + 1, "stale", message)
            else:
                client.wait(first + 1)
            client.wait(first + 2)
            client.call("job.submit", reader)

    def test_stats_add_up(self):
        self.settles()
        client = self.client()
        memory = client.create(4000)
        before = client.call("server.stats")
        for shape in ([10, 100], [1000], [0, 3]):
            client.call("job.submit", scan(tensor(memory.buffer, shape)))
        with self.assertRaises(Failure):
            client.call("server.pong")
        job = self.big(client)
        client.send("job.cancel", job=client.send("job.submit", job))
        self.assertTrue(eventually(lambda: client.call("server.stats")["jobs_open"] == 0))
        after = client.call("server.stats")
        more = {name: after[name] - before[name] for name in after}
        self.assertEqual(
            (more["jobs_submitted"], more["jobs_done"] + more["jobs_cancelled"], more["jobs_failed"]), (4, 4, 0)
        )
        self.assertGreaterEqual(more["rows_scanned"], 11)
        self.assertGreaterEqual(more["samples_scanned"], 2000)
        self.assertEqual((more["buffers_open"], more["device_bytes"], more["host_bytes"]), (1, BIG, 0))
        self.assertGreaterEqual(more["messages_refused"], 1)
        self.assertGreaterEqual(after["pool_bytes"], 64 * MIB)

    def test_a_msgid_in_use(self):
        client = self.client()
        job = self.big(client)
        client.send_bytes(pack([0, 41, "job.submit", [job]]) * 2)  # both are there before the first can be done
        self.fails(client, 41, "invalid", "msgid 41 is that of a job that still runs")
        client.wait(41)
        client.send_bytes(pack([0, 41, "job.submit", [job]]))
        client.wait(41)

    def test_words_of_a_job(self):
        client = self.client()
        rows = tensor(client.create(400).buffer, [100])
        for field, value, message in (
            ("priority", "urgent", 'field "priority" is "urgent"; allowed: normal, low, high'),
            ("priority", "", 'field "priority" is ""; allowed'),
            ("priority", 1, 'field "priority"'),
            ("deadline_ms", -1, 'field "deadline_ms" is -1'),
            ("deadline_ms", 86400001, 'field "deadline_ms" is 86400001; allowed: 0 to 86400000'),
            ("deadline_ms", 2**64 - 1, 'field "deadline_ms" is 18446744073709551615; allowed'),
            ("deadline_ms", 1.5, 'field "deadline_ms"'),
            ("deadline_ms", "soon", 'field "deadline_ms"'),
        ):
            with self.subTest(field=field, value=value):
                self.refused(client, "invalid", message, "job.submit", {**scan(rows), field: value})
        for more in ({"priority": "low"}, {"priority": "high"}, {"deadline_ms": 0}, {"deadline_ms": 86400000}):
            client.call("job.submit", {**scan(rows), **more})

    def test_devices(self):
        self.settles()
        self.assertTrue(
            eventually(lambda: all(used < BIG for used in self.used_bytes())),
            "a big buffer of a test before is still there",
        )
        client, before = self.client(), self.used_bytes()
        devices = client.call("server.devices")["devices"]
        self.assertEqual(devices, client.greeting["devices"])
        for device in devices:
            self.assertEqual((device["backend"], device["memory_limit_bytes"]), (BACKEND, 512 * MIB))
            self.assertTrue(device["name"] and device["chunk_bytes"] and device["memory_bytes"])
        client.call("buffer.create", size=MIB, place="device")
        self.assertEqual(sum(self.used_bytes()), sum(before) + MIB)

    def used_bytes(self):
        return [device["memory_used_bytes"] for device in self.neighbour.call("server.devices")["devices"]]


class Waiting(OrderTest):
    """Tests that need jobs which take their time: on the CPU, whatever the device of the other tests is."""

    options = ON_CPU

    def test_cancel(self):
        client = self.client()
        job = self.big(client)
        job |= {"progress": 1, "after_failure": 1}
        running, waiting, last = (client.send("job.submit", job) for _ in range(3))
        while not client.notes:
            client.notes.append(client.receive())
        for msgid in (waiting, running):
            client.call("job.cancel", job=msgid)
            self.fails(client, msgid, "cancelled", "cancelled by its client")
            self.refused(client, "not_found", "no such job", "job.cancel", job=msgid)
        client.wait(last)

    def test_deadlines(self):
        """A job behind others that last fails when its time has come, not when theirs has."""
        client, other = self.client(), self.client()
        job = self.big(client)
        before = client.call("server.stats").get("jobs_expired", 0)
        first, *more = (client.send("job.submit", {**job, "progress": 1}) for _ in range(40))
        while not client.notes:
            client.notes.append(client.receive())
        begun = time.monotonic()
        late = client.send("job.submit", {**job, "deadline_ms": 20})
        in_time = client.send("job.submit", {**job, "deadline_ms": 3600000, "after_failure": 1})
        self.fails(client, late, "deadline", '"deadline_ms" is 20, and the job could not start by then')
        self.assertGreaterEqual(time.monotonic() - begun, 0.02)
        self.assertNotIn(more[-1], client.answers)
        memory = other.create(400)  # whoever has the device to start at once is in time
        other.call("job.submit", {**scan(tensor(memory.buffer, [100])), "deadline_ms": 30000})
        for msgid in more:
            client.send("job.cancel", job=msgid)
        client.wait(first)
        client.wait(in_time)
        self.assertEqual(client.call("server.stats")["jobs_expired"], before + 1)

    def test_priorities(self):
        client = self.client()
        job = self.big(client)
        rows = [tensor(client.create(80000).buffer, [20000]) for _ in range(3)]  # small ones pass what has begun
        running = client.send("job.submit", {**job, "progress": 1})
        while not client.notes:
            client.notes.append(client.receive())
        low, normal, high = (
            client.send("job.submit", {**scan(target), "priority": priority})
            for target, priority in zip(rows, ("low", "normal", "high"))
        )
        for msgid in (high, running, normal, low):
            self.assertNotIn(msgid, client.answers)
            client.wait(msgid)

    def test_queue_is_bounded(self):
        client, other = self.client(), self.client()
        job = self.big(client)
        msgids = [client.send("job.submit", job) for _ in range(256)]
        error = self.refused(client, "busy", "256 jobs of this connection", "job.submit", job)
        self.assertTrue(10 <= error["retry_ms"] <= 60000)
        self.assertIn(f"try again in {error['retry_ms']} ms", error["message"])
        memory = other.create(400)
        other.call("job.submit", scan(tensor(memory.buffer, [100])))
        for msgid in reversed(msgids):
            client.send("job.cancel", job=msgid)
        ended = set()
        for msgid in msgids:
            try:
                client.wait(msgid)
                ended.add("done")
            except Failure as failure:
                ended.add(failure.name)
        self.assertIn("cancelled", ended)
        client.call("job.submit", {**job, "passes": ["forward"]})


if __name__ == "__main__":
    main()

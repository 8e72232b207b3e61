#!/usr/bin/env python3
"""Jobs on memory of the client's own of which most has yet to be pinned: submitted as soon as it is imported.

test_daemon_pinning.py SCAND [unittest's arguments]
"""

import os

from daemons import DaemonTest, main
from wire import Memory, memfd, pack_f32, scan, tensor

ROWS, LENGTH = 10240, 1024
ROW_BYTES = 4 * LENGTH
ARRAY_BYTES = ROWS * ROW_BYTES  # ten pin units
ONES = pack_f32([1] * LENGTH)
RAMP = pack_f32(range(1, LENGTH + 1))


class Pinning(DaemonTest):
    def tearDown(self):
        super().tearDown()
        self.doCleanups()
        self.settles()

    def fresh(self, client):
        """An import with room for two arrays, both full of ones before the daemon knows of it."""
        fd = memfd(2 * ARRAY_BYTES)
        for at in range(0, 2 * ARRAY_BYTES, 1024 * ROW_BYTES):
            os.pwrite(fd, ONES * 1024, at)
        made = client.call("buffer.import", {"size": 2 * ARRAY_BYTES, "fds": 1}, [fd])
        return Memory(made["buffer"], [fd], 2 * ARRAY_BYTES, 2 * ARRAY_BYTES)

    def array(self, memory, offset=0, **more):
        return tensor(memory.buffer, [ROWS, LENGTH], offset=offset, **more)

    def holds(self, memory, row, offset=0):
        self.assertTrue(memory.read(offset, ARRAY_BYTES) == row * ROWS)

    def test_from_one_half_to_the_other(self):
        client = self.client()
        memory = self.fresh(client)
        client.call("job.submit", scan(self.array(memory), self.array(memory, ARRAY_BYTES)))
        self.holds(memory, ONES)
        self.holds(memory, RAMP, ARRAY_BYTES)

    def test_last_row_first(self):
        client = self.client()
        memory = self.fresh(client)
        last = {"strides": [-ROW_BYTES, 4], "offset": 2 * ARRAY_BYTES - ROW_BYTES}
        client.call("job.submit", scan(self.array(memory, **last), self.array(memory)))
        self.holds(memory, RAMP)
        self.holds(memory, ONES, ARRAY_BYTES)

    def test_columns(self):
        client = self.client()
        memory = self.fresh(client)
        client.call("job.submit", scan(self.array(memory, ARRAY_BYTES), axis=0))
        self.holds(memory, ONES)
        for row in (0, 1, ROWS - 1):
            got = memory.read(ARRAY_BYTES + row * ROW_BYTES, ROW_BYTES)
            self.assertTrue(got == pack_f32([row + 1] * LENGTH))

    def test_ragged_rows(self):
        client = self.client()
        memory, bounds = self.fresh(client), client.create(8 * (ROWS + 1))
        bounds.write(b"".join((i * LENGTH).to_bytes(8, "little") for i in range(ROWS + 1)))
        flat = tensor(memory.buffer, [ROWS * LENGTH], offset=ARRAY_BYTES)
        client.call("job.submit", scan(flat, offsets=tensor(bounds.buffer, [ROWS + 1], dtype="u64")))
        self.holds(memory, ONES)
        self.holds(memory, RAMP, ARRAY_BYTES)

    def test_small_jobs_from_the_end_on(self):
        client = self.client()
        memory = self.fresh(client)
        rows = [ROWS * i // 32 for i in reversed(range(64))]
        jobs = [scan(tensor(memory.buffer, [1, LENGTH], offset=row * ROW_BYTES)) for row in rows]
        for msgid in [client.send("job.submit", job) for job in jobs]:
            client.wait(msgid)
        for row in rows:
            self.assertEqual(memory.read(row * ROW_BYTES, 2 * ROW_BYTES), RAMP + (ONES if row < 2 * ROWS - 1 else b""))

    def test_several_clients_at_once(self):
        clients = [self.client() for _ in range(3)]
        memories = [self.fresh(client) for client in clients]
        msgids = [
            client.send("job.submit", scan(self.array(memory)))
            for client, memory in zip(clients, memories)
            for _ in range(2)
        ]
        for client, first, second in zip(clients, msgids[::2], msgids[1::2]):
            client.wait(first)
            client.wait(second)
        twice = pack_f32([i * (i + 1) // 2 for i in range(1, LENGTH + 1)])
        for memory in memories:
            self.holds(memory, twice)

    def test_released_at_once(self):
        client = self.client()
        memory = self.fresh(client)
        msgid = client.send("job.submit", scan(self.array(memory, ARRAY_BYTES)))
        client.call("buffer.release", buffer=memory.buffer)
        client.wait(msgid)
        self.holds(memory, RAMP, ARRAY_BYTES)

    def test_clients_that_go_at_once(self):
        for submits in (False, True):
            client = self.client()
            memory = self.fresh(client)
            if submits:
                client.send("job.submit", scan(self.array(memory)))
            client.close()


if __name__ == "__main__":
    main()

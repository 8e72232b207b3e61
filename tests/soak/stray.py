#!/usr/bin/env python3
"""A program of the soak test that keeps no order: stray.py SOCKET SEED. It shares memory and files, by rings or without, submits jobs, batches,
chains and groups, cancels what it may not have submitted, releases what jobs use, waits for few of them, and leaves at any time.
"""

import os
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from wire import Client, Closed, Failure, RingClient, memfd, scan, tensor  # noqa: E402

SAMPLES = 1000  # of a row
ROW_BYTES = 4 * SAMPLES
AWAY_S = 0.05


class Stray:
    def __init__(self, client, chance):
        self.client, self.random = client, chance
        self.buffers, self.asked = [], []

    def made(self, method, files=(), **params):
        """A buffer of as many rows as it has room for, unless the daemon makes none."""
        try:
            number = self.client.call(method, params, files)["buffer"]
        except Failure:
            return
        finally:
            while self.client.fds:
                os.close(self.client.fds.pop())
            for fd in files:
                os.close(fd)
        self.buffers.append((number, params["size"] // ROW_BYTES))

    def size(self):
        return ROW_BYTES * self.random.choice((1, 8, 100, 2000))

    def create(self):
        self.made("buffer.create", size=self.size(), place=self.random.choice(("host", "device")), wait_ms=self.random.choice((0, 50)))

    def adopt(self):
        size = self.size()
        self.made("buffer.import", [memfd(size)], size=size, segment=size, fds=1)

    def open_file(self):
        with tempfile.TemporaryFile() as file:
            file.truncate(8 * ROW_BYTES)
            self.made("buffer.import_file", [os.dup(file.fileno())], size=8 * ROW_BYTES, fds=1)

    def release(self):
        if self.buffers:
            self.ask("buffer.release", buffer=self.buffers.pop(self.random.randrange(len(self.buffers)))[0])

    def ask(self, method, **params):
        self.asked.append(self.client.send(method, params))

    def operands(self):
        (source, rows), (target, room) = (self.random.choice(self.buffers) for _ in range(2))
        shape = [min(rows, room), SAMPLES]
        return tensor(source, shape), tensor(target, shape)

    def scan(self):
        source, target = self.operands()
        more = {"deadline_ms": 1} if self.random.random() < 0.1 else {"progress": 1} if self.random.random() < 0.2 else {}
        return scan(source, target, passes=self.random.choice((["forward"], ["backward", "forward"])), **more)

    def submit(self):
        for _ in range(self.random.randrange(1, 40)):
            self.ask("job.submit", **self.scan())

    def batch(self):
        self.ask("job.batch", jobs=[self.scan() for _ in range(self.random.randrange(1, 32))])

    def chain(self):
        source, target = self.operands()
        self.ask("job.run", input=source, output=target, steps=[{"operation": "demean"}, {"operation": "scan", "passes": ["forward"]}])

    def group(self):
        label = self.random.randrange(1, 4)
        if self.random.random() < 0.5:
            self.ask("group.begin", group=label)
        else:
            self.ask("group.end", group=label)

    def cancel(self):
        self.ask("job.cancel", job=self.random.choice(self.asked) if self.asked else 1)

    def wait(self):
        if self.asked:
            try:
                self.client.wait(self.asked[-1])
            except Failure:
                pass

    def run(self):
        makes = [self.create, self.adopt, self.open_file]
        uses = [self.submit, self.submit, self.batch, self.chain, self.group, self.cancel, self.wait, self.release]
        for _ in range(self.random.randrange(1, 80)):
            self.random.choice(makes + uses if self.buffers else makes)()


def main():
    socket, chance = sys.argv[1], random.Random(int(sys.argv[2]))
    while True:
        try:
            with chance.choice((Client, RingClient))(socket) as client:
                Stray(client, chance).run()
        except Failure as failure:  # of hello, or of rings
            assert failure.name in ("busy", "quota", "draining"), failure
        except (Closed, OSError):
            time.sleep(AWAY_S)


if __name__ == "__main__":
    main()

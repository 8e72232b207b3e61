"""The rig of tests of the daemon's processes: a long job, and what a client notices of an end."""

import unittest

from wire import CODES, Client, Closed, Failure, pack_f32, scan, tensor, unpack_f32

MIB = 1 << 20


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Work:
    """A client with a job that runs for long, and others behind it that can be cancelled."""

    def __init__(self, daemon, behind=20):
        self.client = daemon.client()
        buffer = self.client.call("buffer.create", size=256 * MIB, place="device")["buffer"]
        self.job = scan(tensor(buffer, [6553, 10240]), accumulator="f2", passes=["forward", "backward"], progress=1)
        self.running, *self.behind = (self.client.send("job.submit", self.job) for _ in range(1 + behind))
        while not self.client.notes:
            self.client.notes.append(self.client.receive())

    def cancel_rest(self):
        for msgid in self.behind:
            self.client.send("job.cancel", job=msgid)


class ProcessTest(unittest.TestCase):
    def serves(self, path):
        """A fresh client gets the right result."""
        with Client(path) as client:
            memory = client.create(400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))

    def loses(self, client):
        """The connection ends without another answer."""
        with self.assertRaises(Closed):
            while True:
                client.receive()
        client.close()

    def fails(self, name, client, msgid):
        with self.assertRaises(Failure) as caught:
            client.wait(msgid)
        self.assertEqual((caught.exception.name, caught.exception.error["code"]), (name, CODES[name]))

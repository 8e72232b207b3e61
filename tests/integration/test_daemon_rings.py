#!/usr/bin/env python3
"""Rings in shared memory: that they carry what the socket carries, and that whatever a client writes to them ends its own
connection at most.

    test_daemon_rings.py SCAND [unittest's arguments]
"""

import contextlib
import fcntl
import os
import random

from daemons import Daemon, DaemonTest, main
from stalled import Stalled
from wire import Client, Closed, Failure, RingClient, eventually, memfd, pack, pack_f32, scan, tensor, unpack_f32

PING = pack([0, 7, "server.ping", [{}]])
MEMORY = 4096 + 2 * 65536
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class RingTest(DaemonTest):
    def tearDown(self):
        super().tearDown()
        self.doCleanups()
        self.settles()
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats").get("rings_open", 0) == 0))
        self.assertEqual([fd for fd in os.scandir(f"/proc/{self.worker}/fd") if fd.stat().st_size == MEMORY], [])
        self.assertNotIn(MEMORY, self.mapped())

    def mapped(self):
        """The sizes of the worker's memory maps of memfds."""
        with open(f"/proc/{self.worker}/maps") as maps:
            ranges = [line.split()[0].split("-") for line in maps if "memfd" in line]
        return [int(end, 16) - int(begin, 16) for begin, end in ranges]

    def ring_client(self):
        client = RingClient(self.daemon.socket)
        self.addCleanup(client.close)
        return client


class Carry(RingTest):
    """What comes by the rings is what comes by the socket."""

    def test_memory_is_sealed(self):
        client = self.ring_client()
        self.assertEqual(fcntl.fcntl(client.fd, fcntl.F_GET_SEALS), SEALS)
        self.assertEqual(os.fstat(client.fd).st_size, MEMORY)
        self.assertIn(MEMORY, self.mapped())

    def test_messages_by_both_ways(self):
        client = self.ring_client()
        for i in range(300):  # several times around
            client.put(pack([0, 1000 + i, "server.ping", [{}]]))
            self.assertEqual(client.call("server.ping"), {})
            self.assertEqual(client.wait(1000 + i), {})
        client.call("server.stats")
        self.refused(client, "unknown_method", "no method", "server.pong")

    def test_a_message_in_parts(self):
        client = self.ring_client()
        client.put(PING[:5])
        client.put(PING[5:6])
        client.send_bytes(PING[6:])
        self.assertEqual(client.wait(7), {})

    def test_descriptors_and_jobs(self):
        client = self.ring_client()
        made = client.create(4096)
        own = client.adopt(4096, 4096)
        made.write(pack_f32([1] * 1000))
        client.put(pack([0, 900, "job.submit", [scan(tensor(made.buffer, [1000]), tensor(own.buffer, [1000]))]]))
        client.call("job.submit", scan(tensor(own.buffer, [1000])))
        client.wait(900)
        self.assertEqual(unpack_f32(own.read(0, 16)), [1, 3, 6, 10])
        self.refused(client, "descriptor", "announces 1", "buffer.import", {"size": 4096, "fds": 1})

    def test_descriptors_nobody_announced(self):
        client = self.ring_client()
        fd = memfd(4096)
        self.addCleanup(os.close, fd)
        client.send("server.ping", fds=[fd])
        self.assertTrue(eventually(client.has_ended))

    def test_it_is_shown(self):
        self.ring_client()
        self.assertEqual(self.neighbour.call("server.stats")["rings_open"], 1)

    def test_what_was_sent_before_the_end_counts(self):
        client = self.ring_client()
        memory = client.create(4096)
        memory.write(pack_f32([1] * 4))
        client.put(pack([0, 8, "job.submit", [scan(tensor(memory.buffer, [4]))]]))
        client.socket.close()
        self.assertTrue(eventually(lambda: unpack_f32(memory.read(0, 16)) == [1, 2, 3, 4]))

    def test_answers_outlive_the_daemon(self):
        with Daemon("--device", "cpu") as daemon, contextlib.closing(RingClient(daemon.socket)) as client:
            for i in range(10):
                client.put(pack([0, 500 + i, "server.ping", [{}]]))
            self.assertEqual(client.call("server.drain"), {})
            daemon.wait()
            for i in range(10):
                self.assertEqual(client.wait(500 + i), {})
            self.assertTrue(client.is_closed())


    def test_what_was_sent_before_the_end_is_refused(self):
        """As in the test of that name without rings; and what comes later finds no reader, and the socket shut."""
        with Daemon("--device", "cpu") as daemon, contextlib.closing(RingClient(daemon.socket)) as client:
            job = scan(tensor(client.create(4).buffer, [1]))
            client.put(pack([0, 1000, "server.drain", [{}]]))
            for i in range(200):
                client.put(pack([0, 2000 + i, "job.submit", [job]]))
            last = client.send("server.ping")  # wakes the daemon
            self.assertEqual(client.wait(1000), {})
            for i in range(200):
                self.fails(client, 2000 + i, "draining", "takes no more jobs")
            self.assertEqual(client.wait(last), {})
            daemon.wait()
            self.assertTrue(client.is_closed())
            self.assertEqual(client.number(client.WRITTEN[0]) % 2, 1)
            with self.assertRaises(BrokenPipeError):
                client.send("server.ping")


class Refusals(RingTest):
    def test_twice(self):
        client = self.ring_client()
        self.refused(client, "invalid", "has rings; open them once", "rings.open")

    def test_before_hello(self):
        client = self.client(greet=False)
        self.fails(client, client.send("rings.open"), "invalid", "came before hello")

    def test_with_something_behind(self):
        client = self.client()
        client.send_bytes(pack([0, 6, "rings.open", [{}]]) + PING)
        self.fails(client, 6, "invalid", "nothing may follow rings.open before its answer")
        self.assertEqual(client.wait(7), {})

    def test_a_user_has_half_of_what_others_leave(self):
        with contextlib.ExitStack() as opened:
            clients = []
            with self.assertRaises(Failure) as caught:
                for _ in range(128):
                    client = opened.enter_context(Client(self.daemon.socket))
                    client.call("rings.open")
                    clients.append(client)
            self.assertEqual(caught.exception.name, "quota")
            self.assertRegex(str(caught.exception), "has rings on 64 connections; allowed: 64; go on by the socket")
            self.assertEqual(client.call("server.ping"), {})
            self.assertEqual(len(clients), 64)


class Attacks(RingTest):
    """Each ends the connection of whoever does it; tearDown asks the neighbour."""

    def ends(self, client):
        self.assertTrue(eventually(client.has_ended))
        self.assertRegex(self.daemon.log_text(), "sent bytes or descriptors that are no message of the protocol")

    def test_positions(self):
        for value in (1, 3, 4 * 65536, 2**63, 2**64 - 1, 2**64 - 8):
            client = self.ring_client()
            client.set_number(client.WRITTEN[0], 2 * value)
            client.socket.send(b"x")
            self.ends(client)

    def test_a_position_that_goes_back(self):
        client = self.ring_client()
        client.call("server.ping")
        client.set_number(client.WRITTEN[0], 0)
        client.socket.send(b"x")
        self.ends(client)

    def test_frames(self):
        for word in (0, 1, 65536, 2**31 - 1, 2**31, 2**32 - 1):
            client = self.ring_client()
            client.put(b"", word)
            client.socket.send(b"x")
            self.ends(client)

    def test_bytes_that_no_frame_tells_of(self):
        client = self.ring_client()
        client.socket.send(b"x")
        self.ends(client)

    def test_positions_of_answers(self):
        for at in (RingClient.READ[1], RingClient.WRITTEN[1]):
            for value in (8, 2**62, 2**63):
                client = self.ring_client()
                client.set_number(at, value)
                client.put(PING)
                client.send("server.ping")
                self.ends(client)

    def test_no_messages(self):
        client = self.ring_client()
        client.put(b"\xc1" * 100)
        client.send_bytes(b"\xc1")
        self.ends(client)

    def test_memory_is_given_back(self):
        """A client that keeps the descriptor keeps nothing of the daemon's memory."""
        for ends_itself in (False, True):
            client = self.ring_client()
            client.call("server.stats")
            self.assertGreater(os.fstat(client.fd).st_blocks, 0)
            if ends_itself:
                client.socket.close()
            else:
                client.socket.send(b"x")
            self.assertTrue(eventually(lambda: os.fstat(client.fd).st_blocks == 0))

    def test_memory_that_is_held(self):
        """Whoever writes to the memory's file without end holds up the end of that memory, and nothing else."""
        stalled = Stalled()
        self.addCleanup(stalled.end)
        client = self.ring_client()
        keeps = os.dup(client.fd)
        self.addCleanup(os.close, keeps)
        stalled.write(keeps)
        client.close()
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats")["clients_open"] == 1))
        self.assertEqual(self.neighbour.call("server.stats")["rings_open"], 1)
        with contextlib.closing(RingClient(self.daemon.socket)) as other:
            self.assertEqual(other.call("server.ping"), {})
        stalled.end()
        self.assertTrue(eventually(lambda: os.fstat(keeps).st_blocks == 0))

    def test_holes(self):
        """A sealed file may still be punched: pages come back as zeros, which are wrong positions."""
        client = self.ring_client()
        client.call("server.ping")
        os.posix_fadvise(client.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        client.memory.madvise(9)  # MADV_REMOVE
        client.socket.send(b"x")
        self.ends(client)

    def test_a_promise_of_the_socket_that_is_not_kept(self):
        client = self.ring_client()
        client.put(b"", client.BY_SOCKET | 2**30)
        client.socket.send(PING)
        self.assertEqual(client.wait(7), {})
        client.put(PING)  # behind what is promised: it is never read
        self.assertFalse(client.has_ended())

    def test_answers_that_nobody_reads(self):
        """Ring, socket and the daemon's own memory fill up; then nothing more is read."""
        client = self.ring_client()
        many = PING * 200
        client.socket.setblocking(False)
        total = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                client.put(b"", client.BY_SOCKET | len(many))
                sent = 0
                while sent < len(many):
                    sent += client.socket.send(many[sent:])
                total += sent
                self.assertLess(total, 64 << 20)
                eventually(lambda: client.number(client.READ[0]) == client.sent, 0.01)
        self.assertLess(client.number(client.READ[0]), client.sent)

    def test_scribbling(self):
        """Anything anywhere, while requests come and go."""
        seed = random.randrange(2**32)
        chance = random.Random(seed)
        for _ in range(60):
            client = self.ring_client()
            with contextlib.suppress(Closed, BrokenPipeError, ConnectionError, ValueError, OSError):
                for _ in range(chance.randrange(1, 20)):
                    client.put(PING)
                    if chance.randrange(3) == 0:
                        at = chance.choice([*client.WRITTEN, *client.READ, 4096 + chance.randrange(2 * client.size)])
                        value = chance.choice([0, 1, chance.randrange(2**10), chance.randrange(2**64)])
                        if at < 4096:
                            client.set_number(at, value)
                        else:
                            client.memory[at] = value % 256
                    client.put(b"", client.BY_SOCKET | len(PING))
                    client.socket.send(PING)
            client.close()
        self.assertEqual(self.neighbour.call("server.ping"), {}, seed)


if __name__ == "__main__":
    main()

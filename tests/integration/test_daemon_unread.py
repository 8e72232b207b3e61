#!/usr/bin/env python3
"""Clients that do not read what they asked for, or read it late.

test_daemon_unread.py SCAND [unittest's arguments]
"""

import os
import select

from daemons import DaemonTest, main
from wire import TIMEOUT_S, Failure, eventually, pack


class Unread(DaemonTest):
    """More answers than the daemon queues, of clients that never read them, or late."""

    def flood(self, floods):
        """Sends each client's bytes again and again, and reads nothing, until the daemon has hung up on all of them."""
        poll, left = select.poll(), {}
        for client, data in floods.items():
            client.socket.setblocking(False)
            poll.register(client.socket, select.POLLOUT)
            left[client.socket.fileno()] = (client.socket, data, data)
        while left:
            ready = poll.poll(1000 * TIMEOUT_S)
            self.assertTrue(ready, "a client that never reads is still there")
            for fd, _ in ready:
                socket, rest, data = left[fd]
                try:
                    left[fd] = (socket, rest[socket.send(rest) :] or data, data)
                except BlockingIOError:
                    pass
                except ConnectionError:
                    poll.unregister(fd)
                    del left[fd]

    def test_answers_that_nobody_reads(self):
        """Plain answers, and answers that come with descriptors."""
        stats, buffers = self.client(), self.client()
        pairs = [
            pack([0, 5, "buffer.create", [{"size": 1, "place": "host"}]]) + pack([0, 5, "buffer.release", [{"buffer": i}]])
            for i in range(1, 3000)
        ]
        self.flood({stats: pack([0, 5, "server.stats", [{}]]) * 100, buffers: b"".join(pairs)})
        self.assertIn("took none of its answers for 10000 ms: disconnected", self.daemon.log_text())
        stats.close()
        buffers.close()
        self.settles()

    def count_refused(self):
        return self.neighbour.call("server.stats")["messages_refused"]

    def test_answers_that_are_read_late(self):
        """More than the daemon queues: it stops reading, goes on when it can, and every request has its answer."""
        client, before, many = self.client(), self.count_refused(), 15000
        client.send_bytes(b"".join(pack([0, 100 + i, "x", []]) for i in range(many)))
        self.assertTrue(eventually(lambda: before < self.count_refused() == self.count_refused()))
        self.assertLess(self.count_refused() - before, many)
        for i in range(many):
            with self.assertRaises(Failure) as caught:
                client.wait(100 + i)
            self.assertEqual(caught.exception.name, "unknown_method")
        self.assertEqual(client.call("server.ping"), {})

    def test_descriptors_that_are_read_late(self):
        client, many = self.client(), 1500
        client.send_bytes(
            b"".join(
                pack([0, i, "buffer.create", [{"size": 1, "place": "host"}]])
                + pack([0, many + i, "buffer.release", [{"buffer": i}]])
                for i in range(1, many)
            )
        )
        for i in range(1, many):
            made = client.wait(i)
            self.assertEqual((made["buffer"], made["fds"], len(client.fds)), (i, 1, 1))
            os.close(client.fds.pop())
            self.assertEqual(client.wait(many + i), {})

    def test_many_requests_of_a_client_that_reads(self):
        client = self.client()
        for msgid in [client.send("server.stats") for _ in range(1000)]:
            self.assertIn("jobs_done", client.wait(msgid))


if __name__ == "__main__":
    main()

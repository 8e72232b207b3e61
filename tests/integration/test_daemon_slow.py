#!/usr/bin/env python3
"""Clients that send slowly, and clients that do not read what they asked for.

test_daemon_slow.py SCAND [unittest's arguments]
"""

import struct
import time

from daemons import DaemonTest, main
from wire import Closed, Raw, pack

HELLO = {"version_min": 1, "version_max": 1}
PING = pack([0, 7, "server.ping", [{}]])


class Patience(DaemonTest):
    """A message that has begun must end within 5 seconds. All clients wait at the same time."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ended = {}  # by client's name: after how many seconds it was disconnected
        cls.clients = {name: cls.daemon.client() for name in ("idle", "silent", "long", "short", "middle")}
        cls.quiet = cls.daemon.client(greet=False)
        for client in (*cls.clients.values(), cls.quiet):
            cls.addClassCleanup(client.close)
        cls.clients["silent"].send_bytes(PING + PING[:9])
        cls.clients["middle"].send_bytes(PING[:4])
        begin = time.monotonic()
        for step in range(40):
            time.sleep(0.2)
            for name, data in (
                ("long", b"\0"),
                ("short", PING[step % len(PING) :][:1]),
                ("middle", PING[4:] + PING[:4]),
            ):
                cls.send(name, data if step or name != "long" else cls.long_message()[:9], begin)

    @staticmethod
    def long_message():
        return pack([0, 7, Raw(b"\xc5\x10\x00" + bytes(4096)), [{}]])

    @classmethod
    def send(cls, name, data, begin):
        if name in cls.ended:
            return
        try:
            cls.clients[name].send_bytes(data)
            if name == "middle":
                cls.clients[name].wait(7)
        except (ConnectionError, Closed):
            cls.ended[name] = time.monotonic() - begin

    def test_half_a_message_then_silence(self):
        """The connection is closed, but what was asked before is answered."""
        client = self.clients["silent"]
        self.assertEqual(client.wait(7), {})
        self.assertTrue(client.is_closed())
        self.assertIn("half a message", self.daemon.log_text())

    def test_a_long_message_byte_by_byte(self):
        self.assertGreater(self.ended["long"], 4.5)

    def test_short_messages_byte_by_byte(self):
        self.assertNotIn("short", self.ended)

    def test_always_in_the_middle_of_a_message(self):
        """Whenever this client pauses the daemon has half a message, but never the same one for long."""
        self.assertNotIn("middle", self.ended)

    def test_idle_clients_stay(self):
        self.assertEqual(self.clients["idle"].call("server.ping"), {})
        self.assertEqual(self.quiet.call("hello", **HELLO)["version"], 1)


class Readers(DaemonTest):
    """Clients that do not read what they asked for."""

    def flood(self, client, data):
        """Sends for as long as the daemon listens. True when it has hung up."""
        client.socket.settimeout(30)
        try:
            for _ in range(100000):
                client.socket.sendall(data)
        except ConnectionError:
            return True
        except TimeoutError:
            pass
        return False

    def test_replies_that_nobody_reads(self):
        client = self.client()
        self.assertTrue(self.flood(client, pack([0, 5, "server.stats", [{}]]) * 100))
        client.close()
        self.settles()

    def test_descriptors_that_nobody_reads(self):
        client = self.client()
        create = [
            pack([0, 5, "buffer.create", [{"size": 1, "place": "host"}]]),
            pack([0, 5, "buffer.release", [{"buffer": 0}]]),
        ]
        rounds = [create[0] + create[1][:-1] + struct.pack(">BI", 0xCE, i) for i in range(1, 3000)]
        with self.assertRaises(ConnectionError):
            for data in rounds:
                client.socket.sendall(data)
        client.close()
        self.settles()

    def test_many_requests_of_a_client_that_reads(self):
        client = self.client()
        for msgid in [client.send("server.stats") for _ in range(1000)]:
            self.assertIn("jobs_done", client.wait(msgid))


if __name__ == "__main__":
    main()

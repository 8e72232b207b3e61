#!/usr/bin/env python3
"""Clients that send slowly, or nothing.

test_daemon_slow.py SCAND [unittest's arguments]
"""

import time

from daemons import DaemonTest, main
from wire import TIMEOUT_S, Closed, Raw, pack

PING = pack([0, 7, "server.ping", [{}]])


class Patience(DaemonTest):
    """A message that has begun must end within 5 seconds, and hello come within 5. All clients wait at the same time."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ended = {}  # by client's name: after how many seconds it was disconnected
        cls.clients = {name: cls.daemon.client() for name in ("idle", "silent", "long", "short", "middle")}
        cls.clients |= {name: cls.daemon.client(greet=False) for name in ("quiet", "chatty")}
        for client in cls.clients.values():
            cls.addClassCleanup(client.close)
        cls.clients["silent"].send_bytes(PING + PING[:9])
        cls.clients["middle"].send_bytes(PING[:4])
        cls.send_until_they_end()

    @classmethod
    def send_until_they_end(cls):
        """For long enough, and until those have ended that have to; short messages take no longer where the test is slow."""
        begin = message_begin = now = time.monotonic()
        long, rest = cls.long_message()[:9], PING
        while now < begin + 6 or (not {"long", "chatty"} <= cls.ended.keys() and now < begin + TIMEOUT_S):
            time.sleep(0.15)
            some = len(rest) if time.monotonic() > message_begin + 3.5 else 1
            for name, data in (("short", rest[:some]), ("long", long), ("middle", PING[4:] + PING[:4]), ("chatty", PING)):
                cls.send(name, data, begin)
            now = time.monotonic()
            rest, long = rest[some:], b"\0"
            if not rest:
                rest, message_begin = PING, now

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
            if name == "chatty":
                cls.clients[name].receive()
        except (ConnectionError, Closed):
            cls.ended[name] = time.monotonic() - begin

    def test_half_a_message_then_silence(self):
        """The connection is closed, but what was asked before is answered."""
        client = self.clients["silent"]
        self.assertEqual(client.wait(7), {})
        self.assertTrue(client.is_closed())
        self.assertRegex(self.daemon.log_text(), "did not (say hello within|complete a message for) 5000 ms")

    def test_a_long_message_byte_by_byte(self):
        self.assertGreater(self.ended["long"], 4.5)

    def test_short_messages_byte_by_byte(self):
        self.assertNotIn("short", self.ended)

    def test_always_in_the_middle_of_a_message(self):
        """Whenever this client pauses the daemon has half a message, but never the same one for long."""
        self.assertNotIn("middle", self.ended)

    def test_idle_clients_stay(self):
        self.assertEqual(self.clients["idle"].call("server.ping"), {})

    def test_no_hello(self):
        """Neither silence nor other requests keep a connection that does not say who it is."""
        self.assertTrue(self.clients["quiet"].is_closed())
        self.assertGreater(self.ended["chatty"], 4.5)
        self.assertRegex(self.daemon.log_text(), "did not (say hello within|complete a message for) 5000 ms: disconnected")


if __name__ == "__main__":
    main()

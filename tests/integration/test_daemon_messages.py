#!/usr/bin/env python3
"""Messages that the protocol forbids, or that are wrong in some field: what is answered, whether the connection goes on,
and that a neighbour on the same daemon notices nothing.

    test_daemon_messages.py SCAND [unittest's arguments]
"""

import contextlib
import os
import select

from daemons import BACKEND, ON_CPU, Daemon, DaemonTest, main
from wire import Client, Closed, Failure, Pairs, Raw, pack, scan, tensor

HELLO = {"version_min": 1, "version_max": 1}
PING = pack([0, 7, "server.ping", [{}]])

WRONG_INTEGERS = [
    (1.0, "a floating-point number"),
    (True, "a boolean"),
    (None, "nil"),
    ("1", "text"),
    (b"1", "binary data"),
    ([1], "a list"),
    ({"a": 1}, "a map"),
]
WRONG_LISTS = [
    ("shape", 4, "an integer"),
    ("strides", {"a": 1}, "a map"),
    ("shape", [4, "x"], "text"),
    ("strides", [1.5], "a floating-point number"),
    ("shape", [], "0 items"),
    ("shape", [1] * 5, "5 items"),
    ("shape", [-1], "-1"),
    ("strides", [2**63], str(2**63)),
]


class Fields(DaemonTest):
    """Wrong arguments: an error that names the field, and the connection goes on."""

    def test_unknown_method(self):
        client = self.client()
        self.refused(client, "unknown_method", 'no method "server.pong"', "server.pong")
        self.refused(client, "unknown_method", 'no method "\\?\\?"', '\n"')
        self.refused(client, "unknown_method", 'no method "x{63}"', "x" * 1000)
        self.refused(client, "unknown_method", "job.progress", "job.progress", job=1, rows_done=1, rows=1)

    def test_missing_field(self):
        client = self.client()
        self.refused(client, "invalid", 'buffer.create: field "place" is missing', "buffer.create", size=1)
        job = scan(tensor(1, [4]))
        for name in ("input", "output", "axis"):  # "passes" belong to scans alone: test_daemon_reduce.py
            params = {key: value for key, value in job.items() if key != name}
            self.refused(client, "invalid", f'job.submit: field "{name}" is missing', "job.submit", params)
        for name in ("buffer", "dtype", "shape", "strides"):
            half = {key: value for key, value in tensor(1, [4]).items() if key != name}
            self.refused(
                client, "invalid", f'field "output.{name}" is missing', "job.submit", scan(tensor(1, [4]), half)
            )

    def test_no_params(self):
        client = self.client()
        client.send_bytes(pack([0, 3, "server.ping", []]))
        self.assertEqual(client.wait(3), {})
        client.send_bytes(pack([0, 4, "buffer.release", []]))
        self.fails(client, 4, "invalid", 'field "buffer" is missing')

    def test_duplicate_field(self):
        client = self.client()
        twice = Pairs([("size", 1), ("place", "host"), ("size", 2)])
        self.refused(client, "invalid", 'field "size" is there twice', "buffer.create", twice)
        inner = Pairs([*tensor(1, [4]).items(), ("buffer", 1)])
        self.refused(
            client, "invalid", 'field "input.buffer" is there twice', "job.submit", scan(inner, tensor(1, [4]), axis=0)
        )

    def test_unknown_fields_are_ignored(self):
        client = self.client()
        self.assertEqual(client.call("server.ping", colour={"deep": [1, {"x": None}]}, again=1.5), {})

    def test_wrong_types(self):
        client = self.client()
        for value, kind in WRONG_INTEGERS:
            with self.subTest(kind):
                message = f'buffer.create: field "size" is {kind}; expected: an integer'
                self.refused(client, "invalid", message, "buffer.create", size=value, place="host")
        for place, kind in ((1, "an integer"), (b"host", "binary data")):
            message = f'field "place" is {kind}; allowed: host, device'
            self.refused(client, "invalid", message, "buffer.create", size=1, place=place)
        self.refused(client, "invalid", 'field "buffer" is -1; allowed: 0 to', "buffer.release", buffer=-1)
        self.refused(client, "invalid", "name of a field is an integer", "buffer.release", {1: 2})

    def test_wrong_lists(self):
        client, whole = self.client(), tensor(1, [4])
        for name, value, kind in WRONG_LISTS:
            with self.subTest(name, value=value):
                job = scan({**whole, name: value}, whole, axis=0)
                self.refused(client, "invalid", f'"input.{name}(.\\d.)?" (is|has) {kind}', "job.submit", job)

    def test_unknown_words(self):
        client = self.client()
        whole = tensor(1, [4])
        message = self.refused(
            client,
            "invalid",
            '"input.dtype" is "f24"; allowed: f32, f64, f16',
            "job.submit",
            scan({**whole, "dtype": "f24"}, whole),
        )["message"]
        self.assertTrue(message.startswith("job.submit: "))
        for name, value in [("kind", "inclusiv"), ("op", "product"), ("accumulator", "f128"), ("intermediate", "")]:
            self.refused(
                client, "invalid", f'"{name}" is "{value}"; allowed: ', "job.submit", scan(whole, **{name: value})
            )
        self.refused(
            client,
            "invalid",
            r'"passes\[1\]" is "sideways"; allowed: forward, backward',
            "job.submit",
            scan(whole, passes=["forward", "sideways"]),
        )
        self.refused(
            client,
            "invalid",
            '"passes" has 3 items; allowed: 1 to 2',
            "job.submit",
            scan(whole, passes=["forward"] * 3),
        )
        self.refused(client, "invalid", '"progress" is 2; allowed: 0 to 1', "job.submit", scan(whole, progress=2))

    def test_versions(self):
        client = self.client(greet=False)
        for low, high in [(2, 9), (0, 0), (1, 0)]:
            self.refused(
                client,
                "version",
                f"versions {low} to {high} are offered; this daemon speaks 1 to 1",
                "hello",
                version_min=low,
                version_max=high,
            )
        self.refused(client, "invalid", '"version_max" is 4294967296', "hello", version_min=1, version_max=2**32)
        self.refused(
            client, "invalid", '"client" has 64 bytes; allowed: 0 to 63', "hello", {"client": "x" * 64, **HELLO}
        )
        self.refused(client, "invalid", '"client" contains a zero byte', "hello", {"client": "a\0b", **HELLO})
        self.assertEqual(client.call("hello", {"version_min": 0, "version_max": 99, "client": "x" * 63})["version"], 1)

    def test_before_hello(self):
        client = self.client(greet=False)
        methods = {
            "server.ping": {},
            "server.stats": {},
            "server.devices": {},
            "server.drain": {},
            "buffer.create": {"size": 1, "place": "host"},
            "buffer.release": {"buffer": 1},
            "job.cancel": {"job": 1},
            "job.submit": scan(tensor(1, [4])),
            "job.batch": {"jobs": [scan(tensor(1, [4]))]},
        }
        for method, params in methods.items():
            self.refused(client, "invalid", f"{method} came before hello", method, params)
        self.assertEqual(client.call("hello", **HELLO)["version"], 1)
        self.assertEqual(client.call("server.ping"), {})

    def test_greeting(self):
        greeting = self.client().greeting
        self.assertRegex(greeting["server"], r"^scand \d+\.\d+")
        self.assertEqual(
            greeting["limits"],
            {
                "message_bytes": 65536,
                "message_fds": 128,
                "host_buffer_bytes": 64 << 20,  # of the pool that tests have
                "client_buffers": 256,
                "client_jobs": 256,
                "row_samples": 1 << 33,
                "job_steps": 8,
                "batch_jobs": 32,
                "batch_steps": 1,
                "groups": 4,
                "file_chunk_bytes": 256 << 20,
                "ring_bytes": 64 << 10,
            },
        )
        self.assertEqual({device["backend"] for device in greeting["devices"]}, {BACKEND})

    def test_neighbours_ids_are_not_mine(self):
        client = self.client()
        self.refused(client, "not_found", 'buffer.release: "buffer" is 1; this connection', "buffer.release", buffer=1)
        self.refused(client, "not_found", '"input.buffer" is 1; this connection', "job.submit", scan(tensor(1, [4])))
        mine = client.create(16).buffer
        self.refused(
            client, "not_found", '"output.buffer" is 77', "job.submit", scan(tensor(mine, [4]), tensor(77, [4]))
        )
        self.refused(client, "not_found", "no such job", "job.cancel", job=12345)


class Envelopes(DaemonTest):
    """Messages that break the protocol: an error where the msgid can be told, and the connection is closed, after
    everything that was asked before has been answered."""

    def ends(self, data, name=None, message="", msgid=5):
        client = self.client()
        before = client.send("server.ping")
        with contextlib.suppress(ConnectionError):  # it may be refused before all of it has been sent
            client.send_bytes(data)
        self.assertEqual(client.wait(before), {})
        if name:
            self.fails(client, msgid, name, message)
        self.assertTrue(client.is_closed())

    def check(self, cases, name, msgid=5):
        for what, data, message in cases:
            with self.subTest(what):
                self.ends(data, name, message, msgid)

    def test_wrong_envelopes(self):
        self.check(
            [
                ("an integer", b"\x01", ""),
                ("an empty list", pack([]), ""),
                ("type 3", pack([3, 5, "server.ping", [{}]]), ""),
                ("msgid too large", pack([0, 2**32, "server.ping", [{}]]), ""),
                ("msgid negative", pack([0, -1, "server.ping", [{}]]), ""),
                ("msgid text", pack([0, "5", "server.ping", [{}]]), ""),
                ("notification", pack([2, "server.ping", [{}]]), ""),
                ("notification of progress", pack([2, "job.progress", [{"job": 1, "rows_done": 1, "rows": 1}]]), ""),
            ],
            None,
        )

    def test_wrong_envelopes_with_msgid(self):
        self.check(
            [
                ("three elements", pack([0, 5, "server.ping"]), "four elements"),
                ("five elements", pack([0, 5, "server.ping", [{}], 1]), "four elements"),
                ("method binary", pack([0, 5, b"server.ping", [{}]]), "method is not text"),
                ("params a map", pack([0, 5, "server.ping", {}]), "list of one map"),
                ("params of two", pack([0, 5, "server.ping", [{}, {}]]), "list of one map"),
                ("params a list in a list", pack([0, 5, "server.ping", [[1]]]), "list of one map"),
                ("response", pack([1, 5, None, {}]), "a client sends requests only"),
                (
                    "failed response",
                    pack([1, 5, {"code": 1, "name": "x", "message": "y"}, None]),
                    "a client sends requests only",
                ),
            ],
            "malformed",
        )

    def test_not_messagepack(self):
        self.check(
            [("the byte that is never used", b"\xc1", ""), ("extension", pack([0]) + b"\xc7\x01\x01x", "")], None
        )
        self.check(
            [
                ("extension inside", pack([0, 5, "server.ping", [{"x": Raw(b"\xd4\x01x")}]]), "protocol"),
                ("never used inside", pack([0, 5, "server.ping", [{"x": Raw(b"\xc1")}]]), "protocol"),
            ],
            "malformed",
        )

    def test_who_sends_none_is_logged(self):
        """In a line for all that follow within seconds."""
        with Daemon(*ON_CPU) as daemon:
            said = f"a client of user {os.getuid()} sent bytes or descriptors that are no message of the protocol: disconnected"
            for _ in range(5):
                with Client(daemon.socket) as client:
                    client.send_bytes(b"\xc1")
                    self.assertTrue(client.is_closed())
            self.assertEqual(daemon.log_text().count(said), 1)

    def test_nested_bombs(self):
        self.check(
            [("lists", b"\x91" * 70000, ""), ("maps", b"\x81\x01" * 10, ""), ("10 levels", b"\x91" * 9 + b"\x90", "")],
            None,
        )
        deep = 1
        for _ in range(7):
            deep = [deep]
        self.check([("7 levels in a map", pack([0, 5, "server.ping", [{"x": deep}]]), "protocol")], "malformed")
        client = self.client()
        self.assertEqual(client.call("server.ping", x=deep[0]), {})

    def test_too_large(self):
        self.check(
            [
                ("lists that claim 96 GB", b"\xdd\xff\xff\xff\xff", ""),
                ("maps", b"\xdf\xff\xff\xff\xff", ""),
                ("text of 4 GB", b"\xdb\xff\xff\xff\xff", ""),
                ("binary of 64 KiB", b"\xc6\x00\x01\x00\x00", ""),
                ("lists inside lists", b"\x92" + b"\xdd\x00\x00\xff\xff" * 2, ""),
            ],
            None,
        )
        self.check(
            [
                ("a field of 64 KiB", pack([0, 5, "server.ping", [{"x": bytes(65536)}]]), "larger than"),
                ("a list in a field", pack([0, 5, "x", [{"x": Raw(b"\xdd\xff\xff\xff\xff")}]]), "larger than"),
            ],
            "too_large",
        )

    def test_largest(self):
        client = self.client()
        frame = len(pack([0, 5, "server.ping", [{"x": Raw()}]])) + 3
        client.send_bytes(pack([0, 5, "server.ping", [{"x": bytes(65536 - frame)}]]))
        self.assertEqual(client.wait(5), {})
        self.ends(pack([0, 5, "server.ping", [{"x": bytes(65537 - frame)}]]), "too_large", "larger than")

    def test_nothing_asked_before_is_lost(self):
        """All in one write, so that the fault is found together with the requests before it, whose answers are more than
        the socket takes at once."""
        for fault in (b"\xc1", pack([2, "x", [{}]]), pack([1, 5, None, {}])):
            client = self.client()
            client.send_bytes(b"".join(pack([0, 1000 + i, "server.stats", [{}]]) for i in range(3000)) + fault)
            for i in range(3000):
                self.assertIn("jobs_done", client.wait(1000 + i))
            with self.assertRaises((Closed, Failure)):
                client.wait(5)

    def test_every_cut(self):
        """A request split in two at every byte."""
        client = self.client()
        data = pack([0, 300, "buffer.create", [{"size": "x" * 40, "place": "host"}]])
        for cut in range(1, len(data)):
            client.send_bytes(data[:cut])
            select.select([], [], [], 0.0005)
            client.send_bytes(data[cut:])
            self.fails(client, 300, "invalid", '"size" is text')

    def test_half_a_message_then_the_end(self):
        for cut in range(len(PING)):
            client = self.client()
            client.send_bytes(PING[:cut])
            client.close()
        self.settles()

    def test_noise(self):
        """Bytes that a good request turns into when one of them changes: any answer, but no harm."""
        data = pack([0, 5, "job.submit", [scan(tensor(1, [3, 4]), progress=1)]])
        for at in range(len(data)):
            client = self.client()
            client.send_bytes(data[:at] + bytes([data[at] ^ (0x80 if at % 2 else 0x11)]) + data[at + 1 :])
            client.close()
        self.settles()


if __name__ == "__main__":
    main()

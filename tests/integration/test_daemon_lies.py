#!/usr/bin/env python3
"""scanctl and libscand against a daemon that lies: between both is one that changes answers on their way.

test_daemon_lies.py SCAND [unittest's arguments]
"""

import os
import random
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from daemons import FAULTS, Daemon, main
from wire import Incomplete, Unpacker, pack

SCANCTL = os.environ.get("SCANCTL", "scanctl")
SEED = int(os.environ.get("TEST_SEED") or random.randrange(1 << 32))
RUNS = 150
PATIENCE_S = 10  # for one run; some lies have scanctl ask again, or wait for an answer that does not come
NUMBERS = (0, 1, 2, -1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), float("nan"), 1e308)
# Headers of what is longer than any message, deeper than it may be, or no MessagePack.
FOREIGN = (b"\xdf\x7f\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xc6\x80\x00\x00\x00", b"\xdb\xff\xff\xff\xff", b"\x91" * 40, b"\xc7\x01\x05x", b"\xc1")


def value(chance):
    """What is no number, too long, or not clean."""
    texts = ("x" * 63, "x" * 64, "x" * 5000, "%s%n", "\x1b[2J\r\n", "f64", "scan")
    return chance.choice((*NUMBERS, *texts, None, True, b"b" * 65, [0] * 300, {}))


def changed(given, chance, share):
    """An answer's result with other values, and lists of other lengths."""
    if isinstance(given, dict):
        kept = {key: changed(item, chance, share) for key, item in given.items() if chance.random() > share / 4}
        return kept | ({"more": value(chance)} if chance.random() < share / 4 else {})
    if isinstance(given, list):
        if given and chance.random() < share:
            return chance.choice(([], given * 2, given[:-1], given[:1], [value(chance)]))
        return [changed(item, chance, share) for item in given]
    return value(chance) if chance.random() < share else given


def descriptor(chance):
    """No memory, or memory that is too small, or could be taken away."""
    kind = chance.randrange(4)
    if kind == 0:
        return os.open("/dev/null", os.O_RDWR)
    if kind == 1:
        return os.open("/tmp", os.O_RDONLY)
    if kind == 2:
        return os.eventfd(0)
    fd = os.memfd_create("lie", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, chance.choice((1, 4096, 1 << 28)))
    return fd


def lie(message, data, fds, chance):
    """The bytes and descriptors that go on in place of these. Fewer bytes: the connection ends with them."""
    kind, at = chance.randrange(9), chance.randrange(len(data))
    if kind == 0:
        return data + data, fds
    if kind == 1:
        return data[:at], fds
    if kind == 2:
        return data[:at] + chance.choice(FOREIGN) + data[at:], fds
    if kind == 3:
        return data + chance.choice(FOREIGN), fds
    if kind == 4:
        progress = {"job": message[1], "rows_done": chance.choice((0, 2**64 - 1)), "rows": chance.choice((0, 1, 2**63))}
        return pack([2, "job.progress", [progress]]) * chance.choice((1, 200)) + data, fds
    if kind == 5:
        for fd in fds:
            os.close(fd)
        return data, [descriptor(chance) for _ in range(chance.choice((len(fds), len(fds) + 1, 70)))]
    share = chance.choice((0.03, 0.1, 0.3))
    return pack([*message[:2], *(part and changed(part, chance, share) for part in message[2:])]), fds


class Liar:
    """A socket whose connections lead to the daemon. Of its answers those after the first `honest` are lies at random."""

    def __init__(self, path, daemon, chance):
        self.daemon, self.chance = daemon, chance
        self.honest, self.share = chance.choice((0, 1, 1, 2, 4)), chance.choice((0.1, 0.3, 0.8))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:  # whose list grows until the first has ended
            thread.join()
        self.listener.close()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            daemon.connect(self.daemon)
            for run, ends in ((self.carry, (client, daemon)), (self.answer, (daemon, client))):
                self.threads.append(threading.Thread(target=self.until_the_end, args=(run, *ends)))
                self.threads[-1].start()

    @staticmethod
    def until_the_end(run, source, target):
        try:
            run(source, target)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def send(target, data, fds):
        try:
            sent = socket.send_fds(target, [data], fds) if fds and data else 0
            target.sendall(data[sent:])
        finally:
            for fd in fds:
                os.close(fd)

    def carry(self, client, daemon):
        while received := socket.recv_fds(client, 65536, 64):
            if not received[0]:
                return
            self.send(daemon, *received[:2])

    def answer(self, daemon, client):
        data, fds = b"", []
        while received := socket.recv_fds(daemon, 65536, 253):
            if not received[0]:
                return
            data, fds = data + received[0], fds + received[1]
            while data:
                unpacker = Unpacker(data)
                try:
                    message = unpacker.object()
                except Incomplete:
                    break
                whole, data = data[: unpacker.at], data[unpacker.at :]
                count = message[3].get("fds", 0) if message[0] == 1 and message[3] else 0
                own, fds = fds[:count], fds[count:]
                if not self.lies(message):
                    self.send(client, whole, own)
                    continue
                said, own = lie(message, whole, own, self.chance)
                self.send(client, said, own)
                if len(said) < len(whole) and whole.startswith(said):
                    return

    def lies(self, message):
        self.honest -= 1
        return self.honest < 0 and message[0] == 1 and self.chance.random() < self.share


class Lies(unittest.TestCase):
    def commands(self, folder):
        raw, npy = os.path.join(folder, "in.raw"), os.path.join(folder, "in.npy")
        with open(raw, "wb") as file:
            file.write(struct.pack("f", 1) * 30000)
        self.run_words(self.daemon.socket, "scan", raw, "--shape", "30,1000", "-o", npy)
        files = [["scan", raw, "--shape", "30,1000", "-o", os.path.join(folder, "out.raw")], ["reduce", "--op", "rms", npy]]
        files.append(["run", "scan forward,backward | scan backward op=max", npy, "-o", os.path.join(folder, "out.npy")])
        lists = [[word] for word in ("jobs", "clients", "users", "devices", "kernels", "operations", "stats")]
        return [*files, *files, *lists, *([*words, "--json"] for words in lists), ["top", "--once"], ["metrics"], ["trace"], ["ping"]]

    def run_words(self, path, *words):
        try:
            done = subprocess.run([SCANCTL, "--socket", path, *words], capture_output=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired as late:
            return None, late.stderr or b""
        return done.returncode, done.stderr

    def test_scanctl(self):
        """It may end in any error, but by no fault of its own, and shows no text as it came."""
        print(f"TEST_SEED={SEED}", flush=True)
        with Daemon("--device", "cpu") as self.daemon, tempfile.TemporaryDirectory() as folder:
            commands = self.commands(folder)
            for run in range(RUNS):
                chance = random.Random(SEED + run)
                words, path = chance.choice(commands), os.path.join(folder, f"socket{run}")
                liar = Liar(path, self.daemon.socket, chance)
                code, errors = self.run_words(path, *words)
                liar.close()
                with self.subTest(TEST_SEED=SEED + run, words=words):
                    self.assertTrue(code is None or 0 <= code < 128 or code == 130, errors)
                    self.assertNotRegex(errors.decode(errors="replace"), FAULTS)
                    self.assertNotIn(b"\x1b[2J", errors)


if __name__ == "__main__":
    main()

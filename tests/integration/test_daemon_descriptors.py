#!/usr/bin/env python3
"""Descriptors that come with messages and memory of the client's own: what is taken, what refused, and that none is kept.

test_daemon_descriptors.py SCAND [unittest's arguments]
"""

import contextlib
import fcntl
import os
import resource
import signal
import socket
import struct
import tempfile
import unittest

from daemons import DEVICE, ON_CPU, Daemon, DaemonTest, main
from stalled import Stalled
from wire import Failure, Raw, eventually, memfd, pack, pack_f32, scan, tensor, unpack_f32

LARGE = 16 << 20  # a segment of the pool, which has four of them
PING = pack([0, 7, "server.ping", [{}]])
PAGE = os.sysconf("SC_PAGESIZE")
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class DescriptorTest(DaemonTest):
    def setUp(self):
        self.open_before = self.open_fds()

    def tearDown(self):
        super().tearDown()
        self.doCleanups()
        self.settles()
        self.assertTrue(eventually(lambda: self.open_fds() <= self.open_before), self.daemon.log_text())

    def open_fds(self):
        return len(os.listdir(f"/proc/{self.worker}/fd"))

    def keep(self, fd):
        """A descriptor that is closed at the test's end."""
        self.addCleanup(os.close, fd)
        return fd

    def memfds(self, count, size=PAGE):
        return [self.keep(memfd(size)) for _ in range(count)]

    def ends(self, client, msgid, message):
        """The request is answered by an error of descriptors, and the connection is closed."""
        self.fails(client, msgid, "descriptor", message)
        self.assertTrue(client.is_closed())

    def no(self, fd, message, size=PAGE, fds=1, segment=0):
        """A fresh client may not import this, and goes on."""
        client = self.client()
        self.refused(
            client, "descriptor", message, "buffer.import", {"size": size, "fds": fds, "segment": segment}, [fd] * fds
        )
        with client.adopt(PAGE, PAGE).maps[0] as view:
            self.assertEqual(view[0], 0)


class Counts(DescriptorTest):
    """Descriptors announced and descriptors that came."""

    def test_not_announced(self):
        for method, params in [
            ("server.ping", {}),
            ("buffer.create", {"size": 1, "place": "host"}),
            ("server.pong", {}),
            ("buffer.release", {"buffer": "x"}),
        ]:
            client = self.client()
            msgid = client.send(method, params, self.memfds(1))
            if method == "server.pong":  # a later version may have a method with descriptors: they are dropped
                self.fails(client, msgid, "unknown_method", "no method")
                self.assertEqual(client.call("server.ping"), {})
            else:
                self.ends(client, msgid, "1 descriptors came with a message that announces 0")

    def test_not_announced_before_hello(self):
        client = self.client(greet=False)
        self.ends(client, client.send("server.ping", fds=self.memfds(3)), "3 descriptors came .* announces 0")

    def test_fewer_than_announced(self):
        client = self.client()
        for came in (0, 1, 2):
            self.refused(
                client,
                "descriptor",
                f"announces 3 descriptors, but {came} came",
                "buffer.import",
                {"size": 3 * PAGE, "segment": PAGE, "fds": 3},
                self.memfds(came),
            )
        self.refused(
            client, "descriptor", "announces 128 descriptors, but 0 came", "buffer.import", {"size": 1, "fds": 128}
        )
        client.adopt(3 * PAGE, PAGE)

    def test_more_than_announced(self):
        client = self.client()
        self.ends(
            client,
            client.send("buffer.import", {"size": 1, "fds": 1}, self.memfds(2)),
            "2 descriptors came .* announces 1",
        )

    def test_none_announced_by_an_import(self):
        client = self.client()
        self.refused(client, "descriptor", '"fds" is 0', "buffer.import", {"size": 1, "fds": 0})
        self.refused(client, "invalid", '"fds" is 129; allowed: 0 to 128', "buffer.import", {"size": 1, "fds": 129})

    def test_more_than_128(self):
        client = self.client()
        fds = self.memfds(1) * 129
        msgid = client.send("buffer.import", {"size": 129 * PAGE, "segment": PAGE, "fds": 128}, fds)
        with self.assertRaises(Exception) as caught:
            client.wait(msgid)
        self.assertRegex(str(caught.exception), "^$|descriptor")
        self.assertTrue(client.is_closed())

    def test_128(self):
        client = self.client()
        memory = client.adopt(128 * PAGE, PAGE)
        memory.write(pack_f32([1] * 32 * PAGE))
        client.call("job.submit", scan(tensor(memory.buffer, [32 * PAGE])))
        self.assertEqual(unpack_f32(memory.read())[-1], 32 * PAGE)

    def test_wrong_params_do_not_keep_descriptors(self):
        """Descriptors of a refused message are closed: the next import gets its own."""
        client = self.client()
        for params in (
            {"size": "x", "fds": 2},
            {"size": 1, "fds": "2"},
            {"fds": 2},
            {"size": 0, "fds": 2},
            {"size": 1 << 40, "fds": 2, "segment": PAGE},
        ):
            self.refused(client, "invalid", "buffer.import: ", "buffer.import", params, self.memfds(2))
        memory = client.adopt(PAGE, PAGE)
        memory.write(pack_f32([1, 1]))
        client.call("job.submit", scan(tensor(memory.buffer, [2])))
        self.assertEqual(memory.read(0, 8), pack_f32([1, 2]))

    def test_before_hello(self):
        client = self.client(greet=False)
        self.refused(client, "invalid", "before hello", "buffer.import", {"size": 1, "fds": 2}, self.memfds(2))
        self.assertEqual(client.call("hello", version_min=1, version_max=1)["version"], 1)

    def test_with_bytes_that_are_no_message(self):
        for data in (
            b"\xc1",
            b"\xdd\xff\xff\xff\xff",
            pack([2, "x", [{}]]),
            pack([0, 1, "buffer.import", [{"size": 1, "fds": 1}]])[:9],
        ):
            client = self.client()
            client.send_bytes(data, self.memfds(5))
            client.close()

    def test_half_a_message_with_descriptors_then_more(self):
        """Descriptors heap up behind a message that does not end: the connection is closed before they are many."""
        client = self.client()
        client.send_bytes(pack([0, 1, "buffer.import", [{"size": 1, "fds": 1, "x": Raw()}]])[:-1])
        with self.assertRaises(ConnectionError):
            for _ in range(100):
                client.send_bytes(b"\xc4", self.memfds(1) * 100)
                client.send_bytes(b"\0")
        self.assertLess(self.open_fds(), self.open_before + 300)

    def test_pipelined_imports(self):
        """Each message takes its own, in order, although all have come before the first is looked at."""
        client = self.client()
        sizes = [PAGE * i for i in (3, 1, 2, 5, 4)]
        msgids = [client.send("buffer.import", {"size": size, "fds": 1}, self.memfds(1, size)) for size in sizes]
        buffers = [client.wait(msgid)["buffer"] for msgid in msgids]
        for buffer, size in zip(buffers, sizes):
            client.call("job.submit", scan(tensor(buffer, [size // 4])))
            self.refused(
                client, "invalid", f"its buffer has {size}", "job.submit", scan(tensor(buffer, [size // 4 + 1]))
            )


class Held(DescriptorTest):
    """Memory whose file somebody writes to for as long as they like: sealing it, and giving it pages, have to wait."""

    def complete(self):
        """A memfd that is sealed and has its pages."""
        fd = self.keep(memfd(PAGE))
        os.pwrite(fd, bytes(PAGE), 0)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        return fd

    def test_imports_wait_and_nobody_else(self):
        stalled = Stalled()
        self.addCleanup(stalled.end)
        sealed = self.keep(memfd(PAGE))
        fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, SEALS)
        fds, client = [sealed, *self.memfds(5)], self.client()
        for fd in fds:
            stalled.write(fd)
        msgids = [client.send("buffer.import", {"size": PAGE, "fds": 1}, [fd]) for fd in fds]
        # What helpers do goes on, also what takes long.
        other = self.client()
        other.call("buffer.create", size=PAGE, place="device")
        other.call("buffer.create", size=1 << 20, place="host")
        other.call("buffer.import", {"size": PAGE, "fds": 1}, [self.complete()])
        stalled.end()
        for msgid in msgids:
            client.wait(msgid)

    @unittest.skipIf(os.getuid(), "another user is needed")
    def test_memory_of_the_pool(self):
        """What a user has released and still writes to becomes another's by new memory, which waits for nobody."""
        os.seteuid(12345)  # before there are threads, which this would wait for
        try:
            other = self.client()
        finally:
            os.seteuid(0)
        stalled = Stalled()
        self.addCleanup(stalled.end)
        client = self.client()
        made = [client.call("buffer.create", size=LARGE, place="host")["buffer"] for _ in range(3)]
        for fd in client.fds:
            stalled.write(fd)
        for buffer in made:
            client.call("buffer.release", buffer=buffer)
        for _ in range(3):
            other.call("buffer.create", size=LARGE, place="host")
        stalled.end()
        kept = client.fds
        self.assertTrue(eventually(lambda: sum(os.fstat(fd).st_blocks == 0 for fd in kept) >= 2))


class Lingering(DescriptorTest):
    """Descriptors whose last close takes as long as their sender likes: of a TCP socket with unsent bytes and SO_LINGER.
    Whatever becomes of them, the loop does not wait for that."""

    def lingering(self):
        """A socket whose last close waits until the test ends."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            out = socket.create_connection(server.getsockname())
            held, _ = server.accept()
        self.addCleanup(out.close)
        self.addCleanup(held.close)  # before
        out.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:
                out.send(bytes(1 << 16))
        out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
        return out

    def left_behind(self, connection, out, data=b"x", flags=0, count=1, worker=None, resumes=True):
        """The socket is in the connection alone from now on. The worker stands still, or this might be the last close."""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", out.fileno()) * count)
        os.kill(worker or self.worker, signal.SIGSTOP)
        connection.sendmsg([data], [rights], flags)  # send_fds ignores flags
        out.close()
        if resumes:
            os.kill(worker or self.worker, signal.SIGCONT)

    def test_too_many_at_once(self):
        client = self.client()
        out = self.lingering()
        self.left_behind(client.socket, out, b"\x94", count=200)
        self.assertTrue(client.is_closed())
        self.neighbour.call("server.ping")

    def test_left_in_the_socket(self):
        client, out = self.client(), self.lingering()
        client.socket.settimeout(1)
        with self.assertRaises(TimeoutError):  # answers that nobody reads
            while True:
                client.socket.sendall(PING * 100)
        client.socket.setblocking(False)
        while not self.is_sent(client, out):
            with contextlib.suppress(BlockingIOError):
                client.socket.recv(1 << 16)
        out.close()
        client.close()
        self.assertTrue(eventually(lambda: self.neighbour.call("server.stats")["clients_open"] == 1))

    def is_sent(self, client, out):
        try:
            return socket.send_fds(client.socket, [b"x"], [out.fileno()])
        except BlockingIOError:
            return 0

    def test_turned_away(self):
        """A connection beyond the quota, and beyond those that are told so, is closed with what waits in it."""
        out = self.lingering()
        with contextlib.ExitStack() as opened:
            daemon = opened.enter_context(Daemon(*ON_CPU, "--quota-connections", "1"))
            neighbour = opened.enter_context(daemon.client())
            connections = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(9)]
            for connection in connections[:-1]:
                connection.connect(daemon.socket)
            neighbour.call("server.ping")
            worker = daemon.worker()
            os.kill(worker, signal.SIGSTOP)
            connections[-1].connect(daemon.socket)
            socket.send_fds(connections[-1], [b"x"], [out.fileno()])
            out.close()
            os.kill(worker, signal.SIGCONT)
            neighbour.call("server.ping")
            self.assertTrue(eventually(lambda: "was turned away" in daemon.log_text()))
            neighbour.call("server.ping")
            self.doCleanups()

    def test_out_of_band(self):
        """A byte out of band is read as any other: the system would drop it with its descriptors, in the loop."""
        client, out = self.client(), self.lingering()
        self.left_behind(client.socket, out, flags=socket.MSG_OOB)
        self.assertTrue(client.is_closed())
        self.neighbour.call("server.ping")

    def test_out_of_band_of_one_who_has_left(self):
        out = self.lingering()
        os.kill(self.worker, signal.SIGSTOP)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.daemon.socket)
            self.left_behind(connection, out, flags=socket.MSG_OOB, resumes=False)
        os.kill(self.worker, signal.SIGCONT)
        self.neighbour.call("server.ping")
        with self.client() as client:
            client.call("server.ping")

    def test_turned_away_without_descriptors(self):
        """A connection for which there is no descriptor is closed with what waits in it, too."""
        out = self.lingering()
        most = resource.prlimit(self.worker, resource.RLIMIT_NOFILE)
        os.kill(self.worker, signal.SIGSTOP)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.daemon.socket)
            self.left_behind(connection, out, resumes=False)
            resource.prlimit(self.worker, resource.RLIMIT_NOFILE, (self.open_fds(), most[1]))
            os.kill(self.worker, signal.SIGCONT)
            self.assertTrue(eventually(lambda: "a connection was turned away" in self.daemon.log_text()))
            self.neighbour.call("server.ping")
            resource.prlimit(self.worker, resource.RLIMIT_NOFILE, most)
            self.doCleanups()

    def test_turned_away_many(self):
        """More connections than threads have room for, each with a descriptor that lingers."""
        with contextlib.ExitStack() as opened:
            daemon = opened.enter_context(Daemon(*ON_CPU, "--quota-connections", "1"))
            neighbour = opened.enter_context(daemon.client())
            worker = daemon.worker()
            for i in range(1100):
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(daemon.socket)
                    if i < 8 or i > 1090:
                        self.left_behind(connection, self.lingering(), worker=worker)
                    else:
                        connection.send(b"x")
            neighbour.call("server.ping")
            self.doCleanups()


class Kinds(DescriptorTest):
    """Descriptors of different kinds of files."""

    def test_unsealable(self):
        self.no(
            self.keep(memfd(PAGE, os.MFD_CLOEXEC)), "cannot be sealed; make it with memfd_create and MFD_ALLOW_SEALING"
        )

    def test_too_small(self):
        self.no(self.keep(memfd(PAGE - 1)), f"has {PAGE - 1} bytes; needed: {PAGE}")
        self.no(self.keep(memfd(0)), f"has 0 bytes; needed: {PAGE}")
        self.no(self.keep(memfd(PAGE)), f"has {PAGE} bytes; needed: {2 * PAGE}", 3 * PAGE, 2, 2 * PAGE)

    def test_sealed_against_writing(self):
        for seal in (fcntl.F_SEAL_WRITE, 0x10):  # 0x10: F_SEAL_FUTURE_WRITE
            fd = self.keep(memfd(PAGE))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seal)
            self.no(fd, "sealed against writing")

    def test_sealed_without_what_is_needed(self):
        fd = self.keep(memfd(PAGE))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.no(fd, "cannot be sealed")

    def test_read_only(self):
        fd = self.keep(memfd(PAGE))
        self.no(
            self.keep(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)), "not open for reading and writing|cannot be sealed"
        )

    def test_no_memfd(self):
        with tempfile.TemporaryFile() as file:
            file.truncate(PAGE)
            self.no(file.fileno(), "no memfd")
        for fd in (*os.pipe(), os.open("/dev/zero", os.O_RDWR), os.open("/", os.O_PATH), os.open("/", os.O_RDONLY)):
            self.no(self.keep(fd), "no memfd")
        with socket.socket(socket.AF_UNIX) as other:
            self.no(other.fileno(), "no memfd")

    def test_one_bad_of_several(self):
        client = self.client()
        fds = [*self.memfds(2), self.keep(memfd(PAGE, os.MFD_CLOEXEC))]
        self.refused(
            client,
            "descriptor",
            "cannot be sealed",
            "buffer.import",
            {"size": 3 * PAGE, "segment": PAGE, "fds": 3},
            fds,
        )

    def test_seals_are_added(self):
        client = self.client()
        fd = self.memfds(1, 2 * PAGE)[0]
        buffer = client.call("buffer.import", {"size": PAGE, "fds": 1}, [fd])["buffer"]
        self.assertEqual(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS, SEALS)
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, 0)
        client.call("buffer.release", buffer=buffer)
        again = client.call("buffer.import", {"size": 2 * PAGE, "fds": 1}, [fd])["buffer"]
        self.assertNotEqual(again, buffer)

    def test_sizes(self):
        client = self.client()
        for size, segment, fds, message in [
            (3 * PAGE, PAGE, 2, "2 descriptors of 4096 bytes do not make 12288 bytes"),
            (PAGE, PAGE, 2, "every descriptor must be needed"),
            (2 * PAGE, PAGE + 1, 2, '"segment" is 4097 bytes; allowed'),
            (2 * PAGE, 0, 2, '"segment" is 0 bytes'),
            (PAGE, 1 << 60, 1, '"segment" is 1152921504606846976 bytes'),
            (2**64 - 1, 0, 1, '"size" is 18446744073709551615'),
            (2 * PAGE, 2**63, 2, '"segment" is 9223372036854775808'),
        ]:
            message = message.replace("4096", str(PAGE)).replace("4097", str(PAGE + 1)).replace("12288", str(3 * PAGE))
            self.refused(
                client,
                "invalid",
                message,
                "buffer.import",
                {"size": size, "segment": segment, "fds": fds},
                self.memfds(fds),
            )

    def test_received_segments_are_sealed(self):
        client = self.client()
        made = client.call("buffer.create", size=100000, place="host")
        self.assertEqual((made["fds"], len(client.fds)), (1, 1))
        self.assertEqual(fcntl.fcntl(client.fds[0], fcntl.F_GET_SEALS) & SEALS, SEALS)
        with self.assertRaises(PermissionError):
            os.ftruncate(client.fds[0], 0)

    def test_imported_memory_outlives_its_release(self):
        client = self.client()
        memory = client.adopt(2 * PAGE, PAGE)
        memory.write(b"kept" * 2048)
        client.call("buffer.release", buffer=memory.buffer)
        self.assertEqual(memory.read(), b"kept" * 2048)
        with self.assertRaises(Failure):
            client.call("buffer.release", buffer=memory.buffer)


class Sparse(DescriptorTest):
    """Memory without pages that is larger than what the machine has: the worker must not make any of them."""

    options = ("--quota-host-memory", "1024G")

    def test_larger_than_memory(self):
        size = 500 << 30
        fds = self.memfds(2, size // 2)
        message = rf"buffer.import: {size} bytes of the memory have no pages yet, and [0-9]+ can be made \(.*memory.*\)"
        client = self.client()
        params = {"size": size, "segment": size // 2, "fds": 2}
        self.refused(client, "no_memory", message, "buffer.import", params, fds)
        self.assertEqual([os.fstat(fd).st_blocks for fd in fds], [0, 0])


class Maps(DescriptorTest):
    """Imports of as many small memfds as go: the process must keep memory maps for everybody's jobs."""

    def test_small_memfds(self):
        with open("/proc/sys/vm/max_map_count") as most:
            maps_most = int(most.read())
        if maps_most > 1 << 18:
            self.skipTest(f"vm.max_map_count is {maps_most}: more than these imports take")
        imports = 0
        with self.assertRaises(Failure) as caught:
            while imports * 128 < maps_most:
                client = self.client()
                for _ in range(200):
                    fds = [memfd(PAGE) for _ in range(128)]
                    try:
                        client.call("buffer.import", {"size": 128 * PAGE, "segment": PAGE, "fds": 128}, fds)
                    finally:
                        for fd in fds:
                            os.close(fd)
                    imports += 1
        error = caught.exception.error
        self.assertEqual(error["name"], "quota")
        self.assertRegex(error["message"], "its 128 descriptors take as many memory maps; .* raise vm.max_map_count")
        with open(f"/proc/{self.worker}/maps") as maps:
            self.assertLess(sum(1 for _ in maps), maps_most * 5 // 8)


class DeviceMemory(DescriptorTest):
    """Device memory of other processes. Which is none, as far as these tests go: tests/gpu has the real ones."""

    def test_what_is_none(self):
        client = self.client()
        on_gpu = not DEVICE.startswith("cpu")
        handle = {"size": PAGE, "handle": bytes(range(64))}
        self.refused(
            client,
            "invalid" if on_gpu else "unsupported",
            "CUDA does not open the handle" if on_gpu else "opens no GPU memory",
            "buffer.import_device",
            handle,
        )
        for size in (PAGE, 2 << 20):
            self.refused(
                client,
                "descriptor" if on_gpu else "unsupported",
                "CUDA does not import the descriptor" if on_gpu else "opens no GPU memory",
                "buffer.import_device",
                {"size": size, "fds": 1},
                self.memfds(1),
            )

    def test_params(self):
        client = self.client()
        for params, fds, message in [
            ({"size": PAGE}, 0, 'neither "handle" and a descriptor'),
            ({"size": PAGE, "handle": bytes(64), "fds": 1}, 1, 'both "handle" and a descriptor'),
            ({"size": PAGE, "handle": bytes(63)}, 0, '"handle" has 63 bytes; allowed: the 64'),
            ({"size": PAGE, "handle": "x" * 64}, 0, "is text; expected: binary data"),
            ({"size": PAGE, "handle": bytes(65)}, 0, "has 65 bytes; allowed: 1 to 64"),
            ({"size": 0, "handle": bytes(64)}, 0, '"size" is 0 bytes'),
            ({"size": PAGE, "handle": bytes(64), "offset": 2**64 - 1}, 0, '"offset" is 18446744073709551615'),
            ({"size": PAGE, "offset": 1, "allocation": PAGE, "fds": 1}, 1, 'end behind the "allocation"'),
        ]:
            self.refused(client, "invalid", message, "buffer.import_device", params, self.memfds(fds))

    def test_exports(self):
        client = self.client()
        plain = client.call("buffer.create", size=PAGE, place="device")["buffer"]
        self.refused(client, "invalid", "was not made to be shared", "buffer.export", buffer=plain)
        self.refused(client, "not_found", "no such buffer", "buffer.export", buffer=plain + 1)
        self.refused(client, "invalid", 'for "place" "device"', "buffer.create", size=1, place="host", sharing="handle")
        if DEVICE.startswith("cpu"):
            self.refused(
                client, "unsupported", "cannot share memory so", "buffer.create", size=1, place="device", sharing="handle"
            )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Files that jobs read: on disk, in /dev/shm, memfds sealed against writing, read-only descriptors; files that shrink.

test_daemon_files.py SCAND [unittest's arguments]
"""

import array
import fcntl
import itertools
import os
import random
import socket
import tempfile
import threading
import time

from daemons import ON_CPU, Daemon, DaemonTest, main
from wire import Failure, eventually, memfd, pack_f32, scan, tensor, unpack_f32

ROW = 1000  # samples
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | 0x0008  # and F_SEAL_WRITE


def values(rows, seed=1):
    """Small whole numbers, whose sums are exact."""
    drawn = random.Random(seed)
    return [float(drawn.randrange(-9, 10)) for _ in range(rows * ROW)]


def sums(samples):
    """Returns the sums of each row, forward."""
    rows = (samples[at : at + ROW] for at in range(0, len(samples), ROW))
    return [value for row in rows for value in itertools.accumulate(row)]


class FileTest(DaemonTest):
    def temporary(self, folder, data):
        """A file's descriptor for reading and writing, and its path."""
        fd, path = tempfile.mkstemp(dir=folder)
        self.addCleanup(os.close, fd)
        self.addCleanup(os.unlink, path)
        os.pwrite(fd, data, 0)
        return fd, path

    def open_files(self):
        """Paths of what the daemon has open."""
        found, folder = [], f"/proc/{self.worker}/fd"
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(os.path.join(folder, name)))
            except OSError:  # closed meanwhile
                pass
        return found

    def load(self, client, fd, size):
        return client.call("buffer.import_file", {"size": size, "fds": 1}, [fd])["buffer"]

    def submit(self, client, buffer, rows, output=None, **more):
        output = output or client.create(rows * ROW * 4)
        params = scan(tensor(buffer, [rows, ROW]), tensor(output.buffer, [rows, ROW]), **more)
        return client.send("job.submit", params), output

    def scans(self, fd, samples):
        """The file's rows come back as their sums."""
        client, rows = self.client(), len(samples) // ROW
        msgid, output = self.submit(client, self.load(client, fd, rows * ROW * 4), rows)
        client.wait(msgid)
        self.assertTrue(output.read() == pack_f32(sums(samples)))


class Kinds(FileTest):
    def test_on_disk(self):
        samples = values(2000)
        self.scans(self.temporary(None, pack_f32(samples))[0], samples)

    def test_in_shared_memory(self):
        samples = values(30)
        self.scans(self.temporary("/dev/shm", pack_f32(samples))[0], samples)

    def test_read_only_descriptor(self):
        samples = values(30)
        _, path = self.temporary(None, pack_f32(samples))
        fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.scans(fd, samples)

    def test_sealed_against_writing(self):
        samples = values(30)
        fd = memfd(len(samples) * 4)
        self.addCleanup(os.close, fd)
        os.pwrite(fd, pack_f32(samples), 0)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        self.scans(fd, samples)

    def test_without_sealing(self):
        samples = values(1)
        fd = memfd(len(samples) * 4, os.MFD_CLOEXEC)
        self.addCleanup(os.close, fd)
        os.pwrite(fd, pack_f32(samples), 0)
        self.scans(fd, samples)

    def test_closed_and_unlinked(self):
        """The daemon has a descriptor of its own."""
        samples, client = values(30), self.client()
        with tempfile.TemporaryFile() as file:
            file.write(pack_f32(samples))
            file.flush()
            buffer = self.load(client, file.fileno(), len(samples) * 4)
        msgid, output = self.submit(client, buffer, 30)
        client.wait(msgid)
        self.assertTrue(output.read() == pack_f32(sums(samples)))

    def test_sparse(self):
        """Holes are zeros, whatever their size."""
        client = self.client()
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), 1 << 40)
            os.pwrite(file.fileno(), pack_f32([1.0] * ROW), (1 << 40) - ROW * 4)
            buffer = self.load(client, file.fileno(), 1 << 40)
        output = client.create(ROW * 4)
        tail = tensor(buffer, [1, ROW], offset=(1 << 40) - ROW * 4)
        client.call("job.submit", scan(tail, tensor(output.buffer, [1, ROW])))
        self.assertEqual(unpack_f32(output.read()), list(range(1, ROW + 1)))


class Layouts(FileTest):
    """Whatever a job can do with memory that is not pinned."""

    def setUp(self):
        self.samples = values(600, seed=7)
        self.fd, _ = self.temporary(None, pack_f32(self.samples))

    def both(self, method, params, size):
        """Checks that a job on the file has the same bytes as the same job on memory."""
        client, results = self.client(), []
        memory, output = client.create(len(self.samples) * 4), client.create(size)
        memory.write(pack_f32(self.samples))
        for buffer in (memory.buffer, self.load(client, self.fd, len(self.samples) * 4)):
            output.write(bytes(size))
            client.call(method, params(client, buffer, output.buffer))
            results.append(output.read())
        self.assertTrue(results[0] == results[1])
        self.assertTrue(any(results[0]))

    def test_between_headers(self):
        """Rows between which there is something else, big-endian."""
        strides = [ROW * 4, 4]
        self.both(
            "job.submit",
            lambda client, file, out: scan(
                tensor(file, [600, 900], strides, "f32be", 240), tensor(out, [600, 900]), passes=["forward", "backward"]
            ),
            600 * 900 * 4,
        )

    def test_columns(self):
        self.both(
            "job.submit",
            lambda client, file, out: scan(tensor(file, [600, ROW]), tensor(out, [600, ROW]), axis=0),
            600 * ROW * 4,
        )

    def test_rows_and_columns_with_gaps(self):
        """The daemon reads no more than it needs of rows and columns with gaps."""
        for shape, strides, axis in (([600, 20], [4000, 4], 1), ([600, 20], [4000, 4], 0), ([20, 1000], [120000, 4], 1), ([5, 20, 30], [400000, 4000, 4], 1)):
            count = shape[0] * shape[1] * (shape[2] if len(shape) > 2 else 1)
            before = self.neighbour.call("server.stats").get("file_read_bytes", 0)
            self.both(
                "job.submit",
                lambda client, file, out: scan(tensor(file, shape, strides, offset=80), tensor(out, shape), axis=axis, passes=["forward", "backward"]),
                count * 4,
            )
            read = self.neighbour.call("server.stats")["file_read_bytes"] - before
            self.assertLess(read, (count * 4 if len(shape) == 2 else 2000000) + 1)

    def test_columns_of_a_large_file(self):
        """A hundred columns of a sparse terabyte."""
        client = self.client()
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), 1 << 40)
            for row in range(512):
                os.pwrite(file.fileno(), pack_f32([float(row)] * 100), row << 31)
            buffer = self.load(client, file.fileno(), 1 << 40)
        output = client.create(512 * 400)
        columns = tensor(buffer, [512, 100], [1 << 31, 4])
        client.call("job.submit", scan(columns, tensor(output.buffer, [512, 100]), axis=0))
        sums = list(itertools.accumulate(range(512)))
        self.assertTrue(unpack_f32(output.read()) == [float(value) for value in sums for _ in range(100)])

    def test_backwards(self):
        end = (600 * ROW - 1) * 4
        self.both(
            "job.submit",
            lambda client, file, out: scan(
                tensor(file, [600, ROW], [-ROW * 4, -4], offset=end), tensor(out, [600, ROW])
            ),
            600 * ROW * 4,
        )

    def test_reductions(self):
        self.both(
            "job.run",
            lambda client, file, out: {
                "input": tensor(file, [600, ROW]),
                "output": tensor(out, [600, 1], dtype="f64"),
                "axis": 1,
                "steps": [{"operation": "reduce", "reduction": "rms"}],
            },
            600 * 8,
        )

    def test_steps_with_operands(self):
        """The input, another operand and a filter, all in the file."""
        self.both(
            "job.run",
            lambda client, file, out: {
                "input": tensor(file, [300, ROW]),
                "output": tensor(out, [300, ROW]),
                "axis": 1,
                "steps": [
                    {"operation": "map", "op": "mul", "other": tensor(file, [300, ROW], offset=300 * ROW * 4)},
                    {"operation": "convolve", "filter": tensor(file, [9], offset=4000), "mode": "same"},
                    {"operation": "scan", "passes": ["forward"]},
                ],
            },
            300 * ROW * 4,
        )

    def test_ragged_rows(self):
        def params(client, file, out):
            offsets = client.create(8 * 101)
            starts = sorted(random.Random(3).sample(range(600 * ROW), 101))
            offsets.write(array.array("Q", starts).tobytes())
            line = [600 * ROW]
            return scan(
                tensor(file, line), tensor(out, line), offsets=tensor(offsets.buffer, [101], dtype="u64")
            )

        self.both("job.submit", params, 600 * ROW * 4)

    def test_one_long_row(self):
        self.both(
            "job.submit",
            lambda client, file, out: scan(tensor(file, [600 * ROW]), tensor(out, [600 * ROW])),
            600 * ROW * 4,
        )


class Refused(FileTest):
    def no(self, fd, words, size=4):
        self.refused(self.client(), "descriptor", words, "buffer.import_file", {"size": size, "fds": 1}, [fd])

    def test_what_is_no_file(self):
        reading, writing = os.pipe()
        one, two = socket.socketpair()
        with one, two:
            self.no(one.fileno(), "that of a socket")
        self.no(reading, "that of a pipe; allowed: a regular file, or a memfd")
        self.no(writing, "not open for reading")
        for fd in (reading, writing):
            os.close(fd)
        for path, words in [("/tmp", "a directory"), ("/dev/zero", "a character device"), ("/proc/self/maps", "0 bytes")]:
            fd = os.open(path, os.O_RDONLY)
            self.no(fd, words)
            os.close(fd)

    def test_a_fifo(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fifo")
            os.mkfifo(path)
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self.no(fd, "that of a pipe")
            os.close(fd)

    def test_beyond_its_end(self):
        fd, _ = self.temporary(None, b"12345")
        self.no(fd, '"size" is 6, but the file has 5 bytes', 6)

    def test_as_output(self):
        client = self.client()
        fd, _ = self.temporary(None, bytes(8000))
        buffer = self.load(client, fd, 8000)
        self.refused(
            client,
            "invalid",
            f'"output.buffer" is {buffer}, a file .buffer.import_file., which is only read',
            "job.submit",
            scan(tensor(buffer, [2, ROW])),
        )
        self.assertEqual(os.pread(fd, 8000, 0), bytes(8000))


class Shrinking(FileTest):
    def test_before_the_job(self):
        client = self.client()
        fd, _ = self.temporary(None, pack_f32(values(100)))
        buffer = self.load(client, fd, 100 * ROW * 4)
        os.ftruncate(fd, 50 * ROW * 4 + 1)
        msgid, _ = self.submit(client, buffer, 100)
        self.fails(client, msgid, "descriptor", f"the file of buffer {buffer} ended at byte 200001")
        msgid, output = self.submit(client, buffer, 50)
        client.wait(msgid)
        self.assertTrue(output.read(0, 50 * ROW * 4) == pack_f32(sums(values(100)[: 50 * ROW])))

    def test_while_jobs_run(self):
        """Over and over, beside a neighbour whose bits stay right. Each job is done or says what became of its file."""
        for folder in (None, "/dev/shm"):
            client, fd = self.client(), self.temporary(folder, pack_f32(values(2000)))[0]
            buffer, size, over = self.load(client, fd, 2000 * ROW * 4), 2000 * ROW * 4, threading.Event()

            def shrink():
                while not over.is_set():
                    os.ftruncate(fd, 1000)
                    time.sleep(0.001)
                    os.ftruncate(fd, size)
                    time.sleep(0.01)

            thread = threading.Thread(target=shrink)
            thread.start()
            jobs, ended, output = 0, 0, client.create(size)
            while jobs < 30 or (not ended and jobs < 3000):
                jobs += 1
                msgid, _ = self.submit(client, buffer, 2000, output)
                try:
                    client.wait(msgid)
                except Failure as failure:
                    self.assertRegex(str(failure), "ended at byte")
                    ended += 1
                self.memory.write(pack_f32([1] * 100))
                self.neighbour.call("job.submit", scan(tensor(self.memory.buffer, [100])))
                self.assertEqual(unpack_f32(self.memory.read(0, 400)), list(range(1, 101)))
            over.set()
            thread.join()
            self.assertGreater(ended, 0)

    def test_a_client_goes_meanwhile(self):
        fd, path = self.temporary(None, pack_f32(values(2000)))
        for _ in range(10):
            client = self.client()
            self.submit(client, self.load(client, fd, 2000 * ROW * 4), 2000)
            client.close()
        self.assertTrue(eventually(lambda: path not in self.open_files()))
        self.settles()


class Quotas(FileTest):
    def test_buffers_of_a_connection(self):
        client = self.client()
        fd, _ = self.temporary(None, b"1234")
        for _ in range(256):
            self.load(client, fd, 4)
        self.refused(
            client, "quota", "this connection has 256 buffers", "buffer.import_file", {"size": 4, "fds": 1}, [fd]
        )

    def test_files_are_no_memory(self):
        client = self.client()
        before = client.call("server.stats")
        fd, _ = self.temporary(None, b"1234")
        self.load(client, fd, 4)
        client.create(4096)
        (row,) = [row for row in client.call("server.clients")["clients"] if row["buffers"] == 2]
        self.assertEqual((row["host_bytes"], row["device_bytes"]), (4096, 0))
        after = client.call("server.stats")
        self.assertEqual(after["host_bytes"] - before["host_bytes"], 4096)
        self.assertEqual(after["file_bytes"] - before.get("file_bytes", 0), 4)

    def test_files_of_a_user(self):
        fd, _ = self.temporary(None, b"1234")
        clients = [self.client() for _ in range(9)]
        with self.assertRaises(Failure) as caught:
            for client in clients:
                for _ in range(256):
                    self.load(client, fd, 4)
        self.assertRegex(str(caught.exception), "files open in buffers and may have ")


class FewDescriptors(FileTest):
    """Tests of a daemon that may open few files: some are left for everything else."""

    def test_others_have_some(self):
        with Daemon(*ON_CPU, files=400) as daemon, daemon.client() as client, tempfile.TemporaryFile() as file:
            file.write(b"1234")
            file.flush()
            with self.assertRaises(Failure) as caught:
                for _ in range(400):
                    self.load(client, file.fileno(), 4)
            self.assertRegex(str(caught.exception), r"has (\d+) files open in buffers and may have \1 of [1-4]\d,")
            with daemon.client() as other:
                memory = other.adopt(8 * 4096, 4096)
                other.call("job.submit", scan(tensor(memory.buffer, [1000])))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Files that jobs read where they are: paths, descriptors, shared memory of multiprocessing, SEG-Y; and what is refused."""

import fcntl
import gc
import os
import tempfile
from multiprocessing import shared_memory

import numpy as np

import scand
import scand.segy
from rig import SEED, PackageTest, main, whole_numbers
from scand import files

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | 0x0008  # and F_SEAL_WRITE


class FileTest(PackageTest):
    def setUp(self):
        self.x = whole_numbers((300, 1000), np.float32)
        handle, self.path = tempfile.mkstemp()
        self.addCleanup(os.unlink, self.path)
        with os.fdopen(handle, "wb") as file:
            file.write(self.x.tobytes())

    def tearDown(self):
        gc.collect()

    def read_bytes(self):
        """The number of bytes that the daemon has read of files."""
        with self.daemon.client() as client:
            return client.call("server.stats").get("file_read_bytes", 0)


class Files(FileTest):
    def test_a_path(self):
        x = scand.open_file(self.path, np.float32, (-1, 1000))
        self.assertEqual((x.shape, x.flags.writeable, scand.is_shared(x)), ((300, 1000), False, False))
        before = self.read_bytes()
        self.same(scand.cumsum(x, dtype="f4"), np.cumsum(self.x, -1, dtype="f4"))
        self.assertEqual(self.read_bytes() - before, x.nbytes)
        self.same(scand.reduce(x, "max"), self.x.max(-1))

    def test_views(self):
        x = scand.open_file(self.path, np.float32, (300, 1000))
        for slices in (np.s_[10:20], np.s_[::-1, ::-3], np.s_[5], np.s_[:, :7], np.s_[200:]):
            before = self.read_bytes()
            self.same(scand.cumsum(x[slices], dtype="f4"), np.cumsum(self.x[slices], -1, dtype="f4"))
            self.assertGreater(self.read_bytes(), before)
        self.same(scand.cumsum(x.T, dtype="f4"), np.cumsum(self.x.T, -1, dtype="f4"))
        self.same(scand.cumsum(x, axis=0, dtype="f4"), np.cumsum(self.x, 0, dtype="f4"))

    def test_no_copy_is_made(self):
        x = scand.open_file(self.path, shape=(300, 1000))
        scand.scan(x, copy=False)
        out = scand.empty(x.shape, x.dtype)
        self.assertIs(scand.scan(x, out=out, copy=False), out)
        self.same(out, np.cumsum(self.x, -1))
        ordinary = np.empty_like(self.x)
        scand.scan(x, out=ordinary)
        self.same(ordinary, out)

    def test_small_jobs_read_it_anew(self):
        """Small jobs read the file anew, also those that are like earlier ones on ordinary arrays."""
        x = scand.open_file(self.path, np.float32, 1000)
        for value in range(3):
            scand.cumsum(np.ones(1000, np.float32))
            with open(self.path, "r+b") as file:
                file.write(np.full(1000, value, np.float32).tobytes())
            before = self.read_bytes()
            self.same(scand.cumsum(x), np.cumsum(np.full(1000, value, np.float32)))
            self.assertEqual(self.read_bytes() - before, 4000)

    def test_other_dtypes(self):
        for dtype in (">f4", "f8", "i2", "c8"):
            self.x.astype(dtype).tofile(self.path)
            x = scand.open_file(self.path, dtype, (-1, 1000))
            np.testing.assert_array_equal(scand.cumsum(x), np.cumsum(self.x.astype(dtype), -1))

    def test_small_integers_are_converted_by_jobs(self):
        whole = np.random.default_rng(SEED).integers(-30000, 30000, (300, 1000), "i2")
        whole.tofile(self.path)
        x = scand.open_file(self.path, "i2", whole.shape)
        before = self.read_bytes()
        self.same(scand.cumsum(x, copy=False), np.cumsum(whole, -1))
        self.same(scand.cumsum(x), np.cumsum(whole, -1))
        self.assertEqual(self.read_bytes() - before, 2 * whole.nbytes)

    def test_offsets(self):
        x = scand.open_file(self.path, np.float32, (2, -1), 4000 * 298)
        self.same(scand.cumsum(x, dtype="f4"), np.cumsum(self.x[298:], -1, dtype="f4"))

    def test_descriptors(self):
        with open(self.path, "rb") as file:
            for given in (file, file.fileno()):
                x = scand.open_file(given)
                self.same(scand.cumsum(x[:1000], dtype="f4"), np.cumsum(self.x[0], dtype="f4"))
        self.same(scand.cumsum(x[:1000], dtype="f4"), np.cumsum(self.x[0], dtype="f4"))

    def test_sealed_memory(self):
        descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, descriptor)
        os.write(descriptor, self.x.tobytes())
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        x = scand.open_file(descriptor, np.float32, self.x.shape)
        self.same(scand.cumsum(x, dtype="f4"), np.cumsum(self.x, -1, dtype="f4"))

    def test_shared_memory_of_multiprocessing(self):
        memory = shared_memory.SharedMemory(create=True, size=self.x.nbytes)
        self.addCleanup(memory.unlink)
        self.addCleanup(memory.close)
        memory.buf[: self.x.nbytes] = self.x.tobytes()
        x = scand.open_file(memory, np.float32, self.x.shape)
        before = self.read_bytes()
        self.same(scand.cumsum(x, dtype="f4"), np.cumsum(self.x, -1, dtype="f4"))
        self.assertEqual(self.read_bytes() - before, x.nbytes)

    def test_nothing_is_left(self):
        def own():
            return len(os.listdir("/proc/self/fd"))

        scand.cumsum(scand.open_file(self.path))
        gc.collect()
        before = own()
        for _ in range(300):
            scand.cumsum(scand.open_file(self.path)[:10])
        gc.collect()
        self.assertLessEqual(own(), before)
        self.assertEqual(files._files._blocks, ())


class Refused(FileTest):
    def test_arguments(self):
        for arguments, text in (
            (("f4", (301, 1000)), "is longer than the 1200000 bytes"),
            (("f4", (-1, 999)), "are not a whole number of 3996 bytes"),
            (("f4", (-1, -1)), "one may be -1"),
            (("f4", (-2,)), "extents below 0"),
            (("f4", None, 1200000), "the file has 1200000 bytes"),
            (("f4", None, -4), "it is -4"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                scand.open_file(self.path, *arguments)
        with self.assertRaises(FileNotFoundError):
            scand.open_file(self.path + "x")
        with self.assertRaisesRegex(IsADirectoryError, "file: it is a directory; give a file"):
            scand.open_file(os.path.dirname(self.path))
        with open("/dev/zero", "rb") as zeros, self.assertRaisesRegex(ValueError, "is a pipe, a socket or a device; copy"):
            scand.open_file(zeros)
        with self.assertRaises(TypeError):
            scand.open_file(self.path, object)
        with tempfile.NamedTemporaryFile() as empty, self.assertRaisesRegex(ValueError, "has 0 bytes"):
            scand.open_file(empty.name)

    def test_as_output(self):
        x = scand.open_file(self.path)
        with self.assertRaisesRegex(ValueError, "read-only"):
            scand.scan(x, out=x)

    def test_a_file_that_has_become_shorter(self):
        x = scand.open_file(self.path, np.float32, (300, 1000))
        scand.cumsum(x)
        os.truncate(self.path, 4000 * 100)
        for expected in (scand.FileError, OSError):
            with self.assertRaisesRegex(expected, "ended at byte 400000, and had 1200000 bytes"):
                scand.cumsum(x)
        self.same(scand.cumsum(x[:100], dtype="f4"), np.cumsum(self.x[:100], -1, dtype="f4"))

    def test_rows_that_are_too_long(self):
        os.truncate(self.path, 1 << 30)
        x = scand.open_file(self.path, np.float32, (2, -1))
        with self.assertRaisesRegex(scand.InvalidError, "copy the file, or parts of it"):
            scand.reduce(x, "sum")
        columns = x.reshape(1 << 14, -1)[:, :10]
        self.same(scand.reduce(columns, "sum", axis=0), columns.sum(0, dtype="f8").astype("f4"))


class SegY(PackageTest):
    def test_open_is_read(self):
        """Samples are read in place between headers, IBM floats, too."""
        from test_neighbours import segy_file

        for code in (5, 1, 3):
            with tempfile.NamedTemporaryFile() as file:
                file.write(segy_file(code=code, samples=500, traces=20))
                file.flush()
                on_disk, in_memory = scand.segy.open(file.name), scand.segy.read(file.name)
                self.assertEqual((on_disk.form, on_disk.interval_us), (in_memory.form, 4000))
                self.assertFalse(on_disk.samples.flags.writeable)
                np.testing.assert_array_equal(on_disk.headers, in_memory.headers)
                for dtype in ("f4", "f8"):
                    got = scand.scan(on_disk.samples, "forward,backward", form=on_disk.form, dtype=dtype)
                    self.same(got, scand.scan(in_memory.samples, "forward,backward", form=in_memory.form, dtype=dtype))

    def test_no_file(self):
        with tempfile.NamedTemporaryFile() as file, self.assertRaisesRegex(ValueError, "0 bytes are no SEG-Y file"):
            scand.segy.open(file.name)


if __name__ == "__main__":
    main()

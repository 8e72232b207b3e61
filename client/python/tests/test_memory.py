#!/usr/bin/env python3
"""Shared memory: blocks that are sub-allocated, recycled and given back, and arrays that outlive everything."""

import errno
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock

import numpy as np

import scand
from rig import SEED, Daemon, PackageTest, main, whole_numbers
from scand import memory


class Arrays(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        scand.trim()

    def test_arrays_are_numpy_arrays(self):
        for shape, dtype in (((3, 4), "f4"), (7, "i2"), ((), float), ((0, 3), "c16"), ((2,), [("a", "f4"), ("b", "u1")])):
            x = scand.empty(shape, dtype)
            self.assertEqual((x.shape, x.dtype), (np.empty(shape, dtype).shape, np.dtype(dtype)))
            self.assertTrue(scand.is_shared(x) and scand.is_shared(x[...]) and x.flags.writeable)
            self.assertEqual(x.ctypes.data % memory.LINE_BYTES, 0)
        self.assertFalse(scand.is_shared(np.empty(3)) or scand.is_shared([1, 2]) or scand.is_shared(None))

    def test_wrong_shapes_and_dtypes(self):
        with self.assertRaisesRegex(ValueError, "negative"):
            scand.empty((2, -1))
        with self.assertRaisesRegex(TypeError, "references"):
            scand.empty(3, object)
        with self.assertRaises(MemoryError):
            scand.empty(1 << 60)
        self.assertEqual([scand.empty(shape).shape for shape in (np.array(3), [np.int8(2), True], ())], [(3,), (2, 1), ()])
        self.assertEqual((scand.empty(3, "(2, 2)f4").shape, scand.empty((), "3i8").dtype), ((3, 2, 2), np.int64))
        for make in (scand.empty, scand.device_empty):
            for shape in (2.5, None, "3", (2, 1.0), [[2]]):
                with self.assertRaisesRegex(TypeError, "^shape: .* is no whole number, nor a list of them$"):
                    make(shape)

    def test_more_than_the_machine_has(self):
        """It is refused before pages are made: the kernel would end a process."""
        with open("/proc/meminfo") as file:
            total = sum(int(line.split()[1]) << 10 for line in file if line.startswith(("MemTotal:", "SwapTotal:")))
        for size in total + 1, 1 << 44:
            with self.assertRaisesRegex(MemoryError, rf"^no {-(-size // 64) * 64} bytes of shared memory: the machine has \d+ left; "):
                scand.empty(size, np.uint8)
        one = np.broadcast_to(np.float32(1), (1 << 41, 4))
        with self.assertRaisesRegex(MemoryError, "the machine has"):
            scand.scan(one)

    def test_few_descriptors(self):
        """Against that it is no help to take less."""
        with unittest.mock.patch("os.memfd_create", side_effect=OSError(errno.EMFILE, os.strerror(errno.EMFILE))):
            with self.assertRaisesRegex(MemoryError, "Too many open files; raise ulimit -n, or close some files$"):
                scand.empty(memory.LARGE_BYTES, np.uint8)

    def test_asarray(self):
        x = scand.asarray([[1, 2], [3, 4]])
        self.assertTrue(scand.is_shared(x))
        self.assertIs(scand.asarray(x), x)
        self.assertIs(scand.asarray(x, x.dtype), x)
        np.testing.assert_array_equal(scand.asarray(x.T), x.T)
        self.assertEqual(scand.asarray(x, "f4").dtype, np.float32)

    def test_spans_never_overlap(self):
        """Arrays of random sizes come and go; each keeps what was written to it."""
        noise = random.Random(SEED)
        live = []
        for step in range(4000):
            if live and noise.random() < 0.5:
                array, mark = live.pop(noise.randrange(len(live)))
                self.assertTrue((array == mark).all())
            else:
                array = scand.empty(noise.choice((1, 63, 64, 65, 1000, 100000)), "u4")
                array[...] = step
                live.append((array, step))
        for array, mark in live:
            self.assertTrue((array == mark).all())
        del array
        live.clear()
        scand.trim()
        self.assertEqual(memory.pool.blocks(), ())

    def test_spans_join(self):
        """Whatever the order in which they come back."""
        noise = random.Random(SEED)
        block = memory.Block(1 << 20, False)
        spans = [(block.take(64 * n), 64 * n) for n in range(1, 150)]
        self.assertEqual(block.take(1 << 20), -1)
        noise.shuffle(spans)
        for span in spans:
            block.give_back(*span)
        self.assertEqual((block.free, block.used), ([(0, block.size)], 0))

    def test_views_keep_memory(self):
        row = scand.asarray(np.arange(1 << 20, dtype="f8").reshape(1024, 1024))[5, ::-1]
        gc.collect()
        scand.trim()
        np.testing.assert_array_equal(row, np.arange(6143, 5119, -1))

    def test_memory_is_recycled_and_given_back(self):
        first = scand.empty(memory.LARGE_BYTES, "u1")
        place = first.ctypes.data
        del first
        again = scand.empty(memory.LARGE_BYTES, "u1")
        self.assertEqual(again.ctypes.data, place)
        del again
        scand.trim()
        self.assertEqual(memory.pool.blocks(), ())
        self.assertEqual([name for name in os.listdir("/proc/self/fd") if is_block(name)], [])

    def test_what_is_kept_is_bounded(self):
        kept, memory.KEPT_BYTES = memory.KEPT_BYTES, 3 * memory.LARGE_BYTES
        self.addCleanup(setattr, memory, "KEPT_BYTES", kept)
        arrays = [scand.empty(memory.LARGE_BYTES, "u1") for _ in range(6)]
        self.assertEqual(sum(block.size for block in memory.pool.blocks()), 6 * memory.LARGE_BYTES)
        arrays.clear()
        self.assertEqual(sum(block.size for block in memory.pool.blocks()), 3 * memory.LARGE_BYTES)

    def test_threads(self):
        def work(mark):
            for _ in range(500):
                array = scand.empty(mark * 100, "u4")
                array[...] = mark
                self.assertTrue((array == mark).all())

        threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        scand.trim()
        self.assertEqual(memory.pool.blocks(), ())

    def test_a_child_makes_arrays_elsewhere(self):
        """Memory is the same in parent and child; what either makes after the fork is its own."""
        x = scand.asarray(np.arange(10))
        pid = os.fork()
        if pid == 0:
            new = scand.empty(10, int)
            new[...] = -1
            x[0] = 77
            os._exit(0 if scand.is_shared(x) and scand.is_shared(new) else 1)
        mine = scand.empty(10, int)
        mine[...] = 5
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertTrue((mine == 5).all())
        self.assertEqual(x.tolist(), [77, *range(1, 10)])

    def test_pickles_are_ordinary_arrays(self):
        x = pickle.loads(pickle.dumps(scand.asarray(np.arange(10))))
        self.assertEqual((x.tolist(), scand.is_shared(x)), (list(range(10)), False))


def is_block(name):
    try:
        return "memfd:scand" in os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return False


class Outliving(PackageTest):
    def test_client(self):
        client = scand.Client(self.daemon.socket)
        y = scand.cumsum(np.arange(100), client=client)
        client.close()
        del client
        gc.collect()
        self.same(y, np.cumsum(np.arange(100)))
        self.same(scand.cumsum(y), np.cumsum(y))

    def test_a_client_ends_while_memory_is_taken(self):
        """With jobs under way, by the collector, which runs at any moment: here in the middle of making an array."""
        take = memory.Block.take

        def collect_and_take(block, size):
            gc.collect()
            return take(block, size)

        client = scand.Client(self.daemon.socket)
        client.itself = client
        with unittest.mock.patch("scand.connection.Connection.submit", return_value=None):  # the daemon is busy
            scand.submit(scand.empty(1000), client=client)
        del client
        ended = threading.Event()

        def make():
            with unittest.mock.patch("scand.memory.Block.take", collect_and_take):
                scand.empty(100_000)
            ended.set()

        threading.Thread(target=make, daemon=True).start()
        self.assertTrue(ended.wait(30))

    def test_daemon(self):
        with Daemon() as daemon:
            client = scand.Client(daemon.socket)
            y = scand.cumsum(np.arange(1000), client=client)
        self.same(y, np.cumsum(np.arange(1000)))
        y[0] = 5
        with self.assertRaises(ConnectionError):
            scand.Client(daemon.socket).ping()

    def test_worker(self):
        """Blocks are imported again by the connection that libscand makes anew."""
        x = scand.asarray(whole_numbers(1000))
        with Daemon() as daemon, scand.Client(daemon.socket) as client:
            self.same(scand.cumsum(x, client=client), np.cumsum(x))
            os.kill(daemon.worker(), signal.SIGKILL)
            self.same(scand.cumsum(x, client=client), np.cumsum(x))

    def test_interpreter(self):
        """Arrays, jobs and clients that live until the end of a program, and beyond its modules."""
        program = (
            "import numpy as np, scand, builtins, atexit\n"
            "builtins.kept = scand.cumsum(np.arange(5.0))\n"
            "job = scand.submit(np.ones(100000)); job.add_done_callback(lambda job: None)\n"
            "class Late:\n"
            "    def __init__(self): self.array = scand.empty(3); self.array[...] = 1\n"
            "    def __del__(self, write=__import__('os').write): write(1, b'%d' % self.array[2])\n"
            "builtins.late = Late()\n"
            "atexit.register(lambda: print(builtins.kept[-1], flush=True))\n"
        )
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "10.0\n1")

    def test_trimmed_memory_is_nobodys(self):
        """Trimmed memory is given up by the connections that had imported it."""
        scand.cumsum(scand.asarray(np.ones(memory.LARGE_BYTES // 8)), copy=False)
        gc.collect()
        scand.trim()
        self.assertEqual([name for name in os.listdir("/proc/self/fd") if is_block(name)], [])

    def test_many_blocks(self):
        """More blocks than a connection can have buffers: the one that was not used for longest is imported anew."""
        size = memory.LARGE_BYTES
        populate, memory.Block._populate = memory.Block._populate, lambda block: None
        self.addCleanup(setattr, memory.Block, "_populate", populate)
        blocks = [scand.empty(size, "u1") for _ in range(270)]
        with scand.Client(self.daemon.socket) as client:
            for array in (*blocks, *blocks[:3]):
                view = array[:80].view("f8")
                view[...] = 1
                scand.cumsum(view, out=view, copy=False, client=client)
                self.assertEqual(view[-1], 10)


if __name__ == "__main__":
    main()

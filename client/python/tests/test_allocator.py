#!/usr/bin/env python3
"""NumPy's own arrays in shared memory: scand.allocator()."""

import concurrent.futures
import gc
import os
import pickle
import subprocess
import sys
import threading

import numpy as np

import scand
from rig import Daemon, PackageTest, main, whole_numbers
from scand import memory

COUNT = 1 << 18  # f8 numbers of an array that is large enough


class Allocator(PackageTest):
    def test_which_arrays_are_shared(self):
        with scand.allocator():
            x = np.ones((2, COUNT))
            made = [x, np.empty(COUNT), np.zeros(COUNT), x * 2, x[1], x.T, x.copy(), np.sort(x), x.astype("f4"), x.ravel()[::-2], x.view("u1")]
            small = np.ones(100)
        self.assertEqual([scand.is_shared(array) for array in made], [True] * len(made))
        self.assertFalse(scand.is_shared(small) or scand.is_shared(np.ones((2, COUNT))))
        self.assertIs(scand.asarray(x), x)
        self.assertFalse(made[2].any())

    def test_jobs_work_where_they_lie(self):
        with scand.allocator():
            x = whole_numbers((4, COUNT))
            out = np.empty_like(x)
        self.same(scand.scan(x, "forward", copy=False), np.cumsum(x, -1))
        self.assertIs(scand.cumsum(x, out=out, copy=False), out)
        self.same(out, np.cumsum(x, -1))
        self.same(scand.cumsum(x[:, ::-3], 0, copy=False), np.cumsum(x[:, ::-3], 0))
        expected = np.cumsum(x, -1)
        scand.cumsum(x, out=x, copy=False)
        self.same(x, expected)

    def test_overlapping_arrays(self):
        with scand.allocator():
            x = whole_numbers(2 * COUNT)
        expected = np.cumsum(x[:-1])
        with self.assertRaisesRegex(ValueError, "overlaps"):
            scand.cumsum(x[:-1], out=x[1:], copy=False)
        scand.cumsum(x[:-1], out=x[1:])
        self.same(x[1:], expected)

    def test_blocks_end_and_nest(self):
        outer = scand.allocator()
        self.addCleanup(outer.close)
        with scand.allocator():
            self.assertTrue(scand.is_shared(np.ones(COUNT)))
        self.assertTrue(scand.is_shared(np.ones(COUNT)))
        outer.close()
        outer.close()
        self.assertFalse(scand.is_shared(np.ones(COUNT)))

    def test_each_thread(self):
        def is_shared():
            return scand.is_shared(np.ones(COUNT))

        with scand.allocator(), concurrent.futures.ThreadPoolExecutor(1) as plain:
            self.assertEqual((is_shared(), plain.submit(is_shared).result()), (True, False))
        with concurrent.futures.ThreadPoolExecutor(1, initializer=scand.allocator) as own:
            self.assertEqual((is_shared(), own.submit(is_shared).result()), (False, True))

    def test_arrays_change_their_size(self):
        with scand.allocator():
            x = np.arange(COUNT)
            x.resize(5 * COUNT, refcheck=False)
            y = np.fromiter(range(COUNT), int)
        np.testing.assert_array_equal(x, np.concatenate([np.arange(COUNT), np.zeros(4 * COUNT, int)]))
        self.same(scand.cumsum(x, copy=False), np.cumsum(x))
        np.testing.assert_array_equal(y, np.arange(COUNT))
        y.resize(10, refcheck=False)
        np.testing.assert_array_equal(y, np.arange(10))

    def test_memory_is_recycled_and_given_back(self):
        with scand.allocator():
            x = np.ones(COUNT)
            place = x.ctypes.data
            scand.cumsum(x, copy=False)
            del x
            x = np.ones(COUNT)
            self.assertEqual(x.ctypes.data, place)
            del x
        gc.collect()
        scand.trim()
        self.assertEqual([name for name in os.listdir("/proc/self/fd") if is_array(name)], [])
        for turn in range(3):  # another array lies there, which is imported anew
            with scand.allocator():
                x = whole_numbers(COUNT, seed=turn)
            self.same(scand.cumsum(x, copy=False), np.cumsum(x))
            del x
            scand.trim()

    def test_memory_of_unknown_ends_is_not_used_again(self):
        with scand.allocator():
            x = np.ones(COUNT)
        place = x.ctypes.data
        memory.retire_block_of(x)
        keeps = scand.asarray(np.ones(3))
        del x
        self.assertIsNone(memory.holders[1].find(place))
        self.assertTrue(scand.is_shared(keeps))

    def test_more_arrays_than_a_connection_has_buffers(self):
        with scand.allocator():
            arrays = [np.full(COUNT // 2, 1.0) for _ in range(270)]
        for x in (*arrays, *arrays[:3]):
            scand.cumsum(x[:10], out=x[:10], copy=False)
        self.assertEqual([x[9] for x in arrays[:4]], [55, 55, 55, 10])

    def test_threads(self):
        wrong = []

        def work(seed):
            with scand.allocator():
                for turn in range(30):
                    x = np.full((2, COUNT // 2 + 1000 * ((seed + turn) % 3)), float(seed))
                    if scand.cumsum(x, copy=False)[1, -1] != seed * x.shape[1]:
                        wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual(wrong, [])

    def test_outlive_daemons_and_clients(self):
        with Daemon() as daemon, scand.allocator():
            client = scand.Client(daemon.socket)
            x = whole_numbers(COUNT)
            expected = np.cumsum(x)
            scand.cumsum(x, out=x, copy=False, client=client)
            client.close()
            del client
        self.same(x, expected)
        self.same(scand.cumsum(x, copy=False), np.cumsum(x))

    def test_children(self):
        """Child processes have the parent's arrays, and those that they make are their own; pickles are ordinary."""
        with scand.allocator():
            x = np.ones(COUNT)
            kept = np.ones(3 * COUNT)
            del kept
            pid = os.fork()
            if pid == 0:
                try:
                    own = np.full(3 * COUNT, 5.0)
                    right = scand.cumsum(x, copy=False)[-1] == COUNT and scand.cumsum(own, copy=False)[-1] == 15 * COUNT
                finally:
                    os._exit(0 if right else 1)
            mine = np.full(3 * COUNT, 7.0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertTrue((mine == 7).all() and (x == 1).all())
        self.assertFalse(scand.is_shared(pickle.loads(pickle.dumps(mine))))

    def test_interpreter(self):
        """Arrays that live until the end of a program, and beyond its modules."""
        program = (
            "import numpy as np, scand, builtins, sys\n"
            "scand.allocator()\n"
            "builtins.kept = np.ones(1 << 18)\n"
            "sys.modules['kept'] = scand.cumsum(builtins.kept, copy=False)\n"
            "class Late:\n"
            "    def __init__(self): self.array = np.ones(1 << 18)\n"
            "    def __del__(self, write=__import__('os').write): self.array[5] = 3; write(1, b'%d' % self.array[5])\n"
            "builtins.late = Late()\n"
            "del sys.modules['scand']; del scand\n"
        )
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "3"))


def is_array(name):
    try:
        return "memfd:scand-array" in os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return False


if __name__ == "__main__":
    main()

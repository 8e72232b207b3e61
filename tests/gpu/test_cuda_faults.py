#!/usr/bin/env python3
"""Kernels that fail, or do not end, in a daemon on a GPU: the worker ends with them, the next one serves, and no job is served by a
context in which one has failed. Skipped where there is no GPU.

test_cuda_faults.py SCAND_CUDA_FAULTS [unittest's arguments]
"""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from daemons import Daemon, main  # noqa: E402
from processes import ProcessTest, is_gone  # noqa: E402
from wire import Closed, Failure, eventually, pack_f32, scan, tensor  # noqa: E402

ROWS, LENGTH = 256, 4096


@unittest.skipUnless(os.path.exists("/dev/nvidiactl"), "no GPU")
class CudaFaults(ProcessTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scand")
        self.addCleanup(folder.cleanup)
        self.folder = os.environ["SCAND_CUDA_FAULTS"] = folder.name

    def ask_for(self, fault):
        with open(os.path.join(self.folder, fault), "w"):
            pass

    def is_asked_for(self, fault):
        return os.path.exists(os.path.join(self.folder, fault))

    def jobs_until_lost(self, client, rows, length, most=1000):
        """Every answer is right, until there is none. How many came."""
        expected = pack_f32(range(1, length + 1)) * rows
        done = 0
        try:
            memory = client.create(4 * rows * length)
            while done < most:
                memory.write(pack_f32([1] * length) * rows)
                client.call("job.submit", scan(tensor(memory.buffer, [rows, length])))
                self.assertEqual(memory.read(), expected)
                done += 1
        except Closed:
            pass
        return done

    def check_lost(self, daemon, worker, reason):
        self.assertTrue(eventually(lambda: is_gone(worker)))
        self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") == 2), daemon.log_text())
        self.assertRegex(daemon.log_text(), reason)
        for _ in range(3):
            self.serves(daemon.socket)
        self.assertEqual(daemon.log_text().count("; starting another"), 1, daemon.log_text())

    def fail_chunk(self, rows, length):
        with Daemon("--device", "cuda") as daemon:
            worker, other = daemon.worker(), daemon.client()
            client = daemon.client()
            self.assertEqual(self.jobs_until_lost(client, rows, length, most=3), 3)
            self.ask_for("chunk-address")
            self.assertLess(self.jobs_until_lost(client, rows, length), 2)
            self.loses(other)
            self.check_lost(daemon, worker, r"illegal memory access.* \(700\)(.|\n)*the device is lost")

    def test_chunk_writes_nowhere(self):
        self.fail_chunk(ROWS, LENGTH)

    def test_small_job_writes_nowhere(self):
        self.fail_chunk(1, 1000)

    def test_error_that_a_helper_meets(self):
        """A helper's error ends the worker at once, though no job comes. The request has no answer, so that libscand repeats it."""
        with Daemon("--device", "cuda") as daemon:
            worker, client, other = daemon.worker(), daemon.client(), daemon.client()
            client.call("buffer.create", size=4096, place="device")
            self.ask_for("memory-address")
            client.send("buffer.create", size=4096, place="device")
            self.loses(client)
            self.loses(other)
            self.assertFalse(self.is_asked_for("memory-address"))
            self.check_lost(daemon, worker, r"illegal memory access.* \(700\)(.|\n)*the device is lost")

    def test_error_that_a_helper_meets_beside_jobs(self):
        """A job after it has no answer: never one that a failed context gave."""
        with Daemon("--device", "cuda") as daemon:
            worker, client, jobs = daemon.worker(), daemon.client(), daemon.client()
            self.assertEqual(self.jobs_until_lost(jobs, ROWS, LENGTH, most=3), 3)
            self.ask_for("memory-address")
            client.send("buffer.create", size=4096, place="device")
            self.assertLess(self.jobs_until_lost(jobs, ROWS, LENGTH), 1000)
            self.check_lost(daemon, worker, "the device is lost")

    def test_device_buffers_end_with_the_worker(self):
        with Daemon("--device", "cuda") as daemon:
            worker, client = daemon.worker(), daemon.client()
            buffer = client.call("buffer.create", size=4096, place="device")["buffer"]
            self.ask_for("memory-address")
            client.send("buffer.create", size=4096, place="device")
            self.loses(client)
            self.check_lost(daemon, worker, "the device is lost")
            with daemon.client() as again, self.assertRaises(Failure) as caught:
                again.call("job.submit", scan(tensor(buffer, [1024])))
            self.assertEqual(caught.exception.name, "not_found")

    def test_kernel_that_does_not_end(self):
        with Daemon("--device", "cuda") as daemon:
            worker, client = daemon.worker(), daemon.client()
            self.assertEqual(self.jobs_until_lost(client, ROWS, LENGTH, most=3), 3)
            self.ask_for("chunk-endless")
            self.assertLess(self.jobs_until_lost(client, ROWS, LENGTH), 2)
            reason = rf"device 0 has had a chunk of job \d+ of user {os.getuid()} for \d.\d s, where \d.\d s are allowed: it is ended"
            self.check_lost(daemon, worker, reason)


if __name__ == "__main__":
    main()

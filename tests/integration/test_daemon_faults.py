#!/usr/bin/env python3
"""The start of a worker that follows another: its n-th allocation or system call fails, n = 1, 2, ... until none is left.
Each time the daemon goes on, with the next worker if not with that one.

test_daemon_faults.py SCAND FAULTS [unittest's arguments]
"""

import collections
import os
import signal
import sys
import tempfile
import unittest

from daemons import Daemon, main
from wire import eventually, pack_f32, scan, tensor, unpack_f32

FAULTS = None  # the library to preload
CALLS_MAX = 2000  # of a start: more are no start


class Faults(unittest.TestCase):
    def serves(self, daemon):
        with daemon.client() as client:
            memory = client.create(400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))
            return client.call("server.stats")

    def fail_call(self, n, path):
        """What a daemon says, and how many starts it took, when the n-th call of its second worker fails."""
        with Daemon("--device", "cpu", "--pool", "16M") as daemon:
            with open(path, "w") as file:
                file.write(str(n))
            os.kill(daemon.worker(), signal.SIGKILL)
            self.assertTrue(eventually(lambda: daemon.log_text().count("ready at") == 2), (n, daemon.log_text()))
            restarts = self.serves(daemon)["restarts"]
            text = daemon.log_text()
            self.assertEqual(text.count("; starting another"), restarts, (n, text))
            self.assertIn(restarts, (1, 2), (n, text))
            return text, restarts

    def test_every_call(self):
        failed, ended = collections.Counter(), 0
        with tempfile.TemporaryDirectory(prefix="scand") as folder:
            path = os.path.join(folder, "fault")
            os.environ |= {"LD_PRELOAD": FAULTS, "SCAND_FAULT": path}
            self.addCleanup(os.environ.pop, "LD_PRELOAD")
            for n in range(1, CALLS_MAX):
                text, restarts = self.fail_call(n, path)
                if os.path.exists(path):
                    break
                failed[text.partition("fault: ")[2].split()[0]] += 1
                ended += restarts - 1
        self.assertFalse("fault: " in text or n < 20, f"{n} calls")
        print(f"{n - 1} calls failed, {ended} of which ended that worker: {dict(failed)}")


if __name__ == "__main__":
    FAULTS = os.path.abspath(sys.argv.pop(2))
    main()

#!/usr/bin/env python3
"""Jobs without a daemon: SCAND_FALLBACK=cpu, and the same bits as with one."""

import asyncio
import os
import threading

import numpy as np

import scand
from rig import PackageTest, main, whole_numbers


class Local(PackageTest):
    """Beside the daemon's client, one that finds none."""

    def setUp(self):
        os.environ["SCAND_FALLBACK"] = "cpu"
        self.addCleanup(os.environ.pop, "SCAND_FALLBACK")
        self.local = scand.Client("/nonexistent/scand.sock")
        self.addCleanup(self.local.close)

    def test_which_it_is(self):
        self.assertTrue(self.local.is_local)
        self.assertFalse(scand.default_client().is_local)

    def test_without_the_variable(self):
        del os.environ["SCAND_FALLBACK"]
        self.addCleanup(os.environ.setdefault, "SCAND_FALLBACK", "cpu")
        with self.assertRaisesRegex(scand.UnavailableError, "no daemon at /nonexistent"):
            scand.cumsum(np.ones(3), client=scand.Client("/nonexistent/scand.sock"))

    def test_same_bits(self):
        for shape in ((1, 1000), (300, 5000), (3, 40, 50)):
            x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
            self.same(scand.scan(x, "forward,backward", client=self.local), scand.scan(x, "forward,backward"))
            self.same(scand.reduce(x, "norm", client=self.local), scand.reduce(x, "norm"))
            steps = [("triangle", {"half_width": 3}), ("scan", {"passes": "forward"})]
            self.same(scand.run(x, steps, client=self.local), scand.run(x, steps))

    def test_jobs_that_are_awaited(self):
        x = [whole_numbers((10, 100), seed=i) for i in range(50)]

        async def gather():
            return await asyncio.gather(*scand.submit_many(x, client=self.local))

        for given, got in zip(x, asyncio.run(gather())):
            self.same(got, np.cumsum(given, -1))

    def test_threads(self):
        wrong = []

        def often(seed):
            x = whole_numbers((5, 1000 * (1 + 300 * (seed % 2))), seed=seed)
            for _ in range(20):
                if not np.array_equal(scand.cumsum(x, client=self.local), np.cumsum(x, -1)):
                    wrong.append(seed)

        threads = [threading.Thread(target=often, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    main()

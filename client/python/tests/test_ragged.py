#!/usr/bin/env python3
"""Rows of differing lengths, in every way of submitting them, compared with jobs on each row alone."""

import numpy as np

import scand
from rig import SEED, PackageTest, main, whole_numbers


class Ragged(PackageTest):
    def test_rows(self):
        lengths = np.random.default_rng(SEED).integers(0, 900, 70)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        for dtype in ("f4", "f8", "i4", "i2", ">f4"):
            x = whole_numbers(offsets[-1], dtype)
            rows = np.split(x, offsets[1:-1])
            for kept in (offsets, offsets.astype(np.int32), offsets.astype(np.uint16), scand.asarray(offsets), list(map(int, offsets))):
                self.same(scand.scan(x, offsets=kept), np.concatenate([np.cumsum(row, dtype=scand.cumsum(x).dtype) for row in rows]))
            self.same(scand.reduce(x, offsets=offsets), np.array([scand.reduce(row) for row in rows]))
            self.same(scand.reduce(x, "max", keepdims=True, offsets=offsets), np.array([scand.reduce(row, "max") for row in rows]))

    def test_every_way(self):
        offsets = [0, 3, 3, 1000, 40000]
        x = np.random.default_rng(SEED).normal(size=40000).astype(np.float32)
        rows = np.split(x, offsets[1:-1])
        twice = np.concatenate([scand.scan(row, "forward,backward") for row in rows])
        self.same(scand.scan(x, "forward,backward", offsets=offsets), twice)
        self.same(scand.submit(x, "forward,backward", offsets=offsets).result(), twice)
        for made in scand.submit_many([x, x], "forward,backward", offsets=offsets):
            self.same(made.result(), twice)
        given, shared = np.zeros_like(x), scand.asarray(x)
        self.same(scand.scan(x, "forward,backward", out=given, offsets=offsets), twice)
        self.same(given, twice)
        self.same(scand.scan(shared, "forward,backward", out=shared, copy=False, offsets=offsets), twice)
        factor = np.full_like(x, 0.5)
        for coefficient in (0.5, factor):
            self.same(
                scand.scan(x, op="affine", coefficient=coefficient, offsets=offsets),
                np.concatenate([scand.scan(row, op="affine", coefficient=0.5) for row in rows]),
            )
        steps = ["demean", ("scan", {"passes": "forward"}), ("triangle", {"half-width": 3})]
        several = [row for row in rows if row.size]
        self.same(scand.run(x, steps, offsets=offsets), np.concatenate([scand.run(row, steps) for row in several]))
        chain = ["demean", ("reduce", {"reduction": "rms"})]
        self.same(scand.run(x, chain, offsets=offsets), np.array([scand.run(row, chain) for row in rows]))
        for job in scand.submit_run_many([x, x], chain, offsets=offsets):
            self.same(job.result(), scand.run(x, chain, offsets=offsets))

    def test_no_samples(self):
        x = np.zeros(0, np.float32)
        self.same(scand.scan(x, offsets=[0]), x)
        self.same(scand.reduce(x, offsets=[0]), x)
        self.same(scand.reduce(x, offsets=[0, 0, 0]), np.zeros(2, np.float32))
        self.same(scand.scan(x, offsets=[0, 0]), x)

    def test_wrong_ones(self):
        x = np.zeros(100, np.float32)
        for error, given, offsets, text in (
            (TypeError, x, [0.0, 100.0], "^offsets: they are of shape .2,. and dtype float64; take whole numbers"),
            (TypeError, x, 100, "^offsets: they are of shape .. and dtype int64; take whole numbers"),
            (TypeError, x, np.zeros(0, int), "^offsets: they are of shape .0,. and dtype int64; take whole numbers"),
            (ValueError, x, [0, 40, 90], "^offsets: the first is 0 and the last 90; rows have to cover x, from 0 to 100"),
            (ValueError, x, [3, 100], "^offsets: the first is 3 and the last 100; rows have to cover x"),
            (ValueError, x.reshape(10, 10), [0, 100], "^x: it is of shape .10, 10. and dtype float32; with offsets take"),
            (ValueError, x.astype(complex), [0, 100], "^x: it is of shape .100,. and dtype complex128; with offsets take"),
            (ValueError, x, [0, 60, 50, 100], "offsets"),
        ):
            with self.subTest(offsets=offsets), self.assertRaisesRegex(error, text):
                scand.scan(given, offsets=offsets)
        with self.assertRaisesRegex(ValueError, r"^steps\[0\].other: steps that read or write further arrays take no offsets"):
            scand.run(x, [("map", {"op": "add", "other": x})], offsets=[0, 100])


if __name__ == "__main__":
    main()

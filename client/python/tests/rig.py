"""The rig of the package's tests: a daemon, and arrays of every layout. `FILE SCAND [unittest's arguments]`."""

import os
import random
import sys
import unittest

import numpy as np

import scand

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "integration"))

from daemons import BACKEND, ON_CPU, Daemon, eventually, main  # noqa: E402  (of the tests of the daemon)

__all__ = ["BACKEND", "Daemon", "HERE", "ON_CPU", "PackageTest", "SEED", "eventually", "layouts", "main", "whole_numbers"]

SEED = int(os.environ.get("TEST_SEED") or random.randrange(1 << 32))
print(f"TEST_SEED={SEED}", flush=True)


def whole_numbers(shape, dtype=np.float64, seed=0):
    """Small whole numbers, positive and negative, whose sums are exact in any order and in f32."""
    noise = np.random.default_rng(SEED + seed).integers(0, 9, shape)
    return (noise if np.dtype(dtype).kind in "ub" else noise - 4).astype(dtype)


def layouts(x):
    """Copies of an array laid out in several ways; each with the layout's name."""
    spread = np.zeros([3 * n + 1 for n in x.shape], x.dtype)
    spread = spread[tuple(slice(1, None, 3) for _ in x.shape)]
    spread[...] = x
    packed = np.zeros(x.size, [("gap", "u1"), ("value", x.dtype)])
    packed["value"] = x.ravel()
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "as it is", x
    yield "Fortran's order", np.asfortranarray(x)
    yield "steps", spread
    yield "backwards", x[(slice(None, None, -1),) * x.ndim].copy()[(slice(None, None, -1),) * x.ndim]
    yield "unaligned", packed["value"].reshape(x.shape)
    yield "read-only", frozen
    yield "other byte order", x.astype(x.dtype.newbyteorder())


class PackageTest(unittest.TestCase):
    """Tests that share a daemon, to which the process's default client connects."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*cls.options)
        cls.addClassCleanup(cls.daemon.stop)
        os.environ["SCAND_SOCKET"] = cls.daemon.socket
        cls.addClassCleanup(scand.default_client().close)

    def same(self, got, expected):
        """Equal in dtype, shape and every value."""
        self.assertEqual(got.dtype, expected.dtype)
        np.testing.assert_array_equal(got, expected)

#!/usr/bin/env python3
"""Operators, types and options of a job beside the plain f32 sum, compared with plain Python.

Samples are chosen so that every result is exact. A device that cannot do a variant yet must say so, and the test of it
counts as skipped.

    test_daemon_variants.py SCAND [unittest's arguments]
"""

import itertools
import math
import operator
import random

from daemons import DaemonTest, main
from forms import scanned
from wire import Failure, pack_f32, scan, tensor, unpack_f32

OPERATORS = {
    "sum": (operator.add, 0),
    "prod": (operator.mul, 1),
    "max": (max, -math.inf),
    "min": (min, math.inf),
}
PASSES = (("forward",), ("backward",), ("forward", "backward"))


class VariantTest(DaemonTest):
    def run_job(self, client, job):
        try:
            return client.call("job.submit", job)
        except Failure as failure:
            if failure.name != "unsupported":
                raise
            self.assertRegex(failure.error["message"], "this daemon's device cannot do this scan .* --device cpu can")
            self.skipTest(failure.error["message"])


class Operators(VariantTest):
    def test_operators(self):
        client = self.client()
        memory = client.create(4096)
        noise = random.Random(1)
        for op, kind, passes in itertools.product(OPERATORS, ("inclusive", "exclusive"), PASSES):
            for accumulator in ("f32", "f64", "f2"):
                rule = {"op": op, "kind": kind, "passes": passes, "accumulator": accumulator}
                row = [float(noise.choice((-1, 1) if op == "prod" else range(-9, 10))) for _ in range(600)]
                if op == "prod" and len(passes) == 1:
                    row[7] = row[590] = 2.0
                memory.write(pack_f32(row))
                with self.subTest(**rule):
                    self.run_job(client, scan(tensor(memory.buffer, [600]), **rule))
                    function, identity = OPERATORS[op]
                    expected = scanned(row, passes, kind == "exclusive", function=function, identity=identity)
                    self.assertEqual([str(v) for v in unpack_f32(memory.read(0, 2400))], [str(float(v)) for v in expected])


if __name__ == "__main__":
    main()

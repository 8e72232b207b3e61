#!/usr/bin/env python3
"""scanctl against a real daemon on the CPU: files of every form, and how much memory it takes.

Results are compared with a second computation that shares nothing with the first: integers where sums have to be exact,
Python's own floats elsewhere. Only the standard library is used; scanctl_rig.py says how to call it.
"""

import array
import itertools
import json
import math
import operator
import os
import random
import re
import resource
import signal
import struct
import subprocess
import time

import scanctl_rig
from forms import c_to_fortran, exact, f32, floats, npy_header, pack_dtype, packed, scanned, scanned_array, su_file, unpack_dtype
from scanctl_rig import TIMEOUT_S, ScanctlTest, run


MANUAL = os.path.join(os.path.dirname(__file__), "../../client/scanctl/scanctl.1")


class Results(ScanctlTest):
    """Small whole numbers, whose sums are exact in every type: the result has to be equal."""

    def check_raw(self, shape, axis, *words, passes=("forward",), exclusive=False, code="f"):
        count = 1
        for n in shape:
            count *= n
        values = [float(random.Random(7).randrange(-50, 50) + i % 13) for i in range(count)]
        given = self.write("in.raw", packed(values))
        self.succeed("scan", given, "-o", self.path("out.raw"), "--shape", ",".join(map(str, shape)), *words)
        expected = scanned_array(values, shape, axis, passes, exclusive)
        self.assertEqual(floats(self.read("out.raw"), code), expected)

    def test_redirected_su(self):
        rows = [[float(r + i) for i in range(50)] for r in range(4)]
        path = self.write("in.su", su_file(rows, True))
        self.succeed("scan", path, "-o", self.path("named.su"))
        with open(path, "rb") as given:
            self.succeed("scan", "--format", "su", "-", "-o", self.path("redirected.su"), stdin=given)
        self.assertEqual(self.read("redirected.su"), self.read("named.su"))

    def test_manual_names_every_option(self):
        with open(MANUAL) as file:
            synopsis = file.read().split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0].split(".Nm\n")
        for command in ("scan", "reduce", "run", "demo", "wait", "top"):
            (part,) = [part for part in synopsis if re.search(rf"\.Cm {command}\n", part)]
            options = set(re.findall(r"--([a-z-]+)", self.succeed(command, "--help").decode())) - {"socket", "output", "help"}
            self.assertEqual({option for option in options if f"Fl -{option}" not in part}, set(), command)

    def test_default_is_a_cumulative_sum(self):
        self.check_raw((3, 1000), 1)
        self.check_raw((17,), 0)
        self.check_raw((1, 1), 1)

    def test_passes_and_kinds(self):
        for passes in (("backward",), ("forward", "backward"), ("backward", "forward"), ("forward", "forward")):
            for kind in ("inclusive", "exclusive"):
                words = ("--passes", ",".join(passes), "--kind", kind)
                self.check_raw((5, 600), 1, *words, passes=passes, exclusive=kind == "exclusive")

    def test_operators(self):
        for op, function in (("sum", operator.add), ("max", max), ("min", min)):
            values = [float(random.Random(3).randrange(-50, 50) - i % 7) for i in range(3 * 500)]
            given = self.write("in.raw", packed(values))
            self.succeed("scan", given, "-o", self.path("out.raw"), "--shape", "3,500", "--op", op)
            rows = [values[i : i + 500] for i in range(0, 1500, 500)]
            expected = [value for row in rows for value in scanned(row, ("forward",), function=function)]
            self.assertEqual(floats(self.read("out.raw")), expected)

    def test_steps(self):
        """Steps in one command give the same as in as many commands as there are steps; all rows at once and in batches."""
        values = [float(random.Random(8).randrange(-5, 6) + i % 3) for i in range(3 * 500)]
        given, once = self.write("in.raw", packed(values)), self.path("once.raw")
        shape = ("--shape", "3,500")
        steps = [("backward", "op=max"), ("forward", "demean", "accumulator=f2"), ("backward", "op=affine", "coefficient=0.5")]
        words = [word for step in steps for word in ("--then", ",".join(step))]
        report = json.loads(self.succeed("scan", given, "-o", once, *shape, *words, "--json"))
        self.assertEqual(report["then"], words[1::2])
        at = self.path("apart.raw")
        self.succeed("scan", given, "-o", at, *shape)
        for first, *rest in steps:
            options = [word for part in rest for word in ("--" + part).split("=")]
            self.succeed("scan", at, "-o", at, *shape, "--passes", first, *options)
        self.assertTrue(self.read("once.raw") == self.read("apart.raw"))

    def test_affine(self):
        """A power of two as the coefficient, and one for each sample that keeps values whole."""
        noise = random.Random(5)
        values = [float(noise.randrange(-9, 10)) for _ in range(7 * 300)]
        factors = [float(noise.choice((1, -1, 0))) for _ in values]
        given = self.write("in.raw", packed(values))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", "7,300", "--op", "affine")

        def recurred(factors, order):
            out = list(values)
            for row in range(7):
                places = [row * 300 + i for i in order]
                for before, here in zip(places, places[1:]):
                    out[here] = factors[here] * out[before] + values[here]
            return out

        self.succeed(*words, "--coefficient", "-1.0")
        self.assertEqual(floats(self.read("out.raw")), recurred([-1.0] * len(values), range(300)))
        expected = recurred(factors, range(299, -1, -1))
        raw = self.write("factors.raw", packed(factors))
        npy = self.write("factors.npy", npy_header((7, 300)) + packed(factors))
        for path in (raw, npy):
            self.succeed(*words, "--coefficients", path, "--passes", "backward", "--output-dtype", "f64")
            self.assertEqual(floats(self.read("out.raw"), "d"), expected)
        self.succeed(*words, "--coefficients", "-", "--passes", "backward", input=packed(factors))
        self.assertEqual(floats(self.read("out.raw")), expected)
        self.succeed("scan", self.write("in.npy", npy_header((7, 300)) + packed(values)), "-o", self.path("out.npy"), *words[6:], "--coefficients", raw, "--passes", "backward")
        self.assertEqual(floats(self.read("out.npy")[-len(values) * 4 :]), expected)

    def test_affine_in_batches(self):
        """More than 64 MiB of samples and coefficients together."""
        rows, length = 2600, 5000
        line = packed([float(i % 5) for i in range(length)])
        given = self.write("in.raw", line * rows)
        factors = self.write("factors.raw", b"".join(packed([float(-1 if row % 2 else 0)]) * length for row in range(rows)))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", f"{rows},{length}", "--op", "affine")
        report = json.loads(self.succeed(*words, "--coefficients", factors, "--json"))
        self.assertGreater(report["jobs"], 1)
        odd = list(itertools.accumulate((float(i % 5) for i in range(length)), lambda before, value: value - before))
        self.assertTrue(self.read("out.raw") == (line + packed(odd)) * (rows // 2))

    def test_half_and_demean(self):
        row = [2.0, 4.0, -1.0, 7.0, 0.0, 6.0]  # the mean is 3
        given = self.write("in.raw", packed([value + 10 for value in row]))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", 6, "--demean")
        self.succeed(*words, "--kind", "half")
        sums = scanned([value - 3 for value in row], ("forward",))
        self.assertEqual(floats(self.read("out.raw")), [s - (value - 3) / 2 for s, value in zip(sums, row)])
        report = json.loads(self.succeed(*words, "--json"))
        self.assertEqual((report["demean"], report["op"], report["dtype"]), (1, "sum", "f32"))
        self.assertEqual(floats(self.read("out.raw")), sums)

    def test_algorithm(self):
        passes = ("forward", "backward")
        self.check_raw((6, 700), 1, "--passes", ",".join(passes), "--algorithm", "serial-cpu", passes=passes)
        words = ("scan", self.path("in.raw"), "-o", self.path("out.raw"), "--shape", "6,700", "--algorithm")
        report = json.loads(self.succeed(*words, "serial-cpu", "--json"))
        self.assertEqual((report["algorithm"], report["accumulator"]), ("serial-cpu", "f32"))
        self.fail_with(64, '"algorithm" is "fastest"; there are: serial-cpu, .*cub-by-key', *words, "fastest")
        self.fail_with(64, '"algorithm" is "warp-v0", which this .* --device cuda can', *words, "warp-v0")

    def test_ragged_rows(self):
        """Rows of differing lengths, by offsets in every form that they may have; and in several batches."""
        noise, passes = random.Random(5), ("forward", "backward")
        lengths = [noise.choice([0, 1, 16, 700, 20_000]) for _ in range(100)]
        offsets = list(itertools.accumulate(lengths, initial=0))
        values = [float(noise.randrange(-3, 4)) for _ in range(offsets[-1])]
        rows = [values[a:b] for a, b in zip(offsets, offsets[1:])]
        expected = [value for row in rows for value in scanned(row, passes)]
        given = self.write("in.npy", npy_header((len(values),)) + packed(values))
        words = ("scan", given, "-o", self.path("out.npy"), "--passes", ",".join(passes), "--offsets")
        for name, data in (
            ("raw", struct.pack(f"={len(offsets)}q", *offsets)),
            ("i8.npy", npy_header((len(offsets),), "<i8") + struct.pack(f"<{len(offsets)}q", *offsets)),
            ("big.npy", npy_header((len(offsets),), ">i4") + struct.pack(f">{len(offsets)}i", *offsets)),
            ("u4.npy", npy_header((len(offsets),), "<u4") + struct.pack(f"<{len(offsets)}I", *offsets)),
        ):
            with self.subTest(name):
                report = json.loads(self.succeed(*words, self.write(name, data), "--json"))
                self.assertEqual((report["rows"], report["samples"]), (100, 20_000))
                self.assertEqual(floats(self.read("out.npy")[-4 * len(values) :]), expected)
        self.succeed(*words, self.path("raw"), "--output-dtype", "f64")
        self.assertEqual(floats(self.read("out.npy")[-8 * len(values) :], "d"), expected)

    def test_ragged_rows_in_batches(self):
        """Two batches, of a long row each, and rows without samples between them."""
        count, cut = 6_000_000, 4_000_003
        given = self.write("in.raw", packed([1.0]) * count)
        offsets = self.write("offsets", struct.pack("=5q", 0, cut, cut, cut, count))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", count, "--output-dtype", "f64", "--offsets", offsets)
        report = json.loads(self.succeed(*words, "--json"))
        self.assertEqual((report["rows"], report["samples"], report["jobs"]), (4, cut, 2))
        result = array.array("d", self.read("out.raw"))
        self.assertEqual(result[:cut], array.array("d", range(1, cut + 1)))
        self.assertEqual(result[cut:], array.array("d", range(1, count - cut + 1)))

    def test_offsets_that_are_no_rows(self):
        given = self.write("in.raw", packed([1.0] * 10))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", 10, "--offsets")
        for message, values in (
            ("begins with 1 and ends with 10; it must begin with 0 and end with 10", (1, 10)),
            ("begins with 0 and ends with 11", (0, 11)),
            (r"offset 2 \(from 0\) is 3; it must be from 4, the one before it, to 10", (0, 4, 3, 10)),
            (r"offset 1 \(from 0\) is -1; it must be from 0", (0, -1, 10)),
        ):
            with self.subTest(message):
                self.fail_with(65, message, *words, self.write("offsets", struct.pack(f"={len(values)}q", *values)))
        self.fail_with(65, "9 bytes, which is no whole number", *words, self.write("offsets", b"123456789"))
        floating = self.write("floating.npy", npy_header((2,), "<f8") + struct.pack("=2d", 0, 10))
        self.fail_with(65, "has rank 1, dtype f64 and 2 elements; offsets are", *words, floating)
        square = self.write("square.npy", npy_header((2, 2), "<i8") + struct.pack("=4q", 0, 1, 2, 10))
        self.fail_with(65, "has rank 2, dtype i64", *words, square)
        self.fail_with(66, "cannot be opened", *words, self.path("none"))
        self.fail_with(64, '--offsets is "-"; give a file', *words, "-")
        good = self.write("offsets", struct.pack("=2q", 0, 10))
        self.fail_with(64, "--offsets is for an input of one dimension, and this has 2", *words[:5], "2,5", "--offsets", good)
        self.fail_with(64, '"offsets" and "algorithm" exclude', *words, good, "--algorithm", "serial-cpu")

    def test_types(self):
        for accumulator in ("f32", "f64", "f2"):
            for intermediate in ("f32", "f64"):
                for dtype, code in (("f32", "f"), ("f64", "d")):
                    words = ("--accumulator", accumulator, "--intermediate", intermediate, "--output-dtype", dtype)
                    words += ("--passes", "forward,backward")
                    self.check_raw((4, 50), 1, *words, passes=("forward", "backward"), code=code)

    def test_dtypes(self):
        values = [1, 2, 0, 3, 4, 0, 1, 1] * 3
        expected = scanned_array(values, (2, 12), 1, ("forward",))
        for dtype, default in (
            [(dtype, "f32") for dtype in ("f32", "f16", "bf16", "f32be", "i16be", "ibm32", "ibm32le", "i8", "u8", "i16", "u16", "u16be")]
            + [(dtype, "f64") for dtype in ("f64be", "i32be", "i32le")]
            + [(dtype, dtype) for dtype in ("f64", "i32", "i64", "u32", "u64")]
            + [("i64be", "i64"), ("u32be", "u32"), ("u64be", "u64")]
        ):
            given = self.write("in.raw", pack_dtype(dtype, values))
            words = ("scan", given, "-o", self.path("out.raw"), "--shape", "2,12", "--dtype", dtype)
            self.succeed(*words)
            self.assertEqual(unpack_dtype(default, self.read("out.raw")), expected, dtype)
            self.succeed(*words, "--output-dtype", dtype)
            self.assertEqual(unpack_dtype(dtype, self.read("out.raw")), expected, dtype)
            self.succeed(*words, "--axis", 0, "--output-dtype", dtype)
            columns = scanned_array(values, (2, 12), 0, ("forward",))
            self.assertEqual(unpack_dtype(dtype, self.read("out.raw")), columns, dtype)

    def test_dtypes_that_cannot_be(self):
        given = self.write("in.raw", packed([1, 2, 3, 4]))
        words = ("scan", given, "-o", self.path("out.raw"), "--shape", 4)
        self.fail_with(64, '--output-dtype is "i64"; allowed with "input.dtype" "f32"', *words, "--output-dtype", "i64")
        self.fail_with(64, '"accumulator" is "f2"; .* auto, exact', *words, "--dtype", "u32", "--accumulator", "f2")
        self.fail_with(64, "says the byte order by itself", *words, "--dtype", "ibm32", "--byte-order", "big")
        self.fail_with(64, "with \"input.dtype\" \"f32\"", *words, "--output-dtype", "u32")

    def test_npy_dtypes(self):
        values = [3, 1, 4, 1, 5, 9, 2, 6]
        sums = scanned_array(values, (2, 4), 1, ("forward",))
        for descr, dtype in (("f8", "d"), ("i4", "i"), ("i8", "q"), ("u4", "I"), ("u8", "Q")):
            for big in (False, True):
                mark = ">" if big else "<"
                self.write("in.npy", npy_header((2, 4), mark + descr) + packed(values, dtype, big))
                self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"))
                expected = npy_header((2, 4), mark + descr) + packed(sums, dtype, big)
                self.assertEqual(self.read("out.npy"), expected)
        for descr, code in ((">i2", "h"), ("<i2", "h"), (">u2", "H"), ("<u2", "H"), ("|i1", "b"), ("|u1", "B")):
            big = descr[0] == ">"
            self.write("in.npy", npy_header((2, 4), descr) + packed(values, code, big))
            self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"))
            self.assertEqual(self.read("out.npy"), npy_header((2, 4), (">" if big else "<") + "f4") + packed(sums, "f", big))
            self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"), "--output-dtype", code == "b" and "i8" or "i16")
            kept = ("|i1", "b") if code == "b" else ((">" if big else "<") + "i2", "h")
            self.assertEqual(self.read("out.npy"), npy_header((2, 4), kept[0]) + packed(sums, kept[1], big))
        self.write("in.npy", npy_header((2, 4), "<f2") + pack_dtype("f16", values))
        self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"), "--output-dtype", "f16")
        self.assertEqual(self.read("out.npy"), npy_header((2, 4), "<f2") + pack_dtype("f16", sums))

    def test_axes(self):
        shape = (3, 4, 5, 6)
        for rank in range(1, 5):
            for axis in range(-rank, rank):
                for dtype, code in (("f32", "f"), ("f64", "d")):
                    words = ("--axis", axis, "--output-dtype", dtype)
                    self.check_raw(shape[:rank], axis % rank, *words, code=code)

    def test_npy(self):
        shape = (4, 3, 5)
        values = [float(i * 7 % 31 - 11) for i in range(60)]
        for version, big, fortran, wide, axis in itertools.product((1, 2, 3), (0, 1), (0, 1), (0, 1), (-1, 1, 0)):
            order = (lambda v: c_to_fortran(v, shape)) if fortran else list
            mark = ">" if big else "<"
            given = npy_header(shape, mark + "f4", bool(fortran), version) + packed(order(values), big=bool(big))
            self.write("in.npy", given)
            words = ("--axis", axis, "--output-dtype", "f64" if wide else "f32")
            self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"), *words)
            expected = order(scanned_array(values, shape, axis % 3, ("forward",)))
            header = npy_header(shape, mark + ("f8" if wide else "f4"), bool(fortran))
            self.assertEqual(self.read("out.npy"), header + packed(expected, "d" if wide else "f", bool(big)))

    def test_npy_without_samples(self):
        for shape in ((0,), (0, 7), (7, 0)):
            self.write("in.npy", npy_header(shape))
            self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"))
            self.assertEqual(self.read("out.npy"), npy_header(shape))

    def test_su(self):
        rows = [[float((i * 5 + j * 3) % 17 - 8) for j in range(49)] for i in range(11)]
        for big in (False, True):
            given = self.write("in.su", su_file(rows, big))
            self.succeed("scan", given, "-o", self.path("out.su"), "--passes", "forward,backward")
            expected = [scanned(row, ("forward", "backward")) for row in rows]
            self.assertEqual(self.read("out.su"), su_file(expected, big))
            self.succeed("scan", given, "-o", self.path("out.su"), "--axis", 0)
            columns = [scanned(column, ("forward",)) for column in map(list, zip(*rows))]
            self.assertEqual(self.read("out.su"), su_file(map(list, zip(*columns)), big))

    REDUCTIONS = {
        "sum": sum,
        "min": min,
        "max": max,
        "mean": lambda row: sum(row) / len(row),
        "rms": lambda row: math.sqrt(sum(x * x for x in row) / len(row)),
        "norm": lambda row: math.sqrt(sum(x * x for x in row)),
    }

    def test_reduce(self):
        rows = [[float((i * 5 + j * 3) % 17 - 8) for j in range(49)] for i in range(11)]
        given = self.write("in.su", su_file(rows, True))
        flat = self.write("in.raw", packed([x for row in rows for x in row]))
        for op, function in self.REDUCTIONS.items():
            for axis, lines in ((1, rows), (0, list(zip(*rows)))):
                expected = [function(line) for line in lines]
                for words in ((given,), (flat, "--shape", "11,49")):
                    printed = self.succeed("reduce", "--op", op, "--axis", axis, *words).decode().split()
                    self.assertEqual([float(text) for text in printed], expected)
                self.succeed("reduce", "--op", op, "--axis", axis, given, "-o", self.path("out.npy"))
                with open(self.path("out.npy"), "rb") as file:
                    header = file.read(128)
                    self.assertIn(f"'descr': '<f8', 'fortran_order': False, 'shape': ({len(expected)},)".encode(), header)
                    self.assertEqual(floats(file.read(), "d"), expected)
        self.succeed("reduce", "--op", "sum", given, "-o", self.path("out.raw"), "--output-dtype", "f32")
        self.assertEqual(floats(self.read("out.raw")), [sum(row) for row in rows])

    def test_reduce_integers_and_batches(self):
        """More than a batch takes, and sums that need 64 bits."""
        given = self.write("in.raw", struct.pack("=i", 2**31 - 1) * (20 << 20))
        words = ("--shape", "20,1048576", "--dtype", "i32")
        printed = self.succeed("reduce", "--op", "sum", given, *words).decode().split()
        self.assertEqual(printed, [str((2**31 - 1) << 20)] * 20)
        result = json.loads(self.succeed("reduce", "--op", "max", given, "--json", *words))
        self.assertEqual(result["results"], [2**31 - 1] * 20)
        self.assertEqual((result["rows"], result["samples"], result["output_dtype"]), (20, 1 << 20, "i32"))
        self.assertGreater(result["jobs"], 1)
        message = '"reduction" is "mean", but "input.dtype" "i32" is of integers; allowed: sum, min, max; .* "map", "op" "cast"'
        self.fail_with(64, message, "reduce", "--op", "mean", given, *words)
        printed = self.succeed("run", "map cast | reduce mean", "--output-dtype", "f64", given, *words).decode().split()
        self.assertEqual(printed, [str(2**31 - 1)] * 20)

    def test_reduce_ragged_rows(self):
        """Rows with and without samples, at once, in batches, and where there are no samples at all."""
        noise = random.Random(6)
        lengths = [noise.choice([0, 1, 16, 700, 20_000]) for _ in range(100)] + [0, 0]
        offsets = list(itertools.accumulate(lengths, initial=0))
        values = [float(noise.randrange(-3, 4)) for _ in range(offsets[-1])]
        given = self.write("in.npy", npy_header((len(values),)) + packed(values))
        words = ("--offsets", self.write("offsets", struct.pack(f"={len(offsets)}q", *offsets)))
        for op in ("sum", "norm"):
            expected = [self.REDUCTIONS[op](values[a:b]) for a, b in itertools.pairwise(offsets)]
            printed = self.succeed("reduce", "--op", op, given, *words).decode().split()
            self.assertEqual([float(text) for text in printed], expected)
        self.succeed("reduce", "--op", "norm", given, *words, "-o", self.path("out.npy"))
        self.assertIn(b"'shape': (102,)", self.read("out.npy")[:128])
        self.assertEqual(floats(self.read("out.npy")[128:], "d"), expected)
        report = json.loads(self.succeed("reduce", "--op", "sum", given, *words, "--json"))
        self.assertEqual((report["rows"], report["samples"], len(report["results"])), (102, 20_000, 102))
        empty = self.write("empty.npy", npy_header((0,)))
        for count in (0, 3):
            words = ("--offsets", self.write("offsets", struct.pack(f"={count + 1}q", *[0] * (count + 1))))
            self.assertEqual(self.succeed("reduce", "--op", "sum", empty, *words), b"0\n" * count)

    def test_reduce_ragged_rows_in_batches(self):
        """More rows than two jobs take, of which one has rows without samples only."""
        cut, count, holes = 4_000_003, 6_000_000, (2 << 20) + 5
        given = self.write("in.raw", packed([1.0]) * count)
        offsets = array.array("q", [0] + [cut] * holes + [count] * 3)
        words = ("--shape", count, "--offsets", self.write("offsets", offsets.tobytes()))
        report = json.loads(self.succeed("reduce", "--op", "sum", given, *words, "-o", self.path("out.raw"), "--json"))
        self.assertEqual((report["rows"], report["samples"]), (len(offsets) - 1, cut))
        self.assertEqual(report["jobs"], 3)
        result = array.array("d", self.read("out.raw"))
        self.assertEqual(len(result), len(offsets) - 1)
        self.assertEqual((result[0], result[holes], sum(result)), (cut, count - cut, count))

    def test_reduce_not_finite(self):
        given = self.write("in.raw", struct.pack("=4f", math.inf, 1, math.nan, 2))
        self.assertEqual(self.succeed("reduce", "--op", "max", given, "--shape", "2,2"), b"inf\nnan\n")
        result = json.loads(self.succeed("reduce", "--op", "max", given, "--shape", "2,2", "--json"))
        self.assertEqual(result["results"], [None, None])

    def test_reduce_usage(self):
        given = self.write("in.raw", packed([1.0] * 6))
        for message, words in (
            ("no --op; give --op sum, min, max, mean, rms or norm", (given,)),
            ("no --op; give --op sum, min, max, mean, rms or norm", ("rms", given)),
            ('--op is "median"; it may be sum, min, max', ("--op", "median", given)),
            ("no input", ("--op", "sum")),
            ("numbers without headers of traces; give a name that ends in .npy or .raw", ("--op", "sum", given, "-o", "x.su")),
            ('-o is "x.TXT", but files of results are no text; give a name that ends in .npy or .raw, or leave out -o', ("--op", "sum", given, "-o", "x.TXT")),
            ("--json and -o - would both", ("--op", "sum", given, "-o", "-", "--json")),
            ("--output-dtype is f16, which is not printed", ("--op", "sum", given, "--shape", 6, "--output-dtype", "f16")),
            ("--axis is 1, but .* has rank 1", ("--op", "sum", given, "--shape", 6, "--axis", 1)),
        ):
            self.fail_with(64, message, "reduce", *words)

    def test_su_byte_order_that_cannot_be_told(self):
        rows = [[float(j % 3) for j in range(257)]] * 3  # 257 is the same in both orders
        for order in ("big", "little"):
            given = self.write("in.su", su_file(rows, order == "big"))
            self.fail_with(65, "--byte-order big or --byte-order little", "scan", given, "-o", self.path("out.su"))
            self.succeed("scan", given, "-o", self.path("out.su"), "--byte-order", order)
            expected = [scanned(row, ("forward",)) for row in rows]
            self.assertEqual(self.read("out.su"), su_file(expected, order == "big"))

    def test_pipes(self):
        values = [float(i % 5) for i in range(3000)]
        sums = packed(scanned_array(values, (3, 1000), 1, ("forward",)))
        out = self.succeed("scan", "--shape", "3,1000", "-", "-o", "-", input=packed(values))
        self.assertEqual(out, sums)
        out = self.succeed("scan", "--format", "npy", "-", "-o", "-", input=npy_header((3, 1000)) + packed(values))
        self.assertEqual(out, npy_header((3, 1000)) + sums)
        self.fail_with(65, "ends after 11996 bytes", "scan", "--shape", "3,1000", "-", "-o", "-", input=packed(values[1:]))
        self.fail_with(65, "goes on after", "scan", "--shape", "2,1000", "-", "-o", "-", input=packed(values))
        self.fail_with(65, "is 0 bytes, less than an SU trace", "scan", "--format", "su", "-", "-o", "-", input=b"")

    def test_big_raw(self):
        values = [1.0, 2.0, 3.0, -7.0]
        self.write("in.bin", packed(values, big=True))
        self.succeed("scan", self.path("in.bin"), "-o", self.path("out"), "--shape", 4, "--byte-order", "big")
        self.assertEqual(floats(self.read("out"), big=True), [1.0, 3.0, 6.0, -1.0])

    def test_many_batches(self):
        """More than the daemon's whole pool: the batches' borders must not be seen."""
        rows, samples = 1201, 16384
        row = [float(j % 7 - 3) for j in range(samples)]
        with open(self.path("in.raw"), "wb") as file:
            for i in range(rows):
                row[0] = float(i)
                file.write(packed(row))
        words = ("scan", self.path("in.raw"), "-o", self.path("out.raw"), "--shape", "%d,%d" % (rows, samples), "--json")
        report = json.loads(self.succeed(*words))
        self.assertGreater(report["jobs"], 1)
        row[0] = 0.0
        expected = scanned(row, ("forward",))
        self.assertEqual(os.path.getsize(self.path("out.raw")), rows * samples * 4)
        with open(self.path("out.raw"), "rb") as file:
            for i in range(rows):
                self.assertEqual(file.read(samples * 4), packed([value + i for value in expected]))


class RealFiles(ScanctlTest):
    PASSES = ("forward", "backward")

    def data(self, name):
        path = os.path.join(scanctl_rig.ARGUMENTS.data, name)
        if not os.path.exists(path):
            self.skipTest("no " + name + " in the data folder")
        with open(path, "rb") as file:
            return path, file.read()

    def check_rows(self, rows, found):
        few = random.Random(3).sample(range(len(rows)), 4)
        expected, rounded = [], []
        for i in few:
            expected += exact(rows[i], self.PASSES)
            rounded += found[i]
        self.assert_rounded(rounded, expected)
        for row, result in zip(rows, found):
            self.assert_near(result, scanned(row, self.PASSES, between=f32))

    def test_npy(self):
        path, given = self.data("mobil.npy")
        self.succeed("scan", path, "-o", self.path("out.npy"), "--passes", "forward,backward")
        out = self.read("out.npy")
        self.assertEqual(out[:128], given[:128])
        rows = [floats(given[128 + i * 4000 : 4128 + i * 4000], big=False) for i in range(60)]
        self.check_rows(rows, [floats(out[128 + i * 4000 : 4128 + i * 4000], big=False) for i in range(60)])

    def test_npy_wide(self):
        path, given = self.data("mobil.npy")
        words = ("--passes", "forward,backward", "--output-dtype", "f64", "--intermediate", "f64")
        self.succeed("scan", path, "-o", self.path("out.npy"), *words)
        out = self.read("out.npy")
        for i in range(60):
            row = floats(given[128 + i * 4000 : 4128 + i * 4000], big=False)
            found = floats(out[128 + i * 8000 : 8128 + i * 8000], "d", big=False)
            self.assert_near(found, scanned(row, self.PASSES), 1e-13)

    def check_su(self, name, ns, big):
        path, given = self.data(name)
        self.succeed("scan", path, "-o", self.path("out.su"), "--passes", "forward,backward")
        out, trace = self.read("out.su"), 240 + 4 * ns
        self.assertEqual(len(out), len(given))
        rows, found = [], []
        for at in range(0, len(given), trace):
            self.assertEqual(out[at : at + 240], given[at : at + 240])
            rows.append(floats(given[at + 240 : at + trace], big=big))
            found.append(floats(out[at + 240 : at + trace], big=big))
        self.check_rows(rows, found)

    def test_su_big(self):
        self.check_su("shots_be.su", 251, True)

    def test_su_little(self):
        self.check_su("gather_le.su", 1001, False)


class Output(ScanctlTest):
    """The output appears whole or not at all."""

    def start(self, *words):
        """A scan that waits for the rest of its input."""
        command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "--shape", "2,100", "-", "-o", self.path("out")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(packed([1.0] * 150))
        process.stdin.flush()
        deadline = time.monotonic() + TIMEOUT_S
        while not any(name.startswith(".out") or ".scanctl." in name for name in self.files()):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        return process

    def test_replaced_when_done(self):
        self.write("out", b"old")
        os.chmod(self.path("out"), 0o640)
        inode = os.stat(self.path("out")).st_ino
        process = self.start()
        self.assertEqual(self.read("out"), b"old")
        process.communicate(packed([1.0] * 50))
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.files(), ["out"])
        self.assertEqual(floats(self.read("out")), [float(i % 100 + 1) for i in range(200)])
        self.assertNotEqual(os.stat(self.path("out")).st_ino, inode)
        self.assertEqual(os.stat(self.path("out")).st_mode & 0o777, 0o640)

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.write("out", b"old")
            process = self.start()
            process.send_signal(number)
            process.communicate()
            self.assertEqual(process.returncode, -number)
            self.assertEqual(self.files(), ["out"])
            self.assertEqual(self.read("out"), b"old")

    def test_input_cut(self):
        self.write("out", b"old")
        process = self.start()
        error = process.communicate()[1]
        self.assertEqual((process.returncode, self.files(), self.read("out")), (65, ["out"], b"old"), error)

    def test_permissions(self):
        given = self.write("in.raw", packed([1.0]))
        self.succeed("scan", given, "--shape", 1, "-o", self.path("out"), preexec_fn=lambda: os.umask(0o037))
        self.assertEqual(os.stat(self.path("out")).st_mode & 0o777, 0o640)

    def test_owner_is_kept(self):
        if os.geteuid():
            self.skipTest("giving files away needs root")
        given = self.write("in.raw", packed([1.0]))
        os.chown(self.write("out", b"old"), 1234, 5678)
        self.succeed("scan", given, "--shape", 1, "-o", self.path("out"))
        status = os.stat(self.path("out"))
        self.assertEqual((status.st_uid, status.st_gid), (1234, 5678))

    def test_output_is_a_link(self):
        """The file behind the link is made, or replaced, and the link stays."""
        given = self.write("in.raw", packed([1.0] * 4))
        os.mkdir(self.path("far"))
        os.symlink("far/second", self.path("first"))
        os.symlink(self.path("out"), self.path("far/second"))
        for _ in range(2):
            self.succeed("scan", given, "--shape", 4, "-p", "forward", "-o", self.path("first"))
            self.assertEqual(os.readlink(self.path("first")), "far/second")
            self.assertFalse(os.path.islink(self.path("out")))
            self.assertEqual(os.path.getsize(self.path("out")), 16)
        os.symlink("missing/out", self.path("gone"))
        self.fail_with(73, "cannot be created", "scan", given, "--shape", 4, "-p", "forward", "-o", self.path("gone"))

    def test_file_size_limit(self):
        given = self.write("in.raw", packed([1.0] * 1000))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        words = ("scan", given, "--shape", 1000, "-o", self.path("out"))
        self.fail_with(74, 'writing fails after 1000 bytes: File too large; raise "ulimit -f"', *words, preexec_fn=limit)
        with open(self.path("direct"), "wb") as file:
            for words, text in ((("scan", given, "--shape", 1000, "-o", "-"), " after 1000 bytes"), (("kernels",), "")):
                command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, *map(str, words)]
                result = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, preexec_fn=limit, timeout=60)
                self.assertEqual(result.returncode, 74)
                self.assertIn(f'standard output: writing fails{text}: File too large; raise "ulimit -f"', result.stderr.decode())

    def test_same_file(self):
        path = self.write("x.npy", npy_header((2, 3)) + packed([1.0] * 6))
        self.succeed("scan", path, "-o", path)
        self.assertEqual(self.read("x.npy"), npy_header((2, 3)) + packed([1.0, 2.0, 3.0] * 2))

    def test_memory(self):
        """A file of three times the pool goes through less than the pool and 16 MiB."""
        if scanctl_rig.ARGUMENTS.sanitized:
            self.skipTest("sanitizers take memory of their own")
        size = 200 << 20
        with open(self.path("in.raw"), "wb") as file:
            file.truncate(size)
        for dtype, factor in (("f32", 1), ("f64", 2)):
            command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "--shape", "5120,10240", "--output-dtype", dtype]
            process = subprocess.Popen(command + [self.path("in.raw"), "-o", "-"], stdout=subprocess.PIPE, bufsize=0)
            left = size * factor
            while left > 4 << 20:  # more than the pipe holds: it then waits to write the rest
                left -= len(process.stdout.read(1 << 20))
            with open("/proc/%d/status" % process.pid) as file:
                kib = {line.split()[0]: int(line.split()[1]) for line in file if line.endswith("kB\n")}
            rest = process.communicate()[0]
            self.assertEqual((process.returncode, len(rest)), (0, left))
            self.assertLess(kib["VmHWM:"], (64 + 16) << 10)
            self.assertLess(kib["VmHWM:"] - kib["RssShmem:"], 16 << 10)


class Questions(ScanctlTest):
    def test_ping(self):
        self.assertRegex(self.succeed("ping").decode(), r"\Ascand .*: \d+ us\n\Z")
        report = json.loads(self.succeed("ping", "--json"))
        self.assertRegex(report["server"], "^scand ")
        self.assertGreaterEqual(report["round_trip_us"], 0)

    def test_devices(self):
        lines = self.succeed("devices").decode().splitlines()
        self.assertRegex(lines[0], "^device +backend +memory MiB")
        self.assertRegex(lines[1], "^ +0 cpu ")
        devices = json.loads(self.succeed("devices", "--json"))
        self.assertEqual(devices[0]["backend"], "cpu")
        self.assertEqual(len(devices), len(lines) - 1)

    def test_kernels(self):
        lines = self.succeed("kernels").decode().splitlines()
        self.assertRegex(lines[0], "^name +operation +backend +dtype +accumulators +bits")
        self.assertRegex(lines[1], "^serial-cpu +scan +cpu +f32 +f32,f64,f2 +repeat +the definition: ")
        kernels = json.loads(self.succeed("kernels", "--json"))
        self.assertEqual([kernel["name"] for kernel in kernels], [line.split()[0] for line in lines[1:]])
        self.assertEqual((kernels[0]["backend"], kernels[0]["accumulators"]), ("cpu", ["f32", "f64", "f2"]))
        vary = [kernel["name"] for kernel in kernels if not kernel["repeatable"]]
        self.assertEqual(vary, ["cub-by-key", "tensor-norm-3", "tensor-norm-4", "tensor-norm-5", "dot-atomic", "dot-pairs", "dot-fast-atomic", "index-add-atomic"])
        pairs = next(kernel for kernel in kernels if kernel["name"] == "map-pairs")
        self.assertEqual((pairs["operation"], pairs["dtype"], pairs["accumulators"], pairs["reductions"]), ("map", "f16", [], []))
        self.assertRegex("\n".join(lines), "(?m)^map-pairs +map +cuda +f16 +- +repeat ")

    def test_stats(self):
        counters = json.loads(self.succeed("--socket", scanctl_rig.DAEMON.socket, "stats", "--json"))
        lines = dict(line.split() for line in self.succeed("stats").decode().splitlines())
        self.assertEqual(set(lines), set(counters))
        self.assertTrue(all(isinstance(value, int) for value in counters.values()))

    def test_scan_report(self):
        given = self.write('in "1".raw', packed([1.0] * 1000))
        words = ("scan", given, "-o", self.path("out"), "--shape", "10,100", "--passes", "forward,backward", "--json")
        report = json.loads(self.succeed(*words, "--output-dtype", "f64"))
        self.assertEqual((report["rows"], report["samples"], report["jobs"]), (10, 100, 1))
        self.assertEqual((report["input_bytes"], report["output_bytes"]), (4000, 8000))
        self.assertEqual((report["input"], report["passes"]), (given, ["forward", "backward"]))
        self.assertEqual((report["backend"], report["accumulator"]), ("cpu", "f64"))

    def test_demo(self):
        lines = self.succeed("demo", "--traces", 300, "--samples", 1001, "--seed", 3).decode().splitlines()
        self.assertRegex(lines[-1], r"^300 traces x 1,001 samples on .* \(cpu\): .*s, [\d.]+ GB/s, each sample within the rounding")
        report = json.loads(self.succeed("demo", "--traces", 30, "--samples", 101, "--json"))
        self.assertEqual((report["traces"], report["samples"], report["warm_up_jobs"]), (30, 101, 1))

    def test_demos_at_once(self):
        """Each needs more than half of the pool: they run one after the other, and none fails."""
        words = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "demo", "--traces", "3000", "--samples", "2000"]
        demos = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        for demo in demos:
            errors = demo.communicate(timeout=120)[1]
            self.assertEqual((demo.returncode, errors), (0, b""))

    def test_scans_at_once(self):
        """Scans run at once, with a row whose two arrays are half of the pool."""
        row = self.write("row.raw", bytes(8 << 20))
        words = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "--dtype", "i32", "--output-dtype", "i64",
                 "--shape", str(2 << 20), row, "-o"]
        scans = [subprocess.Popen([*words, self.path(f"{i}.raw")], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(6)]
        for scan in scans:
            errors = scan.communicate(timeout=120)[1]
            self.assertEqual((scan.returncode, errors), (0, b""))

    def test_demo_against_the_reference(self):
        if not scanctl_rig.ARGUMENTS.demo:
            self.skipTest("no --demo was given")
        command = [scanctl_rig.ARGUMENTS.demo, "--socket", scanctl_rig.DAEMON.socket, "--traces", "300", "--samples", "1001"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        text = r"^300 traces x 1,001 samples on .* \(cpu\): .*s, [\d.]+ GB/s, identical to the reference$"
        self.assertRegex(result.stdout.decode().splitlines()[-1], text)

    def test_socket_from_the_environment(self):
        environment = dict(os.environ, SCAND_SOCKET=scanctl_rig.DAEMON.socket)
        result = subprocess.run([scanctl_rig.ARGUMENTS.scanctl, "ping"], env=environment, stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    scanctl_rig.main()

#!/usr/bin/env python3
"""scanctl run and scanctl operations: the same files as of scan and reduce, what is refused, the daemon's list.
scanctl_rig.py says how to call it.
"""

import json
import os
import random
import re
import struct
import subprocess

import scanctl_rig
from forms import f32, npy_header, packed, segy_file, su_file
from scanctl_rig import ScanctlTest


class Run(ScanctlTest):
    SHAPE = (40, 300)

    def setUp(self):
        super().setUp()
        generator = random.Random(5)
        self.values = [f32(generator.random() - 0.25) for _ in range(self.SHAPE[0] * self.SHAPE[1])]
        self.npy = self.write("in.npy", npy_header(self.SHAPE) + packed(self.values))
        rows = [self.values[i : i + self.SHAPE[1]] for i in range(0, len(self.values), self.SHAPE[1])]
        self.su = self.write("in.su", su_file(rows, True))

    def check_same(self, given, steps, words, *options):
        """Checks that run gives the same bytes as scan with these words."""
        extension = os.path.splitext(given)[1]
        self.succeed("run", steps, given, "-o", self.path("run" + extension), *options)
        self.succeed("scan", *words, given, "-o", self.path("scan" + extension), *options)
        self.assertEqual(self.read("run" + extension), self.read("scan" + extension))

    def test_same_as_scan(self):
        chain = "scan forward,backward accumulator=f2 demean kind=exclusive | scan backward op=max|scan passes=forward op=affine coefficient=-0.5"
        words = ("--passes", "forward,backward", "--accumulator", "f2", "--demean", "--kind", "exclusive")
        words += ("--then", "backward,op=max", "--then", "forward,op=affine,coefficient=-0.5")
        for given in (self.npy, self.su):
            self.check_same(given, "scan forward", ())
            self.check_same(given, "scan backward kind=half", ("--passes", "backward", "--kind", "half"))
            self.check_same(given, "scan forward,backward kind=trapezoid", ("--passes", "forward,backward", "--kind", "trapezoid"))
            self.check_same(given, chain, words)
        self.check_same(self.npy, "scan forward", (), "--axis", "0", "--output-dtype", "f64", "--priority", "high", "--deadline", "60000")

    def test_algorithm(self):
        """The algorithm is that of the first step: a scan's by name, and the daemon's message where it has none."""
        for given in (self.npy, self.su):
            self.check_same(given, "scan forward | scan backward", ("--then", "backward"), "--algorithm", "serial-cpu")
        out = ("-o", self.path("out.npy"), "--algorithm")
        report = json.loads(self.succeed("run", "scan forward", self.npy, *out, "serial-cpu", "--json"))
        self.assertEqual((report["steps"], report["algorithm"]), ("scan forward", "serial-cpu"))
        self.fail_with(64, '"algorithm" is "fastest"; there are: map-naive, map-packs, map-pairs', "run", "map neg", self.npy, *out, "fastest")
        self.fail_with(64, '"algorithm" is "map-packs", which this .* --device cuda can', "run", "map neg", self.npy, *out, "map-packs")
        self.fail_with(64, '"algorithm" is given, and "diff" has none', "run", "diff first", self.npy, *out, "map-packs")
        self.fail_with(64, "steps are not scans alone, or a single one", "run", "map neg | map abs", self.npy, *out, "map-packs")
        self.fail_with(64, '--algorithm is ""; see scanctl kernels', "run", "map neg", self.npy, *out, "")

    def test_a_file_beside_the_input(self):
        factors = self.write("factors.npy", npy_header(self.SHAPE) + packed([f32(i % 3 / 4) for i in range(len(self.values))]))
        self.check_same(self.npy, f'scan forward op=affine coefficients="{factors}" | scan backward', ("--op", "affine", "--coefficients", factors, "--then", "backward"))
        short = self.write("short.npy", npy_header((2, 2)) + packed([1.0] * 4))
        out = ("-o", self.path("out.npy"))
        twice = f'scan forward op=affine coefficients="{factors}"'
        self.succeed("run", f"{twice} | {twice}", self.npy, "-o", self.path("twice.npy"))
        self.succeed("scan", "--op", "affine", "--coefficients", factors, self.npy, "-o", self.path("once.npy"))
        self.succeed("scan", "--op", "affine", "--coefficients", factors, self.path("once.npy"), "-o", self.path("again.npy"))
        self.assertEqual(self.read("twice.npy"), self.read("again.npy"))
        raw = self.write("factors.raw", b"1234")
        self.fail_with(64, "factors.raw: give a file that says what it holds", "run", f'scan forward op=affine coefficients="{raw}"', self.npy, *out)
        self.fail_with(65, 'short.npy: holds 2 x 2 numbers for "coefficients"', "run", f'scan forward op=affine coefficients="{short}"', self.npy, *out)
        behind = f'demean | map mul other="{factors}" | reduce rms'
        self.fail_with(64, 'step 2, "other.dtype" is "f32"; allowed with --output-dtype "f64": f64', "run", behind, self.npy)
        self.succeed("run", behind, self.npy, "--output-dtype", "f32")
        none = self.path("none.npy")
        self.fail_with(66, "none.npy: cannot be opened", "run", f'scan forward op=affine coefficients="{none}"', self.npy, *out)

    def test_a_vector_beside_all_rows(self):
        """A vector of as many elements as rows have samples gives the same as an array of the input's shape whose rows all are that vector."""
        rows, length = self.SHAPE
        for axis, count in (0, rows), (1, length):
            vector = [f32(i % 7 / 4) for i in range(count)]
            whole = [vector[i % length if axis else i // length] for i in range(rows * length)]
            one = self.write("one.npy", npy_header((count,)) + packed(vector))
            all_rows = self.write("all.npy", npy_header(self.SHAPE) + packed(whole))
            for given in (self.npy, self.su)[: 1 + axis]:
                made = []
                for file in one, all_rows:
                    steps = f'map add other="{file}" | scan forward op=affine coefficients="{file}"'
                    self.succeed("run", steps, given, "-o", self.path("made" + os.path.splitext(given)[1]), "--axis", axis)
                    made.append(self.read("made" + os.path.splitext(given)[1]))
                self.assertEqual(*made)
        long = self.write("long.npy", npy_header((rows + 1,)) + packed([1.0] * (rows + 1)))
        message = r'long.npy: holds 41 numbers for "other", but .*in.npy holds 40 x 300 samples; give one for each, or a vector of 300 for all rows'
        self.fail_with(65, message, "run", f'map add other="{long}"', self.npy, "-o", self.path("out.npy"))
        message = r'one.npy: holds 300 numbers for "other", but step 2 takes 40 x 600 beside .*in.npy; give as many, or a vector of 600 for all rows'
        self.fail_with(65, message, "run", f'upsample 2 | map add other="{one}"', self.npy, "-o", self.path("out.npy"))

    def test_lengths(self):
        """Rows that become longer: in .npy and raw files, along any axis, through pipes, in batches, with a file for a later step."""
        rows, length = self.SHAPE
        wide = [value for value in self.values for _ in range(3)]
        tall = [value for r in range(rows) for _ in range(2) for value in self.values[r * length : (r + 1) * length]]
        for given in (self.npy, self.su):
            self.succeed("run", "upsample 3", given, "-o", self.path("wide.npy"))
            self.assertEqual(self.read("wide.npy"), npy_header((rows, 3 * length)) + packed(wide))
        self.succeed("run", "upsample factor=2", self.npy, "-o", self.path("tall.raw"), "--axis", "0")
        self.assertEqual(self.read("tall.raw"), packed(tall))
        with open(self.npy, "rb") as given:
            self.assertEqual(self.succeed("run", "upsample 3 | scan forward | upsample 1", "-", "-o", self.path("longer.npy"), input=given.read()), b"")
        with open(self.npy, "rb") as given:
            self.assertEqual(self.succeed("run", "upsample 3", "-", "-o", "-", input=given.read()), npy_header((rows, 3 * length)) + packed(wide))
        self.succeed("run", "upsample 3", self.npy, "-o", self.path("wide"))
        self.assertEqual(self.read("wide"), npy_header((rows, 3 * length)) + packed(wide))
        raw = ("-", "-o", "-", "--format", "raw", "--dtype", "f32", "--shape", f"-1,{length}")
        self.assertEqual(self.succeed("run", "upsample 3", *raw, input=packed(self.values)), packed(wide))
        self.succeed("scan", self.path("wide.npy"), "-o", self.path("scanned.npy"))
        self.assertEqual(self.read("longer.npy"), self.read("scanned.npy"))
        many = self.write("many.npy", npy_header((70 * rows, length)) + packed(self.values) * 70)
        self.succeed("run", "upsample 12", many, "-o", self.path("many.raw"))
        self.assertEqual(self.read("many.raw"), packed([value for value in self.values for _ in range(12)]) * 70)
        factors = self.write("factors.npy", npy_header((rows, 3 * length)) + packed([f32(i % 3 / 4) for i in range(len(wide))]))
        self.succeed("run", f'upsample 3 | scan forward op=affine coefficients="{factors}"', self.npy, "-o", self.path("run.npy"))
        self.succeed("scan", "--op", "affine", "--coefficients", factors, self.path("wide.npy"), "-o", self.path("scan.npy"))
        self.assertEqual(self.read("run.npy"), self.read("scan.npy"))
        self.assertEqual(self.succeed("run", "upsample 3 | reduce sum", self.npy, "-T", "f32"), self.succeed("reduce", "--op", "sum", self.path("wide.npy"), "-T", "f32"))
        out = ("-o", self.path("out.npy"))
        message = r'factors.npy: holds 40 x 900 numbers for "coefficients", but .*in.npy holds 40 x 300 samples'
        self.fail_with(65, message, "run", f'scan forward op=affine coefficients="{factors}"', self.npy, *out)
        message = r'factors.npy: holds 40 x 900 numbers for "coefficients", but step 2 takes 40 x 600 beside .*in.npy'
        self.fail_with(65, message, "run", f'upsample 2 | scan forward op=affine coefficients="{factors}"', self.npy, *out)
        message = "its rows have 300 samples, and the steps leave 600 of them, which headers would not say"
        self.fail_with(64, message, "run", "upsample 2", self.su, "-o", self.path("out.su"))
        self.fail_with(64, r'step 1, "factor" is 0; allowed: 1 to 65536; see scanctl operations', "run", "upsample 0", self.npy, *out)
        whole = self.write("whole.npy", npy_header((2, 3), "<i8") + packed(range(6), "q"))
        message = r'step 1, "input.dtype" is "i64"; allowed with "operation" "demean": f32, .*f64be; or give f32 or f64 as --output-dtype, and a step before with'
        self.fail_with(64, message, "run", "demean", whole, *out)
        self.succeed("run", "map cast | demean", whole, "-T", "f32", *out)
        self.assertEqual(self.read("out.npy"), npy_header((2, 3)) + packed([-1, 0, 1] * 2))
        self.fail_with(64, "whole numbers from 1 to 65536", "run", "upsample 65537", self.npy, *out)

    def test_ragged_rows(self):
        line = self.write("line.npy", npy_header((len(self.values),)) + packed(self.values))
        offsets = self.write("offsets.raw", b"".join(n.to_bytes(8, "little") for n in (0, 7, 7, 5000, len(self.values))))
        self.check_same(line, "scan forward,backward", ("--passes", "forward,backward"), "--offsets", offsets)
        words = (line, "--offsets", offsets)
        self.assertEqual(self.succeed("run", "reduce sum", *words), self.succeed("reduce", "--op", "sum", *words))

    def test_same_as_reduce(self):
        for op in ("sum", "min", "max", "mean", "rms", "norm"):
            self.assertEqual(self.succeed("run", f"reduce {op}", self.su), self.succeed("reduce", "--op", op, self.su))
        self.succeed("run", "reduce reduction=norm", self.npy, "-o", self.path("run.npy"), "--axis", "0")
        self.succeed("reduce", "--op", "norm", self.npy, "-o", self.path("reduce.npy"), "--axis", "0")
        self.assertEqual(self.read("run.npy"), self.read("reduce.npy"))
        told = json.loads(self.succeed("run", "reduce max", self.npy, "--json"))
        self.assertEqual((told["steps"], told["rows"], len(told["results"])), ("reduce max", 40, 40))
        whole = self.write("whole.npy", npy_header((3,), "<i4") + b"".join(n.to_bytes(4, "little") for n in (5, 6, 7)))
        self.assertEqual(self.succeed("run", "reduce sum", whole), b"18\n")

    def test_several_axes(self):
        """Several axes give what the same numbers give along one axis."""
        shape = (2, 5, 30, 40)
        cube = self.write("cube.npy", npy_header(shape) + packed(self.values))
        for axes, flat, axis, kept in (
            ("all", (12000,), "0", (1,)),
            ("2,3", (2, 5, 1200), "2", (2, 5)),
            ("1,0", (10, 30, 40), "0", (30, 40)),
            ("time,-2,1", (2, 6000), "1", (2,)),
            ("3", (2, 5, 30, 40), "3", (2, 5, 30)),
        ):
            line = self.write("flat.npy", npy_header(flat) + packed(self.values))
            one = self.succeed("reduce", "--op", "norm", line, "--axis", axis)
            self.assertEqual(self.succeed("reduce", "--op", "norm", cube, "--axis", axes), one)
            chain = self.succeed("run", "demean | map abs | reduce norm", line, "--axis", axis)
            self.assertEqual(self.succeed("run", "demean | map abs | reduce norm", cube, "--axis", axes), chain)
            self.succeed("reduce", "--op", "norm", cube, "--axis", axes, "-o", self.path("out.npy"))
            self.assertTrue(self.read("out.npy").startswith(npy_header(kept, "<f8")))
            other = self.succeed("run", f'dot other="{line}"', line, "--axis", axis)
            self.assertEqual(self.succeed("run", f'dot other="{cube}"', cube, "--axis", axes), other)
        gap = self.write("gap.npy", npy_header((40, 1, 300)) + packed(self.values))
        self.assertEqual(self.succeed("reduce", "--op", "sum", gap, "--axis", "0,2").count(b"\n"), 1)

    def test_wrong_axes(self):
        cube = self.write("cube.npy", npy_header((2, 20, 300)) + packed(self.values))
        fortran = self.write("fortran.npy", npy_header(self.SHAPE, fortran=True) + packed(self.values))
        line = self.write("line.npy", npy_header((300,)) + packed(self.values[:300]))
        other = self.write("other.npy", npy_header((20, 2, 300)) + packed(self.values))
        out = ("-o", self.path("out.npy"))
        reduction = ("reduce", "--op", "sum")
        for message, code, words in (
            ("cube.npy that axis 1 lies between; save it with the axis before or behind them", 64, (*reduction, cube, "--axis", "0,2")),
            ("in.su have headers between them; give one axis, or save its samples without headers", 64, (*reduction, self.su, "--axis", "all")),
            ("fortran.npy is in Fortran order; save it in C order", 64, (*reduction, fortran, "--axis", "all")),
            ('--axis is "0,-3", which names axis 0 of .*cube.npy twice', 64, (*reduction, cube, "--axis", "0,-3")),
            ("--axis is 3, but .*cube.npy has rank 3", 64, (*reduction, cube, "--axis", "0,3")),
            ('--axis is "0,"; give an axis after each comma', 64, (*reduction, cube, "--axis", "0,")),
            ('--axis is ""; it may be', 64, (*reduction, cube, "--axis", ",0")),
            ('--axis is "0,1", but several axes are for reductions; name one', 64, ("scan", self.npy, *out, "--axis", "0,1")),
            ('--axis is "all", but several axes are for reductions; name one', 64, ("run", "map abs", self.npy, *out, "--axis", "all")),
            ('--axis is "all", but step 1 makes rows longer or shorter', 64, ("run", "upsample 2 | reduce sum", cube, "--axis", "all")),
            ("other=.*line.npy: holds a number for each sample of one axis; give one for each sample of the input", 64, ("run", f'dot other="{line}"', cube, "--axis", "all")),
            ('other.npy: holds 20 x 2 x 300 numbers for "other"', 65, ("run", f'dot other="{other}"', cube, "--axis", "0,1")),
        ):
            self.fail_with(code, message, *words)

    def test_a_reduction_behind_scans(self):
        """Values between the steps have the type of the results."""
        self.succeed("scan", "--passes", "forward,backward", "--output-dtype", "f64", "--then", "backward,op=max", self.npy, "-o", self.path("between.npy"))
        expected = self.succeed("reduce", "--op", "rms", self.path("between.npy"))
        self.assertEqual(self.succeed("run", "scan forward,backward | scan backward op=max | reduce rms", self.npy), expected)

    def test_products_with_a_file(self):
        """Products with ones are sums. They are printed, or written, as those of reduce are."""
        ones = self.write("ones.npy", npy_header(self.SHAPE) + packed([1.0] * len(self.values)))
        self.assertEqual(self.succeed("run", f'dot other="{ones}"', self.npy), self.succeed("reduce", "--op", "sum", self.npy))
        self.succeed("run", f'dot "{ones}"', self.npy, "-o", self.path("run.npy"), "--axis", "0")
        self.succeed("reduce", "--op", "sum", self.npy, "-o", self.path("reduce.npy"), "--axis", "0")
        self.assertEqual(self.read("run.npy"), self.read("reduce.npy"))

    def test_stacks(self):
        """Traces into bins of two gathers, and how many samples each bin has."""
        (rows, length), out = self.SHAPE, ("-o", self.path("stacked.npy"), "--axis", "0")
        index = self.write("index.npy", npy_header((rows,), "<i8") + packed([2 * (i % 2) for i in range(rows)], "q"))
        fold = self.path("fold.npy")
        self.succeed("run", f'stack index="{index}" bins=3 norm=fold fold="{fold}"', self.npy, *out)
        folds, means = [0] * (3 * length), [0.0] * (3 * length)
        for i in range(rows):
            for t, value in enumerate(self.values[i * length : (i + 1) * length]):
                means[2 * (i % 2) * length + t] += value
                folds[2 * (i % 2) * length + t] += value != 0
        means = [f32(total / fold) if fold else 0.0 for total, fold in zip(means, folds)]
        self.assertEqual(self.read("stacked.npy"), npy_header((3, length)) + packed(means))
        self.assertEqual(self.read("fold.npy"), npy_header((3, length), "<i8") + packed(folds, "q"))
        message = r'step 2, "index"\[1\] is 2; allowed: 0 to 1; nothing has been written; see'
        os.remove(self.path("stacked.npy"))
        self.fail_with(64, message, "run", f'scan forward | stack index="{index}" bins=2', self.npy, *out)
        self.assertNotIn("stacked.npy", self.files())

    def test_picks_and_half_widths(self):
        """Vectors for all rows: a pick at a sample is the triangle there."""
        (rows, length), out = self.SHAPE, ("-o", self.path("out.npy"), "--output-dtype", "f64")
        places = self.write("places.npy", npy_header((length,)) + packed(range(length)))
        widths = self.write("widths.npy", npy_header((length,)) + packed([3.0] * length))
        half_widths = self.write("half.npy", npy_header((length,), "<i4") + packed([4] * length, "i"))
        self.succeed("run", f'triangle half-width=9 boundary=skip half_widths="{half_widths}"', self.npy, *out)
        expected = struct.unpack(f"<{rows * length}d", self.read("out.npy")[-8 * rows * length :])
        self.succeed("run", f'scan forward,backward accumulator=f64 intermediate=f64 | pick position="{places}" half_width="{widths}"', self.npy, *out)
        picked = struct.unpack(f"<{rows * length}d", self.read("out.npy")[-8 * rows * length :])
        self.assertLess(max(abs(a - b) for a, b in zip(picked, expected)), 1e-9)
        self.assertGreater(max(map(abs, expected)), 0.1)
        message = r'step 1, element 0 of "half_widths" for row 0 is 4; allowed: 1 to 3; nothing has been written'
        self.fail_with(64, message, "run", f'triangle half-width=3 half_widths="{half_widths}"', self.npy, "-o", self.path("new.npy"))

    def test_added_onto_a_file(self):
        """The file stays as it is; the output may be its next version."""
        (rows, length), out = self.SHAPE, ("-o", self.path("added.npy"), "--axis", "0")
        index = self.write("index.npy", npy_header((rows,), "<i8") + packed([i % 3 for i in range(rows)], "q"))
        onto = self.write("onto.npy", npy_header((3, length)) + packed([1.5] * (3 * length)))
        self.succeed("run", f'index-add index="{index}" onto="{onto}" alpha=-2', self.npy, *out)
        sums = [1.5] * (3 * length)
        for i in range(rows):
            for t, value in enumerate(self.values[i * length : (i + 1) * length]):
                sums[i % 3 * length + t] += -2 * value
        self.assertEqual(self.read("added.npy"), npy_header((3, length)) + packed(map(f32, sums)))
        self.assertEqual(self.read("onto.npy"), npy_header((3, length)) + packed([1.5] * (3 * length)))
        os.remove(self.path("added.npy"))
        narrow = self.write("narrow.npy", npy_header((3, 7)) + packed([1.5] * 21))
        message = r'narrow.npy: holds 3 x 7 numbers for "onto", but step 1 takes 3 x 300 beside '
        self.fail_with(65, message, "run", f'index-add index="{index}" onto="{narrow}"', self.npy, *out)
        self.fail_with(64, r"step 1 .index-add.: onto is missing; give onto=FILE.npy; see", "run", f'index-add index="{index}"', self.npy, *out)
        self.assertNotIn("added.npy", self.files())

    def test_pipes_and_folders(self):
        self.check_same(self.su, "scan forward", ())
        with open(self.su, "rb") as given:
            self.assertEqual(self.succeed("run", "scan forward", "-", "-o", "-", input=given.read()), self.read("scan.su"))
        os.mkdir(self.path("results"))
        told = self.succeed("run", "scan forward", self.su, self.npy, "-o", self.path("results"), "--json").decode().splitlines()
        self.assertEqual([json.loads(line)["steps"] for line in told], ["scan forward"] * 2)
        self.assertEqual(self.read("results/in.su"), self.read("scan.su"))

    def test_refused_without_a_daemon(self):
        """Steps are refused before a file is opened or a daemon is asked, except for what is said of files."""
        out = ("-o", self.path("out.npy"))
        cases = [
            ("", "step 1: it is empty; give an operation"),
            ("scam forward", 'step 1: operation is "scam"; there are: scan, reduce'),
            ("scan", r"step 1 \(scan\): passes is missing; give passes=VALUE, of forward,backward"),
            ("scan forward demaen", r'step 1 \(scan\), "demaen": it is no flag of this operation'),
            ("scan forward | reduce redaction=sum", r'step 2 \(reduce\), "redaction=sum": .* it takes: reduction; see scanctl operations'),
            ("scan forward kind=both", "allowed: inclusive, exclusive, half, trapezoid"),
        ]
        for steps, message in cases:
            self.fail_with(64, message, "run", steps, self.path("none.npy"), *out, socket_path=self.path("nowhere"))
        self.fail_with(64, "no steps; give them as one word", "run")
        self.fail_with(64, "no input; give files", "run", "scan forward", *out)
        self.fail_with(64, "no output; give -o FILE", "run", "scan forward", self.npy)
        self.fail_with(64, "--output-format is of SEG-Y", "run", "reduce sum", self.npy, "--output-format", "ieee")
        self.fail_with(64, "unknown option --passes;", "run", "scan forward", "--passes", "forward", self.npy, *out)
        self.fail_with(66, "none.npy: cannot be opened", "run", "scan forward", self.path("none.npy"), *out)
        self.fail_with(69, "nowhere", "run", "scan forward", self.npy, *out, socket_path=self.path("nowhere"))

    def test_refused_by_the_daemon(self):
        out = ("-o", self.path("out.npy"))
        self.fail_with(64, r'the run failed \(invalid\): step 2, "accumulator" is "exact"', "run", "scan forward | scan forward accumulator=exact", self.npy, *out)
        self.fail_with(64, "coefficient", "run", "scan forward op=affine", self.npy, *out)
        self.fail_with(64, "reduce", "run", "reduce sum | scan forward", self.npy, *out)


class Operations(ScanctlTest):
    def test_text(self):
        text = self.succeed("operations").decode()
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertRegex(text, r"(?m)^scan +running sums")
        self.assertRegex(text, r"(?m)^  passes=WORD,\.\.\. \* +directions along the row, in this order\n +forward, backward; up to 2 of them$")
        self.assertRegex(text, r"(?m)^  demean  +1: each row's mean")
        self.assertRegex(text, r"(?m)^  coefficients=FILE +with affine: a coefficient for each sample\n +read; follows samples; dtypes: input$")
        self.assertRegex(text, r"(?m)^reduce +each row to one number\n  reduction=WORD \*")
        self.assertIn("of others the first word counts where none is given", text)
        self.assertRegex(text, r"(?m)^  repeat=NUMBER +how many times, one after the other\n +1 to 9$")

    def test_json(self):
        told = {operation["name"]: operation for operation in json.loads(self.succeed("operations", "--json"))}
        self.assertLessEqual({"scan", "reduce"}, set(told))
        rows = {row["name"]: row for row in told["scan"]["parameters"]}
        self.assertEqual((rows["passes"]["kind"], rows["passes"]["most"], rows["passes"]["required"]), ("words", 2, True))
        self.assertEqual(rows["kind"]["words"], ["inclusive", "exclusive", "half", "trapezoid"])
        self.assertEqual((rows["coefficients"]["kind"], rows["coefficients"]["follows"]), ("tensor", "samples"))
        some = json.loads(self.succeed("operations", "--json", "dot", "box"))
        self.assertEqual(some, [told["dot"], told["box"]])
        self.assertRegex(self.succeed("operations", "dot").decode(), r"\Adot +each row and another")
        self.fail_with(64, 'no operation "boxes"; there are: scan, reduce, upsample,', "operations", "dot", "boxes")
        # Words that `operations` lists are accepted by `run`.
        words = [f"{row['name']}={row['words'][0]}" for row in told["scan"]["parameters"] if row["words"]]
        given = self.write("in.npy", npy_header((2, 3)) + packed([1.0] * 6))
        self.succeed("run", " ".join(["scan", *words]), given, "-o", self.path("out.npy"))


class Examples(ScanctlTest):
    """What documents and helps show can be typed as it stands, where files have these names."""

    ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")

    def setUp(self):
        super().setUp()
        rows = [[1.0, 2.0, 3.0]]
        su = bytearray(su_file(rows, True))
        su[116:118] = (2000).to_bytes(2, "big")  # dt
        for folder in ("shots", "gathers"):
            os.mkdir(self.path(folder))
        for name in ("shots.su", "gather.su", "in.su", "shots/1.su", "shots/2.su"):
            self.write(name, su)
        segy = bytearray(segy_file(rows))
        segy[3216:3218] = segy[3716:3718] = (2000).to_bytes(2, "big")
        for name in ("line.sgy", "in.sgy"):
            self.write(name, segy)
        for name in ("gather.npy", "gathers/1.npy", "gathers/2.npy"):
            self.write(name, npy_header((4, 3)) + packed([1.0] * 12))
        self.write("gather.raw", packed([1.0] * 12))
        self.write("gather.rsf", b'n1=3 n2=2 n3=2 label2="offset" in="gather.raw" data_format="native_float"\n')

    def shown(self):
        """The commands that read files and need no program but scanctl and the shell's own."""
        text = "".join(self.succeed(command, "--help").decode() for command in ("scan", "reduce", "run"))
        for path in ("README.md", "client/scanctl/scanctl.1"):
            with open(os.path.join(self.ROOT, path)) as file:
                text += file.read()
        found = re.findall(r"(?m)^(?:  |\.Dl \$ )?((?:mkdir \w+; )?scanctl (?:--local )?(?:scan|reduce|run) .*?)(?:  +#.*)?$", text)
        return [line for line in found if "traces.raw" not in line]  # that is a large one

    def test_run(self):
        folder = os.path.dirname(os.path.abspath(scanctl_rig.ARGUMENTS.scanctl))
        environment = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "SCAND_SOCKET": scanctl_rig.DAEMON.socket}
        environment.pop("DATAPATH", None)
        shown = self.shown()
        self.assertGreater(len(shown), 20)
        for line in shown:
            result = subprocess.run(["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True, timeout=60)
            with self.subTest(line):
                self.assertEqual((result.returncode, result.stderr), (0, b""))


if __name__ == "__main__":
    scanctl_rig.main()

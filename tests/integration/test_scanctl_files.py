#!/usr/bin/env python3
"""scanctl and files of all forms: SEG-Y, pipes between processes, places in raw files, several files in one command.
scanctl_rig.py says how to call it.
"""

import contextlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import struct
import subprocess
import threading
import time

import scanctl_rig
from forms import CODES, f32, floats, npy_header, packed, scanned, scanned_array, segy_file, segy_values, su_file
from scanctl_rig import ScanctlTest, run
from wire import SIZES

PASSES = ("forward", "backward")


class SegY(ScanctlTest):
    ROWS = [[(i * 7 + j * 3) % 11 for j in range(50)] for i in range(9)]

    def check(self, code, big, words=(), out_code=None, rows=ROWS, **options):
        """Traces are the sums; everything else is as it was."""
        given = segy_file(rows, code, big, **options)
        self.write("in.sgy", given)
        self.succeed("scan", self.path("in.sgy"), "-o", self.path("out.sgy"), *words)
        sums = [scanned(row, ("forward",)) for row in rows]
        self.assertEqual(self.read("out.sgy"), segy_file(sums, out_code or code, big, **options))

    def test_codes(self):
        for code in CODES:
            rows = [[value // 8 for value in row] for row in self.ROWS] if SIZES[CODES[code]] == 1 else self.ROWS
            for big in (True, False):
                with self.subTest(code=code, big=big):
                    self.check(code, big, rows=rows)

    def test_as_ieee(self):
        for code in (1, 2, 3, 5, 8, 11, 16):
            for big in (True, False):
                with self.subTest(code=code, big=big):
                    self.check(code, big, ("--output-format", "ieee"), out_code=5)
        self.check(6, True, ("--output-format", "ieee"), out_code=6)
        self.check(3, False, ("--output-dtype", "f64"), out_code=6)
        path = self.write("ints.sgy", segy_file([[1, 2]], 9))
        words = ("scan", path, "-o", self.path("out.sgy"), "--output-format", "ieee")
        self.fail_with(64, "samples of type i64be are scanned as integers of 64 bits", *words)
        self.fail_with(64, "which is for SEG-Y", "scan", self.write("a.su", su_file([[1.0]], True)), "-o", self.path("b.su"), *words[4:])

    def test_headers(self):
        for big in (True, False):
            self.check(1, big, extended=3)
            self.check(5, big, extended=2, said_extended=-1)
            self.check(1, big, revision=2, trace_headers=1, trailers=2)
            self.check(3, big, ("--output-format", "ieee"), out_code=5, revision=2, trace_headers=1, trailers=2)
            self.check(2, big, revision=0)

    def test_across_traces(self):
        given = segy_file(self.ROWS)
        self.write("in.sgy", given)
        for words, width in (((), 4), (("--output-dtype", "f64"), 8)):
            self.succeed("scan", self.path("in.sgy"), "-o", self.path("out.sgy"), "--axis", 0, *words)
            out, columns = self.read("out.sgy"), [scanned(list(column), ("forward",)) for column in zip(*self.ROWS)]
            trace = 240 + 50 * width
            for i, row in enumerate(zip(*columns)):
                found = out[3600 + i * trace :][:trace]
                self.assertEqual(found[:240], given[3600 + i * 440 :][:240])
                self.assertEqual(segy_values(1 if width == 4 else 6, found[240:], True), list(row))

    def test_algorithm(self):
        """Kernels of the tutorials have f32 alone: scanctl swaps bytes for them."""
        kernels = self.succeed("kernels").decode()
        if "serial-cpu" not in kernels:
            self.skipTest("no tutorials in this build")
        self.check(5, True, ("--algorithm", "serial-cpu"))

    def test_cut(self):
        given = segy_file(self.ROWS)
        for size, message in (
            (3599, "cut short"),
            (3700, "ends 100 bytes into the header of its first trace, which has 240"),
            (3600 + 440 * 3 + 100, "no whole number of them: 50 samples of 4 bytes and 240 bytes of header make 440, which leaves 100"),
            (3600 + 440 * 4 - 1, "which leaves 439; the file is cut short"),
        ):
            path = self.write("cut.sgy", given[:size])
            self.fail_with(65, message, "scan", path, "-o", self.path("out.sgy"))
        words = ("scan", "--format", "segy", "-", "-o", "-")
        self.fail_with(65, "in the header of row 4 .*, 100 of its 240 bytes in", *words, input=given[: 3600 + 440 * 3 + 100])
        self.fail_with(65, "in row 4 .*, which needs 1 bytes more of 440", *words, input=given[: 3600 + 440 * 4 - 1])

    def test_traces_that_differ(self):
        given = bytearray(segy_file(self.ROWS))
        given[3600 + 440 * 5 + 115] = 49
        path = self.write("in.sgy", given)
        self.fail_with(65, "trace 6 .* has 49 samples, the first 50", "scan", path, "-o", self.path("out.sgy"))


class Rsf(ScanctlTest):
    """Two traces of three offsets of 40 samples."""

    VALUES = [float(i % 7) for i in range(240)]
    TEXT = 'sfspike\tx:\tme@host\tThu\n\n\tn1=40 n2=3\n\tn3=2\n\td1=0.004 label1="Time"\n\tlabel2="Offset" esize=4\n'
    SUMS = scanned_array(VALUES, (2, 3, 40), 2, ("forward",))
    ACROSS = scanned_array(VALUES, (2, 3, 40), 1, ("forward",))

    def text_of(self, name):
        return self.read(name).split(b"\014\014\004")[0].decode()

    def check_text(self, text, form, size, path):
        self.assertTrue(text.startswith(self.TEXT), text)
        self.assertRegex(text, r"\nscanctl\t.*:\t.*@.*\t.*\n")
        added = dict(re.findall(r'(\w+)="?([^"\n]*)', text[len(self.TEXT) :].split("\nscanctl")[1]))
        self.assertEqual((added["data_format"], added["esize"], added["in"]), (form, str(size), path))

    def test_two_files(self):
        for form, big in (("native_float", False), ("xdr_float", True)):
            self.write("samples", packed(self.VALUES, big=big))
            self.write("in.rsf", (self.TEXT + f'data_format="{form}" in="./samples"\n').encode())
            self.succeed("scan", self.path("in.rsf"), "-o", self.path("out.rsf"))
            self.check_text(self.text_of("out.rsf"), form, 4, os.path.realpath(self.path("out.rsf@")))
            self.assertEqual(self.read("out.rsf@"), packed(self.SUMS, big=big))
            os.mkdir(self.path("data"))
            environment = dict(os.environ, DATAPATH=self.path("data"))
            self.succeed("scan", self.path("in.rsf"), "-o", self.path("wide.rsf"), "--output-dtype", "f64", "--axis", "offset", env=environment)
            self.check_text(self.text_of("wide.rsf"), form.replace("float", "double"), 8, os.path.realpath(self.path("data/wide.rsf@")))
            self.assertEqual(self.read("data/wide.rsf@"), packed(self.ACROSS, "d", big=big))
            shutil.rmtree(self.path("data"))
        self.fail_with(64, "no axis of that name; it may be gather, Offset, Time, -3 to 2", "scan", self.path("in.rsf"), "-o", self.path("x.rsf"), "--axis", "receiver")

    def test_one_file_and_pipes(self):
        given = (self.TEXT + 'data_format="native_float" in="stdin"\n').encode() + b"\014\014\004" + packed(self.VALUES, big=False)
        path = self.write("in.rsf", given)
        environment = {key: value for key, value in os.environ.items() if key != "DATAPATH"}
        self.succeed("scan", path, "-o", self.path("out.rsf"), env=environment)
        self.check_text(self.text_of("out.rsf"), "native_float", 4, "stdin")
        self.assertEqual(self.read("out.rsf").split(b"\014\014\004")[1], packed(self.SUMS, big=False))
        out = self.succeed("scan", "-", "-o", "-", input=given)
        self.assertEqual(out.split(b"\014\014\004")[1], packed(self.SUMS, big=False))
        again = self.succeed("scan", "-", "-o", "-", "--axis", "offset", input=out)  # what one writes another reads
        self.assertEqual(again.split(b"\014\014\004")[1], packed(scanned_array(self.SUMS, (2, 3, 40), 1, ("forward",)), big=False))
        self.write("apart", packed(self.VALUES, big=False))
        text = self.TEXT + f'in="{self.path("apart")}"\n'
        with open(self.write("text.rsf", text.encode()), "rb") as file:  # <text.rsf, as programs of Madagascar take it
            self.assertEqual(self.succeed("scan", "-", "-o", "-", stdin=file).split(b"\014\014\004")[1], packed(self.SUMS, big=False))

    def test_refused(self):
        whole = (self.TEXT + 'in="stdin"\n').encode() + b"\014\014\004" + packed(self.VALUES, big=False)
        words = ("scan", "--format", "rsf", "-", "-o", "-")
        for given, message in (
            (whole[:-1], "ends after .* bytes, where 1 more bytes of samples are due"),
            (whole + b"x", "goes on after the"),
            (whole.replace(b"esize=4", b"esize=8"), "has esize=8 and data_format=\"native_float\", whose samples have 4 bytes"),
            (whole.replace(b"n2=3", b"n2=0"), "has n2=0; it may be a whole number from 1 on"),
            (self.TEXT.encode(), "has no in=\"FILE\" that names its samples, and none follow"),
            (whole.replace(b"\014\014\004", b""), "does not end|no samples follow"),
            (b"", "has no n1="),
        ):
            self.fail_with(65, message, *words, input=given)


class Pipes(ScanctlTest):
    ROWS = [[i + j % 5 for j in range(300)] for i in range(40)]

    def streamed(self, data, *words):
        """Through a pipe that brings a few bytes at a time."""
        command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "-", "-o", "-", *words]
        with open(self.path("data"), "wb") as file:
            file.write(data)
        source = subprocess.Popen(["dd", "if=" + self.path("data"), "bs=777", "status=none"], stdout=subprocess.PIPE)
        middle = subprocess.Popen(command, stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        last = subprocess.Popen(["cat"], stdin=middle.stdout, stdout=subprocess.PIPE)
        source.stdout.close()
        middle.stdout.close()
        out = last.communicate(timeout=60)[0]
        self.assertEqual((middle.wait(60), middle.stderr.read()), (0, b""))
        middle.stderr.close()
        self.assertEqual((source.wait(60), last.returncode), (0, 0))
        return out

    def test_forms_are_found(self):
        """Each form through a pipe is what it is through a file, with no word about its form."""
        for name, data in (
            ("a.su", su_file(self.ROWS, True)),
            ("b.su", su_file(self.ROWS, False)),
            ("c.sgy", segy_file(self.ROWS, 1)),
            ("d.segy", segy_file(self.ROWS, 5, big=False, extended=2, said_extended=-1)),
            ("e.sgy", b"\xc3" + segy_file(self.ROWS, 3)[1:]),
            ("f.npy", npy_header((40, 300)) + packed(sum(self.ROWS, []))),
        ):
            with self.subTest(name=name):
                path = self.write(name, data)
                self.succeed("scan", path, "-o", self.path("out." + name.split(".")[1]), "-p", "backward")
                expected = self.read("out." + name.split(".")[1])
                self.assertEqual(self.streamed(data, "-p", "backward"), expected)
                unnamed = self.write("unnamed", data)
                self.succeed("scan", unnamed, "-o", self.path("out"), "-p", "backward")
                self.assertEqual(self.read("out"), expected)

    def test_many_batches(self):
        """More than one buffer, of a length that nothing says: the pool of 64 MiB leaves less than that for a buffer."""
        row = [float(j % 7 - 3) for j in range(16000)]
        trace = su_file([row], True)
        expected = trace[:240] + packed(scanned(row, PASSES), big=True)
        command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "-p", "forward,backward", "-", "-o", "-"]
        with open(self.path("out"), "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out)
            for _ in range(1500):
                process.stdin.write(trace)
            process.stdin.close()
            self.assertEqual(process.wait(120), 0)
        with open(self.path("out"), "rb") as out:
            for i in range(1500):
                self.assertEqual(out.read(len(trace)) == expected, True, i)
            self.assertEqual(out.read(1), b"")

    def test_one_trace(self):
        for big in (True, False):
            data = su_file([[1.0, 2.0, 3.0]], big)
            self.assertEqual(self.streamed(data), data[:240] + packed([1.0, 3.0, 6.0], big=big))

    def test_reduce(self):
        out = self.succeed("reduce", "--op", "max", "-", input=su_file(self.ROWS, True))
        self.assertEqual([float(line) for line in out.split()], [max(row) for row in self.ROWS])
        self.fail_with(64, "does not say how many rows it brings", "reduce", "--op", "max", "-", "-o", self.path("x.npy"), input=su_file(self.ROWS, True))
        self.succeed("reduce", "--op", "max", "-", "-o", self.path("x.raw"), input=su_file(self.ROWS, True))
        self.assertEqual(floats(self.read("x.raw"), "d"), [max(row) for row in self.ROWS])

    def test_refused(self):
        data, words = su_file(self.ROWS, True), ("scan", "-", "-o", "-")
        self.fail_with(64, "does not say how many rows it brings, and axis 0 counts its rows", *words, "--axis", 0, input=data)
        self.fail_with(65, "ends after 1000 bytes, in row 1 .*, which needs 440 bytes more of 1440", *words, "--format", "su", "--byte-order", "big", input=data[:1000])
        self.fail_with(65, "in the header of row 3", *words, input=data[: 2 * 1440 + 17])
        self.fail_with(64, "neither name nor first bytes show; give --shape ROWS,SAMPLES, or -1,SAMPLES .*, or --format", *words, input=b"no form that is known")
        self.fail_with(65, "standard input: is empty; give a file with samples", *words, input=b"")
        mixed = bytearray(data)
        mixed[5 * 1440 + 115] ^= 1
        self.fail_with(65, "trace 6 .* has 301 samples, the first 300", *words, input=bytes(mixed))

    def test_nobody_reads(self):
        """A closed pipe ends scanctl as it ends other filters: without a word."""
        data = su_file(self.ROWS, True) * 200
        shell = f"'{scanctl_rig.ARGUMENTS.scanctl}' --socket '{scanctl_rig.DAEMON.socket}' scan - -o - | head -c 100 >/dev/null; echo ${{PIPESTATUS[0]}}"
        for ignored in ("", "trap '' PIPE; "):
            result = subprocess.run(["bash", "-c", ignored + shell], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual((result.stdout, result.stderr), (b"141\n", b""))


class Raw(ScanctlTest):
    ROWS = [[float(i * j % 5) for j in range(20)] for i in range(30)]

    def test_places(self):
        """Skipped bytes are gone; headers of the file and of rows are passed on."""
        generator = random.Random(2)
        skipped, header = generator.randbytes(13), generator.randbytes(101)
        headers = [generator.randbytes(60) for _ in self.ROWS]
        data = header + b"".join(h + packed(row) for h, row in zip(headers, self.ROWS))
        places = ("--offset", 13, "--header-bytes", 101, "--trace-header-bytes", 60)
        for dtype, code in (("f32", "f"), ("f64", "d")):
            expected = header + b"".join(h + packed(scanned(row, PASSES), code) for h, row in zip(headers, self.ROWS))
            words = ("-p", "forward,backward", "--output-dtype", dtype, *places)
            path = self.write("in.raw", skipped + data)
            for shape in ("30,20", "-1,20"):
                self.succeed("scan", path, "-o", self.path("out.raw"), "--shape", shape, *words)
                self.assertEqual(self.read("out.raw"), expected)
                self.assertEqual(self.succeed("scan", "-", "-o", "-", "--shape", shape, *words, input=skipped + data), expected)

    def test_open_shape(self):
        data = packed(sum(self.ROWS, []))
        expected = packed(sum((scanned(row, ("forward",)) for row in self.ROWS), []))
        path = self.write("in.raw", data)
        self.succeed("scan", path, "-o", self.path("out.raw"), "--shape", "-1,20")
        self.assertEqual(self.read("out.raw"), expected)
        self.assertEqual(self.succeed("scan", "-", "-o", "-", "--shape", "-1,20", input=data), expected)
        self.assertEqual(self.succeed("scan", "-", "-o", "-", "--shape", "-1,20", input=b""), b"")
        self.succeed("scan", self.write("none.raw", b""), "-o", self.path("none-out.raw"), "--shape", "-1,20")
        self.assertEqual(self.read("none-out.raw"), b"")
        self.succeed("scan", path, "-o", self.path("flat.raw"), "--shape", "-1")
        self.assertEqual(floats(self.read("flat.raw")), scanned(sum(self.ROWS, []), ("forward",)))

    def test_refused(self):
        path = self.write("in.raw", bytes(1001))
        words = ("scan", path, "-o", self.path("out.raw"), "--shape")
        self.fail_with(65, "has 1001 bytes, which is no whole number of rows of 40 bytes", *words, "-1,10")
        self.fail_with(65, "is 998 bytes after the 3 of its header, which is no whole number of f32 samples", *words, "10,10", "--offset", 3)
        self.fail_with(64, "is 996 bytes after the 5 of its header, 249 samples, not the 10 x 10", *words, "10,10", "--offset", 5)
        self.fail_with(65, "is 1001 bytes, less than the 2000 that --offset and --header-bytes put", *words, "-1,10", "--offset", 2000)
        self.fail_with(64, "headers of traces need two, as in --shape -1,1000", *words, "2,5,25", "--trace-header-bytes", 4)
        self.fail_with(65, "is 1001 bytes, but a header of 1 and 10 x 10 samples of 4 bytes make 441", *words, "10,10", "--header-bytes", 1, "--trace-header-bytes", 4)
        data = bytes(1000)
        self.fail_with(64, "does not say how many rows it brings, and axis 0", "scan", "-", "-o", "-", "--shape", "-1", input=data)
        self.fail_with(65, "in row 26 .*, which needs 20 bytes more of 40", "scan", "-", "-o", "-", "--shape", "-1,10", input=data + bytes(20))
        self.fail_with(65, "4 more bytes of what is skipped are due|more bytes", "scan", "-", "-o", "-", "--shape", "-1,10", "--offset", 1004, input=data)
        self.fail_with(64, "says its own shape and type; leave out --offset", "scan", self.write("a.su", su_file([[1.0]], True)), "-o", "-", "--offset", 4)


class Arrays(ScanctlTest):
    """An output's name asks for samples alone."""

    ROWS = [[1.0, -2.0, 3.5], [0.25, 4.0, -8.0]]
    SUMS = [1.0, -1.0, 2.5, 0.25, 4.25, -3.75]

    def setUp(self):
        super().setUp()
        self.su = self.write("in.su", su_file(self.ROWS, True))

    def test_of_traces(self):
        for dtype, descr, letter in (((), "<f4", "f"), (("--output-dtype", "f64"), "<f8", "d"), (("--output-dtype", "f32be"), ">f4", None)):
            self.succeed("scan", self.su, "-o", self.path("out.npy"), *dtype)
            data = self.read("out.npy")
            self.assertIn(f"'descr': '{descr}', 'fortran_order': False, 'shape': (2, 3)".encode(), data)
            if letter:
                self.assertEqual(list(struct.unpack(f"=6{letter}", data[-6 * struct.calcsize(letter) :])), self.SUMS)
        self.succeed("scan", self.su, "-o", self.path("out.raw"))
        self.assertEqual(self.read("out.raw"), packed(self.SUMS))
        self.succeed("scan", "--axis", "trace", self.su, "-o", self.path("out.raw"))
        self.assertEqual(self.read("out.raw"), packed([1.0, -2.0, 3.5, 1.25, 2.0, -4.5]))
        self.succeed("run", "map neg", self.su, "-o", self.path("out.raw"))
        self.assertEqual(self.read("out.raw"), packed([-value for row in self.ROWS for value in row]))
        self.succeed("scan", "-", "-o", self.path("out.raw"), input=su_file(self.ROWS, True))
        self.assertEqual(self.read("out.raw"), packed(self.SUMS))

    def test_of_arrays(self):
        flat = packed([value for row in self.ROWS for value in row])
        raw, npy = self.write("in.raw", b"head" + flat), self.write("in.npy", npy_header((2, 3)) + flat)
        self.succeed("scan", raw, "--shape", "2,3", "--header-bytes", "4", "-o", self.path("out.npy"))
        self.assertEqual(self.read("out.npy"), npy_header((2, 3)) + packed(self.SUMS))
        self.succeed("scan", npy, "-o", self.path("out.raw"))
        self.assertEqual(self.read("out.raw"), packed(self.SUMS))
        line, offsets = self.write("line.npy", npy_header((6,)) + flat), self.write("offsets.raw", struct.pack("=3q", 0, 3, 6))
        self.succeed("scan", line, "--offsets", offsets, "-o", self.path("out.raw"))
        self.assertEqual(self.read("out.raw"), packed(self.SUMS))

    def test_refused(self):
        self.fail_with(64, "is su; give a name that ends in .su, or in .npy or .raw for samples alone", "scan", self.su, "-o", self.path("out.sgy"))
        self.fail_with(64, "--output-dtype is ibm32, which .npy files cannot hold", "scan", self.su, "--output-dtype", "ibm32", "-o", self.path("out.npy"))
        self.fail_with(64, "SU files hold f32; leave it out, or give -o a name that ends in .npy", "scan", self.su, "--output-dtype", "f64", "-o", self.path("out.su"))
        self.fail_with(64, "does not say how many rows it brings", "scan", "-", "-o", self.path("out.npy"), input=su_file(self.ROWS, True))
        columns = self.write("columns.npy", npy_header((2, 3)).replace(b"False", b"True ") + bytes(24))
        self.fail_with(64, "is in Fortran order, which raw samples cannot say", "scan", columns, "-o", self.path("out.raw"))


class Memory(ScanctlTest):
    """However long a file is, scanctl holds two batches of it."""

    def test_bounded(self):
        if scanctl_rig.ARGUMENTS.sanitized:
            self.skipTest("a sanitizer needs more memory than any bound")
        with open(self.path("in.raw"), "wb") as file:
            file.truncate(512 << 20)  # a hole

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))

        self.succeed("scan", "--shape", "-1,4096", self.path("in.raw"), "-o", "/dev/null", preexec_fn=limit)
        self.succeed("reduce", "--op", "max", "--shape", "-1,4096", self.path("in.raw"), "-o", "/dev/null", preexec_fn=limit)


class Direct(ScanctlTest):
    """Files whose samples need nobody's look but the daemon's, which reads them itself: as through a pipe, to the bit."""

    SHAPE = (3000, 500)

    def setUp(self):
        super().setUp()
        self.values = [float((i * 7) % 23 - 11) for i in range(self.SHAPE[0] * self.SHAPE[1])]

    def daemon_read(self):
        text = self.succeed("metrics").decode()
        return int(re.search(r"(?m)^scand_file_read_bytes_total (\d+)", text)[1])

    def both(self, name, data, read_bytes, *words):
        """The output is what comes of a pipe, and the daemon has read so much."""
        path, out = self.write(f"in.{name}", data), f"out.{name}"
        before = self.daemon_read()
        self.succeed(words[0], path, "-o", self.path(out), *words[1:])
        self.assertEqual(self.daemon_read() - before, read_bytes)
        piped = self.succeed(words[0], "-", "-o", "-", *words[1:], input=data)
        self.assertEqual(self.daemon_read() - before, read_bytes)
        self.assertTrue(piped == self.read(out))

    def test_npy(self):
        data = npy_header(self.SHAPE) + packed(self.values, big=False)
        for words in (["scan", "-p", "forward,backward"], ["scan", "--output-dtype", "f64"], ["reduce", "--op", "max"]):
            self.both("npy", data, 4 * len(self.values), *words)

    def test_raw(self):
        shape = ",".join(map(str, self.SHAPE))
        self.both("raw", packed(self.values), 4 * len(self.values), "scan", "--shape", shape, "--dtype", "f32")

    def test_another_byte_order(self):
        swapped = npy_header(self.SHAPE, ">f4") + packed(self.values, big=True)
        self.both("npy", swapped, 4 * len(self.values), "scan")

    def test_what_is_read_here(self):
        """Headers, columns, little."""
        rows = [self.values[i : i + 500] for i in range(0, len(self.values), 500)]
        self.both("su", su_file(rows, True), 0, "scan")
        few = npy_header((10, 500)) + packed(self.values[:5000], big=False)
        self.both("npy", few, 0, "scan")
        path = self.write("columns.npy", npy_header(self.SHAPE) + packed(self.values, big=False))
        before = self.daemon_read()
        self.succeed("scan", path, "--axis", 0, "-o", self.path("sums.npy"))
        self.assertEqual(self.daemon_read(), before)


class SeveralFiles(ScanctlTest):
    def test_into_a_folder(self):
        os.mkdir(self.path("results"))
        rows = [[1.0, 2.0], [3.0, 4.0]]
        names = ["a.su", "b.su", "c.sgy", "d.npy"]
        for name, data in zip(names, (su_file(rows, True), su_file(rows, False), segy_file(rows), npy_header((2, 2)) + packed(sum(rows, [])))):
            self.write(name, data)
        inputs = [self.path(name) for name in names]
        out = self.succeed("scan", *inputs, "-o", self.path("results"), "--json")
        self.assertEqual(len(out.splitlines()), 4)
        self.assertEqual(sorted(os.listdir(self.path("results"))), names)
        for name in names:
            self.succeed("scan", self.path(name), "-o", self.path("alone." + name.split(".")[1]))
            self.assertEqual(self.read("results/" + name), self.read("alone." + name.split(".")[1]))

    def test_into_its_own_folder(self):
        """What is in the folder under the input's name is kept, where it is the input itself."""
        path = self.write("a.su", su_file([[1.0, 2.0]], True))
        os.mkdir(self.path("links"))
        os.symlink(path, self.path("links/a.su"))
        before = self.read("a.su")
        for folder in (self.folder, self.folder + "/", self.path("links")):
            self.fail_with(64, "a.su: would be replaced by its own result", "scan", path, "-o", folder)
            self.fail_with(64, "would be replaced by its own result", "run", "demean", path, "-o", folder)
        self.assertEqual(self.read("a.su"), before)
        self.succeed("scan", path, "-o", path)
        self.assertNotEqual(self.read("a.su"), before)

    def test_reduced(self):
        """Numbers are printed with the names of their files, or go to a folder as .npy, whatever form their files have."""
        rows = [[1.0, -2.0], [3.5, 4.0]]
        self.write("a.su", su_file(rows, True))
        self.write("b.v1.npy", npy_header((2, 2)) + packed(sum(rows, []), big=False))
        self.write("c.ints.npy", npy_header((2, 2), "<i4") + struct.pack("<4i", 1, 2, 3, 4))
        su, npy, ints = inputs = [self.path(name) for name in ("a.su", "b.v1.npy", "c.ints.npy")]
        os.mkdir(self.path("results"))
        for command in (("reduce", "--op", "sum"), ("run", "reduce sum")):
            printed = self.succeed(*command, *inputs).decode().splitlines()
            self.assertEqual(printed, [f"{n} {path}" for path, sums in ((su, (-1, 7.5)), (npy, (-1, 7.5)), (ints, (3, 7))) for n in sums])
            self.assertEqual(self.succeed(*command, su), b"-1\n7.5\n")
            told = [json.loads(line) for line in self.succeed(*command, *inputs, "--json").splitlines()]
            self.assertEqual([(one["input"], one["results"]) for one in told], [(su, [-1, 7.5]), (npy, [-1, 7.5]), (ints, [3, 7])])
            self.succeed(*command, *inputs, "-o", self.path("results"))
            self.assertEqual(sorted(os.listdir(self.path("results"))), ["a.npy", "b.v1.npy", "c.ints.npy"])
            for name, path in zip(("a.npy", "b.v1.npy", "c.ints.npy"), inputs):
                self.succeed(*command, path, "-o", self.path("alone.npy"))
                self.assertEqual(self.read("results/" + name), self.read("alone.npy"))
                os.remove(self.path("results/" + name))
            self.succeed(*command, su, "-o", self.path("results") + "/")
            self.assertEqual(os.listdir(self.path("results")), ["a.npy"])

    def test_reduced_and_wrong(self):
        good, bad, same = self.write("a.su", su_file([[1.0]], True)), self.write("b.su", b"x"), self.write("a.raw", packed([1.0]))
        os.mkdir(self.path("results"))
        for into, is_done in (((), "printed"), (("-o", self.path("results")), "written")):
            result = run("reduce", "--op", "max", bad, good, *into)
            lines = result.stderr.decode().splitlines()
            self.assertEqual((result.returncode, len(lines), result.stdout.decode()), (65, 2, "" if into else f"1 {good}\n"))
            self.assertEqual(lines[1], f"scanctl: 1 of 2 files failed, for the reasons above; the results of 1 are {is_done}")
        words = ("reduce", "--op", "max", "--shape", "1,1")
        self.fail_with(64, "a.su and .*a.raw would both be written to", *words, good, same, "-o", self.path("results"))
        self.fail_with(64, "2 inputs, the first is .*, and -o is .*x.npy", *words, good, same, "-o", self.path("x.npy"))
        self.fail_with(64, "standard input has no name", *words, "-", "-o", self.path("results"))
        self.write("b.npy", npy_header((1, 1)) + packed([2.0], big=False))
        self.fail_with(64, "b.npy: would be replaced by its own result", "reduce", "--op", "max", self.path("b.npy"), "-o", self.folder)
        written = f"""stack bins=1 index="{self.path('b.npy')}" fold="{self.path('fold.npy')}" | reduce sum"""
        self.fail_with(64, "fold.npy would be written for each of 2 inputs", "run", written, good, same)

    def test_memory_is_given_back(self):
        """Together more than the pool of 64 MiB, each in buffers of most of it."""
        os.mkdir(self.path("results"))
        inputs = [self.path(f"{i}.raw") for i in range(4)]
        for path in inputs:
            with open(path, "wb") as file:
                file.truncate(40 << 20)
        out = self.succeed("scan", "--shape", "-1,4096", *inputs, "-o", self.path("results"), "--json")
        jobs = [json.loads(line)["jobs"] for line in out.splitlines()]
        self.assertEqual(jobs, jobs[:1] * 4)

    def test_one_is_wrong(self):
        os.mkdir(self.path("results"))
        good, bad = self.write("a.su", su_file([[1.0]], True)), self.write("b.su", b"x")
        last, folder = self.write("c.su", su_file([[2.0]], True)), self.path("results")
        for command in (("scan",), ("run", "demean")):
            result = run(*command, good, bad, self.path("none.su"), last, "-o", folder + "/")
            lines = result.stderr.decode().splitlines()
            self.assertEqual((result.returncode, len(lines)), (65, 3))
            self.assertRegex(lines[0], "^scanctl: .*b.su: is 1 bytes")
            self.assertRegex(lines[1], "^scanctl: .*none.su: cannot be opened")
            self.assertEqual(lines[2], "scanctl: 2 of 4 files failed, for the reasons above; the results of 2 are written")
            self.assertEqual(sorted(os.listdir(folder)), ["a.su", "c.su"])
        result = run("scan", good, last, "-o", folder, socket_path=self.path("nobody"))
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr.decode(), r"\Ascanctl: no daemon .*\n.* 1 of 2 files failed, .*; 1 were not begun\n\Z")
        self.fail_with(73, "none/a.su: cannot be created", "scan", good, "-o", self.path("none") + "/")
        self.fail_with(64, "2 inputs, the first is .* give a folder that exists", "scan", good, bad, "-o", self.path("none"))


class Scale(ScanctlTest):
    """Results multiplied by a number, or by what the file says lies between two samples."""

    ROW = [1.0, 2.0, 3.0, -1.5]
    SUMS = [1.0, 3.0, 6.0, 4.5]

    def scaled(self, by):
        return [f32(f32(value) * f32(by)) for value in self.SUMS]

    def su(self, dt, big=True):
        file = bytearray(su_file([self.ROW], big))
        file[116:118] = struct.pack(">H" if big else "<H", dt)
        return bytes(file)

    def test_number(self):
        self.write("in.npy", npy_header((4,)) + packed(self.ROW, big=False))
        result = json.loads(self.succeed("scan", self.path("in.npy"), "-o", self.path("out.npy"), "--scale", "0.004", "--json"))
        self.assertEqual(result["scale"], 0.004)
        self.assertEqual(floats(self.read("out.npy")[128:], big=False), self.scaled(0.004))
        # The last step's results are multiplied, not those between steps; types and other words stay.
        self.succeed("scan", self.path("in.npy"), "-o", self.path("two.npy"), "--then", "backward,accumulator=f32", "--scale", "-2", "-a", "f64")
        self.assertEqual(floats(self.read("two.npy")[128:], big=False), [-29.0, -27.0, -21.0, -9.0])
        self.succeed("scan", self.path("in.npy"), "-o", self.path("affine.npy"), "--op", "affine", "--coefficient", "2", "--scale", "10")
        self.assertEqual(floats(self.read("affine.npy")[128:], big=False), [10.0, 40.0, 110.0, 205.0])
        for wrong in ("0", "x", "", "nan", "inf", "1e"):
            self.fail_with(64, f'--scale is "{wrong}"; it may be any number but 0, as in --scale 0.004, or dt', "scan", self.path("in.npy"), "-o", self.path("x"), "--scale", wrong)
        self.fail_with(65, "--scale is dt, but its header does not say what lies between two samples along axis 0; give a number", "scan", self.path("in.npy"), "-o", self.path("x.npy"), "--scale", "dt")

    def test_dt(self):
        for big in (True, False):
            self.write("in.su", self.su(2500, big))
            self.succeed("scan", self.path("in.su"), "-o", self.path("out.su"), "--scale", "dt")
            self.assertEqual(floats(self.read("out.su")[240:], big=big), self.scaled(0.0025))
            self.assertEqual(self.read("out.su")[:240], self.read("in.su")[:240])
            piped = run("scan", "-", "-o", "-", "--scale", "dt", "--format", "su", input=self.read("in.su"))
            self.assertEqual(piped.stdout, self.read("out.su"), piped.stderr)
            self.succeed("run", "scan forward scale=dt", self.path("in.su"), "-o", self.path("run.su"))
            self.assertEqual(self.read("run.su"), self.read("out.su"))
        self.fail_with(65, "--scale is dt, but its header does not say what lies between two samples along axis 0", "scan", self.path("in.su"), "-o", self.path("x.su"), "--scale", "dt", "--axis", "trace")
        self.write("none.su", self.su(0))
        self.fail_with(65, "a step has dt for a number, but its header does not say", "run", "diff derivative dt=dt", self.path("none.su"), "-o", self.path("x.su"))

    def test_traces_that_disagree(self):
        """A trace that says nothing is taken like the others."""
        self.write("silent.su", self.su(2500) + self.su(0) + self.su(2500))
        self.succeed("scan", self.path("silent.su"), "-o", self.path("out.su"), "--scale", "dt")
        self.assertEqual(floats(self.read("out.su")[-16:], big=True), self.scaled(0.0025))
        self.write("other.su", self.su(2500) + self.su(2500) + self.su(4000))
        message = r"trace 3 \(counted from 1\) says that 0.004 s lie between two samples, and those before it 0.0025; give a number in place of dt"
        for words in (("scan", "--scale", "dt"), ("run", "diff derivative dt=dt")):
            self.fail_with(65, message, *words, self.path("other.su"), "-o", self.path("x.su"))
        self.succeed("scan", self.path("other.su"), "-o", self.path("x.su"), "--scale", "0.004")
        file = bytearray(segy_file([self.ROW] * 2, 5))
        file[3216:3218] = struct.pack(">H", 4000)
        for trace, dt in ((0, 0), (1, 2000)):
            at = 3600 + trace * (240 + 16) + 116
            file[at : at + 2] = struct.pack(">H", dt)
        self.write("other.sgy", bytes(file))
        self.fail_with(65, r"trace 2 \(counted from 1\) says that 0.002 s", "scan", self.path("other.sgy"), "-o", self.path("x.sgy"), "--scale", "dt")

    def test_each_file_has_its_own(self):
        os.mkdir(self.path("out"))
        for name, dt in (("a.su", 1000), ("b.su", 2000)):
            self.write(name, self.su(dt))
        self.succeed("run", "scan forward scale=dt", self.path("a.su"), self.path("b.su"), "-o", self.path("out"))
        for name, dt in (("a.su", 0.001), ("b.su", 0.002)):
            self.assertEqual(floats(self.read(f"out/{name}")[240:], big=True), self.scaled(dt))

    def test_segy_and_rsf(self):
        for in_trace, in_binary, dt in ((500, 4000, 0.0005), (0, 4000, 0.004)):
            file = bytearray(segy_file([self.ROW], 5))
            file[3216:3218] = struct.pack(">H", in_binary)
            file[3600 + 116 : 3600 + 118] = struct.pack(">H", in_trace)
            self.write("in.sgy", bytes(file))
            self.succeed("scan", self.path("in.sgy"), "-o", self.path("out.sgy"), "--scale", "dt")
            self.assertEqual(floats(self.read("out.sgy")[3840:], big=True), self.scaled(dt))
        self.write("samples", packed(self.ROW, big=False))
        for said, dt in (("d1=0.25", 0.25), ('d1="-2" d2=7', -2.0)):
            self.write("in.rsf", f'n1=4 {said} data_format="native_float" in="./samples"\n'.encode())
            self.succeed("scan", self.path("in.rsf"), "-o", self.path("out.rsf"), "--scale", "dt")
            self.assertEqual(floats(self.read("out.rsf@"), big=False), self.scaled(dt))
        for said in ("", "d1=x", "d1=nan", "d1=0", "d1=1e999", "d2=1"):
            self.write("in.rsf", f'n1=4 {said} data_format="native_float" in="./samples"\n'.encode())
            self.fail_with(65, "in.rsf: --scale is dt, but its text does not say", "scan", self.path("in.rsf"), "-o", self.path("x.rsf"), "--scale", "dt")


class OneNumber(ScanctlTest):
    """A file is several jobs of the daemon, but one of people: that is its number from beginning to end."""

    def endless(self):
        """scanctl with an input that does not end, its job's number, and the thread that feeds it."""
        command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "--progress", "-", "-o", "/dev/null"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        traces = su_file([[1.0] * 2000], True) * 500

        def feed():
            try:
                while True:
                    process.stdin.write(traces)
            except BrokenPipeError:
                pass
            finally:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        self.addCleanup(feeder.join, 60)
        self.addCleanup(process.kill)
        job = re.match(r"standard input: job (\d+); scanctl cancel \1 stops it\n", process.stderr.readline().decode())
        self.assertTrue(job)
        return process, job.group(1)

    def ended(self, process, code, message):
        self.assertEqual(process.wait(60), code)
        self.assertRegex(process.stderr.read().decode(), message)
        process.stderr.close()

    def listed(self, job):
        return [row for row in json.loads(self.succeed("jobs", "--json")) if row["job"] == int(job)]

    def test_cancel(self):
        client = lambda job: self.listed(job)[0]["client"]
        for words in (lambda job: (job,), lambda job: ("--client", client(job)), lambda job: ("--mine",)):
            process, job = self.endless()
            self.succeed("cancel", *words(job))
            self.ended(process, 130, f"cancelled")
            self.succeed("wait", job, "--timeout", 60)
            self.assertEqual(self.listed(job), [])

    def test_wait(self):
        process, job = self.endless()
        self.fail_with(75, f"job {job} has not ended within 1 s; wait longer, or stop it with scanctl cancel {job}", "wait", job, "-t", 1)
        client = self.listed(job)[0]["client"]
        self.fail_with(75, f"client {client} has not ended within 1 s; wait longer, or stop it with scanctl cancel --client {client}", "wait", "-c", client, "-t", 1)
        process.terminate()
        self.succeed("wait", job, "--timeout", 60)
        self.succeed("wait", "--client", client, "--timeout", 60)
        self.ended(process, -15, r"\A\Z")

    def test_listed(self):
        """One row for all its jobs, in lists and in top."""
        process, job = self.endless()
        deadline = time.monotonic() + 60
        while self.listed(job)[0]["rows_done"] < 2000 and time.monotonic() < deadline:
            time.sleep(0.01)
        row = self.listed(job)[0]
        self.assertEqual((row["rows"], row["state"], row["name"], row["operation"]), (0, "running", "scanctl -", "scan sum forward f32be"))
        self.assertGreaterEqual(row["rows_done"], 2000)
        self.assertRegex(self.succeed("jobs").decode(), rf"(?m)^ +{job} .* - +[\d,]+ .*scanctl -$")
        self.succeed("cancel", job)
        self.ended(process, 130, r"\Ascanctl: the scan was cancelled, as by scanctl cancel\n\Z")

    def test_refused(self):
        self.fail_with(64, "no client has the number 999999; scanctl clients lists all", "cancel", "--client", 999999)
        self.fail_with(64, '--client is "x"', "cancel", "--client", "x")
        self.fail_with(64, "takes the number of one job, or --client, or --mine, and got 1 words and --mine", "cancel", "--mine", 7)
        self.fail_with(64, "and got 0 words; see", "cancel")
        self.fail_with(64, '"7" and --client are both there', "wait", "--client", 7, 7)
        self.succeed("cancel", "--mine")  # nothing is nothing wrong

    def test_progress(self):
        path = self.write("in.su", su_file([[1.0] * 100] * 2000, True))
        result = run("scan", "--progress", path, "-o", self.path("out.su"))
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        self.assertRegex(result.stderr.decode(), r"\A.*in.su: job \d+; .*\n.*in.su: 2,000 rows of 100 samples, 2.4 MiB in .*s, .* GB/s\n\Z")


class Completion(ScanctlTest):
    def commands(self):
        return re.findall(r"(?m)^  ([a-z]+) ", self.succeed("--help").decode())

    def test_every_option(self):
        scripts = {shell: self.succeed("completion", shell).decode() for shell in ("bash", "zsh", "fish")}
        self.assertIn("scan", self.commands())
        for command in self.commands():
            options = re.findall(r"--([a-z-]+)", self.succeed(command, "--help").decode().split("\n\n", 1)[1])
            for option in set(options) - {"socket"}:
                self.assertRegex(scripts["bash"], rf"(?m)^    {command}\) words='.*--{option}\b")
                self.assertRegex(scripts["zsh"].split(f"    {command})\n")[1].split(";;")[0], rf"--{option}\b")
                self.assertRegex(scripts["fish"], rf"(?m)from {command}' -l {option}\b")
        self.fail_with(64, 'got "csh"; give bash, zsh or fish', "completion", "csh")

    def completed(self, *words):
        script = self.succeed("completion", "bash").decode()
        line = " ".join(map(shlex.quote, words))
        script += f"\nCOMP_WORDS=(scanctl {line}); COMP_CWORD={len(words)}; _scanctl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        result = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.stderr, b"")
        return result.stdout.decode().splitlines()

    def test_in_bash(self):
        self.assertEqual(self.completed("sc"), ["scan"])
        self.assertEqual(self.completed("scan", "--acc"), ["--accumulator"])
        self.assertEqual(self.completed("help", "sc"), ["scan"])
        self.assertEqual(self.completed("scan", "-p", "b"), ["backward"])
        self.assertEqual(self.completed("--socket", "x", "reduce", "--op", "m"), ["min", "max", "mean"])
        self.assertEqual(self.completed("scan", "--format", ""), ["raw", "npy", "segy", "rsf", "su"])
        path = self.write("gather.su", b"")
        for typed in (path, path.replace(" ", "\\ "), '"' + path):
            self.assertEqual(self.completed("scan", typed[:-3]), [path])
            self.assertEqual(self.completed("scan", "-o", typed[:-3]), [path])

    def test_syntax(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                continue
            result = subprocess.run([shell, "-n"], input=self.succeed("completion", shell), stderr=subprocess.PIPE, timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, b""), shell)


class RealSegY(ScanctlTest):
    def check(self, name, ns, code, big):
        path = os.path.join(scanctl_rig.ARGUMENTS.data, name)
        if not os.path.exists(path):
            self.skipTest("no " + name + " in the data folder")
        with open(path, "rb") as file:
            given = file.read()
        trace = 240 + 4 * ns
        for words, written in (((), code), (("--output-format", "ieee"), 5)):
            self.succeed("scan", path, "-o", self.path("out.sgy"), "-p", "forward,backward", *words)
            out = self.read("out.sgy")
            self.assertEqual(len(out), len(given))
            self.assertEqual(out[3224:3226], written.to_bytes(2, "big" if big else "little"))
            self.assertEqual((out[:3224], out[3226:3600]), (given[:3224], given[3226:3600]))
            for at in range(3600, len(given), trace):
                self.assertEqual(out[at : at + 240], given[at : at + 240])
            for at in range(3600, len(given), trace * 37):
                row = segy_values(code, given[at + 240 : at + trace], big)
                found = segy_values(written, out[at + 240 : at + trace], big)
                self.assert_near(found, scanned(row, PASSES, between=f32), 2e-6 if written == 1 else 3e-7)
        out = self.path("pipe")
        with open(path, "rb") as file, open(out, "wb") as result:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            command = [scanctl_rig.ARGUMENTS.scanctl, "--socket", scanctl_rig.DAEMON.socket, "scan", "-", "-o", "-"]
            scan = subprocess.run([*command, "-p", "forward,backward", "--output-format", "ieee"], stdin=cat.stdout, stdout=result, timeout=60)
            cat.stdout.close()
            self.assertEqual((cat.wait(60), scan.returncode), (0, 0))
        self.assertEqual(self.read("pipe"), self.read("out.sgy"))

    def test_ibm_rev1(self):
        self.check("viking_small.segy", 600, 1, True)

    def test_ibm(self):
        self.check("ibm_msb.sgy", 75, 1, True)

    def test_ieee_big(self):
        self.check("ieee_msb.sgy", 75, 5, True)

    def test_ieee_little(self):
        self.check("ieee_lsb.sgy", 75, 5, False)


if __name__ == "__main__":
    scanctl_rig.main()

#!/usr/bin/env python3
"""The package beside others: operators of PyLops, arrays of Dask, SEG-Y files as segyio reads them. Parts are skipped
where these packages, or the real files beside the source tree, are missing.
"""

import importlib.util
import itertools
import os
import random
import struct
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy as np

import scand
import scand.segy
from rig import HERE, SEED, PackageTest, main, whole_numbers

DATA = os.path.join(HERE, "..", "..", "..", "..", "shared", "data")


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"there is no {package} here")


def stand_in_for_pylops():
    """Modules with as much of PyLops as scand.pylops needs, so that its operators are tested where PyLops is missing."""

    def reshaped(function):
        forward = function.__name__ == "_matvec"
        return lambda self, x: function(self, x.reshape(self.dims if forward else self.dimsd)).ravel()

    class LinearOperator:
        def __init__(self, dtype, dims, dimsd, name):
            self.dtype, self.dims, self.dimsd = dtype, tuple(dims), tuple(dimsd)

    class CausalIntegration(LinearOperator):
        def __init__(self, dims, axis=-1, sampling=1.0, kind="full", removefirst=False):
            self.axis, self.sampling, self.kind, self.removefirst = axis, sampling, kind, removefirst
            dimsd = list(dims)
            dimsd[axis] -= removefirst
            super().__init__(np.dtype(float), dims, dimsd, "C")

    modules = {name: types.ModuleType(name) for name in ("pylops", "pylops.utils", "pylops.utils.decorators")}
    modules["pylops"].LinearOperator, modules["pylops"].CausalIntegration = LinearOperator, CausalIntegration
    modules["pylops.utils.decorators"].reshaped = reshaped
    return modules


class Adjoints(PackageTest):
    def test_operators(self):
        """The product of A x and y is that of x and the adjoint's A y."""
        with unittest.mock.patch.dict(sys.modules, {**stand_in_for_pylops(), "scand.pylops": None}):
            del sys.modules["scand.pylops"]
            ours = importlib.import_module("scand.pylops")
        dims = (5, 8)
        operators = [ours.CausalIntegration(dims, *options) for options in itertools.product(
            (0, -1), (1.0, 0.5), ("full", "half", "trapezoidal"), (False, True)
        )]
        for axis in 0, -1:
            operators += [ours.DoubleIntegration(dims, axis, 0.5), ours.Stack(dims, np.arange(dims[axis]) % 3, 4, axis)]
            operators += [ours.Convolve1D(dims, whole_numbers(4, seed=2), 1, axis)]
            operators += [ours.Box(dims, 3, axis, "none", boundary) for boundary in ("reflect", "zero", "skip")]
        for operator in operators:
            x, y = (whole_numbers(int(np.prod(shape)), seed=i) for i, shape in enumerate((operator.dims, operator.dimsd)))
            with self.subTest(operator=type(operator).__name__, **{name: value for name, value in vars(operator).items() if name != "dtype"}):
                self.assertEqual(operator._matvec(x) @ y, x @ operator._rmatvec(y))
        with self.assertRaisesRegex(TypeError, "index: its dtype is float64, and jobs take int64 here"):
            ours.Stack(dims, np.arange(8) / 2, 4)
        with self.assertRaisesRegex(ValueError, "^kind: 'trapezoid' is not one of full, half, trapezoidal$"):
            ours.CausalIntegration(dims, kind="trapezoid")


class PyLops(PackageTest):
    @needs("pylops")
    def test_causal_integration(self):
        import pylops

        import scand.pylops

        for dims, kind, remove, sampling, dtype in itertools.product(
            ((40,), (5, 4, 7)), ("full", "half", "trapezoidal"), (False, True), (1.0, 0.5), ("f8", "c16")
        ):
            for axis in range(-len(dims), len(dims)):
                options = {"axis": axis, "kind": kind, "removefirst": remove, "sampling": sampling, "dtype": dtype}
                with self.subTest(dims=dims, **options):
                    theirs, ours = pylops.CausalIntegration(dims, **options), scand.pylops.CausalIntegration(dims, **options)
                    x, y = whole_numbers(theirs.shape[1], dtype), whole_numbers(theirs.shape[0], dtype)
                    self.same(ours @ x, theirs @ x)
                    self.same(ours.H @ y, theirs.H @ y)

    @needs("pylops")
    def test_double_integration_is_its_own_adjoint(self):
        import scand.pylops

        operator = scand.pylops.DoubleIntegration((5, 30), axis=0, sampling=0.5)
        x, y = whole_numbers(150), whole_numbers(150, seed=1)
        self.assertEqual((operator @ x) @ y, x @ (operator.H @ y))
        self.same(operator @ x, scand.scan(x.reshape(5, 30), "forward,backward", axis=0).ravel() * 0.25)


    @needs("pylops")
    def test_filters_and_their_adjoints(self):
        from pylops.utils import dottest

        import scand.pylops as ours

        np.random.seed(1)  # which dottest takes its numbers from: some sums nearly cancel
        for axis, norm, boundary in itertools.product((0, -1), ("area", "height", "none"), ("reflect", "zero", "skip")):
            for operator, half_width in itertools.product((ours.Triangle, ours.Box), (1, 2, 5, 12)):
                with self.subTest(operator=operator.__name__, axis=axis, norm=norm, boundary=boundary, half_width=half_width):
                    window = operator((9, 20), half_width, axis=axis, norm=norm, boundary=boundary)
                    dottest(window, 180, 180, rtol=1e-9)
        identity = np.eye(20)[10]
        self.same(ours.Box(20, 3, norm="none") @ identity, np.array([float(8 <= i <= 12) for i in range(20)]))
        self.same(ours.Triangle(20, 3, norm="none") @ identity, np.array([max(0.0, 3 - abs(i - 10)) for i in range(20)]))

    @needs("pylops")
    def test_stack(self):
        from pylops.utils import dottest

        import scand.pylops as ours

        np.random.seed(1)
        index = [3, 0, 0, 4, 3, 1]
        for dims, axis in ((6,), 0), ((6, 20), 0), ((20, 6), -1), ((3, 6, 4), 1):
            with self.subTest(dims=dims, axis=axis):
                stack = ours.Stack(dims, index, 5, axis=axis)
                dottest(stack, *stack.shape, rtol=1e-9)
                x = whole_numbers(dims)
                expected = np.zeros(stack.dimsd)
                np.add.at(np.moveaxis(expected, axis, 0), index, np.moveaxis(x, axis, 0))
                self.same(stack @ x, expected)
        self.same(ours.Stack(6, index, 5) @ np.ones(6), np.array([2.0, 1, 0, 2, 1]))
        with self.assertRaisesRegex(ValueError, r"index: its shape is \(6,\); of 7 samples along the axis it is \(7,\)"):
            ours.Stack(7, index, 5)

    @needs("pylops")
    def test_convolution(self):
        import pylops

        import scand.pylops

        h = whole_numbers(5)
        for dims, axis, offset in (((30,), -1, 0), ((30,), -1, 4), ((6, 30), 1, 1), ((30, 6), 0, 3)):
            with self.subTest(dims=dims, axis=axis, offset=offset):
                theirs = pylops.signalprocessing.Convolve1D(dims, h, offset=offset, axis=axis)
                ours = scand.pylops.Convolve1D(dims, h, offset=offset, axis=axis)
                x, y = whole_numbers(theirs.shape[1]), whole_numbers(theirs.shape[0], seed=1)
                np.testing.assert_allclose(ours @ x, theirs @ x, atol=1e-9)
                self.assertEqual((ours @ x) @ y, x @ (ours.H @ y))
        h = whole_numbers(31)
        for n, offset in ((30, 0), (30, 29), (11, 5), (1, 0), (2, 1)):
            with self.subTest(n=n, offset=offset):
                theirs = pylops.signalprocessing.Convolve1D(n, h, offset=offset)
                ours = scand.pylops.Convolve1D(n, h, offset, -1, "direct")
                x, y = whole_numbers(n), whole_numbers(31, seed=1)
                np.testing.assert_allclose(ours @ x, theirs @ x, atol=1e-9)
                self.assertEqual((ours @ x) @ y, x @ (ours.H @ y))
        for arguments, text in (
            ((30, h[:5], 5), "^offset: it is 5; of a filter of 5 samples, 0 to 4"), ((20, h, 20), "^offset: it is 20; of x of 20 samples, 0 to 19"),
            (((3, 20), h), "^h: it has 31 taps, and rows 20 samples"), ((30, h[:, None]), r"^h: its shape is \(31, 1\)"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                scand.pylops.Convolve1D(*arguments)


class Dask(PackageTest):
    @needs("dask")
    def test_rows(self):
        import dask.array

        from scand.dask import map_rows

        x = whole_numbers((30, 40, 50), "f4")
        chunked = dask.array.from_array(x, chunks=(7, 11, 13))
        for axis in (0, 1, -1):
            self.same(map_rows(scand.cumsum, chunked, axis=axis).compute(), np.cumsum(x, axis))
            self.same(map_rows(scand.reduce, chunked, axis=axis, op="max").compute(), x.max(axis))
        self.assertEqual(map_rows(scand.scan, chunked, dtype="f8").dtype, np.float64)
        with self.assertRaisesRegex(TypeError, "^x: ndarray is no Dask array"):
            map_rows(scand.scan, x)
        with self.assertRaisesRegex(TypeError, "^axis: None is no whole number; rows lie along one axis$"):
            map_rows(scand.scan, chunked, axis=None)
        with self.assertRaisesRegex(ValueError, "axis 3 is out of bounds"):
            map_rows(scand.scan, chunked, axis=3)

    @needs("dask")
    def test_results_of_another_length(self):
        """Dask has to know how long they are before anything is computed."""
        import dask.array

        from scand.dask import map_rows

        for shape, axis in (((6, 4), -1), ((6, 4), 0), ((12,), 0), ((4, 6, 8), 1)):
            x = whole_numbers(shape, "f4")
            chunked = dask.array.from_array(x, chunks=2)
            for function, options in (
                (scand.run, {"steps": [("upsample", {"factor": 3})]}),
                (scand.run, {"steps": [("block-sum", {"factor": 2}), ("reduce", {"reduction": "max"})]}),
                (scand.cumulative_sum, {"include_initial": True}),
                (scand.cumulative_trapezoid, {}),
                (scand.reduce, {"op": "sum", "keepdims": True}),
                (scand.reduce, {"op": "sum"}),
            ):
                with self.subTest(shape=shape, axis=axis, function=function.__name__, options=options):
                    expected = np.asarray(function(x, axis=axis, **options))
                    found = map_rows(function, chunked, axis=axis, **options)
                    self.assertEqual((found.shape, found.dtype), (expected.shape, expected.dtype))
                    np.testing.assert_array_equal(found.compute(), expected)
                    if expected.shape:
                        np.testing.assert_array_equal(found[-1:].compute(), expected[-1:])

    @needs("distributed")
    def test_processes(self):
        """Workers are forked or spawned, and share the daemon."""
        import dask.array

        from scand.dask import map_rows

        x = whole_numbers((16, 4000), "f4")
        got = map_rows(scand.cumsum, dask.array.from_array(x, chunks=(2, 1000))).compute(scheduler="processes", num_workers=2)
        self.same(got, np.cumsum(x, -1))


def segy_file(order=">", code=5, samples=10, traces=3, extended=0, texts=(), revision=1, said=None):
    """A file whose trace r has the samples r, r + 1, and so on."""
    binary = bytearray(400)
    struct.pack_into(f"{order}H", binary, 16, 4000)
    struct.pack_into(f"{order}H", binary, 20, samples if said is None else said)
    struct.pack_into(f"{order}H", binary, 24, code)
    struct.pack_into(f"{order}Hhh", binary, 300, revision << 8, 1, extended)
    header = bytearray(240)
    struct.pack_into(f"{order}H", header, 114, samples)
    name = scand.segy.CODES.get(code, ("f4",))[0]
    numbers = [np.arange(row, row + samples).astype(np.dtype(name).newbyteorder(order)).tobytes() for row in range(traces)]
    return b" " * 3200 + binary + b"".join(text.ljust(3200) for text in texts) + b"".join(bytes(header) + row for row in numbers)


class SegY(PackageTest):
    def read(self, data):
        with tempfile.NamedTemporaryFile(suffix=".sgy") as file:
            file.write(data)
            file.flush()
            return scand.segy.read(file.name)

    def test_codes_and_orders(self):
        for order, code in itertools.product("><", (2, 3, 5, 6, 8, 9, 10, 11, 12, 16)):
            with self.subTest(order=order, code=code):
                traces = self.read(segy_file(order, code))
                expected = np.arange(10) + np.arange(3)[:, None]
                np.testing.assert_array_equal(traces.samples, expected)
                np.testing.assert_array_equal(scand.cumsum(traces.samples, dtype="f8"), np.cumsum(expected, -1))
                self.assertEqual((traces.interval_us, traces.headers.shape, traces.form), (4000, (3, 240), None))

    def test_ibm_floats_in_both_orders(self):
        for order in "><":
            traces = self.read(segy_file(order, 1))
            traces.samples[...] = 0x41100000  # 1
            self.same(scand.scan(traces.samples, form=traces.form), np.tile(np.arange(1, 11, dtype="f4"), (3, 1)))

    def test_in_place_between_headers(self):
        data = segy_file()
        traces = self.read(data)
        scand.scan(traces.samples, out=traces.samples, copy=False)
        np.testing.assert_array_equal(traces.samples, np.cumsum(np.arange(10) + np.arange(3)[:, None], -1))
        traces.samples[...] = np.arange(10) + np.arange(3)[:, None]
        self.assertEqual(traces.data.tobytes(), data)

    def test_extended_headers(self):
        end = b"((SEG: EndText))"
        for extended, texts in ((1, [b"x"]), (-1, [b"x", end]), (-1, [end.decode().encode("cp037")]), (0, [])):
            self.assertEqual(self.read(segy_file(extended=extended, texts=texts)).samples.shape, (3, 10))

    def test_headers_that_lie(self):
        def with_length(trace, samples):
            data = bytearray(segy_file())
            struct.pack_into(">H", data, 3600 + trace * 280 + 114, samples)
            return bytes(data)

        self.assertEqual(self.read(with_length(2, 0)).samples.shape, (3, 10))
        self.assertEqual(self.read(segy_file(said=0)).samples.shape, (3, 10))
        self.assertEqual(self.read(segy_file(said=65535)).samples.shape, (3, 10))
        for data, text in (
            (b"", "0 bytes are no SEG-Y file"),
            (segy_file()[:3599], "3599 bytes are no SEG-Y file"),
            (segy_file(code=4), "no SEG-Y file, or .* the code 4; there are 1, 2, 3"),
            (segy_file()[:-1], "are not whole traces of 10"),
            (segy_file(samples=0), "of 0 or 0 samples"),
            (segy_file(extended=5), "5 extended headers, and has room for 0"),
            (segy_file(extended=-2), "-2 extended headers"),
            (segy_file(extended=-1, texts=[b"x"]), "have no end"),
            (segy_file(revision=3), r"revision 3 \(byte 3501\)"),
            (with_length(1, 7), r"trace 2 \(counted from 1\) has 7 samples, the first 10; "),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                self.read(data)

    def test_damaged_files(self):
        """Are read, or refused with words: never anything else."""
        noise = random.Random(SEED)
        files = [segy_file(), segy_file("<", 3), segy_file(extended=-1, texts=[b"x", b"((SEG: EndText))"]), segy_file(extended=1, texts=[b"x"])]
        read = refused = 0
        for _ in range(1500):
            data = bytearray(noise.choice(files))
            for _ in range(noise.choice((1, 2, 5))):
                data[noise.choice((noise.randrange(3200, 3600), noise.randrange(len(data))))] = noise.choice((0, 1, 127, 128, 255))
            if noise.random() < 0.3:
                del data[noise.randrange(len(data)) :]
            try:
                traces = self.read(bytes(data))
                self.assertEqual(traces.headers.shape, (traces.samples.shape[0], 240))
                self.assertLessEqual(traces.samples.nbytes, len(data))
                read += 1
            except ValueError as error:
                self.assertRegex(str(error), "^/")
                refused += 1
        self.assertGreater(min(read, refused), 100)

    @unittest.skipUnless(os.path.isdir(DATA), "the real files are not here")
    def test_real_files(self):
        sums = []
        for name in ("ibm_msb.sgy", "ieee_msb.sgy", "ieee_lsb.sgy"):
            traces = scand.segy.read(os.path.join(DATA, name))
            self.assertEqual(traces.samples.shape, (414, 75))
            sums.append(scand.scan(traces.samples, form=traces.form, dtype="f8", copy=False))
        np.testing.assert_array_equal(sums[1], sums[2])
        np.testing.assert_allclose(sums[0], sums[1], rtol=1e-5, atol=1e-2)

    @needs("segyio")
    @unittest.skipUnless(os.path.isdir(DATA), "the real files are not here")
    def test_as_segyio_reads_them(self):
        import segyio

        for name, endian in (("ibm_msb.sgy", "big"), ("ieee_lsb.sgy", "little"), ("viking_small.segy", "big")):
            path = os.path.join(DATA, name)
            with segyio.open(path, ignore_geometry=True, endian=endian) as file:
                expected = np.cumsum(file.trace.raw[:].astype("f8"), -1)
            traces = scand.segy.read(path)
            got = scand.scan(traces.samples, form=traces.form, dtype="f8", copy=False)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-9)


if __name__ == "__main__":
    main()

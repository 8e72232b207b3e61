#!/usr/bin/env python3
"""Functions that have the names of NumPy's and SciPy's, and do as those do: of every dtype, layout, rank and axis."""

import fractions
import importlib.util
import itertools
import unittest

import numpy as np

import scand
from rig import PackageTest, layouts, main, whole_numbers

REAL = "f2 f4 f8 >f4 >f8 i1 i4 i8 u1 u2 u8 >i2 ?".split()
DTYPES = [*REAL, "c8", "c16", ">c8"]
SHAPES = [(7,), (3, 5), (2, 3, 2, 4, 3), (0,), (3, 0), (0, 3)]


def arrays(dtypes):
    """Arrays of these dtypes in every layout, each with an axis."""
    for dtype, shape in itertools.product(dtypes, SHAPES):
        x = whole_numbers(shape, dtype)
        for name, array in layouts(x) if x.size else [("empty", x)]:
            for axis in range(-1, len(shape)):
                yield f"{dtype} {shape} {name} axis={axis}", array, axis


class NumPyNames(PackageTest):
    def test_sums_and_extremes(self):
        for label, x, axis in arrays(DTYPES):
            with self.subTest(label):
                self.same_numbers(scand.cumsum(x, axis), np.cumsum(x, axis))
                self.same_numbers(scand.cumulative_sum(x, axis=axis), np.cumsum(x, axis))
                if x.dtype.kind != "c":
                    self.same_numbers(scand.maximum_accumulate(x, axis), np.maximum.accumulate(x, axis))
                    self.same_numbers(scand.minimum_accumulate(x, axis), np.minimum.accumulate(x, axis))

    def same_numbers(self, got, expected):
        """Compares numbers in whatever byte order."""
        self.same(got, expected.astype(got.dtype) if got.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=") else expected)

    def test_initial_values(self):
        for label, x, axis in arrays(DTYPES):
            with self.subTest(label):
                sums = np.cumsum(x, axis)
                initial = np.zeros([1 if at == axis % x.ndim else n for at, n in enumerate(x.shape)], sums.dtype)
                expected = np.concatenate([initial, sums], axis)
                self.same_numbers(scand.cumulative_sum(x, axis=axis, include_initial=True), expected)
                out = np.empty(expected.shape, sums.dtype)
                self.assertIs(scand.cumulative_sum(x, axis=axis, include_initial=True, out=out), out)
                self.same_numbers(out, expected)

    def test_products(self):
        for dtype in ("f4", "f8", "i1", "i8", ">f4", "u2"):
            x = np.exp2(whole_numbers((3, 20)) / 2).round().astype(dtype)
            for axis in (0, 1):
                expected = np.cumprod(x, axis)
                self.same_numbers(scand.cumprod(x, axis), expected)
                self.same_numbers(scand.cumulative_prod(x, axis=axis), expected)
                ones = np.ones_like(expected.take([0], axis))
                self.same_numbers(scand.cumulative_prod(x, axis=axis, include_initial=True), np.concatenate([ones, expected], axis))

    def test_axes_and_scalars(self):
        x = whole_numbers((3, 4))
        self.same(scand.cumulative_sum(x[0]), np.cumsum(x[0]))
        self.same(scand.cumulative_sum(5, include_initial=True), np.array([0, 5]))
        with self.assertRaisesRegex(ValueError, "^axis: x has 2 of them"):
            scand.cumulative_sum(x)
        for function in (scand.cumsum, scand.maximum_accumulate, scand.cumulative_sum, scand.cumulative_prod):
            for more in ({}, {"include_initial": True} if "cumulative" in function.__name__ else {}):
                with self.assertRaisesRegex(ValueError, "axis 2 is out of bounds"):
                    function(x, axis=2, **more)

    def test_asked_dtypes(self):
        x = whole_numbers((3, 30), "i4")
        for dtype in ("f4", "f8", "i2", "i4", "u1", "?", "c16"):
            self.same(scand.cumsum(x, dtype=dtype), np.cumsum(x, -1, dtype))
            self.same(scand.cumsum(x.astype("f8"), dtype=dtype), np.cumsum(x, -1, dtype))
            if dtype not in ("?", "c16"):
                self.same(scand.maximum_accumulate(x, dtype=dtype), np.maximum.accumulate(x.astype(dtype), -1))

    def test_wrong_out(self):
        x = whole_numbers((3, 8))
        frozen = np.zeros((3, 9))
        frozen.flags.writeable = False
        for out, error, text in (
            (frozen, ValueError, "read-only"), (np.zeros((3, 9), int), TypeError, "cannot hold"), (np.zeros((3, 8)), ValueError, "shape"),
        ):
            with self.assertRaisesRegex(error, f"^out: .*{text}"):
                scand.cumulative_sum(x, axis=1, dtype=float, out=out, include_initial=True)

    def test_what_is_no_axis_spacing_or_array_is_named(self):
        x = np.ones((3, 8))
        for name, call in (
            ("axis: None", lambda: scand.lfilter([1], [1, 0.5], x, axis=None)),
            ("axis: 1.0", lambda: scand.cumulative_trapezoid(x, axis=1.0)),
            ("dx: 'a'", lambda: scand.cumulative_trapezoid(x, dx="a")),
            ("dx: 1j", lambda: scand.cumulative_trapezoid(x, dx=1j)),
            ("out: list", lambda: scand.cumulative_sum([1.0, 2], out=[1], include_initial=True)),
        ):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"^{name} is no "):
                call()

    def test_masks_are_not_left_out(self):
        with self.assertRaisesRegex(TypeError, "^x: it is a masked array"):
            scand.cumsum(np.ma.masked_array([1.0, 2, 3], [0, 1, 0]))
        x, masked = np.ones(3), np.ma.masked_array([1.0, 2, 3], [0, 1, 0])
        for name, call in (
            ("x", lambda: scand.lfilter([1], [1, 0.5], masked)),
            ("b", lambda: scand.lfilter(masked[:2], [1, 0.5], x)),
            ("a", lambda: scand.lfilter([1], masked[:2], x)),
            ("zi", lambda: scand.lfilter([1], [1, 0.5], x, zi=masked[:1])),
            ("y", lambda: scand.cumulative_trapezoid(masked)),
            ("x", lambda: scand.cumulative_trapezoid(x, masked)),
            ("offsets", lambda: scand.scan(x, offsets=np.ma.masked_array([0, 3], [0, 1]))),
            ("coefficient", lambda: scand.scan(x, op="affine", coefficient=masked)),
            (r"steps\[0\].other", lambda: scand.run(x, [("map", {"op": "add", "other": masked})])),
        ):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"^{name}: it is a masked array"):
                call()

    def test_extremes_keep_nan(self):
        x = np.array([1, 3, 2, np.nan, 5, 4.0])
        self.same(scand.maximum_accumulate(x), np.maximum.accumulate(x))
        self.same(scand.minimum_accumulate(x), np.minimum.accumulate(x))


class SciPyNames(PackageTest):
    def near(self, got, expected):
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype.newbyteorder("=")))
        digits = 1e-12 if got.dtype.char in "dD" else 1e-5 if got.dtype.char in "fF" else 1e-2
        np.testing.assert_allclose(got, expected, rtol=digits, atol=digits)

    @unittest.skipUnless(importlib.util.find_spec("scipy"), "there is no scipy here")
    def test_cumulative_trapezoid_is_scipys(self):
        from scipy.integrate import cumulative_trapezoid

        for label, y, axis in arrays([dtype for dtype in DTYPES if dtype != "?"]):  # True + True is True there
            with self.subTest(label):
                if not y.shape[axis]:
                    with self.assertRaisesRegex(ValueError, "^y: there is no sample"):
                        scand.cumulative_trapezoid(y, axis=axis)
                    continue
                places = np.cumsum(1 + np.arange(y.shape[axis]) % 3)
                self.near(scand.cumulative_trapezoid(y, axis=axis, dx=0.25), cumulative_trapezoid(y, axis=axis, dx=0.25))
                self.near(scand.cumulative_trapezoid(y, axis=axis, initial=0), cumulative_trapezoid(y, axis=axis, initial=0))
                self.near(scand.cumulative_trapezoid(y, places, axis=axis), cumulative_trapezoid(y, places, axis=axis))

    @unittest.skipUnless(importlib.util.find_spec("scipy"), "there is no scipy here")
    def test_lfilter_is_scipys(self):
        from scipy.signal import lfilter

        for label, x, axis in arrays(DTYPES):
            with self.subTest(label):
                for b, a in (([1, 0.5], [2, -1]), (np.float32([1]), np.float32([1, -0.5])), ([2.0], [1.0])):
                    if len(a) == 1 and not x.size:
                        continue  # SciPy refuses that
                    self.near(scand.lfilter(b, a, x, axis), lfilter(b, a, x, axis))
                if not x.size:
                    continue  # SciPy's state is what was in memory
                for b, a in (([1, 0.5], [1, -0.5]), ([3.0], [2.0])):
                    zi = whole_numbers([len(b) - 1 if at == axis % x.ndim else n for at, n in enumerate(x.shape)])
                    for got, expected in zip(scand.lfilter(b, a, x, axis, zi), lfilter(b, a, x, axis, zi)):
                        self.near(got, expected)
        x = whole_numbers((3, 20))
        self.near(scand.lfilter([1j, 2], [1, -0.5], x), lfilter([1j, 2], [1, -0.5], x))
        self.near(scand.lfilter([1, 2], [1j, -0.5], x), lfilter([1, 2], [1j, -0.5], x))
        for got, expected in zip(scand.lfilter([1], [1, -0.5], x, zi=np.full((1, 1), 2j)), lfilter([1], [1, -0.5], x, zi=np.full((1, 1), 2j))):
            self.near(got, expected)

    def test_cumulative_trapezoid(self):
        y = whole_numbers((3, 4, 5))
        places = np.cumsum(np.abs(whole_numbers(5, seed=1)))
        for axis in (0, 1, 2, -1):
            a, b = np.moveaxis(y, axis, -1)[..., 1:], np.moveaxis(y, axis, -1)[..., :-1]
            expected = np.moveaxis(np.cumsum((a + b) / 2 * 0.5, -1), -1, axis)
            self.same(scand.cumulative_trapezoid(y, dx=0.5, axis=axis), expected)
            begun = np.concatenate([np.zeros_like(y.take([0], axis)), expected], axis)
            self.same(scand.cumulative_trapezoid(y, dx=0.5, axis=axis, initial=0), begun)
        self.same(scand.cumulative_trapezoid(y, places), np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * np.diff(places), -1))
        self.same(scand.cumulative_trapezoid([1, 2, 3]), np.array([1.5, 4.0]))
        self.assertEqual(scand.cumulative_trapezoid(np.ones((2, 3), "f4")).dtype, np.float32)
        self.same(scand.cumulative_trapezoid(np.full(5, 40000, "f2"), dx=0.25), np.array([10000, 20000, 30000, 40000], "f2"))
        noise = np.random.default_rng(16).standard_normal((3, 700)).astype("f4")
        self.same(scand.cumulative_trapezoid(noise, initial=0), scand.scan(noise, kind="trapezoid"))
        self.same(scand.cumulative_trapezoid(noise, dx=0.004, initial=0), scand.scan(noise, kind="trapezoid") * np.float32(0.004))
        self.same(scand.cumulative_trapezoid(y * 1j, dx=2, initial=0), scand.cumulative_trapezoid(y, dx=2, initial=0) * 1j)
        for arguments, text in (((y, [1, 2]), r"^x: its shape is \(2,\)"), ((y[..., :0],), "^y: there is no sample")):
            with self.assertRaisesRegex(ValueError, text):
                scand.cumulative_trapezoid(*arguments)

    def test_lfilter(self):
        x = whole_numbers((2, 3, 40))
        for b, a, axis in itertools.product(([1.0], [2.0, 1.0]), ([1.0], [1.0, -0.5], [2.0, 1.0]), (0, 1, 2)):
            with self.subTest(b=b, a=a, axis=axis):
                order = max(len(b), len(a)) - 1
                state = whole_numbers([order if at == axis else n for at, n in enumerate(x.shape)], seed=1)
                expected, after = filtered(b, a, x, axis, state)
                got, state_after = scand.lfilter(b, a, x, axis, state)
                np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-12)
                np.testing.assert_allclose(state_after, after, rtol=1e-13, atol=1e-12)
                np.testing.assert_allclose(scand.lfilter(b, a, x, axis), filtered(b, a, x, axis, state * 0)[0], atol=1e-12)
        self.assertEqual(scand.lfilter(np.float32([1]), np.float32([1, -0.9]), x.astype("f4")).dtype, np.float32)
        for arguments, text in (
            (([1], [1, 2, 3], x), "^a: its shape is"), (([1], [0, 1], x), r"^a: a\[0\] is 0"), (([], [1], x), "^b: its shape is"),
            (([1], [1, complex("infj")], x), r"^a: a\[1\] / a\[0\] is .*; complex coefficients have to be finite"),
            (([1], [1, 1], x, 3), "^axis: 3 is none"), (([1], [1, 1], x, -1, [1, 2]), r"^zi: its shape is \(2,\)"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                scand.lfilter(*arguments)

    def test_lfilter_of_complex_coefficients(self):
        x = whole_numbers((2, 3, 400))
        for b, a in (([1.0], [1.0, 0.6 - 0.7j]), ([2j, 1.0], [1j, 0.5 + 0.5j]), ([1.0], [2.0, -1.9j]), ([1.0], [1j, 0.5j])):
            for axis, samples in itertools.product((0, 1, 2), (x, x * (1 + 0.5j))):
                with self.subTest(b=b, a=a, axis=axis, dtype=samples.dtype):
                    state = whole_numbers([1 if at == axis else n for at, n in enumerate(x.shape)], seed=1) * 1j
                    expected, after = filtered(b, a, samples, axis, state)
                    got, state_after = scand.lfilter(b, a, samples, axis, state)
                    self.assertEqual(got.dtype, np.complex128)
                    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-11)
                    np.testing.assert_allclose(state_after, after, rtol=1e-12, atol=1e-11)
        short = scand.lfilter(np.complex64([1]), np.complex64([1, 0.5j]), x.astype("f4"))
        self.assertEqual(short.dtype, np.complex64)
        np.testing.assert_allclose(short, filtered([1], [1, 0.5j], x, 2, np.zeros((2, 3, 1)))[0], rtol=1e-5, atol=1e-5)
        self.assertEqual(scand.lfilter([1], [1, 0.5j], np.zeros((2, 0))).shape, (2, 0))

    def test_turns_are_those_of_one_coefficient(self):
        """Far along a row, too: an impulse becomes the powers of the coefficient, whose angle is as good at the end."""
        x = np.zeros(1_000_001)
        x[0] = 1
        got, turn = scand.lfilter([1], [1, -np.exp(2j)], x), fractions.Fraction(float(np.angle(np.exp(2j)) / (2 * np.pi)))
        for at in (1, 1000, 999_999, 1_000_000):
            self.assertLess(abs(np.angle(got[at] / np.exp(2j * np.pi * float(turn * at % 1)))), 4e-15)


def filtered(b, a, x, axis, state):
    """The filter's definition, sample by sample."""
    kind = np.result_type(x, state, *map(np.asarray, (b, a)), float)
    rows, results = np.moveaxis(x, axis, -1), np.moveaxis(np.empty(x.shape, kind), axis, -1)
    b, a = [*b, 0.0][:2], [*a, 0.0][:2]
    order = state.shape[axis]
    state = np.moveaxis(state, axis, -1)[..., 0].copy() if order else np.zeros(rows.shape[:-1])
    for i in range(rows.shape[-1]):
        results[..., i] = b[0] / a[0] * rows[..., i] + state
        state = b[1] / a[0] * rows[..., i] - a[1] / a[0] * results[..., i]
    return np.moveaxis(results, -1, axis), np.expand_dims(state, axis).take(range(order), axis)


if __name__ == "__main__":
    main()

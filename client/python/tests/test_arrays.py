#!/usr/bin/env python3
"""Scans and reductions of arrays of every dtype, layout and rank, compared with NumPy's.

Samples are small whole numbers, so that every sum is exact, in whatever order it is made; random ones are compared with
exact sums.
"""

import itertools
import math

import numpy as np

import scand
from rig import SEED, PackageTest, layouts, main, whole_numbers

DTYPES = "f2 f4 f8 >f2 >f4 >f8 i1 i2 i4 i8 u1 u2 u4 u8 >i2 >u4 ? c8 c16 >c8".split()
SHAPES = [(7,), (3, 5), (2, 3, 4), (3, 2, 4, 5), (2, 3, 2, 4, 3), (2, 1, 3, 2, 2, 2), (1, 1, 1, 1, 1, 6)]


def double_integral(x, axis=-1):
    forward = np.cumsum(x, axis)
    return np.flip(np.cumsum(np.flip(forward, axis), axis), axis)


class Cumsum(PackageTest):
    def test_dtypes(self):
        for name in DTYPES:
            with self.subTest(name):
                x = whole_numbers((3, 40), name)
                self.same(scand.cumsum(x), np.cumsum(x, -1))

    def test_calls_like_earlier_ones(self):
        """They convert as the first one does."""
        for x in np.array([0.5, 0, 0.25, 0]), np.array([256, -256, 0, 1]):
            for shared in x, scand.asarray(x):
                for _ in range(3):
                    self.same(scand.scan(shared, op="max", dtype=bool), np.ones(4, bool))
                    self.same(scand.cumsum(shared, dtype=bool), np.ones(4, bool))

    def test_small_integers_reduced_to_unsigned_ones(self):
        """Samples are converted first, as larger ones and those of scans are."""
        for name in "i1 >i2 i4 i8".split():
            x = np.array([[2, -3, 1], [-1, -1, -1]], name)
            for asked in "u1", "u4", ">u8":
                for op, ufunc in (("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
                    for given in x, scand.asarray(x):
                        np.testing.assert_array_equal(scand.reduce(given, op, dtype=asked), ufunc.reduce(x.astype(asked), -1, dtype=np.dtype(asked).type))

    def test_small_integers_lie_where_they_are(self):
        for name in "i1 u1 i2 u2 >i2 >u2".split():
            with self.subTest(name):
                x = scand.asarray(whole_numbers((3, 40), name))
                for asked in ("f4", "f8"):
                    self.same(scand.scan(x, dtype=asked, copy=False), np.cumsum(x, -1, dtype=asked))
                out = scand.empty(x.shape, name)
                scand.scan(x, op="max", out=out, copy=False)
                np.testing.assert_array_equal(out, np.maximum.accumulate(x, -1))
                self.same(scand.reduce(x, copy=False), x.sum(-1))
                self.same(scand.reduce(x, "mean", copy=False), x.mean(-1))
                np.testing.assert_array_equal(scand.reduce(x, "min", copy=False), x.min(-1))
                self.same(scand.scan(x, demean=True, dtype="f8"), scand.scan(x.astype("f8"), demean=True))
                weights = np.linspace(0, 1, 40, dtype="f4")
                steps = [("map", {"op": "mul", "other": weights})]
                self.same(scand.run(x, steps, dtype="f4", copy=False), x.astype("f4") * weights)
                self.same(scand.run(x, [("map", {"op": "exp"})], dtype="f8"), scand.run(x.astype("f8"), [("map", {"op": "exp"})]))
                self.same(scand.run(x, [("map", {"op": "mul", "by": 300})]), (x.astype("i8") * 300).astype(x.dtype.newbyteorder("=")))

    def test_small_integers_become_large_ones_in_the_job(self):
        """Sums and products of those that must not be copied, to the ends of their range, wrapping as NumPy's do."""
        random = np.random.default_rng(SEED)
        for name in "i1 u1 i2 u2 >i2 >u2".split():
            with self.subTest(name):
                ends = np.iinfo(name)
                given = random.integers(ends.min, ends.max, (3, 600), endpoint=True).astype(name)
                x = scand.asarray(given)
                self.same(scand.cumsum(x, copy=False), np.cumsum(given, -1))
                self.same(scand.cumsum(x, 0, copy=False), np.cumsum(given, 0))
                self.same(scand.cumsum(x[:, ::-2], copy=False), np.cumsum(given[:, ::-2], -1))
                self.same(scand.cumprod(x, copy=False), np.cumprod(given, -1))
                self.same(scand.scan(x, "backward", kind="exclusive", copy=False), scand.scan(given.astype(np.cumsum(given, -1).dtype), "backward", kind="exclusive"))
                for asked in ("i4", "i8", *(("u4", "u8") if np.dtype(name).kind == "u" else ())):
                    self.same(scand.cumsum(x, dtype=asked, copy=False), np.cumsum(given, -1, dtype=asked))
                    out = scand.empty(x.shape, asked)
                    self.assertIs(scand.cumsum(x, out=out, copy=False), out)
                    self.same(out, np.cumsum(given, -1, dtype=asked))
                self.same(scand.run(given, [("map", {"op": "cast"}), ("scan", {"passes": "backward"})], dtype="i8"),
                          np.flip(np.cumsum(np.flip(given, -1), -1, dtype="i8"), -1))
                self.same(scand.submit(x, copy=False).result(), np.cumsum(given, -1))
        with self.assertRaisesRegex(ValueError, "^x: copy=False"):
            scand.cumsum(scand.asarray(np.array([-1, 2], "i1")), dtype="u8", copy=False)

    def test_big_endian_numbers_lie_where_they_are(self):
        for name in (">f4", ">f8", ">i8", ">u4", ">u8"):
            with self.subTest(name):
                x = whole_numbers((3, 40), name)
                asked = np.dtype("u8") if name == ">u4" else x.dtype.newbyteorder("=")
                self.same(scand.scan(scand.asarray(x), dtype=asked, copy=False), np.cumsum(x, -1, dtype=asked))

    def test_asked_dtypes(self):
        for given, asked in itertools.product("f4 f8 i1 i4 i8 u2 u8 ?".split(), "f4 f8 i2 i4 i8 u1 u8 c16".split()):
            with self.subTest(given=given, asked=asked):
                x = whole_numbers((3, 40), given)
                self.same(scand.cumsum(x, dtype=asked), np.cumsum(x, -1, dtype=asked))

    def test_layouts_ranks_and_axes(self):
        for shape in SHAPES:
            x = whole_numbers(shape)
            for (name, array), axis in itertools.product(layouts(x), range(-1, len(shape))):
                with self.subTest(shape=shape, layout=name, axis=axis):
                    self.same(scand.cumsum(array, axis), np.cumsum(x, axis))

    def test_shared_arrays_of_every_layout_are_not_copied(self):
        for shape in SHAPES[:4]:
            whole = scand.asarray(whole_numbers([3 * n for n in shape]))
            for step, axis in itertools.product((1, 2, -1, -3), range(len(shape))):
                with self.subTest(shape=shape, step=step, axis=axis):
                    x = whole[tuple(slice(None, None, step) for _ in shape)]
                    self.same(scand.cumsum(x, axis, copy=False), np.cumsum(x, axis))

    def test_ranks_above_four_fold_where_they_lie(self):
        x = scand.asarray(whole_numbers((2, 3, 2, 4, 3, 2)))
        self.same(scand.cumsum(x, 3, copy=False), np.cumsum(x, 3))
        with self.assertRaisesRegex(ValueError, "^x: copy=False"):
            scand.cumsum(x[:, ::2, ::-1, ::2, ::-1, :], 3, copy=False)
        self.same(scand.cumsum(x[:, ::2, ::-1, ::2, ::-1], 3), np.cumsum(x[:, ::2, ::-1, ::2, ::-1], 3))

    def test_complex_numbers_of_rank_four(self):
        """Their parts are a dimension more, which has to be folded."""
        x = scand.asarray(whole_numbers((2, 3, 2, 4), "c8") * (1 + 2j))
        for order, axis in itertools.product(itertools.permutations(range(4)), range(4)):
            with self.subTest(order=order, axis=axis):
                self.same(scand.cumsum(x.transpose(order), axis), np.cumsum(x.transpose(order), axis))

    def test_repeated_samples(self):
        x = np.broadcast_to(scand.asarray(whole_numbers((1, 50))), (20, 50))
        self.same(scand.cumsum(x, copy=False), np.cumsum(x, -1))
        self.same(scand.cumsum(x, 0, copy=False), np.cumsum(x, 0))

    def test_nothing_and_one(self):
        for shape in ((0,), (3, 0), (0, 3), (2, 0, 4)):
            self.same(scand.cumsum(np.zeros(shape)), np.cumsum(np.zeros(shape), -1))
        self.same(scand.cumsum(5), np.cumsum(5))
        for layout in (np.ascontiguousarray, np.asfortranarray):
            for x in (layout([[1, 2], [3, 4]]), layout(whole_numbers((3, 4), "f4"))):
                for time in range(3):  # the first one makes the plan for the others
                    with self.subTest(x.flags, time=time):
                        self.same(scand.cumsum(x, axis=None), np.cumsum(x))

    def test_pieces(self):
        """Ordinary memory of many pieces, along and across its rows, with a rest."""
        x = whole_numbers((1031, 4099), np.float32)
        for axis in (0, 1):
            self.same(scand.cumsum(x, axis, dtype="f8"), np.cumsum(x, axis, dtype="f8"))
            out = np.empty_like(x)
            self.assertIs(scand.cumsum(x, axis, out=out), out)
            self.same(out, np.cumsum(x, axis, dtype="f8").astype("f4"))

    def test_random_sums_are_rounded_once(self):
        x = np.random.default_rng(SEED).standard_normal(3000) * 10.0 ** np.random.default_rng(SEED).integers(-8, 8, 3000)
        exact = np.array([math.fsum(x[: i + 1]) for i in range(x.size)])
        near = np.cumsum(np.abs(x)) * np.finfo(float).eps * 100
        self.assertTrue((np.abs(scand.cumsum(x) - exact) <= near).all())
        single = x.astype("f4")
        exact = np.array([math.fsum(single[: i + 1].tolist()) for i in range(x.size)])
        got = scand.cumsum(single)
        self.assertEqual(got.dtype, np.float32)
        self.assertTrue((np.abs(got - exact) <= np.abs(exact) * 2.0**-24 + np.cumsum(np.abs(single), dtype="f8") * 1e-13).all())


class Out(PackageTest):
    def test_every_pair(self):
        x = whole_numbers((6, 30), np.float32)
        for shared_x, shared_out, dtype in itertools.product((False, True), (False, True), ("f4", "f8", ">f4", "c8")):
            with self.subTest(shared_x=shared_x, shared_out=shared_out, dtype=dtype):
                given = scand.asarray(x) if shared_x else x
                out = (scand.empty if shared_out else np.empty)((6, 30), dtype)
                self.assertIs(scand.cumsum(given, out=out), out)
                self.same(out, np.cumsum(x, -1, out=np.empty((6, 30), dtype)))

    def test_in_place(self):
        for make in (np.copy, scand.asarray):
            x = whole_numbers((6, 30))
            y = make(x)
            scand.scan(y, "forward,backward", out=y)
            self.same(y, double_integral(x))

    def test_overlapping(self):
        x = whole_numbers(2000)
        for make in (np.copy, scand.asarray):
            for step in (slice(1, None), slice(None, -1), slice(None, None, -1)):
                y = make(x)
                source, out = (y, y[::-1]) if step.step else (y[:-1], y[1:]) if step.start else (y[1:], y[:-1])
                expected = np.cumsum(source)
                scand.cumsum(source, out=out)
                self.same(out, expected)
        for name, out_name, step in ("f4", "f4", 2), ("u1", "i8", 1), (">f8", "f8", 3), ("i8", ">f8", 2):
            for make in np.zeros, scand.empty:  # one dimension, and other strides: NumPy's copies are wrong there
                y = make(3000 * 8, "u1")
                source, out = y.view(name)[100:1100], y.view(out_name)[: 1000 * step : step]
                source[...] = whole_numbers(1000, name)
                expected = np.cumsum(source.astype(out_name))
                scand.cumsum(source, out=out)
                np.testing.assert_array_equal(out, expected)
        y = scand.asarray(x)
        with self.assertRaisesRegex(ValueError, "^x: copy=False.*overlaps"):
            scand.cumsum(y[1:], out=y[:-1], copy=False)

    def test_wrong_ones(self):
        x = whole_numbers((3, 4))
        frozen = np.empty((3, 4))
        frozen.flags.writeable = False
        for out, error, text in (
            (np.empty((4, 3)), ValueError, r"^out: its shape is \(4, 3\), that of the result \(3, 4\)"),
            (frozen, ValueError, "^out: the array is read-only"),
            ([0.0] * 12, TypeError, "^out: list is no NumPy array"),
            (np.broadcast_to(scand.empty((1, 4)), (3, 4)), ValueError, "read-only"),
        ):
            with self.assertRaisesRegex(error, text):
                scand.cumsum(x, out=out)
        with self.assertRaisesRegex(TypeError, "cannot hold"):
            scand.cumsum(x, dtype=float, out=np.empty((3, 4), int))
        for given, dtype in ((x / 3, "i8"), (x / 3, "u1"), (x + 1j, "f8"), (x + 1j, "i4")):
            for function in scand.cumsum, scand.cumprod, scand.reduce:
                shape = (3,) if function is scand.reduce else (3, 4)
                with self.assertRaisesRegex(TypeError, f"^out: its dtype {np.dtype(dtype)} cannot hold results of {given.dtype}; .*dtype="):
                    function(given, out=np.empty(shape, dtype))
        self.same(scand.cumsum(x / 3, dtype=int, out=np.empty((3, 4), int)), np.cumsum(x / 3, -1, dtype=int))
        self.same(scand.run(x / 3, [("map", {"op": "cast"})], out=np.empty((3, 4), int)), (x / 3).astype(int))
        overlapping = np.lib.stride_tricks.as_strided(scand.empty(4), (3, 4), (0, 8))
        with self.assertRaisesRegex(scand.InvalidError, "stride"):
            scand.cumsum(x, out=overlapping)


class Again(PackageTest):
    """Calls like earlier ones, for which what those have found is used."""

    def test_every_layout(self):
        for dtype, axis in itertools.product(("f4", ">f4", "i2", "?", "c8"), (0, -1)):
            for turn in range(3):
                for name, x in layouts(whole_numbers((6, 50), dtype, seed=turn)):
                    with self.subTest(dtype=dtype, axis=axis, turn=turn, layout=name):
                        for given in (x, scand.asarray(x)):
                            self.same(scand.cumsum(given, axis), np.cumsum(x, axis))
                            self.same(np.asarray(scand.reduce(given, axis=axis)), np.asarray(x.sum(axis)))
                            self.same(scand.run(given, ["scan"], axis=axis), np.cumsum(x, axis))

    def test_zeros_are_told_apart(self):
        x = np.array([1, -1], "f4")
        for by in 0.0, -0.0, np.float32(0), np.float32(-0.0):
            results = scand.run(x, [("map", {"op": "mul", "by": by})])
            np.testing.assert_array_equal(np.signbit(results), np.signbit(x * by))

    def test_out_is_checked_each_time(self):
        x = whole_numbers(50)
        source, out = scand.asarray(x), scand.empty(50)
        overlapping, frozen = scand.empty(51), scand.empty(50)
        frozen.flags.writeable = False
        for _ in range(3):
            self.assertIs(scand.cumsum(source, out=out, copy=False), out)
            self.same(out, np.cumsum(x))
            with self.assertRaisesRegex(ValueError, "read-only"):
                scand.cumsum(source, out=frozen)
            overlapping[:-1] = x
            with self.assertRaisesRegex(ValueError, "overlaps"):
                scand.cumsum(overlapping[:-1], out=overlapping[1:], copy=False)
            self.same(scand.cumsum(overlapping[:-1], out=overlapping[1:]), np.cumsum(x))
            self.same(scand.cumsum(source, out=np.empty(50)), np.cumsum(x))
            with self.assertRaisesRegex(ValueError, "^x: copy=False"):
                scand.cumsum(x, copy=False)
            self.same(scand.cumsum(x), np.cumsum(x))

    def test_memory_that_was_given_back(self):
        """Another block lies where the first was: what was imported of that is not used for it."""
        for turn in range(4):
            x = scand.asarray(whole_numbers(3000, seed=turn))
            self.same(scand.cumsum(x, copy=False), np.cumsum(x))
            del x
            scand.trim()

    def test_failures_are_raised_each_time(self):
        x = scand.asarray(whole_numbers(50))
        for _ in range(3):
            with self.assertRaisesRegex(scand.InvalidError, "half"):
                scand.scan(x, op="max", kind="half")
            self.same(scand.scan(x, op="max"), np.maximum.accumulate(x))


class Scan(PackageTest):
    def test_rules(self):
        x = whole_numbers((4, 100))
        self.same(scand.scan(x, "backward"), np.flip(np.cumsum(np.flip(x, -1), -1), -1))
        self.same(scand.scan(x, ["forward", "backward"], axis=0), double_integral(x, 0))
        self.same(scand.scan(x, kind="exclusive"), np.cumsum(x, -1) - x)
        self.same(scand.scan(x, kind="half"), np.cumsum(x, -1) - x / 2)
        self.same(scand.scan(x, op="max"), np.maximum.accumulate(x, -1))
        self.same(scand.scan(x, op="min", passes="backward"), np.flip(np.minimum.accumulate(np.flip(x, -1), -1), -1))
        self.same(scand.scan(np.exp2(x), op="prod"), np.cumprod(np.exp2(x), -1))
        shifted = x + 3 - x.mean(-1, keepdims=True)
        centred = shifted - shifted.mean(-1, keepdims=True)
        np.testing.assert_allclose(scand.scan(shifted, demean=True), np.cumsum(centred, -1), atol=1e-11)

    def test_trapezoids(self):
        """Trapezoids equal SciPy's cumulative_trapezoid with initial=0: forward, backward, and one of the other."""

        def forward(x):
            return np.concatenate([np.zeros_like(x[..., :1]), np.cumsum((x[..., 1:] + x[..., :-1]) / 2, -1)], -1)

        def backward(x):
            return np.flip(forward(np.flip(x, -1)), -1)

        for length in (1, 2, 16, 17, 513, 20000, 40000):
            x = whole_numbers((3, length)) * 2
            for options in ({}, {"accumulator": "f2"}):
                self.same(scand.scan(x, kind="trapezoid", **options), forward(x))
                self.same(scand.scan(x, "backward", kind="trapezoid", **options), backward(x))
                self.same(scand.scan(x, "forward,backward", kind="trapezoid", **options), backward(forward(x)))
            columns = np.ascontiguousarray(x.T)
            self.same(scand.scan(columns, kind="trapezoid", axis=0), np.ascontiguousarray(forward(x).T))
        x = whole_numbers((3, 50)).astype("f4")
        self.same(scand.scan(x, kind="trapezoid", accumulator="f32"), forward(x))
        self.same(scand.run(x, [("scan", {"kind": "trapezoid", "scale": 0.5})]), forward(x) * np.float32(0.5))
        self.same(scand.scan(np.array([[np.nan, 1, 2], [np.inf, 3, 4]]), kind="trapezoid")[:, 0], np.zeros(2))
        noise = np.random.default_rng(15).standard_normal((4, 3000))
        np.testing.assert_allclose(scand.scan(noise, kind="trapezoid"), forward(noise), rtol=0, atol=1e-11)
        with self.assertRaisesRegex(scand.InvalidError, '"trapezoid", but .* is of integers; allowed: inclusive, exclusive'):
            scand.scan(np.arange(5), kind="trapezoid")

    def test_results_in_f64_keep_the_digits_between_passes(self):
        x = np.full((3, 9000), 5e6, "f4")
        expected = double_integral(x.astype("f8"))
        self.same(scand.scan(x, "forward,backward", dtype="f8"), expected)
        self.same(scand.scan(x, "forward,backward", out=scand.empty(x.shape)), expected)
        self.assertTrue((scand.scan(x, "forward,backward", dtype="f8", intermediate="f32") != expected).any())

    def test_recurrences(self):
        x = whole_numbers((3, 20))
        factors = whole_numbers((3, 20), seed=1)
        factors[:, ::3] = 0
        expected = x.copy()
        for i in range(1, 20):
            expected[:, i] += factors[:, i] * expected[:, i - 1]
        self.same(scand.scan(x, op="affine", coefficient=factors), expected)
        self.same(scand.scan(scand.asarray(x), op="affine", coefficient=scand.asarray(factors), copy=False), expected)
        once = x.copy()
        for i in range(1, 20):
            once[:, i] += factors[1, i] * once[:, i - 1]
        self.same(scand.scan(x, op="affine", coefficient=factors[1]), once)
        self.same(scand.scan(x, op="affine", coefficient=1), np.cumsum(x, -1))
        with self.assertRaisesRegex(ValueError, r"^coefficient: its shape \(7,\) does not fit"):
            scand.scan(x, op="affine", coefficient=np.ones(7))

    def test_forms_that_numpy_lacks(self):
        ibm = np.array([0x41100000, 0xC1200000, 0x41300000, 0x00000000], ">u4")  # 1, -2, 3, 0
        for x in (ibm, scand.asarray(ibm)):
            self.same(scand.scan(x, form="ibm32"), np.array([1, -1, 2, 2], "f4"))
            little = np.array(ibm, "<u4")
            self.same(scand.scan(little, form="ibm32le"), np.array([1, -1, 2, 2], "f4"))
        self.same(scand.scan(np.array([1, -2, 30000], ">i2"), form="i16be"), np.array([1, -1, 29999], "f4"))
        self.same(scand.scan(np.array([1, -2, 100], "i1"), form="i8"), np.array([1, -1, 99], "f4"))
        self.same(scand.scan(np.array([1 << 30, 1], "<i4"), form="i32le"), np.array([2.0**30, 2.0**30 + 1]))
        self.same(scand.scan(np.array([1 << 30, 1], ">i4"), form="i32be"), np.array([2.0**30, 2.0**30 + 1]))
        ieee = ibm.view(">f4")
        with self.assertRaisesRegex(TypeError, r"sums of floats, not of >u4; .* x.view\('>f4'\)$"):
            scand.scan(ibm, form="ibm32", out=ibm)
        scand.scan(ibm, form="ibm32", out=ieee)
        self.same(ieee, np.array([1, -1, 2, 2], ">f4"))
        for form, text in (("ibm32", "have 4 bytes"), ("f32", "leave form out"), ("vax", "^form: 'vax' is not one of f32, f64")):
            with self.assertRaisesRegex(ValueError, text):
                scand.scan(np.zeros(3, "f4" if form == "f32" else "f8"), form=form)

    def test_words(self):
        x = whole_numbers(10)
        for options, text in (
            ({"passes": "sideways"}, "^passes: 'sideways' is not one of forward, backward$"),
            ({"axis": (0, 1)}, r"^axis: \(0, 1\) are several; only reductions"),
            ({"passes": ["forward"] * 3}, "are 3; take one or two"),
            ({"passes": []}, "are 0"),
            ({"op": "median"}, "^op: 'median' is not one of sum, prod, max, min, affine$"),
            ({"kind": "double"}, "^kind: 'double' is not one of inclusive, exclusive, half, trapezoid$"),
            ({"accumulator": 3}, "^accumulator: 3 is not one of"),
            ({"kind": "half", "op": "max"}, '"half", which is for'),
            ({"kind": "trapezoid", "op": "prod"}, '"trapezoid", which is for'),
            ({"op": "affine"}, "coefficient"),
            ({"deadline": 0}, "^deadline: 0 is not between 0.001 and 86400"),
            ({"axis": 1}, "axis 1 is out of bounds for array of dimension 1"),
        ):
            with self.subTest(options), self.assertRaisesRegex(ValueError, text):
                scand.scan(x, **options)
        with self.assertRaisesRegex(ValueError, "^op: 'median' is not one of sum, min, max, mean, rms, norm$"):
            scand.reduce(x, "median")
        for options, text in (
            ({"passes": None}, "^passes: None is none; take"),
            ({"client": "default"}, "^client: 'default' is no client; take one"),
            ({"axis": 1.5}, "^axis: 1.5 is no whole number"),
            ({"axis": "time"}, "^axis: 'time' is no whole number"),
            ({"deadline": "1"}, "^deadline: '1' is no number of seconds$"),
            ({"kind": ["half"]}, r"^kind: \['half'\] is no word"),
            ({"passes": [["forward"]]}, r"^passes: \['forward'\] is no word"),
            ({"priority": {}}, "^priority: {} is no word"),
            ({"demean": "yes"}, "^demean: 'yes' is neither True nor False$"),
            ({"demean": 2}, "^demean: 2 is neither"),
            ({"copy": "no"}, "^copy: 'no' is neither True nor False$"),
            ({"op": "affine", "coefficient": "a"}, "^coefficient: 'a' is no number$"),
            ({"op": "affine", "coefficient": ["a"] * 10}, "^coefficient: its dtype is <U1, and jobs take float64 here; take numbers$"),
            ({"demaen": True}, "^demaen: there is no such keyword; take dtype, .* coefficient or client$"),
        ):
            with self.subTest(options), self.assertRaisesRegex(TypeError, text):
                scand.scan(x, **options)
        with self.assertRaisesRegex(ValueError, "^x: copy=False"):
            scand.scan(x, copy=np.False_)
        for options, text in (({"op": ["sum"]}, r"^op: \['sum'\] is no word"), ({"keepdims": "no"}, "^keepdims: 'no' is neither")):
            with self.subTest(options), self.assertRaisesRegex(TypeError, text):
                scand.reduce(x, **options)
        for call, second in ((scand.reduce, "sum"), (scand.run, ["demean"])):
            with self.subTest(call), self.assertRaisesRegex(TypeError, "^kind: there is no such keyword; take dtype, .* axis, keepdims or client$"):
                call(x, second, kind="exclusive")
        with self.assertRaisesRegex(TypeError, r"^axis: \(0, 'x'\) is no whole number"):
            scand.reduce(x, axis=(0, "x"))

    def test_dtypes_without_sums(self):
        for x in (np.zeros(3, "g"), np.zeros(3, "O"), np.zeros(3, "m8[s]"), np.array(["a"]), np.zeros(3, [("a", "f4")])):
            with self.subTest(x.dtype), self.assertRaisesRegex(TypeError, "^x: there are no scans of"):
                scand.cumsum(x)
        with self.assertRaisesRegex(TypeError, "^max: complex numbers"):
            scand.maximum_accumulate(np.zeros(3, complex))


class Reduce(PackageTest):
    def test_numbers(self):
        for name in DTYPES[:-3]:
            x = whole_numbers((3, 4, 50), name)
            for axis in (0, 1, -1, None):
                with self.subTest(name, axis=axis):
                    self.same(np.asarray(scand.reduce(x, axis=axis)), np.asarray(x.sum(axis)))
                    self.same(np.asarray(scand.reduce(x, "max", axis=axis)), np.asarray(x.max(axis)))
                    self.same(np.asarray(scand.reduce(x, "min", axis=axis)), np.asarray(x.min(axis)))

    def test_complex(self):
        x = whole_numbers((3, 50)) + 1j * whole_numbers((3, 50), seed=1)
        self.same(scand.reduce(x), x.sum(-1))

    def test_means(self):
        x = whole_numbers((5, 64))
        self.same(scand.reduce(x, "mean"), x.mean(-1))
        self.same(scand.reduce(x.astype("i2"), "mean"), x.mean(-1))
        np.testing.assert_allclose(scand.reduce(x, "rms"), np.sqrt((x * x).mean(-1)), rtol=1e-15)
        np.testing.assert_allclose(scand.reduce(x, "norm"), np.linalg.norm(x, axis=-1), rtol=1e-15)

    def test_shapes(self):
        x = whole_numbers((3, 4, 5))
        self.same(scand.reduce(x, axis=1, keepdims=True), x.sum(1, keepdims=True))
        self.assertEqual(np.ndim(scand.reduce(x[0, 0])), 0)
        for out in (np.empty((3, 5)), scand.empty((3, 5)), scand.empty((5, 3)).T):
            self.assertIs(scand.reduce(x, axis=1, out=out), out)
            self.same(out, x.sum(1))
        shared = scand.asarray(whole_numbers((2, 3, 2, 4, 3)))
        self.same(scand.reduce(shared, axis=2, copy=False), shared.sum(2))

    def test_several_axes(self):
        x = whole_numbers((3, 4, 5, 2))
        for axes in ((0,), (2, 3), (3, 2), (0, 2), (-1, 0, 1), (0, 1, 2, 3)):
            self.same(scand.reduce(x, axis=axes), x.sum(axes))
            self.same(scand.reduce(x, axis=axes, keepdims=True), x.sum(axes, keepdims=True))
            chain = [("map", {"op": "mul", "by": 2}), ("reduce", {"reduction": "sum"})]
            self.same(scand.run(x, chain, axis=axes), 2 * x.sum(axes))
        self.same(scand.reduce(x, "max", axis=[1, 2]), x.max((1, 2)))
        self.same(scand.submit_reduce(x, axis=(0, 3)).result(), x.sum((0, 3)))
        np.testing.assert_allclose(scand.reduce(x, "norm", axis=None), np.sqrt((x * x).sum()), rtol=1e-15)
        shared = scand.asarray(x)
        for out in (np.empty((1, 4, 5, 1)), scand.empty((1, 4, 5, 1)), scand.empty((5, 1, 4, 1)).transpose(1, 2, 0, 3)):
            self.assertIs(scand.reduce(shared, axis=(0, 3), keepdims=True, out=out), out)
            self.same(out, x.sum((0, 3), keepdims=True))
        self.same(scand.reduce(shared, axis=(2, 3), copy=False), x.sum((2, 3)))
        for axes, message in ((0, 4), "axis 4"), ((1, -3), "twice"), ((-5,), "axis -5"):
            with self.assertRaisesRegex(ValueError, message):
                scand.reduce(x, axis=axes)
        with self.assertRaisesRegex(ValueError, "only reductions take more than one"):
            scand.scan(x, axis=(0, 1))

    def test_no_samples(self):
        x = np.zeros((3, 0))
        self.same(scand.reduce(x), np.zeros(3))
        self.same(scand.reduce(x, "max"), np.full(3, -np.inf))
        self.assertTrue(np.isnan(scand.reduce(x, "mean")).all())
        self.same(scand.reduce(np.zeros((0, 3))), np.zeros(0))


class Chains(PackageTest):
    def test_steps(self):
        x = whole_numbers((4, 100))
        twice = double_integral(x)
        steps = [("scan", {"passes": ["forward", "backward"]}), ("scan", {"op": "max", "passes": "backward"})]
        expected = np.flip(np.maximum.accumulate(np.flip(twice, -1), -1), -1)
        for array in (x, scand.asarray(x), np.asfortranarray(x)):
            self.same(scand.run(array, steps), expected)
            self.same(scand.submit_run(array, [*steps, ("reduce", {"reduction": "max"})]).result(), expected.max(-1))
        y = scand.asarray(x)
        scand.run(y, ["scan", "scan"], axis=0, out=y, priority="high", deadline=60)
        self.same(y, np.cumsum(np.cumsum(x, 0), 0))
        halves = scand.run(x, [("scan", {"kind": "half", "demean": False}), ("reduce", {"reduction": "mean"})], keepdims=True)
        np.testing.assert_allclose(halves, (np.cumsum(x, -1) - x / 2).mean(-1, keepdims=True), rtol=1e-14)

    def test_dtypes(self):
        for name in ("f4", "i2", "u4", "i8"):
            x = whole_numbers((3, 40), name)
            self.same(scand.run(x, ["scan", "scan"]), np.cumsum(np.cumsum(x, -1), -1))
            extremes = scand.run(x, [("scan", {"op": "max"}), ("scan", {"op": "min"})])
            self.same(extremes, np.minimum.accumulate(np.maximum.accumulate(x, -1), -1))

    def test_lengths(self):
        """Steps may make results longer; a job's only step may not work in place."""
        x = whole_numbers((6, 50))
        for array in (x, scand.asarray(x), np.asfortranarray(x), x[:, ::2], x.astype("f4"), x.astype("i2")):
            for axis in (0, 1, -2):
                self.same(scand.run(array, [("upsample", {"factor": 3})], axis=axis), np.repeat(array, 3, axis))
            self.same(scand.run(array, [("upsample", {"factor": 1})]), array)
        longer = np.repeat(x, 2, 1).cumsum(1)
        out = scand.empty((6, 100))
        self.assertIs(scand.run(x, [("upsample", {"factor": 2}), "scan"], out=out), out)
        self.same(out, longer)
        self.same(scand.run(x, [("upsample", {"factor": 2}), "scan", "reduce"]), longer.sum(1))
        wide = whole_numbers((1031, 1025), np.float32)
        self.same(scand.run(wide, [("upsample", {"factor": 2})]), np.repeat(wide, 2, 1))
        with self.assertRaisesRegex(ValueError, r"^out: its shape is \(6, 50\), that of the result \(6, 100\)"):
            scand.run(x, [("upsample", {"factor": 2})], out=scand.empty((6, 50)))
        with self.assertRaisesRegex(TypeError, "complex"):
            scand.run(x + 1j, [("upsample", {"factor": 2})])

    def test_products_of_rows(self):
        x, y = (np.random.default_rng(seed).normal(0, 1, (7, 3000)) for seed in (1, 2))
        for axis in 0, 1:
            np.testing.assert_allclose(scand.run(x, [("dot", {"other": y})], axis=axis), (x * y).sum(axis), rtol=0, atol=1e-11)
        cumulated = (np.cumsum(x, 1) * y).sum(1)
        np.testing.assert_allclose(scand.run(x, ["scan", ("dot", {"other": y})]), cumulated, rtol=1e-12, atol=1e-9)

    def test_products_of_whole_arrays(self):
        """An operand of the samples' shape is taken as they are, along whatever axes."""
        x, y = (whole_numbers((4, 4, 4), seed=seed) for seed in (1, 2))
        for axis, letters in ((None, ""), ((0, 2), "j"), ((1, 0), "k"), ((0,), "jk"), ((0, 1, 2), "")):
            with self.subTest(axis=axis):
                self.same(scand.run(x, [("dot", {"other": y})], axis=axis), np.einsum(f"ijk,ijk->{letters}", x, y))
        squares = scand.run(x, [("map", {"op": "mul", "other": y}), ("reduce", {"reduction": "max"})], axis=None)
        self.assertEqual(squares, (x * y).max())

    def test_list_of_operations(self):
        told = scand.operations()
        with self.assertRaises(scand.InvalidError) as refused:
            scand.run(np.ones(3), ["median"])
        self.assertTrue(str(refused.exception).endswith("there are: " + ", ".join(told)))
        box = told["box"].parameters
        self.assertEqual((box["half_width"].kind, box["half_width"].required, box["half_width"].most), ("integer", True, 2048))
        self.assertEqual(box["half_widths"][:2] + box["half_widths"][5:], ("tensor", False, "read", "samples", "index"))
        x = whole_numbers(40)
        first = {name: row.words[0] for name, row in box.items() if row.words}
        self.assertEqual(first, {"norm": "area", "boundary": "reflect"})
        self.same(scand.run(x, [("box", {"half_width": 3, **first})]), scand.run(x, [("box", {"half_width": 3})]))
        self.assertEqual(told["demean"].parameters, {})

    def test_operands_of_other_kinds(self):
        """Fractions and imaginary parts are not left out."""
        x = whole_numbers((4, 6))
        for steps, samples in (
            ([("convolve", {"filter": [1j, 2]})], x),
            ([("stack", {"bins": 4, "index": [0, 1.5, 2.7, 3, 3, 3]})], x),
            ([("triangle", {"half_width": 9, "half_widths": np.full(6, 2.5)})], x),
            ([("dot", {"other": np.full(6, 0.5)})], x.astype(int)),
            ([("map", {"op": "add", "other": np.full(6, 1j)})], x),
        ):
            with self.assertRaisesRegex(TypeError, r"^steps\[0\]\.\w+: its dtype is .*, and jobs take .* here; convert it"):
                scand.run(samples, steps)
        for coefficient, samples in ((np.full(6, 0.5j), x), (np.full(6, 0.5), x.astype(int)), (1j, x)):
            with self.assertRaisesRegex(TypeError, "^coefficient: "):
                scand.scan(samples, op="affine", coefficient=coefficient)
        self.assertEqual(scand.run(np.empty((4, 0)), [("stack", {"bins": 2, "index": []})]).shape, (4, 0))

    def test_stacks(self):
        """Beside numpy.add.at, which adds in the same order."""
        generator = np.random.default_rng(3)
        x, index = generator.normal(0, 1, (300, 120)), generator.integers(0, 20, 300)
        x[::7] = 0
        sums, folds, counts = np.zeros((20, 120)), np.zeros((20, 120), np.int32), np.zeros((20, 120), np.int32)
        np.add.at(sums, index, x)
        np.add.at(counts, index, x != 0)
        stack = {"index": index, "bins": 20}
        self.same(scand.run(x, [("stack", {**stack, "fold": folds})], axis=0), sums)
        self.same(folds, counts)
        means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
        self.same(scand.run(x, [("stack", {**stack, "norm": "fold"})], axis=0), means)
        for power in 0.3, 1.75:
            weighted = np.divide(sums, counts**power, out=np.zeros_like(sums), where=counts > 0)
            got = scand.run(x, [("stack", {**stack, "norm": "fold", "power": power})], axis=0)
            np.testing.assert_allclose(got, weighted, rtol=1e-13, atol=0)
        index[200] = 20
        with self.assertRaisesRegex(scand.InvalidError, r'"steps\[0\].index"\[200\] is 20; allowed: 0 to 19; nothing has been written'):
            scand.run(x, [("stack", stack)], axis=0)

    def test_sums_onto_others(self):
        """Beside numpy.add.at again; what they are added onto may be the array for the results, ordinary or shared."""
        generator = np.random.default_rng(4)
        x, index, onto = generator.normal(0, 1, (300, 120)), generator.integers(0, 20, 300), generator.normal(0, 1, (20, 120))
        for alpha in 1, -0.75:
            sums = onto.copy()
            np.add.at(sums, index, alpha * x)
            step = {"index": index, "onto": onto, "alpha": alpha}
            self.same(scand.run(x, [("index-add", step)], axis=0), sums)
            for results in onto.copy(), scand.asarray(onto.copy()):
                self.same(scand.run(x, [("index-add", {**step, "onto": results})], axis=0, out=results), sums)
        row = generator.normal(0, 1, 20)
        got = scand.run(x.T, [("index-add", {"index": index, "onto": row}), "scan"])
        expected = np.tile(row, (120, 1))
        np.add.at(expected, (slice(None), index), x.T)
        np.testing.assert_allclose(got, np.cumsum(expected, 1), rtol=0, atol=1e-12)

    def test_windows(self):
        """Beside NumPy's convolution of rows that are mirrored at their edges."""
        x = np.random.default_rng(5).normal(3, 1, (3, 500))
        for width in (1, 2, 31, 64, 200):
            weights = np.convolve(np.ones(width), np.ones(width)) / width**2
            padded = np.pad(x, ((0, 0), (width - 1, width - 1)), mode="symmetric")
            expected = [np.convolve(row, weights, mode="valid") for row in padded]
            np.testing.assert_allclose(scand.run(x, [("triangle", {"half-width": width})]), expected, rtol=0, atol=1e-11)
            single = scand.run(x.astype("f4"), [("triangle", {"half-width": width})])
            np.testing.assert_allclose(single, expected, rtol=0, atol=1e-5)
            size = 2 * width - 1
            expected = [np.convolve(row, np.full(size, 1 / size), mode="valid") for row in padded]
            np.testing.assert_allclose(scand.run(x, [("box", {"half-width": width})]), expected, rtol=0, atol=1e-11)

    def test_half_widths(self):
        """Half-widths for each sample, or one vector for all rows, beside windows of each half-width."""
        generator = np.random.default_rng(8)
        x, own = generator.normal(3, 1, (4, 300)), generator.integers(1, 41, (4, 300))
        for window in "triangle", "box":
            alike = np.stack([scand.run(x, [(window, {"half-width": width})]) for width in range(1, 41)])
            for widths in own, own[0], scand.asarray(own.astype("i4")):
                expected = np.take_along_axis(alike, np.broadcast_to(widths, x.shape)[None] - 1, 0)[0]
                got = scand.run(x, [(window, {"half-width": 40, "half-widths": widths})])
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)
        with self.assertRaisesRegex(scand.InvalidError, r'of "steps\[0\].half_widths" for row 0 is 0; allowed: 1 to 40; nothing has been written'):
            scand.run(x, [("triangle", {"half-width": 40, "half-widths": own[0] * 0})])

    def test_picks(self):
        """Beside numpy.interp of double sums, which are f64 and stay on the device in one chain."""
        generator = np.random.default_rng(6)
        x, places, widths = generator.normal(0, 1, (5, 400)), generator.uniform(-5, 405, (5, 900)), generator.uniform(-0.2, 40, (5, 900))
        d, steps = double_integral(x), [("scan", {"passes": "forward,backward"}), ("pick", {"position": places, "half-width": widths})]
        w, samples = widths + 1, np.arange(400)
        at = lambda t: np.stack([np.interp(places, samples, row) for places, row in zip(t, d)])
        expected = (2 * at(places) - at(places - w) - at(places + w)) / w**2
        expected[(widths < 0) | (places - w < 0) | (places + w > 399)] = 0
        np.testing.assert_allclose(scand.run(x, steps), expected, rtol=0, atol=1e-9)
        shared = [("pick", {"position": places[0], "half-width": np.float32(3) * np.ones(900, "f4")})]
        self.same(scand.run(d.T, shared, axis=0), np.ascontiguousarray(scand.run(d, shared).T))
        self.assertEqual(scand.run(x.astype("f4"), steps, dtype="f8").dtype, np.float64)

    def test_operands(self):
        """Coefficients for each sample, of any step, as it takes them; ordinary arrays and shared ones, broadcast."""
        x = whole_numbers((4, 30))
        a = np.random.default_rng(3).choice([0.5, -0.25], (4, 60))
        expected, longer = np.zeros((4, 60)), np.repeat(x, 2, 1)
        for i in range(60):
            expected[:, i] = longer[:, i] + a[:, i] * (expected[:, i - 1] if i else 0)
        np.testing.assert_allclose(scand.scan(longer, op="affine", coefficient=a), expected, rtol=1e-13, atol=1e-13)
        expected = scand.scan(longer, op="affine", coefficient=a)  # bit by bit
        for factors in (a, scand.asarray(a), a.astype("f4")):
            self.same(scand.run(x, [("upsample", {"factor": 2}), ("scan", {"op": "affine", "coefficients": factors})]), expected)
        row = np.broadcast_to(a[0], (4, 60))
        steps = [("upsample", {"factor": 2}), ("scan", {"op": "affine", "coefficients": a[0]})]
        self.same(scand.run(x, steps), scand.run(longer, [("scan", {"op": "affine", "coefficients": row})]))
        with self.assertRaisesRegex(ValueError, r"^steps\[0\].coefficients: its shape \(4, 60\) does not fit \(4, 30\)"):
            scand.run(x, [("scan", {"op": "affine", "coefficients": a})])

    def test_operands_of_values_between_steps(self):
        """Operands of steps behind the first have the dtype of the results, whatever that of the samples is."""
        x = whole_numbers((4, 30)).astype("f4")
        h = whole_numbers((4, 30)) + 1 / 3
        steps = [("scan", {"passes": "forward"}), ("map", {"op": "mul", "other": h})]
        self.same(scand.run(x, steps, dtype=np.float64), np.cumsum(x, -1, dtype=np.float64) * h)
        bits = np.full((4, 30), 0x41100000, ">u4")  # 1 as IBM has it
        self.same(scand.run(bits, [("map", {"op": "add", "other": h.astype("f4")})], form="ibm32"), h.astype("f4") + np.float32(1))

    def test_maps_and_differences(self):
        """Maps and differences equal NumPy's: exactly but for exp and log, which are within one unit of the last
        place."""
        x = whole_numbers((6, 60)) + 0.5
        row, column = np.arange(1.0, 61), np.arange(1.0, 7).reshape(6, 1)
        for dtype in np.float64, np.float32:
            y = x.astype(dtype)
            for word, function in (
                ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("min", np.minimum), ("max", np.maximum),
            ):
                for other in (row, column, np.float64(2.5), x[::-1, ::-1]):
                    second = np.broadcast_to(np.asarray(other, dtype), x.shape)
                    self.same(scand.run(y, [("map", {"op": word, "other": second})]), function(y, second))
                self.same(scand.run(y, [("map", {"op": word, "by": 2.5})], axis=0), function(y, dtype(2.5)))
            self.same(scand.run(y, [("map", {"op": "mul", "other": row})]), y * row.astype(dtype))
            for word, function in ("abs", np.abs), ("neg", np.negative):
                self.same(scand.run(y, [("map", {"op": word})]), function(y))
            self.same(scand.run(np.abs(y), [("map", {"op": "sqrt"})]), np.sqrt(np.abs(y)))
            self.same(scand.run(y, [("map", {"op": "clip", "low": -2, "high": 3.25})]), np.clip(y, dtype(-2), dtype(3.25)))
            np.testing.assert_array_max_ulp(scand.run(y / 8, [("map", {"op": "exp"})]), np.exp(y / 8), 2)
            np.testing.assert_array_max_ulp(scand.run(np.abs(y), [("map", {"op": "log"})]), np.log(np.abs(y)), 2)
            for axis in 0, 1:
                self.same(scand.run(y, [("diff", {"kind": "first"})], axis=axis), np.diff(y, axis=axis, prepend=dtype(0)))
                once = np.diff(y, axis=axis, prepend=dtype(0))
                self.same(scand.run(y, [("diff", {"kind": "second"})], axis=axis), np.diff(once, axis=axis, prepend=dtype(0)))
                blocks = y.reshape((2, 3, 60) if axis == 0 else (6, 20, 3)).sum(axis + 1)
                self.same(scand.run(y, [("block-sum", {"factor": 3})], axis=axis), blocks)

    def test_casts(self):
        x = np.array([[2.9, -2.9, 1e20], [0.5, -0.5, 7]])
        self.same(scand.run(x, [("map", {"op": "cast"})], dtype="i4"), np.array([[2, -2, 2**31 - 1], [0, 0, 7]], "i4"))
        whole = whole_numbers((4, 30), "i4")
        self.same(scand.run(whole, [("map", {"op": "cast"}), ("map", {"op": "div", "by": 8})], dtype="f4"), whole.astype("f4") / np.float32(8))
        self.same(scand.run(whole, [("diff", {"kind": "first"})]), np.diff(whole, axis=-1, prepend=np.int32(0)))

    def test_convolve(self):
        """NumPy's modes, of one filter and of one for each row, along any axis, with steps around."""
        noise = np.random.default_rng(11)
        x, each = noise.standard_normal((6, 80)), noise.standard_normal((6, 7))
        for mode, taps in itertools.product(("full", "same", "valid"), (each[0], each[1, :6], each[2, :1])):
            expected = np.stack([np.convolve(row, taps, mode) for row in x])
            given = {"filter": taps, "mode": mode}
            np.testing.assert_allclose(scand.run(x, [("convolve", given)]), expected, rtol=0, atol=1e-14)
            np.testing.assert_allclose(scand.run(x.T, [("convolve", given)], axis=0), expected.T, rtol=0, atol=1e-14)
            if len(taps) % 2 or mode != "same":
                reversed_taps = {"filter": taps[::-1], "mode": mode}
                np.testing.assert_allclose(scand.run(x, [("correlate", reversed_taps)]), expected, rtol=0, atol=1e-14)
        expected = np.stack([np.correlate(row, taps, "full") for row, taps in zip(x, each)])
        np.testing.assert_allclose(scand.run(x, [("correlate", {"filter": each})]), expected, rtol=0, atol=1e-14)
        steps = ["scan", ("convolve", {"filter": each[0], "mode": "same"}), "scan"]
        expected = np.stack([np.convolve(row, each[0], "same") for row in x.cumsum(1)]).cumsum(1)
        np.testing.assert_allclose(scand.run(x, steps), expected, rtol=1e-12, atol=1e-12)
        with self.assertRaisesRegex(ValueError, r"filter.* has 81 taps, and the rows 80 samples"):
            scand.run(x, [("convolve", {"filter": np.ones(81), "mode": "valid"})])

    def test_pieces(self):
        x = whole_numbers((1031, 4099), np.float32)
        self.same(scand.run(x, ["scan", ("reduce", {"reduction": "max"})], dtype="f8"), np.cumsum(x, -1, dtype="f8").max(-1))

    def test_wrong_ones(self):
        x = whole_numbers(10)
        for steps, text in (
            ([], "^steps: there is none"),
            (["box"], "half_width is missing"),
            (["median"], "median"),
            ([("scan", {"speed": 3})], "speed"),
            ([("scan", {"passes": "sideways"})], "sideways"),
            (["reduce", "scan"], "."),
            (["triangle"], r"^steps\[0\].half_width is missing; give it in the dictionary of its step$"),
            (["demean"] * 10, "is one more; allowed: 1 to 9; what remains makes another job$"),
        ):
            with self.subTest(steps), self.assertRaisesRegex(ValueError, text):
                scand.run(x, steps)
        with self.assertRaisesRegex(ValueError, "; or take dtype=numpy.float64, with which integers become floats$"):
            scand.run(x.astype("i4"), ["demean"])
        scand.run(x.astype("i4"), ["demean"], dtype=np.float64)
        with self.assertRaisesRegex(ValueError, r'; for others take a step before, \("map", {"op": "cast"}\)$'):
            scand.reduce(x, "rms", dtype="i4")
        with self.assertRaisesRegex(TypeError, "complex"):
            scand.run(x + 1j, [("scan", {"op": "max"})])
        for steps, text in (
            ("scan | demean", r"^steps: 'scan \| demean' is no list of steps; take one, as \[\("),
            (None, "^steps: None is no list of steps"),
            ({"operation": "demean"}, "^steps: {'operation': 'demean'} is no list of steps"),
            (("box", {"half_width": 3}), r"^steps: \('box', {'half_width': 3}\) is no list of steps; take one, as"),
            ([("box", "half_width", 3)], r"^steps\[0\]: \('box', 'half_width', 3\) is no operation"),
            (["demean", ("box", 3)], r"^steps\[1\]: \('box', 3\) is no operation"),
            ([None], r"^steps\[0\]: None is no operation"),
            ([("box", {"half-width": None})], r"^steps\[0\].half_width: it is None; take a number or a word"),
            ([("box", {"half_width": {}})], r"^steps\[0\].half_width: it is {}; take a number or a word"),
            ([("convolve", {"taps": x})], r"^steps\[0\].taps: it is an array of shape \(10,\); take a number or a word; arrays may be: filter$"),
        ):
            with self.subTest(steps), self.assertRaisesRegex(TypeError, text):
                scand.run(x, steps)


if __name__ == "__main__":
    main()

"""Dtypes of samples, of results, and of the arrays that the program gets."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

import numpy as np

from ._library import lib, number
from .layout import DTYPES, word_of

Dtype = np.dtype[Any]

_INT64 = np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)
_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)

_SMALL = {word for name, word in DTYPES.items() if np.dtype(name).kind in "iu" and np.dtype(name).itemsize <= 2}


class Dtypes(NamedTuple):
    samples: Dtype  # dtype that the daemon reads
    results: Dtype  # dtype that the daemon writes
    final: Dtype  # dtype that the program gets


def _class(dtype: Dtype) -> str:
    return "i" if dtype.kind == "b" else dtype.kind


def _check(name: str, dtype: Dtype) -> None:
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise TypeError(
            f"{name}: there are no scans of {dtype}; take integers, floats of up to 64 bits or complex numbers of two such"
        )


def is_small(dtype: Dtype) -> bool:
    """True for integers that the daemon computes as floats, which hold all of them."""
    return dtype.kind in "iu" and dtype.itemsize <= 2


def _wide(dtype: Dtype) -> Dtype:
    """Integers as sums of them are kept, as NumPy does."""
    return {"i": _INT64, "u": _UINT64}.get(_class(dtype), dtype.newbyteorder("="))


def _native(dtype: Dtype) -> Dtype:
    """The dtype that the daemon has for numbers of this one, integers as integers."""
    plain = dtype.newbyteorder("=")
    return _wide(plain) if is_small(plain) or not word_of(plain) else plain


def _lie_as_floats(given: Dtype, op: str, final: Dtype, chained: bool) -> bool:
    """True when results of small integers are the same whether the daemon computes with them in f32 or not: but for
    plain sums, f64 keeps more digits of the values in between."""
    if final.kind != "f":
        return final == given and op in ("max", "min") and not chained
    return final.itemsize <= 4 or (op in ("sum", "max", "min") and not chained)


@functools.lru_cache(maxsize=256)
def scan_dtypes(given: Dtype, op: str, asked: Optional[Dtype], chained: bool = False) -> Dtypes:
    """The dtypes of a scan; of a reduction to a sum or an extreme, too, of a scan of rows less their means
    ("demeaned"), and of steps that convert samples themselves ("cast"), before all others ("converted"). `asked` is the
    dtype that the program wants."""
    _check("x", given)
    grows = op in ("sum", "demeaned", "prod", "affine")
    final = asked or (_wide(given) if grows else given.newbyteorder("="))
    _check("dtype", final)
    if final.kind == "c" and op not in ("sum", "demeaned", "affine"):
        raise TypeError(f"{op}: complex numbers have sums and recurrences only; take one part, or the absolute values")
    converts = op in ("cast", "converted")
    if is_small(given) and (op == "converted" or _lie_as_floats(given, op, final, chained)):
        return Dtypes(given, final if word_of(final) else _native(final), final)
    results = final if word_of(final) and not is_small(final) else _native(final)
    samples = given if word_of(given) and not is_small(given) else _native(given)
    if converts and final.kind != "c":
        return Dtypes(samples, results, final)
    if _class(given) != _class(final):
        return Dtypes(_native(final), results, final)
    if samples.kind in "iu" and samples.itemsize > results.itemsize:
        results = samples
    return Dtypes(samples, results, final)


@functools.lru_cache(maxsize=256)
def reduction_dtypes(given: Dtype, reduction: str, asked: Optional[Dtype], chained: bool = False) -> Dtypes:
    wraps = given.kind == "i" and asked is not None and asked.kind == "u" and reduction in ("sum", "min", "max")
    if is_small(given) and not chained and not wraps:
        return _small_reduction_dtypes(given, reduction, asked)
    if reduction in ("sum", "min", "max"):
        return scan_dtypes(given, reduction, asked, chained)
    _check("x", given)
    if given.kind == "c":
        raise TypeError(f"{reduction}: complex numbers have sums only; take one part, or the absolute values")
    exact = given if given.kind == "f" else _FLOAT64
    return scan_dtypes(exact, reduction, asked)._replace(samples=exact if word_of(exact) else _native(exact))


def _small_reduction_dtypes(given: Dtype, reduction: str, asked: Optional[Dtype]) -> Dtypes:
    """Sums of 2^33 such integers are less than 2^53, so that f64 holds them."""
    final = asked or (_wide(given) if reduction == "sum" else given.newbyteorder("=") if reduction in ("min", "max") else _FLOAT64)
    _check("dtype", final)
    return Dtypes(given, final if final.kind == "f" and word_of(final) else _FLOAT64, final)


def form_class(form: str) -> Dtype:
    """The dtype in which samples of a form are computed."""
    return _FLOAT32 if lib.scand_dtype_class(number("dtype", form)) == lib.SCAND_CLASS_F32 else _FLOAT64


def form_dtypes(given: Dtype, form: str, asked: Optional[Dtype]) -> Dtypes:
    """The dtypes of samples in a form of which NumPy has no dtype."""
    enumerator = number("dtype", form)
    size = lib.scand_dtype_bytes(enumerator)
    if given.itemsize != size:
        raise ValueError(f"form: samples of {form} have {size} bytes, those of {given} {given.itemsize}: view them as such")
    if form in DTYPES.values() and form not in _SMALL:
        raise ValueError(f"form: {form} is a dtype of NumPy's; leave form out")
    final = asked or form_class(form)
    if final.kind != "f":
        raise TypeError(
            f"dtype: samples of {form} have sums of floats, not of {final}; take a dtype of floats, or as `out` an array of "
            f"floats, which may be a view of x, x.view('>f4')"
        )
    return Dtypes(given, _native(final), final)

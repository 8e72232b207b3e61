"""Which dtypes samples, results and what the program gets have."""

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


class Dtypes(NamedTuple):
    samples: Dtype  # what the daemon reads
    results: Dtype  # what it writes
    final: Dtype  # what the program gets


def _class(dtype: Dtype) -> str:
    return "i" if dtype.kind == "b" else dtype.kind


def _check(name: str, dtype: Dtype) -> None:
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise TypeError(
            f"{name}: there are no scans of {dtype}; take integers, floats of up to 64 bits or complex numbers of two such"
        )


def _wide(dtype: Dtype) -> Dtype:
    """Integers as sums of them are kept, as NumPy does."""
    return {"i": _INT64, "u": _UINT64}.get(_class(dtype), dtype.newbyteorder("="))


def _native(dtype: Dtype) -> Dtype:
    """The dtype that the daemon has for numbers of this one."""
    plain = dtype.newbyteorder("=")
    return plain if word_of(plain) else _wide(plain)


@functools.lru_cache(maxsize=256)
def scan_dtypes(given: Dtype, op: str, asked: Optional[Dtype]) -> Dtypes:
    """Of a scan; of a reduction to a sum or an extreme, too, and of steps that convert samples themselves ("cast").
    `asked` is what the program wants."""
    _check("x", given)
    grows = op in ("sum", "prod", "affine")
    final = asked or (_wide(given) if grows else given.newbyteorder("="))
    _check("dtype", final)
    if final.kind == "c" and op not in ("sum", "affine"):
        raise TypeError(f"{op}: complex numbers have sums and recurrences only; take one part, or the absolute values")
    results = final if word_of(final) else _native(final)
    samples = given if word_of(given) else _native(given)
    if op == "cast" and final.kind != "c":
        return Dtypes(samples, results, final)
    if _class(given) != _class(final):
        return Dtypes(_native(final), results, final)
    if samples.kind in "iu" and samples.itemsize > results.itemsize:
        results = samples
    return Dtypes(samples, results, final)


@functools.lru_cache(maxsize=256)
def reduction_dtypes(given: Dtype, reduction: str, asked: Optional[Dtype]) -> Dtypes:
    if reduction in ("sum", "min", "max"):
        return scan_dtypes(given, reduction, asked)
    _check("x", given)
    if given.kind == "c":
        raise TypeError(f"{reduction}: complex numbers have sums only; take one part, or the absolute values")
    exact = given if given.kind == "f" else _FLOAT64
    return scan_dtypes(exact, reduction, asked)._replace(samples=exact if word_of(exact) else _native(exact))


def form_class(form: str) -> Dtype:
    """What samples of a form are computed in."""
    return _FLOAT32 if lib.scand_dtype_class(number("dtype", form)) == lib.SCAND_CLASS_F32 else _FLOAT64


def form_dtypes(given: Dtype, form: str, asked: Optional[Dtype]) -> Dtypes:
    """Of samples that lie in a form that NumPy has no dtype of."""
    enumerator = number("dtype", form)
    size = lib.scand_dtype_bytes(enumerator)
    if given.itemsize != size:
        raise ValueError(f"form: samples of {form} have {size} bytes, those of {given} {given.itemsize}: view them as such")
    if form in DTYPES.values():
        raise ValueError(f"form: {form} is a dtype of NumPy's; leave form out")
    final = asked or form_class(form)
    if final.kind != "f":
        raise TypeError(f"dtype: samples of {form} have sums of floats, not of {final}")
    return Dtypes(given, _native(final), final)

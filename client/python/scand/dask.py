"""Functions of this package over Dask's arrays. This module needs dask."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np


def map_rows(function: Callable[..., Any], x: Any, *, axis: int = -1, **options: Any) -> Any:
    """A Dask array of the results of `function` on the rows of another array along an axis: scand.scan, scand.cumsum,
    scand.reduce, scand.run and others that take `axis`, with their options. Results may be longer or shorter than rows.

    Chunks are merged along the axis, so that rows are whole; other axes keep their chunks. Each chunk is a job or
    several, so all threads and processes of a machine share its daemon, and wait where it is busy. Chunks of some 10 to
    100 MB are best.
    """
    if not hasattr(x, "rechunk"):
        raise TypeError(f"x: {type(x).__name__} is no Dask array; take dask.array.from_array(x), or the function itself")
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis: {axis!r} is no whole number; rows lie along one axis")
    rows = x.rechunk({axis % x.ndim: -1})
    made = _made_of_no_rows(function, rows, axis, options)
    axis %= x.ndim
    keeps_axis = made.ndim == max(x.ndim, 2)
    dropped = [] if keeps_axis else [axis]
    chunks = (*rows.chunks[:axis], made.shape[axis - x.ndim], *rows.chunks[axis + 1 :]) if keeps_axis else None
    meta = np.empty((0,) * (x.ndim - len(dropped)), made.dtype)
    scanned = functools.partial(function, axis=axis, **options)
    return rows.map_blocks(scanned, chunks=chunks, drop_axis=dropped, dtype=made.dtype, meta=meta)


def _made_of_no_rows(function: Callable[..., Any], x: Any, axis: int, options: dict[str, Any]) -> Any:
    """What the function makes of no rows, which are as long as those of `x`: its dtype, and its length along the axis. An
    array of one dimension is a row, so there is one dimension more."""
    if x.ndim == 1:
        return function(np.zeros((0, x.shape[0]), x.dtype), axis=axis + (axis >= 0), **options)
    shape = [0] * x.ndim
    if -x.ndim <= axis < x.ndim:  # else the function says what is wrong
        shape[axis] = x.shape[axis]
    return function(np.zeros(shape, x.dtype), axis=axis, **options)

"""Functions of this package over Dask's arrays. This module needs dask."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np


def map_rows(function: Callable[..., Any], x: Any, *, axis: int = -1, **options: Any) -> Any:
    """A Dask array of the results of `function` on the rows of another array along an axis: scand.scan, scand.cumsum,
    scand.reduce, scand.maximum_accumulate and others that take `axis`, with their options.

    Chunks are merged along the axis, so that rows are whole; other axes keep their chunks. Each chunk is a job or
    several, so all threads and processes of a machine share its daemon, and wait where it is busy. Chunks of some 10 to
    100 MB are best.
    """
    if not hasattr(x, "rechunk"):
        raise TypeError(f"x: {type(x).__name__} is no Dask array; take dask.array.from_array(x), or the function itself")
    rows = x.rechunk({axis % x.ndim: -1})
    scanned = functools.partial(function, axis=axis, **options)
    meta = scanned(np.zeros((0,) * x.ndim, x.dtype))
    dropped = [] if meta.ndim == x.ndim else [axis % x.ndim]
    return rows.map_blocks(scanned, drop_axis=dropped, dtype=meta.dtype, meta=meta)

"""Functions of this package over Dask's arrays. Needs dask."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np


def map_rows(function: Callable[..., Any], x: Any, *, axis: int = -1, **options: Any) -> Any:
    """A Dask array of what `function` makes of the rows of another along an axis: scand.scan, scand.cumsum,
    scand.reduce, scand.maximum_accumulate and others that take `axis`, with their options.

    Rows are made whole; other axes keep their chunks. A chunk is a job or some, so that all threads and processes of a
    machine share its daemon; one that is busy is waited for. Chunks of some 10 to 100 MB are best.
    """
    rows = x.rechunk({axis % x.ndim: -1})
    scanned = functools.partial(function, axis=axis, **options)
    meta = scanned(np.zeros((0,) * x.ndim, x.dtype))
    dropped = [] if meta.ndim == x.ndim else [axis % x.ndim]
    return rows.map_blocks(scanned, drop_axis=dropped, dtype=meta.dtype, meta=meta)

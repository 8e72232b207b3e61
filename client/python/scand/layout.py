"""How arrays lie in memory, as jobs name it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional

import numpy as np

from ._library import lib, number
from .memory import AnyArray, Block, address_of, block_of

RANK_MOST: int = lib.SCAND_RANK_MAX

# NumPy's names of what samples may lie as. Other dtypes are converted, or have no meaning for sums.
DTYPES = {
    "<f4": "f32", "<f8": "f64", "<f2": "f16", "<i4": "i32", "<i8": "i64", "<u4": "u32", "<u8": "u64", ">f4": "f32be",
    "<c8": "f32", "<c16": "f64",
}


class Operand(NamedTuple):
    """An array as a tensor of scand.h; dtype is the enumerator."""

    block: Block
    offset: int
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class View(NamedTuple):
    """Element (0, 0, ...) and the steps from there, of an array or of several that are indexed alike."""

    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]  # of each array
    axis: int


@functools.lru_cache(maxsize=64)
def word_of(dtype: np.dtype[Any]) -> Optional[str]:
    """The word of scand/types.h for samples of this dtype; None where there is none."""
    return DTYPES.get(dtype.str)


def view_of(arrays: list[AnyArray], axis: int) -> View:
    """Arrays of one shape but for the axis, whose extent is the first one's; complex numbers as pairs. With as few
    dimensions as need be, where there are more than jobs can have."""
    first = arrays[0]
    shape: tuple[int, ...] = first.shape
    strides = tuple(array.strides for array in arrays)
    if first.dtype.kind == "c":
        shape += (2,)
        strides = tuple(steps + (array.itemsize // 2,) for steps, array in zip(strides, arrays))
    view = View(shape, strides, axis)
    return view if len(shape) <= RANK_MOST else _merged(view)


def _merged(view: View) -> View:
    """Neighbouring dimensions that are one step apart become one; those of one element go."""
    shape: list[int] = []
    strides: list[list[int]] = [[] for _ in view.strides]
    axis, open_dimension = 0, False  # open: the last one may take another in
    for at, extent in enumerate(view.shape):
        if at == view.axis:
            axis, open_dimension = len(shape), False
        elif extent == 1:
            continue
        if open_dimension and all(steps[-1] == own[at] * extent for steps, own in zip(strides, view.strides)):
            shape[-1] *= extent
            for steps, own in zip(strides, view.strides):
                steps[-1] = own[at]
            continue
        shape.append(extent)
        for steps, own in zip(strides, view.strides):
            steps.append(own[at])
        open_dimension = at != view.axis
    return View(tuple(shape), tuple(tuple(steps) for steps in strides), axis)


def operand(array: AnyArray, form: Optional[str], shape: tuple[int, ...], strides: tuple[int, ...]) -> Operand:
    """An array of shared memory, seen with this shape and these strides. `form` is how samples lie where NumPy has no
    dtype that says it."""
    block = block_of(array)
    word = form or word_of(array.dtype)
    assert block is not None and word is not None
    return Operand(block, address_of(array) - block.address, number("dtype", word), shape, strides)


def is_direct(array: AnyArray, form: Optional[str] = None) -> bool:
    """Whether jobs can use the array where it lies: in shared memory, of samples that the daemon knows."""
    return (form is not None or word_of(array.dtype) is not None) and array.size > 0 and block_of(array) is not None


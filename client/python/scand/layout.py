"""The layout of arrays in memory, in the terms of jobs."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._library import lib, number
from .memory import AnyArray, Place

RANK_MOST: int = lib.SCAND_RANK_MAX

# NumPy's names of what samples may lie as. Other dtypes are converted, or have no meaning for sums.
DTYPES = {
    "<f4": "f32", "<f8": "f64", "<f2": "f16", "<i4": "i32", "<i8": "i64", "<u4": "u32", "<u8": "u64",
    ">f4": "f32be", ">f8": "f64be", ">i8": "i64be", ">u4": "u32be", ">u8": "u64be",
    "|i1": "i8", "|u1": "u8", "<i2": "i16", "<u2": "u16", ">i2": "i16be", ">u2": "u16be",
    "<c8": "f32", "<c16": "f64",
}

Step = tuple[str, tuple[tuple[str, Union[str, float]], ...]]  # an operation of a task, and its parameters


class Settings:
    """The computation of a job: members of struct scand_scan, or of scand_reduce, with enumerators for words; or the
    steps of a task, and options of it as a whole."""

    __slots__ = ("reduces", "passes", "members", "steps", "options")

    def __init__(
        self, reduces: bool, passes: tuple[int, ...] = (), members: tuple[tuple[str, Any], ...] = (),
        steps: tuple[Step, ...] = (), options: tuple[tuple[str, str], ...] = (),
    ):
        self.reduces = reduces
        self.passes = passes
        self.members = members
        self.steps = steps
        self.options = options


class Tensor(NamedTuple):
    """A struct scand_tensor but for where it lies. The dtype is an enumerator."""

    name: str  # name of the operand
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Pattern:
    """A job but for where its arrays lie. Equal ones are the same object."""

    __slots__ = ("settings", "axis", "tensors", "__weakref__")

    def __init__(self, settings: Settings, axis: int, tensors: tuple[Tensor, ...]):
        self.settings = settings
        self.axis = axis
        self.tensors = tensors


class Order(NamedTuple):
    """A job as it is submitted, and again where the daemon was busy. Places are those of the pattern's tensors."""

    pattern: Pattern
    places: tuple[Place, ...]
    operands: tuple[tuple[int, Tensor, Place], ...] = ()  # operands of steps, by number


@functools.lru_cache(maxsize=64)
def word_of(dtype: np.dtype[Any]) -> Optional[str]:
    """The word of scand/types.h for samples of this dtype; None where there is none."""
    return DTYPES.get(dtype.str)


def pattern_of(
    settings: Settings, axis: int, arrays: Sequence[AnyArray], form: Optional[str] = None, offsets: Optional[AnyArray] = None
) -> Optional[Pattern]:
    """The pattern of an input, an output and perhaps coefficients, of one shape, but for the extent of the output along
    the axis; and of the offsets of ragged rows, if any. `form` names the input's samples where NumPy has no dtype for
    them. None where the arrays have more dimensions than jobs can have."""
    dtypes = tuple([array.dtype for array in arrays])
    strides = tuple([array.strides for array in arrays])
    ragged = None if offsets is None else tensor_of("offsets", offsets)
    return _pattern(settings, axis, dtypes, form, arrays[0].shape, arrays[min(1, len(arrays) - 1)].shape[axis], strides, ragged)


def tensor_of(name: str, array: AnyArray) -> Tensor:
    """The tensor of a step's operand, or of offsets."""
    return Tensor(name, number("dtype", word_of(array.dtype) or ""), array.shape, array.strides)


@functools.lru_cache(maxsize=1024)
def _pattern(
    settings: Settings, axis: int, dtypes: tuple[np.dtype[Any], ...], form: Optional[str], shape: tuple[int, ...], along: int,
    strides: tuple[tuple[int, ...], ...], offsets: Optional[Tensor],
) -> Optional[Pattern]:
    words = [form or word_of(dtypes[0]), *map(word_of, dtypes[1:])]
    if dtypes[0].kind == "c":  # complex numbers are pairs
        shape += (2,)
        strides = tuple(steps + (dtype.itemsize // 2,) for steps, dtype in zip(strides, dtypes))
    if len(shape) > RANK_MOST:
        shape, strides, axis = _merged(shape, strides, axis)
    if len(shape) > RANK_MOST:
        return None
    shapes = (shape, (*shape[:axis], along, *shape[axis + 1 :]), shape)
    names = ("input", "output", "coefficients")
    numbers = [number("dtype", word or "") for word in words]
    tensors = (*map(Tensor, names, numbers, shapes, strides), *([] if offsets is None else [offsets]))
    return Pattern(settings, axis, tensors)


def _merged(
    shape: tuple[int, ...], strides: tuple[tuple[int, ...], ...], axis: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]:
    """Neighbouring dimensions that are one step apart become one; those of one element go."""
    kept: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    kept_axis, is_open = 0, False  # open: the last one may take another in
    for at, extent in enumerate(shape):
        if at == axis:
            kept_axis, is_open = len(kept), False
        elif extent == 1:
            continue
        if is_open and all(new[-1] == own[at] * extent for new, own in zip(steps, strides)):
            kept[-1] *= extent
            for new, own in zip(steps, strides):
                new[-1] = own[at]
            continue
        kept.append(extent)
        for new, own in zip(steps, strides):
            new.append(own[at])
        is_open = at != axis
    return tuple(kept), tuple(map(tuple, steps)), kept_axis

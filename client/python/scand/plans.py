"""From arrays to jobs: what is copied into shared memory, and in which pieces, and where results go."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .client import Flight
from .connection import Order, Settings
from .dtypes import Dtypes, form_dtypes, reduction_dtypes, scan_dtypes
from .layout import RANK_MOST, is_direct, operand, view_of
from .memory import AnyArray, Span, address_of, asarray, block_of, empty, span_of

PIECE_BYTES = 4 << 20  # of ordinary memory that is copied while the piece before it is computed
PIECES_MOST = 64

Slices = tuple[Union[slice, int], ...]


@dataclasses.dataclass
class Request:
    """What a program asks for. `reduction`: one result for each row."""

    x: ArrayLike
    settings: Settings
    op: str
    axis: Optional[int] = -1
    dtype: Optional[DTypeLike] = None
    out: Optional[AnyArray] = None
    copy: Optional[bool] = None
    form: Optional[str] = None
    coefficients: Optional[ArrayLike] = None
    keepdims: bool = False


class Part:
    """A job, with what is copied before and after it."""

    __slots__ = ("flight", "copies_in", "copies_out")

    def __init__(self, flight: Flight):
        self.flight = flight
        self.copies_in: Optional[tuple[AnyArray, AnyArray]] = None  # to, from
        self.copies_out: Optional[tuple[AnyArray, AnyArray]] = None

    def before(self) -> None:
        if self.copies_in:
            np.copyto(*self.copies_in, casting="unsafe")

    def after(self) -> None:
        if self.copies_out:
            np.copyto(*self.copies_out, casting="unsafe")


class Plan:
    """Jobs for a request, and the array that it gives."""

    def __init__(self, request: Request):
        self.request = request
        self.given, self.axis = _with_axis(np.asarray(request.x), request.axis)
        self.out = request.out
        if self.out is not None and not isinstance(self.out, np.ndarray):
            raise TypeError(f"out: {type(self.out).__name__} is no NumPy array")
        self.parts: list[Part] = []
        self.reads_from: Optional[Span] = None  # shared memory of which a copy is made
        self.dtypes = self._dtypes()
        self.target_shape = self._target_shape()
        self._check_out()
        self._place()

    # What it is about.

    def _dtypes(self) -> Dtypes:
        request = self.request
        asked = np.dtype(request.dtype) if request.dtype is not None else None
        if asked is None and self.out is not None:
            asked = self.out.dtype
        if request.form is not None:
            return form_dtypes(self.given.dtype, request.form, asked)
        choose = reduction_dtypes if request.settings.reduces else scan_dtypes
        return choose(self.given.dtype, request.op, asked)

    def _target_shape(self) -> tuple[int, ...]:
        """Of what jobs write: the input's, of a reduction with one element along the axis."""
        shape = self.given.shape
        return (*shape[: self.axis], 1, *shape[self.axis + 1 :]) if self.request.settings.reduces else shape

    def _final_shape(self) -> tuple[int, ...]:
        shape = self.target_shape
        if self.request.settings.reduces and not self.request.keepdims:
            return shape[: self.axis] + shape[self.axis + 1 :]
        return shape

    def _check_out(self) -> None:
        if self.out is None:
            return
        if self.out.shape != self._final_shape():
            raise ValueError(f"out: its shape is {self.out.shape}, that of the result {self._final_shape()}")
        if not self.out.flags.writeable:
            raise ValueError("out: the array is read-only; take another, or a copy")
        if not np.can_cast(self.dtypes.final, self.out.dtype, "same_kind"):
            raise TypeError(f"out: its dtype {self.out.dtype} cannot hold results of {self.dtypes.final}")

    # Where it lies.

    def _place(self) -> None:
        source = self.given if self._is_direct_source() else None
        target = self._direct_target()
        if source is not None and target is not None and not _may_share(source, target):
            source = None
        coefficients = self._coefficients()
        if self.given.ndim > RANK_MOST:
            arrays = [array for array in (source, target, coefficients) if array is not None]
            if arrays and len(view_of(arrays, self.axis).shape) > RANK_MOST:
                source = target = None
                coefficients = None if coefficients is None else asarray(np.ascontiguousarray(coefficients))
        self._refuse_copies(source, target)
        self._lay(source, target, coefficients)

    def _is_direct_source(self) -> bool:
        wanted = self.request.form is not None or self.given.dtype == self.dtypes.samples
        return wanted and is_direct(self.given, self.request.form)

    def _direct_target(self) -> Optional[AnyArray]:
        if self.out is None or self.out.dtype != self.dtypes.results or not is_direct(self.out):
            return None
        return self.out.reshape(self.target_shape) if self.out.shape != self.target_shape else self.out

    def _coefficients(self) -> Optional[AnyArray]:
        """Of a recurrence, of the class of its samples, repeated over the rows that share them."""
        if self.request.coefficients is None:
            return None
        samples = self.dtypes.samples
        if samples.kind == "c" or self.request.form is not None:
            raise TypeError("coefficient: one for each sample goes with real numbers of NumPy's dtypes; take one number")
        kind = np.dtype(np.float32) if samples.kind == "f" and samples.itemsize < 8 else samples
        shared = asarray(self.request.coefficients, kind)
        try:
            return np.broadcast_to(shared, self.given.shape)
        except ValueError:
            raise ValueError(f"coefficient: its shape {shared.shape} does not fit that of x, {self.given.shape}") from None

    def _refuse_copies(self, source: Optional[AnyArray], target: Optional[AnyArray]) -> None:
        if self.request.copy is not False or self.given.size == 0:
            return
        name = "x" if source is None else "out" if self.out is not None and target is None else ""
        if name:
            raise ValueError(
                f"{name}: copy=False, but jobs cannot use this array where it lies: it is not in shared memory, of a dtype "
                f"or layout that is converted, or it overlaps the other one; scand.asarray makes a shared array, copy=None copies"
            )

    def _lay(self, source: Optional[AnyArray], target: Optional[AnyArray], coefficients: Optional[AnyArray]) -> None:
        reads = [span_of(source)] if source is not None else []
        writes = [span_of(target)] if target is not None and target.size else []
        pieces: list[Slices] = [()]
        self.target = target if target is not None else empty(self.target_shape, self.dtypes.results)
        if self.given.size == 0 and self.target.size == 0:
            return
        staged = source
        if staged is None:
            staged = self._stage()
            pieces = self._pieces(self.target if target is not None else None)
            if self.given.size and block_of(self.given) is not None:
                self.reads_from = span_of(self.given)
        if coefficients is not None:
            reads.append(span_of(coefficients))
        group = object() if len(pieces) > 1 else None
        for piece in pieces:
            part = Part(self._flight(piece, staged, coefficients, reads, writes, group))
            if source is None:
                part.copies_in = staged[piece], self.given[piece]
            if self.out is not None and target is None:
                part.copies_out = self.out.reshape(self.target_shape)[piece], self.target[piece]
            self.parts.append(part)

    def _stage(self) -> AnyArray:
        """Shared memory for the input: where the results will be, if that has room of the same kind."""
        samples, results = self.dtypes.samples, self.dtypes.results
        if samples.itemsize == results.itemsize and not self.request.settings.reduces:
            return self.target.view(samples)
        return empty(self.given.shape, samples)

    def _pieces(self, target: Optional[AnyArray]) -> list[Slices]:
        """Along the longest dimension but the axis, so that one is copied while another is computed."""
        shape = self.given.shape
        count = min(self.given.size * self.dtypes.samples.itemsize // PIECE_BYTES, PIECES_MOST)
        others = [at for at in range(len(shape)) if at != self.axis]
        if count < 2 or not others or target is not None and np.may_share_memory(self.given, target):
            return [()]
        along = max(others, key=lambda at: shape[at])
        step = -(-shape[along] // count)
        before = (slice(None),) * along
        return [(*before, slice(at, at + step)) for at in range(0, shape[along], step)]

    def _flight(
        self, piece: Slices, staged: AnyArray, coefficients: Optional[AnyArray], reads: list[Span], writes: list[Span],
        group: Optional[object],
    ) -> Flight:
        arrays = [staged[piece], self.target[piece]]
        names = ["input", "output"]
        if coefficients is not None:
            arrays.append(coefficients[piece])
            names.append("coefficients")
        view = view_of(arrays, self.axis)
        reduced = (*view.shape[: view.axis], 1, *view.shape[view.axis + 1 :]) if self.request.settings.reduces else view.shape
        operands = []
        for name, array, strides in zip(names, arrays, view.strides):
            shape = reduced if name == "output" else view.shape
            form = self.request.form if name == "input" else None
            operands.append((name, operand(array, form, shape, strides)))
        order = Order(self.request.settings, view.axis, tuple(operands))
        return Flight(order, [staged, self.target, *arrays[2:]], reads, writes, group)

    # What comes of it.

    def can_be_repeated(self) -> bool:
        """Whether the input is still there when a job was lost that may have begun to write."""
        return all(part.copies_in is not None for part in self.parts) and self.out is None

    def result(self) -> Any:
        """The array for the program, when all parts are done."""
        if self.out is not None:
            return self.out
        made = self.target if self.target.shape == self._final_shape() else self.target.reshape(self._final_shape())
        if made.dtype != self.dtypes.final:
            made = made.astype(self.dtypes.final)
        return made[()] if self.request.settings.reduces else made


def _with_axis(given: AnyArray, axis: Optional[int]) -> tuple[AnyArray, int]:
    if axis is None or given.ndim == 0:
        given, axis = given.reshape(-1), 0 if axis is None else axis
    dimensions = given.ndim
    if not -dimensions <= axis < dimensions:
        raise _AxisError(axis, dimensions)
    return given, axis % dimensions


def _may_share(source: AnyArray, target: AnyArray) -> bool:
    """Whether a job may have these as input and output: the same elements, or none in common."""
    same = source.shape == target.shape and source.strides == target.strides and source.itemsize == target.itemsize
    return same and address_of(source) == address_of(target) or not span_of(source).meets([span_of(target)])


_AxisError: Any = getattr(np, "exceptions", np).AxisError

"""Plans from arrays to jobs: what is copied into shared memory, and in which pieces, and where results go."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .chains import Shapes, StepOperand, operand_dtype, operand_shape, shapes_of
from .client import Client, Flight, wait_for_writers
from .dtypes import Dtype, Dtypes, form_class, form_dtypes, is_small, reduction_dtypes, scan_dtypes
from .files import file_place_of
from .layout import RANK_MOST, Order, Settings, Tensor, pattern_of, tensor_of, word_of
from .memory import AnyArray, Elsewhere, Place, Region, allocate, asarray, place_of, range_of

PIECE_BYTES = 4 << 20  # ordinary memory that is copied while the piece before it is computed
PIECES_MOST = 64

OFFSETS = ("<i4", "<i8", "<u4", "<u8")  # dtypes of offsets

Slices = tuple[slice, ...]
_WHOLE: Sequence[Slices] = ((),)


@dataclasses.dataclass
class Request:
    """A program's request. `reduction`: one result for each row."""

    x: ArrayLike
    settings: Settings
    op: str
    axis: Union[int, Sequence[int], None] = -1  # several: of a reduction
    dtype: Optional[DTypeLike] = None
    out: Optional[AnyArray] = None
    copy: Optional[bool] = None
    form: Optional[str] = None
    coefficients: Optional[ArrayLike] = None
    keepdims: bool = False
    operands: tuple[StepOperand, ...] = ()  # operands of steps
    offsets: Optional[ArrayLike] = None  # of ragged rows
    client: Optional[Client] = None  # client whose device's memory results are in, where the samples are in a device's
    given_out: Any = None  # the program's `out`, where that is an array of another package
    to_host: bool = False  # results are in this process's memory wherever the samples are

    def is_plain(self) -> bool:
        """True when samples and results are all the arrays there are."""
        return not self.operands and self.coefficients is None and self.offsets is None


class Part:
    """A job, with what is copied before and after it."""

    __slots__ = ("flight", "copies_in", "copies_out")

    def __init__(self, flight: Flight):
        self.flight = flight
        self.copies_in: Optional[tuple[AnyArray, AnyArray]] = None  # to, from
        self.copies_out: list[tuple[AnyArray, AnyArray]] = []

    def before(self) -> None:
        if self.copies_in:
            to, given = self.copies_in
            apart = given.copy() if np.may_share_memory(to, given) else given  # NumPy overtakes itself where strides differ
            np.copyto(to, apart, casting="unsafe")

    def after(self) -> None:
        for to, made in self.copies_out:
            np.copyto(to, made, casting="unsafe")


class Shared(NamedTuple):
    """An array in shared memory, and where it is."""

    array: Any  # AnyArray or Elsewhere
    place: Place

    def piece(self, slices: Slices) -> Shared:
        return _shared(self.array[slices]) if slices else self

    def repeated(self, shape: tuple[int, ...]) -> Shared:
        """The array broadcast to this shape."""
        array = self.array
        return Shared(array.repeated(shape) if isinstance(array, Elsewhere) else np.broadcast_to(array, shape), self.place)


def _shared(array: AnyArray) -> Shared:
    """The array, or a copy in shared memory."""
    own = asarray(array)
    place = place_of(own)
    assert place is not None
    return Shared(own, place)


def _shared_as(name: str, given: Any, dtype: Dtype) -> Shared:
    """An operand of this dtype: the array where it lies in a device's memory, else shared memory that has it."""
    if not isinstance(given, Elsewhere):
        return _shared(converted(name, given, dtype))
    if given.dtype != dtype:
        raise TypeError(f"{name}: an array in a device's memory is not converted from {given.dtype}, and jobs take {dtype} here; get() a copy")
    return Shared(given, given.place)


class Scheme(NamedTuple):
    """The dtypes and shapes of a request, which follow from those of its arguments alone."""

    dtypes: Dtypes
    axis: int
    target_shape: tuple[int, ...]  # shape that jobs write: of a reduction with one element along the axis
    final_shape: tuple[int, ...]  # shape that the program gets


@functools.lru_cache(maxsize=1024)
def scheme_of(
    given: np.dtype[Any], shape: tuple[int, ...], axis: int, reduces: bool, op: str, asked: Optional[np.dtype[Any]],
    form: Optional[str] = None, keepdims: bool = False, along: Optional[int] = None, chained: bool = False,
) -> Scheme:
    """along: the extent of results along the axis, where that is not the one of samples."""
    dimensions = len(shape)
    if not -dimensions <= axis < dimensions:
        raise _AxisError(axis, dimensions)
    axis %= dimensions
    if form is not None:
        dtypes = form_dtypes(given, form, asked)
    else:
        dtypes = reduction_dtypes(given, op, asked, chained) if reduces else scan_dtypes(given, op, asked, chained)
    before, after = shape[:axis], shape[axis + 1 :]
    target = (*before, 1 if reduces else shape[axis] if along is None else along, *after)
    return Scheme(dtypes, axis, target, (*before, *after) if reduces and not keepdims else target)


def _joined(given: AnyArray, axes: Sequence[int]) -> AnyArray:
    """The array with these axes as one, behind the others: its samples in the order of the array's own axes, a view
    where there is one."""
    joined = sorted(axis % given.ndim if -given.ndim <= axis < given.ndim else axis for axis in axes)
    for axis in joined:
        if not 0 <= axis < given.ndim:
            raise _AxisError(axis, given.ndim)
    if len(set(joined)) < len(joined):
        raise ValueError(f"axis: {tuple(axes)} names one of them twice")
    others = [axis for axis in range(given.ndim) if axis not in joined]
    shape = tuple(given.shape[axis] for axis in others)
    return given.transpose(*others, *joined).reshape(*shape, math.prod(given.shape[axis] for axis in joined))


def _reduced(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape with one element along each of these axes."""
    reduced = [axis % len(shape) for axis in axes]
    return tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))


class Plan:
    """Jobs for a request, and the array that it gives.

    An array is direct when jobs use it where it lies. Others have a shared array in their stead: the input is staged,
    where possible in the memory of the results, and the output is copied at the end."""

    def __init__(self, request: Request):
        self.request = request
        refuse_mask("x", request.x)
        if isinstance(request.x, (list, tuple)):
            wait_for_writers(request.x)
        given: Any = request.x if isinstance(request.x, Elsewhere) else np.asarray(request.x)
        shape = given.shape
        kept: Optional[tuple[int, ...]] = None
        axis = 0 if request.axis is None else request.axis
        if request.axis is None or given.ndim == 0:
            given = self._rearranged(given, lambda array: array.reshape(-1))
        if not isinstance(axis, (int, np.integer)):
            if not isinstance(axis, Iterable) or not all(isinstance(each, (int, np.integer)) for each in axis):
                raise TypeError(f"axis: {axis!r} is no whole number; reductions take several, too, as (0, 1), and None is all")
            if not request.settings.reduces:
                raise ValueError(f"axis: {tuple(axis)} are several; only reductions take more than one")
            axes = tuple(axis)
            given, axis = self._rearranged(given, lambda array: _joined(array, axes)), -1
            kept = _reduced(shape, axes)
        self.axis = int(axis)
        self.out: Any = request.out
        out = self.out
        if out is not None and not isinstance(out, (np.ndarray, Elsewhere)):
            raise TypeError(f"out: {type(out).__name__} is no NumPy array, and no array in a device's memory")
        self.operands = tuple(self._like_rows(own, shape) for own in request.operands)
        if isinstance(out, np.ndarray) and isinstance(given, np.ndarray) and (request.dtype, request.form) == (None, None):
            if _loses(given.dtype, out.dtype) and request.op not in ("cast", "converted"):
                raise TypeError(
                    f"out: its dtype {out.dtype} cannot hold results of {given.dtype}; take an array of that, or say "
                    f"dtype={out.dtype}, with which samples are converted before all else"
                )
        asked = np.dtype(request.dtype) if request.dtype is not None else out.dtype if out is not None else None
        if asked is not None and asked.kind == "b" and given.dtype.kind in "iufc" and not isinstance(given, Elsewhere):
            wait_for_writers(given)
            given = given != 0
        self.given = given
        self.shapes = self._shapes()
        self.scheme = scheme_of(
            given.dtype, given.shape, self.axis, request.settings.reduces, request.op, asked, request.form,
            request.keepdims, self.shapes.lengths[-1] if self.shapes else None, bool(request.settings.steps),
        )
        if kept is not None and request.keepdims:
            self.scheme = self.scheme._replace(final_shape=kept)
        self.offsets = self._offsets()
        if self.offsets is not None and request.settings.reduces:
            rows = (self.offsets.array.shape[0] - 1,)
            self.scheme = self.scheme._replace(target_shape=rows, final_shape=rows)
        self.parts: list[Part] = []
        self.reads_from: Optional[AnyArray] = None  # shared memory of which a copy is made
        self._check_out()
        self._place()
        for array in (given, out, request.coefficients, *(own.array for own in self.operands)):
            if isinstance(array, Elsewhere):
                array.synchronize()

    def _rearranged(self, given: Any, function: Callable[[Any], Any]) -> Any:
        """What the function makes of an array: a view, or else a copy."""
        made = function(given)
        if isinstance(given, np.ndarray) and place_of(given) is not None and not np.may_share_memory(given, made):
            wait_for_writers(given)
            made = function(given)
        return made

    def _like_rows(self, own: StepOperand, shape: tuple[int, ...]) -> StepOperand:
        """An operand of the samples' shape, with its axes joined as theirs are."""
        axis = self.request.axis
        if own.about.follows != "samples" or own.written or own.array.shape != shape or isinstance(axis, (int, np.integer)):
            return own
        return own._replace(array=self._rearranged(own.array, lambda array: array.reshape(-1) if axis is None else _joined(array, axis)))

    def _shapes(self) -> Optional[Shapes]:
        """The shapes of a chain of steps, some of which may change the length of rows."""
        request, given, axis = self.request, self.given, self.axis
        if not request.settings.steps or not -given.ndim <= axis < given.ndim:
            return None
        axis %= given.ndim
        if self.operands and given.ndim > RANK_MOST:
            raise ValueError(f"x: it has {given.ndim} dimensions; with operands of steps it may have {RANK_MOST}")
        return shapes_of(request.settings.steps, self.operands, given.shape[axis], axis)

    def _offsets(self) -> Optional[Shared]:
        """The offsets of ragged rows, which cover the samples."""
        given, samples = self.request.offsets, self.given
        if given is None:
            return None
        refuse_mask("offsets", given)
        offsets = np.asarray(given)
        if offsets.ndim != 1 or not offsets.size or offsets.dtype.kind not in "iu":
            raise TypeError(
                f"offsets: they are of shape {offsets.shape} and dtype {offsets.dtype}; take whole numbers of one dimension, "
                f"one more than there are rows: row r is x[offsets[r]:offsets[r + 1]]"
            )
        if samples.ndim != 1 or samples.dtype.kind == "c":
            raise ValueError(
                f"x: it is of shape {samples.shape} and dtype {samples.dtype}; with offsets take real numbers of one dimension, one "
                f"row behind the other"
            )
        if self.operands:
            raise ValueError(f"{self.operands[0].field}: steps that read or write further arrays take no offsets")
        wait_for_writers(offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        if (first, last) != (0, samples.shape[0]):
            raise ValueError(
                f"offsets: the first is {first} and the last {last}; rows have to cover x, from 0 to {samples.shape[0]}; leave out "
                f"samples of no row, as x[first:last]"
            )
        return _shared(offsets if offsets.dtype.str in OFFSETS else offsets.astype(np.int64))

    def _check_out(self) -> None:
        if self.out is None:
            return
        final = self.scheme.final_shape
        if self.out.shape != final:
            raise ValueError(f"out: its shape is {self.out.shape}, that of the result {final}")
        if not self.out.flags.writeable:
            raise ValueError("out: the array is read-only; take another, or a copy")
        if not _can_hold(self.out.dtype, self.scheme.dtypes.final):
            raise TypeError(f"out: its dtype {self.out.dtype} cannot hold results of {self.scheme.dtypes.final}")

    def _place(self) -> None:
        """Finds out which arrays are direct, and lays the jobs out over these and over shared ones for the others."""
        source, target = self._direct_source(), self._direct_target()
        coefficients = self._coefficients()
        if self.given.ndim >= RANK_MOST:  # complex numbers have a dimension more
            direct = [shared.array for shared in (source, target, coefficients) if shared is not None]
            if direct and not self._fits(direct):
                source = target = None
                if coefficients and isinstance(coefficients.array, Elsewhere):
                    raise ValueError(f"coefficient: in a device's memory it may have {RANK_MOST} dimensions; get() a copy")
                coefficients = coefficients and _shared(np.ascontiguousarray(coefficients.array))
        if source is not None and target is not None and not may_share(*source, *target):
            source = None
        if self.request.copy is False and self.given.size:
            self._refuse_copies(source, target)
        self._refuse_conversions(source, target)
        self._lay(source, target, coefficients)

    def _fits(self, arrays: Sequence[AnyArray]) -> bool:
        """True when jobs have dimensions enough for these arrays."""
        return pattern_of(self.request.settings, self.scheme.axis, arrays, self.request.form) is not None

    def _direct_source(self) -> Optional[Shared]:
        given = self.given
        if self.request.form is None and (given.dtype != self.scheme.dtypes.samples or word_of(given.dtype) is None):
            return None
        place = (place_of(given) or file_place_of(given)) if given.size else None
        return None if place is None else Shared(given, place)

    def _direct_target(self) -> Optional[Shared]:
        out = self.out
        if out is None or out.dtype != self.scheme.dtypes.results or not out.size:
            return None
        place = place_of(out)
        if place is None:
            return None
        return Shared(out.reshape(self.scheme.target_shape), place)

    def _coefficients(self) -> Optional[Shared]:
        """The coefficients of a recurrence, of the class of its samples, repeated over the rows that share them."""
        if self.request.coefficients is None:
            return None
        samples = self.scheme.dtypes.samples
        if samples.kind == "c" or self.request.form is not None:
            raise TypeError("coefficient: one for each sample goes with real numbers of NumPy's dtypes; take one number")
        floats = samples.kind == "f" and samples.itemsize < 8 or is_small(samples)
        kind = np.dtype(np.float32) if floats else samples.newbyteorder("=")
        coefficients = self.request.coefficients
        if not isinstance(coefficients, Elsewhere) and np.asarray(coefficients).dtype != kind:
            wait_for_writers(coefficients)
        own = _shared_as("coefficient", coefficients, kind)
        try:
            return own.repeated(self.given.shape)
        except ValueError:
            raise ValueError(f"coefficient: its shape {own.array.shape} does not fit that of x, {self.given.shape}") from None

    def _refuse_copies(self, source: Optional[Shared], target: Optional[Shared]) -> None:
        name = "x" if source is None else "out" if self.out is not None and target is None else ""
        if name:
            raise ValueError(
                f"{name}: copy=False, but jobs cannot use this array where it lies: it is not in shared memory, of a dtype "
                f"or layout that is converted, or it overlaps the other one; scand.asarray makes a shared array, copy=None copies"
            )

    def _refuse_conversions(self, source: Optional[Shared], target: Optional[Shared]) -> None:
        """Refuses conversions of arrays that this process cannot read or write."""
        final, results = self.scheme.dtypes.final, self.scheme.dtypes.results
        for name, array, direct in (("x", self.given, source), ("out", self.out, target)):
            if not isinstance(array, Elsewhere) or not array.size:
                continue
            if direct is None:
                raise TypeError(
                    f"{name}: an array in a device's memory is neither converted nor copied, and jobs have no {array.dtype} of this "
                    f"layout, or it overlaps the other one; take another dtype or layout, or get() a copy"
                )
            if name == "x" and final != results and self.out is None:
                raise TypeError(f"dtype: results in a device's memory are not converted to {final}; take {results}")

    def _allocate(self) -> Shared:
        """Memory for the results: where the samples are."""
        shape, dtype, given = self.scheme.target_shape, self.scheme.dtypes.results, self.given
        if not isinstance(given, Elsewhere) or self.out is not None or self.request.to_host:
            return Shared(*allocate(shape, dtype))
        made: Any = given.like(shape, dtype, self.request.client)
        return Shared(made, made.place)

    def _lay(self, source: Optional[Shared], target: Optional[Shared], coefficients: Optional[Shared]) -> None:
        scheme = self.scheme
        results = target or self._allocate()
        self.target = results.array
        if not self.given.size and not self.target.size:
            return
        pieces: Sequence[Slices] = _WHOLE
        staged = source
        if staged is None:
            staged = self._stage(results)
            pieces = self._pieces(target)
            if self.given.size and place_of(self.given) is not None:
                self.reads_from = self.given
        operands = (staged, results) if coefficients is None else (staged, results, coefficients)
        further = [self._operand(operand) for operand in self.operands]
        reads = [shared.array for shared in (source, coefficients) if shared is not None]
        reads += [shared.array for own, shared, _ in further if not own.written]
        writes = [shared.array for own, shared, _ in further if own.written]
        writes += [] if target is None else [target.array]
        kept = [shared.array for shared in (*operands, *(shared for _, shared, _ in further))]
        if self.offsets is not None:
            reads.append(self.offsets.array)
            kept.append(self.offsets.array)
        placed = tuple((own.step, tensor_of(own.name, shared.array), shared.place) for own, shared, _ in further)
        group = object() if len(pieces) > 1 else None
        for piece in pieces:
            parts = [shared.piece(piece) for shared in operands]
            part = Part(Flight(self._order(parts, placed), kept, reads, writes, group))
            part.copies_out = [(own.array, made) for own, _, made in further if made is not None]
            if source is None and not isinstance(self.given, Elsewhere):  # one that is refused has no samples
                part.copies_in = parts[0].array, self.given[piece]
            if self.out is not None and target is None:
                part.copies_out.append((self.out.reshape(scheme.target_shape)[piece], parts[1].array))
            self.parts.append(part)

    def _operand(self, own: StepOperand) -> tuple[StepOperand, Shared, Optional[AnyArray]]:
        """An operand that a step reads or writes besides the samples, as jobs take it: the operand, shared memory for
        it, and the array to copy back to the program's, if any."""
        assert self.shapes is not None
        shape = operand_shape(own, self.shapes, self.given.shape, self.scheme.axis)
        dtype = operand_dtype(own, self._taken(own.step))
        if word_of(dtype) is None:
            raise TypeError(f"{own.field}: there are no samples of {dtype}; take another dtype")
        array = own.array
        if own.about.follows == "rows" and array.ndim == len(shape) - 1:
            array = array[(*(slice(None),) * self.scheme.axis, None)]
        if own.written and array.shape != shape:
            raise ValueError(f"{own.field}: its shape is {own.array.shape}, that of what is written {shape}")
        place = place_of(array) if array.size and array.dtype == dtype else None
        if own.written and place is None:
            made = Shared(*allocate(shape, dtype))
            return own, made, made.array.reshape(own.array.shape)
        if place is None:
            wait_for_writers(array)
        shared = Shared(array, place) if place is not None else _shared_as(own.field, array, dtype)
        try:
            return own, shared if own.written else shared.repeated(shape), None
        except ValueError:
            raise ValueError(f"{own.field}: its shape {own.array.shape} does not fit {shape}") from None

    def _taken(self, step: int) -> Dtype:
        """The dtype, of NumPy's, of the class of what a step takes: the input, or values between steps."""
        dtypes, form = self.scheme.dtypes, self.request.form
        if step > 0:
            return dtypes.results
        if form is not None:
            return form_class(form)
        return np.dtype(np.float32) if is_small(dtypes.samples) else dtypes.samples

    def _stage(self, results: Shared) -> Shared:
        """Shared memory for the input: where the results will be, if that has room of the same kind, and the job does not
        mind. The only step of a job may not work in place; scans do."""
        samples, steps = self.scheme.dtypes.samples, self.request.settings.steps
        apart = self.request.settings.reduces or self.given.shape != results.array.shape or isinstance(results.array, Elsewhere)
        if apart or samples.itemsize != results.array.itemsize or (len(steps) == 1 and steps[0][0] != "scan"):
            return Shared(*allocate(self.given.shape, samples))
        return results if samples == results.array.dtype else Shared(results.array.view(samples), results.place)

    def _pieces(self, target: Optional[Shared]) -> Sequence[Slices]:
        """Along the longest dimension but the axis, so that one is copied while another is computed."""
        shape, axis = self.given.shape, self.scheme.axis
        count = min(self.given.size * self.scheme.dtypes.samples.itemsize // PIECE_BYTES, PIECES_MOST)
        others = [at for at in range(len(shape)) if at != axis]
        if count < 2 or not others or self.operands:
            return _WHOLE
        if target is not None and (isinstance(target.array, Elsewhere) or np.may_share_memory(self.given, target.array)):
            return _WHOLE
        along = max(others, key=lambda at: shape[at])
        step = -(-shape[along] // count)
        before = (slice(None),) * along
        return [(*before, slice(at, at + step)) for at in range(0, shape[along], step)]

    def _order(self, operands: Sequence[Shared], further: tuple[tuple[int, Tensor, Place], ...]) -> Order:
        arrays = [shared.array for shared in operands]
        offsets = self.offsets
        pattern = pattern_of(
            self.request.settings, self.scheme.axis, arrays, self.request.form, None if offsets is None else offsets.array
        )
        assert pattern is not None  # _place has seen to that
        places = [shared.place for shared in (*operands, *(() if offsets is None else (offsets,)))]
        return Order(pattern, tuple(places), further)

    # The outcome.

    def can_be_repeated(self) -> bool:
        """True when the input is still there after the loss of a job that may have begun to write."""
        kept = all(part.copies_in is not None for part in self.parts) or file_place_of(self.given) is not None
        return kept and self.out is None

    def result(self) -> Any:
        """The array for the program, when all parts are done."""
        if self.out is not None:
            return self.out if self.request.given_out is None else self.request.given_out
        return finished(self.target, self.scheme, self.request.settings.reduces)


def finished(made: AnyArray, scheme: Scheme, reduces: bool) -> Any:
    """The program's array, or number, from the results that a job has written."""
    if made.shape != scheme.final_shape:
        made = made.reshape(scheme.final_shape)
    if made.dtype != scheme.dtypes.final:
        made = made.astype(scheme.dtypes.final)
    return made[()] if reduces else made


def may_share(x: AnyArray, source: Place, y: AnyArray, target: Place) -> bool:
    """True when a job may have these as input and output: they are the same elements, or have none in common."""
    if source.block is not target.block:
        return True
    if isinstance(x.base, Region) and isinstance(y.base, Region) and x.base is not y.base:
        return True
    same = x.shape == y.shape and x.strides == y.strides and x.itemsize == y.itemsize
    return same and source == target or not range_of(x).meets((range_of(y),))


def converted(name: str, given: ArrayLike, dtype: Dtype) -> AnyArray:
    """The array in another dtype, if no fraction or imaginary part is left out."""
    refuse_mask(name, given)
    array = np.asarray(given)
    if array.size and _loses(array.dtype, dtype):
        raise TypeError(f"{name}: its dtype is {array.dtype}, and jobs take {dtype} here; convert it, as .real or .astype({dtype}) do")
    try:
        return np.asarray(array, dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: its dtype is {array.dtype}, and jobs take {dtype} here; take numbers") from None


def refuse_mask(name: str, given: object) -> None:
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{name}: it is a masked array, and its mask would be left out; take what its filled(0) or compressed() gives")


def _loses(given: Dtype, to: Dtype) -> bool:
    """True when fractions or imaginary parts are lost on the way."""
    return given.kind in "fc" and to.kind in "iu" or given.kind == "c" and to.kind == "f"


@functools.lru_cache(maxsize=256)
def _can_hold(out: np.dtype[Any], results: np.dtype[Any]) -> bool:
    return np.can_cast(results, out, "same_kind")


_AxisError: Any = getattr(np, "exceptions", np).AxisError

"""Linear operators of PyLops, computed by scand. This module needs pylops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pylops  # type: ignore[import-untyped]
from pylops.utils.decorators import reshaped  # type: ignore[import-untyped]

from .client import wait_for_writers
from .functions import run, scan
from .memory import AnyArray, empty
from .plans import converted

KINDS = {"full": "inclusive", "half": "half", "trapezoidal": "trapezoid"}


class CausalIntegration(pylops.CausalIntegration):  # type: ignore[misc]
    """pylops.CausalIntegration, with the same parameters, attributes and results: y[i] is the sum of x[0] to x[i] times
    `sampling`; the kind "half" takes half of x[i], "trapezoidal" half of x[0] and of x[i], and y[0] is half of x[0]."""

    def __init__(self, *parameters: Any, **named: Any):
        super().__init__(*parameters, **named)
        if self.kind not in KINDS:
            raise ValueError(f"kind: {self.kind!r} is not one of {', '.join(KINDS)}")

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> AnyArray:
        y = self._integrate(x, "forward", KINDS[self.kind])
        if self.kind == "trapezoidal":  # what the adjoint of PyLops' has there, where a trapezoid's area is 0
            y[_first(self.axis)] = self.sampling * x[_first(self.axis)] / 2
        return y[_later(self.axis)] if self.removefirst else y

    @reshaped  # type: ignore[untyped-decorator]
    def _rmatvec(self, x: AnyArray) -> AnyArray:
        if self.removefirst:
            wait_for_writers(x)
            x = np.insert(x, 0, 0, axis=self.axis)
        y = self._integrate(x, "backward", "inclusive" if self.kind == "full" else "half")
        if self.kind == "trapezoidal":
            y[_first(self.axis)] = self.sampling * x.sum(self.axis, keepdims=True) / 2
        return y

    def _integrate(self, x: AnyArray, direction: str, kind: str) -> AnyArray:
        if self.sampling == 1:
            return scan(x, direction, kind=kind, axis=self.axis)
        wait_for_writers(x)
        scaled = empty(x.shape, np.result_type(x.dtype, np.float32))
        np.multiply(x, self.sampling, out=scaled)
        return scan(scaled, direction, kind=kind, axis=self.axis, out=scaled)


def _shape(dims: Any) -> tuple[int, ...]:
    """A shape of integers, since PyLops takes a number for one dimension."""
    return tuple(int(n) for n in np.atleast_1d(dims))


class DoubleIntegration(pylops.LinearOperator):  # type: ignore[misc]
    """Along `axis` a causal and then an anti-causal sum, which is its own adjoint: y[i] is the sum over j >= i of the sums
    of x[0] to x[j], times the square of `sampling`."""

    def __init__(self, dims: Any, axis: int = -1, sampling: float = 1.0, dtype: Any = "float64", name: str = "D"):
        self.axis = axis
        self.sampling = sampling
        super().__init__(dtype=np.dtype(dtype), dims=_shape(dims), dimsd=_shape(dims), name=name)

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> AnyArray:
        y = scan(x, "forward,backward", axis=self.axis)
        if self.sampling != 1:
            y *= self.sampling**2
        return y

    def _rmatvec(self, x: AnyArray) -> Any:
        return self._matvec(x)


class _Window(pylops.LinearOperator):  # type: ignore[misc]
    """A filter of symmetric weights, which is its own adjoint but for outputs that are left out."""

    _operation = ""

    def __init__(self, dims: Any, half_width: int, axis: int = -1, norm: str = "area", boundary: str = "reflect",
                 dtype: Any = "float64", name: str = "W"):
        self.axis = axis
        self.half_width = half_width
        self.norm = norm
        self.boundary = boundary
        super().__init__(dtype=np.dtype(dtype), dims=_shape(dims), dimsd=_shape(dims), name=name)

    def _filter(self, x: AnyArray, boundary: str) -> AnyArray:
        parameters = {"half_width": self.half_width, "norm": self.norm, "boundary": boundary}
        y: AnyArray = run(x, [(self._operation, parameters)], axis=self.axis)
        return y

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> AnyArray:
        return self._filter(x, self.boundary)

    @reshaped  # type: ignore[untyped-decorator]
    def _rmatvec(self, x: AnyArray) -> AnyArray:
        if self.boundary != "skip":
            return self._filter(x, self.boundary)
        wait_for_writers(x)
        kept = x.copy()
        edge = min(self._reach(), x.shape[self.axis])
        kept[_slices(self.axis, slice(0, edge))] = 0
        kept[_slices(self.axis, slice(x.shape[self.axis] - edge, None))] = 0
        return self._filter(kept, "zero")

    def _reach(self) -> int:
        """The number of outputs at either end that "skip" leaves out."""
        return self.half_width


class Triangle(_Window):
    """Along `axis` a sum of the samples around each one, with weights of a triangle that reaches 0 at `half_width`
    samples on either side. `norm`: "area", the weights' sum is 1; "height", their largest is 1; "none", they are 1, 2, ...
    `boundary`: "reflect", "zero", or "skip", which is 0 where a weight would lie beyond the row."""

    _operation = "triangle"


class Box(_Window):
    """Along `axis` the mean ("area") or the sum ("height", "none") of 2 half_width - 1 samples around each one.
    `boundary` is that of Triangle."""

    _operation = "box"

    def _reach(self) -> int:
        return self.half_width - 1


class Convolve1D(pylops.LinearOperator):  # type: ignore[misc]
    """pylops.Convolve1D, with the same parameters and results: y[i] is the sum of h[m] x[i + offset - m], with up to
    4,096 taps, after zeros have put the filter's centre in the middle. A filter longer than an x of one dimension gives
    as many results as it has taps; `offset` then is a place in x. `method` is accepted and has no effect: sums are
    direct ones."""

    def __init__(self, dims: Any, h: AnyArray, offset: int = 0, axis: int = -1, method: Any = None, dtype: Any = "float64", name: str = "C"):
        if np.ndim(h) != 1:
            raise ValueError(f"h: its shape is {np.shape(h)}; a filter has one dimension")
        shape = _shape(dims)
        self.axis = axis
        self.is_long = len(h) > shape[axis]
        what, most = ("x", shape[axis]) if self.is_long else ("a filter", len(h))
        if not 0 <= offset < most:
            raise ValueError(f"offset: it is {offset}; of {what} of {most} samples, 0 to {most - 1}")
        if self.is_long and len(shape) > 1:
            raise ValueError(f"h: it has {len(h)} taps, and rows {shape[axis]} samples; of {len(shape)} dimensions it has at most as many")
        self.offset = offset
        self.h = np.asarray(h) if self.is_long else _centred(np.asarray(h), offset)
        super().__init__(dtype=np.dtype(dtype), dims=shape, dimsd=(len(h),) if self.is_long else shape, name=name)

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> Any:
        if self.is_long:
            wait_for_writers(x)
            return run(self.h, [("convolve", {"filter": _centred(x, self.offset), "mode": "same"})])
        return run(x, [("convolve", {"filter": self.h, "mode": "same"})], axis=self.axis)

    @reshaped  # type: ignore[untyped-decorator]
    def _rmatvec(self, x: AnyArray) -> Any:
        if self.is_long:
            first = len(self.h) - 1 - self.offset
            return run(x, [("convolve", {"filter": self.h[::-1], "mode": "full"})])[first : first + self.dims[0]]
        return run(x, [("correlate", {"filter": self.h, "mode": "same"})], axis=self.axis)


def _centred(h: AnyArray, offset: int) -> AnyArray:
    """Adds zeros so that the offset is in the middle: the filter then is one of the mode "same"."""
    reach = max(offset, len(h) - 1 - offset)
    centred = np.zeros(2 * reach + 1, h.dtype)
    centred[reach - offset : reach - offset + len(h)] = h
    return centred


def _first(axis: int) -> tuple[Any, ...]:
    """The first samples along an axis, counted from the end or the beginning."""
    return _slices(axis, slice(0, 1))


def _later(axis: int) -> tuple[Any, ...]:
    return _slices(axis, slice(1, None))


def _slices(axis: int, along: slice) -> tuple[Any, ...]:
    whole = slice(None)
    return (*(whole,) * axis, along) if axis >= 0 else (..., along, *(whole,) * (-1 - axis))


class Stack(pylops.LinearOperator):  # type: ignore[misc]
    """Along `axis` samples added into `bins` bins: y[b] is the sum of x[i] with index[i] = b. The adjoint gives each
    sample its bin's value."""

    def __init__(self, dims: Any, index: Any, bins: int, axis: int = -1, dtype: Any = "float64", name: str = "S"):
        dims = _shape(dims)
        self.axis = axis % len(dims)
        self.index = converted("index", index, np.dtype(np.int64))
        self.bins = bins
        if self.index.shape != (dims[axis],):
            raise ValueError(f"index: its shape is {self.index.shape}; of {dims[axis]} samples along the axis it is ({dims[axis]},)")
        made = (*dims[: self.axis], bins, *dims[self.axis + 1 :])
        super().__init__(dtype=np.dtype(dtype), dims=dims, dimsd=made, name=name)

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> Any:
        return run(x, [("stack", {"bins": self.bins, "index": self.index})], axis=self.axis)

    @reshaped  # type: ignore[untyped-decorator]
    def _rmatvec(self, x: AnyArray) -> Any:
        wait_for_writers(x)
        return np.take(x, self.index, axis=self.axis)

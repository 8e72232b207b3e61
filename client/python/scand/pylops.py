"""Linear operators of PyLops that are computed by scand. Needs pylops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pylops  # type: ignore[import-untyped]
from pylops.utils.decorators import reshaped  # type: ignore[import-untyped]

from .functions import scan
from .memory import AnyArray, empty


class CausalIntegration(pylops.CausalIntegration):  # type: ignore[misc]
    """pylops.CausalIntegration, with the same parameters, attributes and results: y[i] is the sum of x[0] to x[i] times
    `sampling`; of the kind "half" with half of x[i], of "trapezoidal" with half of x[0] and x[i]."""

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> AnyArray:
        y = self._integrate(x, "forward")
        if self.kind == "trapezoidal":
            y[_later(self.axis)] -= self.sampling * x[_first(self.axis)] / 2
        return y[_later(self.axis)] if self.removefirst else y

    @reshaped  # type: ignore[untyped-decorator]
    def _rmatvec(self, x: AnyArray) -> AnyArray:
        if self.removefirst:
            x = np.insert(x, 0, 0, axis=self.axis)
        y = self._integrate(x, "backward")
        if self.kind == "trapezoidal":
            y[_first(self.axis)] = self.sampling * x.sum(self.axis, keepdims=True) / 2
        return y

    def _integrate(self, x: AnyArray, direction: str) -> AnyArray:
        kind = "inclusive" if self.kind == "full" else "half"
        if self.sampling == 1:
            return scan(x, direction, kind=kind, axis=self.axis)
        scaled = empty(x.shape, np.result_type(x.dtype, np.float32))
        np.multiply(x, self.sampling, out=scaled)
        return scan(scaled, direction, kind=kind, axis=self.axis, out=scaled)


class DoubleIntegration(pylops.LinearOperator):  # type: ignore[misc]
    """Along `axis` a causal and then an anti-causal sum, which is its own adjoint: y[i] is the sum over j >= i of the sums
    of x[0] to x[j], times the square of `sampling`."""

    def __init__(self, dims: Any, axis: int = -1, sampling: float = 1.0, dtype: Any = "float64", name: str = "D"):
        self.axis = axis
        self.sampling = sampling
        super().__init__(dtype=np.dtype(dtype), dims=dims, dimsd=dims, name=name)

    @reshaped  # type: ignore[untyped-decorator]
    def _matvec(self, x: AnyArray) -> AnyArray:
        y = scan(x, "forward,backward", axis=self.axis)
        if self.sampling != 1:
            y *= self.sampling**2
        return y

    def _rmatvec(self, x: AnyArray) -> Any:
        return self._matvec(x)


def _first(axis: int) -> tuple[Any, ...]:
    """The first samples along an axis, counted from the end or the beginning."""
    return _slices(axis, slice(0, 1))


def _later(axis: int) -> tuple[Any, ...]:
    return _slices(axis, slice(1, None))


def _slices(axis: int, along: slice) -> tuple[Any, ...]:
    whole = slice(None)
    return (*(whole,) * axis, along) if axis >= 0 else (..., along, *(whole,) * (-1 - axis))

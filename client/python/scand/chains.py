"""Chains of operations, by the list that libscand has of them: what steps read and write besides, and how long they leave
rows."""

from __future__ import annotations

import functools
import math
from typing import Any, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._ffi import ffi
from ._library import lib, string
from .errors import error_of
from .layout import Step, word_of
from .memory import AnyArray

OPERATIONS_MOST = 64
ROWS_MOST = 32  # parameters and operands of an operation


class Parameter(NamedTuple):
    """A parameter of an operation, or an array that it has as an operand, of the kind "tensor"."""

    kind: str  # "word", "words", "flag", "integer", "number", "tensor"
    required: bool
    words: tuple[str, ...]  # words that it may be, of which the first counts where it is left out
    most: int  # an integer's largest value; of words, how many there may be
    line: str  # its purpose
    access: str  # of an operand: "read", "write"
    follows: str  # what it has elements for: "samples", "rows", "vectors", "job"
    dtypes: str  # "input": as the samples; "float": any floats; "index": integers


class Operation(NamedTuple):
    """What a step of run() may be."""

    line: str  # its purpose
    parameters: Mapping[str, Parameter]  # by name


class StepOperand(NamedTuple):
    """An operand that a step of a chain has been given."""

    step: int
    name: str
    about: Parameter
    array: AnyArray

    @property
    def written(self) -> bool:
        return self.about.access == "write"

    @property
    def field(self) -> str:
        return f"steps[{self.step}].{self.name}"


@functools.lru_cache(maxsize=64)
def parameters_of(operation: str) -> Optional[Mapping[str, Parameter]]:
    """The parameters and operands of an operation, by name; None of an operation that libscand does not know."""
    rows, count = ffi.new("struct scand_parameter_info[]", ROWS_MOST), ffi.new("size_t *")
    if lib.scand_parameters(ffi.NULL, operation.encode(), rows, ffi.sizeof(rows[0]), ROWS_MOST, count):
        return None
    return {string(row.name): _parameter(row) for row in rows[0 : count[0]]}


def _parameter(row: Any) -> Parameter:
    kind, words, line, access, follows, dtypes = map(string, (row.kind, row.words, row.line, row.access, row.follows, row.dtypes))
    return Parameter(kind, bool(row.required), tuple(words.split(",")) if words else (), int(row.most), line, access, follows, dtypes)


@functools.lru_cache(maxsize=64)
def operands_of(operation: str) -> Mapping[str, Parameter]:
    """The operands of an operation, by name; none of an operation that libscand does not know."""
    return {name: row for name, row in (parameters_of(operation) or {}).items() if row.kind == "tensor"}


def operations() -> dict[str, Operation]:
    """The operations that steps of run() may be, by name, each with its parameters:

        scand.operations()["triangle"].parameters["boundary"].words   # ("reflect", "zero", "skip")
    """
    rows, count = ffi.new("struct scand_operation_info[]", OPERATIONS_MOST), ffi.new("size_t *")
    status = lib.scand_operations(ffi.NULL, rows, ffi.sizeof(rows[0]), OPERATIONS_MOST, count)
    if status:
        raise error_of(status, "")
    return {name: Operation(string(row.line), parameters_of(name) or {}) for row in rows[0 : count[0]] for name in [string(row.name)]}


def new_task(steps: Sequence[Step], operands: Mapping[tuple[int, str], Any]) -> Any:
    """A task of libscand's with these steps; operands are tensors, by step and name."""
    out = ffi.new("struct scand_task **")
    status = lib.scand_task_create(out)
    if status:
        raise error_of(status, "")
    task = ffi.gc(out[0], lib.scand_task_destroy)
    for at, (operation, parameters) in enumerate(steps):
        status = lib.scand_task_step(task, operation.encode())
        for name, value in parameters:
            if isinstance(value, str):
                status = lib.scand_task_set(task, name.encode(), value.encode())
            else:
                status = lib.scand_task_set_number(task, name.encode(), value)
        for (step, name), tensor in operands.items():
            if step == at:
                status = lib.scand_task_operand(task, name.encode(), tensor)
    check_task(task, status)  # the first failure stays
    return task


def check_task(task: Any, status: int) -> None:
    if status:
        raise error_of(status, string(lib.scand_task_message(task)))


@functools.lru_cache(maxsize=256)
def leaves_rows(steps: tuple[Step, ...]) -> bool:
    """True when the last step leaves one element for each row."""
    return bool(lib.scand_task_leaves_rows(new_task(steps, {})) == 1)


class Shapes(NamedTuple):
    lengths: tuple[int, ...]  # lengths of a row before each step, and behind the last


def shapes_of(steps: tuple[Step, ...], operands: Sequence[StepOperand], length: int, axis: int) -> Shapes:
    """The shapes of rows of `length`."""
    extents = []
    for operand in operands:
        given = operand.array.shape
        along = given[axis] if len(given) > 1 and axis < len(given) else given[0]
        extents.append((operand.step, operand.name, along))
    return _shapes(steps, tuple(extents), length)


@functools.lru_cache(maxsize=256)
def _shapes(steps: tuple[Step, ...], operands: tuple[tuple[int, str, int], ...], length: int) -> Shapes:
    """Lengths do not depend on the number of rows, so libscand is asked about a single row."""
    tensors = {(step, name): _line(along) for step, name, along in operands}
    task, made = new_task(steps, tensors), ffi.new("struct scand_tensor *")
    check_task(task, lib.scand_task_input(task, _line(length)))
    check_task(task, lib.scand_task_axis(task, 0))
    lengths = []
    for behind in range(len(steps) + 1):
        check_task(task, lib.scand_task_shape(task, behind, made))
        lengths.append(made.shape[0])
    return Shapes(tuple(lengths))


def _line(length: int) -> Any:
    tensor = ffi.new("struct scand_tensor *")
    tensor.rank, tensor.shape = 1, [length]
    return tensor


def operand_shape(operand: StepOperand, shapes: Shapes, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of the operand's tensor, where `shape` is that of the first step's input."""
    follows, given = operand.about.follows, operand.array.shape
    if follows == "job" or (follows == "vectors" and len(given) == 1):
        return given
    if follows == "samples":
        along = shapes.lengths[operand.step + (1 if operand.written else 0)]
    else:
        along = 1 if follows == "rows" or len(given) != len(shape) else given[axis]
    return (*shape[:axis], along, *shape[axis + 1 :])


def operand_dtype(operand: StepOperand, samples: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that an array is converted to before it is read; a written array keeps its own."""
    given = operand.array.dtype
    if operand.written:
        return given
    if operand.about.dtypes == "index":
        return given if given.str in ("<i4", "<i8") else np.dtype(np.int64)
    if operand.about.dtypes == "input" and samples.kind in "iu":
        return samples.newbyteorder("=")
    double = samples.itemsize == 8 if operand.about.dtypes == "input" else given.itemsize == 8
    kept = given.kind == "f" and word_of(given) is not None and (operand.about.dtypes == "float" or double == (given.itemsize == 8))
    return given if kept else np.dtype(np.float64 if double or given.kind in "iu" and operand.about.dtypes == "float" else np.float32)


def word_value(field: str, value: Any, operands: Iterable[str]) -> Union[str, float]:
    """A step's parameter as libscand takes it; `field` names it, `operands` are those that may be arrays."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return _told_apart(value)
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if np.ndim(value):
        given = f"an array of shape {np.shape(value)}"
    else:
        try:
            return _told_apart(float(value))
        except (TypeError, ValueError):
            given = repr(value)
    raise TypeError(f"{field}: it is {given}; take a number or a word; arrays may be: {', '.join(operands) or 'none'}")


def _told_apart(value: float) -> Union[str, float]:
    """Words tell 0 and -0 apart; steps that are equal are described once, and numbers would be equal."""
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value

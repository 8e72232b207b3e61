"""The functions that programs call: scans and reductions, and the functions of NumPy and SciPy that these stand for."""

from __future__ import annotations

import functools
import math
import numbers
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, TypedDict, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import quick
from ._library import lib, number
from .chains import StepOperand, leaves_rows, operands_of, word_value
from .client import Client, default_client, wait_for_writers
from .device import wrapped
from .dtypes import is_small
from .errors import LostError
from .files import file_place_of
from .jobs import Job, submit_plan, submit_plans
from .layout import Settings, Step
from .memory import AnyArray, Elsewhere, empty
from .plans import Plan, Request, refuse_mask, scheme_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

TRIES = 3  # tries of a job that was lost with its worker, where its input is still there

Passes = Union[str, Sequence[str]]
ChainStep = Union[str, tuple[str, Mapping[str, Any]]]  # an operation, and its parameters


class Options(TypedDict, total=False):
    """Keywords of scans and reductions. scan() documents them."""

    dtype: Optional[DTypeLike]
    out: Optional[AnyArray]
    copy: Optional[bool]
    form: Optional[str]
    priority: str
    deadline: Optional[float]
    offsets: Optional[ArrayLike]


class ScanOptions(Options, total=False):
    """Keywords of scan(), submit() and submit_many()."""

    axis: Optional[int]
    kind: str
    op: str
    accumulator: str
    intermediate: str
    demean: bool
    coefficient: Optional[ArrayLike]


class ReduceOptions(Options, total=False):
    """Keywords of reduce(), run() and the like."""

    axis: Union[int, Sequence[int], None]
    keepdims: bool


def _refusal(unknown: dict[str, Any], known: type) -> TypeError:
    """Python's own would name a function that programs do not call."""
    return TypeError(f"{next(iter(unknown))}: there is no such keyword; take {', '.join(known.__annotations__)} or client")


@functools.lru_cache(maxsize=256)
def _settings(
    passes: tuple[str, ...], kind: str, op: str, accumulator: str, intermediate: str, demean: bool,
    coefficient: Optional[float], priority: str, deadline: Optional[float],
) -> Settings:
    """Words as libscand's enumerators."""
    if not 1 <= len(passes) <= lib.SCAND_PASSES_MAX:
        raise ValueError(f"passes: {passes!r} are {len(passes)}; take one or two of forward and backward")
    members = {
        "kind": number("kind", kind), "op": number("operator", op), "accumulator": number("accumulator", accumulator),
        "intermediate": number("intermediate", intermediate), "demean": int(_flag("demean", demean)), **_common(priority, deadline),
    }
    if coefficient is not None:
        members["coefficient"] = coefficient
    return Settings(False, tuple(number("pass", word) for word in passes), tuple(members.items()))


def _flag(name: str, given: object) -> bool:
    if isinstance(given, (bool, np.bool_, int)) and given in (0, 1):
        return bool(given)
    raise TypeError(f"{name}: {given!r} is neither True nor False")


def _check_words(**words: object) -> None:
    """Names the word that is none. Those that cannot be keys of a cache would be refused without their name."""
    for name, word in words.items():
        for one in word if isinstance(word, tuple) else (word,):
            if not isinstance(one, str):
                raise TypeError(f"{name}: {one!r} is no word; take a text")


def _is_double(asked: Optional[DTypeLike]) -> bool:
    """True when results keep more digits than f32 has."""
    return asked is not None and np.dtype(asked).char in "dD"


@functools.lru_cache(maxsize=256)
def _reduce_settings(reduction: str, priority: str, deadline: Optional[float]) -> Settings:
    if reduction == "none":
        raise ValueError("op: 'none' is of scans; take sum, min, max, mean, rms or norm")
    members = {"reduction": number("reduction", reduction), **_common(priority, deadline)}
    return Settings(True, members=tuple(members.items()))


def _common(priority: str, deadline: Optional[float]) -> dict[str, Any]:
    """Members that scans and reductions have in common. A client sends a job only after the jobs on which it depends have
    ended, so the daemon need fail none for the failure of an earlier one; it would otherwise also fail jobs that lie
    between two that it has refused for now."""
    members: dict[str, Any] = {"priority": number("priority", priority), "after_failure": 1}
    if deadline is not None:
        if not isinstance(deadline, numbers.Real):
            raise TypeError(f"deadline: {deadline!r} is no number of seconds")
        if not 0.001 <= deadline <= lib.SCAND_DEADLINE_MS_MAX / 1000:
            raise ValueError(f"deadline: {deadline} is not between 0.001 and {lib.SCAND_DEADLINE_MS_MAX // 1000} seconds")
        members["deadline_ms"] = int(deadline * 1000)
    return members


def _request(
    x: ArrayLike, passes: Passes = "forward", *, kind: str = "inclusive", op: str = "sum", accumulator: str = "auto",
    intermediate: str = "auto", demean: bool = False, coefficient: Optional[ArrayLike] = None, axis: Optional[int] = -1,
    dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None, copy: Optional[bool] = None,
    form: Optional[str] = None, priority: str = "normal", deadline: Optional[float] = None,
    offsets: Optional[ArrayLike] = None, **unknown: Any,
) -> Request:
    if unknown:
        raise _refusal(unknown, ScanOptions)
    if not isinstance(passes, (str, Iterable)):
        raise TypeError(f"passes: {passes!r} is none; take \"forward\", \"backward\", or two of them, \"forward,backward\"")
    words = tuple(passes.split(",")) if isinstance(passes, str) else tuple(passes)
    if (
        axis is not None and op in ("sum", "prod") and kind in ("inclusive", "exclusive") and not demean and coefficient is None
        and (accumulator, intermediate, form) == ("auto", "auto", None) and (results := _results_of_small(x, dtype, out, copy))
    ):
        steps = (("map", {"op": "cast"}), ("scan", {"passes": ",".join(words), "kind": kind, "op": op}))
        return _run_request(
            x, steps, axis=axis, dtype=results, out=out, copy=copy, priority=priority, deadline=deadline, offsets=offsets
        )
    coefficients, factor = None, None
    if coefficient is not None and np.ndim(coefficient):
        coefficients = wrapped(coefficient)
    elif coefficient is not None:
        if np.iscomplexobj(coefficient):
            raise TypeError(f"coefficient: {coefficient!r} is complex; take a real number, or lfilter, which has complex ones")
        wait_for_writers(coefficient)
        try:
            factor = float(np.asarray(coefficient)[()])
        except (TypeError, ValueError):
            raise TypeError(f"coefficient: {coefficient!r} is no number") from None
    if intermediate == "auto" and len(words) > 1 and _is_double(dtype if out is None or dtype is not None else out.dtype):
        intermediate = "f64"
    try:
        settings = _settings(words, kind, op, accumulator, intermediate, demean, factor, priority, deadline)
    except TypeError:
        _check_words(passes=words, kind=kind, op=op, accumulator=accumulator, intermediate=intermediate, priority=priority)
        raise
    name = "demeaned" if demean else op
    return _of_arrays(Request(x, settings, name, axis, dtype, out, copy, form, coefficients, offsets=offsets))


def _results_of_small(
    x: Any, dtype: Optional[DTypeLike], out: Any, copy: Optional[bool]
) -> Optional[np.dtype[Any]]:
    """The integers that sums of small ones are to be, where jobs are to convert samples because this process must not, or
    cannot: they are in a device's memory or in a file. Else it does so while it copies them, which takes less time."""
    given = getattr(x, "dtype", None)
    if not isinstance(given, np.dtype) or not is_small(given) or not (copy is False or not isinstance(x, np.ndarray) or file_place_of(x)):
        return None
    wide = np.dtype(np.int64 if given.kind == "i" else np.uint64)
    results = np.dtype(dtype) if dtype is not None else wide if out is None else np.dtype(out.dtype)
    return results if results.kind in ("iu" if given.kind == "u" else "i") and results.itemsize >= 4 else None


def _of_arrays(request: Request) -> Request:
    """Turns arrays of other packages into arrays of this one, and what says False into that."""
    if request.copy is not None:
        request.copy = _flag("copy", request.copy)
    if request.keepdims is not False:
        request.keepdims = _flag("keepdims", request.keepdims)
    if type(request.x) is not np.ndarray:
        request.x = wrapped(request.x)
    out: Any = request.out
    if out is not None and type(out) is not np.ndarray:
        request.out = wrapped(out)
        request.given_out = out
    return request


def _user(request: Request, client: Optional[Client]) -> Client:
    """The client that is asked for, or whose memory the samples or operands are in, or the one of this process."""
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"client: {client!r} is no client; take one, scand.Client(socket)")
    arrays: tuple[Any, ...] = (request.x, request.coefficients, *(own.array for own in request.operands))
    clients = (array.client for array in arrays if client is None and isinstance(array, Elsewhere))
    return client or next(filter(None, clients), None) or default_client()


def _submitted(request: Request, client: Optional[Client]) -> Job:
    user = request.client = _user(request, client)
    return submit_plan(user, Plan(request))


def _run(request: Request, client: Optional[Client]) -> Any:
    """Runs a request, until the results are there. Samples copied from ordinary memory are still there when a worker
    was lost."""
    user = request.client = _user(request, client)
    if (known := quick.ready(request)) is not None:
        done, results = quick.run(user, known)
        if done:
            return results
    for tries_left in reversed(range(TRIES)):
        plan = Plan(request)
        try:
            job = submit_plan(user, plan)
            if known is None:
                quick.learn(plan)
            return job.result()
        except LostError:
            if not tries_left or not plan.can_be_repeated():
                raise
    raise AssertionError("not reached: the last try returns or raises")


def scan(
    x: ArrayLike, passes: Passes = "forward", *, client: Optional[Client] = None, **options: Unpack[ScanOptions]
) -> AnyArray:
    """The sums, products, extremes or recurrences up to each sample, along one axis.

    Parameters
    ----------
    x : array_like
        The samples, of any shape and layout: integers, floats of up to 64 bits, or complex numbers of two such floats.
    passes : str or sequence of str
        "forward", "backward", or two of them that are run in order: "forward,backward" is the double integral.
    kind : str
        "inclusive"; "exclusive": result i does not include sample i; "half": it includes half of sample i (sums of
        floats); "trapezoid": also half of the first sample, and result 0 is 0 (the trapezoidal rule).
    op : str
        "sum", "prod", "max", "min", or "affine": y[i] = coefficient y[i-1] + x[i].
    coefficient : number or array_like
        The coefficient of "affine": one for all samples, not 0; or one for each, broadcast to the shape of x.
    accumulator : str
        The type in which running results are kept: "auto" is f64 for floats, exact for integers; "f32", "f64", "f2".
    intermediate : str
        The type to which floats are rounded between two passes: "auto" is "f64" for samples or results of 64 bits, else
        "f32".
    demean : bool
        Subtracts each row's mean from its samples first.
    axis : int or None
        The axis along which to scan. None: the flattened array.
    dtype : dtype
        The dtype of the results. By default that of NumPy's cumsum: floats as they are, small integers as 64 bits.
    out : ndarray
        An array for the results, of their shape. It may be x itself.
    copy : bool or None
        None copies arrays that jobs cannot use where they lie. False raises ValueError instead.
    form : str
        The form of samples for which NumPy has no dtype: "ibm32", "ibm32le", "bf16"; or "i8", "i16", "i32be" and the
        like, for integers that are summed as floats. The items of x have the size of that form.
    priority : str
        The place among this user's jobs: "normal", "low", "high".
    deadline : float
        Seconds in which the job has to start, or else DeadlineError is raised and `out` is as it was.
    offsets : array_like
        Rows of differing lengths, one behind the other in an `x` of one dimension: row r is x[offsets[r]:offsets[r + 1]].
        Offsets do not decrease, from 0 to the number of samples; they are one more than the rows, which may be empty.
    client : Client
        The client whose connection is used; by default the one of this process.

    Returns
    -------
    ndarray
        `out`, or a new array in shared memory.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong; the message says which, and what is allowed.
    ConnectionError
        There is no daemon, or it was lost with a job that cannot be repeated.
    TimeoutError
        The daemon was busy for longer than the client's patience.
    PermissionError
        That is more memory than the user may ever have.
    """
    return _run(_request(x, passes, **options), client)  # type: ignore[no-any-return]


def submit(x: ArrayLike, passes: Passes = "forward", *, client: Optional[Client] = None, **options: Unpack[ScanOptions]) -> Job:
    """Submits a scan, as scan() does, without waiting for it. Ordinary memory is copied before this returns; shared
    arrays, and `out`, must be left alone until the job is done."""
    return _submitted(_request(x, passes, **options), client)


def submit_many(
    arrays: Iterable[ArrayLike], passes: Passes = "forward", *, client: Optional[Client] = None, **options: Unpack[ScanOptions]
) -> list[Job]:
    """Submits scans of many arrays, with the same options, in few messages, which saves most of the cost of small jobs.
    Jobs end some 32 at a time."""
    return _together([_request(x, passes, **options) for x in arrays], client)


def _together(requests: Sequence[Request], client: Optional[Client]) -> list[Job]:
    if not requests:
        return []
    user = _user(requests[0], client)
    for request in requests:
        request.client = user
    return submit_plans(user, [Plan(request) for request in requests])


def _reduce_request(
    x: ArrayLike, op: str = "sum", *, axis: Union[int, Sequence[int], None] = -1, dtype: Optional[DTypeLike] = None,
    out: Optional[AnyArray] = None, keepdims: bool = False, copy: Optional[bool] = None, form: Optional[str] = None,
    priority: str = "normal", deadline: Optional[float] = None, offsets: Optional[ArrayLike] = None, **unknown: Any,
) -> Request:
    if unknown:
        raise _refusal(unknown, ReduceOptions)
    try:
        settings = _reduce_settings(op, priority, deadline)
    except TypeError:
        _check_words(op=op, priority=priority)
        raise
    return _of_arrays(Request(x, settings, op, axis, dtype, out, copy, form, None, keepdims, offsets=offsets))


def reduce(x: ArrayLike, op: str = "sum", *, client: Optional[Client] = None, **options: Unpack[ReduceOptions]) -> Any:
    """One number for each row along an axis: "sum", "min", "max", "mean", "rms" or "norm".

    Sums of floats are kept in f64. For a row without samples sum and norm are 0, the minimum is infinity, the maximum
    -infinity (of integers, the ends of their range), mean and rms are NaN. Keywords are as of scan(); `keepdims`
    keeps the axis, with one element. With several axes, or all of them (axis=None), the samples along these axes make
    one row, in the order of the axes in `x`. Returns an array without the axis, or a number; with `offsets` an array of
    one number for each row.
    """
    return _run(_reduce_request(x, op, **options), client)


def submit_reduce(
    x: ArrayLike, op: str = "sum", *, client: Optional[Client] = None, **options: Unpack[ReduceOptions]
) -> Job:
    """Submits a reduction, as reduce() does, without waiting for it; see submit()."""
    return _submitted(_reduce_request(x, op, **options), client)


_USUAL = {"scan": {"passes": "forward"}, "reduce": {"reduction": "sum"}}  # parameters of a step that gives none


def _grows(operation: str, parameters: Mapping[str, Any]) -> bool:
    """True when results of integers may be larger than the samples that a step reads."""
    if operation == "reduce":
        return bool(parameters["reduction"] == "sum")
    return operation == "block-sum" or operation == "scan" and parameters.get("op", "sum") not in ("max", "min")


def _chain(steps: Sequence[ChainStep]) -> list[tuple[str, Mapping[str, Any]]]:
    """Steps as operations with all their parameters."""
    example = "[(\"scan\", {\"passes\": \"forward,backward\"}), \"demean\"]"
    alone = isinstance(steps, tuple) and len(steps) == 2 and isinstance(steps[1], Mapping)
    if alone or isinstance(steps, (str, Mapping)) or not isinstance(steps, Iterable):
        raise TypeError(f"steps: {steps!r} is no list of steps; take one, as {example}")
    chain: list[tuple[str, Mapping[str, Any]]] = []
    for at, step in enumerate(steps):
        name, parameters = (step, {}) if isinstance(step, str) else step if isinstance(step, (tuple, list)) and len(step) == 2 else (None, None)
        if not isinstance(name, str) or not isinstance(parameters, Mapping):
            raise TypeError(f"steps[{at}]: {step!r} is no operation, alone or with a dictionary of its parameters; take steps as {example}")
        chain.append((name, {**_USUAL.get(name, {}), **parameters}))
    if not chain:
        raise ValueError(f"steps: there is none; take one or more, as {example}")
    return chain


def _run_request(
    x: ArrayLike, steps: Sequence[ChainStep], *, axis: Union[int, Sequence[int], None] = -1, dtype: Optional[DTypeLike] = None,
    out: Optional[AnyArray] = None, keepdims: bool = False, copy: Optional[bool] = None, form: Optional[str] = None,
    priority: str = "normal", deadline: Optional[float] = None, offsets: Optional[ArrayLike] = None, **unknown: Any,
) -> Request:
    if unknown:
        raise _refusal(unknown, ReduceOptions)
    chain = _chain(steps)
    _common(priority, deadline)  # checks them
    options = (("priority", priority), ("after_failure", "1"), *([("deadline_ms", str(int(deadline * 1000)))] if deadline is not None else []))
    words, operands = _split(chain)
    last, parameters = chain[-1]
    reduces = leaves_rows(words)
    op = "sum" if any(_grows(*step) for step in chain) else "max"
    casts = [name == "map" and step.get("op") == "cast" for name, step in chain]
    if any(casts):
        op = "converted" if casts[0] else "cast"
    elif last == "reduce" and parameters["reduction"] in ("mean", "rms", "norm"):
        op = parameters["reduction"]
    if type(x) is not np.ndarray:
        x = wrapped(x)
    if np.iscomplexobj(x) and any(name not in _USUAL for name, _ in chain):
        raise TypeError("x: complex numbers have scans and reductions only; take one part, or the absolute values")
    settings = _run_settings(words, reduces, options)
    return _of_arrays(Request(x, settings, op, axis, dtype, out, copy, form, None, keepdims, operands, offsets))


def _split(chain: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[tuple[Step, ...], tuple[StepOperand, ...]]:
    """Steps with their words and numbers, and the arrays that are operands."""
    steps: list[Step] = []
    operands: list[StepOperand] = []
    for at, (operation, parameters) in enumerate(chain):
        known = operands_of(operation)
        wait_for_writers(*(value for name, value in parameters.items() if name.replace("-", "_") not in known or isinstance(value, (list, tuple))))
        names = {name: name.replace("-", "_") for name in parameters}
        steps.append((operation, tuple(
            (name, word_value(f"steps[{at}].{names[name]}", parameters[name], known)) for name in names if names[name] not in known
        )))
        for name, canonical in names.items():
            if canonical in known:
                given = wrapped(parameters[name])
                array: Any = given if isinstance(given, Elsewhere) else np.atleast_1d(given)
                operands.append(StepOperand(at, canonical, known[canonical], array if array.shape else array.reshape(1)))
    return tuple(steps), tuple(operands)


@functools.lru_cache(maxsize=256)
def _run_settings(steps: tuple[Step, ...], reduces: bool, options: tuple[tuple[str, str], ...]) -> Settings:
    return Settings(reduces, steps=steps, options=options)


def run(
    x: ArrayLike, steps: Sequence[ChainStep], *, client: Optional[Client] = None, **options: Unpack[ReduceOptions]
) -> Any:
    """Runs several operations in one job, each on the result of the one before it, which stays on the device.

    A step is an operation ("scan", "upsample", or as the last "reduce": operations() lists them), with its parameters
    in a dictionary: [("scan", {"passes": "forward,backward", "demean": True}), ("reduce", {"reduction": "rms"})].
    Parameters have the names and words of that list. Operands have them, too, and are arrays; a step writes its results
    into the operands that it writes. Values between steps have the dtype of the results; ("map", {"op": "cast"}) as the
    first step changes between integers and floats in the daemon. Keywords are as of reduce(). Returns the results of
    the last step.
    """
    return _run(_run_request(x, steps, **options), client)


def submit_run(
    x: ArrayLike, steps: Sequence[ChainStep], *, client: Optional[Client] = None, **options: Unpack[ReduceOptions]
) -> Job:
    """Submits a chain of steps, as run() does, without waiting for it; see submit()."""
    return _submitted(_run_request(x, steps, **options), client)


def submit_run_many(
    arrays: Iterable[ArrayLike], steps: Sequence[ChainStep], *, client: Optional[Client] = None, **options: Unpack[ReduceOptions]
) -> list[Job]:
    """Submits the same steps for many arrays, in few messages; submit_many() does so for scans."""
    return _together([_run_request(x, steps, **options) for x in arrays], client)


def cumsum(
    a: ArrayLike, axis: Optional[int] = -1, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None, *,
    copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.cumsum, along the last axis unless told otherwise. Floats are added in f64, then rounded to the dtype of
    the results: that of `a`, or 64 bits for small integers."""
    return scan(a, axis=axis, dtype=dtype, out=out, copy=copy, client=client)


def cumprod(
    a: ArrayLike, axis: Optional[int] = -1, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None, *,
    copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.cumprod of real numbers, along the last axis unless told otherwise, in f64 as cumsum."""
    return scan(a, op="prod", axis=axis, dtype=dtype, out=out, copy=copy, client=client)


def maximum_accumulate(
    array: ArrayLike, axis: int = -1, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None, *,
    copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.maximum.accumulate, along the last axis unless told otherwise. A NaN stays."""
    return scan(array, op="max", axis=axis, dtype=dtype, out=out, copy=copy, client=client)


def minimum_accumulate(
    array: ArrayLike, axis: int = -1, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None, *,
    copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.minimum.accumulate, along the last axis unless told otherwise. A NaN stays."""
    return scan(array, op="min", axis=axis, dtype=dtype, out=out, copy=copy, client=client)


def cumulative_sum(
    x: ArrayLike, /, *, axis: Optional[int] = None, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None,
    include_initial: bool = False, copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.cumulative_sum, of the array API. `axis` may be left out for an array of one dimension. With
    `include_initial` the results begin with 0, and are one more."""
    return _cumulative("sum", x, axis, dtype, out, 0 if include_initial else None, copy, client)


def cumulative_prod(
    x: ArrayLike, /, *, axis: Optional[int] = None, dtype: Optional[DTypeLike] = None, out: Optional[AnyArray] = None,
    include_initial: bool = False, copy: Optional[bool] = None, client: Optional[Client] = None,
) -> AnyArray:
    """numpy.cumulative_prod, of the array API, of real numbers. With `include_initial` the results begin with 1."""
    return _cumulative("prod", x, axis, dtype, out, 1 if include_initial else None, copy, client)


def _cumulative(
    op: str, x: ArrayLike, axis: Optional[int], dtype: Optional[DTypeLike], out: Optional[AnyArray], initial: Optional[int],
    copy: Optional[bool], client: Optional[Client],
) -> AnyArray:
    if isinstance(x, (list, tuple)):
        wait_for_writers(x)
    given = np.atleast_1d(x)
    if axis is None:
        if given.ndim > 1:
            raise ValueError(f"axis: x has {given.ndim} of them; say along which")
        axis = 0
    if initial is None:
        return scan(given, op=op, axis=axis, dtype=dtype, out=out, copy=copy, client=client)
    scheme = scheme_of(given.dtype, given.shape, axis, False, op, None if dtype is None else np.dtype(dtype))
    at = scheme.axis
    shape = (*given.shape[:at], given.shape[at] + 1, *given.shape[at + 1 :])
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out: {type(out).__name__} is no NumPy array")
    whole = empty(shape, scheme.dtypes.final) if out is None else out
    if whole.shape != shape:
        raise ValueError(f"out: its shape is {whole.shape}, that of the result {shape}")
    rows = np.moveaxis(whole, at, -1)
    scan(given, op=op, axis=axis, dtype=dtype, out=np.moveaxis(rows[..., 1:], -1, at), copy=copy, client=client)
    rows[..., 0] = initial
    return whole


def cumulative_trapezoid(
    y: ArrayLike, x: Optional[ArrayLike] = None, dx: float = 1.0, axis: int = -1, initial: Optional[float] = None, *,
    client: Optional[Client] = None,
) -> AnyArray:
    """scipy.integrate.cumulative_trapezoid: the integral up to each sample by the trapezoidal rule, for samples at `x`
    or `dx` apart. The result has one sample less than `y` along the axis, unless `initial` is 0, which then comes
    first. With `dx` it is scan(y, kind="trapezoid"), rounded to the dtype of the results and multiplied by dx; sums of
    f16 are rounded to f32 before that."""
    samples = _readable("y", y)
    if samples.dtype.kind in "biu":
        samples = samples.astype(float)
    _check_axis(axis, samples)
    if samples.shape[axis] < 1:
        raise ValueError("y: there is no sample along the axis; at least one is needed")
    if initial is not None and initial != 0:
        raise ValueError(f"initial: {initial} is neither 0 nor None")
    whole = _trapezoids(samples, _spacing(dx), axis, client) if x is None else _trapezoids_at(samples, _readable("x", x), axis, client)
    return whole if initial is not None else np.moveaxis(np.moveaxis(whole, axis, -1)[..., 1:], -1, axis)


def _readable(name: str, given: ArrayLike) -> AnyArray:
    """The array, once no job is about to write it: this process computes with it."""
    refuse_mask(name, given)
    wait_for_writers(given)
    return np.asarray(given)


def _check_axis(axis: int, samples: AnyArray) -> None:
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis: {axis!r} is no whole number")
    if not -samples.ndim <= axis < samples.ndim:
        raise ValueError(f"axis: {axis} is none of an array of {samples.ndim} dimensions")


def _spacing(dx: float) -> float:
    try:
        return float(dx)
    except (TypeError, ValueError):
        raise TypeError(f"dx: {dx!r} is no real number; take one, or x, the places of the samples") from None


def _trapezoids(samples: AnyArray, dx: float, axis: int, client: Optional[Client]) -> AnyArray:
    """Trapezoidal integrals of samples that are equally far from each other. Sums of f16 may be too large for f16 where
    integrals are not."""
    step = ("scan", {"passes": "forward", "kind": "trapezoid", **({} if dx == 1 else {"scale": dx})})
    short = samples.dtype.char == "e"
    results: AnyArray = run(samples, [step], axis=axis, dtype=np.float32 if short else None, client=client)
    return results.astype(np.float16) if short else results


def _trapezoids_at(samples: AnyArray, x: AnyArray, axis: int, client: Optional[Client]) -> AnyArray:
    rows, step = np.moveaxis(samples, axis, -1), _steps(x, samples, axis)
    whole = empty(samples.shape, np.result_type(samples.dtype, step.dtype))
    integrals = np.moveaxis(whole, axis, -1)
    integrals[..., 0] = 0
    later = integrals[..., 1:]
    np.add(rows[..., 1:], rows[..., :-1], out=later, casting="same_kind")
    np.multiply(later, step, out=later, casting="same_kind")
    np.divide(later, 2.0, out=later, casting="same_kind")
    scan(later, out=later, client=client)
    return whole


def _steps(x: AnyArray, samples: AnyArray, axis: int) -> AnyArray:
    """The distances between samples, along the last axis."""
    along = samples.shape[axis]
    if x.ndim == 1 and x.shape[0] == along:
        return np.diff(x)
    if x.shape == samples.shape:
        return np.diff(np.moveaxis(x, axis, -1))
    raise ValueError(f"x: its shape is {x.shape}; take that of y, {samples.shape}, or {along} samples of one dimension")


def lfilter(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: Optional[ArrayLike] = None, *,
    client: Optional[Client] = None,
) -> Any:
    """scipy.signal.lfilter of first order: a[0] y[i] = b[0] x[i] + b[1] x[i-1] - a[1] y[i-1], with up to two
    coefficients each. With `zi`, the state before (one element along the axis), it returns the results and the state
    after. A complex a[1] / a[0] is taken as r exp(i phi): samples are turned by multiples of phi, filtered with r, and
    turned back."""
    numerator, denominator, samples = np.atleast_1d(_readable("b", b)), np.atleast_1d(_readable("a", a)), _readable("x", x)
    zi = None if zi is None else _readable("zi", zi)
    for name, taps in (("b", numerator), ("a", denominator)):
        if taps.ndim != 1 or not 1 <= taps.size <= 2:
            raise ValueError(f"{name}: its shape is {taps.shape}; filters of first order have one or two coefficients")
    if denominator[0] == 0:
        raise ValueError("a: a[0] is 0; results are divided by it")
    kind = np.result_type(numerator, denominator, samples, *([] if zi is None else [zi]))
    kind = kind if kind.kind in "fc" else np.dtype(float)
    b0, b1 = (*(numerator / denominator[0]), 0.0)[:2]
    a1 = complex(denominator[1] / denominator[0]) if denominator.size > 1 else 0j
    if a1.imag and not np.isfinite(a1):
        raise ValueError(f"a: a[1] / a[0] is {a1}; complex coefficients have to be finite")
    _check_axis(axis, samples)
    order = max(numerator.size, denominator.size) - 1
    rows = np.moveaxis(samples, axis, -1)
    filtered = np.moveaxis(empty(samples.shape, kind), axis, -1)
    np.multiply(rows, b0, out=filtered, casting="unsafe")
    if b1 and filtered.size:
        filtered[..., 1:] += rows[..., :-1] * kind.type(b1)
    if zi is not None and filtered.size:
        state = _state(zi, samples.shape, axis, order)
        filtered[..., :order] += state
    if a1 and filtered.size:
        _recur(filtered, -a1, client)
    results = np.moveaxis(filtered, -1, axis)
    if zi is None:
        return results
    if not filtered.size or not order:
        return results, np.array(zi, dtype=kind)
    after = b1 * rows[..., -1:] - (a1 if a1.imag else a1.real) * filtered[..., -1:]
    return results, np.moveaxis(after.astype(kind), -1, axis)


def _recur(rows: AnyArray, coefficient: complex, client: Optional[Client]) -> None:
    """Replaces rows by y[i] = coefficient y[i-1] + x[i]. With a coefficient r exp(i phi) z[i] = y[i] exp(-i phi i) is
    r z[i-1] + x[i] exp(-i phi i), a recurrence of pairs of numbers with a real coefficient."""
    if not coefficient.imag:
        scan(rows, op="affine", coefficient=coefficient.real, out=rows, client=client)
        return
    turns = _turns(rows.shape[-1], math.atan2(coefficient.imag, coefficient.real) / (2 * math.pi)).astype(rows.dtype)
    np.multiply(rows, turns.conj(), out=rows)
    scan(rows, op="affine", coefficient=abs(coefficient), out=rows, client=client)
    np.multiply(rows, turns, out=rows)


def _turns(count: int, turn: float) -> AnyArray:
    """exp(2 pi i turn k) for k from 0 on. Whole turns are taken off exactly, of up to 2^28 of them: so each is that of one
    coefficient, whose error does not grow with k."""
    numbers = np.arange(count, dtype=np.float64)
    coarse = round(turn * 2**26) / 2**26
    parts = np.mod(coarse * numbers, 1.0) + np.mod((turn - coarse) * numbers, 1.0)
    angles: AnyArray = 2j * np.pi * parts
    return np.exp(angles)


def _state(zi: AnyArray, shape: tuple[int, ...], axis: int, order: int) -> AnyArray:
    wanted = list(shape)
    wanted[axis] = order
    try:
        if zi.ndim == len(shape) and zi.shape[axis] != order:
            raise ValueError
        return np.moveaxis(np.broadcast_to(zi, wanted), axis, -1)
    except ValueError:
        raise ValueError(f"zi: its shape is {zi.shape}, that of the state {tuple(wanted)}") from None

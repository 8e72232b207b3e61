"""Jobs that are waited for at once and are like earlier ones: what a plan has found is used again, and a job takes a call
to submit it and one to wait."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np

from .client import Client
from .errors import LostError
from .files import file_place_of
from .layout import Order, Pattern
from .memory import AnyArray, Place, allocate, place_of
from .plans import Plan, Request, Scheme, finished, may_share

RECIPES_MOST = 256


class Recipe(NamedTuple):
    """A plan of one job, but for where its arrays lie."""

    scheme: Scheme
    pattern: Pattern


_recipes: dict[tuple[Any, ...], Recipe] = {}


class Ready(NamedTuple):
    """A request of which there is a recipe."""

    request: Request
    recipe: Recipe
    source: Optional[Place]  # None: the samples are copied to where the results will be
    target: Optional[Place]  # None: of results in new memory


def ready(request: Request) -> Optional[Ready]:
    """The recipe for a request; None where the request takes a plan."""
    x, out = request.x, request.out
    if type(x) is not np.ndarray or not request.is_plain():
        return None
    source, target = place_of(x), None
    if out is not None:
        target = place_of(out) if type(out) is np.ndarray else None
        if source is None or target is None or not may_share(x, source, out, target):
            return None  # also where something is copied to `out`
    elif source is None and (request.copy is False or file_place_of(x) is not None):
        return None
    try:
        recipe = _recipes.get(_key(request, x, source))
    except TypeError:
        return None  # a list of axes, for one
    return None if recipe is None else Ready(request, recipe, source, target)


def _key(request: Request, x: AnyArray, source: Optional[Place]) -> tuple[Any, ...]:
    """The key of a plan: all that it depends on, but for where arrays lie."""
    out = request.out
    own = request.settings, request.op, request.axis, request.dtype, request.form, request.keepdims
    given = source is None, x.dtype, x.shape, x.strides
    return (*own, *given) if out is None else (*own, *given, out.dtype, out.shape, out.strides, out.flags.writeable)


def learn(plan: Plan) -> None:
    """Remembers a plan of one job, which works on what the program gave and on its results alone."""
    request, x = plan.request, plan.request.x
    if len(plan.parts) != 1 or type(x) is not np.ndarray or not request.is_plain():
        return
    if plan.given.dtype != x.dtype:
        return  # it is converted first, to bool
    part, source = plan.parts[0], place_of(x)
    if part.copies_out or (part.copies_in is None) == (source is None):
        return
    if part.copies_in is not None and part.copies_in[0] is not plan.target:
        return  # it is staged elsewhere
    if len(_recipes) >= RECIPES_MOST:
        _recipes.clear()
    try:
        _recipes[_key(request, x, source)] = Recipe(plan.scheme, part.flight.order.pattern)
    except TypeError:
        pass


def run(client: Client, job: Ready) -> tuple[bool, Any]:
    """Runs a small job: returns True and the results, or False where the job was lost and can be repeated. Raises the
    job's other errors."""
    request, (scheme, pattern), source, target = job
    x: Any = request.x
    results = request.out
    if results is None or target is None:
        results, target = allocate(scheme.target_shape, scheme.dtypes.results)
    if source is None:
        np.copyto(results, x.reshape(results.shape), casting="unsafe")  # of another shape with axis None
        flight = client.run_now(Order(pattern, (target, target)), (results,), (), ())
    else:
        written = () if request.out is None else (results,)
        flight = client.run_now(Order(pattern, (source, target)), (x, results), (x,), written)
    if flight is not None:
        client.wait(flight, None)
        error = flight.error()
        if isinstance(error, LostError) and source is None:
            return False, None
        if error is not None:
            raise error
    return True, results if request.out is not None else finished(results, scheme, request.settings.reduces)

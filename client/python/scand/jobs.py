"""Jobs under way, with the methods of futures of concurrent.futures."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator, NamedTuple, Optional, Sequence

from ._library import lib
from .client import Client, Flight
from .plans import Part, Plan

if TYPE_CHECKING:
    import asyncio


class Callback(NamedTuple):
    function: Callable[[Job], object]
    loop: Optional[asyncio.AbstractEventLoop]  # in which it is called; None: in any thread


class Job:
    """A job that was submitted. It can also be awaited, in any event loop of asyncio.

    It has the methods of a future of concurrent.futures, but is none: asyncio.wait, gather and as_completed take it,
    concurrent.futures.wait and as_completed do not.

    The arrays that the job was given must be left alone until it is done, unless they were copied.
    """

    def __init__(self, client: Client, plan: Plan):
        self._client = client
        self._plan = plan
        self._lock = threading.Lock()  # held by the one thread that ends the job
        self._ended = False
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self._callbacks: list[Callback] = []
        self._cancelled = False

    def __repr__(self) -> str:
        if not self._ended:
            state = "done" if self.over else "running"
        elif self._error is None:
            state = "done"
        else:
            state = "cancelled" if self._cancelled else f"failed, {type(self._error).__name__}: {self._error}"
        return f"<scand.Job: {state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a job is this process's, and is not pickled: give others what its result() returns")

    def result(self, timeout: Optional[float] = None) -> Any:
        """The results, a NumPy array: `out` where one was given. Waits for at most `timeout` seconds, then raises
        TimeoutError, and the job goes on. Raises the job's error, or concurrent.futures.CancelledError."""
        self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """The error with which the job failed, or None. Waits as result() does."""
        self._wait(timeout)
        return self._error

    def done(self) -> bool:
        """True when result() would return at once."""
        if not self._ended and not self.over:
            self._client.look()
        return self._ended or self.over

    def running(self) -> bool:
        """True while the job waits for the daemon, or is computed."""
        return not self.done()

    def cancel(self) -> bool:
        """Asks the daemon to stop the job; returns False where it is done already. The output of a stopped job holds
        anything."""
        if self.done():
            return False
        for part in self._plan.parts:
            if not part.flight.over:
                self._client.cancel(part.flight)
        return True

    def cancelled(self) -> bool:
        """True when cancel() ended the job."""
        if not self.done():
            return False
        self._wait(None)
        return self._cancelled

    def add_done_callback(self, callback: Callable[[Job], object]) -> None:
        """Calls the function with the job when that is done: by the event loop that runs in this thread, or, where none
        does, at once or in a thread of the package."""
        added = Callback(callback, _running_loop())
        with self._lock:
            ended = self._ended
            if not ended:
                self._callbacks.append(added)
        if ended:
            _call(added, self)
        else:
            self._client.watcher.add(self)

    def remove_done_callback(self, callback: Callable[[Job], object]) -> int:
        """Forgets a function that was to be called, as often as it was added; returns how often that was."""
        with self._lock:
            before = len(self._callbacks)
            self._callbacks = [added for added in self._callbacks if added.function != callback]
            return before - len(self._callbacks)

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish(job: Job) -> None:
            if not ended.done():
                ended.set_result(None)

        self.add_done_callback(finish)
        try:
            yield from ended.__await__()
        except asyncio.CancelledError:
            self._client.watcher.cancel(self)
            raise
        return self.result()

    @property
    def over(self) -> bool:
        """True when all parts that were submitted have ended."""
        return all(part.flight.over for part in self._plan.parts)

    def _wait(self, timeout: Optional[float]) -> None:
        if self._ended:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        for part in self._plan.parts:
            if not self._client.wait(part.flight, deadline):
                raise TimeoutError(f"the job has not ended within {timeout:g} seconds: wait again, or cancel it")
            self._finish(part)
        self.end()

    def _finish(self, part: Part) -> None:
        """Copies results to where the program wants them, once, and while later parts are computed."""
        if part.copies_out:
            if part.flight.status == 0:
                for to, _ in part.copies_out:  # other jobs of the client may not be done with it
                    self._client.leave_alone(to, to_write=True)
            with self._lock:
                if part.copies_out and part.flight.status == 0:
                    part.after()
                part.copies_out = []

    def end(self) -> None:
        """All flights are over: makes of them what the job gives, once, and tells it. What fails on the way is the job's
        error, since nobody else may be there who waits for an end."""
        failure: Optional[BaseException] = None
        try:
            for part in self._plan.parts:
                self._finish(part)
        except Exception as error:
            failure = error
        with self._lock:
            if self._ended:
                return
            failed = [part.flight for part in self._plan.parts if part.flight.status]
            if failure is not None:
                self._error = failure
            elif not failed:
                try:
                    self._value = self._plan.result()
                except Exception as error:
                    self._error = error
            elif any(flight.status == lib.SCAND_CANCELLED for flight in failed):
                from concurrent.futures import CancelledError

                self._cancelled = True
                self._error = CancelledError("the job was cancelled")
            else:
                self._error = failed[0].error()
            self._ended = True
            callbacks, self._callbacks = self._callbacks, []
        stop: Optional[BaseException] = None
        for callback in callbacks:
            try:
                _call(callback, self)
            except BaseException as error:  # Ctrl-C, or sys.exit(), once all callbacks have been called
                stop = error
        if stop is not None:
            raise stop


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    if "asyncio" not in sys.modules:
        return None  # importing it takes a while, and without it there is no loop
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _call(callback: Callback, job: Job) -> None:
    if callback.loop is not None:
        try:
            callback.loop.call_soon_threadsafe(callback.function, job)
        except RuntimeError:
            pass  # the loop was closed, and nobody waits there
        return
    try:
        callback.function(job)
    except Exception:
        import logging

        logging.getLogger("scand").exception("a job's callback has failed")


def _copied_in(client: Client, plan: Plan) -> Iterator[Flight]:
    """The flights of a plan, each once what it reads has been copied."""
    if plan.reads_from is not None:
        client.leave_alone(plan.reads_from)
    for part in plan.parts:
        part.before()
        yield part.flight


def submit_plan(client: Client, plan: Plan) -> Job:
    """A plan's job. A part is computed while the next is copied."""
    job = Job(client, plan)
    for flight in _copied_in(client, plan):
        client.start(flight)
    return job


def submit_plans(client: Client, plans: Sequence[Plan]) -> list[Job]:
    """The jobs of plans, in their order and in few messages."""
    jobs = [Job(client, plan) for plan in plans]
    client.start_together([flight for plan in plans for flight in _copied_in(client, plan)])
    return jobs

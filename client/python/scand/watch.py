"""The threads of a client that do what an event loop must not wait for: one waits for jobs whose ends are to be told, to
callbacks and event loops; the other has jobs of cancelled tasks stopped."""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from typing import Callable, Optional, Protocol

from .errors import ScandError

IDLE_S = 5.0  # after which the thread ends
EXIT_S = 1.0  # for which the interpreter's end waits for it


class Watched(Protocol):
    """A job, as far as the thread knows it."""

    @property
    def over(self) -> bool: ...

    def end(self) -> None: ...

    def cancel(self) -> bool: ...


class Waiter(Protocol):
    """A client, which waits for ends of jobs."""

    def until(self, ready: Callable[[], bool], deadline: Optional[float]) -> bool: ...

    def nudge(self) -> None: ...


class Watcher:
    """Jobs are added by any thread. The thread begins with the first of them, and ends when there were none for a
    while, or the interpreter ends."""

    def __init__(self, client: Waiter):
        self._client = weakref.ref(client)
        self._lock = threading.Lock()  # had by itself: Ctrl-C where a condition begins would leave it taken
        self._added = threading.Condition(self._lock)
        self._jobs: list[Watched] = []
        self._thread: Optional[threading.Thread] = None
        self._cancels: list[Watched] = []
        self._canceller: Optional[threading.Thread] = None
        self._stopping = False
        _watchers.add(self)

    def add(self, job: Watched) -> None:
        with self._lock:
            self._jobs.append(job)
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="scand", daemon=True)
                self._thread.start()
            self._added.notify()
        client = self._client()
        if client is not None and job.over:
            client.nudge()  # the thread may wait for others, of which nothing is heard for long

    def cancel(self, job: Watched) -> None:
        """Has a job cancelled soon: a daemon that hangs takes its time to answer, and need not be told of a job that ends
        with its connection."""
        with self._lock:
            self._cancels.append(job)
            if self._canceller is None:
                self._canceller = threading.Thread(target=self._cancel_all, name="scand-cancel", daemon=True)
                self._canceller.start()

    def _cancel_all(self) -> None:
        while True:
            with self._lock:
                if not self._cancels:
                    self._canceller = None
                    return
                job = self._cancels.pop(0)
            try:
                job.cancel()
            except ScandError:
                pass

    def stop(self) -> None:
        thread, client = self._thread, self._client()
        with self._lock:
            self._stopping = True
            self._added.notify()
        if thread is not None and client is not None:
            client.nudge()
            thread.join(EXIT_S)

    def _run(self) -> None:
        while self._wait_for_jobs():
            client = self._client()
            if client is None:
                return
            client.until(self._has_ended, None)
            for job in list(self._jobs):
                if job.over and not self._stopping:
                    self._jobs.remove(job)
                    _end(job)

    def _has_ended(self) -> bool:
        return self._stopping or any(job.over for job in self._jobs)

    def _wait_for_jobs(self) -> bool:
        with self._lock:
            if not self._jobs and not self._stopping:
                self._added.wait(IDLE_S)
            if self._jobs and not self._stopping:
                return True
            self._thread = None
            return False


def _end(job: Watched) -> None:
    """Ends a job. A callback that ends the thread, as sys.exit() does, ends no other job's callbacks."""
    try:
        job.end()
    except BaseException:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


_watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()


def _stop_all() -> None:
    for watcher in list(_watchers):
        watcher.stop()


atexit.register(_stop_all)

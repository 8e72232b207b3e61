"""The client of this process, which all its threads share.

A client has a lock, for its list of jobs and its imported blocks. No thread holds the lock while waiting: one thread
polls the connection, so that signals reach Python's handlers, and tells the others when something has come.
"""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from typing import Any, Callable, Iterator, Optional, Sequence

import numpy as np

from ._ffi import ffi
from ._library import lib, string
from .connection import BUSY, SMALL_JOBS, Connection
from .errors import BusyError, ScandError, error_of
from .layout import Order
from .memory import AnyArray, place_of, range_of, retire_block_of, trim_blocks
from .watch import Watcher

FLIGHTS_MOST = 192  # at most, of the 256 jobs that the daemon takes of a connection
QUICK_MS = 2  # at most, and half of it at least, for which a thread waits for its job in libscand, before others have their turns
LOOK_S = 60.0  # between two looks at nothing in particular

# Statuses after which the daemon is done with the job's memory. After others it may still write there.
_SETTLED = frozenset((
    lib.SCAND_OK, lib.SCAND_INVALID, lib.SCAND_TOO_LARGE, lib.SCAND_NOT_FOUND, lib.SCAND_BUSY, lib.SCAND_QUOTA,
    lib.SCAND_NO_MEMORY, lib.SCAND_CANCELLED, lib.SCAND_DRAINING, lib.SCAND_DEVICE, lib.SCAND_LOST,
    lib.SCAND_UNSUPPORTED, lib.SCAND_DEADLINE, lib.SCAND_STALE,
))


class Flight:
    """A job under way. It keeps the arrays that it works on. `reads` and `writes` are arrays of the program, which it may
    give to other jobs, too. Flights of one group are parts of one whole, and do not meet."""

    __slots__ = (
        "order", "arrays", "reads", "writes", "group", "handle", "status", "message", "retry_at", "give_up_at", "cancelled",
    )

    def __init__(
        self, order: Order, arrays: Sequence[AnyArray], reads: Sequence[AnyArray] = (), writes: Sequence[AnyArray] = (),
        group: Optional[object] = None,
    ):
        self.order = order
        self.arrays = arrays
        self.reads = reads
        self.writes = writes
        self.group = group
        self.handle: Any = None  # libscand's job, while there is one
        self.status = -1  # enum scand_status once it is over
        self.message = ""
        self.retry_at = 0.0  # time at which it is submitted again; 0: it is not
        self.give_up_at = 0.0  # until when; 0 as long as nobody was busy
        self.cancelled = False

    @property
    def over(self) -> bool:
        return self.status >= 0

    def error(self) -> Optional[ScandError]:
        return None if self.status <= 0 else error_of(self.status, self.message)

    def end(self, status: int, message: str) -> None:
        if status not in _SETTLED:
            for array in self.arrays:
                retire_block_of(array)
        self.status, self.message, self.handle, self.retry_at = status, message, None, 0.0
        self.arrays = self.reads = self.writes = ()

    def must_follow(self, other: Flight) -> bool:
        """True when `other` has to be over first. The daemon runs jobs as if one after the other, but it may refuse
        `other` for now, and this job must not overtake it then."""
        if self.group is not None and self.group is other.group:
            return False
        return _meet(self.writes, (*other.reads, *other.writes)) or _meet(self.reads, other.writes)


def _meet(some: Sequence[AnyArray], others: Sequence[AnyArray]) -> bool:
    if not some or not others:
        return False
    ranges = [range_of(array) for array in others]
    return any(range_of(array).meets(ranges) for array in some)


def _without(lock: threading.Lock, function: Callable[..., object], *arguments: Any) -> None:
    """Calls a function while nobody needs to have the lock. This thread has it again afterwards, whatever handlers of signals
    raise meanwhile: else it would give back a lock that another thread has, or nobody."""
    held: list[bool] = []
    raised: Optional[BaseException] = None
    try:
        lock.release()
        function(*arguments)
    finally:
        while not held:
            try:
                # One call of C: a handler runs before the lock is had, or once that is noted.
                held.extend(map(lock.acquire, (True,)))
            except BaseException as error:
                raised = error
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # with the traceback it would be a cycle, which keeps the arrays of all callers


class Client:
    """A connection to the daemon, made when it is first used. Functions take it: scand.scan(x, client=client).

    `socket` is the daemon's, by default the one that libscand finds: $SCAND_SOCKET, else the user's own, else the
    machine's. Where none answers, jobs are computed in this process if $SCAND_FALLBACK is "cpu". `name` says who
    connects, for people who look at the daemon. A daemon that is busy is asked again for `patience_s` seconds; then
    BusyError is raised. A job that a daemon no longer takes, since it is about to stop, is the next daemon's; for as
    long it waits for that end, and 10 seconds for the next daemon; then UnavailableError is raised.

    `small_jobs` is "here" where scans and reductions of up to some 2,000 samples are computed in this process, on its
    processor and with the same bits, in less time than it takes to ask the daemon, which does not count them. They are
    the daemon's with "daemon"; and with None, unless $SCAND_SMALL_JOBS is "here".

    Any thread may use a client. A child of fork makes a connection of its own. A pickled client connects where it is
    unpickled.
    """

    def __init__(
        self,
        socket: Optional[str] = None,
        name: Optional[str] = None,
        *,
        patience_s: float = 60.0,
        small_jobs: Optional[str] = None,
    ):
        if not hasattr(patience_s, "__float__"):
            raise TypeError(f"patience_s: {patience_s!r} is no number of seconds")
        if not patience_s >= 0:
            raise ValueError(f"patience_s: {patience_s} is not a number of seconds from 0 on")
        if socket is not None and (not isinstance(socket, (str, bytes, os.PathLike)) or b"\0" in os.fsencode(socket)):
            raise TypeError(f"socket: {socket!r} is no path; take a text without null bytes")
        if name is not None and (not isinstance(name, str) or "\0" in name):
            raise TypeError(f"name: {name!r} is no name; take a text without null characters")
        if small_jobs not in SMALL_JOBS:
            raise ValueError(f'small_jobs: {small_jobs!r} is neither "here" nor "daemon", nor None')
        self.socket = socket
        self.name = name
        self.patience_s = patience_s
        self.small_jobs = small_jobs
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        self._connection: Optional[Connection] = None
        # Not a condition of threading's, which is Python: Ctrl-C where that begins would leave its lock taken.
        self._lock = threading.Lock()
        self._waiting: list[Any] = []  # a lock for each thread that waits for the one that polls
        self._flights: list[Flight] = []
        self._reading = False  # a thread polls; the others wait for that thread
        self._nudged = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.watcher = Watcher(self)

    def _after_fork(self) -> None:
        """Ends a child's flights: the connection is its parent's, whose jobs have no end here."""
        abandoned = self._flights
        os.close(self._wake)
        self._begin()
        for flight in abandoned:
            flight.end(lib.SCAND_FORKED, "")

    def __del__(self) -> None:
        if getattr(self, "_wake", -1) >= 0:
            self.close()
            os.close(self._wake)

    def __reduce__(self) -> tuple[Callable[..., Client], tuple[Any, ...]]:
        return _restore, (self.socket, self.name, self.patience_s, self.small_jobs)

    def __repr__(self) -> str:
        small_jobs = "" if self.small_jobs is None else f", small_jobs={self.small_jobs!r}"
        return f"scand.Client({self.socket!r}, {self.name!r}, patience_s={self.patience_s!r}{small_jobs})"

    @property
    def is_local(self) -> bool:
        """True when jobs are computed in this process, as SCAND_FALLBACK=cpu allows where no daemon answers."""
        with self._lock:
            return bool(lib.scand_is_local(self._connect().daemon))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self.socket, self.name, self.patience_s, self.small_jobs)
        return self._connection

    def close(self) -> None:
        """Ends the connection. Jobs under way end in UnavailableError; arrays stay. The next use connects again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            flights, self._flights = self._flights, []
            try:
                connection.close()
            finally:
                for flight in flights:
                    flight.end(lib.SCAND_UNAVAILABLE, "the client was closed before the job had ended: submit it again")
                self._nudge()
                self._notify()

    def server_name(self) -> str:
        """The daemon's name and version: "scand 0.1.0"."""
        with self._lock:
            return string(lib.scand_server_name(self._connect().daemon))

    def ping(self) -> float:
        """The time of a message to the daemon and back, in seconds."""
        took_us = ffi.new("uint64_t *")
        with self._lock:
            connection = self._connect()
            connection.check(connection.call(lib.scand_ping, connection.daemon, took_us))
            self._nudge()
        return float(took_us[0]) / 1e6

    def give_up_imports(self) -> None:
        """Gives up imports of memory that this process no longer has."""
        with self._lock:
            if self._connection is not None:
                self._connection.sweep()
                self._nudge()

    def create_on_device(self, size: int) -> tuple[Connection, Any, bool]:
        """A buffer of the connection, which keeps it as long as the connection lasts; see
        Connection.create_on_device."""
        with self._lock:
            give_up_at = time.monotonic() + self.patience_s
            while True:
                connection = self._connect()
                try:
                    buffer, is_shared = connection.create_on_device(size)
                    self._nudge()
                    return connection, buffer, is_shared
                except BusyError:
                    if time.monotonic() >= give_up_at:
                        raise
                    retry_at = time.monotonic() + connection.retry_s()
                    self._nudge()
                while (left_s := retry_at - time.monotonic()) > 0:
                    self._advance(left_s)  # jobs that end give memory back

    def export(self, connection: Connection, buffer: Any) -> tuple[int, int]:
        """A descriptor of a buffer's memory, and the bytes of that memory."""
        with self._lock:
            descriptor, size = connection.export(buffer)
            self._nudge()
            return descriptor, size

    # Submitting.

    def start(self, flight: Flight) -> None:
        """Submits a job, and raises what libscand finds wrong with it."""
        with self._lock:
            if self._flights:
                self._make_room(1)
                self._keep_order(flight)
            try:
                self._flights.append(flight)
                self._submit(flight)
            except BaseException as error:
                # Ctrl-C can come after libscand has sent the job: its memory is not used again then.
                self._forget((flight,))
                if not isinstance(error, ScandError):
                    flight.end(lib.SCAND_INTERRUPTED, "submitting it was interrupted")
                raise
            self._nudge()

    def run_now(
        self, order: Order, arrays: Sequence[AnyArray], reads: Sequence[AnyArray], writes: Sequence[AnyArray]
    ) -> Optional[Flight]:
        """Submits a job and waits for it a little: None where it has ended well, else the flight that it is."""
        with self._lock:
            if not self._flights and self._connection is not None:
                done, flight = self._run_alone(self._connection, order, arrays, reads, writes)
                if done:
                    self._nudge()
                    return flight
        flight = Flight(order, arrays, reads, writes)
        self.start(flight)
        return flight

    def _run_alone(
        self, connection: Connection, order: Order, arrays: Sequence[AnyArray], reads: Sequence[AnyArray], writes: Sequence[AnyArray]
    ) -> tuple[bool, Optional[Flight]]:
        """Submits with the lock held, and without other flights. False: nothing was submitted."""
        try:
            handle = connection.submit(order)
            if handle is None:
                return False, None  # the daemon is busy
            if not self._reading and lib.scand_wait(handle, QUICK_MS, ffi.NULL) == 0:
                lib.scand_job_release(handle)
                return True, None
            flight = Flight(order, arrays, reads, writes)
            flight.handle = handle
            self._flights.append(flight)
        except BaseException as error:
            # Ctrl-C can come after libscand has sent the job: its memory is not used again then.
            if not isinstance(error, ScandError):
                Flight(order, arrays).end(lib.SCAND_INTERRUPTED, "")
            raise
        self._settle()
        return True, flight

    def start_together(self, flights: Sequence[Flight]) -> None:
        """Submits scans in few messages. They end some 32 together. Scans that write to the program's arrays go one by one,
        since they may have to wait for each other."""
        if any(flight.writes for flight in flights):
            for flight in flights:
                self.start(flight)
            return
        with self._lock:
            for first in range(0, len(flights), FLIGHTS_MOST):
                some = flights[first : first + FLIGHTS_MOST]
                self._make_room(len(some))
                for flight in some:
                    self._keep_order(flight)
                try:
                    self._flights += some
                    self._submit_together(some)
                except BaseException:
                    failed = [flight for flight in some if flight.handle is None and not flight.retry_at and not flight.over]
                    self._forget(failed)
                    for flight in failed:
                        flight.end(lib.SCAND_INTERRUPTED, "submitting it failed, or was interrupted")
                    raise
            self._nudge()

    def _forget(self, flights: Sequence[Flight]) -> None:
        self._flights = [flight for flight in self._flights if flight not in flights]

    def _submit_together(self, flights: Sequence[Flight]) -> None:
        connection, left = self._connect(), flights
        while left:
            jobs = connection.submit_together([flight.order for flight in left])
            if jobs is None:
                for flight in left:
                    self._delay(flight, lib.SCAND_BUSY, string(lib.scand_message(connection.daemon)))
                return
            for flight, job in zip(left, jobs):
                flight.handle = job
            left = left[len(jobs) :]

    def leave_alone(self, array: AnyArray, to_write: bool = False) -> None:
        """Waits until no job writes to an array, nor reads one that is to be written."""
        with self._lock:
            while any(_meet((array,), (*flight.writes, *(flight.reads if to_write else ()))) for flight in self._flights):
                self._advance(LOOK_S)

    def _make_room(self, count: int) -> None:
        while len(self._flights) + count > FLIGHTS_MOST:
            self._advance(LOOK_S)

    def _keep_order(self, flight: Flight) -> None:
        while any(flight.must_follow(other) for other in self._flights):
            self._advance(LOOK_S)

    def _submit(self, flight: Flight) -> None:
        connection = self._connection or self._connect()
        flight.retry_at = 0.0
        flight.handle = connection.submit(flight.order)
        if flight.handle is None:
            self._delay(flight, lib.SCAND_BUSY, string(lib.scand_message(connection.daemon)))

    def _delay(self, flight: Flight, status: int, message: str) -> None:
        """The daemon is busy: the job is submitted again, or ends when patience does."""
        now = time.monotonic()
        flight.give_up_at = flight.give_up_at or now + self.patience_s
        flight.handle, flight.retry_at = None, min(now + self._connect().retry_s(), flight.give_up_at)
        if now >= flight.give_up_at:
            flight.end(status, f"{message} (asked for {self.patience_s:g} seconds: a client's patience_s)")

    # Waiting.

    def wait(self, flight: Flight, deadline: Optional[float]) -> bool:
        """Waits until the job is over, True, or until time.monotonic() is `deadline`, False."""
        if flight.over:
            return True
        if deadline is None:
            self._wait_quickly(flight)
        return flight.over or self.until(lambda: flight.over, deadline)

    def _wait_quickly(self, flight: Flight) -> None:
        """Small jobs are done before a thread could sleep and wake."""
        with self._lock:
            if not self._reading and flight.handle is not None:
                lib.scand_wait(flight.handle, QUICK_MS, ffi.NULL)
                self._settle()

    def until(self, ready: Callable[[], bool], deadline: Optional[float]) -> bool:
        """Waits until `ready`, which the ends of jobs or a nudge bring about, True, or until time.monotonic() is
        `deadline`, False."""
        with self._lock:
            while not ready():
                left_s = LOOK_S if deadline is None else deadline - time.monotonic()
                if left_s <= 0:
                    return False
                self._advance(left_s)
        return True

    def nudge(self) -> None:
        """Has threads that wait look again at what they wait for."""
        with self._lock:
            self._nudge()
            self._notify()

    def look(self) -> None:
        """Takes in what has arrived, without waiting."""
        with self._lock:
            if self._connection is not None and not self._reading:
                self._dispatch(self._connection)

    def cancel(self, flight: Flight) -> None:
        """Asks the daemon to stop a job."""
        with self._lock:
            flight.cancelled = True
            if flight.handle is not None:
                connection = self._connect()
                connection.check(connection.call(lib.scand_cancel, flight.handle))
            self._settle()
            self._nudge()
            self._notify()

    def _advance(self, timeout_s: float) -> None:
        """Waits until something changes, with the lock held."""
        if self._reading:
            told = threading.Lock()
            told.acquire()
            self._waiting.append(told)
            try:
                _without(self._lock, told.acquire, True, timeout_s)
            finally:
                if told in self._waiting:
                    self._waiting.remove(told)
            return
        connection = self._connect()
        timeout_s = min([timeout_s, LOOK_S, *self._retries_s()])
        self._reading = True
        try:
            _without(self._lock, _poll, (connection.descriptor, self._wake), timeout_s)
        finally:
            self._reading = False
            try:
                self._take_in(connection)
            finally:
                self._notify()

    def _notify(self) -> None:
        """Has threads that wait for the one that polls look again."""
        while self._waiting:
            self._waiting.pop().release()

    def _take_in(self, connection: Connection) -> None:
        if self._nudged:
            self._nudged = False
            os.eventfd_read(self._wake)
        if self._connection is connection:
            self._dispatch(connection)

    def _dispatch(self, connection: Connection) -> None:
        try:
            lib.scand_dispatch(connection.daemon)  # jobs have ended with the error that it reports
            self._settle()
        except BaseException:
            self._nudged = True  # the next one looks again: the descriptor is no longer readable
            os.eventfd_write(self._wake, 1)
            raise

    def _nudge(self) -> None:
        """After a call that may have taken in what the polling thread waits for, or changed what it looks at."""
        if self._reading and not self._nudged:
            self._nudged = True
            os.eventfd_write(self._wake, 1)

    def _retries_s(self) -> Iterator[float]:
        """The seconds until jobs are to be submitted again."""
        for flight in self._flights:
            if flight.retry_at:
                yield max(0.0, flight.retry_at - time.monotonic())

    def _settle(self) -> None:
        """Ends flights whose jobs have ended, and submits those again whose time has come; with the lock held."""
        for flight in self._flights:
            if flight.handle is not None and lib.scand_job_done(flight.handle):
                self._land(flight)
            elif flight.retry_at:
                self._try_again(flight)
        self._flights = [flight for flight in self._flights if not flight.over]

    def _land(self, flight: Flight) -> None:
        connection = self._connect()
        handle = flight.handle
        status = lib.scand_wait(handle, 0, ffi.NULL)
        message = string(lib.scand_message(connection.daemon)) if status else ""
        connection.losses += status == lib.SCAND_LOST
        if status in BUSY and not flight.cancelled:
            self._delay(flight, status, message)
        else:
            flight.end(status, message)
        lib.scand_job_release(handle)  # last: a flight that Ctrl-C leaves here is over, or has its handle

    def _try_again(self, flight: Flight) -> None:
        if flight.cancelled:
            flight.end(lib.SCAND_CANCELLED, "the job was cancelled")
        elif time.monotonic() >= flight.retry_at:
            try:
                self._submit(flight)
            except ScandError as error:
                flight.end(getattr(lib, f"SCAND_{error.status.upper()}", lib.SCAND_INTERNAL), str(error))
            except BaseException:
                flight.end(lib.SCAND_INTERRUPTED, "submitting it again was interrupted")
                raise


def _poll(descriptors: tuple[int, ...], timeout_s: float) -> None:
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    poller.poll(timeout_s * 1000)


def _restore(
    socket: Optional[str], name: Optional[str], patience_s: float, small_jobs: Optional[str] = None
) -> Client:
    return Client(socket, name, patience_s=patience_s, small_jobs=small_jobs)


_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_default: Optional[Client] = None
_default_lock = threading.Lock()


def _after_fork() -> None:
    global _default_lock
    _default_lock = threading.Lock()
    for client in list(_clients):
        client._after_fork()


os.register_at_fork(after_in_child=_after_fork)


def wait_for_writers(*arrays: object) -> None:
    """Before this process reads arrays of the program's, or lists of such: jobs may be about to write them."""
    for array in arrays:
        if isinstance(array, (list, tuple)):
            if array and isinstance(array[0], (np.ndarray, list, tuple)):
                wait_for_writers(*array)
        elif isinstance(array, np.ndarray) and array.size and place_of(array) is not None:
            for client in list(_clients):
                client.leave_alone(array)


def trim() -> None:
    """Gives back all memory that no array uses, instead of keeping some for the next arrays."""
    trim_blocks()
    for client in list(_clients):
        client.give_up_imports()


def default_client() -> Client:
    """The client of this process that functions use when they are given none."""
    global _default
    if _default is None:
        with _default_lock:
            _default = _default or Client()
    return _default

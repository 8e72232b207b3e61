"""A connection of libscand's, as one thread at a time uses it: connecting, imported blocks, orders as structs."""

from __future__ import annotations

import collections
import os
from typing import Any, Callable, Mapping, Optional, Sequence

from ._ffi import ffi
from ._library import lib, string
from .chains import check_task, new_task
from .errors import BusyError, ForbiddenError, ScandError, error_of
from .layout import Order, Pattern, Tensor
from .memory import Importable, Place, drops

IMPORTS_MOST = 192  # at most, of the 256 buffers that the daemon takes of a connection,
BUFFERS_MOST = 248  # with those that the connection has made
PATTERNS_MOST = 256  # patterns of jobs that are remembered
DRAIN_MOST_S = 86400  # at most, for which libscand keeps a job that a stopping daemon has refused
RETRY_S = 0.01  # after which a busy daemon is asked again, where it does not say
BUSY = frozenset((lib.SCAND_BUSY, lib.SCAND_QUOTA))


class _Described:
    """A pattern as libscand takes it, and its tensors, of which the places change from order to order."""

    __slots__ = ("job", "tensors", "places", "imports")

    def __init__(self, job: Any, tensors: list[Any]):
        self.job = job  # struct scand_scan, scand_reduce or scand_task
        self.tensors = tensors
        self.places: tuple[Place, ...] = ()  # places of the operands,
        self.imports = -1  # number of imports that had been given up


def _describe(pattern: Pattern) -> _Described:
    settings = pattern.settings
    if settings.steps:
        tensors = [ffi.new("struct scand_tensor *") for _ in pattern.tensors]
        described = _Described(_new_task(pattern, {}), tensors)
    else:
        struct = ffi.new("struct scand_reduce *" if settings.reduces else "struct scand_scan *")
        struct.axis = pattern.axis
        if not settings.reduces:
            struct.pass_count = len(settings.passes)
            struct.passes = settings.passes
        for name, value in settings.members:
            setattr(struct, name, value)
        described = _Described(struct, [getattr(struct, tensor.name) for tensor in pattern.tensors])
    for tensor, form in zip(described.tensors, pattern.tensors):
        _set_form(tensor, form)
    return described


def _new_task(pattern: Pattern, operands: Mapping[tuple[int, str], Any]) -> Any:
    task = new_task(pattern.settings.steps, operands)
    status = lib.scand_task_axis(task, pattern.axis)
    for name, word in pattern.settings.options:
        status = lib.scand_task_option(task, name.encode(), word.encode())
    check_task(task, status)
    return task


def _set_tensors(task: Any, tensors: Sequence[Any]) -> None:
    """Gives a task its input and output, and the offsets of ragged rows, if any."""
    lib.scand_task_input(task, tensors[0])
    lib.scand_task_output(task, tensors[1])
    for offsets in tensors[2:]:
        lib.scand_task_offsets(task, offsets)


def _set_form(tensor: Any, form: Tensor) -> None:
    tensor.dtype, tensor.rank, tensor.shape, tensor.strides = form.dtype, len(form.shape), form.shape, form.strides


SMALL_JOBS = {
    None: lib.SCAND_SMALL_JOBS_DEFAULT,
    "daemon": lib.SCAND_SMALL_JOBS_DAEMON,
    "here": lib.SCAND_SMALL_JOBS_HERE,
}


def _connected(socket: Optional[str], name: Optional[str], patience_s: float, small_jobs: int) -> Any:
    options, out = ffi.new("struct scand_options **"), ffi.new("struct scand **")
    status = lib.scand_options_create(options)
    if not status:
        status = (
            lib.scand_options_set(options[0], b"small_jobs", small_jobs)
            or lib.scand_options_set(options[0], b"drain_ms", int(min(patience_s, DRAIN_MOST_S) * 1000))
            or lib.scand_connect_with(
                options[0],
                ffi.NULL if socket is None else os.fsencode(socket),
                ffi.NULL if name is None else name.encode(errors="replace"),
                out,
            )
        )
        lib.scand_options_destroy(options[0])
    if status:
        error = error_of(status, string(lib.scand_connect_message()))
        never = status == lib.SCAND_QUOTA and not lib.scand_retry_ms(ffi.NULL)
        raise ForbiddenError(str(error), error.status) if never else error
    return out[0]


def _blocks_of(order: Order) -> set[int]:
    """Serials of the memory that an order's job works on."""
    return {place.block.serial for place in (*order.places, *(place for _, _, place in order.operands))}


class Connection:
    """Raises ScandError where libscand reports a failure."""

    def __init__(self, socket: Optional[str], name: Optional[str], patience_s: float, small_jobs: Optional[str] = None):
        self.daemon = _connected(socket, name, patience_s, SMALL_JOBS[small_jobs])
        self.descriptor: int = lib.scand_fd(self.daemon)  # readable when there is something to take in
        self.is_closed = False
        self.made = 0  # buffers, but imports
        self.losses = 0  # with a worker of the daemon's its buffers are lost, and jobs under way
        # Buffers and what they were made of, by serials, latest used last.
        self._imports: collections.OrderedDict[int, tuple[Any, Importable]] = collections.OrderedDict()
        self._drops = drops()
        self._given_up = 0  # imports
        self._unsent: list[Order] = []  # orders that are being placed: their imports stay
        self._patterns: dict[Pattern, _Described] = {}
        self._out = ffi.new("struct scand_job **")

    def close(self) -> None:
        self.is_closed = True
        lib.scand_disconnect(self.daemon)

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """A function of libscand's, until no signal has ended it: Python's handlers run in between, and may raise."""
        while (status := function(*arguments)) == lib.SCAND_INTERRUPTED:
            pass
        return status

    def error(self, status: int) -> ScandError:
        self.losses += status == lib.SCAND_LOST
        return error_of(status, string(lib.scand_message(self.daemon)))

    def check(self, status: int) -> None:
        if status:
            raise self.error(status)

    def retry_s(self) -> float:
        return (lib.scand_retry_ms(self.daemon) or RETRY_S * 1000) / 1000

    def submit(self, order: Order) -> Any:
        """The job of libscand's; None where the daemon is busy."""
        self._unsent = [order]
        try:
            described = self._placed(order)
            job, tensors = described.job, described.tensors
            if order.operands:  # steps keep those that they have been given
                job = _new_task(order.pattern, self._operands(order))
        except BusyError:
            return None
        settings = order.pattern.settings
        if settings.steps:
            _set_tensors(job, tensors)
            status = self.call(lib.scand_task_submit, self.daemon, job, ffi.NULL, ffi.NULL, self._out)
        elif settings.reduces:
            status = self.call(lib.scand_submit_reduce, self.daemon, job, ffi.NULL, ffi.NULL, self._out)
        else:
            status = self.call(lib.scand_submit, self.daemon, job, self._out)
        if status == 0:
            return self._out[0]
        if status in BUSY:
            return None
        raise self.error(status)

    def submit_together(self, orders: Sequence[Order]) -> Optional[list[Any]]:
        """Submits scans, or chains of steps, in few messages: the first of them, one or more, whose memory can be imported at
        the same time. Returns their jobs; None where the daemon is busy."""
        steps = orders[0].pattern.settings.steps
        described: Any = [None] * len(orders) if steps else ffi.new("struct scand_scan[]", len(orders))
        count = self._place_together(orders, described)
        if not count:
            return None
        jobs = ffi.new("struct scand_job *[]", count)
        if steps:
            tasks = ffi.new("struct scand_task *[]", described[:count])
            status = self.call(lib.scand_task_submit_many, self.daemon, tasks, count, jobs)
        else:
            status = self.call(lib.scand_submit_many, self.daemon, described, count, jobs)
        if status in BUSY:
            return None
        self.check(status)
        return list(jobs)

    def _place_together(self, orders: Sequence[Order], described: Any) -> int:
        """Describes the first orders as libscand takes them, each by itself; returns how many: 0 where the daemon is busy."""
        blocks: set[int] = set()
        most, self._unsent = self._imports_most(), []
        for at, order in enumerate(orders):
            for place in order.places:
                blocks.add(place.block.serial)
            if order.operands:
                blocks |= _blocks_of(order)
            if at and len(blocks) > most:
                return at
            self._unsent.append(order)
            try:
                described[at] = self._task(order) if order.pattern.settings.steps else self._placed(order).job[0]
            except BusyError:
                return at  # those that have room need not wait for it
        return len(orders)

    def _task(self, order: Order) -> Any:
        """A task of the order's own."""
        tensors = self._placed(order).tensors
        task = _new_task(order.pattern, self._operands(order))
        _set_tensors(task, tensors)
        return task

    def _placed(self, order: Order) -> _Described:
        """The order as libscand takes it, in memory that the next order of this pattern has, too."""
        described = self._patterns.get(order.pattern)
        if described is None:
            if len(self._patterns) >= PATTERNS_MOST:
                self._patterns.clear()
            described = self._patterns[order.pattern] = _describe(order.pattern)
        if order.places != described.places or described.imports != self._given_up or self._drops != drops():
            described.places = ()  # where placing fails halfway, they are nobody's
            for tensor, place in zip(described.tensors, order.places):
                tensor.buffer = self._buffer(place.block)
                tensor.offset = place.offset
            described.places, described.imports = order.places, self._given_up
        return described

    def _operands(self, order: Order) -> dict[tuple[int, str], Any]:
        tensors = {}
        for step, form, place in order.operands:
            tensor = tensors[step, form.name] = ffi.new("struct scand_tensor *")
            _set_form(tensor, form)
            tensor.buffer, tensor.offset = self._buffer(place.block), place.offset
        return tensors

    def _buffer(self, block: Importable) -> Any:
        if self._drops != drops():
            self.sweep()
        imported = self._imports.get(block.serial)
        if imported is None:
            return self._import(block)
        self._imports.move_to_end(block.serial)
        return imported[0]

    def _import(self, block: Importable) -> Any:
        self._make_room()
        buffer = self._made(block.import_to, importing=True)
        self._imports[block.serial] = buffer, block
        return buffer

    def _made(self, function: Callable[..., int], *arguments: Any, allowed: int = 0, importing: bool = False) -> Any:
        """The buffer that a function of libscand's makes; None with the status `allowed`. Room for an import is made of
        others, which can be imported again. Where the daemon has none, BusyError says so at once: who waits for some must
        not have the client's lock."""
        out = ffi.new("struct scand_buffer **")
        while (status := self.call(function, self.daemon, *arguments, out)) in BUSY:
            never = status == lib.SCAND_QUOTA and not lib.scand_retry_ms(self.daemon)
            if never or not (importing and status == lib.SCAND_QUOTA and self._give_up_one()):
                raise self._refusal(status, never)
        if status and status == allowed:
            return None
        self.check(status)
        return out[0]

    def _refusal(self, status: int, never: bool) -> ScandError:
        """The exception of a daemon that has no room, perhaps never. Who raises it gives it no local name: a traceback, the
        frame that it begins with and the name there would be a cycle, in which the frames of all callers keep arrays."""
        error = self.error(status)
        return ForbiddenError(str(error), error.status) if never else error

    def _make_room(self) -> None:
        """Makes room for another buffer, by giving up the imports that were not used for longest."""
        while len(self._imports) >= self._imports_most() and self._give_up_one():
            pass

    def _imports_most(self) -> int:
        return min(IMPORTS_MOST, BUFFERS_MOST - self.made)

    def _give_up_one(self) -> bool:
        """Gives up the import that was not used for longest; False where orders that are not sent yet need all."""
        needed = {serial for order in self._unsent for serial in _blocks_of(order)}
        serial = next((serial for serial in self._imports if serial not in needed), None)
        if serial is not None:
            self._give_up(serial)
        return serial is not None

    def create_on_device(self, size: int) -> tuple[Any, bool]:
        """A buffer in a device's memory, and whether other programs can be given that: a GPU's, but no processor's.
        BusyError: there is no room now."""
        self._unsent = []
        self._make_room()
        buffer = self._made(
            lib.scand_buffer_create_shared, lib.SCAND_SHARING_DESCRIPTOR, size, allowed=lib.SCAND_UNSUPPORTED
        )
        is_shared = buffer is not None
        if not is_shared:
            buffer = self._made(lib.scand_buffer_create, lib.SCAND_PLACE_DEVICE, size)
        self.made += 1
        return buffer, is_shared

    def export(self, buffer: Any) -> tuple[int, int]:
        """A new descriptor of the buffer's memory, and the bytes of that."""
        out = ffi.new("struct scand_export *")
        self.check(self.call(lib.scand_buffer_export, buffer, out))
        return int(out.fd), int(out.allocation_bytes)

    def sweep(self) -> None:
        """Gives up blocks that this process no longer has."""
        self._drops = drops()
        for serial in [serial for serial, (_, block) in self._imports.items() if block.is_gone]:
            self._give_up(serial)

    def _give_up(self, serial: int) -> None:
        self._given_up += 1
        buffer, block = self._imports.pop(serial)
        block.give_up(buffer)

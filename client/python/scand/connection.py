"""A connection of libscand's, as one thread at a time uses it: connecting, imported blocks, orders as structs."""

from __future__ import annotations

import collections
import os
import time
from typing import Any, Callable, Optional, Sequence

from ._ffi import ffi
from ._library import lib, string
from .errors import ScandError, error_of
from .layout import Order, Pattern
from .memory import Block, pool

IMPORTS_MOST = 192  # of the 256 buffers that the daemon takes of a connection
STRUCTS_MOST = 256  # patterns of jobs that are remembered
RETRY_S = 0.01  # after which a busy daemon is asked again, where it does not say
BUSY = frozenset((lib.SCAND_BUSY, lib.SCAND_QUOTA))


def _new_struct(pattern: Pattern) -> Any:
    settings = pattern.settings
    struct = ffi.new("struct scand_reduce *" if settings.reduces else "struct scand_scan *")
    struct.axis = pattern.axis
    if not settings.reduces:
        struct.pass_count = len(settings.passes)
        struct.passes = settings.passes
    for name, value in settings.members:
        setattr(struct, name, value)
    for name, dtype, shape, strides in pattern.tensors:
        tensor = getattr(struct, name)
        tensor.dtype, tensor.rank, tensor.shape, tensor.strides = dtype, len(shape), shape, strides
    return struct


class Connection:
    """Raises ScandError where libscand reports a failure."""

    def __init__(self, socket: Optional[str], name: Optional[str], patience_s: float):
        out = ffi.new("struct scand **")
        status = lib.scand_connect(
            ffi.NULL if socket is None else os.fsencode(socket), ffi.NULL if name is None else name.encode(), out
        )
        if status:
            raise error_of(status, string(lib.scand_connect_message()))
        self.daemon = out[0]
        self.descriptor: int = lib.scand_fd(self.daemon)  # readable when there is something to take in
        self._patience_s = patience_s
        self._imports: collections.OrderedDict[int, Any] = collections.OrderedDict()  # by serials, latest used last
        self._drops = pool.drops
        self._structs: dict[Pattern, tuple[Any, list[Any]]] = {}
        self._out = ffi.new("struct scand_job **")

    def close(self) -> None:
        lib.scand_disconnect(self.daemon)

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """A function of libscand's, until no signal has ended it: Python's handlers run in between, and may raise."""
        while (status := function(*arguments)) == lib.SCAND_INTERRUPTED:
            pass
        return status

    def error(self, status: int) -> ScandError:
        return error_of(status, string(lib.scand_message(self.daemon)))

    def check(self, status: int) -> None:
        if status:
            raise self.error(status)

    def retry_s(self) -> float:
        return (lib.scand_retry_ms(self.daemon) or RETRY_S * 1000) / 1000

    def submit(self, order: Order) -> Any:
        """The job of libscand's; None where the daemon is busy."""
        struct = self._struct(order)
        if order.pattern.settings.reduces:
            status = self.call(lib.scand_submit_reduce, self.daemon, struct, ffi.NULL, ffi.NULL, self._out)
        else:
            status = self.call(lib.scand_submit, self.daemon, struct, self._out)
        if status == 0:
            return self._out[0]
        if status in BUSY:
            return None
        raise self.error(status)

    def submit_together(self, orders: Sequence[Order]) -> Optional[list[Any]]:
        """Scans, in few messages; None where the daemon is busy."""
        scans = ffi.new("struct scand_scan[]", len(orders))
        for at, order in enumerate(orders):
            scans[at] = self._struct(order)[0]
        jobs = ffi.new("struct scand_job *[]", len(orders))
        status = self.call(lib.scand_submit_many, self.daemon, scans, len(orders), jobs)
        if status in BUSY:
            return None
        self.check(status)
        return list(jobs)

    def _struct(self, order: Order) -> Any:
        """The order as libscand takes it, in memory that the next order of this pattern has, too."""
        pattern = order.pattern
        known = self._structs.get(pattern)
        if known is None:
            if len(self._structs) >= STRUCTS_MOST:
                self._structs.clear()
            struct = _new_struct(pattern)
            known = self._structs[pattern] = struct, [getattr(struct, tensor.name) for tensor in pattern.tensors]
        for tensor, place in zip(known[1], order.places):
            tensor.buffer = self._buffer(place.block)
            tensor.offset = place.offset
        return known[0]

    def _buffer(self, block: Block) -> Any:
        if self._drops != pool.drops:
            self._sweep()
        buffer = self._imports.get(block.serial)
        if buffer is None:
            return self._import(block)
        self._imports.move_to_end(block.serial)
        return buffer

    def _import(self, block: Block) -> Any:
        if len(self._imports) >= IMPORTS_MOST:
            lib.scand_buffer_release(self._imports.popitem(last=False)[1])
        out = ffi.new("struct scand_buffer **")
        give_up_at = time.monotonic() + self._patience_s
        arguments = self.daemon, block.descriptor, block.size, out
        while (status := self.call(lib.scand_buffer_import, *arguments)) in BUSY:
            if time.monotonic() >= give_up_at:
                break
            time.sleep(self.retry_s())
        self.check(status)
        self._imports[block.serial] = out[0]
        return out[0]

    def _sweep(self) -> None:
        """Gives up blocks that this process no longer has."""
        self._drops = pool.drops
        there = {block.serial for block in pool.blocks()}
        for serial in [serial for serial in self._imports if serial not in there]:
            lib.scand_buffer_release(self._imports.pop(serial))

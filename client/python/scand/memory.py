"""Memory that the daemon sees: blocks of this process, each a memfd, out of which arrays are made.

A block is imported by each connection once, when a job first uses it. Arrays hold their block, so they live as long as
anybody has them, whatever becomes of clients, connections and the daemon.
"""

from __future__ import annotations

import bisect
import collections
import mmap
import os
import threading
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._ffi import ffi

AnyArray = NDArray[Any]

LINE_BYTES = 64  # arrays begin at multiples: no two share a cache line
PAGE_BYTES = mmap.PAGESIZE
SMALL_BLOCK_BYTES = 1 << 20  # the first block for small arrays; the next ones are as large as all before
LARGE_BYTES = 16 << 20  # from here on an array begins a block of its own, or takes one that was given back
KEPT_BYTES = 1 << 30  # of blocks that nobody uses, kept for the next arrays
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14


class Block:
    """A memfd and its mapping. `free` are its unused spans, in order: pairs of offset and size."""

    __slots__ = ("descriptor", "serial", "memory", "address", "size", "used", "free", "retired", "large")

    def __init__(self, size: int, large: bool, serial: int):
        self.descriptor = -1
        self.serial = serial
        self.descriptor = os.memfd_create("scand", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.address = int(ffi.cast("uintptr_t", ffi.from_buffer(self.memory)))
        self.size = size
        self.used = 0
        self.free = [(0, size)]
        self.retired = False
        self.large = large
        if large:
            self._populate()

    def _populate(self) -> None:
        """Has the kernel make all pages in one call, which takes less than a fault for each."""
        try:
            self.memory.madvise(POPULATE_WRITE)
        except OSError:
            pass  # an older kernel makes them when they are touched

    def take(self, size: int) -> int:
        """The offset of a span of this size, from the smallest that has room; -1 where there is none."""
        fitting = [(span[1], at) for at, span in enumerate(self.free) if span[1] >= size]
        if not fitting:
            return -1
        room, at = min(fitting)
        offset = self.free[at][0]
        if room == size:
            del self.free[at]
        else:
            self.free[at] = (offset + size, room - size)
        self.used += size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        self.used -= size
        if self.retired:
            return
        at = bisect.bisect(self.free, (offset, 0))
        if at < len(self.free) and self.free[at][0] == offset + size:
            size += self.free.pop(at)[1]
        if at > 0 and sum(self.free[at - 1]) == offset:
            at -= 1
            offset, before = self.free.pop(at)
            size += before
        self.free.insert(at, (offset, size))

    def retire(self) -> None:
        """Makes no more arrays here: the memory goes with the last that there is."""
        self.retired = True
        self.free = []

    def __del__(self, close: Any = os.close) -> None:
        if self.descriptor >= 0:
            close(self.descriptor)


class Region:
    """Bytes of a block, which go back to it with the last array over them."""

    __slots__ = ("block", "offset", "size", "__array_interface__", "__weakref__")

    def __init__(self, block: Block, offset: int, size: int):
        self.block = block
        self.offset = offset
        self.size = size

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """A C-ordered array over the region's beginning."""
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str, "data": (self.block.address + self.offset, False),
        }
        return np.asarray(self)

    def __del__(self) -> None:
        give_back = _give_back
        if give_back is not None:  # None while the interpreter ends
            give_back(self.block, self.offset, self.size)


class Pool:
    """The blocks of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: list[Block] = []  # by address
        self._addresses: list[int] = []
        self._serial = 0
        # What was given back while somebody had the lock, perhaps this thread, whose memory the collector tidied.
        self._returned: collections.deque[tuple[Block, int, int]] = collections.deque()
        self.drops = 0  # blocks that are gone: clients look whether they had imported them

    def take(self, size: int) -> Region:
        size = max(LINE_BYTES, -(-size // LINE_BYTES) * LINE_BYTES)
        with self._lock:
            self._collect()
            large = size >= LARGE_BYTES
            for block in self._blocks:
                if block.large == large and (offset := block.take(size)) >= 0:
                    return Region(block, offset, size)
            block = self._add(size, large)
            return Region(block, block.take(size), size)

    def _add(self, size: int, large: bool) -> Block:
        small_bytes = sum(block.size for block in self._blocks if not block.large)
        room = size if large else max(size, SMALL_BLOCK_BYTES, min(small_bytes, 4 * LARGE_BYTES))
        self._serial += 1
        try:
            block = Block(-(-room // PAGE_BYTES) * PAGE_BYTES, large, self._serial)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"no {size} bytes of shared memory: {error}; free arrays, or take smaller ones") from error
        at = bisect.bisect(self._addresses, block.address)
        self._blocks.insert(at, block)
        self._addresses.insert(at, block.address)
        return block

    def find(self, address: int) -> Block | None:
        """The block that has this byte."""
        with self._lock:
            at = bisect.bisect(self._addresses, address) - 1
            if at < 0:
                return None
            block = self._blocks[at]
        return block if address < block.address + block.size else None

    def give_back(self, block: Block, offset: int, size: int) -> None:
        self._returned.append((block, offset, size))
        if self._lock.acquire(blocking=False):  # else it is collected by whoever has the lock, or the next
            try:
                self._collect()
            finally:
                self._lock.release()

    def _collect(self) -> None:
        while self._returned:
            block, offset, size = self._returned.popleft()
            block.give_back(offset, size)
            if block.used == 0 and block.retired:
                self._drop(block)
            elif block.used == 0:
                self._trim(KEPT_BYTES)

    def _drop(self, block: Block) -> None:
        at = self._blocks.index(block)
        del self._blocks[at], self._addresses[at]
        self.drops += 1

    def _trim(self, kept: int) -> None:
        """Drops unused blocks, the largest first, until no more than so many bytes of them are kept."""
        unused = sorted((block for block in self._blocks if block.used == 0), key=lambda block: block.size)
        total = sum(block.size for block in unused)
        while total > kept:
            block = unused.pop()
            total -= block.size
            self._drop(block)

    def retire(self, block: Block) -> None:
        with self._lock:
            block.retire()

    def trim(self) -> None:
        with self._lock:
            self._collect()
            self._trim(0)

    def serials(self) -> set[int]:
        """Of all blocks that there are."""
        with self._lock:
            return {block.serial for block in self._blocks}

    def after_fork(self) -> None:
        """In a child: its parent goes on making arrays in these blocks, so the child makes none there."""
        self._lock = threading.Lock()
        for block in list(self._blocks):
            block.retire()
            if block.used == 0:
                self._drop(block)


pool = Pool()
_give_back = pool.give_back
os.register_at_fork(after_in_child=pool.after_fork)


def address_of(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def block_of(array: AnyArray) -> Block | None:
    """The block in which an array lies; None for ordinary memory."""
    return pool.find(address_of(array))


def retire_block_of(array: AnyArray) -> None:
    """Where the daemon may still write to the array: nobody else gets memory of its block any more."""
    block = block_of(array)
    if block is not None:
        pool.retire(block)


class Span(NamedTuple):
    """Bytes of this process's memory: from `begin` to before `end`."""

    begin: int
    end: int

    def meets(self, others: Sequence[Span]) -> bool:
        return any(self.begin < other.end and other.begin < self.end for other in others)


def span_of(array: AnyArray) -> Span:
    """From the first byte of an array that is not empty to behind the last."""
    begin = end = address_of(array)
    for extent, step in zip(array.shape, array.strides):
        reach = (extent - 1) * step
        begin, end = (begin + reach, end) if reach < 0 else (begin, end + reach)
    return Span(begin, end + array.itemsize)


def empty(shape: Union[int, Sequence[int]], dtype: DTypeLike = float) -> AnyArray:
    """A C-ordered array in shared memory, whose content is arbitrary, as numpy.empty makes it.

    Jobs read and write it where it lies. It outlives clients and the daemon. Children of fork share its content with
    their parent.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"dtype: {kind} holds references, which cannot be shared; take a dtype of numbers")
    dimensions = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    size = kind.itemsize
    for extent in dimensions:
        if extent < 0:
            raise ValueError(f"shape: {dimensions} has a negative dimension")
        size *= int(extent)
    made = pool.take(size).array(dimensions, kind)
    return made.view(kind) if kind.names else made


def is_shared(array: object) -> bool:
    """Whether jobs work on this array where it lies, without a copy."""
    return isinstance(array, np.ndarray) and block_of(array) is not None


def asarray(array: ArrayLike, dtype: Optional[DTypeLike] = None) -> AnyArray:
    """The array itself where it is shared and of this dtype, else a shared copy, C-ordered."""
    given = np.asarray(array)
    kind = given.dtype if dtype is None else np.dtype(dtype)
    if given.dtype == kind and is_shared(given):
        return given
    shared = empty(given.shape, kind)
    np.copyto(shared, given, casting="unsafe")
    return shared


def trim() -> None:
    """Gives all memory back that no array uses, instead of keeping some for the next ones."""
    pool.trim()

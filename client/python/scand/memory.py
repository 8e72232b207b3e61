"""Memory that the daemon sees: blocks of this process, each a memfd, out of which arrays are made.

A block is imported by each connection once, when a job first uses it. Arrays hold their block, so they live as long as
anybody has them, whatever becomes of clients, connections and the daemon. Other modules add memory of other kinds.
"""

from __future__ import annotations

import bisect
import collections
import errno
import itertools
import math
import mmap
import operator
import os
import threading
from typing import Any, NamedTuple, Optional, Protocol, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._ffi import ffi
from ._library import lib

AnyArray = NDArray[Any]

LINE_BYTES = 64  # arrays begin at multiples: no two share a cache line
PAGE_BYTES = mmap.PAGESIZE
SMALL_BLOCK_BYTES = 1 << 20  # the first block for small arrays; the next ones are as large as all before
LARGE_BYTES = 16 << 20  # from here on an array begins a block of its own, or takes one that was given back
KEPT_BYTES = 1 << 30  # blocks that nobody uses, kept for the next arrays
POPULATED_BYTES = 256 << 20  # made by one call
BINNED_BYTES = 64 << 10  # up to here, spans wait in bins for their like,
BINNED_MOST = 8  # so many in each
BINS_MOST = 64
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14

_ADDRESS = ffi.typeof("uintptr_t")
_address = operator.attrgetter("address")


class Importable(Protocol):
    """Memory of which a connection makes one buffer, when a job first uses it."""

    serial: int  # number from new_serial()
    address: int
    size: int

    @property
    def is_gone(self) -> bool:
        """True when no array has the memory any more, nor ever will: connections give it up."""

    def import_to(self, daemon: Any, out: Any) -> int:
        """Calls the function of libscand's that makes a buffer of it."""

    def give_up(self, buffer: Any) -> None:
        """The connection needs the buffer no more."""

    def retire(self) -> None:
        """The daemon may still write there: nobody else gets this memory."""


class Elsewhere:
    """An array that this process cannot read: it is in a device's memory. It has NumPy's names of what is told of arrays."""

    base = None
    client: Any = None  # client that functions use when they are given none
    place: Place
    address: int  # of the first element, in a space of the device's own
    itemsize: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def like(self, shape: tuple[int, ...], dtype: np.dtype[Any], client: Any) -> Elsewhere:
        """A new C-ordered array in such memory."""
        raise NotImplementedError

    def repeated(self, shape: tuple[int, ...]) -> Elsewhere:
        """A view of this shape, as np.broadcast_to() makes it."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Waits for what the program itself does with the memory."""


class Holder(Protocol):
    """An owner of memory that arrays may have."""

    @property
    def drops(self) -> int:
        """The number of blocks that are gone so far: when it grows, connections look whether they had imported one of
        these."""

    def find(self, address: int) -> Optional[Importable]:
        """The block that has this byte."""

    def trim(self) -> None:
        """Gives back what no array uses."""


_serials = itertools.count(1)


def new_serial() -> int:
    return next(_serials)


class Block:
    """A memfd and its mapping. `free` are its unused spans, in order: pairs of offset and size."""

    __slots__ = ("descriptor", "serial", "memory", "address", "size", "used", "free", "retired", "large")

    def __init__(self, size: int, large: bool):
        self.descriptor = -1
        self.serial = new_serial()
        self.descriptor = os.memfd_create("scand", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.address = int(ffi.cast(_ADDRESS, ffi.from_buffer(self.memory)))
        self.size = size
        self.used = 0
        self.free = [(0, size)]
        self.retired = False
        self.large = large
        if large:
            self._populate()

    def _populate(self) -> None:
        """Has the kernel make all pages in few calls, which takes less than a fault for each, with turns for signals
        between them."""
        try:
            for begin in range(0, self.size, POPULATED_BYTES):
                self.memory.madvise(POPULATE_WRITE, begin, min(POPULATED_BYTES, self.size - begin))
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

    def give_no_more(self) -> None:
        """Makes no more arrays here."""
        self.retired = True
        self.free = []

    def retire(self) -> None:
        pool.retire(self)

    @property
    def is_gone(self) -> bool:
        return self.descriptor < 0

    def import_to(self, daemon: Any, out: Any) -> int:
        return int(lib.scand_buffer_import(daemon, self.descriptor, self.size, out))

    def give_up(self, buffer: Any) -> None:
        lib.scand_buffer_release(buffer)

    def close(self) -> None:
        """Gives the memory back, which no array has any more; others may still know the block."""
        self.memory.close()
        os.close(self.descriptor)
        self.descriptor = -1

    def __del__(self, close: Any = os.close) -> None:
        if self.descriptor >= 0:
            close(self.descriptor)


class Place(NamedTuple):
    """The position of an array's first element."""

    block: Importable
    offset: int


Span = tuple[Block, int, int]  # bytes of a block: offset and size


class Region:
    """Bytes of a block, which go back to it with the last array over them."""

    __slots__ = ("place", "size", "__array_interface__", "__weakref__")

    def __init__(self, place: Place, size: int):
        self.place = place  # in a Block
        self.size = size

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        """A C-ordered array over the region's beginning."""
        block, offset = self.place
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str, "data": (block.address + offset, False),
        }
        return np.asarray(self)

    def __del__(self) -> None:
        give_back = _give_back
        if give_back is not None:  # None while the interpreter ends
            give_back(self.place, self.size)


def _available_bytes() -> int:
    """The memory that the machine can still give; without bounds where it does not say."""
    kib = 0
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith((b"MemAvailable:", b"SwapFree:")):
                    kib += int(line.split()[1])
    except (OSError, ValueError, IndexError):
        return 1 << 63
    return kib << 10 if kib else 1 << 63


class Pool:
    """The blocks of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: tuple[Block, ...] = ()  # by address; replaced as a whole, since it is read without the lock
        # Spans given back while somebody had the lock, perhaps this thread, whose memory the collector tidied.
        self._returned: collections.deque[Span] = collections.deque()
        self._retiring: collections.deque[Block] = collections.deque()  # and blocks, likewise
        # Small spans that are about to be taken again, by size. They count as used.
        self._bins: dict[int, list[Place]] = {}
        self.drops = 0

    def take(self, size: int) -> Region:
        size = max(LINE_BYTES, -(-size // LINE_BYTES) * LINE_BYTES)
        waiting = self._bins.get(size)
        if waiting:
            try:
                return Region(waiting.pop(), size)
            except IndexError:
                pass  # another thread was faster
        with self._lock:
            self._collect()
            large = size >= LARGE_BYTES
            for block in self._blocks:
                if block.large == large and (offset := block.take(size)) >= 0:
                    return Region(Place(block, offset), size)
            block = self._add(size, large)
            return Region(Place(block, block.take(size)), size)

    def _add(self, size: int, large: bool) -> Block:
        small_bytes = sum(block.size for block in self._blocks if not block.large)
        room = size if large else max(size, SMALL_BLOCK_BYTES, min(small_bytes, 4 * LARGE_BYTES))
        free = _available_bytes() if large else room
        if room > free:  # the kernel would end this process, or another one, rather than refuse
            raise MemoryError(f"no {size} bytes of shared memory: the machine has {free} left; free arrays, or take smaller ones")
        try:
            block = Block(-(-room // PAGE_BYTES) * PAGE_BYTES, large)
        except (OSError, OverflowError) as error:
            few = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
            help = "raise ulimit -n, or close some files" if few else "free arrays, or take smaller ones"
            raise MemoryError(f"no {size} bytes of shared memory: {error}; {help}") from error
        self._blocks = tuple(sorted((*self._blocks, block), key=_address))
        return block

    def find(self, address: int) -> Optional[Block]:
        """The block that has this byte."""
        blocks = self._blocks
        at = bisect.bisect(blocks, address, key=_address) - 1
        if at < 0 or address >= blocks[at].address + blocks[at].size:
            return None
        return blocks[at]

    def give_back(self, place: Place, size: int) -> None:
        block: Any = place.block
        if size <= BINNED_BYTES and not block.retired:
            waiting = self._bins.get(size)
            if waiting is None and len(self._bins) < BINS_MOST:
                waiting = self._bins.setdefault(size, [])
            if waiting is not None and len(waiting) < BINNED_MOST:
                waiting.append(place)
                return
        self._returned.append((block, place.offset, size))
        self._try_to_collect()

    def _try_to_collect(self) -> None:
        held: list[bool] = []
        try:
            held.extend(map(self._lock.acquire, (False,)))  # one call of C: Ctrl-C comes before it, or once that is noted
            if True in held:  # else whoever has the lock collects, or the next
                self._collect()
        finally:
            if True in held:
                self._lock.release()

    def _collect(self) -> None:
        while self._retiring:
            self._retiring.popleft().give_no_more()
            self._empty_bins()
        while self._returned:
            block, offset, size = self._returned.popleft()
            block.give_back(offset, size)
            if block.used == 0 and block.retired:
                self._drop(block)
            elif block.used == 0:
                self._trim(KEPT_BYTES)

    def _drop(self, block: Block) -> None:
        self._blocks = tuple(other for other in self._blocks if other is not block)
        self.drops += 1
        block.close()

    def _trim(self, kept: int) -> None:
        """Drops unused blocks, the largest first, until no more than so many bytes of them are kept."""
        unused = sorted((block for block in self._blocks if block.used == 0), key=lambda block: block.size)
        total = sum(block.size for block in unused)
        while total > kept:
            block = unused.pop()
            total -= block.size
            self._drop(block)

    def _empty_bins(self) -> None:
        for size, waiting in self._bins.items():
            while waiting:
                block, offset = waiting.pop()
                self._returned.append((block, offset, size))  # type: ignore[arg-type]

    def retire(self, block: Block) -> None:
        """Makes no more arrays where those are that the block has: its memory goes with the last of them. A client that
        the collector ends retires blocks, too, also while this thread has the lock."""
        block.retired = True  # from here on no span that comes back is given out again
        self._retiring.append(block)
        self._try_to_collect()

    def trim(self) -> None:
        with self._lock:
            self._empty_bins()
            self._collect()
            self._trim(0)

    def blocks(self) -> tuple[Block, ...]:
        return self._blocks

    def after_fork(self) -> None:
        """Gives up these blocks in a child: its parent goes on making arrays there, so the child makes none."""
        self._lock = threading.Lock()
        for block in self._blocks:
            block.give_no_more()
        self._empty_bins()
        self._collect()
        for block in self._blocks:
            if block.used == 0:
                self._drop(block)


pool = Pool()
holders: list[Holder] = [pool]
_give_back = pool.give_back
os.register_at_fork(after_in_child=pool.after_fork)


def address_of(array: AnyArray) -> int:
    if array.flags.c_contiguous and array.dtype.kind in "biufc":
        return int(ffi.cast(_ADDRESS, ffi.from_buffer(array)))  # takes a quarter of the time
    address: int = array.__array_interface__["data"][0]
    return address


def place_of(array: AnyArray) -> Optional[Place]:
    """The place of an array; None for ordinary memory."""
    base: object = array.base
    if type(base) is Region:
        return base.place
    if isinstance(array, Elsewhere):
        return array.place
    if base is None and len(holders) == 1:
        return None  # NumPy's own memory
    address = address_of(array)
    for holder in holders:
        if (block := holder.find(address)) is not None:
            return Place(block, address - block.address)
    return None


def drops() -> int:
    return pool.drops if len(holders) == 1 else sum(holder.drops for holder in holders)


def retire_block_of(array: AnyArray) -> None:
    """Keeps memory of the array's block from everybody else, since the daemon may still write to the array."""
    place = place_of(array)
    if place is not None:
        place.block.retire()


class Range(NamedTuple):
    """Bytes of this process's memory: from `begin` to before `end`."""

    begin: int
    end: int

    def meets(self, others: Sequence[Range]) -> bool:
        return any(self.begin < other.end and other.begin < self.end for other in others)


def range_of(array: AnyArray) -> Range:
    """The range from the first byte of an array that is not empty to behind the last."""
    begin = end = array.address if isinstance(array, Elsewhere) else address_of(array)
    for extent, step in zip(array.shape, array.strides):
        reach = (extent - 1) * step
        begin, end = (begin + reach, end) if reach < 0 else (begin, end + reach)
    return Range(begin, end + array.itemsize)


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[AnyArray, Place]:
    """A C-ordered array in shared memory, and where it is."""
    region = pool.take(math.prod(shape) * dtype.itemsize)
    return region.array(shape, dtype), region.place


def dimensions_of(shape: Union[int, Sequence[int]]) -> tuple[int, ...]:
    """A shape as numpy.empty takes it: one whole number, or several."""
    try:
        dimensions: tuple[int, ...] = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        try:
            dimensions = tuple(map(operator.index, shape))  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"shape: {shape!r} is no whole number, nor a list of them") from None
    if min(dimensions, default=0) < 0:
        raise ValueError(f"shape: {dimensions} has a negative dimension")
    return dimensions


def empty(shape: Union[int, Sequence[int]], dtype: DTypeLike = float) -> AnyArray:
    """A C-ordered array in shared memory, whose content is arbitrary, as numpy.empty makes it.

    Jobs read and write it where it lies. It outlives clients and the daemon. Children of fork share its content with
    their parent.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"dtype: {kind} holds references, which cannot be shared; take a dtype of numbers")
    kind, further = kind.subdtype or (kind, ())  # of "(2, 2)f4", whose dimensions come behind the array's
    made = allocate((*dimensions_of(shape), *further), kind)[0]
    return made.view(kind) if kind.names else made


def is_shared(array: object) -> bool:
    """True when jobs work on this array where it lies, without a copy."""
    return isinstance(array, np.ndarray) and place_of(array) is not None


def asarray(array: ArrayLike, dtype: Optional[DTypeLike] = None) -> AnyArray:
    """The array itself where it is shared and of this dtype, else a shared copy, C-ordered."""
    given = np.asarray(array)
    kind = given.dtype if dtype is None else np.dtype(dtype)
    if given.dtype == kind and is_shared(given):
        return given
    shared = empty(given.shape, kind)
    np.copyto(shared, given, casting="unsafe")
    return shared


def trim_blocks() -> None:
    for holder in holders:
        holder.trim()

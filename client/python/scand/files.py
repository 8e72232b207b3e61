"""Files that jobs read where they are: arrays over mappings, of which the daemon has the descriptor.

A program sees a file through its mapping, as with numpy.memmap; the daemon reads the file itself, chunk by chunk, and maps
nothing. So samples are copied once, into memory of the daemon's, and files may be larger than all memory.
"""

from __future__ import annotations

import bisect
import errno
import math
import mmap
import operator
import os
import stat
import threading
import weakref
from typing import Any, Optional, Protocol, Sequence, Union

import numpy as np
from numpy.typing import DTypeLike

from ._ffi import ffi
from ._library import lib
from .memory import AnyArray, Elsewhere, Place, address_of, holders, new_serial

_address = operator.attrgetter("address")


class SharedMemory(Protocol):
    """multiprocessing.shared_memory's, by its name in /dev/shm."""

    @property
    def name(self) -> str: ...

    @property
    def buf(self) -> Optional[memoryview]: ...


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


File = Union[str, os.PathLike[str], int, HasDescriptor, SharedMemory]


class FileBlock:
    """A file's descriptor, and where the file is mapped in this process."""

    __slots__ = ("serial", "descriptor", "address", "size")

    def __init__(self, descriptor: int, address: int, size: int):
        self.serial = new_serial()
        self.descriptor = descriptor
        self.address = address
        self.size = size

    @property
    def is_gone(self) -> bool:
        return self.descriptor < 0

    def import_to(self, daemon: Any, out: Any) -> int:
        return int(lib.scand_buffer_import_file(daemon, self.descriptor, self.size, out))

    def give_up(self, buffer: Any) -> None:
        lib.scand_buffer_release(buffer)

    def retire(self) -> None:
        """The daemon writes to no file."""

    def close(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1


class _Files:
    """A holder of memory.py's, in which no array is found: jobs write there, too, and files are only read."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a mapping may end while another one is entered
        self._blocks: tuple[FileBlock, ...] = ()  # by address; replaced as a whole, since it is read without the lock
        self.drops = 0

    def find(self, address: int) -> None:
        return None

    def trim(self) -> None:
        pass

    def place_of(self, array: AnyArray) -> Optional[Place]:
        blocks = self._blocks
        if not blocks or isinstance(array, Elsewhere):
            return None
        address = address_of(array)
        at = bisect.bisect(blocks, address, key=_address) - 1
        if at < 0 or address >= blocks[at].address + blocks[at].size:
            return None
        return Place(blocks[at], address - blocks[at].address)

    def add(self, block: FileBlock, mapping: mmap.mmap) -> None:
        with self._lock:
            if self not in holders:
                holders.append(self)
            self._blocks = tuple(sorted((*self._blocks, block), key=_address))
        weakref.finalize(mapping, self._drop, block).atexit = False

    def _drop(self, block: FileBlock) -> None:
        """The mapping has gone, with the last array over it."""
        with self._lock:
            self._blocks = tuple(other for other in self._blocks if other is not block)
            self.drops += 1
            block.close()


_files = _Files()
file_place_of = _files.place_of


def _descriptor(file: Any) -> int:
    """A new descriptor of the file, which the caller owns."""
    if isinstance(file, (int, np.integer)):
        return os.dup(int(file))
    if hasattr(file, "buf") and isinstance(getattr(file, "name", None), str):
        file = os.path.join("/dev/shm", file.name.lstrip("/"))
    elif hasattr(file, "fileno"):
        return os.dup(file.fileno())
    return os.open(file, os.O_RDONLY | os.O_CLOEXEC)


def _size(descriptor: int, file: Any) -> int:
    """The size of the file, which can be mapped."""
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "file: it is a directory; give a file", str(file))
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"file: {file!r} is a pipe, a socket or a device; copy what it brings to an array, or to a file")
    return found.st_size


def _map(descriptor: int, size: int) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except PermissionError:  # sealed against writing, and opened for it: older kernels want one opened for reading
        reading = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return mmap.mmap(reading, size, access=mmap.ACCESS_READ)
        finally:
            os.close(reading)


def _shape(shape: Optional[Union[int, Sequence[int]]], room: int, kind: np.dtype[Any]) -> tuple[int, ...]:
    """The shape of an array in so many bytes; one of its extents may be -1, for as many as there are."""
    extents = (-1,) if shape is None else (shape,) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
    if extents.count(-1) > 1 or min(extents, default=0) < -1:
        raise ValueError(f"shape: {extents} has extents below 0; one may be -1, for as many as the file has")
    if -1 in extents:
        others = math.prod(extent for extent in extents if extent != -1) * kind.itemsize
        if not others or room % others:
            raise ValueError(f"shape: {room} bytes of the file are not a whole number of {others} bytes, as {extents} of {kind} has")
        extents = tuple(room // others if extent == -1 else extent for extent in extents)
    if math.prod(extents) * kind.itemsize > room:
        raise ValueError(f"shape: {extents} of {kind} is longer than the {room} bytes of the file from offset on")
    return extents


def open_file(
    file: File, dtype: DTypeLike = np.float32, shape: Optional[Union[int, Sequence[int]]] = None, offset: int = 0
) -> AnyArray:
    """A read-only array over a file, which the daemon reads for each job: nothing is copied in this process, and the
    file may be larger than all memory.

        x = scand.open_file("line.f32", np.float32, (-1, 2000))    # traces of 2,000 samples
        rms = scand.reduce(x, "rms")
        twice = scand.scan(x[10_000:20_000], "forward,backward")   # views, of any strides

    Parameters
    ----------
    file
        A path; a descriptor or a file that is open for reading, which stays the caller's; or a SharedMemory of
        multiprocessing. On disk or in memory, also a memfd that is sealed against writing.
    dtype, shape
        Dtype and shape of the array, which is C-ordered; without a shape it has all elements in one dimension. One
        extent may be -1, for as many as the file has.
    offset
        The place of the first element in the file, in bytes.

    Jobs read the file as it is at that moment, chunk by chunk. If the file has become shorter, its jobs fail
    (FileError, an OSError), and touching the array itself is a bus error, as with any mapping. A row of more than 256 MiB raises
    InvalidError: scan a copy of it, `scand.asarray(x[:1])`. Columns can be scanned, too; they are read line by line,
    which takes longer than rows.

    Raises
    ------
    OSError
        The file cannot be opened.
    ValueError
        The file is empty or no regular file, or shape and offset do not fit it.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"dtype: {kind} holds references, which no file has; take a dtype of numbers")
    descriptor = _descriptor(file)
    try:
        size = _size(descriptor, file)
        if not 0 <= offset < size:
            raise ValueError(f"offset: it is {offset}, and the file has {size} bytes")
        shape = _shape(shape, size - offset, kind)
        mapping = _map(descriptor, size)
        array: AnyArray = np.ndarray(shape, kind, mapping, offset)
        _files.add(FileBlock(descriptor, int(ffi.cast("uintptr_t", ffi.from_buffer(mapping))), size), mapping)
    except BaseException:
        os.close(descriptor)
        raise
    return array

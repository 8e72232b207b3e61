"""Memory of NumPy's own arrays that jobs work on where it lies: allocator.c gives it out, wherever allocator() holds."""

from __future__ import annotations

import sys
from typing import Any, Optional

from ._ffi import ffi
from ._library import lib
from .memory import holders, new_serial

SET_HANDLER = 304  # index of PyDataMem_SetHandler in NumPy's table of functions for C


class ArrayBlock:
    """A memfd that is the memory of one array."""

    __slots__ = ("serial", "number", "descriptor", "address", "size")

    def __init__(self, found: Any):
        self.serial = new_serial()
        self.number = int(found.serial)  # the allocator's
        self.descriptor: int = found.fd
        self.address: int = found.address
        self.size: int = found.size_bytes

    @property
    def is_gone(self) -> bool:
        return not lib.scand_array_has(self.number)

    def import_to(self, daemon: Any, out: Any) -> int:
        return int(lib.scand_buffer_import(daemon, self.descriptor, self.size, out))

    def give_up(self, buffer: Any) -> None:
        lib.scand_buffer_release(buffer)

    def retire(self) -> None:
        lib.scand_array_retire(self.number)


class _Arrays:
    """A holder of memory.py's."""

    def __init__(self) -> None:
        self._blocks: dict[int, ArrayBlock] = {}  # blocks that jobs have been on
        self._looked = 0  # at those that are gone: when there were so many

    @property
    def drops(self) -> int:
        return int(lib.scand_array_drops())

    def find(self, address: int) -> Optional[ArrayBlock]:
        found = ffi.new("struct scand_array_block *")
        if not lib.scand_array_find(address, found):
            return None
        block = self._blocks.get(found.serial)
        if block is None:
            self._forget()
            block = self._blocks.setdefault(found.serial, ArrayBlock(found))
        return block

    def _forget(self) -> None:
        gone = self.drops
        if self._looked != gone:
            self._looked = gone
            for block in list(self._blocks.values()):
                if block.is_gone:
                    self._blocks.pop(block.number, None)

    def trim(self) -> None:
        lib.scand_array_trim()


_arrays = _Arrays()


class allocator:
    """Makes the memory of NumPy's arrays of 1 MiB and more shared, so that jobs work on them where they lie. This goes
    for the arrays that this thread makes from now on, or until the end of a `with` block, by any function of NumPy or
    others.

        with scand.allocator():
            x = np.load("traces.npy")   # shared, and so are arrays computed from it
        scand.allocator()               # from here on, in this thread

    An allocator holds for one thread, and tasks begun in it, as NumPy's rules are: each thread of a pool needs its own,
    ThreadPoolExecutor(initializer=scand.allocator). Arrays keep their memory as long as anybody has them, whatever
    becomes of the `with` block, the client and the daemon; afterwards up to 1 GiB of it is kept for further arrays,
    until trim(). Children of fork see what their parents write to such arrays, and the other way round. Each array
    takes a descriptor; when half of the descriptors that the process may have are in use, further arrays are ordinary ones.
    """

    def __init__(self) -> None:
        if _arrays not in holders:
            holders.append(_arrays)
        self._before: Optional[Any] = _set_handler(_handler())

    def close(self) -> None:
        """Has the thread make arrays as it did before."""
        if self._before is not None:
            _set_handler(self._before)
            self._before = None

    def __enter__(self) -> allocator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _handler() -> Any:
    """A capsule, as NumPy takes it."""
    from .capsules import capsule

    handler, name = (int(ffi.cast("uintptr_t", pointer)) for pointer in (lib.scand_array_handler(), lib.scand_array_handler_name()))
    return capsule(handler, name)


def _set_handler(handler: Any) -> Any:
    """Gives back the one before."""
    import ctypes

    from .capsules import pointer_of

    numpy = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    functions = ctypes.cast(pointer_of(getattr(numpy, "_ARRAY_API")), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[SET_HANDLER])(handler)

"""Python's capsules, by which packages hand pointers to each other: made through Python's functions for C."""

from __future__ import annotations

import ctypes
from typing import Any

from ._ffi import ffi
from ._library import lib

_python = ctypes.pythonapi
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
# The destructor has a capsule that nobody refers to any more, so it is passed on as an address.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
DLPACK = b"dltensor"  # name of capsules that nobody has taken over; a consumer gives them another name
_dlpack_name = ctypes.create_string_buffer(DLPACK)


def capsule(address: int, name: int, destructor: Any = None) -> Any:
    """`name` is the address of a string that stays."""
    return _new(address, name, ctypes.cast(destructor, ctypes.c_void_p) if destructor else None)


def _destroy(gone: int) -> None:
    if _is_valid(gone, DLPACK):
        lib.scand_dlpack_give_up(ffi.cast("struct scand_dlpack *", _address(gone, DLPACK)))


_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)


def dlpack_capsule(address: int) -> Any:
    """Around a struct scand_dlpack."""
    return capsule(address, ctypes.addressof(_dlpack_name), _destructor)


def pointer_of(made: Any) -> int:
    """The pointer of a capsule without a name."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
    return int(pointer(made, None))

"""NVIDIA's driver, in programs that have it loaded or installed: device memory that two processes share."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, NamedTuple, Optional

from ._ffi import ffi
from .errors import UnsupportedError

LIBRARY = "libcuda.so.1"
DEVICE_ORDINAL, BUFFER_ID = 9, 7  # values of CUpointer_attribute
DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
READ_AND_WRITE = 3


class Mapping(NamedTuple):
    """Memory of another process in this one's address space."""

    pointer: int
    size: int
    handle: int
    device: int  # number of the device, as this process counts


class Driver:
    """`library` has the functions of cuda_driver.h."""

    def __init__(self, library: Any):
        self._library = library
        self._contexts: dict[int, Any] = {}
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            text = ffi.new("const char **")
            known = self._library.cuGetErrorString(result, text) == 0 and text[0] != ffi.NULL
            raise UnsupportedError(f"{name}: {ffi.string(text[0]).decode() if known else 'an error that the driver has no words for'} ({result})")

    def _get(self, kind: str, name: str, *arguments: Any) -> int:
        """The value that a function writes to its first argument."""
        out = ffi.new(kind)
        self._call(name, out, *arguments)
        return int(out[0])

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Enters the context that the CUDA runtime, and so CuPy and PyTorch, uses of this device."""
        context = self._contexts.get(device)
        if context is None:
            out = ffi.new("void **")
            self._call("cuDevicePrimaryCtxRetain", out, device)
            context = self._contexts[device] = out[0]
        self._call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ffi.new("void **"))

    def synchronize(self, device: int) -> None:
        """Waits until the program's own work on the device is done."""
        with self.on(device):
            self._call("cuCtxSynchronize")

    def map(self, descriptor: int, size: int) -> Mapping:
        with self.on(0):
            shareable = ffi.cast("void *", descriptor)
            handle = self._get("uint64_t *", "cuMemImportFromShareableHandle", shareable, DESCRIPTOR)
            allocation = ffi.new("struct cuda_allocation *")
            self._call("cuMemGetAllocationPropertiesFromHandle", allocation, handle)
        location = allocation.location
        with self.on(location.id):
            pointer = self._get("uint64_t *", "cuMemAddressReserve", size, 0, 0, 0)
            self._call("cuMemMap", pointer, size, 0, handle, 0)
            access = ffi.new("struct cuda_access *", {"location": {"type": location.type, "id": location.id}, "flags": READ_AND_WRITE})
            self._call("cuMemSetAccess", pointer, size, access, 1)
        return Mapping(pointer, size, handle, location.id)

    def unmap(self, mapping: Mapping) -> None:
        """Unmaps memory after the program's own work there."""
        with self.on(mapping.device):
            self._call("cuCtxSynchronize")
            self._call("cuMemUnmap", mapping.pointer, mapping.size)
            self._call("cuMemAddressFree", mapping.pointer, mapping.size)
            self._call("cuMemRelease", mapping.handle)

    def device_of(self, pointer: int) -> int:
        return self._get("int *", "cuPointerGetAttribute", DEVICE_ORDINAL, pointer)

    def number_of(self, pointer: int) -> int:
        """The number of a pointer's allocation, which no other allocation of this process gets."""
        return self._get("unsigned long long *", "cuPointerGetAttribute", BUFFER_ID, pointer)

    def range_of(self, pointer: int, device: int) -> tuple[int, int]:
        """The address at which a pointer's allocation begins, and its size."""
        base, size = ffi.new("uint64_t *"), ffi.new("size_t *")
        with self.on(device):
            self._call("cuMemGetAddressRange_v2", base, size, pointer)
        return int(base[0]), int(size[0])

    def descriptor_of(self, pointer: int, device: int) -> Optional[int]:
        """A new descriptor of its allocation; None where that was not made to have one."""
        with self.on(device):
            handle, descriptor = ffi.new("uint64_t *"), ffi.new("int *")
            if self._library.cuMemRetainAllocationHandle(handle, ffi.cast("void *", pointer)):
                return None
            result = self._library.cuMemExportToShareableHandle(descriptor, handle[0], DESCRIPTOR, 0)
            self._call("cuMemRelease", handle[0])
        return None if result else int(descriptor[0])

    def ipc_handle_of(self, pointer: int, device: int) -> bytes:
        handle = ffi.new("struct cuda_ipc_handle *")
        with self.on(device):
            self._call("cuIpcGetMemHandle", handle, pointer)
        return bytes(ffi.buffer(handle))


@functools.lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver of this machine. Raises UnsupportedError where there is none."""
    try:
        library = ffi.dlopen(LIBRARY)
    except OSError as error:
        raise UnsupportedError(f"there is no driver of CUDA's on this machine: {error}") from None
    return Driver(library)

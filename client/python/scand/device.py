"""Arrays in a device's memory: made by the daemon, and mapped where programs use CUDA; or a program's own, of CuPy or
PyTorch, that jobs work on where they lie. This process never reads them."""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._ffi import ffi
from ._library import lib
from .client import Client, default_client, wait_for_writers
from .driver import driver
from .errors import LostError, UnavailableError, UnsupportedError
from .jobs import submit_plan
from .layout import Settings, word_of
from .memory import AnyArray, Elsewhere, Place, dimensions_of, holders, new_serial
from .plans import Plan, Request

_COPY = Settings(False, steps=(("map", (("op", "cast"),)),), options=(("priority", "normal"), ("after_failure", "1")))
TRIES = 3  # to copy an array to memory that was lost meanwhile
UNIT_BYTES = 2 << 20  # unit of a GPU's memory
LINE_BYTES = 256  # alignment of small arrays
CUDA = 2  # kDLCUDA
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # codes of DLPack
DEVICE_ADDRESSES = 1 << 64  # where addresses of devices begin, beyond those of this process


class _Block:
    """A block of a device's memory, as connections know it. Arrays hold it by a DeviceMemory; `is_gone` is set with the
    last of them."""

    is_gone = False

    def __init__(self, size: int):
        self.serial = new_serial()
        self.address = DEVICE_ADDRESSES * (1 + self.serial)
        self.size = size

    @property
    def is_lost(self) -> bool:
        """True when perhaps no job can use the block: new arrays do not get it then."""
        return False

    def retire(self) -> None:
        """Does nothing: the daemon or the program owns the memory, so no other array gets it."""


class _Made(_Block):
    """A buffer of a connection's."""

    def __init__(self, client: Client, size: int):
        super().__init__(size)
        self.client = client
        self.connection, self.buffer, self.is_shared = client.create_on_device(size)
        self._losses = self.connection.losses
        self._exported: Optional[tuple[int, int]] = None

    @property
    def is_lost(self) -> bool:
        return self.connection.is_closed or self._losses != self.connection.losses

    def exported(self) -> tuple[int, int]:
        """A descriptor, and the bytes of the allocation."""
        if self._exported is None:
            self._exported = self.client.export(self.connection, self.buffer)
        return self._exported

    def import_to(self, daemon: Any, out: Any) -> int:
        if daemon == self.connection.daemon and not self.connection.is_closed:
            out[0] = self.buffer
            return 0
        if self._exported is None and self.connection.is_closed:
            raise UnavailableError("the array was in a device's memory, which its client's connection had: make it anew")
        if not self.is_shared:
            raise UnsupportedError("the array is of another client, whose daemon's memory is not a GPU's: use that client, or get() a copy")
        descriptor, size = self.exported()
        return int(lib.scand_buffer_import_cuda_fd(daemon, descriptor, size, 0, self.size, out))

    def give_up(self, buffer: Any) -> None:
        if buffer != self.buffer:
            lib.scand_buffer_release(buffer)

    def end(self, close: Any = os.close, release: Any = lib.scand_buffer_release) -> None:
        release(self.buffer)
        self.connection.made -= 1
        if self._exported is not None:
            close(self._exported[0])


class _Foreign(_Block):
    """An allocation of this program's, which connections import by a descriptor where it has one, or by a handle."""

    def __init__(self, pointer: int, device: int):
        base, size = driver().range_of(pointer, device)
        super().__init__(size)
        self.address = DEVICE_ADDRESSES + base
        self.descriptor = driver().descriptor_of(base, device)
        self._handle = driver().ipc_handle_of(base, device) if self.descriptor is None else b""

    def import_to(self, daemon: Any, out: Any) -> int:
        if self.descriptor is not None:
            return int(lib.scand_buffer_import_cuda_fd(daemon, self.descriptor, self.size, 0, self.size, out))
        return int(lib.scand_buffer_import_cuda(daemon, self._handle, 0, self.size, out))

    def give_up(self, buffer: Any) -> None:
        lib.scand_buffer_release(buffer)

    def end(self, close: Any = os.close) -> None:
        if self.descriptor is not None:
            close(self.descriptor)


class _Devices:
    """A holder of memory.py's, whose arrays say themselves where they are."""

    def __init__(self) -> None:
        self.drops = 0

    def find(self, address: int) -> None:
        return None

    def trim(self) -> None:
        give_back_lent()
        with _lock:
            _small.clear()


_devices = _Devices()


class DeviceMemory:
    """A block and, where this process has it in its address space, where that is. Arrays over it hold it."""

    def __init__(self, block: Union[_Made, _Foreign], pointer: Optional[int] = None, device: int = 0):
        self.block = block
        self._unmap: Optional[Callable[[], None]] = None
        self._pointer = pointer
        self._device = device

    def pointer(self) -> int:
        """The address of the first byte for CUDA in this process; memory of the daemon's is mapped when the address is
        first asked for."""
        if self._pointer is None:
            block = self.block
            if not isinstance(block, _Made) or not block.is_shared:
                raise AttributeError("the array is in the memory of a daemon that works on the processor, not CUDA's: get() copies it")
            descriptor, size = block.exported()
            mapping = driver().map(descriptor, size)
            self._unmap = functools.partial(driver().unmap, mapping)
            self._pointer, self._device = mapping.pointer, mapping.device
            _mapped[self._pointer] = self
        return self._pointer

    @property
    def device(self) -> int:
        """The device's number, as CUDA in this process counts."""
        self.pointer()
        return self._device

    def synchronize(self) -> None:
        """Waits for the program's own work, which alone knows the memory where this process has it."""
        if self._pointer is not None:
            driver().synchronize(self._device)

    def __del__(self, devices: _Devices = _devices, failure: Any = UnsupportedError) -> None:
        self.block.is_gone = True
        devices.drops += 1
        if self._unmap is not None:
            try:
                self._unmap()
            except failure:
                pass  # the driver has ended before this process
        self.block.end()


_mapped: weakref.WeakValueDictionary[int, DeviceMemory] = weakref.WeakValueDictionary()  # by pointers
_foreign: weakref.WeakValueDictionary[int, DeviceMemory] = weakref.WeakValueDictionary()  # by CUDA's numbers
_small: weakref.WeakKeyDictionary[Client, tuple[DeviceMemory, int]] = weakref.WeakKeyDictionary()  # the rest is free
_lock = threading.Lock()
_lent: dict[int, tuple[Any, DeviceMemory]] = {}  # arrays given away by DLPack, by the addresses of their structs


def _shadow(
    shape: Sequence[int], dtype: np.dtype[Any], strides: Optional[Sequence[int]] = None, writeable: bool = True
) -> AnyArray:
    """A NumPy array of this layout whose memory is never touched: NumPy does all arithmetic of layouts with it."""
    if strides is None:
        strides = [dtype.itemsize * math.prod(shape[at + 1 :]) for at in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides, writeable=writeable)


class DeviceArray(Elsewhere):
    """An array in a device's memory, which scan(), reduce(), run() and the other functions take and give.

    device_empty() and device_array() make such arrays. They have `shape`, `dtype`, `strides`, `ndim`, `size`,
    `itemsize`, `nbytes`; slices of it are views. get() copies an array to the host. CuPy and PyTorch use its memory
    where it lies: cupy.asarray(x), torch.as_tensor(x, device="cuda"), torch.from_dlpack(x).
    """

    def __init__(self, memory: DeviceMemory, shadow: AnyArray, offset: int = 0, owner: object = None):
        if _devices not in holders:
            holders.append(_devices)
        self.memory = memory
        self._array = shadow
        self._offset = offset
        self._owner = owner  # owner of the memory

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self._array.dtype

    @property
    def strides(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._array.strides

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def itemsize(self) -> int:  # type: ignore[override]
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def flags(self) -> Any:
        return self._array.flags

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.memory.block, self._offset)

    @property
    def address(self) -> int:  # type: ignore[override]
        return self.memory.block.address + self._offset

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"scand.DeviceArray(shape={self.shape}, dtype={str(self.dtype)!r})"

    def __array__(self, *arguments: Any, **options: Any) -> AnyArray:
        raise TypeError("a DeviceArray becomes no NumPy array by itself: get() copies it")

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the samples, and makes an array in the memory of the device where it is unpickled."""
        return device_array, (self.get(),)

    def _view(self, array: AnyArray) -> DeviceArray:
        moved = array.__array_interface__["data"][0] - self._array.__array_interface__["data"][0]
        return DeviceArray(self.memory, array, self._offset + moved, self._owner)

    def __getitem__(self, key: Any) -> DeviceArray:
        """A view: of slices, numbers, `...` and None."""
        for part in key if isinstance(key, tuple) else (key,):
            if not (part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer))) or isinstance(part, bool):
                raise TypeError(f"index: {part!r} is no slice, number, ... or None; others make copies")
        array = self._array[key] if key != () else self._array
        return self._view(array if isinstance(array, np.ndarray) else self._array[(*(key if isinstance(key, tuple) else (key,)), ...)])

    def transpose(self, *axes: int) -> DeviceArray:
        """A view with the axes in this order, or backwards."""
        return self._view(self._array.transpose(*axes))

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view; ValueError where only a copy has that shape."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        view = self._array.view()
        try:
            view.shape = wanted
        except AttributeError:
            raise ValueError(f"shape: of the array's layout there is no view of shape {wanted}, and device arrays are not copied") from None
        return self._view(view)

    def repeated(self, shape: tuple[int, ...]) -> DeviceArray:
        """A view of this shape, as np.broadcast_to() makes it."""
        return self._view(np.broadcast_to(self._array, shape))

    def like(self, shape: tuple[int, ...], dtype: np.dtype[Any], client: Any) -> DeviceArray:
        """A new C-ordered array in the device's memory."""
        return device_allocate(shape, dtype, client)

    def synchronize(self) -> None:
        """Waits for the program's own work on the device."""
        self.memory.synchronize()

    def get(self, *, client: Optional[Client] = None) -> AnyArray:
        """A copy of the array in this process, as a shared array."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        copied: AnyArray = _copied(self._plain(), None, client)
        return copied.view(self.dtype).reshape(self.shape)

    def set(self, array: ArrayLike, *, client: Optional[Client] = None) -> None:
        """Copies samples of the same shape and dtype into the array."""
        given = np.asarray(array)
        if given.shape != self.shape or given.dtype != self.dtype:
            raise ValueError(f"array: it is {given.dtype} of shape {given.shape}; take {self.dtype} of {self.shape}")
        if self.size:
            target = self._plain()
            if not given.flags.c_contiguous:
                wait_for_writers(given)
            _copied(np.ascontiguousarray(given).view(target.dtype).reshape(target.shape), target, client)

    def _plain(self) -> DeviceArray:
        """An array of the same bytes whose samples jobs copy bit by bit: as integers, of the parts of complex numbers,
        in one dimension or more."""
        parts = 2 if self.dtype.kind == "c" else 1
        size = self.itemsize // parts
        plain = np.dtype(f"u{size}") if size > 2 else self.dtype
        shape, strides = self.shape or (1,), self.strides or (self.itemsize,)
        if parts > 1:
            shape, strides = (*shape, parts), (*strides, size)
        return DeviceArray(self.memory, _shadow(shape, plain, strides, self.flags.writeable), self._offset, self._owner)

    @property
    def client(self) -> Optional[Client]:
        """The client whose connection has the memory, where the daemon has made it."""
        block = self.memory.block
        return block.client if isinstance(block, _Made) and not block.connection.is_closed else None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for CUDA in this process. CUDA's work there has to end before a job is submitted, which the package
        waits for."""
        read_only = not self._array.flags.writeable
        return {
            "version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": self.strides, "stream": None,
            "data": (self.memory.pointer() + self._offset if self.size else 0, read_only),
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        try:
            return CUDA, self.memory.device
        except AttributeError as error:
            raise BufferError(str(error)) from None

    def __dlpack__(
        self, *, stream: Optional[int] = None, max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None, copy: Optional[bool] = None,
    ) -> Any:
        """A capsule. Results of jobs are there already, in whatever stream."""
        device = self.__dlpack_device__()
        if dl_device is not None and dl_device != device or copy:
            raise BufferError(f"dl_device, copy: the array is on {device}, and is given away without a copy only")
        if not self._array.flags.writeable or self.dtype.kind not in CODES or not self.dtype.isnative:
            raise BufferError(f"DLPack has no {self.dtype}, or none that is read-only; take __cuda_array_interface__")
        give_back_lent()
        return _lend(self, device)


def _lend(array: DeviceArray, device: tuple[int, int]) -> Any:
    count = max(1, array.ndim)
    shape, strides = ffi.new("int64_t[]", count), ffi.new("int64_t[]", count)
    for at, (extent, step) in enumerate(zip(array.shape, array.strides)):
        shape[at], strides[at] = extent, step // array.itemsize
    lent = ffi.new("struct scand_dlpack *", {
        "data": ffi.cast("void *", array.memory.pointer() + array._offset), "device_type": device[0], "device_id": device[1],
        "ndim": array.ndim, "code": CODES[array.dtype.kind], "bits": 8 * array.itemsize, "lanes": 1, "shape": shape,
        "strides": strides, "deleter": ffi.addressof(lib, "scand_dlpack_give_up"),
    })
    address = int(ffi.cast("uintptr_t", lent))
    _lent[address] = ((lent, shape, strides, array._owner), array.memory)
    from .capsules import dlpack_capsule

    return dlpack_capsule(address)


def give_back_lent() -> None:
    """Forgets the arrays that others have given up."""
    lent = lib.scand_dlpack_given_up()
    while lent != ffi.NULL:
        address, lent = int(ffi.cast("uintptr_t", lent)), ffi.cast("struct scand_dlpack *", lent.context)
        _lent.pop(address, None)


def wrapped(array: Any) -> Any:
    """A DeviceArray for an array of CuPy's, PyTorch's and others' on a device, by __cuda_array_interface__; anything
    else as it is."""
    if type(array) is np.ndarray or isinstance(array, DeviceArray) or not hasattr(array, "__cuda_array_interface__"):
        return array
    about = array.__cuda_array_interface__
    dtype, (pointer, read_only) = np.dtype(about["typestr"]), about["data"]
    shadow = _shadow(about["shape"], dtype, about.get("strides"), not read_only)
    if not shadow.size:
        return DeviceArray(_take(default_client(), 0)[0], shadow, 0, array)
    memory = _memory_at(pointer)
    return DeviceArray(memory, shadow, pointer - memory.pointer(), array)


def _memory_at(pointer: int) -> DeviceMemory:
    """The daemon's, or an allocation of the program's own."""
    for base, memory in list(_mapped.items()):
        if base <= pointer < base + memory.block.size:
            return memory
    number = driver().number_of(pointer)
    found = _foreign.get(number)
    if found is None:
        device = driver().device_of(pointer)
        block = _Foreign(pointer, device)
        found = _foreign[number] = DeviceMemory(block, block.address - DEVICE_ADDRESSES, device)
    return found


def _copied(x: Any, out: Any, client: Optional[Client]) -> Any:
    user = client or (x if out is None else out).client or default_client()
    return submit_plan(user, Plan(Request(x, _COPY, "cast", dtype=x.dtype, out=out, client=user, to_host=out is None))).result()


def device_allocate(shape: Sequence[int], dtype: np.dtype[Any], client: Optional[Client]) -> DeviceArray:
    give_back_lent()
    memory, offset = _take(client or default_client(), math.prod(shape) * dtype.itemsize)
    return DeviceArray(memory, _shadow(shape, dtype), offset)


def _take(client: Client, size: int) -> tuple[DeviceMemory, int]:
    """Memory, and where in it. Small arrays lie in a common buffer, one behind the other: a connection has not many."""
    if size > UNIT_BYTES // 4:
        return DeviceMemory(_Made(client, size)), 0
    while True:
        with _lock:
            memory, begin = _small.get(client, (None, 0))
            if memory is not None and begin + size <= UNIT_BYTES and not memory.block.is_lost:
                _small[client] = memory, -(-(begin + max(1, size)) // LINE_BYTES) * LINE_BYTES
                return memory, begin
        memory = DeviceMemory(_Made(client, UNIT_BYTES))  # may wait for memory, which others give back meanwhile
        with _lock:
            _small[client] = memory, 0


def device_empty(shape: Union[int, Sequence[int]], dtype: DTypeLike = float, *, client: Optional[Client] = None) -> DeviceArray:
    """A C-ordered array in the memory of the daemon's device, whose content is arbitrary. On a GPU, CUDA in other
    programs can use the array, too. It lasts as long as anybody has it, but its content is lost with the daemon's
    worker."""
    kind = np.dtype(dtype)
    if word_of(kind) is None or kind.kind in "iu" and kind.itemsize < 4:
        raise TypeError(f"dtype: jobs have no samples of {kind} as results, and those in a device's memory are not converted; take another")
    return device_allocate(dimensions_of(shape), kind, client)


def device_array(array: Any, *, client: Optional[Client] = None) -> DeviceArray:
    """The array on the device: a copy of an array of this process, or an array of CuPy's or PyTorch's where it lies.
    The latter is imported for as long as the result is there, so jobs begin sooner with the result than with the array
    itself."""
    given = wrapped(array)
    if isinstance(given, DeviceArray):
        return given
    given = np.asarray(given)
    for tries_left in reversed(range(TRIES)):
        made = device_empty(given.shape, given.dtype, client=client)
        try:
            made.set(given, client=client)
            return made
        except LostError:
            if not tries_left:
                raise
    raise AssertionError("not reached: the last try returns or raises")

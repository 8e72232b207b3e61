#!/usr/bin/env python3
"""Arrays in a device's memory: on the processor, where CUDA is refused; with a fake of the driver, whose memory is that of
memfds; and on a GPU, with PyTorch, where SCAND_TEST_DEVICE is cuda."""

import ctypes
import gc
import importlib.util
import itertools
import mmap
import os
import pickle
import signal
import tempfile
import unittest
from unittest import mock

import numpy as np

import scand
from rig import BACKEND, Daemon, PackageTest, eventually, main, whole_numbers
from scand import device, driver, memory
from scand._ffi import ffi
from scand._library import lib

DTYPES = ("f4", "f8", "f2", "i4", "i8", "u4", "u8", ">f4", "c8", "c16")
UNIT = 2 << 20  # of memory of CUDA's


def has_gpu():
    if BACKEND != "cuda" or not importlib.util.find_spec("torch"):
        return False
    import torch

    return torch.cuda.is_available()


class Device(PackageTest):
    """Arrays on whatever device the daemon has."""

    def test_there_and_back(self):
        for dtype, shape in itertools.product(DTYPES, ((7,), (3, 50), (2, 3, 4), (2, 2, 2, 2, 3), (), (0, 3))):
            with self.subTest(dtype=dtype, shape=shape):
                x = whole_numbers(shape, dtype)
                on_device = scand.device_array(x)
                self.assertEqual((on_device.shape, on_device.dtype, on_device.ndim, on_device.size), (x.shape, x.dtype, x.ndim, x.size))
                self.same(on_device.get(), x)

    def test_bits_stay(self):
        bits = np.array([0x7FA00001, 0xFFC12345, 0x80000000, 1], "u4")
        np.testing.assert_array_equal(scand.device_array(bits.view("f4")).get().view("u4"), bits)

    def test_scans(self):
        x = whole_numbers((6, 50, 4), "f4")
        on_device = scand.device_array(x)
        for axis in (0, 1, -1):
            got = scand.cumsum(on_device, axis)
            self.assertIsInstance(got, scand.DeviceArray)
            self.same(got.get(), np.cumsum(x, axis))
            self.same(scand.reduce(on_device, "max", axis=axis).get(), x.max(axis))
            self.same(scand.run(on_device, ["scan", ("reduce", {"reduction": "min"})], axis=axis).get(), np.cumsum(x, axis).min(axis))
        self.same(scand.reduce(on_device, axis=None).get(), np.asarray(x.sum()))
        self.same(scand.reduce(on_device, axis=(1, 2), keepdims=True).get(), x.sum((1, 2), keepdims=True))
        self.same(scand.submit(on_device, dtype="f8").result().get(), np.cumsum(x, -1, "f8"))
        self.same(scand.maximum_accumulate(on_device).get(), np.maximum.accumulate(x, -1))
        jobs = scand.submit_many([on_device, on_device[::2]])
        for job, given in zip(jobs, (x, x[::2])):
            self.same(job.result().get(), np.cumsum(given, -1))

    def test_a_chain_of_jobs_stays_there(self):
        x = whole_numbers((20, 300))
        y = scand.device_array(x)
        for _ in range(3):
            y = scand.scan(y, "forward")
        self.same(y.get(), np.cumsum(np.cumsum(np.cumsum(x, -1), -1), -1))

    def test_views(self):
        x = whole_numbers((6, 8, 10))
        on_device = scand.device_array(x)
        for key in (2, (slice(None, None, -2), 3), (..., slice(1, 9, 3)), (slice(0, 0),), (None, 1, ...), (1, 2, 3), ()):
            with self.subTest(key=key):
                self.same(on_device[key].get(), np.asarray(x[key]))
        view = on_device[::2, :, ::-3]
        self.same(scand.cumsum(view, 1).get(), np.cumsum(x[::2, :, ::-3], 1))
        self.same(on_device.transpose(2, 0, 1).get(), x.transpose(2, 0, 1))
        self.same(on_device.reshape(48, 10).reshape(-1).get(), x.ravel())
        self.assertEqual((len(on_device), on_device.nbytes), (6, x.nbytes))
        with self.assertRaisesRegex(ValueError, "no view of shape"):
            view.reshape(-1)
        for key in ([1, 2], np.array([True] * 6), True, "a"):
            with self.assertRaisesRegex(TypeError, "^index: "):
                on_device[key]

    def test_out(self):
        x = whole_numbers((5, 60), "f4")
        on_device, out = scand.device_array(x), scand.device_empty((5, 60), "f4")
        self.assertIs(scand.cumsum(on_device, out=out), out)
        self.same(out.get(), np.cumsum(x, -1))
        for host in (scand.empty((5, 60), "f4"), np.empty((5, 60), "f4"), np.empty((5, 60))):
            self.assertIs(scand.cumsum(on_device, out=host), host)
            np.testing.assert_array_equal(host, np.cumsum(x, -1))
        for given in (x, scand.asarray(x), x.astype(">f4"), x.astype("i2")):
            out.set(np.zeros((5, 60), "f4"))
            self.assertIs(scand.cumsum(given, out=out), out)
            self.same(out.get(), np.cumsum(x, -1))
        self.assertIs(scand.cumsum(on_device, out=on_device), on_device)
        self.same(on_device.get(), np.cumsum(x, -1))
        out[1:3, ::2].set(x[1:3, ::2])
        self.same(out[1:3, ::2].get(), x[1:3, ::2])

    def test_beside_files(self):
        with tempfile.NamedTemporaryFile() as file:
            whole_numbers((5, 60), "f4").tofile(file.name)
            x = scand.open_file(file.name, "f4", (5, 60))
            out = scand.device_empty((5, 60), "f4")
            self.assertIs(scand.cumsum(x, out=out), out)
            self.same(scand.cumsum(out).get(), np.cumsum(np.cumsum(x, -1), -1))

    def test_operands(self):
        """Operands are read, and written, in the memory of the device, beside samples that are there or are not."""
        x, y = (whole_numbers((4, 30), "f4", seed=seed) for seed in (1, 2))
        there = scand.device_array(y)
        for samples in (x, scand.device_array(x)):
            results = lambda made: made.get() if isinstance(made, scand.DeviceArray) else made
            for other, same in ((there, y), (there[0], y[0]), (there[:, :1], y[:, :1]), (there[::-1, ::-1], y[::-1, ::-1])):
                self.same(results(scand.run(samples, [("map", {"op": "mul", "other": other})])), x * same)
            self.same(results(scand.run(samples, [("dot", {"other": there})])), (x * y).sum(1))
            self.same(results(scand.run(samples, [("dot", {"other": there})], axis=None)), np.asarray((x * y).sum()))
            self.same(results(scand.run(samples, [("dot", {"other": there})], axis=(1, 0))), np.asarray((x * y).sum()))
            self.same(results(scand.run(samples, [("convolve", {"filter": there[0, :1][0]})])), x * y[0, 0])
            self.same(results(scand.scan(samples, op="affine", coefficient=there)), scand.scan(x, op="affine", coefficient=y))
            counts, found = scand.device_empty((4, 3), "i4"), np.empty((4, 3), "i4")
            for fold in (counts, found):
                scand.run(samples, [("stack", {"bins": 3, "index": scand.device_array(np.arange(30, dtype="i4") % 3), "fold": fold})])
            self.same(counts.get(), found)

    def test_operands_are_not_converted(self):
        x, there = whole_numbers((4, 30)), scand.device_array(whole_numbers((4, 30), "f4"))
        for call, error, text in (
            (lambda: scand.run(x, [("dot", {"other": there})]), TypeError, r"^steps\[0\].other: .* not converted from float32, and .* float64"),
            (lambda: scand.scan(x, op="affine", coefficient=there), TypeError, "^coefficient: .* not converted from float32"),
            (lambda: scand.run(there, [("dot", {"other": there[:, :7]})]), ValueError, r"^steps\[0\].other: its shape \(4, 7\) does not fit"),
            (lambda: scand.scan(there, op="affine", coefficient=there[:, :7]), ValueError, r"^coefficient: its shape \(4, 7\) does not fit"),
            (lambda: scand.scan(there[0], offsets=scand.device_array(np.arange(2))), TypeError, "get\\(\\) copies it"),
        ):
            with self.assertRaisesRegex(error, text):
                call()

    def test_large_ordinary_arrays(self):
        x = whole_numbers((1031, 2049), "f4")
        self.same(scand.cumsum(x, out=scand.device_empty(x.shape, "f4")).get(), np.cumsum(x, -1, "f8").astype("f4"))

    def test_nothing_is_converted(self):
        x = scand.device_array(whole_numbers((5, 60), "f4"))
        for call, error, text in (
            (lambda: scand.cumsum(x, dtype="i2"), TypeError, "^x: an array in a device's memory is neither"),
            (lambda: scand.cumsum(x[:, 1:], out=x[:, :-1]), TypeError, "^x: .*overlaps"),
            (lambda: scand.cumsum(x, out=scand.device_empty((5, 60), "i4")), TypeError, "^x: .*neither"),
            (lambda: scand.cumsum(x, out=scand.device_empty((5, 6), "f4")), ValueError, "^out: its shape"),
            (lambda: scand.device_empty(3, "g"), TypeError, "^dtype: jobs have no samples of float128 as results"),
            (lambda: scand.device_empty(3, "u1"), TypeError, "^dtype: jobs have no samples of uint8 as results"),
            (lambda: scand.device_empty((3, -1)), ValueError, "^shape: .* negative"),
            (lambda: x.set(np.zeros(3)), ValueError, r"^array: it is float64 of shape \(3,\)"),
            (lambda: np.asarray(x), TypeError, "get\\(\\) copies it"),
            (lambda: scand.cumulative_trapezoid(x), TypeError, "get\\(\\) copies it"),
        ):
            with self.assertRaisesRegex(error, text):
                call()

    def test_memory_is_given_back(self):
        info = ffi.new("struct scand_client_info[]", 64)
        count, following = ffi.new("size_t *"), ffi.new("uint64_t *")

        def held():
            client = scand.default_client()
            client.ping()
            client._connection.check(lib.scand_clients(client._connection.daemon, 0, info, ffi.sizeof(info[0]), 64, count, following))
            return sum(row.device_bytes for row in info[0 : count[0]])

        scand.trim()
        before = held()
        x = scand.device_array(whole_numbers((100, 5000)))
        y = scand.cumsum(x)[3:]
        self.assertGreaterEqual(held(), before + 8_000_000)
        z = scand.reduce(x)
        del x, y, z
        gc.collect()
        scand.trim()
        self.assertTrue(eventually(lambda: held() == before), f"{held()} bytes, {before} before")

    def test_more_arrays_than_a_connection_has_buffers(self):
        """Small arrays share buffers; for large ones imports are given up."""
        small = [scand.device_array(np.full(n % 7, n)) for n in range(1000)]
        self.assertEqual([int(scand.reduce(x).get()) for x in small], [n * (n % 7) for n in range(1000)])
        host = [scand.empty(memory.LARGE_BYTES // 8 + n) for n in range(60)]
        large = []
        for n, x in enumerate(host * 4):
            x[:3] = 1
            if n < 120:
                large.append(scand.device_empty(1 << 17))
            self.assertEqual(scand.reduce(x[:3], copy=False), 3)
        self.same(scand.reduce(large[0][:0]).get(), np.asarray(0.0))
        self.assertEqual(len({x.place.block.serial for x in small}), 1)

    def test_a_worker_that_dies(self):
        """Arrays of a worker that died are lost, and new ones are made in other memory."""
        with Daemon() as daemon, scand.Client(daemon.socket) as client:
            small, large = (scand.device_array(np.ones(n), client=client) for n in (10, 1 << 18))
            os.kill(daemon.worker(), signal.SIGKILL)
            for _ in range(3):
                self.same(scand.cumsum(scand.device_array(np.ones(10), client=client)).get(), np.arange(1.0, 11))
            for x in (small, large):
                with self.assertRaisesRegex(scand.LostError, "lost"):
                    scand.reduce(x)
            self.same(scand.device_array(np.ones(10), client=client).get(), np.ones(10))

    def test_memory_of_a_closed_client(self):
        with scand.Client(self.daemon.socket) as client:
            x = scand.device_array(np.ones(10), client=client)
            self.assertEqual(scand.reduce(x, client=client).get(client=client), 10)
        with self.assertRaisesRegex(scand.UnavailableError, "make it anew"):
            scand.cumsum(x)

    @unittest.skipIf(BACKEND == "cuda", "a GPU's memory can be had by several connections")
    def test_memory_of_another_client(self):
        with scand.Client(self.daemon.socket) as client:
            x = scand.device_array(np.ones(10), client=client)
            self.assertEqual(scand.reduce(x).get(), 10)  # by the client that has it
            self.assertEqual(scand.run(np.ones(10), [("dot", {"other": x})]), 10)
            with self.assertRaisesRegex(scand.UnsupportedError, "^the array is of another client"):
                scand.reduce(x, client=scand.default_client())

    def test_pickles(self):
        x = scand.device_array(whole_numbers((3, 5)))
        again = pickle.loads(pickle.dumps(x[:, ::2]))
        self.assertIsInstance(again, scand.DeviceArray)
        self.same(again.get(), whole_numbers((3, 5))[:, ::2])


@unittest.skipIf(BACKEND == "cuda", "of a daemon on the processor")
class OnTheProcessor(PackageTest):
    def test_no_cuda(self):
        x = scand.device_empty(3)
        self.assertFalse(hasattr(x, "__cuda_array_interface__"))
        with self.assertRaisesRegex(AttributeError, "a daemon that works on the processor"):
            x.__cuda_array_interface__
        for call in (x.__dlpack__, x.__dlpack_device__):
            with self.assertRaisesRegex(BufferError, "a daemon that works on the processor"):
                call()

    def test_no_driver(self):
        driver.driver.cache_clear()
        self.addCleanup(driver.driver.cache_clear)
        with mock.patch.object(driver, "LIBRARY", "libcuda-is-not-here.so"):
            with self.assertRaisesRegex(scand.UnsupportedError, "^there is no driver of CUDA's"):
                scand.cumsum(Tensor(0x7000, (3,), "f4"))


class Tensor:
    """An array of another package's."""

    def __init__(self, pointer, shape, dtype, strides=None, read_only=False):
        self.__cuda_array_interface__ = {
            "version": 2, "shape": shape, "typestr": np.dtype(dtype).str, "data": (pointer, read_only), "strides": strides,
        }


class FakeLibrary:
    """The driver's functions over memfds. Two devices; allocations are memfds, each mapped where CUDA would have it."""

    def __init__(self):
        self.calls = []
        self.allocations = {}  # number: (address, memory, descriptor)
        self.mapped = {}
        self.contexts = []
        self.exports = True

    def allocate(self, size):
        descriptor = os.memfd_create("fake", os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        memory = mmap.mmap(descriptor, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.allocations[len(self.allocations) + 1] = address, memory, descriptor
        return address

    def array(self, pointer, shape, dtype):
        count = int(np.prod(shape))
        return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(pointer), dtype).reshape(shape)

    def find(self, pointer):
        for number, (address, memory, descriptor) in self.allocations.items():
            if address <= pointer < address + len(memory):
                return number, address, len(memory), descriptor
        return None

    def cuInit(self, flags):
        return 0

    def cuGetErrorString(self, result, text):
        self.text = ffi.new("char[]", b"fake error")
        text[0] = self.text
        return 0

    def cuDevicePrimaryCtxRetain(self, out, number):
        out[0] = ffi.cast("void *", 100 + number)
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.contexts.append(int(ffi.cast("uintptr_t", context)) - 100)
        return 0

    def cuCtxPopCurrent_v2(self, out):
        self.contexts.pop()
        return 0

    def cuCtxSynchronize(self):
        self.calls.append(("synchronize", self.contexts[-1]))
        return 0

    def cuPointerGetAttribute(self, out, attribute, pointer):
        found = self.find(pointer)
        if found is None:
            return 1
        out[0] = 1 if attribute == driver.DEVICE_ORDINAL else found[0]
        return 0

    def cuMemGetAddressRange_v2(self, base, size, pointer):
        assert self.contexts, "it needs a context"
        _, base[0], size[0], _ = self.find(pointer)
        return 0

    def cuMemRetainAllocationHandle(self, out, pointer):
        found = self.find(int(ffi.cast("uintptr_t", pointer)))
        out[0] = found[0]
        return 0 if self.exports else 1

    def cuMemExportToShareableHandle(self, out, handle, kind, flags):
        out[0] = os.dup(self.allocations[handle][2])
        return 0

    def cuIpcGetMemHandle(self, out, pointer):
        out.bytes = bytes(range(64))
        return 0

    def cuMemImportFromShareableHandle(self, out, shareable, kind):
        self.imported = int(ffi.cast("uintptr_t", shareable))
        out[0] = 55
        return 0

    def cuMemGetAllocationPropertiesFromHandle(self, allocation, handle):
        allocation.location.type, allocation.location.id = 1, 1
        return 0

    def cuMemAddressReserve(self, out, size, alignment, address, flags):
        out[0] = 0x500000000 + UNIT * len(self.mapped)
        return 0

    def cuMemMap(self, pointer, size, offset, handle, flags):
        self.mapped[pointer] = size, handle
        return 0

    def cuMemSetAccess(self, pointer, size, access, count):
        assert (access.location.type, access.location.id, access.flags, count) == (1, 1, 3, 1)
        return 0

    def cuMemUnmap(self, pointer, size):
        assert self.calls[-1] == ("synchronize", 1), "work may be under way there"
        del self.mapped[pointer]
        return 0

    def cuMemAddressFree(self, pointer, size):
        return 0

    def cuMemRelease(self, handle):
        self.calls.append(("release", handle))
        return 0


@unittest.skipIf(BACKEND == "cuda", "a GPU needs no fake")
class Fakes(PackageTest):
    def setUp(self):
        self.fake_cuda = FakeLibrary()
        fake = driver.Driver(self.fake_cuda)
        for patch in (
            mock.patch.object(device, "driver", lambda: fake),
            mock.patch.object(device, "UNIT_BYTES", 4),  # each array has a buffer of its own
            mock.patch.object(device, "_mapped", type(device._mapped)()),
            mock.patch.object(device, "_foreign", type(device._foreign)()),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    # Memory of the program's own. The daemon imports the memfd that stands for it.

    def tensor(self, x, **options):
        pointer = self.fake_cuda.allocate(UNIT) + 4096
        self.fake_cuda.array(pointer, x.shape, x.dtype)[...] = x
        return Tensor(pointer, x.shape, x.dtype, **options), self.fake_cuda.array(pointer, x.shape, x.dtype)

    def as_host_memory(self):
        def import_fd(daemon, descriptor, allocation, offset, size, out):
            self.assertEqual((allocation, offset), (size, 0))
            return lib.scand_buffer_import(daemon, descriptor, size, out)

        return mock.patch.object(device, "lib", mock.Mock(wraps=lib, scand_buffer_import_cuda_fd=import_fd))

    def test_tensors_are_taken_where_they_lie(self):
        x = whole_numbers((6, 100), "f4")
        tensor, memory = self.tensor(x)
        with self.as_host_memory():
            self.assertIs(scand.scan(tensor, out=tensor), tensor)
            self.same(memory.copy(), np.cumsum(x, -1))
            self.assertIn(("synchronize", 1), self.fake_cuda.calls)
            other, results = self.tensor(np.zeros((6, 100), "f8"))
            scand.scan(tensor, "backward", axis=0, out=other)
            self.same(results.copy(), np.flip(np.cumsum(np.flip(np.cumsum(x, -1), 0), 0, "f8"), 0))
            got = scand.reduce(other)
            self.assertIsInstance(got, scand.DeviceArray)
            self.same(got.get(), results.sum(-1))

    def test_strides_and_what_is_read_only(self):
        x = whole_numbers((6, 100), "f4")
        tensor, memory = self.tensor(x)
        pointer = tensor.__cuda_array_interface__["data"][0]
        turned = Tensor(pointer, (50, 6), "f4", strides=(8, 400), read_only=True)
        with self.as_host_memory():
            self.same(scand.cumsum(turned, 0).get(), np.cumsum(x[:, ::2].T, 0))
            with self.assertRaisesRegex(ValueError, "^out: the array is read-only"):
                scand.cumsum(turned, out=turned)
        self.same(memory.copy(), x)

    def test_one_allocation_is_one_block(self):
        tensor, _ = self.tensor(np.zeros(100, "f4"))
        pointer = tensor.__cuda_array_interface__["data"][0]
        first, second = device.wrapped(tensor), device.wrapped(Tensor(pointer + 80, (10,), "f4"))
        self.assertIs(first.place.block, second.place.block)
        self.assertEqual(second.place.offset - first.place.offset, 80)
        range_of = memory.range_of
        self.assertTrue(range_of(first).meets([range_of(second)]))
        self.assertFalse(range_of(first[:20]).meets([range_of(second)]))
        with self.as_host_memory(), self.assertRaisesRegex(TypeError, "overlaps"):
            scand.cumsum(first[:10], out=first[5:15])
        self.assertEqual(device.wrapped(Tensor(pointer, (0,), "f4")).shape, (0,))

    def test_descriptors_are_closed(self):
        tensor, _ = self.tensor(np.zeros(100, "f4"))
        before = len(os.listdir("/proc/self/fd"))
        wrapped = device.wrapped(tensor)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before + 1)
        del wrapped
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_daemon_on_the_processor_refuses_them(self):
        for self.fake_cuda.exports in (True, False):
            tensor, _ = self.tensor(np.zeros(100, "f4"))
            for _ in range(2):
                with self.assertRaisesRegex(scand.UnsupportedError, "works on the processor and opens no GPU memory"):
                    scand.cumsum(tensor)

    def test_the_driver_says_no(self):
        with self.assertRaisesRegex(scand.UnsupportedError, r"^cuPointerGetAttribute: fake error \(1\)"):
            scand.cumsum(Tensor(0x1000, (3,), "f4"))

    # Memory of the daemon's, which the fake maps.

    def made(self, shape, dtype="f4"):
        def create(client, size):
            with client._lock:
                connection = client._connect()
                return connection, connection._made(lib.scand_buffer_create, lib.SCAND_PLACE_DEVICE, size), True

        def export(client, connection, buffer):
            return os.memfd_create("exported"), UNIT

        with mock.patch.object(scand.Client, "create_on_device", create):
            made = scand.device_empty(shape, dtype)
        patch = mock.patch.object(scand.Client, "export", export)
        patch.start()
        self.addCleanup(patch.stop)
        return made

    def test_cuda_array_interface(self):
        x = self.made((6, 100))
        self.assertEqual(self.fake_cuda.mapped, {})
        about = x[::2, 5:].__cuda_array_interface__
        pointer = about.pop("data")
        self.assertEqual(about, {"version": 3, "shape": (3, 95), "typestr": "<f4", "strides": (800, 4), "stream": None})
        self.assertEqual(pointer, (0x500000000 + 20, False))
        self.assertEqual(self.fake_cuda.mapped, {0x500000000: (UNIT, 55)})
        taken_back = device.wrapped(Tensor(pointer[0], (3, 95), "f4", strides=(800, 4)))
        self.assertEqual(taken_back.place, x[::2, 5:].place)
        del taken_back
        x.set(np.ones((6, 100), "f4"))
        self.fake_cuda.calls.clear()
        self.assertEqual(scand.reduce(x, axis=None).get(), 600)
        self.assertIn(("synchronize", 1), self.fake_cuda.calls)
        del x
        gc.collect()
        self.assertEqual(self.fake_cuda.mapped, {})

    def test_dlpack(self):
        x = self.made((6, 100))
        self.assertEqual(x.__dlpack_device__(), (2, 1))
        view = x[1::2, ::-1]
        capsule = view.__dlpack__(stream=1, max_version=(1, 0), dl_device=(2, 1), copy=False)
        lent = taken(capsule)
        got = (
            int(ffi.cast("uintptr_t", lent.data)), lent.device_type, lent.device_id, lent.code, lent.bits, lent.lanes, lent.byte_offset,
            list(lent.shape[0 : lent.ndim]), list(lent.strides[0 : lent.ndim]),
        )
        self.assertEqual(got, (0x500000000 + 400 + 396, 2, 1, 2, 32, 1, 0, [3, 100], [200, -1]))
        del x, view, capsule
        gc.collect()
        self.assertEqual(len(self.fake_cuda.mapped), 1)  # who took it has it still
        lent.deleter(lent)
        self.assertEqual(len(self.fake_cuda.mapped), 1)  # it may have been another thread
        scand.trim()
        self.assertEqual(self.fake_cuda.mapped, {})

    def test_capsules_that_nobody_takes(self):
        x = self.made((6, 100), "c8")
        capsules = [x.__dlpack__() for _ in range(5)]
        del capsules[2:]
        del x
        gc.collect()
        scand.trim()
        self.assertEqual(len(self.fake_cuda.mapped), 1)
        capsules.clear()
        scand.trim()
        self.assertEqual(self.fake_cuda.mapped, {})

    def test_what_dlpack_does_not_have(self):
        x = self.made((6, 100))
        for options in ({"dl_device": (1, 0)}, {"copy": True}):
            with self.assertRaisesRegex(BufferError, "^dl_device, copy: "):
                x.__dlpack__(**options)
        with self.assertRaisesRegex(BufferError, "DLPack has no >f4"):
            self.made(3, ">f4").__dlpack__()


def taken(capsule):
    """The pointer of a capsule, taken as a consumer of DLPack does."""
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    python.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
    pointer = python.PyCapsule_GetPointer(capsule, b"dltensor")
    python.PyCapsule_SetName(capsule, USED)
    return ffi.cast("struct scand_dlpack *", pointer)


USED = b"used_dltensor"


@unittest.skipUnless(has_gpu(), "there is no GPU with PyTorch here, or SCAND_TEST_DEVICE is not cuda")
class OnTheGpu(PackageTest):
    def test_tensors_of_the_daemons_memory(self):
        """Tensors are exported by both protocols; work of PyTorch's is waited for."""
        import torch

        x = scand.device_empty((3000, 1001), "f4")
        for tensor in (torch.from_dlpack(x), torch.as_tensor(x, device="cuda")):
            self.assertEqual((tuple(tensor.shape), tensor.device.type, tensor.data_ptr()), (x.shape, "cuda", x.__cuda_array_interface__["data"][0]))
            for turn in range(10):
                tensor.fill_(turn)
                self.same(scand.cumsum(x)[5].get(), np.cumsum(np.full(1001, turn, "f4")))
            scand.scan(x, "forward", out=x)
            self.same(tensor[7].cpu().numpy(), np.cumsum(np.full(1001, 9, "f4")))

    def test_same_bits(self):
        import torch

        torch.manual_seed(1)
        x = scand.device_empty((777, 1001), "f4")
        torch.from_dlpack(x).normal_()
        got = torch.from_dlpack(scand.scan(torch.from_dlpack(x), "forward,backward")).cpu().numpy()
        np.testing.assert_array_equal(got.view("u4"), scand.scan(x.get(), "forward,backward").view("u4"))

    def test_results_outlive_arrays_and_the_client(self):
        import torch

        with scand.Client(self.daemon.socket) as client:
            x = scand.device_array(np.ones((100, 1000), "f4"), client=client)
            tensor = torch.from_dlpack(scand.cumsum(x, client=client))
            del x
        gc.collect()
        scand.trim()
        self.assertEqual(tensor.sum().item(), 100 * 1000 * 1001 / 2)
        again = scand.cumsum(tensor[:, :10])  # on another connection, which imports it
        self.same(again.get()[0], np.cumsum(np.arange(1, 11, dtype="f4")))

    def test_own_tensors(self):
        """Tensors are imported by a handle, as the daemon's own user may; parts of allocations, strides, and two in one
        allocation."""
        import torch

        x = whole_numbers((50, 3000), "f4")
        tensor = torch.tensor(x, device="cuda")
        other = torch.zeros_like(tensor)
        scand.scan(tensor[3:, ::2].t(), axis=0, out=other[3:, ::2].t())
        expected = np.zeros_like(x)
        expected[3:, ::2] = np.cumsum(x[3:, ::2], 1)
        self.same(other.cpu().numpy(), expected)
        self.assertIs(scand.scan(tensor, out=tensor), tensor)
        self.same(tensor.cpu().numpy(), np.cumsum(x, 1))
        kept = scand.device_array(tensor)
        for _ in range(20):
            tensor.fill_(1)
            self.same(scand.reduce(kept).get(), np.full(50, 3000, "f4"))

    def test_mapped_memory_is_given_back(self):
        import torch

        free = None
        for turn in range(64):  # 16 GiB, if they stayed; other programs may have taken some meanwhile
            tensor = torch.from_dlpack(scand.device_empty((64, 1 << 20), "f4"))  # 256 MiB
            tensor.zero_()
            del tensor
            scand.trim()
            left = torch.cuda.mem_get_info()[0]
            free = left if turn == 1 else free
            if free is not None:
                self.assertGreater(left, free - (8 << 30))


if __name__ == "__main__":
    main()

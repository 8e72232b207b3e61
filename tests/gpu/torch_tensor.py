#!/usr/bin/env python3
"""A PyTorch tensor scanned in place by the daemon, which is another process: libscand through ctypes, and no copy.

The bits are compared with those of a daemon on the processor, and times are printed: of a whole job, as a program waits
for it, and of its kernels, as the daemon tells. torch_tensor.py SCAND LIBSCAND. Exit code 77 without torch or a GPU.
"""

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

HOST, F32, F64_SUMS, FORWARD, BACKWARD = 0, 0, 2, 0, 1  # enumerators of scand/types.h
IPC_BYTES = 64
REPEATS = 51


class Tensor(ctypes.Structure):
    _fields_ = [
        ("buffer", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.c_uint64 * 4),
        ("strides", ctypes.c_int64 * 4),
    ]


class Scan(ctypes.Structure):
    _fields_ = [
        ("input", Tensor),
        ("output", Tensor),
        ("axis", ctypes.c_uint32),
        ("pass_count", ctypes.c_uint32),
        ("passes", ctypes.c_int * 2),
        ("kind", ctypes.c_int),
        ("op", ctypes.c_int),
        ("accumulator", ctypes.c_int),
        ("intermediate", ctypes.c_int),
        ("demean", ctypes.c_uint32),
        ("algorithm", ctypes.c_char_p),
        ("offsets", Tensor),
        ("coefficient", ctypes.c_double),
        ("coefficients", Tensor),
        ("priority", ctypes.c_int),
        ("deadline_ms", ctypes.c_uint32),
        ("then_count", ctypes.c_uint32),
        ("then", ctypes.c_void_p),
    ]


class Times(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("queued", "upload", "kernel", "download", "total")]


class Session:
    """A daemon on `device`, and a connection to it."""

    def __init__(self, scand, libscand, device):
        self.libscand = ctypes.CDLL(libscand)
        self.libscand.scand_message.restype = ctypes.c_char_p
        self.libscand.scand_buffer_data.restype = ctypes.c_void_p
        self.folder = tempfile.TemporaryDirectory(prefix="scand")
        path = os.path.join(self.folder.name, "socket")
        command = [scand, "--foreground", "--device", device, "--socket", path, "--pool", "512M"]
        self.daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.scand = ctypes.c_void_p()
        deadline = time.monotonic() + 60
        while self.libscand.scand_connect(path.encode(), b"torch", ctypes.byref(self.scand)):
            assert time.monotonic() < deadline and self.daemon.poll() is None, "the daemon does not start"
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.libscand.scand_disconnect(self.scand)
        self.daemon.terminate()
        self.daemon.wait(60)

    def check(self, status):
        if status:
            raise RuntimeError(self.libscand.scand_message(self.scand).decode())

    def import_cuda(self, tensor):
        """A buffer that is the tensor's memory: the part of an allocation of the caching allocator."""
        driver = ctypes.CDLL("libcuda.so.1")
        address, base, size = ctypes.c_uint64(tensor.data_ptr()), ctypes.c_uint64(), ctypes.c_size_t()
        handle, buffer = ctypes.create_string_buffer(IPC_BYTES), ctypes.c_void_p()
        assert driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), address) == 0
        assert driver.cuIpcGetMemHandle(handle, address) == 0
        offset, count = ctypes.c_uint64(address.value - base.value), ctypes.c_uint64(tensor.numel() * 4)
        self.check(self.libscand.scand_buffer_import_cuda(self.scand, handle, offset, count, ctypes.byref(buffer)))
        return buffer

    def create(self, size):
        buffer = ctypes.c_void_p()
        self.check(self.libscand.scand_buffer_create(self.scand, HOST, ctypes.c_uint64(size), ctypes.byref(buffer)))
        return buffer, self.libscand.scand_buffer_data(buffer)

    def release(self, buffer):
        self.check(self.libscand.scand_buffer_release(buffer))

    def scan(self, buffer, shape):
        """Both passes, in place; the daemon's times in microseconds."""
        job, times, scan = ctypes.c_void_p(), Times(), Scan(axis=1, pass_count=2, accumulator=F64_SUMS)
        scan.input.buffer, scan.input.rank, scan.input.dtype = buffer, 2, F32
        scan.input.shape[:2] = shape
        scan.passes[:] = [FORWARD, BACKWARD]
        self.libscand.scand_tensor_pack(ctypes.byref(scan.input))
        scan.output = scan.input
        self.check(self.libscand.scand_submit(self.scand, ctypes.byref(scan), ctypes.byref(job)))
        self.check(self.libscand.scand_wait(job, -1, ctypes.byref(times)))
        self.libscand.scand_job_release(job)
        return times


def same_bits(torch, gpu, cpu, shape):
    """Scans one tensor in place there, its copy here."""
    # A part of an allocation, as PyTorch's allocator gives them out.
    tensor = torch.randn(shape[0] + 3, shape[1], device="cuda")[3:]
    buffer, data = cpu.create(tensor.numel() * 4)
    copy = torch.frombuffer((ctypes.c_char * (tensor.numel() * 4)).from_address(data), dtype=torch.float32)
    copy.copy_(tensor.reshape(-1))
    torch.cuda.synchronize()  # the daemon's work is not ordered with PyTorch's streams
    imported = gpu.import_cuda(tensor)
    gpu.scan(imported, shape)
    cpu.scan(buffer, shape)
    same = torch.equal(tensor.reshape(-1).cpu().view(torch.int32), copy.view(torch.int32))
    gpu.release(imported)
    del copy
    cpu.release(buffer)
    return same


def measure(torch, gpu, shape, busy):
    """Medians in microseconds: of a job until its answer is here, and of its kernels. busy: after work of PyTorch's own,
    from which the GPU has to change to another process first."""
    tensor = torch.zeros(shape, device="cuda")
    torch.cuda.synchronize()
    imported, jobs, kernels = gpu.import_cuda(tensor), [], []
    for _ in range(REPEATS):
        if busy:
            tensor.zero_()
            torch.cuda.synchronize()
        begin = time.perf_counter()
        times = gpu.scan(imported, shape)
        jobs.append((time.perf_counter() - begin) * 1e6)
        kernels.append(times.kernel)
    gpu.release(imported)
    return statistics.median(jobs), statistics.median(kernels)


def main():
    scand, libscand = sys.argv[1:]
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        return 77
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return 77
    with Session(scand, libscand, "cuda") as gpu, Session(scand, libscand, "cpu") as cpu:
        for shape in [(1, 1000), (777, 1001), (10000, 10000)]:
            if not same_bits(torch, gpu, cpu, shape):
                print(f"other bits than on the processor: {shape}")
                return 1
        for shape in [(10000, 10000), (1, 1000)]:
            for busy in (False, True):
                job, kernel = measure(torch, gpu, shape, busy)
                when = "right after work of PyTorch's" if busy else "GPU idle before"
                print(f"{shape[0]} x {shape[1]}, {when}: job {job:.0f} us, kernels {kernel:.0f} us")
    print(f"torch {torch.__version__}: tensors scanned in place by the daemon, bits as on the processor")
    return 0


if __name__ == "__main__":
    sys.exit(main())

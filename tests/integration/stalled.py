"""A write to a memfd that lasts for as long as a test likes, and holds the file's lock all the while.

The bytes come from a page that userfaultfd leaves to this program, which does not bring it: so can any user's program do
by a file system of its own.
"""

import ctypes
import fcntl
import os
import platform
import struct
import threading
import unittest

from wire import eventually

PAGE = os.sysconf("SC_PAGESIZE")
USERFAULTFD = {"x86_64": 323, "aarch64": 282}
PWRITE = {"x86_64": 18, "aarch64": 68}
UFFDIO_API, UFFDIO_REGISTER, MISSING = 0xC018AA3F, 0xC020AA00, 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p


class Stalled:
    """Writes to any number of memfds that do not end before `end`."""

    def __init__(self):
        self.fd = LIBC.syscall(USERFAULTFD.get(platform.machine(), -1), os.O_CLOEXEC)
        if self.fd < 0:
            raise unittest.SkipTest(f"userfaultfd: {os.strerror(ctypes.get_errno())}")
        self.page = LIBC.mmap(None, ctypes.c_size_t(PAGE), 3, 0x22, -1, ctypes.c_long(0))
        fcntl.ioctl(self.fd, UFFDIO_API, bytearray(struct.pack("=3Q", 0xAA, 0, 0)))
        fcntl.ioctl(self.fd, UFFDIO_REGISTER, bytearray(struct.pack("=4Q", self.page, PAGE, MISSING, 0)))
        self.threads = []

    def write(self, fd):
        """Begins to write, and returns when that has stalled: the thread waits, and not for Python's lock."""
        thread = threading.Thread(
            target=lambda: LIBC.pwrite(
                fd, ctypes.c_void_p(self.page), ctypes.c_size_t(PAGE), ctypes.c_long(0)
            )
        )
        thread.start()
        self.threads.append(thread)

        def is_waiting():
            with open(f"/proc/self/task/{thread.native_id}/syscall") as call:
                return call.read().startswith(f"{PWRITE[platform.machine()]} ")

        assert eventually(is_waiting)

    def end(self):
        """Ends all of them, so that the file's lock is free again."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        for thread in self.threads:
            thread.join()

"""Traces of SEG-Y files, in shared memory or on disk, to be scanned where they lie between their headers."""

from __future__ import annotations

import builtins
import dataclasses
import os
import struct
from typing import Literal, Optional, Union

import numpy as np

from .files import open_file
from .memory import AnyArray, empty

Order = Literal[">", "<"]

TEXT_BYTES = 3200  # bytes of each textual header
BINARY_BYTES = 400
FILE_HEADER_BYTES = TEXT_BYTES + BINARY_BYTES  # before extended ones
TRACE_HEADER_BYTES = 240
REVISION_MOST = 2
END_TEXT = "((SEG: EndText))"  # in the last extended header, where a file does not say how many there are

# Dtypes by the code of the binary header: NumPy's without its byte order, and the big-endian form where NumPy lacks
# one.
CODES: dict[int, tuple[str, Optional[str]]] = {
    1: ("u4", "ibm32"), 2: ("i4", None), 3: ("i2", None), 5: ("f4", None), 6: ("f8", None), 8: ("i1", None), 9: ("i8", None),
    10: ("u4", None), 11: ("u2", None), 12: ("u8", None), 16: ("u1", None),
}


@dataclasses.dataclass(frozen=True)
class Traces:
    """A SEG-Y file: in shared memory, or, made by `open`, read-only and on disk.

    `samples` are the traces, of shape (traces, samples), in the file's number format and byte order:
    scand.scan(samples, form=form) sums them where they lie. `form` is "ibm32" or "ibm32le" for IBM floats, which NumPy
    sees as integers, else None. `headers` are the bytes of the trace headers, of shape (traces, 240); `interval_us` is
    the sampling interval in microseconds. `data` is the whole file.
    """

    data: AnyArray
    samples: AnyArray
    headers: AnyArray
    form: Optional[str]
    interval_us: int


def read(path: Union[str, os.PathLike[str]]) -> Traces:
    """Reads a SEG-Y file of revision 0, 1 or 2 with traces of one length. Raises ValueError for any other file.

    Samples of IEEE floats (`form` is None) can be scanned in place, and the file written with all its headers:

        line = scand.segy.read("line.sgy")
        scand.scan(line.samples, "forward,backward", out=line.samples)
        line.data.tofile("integrated.sgy")

    Results of other samples are new arrays of NumPy's floats.
    """
    with builtins.open(path, "rb") as file:
        size = _checked_size(path, os.fstat(file.fileno()))
        data = empty(size, np.uint8)
        if file.readinto(data) != size:  # type: ignore[arg-type]
            raise ValueError(f"{path}: it became shorter while it was read")
    return _traces(str(path), data, is_read=True)


def open(path: Union[str, os.PathLike[str]]) -> Traces:
    """Opens a SEG-Y file as read() does, but without reading the samples: the daemon reads them for each job, so the
    file may be larger than all memory. The arrays are read-only; results are new arrays, or `out`. Of the trace headers
    only the first is looked at. See scand.open_file."""
    _checked_size(path, os.stat(path))
    return _traces(str(path), open_file(path, np.uint8))


def _checked_size(path: Union[str, os.PathLike[str]], found: os.stat_result) -> int:
    if found.st_size < FILE_HEADER_BYTES:
        raise ValueError(f"{path}: {found.st_size} bytes are no SEG-Y file, whose headers have {FILE_HEADER_BYTES}")
    return found.st_size


def _traces(path: str, data: AnyArray, is_read: bool = False) -> Traces:
    binary = data[TEXT_BYTES:FILE_HEADER_BYTES].tobytes()
    order, code = _order(path, binary)
    begin = FILE_HEADER_BYTES + TEXT_BYTES * _extended_headers(path, data, binary, order)
    name, form = CODES[code]
    dtype = np.dtype(name).newbyteorder(order)
    samples = _samples(path, data[begin:], binary, order, dtype.itemsize)
    rows = data[begin:].reshape(-1, TRACE_HEADER_BYTES + samples * dtype.itemsize)
    if is_read:
        _check_lengths(path, rows[:, 114:116].view(f"{order}u2")[:, 0])
    numbers = rows[:, TRACE_HEADER_BYTES:].view(dtype)
    form = "ibm32le" if form == "ibm32" and order == "<" else form
    return Traces(data, numbers, rows[:, :TRACE_HEADER_BYTES], form, struct.unpack_from(f"{order}H", binary, 16)[0])


def _check_lengths(path: str, told: AnyArray) -> None:
    """Trace headers have to tell one number of samples, be it right or not; some may tell 0."""
    others = np.flatnonzero((told != told[:1]) & (told != 0))
    if others.size:
        raise ValueError(
            f"{path}: trace {others[0] + 1} (counted from 1) has {told[others[0]]} samples, the first {told[0]}; files with "
            f"traces of differing lengths are not read"
        )


def _samples(path: str, traces: AnyArray, binary: bytes, order: Order, sample_bytes: int) -> int:
    """The number of samples of each trace: as the binary header says, or else as the first trace says, where the traces
    are whole ones then."""
    said: list[int] = list(struct.unpack_from(f"{order}H", binary, 20))
    if traces.size >= TRACE_HEADER_BYTES:
        said += struct.unpack_from(f"{order}H", traces[:TRACE_HEADER_BYTES].tobytes(), 114)
    for samples in said:
        if samples and traces.size % (TRACE_HEADER_BYTES + samples * sample_bytes) == 0:
            return samples
    raise ValueError(
        f"{path}: {traces.size} bytes are not whole traces of {' or '.join(map(str, said))} samples, as its headers say; "
        f"files with traces of differing lengths are not read"
    )


def _order(path: str, binary: bytes) -> tuple[Order, int]:
    """The byte order in which the code of the samples makes sense, and the code."""
    orders: tuple[Order, Order] = (">", "<")
    for order in orders:
        code: int = struct.unpack_from(f"{order}H", binary, 24)[0]
        if code in CODES:
            return order, code
    code = struct.unpack_from(">H", binary, 24)[0]
    raise ValueError(
        f"{path}: it is no SEG-Y file, or one of a format that is not read: its binary header (bytes 3225 and 3226) gives its "
        f"samples the code {code}; there are {', '.join(map(str, CODES))}"
    )


def _extended_headers(path: str, data: AnyArray, binary: bytes, order: Order) -> int:
    """The number of extended headers."""
    # One number of two bytes in revision 1, two numbers in revision 2: in a little-endian file the first may be in either place.
    revision = binary[300] or (binary[301] if order == "<" else 0)
    if revision > REVISION_MOST:
        raise ValueError(f"{path}: it is SEG-Y of revision {revision} (byte 3501); there are 0, 1 and 2")
    count: int = struct.unpack_from(f"{order}h", binary, 304)[0] if revision else 0
    headers = data[FILE_HEADER_BYTES:]
    room = headers.size // TEXT_BYTES
    if count == -1:
        marks = [END_TEXT.encode(code) for code in ("ascii", "cp037")]
        for at in range(room):
            header = headers[at * TEXT_BYTES : (at + 1) * TEXT_BYTES].tobytes()
            if any(header.startswith(mark) for mark in marks):
                return at + 1
        raise ValueError(f"{path}: its extended headers have no end: none begins with {END_TEXT}")
    if not 0 <= count <= room:
        raise ValueError(f"{path}: it says that it has {count} extended headers, and has room for {room}")
    return count


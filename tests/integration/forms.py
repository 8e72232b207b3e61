"""Scans computed a second time, and files of every form that scanctl reads, for tests. Only the standard library is used."""

import array
import itertools
import operator
import random
import struct
import sys

from wire import SIZES

LITTLE = sys.byteorder == "little"


def scanned(row, passes, exclusive=False, between=lambda value: value, function=operator.add, identity=0):
    """Returns one row's scan, in whatever numbers the row holds."""
    for number, direction in enumerate(passes):
        if number:
            row = [between(value) for value in row]
        row = row if direction == "forward" else row[::-1]
        sums = list(itertools.accumulate(row, function))
        if exclusive:
            sums = ([identity] + sums)[:-1]
        row = sums if direction == "forward" else sums[::-1]
    return row


def scanned_array(values, shape, axis, passes, exclusive=False):
    """Returns the scan along an axis of an array, given and returned as a flat list in C order."""
    out = list(values)
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    others = [range(0, shape[i] * strides[i], strides[i]) for i in range(len(shape)) if i != axis]
    for start in map(sum, itertools.product(*others)):
        places = [start + i * strides[axis] for i in range(shape[axis])]
        for place, value in zip(places, scanned([values[p] for p in places], passes, exclusive)):
            out[place] = value
    return out


SCALE = 149  # every f32 is a whole number of 2^-149


def to_whole(value):
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << SCALE) // denominator)


def round_f32(whole):
    """The nearest f32, ties to even, as a whole number of 2^-149 again."""
    shift = max(abs(whole).bit_length() - 24, 0)
    kept, rest, half = abs(whole) >> shift, abs(whole) & ((1 << shift) - 1), (1 << shift) >> 1
    if shift and (rest > half or (rest == half and kept & 1)):
        kept += 1
    return (kept << shift) * (-1 if whole < 0 else 1)


def exact(row, passes):
    """The correctly rounded f32 results of exact sums, with f32 between the passes."""
    sums = scanned([to_whole(value) for value in row], passes, between=round_f32)
    return [round_f32(value) / (1 << SCALE) for value in sums]


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def floats(data, code="f", big=not LITTLE):
    values = array.array(code, data)
    if big == LITTLE:
        values.byteswap()
    return values.tolist()


def packed(values, code="f", big=not LITTLE):
    out = array.array(code, values)
    if big == LITTLE:
        out.byteswap()
    return out.tobytes()


STRUCT_CODES = {"f32": "=f", "f64": "=d", "f16": "=e", "i32": "=i", "i64": "=q", "u32": "=I", "u64": "=Q"}
STRUCT_CODES |= {"i8": "=b", "u8": "=B", "i16": "=h", "u16": "=H", "i32le": "<i"}
STRUCT_CODES |= {"f32be": ">f", "f64be": ">d", "i16be": ">h", "u16be": ">H", "i32be": ">i", "i64be": ">q", "u32be": ">I", "u64be": ">Q"}


def ibm32_bytes(value):
    """A number that has an exact IBM float."""
    sign, value, power = value < 0, abs(value), 64
    while value >= 1:
        value, power = value / 16, power + 1
    while value and value < 1 / 16:
        value, power = value * 16, power - 1
    return struct.pack(">I", sign << 31 | (power << 24 | int(value * 2**24) if value else 0))


def ibm32_value(bits):
    return (-1) ** (bits >> 31) * (bits & 0xFFFFFF) / 2**24 * 16.0 ** ((bits >> 24 & 127) - 64)


def pack_dtype(dtype, values):
    """Samples of any dtype; numbers that it holds exactly."""
    if dtype == "bf16":
        return b"".join(struct.pack("=I", struct.unpack("=I", struct.pack("=f", v))[0] >> 16)[:2] for v in values)
    if dtype == "ibm32":
        return b"".join(map(ibm32_bytes, values))
    if dtype == "ibm32le":
        return b"".join(ibm32_bytes(value)[::-1] for value in values)
    return struct.pack(f"{STRUCT_CODES[dtype][0]}{len(values)}{STRUCT_CODES[dtype][1]}", *values)


def unpack_dtype(dtype, data):
    if dtype == "bf16":
        return [struct.unpack("=f", struct.pack("=I", bits << 16))[0] for (bits,) in struct.iter_unpack("=H", data)]
    if dtype in ("ibm32", "ibm32le"):
        return [ibm32_value(bits) for (bits,) in struct.iter_unpack(">I" if dtype == "ibm32" else "<I", data)]
    return [value for (value,) in struct.iter_unpack(STRUCT_CODES[dtype], data)]


def npy_header(shape, descr="<f4", fortran=False, version=1):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, tuple(shape))
    length_bytes = 2 if version == 1 else 4
    text += " " * (-(8 + length_bytes + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(length_bytes, "little") + text.encode()


def c_to_fortran(values, shape):
    """C order in, Fortran order out."""
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    out = []
    for index in itertools.product(*(range(n) for n in reversed(shape))):
        out.append(values[sum(i * s for i, s in zip(reversed(index), strides))])
    return out


def su_file(rows, big, seed=1):
    """Random headers but for ns, so that a changed byte is seen."""
    generator = random.Random(seed)
    out = b""
    for row in rows:
        header = bytearray(generator.randbytes(240))
        header[114:116] = len(row).to_bytes(2, "big" if big else "little")
        out += bytes(header) + packed(row, big=big)
    return out


# Format codes of big-endian SEG-Y as dtypes.
CODES = {1: "ibm32", 2: "i32be", 3: "i16be", 5: "f32be", 6: "f64be", 8: "i8", 9: "i64be", 10: "u32be", 11: "u16be", 12: "u64be", 16: "u8"}


def segy_samples(code, values, big):
    """Samples of one trace: numbers that each code holds exactly."""
    data = pack_dtype(CODES[code], values)
    width = len(data) // len(values)
    return data if big else b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))


def segy_values(code, data, big):
    width = SIZES[CODES[code]]
    if not big:
        data = b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))
    return unpack_dtype(CODES[code], data)


def segy_file(rows, code=1, big=True, revision=1, extended=0, said_extended=None, trace_headers=0, trailers=0, seed=1):
    """Random headers but for what is said, so that a changed byte is seen."""
    generator = random.Random(seed)
    order = "big" if big else "little"
    head = bytearray(b"C" + generator.randbytes(3599))
    head[3216:3600] = bytes(384)
    for at, value, size in ((3220, len(rows[0]), 2), (3224, code, 2), (3500, revision << 8, 2), (3506, trace_headers, 2), (3526, trailers, 4)):
        head[at : at + size] = value.to_bytes(size, order)
    head[3504:3506] = (extended if said_extended is None else said_extended).to_bytes(2, order, signed=True)
    out = bytes(head)
    for i in range(extended):
        out += (b"((SEG: EndText))" if i == extended - 1 else b"").ljust(3200, b"x")
    for row in rows:
        header = bytearray(generator.randbytes(240 * (1 + trace_headers)))
        header[114:116] = len(row).to_bytes(2, order)
        out += bytes(header) + segy_samples(code, row, big)
    return out + generator.randbytes(3200 * trailers)

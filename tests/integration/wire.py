"""The daemon's protocol for tests, in plain Python: MessagePack, requests, responses, and memory shared with the daemon.

It checks nothing that a test might want to send wrong. Only the standard library is used.
"""

import mmap
import os
import select
import socket
import struct
import time

TIMEOUT_S = 60  # for any answer; sanitizers and busy machines are slow

CODES = {
    "invalid": 1,
    "malformed": 2,
    "too_large": 3,
    "unknown_method": 4,
    "version": 5,
    "not_found": 6,
    "descriptor": 7,
    "busy": 8,
    "quota": 9,
    "no_memory": 10,
    "cancelled": 11,
    "draining": 12,
    "device": 13,
    "lost": 14,
    "unsupported": 17,
    "deadline": 19,
    "permission": 20,
    "stale": 21,
}


SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u32": 4, "u64": 8}
SIZES |= {"f32be": 4, "i16be": 2, "i32be": 4, "ibm32": 4, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "u16be": 2, "i32le": 4}
SIZES |= {"ibm32le": 4, "f64be": 8, "i64be": 8, "u32be": 4, "u64be": 8}


class Raw(bytes):
    """Bytes that are packed as they are."""


class Pairs(list):
    """A map as a list of pairs, in which a key may come twice."""


def head(short, short_max, forms, length):
    """The first bytes of text, a list or a map."""
    if length <= short_max:
        return bytes([short | length])
    for first, form, limit in forms:
        if length <= limit:
            return struct.pack(">B" + form, first, length)
    raise ValueError(length)


def pack_integer(value):
    if -32 <= value < 128:
        return struct.pack(">b", value)
    forms = [(0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q")]
    if value >= 0:
        forms = [(0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q")]
    for first, form in forms:
        try:
            return struct.pack(">B" + form, first, value)
        except struct.error:
            pass
    raise ValueError(value)


def pack_map(pairs):
    out = head(0x80, 15, [(0xDE, "H", 0xFFFF), (0xDF, "I", 0xFFFFFFFF)], len(pairs))
    return out + b"".join(pack(key) + pack(value) for key, value in pairs)


def pack(value):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return pack_integer(value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, bytes):
        return head(0, -1, [(0xC4, "B", 0xFF), (0xC5, "H", 0xFFFF), (0xC6, "I", 0xFFFFFFFF)], len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return head(0xA0, 31, [(0xD9, "B", 0xFF), (0xDA, "H", 0xFFFF), (0xDB, "I", 0xFFFFFFFF)], len(text)) + text
    if isinstance(value, dict):
        return pack_map(list(value.items()))
    if isinstance(value, Pairs):
        return pack_map(value)
    return head(0x90, 15, [(0xDC, "H", 0xFFFF), (0xDD, "I", 0xFFFFFFFF)], len(value)) + b"".join(map(pack, value))


class Incomplete(Exception):
    """More bytes must come first."""


NUMBERS = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
LENGTHS = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"}


class Unpacker:
    """Takes objects off the front of bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Incomplete
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def items(self, count):
        return [self.object() for _ in range(count)]

    def map(self, count):
        return dict(self.items(2) for _ in range(count))

    def object(self):
        first = self.number("B")
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 256
        if first < 0xC0:
            short = [self.map, self.items, self.text, self.text][first >> 4 & 3]
            return short(first & (0x1F if first >= 0xA0 else 0x0F))
        if first in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[first]
        if first in NUMBERS:
            return self.number(NUMBERS[first])
        length = self.number(LENGTHS[first])
        return (self.take if first < 0xC7 else self.text if first < 0xDC else self.items if first < 0xDE else self.map)(
            length
        )

    def text(self, length):
        return self.take(length).decode()


class Closed(Exception):
    """The daemon has closed the connection."""


class Failure(Exception):
    """A response that is an error, which is in `error`."""

    def __init__(self, error):
        super().__init__(f"{error['name']}: {error['message']}")
        self.error = error
        self.name = error["name"]


class Client:
    """One connection. Responses may be waited for in any order; notifications gather in `notes`."""

    def __init__(self, path, greet=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(TIMEOUT_S)
        self.inbox, self.fds, self.notes, self.answers, self.msgid = b"", [], [], {}, 0
        try:
            self.socket.connect(path)
            self.greeting = self.call("hello", version_min=1, version_max=1, client="test") if greet else None
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
        while self.fds:
            os.close(self.fds.pop())

    def send_bytes(self, data, fds=()):
        if fds:
            data = data[socket.send_fds(self.socket, [data], fds) :]
        if data:
            self.socket.sendall(data)

    def send(self, method, params=None, fds=(), **fields):
        """Sends a request and returns its msgid."""
        self.msgid += 1
        self.send_bytes(pack([0, self.msgid, method, [fields if params is None else params]]), fds)
        return self.msgid

    def receive(self):
        """The next message. Raises Closed at the end of the connection."""
        while True:
            try:
                unpacker = Unpacker(self.inbox)
                message = unpacker.object()
                self.inbox = self.inbox[unpacker.at :]
                return message
            except Incomplete:
                pass
            self.inbox += self.read()

    def read(self, most=65536):
        """Some bytes of the socket; descriptors that come with them gather in `fds`."""
        try:
            data, fds, flags, _ = socket.recv_fds(self.socket, most, 253)
        except ConnectionError:
            raise Closed from None
        if not data:
            raise Closed
        assert not flags & socket.MSG_CTRUNC
        self.fds += fds
        return data

    def wait(self, msgid):
        """A request's result; a Failure is raised."""
        while msgid not in self.answers:
            message = self.receive()
            if message[0] == 2:
                self.notes.append((message[1], message[2][0]))
            else:
                self.answers[message[1]] = (message[2], message[3])
        error, result = self.answers.pop(msgid)
        if error is not None:
            raise Failure(error)
        return result

    def call(self, method, params=None, fds=(), **fields):
        return self.wait(self.send(method, params, fds, **fields))

    def kernels(self, operation):
        """Returns what `algorithm` may name of an operation, from all pages."""
        found, page = [], {"next": 0}
        while "next" in page:
            page = self.call("server.kernels", {"from": page["next"]})
            found += page["kernels"]
        return [kernel for kernel in found if kernel.get("operation", "scan") == operation]

    def is_closed(self):
        """Reads to the end of the connection. A message that still comes is a fault."""
        try:
            raise AssertionError(f"instead of closing the connection the daemon sent {self.receive()}")
        except Closed:
            return True

    def create(self, size):
        """A host buffer from the daemon, mapped."""
        made = self.call("buffer.create", size=size, place="host")
        fds, self.fds = self.fds[: made["fds"]], self.fds[made["fds"] :]
        return Memory(made["buffer"], fds, made["segment"], size)

    def adopt(self, size, segment, room=None):
        """A host buffer of the client's own segments, each with room for `room` bytes."""
        fds = [memfd(room or segment) for _ in range(-(-size // segment))]
        made = self.call("buffer.import", fds=fds, params={"size": size, "segment": segment, "fds": len(fds)})
        return Memory(made["buffer"], fds, segment, size)


class RingClient(Client):
    """A connection with rings. What it sends takes the socket, unless put() writes it to the ring; what it is sent comes
    either way, as it never sleeps."""

    RINGS, BY_SOCKET = 4096, 1 << 31
    WRITTEN, READ = (0, 128), (64, 192)  # of ring 0, to the daemon, and of ring 1

    def __init__(self, path):
        self.memory = None
        super().__init__(path)
        self.call("rings.open")
        self.size = self.greeting["limits"]["ring_bytes"]
        self.fd = self.fds.pop(0)
        self.memory = mmap.mmap(self.fd, self.RINGS + 2 * self.size)
        self.sent = self.got = 0
        self.frame, self.by_socket = 0, False

    def close(self):
        super().close()
        if self.memory:
            os.close(self.fd)
            self.memory.close()
            self.memory = None

    def number(self, at):
        return struct.unpack_from("=Q", self.memory, at)[0]

    def set_number(self, at, value):
        struct.pack_into("=Q", self.memory, at, value % 2**64)

    def write(self, ring, at, data):
        """Bytes of a ring, from a position on."""
        for i, byte in enumerate(data):
            self.memory[self.RINGS + ring * self.size + (at + i) % self.size] = byte

    def put(self, data, word=None):
        """Writes a frame, which a daemon that sleeps does not see by itself."""
        self.write(0, self.sent, struct.pack("=I", len(data) if word is None else word) + data)
        self.sent += 4 + (len(data) + 3) // 4 * 4
        self.set_number(self.WRITTEN[0], 2 * self.sent)

    def send_bytes(self, data, fds=()):
        if self.memory:
            self.put(b"", self.BY_SOCKET | len(data))
        super().send_bytes(data, fds)

    def has_ended(self):
        try:
            return select.select([self.socket], [], [], 0)[0] and not self.socket.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            return True

    def read(self, most=65536):
        deadline = time.monotonic() + TIMEOUT_S
        ended = False
        while self.memory and not self.frame:
            if self.number(self.WRITTEN[1]) // 2 != self.got:
                at = self.RINGS + self.size + self.got % self.size
                word = struct.unpack_from("=I", self.memory, at)[0]
                self.frame, self.by_socket = word & ~self.BY_SOCKET, bool(word & self.BY_SOCKET)
                self.got += 4
            elif ended:
                raise Closed
            elif self.has_ended():
                ended = True  # what the daemon wrote to the ring before it closed the socket is there by now
            else:
                assert time.monotonic() < deadline
                time.sleep(0.0005)
        if not self.memory:
            return super().read()
        data = super().read(self.frame) if self.by_socket else self.take()
        self.frame -= len(data)
        self.set_number(self.READ[1], self.got)
        return data

    def take(self):
        """The bytes of a frame in the ring."""
        base = self.RINGS + self.size
        data = bytes(self.memory[base + (self.got + i) % self.size] for i in range(self.frame))
        self.got += (len(data) + 3) // 4 * 4
        return data


def memfd(size, flags=os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING):
    fd = os.memfd_create("test", flags)
    os.ftruncate(fd, size)
    return fd


class Memory:
    """A buffer as the client sees it: segments, one after the other. Takes over the descriptors."""

    def __init__(self, buffer, fds, segment, size):
        self.buffer, self.segment, self.size = buffer, segment, size
        self.maps = [mmap.mmap(fd, segment) for fd in fds]
        for fd in fds:
            os.close(fd)

    def pieces(self, offset, size):
        """(map, place in it, bytes) of each piece that a range of bytes consists of."""
        while size:
            index, at = divmod(offset, self.segment)
            count = min(size, self.segment - at)
            yield self.maps[index], at, count
            offset, size = offset + count, size - count

    def read(self, offset=0, size=None):
        size = self.size - offset if size is None else size
        return b"".join(view[at : at + count] for view, at, count in self.pieces(offset, size))

    def write(self, data, offset=0):
        done = 0
        for view, at, count in self.pieces(offset, len(data)):
            view[at : at + count] = data[done : done + count]
            done += count


def tensor(buffer, shape, strides=None, dtype="f32", offset=0):
    """A tensor of a job; without strides the elements lie side by side."""
    if strides is None:
        strides = [SIZES[dtype]]
        for length in reversed(shape[1:]):
            strides.insert(0, strides[0] * length)
    return {"buffer": buffer, "offset": offset, "dtype": dtype, "shape": list(shape), "strides": list(strides)}


def scan(target, output=None, axis=None, passes=("forward",), **more):
    """Params of a job.submit; in place without an output, along the last axis without an axis."""
    axis = len(target["shape"]) - 1 if axis is None else axis
    return {"input": target, "output": output or target, "axis": axis, "passes": list(passes), **more}


def eventually(condition, seconds=TIMEOUT_S):
    """Waits until the condition holds, and returns what it returned last."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def pack_f32(values):
    return struct.pack(f"={len(values)}f", *values)


def unpack_f32(data):
    return list(struct.unpack(f"={len(data) // 4}f", data))

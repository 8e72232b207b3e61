#!/usr/bin/env python3
"""The package's declarations of libscand: sizes, offsets and numbers are those of abi.txt, which the C compiler made.

    test_declarations.py ABI.TXT
"""

import re
import sys

import numpy as np

from scand import dtypes, layout
from scand._ffi import ffi
from scand._library import lib, number, words


def differences(line):
    """A line of abi.txt: the package's number, and the line's."""
    if match := re.fullmatch(r"struct (\w+): (\d+) bytes", line):
        return ffi.sizeof(f"struct {match[1]}"), int(match[2])
    if match := re.fullmatch(r"struct (\w+)\.(\w+): at (\d+), (\d+) bytes", line):
        member = dict(ffi.typeof(f"struct {match[1]}").fields)[match[2]]
        return (member.offset, ffi.sizeof(member.type)), (int(match[3]), int(match[4]))
    match = re.fullmatch(r"(SCAND_\w+) = (-?\d+)", line)
    return getattr(lib, match[1]), int(match[2])


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        lines = file.read().splitlines()[1:]
    wrong = [f"{line}: {got}" for line in lines for got, expected in [differences(line)] if got != expected]
    for name, word in layout.DTYPES.items():
        size = np.dtype(name).itemsize // (2 if np.dtype(name).kind == "c" else 1)
        if lib.scand_dtype_bytes(number("dtype", word)) != size:
            wrong.append(f"{name} has not the size of {word}")
    assert dtypes.scan_dtypes(np.dtype("i1"), "sum", None).final == np.int64 and "f32" in words("dtype")
    print("\n".join(wrong) or f"{len(lines)} sizes, places and numbers are those of the header")
    print(f"{len(lines) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main())

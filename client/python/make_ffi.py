#!/usr/bin/env python3
"""Writes the module through which the package calls libscand: declarations made by the C preprocessor from scand.h and
the headers beside this file.

Usage: make_ffi.py COMPILER OUTPUT INCLUDE_FOLDER...
"""

import os
import re
import subprocess
import sys
import tempfile

import cffi

# cffi knows what these declare, and what systems put in there besides is nothing that it could read.
SYSTEM_HEADERS = ("stdbool.h", "stddef.h", "stdint.h")
HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = ("scand/scand.h", *(os.path.join(HERE, name) for name in ("allocator.h", "dlpack.h", "cuda_driver.h")))
NUMBER = re.compile(r"^#define (SCAND_\w+) +(\d+)$", re.MULTILINE)


def preprocess(compiler, includes, *options):
    with tempfile.TemporaryDirectory(prefix="scand") as folder:
        for name in SYSTEM_HEADERS:
            with open(os.path.join(folder, name), "w", encoding="ascii"):
                pass
        flags = [f"-I{include}" for include in (folder, *includes)]
        headers = [word for header in HEADERS for word in ("-include", header)]
        command = [compiler, "-E", "-P", "-nostdinc", *options, *flags, *headers, "-x", "c", os.devnull]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declarations(compiler, includes):
    """The declarations of the headers, and the macros that are numbers."""
    numbers = NUMBER.findall(preprocess(compiler, includes, "-dM"))
    return preprocess(compiler, includes) + "".join(f"#define {name} {value}\n" for name, value in sorted(numbers))


def main():
    compiler, output, *includes = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.cdef(declarations(compiler, includes))
    ffi.set_source("scand._ffi", None)
    ffi.emit_python_code(output)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The parts of scand.h that a built program relies on: the sizes of public structs, the offsets of their members, and
the values of enumerators. They are compared with abi.txt, which names their soname: while libscand keeps that soname,
structs do not change, and enumerators do not change their numbers.

Usage: abi.py COMPILER LIBRARY INCLUDE_FOLDER... compares; with --write before COMPILER it writes abi.txt anew."""

import os
import re
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.txt")
SKIPPED = 77


def soname_of(library):
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return re.search(r"\(SONAME\).*\[(.*)\]", dynamic).group(1)


def structs_of(header):
    """Each public struct with the names of its members."""
    for name, body in re.findall(r"struct\s+(scand_\w+)\s*\{([^{}]*)\}", header):
        declarators = re.split(r"[;,]", re.sub(r"\[[^\]]*\]", "", body))
        yield name, [re.search(r"(\w+)\s*$", one).group(1) for one in declarators if one.strip()]


def enumerators_of(header):
    for body in re.findall(r"enum\s+scand_\w+\s*\{([^{}]*)\}", header):
        for one in body.split(","):
            name = one.split("=")[0].strip()
            if name and not name.endswith("_COUNT"):
                yield name


def printer(header):
    """A program that prints the listing, a line for each thing."""
    lines = []
    for name, members in structs_of(header):
        lines.append(f'printf("struct {name}: %zu bytes\\n", sizeof(struct {name}));')
        for member in members:
            where = f"offsetof(struct {name}, {member}), sizeof((struct {name} *)0)->{member}"
            lines.append(f'printf("struct {name}.{member}: at %zu, %zu bytes\\n", {where});')
    lines += [f'printf("{name} = %d\\n", (int){name});' for name in enumerators_of(header)]
    return "#include <stdio.h>\n#include <scand/scand.h>\nint main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"


def listing_of(compiler, includes):
    flags = [f"-I{folder}" for folder in includes]
    with tempfile.TemporaryDirectory(prefix="scand") as folder:
        source, program = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <scand/scand.h>\n")
        header = subprocess.run([compiler, "-E", "-P", *flags, source], capture_output=True, text=True, check=True)
        with open(source, "w", encoding="ascii") as file:
            file.write(printer(header.stdout))
        subprocess.run([compiler, *flags, source, "-o", program], check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def differences(golden, now):
    """Returns the lines that would break programs, which are lost ones and new members, and the new enumerators."""
    new = [line for line in now if line not in golden]
    broken = [f"- {line}" for line in golden if line not in now]
    broken += [f"+ {line}" for line in new if line.startswith("struct ")]
    return broken, [line for line in new if not line.startswith("struct ")]


def main():
    words = sys.argv[1:]
    write = words[:1] == ["--write"]
    compiler, library, *includes = words[write:]
    if sys.maxsize < 2**32:
        print("the listing is of machines with pointers of 64 bits")
        return SKIPPED
    soname, now = soname_of(library), listing_of(compiler, includes)
    if write:
        with open(GOLDEN, "w", encoding="ascii") as file:
            file.write("\n".join([soname, *now]) + "\n")
        return 0
    with open(GOLDEN, encoding="ascii") as file:
        golden_soname, *golden = file.read().splitlines()
    again = f"{sys.argv[0]} --write {' '.join(words)}"
    if soname != golden_soname:
        print(f"abi.txt is of {golden_soname}, the library is {soname}; write it anew: {again}")
        return 1
    broken, added = differences(golden, now)
    if broken:
        print(*broken, sep="\n")
        print(f"programs built for {soname} would break: raise the minor version in client/include/scand/version.h, which")
        print(f"is part of the soname, unless no release has {soname} yet; then {again}")
        return 1
    if added:
        print(*added, sep="\n")
        print(f"abi.txt lacks these enumerators, whose numbers are to stay from now on; write it anew: {again}")
        return 1
    print(f"{soname}: {len(golden)} sizes, places and numbers are as they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())

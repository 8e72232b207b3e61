#!/usr/bin/env python3
"""Checks by the linker's symbols that no objects of a part of the program need each other in a circle.

Usage: circles.py BUILD [PART...]: a build folder, and which of PARTS to look at; all of them without any.

An object needs the objects of its part that define its undefined symbols. Objects in a circle can only be read, tested
and changed together: move functions between their files until each file needs only files below it.
"""
import collections
import pathlib
import subprocess
import sys

# Each part with the folder of its objects in a build.
PARTS = {
    "protocol": "protocol/CMakeFiles/protocol.dir",
    "kernels": "kernels/CMakeFiles/kernels.dir",
    "libscand": "client/CMakeFiles/libscand.dir",
    "scanctl": "client/scanctl/CMakeFiles/scanctl_parts.dir",
    "daemon/core": "daemon/CMakeFiles/daemon_core.dir",
    "daemon": "daemon/CMakeFiles/scand.dir",
}
# Parts whose circles are known and have yet to be untied.
TIED = {"libscand", "scanctl", "daemon/core", "daemon"}


def read_objects(folder):
    """What each object below a folder defines, and what it needs of others: two dicts of sets of symbols."""
    defined, needed = {}, {}
    for path in sorted(folder.rglob("*.o")):
        name = path.relative_to(folder).as_posix().removesuffix(".o")
        listing = subprocess.run(["nm", "-g", "--format=posix", path], check=True, capture_output=True, text=True)
        symbols = [line.split()[:2] for line in listing.stdout.splitlines() if line]
        defined[name] = {symbol for symbol, kind in symbols if kind.isupper() and kind != "U"}
        needed[name] = {symbol for symbol, kind in symbols if kind == "U"}
    return defined, needed


def edges_of(defined, needed):
    """For each object the objects that it needs, each with the symbols that it needs it for."""
    homes = {symbol: name for name, symbols in defined.items() for symbol in symbols}
    edges = {name: collections.defaultdict(set) for name in defined}
    for name, symbols in needed.items():
        for symbol in symbols:
            home = homes.get(symbol, name)
            if home != name:
                edges[name][home].add(symbol)
    return edges


def circles_of(edges):
    """Tarjan's strongly connected components of more than one object."""
    order, low, stack, circles = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in edges[name]:
            if other not in order:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == order[name]:
            place = stack.index(name)
            circle = stack[place:]
            del stack[place:]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for name in edges:
        if name not in order:
            visit(name)
    return circles


def describe(part, circle, edges):
    lines = [f"{part}: {len(circle)} objects need each other in a circle: {', '.join(circle)}"]
    for name in circle:
        for other in circle:
            if other in edges[name]:
                lines.append(f"    {name} needs of {other}: {', '.join(sorted(edges[name][other]))}")
    return "\n".join(lines)


def main(build, *parts):
    wrong = 0
    for part in parts or PARTS:
        defined, needed = read_objects(pathlib.Path(build) / PARTS[part])
        if not defined:
            print(f"circles: {build} has no objects of {part}: build it first")
            return 1
        edges = edges_of(defined, needed)
        circles = circles_of(edges)
        for circle in circles:
            print(describe(part, circle, edges))
        if part in TIED:
            print(f"{part}: {'circles are still allowed' if circles else 'has no circle any more: take it out of TIED'}")
            wrong += not circles
        else:
            wrong += len(circles)
    if not wrong:
        print("circles: no objects need each other in a circle")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

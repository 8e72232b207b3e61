#!/usr/bin/env python3
"""Checks by the linker's symbols that no objects of a target need each other in a circle.

Usage: circles.py LIST [TARGET...]: the list that CMake writes (objects.txt in the build folder: a target and its
objects on a line, separated by tabs), and which targets to look at; all of them without any.

An object needs the objects of its target that define its undefined symbols. Objects in a circle can only be read,
tested and changed together: move functions between their files until each file needs only files below it.
"""
import collections
import os
import pathlib
import subprocess
import sys

def read_objects(paths):
    """Returns what each object defines, and what it needs of others: two dicts of sets of symbols, by short names."""
    defined, needed = {}, {}
    paths = [os.path.normpath(path) for path in paths]
    start = len(os.path.commonpath(paths)) + 1 if len(paths) > 1 else 0
    listing = subprocess.run(["nm", "-gA", "--format=posix", *paths], check=True, capture_output=True, text=True)
    for path in paths:
        defined[path[start:-2]], needed[path[start:-2]] = set(), set()
    for line in listing.stdout.splitlines():
        path, _, rest = line.partition(".o: ")
        symbol, kind = rest.split()[:2]
        (needed if kind == "U" else defined)[path[start:]].add(symbol)
    return defined, needed


def edges_of(defined, needed):
    """Returns for each object the objects that it needs, each with the symbols that it needs it for."""
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


def describe(target, circle, edges):
    lines = [f"{target}: {len(circle)} objects need each other in a circle: {', '.join(circle)}"]
    for name in circle:
        for other in circle:
            if other in edges[name]:
                lines.append(f"    {name} needs of {other}: {', '.join(sorted(edges[name][other]))}")
    return "\n".join(lines)


def main(list_path, *chosen):
    wrong = 0
    for line in pathlib.Path(list_path).read_text().splitlines():
        target, *paths = line.split("\t")
        if chosen and target not in chosen:
            continue
        edges = edges_of(*read_objects(paths))
        circles = circles_of(edges)
        for circle in circles:
            print(describe(target, circle, edges))
        wrong += len(circles)
    if not wrong:
        print("circles: there are none")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

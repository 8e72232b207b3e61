#!/usr/bin/env python3
"""The package's modules: none needs itself by way of others, whether for running or for types, and mypy finds nothing."""

import ast
import graphlib
import importlib.util
import inspect
import os
import subprocess
import sys
import unittest

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scand")


def modules():
    return sorted(name.removesuffix(".py") for name in os.listdir(PACKAGE) if name.endswith(".py") and name != "_ffi.py")


def imported(source, all_modules):
    """The modules of the package that a source names in imports, wherever they stand."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
    return found & set(all_modules)


class Modules(unittest.TestCase):
    def test_no_circles(self):
        needs = {}
        for name in modules():
            with open(os.path.join(PACKAGE, f"{name}.py"), encoding="utf-8") as file:
                needs[name] = imported(file.read(), modules())
        self.assertIn("memory", needs["layout"])
        self.assertIn("client", imported("if TYPE_CHECKING:\n    from .client import Client\n", ["client"]))
        graphlib.TopologicalSorter(needs).prepare()  # raises CycleError, which has the circle in it
        with self.assertRaises(graphlib.CycleError):
            graphlib.TopologicalSorter({**needs, "layout": {"client"}}).prepare()

    def test_importing_needs_little(self):
        """Modules that only some programs use are imported when these need them."""
        program = "import sys, {}; print([name for name in {} if name in sys.modules])"
        some = ["asyncio", "concurrent.futures", "ctypes", "logging", "scand.pylops", "scand.dask", "scand.segy"]
        there = [
            subprocess.run([sys.executable, "-c", program.format(package, some)], capture_output=True, text=True, check=True).stdout
            for package in ("numpy", "scand")
        ]
        self.assertEqual(*there)

    def test_version(self):
        import scand

        self.assertRegex(scand.__version__, r"^\d+\.\d+\.\d+$")

    def test_names_that_are_not_there(self):
        """Modules are imported by name, and who looks for an operation is told where it is."""
        program = "import scand; print(scand.segy.read.__name__, hasattr(scand, 'nothing'))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "read False\n")
        import scand

        for name in "triangle", "block_sum":
            with self.assertRaisesRegex(AttributeError, rf'^module .scand. has no attribute .{name}.; it is an operation: scand.run\(x, \[\("{name.replace("_", "-")}"'):
                getattr(scand, name)
        with self.assertRaisesRegex(AttributeError, "^module .scand. has no attribute .median.$"):
            getattr(scand, "median")

    def test_everything_public_is_described(self):
        import scand

        bare = []
        for name in scand.__all__:
            thing = getattr(scand, name)
            members = vars(thing).items() if isinstance(thing, type) else ()
            named = [(name, thing), *((f"{name}.{part}", member) for part, member in members if not part.startswith("_"))]
            bare += [label for label, one in named if callable(one) and not (inspect.getdoc(one) or "").strip()]
        self.assertEqual(bare, [])

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "there is no mypy here")
    def test_types(self):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, PACKAGE], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)


if __name__ == "__main__":
    unittest.main()

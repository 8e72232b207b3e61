#!/usr/bin/env python3
"""The examples of the operations in shell, Python and C: as readers see them, and run, with their bits compared.

Usage: examples.py BUILD_FOLDER runs all of them, without a daemon (SCAND_FALLBACK=cpu). Python's are
left out, with a word, where there is no NumPy.
"""

import ast
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from operations import CODES, EXAMPLES, TOP, sections  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
DTYPES = {"<f4": "SCAND_DTYPE_F32", "<f8": "SCAND_DTYPE_F64", "<i4": "SCAND_DTYPE_I32", "<i8": "SCAND_DTYPE_I64"}


def npy_write(path, array):
    header = f"{{'descr': '{array.dtype}', 'fortran_order': False, 'shape': {array.shape!r}, }}"
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.to_bytes())


def npy_read(path):
    """The dtype, the shape and the bytes of a .npy file."""
    data = path.read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10 : 10 + length].decode())
    return header["descr"], header["shape"], data[10 + length :]


def identifier(name):
    return name.replace("-", "_")


def in_shell(example):
    words = [example.operation]
    words += [name if value is True else f"{name}={value}" for name, value in example.parameters.items()]
    words += [f"{name}={name}.npy" for name in example.operands]
    return f"scanctl run '{' '.join(words)}' x.npy -o y.npy"


def in_python(example, dtype):
    """`dtype` is what the shell's result has: Python's has that of the input unless it is told otherwise."""
    lines = ["import numpy as np", "import scand", "", 'x = np.load("x.npy")']
    lines += [f'{name} = np.load("{name}.npy")' for name in example.operands]
    parameters = [f'"{name}": {value!r}'.replace("'", '"') for name, value in example.parameters.items()]
    parameters += [f'"{name}": {name}' for name in example.operands]
    told = "" if dtype == example.input.dtype else f', dtype="{dtype}"'
    lines.append(f'y = scand.run(x, [("{example.operation}", {{{", ".join(parameters)}}})]{told})')
    return "\n".join(lines)


def c_set(name, value):
    if isinstance(value, str):
        return f'scand_task_set(task, "{name}", "{value}");'
    return f'scand_task_set_number(task, "{name}", {int(value) if value is True else value});'


def in_c(example):
    name = identifier(example.operation)
    tensors = "".join(f", const struct scand_tensor *{operand}" for operand in example.operands)
    lines = [
        f"int {name}_example(struct scand *daemon, const struct scand_tensor *x, const struct scand_tensor *y{tensors})",
        "{",
        "    struct scand_task *task;",
        "    struct scand_job *job;",
        "    int status = scand_task_create(&task);",
        "    if (status)",
        "        return status;",
        "    scand_task_input(task, x);",
        "    scand_task_output(task, y);",
        f"    scand_task_axis(task, {len(example.input.shape) - 1});",
        f'    scand_task_step(task, "{example.operation}");',
        *[f"    {c_set(parameter, value)}" for parameter, value in example.parameters.items()],
        *[f'    scand_task_operand(task, "{operand}", {operand});' for operand in example.operands],
        "    status = scand_task_submit(daemon, task, NULL, NULL, &job); /* says what was refused above, too */",
        "    scand_task_destroy(task);",
        "    if (status)",
        "        return status;",
        "    status = scand_wait(job, -1, NULL);",
        "    scand_job_release(job);",
        "    return status;",
        "}",
    ]
    return "\n".join(lines)


class Build:
    """The parts that were built: the tool, the library, the package."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.scanctl = self.folder / "client/scanctl/scanctl"
        self.library = self.folder / "client/lib"
        self.package = self.folder / "client/python"
        self.environment = dict(
            os.environ,
            SCAND_SOCKET="/nonexistent/scand.sock",
            SCAND_FALLBACK="cpu",
            LD_LIBRARY_PATH=f"{self.library}:{self.folder / 'daemon/local'}",
            PATH=f"{self.scanctl.parent}:{os.environ['PATH']}",
            PYTHONPATH=str(self.package),
            PYTHONDONTWRITEBYTECODE="1",
        )

    def run(self, words, folder):
        result = subprocess.run(words, cwd=folder, env=self.environment, capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(f"{' '.join(map(str, words))[:400]}\nended with {result.returncode}: {result.stdout}{result.stderr}")


def write_inputs(example, folder):
    npy_write(folder / "x.npy", example.input)
    for name, array in example.operands.items():
        npy_write(folder / f"{name}.npy", array)


def tensor_words(dtype, shape, path):
    return [DTYPES[dtype], "x".join(map(str, shape)), str(path)]


def run_c(build, example, folder, dtype, shape):
    """The bytes that the example in C makes, of an output of this dtype and shape."""
    arguments = ", ".join(f"&tensors[{i}]" for i in range(2 + len(example.operands)))
    name = identifier(example.operation)
    source = folder / "example.c"
    source.write_text(
        f"#include <scand/scand.h>\n\nint example(struct scand *daemon, const struct scand_tensor *tensors);\n"
        f"{in_c(example).split(chr(10))[0]};\n\n{in_c(example)}\n\n"
        f"int example(struct scand *daemon, const struct scand_tensor *tensors)\n{{\n"
        f"    return {name}_example(daemon, {arguments});\n}}\n"
    )
    includes = [f"-I{TOP / 'client/include'}", f"-I{TOP / 'protocol/include'}"]
    build.run([os.environ.get("CC", "cc"), "-std=c17", "-Wall", "-Wextra", "-Werror", *includes, str(source), str(FOLDER / "harness.c"),
               f"-L{build.library}", "-lscand", "-o", str(folder / "example")], folder)
    files = [(array.dtype, array.shape, folder / f"{operand}.npy") for operand, array in example.operands.items()]
    shape = tuple(shape) + (1,) * (len(example.input.shape) - len(shape))  # of a number for each row
    files = [(example.input.dtype, example.input.shape, folder / "x.npy"), (dtype, shape, folder / "c.npy"), *files]
    (folder / "c.npy").write_bytes((folder / "y.npy").read_bytes()[: -len(npy_read(folder / "y.npy")[2]) or None])
    build.run([str(folder / "example"), *[word for file in files for word in tensor_words(*file)]], folder)
    return npy_read(folder / "c.npy")[2]


def has_numpy(build):
    return subprocess.run([sys.executable, "-c", "import numpy, scand"], env=build.environment, capture_output=True).returncode == 0


def run_all(build, compiles=True):
    """Each example with its output: dtype, shape and numbers. Ends the program where two languages differ."""
    with_python, outputs = has_numpy(build), {}
    for example in EXAMPLES:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            write_inputs(example, folder)
            build.run(["sh", "-c", in_shell(example)], folder)
            dtype, shape, data = npy_read(folder / "y.npy")
            if with_python:
                build.run([sys.executable, "-c", in_python(example, dtype) + f'\nnp.save("p.npy", y)'], folder)
                if npy_read(folder / "p.npy")[2] != data:
                    raise SystemExit(f"{example.operation}: Python and the shell have different results")
            if compiles and run_c(build, example, folder, dtype, shape) != data:
                raise SystemExit(f"{example.operation}: C and the shell have different results")
            outputs[example.operation] = (dtype, shape, struct.unpack(f"<{len(data) // int(dtype[2:])}{CODES[dtype]}", data))
    if not with_python:
        print("skipped: the examples in Python; there is no NumPy, or no package in the build")
    return outputs


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sections()
    count = len(run_all(Build(sys.argv[1])))
    print(f"examples: {count} operations, the same bits in each language")


if __name__ == "__main__":
    main()

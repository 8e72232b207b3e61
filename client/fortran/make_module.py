#!/usr/bin/env python3
"""Writes the Fortran module `scand` from what the C preprocessor makes of scand.h: every constant, struct and function.

Usage: make_module.py COMPILER OUTPUT INCLUDE_FOLDER..., or with --sizes first a program that prints the sizes of the
module's types, to be compared with those of C.
"""

import os
import re
import subprocess
import sys

NUMBERS = {
    "char": "character(kind=c_char)", "int": "integer(c_int)", "double": "real(c_double)", "size_t": "integer(c_size_t)",
    "uint8_t": "integer(c_int8_t)", "uint32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
    "uint64_t": "integer(c_int64_t)",
}
WIDTH = 120  # columns of a line; Fortran allows 132

HEAD = """\
! libscand for Fortran, made from scand.h by make_module.py: see there for what everything means.
!
! Names are those of C, but for types, which end in _t, and for statuses, which begin with SCAND_STATUS_: Fortran does not
! tell SCAND_DEVICE from scand_device. Handles are type(c_ptr). Arguments that may be NULL are optional, or take c_null_ptr
! or c_null_funptr. Texts that go in end in c_null_char; those that come out are made Fortran's by scand_text. C counts axes
! from the slowest one: an array a(samples, traces) has the shape [traces, samples], and its columns are scanned along axis 1.
!
! It is Fortran 2018, compiled with the program: modules are of one compiler alone.
!     gfortran $(pkg-config --variable=includedir scand)/scand/scand.f90 program.f90 $(pkg-config --libs scand)
module scand
  use, intrinsic :: iso_c_binding
  implicit none
  public
"""
TEXT = """
contains

  ! A text of the library's, as long as it is.
  function scand_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: copy
    character(kind=c_char), pointer :: bytes(:)
    integer :: i, length
    interface
      integer(c_size_t) function strlen(text) bind(C)
        import :: c_ptr, c_size_t
        type(c_ptr), value :: text
      end function
    end interface
    copy = ''
    if (.not. c_associated(text)) return
    length = int(strlen(text))
    call c_f_pointer(text, bytes, [length])
    deallocate(copy)
    allocate(character(length) :: copy)
    do i = 1, length
      copy(i:i) = bytes(i)
    end do
  end function
end module
"""


def preprocess(compiler, includes, *options):
    flags = [f"-I{folder}" for folder in includes]
    command = [compiler, "-E", "-P", *options, *flags, "-include", "scand/scand.h", "-x", "c", os.devnull]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def constants(compiler, includes, header):
    """Each number's name and value: macros, then enumerators."""
    macros = re.findall(r"^#define (SCAND_\w+) +(\d+)$", preprocess(compiler, includes, "-dM"), re.MULTILINE)
    yield from sorted(macros)
    for enum, body in re.findall(r"enum\s+scand_(\w+)\s*\{([^{}]*)\}", header):
        value = -1
        for one in filter(None, (part.strip() for part in body.split(","))):
            name, _, given = (word.strip() for word in one.partition("="))
            value = int(given) if given else value + 1
            yield name.replace("SCAND_", "SCAND_STATUS_") if enum == "status" else name, value


def structs(header):
    for name, body in re.findall(r"struct\s+(scand_\w+)\s*\{([^{}]*)\}", header):
        yield name, [member.strip() for member in body.split(";") if member.strip()]


def components(member):
    """The lines that declare a struct's member, or several of one type; what is not set is zero."""
    first, *others = member.split(",")
    kind, star, name, count = re.fullmatch(r"(?:const )?((?:struct |enum )?\w+) (\**)(\w+)(?:\[([^]]+)\])?", first).groups()
    for name, count in [(name, count)] + [re.fullmatch(r"\s*(\w+)(?:\[([^]]+)\])?", one).groups() for one in others]:
        shape = f"({eval(count, {'__builtins__': {}})})" if count else ""  # such as 24 - 1, of our own header
        if star:
            yield f"type(c_ptr) :: {name} = c_null_ptr"
        elif kind.startswith("struct "):
            yield f"type({kind[7:]}_t) :: {name}{shape}"
        else:
            fortran = NUMBERS["int" if kind.startswith("enum ") else kind]
            zero = {"c": "c_null_char", "i": "0", "r": "0"}[fortran[0]]
            yield f"{fortran} :: {name}{shape} = {zero}"


def functions(header, known):
    plain = re.sub(r"\{[^{}]*\}", "", header)
    for result, name, arguments in re.findall(r"^((?:const )?[\w ]+?[ *]+)(scand_\w+)\(([^()]*)\);", plain, re.MULTILINE):
        if not result.startswith("typedef"):
            yield result.strip(), name, [] if arguments == "void" else [one.strip() for one in arguments.split(",")]


def argument(declaration, following, known):
    """A dummy argument's name and its declaration."""
    kind, stars, name = re.fullmatch(r"((?:const )?(?:struct |enum )?\w+) ((?:\*const )?\**)(\w+)", declaration).groups()
    constant, kind = kind.startswith("const "), kind.removeprefix("const ")
    intent = "intent(in)" if constant else "intent(inout)"
    if kind == "scand_progress":
        return name, f"type(c_funptr), value :: {name}"
    if stars == "*const *":
        return name, f"type(c_ptr), intent(in) :: {name}(*)"
    if stars == "**" or (stars and kind.startswith("struct ") and following == "size_t count" and not constant):
        many = "(*)" if name == "out" and following is None and "count" in declaration else ""
        return name, f"type(c_ptr), intent(out) :: {name}{many}"
    if stars and kind.startswith("struct ") and kind[7:] in known:
        rows = "(*)" if following in ("size_t count", "size_t row_bytes") else ""
        return name, f"type({kind[7:]}_t), optional, {intent} :: {name}{rows}"
    if stars and kind == "char":
        return name, f"character(kind=c_char), optional, {intent} :: {name}(*)"
    if stars and kind in NUMBERS:
        return name, f"{NUMBERS[kind]}, optional, intent(out) :: {name}"
    if stars:
        return name, f"type(c_ptr), value :: {name}"
    return name, f"{NUMBERS['int' if kind.startswith('enum ') else kind]}, value :: {name}"


def wrapped(line, indent):
    """A statement on as many lines as it takes."""
    lines = [" " * indent + line]
    while len(lines[-1]) > WIDTH:
        cut = lines[-1].rindex(", ", 0, WIDTH) + 2
        lines[-1:] = [lines[-1][:cut] + "&", " " * (indent + 4) + lines[-1][cut:]]
    return lines


def interface(result, name, arguments, known):
    dummies = [argument(one, (arguments[i + 1 :] or [None])[0], known) for i, one in enumerate(arguments)]
    if name in ("scand_submit_many", "scand_task_submit_many"):  # functions that fill an array of handles
        dummies[-1] = ("out", "type(c_ptr), intent(out) :: out(*)")
    listed = ", ".join(dummy for dummy, _ in dummies)
    pointer = "*" in result
    kind = result.removeprefix("const ")
    if result == "void":
        head, end = f"subroutine {name}({listed}) bind(C)", "subroutine"
    else:
        made = "type(c_ptr)" if pointer else NUMBERS["int" if kind.startswith("enum ") else kind]
        head, end = f"{made} function {name}({listed}) bind(C)", "function"
    lines = wrapped(head, 4) + ["      import"]
    for _, declaration in dummies:
        lines += wrapped(declaration, 6)
    return [*lines, f"    end {end}"]


def module(compiler, includes):
    header = preprocess(compiler, includes)
    known = dict(structs(header))
    lines = [HEAD]
    for name, value in constants(compiler, includes, header):
        lines.append(f"  integer(c_int), parameter :: {name} = {value}")
    for name, members in known.items():
        lines += ["", f"  type, bind(C) :: {name}_t"]
        lines += [f"    {one}" for member in members for one in components(member)]
        lines.append("  end type")
    lines += ["", "  interface"]
    for result, name, arguments in functions(header, known):
        lines += interface(result, name, arguments, known)
    return "\n".join([*lines, "  end interface"]) + "\n" + TEXT


def sizes(compiler, includes):
    names = [name for name, _ in structs(preprocess(compiler, includes))]
    lines = ["program sizes", "  use scand", "  implicit none"]
    lines += [f"  type({name}_t) :: {name}_1" for name in names]
    lines += [f"  print '(a,i0,a)', 'struct {name}: ', c_sizeof({name}_1), ' bytes'" for name in names]
    return "\n".join([*lines, "end program"]) + "\n"


def main():
    words = sys.argv[1:]
    make = sizes if words[0] == "--sizes" else module
    compiler, output, *includes = words[make is sizes :]
    with open(output, "w", encoding="ascii") as file:
        file.write(make(compiler, includes))


if __name__ == "__main__":
    main()

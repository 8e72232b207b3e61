#!/usr/bin/env python3
"""The manual page scand.3: each call of scand.h with the first sentence of its comment, and every enumerator.

Usage: page.py COMPILER INCLUDE_FOLDER... compares the page with the headers; with --write first it writes it anew.
"""

import os
import re
import subprocess
import sys
import textwrap

FOLDER = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(FOLDER, "scand.3")
HEADER = os.path.join(FOLDER, "..", "include", "scand", "scand.h")
HEAD = r""".\" Made of scand.h by page.py: see there how.
.TH SCAND 3 "" "scand" "Library calls"
.SH NAME
scand \- scans and reductions on the machine's GPU, or without one
.SH SYNOPSIS
.nf
.B #include <scand/scand.h>
.B cc program.c $(pkg-config --cflags --libs scand)
.fi
.SH DESCRIPTION
.B libscand
gives programs the GPU of a machine through the daemon
.BR scand (8).
Where
.B SCAND_FALLBACK=cpu
is set and no daemon answers, they compute in their own process, with the same bits; see
.BR scand_is_local .
Where
.B SCAND_SMALL_JOBS=here
is set they compute small jobs themselves; see
.BR scand_options_set .
Jobs that a daemon refuses since it is about to stop are the next daemon's: programs take no notice of an upgrade.
This page lists the calls; the header
.I scand/scand.h
has their arguments and results, the rules of who frees what, and an example.
Calls that can fail return an
.IR "enum scand_status" ,
0 being
.BR SCAND_OK ;
after a failure
.BR scand_message ()
says what was wrong.
.SH CALLS
"""
TAIL = r""".SH FILES
Below the folder into which scand is installed, as
.IR /usr/local :
.TP
.I share/doc/scand/examples
Programs in C and Fortran, to be compiled as they are.
.TP
.I include/scand/scand.f90
The Fortran module.
.SH SEE ALSO
.BR scanctl (1),
.BR scand (8)
"""


def calls(header):
    """Groups of calls that share a comment, with its first sentence."""
    body = header[header.index("extern \"C\"") :]
    body = re.sub(r"^(?:struct|enum) \w+ \{.*?^\};\n", "", body, flags=re.DOTALL | re.MULTILINE)
    comment, groups = "", []
    pattern = r"/\*(?P<comment>.*?)\*/\n|^(?P<call>(?:const )?\w[\w ]*?[ *]+(?P<name>scand_\w+)\([^;]*?\));[ ]*(?:/\*(?P<after>.*?)\*/)?"
    for match in re.finditer(pattern, body, flags=re.DOTALL | re.MULTILINE):
        if match["comment"] is not None:
            comment, fresh = match["comment"], True
            continue
        if match["call"].startswith("typedef"):
            continue
        call = " ".join(match["call"].split())
        if match["after"]:
            groups.append(([call], sentence(match["after"])))
            fresh = True
        elif fresh:
            groups.append(([call], sentence(comment)))
            fresh = False
        else:
            groups[-1][0].append(call)
    return groups


def sentence(comment):
    text = " ".join(line.strip().removeprefix("*").strip() for line in comment.splitlines()).strip()
    first = re.split(r"(?<=[a-z)])[.:] (?=[A-Z])|[.:]  ", text)[0].rstrip(".:")
    return first[0].upper() + first[1:] + "."


def enumerators(compiler, includes):
    flags = [f"-I{folder}" for folder in includes]
    command = [compiler, "-E", "-P", *flags, "-include", "scand/scand.h", "-x", "c", os.devnull]
    header = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for enum, body in re.findall(r"enum\s+(scand_\w+)\s*\{([^{}]*)\}", header):
        names = [one.split("=")[0].strip() for one in body.split(",")]
        yield enum, [name for name in names if name and not name.endswith("_COUNT")]


def escaped(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def page(compiler, includes):
    with open(HEADER, encoding="ascii") as file:
        groups = calls(file.read())
    lines = []
    for names, text in groups:
        for i, name in enumerate(names):
            lines += [".TP" if i == 0 else ".TQ", f'.B "{escaped(name)};"']
        lines += textwrap.wrap(escaped(text), 110)
    lines.append(".SH ENUMERATORS")
    for enum, names in enumerators(compiler, includes):
        lines += [".TP", f".B enum {enum}", *textwrap.wrap(", ".join(names), 110)]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def main():
    words = sys.argv[1:]
    write = words[:1] == ["--write"]
    compiler, *includes = words[write:]
    now = page(compiler, includes)
    if write:
        with open(PAGE, "w", encoding="ascii") as file:
            file.write(now)
        return 0
    with open(PAGE, encoding="ascii") as file:
        if file.read() == now:
            print(f"scand.3 tells of {len(re.findall('^.B .*;.$', now, re.MULTILINE))} calls")
            return 0
    print(f"scand.h and scand.3 differ; write the page anew: {sys.argv[0]} --write {' '.join(words)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

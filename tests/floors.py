#!/usr/bin/env python3
"""Checks that includes point down or sideways, never up: see ARCHITECTURE.md, "Floors"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each folder with the project folders that it may include from. Order matters: the first that matches a file counts.
FLOORS = {
    "protocol": {"protocol"},
    "kernels": {"protocol", "kernels"},
    "client": {"protocol", "client"},
    "daemon/logic": {"protocol", "kernels", "daemon/logic"},
    "daemon/edge": {"protocol", "kernels", "daemon/logic", "daemon/edge"},
}
# Headers of libraries, and the files that alone may include them.
ALONE = {
    "msgpack.h": r"protocol/(codec|decode)\.c",
    "ini.h": r"daemon/edge/config\.c",
    "uv.h": r"daemon/edge/(server\.h|http\.h|worker\.c)",
    "microhttpd.h": r"daemon/edge/http\.c",
    "cuda_runtime.h": r"kernels/.*|daemon/edge/(device_cuda\.c|cuda_copy\.h|cuda_error\.h|cuda_identity\.h|cuda_share\.h|cuda_small\.h)",
    "pthread.h": r"(?!protocol/|daemon/logic/).*",
}


def floor_of(path):
    return next((floor for floor in FLOORS if path.startswith(floor + "/")), None)


def resolve(file, name):
    """The project path that an include names, or None for a system header."""
    if name.startswith("scand/"):
        return "client/" + name if name == "scand/scand.h" else "protocol/" + name
    for base in (file.parent, ROOT):
        target = base / name
        if target.exists():
            return target.resolve().relative_to(ROOT).as_posix()
    return None


def main():
    wrong = []
    for file in sorted(ROOT.glob("*/**/*")):
        path = file.relative_to(ROOT).as_posix()
        floor = floor_of(path)
        if not floor or file.suffix not in {".c", ".h", ".inc", ".cu", ".cuh"}:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if not match:
                continue
            target = resolve(file, match[1])
            if target and floor_of(target) not in FLOORS[floor]:
                wrong.append(f"{path}:{number}: {floor} must not include {match[1]}")
            if match[1] in ALONE and not re.fullmatch(ALONE[match[1]], path):
                wrong.append(f"{path}:{number}: {match[1]} is not for this file")
    print("\n".join(wrong) if wrong else "floors: every include points down or sideways")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that includes point down or sideways, never up: see ARCHITECTURE.md, "Floors"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each folder, or header, with the project folders that it may include from. Order matters: the first that matches a file counts.
FLOORS = {
    "protocol": {"protocol"},
    "kernels": {"protocol", "kernels"},
    "client/include": {"client/include"},
    "client/lib": {"protocol", "client/include", "client/lib"},
    "client/scanctl/ui": {"client/include", "client/scanctl/ui"},
    "client/scanctl/formats": {"client/include", "client/scanctl/ui", "client/scanctl/formats"},
    "client/scanctl/stream": {"client/include", "client/scanctl/ui", "client/scanctl/formats", "client/scanctl/stream"},
    "client/scanctl": {
        "client/include", "client/scanctl/ui", "client/scanctl/formats", "client/scanctl/stream", "client/scanctl",
    },
    "daemon/device/device.h": {"protocol", "kernels", "daemon/device"},
    "daemon/process/log.h": set(),
    "daemon/process/settings.h": {"protocol"},
    "daemon/core": {"protocol", "kernels", "daemon/device/device.h", "daemon/core"},
    "daemon/device": {"protocol", "kernels", "daemon/process/log.h", "daemon/device/device.h", "daemon/device"},
    "daemon/net": {"protocol", "daemon/process/log.h", "daemon/process/settings.h", "daemon/core", "daemon/net"},
    "daemon/process": {
        "protocol", "kernels", "daemon/core", "daemon/device/device.h", "daemon/device", "daemon/net",
        "daemon/process/log.h", "daemon/process/settings.h", "daemon/process",
    },
}
# Headers of libraries, and the files that alone may include them.
ALONE = {
    "msgpack.h": r"protocol/(codec|decode)\.c",
    "ini.h": r"daemon/process/config\.c",
    "uv.h": r"daemon/(net/(listener|metrics_http)\.h|process/worker\.c)",
    "microhttpd.h": r"daemon/net/metrics_http\.c",
    "cuda_runtime.h": r"kernels/.*|daemon/device/cuda/.*",
    "pthread.h": r"(?!protocol/|daemon/core/).*",
}


def floor_of(path):
    return next((floor for floor in FLOORS if path == floor or path.startswith(floor + "/")), None)


def resolve(file, name):
    """The project path that an include names, or None for a system header and for the vocabulary, which is everybody's."""
    if name.startswith("scand/"):
        return "client/include/" + name if name == "scand/scand.h" else None
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

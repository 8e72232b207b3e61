#!/usr/bin/env python3
"""Checks that includes point down or sideways, never up: see ARCHITECTURE.md, "Floors"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each folder, or header, with the project folders and headers that it may include from. Order matters: the first that matches a file counts.
FLOORS = {
    "protocol": {"protocol"},
    "kernels": {"protocol", "kernels"},
    "client/include": {"client/include"},
    "client/lib": {"protocol", "client/include", "client/lib"},
    "client/scanctl/ui": {"client/include", "protocol/clock.h", "protocol/text.h", "client/scanctl/ui"},
    "client/scanctl/formats": {"client/include", "client/scanctl/ui", "client/scanctl/formats"},
    "client/scanctl/stream": {"client/include", "protocol/clock.h", "client/scanctl/ui", "client/scanctl/formats", "client/scanctl/stream"},
    "client/scanctl": {
        "client/include", "protocol/clock.h", "protocol/own_descriptors.h", "client/scanctl/ui", "client/scanctl/formats",
        "client/scanctl/stream", "client/scanctl",
    },
    "daemon/device/device.h": {"protocol", "kernels"},
    "daemon/process/log.h": set(),
    "daemon/process/settings.h": {"protocol"},
    "daemon/core": {"protocol", "kernels", "daemon/device/device.h", "daemon/core"},
    "daemon/device": {"protocol", "kernels", "daemon/process/log.h", "daemon/device/device.h", "daemon/device"},
    "daemon/local": {"protocol", "kernels", "daemon/core", "daemon/device/device.h", "daemon/device", "daemon/local"},
    "daemon/net": {"protocol", "daemon/process/log.h", "daemon/process/settings.h", "daemon/core", "daemon/net"},
    "daemon/process": {
        "protocol", "kernels", "daemon/core", "daemon/device/device.h", "daemon/device", "daemon/net",
        "daemon/process/log.h", "daemon/process/settings.h", "daemon/process",
    },
}
# Headers of libraries, and the files that alone may include them.
ALONE = {
    "msgpack.h": r"protocol/(encode|objects)\.c",
    "ini.h": r"daemon/process/config\.c",
    "uv.h": r"daemon/(net/(listener|metrics_http)\.h|process/worker\.c)",
    "microhttpd.h": r"daemon/net/metrics_http\.c",
    "cuda_runtime.h": r"kernels/.*|daemon/device/cuda/.*",
    "pthread.h": r"(?!protocol/|daemon/core/).*",
}
# Clocks that may jump: when the machine's time is set nothing may end sooner, later or never. A file's date is one.
WALL_CLOCKS = re.compile(r"CLOCK_REALTIME|\b(gettimeofday|time|ftime|timespec_get)\((?:NULL|0|&)")
DATED = "client/scanctl/formats/rsf.c"
# Kernels in several files, which all begin with the name of the first.
PARTED = ("columns_direct", "affine", "grid_per_row", "ragged")
# Inside kernels/, the folders and files that each may include from; the longest match counts.
CUDA_HOST = ("kernels/cuda/launch.h", "kernels/cuda/scan_cuda.h", "kernels/cuda/streams.h", "kernels/cuda/select")
BELOW_LANE = ("kernels/scan.h", "kernels/order1", "kernels/cuda/select", "kernels/cuda/ptx.cuh")
BELOW_WARP = BELOW_LANE + ("kernels/cuda/lane",)
BELOW_EXCHANGE = BELOW_WARP + ("kernels/cuda/warp",)
BELOW_KERNELS = BELOW_EXCHANGE + ("kernels/cuda/exchange", *CUDA_HOST)
ROOMS = {
    "kernels/scan.h": (),
    "kernels/order1": ("kernels/scan.h", "kernels/order1"),
    "kernels/cpu": ("kernels/scan.h", "kernels/order1", "kernels/cpu"),
    "kernels/cuda/select": ("kernels/scan.h", "kernels/order1", "kernels/cuda/select"),
    "kernels/cuda/ptx.cuh": (),
    "kernels/cuda/lane": (*BELOW_LANE, "kernels/cuda/lane"),
    "kernels/cuda/warp": (*BELOW_WARP, "kernels/cuda/warp"),
    "kernels/cuda/exchange": (*BELOW_EXCHANGE, "kernels/cuda/exchange", *CUDA_HOST),
    "kernels/cuda/kernels": BELOW_KERNELS,
    "kernels/cuda": ("kernels/scan.h", "kernels/order1", "kernels/cuda"),
    "kernels/steps": ("kernels/scan.h", "kernels/order1", "kernels/cpu", "kernels/cuda/ptx.cuh", "kernels/steps"),
    "kernels/tutorial": ("kernels/scan.h", "kernels/order1", "kernels/steps", "kernels/tutorial"),
}


def longest(names, path):
    return max((name for name in names if path == name or path.startswith(name + "/")), key=len, default=None)


def kernel_of(path):
    """The name of the kernel that a file is a part of."""
    name = pathlib.PurePosixPath(path).stem
    return next((kernel for kernel in PARTED if name.startswith(kernel + "_")), name)


def in_rooms(path, target):
    """Why a file of kernels/ must not include another one, or None."""
    if not path.startswith("kernels/") or not target.startswith("kernels/"):
        return None
    room = longest(ROOMS, path)
    if room == "kernels/cuda/kernels" and target.startswith(room + "/"):
        # A launcher may call another one's.
        if kernel_of(path) != kernel_of(target) and not (path.endswith(".cu") and target.endswith(".h")):
            return "a kernel must not include another one"
    elif room and not longest(ROOMS[room], target):
        return f"{room} is below {target}"
    host = path.startswith("kernels/cuda/") and path.endswith(".h") or re.fullmatch(r"kernels/cuda/\w+\.cu", path)
    if host and target.endswith(".cuh"):
        return "host code must not include device code"
    return None


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
            if path.startswith("kernels/cuda/") and path != "kernels/cuda/ptx.cuh" and re.search(r"\basm\b", line):
                wrong.append(f"{path}:{number}: PTX is for kernels/cuda/ptx.cuh")
            if WALL_CLOCKS.search(line) and path != DATED:
                wrong.append(f"{path}:{number}: a clock that may jump")
            match = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if not match:
                continue
            target = resolve(file, match[1])
            if target and not {target, floor_of(target)} & FLOORS[floor]:
                wrong.append(f"{path}:{number}: {floor} must not include {match[1]}")
            why = target and in_rooms(path, target)
            if why:
                wrong.append(f"{path}:{number}: {match[1]}: {why}")
            if match[1] in ALONE and not re.fullmatch(ALONE[match[1]], path):
                wrong.append(f"{path}:{number}: {match[1]} is not for this file")
    print("\n".join(wrong) if wrong else "floors: every include points down or sideways")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

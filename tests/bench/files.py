#!/usr/bin/env python3
"""Times of files through scanctl, beside those of the tools that people have today.

files.py --scanctl PATH --socket PATH [--megabytes N] [--runs N] [--folder FOLDER] [--daemon PID] [pipe] [segy]

pipe: big-endian SU from a pipe to a pipe, beside cat in scanctl's place. The first figure is cat's.
segy: IBM floats, forward and then backward with f64 sums, written as IBM floats; beside segyio and NumPy, where both are
installed, which copy the file and then write its traces, one by one or all together; and beside the copy alone (cp).
Files lie in the folder, /dev/shm unless said otherwise: the disk is not what is measured. Runs alternate, medians are
told with the least and the most of them, and both are compared: the least of many runs are those that other programs have
held up least. With --daemon, the supervisor's process id, they are also of processor time, the
daemon's with it, which other programs on the machine change less.
"""

import argparse
import glob
import importlib.metadata
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLES = 1500


def timed(run):
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def processor_s(daemon):
    """Returns the processor time of the children that have ended, and of the daemon's processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(f"/proc/{daemon}/task/{daemon}/children") as file:
        processes = [daemon, *map(int, file.read().split())]
    taken = 0
    for path in (path for process in processes for path in glob.glob(f"/proc/{process}/task/*/schedstat")):
        with open(path) as file:
            taken += int(file.read().split()[0])
    return usage.ru_utime + usage.ru_stime + taken / 1e9


def worked(run, daemon):
    before = processor_s(daemon)
    run()
    return processor_s(daemon) - before


def measure(table, runs, timed=timed):
    """A row for each name: seconds, and how many times as fast as the first one it is, by the median and by the least."""
    seconds = {name: [] for name in table}
    for _ in range(runs):
        for name, run in table.items():
            seconds[name].append(timed(run))
    first = next(iter(seconds.values()))
    for name, taken in seconds.items():
        shares = [how(first) / how(taken) for how in (statistics.median, min)]
        print(name, f"{statistics.median(taken):.3f} s", f"{min(taken):.3f} to {max(taken):.3f}", *(f"{share:.2f}" for share in shares), sep="\t", flush=True)


def su_write(path, traces):
    header = bytearray(240)
    header[114:116] = SAMPLES.to_bytes(2, "big")
    trace = bytes(header) + os.urandom(4 * SAMPLES).replace(b"\x7f", b"\x40").replace(b"\xff", b"\xc0")
    with open(path, "wb") as file:
        for _ in range(traces // 64):
            file.write(trace * 64)


def segy_write(path, traces):
    head = bytearray(3600)
    head[0:1] = b"C"
    head[3216:3218] = (4000).to_bytes(2, "big")
    head[3220:3222] = SAMPLES.to_bytes(2, "big")
    head[3224:3226] = (1).to_bytes(2, "big")
    header = bytearray(240)
    header[114:116] = SAMPLES.to_bytes(2, "big")
    # IBM floats of about 1: sign and exponent 0x41 or 0xc1, random fractions.
    fractions = os.urandom(3 * SAMPLES)
    samples = b"".join((b"\x41", b"\xc1")[i % 2] + fractions[3 * i : 3 * i + 3] for i in range(SAMPLES))
    with open(path, "wb") as file:
        file.write(head)
        for _ in range(traces // 64):
            file.write((bytes(header) + samples) * 64)


def shell(text):
    subprocess.run(["bash", "-o", "pipefail", "-c", text], check=True)


def bench_pipe(arguments, folder):
    path = os.path.join(folder, "in.su")
    su_write(path, arguments.megabytes * 1_000_000 // (240 + 4 * SAMPLES))
    scan = f"'{arguments.scanctl}' --socket '{arguments.socket}' scan"
    print(f"SU through a pipe, {os.path.getsize(path) / 1e6:.0f} MB", "seconds", "least and most", "of cat's speed", "of its least", sep="\t")
    table = {
        "cat": lambda: shell(f"cat '{path}' | cat | cat >/dev/null"),
        "scanctl scan": lambda: shell(f"cat '{path}' | {scan} - -o - | cat >/dev/null"),
        "scanctl scan -p forward,backward": lambda: shell(f"cat '{path}' | {scan} -p forward,backward - -o - | cat >/dev/null"),
    }
    measure(table, arguments.runs)
    if arguments.daemon:
        print("processor time of all", "seconds", "least and most", "of cat's speed", "of its least", sep="\t")
        measure(table, arguments.runs, lambda run: worked(run, arguments.daemon))
    os.unlink(path)


PEER = """
import segyio, numpy, shutil, sys
given, out, together = sys.argv[1], sys.argv[2], sys.argv[3] == "together"
def twice(x, axis):
    y = numpy.cumsum(x, axis=axis, dtype=numpy.float64).astype(numpy.float32)
    return numpy.flip(numpy.cumsum(numpy.flip(y, axis), axis=axis, dtype=numpy.float64), axis).astype(numpy.float32)
shutil.copyfile(given, out)
with segyio.open(given, ignore_geometry=True) as file, segyio.open(out, "r+", ignore_geometry=True) as result:
    if together:
        result.trace.raw[:] = twice(file.trace.raw[:], 1)
    else:
        for i in range(file.tracecount):
            result.trace[i] = twice(file.trace[i], 0)
"""


def bench_segy(arguments, folder):
    path, out, peer = (os.path.join(folder, name) for name in ("in.sgy", "out.sgy", "peer.sgy"))
    segy_write(path, arguments.megabytes * 1_000_000 // (240 + 4 * SAMPLES))
    words = [arguments.scanctl, "--socket", arguments.socket, "scan", "-p", "forward,backward", path, "-o", out]
    table = {"scanctl": lambda: subprocess.run(words, check=True), "cp": lambda: shell(f"cp '{path}' '{peer}'")}
    try:
        import numpy
        import segyio  # noqa: F401
    except ImportError as missing:
        print(missing)
    else:
        print("segyio", importlib.metadata.version("segyio"), "NumPy", numpy.__version__)
        for how in ("trace by trace", "together"):
            table[f"segyio and NumPy, {how}"] = lambda how=how: subprocess.run([sys.executable, "-c", PEER, path, peer, how], check=True)
    print(f"SEG-Y, IBM floats, {os.path.getsize(path) / 1e6:.0f} MB", "seconds", "least and most", "of scanctl's speed", "of its least", sep="\t")
    measure(table, arguments.runs)
    for name in (path, out, peer):
        if os.path.exists(name):
            os.unlink(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scanctl", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--daemon", type=int)
    parser.add_argument("what", nargs="*", default=["pipe", "segy"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name in arguments.what:
            {"pipe": bench_pipe, "segy": bench_segy}[name](arguments, folder)


if __name__ == "__main__":
    main()

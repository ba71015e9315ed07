#!/usr/bin/env python3
"""Compares reading by this library with h5py: same file, same plug-ins, same run.

For each codec, stock HDF5 filters make a file (trz: the library's own plug-in). h5py and
libtailrace, through its C API, read it completely and by slices, in turn. The values are compared
first. The results are medians and spreads (least to greatest) of each, and the speed-up. "cold"
opens the file for each read, "again" repeats reads on the open file. The file is in the page cache
in both cases, so that decoding and overhead are measured, not the disk.

  python3 lab/bench/papers/read.py --library build/lib/libtailrace.so --out read.json
"""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import statistics
import tempfile
import time

import h5py
import hdf5plugin
import numpy as np

C_UINT64 = ctypes.c_uint64
CODECS = {
    "gzip": dict(compression="gzip", compression_opts=4, shuffle=True),
    "zstd": dict(**hdf5plugin.Zstd(clevel=3)),
    "blosc": dict(**hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE)),
    "sz3": dict(**hdf5plugin.SZ3(absolute=1e-3)),
    "zfp": dict(**hdf5plugin.Zfp(accuracy=1e-3)),
    "none": dict(),
}


class Reader:
    """Reader of libtailrace, used like in a C program."""

    def __init__(self, library, path, options=""):
        self.library = library
        self.handle = ctypes.c_void_p()
        self.check(library.tailrace_reader_open(os.fsencode(path), None, ctypes.c_size_t(0),
                                                options.encode(), ctypes.byref(self.handle)))

    def check(self, error):
        if error != 0:
            self.library.tailrace_thread_error.restype = ctypes.c_char_p
            raise RuntimeError(self.library.tailrace_thread_error().decode())

    def find(self, path):
        number = ctypes.c_size_t()
        self.check(self.library.tailrace_reader_find(self.handle, path.encode(),
                                                     ctypes.byref(number)))
        return number

    def read(self, number, start, count, stride, values):
        kind = C_UINT64 * len(start)
        self.check(self.library.tailrace_reader_read(
            self.handle, number, kind(*start), kind(*count), kind(*stride),
            ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes)))

    def close(self):
        self.check(self.library.tailrace_reader_close(self.handle))


def smooth(n):
    axis = np.linspace(0, 12, n, dtype="f4")
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    noise = np.random.default_rng(1).standard_normal(x.shape, dtype="f4")
    return np.sin(x) * np.cos(1.3 * y) + np.sin(0.7 * z + x) + 0.001 * noise


def patterns(n, chunk):
    """Lists of (start, count, stride), by name of the pattern."""
    random = np.random.default_rng(2)

    def boxes(count, extent):
        starts = random.integers(0, n - extent + 1, (count, 3))
        return [(tuple(map(int, s)), (extent,) * 3, (1, 1, 1)) for s in starts]

    half = n // 2
    return {
        "row": [((half, half, 0), (1, 1, n), (1, 1, 1))],
        "column": [((0, half, half), (n, 1, 1), (1, 1, 1))],
        "plane": [((half, 0, 0), (1, n, n), (1, 1, 1))],
        "plane across": [((0, 0, half), (n, n, 1), (1, 1, 1))],
        "point": [((half + 1, half + 1, half + 1), (1, 1, 1), (1, 1, 1))],
        "strided": [((0, 0, 0), (n // 4, n // 4, n // 4), (4, 4, 4))],
        "one chunk": [((chunk, chunk, chunk), (chunk,) * 3, (1, 1, 1))],
        "small boxes": boxes(50, 8),
        "all planes": [((i, 0, 0), (1, n, n), (1, 1, 1)) for i in range(n)],
    }


def selection(slab):
    start, count, stride = slab
    return tuple(slice(s, s + (c - 1) * t + 1, t) for s, c, t in zip(start, count, stride))


def timed(action, budget_s, least):
    """Seconds of each run of `action`, within a time budget."""
    times = []
    end = time.perf_counter() + budget_s
    while len(times) < least or (time.perf_counter() < end and len(times) < 50):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return times


def compare(library, path, slabs, dtype, arguments, cold):
    """Seconds of h5py and of Tailrace, in turn."""
    buffers = [np.empty(count, dtype) for _, count, _ in slabs]
    wanted = [selection(slab) for slab in slabs]
    spaces = [np.s_[tuple(slice(0, c) for c in count)] for _, count, _ in slabs]
    state = {}

    def h5py_open():
        state["file"] = h5py.File(path, "r")
        state["dataset"] = state["file"]["d"]

    def ours_open():
        state["reader"] = Reader(library, path, arguments.options)
        state["number"] = state["reader"].find("/d")

    def by_h5py():
        if cold:
            h5py_open()
        for buffer, where, space in zip(buffers, wanted, spaces):
            state["dataset"].read_direct(buffer, where, space)
        if cold:
            state["file"].close()

    def by_ours():
        if cold:
            ours_open()
        for buffer, (start, count, stride) in zip(buffers, slabs):
            state["reader"].read(state["number"], start, count, stride, buffer)
        if cold:
            state["reader"].close()

    h5py_open()
    ours_open()
    for buffer, where, (start, count, stride) in zip(buffers, wanted, slabs):
        state["reader"].read(state["number"], start, count, stride, buffer)
        if not np.array_equal(buffer, state["dataset"][where].reshape(count)):
            raise SystemExit(f"{path}: {start} {count} {stride}: the answers differ")
    if cold:
        state["file"].close()
        state["reader"].close()
    times = {"h5py": [], "tailrace": []}
    for _ in range(arguments.rounds):
        times["h5py"] += timed(by_h5py, arguments.budget, 1)
        times["tailrace"] += timed(by_ours, arguments.budget, 1)
    if not cold:
        state["file"].close()
        state["reader"].close()
    return times


def row_of(codec, what, mode, n_bytes, times):
    row = {"codec": codec, "what": what, "mode": mode, "bytes": n_bytes}
    for who, seconds in times.items():
        row[who + "_s"] = statistics.median(seconds)
        row[who + "_spread_s"] = [min(seconds), max(seconds)]
        row[who + "_runs"] = len(seconds)
    row["speed_up"] = row["h5py_s"] / row["tailrace_s"]
    row["speed_up_of_best"] = min(times["h5py"]) / min(times["tailrace"])
    print(f"{codec:6} {what:13} {mode:5} h5py {row['h5py_s'] * 1e3:9.3f} ms  "
          f"tailrace {row['tailrace_s'] * 1e3:9.3f} ms  x{row['speed_up']:.2f} "
          f"(best x{row['speed_up_of_best']:.2f})", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libtailrace.so")
    parser.add_argument("--codecs", default="gzip,zstd,sz3,zfp,blosc,none")
    parser.add_argument("--extent", type=int, default=256, help="of the f32 cube (256: 64 MiB)")
    parser.add_argument("--chunk", type=int, default=64, help="extent of a chunk (64: 1 MiB)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of each round's part")
    parser.add_argument("--options", default=f"plugin-path={hdf5plugin.PLUGINS_PATH}")
    parser.add_argument("--what", default="", help="names of patterns, separated by commas")
    parser.add_argument("--out", help="a JSON file")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(pathlib.Path(arguments.library).resolve()))
    values = smooth(arguments.extent)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for codec in arguments.codecs.split(","):
            path = os.path.join(folder, codec + ".h5")
            with h5py.File(path, "w") as file:
                file.create_dataset("d", data=values, chunks=(arguments.chunk,) * 3,
                                    **CODECS[codec])
            whole = [((0, 0, 0), values.shape, (1, 1, 1))]
            todo = {"whole": whole, **patterns(arguments.extent, arguments.chunk)}
            for what, slabs in todo.items():
                if arguments.what and what not in arguments.what.split(","):
                    continue
                n_bytes = sum(int(np.prod(count)) for _, count, _ in slabs) * values.itemsize
                for mode in ("cold", "again"):
                    times = compare(library, path, slabs, values.dtype, arguments, mode == "cold")
                    rows.append(row_of(codec, what, mode, n_bytes, times))
    slower = [row for row in rows if row["speed_up"] < 0.9]
    print(f"{len(slower)} of {len(rows)} slower than h5py by more than 10 %")
    if arguments.out:
        facts = {"cores": os.cpu_count(), "machine": platform.machine(),
                 "h5py": h5py.version.version, "hdf5": h5py.version.hdf5_version,
                 "hdf5plugin": hdf5plugin.version, "load": os.getloadavg(), "rows": rows}
        pathlib.Path(arguments.out).write_text(json.dumps(facts, indent=1) + "\n",
                                               encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Rechunks one file, maps to time series and back: tailrace repack, h5repack and nccopy in turn.

    lab/bench/papers/rechunk.py --size 1000MB --memory 256MB,1GB --rounds 3 --csv rechunk.csv

make_climate.py makes the file, stored in maps: a chunk is one time, all layers, all cells, with
shuffle and deflate at level 1. The tools rechunk it to time series with the same filters, and back
to maps. A chunk of time series is all times of 32 x 64 cells of one layer.

The values of every output are compared first, in memory; a difference ends the run with 1. Then the
rounds run in turn; they measure wall and CPU seconds of the complete process, and its peak resident
memory. --tools selects tools: h5repack has no option for memory and takes minutes for a gigabyte.
nccopy gets each memory size as its copy buffer and its chunk cache (-m, -h); the table shows the
memory that it uses.

TAILRACE is the build's bin/tailrace. Needs h5repack, nccopy, h5py, netCDF4 and numpy.
"""

import argparse
import csv
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy as np

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "data")]
from byte_sizes import bytes_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAME = "temperature"
TOOLS = ["tailrace", "h5repack", "nccopy"]
COLUMNS = ["direction", "tool", "memory_bytes", "rounds", "raw_bytes", "file_bytes", "s",
           "s_spread", "cpu_s", "resident_bytes"]


def program():
    return os.environ.get("TAILRACE", str(ROOT / "build" / "bin" / "tailrace"))


def chunks_of(shape):
    """Chunk shapes of maps and of time series."""
    n_times, _, n_lats, n_lons = shape
    return {"maps": [1, *shape[1:]],
            "series": [n_times, 1, min(32, n_lats), min(64, n_lons)]}


def command_of(tool, source, target, chunk, memory):
    sides = "x".join(map(str, chunk))
    if tool == "tailrace":
        return [program(), "repack", source, "-o", target, "--chunk", sides, "--codec",
                "deflate,level=1", "--memory", str(memory), "--fsync", "off", "--force"]
    if tool == "h5repack":
        return ["h5repack", "-f", f"{NAME}:SHUF", "-f", f"{NAME}:GZIP=1", "-l",
                f"{NAME}:CHUNK={sides}", source, target]
    names = ("time", "layer", "lat", "lon")
    return ["nccopy", "-d", "1", "-s", "-m", str(memory), "-h", str(memory), "-c",
            ",".join(f"{name}/{n}" for name, n in zip(names, chunk)), source, target]


#: A minimal process starts the tool, because a child's memory before exec counts as its peak.
LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
sys.exit(done.returncode)
"""


def run(command, limit):
    """Run a tool. @returns wall seconds, CPU seconds, peak resident bytes."""
    with subprocess.Popen([sys.executable, "-c", LAUNCH, *map(str, command)], text=True,
                          stdout=subprocess.PIPE, start_new_session=True) as launched:
        try:
            printed, _ = launched.communicate(timeout=limit)
        except BaseException as stopped:
            os.killpg(launched.pid, signal.SIGKILL)
            if isinstance(stopped, subprocess.TimeoutExpired):
                sys.exit(f"{command[0]} takes more than {limit:.0f} s")
            raise
    if launched.returncode != 0:
        sys.exit(f"{command[0]} ended with {launched.returncode}")
    return json.loads(printed)


def check(path, wanted, chunk):
    """Check that the file has these chunks, and the wanted values bit by bit."""
    with h5py.File(path, "r") as file:
        found = file[NAME]
        if list(found.chunks) != list(chunk):
            sys.exit(f"{path}: its chunks are {found.chunks}, not {chunk}")
        along = 0 if chunk[0] == 1 else 1  # direction of the chunks
        for i in range(found.shape[along]):
            part = (i,) if along == 0 else (slice(None), i)
            if not np.array_equal(found[part], wanted[part]):
                sys.exit(f"{path}: its values differ at {i} of dimension {along}")


def measure(options, folder):
    source = folder / "source.nc"
    subprocess.run([sys.executable, ROOT / "lab" / "bench" / "data" / "make_climate.py", source,
                    "--size", options.size,
                    *(["--refine", options.refine] if options.refine else [])],
                   check=True, stdout=subprocess.DEVNULL)
    stored = {"maps": folder / "maps.nc", "series": folder / "series.nc"}
    most = int(bytes_of("4GB"))
    subprocess.run(["nccopy", "-k", "nc4", source, folder / "plain.nc"], check=True)
    with h5py.File(folder / "plain.nc", "r") as file:
        wanted = file[NAME][...]
    shape = wanted.shape
    chunks = chunks_of(shape)
    for form, path in stored.items():
        run(command_of("tailrace", folder / "plain.nc", path, chunks[form], most), options.limit)
        check(path, wanted, chunks[form])
    source.unlink()

    def once(direction, tool, memory):
        before, after = direction.split(" to ")
        target = folder / f"by_{tool}.nc"
        target.unlink(missing_ok=True)
        spent = run(command_of(tool, stored[before], target, chunks[after], memory), options.limit)
        return spent, target

    cases = [(direction, tool, memory) for direction in ("maps to series", "series to maps")
             for memory in options.memory for tool in options.tools
             if tool != "h5repack" or memory == options.memory[0]]
    sizes = {}
    for case in cases:
        _, target = once(*case)
        check(target, wanted, chunks[case[0].split(" to ")[1]])
        sizes[case] = target.stat().st_size
        target.unlink()
    spent = {case: [] for case in cases}
    for number in range(options.rounds):
        for case in cases:
            used, target = once(*case)
            spent[case].append(used)
            target.unlink()
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    return [row_of(case, spent[case], wanted.nbytes, sizes[case]) for case in cases]


def row_of(case, spent, raw_bytes, file_bytes):
    direction, tool, memory = case
    seconds, processor, resident = zip(*spent)
    median = statistics.median(seconds)
    return {"direction": direction, "tool": tool,
            "memory_bytes": "" if tool == "h5repack" else memory, "rounds": len(spent),
            "raw_bytes": raw_bytes, "file_bytes": file_bytes, "s": f"{median:.4g}",
            "s_spread": f"{(max(seconds) - min(seconds)) / median:.3g}",
            "cpu_s": f"{statistics.median(processor):.4g}", "resident_bytes": max(resident)}


def write_csv(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(rows):
    lines = [f"{'':<15}{'':<10}{'asked MB':>9}{'s':>8}{'spread':>8}{'CPU s':>8}"
             f"{'resident MB':>13}{'file MB':>9}"]
    for row in rows:
        requested = f"{row['memory_bytes'] / 1e6:.0f}" if row["memory_bytes"] else "-"
        lines.append(f"{row['direction']:<15}{row['tool']:<10}{requested:>9}{float(row['s']):>8.2f}"
                     f"{100 * float(row['s_spread']):>6.0f} %{float(row['cpu_s']):>8.2f}"
                     f"{row['resident_bytes'] / 1e6:>13.0f}{row['file_bytes'] / 1e6:>9.1f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1000MB", help="of the values; default 1000MB")
    parser.add_argument("--refine", help="make_climate.py's; default: its own choice")
    parser.add_argument("--memory", default="256MB,1GB")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900, help="seconds of a run; default 900")
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--folder", help="where the files are made; default: the system's")
    options = parser.parse_args()
    options.memory = [int(bytes_of(size)) for size in options.memory.split(",")]
    options.tools = options.tools.split(",")
    if unknown := set(options.tools) - set(TOOLS):
        parser.error(f"unknown tools {', '.join(sorted(unknown))}; there are {', '.join(TOOLS)}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(options, pathlib.Path(folder))
    if options.csv:
        write_csv(options.csv, COLUMNS, rows)
    print(table(rows))


if __name__ == "__main__":
    main()

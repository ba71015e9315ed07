#!/usr/bin/env python3
"""Repacks a climate variable for CMIP7: cmip7repack and tailrace repack --publish cmip7 in turn.

    lab/bench/papers/cmip7.py --size 300MB --rounds 3 --csv cmip7.csv

The file is a surface field as models write it: `tas`, the lowest layer of make_climate.py's
atmosphere. It has one map per chunk, shuffle and deflate at level 1, and an unlimited time of many
chunks with its bounds. Each tool makes chunks of 4 MiB by shuffle, deflate at level 4 and
Fletcher's checksum, and puts all metadata in front.

Every output is checked first: all variables bit by bit, and by CMIP7's own check_cmip7_packing; a
failure ends the run with 1. Then the rounds run in turn; they measure wall and CPU seconds of the
complete process. cmip7repack leaves its output in the page cache. Tailrace is timed likewise (fsync
off) and with its output on the disk (fsync on), with two threads. Finally both tools repack a file
that already conforms, by copying all its chunks.

TAILRACE is the build's bin/tailrace. Needs cmip7repack (PyPI: cmip7-repack), h5repack, h5py,
netCDF4 and numpy.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import h5py
import netCDF4
import numpy as np

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "data")]
from byte_sizes import bytes_of  # noqa: E402
from make_climate import ROOT, Atmosphere  # noqa: E402
from rechunk import program, run, write_csv  # noqa: E402

NAME = "tas"
COLUMNS = ["case", "rounds", "raw_bytes", "file_bytes", "s", "s_spread", "cpu_s"]


def tool(name):
    """Path of a tool in this Python's folder, or else on the PATH."""
    sibling = pathlib.Path(sys.executable).parent / name
    return str(sibling) if sibling.exists() else shutil.which(name)


def make(path, options):
    """Write the input file. @returns the values."""
    with h5py.File(options.source) as source:
        atmosphere = Atmosphere(source["ccm_T"][:2, -1:], options.refine)
    _, n_lat, n_lon = atmosphere.shape()
    n_steps = max(round(options.size / (4 * n_lat * n_lon)), 1)
    values = np.empty((n_steps, n_lat, n_lon), "f4")
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as file:
        file.variable_id, file.Conventions = NAME, "CF-1.12"
        file.history = "made by Tailrace's lab/bench/papers/cmip7.py, not by a model"
        for name, length in (("time", None), ("lat", n_lat), ("lon", n_lon), ("bnds", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",), chunksizes=(1,))
        time.units, time.calendar, time.bounds = "days since 2000-01-01", "standard", "time_bnds"
        bounds = file.createVariable("time_bnds", "f8", ("time", "bnds"), chunksizes=(1, 2))
        for name, units, where in (("lat", "degrees_north", atmosphere.latitudes),
                                   ("lon", "degrees_east", atmosphere.longitudes)):
            axis = file.createVariable(name, "f8", (name,))
            axis.units = units
            axis[:] = where
        field = file.createVariable(NAME, "f4", ("time", "lat", "lon"), zlib=True, complevel=1,
                                    shuffle=True, chunksizes=(1, n_lat, n_lon))
        field.units, field.standard_name = "K", "air_temperature"
        for index in range(n_steps):
            values[index] = atmosphere.step(index, 0)[0]
            field[index] = values[index]
        days = np.arange(n_steps + 1) / 8
        time[:] = (days[:-1] + days[1:]) / 2
        bounds[:] = np.stack([days[:-1], days[1:]], axis=1)
    return values


def check(path, source, wanted):
    with h5py.File(path, "r") as found, h5py.File(source, "r") as file:
        for name in file:
            expected = wanted if name == NAME else file[name][...]
            same = found[name].dtype == expected.dtype and found[name].shape == expected.shape
            if not same or found[name][...].tobytes() != expected.tobytes():
                sys.exit(f"{path}: {name} differs")
    done = subprocess.run([tool("check_cmip7_packing"), path], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{path}: check_cmip7_packing: {done.stdout}{done.stderr}")


def measure(options, folder):
    source = folder / "tas.nc"
    wanted = make(source, options)
    fitting = folder / "fitting.nc"
    ours = folder / "ours.nc"

    def tailrace(path, *more):
        return [program(), "repack", path, "-o", ours, "--publish=cmip7", "--force",
                "--threads", "2",
                *more]

    commands = {
        "cmip7repack": [tool("cmip7repack"), source],
        "tailrace, unsynced": tailrace(source, "--fsync", "off"),
        "tailrace": tailrace(source),
        "cmip7repack, chunks copied": [tool("cmip7repack"), fitting],
        "tailrace, chunks copied": tailrace(fitting),
    }
    outputs = {case: ours if case.startswith("tailrace") else
               folder / f"{commands[case][1].name}_cmip7repack" for case in commands}
    sizes = {}
    for case in commands:
        run(commands[case], options.limit)
        check(outputs[case], source, wanted)
        sizes[case] = outputs[case].stat().st_size
        if case == "tailrace":
            shutil.copyfile(outputs[case], fitting)
        outputs[case].unlink()
    spent = {case: [] for case in commands}
    for number in range(options.rounds):
        for case in commands:
            os.sync()
            spent[case].append(run(commands[case], options.limit))
            outputs[case].unlink()
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    return [row_of(case, spent[case], wanted.nbytes, sizes[case]) for case in commands]


def row_of(case, spent, raw_bytes, file_bytes):
    seconds, processor, _ = zip(*spent)
    median = statistics.median(seconds)
    return {"case": case, "rounds": len(spent), "raw_bytes": raw_bytes, "file_bytes": file_bytes,
            "s": f"{median:.4g}", "s_spread": f"{(max(seconds) - min(seconds)) / median:.3g}",
            "cpu_s": f"{statistics.median(processor):.4g}"}


def peer_of(case):
    return "cmip7repack, chunks copied" if case.endswith("copied") else "cmip7repack"


def table(rows):
    lines = [f"{'':<28}{'s':>8}{'spread':>8}{'CPU s':>8}{'file MB':>9}{'times':>8}"]
    for row in rows:
        peer = next(peer for peer in rows if peer["case"] == peer_of(row["case"]))
        lines.append(f"{row['case']:<28}{float(row['s']):>8.2f}"
                     f"{100 * float(row['s_spread']):>6.0f} %{float(row['cpu_s']):>8.2f}"
                     f"{row['file_bytes'] / 1e6:>9.1f}"
                     f"{float(peer['s']) / float(row['s']):>8.1f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=bytes_of, default=300e6, help="of the values; default 300MB")
    parser.add_argument("--refine", type=int, default=3, help="as make_climate.py's; default 3")
    parser.add_argument("--source", default=ROOT.parent / "shared" / "data" / "climate.h5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900, help="seconds of a run; default 900")
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--folder", help="where the files are made; default: the system's")
    options = parser.parse_args()
    for name in ("cmip7repack", "check_cmip7_packing"):
        if not tool(name):
            parser.error(f"{name} is not there (PyPI: cmip7-repack)")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(options, pathlib.Path(folder))
    if options.csv:
        write_csv(options.csv, COLUMNS, rows)
    print(table(rows))


if __name__ == "__main__":
    main()

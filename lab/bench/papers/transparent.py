#!/usr/bin/env python3
"""Measures unmodified PnetCDF programs without and with compression: Bicer et al. 2014, section IV.

    transparent.py write --csv write.csv --json write.json             figures 7 (--chunks) and 8.
    transparent.py read --csv read.csv --json read.json                figures 9, 12 and 13.
    lab/bench/papers/transparent.py md --csv md.csv --json md.json     figures 10 and 11.

write: `replay --output pnetcdf` writes climate data (make_climate.py) step by step. P_original and
P_independent use the real library, collectively and independently. (Collective MPI-IO may aggregate
data on few ranks, whose bandwidth all then share.) P_sparse, P_dense, ... use
libtailrace_pnetcdf.so in its place by LD_PRELOAD, in each layout. All variables have fixed shape,
because some layouts place chunks by the shape. `replay --output hdf5` writes uncompressed and
independently (H_original), and with the same codec as a filter of HDF5 (H_filtered).

read: at and matt read the same climate data. The versions are: classic netCDF through the real
library, collectively or independently (P_original, P_independent); compressed netCDF-4 made by
`tailrace repack`, through libtailrace_pnetcdf.so (P_CODEC) and through Tailrace's reader (T_CODEC);
HDF5, contiguous (H_original) and compressed (H_filtered, the first codec).

md: the simulation `md` writes all its fields in every step. It writes nothing (none), through the
real library (P_original), or with Tailrace in its place: without loss (P_trz), or within the bounds
that md gives to Tailrace's own output (P_bounds). total_s is the time of all iterations, write_s
the time of output in them and in the close.

Answers are checked first. Every file written is read back and compared bit by bit. Every answer of
at and matt must equal P_original's, bit by bit if the codec is lossless, else within its bound.
md's last state must not depend on its output. A difference ends the run with 1.

Then all cases run in turn, A B A B, --rounds times, under each storage limit (libwritelimit.so:
MB/s of each rank, a storage without buffers; 0: the page cache, unlimited). "times_faster" is
relative to the fastest uncompressed case through PnetCDF on as many ranks under the same limit.
Methods whose library is not built are omitted, with a message.

Needs mpiexec, h5py, numpy, netCDF4, and the programs of the build's bin/, examples/ and lib/ (or
next to $TAILRACE).
"""

import argparse
import csv
import json
import os
import pathlib
import shlex
import shutil
import statistics
import sys
import tempfile

import in_situ
from transparent_runs import (ROOT, build, check_file, codec_options, launch, library, plugin_path,
                              preload, start)

#: Codecs with a bound contain it: trz@0.01 is trz,bound=abs=0.01.
CODECS = ["trz", "xor", "zstd", "trz@0.01"]
LAYOUTS = ["sparse", "dense", "hybrid", "claimed"]


def make_data(folder, options):
    """Make the data set as classic netCDF and as bare numbers. @returns make_climate.py's numbers.
    """
    make_climate = ROOT / "lab" / "bench" / "data" / "make_climate.py"
    start([sys.executable, make_climate, folder / "climate.nc", "--size", options.size,
           "--raw", folder / "climate.f32", "--json", folder / "climate.json",
           *shlex.split(options.climate)], "making the data")
    return json.loads((folder / "climate.json").read_text())


# --- writing

class Writer:
    """Runs replay with different methods."""

    def __init__(self, folder, made, options):
        self.folder, self.made, self.options = folder, made, options

    def methods(self):
        found = ["P_original", "P_independent"]
        if library():
            found += [f"P_{layout}" for layout in self.options.layouts]
        else:
            print("without libtailrace_pnetcdf.so: it is not built", file=sys.stderr)
        if (build() / "examples" / "replay-hdf5").exists():
            found += ["H_original", "H_filtered"]
        return [name for name in found if name in self.options.methods or not self.options.methods]

    def chunk_text(self, ranks, chunk):
        """Shape of a chunk of about `chunk` bytes, used with both libraries: all rows of a rank's
        part in some layers, or some rows of one layer."""
        rows, columns = -(-self.made["lat"] // ranks), self.made["lon"]
        layers = max(min(chunk // (4 * rows * columns), self.made["layers"]), 1)
        rows = max(min(rows, chunk // (4 * columns * layers)), 1)
        return f"1x{layers}x{rows}x{columns}"

    def output_of(self, method):
        return self.folder / f"out_{method}.nc"

    def run(self, method, ranks, chunk, limit):
        output = self.output_of(method)
        output.unlink(missing_ok=True)
        own_transfers = method in ("P_independent", "H_original")
        shape = self.chunk_text(ranks, chunk)
        made = self.made
        arguments = ["--source", self.folder / "climate.f32", "--shape",
                     f"{made['layers']}x{made['lat']}x{made['lon']}", "--steps", made["steps"],
                     "--file", output, "--write-limit", f"{limit:g}MB", "--records", "off",
                     "--output", "hdf5" if method.startswith("H_") else "pnetcdf", "--transfer",
                     "independent" if own_transfers else self.options.transfer]
        variables = {}
        if method == "H_filtered":
            filters = json.loads(start([build() / "bin" / "tailrace", "filter-args", "-c",
                                        self.options.codec, "--for", f"f32:{shape}", "--format",
                                        "json"], method))["filters"]
            arguments += ["--filter-chunk", shape, "--filters",
                          ";".join(f"{one['id']}:{','.join(map(str, one['cd_values']))}"
                                   for one in filters)]
            variables["HDF5_PLUGIN_PATH"] = plugin_path()
        elif method not in ("P_original", "P_independent", "H_original"):
            layout = f"layout={method[2:]}"
            if method == "P_hybrid":
                layout += f":{self.options.expected_ratio:g}"
            variables = preload(",".join([*codec_options(self.options.codec),
                                          *self.options.words]) +
                                f";temperature: {layout},chunk={shape}")
        numbers = launch(ranks, "replay-hdf5" if method.startswith("H_") else "replay-pnetcdf",
                         arguments, variables, method, self.folder / "report.json")
        return {"total_s": numbers["total_s"], "close_s": numbers["close_s"],
                "file_bytes": output.stat().st_size,
                "disk_bytes": output.stat().st_blocks * 512}

    def check(self, method):
        """Compare every value of the file with the data that were written."""
        check_file(self.output_of(method), self.folder / "climate.f32", f"reading {method} back")


def write(options, folder):
    made = make_data(folder, options)
    writer = Writer(folder, made, options)
    cases = [(method, ranks, chunk, limit) for limit in options.limits for ranks in options.ranks
             for chunk in options.chunks for method in writer.methods()]
    for method in writer.methods():
        for ranks in options.ranks:
            writer.run(method, ranks, options.chunks[0], 0)
            writer.check(method)
    reports = measure(cases, lambda case: writer.run(*case), options)
    rows = []
    for (method, ranks, chunk, limit), some in reports.items():
        rows.append({"method": method, "ranks": ranks, "chunk_bytes": chunk, "limit_MBps": limit,
                     **row_of(some), "raw_bytes": made["raw_bytes"],
                     "file_bytes": some[-1]["file_bytes"],
                     "disk_bytes": some[-1]["disk_bytes"],
                     "ratio": made["raw_bytes"] / some[-1]["file_bytes"]})
    add_factors(rows, ("ranks", "chunk_bytes", "limit_MBps"))
    return rows, made


# --- reading

class Analyst:
    """Runs at and matt on different versions of the data set."""

    def __init__(self, folder, made, options):
        self.folder, self.made, self.options = folder, made, options
        self.versions = {"P_original": "climate.nc", "P_independent": "climate.nc"}

    def prepare(self):
        """Make the compressed versions, and the contiguous HDF5 file."""
        examples = build() / "examples"
        for codec in self.options.codecs:
            name = codec.replace("@", "_")
            settings = ",".join([f"temperature:{word}" if i == 0 else word
                                 for i, word in enumerate(codec_options(codec))])
            start([build() / "bin" / "tailrace", "repack", self.folder / "climate.nc", "-o",
                   self.folder / f"{name}.nc", "--field", settings, "--chunk", self.options.chunk],
                  f"repack to {codec}", {"HDF5_PLUGIN_PATH": plugin_path()})
            if library():
                self.versions[f"P_{name}"] = f"{name}.nc"
            if (examples / "at").exists():
                self.versions[f"T_{name}"] = f"{name}.nc"
        if not library():
            print("without libtailrace_pnetcdf.so: it is not built", file=sys.stderr)
        if (examples / "at-hdf5").exists():
            start([build() / "bin" / "tailrace", "repack", self.folder / "climate.nc", "-o",
                   self.folder / "plain.nc", "--codec", "none", "--chunk", self.options.chunk],
                  "repack to none")
            self.versions["H_original"] = "plain.nc"
            self.versions["H_filtered"] = self.options.codecs[0].replace("@", "_") + ".nc"
        if self.options.methods:
            self.versions = {name: path for name, path in self.versions.items()
                             if name in self.options.methods or name == "P_original"}

    def is_lossy(self, version):
        return "@" in "".join(codec for codec in self.options.codecs
                              if version[2:] == codec.replace("@", "_"))

    def run(self, application, version, ranks, limit):
        arguments = ["--file", self.folder / self.versions[version], "--read-limit", f"{limit:g}MB",
                     "--transfer", "independent" if version == "P_independent" else "collective"]
        program, variables = f"{application}-pnetcdf", {}
        if version.startswith("T_"):
            program, variables = application, {"HDF5_PLUGIN_PATH": plugin_path()}
        elif version.startswith("H_"):
            program, variables = f"{application}-hdf5", {"HDF5_PLUGIN_PATH": plugin_path()}
        elif not version.endswith(("original", "independent")):
            variables = preload("")
        return launch(ranks, program, arguments, variables, version, self.folder / "report.json")

    def check(self, application):
        """Compare every version's answer on every number of ranks with P_original's on the first.
        """
        expected = self.run(application, "P_original", self.options.ranks[0], 0)["answer"]
        for version in self.versions:
            for ranks in self.options.ranks:
                found = self.run(application, version, ranks, 0)["answer"]
                if self.is_lossy(version):
                    bound = float(version.rpartition("_")[2])
                    good = all(abs(a - b) <= bound * (2 if name == "mean_range" else 1)
                               for name in expected
                               for a, b in zip(expected[name], found[name], strict=True))
                else:
                    good = found == expected
                if not good:
                    sys.exit(f"{application}, {version}, {ranks} ranks: the answer is {found}, of "
                             f"P_original {expected}")


def read(options, folder):
    made = make_data(folder, options)
    analyst = Analyst(folder, made, options)
    analyst.prepare()
    for application in options.applications:
        analyst.check(application)
    cases = [(application, version, ranks, limit) for limit in options.limits
             for ranks in options.ranks for application in options.applications
             for version in analyst.versions]
    reports = measure(cases, lambda case: analyst.run(*case), options)
    rows = []
    for (application, version, ranks, limit), some in reports.items():
        file_bytes = (folder / analyst.versions[version]).stat().st_size
        row = {"application": application, "method": version, "ranks": ranks, "limit_MBps": limit,
               **row_of(some)}
        for name in ("open_s", "io_s", "compute_s", "exchange_s"):
            row[name] = statistics.median(report[name] for report in some)
        row |= {"raw_bytes": some[-1]["value_bytes"], "storage_bytes": some[-1]["storage_bytes"],
                "file_bytes": file_bytes, "ratio": made["raw_bytes"] / file_bytes}
        rows.append(row)
    add_factors(rows, ("application", "ranks", "limit_MBps"))
    return rows, made


# --- a simulation

#: Bounds that md sets for Tailrace's own output (examples/md).
MD_BOUNDS = {**dict.fromkeys("xyz", 1e-3), **dict.fromkeys(("vx", "vy", "vz", "energy"), 1e-2)}


def run_md(folder, options, method, ranks, limit):
    output = folder / f"md_{method}.nc"
    output.unlink(missing_ok=True)
    variables = {}
    if method in ("P_trz", "P_bounds"):
        settings = ",".join(["codec=trz", *options.words])
        if method == "P_bounds":
            settings += "".join(f";{name}: bound=abs={bound:g}"
                                for name, bound in MD_BOUNDS.items())
        variables = preload(settings)
    numbers = launch(ranks, "md-pnetcdf", [
        "--cells", options.cells, "--steps", options.steps, "--file", output, "--output",
        "none" if method == "none" else "pnetcdf", "--transfer", options.transfer, "--write-limit",
        f"{limit:g}MB"], variables, method, folder / "report.json")
    return {"total_s": numbers["total_s"], "hash": numbers["state_hash"],
            "write_s": numbers["sum"]["output_s"] + numbers["close_s"],
            "raw_bytes": numbers["totals"]["raw_bytes"],
            "file_bytes": output.stat().st_size if output.exists() else 0}


def md(options, folder):
    methods = ["none", "P_original"] + (["P_trz", "P_bounds"] if library() else [])
    states = set()
    for ranks in options.ranks:
        for method in methods:
            states.add(run_md(folder, options, method, ranks, 0)["hash"])
            if method in ("P_trz", "P_bounds"):
                bounds = [f"{name}={bound}" for name, bound in MD_BOUNDS.items()]
                check_file(folder / f"md_{method}.nc", folder / "md_P_original.nc",
                           f"reading {method} back", bounds if method == "P_bounds" else [])
    if len(states) != 1:
        sys.exit(f"md: the last state depends on output or ranks: {states}")
    cases = [(method, ranks, limit) for limit in options.limits for ranks in options.ranks
             for method in methods]
    reports = measure(cases, lambda case: run_md(folder, options, *case), options)
    rows = []
    for (method, ranks, limit), some in reports.items():
        n_bytes = some[-1]["file_bytes"]
        rows.append({"method": method, "ranks": ranks, "limit_MBps": limit, **row_of(some),
                     "write_s": statistics.median(report["write_s"] for report in some),
                     "raw_bytes": some[-1]["raw_bytes"], "file_bytes": n_bytes,
                     "ratio": some[-1]["raw_bytes"] / n_bytes if n_bytes else 0.0})
    add_factors(rows, ("ranks", "limit_MBps"))
    return rows, {"cells": options.cells, "steps": options.steps}


# --- common parts

def measure(cases, run, options):
    """Run all rounds, in turn. @returns {case: [report, ...]}"""
    reports = {case: [] for case in cases}
    for number in range(options.rounds):
        for case in cases:
            reports[case].append(run(case))
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    return reports


def row_of(reports):
    """Median and spread of the rounds."""
    totals = [report["total_s"] for report in reports]
    median_s = statistics.median(totals)
    return {"rounds": len(totals), "total_s": median_s, "smallest_s": min(totals),
            "largest_s": max(totals), "spread": (max(totals) - min(totals)) / median_s}


def add_factors(rows, keys):
    """Add the speed-up over uncompressed data through PnetCDF, and its certain lower limit: the
    fastest uncompressed run over the slowest run."""
    for row in rows:
        bases = [base for base in rows if base["method"] in ("P_original", "P_independent")
                 and all(base[key] == row[key] for key in keys)]
        row["times_faster"] = min(base["total_s"] for base in bases) / row["total_s"]
        row["at_least"] = min(base["smallest_s"] for base in bases) / row["largest_s"]


def save(options, rows, made):
    if options.json:
        facts = in_situ.machine(options)
        whole = {"schema_version": 1, "command": f"lab/bench/papers/transparent.py {options.what}",
                 "machine": facts, "rounds": options.rounds, "data": made, "rows": rows}
        pathlib.Path(options.json).write_text(json.dumps(whole, indent=1) + "\n")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value
                                 for key, value in row.items()})


def show(rows):
    names = [name for name in ("application", "method", "ranks", "chunk_bytes", "limit_MBps")
             if name in rows[0]]
    print("".join(f"{name:>14}" for name in names) +
          f"{'total s':>10}{'spread':>8}{'faster':>8}{'at least':>10}{'ratio':>8}")
    for row in rows:
        print("".join(f"{row[name]:>14}" for name in names) +
              f"{row['total_s']:>10.3f}{100 * row['spread']:>6.0f} %{row['times_faster']:>7.2f}x"
              f"{row['at_least']:>9.2f}x{row['ratio']:>8.2f}")


def bytes_of(text):
    """Bytes of "1MiB", "512kB" or "4096"."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10), ("MB", 10**6), ("kB", 10**3), ("", 1)):
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    raise ValueError(text)


def parse(arguments):
    def list_of(kind):
        return lambda text: [kind(word) for word in text.split(",") if word]

    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "read", "md"])
    parser.add_argument("--size", default="200MB", help="of all temperatures")
    parser.add_argument("--climate", default="", help="more options of make_climate.py")
    parser.add_argument("--ranks", type=list_of(int), default=[1, 2, 4])
    parser.add_argument("--limits", type=list_of(float), default=[25.0, 100.0, 0.0],
                        help="MB/s of each rank; 0: no limit")
    parser.add_argument("--methods", type=list_of(str), default=[], help="only these")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--codec", default="trz", help="write: of what is compressed, without loss")
    parser.add_argument("--layouts", type=list_of(str), default=LAYOUTS, help="write")
    parser.add_argument("--expected-ratio", type=float, default=2.2, help="write: of P_hybrid")
    parser.add_argument("--chunks", type=list_of(bytes_of), default=[1 << 20],
                        help="write: bytes of a chunk, about")
    parser.add_argument("--words", type=list_of(str), default=["fsync=off", "memory=1GB"],
                        help="write, md: more of TAILRACE_OPTIONS")
    parser.add_argument("--transfer", choices=["collective", "independent"], default="collective",
                        help="write, md")
    parser.add_argument("--codecs", type=list_of(str), default=CODECS, help="read")
    parser.add_argument("--chunk", default="1x6x96x384", help="read: shape of a chunk")
    parser.add_argument("--applications", type=list_of(str), default=["at", "matt"], help="read")
    parser.add_argument("--cells", type=int, default=20, help="md")
    parser.add_argument("--steps", type=int, default=40, help="md")
    parser.add_argument("--folder", default="/tmp", help="where files are written")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--csv", metavar="FILE")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or not options.ranks or min(options.ranks) < 1:
        parser.error("needs a round and a number of ranks")
    if shutil.which("mpiexec") is None or not (build() / "examples" / "at-pnetcdf").exists():
        parser.error(f"needs mpiexec, and {build()}/examples/at-pnetcdf")
    options.load_at_start = os.getloadavg()[0]
    return options


def main():
    options = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        what = {"write": write, "read": read, "md": md}[options.what]
        rows, made = what(options, pathlib.Path(folder))
    save(options, rows, made)
    show(rows)


if __name__ == "__main__":
    main()

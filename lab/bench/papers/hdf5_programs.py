#!/usr/bin/env python3
"""Measures programs on parallel HDF5, with and without Tailrace in its place, for docs/hdf5.md.

    lab/bench/papers/hdf5_programs.py                   all parts, and updates the page's tables.
    lab/bench/papers/hdf5_programs.py --parts calls,plotfile
    hdf5_programs.py --quick                            a minimal run of everything, as a test.

fields: `tailrace-lab bench` with six fields, in one process and in turn, at the bounds of Jin et
al. 2022. It compares HDF5 without a filter, with the filters deflate and SZ3, the same calls served
by Tailrace, and Tailrace's own API.

calls: very small writes and many small datasets. plotfile: AMReX's pattern, compared with AMReX's
own compression (1-D chunks of 1,024 by HDF5's filter). h5bench_pattern.c runs both, plain and
served in turn. Before times count, every file is read back and compared; a wrong value ends the run
with 1.

CSVs go to lab/bench/results, with the load before and after, and tables.py makes the tables. With
--quick they go to build/bench-quick. Needs an optimised build with bench (in $TAILRACE's folder)
and an idle machine (unless --any-load); also mpiexec, h5py, numpy, and SZ3's filter (hdf5plugin).
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "tables")]
import in_situ  # noqa: E402
import tables  # noqa: E402
import transparent_runs as runs  # noqa: E402
from table_parts import RESULTS, ROOT  # noqa: E402

#: Means of gas and dark matter density; the bounds are 0.2 and 0.4 of these (see lab/bench/all).
MEANS = {"nyx": (6.3e9, 3.13e10), "synthetic": (6.4e9, 3.4e10)}
METHODS = ["hdf5-collective-none", "hdf5-collective-deflate", "hdf5-collective-sz3",
           "hdf5-unchanged", "hdf5-unchanged-sz3", "hdf5-unchanged-trz", "tailrace-claimed-deflate",
           "tailrace-claimed-sz3", "tailrace-claimed-trz"]
IDLE_LOAD = 0.5
COMPONENT_BOUND = 1e-3


def preloaded():
    return runs.build() / "lib" / "libtailrace_hdf5.so"


def pattern():
    return runs.build() / "bin" / "h5bench_pattern"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def write_csv(options, name, rows):
    comment = (f"# hdf5_programs.py, {datetime.date.today().isoformat()}, {options.machine}, "
               f"load {options.load_before} before, {load()} after\n")
    with open(options.results / name, "w", newline="", encoding="utf-8") as file:
        file.write(comment)
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value
                             for key, value in row.items()})


def median_row(values):
    middle = statistics.median(values)
    return {"median_s": middle, "smallest_s": min(values), "largest_s": max(values),
            "spread": (max(values) - min(values)) / max(middle, 1e-9)}


# --- fields

def field_arguments(options, kind):
    gas, dark = (share * mean for share, mean in zip((0.2, 0.4), MEANS[kind]))
    bounds = (f"*baryon_density:abs={gas:g}", f"*dark_matter_density:abs={dark:g}",
              "*temperature:abs=1e3", "*velocity*:abs=2")
    source = ["--synthetic", "nyx"] if kind == "synthetic" else [
        "--workload", options.data / "nyx64_s140.h5"]
    edges = (32, 16) if options.quick else (128, 64)
    cells, chunk = ("x".join([str(edge)] * 3) for edge in edges)
    return [*source, "--cells", cells, "--chunk", chunk,
            *(word for bound in bounds for word in ("--field-bound", bound))]


def part_fields(folder, options):
    rows = []
    kinds = {"synthetic": "Nyx-like, generated", "nyx": "Nyx, real fields tiled"}
    if not (options.data / "nyx64_s140.h5").exists():
        del kinds["nyx"]
        print("hdf5_programs.py: no real fields in --data: generated ones alone", file=sys.stderr)
    for ranks in options.ranks:
        for kind, data in kinds.items():
            report = folder / "bench.json"
            before = load()
            runs.start(["mpiexec", "-n", ranks, "env", f"LD_PRELOAD={preloaded()}",
                        runs.build() / "bin" / "tailrace-lab", "bench", "--dir", folder, "--repeat",
                        options.rounds, "--codec", "deflate,level=1", "--bandwidth",
                        "25MB/s/rank,unlimited", "--methods", ",".join(METHODS), "--json", report,
                        *field_arguments(options, kind)],
                       "tailrace-lab bench", {"HDF5_PLUGIN_PATH": runs.plugin_path()})
            for document in json.loads(report.read_text())["runs"]:
                limit = document["W"]
                rows += [{"data": data, "ranks": ranks,
                          "W_MBps_per_rank": f"{limit / ranks / 1e6:g}" if limit else "0",
                          "method": row["method"], "rounds": document["R"],
                          **median_row(row["seconds"]), "raw_bytes": document["S"],
                          "encoded_bytes": row["encoded_bytes"], "ratio": row["ratio"],
                          "error_over_bound": row["max_error_over_bound"], "load": before}
                         for row in document["rows"]]
            print(f"fields: {ranks} ranks, {data}: load {load()}", file=sys.stderr, flush=True)
            write_csv(options, "hdf5_fields.csv", rows)


# --- calls and plotfiles

def run_pattern(folder, name, ranks, arguments, served=None, limit=0):
    """Run h5bench_pattern. `served`: TAILRACE_OPTIONS, None: HDF5 itself. @returns the program's
    numbers."""
    # Each rank writes its own data. Open MPI's other methods aggregate data on fewer ranks, which
    # share a limit, or write by aio, which no limit sees. This method is also the fastest for these
    # patterns.
    preload = []
    variables = {"HDF5_PLUGIN_PATH": runs.plugin_path(), "OMPI_MCA_fcoll": "individual"}
    if limit:
        preload.append(runs.build() / "lib" / "libwritelimit.so")
        variables |= {"TAILRACE_WRITE_LIMIT": limit * 1e6,
                      "TAILRACE_WRITE_LIMIT_FOLDER": folder.resolve()}
    if served is not None:
        preload.append(preloaded())
        variables["TAILRACE_OPTIONS"] = served
    if preload:
        variables["LD_PRELOAD"] = ":".join(map(str, preload))
    path = folder / f"{name}.h5"
    path.unlink(missing_ok=True)
    command, *more = arguments
    output = runs.start(["mpiexec", "-n", ranks, "env",
                         *(f"{key}={value}" for key, value in variables.items()), pattern(),
                         command, path, *more], f"{command}, {name}")
    return json.loads(output.splitlines()[-1]) | {"file_bytes": path.stat().st_size}


def compare(plain, other, bound="0", components="0", boxes="0"):
    """Compare two outputs; called in a separate process, because h5py loads an HDF5."""
    import h5py
    import hdf5plugin  # noqa: F401  SZ3's filter
    import numpy as np

    h5py.h5pl.prepend(str(runs.build() / "lib" / "hdf5" / "plugin").encode())
    n_compared = 0
    with h5py.File(plain) as wanted, h5py.File(other) as found:
        def visit(name, item):
            nonlocal n_compared
            if not isinstance(item, h5py.Dataset):
                return
            n_compared += 1
            a, b = item[()], found[name][()]
            if float(bound) == 0 or a.dtype.kind != "f":
                if a.tobytes() != b.tobytes():
                    sys.exit(f"{other}: {name} differs")
                return
            a, b = (values.reshape(int(boxes), int(components), -1) for values in (a, b))
            ranges = a.max(axis=(0, 2)) - a.min(axis=(0, 2))
            errors = np.abs(a - b).max(axis=(0, 2))
            if not (errors <= float(bound) * ranges).all():
                sys.exit(f"{other}: {name} has errors of {(errors / ranges).max()} of the range")
        wanted.visititems(visit)
    if n_compared == 0:
        sys.exit(f"{plain} has no datasets")


def check(folder, name, *arguments):
    runs.start([sys.executable, __file__, "compare", folder / "plain.h5", folder / f"{name}.h5",
                *arguments], f"comparing {name}", {"HDF5_PLUGIN_PATH": runs.plugin_path()})


def in_turn(folder, options, ranks, methods, limit=0):
    """Run the methods in turn. @returns the seconds of each part: {method: [numbers of each
    round]}."""
    numbers = {}
    for _ in range(options.rounds):
        for name, (arguments, served) in methods.items():
            numbers.setdefault(name, []).append(
                run_pattern(folder, name, ranks, arguments, served, limit))
    return numbers


def part_calls(folder, options):
    """Measure a write of 256 bytes, and 1,000 datasets of 400 bytes and of 40 KB with four
    attributes each."""
    few = 50 if options.quick else 1
    cases = [("H5Dwrite of 256 bytes", ["small", "--calls", 20000 // few, "--bytes", 256]),
             ("datasets of 400 bytes", ["tables", "--datasets", 1000 // few, "--bytes", 400]),
             ("datasets of 40 KB", ["tables", "--datasets", 1000 // few, "--bytes", 40000])]
    rows = []
    for ranks in options.ranks:
        for what, arguments in cases:
            methods = {"plain": (arguments, None), "served": (arguments, ""),
                       "served-none": (arguments, "codec=none")}
            for name, (_, served) in methods.items():
                run_pattern(folder, name, ranks, arguments, served)
                check(folder, name)
            before = load()
            for name, some in in_turn(folder, options, ranks, methods).items():
                row = {"what": what, "n": arguments[2], "ranks": ranks, "method": name,
                       "rounds": len(some), "load": before, "file_bytes": some[0]["file_bytes"]}
                for part in ("create_s", "write_s", "close_s", "total_s"):
                    values = [one.get(part, 0.0) for one in some]
                    row |= {part: statistics.median(values), f"{part}_least": min(values),
                            f"{part}_most": max(values)}
                rows.append(row)
            print(f"calls: {ranks} ranks, {what}: load {load()}", file=sys.stderr, flush=True)
    write_csv(options, "hdf5_calls.csv", rows)


def sz3_filter():
    """AMReX's filter setting: filter number and client data, with one absolute bound for all
    components."""
    import hdf5plugin
    made = hdf5plugin.SZ3(absolute=COMPONENT_BOUND)
    return f"{made.filter_id}:" + ",".join(map(str, made.filter_options))


def plotfile_values(folder, options, cells):
    """13 components of 64^3: six fields of each of two steps and a velocity of a third, or waves.
    Each is divided by its range, so that one absolute bound suits all."""
    import h5py
    import numpy as np

    names = ["nyx64_s060.h5", "nyx64_s140.h5", "nyx128_s040.h5"]
    edge, cubes = 2 * cells, []
    real = all((options.data / name).exists() for name in names)
    for name in names if real else []:
        with h5py.File(options.data / name) as file:
            fields = file["native_fields"]
            of = sorted(fields) if name != names[2] else ["velocity_x"]
            cubes += [fields[field][:edge, :edge, :edge].astype("f8") for field in of]
    for c in range(13 - len(cubes)):
        z, y, x = np.indices((edge, edge, edge))
        cubes.append(np.sin(0.11 * x) * np.cos(0.07 * y + c) + 0.01 * z)
    path = folder / "values.f64"
    np.stack([cube / np.ptp(cube) for cube in cubes]).tofile(path)
    return path, "Nyx" if real else "generated"


def part_plotfile(folder, options):
    cells = 8 if options.quick else 32
    values, data = plotfile_values(folder, options, cells)
    arguments = ["plotfile", "--components", 13, "--boxes", 8, "--cells", cells, "--values", values]
    methods = {
        "plain": (arguments, None),
        "amrex-deflate": ([*arguments, "--chunk", 1024, "--filter", "1:1"], None),
        "amrex-sz3": ([*arguments, "--chunk", 1024, "--filter", sz3_filter()], None),
        "served": (arguments, ""),
        "served-trz": (arguments, f"component:*: bound=rel={COMPONENT_BOUND:g}"),
    }
    rows = []
    for ranks in options.ranks:
        for name, (some, served) in methods.items():
            run_pattern(folder, name, ranks, some, served)
            lossy = name in ("amrex-sz3", "served-trz")
            check(folder, name, *((COMPONENT_BOUND, 13, 8 * ranks) if lossy else ()))
        for limit in (25.0, 0.0):
            before = load()
            for name, some in in_turn(folder, options, ranks, methods, limit).items():
                rows.append({"data": data, "ranks": ranks,
                             "W_MBps_per_rank": f"{limit:g}", "method": name, "rounds": len(some),
                             **median_row([one["total_s"] for one in some]),
                             "raw_bytes": int(some[0]["raw_bytes"]),
                             "file_bytes": some[0]["file_bytes"], "load": before})
            print(f"plotfile: {ranks} ranks, W {limit:g}: load {load()}", file=sys.stderr,
                  flush=True)
    write_csv(options, "hdf5_plotfiles.csv", rows)


PARTS = {"fields": part_fields, "calls": part_calls, "plotfile": part_plotfile}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=in_situ.list_of, default=list(PARTS))
    parser.add_argument("--ranks", type=in_situ.list_of, default=["2", "4"])
    parser.add_argument("--rounds", type=int, help="default 5, quick 1")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--any-load", action="store_true", help="begin on a busy machine, too")
    parser.add_argument("--folder", default="/dev/shm", help="where files are written")
    parser.add_argument("--results", type=pathlib.Path, help="where the CSVs go")
    parser.add_argument("--data", type=pathlib.Path, help="real data; default $TAILRACE_DATA",
                        default=os.environ.get("TAILRACE_DATA", ROOT.parent / "shared" / "data"))
    options = parser.parse_args()
    options.ranks = [int(word) for word in options.ranks]
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.results = options.results or (ROOT / "build" / "bench-quick" if options.quick
                                          else RESULTS)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    lacking = [str(path) for path in (preloaded(), pattern(), runs.build() / "bin/tailrace-bench")
               if not path.exists()]
    if lacking:
        parser.error("what it needs is not there: " + ", ".join(lacking))
    if not options.quick and (why := runs.why_not_measured()):
        parser.error(why)
    if os.getloadavg()[0] > IDLE_LOAD and not (options.any_load or options.quick):
        parser.error(f"the load is {load()}, above {IDLE_LOAD} (--any-load)")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        name = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
    options.machine = f"{name[1] if name else 'unknown processor'}, {os.cpu_count()} cores"
    options.load_before = load()
    return options


def main():
    options = parse()
    options.results.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            PARTS[part](pathlib.Path(folder), options)
    if options.results == RESULTS:
        for page in tables.pages():
            path = ROOT / page
            path.write_text(tables.rewritten(path.read_text(encoding="utf-8"), page),
                            encoding="utf-8")
    print(f"hdf5_programs.py: {', '.join(options.parts)}: CSVs in {options.results}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    else:
        main()

#!/usr/bin/env python3
"""Runs E3SM's requests by the real PnetCDF, and by Tailrace in its place: e3sm_pattern.

    lab/bench/papers/e3sm.py --ranks 2,4 --cases F,G,I --limits 0,25 --rounds 3 --csv e3sm.csv

First both libraries write every case. Our file must have as many elements without a fill value as
were put. These elements must equal the real library's bit by bit (or within --bound); otherwise the
run ends with 1. (The real library leaves elements that were not put undefined.) Then the rounds run
in turn. The limit is in MB/s of each rank, 0: none.

cpu_s is the sum over all ranks. memory_bytes is the peak growth of a rank's memory after it creates
the file. values_bytes is the size of the data that a rank puts, pieces the number of pieces.

TAILRACE is the build's bin/tailrace. Needs e3sm_pattern, mpiexec, h5py, netCDF4 and numpy.
"""

import argparse
import csv
import json
import pathlib
import statistics
import sys
import tempfile

import in_situ
import transparent_runs as runs

LIBRARIES = ["pnetcdf", "tailrace"]
FIELDS = ["total_s", "post_s", "wait_s", "close_s", "cpu_s", "memory_bytes"]


def program():
    path = runs.build() / "bin" / "e3sm_pattern"
    if not path.exists() or runs.library() is None:
        sys.exit(f"{path} or libtailrace_pnetcdf.so is not there: build all with libpnetcdf-dev")
    return path


class Runner:
    """Runs the pattern with either library."""

    def __init__(self, folder, options):
        self.folder = pathlib.Path(folder)
        self.options = options

    def file_of(self, library):
        return self.folder / f"{library}.nc"

    def run(self, library, case, ranks, limit=0):
        """Run one case. @returns the program's numbers, and the file's size."""
        report = self.folder / "report.json"
        variables = {}
        preloaded = []
        if limit:
            preloaded.append(runs.build() / "lib" / "libwritelimit.so")
            variables = {"TAILRACE_WRITE_LIMIT": limit * 1e6,
                         "TAILRACE_WRITE_LIMIT_FOLDER": self.folder.resolve()}
        if library == "tailrace":
            ours = runs.preload(self.options.codec)
            preloaded.append(ours.pop("LD_PRELOAD"))
            variables |= ours
        if preloaded:
            variables["LD_PRELOAD"] = ":".join(map(str, preloaded))
        settings = [f"{name}={value}" for name, value in variables.items()]
        sizes = ["--columns", self.options.columns] if self.options.columns else []
        self.file_of(library).unlink(missing_ok=True)
        runs.start(["mpiexec", "-n", ranks, "env", *settings, program(), case,
                    self.file_of(library), "--records", self.options.records, *sizes, "--json",
                    report],
                   f"{library}, case {case}")
        numbers = json.loads(report.read_text())
        return numbers | {"file_bytes": self.file_of(library).stat().st_size}


def compare(ours, theirs, n_elements, bound):
    """Compare two outputs; called in a separate process, because h5py loads an HDF5."""
    import numpy as np

    mine, wanted = (runs.arrays_of(path, []) for path in (ours, theirs))
    n_put = 0
    for name, values in wanted.items():
        put = mine[name] < 9e36
        n_put += int(put.sum())
        if not (np.abs(mine[name].astype("f8") - values)[put] <= float(bound)).all():
            sys.exit(f"{ours}: {name} differs")
    if n_put != int(n_elements):
        sys.exit(f"{ours}: {n_put} elements have values, {n_elements} were put")


def measure(runner, options):
    rows = []
    for case in options.cases:
        for ranks in options.ranks:
            for library in LIBRARIES:
                done = runner.run(library, case, ranks)
            n_elements = int(done["elements"]) * int(options.records)
            runs.start([sys.executable, __file__, "compare", runner.file_of("tailrace"),
                        runner.file_of("pnetcdf"), n_elements, options.bound],
                       f"case {case}, {ranks} ranks", {"HDF5_PLUGIN_PATH": runs.plugin_path()})
            reports = {}
            for number in range(options.rounds):
                for limit in options.limits:
                    for library in LIBRARIES:
                        done = runner.run(library, case, ranks, limit)
                        reports.setdefault((limit, library), []).append(done)
                print(f"case {case}, {ranks} ranks: round {number + 1} of {options.rounds}, "
                      f"load {in_situ.os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            rows += [row_of(case, ranks, *key, some) for key, some in reports.items()]
            save(options, rows)
    print(table(rows))


def row_of(case, ranks, limit, library, reports):
    row = {"case": case, "ranks": ranks, "W_MB_per_s_and_rank": in_situ.limit_text(limit),
           "library": library, "rounds": len(reports), "pieces": reports[0]["pieces"],
           "value_bytes": reports[0]["value_bytes"], "file_bytes": reports[0]["file_bytes"]}
    for field in FIELDS:
        values = [report[field] for report in reports]
        row[field] = statistics.median(values)
        row[field + "_spread"] = (max(values) - min(values)) / max(row[field], 1e-9)
    return row


def save(options, rows):
    if not options.csv:
        return
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def table(rows):
    lines = [f"{'case':<5}{'ranks':>5} {'W':>9}  {'library':<9}{'pieces':>9}{'MB':>6}{'file MB':>8}"
             f"{'total s':>8}{'spread':>7}{'post s':>7}{'wait s':>7}{'close s':>8}{'CPU s':>7}"
             f"{'memory MB':>10}"]
    for row in rows:
        lines.append(
            f"{row['case']:<5}{row['ranks']:>5} {row['W_MB_per_s_and_rank']:>9}  "
            f"{row['library']:<9}{row['pieces']:>9.0f}{row['value_bytes'] / 1e6:>6.1f}"
            f"{row['file_bytes'] / 1e6:>8.1f}{row['total_s']:>8.3f}"
            f"{100 * row['total_s_spread']:>5.0f} %{row['post_s']:>7.3f}{row['wait_s']:>7.3f}"
            f"{row['close_s']:>8.3f}{row['cpu_s']:>7.2f}{row['memory_bytes'] / 1e6:>10.1f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=in_situ.list_of, default=["F", "G", "I"])
    parser.add_argument("--ranks", type=in_situ.list_of, default=["2", "4"])
    parser.add_argument("--limits", type=in_situ.numbers_of, default=[0.0, 25.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", default="1")
    parser.add_argument("--columns", help="other sizes than the benchmark's small ones")
    parser.add_argument("--codec", default="", help="TAILRACE_OPTIONS; nothing: without loss")
    parser.add_argument("--bound", default="0", help="largest error, with a codec that has one")
    parser.add_argument("--folder", default="/dev/shm", help="where files are written")
    parser.add_argument("--csv", metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Runner(folder, options), options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    else:
        main()

#!/usr/bin/env python3
"""Measures the cost of output during computation, with the applications of examples/.

    lab/bench/papers/in_situ.py overheads --json in_situ.json --csv in_situ.csv     figures 9 and 10
    lab/bench/papers/in_situ.py sizes --csv in_situ_sizes.csv                       figures 4 and 5

The paper is Jin et al. 2024.

overheads: each configuration (CONFIGURATIONS, with the reason for each) first writes once with
every output, without a limit. The physics must be equal bit by bit. Every value of every file must
lie within the bound that its field states, compared with the file of "sync none". Otherwise the run
ends with 1. Then come the counted rounds: none, and every output under every limit, in turn:
A B C ... A B C. The hash of the final state is compared each time.

Overhead: total time with this output, including the close of the file, over that with none,
minus 1. The result is the median over the rounds; the range is that of the single rounds, each
against "none" of the same round.

sizes: chunk and write buffer of mode in_situ, in turn, relative to the defaults.

Needs mpiexec, h5py, numpy, and the programs of the build's examples/ (or of the folder
$TAILRACE_EXAMPLES).
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

#: Name, application, arguments, ranks, device stretch, and reason. One rank has both cores: one for
#: the main lane, one for the device. Two ranks have a core each, so that their devices sleep for
#: half of their time (--device-stretch 2).
CONFIGURATIONS = {
    "cosmo": ("cosmo", "--grid 64 --steps 12 --start 0.3 --end 0.9", 1, 1,
              "One particle of a kind in a cell, one leapfrog step per output, as in Nyx. At 100 "
              "MB/s a raw step takes less than its computation: output without compression can be "
              "hidden whole, so nothing can be gained over it but what hand-over costs."),
    "cosmo-2": ("cosmo", "--grid 64 --steps 12 --start 0.3 --end 0.9", 2, 2,
                "The same, two ranks."),
    "cosmo-short": ("cosmo", "--grid 32 --steps 60 --start 0.3 --end 0.9", 2, 2,
                    "An eighth of the cells: an iteration takes a few ms."),
    "cosmo-long": ("cosmo", "--grid 128 --steps 6 --start 0.3 --end 0.9", 2, 2,
                   "Eight times the cells: an iteration takes half a second."),
    "plasma": ("plasma", "--nx 256 --ny 256 --steps 8 --thermal 0.01", 1, 1,
               "Each step writes all electrons: at 100 MB/s a raw step takes longer than its "
               "computation, so that no output without compression can be hidden."),
    "plasma-2": ("plasma", "--nx 256 --ny 256 --steps 8 --thermal 0.01", 2, 2,
                 "The same, two ranks."),
    "tiny": ("cosmo", "--grid 16 --steps 3 --start 0.3 --end 0.4", 1, 1, "For tests."),
}
#: Name of each output, and the application's arguments for it.
OUTPUTS = {
    "hdf5": "--output hdf5",
    "sync none": "--output sync --codec none",
    "async none": "--output async --codec none",
    "sync": "--output sync",
    "async": "--output async",
    "in_situ": "--output in_situ",
    # Measured on request (--outputs): the program on plain HDF5, which flushes after each step, and
    # the same program served by Tailrace, without a mark.
    "hdf5 flushed": "--output hdf5 --fsync on",
    "unchanged sync": "--output hdf5 --fsync on",
    "unchanged async": "--output hdf5 --fsync on",
    "unchanged in_situ": "--output hdf5 --fsync on",
}
#: Outputs that are measured unless others are named.
USUAL_OUTPUTS = [name for name in OUTPUTS if not name.startswith(("hdf5 ", "unchanged "))]
#: The bounds that the applications give to Tailrace's own interface.
BOUNDS = {
    "cosmo": {"baryon_density": 0.2, "dark_matter_density": 0.4, "temperature": 1e3,
              "velocity_*": 2e5},
    "plasma": {"e[xyz]": 1e-3, "b[xyz]": 1e-3, "j[xyz]": 1e-2, "rho": 1e-2, "x": 1e-3, "y": 1e-3,
               "u[xyz]": 1e-3},
}
CHUNKS = ["256KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB"]
BUFFERS = ["1MiB", "2MiB", "4MiB", "8MiB", "16MiB", "20MiB"]
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def programs():
    """Folder of the applications: $TAILRACE_EXAMPLES, or next to $TAILRACE's folder, or the
    build's."""
    if "TAILRACE_EXAMPLES" in os.environ:
        return pathlib.Path(os.environ["TAILRACE_EXAMPLES"])
    tailrace = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    return tailrace.parent.parent / "examples"


def filters():
    """Folder of the filters that h5py needs to read the outputs."""
    return programs().parent / "lib" / "hdf5" / "plugin"


def missing(options):
    """Everything that the requested runs need and that is missing."""
    applications = {CONFIGURATIONS[name][0] for name in options.configurations}
    needed = [programs() / name for name in sorted(applications)]
    if options.what == "overheads":
        if any("hdf5" in OUTPUTS[output] for output in options.outputs):
            needed += [programs() / f"{name}-hdf5" for name in sorted(applications)]
        if "HDF5_PLUGIN_PATH" not in os.environ:
            needed.append(filters() / "libh5trz.so")
    if any(options.limits):
        needed.append(programs().parent / "lib" / "libwritelimit.so")
    return ["mpiexec"] * (shutil.which("mpiexec") is None) + \
        [str(path) for path in needed if not path.exists()]


def served(application, output):
    """Words in front of the application, which serve its HDF5 by Tailrace. Else none."""
    if not output.startswith("unchanged "):
        return []
    mode = output.split()[1]
    libraries = ["libtailrace_hdf5.so"]
    if mode == "in_situ":
        libraries.insert(0, "libtailrace_idle.so")
    folder = programs().parent / "lib"
    rules = [f"mode={mode}"] + [f"{name}: codec=trz,bound=abs={bound:g}"
                                for name, bound in BOUNDS[application].items()]
    return ["env", "LD_PRELOAD=" + ":".join(str(folder / name) for name in libraries),
            "TAILRACE_OPTIONS=" + ";".join(rules)]


def limit_text(limit):
    """Text of a limit; None: the base, which writes nothing."""
    if limit is None:
        return "any"
    return f"{limit:g}" if limit else "unlimited"


class Runner:
    """Runs one configuration's application with different outputs."""

    def __init__(self, configuration, folder, options):
        self.name = configuration
        self.application, self.arguments, self.ranks, self.stretch, self.why = \
            CONFIGURATIONS[configuration]
        self.folder = pathlib.Path(folder)
        self.options = options
        self.state_hash = None

    def file_of(self, output):
        return self.folder / f"{output.replace(' ', '_')}.h5"

    def run(self, arguments, output, limit=0):
        """Run once. @returns the application's report. Ends the program if the application fails,
        or if its physics depends on the output."""
        report = self.folder / "report.json"
        program = self.application + ("-hdf5" if "hdf5" in shlex.split(arguments) else "")
        command = [shutil.which("mpiexec"), "-n", str(self.ranks),
                   *served(self.application, output),
                   str(programs() / program), *shlex.split(self.arguments),
                   "--device-stretch", str(self.stretch), "--fsync", self.options.fsync,
                   *shlex.split(arguments), "--write-limit", str(limit * 1e6),
                   "--file", str(self.file_of(output)), "--json", str(report)]
        environment = {**MPI_ENVIRONMENT, **os.environ}
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=environment)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)} ended with {done.returncode}\n"
                     f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        numbers = json.loads(report.read_text())
        self.state_hash = self.state_hash or numbers["state_hash"]
        if numbers["state_hash"] != self.state_hash:
            sys.exit(f"{shlex.join(command)}: the state is {numbers['state_hash']}, "
                     f"with other outputs {self.state_hash}")
        return numbers


# --- checks of the answers

def largest_errors(path, exact_path):
    """Largest error of each field over the bound that the file states. Exact fields have no bound;
    their error counts as 0 or infinity."""
    import h5py
    import numpy as np

    errors = {}
    with h5py.File(path) as file, h5py.File(exact_path) as exact:
        if sorted(file) != sorted(exact):
            sys.exit(f"{path}: fields {sorted(file)}, expected {sorted(exact)}")
        for name in exact:
            values, expected = file[name][:], exact[name][:]
            if values.shape != expected.shape:
                sys.exit(f"{path}: {name} has shape {values.shape}, expected {expected.shape}")
            bound = file[name].attrs.get("tailrace_absolute_bound", 0.0)
            if bound > 0:
                error = np.abs(values.astype("f8") - expected.astype("f8")).max() / bound
            else:
                error = 0.0 if np.array_equal(values, expected) else float("inf")
            errors[name] = float(error)
    return errors


def check_answers(runner, outputs):
    """Write once with every output and compare all values. @returns the largest errors."""
    import h5py

    h5py.h5pl.append(str(programs().parent / "lib" / "hdf5" / "plugin").encode())
    # "sync none" is the reference, so it runs even if it is not among the outputs.
    for output in dict.fromkeys(["sync none", *outputs]):
        runner.run(OUTPUTS[output], output)
    errors = {}
    for output in outputs:
        errors[output] = largest_errors(runner.file_of(output), runner.file_of("sync none"))
        worst = max(errors[output].values())
        if worst > 1:
            sys.exit(f"{runner.name}, {output}: an error of {worst:g} bounds: {errors[output]}")
    return errors


# --- overheads

def measure(runner, outputs, limits, rounds):
    """All rounds of a configuration: {(output, limit): [report, ...]}. The base "none" runs under
    every limit, so that it has more samples than any output."""
    reports = {}
    for number in range(rounds):
        for limit in limits:
            for output in ["none", *outputs]:
                arguments = OUTPUTS.get(output, "--output none")
                report = runner.run(arguments, output, limit)
                reports.setdefault((output, limit), []).append(report)
        print(f"{runner.name}: round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    return reports


def steady_s(report):
    """Seconds of an iteration during which a step is in flight: without the first two and the
    close."""
    return statistics.median(iteration["total_s"] for iteration in report["iterations"][2:])


def median_of(reports, pick):
    return statistics.median(pick(report) for report in reports)


def row_of(runner, key, reports, bases):
    """One row of the result: an output of a configuration under a limit. `bases`: reports of output
    none by limit. The median uses all of them, the spread compares each round with its own base."""
    output, limit = key
    totals = [report["total_s"] for report in reports]
    n_steps = len(reports[0]["iterations"])
    base = [report for some in bases.values() for report in some]
    partners = base if limit is None else bases[limit]
    ratios = [mine["total_s"] / none["total_s"] - 1 for mine, none in zip(reports, partners)]
    base_s = median_of(base, lambda report: report["total_s"])
    median_s = statistics.median(totals)
    last = reports[-1]["totals"]
    raw = last["raw_bytes"]
    row = {
        "configuration": runner.name, "ranks": runner.ranks, "device_stretch": runner.stretch,
        "output": output, "W_MB_per_s_and_rank": limit_text(limit),
        "S_MB_per_step_and_rank": raw / n_steps / runner.ranks / 1e6,
        "R": raw / last["encoded_bytes"] if raw else None,
        "compute_s_per_step": base_s / n_steps,
        "raw_write_s_per_step": raw / n_steps / runner.ranks / (limit * 1e6) if limit else 0.0,
        "rounds": len(totals), "total_s": median_s, "smallest_s": min(totals),
        "largest_s": max(totals), "spread": (max(totals) - min(totals)) / median_s,
        "overhead": median_s / base_s - 1, "overhead_smallest": min(ratios),
        "overhead_largest": max(ratios), "overhead_s_per_step": (median_s - base_s) / n_steps,
        # Disturbances only make a run longer, so on a busy machine the shortest runs are most
        # reliable.
        "overhead_of_smallest": min(totals) / min(r["total_s"] for r in base) - 1,
        "steady_overhead": median_of(reports, steady_s) / median_of(base, steady_s) - 1,
    }
    for name in ("output_s", "idle_s", "host_s", "exchange_s"):
        row[name + "_per_step"] = median_of(reports, lambda r: r["sum"][name]) / n_steps
    row["close_s"] = median_of(reports, lambda r: r["close_s"])
    for name in ("exposed_s", "handover_s", "backpressure_s", "idle_encode_s", "encode_s",
                 "write_s"):
        row[name + "_per_step"] = median_of(reports, lambda r: r["totals"][name]) / n_steps
    row["n_delayed_obstacles"] = median_of(reports, lambda r: r["totals"]["n_delayed_obstacles"])
    row["totals_s"] = totals
    return row


def factors_of(rows):
    """Factor by which in_situ lowers the overhead of each other output, for each limit. The lower
    limit divides the smallest overhead of the other by the largest of in_situ."""
    factors = []
    for mine in (row for row in rows if row["output"] == "in_situ"):
        limit = mine["W_MB_per_s_and_rank"]
        entry = {"configuration": mine["configuration"], "W_MB_per_s_and_rank": limit}
        for other in rows:
            if other["W_MB_per_s_and_rank"] != limit or other["output"] in ("none", "in_situ"):
                continue
            entry[other["output"]] = {
                # The factor is defined only if the overhead of in_situ is above zero.
                "factor": other["overhead"] / mine["overhead"] if mine["overhead"] > 0 else None,
                "at_least": max(other["overhead_smallest"], 0) / mine["overhead_largest"]
                if mine["overhead_largest"] > 0 else None,
                "of_smallest": other["overhead_of_smallest"] / mine["overhead_of_smallest"]
                if mine["overhead_of_smallest"] > 0 else None,
                "could_be_hidden": other["output"].startswith("async")
                and mine["raw_write_s_per_step"] <= mine["compute_s_per_step"]}
        factors.append(entry)
    return factors


def table(rows, factors):
    lines = [f"{'configuration':<10} {'W':>9} {'output':<11} {'S MB':>5} {'R':>6} {'compute':>8} "
             f"{'S/W ms':>7} {'total s':>8} {'spread':>7} {'overhead':>9} {'ms/step':>8} "
             f"{'smallest':>8} {'steady':>8} {'in_situ gains':>14}"]
    gains = {(entry["configuration"], entry["W_MB_per_s_and_rank"], output): factor["factor"]
             for entry in factors for output, factor in entry.items() if isinstance(factor, dict)}
    for row in rows:
        limit = row["W_MB_per_s_and_rank"]
        gain = gains.get((row["configuration"], limit, row["output"]))
        ratio = f"{row['R']:.1f}" if row["R"] else "-"
        lines.append(
            f"{row['configuration']:<10} {limit!s:>9} {row['output']:<11} "
            f"{row['S_MB_per_step_and_rank']:>5.1f} {ratio:>6} "
            f"{1e3 * row['compute_s_per_step']:>8.1f} {1e3 * row['raw_write_s_per_step']:>7.1f} "
            f"{row['total_s']:>8.3f} {100 * row['spread']:>5.0f} % {100 * row['overhead']:>7.1f} % "
            f"{1e3 * row['overhead_s_per_step']:>8.2f} "
            f"{100 * row['overhead_of_smallest']:>6.1f} % {100 * row['steady_overhead']:>6.1f} % "
            f"{f'{gain:.1f} x' if gain else '-':>14}")
    return "\n".join(lines)


def overheads(options):
    rows, factors, answers = [], [], {}
    for name in options.configurations:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            runner = Runner(name, folder, options)
            answers[name] = check_answers(runner, options.outputs)
            reports = measure(runner, options.outputs, options.limits, options.rounds)
        bases = {limit: reports.pop(("none", limit)) for limit in options.limits}
        reports = {("none", None): [report for some in bases.values() for report in some],
                   **reports}
        mine = [row_of(runner, key, value, bases) for key, value in reports.items()]
        rows += mine
        factors += factors_of(mine)
        save(options, rows, {"rows": rows, "factors": factors, "errors_over_bounds": answers,
                             "configurations": {key: describe(key)
                                                for key in options.configurations}})
    print(table(rows, factors))


def describe(name):
    application, arguments, ranks, stretch, why = CONFIGURATIONS[name]
    return {"application": application, "arguments": arguments, "ranks": ranks,
            "device_stretch": stretch, "why": why}


# --- sizes of chunks and of the write buffer

def sizes(options):
    """Iteration time of mode in_situ over chunk and buffer, relative to the defaults. The bound is
    tight, so that a step has enough bytes to fill a buffer."""
    name = options.configurations[0]
    default = ("chunk and buffer", "default")
    settings = [default] + [("chunk", size) for size in options.chunks] + \
        [("buffer", size) for size in options.buffers]
    reports = {setting: [] for setting in settings}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        runner = Runner(name, folder, options)
        runner.arguments = options.arguments or runner.arguments
        for number in range(options.rounds):
            for what, size in settings:
                extra = f"--options {what}={size}" if (what, size) != default else ""
                arguments = f"--output in_situ --bound {options.bound} {extra}"
                reports[(what, size)].append(runner.run(arguments, "in_situ", options.limits[0]))
            print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
                  file=sys.stderr, flush=True)
    base_s = median_of(reports[default], lambda report: report["total_s"])
    rows = []
    for (what, size), mine in reports.items():
        totals = [report["total_s"] for report in mine]
        median_s = statistics.median(totals)
        last = mine[-1]["totals"]
        rows.append({"configuration": name, "arguments": runner.arguments, "bound": options.bound,
                     "W_MB_per_s_and_rank": limit_text(options.limits[0]), "option": what,
                     "size": size, "rounds": len(totals), "total_s": median_s,
                     "spread": (max(totals) - min(totals)) / median_s,
                     "relative": median_s / base_s,
                     "steady_relative": median_of(mine, steady_s)
                     / median_of(reports[default], steady_s),
                     "S_MB_per_step_and_rank":
                     last["raw_bytes"] / last["n_steps"] / runner.ranks / 1e6,
                     "R": last["raw_bytes"] / last["encoded_bytes"],
                     "exposed_s_per_step": median_of(
                         mine, lambda r: r["totals"]["exposed_s"] / r["totals"]["n_steps"]),
                     "n_delayed_obstacles": median_of(
                         mine, lambda r: r["totals"]["n_delayed_obstacles"])})
    save(options, rows, {"rows": rows})
    for row in rows:
        print(f"{row['option']:<17} {row['size']:<8} {row['total_s']:8.3f} s "
              f"{100 * row['spread']:4.0f} %  relative {row['relative']:.3f}, "
              f"exposed {1e3 * row['exposed_s_per_step']:.1f} ms a step, R {row['R']:.1f}")


# --- results

def first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0] if lines else "unknown"


def libraries():
    """Paths of the linked HDF5 libraries, whose names contain the version."""
    names = []
    for program in ("cosmo", "cosmo-hdf5"):
        done = subprocess.run(["ldd", str(programs() / program)], capture_output=True, text=True,
                              check=False)
        names += [pathlib.Path(line.split()[2]).resolve().name
                  for line in done.stdout.splitlines() if "libhdf5" in line and "=> /" in line]
    return sorted(set(names))


def priority():
    """Priority of this session: a nice value, which the kernel's autogroups may set."""
    path = pathlib.Path("/proc/self/autogroup")
    words = path.read_text().split() if path.exists() else []
    return words[-1] if words else "unknown"  # Some kernels of sandboxes have it, but empty.


def machine(options):
    """Facts that a reader needs to judge the numbers; the loads are those at the end."""
    processor = "unknown"
    info = pathlib.Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    return {"processor": processor, "cores": os.cpu_count(), "kernel": platform.release(),
            "file_system": first_line(["stat", "-f", "-c", "%T", str(options.folder)]),
            "mpi": first_line(["mpiexec", "--version"]), "hdf5": libraries(),
            "autogroup_nice": priority(),
            "tailrace": first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]),
            "load_at_start": options.load_at_start, "load_at_end": os.getloadavg()[0],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def save(options, rows, document):
    """Write the results; called after every configuration, so that an aborted run leaves some."""
    if options.json:
        whole = {"schema_version": 1, "command": "in_situ.py", "machine": machine(options),
                 "fsync": options.fsync, "rounds": options.rounds, **document}
        pathlib.Path(options.json).write_text(json.dumps(whole, indent=1) + "\n")
    if not options.csv:
        return
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        columns = [name for name in rows[0] if name != "totals_s"]
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value
                             for key, value in row.items()})


def list_of(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers_of(text):
    return [0.0 if word == "unlimited" else float(word) for word in list_of(text)]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overheads", "sizes"])
    parser.add_argument("--configurations", type=list_of,
                        default=["cosmo", "plasma", "cosmo-2", "plasma-2"],
                        help="of " + ", ".join(CONFIGURATIONS) + "; sizes takes the first")
    parser.add_argument("--outputs", type=list_of, default=USUAL_OUTPUTS,
                        help="of " + ", ".join(OUTPUTS))
    parser.add_argument("--limits", type=numbers_of, default=[25.0, 100.0, 0.0],
                        help="MB/s each rank can write, or unlimited; sizes takes the first")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fsync", choices=["on", "off"], default="off")
    parser.add_argument("--folder", default="/dev/shm", help="where files are written")
    parser.add_argument("--chunks", type=list_of, default=CHUNKS, help="for sizes")
    parser.add_argument("--buffers", type=list_of, default=BUFFERS, help="for sizes")
    parser.add_argument("--arguments", help="for sizes: of the application, instead of its own")
    parser.add_argument("--bound", default="rel=1e-4", help="for sizes")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--csv", metavar="FILE")
    options = parser.parse_args(arguments)
    for name in options.configurations:
        if name not in CONFIGURATIONS:
            parser.error(f"configuration {name} is unknown")
    for name in options.outputs:
        if name not in OUTPUTS:
            parser.error(f"output {name} is unknown; there are {', '.join(OUTPUTS)}")
    if options.rounds < 1 or not options.configurations:
        parser.error("needs a round and a configuration")
    if lacking := missing(options):
        parser.error("what it needs is not there: " + ", ".join(lacking))
    os.environ.setdefault("HDF5_PLUGIN_PATH", str(filters()))
    options.load_at_start = os.getloadavg()[0]
    return options


def main():
    options = parse(sys.argv[1:])
    (overheads if options.what == "overheads" else sizes)(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Gaps between schedulers and the best known bound, on random instances with obstacles.

    python lab/bench/papers/schedule_gaps.py bounds  --bounds lab/bench/results/schedule_bounds.csv
    python schedule_gaps.py compare --bounds lab/bench/results/schedule_bounds.csv \\
        -o lab/bench/results/schedule_gaps.csv
    python lab/bench/papers/schedule_gaps.py plot lab/bench/results/schedule_gaps.csv \\
        -o schedule_gaps.png

`bounds` runs CP-SAT on every instance in which no scheduler meets the lower bound, and resumes an
aborted run. A bound depends on the instance only, so it stays valid when schedulers change.
`compare` runs all schedulers and writes a row for each size and scheduler. Instances are those of
`tailrace-lab schedule --random n=N,seed=S`, S = 1 ... --instances. tailrace-lab is in the folder of
$TAILRACE (default: build/bin/tailrace). `plot` needs matplotlib.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = str(pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
              .with_name("tailrace-lab"))
SIZES = (10, 20, 50, 100, 200)
# Makespans are sums of whole microseconds; differences below half a microsecond are rounding.
SAME_S = 5e-7


def schedule(n_jobs, seed, *arguments):
    done = subprocess.run([PROGRAM, "schedule", "--random", f"n={n_jobs},seed={seed}", "--json",
                           "-", *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: an invalid plan, which the JSON reports.
        sys.exit(f"n={n_jobs},seed={seed}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def read_bounds(path):
    """Read {(n, seed): {"bound_s", "makespan_s", "proven"}}."""
    bounds = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                bounds[int(row["n"]), int(row["seed"])] = row
    return bounds


def makespans(document):
    return {plan["scheduler"]: plan["makespan_s"] for plan in document["plans"]
            if plan["makespan_s"] is not None and plan["valid"]}


def find_bounds(arguments):
    """Find the bounds; one line per instance is written as soon as its bound is found."""
    known = read_bounds(arguments.bounds)
    new = not known
    with open(arguments.bounds, "a", newline="") as file:
        if new:
            file.write("# Best bounds known of `tailrace-lab schedule --random n=N,seed=S`, in "
                       "seconds, and the best plan found beside them.\n"
                       "n,seed,lower_bound_s,bound_s,makespan_s,source\n")
        for n_jobs in arguments.sizes:
            for seed in arguments.seeds or range(1, arguments.instances + 1):
                if (n_jobs, seed) in known:
                    continue
                document = schedule(n_jobs, seed, "--scheduler", arguments.scheduler)
                best = min(makespans(document).values())
                if best > document["lower_bound_s"] + SAME_S and arguments.time_limit > 0:
                    document = schedule(n_jobs, seed, "--scheduler", arguments.scheduler,
                                        "--exact", "cp-sat", "--workers", "1", "--time-limit",
                                        str(arguments.time_limit))
                    best = min(makespans(document).values())
                file.write(f"{n_jobs},{seed},{document['lower_bound_s']:.6f},"
                           f"{document['best_bound_s']:.6f},{best:.6f},"
                           f"{document['best_bound_source']}\n")
                file.flush()


def compare(arguments):
    bounds = read_bounds(arguments.bounds)
    rows = []
    for n_jobs in arguments.sizes:
        gaps, seconds = collections.defaultdict(list), collections.defaultdict(list)
        optimal, invalid = collections.Counter(), collections.Counter()
        n_proven = 0
        for seed in range(1, arguments.instances + 1):
            document = schedule(n_jobs, seed)
            bound = document["lower_bound_s"]
            known = makespans(document)
            if (n_jobs, seed) in bounds:
                row = bounds[n_jobs, seed]
                bound = max(bound, float(row["bound_s"]))
                known["known"] = float(row["makespan_s"])
            best = min(known.values())
            proven = best <= bound + SAME_S
            n_proven += proven
            for plan in document["plans"]:
                name = plan["scheduler"]
                invalid[name] += not plan["valid"]
                gaps[name].append(plan["makespan_s"] / bound - 1)
                seconds[name].append(plan["plan_s"])
                optimal[name] += proven and plan["makespan_s"] <= bound + SAME_S
        for name, values in gaps.items():
            rows.append({
                "n": n_jobs, "scheduler": name, "instances": len(values),
                "mean_gap_percent": f"{100 * statistics.mean(values):.4f}",
                "median_gap_percent": f"{100 * statistics.median(values):.4f}",
                "greatest_gap_percent": f"{100 * max(values):.4f}",
                "n_optimal": optimal[name], "n_optimum_known": n_proven,
                "n_invalid": invalid[name],
                "median_plan_ms": f"{1e3 * statistics.median(seconds[name]):.4f}",
                "greatest_plan_ms": f"{1e3 * max(seconds[name]):.4f}"})
            print(" ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    with open(arguments.output, "w", newline="") as file:
        file.write("# Gap: makespan above the best bound known. Times: processor time of the "
                   "planning thread.\n")
        writer = csv.DictWriter(file, fieldnames=rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def plot(arguments):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    by_name = collections.defaultdict(list)
    with open(arguments.table, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            by_name[row["scheduler"]].append(row)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.7), layout="constrained")
    colours = ("#56b4e9", "#0072b2", "#bbbbbb", "#777777", "#e69f00", "#009e73", "#d55e00")
    for (name, rows), colour in zip(by_name.items(), colours):
        sizes = [int(row["n"]) for row in rows]
        style = {"marker": "o", "markersize": 4, "color": colour, "label": name,
                 "linewidth": 2.4 if name == "search" else 1.4}
        left.plot(sizes, [float(row["mean_gap_percent"]) for row in rows], **style)
        right.plot(sizes, [float(row["median_plan_ms"]) for row in rows], **style)
    right.axhline(5, color="#555555", linewidth=1, linestyle=":")
    right.annotate("what a plan may take", (sizes[0], 5), xytext=(0, 3), fontsize=8.5,
                   textcoords="offset points", color="#555555")
    left.set_ylabel("mean gap to the best bound known, %")
    right.set_ylabel("time to plan, median, ms of one core")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlabel("jobs (chunks of a rank)")
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=8.5, ncols=7,
                  loc="outside lower center")
    figure.savefig(arguments.output, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, action in (("bounds", find_bounds), ("compare", compare)):
        sub = commands.add_parser(name)
        sub.set_defaults(action=action)
        sub.add_argument("--bounds", type=pathlib.Path, required=True)
        sub.add_argument("--sizes", type=int, nargs="+", default=SIZES)
        sub.add_argument("--instances", type=int, default=100)
        if name == "bounds":
            sub.add_argument("--time-limit", type=float, default=10,
                             help="seconds of CP-SAT for an instance; 0: lower bounds only")
            sub.add_argument("--seeds", type=int, nargs="+",
                             help="only these instances, such as those with the largest gaps")
            sub.add_argument("--scheduler", default="search",
                             help="whose plans CP-SAT starts from")
        else:
            sub.add_argument("-o", "--output", required=True)
    sub = commands.add_parser("plot")
    sub.set_defaults(action=plot)
    sub.add_argument("table")
    sub.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()

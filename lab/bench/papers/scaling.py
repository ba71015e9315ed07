#!/usr/bin/env python3
"""Weak scaling: runs `tailrace-lab bench` on several numbers of ranks with the same work per rank.

    scaling.py --ranks 1,2,4 --json scaling.json -- --workload nyx --bandwidth 25MB/s/rank

Arguments after "--" go to tailrace-lab bench unchanged. Efficiency is the time on the first number
of ranks over the time on this one: 1 is perfect. A bandwidth with "/rank" grows with the ranks; all
ranks share one without. More ranks than cores measure the cores; the table says so. The JSON has
each run's document under "runs", and the table under "rows".
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def bench_program():
    """The program in $TAILRACE's folder, or else the build's, like in the tests."""
    path = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    path = path.with_name("tailrace-lab")
    return str(path) if path.exists() else shutil.which("tailrace-lab")


def run(program, launcher, n_ranks, options):
    """Run on one number of ranks. @returns the documents, one for each bound and bandwidth."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.json"
        command = [launcher, "-n", str(n_ranks), program, "bench", *options, "--json", str(path)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(done.returncode)
        document = json.loads(path.read_text())
    return document.get("runs", [document])


def bandwidth_per_rank(document):
    return document["W"] and document["W"] / document["ranks"]


def rows_of(documents):
    """One row for each method, bound, bandwidth and number of ranks."""
    rows = []
    for index, document in documents:
        for row in document["rows"]:
            rows.append({"point": index, "bound": document["bound"], "W": document["W"],
                         "W_per_rank": bandwidth_per_rank(document), "S": document["S"],
                         "ranks": document["ranks"], "method": row["method"],
                         "median_s": row["median_s"],
                         "spread": (row["max_s"] - row["min_s"]) / row["median_s"]})
    first = {}
    for row in rows:  # rows of the first number of ranks come first
        key = (row["point"], row["method"])
        row["efficiency"] = first.setdefault(key, row["median_s"]) / row["median_s"]
    return rows


def table(rows):
    lines = [f"{'method':<36} {'bound':<10} {'W, all ranks':>13} {'ranks':>5} {'median s':>9} "
             f"{'spread':>7} {'efficiency':>10}"]
    for row in sorted(rows, key=lambda row: (row["point"], row["method"], row["ranks"])):
        bandwidth = f"{row['W'] / 1e6:.1f} MB/s" if row["W"] else "unlimited"
        lines.append(f"{row['method']:<36} {row['bound']:<10} {bandwidth:>13} {row['ranks']:>5} "
                     f"{row['median_s']:>9.3f} {100 * row['spread']:>5.0f} % "
                     f"{row['efficiency']:>10.2f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks (default 1,2,4)")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON")
    parser.add_argument("--mpiexec", default=os.environ.get("MPIEXEC", "mpiexec"))
    parser.add_argument("options", nargs="*", help="behind --: options of tailrace-lab bench")
    arguments = parser.parse_args()
    program, launcher = bench_program(), shutil.which(arguments.mpiexec)
    if program is None or launcher is None:
        parser.error("needs tailrace (build it, or set TAILRACE) and mpiexec")
    try:
        numbers = [int(word) for word in arguments.ranks.split(",")]
    except ValueError:
        parser.error(f"--ranks: {arguments.ranks} is no list of numbers")
    documents = []
    for n_ranks in numbers:
        documents += enumerate(run(program, launcher, n_ranks, arguments.options))
    rows = rows_of(documents)
    print(table(rows))
    n_cores = documents[0][1]["machine"]["cores"]
    if max(numbers) > n_cores:
        print(f"\nThe machine has {n_cores} cores: beyond that many ranks, this measures them.")
    if arguments.json:
        merged = {"schema_version": 1, "command": "lab/bench/papers/scaling.py", "rows": rows,
                  "runs": [document for _, document in documents]}
        pathlib.Path(arguments.json).write_text(json.dumps(merged, indent=1) + "\n")


if __name__ == "__main__":
    main()

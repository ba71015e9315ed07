#!/usr/bin/env python3
"""Times of a step on one node and on several, alternately.

  step_times.py [--rounds N] [--mebibytes M] [--ranks R] [--write-limit MB] [--csv FILE]

Run at the head of a cluster (tests/nodes/cluster; scripts/nodes-test --times). The same ranks
repack the same file (fields of f32, trz, abs=1e-3, one thread per rank). First all ranks are on
node 1, then they are distributed over the nodes, and so on. The nodes of one machine share its
cores, so the difference is the communication between them: claims, agreement, records.

`step_s` is the ranks' time for the step. `wait_s` is the part of it in which some encoded chunk of
a rank had no place yet (the maximum over the ranks; the rank continues to encode meanwhile). Layout
sparse runs as well. It computes places from the shape, so the additional time of claimed is the
cost of claims. h5py compares the files with the input, value by value.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

import h5py
import numpy as np

CLUSTER = os.environ.get("CLUSTER")
SHARE = pathlib.Path("/mnt/shared")
BOUND = 1e-3


def make_input(path, n_bytes):
    """Four smooth fields with noise of a few bounds, so that chunks differ in size."""
    edge = round((n_bytes / 16) ** (1 / 3))
    z, y, x = np.ogrid[:edge, :edge, :edge]
    noise = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for f in range(4):
            values = np.sin(z / (20 + f)) + np.cos(y / 30) * np.sin(x / (25 + 3 * f))
            values = values + noise.normal(0, 4 * BOUND, values.shape) * (z > edge // 2)
            file[f"field_{f}"] = values.astype("f4")


def check(expected, path):
    with h5py.File(expected) as a, h5py.File(path) as b:
        for name in a:
            error = np.abs(a[name][()].astype("f8") - b[name][()]).max()
            if not error <= BOUND:
                sys.exit(f"step_times: {name}: an error of {error}, bound {BOUND}")


def run(n_nodes, layout, options, source, target):
    tailrace = pathlib.Path(os.environ["TAILRACE"])
    report = target.with_suffix(".json")
    words = [tailrace, "repack", source, "-o", target, "--codec", "trz", "--bound",
             f"abs={BOUND}", "--layout", layout, "--threads", 1, "--chunk", "1MiB", "--force",
             "-q", "--json", report]
    if options.write_limit:
        words = ["env", f"LD_PRELOAD={tailrace.parents[1] / 'lib/libwritelimit.so'}",
                 f"TAILRACE_WRITE_LIMIT={options.write_limit * 1e6:.0f}",
                 f"TAILRACE_WRITE_LIMIT_FOLDER={target.parent}", *words]
    begin = ["mpiexec", "-n", options.ranks]
    if n_nodes == 1:    # Use the system's mpiexec, because the cluster's is first in PATH.
        path = ":".join(p for p in os.environ["PATH"].split(":") if not p.startswith("/mnt/"))
        begin = [CLUSTER, "on", 1, "env", f"PATH={path}", "OMPI_ALLOW_RUN_AS_ROOT=1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpiexec", "--oversubscribe", "--bind-to",
                 "none", "--mca", "mpi_yield_when_idle", 1, "-n", options.ranks]
    done = subprocess.run([str(word) for word in [*begin, *words]], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)
    if done.returncode:
        sys.exit(f"step_times: {n_nodes} nodes: {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(report.read_text())["files"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--ranks", type=int, default=6)
    parser.add_argument("--write-limit", type=float, default=0, help="MB/s of each rank; 0: none")
    parser.add_argument("--csv", help="a row for each run")
    options = parser.parse_args()
    if CLUSTER is None:
        sys.exit("step_times: only within tests/nodes/cluster")
    tailrace = pathlib.Path(os.environ["TAILRACE"])
    h5py.h5pl.append(str(tailrace.parents[1] / "lib/hdf5/plugin").encode())
    n_nodes = int(os.environ["CLUSTER_NODES"])
    folder = SHARE / "step_times"
    folder.mkdir()
    source = folder / "in.h5"
    make_input(source, options.mebibytes << 20)
    rows = []
    cases = [(nodes, layout) for nodes in (1, n_nodes) for layout in ("claimed", "sparse")]
    for turn in range(-1, options.rounds):
        for nodes, layout in cases:
            target = folder / f"out_{nodes}_{layout}.h5"
            report = run(nodes, layout, options, source, target)
            if turn < 0:    # Not counted: the turn checks the results and warms caches.
                check(source, target)
                continue
            rows.append({"nodes": nodes, "layout": layout, "ranks": options.ranks, "round": turn,
                         "load": round(os.getloadavg()[0], 1), "file_bytes": report["file_bytes"],
                         **{key: report[key] for key in ("step_s", "makespan_s", "encode_s",
                                                         "write_s", "wait_s", "commit_s",
                                                         "sync_s")}})
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    fs = pathlib.Path("/mnt/cluster/fs").read_text().strip()
    medians = {}
    for nodes, layout in cases:
        some = [row for row in rows if (row["nodes"], row["layout"]) == (nodes, layout)]
        steps = [row["step_s"] for row in some]
        medians[nodes, layout] = statistics.median(steps)
        share = 100 * statistics.median(row["wait_s"] / row["step_s"] for row in some)
        print(f"{fs}, {options.ranks} ranks on {nodes} node{'s' * (nodes > 1)}, {layout}: a step "
              f"{medians[nodes, layout]:.3f} s ({min(steps):.3f} to {max(steps):.3f}), some chunk "
              f"waited for its place {share:.1f} % of it; load {some[0]['load']} to "
              f"{some[-1]['load']}")
    for layout in ("claimed", "sparse"):
        print(f"{layout}: {medians[n_nodes, layout] / medians[1, layout]:.2f} times the step on "
              "one node")
    return 0


if __name__ == "__main__":
    sys.exit(main())

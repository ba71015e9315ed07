#!/usr/bin/env python3
"""Compares sizes of chunks of one step and of several steps of a field, encoded by trz.

    gather_steps.py --md md.h5,md_every_10.h5 --csv lab/bench/results/gather_steps.csv

Nyx's ten consecutive steps are real data (lab/bench/README.md). These commands make the files of
the example md.

    md --cells 16 --steps 116 --every 1 --output sync --codec none --file md.h5

    md --cells 16 --steps 260 --every 10 --output sync --codec none --file md_every_10.h5

tailrace repack rewrites the last 8 (md: 16) entries of each dataset once for each number of steps
in a chunk. Every value is checked against its bound before the size counts. waiting_bytes is the
memory that a writer buffers until a chunk is full.

TAILRACE is the build's bin/tailrace. Needs h5py and numpy.
"""

import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
NYX = "nyx64_steps090_099.h5"
NYX_BOUNDS = ["rel=1e-2", "rel=1e-3", "rel=1e-4"]
MD_BOUNDS = {"x": "abs=1e-3", "y": "abs=1e-3", "z": "abs=1e-3",
             "vx": "abs=1e-2", "vy": "abs=1e-2", "vz": "abs=1e-2", "energy": "abs=1e-2"}
COLUMNS = ["data", "field", "bound", "steps_per_chunk", "raw_bytes", "encoded_bytes",
           "waiting_bytes"]


def program():
    return os.environ.get("TAILRACE", str(ROOT / "build" / "bin" / "tailrace"))


def run(*arguments):
    done = subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"tailrace {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")


def encoded_bytes(folder, values, bound, n_steps):
    """Encoded size of the values with `n_steps` steps per chunk, after a check of the bound."""
    source, target = folder / "in.h5", folder / "out.h5"
    with h5py.File(source, "w") as file:
        file["values"] = values
    chunk = "x".join(map(str, (n_steps, *values.shape[1:])))
    run("repack", source, "-o", target, "--codec", "trz", "--bound", bound, "--chunk", chunk,
        "--fsync", "off", "--force")
    run("verify", source, target)  # ends with an error if a value breaks its bound
    with h5py.File(target) as file:
        assert file["values"].chunks == (n_steps, *values.shape[1:])
        return file["values"].id.get_storage_size()


def measure(data, field, values, bounds, numbers):
    with tempfile.TemporaryDirectory() as folder:
        for bound in bounds:
            for n_steps in numbers:
                n_bytes = encoded_bytes(pathlib.Path(folder), values, bound, n_steps)
                yield {"data": data, "field": field, "bound": bound, "steps_per_chunk": n_steps,
                       "raw_bytes": values.nbytes, "encoded_bytes": n_bytes,
                       "waiting_bytes": n_steps * values[0].nbytes if n_steps > 1 else 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="real data; default $TAILRACE_DATA",
                        default=os.environ.get("TAILRACE_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--md", default="", help="files of the example md, with commas")
    parser.add_argument("--steps", default="1,2,4,8", help="in a chunk")
    parser.add_argument("--csv", type=pathlib.Path, required=True)
    options = parser.parse_args()
    numbers = [int(number) for number in options.steps.split(",")]
    rows = []
    if (options.data / NYX).exists():
        with h5py.File(options.data / NYX) as file:
            for field in file:
                rows += measure("nyx", field, file[field][-8:], NYX_BOUNDS, numbers)
    for path in filter(None, options.md.split(",")):
        with h5py.File(path) as file:
            for field, bound in MD_BOUNDS.items():
                values = np.asarray(file[field][-16:])
                rows += measure(pathlib.Path(path).stem, field, values, [bound], numbers)
    if not rows:
        sys.exit("gather_steps: neither real data (--data) nor files of md (--md)")
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()

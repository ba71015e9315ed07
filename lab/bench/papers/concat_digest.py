#!/usr/bin/env python3
"""Checks, dataset by dataset, that outputs equal h5py's own concatenation of the inputs.

    lab/bench/papers/concat_digest.py list.txt out.h5 another.h5

h5py reads every dataset of every input, in the list's order, into a running hash (BLAKE2) of its
rows' bytes. Each output must have the same datasets with the same element types, inner extents,
numbers of rows, and hashes. With hashes, neither inputs nor outputs need to fit into memory. If an
output differs, the script says so and ends with 1. Needs numpy and h5py.
"""

import hashlib
import pathlib
import resource
import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5o

#: Approximate size of the pieces in which rows are read.
PIECE_BYTES = 64 << 20


def dataset_paths(file):
    """Paths of all datasets below the root."""
    paths = []

    def visit(path):
        if isinstance(h5o.open(file, path), h5d.DatasetID):
            paths.append(path)

    h5o.visit(file, visit)
    return paths


class Rows:
    """State of a dataset after some of its rows."""

    def __init__(self, dtype, inner):
        self.dtype, self.inner, self.n_rows, self.hash = dtype, inner, 0, hashlib.blake2b()

    def add(self, dataset):
        n_rows = dataset.shape[0]
        if n_rows == 0:
            return
        values = h5py.Dataset(dataset)
        row_bytes = max(self.dtype.itemsize * int(np.prod(self.inner)), 1)
        step = max(PIECE_BYTES // row_bytes, 1)
        for first in range(0, n_rows, step):
            self.hash.update(np.ascontiguousarray(values[first:first + step]))
        self.n_rows += n_rows

    def summary(self):
        return self.dtype.str, self.inner, self.n_rows, self.hash.hexdigest()


def add_file(path, found, first):
    """Append a file's rows. @returns a description of an error, or None."""
    file = h5f.open(str(path).encode(), h5f.ACC_RDONLY)
    paths = dataset_paths(file)
    if not first and found.keys() != set(paths):
        return f"{path}: has other datasets than the first file"
    for name in paths:
        dataset = h5o.open(file, name)
        rows = found.setdefault(name, Rows(dataset.dtype, dataset.shape[1:]))
        if rows.dtype != dataset.dtype or rows.inner != dataset.shape[1:]:
            return f"{path}: {name.decode()} is {dataset.dtype} {dataset.shape[1:]}, " \
                   f"before it was {rows.dtype} {rows.inner}"
        rows.add(dataset)
    file.close()
    return ""


def digest(paths):
    """{dataset: (type, inner extents, rows, hash)} of all files together. @error ValueError"""
    found = {}
    for i, path in enumerate(paths):
        wrong = add_file(path, found, i == 0)
        if wrong:
            raise ValueError(wrong)
    return {name.decode(): rows.summary() for name, rows in found.items()}


def differences(expected, path):
    """Lines about differences between an output and `expected`; empty if it is right."""
    found = digest([path])
    lines = [f"{path}: {name} is missing" for name in expected.keys() - found.keys()]
    lines += [f"{path}: {name} is in no input" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        if found[name] != expected[name]:
            same_form = found[name][:3] == expected[name][:3]
            lines.append(f"{path}: {name} " + ("has other values" if same_form else
                         f"is {found[name][:3]}, expected {expected[name][:3]}"))
    return lines


def inputs_of(list_path):
    lines = pathlib.Path(list_path).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    expected = digest(inputs_of(sys.argv[1]))
    wrong = [line for path in sys.argv[2:] for line in differences(expected, path)]
    if wrong:
        sys.exit("\n".join(wrong[:20] + ([f"... {len(wrong)} in all"] if len(wrong) > 20 else [])))
    n_rows = sum(rows for _, _, rows, _ in expected.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{len(sys.argv) - 2} files hold all {n_rows} rows of {len(expected)} datasets "
          f"({peak} MiB used)")


if __name__ == "__main__":
    main()

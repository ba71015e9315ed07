"""Judges files in a separate process, which a file may crash: one line of JSON in, one out."""

import json
import os
import pathlib
import sys
import tempfile
import warnings

import h5py
import hdf5plugin  # noqa: F401  It registers its filters with h5py's HDF5.

from .routes import judge


def main():
    warnings.simplefilter("ignore")
    # h5py's HDF5 crashes if it loads filters from the path that the command line needs.
    h5py.h5pl.prepend(str(pathlib.Path(os.environ["TAILRACE_H5TRZ"]).parent).encode())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="workload_files_"))
    for line in sys.stdin:
        asked = json.loads(line)
        answer = judge(asked["description"], asked["route"], asked["seed"], folder / "one")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

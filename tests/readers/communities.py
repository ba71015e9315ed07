"""Tiny files written by communities' own programs, and read by their own readers.

Runs in a separate environment (requirements-readers.txt), without Tailrace:

    communities.py list                        names and versions of all, as JSON
    communities.py write NAME FILE
    communities.py read NAME FILE...           for each FILE: FILE.npz with the reader's result

A community is a class: `write` makes a file by the community's writer, and `read` returns the
arrays of its reader, by name. `values` are globs of the names that a bound may change; all other
names stay exact. Files of codes without a Python writer are made by h5py, as the code's manual
describes them. The reader that the code's users have reads them.
"""

import importlib.metadata
import json
import os
import sys

import numpy as np

import community_measurements  # noqa: F401
import community_meshes  # noqa: F401
import community_particles  # noqa: F401
import community_tables  # noqa: F401
from community import COMMUNITIES


def version(name):
    return importlib.metadata.version(name)


def main(words):
    if words[0] == "list":
        print(json.dumps({name: {
            "name": each.name,
            "writer": f"{each.writer} {version(each.writer)}",
            "reader": f"{each.reader} {version(each.reader)}", "file": each.file,
            "values": each.values, "positive": each.positive,
            "one_dataset": each.one_dataset} for name, each in COMMUNITIES.items()}))
        return
    each = COMMUNITIES[words[1]]
    if words[0] == "write":
        each.write(words[2])
        return
    for path in words[2:]:
        np.savez(path + ".npz", **each.read(path))


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # VTK's wheel may crash when it is unloaded.

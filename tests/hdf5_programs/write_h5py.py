"""Program on h5py's parallel build, like those of h5py's documentation; every rank runs it.

    write_h5py.py FILE
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
n_ranks = MPI.COMM_WORLD.size


def part(n):
    """Return the slice of this rank's share of n rows."""
    return slice(n * rank // n_ranks, n * (rank + 1) // n_ranks)


with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    # Every rank writes its own element, and its own rows.
    file.create_dataset("test", (n_ranks,), dtype="i")[rank] = rank
    rows = np.arange(6000.0).reshape(60, 100)
    file.create_dataset("rows", (60, 100), dtype="f8")[part(60)] = rows[part(60)]
    # Collective writes; a conversion of types and byte order; half precision.
    big = file.create_dataset("big_endian", (60, 100), dtype=">f4")
    with big.collective:
        big[part(60), :] = rows[part(60)]
    file.create_dataset("half", (60, 200), dtype="f2")[part(60), ::2] = rows[part(60)] / 7000
    # A broadcast, a mask, a list of columns, single elements.
    broadcast = file.create_dataset("broadcast", (n_ranks * 4, 3000), dtype="i4", fillvalue=-5)
    broadcast[4 * rank:4 * rank + 3] = np.arange(3000)
    masked = file.create_dataset("masked", (80, 80), dtype="i8")
    mask = np.zeros((80, 80), bool)
    mask[rank::n_ranks, 3::7] = True
    masked[mask] = np.arange(mask.sum()) + 1000 * rank
    columns = file.create_dataset("columns", (80, 80), dtype="u2")
    columns[rank::n_ranks, [1, 5, 40, 77]] = np.full((80 // n_ranks, 4), rank + 1)
    # Booleans, enums, fixed strings, compounds.
    flags = np.arange(20000) % 3 == 0
    file.create_dataset("flags", (20000,), dtype="?")[part(20000)] = flags[part(20000)]
    words = [b"w%d" % i for i in range(50)]
    file.create_dataset("words", (50,), dtype="S6")[part(50)] = words[part(50)]
    record = np.zeros(90, dtype=[("id", "i4"), ("at", "f8", 3)])
    record["id"] = np.arange(90)
    record["at"][:, 1] = np.arange(90) / 4
    file.create_dataset("records", (90,), dtype=record.dtype)[part(90)] = record[part(90)]
    # Chunks and a filter of the program's own; a dataset that grows.
    own = file.create_dataset("own", (60, 100), dtype="f8", chunks=(20, 50), compression="gzip")
    with own.collective:
        own[part(60)] = rows[part(60)]
    assert own.compression == "gzip" and own.chunks == (20, 50)
    grown = file.create_dataset("grown", (0, 100), maxshape=(None, 100), dtype="f4")
    for step in range(3):
        grown.resize(20 * (step + 1), axis=0)
        grown[20 * step + rank] = rows[step]
        file.flush()
    # Groups and attributes; properties of the file; reads.
    group = file.create_group("a/b")
    group.attrs["text"] = "words of some length"
    group.attrs["numbers"] = np.arange(5)
    file["rows"].dims[0].label = "z"
    file["linked"] = h5py.SoftLink("/rows")
    assert file.driver == "mpio" and file.filename == sys.argv[1]
    assert file["rows"][part(60)].sum() == rows[part(60)].sum()
    linked = file["linked"]
    with linked.collective:
        assert (linked[:] == rows).all()

with h5py.File(sys.argv[1], "a", driver="mpio", comm=MPI.COMM_WORLD) as file:
    file["rows"][part(60), 99] = -1.0
    file.create_dataset("later", (60, 100), dtype="f8")[part(60)] = rows[part(60)]
    del file["test"]
    file.attrs["closed"] = 2

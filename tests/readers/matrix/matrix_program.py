"""A program on h5py that runs with a front end preloaded: matrix_program.py FILE [parallel].

Debian's Python runs it, because that h5py uses the HDF5 libraries that the front ends serve.
"""

import sys

import h5py
import numpy as np

parallel = sys.argv[2:] == ["parallel"]
more = {}
if parallel:
    from mpi4py import MPI
    more = {"driver": "mpio", "comm": MPI.COMM_WORLD}

# Multiples of 1/64, so that all sums are exact in any order.
values = (np.arange(6 * 40 * 48) * 7 % 4096 / 64 + 100).reshape(6, 40, 48)
with h5py.File(sys.argv[1], "w", **more) as file:
    file.attrs["title"] = "program"
    packed = {} if parallel else {"compression": "gzip", "shuffle": True}
    field = file.create_dataset("field", data=values.astype("f4"), chunks=(2, 20, 48), **packed)
    field.attrs["units"] = "K"
    for i in range(1, 13):
        field.attrs[f"a{i:02}"] = i / 4
    file.create_dataset("group/count", data=np.arange(6000, dtype="i4").reshape(60, 100),
                        chunks=(30, 100), **packed)
    grown = file.create_dataset("grown", (0, 60, 100), maxshape=(None, 60, 100), dtype="f4",
                                chunks=(1, 60, 100), **packed)
    for step in range(3):
        grown.resize(step + 1, axis=0)
        grown[step] = (values.ravel()[:6000] + step).reshape(60, 100)
    file["scalar"] = 2.5
    file["plain"] = np.arange(20.0)

"""Programs on parallel HDF5 and datasets with guards that new values could violate.

Programs can read such datasets in files that they write, but cannot write to them.
"""

import h5py
import numpy as np
import pytest
from cli_tools import datasets, smooth, tailrace
from hdf5_runs import h5py_of_mpi, run

pytestmark = pytest.mark.sample(3)

GUARDED_BY = """
import os, sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
last = comm.rank == comm.size - 1

def refused(write):
    try:
        write()
    except (OSError, NotImplementedError) as error:
        os.write(2, f"rank {comm.rank} refused: {error}\\n".encode())

file = h5py.File(sys.argv[1], "r+", driver="mpio", comm=comm)
guarded = file["t"]
values = guarded[()]
rows = np.array_split(np.arange(len(values)), comm.size)[comm.rank]
more = file.create_dataset("more", values.shape, "f4")
with more.collective:
    more[rows] = values[rows]
if sys.argv[2] == "together":
    def write():
        with guarded.collective:
            guarded[rows] = 0
    refused(write)
elif last:
    refused(lambda: guarded.__setitem__(rows, 0))
assert (guarded[()] == values).all()
np.save(f"{sys.argv[1]}.{comm.rank}.npy", values)
# What one rank was refused all hear of when they meet next.
file.close() if sys.argv[2] == "together" else refused(file.close)
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("how", ["together", "alone"])
@pytest.mark.parametrize("guard", ["region=/mask:0.001", "minmax", "sum"])
def test_guards_that_bar_writers_bar_no_readers(tmp_path, guard, how, ranks):
    """A program opens the file to add to it, and reads datasets that it must not change."""
    exact, path = tmp_path / "exact.h5", tmp_path / "guarded.h5"
    with h5py.File(exact, "w") as file:
        file["t"] = smooth((16, 48, 64)) - 1
        file["mask"] = (np.indices((48, 64)).sum(0) % 3 == 0).astype("u1")
    tailrace("repack", exact, "-o", path, "--codec", "trz", "--bound", "abs=0.01", "--field",
             f"t:guard={guard}")
    told = run(["/usr/bin/python3", "-c", GUARDED_BY, path, how], ranks, True, **h5py_of_mpi())
    # The error names the dataset and its guard, on every rank.
    for rank in range(ranks):
        line = told[told.index(f"rank {rank} refused: "):].split("\n")[0]
        assert f'dataset "/t": its values keep guard={guard}' in line
        assert 'dataset "/t": dataset' not in line
    tailrace("verify", exact, path, "--ignore", "/more")
    values = np.load(f"{path}.0.npy")
    assert 0 < np.abs(values - datasets(exact)["t"]).max() <= 0.01
    with h5py.File(path) as file:
        assert np.array_equal(file["more"][()], values)


GROWN_BY = """
import os, sys, h5py
from mpi4py import MPI
comm = MPI.COMM_WORLD
file = h5py.File(sys.argv[1], "r+", driver="mpio", comm=comm)
guarded = file["t"]
before = guarded[()]
try:
    guarded.resize(20, axis=0)
except Exception as error:
    os.write(2, f"rank {comm.rank} refused: {error}\\n".encode())
assert guarded.shape == before.shape and (guarded[()] == before).all()
file["u"].resize(20, axis=0)
file.close()
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("guard", ["region=/mask:0.001", "sum"])
def test_guards_that_bar_writers_bar_growth(tmp_path, guard, ranks):
    """New cells have values, at least fill values."""
    exact, path = tmp_path / "exact.h5", tmp_path / "guarded.h5"
    with h5py.File(exact, "w") as file:
        for name in "tu":
            file.create_dataset(name, data=smooth((16, 48, 64)) - 1, maxshape=(None, 48, 64),
                                chunks=(4, 48, 64))
        file["mask"] = (np.indices((48, 64)).sum(0) % 3 == 0).astype("u1")
    tailrace("repack", exact, "-o", path, "--codec", "trz", "--bound", "abs=0.01", "--field",
             f"t:guard={guard}")
    told = run(["/usr/bin/python3", "-c", GROWN_BY, path], ranks, True, **h5py_of_mpi())
    assert all(f"rank {rank} refused" in told for rank in range(ranks))
    assert f'dataset "/t": its values keep guard={guard}' in told
    with h5py.File(path) as file:
        assert len(file["t"]) == 16 and len(file["u"]) == 20

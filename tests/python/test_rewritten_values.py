"""Values that are written again and again while a file is open, and what becomes of their places.

HDF5 keeps the index entry of a chunk whose encoded length stays, and puts new datasets into space
that replaced chunks have left.
"""

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import tailrace
from python_package import run

tailrace_package = python_package.load()


@pytest.mark.parametrize("seed", range(2))
def test_one_chunk_of_a_rounding_codec(tmp_path, seed):
    """12 values: their chunk has the same length whether it is shuffled, deflated or neither."""
    rng = np.random.default_rng(seed)
    expected = rng.normal(size=12).astype("f4")
    path = tmp_path / "u.nc"
    with tailrace_package.open(path, "w") as file:
        file.create_dimension("x", 12)
        variable = file.create_variable("u", ("x",), "f4", codec="portable", abs=1e-3)
        variable[:] = expected
        for _ in range(4):
            file.flush()
            for at in rng.integers(0, 12, 2):
                expected[at] = rng.normal()
                variable[int(at)] = expected[at]
    for found in (h5py.File(path)["u"][:], netCDF4.Dataset(path)["u"][:],
                  tailrace_package.open(path)["u"][:]):
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_small_chunks_of_another_writer(tmp_path, seed):
    """gzip of 32 bytes: h5py stores a chunk as it is where deflate makes it longer."""
    rng = np.random.default_rng(seed)
    n = 2000
    expected = rng.integers(0, 2**np.repeat(rng.integers(1, 31, n // 8), 8), n).astype("i4")
    path = tmp_path / "u.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=expected, chunks=(8,), compression="gzip",
                            shuffle=bool(seed % 2))
    for _ in range(3):
        with tailrace_package.open(path, "a") as file:
            for at in range(0, n, 8):
                at += rng.integers(8)
                expected[at] = rng.integers(0, 2**rng.integers(1, 31))
                file["u"][int(at)] = expected[at]
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["u"][:], expected)
        tailrace("recover", path)


CONTIGUOUS = """
import sys
from mpi4py import MPI
import numpy as np, tailrace
with tailrace.open(sys.argv[1], "w", comm=MPI.COMM_WORLD) as file:
    file.create_dimension("x", 400)
    array = file.create_variable("u", ("x",), "f8")
    rng = np.random.default_rng(1)
    scalars = {}
    for step in range(12):
        if step % 3 == 1:
            scalars[step] = file.create_variable(f"s{step}", (), "f8")
        array[:] = rng.integers(0, 10**rng.integers(1, 9), 400)
        for name, scalar in scalars.items():
            scalar[...] = 100 * step + name
        file.flush()
    for name, scalar in scalars.items():
        assert float(scalar[...]) == 1100 + name, (name, float(scalar[...]))
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_contiguous_variables_where_chunks_were(tmp_path, ranks):
    words = CONTIGUOUS.replace("sys.argv[1]", repr(str(tmp_path / "u.nc")))
    run(words, ranks=ranks)
    with h5py.File(tmp_path / "u.nc") as file:
        assert {name: file[name][()] for name in file if name.startswith("s")} == {
            f"s{step}": 1100.0 + step for step in (1, 4, 7, 10)}

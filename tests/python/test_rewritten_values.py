"""Values that are overwritten repeatedly while a file is open, and the space of their chunks.

HDF5 keeps the index entry of a chunk whose encoded length does not change, and puts new datasets
into space of replaced chunks.
"""

import random

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
    """A chunk of 12 values has the same length shuffled, deflated or unfiltered."""
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
    """h5py stores chunks of 32 bytes unfiltered if deflate makes them longer."""
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


def test_places_after_growth(tmp_path):
    """Chunks of a variable are found after another variable has extended its dimension."""
    rng = random.Random(3)
    path = tmp_path / "u.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 6)
        file.createDimension("t", None)
        for name in "ab":
            variable = file.createVariable(name, "i4", ("x", "t"), chunksizes=(2, 3), zlib=True)
            variable[:] = np.arange(30).reshape(6, 5)
    expected = {name: np.arange(30).reshape(6, 5) for name in "ab"}
    with tailrace_package.open(path, "a") as file:
        for round_ in range(6):
            name = "ab"[round_ % 2]
            length = 5 + 4 * (round_ + 1)
            column = np.arange(6) + 1000 * (round_ + 1)
            file[name][:, length - 1] = column
            x, t = rng.randrange(6), rng.randrange(5)
            file[name][x, t] = round_
            for other, values in expected.items():
                grown = np.full((6, length), -2147483647)
                grown[:, :values.shape[1]] = values
                expected[other] = grown
            expected[name][:, length - 1] = column
            expected[name][x, t] = round_
            file.flush()
    with h5py.File(path) as file:
        for name, values in expected.items():
            np.testing.assert_array_equal(file[name][:], values, err_msg=name)


def test_places_while_a_dimension_grows(tmp_path):
    """HDF5 extends a dimension when a variable is created, but the file has it only later."""
    path = tmp_path / "u.nc"
    expected = np.full((4, 11), -7, "i4")
    expected[:, :9] = np.arange(36).reshape(4, 9)
    with tailrace_package.open(path, "w") as file:
        file.create_dimension("x", 4)
        file.create_dimension("t", None)
        file.create_variable("u", ("x", "t"), "i4", chunks=(3, 3), fill_value=-7)[:, :9] = (
            expected[:, :9])
    with tailrace_package.open(path, "a") as file:
        expected[1:4] = np.arange(33).reshape(3, 11)
        file["u"][1:4, 0:11] = expected[1:4]
        file.create_variable("later", ("t", "x"), "i4")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["u"][:], expected)

"""Serial programs preloaded, with a bound for all: it applies to values only.

The programs are Python's h5py and PyTables on the system's HDF5, in processes of their own."""

import subprocess

import h5py
import numpy as np
import pytest
from test_hdf5_serial_bounds import attributes, preloaded, stored

SYSTEM_PYTHON = "/usr/bin/python3"  # Its h5py and PyTables use the system's HDF5.
PROGRAM = """
import sys, h5py, numpy as np
sort = int(sys.argv[2])
random = np.random.default_rng(3)
fields = {"lat": (64, 96), "lon": (64, 96), "mask": (64, 96), "cell_area": (64, 96),
          "grid/xt": (6000,), "u": (4, 64, 96), "deep/er/v": (64, 96)}
with h5py.File(sys.argv[1], "w") as file:
    names = list(fields)[::sort]
    for name in names:
        file.create_dataset(name, fields[name], "f4" if sort > 0 else "f8", chunks=True)
        if name == "lat": file[name].attrs["units"] = "degrees_north"
        if name == "lon": file[name].attrs["units"] = np.bytes_("degrees_east")
        if name == "u":
            file[name].attrs["coordinates"] = "lat lon grid/xt"
            file[name].attrs["cell_measures"] = "area: cell_area"
    for name in names:
        file[name][...] = np.cumsum(random.normal(size=fields[name]), 0)
"""


@pytest.mark.parametrize("sort", [1, -1])
def test_only_values_lose_digits(tmp_path, sort):
    plain, bounded = tmp_path / "plain.h5", tmp_path / "bounded.h5"
    subprocess.run([SYSTEM_PYTHON, "-c", PROGRAM, plain, str(sort)], check=True, timeout=600)
    said = preloaded([SYSTEM_PYTHON, "-c", PROGRAM, bounded, sort], "bound=rel=1e-3")
    native, ours = stored(plain), stored(bounded)
    lossy = {name for name in native if not np.array_equal(native[name], ours[name])}
    assert lossy == {"u", "deep/er/v"}
    assert all(not attributes(bounded, name) for name in set(native) - lossy)
    for name in sorted(lossy):
        bound = 1e-3 * np.ptp(native[name].astype("f8"))
        assert np.abs(native[name].astype("f8") - ours[name]).max() <= bound
    assert "exact under a bound for all (coordinate by " in said and '"/lon"' in said
    assert "exact under a bound for all (mask by " in said


def test_names_and_the_option_override(tmp_path):
    plain, bounded = tmp_path / "plain.h5", tmp_path / "bounded.h5"
    subprocess.run([SYSTEM_PYTHON, "-c", PROGRAM, plain, "1"], check=True, timeout=600)
    for options, expected in (
            ("roles=off,bound=abs=1e-2", {"u", "deep/er/v", "lat", "lon", "mask", "cell_area"}),
            ("bound=abs=1e-2;lat: bound=abs=1e-3", {"u", "deep/er/v", "lat"}),
            ("bound=abs=1e-2;deep/*: bound=none", {"u"})):
        preloaded([SYSTEM_PYTHON, "-c", PROGRAM, bounded, "1"], options)
        native, ours = stored(plain), stored(bounded)
        lossy = {name for name in native if not np.array_equal(native[name], ours[name])}
        assert lossy - {"grid/xt"} == expected, options


APPENDING = """
import sys, h5py, numpy as np
random = np.random.default_rng(5)
with h5py.File(sys.argv[1], "a") as file:
    for name in ("late/mine", "late/v"):
        file.create_dataset(name, (64, 96), "f4", chunks=(16, 96))[...] = random.normal(
            size=(64, 96))
"""


def test_an_older_program_names_a_coordinate(tmp_path):
    """The attribute of a dataset that was in the file before names a later dataset."""
    path, plain = tmp_path / "it.h5", tmp_path / "plain.h5"
    for name in (path, plain):
        with h5py.File(name, "w") as file:
            file.create_group("late")
            file["late/t"] = np.zeros((64, 96), "f4")
            file["late/t"].attrs["coordinates"] = "mine"
    subprocess.run([SYSTEM_PYTHON, "-c", APPENDING, plain], check=True, timeout=600)
    preloaded([SYSTEM_PYTHON, "-c", APPENDING, path], "bound=rel=1e-3")
    native, ours = stored(plain), stored(path)
    assert np.array_equal(native["late/mine"], ours["late/mine"])
    assert not np.array_equal(native["late/v"], ours["late/v"])


INDEX = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    file.attrs["PYTABLES_FORMAT_VERSION"] = "2.1"
    for name in ("_i_t/a/sorted", "t/a"):
        file.create_dataset(name, (60000,), "f8", chunks=True)[...] = np.sort(
            np.random.default_rng(3).normal(size=60000))
"""


def test_the_root_names_the_community(tmp_path):
    plain, bounded = tmp_path / "plain.h5", tmp_path / "bounded.h5"
    subprocess.run([SYSTEM_PYTHON, "-c", INDEX, plain], check=True, timeout=600)
    said = preloaded([SYSTEM_PYTHON, "-c", INDEX, bounded], "bound=rel=1e-3")
    native, ours = stored(plain), stored(bounded)
    assert np.array_equal(native["_i_t/a/sorted"], ours["_i_t/a/sorted"])
    assert not np.array_equal(native["t/a"], ours["t/a"])
    assert "exact under a bound for all (index by PyTables)" in said


INDEXED = """
import sys
import numpy as np, tables
random = np.random.default_rng(1)
rows = np.zeros(100000, [("a", "f8"), ("b", "f4")])
rows["a"], rows["b"] = random.normal(size=(2, len(rows)))
with tables.open_file(sys.argv[1], "w") as file:
    table = file.create_table("/", "t", rows)
    table.cols.a.create_csindex()
    table.cols.b.create_index(optlevel=6, kind="medium")
    table.flush()
with tables.open_file(sys.argv[1]) as file:
    for column in "ab":
        found = [row.nrow for row in file.root.t.where(f"({column} > 0.1) & ({column} < 0.102)")]
        expected = np.nonzero((rows[column] > 0.1) & (rows[column] < 0.102))[0]
        assert sorted(found) == expected.tolist(), (column, len(found), len(expected))
"""


@pytest.mark.full
def test_queries_of_pytables_find_all_rows(tmp_path):
    """The indexes of a table are sorted copies of its columns: with loss, queries miss rows."""
    said = preloaded([SYSTEM_PYTHON, "-c", INDEXED, tmp_path / "it.h5"], "bound=rel=1e-3")
    assert "exact under a bound for all (index by PyTables)" in said

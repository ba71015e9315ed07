"""Thousands of datasets directly in the root group: repack, concat, and readers."""

import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import tailrace

N_MANY = 1500


def make_file(path, n):
    with h5py.File(path, "w", track_order=True) as file:
        for i in range(n):
            file.create_dataset(f"number_{i:05d}", data=np.full(4, i, "i4"), chunks=(4,),
                                maxshape=(None,))


def has_heap(path):
    """True if a group stores its links in a fractal heap."""
    return b"FRHP" in path.read_bytes()


@pytest.mark.parametrize("work", ["repack", "concat"])
def test_many_are_kept_in_a_heap(tmp_path, work):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    make_file(source, N_MANY)
    inputs = [source]
    if work == "concat":
        inputs.append(shutil.copy(source, tmp_path / "more.h5"))
    tailrace(work, *inputs, "-o", target)
    assert has_heap(target)
    n_values = 4 * len(inputs)
    with h5py.File(target) as file:
        assert list(file) == [f"number_{i:05d}" for i in range(N_MANY)]
        for i in [0, 700, N_MANY - 1]:
            assert np.array_equal(file[f"number_{i:05d}"][()], np.full(n_values, i))
    with netCDF4.Dataset(target) as file:
        assert len(file.variables) == N_MANY
        assert (file[f"number_{N_MANY - 1:05d}"][:] == N_MANY - 1).all()
    if shutil.which("h5dump"):
        done = subprocess.run(["h5dump", "-d", "/number_01234", str(target)],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and "1234" in done.stdout
    with h5py.File(target, "a") as file:
        file["one_more"] = 1.0
        del file["number_00000"]
    with h5py.File(target) as file:
        assert len(file) == N_MANY and file["one_more"][()] == 1


def test_few_stay_in_the_header(tmp_path):
    make_file(tmp_path / "in.h5", 100)
    tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5")
    assert not has_heap(tmp_path / "out.h5")

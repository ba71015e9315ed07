"""Through every interface, a file without losses has no attribute of Tailrace's.

Its root group has `tailrace_readers_need` only if a filter does not come with HDF5."""

import os

import h5py
import numpy as np
import pytest

import python_package
import test_hdf5_serial_bounds
import test_pnetcdf
from cli_tools import numbers, smooth, tailrace
from hdf5_runs import ALL_FRONTS, patterns

tailrace_python = python_package.load()

NEED = "tailrace_readers_need"


def own_attributes(path):
    """Return Tailrace's attributes of a file, by object."""
    found = {}

    def note(name, item):
        names = {key for key in item.attrs if key.startswith("tailrace_")}
        if names:
            found[name] = names

    with h5py.File(path) as file:
        note("/", file)
        file.visititems(note)
    return found


def plain_file(path):
    with h5py.File(path, "w") as file:
        for name in ("t", "u"):
            file.create_dataset(name, data=smooth((32, 64, 16)), maxshape=(None, 64, 16),
                                chunks=(8, 64, 16))
    return path


def by_python(folder, options):
    path = folder / "python.nc"
    with tailrace_python.open(path, "w") as file:
        file.create_variable("u", ("t", "y"), data=smooth((300, 200)), codec=options)
    return path


def by_repack(folder, options):
    path = folder / "repack.h5"
    tailrace("repack", plain_file(folder / "in.h5"), "-o", path, "--codec", options, ranks=2)
    return path


def by_concat(folder, options):
    path = folder / "concat.h5"
    inputs = [plain_file(folder / f"{i}.h5") for i in range(3)]
    tailrace("concat", *inputs, "-o", path, "--codec", options, ranks=2)
    return path


def by_export(folder, options):
    path = folder / "export.h5"
    tailrace("export", by_repack(folder, options), "-o", path)
    return path


def by_pnetcdf(folder, options):
    path = folder / "pnetcdf.nc"
    forms = test_pnetcdf.built("bin", "pnetcdf", "access_forms_relinked")
    test_pnetcdf.run([forms, path], 2, TAILRACE_OPTIONS=f"codec={options}")
    return path


def by_serial(folder, options):
    path = folder / "serial.h5"
    test_hdf5_serial_bounds.root_rank(path, f"codec={options}")
    return path


DOORS = [by_python, by_repack, by_concat, by_export, by_pnetcdf, by_serial]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("codec", ["deflate", "none"])
def test_no_attribute_without_losses(door, codec, tmp_path):
    assert own_attributes(door(tmp_path, codec)) == {}


@pytest.mark.parametrize("door", [by_python, by_repack, by_pnetcdf], ids=lambda door: door.__name__)
def test_a_filter_that_readers_lack_is_named(door, tmp_path):
    path = door(tmp_path, "trz")
    assert own_attributes(path) == {"/": {NEED}}
    fields = numbers("info", path)["fields"]
    assert fields and not any(field["bound_asked"] for field in fields if "bound_asked" in field)


@pytest.mark.parametrize("front", ALL_FRONTS, ids=lambda end: f"hdf5{end}")
def test_programs_on_parallel_hdf5(front, tmp_path):
    patterns(["runs", "scattered"], tmp_path / "exact", 2, front=front, program="write_points",
             TAILRACE_OPTIONS="codec=deflate")
    for name in ("runs", "scattered"):
        assert own_attributes(tmp_path / "exact" / f"{name}.h5") == {}


def test_what_reads_the_attribute_does_without(tmp_path):
    """verify compares exactly, info and Python read it, and the file can be continued."""
    path, other = by_python(tmp_path, "deflate"), tmp_path / "other.nc"
    os.rename(path, other)
    by_python(tmp_path, "deflate")
    tailrace("verify", other, path)
    with tailrace_python.open(path) as file:
        assert file["u"].bound == "" and np.array_equal(file["u"][...], smooth((300, 200)))
    # Continued without and then with losses: the bound is recorded, and nothing about others.
    with tailrace_python.open(path, "a") as file:
        file.create_variable("more", ("t", "y"), data=smooth((300, 200), 1), codec="deflate")
    assert own_attributes(path) == {}
    with tailrace_python.open(path, "a") as file:
        file.create_variable("lossy", ("t", "y"), data=smooth((300, 200), 2), codec="portable",
                             abs=0.01)
    found = own_attributes(path)
    assert set(found) == {"lossy"} and "tailrace_version" in found["lossy"]
    tailrace("recover", path)
    changed = tmp_path / "changed.nc"
    with h5py.File(path) as source, h5py.File(changed, "w") as copy:
        for name in source:
            source.copy(name, copy)
        copy["u"][5, 7] += 1e-3
    done = tailrace("verify", path, changed, code=1)
    assert "u" in done.stdout


def test_a_new_file_with_losses_says_that_the_others_are_exact(tmp_path):
    path = tmp_path / "u.nc"
    with tailrace_python.open(path, "w") as file:
        file.create_variable("exact", ("t", "y"), data=smooth((300, 200)), codec="deflate")
        file.flush()
        assert own_attributes(path) == {}
        file.create_variable("lossy", ("t", "y"), data=smooth((300, 200), 1), codec="portable",
                             abs=0.01)
    found = own_attributes(path)
    assert set(found) == {"/", "lossy"} and found["/"] == {"tailrace_file"}
    with tailrace_python.open(path) as file:
        assert (file["exact"].bound, file["lossy"].bound) == ("none", "abs=0.01")

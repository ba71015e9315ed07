"""Groups with several hard links: each name has all members, for readers and in copies."""

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import tailrace as run

tailrace = python_package.load()
xr = pytest.importorskip("xarray")


@pytest.fixture
def path(tmp_path):
    """Write a file with /g, which has dimensions, variables and a group.

    /h/again is another name of /g, /inner of /g/inner, and /g/copy of u."""
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 5)
        g = file.createGroup("g")
        g.title = "a group"
        g.createDimension("t", None)
        g.createVariable("t", "f8", ("t",))[:] = np.arange(4)
        u = g.createVariable("u", "f4", ("t", "x"), zlib=True, chunksizes=(2, 5))
        u.units = "K"
        u[:] = np.arange(20).reshape(4, 5)
        inner = g.createGroup("inner")
        inner.createVariable("w", "i4", ("x",))[:] = np.arange(5) * 3
        file.createGroup("h")
    with h5py.File(path, "r+") as file:
        file["h/again"] = file["g"]
        file["inner"] = file["g/inner"]
    return path


NAMES = ["g", "h/again"]


def check(file):
    for name in NAMES:
        group = file[name]
        assert set(group) == {"t", "u", "inner"} and group.attrs["title"] == "a group"
        assert set(group.dimensions) == {"t"} and len(group.dimensions["t"]) == 4
        assert group["u"].dims == ("t", "x") and group["u"].attrs["units"] == "K"
        assert group["u"].path == f"/{name}/u"
        assert group["u"].stored_bytes == file["g/u"].stored_bytes > 0
        np.testing.assert_array_equal(group["u"][1:, ::2], np.arange(20).reshape(4, 5)[1:, ::2])
        np.testing.assert_array_equal(file[f"{name}/inner/w"][...], np.arange(5) * 3)
    np.testing.assert_array_equal(file["inner/w"][...], np.arange(5) * 3)
    assert set(file.groups) == {"g", "h", "inner"} and set(file["h"]) == {"again"}


def test_each_name_has_all_members(path):
    with tailrace.open(path) as file:
        check(file)
        assert "again" in repr(file["h"])


def test_xarray_has_each_name(path):
    with xr.open_datatree(path, engine="tailrace") as tree:
        for name in NAMES:
            np.testing.assert_array_equal(tree[name].u, np.arange(20).reshape(4, 5))
            assert tree[name].u.dims == ("t", "x") and "t" in tree[name].coords
        assert set(tree["h/again"].children) == {"inner"}


@pytest.mark.parametrize("command", ["repack", "export", "netcdf"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_copies_keep_each_name(command, ranks, path, tmp_path):
    target = tmp_path / "copy.nc"
    words = ["repack", "--netcdf"] if command == "netcdf" else [command]
    run(words[0], path, "-o", target, *words[1:], ranks=ranks)
    run("verify", path, target)
    with tailrace.open(target) as file:
        check(file)
    with h5py.File(target) as file:
        assert file["g"] == file["h/again"] and file["inner"] == file["g/inner"]


def test_values_written_by_one_name_are_read_by_the_other(path):
    more = np.full((2, 5), 7.0, "f4")
    with tailrace.open(path, "a") as file:
        check(file)
        file["h/again/u"][4:6] = more
        file["g/u"][0] = 9
        for name in NAMES:
            assert file[name]["u"].shape == (6, 5) and len(file[name].dimensions["t"]) == 6
            np.testing.assert_array_equal(file[name]["u"][4:], more)
            assert (file[name]["u"][0] == 9).all()
        file.flush()
        for name in NAMES:
            np.testing.assert_array_equal(file[name]["u"][4:], more)
    with tailrace.open(path) as file:
        for name in NAMES:
            assert (file[name]["u"][0] == 9).all()
            np.testing.assert_array_equal(file[name]["u"][1:4], np.arange(5, 20).reshape(3, 5))
            np.testing.assert_array_equal(file[name]["u"][4:], more)
    with netCDF4.Dataset(path) as file:
        assert file["g/u"].shape == (6, 5)


def test_two_names_of_one_dataset_share_what_is_staged(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=np.zeros((40, 50)), chunks=(40, 50), compression=1)
        file["v"] = file["u"]
    with tailrace.open(path, "a") as file:
        file["u"][:10] = 1
        file["v"][10:20] = 2
        for name in "uv":
            assert (file[name][:10] == 1).all() and (file[name][10:20] == 2).all()
    with h5py.File(path) as file:
        assert file["u"] == file["v"]
        np.testing.assert_array_equal(file["u"][:, 0], [1] * 10 + [2] * 10 + [0] * 20)


@pytest.mark.parametrize("change", [
    lambda file: file["h/again"].create_dimension("y", 3),
    lambda file: file["h/again"].create_group("more"),
    lambda file: file["h/again"].attrs.update({"title": "another"}),
    lambda file: file["h/again/u"].attrs.update({"units": "C"}),
    lambda file: file["h/again"].create_variable("y", ("x",), "f4")])
def test_definitions_need_the_first_name(change, path):
    with tailrace.open(path, "a") as file, pytest.raises(ValueError, match='another name of.*"/g"'):
        change(file)
    with tailrace.open(path) as file:
        check(file)


def test_a_link_that_leads_back_is_said(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a/b/u"] = np.arange(3)
        file["a/b/up"] = file["a"]
    with pytest.warns(RuntimeWarning, match='hard link "/a/b/up" leads back to group "/a"'):
        file = tailrace.open(path)
    with file:
        assert set(file["a/b"]) == {"u"}


def test_doubling_links_end_with_a_word(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["g0/u"] = np.arange(3)
        for n in range(1, 20):
            group = file.create_group(f"g{n}")
            group["a"] = group["b"] = file[f"g{n - 1}"]
    with pytest.warns(RuntimeWarning, match="listed under that name only"):
        file = tailrace.open(path)
    with file:
        np.testing.assert_array_equal(file["g3/a/b/a/u"][...], np.arange(3))
        np.testing.assert_array_equal(file["g0/u"][...], np.arange(3))


def test_references_name_chunks_by_each_name(path):
    pytest.importorskip("numcodecs")
    refs = tailrace.references(path)["refs"]
    for name in ["t/0", "u/0.0", "u/1.0"]:
        assert refs[f"h/again/{name}"] == refs[f"g/{name}"]
    assert refs["h/again/u/0.0"][0] == str(path)

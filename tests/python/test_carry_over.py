"""Carry-over of repack, as the netCDF library, xarray and h5py read it.

Each test writes an input with a stock library, repacks it, and opens both files in the same way.
Dimensions, variables, attributes, values and their order must be equal, except for Tailrace's own
attributes.
"""

import os
import pathlib
import shutil
import subprocess

import h5py
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSIC = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


def repack(source, target, *options):
    program = os.environ.get("TAILRACE", str(ROOT / "build" / "bin" / "tailrace"))
    if not pathlib.Path(program).exists():
        pytest.skip(f"{program} is not built")
    done = subprocess.run([program, "repack", str(source), "-o", str(target), *options],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def attributes(owner):
    names = [name for name in owner.ncattrs() if not name.startswith("tailrace_")]
    return {name: owner.getncattr(name) for name in names}


def assert_same_attributes(expected, found, where):
    expected, found = attributes(expected), attributes(found)
    assert list(expected) == list(found), where
    for name, value in expected.items():
        np.testing.assert_array_equal(value, found[name], err_msg=f"{where}:{name}")


def assert_same_values(expected, found, where):
    if np.asarray(expected).dtype == object:  # Ragged lists and texts compare entry by entry.
        assert np.shape(expected) == np.shape(found), where
        for one, other in zip(np.ravel(expected), np.ravel(found)):
            np.testing.assert_array_equal(other, one, err_msg=where)
    else:
        np.testing.assert_equal(found, expected, err_msg=where)


def assert_same_model(expected, found, where="/", exact=True):
    assert_same_attributes(expected, found, where)
    dimensions = [[(d.name, len(d), d.isunlimited()) for d in group.dimensions.values()]
                  for group in (expected, found)]
    assert dimensions[0] == dimensions[1], where
    assert list(expected.variables) == list(found.variables), where
    for name, variable in expected.variables.items():
        other = found.variables[name]
        assert variable.dimensions == other.dimensions, name
        assert_same_attributes(variable, other, name)
        variable.set_auto_maskandscale(False)
        other.set_auto_maskandscale(False)
        if isinstance(variable.dtype, np.dtype):
            assert variable.dtype.newbyteorder("=") == other.dtype.newbyteorder("="), name
        if exact:
            assert_same_values(variable[...], other[...], name)
    assert list(expected.groups) == list(found.groups), where
    for name, group in expected.groups.items():
        assert_same_model(group, found.groups[name], f"{where}{name}/", exact)


def assert_same_files(source, target, exact=True):
    with netCDF4.Dataset(source) as expected, netCDF4.Dataset(target) as found:
        assert_same_model(expected, found, exact=exact)


def write_enhanced(path):
    """Write all features of netCDF-4 that the classic model lacks."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("z", 2)
        file.createDimension("time", None)
        file.createDimension("x", 30)
        file.createDimension("unused", 7)
        file.title = "every kind"
        file.levels = np.array([1, 2, 3], ">i2")
        pair = file.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair_t")
        flag = file.createEnumType(np.uint8, "flag_t", {"NO": 0, "YES": 1})
        ragged = file.createVLType(np.int16, "ragged_t")
        field = file.createVariable("field", ">f4", ("time", "x"), endian="big", fill_value=-999)
        field.units = "K"
        field.setncattr_string("remark", ["one", "two"])
        names = file.createVariable("names", str, ("x",))
        pairs = file.createVariable("pairs", pair, ("z",))
        flags = file.createVariable("flags", flag, ("x",))
        lists = file.createVariable("lists", ragged, ("z",))
        file.createVariable("never_written", "f8", ("z", "x"))
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        text = file.createVariable("text", "S1", ("x",))
        file.createVariable("scalar", "i8", ())[...] = -2**62
        field[:] = np.arange(150, dtype="f4").reshape(5, 30)
        field[2, 3] = -999.0
        time[:] = np.arange(5)
        names[:] = np.array([f"name {i}" for i in range(30)], object)
        pairs[:] = np.array([(1, 0.5), (2, 1.5)], pairs.dtype)
        flags[:] = np.arange(30) % 2
        for i in range(2):
            lists[i] = np.arange(i + 1, dtype="i2")
        text[:] = np.array(list("abcdefghijklmnopqrstuvwxyz0123"), "S1")
        inner = file.createGroup("inner")
        inner.level = 1
        inner.createDimension("y", 4)
        inner.createVariable("below", "u2", ("y", "x"))[:] = np.arange(120).reshape(4, 30)


def write_classic(path, form):
    """Write record variables of every size, text, a dimension without variable, odd names."""
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, length in [("x", 3), ("record", None), ("length", 6), ("odd", 5)]:
            file.createDimension(name, length)
        file.title = "classic"
        small = file.createVariable("small", "i2", ("record", "x"))
        small.missing_value = np.int16(-9)
        bytes_ = file.createVariable("bytes", "i1", ("record",))
        label = file.createVariable("label", "S1", ("record", "length"))
        file.createVariable("x", "f8", ("x",))[:] = [0.5, 1.5, 2.5]
        file.createVariable("odd", "f4", ("x",))[:] = [1, 2, 3]
        record = file.createVariable("record", "f8", ("record",))
        record.units = "s"
        small[:] = np.arange(12).reshape(4, 3)
        bytes_[:] = np.arange(4)
        label[:] = np.array([list("abcdef")] * 4, "S1")
        record[:] = np.arange(4) / 4


def test_netcdf4_keeps_its_model(tmp_path):
    write_enhanced(tmp_path / "in.nc")
    repack(tmp_path / "in.nc", tmp_path / "out.nc")
    assert_same_files(tmp_path / "in.nc", tmp_path / "out.nc")


@pytest.mark.parametrize("form", CLASSIC)
def test_classic_keeps_its_model(form, tmp_path):
    write_classic(tmp_path / "in.nc", form)
    repack(tmp_path / "in.nc", tmp_path / "out.nc")
    assert_same_files(tmp_path / "in.nc", tmp_path / "out.nc")


def test_lossy_repack_keeps_coordinates_fill_and_bound(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as file:
        file.createDimension("y", 60)
        file.createDimension("x", 80)
        for name in ("y", "x"):
            size = len(file.dimensions[name])
            file.createVariable(name, "f8", (name,))[:] = np.linspace(0.1, 1.7, size)
        field = file.createVariable("field", "f4", ("y", "x"), fill_value=-1e34)
        values = np.sin(np.arange(4800) / 50).reshape(60, 80).astype("f4")
        field[:] = np.ma.masked_where(values > 0.9, values)
    repack(tmp_path / "in.nc", tmp_path / "out.nc", "--bound", "abs=0.01", "--codec", "portable")
    assert_same_files(tmp_path / "in.nc", tmp_path / "out.nc", exact=False)
    with netCDF4.Dataset(tmp_path / "in.nc") as a, netCDF4.Dataset(tmp_path / "out.nc") as b:
        for name in ("y", "x"):
            np.testing.assert_array_equal(a[name][:], b[name][:])
        np.testing.assert_array_equal(a["field"][:].mask, b["field"][:].mask)
        assert np.max(np.abs(a["field"][:] - b["field"][:])) <= 0.01


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_output_can_be_appended_to(form, tmp_path):
    if form == "NETCDF4":
        write_enhanced(tmp_path / "in.nc")
    else:
        write_classic(tmp_path / "in.nc", form)
    repack(tmp_path / "in.nc", tmp_path / "out.nc")
    name = "field" if form == "NETCDF4" else "small"
    with netCDF4.Dataset(tmp_path / "out.nc", "a") as file:
        before = file[name][:]
        n_records = len(before)
        file[name][n_records] = np.zeros(before.shape[1])
        file.createVariable("new", "f4", ("x",))[:] = 1
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert len(file[name]) == n_records + 1
        np.testing.assert_array_equal(file[name][:n_records], before)


def test_xarray_sees_the_same_dataset(tmp_path):
    xarray = pytest.importorskip("xarray")
    write_classic(tmp_path / "in.nc", "NETCDF3_CLASSIC")
    repack(tmp_path / "in.nc", tmp_path / "out.nc")
    with xarray.open_dataset(tmp_path / "in.nc", engine="netcdf4") as expected, \
            xarray.open_dataset(tmp_path / "out.nc", engine="netcdf4") as found:
        for owner in (found, *found.variables.values()):
            for name in [name for name in owner.attrs if name.startswith("tailrace_")]:
                del owner.attrs[name]
        xarray.testing.assert_identical(expected.load(), found.load())


def test_some_fields_only(tmp_path):
    write_classic(tmp_path / "in.nc", "NETCDF3_CLASSIC")
    repack(tmp_path / "in.nc", tmp_path / "out.nc", "--only", "small")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file["small"].dimensions == ("record", "x")
        np.testing.assert_array_equal(file["small"][:], np.arange(12).reshape(4, 3))
        assert "odd" not in file.variables


def test_h5py_finds_links_references_and_attributes(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w", track_order=True) as file:
        file["z/field"] = np.arange(2000.0)
        file["table"] = np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("v", "f8")])
        file["half"] = np.arange(10, dtype="f2")
        file["flags"] = np.array([True, False])
        file["words"] = ["one", "two"]
        file["soft"] = h5py.SoftLink("/z/field")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["again"] = file["z/field"]
        file["pointers"] = np.array([file["z/field"].ref, file["z"].ref], h5py.ref_dtype)
        file.attrs["pointer"] = file["table"].ref
        file["z"].attrs["empty"] = h5py.Empty("f4")
        file["z"].attrs["text"] = "größer"
        file["z/field"].attrs["big"] = np.arange(7000.0)
        file["a"] = np.arange(3)
    repack(tmp_path / "in.h5", tmp_path / "out.h5")
    with h5py.File(tmp_path / "in.h5") as source, h5py.File(tmp_path / "out.h5") as file:
        assert list(file) == list(source)
        for name in ("z/field", "table", "half", "flags", "words", "again", "soft"):
            np.testing.assert_array_equal(file[name][...], source[name][...])
            assert file[name].dtype == source[name].dtype
        assert file["again"] == file["z/field"]
        assert file.get("soft", getlink=True).path == "/z/field"
        assert file.get("outside", getlink=True).filename == "other.h5"
        assert file[file["pointers"][0]] == file["z/field"]
        assert file[file["pointers"][1]] == file["z"]
        assert file[file.attrs["pointer"]] == file["table"]
        assert file["z"].attrs["text"] == "größer"
        assert isinstance(file["z"].attrs["empty"], h5py.Empty)
        np.testing.assert_array_equal(file["z/field"].attrs["big"], np.arange(7000.0))
    if shutil.which("h5dump"):
        subprocess.run(["h5dump", str(tmp_path / "out.h5")], check=True, capture_output=True)


def sample_files():
    try:
        import iris_sample_data
    except ImportError:
        return []
    return sorted(pathlib.Path(iris_sample_data.path).rglob("*.nc"))


@pytest.mark.parametrize("source", sample_files(), ids=lambda path: path.stem)
def test_real_files_keep_their_model(source, tmp_path):
    repack(source, tmp_path / "out.nc")
    assert_same_files(source, tmp_path / "out.nc")

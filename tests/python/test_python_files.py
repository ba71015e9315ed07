"""tailrace.open: netCDF4, h5py and tailrace itself read the written values."""

import concurrent.futures
import gc
import io
import os
import pickle
import re
import struct
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import ROOT, numbers, smooth

tailrace = python_package.load()

SHAPE, BOUND = (20, 24, 32), 1e-3
FIELD = smooth(SHAPE)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.nc"


@pytest.fixture
def written(path):
    """Write a file with most features of files."""
    with tailrace.open(path, "w") as file:
        file.attrs["title"] = "Waves"
        file.create_dimension("t")
        file.create_variable("t", "t", data=np.arange(20.0), attrs={"units": "s"})
        file.create_variable("u", ("t", "y", "x"), data=FIELD, abs=BOUND, codec="trz",
                             chunks=(5, 24, 32), fill_value=-99.0, attrs={"units": "m/s"})
        file.create_variable("n", ("y",), "i2", codec="deflate", level=4)[:] = np.arange(24)
        group = file.create_group("deep/er")
        group.create_variable("w", ("x",), "f8", data=np.linspace(0, 1, 32))
        group.attrs["levels"] = [1, 2, 3]
    return path


def test_netcdf4_reads_what_was_written(written):
    with netCDF4.Dataset(written) as file:
        assert file.title == "Waves"
        assert file.dimensions["t"].isunlimited() and len(file.dimensions["t"]) == 20
        u = file["u"]
        assert (u.dimensions, u.units, u._FillValue) == (("t", "y", "x"), "m/s", -99.0)
        assert u.chunking() == [5, 24, 32]
        assert (file["n"][:] == np.arange(24)).all() and file["n"].filters()["zlib"]
        assert file["deep/er"].levels.tolist() == [1, 2, 3]
        assert (file["deep/er/w"][:] == np.linspace(0, 1, 32)).all()


def test_tailrace_and_h5py_read_the_same(written):
    with tailrace.open(written) as file, h5py.File(written) as other:
        u = file["u"]
        assert 0 < np.abs(u[...] - FIELD).max() <= BOUND
        for key in [..., 3, (slice(None), 2), (slice(1, 19, 4), ..., [1, 5, 30]),
                    (slice(None, None, -3), slice(20, 3, -2), -1), (-1, -1, -1)]:
            assert np.array_equal(u[key], other["u"][...][key]), key
        assert u[3, 4, 5] == other["u"][3, 4, 5] and u[3, 4, 5].dtype == "f4"
        mask = FIELD > 0
        assert np.array_equal(u[mask], other["u"][...][mask])


def test_what_a_variable_says(written):
    with tailrace.open(written) as file:
        u = file["u"]
        assert (u.name, u.path, u.dims, u.shape) == ("u", "/u", ("t", "y", "x"), SHAPE)
        assert (u.dtype, u.ndim, u.chunks, u.codec) == ("f4", 3, (5, 24, 32), "trz")
        assert (len(u), u.size, u.nbytes) == (20, FIELD.size, FIELD.nbytes)
        assert u.unlimited == (True, False, False)
        assert u.attrs["units"] == "m/s" and u.attrs["_FillValue"] == np.float32(-99)
        assert sum(1 for _ in u) == 20
        assert list(file) == ["t", "u", "n", "deep"] and len(file) == 4
        assert file["deep"]["er"]["w"] == file["/deep/er/w"] and "deep/er/w" in file
        assert file["deep/er"].parent == file["deep"] and "nothing" not in file
        assert len(file.dimensions["t"]) == 20 and file.dimensions["t"].unlimited
        text = repr(file)
        assert "t: 20 (unlimited)" in text and "float32, chunks 5x24x32, trz" in text
        assert "<li>" in file._repr_html_() and "group /deep" in text
    assert "closed" in repr(file) and "closed" in repr(u)
    with pytest.raises(ValueError, match="closed"):
        u[0]


def test_appending_along_an_unlimited_dimension(written):
    with tailrace.open(written, "a") as file:
        file["u"][20:22] = FIELD[:2]
        file["u"][22] = FIELD[2]
        file["t"][20:] = [20.0, 21.0, 22.0]
        assert file["u"].shape == (23, 24, 32)
        assert np.abs(file["u"][20:] - FIELD[:3]).max() <= BOUND  # Also for staged values.
        file.attrs["history"] = "longer"
    with netCDF4.Dataset(written) as file:
        assert file["u"].shape == (23, 24, 32) and file.history == "longer"
        assert file["t"][-3:].tolist() == [20.0, 21.0, 22.0]
    with netCDF4.Dataset(written, "a") as file:
        file["t"][23] = 23.0
    with tailrace.open(written) as file:
        assert file["t"][-1] == 23.0
        assert np.abs(file["u"][20:23] - FIELD[:3]).max() <= BOUND


def test_positions_beyond_the_end_grow_a_dimension_as_slices_do(path):
    values = np.arange(12.0).reshape(3, 4)
    with tailrace.open(path, "w") as file:
        file.create_dimension("t", None)
        u = file.create_variable("u", ("t", "x"), "f8", data=np.zeros((2, 4)), fill_value=-1.0)
        u[[9, 0, 5]] = values
        assert u.shape == (10, 4)
        with pytest.raises(IndexError):
            u[0, [1, 4]] = 7
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        expected = np.full((10, 4), -1.0)
        expected[1] = 0
        expected[[9, 0, 5]] = values
        assert (file["u"][:] == expected).all()


def test_a_variable_that_is_shorter_than_its_dimension_reads_as_fill_beyond(path):
    """The netCDF library leaves some datasets shorter than their shared dimension."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("t", "f8", ("t",))[:] = np.arange(5.0)
        file.createVariable("u", "f4", ("t", "x"), fill_value=-9.0)[:] = np.arange(6).reshape(2, 3)
        file.createVariable("big", ">i4", ("t",), endian="big", fill_value=-2)[:] = [1, 2]
        file.createVariable("none", "i2", ("t",))
        file.createVariable("s", str, ("t",))[0] = "first"
    with h5py.File(path) as file:
        assert file["u"].shape == (2, 3) and file["none"].shape == (0,), "the test needs a gap"
    with netCDF4.Dataset(path) as theirs, tailrace.open(path) as file:
        theirs.set_auto_mask(False)
        for name in ("t", "u", "big", "none"):
            wanted = theirs[name][:]
            assert file[name].shape == wanted.shape
            for values in (file[name][:], file[name].read_all(), file[name].read(),
                           file[name].within(0.0)):
                assert (values == wanted).all(), name
            assert (file[name][3:0:-2] == wanted[3:0:-2]).all()
        assert (file["u"][[4, 1], 1:] == theirs["u"][:][[4, 1], 1:]).all()
        assert file["s"][:].tolist() == ["first", "", "", "", ""]
        with pytest.raises(IndexError):
            file["u"][5]
    with tailrace.open(path, "a") as file:
        assert file["u"][4].tolist() == [-9.0] * 3
        file["u"][4] = 4
    with tailrace.open(path) as file:
        assert file["u"][:].tolist() == [[0, 1, 2], [3, 4, 5], [-9] * 3, [-9] * 3, [4] * 3]


@pytest.mark.parametrize("filters", [{}, {"compression": "gzip"}], ids=["plain", "gzip"])
def test_what_is_not_written_keeps_the_datasets_own_fill_value(tmp_path, filters):
    """h5py and netCDF4 pad with HDF5's fill value, from which _FillValue may differ."""
    paths = [tmp_path / f"{name}.h5" for name in ("h5py", "netcdf4", "ours")]
    for path in paths:
        with h5py.File(path, "w", track_order=True) as file:
            for name, dtype in (("v", "f4"), ("big", ">i2")):
                made = file.create_dataset(name, (2, 4), dtype, chunks=(2, 8), fillvalue=-1,
                                           maxshape=(None, None), **filters)
                made.attrs["_FillValue"] = made.dtype.type(-9)
    openers = (lambda path: h5py.File(path, "a"), lambda path: netCDF4.Dataset(path, "a"),
               lambda path: tailrace.open(path, "a"))
    for path, opener in zip(paths, openers):
        file = opener(path)
        for name in ("v", "big"):
            file[name][0, 1:3] = [5, 6]
        file.close()
    for name in ("v", "big"):
        found = []
        for path in paths:
            with h5py.File(path) as file:
                found.append(file[name][()].tolist())
        assert found == [[[-1, 5, 6, -1], [-1] * 4]] * 3


def test_rows_written_one_by_one_and_partly(path):
    with tailrace.open(path, "w") as file:
        file.create_dimension("y", 10)
        file.create_dimension("x", 8)
        v = file.create_variable("v", ("y", "x"), "i4", fill_value=-1, chunks=(4, 8))
        for row in range(0, 10, 2):
            v[row] = row
        v[1, ::3] = [7, 8, 9]
        v[9, [5, 1]] = [50, 10]
    wanted = np.full((10, 8), -1)
    wanted[::2] = np.arange(0, 10, 2)[:, None]
    wanted[1, ::3] = [7, 8, 9]
    wanted[9, [5, 1]] = [50, 10]
    with tailrace.open(path) as file:
        assert (file["v"][...] == wanted).all()
    with h5py.File(path) as file:
        assert (file["v"][...] == wanted).all()


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_every_number_type(path, dtype):
    values = np.arange(100).astype(dtype).reshape(10, 10)
    with tailrace.open(path, "w") as file:
        file.create_variable("v", ("y", "x"), data=values)
        file.create_variable("scalar", (), dtype)[...] = 5
    with tailrace.open(path) as file:
        assert file["v"].dtype == dtype and (file["v"][...] == values).all()
        assert file["scalar"].shape == () and file["scalar"][...] == 5
    with netCDF4.Dataset(path) as file:
        assert file["v"].dtype == dtype and (file["v"][:] == values).all()


def test_texts(path):
    with tailrace.open(path, "w") as file:
        file.create_dimension("n", 3)
        file.create_variable("names", "n", str)[:] = ["a", "über", ""]
        file.attrs["place"] = "Zürich"
        file.attrs["places"] = ["A", "B"]
    with tailrace.open(path) as file:
        assert file["names"][...].tolist() == ["a", "über", ""] and file["names"][1] == "über"
        assert file.attrs["place"] == "Zürich" and file.attrs["places"] == ["A", "B"]
    with netCDF4.Dataset(path) as file:
        assert file["names"][:].tolist() == ["a", "über", ""] and file.place == "Zürich"


def test_attributes_change_and_go(written):
    with tailrace.open(written, "a") as file:
        attributes = file["u"].attrs
        attributes["units"] = "cm/s"
        attributes["factor"] = np.float32(0.5)
        del file.attrs["title"]
        with pytest.raises(KeyError):
            del file.attrs["title"]
        assert "units" in attributes and attributes.get("nothing", 1) == 1
    with netCDF4.Dataset(written) as file:
        assert file["u"].units == "cm/s" and file["u"].factor == 0.5
        assert "title" not in file.ncattrs()


def test_verify_and_info(written, tmp_path):
    original = tmp_path / "original.nc"
    with netCDF4.Dataset(original, "w") as file:
        for name, length in zip(("t", "y", "x"), SHAPE):
            file.createDimension(name, length)
        file.createVariable("u", "f4", ("t", "y", "x"))[:] = FIELD
        file.createVariable("n", "i2", ("y",))[:] = np.arange(24)
    told = []
    # Both files have the same values, but neither is a copy of the other.
    alike = tailrace.verify(original, written)
    assert not alike and len(alike) == 2 and all(each.kept for each in alike.values())
    assert not [each for each in alike.problems if '"/u": values' in each]
    verdict = tailrace.verify(original, written, values_only=True,
                              progress=lambda done, total: told.append(done))
    assert verdict and verdict.check() is verdict and told
    assert 0 < verdict["u"].max_error <= BOUND == verdict["u"].absolute_bound
    assert verdict["u"].ratio > 1 and verdict["n"].psnr_db is None and len(verdict) == 2
    strict = tailrace.verify(original, written, abs=1e-9, only=["/u"], values_only=True)
    assert not strict and "FAILED" in repr(strict) and strict["u"].n_beyond_bound > 0
    with pytest.raises(tailrace.BoundError, match="beyond the bound"):
        strict.check()
    info = tailrace.info(written)
    u = next(field for field in info["fields"] if field["path"] == "/u")
    assert u["codec"] == "trz" and u["absolute_bound"] == BOUND and "trz" in repr(info)


@pytest.mark.parametrize("codec", ["trz", "xor"])
def test_a_file_that_is_read_stays_readable_while_others_are_written(tmp_path, codec):
    """HDF5 in the process can read it, too, through the filters of verify."""
    names = [tmp_path / name for name in ("read.nc", "written.nc")]

    def write(name):
        with tailrace.open(name, "w") as file:
            file.create_variable("u", ("t", "y", "x"), data=FIELD, codec=codec)
            file.flush()
            assert tailrace.verify(names[0], names[0]).check()

    write(names[0])
    with tailrace.open(names[0]) as read:
        assert np.array_equal(read["u"][...], FIELD)
        write(names[1])
        for first, second in (names, names[::-1]):
            assert tailrace.verify(first, second).check()
    assert tailrace.verify(*names).check()


def test_rows_of_a_file_whose_datasets_share_chunks(tmp_path):
    """Writes to rows of a file of concat --dedup do not change other values."""
    for name, n in (("in0.h5", 40), ("in1.h5", 25)):
        with h5py.File(tmp_path / name, "w") as file:
            for variable in "abcd":
                file.create_dataset(variable, data=np.full(n, 7), maxshape=(None,), chunks=(20,),
                                    compression="gzip")
    path = tmp_path / "out.h5"
    report = numbers("concat", "-o", path, "--dedup", "--chunk", "20x", tmp_path / "in0.h5",
                     tmp_path / "in1.h5")
    assert report["n_shared"] == 4 * 4 - 2
    expected = {variable: np.full(65, 7) for variable in "abcd"}
    for variable, rows, value in (("a", slice(0, 20), 8), ("b", slice(30, 65), 9),
                                  ("d", slice(0, 65), np.arange(65)), ("a", slice(0, 20), 7)):
        with tailrace.open(path, "a") as file:
            file[variable][rows] = value
        expected[variable][rows] = value
        with h5py.File(path) as file:
            for name, values in expected.items():
                assert np.array_equal(file[name][...], values), (variable, name)


def test_relative_bounds_and_defaults(path):
    with tailrace.open(path, "w", options="codec=trz,bound=rel=1e-4; n*: codec=deflate") as file:
        file.create_variable("u", ("t", "y", "x"), data=FIELD)
        file.create_variable("v", ("t", "y", "x"), data=FIELD, psnr=80)
        file.create_variable("number", ("y",), data=np.arange(24))
    span = float(FIELD.max() - FIELD.min())
    with tailrace.open(path) as file:
        assert file["u"].codec == "trz" and file["number"].filters[-1] == "deflate"
        assert 0 < np.abs(file["u"][...] - FIELD).max() <= 1e-4 * span * (1 + 1e-12)
        error = file["v"][...].astype("f8") - FIELD
        assert 20 * np.log10(span / np.sqrt((error ** 2).mean())) >= 80


@pytest.mark.parametrize("dtype, fill, bound, codec", [
    ("i2", -999, 3, "portable"), ("i4", -999, 4, "portable"), ("i4", 0, 7, "portable"),
    ("u1", 255, 2, "portable"), ("i8", -999, 5, "portable"), ("i4", 2**31 - 1, 4, "portable"),
    ("f4", -999.5, 0.3, "trz"), ("f8", 1e20, 0.3, "portable")])
@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
def test_a_value_that_means_none_is_kept(path, dtype, fill, bound, codec, name):
    """Fill values of any type and attribute are kept bit for bit, and no value becomes one."""
    random = np.random.default_rng(3)
    # Some values are near the fill value, to which rounding could change them.
    least, most = (-1e6, 1e6) if dtype[0] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = random.integers(-60, 60, 4000) * bound + (fill if abs(fill) < 2000 else 0)
    values = np.clip(values, least, most).astype(dtype)
    values[values == np.dtype(dtype).type(fill)] += np.dtype(dtype).type(1)
    values[::3] = fill
    none = values == np.dtype(dtype).type(fill)
    known = {"fill_value": fill} if name == "_FillValue" else {
        "attrs": {name: np.dtype(dtype).type(fill)}}
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("x",), data=values, codec=codec, abs=bound, **known)
    with h5py.File(path) as file:
        read = file["u"][...]
    np.testing.assert_array_equal(read == np.dtype(dtype).type(fill), none)
    assert np.abs(read.astype("f8") - values.astype("f8")).max() <= bound


def test_a_missing_value_is_no_part_of_the_range(path):
    values = np.linspace(0, 10, 5000, dtype="f4")
    values[::4] = 1e20
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("x",), data=values, rel=1e-3,
                             attrs={"missing_value": np.float32(1e20)})
    with tailrace.open(path) as file:
        error = np.abs(file["u"][:].astype("f8") - values)
    assert error.max() <= 0.01


def test_without_a_bound_nothing_is_lost(path):
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("t", "y", "x"), data=FIELD)
    with tailrace.open(path) as file:
        assert np.array_equal(file["u"][...], FIELD)


def test_a_file_that_shares_chunks_without_saying_so_is_not_changed(tmp_path):
    """Earlier versions of concat --dedup made such files. HDF5 would reuse or overwrite the place
    of a replaced chunk although others share it."""
    path = tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        for name in "ab":
            file.create_dataset(name, data=np.full(100, 7), maxshape=(None,), chunks=(128,),
                                compression="gzip")
    (tmp_path / "unshared.h5").write_bytes(path.read_bytes())
    with tailrace.open(tmp_path / "unshared.h5", "a") as file:
        file["a"][:] = np.arange(100)
    (tmp_path / "unshared.h5").unlink()
    with h5py.File(path) as file:
        first, second = (file[name].id.get_chunk_info(0).byte_offset for name in "ab")
    content = path.read_bytes().replace(struct.pack("<Q", second), struct.pack("<Q", first))
    path.write_bytes(content)
    with pytest.raises(NotImplementedError, match='dataset "/a" share their bytes with other'):
        tailrace.open(path, "a")
    assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.h5"]
    with tailrace.open(path) as file:
        assert np.array_equal(file["b"][...], np.full(100, 7))
    numbers("repack", path, "-o", tmp_path / "new.h5")
    with tailrace.open(tmp_path / "new.h5", "a") as file:
        file["a"][:] = np.arange(100)
    with h5py.File(tmp_path / "new.h5") as file:
        assert np.array_equal(file["b"], np.full(100, 7)) and np.array_equal(file["a"], range(100))


@pytest.mark.parametrize("wrong, kind, words", [
    (dict(name="a", dims="x", dtype="f4"), KeyError, "dimension 'x' does not exist"),
    (dict(name="a", dims=(), data=FIELD), ValueError, "0 dimensions"),
    (dict(name="a"), ValueError, "dtype or data"),
    (dict(name="a", dtype="c16"), NotImplementedError, "complex128"),
    (dict(name="a", dtype="f4", abs=1, rel=1), ValueError, "one bound"),
    (dict(name="a", dtype="f4", bound="lots"), ValueError, "bound"),
    (dict(name="a", dtype="f4", chunks=(0,)), ValueError, "must be >= 1"),
    (dict(name="a/", dtype="f4", options="chunk=fast"), ValueError, "chunk"),
])
def test_what_cannot_be_created(path, wrong, kind, words):
    with tailrace.open(path, "w") as file:
        with pytest.raises(kind, match=words):
            file.create_variable(**wrong)
        assert "a" not in file


@pytest.mark.parametrize("older", ["empty", "text", "netCDF-3", "HDF5"])
def test_a_file_that_is_replaced_is_not_asked(path, older):
    if older == "HDF5":
        with h5py.File(path, "w") as file:
            file.create_dataset("v", data=np.arange(8), chunks=(2,), compression="gzip")
    else:
        path.write_bytes({"empty": b"", "text": b"hello " * 100,
                          "netCDF-3": b"CDF\x01" + bytes(28)}[older])
    with tailrace.open(path, "w") as file:
        file.create_dimension("x", 10)
        variable = file.create_variable("v", "x", data=np.arange(10, dtype="f4"))
        assert variable.chunks is None and variable.filters == ()
        assert np.array_equal(variable[...], np.arange(10))
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["v"][:], np.arange(10))


def test_what_cannot_be_stored_is_refused_at_once(path):
    with tailrace.open(path, "w") as file:
        file.create_variable("a", "x", data=np.arange(64.0))
        with pytest.raises(NotImplementedError, match="/b.*bound"):
            file.create_variable("b", "x", "f4", codec="zfp")
        with pytest.raises(NotImplementedError, match="/c.*ranks"):
            file.create_variable("c", "x", "f4", codec="sperr", abs=0.1)
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["a"][:], np.arange(64.0))


@pytest.mark.parametrize("of_file, keywords, words", [
    ("", {"dtype": "i4", "codec": "portable", "pw_rel": 1e-3}, "pw_rel"),
    ("", {"dtype": "f4", "options": "layout=hybrid"}, "hybrid:3.5"),
    ("layout=hybrid", {"dtype": "f4"}, "hybrid:3.5"),
    ("", {"dtype": "f4", "codec": "sperr"}, "bound"),
    ("codec=sperr", {"dtype": "f4"}, "bound"),
    ("codec=sperr,bound=abs=0.1", {"dtype": "f4"}, "ranks"),
    ("memory=4MiB", {"dtype": "f8", "chunks": (1 << 20,), "codec": "deflate"}, "memory"),
])
def test_a_refused_variable_leaves_its_name_free(path, of_file, keywords, words):
    """Errors that are known at create are reported there, from options of any source; other
    variables are written."""
    with tailrace.open(path, "w", options=of_file) as file:
        file.create_dimension("x", 1 << 20)
        exact = {"codec": "deflate", "options": "layout=claimed", "bound": "none"}
        first = file.create_variable("first", "x", "i4", **exact)
        first[:] = np.arange(1 << 20)
        for _ in range(2):
            with pytest.raises((NotImplementedError, ValueError, MemoryError),
                               match=f"/v.*{words}"):
                file.create_variable("v", "x", **keywords)
            assert "v" not in file and list(file.variables) == ["first"]
        file.create_variable("v", "x", "f4", **exact)[:] = 7
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["first"][:], np.arange(1 << 20))
        assert (file["v"][:] == 7).all()


def test_a_target_gives_the_bound_that_a_codec_needs(path):
    with tailrace.open(path, "w", options="codec=portable,target=psnr=60") as file:
        file.create_variable("v", ("y", "x"), data=np.random.default_rng(1).random((64, 64)))
    with netCDF4.Dataset(path) as file:
        assert file["v"].tailrace_absolute_bound > 0


def test_modes_and_their_refusals(written, tmp_path):
    with pytest.raises(ValueError, match="mode"):
        tailrace.open(written, "r+")
    with pytest.raises(FileExistsError):
        tailrace.open(written, "x").close()
    with pytest.raises(FileNotFoundError):
        tailrace.open(tmp_path / "nothing.nc")
    (tmp_path / "text.nc").write_text("no file of HDF5's")
    with pytest.raises(OSError):
        tailrace.open(tmp_path / "text.nc")
    with pytest.raises(ValueError, match="thread"):
        tailrace.open(written, options="threads=many")
    with tailrace.open(written) as file:
        with pytest.raises(ValueError, match="reading"):
            file["u"][0] = 1
        with pytest.raises(ValueError, match="reading"):
            file.attrs["a"] = 1
        with pytest.raises(IndexError):
            file["u"][20]
        with pytest.raises(KeyError):
            file["none"]
    with tailrace.open(written, "a") as file:
        with pytest.raises(ValueError, match="broadcast"):
            file["u"][0] = np.zeros(7)
    with tailrace.open(tmp_path / "new.nc", "a") as file:
        file.create_variable("v", "x", data=np.arange(3))
    assert (tailrace.open(tmp_path / "new.nc")["v"][...] == [0, 1, 2]).all()


@pytest.mark.parametrize("mode", ["w", "x", "a"])
def test_a_dead_jobs_lock_is_warned_of(tmp_path, mode):
    path = tmp_path / "run.nc"
    if mode != "x":
        tailrace.open(path, "w").close()
    lock = tmp_path / "run.nc.lock"
    lock.write_text("host elsewhere\nprocess 7\nsince then\nstart 1\n")
    with pytest.warns(RuntimeWarning, match="process 7 on elsewhere, since then.* died") as said:
        file = tailrace.open(path, mode)
    assert len(said) == 1 and said[0].filename == __file__
    assert str(said[0].message).count(str(path)) == 1
    file.close()
    assert not lock.exists()


def test_truncated_files_are_refused_by_name(written, tmp_path):
    data = written.read_bytes()
    for share in (0.2, 0.6, 0.95):
        cut = tmp_path / "cut.nc"
        cut.write_bytes(data[:int(len(data) * share)])
        with pytest.raises(OSError, match="cut.nc|u"):
            with tailrace.open(cut) as file:
                file["u"][...]


def test_abort_leaves_no_file_and_flush_keeps_what_was(path):
    file = tailrace.open(path, "w")
    file.create_variable("u", ("t", "y", "x"), data=FIELD)
    file.abort()
    assert not path.exists()
    file = tailrace.open(path, "w")
    file.create_variable("u", ("t", "y", "x"), data=FIELD)
    file.flush()
    file["u"][0] = 0
    file.abort()
    with tailrace.open(path) as file:
        assert np.array_equal(file["u"][...], FIELD)


DEFINED = {
    "plain": {},
    "deflated": {"codec": "deflate", "chunks": (1, 16)},
    "bounded": {"codec": "trz", "abs": BOUND},
    "grid": {"dtype": "i4"},  # A scalar with attributes only, like CF's grid mappings.
    "label": {"dtype": str},
}
# Variables whose codec or recorded bound depends on their first values.
WAITING = {"ranged": {"codec": "trz", "rel": BOUND}, "chosen": {"abs": BOUND}}


def define(file, names):
    for name in names:
        storage = {**DEFINED, **WAITING}[name]
        file.create_variable(name, () if name == "grid" else ("t", "x"),
                             attrs={"long_name": name}, **{"dtype": "f4", **storage})


def test_a_flush_brings_variables_without_values_into_the_file(path):
    with tailrace.open(path, "w") as file:
        file.create_dimension("t")
        file.create_dimension("x", 40)
        define(file, [*DEFINED, *WAITING])
        file.create_variable("u", ("t", "x"), "f4")[:2] = 1
        file.flush()
        with netCDF4.Dataset(path) as there:
            assert set(there.variables) == {"u", *DEFINED}
            for name in DEFINED:
                assert there[name].long_name == name
            assert there["deflated"].shape == (2, 40) and there["deflated"].chunking() == [1, 16]
            assert there["plain"][:].mask.all()
        for name in ("deflated", "bounded", "ranged", "chosen"):
            file[name][1:3] = np.arange(80).reshape(2, 40)
        file["label"][:] = np.full((3, 40), "é")
        file["grid"][...] = 7
    with netCDF4.Dataset(path) as there:
        assert set(there.variables) == {"u", *DEFINED, *WAITING}
        for name in ("deflated", "bounded", "ranged", "chosen"):
            values = there[name][:]
            assert values.mask[0].all() and not values.mask[1:].any()
            np.testing.assert_allclose(values[1:], np.arange(80).reshape(2, 40), atol=BOUND * 80)
        assert there["label"][2, 39] == "é" and there["grid"][...] == 7
    with tailrace.open(path) as file:
        assert (file["plain"][:] == np.float32(netCDF4.default_fillvals["f4"])).all()


def test_a_flush_of_definitions_alone_is_kept(path):
    with tailrace.open(path, "w") as file:
        file.create_dimension("t")
        file.create_dimension("x", 40)
        define(file, DEFINED)
        file.flush()
        file["bounded"][0] = 5
        file.abort()
    with netCDF4.Dataset(path) as there:
        assert set(there.variables) == set(DEFINED) and there["bounded"].shape == (0, 40)


def test_a_dropped_file_is_closed(path):
    file = tailrace.open(path, "w")
    file.create_variable("u", ("t", "y", "x"), data=FIELD)
    del file
    with tailrace.open(path) as file:
        assert np.array_equal(file["u"][...], FIELD)


@pytest.mark.parametrize("failure", [KeyError, KeyboardInterrupt])
def test_an_exception_leaves_the_older_file(written, failure):
    before = written.read_bytes()
    with pytest.raises(failure):
        with tailrace.open(written, "w") as file:
            file.create_variable("half", ("y",), data=np.arange(3.0))
            raise failure("in the middle")
    assert written.read_bytes() == before
    with pytest.raises(failure):
        with tailrace.open(written, "a") as file:
            file["u"][0] = 0
            raise failure("in the middle")
    assert written.read_bytes() == before
    assert [entry.name for entry in written.parent.iterdir()] == [written.name]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_dataset_that_cannot_be_computed_leaves_the_older_file(written, failure):
    xarray = pytest.importorskip("xarray")
    dask = pytest.importorskip("dask.array")
    from dask import config as dask_config

    def fail(block):
        raise failure("no such input")

    before = written.read_bytes()
    lazy = dask.map_blocks(fail, dask.zeros((8, 8), chunks=4), dtype="f8", meta=np.zeros((0, 0)))
    whole = {"v": (("y", "x"), np.ones((8, 8)))}
    # The failure occurs on this thread, like Ctrl-C.
    with pytest.raises(failure, match="no such input"), dask_config.set(scheduler="synchronous"):
        tailrace.write_dataset(xarray.Dataset({**whole, "u": (("y", "x"), lazy)}), written)
    assert written.read_bytes() == before
    assert [entry.name for entry in written.parent.iterdir()] == [written.name]


def in_child(work):
    """Return the exit code of a forked child that calls `work`."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(int(work()))
        except BaseException:  # noqa: BLE001 - the child must never return to pytest.
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_does_not_write_its_parents_file(path):
    file = tailrace.open(path, "w")
    variable = file.create_variable("u", ("t", "y", "x"), data=FIELD)

    def write_and_leave():
        refused = 0
        for work in (file.flush, file.close, lambda: variable.write(FIELD)):
            try:
                work()
            except tailrace.TailraceError as error:
                refused += "fork" in str(error)
        gc.collect()
        return refused

    assert in_child(write_and_leave) == 3
    # A child that ends normally runs Python's finalisers.
    ended = subprocess.run([sys.executable, "-c", FORK_AND_END, str(path) + "2"],
                           capture_output=True, text=True, check=False,
                           env=python_package.package_environment())
    assert (ended.returncode, ended.stderr) == (0, "")
    file.close()
    for name in (path, str(path) + "2"):
        with tailrace.open(name) as file:
            assert np.array_equal(file["u"][...], FIELD if name == path else np.arange(8.0))


FORK_AND_END = """
import os, sys
import numpy as np
import tailrace
file = tailrace.open(sys.argv[1], "w")
file.create_variable("u", ("x",), data=np.arange(8.0))
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
file.close()
"""


@pytest.mark.parametrize("dropped", ["", "del file", "sys.exit(3)"])
def test_a_file_that_cannot_be_closed_at_the_end_says_so(tmp_path, dropped):
    program = """
import atexit, sys
atexit.register(print, "the end of others")
import numpy as np
import resource, signal
import tailrace
file = tailrace.open(sys.argv[1], "w")
file.create_variable("u", ("x",), data=np.random.default_rng(0).random(100000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
""" + dropped
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "full.nc")],
                           capture_output=True, text=True, check=False,
                           env=python_package.package_environment())
    assert "full.nc, and closing it now failed" in ended.stderr
    assert ended.returncode == (3 if "exit" in dropped else 1)
    assert ended.stdout == "the end of others\n"


def test_threads_share_a_file(written):
    with tailrace.open(written, options="threads=2") as file:
        u = file["u"]
        wanted = u[...]

        def look(index):
            rows = slice(index % 17, index % 17 + 3)
            return np.array_equal(u[rows], wanted[rows])

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(look, range(64)))


def test_variables_travel_to_other_processes(written):
    with tailrace.open(written) as file:
        copies = [pickle.loads(pickle.dumps(file["u"])) for _ in range(2)]
        assert copies[0]._file is copies[1]._file is not file
        assert np.array_equal(copies[0][3], file["u"][3])
    with tailrace.open(written, "a") as file:
        with pytest.raises(NotImplementedError, match="reading"):
            pickle.dumps(file["u"])


def test_masked_values_are_stored_as_fill(path):
    masked = np.ma.masked_less(np.arange(10.0), 3)
    with tailrace.open(path, "w") as file:
        file.create_variable("u", "x", data=masked, fill_value=-1.0)
        file.create_variable("v", "x", "f8")
        with pytest.raises(ValueError, match="fill_value"):
            file["v"][:] = masked
    with netCDF4.Dataset(path) as file:
        assert file["u"][:].mask.tolist() == masked.mask.tolist()


def test_progress_is_told(written, capsys):
    told = []
    with tailrace.open(written) as file:
        values = file["u"].read(progress=lambda done, total: told.append((done, total)))
        assert np.array_equal(values, file["u"][...]) and told[-1] == (FIELD.nbytes, FIELD.nbytes)
        file["u"].read(progress=True)
    assert capsys.readouterr().err == ""  # Neither a terminal nor a notebook displays it.


def test_the_command_line_and_h5py_agree_on_any_hdf5(tmp_path):
    path = tmp_path / "any.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=FIELD, chunks=(7, 11, 13), compression="gzip")
        file.create_dataset("big", data=np.arange(10, dtype=">i4"))
        file.create_dataset("pair", data=np.zeros(3, [("x", "i4"), ("y", "f4")]))
        file["a"].attrs["empty"] = ""
    with tailrace.open(path) as file:
        assert np.array_equal(file["a"][5:, ::2], FIELD[5:, ::2]) and file["a"].dims[0]
        assert (file["big"][...] == np.arange(10)).all()
        assert (file["pair"][...]["y"] == 0).all()


U = np.arange(12.0).reshape(3, 4)
MISUSES = {
    "a number as path": (lambda file: tailrace.open(3), TypeError, "path"),
    "a file object": (lambda file: tailrace.open(io.BytesIO(b"x")), TypeError, "BytesIO.*h5py"),
    "the bytes of a file": (lambda file: tailrace.open(b"\x89HDF\r\n\x1a\n"), TypeError,
                            "bytes of a file.*h5py"),
    "a URL": (lambda file: tailrace.open("s3://bucket/run.h5"), tailrace.TailraceError,
              "URLs are not supported.*fsspec"),
    "comm": (lambda file: tailrace.open(file.filename, comm=5), ValueError, "comm="),
    "options": (lambda file: tailrace.open(file.filename, options={}), TypeError, "options"),
    "name": (lambda file: file.create_variable(5, "y", data=U[0]), TypeError, "name"),
    "dims": (lambda file: file.create_variable("a", 5, data=U), TypeError, "'a': dims"),
    "dims of numbers": (lambda file: file.create_variable("a", [5, 6], data=U), TypeError,
                        "'a': dims"),
    "dtype": (lambda file: file.create_variable("a", "y", "junk"), TypeError, "'a': dtype.*junk"),
    "complex": (lambda file: file.create_variable("a", "y", "c16"), NotImplementedError,
                "'a'.*complex"),
    "codec": (lambda file: file.create_variable("a", "y", "f4", codec=5), TypeError, "'a': codec"),
    "bound": (lambda file: file.create_variable("a", "y", "f4", abs="x"), TypeError, "'a': abs"),
    "chunks": (lambda file: file.create_variable("a", "y", "f4", chunks=1.5), TypeError,
               "'a': chunks"),
    "attrs": (lambda file: file.create_variable("a", "y", "f4", attrs=5), TypeError, "'a': attrs"),
    "an attribute": (lambda file: file.attrs.update({"b": object()}), ValueError, "'b'"),
    "an attribute's name": (lambda file: file.attrs.update({5: 1}), TypeError, "name"),
    "fill": (lambda file: file.create_variable("a", "y", "f4", fill_value="x"), TypeError,
             "'a': fill"),
    "a fill that does not fit": (lambda file: file.create_variable("a", "y", "i2", fill_value=1e9),
                                 ValueError, "'a': fill.*int16"),
    "a key": (lambda file: file.create_variable("a", "y", "f4", fillvalue=3), ValueError,
              "'a'.*\"fillvalue\"; did you mean \"fill_value\""),
    "a setting": (lambda file: file.create_variable("a", "y", "f4", codec="trz", level=3),
                  ValueError, "'a': codec trz.*level.*preset"),
    "a number as key": (lambda file: file[5], TypeError, "name"),
    "dimension": (lambda file: file.create_dimension(5), TypeError, "name"),
    "a length": (lambda file: file.create_dimension("q", 3.5), TypeError, "'q': size"),
    "group": (lambda file: file.create_group(5), TypeError, "name"),
    "an index": (lambda file: file["u"]["a"], TypeError, "index.*'a'"),
    "half an index": (lambda file: file["u"][1.5], TypeError, "index.*1.5"),
    "text for numbers": (lambda file: file["u"].write("x"), TypeError, "/u holds numbers"),
    "nothing for numbers": (lambda file: file["u"].write(None), TypeError, "/u holds numbers"),
    "complex for numbers": (lambda file: file["u"].write(U * 1j), TypeError, "/u holds numbers"),
    "another shape": (lambda file: file["u"].write(U[:, :2]), ValueError, "/u: "),
    "verify": (lambda file: tailrace.verify(3, 4), TypeError, "path"),
    "verify only": (lambda file: tailrace.verify("a", "b", only=3), TypeError, "only"),
    "verify bound": (lambda file: tailrace.verify("a", "b", bound=3), TypeError, "bound"),
    "verify abs": (lambda file: tailrace.verify("a", "b", abs="x"), TypeError, "abs"),
    "info": (lambda file: tailrace.info(3), TypeError, "path"),
    "info of": (lambda file: tailrace.info("a", chunks_of=3), TypeError, "chunks_of"),
}


@pytest.mark.parametrize("call, kind, words", MISUSES.values(), ids=MISUSES.keys())
def test_misuse_is_refused_in_words(call, kind, words, tmp_path):
    """Errors have no signatures or addresses of the engine, and the file stays usable."""
    path = tmp_path / "u.nc"
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("y", "x"), data=U)
        with pytest.raises(kind, match=words) as failure:
            call(file)
        for noise in ("incompatible function arguments", "Invoked with", " at 0x"):
            assert noise not in str(failure.value)
    with tailrace.open(path) as file:
        assert list(file) == ["u"] and np.array_equal(file["u"][...], U)
        assert set(file.attrs) <= {"tailrace_file"}


def test_netcdf4s_words_for_storage(tmp_path):
    """createVariable accepts the keywords of netCDF4's createVariable and h5py's create_dataset."""
    path = tmp_path / "u.nc"
    with tailrace.open(path, "w") as file:
        for name, keys in (("zlib", {"zlib": True, "complevel": 7, "chunksizes": (1, 4)}),
                           ("plain", {"zlib": False}), ("no shuffle", {"shuffle": False}),
                           ("h5py", {"compression": "gzip", "compression_opts": 7}),
                           ("digits", {"least_significant_digit": 1})):
            file.create_variable(name, ("y", "x"), data=U + 1 / 3, **keys)
    with h5py.File(path) as file:
        assert file["zlib"].compression_opts == 7 and file["zlib"].chunks == (1, 4)
        assert file["zlib"].shuffle and not file["no shuffle"].shuffle
        assert file["plain"].compression is None and file["h5py"].compression_opts == 7
        assert abs(file["digits"][...] - U - 1 / 3).max() <= 0.05


def test_every_option_of_a_field_is_a_keyword():
    """Compare the keywords with docs/options.md, which is generated from the engine's table."""
    from tailrace._encoding import OWN
    text = (ROOT / "docs" / "options.md").read_text()
    fields, codecs = text.partition("## Of a field")[2].split("## Of a codec")
    found = {name for line in fields.splitlines() if line.startswith("| `")
             for name in re.findall(r"`([a-z-]+)=`", line.split("|")[1])}
    found |= {name for line in codecs.splitlines() if line.startswith("| `")
              for name in re.findall(r"`([a-z_]+)=`", line.split("|")[2])}
    found -= {"chunk", "covered"}    # called chunks= in Python; only for levels of plotfiles
    assert len(found) > 20 and found <= set(OWN), found - set(OWN)


@pytest.mark.parametrize("codec, asked", [("deflate", {}), ("portable", {"abs": 1e-2})])
def test_checksums_behind_deflate(codec, asked, tmp_path):
    with tailrace.open(tmp_path / "u.nc", "w") as file:
        file.create_variable("u", ("y", "x"), data=smooth((64, 80)), codec=codec, checksum=True,
                             **asked)
    with h5py.File(tmp_path / "u.nc") as file:
        assert file["u"].fletcher32
        np.testing.assert_allclose(file["u"], smooth((64, 80)), atol=1e-2 if asked else 0)
    with pytest.raises(NotImplementedError, match="checksum=True"):
        with tailrace.open(tmp_path / "v.nc", "w") as file:
            file.create_variable("v", ("x",), data=np.zeros(9, "f4"), fletcher32=True)

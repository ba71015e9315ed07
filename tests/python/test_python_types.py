"""Compounds, enums, strings and other types beyond plain numbers, read as h5py reads them."""

import h5py
import numpy as np
import pytest

import python_package
from test_netcdf_files import run

tailrace = python_package.load()

COLOR = h5py.enum_dtype({"red": 0, "green": 1, "blue": 42}, basetype="i2")
PAIR = np.dtype([("id", "<u4"), ("place", ">f8", (3,)), ("name", "S6"), ("inner", [("a", "i1")])],
                align=True)
WIDE = h5py.enum_dtype({"low": -2**62, "high": 2**62}, basetype=">i8")


def values_of(dtype, shape):
    generator = np.random.default_rng(4)
    return np.frombuffer(generator.bytes(int(np.prod(shape)) * dtype.itemsize),
                         dtype).reshape(shape)


def plain(n):
    """Return compound values without padding."""
    made = np.zeros(n, PAIR)
    made["id"], made["name"] = np.arange(n), [f"n{i}".encode() for i in range(n)]
    made["place"], made["inner"]["a"] = np.arange(3 * n).reshape(n, 3) / 7, np.arange(n) % 100
    return made


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "types.h5"
    chunked = {"chunks": (7,), "compression": "gzip", "shuffle": True}
    with h5py.File(path, "w") as file:
        file.create_dataset("pair", data=plain(40), **chunked)
        file["pair_contiguous"] = plain(5)
        file["color"] = np.array([[0, 1], [42, 0]], COLOR)
        file.create_dataset("wide", data=np.array([-2**62, 2**62] * 10, WIDE), **chunked)
        file["truth"] = np.array([True, False, True])
        file["wave"] = np.arange(6).reshape(2, 3) * (1 - 2j)
        file["wave"].attrs["units"] = "V"
        file["half"] = np.arange(4, dtype="f2")
        file["blob"] = np.array([b"\x01\x02\x03", b"\0\0\0"], "V3")
        file["cube"] = values_of(np.dtype("<i2"), (4, 2, 2)).view("i2")
        rows = np.dtype(("<i4", (2, 2)))
        file.create_dataset("rows", (3,), rows)[...] = np.arange(12).reshape(3, 2, 2)
        file["fixed"] = np.array([b"one", b"three", b""], "S5")
        file["words"] = np.array(["a", "", "öl"], object)
        file["one"] = np.array((3, [1, 2, 3], b"x", (4,)), PAIR)
        file.create_dataset("tagged", (2,), [("id", "i4"), ("tag", h5py.string_dtype())])
        file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
    return path


def test_every_type_is_read_as_by_h5py(path):
    with tailrace.open(path) as ours, h5py.File(path) as theirs:
        for name in ("pair", "pair_contiguous", "color", "wide", "truth", "wave", "half", "blob",
                     "cube", "rows", "one"):
            expected = theirs[name][()]
            found = ours[name][...]
            assert np.array_equal(found, expected), name
            assert np.asarray(found).dtype == expected.dtype or name == "half", name
        rows = np.arange(12).reshape(3, 2, 2)
        np.testing.assert_array_equal(ours["rows"][[2, 0]], rows[[2, 0]])
        np.testing.assert_array_equal(ours["rows"][1], rows[1])
        np.testing.assert_array_equal(ours["rows"].read_all(slice(0, 2)), rows[:2])
        assert list(ours["fixed"][:]) == ["one", "three", ""]
        assert list(ours["words"][:]) == ["a", "", "öl"]
        assert ours["words"][2] == "öl" and isinstance(ours["fixed"][1], str)


def test_parts_and_names(path):
    with tailrace.open(path) as file:
        pair = file["pair"]
        assert pair.dtype == PAIR and pair.nbytes == 40 * PAIR.itemsize
        np.testing.assert_array_equal(pair[3:30:4]["id"], np.arange(3, 30, 4))
        np.testing.assert_array_equal(pair[[1, 39, 20]]["name"], [b"n1", b"n39", b"n20"])
        assert pair[7]["inner"]["a"] == 7
        assert pair.read_all(slice(38, None))["id"].tolist() == [38, 39]
        assert pair.read(progress=lambda done, everything: None)["id"].sum() == 780
        assert file["color"].enum == {"red": 0, "green": 1, "blue": 42}
        assert h5py.check_enum_dtype(file["color"].dtype) == file["color"].enum
        assert file["wide"].enum == {"low": -2**62, "high": 2**62}
        assert pair.enum is None and file["truth"].enum is None
        assert "complex128" in repr(file["wave"]) and file["wave"].attrs["units"] == "V"


def test_what_cannot_be_read_is_said(path):
    with tailrace.open(path) as file:
        for name in ("tagged", "ragged"):
            assert file[name].dtype == object and repr(file[name])
            with pytest.raises(NotImplementedError, match=f"/{name}: values of type"):
                file[name][...]
    with tailrace.open(path, "a") as file:
        assert file["color"].enum["blue"] == 42
        with pytest.raises(NotImplementedError, match='"r"'):
            file["pair"][...]
        with pytest.raises(NotImplementedError, match='"r"'):
            file["pair"][0] = plain(1)[0]


def test_xarray_has_them(path):
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path, engine="tailrace") as file:
        assert not {"ragged", "tagged", "rows"} & set(file.variables)
        np.testing.assert_array_equal(file["pair"].values, plain(40))
        np.testing.assert_array_equal(file["color"].values, [[0, 1], [42, 0]])
        assert file["color"].dtype.metadata["enum"]["green"] == 1
        assert file["truth"].dtype == bool and file["wave"].dtype == "c16"
        np.testing.assert_array_equal(file["wave"].isel(phony_dim_0=0) if "phony_dim_0" in
                                      file["wave"].dims else file["wave"][0],
                                      np.arange(3) * (1 - 2j))


def test_types_of_netcdf4(tmp_path):
    """The library's own enums and compounds."""
    netCDF4 = pytest.importorskip("netCDF4")
    path = tmp_path / "types.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        clouds = file.createEnumType(np.uint8, "cloud_t", {"clear": 0, "cumulus": 3})
        file.createVariable("clouds", clouds, ("x",), fill_value=0)[:] = [0, 3, 0]
        wind = file.createCompoundType(np.dtype([("speed", "f4"), ("from", "i4")]), "wind_t")
        file.createVariable("wind", wind, ("x",))[:] = np.array(
            [(1.5, 90), (2.5, 180), (0, 0)], [("speed", "f4"), ("from", "i4")])
    run("ncdump", "-h", path)
    with tailrace.open(path) as file:
        assert file["clouds"].enum == {"clear": 0, "cumulus": 3}
        assert file["clouds"].dims == ("x",) and file["clouds"][:].tolist() == [0, 3, 0]
        assert file["wind"][:]["from"].tolist() == [90, 180, 0]
        assert file["wind"][1]["speed"] == 2.5

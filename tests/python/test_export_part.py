"""tailrace export --slab into HDF5: the part is a complete netCDF-4 file."""

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import smooth, tailrace

VALUES = smooth((12, 20, 30))


@pytest.fixture
def climate(tmp_path):
    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "a year"
        for name, length in [("time", None), ("lat", 20), ("lon", 30)]:
            file.createDimension(name, length)
        group = file.createGroup("deep")
        for name, n in [("time", 12), ("lat", 20), ("lon", 30)]:
            axis = file.createVariable(name, "f8", (name,))
            axis.units = "units of " + name
            axis[:] = np.arange(n) * 0.5
        for owner, name in [(file, "temp"), (group, "salt")]:
            variable = owner.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True,
                                            fill_value=-99)
            variable.units = "K"
            variable[:] = VALUES
        file.createVariable("count", "i2", ("time", "lat", "lon"))[:] = 7
        file.createVariable("area", "f4", ("lat", "lon"))[:] = 1
        file.createVariable("names", str, ("lat",))[:] = np.array([f"n{i}" for i in range(20)],
                                                                 dtype=object)
    return path


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_part_keeps_dimensions_coordinates_and_attributes(tmp_path, climate, ranks):
    small, part = tmp_path / "small.nc", tmp_path / "part.nc"
    tailrace("repack", climate, "-o", small, "--lossless-codec", "deflate", ranks=ranks)
    tailrace("export", small, "-o", part, "--slab", "2:9:3,5:15,:", "--read-options",
             "memory=1MiB", ranks=ranks)
    with netCDF4.Dataset(part) as file:
        assert file.title == "a year"
        assert {name: (len(d), d.isunlimited()) for name, d in file.dimensions.items()} == {
            "time": (3, True), "lat": (10, False), "lon": (30, False)}
        assert np.array_equal(file["time"][:], [1, 2.5, 4])
        assert np.array_equal(file["lat"][:], np.arange(5, 15) * 0.5)
        assert file["lat"].units == "units of lat" and file["lon"].shape == (30,)
        assert "area" not in file.variables
        for name in ["temp", "deep/salt"]:
            variable = file[name]
            assert variable.dimensions == ("time", "lat", "lon")
            assert (variable.units, variable._FillValue) == ("K", -99)
            assert not [n for n in variable.ncattrs() if "deflate" in str(variable.getncattr(n))]
            assert np.array_equal(variable[:], VALUES[2:9:3, 5:15])
        assert file["count"].dtype == "i2" and (file["count"][:] == 7).all()
    with h5py.File(part) as file:
        assert file["temp"].compression is None and file["temp"].shape == (3, 10, 30)


def test_chosen_variables(tmp_path, climate):
    part = tmp_path / "part.h5"
    tailrace("export", climate, "-o", part, "--slab", "5:6,:", "--only", "area")
    with netCDF4.Dataset(part) as file:
        assert sorted(file.variables) == ["area", "lat", "lon"] and file["area"].shape == (1, 30)
    tailrace("export", climate, "-o", part, "--slab", "3:5", "--only", "names", "--force")
    with netCDF4.Dataset(part) as file:
        assert list(file["names"][:]) == ["n3", "n4"]
    tailrace("export", climate, "-o", part, "--slab", "0:0,:,:", "--only", "temp", "--force")
    with netCDF4.Dataset(part) as file:
        assert file["temp"].shape == (0, 20, 30)


def test_plain_hdf5(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["a"] = VALUES
        file.create_dataset("g/half", data=VALUES.astype("f2"), chunks=(5, 5, 5),
                            compression="gzip")
    tailrace("export", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--slab", "1:3,::7,4:30")
    with h5py.File(tmp_path / "out.h5") as file:
        assert np.array_equal(file["a"][()], VALUES[1:3, ::7, 4:30])
        assert np.array_equal(file["g/half"][()], VALUES.astype("f2")[1:3, ::7, 4:30])


def test_what_cannot_be_cut_is_said(tmp_path, climate):
    with netCDF4.Dataset(climate, "a") as file:
        file.createVariable("turned", "f4", ("lon", "lat", "time"))[:] = VALUES.T
    for options, text in [(("--slab", "0:2,0:3,0:4"), "at other positions than"),
                          (("--slab", "0:50,:,:", "--only", "temp"), "must be ascending"),
                          (("--slab", "0:1,:", "--only", "temp"), "dimension, found 2;"),
                          (("--slab", "0:1,:,:,:"), "no matching dataset of 4 dimensions")]:
        done = tailrace("export", climate, "-o", tmp_path / "no.nc", *options, code=2)
        assert text in done.stderr, done.stderr
        assert not list(tmp_path.glob("no.nc*"))

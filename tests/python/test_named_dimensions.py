"""Named dimensions, coordinates and times of the step interface, as other readers see them.

examples/time_series.c writes height(time, x) and discharge(time, x), and closes and continues its
file half way.
"""

import subprocess

import h5py
import numpy as np
import pytest

import python_package
import stock_readers
import test_examples
import test_restart
from cli_tools import ENVIRONMENT, tailrace

package = python_package.load()
netCDF4 = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")
TIMES = np.arange(40) * 12.5
POSITIONS = np.arange(1000) * 10.0


@pytest.fixture(scope="module", params=[1, 3])
def canal(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("canal") / "canal.h5"
    test_examples.run("time_series", request.param, path)
    return path


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_shows_names_and_coordinates(canal, engine):
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(canal, engine=engine, decode_times=False) as file:
        assert dict(file.sizes) == {"time": 40, "x": 1000}
        assert file["height"].dims == file["discharge"].dims == ("time", "x")
        assert np.array_equal(file["time"], TIMES) and np.array_equal(file["x"], POSITIONS)
        assert file["time"].attrs["units"] == "s" and file["x"].attrs["units"] == "m"
        assert file["height"].attrs["units"] == "m"
        at_300 = file["height"].sel(x=3000.0, time=0.0)
        assert abs(float(at_300) - 11) < 1e-2
        assert file.encoding["unlimited_dims"] in ({"time"}, ["time"])


def test_the_python_package(canal):
    with package.open(canal) as file:
        assert file["height"].dims == ("time", "x") and file.steps == range(40)
        assert np.array_equal(file["x"][...], POSITIONS)


def test_netcdf4_and_ncdump(canal):
    with netCDF4.Dataset(canal) as file:
        assert file.dimensions["time"].isunlimited() and not file.dimensions["x"].isunlimited()
        assert file["height"].dimensions == ("time", "x")
        assert np.array_equal(file["time"][:], TIMES)
    text = subprocess.run(["ncdump", "-c", canal], capture_output=True, text=True, check=True,
                          env=ENVIRONMENT).stdout
    assert "phony" not in text and "double height(time, x) ;" in text
    assert "time = UNLIMITED ; // (40 currently)" in text and 'x:units = "m" ;' in text


def test_h5py_finds_the_scales(canal):
    with h5py.File(canal) as file:
        for d, name in enumerate(("time", "x")):
            assert file["height"].dims[d][0] == file[name]
            assert file[name].is_scale
        assert file["height"].shape == (40, 1000)


def test_netcdf_c_and_tailrace_continue_the_file(canal, tmp_path):
    path = tmp_path / "more.nc"
    path.write_bytes(canal.read_bytes())
    assert stock_readers.append_record(path, "discharge") == 40
    with netCDF4.Dataset(path) as file:
        assert len(file.dimensions["time"]) == 41 and file["discharge"][40, 5] == 1
    small = tmp_path / "small.nc"
    tailrace("repack", canal, "-o", small, "--codec", "deflate")
    with netCDF4.Dataset(small) as file:
        assert file["height"].dimensions == ("time", "x")


@pytest.mark.parametrize("ranks", [1, 3])
def test_times_of_a_calendar(ranks, tmp_path):
    """The restart example has times since a date, in days."""
    path = tmp_path / "run.h5"
    test_restart.run("restart", "async", path, ranks)
    with xarray.open_dataset(path, engine="netcdf4") as file:
        assert dict(file.sizes) == {"time": 40, "y": 96, "x": 160}
        assert str(file["time"].values[1])[:16] == "2000-01-01T06:00"

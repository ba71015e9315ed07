"""Every kind of file that Tailrace writes, read by the programs and libraries of netCDF-4.

Each kind has known values, which ncdump, nccopy, ncks, netCDF4-python and xarray read. Then
netCDF4-python adds a variable, records and attributes, and everything is read again.
"""

import shutil
import subprocess

import h5py
import numpy as np
import pytest

import cli_tools
import test_examples

netCDF4 = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")

TIME, LAT, LON = 6, 30, 40
VALUES = cli_tools.smooth((TIME, LAT, LON))
HOURS = np.arange(TIME) * 6.0
DEGREES = np.linspace(-60, 60, LAT, dtype="f4")
BOUND = 1e-3


def run(*words):
    program = shutil.which(words[0])
    if program is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([program, *map(str, words[1:])], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}{done.stderr}"
    return done.stdout


def write_netcdf(path, form):
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.Conventions = "CF-1.11"
        file.createDimension("time", None)
        file.createDimension("lat", LAT)
        file.createDimension("lon", LON)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 2001-01-01"
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        temp = file.createVariable("temp", "f4", ("time", "lat", "lon"), fill_value=-999)
        temp.units = "K"
        temp.valid_range = np.array([-10, 10], "f4")
        count = file.createVariable("count", "i4", ("lon",))
        label = file.createVariable("label", "S1", ("lat",))
        lat[:], count[:] = DEGREES, np.arange(LON)
        time[:], temp[:] = HOURS, VALUES
        label[:] = np.frombuffer(bytes(97 + i % 26 for i in range(LAT)), "S1")


def write_hdf5(path):
    """Write no dimension scales, no link order, and an attribute that netCDF-C cannot open."""
    with h5py.File(path, "w") as file:
        file.create_dataset("temp", data=VALUES, maxshape=(None, LAT, LON), chunks=(1, LAT, LON))
        file["time"], file["lat"] = HOURS, DEGREES
        file["temp"].attrs["units"] = "K"
        file["temp"].attrs["matrix"] = np.arange(4.0).reshape(2, 2)
        group = file.create_group("more")
        group["count"] = np.arange(LON, dtype="i4")
        group["square"] = np.arange(LON * LON, dtype="i4").reshape(LON, LON)
        group["words"] = np.array([b"one", b"three"])


def check_by_tools(path, classic, folder):
    header = run("ncdump", "-h", path)
    assert "temp(" in header, header
    special = run("ncdump", "-h", "-s", path)
    assert ":_Format = \"netCDF-4" in special, special
    run("ncdump", path)
    for kind in ["nc4", "classic"] if classic else ["nc4"]:
        run("nccopy", "-k", kind, path, folder / f"copy_{kind}.nc")
    run("ncks", "-O", path, folder / "copy_ncks.nc")
    return header


def check_values(path, variable="temp", bound=BOUND, n_times=TIME):
    with netCDF4.Dataset(path) as file:
        found = file[variable][:n_times]
        assert not np.ma.is_masked(found)
        assert np.abs(np.asarray(found) - VALUES).max() <= bound
        assert file.data_model.startswith("NETCDF4")
    with xarray.open_dataset(path, engine="netcdf4", decode_cf=True) as file:
        assert np.abs(file[variable].values[:n_times] - VALUES).max() <= bound


def append_by_netcdf4(path):
    """Append like a program that continues the file later."""
    with netCDF4.Dataset(path, "a") as file:
        names = file["temp"].dimensions
        added = file.createVariable("added", "f8", names[1:], zlib=True)
        added[:] = 2.5
        added.remark = "later"
        file.createDimension("new", 3)
        file.createVariable("new", "i4", ("new",))[:] = [1, 2, 3]
        file.history = "appended"
        file["temp"].more = np.int32(7)
        if file.dimensions[names[0]].isunlimited():
            file["temp"][TIME + 1] = np.ones(file["temp"].shape[1:])
            if "time" in file.variables and file["time"].dimensions == ("time",):
                file["time"][TIME:] = [36, 42]  # xarray does not accept fill values in time.
    with netCDF4.Dataset(path) as file:
        assert file.history == "appended" and file["temp"].more == 7
        assert (file["added"][:] == 2.5).all()
        assert list(file["new"][:]) == [1, 2, 3]


KINDS = {
    "classic": ("NETCDF3_CLASSIC", []),
    "offset64": ("NETCDF3_64BIT_OFFSET", []),
    "cdf5": ("NETCDF3_64BIT_DATA", []),
    "netcdf4": ("NETCDF4", []),
    "strict": ("NETCDF4_CLASSIC", []),
}


@pytest.mark.parametrize("kind", KINDS)
def test_netcdf_inputs_stay_netcdf(tmp_path, kind):
    form, options = KINDS[kind]
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_netcdf(source, form)
    cli_tools.tailrace("repack", source, "-o", target, "--codec", "portable", "--bound",
                       f"abs={BOUND}", *options)
    header = check_by_tools(target, True, tmp_path)
    assert "time = UNLIMITED ; // (6 currently)" in header
    assert 'temp:tailrace_bound_mode = "abs"' in header, "a bound is said where ncdump shows it"
    assert "temp:tailrace_absolute_bound = 0.001" in header
    check_values(target)
    with netCDF4.Dataset(target) as file, xarray.open_dataset(target) as decoded:
        assert file["temp"]._FillValue == np.float32(-999)
        assert list(file["temp"].valid_range) == [-10, 10]
        assert list(file.variables) == ["time", "lat", "temp", "count", "label"]
        np.testing.assert_array_equal(file["lat"][:], DEGREES)  # exact: a coordinate
        np.testing.assert_array_equal(file["time"][:], HOURS)
        np.testing.assert_array_equal(file["count"][:], np.arange(LON))
        assert bytes(np.asarray(file["label"][:3])) == b"abc"
        assert decoded["time"].dtype.kind == "M" and decoded["temp"].dims == ("time", "lat", "lon")
    append_by_netcdf4(target)
    check_by_tools(target, False, tmp_path)
    check_values(target)
    again = tmp_path / "again.nc"
    cli_tools.tailrace("repack", target, "-o", again)
    with netCDF4.Dataset(again) as file:
        assert file["temp"].shape == (TIME + 2, LAT, LON) and file.history == "appended"
        assert np.ma.is_masked(file["temp"][TIME]), "never written: fill values"


@pytest.mark.parametrize("ranks", [1, 3])
def test_plain_hdf5_becomes_netcdf(tmp_path, ranks):
    source, target = tmp_path / "in.h5", tmp_path / "out.nc"
    write_hdf5(source)
    done = cli_tools.tailrace("repack", source, "-o", target, "--netcdf", "--dims",
                              "/temp=time,lat,lon", "--codec", "portable", "--bound",
                              f"abs={BOUND}", ranks=ranks)
    assert 'attribute "matrix"' in done.stdout + done.stderr
    header = check_by_tools(target, False, tmp_path)
    assert "phony" not in header
    check_values(target)
    with netCDF4.Dataset(target) as file:
        assert file["temp"].dimensions == ("time", "lat", "lon")
        assert file["time"].dimensions == ("time",) and file["lat"].dimensions == ("lat",)
        assert list(file["temp"].matrix) == [0, 1, 2, 3]
        more = file["more"]
        assert more["count"].dimensions == ("dim_40",)
        assert more["square"].dimensions == ("dim_40", "dim_40_2")
        assert list(more["words"][:]) == ["one", "three"]
        assert more.dimensions["dim_40"].size == LON
        np.testing.assert_array_equal(more["square"][:].ravel(), np.arange(LON * LON))
    append_by_netcdf4(target)
    check_by_tools(target, False, tmp_path)
    with netCDF4.Dataset(target, "a") as file:  # Groups also track link order.
        file["more"].createVariable("late", "i2", ("dim_40",))[:] = 1
    check_values(target)


@pytest.mark.parametrize("ranks", [1, 3])
def test_names_of_dimensions_that_match_no_dataset_are_refused(tmp_path, ranks):
    source, target = tmp_path / "in.h5", tmp_path / "out.nc"
    write_hdf5(source)
    done = cli_tools.tailrace("repack", source, "-o", target, "--netcdf", "--dims",
                              "/tempo=time,lat,lon", ranks=ranks, code=2)
    said = " ".join(done.stderr.split())
    assert "--dims '/tempo=time,lat,lon' matches no dataset; the fields are:" in said
    assert not target.exists()


def test_fields_that_become_coordinates_stay_exact(tmp_path):
    positions = np.cumsum(np.random.default_rng(1).random(5000))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = positions
        file["wave"] = np.sin(positions)
    cli_tools.tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.nc", "--netcdf",
                       "--dims", "wave=x", "--codec", "portable", "--bound", "abs=0.01")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        np.testing.assert_array_equal(file["x"][:], positions)
        assert 0 < np.abs(file["wave"][:] - np.sin(positions)).max() <= 0.01


def test_npy_and_raw_become_netcdf(tmp_path):
    np.save(tmp_path / "temp.npy", VALUES)
    VALUES.tofile(tmp_path / "temp.bin")
    cases = {"npy": [tmp_path / "temp.npy"],
             "raw": [tmp_path / "temp.bin", "--raw", f"f32:{TIME}x{LAT}x{LON}"]}
    for name, words in cases.items():
        target = tmp_path / f"{name}.nc"
        cli_tools.tailrace("repack", *words, "-o", target, "--netcdf", "--dims", "*=t,y,x")
        check_by_tools(target, True, tmp_path)
        check_values(target, bound=0)
        with netCDF4.Dataset(target) as file:
            assert file["temp"].dimensions == ("t", "y", "x")
        append_by_netcdf4(target)
    (tmp_path / "into").mkdir()
    cli_tools.tailrace("repack", *cases["npy"], "-o", tmp_path / "into", "--netcdf")
    with netCDF4.Dataset(tmp_path / "into" / "temp.nc") as file:
        assert file["temp"].dimensions == ("dim_6", "dim_30", "dim_40")


@pytest.mark.parametrize("words, says", [
    (["--dims", "*=t,y"], "--netcdf"),
    (["--netcdf", "--dims", "t,y,x"], "GLOB=NAME"),
    (["--netcdf", "--dims", "*=t,,x"], "empty"),
    (["--netcdf", "--dims", "temp=t,y"], "2 names for 3 dimensions"),
    (["--netcdf", "--dims", "temp=t,y/z,x"], "slash"),
    (["--netcdf", "--dims", "temp=t,lat,t"], "length"),
    (["--netcdf", "--dims", "temp=t,y,time"], "not its coordinate"),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_bad_names_are_refused(tmp_path, words, says, ranks):
    write_hdf5(tmp_path / "in.h5")
    done = cli_tools.tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.nc", *words,
                              ranks=ranks, code=2)
    assert says in done.stderr, done.stderr
    assert not (tmp_path / "out.nc").exists()


def test_steps_over_time_are_read(tmp_path):
    """A file written step by step has no dimension names, so netCDF-C invents them."""
    source = tmp_path / "steps.h5"
    test_examples.run("time_series", "alone", source)
    run("ncdump", source)
    run("nccopy", "-k", "nc4", source, tmp_path / "copy.nc")
    run("ncks", "-O", source, tmp_path / "ncks.nc")
    target = tmp_path / "steps.nc"
    cli_tools.tailrace("repack", source, "-o", target, "--netcdf")
    assert "phony" not in run("ncdump", "-h", target)
    with netCDF4.Dataset(target) as file, h5py.File(source) as before:
        def compare(name, item):
            if isinstance(item, h5py.Dataset):
                np.testing.assert_array_equal(np.asarray(file[name][...]), item[...], err_msg=name)
        before.visititems(compare)

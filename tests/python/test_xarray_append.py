"""Adding to files through xarray: mode="a", append_dim and region, and refusals.

Added values must read back unchanged. Values that the file's variables cannot represent, other
units, and other lengths are refused with a message, and the file does not change.
"""

import warnings

import netCDF4
import numpy as np
import pytest

import python_package
from test_xarray_everyday import FIELD, PACKED, TIMES, dataset, refused_in_words, same_files

tailrace = python_package.load()
xr = pytest.importorskip("xarray")


def test_mode_a_equals_the_peer(tmp_path):
    more = xr.Dataset({"w": (("y",), np.arange(16.0)),
                       "count": (("y",), np.arange(16, 32, dtype="i4"))}, attrs={"title": "New"})
    for write, name in ((tailrace.write_dataset, "ours.nc"),
                        (lambda d, p, **k: d.to_netcdf(p, engine="netcdf4", **k), "theirs.nc")):
        write(dataset(), tmp_path / name)
        write(more, tmp_path / name, mode="a")
        write(dataset(), tmp_path / name, mode="a", group="g")
    assert list(same_files(tmp_path / "ours.nc", tmp_path / "theirs.nc")) == []
    assert list(same_files(tmp_path / "ours.nc", tmp_path / "theirs.nc", group="g")) == []


@pytest.mark.parametrize("keys", [{}, PACKED, {**PACKED, "abs": 0.1}, {"abs": 0.1, "codec": "trz"}],
                         ids=["plain", "packed", "packed, bounded", "bounded"])
def test_appending_equals_what_was_one_before(keys, tmp_path):
    target = tmp_path / "out.nc"
    whole = dataset()
    encoding = {"t": keys, "time": {"units": "hours since 2001-01-01"}}
    for start in (0, 5, 6):
        part = whole.isel(time=slice(start, {0: 5, 5: 6, 6: 12}[start]))
        tailrace.write_dataset(part, target, append_dim="time",
                               **({} if start else {"encoding": encoding}))
    with xr.open_dataset(target, engine="h5netcdf") as back:
        assert back.encoding["unlimited_dims"] == {"time"} and back.sizes["time"] == 12
        assert (back.time == whole.time).all() and (back.lon == whole.lon).all()
        assert (back.t.isnull() == whole.t.isnull()).all()
        error = abs(back.t - whole.t).max()
        assert error <= (keys.get("abs") or (0.006 if keys else 0)) and (not keys or error > 0)
    with tailrace.open(target) as file:
        assert (file["t"].attrs.get("tailrace_bound_mode") == "abs") == ("abs" in keys)


def test_times_that_are_appended_twice_are_named(tmp_path):
    target, whole = tmp_path / "out.nc", dataset()
    encoding = {"time": {"units": "hours since 2001-01-01"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        tailrace.write_dataset(whole.isel(time=slice(0, 5)), target, append_dim="time",
                               encoding=encoding)
        tailrace.write_dataset(whole.isel(time=slice(5, 8)), target, append_dim="time")
    with pytest.warns(RuntimeWarning, match=r"coordinate /time: 2 of 4 appended values are in the "
                                            r"file already, the first is .* hours since 2001"):
        tailrace.write_dataset(whole.isel(time=slice(6, 10)), target, append_dim="time")
    last = tmp_path / "last.nc"
    tailrace.write_dataset(whole.isel(time=slice(6, 8)), last, append_dim="time",
                           encoding=encoding)
    with pytest.warns(RuntimeWarning, match="coordinate /time is not monotonic: .* after"):
        tailrace.write_dataset(whole.isel(time=slice(0, 2)), last, append_dim="time")
    with tailrace.open(last) as file:
        assert len(file["time"][...]) == 4


@pytest.mark.parametrize("codec", ["zfp", "sz3"])
def test_variables_of_plugins_are_appended_to(codec, tmp_path):
    """hdf5plugin's plug-ins call h5py's HDF5, which does not know the engine's datasets."""
    target = tmp_path / "out.nc"
    rng = np.random.default_rng(5)
    whole = xr.Dataset({"u": (("time", "y", "x"), rng.random((12, 18, 36), dtype="f4"))})
    for start in (0, 8):
        how = {} if start else {"encoding": {"u": {"codec": codec, "abs": 1e-3}}}
        tailrace.write_dataset(whole.isel(time=slice(start, 8 if start == 0 else 12)), target,
                               append_dim="time", **how)
    with tailrace.open(target) as file:
        assert file["u"].shape == (12, 18, 36)
        assert 0 < abs(file["u"][:] - whole.u.values).max() <= 1e-3


def test_what_cannot_be_appended(tmp_path):
    target = tmp_path / "out.nc"
    whole = dataset()
    tailrace.write_dataset(whole, target)
    with pytest.raises(ValueError, match="cannot grow; .*unlimited_dims") as failure:
        tailrace.write_dataset(whole, target, append_dim="time")
    refused_in_words(failure.value)
    packed = {"t": PACKED, "time": {"units": "days since 2001-01-01", "dtype": "i4"}}
    tailrace.write_dataset(whole.isel(time=[0, 4]), target, unlimited_dims="time",
                           encoding=packed)
    before = target.read_bytes()
    for given, words in (
            (whole.drop_vars("t"), "no 't'"),
            (whole.assign(w=("time", np.arange(12.0))), "no 'w'"),
            (whole.isel(x=slice(3)), "'x': it is 24 long"),
            (whole.isel(time=[1]), "units = 'days since 2001-01-01'"),
            (whole.isel(time=[8]).assign_coords(y=whole.y + 1), "'y' has other values"),
            (whole.isel(time=[8]).assign(t=whole.t.isel(time=[8]).transpose("y", "time", "x")),
             "'t' has the dimensions"),
            (whole.isel(time=[8]).assign(count=whole["count"].astype("f4") + 0.5), "'count'")):
        with pytest.raises(ValueError, match=words) as failure:
            tailrace.write_dataset(given, target, append_dim="time")
        refused_in_words(failure.value)
        assert target.read_bytes() == before
    with pytest.raises(ValueError, match="'t'.*its encoding cannot change"):
        tailrace.write_dataset(whole, target, append_dim="time", encoding={"t": {"abs": 1}})


def of_time(values, **attrs):
    return xr.Dataset({"t": ("time", np.asarray(values), attrs)})


def hours(*values):
    return np.array(values, "m8[h]").astype("m8[ns]")


def dates(*values):
    return np.array(values, "M8[ns]")


SINCE = {"units": "seconds since 1970-01-01"}
#: First values, their encoding, values to append, and the error about them.
MISFITS = {
    "hours to days": (hours(0, 24), {}, hours(30, 36), "units = 'days'"),
    "numbers to hours": (hours(0, 24), {}, [3, 4], "units = 'days'"),
    "numbers to dates": (dates("2001-01-01", "2001-01-02"), {}, [3, 4], "units"),
    "numbers to bool": ([True, False], {}, np.array([5, 6], "i1"), "dtype = 'bool'"),
    "bool to numbers": (np.array([5, 6], "i1"), {}, [True, False], "dtype = None"),
    "beyond i2": ([1.0, 2.0], PACKED, [1000.0, 1.0], "1000.0 does not fit int16"),
    "far beyond i2": ([1.0, 2.0], PACKED, [1.0, 1e9], "1000000000.0 does not fit int16"),
    "infinite": ([1.0, 2.0], PACKED, [1.0, np.inf], "inf does not fit int16"),
    "beyond i2, bounded": ([1.0, 2.0], {**PACKED, "abs": 0.05}, [1000.0, 1.0], "1000.0 does not"),
    "NaN without fill": ([1.0, 2.0], {**PACKED, "_FillValue": None}, [1.0, np.nan], "nan does"),
    "a fill value": ([1.0, 2.0], {**PACKED, "_FillValue": -999}, [1.0, 3 - 9.99],
                     "read as missing"),
    "a fill value of floats": ([1.0, 2.0], {"_FillValue": -999.0}, [1.0, -999.0],
                               "read as missing"),
    "beyond f4": (np.array([1, 2], "f4"), {}, [1.0, 1e300], "1e.300 does not fit float32"),
    "f4 of seconds": (dates("2001-01-01", "2001-01-02"), {**SINCE, "dtype": "f4"},
                      dates("2020-01-03T01:02:03", "2020-01-04"), "01:02:03.* float32"),
    "i4 of seconds": (dates("2001-01-01", "2001-01-02"), {**SINCE, "dtype": "i4"},
                      dates("2101-01-03", "2101-01-04"), "2101-01-03.* int32"),
}


@pytest.mark.parametrize("how", [{"append_dim": "time"}, {"region": {"time": slice(0, 2)}},
                                 {"mode": "a"}])
@pytest.mark.parametrize("dask", [False, True])
@pytest.mark.parametrize("case", MISFITS)
def test_values_that_the_file_cannot_hold(case, how, dask, tmp_path):
    first, keys, more, words = MISFITS[case]
    target = tmp_path / "out.nc"
    tailrace.write_dataset(of_time(first), target, encoding={"t": keys}, unlimited_dims="time")
    before = target.read_bytes()
    given = of_time(more)
    with pytest.raises((ValueError, OverflowError), match=words) as failure:
        tailrace.write_dataset(given.chunk({"time": 1}) if dask else given, target, **how)
    refused_in_words(failure.value)
    assert target.read_bytes() == before


@pytest.mark.parametrize("first, keys, more, step", [
    (hours(1, 2), {}, hours(3, 4).astype("m8[s]"), 0),
    (hours(1, "NaT"), {}, hours("NaT", 4), 0),
    (dates("2001-01-01", "NaT"), {}, dates("NaT", "2001-01-04"), 0),
    (dates("2001-01-01", "2001-01-02"), {**SINCE, "dtype": "f8"},
     dates("2020-01-03T01:02:03.5", "2101-01-04"), 0),
    (dates("2001-01-01", "2001-01-02"), {"units": "days since 2001-01-01", "dtype": "f4"},
     dates("2001-01-03T06", "2001-01-04"), 0),
    (np.array([True, False]), {}, np.array([False, True]), 0),
    (np.array([1, 2.5], "f4"), {}, np.array([np.pi, np.nan]), 1e-6),
    (np.array([1, 2.5], "f4"), {}, np.array([np.inf, -1e38]), 1e32),
    (np.array([1.5, np.nan]), PACKED, np.array([np.nan, -324.67]), 0.00501),
    (np.array([1.5, 2], "f4"), PACKED, np.array([330.67, np.nan], "f4"), 0.00504),
    (np.array([1.5, 2]), PACKED, np.array([330, -30], "i2"), 1e-6),
    (np.array([1, -999]), {"_FillValue": -999}, np.array([-999, 4]), 0)])
@pytest.mark.parametrize("dask", [False, True])
def test_values_that_the_file_can_hold(first, keys, more, step, dask, tmp_path):
    target = tmp_path / "out.nc"
    tailrace.write_dataset(of_time(first), target, encoding={"t": keys}, unlimited_dims="time")
    given = of_time(more)
    tailrace.write_dataset(given.chunk({"time": 1}) if dask else given, target, append_dim="time")
    with xr.open_dataset(target, engine="h5netcdf", decode_timedelta=True) as back:
        expected = np.concatenate([first, more])
        read = back.t.values
        if expected.dtype.kind == "i":  # -999 marks missing values.
            expected = np.where(expected == -999, np.nan, expected)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(read, expected, rtol=0, atol=step)
        else:
            assert np.array_equal(read.astype(expected.dtype).view("i1"), expected.view("i1"))


@pytest.mark.parametrize("keys", [{"decode_times": False}, {"mask_and_scale": False},
                                  {"decode_cf": False}])
def test_values_as_they_are_stored_are_appended_as_such(keys, tmp_path):
    target = tmp_path / "out.nc"
    first = of_time([1.0, np.nan]).assign_coords(time=dates("2001-01-01", "2001-01-02"))
    tailrace.write_dataset(first, target, encoding={"t": PACKED}, unlimited_dims="time")
    with xr.open_dataset(target, engine="tailrace", **keys) as raw:
        raw.load()
    tailrace.write_dataset(raw, target, append_dim="time")
    with xr.open_dataset(target, engine="h5netcdf") as back:
        xr.testing.assert_equal(back, xr.concat([first, first], "time"))


def test_files_of_others_are_appended_to(tmp_path):
    """The file has no calendar, no mark of durations, and bounds of times without units."""
    target = tmp_path / "out.nc"
    with netCDF4.Dataset(target, "w") as file:
        file.createDimension("time", None)
        file.createDimension("b", 2)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time.bounds, time[:] = "hours since 2001-01-01", "span", [0, 1]
        file.createVariable("span", "i4", ("time", "b"))[:] = [[0, 1], [1, 2]]
        step = file.createVariable("step", "i4", ("time",))
        step.units, step[:] = "hours", [5, 6]
        packed = file.createVariable("packed", "i1", ("time",), fill_value=-1)
        packed.setncatts({"_Unsigned": "true", "scale_factor": 0.1})
        packed.set_auto_maskandscale(False)
        packed[:] = [-1, -2]
    more = xr.Dataset(
        {"span": (("time", "b"), dates("2001-01-02T00", "2001-01-02T01").reshape(1, 2)),
         "step": ("time", hours(7)), "packed": ("time", [25.3])},
        {"time": ("time", dates("2001-01-02"), {"bounds": "span"})})
    tailrace.write_dataset(more, target, append_dim="time")
    with xr.open_dataset(target, engine="netcdf4", decode_timedelta=True) as back:
        assert (back.step == hours(5, 6, 7)).all()
        assert (back.time == dates("2001-01-01T00", "2001-01-01T01", "2001-01-02")).all()
        assert (back.span[2] == more.span[0]).all()
        assert np.allclose(back.packed, [np.nan, 25.4, 25.3], equal_nan=True)
    before = target.read_bytes()
    for given, words in (
            (more.assign(packed=more.packed + 1), "26.3.* does not fit int8"),
            (more.assign(step=more.step + np.timedelta64(1, "m")), "'step'.*units"),
            (more.assign(span=more.span + np.timedelta64(1, "s")), "'span'.*units")):
        with pytest.raises(ValueError, match=words) as failure:
            tailrace.write_dataset(given, target, append_dim="time")
        refused_in_words(failure.value)
        assert target.read_bytes() == before


def test_nobody_elses_dimension_grows(tmp_path):
    """Appending grows the group's own dimension, and no other variables."""
    target = tmp_path / "out.nc"
    tailrace.write_dataset(of_time([1, 2]), target, unlimited_dims=["time"])
    for _ in range(2):  # The group is new in the first round.
        tailrace.write_dataset(of_time([1.0, 2.0]), target, append_dim="time", group="g")
    tailrace.write_dataset(of_time([3]), target, append_dim="time")
    with xr.open_dataset(target, engine="h5netcdf") as root, \
            xr.open_dataset(target, engine="h5netcdf", group="g") as group:
        assert root.t.values.tolist() == [1, 2, 3] and group.t.values.tolist() == [1, 2, 1, 2]
        assert root.encoding["unlimited_dims"] == {"time"}
    with tailrace.open(target, "a") as file:
        file.create_group("h").create_variable("w", "time", "f8")[...] = [1, 2, 3]
    before = target.read_bytes()
    for given, how, words in (
            (of_time([4]), {"append_dim": "time"}, "/h/w of .* shares 'time'"),
            (of_time([4.0]).rename(t="w"), {"append_dim": "time", "group": "h"}, "/t of"),
            (of_time([1.0, 2.0, 3.0, 4.0]).rename(t="v"), {"mode": "a"}, "3 long in the file, w"),
            (of_time([1.0]).rename(t="v"), {"mode": "a"}, "3 long in the file"),
            (of_time([1, 2, 3, 4]), {"mode": "a"}, "where /h/w lies along it"),
            (of_time([1.0, 2.0, 3.0, 4.0]).rename(t="v"), {"mode": "a", "group": "h"}, "3 long")):
        for unlimited in ({}, {"unlimited_dims": "time"}):
            with pytest.raises(ValueError, match=words) as failure:
                tailrace.write_dataset(given, target, **how, **unlimited)
            refused_in_words(failure.value)
            assert target.read_bytes() == before
    tailrace.write_dataset(of_time([1, 2]), target, unlimited_dims=["time"])
    tailrace.write_dataset(of_time([4, 5, 6]), target, mode="a")  # Replaces all values.
    tailrace.write_dataset(of_time([1.0]), target, mode="a", unlimited_dims="time", group="g")
    with xr.open_dataset(target, engine="h5netcdf") as root, \
            xr.open_dataset(target, engine="h5netcdf", group="g") as group:
        assert root.t.values.tolist() == [4, 5, 6] and group.t.values.tolist() == [1]


def test_regions_equal_what_was_one_before(tmp_path):
    target = tmp_path / "out.nc"
    whole = dataset()
    blank = whole.assign(t=whole.t * 0)
    tailrace.write_dataset(blank, target)
    moving = whole[["t"]].drop_vars(["lon", "y", "x"])
    tailrace.write_dataset(moving.isel(time=slice(2, 5)), target, region={"time": slice(2, 5)})
    tailrace.write_dataset(moving.isel(time=slice(5, 9)), target, region={"time": "auto"})
    expected = blank.t.copy(deep=True)
    expected[2:9] = whole.t[2:9]
    with xr.open_dataset(target, engine="h5netcdf") as back:
        xr.testing.assert_equal(back.t, expected)
        xr.testing.assert_equal(back.drop_vars("t"), blank.drop_vars("t"))
    before = target.read_bytes()
    for given, region, kind, words in (
            (moving, {"time": slice(0, 3)}, ValueError, "12 long in the dataset"),
            (moving, {"time": slice(0, 12, 2)}, TypeError, "step 1"),
            (moving, {"time": slice(6, 18)}, ValueError, "outside"),
            (moving, {"tyme": slice(0, 12)}, ValueError, "'tyme'"),
            (moving, {"time": 3}, TypeError, "slice"),
            (whole, {"time": slice(0, 12)}, ValueError, "drop_vars"),
            (moving.rename(t="w"), {"time": slice(0, 12)}, ValueError, "no variable 'w'"),
            (moving.assign_coords(time=TIMES + np.timedelta64(1, "h")), "auto", ValueError,
             "not contiguous")):
        with pytest.raises(kind, match=words) as failure:
            tailrace.write_dataset(given, target, region=region)
        refused_in_words(failure.value)
        assert target.read_bytes() == before
    with pytest.raises(FileNotFoundError):
        tailrace.write_dataset(moving, tmp_path / "none.nc", region="auto")
    twice = TIMES[[0, 0, *range(2, 12)]]
    tailrace.write_dataset(whole.assign_coords(time=twice), target)
    with pytest.raises(ValueError, match="values of 'time' in the file are not unique") as failure:
        tailrace.write_dataset(moving, target, region="auto")
    refused_in_words(failure.value)


@pytest.mark.parametrize("how", [{}, {"mode": "a"}, {"append_dim": "time"},
                                 {"region": {"time": slice(0, 12)}}, {"group": "g", "mode": "a"}])
def test_what_fails_on_its_way_leaves_the_older_file(how, tmp_path):
    array = pytest.importorskip("dask.array")
    target = tmp_path / "out.nc"
    tailrace.write_dataset(dataset(), target, unlimited_dims="time")
    before = target.read_bytes()

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 2:
            raise ZeroDivisionError("in the middle")
        return block

    given = dataset()
    given["t"] = given.t.copy(data=array.from_array(FIELD, chunks=(4, 16, 24)).map_blocks(
        fail, dtype="f8", meta=np.zeros((0, 0, 0))))
    if "region" in how:
        given = given[["t", "time"]].drop_vars(["lon", "y", "x"])
    with pytest.raises(ZeroDivisionError):
        tailrace.write_dataset(given, target, **how)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out.nc"]

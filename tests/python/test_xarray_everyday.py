"""Everyday calls of xarray users, compared with another engine: results are equal, or refused.

The calls are those of xarray's user guide on reading and writing files. A call that writes runs
once through tailrace.write_dataset and once through to_netcdf; another library then reads both
files, decoded and raw. A call that reads runs on a file of the netCDF4 library.
"""

import io
import pickle

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import smooth

tailrace = python_package.load()
xr = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

FIELD = smooth((12, 16, 24)).astype("f8")
TIMES = np.datetime64("2001-02-27", "ns") + np.arange(12) * np.timedelta64(6, "h")


def stripped(dataset):
    """Return the dataset without Tailrace's attributes."""
    dataset = dataset.load().copy()
    for attrs in (dataset.attrs, *(v.attrs for v in dataset.variables.values())):
        for key in [key for key in attrs if key.startswith("tailrace_")]:
            del attrs[key]
    return dataset


def refused_in_words(failure):
    """Check that an error is understandable without knowledge of the engine's code."""
    text = str(failure)
    assert len(text) > 20 and "\n" not in text, text
    for noise in ("incompatible function arguments", "Invoked with", "std::", "0x", "<class",
                  "_engine", "NoneType: None"):
        assert noise not in text, text


# --- reading --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Write files with the netCDF4 library, two of them consecutive in time.

    They have packed and masked variables, texts and groups."""
    folder = tmp_path_factory.mktemp("stored")
    for part in range(2):
        with netCDF4.Dataset(folder / f"part{part}.nc", "w") as file:
            file.title, file.numbers = "Climate", np.array([1, 2, 3], "i4")
            for name, length in (("time", None), ("y", 16), ("x", 24), ("n", 5), ("bnds", 2)):
                file.createDimension(name, length)
            time = file.createVariable("time", "f8", ("time",))
            time.units, time.calendar, time.bounds = "hours since 2001-02-27", "standard", "time_b"
            time[:] = np.arange(6) * 6 + part * 36
            file.createVariable("time_b", "f8", ("time", "bnds"))[:] = np.add.outer(time[:], [0, 6])
            file.createVariable("y", "f4", ("y",))[:] = np.linspace(-90, 90, 16)
            file.createVariable("lon", "f4", ("y", "x"))[:] = np.arange(16 * 24).reshape(16, 24)
            t = file.createVariable("t", "i2", ("time", "y", "x"), zlib=True, fill_value=-32768,
                                    chunksizes=(2, 16, 24))
            t.scale_factor, t.add_offset, t.units, t.coordinates = 0.01, 200.0, "K", "lon"
            t[:] = np.ma.masked_greater(FIELD[:6] - FIELD.min(), np.ptp(FIELD) * 0.9)
            u = file.createVariable("u", "f4", ("time", "y"), fill_value=1e20)
            u.missing_value = np.float32(1e20)
            u[:] = np.ma.masked_less(FIELD[:6, :, 0], 0)
            lag = file.createVariable("lag", "i4", ("y",))
            lag.units, lag[:] = "days", np.arange(16)
            byte = file.createVariable("byte", "i1", ("x",))
            byte.setncattr("_Unsigned", "true")
            byte[:] = np.arange(24) - 12
            file.createVariable("name", str, ("y",))[:] = np.array(
                [f"row {i}" for i in range(16)], object)
            file.createVariable("char", "S1", ("y", "n"))[:] = netCDF4.stringtochar(
                np.array([f"r{i}" for i in range(16)], "S5"))
            file.createVariable("crs", "i4", ()).grid_mapping_name = "latitude_longitude"
            group = file.createGroup("g")
            group.title = "inner"
            group.createVariable("u", "f4", ("y",))[:] = np.arange(16)
            group.createGroup("h").createVariable("v", "f4", ("x",))[:] = np.arange(24)
        with netCDF4.Dataset(folder / f"one{part}.nc", "w") as file:
            file.createDimension("x", 4)
            file.createVariable("only", "f4", ("x",))[:] = np.arange(4)
    return folder


READS = {
    "open_dataset": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e),
    "of a str": lambda p, e: xr.open_dataset(str(p / "part0.nc"), engine=e),
    "load_dataset": lambda p, e: xr.load_dataset(p / "part0.nc", engine=e),
    "open_dataarray": lambda p, e: xr.open_dataarray(p / "one0.nc", engine=e).to_dataset(),
    "load_dataarray": lambda p, e: xr.load_dataarray(p / "one0.nc", engine=e).to_dataset(),
    "decode_cf=False": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, decode_cf=False),
    "decode_times=False":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, decode_times=False),
    "decode_times of one":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, decode_times={"time": False}),
    "CFDatetimeCoder": lambda p, e: xr.open_dataset(
        p / "part0.nc", engine=e, decode_times=xr.coders.CFDatetimeCoder(time_unit="s")),
    "use_cftime coder": lambda p, e: xr.open_dataset(
        p / "part0.nc", engine=e, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)),
    "decode_timedelta": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e,
                                                     decode_timedelta=True),
    "CFTimedeltaCoder": lambda p, e: xr.open_dataset(
        p / "part0.nc", engine=e, decode_timedelta=xr.coders.CFTimedeltaCoder(time_unit="s")),
    "mask_and_scale=False":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, mask_and_scale=False),
    "mask_and_scale of one":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, mask_and_scale={"t": False}),
    "decode_coords=False":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, decode_coords=False),
    "decode_coords=all":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, decode_coords="all"),
    "concat_characters=False":
        lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, concat_characters=False),
    "drop_variables": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, drop_variables="t"),
    "drop several": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e,
                                                 drop_variables=["t", "name", "no such"]),
    "group": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, group="g"),
    "inner group": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, group="/g/h"),
    "chunks={}": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, chunks={}),
    "chunks=auto": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, chunks="auto"),
    "chunks=-1": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, chunks=-1),
    "chunks of one": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, chunks={"time": 4}),
    "cache=False": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, cache=False),
    "inline_array": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e, chunks={},
                                                 inline_array=True),
    "mfdataset": lambda p, e: xr.open_mfdataset(sorted(p.glob("part*.nc")), engine=e),
    "mfdataset by a pattern": lambda p, e: xr.open_mfdataset(f"{p}/part*.nc", engine=e,
                                                             data_vars="minimal", compat="override",
                                                             coords="minimal"),
    "mfdataset nested": lambda p, e: xr.open_mfdataset(
        sorted(p.glob("part*.nc")), engine=e, combine="nested", concat_dim="time"),
    "mfdataset in parallel": lambda p, e: xr.open_mfdataset(
        sorted(p.glob("part*.nc")), engine=e, parallel=True, chunks={"time": 3},
        preprocess=lambda one: one[["t", "u"]]),
    "open_groups": lambda p, e: xr.open_groups(p / "part0.nc", engine=e),
    "open_datatree": lambda p, e: xr.open_datatree(p / "part0.nc", engine=e),
    "datatree of a group": lambda p, e: xr.open_datatree(p / "part0.nc", engine=e, group="g"),
    "datatree in chunks": lambda p, e: xr.open_datatree(p / "part0.nc", engine=e, chunks={}),
    "datatree, dropped": lambda p, e: xr.open_datatree(p / "part0.nc", engine=e,
                                                       drop_variables=["u"], decode_times=False),
    "sel": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e).sel(
        y=[0, 40], method="nearest", time="2001-02-27"),
    "isel": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e).isel(
        time=-1, x=slice(None, None, -3)),
    "pointwise": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e).isel(
        y=xr.DataArray([1, 2], dims="p"), x=xr.DataArray([3, 4], dims="p")),
    "resample": lambda p, e: xr.open_dataset(p / "part0.nc", engine=e)[["u"]].resample(
        time="1D").mean(),
    "pickled": lambda p, e: pickle.loads(pickle.dumps(xr.open_dataset(p / "part0.nc", engine=e))),
}


@pytest.mark.parametrize("call", READS.values(), ids=READS.keys())
def test_reading_equals_the_peer(call, stored):
    theirs, ours = call(stored, "h5netcdf"), call(stored, "tailrace")
    if isinstance(theirs, xr.DataTree):
        xr.testing.assert_identical(ours, theirs)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for name in theirs:
            xr.testing.assert_identical(ours[name], theirs[name])
    else:
        assert set(ours.coords) == set(theirs.coords)
        xr.testing.assert_identical(ours.compute(), theirs.compute())
        for name, variable in theirs.variables.items():
            assert ours[name].dtype == variable.dtype
            assert ours[name].chunks == theirs[name].chunks
            for key in ("units", "calendar", "scale_factor", "_FillValue", "chunksizes"):
                if variable.encoding.get(key) is not None:
                    assert key in ours[name].encoding, (name, key)


UNREADABLE = {
    "missing file": ("none.nc", {}, FileNotFoundError),
    "missing group": ("part0.nc", {"group": "nowhere"}, (OSError, KeyError)),
    "a variable as group": ("part0.nc", {"group": "t"}, ValueError),
    "unknown keyword": ("part0.nc", {"thraeds": 2}, TypeError),
    "unknown option": ("part0.nc", {"options": "thraeds=2"}, ValueError),
    "options as a mapping": ("part0.nc", {"options": {"threads": 2}}, TypeError),
    "group as a number": ("part0.nc", {"group": 3}, TypeError),
}


@pytest.mark.parametrize("name, keywords, kind", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_reading_is_refused_in_words(name, keywords, kind, stored):
    with pytest.raises(kind) as failure:
        xr.open_dataset(stored / name, engine="tailrace", **keywords)
    refused_in_words(failure.value)


def test_bytes_are_refused_in_words(stored):
    content = (stored / "one0.nc").read_bytes()
    for given in (content, io.BytesIO(content), 3):
        with pytest.raises(TypeError, match="path") as failure:
            xr.open_dataset(given, engine="tailrace")
        refused_in_words(failure.value)


def test_groups_are_closed_one_by_one(stored):
    groups = xr.open_groups(stored / "part0.nc", engine="tailrace")
    closed = groups.pop("/")
    closed.close()
    closed.close()
    assert groups["/g"].u.values.tolist() == list(range(16))
    groups["/g"].close()
    assert groups["/g/h"].v.values.tolist() == list(range(24))
    groups["/g/h"].close()
    with pytest.raises(ValueError, match="closed"):
        closed.t.load()


# --- writing --------------------------------------------------------------------------------------


def dataset(**more):
    values = FIELD.copy()
    values[0, :3] = np.nan
    return xr.Dataset(
        {"t": (("time", "y", "x"), values, {"units": "K"}),
         "count": (("y",), np.arange(16, dtype="i4")),
         "name": (("y",), np.array([f"row {i}" for i in range(16)], object)), **more},
        {"time": TIMES, "y": np.linspace(-90, 90, 16), "x": np.arange(24.0),
         "lon": (("y", "x"), np.arange(16.0 * 24).reshape(16, 24))},
        {"title": "Winds", "levels": np.array([1.5, 2.5])})


def of(**keys):
    return {"encoding": {"t": keys}}


PACKED = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 3.0, "_FillValue": -32768}
#: Keywords for both to_netcdf and write_dataset.
WRITES = {
    "nothing asked": {},
    "chunksizes": of(chunksizes=(4, 16, 24)),
    "chunksizes as a list": of(chunksizes=[4, 8, 24]),
    "_FillValue": of(_FillValue=-999.0),
    "_FillValue=None": of(_FillValue=None),
    "missing_value": of(_FillValue=-9.0, missing_value=-9.0),
    "dtype": of(dtype="f4"),
    "dtype as a type": of(dtype=np.float32),
    "dtype of integers": {"encoding": {"count": {"dtype": "i8"}}},
    "packed": of(**PACKED),
    "packed and compressed": of(**PACKED, zlib=True, complevel=5, shuffle=True),
    "packed in u1": of(dtype="u1", scale_factor=0.1, add_offset=-1.0, _FillValue=255),
    "scaled floats": of(scale_factor=2.0, add_offset=1.0, dtype="f4"),
    "_Unsigned": of(dtype="i1", scale_factor=0.1, add_offset=3.0, _FillValue=-1,
                    _Unsigned="true"),
    "zlib": of(zlib=True),
    "zlib, complevel": of(zlib=True, complevel=9),
    "zlib=False": of(zlib=False),
    "shuffle=False": of(zlib=True, shuffle=False),
    "compression=zlib": of(compression="zlib", complevel=3),
    "compression=None": of(compression=None),
    "contiguous": of(contiguous=True),
    "endian": of(endian="native"),
    "for all variables": {"encoding": {"t": {"zlib": True}, "count": {"zlib": True},
                                       "lon": {"zlib": True, "dtype": "f4"}}},
    "units of time": {"encoding": {"time": {"units": "days since 1900-01-01"}}},
    "calendar and dtype": {"encoding": {"time": {"units": "seconds since 1970-01-01",
                                                 "calendar": "proleptic_gregorian",
                                                 "dtype": "i8"}}},
    "texts as characters": {"encoding": {"name": {"dtype": "S1"}}},
    "unlimited_dims": {"unlimited_dims": ["time"]},
    "unlimited_dims as a str": {"unlimited_dims": "time"},
    "unlimited, chunked": {"unlimited_dims": ["time"], **of(chunksizes=(1, 16, 24))},
    "group": {"group": "a/b"},
    "format": {"format": "NETCDF4"},
    "mode": {"mode": "w"},
}


def same_files(ours, theirs, **opening):
    for how in ({}, {"decode_cf": False}):
        with xr.open_dataset(ours, engine="h5netcdf", **how, **opening) as mine, \
                xr.open_dataset(theirs, engine="h5netcdf", **how, **opening) as expected:
            xr.testing.assert_identical(stripped(mine), stripped(expected))
            if 0 not in expected.sizes.values():  # netCDF4 makes dimensions of length 0 unlimited.
                assert mine.encoding["unlimited_dims"] == expected.encoding["unlimited_dims"]
            for name, variable in expected.variables.items():
                assert mine[name].dtype == variable.dtype
                wanted = variable.encoding.get("chunksizes")
                if wanted is not None and name == "t" and not how:
                    yield mine[name].encoding["chunksizes"], wanted


@pytest.mark.parametrize("keywords", WRITES.values(), ids=WRITES.keys())
def test_writing_equals_the_peer(keywords, tmp_path):
    ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
    tailrace.write_dataset(dataset(), ours, **keywords)
    dataset().to_netcdf(theirs, engine="netcdf4", **keywords)
    group = {"group": keywords["group"]} if "group" in keywords else {}
    chunks = list(same_files(ours, theirs, **group))
    if "chunksizes" in keywords.get("encoding", {}).get("t", {}):
        assert chunks and all(mine == wanted for mine, wanted in chunks)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "blosc_lz4", "hdf5plugin", 32015])
def test_compression_of_h5py_and_netcdf4(codec, tmp_path):
    """The file has the requested filter."""
    hdf5plugin = pytest.importorskip("hdf5plugin")
    keys, expected = {
        "gzip": ({"compression": "gzip", "compression_opts": 7}, "deflate"),
        "zstd": ({"compression": "zstd", "complevel": 3}, "zstd"),
        "blosc_lz4": ({"compression": "blosc_lz4", "complevel": 5}, "blosc"),
        "hdf5plugin": (dict(hdf5plugin.Zstd(clevel=3)), "zstd"),
        32015: ({"compression": 32015, "compression_opts": (3,)}, "zstd"),
    }[codec]
    tailrace.write_dataset(dataset(), tmp_path / "out.nc", encoding={"t": keys})
    with tailrace.open(tmp_path / "out.nc") as file:
        assert expected in file["t"].filters
        assert np.array_equal(file["t"][...], dataset().t.values, equal_nan=True)


def test_what_netcdf4_has_read_is_asked_for_again(stored, tmp_path):
    """encoding=dict(ds.t.encoding) is common, also with an additional bound."""
    with xr.open_dataset(stored / "part0.nc", engine="netcdf4") as source:
        source = source[["t", "y"]].load()
    tailrace.write_dataset(source, tmp_path / "out.nc", encoding={"t": dict(source.t.encoding)})
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as back:
        assert back.t.encoding["chunksizes"] == (2, 16, 24) and back.t.encoding["dtype"] == "i2"
        xr.testing.assert_identical(stripped(back), source)
    tailrace.write_dataset(source, tmp_path / "out.nc",
                           encoding={"t": {**source.t.encoding, "abs": 0.5}})
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as back:
        assert 0 < abs(back.t - source.t).max() <= 0.5
        assert (back.t.isnull() == source.t.isnull()).all()


@pytest.mark.parametrize("dtype, scale, offset", [
    ("i2", 0.01, 3.0), ("i4", 1e-4, 0.0), ("u1", 0.1, -3.0), ("f4", 2.0, 1.0), ("i2", -0.01, 3.0),
    ("i4", 1.0, 0.0)])
@pytest.mark.parametrize("bound", [0.0499, 0.2, 0.9])
@pytest.mark.parametrize("dask", [False, True])
def test_bounds_are_of_unpacked_values(dtype, scale, offset, bound, dask, tmp_path):
    given = dataset()
    fill = {"u1": 255, "f4": np.nan}.get(dtype, -32768)
    keys = {"dtype": dtype, "scale_factor": scale, "add_offset": offset, "_FillValue": fill,
            "abs": bound}
    written = given.chunk({"time": 5}) if dask else given
    target = tmp_path / "out.nc"
    if dtype != "f4" and bound < abs(scale) / 2:
        with pytest.raises(ValueError, match="rounding to") as failure:
            tailrace.write_dataset(written, target, encoding={"t": keys})
        refused_in_words(failure.value)
        return
    tailrace.write_dataset(written, target, encoding={"t": keys})
    with xr.open_dataset(target, engine="h5netcdf", decode_cf=False) as raw:
        stored = raw.t.values
        assert stored.dtype == dtype
        missing = np.isnan(stored) if dtype == "f4" else stored == fill
        assert np.array_equal(missing, np.isnan(given.t.values))
        error = np.abs(stored.astype("f8") * scale + offset - given.t.values)[~missing]
        assert 0 < error.max() <= bound * (1 + 1e-6)


def test_what_a_packed_variable_cannot_hold(tmp_path):
    """A bound makes it an error, and the older file stays."""
    target = tmp_path / "out.nc"
    dataset().to_netcdf(target, engine="netcdf4")
    before = target.read_bytes()
    given = dataset()
    given.t[3, 4, 5] = 1e6
    with pytest.raises(ValueError, match="'t': .*1000000.0.* does not fit int16") as failure:
        tailrace.write_dataset(given, target, encoding={"t": {**PACKED, "abs": 0.1}})
    refused_in_words(failure.value)
    assert target.read_bytes() == before


@pytest.mark.parametrize("keys, values", [
    ({**PACKED, "abs": 0.05}, [1, np.inf, 1000.0]),
    ({**PACKED, "abs": 0.05}, [1, 1000.0, 1e5]),
    ({**PACKED, "abs": 0.05}, [1, np.nan, -np.inf]),
    ({**PACKED, "_FillValue": None, "abs": 0.05}, [1, np.nan]),
    ({**PACKED, "_FillValue": -999, "abs": 0.05}, [1, 3 - 9.99]),
    ({**PACKED, "abs": 0.05}, np.array([1, 400], "i4")),
    ({"dtype": "i2", "abs": 3.0}, np.arange(0, 200000, 50, "i4")),
    ({"dtype": "u1", "abs": 3.0}, np.array([5, -1], "i2")),
    ({"dtype": "f4", "abs": 0.05}, [1, 1e300])])
@pytest.mark.parametrize("dask", [False, True])
def test_no_value_beside_a_far_one_escapes_the_bound(keys, values, dask, tmp_path):
    """Values that do not fit are refused: infinite, missing after encoding, or integers."""
    given = xr.Dataset({"t": ("x", np.asarray(values))})
    given = given.chunk({"x": -1}) if dask else given
    with pytest.raises(ValueError, match="'t': .* does not fit .* read as") as failure:
        tailrace.write_dataset(given, tmp_path / "out.nc", encoding={"t": keys})
    refused_in_words(failure.value)
    assert not (tmp_path / "out.nc").exists()


@pytest.mark.parametrize("keys", [PACKED, {"dtype": "i2", "_FillValue": -32768}])
def test_a_bound_of_the_call_finds_what_does_not_fit(keys, tmp_path):
    values = np.array([1.3, np.nan, -2.7, 0.0])
    given, target = xr.Dataset({"t": ("x", values)}), tmp_path / "out.nc"
    tailrace.write_dataset(given, target, encoding={"t": keys}, options="bound=abs=3")
    with xr.open_dataset(target, engine="h5netcdf") as back:
        step = keys.get("scale_factor", 1.0)
        assert np.allclose(back.t, values, rtol=0, atol=step / 2, equal_nan=True)
    for beyond in (np.array([1.0, 1e5]), np.array([1, 100000], "i4")):
        given = xr.Dataset({"t": ("x", beyond)})
        with pytest.raises(ValueError, match="'t': 100000.0 does not fit int16"):
            tailrace.write_dataset(given, target, encoding={"t": keys}, options="bound=abs=3")


@pytest.mark.parametrize("keys, values", [
    ({"dtype": "i2", "abs": 3.0}, np.arange(-30000, 30000, 50, "i4")),
    ({"dtype": "i2", "abs": 3.0, "_FillValue": -999}, np.full(9, -999, "i8")),
    ({**PACKED, "abs": 0.05}, np.arange(-300, 300, dtype="i2")),
    ({"dtype": "f4", "abs": 0.05}, np.array([1, np.inf, np.nan, -np.inf]))])
def test_what_fits_is_written_under_a_bound(keys, values, tmp_path):
    tailrace.write_dataset(xr.Dataset({"t": ("x", values)}), tmp_path / "out.nc",
                           encoding={"t": keys})
    with xr.open_dataset(tmp_path / "out.nc", engine="tailrace", decode_cf=False) as back:
        scale = "scale_factor" in keys
        stored = back.t.values
        read = stored * keys["scale_factor"] + keys["add_offset"] if scale else stored
        assert np.isclose(read, values, rtol=0, atol=keys["abs"], equal_nan=True).all()


@pytest.mark.parametrize("how", [{"encoding": {"t": {"abs": 0.05}}}, {"encoding": {"t": {}}}])
@pytest.mark.parametrize("own", [False, True])
def test_missing_value_alone_marks_missing_values_under_a_bound(how, own, tmp_path):
    """A bound keeps the value of missing_value or _FillValue exactly."""
    values = FIELD.copy()
    values[::3] = np.nan
    given = xr.Dataset({"t": (("time", "y", "x"), values)})
    how = {"encoding": {"t": {**how["encoding"]["t"], "missing_value": -999.0}},
           "options": "" if "abs" in how["encoding"]["t"] else "bound=abs=0.05"}
    if own:
        given["t"] = given.t.fillna(-999.0).assign_attrs(missing_value=-999.0)
        del how["encoding"]["t"]["missing_value"]
    tailrace.write_dataset(given, tmp_path / "out.nc", **how)
    with xr.open_dataset(tmp_path / "out.nc", engine="tailrace") as back:
        assert np.array_equal(np.isnan(back.t), np.isnan(values))
        assert 0 < np.nanmax(np.abs(back.t.values - values)) <= 0.05
    tailrace.write_dataset(given, tmp_path / "grows.nc", unlimited_dims="time", **how)
    tailrace.write_dataset(given, tmp_path / "grows.nc", append_dim="time")
    with xr.open_dataset(tmp_path / "grows.nc", engine="tailrace") as back:
        assert np.array_equal(np.isnan(back.t), np.isnan(np.concatenate([values, values])))
    given.t.attrs["missing_value"] = np.array([-999.0, -888.0])
    how["encoding"]["t"].pop("missing_value", None)
    with pytest.raises(ValueError, match="'t': missing_value .*only one value") as failure:
        tailrace.write_dataset(given, tmp_path / "out.nc", **how)
    refused_in_words(failure.value)


def test_a_bound_beside_netcdf4s_words(tmp_path):
    for keys, codec, bound in (({"zlib": True, "complevel": 4, "abs": 0.01}, "portable", 0.01),
                               ({"least_significant_digit": 2}, None, 0.005),
                               ({"abs": 0.01}, None, 0.01),
                               ({"bound": "abs=0.01", "codec": "trz"}, "trz", 0.01)):
        tailrace.write_dataset(dataset(), tmp_path / "out.nc", encoding={"t": keys})
        with xr.open_dataset(tmp_path / "out.nc", engine="tailrace") as back:
            assert 0 < np.nanmax(abs(back.t.values - dataset().t.values)) <= bound
            assert codec in (None, back.t.encoding["codec"])
            assert (back.lon == dataset().lon).all()


REFUSED = {
    "a key that nobody knows": (dict(encoding={"t": {"chunksize": (4, 16, 24)}}), ValueError,
                                "'t'.*\"chunksize\"; did you mean \"chunksizes\""),
    "a key of zarr": (dict(encoding={"t": {"compressor": "x"}}), ValueError, "'t'.*compress"),
    "a name with an error": (dict(encoding={"tt": {"zlib": True}}), ValueError,
                             "'tt'.*did you mean \"t\""),
    "encoding as a list": (dict(encoding=["t"]), TypeError, "encoding is"),
    "keys as a text": (dict(encoding={"t": "zlib"}), ValueError, "encoding of 't'"),
    "a level too great": (of(zlib=True, complevel=99), ValueError, "'t'.*level.*99"),
    "a level as a text": (of(zlib=True, complevel="high"), TypeError, "'t'.*level"),
    "chunks of another shape": (of(chunksizes=(4, 16)), ValueError, "'t'.*chunksizes"),
    "chunks too large": (of(chunksizes=(100, 16, 24)), ValueError, "'t'.*fit the shape"),
    "chunks of 0": (of(chunksizes=(0, 16, 24)), ValueError, "'t'.*>= 1"),
    "chunks as a number": (of(chunksizes=4), TypeError, "'t'.*sequence"),
    "chunks of halves": (of(chunksizes=(1.5, 16, 24)), TypeError, "'t'.*whole"),
    "both chunks": (of(chunksizes=(4, 16, 24), chunks=(4, 16, 24)), ValueError, "not both"),
    "dtype": (of(dtype="float31"), TypeError, "'t'.*float31"),
    "complex": ({"encoding": {"t": {"dtype": "c16"}}}, (NotImplementedError, ValueError), "'t'"),
    "scale_factor as a text": (of(dtype="i2", scale_factor="0.1"), TypeError, "'t'.*scale_factor"),
    "scale_factor 0": (of(dtype="i2", scale_factor=0), ValueError, "'t'.*scale_factor"),
    "compression": (of(compression="zlip"), ValueError, "'t'.*did you mean \"zlib\""),
    "two ways to compress": (of(zlib=True, codec="trz"), ValueError, "'t'.*give one"),
    "two bounds": (of(abs=1, rel=1), ValueError, "'t'.*one bound"),
    "a bound below 0": (of(abs=-1.0), ValueError, "'t'.*-1"),
    "a bound as a text": (of(abs="little"), TypeError, "'t'.*little"),
    "a bound as a truth": (of(abs=True), TypeError, "'t'.*True"),
    "zlib as a text": (of(zlib="yes"), TypeError, "'t'.*zlib is 'yes'"),
    "scale_factor NaN": (of(dtype="i2", scale_factor=np.nan), ValueError, "'t'.*finite"),
    "add_offset infinite": (of(dtype="i2", add_offset=np.inf), ValueError, "'t'.*finite"),
    "a fill value too great": (of(dtype="i1", _FillValue=999), ValueError, "'t'.*999.*fit int8"),
    "a fill value of halves": (of(dtype="i1", _FillValue=0.5), ValueError, "'t'.*0.5.*fit int8"),
    "a fill value of another name": (of(dtype="i1", fill_value=999), ValueError, "'t'.*fit int8"),
    "a missing_value too great": (of(dtype="u1", missing_value=-1), ValueError, "'t'.*fit uint8"),
    "a fill value as a text": (of(dtype="i1", _FillValue="x"), TypeError, "'t'.*'x'.*number"),
    "append_dim as a list": (dict(append_dim=["y"]), TypeError, "append_dim is"),
    "rel of packed values": (of(**PACKED, rel=1e-3), ValueError, "'t'.*give abs="),
    "codec": (of(codec="trzz"), ValueError, "trzz"),
    "codec as a number": (of(codec=3), TypeError, "'t'.*codec"),
    "a filter of ours for h5py": (of(**tailrace.Trz(abs=1e-3)), ValueError, "'t'.*codec=\"trz\""),
    "szip": (of(compression="szip"), NotImplementedError, "'t'.*szip"),
    "fletcher32": (of(fletcher32=True), NotImplementedError, "'t'.*checksum=True"),
    "endian": (of(endian="big"), NotImplementedError, "'t'.*big"),
    "significant_digits": (of(significant_digits=30), ValueError, "'t'.*1 to"),
    "units of temperature": (of(units="days since 2000-01-01"), ValueError, "'t'.*units"),
    "unlimited_dims": (dict(unlimited_dims=["tyme"]), ValueError, "did you mean \"time\""),
    "mode": (dict(mode="rw"), ValueError, "mode is 'rw'"),
    "mode as a number": (dict(mode=1), ValueError, "mode is 1"),
    "group as a number": (dict(group=1), TypeError, "group is 1"),
    "format": (dict(format="NETCDF3_CLASSIC"), ValueError, "NETCDF3"),
    "append_dim": (dict(append_dim="tyme"), ValueError, "did you mean \"time\""),
    "append_dim and mode": (dict(append_dim="time", mode="w"), ValueError, "mode 'a'"),
    "append_dim and region": (dict(append_dim="time", region="auto"), ValueError, "not both"),
    "region as a list": (dict(region=[3], mode="a"), TypeError, "region"),
    "options": (dict(options="thraeds=3"), ValueError, "thraeds"),
    "options as a dict": (dict(options={"threads": 3}), TypeError, "options"),
}


@pytest.mark.parametrize("keywords, kind, words", REFUSED.values(), ids=REFUSED.keys())
def test_writing_is_refused_in_words(keywords, kind, words, tmp_path):
    target = tmp_path / "out.nc"
    dataset().to_netcdf(target, engine="netcdf4")
    before = target.read_bytes()
    with pytest.raises(kind, match=words) as failure:
        tailrace.write_dataset(dataset(), target, **keywords)
    refused_in_words(failure.value)
    assert target.read_bytes() == before


def test_what_is_no_dataset_is_refused_in_words(tmp_path):
    target = tmp_path / "out.nc"
    multi = dataset().stack(p=("y", "x"))
    for given, kind in ((np.arange(3), TypeError),
                        (dataset().assign(c=("y", FIELD[0, :, 0] * 1j)), NotImplementedError),
                        (multi, NotImplementedError), (dataset().assign({"a/b": 1}), ValueError),
                        (dataset().assign({3: ("y", FIELD[0, :, 0])}), TypeError),
                        (dataset().assign_attrs(a={"b": 1}), ValueError),
                        (dataset().assign_attrs(a=None), ValueError),
                        (dataset().assign_attrs({4: 1}), TypeError)):
        with pytest.raises(kind):
            tailrace.write_dataset(given, target)
        assert not target.exists()
    with pytest.raises(TypeError, match="path"):
        tailrace.write_dataset(dataset(), 3)
    with pytest.raises(FileNotFoundError):
        tailrace.write_dataset(dataset(), tmp_path / "none" / "out.nc")
    with pytest.raises(FileNotFoundError):
        tailrace.write_dataset(dataset(), target, mode="r+")


VALUES = {
    "texts": {"n": (("y",), np.array(["ä", ""] * 8))},
    "bytes": {"n": (("y",), np.array([b"one", b"three"] * 8))},
    "missing texts": {"n": (("y",), np.array(["a", None] * 8, object))},
    "bool": {"n": (("y",), np.arange(16) % 2 == 0)},
    "timedelta": {"n": (("y",), np.arange(16).astype("m8[s]").astype("m8[ns]"))},
    "a missing time": {"n": (("time",), np.where(np.arange(12) == 3, np.datetime64("NaT"), TIMES))},
    "a scalar": {"n": 3.5}, "a text alone": {"n": "word"}, "a time alone": {"n": TIMES[3]},
    "nothing": {"n": (("empty",), np.zeros(0, "f4"))},
    "big endian": {"n": (("y",), np.arange(16, dtype=">f4"))},
    "bytes with a fill value": {"n": xr.Variable(
        ("y",), np.array([b"ab", b"c", np.nan, b"de"] * 4, object), {}, {"_FillValue": b"X"})},
    "unsigned": {"n": (("y",), np.arange(16, dtype="u8"))},
    "attributes": {"n": (("y",), np.arange(16), {
        "flag_values": np.array([1, 2], "i1"), "note": "ä", "valid_range": [0.0, 1.5], "one": 3})},
    "bounds of time": {"time_b": (("time", "b"), np.stack([TIMES, TIMES], 1))},
}


@pytest.mark.parametrize("more", VALUES.values(), ids=VALUES.keys())
def test_every_kind_of_value_equals_the_peer(more, tmp_path):
    given = dataset(**more)
    if "time_b" in more:
        given.time.attrs["bounds"] = "time_b"
    tailrace.write_dataset(given, tmp_path / "ours.nc")
    given.to_netcdf(tmp_path / "theirs.nc", engine="netcdf4")
    assert list(same_files(tmp_path / "ours.nc", tmp_path / "theirs.nc")) == []


def test_coordinates_named_by_encoding(tmp_path):
    given = dataset()
    given.t.encoding["coordinates"] = "lon x"
    tailrace.write_dataset(given, tmp_path / "ours.nc")
    given.to_netcdf(tmp_path / "theirs.nc", engine="netcdf4")
    assert list(same_files(tmp_path / "ours.nc", tmp_path / "theirs.nc")) == []


@pytest.mark.parametrize("array", [dataset().t, dataset().t.rename(None), dataset().x,
                                   dataset().lon.rename("y")],
                         ids=["named", "unnamed", "a coordinate", "named as a dimension"])
def test_a_dataarray(array, tmp_path):
    tailrace.write_dataset(array, tmp_path / "ours.nc")
    array.to_netcdf(tmp_path / "theirs.nc", engine="netcdf4")
    assert list(same_files(tmp_path / "ours.nc", tmp_path / "theirs.nc")) == []
    with xr.open_dataarray(tmp_path / "ours.nc", engine="tailrace") as back:
        assert back.name == array.name and np.array_equal(back, array, equal_nan=True)


def test_what_variables_ask_for_by_their_own_encoding(tmp_path):
    """ds.t.encoding[...] works like in the other engine; options of the call have priority."""
    given = dataset(raw=(("y",), np.array([b"one", b"three"] * 8)))
    given.t.encoding.update(chunksizes=(4, 8, 24), zlib=True, complevel=7, codec="trzz", abs=3)
    given.raw.encoding["dtype"] = str
    given.encoding["unlimited_dims"] = {"time", "gone"}
    with pytest.warns(UserWarning, match="gone"):
        tailrace.write_dataset(given, tmp_path / "out.nc")
    with tailrace.open(tmp_path / "out.nc") as file, h5py.File(tmp_path / "out.nc") as raw:
        assert file["t"].chunks == (4, 8, 24) and raw["t"].compression_opts == 7
        assert np.array_equal(file["t"][...], given.t.values, equal_nan=True)
        assert file.dimensions["time"].unlimited and list(file["raw"][:2]) == ["one", "three"]
    del given.encoding["unlimited_dims"]
    tailrace.write_dataset(given.isel(time=slice(3)), tmp_path / "out.nc",
                           options="codec=trz,bound=abs=0.01")
    with tailrace.open(tmp_path / "out.nc") as file:
        assert file["t"].codec == "trz" and file["t"].chunks != (4, 8, 24)


def test_what_tailrace_notes_is_in_the_encoding(tmp_path):
    """A second file does not inherit the bound for encoding, but records the earlier loss."""
    tailrace.write_dataset(dataset(), tmp_path / "out.nc",
                           encoding={"t": {"abs": 0.01, "codec": "trz"}})
    with xr.open_dataset(tmp_path / "out.nc", engine="tailrace") as back:
        assert back.t.attrs == {"units": "K"} and set(back.attrs) == {"title", "levels"}
        assert back.t.encoding["tailrace_absolute_bound"] == 0.01
        assert back.t.encoding["codec"] == "trz" and "tailrace_readers_need" in back.encoding
        back.load()
    back.to_netcdf(tmp_path / "theirs.nc", engine="netcdf4")
    with netCDF4.Dataset(tmp_path / "theirs.nc") as file:
        assert not [name for name in file["t"].ncattrs() if name.startswith("tailrace")]
    tailrace.write_dataset(back, tmp_path / "again.nc", encoding={"t": dict(back.t.encoding)})
    with tailrace.open(tmp_path / "again.nc") as file:
        assert file["t"].codec == "trz" and file["t"].attrs["tailrace_losses"] == "abs=0.01"
        assert np.array_equal(file["t"][...], back.t.values, equal_nan=True)


# --- trees ----------------------------------------------------------------------------------------


def tree():
    return xr.DataTree.from_dict({
        "/": xr.Dataset({"y": np.linspace(0, 1, 16)}, attrs={"title": "Tree"}),
        "/model": xr.Dataset({"t": (("y", "x"), FIELD[0])}, attrs={"run": 3}),
        "/model/fine": xr.Dataset({"u": (("y", "z"), FIELD[1, :, :8]), "z": np.arange(8.0)}),
        "/observed": xr.Dataset({"t": (("y",), FIELD[2, :, 0])}), "/empty": xr.Dataset()})


@pytest.mark.parametrize("keywords", [
    {}, {"write_inherited_coords": True}, {"encoding": {"/model": {"t": {"zlib": True}}}},
    {"unlimited_dims": {"/model/fine": ["z"]}}])
def test_a_tree_equals_the_peer(keywords, tmp_path):
    tailrace.write_datatree(tree(), tmp_path / "ours.nc", **keywords)
    tree().to_netcdf(tmp_path / "theirs.nc", engine="netcdf4", **keywords)
    for engine in ("h5netcdf", "tailrace"):
        with xr.open_datatree(tmp_path / "ours.nc", engine=engine) as ours, \
                xr.open_datatree(tmp_path / "theirs.nc", engine="h5netcdf") as theirs:
            ours = xr.DataTree.from_dict({n.path: stripped(n.to_dataset(inherit=False))
                                          for n in ours.subtree})
            xr.testing.assert_identical(ours, theirs.load())


def test_trees_with_bounds_and_errors(tmp_path):
    target = tmp_path / "out.nc"
    tailrace.write_datatree(tree(), target, encoding={"/model": {"t": {"abs": 0.01}}})
    before = target.read_bytes()
    with xr.open_datatree(target, engine="tailrace") as back:
        assert 0 < abs(back["model/t"] - tree()["model/t"]).max() <= 0.01
        assert (back["observed/t"] == tree()["observed/t"]).all()
    for keywords, words in (
            ({"encoding": {"/modle": {}}}, "did you mean \"/model\""),
            ({"encoding": {"/model": {"u": {}}}}, "'u'"),
            ({"encoding": {"/model": {"t": {"zlip": True}}}}, "did you mean \"zlib"),
            ({"mode": "q"}, "mode is 'q'")):
        with pytest.raises(ValueError, match=words) as failure:
            tailrace.write_datatree(tree(), target, **keywords)
        refused_in_words(failure.value)
    with pytest.raises(TypeError, match="DataTree"):
        tailrace.write_datatree(dataset(), target)
    assert target.read_bytes() == before

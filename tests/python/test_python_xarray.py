"""xarray and dask over tailrace: the same Dataset as netCDF4's engine gives, lazily."""

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import smooth

tailrace = python_package.load()
xr = pytest.importorskip("xarray")

from tailrace._xarray import TailraceBackend  # noqa: E402

FIELD = smooth((12, 16, 24))


@pytest.fixture
def path(tmp_path):
    """Write packed and masked variables, times and a group with netCDF4."""
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "Climate"
        for name, length in (("time", None), ("y", 16), ("x", 24)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = np.arange(12)
        time.units = "days since 2001-02-27"
        file.createVariable("y", "f4", ("y",))[:] = np.linspace(-90, 90, 16)
        t = file.createVariable("t", "i2", ("time", "y", "x"), zlib=True, fill_value=-32768,
                                chunksizes=(4, 16, 24))
        t.scale_factor, t.add_offset, t.units = 0.01, 200.0, "K"
        t[:] = np.ma.masked_greater(FIELD - FIELD.min(), np.ptp(FIELD) * 0.9)
        file.createVariable("name", str, ("y",))[:] = np.array([f"row {i}" for i in range(16)],
                                                               object)
        file.createGroup("g").createVariable("u", "f4", ("y",))[:] = np.arange(16)
    return path


def test_the_same_as_netcdf4(path):
    with xr.open_dataset(path, engine="tailrace") as ours, \
            xr.open_dataset(path, engine="netcdf4") as theirs:
        assert ours.encoding["unlimited_dims"] == {"time"}
        xr.testing.assert_identical(ours.load(), theirs.load())
    with xr.open_dataset(path, engine="tailrace", group="g") as group:
        assert (group.u == np.arange(16)).all()
    with xr.open_dataset(path, engine="tailrace", drop_variables=["t"],
                         decode_times=False) as raw:
        assert "t" not in raw and raw.time.dtype == "f8"


def test_reading_is_lazy_and_reads_what_is_asked(path):
    with xr.open_dataset(path, engine="tailrace") as ours, \
            xr.open_dataset(path, engine="netcdf4") as theirs:
        for how in (dict(time=3), dict(time=slice(2, 9, 3), x=[3, 1, 20]),
                    dict(x=[0, 5], y=[15, 0]), dict(y=xr.DataArray([1, 2], dims="p"),
                                                    x=xr.DataArray([3, 4], dims="p"))):
            xr.testing.assert_identical(ours.t.isel(how).load(), theirs.t.isel(how).load())
        assert "..." in repr(ours.t)  # Access to parts does not load it.


def test_dask_takes_the_files_chunks(path):
    pytest.importorskip("dask")
    with xr.open_dataset(path, engine="tailrace", chunks={}) as ours:
        assert ours.t.chunks == ((4, 4, 4), (16,), (24,))
        with xr.open_dataset(path, engine="netcdf4") as theirs:
            mean = ours.t.mean("time").compute(scheduler="threads", num_workers=4)
            xr.testing.assert_allclose(mean, theirs.t.mean("time"))


@pytest.mark.full
def test_dask_workers_in_other_processes(path):
    """The graph is pickled, so workers open the file again."""
    pytest.importorskip("dask")
    python_package.run(f"""
    import numpy as np, xarray as xr
    if __name__ == "__main__":
        with xr.open_dataset({str(path)!r}, engine="tailrace", chunks={{}}) as file:
            total = file.t.sum().compute(scheduler="processes", num_workers=2)
        with xr.open_dataset({str(path)!r}, engine="tailrace") as file:
            assert np.isclose(total, file.t.sum())
    """)


def test_a_dataset_is_stored_with_bounds(path, tmp_path):
    target = tmp_path / "out.nc"
    dataset = xr.Dataset(
        {"u": (("time", "y", "x"), FIELD, {"units": "m/s"}),
         "flag": (("y",), np.arange(16) % 2 == 0),
         "name": (("y",), np.array(["a", "b"] * 8, object))},
        {"time": np.datetime64("2001-01-01", "ns") + np.arange(12) * np.timedelta64(1, "D"),
         "x": np.linspace(0, 360, 24)}, {"title": "Winds"})
    tailrace.write_dataset(dataset, target, encoding={"u": {"abs": 1e-2, "codec": "trz"}},
                           unlimited_dims=["time"], options="codec=trz,bound=abs=5")
    for engine in ("tailrace", "h5netcdf"):
        if engine == "h5netcdf":
            pytest.importorskip("h5netcdf")
        with xr.open_dataset(target, engine=engine) as back:
            assert 0 < abs(back.u - dataset.u).max() <= 1e-2
            assert (back.time == dataset.time).all() and back.time.dtype == dataset.time.dtype
            assert (back.x == dataset.x).all() and back.title == "Winds"
            assert (back.flag == dataset.flag).all() and (back.name == dataset.name).all()
    with xr.open_dataset(target, engine="tailrace") as back:  # attributes about the first file stay
        tailrace.write_dataset(back.load(), tmp_path / "again.nc")
    with netCDF4.Dataset(tmp_path / "again.nc") as file:
        # Values are stored exactly, with the loss of the first file recorded.
        assert file["u"].tailrace_codec == "deflate" and file["u"].tailrace_losses == "abs=0.01"
        assert file["u"].tailrace_absolute_bound == 0.01
    with netCDF4.Dataset(target) as file:
        assert file.dimensions["time"].isunlimited() and file["u"].units == "m/s"


def test_what_nobody_knows_of_is_written_like_others(tmp_path):
    """The attribute for an unknown loss (docs/format.md) does not change how values are written."""
    source, again = tmp_path / "source.nc", tmp_path / "again.nc"
    with netCDF4.Dataset(source, "w") as file:
        for name, length in zip("zyx", FIELD.shape):
            file.createDimension(name, length)
        u = file.createVariable("u", "f4", ("z", "y", "x"), zlib=True, shuffle=True)
        u[:] = FIELD
        u.tailrace_codec = u.tailrace_bound_mode = "unknown"
    with tailrace.open(source) as file:
        assert file["u"].codec == "shuffle+deflate" and file["u"].bound == "unknown"
    with xr.open_dataset(source, engine="tailrace") as back:
        assert "codec" not in back.u.encoding and back.u.encoding["zlib"]
        tailrace.write_dataset(back.load(), again)
    with netCDF4.Dataset(again) as file:
        assert np.array_equal(file["u"][:], FIELD)
    with tailrace.open(again) as file:
        assert file["u"].codec == "shuffle+deflate" and file["u"].bound == ""


def test_dask_arrays_are_stored_piece_by_piece(tmp_path):
    dask_array = pytest.importorskip("dask.array")
    lazy = dask_array.from_array(FIELD, chunks=(4, 16, 24)) * 2
    tailrace.write_dataset(xr.Dataset({"u": (("t", "y", "x"), lazy)}), tmp_path / "out.nc")
    with tailrace.open(tmp_path / "out.nc") as file:
        assert np.array_equal(file["u"][...], FIELD * 2)
        again = dask_array.from_array(file["u"], chunks=(4, 8, 24))
        assert np.array_equal(again.max(axis=0).compute(scheduler="threads"),
                              (FIELD * 2).max(axis=0))


def test_what_is_refused(path, tmp_path):
    with pytest.raises(ValueError, match="encoding names"):
        tailrace.write_dataset(xr.Dataset(), tmp_path / "out.nc", encoding={"u": {}})
    with pytest.raises(ValueError, match="is not a group"):
        xr.open_dataset(path, engine="tailrace", group="t")
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(tmp_path / "none.nc", engine="tailrace")
    assert not TailraceBackend().guess_can_open(str(path))


@pytest.mark.full
def test_from_a_distributed_cluster(tmp_path):
    """Workers compute, and the client writes one file; after a failed task the old file stays."""
    distributed = pytest.importorskip("distributed")
    dask_array = pytest.importorskip("dask.array")
    path = tmp_path / "out.nc"
    values = np.linspace(0, 9, 24 * 40 * 50, dtype="f4").reshape(24, 40, 50)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                                  local_directory=tmp_path) as cluster, \
            distributed.Client(cluster):
        blocks = dask_array.from_array(values, chunks=(4, 40, 50))
        blocks = blocks.map_blocks(lambda block: 2 * block)
        tailrace.write_dataset(xr.Dataset({"t": (("time", "y", "x"), blocks)}), path,
                               encoding={"t": {"codec": "trz", "abs": 1e-3}})
        with xr.open_dataset(path, engine="tailrace", chunks={}) as back:
            assert float(abs(back.t - 2 * values).max().compute()) <= 1e-3
        before = path.read_bytes()

        def fail(block):
            raise ZeroDivisionError("of a task")
        bad = blocks.map_blocks(fail, dtype="f4", meta=np.empty((0, 0, 0), "f4"))
        with pytest.raises(ZeroDivisionError, match="of a task"):
            tailrace.write_dataset(xr.Dataset({"t": (("time", "y", "x"), bad)}), path)
        assert path.read_bytes() == before
        assert [item.name for item in tmp_path.glob("out.nc*")] == ["out.nc"]


@pytest.mark.parametrize("rows, columns", [(2, 5), (2, 3), (0, 0)])
@pytest.mark.parametrize("base", ["i1", "u2", "i8"])
@pytest.mark.parametrize("fill", [None, 1])
def test_enums_that_are_shorter_than_their_dimensions_are_padded(fill, base, rows, columns,
                                                                 tmp_path):
    """netCDF-C itself returns uninitialized memory here, with two unlimited dimensions."""
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t")
        file.createDimension("x", 5 if columns == 5 else None)
        enum = file.createEnumType(base, "cloud", {"clear": 0, "some": 1, "all": 2})
        for name, kind in [("c", enum), ("n", base)]:
            short = file.createVariable(name, kind, ("t", "x"), fill_value=fill)
            if rows:
                short[:rows, :columns] = np.full((rows, columns), 2, base)
        file.createVariable("u", "f4", ("t", "x"))[:] = np.ones((4, 5))
    padding = netCDF4.default_fillvals[base] if fill is None else fill
    expected = np.full((4, 5), padding, base)
    expected[:rows, :columns] = 2
    with xr.open_dataset(path, engine="tailrace", mask_and_scale=False) as found:
        np.testing.assert_array_equal(found.c, expected)
        np.testing.assert_array_equal(found.n, expected)
        np.testing.assert_array_equal(found.c[1:, ::2], expected[1:, ::2])
    with tailrace.open(path) as file:
        np.testing.assert_array_equal(file["c"].read_all(), expected)
    if fill is not None:
        with xr.open_dataset(path, engine="tailrace") as found:
            np.testing.assert_array_equal(np.isnan(found.c), expected == fill)


def test_compounds_of_another_byte_order(tmp_path):
    path = tmp_path / "file.h5"
    values = np.array([(1, 2.5), (-3, 4)], [("a", ">i4"), ("b", "<f4")])
    with h5py.File(path, "w") as file:
        file["pair"] = values
    with xr.open_dataset(path, engine="tailrace") as found:
        assert found.pair.dtype.isnative and found.pair[1].values["a"] == -3
        np.testing.assert_array_equal(found.pair.values.astype(values.dtype), values)

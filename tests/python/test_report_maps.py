"""Reports of xarray's objects, and maps on latitude and longitude."""

import sys

import cftime
import netCDF4
import numpy as np
import pytest
import xarray as xr

import python_package
from cli_tools import smooth

tailrace = python_package.load()
FIELD = smooth((4, 24, 48)) + 280
LATITUDE, LONGITUDE = np.linspace(-80, 80, 24), np.arange(0, 360, 7.5)


def on_the_earth(**more):
    return xr.Dataset(
        {"t": (("time", "lat", "lon"), FIELD, {"units": "K"}), **more},
        {"lat": ("lat", LATITUDE, {"units": "degrees_north"}),
         "lon": ("lon", LONGITUDE, {"units": "degrees_east"}),
         "time": np.arange("2000-01", "2000-05", dtype="M8[M]").astype("M8[ns]")})


def reported(given, folder, **how):
    """Write `given` within a bound, and report on the file."""
    given.tailrace.to_netcdf(folder / "a.nc", codec="trz", **(how or {"abs": 0.01}))
    return given.tailrace.report(folder / "a.nc", folder / "r.html").check()


def test_a_map_lies_on_latitude_and_longitude(tmp_path):
    drawn = reported(on_the_earth(), tmp_path)["t"].drawn
    assert np.array_equal(drawn.places.latitude, LATITUDE) and not drawn.places.transposed
    assert np.array_equal(drawn.places.longitude, LONGITUDE)
    assert drawn.map_dims == ("lat", "lon")
    assert drawn.slice_text.startswith("at time = 60 days since")
    assert np.array_equal(drawn.value_maps[0].astype("f4"), FIELD[2])
    with tailrace.open(tmp_path / "a.nc") as file:
        decoded = file["t"][2].astype("f8")
    assert np.array_equal(drawn.value_maps[1], decoded)
    assert np.array_equal(drawn.error_map, np.abs(decoded - FIELD[2]))


def test_the_dimensions_of_a_map_may_have_any_order(tmp_path):
    turned = on_the_earth().transpose("lon", "time", "lat")
    drawn = reported(turned, tmp_path)["t"].drawn
    assert drawn.map_dims == ("lon", "lat") and drawn.places.transposed
    assert drawn.value_maps[0].shape == (48, 24) == drawn.error_map.shape
    assert np.array_equal(drawn.value_maps[0].astype("f4"), FIELD[2].T)
    assert np.array_equal(drawn.places.latitude, LATITUDE)


@pytest.mark.parametrize("change", [
    lambda ds: ds.drop_vars("lat"), lambda ds: ds.assign_coords(lat=np.arange(24.0)),
    lambda ds: ds.assign_coords(lon=("lon", LONGITUDE % 100, {"units": "degrees_east"})),
    lambda ds: ds.isel(lat=[3])])
def test_other_data_have_plain_maps(change, tmp_path):
    drawn = reported(change(on_the_earth()), tmp_path)["t"].drawn
    assert drawn.places is None and len(drawn.map_dims) == 2


def curvilinear(rows=60, columns=90):
    """Return a field on a turned grid across the date line."""
    y, x = np.mgrid[0:rows, 0:columns]
    latitude, longitude = 30 + 0.5 * y + 0.1 * x, 170 + 0.5 * x - 0.1 * y
    values = np.cos(np.deg2rad(latitude * 3)) + 0.01 * (longitude - 170)
    return xr.Dataset({"t": (("y", "x"), values.astype("f4"), {"units": "K"})}, {
        "nav_lat": (("y", "x"), latitude, {"standard_name": "latitude"}),
        "nav_lon": (("y", "x"), (longitude + 180) % 360 - 180, {"units": "degrees_east"})})


def test_a_curvilinear_grid(tmp_path):
    geography = sys.modules["tailrace._geography"]
    given = curvilinear()
    drawn = reported(given, tmp_path, abs=1e-3)["t"].drawn
    assert drawn.places.is_curvilinear and drawn.places.latitude.shape == (60, 90)
    latitude, longitude, cells = geography.gridded(drawn.places, drawn.value_maps[0])
    assert latitude[0] == given.nav_lat.min() and np.ptp(longitude) < 60
    middles = np.meshgrid((latitude[1:] + latitude[:-1]) / 2, (longitude[1:] + longitude[:-1]) / 2,
                          indexing="ij")
    expected = np.cos(np.deg2rad(middles[0] * 3)) + 0.01 * (middles[1] - 170)
    known = np.isfinite(cells)
    assert known.mean() > 0.5 and np.abs(cells - expected)[known].max() < 0.1


@pytest.mark.sample(4)
@pytest.mark.parametrize("given", [on_the_earth(), curvilinear(), xr.Dataset({
    "t": ("x", FIELD.ravel())}), on_the_earth().drop_vars(["lat", "lon"])])
def test_figures_have_no_legend_on_the_data(given, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    figures = pytest.importorskip("tailrace._figures")
    made = reported(given, tmp_path, abs=0.01, options="roles=off")
    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    figures._draw_spectra(panel, made["t"].drawn)
    figure.canvas.draw()
    legend = panel.get_legend().get_window_extent()
    assert legend.x0 >= panel.get_window_extent().x1 and legend.x1 <= figure.bbox.x1
    picture = figures.draw_report(made["t"]).decode()
    titles = [f"<!-- {word} -->" for word in ("original", "decoded", "size of errors", "spectra")]
    assert all(title in picture for title in titles) and picture.count("<image") >= (
        0 if given.t.ndim == 1 else 3)
    assert figures.draw_report(made["t"]).decode() == picture


def test_many_values_are_drawn_by_cells(tmp_path):
    values = smooth((700, 1000))
    given = xr.Dataset({"t": (("lat", "lon"), values)}, {
        "lat": ("lat", np.linspace(0, 70, 700), {"units": "degrees_north"}),
        "lon": ("lon", np.linspace(0, 99, 1000), {"units": "degrees_east"})})
    drawn = reported(given, tmp_path)["t"].drawn
    rows, columns = (np.arange(0, n, step) + step // 2 for n, step in ((700, 2), (1000, 3)))
    columns[-1] = 999
    assert drawn.error_map.shape == (350, 334)
    assert np.array_equal(drawn.value_maps[0].astype("f4"), values[np.ix_(rows, columns)])
    assert np.allclose(drawn.places.latitude, given.lat[rows])
    assert np.allclose(drawn.places.longitude, given.lon[columns])


# --- objects in memory ----------------------------------------------------------------------------


def test_the_stored_form_of_the_file_decides(tmp_path):
    """Packed values, fill values and times of other units are equal after decoding."""
    given = on_the_earth(p=(("time", "lat", "lon"), np.round(FIELD.astype("f8"), 2)))
    given["p"][0, :3] = np.nan
    given["t"][1, 2:5] = np.nan
    given.tailrace.to_netcdf(tmp_path / "a.nc", encoding={
        "p": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -9999},
        "t": {"abs": 0.01, "_FillValue": 1e20}, "time": {"units": "hours since 1850-1-1"}})
    made = given.tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()
    assert made["p"].max_error == 0 == made["time"].max_error
    assert 0 < made["t"].max_error <= 0.01 and np.isnan(made["t"].drawn.value_maps[0]).sum() == 0


def test_bounds_of_times_have_the_calendar_of_the_times(tmp_path):
    times = [cftime.Datetime360Day(2000, month, 30) for month in (1, 2, 3, 4)]
    given = on_the_earth(time_b=(("time", "two"), np.array([times, times], object).T))
    given = given.assign_coords(time=("time", times, {"bounds": "time_b"}))
    given.time.encoding.update(units="days since 1970-01-01 00:00:00", calendar="360_day")
    given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01, unlimited_dims="time")
    given.tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()
    later = given.assign_coords(time=("time", [cftime.Datetime360Day(2001, month, 30)
                                               for month in (1, 2, 3, 4)], given.time.attrs))
    later["time_b"] = ("two", "time"), np.array([later.time.values] * 2)
    later = later.transpose("time", "two", "lat", "lon")
    later.tailrace.to_netcdf(tmp_path / "a.nc", append_dim="time")
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert np.array_equal(file["time_b"][:, 0], file["time"][:])


def test_bounds_that_objects_carry_are_judged(tmp_path):
    given = on_the_earth()
    given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01)
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        made = given.tailrace.report(back, tmp_path / "r.html", figures=False).check()
        assert made["t"].bound == "abs=0.01" and made["t"].kept and made["t"].ratio is None
        back["t"] = back.t + 1
        made = given.tailrace.report(back, tmp_path / "r.html", figures=False)
        assert made["t"].bound == "none known" and made["t"].kept is None
        with pytest.raises(tailrace.BoundError):
            given.t.tailrace.report(back.t, tmp_path / "r.html", abs=0.5, figures=False).check()


def test_one_array_of_a_file_with_more(tmp_path):
    given = on_the_earth(u=(("time", "lat"), FIELD[:, :, 0]))
    given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01)
    made = given.u.tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()
    assert list(made) == ["/u"]
    made = given.u.rename(None).tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()
    assert list(made) == ["/u"]
    given = given.chunk(time=1)
    assert given.tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()["t"].kept


# --- units by meaning -----------------------------------------------------------------------------


def with_units(path, units, calendar=None):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", 5)
        variable = file.createVariable("time", "f8", ("time",))
        variable.units = units
        if calendar:
            variable.calendar = calendar
        variable[:] = np.arange(5.0)
    return path


@pytest.mark.parametrize("first, second, same", [
    ("days since 1850-01-01", "days since 1850-1-1 00:00:00", True),
    ("days since 1850-01-01", "day since 1850-01-01T00:00:00Z", True),
    ("hours since 1970-01-01 06:00", "h since 1970-1-1 6:00:00.0 UTC", True),
    ("seconds since 2000-01-01 00:00:00 +01:00", "s since 2000-01-01T00:00:00+0100", True),
    ("days since 0001-01-01", "Days since 1-1-1 0:00", True),
    ("days since 1850-01-01", "days since 1850-01-02", False),
    ("days since 1850-01-01", "days since 1850-01-01 00:00:01", False),
    ("days since 1850-01-01", "hours since 1850-01-01", False),
    ("days since 1850-01-01", "days since -1850-01-01", False),
    ("days since 1850-01-01", "days since 1850-01-01 00:00 +1:00", False),
    ("days since 1850-01-01", "days since 1850-01-01 at noon", False),
    ("m s-1", "m/s", False), ("days", "day", False)])
def test_verify_compares_units_of_time_by_meaning(first, second, same, tmp_path):
    one, other = with_units(tmp_path / "a.nc", first), with_units(tmp_path / "b.nc", second)
    found = tailrace.verify(one, other)
    assert found.ok == same, found
    if same:
        assert found.document["structure"]["differences"]
    else:
        assert any('"units"' in problem for problem in found.problems)
        assert tailrace.verify(one, other, ignore_attributes=["units"]).ok
    assert tailrace.report(one, other, tmp_path / "r.html").ok


def test_verify_compares_calendars_by_meaning(tmp_path):
    for second, same in (("standard", True), ("noleap", False)):
        one = with_units(tmp_path / "a.nc", "days since 1850-01-01", "gregorian")
        other = with_units(tmp_path / "b.nc", "days since 1850-01-01", second)
        assert tailrace.verify(one, other).ok == same


def test_an_attribute_of_rounding_is_no_difference(tmp_path):
    given = on_the_earth()
    given.tailrace.to_netcdf(tmp_path / "exact.nc")
    given.tailrace.to_netcdf(tmp_path / "a.nc", encoding={"t": {
        "significant_digits": 12, "quantize_mode": "BitRound"}})
    found = tailrace.verify(tmp_path / "exact.nc", tmp_path / "a.nc").check()
    assert found.doubts == [] and 0 < found["t"].max_error

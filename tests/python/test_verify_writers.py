"""verify of one netCDF-4 content that different libraries wrote: netCDF-C, h5netcdf, Tailrace."""

import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import numbers, smooth
from cli_tools import tailrace as program

tailrace = python_package.load()
xr = pytest.importorskip("xarray")

ENGINES = ["netcdf4", "h5netcdf"]
KEPT = "all values are within their bounds; --values-only (Python: values_only=True) compares"


def ocean():
    """A variable comes before its coordinates, so netCDF-C gives it the number of a dimension."""
    values = smooth((5, 12, 16)).astype("f4")
    values[0, :3] = np.nan
    return xr.Dataset(
        {"temp": (("depth", "lat", "lon"), values, {"units": "degC", "note": ""}),
         "salt": (("depth", "lat", "lon"), values + 30, {"units": "psu"}),
         "name": ("depth", np.array(["a", "bb", "", "ccc", "d"], dtype=object))},
        coords={"depth": ("depth", np.arange(5.0), {"units": "m"}), "lat": np.arange(12.0),
                "lon": np.arange(16)})


CASES = {
    "coordinates": ocean,
    "no coordinates": lambda: ocean().drop_vars(["depth", "lat", "lon"]),
    "unlimited": ocean,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_a_right_copy_is_right_whoever_wrote_the_original(case, engine, tmp_path):
    dataset = CASES[case]()
    unlimited = ["depth"] if case == "unlimited" else None
    first, ours = tmp_path / "first.nc", tmp_path / "ours.nc"
    dataset.to_netcdf(first, engine=engine, unlimited_dims=unlimited)
    dataset.tailrace.to_netcdf(ours, abs=1e-3, unlimited_dims=unlimited)
    found = tailrace.verify(first, ours)
    assert found.check() is found and found.values_kept
    program("verify", first, ours, "-q")
    repacked = tmp_path / "repacked.nc"
    program("repack", first, "-o", repacked, "--bound", "abs=1e-3")
    tailrace.verify(first, repacked).check()
    for other in ENGINES:
        with xr.open_dataset(first, engine=engine) as read:
            read.to_netcdf(tmp_path / "copy.nc", engine=other)
        tailrace.verify(first, tmp_path / "copy.nc").check()


@pytest.mark.parametrize("engine", ENGINES)
def test_groups_of_another_writer(engine, tmp_path):
    tree = xr.DataTree.from_dict({"/": ocean(), "/inner": ocean().rename(depth="level")})
    tree.to_netcdf(tmp_path / "first.nc", engine=engine)
    tree.tailrace.to_netcdf(tmp_path / "ours.nc", abs=1e-3)
    tailrace.verify(tmp_path / "first.nc", tmp_path / "ours.nc").check()


def test_what_differs_besides_values_is_no_broken_bound(tmp_path):
    first, copy = tmp_path / "first.nc", tmp_path / "copy.nc"
    ocean().to_netcdf(first, engine="netcdf4")
    ocean().tailrace.to_netcdf(copy, abs=1e-3)
    with netCDF4.Dataset(copy, "a") as file:
        file["salt"].units = "g/kg"
    found = tailrace.verify(first, copy)
    assert not found.ok and found.values_kept
    with pytest.raises(tailrace.CopyError, match="units") as raised:
        found.check()
    assert KEPT in " ".join(str(raised.value).split())
    assert not isinstance(raised.value, tailrace.BoundError)
    assert KEPT in " ".join(program("verify", first, copy, code=1).stdout.split())
    tailrace.verify(first, copy, values_only=True).check()

    with tailrace.open(copy, "a") as file:
        file["salt"][4, 5, 6] = 99.0
    found = tailrace.verify(first, copy)
    assert not found.values_kept and KEPT not in " ".join(repr(found).split())
    with pytest.raises(tailrace.BoundError):
        found.check()


def test_other_dimensions_and_texts_still_fail(tmp_path):
    first, copy = tmp_path / "first.nc", tmp_path / "copy.nc"
    ocean().to_netcdf(first, engine="netcdf4")
    other = ocean()
    other["name"][1] = "cc"
    other.to_netcdf(copy, engine="h5netcdf")
    assert numbers("verify", first, copy, code=1)["values_kept"] is False
    square = xr.Dataset({"v": (("x", "y"), np.ones((3, 3)))}, {"x": [1, 2, 3], "y": [1, 2, 3]})
    square.to_netcdf(first, engine="netcdf4")
    xr.Dataset({"v": (("y", "x"), np.ones((3, 3)))}, square.coords).to_netcdf(copy)
    with pytest.raises(tailrace.CopyError, match="dimension 0"):
        tailrace.verify(first, copy).check()

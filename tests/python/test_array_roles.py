"""tailrace.open with a bound for all variables: it applies to values only, as in repack."""

import warnings

import netCDF4
import numpy as np
import pytest

import python_package

tailrace = python_package.load()
ATTRIBUTES = {
    "lat2d": {"units": "degrees_north"}, "lon2d": {"units": "degrees_east"}, "land_mask": {},
    "cell": {"standard_name": "cell_area"}, "ids": {}, "mine": {}, "u": {"coordinates": "mine"},
    "deep/v": {}}


def written(path, options, own=None):
    random = np.random.default_rng(7)
    values = {}
    with tailrace.open(path, "w", options=options) as file:
        for name, attributes in ATTRIBUTES.items():
            values[name] = np.cumsum(random.normal(size=(96, 128)), 0).astype("f4")
            file.create_variable(name, ("y", "x"), data=values[name], attrs=attributes,
                                 **(own or {}).get(name, {}))
    with netCDF4.Dataset(path) as file:
        return {name for name, exact in values.items()
                if not np.array_equal(file[name][:].data, exact)}


@pytest.mark.parametrize("options,own,lossy", [
    ("codec=portable,bound=rel=1e-2", {}, {"u", "deep/v"}),
    ("codec=portable,bound=rel=1e-2,roles=off", {}, set(ATTRIBUTES) - {"mine"}),
    ("codec=portable,bound=rel=1e-2;*v: roles=off;land*: roles=off", {},
     {"u", "deep/v", "land_mask"}),
    ("codec=portable,bound=rel=1e-2;/land_mask: bound=abs=0.5", {}, {"u", "deep/v", "land_mask"}),
    ("codec=portable,bound=rel=1e-2", {"lat2d": {"abs": 0.5}}, {"u", "deep/v", "lat2d"}),
    ("codec=portable,target=psnr=40", {}, {"u", "deep/v"}),
])
def test_a_bound_for_all_is_of_values(tmp_path, options, own, lossy):
    assert written(tmp_path / "it.nc", options, own) == lossy


def test_attributes_of_later_calls_count(tmp_path):
    """Roles are decided when the first values are stored."""
    path = tmp_path / "it.nc"
    values = np.cumsum(np.random.default_rng(7).normal(size=(96, 128)), 0).astype("f4")
    with tailrace.open(path, "w", options="codec=portable,bound=rel=1e-2") as file:
        u = file.create_variable("u", ("y", "x"), data=values)
        g = file.create_variable("g", ("y", "x"), data=values)
        u.attrs["coordinates"] = "g"
        g.attrs["units"] = "1"
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["g"][:].data, values)
        assert not np.array_equal(file["u"][:].data, values)


@pytest.mark.parametrize("options,own,remarks", [
    ("codec=portable,bound=rel=1e-2;/land_mask: bound=abs=0.5", {}, ["/land_mask (mask by name)"]),
    ("codec=portable", {"lat2d": {"abs": 0.5}, "u": {"abs": 0.5}, "mine": {"abs": 0.5}},
     ["/lat2d (coordinate by CF units)", "/mine (coordinate)"]),
    ("codec=portable;*: bound=rel=1e-2", {}, []),
    ("codec=portable,roles=off", {"lat2d": {"abs": 0.5}}, []),
])
def test_what_an_option_names_gets_a_remark(tmp_path, options, own, remarks):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        written(tmp_path / "it.nc", options, own)
    said = sorted(str(warning.message).partition(".nc: ")[2] for warning in caught)
    assert [text[:text.index(" becomes lossy")] for text in said] == remarks
    assert all("names it without wildcards" in text for text in said)

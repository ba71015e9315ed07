"""Bounds too wide for the data, in Python's interfaces; Python's rule equals the engine's."""

import importlib
import warnings

import numpy as np
import pytest

import python_package

tailrace = python_package.load()
rule = importlib.import_module("tailrace._bound_width")
engine = importlib.import_module("tailrace._engine_loader").engine

FIELD = (20 + 15 * np.sin(np.linspace(0, 60, 40000))).reshape(20, 40, 50).astype("f4")
DIMS = ("z", "y", "x")


def filled(value):
    field = FIELD.copy()
    field[:, :3] = value
    return field


def opened(path, **options):
    file = tailrace.open(path, "w", **options)
    for name, extent in zip(DIMS, FIELD.shape):
        file.create_dimension(name, extent)
    return file


@pytest.mark.parametrize("bound", [{"rel": 1e-3}, {"psnr": 80}])
def test_an_undeclared_fill_value_is_refused_and_others_are_written(bound, tmp_path):
    file = opened(tmp_path / "a.nc")
    file.create_variable("s", DIMS, data=filled(-1e10), codec="trz", **bound)
    file.create_variable("t", DIMS, data=FIELD, codec="trz", **bound)
    with pytest.raises(tailrace.TailraceError) as refused:
        file.flush()
    for words in ("/s", "-1e+10", "3000 times", "fill_value=-1e+10", "allow_wide_bound=True"):
        assert words in str(refused.value)
    with pytest.raises(tailrace.TailraceError):
        file.close()
    with tailrace.open(tmp_path / "a.nc") as file:
        assert np.abs(file["t"][:] - FIELD).max() <= 0.04


def test_declared_or_allowed_it_is_written(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with opened(tmp_path / "a.nc") as file:
            file.create_variable("s", DIMS, data=filled(1e34), fill_value=1e34, codec="trz",
                                 rel=1e-3)
            file.create_variable("u", DIMS, data=filled(1e34), codec="trz", abs=1e-2)
            file.create_variable("m", DIMS, data=(FIELD > 20).astype("f4"), codec="trz", rel=1e-3)
    with tailrace.open(tmp_path / "a.nc") as file:
        assert np.abs(np.where(filled(1e34) > 1e30, 0, file["s"][:] - FIELD)).max() <= 0.031
    with opened(tmp_path / "b.nc") as file:
        file.create_variable("s", DIMS, data=filled(-1e10), codec="trz", rel=1e-3,
                             allow_wide_bound=True)
        with pytest.warns(RuntimeWarning, match="-1e\\+10 occurs 3000 times"):
            file.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            file.flush()  # The warning is issued once.


def test_broad_distributions_are_written_with_a_warning(tmp_path):
    density = np.exp(FIELD.astype("f8"))
    file = opened(tmp_path / "a.nc", options="codec=trz,bound=rel=1e-2")
    file.create_variable("rho", DIMS, data=density)
    with pytest.warns(RuntimeWarning, match="pw_rel=0.01.*guard=log=0.01.*abs="):
        file.close()
    assert tailrace.open(tmp_path / "a.nc")["rho"].shape == FIELD.shape


def test_filters_of_h5py_are_refused_too():
    with pytest.raises(Exception, match="-1e\\+10.*fill=-1e\\+10.*allow_wide_bound=True"):
        tailrace.Trz(rel=1e-3, data=filled(-1e10))
    for words in ({"fill": -1e10}, {"allow_wide_bound": True}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert tailrace.Trz(rel=1e-3, data=filled(-1e10), **words)
    with pytest.warns(RuntimeWarning, match="smaller than that"):
        tailrace.Trz(rel=1e-2, data=np.exp(FIELD.astype("f8")))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_mirror_says_what_the_engine_says(dtype):
    choose = np.random.default_rng(5)
    assert rule.BELOW_SHARE_MAX == engine().below_share_max
    n_found = 0
    for _ in range(600):
        n = int(choose.integers(1, 40))
        values = (choose.choice([0, 5, 300, -1e6]) + choose.normal(size=n)
                  * choose.choice([0, 1e-3, 1, 30]))
        for _ in range(int(choose.integers(0, 3))):
            end = choose.choice([0, 1, -99, -999, -1e10, 1e34, np.nan, np.inf])
            values = np.append(values, [end] * int(choose.integers(1, 4)))
        values = choose.permutation(values).astype(dtype)
        scan = engine().RangeScan(dtype == "f4", None)
        for part in np.array_split(values, 3):
            scan.add(np.ascontiguousarray(part).view(np.uint8))
        found = rule.undeclared_fill(values[np.isfinite(values)])
        assert found == scan.undeclared_fill(), values
        n_found += found is not None
    assert 50 < n_found < 550

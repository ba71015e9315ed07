"""make_climate.py: its data are deterministic and labelled, and no part repeats another."""

import h5py
import netCDF4
import numpy as np
import pytest
from climate_cases import make, make_climate, source

pytestmark = pytest.mark.full


def test_equal_arguments_make_equal_bytes(tmp_path):
    make(tmp_path / "a.nc")
    make(tmp_path / "b.nc")
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()


def test_classic_file_with_labels(tmp_path):
    values = make(tmp_path / "c.nc", steps=5)
    assert (tmp_path / "c.nc").read_bytes()[:4] == b"CDF\x05"
    with netCDF4.Dataset(tmp_path / "c.nc") as file:
        assert file["temperature"].dimensions == ("time", "layer", "lat", "lon")
        assert file.dimensions["time"].isunlimited()
        assert "not by a model" in file.history and "refined 3 times" in file.history
        assert file["temperature"].units == "K" and file["lat"].units == "degrees_north"
        lat = file["lat"][:]
        assert np.all(np.diff(lat) > 0) and np.allclose(lat, -lat[::-1])
    assert values.shape == (5, 4, 24, 48) and values.dtype == "f4"


def test_no_step_and_no_tile_repeats(tmp_path):
    values = make(tmp_path / "c.nc")
    assert len({step.tobytes() for step in values}) == len(values)
    rows = values.reshape(-1, 16)  # a tile's width
    assert len({row.tobytes() for row in rows}) == len(rows)


def mean_of_layers(values):
    """Return means weighted by the Gaussian grid's latitudes."""
    weights = np.polynomial.legendre.leggauss(values.shape[-2])[1]
    return (values.astype("f8").mean(axis=-1) * weights).sum(axis=-1) / weights.sum()


def test_refined_field_keeps_the_means_of_its_source(tmp_path):
    values = make(tmp_path / "c.nc", steps=1)
    with h5py.File(source(tmp_path / "s.h5")) as file:
        before = file["T"][0]
    assert np.allclose(mean_of_layers(values[0]), mean_of_layers(before), atol=0.2)
    assert values.min() > before.min() - 12 and values.max() < before.max() + 12


def test_interpolation_is_exact_for_cubics():
    module = make_climate()
    coarse, fine = module.gaussian_latitudes(8), module.gaussian_latitudes(24)
    matrix = module.cubic_matrix(coarse, fine)
    assert np.allclose(matrix @ (coarse / 90) ** 3, (fine / 90) ** 3)
    assert np.allclose(matrix.sum(axis=1), 1)


def test_size_and_precision(tmp_path):
    module = make_climate()
    options = module.parse([str(tmp_path / "c.nc"), "--source", str(source(tmp_path / "s.h5")),
                            "--field", "T", "--refine", "2", "--size", "40KB", "--precision",
                            "0.25"])
    numbers = module.make(options)
    assert numbers["raw_bytes"] == numbers["steps"] * 4 * 4 * 16 * 32
    assert numbers["steps"] == 5
    with netCDF4.Dataset(tmp_path / "c.nc") as file:
        values = np.asarray(file["temperature"][:])
    assert np.array_equal(values * 4, np.round(values * 4))


@pytest.mark.parametrize("words", [["--refine", "0"], ["--steps", "0"], ["--size", "0"],
                                   ["--source", "nowhere.h5"]])
def test_refuses(words, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        make_climate().parse([str(tmp_path / "c.nc"), "--source", str(source(tmp_path / "s.h5")),
                              *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err

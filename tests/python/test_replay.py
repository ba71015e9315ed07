"""Application replay: it writes the given values, through every output."""

import netCDF4
import numpy as np
import pytest
from application_runs import application, opened, preload, run, start

SHAPE, STEPS = (3, 10, 12), 4
WORDS = ["--shape", "3x10x12", "--steps", STEPS, "--codec", "none"]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Write random values; return (path, values)."""
    path = tmp_path_factory.mktemp("replay") / "values.f32"
    values = np.random.default_rng(5).standard_normal((STEPS, *SHAPE)).astype("f4")
    values.tofile(path)
    return path, values


def replay(given, folder, output, *words, ranks=2):
    application("replay-pnetcdf" if output == "pnetcdf" else "replay")
    run("replay", folder, *WORDS, "--source", given[0], *words, ranks=ranks, output=output)
    return folder / f"{output}.h5"


@pytest.mark.parametrize("ranks, output", [(1, "sync"), (3, "sync"), (2, "hdf5"), (3, "pnetcdf")])
def test_outputs(ranks, output, given, tmp_path):
    path = replay(given, tmp_path, output, ranks=ranks)
    if output == "pnetcdf":
        with netCDF4.Dataset(path) as file:
            found = np.asarray(file["temperature"][:])
    else:
        with opened(path) as file:
            found = file["temperature"][:]
    assert np.array_equal(found, given[1])


@pytest.mark.parametrize("layout, transfer", [
    ("sparse", "collective"), ("dense", "independent"), ("hybrid:1.1", "collective"),
    ("claimed", "independent")])
def test_tailrace_in_the_place_of_pnetcdf(layout, transfer, given, tmp_path):
    application("replay-pnetcdf")
    run("replay-pnetcdf", tmp_path, *WORDS, "--source", given[0], "--transfer", transfer,
        "--records", "off", ranks=2, output="pnetcdf",
        variables=preload(f"attributes=all;codec=trz;temperature: layout={layout}"))
    with opened(tmp_path / "pnetcdf.h5") as file:
        assert file["temperature"].attrs["tailrace_codec"] in ("trz", b"trz")
        assert np.array_equal(file["temperature"][:], given[1])


def test_filters_of_hdf5(given, tmp_path):
    path = replay(given, tmp_path, "hdf5", "--filters", "2;1:4", "--filter-chunk", "1x3x5x12")
    with opened(path) as file:
        dataset = file["temperature"]
        assert dataset.compression == "gzip" and dataset.compression_opts == 4 and dataset.shuffle
        assert dataset.chunks == (1, 3, 5, 12)
        assert np.array_equal(dataset[:], given[1])


@pytest.mark.parametrize("words, message", [
    (["--shape", "3x"], "--shape: expected lengths"), (["--shape", "7"], "two axes"),
    (["--source", "none.f32"], "--source: cannot read")])
def test_refuses(words, message, given, tmp_path):
    done = start("replay", *WORDS, "--source", given[0], "--file", tmp_path / "x.h5", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_refuses_a_short_source(given, tmp_path):
    done = start("replay", *WORDS, "--source", given[0], "--file", tmp_path / "x.h5", "--steps", 5)
    assert done.returncode != 0

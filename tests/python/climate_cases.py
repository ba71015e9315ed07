"""Small climate data for the tests of at, matt and their readers, with results by NumPy."""

import importlib
import json
import pathlib
import sys

import h5py
import netCDF4
import numpy as np
from application_runs import application, start
from cli_tools import ROOT

#: Tolerance of means: the sums over some 10^5 values of about 250 K have another order here.
ROUNDING = 1e-11


def make_climate():
    """Import lab/bench/data/make_climate.py."""
    folder = str(ROOT / "lab" / "bench" / "data")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("make_climate")


def source(path):
    """Write two times of 4 layers on 8 x 16 cells, as smooth as real data."""
    lat, lon = np.linspace(-1.5, 1.5, 8)[:, None], np.linspace(0, 2 * np.pi, 16, endpoint=False)
    noise = np.random.default_rng(7).standard_normal((2, 4, 8, 16))
    layers = np.array([230.0, 210.0, 250.0, 280.0])[None, :, None, None]
    with h5py.File(path, "w") as file:
        file["T"] = (layers + 20 * np.cos(lat) + 3 * np.sin(2 * lon) + 0.3 * noise).astype("f4")
    return path


def make(path, *words, steps=11, refine=3):
    """Make a data set of (steps, 4, 24, 48) with the generator. @returns its temperatures."""
    folder = pathlib.Path(path).parent
    module = make_climate()
    module.make(module.parse([str(path), "--source", str(source(folder / "source.h5")), "--field",
                              "T", "--steps", str(steps), "--refine", str(refine), *words]))
    with netCDF4.Dataset(path) as file:
        return np.asarray(file["temperature"][:])


def write_cells(path, values, fill=None):
    """Write a classic 64-bit data set of (time, layer, cell)."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        for name, length in zip(("time", "layer", "cell"), values.shape):
            file.createDimension(name, None if name == "time" else length)
        variable = file.createVariable("temperature", "f4", ("time", "layer", "cell"),
                                       fill_value=False if fill is None else fill)
        variable.set_auto_mask(False)
        variable[:] = values


def valid_of(values, fill):
    return np.isfinite(values) if fill is None else np.isfinite(values) & (values != fill)


def layer_means(values, fill=None):
    """Return the result of AT: (means, numbers of values) by layer."""
    valid = valid_of(values, fill)
    axes = tuple(i for i in range(values.ndim) if i != 1)
    count = valid.sum(axis=axes)
    return np.where(valid, values, 0).astype("f8").sum(axis=axes) / count, count


def frame_extremes(values, frame, fill=None):
    """Return the result of MATT: lists of statistics by frame."""
    found = {name: [] for name in ("least", "greatest", "mean", "mean_range", "n_values")}
    for first in range(0, len(values), frame):
        part = values[first:first + frame]
        valid = valid_of(part, fill)
        low = np.where(valid, part, np.inf).min(axis=0).astype("f8")
        high = np.where(valid, part, -np.inf).max(axis=0).astype("f8")
        found["least"].append(low.min())
        found["greatest"].append(high.max())
        found["mean"].append(part[valid].astype("f8").mean())
        found["mean_range"].append((high - low)[low <= high].mean())
        found["n_values"].append(valid.sum())
    return found


def analyse(name, path, folder, *words, ranks=1, variant="-pnetcdf", variables=()):
    """Run at or matt, and return its report."""
    application(name + variant)
    report = folder / f"{name}{variant}_{ranks}.json"
    done = start(name + variant, "--file", path, "--json", report, *words, ranks=ranks,
                 variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text())


def assert_at(report, values, fill=None):
    mean, count = layer_means(values, fill)
    assert report["answer"]["n_values"] == list(count)
    assert np.allclose(report["answer"]["mean"], mean, rtol=ROUNDING, atol=0)


def assert_matt(report, values, frame, fill=None):
    expected = frame_extremes(values, frame, fill)
    for name in ("least", "greatest", "n_values"):
        assert report["answer"][name] == expected[name], name
    for name in ("mean", "mean_range"):
        assert np.allclose(report["answer"][name], expected[name], rtol=ROUNDING, atol=0), name

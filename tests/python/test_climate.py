"""Analyses at and matt through the real PnetCDF, HDF5 and Tailrace's reader.

Their results equal NumPy's, and have the same bits on every number of ranks. Tests also limit the
storage's speed."""

import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
from application_runs import application, build_folder, preload
from climate_cases import analyse, assert_at, assert_matt, make, write_cells
from cli_tools import ENVIRONMENT, tailrace

pytestmark = pytest.mark.full

FILL = np.float32(-1e10)


@pytest.fixture(scope="module")
def climate(tmp_path_factory):
    """Return (path, values) of the generated data set."""
    application("at-pnetcdf")
    path = tmp_path_factory.mktemp("climate") / "climate.nc"
    return path, make(path)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Return (path, values) over (time, layer, cell), with fill values and NaN.

    The last line is short, and one cell has no value at all."""
    application("at-pnetcdf")
    path = tmp_path_factory.mktemp("cells") / "cells.nc"
    generator = np.random.default_rng(3)
    values = (250 + 20 * generator.standard_normal((7, 3, 1000))).astype("f4")
    values[generator.random(values.shape) < 0.1] = FILL
    values[1, 2, 5:9] = np.nan
    values[:, 1, 17] = FILL
    write_cells(path, values, FILL)
    return path, values


@pytest.mark.parametrize("name", ["at", "matt"])
def test_the_same_answer_on_any_number_of_ranks(name, climate, tmp_path):
    """Results equal NumPy's, and have the same bits for any portions that are read."""
    path, values = climate
    reports = [analyse(name, path, tmp_path, "--memory", memory, "--transfer", transfer,
                       *(["--frame", 4] if name == "matt" else []), ranks=ranks)
               for ranks, memory, transfer in ((1, "32MiB", "collective"),
                                               (2, "50kB", "independent"),
                                               (3, "50kB", "collective"),
                                               (4, "1", "independent"))]
    if name == "at":
        assert_at(reports[0], values)
    else:
        assert_matt(reports[0], values, 4)
    for report in reports:
        assert report["answer"] == reports[0]["answer"]
        assert report["value_bytes"] == values.nbytes


@pytest.mark.parametrize("ranks", [1, 3])
def test_cells_and_missing_values(ranks, cells, tmp_path):
    path, values = cells
    assert_at(analyse("at", path, tmp_path, ranks=ranks), values, FILL)
    assert_matt(analyse("matt", path, tmp_path, "--frame", 3, ranks=ranks), values, 3, FILL)


def test_more_ranks_than_lines_and_times(tmp_path):
    application("at-pnetcdf")
    values = np.linspace(200, 300, 2 * 2 * 300, dtype="f4").reshape(2, 2, 300)
    write_cells(tmp_path / "few.nc", values)
    assert_at(analyse("at", tmp_path / "few.nc", tmp_path, ranks=4), values)
    assert_matt(analyse("matt", tmp_path / "few.nc", tmp_path, ranks=4), values, 8)


@pytest.mark.parametrize("name, transfer", [("at", "collective"), ("matt", "independent")])
def test_limited_reads_are_counted(name, transfer, climate, tmp_path):
    """The limiter counts every byte of the variable once, and up to 1 MiB for the header."""
    if not (build_folder() / "lib" / "libwritelimit.so").exists():
        pytest.skip("libwritelimit.so is not built")
    path, values = climate
    assert analyse(name, path, tmp_path, ranks=2)["storage_bytes"] == 0
    report = analyse(name, path, tmp_path, "--read-limit", "1GB", "--transfer", transfer, ranks=2)
    assert report["storage_bytes"] >= values.nbytes
    assert report["storage_bytes"] <= values.nbytes + (1 << 20)


def refused(*words, program=None):
    """Run a refused command, without a launcher: it may lose the message of a rank that aborts."""
    command = [str(program or application("at-pnetcdf")), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    assert done.returncode != 0
    return done


def test_refuses(climate, tmp_path):
    path, _ = climate
    assert "opening: " in refused("--file", tmp_path / "none.nc").stderr
    assert "finding the variable" in refused("--file", path, "--variable", "salt").stderr
    assert 'variable "lat"' in refused("--file", path, "--variable", "lat").stderr
    wrong = refused("--codec", "x")
    assert wrong.returncode == 2 and "unknown option --codec" in wrong.stderr
    write_cells(tmp_path / "flat.nc", np.zeros((2, 2, 2), "f4"))
    with netCDF4.Dataset(tmp_path / "flat.nc", "a") as file:
        file.createVariable("flat", "f4", ("cell",))[:] = [1, 2]
    words = refused("--file", tmp_path / "flat.nc", "--variable", "flat").stderr
    assert "expected (time, layer, lat, lon) or (time, layer, cell), got 1 dimensions" in words


def test_missing_variant_is_named(tmp_path):
    """--input searches the other executable in the folder of this one."""
    lonely = tmp_path / "at-pnetcdf"
    shutil.copy(application("at-pnetcdf"), lonely)
    done = refused("--input", "tailrace", program=lonely)
    assert done.returncode == 2
    assert f"{tmp_path / 'at'} is missing" in done.stderr


@pytest.mark.parametrize("ranks, transfer", [(1, "independent"), (3, "collective")])
def test_through_hdf5(ranks, transfer, climate, cells, tmp_path):
    """The HDF5 input reads the same numbers, with and without HDF5's filters."""
    for (_, values), fill in ((climate, None), (cells, FILL)):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("temperature", data=values, chunks=True, compression="gzip")
            if fill is not None:
                file["temperature"].attrs["_FillValue"] = fill
        words = ["--transfer", transfer]
        assert_at(analyse("at", tmp_path / "x.h5", tmp_path, *words, ranks=ranks, variant="-hdf5"),
                  values, fill)
        assert_matt(analyse("matt", tmp_path / "x.h5", tmp_path, *words, "--frame", 3, ranks=ranks,
                            variant="-hdf5"), values, 3, fill)


@pytest.fixture(scope="module")
def compressed(climate, tmp_path_factory):
    """Convert the generated data set losslessly to netCDF-4, in chunks that suit no rank count."""
    path = tmp_path_factory.mktemp("compressed") / "climate.nc"
    tailrace("repack", climate[0], "-o", path, "--codec", "trz", "--chunk", "2x3x10x48")
    return path


@pytest.mark.parametrize("name", ["at", "matt"])
@pytest.mark.parametrize("ranks, transfer", [(1, "independent"), (2, "collective"),
                                             (4, "collective")])
def test_through_tailrace(name, ranks, transfer, climate, compressed, tmp_path):
    """Tailrace's reader gives the same bits from compressed data."""
    application(name)
    expected = analyse(name, climate[0], tmp_path)["answer"]
    found = analyse(name, compressed, tmp_path, "--transfer", transfer, ranks=ranks, variant="")
    assert found["input"] == "tailrace"
    assert found["answer"] == expected


@pytest.mark.parametrize("name, ranks, transfer", [("at", 2, "collective"),
                                                   ("matt", 3, "collective"),
                                                   ("matt", 2, "independent")])
def test_unchanged_program_reads_compressed_data(name, ranks, transfer, climate, compressed,
                                                 tmp_path):
    """at-pnetcdf and matt-pnetcdf with libtailrace_pnetcdf.so loaded in place of PnetCDF."""
    variables = preload()
    found = analyse(name, compressed, tmp_path, "--transfer", transfer, ranks=ranks,
                    variables=variables)
    assert found["answer"] == analyse(name, climate[0], tmp_path)["answer"]


def test_classic_files_fall_through(climate, tmp_path):
    variables = preload()
    found = analyse("at", climate[0], tmp_path, ranks=2, variables=variables)
    assert_at(found, climate[1])

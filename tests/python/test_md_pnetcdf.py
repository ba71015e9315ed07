"""md --output pnetcdf, with the real PnetCDF and with Tailrace instead.

The states equal those without output, and the file has the numbers of Tailrace's own output."""

import netCDF4
import numpy as np
import pytest
from application_runs import application, arrays, exact_arrays, preload, run, start

pytestmark = pytest.mark.full

SHORT = ["--cells", 5, "--steps", 24, "--every", 3]


def classic_arrays(path):
    with netCDF4.Dataset(path) as file:
        assert file.data_model == "NETCDF3_64BIT_DATA"
        file.set_auto_mask(False)
        assert all(variable.dimensions[0] == "step_index" for variable in file.variables.values())
        return {name: variable[:] for name, variable in file.variables.items()}


@pytest.mark.parametrize("transfer", ["independent", "collective"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_states_and_contents(ranks, transfer, tmp_path):
    application("md-pnetcdf")
    without = run("md-pnetcdf", tmp_path, *SHORT, ranks=ranks)
    report = run("md-pnetcdf", tmp_path, *SHORT, "--transfer", transfer, ranks=ranks,
                 output="pnetcdf")
    assert report["state_hash"] == without["state_hash"]
    found = classic_arrays(tmp_path / "pnetcdf.h5")
    exact = exact_arrays("md", tmp_path, *SHORT, ranks=ranks)
    assert sorted(found) == sorted(exact)
    for name, values in exact.items():
        assert found[name].dtype == values.dtype, name
        assert np.array_equal(found[name], values), name


def test_md_starts_the_other_executable(tmp_path):
    application("md-pnetcdf")
    run("md", tmp_path, *SHORT, "--fsync", "on", ranks=2, output="pnetcdf")
    assert classic_arrays(tmp_path / "pnetcdf.h5")["x"].shape == (8, 500)


def test_steps_of_a_fixed_dimension(tmp_path):
    application("md-pnetcdf")
    run("md-pnetcdf", tmp_path, *SHORT, "--records", "off", ranks=2, output="pnetcdf")
    with netCDF4.Dataset(tmp_path / "pnetcdf.h5") as file:
        assert len(file.dimensions["step_index"]) == 8
        assert not file.dimensions["step_index"].isunlimited()
        assert np.array_equal(file["step"][:], np.arange(3, 25, 3))


BOUNDS = {**dict.fromkeys("xyz", 1e-3), **dict.fromkeys(("vx", "vy", "vz", "energy"), 1e-2)}


@pytest.mark.parametrize("ranks, bounds", [(1, {}), (4, {}), (2, BOUNDS)])
def test_unchanged_program_writes_compressed_data(ranks, bounds, tmp_path):
    """libtailrace_pnetcdf.so replaces PnetCDF, and the environment sets bounds."""
    application("md-pnetcdf")
    words = ";".join(["codec=trz", *(f"{name}: bound=abs={bound}"
                                     for name, bound in bounds.items())])
    report = run("md-pnetcdf", tmp_path, *SHORT, ranks=ranks, output="pnetcdf",
                 variables=preload(words))
    assert report["state_hash"] == run("md-pnetcdf", tmp_path, *SHORT)["state_hash"]
    found = arrays(tmp_path / "pnetcdf.h5")
    for name, values in exact_arrays("md", tmp_path, *SHORT, ranks=ranks).items():
        error = np.abs(found[name].astype("f8") - values.astype("f8")).max()
        assert error <= bounds.get(name, 0), name


def test_refuses_a_group_per_step(tmp_path):
    application("md-pnetcdf")
    done = start("md", *SHORT, "--output", "pnetcdf", "--over-time", "off", "--file",
                 tmp_path / "x.nc", ranks=2)
    assert done.returncode == 2
    assert "--over-time off" in done.stderr

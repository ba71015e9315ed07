"""Application cosmo: its physics on 1 to 4 ranks, and its outputs, which do not affect it.

The program checks itself (mass, momentum, energy, growth) and exits with 1 if a check fails. The
tests read the numbers from its report. h5py reads the output, which is compared with uncompressed
output of the same run.
"""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAILRACE = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
BUILD = TAILRACE.parent.parent
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    **os.environ,
}
SMALL = ["--grid", "24", "--steps", "6"]
GRID, STEPS = 24, 6
BOUNDS = {  # equal to those of universe.cpp
    "baryon_density": 0.2,
    "dark_matter_density": 0.4,
    "temperature": 1e3,
    "velocity_x": 2e5,
    "velocity_y": 2e5,
    "velocity_z": 2e5,
}
PLAIN_HDF5 = (BUILD / "examples" / "cosmo-hdf5").exists()

pytestmark = [pytest.mark.full, pytest.mark.skipif(
    not (BUILD / "examples" / "cosmo").exists(), reason="cosmo is not built"
)]


@pytest.fixture(scope="module", autouse=True)
def codec_trz():
    """Let h5py read the default codec through our plug-in."""
    folder = str(BUILD / "lib" / "hdf5" / "plugin").encode()
    h5py.h5pl.append(folder)
    yield
    h5py.h5pl.remove(h5py.h5pl.size() - 1)


def start(ranks, *options):
    command = ["mpiexec", "-n", str(ranks), str(BUILD / "examples" / "cosmo"), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=ENVIRONMENT)


def run(ranks, tmp_path, *options):
    """Run the program, expect success, and return its report."""
    report = tmp_path / "report.json"
    done = start(ranks, *SMALL, "--json", report, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text())


def checks_of(report):
    return {check["name"]: check for check in report["checks"]}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Run on one rank without output."""
    return run(1, tmp_path_factory.mktemp("cosmo"))


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Run on two ranks with uncompressed output; return all values."""
    folder = tmp_path_factory.mktemp("cosmo")
    report = run(2, folder, "--output", "sync", "--codec", "none", "--file", folder / "exact.h5")
    with h5py.File(folder / "exact.h5") as file:
        return report, {name: dataset[:] for name, dataset in file.items()}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_physics(ranks, alone, tmp_path):
    report = run(ranks, tmp_path)
    checks = checks_of(report)
    assert len(checks) == 5 and all(check["passed"] for check in checks.values())
    assert checks["particles lost"]["value"] == 0
    # Any number of ranks gives the same universe, except for the rounding of sums.
    for name, value in alone["facts"].items():
        assert report["facts"][name] == pytest.approx(value, rel=1e-6), name
    facts = report["facts"]
    assert facts["sigma of the density at the end"] > 4 * facts["sigma of the density at the start"]
    assert len(report["iterations"]) == STEPS


@pytest.mark.parametrize("expanding", ["on", "off"])
def test_small_waves_grow_as_in_linear_theory(expanding, tmp_path):
    report = run(2, tmp_path, "--grid", 32, "--sigma", 0.3, "--end", 0.5, "--expanding", expanding)
    growth = checks_of(report)["growth over linear theory's, - 1"]
    assert abs(growth["value"]) < 0.03 and report["facts"]["linear until a growth of"] == 0.5


def test_gravity_alone_conserves_momentum_to_rounding(tmp_path):
    report = run(3, tmp_path, "--temperature", 0)
    momentum = checks_of(report)["momentum, of the sum of |p|"]
    assert momentum["passed"] and momentum["limit"] == 1e-11


def test_pressure_keeps_gas_smoother_than_dark_matter(tmp_path):
    run(1, tmp_path, "--output", "sync", "--codec", "none", "--file", tmp_path / "cold.h5")
    run(1, tmp_path, "--output", "sync", "--codec", "none", "--file", tmp_path / "hot.h5",
        "--temperature", 3e6)
    with h5py.File(tmp_path / "cold.h5") as cold, h5py.File(tmp_path / "hot.h5") as hot:
        assert hot["baryon_density"][-1].std() < 0.8 * cold["baryon_density"][-1].std()
        dark = [file["dark_matter_density"][-1].std() for file in (cold, hot)]
        assert dark[1] == pytest.approx(dark[0], rel=0.1)


def test_another_seed_is_another_universe(alone, tmp_path):
    assert run(1, tmp_path)["state_hash"] == alone["state_hash"]
    assert run(1, tmp_path, "--seed", 43)["state_hash"] != alone["state_hash"]


def test_fields(exact):
    _, fields = exact
    assert np.array_equal(fields["step"], np.arange(1, STEPS + 1))
    assert fields["time"] == pytest.approx(0.1 * 10 ** (np.arange(1, STEPS + 1) / STEPS))
    assert set(fields) == {*BOUNDS, "time", "step"}
    for name in BOUNDS:
        assert fields[name].shape == (STEPS, GRID, GRID, GRID)
        assert fields[name].dtype == np.float32
    for name in ("baryon_density", "dark_matter_density"):  # Mass is conserved in the file, too.
        assert fields[name].mean(axis=(1, 2, 3), dtype=np.float64) == pytest.approx(1, rel=1e-6)
        assert np.all(np.diff(fields[name].std(axis=(1, 2, 3))) > 0)
    expected = 1e4 * fields["baryon_density"].astype(np.float64) ** 0.6
    assert np.allclose(fields["temperature"], expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("output", ["sync", "async", "in_situ"])
def test_outputs_change_nothing_and_keep_the_bounds(output, exact, tmp_path):
    reference, fields = exact
    report = run(2, tmp_path, "--output", output, "--file", tmp_path / "out.h5")
    assert report["state_hash"] == reference["state_hash"]
    assert report["totals"]["n_steps"] == STEPS
    assert report["totals"]["encoded_bytes"] < report["totals"]["raw_bytes"]
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file) == set(fields)
        for name, expected in fields.items():
            error = np.abs(file[name][:].astype(np.float64) - expected).max()
            assert error <= BOUNDS.get(name, 0), name


@pytest.mark.parametrize("output", ["async", "in_situ"])
def test_uncompressed_in_the_background_is_exact(output, exact, tmp_path):
    reference, fields = exact
    report = run(2, tmp_path, "--output", output, "--codec", "none", "--options", "hold=copy",
                 "--file", tmp_path / "out.h5")
    assert report["state_hash"] == reference["state_hash"]
    with h5py.File(tmp_path / "out.h5") as file:
        for name, expected in fields.items():
            assert np.array_equal(file[name][:], expected), name


def test_no_output_has_the_same_state(exact, tmp_path):
    assert run(2, tmp_path)["state_hash"] == exact[0]["state_hash"]


@pytest.mark.skipif(not PLAIN_HDF5, reason="no parallel HDF5")
@pytest.mark.parametrize("transfer", ["independent", "collective"])
def test_plain_hdf5(transfer, exact, tmp_path):
    reference, fields = exact
    report = run(2, tmp_path, "--output", "hdf5", "--transfer", transfer,
                 "--file", tmp_path / "out.h5")
    assert report["state_hash"] == reference["state_hash"]
    with h5py.File(tmp_path / "out.h5") as file:
        for name, expected in fields.items():
            assert file[name].chunks is None
            assert np.array_equal(file[name][:], expected), name


@pytest.mark.skipif(not PLAIN_HDF5, reason="no parallel HDF5")
def test_async_connector_says_if_it_is_not_here(tmp_path):
    done = start(1, *SMALL, "--output", "hdf5-async", "--file", tmp_path / "out.h5")
    if done.returncode == 0:  # With a newer HDF5 and the connector installed.
        with h5py.File(tmp_path / "out.h5") as file:
            assert set(file) == {*BOUNDS, "time", "step"}
    else:
        assert done.returncode == 2 and "not available here" in done.stderr


@pytest.mark.parametrize("output", ["sync", pytest.param("hdf5", marks=pytest.mark.skipif(
    not PLAIN_HDF5, reason="no parallel HDF5"))])
def test_a_group_per_step(output, exact, tmp_path):
    run(2, tmp_path, "--output", output, "--over-time", "off", "--every", 2, "--codec", "none",
        "--file", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert sorted(file) == ["step_0002", "step_0004", "step_0006"]
        for step in (2, 4, 6):
            group = file[f"step_{step:04}"]
            assert group.attrs["step"] == step
            assert group.attrs["time"] == pytest.approx(0.1 * 10 ** (step / STEPS))
            for name in BOUNDS:
                assert np.array_equal(group[name][:], exact[1][name][step - 1]), name


@pytest.mark.skipif(not (BUILD / "lib" / "libwritelimit.so").exists(), reason="no libwritelimit")
@pytest.mark.parametrize("output", ["sync", pytest.param("hdf5", marks=pytest.mark.skipif(
    not PLAIN_HDF5, reason="no parallel HDF5"))])
def test_limited_writes(output, exact, tmp_path):
    report = run(2, tmp_path, "--output", output, "--codec", "none", "--write-limit", "20MB",
                 "--file", tmp_path / "out.h5")
    assert report["write_limit_bytes_per_s"] == 20e6
    assert report["state_hash"] == exact[0]["state_hash"]
    with h5py.File(tmp_path / "out.h5") as file:
        for name, expected in exact[1].items():
            assert np.array_equal(file[name][:], expected), name


@pytest.mark.parametrize(("options", "expected"), [
    (["--grid", "many"], "--grid: expected a whole number, got \"many\""),
    (["--output", "tape"], "--output: expected one of none, hdf5"),
    (["--write-limit", "fast"], "--write-limit: expected bytes"),
    (["--gird", "24"], "unknown option --gird"),
    (["--steps"], "--steps: expected a value"),
    (["--particles-per-cell", "2"], "expected a cube"),
    (["--grid", "8"], "3 for each rank"),
    (["--every", "0"], "--every: must be >= 1"),
])
def test_refused(options, expected):
    done = start(3, *options)
    assert done.returncode == 2
    assert done.stderr.count(expected) == 1


def test_help_names_every_option():
    done = start(1, "--help")
    assert done.returncode == 0
    for option in ("--grid", "--output", "--write-limit", "--device-stretch", "--json"):
        assert f"  {option} " in done.stdout

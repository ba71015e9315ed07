"""The programs of examples/, run and read like a user: h5py opens their files.

Each test computes the example's physics with NumPy. Every value in the file is compared with its
computed value, within the bound that the example requested.
"""

import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = ["alone", 1, 2, 3]
ROUNDING = 1e-9  # our order of summation differs from the example's


def folder_of_examples():
    """Return the build's folder of example programs; TAILRACE is the build's bin/tailrace."""
    program = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    return program.parent.parent / "examples"


def run(name, ranks, path):
    program = folder_of_examples() / name
    if not program.exists():
        pytest.skip(f"{program} is not built")
    command = [str(program), str(path)]
    if ranks != "alone":
        command = ["mpiexec", "-n", str(ranks), *command]
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        **os.environ,
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def largest_error(found, expected):
    return np.max(np.abs(np.asarray(found, np.float64) - expected))


@pytest.mark.parametrize("ranks", RANKS)
def test_write_field(ranks, tmp_path):
    run("write_field", ranks, tmp_path / "heat.h5")
    y, x = np.mgrid[0:250, 0:320] + np.array([1 - 80, -100]).reshape(2, 1, 1)
    t = 300 + 80.0 * (x * x + y * y < 1600) - 50.0 * ((x > 100) & (x < 130))
    with h5py.File(tmp_path / "heat.h5") as file:
        assert file.attrs["title"] in ("heat in an insulated plate", b"heat in an insulated plate")
        assert sorted(file) == [f"step_{step:04}" for step in range(0, 401, 100)]
        for step in range(401):
            if step % 100 == 0:
                dataset = file[f"step_{step:04}/temperature"]
                assert dataset.attrs["time_step"] == step
                assert dataset.dtype == np.float64
                assert largest_error(dataset[:], t) <= 1e-3 + ROUNDING
            halo = np.pad(t, 1, mode="edge")
            t = t + 0.2 * (
                halo[1:-1, :-2] + halo[1:-1, 2:] + halo[:-2, 1:-1] + halo[2:, 1:-1] - 4 * t
            )


@pytest.mark.parametrize("ranks", RANKS)
def test_write_volume(ranks, tmp_path):
    run("write_volume", ranks, tmp_path / "wave.h5")
    n = 45
    angle = 2 * np.pi / n * np.arange(n)
    z, y, x = np.meshgrid(angle, angle, angle, indexing="ij")
    now = np.exp(np.cos(z) + np.cos(y) * np.cos(2 * x))
    past = now.copy()
    n_ranks = 1 if ranks == "alone" else ranks
    with h5py.File(tmp_path / "wave.h5") as file:
        for step in range(61):
            if step % 20 == 0:
                group = file[f"step_{step}"]
                assert group.attrs["step"] == step
                assert group["pressure"].attrs["units"] in ("Pa", b"Pa")
                bound = 1e-4 * (now.max() - now.min())
                assert largest_error(group["pressure"][:], now) <= bound + ROUNDING
                assert group["rank"].dtype == np.int32
                owners, counts = np.unique(group["rank"][:], return_counts=True)
                assert list(owners) == list(range(n_ranks))
                assert counts.sum() == n**3
            laplace = -6 * now
            for axis in range(3):
                laplace += np.roll(now, 1, axis) + np.roll(now, -1, axis)
            past, now = now, 2 * now - past + 0.09 * laplace


@pytest.mark.parametrize("ranks", RANKS)
def test_particles(ranks, tmp_path):
    run("particles", ranks, tmp_path / "disc.h5")
    n = 30000
    ids = np.arange(n)
    radius = np.sqrt(0.25 + 2 * (ids + 0.5) / n)
    angle = np.fmod(ids * 0.6180339887498949, 1.0) * 2 * np.pi / 3
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    vx, vy = -np.sin(angle) / np.sqrt(radius), np.cos(angle) / np.sqrt(radius)
    with h5py.File(tmp_path / "disc.h5") as file:
        assert sorted(file) == [f"output_{i}" for i in range(5)]
        for output in range(5):
            group = file[f"output_{output}"]
            assert group.attrs["time"] == pytest.approx(output)
            order = np.argsort(group["id"][:])
            assert np.array_equal(group["id"][:][order], ids)
            for name, expected in (("x", x), ("y", y), ("vx", vx), ("vy", vy)):
                dataset = group[name]
                assert dataset.dtype == (np.float32 if name[0] == "v" else np.float64)
                slack = 2e-7 if name[0] == "v" else ROUNDING
                assert largest_error(dataset[:][order], expected) <= 1e-5 + slack
            for _ in range(50):
                for half in (0, 1):
                    pull = 0.01 / np.hypot(x, y) ** 3
                    vx, vy = vx - x * pull, vy - y * pull
                    if half == 0:
                        x, y = x + 0.02 * vx, y + 0.02 * vy


def rusanov(a, b):
    """Return the shallow-water flux from cells a to cells b; rows are height and discharge."""
    gravity = 9.81
    ua, ub = a[1] / a[0], b[1] / b[0]
    speed = np.maximum(
        np.abs(ua) + np.sqrt(gravity * a[0]), np.abs(ub) + np.sqrt(gravity * b[0])
    )
    fa = np.array([a[1], a[1] * ua + gravity * a[0] ** 2 / 2])
    fb = np.array([b[1], b[1] * ub + gravity * b[0] ** 2 / 2])
    return (fa + fb) / 2 - speed * (b - a) / 2


@pytest.mark.parametrize("ranks", RANKS)
def test_time_series(ranks, tmp_path):
    run("time_series", ranks, tmp_path / "canal.h5")
    x = (np.arange(1000) + 1 - 300) / 40.0
    cells = np.array([10 + np.exp(-x * x), np.zeros(1000)])
    with h5py.File(tmp_path / "canal.h5") as file:
        assert file["height"].shape == file["discharge"].shape == (40, 1000)
        assert file["height"].maxshape == (None, 1000)
        assert np.array_equal(file["time"][:], np.arange(40) * 12.5)
        for output in range(40):
            assert largest_error(file["height"][output], cells[0]) <= 1e-4 + ROUNDING
            bound = file["discharge"].attrs.get("tailrace_absolute_bound", 0)
            assert largest_error(file["discharge"][output], cells[1]) <= bound + ROUNDING
            for _ in range(25):
                into = rusanov(np.roll(cells, 1, 1), cells)
                cells = cells + 0.05 * (into - np.roll(into, -1, 1))


@pytest.mark.parametrize("name", ["write_field", "time_series", "write_volume", "particles"])
@pytest.mark.parametrize("option, status", [("--help", 0), ("--outptu", 2)])
def test_an_option_is_no_file_to_write(name, option, status, tmp_path):
    program = folder_of_examples() / name
    if not program.exists():
        pytest.skip(f"{program} is not built")
    told = subprocess.run([program, option], capture_output=True, text=True, cwd=tmp_path)
    assert told.returncode == status
    assert "usage: " in told.stdout and "[FILE]" in told.stdout
    assert list(tmp_path.iterdir()) == []

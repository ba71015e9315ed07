"""Application md: its own checks on several rank counts, its outputs, and an independent check of
its physics.

The file is compared with forces and energies that NumPy sums over all pairs of atoms, without
neighbour lists, cells, ghosts or ranks.
"""

import numpy as np
import pytest
from application_runs import (OUTPUTS, arrays, assert_within_bounds, exact_arrays,
                              facts_and_checks, run, start)

SMALL = ["--cells", 6, "--steps", 200]  # 864 atoms
SHORT = ["--cells", 5, "--steps", 24, "--every", 3]
LENGTH = 6 * (4 / 0.8442) ** (1 / 3)
TIME_STEP = 0.005


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run("md", tmp_path_factory.mktemp("md"), *SMALL)


def test_melts_as_in_lammps(alone):
    """LAMMPS's benchmark "lj": at step 100 T = 0.7575, U = -5.7585, P = 0.207 of 32,000 atoms."""
    found = facts_and_checks(alone)
    assert abs(found["potential at the start - LAMMPS's"]) < 1e-7  # all digits that LAMMPS prints
    assert abs(found["pressure at the start - LAMMPS's"]) < 1e-7
    assert found["momentum"] == 0
    assert found["late_temperature"] == pytest.approx(0.7575, abs=0.02)
    assert found["late_pressure"] == pytest.approx(0.207, abs=0.12)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_same_bits_on_any_number_of_ranks(ranks, alone, tmp_path):
    assert run("md", tmp_path, *SMALL, ranks=ranks)["state_hash"] == alone["state_hash"]


@pytest.mark.parametrize("ranks", [1, 4])
def test_runs_backwards_to_its_first_bits(ranks, tmp_path):
    report = run("md", tmp_path, "--cells", 5, "--steps", 100, "--turn-back", "on", ranks=ranks)
    assert facts_and_checks(report)["bits lost on the way there and back"] == 0


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs(output, ranks, tmp_path):
    without = run("md", tmp_path, *SHORT, ranks=ranks)
    report = run("md", tmp_path, *SHORT, ranks=ranks, output=output)
    assert report["state_hash"] == without["state_hash"]
    exact = exact_arrays("md", tmp_path, *SHORT, ranks=ranks)
    assert np.array_equal(exact["step"], np.arange(3, 25, 3))
    assert np.allclose(exact["time"], exact["step"] * TIME_STEP)
    assert exact["x"].shape == (8, 500)
    assert all(sorted(ids) == list(range(500)) for ids in exact["id"])
    assert_within_bounds(tmp_path / f"{output}.h5", exact)


def pairs(position):
    """Return differences, squared distances and a mask of interacting pairs, for all pairs."""
    apart = position[:, None] - position[None]
    apart -= LENGTH * np.round(apart / LENGTH)
    square = np.sum(apart**2, axis=2)
    np.fill_diagonal(square, np.inf)
    return apart, square, square < 2.5**2


def test_forces_and_energies_over_all_pairs(tmp_path):
    run("md", tmp_path, "--cells", 6, "--steps", 60, "--codec", "none", ranks=2, output="sync")
    file = arrays(tmp_path / "sync.h5")

    def of(names, step):
        order = np.argsort(file["id"][step])
        return np.stack([file[name][step][order].astype("f8") for name in names], axis=-1)

    position, velocity = of(["x", "y", "z"], -2), of(["vx", "vy", "vz"], -2)
    assert position.min() >= 0 and position.max() <= LENGTH * (1 + 1e-6)
    apart, square, near = pairs(position)
    power = np.where(near, square, np.inf) ** -3
    energy = np.sum(2 * (power**2 - power), axis=1)
    assert np.allclose(of(["energy"], -2)[:, 0], energy, atol=2e-4)
    force = np.sum((48 * (power**2 - power / 2) / square)[..., None] * apart, axis=1)
    moved = of(["x", "y", "z"], -1) - position
    moved -= LENGTH * np.round(moved / LENGTH)
    assert np.allclose(moved, TIME_STEP * velocity + TIME_STEP**2 / 2 * force, atol=3e-6)
    assert np.allclose(velocity.sum(axis=0), 0, atol=1e-3)

    distances = np.sqrt(square[square < 4**2])
    counts, edges = np.histogram(distances, bins=80, range=(0.5, 4))
    shells = 4 / 3 * np.pi * np.diff(edges**3) * 0.8442 * len(position)
    correlation = counts / shells
    assert edges[np.argmax(correlation)] == pytest.approx(1.08, abs=0.08)  # a liquid's first shell
    assert 2.3 < correlation.max() < 3.3
    assert correlation[edges[:-1] < 0.85].max() == 0


def test_refuses_boxes_that_are_too_small(tmp_path):
    done = start("md", "--cells", 4, "--file", tmp_path / "x.h5", ranks=3)
    assert done.returncode == 2
    assert "a part needs 2.8 sigma" in done.stderr

"""Application plasma: its own checks on several rank counts, its outputs, and its physics.

Growth rates are compared with roots of the dispersion relations that NumPy finds. The charge in the
file is compared with that of its electrons and of its electric field.
"""

import numpy as np
import pytest
from application_runs import (OUTPUTS, arrays, assert_within_bounds, exact_arrays,
                              facts_and_checks, run, start)

pytestmark = pytest.mark.full

SMALL = ["--nx", 64, "--ny", 16]
SHORT = ["--nx", 32, "--ny", 14, "--thermal", 0.05, "--steps", 24, "--every", 3]
PROBLEMS = {
    "weibel": ["--problem", "weibel"],
    "two-stream": ["--problem", "two-stream", "--beam", 0.3, "--mode", 4],
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plasma")
    return {problem: run("plasma", folder, *SMALL, *options)
            for problem, options in PROBLEMS.items()}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_conserves_and_grows(problem, alone):
    found = facts_and_checks(alone[problem])
    assert found["electrons lost"] == 0
    assert found["div E - rho"] < 1e-12  # in units of the mean charge density, after 300 steps
    assert found["div B"] < 1e-13
    assert abs(found["drift of the energy"]) < {"weibel": 5e-3, "two-stream": 2e-2}[problem]
    assert abs(found["growth rate / linear theory - 1"]) < 0.05
    kind = {"weibel": "magnetic", "two-stream": "electric"}[problem]
    assert found[f"largest_{kind}_energy"] > 0.05  # saturated, in units of the beams' energy


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_bits_on_any_number_of_ranks(problem, ranks, alone, tmp_path):
    report = run("plasma", tmp_path, *SMALL, *PROBLEMS[problem], ranks=ranks)
    assert report["state_hash"] == alone[problem]["state_hash"]


def test_the_same_bits_wherever_the_current_is_summed(alone, tmp_path):
    report = run("plasma", tmp_path, *SMALL, "--deposit", "device", ranks=2)
    assert report["state_hash"] == alone["weibel"]["state_hash"]


def growth_of(problem, mode, beam):
    """Return the fastest growth of the dispersion relation's roots, in a box of 12.8 c/omega_p."""
    k = 2 * np.pi * mode / 12.8
    gamma = np.sqrt(1 + beam**2)
    v = beam / gamma
    if problem == "weibel":  # polynomial in s, the rate
        return np.roots([1, 0, k**2 + gamma**-3, 0, -((v * k) ** 2) / gamma]).real.max()
    forth, back = np.poly1d([1, -k * v]) ** 2, np.poly1d([1, k * v]) ** 2  # polynomials
    return (2 * forth * back - gamma**-3 * (forth + back)).roots.imag.max()


@pytest.mark.parametrize("problem, mode, beam", [
    ("weibel", 1, 0.6), ("weibel", 2, 0.6), ("weibel", 3, 0.3), ("two-stream", 4, 0.3),
    ("two-stream", 3, 0.4),
])
def test_cold_beams_grow_as_theory_says(problem, mode, beam, tmp_path):
    report = run("plasma", tmp_path, "--ny", 4, "--problem", problem, "--mode", mode, "--beam",
                 beam, "--thermal", 0, "--seed-amplitude", 1e-4, "--steps", 300)
    facts = report["facts"]
    assert facts["growth_rate_theory"] == pytest.approx(growth_of(problem, mode, beam), rel=1e-6)
    assert facts["e_foldings"] > 2
    assert facts["growth_rate"] == pytest.approx(facts["growth_rate_theory"], rel=0.02)


@pytest.mark.parametrize("options", [
    ["--steps", 40], ["--thermal", 0.05, "--steps", 200], ["--seed-amplitude", 0, "--steps", 120],
])
def test_compares_growth_only_where_theory_holds(options, tmp_path):
    report = run("plasma", tmp_path, *SMALL, *options)
    assert not any("growth" in check["name"] for check in report["checks"])


def test_a_wave_that_is_stable_does_not_grow(tmp_path):
    """A short two-stream wave does not grow: theory gives 0, and the beams do not change."""
    report = run("plasma", tmp_path, "--ny", 4, "--problem", "two-stream", "--mode", 10, "--beam",
                 0.6, "--thermal", 0, "--steps", 100)
    assert report["facts"]["growth_rate_theory"] == growth_of("two-stream", 10, 0.6) == 0
    assert report["facts"]["largest_electric_energy"] < 1e-5


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs(output, ranks, tmp_path):
    without = run("plasma", tmp_path, *SHORT, ranks=ranks)
    report = run("plasma", tmp_path, *SHORT, ranks=ranks, output=output)
    assert report["state_hash"] == without["state_hash"]
    exact = exact_arrays("plasma", tmp_path, *SHORT, ranks=ranks)
    assert np.array_equal(exact["step"], np.arange(3, 25, 3))
    assert np.allclose(exact["time"], exact["step"] * 0.1)
    n = 8 * 32 * 14
    assert exact["ex"].shape == (8, 14, 32) and exact["x"].shape == (8, n)
    assert all(sorted(ids) == list(range(n)) for ids in exact["id"])
    assert_within_bounds(tmp_path / f"{output}.h5", exact)


def shares(position, n_nodes):
    """Return nodes and weights of quadratic splines, three for each position, in cells."""
    nearest = np.floor(position + 0.5)
    d = position - nearest
    weights = [(0.5 - d) ** 2 / 2, 0.75 - d**2, (0.5 + d) ** 2 / 2]
    return [((nearest.astype(int) + a - 1) % n_nodes, weights[a]) for a in range(3)]


def test_charge_of_the_file(tmp_path):
    run("plasma", tmp_path, "--nx", 48, "--ny", 20, "--thermal", 0.05, "--steps", 200, "--every",
        200, "--codec", "none", ranks=3, output="sync")
    file = {name: values[-1] for name, values in arrays(tmp_path / "sync.h5").items()}
    width = 0.2
    rho = np.ones((20, 48))
    for row, of_row in shares(file["y"].astype("f8") / width, 20):
        for column, of_column in shares(file["x"].astype("f8") / width, 48):
            np.subtract.at(rho, (row, column), file["weight"] * of_row * of_column)
    assert np.abs(rho).max() > 0.05  # the comparison is not trivial
    assert np.allclose(file["rho"], rho, atol=1e-4)
    ex, ey = file["ex"].astype("f8"), file["ey"].astype("f8")
    divergence = (ex - np.roll(ex, 1, axis=1) + ey - np.roll(ey, 1, axis=0)) / width
    assert np.allclose(divergence, file["rho"], atol=1e-5)


@pytest.mark.parametrize("ranks, options, text", [
    (4, ["--ny", 11], "3 rows for each of 4 ranks"),
    (1, ["--time-step", 0.15], "below 0.7 of --cell-width"),
])
def test_refuses(ranks, options, text, tmp_path):
    done = start("plasma", *options, "--file", tmp_path / "x.h5", ranks=ranks)
    assert done.returncode == 2
    assert text in done.stderr

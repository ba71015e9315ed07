"""Point selections of programs on parallel HDF5, on 1, 2 and 4 ranks.

Values equal those of a plain run, and the number of runs of elements is that of the lists."""

import re

import pytest
from hdf5_runs import ALL_FRONTS, patterns, same, verified

NAMES = ["runs", "scattered", "reads", "members"]
N_CELLS = 120 * 90


@pytest.mark.parametrize("front", ALL_FRONTS, ids=lambda end: f"hdf5{end}")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_points_are_taken_as_runs(tmp_path, ranks, front):
    patterns(NAMES, tmp_path / "plain", ranks, ours=False, front=front, program="write_points")
    said = patterns(NAMES, tmp_path / "ours", ranks, front=front, program="write_points")
    counts = {name: tuple(map(int, numbers)) for name, *numbers in
              re.findall(r"ours/(\w+)\.h5: .*irregular hyperslabs (\d+) elements in (\d+) runs",
                         said)}
    mine = N_CELLS // ranks
    assert counts == {
        "runs": (mine, 1),
        # Each of two datasets is written, partly written twice, and read.
        "scattered": (2 * (2 * mine + 500),) * 2,
        "reads": (4000, 4000),
        "members": (mine + mine // 2,) * 2,
    }
    for name in NAMES:
        same(tmp_path / "ours" / f"{name}.h5", tmp_path / "plain" / f"{name}.h5")


@pytest.mark.parametrize("options", ["codec=trz,bound=abs=1e-2", "mode=async", "memory=1100000"])
def test_points_under_options(tmp_path, options):
    """Chunks shared by ranks, staged in the background, or in a file if memory is short."""
    patterns(NAMES, tmp_path / "plain", 2, ours=False, program="write_points")
    # Pattern "reads" expects exact values, and reads those of other ranks independently after a
    # flush, which mode=async refuses.
    lossy = "trz" in options
    names = [name for name in NAMES if name != "reads" or "memory" in options]
    patterns(names, tmp_path / "ours", 2, program="write_points", TAILRACE_OPTIONS=options)
    for name in names:
        one, other = tmp_path / "plain" / f"{name}.h5", tmp_path / "ours" / f"{name}.h5"
        if lossy:
            done = verified(one, other)
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            same(other, one)

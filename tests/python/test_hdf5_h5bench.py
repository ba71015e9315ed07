"""h5bench's kernels, rewritten in h5bench_pattern.c, on plain parallel HDF5 and with our library.

Both files have the same values, and the read kernel finds them in both.
"""

import json
import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, launcher
from hdf5_runs import FRONTS, built, filters_of, program_of, same, served_by

pytestmark = pytest.mark.sample(3)

SMALL = ["--dims", "4096", "--steps", "2"]
RANKS = pytest.mark.parametrize("ranks", [1, 2, 4])
#: Options of each kernel's writes (memory, file, dimensions, transfers) and of its reads.
KERNELS = {
    "1d": ([*SMALL], [["--part", "full"], ["--part", "partial", "--transfers", "independent"],
                      ["--part", "strided", "--block", "4", "--stride", "16"]]),
    "1d_independent": ([*SMALL, "--transfers", "independent", "--flush", "steps"],
                       [["--memory", "interleaved"]]),
    "2d_from_structures": (["--dims", "64x100", "--steps", "2", "--memory", "interleaved"],
                           [["--part", "partial"], ["--part", "strided", "--stride", "32"]]),
    "3d": (["--dims", "8x20x30", "--steps", "2", "--flush", "never"],
           [["--transfers", "independent"], ["--memory", "interleaved", "--part", "partial"]]),
    "1d_strided": ([*SMALL, "--in-file", "strided", "--block", "16", "--stride", "24"],
                   [["--memory", "interleaved"]]),
    "structures": ([*SMALL, "--memory", "interleaved", "--in-file", "interleaved"],
                   [["--memory", "interleaved"], ["--memory", "contiguous", "--part", "partial"]]),
    "members": ([*SMALL, "--in-file", "interleaved", "--transfers", "independent"],
                [["--memory", "interleaved"], ["--part", "strided"]]),
}
IN_STRUCTURES = ("structures", "members")


def pattern(command, path, ranks, words, front="", ours=False, code=0, **more):
    """Run h5bench_pattern. @returns the program's numbers, and its stderr."""
    served = [f"{name}={value}" for name, value in served_by(front).items()] if ours else []
    words = [launcher(), "-n", ranks, "env", *served, program_of(front, "h5bench_pattern"), command,
             path, *words]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE_REPORT": "1", **more})
    assert done.returncode == code or code is None, done.stdout + done.stderr
    numbers = json.loads(done.stdout) if done.returncode == 0 else {}
    return numbers, done.stderr


def both(command, tmp_path, ranks, words, front="", **more):
    """Run plain and served; return the paths of both files, and the plain run's numbers."""
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    numbers, _ = pattern(command, plain, ranks, words, front)
    served, said = pattern(command, ours, ranks, words, front, ours=True, **more)
    assert "ours.h5: " in said
    assert served["raw_bytes"] == numbers["raw_bytes"] and set(served) == set(numbers)
    return plain, ours, numbers


def same_blocks(ours, plain):
    """Compare written blocks. HDF5 leaves random bytes between them, and we leave fill values."""
    at = np.arange(4096)
    with h5py.File(ours) as mine, h5py.File(plain) as wanted:
        for step in ("Timestep_0", "Timestep_1"):
            assert set(mine[step]) == set(wanted[step])
            for name, dataset in mine[step].items():
                written = np.tile((at % 24 < 16) & (at < 4096 // 24 * 24), len(dataset) // 4096)
                values = dataset[()]
                assert (values[~written] == 0).all()
                np.testing.assert_array_equal(values[written], wanted[step][name][()][written])


@FRONTS
@RANKS
@pytest.mark.parametrize("kernel", [
    pytest.param(kernel, marks=[] if kernel in ("1d", "members") else pytest.mark.full)
    for kernel in KERNELS])
def test_kernels_write_and_read_the_same(kernel, ranks, front, tmp_path):
    words, reads = KERNELS[kernel]
    plain, ours, numbers = both("write", tmp_path, ranks, words, front)
    if kernel == "1d_strided":
        same_blocks(ours, plain)
    else:
        same(ours, plain)
    with h5py.File(ours) as file:
        for step in range(2):
            group = file[f"Timestep_{step}"]
            assert set(group) == ({"particles"} if kernel in IN_STRUCTURES else
                                  {"x", "y", "z", "px", "py", "pz", "id_1", "id_2"})
            if kernel not in IN_STRUCTURES:
                assert filters_of(group["x"]) == [2, 1] and len(np.unique(group["x"])) > 100
    for more in reads:
        base = [word for word in words if word not in ("--flush", "never", "steps")]
        for path in (plain, ours):
            read, _ = pattern("read", path, ranks, [*base, *more], front)
            served, _ = pattern("read", path, ranks, [*base, *more], front, ours=True)
            assert served["raw_bytes"] == read["raw_bytes"] <= numbers["raw_bytes"]


def test_the_read_kernel_finds_another_value(tmp_path):
    """The program's own comparison can fail."""
    pattern("write", tmp_path / "one.h5", 2, SMALL)
    with h5py.File(tmp_path / "one.h5", "r+") as file:
        file["Timestep_1/py"][5000] += 0.5
    pattern("read", tmp_path / "one.h5", 2, [*SMALL, "--bound", "0.6"])
    _, said = pattern("read", tmp_path / "one.h5", 2, SMALL, code=None)
    assert "rank 1: " in said and "options.bound does not hold" in said


@RANKS
def test_kernels_beside_computation_and_within_a_bound(ranks, tmp_path):
    options = "mode=async;*: codec=trz,bound=abs=1e-2,roles=off"
    words = [*SMALL, "--flush", "steps", "--compute", "0.05"]
    plain, ours, _ = both("write", tmp_path, ranks, words, TAILRACE_OPTIONS=options)
    plugins = {"HDF5_PLUGIN_PATH": str(built("lib", "hdf5", "plugin"))}
    pattern("read", ours, ranks, [*SMALL, "--bound", "1e-2"], **plugins)
    _, said = pattern("read", ours, ranks, SMALL, code=None, **plugins)
    assert "options.bound does not hold" in said
    with h5py.File(ours) as file:
        assert filters_of(file["Timestep_0/x"]) == [481]
        assert file["Timestep_0/x"].id.get_storage_size() < plain.stat().st_size / 40


@FRONTS
@RANKS
def test_small_writes_and_small_datasets(ranks, front, tmp_path):
    """Rank 0 writes most of them; all ranks write those of 40 KB."""
    for command, words, names in (("small", ["--calls", 200, "--bytes", 256], ["values"]),
                                  ("tables", ["--datasets", 40, "--bytes", 400], []),
                                  ("tables", ["--datasets", 40, "--bytes", 40000],
                                   ["table_00000", "table_00039"])):
        plain, ours, _ = both(command, tmp_path, ranks, words, front)
        same(ours, plain)
        with h5py.File(ours) as file:
            assert all((filters_of(item) == [2, 1]) == bool(names) for item in file.values())
            assert set(names) <= set(file)


@FRONTS
@RANKS
def test_plotfiles_with_filters_of_their_own_and_without(ranks, front, tmp_path):
    words = ["--components", 3, "--boxes", 8, "--cells", 8]
    plain, ours, _ = both("plotfile", tmp_path, ranks, words, front)
    same(ours, plain)
    with h5py.File(ours) as file:
        assert file["level_0/data:datatype=0"].shape == (3 * 8 * 8**3 * ranks,)
        exact = file["level_0/data:datatype=0"][()]
    pattern("plotfile", tmp_path / "filter.h5", ranks, [*words, "--chunk", 1024, "--filter", "1:1"],
            front)
    with h5py.File(tmp_path / "filter.h5") as file:
        values = file["level_0/data:datatype=0"]
        assert filters_of(values) == [1] and values.chunks == (1024,)
        np.testing.assert_array_equal(values[()], exact)

"""examples/restart*: a run that is killed again and again, and continued on other numbers of ranks,
ends with the bits of an undisturbed run. In C++, C, Fortran and Python. Nothing but the program
itself recovers the file.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import python_package
from application_runs import application
from cli_tools import ENVIRONMENT, ROOT, launcher, program

N_STEPS = 40
SHAPE = (96, 160)
#: Kills of each program and mode. The full tier has 50 kills or more of each language.
N_KILLS = 17 if os.environ.get("TAILRACE_TEST_TIER", "full") == "full" else 2
PROGRAMS = [("restart", mode) for mode in ("sync", "async", "in_situ")]
PROGRAMS += [(name, mode) for name in ("restart_in_c", "restart_in_fortran")
             for mode in ("sync", "async", "in_situ")]
PROGRAMS += [("restart.py", "sync")]


def expected():
    """Return the steps of a run that is not killed."""
    u = (np.arange(SHAPE[0] * SHAPE[1], dtype="f8") + 1).reshape(SHAPE) / 20000
    steps = []
    for _ in range(N_STEPS):
        u = 2.75 * u * (1 - u)
        steps.append(u)
    return np.array(steps)


def command(name, mode, path, ranks):
    """Return the words and environment of a run on `ranks` ranks."""
    start = [launcher(), "-n", str(ranks)]
    if not name.endswith(".py"):
        return [*start, str(application(name)), str(path), mode, str(N_STEPS)], ENVIRONMENT
    pytest.importorskip("mpi4py")
    environment = python_package.package_environment()
    if not list(pathlib.Path(environment["TAILRACE_ENGINE_DIR"]).glob("_mpi*.so")):
        pytest.skip("built without MPI")
    words = [*start, python_package.sys.executable, str(ROOT / "examples" / name), str(path),
             str(N_STEPS)]
    return words, environment


def children_of(process):
    return [int(child) for tasks in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
            for child in tasks.read_text().split()]


def run(name, mode, path, ranks, kill_after_s=None):
    """Run the program, and kill all its ranks some time after it has begun its steps. Return the
    seconds that its steps took, None if it was killed before it ended; and its first step."""
    words, environment = command(name, mode, path, ranks)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment) as process:
        begun = process.stdout.readline()
        start = time.monotonic()
        killed = []
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            killed = children_of(process)
            for rank in killed:
                os.kill(rank, signal.SIGKILL)
        _, errors = process.communicate(timeout=600)
    assert begun.startswith("from step "), errors
    assert killed or process.returncode == 0, errors
    first_step = int(begun.split()[2])
    return time.monotonic() - start if process.returncode == 0 else None, first_step


def steps_in(path):
    """Check all steps in a recovered copy of the file, and return their number."""
    folder = path.parent / "copy"
    folder.mkdir()
    for part in path.parent.glob(f"{path.name}*"):
        shutil.copy(part, folder)
    # A job that is killed before its first commit leaves no file.
    subprocess.run([program(), "recover", "--apply", folder / path.name], env=ENVIRONMENT,
                   capture_output=True)
    found = np.empty((0, *SHAPE))
    if (folder / path.name).exists():
        with h5py.File(folder / path.name) as file:
            if "u" in file:  # Python's first flush may have the definitions only.
                found = file["u"][...]
    shutil.rmtree(folder)
    np.testing.assert_allclose(found, expected()[:len(found)], rtol=1e-12)
    return len(found)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name, mode", PROGRAMS)
def test_a_killed_run_is_continued_on_other_ranks(name, mode, tmp_path):
    moments = random.Random(f"{name} {mode}")
    path = tmp_path / "run.h5"
    whole = tmp_path / "whole.h5"
    longest_s, _ = run(name, mode, whole, 2)
    n_runs = n_kills = n_before = n_continued = 0
    while (n_kills < N_KILLS or n_continued == 0) and n_runs < 10 * N_KILLS:
        kill_after_s = moments.uniform(0, longest_s)
        took_s, first_step = run(name, mode, path, moments.randint(1, 4), kill_after_s)
        assert first_step == n_before
        n_kills += took_s is None
        n_runs += 1
        n_steps = steps_in(path)
        assert n_steps >= n_before, "a committed step is gone"
        n_continued += 0 < n_before < n_steps
        n_before = n_steps
        if n_steps == N_STEPS:  # Begin anew: this one has ended.
            for part in tmp_path.glob("run.h5*"):
                part.unlink()
            n_before = 0
    assert n_kills >= N_KILLS and n_continued > 0
    run(name, mode, path, 3)
    with h5py.File(path) as file, h5py.File(whole) as undisturbed:
        assert np.array_equal(file["u"][...], undisturbed["u"][...])
        assert file["u"].shape == (N_STEPS, *SHAPE)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name, mode", PROGRAMS)
def test_a_finished_run_started_again_has_nothing_to_do(name, mode, tmp_path):
    """It opens the file, defines the field once more, and closes without a step."""
    path = tmp_path / "run.h5"
    run(name, mode, path, 2)
    assert steps_in(path) == N_STEPS
    run(name, mode, path, 3)
    assert steps_in(path) == N_STEPS


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in PROGRAMS))
def test_remains_of_a_first_commit_are_continued(name, tmp_path):
    """A kill before the first commit leaves a temporary file without content; a kill between the
    first commit and the renaming leaves a complete one. The run begins anew, or continues."""
    path, partial = tmp_path / "run.h5", tmp_path / "run.h5.partial"
    partial.write_bytes(bytes(5000))
    assert run(name, "sync", path, 2)[1] == 0
    assert steps_in(path) == N_STEPS and not partial.exists()
    path.rename(partial)
    assert run(name, "sync", path, 3)[1] == N_STEPS
    assert steps_in(path) == N_STEPS and not partial.exists()

"""Files that a program does not close before MPI_Finalize: safe in every mode, and reported truly.

tests/mpi/left_open.cpp writes four steps and leaves the file open; h5py reads what is in it.
"""

import subprocess

import h5py
import numpy as np
import pytest

import python_package
from application_runs import build_folder
from cli_tools import ENVIRONMENT, launcher

MODES = {"sync": 4, "async": 3, "in_situ": 3, "in_situ,writers=node": 3}
LEFT = "{} was left without close(); {}; call close() before MPI_Finalize"
OUTCOMES = {4: "all 4 steps are in it",
            3: "step 3 is lost, the last step in it is step 2 (counted from 0)"}


def run(path, what, options, ranks, **environment):
    program = build_folder() / "bin" / "left_open"
    if not program.exists():
        pytest.skip(f"{program} is not built (no MPI)")
    done = subprocess.run([launcher(), "-n", str(ranks), str(program), str(path), what, options],
                          capture_output=True, text=True, timeout=120,
                          env={**ENVIRONMENT, **environment})
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, [line.removeprefix("tailrace: ") for line in done.stderr.splitlines()
                         if line.startswith("tailrace: ")]


def check_steps(path, n_steps):
    with h5py.File(path) as file:
        steps = file["u"][...]
    assert len(steps) == n_steps
    for step, values in enumerate(steps):
        assert (np.floor(values) == step).all()


@pytest.mark.parametrize("what", ["cpp", "c", "exit"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_file_left_open_at_finalize_is_abandoned_there(tmp_path, what, mode, ranks):
    path = tmp_path / "left.h5"
    printed, lines = run(path, what, f"mode={mode}", ranks)
    how = "was left without close()" + (" at the end of the program" if what == "exit" else "")
    expected = LEFT.format(path, OUTCOMES[MODES[mode]]).replace("was left without close()", how)
    assert lines == [expected] and printed == ""
    check_steps(path, MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_between_nodes(tmp_path, mode):
    path = tmp_path / "left.h5"
    _, lines = run(path, "cpp", f"mode={mode}", 4, TAILRACE_RANKS_PER_NODE="2")
    assert lines == [LEFT.format(path, OUTCOMES[MODES[mode]])]
    check_steps(path, MODES[mode])


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_is_lost_with_an_open_step(tmp_path, mode, ranks):
    path = tmp_path / "left.h5"
    _, lines = run(path, "open", f"mode={mode}", ranks)
    lost = OUTCOMES[MODES[mode]] + "; the values put after the last end_step are lost"
    assert lines == [LEFT.format(path, lost)]
    check_steps(path, MODES[mode])


@pytest.mark.parametrize("mode", ["sync", "async", "in_situ"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_close_after_finalize_is_an_error(tmp_path, mode, ranks):
    path = tmp_path / "left.h5"
    printed, _ = run(path, "close", f"mode={mode}", ranks)
    assert printed == (f'"{path}" was open at MPI_Finalize, which abandoned it; '
                       "call close() before MPI_Finalize\n")
    check_steps(path, MODES[mode])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_failure_is_reported_once(tmp_path, mode):
    path = tmp_path / "left.h5"
    printed, lines = run(path, "exception", f"mode={mode}", 2)
    assert "step 4 is lost" in printed and lines == []
    check_steps(path, 4)


def test_every_rank_can_log_it(tmp_path):
    path = tmp_path / "left.h5"
    printed, lines = run(path, "log", "mode=async", 2)
    assert lines == []
    said = sorted(printed.splitlines())
    assert said[0] == f"rank 0: {LEFT.format(path, OUTCOMES[3])}"
    # Only rank 0 knows whether the commit of step 2 was completed.
    assert said[1].startswith(f"rank 1: {path} was left without close(); steps 2 and 3 may be lost")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_reader_ends_quietly_after_finalize(tmp_path, ranks):
    path = tmp_path / "left.h5"
    assert run(path, "reader", "mode=sync", ranks) == ("", [])
    check_steps(path, 4)


@pytest.mark.parametrize("mode", ["sync", "async", "in_situ"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_fortran_program_forgets_the_close(tmp_path, mode, ranks):
    program = build_folder() / "bin" / "fortran_left_open"
    if not program.exists():
        pytest.skip(f"{program} is not built (no Fortran compiler, or no MPI for Fortran)")
    path = tmp_path / "left.h5"
    done = subprocess.run([launcher(), "-n", str(ranks), str(program), str(path), mode],
                          capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = LEFT.format(path, OUTCOMES[MODES[mode]]).replace(
        "close();", "close() at the end of the program;")
    assert f"tailrace: {outcome}\n" in done.stderr
    with h5py.File(path) as file:
        assert file["u"].shape[0] == MODES[mode]


@pytest.mark.parametrize("finalizes", [True, False])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_python_program_forgets_the_close(tmp_path, finalizes, ranks):
    python_package.load()
    pytest.importorskip("mpi4py")
    path = tmp_path / "left.nc"
    source = f"""
from mpi4py import MPI
import tailrace
file = tailrace.open({str(path)!r}, "w", comm=MPI.COMM_WORLD)
file.create_dimension("x", 4)
file.create_variable("v", "x", "f4")[:] = 1
file.flush()
if {finalizes}: MPI.Finalize()
"""
    done = subprocess.run([launcher(), "-n", str(ranks), python_package.sys.executable, "-c",
                           source], capture_output=True, text=True, timeout=120,
                          env=python_package.package_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("the program did not close") == (1 if ranks > 1 else 0), done.stderr
    with h5py.File(path) as file:
        assert (file["v"][...] == 1).all()

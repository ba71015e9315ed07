"""libtailrace_idle.so: a program's waits in MPI are marked, and are idle time in mode=in_situ.

tests/idle/waits.c and waits_in_fortran.f90 check themselves which calls are marked.
tests/hdf5_programs/write_idle.c is a program with unequal ranks, which knows nothing of Tailrace.
"""

import os
import re
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, launcher, tailrace
from hdf5_runs import built, patterns, program_of, run, same, served_by

IDLE = "libtailrace_idle.so"
OPTIONS = "mode=in_situ,codec=deflate,level=6"
COUNT = re.compile(r"; (\d+) of (\d+) chunks encoded while the program waited in MPI(.*)")


def idle_run(name, *words, preload=(IDLE,), yields="0"):
    libraries = ":".join(str(built("lib", each) if each == IDLE else built("bin", "idle", each))
                         for each in preload)
    words = [launcher(), "-n", "2", "env", f"LD_PRELOAD={libraries}", built("bin", "idle", name),
             *words]
    environment = {**ENVIRONMENT, "OMPI_MCA_mpi_yield_when_idle": yields}
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120,
                          env=environment)


@pytest.mark.parametrize("yields", ["0", "1"])
def test_each_blocking_call_of_the_main_thread_is_marked(yields):
    done = idle_run("idle_waits", yields=yields)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "36 calls" in done.stdout and " 0 failed" in done.stdout


def test_without_the_library_the_calls_do_the_same():
    done = idle_run("idle_waits", "plain", preload=())
    assert done.returncode == 0, done.stdout + done.stderr


def test_calls_of_fortran_are_marked():
    done = idle_run("idle_waits_in_fortran")
    assert done.returncode == 0 and "8 calls, 0 failed" in done.stdout, done.stdout + done.stderr


def test_another_tool_behind_the_library_still_sees_all_calls():
    done = idle_run("idle_waits", preload=(IDLE, "libidle_tool.so"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("1 barriers\n") == 2


@pytest.mark.parametrize(("name", "preload", "finds"), [
    ("idle_native", (IDLE,), True), ("idle_native_linked", (), True), ("idle_native", (), False)])
def test_a_program_on_our_interface_needs_no_marks(name, preload, finds, tmp_path):
    """The library is preloaded, or the program is linked to it."""
    done = idle_run(name, tmp_path / "out.h5", preload=preload)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (float(done.stdout.split()[1]) > 0) == finds
    with h5py.File(tmp_path / "out.h5") as file:
        i = np.arange(512 // 2 * 1024)
        for step in range(4):
            ranks = [((rank + step + i) % 1000 * 0.5).reshape(-1, 1024) for rank in range(2)]
            np.testing.assert_array_equal(file["u"][step], np.concatenate(ranks))


def in_situ(folder, ranks, idle, front="", **more):
    """Run write_idle in mode=in_situ. @returns what its report says of waits, and stderr."""
    folder.mkdir()
    served = dict(served_by(front))
    preload = [*([built("lib", IDLE)] if idle else []), served.pop("LD_PRELOAD", None)]
    served["LD_PRELOAD"] = ":".join(str(each) for each in preload if each is not None)
    words = ["env", *[f"{name}={value}" for name, value in served.items() if value],
             program_of(front, "write_idle"), folder, "steps"]
    said = run(words, ranks, ours=False,
               **{"TAILRACE_OPTIONS": OPTIONS, "OMPI_MCA_mpi_yield_when_idle": "0", **more})
    return COUNT.search(said), said


@pytest.mark.parametrize("ranks", [2, 3])
def test_an_unchanged_program_encodes_while_it_waits(ranks, tmp_path):
    patterns(["steps"], tmp_path / "plain", ranks, ours=False, program="write_idle")
    found, said = in_situ(tmp_path / "idle", ranks, idle=True)
    assert found, said
    assert 0 < int(found[1]) < int(found[2]) == 4 * 64 and found[3] == ""
    without, said = in_situ(tmp_path / "without", ranks, idle=False)
    assert without, said
    assert without[1] == "0" and without[2] == found[2] and IDLE in without[3]
    for name in ("idle", "without"):
        same(tmp_path / name / "steps.h5", tmp_path / "plain" / "steps.h5")


def test_chunks_are_those_of_mode_sync(tmp_path):
    sync = patterns(["steps"], tmp_path / "sync", 2, program="write_idle",
                    TAILRACE_OPTIONS=OPTIONS.replace("in_situ", "sync"))
    found, said = in_situ(tmp_path / "idle", 2, idle=True)
    size = re.compile(r"in chunks (.*?), ")
    assert found and size.search(said)[1] == size.search(sync)[1]


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", ["memory=3MB", "threads=1", "fsync=off"])
def test_other_options_change_nothing(options, tmp_path):
    patterns(["steps"], tmp_path / "plain", 2, ours=False, program="write_idle")
    found, said = in_situ(tmp_path / "idle", 2, idle=True,
                          TAILRACE_OPTIONS=f"{OPTIONS},{options}")
    assert found, said
    same(tmp_path / "idle" / "steps.h5", tmp_path / "plain" / "steps.h5")


def test_in_the_other_modes_the_library_marks_nothing(tmp_path):
    found, said = in_situ(tmp_path / "idle", 2, idle=True, TAILRACE_OPTIONS="mode=async")
    assert found is None and "concurrently" in said
    assert os.listdir(tmp_path / "idle") == ["steps.h5"]


# --- programs on PnetCDF: tests/pnetcdf/idle_steps.c

ROWS, ROW = 516, 1024
PNETCDF_CHUNKS = "; u: chunk=1x16x1024"


def steps_of_pnetcdf(folder, ranks, end="", idle=True, code=0, options="mode=in_situ", **more):
    """Run idle_steps. @returns what its report says of waits, its stderr and its file."""
    folder.mkdir()
    preload = [*([built("lib", IDLE)] if idle else []), built("lib", "libtailrace_pnetcdf.so")]
    words = [launcher(), "-n", str(ranks), "env", f"LD_PRELOAD={':'.join(map(str, preload))}",
             built("bin", "pnetcdf", "idle_steps"), folder / "steps.nc", end]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=300,
        env={**ENVIRONMENT, "TAILRACE_REPORT": "1", "OMPI_MCA_mpi_yield_when_idle": "0",
             "TAILRACE_OPTIONS": f"{options},codec=deflate,level=6{PNETCDF_CHUNKS}", **more})
    assert (done.returncode == 0) == (code == 0), done.stdout + done.stderr
    return COUNT.search(done.stderr), done.stderr, folder / "steps.nc"


def expected_steps(n=4):
    record = np.arange(ROWS * ROW).reshape(ROWS, ROW) % 1000
    return (record[None] + np.arange(n)[:, None, None]) * 0.5


def check_steps(path):
    with netCDF4.Dataset(path) as file:
        np.testing.assert_array_equal(file["u"][:], expected_steps())
        np.testing.assert_array_equal(file["later"][:], np.arange(ROWS))
        assert file["u"].units == "K" and len(file.dimensions["time"]) == 4


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_pnetcdf_program_encodes_while_it_waits(ranks, tmp_path):
    found, said, path = steps_of_pnetcdf(tmp_path / "idle", ranks)
    assert found, said
    assert 0 < int(found[1]) < int(found[2]) and int(found[2]) >= 4 * 33 and found[3] == ""
    check_steps(path)
    without, said, path = steps_of_pnetcdf(tmp_path / "without", ranks, idle=False)
    assert without, said
    assert without[1] == "0" and without[2] == found[2] and IDLE in without[3]
    check_steps(path)
    found, said, path = steps_of_pnetcdf(tmp_path / "sync", ranks, options="mode=sync")
    assert found is None and "steps.nc: " in said and "concurrently" not in said
    check_steps(path)


@pytest.mark.parametrize("options", [
    "mode=in_situ,memory=3MB", "mode=in_situ,threads=1", "mode=async", "mode=async,fsync=off",
    "mode=in_situ,layout=dense", "mode=in_situ,layout=front", "mode=async,bound=abs=1e-9"])
def test_options_of_a_pnetcdf_program(options, tmp_path):
    found, said, path = steps_of_pnetcdf(tmp_path / "out", 2, "sync", options=options)
    assert (found is None) == ("async" in options) and "concurrently" in said
    check_steps(path)


@pytest.mark.parametrize("mode", ["async", "in_situ"])
def test_an_ended_pnetcdf_program_keeps_all_completed_flushes(mode, tmp_path):
    """A kill leaves the flush before the last one, or the last; ncmpi_abort completes it."""
    for end, code in (("kill", 1), ("exit", 1)):
        _, said, path = steps_of_pnetcdf(tmp_path / end, 2, end, code=code,
                                         options=f"mode={mode}")
        tailrace("recover", "--apply", path)
        with netCDF4.Dataset(path) as file:
            n = len(file.dimensions["time"])
            assert n == 3, said
            np.testing.assert_array_equal(file["u"][:], expected_steps(n))
        assert end != "exit" or "flush that a later call completed" in said
    _, _, path = steps_of_pnetcdf(tmp_path / "abort", 2, "abort", options=f"mode={mode}")
    with netCDF4.Dataset(path) as file:
        np.testing.assert_array_equal(file["u"][:], expected_steps())


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mode", ["async", "in_situ"])
def test_a_full_disk_is_an_error_of_the_completing_call(mode, ranks, tmp_path):
    """All ranks fail in the call that completes the flush; a later flush has all values."""
    _, said, path = steps_of_pnetcdf(tmp_path / "out", ranks, "limit", options=f"mode={mode}")
    failed = re.findall(r"rank \d: failed as it should: (\w+)", said)
    assert failed == ["ncmpi_put_vara_double_all"] * ranks, said
    assert "flush in the background (mode=async or in_situ)" in said and "File too large" in said
    check_steps(path)

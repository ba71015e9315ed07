"""Files with names as long as the file system allows (255 bytes), through every door.

Locks, journals and temporary files then have names of their own (hdf5/file_names.hpp)."""

import os
import subprocess

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ENVIRONMENT, launcher, tailrace
from hdf5_runs import built
from test_doctor import PNETCDF_PROGRAM
from test_hdf5_unserved import PROGRAM, compiled
from test_kill import check, run_and_kill

package = python_package.load()
FIELD = np.arange(4096, dtype="f4").reshape(64, 64)


@pytest.fixture(params=[255, 252, 246, 243], ids="{}_bytes".format)
def name(request):
    text = "é" * 60 + "x" * 300
    whole = text.encode()[:request.param - 3].decode() + ".h5"
    assert len(whole.encode()) == request.param
    return whole


def left_in(folder):
    return sorted(os.listdir(folder))


def test_repack_concat_export(tmp_path, name):
    source = tmp_path / "in"
    source.mkdir()
    for each in (name, "other.h5"):
        with h5py.File(source / each, "w") as file:
            file["u"] = FIELD
    out = tmp_path / "out"
    out.mkdir()
    tailrace("repack", source / name, "-o", out / name, ranks=2)
    assert left_in(out) == [name]
    tailrace("repack", source / name, "-o", out / name, "--force", "--layout", "front")
    tailrace("verify", source / name, out / name)
    assert tailrace("recover", out / name).returncode == 0
    tailrace("concat", source / name, source / "other.h5", "-o", out / name, "--force", ranks=2)
    with h5py.File(out / name) as file:
        assert (file["u"][:] == np.concatenate([FIELD, FIELD])).all()
    tailrace("concat", "-a", source / "other.h5", "-o", out / name)
    with h5py.File(out / name) as file:
        assert file["u"].shape == (192, 64)
    tailrace("export", out / name, "-o", out / name, "--only", "/u", code=2)  # Its own input.
    npy = name[:-4] + ".npy"
    tailrace("export", out / name, "-o", out / npy, "--only", "/u")
    assert np.load(out / npy).shape == (192, 64)
    assert left_in(out) == sorted([name, npy])


def test_python_writes_and_appends(tmp_path, name):
    with package.open(tmp_path / name, "w") as file:
        file.create_variable("u", ("y", "x"), data=FIELD)
        with pytest.raises(OSError, match="is being written"):
            package.open(tmp_path / name, "a")
    with package.open(tmp_path / name, "a") as file:
        file["u"][0] = 7
    with h5py.File(tmp_path / name) as file:
        assert (file["u"][0] == 7).all() and (file["u"][1:] == FIELD[1:]).all()
    assert left_in(tmp_path) == [name]


def test_hdf5_and_pnetcdf_programs(tmp_path, name):
    (tmp_path / "out").mkdir()
    for source, library, words in [
            (PROGRAM, "libtailrace_hdf5.so", ("mpi",)),
            (PNETCDF_PROGRAM, "libtailrace_pnetcdf.so", ())]:
        is_hdf5 = source is PROGRAM
        program = compiled(tmp_path, source, "-shlib" if is_hdf5 else "-lpnetcdf",
                           compiler="h5pcc" if is_hdf5 else "mpicc")
        done = subprocess.run(
            list(map(str, [launcher(), "-n", "2", "env", f"LD_PRELOAD={built('lib', library)}",
                           program, tmp_path / "out" / name, *words])),
            capture_output=True, text=True, timeout=600, env=ENVIRONMENT, check=False)
        assert done.returncode == 0, done.stderr
        assert left_in(tmp_path / "out") == [name]


def test_a_killed_job_is_recovered(tmp_path, name):
    for attempt in range(3):
        path = tmp_path / f"{attempt}" / name
        path.parent.mkdir()
        committed = run_and_kill(path, "sync", "", 0.3 + 0.2 * attempt)
        if path.exists():
            tailrace("recover", path, "--apply")
            check(path, committed)
        else:
            assert not committed
            tailrace("recover", path, "--apply", code=1 if left_in(path.parent) else 2)
        assert all(len(left.encode()) <= 255 for left in left_in(path.parent))


def test_names_differ_by_their_ends(tmp_path):
    """Two long names with one beginning have two locks."""
    first, second = ("y" * 251 + end for end in ("a.h5", "b.h5"))
    with package.open(tmp_path / first, "w") as one, package.open(tmp_path / second, "w") as two:
        one.create_variable("u", ("y", "x"), data=FIELD)
        two.create_variable("u", ("y", "x"), data=-FIELD)
    for name, sign in ((first, 1), (second, -1)):
        with h5py.File(tmp_path / name) as file:
            assert (file["u"][:] == sign * FIELD).all()
    assert left_in(tmp_path) == [first, second]

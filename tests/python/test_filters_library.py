"""libtailrace_filters.so: a C and a Fortran program give their own HDF5 the filters trz and xor.

Programs are linked to each installed HDF5, and HDF5_PLUGIN_PATH is not set.
"""

import os
import shutil
import subprocess

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
import pytest

import python_package
from application_runs import build_folder
from cli_tools import ENVIRONMENT, ROOT

SOURCE = ROOT / "tests" / "package" / "filters_program.c"
EXPECTED = 100 * np.sin(np.arange(20000) * 1e-3)


def library():
    path = build_folder() / "lib" / "libtailrace_filters.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def flags_of(package):
    """Return pkg-config's flags for an HDF5, with MPI if it is parallel; skip if it is missing."""
    folders = [str(folder / "lib" / "pkgconfig")
               for folder in (ROOT / "build").glob("hdf5-1.14*/prefix")]
    done = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, "PKG_CONFIG_PATH": os.pathsep.join(folders)})
    if done.returncode != 0:
        pytest.skip(f"no {package} by pkg-config")
    words = done.stdout.split()
    return words + [f"-Wl,-rpath,{word[2:]}" for word in words if word.startswith("-L")]


def built(folder, words, compiler="cc", source=SOURCE):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    own = library().parent
    program = folder / "filters_program"
    done = subprocess.run(
        [compiler, source, "-I", ROOT / "include", "-o", program, f"-L{own}", "-ltailrace_filters",
         f"-Wl,-rpath,{own}", *words, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def run(*words, code=0):
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "HDF5_PLUGIN_PATH"}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                          env=environment, check=False)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_file(path):
    python_package.load()  # Registers both filters with h5py.
    with h5py.File(path) as file:
        for name, number, bound in (("trz", 481, 0.5), ("xor", 482, 0.0)):
            creation = file[name].id.get_create_plist()
            assert [creation.get_filter(i)[0] for i in range(creation.get_nfilters())] == [number]
            assert abs(file[name][:] - EXPECTED).max() <= bound
            assert file[name].id.get_storage_size() < 8 * EXPECTED.size


@pytest.mark.parametrize("package", ["hdf5-serial", "hdf5-openmpi", "hdf5"])
def test_a_program_writes_and_reads(package, tmp_path):
    compiler = "cc" if package == "hdf5-serial" else "mpicc"
    program = built(tmp_path, flags_of(package), compiler)
    run(program, tmp_path / "out.h5")
    check_file(tmp_path / "out.h5")


def test_a_program_reads_what_h5py_wrote(tmp_path):
    tailrace = python_package.load()
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("trz", data=EXPECTED, chunks=(5000,), **tailrace.Trz(abs=0.5))
        file.create_dataset("xor", data=EXPECTED, chunks=(5000,), **tailrace.Xor())
    run(built(tmp_path, flags_of("hdf5-serial")), tmp_path / "in.h5", "read")


def test_a_fortran_program_reads(tmp_path):
    tailrace = python_package.load()
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("trz", data=EXPECTED, chunks=(5000,), **tailrace.Trz(abs=0.5))
    words = [*flags_of("hdf5-serial"), "-lhdf5_fortran", "-lhdf5"]
    program = built(tmp_path, words, "gfortran", SOURCE.with_suffix(".f90"))
    assert run(program, tmp_path / "in.h5").strip() == "read"


@pytest.mark.parametrize("exported", [True, False])
def test_hdf5_inside_the_program(exported, tmp_path):
    """A program that exports its HDF5 can read; it can write if all of HDF5 is in the program."""
    words = flags_of("hdf5-serial")
    found = [f"{word[2:]}/libhdf5.a" for word in words if word.startswith("-L")]
    archive = next(filter(os.path.exists, found), None)
    if archive is None:
        pytest.skip("no static HDF5")
    words = [word for word in words if word.startswith("-I")]
    needs = ["-lcrypto", "-lcurl", "-lsz", "-lz", "-ldl", "-lpthread", "-lm"]
    if not exported:
        program = built(tmp_path, [*words, "-no-pie", archive, *needs])
        assert run(program, tmp_path / "out.h5", code=3) == "registered: -1\n"
        return
    whole = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"]
    program = built(tmp_path, [*words, "-no-pie", "-rdynamic", *whole, *needs])
    run(program, tmp_path / "out.h5")
    check_file(tmp_path / "out.h5")
    program = built(tmp_path, [*words, "-no-pie", "-rdynamic", archive, *needs])
    run(program, tmp_path / "out.h5", "read")


def test_nothing_else_is_shown_or_needed():
    said = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True,
                          check=True).stdout
    assert [line.split()[-1] for line in said.splitlines()] == ["tailrace_register_filters"]
    needed = subprocess.run(["readelf", "-d", library()], capture_output=True, text=True,
                            check=True).stdout
    assert "SONAME" in needed and "hdf5" not in needed and "mpi" not in needed
    assert "libtailrace.so" not in needed

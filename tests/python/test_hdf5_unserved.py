"""A preloaded library that serves nothing says so and why, at the program's end.

Only under TAILRACE_REPORT=1, once, and not if the user has switched it off."""

import os
import shutil
import subprocess

import pytest
from cli_tools import ENVIRONMENT, launcher
from hdf5_runs import CONNECTOR, LATER, built, program_of, run as run_served

PROGRAM = """
#include <hdf5.h>
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (argc > 2) H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t file = -1;
  if (argc > 2 || (argc > 1 && rank == 0)) {
    file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0) return 1;
    H5Fclose(file);
  }
  H5Pclose(access);
  MPI_Finalize();
  return 0;
}
"""
#: An HDF5 of another version, without version nodes: its calls do not reach our library.
ANOTHER_VERSION = """
char H5_lib_vers_info_g[] = "HDF5 library version: 1.99.7";
int H5Fother(void) { return 0; }
"""
ON_ANOTHER = """
#include <mpi.h>
int H5Fother(void);
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  H5Fother();
  MPI_Finalize();
  return 0;
}
"""


def compiled(folder, source, *words, compiler="h5pcc"):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    (folder / "program.c").write_text(source)
    subprocess.run([compiler, folder / "program.c", "-o", folder / "program", *words], check=True,
                   cwd=folder, capture_output=True,
                   env={**os.environ, "HDF5_CC": "mpicc", "HDF5_CLINKER": "mpicc"})
    return folder / "program"


def run(program, *words, **environment):
    """Run a program on two ranks with our library preloaded; return its lines about files."""
    words = [launcher(), "-n", "2", "env",
             f"LD_PRELOAD={built('lib', 'libtailrace_hdf5.so')}", program, *words]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE_REPORT": "1", **environment})
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "no file was served" in line]


def test_files_without_mpi(tmp_path):
    program = compiled(tmp_path, PROGRAM, "-shlib")
    said, = run(program, tmp_path / "a.h5")
    assert "without MPI (H5Pset_fapl_mpio)" in said and "libtailrace_hdf5_serial" in said
    assert run(program, tmp_path / "a.h5", TAILRACE_REPORT="0") == []
    assert run(program, tmp_path / "a.h5", TAILRACE_HDF5="off") == []


def test_a_served_file_and_none_at_all(tmp_path):
    program = compiled(tmp_path, PROGRAM, "-shlib")
    assert run(program, tmp_path / "a.h5", "mpi") == []
    said, = run(program)
    assert "no call that creates or opens a file reached this library" in said
    assert "; loaded: HDF5 1." in said and "libhdf5" in said


def test_hdf5_linked_statically(tmp_path):
    program = compiled(tmp_path, PROGRAM)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    if "libhdf5" in linked:
        pytest.skip("h5pcc links HDF5 dynamically")
    said, = run(program, tmp_path / "a.h5", "mpi")
    assert " linked statically; " in said and "the program has HDF5 1." in said


def test_another_version(tmp_path):
    (tmp_path / "other.c").write_text(ANOTHER_VERSION)
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / "libhdf5.so"],
                   check=True)
    program = compiled(tmp_path, ON_ANOTHER, f"-L{tmp_path}", "-lhdf5", f"-Wl,-rpath,{tmp_path}",
                       compiler="mpicc")
    said, = run(program)
    assert f"; loaded: HDF5 1.99.7 in {tmp_path}/libhdf5.so" in said


@pytest.mark.parametrize("end", LATER, ids=lambda end: f"hdf5{end}")
def test_connector_without_mpi(end, tmp_path):
    """HDF5 loads the connector, and the program opens its files one by one."""
    for words, n in ((["1", "alone"], 1), (["1"], 0)):
        said = run_served([program_of(end, "write_small"), tmp_path, *words], 2, ours=True,
                          front=end + CONNECTOR).splitlines()
        assert len([line for line in said if "no file was served" in line]) == n
        assert all("without MPI (H5Pset_fapl_mpio)" in line for line in said if "served" in line)

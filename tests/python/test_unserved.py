"""Libraries for PnetCDF and for serial HDF5 that serve nothing say so and why, at the end.

Only under TAILRACE_REPORT=1, once, and not if the user has switched them off."""

import os
import subprocess

import h5py
import netCDF4
import pytest
from cli_tools import ENVIRONMENT, launcher
from hdf5_runs import built
from test_hdf5_unserved import PROGRAM as MPI_PROGRAM
from test_hdf5_unserved import compiled

PNETCDF = """
#include <mpi.h>
#include <pnetcdf.h>
#include <string.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int id = -1, status = NC_NOERR;
  if (argc > 2 && strcmp(argv[2], "create") == 0) {
    status = ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &id);
  } else if (argc > 1) {
    status = ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &id);
  }
  if (argc > 1 && status == NC_NOERR) ncmpi_close(id);
  if (argc < 1) ncmpi_inq_libvers();  /* so that the library is linked */
  MPI_Finalize();
  return 0;
}
"""
#: Writes one dataset: "chunked" with deflate, "plain" chunks, or "contiguous".
SERIAL = """
#include <hdf5.h>
#include <string.h>
static int values[4096];
int main(int argc, char** argv) {
  if (argc < 3) return argc > 5 ? (int)H5open() : 0;
  hsize_t n = 4096, chunk = 512;
  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(1, &n, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (strcmp(argv[2], "contiguous") != 0) H5Pset_chunk(list, 1, &chunk);
  if (strcmp(argv[2], "chunked") == 0) H5Pset_deflate(list, 1);
  hid_t dataset = H5Dcreate2(file, "u", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  if (strcmp(argv[2], "nothing") != 0) {
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }
  H5Dclose(dataset); H5Pclose(list); H5Sclose(space); H5Fclose(file);
  return 0;
}
"""


def nothing_served(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stderr.splitlines() if " was served: " in line]


def run_pnetcdf(program, *words, preload=("libtailrace_pnetcdf.so",), **environment):
    libraries = ":".join(str(built("lib", name)) for name in preload)
    words = [launcher(), "-n", "2", "env", *([f"LD_PRELOAD={libraries}"] if preload else []),
             program, *words]
    return nothing_served(subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=600,
        env={**ENVIRONMENT, "TAILRACE_REPORT": "1", **environment}))


def run_serial(program, *words, **environment):
    library = str(built("lib", "libtailrace_hdf5_serial.so"))
    return nothing_served(subprocess.run(
        list(map(str, [program, *words])), capture_output=True, text=True, timeout=600,
        env={**os.environ, "LD_PRELOAD": library, "TAILRACE_REPORT": "1", **environment}))


def compiled_serial(folder, *words):
    return compiled(folder, SERIAL, *words, compiler="h5cc")


def test_a_pnetcdf_program_that_is_served_says_nothing(tmp_path):
    program = compiled(tmp_path, PNETCDF, "-lpnetcdf", compiler="mpicc")
    assert run_pnetcdf(program, tmp_path / "a.nc", "create") == []
    assert run_pnetcdf(program, tmp_path / "a.nc") == []


def test_classic_files_and_failed_calls(tmp_path):
    program = compiled(tmp_path, PNETCDF, "-lpnetcdf", compiler="mpicc")
    netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_OFFSET").close()
    said, = run_pnetcdf(program, tmp_path / "a.nc")
    assert said.startswith("tailrace: no file was served: ") and "classic netCDF files only" in said
    said, = run_pnetcdf(program, tmp_path / "missing.nc")
    assert "each call that creates or opens a file failed" in said
    assert run_pnetcdf(program, tmp_path / "a.nc", TAILRACE_REPORT="0") == []
    assert run_pnetcdf(program, tmp_path / "a.nc", TAILRACE_PNETCDF="off") == []


def test_no_call_reaches_the_library_for_pnetcdf(tmp_path):
    program = compiled(tmp_path, PNETCDF, "-lpnetcdf", compiler="mpicc")
    said, = run_pnetcdf(program)
    assert "reached this library" in said and "; loaded: PnetCDF 1." in said


@pytest.mark.parametrize("how", ["by name", "linked", "archive"])
def test_a_program_that_has_our_library_for_pnetcdf_and_calls_nothing(how, tmp_path):
    library = built("lib", "libtailrace_pnetcdf.so")
    words = {"by name": ["-lpnetcdf"],
             "linked": [library, f"-Wl,-rpath,{library.parent}"],
             "archive": [built("lib", "tailrace", "pnetcdf", "libpnetcdf.a")]}[how]
    program = compiled(tmp_path, PNETCDF, *words, compiler="mpicc")
    more = {"LD_LIBRARY_PATH": str(built("lib", "pnetcdf"))} if how == "by name" else {}
    said, = run_pnetcdf(program, preload=(), **more)
    assert "reached this library" in said and "; loaded: no other PnetCDF" in said
    assert run_pnetcdf(program, tmp_path / "a.nc", "create", preload=(), **more) == []


def test_pnetcdf_linked_statically(tmp_path):
    archive = "/usr/lib/x86_64-linux-gnu/libpnetcdf.a"
    if not os.path.exists(archive):
        pytest.skip("there is no libpnetcdf.a here")
    program = compiled(tmp_path, PNETCDF, archive, "-lm", compiler="mpicc")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libpnetcdf" not in linked
    said, = run_pnetcdf(program, tmp_path / "a.nc", "create",
                        preload=["libtailrace_pnetcdf.so"])
    assert "the program has PnetCDF 1." in said and " linked statically; " in said


def test_a_program_that_another_of_our_libraries_serves(tmp_path):
    both = ("libtailrace_pnetcdf.so", "libtailrace_hdf5.so")
    program = compiled(tmp_path, MPI_PROGRAM, "-shlib")
    assert run_pnetcdf(program, tmp_path / "a.h5", "mpi", preload=both) == []
    assert len(run_pnetcdf(program, preload=both)) == 2
    program = compiled(tmp_path, PNETCDF, "-lpnetcdf", compiler="mpicc")
    assert run_pnetcdf(program, tmp_path / "a.nc", "create", preload=both) == []


def test_serial_programs_without_chunks_to_encode(tmp_path):
    program = compiled_serial(tmp_path, "-shlib")
    assert run_serial(program, tmp_path / "a.h5", "chunked") == []
    said, = run_serial(program, tmp_path / "a.h5", "plain")
    assert said == ("tailrace: no chunk was served: the program wrote or read datasets without "
                    "filters")
    said, = run_serial(program, tmp_path / "a.h5", "contiguous")
    assert "datasets that are not chunked" in said
    said, = run_serial(program, tmp_path / "a.h5", "nothing")
    assert "neither wrote nor read values" in said
    assert run_serial(program, tmp_path / "a.h5", "plain", TAILRACE_REPORT="0") == []
    assert run_serial(program, tmp_path / "a.h5", "plain", TAILRACE_HDF5="off") == []


def test_serial_programs_that_read(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("u", data=range(1000), chunks=(100,), compression="gzip")
        file.create_dataset("v", data=range(1000))
    for name, words in [("u", 0), ("v", 1)]:
        told = run_serial("/usr/bin/h5dump", "-d", f"/{name}", tmp_path / "in.h5")
        assert len(told) == words, told


def test_serial_hdf5_linked_statically(tmp_path):
    program = compiled_serial(tmp_path)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    if "libhdf5" in linked:
        pytest.skip("h5cc links HDF5 dynamically")
    said, = run_serial(program, tmp_path / "a.h5", "chunked")
    assert "the program has HDF5 1." in said and " linked statically; " in said


def test_a_program_on_another_hdf5(tmp_path):
    """The parallel HDF5, of another name, with its driver or without."""
    program = compiled(tmp_path, MPI_PROGRAM, "-shlib")
    said, = run_serial(program, tmp_path / "a.h5")
    assert "no call of HDF5 reached this library, which serves programs on libhdf5_serial" in said
    assert "libhdf5_openmpi" in said or "; loaded: HDF5 1." in said


def test_processes_without_hdf5_say_nothing():
    assert run_serial("/bin/sh", "-c", "true") == []

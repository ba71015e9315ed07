"""`tailrace doctor` tells truly which library serves a program: what it names is then run."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from cli_tools import ENVIRONMENT, tailrace
from hdf5_runs import built
from test_hdf5_unserved import ANOTHER_VERSION, ON_ANOTHER, PROGRAM, compiled

PNETCDF_PROGRAM = """
#include <mpi.h>
#include <pnetcdf.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int file = 0;
  int error = ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file);
  if (error == 0) error = ncmpi_close(file);
  MPI_Finalize();
  return error != 0;
}
"""
SERIAL_PROGRAM = """
#include <hdf5.h>
int main(int argc, char** argv) {
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  return argc > 1 && H5Fclose(file) < 0;
}
"""


def examined(*words, code=0, environment=None):
    done = tailrace("doctor", *words, "--json", "-", code=code,
                    environment={**ENVIRONMENT, **(environment or {})})
    document = json.loads(done.stdout)
    assert document["command"] == "doctor"
    assert {one["verdict"] for one in document["findings"]} <= {"ok", "note", "FAULT"}
    assert code == any(one["verdict"] == "FAULT" for one in document["findings"])
    return document


def texts(document, subject, verdict=None):
    return [one["text"] for one in document["findings"]
            if one["subject"] == subject and verdict in (None, one["verdict"])]


def served_by(document, *words):
    """Run what doctor prints; return stderr under a report."""
    done = subprocess.run([*shlex.split(f"env {document['run']}" if "mpiexec" not in
                                        document["run"] else document["run"]),
                           *map(str, words)], capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE_REPORT": "1",
                               "OMPI_MCA_rmaps_base_oversubscribe": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_parallel_hdf5(tmp_path):
    program = compiled(tmp_path, PROGRAM, "-shlib")
    document = examined(program, "--dir", tmp_path)
    assert document["preloads"] == [str(built("lib", "libtailrace_hdf5.so"))]
    assert "parallel" in texts(document, "HDF5", "ok")[0]
    assert len(texts(document, "MPI", "ok")) == len(texts(document, "launcher", "ok")) == 1
    assert str(tmp_path) in texts(document, "folder", "ok")[0]
    assert not [name for name in os.listdir(tmp_path) if "doctor" in name]
    assert "no file was served" not in served_by(document, tmp_path / "a.h5", "mpi")


def test_serial_hdf5(tmp_path):
    program = compiled(tmp_path, SERIAL_PROGRAM, "-shlib", compiler="h5cc")
    document = examined(program)
    assert document["preloads"] == [str(built("lib", "libtailrace_hdf5_serial.so"))]
    assert "mpiexec" not in document["run"]
    served_by(document, tmp_path / "a.h5")


def test_pnetcdf(tmp_path):
    program = compiled(tmp_path, PNETCDF_PROGRAM, "-lpnetcdf", compiler="mpicc")
    document = examined(program)
    assert document["preloads"] == [str(built("lib", "libtailrace_pnetcdf.so"))]
    served_by(document, tmp_path / "a.nc")
    with open(tmp_path / "a.nc", "rb") as file:
        assert file.read(4) == b"\x89HDF"  # PnetCDF alone would have written "CDF".


def test_what_is_not_served(tmp_path):
    static_hdf5 = compiled(tmp_path, PROGRAM)
    linked = subprocess.run(["ldd", static_hdf5], capture_output=True, text=True, check=True)
    if "libhdf5" not in linked.stdout:
        document = examined(static_hdf5, code=1)
        assert "linked statically into the program" in texts(document, "HDF5", "FAULT")[0]
        assert document["run"] is None
    (tmp_path / "none.c").write_text("int main(void) { return 0; }")
    subprocess.run(["cc", "-static", tmp_path / "none.c", "-o", tmp_path / "none"], check=True)
    assert "LD_PRELOAD has no effect" in texts(examined(tmp_path / "none", code=1), "program")[0]
    assert "neither HDF5 nor PnetCDF" in texts(examined("/bin/ls", code=1), "HDF5", "FAULT")[0]


def test_another_version_and_a_missing_library(tmp_path):
    (tmp_path / "other.c").write_text(ANOTHER_VERSION + "int H5Pset_fapl_mpio(void) { return 0; }")
    library = tmp_path / "libhdf5.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "other.c", "-o", library], check=True)
    program = compiled(tmp_path, ON_ANOTHER, f"-L{tmp_path}", "-lhdf5", f"-Wl,-rpath,{tmp_path}",
                       compiler="mpicc")
    text, = texts(examined(program, code=1), "HDF5", "FAULT")
    assert text.startswith(f"1.99.7, parallel: {library}; this Tailrace serves HDF5 1.")
    library.unlink()
    text, = texts(examined(program, code=1), "library", "FAULT")
    assert text == "libhdf5.so is not found; set LD_LIBRARY_PATH"


def test_options_and_the_folder(tmp_path):
    good = examined("nccopy", environment={"TAILRACE_OPTIONS": "u: bound=rel=1e-3"})
    assert texts(good, "options", "ok") == ["TAILRACE_OPTIONS are valid"]
    wrong = examined("nccopy", code=1, environment={"TAILRACE_OPTIONS": "u: codec=tzr"})
    assert "did you mean" in texts(wrong, "options", "FAULT")[0]
    off = examined("nccopy", code=1, environment={"TAILRACE_HDF5": "off"})
    assert "TAILRACE_HDF5=off" in texts(off, "options", "FAULT")[0]
    nowhere = examined("nccopy", "--dir", tmp_path / "no", code=1)
    assert "does not exist" in texts(nowhere, "folder", "FAULT")[0]


def test_a_plug_in_for_readers(tmp_path):
    folder = built("lib", "hdf5", "plugin", "libh5trz.so").parent
    with_it = examined("nccopy", environment={"HDF5_PLUGIN_PATH": str(folder)})
    assert str(folder) in texts(with_it, "readers", "ok")[0]
    without = examined("nccopy", environment={"HDF5_PLUGIN_PATH": str(tmp_path)})
    assert "docs/readers.md" in texts(without, "readers", "note")[0]


def test_scripts_and_running_programs(tmp_path):
    script = tmp_path / "run"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    document = examined(script)
    assert texts(document, "program", "note")[0].startswith(f"a script for {sys.executable}")
    with subprocess.Popen([sys.executable, "-c", "import h5py; print(flush=True); input()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as python:
        python.stdout.readline()
        text = " ".join(texts(examined("--pid", python.pid, code=1), "HDF5"))
        python.communicate(b"\n")
    assert ".so" in text and text[0].isdigit()  # The HDF5 that h5py's wheel brings.


@pytest.mark.parametrize("words,why", [
    (("nowhere",), "is not a program that you may run, in PATH"),
    (("./nowhere",), "is not a program that you may run"),
    ((), "expected a program, or --pid"),
    (("nccopy", "--pid", "1"), "expected a program, or --pid"),
    (("--pid", "999999999"), "no process has the number 999999999"),
])
def test_wrong_arguments(words, why):
    assert why in tailrace("doctor", *words, code=2).stderr

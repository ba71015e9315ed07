"""codec=trz,book=auto over several steps: stock h5py reads the file with the plug-in.

The program is in C, with the installed header and shared library, like users' programs. It writes
slabs of values from NumPy, so that the expected values are known.
"""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

from cli_tools import ENVIRONMENT, ROOT, program, tailrace
from test_trz_filter import filter_of, python

EDGE, STEPS, BOUND = 48, 4, 1e-3
BOOK_FLAG = 1 << 18

SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <tailrace/tailrace.h>

/* writer VALUES OUT FILE_OPTIONS FIELD_OPTIONS EDGE STEPS OVER_TIME */
static void check(tailrace_error error) {
  if (error == TAILRACE_OK) return;
  fprintf(stderr, "%s\n", tailrace_thread_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, n_ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const uint64_t edge = (uint64_t)atoi(argv[5]), n_steps = (uint64_t)atoi(argv[6]);
  const int over_time = atoi(argv[7]);
  const uint64_t first = edge * (uint64_t)rank / (uint64_t)n_ranks;
  const uint64_t shape[3] = {edge, edge, edge}, start[3] = {first, 0, 0};
  const uint64_t count[3] = {edge * (uint64_t)(rank + 1) / (uint64_t)n_ranks - first, edge, edge};
  const size_t n = count[0] * edge * edge;
  float* values = malloc(n * sizeof *values);
  FILE* in = fopen(argv[1], "rb");
  tailrace_file* file = NULL;
  tailrace_field field;
  check(tailrace_file_create(argv[2], TAILRACE_MPI(MPI_COMM_WORLD), argv[3], &file));
  for (uint64_t step = 0; step < n_steps; ++step) {
    char path[64];
    snprintf(path, sizeof path, over_time ? "/u" : "/step_%04d/u", (int)step);
    if (!over_time || step == 0) {
      check(tailrace_field_define(file, path, TAILRACE_F32, 3, shape, argv[4], &field));
    }
    fseek(in, (long)(4 * edge * edge * (step * edge + first)), SEEK_SET);
    if (fread(values, 4, n, in) != n) return 2;
    check(tailrace_field_put_copy(file, field, start, count, values));
    const tailrace_step_report* report = NULL;
    check(tailrace_file_end_step(file, &report));
    if (rank == 0 && report != NULL) {
      printf("%llu %g\n", (unsigned long long)report->fields[0]->book_bytes,
             report->fields[0]->book_ratio_loss);
    }
  }
  check(tailrace_file_close(file));
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """Compile the program, unless TAILRACE_BOOK_WRITER names a compiled one; return its path."""
    if "TAILRACE_BOOK_WRITER" in os.environ:
        return os.environ["TAILRACE_BOOK_WRITER"]
    library = pathlib.Path(program()).resolve().parents[1] / "lib"
    if shutil.which("mpicc") is None or not (library / "libtailrace.so").exists():
        pytest.skip("no mpicc, or no shared library beside the program")
    folder = tmp_path_factory.mktemp("writer")
    (folder / "writer.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O1", "-DTAILRACE_WITH_MPI=1", "-I", str(ROOT / "include"),
                    str(folder / "writer.c"), "-o", str(folder / "writer"), "-L", str(library),
                    f"-Wl,-rpath,{library}", "-ltailrace"], check=True)
    return str(folder / "writer")


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """Write steps of an evolving field, with noise so that its codes are not trivial."""
    x = np.linspace(0, 20, EDGE)
    steps = np.stack([
        np.sin(x + 0.1 * t)[:, None, None] * np.cos(x)[:, None] + np.sin(2 * x)
        + np.random.default_rng(t).normal(0, 1e-2, (EDGE, EDGE, EDGE)) for t in range(STEPS)
    ]).astype("f4")
    path = tmp_path_factory.mktemp("values") / "steps.raw"
    steps.tofile(path)
    return path, steps


def write(writer, values, target, ranks, over_time=False, mode="sync"):
    """Run the program; return the book's bytes of each step, from the program's report."""
    options = "codec=trz,book=auto,chunk=12x48x48,bound=abs=1e-3"
    options += ",over-time=on" if over_time else ""
    done = subprocess.run(
        ["mpiexec", "-n", str(ranks), writer, str(values[0]), str(target),
         f"fsync=off,replace=on,mode={mode}", options, str(EDGE), str(STEPS),
         str(int(over_time))], capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line.split()[0]) for line in done.stdout.splitlines()]


def values_by_plugin(path, names, tmp_path):
    """Read values with stock h5py, in a process that has only the plug-in's folder."""
    python(f"""
        import h5py, numpy as np
        with h5py.File({str(path)!r}) as file:
            np.save({str(tmp_path / "read.npy")!r}, np.stack([file[n][...] for n in {names!r}]))
    """)
    return np.load(tmp_path / "read.npy")


@pytest.mark.parametrize("mode", ["sync", "in_situ"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_new_datasets_share_the_book_of_the_step_before(ranks, mode, writer, values, tmp_path):
    target = tmp_path / "steps.h5"
    books = write(writer, values, target, ranks, mode=mode)
    names = [f"step_{t:04}/u" for t in range(STEPS)]
    flags = [bool(filter_of(target, name)[2][0] & BOOK_FLAG) for name in names]
    assert flags == [False] + [True] * (STEPS - 1)
    if mode == "sync":
        assert books[0] == 0 and all(0 < n < 5000 for n in books[1:])
    read = values_by_plugin(target, names, tmp_path)
    assert np.abs(read.astype("f8") - values[1]).max() <= BOUND


@pytest.mark.parametrize("ranks", [1, 3])
def test_over_time_the_first_step_has_a_book(ranks, writer, values, tmp_path):
    target = tmp_path / "grown.h5"
    books = write(writer, values, target, ranks, over_time=True)
    assert len(set(books)) == 1 and books[0] > 0
    assert filter_of(target, "u")[2][0] & BOOK_FLAG
    read = values_by_plugin(target, ["u"], tmp_path)[0]
    assert np.abs(read.astype("f8") - values[1]).max() <= BOUND


@pytest.mark.parametrize("ranks", [1, 2])
def test_repack_takes_such_files_and_the_setting(ranks, writer, values, tmp_path):
    source, target = tmp_path / "steps.h5", tmp_path / "again.h5"
    write(writer, values, source, 2)
    tailrace("repack", source, "-o", target, "--codec", "trz,book=auto", "--bound", "abs=1e-6",
             "--again", ranks=ranks)
    tailrace("verify", source, target)
    refused = tailrace("repack", source, "-o", target, "--force", "--codec",
                       "trz,book=auto,book_loss=0", "--bound", "abs=1e-6", "--again", ranks=ranks,
                       code=2)
    assert "book_loss" in refused.stderr

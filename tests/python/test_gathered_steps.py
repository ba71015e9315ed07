"""Several steps in a chunk: chunk= has one more extent, and stock h5py reads the file.

The program is in C, with the installed header and shared library. It reads from the report which
values wait.
"""

import pathlib
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, ROOT, program

ROWS, COLUMNS, STEPS, PER_CHUNK = 24, 30, 7, 3

SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <tailrace/tailrace.h>

/* writer OUT MODE */
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
  const uint64_t first = 24 * (uint64_t)rank / (uint64_t)n_ranks;
  const uint64_t shape[2] = {24, 30}, start[2] = {first, 0};
  const uint64_t count[2] = {24 * (uint64_t)(rank + 1) / (uint64_t)n_ranks - first, 30};
  const size_t n = count[0] * count[1];
  double* values = malloc((n + 1) * sizeof *values);
  tailrace_file* file = NULL;
  tailrace_field field, plain;
  char options[100];
  snprintf(options, sizeof options, "fsync=off,over-time=on,mode=%s", argv[2]);
  check(tailrace_file_create(argv[1], TAILRACE_MPI(MPI_COMM_WORLD), options, &file));
  check(tailrace_field_define(file, "/u", TAILRACE_F64, 2, shape, "chunk=3x10x30", &field));
  check(tailrace_field_define(file, "/raw", TAILRACE_F64, 2, shape,
                              "chunk=3x10x30,codec=none,fill=-5", &plain));
  check(tailrace_attribute_set_text(file, "/u", "units", "m"));
  for (uint64_t step = 0; step < 7; ++step) {
    for (size_t i = 0; i < n; ++i) values[i] = (double)(1000 * step + 30 * first + i);
    check(tailrace_field_put(file, field, start, count, values));
    check(tailrace_field_put(file, plain, start, count, values));
    const tailrace_step_report* report = NULL;
    check(tailrace_file_end_step(file, &report));
    for (size_t i = 0; i < n; ++i) values[i] = -1;  /* it is the program's again */
    if (rank == 0 && report != NULL) {
      printf("%llu %llu\n", (unsigned long long)report->n_waiting_steps,
             (unsigned long long)report->waiting_bytes);
    }
  }
  check(tailrace_file_close(file));
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    library = pathlib.Path(program()).resolve().parents[1] / "lib"
    if shutil.which("mpicc") is None or not (library / "libtailrace.so").exists():
        pytest.skip("no mpicc, or no shared library beside the program")
    folder = tmp_path_factory.mktemp("writer")
    (folder / "writer.c").write_text(SOURCE)
    subprocess.run(["mpicc", "-O1", "-DTAILRACE_WITH_MPI=1", "-I", str(ROOT / "include"),
                    str(folder / "writer.c"), "-o", str(folder / "writer"), "-L", str(library),
                    f"-Wl,-rpath,{library}", "-ltailrace"], check=True)
    return str(folder / "writer")


@pytest.mark.parametrize("mode", ["sync", "async", "in_situ"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_stock_h5py_reads_them(ranks, mode, writer, tmp_path):
    target = tmp_path / "steps.h5"
    done = subprocess.run(["mpiexec", "-n", str(ranks), writer, str(target), mode],
                          capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    waiting = [(step + 1) % PER_CHUNK for step in range(STEPS)]
    expected = [(n, 2 * 8 * n * ROWS * COLUMNS) for n in waiting]
    assert said == expected if mode == "sync" else said == expected[1:]
    with h5py.File(target) as file:
        data = file["u"]
        assert data.chunks == (PER_CHUNK, 10, COLUMNS)
        assert data.shape == (STEPS, ROWS, COLUMNS) and data.maxshape == (None, ROWS, COLUMNS)
        assert data.attrs["units"] in ("m", b"m")
        steps = np.arange(STEPS)[:, None, None] * 1000
        wanted = steps + np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
        assert np.array_equal(data[...], wanted)
        assert data.id.get_num_chunks() == 3 * 3
        assert np.array_equal(file["raw"][...], wanted)
        # The last chunk is partial in time and space; its padding repeats values.
        _, last = file["raw"].id.read_direct_chunk((6, 20, 0))
        last = np.frombuffer(last).reshape(PER_CHUNK, 10, COLUMNS)
        assert np.array_equal(last[0, :4], wanted[6, 20:])
        assert np.array_equal(last, np.broadcast_to(last[:1], last.shape))
        assert np.array_equal(last[:, 4:], np.broadcast_to(last[:, 3:4], last[:, 4:].shape))

"""Collective MPI calls of a file: creating and closing it, empty and with a few values.

The library tests/support/count_mpi.c counts them, also those of a run without Tailrace. The first
file of a communicator costs more; the programs count the third.
"""

import re
import subprocess
import sys

import pytest
from cli_tools import ENVIRONMENT, launcher_on_this_node
from hdf5_runs import built

import python_package

#: Ranks and pretended ranks of a node; 0: no pretended nodes.
PLACES = pytest.mark.parametrize("ranks,node", [(1, 0), (2, 0), (3, 0), (4, 2)])
#: Collective calls of Tailrace beyond those of a plain run, at most; for a file of a few values.
MORE_EMPTY, MORE_TINY = 6, 14
#: Between nodes all ranks check that they have opened one file: two broadcasts and an agreement.
MORE_BETWEEN_NODES = 3
FREE = {"MPI_Comm_free", "MPI_Win_free"}


def counted(text):
    """Return the calls of an empty and of a tiny file."""
    found = dict(re.findall(r"(empty|tiny) MPI calls:(.*)", text))
    return [{name: int(n) for n, name in re.findall(r"(\d+) (MPI_\w+)", found[kind])}
            for kind in ("empty", "tiny")]


def calls(words, ranks, node, *libraries, environment=ENVIRONMENT):
    preload = ":".join(map(str, [built("bin", "count_mpi.so"), *libraries]))
    nodes = {"TAILRACE_RANKS_PER_NODE": str(node)} if node else {}
    done = subprocess.run([launcher_on_this_node(), "-n", str(ranks), "env",
                           f"LD_PRELOAD={preload}", *map(str, words)],
                          capture_output=True, text=True, timeout=600, env={**environment, **nodes})
    assert done.returncode == 0, done.stdout + done.stderr
    return counted(done.stdout)


def n_calls(file):
    return sum(n for name, n in file.items() if name not in FREE)


def check(plain, ours, node, kept=()):
    """Nothing is made for a file that an earlier file has left, except what HDF5 duplicates."""
    for before, now, most in zip(plain, ours, (MORE_EMPTY, MORE_TINY)):
        assert n_calls(now) <= n_calls(before) + most + (MORE_BETWEEN_NODES if node else 0), now
        for name in ("MPI_Win_allocate_shared", "MPI_Comm_split", "MPI_Comm_split_type",
                     "MPI_Comm_dup"):
            assert name in kept or name not in now, now


@PLACES
def test_files_of_pnetcdf(ranks, node, tmp_path):
    words = [built("bin", "pnetcdf", "small_files"), tmp_path]
    check(calls(words, ranks, node),
          calls(words, ranks, node, built("lib", "libtailrace_pnetcdf.so")), node)


@PLACES
def test_files_of_parallel_hdf5(ranks, node, tmp_path):
    words = [built("bin", "hdf5_programs", "write_small"), tmp_path]
    check(calls(words, ranks, node),
          calls(words, ranks, node, built("lib", "libtailrace_hdf5.so")), node, {"MPI_Comm_dup"})


@PLACES
def test_files_of_python(ranks, node, tmp_path):
    pytest.importorskip("mpi4py")
    program = tmp_path / "small.py"
    program.write_text(f"""
from mpi4py import MPI
import tailrace

comm = MPI.COMM_WORLD

def write(kind):
    with tailrace.open({str(tmp_path)!r} + f"/{{kind}}.nc", "w", comm=comm) as file:
        if kind == "tiny":
            file.create_dimension("x", 10 * comm.size)
            file.create_variable("v", ("x",), "i4")[10 * comm.rank:10 * comm.rank + 10] = comm.rank

for kind in ("empty", "tiny"):
    for i in range(3):
        MPI.Pcontrol(1)
        write(kind)
    if comm.rank == 0:
        print(kind, end=" ", flush=True)
    MPI.Pcontrol(2)
""")
    python_package.load()
    empty, tiny = calls([sys.executable, program], ranks, node,
                        environment=python_package.package_environment())
    for now, most in ((empty, 7), (tiny, 20)):
        assert n_calls(now) <= most + (MORE_BETWEEN_NODES if node else 0), now
        assert "MPI_Win_allocate_shared" not in now and "MPI_Comm_dup" not in now

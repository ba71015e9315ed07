"""tailrace on a communicator of mpi4py: every rank writes and reads its part of one file."""

import netCDF4
import numpy as np
import pytest

import python_package

tailrace = python_package.load()
pytest.importorskip("mpi4py")
if not list(python_package.pathlib.Path(
        python_package.package_environment()["TAILRACE_ENGINE_DIR"]).glob("_mpi*.so")):
    pytest.skip("built without MPI", allow_module_level=True)

START = """
    from mpi4py import MPI
    import numpy as np, tailrace
    comm = MPI.COMM_WORLD
    rank, n = comm.rank, comm.size
    path = {path!r}
    full = np.sin(np.arange(n * 6 * 40 * 8) / 50).astype("f4").reshape(n * 6, 40, 8)
    mine = slice(rank * 6, rank * 6 + 6)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_write_and_read_one_file(ranks, tmp_path):
    path = tmp_path / "file.nc"
    python_package.run(START.format(path=str(path)) + """
    with tailrace.open(path, "w", comm=comm) as file:
        assert (file.rank, file.n_ranks) == ((rank, n) if n > 1 else (0, 1))
        file.create_dimension("t")
        file.create_dimension("z", n * 6)
        file.create_dimension("y", 40)
        file.create_dimension("x", 8)
        u = file.create_variable("u", ("z", "y", "x"), "f4", codec="trz", abs=1e-3,
                                 attrs={"units": "m"})
        v = file.create_variable("v", ("t", "y", "x"), "f4", chunks=(5, 40, 8))
        u[mine] = full[mine]
        v[mine] = full[mine]  # Grows; chunks are shared by two ranks.
        file.flush()
        assert v.shape == full.shape and np.array_equal(v[...], full)
        file.attrs["ranks"] = n
    with tailrace.open(path, comm=comm) as file:
        u = file["u"]
        assert np.abs(u[mine] - full[mine]).max() <= 1e-3
        whole = u.read_all()
        assert np.abs(whole - full).max() <= 1e-3
        part = file["v"].read_all((slice(None, None, 5), 3) if rank == 0 else None)
        assert rank or np.array_equal(part, full[::5, 3])
    verdict = tailrace.verify(path, path, comm=comm)
    assert verdict.ok and sorted(verdict) == ["/u", "/v"]
    """, ranks=ranks)
    with netCDF4.Dataset(path) as file:
        assert file.ranks == ranks and file["v"].shape == (6 * ranks, 40, 8)
        full = np.sin(np.arange(ranks * 6 * 40 * 8) / 50).astype("f4").reshape(ranks * 6, 40, 8)
        assert np.array_equal(file["v"][:], full)


def test_ranks_fail_together(tmp_path):
    """Every rank gets the same exception, and the program continues."""
    python_package.run(START.format(path=str(tmp_path / "file.nc")) + """
    def all_raise(kind, work):
        try:
            work()
        except kind as error:
            assert len(set(comm.allgather(type(error).__name__))) == 1, error
        else:
            raise AssertionError("nothing was raised")
    all_raise(FileNotFoundError, lambda: tailrace.open("/nothing/there.nc", comm=comm))
    all_raise(OSError, lambda: tailrace.open("/nothing/there.nc", "w", comm=comm).close())
    options = "threads=1" if rank else "threads=none"
    all_raise(ValueError, lambda: tailrace.open(path, "w", comm=comm, options=options))
    with tailrace.open(path, "w", comm=comm) as file:
        file.create_dimension("x", 4)
        all_raise(ValueError, lambda: file.create_dimension("x", 4))
        all_raise(RuntimeError, lambda: file.create_dimension(f"x{rank}", 4))
        file.create_variable("v", "x", "f4")[rank] = rank
    with tailrace.open(path) as file:
        assert (file["v"][:n] == np.arange(n)).all()
    """, ranks=2)


def test_an_exception_in_one_rank_hangs_nobody(tmp_path):
    python_package.run(START.format(path=str(tmp_path / "file.nc")) + """
    try:
        with tailrace.open(path, "w", comm=comm) as file:
            file.create_variable("v", "x", data=np.arange(4))
            raise KeyError("everybody")
    except KeyError:
        pass
    try:
        file["v"]
    except ValueError as error:
        assert "was abandoned" in str(error)
    comm.barrier()
    """, ranks=2)


@pytest.mark.parametrize("mode", ["r", "a"])
def test_a_selection_that_cannot_be_read_fails_all(tmp_path, mode):
    python_package.run(START.format(path=str(tmp_path / "file.nc")) + f"""
    with tailrace.open(path, "w", comm=comm) as file:
        file.create_variable("v", "x", data=np.arange(4))
    with tailrace.open(path, "{mode}", comm=comm) as file:
        for wrong, kind in ((9, IndexError), ("x", TypeError)):
            try:
                file["v"].read_all(wrong if rank == 1 else ...)
            except kind if rank == 1 else ValueError as error:
                assert rank == 1 or "/v" in str(error) and "rank 1" in str(error), error
            else:
                raise AssertionError("nothing was refused")
        assert np.array_equal(file["v"].read_all(), np.arange(4))
    """, ranks=3)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_forgotten_communicator_is_named(tmp_path, ranks):
    python_package.run(START.format(path=str(tmp_path / "file.nc")) + """
    file = tailrace.open(path, "w") if rank == 0 else None
    comm.barrier()
    if rank > 0:
        try:
            tailrace.open(path, "w")
        except OSError as error:
            assert " is being written by " in str(error), error
            assert str(error).endswith(f"but MPI has {n} ranks: to share the file, pass "
                                       "comm=MPI.COMM_WORLD"), error
        else:
            raise AssertionError("nothing was refused")
    comm.barrier()
    if rank == 0:
        file.close()
        try:
            tailrace.open(path, "x")
        except FileExistsError as error:
            assert ("MPI has" in str(error)) == (n > 1), error
    """, ranks=ranks)


def test_what_is_no_communicator(tmp_path):
    with pytest.raises(ValueError, match="mpi4py"):
        tailrace.open(tmp_path / "file.nc", "w", comm=7)

"""repack keeps every unlimited dimension of a dataset."""

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import tailrace

VALUES = np.arange(6 * 4 * 5, dtype="f4").reshape(6, 4, 5)


def write(path):
    with netCDF4.Dataset(path, "w") as file:
        for name, length in [("time", None), ("station", None), ("x", 5), ("nobody", None)]:
            file.createDimension(name, length)
        file.createVariable("both", "f4", ("time", "station", "x"))[:] = VALUES
        file.createVariable("inner", "f4", ("x", "station"))[:] = VALUES[0].T
        file.createVariable("empty", "i4", ("x", "nobody"))
        file.createVariable("first", "f4", ("time", "x"))[:] = VALUES[:, 0]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("codec", ["deflate", "trz", "none"])
def test_all_unlimited_dimensions_stay(tmp_path, codec, ranks):
    source, target = tmp_path / "a.nc", tmp_path / "b.nc"
    write(source)
    done = tailrace("repack", source, "-o", target, "--lossless-codec", codec, ranks=ranks)
    assert "become fixed" not in done.stdout + done.stderr
    with h5py.File(source) as expected, h5py.File(target) as found:
        for name in ["both", "inner", "empty", "first"]:
            assert found[name].maxshape == expected[name].maxshape, name
            assert found[name].shape == expected[name].shape, name
    with netCDF4.Dataset(target) as file:
        assert all(file.dimensions[name].isunlimited() for name in ["time", "station", "nobody"])
        if codec != "trz":
            assert np.array_equal(file["both"][:], VALUES)
            assert np.array_equal(file["inner"][:], VALUES[0].T)
    if codec == "trz":
        return
    with netCDF4.Dataset(target, "a") as file:  # extend both dimensions
        file["both"][6:8, 4:7] = np.full((2, 3, 5), -1)
        file["inner"][:, 4] = 9
    with netCDF4.Dataset(target) as file:
        assert np.array_equal(file["both"][:6, :4], VALUES)
        assert (file["both"][6:8, 4:7] == -1).all()
        assert (file["inner"][:, 4] == 9).all() and file["inner"].shape == (5, 7)


def test_limits_stay_where_there_are_chunks(tmp_path):
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("limited", data=VALUES[0], maxshape=(10, 5), chunks=(2, 5))
        file.create_dataset("empty", (0, 5), "f4", maxshape=(10, 5), chunks=(7, 5))
        file.create_dataset("free", data=VALUES[0], maxshape=(None, None), chunks=(2, 5))
    done = tailrace("repack", source, "-o", target)
    assert "become fixed" not in done.stdout + done.stderr
    with h5py.File(target, "r+") as file:
        assert {name: each.maxshape for name, each in file.items()} == {
            "limited": (10, 5), "empty": (10, 5), "free": (None, None)}
        assert np.array_equal(file["limited"][...], VALUES[0])
        file["limited"].resize((10, 5))
        assert not file["limited"][4:].any()
        file["empty"].resize((3, 5))
        assert not file["empty"][...].any()
    limited = ["--only", "limited", "--layout", "contiguous"]
    done = tailrace("repack", source, "-o", target, "--force", *limited)
    assert "/limited" in next(line for line in (done.stdout + done.stderr).splitlines()
                              if "become fixed" in line)


def test_other_chunks_are_not_cut_to_present_extents(tmp_path):
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("empty", (0,), "f8", maxshape=(None,), chunks=(1000,))
        file.create_dataset("short", data=np.arange(5.0), maxshape=(None,), chunks=(100_000,))
        file.create_dataset("large", data=np.arange(5.0), maxshape=(None,), compression=1,
                            chunks=(9_000_000,))
    done = tailrace("repack", source, "-o", target)
    said = " ".join(done.stderr.split())
    assert "chunks are smaller than the input's, which need more than a 16th of --memory: /large" \
        in said and "/short" not in said
    with h5py.File(target) as file:
        assert file["empty"].chunks == (1000,) and file["short"].chunks == (100_000,)
        assert 100_000 < file["large"].chunks[0] < 9_000_000
        assert np.array_equal(file["large"][...], np.arange(5.0))
    tailrace("repack", source, "-o", target, "--force", "--chunk", "4000B")
    with h5py.File(target) as file:
        assert all(100 < each.chunks[0] <= 1000 for each in file.values())
    tailrace("repack", source, "-o", target, "--force", "--chunk", "300x")
    with h5py.File(target) as file:
        assert all(each.chunks == (300,) for each in file.values())


def test_concat_keeps_limits_of_inner_dimensions(tmp_path):
    for name in ["a.h5", "b.h5"]:
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("u", data=VALUES, maxshape=(None, None, 9), chunks=(2, 2, 5))
    tailrace("concat", "-o", tmp_path / "ab.h5", tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "ab.h5") as file:
        assert file["u"].maxshape == (None, None, 9)
        assert np.array_equal(file["u"][6:], VALUES)


@pytest.mark.parametrize("ranks", [1, 3])
def test_chunks_stay_theirs_when_another_variable_lengthens_an_inner_dimension(tmp_path, ranks):
    """The index numbers chunks by the file's current extents.

    The older extents would give chunks of the second row the numbers of their neighbours."""
    path = tmp_path / "a.nc"
    python_package.run(f"""
    from mpi4py import MPI
    import numpy as np, tailrace
    comm, path = MPI.COMM_WORLD, {str(path)!r}
    with tailrace.open(path, "w", comm=comm) as file:
        file.create_dimension("station", 4)
        file.create_dimension("time")
        for name in ("u", "v"):
            x = file.create_variable(name, ("station", "time"), "i4", chunks=(1, 2))
            if comm.rank == 0:
                x[:, 0:6] = np.arange(24).reshape(4, 6)
    with tailrace.open(path, "a", comm=comm) as file:
        if comm.rank == 0:
            file["u"][0, 6:8] = [-1, -2]
        file.flush()
        if comm.rank == 0:
            file["v"][:, 2] = -3
    """, ranks=ranks)
    expected = np.arange(24).reshape(4, 6)
    expected[:, 2] = -3
    with h5py.File(path) as file:
        assert np.array_equal(file["v"][:, :6], expected)
        assert np.array_equal(file["u"][0, 6:], [-1, -2])

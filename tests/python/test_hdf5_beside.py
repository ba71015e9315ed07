"""Programs on parallel HDF5 in mode=async: flushed and closed data are written in the background.

The program is tests/hdf5_programs/write_beside.c, which checks itself when files change. Between
H5Fflush or H5Fclose and the call that completes it, no file changes, on any machine.
"""

import h5py
import numpy as np
import pytest
from hdf5_runs import FRONTS, by_deflate, patterns, row_values, same

pytestmark = pytest.mark.sample(3)

# Patterns of write_patterns.c that test_hdf5_programs.py compares with a plain run.
NAMES = ["blocks", "chunks", "selections", "small", "append", "prepared", "reads", "changes",
         "grows", "overlaps", "lives", "left_open", "rewrites"]

BESIDE = {"TAILRACE_OPTIONS": "mode=async", "BESIDE": "1"}


def beside(names, folder, ranks, **more):
    return patterns(names, folder, ranks, program="write_beside", **{**BESIDE, **more})


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_same_values_beside_the_program(ranks, front, tmp_path):
    """All patterns in mode=async make calls while data are written."""
    options = BESIDE["TAILRACE_OPTIONS"]
    plain = patterns(NAMES, tmp_path / "plain", ranks, front=front)
    said = patterns(NAMES, tmp_path / "beside", ranks, front=front, TAILRACE_OPTIONS=options)
    for name in NAMES:
        assert f"plain/{name}.h5: " in plain and f"beside/{name}.h5: " in said
        same(tmp_path / "beside" / f"{name}.h5", tmp_path / "plain" / f"{name}.h5")
    concurrently = "concurrently with the program"
    assert concurrently in said and concurrently not in plain


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_flushes_and_closes_beside_the_program(ranks, front, tmp_path):
    """The program itself checks when files appear, and reads its values."""
    said = beside(["flushed", "changed", "closed"], tmp_path, ranks, front=front)
    assert "H5Fclose" not in said
    assert {path.name for path in tmp_path.iterdir()} == {
        "flushed.h5", "changed.h5", "closed.h5", "closed.h5.0", "closed.h5.1"}
    rows = row_values(0, 240 * 500).reshape(240, 500)
    with h5py.File(tmp_path / "flushed.h5") as file:
        np.testing.assert_array_equal(file["two"], rows)
        np.testing.assert_array_equal(file["one"][4:], rows[4:])
        assert file["one"][0, 0] == -1 and (file["one"][1:4] == -2).all()
        assert file["two"].attrs["later"] == 7
    with h5py.File(tmp_path / "changed.h5") as file:
        assert set(file) == {"grows", "copies"}
        for name in ("grows", "copies/grows"):
            np.testing.assert_array_equal(file[name],
                                          row_values(0, 190 * 500).reshape(190, 500))
    for name, first in (("closed.h5.0", -10), ("closed.h5.1", -11), ("closed.h5", -12)):
        with h5py.File(tmp_path / name) as file:
            assert (file["values"][0] == first).all() and file.attrs["number"] == 3
            np.testing.assert_array_equal(file["values"][1:], rows[1:])
            assert ("again" in file.attrs) == (name == "closed.h5.1")


@pytest.mark.parametrize("ranks_per_node", ["1", "2"])
def test_several_nodes_beside_the_program(ranks_per_node, tmp_path):
    beside(["flushed", "closed"], tmp_path, 4, TAILRACE_RANKS_PER_NODE=ranks_per_node)
    beside(["flushed", "closed"], tmp_path / "one", 4)
    for name in ("flushed.h5", "closed.h5", "closed.h5.0", "closed.h5.1"):
        same(tmp_path / name, tmp_path / "one" / name)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_kill_beside_the_program_leaves_the_flush_before(ranks, front, tmp_path):
    beside(["killed"], tmp_path, ranks, front=front, code=None)
    with h5py.File(tmp_path / "killed.h5") as file:
        assert list(file) == ["complete"]
        np.testing.assert_array_equal(file["complete"][()].ravel(), row_values(0, 240 * 500))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("codec", ["deflate,level=9", "trz"])
def test_a_program_that_exits_while_threads_work(codec, ranks, front, tmp_path):
    """Without MPI_Finalize the file has the last complete flush, and no thread crashes at exit."""
    options = f"{BESIDE['TAILRACE_OPTIONS']},codec={codec}"
    said = beside(["exits"], tmp_path, ranks, front=front, code=None, TAILRACE_OPTIONS=options)
    assert said.count(" ends\n") == ranks
    assert "completes the flush (mode=async or in_situ); what was written since the last " \
           "complete flush is lost\n" in said
    for word in ("Segmentation", "received signal", "exited on signal", "terminate called"):
        assert word not in said
    with h5py.File(by_deflate(tmp_path / "exits.h5")) as file:
        assert list(file) == ["complete"]
        np.testing.assert_array_equal(file["complete"][()].ravel(), row_values(0, 240 * 500))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_values_for_rank_0_are_in_memory_once_while_a_flush_is_under_way(ranks, front, tmp_path):
    beside(["for_rank_0"], tmp_path, ranks, front=front)
    with h5py.File(tmp_path / "for_rank_0.h5") as file:
        expected = np.concatenate([np.arange(4 << 20) % 1000 + rank for rank in range(ranks)])
        np.testing.assert_array_equal(file["pairs"]["a"], expected)
        np.testing.assert_array_equal(file["pairs"]["b"], expected)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_full_disk_beside_the_program_is_an_error_of_the_next_call(ranks, front, tmp_path):
    """The error is the same on all ranks; nothing is lost, and the next flush writes it."""
    options = f"{BESIDE['TAILRACE_OPTIONS']},codec=none"
    said = beside(["limited"], tmp_path, ranks, front=front, TAILRACE_OPTIONS=options)
    lines = [line for line in said.splitlines() if line.startswith("H5Fflush: ")]
    assert len(lines) == ranks and len(set(lines)) == 1
    assert "File too large" in lines[0] and "flush in the background" in lines[0]
    rows = row_values(0, 240 * 500).reshape(240, 500)
    with h5py.File(tmp_path / "limited.h5") as file:
        np.testing.assert_array_equal(file["first"], rows)
        np.testing.assert_array_equal(file["later"][2:], rows[2:])
        assert (file["later"][:2] == -1).all()


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_mpi_finalize_says_what_could_not_be_written_of_a_closed_file(ranks, front, tmp_path):
    options = f"{BESIDE['TAILRACE_OPTIONS']},codec=none"
    said = beside(["limited_close"], tmp_path, ranks, front=front, TAILRACE_OPTIONS=options)
    lines = [line for line in said.splitlines() if "threads that complete H5Fclose" in line]
    assert len(lines) == 1 and "limited_close.h5" in lines[0] and "File too large" in lines[0]
    assert list(tmp_path.iterdir()) == []


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_mode_in_situ_without_its_library_is_encoded_by_the_completing_call(ranks, front, tmp_path):
    """No thread encodes, so each file changes when it does in mode=async, and not before."""
    options = {**BESIDE, "TAILRACE_OPTIONS": "mode=in_situ"}
    patterns(NAMES, tmp_path / "plain", ranks, front=front)
    said = patterns(NAMES, tmp_path / "in_situ", ranks, front=front, **options)
    for name in NAMES:
        same(tmp_path / "in_situ" / f"{name}.h5", tmp_path / "plain" / f"{name}.h5")
    assert "; 0 of " in said and "libtailrace_idle.so is not loaded" in said
    beside(["flushed", "changed", "closed", "for_rank_0"], tmp_path, ranks, front=front, **options)
    rows = row_values(0, 240 * 500).reshape(240, 500)
    with h5py.File(tmp_path / "flushed.h5") as file:
        np.testing.assert_array_equal(file["two"], rows)

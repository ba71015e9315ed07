"""Programs on parallel HDF5, unmodified, with our library preloaded: the same values as without.

The programs are tests/hdf5_programs: C programs with patterns of calls. They are built against the
parallel HDF5 of the system, which has symbol versions, and against those of the build
(TAILRACE_HDF5_PROGRAMS_ROOT; scripts/build-hdf5, scripts/parts.sh), which have none. One program is
on h5py's parallel build (Debian: python3-h5py-mpi), which the system's own Python runs. Stock
serial h5py compares their files.
"""

import itertools
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, launcher, program
from hdf5_runs import (ALL_FRONTS, CONNECTOR, FRONTS, HERE, LATER, LATER_FRONTS, MANY_BOXES, OTHERS,
                       OTHER_FRONTS, built, by_deflate, contents, filters_of, flushes, h5py_of_mpi,
                       patterns, program_of, row_values, run, same, served_by, trz_shapes,
                       verified)

pytestmark = pytest.mark.sample(3)

NAMES = ["blocks", "chunks", "selections", "small", "append", "prepared", "reads", "changes",
         "grows", "overlaps", "lives", "left_open", "rewrites"]


CONNECTORS = pytest.mark.parametrize("front", [end for end in ALL_FRONTS if CONNECTOR in end],
                                     ids=lambda end: f"hdf5{end}")


@pytest.fixture(scope="module", params=[
    pytest.param((front, n), id=f"hdf5{front}-{n}_ranks", marks=[] if n == 2 else pytest.mark.full)
    for front in ALL_FRONTS for n in (1, 2, 4)])
def both(request, tmp_path_factory):
    """Run all patterns, plain and with our library; return both folders and stderr."""
    front, ranks = request.param
    folder = tmp_path_factory.mktemp("patterns")
    patterns(NAMES, folder / "plain", ranks, ours=False, front=front)
    said = patterns(NAMES, folder / "ours", ranks, front=front)
    return folder / "plain", folder / "ours", said


def test_there_is_an_hdf5_without_versions():
    if not OTHERS:
        pytest.skip("no HDF5 was given by TAILRACE_HDF5_PROGRAMS_ROOT: scripts/ci-full hdf5")


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_a_plain_run(name, both):
    """Values equal, except in datasets in which HDF5 1.10.8 itself sometimes stores wrong ones."""
    plain, ours, said = both
    assert f"ours/{name}.h5: " in said  # the report: it was served
    known = {"changes": ["replaced"], "grows": ["cut"], "lives": ["cut", "row"],
             "overlaps": ["chunked", "contiguous"]}
    same(ours / f"{name}.h5", plain / f"{name}.h5", leave_out=known.get(name, []))


def test_what_was_written_is_there(both):
    _, ours, said = both
    with h5py.File(ours / "grows.h5") as file:
        expected = np.full((38, 45), -1.25)
        expected[:27] = row_values(0, 40 * 50).reshape(40, 50)[:27, :45]
        expected[36:] = row_values(36 * 45, 90).reshape(2, 45)
        np.testing.assert_array_equal(file["cut"][()], expected)
    with h5py.File(ours / "changes.h5") as file:
        expected = np.full((50, 100), 2.5, "f4")
        expected[5:8] = row_values(500, 300).reshape(3, 100)
        np.testing.assert_array_equal(file["replaced"][()], expected)
    with h5py.File(ours / "lives.h5") as file:
        expected = row_values(0, 10000).reshape(100, 100)
        unwritten = np.ones((100, 100), bool)
        unwritten[[3, 4, 13, 14]] = False
        expected[:, 50:][unwritten[:, 50:]] = -2
        np.testing.assert_array_equal(file["cut"][()], expected)
        assert sorted(file) == ["cut", "none", "row"]
        assert file["row"][0] == 0 and (file["row"][1:] == 0).all()
    with h5py.File(ours / "overlaps.h5") as file:
        n_ranks = int(file["chunked"][10, 0]) - 6  # the last rank, which wrote row 10 last
        expected = row_values(0, 4800).reshape(80, 60)
        expected[[80 * (r + 1) // n_ranks - 1 for r in range(n_ranks)]] = 0
        expected[0] = 0
        for r in range(n_ranks):
            expected[10 + n_ranks - 1 - r] = 7 + r
        for name in ("chunked", "contiguous"):
            np.testing.assert_array_equal(file[name][()], expected)
    assert sorted(path.stem for path in ours.iterdir()) == sorted(NAMES)
    assert "left_open.h5: closed by MPI_Finalize; H5Fclose was not called" in said


@FRONTS
@pytest.mark.parametrize("ranks_per_node", [pytest.param("1", marks=pytest.mark.full), "2"])
def test_several_nodes_write_the_same(ranks_per_node, front, tmp_path):
    names = ["chunks", "selections", "append", "grows", "overlaps"]
    patterns(names, tmp_path / "one", 4, front=front)
    patterns(names, tmp_path / "more", 4, front=front, TAILRACE_RANKS_PER_NODE=ranks_per_node)
    for name in names:
        same(tmp_path / "more" / f"{name}.h5", tmp_path / "one" / f"{name}.h5")


def test_how_datasets_are_stored(both):
    """Datasets get our filters unless the program sets its own; they keep the program's chunks."""
    _, ours, said = both
    with h5py.File(ours / "chunks.h5") as file:
        assert filters_of(file["own_chunks"]) == [2, 1] and file["own_chunks"].chunks == (16, 50)
        assert filters_of(file["own_filters"]) == [1] and file["own_filters"].chunks == (16, 50)
        assert filters_of(file["contiguous"]) == [2, 1]
        assert file["contiguous"].id.get_storage_size() < file["contiguous"].nbytes / 4
    with h5py.File(ours / "small.h5") as file:
        assert file["particles"].chunks is None and file["table_07"].chunks is None
        # Small datasets get their space when they are created, like in parallel HDF5 itself.
        tables = [file[f"table_{i:02d}"] for i in range(60)]
        assert all(table.id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_EARLY
                   for table in tables)
        places = [table.id.get_offset() for table in tables]
        assert places == sorted(places) and min(np.diff(places)) > 40  # headers lie between
    assert "14.7 KiB written directly, the others through HDF5" in said  # all but what is compact
    assert "63 (small: /particles, ...)" in said


@FRONTS
@pytest.mark.parametrize("options, bound", [
    ("bound=abs=1e-2", 1e-2), ("codec=trz,bound=rel=1e-4", 1.75),
    ("*/f64: codec=trz,bound=abs=1e-2; */f32: codec=deflate,level=9", 1e-2),
])
def test_options_by_dataset(options, bound, front, tmp_path):
    patterns(["blocks"], tmp_path, 2, front=front, TAILRACE_OPTIONS=options)
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert filters_of(file["fields/f64"]) == [481]
        assert filters_of(file["fields/i32_big"])[-1] == 1  # integers stay exact
        assert file["fields/f64"].attrs["tailrace_absolute_bound"] <= bound
    expected = row_values(0, 97 * 120).reshape(97, 120)
    with h5py.File(by_deflate(tmp_path / "blocks.h5")) as file:
        assert 0 < np.abs(file["fields/f64"][()] - expected).max() <= bound
        np.testing.assert_array_equal(file["fields/i32_big"][()], expected.astype("i4"))


def test_options_that_nobody_knows_fail_the_create(tmp_path):
    said = patterns(["blocks"], tmp_path, 2, code=None, TAILRACE_OPTIONS="codek=trz")
    assert "codek" in said and list(tmp_path.iterdir()) == []


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_last_flush_stands(ranks, front, tmp_path):
    path = tmp_path / "killed.h5"
    patterns(["killed"], tmp_path, ranks, front=front, code=None)
    with h5py.File(path) as file:
        assert list(file) == ["flushed"]
        np.testing.assert_array_equal(file["flushed"][()].ravel(), row_values(0, 8000))
    assert not path.with_name("killed.h5.partial").exists()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_steps_that_are_flushed(ranks, tmp_path):
    """Run the crash campaign's program without a crash; a second run opens the file."""
    for ours in (False, True):
        folder = tmp_path / ("ours" if ours else "plain")
        flushes("flushes", folder, ranks, ours, FLUSHES="3")
        flushes("flushes", folder, ranks, ours)
    same(tmp_path / "ours" / "flushes.h5", tmp_path / "plain" / "flushes.h5")
    assert len(contents(tmp_path / "ours" / "flushes.h5")) == 1 + 3 + 2 * 5


@pytest.mark.parametrize("older, fault", [(True, "memory:1:12:1:1"), (False, "memory:5:12:-1:1")])
def test_without_memory_all_ranks_hear_of_it(older, fault, tmp_path):
    """Allocations fail from some request on, on rank 1 while the file is opened, or on both ranks
    while a dataset is created. All ranks return one error, none waits, and the dataset does not
    exist."""
    folder = tmp_path / "out"
    if older:
        flushes("flushes", folder, 1, FLUSHES="2")
    folder.mkdir(exist_ok=True)
    libraries = [built("lib", "libcampaign_recorder.so"), built("lib", "libtailrace_hdf5.so")]
    said = flushes("flushes", folder, 2, ours=False, code=None, CAMPAIGN_FOLDER=str(folder),
                   CAMPAIGN_LOG=str(tmp_path / "log"), CAMPAIGN_FAULT=fault, CAMPAIGN_MEMORY="1",
                   LD_PRELOAD=":".join(map(str, libraries)))
    lines = [line for line in said.splitlines() if line.startswith("campaign error: ")]
    assert len(lines) == 2 and len(set(lines)) == 1, said
    assert "still open" not in said
    path = folder / "flushes.h5"
    if path.exists():
        found = contents(path)
        assert all(len(item) != 5 or item[4].any() for item in found.values())


def with_one_refused(pattern, request_of, least_bytes, tmp_path):
    """Run the program on two ranks, and refuse rank 1's n-th allocation of this size or more.

    A call fails on both ranks or on none. @returns the calls that have failed, and the file"""
    folder = tmp_path / "out"
    folder.mkdir()
    libraries = [built("lib", "libcampaign_recorder.so"), built("lib", "libtailrace_hdf5.so")]
    said = flushes(pattern, folder, 2, ours=False, code=None, CAMPAIGN_FOLDER=str(folder),
                   CAMPAIGN_LOG=str(tmp_path / "log"), CAMPAIGN_MEMORY=str(least_bytes),
                   CAMPAIGN_FAULT=f"memory:{request_of}:12:1:0",
                   LD_PRELOAD=":".join(map(str, libraries)))
    lines = [line for line in said.splitlines() if line.startswith("H5")]
    assert all(lines.count(line) % 2 == 0 for line in lines), said
    assert not lines or "memory" in lines[0] or "disagree" in said, said
    return {line.split(":")[0] for line in lines}, folder / f"{pattern}.h5"


@pytest.mark.parametrize("request_of", [1, 4, 7, 10, 11, 12, 13, 15, 16, 18])
def test_a_rank_alone_without_memory_leaves_nobody_waiting(request_of, tmp_path):
    """Fail an allocation for values that are staged, converted, encoded, packed for rank 0, or cut.
    A call fails on both ranks or, if the memory is not essential, on none, and neither waits for
    the other. The program continues, and values written without an error are in the file."""
    calls, path = with_one_refused("large", request_of, 1 << 17, tmp_path)
    with h5py.File(path) as file:
        assert set(file) <= {"cut", "plain"}
        if "H5Dwrite" in calls:
            return
        cut = file["cut"][()]
    written = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
    written[256:] = written[:256] + 512 * 512
    # If the flush fails, the next one may write the smaller extents.
    assert cut.shape == (362, 505) or ("H5Dset_extent" in calls and cut.shape == (512, 512))
    np.testing.assert_array_equal(cut, written[:cut.shape[0], :cut.shape[1]])


@pytest.mark.parametrize("request_of", [7, 9, 10])
def test_a_rank_that_lacks_a_dataset_ends_the_file_at_its_last_flush(request_of, tmp_path):
    """Rank 1 cannot create a dataset (7), or list those that H5Ocopy has made (9, 10).

    No later flush may confuse datasets."""
    calls, path = with_one_refused("copies", request_of, 4096, tmp_path)
    if not path.exists():  # The first flush has failed.
        assert "H5Fflush" in calls
        return
    found = contents(path)
    whole = not calls
    assert {name for name in found if "/" not in name} == ({"g", "h"} if whole else {"g"})
    for name, item in found.items():
        if len(item) == 5:
            np.testing.assert_array_equal(item[4][0], 1 if name.endswith("/d0") else 0)
            later = 40 if whole and name == "g/d0" else 0
            np.testing.assert_array_equal(item[4][1], later)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_limit_on_file_sizes_is_an_error_of_the_flush(ranks, tmp_path):
    """SIGXFSZ (RLIMIT_FSIZE, `ulimit -f`) kills no rank, and the file has the last flush."""
    said = flushes("limited", tmp_path, ranks, TAILRACE_OPTIONS="codec=none")
    lines = [line for line in said.splitlines() if line.startswith("H5Fflush: ")]
    assert len(lines) == ranks and len(set(lines)) == 1
    assert "File too large" in lines[0] and "limited.h5" in lines[0]
    assert ".partial" not in said  # The file has its final name.
    with h5py.File(tmp_path / "limited.h5") as file:
        np.testing.assert_array_equal(file["flushed"][()].ravel(), np.arange(200000.0))
    assert [path.name for path in tmp_path.iterdir()] == ["limited.h5"]


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_not_served_is_an_error_of_the_call(ranks, front, tmp_path):
    patterns(["refused"], tmp_path, ranks, front=front)
    with h5py.File(tmp_path / "refused.h5") as file:
        np.testing.assert_array_equal(file["values"][()].ravel(), row_values(0, 5000))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_hdf5_itself_must_write(ranks, front, tmp_path):
    names = ["of_rank_0", "external", "direct_chunks", "no_filter"]
    said = patterns(names, tmp_path, ranks, front=front, program="write_specials")
    expected = row_values(0, 50 * 100).reshape(50, 100)
    with h5py.File(tmp_path / "of_rank_0.h5") as file:
        words = [b"one", b"changed after a flush", b"three, which is longer"]
        assert list(file["texts"]) == words and list(file["copy"]) == words
        assert file[file["links"][0]].name == "/values" and file[file["links"][1]].name == "/group"
        assert not file["links"][2]
        np.testing.assert_array_equal(file[file["links"][0]], expected)
    with h5py.File(tmp_path / "no_filter.h5") as file:
        np.testing.assert_array_equal(file["values"], expected)
        assert filters_of(file["values"]) == [256]
    assert "filters not available, or not for edge chunks: /values" in said
    for rank in range(ranks):
        expected[50 * rank // ranks] = -rank - 1
    with h5py.File(tmp_path / "external.h5") as file:
        np.testing.assert_array_equal(file["values"], expected)
    raw = np.fromfile(tmp_path / "external.h5.values")
    np.testing.assert_array_equal(raw.reshape(50, 100), expected)
    with h5py.File(tmp_path / "direct_chunks.h5") as file:
        for name in ("bare", "masked", "copied"):
            np.testing.assert_array_equal(file[name][()].ravel(), row_values(0, 58 * 50))
        assert filters_of(file["bare"]) == [2, 1]
        assert file["copied"].id.get_storage_size() < file["copied"].nbytes / 2


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_members_of_compounds_by_several_ranks(ranks, front, tmp_path):
    """Members take effect in the order of writes, whichever rank wrote the other members."""
    patterns(["members"], tmp_path, ranks, front=front, program="write_specials")
    of_rank_0 = np.arange(40) < 40 // ranks
    expected = np.zeros(40, [("first", "i4"), ("two", "f8", 2), ("last", "f4")])
    expected["first"] = np.arange(40) + np.where(of_rank_0, 400, 100)
    expected["two"] = np.arange(40)[:, None] + [500.25, 500.5]
    expected["last"] = np.arange(40) + np.where(of_rank_0, 300.75, 250.75)
    expected[35:] = np.zeros(1, expected.dtype)
    with h5py.File(tmp_path / "members.h5") as file:
        for name in expected.dtype.names:
            np.testing.assert_array_equal(file["triples"][name], expected[name], err_msg=name)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("options", ["", "mode=async", "memory=1100000"])
def test_members_of_compounds_that_all_ranks_write(ranks, front, options, tmp_path):
    """Members of complex numbers in chunks also take effect in the order of writes."""
    patterns(["pairs", "gone"], tmp_path, ranks, front=front, program="write_pairs",
             TAILRACE_OPTIONS=options)
    i = np.arange(5000, dtype="f4")
    of_rank_0 = i < 5000 // ranks
    with h5py.File(tmp_path / "pairs.h5") as file:
        for name in ("contiguous", "chunked", "filtered"):
            assert file[name].chunks is not None, name
            np.testing.assert_array_equal(file[name]["re"], i + np.where(of_rank_0, 400, 100))
            np.testing.assert_array_equal(file[name]["im"], i + 500)
    with h5py.File(tmp_path / "gone.h5") as file:
        assert list(file) == ["cut"]
        np.testing.assert_array_equal(file["cut"]["re"], np.where(i < 4000, i + 1, 0))
        assert not file["cut"]["im"].any()


@pytest.mark.parametrize("front", LATER_FRONTS, ids=lambda end: f"hdf5{end}")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_calls_of_1_14(ranks, front, tmp_path):
    names = ["multi", "async"]
    patterns(names, tmp_path / "plain", ranks, ours=False, front=front, program="write_later_calls")
    said = patterns([*names, "refused_later"], tmp_path / "ours", ranks, front=front,
                    program="write_later_calls")
    for name in names:
        assert f"ours/{name}.h5: " in said
        same(tmp_path / "ours" / f"{name}.h5", tmp_path / "plain" / f"{name}.h5")
    expected = row_values(0, 5400).reshape(60, 90)
    for i in range(4):
        path = tmp_path / "ours" / ("refused_later.h5" + ("" if i < 2 else ".second"))
        with h5py.File(path) as file:
            values = (expected + 1000 * i).astype(file[f"field_{i}"].dtype)
            np.testing.assert_array_equal(file[f"field_{i}"][()], values)


@pytest.mark.parametrize("preloaded, program_of", list(itertools.permutations(["", *OTHERS], 2)),
                         ids=lambda end: f"hdf5{end}")
def test_another_hdf5_is_left_alone(preloaded, program_of, tmp_path):
    """A library for one HDF5, preloaded into a program on another, leaves a plain run's file.

    It prints one line if neither HDF5 has symbol versions that separate the calls."""
    words = [built("bin", f"hdf5_programs{program_of}", "write_patterns"), tmp_path, "blocks"]
    said = run(words, 2, True, front=preloaded)
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].chunks is None
        np.testing.assert_array_equal(file["fields/f64"][()].ravel(), row_values(0, 97 * 120))
    if preloaded and program_of:
        assert said.count("tailrace: ") == 1
        assert f"serves parallel HDF5 {preloaded[1:]}." in said
        assert f"calls reach HDF5 {program_of[1:]}." in said
    else:  # TAILRACE_REPORT is set.
        assert said.count("tailrace: ") == 1 and "tailrace: no file was served" in said


@pytest.mark.parametrize("front", LATER, ids=lambda end: f"hdf5{end}")
def test_a_connector_of_the_program_is_left_alone(front, tmp_path):
    said = patterns(["blocks"], tmp_path, 2, front=front,
                    HDF5_VOL_CONNECTOR="pass_through under_vol=0;under_info={}")
    assert said.count("tailrace: ") == 1 and "selected a VOL connector" in said
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].chunks is None
        np.testing.assert_array_equal(file["fields/f64"][()].ravel(), row_values(0, 97 * 120))


@OTHER_FRONTS
def test_both_libraries_before_both_programs(front, tmp_path):
    """Each library serves the programs of its own HDF5."""
    both_libraries = [str(built("lib", f"libtailrace_hdf5{end}.so")) for end in ("", front)]
    for order in (both_libraries, both_libraries[::-1]):
        for end in ("", front):
            words = ["env", f"LD_PRELOAD={':'.join(order)}",
                     built("bin", f"hdf5_programs{end}", "write_patterns"), tmp_path, "blocks"]
            assert "blocks.h5: " in run(words, 2, False, front=end)
            with h5py.File(tmp_path / "blocks.h5") as file:
                assert filters_of(file["fields/f64"]) == [2, 1]


@FRONTS
def test_a_program_that_is_bound_at_once(front, tmp_path):
    """LD_BIND_NOW causes no error of the dynamic linker."""
    said = patterns(["blocks"], tmp_path, 2, front=front, LD_BIND_NOW="1")
    assert said.startswith("tailrace: ") and len(said.splitlines()) == 1


@FRONTS
def test_switched_off(front, tmp_path):
    said = patterns(["blocks"], tmp_path, 2, front=front, TAILRACE_HDF5="off")
    assert said == ""
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].chunks is None


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_metadata_cache_is_larger_unless_the_program_says_its_size(ranks, front, tmp_path):
    """The program itself queries HDF5's cache size."""
    patterns(["cache_sizes"], tmp_path, ranks, front=front, program="write_specials")
    with h5py.File(tmp_path / "cache_sizes.h5") as file:
        np.testing.assert_array_equal(file["values"][()].ravel(), row_values(0, 5000))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_program_says_for_each_file_whether_it_is_served(ranks, front, tmp_path):
    """Tailrace does not serve the process's first file, but later ones."""
    said = patterns(["by_turns"], tmp_path, ranks, front=front, program="write_specials")
    for number, filters in enumerate([None, [2, 1], None, []]):
        assert (f"by_turns.h5.{number}: " in said) == (filters is not None)
        with h5py.File(tmp_path / f"by_turns.h5.{number}") as file:
            assert (file["values"].chunks is None) == (filters is None)
            assert filters_of(file["values"]) == (filters or [])
            np.testing.assert_array_equal(file["values"][()].ravel(), row_values(0, 5000))


@pytest.mark.parametrize("front", ["", *OTHERS], ids=lambda end: f"hdf5{end}")
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("lacking", ["off", "library"])
def test_where_one_rank_serves_nothing_no_rank_does(lacking, first, ranks, front, tmp_path):
    """A different environment on one node, or a library with a missing dependency: no rank waits,
    and HDF5 writes a plain file."""
    library = built("lib", f"libtailrace_hdf5{front}.so")
    words = [program_of(front, "write_patterns"), tmp_path, "blocks", "append"]
    there = ["env", f"LD_PRELOAD={library}", *words]
    if lacking == "off":
        other = ["env", "TAILRACE_HDF5=off", f"LD_PRELOAD={library}", *words]
    else:
        alone = tmp_path / "lib" / library.name
        alone.parent.mkdir()
        shutil.copy(library, alone)
        other = ["env", f"LD_PRELOAD={alone}", *words]
    most = [str(ranks - 1), *there]
    parts = ["1", *other, ":", "-n", *most] if first else [*most, ":", "-n", "1", *other]
    done = subprocess.run([launcher(), "-n", *map(str, parts)], capture_output=True, text=True,
                          timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("tailrace: ") == 1
    rank = 0 if first else ranks - 1
    assert f"HDF5 writes the files without Tailrace: rank {rank}: " in done.stderr
    assert ("TAILRACE_HDF5=off" if lacking == "off" else "_serving") in done.stderr
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].chunks is None
        np.testing.assert_array_equal(file["fields/f64"][()].ravel(), row_values(0, 97 * 120))


@CONNECTORS
def test_where_one_rank_has_the_connector_off_no_rank_serves(front, tmp_path):
    served = [f"{name}={value}" for name, value in served_by(front).items()]
    words = [*served, program_of(front, "write_patterns"), tmp_path, "blocks"]
    parts = ["env", *words, ":", "-n", "1", "env", "TAILRACE_HDF5=off", *words]
    done = subprocess.run([launcher(), "-n", "1", *map(str, parts)], capture_output=True, text=True,
                          timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HDF5 writes the files without Tailrace: rank 1: TAILRACE_HDF5=off" in done.stderr
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].chunks is None
        np.testing.assert_array_equal(file["fields/f64"][()].ravel(), row_values(0, 97 * 120))


@CONNECTORS
def test_a_connector_that_the_program_chooses_for_one_file(front, tmp_path):
    plug_ins = {"HDF5_PLUGIN_PATH": str(served_by(front)["HDF5_PLUGIN_PATH"])}
    words = [program_of(front, "write_later_calls"), tmp_path, "chosen"]
    said = run(words, 2, False, **plug_ins)
    assert "chosen.h5: " in said and "chosen.h5.second" not in said
    for end, filters in (("", [2, 1]), (".second", [])):
        with h5py.File(tmp_path / f"chosen.h5{end}") as file:
            assert filters_of(file["values"]) == filters
            np.testing.assert_array_equal(file["values"][()].ravel(), row_values(0, 5400))


SERIAL = """
import ctypes, sys
hdf5 = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
hid, size = ctypes.c_int64, ctypes.c_uint64
for name in ("H5Fcreate", "H5Fopen", "H5Screate_simple", "H5Dcreate2", "H5Dopen2"):
    getattr(hdf5, name).restype = hid
hdf5.H5open()
double = hid.in_dll(hdf5, "H5T_NATIVE_DOUBLE_g")
values = (ctypes.c_double * 5000)(*range(5000))
path = sys.argv[2].encode()
file = hid(hdf5.H5Fcreate(path, 2, hid(0), hid(0)))
space = hid(hdf5.H5Screate_simple(1, (size * 1)(5000), None))
dataset = hid(hdf5.H5Dcreate2(file, b"values", double, space, hid(0), hid(0), hid(0)))
assert hdf5.H5Dwrite(dataset, double, hid(0), hid(0), hid(0), values) >= 0
for close, id in (("H5Dclose", dataset), ("H5Fclose", file)):
    assert getattr(hdf5, close)(id) >= 0
file = hid(hdf5.H5Fopen(path, 1, hid(0)))
dataset = hid(hdf5.H5Dopen2(file, b"values", hid(0)))
back = (ctypes.c_double * 5000)()
assert hdf5.H5Dread(dataset, double, hid(0), hid(0), hid(0), back) >= 0
assert list(back) == list(values)
assert hdf5.H5Fopen(path + b".missing", 0, hid(0)) < 0
"""


@CONNECTORS
def test_a_serial_program_with_the_connector(front, tmp_path):
    """A serial program gets plain HDF5's file, which it reads again and leaves open.

    The only message is HDF5's own error about a missing file."""
    folder = served_by(front)["HDF5_PLUGIN_PATH"]
    linked = subprocess.run(["ldd", folder / f"libtailrace_{folder.name}.so"],
                            capture_output=True, text=True, check=True).stdout
    hdf5 = next(line.split()[2] for line in linked.splitlines() if "libhdf5.so" in line)
    environment = {**ENVIRONMENT, **{k: str(v) for k, v in served_by(front).items()}}
    done = subprocess.run([sys.executable, "-c", SERIAL, hdf5, tmp_path / "serial.h5"],
                          capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "tailrace: " not in done.stderr and "serial.h5.missing" in done.stderr
    with h5py.File(tmp_path / "serial.h5") as file:
        assert file["values"].chunks is None
        np.testing.assert_array_equal(file["values"], np.arange(5000.0))


def objects(names, ranks, front, tmp_path, beside=""):
    """Run patterns of write_objects.c, each in a separate program because HDF5 cannot be restarted
    in one, plain and served. The files must be equal, and also the additional files `beside`.
    @returns the output of the served programs"""
    heard = {}
    for ours in (False, True):
        for name in names:
            heard[name] = patterns([name], tmp_path / ("ours" if ours else "plain"), ranks, ours,
                                   front=front, program="write_objects")
            assert not ours or f"ours/{name}.h5: " in heard[name]
    for name in names:
        for end in ("", *([f".{beside}"] if beside else [])):
            same(tmp_path / "ours" / f"{name}.h5{end}", tmp_path / "plain" / f"{name}.h5{end}")
    return heard


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_objects_that_are_reached_in_other_ways(ranks, front, tmp_path):
    """Reach objects from callbacks, by addresses, references, attributes and second ids, with
    committed types. Files end before their objects, or with HDF5."""
    objects(["callbacks", "reached", "of_attribute", "types", "closes_all", "ends_at_once"], ranks,
            front, tmp_path)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name, beside", [("mounted", "child"), ("linked", "target")])
def test_datasets_of_other_files_to_which_names_lead(name, beside, ranks, front, tmp_path):
    """Each dataset is created in the file to which its name leads."""
    objects([name], ranks, front, tmp_path, beside)
    with h5py.File(tmp_path / "ours" / f"{name}.h5.{beside}") as file:
        other = "by_group" if name == "linked" else "flushed_before"
        assert set(file) == {"before", "through", other}
        for dataset in file.values():
            np.testing.assert_array_equal(dataset[()].ravel(), row_values(0, 48 * 60))
        # HDF5 opens linked files itself, so Tailrace does not serve them.
        assert filters_of(file["through"]) == ([2, 1] if name == "mounted" else [])


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_files_that_are_closed_while_they_are_mounted(ranks, front, tmp_path):
    """HDF5 closes mounted files with the last id of all, or when the inner file is unmounted.

    Tailrace closes them then, too: once, and before MPI_Finalize."""
    names = ["outer_goes_first", "inner_goes_first", "unmounted_last", "unmounted_by_inner"]
    heard = objects(names, ranks, front, tmp_path, "child")
    same(tmp_path / "ours/unmounted_last.h5.inmost", tmp_path / "plain/unmounted_last.h5.inmost")
    for name, said in heard.items():
        assert "closed by MPI_Finalize" not in said, said
        # Each session ends with a report; the outer and inmost files are opened once more.
        counts = [said.count(f"ours/{name}.h5{end}: ") for end in ("", ".child", ".inmost")]
        assert counts == {"outer_goes_first": [2, 1, 0], "inner_goes_first": [1, 1, 0],
                          "unmounted_last": [1, 1, 2], "unmounted_by_inner": [1, 1, 0]}[name], said
    with h5py.File(tmp_path / "ours/outer_goes_first.h5") as file:
        assert set(file) == {"m", "outer_late"} and set(file["m"]) == {"own"}
        np.testing.assert_array_equal(file["outer_late"][()].ravel(), row_values(0, 48 * 60))
    with h5py.File(tmp_path / "ours/inner_goes_first.h5.child") as file:
        assert set(file) == {"before", "through", "late"}
        for dataset in file.values():
            np.testing.assert_array_equal(dataset[()].ravel(), row_values(0, 48 * 60))
            assert filters_of(dataset) == [2, 1]
    assert not list((tmp_path / "ours").glob("*.partial"))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_files_that_stay_mounted_are_closed_by_mpi_finalize(ranks, front, tmp_path):
    said = objects(["mounted_stays"], ranks, front, tmp_path, "child")["mounted_stays"]
    same(tmp_path / "ours/mounted_stays.h5.outer", tmp_path / "plain/mounted_stays.h5.outer")
    for end in ("", ".child", ".outer"):
        assert f"mounted_stays.h5{end}: closed by MPI_Finalize" in said, said
    # The last id of these files is not served by Tailrace.
    heard = objects(["unserved_goes_first", "unserved_goes_last"], ranks, front, tmp_path)
    for name, said in heard.items():
        assert ("closed by MPI_Finalize" in said) == (name == "unserved_goes_last"), said
    assert not list((tmp_path / "ours").glob("*.partial"))


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_closing_is_refused_and_counted_as_by_hdf5(ranks, front, tmp_path):
    """H5F_CLOSE_WEAK, _SEMI and _STRONG work with open ids; counts of open objects are right.

    Callbacks run with the program's printer of errors. Other ids are refused as transfer lists."""
    heard = objects(["outlives", "refuses", "closes_its_own", "reopens", "counts", "printers",
                     "wrong_lists"], ranks, front, tmp_path)
    for name, said in heard.items():
        # Tailrace does not detect that an object's last id is closed (docs/hdf5.md).
        assert ("closed by MPI_Finalize" in said) == (name == "outlives"), said


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_close_that_one_rank_refuses_leaves_the_file_to_mpi_finalize(ranks, front, tmp_path):
    said = objects(["one_refuses"], ranks, front, tmp_path)["one_refuses"]
    assert ("closed by MPI_Finalize" in said) == (ranks > 1), said


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_file_after_the_end_of_hdf5_is_closed_by_mpi_finalize(ranks, front, tmp_path):
    said = objects(["begins_anew"], ranks, front, tmp_path, "again")["begins_anew"]
    assert "begins_anew.h5.again: closed by MPI_Finalize; H5Fclose was not called" in said


@FRONTS
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_file_that_one_rank_has_open(ranks, front, tmp_path):
    patterns(["opened_by_one"], tmp_path, ranks, front=front)
    with h5py.File(tmp_path / "opened_by_one.h5") as file:
        assert file.attrs["by"] == ranks - 1


def test_serial_programs_are_left_alone(both):
    """h5dump has the serial HDF5; the library loads the parallel one into its process."""
    library = built("lib", "libtailrace_hdf5.so")
    done = subprocess.run(["h5dump", "-H", both[1] / "blocks.h5"], capture_output=True, text=True,
                          env={**ENVIRONMENT, "LD_PRELOAD": str(library)}, check=True)
    assert "i32_big" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("front", ["", *OTHERS], ids=lambda end: f"hdf5{end}")
def test_modules_with_an_hdf5_of_their_own_are_left_alone(front, tmp_path):
    """An example is the h5py of this Python: its private HDF5 is outside the symbol search
    order."""
    library = built("lib", f"libtailrace_hdf5{front}.so")
    script = ("import h5py, sys\n"
              "with h5py.File(sys.argv[1], 'w') as file: file['a'] = [1, 2]\n"
              "print(h5py.version.hdf5_version)")
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "own.h5"], capture_output=True,
                          text=True, env={**ENVIRONMENT, "LD_PRELOAD": str(library)})
    assert (done.returncode, done.stdout, done.stderr) == (0, h5py.version.hdf5_version + "\n", "")
    with h5py.File(tmp_path / "own.h5") as file:
        assert list(file["a"]) == [1, 2]


CHANGES = """
import sys, h5py, numpy as np
from mpi4py import MPI
with h5py.File(sys.argv[1], "r+", driver="mpio", comm=MPI.COMM_WORLD) as file:
    if len(sys.argv) > 3:
        file[sys.argv[2]].resize(int(sys.argv[3]), 0)
    elif MPI.COMM_WORLD.rank == 0:
        file[sys.argv[2]][:20] = np.full(20, 3, file[sys.argv[2]].dtype)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_datasets_that_share_chunks_do_not_change_one_another(ranks, tmp_path):
    """Writes to a file of concat --dedup must not change chunks that share bytes.

    Changed chunks get new space. Smaller extents are refused, because HDF5 would write the chunks
    at the edge in place."""
    environment = h5py_of_mpi()
    pair = np.dtype([("x", "i4"), ("y", "f8")])
    for name in ("in0.h5", "in1.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            for variable, dtype in (("a", "i8"), ("b", "i8"), ("p", pair), ("q", pair)):
                file.create_dataset(variable, data=np.full(40, 7, dtype), maxshape=(None,),
                                    chunks=(20,), compression="gzip")
    path = tmp_path / "out.h5"
    subprocess.run([program(), "concat", "-o", path, "--dedup", "--chunk", "20x", "-q",
                    tmp_path / "in0.h5", tmp_path / "in1.h5"], check=True, env=ENVIRONMENT)
    with h5py.File(path) as file:
        for one, other in ("ab", "pq"):
            assert file[one].id.get_chunk_info(0) == file[other].id.get_chunk_info(0)
    words = ["/usr/bin/python3", "-c", CHANGES, path]
    run([*words, "a"], ranks, ours=True, **environment)
    run([*words, "p"], ranks, ours=True, **environment)
    said = run([*words, "b", 30], ranks, ours=True, code=None, **environment)
    assert "HDF5 would encode its chunks again" in said
    with h5py.File(path) as file:
        expected = np.full(80, 7)
        np.testing.assert_array_equal(file["b"], expected)
        expected[:20] = 3
        np.testing.assert_array_equal(file["a"], expected)
        pairs = np.full(80, 7, pair)
        np.testing.assert_array_equal(file["q"], pairs)
        pairs[:20] = 3
        np.testing.assert_array_equal(file["p"], pairs)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_last_flush_of_texts_stands(ranks, front, tmp_path):
    patterns(["killed_texts"], tmp_path, ranks, front=front, program="write_specials", code=None)
    with h5py.File(tmp_path / "killed_texts.h5") as file:
        for name in ("whole", "chunks"):
            assert list(file[name]) == [b"%11d of round 1" % i for i in range(40)]


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_last_flush_of_small_datasets_stands(ranks, front, tmp_path):
    """HDF5 must write its buffered values of small datasets, whichever rank or program has them
    open."""
    patterns(["killed_small"], tmp_path, ranks, front=front, program="write_specials", code=None)
    with h5py.File(tmp_path / "killed_small.h5") as file:
        assert len(file) == 48
        for i, dataset in enumerate(file.values()):
            np.testing.assert_array_equal(dataset[()].ravel(),
                                          row_values(0, 420) + 1000 * i + 100000)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2])
def test_more_boxes_than_an_attribute_has_room_for(ranks, tmp_path):
    """Each component has its bound. The attribute of their positions is omitted, so that verify
    uses only the largest bound."""
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = ["/usr/bin/python3", "-c", MANY_BOXES]
    run([*words, plain], ranks, ours=False, **h5py_of_mpi())
    run([*words, ours], ranks, ours=True, TAILRACE_OPTIONS="component:*: bound=rel=1e-4",
        **h5py_of_mpi())
    with h5py.File(ours) as file:
        values = file["level_0/data:datatype=0"]
        assert values.chunks == (512,) and (8, 8, 8) in trz_shapes(values)
        assert "tailrace_component_runs" not in values.attrs
        bounds = values.attrs["tailrace_component_bounds"]
        np.testing.assert_allclose(bounds, [2e-4, 200], rtol=1e-3)
    with h5py.File(plain) as file, h5py.File(by_deflate(ours)) as decoded:
        written = file["level_0/data:datatype=0"][()]
        error = np.abs(decoded["level_0/data:datatype=0"][()] - written)
        sizes = np.repeat(np.where(np.arange(2100) % 2, 1024, 512), 2)
        large = np.repeat(np.tile([False, True], 2100), sizes)
        assert 0 < error[~large].max() <= 2e-4 and 1 < error[large].max() <= 200
    assert verified(plain, ours).returncode == 0


@pytest.mark.full
def test_components_whose_names_cannot_be_read_are_kept_exactly(tmp_path):
    """Names are texts of variable length, like h5py's; any component may be the requested one."""
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = ["/usr/bin/python3", "-c", MANY_BOXES]
    run([*words, plain, "long"], 2, ours=False, **h5py_of_mpi())
    said = run([*words, ours, "long"], 2, ours=True, TAILRACE_REPORT="1", **h5py_of_mpi(),
               TAILRACE_OPTIONS="bound=rel=1e-3; component:small: bound=rel=1e-5")
    assert "stored exactly, because their components do not have separate chunks" in said
    with h5py.File(plain) as file, h5py.File(by_deflate(ours)) as decoded:
        np.testing.assert_array_equal(decoded["level_0/data:datatype=0"],
                                      file["level_0/data:datatype=0"])


GIVES_UP = """
import sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    file.attrs["num_components"] = 1
    for level in range(3):
        group = file.create_group(f"level_{level}")
        corners = np.dtype([(f"{end}_{axis}", "i4") for end in ("lo", "hi") for axis in "ijk"])
        boxes = group.create_dataset("boxes", (4,), corners)
        offsets = group.create_dataset("data:offsets=0", (5,), "i8")
        if comm.rank == 0:
            boxes[...] = np.array([(0, 0, 0, 15, 15, 15)] * 4, corners)
            offsets[...] = np.arange(5) * 4096
        if level == 1 and comm.rank == comm.size - 1:
            break
        values = group.create_dataset("data:datatype=0", (16384,), "f8")
        n = 16384 // comm.size
        values[comm.rank * n:(comm.rank + 1) * n] = np.arange(comm.rank * n, (comm.rank + 1) * n)
print(f"rank {comm.rank} has closed it", file=sys.stderr)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_that_closes_the_file_where_others_create_a_level(ranks, tmp_path):
    """Ranks meet when they create a level's dataset. If one has closed the file instead, all get an
    error and none waits."""
    path = tmp_path / "gives_up.h5"
    words = ["/usr/bin/python3", "-c", GIVES_UP, path]
    said = run(words, ranks, ours=True, code=None, TAILRACE_OPTIONS="codec=trz", **h5py_of_mpi())
    assert said.count("some ranks close the file, others do not") >= 1
    assert said.count("has closed it") == 1 and f"rank {ranks - 1} has closed it" in said
    with h5py.File(by_deflate(path)) as file:
        np.testing.assert_array_equal(file["level_0/data:datatype=0"], np.arange(16384))
        assert list(file["level_1"]) == ["boxes", "data:offsets=0"]


LARGE_CHUNKS = """
import sys, h5py, numpy as np
from mpi4py import MPI
n = int(sys.argv[2])
with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    values = file.create_dataset("x", (2 * n,), "f4", chunks=(n,))
    for part in range(MPI.COMM_WORLD.rank, 4, MPI.COMM_WORLD.size):
        values[part * n // 2:(part + 1) * n // 2] = np.arange(part * n // 2, (part + 1) * n // 2)
"""


def test_chunks_that_no_memory_is_there_to_encode(tmp_path):
    """Assembled chunks fit into memory, but trz needs more: this is known before the flush."""
    n = (16 << 20) // 17 // 4 // 2 * 2
    words = ["/usr/bin/python3", "-c", LARGE_CHUNKS, tmp_path / "large.h5", n]
    said = run(words, 2, ours=True, TAILRACE_OPTIONS="memory=16MiB,codec=trz,bound=abs=1e-3",
               **h5py_of_mpi())
    assert "chunks too large to encode within memory=: /x" in said
    with h5py.File(tmp_path / "large.h5") as file:
        np.testing.assert_array_equal(file["x"], np.arange(2 * n, dtype="f4"))


EXTENTS = """
import sys, h5py
from mpi4py import MPI
with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    for name, kept in (("plain", {}), ("chunks", {"chunks": (1000,)}),
                       ("grows", {"chunks": (1000,), "maxshape": (None,)})):
        values = file.create_dataset(name, (20000,), "f8", **kept)
        for n in (20000, 15500, 20000, 30000):
            try:
                values.id.set_extent((n,))
            except RuntimeError:
                pass
            if MPI.COMM_WORLD.rank == 0:
                print(name, n, values.shape, file=sys.stderr)
            file.flush()
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_extents_change_of_what_the_program_has_chunked_alone(ranks, tmp_path):
    """Datasets that Tailrace stores in chunks, but the program sees as contiguous, keep extents."""
    told = [run(["/usr/bin/python3", "-c", EXTENTS, tmp_path / f"{ours}.h5"], ranks, ours=ours,
                **h5py_of_mpi()) for ours in (False, True)]
    plain, ours = ([line for line in said.splitlines() if line.endswith(",)")] for said in told)
    assert len(plain) == 12 and "plain 15500 (20000,)" in plain and "grows 30000 (30000,)" in plain
    assert ours == plain


@pytest.mark.parametrize("ranks", [1, 2])
def test_h5py_parallel(ranks, tmp_path):
    clean = h5py_of_mpi()
    words = ["/usr/bin/python3", HERE / "write_h5py.py"]
    run([*words, tmp_path / "plain.h5"], ranks, ours=False, **clean)
    said = run([*words, tmp_path / "ours.h5"], ranks, ours=True, **clean)
    assert said.count("ours.h5") == 2
    same(tmp_path / "ours.h5", tmp_path / "plain.h5")

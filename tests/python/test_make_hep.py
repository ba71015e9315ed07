"""make_hep.py: its sets have the requested properties, and are the same in each run."""

import json
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
from cli_tools import bench_script

pytestmark = pytest.mark.full

SMALL = ["--files", 3, "--datasets", 150, "--images", 2, "--image-width", 32, "--size", "2MB"]
IDS = {"run", "subrun", "evt", "subevt", "vtxid", "npng"}


def make(folder, *arguments):
    """Make a set. @returns the summary's numbers, and the files in the list's order."""
    report = folder.parent / f"{folder.name}.json"
    command = [sys.executable, str(bench_script("make_hep.py")), str(folder), "--json",
               str(report), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text()), (folder / "list.txt").read_text().split()


def tables(path):
    """Return {group: {column: values}}, and the storage properties of each dataset."""
    with h5py.File(path) as file:
        values = {name: {key: item[()] for key, item in group.items()}
                  for name, group in file.items()}
        storage = {(name, key): (item.dtype.str, item.shape[1], item.chunks, item.maxshape,
                                 item.compression, item.compression_opts)
                   for name, group in file.items() for key, item in group.items()}
    return values, storage


@pytest.fixture(scope="module")
def small_set(tmp_path_factory):
    numbers, paths = make(tmp_path_factory.mktemp("hep") / "set", *SMALL)
    return numbers, paths, [tables(path) for path in paths]


def test_numbers_are_as_asked(small_set):
    numbers, paths, files = small_set
    assert len(paths) == numbers["files"] == 3
    raw, stored = 0, 0
    for values, storage in files:
        assert storage.keys() == files[0][1].keys()
        assert len(storage) == numbers["datasets"] == 150
        assert len(values) == numbers["groups"]
        empty = [item for group in values.values() for item in group.values() if len(item) == 0]
        assert len(empty) == round(0.84 * 150)
        raw += sum(item.nbytes for group in values.values() for item in group.values())
    for path in paths:
        with h5py.File(path) as file:
            stored += sum(item.id.get_storage_size() for group in file.values()
                          for item in group.values())
    assert raw == numbers["raw_bytes"] == pytest.approx(2e6, rel=0.1)
    assert stored == numbers["stored_bytes"]
    assert numbers["empty_share"] == pytest.approx(0.84)
    sizes = [sum(item.nbytes for group in values.values() for item in group.values())
             for values, _ in files]
    assert max(sizes) / min(sizes) == pytest.approx(3, rel=0.2)
    assert numbers["largest_over_smallest"] == pytest.approx(max(sizes) / min(sizes))


def test_storage_is_like_the_experiments(small_set):
    _, paths, files = small_set
    for path, (values, storage) in zip(paths, files):
        assert re.fullmatch(r".*/hep_r\d{5}_s\d\d\.h5", path)
        images = 0
        for (group, name), (dtype, width, chunks, limit, codec, level) in storage.items():
            assert (chunks, codec, level) == ((128, width), "gzip", 6)
            assert dtype in ("<u4", "<u2", "<f4", "<f8") or (dtype == "|u1" and width == 32)
            n_rows = len(values[group][name])
            assert limit == (n_rows if width > 1 and n_rows >= 128 else None, width)
            images += width > 1
        assert images == 2
        for group in values.values():
            assert len({len(item) for item in group.values()}) == 1


def test_ids_are_consistent(small_set):
    _, paths, files = small_set
    for path, (values, _) in zip(paths, files):
        run, subrun = map(int, re.search(r"_r(\d+)_s(\d+)", path).groups())
        spill = values["spill"]["evt"].ravel()
        assert set(values["spill"]) == {"run", "subrun", "evt"}
        assert np.all(np.diff(spill.astype("i8")) > 0)
        for name, group in values.items():
            if len(group["evt"] if "evt" in group else []) == 0:
                continue
            assert np.all(group["run"] == run) and np.all(group["subrun"] == subrun), name
            events = group["evt"].ravel().astype("i8")
            assert np.all(np.diff(events) >= 0), name
            assert set(events) <= set(spill.tolist()), name
            names = [key for key in ("evt", "subevt", "vtxid", "npng") if key in group]
            rows = list(zip(*(group[key].ravel().tolist() for key in names)))
            assert rows == sorted(set(rows)), f"{name}: rows are not told apart, or not in order"


def test_ratios_are_as_asked(tmp_path):
    """Ratios are near the requested ones: small chunks of floats do not reach that of 1 MiB."""
    arguments = ["--files", 1, "--datasets", 60, "--groups", 4, "--empty", 0, "--images", 1,
                 "--image-width", 1024, "--size", "6MB", "--image-share", 0.5]
    low, _ = make(tmp_path / "low", *arguments, "--float-ratio", 1.5, "--image-ratio", 40)
    high, _ = make(tmp_path / "high", *arguments, "--float-ratio", 20, "--image-ratio", 400)
    assert 15 < low["image_ratio"] < 100 < 150 < high["image_ratio"] < 1000
    assert 1 < low["column_ratio"] < 0.6 * high["column_ratio"]
    assert low["image_raw_bytes"] == pytest.approx(3e6, rel=0.2)


def test_seed_and_jobs(tmp_path):
    first, paths = make(tmp_path / "a", *SMALL, "--jobs", 1)
    again, others = make(tmp_path / "b", *SMALL, "--jobs", 3)
    other, _ = make(tmp_path / "c", *SMALL, "--seed", 2)
    assert first["content_crc32"] == again["content_crc32"] != other["content_crc32"]
    for mine, theirs in zip(paths, others):
        ours, same = tables(mine), tables(theirs)
        assert ours[1] == same[1]
        for name, group in ours[0].items():
            for key, item in group.items():
                assert item.tobytes() == same[0][name][key].tobytes(), (name, key)


@pytest.mark.parametrize("arguments, words", [
    (["--datasets", 20, "--images", 4], "too few"), (["--empty", "1"], "below 1"),
    (["--float-ratio", "0.5"], "at least 1"), (["--size", "plenty"], "--size")])
def test_bad_usage(tmp_path, arguments, words):
    command = [sys.executable, str(bench_script("make_hep.py")), str(tmp_path / "x"),
               *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0
    assert words in done.stderr
    assert not (tmp_path / "x").exists()

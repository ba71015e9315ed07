"""Baseline of `tailrace concat`, the check by hashes, and concat.py on a tiny set."""

import csv
import json
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, bench_script, lab_program, launcher, program, tailrace

pytestmark = pytest.mark.full

TINY = ["--files", 3, "--datasets", 60, "--images", 1, "--image-width", 32, "--size", "600KB"]


def script(name, *arguments, code=0):
    done = subprocess.run([sys.executable, str(bench_script(name)), *map(str, arguments)],
                          capture_output=True, text=True, timeout=600, check=False,
                          env=ENVIRONMENT)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def tiny_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hep") / "set"
    script("make_hep.py", folder, *TINY)
    return folder / "list.txt"


@pytest.fixture(scope="module")
def baseline(tiny_set):
    """Return a function that runs the baseline; skip the test if it is not built."""
    launcher()
    if not (pathlib.Path(program()).parent / "tailrace-bench").exists():
        pytest.skip("tailrace-bench is not built")
    probe = subprocess.run([lab_program(), "bench", "concat-hdf5", "-o",
                            str(tiny_set.parent / "probe.h5"), "-i", str(tiny_set)],
                           capture_output=True, text=True, timeout=600, check=False,
                           env=ENVIRONMENT)
    if "built without a parallel HDF5" in probe.stderr:
        pytest.skip("built without a parallel HDF5")
    return lambda *arguments, **keywords: tailrace("bench", "concat-hdf5", *arguments, **keywords)


@pytest.mark.parametrize("ranks, options", [(1, []), (2, ["--buffer", "3KiB"]), (4, ["-z", "0"])])
def test_baseline_holds_every_row(baseline, tiny_set, tmp_path, ranks, options):
    """4 ranks exceed the number of files; 3 KiB are less than most datasets, which needs rounds."""
    output, report = tmp_path / "out.h5", tmp_path / "out.json"
    done = baseline("-o", output, "-i", tiny_set, "--json", report, *options, ranks=ranks)
    script("concat_digest.py", tiny_set, output)
    numbers = json.loads(report.read_text())
    inputs = [pathlib.Path(line) for line in tiny_set.read_text().split()]
    assert (numbers["ranks"], numbers["n_files"], numbers["n_datasets"]) == (ranks, 3, 60)
    assert numbers["input_bytes"] == sum(path.stat().st_size for path in inputs)
    assert numbers["output_bytes"] == output.stat().st_size
    n_filled = numbers["n_datasets"] - numbers["n_empty"]
    assert numbers["n_writes"] == n_filled if ranks != 2 else numbers["n_writes"] > 2 * n_filled
    assert list(numbers["stages"]) == ["open", "create", "read", "write", "close", "sync"]
    assert all(name in done.stdout for name in numbers["stages"])
    with h5py.File(output) as file:
        storage = {f"{group}/{name}": item for group in file for name, item in file[group].items()}
        raw = sum(item.nbytes for item in storage.values())
        assert numbers["raw_bytes"] == raw
        for item in storage.values():
            if item.size == 0:
                assert item.chunks is None
                continue
            rows = 128 if item.shape[1] > 1 else (1 << 20) // item.dtype.itemsize
            assert item.chunks == (min(rows, len(item)), item.shape[1])
            assert item.compression_opts == (None if "-z" in options else 6)


def test_baseline_names_what_does_not_fit(baseline, tiny_set, tmp_path):
    first, second, _ = tiny_set.read_text().split()
    other = tmp_path / "other.h5"
    shutil.copy(second, other)
    with h5py.File(other, "a") as file:
        del file["spill/evt"]
    done = baseline("-o", tmp_path / "out.h5", first, other, code=2)
    assert str(other) in done.stderr
    done = baseline("-o", tmp_path / "out.h5", first, other, code=2, ranks=2)
    assert "all files must have the same datasets" in done.stderr
    done = baseline("-o", tmp_path / "out.h5", first, tmp_path / "no.h5", code=2)
    assert "no.h5" in done.stderr
    other.write_bytes(pathlib.Path(second).read_bytes()[:5000])
    done = baseline("-o", tmp_path / "out.h5", first, other, ranks=2, code=2)
    assert str(other) in done.stderr


def joined(list_path, output):
    """Concatenate the list with h5py, in memory."""
    files = [h5py.File(path) for path in list_path.read_text().split()]
    with h5py.File(output, "w") as target:
        for group in files[0]:
            for name in files[0][group]:
                path = f"{group}/{name}"
                target[path] = np.concatenate([file[path][()] for file in files])
    for file in files:
        file.close()


def test_digest_finds_every_difference(tiny_set, tmp_path):
    whole = tmp_path / "whole.h5"
    joined(tiny_set, whole)
    assert "hold all" in script("concat_digest.py", tiny_set, whole).stdout
    with h5py.File(whole) as file:
        events = file["spill/evt"][()]
    swapped = events.copy()
    swapped[[0, 1]] = events[[1, 0]]
    for name, values, words in [("swapped", swapped, "other values"),
                                ("short", events[:-1], "expected"),
                                ("wide", events.astype("u8"), "expected"),
                                ("gone", None, "missing")]:
        changed = tmp_path / f"{name}.h5"
        shutil.copy(whole, changed)
        with h5py.File(changed, "a") as file:
            del file["spill/evt"]
            if values is not None:
                file["spill/evt"] = values
        done = script("concat_digest.py", tiny_set, whole, changed, code=1)
        assert "spill/evt" in done.stderr and words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_compare(baseline, tiny_set, tmp_path):
    script("concat.py", "compare", "--set", tiny_set.parent, "--ranks", "1,2", "--rounds", 2,
           "--folder", tmp_path, "--json", tmp_path / "out.json", "--csv", tmp_path / "out.csv")
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {(row["method"], row["ranks"]) for row in rows} >= {
        ("baseline", 1), ("tailrace", 1), ("baseline", 2), ("tailrace", 2)}
    assert len({row["raw_bytes"] for row in rows}) == 1
    for row in rows:
        assert len(row["totals_s"]) == row["rounds"] == 2
        assert row["smallest_s"] <= row["total_s"] <= row["largest_s"]
        base = next(r for r in rows if (r["method"], r["ranks"]) == ("baseline", row["ranks"]))
        assert row["times_faster"] == pytest.approx(base["total_s"] / row["total_s"])
        assert row["peak_rss_bytes"] > 1 << 20
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows)


def test_scale(tmp_path):
    launcher()
    script("concat.py", "scale", "--scale-files", "2,4", "--scale-datasets", "60", "--dataset-kb",
           5, "--ranks", 2, "--rounds", 1, "--memory", "64MiB", "--folder", tmp_path, "--json",
           tmp_path / "out.json", "--csv", tmp_path / "out.csv")
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert [(row["over"], row["files"], row["datasets"]) for row in rows] == [
        ("files", 2, 200), ("files", 4, 200), ("datasets", 16, 60)]
    for row in rows:
        assert row["memory_cap_bytes"] == 64 << 20
        assert row["peak_memory_bytes"] <= row["memory_cap_bytes"]

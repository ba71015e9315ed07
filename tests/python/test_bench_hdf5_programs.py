"""hdf5_programs.py in its smallest form: it compares the files of all methods.

lab/bench/tables/tables.py can make the page's tables from its CSVs. No test judges a time."""

import csv
import importlib.util
import subprocess
import sys

import h5py
import pytest
from application_runs import build_folder
from cli_tools import ENVIRONMENT, ROOT, bench_script, find_bench_modules, launcher, program

pytestmark = pytest.mark.full

SCRIPT = bench_script("hdf5_programs.py")
CSVS = ["hdf5_fields.csv", "hdf5_calls.csv", "hdf5_plotfiles.csv"]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def script(*words, code=0):
    done = subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True,
                          text=True, timeout=600, env={**ENVIRONMENT, "TAILRACE": program()})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def built():
    launcher()
    for name in ("bin/h5bench_pattern", "bin/tailrace-bench", "lib/libtailrace_hdf5.so"):
        if not (build_folder() / name).exists():
            pytest.skip(f"{name} is not built")
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("hdf5plugin has SZ3's filter")


def test_a_quick_session(tmp_path, monkeypatch):
    built()
    script("--quick", "--ranks", "2", "--folder", tmp_path, "--results", tmp_path)
    for name in CSVS:
        assert read(tmp_path / name)[0].keys() == read(ROOT / "lab/bench/results" / name)[0].keys()
    fields = read(tmp_path / "hdf5_fields.csv")
    assert all(float(row["error_over_bound"]) <= 1 for row in fields)
    for row in fields:
        exact = row["method"].endswith(("-none", "-deflate", "hdf5-unchanged"))
        assert (float(row["error_over_bound"]) == 0) == exact, row
    calls = read(tmp_path / "hdf5_calls.csv")
    assert [row["method"] for row in calls] == 3 * ["plain", "served", "served-none"]
    plotfiles = {row["method"]: row for row in read(tmp_path / "hdf5_plotfiles.csv")}
    assert int(plotfiles["served-trz"]["file_bytes"]) < int(plotfiles["served"]["file_bytes"])
    assert int(plotfiles["served"]["file_bytes"]) < int(plotfiles["plain"]["file_bytes"])
    find_bench_modules(monkeypatch)
    import tables
    for name in ("hdf5_fields", "hdf5_calls", "hdf5_plotfiles"):
        assert tables.render(name, tmp_path).count("\n") >= 3


def test_a_difference_is_found(tmp_path):
    for name, value in (("plain", 1.0), ("same", 1.0), ("other", 1.002)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["values"] = [[0.0, value], [3.0, 1.0]]
    compare = ("compare", tmp_path / "plain.h5")
    script(*compare, tmp_path / "same.h5")
    assert "values differs" in script(*compare, tmp_path / "other.h5", code=1)
    script(*compare, tmp_path / "other.h5", "1e-3", 1, 2)
    assert "errors of" in script(*compare, tmp_path / "other.h5", "5e-4", 1, 2, code=1)


def test_unknown_parts_are_refused():
    built()
    assert "there is no part all" in script("--parts", "all", code=2)

"""transparent.py on a small data set: every method runs, results are right, tables are complete.

Times must only exist.
"""

import csv
import json
import subprocess
import sys

import pytest
from application_runs import application, build_folder
from cli_tools import ENVIRONMENT, bench_script, launcher, program
from climate_cases import source

pytestmark = pytest.mark.full

LIBRARY = build_folder() / "lib" / "libtailrace_pnetcdf.so"


def bench(what, folder, *words):
    """Run the script; check that CSV and JSON agree. @returns the rows of the CSV."""
    launcher()
    application("at-pnetcdf")
    source(folder / "source.h5")
    command = [sys.executable, str(bench_script("transparent.py")), what, "--size", "200KB",
               "--climate", f"--source {folder / 'source.h5'} --field T", "--folder", str(folder),
               "--csv", str(folder / "x.csv"), "--json", str(folder / "x.json"), "--rounds", "1",
               "--ranks", "2", "--limits", "100", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE": program()})
    assert done.returncode == 0, done.stdout + done.stderr
    with open(folder / "x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    whole = json.loads((folder / "x.json").read_text())
    assert [row["method"] for row in whole["rows"]] == [row["method"] for row in rows]
    assert whole["data"].get("layers", 4) == 4
    return rows


def test_write(tmp_path):
    rows = bench("write", tmp_path, "--layouts", "sparse,dense")
    expected = ["P_original", "P_independent",
                *(["P_sparse", "P_dense"] if LIBRARY.exists() else [])]
    if (build_folder() / "examples" / "replay-hdf5").exists():
        expected += ["H_original", "H_filtered"]
    assert [row["method"] for row in rows] == expected
    for row in rows:
        assert float(row["total_s"]) > 0
        # Layout sparse saves space by holes, which the file's length includes.
        compressed = row["method"] not in ("P_original", "P_independent", "H_original", "P_sparse")
        assert (float(row["ratio"]) > 1.2) == compressed
    assert max(float(row["times_faster"]) for row in rows[:2]) == 1


def test_read(tmp_path):
    rows = bench("read", tmp_path, "--codecs", "trz,trz@0.01", "--chunk", "1x4x12x48",
                 "--applications", "at")
    methods = [row["method"] for row in rows]
    assert methods[:2] == ["P_original", "P_independent"]
    assert ("P_trz" in methods) == LIBRARY.exists()
    assert ("T_trz_0.01" in methods) == (build_folder() / "examples" / "at").exists()
    ratio = {row["method"]: float(row["ratio"]) for row in rows}
    for method, value in ratio.items():
        assert (value > 1.2) == method.endswith(("trz", "0.01", "filtered")), method
    assert all(float(row["storage_bytes"]) > 0 for row in rows)


def test_md(tmp_path):
    application("md-pnetcdf")
    rows = bench("md", tmp_path, "--cells", "5", "--steps", "4")
    expected = ["none", "P_original", *(["P_trz", "P_bounds"] if LIBRARY.exists() else [])]
    assert [row["method"] for row in rows] == expected
    assert all(float(row["total_s"]) > 0 for row in rows)
    assert float(rows[0]["ratio"]) == 0 and 0.9 < float(rows[1]["ratio"]) <= 1


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--ranks", ""]])
def test_refuses(words):
    application("at-pnetcdf")
    done = subprocess.run([sys.executable, str(bench_script("transparent.py")), "read", *words],
                          capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE": program()})
    assert done.returncode == 2
    assert "needs a round" in done.stderr

"""gather_steps.py on a short run of md: sizes of chunks with one step and with several."""

import csv
import subprocess
import sys

import pytest
from application_runs import run
from cli_tools import ENVIRONMENT, bench_script, program

pytestmark = pytest.mark.full


def bench(folder, *words):
    return subprocess.run([sys.executable, str(bench_script("gather_steps.py")), "--csv",
                           str(folder / "x.csv"), "--data", str(folder), *words],
                          capture_output=True, text=True, timeout=600, check=False,
                          env={**ENVIRONMENT, "TAILRACE": program()})


def test_steps_that_follow_closely_are_worth_something_to_each_other(tmp_path):
    run("md", tmp_path, "--cells", 6, "--steps", 16, "--codec", "none", output="sync")
    done = bench(tmp_path, "--md", str(tmp_path / "sync.h5"), "--steps", "1,4")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["steps_per_chunk"] for row in rows] == 7 * ["1", "4"]
    n_bytes = {(row["field"], row["steps_per_chunk"]): int(row["encoded_bytes"]) for row in rows}
    for field in ("x", "y", "z"):
        assert n_bytes[field, "4"] < 0.8 * n_bytes[field, "1"]
    assert {int(row["waiting_bytes"]) for row in rows} == {0, 4 * 864 * 4}


def test_without_data_it_says_so(tmp_path):
    done = bench(tmp_path)
    assert done.returncode == 1 and "neither real data" in done.stderr

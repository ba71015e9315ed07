"""rechunk.py on a small file: every tool's output has the requested chunks and the exact values.

The script itself compares them. Times must only exist."""

import csv
import shutil
import subprocess
import sys

import pytest
from cli_tools import ENVIRONMENT, bench_script, program

pytestmark = pytest.mark.full


def bench(folder, *words):
    return subprocess.run([sys.executable, str(bench_script("rechunk.py")), "--rounds", "1",
                           "--size", "25MB", "--memory", "64MB", "--folder", str(folder), "--csv",
                           str(folder / "x.csv"), *words], capture_output=True, text=True,
                          timeout=600, check=False, env={**ENVIRONMENT, "TAILRACE": program()})


def test_tools(tmp_path):
    tools = [tool for tool in ("h5repack", "nccopy") if shutil.which(tool)]
    if not shutil.which("nccopy"):
        pytest.skip("nccopy is not installed")
    done = bench(tmp_path, "--tools", ",".join(["tailrace", *tools]))
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["tool"] for row in rows] == 2 * ["tailrace", *tools]
    assert {row["direction"] for row in rows} == {"maps to series", "series to maps"}
    for row in rows:
        assert float(row["s"]) > 0 and float(row["cpu_s"]) > 0
        assert 1e6 < int(row["resident_bytes"])
        assert int(row["file_bytes"]) < int(row["raw_bytes"])


def test_what_takes_too_long_ends_with_1(tmp_path):
    done = bench(tmp_path, "--tools", "tailrace", "--limit", "0.001")
    assert done.returncode == 1
    assert "takes more than" in done.stderr and not (tmp_path / "x.csv").exists()

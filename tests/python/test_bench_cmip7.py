"""cmip7.py on a small file: every tool's output has the exact values and passes CMIP7's check.

The script itself runs the check. Times must only exist."""

import csv
import pathlib
import shutil
import subprocess
import sys

import pytest
from cli_tools import ENVIRONMENT, bench_script, program

pytestmark = pytest.mark.full


def test_tools(tmp_path):
    beside = pathlib.Path(sys.executable).parent / "cmip7repack"
    if not beside.exists() and not shutil.which("cmip7repack"):
        pytest.skip("cmip7repack is not installed")
    if not shutil.which("h5repack"):
        pytest.skip("h5repack is not installed")
    done = subprocess.run([sys.executable, str(bench_script("cmip7.py")), "--rounds", "1",
                           "--size", "12MB", "--folder", str(tmp_path), "--csv",
                           str(tmp_path / "x.csv")], capture_output=True, text=True, timeout=600,
                          check=False, env={**ENVIRONMENT, "TAILRACE": program()})
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == ["cmip7repack", "tailrace, unsynced", "tailrace",
                                             "cmip7repack, chunks copied",
                                             "tailrace, chunks copied"]
    for row in rows:
        assert float(row["s"]) > 0 and float(row["cpu_s"]) > 0
        assert int(row["file_bytes"]) < int(row["raw_bytes"])
    assert not list(tmp_path.glob("tmp*"))  # temporary files are removed

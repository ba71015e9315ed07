"""xarray_dask.py on a small data set: every method's result is right, and the table is complete.

Times must only exist.
"""

import csv
import subprocess
import sys

import pytest

import python_package
from cli_tools import bench_script

pytestmark = pytest.mark.full

python_package.load()


def test_xarray_dask(tmp_path):
    for needed in ("xarray", "dask", "netCDF4", "h5netcdf"):
        pytest.importorskip(needed)
    done = subprocess.run(
        [sys.executable, str(bench_script("xarray_dask.py")), "--size", "2MB", "--rounds", "1",
         "--folder", str(tmp_path), "--csv", str(tmp_path / "x.csv")],
        capture_output=True, text=True, timeout=600, env=python_package.package_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert len(rows) == 6 and all(f"| {name} |" in done.stdout for name in rows)
    assert all(float(row[f"{what}_s"]) > 0 for row in rows.values() for what in ("write", "read"))
    ratios = {name: float(row["ratio"]) for name, row in rows.items()}
    best = max(ratios, key=ratios.get)
    assert best == "tailrace, trz within 0.01 K" and ratios[best] > 3
    assert ratios["tailrace, zlib 4"] == pytest.approx(ratios["netCDF4, zlib 4"], rel=0.05)
    assert not list(tmp_path.glob("*/*.nc"))  # files are removed

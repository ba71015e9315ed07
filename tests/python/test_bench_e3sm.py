"""e3sm.py on small grids: E3SM's very many small PnetCDF requests give the real library's file.

The script itself compares every element. Times must only exist."""

import csv
import subprocess
import sys

import pytest
from application_runs import build_folder
from cli_tools import ENVIRONMENT, bench_script, launcher, program

pytestmark = pytest.mark.full


def bench(folder, *words):
    launcher()
    for name in ("bin/e3sm_pattern", "lib/libtailrace_pnetcdf.so"):
        if not (build_folder() / name).exists():
            pytest.skip(f"{name} is not built")
    done = subprocess.run([sys.executable, str(bench_script("e3sm.py")), "--limits", "0",
                           "--rounds", "1", "--folder", str(folder), "--csv",
                           str(folder / "x.csv"), *words], capture_output=True, text=True,
                          timeout=600, check=False, env={**ENVIRONMENT, "TAILRACE": program()})
    assert done.returncode == 0, done.stdout + done.stderr
    with open(folder / "x.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("case, size", [("F", "70"), ("G", "30"), ("I", "36")])
def test_cases(case, size, tmp_path):
    rows = bench(tmp_path, "--cases", case, "--columns", size, "--ranks", "1,3", "--records", "2")
    assert [row["library"] for row in rows] == 2 * ["pnetcdf", "tailrace"]
    assert all(float(row["total_s"]) > 0 and float(row["cpu_s"]) > 0 for row in rows)
    assert all(float(row["pieces"]) > 500 for row in rows)


def test_bounds(tmp_path):
    exact = bench(tmp_path, "--cases", "F", "--columns", "300", "--ranks", "2")
    bounded = bench(tmp_path, "--cases", "F", "--columns", "300", "--ranks", "2", "--bound",
                    "0.05", "--codec", "codec=trz,bound=abs=0.05")
    assert int(bounded[1]["file_bytes"]) < int(exact[1]["file_bytes"])
    # No rank has a box of values to sample, but a codec is chosen nevertheless. The built-in
    # profile makes the choice independent of this core's load: a busy core would choose less
    # compression.
    chosen = bench(tmp_path, "--cases", "F", "--columns", "300", "--ranks", "2", "--bound", "0.05",
                   "--codec", "bound=abs=0.05,profile=built-in")
    assert int(chosen[1]["file_bytes"]) < 1.1 * int(bounded[1]["file_bytes"])


def test_a_difference_is_found(tmp_path):
    """Encode with a bound that the comparison does not know."""
    with pytest.raises(AssertionError, match="differs"):
        bench(tmp_path, "--cases", "F", "--columns", "70", "--ranks", "2", "--codec",
              "codec=trz,bound=abs=0.5")

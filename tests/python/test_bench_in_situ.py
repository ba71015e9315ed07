"""in_situ.py on a tiny configuration: it runs to its end and writes complete documents."""

import csv
import json
import subprocess
import sys

import pytest
from application_runs import application
from cli_tools import ENVIRONMENT, bench_script, launcher

pytestmark = pytest.mark.full

OUTPUTS = ["sync none", "async none", "sync", "async", "in_situ"]


@pytest.fixture(autouse=True)
def programs():
    """Return the folder of the applications; skip the test if cosmo is not built."""
    launcher()
    return application("cosmo").parent


def bench(programs, *arguments):
    environment = {**ENVIRONMENT, "TAILRACE_EXAMPLES": str(programs)}
    command = [sys.executable, str(bench_script("in_situ.py")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=environment)


def test_overheads(programs, tmp_path):
    done = bench(programs, "overheads", "--configurations", "tiny", "--rounds", 2, "--limits",
                 "100,unlimited", "--outputs", ",".join(OUTPUTS), "--folder", tmp_path,
                 "--json", tmp_path / "out.json", "--csv", tmp_path / "out.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "out.json").read_text())
    found = [(row["output"], row["W_MB_per_s_and_rank"]) for row in document["rows"]]
    assert found == [("none", "any")] + [(output, limit) for limit in ("100", "unlimited")
                                         for output in OUTPUTS]
    base = document["rows"][0]
    assert base["overhead"] == 0
    for row in document["rows"]:
        assert len(row["totals_s"]) == row["rounds"] == (4 if row is base else 2)
        assert row["smallest_s"] <= row["total_s"] <= row["largest_s"]
        assert row["overhead"] == pytest.approx(row["total_s"] / base["total_s"] - 1)
        if row is not base:
            assert row["S_MB_per_step_and_rank"] == pytest.approx(16**3 * 6 * 4 / 1e6, rel=1e-3)
            assert (row["R"] == 1) == row["output"].endswith("none")
    assert [entry["W_MB_per_s_and_rank"] for entry in document["factors"]] == ["100", "unlimited"]
    assert set(document["factors"][0]) == {"configuration", "W_MB_per_s_and_rank", *OUTPUTS[:-1]}
    errors = document["errors_over_bounds"]["tiny"]
    assert sorted(errors) == sorted(OUTPUTS)
    assert max(errors["sync none"].values()) == 0
    assert 0 < max(errors["in_situ"].values()) <= 1
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(found)


def test_sizes(programs, tmp_path):
    done = bench(programs, "sizes", "--configurations", "tiny", "--rounds", 1, "--limits", "100",
                 "--chunks", "4KiB,8MiB", "--buffers", "1MiB", "--folder", tmp_path,
                 "--csv", tmp_path / "out.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["option"], row["size"]) for row in rows] == [
        ("chunk and buffer", "default"), ("chunk", "4KiB"), ("chunk", "8MiB"), ("buffer", "1MiB")]
    assert float(rows[0]["relative"]) == 1


def test_unknown_names_are_refused(programs, tmp_path):
    done = bench(programs, "overheads", "--configurations", "nowhere", "--folder", tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_all_that_is_missing_is_said_at_once(programs, tmp_path):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "cosmo").symlink_to(programs / "cosmo")
    done = bench(tmp_path / "examples", "overheads", "--configurations", "tiny,plasma",
                 "--limits", "100")
    assert done.returncode == 2
    for name in ("plasma", "cosmo-hdf5", "plasma-hdf5", "libwritelimit.so"):
        assert name in done.stderr, done.stderr
    assert "examples/cosmo," not in done.stderr

"""A little of the crash campaign (docs/reliability.md): no promise is broken."""

import collections
import json
import pathlib
import subprocess
import sys

import pytest

from cli_tools import ENVIRONMENT, ROOT, program

JOBS = ("sync, 2 ranks", "async, growing", "in_situ", "journal, growing, 2 ranks",
        "no fsync, 2 ranks", "replace, 2 ranks", "added to, 2 ranks", "records, added to",
        "concat, many commits", "concat -a, 2 ranks", "export")


def campaign(tmp_path, *words):
    judge = pathlib.Path(program()).parent / "campaign_judge"
    if not judge.exists():
        pytest.skip(f"{judge} is not built")
    done = subprocess.run([sys.executable, ROOT / "tests/campaign/campaign.py", *map(str, words),
                           "--tailrace", program(), "--json", tmp_path / "numbers.json",
                           "--kept", tmp_path / "broken", "--seed", "1", "--jobs", *JOBS],
                          capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((tmp_path / "numbers.json").read_text())["rows"]


def test_crashes(tmp_path):
    rows = campaign(tmp_path, "crashes", "--limit", 8, "--every", 5, "--again", 1)
    judged, lost = collections.Counter(), collections.Counter()
    for row in rows:
        if row["kind"] in ("power", "torn", "clients"):
            judged[row["job"]] += row["states"]
            lost[row["job"]] += row["lost"]
    assert set(JOBS) - set(judged) <= {"records, added to"}   # where PnetCDF is not built
    # A campaign that finds no loss where nothing is synced finds none anywhere.
    assert lost["no fsync, 2 ranks"] > 0
    # Stock HDF5 reads what a kill leaves also before recovery, where no journal lies beside it.
    assert all(row["lost_before"] == 0 for row in rows
               if row["kind"] == "kill" and row["job"] in ("sync, 2 ranks", "replace, 2 ranks"))


def test_faults(tmp_path):
    rows = campaign(tmp_path, "faults", "--most", 24, "--stops", 0)
    assert sum(row["runs"] for row in rows) == 24

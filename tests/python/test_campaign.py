"""Short runs of the crash campaign (docs/reliability.md): no promise is broken."""

import collections
import json
import pathlib
import subprocess
import sys

import pytest

from cli_tools import ENVIRONMENT, ROOT, program

pytestmark = pytest.mark.full

JOBS = ("sync, 2 ranks", "async, growing", "in_situ", "journal, growing, 2 ranks",
        "no fsync, 2 ranks", "replace, 2 ranks", "added to, 2 ranks", "records, added to",
        "concat, many commits", "concat -a, 2 ranks", "export")


def campaign(tmp_path, *words, jobs=JOBS):
    judge = pathlib.Path(program()).parent / "campaign_judge"
    if not judge.exists():
        pytest.skip(f"{judge} is not built")
    done = subprocess.run([sys.executable, ROOT / "tests/campaign/campaign.py", *map(str, words),
                           "--tailrace", program(), "--json", tmp_path / "numbers.json",
                           "--kept", tmp_path / "broken", "--seed", "1", "--jobs", *jobs],
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
    assert set(JOBS) - set(judged) <= {"records, added to"}   # missing without PnetCDF
    # The campaign can find losses: without sync it must find some.
    assert lost["no fsync, 2 ranks"] > 0
    # Without a journal, stock HDF5 reads the file after a kill even before recovery.
    assert all(row["lost_before"] == 0 for row in rows
               if row["kind"] == "kill" and row["job"] in ("sync, 2 ranks", "replace, 2 ranks"))


def test_crashes_of_programs_on_hdf5(tmp_path):
    """Programs with the preloaded library, and with our VOL connector on the build's HDF5s."""
    build = pathlib.Path(program()).parents[1]
    served = [*build.glob("lib/libtailrace_hdf5.so"), *build.glob("lib/hdf5/vol-*/*.so")]
    wanted = [job for job, name in (("HDF5 program, 2 ranks", "libtailrace_hdf5.so"),
                                    ("HDF5 1 connector, 2 ranks", "libtailrace_vol-1."),
                                    ("HDF5 2 connector, added to", "libtailrace_vol-2."))
              if any(path.name.startswith(name) for path in served)]
    if not wanted:
        pytest.skip("programs on HDF5 are not served here")
    rows = campaign(tmp_path, "crashes", "--limit", 3, "--every", 4, "--again", 1, jobs=wanted)
    states = collections.Counter()
    for row in rows:
        states[row["job"]] += row["states"]
        assert row["lost"] == 0 or row["kind"] == "torn", row
    assert {job for job in states if not job.startswith("recover: ")} == set(wanted)
    assert all(states[job] > 20 for job in wanted), states


def test_faults(tmp_path):
    rows = campaign(tmp_path, "faults", "--most", 24, "--stops", 0)
    assert sum(row["runs"] for row in rows) == 24


def test_jobs_on_several_nodes_name_their_programs(tmp_path):
    """Check the jobs of tests/nodes/kills.py here, because it runs only on a cluster."""
    sys.path.insert(0, str(ROOT / "tests" / "nodes"))
    import kills
    programs = kills.jobs.Programs(program())
    built = [job for job in kills.all_jobs() if job.is_built(programs)]
    assert len(built) >= 10
    for job in built:
        words = [str(word) for word in job.words(programs, tmp_path)]
        name = kills.program_of(job, words)
        (path,) = [word for word in words if word.endswith("/" + name)]
        assert pathlib.Path(path).exists()

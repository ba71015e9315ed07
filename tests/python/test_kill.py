"""Kill -9 at any moment, in every mode: steps reported as committed exist, complete and right.

The killed program (tests/stress/in_situ_writer.cpp) prints a line for each step that Tailrace
reports as committed. After the kill, stock HDF5 must find all of these steps. Every step that it
finds must have its values, including steps that were not reported.
"""

import os
import pathlib
import random
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, program, tailrace

SHAPE = (192, 160)
MODES = ("sync", "async", "in_situ")
# Time for each mode; the number of kills in it depends on the machine.
SECONDS = 8 if os.environ.get("TAILRACE_TEST_TIER", "full") == "full" else 2
LEAST_KILLS = 5
MOST_KILLS = 200


def writer():
    path = pathlib.Path(program()).parent / "tailrace_in_situ_writer"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def expected(step):
    count = np.arange(SHAPE[0] * SHAPE[1], dtype=np.uint64)
    return ((31 * step + count) % 1009).astype(np.float32).reshape(SHAPE)


def run_and_kill(path, mode, options, alive_s):
    """Kill the writer after `alive_s` seconds; return the steps that it reported as committed."""
    words = [writer(), path, mode, options]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=ENVIRONMENT) as process:
        time.sleep(alive_s)
        process.send_signal(signal.SIGKILL)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, errors
    # The last line may be incomplete.
    lines = output.split("\n")[:-1]
    return [int(line.split()[1]) for line in lines]


def check(path, committed):
    """Check that every committed step is in the file, and that every step in the file is right."""
    assert committed == list(range(len(committed)))
    if not path.exists():
        assert not committed, f"steps {committed} are committed and the file is not there"
        return 0
    assert not os.path.exists(f"{path}.partial")
    with h5py.File(path, "r") as file:
        found = sorted(int(name.split("_")[1]) for name in file)
        assert found == list(range(len(found)))
        # The file may have more steps than were reported, after a kill between a commit and its
        # line. In modes other than sync, a commit is certain only with the next one's report.
        assert len(committed) <= len(found) <= len(committed) + 3
        for step in found:
            group = file[f"step_{step}"]
            assert np.array_equal(group["exact"][...], expected(step)), step
            off = np.abs(group["bounded"][...].astype(np.float64) - expected(step))
            assert off.max() <= 0.25, step
    return len(found)


@pytest.mark.parametrize("options", ["fsync=off", "fsync=on,journal=on"])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_program_leaves_its_last_committed_step(tmp_path, mode, options):
    moments = random.Random(f"{mode} {options}")
    end = time.monotonic() + SECONDS / 2
    n_kills = 0
    n_steps = 0
    longest_s = 0.5
    # On a busy machine the first kills may occur before the program has written anything.
    while (n_kills < LEAST_KILLS or time.monotonic() < end
           or (n_steps == 0 and n_kills < MOST_KILLS)):
        if n_kills >= LEAST_KILLS and n_steps == 0:
            longest_s = min(1.5 * longest_s, 30)
        path = tmp_path / f"killed_{n_kills}.h5"
        committed = run_and_kill(path, mode, options, moments.uniform(0.005, longest_s))
        n_kills += 1
        # recover handles journals and files without a first commit.
        leftovers = [p for p in tmp_path.iterdir() if p.name.startswith(path.name)]
        if path.exists() and len(leftovers) > 1:
            tailrace("recover", "--apply", path)
        n_steps += check(path, committed)
        if path.exists():
            tailrace("recover", "--apply", path)
            assert check(path, committed) >= len(committed)
        for leftover in tmp_path.iterdir():
            leftover.unlink()
    # Some kills occurred after a step was written.
    assert n_steps > 0

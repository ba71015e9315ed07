"""The simulator compared with a real run of the same small case.

The real run (tests/mpi/steady_application.cpp) records its iterations. `tailrace-lab simulate`
replays them on the virtual clock, with the recorded lengths of encodes and writes and without
noise. Its makespan, from the iteration's begin to the end of the last write, must agree.

Both sides come from the same run, so only their ratio is asserted, no time. Computing, waiting for
the device, encoding (a filter that sleeps) and storage (libwritelimit.so) are sleeps. The case is
therefore the same on a busy machine. Remaining delays of a busy machine affect both sides. It can
still make single iterations irregular, against the forecast; therefore medians are compared.
"""

import json
import os
import statistics
import subprocess

import pytest
from application_runs import build_folder
from cli_tools import ENVIRONMENT, launcher, numbers

pytestmark = pytest.mark.full

AGREEMENT = 0.15
N_STEPS = 11


def built(path):
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def record(folder, ranks, bytes_per_s):
    """Record a run on storage that gives each rank `bytes_per_s`."""
    build = build_folder()
    program = built(build / "bin" / "steady_application")
    limit = built(build / "lib" / "libwritelimit.so")
    own = {
        "HDF5_PLUGIN_PATH": str(build / "lib" / "test_plugin"),
        "LD_PRELOAD": str(limit),
        "TAILRACE_WRITE_LIMIT": str(bytes_per_s),
        "TAILRACE_WRITE_LIMIT_FOLDER": str(folder),
    }
    # The limit applies to the ranks only, not to mpiexec.
    command = [launcher(), "-n", str(ranks),
               "env", *(f"{name}={value}" for name, value in own.items()),
               str(program), str(folder / "steady.h5"),
               f"lab.record={folder / 'recording.json'}", str(N_STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          env={"OMPI_MCA_hwloc_base_binding_policy": "none", **ENVIRONMENT})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "recording.json").read_text())


def real_makespans(recording):
    """Return makespans of the slowest rank by iteration, without the first one.

    The first iteration only teaches the forecast."""
    by_rank = [[iteration["makespan_s"] for iteration in rank["iterations"]][1:]
               for rank in recording["ranks"]]
    return [max(of_ranks) for of_ranks in zip(*by_rank, strict=True)]


def simulated_makespans(recording, folder, *options):
    path = folder / "replayed.json"
    path.write_text(json.dumps(recording))
    document = numbers("simulate", "--recording", path, "--modes", "in-situ", *options)
    assert document["simulated"] is True
    return [iteration["makespan_s"] for iteration in document["modes"][0]["iterations"]]


def disagreement(recording, folder, *options):
    """Return the median over iterations of the simulated makespan's relative error."""
    real = real_makespans(recording)
    simulated = simulated_makespans(recording, folder, *options)
    ratios = [s / r for s, r in zip(simulated, real, strict=True)]
    print("real     ", " ".join(f"{s:.3f}" for s in real))
    print("simulated", " ".join(f"{s:.3f}" for s in simulated))
    return statistics.median(ratios) - 1


def scaled(recording, column, factor):
    """Copy the recording, with encodes (column 2) or writes (3) of chunks longer by a factor."""
    changed = json.loads(json.dumps(recording))
    for rank in changed["ranks"]:
        for iteration in rank["iterations"]:
            for chunk in iteration["chunks"]:
                chunk[column] *= factor
    return changed


@pytest.fixture(scope="module", params=[(1, 3_000_000), (1, 1_250_000), (2, 3_000_000),
                                        (2, 1_250_000)],
                ids=["hidden", "exposed", "hidden, 2 ranks", "exposed, 2 ranks"])
def case(request, tmp_path_factory):
    """Record a run on fast storage, where writes end within the iteration, or on slow storage."""
    ranks, bytes_per_s = request.param
    folder = tmp_path_factory.mktemp("steady")
    return folder, record(folder, ranks, bytes_per_s), bytes_per_s


def test_agrees_with_the_real_run(case):
    folder, recording, _ = case
    assert all(len(rank["iterations"]) == N_STEPS - 1 for rank in recording["ranks"])
    assert abs(disagreement(recording, folder)) <= AGREEMENT


def test_the_case_is_what_it_says(case):
    """Writes end before the iteration on fast storage, and after it on slow storage."""
    _, recording, bytes_per_s = case
    lengths = [iteration["iteration_s"] for iteration in recording["ranks"][0]["iterations"]][1:]
    exposed = [r > s for r, s in zip(real_makespans(recording), lengths, strict=True)]
    assert statistics.median(exposed) == (bytes_per_s < 2_000_000)


def test_another_storage_does_not_agree(case):
    """The comparison can fail: it does for writes of twice the length."""
    folder, recording, _ = case
    assert disagreement(scaled(recording, 3, 2), folder) > AGREEMENT

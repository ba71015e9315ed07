"""A little of the random files of tests/workload/files, held to an inventory by h5py.

Fixed seeds, and a new one, which is printed: `scripts/workload --files --seed S` runs it again.
"""

import json
import random
import sys

import pytest

import python_package
from cli_tools import ROOT
from files_found import FOUND

python_package.load()
sys.path.insert(0, str(ROOT / "tests"))

from workload.files import many_files  # noqa: E402

#: Files of the fixed seed, all routes in turn.
FILES, FILES_OF_FULL = 60, 600


def run(seed, **until):
    counts = many_files.campaign(seed, failures_max=3, **until)
    print(f"scripts/workload --files --seed {seed}\n{counts}")
    assert not counts.failures, "\n".join(map(str, counts.failures))
    return counts


def test_random_files_of_a_fixed_seed(pytestconfig):
    full = pytestconfig.getoption("--tier") == "full"
    counts = run("fixed", files=FILES_OF_FULL if full else FILES)
    kept = sum(ends["kept"] for ends in counts.by_route.values())
    assert kept >= FILES // 2, counts


@pytest.mark.full
def test_random_files_of_a_new_seed():
    run(str(random.SystemRandom().randrange(10**9)), seconds=120)


@pytest.fixture(scope="module")
def worker():
    one = many_files.Worker()
    yield one
    one.end()


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name, worker):
    route, description = FOUND[name]
    for round_of in range(3):  # The seed chooses the options of the route.
        seed = f"{name}:{round_of}"
        end, findings, why = worker.judge(json.loads(json.dumps(description)), route, seed)
        assert not findings, findings
        assert end != "invalid", why

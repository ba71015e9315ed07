"""Some random files of tests/workload/files, checked by an inventory from h5py.

Seeds are fixed, except for a new one, which is printed. `scripts/workload --files --seed S` repeats
it.
"""

import json
import random
import sys

import h5py
import pytest

import python_package
from cli_tools import ROOT
from files_found import FOUND, dataset, file

python_package.load()
sys.path.insert(0, str(ROOT / "tests"))

from workload.files import many_files  # noqa: E402

#: Numbers of files of the fixed seed, on all routes in turn.
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
def test_what_was_found_stays_mended(name, worker, pytestconfig):
    route, description = FOUND[name]
    rounds = 3 if pytestconfig.getoption("--tier") == "full" else 1
    for round_of in range(rounds):  # The seed chooses the options of the route.
        seed = f"{name}:{round_of}"
        end, findings, why = worker.judge(json.loads(json.dumps(description)), route, seed)
        assert not findings, findings
        assert end != "invalid", why


def test_the_seed_chooses_the_ranks_of_a_route(monkeypatch, tmp_path):
    from workload.files import routes
    drawn = [routes.ranks_of(f"seed:{n}") for n in range(60)]
    assert set(drawn) == {1, 2, 3} and drawn == [routes.ranks_of(f"seed:{n}") for n in range(60)]
    started = []

    def run(*arguments, ranks=1):
        started.append((arguments[0], ranks))
        return 0, "", ""

    monkeypatch.setattr(routes, "run", run)
    route = routes.Route(tmp_path, {}, None, ranks=3)
    route.command("repack", "in.h5", "-o", "out.h5")
    route.verify("in.h5", "out.h5", True)
    assert started == [("repack", 3), ("verify", 3)]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_command_on_ranks_ends_with_its_code(ranks, monkeypatch):
    from workload import harness
    from workload.files import routes
    for name, value in harness.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TAILRACE_PLUGINS", harness.environment()["HDF5_PLUGIN_PATH"])
    code, _, said = routes.run("info", "no such file", ranks=ranks)
    assert code == 2 and "no such file" in said and not routes.wrong_end(code, said)
    assert routes.run("options", ranks=ranks)[0] == 0
    assert routes.wrong_end(139, "") == "signal 11 of a rank"


def test_an_input_whose_chunk_hdf5_cannot_read_is_not_judged(tmp_path):
    """HDF5 keeps the old filter mask if an unfiltered chunk has the size of the filtered one."""
    from workload.files import make
    path = tmp_path / "in.h5"
    make.make(file(dataset("/a", chunk=[30], filters=[["fletcher32"]], masked=1)), path)
    with h5py.File(path) as made:
        chunk = made["a"].id.get_chunk_info(0)
        assert (chunk.filter_mask, chunk.size) == (1, 30 * 8)
    with pytest.raises(make.Invalid, match="filter mask"):
        make.make(file(dataset("/a", chunk=[30], filters=[["shuffle"]], masked=1)), path)


def test_attributes_of_scales_alone_have_no_order():
    from workload.files.rules import is_storage
    of_scale = ["CLASS", "NAME", "REFERENCE_LIST"]
    assert is_storage("/x", "attribute order", of_scale, None)
    assert not is_storage("/x", "attribute order", ["a", *of_scale], None)
    assert not is_storage("/x", "attribute order", ["a", "b"], ["b", "a"])

"""Set-up for all tests: the order of imports, a folder for mpiexec, and tiers.

hdf5plugin binds its plug-ins to the HDF5 that is loaded when it is imported. That must be h5py's:
netCDF4 loads another HDF5, with which h5py cannot create datasets with these plug-ins.

The engine stores its measurements for the user (the speed of this core) in a folder of this
process.

mpiexec stores its temporary files in a folder of this process. Every mpiexec of the machine makes
and removes Open MPI's default folder. If one starts while another ends, it sometimes finds the
folder half removed and fails: "mkdir ... File exists".
"""

import atexit
import os
import shutil
import tempfile
import zlib

import h5py  # noqa: F401
import hdf5plugin  # noqa: F401
import pytest

_sessions = tempfile.mkdtemp(prefix="tailrace_mpi_")
atexit.register(shutil.rmtree, _sessions, ignore_errors=True)
# Names of Open MPI 4, then of Open MPI 5. Set before cli_tools copies the environment.
os.environ["OMPI_MCA_orte_tmpdir_base"] = _sessions
os.environ["PRTE_MCA_prte_tmpdir_base"] = _sessions
os.environ["XDG_CACHE_HOME"] = os.path.join(_sessions, "cache")


TIERS = ["quick", "merge", "full"]
#: Rank counts of the merge tier: each test runs on the first of these that it has. Nearly all other
#: tests run on one rank.
MERGE_RANKS = [3, 2, 4]
#: Modules of the quick tier, which runs the first variant of each of their tests.
QUICK_MODULES = {
    "test_cli_errors", "test_cli_repack", "test_cli_verify", "test_codec_edges", "test_concat",
    "test_docs", "test_every_reader", "test_examples", "test_export_part", "test_fortran",
    "test_hdf5_programs", "test_hdf5_serial", "test_layouts", "test_netcdf_files", "test_pnetcdf",
    "test_python_files", "test_python_mpi", "test_read", "test_trz_filter", "test_xor",
}


def pytest_addoption(parser):
    parser.addoption("--tier", choices=TIERS, default=os.environ.get("TAILRACE_TEST_TIER", "full"),
                     help="which tests to run: CONTRIBUTING.md, \"Tiers\" (default: full, all)")


def pytest_terminal_summary(terminalreporter):
    """Print the table of communities' readers, if they ran (test_community_readers.py)."""
    rows = [row for reports in terminalreporter.stats.values() for report in reports
            for name, row in getattr(report, "user_properties", [])
            if name == "community_row" and report.when == "call"]
    if rows:
        terminalreporter.section("communities' readers")
        head = ("community", "writer", "reader", "kB", "lossless", "portable", "bounded", "verdict")
        for line in (" | ".join(head), "|".join(["---"] * len(head)), *sorted(rows)):
            terminalreporter.write_line(f"| {line} |" if "--" not in line else f"|{line}|")


def parameters_of(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


def without_other_ranks(variants):
    """Drop all but one of the variants that differ only in the parameter `ranks`."""
    best, rank_counts = {}, {}
    for item in variants:
        ranks = parameters_of(item).get("ranks")
        others = repr(sorted((k, repr(v)) for k, v in parameters_of(item).items() if k != "ranks"))
        if not isinstance(ranks, int):
            others, ranks = item.nodeid, 0
        place = MERGE_RANKS.index(ranks) if ranks in MERGE_RANKS else len(MERGE_RANKS) - ranks / 1e6
        if others not in best or place < rank_counts[others]:
            best[others], rank_counts[others] = item, place
    return list(best.values())


def sampled(name, variants, step):
    """Select one in `step` variants of the test `name`, at least one.

    The position within a group of `step` variants differs between tests and groups, so that every
    value of every parameter is selected."""
    offset = zlib.crc32(name.encode())
    chosen = [variant for i, variant in enumerate(variants)
              if (i + i // step + offset) % step == 0]
    return chosen or [variants[offset % len(variants)]]


def of_tier(items, tier):
    """Return the items of the merge or quick tier: those that are not marked `full`.

    Each runs on one rank count. The quick tier has the first variant of each test of its modules.
    The merge tier has one variant in n of tests with the mark `sample(n)`. Without the mark, it has
    every second variant of three or more."""
    tests = {}
    for item in items:
        left_out = item.get_closest_marker("full") is not None
        if not left_out and (tier == "merge" or item.path.stem in QUICK_MODULES):
            name = getattr(item, "originalname", None) or item.name
            tests.setdefault((item.path, item.cls, name), []).append(item)
    kept = set()
    for (_, _, name), variants in tests.items():
        sample = variants[0].get_closest_marker("sample")
        variants = without_other_ranks(variants)
        if tier == "quick":
            kept.add(variants[0])
        else:
            step = sample.args[0] if sample else 2 if len(variants) > 2 else 1
            kept |= set(sampled(name, variants, step))
    return kept


def pytest_collection_modifyitems(config, items):
    tier = config.getoption("--tier")
    if tier not in TIERS:  # pytest does not check defaults, which the environment sets.
        raise pytest.UsageError(f"TAILRACE_TEST_TIER is {tier}, not one of {', '.join(TIERS)}")
    if tier != "full":
        kept = of_tier(items, tier)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


@pytest.fixture
def whole_sentences(monkeypatch):
    """Unset COLUMNS, which pytest-xdist sets for its workers, and which limits output to pipes."""
    from cli_tools import ENVIRONMENT  # noqa: PLC0415

    monkeypatch.delitem(ENVIRONMENT, "COLUMNS", raising=False)

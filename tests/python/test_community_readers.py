"""Files of communities' own programs, repacked, and read by the communities' own readers.

The writers and readers (tests/readers/communities.py) run in build/readers, which `scripts/setup
--full` creates from requirements-readers.txt; without it the tests fail. They compare the readers'
results, not the files: geometry, ids, times and indexes are equal, and values are within the bound.
conftest.py prints a table of all rows, which is in lab/bench/results/readers-matrix.md.
"""

import fnmatch
import json
import os
import subprocess

import hdf5plugin
import numpy as np
import pytest

from application_runs import build_folder
from cli_tools import ROOT, tailrace

pytestmark = pytest.mark.full

PROGRAM = ROOT / "tests" / "readers" / "communities.py"
PYTHON = ROOT / "build" / "readers" / "bin" / "python"
COMMUNITIES = ["PyTables", "PandasTable", "PandasFixed", "AnnData", "NWB", "VTKHDF", "CGNS", "H5MD",
               "NeXus", "ScippNeXus", "Matlab", "Mat73", "Athena", "FLASH", "Enzo", "GADGET",
               "SWIFT", "OpenPMD", "H5netcdf", "NetCDF4", "HDFEOS5"]
BOUND = 1e-3
#: Ways of repack. The last may need filters in the reader's HDF5, which HDF5_PLUGIN_PATH names.
WAYS = {"lossless": [], "front": ["--layout", "front"], "cloud": ["--publish=cloud"],
        "copied": ["--publish=as-stored"],
        "portable": ["--codec", "portable", "--bound", f"rel={BOUND}"],
        "bounded": ["--bound", f"rel={BOUND}"]}


def plugin_folders():
    return os.pathsep.join([str(build_folder() / "lib" / "hdf5" / "plugin"),
                            hdf5plugin.PLUGINS_PATH])


def communities(*words, plugins=False):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("HDF5_PLUGIN_PATH", "PYTHONPATH")}
    if plugins:
        environment["HDF5_PLUGIN_PATH"] = plugin_folders()
    assert PYTHON.exists(), f"{PYTHON} is missing: scripts/setup --full makes it"
    done = subprocess.run([str(PYTHON), str(PROGRAM), *map(str, words)], capture_output=True,
                          text=True, env=environment, timeout=600)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def listed():
    return json.loads(communities("list"))


def prepare(name, community, folder):
    """Write the community's file, and repack it in each way, in folders named after the ways."""
    source = folder / "in" / community["file"]
    source.parent.mkdir()
    communities("write", name, source)
    outputs = {}
    for way, words in WAYS.items():
        outputs[way] = folder / way / community["file"]
        outputs[way].parent.mkdir()
        tailrace("repack", source, "-o", outputs[way], *words)
        tailrace("verify", source, outputs[way])
    return source, outputs


def loaded(path):
    with np.load(f"{path}.npz") as arrays:
        return dict(arrays)


def spread(values):
    finite = values[np.isfinite(values)]
    return finite.max() - finite.min()


def differences(before, after, bounds):
    """Return differences in a reader's results that exceed `bounds`, by name of the values."""
    found = [f"{name}: missing" for name in before.keys() ^ after.keys()]
    for name in before.keys() & after.keys():
        a, b = before[name], after[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            found.append(f"{name}: {b.dtype}{b.shape}, was {a.dtype}{a.shape}")
        elif name in bounds:
            error = np.abs(np.asarray(b, "f8") - np.asarray(a, "f8")).max()
            if not error <= bounds[name]:
                found.append(f"{name}: error {error:.3g}, bound {bounds[name]:.3g}")
        elif a.tobytes() != b.tobytes():
            found.append(f"{name}: not exact")
    return sorted(found)


def bounds_of(community, before):
    names = [name for name in before
             if any(fnmatch.fnmatch(name, glob) for glob in community["values"])]
    ranges = {name: spread(before[name]) for name in names}
    if community["one_dataset"]:
        of_all = spread(np.concatenate([before[name].ravel() for name in names]))
        ranges = dict.fromkeys(names, of_all)
    # A reader may compute in another precision than that of the file.
    return {name: BOUND * (1 + 1e-6) * each for name, each in ranges.items()}


def verdict(name, community, source, outputs):
    """Return the differences for each way, and if the bound changed any value."""
    communities("read", name, source, *(outputs[way] for way in WAYS if way != "bounded"))
    communities("read", name, outputs["bounded"], plugins=True)
    before = loaded(source)
    bounds = bounds_of(community, before)
    problems = []
    for way, path in outputs.items():
        problems += [f"{way}: {text}" for text in differences(
            before, loaded(path), bounds if "--bound" in WAYS[way] else {})]
    after = loaded(outputs["bounded"])
    if bounds and all(np.array_equal(before[each], after[each]) for each in bounds):
        problems.append("no value changed: the bound was not used")
    problems += [f"bounded: {each} is not positive" for each in community["positive"]
                 if not after[each].min() > 0]
    return problems


def test_every_community_is_tested(listed):
    assert set(listed) == set(COMMUNITIES)


@pytest.mark.parametrize("name", COMMUNITIES)
def test_community(name, listed, tmp_path, record_property):
    community = listed[name]
    source, outputs = prepare(name, community, tmp_path)
    problems = verdict(name, community, source, outputs)
    shown = [source, *(outputs[way] for way in ("lossless", "portable", "bounded"))]
    sizes = [path.stat().st_size // 1000 for path in shown]
    record_property("community_row", " | ".join(map(str, [
        community["name"], community["writer"], community["reader"], *sizes,
        "equal" if not problems else "; ".join(problems)])))
    assert not problems

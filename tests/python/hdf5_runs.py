"""Helpers for programs on parallel HDF5. They run the programs unmodified, with Tailrace's library
preloaded, or with its VOL connector. Stock serial h5py reads the files.
"""

import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, launcher, program

HERE = pathlib.Path(__file__).resolve().parents[1] / "hdf5_programs"


def built(*parts):
    path = pathlib.Path(program()).parents[1].joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


# Suffixes of the names that belong to an HDF5; that of the system's HDF5 is empty.
BUILD = pathlib.Path(os.environ.get("TAILRACE", HERE.parents[1] / "build/bin/tailrace")).parents[1]
LIST = BUILD / "hdf5_programs.txt"  # CMake's list: the build may have libraries of older builds.
OTHERS = [end for end in LIST.read_text().split() if end != "system"] if LIST.exists() else []
LATER = [end for end in OTHERS if [int(part) for part in end[1:].split(".")] >= [1, 14]]
# A front is an HDF5 suffix for programs with our preloaded library, or with CONNECTOR appended, for
# programs with our VOL connector.
CONNECTOR = "+vol"
LATER_FRONTS = [*LATER, *[end + CONNECTOR for end in LATER]]
ALL_FRONTS = ["", *OTHERS, *[end + CONNECTOR for end in LATER]]
FRONTS = pytest.mark.parametrize("front", ALL_FRONTS, ids=lambda end: f"hdf5{end}")
OTHER_FRONTS = pytest.mark.parametrize("front", OTHERS, ids=lambda end: f"hdf5{end}")


def program_of(front, name):
    return built("bin", f"hdf5_programs{front.removesuffix(CONNECTOR)}", name)


def served_by(front):
    """Return the environment in which a front serves a program."""
    end = front.removesuffix(CONNECTOR)
    if end == front:
        return {"LD_PRELOAD": built("lib", f"libtailrace_hdf5{end}.so")}
    connector = built("lib", "hdf5", f"vol{end}", f"libtailrace_vol{end}.so")
    return {"HDF5_VOL_CONNECTOR": "tailrace", "HDF5_PLUGIN_PATH": connector.parent}


def run(words, ranks, ours, code=0, front="", **more):
    """Run a program as it is, or served by a front. @returns its stderr."""
    served = [f"{name}={value}" for name, value in served_by(front).items()] if ours else []
    words = [launcher(), "-n", str(ranks), *(["env", *served] if ours else []), *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "TAILRACE_REPORT": "1", **more})
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr


def patterns(names, folder, ranks, ours=True, front="", program="write_patterns", **more):
    folder.mkdir(exist_ok=True)
    words = [program_of(front, program), folder, *names]
    return run(words, ranks, ours, front=front, **more)


def flushes(pattern, folder, ranks, ours=True, **more):
    return patterns([pattern], folder, ranks, ours, program="write_flushes", **more)


def contents(path):
    """Return the kind, type, extents, attributes and values of every object, by path."""
    found = {}

    def note(name, item):
        attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            values = None if item.shape is None or item.dtype.hasobject else item[()]
            found[name] = (item.dtype, item.shape, item.maxshape, attributes, values)
        else:
            found[name] = ("group", attributes)

    with h5py.File(path) as file:
        found["/"] = {key: np.asarray(value).tolist() for key, value in file.attrs.items()}
        file.visititems(note)
    return found


def same(one, other, leave_out=()):
    ours, plain = contents(one), contents(other)
    assert ours.keys() == plain.keys()
    for name, object_there in plain.items():
        if name in leave_out:
            continue
        if len(object_there) != 5:
            assert ours[name] == object_there, name
            continue
        assert ours[name][:4] == object_there[:4], name
        assert np.asarray(ours[name][4]).tobytes() == np.asarray(object_there[4]).tobytes(), name


def filters_of(dataset):
    list_there = dataset.id.get_create_plist()
    return [list_there.get_filter(i)[0] for i in range(list_there.get_nfilters())]


def by_deflate(path):
    """Copy the file with codec deflate, so that stock h5py can read it without trz."""
    decoded = path.with_suffix(".deflate.h5")
    subprocess.run([program(), "repack", path, "-o", decoded, "--codec", "deflate"], check=True,
                   capture_output=True, env=ENVIRONMENT)
    return decoded


def row_values(first, n):
    i = np.arange(first, first + n)
    return 1.5 * i + (i % 7) * 0.001


def trz_shapes(dataset):
    """Return the extents in a dataset's chunk headers (trz/docs/trz-format.md), in order."""
    shapes = []
    for first in range(0, len(dataset), dataset.chunks[0]):
        chunk = dataset.id.read_direct_chunk((first,))[1]
        shape, at = [], 10
        for _ in range(chunk[9]):
            extent, shift = 0, 0
            while True:
                extent |= (chunk[at] & 127) << shift
                shift, at = shift + 7, at + 1
                if chunk[at - 1] < 128:
                    break
            shape.append(extent)
        shapes.append(tuple(shape))
    return shapes


def verified(plain, ours):
    return subprocess.run([program(), "verify", plain, ours], capture_output=True, text=True,
                          env=ENVIRONMENT)


def h5py_of_mpi():
    """Return the environment of a Python whose h5py is a parallel build."""
    asked = subprocess.run(["/usr/bin/python3", "-c", "import h5py._debian_h5py_mpi, mpi4py"],
                           capture_output=True, env={**os.environ, "PYTHONPATH": ""})
    if asked.returncode != 0:
        pytest.skip("no h5py of a parallel build (python3-h5py-mpi)")
    clean = {"PYTHONPATH": "", "PYTHONHOME": "", "HDF5_PLUGIN_PATH": ""}
    return {key: value for key, value in clean.items() if key in os.environ}


MANY_BOXES = """
import sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
n_boxes = 2100
cells = np.where(np.arange(n_boxes) % 2, 1024, 512)
ends = np.append(0, np.cumsum(2 * cells))
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    file.attrs["num_components"] = 2
    for c, name in enumerate((b"small", b"large")):
        file.attrs[f"component_{c}"] = name.decode() if len(sys.argv) > 2 else np.bytes_(name)
    group = file.create_group("level_0")
    corners = np.dtype([(f"{end}_{axis}", "i4") for end in ("lo", "hi") for axis in "ijk"])
    boxes = group.create_dataset("boxes", (n_boxes,), corners)
    offsets = group.create_dataset("data:offsets=0", (n_boxes + 1,), "i8")
    if comm.rank == 0:
        boxes[...] = np.array([(0, 0, 0, 7, 7, n // 64 - 1) for n in cells], corners)
        offsets[...] = ends
    values = np.sin(0.001 * np.arange(ends[-1])) * np.repeat(np.tile([1, 1e6], n_boxes),
                                                           np.repeat(cells, 2))
    first, end = (ends[n_boxes * r // comm.size] for r in (comm.rank, comm.rank + 1))
    group.create_dataset("data:datatype=0", (ends[-1],), "f8")[first:end] = values[first:end]
"""

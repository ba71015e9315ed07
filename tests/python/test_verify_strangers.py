"""verify of what other programs leave in files: datasets without values."""

import re

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from cli_tools import tailrace

TYPES = {"f8": h5t.NATIVE_DOUBLE, ">i4": h5t.STD_I32BE, "compound": h5t.py_create(
    np.dtype([("a", "i4"), ("b", "f8")])), "text": h5t.py_create(np.dtype("S7"))}


def create(file, name, kind, *, rows=20, chunk=None, never=False, defined=False):
    """A dataset whose fill value is undefined, or never written."""
    creation = h5p.create(h5p.DATASET_CREATE)
    if chunk:
        creation.set_chunk((chunk,))
    else:
        creation.set_alloc_time(h5d.ALLOC_TIME_LATE)
    if never:
        creation.set_fill_time(h5d.FILL_TIME_NEVER)
    elif not defined:
        undefine(creation, TYPES[kind])
    space = h5s.create_simple((rows,))
    return h5py.Dataset(h5d.create(file.id, name.encode(), TYPES[kind], space, creation))


def undefine(creation, type_):
    """h5py has no call for it."""
    import ctypes
    from pathlib import Path
    library = ctypes.CDLL(str(next((Path(h5py.__file__).parents[1] / "h5py.libs").glob(
        "libhdf5-*"))))
    library.H5Pset_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    assert library.H5Pset_fill_value(creation.id, type_.id, None) >= 0


def verified(original, copy, code, *more, ranks=1):
    done = tailrace("verify", original, copy, *more, code=code, ranks=ranks)
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("never", [False, True])
@pytest.mark.parametrize("chunk", [None, 5])
@pytest.mark.parametrize("kind", TYPES)
def test_what_was_never_written_is_equal_to_such_alone(kind, chunk, never, ranks, tmp_path):
    paths = {name: tmp_path / f"{name}.h5" for name in ["empty", "other", "full"]}
    for name, path in paths.items():
        with h5py.File(path, "w") as file:
            dataset = create(file, "u", kind, chunk=chunk, never=never)
            file["beside"] = np.arange(7)
            if name == "full":
                dataset[...] = np.zeros(20, dataset.dtype)
    verified(paths["empty"], paths["other"], 0, ranks=ranks)
    for original, copy, where in [("empty", "full", "original"),
                                  ("full", "empty", "compressed file")]:
        said = verified(paths[original], paths[copy], 1, ranks=ranks)
        assert "/u" in said and f"in the {where} nothing was written" in said
    copied = tmp_path / "copied.h5"
    for way in [(), ("--as-stored",), ("--bound", "abs=0.1", "--codec", "trz"), ("--cloud",)]:
        for name in ["empty", "full"]:
            tailrace("repack", paths[name], "-o", copied, "--force", *way, ranks=ranks)
            verified(paths[name], copied, 0, ranks=ranks)
            with h5py.File(copied) as file:
                assert bool(file["u"].id.get_storage_size()) == (name == "full"), way


@pytest.mark.parametrize("never", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_chunks_without_values_are_equal_to_such_alone(kind, never, tmp_path):
    paths = {name: tmp_path / f"{name}.h5" for name in ["some", "same", "more"]}
    for name, path in paths.items():
        with h5py.File(path, "w") as file:
            dataset = create(file, "u", kind, chunk=5, never=never)
            dataset[5:10] = np.zeros(5, dataset.dtype)
            if name == "more":
                dataset[10:15] = np.zeros(5, dataset.dtype)
    verified(paths["some"], paths["same"], 0)
    assert "/u" in verified(paths["some"], paths["more"], 1)
    assert "/u" in verified(paths["more"], paths["some"], 1)
    copied = tmp_path / "copied.h5"
    tailrace("repack", paths["some"], "-o", copied)
    verified(paths["some"], copied, 0)
    assert "/u" in verified(paths["more"], copied, 1)

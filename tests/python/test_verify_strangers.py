"""verify of other programs' files: datasets without values, references with short addresses, bytes
behind the end of the HDF5 file."""

import itertools
import json
import re

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s, h5t

from cli_tools import tailrace

TYPES = {"f8": h5t.NATIVE_DOUBLE, ">i4": h5t.STD_I32BE, "compound": h5t.py_create(
    np.dtype([("a", "i4"), ("b", "f8")])), "text": h5t.py_create(np.dtype("S7"))}


def create(file, name, kind, *, rows=20, chunk=None, never=False, defined=False):
    """Create a dataset whose fill value is undefined, or never written."""
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
    """Undefine the fill value through ctypes, because h5py has no call for it."""
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
def test_what_was_never_written_is_equal_to_such_alone(ranks, tmp_path):
    """One file has datasets of all kinds, so that each command runs once for all of them."""
    variants = {f"u{n}": each for n, each in enumerate(
        itertools.product(TYPES, [None, 5], [False, True]))}
    paths = {name: tmp_path / f"{name}.h5" for name in ["empty", "other", "full"]}
    for path in paths.values():
        with h5py.File(path, "w") as file:
            for name, (kind, chunk, never) in variants.items():
                dataset = create(file, name, kind, chunk=chunk, never=never)
                if path == paths["full"]:
                    dataset[...] = np.zeros(20, dataset.dtype)
            file["beside"] = np.arange(7)
    verified(paths["empty"], paths["other"], 0, ranks=ranks)
    for original, copy, where in [("empty", "full", "original"),
                                  ("full", "empty", "compressed file")]:
        report = tmp_path / "report.json"
        said = verified(paths[original], paths[copy], 1, "--json", report, ranks=ranks)
        assert "/u" in said and f"in the {where} nothing was written" in said
        found = {each["path"]: each["text"] for each in
                 json.loads(report.read_text())["structure"]["differences"]}
        assert found.keys() == {f"/{name}" for name in variants}
        assert all(f"in the {where} nothing was written" in text for text in found.values())
    copied = tmp_path / "copied.h5"
    for way in [(), ("--publish=as-stored",), ("--bound", "abs=0.1", "--codec", "trz"),
                ("--publish=cloud",)]:
        for name in ["empty", "full"]:
            tailrace("repack", paths[name], "-o", copied, "--force", *way, ranks=ranks)
            verified(paths[name], copied, 0, ranks=ranks)
            with h5py.File(copied) as file:
                for dataset, variant in variants.items():
                    stored = bool(file[dataset].id.get_storage_size())
                    assert stored == (name == "full"), (way, variant)


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


def short_file(path, order, target="b", rows=(1, 3)):
    """Write a file of 4-byte addresses with object and region references.

    Datasets and attributes have references. `order` determines the addresses of the datasets."""
    creation = h5p.create(h5p.FILE_CREATE)
    creation.set_sizes(4, 4)
    made = h5f.create(str(path).encode(), h5f.ACC_TRUNC, creation)
    with h5py.File(made) as file:
        for name in order:
            file[name] = np.arange(10)
        file["to object"] = np.array([file[target].ref, h5py.Reference()], h5py.ref_dtype)
        region = file[target].regionref[rows[0]:rows[1]]
        file.create_dataset("to region", (1,), h5py.regionref_dtype)[0] = region
        file["a"].attrs["object"] = file[target].ref
        file["a"].attrs["region"] = region
        file["a"].attrs.create("list", np.array([file[target].ref] * 2, h5py.ref_dtype))


@pytest.mark.parametrize("ranks", [1, 3])
def test_references_of_short_addresses_are_compared_by_what_they_refer_to(ranks, tmp_path):
    first, other = tmp_path / "first.h5", tmp_path / "other.h5"
    short_file(first, "abc")
    with h5py.File(first) as file:
        assert file["to object"][0] and file[file["to object"][0]].name == "/b"
    short_file(other, "cba")  # Equal objects have other addresses.
    verified(first, other, 0, ranks=ranks)
    short_file(other, "cba", target="c")
    said = verified(first, other, 1, ranks=ranks)
    for name in ["to object", "to region", "object", "region", "list"]:
        assert name in said, said
    assert "-> /c" in said and "-> /b" in said
    short_file(other, "abc", rows=(1, 4))
    said = verified(first, other, 1, ranks=ranks)
    assert "to region" in said and "to object" not in said


@pytest.mark.sample(4)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize("user_block", [0, 1024])
def test_bytes_behind_the_end_are_said(user_block, libver, ranks, tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver=libver, userblock_size=user_block) as file:
        file.create_dataset("u", data=np.arange(3000.0), maxshape=(None,), chunks=(1000,))
        file["texts"] = np.array([b"abc"] * 10)
    plain = source.read_bytes()
    words = "behind the end of the HDF5 file"
    for command in ["repack", "export", "concat"]:
        done = tailrace(command, source, "-o", target, "--force", ranks=ranks)
        assert words not in done.stderr
    source.write_bytes(plain + b"a signature")
    for command in [("repack",), ("repack", "--publish=as-stored"), ("export",), ("concat",),
                    ("export", "--slab", "0:5", "--only", "u")]:
        if command[-1] == "u" and user_block:
            continue
        report = [] if command[0] == "export" else ["--json", tmp_path / "report.json"]
        done = tailrace(command[0], source, "-o", target, "--force", *command[1:], *report,
                        ranks=ranks)
        said = re.sub(r"\s+", " ", done.stderr)
        assert words in said, (command, said)
        assert "11 bytes" in said or command[0] == "concat"
        if report:
            assert words in (tmp_path / "report.json").read_text()
        assert not target.read_bytes().endswith(b"a signature")
    tailrace("repack", source, "-o", target, "--force")
    said = verified(source, target, 0, "--json", tmp_path / "report.json", ranks=ranks)
    listed = "differs, not a failure: bytes behind the end of /"
    assert listed in said
    differences = json.loads((tmp_path / "report.json").read_text())["structure"]["differences"]
    found = [each for each in differences if each["aspect"] == "bytes behind the end"]
    assert len(found) == 1 and "11 in the original, 0 in" in found[0]["text"]
    other = tmp_path / "other.h5"
    other.write_bytes(plain + b"A signature")
    assert listed in verified(source, other, 0, "--json", tmp_path / "report.json")
    assert "byte 0 of 11 differs" in (tmp_path / "report.json").read_text()
    other.write_bytes(plain + b"a signature")
    said = verified(source, other, 0, "--json", tmp_path / "report.json")
    assert listed not in said
    assert not json.loads((tmp_path / "report.json").read_text())["structure"]["differences"]
    assert words in re.sub(r"\s+", " ", tailrace("info", source).stderr)

"""scripts/compare-files: the classes of differences between two files, and a run with one build."""

import os
import pathlib
import subprocess
import sys

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ROOT, program

sys.path.insert(0, str(ROOT / "tests"))

from workload.compare_builds import differences  # noqa: E402
from workload.files.same_file import compare, facts_of, read, version_only  # noqa: E402


@pytest.fixture
def original(tmp_path):
    path = tmp_path / "original.h5"
    with h5py.File(path, "w") as file:
        values = np.arange(4000, dtype="f4").reshape(40, 100)
        file.create_dataset("v", data=values, chunks=(20, 50), compression="gzip")
        file.create_dataset("g/whole", data=values)
        file["v"].attrs["units"] = "m"
    return path


def classes(original, other):
    return {each for each, _ in compare(facts_of(original), facts_of(other))}


def changed(original, at, byte):
    data = bytearray(original.read_bytes())
    data[at] ^= byte
    other = original.with_name("changed.h5")
    other.write_bytes(data)
    return other


def test_equal_files_have_no_differences(original):
    assert classes(original, changed(original, 0, 0)) == set()


def test_a_changed_byte_of_a_dataset(original):
    at = facts_of(original).stored["/g/whole", ()].address
    assert classes(original, changed(original, at + 40, 1)) == {"stored bytes", "values"}


def test_a_changed_chunk_with_equal_values(original):
    """Chunks of two levels of deflate decode to equal values."""
    other = original.with_name("level.h5")
    with h5py.File(original) as source, h5py.File(other, "w") as file:
        for name, level in (("v", 9), ("g/whole", None)):
            file.create_dataset(name, data=source[name][...], chunks=source[name].chunks,
                                compression=level)
        file["v"].attrs["units"] = "m"
    assert "stored bytes" in classes(original, other)
    assert "values" not in classes(original, other)


def test_a_changed_attribute(original):
    other = changed(original, 0, 0)
    with h5py.File(other, "r+") as file:
        file["v"].attrs["units"] = "s"
    assert classes(original, other) - {"places"} == {"attribute units"}


def test_a_changed_property_of_a_dataset(original):
    other = original.with_name("limits.h5")
    with h5py.File(original) as source, h5py.File(other, "w") as file:
        file.create_dataset("v", data=source["v"][...], chunks=(20, 50), compression="gzip",
                            maxshape=(None, 100))
        file["v"].attrs["units"] = "m"
        file.create_dataset("g/whole", data=source["g/whole"][...])
    assert "limits" in classes(original, other)


def test_objects_at_other_places(original):
    other = original.with_name("order.h5")
    with h5py.File(original) as source, h5py.File(other, "w") as file:
        file.create_dataset("g/whole", data=source["g/whole"][...])
        file.create_dataset("v", data=source["v"][...], chunks=(20, 50), compression="gzip")
        file["v"].attrs["units"] = "m"
    assert classes(original, other) == {"places"}


def test_a_byte_behind_all_objects(original):
    with open(original, "ab") as file:
        file.write(bytes(8))
    assert classes(original, changed(original, -1, 1)) == {"elsewhere"}


def test_versions_of_trz_chunks_are_a_class_of_their_own():
    old = b"TRZ\7sum_inner TRZ\4sum_values"
    assert version_only(old, b"TRZ\1SUM_inner TRZ\1SUM_values")
    assert not version_only(old, b"TRZ\1SUM_inner TRZ\1SUM_Values")
    assert not version_only(old, old + b" ")


def test_a_damaged_file_and_a_refusal_differ_from_a_file(original):
    damaged = read(changed(original, 0, 1))
    assert "OSError" in damaged
    good = ([["close", "", ""]], {"1": facts_of(original)})
    for other, expected in ((good, []), ((good[0], {"1": damaged}), ["file"]),
                            ((good[0], {}), ["file"]), (([["close", "OSError", ""]], {}), ["end"])):
        assert [each for each, _ in differences(good, other)] == expected


def test_a_build_writes_what_it_writes():
    python_package.load()
    built = str(pathlib.Path(program()).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "workload.compare_builds", built, built, "--seeds", "1",
         "--door", "array"], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "tests"), str(ROOT / "tests" / "python")])})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 array 1" in done.stdout and "0 cases differ" in done.stdout, done.stdout

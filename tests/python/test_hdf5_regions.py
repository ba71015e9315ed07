"""Bounds of regions in datasets that a program writes with HDF5: kept, or refused on creation."""

import h5py
import numpy as np
import pytest

from hdf5_runs import FRONTS, MANY_BOXES, by_deflate, h5py_of_mpi, patterns, row_values, run

pytestmark = pytest.mark.sample(3)


@FRONTS
@pytest.mark.parametrize("bound", ["abs=1e-2", "rel=1e-5"])
def test_regions_of_datasets(bound, front, tmp_path):
    """Regions hold, also with bounds that are known only after the first flush."""
    guard = "region=10..50x30..:1e-04"
    patterns(["blocks"], tmp_path, 2, front=front, TAILRACE_OPTIONS=(
        f"*/f64: codec=trz,bound={bound},chunk=32x64,guard={guard}"))
    with h5py.File(tmp_path / "blocks.h5") as file:
        assert file["fields/f64"].attrs["tailrace_guard"].decode() == guard
        largest = file["fields/f64"].attrs["tailrace_absolute_bound"]
    expected = row_values(0, 97 * 120).reshape(97, 120)
    with h5py.File(by_deflate(tmp_path / "blocks.h5")) as file:
        off = np.abs(file["fields/f64"][()] - expected)
    assert off[10:50, 30:].max() <= 1e-4 < off.max() <= largest


@FRONTS
@pytest.mark.parametrize("guard, why", [
    ("region=/mask:0.1", "a mask works only with tailrace repack"),
    ("region=10..50:0.1", "it has 1 axes, the dataset has shape 97x120"),
    ("region=*x100..121:0.1", "it exceeds the shape 97x120 along axis 1"),
])
@pytest.mark.parametrize("bound", ["abs=1e-2", "rel=1e-5"])
def test_regions_that_are_none_fail_the_create(bound, guard, why, front, tmp_path):
    """Invalid regions are refused on creation, also with bounds that are known only later."""
    said = patterns(["blocks"], tmp_path, 2, code=None, front=front, TAILRACE_OPTIONS=(
        f"*/f64: codec=trz,bound={bound},guard={guard}"))
    assert why in said
    assert "in H5Dcreate()" in said or "in H5Fcreate()" in said
    assert "H5Fclose" not in said and not (tmp_path / "blocks.h5").exists()


@pytest.mark.parametrize("bound", ["abs=1e-2", "rel=1e-5"])
def test_regions_end_behind_limits_that_allow_it(bound, tmp_path):
    """A region must not exceed a dataset's maximal extents."""
    said = patterns(["chunks"], tmp_path, 2, code=None, TAILRACE_OPTIONS=(
        f"own_chunks: codec=trz,bound={bound},guard=region=0..9x0..131:0.1"))
    assert "it exceeds the shape 70x130 along axis 1" in said and "in H5Dcreate" in said
    patterns(["grows"], tmp_path, 2, TAILRACE_OPTIONS=(
        f"steps: codec=trz,bound={bound},guard=region=30..99x60..150:0.001"))
    with h5py.File(tmp_path / "grows.h5") as file:
        assert file["steps"].attrs["tailrace_guard"].decode() == "region=30..99x60..150:0.001"


@pytest.mark.parametrize("bound", ["abs=1e-2", "rel=1e-4", "psnr=80"])
def test_regions_of_levels_fail_the_create(bound, tmp_path):
    """Chunks follow boxes here, because the boxes are large enough."""
    script = MANY_BOXES.replace("2100", "20").replace("1024, 512", "8192, 4096")
    said = run(["/usr/bin/python3", "-c", script, tmp_path / "ours.h5"], 2, True, code=None,
               **h5py_of_mpi(),
               TAILRACE_OPTIONS=f"*datatype*: codec=trz,bound={bound},guard=region=*:1e-3")
    assert "region is not served for plotfile levels" in said
    assert ", in create_dataset" in said and "in H5Fclose" not in said

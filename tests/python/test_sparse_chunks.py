"""Partly written datasets: every interface reads and changes them like h5py.

Shapes, chunks, limits, filters and chunk indexes are random. HDF5 lists the entries of an
extensible array with wrong coordinates if its unlimited dimension is not the first one.
"""

import random
import re
import shutil

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import tailrace
from hdf5_runs import h5py_of_mpi, run

tailrace_package = python_package.load()

FILL = -1
N_DATASETS = 24


def random_dataset(rng, netcdf):
    """Return extents, limits and chunks of a dataset with many chunks and unlimited dimensions."""
    rank = rng.randint(1, 4)
    n_chunks = [rng.choice([1, 2, 3, 5])] * rank
    while np.prod(n_chunks) < 200:
        n_chunks[rng.randrange(rank)] *= rng.randint(2, 6)
    chunks = [rng.randint(1, 4) for _ in range(rank)]
    shape = [n * c - rng.randrange(c) for n, c in zip(n_chunks, chunks)]
    chunks = [min(c, n) for c, n in zip(chunks, shape)]
    n_unlimited = rng.choice([0, 1, 1, 1, 1, 2])
    unlimited = rng.sample(range(rank), min(n_unlimited, rank))
    spare = 0 if netcdf else rng.choice([0, 0, 7])
    limits = [None if d in unlimited else shape[d] + rng.randint(0, spare) for d in range(rank)]
    return shape, limits, chunks, rng.choice([None, "gzip", "shuffle"])


def write_parts(rng, shape, variable):
    """Write a few boxes, and the last element, which gives netCDF variables their extents."""
    for _ in range(rng.randint(1, 5)):
        start = [rng.randrange(n) for n in shape]
        box = tuple(slice(s, min(n, s + rng.randint(1, 5))) for s, n in zip(start, shape))
        variable[box] = rng.randint(0, 10**6)
    variable[tuple(n - 1 for n in shape)] = rng.randint(0, 10**6)


def write_h5py(path, seed, contents, libver):
    rng, values = random.Random(seed), random.Random(contents)
    with h5py.File(path, "w", libver=libver) as file:
        for i in range(N_DATASETS):
            shape, limits, chunks, packed = random_dataset(rng, netcdf=False)
            variable = file.create_dataset(
                f"v{i}", shape, "i4", maxshape=limits, chunks=tuple(chunks), fillvalue=FILL,
                compression="gzip" if packed == "gzip" else None, shuffle=packed == "shuffle")
            write_parts(values, shape, variable)


def write_netcdf(path, seed, contents):
    rng, values = random.Random(seed), random.Random(contents)
    with netCDF4.Dataset(path, "w") as file:
        for i in range(N_DATASETS):
            shape, limits, chunks, packed = random_dataset(rng, netcdf=True)
            names = [f"d{i}_{d}" for d in range(len(shape))]
            for name, limit in zip(names, limits):
                file.createDimension(name, limit)
            variable = file.createVariable(
                f"v{i}", "i4", names, chunksizes=chunks, fill_value=FILL,
                zlib=packed == "gzip", shuffle=packed == "shuffle")
            write_parts(values, shape, variable)


def write_tailrace(path, seed, contents):
    rng, values = random.Random(seed), random.Random(contents)
    with tailrace_package.open(path, "w") as file:
        for i in range(N_DATASETS):
            shape, limits, chunks, packed = random_dataset(rng, netcdf=True)
            names = [f"d{i}_{d}" for d in range(len(shape))]
            for name, limit in zip(names, limits):
                file.create_dimension(name, limit)
            variable = file.create_variable(
                f"v{i}", names, "i4", chunks=tuple(chunks), fill_value=FILL,
                codec="deflate" if packed else "none")
            write_parts(values, shape, variable)


WRITERS = {
    "h5py-earliest": lambda *at: write_h5py(*at, "earliest"),
    "h5py-v110": lambda *at: write_h5py(*at, ("v110", "v110")),
    "h5py-v114": lambda *at: write_h5py(*at, ("v114", "v114")),
    "netcdf": write_netcdf,
    "tailrace": write_tailrace,
}


def all_values(path):
    with h5py.File(path) as file:
        return {f"v{i}": file[f"v{i}"][()] for i in range(N_DATASETS)}


def n_stored(path):
    """Count all stored chunks; a contiguous dataset counts as one."""
    with h5py.File(path) as file:
        datasets = [item for item in file.values() if isinstance(item, h5py.Dataset)]
        return sum(item.id.get_num_chunks() if item.chunks else item.id.get_storage_size() > 0
                   for item in datasets)


def assert_same(found, expected):
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module", params=[
    pytest.param((writer, seed), id=f"{writer}-{seed}", marks=[] if seed == 1 else pytest.mark.full)
    for writer in WRITERS for seed in (1, 2, 3)])
def written(request, tmp_path_factory):
    """Write two files with the same shapes and different values."""
    writer, seed = request.param
    folder = tmp_path_factory.mktemp("sparse")
    for name, contents in (("a", 10), ("b", 20)):
        WRITERS[writer](folder / f"{name}.h5", seed, contents + seed)
    return folder


def test_reader(written):
    expected = all_values(written / "a.h5")
    with tailrace_package.open(written / "a.h5") as file:
        assert_same({name: file[name][...] for name in expected}, expected)
        assert_same({name: file[name][..., ::3] for name in expected},
                    {name: values[..., ::3] for name, values in expected.items()})


@pytest.mark.parametrize("codec", ["deflate", "none"])
def test_repack_and_verify(written, codec, tmp_path):
    source, target = written / "a.h5", tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--lossless-codec", codec)
    assert_same(all_values(target), all_values(source))
    tailrace("verify", source, target)
    tailrace("verify", source, written / "b.h5", code=1)


def test_concat(written, tmp_path):
    sources = [written / "a.h5", written / "b.h5"]
    with h5py.File(sources[0]) as file:  # Files with dimension scales only append records.
        records = all(dataset.maxshape[1:].count(None) == 0 for dataset in file.values())
        plain = not any(dataset.is_scale for dataset in file.values())
    if not plain and not records:
        refused = tailrace("concat", "-o", tmp_path / "out.h5", *sources, code=2)
        assert "rows are appended along the first dimension only" in refused.stderr
        return
    tailrace("concat", "-o", tmp_path / "out.h5", *sources)
    first, second = map(all_values, sources)
    assert_same(all_values(tmp_path / "out.h5"),
                {name: np.concatenate([first[name], second[name]]) for name in first})


def test_recover(written):
    said = tailrace("recover", written / "a.h5").stdout
    assert int(re.search(r"(\d+) chunks are listed", said)[1]) == n_stored(written / "a.h5")


def change(file, expected, rng):
    for name, values in expected.items():
        at = tuple(rng.randrange(n) for n in values.shape)
        file[name][at] = values[at] = rng.randint(0, 10**6)


def test_update(written, tmp_path):
    path = shutil.copy(written / "a.h5", tmp_path)
    expected = all_values(path)
    for round_ in range(2):
        with tailrace_package.open(path, "a") as file:
            change(file, expected, random.Random(round_))
        assert_same(all_values(path), expected)


CHANGES = """
import random, sys, h5py
from mpi4py import MPI
with h5py.File(sys.argv[1], "a", driver="mpio", comm=MPI.COMM_WORLD) as file:
    rng = random.Random(5)
    for i in range(int(sys.argv[2])):
        at = tuple(rng.randrange(n) for n in file[f"v{i}"].shape)
        value = rng.randint(0, 10**6)
        if MPI.COMM_WORLD.rank == 0:
            file[f"v{i}"][at] = value
"""


def test_program_on_parallel_hdf5(written, tmp_path):
    """A program on parallel HDF5 changes single elements of the datasets."""
    path = shutil.copy(written / "a.h5", tmp_path)
    expected = all_values(path)
    run(["/usr/bin/python3", "-c", CHANGES, path, N_DATASETS], 2, ours=True, **h5py_of_mpi())
    rng = random.Random(5)
    for values in expected.values():
        at = tuple(rng.randrange(n) for n in values.shape)
        values[at] = rng.randint(0, 10**6)
    assert_same(all_values(path), expected)


@pytest.mark.parametrize("way", [[], ["--publish=as-stored"],
                                 ["--codec", "trz", "--bound", "abs=1e-3"]])
def test_few_chunks_of_many_take_little_space(way, tmp_path):
    """A dataset of 40 GB with a few chunks gets a small index, and chunks can be added."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.random.default_rng(5).random((3, 100, 100)).astype("f4")
    with h5py.File(source, "w") as file:
        dataset = file.create_dataset("d", (100000, 100000), "f4", chunks=(100, 100),
                                      compression="gzip", fillvalue=-1)
        for k, at in enumerate([0, 51200, 99900]):
            dataset[at:at + 100, 700:800] = values[k]
    tailrace("repack", source, "-o", target, *way, ranks=2)
    assert target.stat().st_size < 2 * source.stat().st_size
    with h5py.File(target, "r+") as file:
        assert file["d"].id.get_num_chunks() == 3 and file["d"].chunks == (100, 100)
        if "trz" not in way:
            np.testing.assert_array_equal(file["d"][51200:51300, 700:800], values[1])
            file["d"][300:400, 300:400] = 5
            assert file["d"][350, 350] == 5 and file["d"][99950, 50] == -1
    tailrace("recover", target)
    with tailrace_package.open(target) as file:
        np.testing.assert_allclose(file["d"][99900:, 700:800], values[2], atol=1e-3)
        assert (file["d"][300:400, 300:400] == (-1 if "trz" in way else 5)).all()
    with tailrace_package.open(target, "a") as file:
        file["d"][500:600, 500:600] = 7
    with h5py.File(target) as file:
        assert file["d"].id.get_num_chunks() == (4 if "trz" in way else 5)
        if "trz" not in way:
            assert file["d"][550, 550] == 7
    tailrace("recover", target)

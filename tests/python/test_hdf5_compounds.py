"""Compounds, texts and opaque values of HDF5 programs are encoded and written by all ranks.

Elements of any fixed size are chunked like numbers, behind HDF5's own shuffle, which parts the
members within a chunk. Every reader sees the compound."""

import h5py
import numpy as np
import pytest
from hdf5_runs import HERE, filters_of, h5py_of_mpi, run

PARTICLES = """
import sys, h5py, numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
n = 40000
dtype = np.dtype([("x", "f4"), ("y", "f4"), ("px", "f8"), ("id", "i4"), ("kind", "i2")])
rows = slice(n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size)
i = np.arange(n)
values = np.zeros(n, dtype)
values["x"], values["y"] = np.sin(i / 300).round(4), np.cos(i / 200).round(4)
values["px"], values["id"], values["kind"] = i // 7 * 0.5, i, i % 3
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    file.create_dataset("particles", (n,), dtype)[rows] = values[rows]
    for name in dtype.names:
        file.create_dataset("apart/" + name, (n,), dtype[name])[rows] = values[name][rows]
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_particles_compress_like_their_members(ranks, tmp_path):
    (tmp_path / "write.py").write_text(PARTICLES)
    said = run(["/usr/bin/python3", tmp_path / "write.py", tmp_path / "p.h5"], ranks, ours=True,
               **h5py_of_mpi())
    with h5py.File(tmp_path / "p.h5") as file:
        particles = file["particles"]
        assert filters_of(particles) == [2, 1] and particles.chunks is not None
        for name in particles.dtype.names:
            np.testing.assert_array_equal(particles[name], file["apart"][name][:])
        apart = sum(each.id.get_storage_size() for each in file["apart"].values())
        assert particles.id.get_storage_size() <= 1.05 * apart
        assert particles.id.get_storage_size() < particles.nbytes / 3
    assert "/particles" not in said  # Rank 0 writes nothing of it through HDF5.


@pytest.mark.sample(12)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_random_compounds(ranks, seed, tmp_path):
    path = tmp_path / "random.h5"
    options = ["", "mode=async", "memory=2MB", "codec=trz,bound=rel=1e-3", "chunk=7"][seed % 5]
    if seed % 5 == 4:
        options = "*: codec=deflate"
    run(["/usr/bin/python3", HERE / "write_compounds.py", path, seed], ranks, ours=True,
        TAILRACE_OPTIONS=options, **h5py_of_mpi())
    with h5py.File(path) as file, np.load(f"{path}.npz") as models:
        assert sorted(file) == sorted(models)
        for name in file:
            dataset = file[name]
            found = np.empty(dataset.shape, dataset.dtype)
            dataset.read_direct(found)
            np.testing.assert_array_equal(found, models[name].view(dataset.dtype)
                                          .reshape(dataset.shape), err_msg=name)


def test_options_that_need_numbers(tmp_path):
    (tmp_path / "write.py").write_text(PARTICLES)
    words = ["/usr/bin/python3", tmp_path / "write.py", tmp_path / "p.h5"]
    said = run(words, 2, ours=True, code=None, TAILRACE_OPTIONS="particles: codec=trz",
               **h5py_of_mpi())
    assert "its elements of 22 bytes are not numbers; use codec deflate or none, not trz" in said
    run(words, 2, ours=True, TAILRACE_OPTIONS="codec=trz,bound=abs=1e-3", **h5py_of_mpi())
    with h5py.File(tmp_path / "p.h5") as file:
        assert filters_of(file["particles"]) == [2, 1]
        np.testing.assert_array_equal(file["particles"]["id"], np.arange(40000))

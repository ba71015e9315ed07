"""Programs on parallel HDF5 that flush after each step: the steps stay compressed in their chunks.

tests/hdf5_programs/write_h5py_steps.py writes them; it knows nothing of Tailrace.
"""

import h5py
import numpy as np
import pytest
from hdf5_runs import HERE, h5py_of_mpi, run
from python_package import load

tailrace = load()
BOUND = 1e-3


@pytest.mark.parametrize(("ranks", "mode", "codec"), [
    (1, "sync", "trz"), (3, "sync", "trz"), (2, "async", "trz"), (2, "sync", "portable")])
def test_steps_that_share_a_chunk_stay_compressed(ranks, mode, codec, tmp_path):
    clean = h5py_of_mpi()
    words = ["/usr/bin/python3", HERE / "write_h5py_steps.py"]
    run([*words, tmp_path / "plain.h5"], ranks, ours=False, **clean)
    options = f"mode={mode};volume: codec={codec},bound=abs={BOUND};maps: codec={codec}," \
              f"bound=abs={BOUND};own: codec={codec},bound=abs={BOUND}"
    said = run([*words, tmp_path / "ours.h5"], ranks, ours=True,
               **{**clean, "TAILRACE_OPTIONS": options})
    assert "stored as they are" not in said
    with tailrace.open(tmp_path / "ours.h5") as ours, h5py.File(tmp_path / "plain.h5") as plain:
        assert ours["volume"].chunks[0] == 1
        for name in ("volume", "maps", "own"):
            assert np.abs(ours[name][:] - plain[name][:]).max() <= BOUND
    small, large = (tmp_path / f"{name}.h5" for name in ("ours", "plain"))
    assert small.stat().st_size < large.stat().st_size / 4

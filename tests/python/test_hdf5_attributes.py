"""Attributes of HDF5 programs that not all ranks create are named: the file has those of rank 0."""

import h5py
import pytest
from hdf5_runs import FRONTS, patterns


def lines(said, name):
    return [line for line in said.splitlines()
            if f"{name}.h5: " in line and 'attribute "' in line]


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_attributes_of_all_ranks_and_of_some(ranks, front, tmp_path):
    said = patterns(["alike", "on_root", "on_last"], tmp_path, ranks, front=front,
                    program="write_attributes")
    assert lines(said, "alike") == []
    with h5py.File(tmp_path / "on_root.h5") as file:
        assert list(file.attrs) == ["by root"]
    with h5py.File(tmp_path / "on_last.h5") as file:
        assert set(file["g"].attrs) - {"by last"} == {"alike", "later"}
        assert ("by last" in file["g"].attrs) == (ranks == 1)
    if ranks == 1:
        assert lines(said, "on_root") == lines(said, "on_last") == []
        return
    root, = lines(said, "on_root")
    assert 'rank 0 has attribute "by root" of /, ' in root
    assert "the file has those of rank 0" in root
    last, = lines(said, "on_last")  # Once, although two collective calls follow.
    assert 'this rank has attribute "by last" of /g;' in last
    assert f"rank {ranks - 1}: " in last

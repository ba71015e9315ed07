"""Programs on parallel HDF5 with their own link classes and with event sets, like plain runs."""

import h5py
import numpy as np
import pytest

from hdf5_runs import FRONTS, LATER_FRONTS, patterns, row_values, same

pytestmark = pytest.mark.sample(3)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_links_of_the_programs_own_kinds(ranks, front, tmp_path):
    """Objects without any other link are included; values written to them are not lost."""
    names = ["counted", "by_path", "without_links"]
    patterns(names, tmp_path / "plain", ranks, ours=False, front=front, program="write_links")
    said = patterns(names, tmp_path / "ours", ranks, front=front, program="write_links")
    expected = row_values(0, 64 * 80).reshape(64, 80)
    for name in names:
        assert f"ours/{name}.h5: " in said
        same(tmp_path / "ours" / f"{name}.h5", tmp_path / "plain" / f"{name}.h5")
    patterns(["unlinked"], tmp_path / "ours", ranks, front=front, program="write_links")
    values = {"counted": ["named one", "named group/two", "named kept"],
              "by_path": ["group/values"], "without_links": ["named"], "unlinked": ["named"]}
    for name, datasets in values.items():
        with h5py.File(tmp_path / "ours" / f"{name}.h5") as file:
            for dataset in datasets:
                np.testing.assert_array_equal(file[dataset], expected)
                assert file[dataset].chunks is not None


@FRONTS
@pytest.mark.parametrize("ranks", [1, 3])
def test_links_of_the_programs_own_kinds_beside_the_program(ranks, front, tmp_path):
    patterns(["counted", "without_links"], tmp_path, ranks, front=front, program="write_links",
             TAILRACE_OPTIONS="mode=async")
    expected = row_values(0, 64 * 80).reshape(64, 80)
    with h5py.File(tmp_path / "counted.h5") as file:
        for name in ("named one", "named group/two", "named kept"):
            np.testing.assert_array_equal(file[name], expected)
    with h5py.File(tmp_path / "without_links.h5") as file:
        np.testing.assert_array_equal(file["named"], expected)


@pytest.mark.parametrize("front", LATER_FRONTS, ids=lambda end: f"hdf5{end}")
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("options", ["", "mode=async"])
def test_event_sets_say_what_they_say_without_us(options, ranks, front, tmp_path):
    patterns(["events"], tmp_path / "plain", ranks, ours=False, front=front,
             program="write_later_calls")
    said = patterns(["events"], tmp_path / "ours", ranks, front=front,
                    program="write_later_calls", TAILRACE_OPTIONS=options)
    assert "ours/events.h5: " in said
    same(tmp_path / "ours" / "events.h5", tmp_path / "plain" / "events.h5")

"""Programs on parallel HDF5 under a bound for all datasets, on 1, 2 and 3 ranks: coordinates,
masks, ids and other roles stay exact, and values lose digits within the bound."""

import re

import h5py
import numpy as np
import pytest
from hdf5_runs import FRONTS, by_deflate, filters_of, patterns

REL = "bound=rel=1e-3"
CLIMATE = {"north": "coordinate by CF units", "east": "coordinate by CF units",
           "when": "time by CF units", "land_mask": "mask by name", "particle_id": "id by name",
           "weights": "weight by name", "corners": "coordinate by CF coordinates"}


def values_of(path):
    values = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: values.update({name: item[()]})
                        if isinstance(item, h5py.Dataset) else None)
    return values


def compared(folder, name, ranks, options, front=""):
    """Run a pattern plain and served. @returns the datasets that lost digits, and the report."""
    folder.mkdir(exist_ok=True)
    patterns([name], folder / "plain", ranks, ours=False, front=front, program="write_roles")
    said = patterns([name], folder / "ours", ranks, front=front, program="write_roles",
                    TAILRACE_OPTIONS=options)
    plain = values_of(folder / "plain" / f"{name}.h5")
    ours = values_of(by_deflate(folder / "ours" / f"{name}.h5"))
    assert plain.keys() == ours.keys()
    lossy = {key for key in plain if plain[key].tobytes() != ours[key].tobytes()}
    for key in lossy:
        assert np.abs(plain[key] - ours[key]).max() <= 1e-3 * np.ptp(plain[key]), key
    return lossy, said


@pytest.mark.sample(4)
@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("options", [REL, "bound=abs=1", "bound=abs=1,mode=async"])
def test_only_fields_lose_digits(tmp_path, front, ranks, options):
    lossy, said = compared(tmp_path, "climate", ranks, options, front)
    assert lossy == {"rho", "theta"}
    for name, why in CLIMATE.items():
        assert re.search(rf"exact under a bound for all \({why}\): /\w+", said), (name, said)
    with h5py.File(tmp_path / "ours" / "climate.h5") as file:
        assert all("tailrace_bound_mode" in file[name].attrs for name in lossy)
        assert not any("tailrace_bound_mode" in file[name].attrs for name in CLIMATE)


@pytest.mark.parametrize("options, more", [
    ("codec=portable,bound=abs=1", set()),
    ("bound=pw_rel=1e-4", set()),
    (f"{REL}; north: bound=abs=1; weights: bound=rel=1e-3", {"north", "weights"}),
    (f"{REL}; *: bound=abs=1", set()),
    (f"{REL}; nor*: roles=off", {"north"}),
    (f"{REL},roles=off", set(CLIMATE)),
])
def test_codecs_and_options_by_name(tmp_path, options, more):
    lossy, said = compared(tmp_path, "climate", 2, options)
    assert lossy == {"rho", "theta"} | more
    assert ("exact under a bound for all" in said) == (more != set(CLIMATE))


def test_chunks_of_a_plug_in_skip_it(tmp_path):
    """The header names a lossy filter before it is known whether values may lose digits."""
    lossy, _ = compared(tmp_path, "climate", 2, "codec=sz3,bound=abs=1")
    assert lossy == {"rho", "theta"}
    with h5py.File(tmp_path / "ours" / "climate.h5") as file:
        assert filters_of(file["north"]) == filters_of(file["rho"])
        masks = {file["north"].id.get_chunk_info(i).filter_mask
                 for i in range(file["north"].id.get_num_chunks())}
        assert masks == {1}


@pytest.mark.sample(4)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name, expected", [
    ("after", {"rho"}),
    ("late", {"north"}),  # The first flush decided before the attribute was set.
    ("grown", {"rho"}),
    ("h5md", {f"particles/all/{name}/value" for name in ("velocity", "force", "mass")}),
    ("athena", {"prim", "B"}),
])
def test_other_layouts(tmp_path, ranks, name, expected):
    for options in (REL, "bound=abs=1"):
        lossy, _ = compared(tmp_path / options, name, ranks, options)
        assert lossy == expected


@pytest.mark.parametrize("options", [REL, "bound=abs=1", "bound=pw_rel=1e-4"])
def test_an_opened_file_keeps_the_recorded_bound(tmp_path, options):
    """Steps that are appended to an opened file are as small as those before, and other options
    append exact ones."""
    compared(tmp_path, "grown", 2, options)
    with h5py.File(tmp_path / "ours" / "grown.h5") as file:
        sizes = [file["rho"].id.get_chunk_info(i).size for i in range(4)]
    assert max(sizes[2:]) < 1.5 * max(sizes[:2])

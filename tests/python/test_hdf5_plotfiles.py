"""Plotfiles of AMReX's pattern, written through parallel HDF5 with our library preloaded.

Values equal those of a plain run. Chunks are slabs of the boxes, and components have bounds.
"""

import h5py
import numpy as np
import pytest
from hdf5_runs import (FRONTS, by_deflate, filters_of, program_of, run, same, trz_shapes,
                       verified)

pytestmark = pytest.mark.sample(3)


def plotfile_boxes(kind):
    """Return the extents of the boxes of tests/hdf5_programs/write_plotfile.cpp, slowest first."""
    shapes = {"small": lambda box: (8, 8, 8),
              "mixed": lambda box: (8 * (1 + box % 3), 16, 16),
              "turned": lambda box: (16, 32, 8) if box % 2 else (16, 16, 16),
              "odd": lambda box: (16, 16, 11 + box)}
    return [shapes.get(kind, lambda box: (16, 16, 16))(box) for box in range(7)]


def plotfile_values(level, kind="equal", components=range(4)):
    """Return values in the order of boxes, components and cells."""
    values = []
    for box, shape in enumerate(plotfile_boxes(kind)):
        z, y, x = np.indices(shape)
        wave = np.sin(0.07 * (x + 16 * box)) * np.cos(0.11 * y + level) + 0.01 * z
        values += [1e3 ** component * (1.5 + wave.ravel()) for component in components]
    return np.concatenate(values)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 3])
def test_plotfile_as_amrex_writes_it(ranks, front, tmp_path):
    words = [program_of(front, "write_plotfile")]
    run([*words, tmp_path / "plain.h5"], ranks, False, front=front)
    said = run([*words, tmp_path / "ours.h5"], ranks, True, front=front)
    assert said.count("ours.h5: ") == 3
    same(tmp_path / "ours.h5", tmp_path / "plain.h5")
    with h5py.File(tmp_path / "ours.h5") as file:
        for level in range(3):
            values = file[f"level_{level}/data:datatype=0"]
            assert filters_of(values) == [2, 1] and values.chunks[0] > 4096  # Slabs are not used.
            np.testing.assert_allclose(values[()], plotfile_values(level), rtol=1e-14)
    options = "level_1/data*: codec=trz,bound=abs=1e-1"
    run([*words, tmp_path / "lossy.h5"], ranks, True, front=front, TAILRACE_OPTIONS=options)
    with h5py.File(tmp_path / "lossy.h5") as file:
        assert filters_of(file["level_1/data:datatype=0"]) == [481]
    with h5py.File(by_deflate(tmp_path / "lossy.h5")) as file:
        for level in range(3):
            values = file[f"level_{level}/data:datatype=0"][()]
            error = np.abs(values - plotfile_values(level)).max()
            assert error <= 1e-5 if level != 1 else 0 < error <= 1e-1 + 1e-5


@pytest.mark.sample(6)
@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kind, slab_cells", [("equal", 4096), ("mixed", 2048), ("turned", 4096),
                                              ("separate", 4096), ("small", 0), ("odd", 0),
                                              ("unsaid", 0)])
@pytest.mark.parametrize("options", ["codec=trz", "bound=rel=1e-7"])
def test_chunks_of_a_plotfile_are_slabs_of_its_boxes(options, kind, slab_cells, ranks, front,
                                                     tmp_path):
    """Chunks follow the boxes that rank 0 has written; every reader sees chunks of one dimension.
    If boxes have no common slab size, or contradict other information, the usual chunks apply."""
    path = tmp_path / "ours.h5"
    run([program_of(front, "write_plotfile"), path, kind], ranks, True,
        front=front, TAILRACE_OPTIONS=options)
    n_each = 1 if kind == "separate" else 4
    expected = [(slab_cells // shape[1] // shape[2], *shape[1:]) for shape in plotfile_boxes(kind)
                for _ in range(n_each * np.prod(shape) // max(slab_cells, 1)) if slab_cells > 0]
    with h5py.File(path) as file:
        for level in range(3):
            for number in range(4 // n_each):
                values = file[f"level_{level}/data:datatype={number}"]
                assert filters_of(values) == [481]
                assert values.chunks == (slab_cells,) if slab_cells else values.chunks[0] > 10000
                shapes = trz_shapes(values)
                assert {np.prod(shape) for shape in shapes} == {values.chunks[0]}
                if options == "codec=trz":
                    assert shapes == (expected or [values.chunks] * len(shapes))
                elif kind != "separate":  # trz may also fold axes, or divide one by a period.
                    assert any(len(shape) == 3 for shape in shapes) == (slab_cells > 0)
    with h5py.File(by_deflate(path)) as file:
        for level in range(3):
            for number in range(4 // n_each):
                components = range(number, number + n_each)
                written = plotfile_values(level, kind, components)
                values = file[f"level_{level}/data:datatype={number}"][()]
                error = np.abs(values - written)
                if options == "codec=trz":
                    np.testing.assert_allclose(values, written, rtol=1e-14)
                else:
                    assert 0 < error.max() <= 1.001e-7 * (written.max() - written.min())


@pytest.mark.sample(6)
@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kind", ["equal", "mixed", "turned", "separate", "small", "points"])
def test_components_of_a_plotfile_have_bounds_of_their_own(kind, ranks, front, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = [program_of(front, "write_plotfile")]
    run([*words, plain, kind], ranks, False, front=front)
    options = ("component:variable ?: bound=rel=1e-5; component:*0: bound=none;"
               "component:variable 2: bound=abs=50")
    run([*words, ours, kind], ranks, True, front=front, TAILRACE_OPTIONS=options)
    lengths = [np.prod(shape) for shape in plotfile_boxes(kind)]
    of_value = np.concatenate([np.repeat(range(4), n) for n in lengths])
    with h5py.File(ours) as file, h5py.File(by_deflate(ours)) as decoded:
        for level in range(3):
            written = plotfile_values(level, kind)
            bounds = [0, 0, 50, 0]
            for c in (1, 3):
                bounds[c] = 1e-5 * np.ptp(written[of_value == c])
            if kind == "separate":
                datasets = [f"level_{level}/data:datatype={c}" for c in range(4)]
                values = np.empty_like(written)
                for c, name in enumerate(datasets):
                    values[of_value == c] = decoded[name]
                assert "tailrace_component_bounds" not in file[datasets[1]].attrs
                stated = [file[name].attrs.get("tailrace_absolute_bound", 0) for name in datasets]
            else:
                name = f"level_{level}/data:datatype=0"
                attributes = file[name].attrs
                values = decoded[name][()]
                assert attributes["tailrace_bound_mode"] in ("component", b"component")
                stated = attributes["tailrace_component_bounds"]
                assert attributes["tailrace_absolute_bound"] == max(stated)
            np.testing.assert_allclose(stated, bounds, rtol=1e-12)
            for c in range(4):
                error = np.abs(values - written)[of_value == c].max()
                rounded = 1e-14 * 1e3 ** c  # This test's values are rounded differently.
                assert bounds[c] / 100 <= error <= bounds[c] + 10 * rounded
    assert verified(plain, ours).returncode == 0
    # The bound does not depend on the boxes, which the program may change later.
    for path in (plain, ours):
        with h5py.File(path, "r+") as file:
            file["level_2/data:offsets=0"][1:-1] += 77
    assert verified(plain, ours).returncode == 0
    # One value of component 1 changes by an amount within the largest bound, but not within its
    # own.
    with h5py.File(plain, "r+") as file:
        one = 1 if kind == "separate" else 0
        at = int(np.argmax(of_value == 1)) if one == 0 else 0
        file[f"level_2/data:datatype={one}"][at + 7] += 10
    said = verified(plain, ours)
    assert said.returncode != 0 and f"level_2/data:datatype={one}" in said.stdout + said.stderr


@FRONTS
@pytest.mark.parametrize("kind", ["odd", "unsaid"])
def test_what_is_asked_of_components_that_share_chunks_is_kept_exactly(kind, front, tmp_path):
    path = tmp_path / "ours.h5"
    options = "codec=trz,bound=abs=1e6; component:variable 1: bound=abs=1e-2"
    said = run([program_of(front, "write_plotfile"), path, kind], 2, True,
               front=front, TAILRACE_OPTIONS=options)
    assert said.count("stored exactly, because their components do not have separate chunks: "
                      "/level_") == 3
    with h5py.File(by_deflate(path)) as file:
        for level in range(3):
            np.testing.assert_allclose(file[f"level_{level}/data:datatype=0"][()],
                                       plotfile_values(level, kind), rtol=1e-14)


@pytest.mark.parametrize("program", ["write_plotfile", "write_patterns"])
def test_a_component_that_is_nowhere_is_named_at_close(program, tmp_path):
    options = "component:variable 1: bound=abs=1e-2; component:varable*: bound=abs=1"
    words = [tmp_path / "ours.h5"] if program == "write_plotfile" else [tmp_path, "blocks"]
    said = run([program_of("", program), *words], 2, True, TAILRACE_OPTIONS=options)
    idle = {"write_plotfile": '"component:varable*"',
            "write_patterns": '"component:variable 1", "component:varable*"'}[program]
    assert f"these options match nothing in the file: {idle}\n" in said


@FRONTS
@pytest.mark.parametrize("options", ["codec=xor", "bound=pw_rel=1e-3"])
def test_options_beside_those_of_components_that_cannot_be(options, front, tmp_path):
    said = run([program_of(front, "write_plotfile"), tmp_path / "ours.h5"], 2,
               True, front=front, code=None,
               TAILRACE_OPTIONS=f"{options}; component:variable 1: bound=abs=1")
    assert "need codec trz, and exclude pw_rel bounds" in said and "H5Dcreate(" in said

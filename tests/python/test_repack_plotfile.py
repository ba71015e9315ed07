"""tailrace repack of plotfiles of AMReX and Chombo: chunks are slabs of boxes, and components may
have bounds of their own.
"""

import h5py
import numpy as np
import pytest

from cli_tools import datasets, numbers, smooth, tailrace
from hdf5_runs import by_deflate, trz_shapes

pytestmark = pytest.mark.sample(3)

NAMES = ["density", "velocity", "species: H2", "temperature"]
SCALES = [1.0, 1e6, 1e-8, 3e4]
KINDS = {"equal": [(16, 16, 16)] * 5,
         "mixed": [(8 * (1 + box % 3), 16, 16) for box in range(5)],
         "odd": [(16, 16, 11 + box) for box in range(5)],
         "flat": [(64, 128), (64, 64), (32, 64)]}


def write_plotfile(path, kind, dtype="f8", ghosts=0):
    """Write two levels. `ghosts`: number of values in addition to the boxes' cells."""
    shapes = KINDS[kind]
    corners = [(name, "i4") for name in ("lo_i", "lo_j", "lo_k")[:len(shapes[0])]]
    corners += [(name, "i4") for name in ("hi_i", "hi_j", "hi_k")[:len(shapes[0])]]
    with h5py.File(path, "w") as file:
        file.attrs["num_components"] = np.int32(len(NAMES))
        for c, name in enumerate(NAMES):
            file.attrs[f"component_{c}"] = np.bytes_(name)
        for level in range(2):
            boxes, values, offsets, low = [], [], [0], 0
            for b, shape in enumerate(shapes):
                extents = shape[::-1]
                boxes.append((low, *[0] * (len(shape) - 1), low + extents[0] - 1,
                              *[extent - 1 for extent in extents[1:]]))
                low += extents[0]
                for scale in SCALES:
                    cells = smooth(shape, seed=10 * level + b) * scale
                    values.append(np.concatenate([cells.ravel(), np.zeros(ghosts)]))
                offsets.append(offsets[-1] + sum(map(len, values[-len(SCALES):])))
            group = file.create_group(f"level_{level}")
            group["boxes"] = np.array(boxes, corners)
            group["data:offsets=0"] = np.array(offsets, "i8")
            group["data:datatype=0"] = np.concatenate(values).astype(dtype)


def component_of(kind):
    return np.concatenate([np.repeat(range(len(NAMES)), np.prod(shape)) for shape in KINDS[kind]])


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("kind, slab", [("equal", (16, 16, 16)), ("mixed", (8, 16, 16)),
                                        ("flat", (32, 64)), ("odd", None)])
def test_chunks_are_slabs_of_boxes(kind, slab, ranks, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    write_plotfile(plain, kind)
    numbers("repack", plain, "-o", ours, "--codec", "trz", ranks=ranks)
    tailrace("verify", plain, ours, ranks=1 + ranks % 2)
    before = datasets(plain)
    with h5py.File(ours) as file, h5py.File(by_deflate(ours)) as decoded:
        for path, values in before.items():
            np.testing.assert_array_equal(decoded[path][()], values)
        for level in range(2):
            written = file[f"level_{level}/data:datatype=0"]
            shapes = trz_shapes(written)
            if slab is None:    # These boxes have no common slab.
                assert {len(shape) for shape in shapes} == {1}
            else:
                assert written.chunks == (np.prod(slab),)
                assert {shape[1:] for shape in shapes} <= {slab[1:], (128,)}
                assert {np.prod(shape) for shape in shapes} == {np.prod(slab)}


def test_any_ranks_make_the_same_and_slabs_are_smaller_than_chunks_of_one_dimension(tmp_path):
    plain = tmp_path / "plain.h5"
    write_plotfile(plain, "equal")
    sizes = []
    for ranks in (1, 2, 4):
        ours = tmp_path / f"{ranks}.h5"
        numbers("repack", plain, "-o", ours, "--field", "component:*:bound=rel=1e-4", ranks=ranks)
        tailrace("verify", plain, ours)
        sizes.append(ours.stat().st_size)
    assert len(set(sizes)) == 1
    flat = tmp_path / "flat.h5"
    numbers("repack", plain, "-o", flat, "--codec", "trz", "--chunk", "8192")
    boxes = tmp_path / "boxes.h5"
    numbers("repack", plain, "-o", boxes, "--codec", "trz")
    with h5py.File(flat) as whole, h5py.File(boxes) as slabs:
        for level in range(2):
            path = f"level_{level}/data:datatype=0"
            assert slabs[path].id.get_storage_size() < whole[path].id.get_storage_size()


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("kind, dtype", [("equal", "f8"), ("mixed", "f4"), ("flat", "f8")])
def test_components_have_bounds_of_their_own(kind, dtype, ranks, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    write_plotfile(plain, kind, dtype)
    report = numbers("repack", plain, "-o", ours, "--field", "component:*:bound=rel=1e-3",
                     "--field", "component:species: H2:bound=none",
                     "--field", "component:temp*: bound=abs=2", ranks=ranks)["files"][0]
    assert tailrace("verify", plain, ours, ranks=ranks).returncode == 0
    before, of_value = datasets(plain), component_of(kind)
    fields = {field["path"]: field for field in report["fields"]}
    with h5py.File(ours) as file, h5py.File(by_deflate(ours)) as decoded:
        for level in range(2):
            path = f"level_{level}/data:datatype=0"
            values = before[path]
            bounds = [1e-3 * np.ptp(values[of_value == c].astype("f8")) for c in (0, 1)] + [0, 2]
            attributes = file[path].attrs
            assert attributes["tailrace_bound_mode"] in ("component", b"component")
            np.testing.assert_allclose(attributes["tailrace_component_bounds"], bounds, rtol=1e-12)
            assert attributes["tailrace_absolute_bound"] == pytest.approx(max(bounds), rel=1e-12)
            assert fields["/" + path]["bound_mode"] == "component"
            np.testing.assert_allclose(fields["/" + path]["component_bounds"], bounds, rtol=1e-12)
            errors = np.abs(decoded[path][()].astype("f8") - values)
            for c, bound in enumerate(bounds):
                assert bound / 100 <= errors[of_value == c].max() <= bound
    told = {field["path"]: field for field in numbers("info", ours)["fields"]}
    assert told["/level_1/data:datatype=0"]["bound_mode"] == "component"
    np.testing.assert_allclose(told["/level_1/data:datatype=0"]["component_bounds"], bounds)
    assert " component " in tailrace("info", ours).stdout
    # One value changes by an amount within the largest bound, but not within its own.
    with h5py.File(plain, "r+") as file:
        file["level_1/data:datatype=0"][7] += 10
    assert tailrace("verify", plain, ours, code=1)


def test_what_has_no_boxes_of_its_own(tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    write_plotfile(plain, "odd")
    # Chunks have several components, so all are kept exactly, even if one has a bound.
    report = numbers("repack", plain, "-o", ours, "--bound", "abs=1e3",
                     "--field", "component:density:bound=abs=1e-2")["files"][0]
    for field in report["fields"]:
        if "datatype" in field["path"]:
            assert field["kept_exact_because"] == "components share chunks"
            assert field["absolute_bound"] == 0
    tailrace("verify", plain, ours)
    # Ghost cells: boxes do not fit, and the data are an ordinary array.
    write_plotfile(plain, "equal", ghosts=3)
    numbers("repack", plain, "-o", ours, "--bound", "rel=1e-4", "--force")
    tailrace("verify", plain, ours)


@pytest.mark.parametrize("words, said", [
    (["--field", "component:pressure:bound=rel=1e-3"],
     "matches no component; the components are: density"),
    (["--field", "component:density:codec=trz"], "takes only bound="),
    (["--field", "component:density"], "expected component:NAME:bound=MODE=VALUE"),
    (["--field", "component:density:bound=pw_rel=1e-3"], "exclude pw_rel bounds"),
    (["--bound", "rel=1e-3", "--guard", "region=*:0.1"],
     "region is not served for plotfile levels"),
    (["--guard", "region=*:0.1", "--field", "component:density:bound=rel=1e-3"],
     "guard=gradient, guard=laplacian and guard=region"),
    (["--codec", "sz3", "--field", "component:density:bound=abs=1"], "need codec trz"),
    (["--bound", "rel=1e-3", "--field", "component:density:bound=fine=1"], "fine")])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_cannot_be_asked_of_components(words, said, ranks, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    write_plotfile(plain, "equal")
    done = tailrace("repack", plain, "-o", ours, *words, ranks=ranks, code=2)
    assert said in done.stderr and not ours.exists()


def test_components_are_those_of_plotfiles(tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    with h5py.File(plain, "w") as file:
        file["u"] = smooth((40, 40))
    done = tailrace("repack", plain, "-o", ours, "--field", "component:density:bound=rel=1e-3",
                    code=2)
    assert "needs a plotfile (AMReX, Chombo) with a level" in done.stderr

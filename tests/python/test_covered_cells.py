"""Values of a plotfile's level in cells that boxes of the next finer level cover.

Programs on parallel HDF5 and repack keep them unless covered=drop is requested.
"""

import json

import h5py
import numpy as np
import pytest

from cli_tools import datasets, numbers, smooth, tailrace
from hdf5_runs import FRONTS, by_deflate, program_of, run, same, verified

pytestmark = pytest.mark.sample(3)

REMARK = "without values of covered cells: /level_"
NAMES = ["density", "energy"]


def corners_of(group):
    """Return the lowest and highest cell of each box, i first."""
    boxes = group["boxes"][()]
    half = len(boxes.dtype.names) // 2
    numbers_of = [np.stack([boxes[name] for name in names], axis=1) for names in
                  (boxes.dtype.names[:half], boxes.dtype.names[half:])]
    return np.stack(numbers_of, axis=1).astype(int)


def covered_of(file, level, n_components):
    """Return True for each element of a level's dataset whose cell lies within a finer box."""
    group = file[f"level_{level}"]
    own = corners_of(group)
    finer_name = f"level_{level + 1}"
    finer = corners_of(file[finer_name]) if finer_name in file else np.empty((0, 2, own.shape[2]))
    ratio = np.broadcast_to(group.attrs["ref_ratio"], own.shape[2])
    marks = []
    for low, high in own:
        axes = [np.arange(first, last + 1) for first, last in zip(low, high)]
        covered = np.zeros([len(axis) for axis in axes[::-1]], bool)
        for finer_low, finer_high in finer:
            inside = [(axis * r >= first) & ((axis + 1) * r - 1 <= last) for axis, r, first, last in
                      zip(axes, ratio, finer_low, finer_high)]
            whole = inside[0]
            for axis in inside[1:]:
                whole = axis.reshape(-1, *[1] * whole.ndim) & whole
            covered |= whole
        marks += [covered.ravel()] * n_components
    return np.concatenate(marks)


def component_of(file, level, n_components):
    """Return the component of each element of a level's dataset."""
    low, high = corners_of(file[f"level_{level}"]).transpose(1, 0, 2)
    cells = (high - low + 1).prod(axis=1)
    return np.concatenate([np.repeat(range(n_components), n) for n in cells])


def data_of(file, level):
    return file[f"level_{level}/data:datatype=0"]


def storage_of(path, level):
    with h5py.File(path) as file:
        return data_of(file, level).id.get_storage_size()


def check_dropped(plain_path, path, n_components, levels, bounds, smaller):
    """Check kept values against `bounds`, which returns those of a level's elements.

    Covered values are within the range of their component. If the result is `smaller`, some covered
    values of the coarsest level have changed."""
    with h5py.File(plain_path) as plain, h5py.File(path) as file, \
            h5py.File(by_deflate(path)) as decoded:
        for level in range(levels):
            before, after = data_of(plain, level)[()], data_of(decoded, level)[()]
            covered = covered_of(plain, level, n_components)
            assert covered.any() == (level + 1 < levels) and not covered.all()
            attributes = data_of(file, level).attrs
            assert ("tailrace_covered_cells" in attributes) == covered.any()
            if covered.any():
                assert attributes["tailrace_covered_cells"][0] * n_components == covered.sum()
            error = np.abs(after.astype("f8") - before)
            limit = bounds(level, before)
            assert (error[~covered] <= limit[~covered]).all()
            if level == 0 and smaller:
                assert (error > limit)[covered].any()
            # Each component stays within the range of its own values.
            component = component_of(plain, level, n_components)
            for c in range(n_components):
                own, there = before[component == c], after[component == c]
                assert there.min() >= own.min() - limit[component == c].max()
                assert there.max() <= own.max() + limit[component == c].max()


def check_verify(plain_path, path, n_components):
    """Check that verify compares uncovered values, and ignores covered ones."""
    said = json.loads(tailrace("verify", plain_path, path, "--json", "-").stdout)
    counted = {field["path"]: field for field in said["fields"]}
    with h5py.File(plain_path, "r+") as plain:
        covered = covered_of(plain, 0, n_components)
        of_level = counted["/level_0/data:datatype=0"]
        assert of_level["n_covered"] == covered.sum()
        assert of_level["n_values"] == (~covered).sum()
        data_of(plain, 0)[int(np.flatnonzero(covered)[7])] += 1e9
        at = int(np.flatnonzero(~covered)[-7])
        there = data_of(plain, 0)[at]
    assert "under boxes of the next finer level" in tailrace("verify", plain_path, path).stdout
    with h5py.File(plain_path, "r+") as plain:
        data_of(plain, 0)[at] = there + 1e9
    tailrace("verify", plain_path, path, code=1)
    with h5py.File(plain_path, "r+") as plain:
        data_of(plain, 0)[at] = there
    # verify does not rely on the attribute alone: it compares the boxes, too.
    with h5py.File(path, "r+") as file:
        boxes = file["level_1/boxes"][()]
        boxes[boxes.dtype.names[0]] -= 2
        file["level_1/boxes"][...] = boxes
    said = tailrace("verify", plain_path, path, code=1).stdout
    assert "differ from those used to drop covered cells" in " ".join(said.split())


@pytest.mark.sample(6)
@FRONTS
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kind", ["nested", "nested_odd"])
@pytest.mark.parametrize("options", ["", "codec=trz", "bound=abs=0.5",
                                     "component:*: bound=rel=1e-3"])
def test_covered_cells_of_a_program_are_dropped_on_request(options, kind, ranks, front, tmp_path):
    plain, kept, ours = (tmp_path / f"{name}.h5" for name in ("plain", "kept", "ours"))
    words = [program_of(front, "write_plotfile")]
    run([*words, plain, kind], ranks, False, front=front)
    run([*words, kept, kind], ranks, True, front=front, TAILRACE_OPTIONS=options)
    assert verified(plain, kept).returncode == 0
    said = run([*words, ours, kind], ranks, True, front=front,
               TAILRACE_OPTIONS=f"covered=drop; {options}")
    assert f"; 2 {REMARK}0/data:datatype=0, ..." in said

    def bounds(level, before):
        if "abs" in options:
            return np.full(len(before), 0.5)
        limit = np.zeros(len(before))
        # Components without chunks of their own are kept exactly.
        if "component" in options and (kind == "nested" or level > 0):
            with h5py.File(plain) as file:
                component = component_of(file, level, 4)
            for c in range(4):
                limit[component == c] = 1e-3 * np.ptp(before[component == c]) * (1 + 1e-12)
        return limit

    check_dropped(plain, ours, 4, 3, bounds, True)
    for level in range(3):
        # trz needs so few bytes for these fields that it may keep covered values.
        smaller = storage_of(ours, level) < storage_of(kept, level)
        assert smaller if level == 0 or (level == 1 and not options) else \
            storage_of(ours, level) <= storage_of(kept, level)
    check_verify(plain, ours, 4)


@FRONTS
@pytest.mark.parametrize("ranks", [1, 3])
def test_beside_the_program(ranks, front, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = [program_of(front, "write_plotfile")]
    run([*words, plain, "nested"], ranks, False, front=front)
    said = run([*words, ours, "nested"], ranks, True, front=front,
               TAILRACE_OPTIONS="mode=async; level_0/*: covered=drop,codec=trz,bound=abs=1")
    assert f"; 1 {REMARK}0/data:datatype=0" in said
    with h5py.File(plain) as before, h5py.File(by_deflate(ours)) as after:
        np.testing.assert_array_equal(data_of(after, 1)[()], data_of(before, 1)[()])
        covered = covered_of(before, 0, 4)
        error = np.abs(data_of(after, 0)[()] - data_of(before, 0)[()])
        assert error[~covered].max() <= 1 and error[covered].max() > 1
    assert verified(plain, ours).returncode == 0


@FRONTS
@pytest.mark.parametrize("kind, options, remark", [
    # Each level is closed before the next one exists.
    ("equal", "", "because the boxes of the next finer level are missing or duplicated"),
    # The coarsest level is written before the next one exists, because memory is short.
    ("nested", "memory=2MiB,codec=trz",
     "because the boxes of the next finer level are missing or duplicated"),
    ("unsaid", "", "because the boxes do not fit the data")])
def test_what_is_written_before_the_finer_boxes_are_known_is_kept(kind, options, remark, front,
                                                                  tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = [program_of(front, "write_plotfile")]
    run([*words, plain, kind], 1, False, front=front)
    said = run([*words, ours, kind], 1, True, front=front,
               TAILRACE_OPTIONS=f"covered=drop; {options}")
    assert f"with all covered cells kept{'' if kind == 'unsaid' else ' at a flush'}, {remark}: " \
           "/level_0/data:datatype=0" in said
    with h5py.File(plain) as before, h5py.File(by_deflate(ours)) as after:
        for level in range(3 if kind != "nested" else 1):
            np.testing.assert_array_equal(data_of(after, level)[()], data_of(before, level)[()])
    with h5py.File(ours) as after:
        for level in range(3):
            named = "tailrace_covered_cells" in data_of(after, level).attrs
            assert named == (kind == "nested" and level == 1)
    assert verified(plain, ours).returncode == 0


@FRONTS
def test_other_datasets_and_programs_without_the_option_keep_all(front, tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    words = [program_of(front, "write_plotfile")]
    run([*words, plain, "nested"], 2, False, front=front)
    run([*words, ours, "nested"], 2, True, front=front)
    same(ours, plain)
    run([*words, ours, "nested"], 2, True, front=front,
        TAILRACE_OPTIONS="covered=drop; *: covered=keep")
    same(ours, plain)


# --- repack


def write_plotfile(path, dtype="f8", flat=False, ghosts=0, ratio=2, say_levels=True):
    """Write three levels of boxes, 16^3 or 32^2, each over a quarter of the next coarser one."""
    n = 2 if flat else 3
    edge = 32 if flat else 16
    with h5py.File(path, "w") as file:
        file.attrs["num_components"] = np.int32(len(NAMES))
        if say_levels:
            file.attrs["num_levels"] = np.int32(3)
        for c, name in enumerate(NAMES):
            file.attrs[f"component_{c}"] = np.bytes_(name)
        for level in range(3):
            group = file.create_group(f"level_{level}")
            group.attrs["ref_ratio"] = np.asarray(ratio, "i4")
            scale = np.broadcast_to(ratio, n) ** level
            lows = [np.array([48 * b - 20] + [0] * (n - 1)) * scale for b in range(4)]
            boxes = [(*low, *(low + edge - 1)) for low in lows]
            names = ["lo_i", "lo_j", "lo_k"][:n] + ["hi_i", "hi_j", "hi_k"][:n]
            noise = np.random.default_rng(level)
            values = [np.concatenate([(smooth((edge,) * n, seed=10 * level + b).ravel()
                                       + 0.1 * noise.random(edge ** n)) * 1e3 ** c,
                                      np.zeros(ghosts)])
                      for b in range(4) for c in range(len(NAMES))]
            group["boxes"] = np.array(boxes, [(name, "i4") for name in names])
            group["data:offsets=0"] = len(NAMES) * (edge ** n + ghosts) * np.arange(5)
            group["data:datatype=0"] = np.concatenate(values).astype(dtype)


@pytest.mark.sample(6)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("shape", [{}, {"dtype": "f4", "ratio": 4}, {"flat": True, "dtype": "f4"},
                                   {"ratio": (2, 4, 1)}])
@pytest.mark.parametrize("words", [[], ["--codec", "trz"], ["--bound", "rel=1e-3"],
                                   ["--field", "component:energy:bound=rel=1e-4"]])
def test_repack_drops_covered_cells_on_request(words, shape, ranks, tmp_path):
    plain, kept, ours = (tmp_path / f"{name}.h5" for name in ("plain", "kept", "ours"))
    write_plotfile(plain, **shape)
    numbers("repack", plain, "-o", kept, *words)
    report = numbers("repack", plain, "-o", ours, *words, "--covered", "drop", ranks=ranks)
    fields = {field["path"]: field for field in report["files"][0]["fields"]}
    with h5py.File(plain) as file:
        covered = [covered_of(file, level, len(NAMES)) for level in range(3)]
    for level in range(2):
        assert fields[f"/level_{level}/data:datatype=0"]["n_covered"] == covered[level].sum()
        assert storage_of(ours, level) <= storage_of(kept, level)
    smaller = storage_of(ours, 0) < storage_of(kept, 0)
    assert smaller or shape.get("ratio") == 4  # 64 covered cells in 4,096 save little.
    assert storage_of(ours, 2) == storage_of(kept, 2)
    assert "n_covered" not in fields["/level_2/data:datatype=0"]

    def bounds(level, before):
        if not words or "trz" in words:
            return np.zeros(len(before))
        limit = np.full(len(before), 1e-3 * np.ptp(before) * (1 + 1e-6))
        if "--field" in words:
            edge = 32 ** 2 if shape.get("flat") else 16 ** 3
            component = np.tile(np.repeat(range(len(NAMES)), edge), 4)
            energies = before[component == 1]
            limit = np.where(component == 1, 1e-4 * np.ptp(energies) * (1 + 1e-6), 0)
        return limit

    check_dropped(plain, ours, len(NAMES), 3, bounds, smaller)
    # Relative bounds use the range of all values, including dropped ones.
    with h5py.File(ours) as one, h5py.File(kept) as other:
        for level in range(3):
            for name in ("tailrace_absolute_bound", "tailrace_component_bounds"):
                assert np.array_equal(data_of(one, level).attrs.get(name, 0),
                                      data_of(other, level).attrs.get(name, 0))
    check_verify(plain, ours, len(NAMES))


def test_any_ranks_drop_alike(tmp_path):
    plain = tmp_path / "plain.h5"
    write_plotfile(plain)
    values = []
    for ranks in (1, 2, 4):
        ours = tmp_path / f"{ranks}.h5"
        numbers("repack", plain, "-o", ours, "--bound", "rel=1e-3", "--covered", "drop",
                ranks=ranks)
        values.append(datasets(by_deflate(ours)))
    for others in values[1:]:
        for path, there in values[0].items():
            np.testing.assert_array_equal(others[path][()], there[()])


def test_repack_says_what_it_keeps(tmp_path):
    plain, ours = tmp_path / "plain.h5", tmp_path / "ours.h5"
    write_plotfile(plain, say_levels=False)
    done = tailrace("repack", plain, "-o", ours, "--covered", "drop")
    assert "covered cells keep their values: the file has no attribute num_levels" in \
        " ".join(done.stderr.split())
    tailrace("verify", plain, ours)
    write_plotfile(plain)
    with h5py.File(plain, "r+") as file:
        del file["level_1"]
    done = tailrace("repack", plain, "-o", ours, "--covered", "drop", "--force")
    assert "the boxes of the next finer level are missing" in " ".join(done.stderr.split())
    tailrace("verify", plain, ours)
    # Ghost cells: the boxes do not fit the data.
    write_plotfile(plain, ghosts=3)
    for words in (["--covered", "drop"], ["--field", "*:covered=drop"]):
        done = tailrace("repack", plain, "-o", ours, "--force", *words, code=2)
        assert "with a level whose boxes match its data" in " ".join(done.stderr.split())
    write_plotfile(plain)
    done = tailrace("repack", plain, "-o", ours, "--covered", "drop", "--bound", "rel=1e-3",
                    "--guard", "minmax", "--force", code=2)
    assert "minmax needs the values" in " ".join(done.stderr.split())
    done = tailrace("repack", plain, "-o", ours, "--covered", "drop", "--publish=as-stored",
                    "--force")
    assert "--publish as-stored keeps chunks" in " ".join(done.stderr.split())
    tailrace("verify", plain, ours)
    # A guard of signs applies to the uncovered cells.
    tailrace("repack", plain, "-o", ours, "--covered", "drop", "--bound", "rel=1e-3", "--guard",
             "sign", "--force")
    tailrace("verify", plain, ours)
    # Chunks are copied together with their attributes.
    again = tmp_path / "again.h5"
    tailrace("repack", ours, "-o", again, "--publish=as-stored")
    tailrace("verify", plain, again)

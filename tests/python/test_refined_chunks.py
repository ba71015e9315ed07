"""Fields written with codec trz,refine=K: values within a coarser bound need only the beginnings of
chunks, and never exceed the requested bound."""

import sys

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ROOT, smooth, tailrace

sys.path.insert(0, str(ROOT / "trz" / "tests" / "reference"))
import trz_reference  # noqa: E402

package = python_package.load()

BOUND = 1e-4


def rippled(shape, dtype="f4"):
    """Return values that need about twelve bits each within BOUND."""
    noise = np.random.default_rng(1).normal(0, 0.1, shape)
    return (smooth(shape) + noise).astype(dtype)


def write(path, values, chunk, refine, bound=f"abs={BOUND}"):
    source = path.with_suffix(".in.h5")
    with h5py.File(source, "w") as file:
        file["u"] = values
    tailrace("repack", source, "-o", path, "--codec", f"trz,refine={refine}", "--bound", bound,
             "--chunk", "x".join(map(str, chunk)))
    return path


def read_bytes():
    """Return the bytes that this process has read so far, by any call."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def fetched(file, action):
    """Return the action's result, and the bytes it fetched according to report and system."""
    reported, by_system = file.report["fetched_bytes"], read_bytes()
    values = action()
    by_system = read_bytes() - by_system
    return values, file.report["fetched_bytes"] - reported, by_system


def chunks_of(path, name="u"):
    """Yield the start and stored bytes of every chunk."""
    with h5py.File(path) as file:
        dataset = file[name]
        for i in range(dataset.id.get_num_chunks()):
            info = dataset.id.get_chunk_info(i)
            yield info.chunk_offset, dataset.id.read_direct_chunk(info.chunk_offset)[1]


@pytest.fixture(scope="module", name="cube")
def cube_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("refined") / "cube.h5"
    return write(path, rippled((96, 96, 96)), (48, 48, 48), 6), rippled((96, 96, 96))


def farthest(values, original):
    return np.abs(values.astype("f8") - original.astype("f8")).max()


def test_coarser_bounds_hold_and_take_fewer_bytes(cube):
    path, original = cube
    with h5py.File(path) as file:  # Through the filter in stock HDF5.
        whole = file["u"][...]
    assert farthest(whole, original) <= BOUND
    assert all(chunk[8] >> 4 == 10 for _, chunk in chunks_of(path))
    stored = sum(len(chunk) for _, chunk in chunks_of(path))
    plane = original.size // 8
    last = 2 * stored
    for level in range(8):
        bound = BOUND * 2**level
        with package.open(path) as file:
            values, taken, by_system = fetched(file, lambda: file["u"].within(bound))
        assert farthest(values, original) <= bound
        assert taken <= by_system < taken + 20000  # The rest is metadata.
        if level == 0:
            np.testing.assert_array_equal(values, whole)
            assert taken == stored
        elif level <= 6:
            # Each level needs one bit per value less.
            assert abs(last - taken - plane) < 8 * 20, level
        else:
            assert taken == last
        last = taken
    assert last < 0.55 * stored


@pytest.mark.full
def test_levels_are_those_of_the_format(cube):
    """Decode with the decoder that was written from the format's page."""
    path, _ = cube
    with package.open(path) as file:
        values = file["u"].within(4 * BOUND)
    for start, chunk in chunks_of(path):
        box = tuple(slice(at, at + 48) for at in start)
        assert package.decode(chunk).size == 48**3
        lengths = trz_reference.Reader(chunk)
        lengths.take(10 + chunk[9] + 1 + 2 * 4)
        sizes = [lengths.varint() for _ in range(8)]
        end = lengths.at + sizes[0] + sizes[1] + 4 + sum(size + 4 for size in sizes[2:6])
        found = trz_reference.prefix(chunk[:end], 4)
        np.testing.assert_array_equal(values[box], found.reshape(48, 48, 48))


def test_parts_and_whole_chunks_of_one_dataset(cube):
    """Slabs of any kind, before and after whole chunks are cached; cached ones are finer."""
    path, original = cube
    keys = [np.s_[10], np.s_[..., 95], np.s_[3:90:7, ::2, 40:60], np.s_[0, 0, 0], np.s_[:, 5:6, 7:]]
    with package.open(path) as file:
        variable = file["u"]
        for key in keys:
            values = variable.within(8 * BOUND, key)
            assert values.shape == original[key].shape
            assert farthest(values, original[key]) <= 8 * BOUND
        assert farthest(variable.within(8 * BOUND), original) > 4 * BOUND
        for key in keys:  # Coarser values are not reused as the field's own.
            assert farthest(variable[key], original[key]) <= BOUND
        _, taken, _ = fetched(file, lambda: variable.within(8 * BOUND, np.s_[3:5, 3, 3]))
        assert taken == 0
    with package.open(path, options=f"abs={8 * BOUND}") as file:  # the bound applies to all reads
        assert 4 * BOUND < farthest(file["u"][...], original) <= 8 * BOUND
        assert file["u"].within(BOUND).tolist() == file["u"][...].tolist()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_export_on_ranks_that_share_chunks(cube, tmp_path, ranks):
    path, original = cube
    tailrace("export", path, "-o", tmp_path / "u.npy", "--only", "/u", "--abs", 4 * BOUND,
             ranks=ranks)
    values = np.load(tmp_path / "u.npy")
    assert 2 * BOUND < farthest(values, original) <= 4 * BOUND
    tailrace("export", path, "-o", tmp_path / "part.nc", "--slab", "3:50,:,20:", "--abs", 4 * BOUND,
             ranks=ranks)
    with h5py.File(tmp_path / "part.nc") as file:
        np.testing.assert_array_equal(file["u"][...], values[3:50, :, 20:])
    done = tailrace("export", path, "-o", tmp_path / "all.h5", "--abs", 4 * BOUND, code=2)
    assert "--abs needs" in done.stderr
    tailrace("export", path, "-o", tmp_path / "all.h5", "--read-options", "abs=1", code=2)
    tailrace("export", path, "-o", tmp_path / "all.h5", "--read-options", "abs=0")
    tailrace("export", path, "-o", tmp_path / "no.npy", "--abs", "-1", code=2)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bound", ["rel=1e-5", "psnr=110", "abs=3e-5"])
def test_masks_odd_edges_and_other_bounds(tmp_path, dtype, bound):
    values = rippled((70, 50, 33), dtype)
    values[10:20, 4:40, ::3] = np.nan
    values[40:, :4] = -999
    values[5, 5, 5:9] = [np.inf, -np.inf, 1e30, -0.0]
    path = write(tmp_path / "out.h5", values, (32, 32, 32), 4, bound)
    with h5py.File(path) as file:
        whole = file["u"][...]
        asked = file["u"].attrs.get("tailrace_abs_bound")
    finite = np.isfinite(values)
    own = np.abs(whole[finite].astype("f8") - values[finite]).max() if asked is None else asked
    with package.open(path) as file:
        for factor in (1, 2, 5, 16, 1000):
            found = file["u"].within(factor * own)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(values))
            assert found[5, 5, 5] == np.inf and found[5, 5, 6] == -np.inf
            assert farthest(found[finite], values[finite]) <= max(factor, 1) * own


def test_a_fill_value_that_nobody_has_named_is_exact(tmp_path):
    values = rippled((48, 48, 48), "f8")
    values[:, 5:20, :30] = -999
    path = write(tmp_path / "out.h5", values, (48, 48, 48), 4)
    assert [chunk[8] >> 4 for _, chunk in chunks_of(path)] == [10]
    with package.open(path) as file:
        for factor in (1, 2, 4, 8, 16):
            found = file["u"].within(factor * BOUND)
            np.testing.assert_array_equal(found == -999, values == -999)
            assert farthest(found, values) <= factor * BOUND


def test_a_bound_that_no_prefix_gives_costs_no_request(cube):
    """Bounds below twice the field's need whole chunks, which are fetched together as usual."""
    path, original = cube
    counts = []
    for options in ("", f"abs={1.9 * BOUND}", f"abs={2 * BOUND}"):
        with package.open(path, options=options) as file:
            values = file["u"][...]
            counts.append(file.report["n_reads"])
        assert farthest(values, original) <= 2 * BOUND
    assert counts[1] == counts[0] < counts[2]


def test_chunks_without_planes_are_read_whole(tmp_path):
    """Smooth, constant, exact and pointwise chunks, and datasets without refine, have no planes."""
    values = rippled((40, 40, 40))
    values[:20] = 7
    values[20:, :20] = smooth((20, 20, 40)) * 1e-3
    for name, bound in (("abs", "abs=1e-4"), ("pointwise", "pw_rel=1e-3"), ("exact", "none")):
        path = write(tmp_path / f"{name}.h5", values, (20, 20, 20), 3, bound)
        n_planes = sum(chunk[8] >> 4 == 10 for _, chunk in chunks_of(path))
        assert n_planes == (2 if name == "abs" else 0)
        with h5py.File(path) as file:
            whole = file["u"][...]
        with package.open(path) as file:
            found = file["u"].within(1e-2)
            assert farthest(found, values) <= (1e-2 if name == "abs" else farthest(whole, values))
            np.testing.assert_array_equal(found[:20], whole[:20])
    with package.open(tmp_path / "pointwise.in.h5") as file:
        np.testing.assert_array_equal(file["u"].within(1e-2), values)


def test_damage_is_told_where_it_is_read(cube, tmp_path):
    path = tmp_path / "damaged.h5"
    path.write_bytes(cube[0].read_bytes())
    with h5py.File(path) as file:
        chunk = file["u"].id.get_chunk_info_by_coord((48, 0, 0))
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size - 10)  # Damages the last plane.
        file.write(b"damage")
    with package.open(path) as file:
        assert file["u"].within(2 * BOUND).shape == (96, 96, 96)
        for bound in (0, BOUND):
            with pytest.raises(package.TailraceError, match=r"chunk .*\[48:96, 0:48, 0:48\]"):
                file["u"].within(bound)
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + 9000)
        file.write(b"damage")
    with package.open(path) as file:
        assert file["u"].within(2 * BOUND, np.s_[:48]).shape == (48, 96, 96)
        with pytest.raises(package.TailraceError, match=r"chunk .*\[48:96, 0:48, 0:48\]"):
            file["u"].within(2 * BOUND)


def test_what_there_is_not(cube, tmp_path):
    path, _ = cube
    with package.open(path) as file:
        for wrong in (-1, float("nan"), "1", None):
            with pytest.raises(package.TailraceError, match="must be a number >= 0"):
                file["u"].within(wrong)
    with pytest.raises(package.TailraceError, match="abs"):
        package.open(path, options="abs=-1")
    for words, say in (("refine=9", "refine must be one of off, 1, 2, 3, 4, 5, 6, 7, 8"),
                       ("refine=2,coarse=1", "coarse and refine exclude each other")):
        done = tailrace("repack", path, "-o", tmp_path / "out.h5", "--codec", f"trz,{words}",
                        "--bound", "abs=1", "--again", code=2)
        assert say in done.stderr.replace("\n", " ")


def test_written_from_python_and_by_h5py(tmp_path):
    values = rippled((60, 70))
    with package.open(tmp_path / "out.nc", "w") as file:
        file.create_variable("u", ("y", "x"), data=values, codec="trz", abs=BOUND, refine=5)
        # A file that is being written does not support partial reads.
        assert farthest(file["u"].within(1), values) <= BOUND
    with h5py.File(tmp_path / "by_h5py.h5", "w") as file:
        file.create_dataset("u", data=values, chunks=(60, 70), **package.Trz(abs=BOUND, refine=5))
    chunks = [chunk for name in ("out.nc", "by_h5py.h5") for _, chunk in chunks_of(tmp_path / name)]
    assert chunks[0] == chunks[1] and chunks[0][8] >> 4 == 10
    for name in ("out.nc", "by_h5py.h5"):
        with package.open(tmp_path / name) as file:
            assert 8 * BOUND < farthest(file["u"].within(16 * BOUND), values) <= 16 * BOUND


def test_xarray_reads_within_a_coarser_bound(cube):
    xarray = pytest.importorskip("xarray")
    path, original = cube
    with xarray.open_dataset(path, engine="tailrace", options=f"abs={8 * BOUND}") as dataset:
        assert 4 * BOUND < farthest(dataset["u"].values, original) <= 8 * BOUND

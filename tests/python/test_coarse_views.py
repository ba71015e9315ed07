"""Fields written with codec trz,coarse=N: slabs with strides need only the beginnings of chunks.

They have exactly the values of the whole field."""

import itertools
import struct

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import smooth, tailrace

package = python_package.load()


def write(path, values, chunk, coarse, bound="rel=1e-3", more=""):
    source = path.with_suffix(".in.h5")
    with h5py.File(source, "w") as file:
        file["u"] = values
    tailrace("repack", source, "-o", path, "--codec", f"trz,coarse={coarse}{more}", "--bound",
             bound, "--chunk", "x".join(map(str, chunk)))
    return path


def read_bytes():
    """Return the bytes that this process has read so far, by any call."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def fetched(path, key):
    """Return the slab, and the number of bytes read for it."""
    with package.open(path) as file:
        variable = file["u"]
        before = read_bytes()
        return variable[key], read_bytes() - before


@pytest.fixture(scope="module", name="cube")
def cube_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "cube.h5"
    noise = np.random.default_rng(1).normal(0, 0.01, (96, 96, 96))
    return write(path, smooth((96, 96, 96)) + noise.astype("f4"), (48, 48, 48), 3)


def test_views_are_the_field_and_take_few_bytes(cube):
    with h5py.File(cube) as file:  # Through the filter in stock HDF5.
        whole = file["u"][...]
    size = cube.stat().st_size
    _, all_bytes = fetched(cube, ...)
    assert all_bytes > 0.9 * size
    taken = {1: all_bytes}
    for step in (2, 4, 8):
        values, taken[step] = fetched(cube, (slice(None, None, step),) * 3)
        np.testing.assert_array_equal(values, whole[::step, ::step, ::step])
        # At least one page of each of the eight chunks is read.
        assert taken[step] < max(0.5 * taken[step // 2], 8 * 4096 + 1000)
    assert taken[4] < 0.2 * all_bytes


@pytest.mark.parametrize("shape, chunk", [
    ((90, 80, 70), (32, 16, 24)), ((50, 60), (16, 60)), ((5, 40, 48), (1, 40, 48)),
    ((4, 20, 30, 40), (1, 10, 30, 20)), ((6, 20, 30, 40), (2, 10, 30, 20)),
    ((6, 21, 30, 40), (2, 21, 15, 20)), ((45, 33, 27), (45, 33, 27)), ((45, 33, 27), (15, 33, 9)),
    ((4000,), (512,)), ((2, 2, 3, 16, 16), (2, 1, 3, 16, 8))])
def test_slabs_of_all_kinds(tmp_path, shape, chunk):
    """Slabs with any strides and starts use views or whole chunks, also both in one dataset."""
    path = write(tmp_path / "out.h5", smooth(shape), chunk, 2)
    with h5py.File(path) as file:
        whole = file["u"][...]
    generator = np.random.default_rng(3)
    steps = list(itertools.product((1, 2, 3, 4, 8), repeat=len(shape)))
    with package.open(path) as file:
        variable = file["u"]
        for i in range(60):
            step = (2,) * len(shape) if i % 6 == 0 else steps[generator.integers(len(steps))]
            start = [int(generator.integers(0, 3)) * int(generator.integers(0, 3))
                     for _ in shape]
            key = tuple(slice(min(at, extent - 1), None, by)
                        for at, extent, by in zip(start, shape, step))
            np.testing.assert_array_equal(variable[key], whole[key], err_msg=str(key))
            if i % 10 == 5:
                variable[tuple(slice(0, 2) for _ in shape)]  # Caches whole chunks.


@pytest.mark.parametrize("shape, chunk", [
    ((64, 96), (64, 96)), ((3, 40, 40, 48), (1, 40, 40, 24)), ((4, 40, 40, 48), (4, 20, 40, 48))])
def test_views_of_fields_with_other_than_three_axes(tmp_path, shape, chunk):
    path = write(tmp_path / "out.h5", smooth(shape), chunk, 1, "rel=1e-5")
    with h5py.File(path) as file:
        whole = file["u"][...]
    key = (slice(None, None, 2),) * len(shape)
    values, taken = fetched(path, key)
    np.testing.assert_array_equal(values, whole[key])
    _, all_bytes = fetched(path, ...)
    assert taken < 0.6 * all_bytes


def test_single_planes_of_a_view_decode_it_once(cube):
    with h5py.File(cube) as file:
        whole = file["u"][...]
    _, once = fetched(cube, (slice(None, None, 2),) * 3)
    with package.open(cube) as file:
        variable, before = file["u"], read_bytes()
        planes = [variable[z, ::2, ::2] for z in range(0, 96, 2)]
        assert read_bytes() - before < 1.2 * once
    np.testing.assert_array_equal(planes, whole[::2, ::2, ::2])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_on_ranks_that_share_chunks(cube, tmp_path, ranks):
    with h5py.File(cube) as file:
        whole = file["u"][...]
    tailrace("export", cube, "-o", tmp_path / "half.npy", "--only", "/u", "--slab",
             "0:96:2,0:96:2,2:90:4", ranks=ranks)
    np.testing.assert_array_equal(np.load(tmp_path / "half.npy"), whole[::2, ::2, 2:90:4])


def test_masks_at_coarse_and_fine_places(tmp_path):
    values = smooth((64, 64, 64))
    values[10:20, 4:40, ::3] = np.nan
    values[40:, :20] = -999
    path = write(tmp_path / "out.h5", values, (32, 32, 32), 2, "abs=1e-3")
    with h5py.File(path) as file:
        whole = file["u"][...]
    np.testing.assert_array_equal(np.isnan(whole), np.isnan(values))
    with package.open(path) as file:
        for step in (2, 4):
            np.testing.assert_array_equal(file["u"][::step, ::step, ::step],
                                          whole[::step, ::step, ::step])


def test_chunks_without_a_view_are_read_whole(tmp_path):
    """Exact and pointwise chunks have no views, nor do chunks of noise and constants."""
    values = smooth((40, 40, 40))
    values[:20] = 7
    values[20:, :20] = np.random.default_rng(1).integers(0, 2, (20, 20, 40)) * 1e6
    for name, bound in (("abs", "abs=1e-3"), ("pointwise", "pw_rel=1e-3"), ("exact", "none")):
        path = write(tmp_path / f"{name}.h5", values, (20, 20, 20), 2, bound)
        with h5py.File(path) as file:
            whole = file["u"][...]
        values_there, _ = fetched(path, (slice(None, None, 2),) * 3)
        np.testing.assert_array_equal(values_there, whole[::2, ::2, ::2])


def test_a_damaged_view_is_named_and_the_rest_is_read(cube, tmp_path):
    path = tmp_path / "damaged.h5"
    path.write_bytes(cube.read_bytes())
    with h5py.File(path) as file:
        chunk = file["u"].id.get_chunk_info_by_coord((48, 0, 0))
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + 120)
        file.write(b"damage")
    with package.open(path) as file:
        assert file["u"][:48:2, ::2, ::2].shape == (24, 48, 48)
        for key in ((slice(None, None, 2),) * 3, (slice(48, None),)):
            with pytest.raises(package.TailraceError, match=r"chunk .*\[48:96, 0:48, 0:48\]"):
                file["u"][key]


@pytest.mark.parametrize("shape", [(8, 8), (2**32 - 1, 2**32 - 1), (2**20, 2**10), (64, 16)])
def test_a_header_that_says_other_chunks_than_there_are(tmp_path, shape):
    """Wrong client data are refused for views like for whole chunks, for slabs of any size."""
    path = tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=smooth((64, 64)), chunks=(32, 32),
                            **package.Trz(abs=1e-3, coarse=1))
    words = path.read_bytes()
    there = struct.pack("<3I", 2 << 8, 32, 32)
    assert words.count(there) == 1
    path.write_bytes(words.replace(there, struct.pack("<3I", 2 << 8, *shape)))
    with package.open(path) as file:
        if shape == (64, 16):  # The number and stored order of values is right.
            np.testing.assert_array_equal(file["u"][::2, ::2], file["u"][...][::2, ::2])
            return
        for step in (1, 2):
            with pytest.raises(package.TailraceError):
                file["u"][::step, ::step]


def test_settings_that_there_are_not(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"] = smooth((100, 100))
    done = tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--codec",
                    "trz,coarse=4", "--bound", "abs=1", code=2)
    assert 'coarse must be one of off, 1, 2, 3, got "4"' in done.stderr.replace("\n", " ")


def test_levels_by_name(cube, tmp_path):
    """coarse(), --level and xarray's level= return slabs with strides."""
    with h5py.File(cube) as file:
        whole = file["u"][...]
    with package.open(cube) as file:
        variable = file["u"]
        before = read_bytes()
        values, taken = variable.coarse(2), read_bytes() - before  # Loads no module in between.
        np.testing.assert_array_equal(values, whole[::4, ::4, ::4])
        assert taken < 0.3 * cube.stat().st_size
        np.testing.assert_array_equal(variable.coarse(), whole[::2, ::2, ::2])
        np.testing.assert_array_equal(variable.coarse(0), whole)
        for wrong in (-1, 17, 1.5, "2"):
            with pytest.raises(package.TailraceError, match="level is"):
                variable.coarse(wrong)
    tailrace("export", cube, "-o", tmp_path / "u.npy", "--level", "2", ranks=2)
    np.testing.assert_array_equal(np.load(tmp_path / "u.npy"), whole[::4, ::4, ::4])
    both = ["--level", "1", "--slab", ":,:,:"]
    for words, say in ((["--level", "17"], "0 to 16"), (both, "cannot be combined")):
        done = tailrace("export", cube, "-o", tmp_path / "no.npy", *words, code=2)
        assert say in done.stderr


def test_levels_of_a_dataset_with_coordinates(tmp_path):
    """Time, with a chunk per step, keeps its length; a map's axes and coordinates are halved."""
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "maps.nc"
    values = smooth((5, 40, 48))
    with package.open(path, "w") as file:
        for name, length in (("time", 5), ("lat", 40), ("lon", 48)):
            file.create_variable(name, (name,), data=np.arange(length, dtype="f8"),
                                 attrs={"bounds": f"{name}_bnds"})
            edges = np.arange(length)[:, None] + [-0.5, 0.5]
            file.create_variable(f"{name}_bnds", (name, "bnds"), data=edges)
        file.create_variable("u", ("time", "lat", "lon"), data=values, chunks=(1, 40, 48),
                             codec="trz", abs=1e-3, coarse=2)
        file.create_variable("series", ("time",), data=np.arange(5, dtype="f4"))
    with package.open(path) as file:
        whole = file["u"][...]
        np.testing.assert_array_equal(file["u"].coarse(2), whole[:, ::4, ::4])
    with xarray.open_dataset(path, engine="tailrace", level=2) as coarse:
        assert dict(coarse.sizes) == {"time": 5, "lat": 10, "lon": 12, "bnds": 2}
        np.testing.assert_array_equal(coarse["lat"], np.arange(0, 40, 4))
        np.testing.assert_array_equal(coarse["lat_bnds"][:, 1], np.arange(0.5, 40, 4))
        np.testing.assert_array_equal(coarse["u"], whole[:, ::4, ::4])
        np.testing.assert_array_equal(coarse["series"], np.arange(5))
    with xarray.open_dataset(path, engine="tailrace", level=1, chunks={}) as coarse:
        assert coarse["u"].chunks == ((1,) * 5, (20,), (24,))
        np.testing.assert_array_equal(coarse["u"].compute(), whole[:, ::2, ::2])
    tailrace("export", path, "-o", tmp_path / "overview.nc", "--level", "2", ranks=3)
    with xarray.open_dataset(tmp_path / "overview.nc", engine="tailrace") as coarse:
        assert dict(coarse.sizes) == {"time": 5, "lat": 10, "lon": 12, "bnds": 2}
        np.testing.assert_array_equal(coarse["u"], whole[:, ::4, ::4])
        np.testing.assert_array_equal(coarse["time_bnds"][:, 0], np.arange(-0.5, 4))
        np.testing.assert_array_equal(coarse["lon"], np.arange(0, 48, 4))

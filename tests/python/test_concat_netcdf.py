"""tailrace concat of netCDF-4 files: records are appended, all else must be equal and is kept once.

Random files are written and read by netCDF4-python; NumPy's own concatenation is the reference.
"""

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import let_clients_forget, numbers, own_lines, tailrace

DTYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2"]
SHAPES = [("time",), ("time", "y"), ("time", "y", "x"), ("y",), ("y", "x"), (), ("x",)]


def values(rng, dtype, shape):
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 30, shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def random_schema(rng):
    """Return variables of random dimensions, types and storage, which all inputs share."""
    lengths = {"y": int(rng.integers(1, 6)), "x": int(rng.integers(1, 9))}
    variables = {}
    for i in range(int(rng.integers(3, 9))):
        dimensions = SHAPES[rng.integers(len(SHAPES))]
        options = {}
        if dimensions and rng.integers(3):
            options["chunksizes"] = [int(rng.integers(1, lengths.get(name, 5) + 1))
                                     for name in dimensions]
            options["zlib"], options["shuffle"] = bool(rng.integers(2)), bool(rng.integers(2))
        if rng.integers(2):
            options["fill_value"] = int(rng.integers(1, 100))
        text = dimensions and not rng.integers(8)
        variables[f"v{i}"] = (str if text else DTYPES[rng.integers(len(DTYPES))], dimensions,
                              {} if text else options)
    variables["growing"] = ("f4", ("time", "x"), {"zlib": True})
    return lengths, variables


def write(path, rng, schema, static, n_records, first_time, group):
    lengths, variables = schema
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        for name, length in lengths.items():
            file.createDimension(name, length)
        file.title = "made at random"
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = first_time + np.arange(n_records)
        for name, (dtype, dimensions, options) in variables.items():
            home = file.createGroup("g") if group and name in ("v0", "v1") else file
            made = home.createVariable(name, dtype, dimensions, **options)
            made.long_name = name
            if "time" not in dimensions:
                made[...] = static[name]
                continue
            # Some variables are shorter than their dimension; netCDF returns fill values there.
            n = n_records if rng.integers(4) else int(rng.integers(0, n_records + 1))
            shape = (n, *(lengths[d] for d in dimensions[1:]))
            if n > 0:
                made[:n] = (np.array([f"text {k}" for k in range(np.prod(shape))],
                                     object).reshape(shape)
                            if dtype is str else values(rng, dtype, shape))


def random_inputs(folder, seed):
    rng = np.random.default_rng(seed)
    schema = random_schema(rng)
    lengths, variables = schema
    static = {}
    for name, (dtype, dimensions, _) in variables.items():
        shape = tuple(lengths[d] for d in dimensions if d != "time")
        static[name] = (np.array([f"s{k}" for k in range(np.prod(shape, dtype=int))],
                                 object).reshape(shape)
                        if dtype is str else values(rng, dtype, shape))
    paths, first, group = [], 0, bool(rng.integers(2))
    for i in range(int(rng.integers(1, 6))):
        paths.append(folder / f"in_{i}.nc")
        n = int(rng.integers(0, 8))
        write(paths[-1], rng, schema, static, n, first, group)
        first += n
    return paths


def variables_of(file, prefix=""):
    found = {prefix + name: variable for name, variable in file.variables.items()}
    for name, group in file.groups.items():
        found.update(variables_of(group, prefix + name + "/"))
    return found


def check(output, paths):
    """Check that variables over time are concatenated, and that all others are the first file's."""
    inputs = [netCDF4.Dataset(path) for path in paths]
    with netCDF4.Dataset(output) as got:
        files = [got, *inputs]
        for file in files:
            file.set_auto_mask(False)
            for group in file.groups.values():
                group.set_auto_mask(False)
        found = variables_of(got)
        expected = [variables_of(file) for file in inputs]
        assert list(found) == list(expected[0])
        for name, variable in found.items():
            first = expected[0][name]
            assert variable.dimensions == first.dimensions
            assert str(variable.__dict__) == str(first.__dict__)
            assert variable.dtype == first.dtype
            if "time" in first.dimensions:
                axis = first.dimensions.index("time")
                wanted = np.concatenate([each[name][...] for each in expected], axis)
            else:
                wanted = first[...]
                assert variable.filters() == first.filters()
                assert variable.chunking() == first.chunking()
            np.testing.assert_array_equal(np.asarray(variable[...]), np.asarray(wanted), name)
        assert {n: (d.isunlimited(), d.size) for n, d in got.dimensions.items()} == {
            n: (d.isunlimited(), sum(f.dimensions[n].size for f in inputs) if d.isunlimited()
                else d.size) for n, d in inputs[0].dimensions.items()}
        assert got.__dict__ == inputs[0].__dict__
    for file in inputs:
        file.close()


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(24))
def test_random_files(seed, tmp_path):
    ranks = 1 + seed % 3
    paths = random_inputs(tmp_path, seed)
    report = numbers("concat", "-o", tmp_path / "all.nc", *paths, ranks=ranks)
    assert report["remarks"] == []
    check(tmp_path / "all.nc", paths)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(100, 112))
def test_append(seed, tmp_path):
    ranks = 1 + seed % 3
    paths = random_inputs(tmp_path, seed)
    tailrace("concat", "-o", tmp_path / "all.nc", *paths[:1], ranks=ranks)
    for path in paths[1:]:
        report = numbers("concat", "-o", tmp_path / "all.nc", "-a", path, ranks=ranks)
        let_clients_forget()
        assert report["remarks"] == []
    check(tmp_path / "all.nc", paths)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks)


def simple(path, first=0, n=3, scale=1.0, lat=0.0, scalar=1, units="days since 2000-01-01",
           history="made", **attributes):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("lat", 4)
        file.history = history
        file.setncatts(attributes)
        time = file.createVariable("time", "f8", ("time",))
        time.units = units
        time[:] = first + scale * np.arange(n)
        file.createVariable("lat", "f4", ("lat",))[:] = lat + np.arange(4)
        file.createVariable("one", "i4", ())[...] = scalar
        field = file.createVariable("t2m", "f4", ("time", "lat"), zlib=True)
        field.valid_range = np.array([0, 400], "f4")
        field[:] = first + np.arange(4 * n).reshape(n, 4)
    return path


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_fixed_values_that_differ(ranks, tmp_path):
    paths = [simple(tmp_path / f"{i}.nc", 3 * i, lat=0.5 * (i == 2)) for i in range(4)]
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, ranks=ranks, code=2)
    assert 'dataset "/lat"' in done.stderr and "2.nc" in done.stderr
    assert "/t2m" not in done.stderr and not (tmp_path / "all.nc").exists()
    keep = ("--on-different", "keep-first")
    report = numbers("concat", "-o", tmp_path / "all.nc", *keep, *paths, ranks=ranks)
    assert len(report["remarks"]) == 1 and 'dataset "/lat"' in report["remarks"][0]
    assert "1 input (first: " in report["remarks"][0] and "2.nc" in report["remarks"][0]
    check(tmp_path / "all.nc", paths)
    done = tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks, code=1)
    assert "/lat" in done.stdout + done.stderr
    told = numbers("verify", "--concat", tmp_path / "all.nc", *keep, *paths, ranks=ranks)
    assert told["remarks"] == report["remarks"]
    report = numbers("concat", "-o", tmp_path / "most.nc", "--on-error", "skip", *paths,
                     ranks=ranks)
    assert len(report["skipped"]) == 1 and "/lat" in report["skipped"][0]
    check(tmp_path / "most.nc", paths[:2] + paths[3:])


@pytest.mark.parametrize("ranks", [1, 3])
def test_scalars_and_attributes_that_differ_are_named(ranks, tmp_path):
    paths = [simple(tmp_path / f"{i}.nc", 3 * i, scalar=1 + (i == 1), history=f"made {i}",
                    source="model" if i < 3 else "another", **({"extra": 1} if i == 2 else {}))
             for i in range(4)]
    report = numbers("concat", "-o", tmp_path / "all.nc", *paths, ranks=ranks)
    scalar, extra, source, history = report["remarks"]
    assert 'dataset "/one"' in scalar and "1 input (first: " in scalar and "1.nc" in scalar
    assert 'attribute "extra"' in extra and "2.nc" in extra and "not in the output" in extra
    assert 'attribute "source"' in source and "3.nc" in source
    assert "/@history in 3 inputs (first: " in history
    check(tmp_path / "all.nc", paths)
    told = numbers("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks)
    assert told["remarks"] == report["remarks"] and told["ok"]


def test_damaged_fixed_values(tmp_path):
    paths = [simple(tmp_path / f"{i}.nc", 3 * i) for i in range(2)]
    for path in paths:
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("mask", "f8", ("lat",), zlib=True)[:] = np.arange(4)
    with h5py.File(paths[1]) as file:
        chunk = file["mask"].id.get_chunk_info(0)
    with open(paths[1], "r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * chunk.size)
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, code=2)
    assert 'dataset "/mask" cannot be read' in done.stderr and "an array" not in done.stderr


def test_attributes_that_give_values_a_meaning(tmp_path):
    paths = [simple(tmp_path / "0.nc"), simple(tmp_path / "1.nc", units="days since 2001-01-01")]
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, code=2)
    assert '"/time"' in done.stderr and '"units"' in done.stderr


@pytest.mark.parametrize("starts,named", [((0, 3, 6), None), ((0, 0, 3), "1.nc"),
                                          ((0, 6, 3), "2.nc"), ((0, 2, 6), "1.nc")])
def test_time_that_goes_back(starts, named, tmp_path):
    paths = [simple(tmp_path / f"{i}.nc", start) for i, start in enumerate(starts)]
    remarks = numbers("concat", "-o", tmp_path / "all.nc", *paths, ranks=2)["remarks"]
    assert len(remarks) == (named is not None)
    if named:
        assert '"/time" is not monotonic' in remarks[0] and f"{named} begins at" in remarks[0]
    down = [simple(tmp_path / f"d{i}.nc", 9 - 3 * i, scale=-1) for i in range(3)]
    assert numbers("concat", "-o", tmp_path / "down.nc", *down, ranks=2)["remarks"] == []


def test_append_is_compared_with_the_output(tmp_path):
    tailrace("concat", "-o", tmp_path / "all.nc", simple(tmp_path / "0.nc"))
    before = (tmp_path / "all.nc").read_bytes()
    done = tailrace("concat", "-o", tmp_path / "all.nc", "-a", simple(tmp_path / "1.nc", lat=1),
                    code=2)
    assert "/lat" in done.stderr and (tmp_path / "all.nc").read_bytes() == before
    remarks = numbers("concat", "-o", tmp_path / "all.nc", "-a",
                      simple(tmp_path / "2.nc", history="other"))["remarks"]
    assert any("/@history" in line for line in remarks)
    assert any("2.nc begins at 0, after 2 in" in line for line in remarks)


def test_a_record_dimension_behind_another(tmp_path):
    for name in ("a", "b"):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as file:
            file.createDimension("x", 3)
            file.createDimension("time", None)
            file.createVariable("fine", "f4", ("time",))[:] = np.arange(2)
            file.createVariable("turned", "f4", ("x", "time"))[:] = np.ones((3, 2))
    done = tailrace("concat", "-o", tmp_path / "all.nc", tmp_path / "a.nc", tmp_path / "b.nc",
                    ranks=2, code=2)
    assert '"/turned"' in done.stderr and '"/time"' in done.stderr and "/fine" not in done.stderr


def test_a_second_unlimited_dimension_is_kept(tmp_path):
    paths = []
    for i in range(2):
        paths.append(tmp_path / f"{i}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("station", None)
            file.createVariable("station", "i4", ("station",))[:] = np.arange(5)
            file.createVariable("time", "f8", ("time",))[:] = i
            file.createVariable("t", "f4", ("time", "station"))[:] = np.full((1, 5), i)
    tailrace("concat", "-o", tmp_path / "all.nc", *paths, ranks=2)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths)
    with netCDF4.Dataset(tmp_path / "all.nc", "a") as file:
        assert file["station"][:].tolist() == list(range(5))
        assert file["t"][:].tolist() == [[0] * 5, [1] * 5]
        assert file.dimensions["station"].isunlimited()
        file["t"][2, 6] = 4  # Both dimensions can still grow.
    with netCDF4.Dataset(tmp_path / "all.nc") as file:
        assert file["t"].shape == (3, 7) and file["t"][2, 6] == 4 and file["t"][1, 4] == 1


def test_nothing_grows(tmp_path):
    for i in range(2):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as file:
            file.createDimension("time", 3)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(3) + 3 * i
    done = tailrace("concat", "-o", tmp_path / "all.nc", tmp_path / "0.nc", tmp_path / "1.nc",
                    code=2)
    assert "unlimited dimension" in own_lines(done.stderr)[0]


# --- Tiles of a domain


def cuts_of(rng, length, n):
    """Return the borders of up to n pieces of the range from 0 to `length`."""
    inner = rng.choice(np.arange(1, length), min(n, length) - 1, replace=False)
    return [0, *sorted(int(c) for c in inner), length]


def whole_domain(rng, n_time):
    """Return the names, dimensions and values of the domain's variables."""
    ny, nx = int(rng.integers(4, 14)), int(rng.integers(4, 17))
    lengths = {"time": n_time, "y": ny, "x": nx, "z": 3}
    data = {"time": (("time",), np.arange(n_time) * 1.5),
            "y": (("y",), np.linspace(-60, 60, ny)), "x": (("x",), np.arange(nx) * 2.0),
            "z": (("z",), np.array([5.0, 10, 20])), "one": ((), np.array(7))}
    shapes = [("time", "y", "x"), ("time", "z", "y", "x"), ("y", "x"), ("y",), ("x",),
              ("time", "y"), ("z",), ("x", "y"), ("time", "z")]
    for i, shape in enumerate(shapes):
        kind = ["f4", "f8", "i2"][rng.integers(3)]
        data[f"v{i}"] = (shape, values(rng, kind, tuple(lengths[d] for d in shape)))
    return lengths, data


def write_tile(path, rng, lengths, data, begin, end, *, attributes, unlimited=True, order=1):
    """Write a tile: [begin, end) along the dimensions in these mappings."""
    with netCDF4.Dataset(path, "w") as file:
        span = {d: slice(begin.get(d, 0), end.get(d, n)) for d, n in lengths.items()}
        for d, n in lengths.items():
            size = span[d].stop - span[d].start
            file.createDimension(d, None if d == "time" and unlimited else size)
        if attributes:
            file.NumFilesInSet = 4
        for name, (dimensions, whole) in data.items():
            part = whole[tuple(span[d] for d in dimensions)]
            options = {}
            if dimensions and rng.integers(3):
                options = {"zlib": bool(rng.integers(2)),
                           "chunksizes": [int(rng.integers(1, n + 1)) for n in part.shape]}
            made = file.createVariable(name, part.dtype, dimensions, **options,
                                       fill_value=np.array(-99).astype(part.dtype))
            made.long_name = name
            made[...] = part
            if attributes and name in begin:
                made.domain_decomposition = np.array(
                    [1, lengths[name], begin[name] + 1, end[name]], "i4")
    return path


def random_tiles(folder, rng, *, attributes, axes=("y", "x"), n_time=3):
    lengths, data = whole_domain(rng, n_time)
    borders = {axes[0]: []}
    while all(len(cuts) < 3 for cuts in borders.values()):  # A single file is not a tile.
        borders = {d: cuts_of(rng, lengths[d], int(rng.integers(1, 4))) for d in axes}
    paths = []
    for cell in np.ndindex(*(len(borders[d]) - 1 for d in axes)):
        begin = {d: borders[d][c] for d, c in zip(axes, cell)}
        end = {d: borders[d][c + 1] for d, c in zip(axes, cell)}
        paths.append(write_tile(folder / f"tile_{len(paths)}.nc", rng, lengths, data, begin, end,
                                attributes=attributes))
    rng.shuffle(paths)
    return paths, lengths, data


def check_domain(path, lengths, data, holes=None):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        assert {n: d.size for n, d in file.dimensions.items()} == lengths
        assert file.dimensions["time"].isunlimited()
        assert "NumFilesInSet" not in file.ncattrs()
        for name, (dimensions, whole) in data.items():
            variable = file[name]
            assert variable.dimensions == dimensions and variable.dtype == whole.dtype
            assert "domain_decomposition" not in variable.ncattrs()
            assert variable.long_name == name
            wanted = whole if holes is None else holes(dimensions, whole)
            np.testing.assert_array_equal(variable[...], wanted, name)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(16))
def test_random_tiles(seed, tmp_path):
    rng = np.random.default_rng(1000 + seed)
    ranks, attributes = 1 + seed % 3, bool(seed // 3 % 2)
    paths, lengths, data = random_tiles(tmp_path, rng, attributes=attributes)
    tile = [] if attributes else ["--tile", "y,x"]
    report = numbers("concat", "-o", tmp_path / "all.nc", *tile, *paths, ranks=ranks)
    assert len(report["remarks"]) == attributes
    check_domain(tmp_path / "all.nc", lengths, data)
    tailrace("verify", "--concat", tmp_path / "all.nc", *tile, *paths, ranks=ranks)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(6))
def test_tiles_in_time(seed, tmp_path):
    """Tiles in space and time may be in any order."""
    rng = np.random.default_rng(2000 + seed)
    paths, lengths, data = random_tiles(tmp_path, rng, attributes=False,
                                        axes=("time", "y", "x"), n_time=5)
    numbers("concat", "-o", tmp_path / "all.nc", "--tile", "time,y,x", *paths, ranks=1 + seed % 3)
    check_domain(tmp_path / "all.nc", lengths, data)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_tiles_that_fit_are_copied(ranks, tmp_path):
    """Chunks of tiles are copied if they fit the output's chunk grid."""
    whole = np.random.default_rng(1).normal(0, 1, (4, 256, 384)).astype("f4")
    paths = []
    for i, j in np.ndindex(2, 2):
        paths.append(tmp_path / f"{i}{j}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            for d, n, at in (("y", 128, i), ("x", 192, j)):
                file.createDimension(d, n)
                axis = file.createVariable(d, "f8", (d,))
                axis[:] = n * at + np.arange(n)
                axis.domain_decomposition = np.array([1, 2 * n, n * at + 1, n * (at + 1)], "i4")
            part = file.createVariable("t", "f4", ("time", "y", "x"), zlib=True,
                                       chunksizes=(1, 128, 192))
            part[:] = whole[:, 128 * i:128 * (i + 1), 192 * j:192 * (j + 1)]
    report = numbers("concat", "-o", tmp_path / "all.nc", *reversed(paths), ranks=ranks)
    assert report["n_copied"] >= 16
    with netCDF4.Dataset(tmp_path / "all.nc") as file:
        assert file["t"].chunking() == [1, 128, 192]
        np.testing.assert_array_equal(file["t"][:], whole)
        assert file["x"][:].tolist() == list(range(384))


@pytest.mark.parametrize("ranks", [1, 3])
def test_missing_tiles(ranks, tmp_path):
    rng = np.random.default_rng(5)
    lengths, data = whole_domain(rng, 2)
    paths = []
    for i, j in ((0, 0), (0, 1), (1, 0)):
        y, x = lengths["y"] // 2, lengths["x"] // 2
        begin, end = {"y": i * y, "x": j * x}, {"y": y if i == 0 else lengths["y"],
                                               "x": x if j == 0 else lengths["x"]}
        paths.append(write_tile(tmp_path / f"{i}{j}.nc", rng, lengths, data, begin, end,
                                attributes=True))
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, ranks=ranks, code=2)
    assert "tiles are missing: /y" in done.stderr and not (tmp_path / "all.nc").exists()
    report = numbers("concat", "-o", tmp_path / "all.nc", "--allow-missing-tiles", *paths,
                     ranks=ranks)
    assert any("tiles are missing" in line for line in report["remarks"])

    def holes(dimensions, whole):
        if not {"y", "x"} <= set(dimensions):
            return whole
        whole = whole.copy()
        whole[tuple(slice(lengths[d] // 2, None) if d in "yx" else slice(None)
                    for d in dimensions)] = -99
        return whole
    check_domain(tmp_path / "all.nc", lengths, data, holes)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks)


def test_tiles_that_do_not_fit_together(tmp_path):
    rng = np.random.default_rng(6)
    lengths, data = whole_domain(rng, 2)

    def tile(name, first, last, changed=None):
        return write_tile(tmp_path / name, rng, lengths, changed or data, {"x": first},
                          {"x": last}, attributes=True)

    n = lengths["x"]
    left, right = tile("left.nc", 0, 2), tile("right.nc", 2, n)
    for others, words in (((tile("wide.nc", 1, n),), ("overlap", "/x", "wide.nc")),
                          ((right, tile("again.nc", 2, n)), ("same tile", "again.nc"))):
        done = tailrace("concat", "-o", tmp_path / "all.nc", left, *others, code=2)
        assert all(word in done.stderr for word in words), done.stderr
    changed = data | {"v3": (("y",), data["v3"][1] + 1)}
    done = tailrace("concat", "-o", tmp_path / "all.nc", left,
                    tile("other.nc", 2, n, changed), code=2)
    assert '"/v3"' in done.stderr and "other.nc" in done.stderr
    done = tailrace("concat", "-o", tmp_path / "all.nc", "--tile", "nothing", left, right, code=2)
    assert "--tile nothing" in done.stderr


def test_coordinates_of_tiles_that_differ(tmp_path):
    """If x differs in one of two rows of tiles, an error names it, or the first one's is kept."""
    rng = np.random.default_rng(7)
    lengths, data = whole_domain(rng, 2)
    paths = []
    for i in (0, 1):
        for j in (0, 1):
            other = data | {"v4": (("x",), data["v4"][1] + (i == j == 1))}
            begin, end = {"y": 2 * i, "x": 2 * j}, {"y": 2 if i == 0 else lengths["y"],
                                                   "x": 2 if j == 0 else lengths["x"]}
            paths.append(write_tile(tmp_path / f"{i}{j}.nc", rng, lengths, other, begin, end,
                                    attributes=True))
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, code=2)
    assert '"/v4" differs between' in done.stderr and "11.nc" in done.stderr
    remarks = numbers("concat", "-o", tmp_path / "all.nc", "--on-different", "keep-first", *paths,
                      ranks=2)["remarks"]
    assert any('"/v4"' in line for line in remarks)
    check_domain(tmp_path / "all.nc", lengths, data)


def test_a_file_that_is_no_tile(tmp_path):
    rng = np.random.default_rng(8)
    lengths, data = whole_domain(rng, 2)
    paths = [write_tile(tmp_path / f"{i}.nc", rng, lengths, data, {"x": 2 * i},
                        {"x": (i + 1) * 2 if i == 0 else lengths["x"]}, attributes=i == 0)
             for i in range(2)]
    done = tailrace("concat", "-o", tmp_path / "all.nc", *paths, code=2)
    assert 'dataset "/x": the attribute domain_decomposition' in done.stderr
    done = tailrace("concat", "-o", tmp_path / "all.nc", "--append", paths[0], code=2)
    assert not (tmp_path / "all.nc").exists()


def test_a_tile_that_is_skipped(tmp_path):
    """A skipped tile leaves no empty place if other tiles cover it."""
    rng = np.random.default_rng(9)
    lengths, data = whole_domain(rng, 2)
    spans = [(0, 2), (2, lengths["x"]), (2, lengths["x"])]
    paths = [write_tile(tmp_path / f"{i}.nc", rng, lengths, data if i != 1 else data | {
        "more": (("x",), data["x"][1])}, {"x": first}, {"x": last}, attributes=True)
             for i, (first, last) in enumerate(spans)]
    report = numbers("concat", "-o", tmp_path / "all.nc", "--on-error", "skip", *paths, ranks=2)
    assert len(report["skipped"]) == 1 and "1.nc" in report["skipped"][0]
    check_domain(tmp_path / "all.nc", lengths, data)


def test_whole_domains_are_no_tiles(tmp_path):
    """A tool that joins tiles may keep their attribute; its files are appended like others."""
    paths = [simple(tmp_path / f"{i}.nc", 3 * i) for i in range(2)]
    for path in paths:
        with netCDF4.Dataset(path, "a") as file:
            file["lat"].domain_decomposition = np.array([1, 4, 1, 4], "i4")
    assert numbers("concat", "-o", tmp_path / "all.nc", *paths, ranks=2)["remarks"] == []
    check(tmp_path / "all.nc", paths)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths)

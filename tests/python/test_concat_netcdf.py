"""tailrace concat of netCDF-4 files: records are appended, all else is compared and kept once.

Random files are written and read by netCDF4-python; NumPy's own concatenation is the reference.
"""

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
    """Variables of random dimensions, types and storage: what all inputs have alike."""
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
            # Some variables are shorter than their dimension: netCDF reads fill values there.
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
    """The output is NumPy's concatenation of the inputs along time, and the first one's rest."""
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


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(24))
def test_random_files(seed, tmp_path):
    ranks = 1 + seed % 3
    paths = random_inputs(tmp_path, seed)
    report = numbers("concat", "-o", tmp_path / "all.nc", *paths, ranks=ranks)
    assert report["remarks"] == []
    check(tmp_path / "all.nc", paths)
    tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks)


@pytest.mark.sample(4)
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
    assert len(report["remarks"]) == 1 and "/lat (in " in report["remarks"][0]
    assert "2.nc" in report["remarks"][0]
    check(tmp_path / "all.nc", paths)
    done = tailrace("verify", "--concat", tmp_path / "all.nc", *paths, ranks=ranks, code=1)
    assert "/lat" in done.stdout + done.stderr
    tailrace("verify", "--concat", tmp_path / "all.nc", *keep, *paths, ranks=ranks)
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
    scalars, attributes, history = report["remarks"]
    assert "/one" in scalars and "1.nc" in scalars
    assert "/@source" in attributes and "/@extra" in attributes and "3.nc" in attributes
    assert "/@history" in history
    check(tmp_path / "all.nc", paths)


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

"""Datasets that are not arrays of numbers: repack compresses them losslessly if that saves space.

The inventory is h5py's, not Tailrace's.
"""

import json
import re

import h5py
import numpy as np
import pytest

from application_runs import opened
from cli_tools import tailrace

SHUFFLE, DEFLATE = h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE
#: Ways of repack under which these datasets are compressed.
WAYS = [[], ["--codec", "trz", "--bound", "rel=1e-3"],
        ["--codec", "portable", "--bound", "abs=1e-3", "--chunk", "128KiB"],
        ["--codec", "zstd"], ["--layout", "front"], ["--layout", "arena"],
        ["--lossless-codec", "deflate,level=9", "--bound", "abs=1", "--codec", "trz"]]
#: Ways under which their stored chunks are copied.
COPIES = [["--publish=as-stored"], ["--publish=cloud"], ["--publish=cmip7"], ["--codec", "none"],
          ["--codec", "none", "--layout", "contiguous"]]


def type_of(kind, rng):
    if kind == "compound":
        fields = [("a", ">i4"), ("b", "f8"), ("s", "S5"), ("v", "f4", (3,)), ("z", "c8")]
        return np.dtype([fields[i] for i in rng.permutation(5)[:int(rng.integers(1, 6))]],
                        align=bool(rng.integers(2)))
    if kind == "enum":
        return h5py.enum_dtype({"A": 1, "B": 7}, basetype=str(rng.choice(["i1", "<i2", ">u4"])))
    return np.dtype({"complex": rng.choice(["c8", "c16", ">c16"]), "half": "f2", "opaque": "V7",
                     "string": f"S{int(rng.choice([1, 3, 40, 700]))}", "bool": "?"}[kind])


def values_of(dtype, shape, rng, noise=False):
    """Return values of a few different elements, or random bytes."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    if noise:
        return np.frombuffer(rng.bytes(n_bytes), dtype).reshape(shape)
    if dtype.kind == "b":
        return rng.random(shape) > 0.9
    if h5py.check_enum_dtype(dtype):
        return rng.choice([1, 7], shape).astype(dtype)
    few = np.frombuffer(bytes(n % 60 + 60 for n in range(7 * dtype.itemsize)), dtype)
    return few[np.sort(rng.integers(0, 7, int(np.prod(shape)))).reshape(shape)]


def add(file, name, kind, rng, large, noise):
    dtype = type_of(kind, rng)
    shape = tuple(map(int, rng.integers(3, 9, rng.integers(1, 4))))
    wanted = int(rng.integers(70_000, 300_000)) if large else int(rng.integers(100, 60_000))
    rows = -(-wanted // (int(np.prod(shape[1:])) * dtype.itemsize))
    shape = (max(rows if large else wanted // (dtype.itemsize * int(np.prod(shape[1:]))), 1),
             *shape[1:])
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    limits, rows_there = shape, shape[0]
    if rng.integers(2):
        chunk = (max(shape[0] // int(rng.integers(1, 6)), 1), *shape[1:])
        create.set_chunk(chunk)
        if rng.integers(2):
            limits = (h5py.h5s.UNLIMITED, *shape[1:])
        rows_there = -(-shape[0] // 2) if rng.integers(2) and not noise else shape[0]
    fill = values_of(dtype, (1,), rng)[0] if rng.integers(2) and dtype.kind in "SV" else None
    if fill is not None:
        create.set_fill_value(np.array(fill, dtype))
    dataset = h5py.Dataset(h5py.h5d.create(
        file.id, name.encode(), h5py.h5t.py_create(dtype, logical=True),
        h5py.h5s.create_simple(shape, limits), create))
    dataset[:rows_there] = values_of(dtype, (rows_there, *shape[1:]), rng, noise)
    dataset.attrs["units"] = "1"


def pipeline(dataset):
    create = dataset.id.get_create_plist()
    return [create.get_filter(i)[0] for i in range(create.get_nfilters())]


def fill_of(dataset):
    """Return the bytes of the fill value that the dataset's creator has set, or nothing."""
    if dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return b""
    return dataset.fillvalue.tobytes()


def make(path, rng):
    """Write datasets, with the expected result in their names: `packed` or `stays`."""
    with h5py.File(path, "w", track_order=True) as file:
        for n, kind in enumerate(["complex", "half", "opaque", "string", "bool", "enum",
                                  "compound", "compound"]):
            add(file, f"packed {n} {kind}", kind, rng, True, False)
            add(file, f"stays {n} {kind}", kind, rng, False, False)
        add(file, "stays noise", "opaque", rng, True, True)
        file["number"] = np.cumsum(rng.normal(size=(60, 50)), 1)
        dtype = np.dtype([("x", "f4"), ("y", "i2")])
        file["named"] = dtype
        file.create_dataset("packed named", data=np.zeros(20000, dtype), dtype=file["named"])
        file.create_dataset("stays filtered", data=np.zeros(90000, "S3"), compression=1)
        file.create_dataset("stays words", data=["x" * (i % 9) for i in range(9000)],
                            dtype=h5py.string_dtype())
        references = np.array([file["number"].ref] * 9000, h5py.ref_dtype)
        file.create_dataset("stays references", data=references)
        file["packed 0 complex"].attrs["to"] = file["packed named"].ref
        file["packed named"].make_scale("rows")
        file["stays noise"].attrs["of"] = file["packed 3 string"].ref


def check(source, target, packs, way):
    with h5py.File(source) as before, opened(target) as after:
        assert list(after) == list(before), way
        for name, dataset in before.items():
            if not isinstance(dataset, h5py.Dataset) or name == "number":
                continue
            copy = after[name]
            assert (copy.shape, copy.maxshape, copy.dtype) == (
                dataset.shape, dataset.maxshape, dataset.dtype), (way, name)
            assert copy.id.get_type().equal(dataset.id.get_type()), (way, name)
            assert fill_of(copy) == fill_of(dataset), (way, name)
            kept = [each for each in copy.attrs if not each.startswith("tailrace_")]
            assert kept == list(dataset.attrs), (way, name)
            if name == "stays references":
                assert after[copy[8999]].name == "/number"
            elif name == "stays words":
                assert list(copy[...]) == list(dataset[...])
            else:
                assert copy[...].tobytes() == dataset[...].tobytes(), (way, name)
            if name.startswith("packed") and packs:
                shuffled = [SHUFFLE] if dataset.dtype.itemsize > 1 else []
                assert pipeline(copy) == [*shuffled, DEFLATE], (way, name)
                assert copy.id.get_storage_size() < dataset.id.get_storage_size(), (way, name)
                if dataset.chunks and "--chunk" not in way:
                    assert copy.chunks == dataset.chunks, (way, name)
                    assert copy.id.get_num_chunks() == dataset.id.get_num_chunks(), (way, name)
            else:
                assert pipeline(copy) == pipeline(dataset), (way, name)
                assert copy.chunks == dataset.chunks, (way, name)
        assert after["packed named"].id.get_type().committed()
        assert after[after["packed 0 complex"].attrs["to"]].name == "/packed named"


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(4))
def test_other_types_are_compressed_bit_for_bit(seed, tmp_path):
    rng = np.random.default_rng([seed, 502])
    source = tmp_path / "in.h5"
    make(source, rng)
    for n, way in enumerate(WAYS + COPIES):
        packs = n < len(WAYS)
        target = tmp_path / f"out{n}.h5"
        tailrace("repack", source, "-o", target, "--allow-wide-bound", *way, "--json",
                 tmp_path / "report.json", ranks=1 + n % 2 * 2)
        tailrace("verify", source, target)
        check(source, target, packs, way)
        report = json.loads((tmp_path / "report.json").read_text())["files"][0]
        fields = {field["path"][1:]: field for field in report["fields"]}
        others = {other["path"][1:] for other in report["others"]}
        with h5py.File(source) as file:
            datasets = {name for name in file if isinstance(file[name], h5py.Dataset)}
            assert fields.keys() | others == datasets and not fields.keys() & others, way
            for name in fields.keys() - {"number"}:
                assert packs and name.startswith("packed"), (way, name)
                assert fields[name]["codec"] == "deflate"
                assert tuple(fields[name]["shape"]) == file[name].shape
                assert fields[name]["raw_bytes"] == file[name].size * file[name].dtype.itemsize
                assert bool(fields[name]["kept_exact_because"]) == ("--bound" in way)
        assert not packs or {each for each in datasets if "packed" in each} <= fields.keys(), way


def test_what_is_said_of_them(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["u"] = np.linspace(0, 1, 20000).reshape(100, 200)
        file["z"] = np.zeros((100, 200), "c16")
        file["table"] = np.zeros(20000, [("x", "f4"), ("y", "i2")])
    done = tailrace("repack", source, "-o", target, "--bound", "rel=1e-3", "--codec", "portable")
    said = re.sub(r"\s+", " ", done.stdout)
    assert "bound not applied: complex (/z), compound (/table)" in said
    assert re.search(r"table +compound +20000 +deflate +exact", done.stdout)
    refused = tailrace("repack", source, "-o", target, "--force", "--bound", "rel=1e-3", "--field",
                       "z:bound=abs=1", code=2)
    assert "does not apply to dataset \"/z\"" in re.sub(r"\s+", " ", refused.stderr)
    tailrace("repack", source, "-o", target, "--force", "--only", "u")
    with h5py.File(target) as file:
        assert set(file) == {"u", "z", "table"} and file["table"].compression == "gzip"
    tailrace("repack", source, "-o", target, "--force", "--memory", "20MB", "--chunk", "64KiB")
    with h5py.File(target) as file:
        assert file["z"].chunks is not None and np.prod(file["z"].chunks) * 16 <= 128 << 10


@pytest.fixture
def tables(tmp_path):
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as file:
        file["u"] = np.linspace(0, 1, 20000).reshape(100, 200)
        file["z"] = np.zeros((100, 200), "c16")
        file["table"] = np.zeros(20000, [("x", "f4"), ("y", "i2")])
        file["small"] = np.zeros(20, [("x", "f4"), ("y", "i2")])
        file["noise"] = values_of(np.dtype("V7"), (20000,), np.random.default_rng(3), noise=True)
        file["words"] = ["a", "word"] * 20
        file.create_dataset("filtered", data=np.zeros(90000, "S3"), compression=1)
        file["u"].attrs["table"] = file["table"].ref
    return source, tmp_path / "out.h5"


def repacked(tables, *words, ranks=1):
    source, target = tables
    done = tailrace("repack", source, "-o", target, "--force", *words, ranks=ranks)
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


@pytest.mark.parametrize("ranks", [1, 3])
def test_field_entries_reach_them(ranks, tables):
    source, target = tables
    repacked(tables, "--field", "table:chunk=4096x,codec=deflate,level=9", "--field",
             "z:chunk=32KiB", "--field", "small:chunk=10x", "--field", "noise:codec=deflate",
             ranks=ranks)
    tailrace("verify", source, target, ranks=ranks)
    with h5py.File(target) as file:
        assert file["table"].chunks == (4096,) and file["table"].compression_opts == 9
        assert np.prod(file["z"].chunks) * 16 <= 64 << 10
        assert file["small"].chunks == (10,) and file["noise"].compression == "gzip"
        assert file["u"].attrs["table"] and file[file["u"].attrs["table"]].name == "/table"
    repacked(tables, "--field", "table:codec=none", "--field", "z:layout=contiguous", ranks=ranks)
    tailrace("verify", source, target, ranks=ranks)
    with h5py.File(target) as file:
        assert file["table"].chunks is None and file["z"].chunks is None
    for more in [("--codec", "none"), ("--codec", "none", "--layout", "contiguous")]:
        repacked(tables, *more, "--field", "table:codec=deflate", ranks=ranks)
        with h5py.File(target) as file:
            assert file["table"].compression == "gzip" and file["z"].chunks is None


@pytest.mark.parametrize("entry, more, words", [
    ("z:bound=abs=1", [], "stored exactly"),
    ("table:codec=zstd", [], "can only use deflate or none"),
    ("z:codec=trz,bound=none", [], "can only use deflate or none"),
    ("table:guard=minmax", [], "guard=minmax"),
    ("table:chunk=5x5", [], "does not fit the shape 20000"), ("words:codec=deflate", [], "copied"),
    ("words:chunk=4x", [], "copied"), ("filtered:codec=deflate,level=9", [], "copied"),
    ("z:codec=deflate", ["--publish=cloud"], "--publish cloud"),
    ("z:codec=deflate", ["--publish=as-stored"], "--publish as-stored"),
    ("t*e:codec=zstd", [], "can only use deflate or none")])
def test_field_entries_that_do_not_apply_are_refused_by_name(entry, more, words, tables):
    source, target = tables
    refused = tailrace("repack", source, "-o", target, "--field", entry, *more, code=2)
    said = re.sub(r"\s+", " ", refused.stderr)
    assert words in said and f"--field '{entry.partition(':')[0]}'" in said, said
    assert not target.exists()


def test_wildcards_apply_as_far_as_they_can(tables):
    said = repacked(tables, "--field", "*:codec=zstd")
    assert "codec=zstd of --field applies only to numbers" in said and "/table" in said
    said = repacked(tables, "--field", "*:bound=rel=1e-3", "--codec", "trz")
    assert "bound not applied" in said and "/z" in said
    with h5py.File(tables[1]) as file:
        assert file["table"].compression == "gzip"


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("command", ["repack", "export"])
def test_selections_reach_them(command, ranks, tables):
    source, target = tables
    left_out = ["table", "words", "filtered", "small"]
    tailrace(command, source, "-o", target, *[word for name in left_out
                                              for word in ("--exclude", name)], ranks=ranks)
    with h5py.File(target) as file:
        assert set(file) == {"u", "z", "noise"} and not file["u"].attrs["table"]
    assert "table" in tailrace("verify", source, target, code=1).stdout
    words = [word for name in left_out for word in ("--exclude", name)]
    tailrace("verify", source, target, *words, "--ignore-attribute", "table")
    tailrace(command, source, "-o", target, "--force", "--only", "table", ranks=ranks)
    with h5py.File(target) as file:
        assert "u" not in file and set(file) == {"z", "table", "small", "noise", "words",
                                                 "filtered"}
    refused = tailrace(command, source, "-o", target, "--force", "--exclude", "nothing", code=2)
    assert "matches no field" in refused.stderr


@pytest.mark.parametrize("way", ["--publish=cloud", "--publish=cmip7"])
def test_copies_under_front_are_named(way, tables, tmp_path):
    source, target = tables
    report = tmp_path / "report.json"
    done = tailrace("repack", source, "-o", target, way, "--json", report)
    remark = f"{way.replace('=', ' ')} copies datasets of types other than numbers as stored"
    said = re.sub(r"\s+", " ", done.stderr)
    assert remark in said and "/z" in said and "/table" in said and "/small" not in said
    assert remark in report.read_text()
    assert remark not in tailrace("repack", source, "-o", target, "--force").stderr


def test_texts_of_classic_files_can_be_left_out(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    with netCDF4.Dataset(source, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 6)
        file.createVariable("name", "S1", ("x",))[:] = np.array(list("abcdef"), "S1")
        file.createVariable("u", "f8", ("x",))[:] = np.arange(6)
        file.createVariable("v", "f4", ("x",))[:] = np.arange(6) * 2
    tailrace("repack", source, "-o", target, "--exclude", "name")
    with netCDF4.Dataset(target) as file:
        assert set(file.variables) == {"u", "v"}
        np.testing.assert_array_equal(file["v"][:], np.arange(6) * 2)

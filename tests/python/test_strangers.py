"""Random datasets of other writers, repacked in each way: properties stay, or remarks name them.

The inventory is h5py's and netCDF4's, not Tailrace's.
"""

import json
import re
import struct

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from application_runs import opened
from cli_tools import tailrace

package = python_package.load()

DTYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
WAYS = [[], ["--codec", "trz", "--bound", "abs=1e-3"],
        ["--codec", "portable", "--bound", "rel=1e-3"], ["--codec", "sz3", "--bound", "abs=1e-3"],
        ["--publish=as-stored"], ["--publish=cloud"], ["--layout", "front"]]


def random_limits(shape, rng):
    """Return a random limit of each dimension: its extent, a larger number, or unlimited."""
    return tuple([n, h5py.h5s.UNLIMITED, n + int(rng.integers(1, 5))][rng.choice(3, p=[.5, .3, .2])]
                 for n in shape)


def random_creation(shape, limits, rng):
    """Return a creation list with a random layout, filters, and times of allocation and filling."""
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    times = [h5py.h5d.ALLOC_TIME_LATE, h5py.h5d.ALLOC_TIME_EARLY]
    if limits != shape or rng.integers(2):
        create.set_chunk(tuple(
            int(rng.integers(1, 1 + (n + 3 if limit == h5py.h5s.UNLIMITED else limit)))
            for n, limit in zip(shape, limits)))
        if rng.integers(2):
            create.set_fletcher32()
        if rng.integers(2):
            create.set_deflate(1)
        times += 4 * [h5py.h5d.ALLOC_TIME_INCR]
    elif rng.integers(2):
        create.set_layout(h5py.h5d.COMPACT)
        times = [h5py.h5d.ALLOC_TIME_EARLY]
    create.set_alloc_time(int(rng.choice(times)))
    create.set_fill_time(int(rng.choice([
        h5py.h5d.FILL_TIME_IFSET, h5py.h5d.FILL_TIME_ALLOC, h5py.h5d.FILL_TIME_NEVER])))
    return create


def random_dataset(file, name, rng):
    """Create a dataset of random type, byte order, layout and fill value, with any _FillValue."""
    dtype = np.dtype(rng.choice(DTYPES)).newbyteorder(rng.choice(["<", ">"]))
    shape = tuple(map(int, rng.integers(1, 12, rng.integers(1, 4))))
    limits = random_limits(shape, rng)
    if limits[0] != shape[0] and not rng.integers(6):
        shape = (0, *shape[1:])
    create = random_creation(shape, limits, rng)
    values = rng.normal(0, 40, shape).astype(dtype) if dtype.kind == "f" else rng.integers(
        0, 100, shape).astype(dtype)
    some = np.frombuffer(rng.bytes(dtype.itemsize), dtype)[0]
    fill = [None, dtype.type(0), some, dtype.type(7)][rng.integers(4)]
    if fill is not None:
        create.set_fill_value(np.array(fill, dtype))
    space = h5py.h5s.create_simple(shape, limits)
    stored_type = h5py.h5t.py_create(dtype)
    if not rng.integers(5):
        stored_type.commit(file.id, f"type_of_{name}".encode())
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), stored_type, space, create))
    if rng.integers(4):
        missing = dtype.type([99, 7, 0][rng.integers(3)])
        values[rng.random(shape) < 0.2] = missing
        dataset.attrs["_FillValue"] = missing
    # HDF5 does not define elements that are neither written nor filled.
    some_rows = create.get_fill_time() != h5py.h5d.FILL_TIME_NEVER
    written = tuple(slice(int(rng.integers(n + 1))) if some_rows and rng.integers(3) == 0
                    else slice(None) for n in shape)
    dataset[written] = values[written]


def chunks_of(dataset):
    """Return the chunk shape and the number of stored chunks, or None for other layouts.

    Addresses of chunks are omitted, because HDF5 misreports them for some newer indexes."""
    return None if dataset.chunks is None else (dataset.chunks, dataset.id.get_num_chunks())


def fill_of(dataset):
    """Return the fill value's status, and its bytes in this machine's order."""
    create = dataset.id.get_create_plist()
    value = np.zeros((), dataset.dtype.newbyteorder("="))
    create.get_fill_value(value)
    return create.fill_value_defined(), value.tobytes()


def has_checksum(dataset):
    create = dataset.id.get_create_plist()
    return any(create.get_filter(i)[0] == h5py.h5z.FILTER_FLETCHER32
               for i in range(create.get_nfilters()))


def layout_of(dataset):
    return dataset.id.get_create_plist().get_layout()


def filters_of(dataset):
    create = dataset.id.get_create_plist()
    return {create.get_filter(i)[0] for i in range(create.get_nfilters())}


def named_type_of(dataset):
    """Return the path of the committed type, or None if the type is the dataset's own."""
    stored_type = dataset.id.get_type()
    return h5py.h5i.get_name(stored_type) if stored_type.committed() else None


def allocated_of(dataset):
    """Return the allocation time of chunks, or None without chunks."""
    return dataset.chunks and dataset.id.get_create_plist().get_alloc_time()


# Remark of repack for each property, and a function that returns the dataset's property. A false
# value means that the dataset has nothing to lose.
KINDS = {
    "Fletcher32 checksums are not kept": has_checksum,
    "numbers are stored in this machine's byte order": lambda dataset: dataset.dtype.str[0] == ">",
    "named types become plain types": named_type_of,
    "compact datasets (values in the object header)":
        lambda dataset: layout_of(dataset) == h5py.h5d.COMPACT,
    "chunks are not allocated before":
        lambda dataset: allocated_of(dataset) in (h5py.h5d.ALLOC_TIME_EARLY,
                                                  h5py.h5d.ALLOC_TIME_LATE),
}
# Filters that decode to numbers in this machine's byte order: trz and SZ3.
NATIVE_FILTERS = {481, 32024}


def check_promises(way, before, after):
    """Check the properties that each way of repack keeps without a remark."""
    assert after.maxshape == before.maxshape, (way, before.name)
    lists = [dataset.id.get_create_plist() for dataset in (before, after)]
    assert lists[1].get_fill_time() == lists[0].get_fill_time(), (way, before.name)
    lossy = "--bound" in way and before.dtype.kind == "f" and before.nbytes >= 4096
    if before.chunks and way != ["--publish=cloud"] and not (
            lossy and np.prod(before.chunks) * before.dtype.itemsize < 4096):
        assert after.chunks == before.chunks, (way, before.name)
    if not filters_of(after) & NATIVE_FILTERS:
        assert after.dtype == before.dtype, (way, before.name)
        assert named_type_of(after) == named_type_of(before), (way, before.name)
    if layout_of(before) == h5py.h5d.COMPACT and not lossy:
        assert layout_of(after) == h5py.h5d.COMPACT, (way, before.name)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(8))
def test_repack_keeps_what_datasets_have(seed, tmp_path):
    rng = np.random.default_rng([seed, 50])
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as file:
        for i in range(25):
            random_dataset(file, f"d{i}", rng)
    for n, way in enumerate(WAYS):
        target = tmp_path / f"out{n}.h5"
        done = tailrace("repack", source, "-o", target, "--allow-wide-bound", *way,
                        ranks=1 + n % 2 * 2)
        said = re.sub(r"\s+", " ", done.stderr)
        tailrace("verify", source, target)
        with h5py.File(source) as before, opened(target) as after:
            datasets = {name: each for name, each in before.items()
                        if isinstance(each, h5py.Dataset)}
            for name, dataset in datasets.items():
                check_promises(way, dataset, after[name])
                assert fill_of(after[name]) == fill_of(dataset), (way, name)
                stored, copied = chunks_of(dataset), chunks_of(after[name])
                if stored and copied and stored[0] == copied[0]:
                    assert stored == copied, (way, name)
                elif stored and copied:
                    assert bool(stored[1]) == bool(copied[1]), (way, name)
                values, found = dataset[...], after[name][...]
                missing = values == dataset.attrs.get("_FillValue", np.nan)
                np.testing.assert_array_equal(found[missing], values[missing], str((way, name)))
                if "--bound" not in way or values.dtype.kind != "f":
                    np.testing.assert_array_equal(found, values, str((way, name)))
            if way != ["--publish=cloud"]:
                changed = [name for name, each in datasets.items()
                           if each.chunks and each.chunks != after[name].chunks]
                assert ("chunks are larger than the input's" in said) == bool(changed), changed
            for words, has in KINDS.items():
                lost = [name for name, each in datasets.items()
                        if has(each) and has(after[name]) != has(each)]
                assert (words in said) == bool(lost), (way, words, lost, said)


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_records_that_a_later_append_skips_are_missing(form, tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    wide = ["i8", "u8"] if form != "NETCDF3_CLASSIC" else []
    with netCDF4.Dataset(source, "w", format=form) as file:
        file.createDimension("t")
        file.createDimension("x", 3)
        for dtype in ["f4", "f8", "i2", "i4", *wide]:
            file.createVariable(f"{dtype}_default", dtype, ("t", "x"))[:2] = 1
            file.createVariable(f"{dtype}_own", dtype, ("t", "x"), fill_value=9)[:2] = 1
    tailrace("repack", source, "-o", target)
    with netCDF4.Dataset(target, "a") as file:
        file["f4_own"][5] = 2
    with netCDF4.Dataset(target) as file:
        for name, variable in file.variables.items():
            values = variable[:]
            assert values.shape == (6, 3) and np.ma.getmaskarray(values)[2:5].all(), name
            assert not np.ma.getmaskarray(values)[:2].any(), name


@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize("seed", range(2))
def test_repack_keeps_a_user_block(libver, seed, tmp_path):
    rng = np.random.default_rng([seed, 51])
    for n, way in enumerate(WAYS):
        source, target = tmp_path / f"in{n}.mat", tmp_path / f"out{n}.h5"
        n_bytes = 512 << int(rng.integers(0, 5))
        with h5py.File(source, "w", userblock_size=n_bytes, libver=libver) as file:
            file["u"] = np.arange(2000.0) + rng.random(2000)
            file.create_dataset("v", data=rng.random((40, 30)), chunks=(7, 30), compression=1)
            file["of u"] = file["u"].ref
        block = rng.bytes(n_bytes)
        with open(source, "r+b") as file:
            file.write(block)
        tailrace("repack", source, "-o", target, *way, ranks=1 + n % 3)
        tailrace("verify", source, target)
        tailrace("recover", target)
        stored = target.read_bytes()
        assert stored[:n_bytes] == block, way
        # The superblock has its own address and the file's end.
        version = stored[n_bytes + 8]
        base, _, end = struct.unpack_from("<QQQ", stored, n_bytes + (12 if version > 1 else 24))
        assert (base, end) == (n_bytes, len(stored)), way
        with opened(target, "r+") as file, h5py.File(source) as before:
            assert file.userblock_size == n_bytes
            assert file[file["of u"][()]].name == "/u"
            for name in ["u", "v"]:
                np.testing.assert_allclose(file[name], before[name], rtol=0, atol=2)
            file["more"] = np.arange(5)
        with package.open(target) as file:
            np.testing.assert_array_equal(file["more"][:], np.arange(5))
            assert file["v"][:].shape == (40, 30)


def give_later_layout(path, name):
    """Change a dataset's layout message to a version that only HDF5 2.0 and later know."""
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file[name].id).addr
    stored = bytearray(path.read_bytes())
    at = address + 16  # Messages of version 1 follow the header's prefix.
    while struct.unpack_from("<H", stored, at)[0] != 8:
        at += 8 + struct.unpack_from("<H", stored, at + 2)[0]
    assert stored[at + 8] == 3
    stored[at + 8] = 5
    path.write_bytes(stored)


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_a_later_hdf5_made_is_named_and_can_be_left_out(ranks, tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver="earliest") as file:
        file["a/u"] = np.arange(3000.0)
        file["a/later"] = np.arange(10)
        file["z"] = np.arange(7)
        file["z"].attrs["to"] = file["a/later"].ref
    give_later_layout(source, "a/later")
    refused = tailrace("repack", source, "-o", target, ranks=ranks, code=2)
    said = re.sub(r"\s+", " ", refused.stderr)
    assert "a/later" in said and "needs HDF5 2.0 or newer" in said and not target.exists()
    done = tailrace("repack", source, "-o", target, "--skip-unreadable", "--json",
                    tmp_path / "report.json", ranks=ranks, code=3)
    assert '/a/later" ' in re.sub(r"\s+", " ", done.stderr).replace(":", " ")
    report = json.loads((tmp_path / "report.json").read_text())["files"][0]
    assert len(report["unreadable"]) == 1 and "/a/later" in report["unreadable"][0]
    with h5py.File(target) as file:
        assert set(file) == {"a", "z"} and set(file["a"]) == {"u"}
        np.testing.assert_array_equal(file["a/u"], np.arange(3000.0))
        assert not file["z"].attrs["to"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_an_attribute_of_a_later_hdf5_takes_none_with_it_unsaid(ranks, tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver="earliest") as file:
        file["u"] = np.arange(3000.0)
        file["u"].attrs["units"] = "K"
        file["u"].attrs["later"] = np.float64(1)
        file["v"] = np.arange(10)
        file["v"].attrs["units"] = "m"
        address = h5py.h5o.get_info(file["u"].id).addr
    stored = bytearray(source.read_bytes())
    at = stored.index(b"later\0", address)
    assert stored[at + 8] == 0x11  # Class and version of the type.
    stored[at + 8] = 0x51
    source.write_bytes(stored)
    for command in [("repack", source, "-o", target, "--bound", "abs=0.1"),
                    ("repack", source, "-o", target, "--publish=as-stored"),
                    ("export", source, "-o", target), ("concat", "-o", target, source)]:
        refused = tailrace(*command, ranks=ranks, code=2)
        said = re.sub(r"\s+", " ", refused.stderr)
        assert '"/u"' in said and "needs HDF5" in said and not target.exists(), command
    done = tailrace("repack", source, "-o", target, "--skip-unreadable", "--bound", "abs=0.1",
                    ranks=ranks, code=3)
    assert 'attributes of "/u"' in re.sub(r"\s+", " ", done.stderr)
    with opened(target) as file:
        np.testing.assert_allclose(file["u"], np.arange(3000.0), rtol=0, atol=0.1)
        assert "units" not in file["u"].attrs and file["v"].attrs["units"] == "m"
    listed = tailrace("info", source, code=3)
    assert 'attributes of "/u"' in re.sub(r"\s+", " ", listed.stderr)
    assert re.search(r"^u .*\n(.*\n)*v ", listed.stdout, re.M)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(6))
def test_types_of_all_kinds_with_holes_along_any_dimension(seed, tmp_path):
    """HDF5 1.10 returns wrong coordinates of chunks if a later dimension is unlimited."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(3, 40)), int(rng.integers(20, 120))
    record = np.dtype([("a", "i4"), ("b", "f8")])
    kinds = {"texts": h5py.string_dtype(), "lists": h5py.vlen_dtype("i4"), "records": record,
             "half": "f2", "fixed texts": "S9", "references": h5py.ref_dtype, "numbers": "f4"}
    with h5py.File(source, "w", libver="v110" if seed % 3 else "v108") as file:
        for name, dtype in kinds.items():
            file.create_dataset(name, (rows, columns), dtype,
                                maxshape=(rows if seed % 2 else None, None),
                                chunks=(int(rng.integers(1, 4)), int(rng.integers(5, 30))),
                                compression="gzip" if rng.random() < 0.4 else None)
        for row in rng.integers(0, rows, 3):
            file["texts"][row] = np.array([f"x{k}" for k in range(columns)], object)
            file["lists"][row, 3] = np.arange(3)
            file["records"][row, columns // 2:] = np.array((row, 0.5), record)
            file["half"][row, :5] = np.arange(5)
            file["fixed texts"][row, ::7] = b"abc"
            file["references"][row, columns // 3] = file["half"].ref
            file["numbers"][row, columns // 4:] = row
    for way in [(), ("--publish=as-stored",), ("--bound", "abs=1e-3"), ("--publish=cloud",)]:
        tailrace("repack", source, "-o", target, "--force", *way, ranks=1 + seed % 3)
        tailrace("verify", source, target)
        with opened(target) as file, h5py.File(source) as before:
            for name in kinds:
                ours, theirs = file[name][()].ravel(), before[name][()].ravel()
                if name == "references":
                    ours, theirs = [[bool(one) and f[one].name for one in values]
                                    for f, values in ((file, ours), (before, theirs))]
                assert len(ours) == len(theirs)
                if name == "numbers":
                    assert np.abs(ours - theirs).max() <= (1e-3 if "--bound" in way else 0), way
                    continue
                assert all(np.array_equal(a, b) for a, b in zip(ours, theirs)), (way, name)


def test_arrays_of_texts_and_lists(tmp_path):
    """HDF5 1.10 converts only the first of several such elements correctly."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    text = h5py.string_dtype()
    inner = np.dtype([("number", "f8"), ("text", text)])
    shape = (7, 5, 3)
    values = np.zeros(shape, inner)
    values["number"] = np.arange(105).reshape(shape)
    values["text"] = np.array([f"text {k}" for k in range(105)], object).reshape(shape)
    outer = np.dtype([("id", "i4"), ("texts", text, (3,))])
    members = np.zeros((7, 5), outer)
    members["texts"] = values["text"]
    for chunks in [None, (4, 1), (7, 5)]:
        with h5py.File(source, "w") as file:
            file.create_dataset("arrays", (7, 5), np.dtype((inner, (3,))), chunks=chunks)
            file["arrays"][...] = values
            file.create_dataset("members", data=members, chunks=chunks)
            file["members"].attrs["one"] = members[0, 1]
            file["members"].attrs["several"] = members[0]
        for command in [("repack", source), ("repack", source, "--publish=cloud"),
                        ("concat", source)]:
            done = tailrace(*command, "-o", target, "--force")
            assert 'attribute "several" of "/members"' in done.stderr
            with h5py.File(target) as file, h5py.File(source) as before:
                for name in ["arrays", "members"]:
                    assert (file[name][...] == before[name][...]).all(), (name, command, chunks)
                assert file["arrays"][6, 4][2]["text"] == b"text 104"
                assert list(file["members"].attrs["one"]["texts"]) == [
                    f"text {k}".encode() for k in (3, 4, 5)]


@pytest.mark.parametrize("folder", [".", "beside", "below/deeper"])
def test_views_keep_their_mappings_and_links_that_lead_nowhere_are_named(folder, tmp_path):
    source, target = tmp_path / "from" / "in.h5", tmp_path / "from" / folder / "out.h5"
    target.parent.mkdir(parents=True)
    values = np.random.default_rng(7).random((4, 30))
    for i, row in enumerate(values):
        with h5py.File(source.parent / f"part{i}.h5", "w") as file:
            file["y"] = row
    with h5py.File(source, "w") as file:
        file["of this file"] = values
        for name, files in {"view": [f"part{i}.h5" for i in range(4)],
                            "absolute": [str(source.parent / "part1.h5")] * 4}.items():
            layout = h5py.VirtualLayout((5, 30), "f8", maxshape=(None, 30))
            for i, part in enumerate(files):
                layout[i] = h5py.VirtualSource(part, "y", shape=(30,))
            file.create_virtual_dataset(name, layout, fillvalue=-3)
            file[name].attrs["units"] = "K"
        layout = h5py.VirtualLayout((30, 4), "f8")
        for i in range(4):
            layout[:, i] = h5py.VirtualSource(file["of this file"])[i]
        file.create_virtual_dataset("turned", layout)
        file["link"] = h5py.ExternalLink("part2.h5", "y")
    done = tailrace("repack", source, "-o", target, ranks=2)
    said = re.sub(r"\s+", " ", done.stderr)
    assert said.count("only its mappings are copied") == 3
    assert ("not next to the output" in said) == (folder != ".")
    tailrace("verify", source, target)
    with opened(target) as file, h5py.File(source) as before:
        for name in ["view", "absolute", "turned"]:
            assert file[name].is_virtual and file[name].maxshape == before[name].maxshape
            np.testing.assert_array_equal(file[name], before[name], name)
        np.testing.assert_array_equal(file["view"][:4], values)
        assert file["view"].fillvalue == -3 and file["view"].attrs["units"] == "K"


def test_what_is_no_field_is_listed_and_names_can_be_escaped(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.random.default_rng(3).random(4000)
    with h5py.File(source, "w") as file:
        for name in ["a:b*", "a:bc", "u[0]"]:
            file[name] = values
        file["z"] = values + 1j * values
        file["half"] = values.astype("f2")
        file["pair"] = np.zeros(5, [("i", "i4"), ("x", "f4")])
        file["flag"] = np.array([True, False])
        file["words"] = "of any length"
    types = {"/z": "complex of f64", "/half": "f16",
             "/pair": "compound of 2 members (i i32, x f32)",
             "/flag": "enum of 2 names over i8", "/words": "string of variable length"}
    done = tailrace("repack", source, "-o", target, "--bound", "abs=1e-3", "--codec", "trz",
                    "--field", r"a\:b\*:bound=none", "--field", "u[[]1]:bound=none", code=2)
    assert "matches no field" in done.stderr
    done = tailrace("repack", source, "-o", target, "--bound", "abs=1e-3", "--codec", "trz",
                    "--field", r"a\:b\*:bound=none", "--field", "u[[]0]:bound=none", "--json",
                    tmp_path / "report.json", ranks=2)
    assert "not fields, copied as stored" in re.sub(r"\s+", " ", done.stdout)
    report = json.loads((tmp_path / "report.json").read_text())["files"][0]
    assert {each["path"]: each["type"] for each in report["others"]} == types
    listed = json.loads(tailrace("info", target, "--json", "-").stdout)
    assert {each["path"]: each["type"] for each in listed["others"]} == types
    with opened(target) as file:
        for name in ["a:b*", "u[0]"]:
            np.testing.assert_array_equal(file[name], values)
        assert not np.array_equal(file["a:bc"], values)


@pytest.mark.parametrize("ranks", [1, 3])
def test_filters_that_nobody_has_are_copied_or_named(ranks, tmp_path):
    """Filter LZF exists only in h5py."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.arange(6000, dtype=">f4").reshape(60, 100)
    with h5py.File(source, "w") as file:
        file.create_dataset("u", data=values, chunks=(7, 100), maxshape=(80, None),
                            compression="lzf", shuffle=True)
    tailrace("repack", source, "-o", target, "--publish=as-stored", ranks=ranks)
    with h5py.File(source) as before, h5py.File(target) as after:
        assert after["u"].compression == "lzf" and after["u"].dtype == before["u"].dtype
        assert chunks_of(after["u"]) == chunks_of(before["u"])
        assert after["u"].maxshape == (80, None)
        assert np.array_equal(after["u"][...], values)
    done = tailrace("repack", source, "-o", target, "--force", ranks=ranks, code=2)
    assert "/u" in done.stderr and "32000" in done.stderr


@pytest.mark.sample(4)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("flags", [0, h5py.h5z.FLAG_OPTIONAL])
@pytest.mark.parametrize("kind", ["references", "regions", "texts", "lists"])
def test_a_filter_that_is_missing_is_named(kind, flags, ranks, tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    dtype = {"references": h5py.ref_dtype, "regions": h5py.regionref_dtype,
             "texts": h5py.string_dtype(), "lists": h5py.vlen_dtype("i4")}[kind]
    with h5py.File(source, "w") as file:
        file["u"] = np.arange(10.0)
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((5,))
        # HDF5 refuses mandatory filters for values with pointers.
        optional = h5py.h5z.FLAG_OPTIONAL if kind in ("texts", "lists") else flags
        create.set_filter(32000, optional, ())  # lzf
        dataset = h5py.Dataset(h5py.h5d.create(
            file.id, b"packed", h5py.h5t.py_create(dtype, logical=True),
            h5py.h5s.create_simple((10,), (h5py.h5s.UNLIMITED,)), create))
        value = {"references": file["u"].ref, "regions": file["u"].regionref[2:4],
                 "texts": "a word", "lists": np.arange(3)}[kind]
        for row in range(10):
            dataset[row] = value
    commands = [["repack", source], ["repack", source, "--publish=as-stored"], ["export", source]]
    if kind in ("texts", "lists"):
        commands.append(["concat", source])
    for command in commands:
        refused = tailrace(*command, "-o", target, ranks=ranks, code=2)
        said = re.sub(r"\s+", " ", refused.stderr)
        assert "/packed" in said and "filter 32000 (" in said and "in h5py" in said, said
        assert not target.exists()
    tailrace("repack", source, "-o", target, "--exclude", "packed", ranks=ranks)
    with h5py.File(target) as file:
        assert set(file) == {"u"}

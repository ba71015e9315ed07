"""Other people's datasets, at random, through each way of repack: what they have stays or is named.

The inventory is h5py's and netCDF4's, not ours.
"""

import re

import h5py
import netCDF4
import numpy as np
import pytest

from application_runs import opened
from cli_tools import tailrace

DTYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
WAYS = [[], ["--codec", "trz", "--bound", "abs=1e-3"],
        ["--codec", "portable", "--bound", "rel=1e-3"], ["--codec", "sz3", "--bound", "abs=1e-3"],
        ["--as-stored"], ["--cloud"], ["--layout", "front"]]


def random_dataset(file, name, rng):
    """A dataset of any number type, byte order, layout and fill value, with any _FillValue."""
    dtype = np.dtype(rng.choice(DTYPES)).newbyteorder(rng.choice(["<", ">"]))
    shape = tuple(rng.integers(1, 12, rng.integers(1, 4)))
    values = rng.normal(0, 40, shape).astype(dtype) if dtype.kind == "f" else rng.integers(
        0, 100, shape).astype(dtype)
    some = np.frombuffer(rng.bytes(dtype.itemsize), dtype)[0]
    fill = [None, dtype.type(0), some, dtype.type(7)][rng.integers(4)]
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if fill is not None:
        create.set_fill_value(np.array(fill, dtype))
    limits = tuple(h5py.h5s.UNLIMITED if rng.integers(2) else n for n in shape)
    if limits != shape or rng.integers(2):
        create.set_chunk(tuple(int(rng.integers(1, n + 1 + 2 * (n != limit)))
                               for n, limit in zip(shape, limits)))
        if rng.integers(2):
            create.set_fletcher32()
        if rng.integers(2):
            create.set_deflate(1)
    elif rng.integers(2):
        create.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(shape, limits)
    stored_type = h5py.h5t.py_create(dtype)
    if not rng.integers(5):
        stored_type.commit(file.id, f"type_of_{name}".encode())
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), stored_type, space, create))
    if rng.integers(4):
        missing = dtype.type([99, 7, 0][rng.integers(3)])
        values[rng.random(shape) < 0.2] = missing
        dataset.attrs["_FillValue"] = missing
    written = tuple(slice(int(rng.integers(n + 1))) if rng.integers(3) == 0 else slice(None)
                    for n in shape)
    dataset[written] = values[written]


def chunks_of(dataset):
    """Chunk shape and number of stored chunks; None: not chunked. Places of chunks are left out:
    HDF5 misreports them for some newer indexes."""
    return None if dataset.chunks is None else (dataset.chunks, dataset.id.get_num_chunks())


def fill_of(dataset):
    """Whether it is set, and its bytes in this machine's order."""
    create = dataset.id.get_create_plist()
    value = np.zeros((), dataset.dtype.newbyteorder("="))
    create.get_fill_value(value)
    return create.fill_value_defined(), value.tobytes()


def has_checksum(dataset):
    create = dataset.id.get_create_plist()
    return any(create.get_filter(i)[0] == h5py.h5z.FILTER_FLETCHER32
               for i in range(create.get_nfilters()))


# Remark of repack for each property, and a test whether a dataset has the property.
KINDS = {
    "Fletcher's checksums are not kept": has_checksum,
    "numbers are stored in this machine's byte order": lambda dataset: dataset.dtype.str[0] == ">",
    "types that are objects of the input": lambda dataset: dataset.id.get_type().committed(),
    "datasets that lie in their headers (compact)":
        lambda dataset: dataset.id.get_create_plist().get_layout() == h5py.h5d.COMPACT,
}


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
        with h5py.File(source) as before, opened(target) as after:
            datasets = {name: each for name, each in before.items()
                        if isinstance(each, h5py.Dataset)}
            for name, dataset in datasets.items():
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
            for words, has in KINDS.items():
                lost = [name for name, each in datasets.items()
                        if has(each) and not has(after[name])]
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


def test_a_user_block_that_is_not_kept_is_named(tmp_path):
    source, target = tmp_path / "in.mat", tmp_path / "out.h5"
    with h5py.File(source, "w", userblock_size=1024) as file:
        file["u"] = np.arange(2000.0)
    done = tailrace("repack", source, "-o", target)
    assert "(userblock_size 1024) is not kept" in re.sub(r"\s+", " ", done.stderr)

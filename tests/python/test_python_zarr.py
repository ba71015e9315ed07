"""trz and xor in zarr of both formats, and references to our files' chunks.

Values equal those that h5py reads from files of the HDF5 filters, byte by byte."""

import importlib.metadata
import json
import pickle

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ROOT, smooth

tailrace = python_package.load()
numcodecs = pytest.importorskip("numcodecs")
zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")
if zarr.__version__.startswith("2."):
    pytest.skip("zarr 3 is needed", allow_module_level=True)

FIELD = smooth((20, 30, 41))
CHUNKS = (8, 16, 41)


def chunk_of(dataset, position):
    """Return a stored chunk's bytes, and the filter's client data."""
    start = [at * n for at, n in zip(position, dataset.chunks)]
    mask, data = dataset.id.read_direct_chunk(start)
    assert mask == 0
    return data, dataset.id.get_create_plist().get_filter(0)[2]


CODECS = {
    "trz abs": (lambda: tailrace.Trz(abs=1e-3), "trz"),
    "trz exact": (lambda: tailrace.Trz(), "trz"),
    "trz pw_rel": (lambda: tailrace.Trz(pw_rel=1e-3, preset="fast"), "trz"),
    "trz book": (lambda: tailrace.Trz(
        abs=1e-4, book=tailrace.train_book([FIELD], abs=1e-4, chunks=CHUNKS)), "trz"),
    "xor": (lambda: tailrace.Xor(), "xor"),
    "xor 2": (lambda: tailrace.Xor(dimension=2), "xor"),
}


@pytest.fixture(params=CODECS)
def stored(request, tmp_path):
    """Write a file with h5py and the filter; return its values, a chunk, client data and codec."""
    make, codec = CODECS[request.param]
    with h5py.File(tmp_path / "u.h5", "w") as file:
        fields = {"u": FIELD, "fill": np.where(FIELD > 1, np.float32(-99), FIELD)}
        for name, values in fields.items():
            file.create_dataset(name, data=values, chunks=CHUNKS, compression=make(),
                                fillvalue=-99 if name == "fill" else None)
    with h5py.File(tmp_path / "u.h5") as file:
        yield file, codec


@pytest.mark.parametrize("name", ["u", "fill"])
def test_a_chunk_is_what_the_filter_stores(stored, name):
    file, codec = stored
    dataset = file[name]
    data, words = chunk_of(dataset, (1, 0, 0))
    values = np.ascontiguousarray({"u": FIELD, "fill": np.where(FIELD > 1, np.float32(-99), FIELD)}
                                  [name][8:16, :16])
    made = numcodecs.get_codec({"id": codec, "cd_values": [int(word) for word in words]})
    assert made.encode(values) == data
    again = numcodecs.get_codec(json.loads(json.dumps(made.get_config())))
    assert pickle.loads(pickle.dumps(made)) == made
    assert again == made and again.get_config() == made.get_config()
    decoded = again.decode(data).view("f4").reshape(8, 16, 41)
    assert np.array_equal(decoded, dataset[8:16, :16])
    out = np.empty((8, 16, 41), "f4")
    assert again.decode(np.frombuffer(data, np.uint8), out=out) is out
    assert np.array_equal(out, decoded)


@pytest.mark.parametrize("format", [2, 3, "3, from bytes"])
def test_an_array_of_zarr_holds_the_filters_bytes(stored, format, tmp_path):
    file, codec = stored
    words = [int(word) for word in chunk_of(file["u"], (0, 0, 0))[1]]
    kind = {"trz": "Trz", "xor": "Xor"}[codec]
    if format == 2:
        how = {"filters": [getattr(tailrace.numcodecs, kind)(words)], "compressors": None}
    elif format == 3:
        how = {"serializer": getattr(tailrace.zarr, kind)(words), "compressors": None}
    else:
        how = {"compressors": [getattr(tailrace.zarr, f"Bytes{kind}")(words)]}
    array = zarr.create_array(tmp_path / "a.zarr", shape=FIELD.shape, chunks=CHUNKS, dtype="f4",
                              zarr_format=2 if format == 2 else 3, **how)
    array[...] = FIELD
    for one in how.values():
        for made in one if isinstance(one, list) else [one] if one is not None else []:
            assert pickle.loads(pickle.dumps(made)) == made
    key = tmp_path / "a.zarr" / ("1.0.0" if format == 2 else "c/1/0/0")
    assert key.read_bytes() == chunk_of(file["u"], (1, 0, 0))[0]
    again = zarr.open(tmp_path / "a.zarr", mode="r")
    assert np.array_equal(again[8:16, :16], file["u"][8:16, :16])
    # HDF5 pads edge chunks differently, but the values are within the same bound.
    assert np.abs(again[...].astype("f8") - file["u"][...]).max() <= 2.1e-3 * np.abs(FIELD).max()


def test_codecs_are_found_by_their_entry_points(tmp_path):
    """Use the codec in a process that never imports tailrace itself."""
    array = zarr.create_array(tmp_path / "b.zarr", data=FIELD, chunks=CHUNKS, compressors=None,
                              serializer=tailrace.zarr.Trz(abs=1e-3))
    zarr.create_array(tmp_path / "c.zarr", data=FIELD, chunks=CHUNKS, zarr_format=2,
                      filters=None, compressors=tailrace.numcodecs.Xor())
    assert array.metadata.to_dict()["codecs"][0]["name"] == "tailrace.trz"
    np.save(tmp_path / "u.npy", FIELD)
    python_package.run(f"""
        import numpy as np, sys, zarr
        u = np.load({str(tmp_path / "u.npy")!r})
        b = zarr.open({str(tmp_path / "b.zarr")!r}, mode="r")[...]
        c = zarr.open({str(tmp_path / "c.zarr")!r}, mode="r")[...]
        assert 0 < abs(b - u).max() <= 1e-3 and (c == u).all()
    """)
    # The build's entry points match those of the wheel.
    text = (ROOT / "pyproject.toml").read_text()
    for group, names in (("numcodecs.codecs", ["trz", "xor"]),
                         ("zarr.codecs", ["numcodecs.trz", "numcodecs.xor", "tailrace.trz",
                                           "tailrace.xor"])):
        found = {one.name: one.value for one in importlib.metadata.entry_points(group=group)
                 if one.value.startswith("tailrace")}
        assert sorted(found) == names
        assert all(f'= "{value}"' in text for value in found.values())


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8", ">f8", "bool"])
@pytest.mark.parametrize("shape", [(100,), (1, 1), (7, 5, 3), ()])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_shapes_and_orders(format, dtype, shape, order, tmp_path):
    values = np.asarray(np.random.default_rng(1).normal(size=shape) * 50).astype(dtype)
    n_tried = 0
    for kind in ("Trz", "Xor"):
        native = np.dtype(dtype).isnative
        if kind == "Trz" and (dtype == "bool" or (format == 2 and not native)):
            continue  # Another test checks that these are refused.
        if format == 2:
            how = {"filters": None, "compressors": getattr(tailrace.numcodecs, kind)()}
            how["order"] = order
        else:
            how = {"serializer": getattr(tailrace.zarr, kind)(), "compressors": None}
            how["config"] = {"order": order}
        array = zarr.create_array(tmp_path / kind, shape=shape, dtype=dtype, zarr_format=format,
                                  chunks=tuple(max(1, n // 2) for n in shape), **how)
        array[...] = values
        found = zarr.open(tmp_path / kind, mode="r")[...]
        assert np.array_equal(found, values)
        assert (np.asarray(found).dtype.newbyteorder("=")
                == values.dtype.newbyteorder("="))  # zarr may return either byte order.
        n_tried += 1
    assert n_tried >= 1


def test_special_values_come_back_as_they_were(tmp_path):
    values = FIELD.copy()
    values[0, :5] = np.nan
    values[1, 1] = np.inf
    values[2, 3:9] = -99.125
    array = zarr.create_array(tmp_path / "a", shape=values.shape, chunks=CHUNKS, dtype="f4",
                              fill_value=-99.125, serializer=tailrace.zarr.Trz(abs=0.5),
                              compressors=None)
    array[...] = values
    found = zarr.open(tmp_path / "a", mode="r")[...]
    odd = ~np.isfinite(values) | (values == np.float32(-99.125))
    assert np.array_equal(found[odd], values[odd], equal_nan=True)
    assert 0 < np.abs(found[~odd] - values[~odd]).max() <= 0.5
    codec = tailrace.numcodecs.Trz(abs=0.5, fill=-99.125)
    assert codec.get_config()["fill"] == -99.125
    again = codec.decode(codec.encode(values)).reshape(values.shape)
    assert np.array_equal(again[odd], values[odd], equal_nan=True)


REFUSED = {
    "objects to trz": (lambda: tailrace.numcodecs.Trz().encode(np.array(["a"], object)), TypeError,
                       "trz supports"),
    "objects to xor": (lambda: tailrace.numcodecs.Xor().encode(np.array(["a"], object)), TypeError,
                       "fixed size"),
    "big-endian": (lambda: tailrace.numcodecs.Trz().encode(np.ones(4, ">f4")), TypeError,
                   "byte order"),
    "bool in zarr": (lambda: zarr.create_array({}, shape=(4,), dtype="bool", compressors=None,
                                               serializer=tailrace.zarr.Trz()), TypeError, "bool"),
    "two bounds": (lambda: tailrace.numcodecs.Trz(abs=1, pw_rel=1), ValueError, "one bound"),
    "words and a bound": (lambda: tailrace.zarr.Trz([257], abs=1), ValueError, "not both"),
    "no words": (lambda: tailrace.numcodecs.Trz([7]), ValueError, "version"),
    "no words of xor": (lambda: tailrace.zarr.Xor([7]), ValueError, "begin with 1"),
    "a text": (lambda: tailrace.numcodecs.Trz("abs=1"), TypeError, "whole numbers"),
    "dimension": (lambda: tailrace.numcodecs.Xor(dimension=5), ValueError, "1, 2 or 3"),
    "empty": (lambda: tailrace.numcodecs.Xor().encode(np.zeros(0)), ValueError, "empty"),
    "a later xor": (lambda: tailrace.numcodecs.Xor().decode(b"XOR\x01\0\0\0\0\x20\0"), ValueError,
                    "newer xor: unknown feature bits 0x20"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("codec", ["Trz", "Xor"])
def test_damaged_chunks_are_errors(codec):
    made = getattr(tailrace.numcodecs, codec)()
    data = bytearray(made.encode(FIELD))
    generator = np.random.default_rng(5)
    for _ in range(200):
        wrong = data.copy()
        wrong[generator.integers(len(wrong))] ^= 1 << int(generator.integers(8))
        with pytest.raises((ValueError, MemoryError)):
            made.decode(bytes(wrong))
    for n_bytes in (0, 1, 9, 12, len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError):
            made.decode(bytes(data[:n_bytes]))


# --- references -----------------------------------------------------------------------------------


def opened(document, **keywords):
    pytest.importorskip("fsspec")
    return xarray.open_dataset("reference://", engine="zarr", chunks=None, **keywords,
                               backend_kwargs={"storage_options": {
                                   "fo": document, "remote_protocol": "file"}})


def write(path, **how):
    field = FIELD.copy()
    field[3, 4:9] = -999
    field[4, :2] = np.nan
    with tailrace.open(path, "w") as file:
        file.attrs["title"] = "Ünder"
        file.create_dimension("time")
        file.create_variable("time", ("time",), data=np.arange(20.0), attrs={
            "units": "days since 2000-01-01", "calendar": "standard"})
        file.create_variable("u", ("time", "y", "x"), data=field, fill_value=-999.0,
                             chunks=CHUNKS, attrs={"units": "m/s", "range": [0.0, 1.0]}, **how)
        file.create_variable("packed", ("y", "x"), data=np.arange(30 * 41).reshape(30, 41)
                             .astype("i2"), attrs={"scale_factor": 0.5, "add_offset": 3.0})
        file.create_variable("plain", ("y", "x"), data=FIELD[0], codec="none")
        file.create_variable("name", ("y",), data=np.array(["a", "ö"] * 15, object))
        file.create_variable("letters", ("y",), data=np.array([b"a", b"b"] * 15))
        file.create_variable("crs", (), data=np.int32(7))
        file.create_variable("model/w", ("y", "x"), data=FIELD[1], chunks=(7, 20), **how)


@pytest.mark.parametrize("how", [
    {"codec": "trz", "abs": 1e-3}, {"codec": "trz", "pw_rel": 1e-3}, {"codec": "xor"},
    {"codec": "deflate"}, {"codec": "portable", "abs": 1e-3}, {"codec": "zstd"},
    {"codec": "none"}], ids=str)
def test_xarray_over_references_equals_h5py(how, tmp_path):
    if how["codec"] == "zstd":
        pytest.importorskip("hdf5plugin")
    path = tmp_path / "u.nc"
    write(path, **how)
    document = tailrace.references(path)
    assert document["version"] == 1
    refs = document["refs"]
    in_place = [value for key, value in refs.items() if isinstance(value, list)]
    assert len([key for key in refs if key.startswith("u/") and key[2].isdigit()]) == 6
    for url, address, n_bytes in in_place:
        assert url == str(path) and address > 0 and n_bytes > 0
    if how != {"codec": "none"}:
        assert isinstance(refs["u/1.0.0"], list)  # A reference, not a copy.
    with h5py.File(path) as file, opened(json.loads(json.dumps(document)),
                                         mask_and_scale=False, decode_times=False) as dataset:
        assert dataset.attrs["title"] == "Ünder" and dataset.u.dims == ("time", "y", "x")
        assert dataset.u.attrs["units"] == "m/s" and dataset.u.attrs["range"] == [0.0, 1.0]
        for name in ("time", "u", "packed", "plain", "crs", "letters"):
            found, expected = dataset[name].values, file[name][...]
            assert found.dtype == expected.dtype and found.shape == expected.shape, name
            assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"), name
        assert dataset.name.values.tolist() == ["a", "ö"] * 15
        model = opened(document, group="model")
        assert np.array_equal(model.w, file["model/w"][...])
    # Decoding gives the dataset that xarray reads from the file itself.
    with opened(document) as dataset, xarray.open_dataset(path, engine="tailrace") as expected:
        for one in (dataset, *dataset.variables.values()):
            # The file's attributes about compression are encoding for our own engine.
            one.attrs = {key: value for key, value in one.attrs.items() if "tailrace" not in key}
        xarray.testing.assert_identical(dataset.drop_encoding(), expected.drop_encoding())


@pytest.mark.parametrize("user_block", [0, 1024])
def test_holes_exact_chunks_and_foreign_files(user_block, tmp_path):
    path = tmp_path / "h.h5"
    with h5py.File(path, "w", userblock_size=user_block) as file:
        for name, fill in (("filled", 7.5), ("zero", None)):
            u = file.create_dataset(name, (64, 20), "f4", chunks=(16, 8), fillvalue=fill,
                                    maxshape=(None, 20), compression=tailrace.Trz(abs=1e-2))
            u[16:32] = FIELD[0, :16, :20]
        # This chunk is stored without its filter, like incompressible ones.
        exact = np.ascontiguousarray(FIELD[1, :16, :8])
        file["zero"].id.write_direct_chunk((48, 8), exact.tobytes(), filter_mask=1)
        file.create_dataset("big", data=FIELD.astype(">f8"), chunks=CHUNKS, compression="gzip",
                            shuffle=True, fletcher32=True)
        file.create_dataset("xor_big", data=FIELD.astype(">f4"), chunks=CHUNKS,
                            compression=tailrace.Xor())
        book = tailrace.train_book([FIELD], abs=1e-4, chunks=CHUNKS)
        file.create_dataset("book", data=FIELD, chunks=CHUNKS,
                            compression=tailrace.Trz(abs=1e-4, book=book))
        file["book"].id.write_direct_chunk((8, 0, 0), np.ascontiguousarray(FIELD[8:16, :16])
                                           .tobytes(), filter_mask=1)
        file.create_dataset("never", (5, 4), "i4")
        file.create_dataset("compact", data=np.arange(4))
        file.create_dataset("empty", (0, 4), "f4", maxshape=(None, 4), chunks=(2, 4))
        file["flag"] = np.array([True, False])
        file["nan"] = FIELD[0]
        file["nan"].attrs["_FillValue"] = np.float32("nan")
    document = tailrace.references(path, tmp_path / "refs.json")
    assert json.loads((tmp_path / "refs.json").read_text()) == document
    assert len(repr(document)) < 120 and "chunks in place" in repr(document)
    assert f"{len(h5py.File(path)):,} variables" in repr(document)
    refs = document["refs"]
    assert isinstance(refs["zero/1.0"], list) and refs["zero/3.1"].startswith("base64:")
    store = zarr.storage.FsspecStore.from_url(
        "reference://", storage_options={"fo": document, "remote_protocol": "file"},
        read_only=True)
    group = zarr.open_group(store, mode="r", zarr_format=2)
    with h5py.File(path) as file:
        assert set(file) == set(group.array_keys())
        for name in file:
            found, expected = group[name][...], file[name][...]
            assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), name
            assert np.array_equal(found, expected), name
        assert np.array_equal(group["zero"][48:64, 8:16], exact)
        # A bound is not applied again to chunks that are stored exactly.
        assert np.array_equal(group["book"][8:16, :16], FIELD[8:16, :16])


def test_where_readers_find_the_file(tmp_path):
    write(tmp_path / "u.nc", codec="trz", abs=1e-3)
    document = tailrace.references(tmp_path / "u.nc", url="s3://bucket/u.nc")
    urls = {value[0] for value in document["refs"].values() if isinstance(value, list)}
    assert urls == {"s3://bucket/u.nc"}


def test_what_cannot_be_referenced(tmp_path):
    path = tmp_path / "h.h5"
    with h5py.File(path, "w") as file:
        file["pairs"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
    with pytest.raises(NotImplementedError, match="/pairs: values of type"):
        tailrace.references(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=FIELD, compression="lzf")
    with pytest.raises(NotImplementedError, match="/u: chunks of the filter lzf"):
        tailrace.references(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("u", (4,), "f4", external=[("raw.bin", 0, 16)])
    with pytest.raises(NotImplementedError, match="other files"):
        tailrace.references(path)
    with pytest.raises(FileNotFoundError):
        tailrace.references(tmp_path / "none.nc")

"""Inputs for tests of `tailrace concat`: sets of small HDF5 files, one set for each difficulty.

A case is a function (folder, n_files) -> paths. Rows differ from file to file, and some files have
no rows at all. Values depend on the file's number, so that all files differ.
"""

import pathlib

import h5py
import hdf5plugin
import numpy as np

from cli_tools import REAL_DATA

ROWS = (37, 0, 64, 5)
CASES = {}


def case(builder):
    CASES[builder.__name__] = builder
    return builder


def write_files(folder, n_files, fill, **options):
    """Create files in_0.h5, ...; `fill(file, rows, generator, f)` creates their datasets."""
    paths = []
    for f in range(n_files):
        paths.append(pathlib.Path(folder) / f"in_{f}.h5")
        with h5py.File(paths[-1], "w", **options) as file:
            fill(file, ROWS[f % len(ROWS)], np.random.default_rng(1000 + f), f)
    return paths


def values(generator, dtype, shape):
    """Return numbers of which some repeat, so that they compress."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=int)) * dtype.itemsize
    if dtype.kind == "f":
        numbers = generator.integers(-50, 50, shape) / 8
        numbers[generator.random(shape) < 0.05] = np.nan
        return numbers.astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, 100, shape).astype(dtype)
    return np.frombuffer(generator.bytes(n_bytes), dtype=dtype).reshape(shape)


def dataset(group, name, data, inner=(), chunk=16, **options):
    """Create an appendable dataset of `data`, chunked by rows."""
    data = np.asarray(data)
    if options.pop("fixed", False):  # fixed number of rows
        if len(data) == 0:
            return group.create_dataset(name, data=data)
        options["maxshape"] = data.shape
        chunk = min(chunk, len(data))
    options.setdefault("maxshape", (None, *data.shape[1:]))
    options.setdefault("chunks", (chunk, *(inner or data.shape[1:])))
    return group.create_dataset(name, data=data, **options)


@case
def real(folder, n_files):
    """Sample files of an experiment; an empty list if they do not exist."""
    return sorted((REAL_DATA / "hep").glob("sample_*.h5"))[:n_files]


@case
def numbers(folder, n_files):
    def fill(file, rows, generator, f):
        kinds = [f"{order}{kind}" for order in "<>"
                 for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
        for kind in kinds:
            name = ("little/" if kind[0] == "<" else "big/") + kind[1:]
            dataset(file, name, values(generator, kind, rows), compression="gzip")
            dataset(file, name + "_column", values(generator, kind, (rows, 1)), shuffle=True,
                    compression="gzip", compression_opts=9)
    return write_files(folder, n_files, fill)


@case
def kinds(folder, n_files):
    """Elements that are not plain numbers; some hold pointers that only HDF5 can follow."""
    words = np.array(["", "a", "neutrino", "müon", "x" * 300], dtype=object)
    pair = np.dtype([("id", "<u4"), ("place", ">f8", (3,)), ("name", "S6")])
    tagged = np.dtype([("id", "<i8"), ("tag", h5py.string_dtype())])
    color = h5py.enum_dtype({"red": 0, "green": 1, "blue": 42}, basetype="i2")

    def fill(file, rows, generator, f):
        picked = generator.integers(0, len(words), rows)
        dataset(file, "flag", generator.random(rows) < 0.5)
        dataset(file, "color", generator.choice([0, 1, 42], rows).astype(color))
        dataset(file, "fixed", np.array([w.encode()[:7] for w in words[picked]], "S7"),
                compression="gzip")
        dataset(file, "fixed_utf8", np.array([w[:3].encode() for w in words[picked]],
                                             h5py.string_dtype("utf-8", 9)))
        dataset(file, "words", words[picked].astype(h5py.string_dtype()), compression="gzip")
        lists = np.empty(rows, dtype=object)
        for row in range(rows):
            lists[row] = np.arange(picked[row], dtype="i4")
        dataset(file, "lists", lists, dtype=h5py.vlen_dtype(np.dtype("i4")))
        pairs = np.zeros(rows, pair)
        pairs["id"] = np.arange(rows) + 100 * f
        pairs["place"] = generator.random((rows, 3))
        pairs["name"] = [w.encode()[:6] for w in words[picked]]
        dataset(file, "pairs", pairs, compression="gzip", shuffle=True)
        tags = np.zeros(rows, tagged)
        tags["id"] = np.arange(rows)
        tags["tag"] = words[picked]
        dataset(file, "tagged", tags)
        triples = file.create_dataset("triples", (rows,), np.dtype(("<f4", (3,))),
                                      maxshape=(None,), chunks=(10,), compression="gzip")
        if rows:
            triples[...] = generator.random((rows, 3)).astype("f4")
        dataset(file, "opaque", values(generator, "V5", rows), compression="gzip")
        dataset(file, "complex", values(generator, "f8", (rows, 2)).view("c16")[:, 0])
    return write_files(folder, n_files, fill)


@case
def shapes(folder, n_files):
    def fill(file, rows, generator, f):
        dataset(file, "column", values(generator, "u4", (rows, 1)), chunk=8, compression="gzip")
        dataset(file, "image", values(generator, "u1", (rows, 4, 16)), chunk=7, compression="gzip")
        dataset(file, "cut", values(generator, "f4", (rows, 7, 5)), inner=(3, 2), chunk=4,
                compression="gzip", shuffle=True)
        dataset(file, "cut_plain", values(generator, "i2", (rows, 9)), inner=(4,), chunk=5)
        dataset(file, "deep", values(generator, "i4", (rows, 2, 3, 2, 2)), inner=(2, 1, 2, 2),
                chunk=3)
        dataset(file, "fixed_rows", values(generator, "i4", (rows, 2)), fixed=True,
                compression="gzip")
        dataset(file, "bounded", values(generator, "i4", (rows, 2)), maxshape=(1000, None))
        file.create_dataset("no_columns", (rows, 0), "f4")
    return write_files(folder, n_files, fill)


def compact(group, name, data):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    made = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(data.dtype, logical=True),
                           h5py.h5s.create_simple(data.shape), properties)
    if data.size:
        h5py.Dataset(made)[...] = data


@case
def storage(folder, n_files):
    def fill(file, rows, generator, f):
        data = values(generator, "i4", (rows, 3))
        dataset(file, "gzip", data, compression="gzip")
        dataset(file, "gzip_shuffle", data, compression="gzip", shuffle=True, compression_opts=2)
        dataset(file, "checked", data, compression="gzip", fletcher32=True)
        dataset(file, "only_checked", data, fletcher32=True)
        dataset(file, "only_shuffled", data, shuffle=True)
        dataset(file, "chunked", data)
        file.create_dataset("contiguous", data=data)
        compact(file, "compact", data)
        dataset(file, "szip", data, compression="szip")
        dataset(file, "scale_offset", data, scaleoffset=8)
        dataset(file, "zstd", data, **hdf5plugin.Zstd())
        dataset(file, "blosc", data, **hdf5plugin.Blosc())
        dataset(file, "lz4", data, **hdf5plugin.LZ4())
        dataset(file, "bitshuffle", data, **hdf5plugin.Bitshuffle())
        if rows > 20:  # store a chunk unfiltered
            made = file["gzip_shuffle"].id
            made.write_direct_chunk((16, 0), np.ascontiguousarray(data[16:32]).tobytes(), 3)
    return write_files(folder, n_files, fill)


@case
def holes(folder, n_files):
    """Fill values, and chunks that were never written."""
    def fill(file, rows, generator, f):
        for name, options in {"gzip": {"compression": "gzip"}, "chunked": {},
                              "zero": {"fillvalue": None, "compression": "gzip"}}.items():
            made = file.create_dataset(name, (rows, 2), "f4", maxshape=(None, 2), chunks=(8, 2),
                                       **{"fillvalue": -7.5, **options})
            if rows > 20:
                made[3:5] = generator.random((2, 2))
                made[rows - 2:] = f
        pair = np.dtype([("a", "i4"), ("b", ">f8")])
        made = file.create_dataset("pairs", (rows,), pair, maxshape=(None,), chunks=(8,),
                                   fillvalue=np.array((3, 2.5), pair))
        if rows > 20:
            made[10] = (7, 7)
        file.create_dataset("never", (rows,), "i2", maxshape=(None,), chunks=(8,), fillvalue=9,
                            compression="gzip")
        file.create_dataset("never_contiguous", (rows,), "i2", fillvalue=9)
    return write_files(folder, n_files, fill)


@case
def empties(folder, n_files):
    def fill(file, rows, generator, f):
        for name in ("a", "a/b", "c/d/e"):
            for i in range(10):
                file.create_dataset(f"{name}/none_{i}", (0, 1), "f4", maxshape=(None, 1),
                                    chunks=(128, 1), compression="gzip")
        file.create_dataset("contiguous", (0,), "i4")
        file.create_dataset("words", (0,), h5py.string_dtype(), maxshape=(None,))
        dataset(file, "only_last", np.arange(5 if f == n_files - 1 else 0), compression="gzip")
        dataset(file, "only_first", np.arange(5 if f == 0 else 0), compression="gzip")
        file.create_group("empty_group/inner")
    return write_files(folder, n_files, fill)


@case
def objects(folder, n_files):
    """Scalars, attributes, links, dimension scales, named types, groups that keep their order."""
    def fill(file, rows, generator, f):
        file.attrs["title"] = "run ü"
        file.attrs["numbers"] = np.arange(6, dtype=">i2").reshape(2, 3)
        file.attrs["fixed"] = np.array([b"ab", b"c"])
        file["kind"] = np.dtype([("x", "f4"), ("n", "i2")])
        ordered = file.create_group("ordered", track_order=True)
        for name in ("z", "y", "x", "a", "b"):
            made = dataset(ordered, name, values(generator, "f4", rows), compression="gzip")
            made.attrs["units"] = "cm"
            made.attrs.create("words", ["b", "", "a"], dtype=h5py.string_dtype())
            made.attrs["nothing"] = h5py.Empty("f4")
            made.attrs["pair"] = np.array((1, 2), "i4,f8")
            made.attrs["flag"] = True
        ordered.attrs["depth"] = 2
        file["scalar"] = 4.5
        file["text"] = "hello"
        file["null"] = h5py.Empty("i4")
        file["ordered/scalar"] = np.array((3, 4), "i4,f8")
        file["again"] = file["ordered/z"]
        file["group_again"] = ordered
        file["soft"] = h5py.SoftLink("/ordered/y")
        file["dangling"] = h5py.SoftLink("/nowhere")
        scale = dataset(file, "axis", np.arange(rows, dtype="f8"))
        scale.make_scale("time")
        ordered["z"].dims[0].attach_scale(scale)
        ordered["z"].dims[0].label = "t"
        dataset(file, "typed", np.zeros(rows, file["kind"].dtype), dtype=file["kind"])
    return write_files(folder, n_files, fill)


@case
def aligned(folder, n_files):
    """Full chunks of equal shapes, large enough to be copied, so that nothing is encoded."""
    def fill(file, rows, generator, f):
        rows = (2 + f) * 8192
        dataset(file, "ids", values(generator, "u8", rows), chunk=8192, compression="gzip")
        dataset(file, "image", values(generator, "u1", (rows // 128, 32, 32)), chunk=64,
                compression="gzip", shuffle=True)
        dataset(file, "plain", values(generator, "f8", rows), chunk=8192)
        dataset(file, "zstd", values(generator, "f8", rows), chunk=8192, **hdf5plugin.Zstd())
    return write_files(folder, n_files, fill)


@case
def different(folder, n_files):
    """Equal datasets, stored differently in each file."""
    ways = [dict(chunk=16, compression="gzip"), dict(chunk=10, **hdf5plugin.Zstd()),
            dict(chunk=16, compression="gzip", shuffle=True, compression_opts=1), dict(chunk=64),
            dict(chunks=None, maxshape=None)]

    def fill(file, rows, generator, f):
        for name, first in {"a": 0, "b": 1, "c": 3, "d": 4, "e": 2}.items():
            options = dict(ways[(first + f) % len(ways)])
            dataset(file, name, values(generator, ">i4", (rows, 2)), **options)
        if f % 2:
            dataset(file, "image", values(generator, "u1", (rows, 8, 8)), inner=(4, 8), chunk=5)
        else:
            dataset(file, "image", values(generator, "u1", (rows, 8, 8)), inner=(8, 3), chunk=9,
                    compression="gzip")
    return write_files(folder, n_files, fill, libver=("earliest", "v110"))


@case
def newer(folder, n_files):
    """Files of a newer format: other object headers, groups and chunk indexes."""
    def fill(file, rows, generator, f):
        data = values(generator, "i4", (rows, 2))
        group = file.create_group("g", track_order=True)
        dataset(group, "extensible", data, compression="gzip")
        dataset(group, "two_ways", data, maxshape=(None, None), compression="gzip")
        dataset(group, "fixed", data, fixed=True)
        dataset(group, "single", data, chunk=1000, fixed=True)
        dataset(group, "early", data, maxshape=(None, 2))
    return write_files(folder, n_files, fill, libver=("v110", "v110"))


def spills(folder, n_files, first_run=11981):
    """Tables like those of experiments: rows of an event in several groups, keyed by three ids."""
    def fill(file, rows, generator, f):
        rows = rows or 3
        events = np.sort(generator.choice(10000, rows, replace=False))

        def table(name, evt):
            ids = {"run": np.full(len(evt), first_run), "subrun": np.full(len(evt), 6 + f),
                   "evt": evt}
            for column, data in ids.items():
                dataset(file, f"{name}/{column}", data.astype("u4")[:, None], compression="gzip")
            dataset(file, f"{name}/value", values(generator, "f4", (len(evt), 1)))

        table("spill", events)
        table("rec/tracks", np.sort(generator.choice(events, 3 * rows)))
        table("rec/nothing", events[:0])
        dataset(file, "other/evt", np.arange(4))
    return write_files(folder, n_files, fill)


def large(folder, n_files, rows=150000):
    """Some ten MB, most of which is incompressible."""
    def fill(file, _, generator, f):
        n = rows + 777 * f
        for i in range(6):
            dataset(file, f"noise/{i}", generator.integers(0, 2**32, (n // 6, 4), dtype="u4"),
                    chunk=1000, compression="gzip", compression_opts=1)
        dataset(file, "wide", generator.integers(0, 99, (n // 400, 64, 32), dtype="u1"), chunk=128,
                compression="gzip")
        for i in range(20):
            dataset(file, f"small/{i}", generator.integers(0, 9, 100 + f), chunk=128,
                    compression="gzip")
    return write_files(folder, n_files, fill)

"""Small files of one object form each, made by h5py's low-level calls: the forms that a reader can
read at all.

Tailrace's files consist of such forms. A reader that fails for one of these files fails for every
file with its form, from any writer. Only `trz` and `xor` are written by Tailrace.
"""

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import matrix_files

FORMS = {}  # The maker of the file for each sentence of the table.
LATEST = {"libver": ("v110", "v110")}
V18 = {"libver": ("v108", "v108")}


def form(name):
    def keep(make):
        FORMS[name] = make
        return make
    return keep


def numbers(*shape):
    return matrix_files.values(*shape)


def simple(file, data=None, **more):
    data = numbers(12, 24).astype("f4") if data is None else data
    return file.create_dataset("x", data=data, **more)


def dataset_form(name, versions=None, data=None, **more):
    """A file with one dataset that create_dataset makes from these arguments."""
    def make(path):
        with h5py.File(path, "w", **(versions or {})) as file:
            simple(file, data, **more)
    FORMS[name] = make


PACKED = {"compression": "gzip", "shuffle": True}
dataset_form("contiguous")
dataset_form("chunks: version 1 B-tree", chunks=(3, 24), **PACKED)
dataset_form("chunks: version 1 B-tree, two unlimited dimensions", chunks=(5, 6),
             maxshape=(None, None), **PACKED)
dataset_form("chunks: version 1 B-tree of two levels", data=numbers(3000, 2), chunks=(10, 2),
             maxshape=(None, 2))
dataset_form("chunks of 1.10: single chunk", LATEST, chunks=(12, 24), **PACKED)
dataset_form("chunks of 1.10: fixed array", LATEST, chunks=(3, 24), **PACKED)
dataset_form("chunks of 1.10: fixed array of pages", LATEST, data=numbers(6000), chunks=(4,),
             **PACKED)
dataset_form("chunks of 1.10: extensible array", LATEST, chunks=(3, 24), maxshape=(None, 24),
             **PACKED)
dataset_form("chunks of 1.10: extensible array of pages", LATEST, data=numbers(40000), chunks=(4,),
             maxshape=(None,))
dataset_form("chunks of 1.10: version 2 B-tree", LATEST, chunks=(5, 6), maxshape=(None, None),
             **PACKED)


@form("chunks of 1.10: implicit")
def implicit(path):
    with h5py.File(path, "w", **LATEST) as file:
        layout = h5p.create(h5p.DATASET_CREATE)
        layout.set_chunk((3, 24))
        layout.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        space = h5s.create_simple((12, 24))
        made = h5d.create(file.id, b"x", h5t.IEEE_F32LE, space, layout)
        made.write(h5s.ALL, h5s.ALL, numbers(12, 24).astype("f4"))


def mask_form(name, versions):
    """The first chunk is stored without shuffle, as HDF5 stores a chunk that no filter shrinks."""
    def make(path):
        import zlib
        with h5py.File(path, "w", **versions) as file:
            made = simple(file, chunks=(3, 24), **PACKED)
            part = numbers(12, 24).astype("f4")[:3]
            made.id.write_direct_chunk((0, 0), zlib.compress(part.tobytes()), 1)
            made.id.write_direct_chunk((3, 0), numbers(12, 24).astype("f4")[3:6].tobytes(), 3)
    FORMS[name] = make


mask_form("filter masks, version 1 B-tree", {})
mask_form("filter masks, fixed array", LATEST)


@form("missing chunks and a fill value")
def missing_chunks(path):
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (12, 24), "f4", chunks=(3, 24), fillvalue=5, **PACKED)
        made[3:6] = numbers(3, 24)


def twelve_attributes(item):
    item.attrs["units"] = "K"
    for i in range(1, 13):
        item.attrs[f"a{i:02}"] = i / 4


def attributes_form(name, versions, phase_change=None, track=False):
    def make(path):
        with h5py.File(path, "w", **versions) as file:
            layout = h5p.create(h5p.DATASET_CREATE)
            if phase_change:
                layout.set_attr_phase_change(*phase_change)
            if track:
                layout.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
            space = h5s.create_simple((20,))
            made = h5py.Dataset(h5d.create(file.id, b"x", h5t.IEEE_F64LE, space, layout))
            made[...] = numbers(20)
            twelve_attributes(made)
    FORMS[name] = make


attributes_form("13 attributes, version 1 header", {})
attributes_form("13 attributes in a heap", V18)
attributes_form("13 attributes in a header by a phase change", V18, phase_change=(65535, 0))
attributes_form("the same, in a file of HDF5 1.8's forms", {}, phase_change=(65535, 0))
attributes_form("13 attributes of tracked order", {}, track=True)


@form("an attribute of 100 kB")
def large_attribute(path):
    with h5py.File(path, "w", **V18) as file:
        made = simple(file)
        made.attrs["a01"] = numbers(12500)


@form("attributes: a text of variable length")
def text_attributes(path):
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "varies \u00f6"
        simple(file).attrs["units"] = np.bytes_(b"fixed")


def groups_form(name, versions, n, **more):
    def make(path):
        with h5py.File(path, "w", **versions, **more) as file:
            group = file.create_group("group", **more)
            for i in range(n):
                group[f"x{i:03}"] = numbers(4)
    FORMS[name] = make


groups_form("links: symbol table", {}, 40)
groups_form("links: in the header", V18, 4)
groups_form("links: in a heap", V18, 40)
groups_form("links: in a heap, of tracked order", {}, 40, track_order=True)


@form("links: soft and hard")
def soft_links(path):
    with h5py.File(path, "w") as file:
        file["group/x"] = numbers(4)
        file["hard"] = file["group/x"]
        file["soft"] = h5py.SoftLink("/group/x")


def superblock_form(name, **more):
    def make(path):
        with h5py.File(path, "w", **more) as file:
            simple(file)
    FORMS[name] = make


superblock_form("superblock 2", **V18)
superblock_form("superblock 3", **LATEST)
superblock_form("user block", userblock_size=512)
superblock_form("paged file space", fs_strategy="page", fs_page_size=4096, **LATEST)

CHUNKED = {"chunks": (3, 24)}
dataset_form("filter: Fletcher's checksum", fletcher32=True, **CHUNKED)
dataset_form("filter: scale-offset", data=np.arange(288).reshape(12, 24), scaleoffset=0, **CHUNKED)
dataset_form("filter: lzf", compression="lzf", **CHUNKED)
dataset_form("filter: zstd", **hdf5plugin.Zstd(), **CHUNKED)


@form("filter: szip")
def szip(path):
    with h5py.File(path, "w") as file:
        simple(file, compression="szip", **CHUNKED)


def codec_form(codec):
    def make(path):
        source = path.with_name(f"plain_{codec}.h5")
        with h5py.File(source, "w") as file:
            data = matrix_files.values(120, 240).astype("f4")
            file.create_dataset("x", data=data, chunks=(30, 240))
        matrix_files.tailrace("repack", source, "-o", path, *matrix_files.CODECS[codec])
    FORMS[f"filter: {codec}"] = make


codec_form("trz")
codec_form("xor")

dataset_form("i8 beyond 2^32", data=np.arange(20, dtype="i8") + 2**40)
dataset_form("u8 beyond 2^63", data=np.arange(4, dtype="u8") + np.uint64(2**63))
dataset_form("f2", data=numbers(20).astype("f2"))
dataset_form("f8, big-endian", data=numbers(20).astype(">f8"), chunks=(5,), **PACKED)
dataset_form("long double (80 of 128 bits)", data=np.arange(20).astype(np.longdouble))
dataset_form("enumeration (bool)", data=np.arange(20) % 3 == 0)
dataset_form("text of fixed length", data=np.array([b"abcd", b"ef"], "S4"))
dataset_form("text of variable length", data=np.array(["a", "bc\u00f6", ""], object),
             dtype=h5py.string_dtype())
dataset_form("no rows", data=np.zeros((0, 24), "f4"), maxshape=(None, 24), chunks=(3, 24))
dataset_form("scalar", data=np.float64(2.5))


@form("named type")
def named_type(path):
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype("f4")
        file.create_dataset("x", data=numbers(20).astype("f4"), dtype=file["type"])


@form("compact")
def compact(path):
    with h5py.File(path, "w") as file:
        layout = h5p.create(h5p.DATASET_CREATE)
        layout.set_layout(h5d.COMPACT)
        made = h5d.create(file.id, b"x", h5t.IEEE_F64LE, h5s.create_simple((20,)), layout)
        made.write(h5s.ALL, h5s.ALL, numbers(20))


def make_all(folder):
    paths = []
    for i, make in enumerate(FORMS.values()):
        path = folder / f"form_{i:02}.h5"
        make(path)
        paths.append(path)
    return paths

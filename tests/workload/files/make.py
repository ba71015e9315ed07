"""Makes the file of a description with the C calls of h5py's HDF5."""

import ctypes

import h5py
import numpy as np

from . import netcdf, types
from .calls import CallFailed, Handles, call, class_of_lists, extents

_LAYOUTS = {"compact": 0, "contiguous": 1, "chunked": 2, "virtual": 3, "external": 1}
_STRATEGIES = {"FSM_AGGR": 0, "PAGE": 1, "AGGR": 2, "NONE": 3}
_FILTERS = {"deflate": 1, "shuffle": 2, "fletcher32": 3, "szip": 4, "nbit": 5, "scaleoffset": 6,
            "lzf": 32000, "unknown": 33333}


class Invalid(Exception):
    """The description cannot be made: HDF5 refuses it, or an object that it needs is missing."""


def _object_properties(made, what):
    if "attribute_order" in what:
        call("H5Pset_attr_creation_order", made, what["attribute_order"])
    if "attribute_phase" in what:
        call("H5Pset_attr_phase_change", made, *what["attribute_phase"])
    call("H5Pset_obj_track_times", made, int(what.get("times", False)))


def _group_properties(made, what):
    _object_properties(made, what)
    if "link_order" in what:
        call("H5Pset_link_creation_order", made, what["link_order"])
    if "link_phase" in what:
        call("H5Pset_link_phase_change", made, *what["link_phase"])


def _file_properties(made, what):
    _group_properties(made, what)
    if "user_block" in what:
        call("H5Pset_userblock", made, what["user_block"])
    if "sizes" in what:
        call("H5Pset_sizes", made, *what["sizes"])
    if "tree_sizes" in what:
        call("H5Pset_sym_k", made, *what["tree_sizes"])
    if "chunk_tree_size" in what:
        call("H5Pset_istore_k", made, what["chunk_tree_size"])
    if "strategy" in what:
        kind, persist, threshold = what["strategy"]
        call("H5Pset_file_space_strategy", made, _STRATEGIES[kind], int(persist), threshold)
    if "page" in what:
        call("H5Pset_file_space_page_size", made, what["page"])
    if "shared_messages" in what:
        call("H5Pset_shared_mesg_nindexes", made, 1)
        call("H5Pset_shared_mesg_index", made, 0, *what["shared_messages"])


class Maker:
    def __init__(self, description, path):
        self._description = description
        self._path = path
        self._named = {}
        self._paths = []
        self._later = []
        self._file = None

    def make(self):
        what = self._description["file"]
        with Handles() as handles:
            access = handles("H5Pcreate", class_of_lists("FILE_ACCESS"))
            low, high = (getattr(h5py.h5f, f"LIBVER_{what[end]}") for end in ("low", "high"))
            call("H5Pset_libver_bounds", access, low, high)
            creation = handles("H5Pcreate", class_of_lists("FILE_CREATE"))
            _file_properties(creation, what)
            self._file = handles("H5Fcreate", str(self._path), 2, creation, access)
            self._links = handles("H5Pcreate", class_of_lists("LINK_CREATE"))
            call("H5Pset_create_intermediate_group", self._links, 1)
            call("H5Pset_char_encoding", self._links, 1)
            if "comment" in what:
                call("H5Oset_comment", self._file, what["comment"])
            for each in self._description["objects"]:
                getattr(self, "_" + each["op"])(each, handles)
            # References may also lead to objects that are made later.
            for step in self._later:
                step()
        if "user_block" in what:
            with open(self._path, "r+b") as file:
                file.write(np.random.default_rng(7).bytes(what["user_block"]))

    def _group(self, what, handles):
        with Handles() as own:
            creation = own("H5Pcreate", class_of_lists("GROUP_CREATE"))
            _group_properties(creation, what)
            made = own("H5Gcreate2", self._file, what["path"], self._links, creation, 0)
            self._comment(made, what)
        self._paths.append(what["path"])

    @staticmethod
    def _comment(made, what):
        if "comment" in what:
            call("H5Oset_comment", made, what["comment"])

    def _type(self, what, handles):
        made = types.make_type(what["type"], handles, self._named)
        kept = handles("H5Tcopy", made)
        call("H5Tcommit2", self._file, what["path"], kept, self._links, 0, 0)
        self._named[what["path"]] = kept

    def _hard(self, what, handles):
        call("H5Lcreate_hard", self._file, what["target"], self._file, what["path"], self._links, 0)

    def _soft(self, what, handles):
        call("H5Lcreate_soft", what["target"], self._file, what["path"], self._links, 0)

    def _external(self, what, handles):
        call("H5Lcreate_external", what["file"], what["target"], self._file, what["path"],
             self._links, 0)

    def _dataset_id(self, own, path):
        """h5py's object, which closes its own reference."""
        handle = own("H5Dopen2", self._file, path, 0)
        call("H5Iinc_ref", handle)
        return h5py.h5d.DatasetID(handle)

    def _scale(self, what, handles):
        with Handles() as own:
            h5py.h5ds.set_scale(self._dataset_id(own, what["of"]), what["name"].encode())

    def _attach(self, what, handles):
        with Handles() as own:
            of, scale = (self._dataset_id(own, what[key]) for key in ("of", "scale"))
            h5py.h5ds.attach_scale(of, scale, what["dimension"])

    def _label(self, what, handles):
        with Handles() as own:
            of = self._dataset_id(own, what["of"])
            h5py.h5ds.set_label(of, what["dimension"], what["name"].encode())

    def _refer(self, kind, rng):
        size = {"object": 8, "region": 12}[kind]
        targets = [path for path, shape in self._shapes() if kind == "object" or shape]
        if not targets or rng.integers(6) == 0:
            return bytes(size)
        target = targets[rng.integers(len(targets))]
        made = ctypes.create_string_buffer(size)
        if kind == "object":
            call("H5Rcreate", made, self._file, target, 0, -1)
            return made.raw
        shape = dict(self._shapes())[target]
        with Handles() as own:
            space = own("H5Screate_simple", len(shape), extents(shape), None)
            if rng.integers(3) == 0:
                points = extents([int(rng.integers(n)) for n in shape])
                call("H5Sselect_elements", space, 0, 1, points)
            else:
                start = [int(rng.integers(n)) for n in shape]
                count = [int(rng.integers(1, n - at + 1)) for n, at in zip(shape, start)]
                call("H5Sselect_hyperslab", space, 0, extents(start), None, extents(count), None)
            call("H5Rcreate", made, self._file, target, 1, space)
        return made.raw

    def _shapes(self):
        """Paths for object references, and shapes of datasets for region references."""
        for each in self._description["objects"]:
            if each["op"] in ("group", "type", "dataset"):
                simple = isinstance(each.get("space"), list) and 0 not in each["space"]
                yield each["path"], each["space"] if simple else None

    def _space(self, own, space, limits=None):
        if isinstance(space, str):
            return own("H5Screate", {"scalar": 0, "null": 2}[space])
        return own("H5Screate_simple", len(space), extents(space),
                   None if limits is None else extents(limits))

    def _attribute(self, what, handles):
        if types.has_class(what["type"], "object", "region"):
            self._later.append(lambda: self._make_attribute(what))
        else:
            self._make_attribute(what)

    def _make_attribute(self, what):
        with Handles() as own:
            of = own("H5Oopen", self._file, what["of"], 0)
            kind = types.make_type(what["type"], own, self._named)
            space = self._space(own, what["space"])
            creation = own("H5Pcreate", class_of_lists("ATTRIBUTE_CREATE"))
            call("H5Pset_char_encoding", creation, int(what["utf8"]))
            made = own("H5Acreate2", of, what["name"], kind, space, creation, 0)
            n = 0 if what["space"] == "null" else int(np.prod(
                [] if isinstance(what["space"], str) else what["space"]))
            if n > 0:
                keep, rng = [], np.random.default_rng(what["seed"])
                raw = types.packed(what["type"], n, rng, what["style"], keep, self._refer)
                call("H5Awrite", made, kind, ctypes.create_string_buffer(raw, len(raw)))

    def _filters(self, creation, what):
        for name, *values in what.get("filters", ()):
            if name == "deflate":
                call("H5Pset_deflate", creation, *values)
            elif name == "szip":
                call("H5Pset_szip", creation, *values)
            elif name == "scaleoffset":
                call("H5Pset_scaleoffset", creation, *values)
            elif name in ("lzf", "unknown"):
                call("H5Pset_filter", creation, _FILTERS[name], 1, 0, None)
            else:
                call("H5Pset_" + name, creation)

    def _creation(self, own, what, kind, space):
        creation = own("H5Pcreate", class_of_lists("DATASET_CREATE"))
        _object_properties(creation, what)
        call("H5Pset_layout", creation, _LAYOUTS[what["layout"]])
        if what["layout"] == "chunked":
            call("H5Pset_chunk", creation, len(what["chunk"]), extents(what["chunk"]))
            if what.get("plain_edges"):
                call("H5Pset_chunk_opts", creation, 2)
            self._filters(creation, what)
        elif what["layout"] == "external":
            n_bytes = int(np.prod(what["space"])) * types.size_of(what["type"])
            # Relative names would start at the program's working folder.
            name = str(self._path.parent / f"{what['seed']}.raw")
            call("H5Pset_external", creation, name, 0, n_bytes)
        elif what["layout"] == "virtual":
            call("H5Pset_virtual", creation, space, source_name(what["seed"]), "/x", space)
        if what["fill"] == "undefined":
            call("H5Pset_fill_value", creation, kind, None)
        elif what["fill"] == "value":
            keep, rng = [], np.random.default_rng(what.get("fill_seed", what["seed"] + 1))
            raw = types.packed(what["type"], 1, rng, _of_fill(rng), keep, self._refer)
            call("H5Pset_fill_value", creation, kind, ctypes.create_string_buffer(raw, len(raw)))
        if "fill_time" in what:
            call("H5Pset_fill_time", creation, what["fill_time"])
            call("H5Pset_alloc_time", creation, what["allocation"])
        return creation

    def _dataset(self, what, handles):
        with Handles() as own:
            kind = types.make_type(what["type"], own, self._named)
            space = self._space(own, what["space"], what.get("limits"))
            creation = self._creation(own, what, kind, space)
            made = own("H5Dcreate2", self._file, what["path"], kind, space, self._links, creation,
                       0)
            self._comment(made, what)
        if types.has_class(what["type"], "object", "region"):
            self._later.append(lambda: self._write(what))
        else:
            self._write(what)

    def _write(self, what):
        if what["space"] == "null" or what["layout"] == "virtual" or any(
                name == "unknown" for name, *_ in what.get("filters", ())):
            return
        written = what.get("written", [])
        n = int(np.prod(written)) if what["space"] != "scalar" else 1
        if n == 0:
            return
        with Handles() as own:
            made = own("H5Dopen2", self._file, what["path"], 0)
            kind = own("H5Dget_type", made)
            space = own("H5Dget_space", made)
            memory = own("H5Screate_simple", 1, extents([n]), None)
            if isinstance(what["space"], list):
                call("H5Sselect_hyperslab", space, 0, extents([0] * len(written)), None,
                     extents(written), None)
            keep, rng = [], np.random.default_rng(what["seed"])
            raw = types.packed(what["type"], n, rng, what["style"], keep, self._refer)
            call("H5Dwrite", made, kind, memory, space, 0,
                 ctypes.create_string_buffer(raw, len(raw)))
            if "masked" in what:
                self._mask_one(made, what)

    @staticmethod
    def _mask_one(made, what):
        """Store one chunk without its filters."""
        rng = np.random.default_rng(what["masked"])
        at = [int(rng.integers(-(-n // c))) * c for n, c in zip(what["written"], what["chunk"])]
        n_bytes = int(np.prod(what["chunk"])) * types.size_of(what["type"])
        call("H5Fflush", made, 0)
        if types.points_elsewhere(what["type"]):
            return
        raw = types.packed(what["type"], int(np.prod(what["chunk"])), rng, what["style"], [], None)
        mask, kept = 2 ** len(what["filters"]) - 1, ctypes.c_uint()
        call("H5Dwrite_chunk", made, 0, mask, extents(at), n_bytes,
             ctypes.create_string_buffer(raw, len(raw)))
        call("H5Dget_chunk_info_by_coord", made, extents(at), ctypes.byref(kept), None, None)
        if kept.value != mask:
            # HDF5 leaves the index as it is if the old chunk has the same size, and then cannot
            # read the chunk.
            raise Invalid("HDF5 loses the filter mask of a chunk")


def _of_fill(rng):
    return ["smooth", "wide", "raw"][rng.integers(3)]


def source_name(seed):
    """The file that holds the values of a virtual dataset."""
    return f"{seed}.source.h5"


def make(description, path):
    """Make the file. @raises Invalid"""
    try:
        Maker(description, path).make()
    except (CallFailed, KeyError, RuntimeError, ValueError, OSError) as why:
        raise Invalid(f"{type(why).__name__}: {why}") from why
    for each in description["objects"]:
        if each.get("layout") == "virtual":
            _make_source(path.with_name(source_name(each["seed"])), each)


def _make_source(path, what):
    values = np.arange(int(np.prod(what["space"])), dtype="f8").reshape(what["space"])
    with h5py.File(path, "w") as file:
        file["x"] = values


def make_any(description, path):
    """Make the HDF5 or netCDF file. @raises Invalid"""
    path.unlink(missing_ok=True)
    if description["kind"] == "hdf5":
        return make(description, path)
    try:
        return netcdf.make(description, path)
    except Exception as why:  # netCDF4 raises exceptions of many types.
        raise Invalid(f"netCDF4: {why}") from why

"""The contents of an HDF5 file, read by h5py's HDF5, as a flat list of facts: {path: {aspect:
value}}.

This module shares no code with Tailrace. An object has the paths of all links to it. Its facts are
at the first path; the others have `link: same as`. Values are bytes without padding, in this
machine's byte order. References are the paths of their targets.
"""

import ctypes
import struct

import h5py
import numpy as np

from .calls import CallFailed, Handles, call

_CLASSES = ["int", "float", "time", "text", "bits", "opaque", "compound", "reference", "enum",
            "list", "array", "complex"]
_LAYOUTS = ["compact", "contiguous", "chunked", "virtual"]
_OUT = ctypes.c_uint64


def _get(function, handle, *types):
    """Call a function that has `types` as output arguments. @returns their values."""
    outs = [each() for each in types]
    call(function, handle, *[ctypes.byref(each) for each in outs])
    values = [each.value for each in outs]
    return values[0] if len(values) == 1 else values


class Type:
    """A type as text (`facts`), and the layout of its values in memory."""

    def __init__(self, handle, paths):
        with Handles() as own:
            self.size = call("H5Tget_size", handle)
            self.kind = _CLASSES[call("H5Tget_class", handle)]
            self.named = None
            self.parts = []  # (offset, Type)
            self.numpy = None
            if call("H5Tcommitted", handle):
                address = h5py.h5o.get_info(_borrowed(handle)).addr
                self.named = paths.get(address, "nothing")
            self.facts = [self.kind, self.size]
            getattr(self, "_" + self.kind)(handle, own, paths)
            if self.named:
                self.facts.append(f"named {self.named}")

    def _add_bits(self, handle):
        self.be = call("H5Tget_order", handle) == 1
        precision = call("H5Tget_precision", handle)
        offset = call("H5Tget_offset", handle)
        pads = _get("H5Tget_pad", handle, ctypes.c_int, ctypes.c_int)
        self.facts += ["be" if self.be else "le", precision, offset, *pads]
        return precision == 8 * self.size and offset == 0

    def _int(self, handle, own, paths):
        signed = call("H5Tget_sign", handle) == 1
        self.facts.append("signed" if signed else "unsigned")
        if self._add_bits(handle):
            self.numpy = np.dtype(f"{'>' if self.be else '<'}{'i' if signed else 'u'}{self.size}")

    def _float(self, handle, own, paths):
        fields = [each for each in _get("H5Tget_fields", handle, *[ctypes.c_size_t] * 5)]
        bias = call("H5Tget_ebias", handle)
        self.facts += [*fields, bias, call("H5Tget_norm", handle), call("H5Tget_inpad", handle)]
        plain = {2: [15, 10, 5, 0, 10], 4: [31, 23, 8, 0, 23], 8: [63, 52, 11, 0, 52]}
        if self._add_bits(handle) and fields == plain.get(self.size):
            self.numpy = np.dtype(f"{'>' if self.be else '<'}f{self.size}")

    def _time(self, handle, own, paths):
        self._add_bits(handle)

    _bits = _time

    def _text(self, handle, own, paths):
        self.variable = bool(call("H5Tis_variable_str", handle))
        self.facts += ["variable" if self.variable else "fixed", call("H5Tget_strpad", handle),
                       call("H5Tget_cset", handle)]

    def _opaque(self, handle, own, paths):
        self.facts.append(call("H5Tget_tag", handle))

    def _reference(self, handle, own, paths):
        self.region = self.size == 12
        self.facts.append("region" if self.region else "object")

    def _add_part(self, offset, handle, paths):
        part = Type(handle, paths)
        self.parts.append((offset, part))
        self.facts.append(tuple(part.facts))
        return part

    def _enum(self, handle, own, paths):
        self._add_part(0, own("H5Tget_super", handle), paths)
        self.be = self.parts[0][1].be
        for i in range(call("H5Tget_nmembers", handle)):
            value = ctypes.create_string_buffer(self.size)
            call("H5Tget_member_value", handle, i, value)
            self.facts.append((call("H5Tget_member_name", handle, i), self._native(value.raw)))

    def _native(self, raw):
        return raw[::-1] if self.be else raw

    def _compound(self, handle, own, paths):
        for i in range(call("H5Tget_nmembers", handle)):
            offset = call("H5Tget_member_offset", handle, i)
            self.facts.append((call("H5Tget_member_name", handle, i), offset))
            self._add_part(offset, own("H5Tget_member_type", handle, i), paths)

    def _list(self, handle, own, paths):
        self._add_part(0, own("H5Tget_super", handle), paths)

    def _array(self, handle, own, paths):
        dims = (_OUT * 32)()
        rank = call("H5Tget_array_dims2", handle, dims)
        self.facts.append(tuple(dims[:rank]))
        self._add_part(0, own("H5Tget_super", handle), paths)

    def _complex(self, handle, own, paths):
        self._add_part(0, own("H5Tget_super", handle), paths)

    def value(self, raw, resolve):
        """The meaning of n bytes of memory, in a comparable form."""
        match self.kind:
            case "int" | "float" | "time" | "bits":
                return self._native(raw)
            case "enum":
                return self._native(raw)
            case "opaque":
                return raw
            case "text" if not self.variable:
                return raw
            case "text":
                at, = struct.unpack("<Q", raw)
                return None if at == 0 else ctypes.string_at(at)
            case "reference":
                return resolve(raw, self.region)
            case "list":
                n, at = struct.unpack("<QQ", raw)
                part = self.parts[0][1]
                memory = ctypes.string_at(at, n * part.size) if n else b""
                return part.values(memory, n, resolve)
            case "array" | "complex":
                part = self.parts[0][1]
                return part.values(raw, self.size // part.size, resolve)
        return tuple(part.value(raw[at:at + part.size], resolve) for at, part in self.parts)

    def values(self, raw, n, resolve):
        if self.numpy is not None:
            return np.frombuffer(raw, self.numpy, n).astype(
                self.numpy.newbyteorder("=")).tobytes()
        return tuple(self.value(raw[i * self.size:(i + 1) * self.size], resolve)
                     for i in range(n))


def _borrowed(handle):
    """h5py's object for a handle that another object closes."""
    call("H5Iinc_ref", handle)
    which = call("H5Iget_type", handle)
    return {2: h5py.h5g.GroupID, 3: h5py.h5t.TypeID, 5: h5py.h5d.DatasetID}[which](handle)


class Numbers:
    """Values of a plain number type, for comparisons within a bound."""

    def __init__(self, array):
        self.array = array

    def __eq__(self, other):
        return (isinstance(other, Numbers) and self.array.dtype == other.array.dtype
                and self.array.tobytes() == other.array.tobytes())

    __hash__ = None

    def __repr__(self):
        return f"{self.array.dtype} {self.array[:4].tolist()}... of {self.array.size}"


class Inventory:
    def __init__(self, path):
        self.path = path
        self.facts = {}
        self._paths = {}  # Paths by address.
        with h5py.File(path, "r") as file:
            self._file = file.id
            self._find(file["/"].id, "/")
            self._add_file(file.id)
            for address, name in list(self._paths.items()):
                self._add_object(h5py.h5o.open(file.id, name.encode("utf8", "surrogateescape")),
                                 name)

    def _find(self, group, path):
        self._paths[h5py.h5o.get_info(group).addr] = path
        names = []
        group.links.iterate(names.append)
        for name in sorted(names):
            info = group.links.get_info(name)
            below = path.rstrip("/") + "/" + name.decode("utf8", "surrogateescape")
            facts = self.facts.setdefault(below, {})
            facts["link name"] = info.cset
            if info.type == h5py.h5l.TYPE_HARD:
                member = h5py.h5o.open(group, name)
                address = h5py.h5o.get_info(member).addr
                if address in self._paths:
                    facts["link"] = f"same as {self._paths[address]}"
                    continue
                facts["link"] = "hard"
                self._paths[address] = below
                if isinstance(member, h5py.h5g.GroupID):
                    self._find(member, below)
            elif info.type in (h5py.h5l.TYPE_SOFT, h5py.h5l.TYPE_EXTERNAL):
                facts["link"] = str(group.links.get_val(name))
            else:
                facts["link"] = "user-defined"

    def _resolve(self, raw, region):
        if not any(raw):
            return "null"
        buffer = ctypes.create_string_buffer(raw, 12)
        try:
            with Handles() as own:
                # References of older HDF5, whose calls still exist.
                target = own("H5Rdereference2", self._file.id, 0, int(region), buffer)
                info = h5py.h5o.get_info(_borrowed(target))
                name = self._paths.get(info.addr, "nothing")
                if not region:
                    return name
                space = own("H5Rget_region", self._file.id, 1, buffer)
                return f"{name} {_selection(space)}"
        except CallFailed:
            return "nothing"

    def _add_file(self, file):
        creation = file.get_create_plist()
        facts = self.facts.setdefault("/", {})
        handle = creation.id
        n = _get("H5Pget_userblock", handle, _OUT)
        facts["user block"] = open(self.path, "rb").read(n)
        facts["address sizes"] = _get("H5Pget_sizes", handle, ctypes.c_size_t, ctypes.c_size_t)
        facts["tree sizes"] = _get("H5Pget_sym_k", handle, ctypes.c_uint, ctypes.c_uint)
        facts["chunk tree size"] = _get("H5Pget_istore_k", handle, ctypes.c_uint)
        facts["space strategy"] = _get("H5Pget_file_space_strategy", handle, ctypes.c_int,
                                       ctypes.c_bool, _OUT)
        facts["space page"] = _get("H5Pget_file_space_page_size", handle, _OUT)
        facts["shared messages"] = _get("H5Pget_shared_mesg_nindexes", handle, ctypes.c_uint)

    def _add_object(self, item, path):
        facts = self.facts.setdefault(path, {})
        if isinstance(item, h5py.h5g.GroupID):
            facts["kind"] = "group"
            creation = item.get_create_plist()
            order = creation.get_link_creation_order()
            facts["link order kept"] = order
            facts["link phases"] = _get("H5Pget_link_phase_change", creation.id, ctypes.c_uint,
                                        ctypes.c_uint)
            if order:
                names = []
                for i in range(item.get_num_objs()):
                    buffer = ctypes.create_string_buffer(1000)
                    call("H5Lget_name_by_idx", item.id, ".", 1, 0, i, buffer, 1000, 0)
                    names.append(buffer.value)
                facts["link order"] = names
        elif isinstance(item, h5py.h5d.DatasetID):
            facts["kind"] = "dataset"
            creation = item.get_create_plist()
            self._add_dataset(item, creation, facts)
        else:
            facts["kind"] = "type"
            # A named type's path is its name.
            facts["type"] = Type(item.id, {}).facts
            creation = item.get_create_plist()
        order = _get("H5Pget_attr_creation_order", creation.id, ctypes.c_uint)
        facts["attribute order kept"] = order
        facts["attribute phases"] = _get("H5Pget_attr_phase_change", creation.id, ctypes.c_uint,
                                         ctypes.c_uint)
        facts["times"] = _get("H5Pget_obj_track_times", creation.id, ctypes.c_bool)
        comment = ctypes.create_string_buffer(1000)
        if call("H5Oget_comment", item.id, comment, 1000) > 0:
            facts["comment"] = comment.value
        self._add_attributes(item, facts, order)

    def _add_attributes(self, item, facts, order):
        names = []
        n = h5py.h5a.get_num_attrs(item)
        for i in range(n):
            with Handles() as own:
                attribute = own("H5Aopen_by_idx", item.id, ".", int(bool(order)), 0, i, 0, 0)
                buffer = ctypes.create_string_buffer(2000)
                call("H5Aget_name", attribute, 2000, buffer)
                name = buffer.value.decode("utf8", "surrogateescape")
                names.append(name)
                kind = own("H5Aget_type", attribute)
                space = own("H5Aget_space", attribute)
                described = Type(kind, self._paths)
                facts[f"attribute {name}"] = (described.facts, _extents(space),
                                              self._read("H5Aread", attribute, kind, space,
                                                         described))
        if order:
            facts["attribute order"] = names

    def _read(self, function, item, kind, space, described):
        n = call("H5Sget_simple_extent_npoints", space)
        if n == 0 or call("H5Sget_simple_extent_type", space) == 2:
            return ()
        memory = ctypes.create_string_buffer(n * described.size)
        try:
            if function == "H5Aread":
                call(function, item, kind, memory)
            else:
                call(function, item, kind, 0, 0, 0, memory)
        except CallFailed:
            return "unreadable"
        return described.values(memory.raw, n, self._resolve)

    def _add_dataset(self, item, creation, facts):
        handle = creation.id
        with Handles() as own:
            kind = own("H5Dget_type", item.id)
            space = own("H5Dget_space", item.id)
            described = Type(kind, self._paths)
            facts["type"] = described.facts
            facts["shape"], facts["limits"] = _extents(space), _extents(space, 1)
            layout = _LAYOUTS[creation.get_layout()]
            facts["layout"] = layout
            facts["fill time"] = _get("H5Pget_fill_time", handle, ctypes.c_int)
            facts["allocation"] = _get("H5Pget_alloc_time", handle, ctypes.c_int)
            facts["fill"] = self._fill(handle, kind, described)
            if layout == "chunked":
                facts["chunk"] = tuple(creation.get_chunk())
                facts["filters"] = [creation.get_filter(i)[:3]
                                    for i in range(creation.get_nfilters())]
                facts["edges"] = _get("H5Pget_chunk_opts", handle, ctypes.c_uint)
                facts["stored chunks"] = item.get_num_chunks()
            elif layout == "contiguous":
                external = [creation.get_external(i)
                            for i in range(creation.get_external_count())]
                if external:
                    facts["external"] = external
                facts["stored"] = item.get_storage_size() > 0
            elif layout == "virtual":
                facts["mappings"] = [
                    (creation.get_virtual_filename(i), creation.get_virtual_dsetname(i),
                     *(_selection(own(f"H5Pget_virtual_{side}space", handle, i))
                       for side in ("v", "src")))
                    for i in range(creation.get_virtual_count())]
            read = self._read("H5Dread", item.id, kind, space, described)
            if described.numpy is not None and isinstance(read, bytes):
                read = Numbers(np.frombuffer(read, described.numpy.newbyteorder("=")))
            facts["values"] = read

    def _fill(self, creation, kind, described):
        defined = _get("H5Pfill_value_defined", creation, ctypes.c_int)
        if defined != 2:
            return ["undefined", "default"][defined]
        memory = ctypes.create_string_buffer(described.size)
        try:
            call("H5Pget_fill_value", creation, kind, memory)
        except CallFailed:
            return "unreadable"
        return described.value(memory.raw, self._resolve)


def _extents(space, limits=0):
    if call("H5Sget_simple_extent_type", space) != 1:
        return ["scalar", None, "null"][call("H5Sget_simple_extent_type", space)]
    dims, most = (_OUT * 32)(), (_OUT * 32)()
    rank = call("H5Sget_simple_extent_dims", space, dims, most)
    return tuple((most if limits else dims)[:rank])


def _selection(space):
    """Text of a selection; equal elements of equal extents give equal text."""
    which = call("H5Sget_select_type", space)
    if which not in (1, 2):
        return ["none", "", "", "all"][which]
    n = call("H5Sget_select_npoints", space)
    extent = _extents(space)
    rank = len(extent)
    if which == 1:
        points = (_OUT * (rank * n))()
        call("H5Sget_select_elem_pointlist", space, 0, n, points)
        return f"{extent} points {list(points)}"
    blocks = call("H5Sget_select_hyper_nblocks", space)
    found = (_OUT * (2 * rank * blocks))()
    call("H5Sget_select_hyper_blocklist", space, 0, blocks, found)
    return f"{extent} blocks {list(found)}"


def differences(before, after):
    """All differences, each as (path, aspect, value before, value after)."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        a, b = before.get(path), after.get(path)
        if a is None or b is None:
            found.append((path, "object", a and a.get("kind", a["link"]),
                          b and b.get("kind", b["link"])))
            continue
        for aspect in sorted(a.keys() | b.keys()):
            if a.get(aspect) != b.get(aspect):
                found.append((path, aspect, a.get(aspect), b.get(aspect)))
    return found

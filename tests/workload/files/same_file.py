"""Differences of two HDF5 files that two builds of Tailrace have written from one input.

Facts are those of inventory.py, and the stored form of each object: the native facts of its header,
its chunk index, and the address and bytes of its data. Each build reads its own files, because only
that build must understand their chunks. A difference has a class and a text:

    trz format     Versions in trz chunks, and checksums of chunks that hold others.

    places         Addresses of objects, chunks or metadata.

    stored bytes   Encoded values, or their number of bytes.

    values         Decoded values.

    attribute X    An attribute; other aspects of an object have their names in inventory.py.

    elsewhere      Bytes outside of stored data, in files without any other difference.
"""

import ctypes
import hashlib
import pathlib
from dataclasses import dataclass, field

import h5py
import numpy as np

from .calls import CallFailed, call
from .inventory import Inventory, differences

_UNDEFINED = 2**64 - 1
#: Bytes of H5O_native_info_t, and H5O_NATIVE_INFO_ALL.
_NATIVE_INFO_BYTES, _NATIVE_INFO_ALL = 96, 0x18
#: Head of a trz chunk: magic, version and checksum of what follows.
_TRZ, _TRZ_VERSION_AT, _TRZ_CHECKSUM_END = b"TRZ", 3, 8


@dataclass
class Stored:
    """Stored bytes of a chunk, or of all of a dataset without chunks."""

    address: int
    mask: int
    data: bytes = field(repr=False)


@dataclass
class Facts:
    """Facts of one file."""

    data: bytes = field(repr=False)
    objects: dict  # Facts of inventory.py, "header" and "chunk index".
    addresses: dict  # Addresses of object headers, by path.
    stored: dict  # Stored, by path and position of the chunk.


def facts_of(path):
    """The facts of a file. @raises OSError or another error of h5py if it is damaged"""
    data = pathlib.Path(path).read_bytes()
    facts = Facts(data, Inventory(path).facts, {}, {})
    facts.objects["/"]["superblock"] = data[data.find(b"\x89HDF") + 8]
    with h5py.File(path, "r") as file:
        for name, found in facts.objects.items():
            if "kind" not in found:  # A link that leads to another name of an object, or nowhere.
                continue
            item = h5py.h5o.open(file.id, name.encode("utf8", "surrogateescape"))
            facts.addresses[name] = h5py.h5o.get_info(item).addr
            native = ctypes.create_string_buffer(_NATIVE_INFO_BYTES)
            call("H5Oget_native_info", item.id, native, _NATIVE_INFO_ALL)
            found["header"] = np.frombuffer(native.raw, "u8").tolist()
            if found["kind"] == "dataset":
                _add_stored(facts, name, found, item)
    return facts


def _add_stored(facts, name, found, item):
    if found["layout"] == "chunked":
        kind = ctypes.c_int()
        call("H5Dget_chunk_index_type", item.id, ctypes.byref(kind))
        found["chunk index"] = kind.value
        for i in range(item.get_num_chunks()):
            chunk = item.get_chunk_info(i)
            end = chunk.byte_offset + chunk.size
            facts.stored[name, chunk.chunk_offset] = Stored(
                chunk.byte_offset, chunk.filter_mask, facts.data[chunk.byte_offset:end])
    elif found["layout"] == "contiguous" and item.get_offset() not in (None, _UNDEFINED):
        at = item.get_offset()
        facts.stored[name, ()] = Stored(at, 0, facts.data[at:at + item.get_storage_size()])


def version_only(old, new):
    """True if bytes differ in versions of trz chunks, and in these chunks' checksums, only.

    >>> version_only(b"TRZ\\4abcdvalue", b"TRZ\\1abcdvalue")
    True
    >>> version_only(b"TRZ\\4abcdvalue", b"TRZ\\1abcdvalues")
    False
    """
    if len(old) != len(new):
        return False
    explained = np.zeros(len(old), bool)
    at = old.find(_TRZ)
    while at >= 0:
        explained[at + _TRZ_VERSION_AT:at + _TRZ_CHECKSUM_END] = True
        at = old.find(_TRZ, at + 1)
    return bool(np.all(explained | (np.frombuffer(old, "u1") == np.frombuffer(new, "u1"))))


def compare(old, new):
    """All differences of two files' Facts, as pairs of class and text. Empty if all bytes equal."""
    if old.data == new.data:
        return []
    found = []
    for path, aspect, a, b in differences(old.objects, new.objects):
        found.append((aspect, f"{path}: {a!r:.200} -> {b!r:.200}"))
    if old.stored.keys() != new.stored.keys():
        odd = sorted(map(str, old.stored.keys() ^ new.stored.keys()))
        found.append(("stored bytes", f"only one file has {odd[:3]} of {len(odd)} chunks"))
    for key in old.stored.keys() & new.stored.keys():
        found += _compare_stored(key, old.stored[key], new.stored[key])
    moved = [path for path in old.addresses.keys() & new.addresses.keys()
             if old.addresses[path] != new.addresses[path]]
    if moved or len(old.data) != len(new.data):
        found.append(("places", f"objects {moved[:3]}, {len(old.data)} -> {len(new.data)} bytes"))
    if not {each for each, _ in found} - {"trz format"}:
        found += _compare_elsewhere(old, new)
    return found


def _compare_stored(key, old, new):
    where = f"{key[0]} {key[1]}"
    if old.mask != new.mask:
        yield "stored bytes", f"{where}: filter mask {old.mask} -> {new.mask}"
    if old.data != new.data:
        which = "trz format" if version_only(old.data, new.data) else "stored bytes"
        digests = [f"{len(each.data)} bytes {hashlib.sha256(each.data).hexdigest()[:8]}"
                   for each in (old, new)]
        yield which, f"{where}: {' -> '.join(digests)}"
    if old.address != new.address:
        yield "places", f"{where}: {old.address} -> {new.address}"


def _compare_elsewhere(old, new):
    """Compare what is not stored data. Space without references may hold older trz chunks."""
    images = [bytearray(old.data), bytearray(new.data)]
    for each in old.stored.values():
        for image in images:
            image[each.address:each.address + len(each.data)] = bytes(len(each.data))
    if images[0] == images[1]:
        return []
    if version_only(*images):
        return [("trz format", "in space without references")]
    differ = np.flatnonzero(np.frombuffer(images[0], "u1") != np.frombuffer(images[1], "u1"))
    return [("elsewhere", f"{len(differ)} bytes, the first at {differ[0]}: "
             f"{bytes(images[0][differ[0]:][:8]).hex()} -> "
             f"{bytes(images[1][differ[0]:][:8]).hex()}")]


def read(path):
    """facts_of(), or the error's text."""
    try:
        return facts_of(path)
    except (CallFailed, OSError, RuntimeError, ValueError, KeyError, TypeError) as why:
        return f"{type(why).__name__}: {why}"

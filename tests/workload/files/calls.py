"""The C calls of h5py's HDF5 library, for features that h5py's Python API lacks.

Everything that a file may contain is made and read here by the library's own calls, without
conversion: values have the same type in memory as in the file.
"""

import ctypes
import functools
import glob
import pathlib

import h5py

_FOLDER = pathlib.Path(h5py.__file__).parents[1] / "h5py.libs"

#: Calls that return 64 bits: identifiers, sizes, addresses. All others return an int.
_WIDE = {
    "H5Acreate2", "H5Aopen", "H5Aopen_by_idx", "H5Aget_type", "H5Aget_space", "H5Aget_name",
    "H5Dcreate2", "H5Dopen2", "H5Dget_type", "H5Dget_space", "H5Dget_create_plist",
    "H5Dget_storage_size", "H5Fcreate", "H5Fopen", "H5Fget_create_plist", "H5Gcreate2", "H5Gopen2",
    "H5Gget_create_plist", "H5Oopen", "H5Pcreate", "H5Pcopy", "H5Pget_virtual_vspace",
    "H5Pget_virtual_srcspace", "H5Pget_virtual_filename", "H5Pget_virtual_dsetname",
    "H5Rdereference2", "H5Rget_region", "H5Screate", "H5Screate_simple", "H5Scopy",
    "H5Sget_simple_extent_npoints", "H5Sget_select_npoints", "H5Tcopy", "H5Tcreate",
    "H5Tenum_create", "H5Tvlen_create", "H5Tarray_create2", "H5Topen2", "H5Tget_super",
    "H5Tget_member_type", "H5Tget_member_offset", "H5Tget_size", "H5Tget_precision",
    "H5Tget_ebias", "H5Tget_create_plist", "H5Oget_comment", "H5Iget_name"}
_TEXTS = {"H5Tget_tag", "H5Tget_member_name"}


class CallFailed(Exception):
    """A call of HDF5 failed."""


@functools.cache
def library():
    found = glob.glob(str(_FOLDER / "libhdf5-*"))
    lib = ctypes.CDLL(found[0])
    lib.H5open()
    return lib


@functools.cache
def _function(name):
    function = getattr(library(), name)
    function.restype = (ctypes.c_void_p if name in _TEXTS else
                        ctypes.c_int64 if name in _WIDE else ctypes.c_int)
    return function


def _argument(value):
    if isinstance(value, bool) or not isinstance(value, int):
        return value.encode() if isinstance(value, str) else value
    return ctypes.c_int64(value) if value < 2**63 else ctypes.c_uint64(value)


def call(name, *arguments):
    """Call HDF5. @raises CallFailed"""
    result = _function(name)(*[_argument(each) for each in arguments])
    if name in _TEXTS:
        text = ctypes.string_at(result)
        library().H5free_memory(ctypes.c_void_p(result))
        return text
    if result < 0:
        raise CallFailed(name)
    return result


def constant(name):
    """A predefined type or property list class, such as H5T_STD_I32LE."""
    return ctypes.c_int64.in_dll(library(), name + "_g").value


def class_of_lists(name):
    return ctypes.c_int64.in_dll(library(), f"H5P_CLS_{name}_ID_g").value


def extents(values):
    """An array of hsize_t; -1 is unlimited."""
    return (ctypes.c_uint64 * max(len(values), 1))(*[each % 2**64 for each in values])


class Handles:
    """Identifiers that are closed together, the newest first."""

    def __init__(self):
        self._open = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for handle in reversed(self._open):
            _function("H5Idec_ref")(ctypes.c_int64(handle))

    def __call__(self, name, *arguments):
        handle = call(name, *arguments)
        self._open.append(handle)
        return handle

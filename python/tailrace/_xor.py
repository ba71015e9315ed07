"""The lossless codec xor in h5py: libh5xor.so, in the folder of libh5trz.so."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Any, Optional

from . import _native, _plugins
from ._filter_reference import FilterReference

_LIBRARY = pathlib.Path(_native.PLUGIN_PATH) / "libh5xor.so"
_LAYOUT = 1


class Xor(FilterReference):
    """The filter xor for h5py's create_dataset, as keywords or as `compression`.

    Lossless, for elements of any type, at memory speed. dimension: xor with the neighbours along
    the 1, 2 or 3 fastest axes; by default each chunk chooses.

    >>> dict(Xor())
    {'compression': 482, 'compression_opts': (1,)}
    """

    filter_id = _plugins.FILTERS["xor"]

    def __init__(self, dimension: Optional[int] = None) -> None:
        if dimension not in (None, 1, 2, 3):
            raise ValueError(f"xor: dimension must be 1, 2 or 3, got {dimension!r}")
        self.filter_options = (_LAYOUT | (dimension or 0) << 8,)


class XorArray(ctypes.Structure):
    """xor_array: element size and shape of the values to encode."""

    _fields_ = [
        ("element_bytes", ctypes.c_uint32),
        ("dimension", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("extents", ctypes.POINTER(ctypes.c_uint64)),
    ]


@functools.lru_cache(maxsize=None)
def xor_library() -> ctypes.CDLL:
    """Load libh5xor.so, which stays loaded as long as Python runs, because HDF5 calls it."""
    library = _plugins.load(_LIBRARY)
    library.xor_encoded_bytes_max.restype = ctypes.c_size_t
    library.xor_encoded_bytes_max.argtypes = [ctypes.c_size_t]
    message = ctypes.POINTER(_native.Message)
    block: list[Any] = [ctypes.c_void_p, ctypes.c_size_t]
    library.xor_encode.restype = library.xor_decode.restype = ctypes.c_int64
    library.xor_encode.argtypes = [ctypes.POINTER(XorArray), *block, *block, message]
    library.xor_decode.argtypes = [*block, *block, message]
    return library


def xor_call(name: str, *arguments: Any) -> int:
    """Call a function whose last parameter is the message; a failure becomes a ValueError."""
    return _native.call_of(xor_library(), ValueError, name, *arguments)


def register_xor() -> bool:
    """Register the filter xor with all HDF5s of this process, like register() for trz.

    Returns False without h5py, or if libh5xor.so was not built; wheels contain both plug-ins.
    """
    _plugins.import_h5py()
    return serve()


def serve() -> bool:
    """Register without importing h5py."""
    if not _LIBRARY.exists() or not _plugins.register([xor_library()]):
        return False
    import h5py
    h5py.filters.FilterRefBase.register(Xor)
    return True

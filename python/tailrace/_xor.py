"""The lossless codec xor in h5py: libh5xor.so, which lies beside libh5trz.so."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Optional

from . import _native
from ._filter_reference import FilterReference

_LIBRARY = pathlib.Path(_native.PLUGIN_PATH) / "libh5xor.so"
_FILTER_ID = 482
_LAYOUT = 1


class Xor(FilterReference):
    """The filter xor for h5py's create_dataset, as keywords or as `compression`.

    Lossless, for elements of any type, at memory speed. dimension: xor with the neighbours along
    the 1, 2 or 3 fastest axes; by default each chunk chooses.

    >>> dict(Xor())
    {'compression': 482, 'compression_opts': (1,)}
    """

    filter_id = _FILTER_ID

    def __init__(self, dimension: Optional[int] = None) -> None:
        if dimension not in (None, 1, 2, 3):
            raise ValueError(f"xor: dimension must be 1, 2 or 3, got {dimension!r}")
        self.filter_options = (_LAYOUT | (dimension or 0) << 8,)


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    """Kept for as long as Python runs: HDF5 calls into it."""
    library = ctypes.CDLL(str(_LIBRARY))
    library.H5PLget_plugin_info.restype = ctypes.c_void_p
    return library


def register_xor() -> bool:
    """Register the filter with the HDF5 inside h5py. Done at import.

    False without h5py, or where somebody has built libh5trz.so alone; wheels hold both.
    """
    try:
        import h5py
    except ImportError:
        return False
    if not _LIBRARY.exists():
        return False
    h5py.h5z.register_filter(_library().H5PLget_plugin_info())
    h5py.filters.FilterRefBase.register(Xor)
    return True

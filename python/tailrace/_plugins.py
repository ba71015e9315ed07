"""The filters trz and xor for every HDF5 of this process.

h5py's HDF5 is given the filters themselves. Others, such as netCDF4's, find plug-ins in a folder:
those that are loaded are told of it (H5PLappend), those to come read HDF5_PLUGIN_PATH. All of that
is done once, when a package is imported; who imports it while other threads are within HDF5 takes
HDF5's own chances. The package tailrace-filters is this file and the plug-ins, and needs nothing
but Python.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import Any

#: Our filters' numbers, of HDF5's range for testing.
FILTERS = {"trz": 481, "xor": 482}
#: Where most HDF5s look if HDF5_PLUGIN_PATH is not set; who sets it should not hide these.
_USUAL_FOLDERS = ("/usr/local/hdf5/lib/plugin", os.path.join(sys.prefix, "lib", "hdf5", "plugin"))
_HDF5_FILE = re.compile(r"/libhdf5[^/]*\.so[^/]*$")


def load(path: os.PathLike[str]) -> ctypes.CDLL:
    """A plug-in as h5py takes it; it must live as long as h5py does."""
    library = ctypes.CDLL(str(path))
    library.H5PLget_plugin_info.restype = ctypes.c_void_p
    return library


def register_with_h5py(library: ctypes.CDLL) -> bool:
    """Whether there is an h5py, whose HDF5 has the filter then. Old h5py (3.7) cannot be told of
    one, so that its HDF5 looks for it in the plug-in's folder when it first needs it."""
    try:
        import h5py
    except ImportError:
        return False
    if hasattr(h5py.h5z, "register_filter"):
        h5py.h5z.register_filter(library.H5PLget_plugin_info())
        return True
    folder = os.path.dirname(library._name).encode()
    if folder not in [h5py.h5pl.get(i) for i in range(h5py.h5pl.size())]:
        # In front: HDF5 1.10 gives up at a folder that is not there, such as its own default.
        h5py.h5pl.prepend(folder)
    return True


def show_to_others(folder: str) -> None:
    """Let HDF5s without the filters find the folder: those of this process, and those to come here
    and in programs that it starts."""
    known = os.environ.get("HDF5_PLUGIN_PATH")
    folders = (known.split(os.pathsep) if known is not None
               else [usual for usual in _USUAL_FOLDERS if os.path.isdir(usual)])
    if folder not in folders:
        os.environ["HDF5_PLUGIN_PATH"] = os.pathsep.join([*folders, folder])
    for path in _loaded_hdf5s():
        _append(path, folder)


def _loaded_hdf5s() -> Iterable[str]:
    """The files of HDF5s in this process; none where there is no list of its files."""
    try:
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    found = (line[line.find("/"):] for line in maps.splitlines() if "/libhdf5" in line)
    return sorted({path for path in found if _HDF5_FILE.search(path)})


def _append(path: str, folder: str) -> None:
    """Tell one HDF5 of the folder, unless it has our filters or knows it already."""
    try:
        # PyDLL keeps Python's lock, and with it Python's other threads, out of HDF5.
        hdf5: Any = ctypes.PyDLL(path, mode=os.RTLD_NOLOAD)
        if all(hdf5.H5Zfilter_avail(number) > 0 for number in FILTERS.values()):
            return
        hdf5.H5PLappend(folder.encode())
    except (OSError, AttributeError):
        return  # Gone in the meantime, of no use without its C library, or older than 1.10.1.

"""The HDF5 filters trz and xor, for files compressed by Tailrace.

Importing this package registers them with the HDF5s of h5py, netCDF4 and PyTables, whether these
are imported before or after. It also registers them with all other HDF5s that this process has
loaded. It changes no environment variable. For other programs (h5dump, ParaView) set
HDF5_PLUGIN_PATH to tailrace_filters.PLUGIN_PATH before they start.
"""

import os as _os
import pathlib as _pathlib

# Shared with the package tailrace; CMake copies the module here.
from ._plugins import FILTERS
from ._plugins import import_h5py as _import_h5py
from ._plugins import load as _load
from ._plugins import register as _register
from ._plugins import whenever_hdf5_comes as _whenever_hdf5_comes

__all__ = ["FILTERS", "PLUGIN_PATH", "__version__", "register"]

__version__ = "0.1.0"

#: Folder of the plug-ins, for HDF5_PLUGIN_PATH. TAILRACE_H5TRZ names the file of another one, for
#: work on Tailrace itself.
PLUGIN_PATH: str = str(
    _pathlib.Path(_os.environ["TAILRACE_H5TRZ"]).parent if _os.environ.get("TAILRACE_H5TRZ")
    else _pathlib.Path(__file__).resolve().parent / "plugins")

_libraries = [_load(_pathlib.Path(PLUGIN_PATH) / f"libh5{name}.so") for name in FILTERS]


def register() -> bool:
    """Register the filters with all HDF5s of this process. Imports h5py; returns False without it.

    Most users leave this alone: importing this package does it, and importing h5py, netCDF4 or
    PyTables repeats it. Call it after importing another package that contains an HDF5.
    """
    _import_h5py()
    return _register(_libraries)


_whenever_hdf5_comes(lambda: _register(_libraries))

"""The HDF5 filters trz and xor, for files that Tailrace has compressed.

Importing this package registers them with the HDF5s of h5py, netCDF4 and PyTables, before or after
these are imported, and with all others that this process has loaded. It changes no environment
variable. For other programs (h5dump, ParaView) set HDF5_PLUGIN_PATH to tailrace_filters.PLUGIN_PATH
before they start.
"""

import os as _os
import pathlib as _pathlib

# Of the package tailrace, which has it from the same place; CMake puts it here.
from ._plugins import FILTERS
from ._plugins import import_h5py as _import_h5py
from ._plugins import load as _load
from ._plugins import register as _register
from ._plugins import whenever_hdf5_comes as _whenever_hdf5_comes

__all__ = ["FILTERS", "PLUGIN_PATH", "__version__", "register"]

__version__ = "0.1.0"

#: The folder of the plug-ins, for HDF5_PLUGIN_PATH. TAILRACE_H5TRZ names the file of another one,
#: for work on Tailrace itself.
PLUGIN_PATH: str = str(
    _pathlib.Path(_os.environ["TAILRACE_H5TRZ"]).parent if _os.environ.get("TAILRACE_H5TRZ")
    else _pathlib.Path(__file__).resolve().parent / "plugins")

_libraries = [_load(_pathlib.Path(PLUGIN_PATH) / f"libh5{name}.so") for name in FILTERS]


def register() -> bool:
    """Register the filters with all HDF5s of this process. It imports h5py; False without that.

    Most users leave this alone: the import of this package does it, and that of h5py, netCDF4 or
    PyTables repeats it. Call it after the import of another package that brings an HDF5.
    """
    _import_h5py()
    return _register(_libraries)


_whenever_hdf5_comes(lambda: _register(_libraries))

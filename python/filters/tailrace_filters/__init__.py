"""The HDF5 filters trz and xor, for files that Tailrace has compressed.

Importing this package registers them with h5py, if that is installed, and lets netCDF4 and other
HDF5s of this process find them. For other programs (h5dump, ParaView) set HDF5_PLUGIN_PATH to
tailrace_filters.PLUGIN_PATH before they start.
"""

import os as _os
import pathlib as _pathlib

# Of the package tailrace, which has it from the same place; CMake puts it here.
from ._plugins import FILTERS
from ._plugins import load as _load
from ._plugins import register_with_h5py as _register_with_h5py
from ._plugins import show_to_others as _show_to_others

__all__ = ["FILTERS", "PLUGIN_PATH", "__version__", "register"]

__version__ = "0.1.0"

#: The folder of the plug-ins, for HDF5_PLUGIN_PATH. TAILRACE_H5TRZ names the file of another one,
#: for work on Tailrace itself.
PLUGIN_PATH: str = str(
    _pathlib.Path(_os.environ["TAILRACE_H5TRZ"]).parent if _os.environ.get("TAILRACE_H5TRZ")
    else _pathlib.Path(__file__).resolve().parent / "plugins")

_libraries = [_load(_pathlib.Path(PLUGIN_PATH) / f"libh5{name}.so") for name in FILTERS]


def register() -> bool:
    """Register the filters with the HDF5 inside h5py. Done at import; False without h5py."""
    return all([_register_with_h5py(library) for library in _libraries])


register()
_show_to_others(PLUGIN_PATH)
